"""Powers and roots: pow by way of a logarithm in two parts, what is made with it, and powers that are products."""

from __future__ import annotations

import math

from fad.compile.codegen.llvm.builder import Emitter, c, constant
from fad.compile.codegen.llvm.math.exp_log_trig import (
    LN2_HI,
    LN2_LO,
    clamp,
    exp,
    expm1_core,
    log,
    log1p,
    log_ends,
    log_parts,
    power_of_two,
    reduce_exp,
)
from fad.compile.ir.types import BOOL, F64, I64  # fmt: skip

_TWO_THIRDS = (2 / 3, 3.700743415417188e-17)  # in two parts


def _product(e: Emitter, a: tuple[str, str], b: tuple[str, str]) -> tuple[str, str]:
    """Multiply two numbers that are given in two parts each."""
    high = e.mul(a[0], b[0])
    low = e.fma(a[0], b[0], e.neg(high))
    return high, e.fma(a[1], b[0], e.fma(a[0], b[1], low))


def _log_in_two(e: Emitter, x: str) -> tuple[str, str]:
    """Return log(x) in two parts, with about 66 bits, for a positive finite x."""
    k, m = log_parts(e, x)
    f = e.sub(m, c(1.0))
    under = e.add(m, c(1.0))
    lost = e.sub(m, e.sub(under, c(1.0)))
    inverse = e.div(c(1.0), under)
    s = e.mul(f, inverse)
    rest = e.fma(e.neg(s), lost, e.fma(e.neg(s), under, f))
    two = (s, e.mul(rest, inverse))
    z = _product(e, two, two)
    # log((1 + s) / (1 - s)) = s (2 + z (2/3 + z (2/5 + ...)))
    tail = e.mul(z[0], e.polynomial(z[0], [2 / (2 * i + 1) for i in range(13, 1, -1)]))
    t = e.add(tail, c(_TWO_THIRDS[0]))
    t_low = e.add(e.add(e.sub(c(_TWO_THIRDS[0]), t), tail), c(_TWO_THIRDS[1]))
    u = _product(e, z, (t, t_low))
    v = e.add(u[0], c(2.0))
    v_low = e.add(e.add(e.sub(c(2.0), v), u[0]), u[1])
    y = _product(e, two, (v, v_low))
    base = e.mul(k, c(LN2_HI))
    high = e.add(base, y[0])
    low = e.add(e.sub(base, high), y[0])
    return high, e.add(low, e.fma(k, c(LN2_LO), y[1]))


def _exp_of_two(e: Emitter, high: str, low: str) -> str:
    """Return exp(high + low), low being far smaller."""
    beyond = e.apply("fcmp uge", F64, e.call("fabs", high), c(800.0))
    n, r = reduce_exp(e, clamp(e, high, -800.0, 800.0))
    r = e.add(r, e.select(beyond, c(0.0), low))
    half = e.apply("ashr", I64, n, "1")
    y = e.mul(e.add(expm1_core(e, r), c(1.0)), power_of_two(e, half))
    return e.mul(y, power_of_two(e, e.apply("sub", I64, n, half)))


def _magnitude(e: Emitter, a: str, y: str) -> str:
    """Return a**y for a >= 0, but for a = 1 and y = 0."""
    if e.single:
        return exp(e, e.mul(y, log(e, a)))
    high, low = _log_in_two(e, a)
    zero, infinite = e.compare("==", a, c(0.0)), e.compare("==", a, c(math.inf))
    high = e.select(zero, c(-math.inf), e.select(infinite, c(math.inf), high))
    low = e.select(e.apply("or", BOOL, zero, infinite), c(0.0), low)
    product = e.mul(y, high)
    rest = e.fma(y, low, e.fma(y, high, e.neg(product)))
    return _exp_of_two(e, product, rest)


def power(e: Emitter, x: str, y: str) -> str:
    a = e.call("fabs", x)
    z = _magnitude(e, a, y)
    z = e.select(e.apply("fcmp uno", F64, x, y), c(math.nan), z)
    whole = e.compare("==", e.call("trunc", y), y)
    half = e.mul(y, c(0.5))
    odd = e.apply("and", BOOL, whole, e.compare("!=", e.call("trunc", half), half))
    negative = e.apply("icmp slt", I64, e.bits(x), "0")
    minus = e.compare("<", x, c(0.0))
    # a negative number to a fraction is NaN, unless it is infinite
    fraction = e.apply("and", BOOL, minus, e.apply("xor", BOOL, whole, "true"))
    fraction = e.apply("and", BOOL, fraction, e.compare("!=", a, c(math.inf)))
    z = e.select(fraction, c(math.nan), z)
    z = e.select(e.apply("and", BOOL, negative, odd), e.neg(z), z)
    still = e.apply("and", BOOL, e.compare("==", x, c(-1.0)), e.compare("==", e.call("fabs", y), c(math.inf)))
    one = e.apply("or", BOOL, e.compare("==", x, c(1.0)), e.compare("==", y, c(0.0)))
    return e.select(e.apply("or", BOOL, one, still), c(1.0), z)


_LOG10E = (0.4342944819032518, 1.098319650216765e-17)


def log10(e: Emitter, x: str) -> str:
    if e.single:
        return e.mul(log(e, x), c(_LOG10E[0]))
    high, low = _product(e, _log_in_two(e, x), (c(_LOG10E[0]), c(_LOG10E[1])))
    return log_ends(e, x, e.add(high, low))


