"""Comprehensions as loops: what one does, as the statements of a function that is given what it runs over first.

So are generators that one of Python's functions runs over on the spot: ``sum(f(x) for x in xs)``.
"""

from __future__ import annotations

import ast
from typing import Any

from fad.capture.rewriting.expressions import MADE, SEQUENCES, binds
from fad.capture.rewriting.names import name_called

_ITERABLE, _FUNCTION, _START, _ELEMENT = f"{MADE}iterable", f"{MADE}function", f"{MADE}start", f"{MADE}element"
_FOUND, _NEW = f"{MADE}found", f"{MADE}new"

# What is done before the loop, with each element, and behind the loop. Python's own function has the errors; it stands
# for what no element is.
_FORMS = {
    "list": (f"{_FOUND} = []", f"{_FOUND}.append({_ELEMENT})", f"return {_FOUND}"),
    "sum": (f"{_FOUND} = {_FUNCTION}((), {_START})", f"{_FOUND} = {_FOUND} + {_ELEMENT}", f"return {_FOUND}"),
    "prod": (f"{_FOUND} = 1", f"{_FOUND} = {_FOUND} * {_ELEMENT}", f"return {_FOUND}"),
    "any": ("", f"if {_ELEMENT}: return True", "return False"),
    "all": ("", f"if not {_ELEMENT}: return False", "return True"),
    **{
        name: (
            f"{_FOUND} = {_FUNCTION}",
            f"{_NEW} = {_ELEMENT}\nif {_FOUND} is {_FUNCTION} or {_NEW} {sign} {_FOUND}: {_FOUND} = {_NEW}",
            f"if {_FOUND} is {_FUNCTION}: return {_FUNCTION}(())\nreturn {_FOUND}",  # which raises
        )
        for name, sign in (("max", ">"), ("min", "<"))
    },
}
_GIVEN = {"sum": [_FUNCTION, _START], "max": [_FUNCTION], "min": [_FUNCTION]}  # besides what is run over
# Functions that give generators, in whose place loops are run, and others of which no loop need be made.
_GENERATED = frozenset({"map", "filter", "islice", "accumulate", "takewhile"})
_NUMBERED = SEQUENCES - _GENERATED
_LISTED = frozenset({"list", "tuple", "sorted", "fromiter"})  # functions that take all elements first


def form_of(call: ast.Call) -> str | None:
    """Return as what a call of one of Python's functions may run over the generator that it is given; or None."""
    if not call.args or generator_of(call) is None:
        return None
    name = name_called(call)
    if name in _LISTED:
        return "list"
    most = 2 if name == "sum" else 1
    return name if name in _FORMS and len(call.args) <= most and not call.keywords else None


def generator_of(call: ast.Call) -> ast.GeneratorExp | None:
    """Return the generator that a function is given; that of what it is given by ``map``, or by a call of another."""
    given = call.args[0]
    if not name_called(given) or name_called(given) in _NUMBERED:
        return given if isinstance(given, ast.GeneratorExp) else None
    over = ast.comprehension(ast.Name(_NEW, ast.Store()), given, [], 0)
    made = ast.GeneratorExp(ast.Name(_NEW, ast.Load()), [over])
    return ast.copy_location(made, given)


def called_for(call: ast.Call) -> ast.expr | None:
    """Return what is called for what a function is given, where that has to be a generator function; None if not."""
    given = call.args[0]
    known = isinstance(given, ast.GeneratorExp) or name_called(given) in _GENERATED
    return None if known else given.func  # type: ignore[attr-defined]


def as_statements(node: ast.ListComp | ast.GeneratorExp, form: str) -> tuple[list[str], list[ast.stmt]] | None:
    """Return the arguments and the statements of a function that does what a comprehension does.

    They share its nodes. It is None for one that binds names of the function around it, or waits.
    """
    if binds(node) or any(g.is_async for g in node.generators):
        return None
    before, each, behind = (_parse(text, node) for text in _FORMS[form])
    step: list[ast.stmt] = [_Element(node.elt).visit(s) for s in each]
    for g in reversed(node.generators):
        for test in reversed(g.ifs):
            step = [_at(ast.If(test, step, []), node)]
        step = [_at(ast.For(g.target, g.iter, step, []), node)]
    (loop,) = step
    loop.iter = _at(ast.Name(_ITERABLE, ast.Load()), node)  # type: ignore[attr-defined]
    return [_ITERABLE, *_GIVEN.get(form, [])], [*before, loop, *behind]


def _parse(text: str, node: ast.AST) -> list[ast.stmt]:
    """Return statements that stand where a comprehension does."""
    statements = ast.parse(text).body
    for s in statements:
        for part in ast.walk(s):
            ast.copy_location(part, node)
    return statements


class _Element(ast.NodeTransformer):
    """Puts the element in its place."""

    def __init__(self, element: ast.expr):
        self._element = element

    def visit_Name(self, node: ast.Name) -> ast.AST:
        return self._element if node.id == _ELEMENT else node


def _at(made: Any, node: ast.AST) -> Any:
    made.comprehension = True
    return ast.copy_location(made, node)
