"""``match`` statements as the ``if`` statements that do the same, where their patterns only compare, or take anything.

The subject is compared in the order of the cases, as Python does it. Patterns that look into the subject, and guards
of patterns that bind names, stay a ``match``.
"""

from __future__ import annotations

import ast
import itertools
from typing import Any

from fad.capture.expressions import MADE

_ALWAYS = ast.Constant(True)


def replace_matches(function: Any) -> None:
    """Replace the ``match`` statements of a function, in place."""
    _Matches().visit(function)


class _Matches(ast.NodeTransformer):
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        name = node.subject.id if isinstance(node.subject, ast.Name) else f"{MADE}subject_{next(self._numbers)}"
        found = _as_branches(node.cases, name)
        if found is None:
            return node
        if isinstance(node.subject, ast.Name):  # tests bind nothing, and read it again
            return found
        assign = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], node.subject), node)
        return [ast.fix_missing_locations(assign), *found]


def _as_branches(cases: list[ast.match_case], subject: str) -> list[ast.stmt] | None:
    """Return statements that do what cases do; None where a case cannot be written so."""
    if not cases:
        return []
    case, *others = cases
    test, bound = _test_of(case.pattern, subject)
    rest = _as_branches(others, subject)
    if test is None or rest is None or (bound and case.guard is not None):
        return None
    body = [*(_bind(name, subject) for name in bound), *case.body]
    for made in body[: len(bound)]:
        ast.fix_missing_locations(ast.copy_location(made, case.pattern))
    tests = [x for x in (test, case.guard) if x is not None and x is not _ALWAYS]
    if not tests:
        return body
    asked = tests[0] if len(tests) == 1 else ast.BoolOp(ast.And(), tests)
    return [ast.fix_missing_locations(ast.copy_location(ast.If(asked, body, rest), case.pattern))]


def _bind(name: str, subject: str) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], ast.Name(subject, ast.Load()))


def _test_of(pattern: ast.pattern, subject: str) -> tuple[ast.expr | None, list[str]]:
    """Return what asks whether a pattern takes a subject, None if that cannot be written, and the names it binds."""
    given = ast.Name(subject, ast.Load())
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(given, [ast.Eq()], [pattern.value]), []
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Compare(given, [ast.Is()], [ast.Constant(pattern.value)]), []
    if isinstance(pattern, ast.MatchAs):
        inner = (_ALWAYS, []) if pattern.pattern is None else _test_of(pattern.pattern, subject)
        return inner[0], [*inner[1], *([] if pattern.name is None else [pattern.name])]
    if isinstance(pattern, ast.MatchOr):
        tests = [_test_of(x, subject) for x in pattern.patterns]
        if all(test is not None and not bound for test, bound in tests):
            return ast.BoolOp(ast.Or(), [test for test, _ in tests]), []  # type: ignore[misc]
    return None, []
