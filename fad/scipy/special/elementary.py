"""Functions near the elementary ones: logistic, entropies, Box-Cox, degrees, and accurate small differences."""

from __future__ import annotations

import math

import numpy as np
import scipy.special as sc

from fad.backends.counterparts import scipy_function
from fad.core.primitives.samples import call
from fad.scipy.special import formulas
from fad.scipy.special.build import branch, polynomial, special, strong

# --- exponentials and logarithms ------------------------------------------------------------------------------------

# The series of (t e^t - e^t + 1) / t^2 = sum of t^k / (k! (k + 2)), the derivative of exprel.
_SLOPE = [1 / (math.factorial(k) * (k + 2)) for k in range(24)]


def exprel_slope(t):
    """Return ((t - 1) e^t + 1) / t**2 without cancellation: 1/2 at 0."""
    return branch(
        np.abs(t) < 1.5, lambda t: polynomial(t, _SLOPE), lambda t: ((t - 1.0) * np.exp(t) + 1.0) / (t * t), t, 0.0, 2.0
    )


expm1 = special("expm1", lambda z, _x: z + 1.0, complex=True, lower="expm1({0})", steep=None)
log1p = special("log1p", lambda _z, x: 1.0 / (1.0 + x), domain=(-0.6, 2.0), complex=True, lower="log1p({0})")
exp2 = special("exp2", lambda z, _x: math.log(2) * z, lower="exp2({0})", steep=None)
exp10 = special("exp10", lambda z, _x: math.log(10) * z, domain=(-1.0, 1.0), steep=None)
cbrt = special("cbrt", lambda z, _x: 1.0 / (3.0 * z * z), domain=(0.3, 3.0), lower="cbrt({0})")
exprel = special("exprel", lambda _z, x: exprel_slope(x))
cosm1 = special("cosm1", lambda _z, x: -np.sin(x), steep=None)
powm1 = special(
    "powm1",
    lambda _z, x, y: y * x ** (y - 1.0),
    lambda z, x, _y: (z + 1.0) * np.log(x),
    domain=((0.3, 2.0), (-2.0, 2.0)),
    elsewhere=formulas.powm1,
)
expit = special("expit", lambda z, x: z * sc.expit(-x), lower="(1 / (1 + exp(-{0})))", steep=None)
logit = special(
    "logit",
    lambda _z, x: 1.0 / x + 1.0 / (1.0 - x),
    lower="(log1p(2.0 * {0} - 1.0) - log1p(1.0 - 2.0 * {0}) if {0} > 0.3 and {0} < 0.65 else log({0} / (1.0 - {0})))",
    domain=(0.1, 0.9),
)
log_expit = special(
    "log_expit", lambda _z, x: sc.expit(-x), lower="(minimum({0}, 0.0) - log1p(exp(-fabs({0}))))", steep=None
)
wrightomega = special("wrightomega", lambda z, _x: z / (1.0 + z), complex=True)

# --- angles in degrees ----------------------------------------------------------------------------------------------

_DEGREE = math.pi / 180
sindg = special("sindg", lambda _z, x: _DEGREE * sc.cosdg(x), steep=None)
cosdg = special("cosdg", lambda _z, x: -_DEGREE * sc.sindg(x), steep=None)
tandg = special("tandg", lambda z, _x: _DEGREE * (1.0 + z * z))
cotdg = special("cotdg", lambda z, _x: -_DEGREE * (1.0 + z * z), domain=(10.0, 80.0))
radian = special(
    "radian", lambda z, _d, _m, _s: _DEGREE, lambda z, _d, _m, _s: _DEGREE / 60, lambda z, _d, _m, _s: _DEGREE / 3600
)
round = special("round", None, domain=(-2.0, 2.0))

# --- x log y and entropies: zero times infinity is zero -------------------------------------------------------------


def _ratio(x, y):
    """x / y, and 0 where both are 0. Where x alone is 0 the quotient stays: it has a derivative in x."""
    both = (x == 0) & (y == 0)
    return np.where(both, np.zeros_like(x), x) / np.where(both, np.ones_like(y), y)


def _log_ratio(x, y):
    """log(x / y), and 0 where both are 0: the derivative along x = y."""
    both = (x == 0) & (y == 0)
    with np.errstate(divide="ignore"):
        return np.log(np.where(both, np.ones_like(x), x)) - np.log(np.where(both, np.ones_like(y), y))


xlogy = special(
    "xlogy",
    lambda _z, _x, y: np.log(y),
    lambda _z, x, y: _ratio(x, y),
    lower="(0.0 if {0} == 0.0 and {1} == {1} else {0} * log({1}))",
    domain=((-2.0, 2.0), (0.3, 3.0)),
    complex=True,
)
xlog1py = special(
    "xlog1py",
    lambda _z, _x, y: np.log1p(y),
    lambda _z, x, y: _ratio(x, 1.0 + y),
    domain=((-2.0, 2.0), (-0.6, 2.0)),
    complex=True,
    lower="(0.0 if {0} == 0.0 and {1} == {1} else {0} * log1p({1}))",
)
entr = special(
    "entr",
    lambda _z, x: -1.0 - np.log(x),
    lower="(-{0} * log({0}) if {0} > 0.0 else {0} if {0} != {0} else 0.0 if {0} == 0.0 else -1e999)",
    domain=(0.1, 2.0),
)
rel_entr = special(
    "rel_entr", lambda _z, x, y: 1.0 + _log_ratio(x, y), lambda _z, x, y: -_ratio(x, y), domain=((0.1, 2.0), (0.3, 2.5))
)
kl_div = special(
    "kl_div", lambda _z, x, y: _log_ratio(x, y), lambda _z, x, y: 1.0 - _ratio(x, y), domain=((0.1, 2.0), (0.3, 2.5))
)

