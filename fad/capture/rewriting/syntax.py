"""Pieces of the syntax trees that conversion makes, and what it asks of those that it is given."""

from __future__ import annotations

import ast
from collections.abc import Iterable

from fad.capture.rewriting.names import bound_by, own_jumps
from fad.capture.rewriting.tries import Raising
from fad.capture.rewriting.yields import BREAKS, RUNS, STOPS


def kind_of(s: ast.For | ast.While) -> str:
    """Return which of the two a loop is."""
    return "for" if isinstance(s, ast.For) else "while"


def may_return(s: ast.For | ast.While) -> bool:
    """Return whether a loop has a ``return``."""
    return any(isinstance(x, ast.Return) and not isinstance(x, Raising) for x in own_jumps(s.body))


def form_for(s: ast.For | ast.While) -> str:
    """Return as what a generator is run that a loop runs over."""
    jumps = [x for x in own_jumps(s.body) if isinstance(x, ast.Break) or type(x) is ast.Return]
    breaks = all(isinstance(x, ast.Break) for x in jumps) and not s.orelse
    return RUNS if not jumps else BREAKS if breaks else STOPS


def may_raise(s: ast.For | ast.While) -> bool:
    """Return whether a loop has a ``raise`` or an ``assert``."""
    return any(isinstance(x, Raising) for x in own_jumps(s.body))


def falls_through(body: list[ast.stmt]) -> bool:
    """Return whether statements do not end in a jump."""
    return not (body and isinstance(body[-1], (ast.Return, ast.Break, ast.Continue, ast.Raise)))


def bound_on(body: Iterable[ast.stmt]) -> set[str]:
    """Return the names that statements bind, and the rest of the blocks that they go on with."""
    body = list(body)
    ends = (x for s in body for x in ast.walk(s) if isinstance(x, ast.Return))
    return bound_by(body).union(*[getattr(x, "binds", ()) for x in ends])


def stores(names: Iterable[str]) -> list[ast.stmt]:
    """Return statements that bind names."""
    return [ast.Assign([store(x)], ast.Constant(None)) for x in names]


def load(name: str) -> ast.Name:
    """Return the expression that reads a name."""
    return ast.Name(name, ast.Load())


def store(name: str) -> ast.Name:
    """Return the target that binds a name."""
    return ast.Name(name, ast.Store())


def place_at(node: ast.stmt, place: ast.AST) -> ast.stmt:
    """Return a statement as one that stands where another does."""
    node = ast.copy_location(node, place)
    if isinstance(place, (ast.If, ast.For, ast.While)):  # Python says of a long call that it is at its last line
        node.end_lineno, node.end_col_offset = node.lineno, node.col_offset
    return node
