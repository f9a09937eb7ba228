"""How each operation is written in NumPy: the text of a call, found from the operation's own forward function.

A ufunc is written by its name, a lambda by its body with the parameters filled in, and any other function becomes
a helper that is copied to the head of the program together with what it calls.
"""

from __future__ import annotations

import ast
import dis
import functools
import inspect
import textwrap
import types
from typing import Any

import numpy as np

from fad.core.graph import Equation

_OPERATORS = {
    "add": "+", "subtract": "-", "multiply": "*", "divide": "/", "power": "**", "matmul": "@", "less": "<",
    "less_equal": "<=", "greater": ">", "greater_equal": ">=", "equal": "==", "not_equal": "!=", "floor_divide": "//",
    "remainder": "%",
}  # fmt: skip


class Cannot(Exception):
    """An operation has no text that NumPy alone could run."""


class Helpers:
    """Functions that the text of a program needs beside NumPy: name -> source."""

    def __init__(self) -> None:
        self.sources: dict[str, str] = {}
        self.modules: set[str] = set()

    def add(self, f: Any) -> str:
        """Copy a function, and the functions and numbers that it reads, and return its name."""
        f = inspect.unwrap(f)
        name = f.__name__
        if name in self.sources:
            return name
        if not inspect.isfunction(f) or name == "<lambda>" or f.__closure__:
            raise Cannot(f"{f!r} has no source of its own")
        try:
            source = textwrap.dedent(inspect.getsource(f))
        except (OSError, TypeError) as error:
            raise Cannot(str(error)) from None
        self.sources[name] = ""  # it may call itself
        for other in _names(f.__code__):
            if other in f.__globals__:
                self._need(other, f.__globals__[other])
        self.sources[name] = _bare(source)
        return name

    def _need(self, name: str, value: Any) -> None:
        if inspect.ismodule(value):
            if value is np:
                return
            if value.__name__.split(".")[0] == "fad":
                raise Cannot(f"it needs {value.__name__}")
            self.modules.add(f"import {value.__name__}" + (f" as {name}" if name != value.__name__ else ""))
        elif inspect.isfunction(value):
            copied = self.add(value)
            if copied != name:
                self.sources.setdefault(name, f"{name} = {copied}\n")
        elif isinstance(value, (int, float, str, tuple)) or numpy_name(value):
            self.sources.setdefault(name, f"{name} = {_literal(value)}\n")
        elif name != "Any":
            raise Cannot(f"it reads {name}")


def _literal(value: Any) -> str:
    """Write a module's constant; raises Cannot for what has no text."""
    if isinstance(value, tuple):
        return f"({''.join(f'{_literal(v)}, ' for v in value)})"
    if isinstance(value, (int, float, str)) or value is None:
        return repr(value)
    name = numpy_name(value)
    if name is None:
        raise Cannot(f"it reads {value!r}")
    return name


