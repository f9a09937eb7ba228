"""The inverse functions of the circle and of the hyperbola.

Coefficients are those of Chebyshev approximations, computed with mpmath in 60 digits.
"""

from __future__ import annotations

import math

from fad.compile.codegen.llvm.builder import Emitter, c
from fad.compile.codegen.llvm.math.exp_log_trig import log_core, log_ends, log_parts, or_itself
from fad.compile.ir.types import F64, I64

# (arctan(u) / u - 1) / u**2 for u**2 up to tan(pi/8)**2, and (arcsin(u) / u - 1) / u**2 for u**2 up to 1/4
_ATAN = [
    0.016203267278098458, -0.03449590553324686, 0.04548681633388683, -0.052298140642841544, 0.0587884181219531,
    -0.06666417280239267, 0.07692295950308803, -0.09090908738767002, 0.11111111104858463, -0.14285714285656773,
    0.19999999999999793, -0.3333333333333333,
]  # fmt: skip
_ATAN_SINGLE = [
    0.050361186452913244, -0.08620004004807787, 0.11070736618772, -0.14284117185697656, 0.19999976626295152,
    -0.33333333277418925,
]  # fmt: skip
_ASIN = [
    0.02961201126495512, -0.01924167174674304, 0.019554513336123378, 0.0030448799094556773, 0.009319560794767446,
    0.009621842970100282, 0.011566459612121669, 0.01396378001220357, 0.017352816540325496, 0.02237215744350722,
    0.03038194447553234, 0.044642857142551895, 0.07500000000000118, 0.16666666666666666,
]  # fmt: skip
_ASIN_SINGLE = [
    0.030974540371355073, 0.010574415516912909, 0.023611817008891752, 0.030269138728589183, 0.04464766388813485,
    0.07499992404401838, 0.16666666686085643,
]  # fmt: skip
_PI = (math.pi, 1.2246467991473532e-16)  # in two parts
_HUGE = 2.0**28  # beyond which x**2 + 1 is x**2


def _part_of_pi(e: Emitter, quarters: str) -> tuple[str, str]:
    """Return a number of quarters of pi in two parts; the number is 0, 1, 2, 3 or 4, as a double."""
    high = e.mul(quarters, c(_PI[0] / 4))  # exact for 0, 1, 2 and 4
    low = e.fma(quarters, c(_PI[0] / 4), e.neg(high))
    return high, e.fma(quarters, c(_PI[1] / 4), low)


def _arctan_of_ratio(e: Emitter, small: str, large: str) -> tuple[str, str]:
    """Return ``(quarters, r)``: the angle of a ratio between 0 and 1 is quarters * pi/4 + r."""
    middle = e.compare(">", small, e.mul(large, c(0.41421356237309503)))
    over = e.select(middle, e.sub(small, large), small)
    under = e.select(middle, e.add(small, large), large)
    u = e.div(over, under)
    z = e.mul(u, u)
    r = e.fma(e.mul(z, u), e.polynomial(z, _ATAN_SINGLE if e.single else _ATAN), u)
    return e.select(middle, c(1.0), c(0.0)), r


def arctan(e: Emitter, x: str) -> str:
    a = e.call("fabs", x)
    steep = e.compare(">", a, c(1.0))
    quarters, r = _arctan_of_ratio(e, e.select(steep, e.div(c(1.0), a), a), c(1.0))
    quarters = e.select(steep, e.sub(c(2.0), quarters), quarters)
    high, low = _part_of_pi(e, quarters)
    y = e.add(high, e.add(low, e.select(steep, e.neg(r), r)))
    return e.call("copysign", y, x)


def arctan2(e: Emitter, y: str, x: str) -> str:
    a, b = e.call("fabs", y), e.call("fabs", x)
    steep = e.compare(">", a, b)
    small, large = e.select(steep, b, a), e.select(steep, a, b)
    # infinity over infinity is one, zero over zero is zero, and sums must not overflow
    small, large = _finite_ratio(e, small, large)
    quarters, r = _arctan_of_ratio(e, small, large)
    quarters = e.select(steep, e.sub(c(2.0), quarters), quarters)
    r = e.select(steep, e.neg(r), r)
    left = e.apply("icmp slt", I64, e.bits(x), "0")
    quarters = e.select(left, e.sub(c(4.0), quarters), quarters)
    high, low = _part_of_pi(e, quarters)
    angle = e.add(high, e.add(low, e.select(left, e.neg(r), r)))
    return e.select(e.apply("fcmp uno", F64, x, y), c(math.nan), e.call("copysign", angle, y))


def _finite_ratio(e: Emitter, small: str, large: str) -> tuple[str, str]:
    both = e.compare("==", small, c(math.inf))
    small, large = e.select(both, c(1.0), small), e.select(both, c(1.0), large)
    large = e.select(e.compare("==", large, c(0.0)), c(1.0), large)
    scale = e.select(e.compare(">", large, c(2.0**1000)), c(2.0**-60), c(1.0))
    return e.mul(small, scale), e.mul(large, scale)


