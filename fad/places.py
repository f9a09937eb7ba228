"""Where in the user's own program we are: the file and line behind a call, for messages and for tables."""

from __future__ import annotations

import contextlib
import functools
import linecache
import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Frames of these files are machinery between the user and us, never the user's own line.
_MACHINERY = (
    _HERE, os.sep + "numpy" + os.sep, os.sep + "optree" + os.sep, "<__array_function__",
    contextlib.__file__, functools.__file__,  # decorators of ours and of the user's pass through these
)  # fmt: skip


_is_machinery: dict[str, bool] = {}


def user_place() -> tuple[str, int] | None:
    """Return file name and line number of the innermost frame that is the user's; cheap, to be shown later."""
    frame = sys._getframe(1)
    while frame is not None:
        name = frame.f_code.co_filename
        ours = _is_machinery.get(name)
        if ours is None:
            ours = _is_machinery[name] = any(part in name for part in _MACHINERY)
        if not ours:
            return name, frame.f_lineno
        frame = frame.f_back
    return None


def show_place(place: tuple[str, int] | None) -> str:
    """Return ``'file.py:12: y = np.foo(x)'`` for a place, or ``''`` for none."""
    if place is None:
        return ""
    name, number = place
    return f"{name}:{number}: {linecache.getline(name, number).strip()}".rstrip(": ")


def user_line() -> str:
    """Return the user's own line that led here, as text."""
    return show_place(user_place())
