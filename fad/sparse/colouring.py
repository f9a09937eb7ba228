"""How few products with vectors tell all entries of a sparse matrix: colourings of its columns, or of its rows.

Columns without a common row can share one product: each entry of the result belongs to one of them (Curtis, Powell and
Reid, J. Inst. Maths Applics 13, 1974). Blocks and bands are coloured at once, as well as can be; others by the greedy
colouring, column by column, in which what colours each row has seen is kept as the bits of one Python integer. A few
full rows would force a colour for each column, so these are computed by themselves, by products from the other side
(Coleman and Verma, SIAM J. Sci. Comput. 19, 1998).
"""

from __future__ import annotations

import itertools
import math
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
    behind all products is 1. It is the first of entry i; or the first ``counts[0]`` are added to entry ``summed[0]``,
    the next ``counts[1]`` to entry ``summed[1]``, and so on.
    """

    take: Any
    factors: Any = None
    summed: Any = None
    counts: Any = None

    @property
    def entries(self) -> Any:
        """Which entry each term is added to."""
        return np.repeat(self.summed, self.counts)


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
    cut_pushed: dict = field(default_factory=dict)  # what `fad.sparse.passes` finds of `pushed`, and of `pulled`
    cut_pulled: dict = field(default_factory=dict)
    precision: Any = None  # the numbers that it computes with, if a check showed that they are shorter than its results

    @cached_property
    def pushes(self) -> int:
        return _count(self.pushed)

    @cached_property
    def pulls(self) -> int:
        return _count(self.pulled)

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

        Its numbers are those of single precision, in the memory of such.
        """
        found = np.random.default_rng(0).uniform(0.5, 1.5, self.pattern.shape[1 if self.forward else 0])
        return found.astype(np.float32)

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


def _shorten(groups: Any) -> Any:
    """Return groups in the shortest integers that hold their numbers: mostly there are few."""
    kind = np.min_scalar_type(-1 - _count(groups))
    return groups.astype(kind, copy=False) if groups.strides[0] else groups


def _members(groups: Any, count: int) -> Any:
    """Return one row of booleans for each group, true at its members."""
    rows = np.zeros((count, groups.size), bool)
    some = np.flatnonzero(groups >= 0)
    rows[groups[some], some] = True
    return rows


def colour(rows: Any, most: float = math.inf) -> Any:
    """Return a colour for each row of a CSR matrix such that rows of one colour have no common column; -1 if empty.

    Return None if that takes more colours than `most`.
    """
    widest = np.bincount(rows.indices, minlength=1).max(initial=0)
    if widest > most:
        return None
    found = _colour_blocks(rows, widest)
    if found is not None:
        return found
    found = _colour_in_turns(rows, int(widest))
    if found is not None:
        return found
    found = _greedy(rows, most)
    if (found is None or _count(found) > widest) and rows.nnz <= SECOND:
        other = _greedy(rows, most, np.argsort(-np.diff(rows.indptr), kind="stable"))
        found = min([c for c in (found, other) if c is not None], key=_count, default=None)
    return found


def _count(groups: Any) -> int:
    return int(groups.max(initial=-1)) + 1


def _colour_blocks(rows: Any, widest: int) -> Any:
    """Number the rows of each block of a block-diagonal matrix; None where that takes more colours than need be."""
    counts = np.diff(rows.indptr)
    some = counts > 0
    counts = counts[some]
    if not counts.size:
        return None
    kind = rows.indices.dtype
    starts, block_of_column = rows.indptr[:-1][some].astype(np.intp), np.arange(rows.shape[1], dtype=kind)
    for k in range(_ROUNDS):  # the least column that a row is connected with names its block
        if k == 0 and rows.has_sorted_indices:
            block = rows.indices[starts]
        else:
            block = np.minimum.reduceat(block_of_column[rows.indices], starts)
        if np.bincount(block).max() > widest:
            return None
        of_entries = np.repeat(block, counts)
        block_of_column[rows.indices] = of_entries  # of several blocks one, and then these are not yet the whole
        if np.array_equal(block_of_column[rows.indices], of_entries):
            break
        np.minimum.at(block_of_column, rows.indices, of_entries)
    else:
        return None
    del of_entries, block_of_column, starts, counts  # not to be held beside what is made of them
    order = np.argsort(block, kind="stable")
    ends = np.cumsum(np.bincount(block), dtype=kind)
    ahead = np.arange(order.size, dtype=kind)
    ahead -= np.concatenate([np.zeros(1, kind), ends])[block[order]]
    rank = np.empty_like(ahead)
    rank[order] = ahead
    colours = np.full(some.size, -1, np.int32)
    colours[some] = rank
    return colours


