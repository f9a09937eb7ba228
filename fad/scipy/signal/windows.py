"""``scipy.signal.windows``, differentiable: those that have a parameter, in it. Lengths are constants.

>>> import numpy as np, fad
>>> fad.grad(lambda std: fad.scipy.signal.windows.gaussian(5, std)[0])(1.0).round(6)
np.float64(0.541341)
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import scipy.signal.windows
import scipy.special

from fad.core.primitives.primitive import has_tracer
from fad.core.primitives.samples import call
from fad.core.tracing.values import stop_gradient
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import missing, registrar

__all__ = [
    "chebwin", "exponential", "gaussian", "general_cosine", "general_gaussian", "general_hamming", "get_window",
    "kaiser", "kaiser_bessel_derived", "taylor", "tukey",
]  # fmt: skip
__getattr__ = missing("signal.windows")
_register = registrar("signal.windows")


def _register_window(name: str, samples: Any) -> Any:
    """Make a window public; SciPy computes some parts of some of them in the precision of the parameter."""
    raises = "ValueError: `M` is negative, or no whole number."
    return _register(name, samples=samples, complex=False, rounding="single", raises=raises)


def _shape(make: Any, M: Any, sym: bool) -> Any:
    """Return what ``make(length)`` gives: one more of a periodic window, without the last."""
    if int(M) != M or M < 0:
        raise ValueError("Window length M must be a non-negative integer")
    if M <= 1:
        return np.ones(int(M))
    return make(int(M)) if sym else make(int(M) + 1)[:-1]


def _double(x: Any) -> Any:
    """Return a parameter in double precision, as all windows are."""
    return as_array(x).astype(float)


def _around(n: int) -> Any:
    return np.arange(n) - (n - 1) / 2


@_register_window("kaiser", lambda s: [call(5, s.positive()), call(6, s.positive(), sym=False)])
def kaiser(M, beta, sym=True, *, xp=None, device=None):
    """Return the window of Kaiser, of a shape `beta`.

    >>> fad.grad(lambda beta: fad.scipy.signal.windows.kaiser(5, beta)[0])(2.0).round(6)
    np.float64(-0.306097)
    """
    beta = _double(beta)
    bow = lambda n: scipy.special.i0(beta * np.sqrt(1 - (2 * _around(n) / (n - 1)) ** 2.0))
    return _shape(lambda n: bow(n) / scipy.special.i0(beta), M, sym)


@_register_window("kaiser_bessel_derived", lambda s: [call(6, s.positive())])
def kaiser_bessel_derived(M, beta, *, sym=True, xp=None, device=None):
    """Return the window of the roots of a Kaiser window's sums, of a shape `beta`.

    >>> fad.grad(lambda beta: fad.scipy.signal.windows.kaiser_bessel_derived(4, beta)[0])(2.0).round(6)
    np.float64(-0.089834)
    """
    if not sym:
        raise ValueError("Kaiser-Bessel Derived windows are only defined for symmetric shapes")
    if M < 1:
        return np.array([])
    if M % 2:
        raise ValueError("Kaiser-Bessel Derived windows are only defined for even number of points")
    sums = np.cumsum(kaiser(M // 2 + 1, beta))
    half = np.sqrt(sums[:-1] / sums[-1])
    return np.concatenate([half, half[::-1]])


@_register_window("gaussian", lambda s: [call(5, s.positive()), call(4, s.positive(), sym=False)])
def gaussian(M, std, sym=True, *, xp=None, device=None):
    """Return a Gaussian window of a standard deviation.

    >>> fad.grad(lambda std: fad.scipy.signal.windows.gaussian(5, std)[0])(1.0).round(6)
    np.float64(0.541341)
    """
    std = _double(std)
    return _shape(lambda n: np.exp(-(_around(n) ** 2) / (2 * std * std)), M, sym)


@_register_window(
    "general_gaussian", lambda s: [call(4, s.positive(), s.positive()), call(4, 2.0, s.positive(), False)]
)
def general_gaussian(M, p, sig, sym=True, *, xp=None, device=None):
    """Return a window of the form of a Gaussian, of a shape `p` and a width `sig`.

    >>> fad.grad(lambda p: fad.scipy.signal.windows.general_gaussian(5, p, 1.0)[0])(1.0).round(6)
    np.float64(-0.375229)
    """
    p, sig = _double(p), _double(sig)

    def make(n: int) -> Any:
        apart = np.abs(_around(n))
        middle = apart == 0
        power = np.exp(2 * p * np.log(np.where(middle, 1.0, apart) / sig))
        return np.where(middle, 1.0, np.exp(-0.5 * power))

    return _shape(make, M, sym)


@_register_window("general_cosine", lambda s: [call(5, s.real(3)), call(4, s.real(2), sym=False)])
def general_cosine(M, a, sym=True):
    """Return a sum of cosines of coefficients `a`.

    >>> fad.grad(lambda a: fad.scipy.signal.windows.general_cosine(5, a)[1])(np.array([0.5, 0.5])).round(9) + 0.0
    array([1., 0.])
    """
    a = as_array(a)
    make = lambda n: a @ np.cos(np.arange(a.shape[0])[:, None] * np.linspace(-np.pi, np.pi, n))
    return _shape(make, M, sym)


@_register_window("general_hamming", lambda s: [call(5, s.positive()), call(4, s.positive(), sym=False)])
def general_hamming(M, alpha, sym=True, *, xp=None, device=None):
    """Return a window of one cosine, above a base that `alpha` gives.

    >>> fad.grad(lambda alpha: fad.scipy.signal.windows.general_hamming(5, alpha)[0])(0.5)
    np.float64(2.0)
    """
    alpha = _double(alpha)
    return general_cosine(M, np.stack([alpha, 1.0 - alpha]), sym)


@_register_window("exponential", lambda s: [call(5, None, s.positive()), call(4, s.positive(), s.positive(), False)])
def exponential(M, center=None, tau=1.0, sym=True, *, xp=None, device=None):
    """Return a window that decays from its middle, or a center, by `tau`.

    >>> fad.grad(lambda tau: fad.scipy.signal.windows.exponential(5, tau=tau)[0])(1.0).round(6)
    np.float64(0.270671)
    """
    if sym and center is not None:
        raise ValueError("If sym==True, center must be None.")
    tau = _double(tau)
    make = lambda n: np.exp(-np.abs(np.arange(n) - ((n - 1) / 2 if center is None else _double(center))) / tau)
    return _shape(make, M, sym)


@_register_window("tukey", lambda s: [call(9, s.real(low=0.3, high=0.45)), call(8, s.real(low=0.7, high=0.8), False)])
def tukey(M, alpha=0.5, sym=True, *, xp=None, device=None):
    """Return a window that is flat but for a share `alpha` of it, which has the form of a cosine.

    >>> fad.grad(lambda alpha: fad.scipy.signal.windows.tukey(9, alpha)[1])(0.5).round(6)
    np.float64(-1.570796)
    """
    alpha = _double(alpha)
    share = np.where(alpha <= 0, 1.0, np.minimum(alpha, 1.0))

    def make(n: int) -> Any:
        i = np.arange(n)
        edge = np.minimum(i, n - 1 - i)
        slope = (edge <= np.floor(stop_gradient(share) * (n - 1) / 2.0)) & (alpha > 0)
        return np.where(slope, 0.5 * (1 + np.cos(np.pi * (2.0 * edge / share / (n - 1) - 1))), 1.0)

    return _shape(make, M, sym)


def _decibels(*calls: Any) -> Any:
    return lambda s: [call(*first, s.real(low=50.0, high=60.0), **settings) for first, settings in calls]


@_register_window("chebwin", _decibels(([6], {}), ([7], {"sym": False})))
def chebwin(M, at, sym=True, *, xp=None, device=None):
    """Return the window of Dolph and Chebyshev, whose side lobes are `at` decibels lower.

    >>> fad.grad(lambda at: fad.scipy.signal.windows.chebwin(5, at)[0])(60.0).round(6)
    np.float64(-0.00127)
    """
    at = np.abs(_double(at))

    def make(n: int) -> Any:
        order = n - 1.0
        beta = np.cosh(np.arccosh(10 ** (at / 20.0)) / order)
        x = beta * np.cos(np.pi * np.arange(n) / n)
        inside = np.abs(x) <= 1
        waves = np.cos(order * np.arccos(np.where(inside, x, 0.0)))
        sign = np.where((x > 0) | (n % 2 == 1), 1.0, -1.0)
        p = np.where(inside, waves, sign * np.cosh(order * np.arccosh(np.where(inside, 2.0, np.abs(x)))))
        half = (n + 1) // 2 if n % 2 else n // 2 + 1
        if n % 2:
            w = np.real(np.fft.fft(p))[:half]
            w = np.concatenate([w[:0:-1], w])
        else:
            w = np.real(np.fft.fft(p * np.exp(1j * np.pi / n * np.arange(n))))
            w = np.concatenate([w[half - 1 : 0 : -1], w[1:half]])
        return w / np.max(w)

    return _shape(make, M, sym)


@_register_window("taylor", _decibels(([6, 3], {}), ([5, 4], {"norm": False})))
def taylor(M, nbar=4, sll=30, norm=True, sym=True, *, xp=None, device=None):
    """Return the window of Taylor, of `nbar` side lobes that are nearly equal, `sll` decibels lower.

    >>> fad.grad(lambda sll: fad.scipy.signal.windows.taylor(5, sll=sll)[0])(30.0).round(6)
    np.float64(-0.016338)
    """
    nbar, sll = operator.index(nbar), _double(sll)

    def make(n: int) -> Any:
        a2 = (np.arccosh(10 ** (sll / 20)) / np.pi) ** 2
        spread = nbar**2 / (a2 + (nbar - 0.5) ** 2)
        m = np.arange(1.0, nbar)
        heights = []
        for i, square in enumerate(m**2):
            others = np.prod(1 - square / np.delete(m**2, i))
            heights.append((-1) ** i * np.prod(1 - square / spread / (a2 + (m - 0.5) ** 2)) / (2 * others))
        at = lambda k: 1 + 2 * (np.stack(heights) @ np.cos(2 * np.pi * m[:, None] * (k - n / 2.0 + 0.5) / n))
        w = at(np.arange(n)) if heights else np.ones(n)
        return w / at(np.array([(n - 1) / 2])) if norm and heights else w

    return _shape(make, M, sym)


_OF_PARAMETERS = {
    "kaiser": kaiser, "ksr": kaiser, "kaiser_bessel_derived": kaiser_bessel_derived, "kbd": kaiser_bessel_derived,
    "gaussian": gaussian, "gauss": gaussian, "gss": gaussian,
    "general_gaussian": general_gaussian, "general gaussian": general_gaussian, "general gauss": general_gaussian,
    "general_gauss": general_gaussian, "ggs": general_gaussian,
    "general_cosine": general_cosine, "general cosine": general_cosine,
    "general_hamming": general_hamming, "general hamming": general_hamming,
    "exponential": exponential, "poisson": exponential, "tukey": tukey, "tuk": tukey,
    "chebwin": chebwin, "cheb": chebwin, "taylor": taylor, "taylorwin": taylor,
}  # fmt: skip


@registrar("signal")(
    "get_window", complex=False, rounding="single",
    raises="ValueError: There is no such window, or it takes other parameters.",
    samples=lambda s: [call(("gaussian", s.positive()), 5), call(s.positive(), 4), call(("tukey", 0.4), 5, False)],
)  # fmt: skip
def get_window(window, Nx, fftbins=True, *, xp=None, device=None):
    """Return a window of a name, or of a name and its parameters, or the one of Kaiser of a number.

    >>> fad.grad(lambda beta: fad.scipy.signal.get_window(("kaiser", beta), 4)[0])(2.0).round(6)
    np.float64(-0.306097)
    """
    if not has_tracer((window,)):
        return scipy.signal.windows.get_window(window, Nx, fftbins)
    sym, name, parameters = not fftbins, "kaiser", (window,)
    if isinstance(window, tuple):
        name, *parameters = window
    for ending, symmetric in (("_symmetric", True), ("_periodic", False)):
        if isinstance(name, str) and name.endswith(ending):
            sym, name = symmetric, name.removesuffix(ending)
    if name not in _OF_PARAMETERS:
        raise ValueError(f"the window {name!r} has no parameters with a derivative: those of {__all__} have")
    return _OF_PARAMETERS[name](Nx, *parameters, sym=sym)
