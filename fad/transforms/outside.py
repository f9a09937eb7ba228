"""Plain arrays from outside of a function that writes: what to undo before it runs again, and what to watch.

A transform may have to run a function a second time: its recording met a value that it cannot write down, or the
examples of a batch take different paths. What the first run wrote into arrays of globals, closures and attributes must
not be written twice. Functions whose code writes nowhere pay nothing for it.
"""

from __future__ import annotations

import types
from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from fad import config, tree
from fad.core.memory import RUNS
from fad.core.overlay import spaces_of
from fad.core.tracer import Tracer
from fad.transforms.hidden import cells, codes, contents, is_users, reached
from fad.transforms.mutation import Earlier, fingerprint

_CONTAINERS = (list, tuple, dict)
_REACHED = 1 << 16  # bytes up to which an array that a function reaches is looked at before it runs


def outside(fun: Callable, found: Iterable[Any] | None = None) -> Earlier:
    """Return the arrays that a function reaches by name as they are now: none if its code writes nowhere."""
    if not spaces_of(fun):
        return Earlier(())
    return Earlier(x for x in (reached(fun) if found is None else found) if type(x) is np.ndarray)


def named(fun: Callable, found: list) -> list[np.ndarray]:
    """Return the arrays that the code of a function that writes has names for: it may write into any of them."""
    if not spaces_of(fun):
        return []
    functions = [f for f in found if type(f) is types.FunctionType and is_users(f)]
    names = {name for f in functions for code in codes(f.__code__) for name in (*code.co_names, *code.co_freevars)}
    values = [v for f in functions for v in (*cells(f).values(), *(f.__defaults__ or ()))]
    values += [f.__globals__[name] for f in functions for name in names if name in f.__globals__]
    for x in found:
        values += [v for name, v in contents(x).items() if type(x) in _CONTAINERS or name in names]
    return list({id(x): x for x in values if type(x) is np.ndarray and x.size}.values())


def is_same_view(x: np.ndarray, y: np.ndarray) -> bool:
    return x.shape == y.shape and x.strides == y.strides and byte_bounds(x) == byte_bounds(y)


class Entered(NamedTuple):
    """A plain array with what it held when a function was called, as the fingerprint of a mode."""

    array: np.ndarray
    mode: str
    before: Any

    def now(self) -> Entered:
        return Entered(self.array, self.mode, fingerprint(self.array, self.mode))

    def is_stale(self) -> bool:
        return fingerprint(self.array, self.mode) != self.before

    def covers(self, x: np.ndarray) -> bool:
        """Whether an array lies within the memory of this one."""
        first, last = byte_bounds(x)
        start, end = byte_bounds(self.array)
        return start <= first and last <= end and (self.array.flags.forc or is_same_view(self.array, x))


def entering(found: list) -> list[Entered]:
    """Return the small arrays among what a function reaches, as they are before it runs."""
    arrays = [x for x in found if type(x) is np.ndarray and 0 < x.nbytes <= _REACHED]
    return [Entered(x, "full", fingerprint(x, "full")) for x in arrays]


def watched(x: np.ndarray) -> Entered:
    """Return an array as it is now; of a large one a sample."""
    mode = "full" if x.nbytes <= _REACHED else config.check_mutation.get()
    return Entered(x, mode, fingerprint(x, mode))


def closes_over_tracer(fun: Callable) -> bool:
    if RUNS.buffers and any(type(x) is Tracer for x in reached(fun)):  # arrays that may be written between the calls
        return True
    for cell in getattr(fun, "__closure__", None) or ():
        try:
            value = cell.cell_contents
        except ValueError:  # a cell that is still empty
            continue
        if type(value) is Tracer or (type(value) in (tuple, list, dict) and _holds_tracer(value)):
            return True
    return False


def _holds_tracer(value: Any) -> bool:
    return any(type(x) is Tracer for x in tree.leaves(value))
