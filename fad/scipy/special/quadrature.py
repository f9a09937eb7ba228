"""Derivatives in a parameter that have no closed form, as integrals over fixed nodes.

Each is written so that the integrand has one sign, hence no cancellation, and is summed by the trapezoidal rule after a
substitution under which that rule converges exponentially. The nodes run along a new last axis, the arithmetic is in
double precision, and everything is made of differentiable operations, so higher derivatives follow.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special as sc

from fad.backends import backend_of, like
from fad.backends.counterparts import with_notes
from fad.core.primitives.archetypes import align, fit, spread
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.values import stop_gradient
from fad.scipy.special.build import number

# Nodes for integrals over (0, inf) of functions that decay exponentially: v = c exp(s - exp(-s)).
_STEP = 1 / 24
_S = np.arange(-3.6, 5.6, _STEP)
_V = np.exp(_S - np.exp(-_S))
_WEIGHT = _STEP * _V * (1.0 + np.exp(-_S))

# The most numbers that one pass of a quadrature over plain arrays may hold.
_CHUNK = 2**21


def wide(x: Any) -> Any:
    """Return an operand in double precision with an axis for the nodes."""
    if type(x) is not Tracer and backend_of(x).name == "numpy":
        return np.asarray(x, dtype=np.complex128 if np.iscomplexobj(x) else np.float64)[..., None]
    return np.expand_dims(x if x.dtype.kind in "fc" and x.dtype.itemsize >= 8 else x.astype(np.float64), -1)


def in_chunks(function: Any, nodes: int) -> Any:
    """Run a quadrature over large plain arrays in pieces, so that its memory stays bounded."""

    def run(*xs, **params):
        size = max((np.size(x) for x in xs if type(x) is not Tracer), default=0)
        if size * nodes <= _CHUNK or any(type(x) is Tracer for x in xs):
            return function(*xs, **params)
        xs = np.broadcast_arrays(*xs)
        flat = [x.ravel() for x in xs]
        step = max(1, _CHUNK // nodes)
        parts = [function(*[x[i : i + step] for x in flat], **params) for i in range(0, flat[0].size, step)]
        return np.concatenate(parts).reshape(xs[0].shape)

    return with_notes(run, host=function)  # for `fad.source`, whose readers have no such arrays


def _scale(a):
    # The width of t**a exp(-t) seen from its end: at most 1 / sqrt(a), or 1 / a for small a.
    a = stop_gradient(a)
    return np.maximum(1.0 / a, 1.0 / np.sqrt(a))


def _one_sided(below, left, right, x, safe_left, safe_right):
    """Integrate from the left where `below`, from the right elsewhere, each at arguments where it converges."""
    return np.where(
        below, left(np.where(below, x, safe_left)), right(np.where(below, safe_right, x))
    ).sum(-1)  # fmt: skip


# --- the incomplete gamma function in its order ---------------------------------------------------------------------


def _gammainc_order(a, x):
    # At the very beginning gammainc is x**a / gamma(a + 1) (1 - a x / (a + 1)), with rests of the order x**2.
    first = stop_gradient(x) < 1e-8
    low, high = np.where(first, x, 0.5), np.where(first, 0.5, x)
    start = sc.gammainc(a, low) * (np.log(low) - sc.digamma(a + 1.0) - low / (a + 1.0) ** 2)
    return np.where(first, start, _gammainc_integral(a, high))


def _gammainc_integral(a, x):
    a, x = wide(a), wide(x)
    nodes, weight = like(a, _V), like(a, _WEIGHT)
    psi, log_gamma = sc.digamma(a), sc.gammaln(a)
    # Where log(t) - digamma(a), the integrand's factor, changes its sign.
    turn = np.maximum(np.exp(stop_gradient(psi)), 1e-290)
    c = _scale(a)

    def left(x):  # t = x exp(-v)
        log_t = np.log(x) - c * nodes
        return c * weight * np.exp(a * log_t - x * np.exp(-c * nodes) - log_gamma) * (log_t - psi)

    width = np.maximum(1.0, np.sqrt(stop_gradient(a)))

    def right(x):  # t = x + u
        t = x + width * nodes
        log_t = np.log(t)
        return -width * weight * np.exp((a - 1.0) * log_t - t - log_gamma) * (log_t - psi)

    return _one_sided(stop_gradient(x) < turn, left, right, x, turn / 2.0, turn * 2.0)


gammainc_order = in_chunks(_gammainc_order, len(_S))
gammainc_order.__doc__ = """Return the derivative of gammainc(a, x) in a.

