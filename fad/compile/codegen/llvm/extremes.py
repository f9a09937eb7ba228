"""The largest or smallest number of a row in vectors: NaN if there is one, and of zeros 0.0 is larger than -0.0.

LLVM's own operation asks for both in each step. Here a step compares numbers alone, and notes what a NaN was and which
signs there were; only behind a row where it matters is that looked at. All elements of a row whose largest number is
zero are negative but for 0.0, so their signs say whether it is there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from fad.compile.codegen.llvm.builder import constant, splat, vector
from fad.compile.ir.types import F64


class Extremes(NamedTuple):
    """The extreme of the values of type t in n lanes; ``need(name, out, args)`` declares a function and names it."""

    how: str  # "maximum" or "minimum"
    t: str
    n: int
    need: Callable[[str, str, str], str]

    @property
    def v(self) -> str:
        return vector(self.t, self.n)

    @property
    def bits(self) -> str:
        return "i64" if self.t == F64 else "i32"

    @property
    def join(self) -> str:
        """How signs are put together: one that is not negative, or one that is, remains."""
        return "and" if self.how == "maximum" else "or"

    def begin(self, s: str, before: str, after: str) -> list[str]:
        """Return what is carried through the row beside the extreme so far."""
        signs = vector(self.bits, self.n)
        first = splat(self.bits, "-1" if self.how == "maximum" else "0", self.n)
        return [
            f"  %signs{s} = phi {signs} [{first}, {before}], [%signs1{s}, {after}]",
            f"  %nans{s} = phi {self.v} [zeroinitializer, {before}], [%nans1{s}, {after}]",
        ]

    def step(self, s: str, value: str) -> list[str]:
        """Compare a vector with %acc and name the extremes %next."""
        signs, truths = vector(self.bits, self.n), vector("i1", self.n)
        return [
            *self.compare(f"next{s}", self.v, self.n, value, f"%acc{s}"),
            f"  %bits{s} = bitcast {self.v} {value} to {signs}",
            f"  %signs1{s} = {self.join} {signs} %signs{s}, %bits{s}",
            f"  %isnan{s} = fcmp uno {self.v} {value}, {value}",
            f"  %nans1{s} = select {truths} %isnan{s}, {self.v} {value}, {self.v} %nans{s}",
        ]

    def compare(self, name: str, v: str, n: int, a: str, b: str) -> list[str]:
        truths = vector("i1", n) if n > 1 else "i1"
        return [
            f"  %{name}_c = fcmp {'ogt' if self.how == 'maximum' else 'olt'} {v} {a}, {b}",
            f"  %{name} = select {truths} %{name}_c, {v} {a}, {v} {b}",
        ]

    def finish(self, s: str, here: str) -> list[str]:
        """Combine the lanes into %acc2, in blocks that begin in block `here` and end in %Z."""
        lines, x, n = [], f"%next{s}", self.n
        while n > 1:
            v, n = vector(self.t, n), n // 2
            half = vector(self.t, n) if n > 1 else self.t
            if n > 1:
                for k, name in enumerate("ab"):
                    lanes = ", ".join(f"i32 {k * n + j}" for j in range(n))
                    lines.append(f"  %{name}{n}{s} = shufflevector {v} {x}, {v} poison, <{n} x i32> <{lanes}>")
            else:
                lines += [f"  %{name}1{s} = extractelement {v} {x}, i64 {k}" for k, name in enumerate("ab")]
            lines += self.compare(f"x{n}{s}", half, n, f"%a{n}{s}", f"%b{n}{s}")
            x = f"%x{n}{s}"
        signs = vector(self.bits, self.n)
        truths, zero = vector("i1", self.n), constant(0, self.t)
        any_of = self.need(f"llvm.vector.reduce.or.v{self.n}i1", "i1", truths)
        reduce = self.need(f"llvm.vector.reduce.{self.join}.v{self.n}{self.bits}", self.bits, signs)
        add = self.need(f"llvm.vector.reduce.fadd.v{self.n}f{self.bits[1:]}", self.t, f"{self.t}, {self.v}")
        sign = -(1 << (int(self.bits[1:]) - 1))
        return [
            *lines, f"  %lost{s} = fcmp uno {self.v} %nans1{s}, %nans1{s}",
            f"  %nan{s} = call i1 {any_of}({truths} %lost{s})", f"  %null{s} = fcmp oeq {self.t} {x}, {zero}",
            f"  %rare{s} = or i1 %nan{s}, %null{s}", f"  br i1 %rare{s}, label %Y{s}, label %Z{s}", f"Y{s}:",
            f"  %every{s} = call {self.bits} {reduce}({signs} %signs1{s})",
            f"  %sign{s} = and {self.bits} %every{s}, {sign}",
            f"  %zero{s} = bitcast {self.bits} %sign{s} to {self.t}",
            f"  %real{s} = select i1 %null{s}, {self.t} %zero{s}, {self.t} {x}",
            f"  %some{s} = call reassoc {self.t} {add}({self.t} {zero}, {self.v} %nans1{s})",
            f"  %found{s} = select i1 %nan{s}, {self.t} %some{s}, {self.t} %real{s}", f"  br label %Z{s}", f"Z{s}:",
            f"  %acc2{s} = phi {self.t} [{x}, {here}], [%found{s}, %Y{s}]",
        ]  # fmt: skip
