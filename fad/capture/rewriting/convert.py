"""From a function to its converted form: found in its source, rewritten, compiled under its own file and lines.

The converted function has the globals, cells and defaults of the original. One whose loops are to be captured is
converted when a transform or converted code calls it; what holds no loop, and calls nothing that might, is left alone.
"""

from __future__ import annotations

import ast
import builtins
import dis
import functools
import inspect
import itertools
import linecache
import math
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from fad import config
from fad.capture.rewriting.expressions import FLAGS
from fad.capture.rewriting.helpers import HELPERS, helper
from fad.capture.rewriting.matches import replace_matches
from fad.capture.rewriting.names import move_conditions, move_globals, name_private, name_super, walk_scope
from fad.capture.rewriting.rewrite import NotConvertible, Rewriter
from fad.capture.rewriting.same_source import FUTURES, find_imported, is_source_of
from fad.capture.rewriting.yields import RESUMED, STOPS, replace_yields, split_at_yield
from fad.core.runs.transformed import Transformed
from fad.introspect.frames import is_machinery, without_syntax_warnings
from fad.introspect.reachable import is_library, is_of_library

_GENERATES = inspect.CO_GENERATOR | inspect.CO_COROUTINE | inspect.CO_ASYNC_GENERATOR
_INSTALLED = ("site-packages", "dist-packages")  # folders of libraries, which are not converted
_MOST = 4096
# Functions of Python's that run over what they are given.
FOLDED = frozenset({sum, max, min, any, all, map, math.prod, functools.reduce})
CAPTURED: set[str] = set()  # modules of fad that are written as users write theirs, and captured like these
# (id of code, everywhere, generates) -> (code, converted code or None, sites, why)
_converted: dict[tuple[int, bool, str], tuple] = {}
_inner: dict[int, types.CodeType] = {}  # by id, code of functions within converted ones: its source is known
_looping: dict[int, tuple[types.CodeType, _Calls]] = {}  # by id of code


class Sites:
    """The loops and branches of one converted function, and the names of its local variables."""

    __slots__ = ("loops", "branches", "local")

    def __init__(self, loops: list, branches: list, local: Iterable[str]):
        self.loops = loops
        self.branches = branches
        self.local = frozenset(local)


def convert_function(
    fun: Callable, make_helpers: Callable, everywhere: bool = False, generates: str = ""
) -> tuple[Callable | None, str]:
    """Return a function converted, or None and why it cannot be; ``make_helpers(sites)`` gives what its code calls.

    With `generates`, a form of a loop over it (`yields.py`), it is a generator function, and the converted one calls
    another where it yields.
    """
    if type(fun) is types.MethodType:
        inner, why = convert_function(fun.__func__, make_helpers, everywhere, generates)
        return (None if inner is None else types.MethodType(inner, fun.__self__)), why
    if type(fun) is not types.FunctionType:
        return None, "it is no function of Python"
    code, sites, why = _code_of(fun, everywhere, generates)
    if code is None:
        return None, why
    cells = dict(zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=True))
    cells[HELPERS] = types.CellType(make_helpers(sites))
    closure = tuple(cells[name] for name in code.co_freevars)
    made = types.FunctionType(code, fun.__globals__, fun.__name__, fun.__defaults__, closure)
    made.__kwdefaults__ = fun.__kwdefaults__
    made.__qualname__, made.__module__, made.__doc__ = fun.__qualname__, fun.__module__, fun.__doc__
    made.__dict__.update(fun.__dict__)
    return made, ""


def _code_of(fun: types.FunctionType, everywhere: bool, generates: str) -> tuple:
    key = (id(fun.__code__), everywhere, generates)
    known = _converted.get(key)
    if known is None:
        if len(_converted) > _MOST:
            _converted.clear()
            _inner.clear()
        known = _converted[key] = (fun.__code__, *_convert(fun.__code__, everywhere, generates))
    return known[1:]


def _convert(code: types.CodeType, everywhere: bool, generates: str) -> tuple:
    if HELPERS in code.co_freevars:
        return None, None, "it has been converted"
    if code.co_flags & _GENERATES and not generates:
        return None, None, "it is a generator or a coroutine"
    node = find_source(code)
    if node is None:
        return None, None, "its source is not known, or has changed"
    if node.owner.strip("_"):
        name_private(node, node.owner)
    name_super(node)
    if generates not in ("", RESUMED) and not replace_yields(node, generates):
        return None, None, "its yield is no statement, or a try or with is around"
    replace_matches(node)
    move_conditions(node)
    move_globals(node, helper("module_of", ast.Call(ast.Name("globals", ast.Load()), [], [])))
    body = [ast.Return(node.body)] if isinstance(node, ast.Lambda) else node.body
    outer = {x for s in body for n in walk_scope(s) if isinstance(n, (ast.Global, ast.Nonlocal)) for x in n.names}
    rewriter = Rewriter(code.co_filename, body, outer, everywhere, generates == STOPS)
    try:
        if generates == RESUMED:
            parts = split_at_yield(node)
            if parts is None:
                return None, None, "it does not end in a loop without end, whose steps yield once"
            new = _compile_statements(node, rewriter.split_step(*parts), code)
        else:
            new = _compile_statements(node, rewriter.function(body), code)
    except NotConvertible as why:
        return None, None, str(why)
    return new, Sites(rewriter.loops, rewriter.branches, (*code.co_varnames, *code.co_cellvars)), ""


