"""Elementwise operations as expressions: the template of each, ``"sin({0})"`` or ``"({0} * {1})"``, and its type.

A template is Python's own expression syntax. It comes from the operation: `lower` and `lower_for` of `Primitive`.
"""

from __future__ import annotations

import ast
import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.compile.ir.types import BOOL, F32, F64, INTEGERS, LLVM_TYPE
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import NUMBER, Equation, Graph
from fad.core.programs.rewriter import Rewriting

# Functions that a template may call: those computed by polynomials, in double precision, and those that take few
# instructions in the operands' own type. `codegen.llvm.math.catalogue` emits them.
POLYNOMIALS = frozenset({
    "exp", "exp2", "expm1", "log", "log2", "log1p", "sin", "cos", "tan", "sinh", "cosh", "tanh", "arctan", "arctan2",
    "arcsin", "arccos", "arcsinh", "arccosh", "arctanh", "pow", "log10", "cbrt", "hypot", "logaddexp", "erf", "erfc",
    "normal_cdf",
})  # fmt: skip
SHORT = frozenset({
    "sqrt", "fma", "fabs", "floor", "ceil", "trunc", "rint", "copysign", "floor_divide", "remainder", "fmod",
    "left_shift", "right_shift", "signbit", "gcd", "lcm", "integer_power", "maximum", "minimum", "raise_to",
})  # fmt: skip

_CONVERTED = ("{0}", "({0})")  # what changes no number
_SELECT = "select({0}, {1}, {2})"
_POWERS = {0.0: "1", 2.0: "({0} * {0})", 3.0: "({0} * {0} * {0})", 0.5: "sqrt({0})", -1.0: "(1 / {0})"}
_QUOTIENTS = frozenset({"floor_divide({0}, {1})", "remainder({0}, {1})", "fmod({0}, {1})"})
_OF_INTEGERS = frozenset({
    "maximum", "minimum", "fabs", "select", "floor_divide", "remainder", "fmod", "left_shift", "right_shift", "gcd",
    "lcm", "integer_power",
})  # fmt: skip
_RAISING = ("**", "math.pow")
_BY_CONSTANTS = frozenset({"//", "%", *_RAISING})  # what these are computed by depends on a constant operand's value
_LARGEST_POWER = 64


def template(graph: Graph | Rewriting, eq: Equation, constants: dict) -> str | None:
    """Return the template of an elementwise equation, or None if it has none that kernels can compute."""
    prim = eq.prim
    if prim.multi or len(eq.outs) != 1 or (eq.params and prim.lower not in _CONVERTED):
        return None
    out = LLVM_TYPE.get(graph.types[eq.outs[0]].dtype)
    ins = [LLVM_TYPE.get(graph.types[i].dtype) for i in eq.ins]
    if out is None or None in ins:
        return None
    if prim.symbol in _RAISING:
        return _power(prim, out, constants.get(eq.ins[1]))
    if prim.lower in _QUOTIENTS:
        known = _number(constants.get(eq.ins[1]), int) if out in INTEGERS else None
        if known:
            return prim.lower.replace("{1}", str(known))  # cheaper than by a number that is known at the call
    if out == BOOL and set(ins) == {BOOL} and "b" in prim.lower_for:
        return prim.lower_for["b"]
    if out in INTEGERS and "i" in prim.lower_for:
        return prim.lower_for["i"]
    if "f" in prim.lower_for:
        return prim.lower_for["f"] if ins[0] in (F64, F32) else None
    text = prim.lower
    if text is None or prim.computes_in != "result" or text == _SELECT or text in _CONVERTED:
        return text
    if out == BOOL or (out in INTEGERS and not _integer_safe(text)):
        return None
    return text if _is_known(text) else None


def _power(prim: Primitive, out: str, exponent: Any) -> str | None:
    """Return the template of a power: by a small constant it is a product."""
    known = _number(exponent, float)
    if out in INTEGERS and known is not None and known == int(known) and 0 <= known <= _LARGEST_POWER:
        return _product(int(known))
    if out not in (F64, F32):
        return None  # NumPy raises where an exponent is negative: see fad.compile.legalize.decompose
    if known is None or known in _POWERS:
        return _POWERS.get(known, prim.lower)
    by_products = (2 * known).is_integer() and abs(known) <= _LARGEST_POWER
    return f"raise_to({{0}}, {known})" if by_products else prim.lower


def templates(graph: Graph) -> Callable[[Equation], str | None]:
    """Return `template` for the equations of a graph, of which many are alike: it is found once for each kind."""
    numbers: dict[np.dtype, int] = {}
    dtypes = [numbers.setdefault(t.dtype, len(numbers)) for t in graph.types]
    known: dict[tuple, str | None] = {}

    def of(eq: Equation) -> str | None:
        if eq.params or len(eq.outs) != 1 or eq.prim.symbol in _BY_CONSTANTS or eq.prim.lower in _QUOTIENTS:
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


@functools.cache
def _is_known(text: str) -> bool:
    return all(name in POLYNOMIALS or name in SHORT or name == "select" for name in _called_functions(text))


@functools.cache
def called_polynomials(text: str) -> frozenset[str]:
    """Return the functions in a template that are computed by polynomials."""
    return POLYNOMIALS.intersection(_called_functions(text))


def is_heavy(text: str) -> bool:
    """Return whether a template holds a function that is computed by a polynomial."""
    return bool(called_polynomials(text))


def weight(template: str) -> int:
    """Return how much an operation adds to a kernel and the time that it takes to compile."""
    return 8 if is_heavy(template) else 1


@functools.cache
def _integer_safe(text: str) -> bool:
    return _OF_INTEGERS.issuperset(_called_functions(text)) and not any(
        isinstance(n, (ast.Div, ast.Pow)) for n in _nodes(text)
    )


def _nodes(text: str) -> list[ast.AST]:
    return list(ast.walk(ast.parse(text.replace("{", "x").replace("}", ""), mode="eval")))


def _called_functions(text: str) -> list[str]:
    """Return the names of the functions that a template calls."""
    return [n.func.id for n in _nodes(text) if isinstance(n, ast.Call) and isinstance(n.func, ast.Name)]


def working_type(graph: Graph, eq: Equation) -> str:
    """Return the type in which an operation computes: its result's, or for a comparison its operands' common one."""
    if eq.prim.computes_in == "operands":
        strong = [graph.types[i].dtype for i in eq.ins if graph.types[i].kind != NUMBER]
        every = [graph.types[i].dtype for i in eq.ins]
        wide = np.result_type(*(strong or every))
        if wide.kind in "ib" and any(d.kind == "f" for d in every):
            wide = np.dtype(float)
        elif wide.kind == "b" and any(d.kind == "i" for d in every):
            wide = np.dtype(np.int64)
        return LLVM_TYPE[wide]
    if eq.prim.computes_in == "booleans":
        return BOOL
    return LLVM_TYPE[graph.types[eq.outs[0]].dtype]
