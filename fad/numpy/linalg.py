"""numpy.linalg's names: operations with derivatives where there are, NumPy's own functions otherwise."""

import numpy as _np

from fad.numpy.surface import namespace as _namespace

globals().update(_namespace(_np.linalg))
__all__ = list(_np.linalg.__all__)
