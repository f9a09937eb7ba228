"""What rules take for granted within a loop nest: that values lie apart, that the columns of a factor are independent.

Where it may not be so the function is left. NumPy looks again, and goes on or has the error.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from fad.compile.codegen.llvm.builder import constant
from fad.compile.codegen.nests.arrays import loops
from fad.compile.codegen.nests.body import Body
from fad.compile.codegen.nests.values import Value, element
from fad.compile.codegen.nests.writer import Index, TooMuch
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph
from fad.ops.linalg.common import apart_p, tolerance_of
from fad.ops.linalg.decompositions import FULL_RANK, independent_p

_REAL = (np.dtype(float), np.dtype(np.float32))


def is_checked(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation gives back what it has looked at."""
    t = graph.types[eq.ins[0]] if eq.prim in CHECKED else None
    return t is not None and t.dtype in _REAL and bool(t.size)


def emit_checked(body: Body, eq: Equation) -> None:
    """Write the check, for each row or matrix of a stack; the result is the operand."""
    if not is_checked(body.graph, eq):
        raise TooMuch(f"{eq.prim.name} of these values has no machine code")
    (i,), (o,) = eq.ins, eq.outs
    x = body.in_memory(i)
    CHECKED[eq.prim](body, x)
    if o in body.places:
        body.put(x, body.places[o])
        x = body.places[o]
    body.values[o] = x


class _Numbers:
    """Some numbers of each stack, whose largest size is the measure of all: ``size(k)`` reads one of them."""

    def __init__(self, body: Body, x: Value, count: int, size: Callable[[Index], str]):
        self.w, self.t, self.count, self.size = body.w, x.t, count, size

    def largest(self) -> str:
        """Return the largest size; 1 where all are 0."""
        w, t = self.w, self.t
        slot, zero = w.slot(t), constant(0.0, t)
        w.do(f"store {t} {zero}, ptr {slot}")
        with loops(w, (self.count,)) as (k,):
            size, most = self.size(k), w.read(t, slot)
            w.do(f"store {t} {w.select(w.compare('>', size, most, t), size, most, t)}, ptr {slot}")
        most = w.read(t, slot)
        return w.select(w.compare("==", most, zero, t), constant(1.0, t), most, t)

    def require(self, share: float, how: str, distance: Callable[[Index], str], count: int) -> None:
        """Leave the function unless so many distances are larger than a share of the largest number."""
        w, t = self.w, self.t
        least = w.mul(constant(share, t), self.largest(), t)
        with loops(w, (count,)) as (k,):
            w.require(w.compare(how, distance(k), least, t))


def _check_apart(kind: tuple[bool, bool]) -> Callable[[Body, Value], None]:
    """Return how values in order are checked: neighbours are apart, and singular values from 0."""
    zero, wide = kind

    def check(body: Body, x: Value) -> None:
        w, t, (*lead, n) = body.w, x.t, x.shape  # type: ignore[union-attr]
        share = tolerance_of(np.dtype(float if t == "double" else np.float32), wide)
        with loops(w, tuple(lead)) as at:
            value = lambda k: element(w, x, (*at, k)).name
            size = lambda k: w.magnitude(value(k), t)
            numbers = _Numbers(body, x, n, size)
            gap = lambda k: w.magnitude(w.sub(value(w.plus(k, 1)), value(k), t), t)
            if n > 1:
                numbers.require(share, ">=", gap, n - 1)
            if zero:
                numbers.require(share, ">=", lambda k: size(n - 1), 1)

    return check


def _check_independent(body: Body, r: Value) -> None:
    w, t, (*lead, n, _) = body.w, r.t, r.shape  # type: ignore[union-attr]
    share = FULL_RANK * float(np.finfo(float if t == "double" else np.float32).eps)
    with loops(w, tuple(lead)) as at:
        size = lambda k: w.magnitude(element(w, r, (*at, k, k)).name, t)
        _Numbers(body, r, n, size).require(share, ">", size, n)


CHECKED: dict[Primitive, Callable[[Body, Value], None]] = {
    **{prim: _check_apart(kind) for kind, prim in apart_p.items()}, independent_p: _check_independent,
}  # fmt: skip
