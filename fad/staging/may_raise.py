"""Operations that raise for some values of their operands, and what a program owes to those who catch it.

A recording in which such an operation raised says nothing about other values, wherever the error was caught: the call
runs without jit. And such an operation is part of a program even if nothing reads its result, unless another one of the
program raises for the same values: a Cholesky factor may have been requested only to see whether there is one.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import NUMBER, Equation, Graph, has_effects, hashable
from fad.core.programs.refusals import is_of_math, is_of_numbers, is_power
from fad.ops.arrangement.structural import transpose_p
from fad.ops.ufuncs.complexes import conj_p

_SAME_MATRIX = frozenset({transpose_p, conj_p})  # it is singular as its operand is


class Refused(BaseException):
    """An operation raised for the values of a recording. Not an Exception: user code may catch those."""

    def __init__(self, trace: Any, error: Exception):
        super().__init__(str(error))
        self.trace = trace
        self.error = error


_tries: ContextVar[list | None] = ContextVar("tries", default=None)


@contextmanager
def noting_tries() -> Iterator[list]:
    """Gather for the length of a block whether a loop was recorded as if nothing raised in a ``try`` of its steps.

    Or as if all keys were there that it looks up.
    """
    found: list = []
    token = _tries.set(found)
    try:
        yield found
    finally:
        _tries.reset(token)


def note_try() -> None:
    """Note such a loop: if the program raises for the values at hand, it may be recorded step by step."""
    found = _tries.get()
    if found is not None:
        found.append(True)


def stand_in(prim: Primitive, values: list, params: dict) -> Any:
    """Return what an operation gives for values like these that it does not refuse, or None if there is no such thing.

    A body is recorded on the values of a first step, which it may never see: both branches of a choice are.
    """
    for harmless in (_harmless, _take_apart):
        try:
            return prim.forward(*map(harmless, values), **params)
        except Exception:
            continue
    return None


def _harmless(x: Any) -> Any:
    """Return a value of the same type that operations take: an identity matrix, one, the first place of an array."""
    if type(x) in (int, float, complex):
        return type(x)(1)
    if x.dtype.kind not in "fc":
        return np.zeros_like(x)[()]
    square = x.ndim > 1 and x.shape[-1] == x.shape[-2]
    return np.zeros_like(x) + np.eye(x.shape[-1], dtype=x.dtype) if square else np.ones_like(x)[()]


def _take_apart(x: Any) -> Any:
    """Return the same of which no two numbers in a row are equal: eigenvalues, say, that are not repeated."""
    y = _harmless(x)
    return y + np.arange(y.shape[-1], dtype=y.dtype) if np.ndim(y) and y.dtype.kind in "fc" else y


# --- what stays in a program though nothing reads it -----------------------------------------------------------------


def find_unread(graph: Graph, outputs: Iterable[int], which: Callable[[Equation], bool] | None = None) -> list[int]:
    """Return values that no output or guard needs, of operations that must run all the same: they may refuse.

    What refuses as another operation does that runs is not among them; `which` tells of which equations there are any.
    Operations with effects run always.
    """
    effects = [eq.outs[0] for eq in graph.equations if has_effects(eq)]
    found = find_unread_raising(graph, {*outputs, *effects}, which)
    return [*effects, *found]


def find_unread_raising(graph: Graph, outputs: Iterable[int], which: Callable[[Equation], bool] | None) -> list[int]:
    """Return the same without operations that have effects."""
    made = {o: eq for eq in graph.equations for o in eq.outs}
    refusing = [eq for eq in graph.equations if eq.outs and (which is None or which(eq))]
    keys = [(eq, key) for eq in refusing for key in [_refusal(graph, eq, made)] if key is not None]
    if not keys:
        return []
    alive = set(outputs)
    for eq in reversed(graph.equations):
        if not alive.isdisjoint(eq.outs) or eq.is_guard or eq.prim.archetype == "check":
            alive.update(eq.ins)
    known = {key for eq, key in keys if not alive.isdisjoint(eq.outs)}
    return list({key: eq.outs[0] for eq, key in keys if key not in known}.values())


def find_unread_in_body(body: Graph, outputs: Iterable[int]) -> list[int]:
    """Return the same of a body, for factors, solutions and arithmetic of Python's numbers alone.

    Most indices there are its own number of steps. A loop with an unread index that nothing proves to be in range is
    not captured: see `record_loop`.
    """
    return find_unread(body, outputs, _raises_in_body)


def _raises_in_body(eq: Equation) -> bool:
    own = eq.prim.refuses is not None or is_of_numbers(eq.prim)
    return own or any(_raises_in_body(e) for body in eq.bodies for e in body.equations)


def _refusal(graph: Graph, eq: Equation, made: dict) -> Any:
    """Return what an operation refuses: a kind, and the values that decide; None if it takes them all."""
    prim, ins = eq.prim, eq.ins
    if prim.archetype in ("loop", "branch"):
        return (id(eq),) if _raises_in_body(eq) else None
    if prim.refuses is not None:
        return prim.refuses, _matrix(ins[0], made), hashable(eq.params.get("pattern"))
    if prim.indexed is not None:
        given = ins[prim.indexed :]
        if all(i in graph.constants or (i in made and made[i].prim.positions) for i in given):
            return None
        return "index", given, graph.types[ins[0]].shape, hashable(eq.params["template"])
    if is_power(prim):
        whole = graph.types[eq.outs[0]].dtype.kind in "iu" and graph.types[ins[1]].dtype.kind == "i"
        return ("power", ins) if whole and ins[1] not in graph.constants else None
    if any(graph.types[o].kind != NUMBER and _is_narrow(graph.types[o].dtype) for o in eq.outs):
        numbers = [i for i in ins if graph.types[i].kind == NUMBER and graph.types[i].dtype.kind == "i"]
        numbers = [i for i in numbers if i not in graph.constants]
        return ("range", *numbers, graph.types[eq.outs[0]].dtype) if numbers else None
    if graph.types[eq.outs[0]].kind == NUMBER and raises_for_numbers(eq, graph.constants):
        return prim.name, ins
    return None


def raises_for_numbers(eq: Equation, constants: dict) -> bool:
    """Return whether an operation raises for some numbers of Python's: a division does, but by a constant."""
    prim = eq.prim
    return is_of_numbers(prim) and (is_of_math(prim) or prim.symbol == "**" or eq.ins[1] not in constants)


def _is_narrow(dtype: np.dtype) -> bool:
    """Return whether integers of a dtype do not hold all of Python's numbers that a program is given."""
    return dtype.kind == "u" or (dtype.kind == "i" and dtype.itemsize < 8)


def _matrix(i: int, made: dict) -> int:
    while i in made and made[i].prim in _SAME_MATRIX:
        i = made[i].ins[0]
    return i
