"""From a template, ``"sin({0})"`` or ``"({0} * {1})"``, to instructions.

The template is Python's own expression syntax, so Python parses it; the operands are names x0, x1, ...
"""

from __future__ import annotations

import ast
import functools
from typing import Any

from fad.compile.codegen.llvm.builder import Emitter, constant
from fad.compile.codegen.llvm.math.catalogue import OF_EXPONENTS, REAL, TYPED
from fad.compile.codegen.llvm.math.single import OF_SINGLE
from fad.compile.ir.types import BOOL, F32, F64
from fad.compile.machine.c_library import OF_NUMBERS


@functools.cache
def _parse_template(text: str, arity: int) -> ast.expr:
    return ast.parse(text.format(*[f"x{k}" for k in range(arity)]), mode="eval").body


def emit(e: Emitter, text: str, operands: list[tuple[str, str]], work: str, selects: bool) -> str:
    """Emit a template; `operands` are (name, type). With `selects`, operand 0 is a condition and keeps its type."""
    named = {}
    for k, (name, kind) in enumerate(operands):
        named[f"x{k}"] = e.cast(name, kind, BOOL if selects and k == 0 else work)
    return _Walk(e, named, work).value(_parse_template(text, len(operands)))


_BITWISE = {ast.BitAnd: "and", ast.BitOr: "or", ast.BitXor: "xor"}


class _Walk:
    def __init__(self, e: Emitter, named: dict[str, str], work: str):
        self.e = e
        self.named = named
        self.work = work

    def value(self, n: Any) -> str:
        e, t = self.e, self.work
        if isinstance(n, ast.Name):
            return self.named[n.id]
        if isinstance(n, ast.Constant):
            return constant(_number(n), t)
        if isinstance(n, ast.BinOp):
            a, b = self.value(n.left), self.value(n.right)
            if type(n.op) in _BITWISE:
                return e.apply(_BITWISE[type(n.op)], t, a, b)
            how = {ast.Add: e.add, ast.Sub: e.sub, ast.Mult: e.mul, ast.Div: e.div}[type(n.op)]
            return how(a, b, t)
        if isinstance(n, ast.UnaryOp):
            if isinstance(n.op, ast.Not):
                return e.apply("xor", BOOL, self.value(n.operand), "true")
            if isinstance(n.operand, ast.Constant):
                return constant(-_number(n.operand), t)
            return e.neg(self.value(n.operand), t)
        if isinstance(n, ast.Compare):
            symbol = {ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!="}
            return e.compare(symbol[type(n.ops[0])], self.value(n.left), self.value(n.comparators[0]), t)
        if isinstance(n, ast.BoolOp):
            a, b = map(self.value, n.values)
            return e.apply("and" if isinstance(n.op, ast.And) else "or", BOOL, a, b)
        if isinstance(n, ast.IfExp):
            return e.select(self.value(n.test), self.value(n.body), self.value(n.orelse), t)
        if n.func.id in OF_EXPONENTS:
            return OF_EXPONENTS[n.func.id](e, self.value(n.args[0]), ast.literal_eval(n.args[1]), t)
        return self._call(n.func.id, [self.value(a) for a in n.args])

    def _call(self, name: str, args: list[str]) -> str:
        e, t = self.e, self.work
        if name == "select":
            condition, first, second = args
            return e.select(condition, first, second, t)
        if name in TYPED:
            return TYPED[name](e, *args, t)
        by_library = e.slow and e.width == 1 and name in OF_NUMBERS
        if t == F32 and name in OF_SINGLE and not by_library:
            return OF_SINGLE[name](e, *args)
        e.single = t == F32
        wide = [e.cast(a, t, F64) for a in args]
        y = e.outside(OF_NUMBERS[name], *wide) if by_library else REAL[name](e, *wide)
        return e.cast(y, F64, t)


def _number(n: ast.Constant) -> float:
    assert isinstance(n.value, (int, float)), "templates hold numbers"
    return n.value