It is the integral of t**(a-1) exp(-t) (log t - digamma(a)) / gamma(a).

It is taken over (0, x) or, with the opposite sign, over (x, inf), whichever side the last factor keeps its sign on.
"""


# --- the incomplete beta function in its first parameter ------------------------------------------------------------


def _betainc_first(a, b, x, rest):
    # At the very beginning betainc is x**a / (a B(a, b)) (1 - (b - 1) a x / (a + 1)), with rests of the order x**2.
    first = stop_gradient(x * (1.0 + b)) < 1e-8
    low = np.where(first, x, 0.5)
    slope = np.log(low) - sc.digamma(a + 1.0) + sc.digamma(a + b) - (b - 1.0) * low / (a + 1.0) ** 2
    inner = _betainc_integral(a, b, np.where(first, 0.5, x), np.where(first, 0.5, rest))
    return np.where(first, sc.betainc(a, b, low) * slope, inner)


def _betainc_integral(a, b, x, rest):
    a, b, x, rest = wide(a), wide(b), wide(x), wide(rest)
    nodes, weight = like(a, _V), like(a, _WEIGHT)
    centre = sc.digamma(a) - sc.digamma(a + b)
    log_beta = sc.betaln(a, b)
    turn = np.clip(np.exp(stop_gradient(centre)), 1e-290, 1.0 - 1e-16)
    below = stop_gradient(x) < turn
    c, d = _scale(a), _scale(b)

    lx = np.where(below, x, turn / 2.0)
    lrest = np.where(below, rest, 1.0 - turn / 2.0)
    v = c * nodes
    log_t = np.log(lx) - v  # t = x exp(-v), and 1 - t without cancellation
    left = c * weight * np.exp(a * log_t + (b - 1.0) * np.log(lrest - lx * np.expm1(-v)) - log_beta) * (log_t - centre)

    rrest = np.where(below, (1.0 - turn) / 2.0, rest)
    w = d * nodes
    log_s = np.log(rrest) - w  # 1 - t = (1 - x) exp(-w)
    log_t = np.log1p(-np.exp(log_s))
    right = -d * weight * np.exp((a - 1.0) * log_t + b * log_s - log_beta) * (log_t - centre)
    return np.where(below, left, right).sum(-1)


_betainc = in_chunks(_betainc_first, len(_S))


def betainc_first(a, b, x):
    """Return the derivative of betainc(a, b, x) in a, by the same two one-sided integrals as `gammainc_order`."""
    return _inside(lambda x: _betainc(a, b, x, 1.0 - x), x)


def betainc_second(a, b, x):
    """Return the derivative of betainc(a, b, x) in b: minus that of betainc(b, a, 1 - x) in its first parameter."""
    return _inside(lambda x: -_betainc(b, a, 1.0 - x, x), x)


def _inside(function, x):
    """Evaluate where 0 < x < 1; at the ends the derivative in a parameter is 0."""
    inside = (x > 0) & (x < 1)
    return np.where(inside, function(np.where(inside, x, 0.5)), 0.0)


# --- the modified Bessel function K in its order --------------------------------------------------------------------

_K = np.arange(0.5, 224.5)


def _kve_order(v, x):
    # K_v(x) e^x = integral of exp(-x (cosh t - 1)) cosh(v t) over t > 0; the integrand is even, so midpoints are exact.
    v, x = wide(v), wide(x)
    plain_x = stop_gradient(x)
    end = np.arccosh(1.0 + 60.0 / plain_x) + np.arcsinh(np.abs(stop_gradient(v)) / plain_x)
    h = end / len(_K)
    t = h * _K
    sign = np.where(v < 0, -1.0, 1.0)
    order = sign * v
    half = np.sinh(0.5 * t)
    sinh = -0.5 * np.exp(order * t - 2.0 * x * half * half) * np.expm1(-2.0 * order * t)
    return (sign * h * t * sinh).sum(-1)


kve_order = in_chunks(_kve_order, len(_K))
kve_order.__doc__ = """Return the derivative of kve(v, x) in v, for real x > 0.

