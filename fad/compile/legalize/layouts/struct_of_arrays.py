"""Many small arrays side by side, as one vector for each of their elements: structs of arrays for arrays of structs.

A batched function of points and angles computes with arrays of shape (n, 3) or (n, 2, 2). Their loops run over three
elements at a time, and cannot be fused with those over all n; nor can sums over the few rows of an array of shape
(10, n). As vectors of n elements all of it is one loop, the arrangement of small arrays (a column, a stack, a
transpose) is done here, and only what something else reads whole is put together, by storing each vector where it
stands in the whole.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.compile.ir.expressions import template, weight
from fad.compile.ir.lowered_ops import PIECES, REDUCTIONS
from fad.compile.ir.types import LLVM_TYPE
from fad.compile.legalize.layouts.scalarize import Expansion, can_combine
from fad.compile.passes.algebra import simplify_one
from fad.compile.passes.constants import as_uniform
from fad.compile.passes.dce import drop_dead
from fad.core.primitives.cotangent import is_basic
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY, SCALAR, Equation, Graph, Type, hashable
from fad.ops.arrangement.structural import broadcast_p, concatenate_p, reshape_p, transpose_p
from fad.ops.places.indexing import getitem_p, scatter_p

SHORTEST = 1 << 5  # elements of a vector
MOST_APART = 9  # vectors of a batch whose elements lie apart: longer small arrays fill the CPU's vectors by themselves
MOST_ROWS = 16  # vectors that are rows in memory
_MOST_SHARED = 64  # elements of an array that is the same for the whole batch
_MOST_OPERATIONS = 1000  # on vectors, of small arrays that belong together
_BEGINNING, _APART, _LANES = 10.0, 1.5, 8  # of a row; of an element that lies apart; elements of a full vector
_PLACED = PIECES | {getitem_p, transpose_p}


def split_small_arrays(graph: Graph) -> Graph:
    """Compute with one vector for each element of batched small arrays, where that saves loops over few elements."""
    found = _find_batched(graph)
    if not found:
        return graph
    work = _Split(graph)
    for k, eq in enumerate(graph.equations):
        if k in found:
            work.split(eq, found[k])
        else:
            work.keep(eq)
    outputs = [work.output(o) for o in graph.outputs]
    return drop_dead(work.finish().replace(outputs=outputs))


def batch_axis(shape: tuple) -> int | None:
    """Return the axis of a batch of small arrays: the only long one, beside which the others are few elements."""
    long = [d for d, n in enumerate(shape) if n >= SHORTEST]
    if len(long) != 1:
        return None
    most = MOST_ROWS if long[0] == len(shape) - 1 else MOST_APART
    return long[0] if math.prod(shape) <= shape[long[0]] * most else None


def _is_shared(shape: tuple) -> bool:
    return max(shape, default=0) < SHORTEST and math.prod(shape) <= _MOST_SHARED


def _batch_of(graph: Graph, eq: Equation) -> int:
    """Return the length of the batch of small arrays that an operation can be split for; 0 if there is none."""
    types = [graph.types[i] for i in (*eq.ins, *eq.outs)]
    if len(eq.outs) != 1 or any(t.dtype not in LLVM_TYPE or not t.size for t in types):
        return 0
    axes = [batch_axis(t.shape) for t in types]
    lengths = {t.shape[p] for t, p in zip(types, axes, strict=True) if p is not None}
    wide = any(p is not None and len(t.shape) > 1 for t, p in zip(types, axes, strict=True))
    others = all(_is_shared(t.shape) for t, p in zip(types, axes, strict=True) if p is None)
    fits = wide and others and len(lengths) == 1 and _keeps_batch(graph, eq, axes[:-1], axes[-1])
    return lengths.pop() if fits else 0


def _keeps_batch(graph: Graph, eq: Equation, axes: list, p: int | None) -> bool:
    """Return whether an operation does the same for each element of a batch, alone, or adds them up.

    `axes` are those of the batch in its operands, and p in its result.
    """
    prim, params = eq.prim, eq.params
    shapes, out = [graph.types[i].shape for i in eq.ins], graph.types[eq.outs[0]]
    if prim in REDUCTIONS:
        return can_combine(graph, eq)
    if p is None:
        return False
    if prim is broadcast_p or template(graph, eq, graph.constants) is not None:
        behind = len(out.shape) - p
        return all(q is None or len(s) - q == behind for s, q in zip(shapes, axes, strict=True))
    if axes[0] is None or any(graph.types[i].dtype != out.dtype for i in eq.ins):
        return False
    if prim is reshape_p:
        return math.prod(shapes[0][: axes[0]]) == math.prod(out.shape[:p])
    if prim is transpose_p:
        return params["axes"][p] == axes[0]
    if prim is concatenate_p:
        return params["axis"] != p and all(q == p for q in axes)
    if prim is scatter_p:
        return all(_fits_at(index, out.shape, p, s) for index, s in zip(params["indices"], shapes, strict=True))
    if prim is getitem_p:
        return len(eq.ins) == 1 and _fits_at(params["template"], shapes[0], axes[0], out.shape)
    if prim.updates:
        return len(eq.ins) == 2 and _fits_at(params["template"], out.shape, p, shapes[1])
    return False


def _fits_at(index: Any, shape: tuple, p: int, piece: tuple) -> bool:
    """Return whether a basic index takes the whole axis p in its order, and gives an array of a shape."""
    index = index if type(index) is tuple else (index,)
    if not is_basic(index) or any(type(part) is bool for part in index):
        return False
    axes = sum(part is not None and part is not Ellipsis for part in index)
    at = 0
    for part in index:
        if part is Ellipsis:
            at += len(shape) - axes
        elif part is not None:
            if at == p and not (type(part) is slice and range(*part.indices(shape[p])) == range(shape[p])):
                return False
            at += 1
    return np.broadcast_to(False, shape)[index].shape == piece


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
            shape = graph.types[i].shape
            if len(shape) > 1 and batch_axis(shape) is not None and i not in graph.constants:
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
        n = max(max(t.shape, default=0) for t in (*ins, out))
        text = template(graph, eq, graph.constants)
        if text is not None:
            weights += weight(text) * (out.size > n)
            count += weight(text) * out.size // n
        elif eq.prim in REDUCTIONS:
            weights, arranged = weights + 1, arranged or not _combines(graph, eq, n)
            count += ins[0].size // n
        elif eq.prim in _PLACED and max(t.size for t in (*ins, out)) > n:
            arranged = True
    return 0 < count <= _MOST_OPERATIONS and weights > 0 and (arranged or _is_short(graph, some, read, weights))


def _combines(graph: Graph, eq: Equation, n: int) -> bool:
    """Return whether a reduction is one over an axis of length n, a batch's."""
    shape = graph.types[eq.ins[0]].shape
    return any(shape[d] == n for d in eq.params["axis"])


