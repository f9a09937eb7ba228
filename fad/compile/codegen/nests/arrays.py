"""Loops over the elements of arrays: copies, updates, reductions and products."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from fad.compile.codegen.llvm.builder import constant
from fad.compile.codegen.llvm.expressions import emit
from fad.compile.codegen.nests.masks import Stretch, along, stretches
from fad.compile.codegen.nests.values import Stored, Value, element, shape_of
from fad.compile.codegen.nests.writer import Index, Number, Writer
from fad.compile.ir.types import BYTES, F32, F64

UNROLLED = 16  # elements up to which there is no loop: LLVM keeps them in registers
CHUNK = 1024  # elements that a sum adds up before the partial sums are added with compensation
# An addition takes as long as four: partial sums wait for each other less. What is left over is added one by one.
_CHAINS = ((512, 4), (64, 2))
_COPY = "declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)"


@contextmanager
def loops(w: Writer, shape: tuple, order: list[int] | None = None) -> Iterator[tuple]:
    """Write loops over all axes; gives the index of the element. The last of `order` is the innermost."""
    index: list[Index] = [0] * len(shape)
    with ExitStack() as stack:
        for axis in range(len(shape)) if order is None else order:
            if shape[axis] != 1:
                index[axis] = stack.enter_context(w.loop(shape[axis]))
        yield tuple(index)


def by_strides(place: Stored) -> list[int]:
    """Return the axes of an array in memory, the one with the longest strides first."""
    return sorted(range(len(place.shape)), key=lambda d: -abs(place.strides[d]))


def put(w: Writer, value: Value, place: Stored, combine: Callable | None = None) -> None:
    """Write a value of the place's shape to a place, element by element, or the sum that ``combine(old, new)`` gives.

    No element may be computed from another one that is overwritten.
    """
    size = math.prod(place.shape)
    if not size or (combine is None and place.same_place(value)):
        return
    if combine is None and isinstance(value, Stored) and size > UNROLLED and _is_copy(value, place):
        w.needs.add(_COPY)
        zero = (0,) * len(place.shape)
        source, target = value.address(w, zero), place.address(w, zero)
        nbytes = size * place.strides[-1]
        w.do(f"call void @llvm.memcpy.p0.p0.i64(ptr {target}, ptr {source}, i64 {nbytes}, i1 false)")
        w.loaded = {}
        return

    def new(index: tuple) -> Number:
        found = element(w, value, index)
        return found if combine is None else combine(place.at(w, index), found)

    if size <= UNROLLED:
        every = list(itertools.product(*map(range, place.shape)))
        found = [new(index) for index in every]
        for index, x in zip(every, found, strict=True):
            w.write(place.t, x.name, place.address(w, index))
        return
    if len(place.shape) > 1:
        with loops(w, place.shape, by_strides(place)) as index:
            w.write(place.t, new(index).name, place.address(w, index))
        return
    for stretch in stretches(w, size, value):
        nothing = place.same_place(stretch.resolve(value)) if combine is None else stretch.is_zero(value)
        if not nothing:
            with along(w, stretch) as i:
                w.write(place.t, new((i,)).name, place.address(w, (i,)))


def _is_copy(value: Stored, place: Stored) -> bool:
    return value.is_contiguous() and place.is_contiguous() and not value.buffers & place.buffers


# --- reductions -------------------------------------------------------------------------------------------------------


def combination(w: Writer, how: str, t: str, flags: str = "") -> Callable:
    """Return how two numbers are combined by "add", "maximum" or "minimum"."""

    def combine(a: Number, b: Number) -> Number:
        if how != "add":
            return Number(emit(w, f"{how}({{0}}, {{1}})", [(a.name, t), (b.name, t)], t, False), t)
        add = f"fadd {flags}" if t in (F64, F32) else "add "
        return Number(w.new(f"{add}{t} {a.name}, {b.name}"), t)

    return combine


def neutral(how: str, t: str) -> str:
    if t in (F64, F32):
        return constant({"add": 0.0, "maximum": -math.inf, "minimum": math.inf}[how], t)
    bits = BYTES[t] * 8
    return {"add": "0", "maximum": str(-(2 ** (bits - 1))), "minimum": str(2 ** (bits - 1) - 1)}[how]


def reduce_axes(w: Writer, how: str, t: str, value: Value, axes: tuple, at: Callable) -> Number:
    """Return the reduction of a value over some axes; ``at(index)`` is an element, by the position along these."""
    shape = tuple([shape_of(value)[d] for d in axes])
    combine = combination(w, how, t, "reassoc ")
    if math.prod(shape) <= UNROLLED:
        total = None
        for index in itertools.product(*map(range, shape)):
            x = at(index)
            total = x if total is None else combination(w, how, t)(total, x)
        return total or Number(neutral(how, t), t)
    total_slot = w.slot(t)
    w.do(f"store {t} {neutral(how, t)}, ptr {total_slot}")
    lost = w.slot(t)
    exact = how == "add" and t in (F64, F32) and math.prod(shape) > CHUNK
    if exact:
        w.do(f"store {t} {neutral(how, t)}, ptr {lost}")
    with loops(w, shape[:-1]) as ahead:
        n = shape[-1]
        found = stretches(w, n, value) if len(shape_of(value)) == 1 else [Stretch(0, n, {})]
        for stretch in found:
            if how == "add" and stretch.is_zero(value):
                continue
            if n <= CHUNK or not exact:
                part = _row(w, t, how, combine, stretch, lambda i: at((*ahead, i)), n)
                _finish(w, t, total_slot, part, combination(w, how, t), lost if exact else None)
                continue
            with w.loop(_over(w, w.plus(stretch.length, CHUNK - 1), CHUNK)) as chunk:
                start = w.times(chunk, CHUNK)
                count = w.least(w.minus(stretch.length, start), CHUNK)
                piece = Stretch(w.plus(start, stretch.start), count, stretch.masks)
                part = _row(w, t, how, combine, piece, lambda i: at((*ahead, i)), CHUNK)
                _finish(w, t, total_slot, part, combination(w, how, t), lost)
    return Number(w.fresh(f"load {t}, ptr {total_slot}"), t)


def _over(w: Writer, i: Index, n: int) -> Index:
    """Return how often a number is contained in a position."""
    return i // n if type(i) is int else w.new(f"udiv i64 {i}, {n}")


def chains_of(n: int) -> int:
    """Return how many partial sums a loop over up to n elements has."""
    return next((chains for least, chains in _CHAINS if n >= least), 1)


def _row(w: Writer, t: str, how: str, combine: Callable, stretch: Stretch, at: Callable, longest: int) -> Number:
    acc = w.slot(t)
    w.do(f"store {t} {neutral(how, t)}, ptr {acc}")
    with along(w, stretch, chains_of(longest)) as i:
        x = at(i)
        old = Number(w.fresh(f"load {t}, ptr {acc}"), t)
        w.do(f"store {t} {combine(old, x).name}, ptr {acc}")
    return Number(w.fresh(f"load {t}, ptr {acc}"), t)


def _finish(w: Writer, t: str, total_slot: str, part: Number, combine: Callable, lost: str | None) -> None:
    """Take a row's result into the total; with `lost`, remember there what rounding lost."""
    total = Number(w.fresh(f"load {t}, ptr {total_slot}"), t)
    if lost is None:
        w.do(f"store {t} {combine(total, part).name}, ptr {total_slot}")
        return
    owed = w.fresh(f"load {t}, ptr {lost}")
    y = w.fresh(f"fsub {t} {part.name}, {owed}")
    new = w.fresh(f"fadd {t} {total.name}, {y}")
    back = w.fresh(f"fsub {t} {new}, {total.name}")
    rest = w.fresh(f"fsub {t} {back}, {y}")
    finite = w.fresh(f"fcmp ord {t} {rest}, {rest}")  # where the total is infinite the rest would be NaN
    w.do(f"store {t} {w.fresh(f'select i1 {finite}, {t} {rest}, {t} {constant(0, t)}')}, ptr {lost}")
    w.do(f"store {t} {new}, ptr {total_slot}")


