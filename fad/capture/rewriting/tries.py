"""``try`` statements in code that is recorded once for all steps: recorded as if nothing was raised.

Where a program raises for the values of a call, that call is left to Python, which finds the handler. So a body that is
recorded has the block alone; where Python runs the same code, the handlers stand around it.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable
from typing import Any

from fad.capture.rewriting.helpers import helper
from fad.capture.rewriting.names import may_end, own_jumps

_BRANCHING = (ast.If, ast.For, ast.While, ast.Try, ast.With)


class Raising(ast.Return):
    """A ``raise`` in code that is captured; `value` is what it reads."""

    @classmethod
    def of(cls, s: ast.Raise) -> ast.stmt:
        read = [x for x in (s.exc, s.cause) if x is not None]
        made = cls(ast.Tuple(read, ast.Load()))
        made.plain = s  # type: ignore[attr-defined]
        return ast.copy_location(made, s)


def leaves(body: list[ast.stmt]) -> bool:
    """Return whether statements may jump, otherwise than by an error."""
    return any(not isinstance(x, Raising) for x in own_jumps(body))


def find_refusal(s: ast.Try) -> str:
    """Return why a ``try`` statement cannot be written as functions, or ``""``."""
    parts = [s.body, s.orelse, *(h.body for h in s.handlers)]
    if any(leaves(part) and may_end(part) for part in parts):
        return "it has a try of which a part jumps in some ways and goes on in others"
    if any(isinstance(x, _BRANCHING) for x in s.finalbody) or own_jumps(s.finalbody):
        return "it has a finally that branches or jumps"
    return ""


def rewrite_try(s: ast.Try, name: Callable[[str], str], function: Callable, staged: Callable) -> list[ast.stmt]:
    """Return statements that do what a ``try`` statement does.

    ``name(what)`` makes a name, ``function(name, statements)`` a function of statements and ``staged(statements)`` what
    these become.
    """
    parts = [part for part in (s.body, s.orelse) if part]
    leave = [leaves(part) for part in parts]  # before they are rewritten
    names = [name("tried") for _ in parts]
    out: list[ast.stmt] = [function(n, part) for n, part in zip(names, parts, strict=True)]
    final: list[ast.stmt] = s.finalbody
    captured: list[ast.stmt] = []
    for n, leaving in zip(names, leave, strict=True):
        if leaving:
            result = name("outcome")
            captured += [ast.Assign([ast.Name(result, ast.Store())], _run(n)), *staged(copy.deepcopy(final))]
            captured.append(ast.Return(ast.Name(result, ast.Load())))
            break
        captured.append(ast.Expr(_run(n)))
    else:
        captured += staged(copy.deepcopy(final))
    runs: list[ast.stmt] = [
        ast.Return(_call(n)) if leaving else ast.Expr(_call(n)) for n, leaving in zip(names, leave, strict=True)
    ]
    # Handlers of their own: what is around this statement is still to be asked whether it jumps.
    handlers = [ast.ExceptHandler(h.type, h.name, staged(h.body) or [ast.Pass()]) for h in s.handlers]
    plain: Any = ast.Try(runs[:1], handlers, runs[1:], staged(final))
    out.append(ast.If(helper("captures"), captured or [ast.Pass()], [plain]))
    return [ast.copy_location(x, s) for x in out]


def _run(name: str) -> ast.expr:
    return helper("run_tried", ast.Name(name, ast.Load()))


def _call(name: str) -> ast.expr:
    return helper("run_block", ast.Name(name, ast.Load()))
