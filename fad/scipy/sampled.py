"""Integrals of samples: trapezoid, Simpson's and Romberg's rules, and their running sums."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.integrate as si

from fad.backends import like
from fad.core.primitives.primitive import public
from fad.core.primitives.samples import call
from fad.ops.arrangement.structural import as_array


def _last(y: Any, axis: int) -> Any:
    y = as_array(y)
    return np.moveaxis(y if y.dtype.kind in "fc" else y.astype(float), axis, -1)


def _spacing(x: Any, dx: Any, axis: int) -> Any:
    """Return the widths of the intervals along the last axis: an array, or a number."""
    if x is None:
        return dx
    x = as_array(x)
    if x.ndim > 1:
        x = np.moveaxis(x, axis, -1)
    return x[..., 1:] - x[..., :-1]


def _samples(s):
    return [
        call(s.real(3, 7)),
        call(s.real(6), dx=0.3),
        call(s.real(6, 2), axis=0),
        call(s.real(3, 6), x=np.cumsum(s.positive(6)).astype(s.dtype)),
        call(s.real(7), x=np.cumsum(s.positive(7)).astype(s.dtype)),
        call(s.real(6, 2), x=np.cumsum(s.positive(6, 2), 0).astype(s.dtype), axis=0),
        call(s.real(2)),
    ]


def _double(x: Any) -> Any:
    """Return numbers in double precision: what SciPy computes in where it does not keep that of the samples."""
    return x.astype(np.result_type(x.dtype, np.float64))


def _trapezia(y: Any, h: Any) -> Any:
    return h * (y[..., 1:] + y[..., :-1]) / 2.0


@public(si.trapezoid, name="scipy.trapezoid", samples=_samples)
def trapezoid(y, x=None, dx=1.0, axis=-1):
    """Integrate samples along an axis by the trapezoidal rule; differentiable in `y`, `x` and `dx`.

    >>> import numpy as np
    >>> from fad.scipy.integrate import trapezoid
    >>> trapezoid(np.array([1.0, 2.0, 4.0]))
    np.float64(4.5)
    """
    return np.sum(_trapezia(_last(y, axis), _spacing(x, dx, axis)), axis=-1)


def _cumulative(parts: Any, initial: Any, axis: int) -> Any:
    """Return running sums along the last axis, begun with `initial` if it is given, with that axis in its place."""
    total = np.cumsum(parts, axis=-1)
    if initial is not None:
        start = np.zeros_like(total[..., :1]) + (np.moveaxis(initial, axis, -1) if np.ndim(initial) else initial)
        total = np.concatenate([start, total + start], axis=-1)
    return np.moveaxis(total, -1, axis)


def _cumulative_samples(s):
    return [*_samples(s), call(s.real(3, 5), initial=0)]


@public(si.cumulative_trapezoid, name="scipy.cumulative_trapezoid", samples=_cumulative_samples)
def cumulative_trapezoid(y, x=None, dx=1.0, axis=-1, initial=None):
    """Integrate samples cumulatively by the trapezoidal rule; `initial` is 0 or None, as in SciPy.

    >>> import numpy as np
    >>> from fad.scipy.integrate import cumulative_trapezoid
    >>> cumulative_trapezoid(np.array([1.0, 2.0, 4.0]), initial=0)
    array([0. , 1.5, 4.5])
    """
    if initial is not None and (initial != 0 or not np.isscalar(initial)):
        raise ValueError("`initial` must be `None` or `0`.")
    return _cumulative(_trapezia(_last(y, axis), _spacing(x, dx, axis)), initial, axis)


# --- Simpson's rule -------------------------------------------------------------------------------------------------


def _over(a: Any, b: Any) -> Any:
    """Divide, with 0 where an interval has no width, as SciPy does."""
    empty = b == 0
    return np.where(empty, 0.0 * b, a / np.where(empty, 1.0 + 0.0 * b, b))


def _pairs(y: Any, h: Any) -> Any:
    """Return Simpson's rule over pairs of intervals of any widths, summed (y has an odd number of samples)."""
    a, b, c = y[..., :-2:2], y[..., 1:-1:2], y[..., 2::2]
    if np.ndim(h) == 0:
        return np.sum(a + 4.0 * b + c, axis=-1) * (h / 3.0)
    left, right = h[..., ::2], h[..., 1::2]
    total, product, ratio = left + right, left * right, _over(left, right)
    ends = (2.0 - _over(1.0 + 0.0 * ratio, ratio)) * a + (2.0 - ratio) * c
    return np.sum(total / 6.0 * (ends + total * _over(total, product) * b), axis=-1)


@functools.cache
def _simpson_is_double() -> bool:
    """Return whether SciPy leaves single precision on its way through Simpson's rule, as before SciPy 1.18."""
    return si.simpson(np.ones(4, dtype=np.float32)).dtype == np.float64


def _simpson_samples(s):
    return [*_samples(s), call(s.real(2), x=np.cumsum(s.positive(2)).astype(s.dtype))]