def _compile_statements(node: Any, body: list[ast.stmt], code: types.CodeType) -> types.CodeType:
    """Compile the statements of a function, within one that has its outer variables."""
    given = node.args
    for arg in (*given.posonlyargs, *given.args, *given.kwonlyargs, given.vararg, given.kwarg):
        if arg is not None:
            arg.annotation = None
    given.defaults, given.kw_defaults = [], [None] * len(given.kwonlyargs)
    inner = ast.copy_location(ast.FunctionDef("converted", given, body, [], None, None), node)
    outer_names = [ast.arg(name) for name in (*code.co_freevars, HELPERS)]
    arguments = ast.arguments([], outer_names, None, [], [], None, [])
    outer = ast.copy_location(ast.FunctionDef("outer", arguments, [inner], [], None, None), node)
    module = ast.fix_missing_locations(ast.Module([outer], []))
    flags = code.co_flags & FUTURES
    with without_syntax_warnings():
        made: Any = compile(module, code.co_filename, "exec", flags=flags, dont_inherit=True)
    for _ in range(2):
        made = next(c for c in made.co_consts if isinstance(c, types.CodeType))
    _inner.update((id(c), c) for c in _codes_within(made))
    return made.replace(co_name=code.co_name, co_qualname=code.co_qualname, co_firstlineno=code.co_firstlineno)


def _codes_within(code: types.CodeType) -> Iterator[types.CodeType]:
    for c in code.co_consts:
        if isinstance(c, types.CodeType):
            yield c
            yield from _codes_within(c)


# --- where the source is ----------------------------------------------------------------------------------------------


def find_source(code: types.CodeType) -> Any:
    """Return a syntax tree of the function of some code, for this caller alone; None if it is not found.

    Its `owner` is the name of the class around it, empty if there is none.
    """
    lines = linecache.getlines(code.co_filename)
    if not lines:
        return None
    known, imported = _functions_of("".join(lines))
    candidates = known.get((code.co_firstlineno, code.co_name), [])
    if len(candidates) > 1:
        candidates = [node for node in candidates if _starts(node) in _positions(code)]
    if len(candidates) != 1:
        return None
    if id(code) not in _inner and not is_source_of(_copy_tree(candidates[0]), code, imported):
        return None
    return _copy_tree(candidates[0])


def _copy_tree(node: Any) -> Any:
    """Return a copy of a syntax tree: it is rewritten in place."""
    fields = {name: _copy_field(value) for name, value in ast.iter_fields(node)}
    made = node.__class__(**fields)
    if hasattr(node, "owner"):
        made.owner = node.owner
    return ast.copy_location(made, node)


def _copy_field(value: Any) -> Any:
    if isinstance(value, list):
        return [_copy_field(x) for x in value]
    return _copy_tree(value) if isinstance(value, ast.AST) else value


@functools.lru_cache(16)
def _functions_of(text: str) -> tuple[dict, frozenset[str]]:
    """Return the functions of a file by their first line and name, and the names that it imports."""
    try:
        with without_syntax_warnings():
            module = ast.parse(text)
    except (SyntaxError, ValueError):
        return {}, frozenset()
    found: dict[tuple, list] = {}
    waiting: list[tuple[ast.AST, str]] = [(module, "")]
    while waiting:
        node, owner = waiting.pop()
        inner = node.name if isinstance(node, ast.ClassDef) else owner
        waiting += [(part, inner) for part in ast.iter_child_nodes(node)]
        node.owner = owner  # type: ignore[attr-defined]
        if isinstance(node, ast.FunctionDef):
            first = min([node.lineno, *[d.lineno for d in node.decorator_list]])
            found.setdefault((first, node.name), []).append(node)
        elif isinstance(node, ast.Lambda):
            found.setdefault((node.lineno, "<lambda>"), []).append(node)
    return found, find_imported(module)


def _starts(node: Any) -> tuple:
    body = node.body if isinstance(node, ast.Lambda) else node.body[0]
    return body.lineno, body.col_offset, body.end_lineno, body.end_col_offset


