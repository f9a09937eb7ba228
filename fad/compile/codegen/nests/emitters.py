"""What each operation of a body becomes: one function for each name, in one table."""

from __future__ import annotations

import math
from collections.abc import Callable

from fad.compile.codegen.llvm.builder import constant
from fad.compile.codegen.llvm.expressions import emit
from fad.compile.codegen.llvm.number_checks import OF_ONE_NUMBER
from fad.compile.codegen.nests.arrays import UNROLLED, product_into, put, reduce_axes, reduce_into
from fad.compile.codegen.nests.body import Body
from fad.compile.codegen.nests.checked_values import CHECKED, emit_checked
from fad.compile.codegen.nests.fourier import emit_fourier
from fad.compile.codegen.nests.heavy import Function, is_masked
from fad.compile.codegen.nests.lapack import LAPACK, emit_decomposition
from fad.compile.codegen.nests.linear_algebra import LINEAR_ALGEBRA, emit_linear_algebra
from fad.compile.codegen.nests.lookups import lookup_of, take_many, update_many
from fad.compile.codegen.nests.masks import choose_by_masks, combine_masks, decide, mask_of
from fad.compile.codegen.nests.pieces import Piece, write_pieces
from fad.compile.codegen.nests.ramps import as_computed, ramp_of
from fad.compile.codegen.nests.sorting import SORTING, emit_sorting
from fad.compile.codegen.nests.stacks import emit_pop, emit_push
from fad.compile.codegen.nests.values import (
    Bounds,
    Computed,
    Stored,
    Value,
    basic_sources,
    bounds_of,
    broadcast_to,
    contiguous,
    element,
    make_view,
    reads_elsewhere,
    reshape_view,
    shape_of,
    spread,
    stored_view,
)
from fad.compile.codegen.nests.windows import window_of
from fad.compile.codegen.nests.writer import Index, Number, TooMuch, Writer
from fad.compile.ir.expressions import is_heavy, template
from fad.compile.ir.lowered_ops import FOURIER, REDUCTIONS, WRITE_PIECES
from fad.compile.ir.types import BOOL, EXACT, F32, F64, I64, INTEGERS
from fad.compile.legalize.numbers.integer_overflow import CHECK
from fad.compile.legalize.places.place_stacks import NATIVE_POP, NATIVE_PUSH
from fad.compile.schedule.steps import node_facts
from fad.core.primitives.cotangent import is_basic
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation
from fad.ops.arrangement.structural import broadcast_p, concatenate_p, reshape_p, transpose_p
from fad.ops.places.indexing import getitem_p, scatter_p
from fad.ops.products.contraction import matmul
from fad.ops.ufuncs.complexes import absolute
from fad.ops.ufuncs.elementwise import add, maximum, minimum, multiply, negative, subtract
from fad.ops.ufuncs.selection import where_p

MOST_HEAVY = 1 << 10  # elements of functions that polynomials compute; kernels are as fast for more
MOST_TOUCHED = 1 << 18  # elements of one operation: threads share larger ones
MOST_PRODUCT = 1 << 9  # multiplications of one product of matrices; kernels are faster for larger ones,
MOST_BY_ROWS = 1 << 10  # and than those by rows in registers for more than these
MOST_DOTS = 1 << 18  # those of a product of a matrix with a vector


def emit_operation(body: Body, eq: Equation) -> None:
    """Write an operation that is neither a loop nor a branch."""
    whole = _OF_ROWS.get(eq.prim)
    if whole is not None:
        whole(body, eq)
        return
    if len(eq.outs) != 1:
        raise TooMuch(f"{eq.prim.name} has no loop of its own")
    rule = _update if eq.prim.updates else _RULES.get(eq.prim)
    if rule is not None:
        rule(body, eq)
        return
    text = template(body.graph, eq, body.graph.constants)
    if text is None:
        raise TooMuch(f"{eq.prim.name} of these operands has no machine code")
    _elementwise(body, eq, text)


def _touch(body: Body, shape: tuple) -> None:
    if math.prod(shape) > MOST_TOUCHED and not body.w.large:
        raise TooMuch("its arrays are large enough for kernels of their own")


# --- elementwise ------------------------------------------------------------------------------------------------------


