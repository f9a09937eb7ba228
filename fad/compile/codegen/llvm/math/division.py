"""Quotients and remainders with NumPy's signs and zeros, and shifts: of integers, and of floating-point numbers.

A quotient by the integer zero is 0, as NumPy's is (without its warning: native code gives none, of floats either), and
the smallest integer over -1 is itself. The divisor is made harmless before the instruction, which would trap
otherwise; so it may stand in the masked lanes of a vector as well.
"""

from __future__ import annotations

from fad.compile.codegen.llvm.builder import Emitter, c, constant
from fad.compile.ir.types import BOOL, F64, I64, INTEGERS

_EXACT = 2.0**52  # quotients below which the remainder is one fused operation


def _divide_truncated(e: Emitter, a: str, b: str, t: str) -> tuple[str, str, str]:
    """Return the quotient towards zero, the remainder, and whether the divisor is zero."""
    if b[0] != "%" and b not in ("0", "-1"):
        q = e.apply("sdiv", t, a, b)
        return q, e.sub(a, e.mul(q, b, t), t), "false"
    none = e.compare("==", b, "0", t)
    lowest = str(-(2 ** (63 if t == I64 else 31)))
    trap = e.apply("and", BOOL, e.compare("==", a, lowest, t), e.compare("==", b, "-1", t))
    b = e.select(e.apply("or", BOOL, none, trap), "1", b, t)
    q = e.apply("sdiv", t, a, b)
    return q, e.sub(a, e.mul(q, b, t), t), none


def _power_of_two(b: str) -> bool:
    return b.isdigit() and int(b).bit_count() == 1


def _goes_down(e: Emitter, r: str, b: str, t: str) -> str:
    """Return whether the quotient towards zero lies above the true one."""
    zero = constant(0.0, t)
    apart = e.apply("xor", BOOL, e.compare("<", r, zero, t), e.compare("<", b, zero, t))
    return e.apply("and", BOOL, e.compare("!=", r, zero, t), apart)


def floor_divide(e: Emitter, a: str, b: str, t: str) -> str:
    if t not in INTEGERS:
        return _real_floor_divide(e, a, b, t)
    if _power_of_two(b):
        return e.apply("ashr", t, a, int(b).bit_length() - 1)
    q, r, none = _divide_truncated(e, a, b, t)
    q = e.select(_goes_down(e, r, b, t), e.sub(q, "1", t), q, t)
    return e.select(none, "0", q, t)


def remainder(e: Emitter, a: str, b: str, t: str) -> str:
    if t not in INTEGERS:
        return e.cast(_real_remainder(e, e.cast(a, t, F64), e.cast(b, t, F64)), F64, t)
    if _power_of_two(b):
        return e.apply("and", t, a, int(b) - 1)
    _, r, none = _divide_truncated(e, a, b, t)
    r = e.select(_goes_down(e, r, b, t), e.add(r, b, t), r, t)
    return e.select(none, "0", r, t)


def fmod(e: Emitter, a: str, b: str, t: str) -> str:
    if t not in INTEGERS:
        return e.cast(_real_fmod(e, e.cast(a, t, F64), e.cast(b, t, F64)), F64, t)
    _, r, none = _divide_truncated(e, a, b, t)
    return e.select(none, "0", r, t)


def _real_fmod(e: Emitter, a: str, b: str) -> str:
    """Return a - n b for n = a / b towards zero. Where n is below 2**52, both n + 1 and the remainder are exact."""
    if e.slow:
        return e.outside("fmod", a, b)
    n = e.call("trunc", e.div(a, b))
    e.bound(n, _EXACT)
    r = e.fma(e.neg(n), b, a)
    r = e.select(e.compare("==", n, c(0.0)), a, r)  # an infinite divisor, too
    # rounding may have lifted n to the next integer
    apart = e.apply("xor", BOOL, e.compare("<", r, c(0.0)), e.compare("<", a, c(0.0)))
    apart = e.apply("and", BOOL, e.compare("!=", r, c(0.0)), apart)
    r = e.select(apart, e.add(r, e.call("copysign", b, a)), r)
    return e.call("copysign", r, a)


def _real_remainder(e: Emitter, a: str, b: str) -> str:
    r = _real_fmod(e, a, b)
    down = _goes_down(e, r, b, F64)
    y = e.select(down, e.add(r, b), r)
    return e.select(e.compare("==", r, c(0.0)), e.call("copysign", c(0.0), b), y)


def _real_floor_divide(e: Emitter, a: str, b: str, t: str) -> str:
    """Return NumPy's quotient, whose differences round in the type of the operands."""
    zero = constant(0.0, t)
    r = fmod(e, a, b, t)
    n = e.div(e.sub(a, r, t), b, t)
    n = e.select(_goes_down(e, r, b, t), e.sub(n, constant(1.0, t), t), n, t)
    below = e.call("floor", n, t=t)
    far = e.compare(">", e.sub(n, below, t), constant(0.5, t), t)
    y = e.select(far, e.add(below, constant(1.0, t), t), below, t)
    whole = e.div(a, b, t)
    y = e.select(e.compare("==", n, zero, t), e.call("copysign", zero, whole, t=t), y, t)
    return e.select(e.compare("==", b, zero, t), whole, y, t)


def left_shift(e: Emitter, a: str, b: str, t: str) -> str:
    """Shift to the left; by as many bits as there are, or by a negative number, gives zero."""
    n, within = _bits(e, b, t)
    return e.select(within, e.apply("shl", t, a, n), "0", t)


def right_shift(e: Emitter, a: str, b: str, t: str) -> str:
    """Shift to the right with the sign; by as many bits as there are, or by a negative number, leaves the sign."""
    n, within = _bits(e, b, t)
    sign = e.apply("ashr", t, a, 63 if t == I64 else 31)
    return e.select(within, e.apply("ashr", t, a, n), sign, t)


def _bits(e: Emitter, b: str, t: str) -> tuple[str, str]:
    within = e.apply("icmp ult", t, b, 64 if t == I64 else 32)
    return e.select(within, b, "0", t), within


def sign_bit(e: Emitter, a: str, t: str) -> str:
    if t in INTEGERS:
        return e.compare("<", a, "0", t)
    bits = "i64" if t == F64 else "i32"
    return e.compare("<", e.convert("bitcast", a, t, bits), "0", bits)
