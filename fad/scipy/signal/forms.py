"""The forms of a filter, and how one becomes another: coefficients, zeros and poles, second-order sections."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import scipy.signal

from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind, outcome
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import flat_on_host, registrar
from fad.scipy.signal.response import _coefficients, check_rate

register_function = registrar("signal")


def _quotient_samples(s):
    return [
        call(np.array([2.0, 0.7], s.dtype) + 0.1 * s.real(2), s.positive(2)),
        call(np.array([1.0, 0.3, 0.5], s.dtype) + 0.01 * s.real(3), np.array([2.0, -1.0, 0.1], s.dtype)),
    ]


def _trim(x: Any, least: float) -> int:
    """Return how many leading columns are no larger than `least`."""
    small = outcome(np.abs(x) <= least)
    return int(np.argmin([*np.all(small.reshape((-1, small.shape[-1])), axis=0), False]))


_QUOTIENT: dict = {"complex": False, "raises": "ValueError: All of the denominator is zero."}


@register_function("normalize", samples=_quotient_samples, **_QUOTIENT)
def normalize(b, a):
    """Return the coefficients of a transfer function over the first one of the denominator, without leading zeros.

    >>> fad.scipy.signal.normalize(np.array([2.0, 1.0]), np.array([2.0, 4.0]))
    (array([1. , 0.5]), array([1., 2.]))
    """
    num, den = as_array(b), _coefficients(a)
    num = num.reshape((1,)) if num.ndim == 0 else num
    if den.ndim != 1:
        raise ValueError("Denominator polynomial must be rank-1 array.")
    if num.ndim > 2:
        raise ValueError("Numerator polynomial must be rank-1 or rank-2 array.")
    zeros = _trim(den, 0.0)
    if zeros == den.shape[0]:
        raise ValueError("Denominator must have at least on nonzero element.")
    den = den[zeros:]
    num, den = num / den[0], den / den[0]
    leading = _trim(num, 1e-14)
    if leading:
        text = "Badly conditioned filter coefficients (numerator): the results may be meaningless"
        warnings.warn(text, scipy.signal.BadCoefficients, stacklevel=3)
        num = num[..., min(leading, num.shape[-1] - 1) :]
    return (num[0] if num.ndim == 2 and num.shape[0] == 1 else num), den


@register_function("tf2zpk", **_QUOTIENT, samples=_quotient_samples)
def tf2zpk(b, a):
    """Return the zeros, the poles and the gain of a transfer function.

    >>> import numpy as np, fad
    >>> fad.grad(lambda a: fad.scipy.signal.tf2zpk([1.0], np.stack([1.0, a]))[1][0])(-0.5)
    np.float64(-1.0)
    """
    b, a = normalize(b, a)
    dtype = np.result_type(a, b)
    return np.roots(b.astype(dtype) / b[0]), np.roots(a.astype(dtype)), b[0].astype(dtype)


def _root_samples(s):
    return [
        call(s.real(2), s.real(3), s.positive()),
        call(np.array([0.3 + 0.4j, -0.2 + 0.1j]), s.real(2), 2.0),
        call(s.real(0), s.real(1), s.real()),
    ]


@register_function("zpk2tf", complex=False, raises="ValueError: `p` has several axes.", samples=_root_samples)
def zpk2tf(z, p, k):
    """Return the coefficients of the transfer function of zeros, poles and gain.

    >>> import numpy as np, fad
    >>> fad.grad(lambda z: fad.scipy.signal.zpk2tf(z, [0.5], 2.0)[0][1])(np.array([0.1]))
    array([-2.])
    """
    z, p = (np.atleast_1d(as_array(v)) for v in (z, p))
    k = as_array(k)
    k = k.astype(np.result_type(np.real(z), np.real(p), k))
    k = k if k.dtype.kind in "fc" else k.astype(float)
    if z.ndim > 1:
        gains = k.reshape(-1) if k.ndim else k.reshape(1)
        b = np.stack([gains[i if gains.shape[0] > 1 else 0] * np.poly(z[i]) for i in range(z.shape[0])])
    else:
        b = np.atleast_1d(k) * np.poly(z)
    return b, np.atleast_1d(np.poly(p))


@register_function(
    "sos2tf",
    complex=False,
    samples=lambda s: [call(s.positive(2, 6)), call(s.positive(1, 6))],
    raises="IndexError: The array has fewer than two axes.",
)
def sos2tf(sos):
    """Return the coefficients of the transfer function of second-order sections: the products of theirs.

    >>> fad.scipy.signal.sos2tf(np.array([[1.0, 0.5, 0.0, 1.0, -0.5, 0.0]]))
    (array([1. , 0.5, 0. ]), array([ 1. , -0.5,  0. ]))
    """
    sos = _coefficients(sos)
    b = a = np.ones_like(sos, shape=(1,))
    for k in range(sos.shape[0]):
        b, a = np.polymul(b, sos[k, :3]), np.polymul(a, sos[k, 3:])
    return b, a


# --- second-order sections ------------------------------------------------------------------------------------------


def _split(z: Any) -> tuple[list, list]:
    """Return the places of pairs of conjugate roots, and of the real ones, in the order in which SciPy takes them."""
    tolerance = 100 * np.finfo(z.dtype).eps
    order = np.lexsort((np.abs(z.imag), z.real))
    real = [int(i) for i in order if abs(z[i].imag) <= tolerance * abs(z[i])]
    above = [int(i) for i in order if int(i) not in real and z[i].imag > 0]
    below = [int(i) for i in order if int(i) not in real and z[i].imag < 0]
    pairs = []
    for i in above:
        partner = min(below, key=lambda j: abs(z[i] - z[j].conjugate()), default=None)
        if partner is None or abs(z[i] - z[partner].conjugate()) > tolerance * abs(z[i]):
            below = [-1]
            break
        below.remove(partner)
        pairs.append((i, partner))
    if below:
        raise ValueError("Array contains complex value with no matching conjugate.")
    return pairs, real


def _pair_roots(z: Any, p: Any) -> Any:
    """Return the places of two zeros and two poles for each section, paired by SciPy's rule "nearest"."""
    z, p = z.astype(complex), p.astype(complex)
    zeros, poles = ([*pairs, *single] for pairs, single in (_split(z), _split(p)))  # a real root is one place
    worst = lambda left: min(left, key=lambda r: abs(1 - abs(p[_first(r)])))
    nearest = lambda to, kind: min(kind, key=lambda r: abs(z[_first(r)] - to))
    is_real = lambda r: type(r) is int
    sections: list = []
    while poles:
        first = worst(poles)
        poles.remove(first)
        at, reals = p[_first(first)], [r for r in poles if is_real(r)]
        real_zeros = [r for r in zeros if is_real(r)]
        if (
            not is_real(first) and 2 * sum(not is_real(r) for r in zeros) >= 2 and len(poles) + 1 == len(zeros)
            and len(reals) == 1 and len(real_zeros) == 1
        ):  # fmt: skip
            chosen = nearest(at, [r for r in zeros if not is_real(r)])
        else:
            chosen = nearest(at, zeros)
        if is_real(first):
            second = worst(reals)
            poles.remove(second)
            first = (first, second)
        zeros.remove(chosen)
        if is_real(chosen):
            other = nearest(at, [r for r in zeros if is_real(r)])
            zeros.remove(other)
            chosen = (chosen, other)
        sections.append((*chosen, *first))
    return np.array(sections[::-1], np.intp).reshape((-1, 4))


