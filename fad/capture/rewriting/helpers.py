"""Calls of helpers in converted code."""

from __future__ import annotations

import ast

HELPERS = "__fad__"  # the name under which converted code finds the helpers


def helper(name: str, *args: ast.expr, at: ast.AST | None = None) -> ast.expr:
    """Return the call of a helper."""
    call = ast.Call(ast.Attribute(ast.Name(HELPERS, ast.Load()), name, ast.Load()), list(args), [])
    call.made = True  # type: ignore[attr-defined]  # it is not rewritten again
    return call if at is None else ast.copy_location(call, at)
