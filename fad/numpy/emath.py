"""numpy.emath's names: functions that answer with complex numbers where no real result exists."""

from typing import TYPE_CHECKING

import numpy as _np

from fad.numpy.surface import namespace as _namespace

if TYPE_CHECKING:  # what editors and type checkers show
    from numpy.emath import *  # noqa: F403

globals().update(_namespace(_np.emath))
__all__ = list(_np.emath.__all__)