def _colour_in_turns(rows: Any, count: int) -> Any:
    """Return so many colours again and again, as banded matrices may have them; None if these rows may not."""
    count = max(1, count)
    kind = kind_of_index(rows.shape[1] * count)
    colours, counts = np.arange(rows.shape[0], dtype=kind) % kind(count), np.diff(rows.indptr)
    places = rows.indices * kind(count)
    places += np.repeat(colours, counts)
    if np.bincount(places, minlength=1).max() > 1:
        return None
    return np.where(counts > 0, colours, -1).astype(np.int32)


def _greedy(rows: Any, most: float, order: Any = None) -> Any:
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
        if max(found) >= most:
            return None
    return colours


def plan_passes(pattern: Any, mode: str, most: float = math.inf) -> Plan | None:
    """Return the plan with the fewest passes: forward ("fwd"), in reverse ("rev"), or whichever is cheaper ("auto").

    Return None if it costs more than `most`.
    """
    m, n = pattern.shape
    if mode == "fwd":
        groups = [(colour(pattern.T.tocsr(), most), _no_group(m))]
    elif mode == "rev":
        groups = [(_no_group(n), colour(pattern, most / REVERSE))]
    else:
        bound, rows = find_heavy(_count_in_rows(pattern), REVERSE)
        other_bound, columns = find_heavy(_count_in_columns(pattern), 1 / REVERSE)
        if min(bound, REVERSE * other_bound) > most:
            return None
        groups = []
        if bound <= REVERSE * other_bound:
            rest = without(pattern, rows).T.tocsr()
            groups.append((colour(rest, most - REVERSE * len(rows)), _number(rows, m)))
        if not groups or _cost_of_groups(groups[0]) > REVERSE * other_bound:
            rest = _without_columns(pattern, columns)
            groups.append((_number(columns, n), colour(rest, (most - len(columns)) / REVERSE)))
    best = min(groups, key=_cost_of_groups)
    return None if any(g is None for g in best) else _compress(pattern, *best)


def _cost_of_groups(groups: tuple) -> float:
    pushed, pulled = groups
    return math.inf if pushed is None or pulled is None else _count(pushed) + REVERSE * _count(pulled)


def cost(plan: Plan) -> int:
    """Return what a plan costs, in passes of forward mode."""
    return plan.pushes + REVERSE * plan.pulls


def bound_cost(pattern: Any, symmetric: bool) -> float:
    """Return what a plan for a pattern costs at least."""
    rows = _count_in_rows(pattern)
    if symmetric:
        return find_heavy(rows, 1.0)[0]
    return min(find_heavy(rows, REVERSE)[0], bound_reverse(_count_in_columns(pattern)))


def bound_reverse(counts: Any) -> float:
    """Return what passes in reverse cost at least, of a matrix with so many places in each column."""
    return REVERSE * find_heavy(counts, 1 / REVERSE)[0]


def _count_in_rows(pattern: Any) -> Any:
    return np.diff(pattern.indptr)


def _count_in_columns(pattern: Any) -> Any:
    return np.bincount(pattern.indices, minlength=pattern.shape[1])


