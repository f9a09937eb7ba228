"""Scalar code: an emitter of LLVM's text, and the mathematical functions as straight-line polynomials.

Every function here is written without branches, so that a loop around it is vectorised. Double precision throughout;
single precision is computed in double and rounded once at the end, which makes it correctly rounded but for ties.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Callable

import numpy as np

F64, F32, I64, BOOL = "double", "float", "i64", "i1"
LLVM_TYPE = {np.dtype(float): F64, np.dtype(np.float32): F32, np.dtype(np.int64): I64, np.dtype(bool): BOOL}
BYTES = {F64: 8, F32: 4, I64: 8, BOOL: 1}


def constant(value: float, kind: str) -> str:
    if kind == I64:
        return str(int(value))
    if kind == BOOL:
        return "true" if value else "false"
    if kind == F32:
        value = struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) <= 3.5e38 else value
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


class Emitter:
    """Collects instructions; every method returns the name of a new value."""

    def __init__(self, prefix: str = "t") -> None:
        self.prefix = prefix
        self.lines: list[str] = []
        self.count = 0
        self.needs: set[str] = set()  # declarations of intrinsics and outside functions
        self.limit: list[tuple[str, float]] = []  # values that must stay below a bound for the result to be right
        self.slow = False  # whether to call the C library where the polynomials have a bound

    def new(self, text: str) -> str:
        self.count += 1
        name = f"%{self.prefix}{self.count}"
        self.lines.append(f"  {name} = {text}")
        return name

    # arithmetic; `contract` lets a product and a sum become one fused operation, which only rounds less
    def add(self, a: str, b: str, t: str = F64) -> str:
        return self.new(f"fadd contract {t} {a}, {b}" if t in (F64, F32) else f"add {t} {a}, {b}")

    def sub(self, a: str, b: str, t: str = F64) -> str:
        return self.new(f"fsub contract {t} {a}, {b}" if t in (F64, F32) else f"sub {t} {a}, {b}")

    def mul(self, a: str, b: str, t: str = F64) -> str:
        return self.new(f"fmul contract {t} {a}, {b}" if t in (F64, F32) else f"mul {t} {a}, {b}")

    def div(self, a: str, b: str, t: str = F64) -> str:
        return self.new(f"fdiv {t} {a}, {b}")

    def neg(self, a: str, t: str = F64) -> str:
        return self.new(f"fneg {t} {a}" if t in (F64, F32) else f"sub {t} 0, {a}")

    def strict(self, op: str, a: str, b: str) -> str:
        """An operation that must round as written."""
        return self.new(f"{op} double {a}, {b}")

    def call(self, name: str, *args: str, t: str = F64) -> str:
        suffix = {F64: "f64", F32: "f32"}[t]
        full = f"llvm.{name}.{suffix}"
        self.needs.add(f"declare {t} @{full}({', '.join([t] * len(args))})")
        return self.new(f"call {t} @{full}({', '.join(f'{t} {a}' for a in args)})")

    def outside(self, name: str, *args: str) -> str:
        self.needs.add(f"declare double @fad_{name}({', '.join(['double'] * len(args))})")
        return self.new(f"call double @fad_{name}({', '.join(f'double {a}' for a in args)})")

    def fma(self, a: str, b: str, c: str) -> str:
        return self.call("fma", a, b, c)

    def compare(self, how: str, a: str, b: str, t: str = F64) -> str:
        if t in (F64, F32):
            code = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}[how]
            return self.new(f"fcmp {code} {t} {a}, {b}")
        code = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}[how]
        if t == BOOL:
            code = code.replace("s", "u", 1) if code[0] == "s" else code
        return self.new(f"icmp {code} {t} {a}, {b}")

    def select(self, c: str, a: str, b: str, t: str = F64) -> str:
        return self.new(f"select i1 {c}, {t} {a}, {t} {b}")

    def bits(self, a: str) -> str:
        return self.new(f"bitcast double {a} to i64")

    def real(self, a: str) -> str:
        return self.new(f"bitcast i64 {a} to double")

    def cast(self, a: str, f: str, t: str) -> str:
        """Convert between the four types as NumPy does."""
        if f == t:
            return a
        if t == BOOL:
            return self.compare("!=", a, constant(0, f), f)
        if f == BOOL:
            return self.new(f"zext i1 {a} to i64") if t == I64 else self.new(f"uitofp i1 {a} to {t}")
        if f == I64:
            return self.new(f"sitofp i64 {a} to {t}")
        if t == I64:
            raise NotImplementedError("a float to an integer: NumPy's own conversion decides what overflows")
        return self.new(f"{'fpext' if t == F64 else 'fptrunc'} {f} {a} to {t}")

    def horner(self, x: str, coefficients: list[float]) -> str:
        """Evaluate a polynomial, highest coefficient first."""
        y = c(coefficients[0])
        for a in coefficients[1:]:
            y = self.fma(y, x, c(a))
        return y

    def bound(self, x: str, limit: float) -> None:
        self.limit.append((x, limit))


def c(value: float) -> str:
    return constant(value, F64)


_MAGIC = 1.5 * 2.0**52  # adding it rounds to an integer, which then stands in the low bits
_LN2_HI, _LN2_LO = 0.693147180369123816490, 1.90821492927058770002e-10  # ln 2 in two parts, the first with 33 bits
_LOG2E = 1.4426950408889634


def _power_of_two(e: Emitter, n: str) -> str:
    """Return 2**n for an integer n (as i64) of a normal number."""
    return e.real(e.new(f"shl i64 {e.new(f'add i64 {n}, 1023')}, 52"))


def _reduce_exp(e: Emitter, x: str) -> tuple[str, str]:
    """Return ``(n, r)`` with x = n ln 2 + r, n an i64."""
    t = e.fma(x, c(_LOG2E), c(_MAGIC))
    n = e.new(f"sub i64 {e.bits(t)}, {struct.unpack('<q', struct.pack('<d', _MAGIC))[0]}")
    k = e.strict("fsub", t, c(_MAGIC))
    r = e.fma(k, c(-_LN2_HI), x)
    return n, e.fma(k, c(-_LN2_LO), r)


def _clamp(e: Emitter, x: str, low: float, high: float) -> str:
    x = e.select(e.compare(">", x, c(high)), c(high), x)
    return e.select(e.compare("<", x, c(low)), c(low), x)


def _expm1_core(e: Emitter, r: str) -> str:
    """Return exp(r) - 1 for abs(r) <= ln(2)/2."""
    p = e.horner(r, [1 / math.factorial(k) for k in range(13, 1, -1)])
    return e.fma(e.strict("fmul", r, r), p, r)


def _scaled_exp(e: Emitter, x: str, less: int) -> str:
    """Return exp(x) / 2**less, without overflow or loss on the way."""
    n, r = _reduce_exp(e, _clamp(e, x, -800.0, 800.0))
    n = e.new(f"sub i64 {n}, {less}") if less else n
    half = e.new(f"ashr i64 {n}, 1")
    y = e.strict("fadd", _expm1_core(e, r), c(1.0))
    y = e.strict("fmul", y, _power_of_two(e, half))
    return e.strict("fmul", y, _power_of_two(e, e.new(f"sub i64 {n}, {half}")))


def exp(e: Emitter, x: str) -> str:
    return _scaled_exp(e, x, 0)


def exp2(e: Emitter, x: str) -> str:
    x = _clamp(e, x, -1100.0, 1100.0)
    t = e.strict("fadd", x, c(_MAGIC))
    n = e.new(f"sub i64 {e.bits(t)}, {struct.unpack('<q', struct.pack('<d', _MAGIC))[0]}")
    r = e.strict("fmul", e.strict("fsub", x, e.strict("fsub", t, c(_MAGIC))), c(math.log(2)))
    half = e.new(f"ashr i64 {n}, 1")
    y = e.strict("fmul", e.strict("fadd", _expm1_core(e, r), c(1.0)), _power_of_two(e, half))
    return e.strict("fmul", y, _power_of_two(e, e.new(f"sub i64 {n}, {half}")))


def _half_expm1(e: Emitter, x: str, high: float) -> str:
    """Return (exp(x) - 1) / 2, which overflows only where sinh does; right for x >= -60 and normal results."""
    n, r = _reduce_exp(e, _clamp(e, x, -60.0, high))
    s = _power_of_two(e, e.new(f"sub i64 {n}, 2"))
    return e.strict("fmul", e.fma(s, _expm1_core(e, r), e.strict("fsub", s, c(0.25))), c(2.0))


def _or_itself(e: Emitter, x: str, y: str, below: float) -> str:
    """Return x where it is so small that it is its own function's value, y elsewhere."""
    return e.select(e.compare("<", e.call("fabs", x), c(below)), x, y)


