"""Complex arithmetic as real arithmetic: each complex value becomes its real and its imaginary part.

The parts are computed by the same fused loops as everything else; they are read from and written to complex arrays with
a stride. Only where an operation has no rule here is a complex array put together.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.ir.lowered_ops import COMPLEX, PIECES
from fad.compile.legalize.complex.split_fourier import FOURIER_RULES
from fad.compile.passes.dce import drop_dead
from fad.core.primitives.cotangent import is_basic
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY, NUMBER, SCALAR, Equation, Graph, Type
from fad.core.programs.rewriter import Rewriting
from fad.ops.arrangement.structural import broadcast_p, reshape_p, transpose_p
from fad.ops.places.indexing import getitem_p
from fad.ops.reductions.reduction import sum_p
from fad.ops.ufuncs.complexes import absolute, conj_p, imag_p, parts_p, real_p
from fad.ops.ufuncs.conversion import astype_p
from fad.ops.ufuncs.elementwise import (
    add,
    cos,
    divide,
    equal,
    exp,
    greater,
    greater_equal,
    hypot,
    isfinite,
    isinf,
    isnan,
    logical_and,
    logical_or,
    multiply,
    negative,
    not_equal,
    positive,
    reciprocal,
    sin,
    square,
    subtract,
)
from fad.ops.ufuncs.selection import where_p

Pair = tuple[int, int]

# A product and a sum with one rounding; native code only has it, where it has the bits of NumPy's complex products.
_FUSED = Primitive("fused_multiply_add", lambda x, y, z: x * y + z, flat=True, lower="fma({0}, {1}, {2})")
REAL_OF = {np.dtype(np.complex128): np.dtype(float), np.dtype(np.complex64): np.dtype(np.float32)}
_VIEWS = (reshape_p, transpose_p, broadcast_p, getitem_p)


def split_complex(graph: Graph) -> Graph:
    """Rewrite complex elementwise operations, sums and views as real ones."""
    found = {t.dtype for t in graph.types if t.dtype.kind == "c"}
    if not found or not found <= REAL_OF.keys():  # those of longer numbers are NumPy's work
        return graph
    work = Splitter(graph)
    for eq in graph.equations:
        work.equation(eq)
    for o in graph.outputs:
        work.whole(o)
    return drop_dead(work.finish())


class Splitter(Rewriting):
    most_transformed = 1 << 18  # elements of rows or columns up to which native transforms are faster than NumPy's
    most_real = 1 << 16  # the same, of real numbers
    fewest_copied = 1 << 13  # those of columns from which on they are copied before

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.pairs: dict[int, Pair] = {}  # complex value -> its parts
        self.missing: set[int] = set()  # complex values that exist in parts only

    def equation(self, eq: Equation) -> None:
        kinds = [self.types[i].dtype.kind for i in (*eq.ins, *eq.outs)]
        rule = self.find_rule(eq) if "c" in kinds and not eq.prim.multi else None
        if rule is not None and all(self.types[i].dtype.kind in "cfib" for i in eq.ins) and rule(self, eq):
            return
        for i in eq.ins:
            self.whole(i)
        self.equations.append(eq)

    def find_rule(self, eq: Equation) -> Callable | None:
        """Return the rule of an operation; to make a scalar of a Python number is to copy it."""
        if not eq.outs:  # a question
            return RULES.get(eq.prim)
        out, linear = self.types[eq.outs[0]], eq.prim.archetype == "linear"
        copies = linear and eq.prim.lower == "({0})" and out.dtype.kind == "c" and out.kind != NUMBER
        return _each(positive) if copies else RULES.get(eq.prim)

    def whole(self, i: int) -> None:
        """Materialise a complex value as an array."""
        if i in self.missing:
            self.missing.discard(i)
            self.equations.append(Equation(COMPLEX, self.pairs[i], {}, (i,)))

    def do(self, what: Primitive, ins: tuple, shape: tuple, dtype: np.dtype, params: dict | None = None) -> int:
        return self.apply(what, ins, params or {}, Type(shape, dtype))

    def operand(self, i: int) -> tuple[int, ...]:
        """Return the values that stand for one: its parts, if it is complex."""
        return self.parts(i) if self.types[i].dtype.kind == "c" else (i,)

    def part(self, value: Any, like: Type) -> int:
        """Return the number of a constant that is a part of one of some type."""
        i = self.constant(np.asarray(value), NUMBER if like.kind == NUMBER else ARRAY)
        if like.kind == NUMBER:
            self.constants[i] = float(value)
        return i

    def python_number(self, value: float) -> int:
        return self.part(np.asarray(value, float), Type((), np.dtype(float), NUMBER))

    def parts(self, i: int) -> Pair:
        """Return the real and imaginary part of a value; a real one has imaginary part zero, as in NumPy."""
        found = self.pairs.get(i)
        if found is None:
            t = self.types[i]
            if t.dtype.kind != "c":
                found = (i, self.python_number(0.0))
            elif i in self.constants:
                c = np.asarray(self.constants[i])
                found = (self.part(c.real, t), self.part(c.imag, t))
            else:
                real = REAL_OF[t.dtype]
                found = (self.do(real_p, (i,), t.shape, real), self.do(imag_p, (i,), t.shape, real))
            self.pairs[i] = found
        return found

    def keep(self, eq: Equation, re: int, im: int) -> bool:
        self.pairs[eq.outs[0]] = (re, im)
        self.missing.add(eq.outs[0])
        return True


class _Real:
    """Writes real operations of one shape and dtype."""

    def __init__(self, work: Splitter, eq: Equation):
        self.work = work
        out = work.types[eq.outs[0]]
        self.shape = out.shape
        self.dtype = REAL_OF.get(out.dtype, out.dtype)

    def __call__(self, what: Primitive, *ins: int) -> int:
        return self.work.do(what, ins, self.shape, self.dtype)


def _each(prim: Primitive) -> Callable:
    def rule(work: Splitter, eq: Equation) -> bool:
        do, ins = _Real(work, eq), [work.parts(i) for i in eq.ins]
        return work.keep(eq, *[do(prim, *side) for side in zip(*ins, strict=True)])

    return rule


@functools.cache
def _numpy_fuses(dtype: np.dtype) -> bool:
    """Whether NumPy's product of complex arrays has fused operations, which depends on the CPU."""
    one = 1 + 2.0 ** (-30 if dtype.itemsize == 8 else -15)  # its square is rounded
    z = np.full(4, one + one * 1j, np.result_type(dtype, np.complex64))
    return bool(np.all(np.multiply(z, z.copy()).real != 0))


