"""Diagonals and triangles: diag, diagonal, tril, triu, and the index arrays that NumPy makes for them."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import like, made_like
from fad.core.handles.buffers import Taken
from fad.core.primitives.archetypes import linear
from fad.core.primitives.cotangent import Masked
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.core.tracing.views import layout
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.ops.layout.memory_order import lay_out_as
from fad.ops.layout.packing import is_of_numpy
from fad.ops.places.functional_updates import At


def _below(x, k, keep):
    if not x.ndim:
        raise TypeError("tri() missing 1 required positional argument: 'N'")  # as NumPy says it of no axes
    rows, columns = x.shape[-2:] if x.ndim > 1 else 2 * x.shape
    mask = like(x, np.tri(rows, columns, k=k, dtype=bool))
    return np.where(mask if keep else ~mask, x, made_like(np.zeros_like, x, ()))


def _triangle_samples(s):
    return [call(s.real(3, 4)), call(s.real(3, 3), 1), call(s.real(2, 3, 3), -1), call(s.real(3))]


@public(np.tril, samples=_triangle_samples)
def tril(m, k=0):
    """Return the lower triangle: what lies above the k-th diagonal becomes zero.

    >>> fad.numpy.tril(np.ones((2, 2)))
    array([[1., 0.],
           [1., 1.]])
    """
    return _below(as_array(m), k, True)


@public(np.triu, samples=_triangle_samples)
def triu(m, k=0):
    """Return the upper triangle: what lies below the k-th diagonal becomes zero.

    Parameters
    ----------
    m : array (..., M, N)
        Of any dtype.
    k : int
        Diagonal below which elements become zero; 0 is the main one.

    Returns
    -------
    array
        Of the shape and dtype of `m`.

    Examples
    --------
    >>> fad.numpy.triu(np.ones((2, 2)))
    array([[1., 1.],
           [0., 1.]])
    """
    return _below(as_array(m), k - 1, False)


def _line(rows, columns, offset):
    """Return the index arrays of a diagonal."""
    n = max(0, min(rows + min(offset, 0), columns - max(offset, 0)))
    return np.arange(n) + max(0, -offset), np.arange(n) + max(0, offset)


@public(
    np.diagonal,
    methods=("diagonal",),
    samples=lambda s: [
        call(s.real(3, 4)),
        call(s.real(3, 4), -1),
        call(s.real(2, 3, 4), 1, 2, 0),
        call(s.real(2, 3, 4), axis1=-1, axis2=0),
        call(s.real(2, 2), 5),
    ],
)
def diagonal(a, offset=0, axis1=0, axis2=1):
    """Return a diagonal of the matrices along two axes, as the last axis of the result.

    >>> fad.grad(lambda a: fad.numpy.diagonal(a).sum())(np.ones((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    a = as_array(a)
    if a.ndim < 2:
        raise ValueError("diag requires an array of at least two dimensions")
    i, j = normalize_axis(axis1, a.ndim), normalize_axis(axis2, a.ndim)
    if i == j:
        raise ValueError("axis1 and axis2 cannot be the same")
    if (i, j) != (a.ndim - 2, a.ndim - 1):
        a = np.moveaxis(a, (i, j), (-2, -1))
    return _diagonal(a, offset=offset)


def _take_diagonal(a, offset):
    rows, columns = a.shape[-2:]
    if a.ndim == 2 and type(plain := layout(a)) is np.ndarray and plain.flags.c_contiguous:
        count = len(range(max(0, -offset), min(rows, columns - offset)))
        start = offset if offset >= 0 else -offset * columns
        return a.reshape(-1)[start : start + count * (columns + 1) : columns + 1]
    return lay_out_as(a[(Ellipsis, *_line(rows, columns, offset))], _view_diagonal(layout(a), offset))


def _view_diagonal(a, offset):
    return np.diagonal(a, offset, -2, -1)


_diagonal = Taken(_take_diagonal, _view_diagonal)


@public(np.diag, samples=lambda s: [call(s.real(3)), call(s.real(3), -1), call(s.real(3, 4), 1), call(s.real(0))])
def diag(v, k=0):
    """Make a matrix with a vector on its k-th diagonal, or take that diagonal from a matrix.

    >>> fad.grad(lambda a: fad.numpy.diag(a).sum())(np.ones((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    v = as_array(v)
    if v.ndim == 2:
        return diagonal(v, k)
    if v.ndim != 1:
        raise ValueError("Input must be 1- or 2-d.")
    if is_of_numpy(v):
        return bind(diagonal_matrix_p, v, k=k)
    return _put_on_diagonal(v, k)


def _put_on_diagonal(v, k):
    """Return matrices with vectors on a diagonal, by the operation that programs and batches have for it."""
    n = v.shape[-1] + abs(k)
    return At(np.zeros_like(v, shape=(*v.shape[:-1], n, n)))[(..., *_line(n, n, k))].set(v)


def _fill_diagonal(v, *, k):
    n = v.shape[0] + abs(k)
    y = made_like(np.zeros_like, v, (n, n))
    y[_line(n, n, k)] = v
    return y


diagonal_matrix_p: Any = linear(
    "diagonal_matrix",
    _fill_diagonal,
    lambda ct, v, *, k: np.diagonal(ct, k, -2, -1),
    lambda size, batched, xs, params: _put_on_diagonal(xs[0], params["k"]),
    samples=lambda s: [call(s.real(3), k=0), call(s.real(2), k=-1), call(s.real(0), k=1)],
    moves=True,
    fresh=True,
    text=lambda v, *, k: f"np.diag({v}, {k})",
    doc="A matrix with a vector on a diagonal, and zeros around it.",
)
diagonal_matrix_p.jvp = lambda tangents, y, xs, params: Masked(
    bind(diagonal_matrix_p, *tangents, **params),
    lambda: bind(diagonal_matrix_p, np.ones_like(tangents[0]), **params) != 0,
    clean=True,
)


@public(np.diagflat, samples=lambda s: [call(s.real(2, 2)), call(s.real(), 1)])
def diagflat(v, k=0):
    """Make a matrix with the flattened elements on its k-th diagonal.

    >>> fad.numpy.diagflat(np.array([1.0, 2.0]))
    array([[1., 0.],
           [0., 2.]])
    """
    return diag(np.ravel(as_array(v)), k)


def _check_matrix(arr):
    if arr.ndim != 2:
        raise ValueError(f"input array must be 2-d, but has {arr.ndim} axes")


@public(np.tril_indices_from, flat=True, samples=lambda s: [call(s.real(3, 4)), call(s.real(3, 3), 1)])
def tril_indices_from(arr, k=0):
    """Return the indices of the lower triangle of a matrix, as plain arrays.

    Returns
    -------
    tuple of arrays of int

    Examples
    --------
    >>> fad.numpy.tril_indices_from(np.eye(2))
    (array([0, 1, 1]), array([0, 0, 1]))
    """
    _check_matrix(arr)
    return np.tril_indices(arr.shape[-2], k=k, m=arr.shape[-1])


@public(np.triu_indices_from, flat=True, samples=lambda s: [call(s.real(3, 4)), call(s.real(3, 3), 1)])
def triu_indices_from(arr, k=0):
    """Return the indices of the upper triangle of a matrix, as plain arrays.

    >>> fad.numpy.triu_indices_from(np.eye(2))
    (array([0, 0, 1]), array([0, 1, 1]))
    """
    _check_matrix(arr)
    return np.triu_indices(arr.shape[-2], k=k, m=arr.shape[-1])


@public(
    np.diag_indices_from,
    flat=True,
    samples=lambda s: [call(s.real(3, 3))],
    raises="ValueError: The array has fewer than two axes, or axes of different lengths.",
)
def diag_indices_from(arr):
    """Return the indices of the main diagonal of an array of equal axes, as plain arrays.

    Returns
    -------
    tuple of arrays of int

    Examples
    --------
    >>> fad.numpy.diag_indices_from(np.eye(2))
    (array([0, 1]), array([0, 1]))
    """
    if arr.ndim < 2 or len(set(arr.shape)) > 1:
        raise ValueError("input array must be at least 2-d, and all its dimensions of equal length")
    return np.diag_indices(arr.shape[0], arr.ndim)
