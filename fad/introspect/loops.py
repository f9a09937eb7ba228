"""In which step of a Python loop an error was raised, read off the variables of the frames that it left."""

from __future__ import annotations

import ast
import functools
import linecache
import traceback
import types
from collections.abc import Iterator

import numpy as np

from fad.introspect.frames import is_machinery, show_place, without_syntax_warnings

_FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
_SCOPES = (*_FUNCTIONS, ast.Lambda, ast.ClassDef)


def steps_of(error: BaseException) -> list[str]:
    """Return a line for each of the user's functions that was in a loop: which loop, and what its counters were."""
    lines = []
    for frame, number in traceback.walk_tb(error.__traceback__):
        if is_machinery(frame.f_code.co_filename):
            continue
        found = [(loop, _counters(loop, frame)) for loop in _loops_around(frame, number)]
        counters = {name: value for _, some in found for name, value in some.items()}
        if counters:
            values = ", ".join(f"{name} = {value}" for name, value in counters.items())
            inner = next(loop for loop, some in reversed(found) if some)
            lines.append(f"  in step {values} of the loop at {show_place((frame.f_code.co_filename, inner.lineno))}")
    return lines


def _loops_around(frame: types.FrameType, line: int) -> list[ast.For | ast.While]:
    """Return the loops of a frame's function in whose bodies a line stands, the outermost first."""
    code = frame.f_code
    file = _parse("".join(linecache.getlines(code.co_filename)))
    scopes = (node for node in ast.walk(file) if _is_of(node, code))
    scope = file if code.co_name == "<module>" else next(scopes, None)
    loops = [node for node in _inside(scope) if isinstance(node, (ast.For, ast.While))] if scope else []
    return [loop for loop in loops if loop.body[0].lineno <= line <= (loop.body[-1].end_lineno or 0)]


@functools.lru_cache(maxsize=4)
def _parse(text: str) -> ast.Module:
    """Return the syntax of a file, which a program that catches errors asks for again and again."""
    try:
        with without_syntax_warnings():
            return ast.parse(text)
    except (SyntaxError, ValueError):
        return ast.Module([], [])


def _is_of(node: ast.AST, code: types.CodeType) -> bool:
    if not isinstance(node, _FUNCTIONS) or node.name != code.co_name:
        return False
    return min([node.lineno, *(d.lineno for d in node.decorator_list)]) == code.co_firstlineno


def _inside(scope: ast.AST) -> Iterator[ast.AST]:
    """Go over the nodes of a function, without those of functions and classes that it defines."""
    for node in ast.iter_child_nodes(scope):
        if not isinstance(node, _SCOPES):
            yield node
            yield from _inside(node)


def _counters(loop: ast.For | ast.While, frame: types.FrameType) -> dict[str, int]:
    """Return the integers that a loop runs over, or if there are none, those that its body binds."""
    parts = [loop.target] if isinstance(loop, ast.For) else []
    return _integers(parts, frame) or _integers(loop.body, frame)


def _integers(parts: list, frame: types.FrameType) -> dict[str, int]:
    bound = [node for part in parts for node in [part, *_inside(part)] if isinstance(node, ast.Name)]
    values = {node.id: frame.f_locals.get(node.id) for node in bound if isinstance(node.ctx, ast.Store)}
    return {name: int(x) for name, x in values.items() if isinstance(x, (int, np.integer)) and type(x) is not bool}