def _names(code: types.CodeType) -> set[str]:
    """Return the global names that a function reads."""
    found = {i.argval for i in dis.get_instructions(code) if i.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            found |= _names(c)
    return found


def _bare(source: str) -> str:
    """Drop decorators, annotations and docstrings, which need names of their own."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            node.decorator_list, node.returns = [], None
            for a in (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs):
                a.annotation = None
            if (
                len(node.body) > 1
                and isinstance(node.body[0], ast.Expr)
                and isinstance(node.body[0].value, ast.Constant)
            ):
                node.body = node.body[1:]
    return ast.unparse(tree) + "\n"


def spell(eq: Equation, ins: list[str], helpers: Helpers, literal: Any) -> str:
    """Return a NumPy expression for an equation; ``literal(value)`` writes a parameter.

    Raises Cannot if there is none.
    """
    prim = eq.prim
    if prim.name in _OPERATORS and len(ins) == 2:
        return f"{ins[0]} {_OPERATORS[prim.name]} {ins[1]}"
    if prim.name.startswith("python_"):
        symbol = _OPERATORS.get(prim.name[7:])
        return f"{ins[0]} {symbol} {ins[1]}" if symbol else f"{'-' if prim.name == 'python_negative' else '+'}{ins[0]}"
    if prim.name == "getitem":
        return f"{ins[0]}[{index_text(eq.params['template'], ins[1:], literal)}]"
    return _call(prim.forward, ins, eq.params, helpers, literal)


def statements(eq: Equation, ins: list[str], out: str, literal: Any) -> list[str] | None:
    """Return the lines of an equation that puts values into an array, or None for one that is a mere call."""
    name, params = eq.prim.name, eq.params
    if name == "scatter":
        made = f"{out} = np.zeros({params['shape']}, {literal(params['dtype'])})"
        places = [", ".join(_index_part(p, literal) for p in index) or "()" for index in params["indices"]]
        basic = map(_is_basic, params["indices"])
        return [made, *(_added(out, *each) for each in zip(places, ins, basic, strict=True))]
    if name not in ("index_add", "index_set"):
        return None
    place = index_text(params["template"], ins[2:], literal)
    if name == "index_set":
        return [f"{out} = {ins[0]}.copy()", f"{out}[{place}] = {ins[1]}"]
    return [f"{out} = {ins[0]}.copy()", _added(out, place, ins[1], _is_basic(params["template"]))]


def _is_basic(index: tuple) -> bool:
    """Return whether an index names every place once, being slices and numbers alone."""
    return all(isinstance(p, (slice, int, type(None), type(Ellipsis))) for p in index)


def _added(out: str, place: str, values: str, basic: bool) -> str:
    return f"{out}[{place}] += {values}" if basic else f"np.add.at({out}, ({place},), {values})"


def index_text(template: tuple, arrays: list[str], literal: Any) -> str:
    it = iter(arrays)
    return ", ".join(next(it) if type(p) is str else _index_part(p, literal) for p in template) or "()"


def _index_part(p: Any, literal: Any) -> str:
    if type(p) is slice:
        text = f"{'' if p.start is None else p.start}:{'' if p.stop is None else p.stop}"
        return text if p.step is None else f"{text}:{p.step}"
    return "..." if p is Ellipsis else literal(p)


def _call(f: Any, ins: list[str], params: dict, helpers: Helpers, literal: Any) -> str:
    name = numpy_name(f)
    keywords = [f"{k}={literal(v)}" for k, v in params.items()]
    if name:
        return f"{name}({', '.join([*ins, *keywords])})"
    if inspect.isfunction(f) and f.__name__ == "<lambda>":
        return _inline(f, ins, params, helpers, literal)
    return f"{helpers.add(f)}({', '.join([*ins, *keywords])})"


@functools.cache
def _numpy_names() -> dict[int, str]:
    found: dict[int, str] = {}
    for prefix, module in (("np.linalg", np.linalg), ("np.fft", np.fft), ("np", np)):
        for name in dir(module):
            f = getattr(module, name)
            if callable(f) and not isinstance(f, type):
                found[id(f)] = f"{prefix}.{name}"
    return found


def numpy_name(f: Any) -> str | None:
    """Return how a function of NumPy is called, ``np.sin``; None for any other."""
    if isinstance(f, np.ufunc):
        name = f"np.{f.__name__}"
        return name if getattr(np, f.__name__, None) is f else _numpy_names().get(id(f))
    return _numpy_names().get(id(f))


@functools.cache
def _lambda(code: types.CodeType) -> ast.Lambda:
    """Return the syntax tree of a lambda: the one in its file that compiles to the same code."""
    try:
        lines, _ = inspect.findsource(code)
    except OSError as error:
        raise Cannot(str(error)) from None
    places = [p for p in code.co_positions() if None not in p and p[2:] != (0, 0) and p[0] >= code.co_firstlineno]
    first = min((p[0], p[2]) for p in places)
    last = max((p[1], p[3]) for p in places)
    for node in ast.walk(_file("".join(lines))):
        if isinstance(node, ast.Lambda) and node.lineno == code.co_firstlineno:
            body = node.body
            if (body.lineno, body.col_offset) <= first and last <= (body.end_lineno, body.end_col_offset):
                return node
    raise Cannot("its lambda is not found in its file")


@functools.lru_cache(maxsize=64)
def _file(text: str) -> ast.Module:
    return ast.parse(text)


class _Fill(ast.NodeTransformer):
    def __init__(self, values: dict[str, str]):
        self.values = values

    def visit_Name(self, node: ast.Name) -> Any:
        text = self.values.get(node.id)
        return node if text is None else ast.parse(text, mode="eval").body

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Of a shortcut for plain arrays, ``quick if type(x) is np.ndarray else right``, show what is always right."""
        if ast.unparse(node.test).startswith("type(") and ast.unparse(node.test).endswith(") is np.ndarray"):
            return self.visit(node.orelse)
        return self.generic_visit(node)


def _inline(f: Any, ins: list[str], params: dict, helpers: Helpers, literal: Any) -> str:
    node = _lambda(f.__code__)
    filled = {a.arg: text for a, text in zip(node.args.args, ins, strict=False)}
    if node.args.vararg:
        filled[node.args.vararg.arg] = f"({', '.join(ins[len(node.args.args) :])},)"
    filled.update({k: literal(v) for k, v in params.items()})
    closed = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    for name in _names(f.__code__) | set(closed):
        if name in filled:
            continue
        value = closed[name].cell_contents if name in closed else f.__globals__.get(name)
        if value is None or value is np:
            continue
        known = numpy_name(value)
        if known:
            filled[name] = known
        elif name in closed:
            filled[name] = helpers.add(value)
        else:
            helpers._need(name, value)
    body = ast.parse(ast.unparse(node.body), mode="eval").body
    return ast.unparse(_Fill(filled).visit(body))
