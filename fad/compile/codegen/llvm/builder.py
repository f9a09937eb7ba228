"""Scalar code: an emitter of LLVM's text, one instruction a call."""

from __future__ import annotations

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


class Emitter:
    """Collects instructions; every method returns the name of a new value."""

    def __init__(self, prefix: str = "t") -> None:
        self.prefix = prefix
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

    # arithmetic; without flags, so that each operation rounds by itself, as NumPy's do: what is fused says `fma`
    def add(self, a: str, b: str, t: str = F64) -> str:
        return self.new(f"fadd {t} {a}, {b}" if t in (F64, F32) else f"add {t} {a}, {b}")

    def sub(self, a: str, b: str, t: str = F64) -> str:
        return self.new(f"fsub {t} {a}, {b}" if t in (F64, F32) else f"sub {t} {a}, {b}")

    def mul(self, a: str, b: str, t: str = F64) -> str:
        return self.new(f"fmul {t} {a}, {b}" if t in (F64, F32) else f"mul {t} {a}, {b}")

    def div(self, a: str, b: str, t: str = F64) -> str:
        return self.new(f"fdiv {t} {a}, {b}")

    def neg(self, a: str, t: str = F64) -> str:
        return self.new(f"fneg {t} {a}" if t in (F64, F32) else f"sub {t} 0, {a}")

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
        """Convert between the types as NumPy does; what an integer cannot hold is left to the CPU, as there."""
        if f == t:
            return a
        if t == BOOL:
            return self.compare("!=", a, constant(0, f), f)
        if t in INTEGERS and f in INTEGERS:
            return self.new(f"{'sext' if t == I64 else 'trunc'} {f} {a} to {t}")
        if f == BOOL:
            return self.new(f"{'zext' if t in INTEGERS else 'uitofp'} i1 {a} to {t}")
        if f in INTEGERS:
            return self.new(f"sitofp {f} {a} to {t}")
        if t in INTEGERS:
            return self.new(f"fptosi {f} {a} to {t}")
        return self.new(f"{'fpext' if t == F64 else 'fptrunc'} {f} {a} to {t}")

    def horner(self, x: str, coefficients: list[float]) -> str:
        """Evaluate a polynomial, highest coefficient first."""
        y = c(coefficients[0])
        for a in coefficients[1:]:
            y = self.fma(y, x, c(a))
        return y

    def series(self, x: str, coefficients: list[float], single: int) -> str:
        """Evaluate a Taylor series, highest coefficient first; the last `single` are enough in single precision."""
        return self.horner(x, coefficients[-single:] if self.single else coefficients)

    def bound(self, x: str, limit: float) -> None:
        self.limit.append((x, limit))


def c(value: float) -> str:
    return constant(value, F64)