def _elementwise(body: Body, eq: Equation, text: str) -> None:
    (o,), graph = eq.outs, body.graph
    shape, t = body.shape(o), body.type(o)
    work, read, selects = node_facts(graph, eq, text)
    for new, old in enumerate(read):
        text = text.replace(f"{{{old}}}", f"{{{new}}}")
    text = "{0}" if text == "({0})" else text
    heavy = is_heavy(text)
    if heavy and math.prod(shape) > MOST_HEAVY:
        raise TooMuch("it computes functions of arrays, which kernels do in vectors")
    _touch(body, shape)
    operands = [body.operand(eq.ins[k], shape) for k in read]
    bounds = _bounds(eq, text, [bounds_of(x) for x in operands], t)

    def compute(w: Writer, operands: list[Value], index: tuple) -> Number:
        found = [element(w, x, index) for x in operands]
        value = emit(w, text, [(x.name, x.t) for x in found], work, selects)
        return Number(w.cast(value, BOOL if t == BOOL else work, t), t, *bounds)

    if not shape:
        number = _position(body.w, eq, operands, bounds) if t == I64 else None
        body.values[o] = body.w.note(number or compute(body.w, operands, ()))
        if o in body.places:
            body.put(body.values[o], body.places[o])
        return
    ramp = ramp_of(body.w, eq, [body.values[i] for i in eq.ins]) if t == I64 and len(shape) == 1 else None
    if ramp is not None:
        body.give(o, as_computed(ramp, shape, bounds))
        return
    weight = 0 if text == "{0}" and work == t else 12 if heavy else 1

    def make(operands: list[Value], shape: tuple) -> Computed:
        found = Computed(shape, t, lambda w, index: compute(w, operands, index), operands, weight, bounds, operands)
        found.remake = make
        if t == BOOL:
            combine_masks(body.w, eq.prim, found, operands)
        elif eq.prim is where_p and len(operands) == 3 and work == t:
            choose_by_masks(found, operands)
        return found

    if eq.prim is where_p and len(read) == 3 and body.owns(eq.ins[2], o):
        _choose_in_place(body, eq, make)
        return
    value = make(operands, shape)
    if heavy and not any(map(is_masked, operands)):
        _compute_at_once(body, o, value, Function(body.w, text, operands, work, selects, t))
        return
    if t == BOOL and len(shape) == 1 and value.mask is None:
        value.mask = mask_of(body.w, eq, operands, [body.values[i] for i in eq.ins])
        value.weight = 0 if value.mask is not None else value.weight
    body.give(o, value)


def _compute_at_once(body: Body, o: int, value: Computed, function: Function) -> None:
    """Write a function of arrays to its place, in vectors; by way of another one if it would overwrite its operands."""
    place = body.place(o)
    target = body.memory.new(value.shape, value.t) if reads_elsewhere(value, place) else place
    function.write(target, lambda index: value.compute(body.w, index))
    if target is not place:
        body.put(target, place)
    body.values[o] = place


def _choose_in_place(body: Body, eq: Equation, make: Callable) -> None:
    """Write what a mask chooses into the array that it leaves elsewhere."""
    (o,), shape = eq.outs, body.shape(eq.outs[0])
    place = body.take_over(eq, eq.ins[2], o)
    mask, y = [body.operand(i, shape) for i in eq.ins[:2]]
    if isinstance(mask, Computed) and mask.mask is not None:
        y = decide(y, mask.mask)
    value = make([mask, y, place], shape)
    if reads_elsewhere(value, place):
        value = body.copied(value)
    body.put(value, place)
    body.values[o] = place


def _position(w: Writer, eq: Equation, operands: list[Value], bounds: Bounds) -> Number | None:
    """Return the sum or difference of two integers as a position, which is known if it is one already."""
    symbol = eq.prim.symbol
    if symbol not in ("+", "-") or any(x.t != I64 for x in operands):
        return None
    x, y = [element(w, x, ()).index for x in operands]
    found = w.plus(x, y) if symbol == "+" else w.minus(x, y)
    return Number(str(found), I64, *((found, found) if type(found) is int else bounds))


def _bounds(eq: Equation, text: str, ends: list[Bounds], t: str) -> Bounds:
    """Return the least and the greatest that an integer may be, as far as those of its operands are known."""
    prim, symbol = eq.prim, eq.prim.symbol
    if prim is where_p and len(ends) == 3:
        ends = ends[1:]
    if t != I64 or any(low is None or high is None for low, high in ends):
        return (None, None)
    low = high = None
    if text == "{0}":
        low, high = ends[0]
    elif symbol == "+":
        low, high = ends[0][0] + ends[1][0], ends[0][1] + ends[1][1]  # type: ignore[operator]
    elif symbol == "-":
        low, high = ends[0][0] - ends[1][1], ends[0][1] - ends[1][0]  # type: ignore[operator]
    elif symbol == "*":
        corners = [a * b for a in ends[0] for b in ends[1]]  # type: ignore[operator]
        low, high = min(corners), max(corners)
    elif symbol == "neg":
        low, high = -ends[0][1], -ends[0][0]  # type: ignore[operator]
    elif prim is where_p:
        low, high = min(a for a, _ in ends), max(b for _, b in ends)  # type: ignore[type-var]
    elif prim in (maximum, minimum):
        how: Callable[..., int] = max if prim is maximum else min
        low, high = how(ends[0][0], ends[1][0]), how(ends[0][1], ends[1][1])
    if low is None or low < -(2**62) or high > 2**62:  # type: ignore[operator]
        return (None, None)
    return low, high


