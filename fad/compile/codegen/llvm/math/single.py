"""Exponentials, logarithms and tanh in single precision, within one unit in the last place.

They take half of the registers that the functions of double precision do, and shorter polynomials. The coefficients
are those of least greatest error on the reduced range, fitted in many digits; where two terms of a sum are both large,
what their rounding loses is carried on.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

from fad.compile.codegen.llvm.builder import Emitter, constant
from fad.compile.ir.types import F32, I32

_MAGIC = 1.5 * 2.0**23  # adding it rounds to an integer, which then stands in the low bits
_LN2 = (0.693147182464599609375, -1.9046542999577689e-09)  # ln 2 in two parts
_LN2_SHORT = (0.693145751953125, 1.4286068203094172e-06)  # the first part with 16 bits: its products with k are exact
# (exp(r) - 1 - r) / r**2 for abs(r) <= ln(2)/2
_EXP = [0.00019918128, 0.0013946304, 0.0083332649, 0.041666267, 0.16666667, 0.5]
# (log(1 + f) - f + f**2 / 2) / f**3 for sqrt(1/2) <= 1 + f <= sqrt(2)
_LOG = [
    0.069155954, -0.11794092, 0.11875076, -0.123838, 0.14218327, -0.1666927, 0.20002242, -0.24999986, 0.3333331,
]  # fmt: skip
# (tanh(x) / x - 1) / x**2 in x**2, for abs(x) <= _NEAR
_TANH = [-0.00045437487, 0.0025805968, -0.00826335, 0.021663486, -0.053929449, 0.13332982, -0.33333323]
_NEAR = 0.9


def c(value: float) -> str:
    return constant(value, F32)


def _bits_of(value: float) -> int:
    return struct.unpack("<i", struct.pack("<f", value))[0]


class _Arithmetic:
    """An emitter's operations in single precision."""

    def __init__(self, e: Emitter):
        self.e = e

    def add(self, a: str, b: str) -> str:
        return self.e.add(a, b, F32)

    def sub(self, a: str, b: str) -> str:
        return self.e.sub(a, b, F32)

    def mul(self, a: str, b: str) -> str:
        return self.e.mul(a, b, F32)

    def fma(self, a: str, b: str, c: str) -> str:
        return self.e.call("fma", a, b, c, t=F32)

    def select(self, how: str, a: str, b: str, first: str, second: str) -> str:
        """Return `first` where a and b compare in some way, `second` elsewhere."""
        return self.e.select(self.e.compare(how, a, b, F32), first, second, F32)

    def bits(self, x: str) -> str:
        return self.e.convert("bitcast", x, F32, I32)

    def real(self, bits: str) -> str:
        return self.e.convert("bitcast", bits, I32, F32)

    def integer(self, how: str, a: str, b: str | int) -> str:
        return self.e.apply(how, I32, a, b)

    def power_of_two(self, n: str) -> str:
        """Return 2**n for an integer n of a normal number."""
        return self.real(self.integer("shl", self.integer("add", n, 127), 23))


def _exp_parts(s: _Arithmetic, x: str) -> tuple[str, str]:
    """Return ``(n, y)`` with exp(x) = 2**n y and y between sqrt(1/2) and sqrt(2), n an integer."""
    t = s.fma(x, c(1 / math.log(2)), c(_MAGIC))
    n = s.integer("sub", s.bits(t), _bits_of(_MAGIC))
    k = s.sub(c(_MAGIC), t)
    most = s.fma(k, c(_LN2[0]), x)
    r = s.fma(k, c(_LN2[1]), most)
    lost = s.fma(k, c(_LN2[1]), s.sub(most, r))
    return n, s.add(c(1.0), s.add(s.fma(s.mul(r, r), s.e.polynomial(r, _EXP, F32), lost), r))


def exp(e: Emitter, x: str) -> str:
    s = _Arithmetic(e)
    x = s.select(">", x, c(100.0), c(100.0), x)
    n, y = _exp_parts(s, s.select("<", x, c(-110.0), c(-110.0), x))
    half = s.integer("ashr", n, 1)
    return s.mul(s.mul(y, s.power_of_two(half)), s.power_of_two(s.integer("sub", n, half)))


def _log_parts(s: _Arithmetic, x: str) -> tuple[str, str]:
    """Return ``(k, m)`` with x = 2**k m and m between sqrt(1/2) and sqrt(2), for a normal x; k as a real number."""
    b = s.bits(x)
    n = s.integer("ashr", s.integer("sub", b, _bits_of(math.sqrt(0.5))), 23)
    return s.e.convert("sitofp", n, I32, F32), s.real(s.integer("sub", b, s.integer("shl", n, 23)))


def _log_core(s: _Arithmetic, k: str, f: str, more: str = "") -> str:
    """Return k ln 2 + log(1 + f), and more, which is small."""
    most = s.mul(k, c(_LN2_SHORT[0]))
    both = s.add(most, f)
    lost = s.add(s.sub(most, both), f)
    lost = s.add(lost, more) if more else lost
    tail = s.fma(f, s.e.polynomial(f, _LOG, F32), c(-0.5))
    return s.add(both, s.fma(s.mul(f, f), tail, s.fma(k, c(_LN2_SHORT[1]), lost)))


def _log_ends(s: _Arithmetic, x: str, y: str) -> str:
    """Put right what log gives for 0, negative numbers, infinity and NaN."""
    y = s.select("==", x, c(math.inf), x, y)
    y = s.select("==", x, c(0.0), c(-math.inf), y)
    return s.e.select(s.e.apply("fcmp ult", F32, x, "0.0"), c(math.nan), y, F32)


def log(e: Emitter, x: str) -> str:
    s = _Arithmetic(e)
    tiny = e.compare("<", x, c(2.0**-126), F32)
    k, m = _log_parts(s, e.select(tiny, s.mul(x, c(2.0**23)), x, F32))
    k = e.select(tiny, s.sub(k, c(23.0)), k, F32)
    return _log_ends(s, x, _log_core(s, k, s.sub(m, c(1.0))))


def log1p(e: Emitter, x: str) -> str:
    s = _Arithmetic(e)
    u = s.add(x, c(1.0))
    lost = s.select("<", u, c(2.0**24), s.sub(x, s.sub(u, c(1.0))), c(0.0))
    k, m = _log_parts(s, u)
    y = _log_core(s, k, s.sub(m, c(1.0)), e.div(lost, u, F32))
    return s.select("==", x, c(0.0), x, _log_ends(s, u, y))


def tanh(e: Emitter, x: str) -> str:
    s = _Arithmetic(e)
    a = e.call("fabs", x, t=F32)
    z = s.mul(a, a)
    near = s.fma(s.mul(a, z), e.horner(z, _TANH, F32), a)
    twice = s.add(a, a)
    n, y = _exp_parts(s, s.select(">", twice, c(40.0), c(40.0), twice))
    far = s.sub(c(1.0), e.div(c(2.0), s.fma(y, s.power_of_two(n), c(1.0)), F32))
    return e.call("copysign", s.select("<", a, c(_NEAR), near, far), x, t=F32)


OF_SINGLE: dict[str, Callable] = {"exp": exp, "log": log, "log1p": log1p, "tanh": tanh}
