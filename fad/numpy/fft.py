"""numpy.fft's names: operations with derivatives where there are, NumPy's own functions otherwise."""

import numpy.fft as _fft

from fad.numpy.surface import namespace as _namespace

globals().update(_namespace(_fft))
__all__ = list(_fft.__all__)
