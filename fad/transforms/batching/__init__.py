"""The trace of ``vmap`` and where its batch axes lie."""