def reduce_into(w: Writer, how: str, t: str, value: Value, axes: tuple, place: Stored) -> None:
    """Write the reduction of an array over some axes to a place of the shape that is left."""
    shape = shape_of(value)
    kept = [d for d in range(len(shape)) if d not in axes]

    def full(outer: tuple, inner: tuple) -> tuple:
        index: list = [0] * len(shape)
        for d, i in zip((*kept, *axes), (*outer, *inner), strict=True):
            index[d] = i
        return tuple(index)

    if kept and kept[-1] == len(shape) - 1 and math.prod(shape) > UNROLLED and shape[-1] > 3:
        first = Number(neutral(how, t), t)
        _fill(w, first, place)
        with loops(w, tuple([shape[d] for d in axes])) as inner, loops(w, place.shape) as outer:
            x = element(w, value, full(outer, inner))
            new = combination(w, how, t)(place.at(w, outer), x)
            w.write(t, new.name, place.address(w, outer))
        return

    def one(outer: tuple) -> None:
        x = reduce_axes(w, how, t, value, axes, lambda inner: element(w, value, full(outer, inner)))
        w.write(t, x.name, place.address(w, outer))

    if math.prod(place.shape) <= UNROLLED:
        for outer in itertools.product(*map(range, place.shape)):
            one(outer)
    else:
        with loops(w, place.shape) as outer:
            one(outer)


