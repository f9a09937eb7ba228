"""Where the versions of NumPy differ: a transformed function does what the one does that is installed."""

from __future__ import annotations

import numpy as np

SINCE_2_5 = np.lib.NumpyVersion(np.__version__) >= "2.5.0"
