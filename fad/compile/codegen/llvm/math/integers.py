"""Functions of integers that take as many steps as their numbers need: divisors, multiples and powers.

Each is a function of its own in the module of the kernel that calls it, written on one line: modules that are joined
have it once. A loop that calls it is one of scalars. Numbers wrap around as NumPy's do.
"""

from __future__ import annotations

from collections.abc import Callable

from fad.compile.codegen.llvm.builder import CannotWiden, Emitter

# The greatest common divisor of two magnitudes, by halves and differences (J. Stein, 1967); $T is their type.
_GCD = """
define internal $T @fad_gcd_$T($T %a, $T %b) {
entry:
  %an = sub $T 0, %a
  %ai = icmp slt $T %a, 0
  %x = select i1 %ai, $T %an, $T %a
  %bn = sub $T 0, %b
  %bi = icmp slt $T %b, 0
  %y = select i1 %bi, $T %bn, $T %b
  %z = or $T %x, %y
  %x0 = icmp eq $T %x, 0
  %y0 = icmp eq $T %y, 0
  %alone = or i1 %x0, %y0
  br i1 %alone, label %one, label %two
one:
  ret $T %z
two:
  %k = call $T @llvm.cttz.$T($T %z, i1 true)
  %xk = call $T @llvm.cttz.$T($T %x, i1 true)
  %odd = lshr $T %x, %xk
  br label %step
step:
  %p = phi $T [%odd, %two], [%low, %step]
  %q = phi $T [%y, %two], [%d, %step]
  %qk = call $T @llvm.cttz.$T($T %q, i1 true)
  %r = lshr $T %q, %qk
  %less = icmp ult $T %p, %r
  %low = select i1 %less, $T %p, $T %r
  %high = select i1 %less, $T %r, $T %p
  %d = sub $T %high, %low
  %more = icmp ne $T %d, 0
  br i1 %more, label %step, label %done
done:
  %g = shl $T %low, %k
  ret $T %g
}"""
_LCM = """
define internal $T @fad_lcm_$T($T %a, $T %b) {
entry:
  %g = call $T @fad_gcd_$T($T %a, $T %b)
  %none = icmp eq $T %g, 0
  br i1 %none, label %zero, label %some
zero:
  ret $T 0
some:
  %an = sub $T 0, %a
  %ai = icmp slt $T %a, 0
  %x = select i1 %ai, $T %an, $T %a
  %bn = sub $T 0, %b
  %bi = icmp slt $T %b, 0
  %y = select i1 %bi, $T %bn, $T %b
  %q = udiv $T %x, %g
  %m = mul $T %q, %y
  ret $T %m
}"""
# By squares, one for each bit of the exponent.
_POWER = """
define internal $T @fad_power_$T($T %a, $T %b) {
entry:
  br label %step
step:
  %base = phi $T [%a, %entry], [%square, %step]
  %left = phi $T [%b, %entry], [%half, %step]
  %y = phi $T [1, %entry], [%product, %step]
  %bit = and $T %left, 1
  %odd = icmp ne $T %bit, 0
  %times = mul $T %y, %base
  %product = select i1 %odd, $T %times, $T %y
  %square = mul $T %base, %base
  %half = lshr $T %left, 1
  %more = icmp ne $T %half, 0
  br i1 %more, label %step, label %done
done:
  ret $T %product
}"""


def _calling(name: str, *texts: str) -> Callable:
    def emit(e: Emitter, a: str, b: str, t: str) -> str:
        if e.width > 1:
            raise CannotWiden(name)
        e.needs.update(" ".join(text.replace("$T", t).split()) for text in texts)
        if _GCD in texts:
            e.needs.add(f"declare {t} @llvm.cttz.{t}({t}, i1)")
        return e.new(f"call {t} @fad_{name}_{t}({t} {a}, {t} {b})")

    return emit


gcd = _calling("gcd", _GCD)
lcm = _calling("lcm", _GCD, _LCM)
power = _calling("power", _POWER)  # of an exponent that is not negative
