"""NumPy's error state: native code neither raises nor warns, so calls under ``np.errstate(all="raise")`` run in NumPy.

A program runs in one state from end to end: a function that sets a strict one for a part of itself is not recorded.
A native program asks at every call, and a recording at every operation, so it must cost next to nothing: NumPy keeps
the state in a context variable, and the last one that set nothing is known by its identity.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

_variable = getattr(importlib.import_module("numpy._core.umath"), "_extobj_contextvar", None)
state: Callable[[], Any] = object if _variable is None else _variable.get  # without it, each state is one not seen yet
calm: list = [None]  # the last state that was seen to set warnings at most


def is_strict() -> bool:
    """Return whether floating point errors are to raise, to be printed or to call a function; remember a calm state."""
    now = state()
    if any(how not in ("ignore", "warn") for how in np.geterr().values()):
        return True
    calm[0] = now
    return False
