"""Elementwise operations as expressions: the template of each, ``"sin({0})"`` or ``"({0} * {1})"``, and its type.

A template is Python's own expression syntax. It comes from the operation, or from the tables here.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.ir.types import BOOL, F32, F64, INTEGERS, LLVM_TYPE
from fad.core.graph import NUMBER, Equation, Graph

# Functions that a template may call: those computed by polynomials, in double precision, and those that take few
# instructions in the operands' own type. `codegen.llvm.math.catalogue` emits them.
POLYNOMIALS = frozenset({
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan", "arctan2",
    "arcsin", "arccos", "arcsinh", "arccosh", "arctanh", "pow", "log10", "cbrt", "hypot", "logaddexp", "erf", "erfc",
    "normal_cdf",
})  # fmt: skip
SHORT = frozenset({
    "sqrt", "fma", "fabs", "floor", "ceil", "trunc", "rint", "copysign", "floor_divide", "remainder", "fmod",
    "left_shift", "right_shift", "signbit", "gcd", "lcm", "integer_power", "maximum", "minimum",
})  # fmt: skip

# Templates of operations that declare none.
MORE = {
    "less": "({0} < {1})", "less_equal": "({0} <= {1})", "greater": "({0} > {1})", "greater_equal": "({0} >= {1})",
    "equal": "({0} == {1})", "not_equal": "({0} != {1})", "isnan": "({0} != {0})", "floor": "floor({0})",
    "ceil": "ceil({0})", "trunc": "trunc({0})", "rint": "rint({0})", "logical_not": "(not {0})", "log2": "log2({0})",
    "logical_and": "({0} and {1})", "logical_or": "({0} or {1})", "logical_xor": "((not {0}) != (not {1}))",
    "copysign": "copysign({0}, {1})", "convert": "{0}", "convert_to_integer": "{0}", "copy": "{0}",
    "arcsin": "arcsin({0})", "arccos": "arccos({0})", "arcsinh": "arcsinh({0})", "arccosh": "arccosh({0})",
    "arctanh": "arctanh({0})", "arctan2": "arctan2({0}, {1})", "log10": "log10({0})", "cbrt": "cbrt({0})",
    "hypot": "hypot({0}, {1})", "logaddexp": "logaddexp({0}, {1})", "special.erf": "erf({0})",
    "special.erfc": "erfc({0})", "normal_cdf": "normal_cdf({0})", "special.ndtr": "normal_cdf({0})",
    "special.expit": "(1 / (1 + exp(-{0})))", "special.expm1": "expm1({0})",
    "special.log1p": "log1p({0})", "special.exp2": "exp2({0})", "special.cbrt": "cbrt({0})",
    "deg2rad": "({0} * 0.017453292519943295)", "radians": "({0} * 0.017453292519943295)",
    "rad2deg": "({0} * 57.29577951308232)", "degrees": "({0} * 57.29577951308232)",
    "fmax": "(maximum({0}, {1}) if {0} == {0} and {1} == {1} else {0} if {1} != {1} else {1})",
    "fmin": "(minimum({0}, {1}) if {0} == {0} and {1} == {1} else {0} if {1} != {1} else {1})",
    "floor_divide": "floor_divide({0}, {1})", "remainder": "remainder({0}, {1})", "fmod": "fmod({0}, {1})",
    "gcd": "gcd({0}, {1})", "lcm": "lcm({0}, {1})",
    "heaviside": "({1} if {0} == 0.0 else 0.0 if {0} < 0.0 else 1.0 if {0} > 0.0 else {0})", "norm_root": "sqrt({0})",
    "logaddexp2": "({0} + 1.0 if {0} == {1} else "
    "maximum({0}, {1}) + 1.4426950408889634 * log1p(exp2(-fabs({0} - {1}))))",
    "signbit": "signbit({0})", "left_shift": "left_shift({0}, {1})", "right_shift": "right_shift({0}, {1})",
    "special.xlogy": "(0.0 if {0} == 0.0 and {1} == {1} else {0} * log({1}))",
    "special.xlog1py": "(0.0 if {0} == 0.0 and {1} == {1} else {0} * log1p({1}))",
    "special.entr": "(-{0} * log({0}) if {0} > 0.0 else {0} if {0} != {0} else 0.0 if {0} == 0.0 else -1e999)",
    "special.log_expit": "(minimum({0}, 0.0) - log1p(exp(-fabs({0}))))",
    "special.logit": "(log1p(2.0 * {0} - 1.0) - log1p(1.0 - 2.0 * {0}) if {0} > 0.3 and {0} < 0.65 else "
    "log({0} / (1.0 - {0})))",
    "sign_real": "((1.0 if {0} > 0 else -1.0 if {0} < 0 else 0.0 if {0} == 0 else {0}))",
}  # fmt: skip
_ASKING = {"isinf": "(fabs({0}) == 1e999)", "isfinite": "(fabs({0}) < 1e999)"}  # of floating-point numbers alone
_COMPARING = {"less", "less_equal", "greater", "greater_equal", "equal", "not_equal", "isnan", "signbit", *_ASKING}
_LOGICAL = {"logical_not", "logical_and", "logical_or", "logical_xor"}
_BOOLEAN_OPERANDS = {
    "bitwise_and": "({0} and {1})", "bitwise_or": "({0} or {1})", "bitwise_xor": "({0} != {1})", "invert": "(not {0})",
    "add": "({0} or {1})", "multiply": "({0} and {1})", "maximum": "({0} or {1})", "minimum": "({0} and {1})",
}  # fmt: skip
_BITS = {
    "bitwise_and": "({0} & {1})",
    "bitwise_or": "({0} | {1})",
    "bitwise_xor": "({0} ^ {1})",
    "invert": "(-1 - {0})",
}
_CONVERTING = ("convert", "convert_to_integer")
_SELECT = "select({0}, {1}, {2})"
_POWERS = {2.0: "({0} * {0})", 3.0: "({0} * {0} * {0})", 0.5: "sqrt({0})", -1.0: "(1 / {0})"}


_QUOTIENTS = frozenset({"floor_divide", "remainder", "fmod"})
_OF_INTEGERS = frozenset(
    {"maximum", "minimum", "fabs", "select", *_QUOTIENTS, "left_shift", "right_shift", "gcd", "lcm", "integer_power"}
)
_BY_CONSTANTS = _QUOTIENTS | {"power"}  # what these are computed by depends on the value of a constant operand
_LARGEST_POWER = 64


def template(graph: Graph, eq: Equation, constants: dict) -> str | None:
    """Return the template of an elementwise equation, or None if it has none that kernels can compute."""
    name = eq.prim.name.removeprefix("python_")
    if eq.prim.multi or len(eq.outs) != 1 or (eq.params and name not in _CONVERTING):
        return None
    out = LLVM_TYPE.get(graph.types[eq.outs[0]].dtype)
    ins = [LLVM_TYPE.get(graph.types[i].dtype) for i in eq.ins]
    if out is None or None in ins:
        return None
    if name == "power":
        known = _number(constants.get(eq.ins[1]), float)
        if out in INTEGERS and known is not None and known == int(known) and 0 <= known <= _LARGEST_POWER:
            return _product(int(known))
        if out not in (F64, F32):
            return None  # NumPy raises where an exponent is negative: see fad.compile.legalize.decompose
        if eq.prim.name != "power" and known not in (2.0, 3.0):
            return None  # Python's own power of numbers may raise or be complex
        return _POWERS.get(known, "pow({0}, {1})") if known is not None else "pow({0}, {1})"
    divisor = _number(constants.get(eq.ins[1]), int) if name in _QUOTIENTS and out in INTEGERS else None
    if name in _QUOTIENTS and eq.prim.name != name and not _nonzero(constants.get(eq.ins[1])):
        return None  # Python's own numbers raise ZeroDivisionError
    if divisor:
        return f"{name}({{0}}, {divisor})"  # cheaper than by a number that is known at the call
    if out == BOOL and set(ins) == {BOOL} and name in _BOOLEAN_OPERANDS:
        return _BOOLEAN_OPERANDS[name]
    if out in INTEGERS and name in _BITS:
        return _BITS[name]
    if name in _ASKING:
        return _ASKING[name] if ins[0] in (F64, F32) else None
    text = eq.prim.lower or MORE.get(name)
    if text is None:
        return None
    if name in _COMPARING or name in _LOGICAL or text == _SELECT:
        return text
    if name in _CONVERTING or name == "copy" or text == "({0})":
        return text
    if out == BOOL or (out in INTEGERS and not _integer_safe(text)):
        return None
    return text if _is_known(text) else None


def templates(graph: Graph) -> Callable[[Equation], str | None]:
    """Return `template` for the equations of a graph, of which many are alike: it is found once for each kind."""
    numbers: dict[np.dtype, int] = {}
    dtypes = [numbers.setdefault(t.dtype, len(numbers)) for t in graph.types]
    known: dict[tuple, str | None] = {}

    def of(eq: Equation) -> str | None:
        if eq.params or len(eq.outs) != 1 or eq.prim.name.removeprefix("python_") in _BY_CONSTANTS:
            return template(graph, eq, graph.constants)
        key = (eq.prim, dtypes[eq.outs[0]], *[dtypes[i] for i in eq.ins])
        if key not in known:
            known[key] = template(graph, eq, graph.constants)
        return known[key]

    return of


def _product(n: int) -> str:
    return "1" if n == 0 else "{0}" if n == 1 else f"({_product(n // 2)} * {_product(n - n // 2)})"


def _number(constant: Any, kind: type) -> Any:
    """Return a constant of one element as a number of Python's; None if it is not known or has more."""
    return kind(np.reshape(constant, ())) if constant is not None and np.size(constant) == 1 else None


