"""``yield`` statements as calls: what a generator does for a loop over it, whose body is called in place of them.

A loop that may end by ``break`` or ``return`` ends the generator, which leaves its own loop where it yields. Where
nothing is behind that loop a ``break`` does; otherwise the generator returns how the body ended.
"""

from __future__ import annotations

import ast
from typing import Any

from fad.capture.rewriting.expressions import MADE
from fad.capture.rewriting.helpers import helper
from fad.capture.rewriting.names import own_jumps, walk_scope

TAKE, BODY = f"{MADE}take", f"{MADE}body"  # what a converted generator is given
_ITEM, _ENDED = f"{MADE}yielded", f"{MADE}ended"  # variables
_AROUND = (ast.Try, ast.TryStar, ast.With)  # what would see errors of the body, or its end
_LOOPS = (ast.For, ast.While)
_RAISES = (ast.Raise, ast.Assert)
# What a loop over a generator may do: run to its end, break, or end in whichever way and ask behind it how it did.
RUNS, BREAKS, STOPS = "runs", "breaks", "stops"
RESUMED = "resumed"  # it is drawn from, one element after the other (`resumable.py`)


def replace_yields(function: Any, form: str) -> bool:
    """Replace the ``yield`` statements of a function, in place; return whether that can be."""
    nodes = [n for s in function.body for n in walk_scope(s)]
    stated = [n.value for n in nodes if isinstance(n, ast.Expr) and isinstance(n.value, (ast.Yield, ast.YieldFrom))]
    yields = [n for n in nodes if isinstance(n, (ast.Yield, ast.YieldFrom))]
    if len(stated) != len(yields) or any(isinstance(n, _AROUND) for n in nodes):
        return False
    if form == BREAKS and not _yield_in_last_loop(function.body, len(yields)):
        return False
    function.body = [x for s in function.body for x in _as_list(_Yields(form).visit(s))]
    function.args.kwonlyargs += [ast.arg(TAKE), ast.arg(BODY)]
    return True


def split_at_yield(function: Any) -> tuple[list[ast.stmt], ast.While, int] | None:
    """Return what a generator does before the loop that ends it, the loop, and which of its statements yields.

    None if it does not end in a loop without end, whose steps yield once.
    """
    *first, last = function.body
    nodes = [n for s in function.body for n in walk_scope(s)]
    endless = isinstance(last, ast.While) and isinstance(last.test, ast.Constant) and last.test.value
    if not endless or last.orelse or any(isinstance(n, (*_AROUND, ast.Return, ast.YieldFrom, *_RAISES)) for n in nodes):
        return None
    places = [k for k, s in enumerate(last.body) if isinstance(s, ast.Expr) and isinstance(s.value, ast.Yield)]
    if len(places) != 1 or sum(isinstance(n, ast.Yield) for n in nodes) > 1 or own_jumps(last.body):
        return None
    return first, last, places[0]


def _yield_in_last_loop(body: list[ast.stmt], count: int) -> bool:
    """Return whether all yields are in steps of the loop that ends a function, and not in loops within it."""
    last: Any = body[-1]
    if isinstance(last, ast.Expr) and isinstance(last.value, ast.YieldFrom):
        return count == 1
    if not isinstance(last, _LOOPS) or last.orelse:
        return False
    waiting, found = [*last.body], 0
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.Yield):
            found += 1
        elif not isinstance(node, (*_LOOPS, ast.FunctionDef, ast.Lambda)):
            waiting += ast.iter_child_nodes(node)  # type: ignore[arg-type]
    return found == count


class _Yields(ast.NodeTransformer):
    def __init__(self, form: str):
        self._form = form

    def visit_Expr(self, node: ast.Expr) -> Any:
        if isinstance(node.value, ast.Yield):
            return self._place(self._hand_on(node.value.value or ast.Constant(None)), node)
        if isinstance(node.value, ast.YieldFrom):
            handed_on = self._hand_on(ast.Name(_ITEM, ast.Load()))
            loop = ast.For(ast.Name(_ITEM, ast.Store()), node.value.value, handed_on, [], None)
            return self._place([loop], node)
        return node

    def visit_Return(self, node: ast.Return) -> Any:
        return node if self._form != STOPS else self._place([_return(ast.Constant(None))], node)

    def _hand_on(self, item: ast.expr) -> list[ast.stmt]:
        """Return what gives an item to the body of the loop, and ends the generator where that has ended the loop."""
        taken = ast.Call(ast.Name(TAKE, ast.Load()), [item, ast.Name(BODY, ast.Load())], [])
        if self._form == RUNS:
            return [ast.Expr(taken)]
        if self._form == BREAKS:
            return [ast.If(helper("jumped", taken), [ast.Break()], [])]
        ended = ast.Name(_ENDED, ast.Load())
        assign = ast.Assign([ast.Name(_ENDED, ast.Store())], taken)
        return [assign, ast.If(helper("jumped", ended), [_return(ended)], [])]

    def _place(self, made: list[ast.stmt], at: ast.stmt) -> list[ast.stmt]:
        for s in made:
            for part in ast.walk(s):
                ast.copy_location(part, at)
        return [ast.fix_missing_locations(s) for s in made]

    def visit_FunctionDef(self, node: ast.FunctionDef) -> Any:
        return node

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node


def _return(ended: ast.expr) -> ast.stmt:
    made = ast.Return(helper("stop", ended))
    made.outcome = True  # type: ignore[attr-defined]
    return made


def _as_list(made: Any) -> list:
    return made if isinstance(made, list) else [made]