def _positions(code: types.CodeType) -> set:
    return {(line, column, end, last) for line, end, column, last in code.co_positions()}


# --- what is worth converting -----------------------------------------------------------------------------------------


def is_users(fun: types.FunctionType) -> bool:
    """Return whether a function is the user's own, and no library's."""
    file = fun.__code__.co_filename
    if fun.__module__ in CAPTURED:
        return True
    return not (is_machinery(file) or is_of_library(fun) or any(folder in file for folder in _INSTALLED))


class _Calls(NamedTuple):
    """What some code says of the loops of its function: that it may come to one, or by which names it calls others."""

    loops: bool = False
    named: tuple[str, ...] = ()  # globals
    held: tuple[int, ...] = ()  # variables of functions around it, by their number


def may_loop(fun: Any, depth: int = 12, seen: dict[int, Any] | None = None) -> bool:
    """Return whether a function has a loop or asks which flag it has, or calls what may, as far as names tell.

    What names stand for is looked up each time: functions that are made alike hold others, and globals change.
    """
    if type(fun) is types.MethodType:
        fun = fun.__func__
    if type(fun) is not types.FunctionType:
        return not _is_known(fun)
    calls = _calls_of(fun.__code__, fun)
    if calls.loops or not (calls.named or calls.held):
        return calls.loops
    seen = {} if seen is None else seen
    if depth == 0 or id(fun) in seen:  # it calls itself
        return depth == 0
    seen[id(fun)] = fun
    try:
        found = [_find_global(fun, name) for name in calls.named]
        found += [(fun.__closure__ or ())[k].cell_contents for k in calls.held]
    except ValueError:  # a cell that is still empty
        return True
    return any(may_loop(x, depth - 1, seen) for x in found if callable(x))


def _calls_of(code: types.CodeType, fun: types.FunctionType) -> _Calls:
    known = _looping.get(id(code))
    if known is None:
        if len(_looping) > _MOST:
            _looping.clear()
        known = _looping[id(code)] = (code, _read_calls(code) if is_users(fun) else _Calls())
    return known[1]


def _is_known(f: Any) -> bool:
    """Return whether something that is called is a library's, and calls nothing of the user's but what it is given."""
    kind = type(f)
    if kind is Transformed:
        return not may_loop(f.__wrapped__)
    if kind in (types.BuiltinFunctionType, type) and f in FOLDED:
        return False
    if kind in (types.FunctionType, types.BuiltinFunctionType, types.ModuleType, np.ufunc, type(np.sum)):
        return True
    return is_library(getattr(f if isinstance(f, type) else kind, "__module__", None)) and not hasattr(f, "__wrapped__")


def _read_calls(outer: types.CodeType) -> _Calls:
    codes = [outer]
    for code in codes:
        codes += [c for c in code.co_consts if isinstance(c, types.CodeType)]
    named, held = {}, {}
    places = {name: k for k, name in enumerate(outer.co_freevars)}
    for code in codes:
        steps = list(dis.get_instructions(code))
        comprehends = code.co_name in ("<setcomp>", "<dictcomp>")
        if not comprehends and any("BACKWARD" in at.opname for at in steps):
            return _Calls(loops=True)
        for before, at in itertools.pairwise(steps):
            if {before.opname[:9], at.opname[:9]} == {"PUSH_NULL", "LOAD_FAST"}:
                return _Calls(loops=True)  # a function that it is given
            if at.opname == "IS_OP" and before.argval in (True, False, *FLAGS):
                return _Calls(loops=True)  # what it asks of a flag that is traced, converted code can answer
        for at in steps:
            if at.opname in ("LOAD_METHOD", "LOAD_ATTR") and not _is_usual(at.argval):
                return _Calls(loops=True)
            if at.opname in ("LOAD_GLOBAL", "LOAD_NAME"):
                named[at.argval] = None
            elif at.opname == "LOAD_DEREF" and at.argval in places:
                held[places[at.argval]] = None
    return _Calls(named=tuple(named), held=tuple(held))


def _find_global(fun: types.FunctionType, name: str) -> Any:
    return fun.__globals__[name] if name in fun.__globals__ else getattr(builtins, name, None)


@functools.cache
def _usual() -> frozenset:
    places = (np.ndarray, np, np.linalg, np.fft, str, list, dict, tuple, float)
    return frozenset(name for place in places for name in dir(place)) - {math.prod.__name__}


def _is_usual(name: str) -> bool:
    """Return whether an attribute is one of arrays, NumPy and Python's containers."""
    return name in _usual()


def wants_conversion(fun: Any) -> bool:
    """Return whether a function that a transform is to run should be converted."""
    inner = fun.__func__ if type(fun) is types.MethodType else fun
    return type(inner) is types.FunctionType and config.loops.get() != "record" and is_users(inner) and may_loop(inner)
