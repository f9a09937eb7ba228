"""Texts that a call of ``print``, a logger or a warning is given, as expressions that wait for values of the steps.

``f"{x:.3f}"``, ``"%d: %f" % (i, x)``, ``"{}".format(x)``, ``"at " + str(i)``: the values differ from step to step, so
the text is made where a step shows it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable

from fad.capture.rewriting.helpers import helper

SHOWING = frozenset({"print", "warn", "debug", "info", "warning", "error", "critical", "log"})
_CONVERSIONS = ("str", "repr")


def find_name(f: ast.expr) -> str:
    """Return the last of the names that find a function, as in ``self.log.info``; empty if there is more to it."""
    inner = f
    while isinstance(inner, ast.Attribute):
        inner = inner.value
    return getattr(f, "attr", getattr(f, "id", "")) if isinstance(inner, ast.Name) else ""


def defer_text(node: ast.expr, show: ast.expr, visit: Callable) -> ast.expr:
    """Return a text for a function that shows it as an expression that waits; another expression as it is."""
    text = _find_text(node, visit)
    return node if text is None else _at(node, "make_text", _copy_names(show), text)


def _find_text(node: ast.expr, visit: Callable) -> ast.expr | None:
    if isinstance(node, ast.JoinedStr):
        return _at(node, "text_of_parts", *[_find_part(x, visit) for x in node.values])
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and _is_text(node.left):
        several = isinstance(node.right, ast.Tuple) and not any(isinstance(x, ast.Starred) for x in node.right.elts)
        values = node.right.elts if several else [node.right]  # type: ignore[attr-defined]
        return _at(node, "text_of_percent", node.left, ast.Constant(several), *map(visit, values))
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_find_text(x, visit) for x in (node.left, node.right)]
        if sides == [None, None] and not (_is_text(node.left) or _is_text(node.right)):
            return None
        pairs = zip(sides, (node.left, node.right), strict=True)
        return _at(node, "text_of_two", *[visit(x) if text is None else text for text, x in pairs])
    return _find_call(node, visit) if isinstance(node, ast.Call) else None


def _find_part(x: ast.expr, visit: Callable) -> ast.expr:
    if not isinstance(x, ast.FormattedValue):
        return x
    spec = ast.Constant("") if x.format_spec is None else visit(x.format_spec)
    return ast.Tuple([visit(x.value), ast.Constant(x.conversion), spec], ast.Load())


def _find_call(node: ast.Call, visit: Callable) -> ast.expr | None:
    if any(isinstance(x, ast.Starred) for x in node.args) or any(k.arg is None for k in node.keywords):
        return None
    if isinstance(node.func, ast.Attribute) and node.func.attr == "format" and _is_text(node.func.value):
        call = _at(node, "text_of_format", node.func.value, *map(visit, node.args))
        call.keywords = [ast.keyword(k.arg, visit(k.value)) for k in node.keywords]  # type: ignore[attr-defined]
        return ast.fix_missing_locations(call)
    if isinstance(node.func, ast.Name) and node.func.id in _CONVERSIONS and len(node.args) == 1 and not node.keywords:
        return _at(node, "text_of_value", node.func, visit(node.args[0]))
    return None


def _is_text(node: ast.expr) -> bool:
    return isinstance(node, ast.Constant) and isinstance(node.value, str)


def _copy_names(f: ast.expr) -> ast.expr:
    if isinstance(f, ast.Attribute):
        return ast.copy_location(ast.Attribute(_copy_names(f.value), f.attr, ast.Load()), f)
    return ast.copy_location(ast.Name(f.id, ast.Load()), f)  # type: ignore[attr-defined]


def _at(node: ast.expr, name: str, *parts: ast.expr) -> ast.expr:
    return ast.fix_missing_locations(helper(name, *parts, at=node))
