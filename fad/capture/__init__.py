"""Python's loops, captured: while a program is recorded, ``for`` and ``while`` become operations of it."""