def _multiply(work: Splitter, eq: Equation) -> bool:
    """Multiply as NumPy does: in arrays one product of each part may be fused, in scalars none is."""
    do, (ar, ai), (br, bi) = _Real(work, eq), work.parts(eq.ins[0]), work.parts(eq.ins[-1])
    if _numpy_fuses(do.dtype) and any(work.types[i].kind == ARRAY for i in eq.ins):
        re = do(_FUSED, ar, br, do(negative, do(multiply, ai, bi)))
        return work.keep(eq, re, do(_FUSED, ar, bi, do(multiply, ai, br)))
    re = do(subtract, do(multiply, ar, br), do(multiply, ai, bi))
    return work.keep(eq, re, do(add, do(multiply, ar, bi), do(multiply, ai, br)))


def _divide(work: Splitter, eq: Equation) -> bool:
    """Divide as NumPy does, by Smith's method: the smaller part of the divisor over the larger cannot overflow."""
    do, (ar, ai), (br, bi) = _Real(work, eq), work.parts(eq.ins[0]), work.parts(eq.ins[1])
    truth = np.dtype(bool)
    steep = work.do(greater_equal, (do(absolute, br), do(absolute, bi)), do.shape, truth)
    large, small = do(where_p, steep, br, bi), do(where_p, steep, bi, br)
    zero = work.do(equal, (large, work.python_number(0.0)), do.shape, truth)
    ratio = do(divide, small, large)
    scale = do(reciprocal, do(add, large, do(multiply, small, ratio)))
    re = do(where_p, steep, do(add, ar, do(multiply, ai, ratio)), do(add, do(multiply, ar, ratio), ai))
    im = do(
        where_p, steep, do(subtract, ai, do(multiply, ar, ratio)),
        do(subtract, do(multiply, ai, ratio), ar),
    )  # fmt: skip
    size = do(absolute, br)
    sides = [do(where_p, zero, do(divide, a, size), do(multiply, q, scale)) for a, q in ((ar, re), (ai, im))]
    return work.keep(eq, *sides)


