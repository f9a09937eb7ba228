"""Python's complex numbers, which compute as NumPy's do where nothing raises: a program checks that nothing does.

Sums, products and parts never raise. A quotient does by zero, and a power where it overflows; small powers are the
products that Python makes of them. All else, such as a power by a fraction, is left to Python.
"""

from __future__ import annotations

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.legalize.numbers.integer_overflow import add_check, is_product
from fad.core.programs.graph import NUMBER, Equation
from fad.ops.ufuncs.complexes import absolute, imag_p, real_p
from fad.ops.ufuncs.elementwise import bitwise_and, bitwise_or, multiply, positive

_ALIKE = frozenset({"+", "-", "*", "neg", "pos", "abs", ".real", ".imag", ".conjugate()"})
_JOINED = {"==": bitwise_and, "!=": bitwise_or}  # by what the answers for the parts become one
SYMBOLS = _ALIKE | _JOINED.keys() | {"/", "**"}
_REAL = np.dtype(float)


def compute_as_numpy(work: Builder, eq: Equation) -> int | None:
    """Rewrite an operation on Python's complex numbers, if it is one that has no error of its own or can be checked."""
    out, form = work.types[eq.outs[0]], eq.prim.array_form
    if form is None or out.kind != NUMBER or not any(work.types[i].dtype.kind == "c" for i in eq.ins):
        return None
    if eq.prim.symbol == "**":
        return _multiply_out(work, eq)
    if eq.prim.symbol in _JOINED:
        same = [work.elementwise(form, *[_part(work, k, i) for i in eq.ins], dtype=np.dtype(bool)) for k in (0, 1)]
        return work.apply(_JOINED[eq.prim.symbol], tuple(same), {}, out)
    if eq.prim.symbol == "/" and not work.constants.get(eq.ins[1]):
        add_check(work, "nonzero", _size(work, eq.ins[1]), eq.outs[0])
    return work.apply(form, eq.ins, {}, out)


def _multiply_out(work: Builder, eq: Equation) -> int | None:
    """Return a power as Python computes it: of the squares of squares, those that the exponent is made of."""
    if not is_product(eq, work.constants):
        return None
    x, t, y = eq.ins[0], work.types[eq.outs[0]], None
    for bit in reversed(f"{int(work.constants[eq.ins[1]]):b}"):
        if bit == "1":
            y = x if y is None else work.apply(multiply, (y, x), {}, t)
        x = work.apply(multiply, (x, x), {}, t)
    assert y is not None  # n is not zero
    add_check(work, "finite", _size(work, y), eq.outs[0])
    return work.apply(positive, (y,), {}, t)


def _size(work: Builder, x: int) -> int:
    """Return the sum of the parts' sizes."""
    return work.add(*[work.elementwise(absolute, part, dtype=_REAL) for part in list_parts(work, x)])


def list_parts(work: Builder, x: int) -> list[int]:
    """Return the real and the imaginary part of a number."""
    return [_part(work, k, x) for k in (0, 1)]


def _part(work: Builder, k: int, x: int) -> int:
    """Return the real part of a number, or for k = 1 the imaginary one."""
    if work.types[x].dtype.kind == "c":
        return work.elementwise(imag_p if k else real_p, x, dtype=_REAL)
    return work.number(0.0, _REAL) if k else work.astype(x, _REAL)