# --- robust losses --------------------------------------------------------------------------------------------------


def _huber_width(_z, delta, r):
    return np.maximum(np.abs(r) - delta, 0.0)


huber = special(
    "huber", _huber_width, lambda _z, delta, r: np.clip(r, -delta, delta), domain=((0.5, 1.4), (-2.0, 2.0)),
    kinks=lambda delta, r: (np.abs(r) - delta,),
)  # fmt: skip


def _pseudo_huber_width(_z, delta, r):
    u = r / delta
    s = np.sqrt(1.0 + u * u)
    excess = u * u / (s + 1.0)  # s - 1, without cancellation
    return delta * excess * excess / s


pseudo_huber = special(
    "pseudo_huber",
    _pseudo_huber_width,
    lambda _z, delta, r: r / np.sqrt(1.0 + (r / delta) ** 2),
    domain=((0.5, 1.5), (-2.0, 2.0)),
)

# --- Box-Cox --------------------------------------------------------------------------------------------------------


def boxcox_slope(log_x, lmbda):
    """Return the derivative in lmbda of (x**lmbda - 1) / lmbda, given log(x); x may be 0 if lmbda > 0."""
    zero = log_x == -np.inf
    log_x = np.where(zero, strong(0.0, log_x.dtype), log_x)
    at_zero = 1.0 / np.where(zero, lmbda, np.ones_like(lmbda)) ** 2
    return np.where(zero, at_zero, log_x * log_x * exprel_slope(lmbda * log_x))


def _log(x):
    with np.errstate(divide="ignore"):
        return np.log(x)


_POSITIVE = ((0.3, 3.0), (-1.5, 1.5))
boxcox = special(
    "boxcox",
    lambda _z, x, lmbda: x ** (lmbda - 1.0),
    lambda _z, x, lmbda: boxcox_slope(_log(x), lmbda),
    domain=_POSITIVE,
)
boxcox1p = special(
    "boxcox1p",
    lambda _z, x, lmbda: (1.0 + x) ** (lmbda - 1.0),
    lambda _z, x, lmbda: boxcox_slope(np.log1p(x), lmbda),
    domain=_POSITIVE,
)
inv_boxcox = special(
    "inv_boxcox",
    lambda z, _y, lmbda: z ** (1.0 - lmbda),
    lambda z, _y, lmbda: -boxcox_slope(np.log(z), lmbda) * z ** (1.0 - lmbda),
    domain=((-0.5, 0.5), (-1.2, 1.2)),
)
inv_boxcox1p = special(
    "inv_boxcox1p",
    lambda z, _y, lmbda: (1.0 + z) ** (1.0 - lmbda),
    lambda z, _y, lmbda: -boxcox_slope(np.log1p(z), lmbda) * (1.0 + z) ** (1.0 - lmbda),
    domain=((-0.5, 0.5), (-1.2, 1.2)),
)


def _tukey_density(z, _x, lmbda):
    inside = (z > 0.0) & (z < 1.0)  # for a positive lambda the distribution ends at 1 / lambda
    p = np.where(inside, z, 0.5)
    return np.where(inside, 1.0 / (p ** (lmbda - 1.0) + (1.0 - p) ** (lmbda - 1.0)), 0.0)


def _tukey_shape(z, x, lmbda):
    p = np.where((z > 0.0) & (z < 1.0), z, 0.5)
    quantile = boxcox_slope(np.log(p), lmbda) - boxcox_slope(np.log1p(-p), lmbda)
    return -quantile * _tukey_density(z, x, lmbda)


tklmbda = special("tklmbda", _tukey_density, _tukey_shape, domain=((-0.6, 0.6), (-1.0, 1.2)))

# --- Lambert's W ----------------------------------------------------------------------------------------------------


def _lambertw_samples(s):
    return [call(s.real(3, 4, low=0.2, high=3.0)), call(s.real(4, low=-0.3, high=-0.05), -1)]


_lambert = sc._ufuncs._lambertw
lambertw_p = special(
    "lambertw",
    lambda z, _x, _k, _tol: np.exp(-z) / (1.0 + z),
    None,
    None,
    numpy=_lambert,
    elsewhere=scipy_function("special.lambertw"),
    integers=(1, 2),
    samples=lambda s: [call(*c.args, *(() if len(c.args) > 1 else (0,)), 1e-8) for c in _lambertw_samples(s)],
    complex=True,
)


def lambertw(z, k=0, tol=1e-8):
    """Return branch `k` of Lambert's W, which solves ``w exp(w) = z``: complex, as in SciPy.

    The derivative is ``exp(-w) / (1 + w)``, so it is right at 0 too, and infinite at the branch point -1/e.

    Parameters
    ----------
    z : array_like, complex
        The argument.
    k : int
        The branch.
    tol : float
        Where the iteration stops.

    Returns
    -------
    complex ndarray or scalar

    Raises
    ------
    ValueError
        The operands cannot be broadcast against each other.

    Examples
    --------
    >>> import fad, fad.scipy.special
    >>> fad.grad(lambda x: fad.scipy.special.lambertw(x).real)(0.0)
    np.float64(1.0)
    """
    return lambertw_p(z, np.asarray(k, dtype="long"), tol)
