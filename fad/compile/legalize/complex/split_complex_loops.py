"""Loops and branches of complex numbers as those of real ones: each complex value of theirs is a pair of real arrays.

A body must be one of operations that have a rule here, and whose real counterparts have kernels: only then is the loop
native code. Any other loop stays as it is, with its complex operations done by NumPy.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from fad.compile.ir.expressions import template
from fad.compile.ir.lowered_ops import FOURIER, PIECES, REDUCTIONS
from fad.compile.legalize.complex.split_complex import MOVED, REAL_OF, Splitter, move_parts
from fad.compile.legalize.numbers.integer_overflow import CHECK
from fad.compile.passes.dce import drop_dead
from fad.compile.passes.loop_bodies import is_control
from fad.control_flow.bodies.loop_layout import Loop
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph, Type
from fad.core.programs.rewriter import rename
from fad.ops.products.contraction import matmul
from fad.ops.ufuncs.complexes import parts_p
from fad.ops.ufuncs.elementwise import add, subtract

_NATIVE = frozenset({matmul, CHECK, FOURIER, *PIECES, *REDUCTIONS})


def split_complex_loops(graph: Graph) -> Graph:
    """Rewrite the loops and branches with complex values that can be real ones."""
    if not any(map(is_control, graph.equations)):
        return graph
    work = Splitter(graph)
    alias: dict[int, int] = {}
    for eq in graph.equations:
        eq = rename(eq, alias)
        if is_control(eq) and _is_complex(work, eq) and _split(work, eq):
            alias.update(_join_results(work, eq.outs))
        else:
            work.equations.append(eq)
    return work.finish().replace(outputs=[alias.get(o, o) for o in graph.outputs])


def _join_results(work: Splitter, outs: tuple) -> dict[int, int]:
    """Put the complex results of the loop that was written last together; return their new names.

    Its first result keeps its name, by which the loop is known where it stops the program.
    """
    loop, first = work.equations.pop(), outs[0]
    types = {o: work.types[o] for o in outs if o in work.missing}
    if first in types:
        re, im = work.pairs[first]
        work.pairs[first] = (first, im)
        work.types[first] = work.types[re]
        loop = Equation(loop.prim, loop.ins, loop.params, (first, *loop.outs[1:]), loop.place)
    work.equations.append(loop)
    work.missing.clear()
    return {o: work.apply(parts_p, work.pairs.pop(o), {}, t) for o, t in types.items()}


class _NotReal(Exception):
    """A body has an operation of complex numbers that is not split here."""


def _is_complex(graph: Graph | Splitter, eq: Equation) -> bool:
    """Whether an operation takes or gives complex numbers, or its bodies compute with some."""
    if any(graph.types[i].dtype.kind == "c" for i in (*eq.ins, *eq.outs)):
        return True
    return any(_is_complex(g, e) for g in eq.bodies for e in g.equations)


def _split(work: Splitter, eq: Equation) -> bool:
    """Write a loop or branch with pairs of real values; false if one of its bodies cannot be real."""
    try:
        bodies = tuple([_Body(g).split() for g in eq.bodies])
    except _NotReal:
        return False
    ins = _flat(work.operand(i) for i in eq.ins)
    outs = _flat(_result(work, o) for o in eq.outs)
    if eq.prim.archetype == "branch":
        params: dict[str, Any] = {"branches": bodies}
    else:
        loop, width = Loop(eq), lambda values: sum(2 if _kind(work, i) == "c" else 1 for i in values)
        params = {**eq.params, "body": bodies[0], "consts": width(loop.consts), "carries": width(loop.carry)}
    work.equations.append(Equation(eq.prim, ins, params, outs, eq.place))
    return True


def _flat(groups: Iterable[tuple]) -> tuple:
    return tuple([i for group in groups for i in group])


def _kind(work: Splitter, i: int) -> str:
    return work.types[i].dtype.kind


def _result(work: Splitter, o: int) -> tuple:
    """Return the new values that a result of a loop is."""
    t = work.types[o]
    if t.dtype.kind != "c":
        return (o,)
    work.pairs[o] = _new_pair(work, t)
    work.missing.add(o)
    return work.pairs[o]


def _new_pair(work: Splitter, t: Type) -> tuple[int, int]:
    real = REAL_OF.get(t.dtype)
    if real is None:
        raise _NotReal
    re, im = [work.add_value(Type(t.shape, real, t.kind, t.home)) for _ in range(2)]
    return re, im


class _Body(Splitter):
    """The body of a loop or branch, whose inputs and outputs are real as well."""

    most_transformed = most_real = fewest_copied = 1 << 20

    def split(self) -> Graph:
        inputs = _flat(self._input(i) for i in self.graph.inputs)
        for eq in self.graph.equations:
            self.equation(eq)
        outputs = _flat(self.operand(o) for o in self.graph.outputs)
        found = drop_dead(self.finish().replace(inputs=list(inputs), outputs=list(outputs)))
        if not all(_is_native(found, eq) for eq in found.equations):
            raise _NotReal
        return found

    def _input(self, i: int) -> tuple:
        if _kind(self, i) == "c":
            self.pairs[i] = _new_pair(self, self.types[i])
        return self.operand(i)

    def equation(self, eq: Equation) -> None:
        if not _is_complex(self.graph, eq):
            self.equations.append(eq)
            return
        if is_control(eq):
            done = _split(self, eq)
        elif eq.prim.multi or any(_kind(self, i) not in "cfib" for i in eq.ins):
            done = False
        elif eq.prim is matmul:
            done = self._multiply_matrices(eq)
        elif eq.prim in MOVED:
            done = move_parts(self, eq)
        else:
            done = self._by_rule(eq)
        if not done:
            raise _NotReal

    def _by_rule(self, eq: Equation) -> bool:
        rule = self.find_rule(eq)
        if rule is None:
            return False
        for i in eq.ins:
            self.operand(i)
        return rule(self, eq)

    def _multiply_matrices(self, eq: Equation) -> bool:
        out = self.types[eq.outs[0]]
        real = REAL_OF[out.dtype]
        x, y = [self.operand(i) for i in eq.ins]
        if any(self.types[p].dtype != real for p in (*x, *y)):
            return False

        def do(what: Primitive, *ins: int) -> int:
            return self.do(what, ins, out.shape, real, eq.params if what is matmul else {})

        re, im = do(matmul, x[0], y[0]), do(matmul, x[-1], y[-1])
        if len(x) != len(y):  # one is real
            return self.keep(eq, re, im)
        cross = do(add, do(matmul, x[0], y[1]), do(matmul, x[1], y[0]))
        return self.keep(eq, do(subtract, re, im), cross)


def _is_native(graph: Graph, eq: Equation) -> bool:
    if is_control(eq):
        return all(_is_native(g, e) for g in eq.bodies for e in g.equations)
    return eq.prim in _NATIVE or eq.prim.view is not None or template(graph, eq, graph.constants) is not None