It is the integral of exp(x - x cosh t) t sinh(v t) over t > 0.
"""


# --- the modified Bessel function I in its order --------------------------------------------------------------------


def _ive_order_positive(v, x):
    # Every term of the power series is positive for v >= 0, times log(x/2) - digamma(v + k + 1).
    found = number(stop_gradient(x))
    top = 32.0 * int(np.ceil(np.max(found) / 32.0)) if found.size else 1.0  # in large steps, for jit guards the outcome
    k = np.arange(int(0.5 * top + 10 * np.sqrt(top)) + 30.0)
    v, x = wide(v), wide(x)
    log_half = np.log(0.5 * x)
    power = (2.0 * k + v) * log_half - sc.gammaln(k + 1.0) - sc.gammaln(v + k + 1.0) - x
    return (np.exp(power) * (log_half - sc.digamma(v + k + 1.0))).sum(-1)


def ive_order(v, x):
    """Return the derivative of ive(v, x) in v for real x > 0, by the power series; v < 0 by reflection to K."""
    negative = v < 0
    u = np.where(negative, -v, v)
    positive = _ive_order_positive(u, x)
    angle = np.pi * u
    scale = np.exp(-2.0 * x)  # kve is scaled by exp(x), ive by exp(-x)
    k_part = scale * (2.0 * np.cos(angle) * sc.kve(u, x) + (2.0 / np.pi) * np.sin(angle) * kve_order(u, x))
    return np.where(negative, -(positive + k_part), positive)


# --- Carlson's integrals --------------------------------------------------------------------------------------------

_T = np.arange(-80.0, 80.0, 0.4)


def _carlson_forward(*xs, exponents, power=0.0):
    dtype = np.result_type(*xs)
    size = sum(np.abs(wide(x)) for x in xs) / len(xs)
    t = size * np.exp(like(size, _T))
    product = 0.4 * t ** (power + 1.0)
    for x, p in zip(xs, exponents, strict=True):
        product = product * (t + wide(x)) ** -p
    return product.sum(-1).astype(dtype)[()]


def _carlson_partial(k):
    def partial(xs, exponents, power):
        raised = (*exponents[:k], exponents[k] + 1.0, *exponents[k + 1 :])
        return -exponents[k] * bind(carlson_p, *xs, exponents=raised, power=power)

    return partial


def _carlson_jvp(tangents, y, xs, params):
    total = 0.0
    for k, t in enumerate(tangents):
        if t is not None:
            total = total + t * _carlson_partial(k)(xs, **{"power": 0.0, **params})
    return spread(total, y)


def _carlson_vjp(k, ct, y, *xs, **params):
    return fit(ct * _carlson_partial(k)(xs, **{"power": 0.0, **params}), np.shape(xs[k]), xs[k].dtype)


def _carlson_samples(s):
    triple = [s.positive(3, 4) for _ in range(3)]
    return [
        call(*triple, exponents=(1.5, 0.5, 1.5)),
        call(s.positive(4), s.positive(1), exponents=(1.5, 0.5), power=0.5),
    ]


carlson_p: Any = register(
    Primitive(
        "special.carlson",
        in_chunks(_carlson_forward, len(_T)),
        jvp=_carlson_jvp,
        vjp=_carlson_vjp,
        batch=lambda size, batched, xs, params: bind(carlson_p, *align(batched, xs), **params),
        samples=_carlson_samples,
        doc="The integral over t > 0 of t**power times the product of (t + x_i)**-exponents[i]. The derivatives of the "
        "symmetric elliptic integrals are of this family, which is closed under differentiation, "
        "without the removable singularities of the usual formulas at equal arguments.",
    )
)
