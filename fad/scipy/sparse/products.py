"""Products of sparse matrices with dense arrays: the pattern of entries, and the operation over their values."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse

from fad.core.primitives.archetypes import cast
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.places.indexing import pick
from fad.scipy.registration import on_host

# --- where the entries are ------------------------------------------------------------------------------------------


class Pattern:
    """The places of a sparse matrix's entries, one ``(row, column)`` for each; compared by identity."""

    __slots__ = ("columns", "indptr", "order", "rows", "shape")

    def __init__(self, rows: Any, columns: Any, shape: tuple, indptr: Any = None):
        self.rows, self.columns = np.asarray(rows), np.asarray(columns)
        self.shape = tuple(int(n) for n in shape)
        self.order = None  # that brings the entries into the order of rows
        if indptr is None:
            if np.any(self.rows[1:] < self.rows[:-1]):
                self.order = np.argsort(self.rows, kind="stable")
            counts = np.bincount(self.rows, minlength=self.shape[0])
            indptr = np.concatenate([[0], np.cumsum(counts)])
        self.indptr = indptr

    def find_places(self) -> Any:
        """Return the places as numbers: those of the dense matrix's elements, row by row."""
        return self.rows * np.int64(self.shape[1]) + self.columns

    def transpose(self) -> Pattern:
        """Return the places of the transposed matrix."""
        return Pattern(self.columns, self.rows, self.shape[::-1])

    def matrix(self, data: Any) -> Any:
        """Return SciPy's matrix of plain entries; entries at one place add up."""
        order = self.order
        indices = self.columns if order is None else self.columns[order]
        return scipy.sparse.csr_array(
            (data if order is None else data[order], indices, self.indptr), shape=self.shape, copy=False
        )


# --- products -------------------------------------------------------------------------------------------------------


def _forward(data, x, *, pattern, transposed):
    on_host("the product with a sparse matrix", data, x)
    matrix = pattern.matrix(data)
    return (matrix.T if transposed else matrix) @ x


def _jvp(tangents, y, xs, params):
    td, tx = tangents
    parts = [] if td is None else [bind(sparse_matmul_p, td, xs[1], **params)]
    parts += [] if tx is None else [bind(sparse_matmul_p, xs[0], tx, **params)]
    return cast(parts[0] if len(parts) == 1 else parts[0] + parts[1], y.dtype)


def at_places(left: Any, right: Any, pattern: Pattern, transposed: bool) -> Any:
    """Return the entries of ``left @ right.T`` at the places of a pattern."""
    rows, columns = (pattern.columns, pattern.rows) if transposed else (pattern.rows, pattern.columns)
    return np.sum(pick(left, (rows,)) * pick(right, (columns,)), axis=-1)


def run_batch_as_columns(run: Any, size: int, batched: Any, xs: Any) -> Any:
    """Run an operation of entries and columns over batch elements: those of the columns alone are more columns."""
    data, x = xs
    if batched[0]:
        return np.stack([run(data[i], x[i] if batched[1] else x) for i in range(size)])
    wide = np.moveaxis(x, 0, -1)
    y = run(data, wide.reshape(wide.shape[0], math.prod(wide.shape[1:])))
    return np.moveaxis(y.reshape(y.shape[0], *wide.shape[1:]), -1, 0)


def sample_pattern(n: int, m: int, square: bool = False) -> Pattern:
    """Return some places of an n by m matrix, among them the diagonal."""
    i, j = np.indices((n, m))
    rows, columns = np.nonzero(((i + 2 * j) % 3 == 0) | (i == j))
    turn = np.arange(len(rows))[::-1] if not square else np.arange(len(rows))
    return Pattern(rows[turn], columns[turn], (n, m))


def _samples(s):
    one, two = sample_pattern(3, 4), sample_pattern(4, 4, True)
    return [
        call(s.real(one.rows.size), s.real(4, 2), pattern=one, transposed=False),
        call(s.real(one.rows.size), s.real(3, 1), pattern=one, transposed=True),
        call(s.real(two.rows.size), s.real(4, 3), pattern=two, transposed=False),
    ]


sparse_matmul_p: Any = register(
    Primitive(
        "scipy.sparse.product",
        _forward,
        dependence="sparse product",
        jvp=_jvp,
        vjp=(
            lambda ct, y, data, x, *, pattern, transposed: cast(at_places(ct, x, pattern, transposed), data.dtype),
            lambda ct, y, data, x, *, pattern, transposed: cast(
                bind(sparse_matmul_p, data, ct, pattern=pattern, transposed=not transposed), x.dtype
            ),
        ),
        batch=lambda size, batched, xs, params: run_batch_as_columns(
            lambda *ops: bind(sparse_matmul_p, *ops, **params), size, batched, xs
        ),
        archetype="bilinear",
        samples=_samples,
        doc="The product of a sparse matrix, given by its entries, and a dense array.",
    )
)