def _ask(question: Primitive, join: Primitive) -> Callable:
    """Return the rule of a question that is asked of both parts: of values of one dtype, and of Python's numbers."""

    def rule(work: Splitter, eq: Equation) -> bool:
        types, truth = [work.types[i] for i in eq.ins], np.dtype(bool)
        if len({t.dtype for t in types if t.kind != NUMBER}) != 1:
            return False
        sides = zip(*[work.parts(i) for i in eq.ins], strict=True)
        shape = work.types[eq.outs[0]].shape
        answers = tuple([work.do(question, side, shape, truth) for side in sides])
        work.equations.append(Equation(join, answers, {}, eq.outs))
        return True

    return rule


def _conjugate(work: Splitter, eq: Equation) -> bool:
    re, im = work.parts(eq.ins[0])
    return work.keep(eq, re, _Real(work, eq)(negative, im))


def _exp(work: Splitter, eq: Equation) -> bool:
    """Of real numbers it is real, and what is infinite keeps its size whatever the angle.

    What is too large for the dtype alone may not be so times a cosine: it is multiplied after that, from e**shift.
    """
    do, (re, im) = _Real(work, eq), work.parts(eq.ins[0])
    truth, zero = np.dtype(bool), work.python_number(0.0)
    finite = [work.do(isfinite, (part,), do.shape, truth) for part in (re, im)]
    angle = do(where_p, work.do(logical_or, tuple(finite), do.shape, truth), im, zero)
    shift = 700.0 if do.dtype.itemsize == 8 else 80.0
    number = work.python_number
    large = work.do(greater, (re, number(shift)), do.shape, truth)
    size = do(exp, do(where_p, large, do(subtract, re, number(shift)), re))
    factor = do(where_p, large, number(np.exp(shift)), number(1.0))
    real, imag = (do(multiply, do(multiply, size, do(f, angle)), factor) for f in (cos, sin))
    is_real = work.do(equal, (im, zero), do.shape, truth)
    return work.keep(eq, real, do(where_p, is_real, im, imag))


def _join(work: Splitter, eq: Equation) -> bool:
    return work.keep(eq, *eq.ins)


def _part(k: int) -> Callable:
    def rule(work: Splitter, eq: Equation) -> bool:
        found = work.pairs.get(eq.ins[0])
        if found is None:
            return False  # a view of the array
        work.equations.append(Equation(positive, (found[k],), {}, eq.outs))
        return True

    return rule


def _absolute(work: Splitter, eq: Equation) -> bool:
    work.equations.append(Equation(hypot, work.parts(eq.ins[0]), {}, eq.outs))
    return True


def _where(work: Splitter, eq: Equation) -> bool:
    condition, x, y = eq.ins
    if work.types[condition].dtype.kind == "c":
        return False
    do, a, b = _Real(work, eq), work.parts(x), work.parts(y)
    return work.keep(eq, *[do(where_p, condition, a[k], b[k]) for k in (0, 1)])


