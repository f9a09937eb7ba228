"""numpy.linalg's names: operations with derivatives where there are, NumPy's own functions otherwise."""

from typing import TYPE_CHECKING

import numpy as _np

from fad.numpy.surface import namespace as _namespace

if TYPE_CHECKING:  # what editors and type checkers show
    from numpy.linalg import *  # noqa: F403

globals().update(_namespace(_np.linalg))
__all__ = list(_np.linalg.__all__)
