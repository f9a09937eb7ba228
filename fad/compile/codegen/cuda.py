"""From operations to C: the body of a kernel for a GPU, one statement an operation.

The templates are those of native code (Python's expression syntax); here they are written in C, each value in its own
type, ``double t3 = __dmul_rn(exp(t1), t2);``. What is written so gives what NumPy gives: whole numbers wrap around, a
NaN stays one in a maximum. What C leaves open (a division of whole numbers, a fraction that no integer holds) has no
spelling and stays a call of the array library.
"""

from __future__ import annotations

import ast
import functools
import math
from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.compile.ir.expressions import template, working_type
from fad.compile.ir.types import BOOL, F32, F64, I32, I64, INTEGERS, LLVM_TYPE
from fad.compile.passes.constants import as_uniform
from fad.core.programs.graph import NUMBER, Equation, Graph

C_TYPE = {F64: "double", F32: "float", I64: "long long", I32: "int", BOOL: "bool"}
_UNSIGNED = {I64: "unsigned long long", I32: "unsigned int"}
_FLOATS = (F64, F32)
# name in a template -> C, for floating-point numbers; C++ chooses the function of single precision by its operands
_FUNCTIONS = {
    **{
        name: f"{name}({{0}})"
        for name in (
            "exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "sinh",
            "cosh", "tanh", "floor", "ceil", "trunc", "rint", "fabs", "erf", "erfc", "signbit",
        )
    },
    **{f"arc{name}": f"a{name}({{0}})" for name in ("sin", "cos", "tan", "sinh", "cosh", "tanh")},
    "arctan2": "atan2({0}, {1})", "hypot": "hypot({0}, {1})", "pow": "pow({0}, {1})",
    "raise_to": "pow({0}, {1})",
    "copysign": "copysign({0}, {1})", "normal_cdf": "normcdf({0})",
    "maximum": "({0} >= {1} || {0} != {0} ? {0} : {1})", "minimum": "({0} <= {1} || {0} != {0} ? {0} : {1})",
}  # fmt: skip
# Products, sums and differences of floating-point numbers in words that no compiler contracts: each is rounded, as by
# its operation alone. That is no option of the compiler: a library's own functions of numbers have theirs contracted.
_ROUNDED: dict[tuple[type, str], str] = {
    (op, kind): f"__{letter}{name}_rn({{0}}, {{1}})"
    for op, name in ((ast.Add, "add"), (ast.Sub, "sub"), (ast.Mult, "mul"))
    for kind, letter in ((F64, "d"), (F32, "f"))
}
_OF_INTEGERS = {"maximum": "({0} > {1} ? {0} : {1})", "minimum": "({0} < {1} ? {0} : {1})"}
_SYMBOL = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=", ast.And: "&&", ast.Or: "||",
}  # fmt: skip


class Cannot(Exception):
    """A template has something without a sure spelling in C."""


def literal(value: Any, kind: str) -> str | None:
    """Return a number in C; None for one that has no text there: NaN, infinities, and what does not fit."""
    if kind == BOOL:
        return "true" if value else "false"
    if kind in INTEGERS:
        if value != int(value) or not -(2**31 if kind == I32 else 2**62) < value < (2**31 if kind == I32 else 2**62):
            return None
        text = f"{int(value)}" + ("LL" if kind == I64 else "")
    else:
        with np.errstate(over="ignore"):
            number = np.float32(value) if kind == F32 else np.float64(value)
        if not math.isfinite(number):
            return None
        text = str(number) + ("f" if kind == F32 else "")
    return f"({text})" if text.startswith("-") else text


def cast(text: str, kind: str, to: str) -> str:
    """Return a value in another type."""
    if kind == to:
        return text
    if to == BOOL:
        return f"({text} != {literal(0, kind)})"
    return f"(({C_TYPE[to]}){text})"


class Spelling:
    """How one equation is written: its template, the type it computes in, that of its result, and what it reads."""

    __slots__ = ("text", "work", "out", "reads", "selects")

    def __init__(self, text: str, work: str, out: str, arity: int):
        self.text = text
        self.work = work
        self.out = out
        self.reads = tuple(k for k in range(arity) if f"{{{k}}}" in text)
        self.selects = text.startswith("select(")

    def operand_type(self, k: int) -> str:
        return BOOL if self.selects and k == 0 else self.work

    def write(self, operands: list[str]) -> str:
        """Return the C expression of the result; `operands` are texts, each in its `operand_type`."""
        value, kind = _walk(_parse_template(self.text, len(operands)), operands, self.work)
        return cast(value, kind, self.out)


