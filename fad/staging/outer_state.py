"""What a recording depends on besides its arguments, and whether it is still what it was.

A recorded program has the numbers that the function found outside of its arguments: as constants, as parameters of
operations (how often to repeat, where to split), or as what plain Python and NumPy made of them. So all that the
function may have read is guarded: arrays by what they hold, variables, attributes and elements by what they are.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from operator import is_
from typing import Any, NamedTuple

import numpy as np
from numpy.lib.array_utils import byte_bounds

from fad import config
from fad.core.runs.outside import find_lent
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import is_outside, owner
from fad.introspect.outer_values import ABSENT, Place
from fad.introspect.reachable import LOADED, PLAIN, Walk
from fad.transforms.arguments.mutation import FEW_BYTES, equal, fingerprint, may_be_overwritten

_EXACT = 1 << 15  # bytes up to which all of an array is compared in each call: as quick as to sample a larger one
_LOOKED_AT = 1 << 16  # bytes up to which an array is looked at in full before and after the function runs
_MOST = 2000  # objects that are looked at
_DEEP = 8


class Entered(NamedTuple):
    """A plain array with what it held when a function was called, as the fingerprint of a mode."""

    array: np.ndarray
    mode: str
    before: Any

    @staticmethod
    def of(x: np.ndarray, mode: str) -> Entered:
        """Take an array as it is now: small ones in full, whatever the mode, and without one nothing."""
        return Entered(x, "sample", None) if mode == "off" else Entered(x, mode, _contents(x, mode))

    def is_stale(self) -> bool:
        x, mode, before = self
        if type(before) is bytearray and x.flags.c_contiguous:
            return before != x.data
        return _contents(x, mode) != before

    def covers(self, x: np.ndarray) -> bool:
        """Whether an array lies within the memory of this one."""
        first, last = byte_bounds(x)
        start, end = byte_bounds(self.array)
        return start <= first and last <= end and (self.array.flags.forc or is_same_view(self.array, x))


def _contents(x: np.ndarray, mode: str) -> Any:
    if FEW_BYTES < x.nbytes <= _EXACT and x.dtype.kind in "fcbiu":
        return bytearray(x.data) if x.flags.c_contiguous else x.tobytes()
    return fingerprint(x, mode)


def is_same_view(x: np.ndarray, y: np.ndarray) -> bool:
    return x.shape == y.shape and x.strides == y.strides and byte_bounds(x) == byte_bounds(y)


class OuterState:
    """What a function finds by name, as it is before the function runs; then what a recording of it depends on."""

    __slots__ = ("found", "arrays", "places", "owners", "changed")

    def __init__(self, roots: Iterable[Any] = (), arrays: Iterable[np.ndarray] = ()):
        walk = Walk(roots, _MOST, missing=True)
        self.found = list(walk)
        watched = {id(x): x for x in [*_arrays(self.found), *arrays] if x.size and may_be_overwritten(x)}
        mode = config.check_mutation.get()
        self.arrays = [Entered.of(x, "full" if x.nbytes <= _LOOKED_AT else mode) for x in watched.values()]
        self.places = walk.places
        self.changed = False  # whether the function wrote into one of the arrays, which a replay would not do
        self.owners: dict[int, list[Entered]] = {}  # the arrays, by the id of what owns their memory
        for entered in self.arrays:
            self.owners.setdefault(id(owner(entered.array)), []).append(entered)

    def __bool__(self) -> bool:
        return bool(self.arrays or self.places)

    def is_stale(self) -> bool:
        """Whether something is no longer what it was."""
        if config.check_mutation.get() == "off":
            return False
        return any(entered.is_stale() for entered in self.arrays) or any(map(is_other, self.places))

    def settle(self, further: list[Entered]) -> None:
        """Keep what later calls are to be compared with, after the function has run; `further` are other arrays.

        What the function bound or appended itself is not watched: a replay does not do it. Arrays that it wrote into
        are, as they were before. A module that it was the first to import was not looked into, so the next call is
        recorded again.
        """
        mode = config.check_mutation.get()
        stale = [e.before is not None and e.is_stale() for e in self.arrays]
        self.changed = any(stale)
        arrays = [
            e if s or e.array.nbytes <= _EXACT else Entered.of(e.array, mode)
            for e, s in zip(self.arrays, stale, strict=True)
        ]
        self.arrays = [*arrays, *further]
        lent = find_lent()
        self.places = [
            place for place in self.places
            if place.held is LOADED or not _differ(_give_back(what_is_in(place), lent), place.value)
        ]  # fmt: skip
        self.found, self.owners = [], {}

    def find_unchanged(self) -> list[np.ndarray]:
        """Return the arrays that the function did not write into: of the others a recording has copies."""
        return [e.array for e in self.arrays if not (self.changed and e.is_stale())]

    def covering(self, x: np.ndarray) -> Entered | None:
        """Return an array that has the memory of another one, if there is one."""
        return next((e for e in self.owners.get(id(owner(x)), ()) if e.covers(x)), None)


def _arrays(found: list) -> Iterator[np.ndarray]:
    """Give the arrays among objects, subclasses of NumPy's as plain ones."""
    for x in found:
        if issubclass(type(x), np.ndarray):
            yield x if type(x) is np.ndarray else np.ndarray.view(x, np.ndarray)


def what_is_in(place: Place) -> Any:
    """Return what is in a place now, ABSENT if nothing is."""
    try:
        return place.read(place.held, place.key)
    except (AttributeError, LookupError, ValueError):  # a slot or a variable that is empty now
        return ABSENT


def is_other(place: Place) -> bool:
    """Return whether something else is in a place now."""
    return _differ(what_is_in(place), place.value)


def _differ(now: Any, then: Any) -> bool:
    return now is not then and not same(now, then)


def _give_back(now: Any, lent: dict[int, Any]) -> Any:
    """Return what is in a place when all is back for which something stands as long as the function runs."""
    if id(now) in lent:
        return lent[id(now)]
    if type(now) is tuple:
        return tuple(_give_back(x, lent) for x in now)
    return now.wrapped if type(now) is Tracer and is_outside(now) else now


def same(x: Any, y: Any, depth: int = 0) -> bool:
    """Return whether two objects that need not be the same one are equal for whatever code reads them."""
    kind = type(x)
    if x is y:
        return True
    if kind is not type(y) or depth == _DEEP:
        return False
    if kind is np.ndarray:
        return (x.shape, x.dtype, x.strides) == (y.shape, y.dtype, y.strides) and equal(x, y)
    if issubclass(kind, np.generic):
        return x.dtype == y.dtype and x.tobytes() == y.tobytes()
    if kind is tuple or kind is list:
        if len(x) != len(y):
            return False
        return all(map(is_, x, y)) or all(same(a, b, depth + 1) for a, b in zip(x, y, strict=True))
    if kind is dict:
        return list(x) == list(y) and all(same(a, b, depth + 1) for a, b in zip(x.values(), y.values(), strict=True))
    return repr(x) == repr(y) if kind in (float, complex) else kind in PLAIN and x == y
