"""Systems with a banded matrix, in time linear in its size: a primitive run by SciPy's ``solve_banded``.

The matrix is stored by its diagonals, ``ab[above + i - j, j] == a[i, j]``: so many below the main one, so many above.
Where it is known to be Hermitian and positive definite, SciPy's ``solveh_banded`` runs it, which refuses any other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.linalg

from fad.backends import backend_of, like
from fad.core.primitives.archetypes import cast
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind


def _rows(x: Any, offset: int) -> Any:
    """Return the rows of an array ``offset`` places further on, zeros beyond its ends."""
    n = x.shape[0]
    if offset == 0:
        return x
    gap = np.zeros_like(x, shape=(min(abs(offset), n), *x.shape[1:]))
    return np.concatenate([x[offset:], gap]) if offset > 0 else np.concatenate([gap, x[:offset]])


def _transpose(ab: Any, below: int, above: int) -> Any:
    """Return the transposed matrix, stored by its diagonals as well."""
    return np.stack([_rows(ab[above - d], d) for d in range(-below, above + 1)])


def times(ab: Any, x: Any, below: int, above: int) -> Any:
    """Multiply a banded matrix with the columns of an array."""
    total: Any = None
    for d in range(-below, above + 1):  # the diagonal j = i + d
        term = _rows(ab[above - d][:, None] * x, d)
        total = term if total is None else total + term
    return total


def _outer(left: Any, right: Any, below: int, above: int) -> Any:
    """Return the diagonals of ``left @ right.T`` that a banded matrix has: the transpose of `times` in `ab`."""
    return np.stack([np.sum(_rows(left, -d) * right, axis=-1) for d in range(above, -below - 1, -1)])


def _forward(ab, b, *, below, above, definite):
    if backend_of(ab, b).name == "numpy":
        if definite:
            return scipy.linalg.solveh_banded(ab[: above + 1], b, check_finite=False)
        return scipy.linalg.solve_banded((below, above), ab, b, check_finite=False)
    n = ab.shape[1]
    i, j = np.indices((n, n))
    inside = (i - j <= below) & (j - i <= above)
    taken = ab[like(ab, np.where(inside, above + i - j, 0)), like(ab, j)]
    dense = np.where(like(ab, inside), taken, 0.0 * ab[0, 0])
    return np.linalg.solve(dense, b)


def _jvp(tangents, y, xs, params):
    tab, tb = tangents
    right = None if tab is None else -times(tab, y, params["below"], params["above"])
    if tb is not None:
        right = tb if right is None else right + tb
    return cast(bind(banded_p, xs[0], right, **params), y.dtype)


def _back(ct, ab, below, above, definite):
    return bind(banded_p, _transpose(ab, below, above), ct, below=above, above=below, definite=definite)


def _vjp_matrix(ct, y, ab, b, *, below, above, definite):
    return cast(-_outer(_back(ct, ab, below, above, definite), y, below, above), ab.dtype)


def _vjp_right(ct, y, ab, b, *, below, above, definite):
    return cast(_back(ct, ab, below, above, definite), b.dtype)


def _batch(size, batched, xs, params):
    ab, b = xs
    if not batched[0]:  # batch elements of right-hand sides are more columns
        wide = np.moveaxis(b, 0, -1)
        y = bind(banded_p, ab, wide.reshape(wide.shape[0], -1), **params)
        return np.moveaxis(y.reshape(wide.shape), -1, 0)
    return np.stack([bind(banded_p, ab[i], b[i] if batched[1] else b, **params) for i in range(size)])


def _dominant(s, rows, n, diagonal):
    ab = s.real(rows, n)
    ab[diagonal] += 9.0
    return ab


banded_p: Any = register(
    Primitive(
        "scipy.banded_solve",
        _forward,
        jvp=_jvp,
        vjp=(_vjp_matrix, _vjp_right),
        batch=_batch,
        refuses="singular",
        samples=lambda s: [
            call(_dominant(s, 3, 5, 1), s.real(5, 2), below=1, above=1, definite=False),
            call(_dominant(s, 4, 6, 1), s.real(6, 1), below=2, above=1, definite=False),
        ],
        doc="The solution of a banded linear system.",
    )
)


def solve_banded(ab: Any, b: Any, below: int, above: int, definite: bool = False) -> Any:
    """Solve a banded system for a right-hand side of any number of axes, the first of which counts the equations."""
    y = bind(banded_p, ab, b.reshape(b.shape[0], -1), below=below, above=above, definite=definite)
    return y.reshape(b.shape)


def from_triangle(ab: Any, lower: bool) -> Any:
    """Return all diagonals of a Hermitian matrix of which those of one triangle are given, as SciPy stores them."""
    n = ab.shape[0] - 1
    main, others = ab[0 if lower else n].real, [ab[k if lower else n - k] for k in range(1, n + 1)]
    if lower:
        above = [_rows(np.conjugate(x), -k) for k, x in enumerate(others, 1)]
        return np.stack([*above[::-1], main, *others])
    below = [_rows(np.conjugate(x), k) for k, x in enumerate(others, 1)]
    return np.stack([*others[::-1], main, *below])
