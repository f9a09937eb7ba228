"""Many small arrays side by side, as one vector for each of their elements: structs of arrays for arrays of structs.

A batched function of points and angles computes with arrays of shape (n, 3) or (n, 2, 2). Their loops run over three
elements at a time, and cannot be fused with those over all n. As vectors of n elements all of it is one loop, the
arrangement of small arrays (a column, a stack, a transpose) is done here, and only what something else reads whole is
put together, by storing each vector where it stands in the whole.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.compile.ir.expressions import template, weight
from fad.compile.ir.lowered_ops import REDUCTIONS, copy_p
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.legalize.scalarize import Expansion, can_combine
from fad.compile.passes.algebra import simplify_one
from fad.compile.passes.constants import as_uniform
from fad.compile.passes.dce import drop_dead
from fad.core.cotangent import is_basic
from fad.core.graph import ARRAY, GUARD, SCALAR, Equation, Graph, Type, hashable
from fad.core.primitive import REGISTRY

SHORTEST = 1 << 5  # elements of a vector
MOST_ELEMENTS = 9  # of one small array: longer ones fill the CPU's vectors by themselves
_MOST_SHARED = 64  # elements of an array that is the same for the whole batch
_MOST_OPERATIONS = 1000  # on vectors, of small arrays that belong together
_BEGINNING, _APART, _LANES = 10.0, 1.5, 8  # of a row; of an element that lies apart; elements of a full vector
_PLACED = frozenset({"getitem", "join", "scatter", "index_set", "index_add", "permute"})
_RESHAPED = frozenset({"reshape_to", "broadcast", "scatter"})  # their parameters name the shape of the result


def split_small_arrays(graph: Graph) -> Graph:
    """Compute with one vector for each element of batched small arrays, where that saves loops over few elements."""
    found = _find_batched(graph)
    if not found:
        return graph
    work = _Split(graph)
    for k, eq in enumerate(graph.equations):
        if k in found:
            work.expand(eq, found[k])
        else:
            work.keep(eq)
    outputs = [work.output(o) for o in graph.outputs]
    return drop_dead(work.finish().replace(outputs=outputs))


def _is_batched(t: Type, n: int) -> bool:
    return bool(t.shape) and t.shape[0] == n and t.size <= n * MOST_ELEMENTS


def _batch_of(graph: Graph, eq: Equation) -> int:
    """Return the length of the batch of small arrays that an operation can be split for; 0 if there is none."""
    types = [graph.types[i] for i in (*eq.ins, *eq.outs)]
    out = types[-1]
    n = out.shape[0] if out.shape else 0
    if n < SHORTEST or len(eq.outs) != 1 or all(len(t.shape) < 2 for t in types):
        return 0
    if any(t.dtype not in LLVM_TYPE or not t.size for t in types) or not _is_batched(out, n):
        return 0
    for t in types[:-1]:
        if not _is_batched(t, n) and (t.size > _MOST_SHARED or (t.shape and t.shape[0] >= SHORTEST)):
            return 0  # it is neither of the batch nor small
    return n if _keeps_batch(graph, eq, n) else 0


def _keeps_batch(graph: Graph, eq: Equation, n: int) -> bool:
    """Return whether an operation does the same for each element of a batch, alone and in their order."""
    name, params = eq.prim.name, eq.params
    shapes = [graph.types[i].shape for i in eq.ins]
    out = graph.types[eq.outs[0]]
    if template(graph, eq, graph.constants) is not None:
        return all(len(s) == len(out.shape) for s in shapes if s[:1] == (n,))
    if name == "broadcast":
        return shapes[0][:1] != (n,) or len(shapes[0]) == len(out.shape)
    if name != "join" and not any(s[:1] == (n,) for s in shapes):
        return False
    if name == "reshape_to":
        return True
    if name == "permute":
        return params["axes"][0] == 0
    if name in REDUCTIONS:
        return can_combine(graph, eq) and 0 not in params["axis"]
    if any(graph.types[i].dtype != out.dtype for i in eq.ins):
        return False
    if name == "join":
        return params["axis"] > 0 and all(s[0] == n for s in shapes)
    if name == "scatter":
        return all(_takes_all(index, out.shape) for index in params["indices"]) and all(s[:1] == (n,) for s in shapes)
    if name == "getitem":
        return len(eq.ins) == 1 and _takes_all(params["template"], shapes[0])
    if name in ("index_set", "index_add"):
        return len(eq.ins) == 2 and shapes[0][:1] == (n,) and _takes_all(params["template"], shapes[0])
    return False


def _takes_all(index: Any, shape: tuple) -> bool:
    """Return whether a basic index takes all elements of the first axis, in their order, and leaves it the first."""
    index = index if type(index) is tuple else (index,)
    if not index or not is_basic(index):
        return False
    if index[0] is Ellipsis:
        return sum(part is not None for part in index) <= len(shape)
    return type(index[0]) is slice and range(*index[0].indices(shape[0])) == range(shape[0])


def _find_batched(graph: Graph) -> dict[int, int]:
    """Return the operations that are to be split, by number, with the lengths of their batches.

    Those that hand small arrays to each other are split together or not at all.
    """
    candidates = {k: n for k, eq in enumerate(graph.equations) if (n := _batch_of(graph, eq))}
    group: dict[int, int] = {}  # equation, or value as a negative number -> another one that it belongs to

    def root(k: int) -> int:
        while (above := group.setdefault(k, k)) != k:
            group[k] = group[above]
            k = group[k]
        return k

    for k in candidates:
        eq = graph.equations[k]
        for i in (*eq.ins, *eq.outs):
            if len(graph.types[i].shape) > 1 and i not in graph.constants:
                group[root(~i)] = root(k)
    together: dict[int, list[int]] = {}
    for k in candidates:
        together.setdefault(root(k), []).append(k)
    read = _readers(graph)
    return {k: candidates[k] for some in together.values() if _pays(graph, some, read) for k in some}


def _readers(graph: Graph) -> dict[int, set[int]]:
    """Return for each value the numbers of the operations that read it; -1 reads the results."""
    read: dict[int, set[int]] = {o: {-1} for o in graph.outputs}
    for k, eq in enumerate(graph.equations):
        for i in eq.ins:
            read.setdefault(i, set()).add(k)
    return read


def _pays(graph: Graph, some: list[int], read: dict[int, set[int]]) -> bool:
    """Return whether operations on small arrays are quicker on vectors, and not too many.

    Sums over a few elements, and what reads or writes some elements of each small array, always are. A loop that is
    elementwise alone pays for vectors whose elements lie apart: it takes as long as two operations on full vectors for
    each small array, and some time to begin.
    """
    weights, arranged, count = 0, False, 0
    for k in some:
        eq = graph.equations[k]
        ins, out = [graph.types[i] for i in eq.ins], graph.types[eq.outs[0]]
        n = out.shape[0]
        text = template(graph, eq, graph.constants)
        if text is not None:
            weights += weight(text) * (out.size > n)
            count += weight(text) * out.size // n
        elif eq.prim.name in REDUCTIONS:
            weights, arranged = weights + 1, True
            count += ins[0].size // n
        elif eq.prim.name in _PLACED and max(t.size for t in (*ins, out)) > n:
            arranged = True
    return 0 < count <= _MOST_OPERATIONS and weights > 0 and (arranged or _is_short(graph, some, read, weights))


def _is_short(graph: Graph, some: list[int], read: dict[int, set[int]], weights: int) -> bool:
    """Return whether elementwise operations, which are one loop over small arrays, are quicker on vectors."""
    types, equations = graph.types, [graph.equations[k] for k in some]
    own = {eq.outs[0] for eq in equations}
    n = types[equations[0].outs[0]].shape[0]
    # if no operand has fewer elements for each of the batch, rows run on from one to the next
    shorter = any(types[i].shape[:1] == (n,) and types[i].size < types[eq.outs[0]].size
                  for eq in equations for i in eq.ins)  # fmt: skip
    apart = {i for eq in equations for i in eq.ins} - own
    apart |= {o for o in own if not read.get(o, set()).issubset(some)}
    elements = sum(types[i].size // n for i in apart if types[i].size > n)
    size = max(types[o].size // n for o in own)
    return shorter and _BEGINNING + 2 * weights > size * weights / _LANES + _APART * elements


class _Split(Expansion):
    """The graph with vectors for elements: an array of the numbers of a batch's vectors has an axis of one for it."""

    def __init__(self, graph: Graph):
        super().__init__(graph.replace(types=[_of_one(t) for t in graph.types]))
        self.graph, self.types, self.constants = graph, list(graph.types), dict(graph.constants)
        self.made: dict[int, Equation] = {}
        self.known: dict[Any, int] = {}
        self.free: set[int] = set()  # vectors that loops compute, and that stand in no whole yet
        self.there = {*graph.inputs, *graph.constants}  # values that are in memory as they were

    def expand(self, eq: Equation, n: int) -> None:
        """Write an operation on a batch of small arrays as operations on vectors."""
        for i in eq.ins:
            if i not in self.numbers:
                self.numbers[i] = self.take_apart(i, n)
        params = {k: (1, *v[1:]) if k == "shape" else v for k, v in eq.params.items()}
        done = self.add(Equation(eq.prim, eq.ins, params, eq.outs, eq.place))
        assert done, eq.prim

    def keep(self, eq: Equation) -> None:
        """Write an operation as it was, on whole arrays."""
        for i in eq.ins:
            if eq.prim is GUARD or self.rename(i) == i:
                self.put_together(i)
        if eq.prim is not GUARD:  # one is known by its equation
            eq = Equation(eq.prim, tuple([self.rename(i) for i in eq.ins]), eq.params, eq.outs, eq.place)
        self.equations.append(eq)
        self.there.update(eq.outs)

    def rename(self, i: int) -> int:
        """Return the vector that a value without small arrays is."""
        if i in self.there or i not in self.numbers or len(self.types[i].shape) != 1:
            return i
        (v,) = self.numbers[i]
        return int(v) if self.types[v] == self.types[i] else i

    def output(self, o: int) -> int:
        """Return a result as a whole, or a vector that is none of the others and stands nowhere else."""
        v = self.rename(o)
        if v != o and v in self.free:
            self.free.remove(v)
            return v
        self.put_together(o)
        return o

    def take_apart(self, i: int, n: int) -> np.ndarray:
        """Return the numbers of the vectors of a batch, or of the elements of an array that all of it share."""
        t, c = self.graph.types[i], self.constants.get(i)
        uniform = None if c is None else as_uniform(c)
        if not t.shape:
            return np.array(i)
        if t.shape == (n,) and uniform is None:
            return np.array([i])
        shape = self.source.types[i].shape
        if uniform is not None:
            return np.full(shape, self.known_constant(t.dtype.type(uniform), Type((), t.dtype, SCALAR)))
        batch = (slice(None),) if t.shape[0] == n else ()
        one = Type(t.shape[:1] if batch else (), t.dtype, ARRAY if batch else SCALAR)
        indices = [(*batch, *index[len(batch) :]) for index in np.ndindex(shape)]
        return np.array([self.element(i, index, one) for index in indices]).reshape(shape)

    def element(self, i: int, index: tuple, t: Type) -> int:
        if i in self.constants:
            return self.known_constant(self.constants[i][index], t)
        return self.compute("getitem", (i,), {"template": index}, t)

    def known_constant(self, value: Any, t: Type) -> int:
        """Return the number of a constant; numbers that are equal are one."""
        key = (t, hashable(value)) if not t.shape else None
        if key is None or key not in self.known:
            self.known[key] = self.constant(value, t.kind)
        return self.known[key]

    def compute(self, prim: Any, ins: Any, params: dict, t: Type) -> int:
        """Apply an operation to vectors or numbers, unless its result is known or there already."""
        prim, ins = REGISTRY[prim] if isinstance(prim, str) else prim, tuple([int(i) for i in ins])
        if prim.name != "getitem":
            shape = np.broadcast_shapes(*[self.types[i].shape for i in ins])
            t = Type(shape, t.dtype, ARRAY if shape else SCALAR)
        key = prim, ins, hashable(params), t
        if key not in self.known:
            self.known[key] = self.written(prim, ins, params, t)
        return self.known[key]

    def written(self, prim: Any, ins: tuple, params: dict, t: Type) -> int:
        if not t.shape and all(i in self.constants for i in ins):
            with np.errstate(all="ignore"):
                return self.known_constant(t.dtype.type(prim.forward(*[self.constants[i] for i in ins], **params)), t)
        o = self.add_value(t)
        eq = simplify_one(Equation(prim, ins, params, (o,)), self.types, self.constants, self.made)
        if type(eq) is int:
            return eq
        self.made[o] = eq
        self.equations.append(eq)
        if prim.name != "getitem":
            self.free.add(o)
        return o

    def put_together(self, i: int) -> None:
        """Write the operation that stores the vectors of a value where they stand in the whole."""
        if i in self.there or i not in self.numbers:
            return
        self.there.add(i)
        t, numbers = self.types[i], self.numbers[i]
        vectors = [self.along(int(v), t) for v in numbers.flat]
        if len(vectors) == 1:
            self.equations.append(Equation(REGISTRY["reshape_to"], tuple(vectors), {"shape": t.shape}, (i,)))
            return
        indices = tuple([(slice(None), *index) for index in np.ndindex(t.shape[1:])])
        params = {"shape": t.shape, "dtype": t.dtype, "indices": indices}
        self.equations.append(Equation(REGISTRY["scatter"], tuple(vectors), params, (i,)))

    def along(self, v: int, whole: Type) -> int:
        """Return a vector that can be computed where it stands in a whole: each is in one place, others are copied."""
        t = Type(whole.shape[:1], whole.dtype)
        if not self.types[v].shape:
            v = self.apply("broadcast", (v,), {"shape": t.shape}, t)
        if v not in self.free:
            return self.apply(copy_p, (v,), {}, t)
        self.free.remove(v)
        return v


def _of_one(t: Type) -> Type:
    """Return the type that an array has for one element of its batch, if it may be one."""
    return Type((1, *t.shape[1:]), t.dtype, t.kind) if t.shape and t.shape[0] >= SHORTEST else t