# --- reading and writing at an index ----------------------------------------------------------------------------------


def _positions(body: Body, eq: Equation, first: int, shape: tuple) -> tuple[tuple, list]:
    """Return the shape of what an index takes of an array of a shape, and where each element comes from."""
    numbers = iter(eq.ins[first:])

    def given(axis: int) -> Index:
        i = next(numbers)
        if body.type(i) not in INTEGERS or body.shape(i):
            raise TooMuch("an index array looks up many places")
        value = body.values[i]
        assert isinstance(value, Number)
        return body.w.position(value, shape[axis])

    return basic_sources(eq.params["template"], shape, given)


def _take(body: Body, eq: Equation) -> None:
    x, o = body.values[eq.ins[0]], eq.outs[0]
    window = window_of(body, eq, 1, shape_of(x))
    looked_up = lookup_of(body, eq, 1, shape_of(x)) if window is None else None
    if looked_up is not None:
        take_many(body, eq, looked_up)
        return
    shape, sources = window or _positions(body, eq, 1, shape_of(x))
    found = make_view(body.w, x, shape, sources)
    if o in body.places:
        found = body.stored(found, body.place(o)) if shape else found
        if not shape:
            body.put(found, body.places[o])
    body.values[o] = found


def _update(body: Body, eq: Equation) -> None:
    x, v, *_ = eq.ins
    (o,) = eq.outs
    if body.type(v) != body.type(o) or body.type(x) != body.type(o):
        raise TooMuch(f"{eq.prim.name} converts what it writes")
    window = window_of(body, eq, 2, body.shape(o))
    looked_up = lookup_of(body, eq, 2, body.shape(o)) if window is None else None
    if looked_up is not None:
        update_many(body, eq, looked_up)
        return
    shape, sources = window or _positions(body, eq, 2, body.shape(o))
    _touch(body, shape)
    value = body.values[v]
    place = body.take_over(eq, x, o)
    value = body.values[v]
    target = stored_view(body.w, place, shape, sources)
    if reads_elsewhere(value, target):
        value = body.stored(value) if isinstance(value, Computed) else body.copied(value)
    value = broadcast_to(body.w, _trim_axes(body.w, value, shape), shape)
    adding = eq.prim.adds
    if body.type(o) == BOOL and adding:
        raise TooMuch("booleans are added")
    put(body.w, value, target, _adder(body.w, target.t) if adding else None)
    body.values[o] = place


def _write_pieces(body: Body, eq: Equation) -> None:
    x, *values = eq.ins
    (o,) = eq.outs
    shape = body.shape(o)
    _touch(body, shape)
    if any(body.type(i) != body.type(o) for i in eq.ins) or body.type(o) == BOOL:
        raise TooMuch("pieces must be converted")
    place = body.take_over(eq, x, o)
    pieces = []
    for v, index, adds in zip(values, eq.params["templates"], eq.params["adds"], strict=True):
        part, sources = basic_sources(index, shape, _never)
        box = tuple([(source[2], source[2] + n) for source, n in zip(sources, part, strict=True)])
        value = broadcast_to(body.w, _trim_axes(body.w, body.values[v], part), part)
        pieces.append(Piece(value, box, adds))
    write_pieces(body.w, place, pieces)
    body.values[o] = place


def _trim_axes(w: Writer, value: Value, shape: tuple) -> Value:
    """Leave out axes of one place in front, which NumPy's assignment allows."""
    mine = shape_of(value)
    extra = len(mine) - len(shape)
    if extra <= 0:
        return value
    sources = [("at", 0)] * extra + [("axis", d, 0, 1) for d in range(len(shape))]
    return make_view(w, value, mine[extra:], sources)


def _adder(w: Writer, t: str) -> Callable:
    return lambda old, new: Number(w.add(old.name, new.name, t), t)


# --- arrangement ------------------------------------------------------------------------------------------------------


