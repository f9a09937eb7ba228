"""The mathematical functions as straight-line polynomials: exponentials, logarithms, and those of the circle.

Every function is written without branches, so that the loop around it runs in vectors. Double precision throughout;
single precision is computed in double and rounded once at the end, which makes it correctly rounded but for ties. The
functions that training calls most have a form in single precision throughout, in `single`.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from fad.compile.codegen.llvm.builder import Emitter, c
from fad.compile.ir.types import F64, I64

_MAGIC = 1.5 * 2.0**52  # adding it rounds to an integer, which then stands in the low bits
LN2_HI, LN2_LO = 0.693147180369123816490, 1.90821492927058770002e-10  # ln 2 in two parts, the first with 33 bits
_LOG2E = 1.4426950408889634


def power_of_two(e: Emitter, n: str) -> str:
    """Return 2**n for an integer n (as i64) of a normal number."""
    return e.real(e.apply("shl", I64, e.apply("add", I64, n, "1023"), "52"))


def reduce_exp(e: Emitter, x: str) -> tuple[str, str]:
    """Return ``(n, r)`` with x = n ln 2 + r, n an i64."""
    t = e.fma(x, c(_LOG2E), c(_MAGIC))
    n = e.apply("sub", I64, e.bits(t), struct.unpack("<q", struct.pack("<d", _MAGIC))[0])
    k = e.sub(t, c(_MAGIC))
    r = e.fma(k, c(-LN2_HI), x)
    return n, e.fma(k, c(-LN2_LO), r)


def clamp(e: Emitter, x: str, low: float, high: float) -> str:
    x = e.select(e.compare(">", x, c(high)), c(high), x)
    return e.select(e.compare("<", x, c(low)), c(low), x)


def _expm1_tail(e: Emitter, r: str) -> str:
    """Return (exp(r) - 1 - r) / r**2 for abs(r) <= ln(2)/2."""
    return e.series(r, [1 / math.factorial(k) for k in range(13, 1, -1)], 7)


def expm1_core(e: Emitter, r: str) -> str:
    """Return exp(r) - 1 for abs(r) <= ln(2)/2."""
    return e.fma(e.mul(r, r), _expm1_tail(e, r), r)


def scaled_exp(e: Emitter, x: str, less: int) -> str:
    """Return exp(x) / 2**less, without overflow or loss on the way."""
    n, r = reduce_exp(e, clamp(e, x, -800.0, 800.0))
    n = e.apply("sub", I64, n, less) if less else n
    half = e.apply("ashr", I64, n, "1")
    y = e.add(expm1_core(e, r), c(1.0))
    y = e.mul(y, power_of_two(e, half))
    return e.mul(y, power_of_two(e, e.apply("sub", I64, n, half)))


def exp(e: Emitter, x: str) -> str:
    return scaled_exp(e, x, 0)


def exp2(e: Emitter, x: str) -> str:
    x = clamp(e, x, -1100.0, 1100.0)
    t = e.add(x, c(_MAGIC))
    n = e.apply("sub", I64, e.bits(t), struct.unpack("<q", struct.pack("<d", _MAGIC))[0])
    r = e.mul(e.sub(x, e.sub(t, c(_MAGIC))), c(math.log(2)))
    half = e.apply("ashr", I64, n, "1")
    y = e.mul(e.add(expm1_core(e, r), c(1.0)), power_of_two(e, half))
    return e.mul(y, power_of_two(e, e.apply("sub", I64, n, half)))


def _half_expm1(e: Emitter, x: str, high: float) -> str:
    """Return (exp(x) - 1) / 2, which overflows only where sinh does; right for x >= -60 and normal results."""
    n, r = reduce_exp(e, clamp(e, x, -60.0, high))
    s = power_of_two(e, e.apply("sub", I64, n, "2"))
    return e.mul(e.fma(s, expm1_core(e, r), e.sub(s, c(0.25))), c(2.0))


def or_itself(e: Emitter, x: str, y: str, below: float) -> str:
    """Return x where it is so small that it is its own function's value, y elsewhere."""
    return e.select(e.compare("<", e.call("fabs", x), c(below)), x, y)


def expm1(e: Emitter, x: str) -> str:
    y = e.mul(_half_expm1(e, x, 710.0), c(2.0))
    return or_itself(e, x, y, 2.0**-54)


def sinh(e: Emitter, x: str) -> str:
    a = e.call("fabs", x)
    n, r = reduce_exp(e, clamp(e, a, 0.0, 710.5))
    s = power_of_two(e, e.apply("sub", I64, n, "2"))
    # h = (exp(a) - 1) / 2 in two parts
    square = e.mul(r, r)
    tail = e.mul(square, _expm1_tail(e, r))
    less = e.add(r, tail)
    less_low = e.add(e.sub(r, less), tail)
    base, more = e.sub(s, c(0.25)), e.mul(s, less)
    half = e.add(base, more)
    low = e.fma(s, less_low, e.add(e.sub(base, half), more))
    h, low = e.mul(half, c(2.0)), e.mul(low, c(2.0))
    h = e.select(e.compare(">", a, c(710.5)), c(math.inf), h)
    # (exp(a) - 1) / 2 over exp(a); one half where h is huge
    small = e.select(e.compare(">", h, c(2.0**60)), c(2.0**60), h)
    share = e.div(small, e.fma(small, c(2.0), c(1.0)))
    y = e.call("copysign", e.add(h, e.add(low, share)), x)
    return or_itself(e, x, y, 2.0**-28)


