"""What stands for objects of SciPy's and may hold traced values, and which arguments are plain after all."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.handles.buffers import plain
from fad.core.tracing.tracer import Tracer, up_to_date

HOLDERS: list[type] = []  # classes; their method ``is_written`` says whether an object holds traced values


def take_plain(x: Any) -> Any:
    """Return arguments with the arrays that the program made, and wrote no traced value into, as plain ones."""
    if type(x) in (list, tuple):
        return type(x)(map(take_plain, x))
    if type(x) is dict:
        return {name: take_plain(value) for name, value in x.items()}
    held = plain(up_to_date(x)) if type(x) is Tracer else x
    return held if type(held) is np.ndarray else x