def _is_short(graph: Graph, some: list[int], read: dict[int, set[int]], weights: int) -> bool:
    """Return whether elementwise operations, which are one loop over small arrays, are quicker on vectors."""
    types, equations = graph.types, [graph.equations[k] for k in some]
    own = {eq.outs[0] for eq in equations if batch_axis(types[eq.outs[0]].shape) is not None}
    shape = types[next(iter(own))].shape if own else ()
    p = batch_axis(shape)
    if p is None or p == len(shape) - 1:
        return False
    n = shape[p]
    # if no operand has fewer elements for each of the batch, rows run on from one to the next
    shorter = any(n in types[i].shape and types[i].size < types[eq.outs[0]].size for eq in equations for i in eq.ins)
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

    def split(self, eq: Equation, n: int) -> None:
        """Write an operation on a batch of small arrays as operations on vectors."""
        for i in eq.ins:
            if i not in self.numbers:
                self.numbers[i] = self.take_apart(i)
        if eq.prim in REDUCTIONS and _combines(self.graph, eq, n):
            self.numbers[eq.outs[0]] = self.add_up(eq, n)
            return
        shape = self.source.types[eq.outs[0]].shape
        params = {k: shape if k == "shape" else v for k, v in eq.params.items()}
        done = self.expand(Equation(eq.prim, eq.ins, params, eq.outs, eq.place))
        assert done, eq.prim

    def add_up(self, eq: Equation, n: int) -> np.ndarray:
        """Return the numbers of the sums, or extremes, over a batch."""
        t = self.types[eq.outs[0]]
        numbers = self.reduce_rows(eq, self.numbers[eq.ins[0]], t)
        total = Type((), t.dtype, SCALAR)
        vectors = [self.spread(int(v), n) for v in numbers.flat]
        params = {"axis": (0,), "keepdims": False}
        return np.array([self.apply(eq.prim, (v,), params, total) for v in vectors], np.int64).reshape(t.shape)

    def keep(self, eq: Equation) -> None:
        """Write an operation as it was, on whole arrays."""
        for i in eq.ins:
            if eq.is_guard or self.rename(i) == i:
                self.put_together(i)
        if not eq.is_guard:  # one is known by its equation
            eq = Equation(eq.prim, tuple([self.rename(i) for i in eq.ins]), eq.params, eq.outs, eq.place)
        self.equations.append(eq)
        self.there.update(eq.outs)

    def rename(self, i: int) -> int:
        """Return the vector, or number, that a value without small arrays is."""
        if i in self.there or i not in self.numbers or self.numbers[i].size != 1:
            return i
        (v,) = self.numbers[i].flat
        return int(v) if self.types[v] == self.types[i] else i

    def output(self, o: int) -> int:
        """Return a result as a whole, or a vector that is none of the others and stands nowhere else."""
        v = self.rename(o)
        if v != o and v in self.free:
            self.free.remove(v)
            return v
        self.put_together(o)
        return o

    def take_apart(self, i: int) -> np.ndarray:
        """Return the numbers of the vectors of a batch, or of the elements of an array that all of it share."""
        t, c = self.graph.types[i], self.constants.get(i)
        p, uniform = batch_axis(t.shape), None if c is None else as_uniform(c)
        if not t.shape:
            return np.array(i)
        if len(t.shape) == 1 and p is not None and uniform is None:
            return np.array([i])
        shape = self.source.types[i].shape
        if uniform is not None:
            return np.full(shape, self.known_constant(t.dtype.type(uniform), Type((), t.dtype, SCALAR)))
        one = Type((), t.dtype, SCALAR) if p is None else Type((t.shape[p],), t.dtype)
        indices = [index if p is None else _along(index, p) for index in np.ndindex(shape)]
        return np.array([self.element(i, index, one) for index in indices]).reshape(shape)

    def element(self, i: int, index: tuple, t: Type) -> int:
        if i in self.constants:
            return self.known_constant(self.constants[i][index], t)
        return self.compute(getitem_p, (i,), {"template": index}, t)

    def known_constant(self, value: Any, t: Type) -> int:
        """Return the number of a constant; numbers that are equal are one."""
        key = (t, hashable(value)) if not t.shape else None
        if key is None or key not in self.known:
            self.known[key] = self.constant(value, t.kind)
        return self.known[key]

    def compute(self, prim: Primitive, ins: Any, params: dict, t: Type) -> int:
        """Apply an operation to vectors or numbers, unless its result is known or there already."""
        ins = tuple([int(i) for i in ins])
        if prim is not getitem_p:
            shape = np.broadcast_shapes(*[self.types[i].shape for i in ins])
            t = Type(shape, t.dtype, ARRAY if shape else SCALAR)
        key = prim, ins, hashable(params), t
        if key not in self.known:
            self.known[key] = self.written(prim, ins, params, t)
        return self.known[key]

    def written(self, prim: Primitive, ins: tuple, params: dict, t: Type) -> int:
        if not t.shape and all(i in self.constants for i in ins):
            with np.errstate(all="ignore"):
                return self.known_constant(t.dtype.type(prim.forward(*[self.constants[i] for i in ins], **params)), t)
        o = self.add_value(t)
        eq = simplify_one(Equation(prim, ins, params, (o,)), self.types, self.constants, self.made)
        if type(eq) is int:
            return eq
        self.made[o] = eq
        self.equations.append(eq)
        if prim is not getitem_p:
            self.free.add(o)
        return o

    def put_together(self, i: int) -> None:
        """Write the operation that stores the vectors of a value where they stand in the whole."""
        if i in self.there or i not in self.numbers:
            return
        self.there.add(i)
        t = self.types[i]
        p, numbers = batch_axis(t.shape), [int(v) for v in self.numbers[i].flat]
        if p is None:  # sums over the batch
            self.define(i, self.reshape(self.concatenate([self.reshape(v, (1,)) for v in numbers], 0), t.shape))
            return
        vectors = [self.at_one_place(v, t.shape[p]) for v in numbers]
        if len(vectors) == 1:
            self.define(i, self.reshape(vectors[0], t.shape))
            return
        indices = [_along(index, p) for index in np.ndindex(self.source.types[i].shape)]
        self.define(i, self.scatter(vectors, indices, t.shape))

    def at_one_place(self, v: int, n: int) -> int:
        """Return a vector that can be computed where it stands in a whole: each is in one place, others are copied."""
        v = self.spread(v, n)
        if v not in self.free:
            return self.copy(v)
        self.free.remove(v)
        return v

    def spread(self, v: int, n: int) -> int:
        """Return a vector, of equal elements if it is given a number."""
        return v if self.types[v].shape else self.broadcast_to(v, (n,))


def _of_one(t: Type) -> Type:
    """Return the type that an array has for one element of its batch, if it may be one."""
    p = batch_axis(t.shape)
    return t if p is None else Type((*t.shape[:p], 1, *t.shape[p + 1 :]), t.dtype, t.kind)


def _along(index: tuple, p: int) -> tuple:
    """Return an index that takes all of axis p."""
    return (*index[:p], slice(None), *index[p + 1 :])
