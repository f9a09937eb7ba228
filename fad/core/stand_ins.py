"""What stands for the names and objects of other libraries while a transform runs, as far as they have been found."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

# What stands in for a library's function, class or module, by the id of what it stands for; and what makes it for an
# object that was there before, by the object's class. `FINDERS` fill both.
LIBRARIES: dict[int, Any] = {}
OBJECTS: dict[type, Callable[[Any], Any]] = {}
FINDERS: list[Callable[[dict, dict], None]] = []


def has_stand_in(x: Any) -> bool:
    """Return whether something else stands for a library's function or object while a transform runs."""
    return id(x) in LIBRARIES or type(x) in OBJECTS


def find_stand_in(x: Any) -> Any:
    """Return what stands for a library's function or object while a transform runs, or None."""
    if id(x) in LIBRARIES:
        return LIBRARIES[id(x)]
    return OBJECTS[type(x)](x) if type(x) in OBJECTS else None
