"""numpy.fft's names: operations with derivatives where there are, NumPy's own functions otherwise."""

from typing import TYPE_CHECKING

import numpy.fft as _fft

from fad.numpy.surface import namespace as _namespace

if TYPE_CHECKING:  # what editors and type checkers show
    from numpy.fft import *  # noqa: F403

globals().update(_namespace(_fft))
__all__ = list(_fft.__all__)