def spelling(graph: Graph, eq: Equation) -> Spelling | None:
    """Return how an equation is written in C, or None if it has no sure spelling."""
    if eq.prim.array_form is not None:
        return None
    if any(graph.types[i].dtype not in LLVM_TYPE for i in (*eq.ins, *eq.outs)):
        return None
    constants = {i: graph.constants[i] for i in eq.ins if i in graph.constants}
    text = template(graph, eq, {i: c for i, c in constants.items() if not is_on_device(c)})
    if text is None:
        return None
    work, out = working_type(graph, eq), LLVM_TYPE[graph.types[eq.outs[0]].dtype]
    found = Spelling(text, work, out, len(eq.ins))
    try:
        found.write([f"t{k}" for k in range(len(eq.ins))])
    except Cannot:
        return None
    return found if all(_is_sure(graph, eq.ins[k], found.operand_type(k)) for k in found.reads) else None


def _is_sure(graph: Graph, i: int, kind: str) -> bool:
    """Return whether an operand is the same number in the type of an operation, or rounded to it as NumPy does."""
    t = graph.types[i]
    given = LLVM_TYPE[t.dtype]
    c = as_uniform(graph.constants[i]) if i in graph.constants else None
    if c is not None and kind in INTEGERS:
        return literal(c, kind) is not None
    if t.kind == NUMBER and kind == I32:
        return False  # NumPy raises where it does not fit
    return not (given in _FLOATS and kind in INTEGERS)


@functools.cache
def _parse_template(text: str, arity: int) -> ast.expr:
    return ast.parse(text.format(*[f"x{k}" for k in range(arity)]), mode="eval").body


def _walk(n: Any, operands: list[str], work: str) -> tuple[str, str]:
    """Return an expression of a template in C, and its type."""
    if isinstance(n, ast.Name):
        k = int(n.id[1:])
        return operands[k], work
    if isinstance(n, ast.Constant):
        if n.value == 1e999:
            return f"({literal(1, work)} / {literal(0, work)})", work
        text = literal(n.value, work)
        if text is None:
            raise Cannot
        return text, work
    if isinstance(n, ast.BinOp):
        return _binary(type(n.op), _walk(n.left, operands, work)[0], _walk(n.right, operands, work)[0], work), work
    if isinstance(n, ast.UnaryOp):
        inner, kind = _walk(n.operand, operands, work)
        if isinstance(n.op, ast.Not):
            return f"(!{inner})", BOOL
        return (_binary(ast.Sub, literal(0, work) or "", inner, work) if work in INTEGERS else f"(-{inner})"), kind
    if isinstance(n, ast.Compare):
        a, b = _walk(n.left, operands, work)[0], _walk(n.comparators[0], operands, work)[0]
        return f"({a} {_SYMBOL[type(n.ops[0])]} {b})", BOOL
    if isinstance(n, ast.BoolOp):
        parts = [_walk(v, operands, work)[0] for v in n.values]
        return f"({f' {_SYMBOL[type(n.op)]} '.join(parts)})", BOOL
    if isinstance(n, ast.IfExp):
        c, a, b = (_walk(v, operands, work)[0] for v in (n.test, n.body, n.orelse))
        return f"({c} ? {a} : {b})", work
    return _write_call(n.func.id, [_walk(a, operands, work)[0] for a in n.args], work)


def _binary(op: type, a: str, b: str, work: str) -> str:
    if (op, work) in _ROUNDED:
        return _ROUNDED[op, work].format(a, b)
    if work in _FLOATS and op is ast.Div:
        return f"({a} / {b})"
    if work in INTEGERS and op in (ast.Add, ast.Sub, ast.Mult):
        wide = _UNSIGNED[work]  # in which C wraps around as NumPy does
        return f"(({C_TYPE[work]})(({wide}){a} {_SYMBOL[op]} ({wide}){b}))"
    if work in INTEGERS and op in (ast.BitAnd, ast.BitOr, ast.BitXor):
        return f"({a} {_SYMBOL[op]} {b})"
    raise Cannot


def _write_call(name: str, args: list[str], work: str) -> tuple[str, str]:
    if name == "select":
        return f"({args[0]} ? {args[1]} : {args[2]})", work
    table = _FUNCTIONS if work in _FLOATS else _OF_INTEGERS if work in INTEGERS else {}
    if name not in table:
        raise Cannot
    return table[name].format(*args), BOOL if name == "signbit" else work
