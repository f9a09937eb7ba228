"""Orthogonal polynomials and spherical harmonics, in the argument. Degrees are integers and have no derivative."""

from __future__ import annotations

import numpy as np
import scipy.special as sc

from fad.core.primitives.primitive import Primitive
from fad.core.primitives.samples import call
from fad.scipy.special import formulas
from fad.scipy.special.build import choose, previous, special, strong

_DEGREE = "the degree of a polynomial"
_PARAMETER = "a parameter of a family of polynomials"


def _samples(low, high, *parameters):
    def draw(s):
        return [
            call(3, *parameters, s.real(3, 4, low=low, high=high)),
            call(s.ints(0, 5, (4,)), *parameters, s.real(4, low=low, high=high)),
            call(0, *parameters, s.real(2, low=low, high=high)),
        ]

    return draw


def _polynomial(name, partial, low=-0.9, high=0.9, parameters=(), complex=True):
    return special(
        name,
        _DEGREE,
        *[_PARAMETER] * len(parameters),
        partial,
        integers=(0,),
        complex=complex,
        elsewhere=getattr(formulas, name),
        samples=_samples(low, high, *parameters),
    )


def _gegenbauer(n, alpha, x):
    """Return the derivative in x of the Gegenbauer polynomial: 2 alpha C_{n-1}^{(alpha+1)}, 0 for n == 0."""
    return 2.0 * alpha * _unless_constant(n, eval_gegenbauer(previous(n), alpha + 1.0, x))


def _unless_constant(n, value):
    return choose(n == 0, np.zeros_like(value), value)


def _jacobi(n, alpha, beta, x):
    raised = eval_jacobi(previous(n), alpha + 1.0, beta + 1.0, x)
    return 0.5 * (n + (alpha + beta + 1.0)) * _unless_constant(n, raised)


def _like(x):
    """Return 0 in the precision of x, so that an added Python number does not widen it."""
    return strong(0.0, x.dtype)


eval_jacobi = _polynomial("eval_jacobi", lambda _z, n, a, b, x: _jacobi(n, a, b, x), parameters=(0.5, 1.5))
eval_legendre = _polynomial("eval_legendre", lambda _z, n, x: _jacobi(n, _like(x), _like(x), x))
eval_gegenbauer = _polynomial("eval_gegenbauer", lambda _z, n, a, x: _gegenbauer(n, a, x), parameters=(1.3,))
eval_chebyt = _polynomial("eval_chebyt", lambda _z, n, x: n * eval_chebyu(previous(n), x))
eval_chebyu: Primitive = _polynomial("eval_chebyu", lambda _z, n, x: _gegenbauer(n, 1.0 + _like(x), x))
eval_chebyc = _polynomial("eval_chebyc", lambda _z, n, x: n * eval_chebys(previous(n), x))
eval_chebys: Primitive = _polynomial("eval_chebys", lambda _z, n, x: 0.5 * _gegenbauer(n, 1.0 + _like(x), 0.5 * x))
eval_sh_legendre = _polynomial(
    "eval_sh_legendre", lambda _z, n, x: 2.0 * _jacobi(n, _like(x), _like(x), 2.0 * x - 1.0), 0.1, 0.9
)
eval_sh_chebyt = _polynomial("eval_sh_chebyt", lambda _z, n, x: 2.0 * n * eval_sh_chebyu(previous(n), x), 0.1, 0.9)
eval_sh_chebyu: Primitive = _polynomial(
    "eval_sh_chebyu", lambda _z, n, x: 2.0 * _gegenbauer(n, 1.0 + _like(x), 2.0 * x - 1.0), 0.1, 0.9
)
eval_sh_jacobi: Primitive = _polynomial(
    "eval_sh_jacobi",
    lambda _z, n, p, q, x: n * eval_sh_jacobi(previous(n), p + 2.0, q + 1.0, x),
    0.1,
    0.9,
    (2.5, 1.5),
)
eval_genlaguerre: Primitive = _polynomial(
    "eval_genlaguerre",
    lambda _z, n, a, x: -_unless_constant(n, eval_genlaguerre(previous(n), a + 1.0, x)),
    0.2,
    3.0,
    (0.5,),
)
eval_laguerre = _polynomial(
    "eval_laguerre",
    lambda _z, n, x: -_unless_constant(n, eval_genlaguerre(previous(n), 1.0 + _like(x), x)),
    0.2,
    3.0,
)
eval_hermite: Primitive = _polynomial(
    "eval_hermite", lambda _z, n, x: 2.0 * n * eval_hermite(previous(n), x), complex=False
)
eval_hermitenorm: Primitive = _polynomial(
    "eval_hermitenorm", lambda _z, n, x: n * eval_hermitenorm(previous(n), x), complex=False
)