def expm1(e: Emitter, x: str) -> str:
    y = e.strict("fmul", _half_expm1(e, x, 710.0), c(2.0))
    return _or_itself(e, x, y, 2.0**-54)


def sinh(e: Emitter, x: str) -> str:
    h = _half_expm1(e, e.call("fabs", x), 710.5)
    h = e.select(e.compare(">", e.call("fabs", x), c(710.5)), c(math.inf), h)
    # exp(x) - 1 over exp(x); one where h is infinite
    share = e.div(c(1.0), e.strict("fadd", e.div(c(1.0), h), c(2.0)))
    y = e.call("copysign", e.strict("fadd", h, share), x)
    return _or_itself(e, x, y, 2.0**-28)


def cosh(e: Emitter, x: str) -> str:
    h = _scaled_exp(e, e.call("fabs", x), 1)
    return e.strict("fadd", h, e.div(c(0.25), h))


def tanh(e: Emitter, x: str) -> str:
    a = e.call("fabs", x)
    h = _half_expm1(e, e.strict("fadd", a, a), 40.0)
    y = e.call("copysign", e.div(h, e.strict("fadd", h, c(1.0))), x)
    return _or_itself(e, x, y, 2.0**-28)


def _log_parts(e: Emitter, x: str) -> tuple[str, str]:
    """Return ``(k, m)`` with x = 2**k m and m between sqrt(1/2) and sqrt(2); k as a double."""
    tiny = e.compare("<", x, c(2.0**-1022))
    x = e.select(tiny, e.strict("fmul", x, c(2.0**54)), x)
    b = e.bits(x)
    shifted = e.new(f"sub i64 {b}, {struct.unpack('<q', struct.pack('<d', math.sqrt(0.5)))[0]}")
    n = e.new(f"ashr i64 {shifted}, 52")
    m = e.real(e.new(f"sub i64 {b}, {e.new(f'shl i64 {n}, 52')}"))
    k = e.new(f"sitofp i64 {n} to double")
    return e.select(tiny, e.strict("fsub", k, c(54.0)), k), m


