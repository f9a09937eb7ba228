"""Integrals of functions (quad) and of samples (trapezoid, simpson and their running sums)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as si

from fad.core.primitive import public
from fad.core.samples import call
from fad.scipy.host import HostCall
from fad.scipy.special.build import number
from fad.transforms.check import as_value
from fad.transforms.implicit import closed_over
from fad.transforms.jvp import jvp
from fad.transforms.tape import is_inexact
from fad.transforms.vjp import vjp

# --- of functions ---------------------------------------------------------------------------------------------------


def quad(
    func: Callable, a: Any, b: Any, args: tuple = (), *, epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
    limit: int = 50, points: Any = None,
) -> tuple:  # fmt: skip
    """Integrate a function of one number from `a` to `b` by ``scipy.integrate.quad``.

    The integral is differentiable in both limits, where its derivative is the integrand, and in whatever `func` uses,
    `args` or its closure, where it is the integral of the derivative, taken with the same tolerances.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns a number.
    a, b : float
        Limits; infinite ones are allowed, and are constants.
    args : tuple
        What the integrand depends on.
    epsabs, epsrel, limit, points
        As in SciPy.

    Returns
    -------
    (integral, error) : the error is SciPy's estimate, a constant.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import quad
    >>> def f(a, b):
    ...     return quad(lambda x, a: np.exp(-a * x * x), 0.0, b, (a,))[0]
    >>> [g.round(9) for g in fad.grad(f, (0, 1))(1.0, 2.0)]
    [np.float64(-0.422725056), np.float64(0.018315639)]
    """
    held, rebuild = closed_over(lambda x: func(x, *args))
    options = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit, "points": points}
    integral = _Integral(lambda held: rebuild(held), options)
    a, b = (as_value(x, "a limit of quad") for x in (a, b))
    a, b = (x if is_inexact(x) else x.astype(float) for x in (a, b))
    (value,) = integral.call(a, b, *held)
    return value, integral.error


class _Integral:
    """The integral of ``build(held)`` between two limits, as a function of limits and held values."""

    def __init__(self, build: Callable, options: dict, like: Any = None):
        self.build = build
        self.options = options
        self.like = like  # an array of the integrand's shape, or None for a number
        self.error: Any = np.float64(0.0)
        self.call = HostCall("scipy.integrate.quad", self.run, self.push, self.forward, self.pull, self.batch)

    def run(self, a: Any, b: Any, *held: Any) -> list:
        f = self.build(list(held))
        if self.like is None:
            value, self.error = si.quad(lambda x: number(f(x)).item(), float(a), float(b), **self.options)
        else:
            value = si.quad_vec(
                lambda x: number(f(np.float64(x))), float(a), float(b), epsabs=self.options["epsabs"],
                epsrel=self.options["epsrel"], norm="max", points=self.options["points"],
            )[0]  # fmt: skip
        return [np.asarray(value)[()] if self.like is None else value]

    def batch(self, size: int, batched: list, values: list) -> tuple[list, list]:
        lanes = [self.call(*[v[i] if m else v for v, m in zip(values, batched, strict=True)])[0] for i in range(size)]
        return [np.stack(lanes)], [True]

    def ends(self, a: Any, b: Any, held: Any) -> tuple:
        f = self.build(list(held))
        return tuple(None if np.isinf(number(x)).any() else f(x) for x in (a, b))

    def push(self, operands: list, tangents: list) -> tuple[list, list]:
        a, b, *held = operands
        ta, tb, *changes = tangents
        total = self._changed(a, b, held, changes)
        at_a, at_b = self.ends(a, b, held)
        if at_b is not None:
            total = total + at_b * tb
        if at_a is not None:
            total = total - at_a * ta
        return self.call(*operands), [total]

    def _changed(self, a, b, held, changes):
        moving = [i for i, h in enumerate(held) if is_inexact(h)]
        if not moving:
            return a * 0.0
        n = len(held)

        def build(both):
            hs, ts = both[:n], both[n:]

            def along(x):
                def of(*moved):
                    full = list(hs)
                    for i, h in zip(moving, moved, strict=True):
                        full[i] = h
                    return self.build(full)(x)

                return jvp(of, tuple(hs[i] for i in moving), tuple(ts[i] for i in moving))[1]

            return along

        return _Integral(build, self.options, self.like).call(a, b, *held, *changes)[0]

    def forward(self, *operands: Any) -> tuple[list, Any]:
        return self.call(*operands), list(operands)

    def pull(self, operands: list, cts: list) -> list:
        a, b, *held = operands
        ct = cts[0]
        at_a, at_b = self.ends(a, b, held)
        back = [None if at_a is None else np.sum(-ct * at_a), None if at_b is None else np.sum(ct * at_b)]
        return back + [self._pulled(a, b, held, i, ct) if is_inexact(h) else None for i, h in enumerate(held)]

    def _pulled(self, a, b, held, i, ct):
        def build(both):
            *hs, weight = both

            def along(x):
                return vjp(lambda h: self.build([*hs[:i], h, *hs[i + 1 :]])(x), hs[i])[1](weight)[0]

            return along

        scalar = np.shape(held[i]) == ()
        return _Integral(build, self.options, None if scalar else held[i]).call(a, b, *held, ct)[0]


# --- of samples -----------------------------------------------------------------------------------------------------


def _spacing(y: Any, x: Any, dx: Any, axis: int) -> Any:
    """Return the widths of the intervals along the last axis: an array, or a number."""
    if x is None:
        return dx
    if np.ndim(x) == 1:
        return x[1:] - x[:-1]
    x = np.moveaxis(x, axis, -1)
    return x[..., 1:] - x[..., :-1]


def _last(y: Any, axis: int) -> Any:
    y = y if hasattr(y, "ndim") else np.asarray(y)
    return np.moveaxis(y, axis, -1)


def _samples(s):
    return [
        call(s.real(3, 7)),
        call(s.real(6), dx=0.3),
        call(s.real(6, 2), axis=0),
        call(s.real(3, 6), np.cumsum(s.positive(6)).astype(s.dtype)),
        call(s.real(7), np.cumsum(s.positive(7)).astype(s.dtype)),
    ]


@public(name="scipy.trapezoid", samples=_samples)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integrate samples along an axis by the trapezoidal rule; differentiable in `y`, `x` and `dx`.

    >>> import numpy as np
    >>> from fad.scipy.integrate import trapezoid
    >>> trapezoid(np.array([1.0, 2.0, 4.0]))
    np.float64(4.5)
    """
    h = _spacing(y, x, dx, axis)
    y = _last(y, axis)
    return np.sum(h * (y[..., 1:] + y[..., :-1]) * 0.5, axis=-1)


