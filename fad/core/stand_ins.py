"""What stands for the names and objects of other libraries while a transform runs, as far as they have been found."""

from __future__ import annotations

import functools
import sys
import types
from collections.abc import Callable
from typing import Any

# What stands in for a library's function, class or module, by the id of what it stands for; and what makes it for an
# object that was there before, by the object's class. `FINDERS` fill both.
LIBRARIES: dict[int, Any] = {}
OBJECTS: dict[type, Callable[[Any], Any]] = {}
FINDERS: list[Callable[[dict, dict], None]] = []
# Functions of SciPy's whose C code prints an error of the function that they are given, before they raise it.
_PRINTING = frozenset({"curve_fit", "fsolve", "least_squares", "leastsq", "root"})


def find_all() -> None:
    """Fill the tables, where a program has imported more by now."""
    for find in FINDERS:
        find(LIBRARIES, OBJECTS)


def names_printing(f: types.FunctionType) -> bool:
    """Return whether a function names one of SciPy's that would print the error of a first run without stand-ins."""
    names, library = _PRINTING.intersection(f.__code__.co_names), sys.modules.get("scipy.optimize")
    if not names or library is None:
        return False
    known = f.__globals__
    by_name = any(known.get(name) is getattr(library, name) for name in names)
    return by_name or any(x is library or x is sys.modules["scipy"] for x in known.values())


def has_stand_in(x: Any) -> bool:
    """Return whether something else stands for a library's function or object while a transform runs."""
    kind = type(x)
    if kind is types.MethodType:
        return has_stand_in(x.__self__)
    if kind is functools.partial:
        return has_stand_in(x.func)
    if kind is staticmethod:
        return has_stand_in(x.__func__)
    return id(x) in LIBRARIES or kind in OBJECTS


def find_stand_in(x: Any) -> Any:
    """Return what stands for a library's function or object while a transform runs, or None.

    So it does for its methods, and for functions made of its own by functools.partial or staticmethod.
    """
    if id(x) in LIBRARIES:
        return LIBRARIES[id(x)]
    kind = type(x)
    if kind in OBJECTS:
        return OBJECTS[kind](x)
    if kind is types.MethodType and (owner := find_stand_in(x.__self__)) is not None:
        return getattr(owner, x.__name__)
    if kind is functools.partial and (function := find_stand_in(x.func)) is not None:
        return functools.partial(function, *x.args, **x.keywords)
    if kind is staticmethod and (function := find_stand_in(x.__func__)) is not None:
        return staticmethod(function)
    return None