def find_heavy(counts: Any, price: float) -> tuple[float, Any]:
    """Return which rows, of so many places each, had better be computed alone, and a lower bound of the cost then.

    One alone costs `price`.
    """
    having = np.bincount(counts, minlength=1)
    more = np.append(np.cumsum(having[:0:-1])[::-1], 0)  # how many have more places than so many
    costs = np.arange(more.size) + price * more
    widest = more.size - 1 - int(np.argmin(costs[::-1]))
    return float(costs[widest]), np.flatnonzero(counts > widest)


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
    pushes = _count(pushed)
    start = pushes * m
    kind = kind_of_index(start + _count(pulled) * n)
    take = np.repeat(start + pulled.astype(kind) * kind(n), counts)
    take += pattern.indices
    if start:
        ahead = (pushed.astype(kind) * kind(m))[pattern.indices]
        ahead += np.repeat(np.arange(m, dtype=kind), counts)
        alone = np.count_nonzero(pushed >= 0) == pushes  # columns: what they do not tell, rows do
        by_columns = pushed[pattern.indices] >= 0 if alone else np.repeat(pulled < 0, counts)
        np.copyto(take, ahead, where=by_columns)
    return Plan(pattern, _shorten(pushed), _shorten(pulled), Terms(take))


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
    _, heavy = find_heavy(_count_in_rows(pattern), 1.0)
    rest = without(without(pattern, heavy).T.tocsr(), heavy) if len(heavy) else pattern
    pushed = colour(rest)
    first = _count(pushed)
    pushed[heavy] = first + np.arange(len(heavy))
    rows, columns = places(pattern)
    kind = kind_of_index(_count(pushed) * n)
    start = pushed.astype(kind) * kind(n)
    take = start[columns]
    take += rows
    if len(heavy):
        alone = np.zeros(n, bool)
        alone[heavy] = True
        turned = np.flatnonzero(alone[rows] & ~alone[columns])
        take[turned] = start[rows[turned]] + columns[turned]
    return Plan(pattern, _shorten(pushed), _no_group(n), Terms(take))


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
    if symmetric:  # rows of one input are one: put in order by columns, then by these rows, each time by counting
        ordered = ordered.tocsc()
        m, ordered = inputs, make((ordered.data, sources[ordered.indices], ordered.indptr), shape=(inputs, inputs))
        ordered = ordered.tocsc()
        indptr = ordered.indptr
    else:
        ordered.sort_indices()  # its elements along with it
    take, columns = ordered.data, ordered.indices
    del ordered
    pattern, starts = join_places(columns, indptr, (m, inputs))
    return Plan(pattern, plan.pushed, plan.pulled, *split_terms(starts, take))


def add_up_columns(pattern: Any, sources: Any, inputs: int) -> Any:
    """Return a pattern with one column for each input, of columns that belong to the inputs ``sources[j]``."""
    columns = sources.astype(pattern.indices.dtype)[pattern.indices]
    parts = np.ones(columns.size, bool), columns, pattern.indptr.copy()
    found = type(pattern)(parts, shape=(pattern.shape[0], inputs))
    found.sum_duplicates()
    return found


def join_places(columns: Any, indptr: Any, shape: tuple) -> tuple[Any, Any]:
    """Return the pattern of places that are given in order, some of them more than once.

    And which ones are given for the first time.
    """
    first = np.ones(columns.size + 1, bool)
    np.not_equal(columns[1:], columns[:-1], out=first[1:-1])
    first[indptr] = True
    kind = kind_of_index(max(columns.size, *shape))
    starts = np.flatnonzero(first[:-1]).astype(kind)
    indptr = np.searchsorted(starts, indptr).astype(kind)
    columns = columns[starts].astype(kind, copy=False)
    return scipy.sparse.csr_array((np.ones(columns.size, bool), columns, indptr), shape=shape), starts


def split_terms(starts: Any, take: Any, factors: Any = None) -> tuple[Terms, Terms | None]:
    """Return the terms that are the first of their entries, and the others, from those of one entry after the other.

    Those of one entry begin at each of `starts`.
    """
    if starts.size == take.size:
        return Terms(take, factors), None
    counts = np.diff(starts, append=starts.dtype.type(take.size))
    counts -= 1
    summed = np.flatnonzero(counts)
    counts = counts[summed]
    summed, counts = summed.astype(take.dtype), counts.astype(np.min_scalar_type(counts.max()))
    more = np.ones(take.size, bool)
    more[starts] = False
    if factors is None:
        return Terms(take[starts]), Terms(take[more], None, summed, counts)
    return Terms(take[starts], factors[starts]), Terms(take[more], factors[more], summed, counts)
