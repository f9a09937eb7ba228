"""Norms of vectors and matrices; at 0, where a norm has a corner, the derivative is 0."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import is_numpy, like
from fad.core.primitives.archetypes import cast, elementwise
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind, strong
from fad.ops.arrangement.structural import as_array, normalize_axes, normalize_axis
from fad.ops.reductions.reduction import as_scalar, drop, keep, reduction


def inexact(x):
    """Return an array of real or complex numbers: the norms of integers are of double precision."""
    return x if x.dtype.kind in "fc" else x.astype(float)


def _unit(y, x, axis, keepdims):
    """Return conj(x) / norm(x), which is 0 for the zero vector, as its subgradient."""
    y = keep(y, x.shape, axis, keepdims)
    zero = y == 0
    inverse = np.where(zero, 0.0, 1.0 / np.where(zero, 1.0, y))
    return (np.conjugate(x) if x.dtype.kind == "c" else x) * inverse


def _norm_jvp(t, y, x, axis, keepdims):
    return cast(np.sum(t * _unit(y, x, axis, keepdims), axis=axis, keepdims=keepdims), y.dtype)


def _norm_forward(x, *, axis, keepdims):
    squares = x.real**2 + x.imag**2 if x.dtype.kind == "c" else x * x
    return np.sqrt(np.sum(squares, axis=axis, keepdims=keepdims))


norm_p = reduction(
    "norm_over",
    _norm_forward,
    _norm_jvp,
    lambda ct, y, x, axis, keepdims: keep(ct, x.shape, axis, keepdims) * _unit(y, x, axis, keepdims),
    lambda s: [call(s.real(3, 4), axis=(0, 1), keepdims=False), call(s.real(2, 3, 4), axis=(0, 2), keepdims=True)],
    doc="The Euclidean norm over axes; its derivative at 0 is 0.",
)
# The square root of a sum that is a norm: its subgradient at 0 is 0, where the plain square root has infinity.
root = elementwise(
    "norm_root",
    lambda z, _x: np.where(z == 0, 0.0, 0.5 / np.where(z == 0, 1.0, z)),
    forward=np.sqrt,
    domain=(0.3, 3.0),
    doc="The root, with the derivative 0 at 0.",
    lower="sqrt({0})",
)


def _power_norm(x, p, axis, keepdims):
    """The p-norm, written so that zero elements and a zero norm have derivative 0 and not 0 * inf."""
    size = np.abs(x)
    zero = size == 0
    if p > 0:
        powers = np.where(zero, 0.0, np.where(zero, 1.0, size) ** p)
    else:
        powers = size**p
    total = np.sum(powers, axis=axis, keepdims=keepdims)
    none = total == 0
    return as_scalar(np.where(none, 0.0 if p > 0 else np.inf, np.where(none, 1.0, total) ** (1.0 / p)))


def _largest(x, axis, keepdims=False):
    """Return the largest of absolute values or singular values: 0 where there are none."""
    return np.max(x, axis, keepdims=keepdims) if x.size else np.max(x, axis, keepdims=keepdims, initial=0.0)


def _vector_norm(x, ord, axis, keepdims):
    if ord is None or ord == 2:
        return bind(norm_p, x, axis=axis, keepdims=keepdims)
    if ord == np.inf:
        return _largest(np.abs(x), axis, keepdims)
    if ord == -np.inf:
        return np.min(np.abs(x), axis, keepdims=keepdims)
    if ord == 0:
        return np.sum((x != 0).astype(x.real.dtype), axis=axis, keepdims=keepdims)
    if ord == 1:
        return np.sum(np.abs(x), axis=axis, keepdims=keepdims)
    if isinstance(ord, str):
        raise ValueError(f"Invalid norm order '{ord}' for vectors")
    return _power_norm(x, ord, axis, keepdims)


def _spectral_norm(x, ord):
    """Return a norm made from singular values of the matrices in the last two axes; at a zero matrix it is flat."""
    reductions: dict[Any, Callable] = {2: _largest, -2: np.min, "nuc": np.sum}
    reduce = reductions[ord]
    zero = np.all(x == 0, axis=(-2, -1))
    if is_numpy(zero) and not np.any(zero):
        return reduce(np.linalg.svd(x, compute_uv=False), axis=-1)
    # Any matrix with singular values that differ stands in for a zero one.
    rows, columns = (np.arange(1.0, n + 1.0) for n in x.shape[-2:])
    stand_in = np.where(rows[:, None] == columns, columns, 0.0).astype(x.dtype)
    y = reduce(np.linalg.svd(np.where(zero[..., None, None], like(x, stand_in), x), compute_uv=False), axis=-1)
    return as_scalar(np.where(zero, 0.0, y))


def _matrix_norm(x, ord, axis, keepdims):
    rows, columns = axis
    if ord in (None, "fro", "f"):
        return bind(norm_p, x, axis=axis, keepdims=keepdims)
    if ord in (2, -2, "nuc"):
        y = _spectral_norm(np.moveaxis(x, axis, (-2, -1)), ord)
        return np.expand_dims(y, axis) if keepdims else y
    if ord not in (1, -1, np.inf, -np.inf):
        raise ValueError("Invalid norm order for matrices.")
    inner, outer = (rows, columns) if abs(ord) == 1 else (columns, rows)
    y = np.sum(np.abs(x), axis=inner, keepdims=True)
    y = _largest(y, outer, True) if ord > 0 else np.min(y, outer, keepdims=True)
    return as_scalar(drop(y, axis, keepdims))


def _sample_norm(s):
    # Not as far below 0 as above: the largest and the smallest absolute value stand alone.
    vector = [call(s.real(5, low=-1.0), o) for o in (None, 1, 2, 3, 0, np.inf, -np.inf, 2.5)]
    matrix = [call(s.real(3, 4), o) for o in (None, "fro", 1, -1, np.inf, -np.inf)]
    axes = [call(s.real(2, 3, 4), 1, axis=1, keepdims=True), call(s.real(2, 3, 4), "fro", axis=(0, 2))]
    axes += [call(s.real(2, 3, 4), o, axis=(2, 1), keepdims=True) for o in (1, -1)]
    return [*vector, *matrix, *axes, call(np.array([1.0, -2.0, 3.0]), 0), call(s.real(2, 3, 4), 3, axis=-1)]


def kinks_of_matrix(x, *_, **__):
    """Return what is zero where sums of absolute values or singular values are equal, or one of the latter is zero."""
    if x.ndim < 2:
        return ()
    sums = [np.diff(np.sort(np.sum(np.abs(x), axis=axis), axis=-1)) for axis in (-1, -2)]
    s = np.linalg.svd(x, compute_uv=False)
    return *sums, np.diff(s), s[..., -1] / 5.0


@public(np.linalg.norm, samples=_sample_norm, kinks=kinks_of_matrix)
def norm(x, ord=None, axis=None, keepdims=False):
    """Return a vector or matrix norm, as NumPy does; the derivative at 0 is 0.

    >>> fad.grad(fad.numpy.linalg.norm)(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    x = inexact(strong(as_array(x)))
    if axis is None:
        axes = tuple(range(x.ndim))
        if ord is None:
            return bind(norm_p, x, axis=axes, keepdims=bool(keepdims))
    else:
        axes = tuple(normalize_axis(a, x.ndim) for a in (axis if isinstance(axis, (tuple, list)) else (axis,)))
    if len(axes) == 1:
        return _vector_norm(x, ord, axes, bool(keepdims))
    if len(axes) != 2:
        raise ValueError("Improper number of dimensions to norm.")
    if axes[0] == axes[1]:
        raise ValueError("Duplicate axes given.")
    return _matrix_norm(x, ord, axes, bool(keepdims))


@public(np.linalg.vector_norm, samples=lambda s: [
    call(s.real(3, 4)), call(s.real(3, 4), axis=1, ord=3), call(s.real(3, 4), keepdims=True)])  # fmt: skip
def vector_norm(x, /, *, axis=None, keepdims=False, ord=2):
    """Return the norm of vectors along axes, or of all elements.

    Returns
    -------
    array

    Examples
    --------
    >>> fad.grad(fad.numpy.linalg.vector_norm)(np.array([3.0, 4.0]))
    array([0.6, 0.8])
    """
    x = inexact(strong(as_array(x)))
    return _vector_norm(x, ord, normalize_axes(axis, x.ndim), bool(keepdims))


@public(np.linalg.matrix_norm, kinks=kinks_of_matrix, samples=lambda s: [
    call(s.real(2, 3, 4)), call(s.real(3, 4), ord=1, keepdims=True)],
    raises="ValueError: The array has fewer than two axes.")  # fmt: skip
def matrix_norm(x, /, *, keepdims=False, ord="fro"):
    """Return the norm of the matrices in the last two axes.

    Returns
    -------
    array
        Of the shape in front of the matrices.

    Examples
    --------
    >>> fad.grad(fad.numpy.linalg.matrix_norm)(np.diag(np.array([3.0, 4.0])))
    array([[0.6, 0. ],
           [0. , 0.8]])
    """
    x = inexact(strong(as_array(x)))
    return _matrix_norm(x, ord, normalize_axes((-2, -1), x.ndim), bool(keepdims))
