"""An emitter of LLVM's text, one instruction a call: on numbers, or on vectors of some width.

The polynomials of `math` and the expressions of kernels are written once, and know nothing of the width.
"""

from __future__ import annotations

import functools
import struct

from fad.compile.ir.types import BOOL, F32, F64, I64, INTEGERS


def constant(value: float, kind: str) -> str:
    if kind in INTEGERS:
        return str(int(value))
    if kind == BOOL:
        return "true" if value else "false"
    if kind == F32:
        value = struct.unpack("<f", struct.pack("<f", value))[0] if abs(value) <= 3.5e38 else value
    return f"0x{struct.unpack('<Q', struct.pack('<d', value))[0]:016X}"


_SUFFIX = {F64: "f64", F32: "f32"}
# Intrinsics that there are on vectors, too, and instructions that would be a loop over the elements.
_ON_VECTORS = frozenset({
    "fma", "fabs", "sqrt", "copysign", "floor", "ceil", "trunc", "rint", "roundeven", "minnum", "maxnum", "minimum",
    "maximum",
})  # fmt: skip
_LONG = 6  # coefficients from which on a polynomial is two
_ON_NUMBERS_ALONE = frozenset({"udiv", "urem", "srem"})


class CannotWiden(Exception):
    """An instruction that has no counterpart on vectors."""


def vector(t: str, n: int) -> str:
    return f"<{n} x {t}>"


@functools.cache
def _short_constants() -> bool:
    import llvmlite.binding as llvm

    return llvm.llvm_version_info >= (19, 0, 0)


def splat(t: str, text: str, n: int) -> str:
    """Return a constant vector of equal elements."""
    if _short_constants():
        return f"splat ({t} {text})"
    return f"<{', '.join([f'{t} {text}'] * n)}>"