def _lpmv(z, m, v, x):
    return (v * x * z - (v + m) * sc.lpmv(m, v - 1.0, x)) / (x * x - 1.0)


lpmv = special(
    "lpmv",
    "the order of a Legendre function",
    "the degree of a Legendre function",
    _lpmv,
    samples=lambda s: [call(1.0, 3.0, s.real(3, 4, low=-0.9, high=0.9)), call(0.0, 2.5, s.real(3, low=-0.9, high=0.9))],
)

# --- spherical harmonics --------------------------------------------------------------------------------------------


def _sph_forward(n, m, theta, phi):
    """Evaluate the spherical harmonics in numpy's complex type of the angles' precision."""
    y = sc.sph_harm_y(n, m, theta, phi)
    single = np.result_type(theta, phi, np.float32) == np.float32
    return y.astype(np.complex64) if single and y.dtype != np.complex64 else y


def _sph_theta(_y, n, m, theta, phi):
    # Ladder operators: no division by sin(theta), so right at the poles.
    up = _ladder(n, m) * np.exp(-1j * phi) * _neighbour(n, m + 1, theta, phi)
    down = _ladder(n, -m) * np.exp(1j * phi) * _neighbour(n, m - 1, theta, phi)
    return choose(np.sin(theta) < 0.0, -0.5, 0.5) * (up - down)  # SciPy's function of theta is even


def _ladder(n, m):
    return np.sqrt(np.maximum((n - m) * (n + m + 1.0), 0.0))  # 0 from the last order on


def _neighbour(n, m, theta, phi):
    return sph_harm_p(n, np.clip(m, -n, n), theta, phi)


sph_harm_p = special(
    "sph_harm_y",
    _DEGREE,
    "an integer order",
    _sph_theta,
    lambda y, n, m, theta, phi: 1j * m * y,
    numpy=_sph_forward,
    integers=(0, 1),
    samples=lambda s: [
        call(3, 1, s.real(3, 4, low=0.2, high=2.9), s.real(3, 4)),
        call(2, -2, s.real(3, 1, low=0.2, high=2.9), s.real(4)),
        call(s.ints(3, 5, (4,)), s.ints(-2, 3, (4,)), s.real(4, low=0.2, high=2.9), s.real(4)),
    ],
)


def sph_harm_y(n, m, theta, phi):
    """Return the spherical harmonic of degree n and order m (integers) at the polar angle theta and the azimuth phi.

    Both angles are differentiable, at the poles too.

    Parameters
    ----------
    n, m : int, or array of int
        Degree and order; they have no derivative.
    theta, phi : array_like, real
        Polar and azimuthal angle.

    Returns
    -------
    complex ndarray or scalar

    Raises
    ------
    ValueError
        The operands cannot be broadcast against each other.

    Examples
    --------
    >>> fad.scipy.special.sph_harm_y(1, 0, 0.5, 0.0).round(6)
    np.complex128(0.428789+0j)
    """
    theta, phi = (a if hasattr(a, "dtype") else np.asarray(a, dtype=float)[()] for a in (theta, phi))
    return sph_harm_p(n if type(n) is int else np.asarray(n), m if type(m) is int else np.asarray(m), theta, phi)


def legendre_p(n, z):
    """Return the Legendre polynomial of degree n, with an axis of length 1 in front, as SciPy does.

    Parameters
    ----------
    n : int, or array of int
        The degree, at least 0; it has no derivative.
    z : array_like, real
        The argument.

    Returns
    -------
    ndarray

    Raises
    ------
    ValueError
        The operands cannot be broadcast against each other.

    Examples
    --------
    >>> fad.scipy.special.legendre_p(2, 0.5)
    array([-0.125])
    >>> fad.grad(lambda z: fad.scipy.special.legendre_p(2, z).sum())(0.5)
    np.float64(1.5)
    """
    return eval_legendre(n, z)[None]
