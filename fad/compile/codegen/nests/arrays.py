"""Loops over the elements of arrays: copies, updates, reductions and products."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager

from fad.compile.codegen.llvm.builder import constant, vector
from fad.compile.codegen.llvm.expressions import emit
from fad.compile.codegen.nests.masks import Stretch, along, stretches, whole
from fad.compile.codegen.nests.values import Computed, Stored, Value, element, make_view, shape_of, stored_view
from fad.compile.codegen.nests.writer import Index, Number, Writer
from fad.compile.ir.types import BYTES, F32, F64
from fad.core.primitives.primitive import Primitive
from fad.ops.ufuncs.elementwise import add, maximum, minimum

UNROLLED = 16  # elements up to which there is no loop: LLVM keeps them in registers
TOGETHER = 4  # rows that are added to a place at once: it is read and written as often less
_FEW_ROWS = 8  # elements of a matrix up to which its product is written out, number by number
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


def each(
    w: Writer, shape: tuple, order: list[int], values: list, write: Callable, idle: Callable, known: dict | None = None
) -> None:
    """Write loops over some axes, the last of them innermost, split where masks in some values of that shape change.

    ``write(index, known)`` writes what is done for an element, ``idle(stretch)`` tells where nothing is to be done.
    """
    index: list[Index] = [0] * len(shape)

    def go(axes: list[int], known: dict) -> None:
        if not axes:
            write(tuple(index), known)
            return
        axis, *rest = axes
        index[axis] = 0
        if shape[axis] == 1:
            go(rest, known)
            return
        for stretch in stretches(w, shape[axis], *values, axis=axis, within=known):
            if not idle(stretch):
                with along(w, stretch) as i:
                    index[axis] = i
                    go(rest, stretch.known)

    go(order, known or {})


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
    def idle(stretch: Stretch) -> bool:
        return place.same_place(stretch.resolve(value)) if combine is None else stretch.is_zero(value)

    def write(index: tuple, known: dict) -> None:
        w.write(place.t, new(index).name, place.address(w, index))

    each(w, place.shape, by_strides(place), [value], write, idle)


def _is_copy(value: Stored, place: Stored) -> bool:
    return value.is_contiguous() and place.is_contiguous() and not value.buffers & place.buffers


# --- reductions -------------------------------------------------------------------------------------------------------


def combination(w: Writer, how: Primitive, t: str, flags: str = "") -> Callable:
    """Return how two numbers are combined by `add`, `maximum` or `minimum`."""

    def combine(a: Number, b: Number) -> Number:
        if how is not add:
            return Number(emit(w, f"{how.name}({{0}}, {{1}})", [(a.name, t), (b.name, t)], t, False), t)
        instruction = f"fadd {flags}" if t in (F64, F32) else "add "
        return Number(w.new(f"{instruction}{t} {a.name}, {b.name}"), t)

    return combine


def neutral(how: Primitive, t: str) -> str:
    if t in (F64, F32):
        return constant({add: 0.0, maximum: -math.inf, minimum: math.inf}[how], t)
    bits = BYTES[t] * 8
    return {add: "0", maximum: str(-(2 ** (bits - 1))), minimum: str(2 ** (bits - 1) - 1)}[how]


def reduce_axes(
    w: Writer, how: Primitive, t: str, value: Value, axes: tuple, at: Callable, known: dict | None = None
) -> Number:
    """Return the reduction of a value over some axes; ``at(index)`` is an element, by the position along these.

    `known` are the ranges of other axes of which it is known whether one is inside.
    """
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
    exact = how is add and t in (F64, F32) and math.prod(shape) > CHUNK
    if exact:
        w.do(f"store {t} {neutral(how, t)}, ptr {lost}")
    idle = lambda stretch: how is add and stretch.is_zero(value)
    *outer, last = axes
    n = shape[-1]

    def row(index: tuple, known: dict) -> None:
        ahead = tuple([index[d] for d in outer])
        for stretch in stretches(w, n, value, axis=last, within=known):
            if idle(stretch):
                continue
            if n <= CHUNK or not exact:
                part = _row(w, t, how, combine, stretch, lambda i: at((*ahead, i)), n)
                _finish(w, t, total_slot, part, combination(w, how, t), lost if exact else None)
                continue
            with w.loop(_over(w, w.plus(stretch.length, CHUNK - 1), CHUNK)) as chunk:
                start = w.times(chunk, CHUNK)
                count = w.least(w.minus(stretch.length, start), CHUNK)
                piece = stretch._replace(start=w.plus(start, stretch.start), length=count)
                part = _row(w, t, how, combine, piece, lambda i: at((*ahead, i)), CHUNK)
                _finish(w, t, total_slot, part, combination(w, how, t), lost)

    each(w, shape_of(value), outer, [value], row, idle, known)
    return Number(w.fresh(f"load {t}, ptr {total_slot}"), t)


def _over(w: Writer, i: Index, n: int) -> Index:
    """Return how often a number is contained in a position."""
    return i // n if type(i) is int else w.new(f"udiv i64 {i}, {n}")


def chains_of(n: int) -> int:
    """Return how many partial sums a loop over up to n elements has."""
    return next((chains for least, chains in _CHAINS if n >= least), 1)


def _row(w: Writer, t: str, how: Primitive, combine: Callable, stretch: Stretch, at: Callable, longest: int) -> Number:
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


def reduce_into(w: Writer, how: Primitive, t: str, value: Value, axes: tuple, place: Stored) -> None:
    """Write the reduction of an array over some axes to a place of the shape that is left."""
    shape = shape_of(value)
    kept = [d for d in range(len(shape)) if d not in axes]
    inner = unit_axis(len(shape), value)
    if inner in kept and math.prod(shape) > UNROLLED and shape[inner] > 3:
        _fill(w, Number(neutral(how, t), t), place)
        combine = combination(w, how, t)
        step = lambda old, index: combine(old, element(w, value, index))
        idle = lambda stretch: how is add and stretch.is_zero(value)
        _accumulate(w, [value], [*axes], [*[d for d in kept if d != inner], inner], place, step, idle)
        return

    def one(index: tuple, known: dict) -> None:
        full = lambda inner: _replace_along(index, axes, inner)
        x = reduce_axes(w, how, t, value, axes, lambda inner: element(w, value, full(inner)), known)
        w.write(t, x.name, place.address(w, tuple([index[d] for d in kept])))

    _for_kept(w, value, kept, place, one)


def _for_kept(w: Writer, value: Value, kept: list[int], place: Stored, one: Callable) -> None:
    """Write what is done for each element of a place that has some axes of a value."""
    shape = shape_of(value)
    if math.prod(place.shape) > UNROLLED:
        each(w, shape, kept, [value], one, lambda stretch: False)
        return
    for found in itertools.product(*[range(shape[d]) for d in kept]):
        one(_replace_along((0,) * len(shape), tuple(kept), found), {})


def _replace_along(index: tuple, axes: tuple, inner: tuple) -> tuple:
    """Return an index with other positions along some axes."""
    full = list(index)
    for d, i in zip(axes, inner, strict=True):
        full[d] = i
    return tuple(full)


def unit_axis(rank: int, *values: Value) -> int:
    """Return the axis along which most of what values are read from lies together in memory, the last if none does."""
    votes = [0] * rank
    waiting, seen = list(values), set()
    while waiting:
        x = waiting.pop()
        if id(x) in seen or len(shape_of(x)) != rank:
            continue
        seen.add(id(x))
        if isinstance(x, Stored):
            for d, (n, stride) in enumerate(zip(x.shape, x.strides, strict=True)):
                votes[d] += n > 1 and abs(stride) == BYTES[x.t]
        elif isinstance(x, Computed):
            waiting += x.aligned
    return max(range(rank), key=lambda d: (votes[d], d))


def _accumulate(
    w: Writer, values: list, axes: list[int], kept: list[int], place: Stored, step: Callable, idle: Callable
) -> None:
    """Add up over some axes in the elements of a place, those of several steps along the last axis at once."""
    shape = shape_of(values[0])
    *outer, last = axes

    def add(index: tuple, count: int, known: dict) -> None:
        def element_of(full: tuple, known: dict) -> None:
            at = tuple([full[d] for d in sorted(kept)])
            total = place.at(w, at)
            for k in range(count):
                added = (*[index[d] for d in outer], w.plus(index[last], k))
                total = step(total, _replace_along(full, (*axes,), added))
            w.write(place.t, total.name, place.address(w, at))

        each(w, shape, kept, values, element_of, idle, known)

    def rows(index: tuple, known: dict) -> None:
        for stretch in stretches(w, shape[last], *values, axis=last, within=known):
            if idle(stretch):
                continue
            times = _over(w, stretch.length, TOGETHER)
            if times != 0:
                with along(w, stretch._replace(length=times, range=None)) as k:
                    at = w.plus(w.times(w.minus(k, stretch.start), TOGETHER), stretch.start)
                    w.assumed = {**w.assumed, **stretch.assume(*[w.plus(at, j) for j in range(TOGETHER)])}
                    add(_replace_along(index, (last,), (at,)), TOGETHER, stretch.known)
            done = w.times(times, TOGETHER)
            rest = stretch._replace(start=w.plus(stretch.start, done), length=w.minus(stretch.length, done))
            with along(w, rest) as k:
                add(_replace_along(index, (last,), (k,)), 1, stretch.known)

    each(w, shape, outer, values, rows, idle)


def _fill(w: Writer, number: Number, place: Stored) -> None:
    with loops(w, place.shape) as index:
        w.write(place.t, number.name, place.address(w, index))


# --- products ---------------------------------------------------------------------------------------------------------


def product_into(w: Writer, t: str, x: Value, y: Value, place: Stored | None) -> Number | None:
    """Write the product of two matrices or vectors to a place; return it if it is a number."""
    if place is not None and len(place.shape) == 2 and 1 in place.shape:  # one of them is a vector
        if shape_of(y)[1:] == (1,):
            y = make_view(w, y, shape_of(y)[:1], [("axis", 0, 0, 1), ("at", 0)])
        else:
            x = make_view(w, x, shape_of(x)[1:], [("at", 0), ("axis", 0, 0, 1)])
        sources: list = [("at", 0) if n == 1 else ("axis", 0, 0, 1) for n in place.shape]
        place = stored_view(w, place, (max(place.shape),), sources)
    left, right = shape_of(x), shape_of(y)
    n = left[-1]
    rows, columns = left[:-1], right[1:]
    if place is not None and len(place.shape) == 1 and math.prod(place.shape) * n > 4 * UNROLLED:
        _matrix_by_vector(w, t, *((x, 1, y) if rows else (y, 0, x)), place)
        return None

    def dot(i: tuple, j: tuple) -> Number:
        if n <= UNROLLED:
            acc = None
            for k in range(n):
                acc = _times(w, t, element(w, x, (*i, k)), element(w, y, (k, *j)), acc)
            return acc or Number(constant(0, t), t)
        parts = [whole(n)] if rows or columns else stretches(w, n, x, y)
        idle = lambda stretch: stretch.is_zero(x) or stretch.is_zero(y)
        return _dot(w, t, n, parts, idle, lambda k: (element(w, x, (*i, k)), element(w, y, (k, *j))))

    if place is None:
        return dot((), ())
    if rows and columns and n * rows[0] > _FEW_ROWS and 2 < columns[0] <= UNROLLED and n <= UNROLLED:
        _product_by_rows(w, t, x, y, place)
        return None
    if math.prod(place.shape) * n <= 4 * UNROLLED:
        every = list(itertools.product(*map(range, place.shape)))
        found = [dot(index[: len(rows)], index[len(rows) :]) for index in every]
        for index, number in zip(every, found, strict=True):
            w.write(t, number.name, place.address(w, index))
    elif columns and columns[0] > 3:
        _fill(w, Number(constant(0, t), t), place)
        with loops(w, rows) as i, w.loop(n) as k, loops(w, columns) as j:
            new = _times(w, t, element(w, x, (*i, k)), element(w, y, (k, *j)), place.at(w, (*i, *j)))
            w.write(t, new.name, place.address(w, (*i, *j)))
    else:
        with loops(w, place.shape) as index:
            number = dot(index[: len(rows)], index[len(rows) :])
            w.write(t, number.name, place.address(w, index))
    return None


def _product_by_rows(w: Writer, t: str, x: Value, y: Value, place: Stored) -> None:
    """Write a product of matrices, of which the second one has short rows: vectors that stay in registers."""
    (m, n), (_, columns) = shape_of(x), shape_of(y)
    wide = vector(t, columns)
    name = f"@llvm.fma.v{columns}{'f64' if t == F64 else 'f32'}"
    w.needs.add(f"declare {wide} {name}({wide}, {wide}, {wide})")
    factors = [_read_row(w, t, y, k) for k in range(n)]
    with ExitStack() as stack:
        few = m * n <= 4 * UNROLLED
        for i in range(m) if few else [stack.enter_context(w.loop(m))]:
            row = "zeroinitializer"
            for k, factor in enumerate(factors):
                operands = (spread_lanes(w, t, element(w, x, (i, k)).name, columns), factor, row)
                row = w.new(f"call {wide} {name}({', '.join(f'{wide} {v}' for v in operands)})")
            _write_row(w, t, place, i, row)


def spread_lanes(w: Writer, t: str, number: str, lanes: int) -> str:
    """Return a vector of equal elements."""
    wide = vector(t, lanes)
    one = w.new(f"insertelement {wide} poison, {t} {number}, i64 0")
    return w.new(f"shufflevector {wide} {one}, {wide} poison, {vector('i32', lanes)} zeroinitializer")


def _read_row(w: Writer, t: str, x: Value, i: Index) -> str:
    columns = shape_of(x)[1]
    wide = vector(t, columns)
    if isinstance(x, Stored) and x.strides[1] == BYTES[t]:
        return w.fresh(f"load {wide}, ptr {x.address(w, (i, 0))}, align {BYTES[t]}")
    row = "poison"
    for j in range(columns):
        row = w.new(f"insertelement {wide} {row}, {t} {element(w, x, (i, j)).name}, i64 {j}")
    return row


def _write_row(w: Writer, t: str, place: Stored, i: Index, row: str) -> None:
    columns = place.shape[1]
    if place.strides[1] == BYTES[t]:
        w.do(f"store {vector(t, columns)} {row}, ptr {place.address(w, (i, 0))}, align {BYTES[t]}")
        w.loaded = {}
        return
    for j in range(columns):
        w.write(t, w.new(f"extractelement {vector(t, columns)} {row}, i64 {j}"), place.address(w, (i, j)))


def _times(w: Writer, t: str, a: Number, b: Number, acc: Number | None) -> Number:
    if acc is None:
        return Number(w.new(f"fmul {t} {a.name}, {b.name}"), t)
    wide = "f64" if t == F64 else "f32"
    w.needs.add(f"declare {t} @llvm.fma.{wide}({t}, {t}, {t})")
    return Number(w.new(f"call {t} @llvm.fma.{wide}({t} {a.name}, {t} {b.name}, {t} {acc.name})"), t)


def _dot(w: Writer, t: str, n: int, parts: list[Stretch], idle: Callable, at: Callable) -> Number:
    """Return the sum of products over the parts of an axis of up to n places."""
    slot = w.slot(t)
    w.do(f"store {t} {constant(0, t)}, ptr {slot}")
    for stretch in parts:
        if not idle(stretch):
            with along(w, stretch, chains_of(n)) as k:
                a, b = at(k)
                old = w.fresh(f"load {t}, ptr {slot}")
                times = w.fresh(f"fmul reassoc contract {t} {a.name}, {b.name}")
                w.do(f"store {t} {w.fresh(f'fadd reassoc contract {t} {old}, {times}')}, ptr {slot}")
    return Number(w.fresh(f"load {t}, ptr {slot}"), t)


def _matrix_by_vector(w: Writer, t: str, matrix: Value, axis: int, vector: Value, place: Stored) -> None:
    """Write the sum over an axis of a matrix times a vector to a place, in the order that suits the matrix."""
    shape = shape_of(matrix)
    other = 1 - axis
    wide = make_view(w, vector, shape, [("axis", axis, 0, 1)])
    idle = lambda stretch: stretch.is_zero(matrix) or stretch.is_zero(wide)
    pair = lambda index: (element(w, matrix, index), element(w, wide, index))
    if unit_axis(2, matrix) == other and shape[other] > 3:
        _fill(w, Number(constant(0, t), t), place)
        _accumulate(
            w, [matrix, wide], [axis], [other], place, lambda old, index: _times(w, t, *pair(index), old), idle
        )
        return

    def one(index: tuple, known: dict) -> None:
        parts = stretches(w, shape[axis], matrix, wide, axis=axis, within=known)
        total = _dot(w, t, shape[axis], parts, idle, lambda k: pair(_replace_along(index, (axis,), (k,))))
        w.write(t, total.name, place.address(w, (index[other],)))

    _for_kept(w, matrix, [other], place, one)