def _first_only(value: Any, initial: Any, axis: int) -> Any:
    if initial is None:
        return np.moveaxis(value, -1, axis)
    start = np.zeros_like(value[..., :1]) + initial
    return np.moveaxis(np.concatenate([start, value + initial], axis=-1), -1, axis)


@public(name="scipy.cumulative_trapezoid", samples=_samples)
def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    """Integrate samples cumulatively by the trapezoidal rule; `initial` is 0 or None, as in SciPy.

    >>> import numpy as np
    >>> from fad.scipy.integrate import cumulative_trapezoid
    >>> cumulative_trapezoid(np.array([1.0, 2.0, 4.0]), initial=0)
    array([0. , 1.5, 4.5])
    """
    if initial is not None and (initial != 0 or not np.isscalar(initial)):
        raise ValueError("`initial` must be `None` or `0`.")
    h = _spacing(y, x, dx, axis)
    y = _last(y, axis)
    return _first_only(np.cumsum(h * (y[..., 1:] + y[..., :-1]) * 0.5, axis=-1), initial, axis)


def _pairs(y: Any, h: Any) -> Any:
    """Return Simpson's rule over pairs of intervals of any widths, summed (y has an odd number of samples)."""
    a, b, c = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if np.ndim(h) == 0:
        return np.sum((a + 4.0 * b + c) * (h / 3.0), axis=-1)
    left, right = h[..., ::2], h[..., 1::2]
    total = left + right
    weights = (2.0 - right / left, total * total / (left * right), 2.0 - left / right)
    return np.sum(total / 6.0 * (weights[0] * a + weights[1] * b + weights[2] * c), axis=-1)


