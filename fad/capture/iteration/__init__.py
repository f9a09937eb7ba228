"""What loops run over: ranges, arrays, lists, generators, and Python's functions that combine them."""