def _reshape(body: Body, eq: Equation) -> None:
    x, o = body.values[eq.ins[0]], eq.outs[0]
    found = reshape_view(body.w, x, body.shape(o))
    if found is None:
        if not isinstance(x, Computed):
            x = body.copied(x)
        else:
            x = body.values[eq.ins[0]] = body.stored(x)
        found = reshape_view(body.w, x, body.shape(o))
    assert found is not None
    _give_view(body, o, found)


def _permute(body: Body, eq: Equation) -> None:
    x, axes, o = body.values[eq.ins[0]], eq.params["axes"], eq.outs[0]
    sources: list = [None] * len(axes)
    for new, old in enumerate(axes):
        sources[old] = ("axis", new, 0, 1)
    _give_view(body, o, make_view(body.w, x, body.shape(o), sources))


def _broadcast(body: Body, eq: Equation) -> None:
    o = eq.outs[0]
    _give_view(body, o, body.operand(eq.ins[0], body.shape(o)))


def _give_view(body: Body, o: int, value: Value) -> None:
    """Let a view be a result; where it is wanted in a place of its own it is copied."""
    shape = body.shape(o)
    if not shape and not isinstance(value, Number):
        value = element(body.w, value, ())
    if o in body.places:
        place = body.place(o)
        body.put(value, place)
        value = place if shape else value
    body.values[o] = value


def _join(body: Body, eq: Equation) -> None:
    (o,), axis, start = eq.outs, eq.params["axis"], 0
    place = body.place(o)
    _touch(body, place.shape)
    for i in eq.ins:
        if body.type(i) != place.t:
            raise TooMuch("join converts what it joins")
        n = body.shape(i)[axis]
        index = (slice(None),) * axis + (slice(start, start + n),)
        put(body.w, body.values[i], stored_view(body.w, place, *basic_sources(index, place.shape, _never)))
        start += n
    body.values[o] = place


def _never(axis: int) -> Index:
    raise AssertionError("an index without traced integers")


def _scatter(body: Body, eq: Equation) -> None:
    (o,) = eq.outs
    place = body.place(o)
    _touch(body, place.shape)
    if any(body.type(i) != place.t for i in eq.ins) or place.t == BOOL:
        raise TooMuch("scatter converts what it writes")
    if not all(map(is_basic, eq.params["indices"])):
        raise TooMuch("scatter by index arrays")
    put(body.w, spread(Number(constant(0, place.t), place.t), place.shape), place)
    for i, index in zip(eq.ins, eq.params["indices"], strict=True):
        index = index if type(index) is tuple else (index,)
        target = stored_view(body.w, place, *basic_sources(index, place.shape, _never))
        put(body.w, broadcast_to(body.w, body.values[i], target.shape), target, _adder(body.w, place.t))
    body.values[o] = place


# --- reductions and products ------------------------------------------------------------------------------------------


def _reduction(body: Body, eq: Equation) -> None:
    (x,), (o,), how, axes = eq.ins, eq.outs, REDUCTIONS[eq.prim], eq.params["axis"]
    t, shape = body.type(o), body.shape(x)
    if not axes or 0 in shape or (body.type(x) != t and not (how is add and t == I64)) or t == BOOL:
        raise TooMuch(f"{eq.prim.name} of these operands has no machine code")
    _touch(body, shape)
    value, w = body.values[x], body.w
    if body.type(x) != t:
        value = _cast(value, t)
    if not body.shape(o):
        body.values[o] = reduce_axes(w, how, t, value, axes, lambda index: element(w, value, index))
        if o in body.places:
            body.put(body.values[o], body.places[o])
        return
    place = body.place(o)
    if value_reads(value, place):
        raise TooMuch("a reduction is wanted where its operand is")
    left = tuple([n for d, n in enumerate(shape) if d not in axes])
    reduce_into(w, how, t, value, axes, _reshaped_place(place, left))
    body.values[o] = place


def value_reads(value: Value, place: Stored) -> bool:
    return not isinstance(value, Number) and bool(value.buffers & place.buffers)


def _reshaped_place(place: Stored, shape: tuple) -> Stored:
    """Return a place without gaps in another shape."""
    return Stored(place.buffers, place.pointer, place.offset, shape, contiguous(shape, place.t), place.t)


def _cast(value: Value, t: str) -> Value:
    if isinstance(value, Number):
        raise TooMuch("a number is reduced")
    return Computed(
        value.shape, t, lambda w, index: Number(w.cast((x := element(w, value, index)).name, x.t, t), t), [value], 0
    )