class Emitter:
    """Collects instructions; every method returns the name of a new value."""

    def __init__(self, prefix: str = "t", width: int = 1) -> None:
        self.prefix = prefix
        self.width = width  # how many elements a value has; 1 is a number, not a vector
        self.renamed: dict[str, str] = {}  # what lives outside of a loop of vectors -> the vector of it
        self.lines: list[str] = []
        self.known: dict[str, str] = {}  # instruction -> its name: what is computed twice is written once
        self.count = 0
        self.needs: set[str] = set()  # declarations of intrinsics and outside functions
        self.limit: list[tuple[str, float]] = []  # values that must stay below a bound for the result to be right
        self.slow = False  # whether to call the C library where the polynomials have a bound
        self.single = False  # whether the result will be rounded to single precision: shorter polynomials do

    def new(self, text: str) -> str:
        name = self.known.get(text)
        if name is None:
            self.count += 1
            name = self.known[text] = f"%{self.prefix}{self.count}"
            self.lines.append(f"  {name} = {text}")
        return name

    def type(self, t: str) -> str:
        """Return the type of values whose elements have type t."""
        return t if self.width == 1 else vector(t, self.width)

    def operand(self, a: str, t: str) -> str:
        """Return a value or constant as an operand: among vectors, a constant is one of equal elements."""
        if self.width == 1:
            return a
        return self.renamed.get(a, a) if a[0] == "%" else splat(t, a, self.width)

    def apply(self, how: str, t: str, *operands: str | int) -> str:
        """Apply an instruction to operands of one type."""
        if self.width > 1 and how in _ON_NUMBERS_ALONE:
            raise CannotWiden(how)
        return self.new(f"{how} {self.type(t)} {', '.join([self.operand(str(a), t) for a in operands])}")

    def convert(self, how: str, a: str, f: str, t: str) -> str:
        return self.new(f"{how} {self.type(f)} {self.operand(a, f)} to {self.type(t)}")

    # arithmetic; without flags, so that each operation rounds by itself, as NumPy's do: what is fused says `fma`
    def add(self, a: str, b: str, t: str = F64) -> str:
        return self.apply("fadd" if t in (F64, F32) else "add", t, a, b)

    def sub(self, a: str, b: str, t: str = F64) -> str:
        return self.apply("fsub" if t in (F64, F32) else "sub", t, a, b)

    def mul(self, a: str, b: str, t: str = F64) -> str:
        return self.apply("fmul" if t in (F64, F32) else "mul", t, a, b)

    def div(self, a: str, b: str, t: str = F64) -> str:
        return self.apply("fdiv", t, a, b)

    def neg(self, a: str, t: str = F64) -> str:
        return self.apply("fneg", t, a) if t in (F64, F32) else self.apply("sub", t, "0", a)

    def call(self, name: str, *args: str, t: str = F64) -> str:
        if self.width > 1 and name not in _ON_VECTORS:
            raise CannotWiden(name)
        full = f"llvm.{name}.{'' if self.width == 1 else f'v{self.width}'}{_SUFFIX[t]}"
        wide = self.type(t)
        self.needs.add(f"declare {wide} @{full}({', '.join([wide] * len(args))})")
        return self.new(f"call {wide} @{full}({', '.join([f'{wide} {self.operand(a, t)}' for a in args])})")

    def outside(self, name: str, *args: str) -> str:
        """Call a function of the C library, or of another module."""
        if self.width > 1:
            raise CannotWiden(name)
        self.needs.add(f"declare double @fad_{name}({', '.join(['double'] * len(args))})")
        return self.new(f"call double @fad_{name}({', '.join(f'double {a}' for a in args)})")

    def fma(self, a: str, b: str, c: str) -> str:
        return self.call("fma", a, b, c)

    def compare(self, how: str, a: str, b: str, t: str = F64) -> str:
        if t in (F64, F32):
            code = {"<": "olt", "<=": "ole", ">": "ogt", ">=": "oge", "==": "oeq", "!=": "une"}[how]
            return self.apply(f"fcmp {code}", t, a, b)
        code = {"<": "slt", "<=": "sle", ">": "sgt", ">=": "sge", "==": "eq", "!=": "ne"}[how]
        if t == BOOL:
            code = code.replace("s", "u", 1) if code[0] == "s" else code
        return self.apply(f"icmp {code}", t, a, b)

    def select(self, c: str, a: str, b: str, t: str = F64) -> str:
        wide, condition = self.type(t), f"{self.type(BOOL)} {self.operand(c, BOOL)}"
        return self.new(f"select {condition}, {wide} {self.operand(a, t)}, {wide} {self.operand(b, t)}")

    def bits(self, a: str) -> str:
        return self.convert("bitcast", a, F64, I64)

    def real(self, a: str) -> str:
        return self.convert("bitcast", a, I64, F64)

    def cast(self, a: str, f: str, t: str) -> str:
        """Convert between the types as NumPy does; what an integer cannot hold is left to the CPU, as there."""
        if f == t:
            return a
        if t == BOOL:
            return self.compare("!=", a, constant(0, f), f)
        if t in INTEGERS and f in INTEGERS:
            return self.convert("sext" if t == I64 else "trunc", a, f, t)
        if f == BOOL:
            return self.convert("zext" if t in INTEGERS else "uitofp", a, f, t)
        if f in INTEGERS:
            return self.convert("sitofp", a, f, t)
        if t in INTEGERS:
            return self.convert("fptosi", a, f, t)
        return self.convert("fpext" if t == F64 else "fptrunc", a, f, t)

    def polynomial(self, x: str, coefficients: list[float], t: str = F64) -> str:
        """Evaluate a polynomial, highest coefficient first.

        A step waits for the one before it: those of a long polynomial are two chains side by side, of the even and of
        the odd powers.
        """
        if len(coefficients) < _LONG:
            return self.horner(x, coefficients, t)
        square = self.mul(x, x, t)
        even, odd = (self.horner(square, coefficients[last::-2][::-1], t) for last in (-1, -2))
        return self.call("fma", odd, x, even, t=t)

    def horner(self, x: str, coefficients: list[float], t: str = F64) -> str:
        """Evaluate a polynomial step by step, whose roundings are the least."""
        y = constant(coefficients[0], t)
        for a in coefficients[1:]:
            y = self.call("fma", y, x, constant(a, t), t=t)
        return y

    def series(self, x: str, coefficients: list[float], single: int) -> str:
        """Evaluate a Taylor series, highest coefficient first; the last `single` are enough in single precision."""
        return self.polynomial(x, coefficients[-single:] if self.single else coefficients)

    def bound(self, x: str, limit: float) -> None:
        self.limit.append((x, limit))


def c(value: float) -> str:
    return constant(value, F64)
