"""Python's numbers in native programs: they have 64 bits there, and no errors, so what needs more is found and left.

Python's integers grow, a power of integers may be a fraction and one of a negative number complex, and a division by
zero raises; a comparison or quotient of large ones is exact, where native numbers are rounded to floating-point numbers
first. Beside an operation that may come to that, a program gets a row that checks its operands, and where the
check fails, the whole call runs in NumPy and Python. Integers that are known to stay small need no check: numbers of
steps, and what is counted up by a constant.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.expressions import template
from fad.compile.ir.lowered_ops import INTEGER_POWER
from fad.compile.ir.types import EXACT
from fad.control_flow.bodies.loop_layout import Loop
from fad.core.primitives.primitive import REGISTRY, Primitive
from fad.core.programs.graph import NUMBER, SCALAR, Equation, Graph, Type
from fad.core.programs.refusals import is_of_math
from fad.core.programs.rewriter import Rewriting
from fad.ops.ufuncs.elementwise import multiply
from fad.staging.python_numbers import on_numbers

MOST = 2**63 - 1  # of a native integer
GIVEN = 2**62  # of an integer among the arguments; larger ones are constants of the program
STEPS = 2**50  # more than any loop runs
_INTEGER = np.dtype(np.int64)
_NARROW = np.dtype(np.int32)  # of which arrays have kernels, and do not hold every integer of Python's


class Beyond(Exception):
    """A native program came upon something that it has no answer for: NumPy and Python have one, or an error."""


def _check(*xs: Any, how: str, of: int) -> Any:
    if how == "nonzero":
        if not xs[0]:
            raise Beyond
    elif how == "narrow":
        if not -(2**31) <= xs[0] < 2**31:
            raise Beyond
    elif how == "exact":
        if abs(xs[0]) > EXACT:
            raise Beyond
    elif how == "natural":
        if xs[0] < 0:
            raise Beyond
    elif how in ("finite", "fits"):
        if not abs(xs[0]) < (math.inf if how == "finite" else 2.0**63):
            raise Beyond
    elif not -MOST - 1 <= on_numbers(REGISTRY[how]).forward(*xs) <= MOST:
        raise Beyond
    return np.asarray(xs[0]).dtype.type(0)


_CHECKED = ("+", "-", "*", "neg", "abs")  # operations on integers that have a check; others are calls that are exact
_MOST_FACTORS = 8
_QUOTIENTS = frozenset({"/", "//", "%"})
# What is checked of an operation, if not all its operands: the divisor; an exponent; the result, for where that is
# infinite or NaN Python raises, gives a complex number, or was given an infinite one, and may be left to do it.
_OPERANDS: dict[str, Any] = {
    "nonzero": lambda eq: eq.ins[1:], "natural": lambda eq: eq.ins[1:2], "finite": lambda eq: eq.outs,
}  # fmt: skip
_COMPARING = frozenset({"<", "<=", ">", ">=", "==", "!="})
# Zero, if the operation `how` on these operands has a result in 64 bits; otherwise a native program stops at `of`.
CHECK = Primitive("check_number", _check, archetype="check")


def add_check(work: Builder, how: str, x: int, of: int) -> None:
    """Let a program that is being written stop at operation `of` unless a number is what it should be."""
    work.new(CHECK, (x,), {"how": how, "of": of}, (), work.types[x].dtype)


def with_checks(graph: Graph, bounds: dict[int, int] | None = None, body: bool = False) -> Graph:
    """Return a program with the checks that it needs, behind its own equations, whose numbers stay.

    ``bounds[i]`` is what input i does not exceed.
    """
    size = dict.fromkeys(graph.inputs, GIVEN) | (bounds or {})
    size.update((i, abs(c)) for i, c in graph.constants.items() if type(c) in (int, bool))
    work = Rewriting(graph)
    checks: list[Equation] = []

    def check(eq: Equation, how: str, ins: tuple, dtype: Any) -> None:
        out = work.add_value(Type((), dtype, SCALAR))
        checks.append(Equation(CHECK, ins, {"how": how, "of": eq.outs[0]}, (out,), eq.place))

    for eq in _without_small_powers(graph, work, size):
        if eq.prim.archetype == "loop":
            eq = _loop(eq, size)
        elif eq.prim.archetype == "branch":
            branches = tuple(with_checks(g, _list_given(g, eq.ins[1:], size), True) for g in eq.params["branches"])
            eq = Equation(eq.prim, eq.ins, {**eq.params, "branches": branches}, eq.outs, eq.place)
        elif eq.prim.array_form is not None:
            eq, how = _treat(work, eq, size, body)
            if how:
                checked = _OPERANDS[how](eq) if how in _OPERANDS else eq.ins
                check(eq, how, checked, work.types[checked[0]].dtype)
            for i in _list_rounded(work, eq, size):
                check(eq, "exact", (i,), _INTEGER)
        elif any(t.dtype == _NARROW and t.kind != NUMBER for t in [graph.types[i] for i in (*eq.ins, *eq.outs)]):
            numbers = {i for i in eq.ins if graph.types[i].kind == NUMBER and graph.types[i].dtype.kind == "i"}
            for i in [i for i in numbers if size.get(i, MOST) >= 2**31]:
                check(eq, "narrow", (i,), graph.types[i].dtype)
        work.equations.append(eq)
    work.equations += checks
    return work.finish()


def _without_small_powers(graph: Graph, work: Rewriting, size: dict) -> Iterator[Equation]:
    """Give a program's equations; a square or cube that may not fit is one of products, of which each has its check."""
    for eq in graph.equations:
        n = graph.constants.get(eq.ins[1]) if eq.prim.symbol == "**" else None
        t = graph.types[eq.outs[0]] if type(n) is int and n in (2, 3) else None
        if t is None or t.kind != NUMBER or t.dtype != _INTEGER or _find_bound(eq, graph.constants, size) <= MOST:
            yield eq
            continue
        times, x = on_numbers(multiply), eq.ins[0]
        square = eq.outs[0] if n == 2 else work.add_value(t)
        yield Equation(times, (x, x), {}, (square,), eq.place)
        if n == 3:
            yield Equation(times, (square, x), {}, eq.outs, eq.place)


