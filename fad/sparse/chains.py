"""Derivatives through gathers and sums of what was computed: the outer function's times the inner one's, term by term.

In ``f(x) = g(x, h(x)[i])`` many results may share an element of ``h(x)``, and with it all that this depends on: they
would need a pass each. The derivatives of g in what it gathers, and those of h, have few numbers in a row; both are
read off the same passes, and the entries of the matrix that is wanted are sums of products of two of them. So it is
where computed values are added up at index arrays, ``g(np.bincount(i, h(x)))``.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.sparse.colouring import Plan, join_places, split_terms
from fad.sparse.sets import LIMIT, kind_of_index


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
    wide = int(max(inputs, origins.max(initial=-1) + 1))
    columns, take = origins.astype(kind)[inner.pattern.indices], inner.first.take
    mine = slice(0, indptr[outputs])
    below = make((take[mine.stop :], columns[mine.stop :], indptr[outputs:] - mine.stop), shape=(fed.size, inputs))
    below = below[np.argsort(fed, kind="stable")]  # what is added up to one number lies side by side
    starts = below.indptr[np.bincount(fed + 1, minlength=wide - inputs + 1).cumsum()].astype(kind)
    own, columns = take[mine], columns[mine]
    numbers = columns - inputs
    through = numbers >= 0
    counts = np.where(through, np.diff(starts, append=kind(0))[numbers * through], kind(1))
    size = int(counts.sum(dtype=np.int64))
    if size > LIMIT:
        return None
    # Term after term: which entry of `inner` it begins with, and which of those below it goes on with, if any.
    entries = np.repeat(np.arange(own.size, dtype=kind), counts)
    ends = np.cumsum(counts, dtype=kind)
    rows = np.append(kind(0), ends)[indptr[: outputs + 1]]
    second = np.arange(size, dtype=kind)
    second += np.repeat(np.where(through, starts[numbers * through], kind(0)) - ends + counts, counts)
    del numbers, counts, ends
    through = through[entries]
    columns = columns[entries]
    own = own[entries]
    del entries
    second[~through] = 0
    columns[through] = below.indices[second[through]]
    factors = np.where(through, below.data[second] if below.nnz else kind(0), kind(inner.products))
    del second, through, below
    ordered = make((np.arange(size, dtype=kind), columns, rows), shape=(outputs, inputs))
    ordered.sort_indices()
    order, columns = ordered.data, ordered.indices
    own, factors = own[order].astype(kind), factors[order]
    del order, ordered
    whole, first = join_places(columns, rows, (outputs, inputs))
    return Plan(whole, inner.pushed, inner.pulled, *split_terms(first, own, factors), inner)
