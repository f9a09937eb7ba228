"""How few products with vectors tell all entries of a sparse matrix: colourings of its columns, or of its rows.

Columns without a common row can share one product: each entry of the result belongs to one of them (Curtis, Powell and
Reid, J. Inst. Maths Applics 13, 1974). The colouring is the greedy one, column by column, which for banded matrices is
the best possible; what colours each row has seen is kept as the bits of one Python integer. A few full rows would force
a colour for each column, so these are computed by themselves, by products from the other side (Coleman and Verma,
SIAM J. Sci. Comput. 19, 1998).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import scipy.sparse

from fad.errors import ShapeMismatchError
from fad.sparse.program import Program
from fad.sparse.sets import kind_of_index

REVERSE = 2  # what a product from the left costs, in products from the right
SECOND = 1 << 20  # entries up to which another order of columns is tried
_ROUNDS = 4  # in which the blocks of a block-diagonal matrix must be found
_SLAB = 1 << 10  # rows that are coloured at once


@dataclass(eq=False)
class Terms:
    """Numbers among those of all products that entries consist of.

    Term number i is element ``take[i]``, where there are `factors` times the element that these name, of which the one
    behind all products is 1. It is added to entry ``entries[i]``; without `entries` it is the first of entry i.
    """

    take: Any
    factors: Any = None
    entries: Any = None


@dataclass(eq=False)
class Plan:
    """Which products to compute, and where each entry of the matrix stands in them.

    ``pushed`` says for each column the number of the product it is part of, -1 for none; ``pulled`` for each row. The
    results of all products from the right, then those of all from the left, are one long vector, of which the entries
    are elements, or sums of terms where gathers are cut. The products are those of the function between then, whose
    columns (and for a Hessian rows) are more than those of `pattern`.
    """

    pattern: Any  # csr_array of booleans
    pushed: Any
    pulled: Any
    first: Terms  # of each entry
    more: Terms | None = None
    inner: Plan | None = None  # that for the parts of which `fad.sparse.chains` makes the whole: checks are its own
    cut: Any = None  # a `fad.sparse.gathers.Cut`
    direct: Any = ()  # numbers of the leaves of the input that a function with cut gathers uses otherwise, too
    origins: Any = None  # the input that each column of the function between the gathers belongs to
    symmetric: bool = False  # whether its rows belong to the same
    program: Program = field(default_factory=Program)
    precision: Any = None  # the numbers that it computes with, if a check showed that they are shorter than its results

    @cached_property
    def pushes(self) -> int:
        return int(self.pushed.max(initial=-1)) + 1

    @cached_property
    def pulls(self) -> int:
        return int(self.pulled.max(initial=-1)) + 1

    @property
    def products(self) -> int:
        """How many numbers all products have together."""
        return self.pushes * self.pulled.size + self.pulls * self.pushed.size

    @cached_property
    def members(self) -> tuple[Any, Any]:
        """The vectors to push and those to pull, as rows of booleans."""
        return _members(self.pushed, self.pushes), _members(self.pulled, self.pulls)

    @cached_property
    def drawn(self) -> Any:
        """One vector drawn at random for the check: that is pushed, or pulled where none is pushed.

        Its numbers are the same in single precision.
        """
        found = np.random.default_rng(0).uniform(0.5, 1.5, self.pattern.shape[1 if self.forward else 0])
        return found.astype(np.float32).astype(float)

    @property
    def drawn_between(self) -> Any:
        """The same for the function between the gathers."""
        return self.drawn if self.cut is None or not self.forward else self.drawn[self.origins]

    @cached_property
    def places(self) -> tuple[Any, Any]:
        """The row and the column of each entry."""
        return places(self.pattern)

    @property
    def forward(self) -> bool:
        """Whether the check is a product from the right."""
        return self.pushes > 0 or self.pulls == 0


def _no_group(size: int) -> Any:
    """Return the groups of so many rows or columns that are in none, in the memory of one."""
    return np.broadcast_to(np.int32(-1), (size,))


def _members(groups: Any, count: int) -> Any:
    """Return one row of booleans for each group, true at its members."""
    rows = np.zeros((count, groups.size), bool)
    some = np.flatnonzero(groups >= 0)
    rows[groups[some], some] = True
    return rows


def colour(rows: Any) -> Any:
    """Return a colour for each row of a CSR matrix such that rows of one colour have no common column; -1 if empty."""
    counts = np.diff(rows.indptr)
    widest = np.bincount(rows.indices, minlength=1).max(initial=0)
    found = _colour_blocks(rows, counts, widest)
    if found is not None:
        return found
    found = _greedy(rows)
    if found.max(initial=-1) + 1 > widest and rows.nnz <= SECOND:
        other = _greedy(rows, np.argsort(-counts, kind="stable"))
        found = min(found, other, key=lambda colours: colours.max(initial=-1))
    return found


def _colour_blocks(rows: Any, counts: Any, widest: int) -> Any:
    """Number the rows of each block of a block-diagonal matrix; None where that takes more colours than need be."""
    some = np.flatnonzero(counts)
    if not some.size:
        return None
    kind = rows.indices.dtype
    starts, block_of_column = rows.indptr[some], np.arange(rows.shape[1], dtype=kind)
    for _ in range(_ROUNDS):  # the least column that a row is connected with names its block
        block = np.minimum.reduceat(block_of_column[rows.indices], starts)
        if np.bincount(block).max() > widest:
            return None
        wide = np.repeat(block, counts[some])
        if np.array_equal(wide, block_of_column[rows.indices]):
            break
        np.minimum.at(block_of_column, rows.indices, wide)
    else:
        return None
    wide = block_of_column = starts = None
    order = np.argsort(block, kind="stable")
    ends = np.cumsum(np.bincount(block), dtype=kind)
    colours = np.full(counts.size, -1, np.int32)
    rank = np.arange(order.size, dtype=kind)
    block = block[order]
    rank -= np.concatenate([np.zeros(1, kind), ends])[block]
    colours[some[order]] = rank
    return colours


def _greedy(rows: Any, order: Any = None) -> Any:
    taken = [0] * rows.shape[1]
    colours = np.full(rows.shape[0], -1, np.int32)
    for start in range(0, colours.size, _SLAB):  # of Python's numbers only so many are there at once
        slab = slice(start, start + _SLAB) if order is None else order[start : start + _SLAB]
        part = rows[slab]
        indptr, indices = part.indptr.tolist(), part.indices.tolist()
        found = []
        for first, last in itertools.pairwise(indptr):
            places = indices[first:last]
            seen = 0
            for j in places:
                seen |= taken[j]
            bit = ~seen & (seen + 1)  # the lowest that is not set
            for j in places:
                taken[j] |= bit
            found.append(bit.bit_length() - 1 if places else -1)
        colours[slab] = found
    return colours


def plan_passes(pattern: Any, mode: str) -> Plan:
    """Return the plan with the fewest passes: forward ("fwd"), in reverse ("rev"), or whichever is cheaper ("auto")."""
    m, n = pattern.shape
    if mode == "fwd":
        return _compress(pattern, colour(pattern.T.tocsr()), _no_group(m))
    if mode == "rev":
        return _compress(pattern, _no_group(n), colour(pattern))
    bound, rows = _heavy(_count_in_rows(pattern), REVERSE)
    other_bound, columns = _heavy(_count_in_columns(pattern), 1 / REVERSE)
    groups = []
    if bound <= REVERSE * other_bound:
        groups.append((colour(without(pattern, rows).T.tocsr()), _number(rows, m)))
    if not groups or _cost_of_groups(groups[0]) > REVERSE * other_bound:
        groups.append((_number(columns, n), colour(_without_columns(pattern, columns))))
    return _compress(pattern, *min(groups, key=_cost_of_groups))


def _cost_of_groups(groups: tuple) -> int:
    pushed, pulled = groups
    return int(pushed.max(initial=-1)) + 1 + REVERSE * (int(pulled.max(initial=-1)) + 1)


def cost(plan: Plan) -> int:
    """Return what a plan costs, in passes of forward mode."""
    return plan.pushes + REVERSE * plan.pulls


def bound_cost(pattern: Any, symmetric: bool) -> float:
    """Return what a plan for a pattern costs at least."""
    rows = _count_in_rows(pattern)
    if symmetric:
        return _heavy(rows, 1.0)[0]
    return min(_heavy(rows, REVERSE)[0], REVERSE * _heavy(_count_in_columns(pattern), 1 / REVERSE)[0])


def _count_in_rows(pattern: Any) -> Any:
    return np.diff(pattern.indptr)


def _count_in_columns(pattern: Any) -> Any:
    return np.bincount(pattern.indices, minlength=pattern.shape[1])


def _heavy(counts: Any, price: float) -> tuple[float, Any]:
    """Return which rows, of so many places each, had better be computed alone, and a lower bound of the cost then.

    One alone costs `price`.
    """
    order = np.argsort(-counts, kind="stable")
    costs = np.append(counts[order], 0) + price * np.arange(counts.size + 1)
    k = int(np.argmin(costs))
    return float(costs[k]), order[:k]


def _number(chosen: Any, size: int) -> Any:
    """Return the groups of so many rows or columns where each of the chosen is one by itself."""
    groups = _no_group(size)
    if len(chosen):
        groups = groups.copy()
        groups[chosen] = np.arange(len(chosen))
    return groups


def without(pattern: Any, heavy: Any) -> Any:
    """Return a CSR matrix with some rows emptied."""
    if not len(heavy):
        return pattern
    kept = np.ones(pattern.shape[0], bool)
    kept[heavy] = False
    counts = np.diff(pattern.indptr)
    some = np.repeat(kept, counts)
    indptr = np.concatenate([[0], np.cumsum(np.where(kept, counts, 0))])
    return type(pattern)((pattern.data[some], pattern.indices[some], indptr), shape=pattern.shape)


def _without_columns(pattern: Any, heavy: Any) -> Any:
    """Return a CSR matrix with some columns emptied."""
    if not len(heavy):
        return pattern
    kept = np.ones(pattern.shape[1], bool)
    kept[heavy] = False
    some = kept[pattern.indices]
    indptr = np.concatenate([[0], np.cumsum(some)])[pattern.indptr]
    return type(pattern)((pattern.data[some], pattern.indices[some], indptr), shape=pattern.shape)


def _compress(pattern: Any, pushed: Any, pulled: Any) -> Plan:
    """Return the plan of products with groups of columns and of rows.

    One side's groups are of one member each, if it has any: that side tells all of theirs, and the other the rest.
    """
    m, n = pattern.shape
    counts = np.diff(pattern.indptr)
    pushes = int(pushed.max(initial=-1)) + 1
    start = pushes * m
    kind = kind_of_index(start + (int(pulled.max(initial=-1)) + 1) * n)
    take = np.repeat(start + pulled.astype(kind) * kind(n), counts)
    take += pattern.indices
    if start:
        ahead = (pushed.astype(kind) * kind(m))[pattern.indices]
        ahead += np.repeat(np.arange(m, dtype=kind), counts)
        alone = np.count_nonzero(pushed >= 0) == pushes  # columns: what they do not tell, rows do
        by_columns = pushed[pattern.indices] >= 0 if alone else np.repeat(pulled < 0, counts)
        np.copyto(take, ahead, where=by_columns)
    return Plan(pattern, pushed, pulled, Terms(take))


def places(pattern: Any) -> tuple[Any, Any]:
    """Return the row and the column of each entry of a CSR matrix."""
    rows = np.arange(pattern.shape[0], dtype=pattern.indices.dtype)
    return np.repeat(rows, np.diff(pattern.indptr)), pattern.indices


def plan_symmetric(pattern: Any) -> Plan:
    """Return a plan for a symmetric matrix from products with vectors alone: a full column tells its row, too."""
    n = pattern.shape[0]
    if pattern.shape != (n, n):
        raise ShapeMismatchError(f"the pattern of a Hessian is square, but it has shape {pattern.shape}")
    turned = pattern.T.tocsr()
    if not all(np.array_equal(getattr(turned, name), getattr(pattern, name)) for name in ("indptr", "indices")):
        pattern = (pattern + turned).tocsr()  # one triangle will do
    del turned
    _, heavy = _heavy(_count_in_rows(pattern), 1.0)
    rest = without(without(pattern, heavy).T.tocsr(), heavy) if len(heavy) else pattern
    pushed = colour(rest)
    first = int(pushed.max(initial=-1)) + 1
    pushed[heavy] = first + np.arange(len(heavy))
    rows, columns = places(pattern)
    kind = kind_of_index((int(pushed.max(initial=-1)) + 1) * n)
    start = pushed.astype(kind) * kind(n)
    take = start[columns]
    take += rows
    if len(heavy):
        alone = np.zeros(n, bool)
        alone[heavy] = True
        turned = np.flatnonzero(alone[rows] & ~alone[columns])
        take[turned] = start[rows[turned]] + columns[turned]
    return Plan(pattern, pushed, _no_group(n), Terms(take))


# --- functions with cut gathers --------------------------------------------------------------------------------------


def compose(plan: Plan, sources: Any, inputs: int, symmetric: bool) -> Plan:
    """Return a plan for all of a function from one for the function between its gathers, which is used up.

    Column j of that one's matrix, and row j of a symmetric one's, belongs to input number ``sources[j]``.
    """
    inner, take = plan.pattern, plan.first.take
    del plan.pattern, plan.first  # not to be held beside what is made of them
    kind, make, m, indptr = inner.indices.dtype, type(inner), inner.shape[0], inner.indptr
    ordered = make((take, sources.astype(kind)[inner.indices], indptr), shape=(m, inputs))
    del inner, take
    if symmetric:  # rows of one input lie one after the other, and are one
        ordered = ordered[np.argsort(sources, kind="stable")]
        m, counts = inputs, np.bincount(sources, np.diff(indptr), inputs)
        indptr = np.concatenate([[0], np.cumsum(counts.astype(kind))]).astype(kind)
        ordered = make((ordered.data, ordered.indices, indptr), shape=(m, inputs))
    ordered.sort_indices()  # its elements along with it
    take, columns = ordered.data, ordered.indices
    pattern, first, numbers = join_places(columns, indptr, (m, inputs))
    more = None if first.all() else Terms(take[~first], entries=numbers[~first])
    return Plan(pattern, plan.pushed, plan.pulled, Terms(take[first]), more)


def join_places(columns: Any, indptr: Any, shape: tuple) -> tuple[Any, Any, Any]:
    """Return the pattern of places that are given in order, some of them more than once.

    And of each whether it is given for the first time, and which place of the pattern it is.
    """
    first = np.ones(columns.size, bool)
    np.not_equal(columns[1:], columns[:-1], out=first[1:])
    first[indptr[:-1][np.diff(indptr) > 0]] = True
    kind = kind_of_index(max(columns.size, *shape))
    numbers = np.cumsum(first, dtype=kind)
    indptr = np.concatenate([np.zeros(1, kind), numbers])[indptr]
    numbers -= 1
    columns = columns[first].astype(kind, copy=False)
    return scipy.sparse.csr_array((np.ones(columns.size, bool), columns, indptr), shape=shape), first, numbers