def _arcsin_tail(e: Emitter, s: str, z: str) -> str:
    """Return arcsin(s) - s for s**2 = z up to 1/4."""
    return e.mul(e.mul(z, s), e.polynomial(z, _ASIN_SINGLE if e.single else _ASIN))


def _arcsin_parts(e: Emitter, x: str) -> tuple[str, str, str, str]:
    """Return ``(near, z, s, t)``: s + t is arcsin(abs(x)), or where x is near one half of arccos(abs(x)); s**2 is z."""
    a = e.call("fabs", x)
    near = e.compare(">", a, c(0.5))
    rest = e.mul(e.sub(c(1.0), a), c(0.5))
    z = e.select(near, rest, e.mul(a, a))
    s = e.select(near, e.call("sqrt", rest), a)
    return near, z, s, _arcsin_tail(e, s, z)


def arcsin(e: Emitter, x: str) -> str:
    near, z, s, t = _arcsin_parts(e, x)
    # pi/2 - 2 arcsin(s), with what the root and the difference lost
    lost = e.div(e.fma(e.neg(s), s, z), e.add(s, s))
    lost = e.select(e.compare(">", s, c(0.0)), lost, c(0.0))
    tail = e.fma(e.add(t, lost), c(2.0), c(-_PI[1] / 2))
    double = e.add(s, s)
    high = e.sub(c(_PI[0] / 2), double)
    low = e.sub(e.sub(c(_PI[0] / 2), high), double)
    far = e.add(high, e.sub(low, tail))
    return e.call("copysign", e.select(near, far, e.add(s, t)), x)


def arccos(e: Emitter, x: str) -> str:
    near, _, s, t = _arcsin_parts(e, x)
    r = e.add(s, t)
    below = e.compare("<", x, c(0.0))
    signed = e.select(below, e.neg(r), r)
    middle = e.sub(c(_PI[0] / 2), e.sub(signed, c(_PI[1] / 2)))
    double = e.mul(r, c(2.0))
    far = e.sub(c(_PI[0]), e.sub(double, c(_PI[1])))
    return e.select(near, e.select(below, far, double), middle)


def _log1p_of_two(e: Emitter, high: str, low: str, huge: str, x: str) -> str:
    """Return log(1 + high + low), and log(2 x) where `huge`; high is not negative."""
    one = e.add(high, c(1.0))
    large = e.compare(">=", high, c(1.0))
    lost = e.select(
        large,
        e.add(e.sub(high, one), c(1.0)),
        e.sub(high, e.sub(one, c(1.0))),
    )
    lost = e.select(huge, c(0.0), e.add(lost, low))
    u = e.select(huge, x, one)
    k, m = log_parts(e, u)
    k = e.add(k, e.select(huge, c(1.0), c(0.0)))
    y = log_core(e, k, e.sub(m, c(1.0)))
    return log_ends(e, u, e.add(y, e.div(lost, u)))


def arcsinh(e: Emitter, x: str) -> str:
    a = e.call("fabs", x)
    huge = e.compare(">", a, c(_HUGE))
    square = e.mul(a, a)
    w = e.div(square, e.add(e.call("sqrt", e.add(square, c(1.0))), c(1.0)))
    t = e.add(a, w)
    low = e.add(e.sub(a, t), w)
    y = e.call("copysign", _log1p_of_two(e, t, low, huge, a), x)
    return or_itself(e, x, y, 2.0**-28)


def arccosh(e: Emitter, x: str) -> str:
    huge = e.compare(">", x, c(_HUGE))
    t = e.sub(x, c(1.0))
    square = e.mul(t, e.add(t, c(2.0)))
    root = e.call("sqrt", square)
    # what the root lost: (square - root**2) / (2 root), with what the product lost
    s = e.add(root, t)
    big, less = e.select(e.compare(">", t, root), t, root), e.select(e.compare(">", t, root), root, t)
    low = e.add(e.sub(big, s), less)
    y = _log1p_of_two(e, s, low, huge, x)
    return e.select(e.apply("fcmp ult", F64, x, c(1.0)), c(math.nan), y)


def arctanh(e: Emitter, x: str) -> str:
    a = e.call("fabs", x)
    under = e.sub(c(1.0), a)
    lost = e.sub(e.sub(c(1.0), under), a)
    over = e.add(a, a)
    inverse = e.div(c(1.0), under)
    q = e.mul(over, inverse)
    low = e.mul(e.fma(e.neg(q), lost, e.fma(e.neg(q), under, over)), inverse)
    low = e.select(e.compare("<", a, c(1.0)), low, c(0.0))
    never = e.compare("<", x, x)
    y = e.mul(_log1p_of_two(e, q, low, never, a), c(0.5))
    y = e.select(e.compare(">", a, c(1.0)), c(math.nan), y)
    return or_itself(e, x, e.call("copysign", y, x), 2.0**-28)