@public(name="scipy.simpson", samples=_samples)
def simpson(y, x=None, dx=1.0, axis=-1):
    """Integrate samples along an axis by Simpson's rule; an even number of samples gets Cartwright's correction.

    >>> import numpy as np
    >>> from fad.scipy.integrate import simpson
    >>> simpson(np.array([0.0, 1.0, 4.0]))
    np.float64(2.6666666666666665)
    """
    h = _spacing(y, x, dx, axis)
    y = _last(y, axis)
    n = y.shape[-1]
    if n % 2 or n < 2:
        return _pairs(y, h)
    if n == 2:
        return np.sum(h * (y[..., 1:] + y[..., :-1]) * 0.5, axis=-1)
    total = _pairs(y[..., :-1], h if np.ndim(h) == 0 else h[..., :-1])
    last, before = (h, h) if np.ndim(h) == 0 else (h[..., -1], h[..., -2])
    both = last + before
    alpha = (2.0 * last * last + 3.0 * last * before) / (6.0 * both)
    beta = (last * last + 3.0 * last * before) / (6.0 * before)
    eta = last * last * last / (6.0 * before * both)
    return total + alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]


def _halves(y: Any, h: Any) -> tuple:
    """Return the integrals over both intervals of each pair, of the parabola through three samples."""
    a, b, c = y[..., :-2], y[..., 1:-1], y[..., 2:]
    left, right = (h, h) if np.ndim(h) == 0 else (h[..., :-1], h[..., 1:])
    total = left + right

    def half(own, other, near, middle, far):
        return own / 6.0 * (
            (3.0 - own / total) * near + (3.0 + own * own / (other * total) + own / total) * middle
            - own * own / (other * total) * far
        )  # fmt: skip

    return half(left, right, a, b, c), half(right, left, c, b, a)


@public(name="scipy.cumulative_simpson", samples=lambda s: list(_keywords(_samples(s))))
def cumulative_simpson(y, *, x=None, dx=1.0, axis=-1, initial=None):
    """Integrate samples cumulatively by Simpson's rule: each interval by the parabola through it and a neighbour.

    >>> import numpy as np
    >>> from fad.scipy.integrate import cumulative_simpson
    >>> cumulative_simpson(np.array([0.0, 1.0, 4.0, 9.0])).round(6)
    array([0.333333, 2.666667, 9.      ])
    """
    h = _spacing(y, x, dx, axis)
    y = _last(y, axis)
    n = y.shape[-1]
    if n < 3:
        return _first_only(np.cumsum(h * (y[..., 1:] + y[..., :-1]) * 0.5, axis=-1), initial, axis)
    first, second = _halves(y, h)
    odd = np.arange(n - 2) % 2 == 0
    # Interval i is the first of the pair (i, i+1) for even i, the second of (i-1, i) for odd i; the last is a second.
    body = np.where(odd, first, np.concatenate([first[..., :1], second[..., :-1]], axis=-1))
    parts = np.concatenate([body, second[..., -1:]], axis=-1)
    return _first_only(np.cumsum(parts, axis=-1), initial, axis)


def _keywords(calls):
    for c in calls:
        yield call(c.args[0], **c.kwargs) if len(c.args) == 1 else call(c.args[0], x=c.args[1], **c.kwargs)
