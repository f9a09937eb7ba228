"""What stands for functions that Numba compiled: for traced arguments, the Python functions that they were made of.

Compiled code takes plain values alone. The first run of a program that hands it traced ones fails, and the second has
these in the place of such functions (`fad.core.runs.overlay`, `fad.core.runs.outside`).
"""

from __future__ import annotations

import sys
from typing import Any

from fad.core.primitives.primitive import has_tracer
from fad.core.runs.overlay import exchange_objects
from fad.core.runs.stand_ins import FINDERS
from fad.introspect.reachable import INSIDE


class Compiled:
    """A function that Numba compiled, and for traced arguments the Python function behind it."""

    def __init__(self, original: Any):
        self.stands_for = original

    @property  # type: ignore[misc]
    def __class__(self) -> type:
        return type(self.stands_for)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.stands_for, name)

    def __get__(self, owner: Any, kind: Any = None) -> Any:
        """Return the method of an object whose class has the function, as Numba's are methods there."""
        return self if owner is None else self.stands_for.__get__(owner, kind)

    def __copy__(self) -> Compiled:
        return self

    def __deepcopy__(self, memo: dict) -> Compiled:
        return self

    def __reduce_ex__(self, protocol: Any) -> Any:
        return self.stands_for.__reduce_ex__(protocol)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.choose(args, kwargs)(*args, **kwargs)

    def choose(self, args: tuple, kwargs: dict, python: Any = None) -> Any:
        """Return what is called on some arguments: the Python function is `python`, if that has another form."""
        if has_tracer((*args, *kwargs.values())):
            return self.stands_for.py_func if python is None else python
        return self.stands_for


def _find_numbas(stand_ins: dict, objects: dict) -> None:
    registry = sys.modules.get("numba.core.registry")
    kind = getattr(registry, "CPUDispatcher", None)
    if kind is not None and kind not in objects:
        objects[kind] = Compiled
        INSIDE[kind] = lambda f: (f.py_func,)
        exchange_objects(kind)


FINDERS.append(_find_numbas)
