"""Which operations become one loop, in which order the loops run, and where their values live."""