def _log_core(e: Emitter, k: str, f: str) -> str:
    """Return k ln 2 + log(1 + f): twice the series of artanh in s = f / (2 + f)."""
    s = e.div(f, e.strict("fadd", f, c(2.0)))
    z = e.strict("fmul", s, s)
    series = e.strict("fmul", z, e.horner(z, [2 / (2 * i + 1) for i in range(11, 0, -1)]))
    half = e.strict("fmul", e.strict("fmul", f, f), c(0.5))
    # log(1 + f) = f - (f f / 2 - s (f f / 2 + series)), in which the small terms are added first
    low = e.fma(s, e.strict("fadd", half, series), e.strict("fmul", k, c(_LN2_LO)))
    rest = e.strict("fsub", e.strict("fsub", half, low), f)
    return e.fma(k, c(_LN2_HI), e.neg(rest))


def _log_ends(e: Emitter, x: str, y: str) -> str:
    """Put right what log gives for 0, negative numbers, infinity and NaN."""
    y = e.select(e.compare("==", x, c(math.inf)), x, y)
    y = e.select(e.compare("==", x, c(0.0)), c(-math.inf), y)
    return e.select(e.new(f"fcmp ult double {x}, 0.0"), c(math.nan), y)


def log(e: Emitter, x: str) -> str:
    k, m = _log_parts(e, x)
    return _log_ends(e, x, _log_core(e, k, e.strict("fsub", m, c(1.0))))