def _treat(graph: Rewriting, eq: Equation, size: dict, body: bool) -> tuple[Equation, str]:
    """Return an operation on Python's numbers, as a call that is exact if need be, and what is to be checked or ''."""
    symbol, out = eq.prim.symbol, graph.types[eq.outs[0]]
    if out.kind != NUMBER:
        return eq, ""
    if is_of_math(eq.prim) and out.dtype.kind == "c":
        return eq, ""  # `fad.compile.legalize.complex.complex_functions`, or Python itself
    if is_of_math(eq.prim):
        size[eq.outs[0]] = MOST
        return eq, "fits" if out.dtype == _INTEGER else "finite"
    divides = "nonzero" if symbol in _QUOTIENTS and not graph.constants.get(eq.ins[1]) else ""
    if symbol in _QUOTIENTS and out.dtype.kind == "f":
        return eq, divides
    if out.dtype == _INTEGER:
        bound = size[eq.outs[0]] = _find_bound(eq, graph.constants, size)
        if symbol == "**" and bound <= MOST and eq.ins[1] not in graph.constants:
            return Equation(INTEGER_POWER, (*eq.ins, eq.ins[1]), {}, eq.outs, eq.place), "natural"
        if bound <= MOST:
            return eq, divides
        size[eq.outs[0]] = MOST
        if symbol in _CHECKED:
            return eq, (eq.prim.array_form or eq.prim).name
        return _exactly(eq, int), ""
    if symbol == "**" and out.dtype.kind == "c" and is_product(eq, graph.constants):
        return eq, ""  # of complex numbers: `fad.compile.legalize.complex.complex_numbers`
    if symbol == "**":
        text = template(graph, eq, graph.constants)
        if any(graph.types[i].dtype != _INTEGER for i in eq.ins) and text and (body or text != eq.prim.lower):
            return eq, "finite"
        return _exactly(eq, {"f": float, "c": complex}[out.dtype.kind]), ""
    return eq, ""


