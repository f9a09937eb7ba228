"""``yield`` statements as calls: what a generator does for a loop over it, whose body is called in place of them."""

from __future__ import annotations

import ast
from typing import Any

from fad.capture.expressions import MADE
from fad.capture.names import walk_scope

TAKE, BODY, _ITEM = f"{MADE}take", f"{MADE}body", f"{MADE}item"  # what a converted generator is given, and a variable
_AROUND = (ast.Try, ast.TryStar, ast.With)  # what would see errors of the body, or its end


def replace_yields(function: Any) -> bool:
    """Replace the ``yield`` statements of a function, in place; return whether that can be."""
    nodes = [n for s in function.body for n in walk_scope(s)]
    stated = [n.value for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, (ast.Yield, ast.YieldFrom))]
    yields = [n for n in nodes if isinstance(n, (ast.Yield, ast.YieldFrom))]
    if len(stated) != len(yields) or any(isinstance(n, _AROUND) for n in nodes):
        return False
    _Yields().visit(function)
    function.args.kwonlyargs += [ast.arg(TAKE), ast.arg(BODY)]
    return True


class _Yields(ast.NodeTransformer):
    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Yield):
            node.value = _call(node.value.value or ast.Constant(None))
            return ast.fix_missing_locations(ast.copy_location(node, node))
        if isinstance(node.value, ast.YieldFrom):
            handed_on: list[ast.stmt] = [ast.Expr(_call(ast.Name(_ITEM, ast.Load())))]
            loop = ast.For(ast.Name(_ITEM, ast.Store()), node.value.value, handed_on, [], None)
            return ast.fix_missing_locations(ast.copy_location(loop, node))
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node if hasattr(self, "_inside") else self._enter(node)

    def _enter(self, node: ast.FunctionDef) -> Any:
        self._inside = True
        return self.generic_visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node


def _call(item: ast.expr) -> ast.expr:
    return ast.Call(ast.Name(TAKE, ast.Load()), [item, ast.Name(BODY, ast.Load())], [])
