"""Places: where something was found in a running program, and how to read what is there now.

Each function here takes what it reads from and a key; so do those of Python's own that stand for one.
"""

from __future__ import annotations

import itertools
import types
from collections.abc import Callable
from typing import Any, NamedTuple

MANY = 1000  # elements of a container that are looked at
ABSENT = object()


class Place(NamedTuple):
    """Where something was found: ``read(held, key)`` is what is there now, or an error if there is nothing."""

    read: Callable
    held: Any
    key: Any
    value: Any


def entry(dictionary: dict, key: Any) -> Any:
    """Return what a dictionary has at a key; that of a class of the user's is not run."""
    return dict.get(dictionary, key, ABSENT)


def contents(cell: types.CellType, _: Any) -> Any:
    """Return what a variable of a closure holds."""
    return cell.cell_contents


def look_up(dictionaries: tuple, name: str) -> Any:
    """Return an attribute as the first of an object's dictionary and those of its classes has it."""
    for held in dictionaries:
        if name in held:
            return held[name]
    return ABSENT


def has_any(dictionaries: tuple, names: frozenset) -> bool:
    """Return whether an attribute of some name has come up in one of the dictionaries of objects and classes."""
    return not all(map(names.isdisjoint, dictionaries))


def size(dictionary: dict, _: Any) -> int:
    """Return how many entries a dictionary has."""
    return dict.__len__(dictionary)


def sample(x: Any, _: Any = None) -> tuple:
    """Return what is in a container, or of a long one how long it is and some of it."""
    n = len(x)
    return tuple(x) if n <= MANY else (n, *itertools.islice(x, 0, n, n // 32))


def as_bytes(x: Any, _: Any) -> bytes:
    """Return what is in memory that is not an array's."""
    return bytes(x)
