"""Functions of matrices: expm, logm, sqrtm, powers, sines and cosines.

The derivative of f at a in direction e is the upper right block of ``f([[a, e], [0, a]])``
(Mathias, SIAM J. Matrix Anal. Appl. 17 (1996); Higham, Functions of Matrices, theorem 3.6), which is again a
function of a matrix: so every order is there, and no eigenvalue needs to be simple.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import cast
from fad.core.primitives.primitive import Primitive
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array
from fad.ops.linalg.common import batch_stacks, inexact, over_stacks, t
from fad.scipy.linalg.common import definite, double, regular, scipy_function, sl
from fad.scipy.linalg.equations import sylvester


def _block(a: Any, e: Any) -> Any:
    return np.concatenate([np.concatenate([a, e], -1), np.concatenate([np.zeros_like(a), a], -1)], -2)


def _directional(prim: Primitive, a: Any, e: Any, params: dict, dtype: Any) -> Any:
    """Return the derivative of a matrix function at `a` in direction `e`."""
    n = a.shape[-1]
    e = np.broadcast_to(e, np.broadcast_shapes(a.shape, e.shape))
    return cast(bind(prim, _block(a, e), **params)[..., :n, n:], dtype)


def matrix_function(name: str, forward: Any, **facts: Any) -> Primitive:
    """Make a primitive of a function of matrices, from its values alone."""
    prim: Primitive = Primitive(
        name,
        over_stacks(forward),
        jvp=lambda tangents, y, xs, params: _directional(prim, xs[0], tangents[0], params, y.dtype),
        vjp=(lambda ct, y, a, **params: cast(t(_directional(prim, a, t(ct), params, _wide(ct, a))), a.dtype),),
        batch=batch_stacks(lambda: prim),
        **facts,
    )
    return prim


def _wide(ct, a):
    return np.result_type(ct.dtype, a.dtype)


def _quietly(function):
    def forward(a, **params):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(a, **params)

    return forward


_expm_p = matrix_function("matrix_exponential", sl.expm)
_logm_p = matrix_function("matrix_logarithm", _quietly(sl.logm), draws=True)
_power_p = matrix_function("matrix_real_power", lambda a, *, power: sl.fractional_matrix_power(a, power), draws=True)


def _square(a: Any, name: str) -> Any:
    a = inexact(as_array(a))
    if a.ndim < 2 or a.shape[-1] != a.shape[-2]:
        raise np.linalg.LinAlgError(f"{name} needs square matrices in the last two axes, but the shape is {a.shape}")
    return a


@scipy_function(
    "expm",
    samples=lambda s: [call(s.real(3, 3)), call(s.real(2, 2, 2)), call(s.real(1, 1)), call(s.real())],
    raises="LinAlgError: The array is no square matrix, or a stack of them.",
)
def expm(A):
    """Return the exponential of square matrices.

    >>> fad.scipy.linalg.expm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    >>> fad.grad(lambda a: fad.scipy.linalg.expm(a)[0, 0])(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 0.]])
    """
    A = as_array(A)
    if A.ndim < 2 and A.size == 1:
        A = double(A).reshape(1, 1)  # as SciPy does with a number, whatever its precision
    return bind(_expm_p, _square(A, "expm"))


@scipy_function("expm_frechet", order="F", samples=lambda s: [
    call(double(s.real(3, 3)), double(s.real(3, 3))),
    call(double(s.real(2, 2)), double(s.real(2, 2)), compute_expm=False)])  # fmt: skip
def expm_frechet(A, E, method=None, compute_expm=True, check_finite=True):
    """Return the exponential of a matrix, and its derivative in direction E.

    >>> fad.scipy.linalg.expm_frechet(np.zeros((2, 2)), np.eye(2))[1].round(6)
    array([[1., 0.],
           [0., 1.]])
    """
    A, E = (double(_square(x, "expm_frechet")) for x in (A, E))  # SciPy's results are double, always
    n = A.shape[-1]
    both = bind(_expm_p, _block(A, E))
    return (both[..., :n, :n], both[..., :n, n:]) if compute_expm else both[..., :n, n:]


@scipy_function(
    "logm",
    samples=lambda s: [call(definite(s, 3)), call(regular(s, 3))],
    raises="ValueError: The array is no square matrix.",
)
def logm(A):
    """Return the principal logarithm of a square matrix without eigenvalues on the negative real axis.

    >>> fad.scipy.linalg.logm(np.eye(2)).round(6)
    array([[0., 0.],
           [0., 0.]])
    """
    return bind(_logm_p, _square(A, "logm"))


@scipy_function("fractional_matrix_power", constants=(1,), samples=lambda s: [
    call(definite(s, 3), 0.3), call(regular(s, 3), -1.5)],
    raises="ValueError: The array is no square matrix.")  # fmt: skip
def fractional_matrix_power(A, t):
    """Return a square matrix to a real power, a plain number; the derivative is that in the matrix.

    >>> fad.scipy.linalg.fractional_matrix_power(4 * np.eye(2), 0.5).round(6)
    array([[2., 0.],
           [0., 2.]])
    """
    return bind(_power_p, _square(A, "fractional_matrix_power"), power=float(t))


# --- sqrtm: cheaper by a Sylvester equation --------------------------------------------------------------------------


def _root_jvp(tangents, y, xs, params):
    return cast(sylvester(y, y, tangents[0]), y.dtype)


def _root_vjp(ct, y, a):
    return cast(sylvester(t(y), t(y), ct), a.dtype)


_sqrtm_p: Primitive = Primitive(
    "matrix_root",
    over_stacks(_quietly(sl.sqrtm)),
    jvp=_root_jvp,
    vjp=(_root_vjp,),
    batch=batch_stacks(lambda: _sqrtm_p),
)


@scipy_function(
    "sqrtm",
    samples=lambda s: [call(definite(s, 3)), call(regular(s, 3))],
    raises="ValueError: The array is no square matrix.",
)
def sqrtm(A):
    """Return the principal square root of a square matrix.

    Its derivative needs a matrix whose eigenvalues are not zero.

    >>> fad.scipy.linalg.sqrtm(4 * np.eye(2)).round(6)
    array([[2., 0.],
           [0., 2.]])
    >>> fad.grad(lambda a: fad.scipy.linalg.sqrtm(a)[0, 0])(4 * np.eye(2)).round(6)
    array([[0.25, 0.  ],
           [0.  , 0.  ]])
    """
    return bind(_sqrtm_p, _square(A, "sqrtm"))


# --- sines and cosines, from exponentials ----------------------------------------------------------------------------


def _both_exponentials(A: Any, name: str) -> tuple:
    a = 1j * _square(A, name)
    return bind(_expm_p, a), bind(_expm_p, -a)


def _small(s):
    return [call(0.5 * s.real(3, 3)), call(s.real(1, 1))]


@scipy_function("cosm", samples=_small, raises="ValueError: The array is no square matrix.")
def cosm(A):
    """Return the cosine of a square matrix.

    >>> fad.scipy.linalg.cosm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    plus, minus = _both_exponentials(A, "cosm")
    return cast(0.5 * (plus + minus), as_array(A).dtype)


