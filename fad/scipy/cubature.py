"""Integrals over several variables, as integrals of integrals, and Gauss's rule for smooth ones of one variable."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.special

from fad.backends import like
from fad.ops.arrangement.structural import as_array
from fad.scipy.quadrature import quad
from fad.scipy.special.build import number
from fad.typing import ArrayLike


def nquad(func: Callable, ranges: Sequence, args: tuple = (), opts: dict | Sequence | None = None) -> tuple:
    """Integrate a function of several numbers, as ``scipy.integrate.nquad`` does: one :func:`quad` inside the other.

    The integral is differentiable in limits, in `args`, and in whatever `func` and the functions in `ranges` use.

    Parameters
    ----------
    func : callable
        ``func(x0, x1, ..., *args)`` returns a number.
    ranges : sequence
        For each variable its limits, those of `x0` first: a pair, or a function of the variables behind it and `args`
        that returns one.
    args : tuple
    opts : dict or sequence of dict, optional
        Keywords of `quad`: for all variables, or for each.

    Returns
    -------
    (integral, error) : the error is the estimate of the outermost integral, a constant.

    Raises
    ------
    ValueError
        if there are not as many options as ranges.

    Examples
    --------
    The area of an ellipse, and its derivative in one of the half-axes:

    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import nquad
    >>> def area(a, b):
    ...     return nquad(lambda y, x: 1.0, [lambda x: (0.0, b * np.sqrt(1 - (x / a) ** 2)), (0.0, a)])[0] * 4
    >>> round(area(2.0, 3.0), 6), fad.grad(area, 1)(2.0, 3.0).round(6)
    (18.849556, np.float64(6.283185))
    """
    args = tuple(args or ())
    options = [opts or {}] * len(ranges) if opts is None or isinstance(opts, dict) else list(opts)
    if len(options) != len(ranges):
        raise ValueError(f"opts of nquad must be as many as ranges, {len(ranges)}, but there are {len(options)}")

    for limits, some in zip(ranges[:-1], options, strict=False):
        func = _inner(func, limits, some)
    low, high = _pair(ranges[-1], *args)
    return quad(func, low, high, args, **options[-1])


def _inner(func: Callable, limits: Any, options: dict) -> Callable:
    """Return a function integrated over its first argument, which is a function of the others."""

    def integral(*others):
        return quad(lambda x: func(x, *others), *_pair(limits, *others), **options)[0]

    return integral


def _pair(limits: Any, *at: Any) -> tuple:
    low, high = limits(*at) if callable(limits) else limits
    return low, high


def dblquad(
    func: Callable, a: ArrayLike, b: ArrayLike, gfun: Callable | float, hfun: Callable | float, args: tuple = (),
    epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> tuple:  # fmt: skip
    """Integrate ``func(y, x, *args)`` for x from `a` to `b` and y from ``gfun(x)`` to ``hfun(x)``.

    Parameters and result as in ``scipy.integrate.dblquad``; differentiable as :func:`nquad` is.

    Parameters
    ----------
    func : callable
        ``func(y, x, *args)`` of numbers.
    a, b : float
        Ends of the outer interval.
    gfun, hfun : callable or float
        Ends of the inner interval, functions of x.
    args : tuple
        Further arguments of `func`, with derivatives.
    epsabs, epsrel : float
        Tolerances.

    Returns
    -------
    (value, error estimate)

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import dblquad
    >>> fad.grad(lambda c: dblquad(lambda y, x: c * x * y, 0.0, 1.0, 0.0, lambda x: c * x)[0])(2.0).round(9)
    np.float64(1.5)
    """
    inner = lambda x, *rest: (_limit(gfun, x), _limit(hfun, x))
    return nquad(func, [inner, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def tplquad(
    func: Callable, a: ArrayLike, b: ArrayLike, gfun: Callable | float, hfun: Callable | float, qfun: Callable | float,
    rfun: Callable | float, args: tuple = (), epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
) -> tuple:  # fmt: skip
    """Integrate ``func(z, y, x, *args)``, with z from ``qfun(x, y)`` to ``rfun(x, y)`` and the rest as in `dblquad`.

    Parameters
    ----------
    func : callable
        ``func(z, y, x, *args)`` of numbers.
    a, b : float
        Ends of the outer interval.
    gfun, hfun : callable or float
        Ends of the middle interval, functions of x.
    qfun, rfun : callable or float
        Ends of the inner interval, functions of x and y.
    args : tuple
        Further arguments of `func`, with derivatives.
    epsabs, epsrel : float
        Tolerances.

    Returns
    -------
    (value, error estimate)

    Examples
    --------
    >>> from fad.scipy.integrate import tplquad
    >>> round(tplquad(lambda z, y, x: x * y * z, 0.0, 1.0, 0.0, 2.0, 0.0, lambda x, y: 3.0)[0], 9)
    4.5
    """
    middle = lambda x, *rest: (_limit(gfun, x), _limit(hfun, x))
    inner = lambda y, x, *rest: (_limit(qfun, x, y), _limit(rfun, x, y))
    return nquad(func, [inner, middle, (a, b)], args, {"epsabs": epsabs, "epsrel": epsrel})


def _limit(limit: Any, *at: Any) -> Any:
    return limit(*at) if callable(limit) else limit


def fixed_quad(func: Callable, a: ArrayLike, b: ArrayLike, args: tuple = (), n: int = 5) -> tuple:
    """Integrate from `a` to `b` by Gauss's rule of `n` points, as ``scipy.integrate.fixed_quad`` does.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` of a vector of points returns values with the points along the last axis.
    a, b : float
        Limits, finite.
    args : tuple
    n : int
        The rule is exact for polynomials of degree 2 n - 1.

    Returns
    -------
    (integral, None)

    Raises
    ------
    ValueError
        if a limit is infinite.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import fixed_quad
    >>> fad.grad(lambda b: fixed_quad(lambda x: x**3, 0.0, b)[0])(2.0).round(9)
    np.float64(8.0)
    """
    a, b = as_array(a), as_array(b)
    if np.isinf(number(a)).any() or np.isinf(number(b)).any():
        raise ValueError("Gaussian quadrature is only available for finite limits.")
    points, weights = (like(b, x) for x in scipy.special.roots_legendre(n))
    values = func((b - a) * (points + 1) / 2 + a, *args)
    return (b - a) / 2 * np.sum(weights * values, axis=-1), None
