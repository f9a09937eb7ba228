"""Isomorphic iterations of an unrolled loop, batched: what `hoist_loop_matmuls` does, for loops written in Python.

The reverse pass of a recurrent network adds a product to the gradient of each weight in each step. All of them
together are one product of stacked matrices, whose parts are computed where they stand in the stack. And what the
network does to its inputs alone, it can do to all of them at once.
"""

from __future__ import annotations

import numpy as np

from fad.compile.ir.builder import Builder
from fad.compile.ir.uses import find_transposed, use_counts
from fad.core.programs.graph import ARRAY, Equation, Graph, Type, has_effects
from fad.ops.arrangement.structural import concatenate_p
from fad.ops.places.indexing import getitem_p
from fad.ops.products.contraction import matmul
from fad.ops.reductions.reduction import sum_p
from fad.ops.ufuncs.elementwise import add, multiply

FEWEST = 4  # terms below which nothing is gained
LONG = 16  # parts of a stack from which on it is looked for in others
MOST = 1 << 26  # bytes of one stack
_REAL = (np.dtype(float), np.dtype(np.float32))


def batch_unrolled_matmuls(graph: Graph) -> Graph:
    """Rewrite products of the slices of one array, and sums of products, as one product each."""
    if sum(eq.prim in (matmul, sum_p, multiply) for eq in graph.equations) < FEWEST:
        return graph
    return share_stacks(_Totals(_Slices(graph).run()).run())


