"""Expressions of the code that is captured: each question that they ask, and each call, goes through a helper."""

from __future__ import annotations

import ast
import types
from collections.abc import Callable
from typing import Any

from fad.capture.rewriting.helpers import HELPERS, helper
from fad.capture.rewriting.names import BRACKETS, JOINING, name_called
from fad.capture.rewriting.texts import SHOWING, defer_text, find_name

FLAGS = ("True_", "False_")  # NumPy's booleans
MADE = "_fad_"  # begins the names that conversion makes, of functions and variables
_THUNK = f"{MADE}thunk"
_SCOPED = frozenset({"super", "locals", "vars", "globals", "eval", "exec", "dir"})  # what asks about its own frame
SEQUENCES = frozenset({
    "range", "zip", "enumerate", "reversed", "map", "pairwise", "product", "combinations", "ndindex", "ndenumerate",
    "count", "cycle", "repeat", "islice", "filter", "accumulate", "permutations", "combinations_with_replacement",
    "chain", "takewhile",
})  # fmt: skip


def thunk(value: ast.expr) -> ast.Lambda:
    """Return a function that evaluates an expression; an argument that is never given tells it from the user's own."""
    never = ast.arguments([], [], ast.arg(_THUNK), [], [], None, [])
    return ast.copy_location(ast.Lambda(never, value), value)


def _is_flag(node: ast.expr) -> bool:
    """Return whether an expression is a boolean of Python's or NumPy's, of which there is one for each value."""
    name = getattr(node, "attr", getattr(node, "id", None))
    return name in FLAGS or (isinstance(node, ast.Constant) and isinstance(node.value, bool))


def is_made(code: types.CodeType) -> bool:
    """Return whether some code is a piece of a converted function, and no function of the user's within it."""
    return code.co_name.startswith(MADE) or _THUNK in code.co_varnames


class Expressions(ast.NodeTransformer):
    """Rewrites expressions: calls alone, or in code that is recorded once for all steps (`staged`) all questions."""

    def __init__(self, staged: bool, lift: Callable[[ast.expr, Expressions], ast.expr | None]):
        self.staged = staged
        self._lift = lift  # makes of a comprehension a function with a loop, and returns its call
        self._inside = 0  # how many comprehensions that remain are around, whose variables a function would not see

    def visit(self, node: ast.AST) -> Any:
        return node if hasattr(node, "made") else super().visit(node)

    def visit_Lambda(self, node: ast.Lambda) -> ast.AST:
        return node  # it is converted when it is called

    def visit_Call(self, node: ast.Call) -> ast.AST:
        lifted = None if self._inside else self._lift(node, self)
        if self.staged and find_name(node.func) in SHOWING:
            node.args = [defer_text(x, node.func, self.visit) for x in node.args]
        self.generic_visit(node)
        append = _append_of(node.func) if self.staged else None
        if append is not None:
            node.func = append
        elif not (isinstance(node.func, ast.Name) and node.func.id in _SCOPED):
            joins = self.staged and name_called(node) in JOINING
            node.func = helper("join" if joins else "call", node.func, at=node.func)
        if lifted is None:
            return node
        lifted.orelse = node  # type: ignore[attr-defined]
        return lifted

    def visit_ListComp(self, node: ast.ListComp) -> ast.AST:
        lifted = None if self._inside else self._lift(node, self)
        return self._visit_comprehension(node) if lifted is None else lifted

    def _visit_comprehension(self, node: ast.ListComp | ast.DictComp | ast.SetComp) -> ast.AST:
        return self._note_made(self._visit_inside(node))

    visit_DictComp = visit_SetComp = _visit_comprehension

    def _visit_inside(self, node: ast.expr) -> Any:
        self._inside += 1
        self.generic_visit(node)
        self._inside -= 1
        return node

    def visit_GeneratorExp(self, node: ast.GeneratorExp) -> ast.AST:
        return self._visit_inside(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        self.generic_visit(node)
        if not self.staged or not isinstance(node.ctx, ast.Load):
            return node
        joins = getattr(node.value, "attr", getattr(node.value, "id", "")) in BRACKETS
        return helper("join_in_brackets" if joins else "getitem", node.value, as_index(node.slice), at=node)

    def visit_List(self, node: ast.List) -> ast.AST:
        self.generic_visit(node)
        return self._note_made(node) if isinstance(node.ctx, ast.Load) else node

    def visit_Dict(self, node: ast.Dict | ast.Set) -> ast.AST:
        self.generic_visit(node)
        return self._note_made(node)

    visit_Set = visit_Dict

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        makes = isinstance(node.left, ast.List) or isinstance(node.right, ast.List)  # a list so many times over
        self.generic_visit(node)
        return self._note_made(node) if makes or isinstance(node.op, ast.BitOr) else node  # of dictionaries

    def _note_made(self, node: ast.expr) -> ast.expr:
        return helper("made", node, at=node) if self.staged else node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        if not self.staged or any(map(binds, node.values[1:])):  # the first one is always evaluated
            return node
        found = node.values[-1]
        for value in reversed(node.values[:-1]):
            found = helper("and_" if isinstance(node.op, ast.And) else "or_", value, thunk(found), at=node)
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        return helper("not_", node.operand, at=node) if self.staged and isinstance(node.op, ast.Not) else node

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        self.generic_visit(node)
        if not self.staged or binds(node.body) or binds(node.orelse):
            return node
        return helper("choose", node.test, thunk(node.body), thunk(node.orelse), at=node)

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.Is, ast.IsNot)):
            if not self.staged and not (_is_flag(node.comparators[0]) or _is_flag(node.left)):
                return node
            same = helper("is_", node.left, node.comparators[0], at=node)
            return same if isinstance(node.ops[0], ast.Is) else helper("not_", same, at=node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)) and self.staged:
            found = helper("in_", node.left, node.comparators[0], at=node)
            return found if isinstance(node.ops[0], ast.In) else helper("not_", found, at=node)
        chained = len(node.ops) > 1 and not any(
            isinstance(op, (ast.In, ast.NotIn, ast.Is, ast.IsNot)) for op in node.ops
        )
        if not self.staged or not chained or any(map(binds, node.comparators)):
            return node
        names = ast.List([ast.Constant(type(op).__name__) for op in node.ops], ast.Load())
        operands = [thunk(x) for x in node.comparators]
        return helper("compare", names, node.left, *operands, at=node)

    def visit_comprehension(self, node: ast.comprehension) -> ast.AST:
        source = node.iter
        draws = name_called(source) in SEQUENCES
        self.generic_visit(node)
        if self.staged and draws:
            node.iter.func = helper("iterate_over", source.func.args[0], at=node.iter.func)  # type: ignore[attr-defined]
        elif self.staged:
            node.iter = helper("items", node.iter, at=node.iter)
        return node


