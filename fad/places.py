"""Where in the user's own program we are: the file and line behind a call, for messages and for tables."""

from __future__ import annotations

import contextlib
import functools
import itertools
import linecache
import os
import sys
import types
from typing import Any

_HERE = os.path.dirname(os.path.abspath(__file__)) + os.sep
# Frames of these files are machinery between the user and us, never the user's own line.
_MACHINERY = (
    _HERE, "<__array_function__", "<frozen importlib", os.sep + "importlib" + os.sep,
    os.sep + "numpy" + os.sep, os.sep + "scipy" + os.sep, os.sep + "optree" + os.sep,
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


def library_function() -> str:
    """Return the public name of the SciPy (or undispatched NumPy) function that is running, or ``''`` for none.

    It is what the user called: the outermost of the library's frames that follow each other on the stack.
    """
    frame = sys._getframe(1)
    found = ""
    while frame is not None:
        parts = frame.f_globals.get("__name__", "").split(".")
        if parts[0] == "scipy" and len(parts) > 1:
            found = _public_name(frame, parts) or found or ".".join(parts[:2])
        elif parts[0] == "numpy":
            found = _undispatched(frame, parts) or found
        elif found:
            break
        frame = frame.f_back
    return found


def _public_name(frame: Any, parts: list[str]) -> str:
    """Return the name under which a user called the function of a frame, or ``''`` for a wrapper."""
    public = ".".join(itertools.takewhile(lambda part: not part.startswith("_"), parts))
    name, owner = frame.f_code.co_name, frame.f_locals.get("self")
    if owner is not None:  # norm.logpdf is a method of the distribution norm; CubicSpline.__init__ is CubicSpline
        if name == "__call__" and (own := _name_in(public, owner)):  # an object that stands in for a function
            return f"{public}.{own}"
        given = getattr(owner, "name", None)
        if isinstance(given, str):
            return f"{public}.{given}.{name}"
        return "" if type(owner).__name__.startswith("_") else f"{public}.{type(owner).__name__}"
    inner = frame.f_locals.get("f")
    if name == "wrapper" and isinstance(inner, types.FunctionType):  # SciPy's decorator for stacks of arrays
        parts, name = inner.__module__.split("."), inner.__name__
        public = ".".join(itertools.takewhile(lambda part: not part.startswith("_"), parts))
    return "" if name in ("wrapper", "wrapped", "inner") or name.startswith(("<", "_")) else f"{public}.{name}"


def _name_in(module: str, thing: Any) -> str:
    return next((name for name, value in vars(sys.modules[module]).items() if value is thing), "")


def _undispatched(frame: Any, parts: list[str]) -> str:
    """Return the name of a NumPy function that asks no protocol, so that it cannot take traced arrays."""
    owner = type(frame.f_locals.get("self")).__name__
    if owner == "vectorize":
        return "numpy.vectorize"
    if parts[1:2] != ["polynomial"]:
        return ""
    name = frame.f_code.co_name
    return f"numpy.polynomial.{owner}" if owner != "NoneType" else "" if name[0] in "_<" else ".".join([*parts, name])
