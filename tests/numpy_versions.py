"""Where the versions of NumPy differ that fad runs on: tests of what the newer ones do say which that are."""

import numpy as np
import pytest

BEFORE_2_5 = np.lib.NumpyVersion(np.__version__) < "2.5.0"
WITH_CROSS_OF_PLANE_VECTORS = pytest.mark.skipif(not BEFORE_2_5, reason="NumPy has dropped them in 2.5")
# NumPy warns of ``x.shape = shape`` since 2.5, of plain arrays in these tests.
WITH_SET_SHAPES = pytest.mark.filterwarnings("ignore:Setting the shape on a NumPy array:DeprecationWarning")
# Python warns of ``~flag`` since 3.12.
WITH_INVERTED_BOOLS = pytest.mark.filterwarnings("ignore:Bitwise inversion:DeprecationWarning")
BEFORE_2_4 = np.lib.NumpyVersion(np.__version__) < "2.4.0"