def _nonzero(constant: Any) -> bool:
    return constant is not None and np.size(constant) == 1 and bool(constant != 0)


@functools.cache
def _is_known(text: str) -> bool:
    tree = ast.parse(text.replace("{", "x").replace("}", ""), mode="eval")
    calls = [n.func.id for n in ast.walk(tree) if isinstance(n, ast.Call)]
    return all(name in POLYNOMIALS or name in SHORT or name == "select" for name in calls)


@functools.cache
def is_heavy(text: str) -> bool:
    """Return whether a template holds a function that is computed by a polynomial."""
    tree = ast.parse(text.replace("{", "x").replace("}", ""), mode="eval")
    return any(isinstance(n, ast.Call) and n.func.id in POLYNOMIALS for n in ast.walk(tree))


@functools.cache
def _integer_safe(text: str) -> bool:
    tree = ast.parse(text.replace("{", "x").replace("}", ""), mode="eval")
    for n in ast.walk(tree):
        if isinstance(n, (ast.Div, ast.Pow)) or (isinstance(n, ast.Call) and n.func.id not in _OF_INTEGERS):  # type: ignore[attr-defined]
            return False
    return True


def working_type(graph: Graph, eq: Equation) -> str:
    """Return the type in which an operation computes: its result's, or for a comparison its operands' common one."""
    name = eq.prim.name.removeprefix("python_")
    if name in _COMPARING:
        strong = [graph.types[i].dtype for i in eq.ins if graph.types[i].kind != NUMBER]
        every = [graph.types[i].dtype for i in eq.ins]
        wide = np.result_type(*(strong or every))
        if wide.kind in "ib" and any(d.kind == "f" for d in every):
            wide = np.dtype(float)
        elif wide.kind == "b" and any(d.kind == "i" for d in every):
            wide = np.dtype(np.int64)
        return LLVM_TYPE[wide]
    if name in _LOGICAL:
        return BOOL
    return LLVM_TYPE[graph.types[eq.outs[0]].dtype]
