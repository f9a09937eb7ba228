"""numpy.emath's names: functions that answer with complex numbers where no real result exists."""

import numpy as _np

from fad.numpy.surface import namespace as _namespace

globals().update(_namespace(_np.emath))
__all__ = list(_np.emath.__all__)
