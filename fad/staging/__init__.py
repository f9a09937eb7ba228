"""Recording: a function that ran once as a graph of operations."""
