"""Derivatives through gathers and sums of what was computed: the outer function's times the inner one's, term by term.

In ``f(x) = g(x, h(x)[i])`` many results may share an element of ``h(x)``, and with it all that this depends on: they
would need a pass each. The derivatives of g in what it gathers, and those of h, have few numbers in a row; both are
read off the same passes, and the entries of the matrix that is wanted are sums of products of two of them. So it is
where computed values are added up at index arrays, ``g(np.bincount(i, h(x)))``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.sparse.colouring import Plan, bound_cost, bound_reverse, join_places, split_terms
from fad.sparse.sets import LIMIT, kind_of_index, sort_by_counting

_SOME = 1 << 11  # columns that are looked at to bound how many passes others take


def is_chain(inner: Plan, origins: Any, fed: Any, inputs: int) -> bool:
    """Return whether arrays that are gathered from, or added up, depend on inputs alone, and on nothing of the kind."""
    pattern = inner.pattern
    below = pattern.indices[pattern.indptr[pattern.shape[0] - fed.size] :]
    return not np.any(origins[below] >= inputs)


def chain(inner: Plan, origins: Any, fed: Any, inputs: int) -> Plan | None:
    """Return a plan for a function from one for its parts; None where the entries have too many terms.

    The last rows of the matrix of `inner` belong to the elements of the arrays that it gathers from, or adds up:
    element k to number ``fed[k]``. Column j belongs to input number ``origins[j]``, or from `inputs` on to those.
    """
    make, indptr, outputs = type(inner.pattern), inner.pattern.indptr, inner.pattern.shape[0] - fed.size
    kind = kind_of_index(max(inner.products + 1, LIMIT))
    many = int(max(origins.max(initial=-1) - inputs, fed.max(initial=-1))) + 1  # elements gathered from, or added up
    columns, take = origins.astype(kind)[inner.pattern.indices], inner.first.take.astype(kind, copy=False)
    mine = slice(0, indptr[outputs])
    below = make((take[mine.stop :], columns[mine.stop :], indptr[outputs:] - mine.stop), shape=(fed.size, inputs))
    below = below[sort_by_counting(fed, many)]  # what is added up to one number lies side by side
    starts = below.indptr[np.bincount(fed + 1, minlength=many + 1).cumsum()].astype(kind)
    own, numbers = take[mine], columns[mine] - inputs
    direct = numbers < 0
    # Each entry of `inner` goes on with some of those below, or with one that is made for it: one, times nothing else.
    alone = np.flatnonzero(direct)
    factors = np.concatenate([below.data, np.full(alone.size, inner.products, kind)])
    below = np.concatenate([below.indices, columns[alone]])
    counts = np.append(np.diff(starts), kind(1))[numbers.clip(-1)]
    begin = starts[numbers.clip(0)]
    begin[alone] = np.arange(factors.size - alone.size, factors.size, dtype=kind)
    del columns, numbers, direct, alone, take
    size = int(counts.sum(dtype=np.int64))
    if size > LIMIT:
        return None
    ends = np.cumsum(counts, dtype=kind)
    rows = np.append(kind(0), ends)[indptr[: outputs + 1]]
    begin -= ends - counts
    second = np.arange(size, dtype=kind)
    second += np.repeat(begin, counts)
    own = np.repeat(own, counts)
    del begin, counts, ends
    ordered = make((np.arange(size, dtype=kind), below[second], rows), shape=(outputs, inputs))
    ordered.sort_indices()
    order, columns = ordered.data, ordered.indices
    own, factors = own[order], factors[second[order]]
    del order, ordered, second, below
    whole, starts = join_places(columns, rows, (outputs, inputs))
    return Plan(whole, inner.pushed, inner.pulled, *split_terms(starts, own, factors), inner)


def bound_others(whole: Plan, inner: Plan, origins: Any, fed: Any, inputs: int) -> float:
    """Return what passes cost at least that do without sums of products, as those of the plan `whole` are.

    Where they cut gathers of inputs, the matrix has longer rows, but shorter columns: those are counted for some.
    """
    pattern = inner.pattern
    outputs, make = pattern.shape[0] - fed.size, type(pattern)
    own, below = pattern[:outputs], pattern[outputs:]
    every = -(-pattern.shape[1] // _SOME)
    some = np.flatnonzero(below.indices % every == 0)
    numbers = np.repeat(fed, np.diff(below.indptr))[some]
    through = np.flatnonzero(origins[own.indices] >= inputs)
    rows = np.repeat(np.arange(outputs), np.diff(own.indptr))[through]
    many = int(max(origins.max(initial=-1) - inputs, fed.max(initial=-1))) + 1
    first = make((np.ones(some.size, bool), (below.indices[some] // every, numbers)), shape=(_SOME, many))
    second = make((np.ones(rows.size, bool), (origins[own.indices[through]] - inputs, rows)), shape=(many, outputs))
    return min(bound_cost(whole.pattern, False), bound_reverse(np.diff((first @ second).indptr)))
