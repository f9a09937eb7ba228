"""What the writer of a loop nest knows of a value: a number, an array in memory, or one computed where it is read."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from fad.compile.codegen.nests.writer import Index, Number, TooMuch, Writer
from fad.compile.ir.types import BYTES

Bounds = tuple[int | None, int | None]  # the least and the greatest of integers, as far as they are known


class Buffer:
    """Memory of its own: two buffers never overlap."""

    def __init__(self, pointer: str):
        self.pointer = pointer


class Mask(NamedTuple):
    """What booleans are along an axis: true from `low` to `high` alone, or false there alone."""

    low: Index
    high: Index
    inside: bool = True
    axis: int = 0

    @property
    def range(self) -> tuple[int, Index, Index]:
        return self.axis, self.low, self.high


class Stored:
    """An array in memory: a buffer, where in it the array begins, and how many bytes lie between its elements."""

    weight = 0

    bounds: Bounds = (None, None)
    first: int | None = None  # of an array of integers in even steps
    step = 1

    def __init__(self, buffers: frozenset, pointer: str, offset: Index, shape: tuple, strides: tuple, t: str):
        self.buffers = buffers
        self.pointer = pointer
        self.offset = offset
        self.shape = shape
        self.strides = strides
        self.t = t

    def address(self, w: Writer, index: tuple) -> str:
        known, rest = (self.offset, []) if type(self.offset) is int else (0, [self.offset])
        for i, stride in zip(index, self.strides, strict=True):
            part = w.times(i, stride)
            if type(part) is int:
                known += part
            else:
                rest.append(part)
        moved: Index = 0
        for part in rest:
            moved = w.plus(moved, part)
        return w.advance(w.advance(self.pointer, moved), known)

    def at(self, w: Writer, index: tuple) -> Number:
        key = (self.pointer, self.offset, tuple(zip(index, self.strides, strict=True)))
        found = w.loaded.get(key)
        if found is None:
            found = w.loaded[key] = Number(w.read(self.t, self.address(w, index)), self.t, *self.bounds)
        return found

    def is_contiguous(self) -> bool:
        return self.shape == () or all(
            s == want or n == 1
            for n, s, want in zip(self.shape, self.strides, contiguous(self.shape, self.t), strict=True)
        )

    def same_place(self, other: Any) -> bool:
        return (
            isinstance(other, Stored)
            and (self.pointer, self.offset, self.strides) == (other.pointer, other.offset, other.strides)
            and self.shape == other.shape
        )


class Computed:
    """An array whose elements are computed where they are read; `weight` is what one of them costs."""

    def __init__(
        self,
        shape: tuple,
        t: str,
        compute: Callable[[Writer, tuple], Number],
        parts: list,
        weight: int,
        bounds: Bounds = (None, None),
        aligned: Sequence = (),
    ):
        self.shape = shape
        self.t = t
        self.bounds = bounds
        self.aligned = aligned  # what is read at the index of the element that is computed
        self.mask: Mask | None = None  # where booleans that differ along one axis are true
        self.masks: tuple = ()  # of booleans that are true where several masks are
        self.number: Number | None = None  # what every element is
        self.choice: tuple | None = None  # the mask that chooses between two values, and these
        self.remake: Callable[[list, tuple], Computed] | None = None  # the same of other operands, of another shape
        self.ramp: Any = None  # where it rises or falls by one step: `fad.compile.codegen.nests.ramps`
        self.compute = compute
        self.parts = parts
        self.buffers: frozenset = frozenset().union(*[buffers_of(p) for p in parts])
        self.weight = weight + sum(getattr(p, "weight", 0) for p in parts)

    def at(self, w: Writer, index: tuple) -> Number:
        key = (self, index)
        found = w.loaded.get(key)
        if found is None:
            found = w.loaded[key] = self.compute(w, index)
        return found

    def reads_elsewhere(self, place: Stored) -> bool:
        """Whether an element is computed from what lies at the place of another element, or may be."""
        aligned = set(map(id, self.aligned))
        return any(
            _reads_elsewhere(p, place) if id(p) in aligned else not buffers_of(p).isdisjoint(place.buffers)
            for p in self.parts
        )


Value = Number | Stored | Computed


def _reads_elsewhere(value: Any, place: Stored) -> bool:
    if not buffers_of(value) & place.buffers:
        return False
    if isinstance(value, Stored):
        return not value.same_place(place)
    return value.shape != place.shape or value.reads_elsewhere(place)


def reads_elsewhere(value: Value, place: Stored) -> bool:
    """Whether writing a value to a place, element by element, would overwrite what it is still computed from."""
    return _reads_elsewhere(value, place)


def buffers_of(value: Any) -> frozenset:
    return frozenset() if isinstance(value, Number) else value.buffers


def bounds_of(value: Value) -> Bounds:
    return (value.low, value.high) if isinstance(value, Number) else value.bounds


def shape_of(value: Value) -> tuple:
    return () if isinstance(value, Number) else value.shape


def element(w: Writer, value: Value, index: tuple) -> Number:
    return value if isinstance(value, Number) else value.at(w, index)


def contiguous(shape: tuple, t: str) -> tuple:
    """Return the strides of an array without gaps."""
    strides, step = [], BYTES[t]
    for n in reversed(shape):
        strides.append(step)
        step *= n
    return tuple(strides[::-1])


def whole(buffer: Buffer, shape: tuple, t: str, offset: Index = 0) -> Stored:
    return Stored(frozenset((buffer,)), buffer.pointer, offset, shape, contiguous(shape, t), t)


# --- views ------------------------------------------------------------------------------------------------------------

Source = tuple  # ("at", position) or ("axis", axis of the result, start, step), for each axis of what is viewed


def stored_view(w: Writer, value: Stored, shape: tuple, sources: list[Source]) -> Stored:
    offset, strides = value.offset, [0] * len(shape)
    for stride, source in zip(value.strides, sources, strict=True):
        if source[0] == "at":
            offset = w.plus(offset, w.times(source[1], stride))
        else:
            _, axis, start, step = source
            offset = w.plus(offset, w.times(start, stride))
            strides[axis] += step * stride
    found = Stored(value.buffers, value.pointer, offset, shape, tuple(strides), value.t)
    found.bounds = value.bounds
    return found


def _computed_view(w: Writer, value: Computed, shape: tuple, sources: list[Source]) -> Value:
    """Return a view of an array that is computed: of what it is computed from, if that is at hand."""
    if value.number is not None:
        return spread(value.number, shape)
    if value.remake is not None and value.mask is None:
        return value.remake([make_view(w, x, shape, sources) for x in value.aligned], shape)

    def compute(w: Writer, index: tuple) -> Number:
        found = []
        for source in sources:
            if source[0] == "at":
                found.append(source[1])
            else:
                _, axis, start, step = source
                found.append(w.plus(w.times(index[axis], step), start))
        return value.at(w, tuple(found))

    view = Computed(shape, value.t, compute, [value], 0, value.bounds)
    if value.mask is not None:
        source = sources[value.mask.axis]
        if source[0] == "axis" and source[3] == 1:
            low, high = [w.minus(end, source[2]) for end in value.mask[:2]]
            view.mask = Mask(low, high, value.mask.inside, source[1])
    return view


def make_view(w: Writer, value: Value, shape: tuple, sources: list[Source]) -> Value:
    if isinstance(value, Number):
        return spread(value, shape) if shape else value
    if not shape and all(s[0] == "at" for s in sources):
        return element(w, value, tuple([s[1] for s in sources]))
    if isinstance(value, Stored):
        return stored_view(w, value, shape, sources)
    if shape == value.shape and sources == [("axis", d, 0, 1) for d in range(len(shape))]:
        return value
    return _computed_view(w, value, shape, sources)


def spread(number: Number, shape: tuple) -> Value:
    """Return an array that is one number everywhere."""
    if not shape:
        return number
    found = Computed(shape, number.t, lambda w, index: number, [], 0, (number.low, number.high))
    found.number = number
    return found


def broadcast_to(w: Writer, value: Value, shape: tuple) -> Value:
    mine = shape_of(value)
    if mine == shape:
        return value
    if isinstance(value, Number):
        return spread(value, shape)
    ahead = len(shape) - len(mine)
    sources = [("at", 0) if n == 1 else ("axis", ahead + d, 0, 1) for d, n in enumerate(mine)]
    return make_view(w, value, shape, sources)


def basic_sources(template: tuple, shape: tuple, given: Callable[[int], Index]) -> tuple[tuple, list[Source]]:
    """Return the shape of what an index of slices and integers takes, and where each of its elements comes from.

    ``given(axis)`` is the position that the next traced integer of the index has along an axis.
    """
    at = next((k for k, p in enumerate(template) if p is Ellipsis), len(template))
    rest = len(shape) - sum(p is not Ellipsis and p is not None for p in template)
    full = (*template[:at], *[slice(None)] * rest, *template[at + 1 :])
    result: list[int] = []
    sources: list[Source] = []
    for part in full:
        axis = len(sources)
        if part is None:
            result.append(1)
        elif type(part) is slice:
            start, stop, step = part.indices(shape[axis])
            sources.append(("axis", len(result), start, step))
            result.append(len(range(start, stop, step)))
        elif type(part) is str:
            sources.append(("at", given(axis)))
        elif type(part) is int:
            sources.append(("at", part % shape[axis]))
        else:
            raise TooMuch(f"an index by {type(part).__name__}")
    return tuple(result), sources


def reshape_view(w: Writer, value: Value, shape: tuple) -> Value | None:
    """Return an array in another shape where that is a view; None where its elements must be moved."""
    mine = shape_of(value)
    if isinstance(value, Number):
        return spread(value, shape)
    if math.prod(shape) == 1:
        number = element(w, value, (0,) * len(mine)) if isinstance(value, Computed) else None
        if number is not None:
            return spread(number, shape)
    if [n for n in mine if n != 1] == [n for n in shape if n != 1]:
        places = [d for d, n in enumerate(shape) if n != 1]
        sources: list[tuple] = []
        k = 0
        for n in mine:
            if n == 1:
                sources.append(("at", 0))
            else:
                sources.append(("axis", places[k], 0, 1))
                k += 1
        found = make_view(w, value, shape, sources)
        if isinstance(value, Computed) and isinstance(found, Computed):
            found.ramp = value.ramp
        return found
    if isinstance(value, Stored) and value.is_contiguous():
        return Stored(value.buffers, value.pointer, value.offset, shape, contiguous(shape, value.t), value.t)
    return None