def log2(e: Emitter, x: str) -> str:
    k, m = _log_parts(e, x)
    y = _log_core(e, c(0.0), e.strict("fsub", m, c(1.0)))
    return _log_ends(e, x, e.fma(y, c(_LOG2E), k))


def log1p(e: Emitter, x: str) -> str:
    u = e.strict("fadd", x, c(1.0))
    lost = e.strict("fsub", x, e.strict("fsub", u, c(1.0)))
    lost = e.select(e.compare("<", u, c(2.0**53)), lost, c(0.0))
    k, m = _log_parts(e, u)
    y = _log_core(e, k, e.strict("fsub", m, c(1.0)))
    y = e.strict("fadd", y, e.div(lost, u))
    y = _log_ends(e, u, y)
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
    k = e.neg(e.strict("fsub", t, c(_MAGIC)))
    a = e.fma(k, c(_PI2[0]), x)
    r = e.fma(k, c(_PI2[1]), a)
    low = e.fma(k, c(_PI2[1]), e.strict("fsub", a, r))
    low = e.fma(k, c(_PI2[2]), low)
    z = e.strict("fmul", r, r)
    s = e.strict("fadd", r, e.fma(e.strict("fmul", z, r), e.horner(z, _SIN), low))
    half = e.strict("fmul", z, c(0.5))
    w = e.strict("fsub", c(1.0), half)
    rest = e.strict("fsub", e.strict("fsub", c(1.0), w), half)
    rest = e.fma(e.strict("fmul", z, z), e.horner(z, _COS), e.fma(e.neg(r), low, rest))
    return q, s, e.strict("fadd", w, rest)


def _quadrant(e: Emitter, q: str, bit: int) -> str:
    return e.new(f"icmp ne i64 {e.new(f'and i64 {q}, {bit}')}, 0")


def _trig(name: str) -> Callable:
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


def _extreme(how: str) -> Callable:
    """maximum and minimum as NumPy has them: a NaN among the operands is the result."""

    def emit(e: Emitter, a: str, b: str, t: str) -> str:
        if t not in (F64, F32):
            return e.select(e.compare(how, a, b, t), a, b, t)
        first = e.new(f"or i1 {e.compare(how + '=', a, b, t)}, {e.compare('!=', a, a, t)}")
        return e.select(first, a, b, t)

    return emit


# name in a template -> how to emit it; in double precision, whatever the type of the operands
REAL: dict[str, Callable] = {
    "exp": exp, "exp2": exp2, "expm1": expm1, "log": log, "log2": log2, "log1p": log1p, "sin": _trig("sin"),
    "cos": _trig("cos"), "tan": _trig("tan"), "sinh": sinh, "cosh": cosh, "tanh": tanh,
}  # fmt: skip
# name -> how to emit it in the operands' own type
TYPED: dict[str, Callable] = {
    "sqrt": lambda e, x, t: e.call("sqrt", x, t=t),
    "fabs": lambda e, x, t: e.call("fabs", x, t=t),
    "floor": lambda e, x, t: e.call("floor", x, t=t),
    "ceil": lambda e, x, t: e.call("ceil", x, t=t),
    "trunc": lambda e, x, t: e.call("trunc", x, t=t),
    "rint": lambda e, x, t: e.call("rint", x, t=t),
    "copysign": lambda e, x, y, t: e.call("copysign", x, y, t=t),
    "maximum": _extreme(">"),
    "minimum": _extreme("<"),
}