def _first(root: Any) -> int:
    return root if type(root) is int else root[0]


pairs_p = flat_on_host(
    "pair_roots",
    _pair_roots,
    lambda s: [call(s.real(2), s.real(2)), call(s.real(4), s.real(4))],
    "Which two zeros and poles each second-order section gets: those nearest to each other.",
    complex=False,
)


def make_sections(z: Any, p: Any, k: Any) -> Any:
    """Return second-order sections of zeros, poles and a real gain, the worst poles last."""
    n = max(z.shape[0], p.shape[0])
    if not n:
        return np.stack([k, 0.0 * k, 0.0 * k, 1.0 + 0.0 * k, 0.0 * k, 0.0 * k])[None]
    z, p = (np.concatenate([v, np.zeros_like(v, shape=(n + n % 2 - v.shape[0],))]) for v in (z, p))
    pairs = bind(pairs_p, z, p)
    halves = []
    for v, columns in ((z, pairs[:, :2]), (p, pairs[:, 2:])):
        one, two = np.take(v, columns[:, 0]), np.take(v, columns[:, 1])
        halves.append(np.stack([np.real(0.0 * one) + 1.0, -np.real(one + two), np.real(one * two)], axis=1))
    gain = np.concatenate([k * np.ones_like(halves[0], shape=(1,)), np.ones_like(halves[0], shape=(n - 1) // 2)])
    return np.concatenate([halves[0] * gain[:, None], halves[1]], axis=1)


_PAIRS: dict = {"complex": False, "raises": "ValueError: A complex root has no conjugate."}


def _section_samples(s):
    zeros = np.array([-1.0, 0.3 + 0.4j, 0.3 - 0.4j])
    poles = np.array([0.5, 0.2 + 0.6j, 0.2 - 0.6j])
    return [call(s.real(2), s.real(2, low=-0.9, high=0.9), s.positive()), call(zeros, poles, s.positive())]


@register_function("zpk2sos", **_PAIRS, constants=(0, 1), rounding="single", samples=_section_samples)
def zpk2sos(z, p, k, pairing=None, *, analog=False):
    """Return the second-order sections of zeros, poles and gain, paired as SciPy's "nearest".

    >>> fad.scipy.signal.zpk2sos(np.array([-1.0, -1.0]), np.array([0.5, 0.2]), 0.25)
    array([[ 0.25,  0.5 ,  0.25,  1.  , -0.7 ,  0.1 ]])
    """
    if analog or pairing not in (None, "nearest"):
        raise NotImplementedError(
            "zpk2sos of traced values takes pairing='nearest' and analog=False: other sections have coefficients of "
            "other places. Use zpk2tf, or keep zeros, poles and gain"
        )
    z, p, k = (as_array(v) for v in (z, p, k))
    z, p = (np.atleast_1d(v.astype(np.result_type(v, float))) for v in (z, p))
    return make_sections(z, p, np.real(k.astype(np.result_type(k, float))))


@register_function("tf2sos", **_QUOTIENT, numerical=False, rounding="single", samples=_quotient_samples)
def tf2sos(b, a, pairing=None, *, analog=False):
    """Return the second-order sections of a transfer function.

    >>> fad.scipy.signal.tf2sos(np.array([1.0, 1.0]), np.array([1.0, -0.5]))
    array([[ 1. ,  1. ,  0. ,  1. , -0.5,  0. ]])
    """
    return zpk2sos(*tf2zpk(b, a), pairing=pairing, analog=analog)


# --- from analog to digital filters ---------------------------------------------------------------------------------


def degree_of(z: Any, p: Any) -> int:
    """Return how many more poles than zeros there are."""
    if p.shape[0] < z.shape[0]:
        raise ValueError("Improper transfer function. Must have at least as many poles as zeros.")
    return p.shape[0] - z.shape[0]


def _map_samples(*more):
    def draw(s):
        poles = np.array([-0.6 + 0.2j, -0.5 + 0.8j, -0.5 - 0.8j])
        numbers = lambda: [1.0 * s.real(low=a, high=b) for a, b in ((0.5, 2.0), *more)]
        return [call(-s.positive(1), -s.positive(3), *numbers()), call(-s.positive(2), poles, *numbers())]

    return draw


def _roots(z: Any, p: Any, same: bool = False) -> list:
    """Return zeros and poles as vectors, of one dtype where SciPy makes them so."""
    z, p = _coefficients(z), _coefficients(p)
    return [v.astype(np.result_type(z, p)) for v in (z, p)] if same else [z, p]


def double(x: Any) -> Any:
    """Return a parameter in double precision, as SciPy takes it."""
    return x.astype(float) if hasattr(x, "dtype") else float(x)


def _beside_gain(k: Any, factor: Any) -> Any:
    """Return a gain times a factor, in the precision of the gain."""
    return (k * factor).astype(k.dtype) if hasattr(k, "dtype") and k.dtype.kind == "f" else k * factor


def _map(z: Any, f: Any) -> Any:
    """Return a function of roots in their precision."""
    return f(z).astype(z.dtype)


def _beside(z: Any, n: int, value: Any) -> Any:
    """Return roots and n more of one value behind them."""
    return np.concatenate([z, value * np.ones_like(z, shape=(n,), dtype=float)])


def _gain_of(numerator: Any, denominator: Any) -> Any:
    return np.real(np.prod(numerator) / np.prod(denominator))


_IMPROPER: dict = {"complex": False, "rounding": "single", "raises": "ValueError: There are more zeros than poles."}


@register_function("lp2lp_zpk", samples=_map_samples((0.5, 2.0)), **_IMPROPER)
def lp2lp_zpk(z, p, k, wo=1.0):
    """Return an analog lowpass filter of another cutoff frequency `wo`.

    >>> fad.scipy.signal.lp2lp_zpk(np.array([]), np.array([-1.0]), 1.0, 3.0)
    (array([], dtype=float64), array([-3.]), 3.0)
    """
    (z, p), wo = _roots(z, p), double(wo)
    return _map(z, lambda r: wo * r), _map(p, lambda r: wo * r), _beside_gain(k, wo ** degree_of(z, p))


@register_function("lp2hp_zpk", samples=_map_samples((0.5, 2.0)), **_IMPROPER)
def lp2hp_zpk(z, p, k, wo=1.0):
    """Return the analog highpass filter of cutoff frequency `wo` of a lowpass filter.

    >>> fad.scipy.signal.lp2hp_zpk(np.array([]), np.array([-1.0]), 1.0, 3.0)
    (array([0.]), array([-3.]), np.float64(1.0))
    """
    (z, p), wo = _roots(z, p), double(wo)
    zeros = _beside(_map(z, lambda r: wo / r), degree_of(z, p), 0.0)
    return zeros, _map(p, lambda r: wo / r), k * _gain_of(-z, -p)


def _around(middle: Any, wo: Any) -> Any:
    middle = middle.astype(np.complex128)
    reach = np.sqrt(middle**2 - wo**2)
    return np.concatenate([middle + reach, middle - reach])


@register_function("lp2bp_zpk", samples=_map_samples((2.0, 3.0), (0.5, 1.0)), **_IMPROPER)
def lp2bp_zpk(z, p, k, wo=1.0, bw=1.0):
    """Return the analog bandpass filter of middle frequency `wo` and bandwidth `bw` of a lowpass filter.

    >>> fad.scipy.signal.lp2bp_zpk(np.array([]), np.array([-1.0]), 1.0, 3.0, 2.0)[2]
    2.0
    """
    (z, p), wo, bw = _roots(z, p, same=True), double(wo), double(bw)
    degree = degree_of(z, p)
    z, p = (_around(_map(r, lambda r: r * bw / 2), wo) for r in (z, p))
    return _beside(z, degree, 0.0), p, _beside_gain(k, bw**degree)


@register_function("lp2bs_zpk", samples=_map_samples((2.0, 3.0), (0.5, 1.0)), **_IMPROPER)
def lp2bs_zpk(z, p, k, wo=1.0, bw=1.0):
    """Return the analog bandstop filter of middle frequency `wo` and bandwidth `bw` of a lowpass filter.

    >>> fad.scipy.signal.lp2bs_zpk(np.array([]), np.array([-1.0]), 1.0, 3.0, 2.0)[2]
    np.float64(1.0)
    """
    (z, p), wo, bw = _roots(z, p, same=True), double(wo), double(bw)
    degree, gain = degree_of(z, p), k * _gain_of(-z, -p)
    z, p = (_around(_map(r, lambda r: (bw / 2) / r), wo) for r in (z, p))
    return _beside(_beside(z, degree, 1j * wo), degree, -1j * wo), p, gain


@register_function("bilinear_zpk", samples=_map_samples((2.0, 3.0)), **_IMPROPER)
def bilinear_zpk(z, p, k, fs):
    """Return the digital filter of an analog one by the bilinear transform, in zeros, poles and gain.

    >>> fad.scipy.signal.bilinear_zpk(np.array([]), np.array([-1.0]), 1.0, 0.5)
    (array([-1.]), array([0.]), np.float64(0.5))
    """
    (z, p), twice = _roots(z, p), 2.0 * double(check_rate(fs))
    zeros, poles = (_map(r, lambda r: (twice + r) / (twice - r)) for r in (z, p))
    gain = _gain_of(*[_map(r, lambda r: twice - r) for r in (z, p)])
    return _beside(zeros, degree_of(z, p), -1.0), poles, k * gain


@register_function(
    "bilinear",
    complex=False,
    raises="ValueError: A coefficient array has several axes.",
    rounding="single",
    samples=lambda s: [
        call(s.positive(2), s.positive(3)),
        call(s.positive(3), s.positive(2), 1.0 * s.positive()),
    ],
)
def bilinear(b, a, fs=1.0):
    """Return the digital filter of an analog one by the bilinear transform, in coefficients.

    >>> fad.scipy.signal.bilinear(np.array([1.0]), np.array([1.0, 1.0]), 0.5)
    (array([0.5, 0.5]), array([1., 0.]))
    """
    b, a, fs = _coefficients(b), _coefficients(a), check_rate(fs)
    for name, v in (("a", a), ("b", b)):
        if v.ndim != 1:
            raise ValueError(f"Parameter {name} is not a 1d array since {name}.shape={v.shape}")
    b, a = b[_trim(b, 0.0) :], a[_trim(a, 0.0) :]
    n = max(a.shape[0], b.shape[0]) - 1
    # (2 fs)**(q - n/2) (z - 1)**q (z + 1)**(n - q) for the power q of s
    table = [
        [sum((-1) ** i * math.comb(q, i) * math.comb(n - q, j - i) for i in range(j + 1)) for j in range(n + 1)]
        for q in range(n + 1)
    ]
    powers = (fs * 2) ** (np.arange(n + 1) - 0.5 * n)
    whole = powers[:, None] * np.array(table, float)
    return normalize(*[v[::-1] @ whole[: v.shape[0]] for v in (b, a)])