class _Rewriter(Builder):
    """What both passes write: products of stacked matrices, and slices of what is stacked."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.made = {o: eq for eq in graph.equations for o in eq.outs}

    def ensure_shape(self, x: int, shape: tuple) -> int:
        return x if self.types[x].shape == shape else self.reshape(x, shape)

    def slice_of(self, x: int) -> tuple[int, int] | None:
        """Return the array of which a value is the k-th slice, and k."""
        eq = self.made.get(x)
        if eq is None or eq.prim is not getitem_p or len(eq.ins) != 1:
            return None
        template = eq.params["template"]
        if len(template) != 1 or type(template[0]) is not int:
            return None
        return eq.ins[0], template[0] % self.types[eq.ins[0]].shape[0]

    def run_of(self, whole: int, ks: list[int]) -> int:
        """Return the slices of an array from the first to the last as one array."""
        return whole if len(ks) == self.types[whole].shape[0] else self.take_along(whole, 0, ks[0], ks[-1] + 1)


class _Slices(_Rewriter):
    """Products of the slices of one array with one matrix."""

    def run(self) -> Graph:
        groups: dict[tuple, dict[int, Equation]] = {}
        for eq in self.graph.equations:
            if eq.prim is matmul:
                self.find(eq, groups)
        first: dict[int, tuple] = {}
        instead: dict[int, Equation] = {}
        for key, found in groups.items():
            ks = sorted(found)
            nbytes = sum(self.types[eq.outs[0]].nbytes for eq in found.values())
            if len(ks) >= FEWEST and ks[-1] - ks[0] == len(ks) - 1 and nbytes <= MOST:
                group = {id(eq) for eq in found.values()}
                begin = next(eq for eq in self.graph.equations if id(eq) in group)
                first[id(begin)] = (key, ks, found)
        if not first:
            return self.graph
        for eq in self.graph.equations:
            if id(eq) in first:
                instead.update(self.multiply_slices(*first[id(eq)]))
            self.equations.append(instead.get(id(eq), eq))
        return self.finish()

    def find(self, eq: Equation, groups: dict) -> None:
        x, y = [self.types[i] for i in eq.ins]
        ranks = (len(x.shape), len(y.shape))
        if x.dtype != y.dtype or x.dtype not in _REAL or self.types[eq.outs[0]].kind != ARRAY:
            return
        for left in (True, False):
            if ranks in (((1, 2), (2, 2)) if left else ((2, 1),)):
                place = self.slice_of(eq.ins[not left])
                if place is not None and place[0] != eq.ins[left]:
                    groups.setdefault((place[0], eq.ins[left], left), {}).setdefault(place[1], eq)

    def multiply_slices(self, key: tuple, ks: list[int], found: dict) -> dict[int, Equation]:
        """Write one product, and return what each of those that it replaces becomes: a slice of it."""
        whole, w, left = key
        x = self.run_of(whole, ks)
        shape = self.types[x].shape
        w = w if left else self.matrix_transpose(w)
        y = self.matmul(self.ensure_shape(x, (int(np.prod(shape[:-1])), shape[-1])), w)
        y = self.ensure_shape(y, (*shape[:-1], self.types[w].shape[1]))
        take = getitem_p
        return {id(eq): Equation(take, (y,), {"template": (k - ks[0],)}, eq.outs, eq.place) for k, eq in found.items()}


class _Totals(_Rewriter):
    """Sums of products, and of sums over rows."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.uses = use_counts(graph)
        self.stacks: dict[tuple, int] = {}
        self.added = {eq.outs[0]: eq for eq in graph.equations if eq.prim is add and self.is_sum(eq)}

    def run(self) -> Graph:
        # additions whose result is part of a longer sum
        within = {i for eq in self.added.values() for i in eq.ins if self.is_part(i, eq)}
        roots = [eq for o, eq in self.added.items() if o not in within and not within.isdisjoint(eq.ins)]
        kinds = {id(eq): self.kinds(eq) for eq in roots}
        self.shared = {
            _set_of(some) for found in kinds.values() for kind, some in found.items() if self.pays(kind, some)
        }
        for eq in self.graph.equations:
            found = kinds.get(id(eq)) if eq.prim is add else None
            self.equations.append(eq if found is None else self.total(eq, found))
        return self.finish() if self.stacks else self.graph

    def is_sum(self, eq: Equation) -> bool:
        t = self.types[eq.outs[0]]
        return t.kind == ARRAY and t.dtype in _REAL

    def is_part(self, i: int, eq: Equation) -> bool:
        return i in self.added and self.uses[i] == 1 and self.types[i] == self.types[eq.outs[0]]

    def terms(self, root: Equation) -> list[int]:
        found, waiting = [], [root]
        while waiting:
            eq = waiting.pop()
            for i in eq.ins:
                if self.is_part(i, eq):
                    waiting.append(self.made[i])
                else:
                    found.append(i)
        return found

    def kinds(self, root: Equation) -> dict[str, list[tuple]]:
        """Return the terms of a sum by what they are: the factors of products, and other terms as they are."""
        found: dict[str, list[tuple]] = {}
        for i in self.terms(root):
            kind, factors = self.factors(i, self.types[root.outs[0]])
            found.setdefault(kind, []).append(factors or (i,))
        return found

    def total(self, root: Equation, kinds: dict) -> Equation:
        """Write a sum with its products merged; return what is its last addition, or the equation as it was."""
        ready = [k for k, some in kinds.items() if self.pays(k, some) or (k == "rows" and _set_of(some) in self.shared)]
        if not ready:
            return root
        rest = [i for i in self.terms(root) if self.factors(i, self.types[root.outs[0]])[0] not in ready]
        rest += [self.merge(kind, kinds[kind]) for kind in ready]
        while len(rest) > 2:
            rest = [self.add(rest[0], rest[1]), *rest[2:]]
        if len(rest) == 2:
            return Equation(root.prim, tuple(rest), {}, root.outs, root.place)
        last = self.equations.pop()
        return Equation(last.prim, last.ins, last.params, root.outs, root.place)

    def pays(self, kind: str, some: list[tuple]) -> bool:
        """Return whether the stacks fit the limit of memory, and are smaller than the sums that they save."""
        if kind not in ("product", "outer") or len(some) < FEWEST:
            return False
        nbytes = [sum(self.types[f].nbytes for f in side) for side in zip(*some, strict=True)]
        p, q = some[0]
        m, n = self.types[p].shape[-1], self.types[q].shape[-1]
        rows = max(self.types[f].shape[0] for f, _ in some) if kind == "product" else 1
        return max(nbytes) <= MOST and rows * (m + n) <= m * n

    def factors(self, i: int, t: Type) -> tuple[str, tuple]:
        """Return what a term is made of: "product" of p transposed and q, "outer" of two vectors, or "rows" of x."""
        eq = self.made.get(i)
        if eq is None or self.uses[i] != 1 or self.types[i] != t:
            return "", ()
        if eq.prim is matmul:
            p = find_transposed(self.made.get(eq.ins[0]))
            if p is not None:
                return self.check("product", (p, eq.ins[1]), t, 2)
        elif eq.prim is multiply:
            for column, row in (eq.ins, eq.ins[::-1]):
                c = self.made.get(column)
                if c is not None and c.prim is getitem_p and c.params["template"] == (Ellipsis, None):
                    return self.check("outer", (c.ins[0], row), t, 1)
        elif eq.prim is sum_p and eq.params["axis"] == (0,) and len(t.shape) == 1:
            return self.check("rows", (eq.ins[0],), t, 2)
        return "", ()

    def check(self, kind: str, factors: tuple, t: Type, rank: int) -> tuple[str, tuple]:
        kinds = [self.types[f] for f in factors]
        good = all(len(x.shape) == rank and x.dtype == t.dtype and x.kind == ARRAY for x in kinds)
        return (kind, factors) if good and tuple(x.shape[-1] for x in kinds) == t.shape[-len(kinds) :] else ("", ())

    def merge(self, kind: str, some: list) -> int:
        slices = [self.slice_of(f[0]) for f in some]
        ks = sorted(s[1] for s in slices if s is not None)
        if len({s and s[0] for s in slices}) == 1 and slices[0] and ks == list(range(ks[0], ks[0] + len(some))):
            some = [f for _, f in sorted(zip((s[1] for s in slices if s), some, strict=True))]
            first = self.run_of(slices[0][0], ks)
        else:  # what is computed last in a reverse pass belongs to the first step
            some = sorted(some, key=lambda f: -f[-1])
            first = -1
        matrix = kind != "outer"
        if first < 0:
            first = self.stack([f[0] for f in some], matrix)
        first = self.ensure_shape(first, (int(np.prod(self.types[first].shape[:-1])), self.types[first].shape[-1]))
        if kind == "rows":
            return self.sum(first, (0,))
        second = self.stack([f[1] for f in some], matrix)
        return self.matmul(self.matrix_transpose(first), second)

    def stack(self, values: list[int], matrix: bool) -> int:
        """Return matrices one below the other, or vectors as the rows of a matrix."""
        key = (tuple(values), matrix)
        if key not in self.stacks:
            found = self.concatenate(values, 0)
            if not matrix:
                found = self.ensure_shape(found, (len(values), self.types[values[0]].shape[-1]))
            self.stacks[key] = found
        return self.stacks[key]


