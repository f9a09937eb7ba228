"""Products and powers of matrices, and the array API's names in ``numpy.linalg``, written in other operations."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from fad.core.primitives.options import refuse_out
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.ops.layout.memory_order import lay_out_as_copy
from fad.ops.linalg.common import eye_like
from fad.ops.linalg.solving import regular
from fad.ops.products.contraction import vecdot as _vecdot

# --- powers and chains ---------------------------------------------------------------------------------------------


@public(np.linalg.matrix_power, constants=(1,), samples=lambda s: [
    call(s.real(3, 3), 3), call(s.real(2, 2, 2), 6), call(regular(s, 3, 3), -2), call(s.real(2, 2), 0),
    call(s.real(2, 2), 1)])  # fmt: skip
def matrix_power(a, n):
    """Return square matrices to an integer power; a negative one inverts.

    >>> fad.numpy.linalg.matrix_power(np.array([[1.0, 1.0], [0.0, 1.0]]), 3)
    array([[1., 3.],
           [0., 1.]])
    """
    a = as_array(a)
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(f"Last 2 dimensions of the array must be square, but the shape is {a.shape}")
    n = _power(n)
    if n == 0:
        ones = np.broadcast_to(eye_like(stop_gradient(a), a.shape[-1]), a.shape)
        return lay_out_as_copy((ones + np.zeros_like(a)).astype(a.dtype, copy=False), a)  # in its byte order
    if n < 0:
        a, n = np.linalg.inv(a), -n
    return _positive_power(a, n)


def _power(n):
    try:
        return operator.index(n)
    except TypeError:
        raise TypeError("exponent must be an integer") from None


def _positive_power(a: Any, n: int) -> Any:
    result = None
    while True:
        n, bit = divmod(n, 2)
        if bit:
            result = a if result is None else result @ a
        if not n:
            return result
        a = a @ a


@public(np.linalg.multi_dot, samples=lambda s: [
    call([s.real(2, 5), s.real(5, 3), s.real(3, 4)]), call([s.real(5), s.real(5, 3), s.real(3, 2), s.real(2)]),
    call([s.real(2, 3), s.real(3, 2)]), call([s.real(2, 6), s.real(6, 1), s.real(1, 6), s.real(6)])],
    raises="ValueError: There are fewer than two arrays.")  # fmt: skip
def multi_dot(arrays, *, out=None):
    """Return the product of several matrices, multiplied in the order of least work; the ends may be vectors.

    >>> fad.numpy.linalg.multi_dot([np.ones((2, 3)), np.ones((3, 4)), np.ones((4, 1))])
    array([[12.],
           [12.]])
    """
    refuse_out(out)
    arrays = [as_array(a) for a in arrays]
    if len(arrays) < 2:
        raise ValueError("Expecting at least two arrays.")
    if len(arrays) == 2:
        return np.dot(*arrays)  # of any ranks, as NumPy's
    first, last = arrays[0].ndim == 1, arrays[-1].ndim == 1
    if first:
        arrays[0] = arrays[0][None, :]
    if last:
        arrays[-1] = arrays[-1][:, None]
    for a in arrays:
        if a.ndim != 2:
            raise np.linalg.LinAlgError(f"{a.ndim}-dimensional array given. Array must be two-dimensional")
    y = _chain(arrays, _best_splits([a.shape[0] for a in arrays] + [arrays[-1].shape[1]]), 0, len(arrays) - 1)
    if first and last:
        return y[0, 0]
    return y[0] if first else y[:, 0] if last else y


def _best_splits(sizes: list) -> dict:
    """Return where to cut each part of a chain of matrices (Cormen et al., Introduction to Algorithms, 15.2)."""
    n = len(sizes) - 1
    cost = {(i, i): 0 for i in range(n)}
    split = {}
    for length in range(1, n):
        for i in range(n - length):
            j = i + length
            options = [(cost[i, k] + cost[k + 1, j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)]
            cost[i, j], split[i, j] = min(options)
    return split


def _chain(arrays: list, split: dict, i: int, j: int) -> Any:
    if i == j:
        return arrays[i]
    k = split[i, j]
    return _chain(arrays, split, i, k) @ _chain(arrays, split, k + 1, j)


# --- the array API's names -------------------------------------------------------------------------------------------


@public(
    np.linalg.matrix_transpose,
    name="linalg_matrix_transpose",
    samples=lambda s: [call(s.real(2, 3, 4))],
    raises="ValueError: The array has fewer than two axes.",
)
def matrix_transpose(x, /):
    """Swap the last two axes.

    >>> fad.numpy.linalg.matrix_transpose(np.ones((2, 3))).shape
    (3, 2)
    """
    return np.matrix_transpose(as_array(x))


@public(np.linalg.diagonal, name="linalg_diagonal", samples=lambda s: [
    call(s.real(3, 4)), call(s.real(2, 3, 4), offset=1)],
    raises="ValueError: The array has fewer than two axes.")  # fmt: skip
def diagonal(x, /, *, offset=0):
    """Return the diagonals of the matrices in the last two axes.

    >>> fad.numpy.linalg.diagonal(np.array([[1.0, 2.0], [3.0, 4.0]]))
    array([1., 4.])
    """
    return np.diagonal(as_array(x), offset, axis1=-2, axis2=-1)


@public(np.linalg.trace, name="linalg_trace", samples=lambda s: [
    call(s.real(3, 3)), call(s.real(2, 3, 4), offset=-1)])  # fmt: skip
def trace(x, /, *, offset=0, dtype=None):
    """Return the traces of the matrices in the last two axes.

    >>> fad.grad(fad.numpy.linalg.trace)(np.ones((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    return np.trace(as_array(x), offset, axis1=-2, axis2=-1, dtype=dtype)


@public(
    np.linalg.outer,
    name="linalg_outer",
    samples=lambda s: [call(s.real(3), s.real(4))],
    raises="ValueError: An operand is no vector.",
)
def outer(x1, x2, /):
    """Return the outer product of two vectors.

    >>> fad.numpy.linalg.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    x1, x2 = as_array(x1), as_array(x2)
    if x1.ndim != 1 or x2.ndim != 1:
        raise ValueError(f"Input arrays must be one-dimensional, but they are x1.ndim={x1.ndim} and x2.ndim={x2.ndim}.")
    return x1[:, None] * x2


@public(np.linalg.cross, name="linalg_cross", samples=lambda s: [
    call(s.real(3), s.real(3)), call(s.real(3, 2), s.real(3, 2), axis=0)])  # fmt: skip
def cross(x1, x2, /, *, axis=-1):
    """Return the cross product of vectors with three components.

    >>> fad.numpy.linalg.cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    array([0., 0., 1.])
    """
    x1, x2 = as_array(x1), as_array(x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {x1.shape[axis]} and {x2.shape[axis]} dimensional instead."
        )
    return np.cross(x1, x2, axis=axis)


@public(np.linalg.tensordot, name="linalg_tensordot", constants=("axes",), samples=lambda s: [
    call(s.real(2, 3, 4), s.real(3, 4, 2)), call(s.real(2, 3), s.real(3, 2), axes=((0,), (1,)))])  # fmt: skip
def tensordot(x1, x2, /, *, axes=2):
    """Sum products over pairs of axes.

    >>> fad.numpy.linalg.tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    return np.tensordot(as_array(x1), as_array(x2), axes=axes)


@public(np.linalg.matmul, name="linalg_matmul", samples=lambda s: [
    call(s.real(2, 3), s.real(3, 2)), call(s.real(2, 2, 3), s.real(3))])  # fmt: skip
def matmul(x1, x2, /):
    """Return the matrix product.

    >>> fad.numpy.linalg.matmul(np.ones((2, 2)), np.array([1.0, 2.0]))
    array([3., 3.])
    """
    return np.matmul(as_array(x1), as_array(x2))


@public(np.linalg.vecdot, name="linalg_vecdot", samples=lambda s: [
    call(s.real(2, 3), s.real(3)), call(s.real(3, 2), s.real(3, 2), axis=0)])  # fmt: skip
def vecdot(x1, x2, /, *, axis=-1):
    """Return the products of vectors, ``sum(conj(x1) * x2)``.

    >>> fad.grad(fad.numpy.linalg.vecdot)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    return _vecdot(as_array(x1), as_array(x2), axis=axis)
