"""What templates may call: the name of a function and how it is emitted."""

from __future__ import annotations

from collections.abc import Callable

from fad.compile.codegen.llvm.builder import Emitter
from fad.compile.codegen.llvm.math import division, erf, exp_log_trig, integers, inverse, powers
from fad.compile.ir.types import BOOL, F32, F64, INTEGERS


def _extreme(how: str) -> Callable:
    """maximum and minimum as NumPy has them: a NaN among the operands is the result, of two equal ones the second."""

    def emit(e: Emitter, a: str, b: str, t: str) -> str:
        first = e.compare(how, a, b, t)
        if t in (F64, F32):
            first = e.apply("or", BOOL, first, e.compare("!=", a, a, t))
        return e.select(first, a, b, t)

    return emit


# name in a template -> how to emit it; in double precision, whatever the type of the operands
REAL: dict[str, Callable] = {
    "exp": exp_log_trig.exp, "exp2": exp_log_trig.exp2, "expm1": exp_log_trig.expm1, "log": exp_log_trig.log,
    "log2": exp_log_trig.log2, "log1p": exp_log_trig.log1p, "sin": exp_log_trig.trig("sin"),
    "cos": exp_log_trig.trig("cos"), "tan": exp_log_trig.trig("tan"), "sinh": exp_log_trig.sinh,
    "cosh": exp_log_trig.cosh, "tanh": exp_log_trig.tanh, "arctan": inverse.arctan, "arctan2": inverse.arctan2,
    "arcsin": inverse.arcsin, "arccos": inverse.arccos,
    "arcsinh": inverse.arcsinh, "arccosh": inverse.arccosh, "arctanh": inverse.arctanh, "pow": powers.power,
    "log10": powers.log10, "cbrt": powers.cbrt, "hypot": powers.hypot, "logaddexp": powers.logaddexp,
    "erf": erf.erf, "erfc": erf.erfc, "normal_cdf": erf.normal_cdf,
}  # fmt: skip
# name -> how to emit it in the operands' own type
TYPED: dict[str, Callable] = {
    "sqrt": lambda e, x, t: e.call("sqrt", x, t=t),
    "fma": lambda e, x, y, z, t: e.call("fma", x, y, z, t=t),
    "fabs": lambda e, x, t: (
        e.select(e.compare("<", x, "0", t), e.neg(x, t), x, t) if t in INTEGERS else e.call("fabs", x, t=t)
    ),
    "floor": lambda e, x, t: e.call("floor", x, t=t),
    "ceil": lambda e, x, t: e.call("ceil", x, t=t),
    "trunc": lambda e, x, t: e.call("trunc", x, t=t),
    "rint": lambda e, x, t: e.call("rint", x, t=t),
    "copysign": lambda e, x, y, t: e.call("copysign", x, y, t=t),
    "floor_divide": division.floor_divide,
    "remainder": division.remainder,
    "fmod": division.fmod,
    "left_shift": division.left_shift,
    "right_shift": division.right_shift,
    "signbit": division.sign_bit,
    "gcd": integers.gcd,
    "lcm": integers.lcm,
    "integer_power": integers.power,
    "maximum": _extreme(">"),
    "minimum": _extreme("<"),
}
# name -> how to emit it of an operand in its own type and a number that the template holds
OF_EXPONENTS: dict[str, Callable] = {"raise_to": powers.raise_to}
