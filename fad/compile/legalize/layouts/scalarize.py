"""Small arrays as single numbers: a body whose state is a few numbers can then stay in registers.

The arrangement of an array (a slice, a transpose, a join) is done here, on the numbers of its elements, and costs
nothing in the loop.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.expressions import is_heavy, template
from fad.compile.ir.lowered_ops import REDUCTIONS
from fad.compile.ir.slice_writes import view_of
from fad.compile.legalize.places.place_stacks import ON_STACKS
from fad.core.primitives.cotangent import is_basic
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import NUMBER, SCALAR, Equation, Graph, Type
from fad.ops.arrangement.structural import concatenate_p
from fad.ops.places.indexing import scatter_p
from fad.ops.products.contraction import matmul
from fad.ops.ufuncs.conversion import astype_p
from fad.ops.ufuncs.elementwise import add as add_p
from fad.ops.ufuncs.elementwise import multiply
from fad.ops.ufuncs.selection import where_p

MOST_ELEMENTS = 9  # of one array
MOST_OPERATIONS = 300  # of single numbers in one step
MOST_HEAVY = 9  # functions that vectors compute much faster
CHECKED_NUMBERS = ("nonzero", "natural", "finite", "fits")  # what is checked of a number alone
MOST_OF_BRANCH = 128  # operations of a branch that is computed whether it is taken or not


def can_combine(graph: Graph, eq: Equation) -> bool:
    """Return whether an operation adds up elements one after the other, of booleans their number, or is an extreme."""
    if eq.prim not in REDUCTIONS or not eq.params["axis"]:
        return False
    x, out = graph.types[eq.ins[0]], graph.types[eq.outs[0]]
    counts = REDUCTIONS[eq.prim] is add_p and x.dtype == bool and out.dtype == np.int64
    return bool(x.size) and (x.dtype == out.dtype or counts)


class Expanded:
    """The graph of single numbers, and for each input and output of the other one the numbers of its elements."""

    __slots__ = ("graph", "inputs", "outputs")

    def __init__(self, graph: Graph, inputs: list[list[int]], outputs: list[list[int]]):
        self.graph = graph
        self.inputs = inputs
        self.outputs = outputs


def expand_body(graph: Graph) -> Expanded | None:
    """Return a body that computes with single numbers; None if it has too many, or an operation without a kernel."""
    if any(t.size > MOST_ELEMENTS for t in graph.types) or len(graph.equations) > MOST_OPERATIONS:
        return None
    work = Expansion(graph)
    work.numbers.update((i, work.fresh(i)) for i in graph.inputs)
    work.add_constants()
    for eq in graph.equations:
        if not work.expand(eq) or len(work.equations) > MOST_OPERATIONS or work.heavy > MOST_HEAVY:
            return None
    inputs = [work.elements(i) for i in graph.inputs]
    outputs = [work.elements(i) for i in graph.outputs]
    flat = [i for some in inputs for i in some], [i for some in outputs for i in some]
    return Expanded(work.finish().replace(inputs=flat[0], outputs=flat[1]), inputs, outputs)


class Expansion(Builder):
    """A program of elements, as it is written: each value of another one, `source`, is an array of their numbers."""

    def __init__(self, graph: Graph):
        super().__init__(Graph([], [], {}, [], []))
        self.source = graph
        self.heavy = 0
        self.numbers: dict[int, np.ndarray] = {}  # value -> the numbers of its elements
        self.within: list[tuple[int, int]] = []  # the tests of the branches around, and whether they are to hold

    def add_constants(self) -> None:
        for i, c in self.source.constants.items():
            self.numbers[i] = self.fresh(i)
            for n, x in zip(self.numbers[i].flat, np.asarray(c).flat, strict=True):
                self.constants[int(n)] = x

    def elements(self, i: int) -> list[int]:
        return [int(n) for n in self.numbers[i].flat]

    def fresh(self, i: int) -> np.ndarray:
        t = self.source.types[i]
        return np.array([self.add_value(_element(t)) for _ in range(t.size)], np.int64).reshape(t.shape)

    def compute(self, prim: Primitive, ins: Any, params: dict, t: Type) -> int:
        """Apply an operation to single numbers; the result is an element of an array of type t."""
        return self.apply(prim, tuple(map(int, ins)), params, _element(t))

    def expand(self, eq: Equation) -> bool:
        """Expand one operation; false if that cannot be done."""
        graph, prim = self.source, eq.prim
        if prim in ON_STACKS:
            return self.on_a_stack(eq)
        if prim.archetype == "check":
            return self.check(eq)
        if prim.archetype == "branch":
            return self.choose(eq)
        if len(eq.outs) != 1:
            return False
        o, t = eq.outs[0], graph.types[eq.outs[0]]
        arrays = [self.numbers[i] for i in eq.ins]
        text = template(graph, eq, graph.constants)
        if text is not None:
            self.heavy += t.size * is_heavy(text)
            columns = zip(*[np.broadcast_to(a, t.shape).flat for a in arrays], strict=True)
            made = [self.compute(eq.prim, ins, eq.params, t) for ins in columns]
            self.numbers[o] = np.array(made, np.int64).reshape(t.shape)
        elif eq.is_view and is_basic(eq.params.get("template", ())):
            self.numbers[o] = np.asarray(view_of(eq, arrays[0])).reshape(t.shape)
        elif prim is concatenate_p:
            self.numbers[o] = np.concatenate(arrays, eq.params["axis"])
        elif can_combine(graph, eq):
            self.numbers[o] = self.reduce_rows(eq, arrays[0], t)
        elif prim is matmul and all(
            graph.types[i].dtype == t.dtype and 0 < a.ndim <= 2 and a.size
            for i, a in zip(eq.ins, arrays, strict=True)
        ):
            x, y = arrays
            self.numbers[o] = self.multiply_matrices(x, y, t)
        elif prim is scatter_p and all(is_basic(index) for index in eq.params["indices"]):
            return self.add_pieces(eq, arrays, t)
        elif prim.updates and is_basic(eq.params["template"]):
            return self.update(eq, arrays, t)
        else:
            return False
        return True

    def on_a_stack(self, eq: Equation) -> bool:
        outs = [self.fresh(o) for o in eq.outs]
        ins = [n for i in eq.ins for n in self.elements(i)]
        self.numbers.update(zip(eq.outs, outs, strict=True))
        flat = tuple(n for o in eq.outs for n in self.elements(o))
        self.equations.append(Equation(eq.prim, tuple(ins), eq.params, flat))
        return True

    def check(self, eq: Equation) -> bool:
        """Check a number, in the branch of an ``if`` one that is harmless unless the branch is taken."""
        (i, *more) = [n for i in eq.ins for n in self.elements(i)]
        if more or eq.params["how"] not in CHECKED_NUMBERS:
            return False
        out = self.numbers[eq.outs[0]] = self.fresh(eq.outs[0])
        for test, taken in self.within:
            one = self.number(1, self.types[i].dtype)
            i = self.compute(where_p, (test, i, one) if taken else (test, one, i), {}, self.types[i])
        self.equations.append(Equation(eq.prim, (i,), eq.params, (int(out[()]),)))
        return True

    def choose(self, eq: Equation) -> bool:
        """Compute both branches of an ``if``, and choose between their results."""
        index, *given = eq.ins
        branches, types = eq.params["branches"], [self.source.types[o] for o in eq.outs]
        if self.source.types[index].dtype != bool or self.source.types[index].shape or len(branches) != 2:
            return False
        heavy, results = self.heavy, []
        (test,) = self.elements(index)
        for taken, branch in enumerate(branches):
            if len(branch.equations) > MOST_OF_BRANCH or any(x.size > MOST_ELEMENTS for x in branch.types):
                return False
            before = len(self.equations)
            self.within.append((test, taken))
            found = self.inline(branch, [self.numbers[i] for i in given])
            self.within.pop()
            if found is None or len(self.equations) - before > MOST_OF_BRANCH or self.heavy > heavy:
                return False
            if [branch.types[o].dtype for o in branch.outputs] != [t.dtype for t in types]:
                return False
            results.append(found)
        for o, t, if_not, if_true in zip(eq.outs, types, *results, strict=True):
            pairs = zip(if_true.flat, if_not.flat, strict=True)
            made = [int(a) if a == b else self.compute(where_p, (test, a, b), {}, t) for a, b in pairs]
            self.numbers[o] = np.array(made, np.int64).reshape(t.shape)
        return True

    def inline(self, graph: Graph, given: list[np.ndarray]) -> list[np.ndarray] | None:
        """Expand a program with these operands, and return the numbers of its results; None if that cannot be done."""
        outer = self.source, self.numbers
        self.source, self.numbers = graph, dict(zip(graph.inputs, given, strict=True))
        try:
            self.add_constants()
            return [self.numbers[o] for o in graph.outputs] if all(map(self.expand, graph.equations)) else None
        finally:
            self.source, self.numbers = outer

    def chain(self, prim: Primitive, terms: list, t: Type) -> int:
        total = int(terms[0])
        for x in terms[1:]:
            total = self.compute(prim, (total, x), {}, t)
        return total

    def reduce_rows(self, eq: Equation, x: np.ndarray, t: Type) -> np.ndarray:
        axis = eq.params["axis"]
        kept = [d for d in range(x.ndim) if d not in axis]
        if t.dtype != self.source.types[eq.ins[0]].dtype:
            convert = lambda i: self.compute(astype_p, (i,), {"dtype": t.dtype}, t)
            x = np.array(list(map(convert, x.flat)), np.int64).reshape(x.shape)
        rows = x.transpose(*kept, *axis).reshape(t.size, -1)
        return np.array([self.chain(REDUCTIONS[eq.prim], list(row), t) for row in rows], np.int64).reshape(t.shape)

    def multiply_matrices(self, x: np.ndarray, y: np.ndarray, t: Type) -> np.ndarray:
        a, b = np.atleast_2d(x), y if y.ndim == 2 else y[:, None]
        found = [
            self.chain(add_p, [self.compute(multiply, pair, {}, t) for pair in zip(row, column, strict=True)], t)
            for row in a
            for column in b.T
        ]
        return np.array(found, np.int64).reshape(t.shape)

    def update(self, eq: Equation, arrays: list, t: Type) -> bool:
        target, values = arrays[0].copy(), arrays[1]
        if any(self.source.types[i].dtype != t.dtype for i in eq.ins):
            return False
        place = np.arange(t.size).reshape(t.shape)[eq.params["template"]]
        for at, v in zip(np.ravel(place), np.broadcast_to(values, np.shape(place)).flat, strict=True):
            old = target.flat[at]
            target.flat[at] = self.compute(add_p, (old, v), {}, t) if eq.prim.adds else v
        self.numbers[eq.outs[0]] = target
        return True

    def add_pieces(self, eq: Equation, arrays: list, t: Type) -> bool:
        zero = self.number(0, t.dtype)
        target = np.full(t.shape, zero, np.int64)
        for i, index, values in zip(eq.ins, eq.params["indices"], arrays, strict=True):
            if self.source.types[i].dtype != t.dtype:
                return False
            place = np.arange(t.size).reshape(t.shape)[index]
            for at, v in zip(np.ravel(place), np.broadcast_to(values, np.shape(place)).flat, strict=True):
                old = target.flat[at]
                target.flat[at] = v if old == zero else self.compute(add_p, (old, v), {}, t)
        self.numbers[eq.outs[0]] = target
        return True


def _element(t: Type) -> Type:
    return Type((), t.dtype, NUMBER if t.kind == NUMBER else SCALAR)