@public(si.simpson, name="scipy.simpson", samples=_simpson_samples, rounding="single")
def simpson(y, x=None, *, dx=1.0, axis=-1):
    """Integrate samples along an axis by Simpson's rule; an even number of samples gets Cartwright's correction.

    >>> import numpy as np
    >>> from fad.scipy.integrate import simpson
    >>> simpson(np.array([0.0, 1.0, 4.0]))
    np.float64(2.6666666666666665)
    """
    h, y = _spacing(x, dx, axis), _last(y, axis)
    n = y.shape[-1]
    if n == 2:
        return np.sum(_trapezia(y, h), axis=-1)
    double = _simpson_is_double()
    h = _double(h) if double and x is not None else h
    if n % 2:
        return _pairs(y, h)
    even, y = np.ndim(h) == 0, _double(y) if double and y.ndim == 1 else y  # SciPy adds in place to what has axes
    total = _pairs(y[..., :-1], h if even else h[..., :-1])
    last, before = (h + 0.0 * y.real[..., 0],) * 2 if even else (h[..., -1], h[..., -2])
    both = last + before
    alpha = _over(2.0 * last * last + 3.0 * last * before, 6.0 * both)
    beta = _over(last * last + 3.0 * last * before, 6.0 * before)
    eta = _over(last * last * last, 6.0 * before * both)
    return total + alpha * y[..., -1] + beta * y[..., -2] - eta * y[..., -3]


def _halves(y: Any, h: Any) -> tuple:
    """Return the integrals over both intervals of each pair, of the parabola through three samples."""
    a, b, c = y[..., :-2], y[..., 1:-1], y[..., 2:]
    left, right = (h, h) if np.ndim(h) == 0 else (h[..., :-1], h[..., 1:])
    total = left + right

    def half(own, other, near, middle, far):
        part = own * own / (other * total)
        return own / 6.0 * ((3.0 - own / total) * near + (3.0 + part + own / total) * middle - part * far)

    return half(left, right, a, b, c), half(right, left, c, b, a)


def _increasing_samples(s):
    return [call(*c.args, **c.kwargs) for c in _samples(s)] + [call(s.real(3, 5), initial=s.real(3, 1))]


@functools.cache
def _places_are_double() -> bool:
    """Return whether samples at given places are integrated in double whatever they are, as before SciPy 1.17."""
    places = np.arange(3, dtype=np.float32)
    return si.cumulative_simpson(places, x=places).dtype == np.float64


@public(si.cumulative_simpson, name="scipy.cumulative_simpson", samples=_increasing_samples, rounding="single")
def cumulative_simpson(y, *, x=None, dx=1.0, axis=-1, initial=None):
    """Integrate samples cumulatively by Simpson's rule: each interval by the parabola through it and a neighbour.

    >>> import numpy as np
    >>> from fad.scipy.integrate import cumulative_simpson
    >>> cumulative_simpson(np.array([0.0, 1.0, 4.0, 9.0])).round(6)
    array([0.333333, 2.666667, 9.      ])
    """
    h, y = _spacing(x, dx, axis), _last(y, axis)
    if y.shape[-1] > 2 and (x is None or _places_are_double()):
        y = _double(y)
    if x is None and np.ndim(dx):  # one width for all intervals of each row
        h = np.moveaxis(np.broadcast_to(dx, _alone(as_array(y), axis)), axis, -1) + 0.0 * y.real[..., 1:]
    if x is not None and np.any(h <= 0):
        raise ValueError("Input x must be strictly increasing.")
    n = y.shape[-1]
    if n < 3:
        return _cumulative(_trapezia(y, h), initial, axis)
    first, second = _halves(y, h)
    odd = like(y, np.arange(n - 2) % 2 == 0)
    # Interval i is the first of the pair (i, i+1) for even i, the second of (i-1, i) for odd i; the last is a second.
    body = np.where(odd, first, np.concatenate([first[..., :1], second[..., :-1]], axis=-1))
    return _cumulative(np.concatenate([body, second[..., -1:]], axis=-1), initial, axis)


def _alone(y: Any, axis: int) -> tuple:
    """Return the shape of an array whose last axis came from `axis`, with length 1 there instead."""
    shape = [*y.shape[:-1]]
    shape.insert(axis % y.ndim, 1)
    return tuple(shape)


# --- Romberg's rule -------------------------------------------------------------------------------------------------


@public(si.romb, name="scipy.romb", samples=lambda s: [
    call(s.real(9)), call(s.real(5, 2), dx=0.3, axis=0), call(s.real(2)), call(s.real(2, 3))],
    rounding="single")  # fmt: skip
def romb(y, dx=1.0, axis=-1, show=False):
    """Integrate ``2**k + 1`` equally spaced samples along an axis by Romberg's rule; `dx` may be traced, too.

    >>> import numpy as np
    >>> from fad.scipy.integrate import romb
    >>> romb(np.array([0.0, 1.0, 4.0]))
    np.float64(2.6666666666666665)
    """
    y = _double(_last(y, axis))
    intervals = y.shape[-1] - 1
    k = intervals.bit_length() - 1
    if intervals < 1 or 2**k != intervals:
        raise ValueError("Number of samples must be one plus a non-negative power of 2.")
    if show:
        raise ValueError("romb of traced values prints no table: write show=False")
    row: list = []
    for i in range(k + 1):  # the trapezoidal rule in ever smaller steps, extrapolated to steps of no width
        step = intervals >> i
        part = y[..., ::step]
        inner = np.sum(part[..., 1:-1], axis=-1)
        new = [((part[..., 0] + part[..., -1]) / 2.0 + inner) * (dx * float(step))]
        for j, old in enumerate(row):
            new.append(new[j] + (new[j] - old) / (4.0 ** (j + 1) - 1.0))
        row = new
    return row[-1]