def _product(body: Body, eq: Equation) -> None:
    x, y = eq.ins
    (o,) = eq.outs
    t = body.type(o)
    ranks = len(body.shape(x)), len(body.shape(y))
    if t not in (F64, F32) or any(body.type(i) != t for i in eq.ins) or not all(r in (1, 2) for r in ranks):
        raise TooMuch("matmul of these operands has no machine code of its own")
    rows, columns = math.prod(body.shape(x)[:-1]), math.prod(body.shape(y)[1:])
    by_rows = 2 < columns <= UNROLLED and body.shape(x)[-1] <= UNROLLED
    large = MOST_BY_ROWS if by_rows else MOST_PRODUCT
    most = MOST_TOUCHED if ranks == (1, 1) else MOST_DOTS if min(rows, columns) == 1 else large
    if rows * body.shape(x)[-1] * columns > most:
        raise TooMuch("a product of matrices is large enough for kernels of its own")
    once = [ranks == (1, 1), ranks[1] == 1, ranks[0] == 1]  # whose every element is read once need not be in memory
    a = body.values[x] if once[0] or once[1] else body.in_masked_memory(x)
    b = body.values[y] if once[0] or once[2] else body.in_masked_memory(y)
    if not body.shape(o):
        number = product_into(body.w, t, a, b, None)
        assert number is not None
        body.values[o] = number
        if o in body.places:
            body.put(number, body.places[o])
        return
    place = body.place(o)
    if value_reads(a, place) or value_reads(b, place):
        raise TooMuch("a product is wanted where its operand is")
    product_into(body.w, t, a, b, place)
    body.values[o] = place


# --- Python's integers ------------------------------------------------------------------------------------------------

_OVERFLOWING = {add.name: "sadd", subtract.name: "ssub", multiply.name: "smul", negative.name: "ssub"}


def _check(body: Body, eq: Equation) -> None:
    """Leave the loop where a number of Python's has no place in 64 bits."""
    how, w = eq.params["how"], body.w
    numbers = [body.values[i] for i in eq.ins]
    if not all(isinstance(x, Number) and x.t in (I64, F64, F32) for x in numbers):
        raise TooMuch("a number of Python's is checked")
    names = [x.name for x in numbers]  # type: ignore[union-attr]
    kind = body.type(eq.ins[0])
    if how in OF_ONE_NUMBER:
        w.require(OF_ONE_NUMBER[how](w, names[0], kind))
    elif kind != I64:
        raise TooMuch("a number of Python's is checked")
    elif how == "narrow":
        w.require(w.compare("==", w.cast(w.cast(names[0], I64, "i32"), "i32", I64), names[0], I64))
    elif how == "exact":
        w.require(w.compare(">=", names[0], str(-EXACT), I64))
        w.require(w.compare("<=", names[0], str(EXACT), I64))
    elif how == absolute.name:
        w.require(w.compare("!=", names[0], str(-(2**63)), I64))
    else:
        operation = _OVERFLOWING[how]
        operands = ["0", *names] if how == negative.name else names
        both = "{i64, i1}"
        w.needs.add(f"declare {both} @llvm.{operation}.with.overflow.i64(i64, i64)")
        pair = w.fresh(f"call {both} @llvm.{operation}.with.overflow.i64(i64 {operands[0]}, i64 {operands[1]})")
        flag = w.fresh(f"extractvalue {both} {pair}, 1")
        w.require(w.fresh(f"xor i1 {flag}, true"))
    body.values[eq.outs[0]] = Number(constant(0, body.type(eq.outs[0])), body.type(eq.outs[0]))


_RULES: dict[Primitive, Callable[[Body, Equation], None]] = {
    getitem_p: _take, WRITE_PIECES: _write_pieces,
    reshape_p: _reshape, transpose_p: _permute, broadcast_p: _broadcast, concatenate_p: _join, scatter_p: _scatter,
    matmul: _product, CHECK: _check,
    **dict.fromkeys(REDUCTIONS, _reduction),
}  # fmt: skip
# What is done for each matrix, or each row, of a stack.
_OF_ROWS: dict[Primitive, Callable[[Body, Equation], None]] = {
    FOURIER: emit_fourier, NATIVE_PUSH: emit_push, NATIVE_POP: emit_pop,
    **dict.fromkeys(LINEAR_ALGEBRA, emit_linear_algebra), **dict.fromkeys(LAPACK, emit_decomposition),
    **dict.fromkeys(CHECKED, emit_checked), **dict.fromkeys(SORTING, emit_sorting),
}  # fmt: skip