def _set_of(some: list[tuple]) -> frozenset[int]:
    """Return the last factors of some terms: what is stacked for all of them is there for their sum over rows, too."""
    return frozenset(factors[-1] for factors in some)


# --- stacks within stacks ----------------------------------------------------------------------------------------


def share_stacks(graph: Graph) -> Graph:
    """Let a stack whose parts are a run of those of a longer one be a slice of that, so that nothing is copied.

    What needs the shorter one moves behind the longer one, unless that needs it itself.
    """
    joins = [eq for eq in graph.equations if eq.prim is concatenate_p and eq.params["axis"] == 0]
    stacks = sorted([eq for eq in joins if len(eq.ins) >= LONG], key=lambda eq: -len(eq.ins))
    having: dict[int, dict[int, int]] = {}  # value -> number of a stack, and where it is in that
    for k, eq in enumerate(stacks):
        for start, i in enumerate(eq.ins):
            having.setdefault(i, {}).setdefault(k, start)
    removed: set[int] = set()
    for k, short in enumerate(stacks):
        for n, start in having[short.ins[0]].items():  # the longest first
            long = stacks[n]
            if len(long.ins) == len(short.ins):
                break
            if n not in removed and long.ins[start : start + len(short.ins)] == short.ins:
                equations = _slice_along(graph, short, long, start)
                if equations is not None:
                    graph = graph.replace(equations=equations)
                    removed.add(k)
                    break
    return graph


def _slice_along(graph: Graph, short: Equation, long: Equation, start: int) -> list[Equation] | None:
    """Return the equations with one stack as a slice of another; None if the other one depends on it."""
    rows = [graph.types[i].shape[0] for i in long.ins]
    first = sum(rows[:start])
    template = (slice(first, first + sum(rows[start : start + len(short.ins)])),)
    part = Equation(getitem_p, long.outs, {"template": template}, short.outs, short.place)
    if any(eq is long for eq in graph.equations[: graph.equations.index(short)]):
        return [part if eq is short else eq for eq in graph.equations]
    late, waiting, equations = set(short.outs), [part], []
    for eq in graph.equations:
        if waiting and not late.isdisjoint(eq.ins):
            if eq is long or eq.is_guard or has_effects(eq):
                return None
            late.update(eq.outs)
            waiting.append(eq)
        elif eq is long:
            equations += [eq, *waiting]
            waiting = []
        elif eq is not short:
            equations.append(eq)
    return equations
