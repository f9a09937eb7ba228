"""``match`` statements as the ``if`` statements that do the same, where their patterns only compare, or take anything.

The subject is compared in the order of the cases, as Python does it. Patterns may look into a subject that is written
as a tuple, ``match i % 2, mode``. Those that look into any other subject stay a ``match``.
"""

from __future__ import annotations

import ast
import itertools
from collections.abc import Iterator
from typing import Any

from fad.capture.rewriting.expressions import MADE

_ALWAYS = ast.Constant(True)
_NEVER = ast.Constant(False)
_Bound = list[tuple[str, ast.expr]]  # names that a pattern binds, and to what


def replace_matches(function: Any) -> None:
    """Replace the ``match`` statements of a function, in place."""
    _Matches().visit(function)


class _Matches(ast.NodeTransformer):
    def __init__(self) -> None:
        self._numbers = itertools.count(1)

    def visit_Match(self, node: ast.Match) -> Any:
        self.generic_visit(node)
        assigned: list[ast.stmt] = []
        subject = self._name_parts(node.subject, assigned)
        found = _as_branches(node.cases, subject, self._numbers)
        if found is None:
            return node
        return [*(ast.fix_missing_locations(ast.copy_location(s, node)) for s in assigned), *found]

    def _name_parts(self, subject: ast.expr, assigned: list[ast.stmt]) -> ast.expr:
        """Return a subject as names, which can be read again, and add the assignments that make them."""
        if isinstance(subject, ast.Name):
            return subject  # tests bind nothing
        if isinstance(subject, ast.Tuple) and not any(isinstance(x, ast.Starred) for x in subject.elts):
            parts = [self._assign(x, assigned) for x in subject.elts]  # a guard may bind what the tuple has read
            return ast.Tuple(parts, ast.Load())
        return self._assign(subject, assigned)

    def _assign(self, x: ast.expr, assigned: list[ast.stmt]) -> ast.expr:
        name = f"{MADE}subject_{next(self._numbers)}"
        assigned.append(ast.Assign([ast.Name(name, ast.Store())], x))
        return ast.Name(name, ast.Load())


def _as_branches(cases: list[ast.match_case], subject: ast.expr, numbers: Iterator[int]) -> list[ast.stmt] | None:
    """Return statements that do what cases do; None where a case cannot be written so."""
    if not cases:
        return []
    case, *others = cases
    test, bound = _test_of(case.pattern, subject)
    rest = _as_branches(others, subject, numbers)
    if test is None or rest is None:
        return None
    made: list[ast.stmt]
    binding: list[ast.stmt] = [ast.Assign([ast.Name(name, ast.Store())], x) for name, x in bound]
    if case.guard is None:
        made = [*binding, *case.body] if test is _ALWAYS else [ast.If(test, [*binding, *case.body], rest)]
    elif not binding or test is _ALWAYS:
        asked = case.guard if test is _ALWAYS else ast.BoolOp(ast.And(), [test, case.guard])
        made = [*binding, ast.If(asked, case.body, rest)]
    else:  # the names stay bound where the guard does not hold
        taken = f"{MADE}taken_{next(numbers)}"
        asking = [*binding, _assign_flag(taken, case.guard)]
        made = [_assign_flag(taken, _NEVER), ast.If(test, asking, []), ast.If(_load(taken), case.body, rest)]
    for statement in made:
        if not hasattr(statement, "lineno"):
            ast.fix_missing_locations(ast.copy_location(statement, case.pattern))
    return made


def _assign_flag(name: str, value: ast.expr) -> ast.stmt:
    return ast.Assign([ast.Name(name, ast.Store())], value)


def _load(name: str) -> ast.expr:
    return ast.Name(name, ast.Load())


def _test_of(pattern: ast.pattern, subject: ast.expr) -> tuple[ast.expr | None, _Bound]:
    """Return what asks whether a pattern takes a subject, None if that cannot be written, and the names it binds."""
    if isinstance(pattern, ast.MatchAs):
        inner = (_ALWAYS, []) if pattern.pattern is None else _test_of(pattern.pattern, subject)
        return inner[0], [*inner[1], *([] if pattern.name is None else [(pattern.name, subject)])]
    if isinstance(pattern, ast.MatchOr):
        tests = [_test_of(x, subject) for x in pattern.patterns]
        if all(test is not None and not bound for test, bound in tests):
            return ast.BoolOp(ast.Or(), [test for test, _ in tests]), []  # type: ignore[misc]
    if isinstance(subject, ast.Tuple):
        return _test_parts(pattern, subject)
    if isinstance(pattern, ast.MatchValue):
        return ast.Compare(subject, [ast.Eq()], [pattern.value]), []
    if isinstance(pattern, ast.MatchSingleton):
        return ast.Compare(subject, [ast.Is()], [ast.Constant(pattern.value)]), []
    return None, []


def _test_parts(pattern: ast.pattern, subject: ast.Tuple) -> tuple[ast.expr | None, _Bound]:
    """Return the same of a pattern of as many parts as a subject has, which is written as a tuple."""
    if not isinstance(pattern, ast.MatchSequence) or any(isinstance(x, ast.MatchStar) for x in pattern.patterns):
        return None, []
    if len(pattern.patterns) != len(subject.elts):
        return _NEVER, []
    found = [_test_of(x, part) for x, part in zip(pattern.patterns, subject.elts, strict=True)]
    if any(test is None for test, _ in found):
        return None, []
    tests: list = [test for test, _ in found if test is not _ALWAYS]
    asked = ast.BoolOp(ast.And(), tests) if len(tests) > 1 else (tests or [_ALWAYS])[0]
    return asked, [part for _, bound in found for part in bound]
