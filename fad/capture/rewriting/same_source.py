"""Whether the code of a function was compiled from the source that stands under its file and line.

A file that was edited after its import has other text there, and so may a function whose code was made from text with
the file name and line of another one, as libraries do for wrappers. What was written there would be computed then, and
not what runs without a transform.
"""

from __future__ import annotations
import __future__

import ast
import functools
import inspect
import operator
import types
from typing import Any

from fad.capture.rewriting.names import name_private
from fad.introspect.frames import without_syntax_warnings

FUTURES = functools.reduce(operator.or_, (getattr(__future__, x).compiler_flag for x in __future__.all_feature_names))
_KINDS = inspect.CO_VARARGS | inspect.CO_VARKEYWORDS | inspect.CO_GENERATOR | inspect.CO_COROUTINE
_KINDS |= inspect.CO_ASYNC_GENERATOR
_OUTER = "outer"
_WITHIN = ".<locals>."
_ARGUMENTS = ("co_argcount", "co_posonlyargcount", "co_kwonlyargcount")
_NAMES = ("co_names", "co_varnames", "co_cellvars", "co_freevars")


def is_source_of(node: Any, code: types.CodeType, imported: frozenset[str]) -> bool:
    """Return whether code is that of a function's syntax tree, which is changed; its `owner` is the class around it.

    `imported` are the names that imports of its module bind: calls of what is in them are compiled in another way.
    """
    try:
        made = _compile(node, code, imported)
    except (SyntaxError, ValueError):
        return False
    if _takes_same(made, code) and any(isinstance(part, ast.Assert) for part in ast.walk(node)):
        return _uses_names_of(made, code)  # pytest compiles its own statements for those
    return _is_same(made, code)


def find_imported(module: ast.Module) -> frozenset[str]:
    """Return the names that imports in the statements of a module bind."""
    found: set[str] = set()
    waiting: list[ast.AST] = [module]
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.Import, ast.ImportFrom)):
            found.update((alias.asname or alias.name).partition(".")[0] for alias in node.names)
        elif not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.expr)):
            waiting += ast.iter_child_nodes(node)
    return frozenset(found - {"*"})


def _compile(node: Any, code: types.CodeType, imported: frozenset[str]) -> types.CodeType:
    """Compile a function as it stands, within one that has its outer variables."""
    if node.owner.strip("_"):
        name_private(node, node.owner)
    given = node.args
    given.defaults, given.kw_defaults = [], [None] * len(given.kwonlyargs)
    for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if arg is not None:
            arg.annotation = None
    if isinstance(node, ast.FunctionDef):
        node.decorator_list, node.returns = [], None
    inner = ast.copy_location(ast.Return(node), node) if isinstance(node, ast.Lambda) else node
    outer_names = ast.arguments([], [ast.arg(name) for name in code.co_freevars], None, [], [], None, [])
    body: list[ast.stmt] = [inner]
    if isinstance(node, ast.FunctionDef) and node.name not in code.co_freevars:
        body.insert(0, ast.Global([node.name]))  # the function that it calls by its own name, itself or another
    outer = ast.copy_location(ast.FunctionDef(_OUTER, outer_names, body, [], None, None), node)
    imports = [ast.Import([ast.alias(name)]) for name in sorted(imported)]
    module = ast.fix_missing_locations(ast.Module([*imports, outer], []))
    with without_syntax_warnings():
        made: Any = compile(module, code.co_filename, "exec", flags=code.co_flags & FUTURES, dont_inherit=True)
    for _ in range(2):
        made = next(c for c in made.co_consts if isinstance(c, types.CodeType))
    return made


def _takes_same(made: types.CodeType, code: types.CodeType) -> bool:
    kinds = made.co_flags & _KINDS == code.co_flags & _KINDS
    return kinds and all(getattr(made, name) == getattr(code, name) for name in _ARGUMENTS)


def _is_same(made: types.CodeType, code: types.CodeType) -> bool:
    return (
        made.co_code == code.co_code
        and _takes_same(made, code)
        and all(getattr(made, name) == getattr(code, name) for name in _NAMES)
        and len(made.co_consts) == len(code.co_consts)
        and all(map(_is_same_constant, made.co_consts, code.co_consts))
    )


def _is_same_constant(a: Any, b: Any) -> bool:
    if type(a) is not type(b):
        return False
    if type(a) is types.CodeType:
        return _is_same(a, b)
    if type(a) is str and _WITHIN in a:  # the full name of a class, of which its own code knows
        return a == b or b.endswith("." + a.removeprefix(_OUTER + _WITHIN))
    return a == b if type(a) is frozenset else repr(a) == repr(b)


def _uses_names_of(made: types.CodeType, code: types.CodeType) -> bool:
    return all(set(getattr(made, name)) <= set(getattr(code, name)) for name in _NAMES)
