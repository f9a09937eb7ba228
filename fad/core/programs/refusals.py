"""Which operations raise for some values of their operands, and which errors say that they did."""

from __future__ import annotations

from typing import Any

from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import EFFECT

# What takes whatever values it is given; `bare` operations, decompositions and linear systems above all, do not.
_TAKES_ALL = frozenset({"elementwise", "bilinear", "reduction", "flat", "scan", "selection", EFFECT})
# What NumPy and Python raise for the values that they find, and warnings that are errors.
OF_VALUES = (ArithmeticError, ValueError, LookupError, TypeError, Warning)
_OF_NUMBERS = frozenset({"/", "//", "%", "**", "<<", ">>"})  # of Python's own numbers
OF_MATH = ("math.", "cmath.")  # begin the symbols of operations that are functions of these modules of Python's


def may_refuse(prim: Primitive, ins: Any) -> bool:
    """Return whether an operation raises for some values of its operands."""
    if prim.archetype == "linear":
        return prim.indexed is not None and len(ins) > prim.indexed
    return prim.archetype not in _TAKES_ALL or is_power(prim)  # of integers, where the exponent is negative


def refuses(prim: Primitive, ins: Any, error: Exception) -> bool:
    """Return whether it was for the values that an operation raised, and not for shapes or dtypes."""
    return isinstance(error, (ArithmeticError, Warning)) or is_of_numbers(prim) or may_refuse(prim, ins)


def is_power(prim: Primitive) -> bool:
    return prim.symbol == "**" and prim.array_form is None


def is_of_numbers(prim: Primitive) -> bool:
    """Return whether Python raises for some of its own numbers, as for a division by zero."""
    return prim.array_form is not None and (prim.symbol in _OF_NUMBERS or is_of_math(prim))


def is_of_math(prim: Primitive) -> bool:
    return prim.symbol is not None and prim.symbol.startswith(OF_MATH)