def cbrt(e: Emitter, x: str) -> str:
    a = e.call("fabs", x)
    k, m = log_parts(e, a)
    q = e.call("floor", e.mul(e.add(k, c(0.5)), c(1 / 3)))
    r = e.fma(q, c(-3.0), k)
    doubled = e.select(e.compare("==", r, c(1.0)), c(2.0), c(4.0))
    m = e.mul(m, e.select(e.compare("==", r, c(0.0)), c(1.0), doubled))
    # from a line through the cube root on (0.7, 5.7) to it, by Halley's steps
    y = e.fma(m, c(0.184), c(0.79))
    for _ in range(3):
        cube = e.mul(e.mul(y, y), y)
        y = e.mul(y, e.div(e.fma(m, c(2.0), cube), e.fma(cube, c(2.0), m)))
    square = e.mul(y, y)
    rest = e.fma(e.neg(square), y, m)
    rest = e.fma(e.neg(e.fma(y, y, e.neg(square))), y, rest)
    y = e.add(y, e.div(rest, e.mul(square, c(3.0))))
    scaled = e.mul(y, power_of_two(e, _integer(e, q)))
    plain = e.apply("or", BOOL, e.compare("==", a, c(0.0)), e.apply("fcmp ueq", F64, a, c(math.inf)))
    return e.select(plain, x, e.call("copysign", scaled, x))


def _integer(e: Emitter, q: str) -> str:
    """Return a whole double below 2**51 as an integer."""
    magic = 1.5 * 2.0**52
    return e.apply("sub", I64, e.bits(e.add(q, c(magic))), "4843621399236968448")


def hypot(e: Emitter, x: str, y: str) -> str:
    a, b = e.call("fabs", x), e.call("fabs", y)
    steep = e.compare(">", b, a)
    large, small = e.select(steep, b, a), e.select(steep, a, b)
    up = e.compare("<", large, c(2.0**-450))
    down = e.compare(">", large, c(2.0**500))
    scale = e.select(down, c(2.0**-600), e.select(up, c(2.0**600), c(1.0)))
    back = e.select(down, c(2.0**600), e.select(up, c(2.0**-600), c(1.0)))
    large, small = e.mul(large, scale), e.mul(small, scale)
    square = e.mul(small, small)
    z = e.mul(e.call("sqrt", e.fma(large, large, square)), back)
    infinite = e.apply("or", BOOL, e.compare("==", a, c(math.inf)), e.compare("==", b, c(math.inf)))
    return e.select(infinite, c(math.inf), z)


def logaddexp(e: Emitter, x: str, y: str) -> str:
    top = e.select(e.apply("fcmp ogt", F64, x, y), x, y)
    rest = log1p(e, exp(e, e.neg(e.call("fabs", e.sub(x, y)))))
    # two equal infinities have no difference
    same = e.compare("==", x, y)
    z = e.select(same, e.add(x, c(math.log(2))), e.add(top, rest))
    return e.select(e.apply("fcmp uno", F64, x, y), c(math.nan), z)


# --- powers with an exponent that is known: whole, or with a half ----------------------------------------------------

_Parts = tuple[str, str | None]  # a number and what it lacks, None for nothing


def raise_to(e: Emitter, x: str, exponent: float, t: str) -> str:
    """Return x**exponent by products and a square root in two parts each, so that it is rounded once, as by pow."""
    whole, half = divmod(abs(exponent), 1)
    infinite = constant(math.inf, t)
    if half:  # pow(-0.0, 0.5) is 0.0 and that of minus infinity infinite; the root of any other negative number NaN
        minus = e.compare("==", x, constant(-math.inf, t), t)
        x = e.select(minus, infinite, e.add(x, constant(0.0, t), t), t)
    if exponent == -0.5:  # the inverse of a very small number has no place, that of its root has
        y: _Parts | None = _invert(e, _root(e, (x, None), t), t)
        base: _Parts = (x, None)
    else:
        base = (x, None) if exponent > 0 else _invert(e, (x, None), t)
        y = _root(e, base, t) if half else None
    for bit in reversed(f"{int(whole):b}" if whole else ""):
        if bit == "1":
            y = base if y is None else _multiply(e, y, base, t)
        base = _multiply(e, base, base, t)
    assert y is not None  # an exponent of zero is a constant
    high, low = y
    if low is None:
        return high
    # An infinite number lacks NaN, and so do zeros of roots and inverses; to add -0.0 leaves every number as it is.
    kept = e.compare("<", e.call("fabs", high, t=t), infinite, t)
    kept = e.apply("and", BOOL, kept, e.compare("!=", high, constant(0.0, t), t))
    return e.add(high, e.select(kept, low, constant(-0.0, t), t), t)


def _multiply(e: Emitter, a: _Parts, b: _Parts, t: str) -> _Parts:
    high = e.mul(a[0], b[0], t)
    low = e.call("fma", a[0], b[0], e.neg(high, t), t=t)
    for one, rest in ((a[0], b[1]), (b[0], a[1])):
        if rest is not None:
            low = e.call("fma", one, rest, low, t=t)
    return high, low


def _invert(e: Emitter, x: _Parts, t: str) -> _Parts:
    y = e.div(constant(1.0, t), x[0], t)
    rest = e.call("fma", e.neg(x[0], t), y, constant(1.0, t), t=t)
    if x[1] is not None:
        rest = e.call("fma", e.neg(x[1], t), y, rest, t=t)
    return y, e.mul(rest, y, t)


def _root(e: Emitter, x: _Parts, t: str) -> _Parts:
    y = e.call("sqrt", x[0], t=t)
    rest = e.call("fma", e.neg(y, t), y, x[0], t=t)
    if x[1] is not None:
        rest = e.add(rest, x[1], t)
    return y, e.mul(rest, e.div(constant(0.5, t), y, t), t)
