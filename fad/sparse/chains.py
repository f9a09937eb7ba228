"""Derivatives through gathers and sums of what was computed: the outer function's times the inner one's, term by term.

In ``f(x) = g(x, h(x)[i])`` many results may share an element of ``h(x)``, and with it all that this depends on: they
would need a pass each. The derivatives of g in what it gathers, and those of h, have few numbers in a row; both are
read off the same passes, and the entries of the matrix that is wanted are sums of products of two of them. So it is
where computed values are added up at index arrays, ``g(np.bincount(i, h(x)))``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.sparse.colouring import Plan, places
from fad.sparse.sets import LIMIT, kind_of_index


def chain(inner: Plan, origins: Any, fed: Any, inputs: int) -> Plan | None:
    """Return a plan for a function from one for its parts; None where what is gathered is itself computed so.

    The last rows of the matrix of `inner` belong to the elements of the arrays that it gathers from, or adds up:
    element k to number ``fed[k]``. Column j belongs to input number ``origins[j]``, or from `inputs` on to those.
    """
    outputs = inner.pattern.shape[0] - fed.size
    pattern, indptr = inner.pattern, inner.pattern.indptr
    rows, columns = places(pattern)
    columns = origins[columns]
    mine, through = rows < outputs, columns >= inputs
    if np.any(through & ~mine):
        return None
    direct, outer = np.flatnonzero(mine & ~through), np.flatnonzero(mine & through)
    numbers = columns[outer] - inputs
    elements = np.argsort(fed, kind="stable")
    starts = np.bincount(fed + 1, minlength=int(numbers.max(initial=0)) + 2).cumsum()
    each, outer = _ranges(starts, numbers), np.repeat(outer, np.diff(starts)[numbers])
    used = elements[each] + outputs
    counts = np.diff(indptr)[used]
    if direct.size + counts.sum(dtype=np.int64) > LIMIT:
        return None
    first, second = np.repeat(outer, counts), _ranges(indptr, used)
    rows = np.concatenate([rows[direct], rows[first]])
    columns = np.concatenate([columns[direct], columns[second]])
    order = np.lexsort((columns, rows))
    rows, columns = rows[order], columns[order]
    fresh = np.ones(order.size, bool)  # whether a term is the first of its entry
    fresh[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
    kind = kind_of_index(max(inner.products + 1, order.size, inputs, outputs))
    sums = np.flatnonzero(fresh).astype(kind)
    one = np.full(direct.size, inner.products)
    take = np.concatenate([inner.take[direct], inner.take[first]])[order].astype(kind)
    factors = np.concatenate([one, inner.take[second]])[order].astype(kind)
    starts = np.searchsorted(rows[fresh], np.arange(outputs + 1)).astype(kind)
    whole = type(pattern)((np.ones(sums.size, bool), columns[fresh].astype(kind), starts), shape=(outputs, inputs))
    return Plan(whole, inner.pushed, inner.pulled, take, sums, factors, inner)


def _ranges(starts: Any, chosen: Any) -> Any:
    """Return the numbers from ``starts[k]`` up to ``starts[k + 1]`` for each k that is chosen, one after the other."""
    counts = np.diff(starts)[chosen]
    return np.arange(counts.sum(dtype=np.int64)) + np.repeat(starts[chosen] - np.cumsum(counts) + counts, counts)
