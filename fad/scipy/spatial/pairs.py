"""Sums over all pairs of points of two sets: one primitive, closed under differentiation.

A function g of two numbers, the kernel, makes the numbers ``g(a[i,k], b[j,k])`` of points a (m of them) and b (n).
The primitive multiplies them with two factors that share two of the axes i, j, k with them, and sums:

- over "coordinates": ``y[i,j] = sum_k u[i,k] v[j,k] g``, the distances of many metrics;
- over the "right" points: ``y[i,k] = sum_j u[i,j] v[j,k] g``; over the "left" ones: ``y[j,k] = sum_i u[i,j] v[i,k] g``.

Each derivative is again such a sum, with a derivative of the kernel. No array has all three axes, coordinates are taken
one by one and the points in blocks that stay in the cache; and differences are formed before they are multiplied, so
that points close together lose no digits. On the host SciPy computes the distances themselves.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scipy.spatial.distance

from fad.backends import backend_of
from fad.core.primitives.archetypes import align, elementwise, fit
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.scipy.spatial.slopes import slopes

_BLOCK = 1 << 14  # numbers of a pair of sets that are worked on at a time

# --- kernels --------------------------------------------------------------------------------------------------------
# Each gives its derivative of an order (in a, in b) at x = a[i,k] and y = b[j,k], but for a number: its factor.


def _square(x, y, p, order):
    d = x - y
    return d * d if order == (0, 0) else d


def _absolute(x, y, p, order):
    d = x - y
    return np.abs(d) if order == (0, 0) else np.sign(d)


def _power(x, y, p, order):
    """Differentiate ``|x - y| ** p``, with the derivative 0 at 0 where there is none."""
    d, n = x - y, sum(order)
    size = np.abs(d)
    zero = size == 0
    value = np.where(zero, 0.0, _raise_power(np.where(zero, 1.0, size), p - n))
    return value * np.sign(d) if n % 2 else value


def _raise_power(x, exponent):
    if exponent in (1.0, 2.0, 3.0, 4.0):
        return math.prod([x] * int(exponent - 1), start=x)
    return x**exponent


def _canberra(x, y, p, order):
    """Differentiate ``|x - y| / (|x| + |y|)``: for numbers of one sign ``1 - 2 y / (x + y)``, but for the sign."""
    alike = (x > 0) & (y > 0) | (x < 0) & (y < 0)
    total, (n, k) = x + y, order
    safe = np.where(alike, total, 1.0)
    if order == (0, 0):
        return np.where(alike, np.abs(x - y) / np.abs(safe), ((x != 0) | (y != 0)) * 1.0)
    slope = math.factorial(n + k) * y / _raise_power(safe, n + k + 1.0)
    if k:
        slope = slope - k * math.factorial(n + k - 1) / _raise_power(safe, float(n + k))
    return np.where(alike, np.sign(x - y) * np.sign(total) * slope, 0.0)


_KERNELS: dict[str, Callable] = {"square": _square, "absolute": _absolute, "power": _power, "canberra": _canberra}


def _factor(kernel: str, p: float, order: tuple) -> float:
    """Return the number that a derivative of a kernel is to be multiplied with."""
    n = sum(order)
    if kernel == "canberra":
        return 1.0 if n == 0 else -2.0 if n % 2 == 0 else 2.0
    size = {"square": 2.0 if n else 1.0, "power": math.prod(p - i for i in range(n))}.get(kernel, 1.0)
    return -size if order[1] % 2 else size  # a function of a - b changes its sign with each derivative in b


def _terms(kernel: str, p: float, order: tuple, x: Any, y: Any) -> Callable:
    """Return a function of k: the kernel at coordinate k of all pairs. The coordinates of x and y come first."""
    if kernel == "largest":
        return _largest(x, y, order)
    function = _KERNELS[kernel]
    return lambda k: function(x[k][..., :, None], y[k][..., None, :], p, order)


def _largest(x: Any, y: Any, order: tuple) -> Callable:
    """Return the share that a coordinate has in the largest absolute difference; ties share equally."""

    def difference(k):
        return x[k][..., :, None] - y[k][..., None, :]

    top = np.abs(difference(0))
    for k in range(1, len(x)):
        top = np.maximum(top, np.abs(difference(k)))
    signs, ties, bottom = [], np.zeros_like(top, dtype=np.int32), -top
    for k in range(len(x)):
        d = difference(k)
        signs.append((d == top).astype(np.int8) - (d == bottom))
        ties = ties + np.abs(signs[k])
    shares = 1.0 / np.maximum(ties, 1)
    return lambda k: shares * signs[k] * (difference(k) if order == (0, 0) else 1.0)


def _constant(kernel: str, order: tuple) -> float | None:
    """Return the derivative of a kernel where it is a constant, else None."""
    if kernel == "square" and sum(order) == 2:
        return -2.0 if order[1] % 2 else 2.0
    last = {"square": 2, "absolute": 1, "largest": 1}.get(kernel, math.inf)
    return 0.0 if sum(order) > last else None


# --- the three sums -------------------------------------------------------------------------------------------------


def _columns(x: Any) -> Any:
    return np.moveaxis(x, -1, 0).copy()


def _blocks(x: Any, n: int) -> Iterator[slice]:
    """Cut up points, so that one coordinate of them and of n others stays in the cache."""
    m, step = x.shape[-2], max(1, _BLOCK // max(n, 1))
    yield from (slice(i, i + step) for i in range(0, max(m, 1), step)) if _at_home(x) else (slice(None),)


def _at_home(*xs: Any) -> bool:
    return backend_of(*xs).name == "numpy"


def _coordinate(v: Any, k: int) -> Any:
    return v[..., k if v.shape[-1] > 1 else 0]


def _over_coordinates(u, v, a, b, kernel, p, order):
    x, y, parts = _columns(a), _columns(b), []
    for rows in _blocks(a, b.shape[-2]):
        some = u[..., rows, :] if u.shape[-2] > 1 else u
        terms = _terms(kernel, p, order, x[..., rows], y)
        total: Any = 0.0
        for k in range(a.shape[-1]):
            total = total + _coordinate(some, k)[..., :, None] * _coordinate(v, k)[..., None, :] * terms(k)
        parts.append(total)
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-2)


def _over_right(u, v, a, b, kernel, p, order):
    x, y, parts = _columns(a), _columns(b), []
    for rows in _blocks(a, b.shape[-2]):
        some = u[..., rows, :]
        terms = _terms(kernel, p, order, x[..., rows], y)
        sums = []
        for k in range(a.shape[-1]):
            factor = _coordinate(v, k)
            if v.shape[-2] == 1:  # one factor for all points
                sums.append(_products(some, terms(k)) * factor)
            else:
                sums.append(_products(some, terms(k) * factor[..., None, :]))
        parts.append(np.stack(sums, axis=-1))
    return parts[0] if len(parts) == 1 else np.concatenate(parts, axis=-2)


def _products(x: Any, y: Any) -> Any:
    """Return the inner products of the rows of two matrices."""
    return np.vecdot(x, y) if _at_home(x, y) else np.einsum("...ij,...ij->...i", x, y)


def _turn(x: Any) -> Any:
    return np.swapaxes(x, -1, -2).copy()


def _of_constant(c, u, v, a, b, over):
    """Sum the factors alone, for a kernel that is a constant."""
    lead = np.broadcast_shapes(*[x.shape[:-2] for x in (u, v, a, b)])

    def each(factor, points):  # an entry for each coordinate of each point
        return np.broadcast_to(factor, (*lead, *points.shape[-2:]))

    if over == "coordinates":
        return c * (each(u, a) @ np.swapaxes(each(v, b), -1, -2))
    return c * (u @ each(v, b) if over == "right" else np.swapaxes(u, -1, -2) @ each(v, a))


def _forward(u, v, a, b, *, over, kernel, p, order):
    c = _constant(kernel, order) if a.shape[-1] else 0.0  # points without coordinates
    if c is not None:
        return _of_constant(c, u, v, a, b, over)
    if over == "coordinates":
        found = _scipys(u, v, a, b, kernel) if order == (0, 0) else None
        if found is not None:
            return found
        y = _over_coordinates(u, v, a, b, kernel, p, order)
    else:
        if over == "left":  # the same: no kernel changes when a and b are exchanged
            u, a, b, order = _turn(u), b, a, order[::-1]
        y = _slopes(u, v, a, b, kernel) if order == (1, 0) else None
        if y is None:
            y = _over_right(u, v, a, b, kernel, p, order)
    factor = _factor(kernel, p, order)
    return y if factor == 1.0 else factor * y


_METRICS = {"square": "sqeuclidean", "absolute": "cityblock", "largest": "chebyshev", "canberra": "canberra"}


def _scipys(u, v, a, b, kernel):
    """Return the distances by SciPy, where it has them: of two sets of points, weighted alike."""
    plain = kernel in _METRICS and _at_home(u, v, a, b) and a.ndim == b.ndim == u.ndim == v.ndim == 2
    if not plain or u.shape[0] > 1 or v.shape[0] > 1:
        return None
    weights = (u * v)[0]
    if (weights == 1.0).all():
        return scipy.spatial.distance.cdist(a, b, _METRICS[kernel])
    if kernel == "largest" or (weights < 0.0).any():
        return None
    return scipy.spatial.distance.cdist(a, b, _METRICS[kernel], w=np.broadcast_to(weights, a.shape[1:]))


def _slopes(u, v, a, b, kernel):
    """Return the first derivative as the host does it quickest, for a factor that is alike for all right points."""
    plain = _at_home(u, v, a, b) and v.shape[-2] == 1 and a.ndim == b.ndim == u.ndim == v.ndim == 2
    y = slopes(kernel, u, a, b) if plain and a.dtype == u.dtype == np.float64 else None
    return y if y is None or (v == 1.0).all() else y * v


# --- rules ----------------------------------------------------------------------------------------------------------


def _sum(u, v, a, b, over, params, more=(0, 0)):
    """Return one of the three sums, with the kernel differentiated once more in a or b if `more` says so."""
    order = (params["order"][0] + more[0], params["order"][1] + more[1])
    return bind(pairs_p, u, v, a, b, over=over, kernel=params["kernel"], p=params["p"], order=order)


def _changes(params: dict) -> bool:
    """Return whether the kernel still depends on the points."""
    return _constant(params["kernel"], params["order"]) is None


_IN_A, _IN_B = (1, 0), (0, 1)


def _jvp(tangents, y, xs, params):
    tu, tv, ta, tb = tangents
    u, v, a, b = xs
    over, parts = params["over"], []
    if tu is not None:
        parts.append(_sum(tu, v, a, b, over, params))
    if tv is not None:
        parts.append(_sum(u, tv, a, b, over, params))
    if ta is not None and _changes(params):
        if over == "right":
            parts.append(ta * _sum(u, v, a, b, over, params, _IN_A))
        else:
            parts.append(_sum(*((u * ta, v) if over == "coordinates" else (u, v * ta)), a, b, over, params, _IN_A))
    if tb is not None and _changes(params):
        if over == "left":
            parts.append(tb * _sum(u, v, a, b, over, params, _IN_B))
        else:
            parts.append(_sum(u, v * tb, a, b, over, params, _IN_B))
    return sum(parts[1:], parts[0]) if parts else np.zeros_like(y)


def _vjp_u(ct, y, u, v, a, b, **params):
    if params["over"] == "coordinates":
        found = _sum(ct, v, a, b, "right", params)
    elif params["over"] == "right":
        found = _sum(ct, v, a, b, "coordinates", params)
    else:
        found = _sum(v, ct, a, b, "coordinates", params)
    return fit(found, u.shape, u.dtype)


def _vjp_v(ct, y, u, v, a, b, **params):
    if params["over"] == "coordinates":
        found = _sum(ct, u, a, b, "left", params)
    elif params["over"] == "right":
        found = _sum(u, ct, a, b, "left", params)
    else:
        found = _sum(u, ct, a, b, "right", params)
    return fit(found, v.shape, v.dtype)


def _vjp_a(ct, y, u, v, a, b, **params):
    if not _changes(params):
        return np.zeros_like(a)
    if params["over"] == "coordinates":
        found = u * _sum(ct, v, a, b, "right", params, _IN_A)
    elif params["over"] == "right":
        found = ct * _sum(u, v, a, b, "right", params, _IN_A)
    else:
        found = v * _sum(u, ct, a, b, "right", params, _IN_A)
    return fit(found, a.shape, a.dtype)


def _vjp_b(ct, y, u, v, a, b, **params):
    if not _changes(params):
        return np.zeros_like(b)
    if params["over"] == "coordinates":
        found = v * _sum(ct, u, a, b, "left", params, _IN_B)
    elif params["over"] == "right":
        found = v * _sum(u, ct, a, b, "left", params, _IN_B)
    else:
        found = ct * _sum(u, v, a, b, "left", params, _IN_B)
    return fit(found, b.shape, b.dtype)


def kinks(u: Any, v: Any) -> tuple:
    """Return what is zero where distances of points have kinks, or poles, which samples must keep away from."""
    sizes = np.sort(np.abs(u - v), axis=-1)
    return np.abs(u) - np.abs(v), sizes[..., -1] - sizes[..., -2], np.sum(np.abs(u + v), axis=-1) / 25.0


def _samples(s):
    def sample(over, kernel, order, p=0.0, u=(1, 2), v=(1, 1)):
        return call(
            s.real(*u), s.real(*v), s.positive(3, 2), s.positive(4, 2), over=over, kernel=kernel, p=p, order=order
        )

    return [
        sample("coordinates", "square", (0, 0), u=(3, 2), v=(4, 2)), sample("coordinates", "power", (0, 0), 3.5),
        sample("coordinates", "canberra", (0, 0)), sample("coordinates", "absolute", (0, 0)),
        sample("coordinates", "largest", (1, 0), u=(3, 2), v=(4, 2)), sample("coordinates", "square", (1, 1), v=(4, 2)),
        sample("right", "square", (1, 0), u=(3, 4)), sample("right", "power", (0, 1), 2.5, u=(3, 4), v=(4, 2)),
        sample("left", "canberra", (1, 1), u=(3, 4), v=(3, 2)), sample("left", "square", (0, 1), u=(3, 4)),
        sample("right", "square", (2, 0), u=(3, 4)), sample("left", "square", (1, 1), u=(3, 4), v=(3, 2)),
    ]  # fmt: skip


pairs_p: Any = register(
    Primitive(
        "scipy.sum_over_pairs",
        _forward,
        jvp=_jvp,
        vjp=(_vjp_u, _vjp_v, _vjp_a, _vjp_b),
        batch=lambda size, batched, xs, params: bind(pairs_p, *align(batched, xs), **params),
        samples=_samples,
        complex=False,
        kinks=lambda u, v, a, b, **_: kinks(a[:, None], b),
        doc="Distances of all pairs of rows: a kernel summed over the components.",
    )
)


def sum_along(kernel: str, a: Any, b: Any, w: Any = None, p: float = 0.0) -> Any:
    """Return ``sum_k w[k] g(a[i,k], b[j,k])`` for all pairs of points, for a kernel g by its name.

    These are "square", "absolute", "power" (of the absolute difference), "canberra", and "largest": the largest
    absolute difference, without weights.
    """
    one = np.ones_like(a, shape=(1, 1))
    u = one if w is None else w[None, :]
    return bind(pairs_p, u, one, a, b, over="coordinates", kernel=kernel, p=float(p), order=(0, 0))


# --- roots of sums ---------------------------------------------------------------------------------------------------


def _inverse(y: Any) -> Any:
    """Return ``1 / y``, and 0 where y is 0."""
    if type(y) is np.ndarray:
        return np.divide(1.0, y, out=np.zeros_like(y), where=y != 0)
    zero = y == 0
    return np.where(zero, 0.0, 1.0 / np.where(zero, 1.0, y))[()].astype(y.dtype)


inverse_p: Any = elementwise(
    "scipy.inverse_or_zero", lambda z, _y: -(z * z), forward=_inverse, domain=(0.3, 3.0),
    lower="(0.0 if {0} == 0.0 else 1.0 / {0})",
)  # fmt: skip
root = elementwise(
    "scipy.root_of_a_sum", lambda y, _x: 0.5 * inverse_p(y), forward=np.sqrt, domain=(0.1, 4.0), lower="sqrt({0})"
)
root.doc = "The square root, with the derivative 0 at 0."