def _fill(w: Writer, number: Number, place: Stored) -> None:
    with loops(w, place.shape) as index:
        w.write(place.t, number.name, place.address(w, index))


# --- products ---------------------------------------------------------------------------------------------------------


def product_into(w: Writer, t: str, x: Value, y: Value, place: Stored | None) -> Number | None:
    """Write the product of two matrices or vectors to a place; return it if it is a number."""
    left, right = shape_of(x), shape_of(y)
    n = left[-1]
    rows, columns = left[:-1], right[1:]

    def term(i: tuple, k: Index, j: tuple, acc: Number | None) -> Number:
        a, b = element(w, x, (*i, k)), element(w, y, (k, *j))
        if acc is None:
            return Number(w.new(f"fmul {t} {a.name}, {b.name}"), t)
        wide = "f64" if t == F64 else "f32"
        w.needs.add(f"declare {t} @llvm.fma.{wide}({t}, {t}, {t})")
        return Number(w.new(f"call {t} @llvm.fma.{wide}({t} {a.name}, {t} {b.name}, {t} {acc.name})"), t)

    def dot(i: tuple, j: tuple) -> Number:
        if n <= UNROLLED:
            acc = None
            for k in range(n):
                acc = term(i, k, j, acc)
            return acc or Number(constant(0, t), t)
        slot = w.slot(t)
        w.do(f"store {t} {constant(0, t)}, ptr {slot}")
        for stretch in [Stretch(0, n, {})] if rows or columns else stretches(w, n, x, y):
            if stretch.is_zero(x) or stretch.is_zero(y):
                continue
            with along(w, stretch, chains_of(n)) as k:
                a, b = element(w, x, (*i, k)), element(w, y, (k, *j))
                old = w.fresh(f"load {t}, ptr {slot}")
                times = w.fresh(f"fmul reassoc contract {t} {a.name}, {b.name}")
                w.do(f"store {t} {w.fresh(f'fadd reassoc contract {t} {old}, {times}')}, ptr {slot}")
        return Number(w.fresh(f"load {t}, ptr {slot}"), t)

    if place is None:
        return dot((), ())
    if math.prod(place.shape) * n <= 4 * UNROLLED:
        every = list(itertools.product(*map(range, place.shape)))
        found = [dot(index[: len(rows)], index[len(rows) :]) for index in every]
        for index, number in zip(every, found, strict=True):
            w.write(t, number.name, place.address(w, index))
    elif columns and columns[0] > 3:
        _fill(w, Number(constant(0, t), t), place)
        with loops(w, rows) as i, w.loop(n) as k, loops(w, columns) as j:
            new = term(i, k, j, place.at(w, (*i, *j)))
            w.write(t, new.name, place.address(w, (*i, *j)))
    else:
        with loops(w, place.shape) as index:
            number = dot(index[: len(rows)], index[len(rows) :])
            w.write(t, number.name, place.address(w, index))
    return None
