"""Where the versions of NumPy differ that fad runs on: tests of what the newer ones do say which that are."""

import numpy as np

BEFORE_2_4 = np.lib.NumpyVersion(np.__version__) < "2.4.0"
