"""Where the versions of SciPy differ: a transformed function does what the one does that is installed."""

from __future__ import annotations

import scipy

SINCE_1_18 = tuple(map(int, scipy.__version__.split(".")[:2])) >= (1, 18)
# In which order of memory SciPy gives the results of its decompositions.
FACTORS = "C" if SINCE_1_18 else "F"