def _append_of(f: ast.expr) -> ast.expr | None:
    """Return ``x.append`` as an expression that knows of which object or container x is a part; None otherwise."""
    if not isinstance(f, ast.Attribute) or f.attr != "append":
        return None
    of = f.value
    if isinstance(of, ast.Attribute):
        return helper("append_to", of.value, ast.Constant(of.attr), ast.Constant(True), at=f)
    if isinstance(of, ast.Call) and hasattr(of, "made") and of.func.attr == "getitem":  # type: ignore[attr-defined]
        return helper("append_to", *of.args, ast.Constant(False), at=f)
    return None


class Iterables(ast.NodeTransformer):
    """Lets what a loop runs over be known by its elements' numbers, range, zip, enumerate and others, nested too.

    A generator of the user's is run with the loop's body.
    """

    def visit_Call(self, node: ast.Call) -> ast.AST:
        if name_called(node) in SEQUENCES:
            if name_called(node) != "range":
                node.args = [self.visit(x) if isinstance(x, (ast.Call, ast.Attribute)) else x for x in node.args]
            node.func = helper("generate", node.func, at=node.func)
        elif name_called(node) not in ("", *_SCOPED):
            node.func = helper("call_generator", node.func, at=node.func)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        if node.attr != "flat":
            return node
        f = ast.Attribute(ast.Name(HELPERS, ast.Load()), "elements_of", ast.Load())
        return ast.fix_missing_locations(ast.copy_location(ast.Call(f, [node.value], []), node))


def binds(node: ast.AST) -> bool:
    """Return whether an expression binds names or waits, so that it cannot be moved into a function of its own."""
    return any(isinstance(n, (ast.NamedExpr, ast.Await, ast.Yield, ast.YieldFrom)) for n in ast.walk(node))


def as_index(node: ast.expr) -> ast.expr:
    """Return what stands in brackets as an expression of its own: slices as calls of ``slice``."""
    if isinstance(node, ast.Slice):
        parts = [x or ast.Constant(None) for x in (node.lower, node.upper, node.step)]
        return helper("slice", *parts, at=node)
    if isinstance(node, ast.Tuple):
        items = [x if isinstance(x, ast.Starred) else as_index(x) for x in node.elts]
        return ast.copy_location(ast.Tuple(items, ast.Load()), node)
    return node