@scipy_function("sinm", samples=_small, raises="ValueError: The array is no square matrix.")
def sinm(A):
    """Return the sine of a square matrix.

    >>> fad.scipy.linalg.sinm(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """
    plus, minus = _both_exponentials(A, "sinm")
    return cast(-0.5j * (plus - minus), as_array(A).dtype)


@scipy_function("tanm", samples=_small, raises="ValueError: The array is no square matrix.")
def tanm(A):
    """Return the tangent of a square matrix.

    >>> fad.scipy.linalg.tanm(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """
    return np.linalg.solve(cosm(A), sinm(A))


@scipy_function("coshm", samples=_small, raises="ValueError: The array is no square matrix.")
def coshm(A):
    """Return the hyperbolic cosine of a square matrix.

    >>> fad.scipy.linalg.coshm(np.zeros((2, 2)))
    array([[1., 0.],
           [0., 1.]])
    """
    a = _square(A, "coshm")
    return 0.5 * (bind(_expm_p, a) + bind(_expm_p, -a))


@scipy_function("sinhm", samples=_small, raises="ValueError: The array is no square matrix.")
def sinhm(A):
    """Return the hyperbolic sine of a square matrix.

    >>> fad.scipy.linalg.sinhm(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """
    a = _square(A, "sinhm")
    return 0.5 * (bind(_expm_p, a) - bind(_expm_p, -a))


@scipy_function("tanhm", samples=_small, raises="ValueError: The array is no square matrix.")
def tanhm(A):
    """Return the hyperbolic tangent of a square matrix.

    >>> fad.scipy.linalg.tanhm(np.zeros((2, 2)))
    array([[0., 0.],
           [0., 0.]])
    """
    return np.linalg.solve(coshm(A), sinhm(A))
