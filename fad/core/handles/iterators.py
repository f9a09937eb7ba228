"""NumPy's iterators over the elements of arrays, for traced ones: NumPy's own take plain arrays alone.

The steps of ``np.nditer`` are left to NumPy: it goes through arrays of places, which lie in memory as the traced ones
do, and the elements are those at the places.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fad.core.handles.makers import wrap_made
from fad.core.handles.structured_arrays import make_structured
from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.numpy_dispatch import FUNCTIONS
from fad.core.tracing.tracer import Tracer
from fad.errors import MissingRuleError


def ndenumerate(arr: Any) -> Any:
    """Return an iterator over the places and elements of an array; np.ndenumerate takes plain ones alone."""
    if type(arr) is not Tracer:
        return np.ndenumerate(arr)
    return ((place, arr[place]) for place in np.ndindex(arr.shape))


def fromiter(iter: Iterable, dtype: Any, count: int = -1, **options: Any) -> Any:
    """Return an array of what an iterator gives; np.fromiter takes plain numbers alone."""
    values = list(iter if count < 0 else itertools.islice(iter, count))
    if not has_tracer(values):
        return wrap_made(np.fromiter(values, dtype, count, **options))
    if len(values) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(values)} items.")
    if (fields := np.dtype(dtype)).names is not None:
        return make_structured(values, fields)
    return wrap_made(FUNCTIONS[np.array](values, dtype))


def broadcast(*args: Any) -> Any:
    """Return an iterator over the elements of arrays of shapes that fit; np.broadcast takes plain ones alone."""
    return TracedBroadcast(args) if any(type(x) is Tracer for x in args) else np.broadcast(*args)


class TracedBroadcast:
    """What ``np.broadcast`` is for plain arrays, for traced ones: their shape, and their elements side by side."""

    def __init__(self, args: tuple):
        self._plain = np.broadcast(*[np.broadcast_to(np.int8(0), np.shape(x)) for x in args])
        self._args = args
        self.reset()

    def reset(self) -> None:
        """Begin with the first elements again."""
        self.index = 0
        self.iters = tuple([np.broadcast_to(x, self._plain.shape).flat for x in self._args])
        self._steps = zip(*self.iters, strict=True)

    def __iter__(self) -> TracedBroadcast:
        return self

    def __next__(self) -> tuple:
        found = next(self._steps)
        self.index += 1
        return found

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def nditer(op: Any, flags: Any = None, op_flags: Any = None, op_dtypes: Any = None, *args: Any, **kwargs: Any) -> Any:
    """Return an iterator over the elements of one array, or of several; np.nditer takes plain ones alone."""
    ops = op if isinstance(op, (list, tuple)) else (op,)
    if not any(type(x) is Tracer for x in ops):
        return np.nditer(op, flags, op_flags, op_dtypes, *args, **kwargs)
    if op_dtypes is not None:
        raise MissingRuleError("np.nditer converts no traced arrays: write x.astype(dtype) instead of op_dtypes=")
    return TracedIterator(ops, flags, op_flags, *args, **kwargs)


class TracedIterator:
    """What ``np.nditer`` is for plain arrays, where some are traced: it steps through the places of their elements."""

    def __init__(self, ops: Any, flags: Any, op_flags: Any, order: str = "K", casting: str = "safe", *args: Any,
                 **kwargs: Any):  # fmt: skip
        places = [_number_places(x) if type(x) is Tracer else x for x in ops]
        make: Any = np.nditer
        self._plain = make(places, flags or [], op_flags, None, order, casting, *args, **kwargs)
        known = [x for x in ops if x is not None]
        self.operands = tuple([
            _allocate(made, known) if x is None else x if type(x) is Tracer else made
            for x, made in zip(ops, self._plain.operands, strict=True)
        ])  # fmt: skip

    def _find(self, k: int, place: Any) -> Any:
        """Return the elements of an operand at a place, or at those of an inner loop; the first can be written."""
        x = self.operands[k]
        if type(x) is not Tracer:
            return place
        if not place.ndim:
            return x[(*np.unravel_index(int(place), x.shape), Ellipsis)]
        if self._plain.operands[k].flags.writeable and place.flags.writeable:
            raise MissingRuleError(
                "np.nditer cannot write inner loops of a traced array: leave out 'external_loop', or write x[...] = y"
            )
        return np.ravel(x)[place]

    def _find_all(self, places: Any) -> Any:
        if type(places) is not tuple:
            return self._find(0, places)
        return tuple([self._find(k, place) for k, place in enumerate(places)])

    @property
    def value(self) -> Any:
        """The elements of this step, or the one of the only array."""
        return self._find_all(self._plain.value)

    @property
    def multi_index(self) -> tuple:
        """The place of this step; it can be set."""
        return self._plain.multi_index

    @multi_index.setter
    def multi_index(self, place: tuple) -> None:
        self._plain.multi_index = place

    @property
    def index(self) -> int:
        """The number of this step's place in C or Fortran order; it can be set."""
        return self._plain.index

    @index.setter
    def index(self, number: int) -> None:
        self._plain.index = number

    def __iter__(self) -> Iterator:
        return self

    def __next__(self) -> Any:
        return self._find_all(next(self._plain))

    def __len__(self) -> int:
        return len(self._plain)

    def __getitem__(self, k: Any) -> Any:
        numbers = range(len(self.operands))[k]
        if type(numbers) is range:
            return tuple([self[i] for i in numbers])
        return self._find(numbers, self._plain[numbers])

    def __setitem__(self, k: int, value: Any) -> None:
        self[k][...] = value

    def __enter__(self) -> TracedIterator:
        return self

    def __exit__(self, *_: Any) -> None:
        self._plain.close()

    def __getattr__(self, name: str) -> Any:
        return getattr(self._plain, name)


def _number_places(x: Tracer) -> np.ndarray:
    """Return the numbers of an array's places in C order, as an array that lies in memory as that one does."""
    order = sorted(range(x.ndim), key=lambda axis: -abs(x.strides[axis]))
    places = np.empty([x.shape[axis] for axis in order], np.intp).transpose(np.argsort(order))
    places = places[(*[slice(None, None, -1 if step < 0 else None) for step in x.strides], Ellipsis)]
    places[...] = np.arange(x.size).reshape(x.shape)
    return places


def _allocate(places: np.ndarray, known: list) -> Any:
    """Return a new array for results in the place of one of NumPy's, and number its places in that."""
    places[...] = np.arange(places.size).reshape(places.shape)
    return wrap_made(np.empty_like(places, np.result_type(*known)))