def is_product(eq: Equation, constants: dict) -> bool:
    """Return whether a power, if it is one of a complex number, is a product of few factors, as Python has it."""
    n = constants.get(eq.ins[1])
    return eq.prim.array_form is not None and type(n) in (int, float) and n in range(1, _MOST_FACTORS + 1)


def _list_rounded(graph: Rewriting, eq: Equation, size: dict) -> list[int]:
    """Return the integers that a native program would round before it compares them with a float, or divides them."""
    whole = [i for i in eq.ins if graph.types[i].dtype == _INTEGER]
    together = len(whole) == len(eq.ins)
    if not (together if eq.prim.symbol == "/" else eq.prim.symbol in _COMPARING and not together):
        return []
    return [i for i in dict.fromkeys(whole) if size.get(i, MOST) > EXACT]


def _exactly(eq: Equation, kind: type) -> Equation:
    """Return an operation as a call that stops the program if its result is of another kind."""

    def forward(*xs: Any) -> Any:
        y = eq.prim.forward(*xs)
        if type(y) is not kind or (type(y) is int and not -MOST - 1 <= y <= MOST):
            raise Beyond
        return y

    name = f"exact_{(eq.prim.array_form or eq.prim).name}"  # by its own name it would have a kernel
    return Equation(Primitive(name, forward), eq.ins, {}, eq.outs, eq.place)


def _find_bound(eq: Equation, constants: dict, size: dict) -> int:
    """Return what the result of an operation on integers does not exceed, or more than `MOST` if that is not known."""
    a, *rest = [size.get(i, MOST + 1) for i in eq.ins]
    symbol, second = eq.prim.symbol, constants.get(eq.ins[-1])
    if symbol in ("+", "-"):
        return a + rest[0]
    if symbol in ("neg", "pos", "abs"):
        return a
    if symbol == "*":
        return a * rest[0]
    if symbol == "%":
        return rest[0]
    if symbol in ("//", ">>"):
        return a if symbol == "//" or (type(second) is int and 0 <= second < 64) else MOST + 1
    if symbol in ("&", "|", "^", "~"):
        return (1 << max(a, *rest, 1).bit_length()) - 1
    if symbol in ("<<", "**") and type(second) is int and 0 <= second < 64:
        return a << second if symbol == "<<" else a**second
    if symbol == "**" and second is None and (a <= 1 or rest[0] < 64):
        return max(a, 1) ** min(rest[0], 63)
    return MOST + 1


def _list_given(graph: Graph, operands: tuple, size: dict) -> dict[int, int]:
    return {i: size.get(o, MOST) for i, o in zip(graph.inputs, operands, strict=True)}


def _loop(eq: Equation, size: dict) -> Equation:
    """Return a loop whose body has its checks; a state that is counted up by a constant stays small."""
    loop = Loop(eq)
    steps = loop.length if type(loop.length) is int else min(size.get(loop.count, STEPS), STEPS)
    known = {i: size.get(o, MOST) for i, o in zip(loop.const_inputs, loop.consts, strict=True)}
    if loop.indexed:
        known[loop.index_input] = steps
    made = {e.outs[0]: e for e in loop.body.equations if e.outs}
    for i, o, new in zip(loop.carry_inputs, loop.carry, loop.carry_outputs, strict=True):
        start = size.get(o, MOST)
        step = 0 if new == i else _step(made.get(new), i, loop.body.constants)
        known[i] = MOST if step is None else min(MOST, start + steps * step)
    body = with_checks(loop.body, known, True)
    return Equation(eq.prim, eq.ins, {**eq.params, "body": body}, eq.outs, eq.place)


def _step(eq: Equation | None, i: int, constants: dict) -> int | None:
    """Return by how much an equation counts value i up or down, or None if it does something else."""
    if eq is None or eq.prim.array_form is None or eq.prim.symbol not in ("+", "-") or i not in eq.ins:
        return None
    other = constants.get(eq.ins[1] if eq.ins[0] == i else eq.ins[0])
    swapped = eq.prim.symbol == "-" and eq.ins[0] != i
    return abs(other) if type(other) is int and not swapped else None
