"""Packages of NumPy's that are written as a user would: in plain Python, with arrays that they make and write into.

Their functions have no rules: they run on traced values as a user's do, and see the overlay of NumPy while a transform
runs (`fad.core.runs.overlay`).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterable
from types import CodeType

import numpy as np

from fad.introspect.frames import is_machinery

_PACKAGES = ("numpy.polynomial", "numpy.testing")
_FOLDERS = tuple([os.path.join(os.path.dirname(np.__file__), name[6:]) + os.sep for name in _PACKAGES])


def sees_overlay(file: str) -> bool:
    """Return whether the code in a file is the user's, or of one of these packages."""
    return not is_machinery(file) or file.startswith(_FOLDERS)


def is_like_users(file: str) -> bool:
    """Return whether the code in a file is of one of these packages."""
    return file.startswith(_FOLDERS)


def modules_with(codes: Iterable[CodeType]) -> list[dict]:
    """Return the dictionaries of these packages' modules, if some of the code is theirs: they call each other."""
    if not any(code.co_filename.startswith(_FOLDERS) for code in codes):
        return []
    return [vars(module) for name, module in list(sys.modules.items()) if name.startswith(_PACKAGES)]


def find_written(func: Callable) -> Callable | None:
    """Return the Python function behind one that NumPy dispatches, if it is of one of these packages."""
    return getattr(func, "_implementation", None) if (func.__module__ or "").startswith(_PACKAGES) else None
