"""Contractions: matmul and everything that is a sum of products over shared axes."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.core.handles.makers import wrap_made
from fad.core.primitives.archetypes import align, cast, fit, install_operator
from fad.core.primitives.options import along_axes, refuse_options, refuse_out
from fad.core.primitives.primitive import Binary, answer, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, add_methods, bind, strong
from fad.core.tracing.views import as_one_array
from fad.ops.arrangement.structural import as_array, normalize_axes, normalize_axis
from fad.ops.layout.memory_order import lay_out
from fad.ops.products.einsum import contract_p
from fad.ops.reductions.reduction import as_scalar

# --- matmul --------------------------------------------------------------------------------------------------------


def _t(x):
    return x.swapaxes(-1, -2) if x.ndim > 2 else x.T


def _matmul_left(ct, z, x, y):
    if x.ndim == 2 and y.ndim == 2:
        return ct @ y.T
    if y.ndim == 1:  # ct has the shape of x without its last axis
        return fit(ct[..., None] * y, x.shape, ct.dtype) if x.ndim > 1 else ct * y
    if x.ndim == 1:
        if y.ndim == 2:
            return ct @ y.T
        ct = ct[..., None, :]
        return fit((ct @ _t(y))[..., 0, :], x.shape, ct.dtype)
    if y.ndim == 2 and type(ct) is np.ndarray:  # one product; a compiled program has one of its own for all
        return (_rows(ct) @ y.T).reshape(x.shape)
    return fit(ct @ _t(y), x.shape, ct.dtype)


def _matmul_right(ct, z, x, y):
    if x.ndim == 2 and y.ndim == 2:
        return x.T @ ct
    if x.ndim == 1:
        return fit(x[:, None] * ct[..., None, :], y.shape, ct.dtype) if y.ndim > 1 else x * ct
    if y.ndim == 1:
        if x.ndim == 2:
            return x.T @ ct
        return fit((_t(x) @ ct[..., None])[..., 0], y.shape, ct.dtype)
    if y.ndim == 2 and x.size and ct.size:  # one large product instead of a sum of many
        return _rows(x).T @ _rows(ct)
    return fit(_t(x) @ ct, y.shape, ct.dtype)


def _matmul_jvp(tangents, z, xs, params):
    tx, ty = tangents
    x, y = xs
    left = None if tx is None else tx @ y
    right = None if ty is None else x @ ty
    total = left if right is None else right if left is None else left + right
    return cast(total, z.dtype)


def _rows(x):
    """Return the vectors along the last axis as a matrix; of empty ones a length of -1 would say nothing."""
    return x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))


def _matmul_batch(size, batched, xs, params):
    x, y = xs
    bx, by = batched
    nx, ny = np.ndim(x) - bx, np.ndim(y) - by  # ranks without the batch axis
    if not nx or not ny:
        raise ValueError(
            f"matmul: Input operand {int(bool(nx))} does not have enough dimensions (has 0, gufunc core with signature "
            "(n?,k),(k,m?)->(n?,m?) requires 1)"
        )
    if nx == ny == 1 and bx != by:
        return x @ y if bx else y @ x
    if not by and ny == 2 and nx == 1:
        return x @ y
    if not by and ny == 2:  # one large product instead of one per batch element
        return (_rows(x) @ y).reshape(*x.shape[:-1], y.shape[-1])
    if not bx and nx == 2 and ny == 1:
        return y @ x.T
    x = np.expand_dims(x, -2) if nx == 1 else x
    y = np.expand_dims(y, -1) if ny == 1 else y
    x, y = align(batched, (x, y))
    z = x @ y
    if nx == 1:
        z = z[..., 0, :]
    return z[..., 0] if ny == 1 else z


def _matmul_samples(s):
    return [
        call(s.real(3, 4), s.real(4, 2)),
        call(s.real(4), s.real(4)),
        call(s.real(3, 4), s.real(4)),
        call(s.real(4), s.real(4, 2)),
        call(s.real(2, 3, 4), s.real(4, 2)),
        call(s.real(2, 1, 3, 4), s.real(5, 4, 2)),
        call(s.real(4), s.real(2, 4, 3)),
        call(s.real(2, 3, 4), s.real(4)),
        call(s.real(0, 4), s.real(4, 2)),
    ]


matmul = register(
    Binary(
        "matmul",
        np.matmul,
        jvp=_matmul_jvp,
        vjp=(_matmul_left, _matmul_right),
        batch=_matmul_batch,
        numpy=(np.matmul,),
        samples=_matmul_samples,
        archetype="bilinear",
        dependence="matmul",
        fresh=True,
    )
)
answer(np.matmul, matmul)
install_operator(matmul, "@")


def _of_arrays(multiply: Any, reflected: bool) -> Any:
    """Return the operator, which numbers lack: for two of them Python raises the error, and not ``np.matmul``."""

    def operator(x, y):
        try:
            return multiply(x, y)
        except ValueError:
            if isinstance(x, _NUMBERS) and isinstance(y, _NUMBERS):
                names = [_name(v) for v in ((y, x) if reflected else (x, y))]
                raise TypeError(f"unsupported operand type(s) for @: {names[0]!r} and {names[1]!r}") from None
            raise

    return operator


def _name(x: Any) -> str:
    return f"numpy.{x.__class__.__name__}" if isinstance(x, np.generic) else x.__class__.__name__


_NUMBERS = (np.generic, int, float, complex)
add_methods(__matmul__=_of_arrays(Tracer.__matmul__, False), __rmatmul__=_of_arrays(Tracer.__rmatmul__, True))


# --- products of two arrays, written as matmul or einsum ------------------------------------------------------------

_ALPHABET = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _pair(x: Any, y: Any) -> tuple:
    return strong(as_array(x)), strong(as_array(y))


def _scale(a: Any, b: Any) -> Any:
    """Return a product of which one factor is a number: BLAS adds it to zeros, so an array has no negative ones."""
    y = np.multiply(a, b)  # whatever `*` is of an array of another class, such as np.matrix
    return y + 0.0 if y.ndim and y.dtype.char in "fdFD" else y


def _dot_samples(s):
    return [
        call(s.real(3, 4), s.real(4, 2)),
        call(s.real(4), s.real(4)),
        call(s.real(), s.real(3)),
        call(s.real(2, 3, 4), s.real(5, 4, 2)),
        call(s.real(2, 3, 4), s.real(4, 2)),
        call(s.real(2, 3, 4), s.real(4)),
        call(s.real(2, 4), s.real(4)),
    ]


@public(np.dot, methods=("dot",), samples=_dot_samples)
def dot(a, b, out=None):
    """Return the dot product: the last axis of `a` against the second last of `b`.

    >>> fad.grad(fad.numpy.dot)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    refuse_out(out)
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return _scale(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul(a, b)
    return np.tensordot(a, b, (-1, -2 if b.ndim > 1 else -1))


@public(
    np.vdot,
    samples=lambda s: [call(s.real(4), s.real(4)), call(s.real(2, 3), s.real(2, 3)), call(s.real(), s.real())],
    raises="ValueError: The operands have different numbers of elements.",
)
def vdot(a, b, /):
    """Return the dot product of two arrays as vectors, the first conjugated.

    >>> fad.grad(fad.numpy.vdot)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    a, b = _pair(a, b)
    return matmul(a.reshape((a.size,)).conj(), b.reshape((b.size,)))


@public(np.inner, samples=lambda s: [
    call(s.real(4), s.real(4)), call(s.real(3, 4), s.real(2, 4)), call(s.real(2, 3, 4), s.real(4)),
    call(s.real(), s.real(3)),
])  # fmt: skip
def inner(a, b, /):
    """Return the product summed over the last axes of both arrays.

    >>> fad.grad(fad.numpy.inner)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    a, b = _pair(a, b)
    if a.ndim == 0 or b.ndim == 0:
        return _scale(a, b)
    if a.ndim <= 2 and b.ndim <= 2:
        return matmul(a, b.T)
    return as_scalar(np.tensordot(a, b, (-1, -1)))


@public(np.outer, np.linalg.outer, samples=lambda s: [call(s.real(3), s.real(2)), call(s.real(), s.real(2))])
def outer(a, b, out=None):
    """Return the products of all elements of one vector with all of another.

    >>> fad.numpy.outer(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([[3., 4.],
           [6., 8.]])
    """
    refuse_out(out)
    a, b = _pair(a, b)
    rows = a[:, None] if a.ndim == 1 else a.reshape((a.size, 1))
    return rows * (b if b.ndim == 1 else b.reshape((1, b.size)))


@public(np.tensordot, samples=lambda s: [
    call(s.real(2, 3, 4), s.real(3, 4, 5)), call(s.real(2, 3), s.real(4, 2), (0, 1)), call(s.real(2), s.real(3), 0),
    call(s.real(2, 3, 4), s.real(4, 2), axes=([0, 2], [1, 0])), call(s.real(2, 3), s.real(2, 3), 2)
])  # fmt: skip
def tensordot(a, b, axes=2):
    """Sum products over the given axes of both arrays: the last and first `axes`, or two lists of axes.

    >>> fad.numpy.tensordot(np.ones((2, 3)), np.ones((3, 4)), axes=1).shape
    (2, 4)
    """
    a, b = _pair(a, b)
    if hasattr(axes, "__index__"):
        n = int(axes)
        of_a, of_b = tuple(range(a.ndim - n, a.ndim)), tuple(range(n))
    else:
        of_a, of_b = (
            normalize_axes(tuple(np.atleast_1d(k).tolist()), x.ndim) for k, x in zip(axes, (a, b), strict=True)
        )
    if len(of_a) != len(of_b) or [a.shape[i] for i in of_a] != [b.shape[i] for i in of_b]:
        raise ValueError(f"shape-mismatch for sum: {a.shape} over axes {of_a}, and {b.shape} over axes {of_b}")
    names_a = _ALPHABET[: a.ndim]
    names_b = list(_ALPHABET[a.ndim : a.ndim + b.ndim])
    for i, j in zip(of_a, of_b, strict=True):
        names_b[j] = names_a[i]
    names_b = "".join(names_b)
    result = "".join(c for c in names_a + names_b if (c in names_a) != (c in names_b))
    y = bind(contract_p, a, b, a=names_a, b=names_b, result=result)
    if not result:
        return y.reshape((1,)).reshape(())  # NumPy gives a 0-d array here, no scalar
    return lay_out(y, "C")


answer(np.linalg.tensordot, lambda x1, x2, /, *, axes=2: tensordot(x1, x2, axes))


def _vecdot(x1, x2, /, axis=-1, axes=None, **options):
    """Return dot products of vectors along an axis, the first conjugated; other axes broadcast.

    >>> fad.grad(fad.numpy.vecdot)(np.array([1.0, 2.0]), np.array([3.0, 4.0]))
    array([3., 4.])
    """
    if axes is not None:
        if axis != -1:
            raise TypeError("cannot specify both 'axis' and 'axes'")
        return along_axes(np.vecdot, lambda x, y: _vecdot(x, y, **options), (x1, x2), axes)
    refuse_options("vecdot", options)
    x1, x2 = _pair(x1, x2)
    x1, x2 = np.moveaxis(x1, axis, -1), np.moveaxis(x2, axis, -1)
    _check_core("vecdot", x1, x2, (-1, -1), "(n),(n)->()")
    return np.einsum("...i,...i->...", x1.conj(), x2)


def _matvec(x1, x2, /, **options):
    """Return products of matrices and vectors; other axes broadcast.

    >>> fad.numpy.matvec(np.ones((2, 3)), np.array([1.0, 2.0, 3.0]))
    array([6., 6.])
    """
    axes = options.pop("axes", None)
    if axes is not None:
        return along_axes(np.matvec, lambda x, y: _matvec(x, y, **options), (x1, x2), axes)
    refuse_options("matvec", options)
    x1, x2 = _pair(x1, x2)
    _check_core("matvec", x1, x2, (-1, -1), "(m,n),(n)->(m)")
    return lay_out(np.einsum("...ij,...j->...i", x1, x2), "C")


def _check_core(name, x1, x2, axes, signature):
    """Raise what NumPy raises where axes that are summed differ in length: an axis of one element is not repeated."""
    for k, x in enumerate((x1, x2)):
        least = signature.split("->")[0].split("),(")[k].count(",") + 1
        if x.ndim < least:
            raise ValueError(
                f"{name}: Input operand {k} does not have enough dimensions (has {x.ndim}, gufunc core with signature "
                f"{signature} requires {least})"
            )
    m, n = x1.shape[axes[0]], x2.shape[axes[1]]
    if m != n:
        raise ValueError(
            f"{name}: Input operand 1 has a mismatch in its core dimension 0, with gufunc signature {signature} "
            f"(size {n} is different from {m})"
        )


def _vecmat(x1, x2, /, **options):
    """Return products of conjugated vectors and matrices; other axes broadcast.

    >>> fad.numpy.vecmat(np.array([1.0, 2.0]), np.ones((2, 3)))
    array([3., 3., 3.])
    """
    axes = options.pop("axes", None)
    if axes is not None:
        return along_axes(np.vecmat, lambda x, y: _vecmat(x, y, **options), (x1, x2), axes)
    refuse_options("vecmat", options)
    x1, x2 = _pair(x1, x2)
    _check_core("vecmat", x1, x2, (-1, -2), "(n),(n,m)->(m)")
    return lay_out(np.einsum("...i,...ij->...j", x1.conj(), x2), "C")


vecdot = public(np.vecdot, name="vecdot", samples=lambda s: [
    call(s.real(3, 4), s.real(3, 4)), call(s.real(4), s.real(4)), call(s.real(2, 1, 4), s.real(3, 4)),
    call(s.real(4, 3), s.real(4, 3), axis=0)])(_vecdot)  # fmt: skip
answer(np.linalg.vecdot, _vecdot)
matvec = public(np.matvec, name="matvec", samples=lambda s: [
    call(s.real(3, 4), s.real(4)), call(s.real(2, 3, 4), s.real(5, 1, 4))])(_matvec)  # fmt: skip
vecmat = public(np.vecmat, name="vecmat", samples=lambda s: [
    call(s.real(3), s.real(3, 4)), call(s.real(5, 1, 3), s.real(2, 3, 4))])(_vecmat)  # fmt: skip
answer(np.linalg.matmul, matmul)


@public(np.kron, samples=lambda s: [
    call(s.real(2, 3), s.real(3, 2)), call(s.real(2), s.real(3)), call(s.real(2), s.real(2, 2)),
    call(s.real(), s.real(3)),
])  # fmt: skip
def kron(a, b):
    """Return the Kronecker product.

    >>> fad.numpy.kron(np.array([1.0, 2.0]), np.array([1.0, 10.0]))
    array([ 1., 10.,  2., 20.])
    """
    a, b = _pair(a, b)
    n = a.ndim if a.ndim > b.ndim else b.ndim
    left, right = (1,) * (n - a.ndim) + a.shape, (1,) * (n - b.ndim) + b.shape
    wide = a.reshape(_join((d, 1) for d in left)) * b.reshape(_join((1, d) for d in right))
    return wide.reshape(tuple(d * e for d, e in zip(left, right, strict=True)))


def _join(parts: Any) -> tuple:
    """Join tuples into one."""
    return tuple(d for part in parts for d in part)


@public(np.trace, methods=("trace",), samples=lambda s: [
    call(s.real(3, 4)), call(s.real(3, 4), 1), call(s.real(2, 3, 3), axis1=1, axis2=-1)])  # fmt: skip
def trace(a, offset=0, axis1=0, axis2=1, dtype=None, out=None):
    """Return the sum of a diagonal.

    >>> fad.grad(fad.numpy.trace)(np.ones((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    refuse_out(out)
    line = np.diagonal(as_array(a), offset, axis1, axis2)
    return np.sum(line, axis=-1, dtype=dtype)


@public(np.linalg.trace, name="linalg.trace", samples=lambda s: [call(s.real(2, 3, 3), offset=-1)])
def _linalg_trace(x, /, *, offset=0, dtype=None):
    """Return the sums of the diagonals of the matrices in the last two axes."""
    return trace(x, offset, -2, -1, dtype)


def _split_components(vectors):
    if vectors.ndim == 1:
        return [vectors[i] for i in range(vectors.shape[0])]
    return [vectors[..., i] for i in range(vectors.shape[-1])]


def _move_to_end(a, axis):
    axis = normalize_axis(axis, a.ndim)
    return a if axis == a.ndim - 1 else np.moveaxis(a, axis, -1)


@public(np.cross, samples=lambda s: [
    call(s.real(3), s.real(3)), call(s.real(4, 3), s.real(3)), call(s.real(3, 4), s.real(3, 4), axis=0),
    call(s.real(3, 4), s.real(4, 3), axisa=0, axisc=0)])  # fmt: skip
def cross(a, b, axisa=-1, axisb=-1, axisc=-1, axis=None):
    """Return the cross product of vectors of three (or two) components.

    >>> fad.numpy.cross(np.array([1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0]))
    array([0., 0., 1.])
    """
    a, b = _pair(a, b)
    if axis is not None:
        axisa = axisb = axisc = axis
    a, b = _move_to_end(a, axisa), _move_to_end(b, axisb)
    n, m = a.shape[-1], b.shape[-1]
    if n not in (2, 3) or m not in (2, 3):
        raise ValueError(
            f"incompatible dimensions for cross product (dimension must be 2 or 3), but they are {n} and {m}"
        )
    x, y = _split_components(a), _split_components(b)
    third = x[0] * y[1] - x[1] * y[0]
    if n == m == 2:
        return as_one_array(third) if type(third) is Tracer else wrap_made(np.asarray(third))
    if n == 2:
        first, second = x[1] * y[2], -(x[0] * y[2])
    elif m == 2:
        first, second = -(x[2] * y[1]), x[2] * y[0]
    else:
        first = x[1] * y[2] - x[2] * y[1]
        second = x[2] * y[0] - x[0] * y[2]
    y = np.stack([first, second, third], axis=-1)
    return y if normalize_axis(axisc, y.ndim) == y.ndim - 1 else np.moveaxis(y, -1, axisc)


@public(np.linalg.cross, name="linalg.cross", samples=lambda s: [call(s.real(4, 3), s.real(4, 3))])
def _linalg_cross(x1, x2, /, *, axis=-1):
    """Return the cross product of vectors of three components."""
    x1, x2 = _pair(x1, x2)
    if x1.shape[axis] != 3 or x2.shape[axis] != 3:
        raise ValueError(
            "Both input arrays must be (arrays of) 3-dimensional vectors, "
            f"but they are {x1.shape[axis]} and {x2.shape[axis]} dimensional instead."
        )
    return cross(x1, x2, axis=axis)