def cosh(e: Emitter, x: str) -> str:
    h = scaled_exp(e, e.call("fabs", x), 1)
    return e.add(h, e.div(c(0.25), h))


def tanh(e: Emitter, x: str) -> str:
    a = e.call("fabs", x)
    h = _half_expm1(e, e.add(a, a), 40.0)
    y = e.call("copysign", e.div(h, e.add(h, c(1.0))), x)
    return or_itself(e, x, y, 2.0**-28)


def log_parts(e: Emitter, x: str) -> tuple[str, str]:
    """Return ``(k, m)`` with x = 2**k m and m between sqrt(1/2) and sqrt(2); k as a double."""
    tiny = e.compare("<", x, c(2.0**-1022))
    x = e.select(tiny, e.mul(x, c(2.0**54)), x)
    b = e.bits(x)
    shifted = e.apply("sub", I64, b, struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0])
    n = e.apply("ashr", I64, shifted, "52")
    m = e.real(e.apply("sub", I64, b, e.apply("shl", I64, n, "52")))
    k = e.convert("sitofp", n, I64, F64)
    return e.select(tiny, e.sub(k, c(54.0)), k), m


def log_core(e: Emitter, k: str, f: str) -> str:
    """Return k ln 2 + log(1 + f): twice the series of artanh in s = f / (2 + f)."""
    s = e.div(f, e.add(f, c(2.0)))
    z = e.mul(s, s)
    series = e.series(z, [2 / (2 * i + 1) for i in range(11, 0, -1)], 5)
    half = e.mul(e.mul(f, f), c(0.5))
    # log(1 + f) = f - (f f / 2 - s (f f / 2 + z series)), in which the small terms are added first
    low = e.fma(s, e.fma(z, series, half), e.mul(k, c(LN2_LO)))
    rest = e.sub(e.sub(half, low), f)
    return e.fma(k, c(LN2_HI), e.neg(rest))


def log_ends(e: Emitter, x: str, y: str) -> str:
    """Put right what log gives for 0, negative numbers, infinity and NaN."""
    y = e.select(e.compare("==", x, c(math.inf)), x, y)
    y = e.select(e.compare("==", x, c(0.0)), c(-math.inf), y)
    return e.select(e.apply("fcmp ult", F64, x, "0.0"), c(math.nan), y)


def log(e: Emitter, x: str) -> str:
    k, m = log_parts(e, x)
    return log_ends(e, x, log_core(e, k, e.sub(m, c(1.0))))


def log2(e: Emitter, x: str) -> str:
    k, m = log_parts(e, x)
    y = log_core(e, c(0.0), e.sub(m, c(1.0)))
    return log_ends(e, x, e.fma(y, c(_LOG2E), k))


def log1p(e: Emitter, x: str) -> str:
    u = e.add(x, c(1.0))
    lost = e.sub(x, e.sub(u, c(1.0)))
    lost = e.select(e.compare("<", u, c(2.0**53)), lost, c(0.0))
    k, m = log_parts(e, u)
    y = log_core(e, k, e.sub(m, c(1.0)))
    y = e.add(y, e.div(lost, u))
    y = log_ends(e, u, y)
    return e.select(e.compare("==", x, c(0.0)), x, y)


# pi/2 in three parts of a double each.
_PI2 = (1.5707963267948966, 6.123233995736766e-17, -1.4973849048591833e-33)
_SIN = [(-1) ** k / math.factorial(2 * k + 1) for k in range(8, 0, -1)]
_COS = [(-1) ** k / math.factorial(2 * k) for k in range(9, 1, -1)]
TRIG_LIMIT = 1e5


def _sin_cos(e: Emitter, x: str) -> tuple[str, str, str]:
    """Return ``(q, sin r, cos r)`` with x = q pi/2 + r; right for abs(x) <= TRIG_LIMIT."""
    t = e.fma(x, c(2 / math.pi), c(_MAGIC))
    q = e.bits(t)
    k = e.neg(e.sub(t, c(_MAGIC)))
    a = e.fma(k, c(_PI2[0]), x)
    r = e.fma(k, c(_PI2[1]), a)
    low = e.fma(k, c(_PI2[1]), e.sub(a, r))
    low = e.fma(k, c(_PI2[2]), low)
    z = e.mul(r, r)
    s = e.add(r, e.fma(e.mul(z, r), e.series(z, _SIN, 5), low))
    half = e.mul(z, c(0.5))
    w = e.sub(c(1.0), half)
    rest = e.sub(e.sub(c(1.0), w), half)
    rest = e.fma(e.mul(z, z), e.series(z, _COS, 5), e.fma(e.neg(r), low, rest))
    return q, s, e.add(w, rest)


def _quadrant(e: Emitter, q: str, bit: int) -> str:
    return e.apply("icmp ne", I64, e.apply("and", I64, q, bit), "0")


def trig(name: str) -> Callable:
    def emit(e: Emitter, x: str) -> str:
        if e.slow:
            return e.outside(name, x)
        e.bound(x, TRIG_LIMIT)
        q, s, co = _sin_cos(e, x)
        odd = _quadrant(e, q, 1)
        if name == "tan":
            y = e.div(e.select(odd, e.neg(co), s), e.select(odd, s, co))
        else:
            first, second = (s, co) if name == "sin" else (co, e.neg(s))
            y = e.select(odd, second, first)
            y = e.select(_quadrant(e, q, 2), e.neg(y), y)
        return y if name == "cos" else e.select(e.compare("==", x, c(0.0)), x, y)

    return emit
