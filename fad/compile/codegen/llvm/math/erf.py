"""The error function and its complement.

Near zero erf(x) is x times a polynomial in x**2. Further out erfc(x) is exp(-x**2) / (1 + 2 x) times one in
(x - K) / (x + K), which stays accurate until the result underflows. Coefficients are those of Chebyshev
approximations, computed with mpmath in 60 digits.
"""

from __future__ import annotations

from fad.compile.codegen.llvm.builder import Emitter, c
from fad.compile.codegen.llvm.math.exp_log_trig import clamp, expm1_core, power_of_two, reduce_exp
from fad.compile.ir.types import I64

_NEAR = 0.85  # where erf changes its formula, and erfc below its own bound
_NEAR_COMPLEMENT = 0.477
# erf(x) / x - 1
_ERF = [
    -8.829202625786588e-10, 1.4186541940003936e-08, -1.6299997784439038e-07, 1.6457630503545307e-06,
    -1.4925447461700929e-05, 0.00012055326835796662, -0.0008548326900630965, 0.005223977623883967,
    -0.026866170645014485, 0.11283791670954674, -0.3761263890318375, 0.1283791670955126,
]  # fmt: skip
_ERF_SINGLE = [
    8.842493673360153e-05, -0.0008245795406252773, 0.005209433934376987, -0.026862537721164093, 0.112837481760913,
    -0.37612636942103733, 0.1283791669506541,
]  # fmt: skip
# (1 + 2 x) exp(x**2) erfc(x) from 0.45 to 27.4
_ERFCX = [
    -1.0843100442047919e-08, -1.239129679809904e-08, 1.0673888604657486e-07, 6.747393283609862e-08,
    -8.238720008442623e-07, 2.990460036384219e-07, 5.709554599737636e-06, -1.1224410359390617e-05,
    -2.4399372731347043e-05, 0.00015062237320982762, -0.00019925660853895014, -0.0007577734202057846,
    0.0050319699578461954, -0.016197734042296196, 0.037167515540001035, -0.06633036581328106, 0.09373283499818572,
    -0.10103906603626707, 0.06809705425469742, 0.015379652102619235, -0.13962111684056255, 1.2329951186255526,
]  # fmt: skip
_ERFCX_SINGLE = [
    4.624604777555799e-05, 0.00021506464329578727, -0.0003602956894750849, -0.0014705288852504743,
    0.0012341828448603567, 0.008728108965520067, -0.008027089232958147, -0.05422079379130615, 0.16405072779335209,
    -0.16603036087607748, -0.0927638138494529, 1.2769783813150193,
]  # fmt: skip


def _polynomial(e: Emitter, a: str) -> tuple[str, str, float]:
    """Return ``(t, tail, first)`` with (1 + 2 a) exp(a**2) erfc(a) = first + t tail, for 0.45 <= a <= 27.4."""
    middle = c(2.0 if e.single else 4.0)
    t = e.div(e.sub(a, middle), e.add(a, middle))
    *rising, first = _ERFCX_SINGLE if e.single else _ERFCX
    return t, e.polynomial(t, rising), first


def _one_less_far(e: Emitter, a: str) -> str:
    """Return 1 - erfc(a) for a >= 0.85, where the complement is so small that its last digits do not count."""
    a = clamp(e, a, 0.45, 6.0)
    t, tail, first = _polynomial(e, a)
    q = e.div(e.fma(t, tail, c(first)), e.fma(a, c(2.0), c(1.0)))
    n, r = reduce_exp(e, e.neg(e.mul(a, a)))
    return e.fma(e.neg(e.fma(q, expm1_core(e, r), q)), power_of_two(e, n), c(1.0))


def _far(e: Emitter, a: str, more: str = "") -> str:
    """Return erfc(a) for a >= 0.45; `more` is what a lacks of its true value."""
    a = clamp(e, a, 0.45, 27.4)
    t, tail, first = _polynomial(e, a)
    p = e.fma(t, tail, c(first))
    p_low = e.fma(t, tail, e.sub(c(first), p))
    under = e.fma(a, c(2.0), c(1.0))
    inverse = e.div(c(1.0), under)
    q = e.mul(p, inverse)
    # a**2 and the quotient in two parts each, for the exponential makes small errors large
    square = e.mul(a, a)
    rest = e.fma(a, a, e.neg(square))
    if more:
        rest = e.fma(e.mul(a, c(2.0)), more, rest)
    lost = e.fma(a, c(2.0), e.sub(c(1.0), under))
    q_low = e.mul(e.fma(e.neg(q), lost, e.add(e.fma(e.neg(q), under, p), p_low)), inverse)
    n, r = reduce_exp(e, e.neg(square))
    less = expm1_core(e, r)
    high = e.add(less, c(1.0))
    low = e.fma(e.neg(rest), high, e.add(e.sub(c(1.0), high), less))
    y = e.fma(high, q, e.fma(high, q_low, e.mul(low, q)))
    half = e.apply("ashr", I64, n, "1")
    y = e.mul(y, power_of_two(e, half))
    return e.mul(y, power_of_two(e, e.apply("sub", I64, n, half)))


def _near(e: Emitter, x: str) -> str:
    """Return erf(x) for abs(x) <= 0.85."""
    z = e.mul(x, x)
    return e.fma(x, e.polynomial(z, _ERF_SINGLE if e.single else _ERF), x)


def erf(e: Emitter, x: str) -> str:
    a = e.call("fabs", x)
    far = e.call("copysign", _one_less_far(e, a), x)
    return e.select(e.compare(">", a, c(_NEAR)), far, _near(e, x))


def erfc(e: Emitter, x: str) -> str:
    a = e.call("fabs", x)
    far = _far(e, a)
    below = e.sub(c(2.0), far)
    near = e.sub(c(1.0), _near(e, x))
    y = e.select(e.compare(">", x, c(_NEAR_COMPLEMENT)), far, near)
    return e.select(e.compare("<", x, c(-_NEAR)), below, y)


_ROOT_HALF = (0.7071067811865476, -4.833646656726457e-17)  # in two parts


def normal_cdf(e: Emitter, x: str) -> str:
    """Return erfc(-x / sqrt(2)) / 2, the quotient in two parts, for the tail needs it."""
    a = e.mul(e.call("fabs", x), c(_ROOT_HALF[0]))
    more = e.fma(e.call("fabs", x), c(_ROOT_HALF[1]), e.fma(e.call("fabs", x), c(_ROOT_HALF[0]), e.neg(a)))
    more = e.select(e.compare("<", a, c(27.4)), more, c(0.0))
    far = e.mul(_far(e, a, more), c(0.5))
    z = e.call("copysign", a, x)
    near = e.fma(_near(e, z), c(0.5), c(0.5))
    y = e.select(e.compare("<", z, c(-_NEAR_COMPLEMENT)), far, near)
    return e.select(e.compare(">", z, c(_NEAR)), e.sub(c(1.0), far), y)