def _convert(work: Splitter, eq: Equation) -> bool:
    out = work.types[eq.outs[0]]
    if out.dtype not in REAL_OF:
        return False
    params = {"dtype": REAL_OF[out.dtype]}
    re, im = [work.do(astype_p, (p,), work.types[p].shape, params["dtype"], params) for p in work.parts(eq.ins[0])]
    if work.types[im].shape != out.shape:
        im = work.do(broadcast_p, (im,), out.shape, params["dtype"], {"shape": out.shape})
    return work.keep(eq, re, im)


def _along(work: Splitter, eq: Equation) -> bool:
    """Sums and views, part by part, where the parts are what there is."""
    if len(eq.ins) != 1 or eq.ins[0] not in work.missing:
        return eq.prim is sum_p and _sum(work, eq)
    return _sum(work, eq)


def _sum(work: Splitter, eq: Equation) -> bool:
    out, ins = work.types[eq.outs[0]], work.types[eq.ins[0]]
    if out.dtype not in REAL_OF or out.dtype != ins.dtype:
        return False
    sides = work.parts(eq.ins[0])
    if any(work.types[p].shape != ins.shape for p in sides):
        return False
    re, im = [work.do(eq.prim, (p,), out.shape, REAL_OF[out.dtype], eq.params) for p in sides]
    return work.keep(eq, re, im)


# Of operations that only move elements: how many of their operands these are; the others say where. None: all are.
MOVED: dict[Primitive, int | None] = {
    **dict.fromkeys(_VIEWS, 1), **{prim: 2 if prim.updates else None for prim in PIECES},
}  # fmt: skip


def move_parts(work: Splitter, eq: Equation) -> bool:
    """Move the parts of what is moved, one after the other; return false if they are not as the whole is."""
    out, moved = work.types[eq.outs[0]], MOVED[eq.prim]
    real = REAL_OF[out.dtype]
    values, where = eq.ins[:moved], eq.ins[len(eq.ins) if moved is None else moved :]
    pairs = []
    for i in values:
        t = work.types[i]
        if t.dtype.kind == "c":
            pairs.append(work.parts(i))
        else:
            pairs.append((i, work.constant(np.zeros(t.shape, real)[()], t.kind if t.shape else SCALAR)))
        if any(work.types[p].dtype != real or work.types[p].shape != t.shape for p in pairs[-1]):
            return False
    re, im = [
        work.do(eq.prim, (*side, *where), out.shape, real, _of_parts(eq.params, real))
        for side in zip(*pairs, strict=True)
    ]
    return work.keep(eq, re, im)


def _of_parts(params: dict, real: np.dtype) -> dict:
    return {**params, "dtype": real} if "dtype" in params else params


def _move_what_is_in_parts(work: Splitter, eq: Equation) -> bool:
    """Move parts where these are what there is of all that is moved, and no operand says where."""
    moved = eq.ins[: MOVED[eq.prim]]
    there = all(i in work.missing or i in work.constants for i in moved if work.types[i].dtype.kind == "c")
    there = there and len(moved) == len(eq.ins) and all(map(is_basic, eq.params.get("indices", ())))
    return there and work.types[eq.outs[0]].dtype in REAL_OF and move_parts(work, eq)


RULES: dict[Primitive, Callable] = {
    add: _each(add), subtract: _each(subtract), negative: _each(negative), positive: _each(positive),
    multiply: _multiply, square: _multiply, divide: _divide, conj_p: _conjugate, exp: _exp,
    real_p: _part(0), imag_p: _part(1), parts_p: _join,
    absolute: _absolute, where_p: _where, astype_p: _convert,
    equal: _ask(equal, logical_and), not_equal: _ask(not_equal, logical_or),
    isfinite: _ask(isfinite, logical_and), isnan: _ask(isnan, logical_or), isinf: _ask(isinf, logical_or),
    **dict.fromkeys(PIECES, _move_what_is_in_parts),
    **dict.fromkeys((sum_p, *_VIEWS), _along), **FOURIER_RULES,
}  # fmt: skip
