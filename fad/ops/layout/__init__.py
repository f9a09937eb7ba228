"""How the elements of an array lie: its shape, its order in memory, and what an index says."""
