"""Which functions a function may call, as far as names, closures and tables tell; and whether code writes into arrays.

Nothing is run: a walk goes from a function to what its code names, its closure and its defaults hold, to the methods
of classes and objects among them, and to the functions in lists and dictionaries. Code is read by its bytecode.
"""

from __future__ import annotations

import dis
import functools
import itertools
import sys
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad.core.runs.transformed import LinearMap, Transformed, Wrapping
from fad.core.tracing.tracer import Tracer
from fad.introspect.frames import is_machinery
from fad.introspect.reachable import imported_names, is_library, names_in, operations_in

CONVERTERS = ("asarray", "asanyarray", "ascontiguousarray", "asfortranarray", "asarray_chkfinite", "require")
_FROM_LISTS = {"array", "full", "full_like", "r_", "c_", "vectorize", "fromfunction", *CONVERTERS}
_WRITERS = {
    "copyto", "put", "putmask", "place", "put_along_axis", "fill_diagonal", "at", "fill", "sort", "partition",
    "itemset", "flat", "nan_to_num", "setfield", "__setitem__", "setitem", "shuffle", "permutation",
}  # fmt: skip
_STORES = {dis.opmap[name] for name in ("STORE_SUBSCR", "STORE_SLICE") if name in dis.opmap}
_BINARY_OP = dis.opmap["BINARY_OP"]
# The operand of +=, the first of those that update in place.
_IN_PLACE = next(n for at, n in operations_in(compile("x += x", "", "exec")) if at == _BINARY_OP)
_OVERLAID = ("numpy", "scipy", "math", "cmath", "statistics")
_MOST = 400  # functions that are looked at
_METHODS = (types.FunctionType, staticmethod, classmethod, property)
_LIBRARIES = ("builtins", "functools", "numpy", "scipy", "fad")
DATA = {Tracer, np.ndarray, np.float64, int, float, bool, complex, str, type(None), list, tuple, dict}


def called_functions(function: Callable) -> Iterator[types.FunctionType]:
    """Walk over the functions that a function may call, as far as names, closures and classes tell."""
    waiting: list = [function]
    seen: set = set()
    while waiting and len(seen) < _MOST:
        f = waiting.pop()
        kind = type(f)
        key = (id(f.__self__), id(f.__func__)) if kind is types.MethodType else id(f)
        if key in seen:
            continue
        seen.add(key)
        if kind is types.FunctionType:
            yield f
            waiting += _find_callables(f)
        elif kind is types.MethodType:
            waiting += [f.__func__, type(f.__self__), *_callable_in([f.__self__], _names_of(f.__func__))]
        elif kind is functools.partial:
            waiting += [f.func, *_callable_in(list(f.args), frozenset())]
        elif kind is Transformed:
            waiting += [f.run, f.__wrapped__]
        elif kind is LinearMap:
            waiting.append(f.run)
        elif issubclass(kind, Wrapping):
            waiting.append(f.__wrapped__)
        elif kind in (staticmethod, classmethod):
            waiting.append(f.__func__)
        elif kind is property:
            waiting += [m for m in (f.fget, f.fset) if m is not None]
        elif issubclass(kind, type):
            waiting += [m for m in vars(f).values() if type(m) in _METHODS]
        elif kind.__module__.partition(".")[0] not in _LIBRARIES:
            waiting.append(kind)


def defaults_of(f: types.FunctionType) -> tuple:
    return (*(f.__defaults__ or ()), *(f.__kwdefaults__ or {}).values())


def held_by(f: types.FunctionType) -> list:
    """Return what the closure and the defaults of a function hold."""
    found = list(defaults_of(f)) if f.__defaults__ or f.__kwdefaults__ else []
    for cell in f.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:  # a cell that is still empty
            continue
    return found


def _find_callables(f: types.FunctionType) -> list:
    """Return what a function's code names, its closure and its defaults hold, as far as it can be called."""
    found = held_by(f)
    own = not is_machinery(f.__code__.co_filename)
    if own:
        found += [f.__globals__[n] for n in names_in(f.__code__) if n in f.__globals__]
        attributes = names_in(f.__code__)
        imported = map(sys.modules.get, imported_names(f))
        modules = [x for x in [*found, *imported] if type(x) is types.ModuleType and x is not np]
        for module in modules:  # which grows
            held = [vars(module)[n] for n in attributes if n in vars(module)]
            found += held
            modules += [x for x in held if _is_users_module(x) and all(x is not known for known in modules)]
    found += [vars(f)["__wrapped__"]] if "__wrapped__" in vars(f) else []
    return _callable_in(found, _names_of(f))


def _is_users_module(x: Any) -> bool:
    return type(x) is types.ModuleType and not is_library(x.__name__)


def _callable_in(found: list, names: frozenset) -> list:
    """Return what can be called: of objects, of what they hold in tables, and of their attributes with these names."""
    seen: set[int] = set()
    callables = []
    for x in found:  # which grows
        if id(x) in seen or len(seen) == _MOST:
            continue
        seen.add(id(x))
        found += _inside(x, names)
        if callable(x) and type(x) not in (types.BuiltinFunctionType, np.ufunc, Tracer):
            callables.append(x)
    return callables


def _inside(x: Any, names: frozenset) -> list:
    """Return what a table holds, or those attributes of an object of the user's that code names."""
    kind = type(x)
    if kind is dict:
        return list(itertools.islice(x.values(), _MOST))
    if kind in (list, tuple):
        return list(itertools.islice(x, _MOST))
    if kind in DATA or issubclass(kind, type):
        return []
    if kind.__module__.partition(".")[0] in _LIBRARIES:
        return wrapped_in(x)
    places = [vars(cls) for cls in kind.__mro__ if cls is not object]
    found = [place[name] for place in places for name in names if name in place]
    found = [types.MethodType(f, x) if type(f) is types.FunctionType else f for f in found]
    held = getattr(kind, "__dict__", {}).get("__dict__")
    if type(held) is types.GetSetDescriptorType:
        own = held.__get__(x)
        found += [own[name] for name in names if name in own]
    return found


def wrapped_in(x: Any) -> list:
    """Return the function that an object holds as ``__wrapped__``, as those of solvers do, in a list."""
    try:
        held = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return []
    f = held.get("__wrapped__") if type(held) is dict else None
    return [] if f is None else [f]


def _names_of(f: Any) -> frozenset:
    """Return the names in the code of a function of the user's."""
    own = type(f) is types.FunctionType and not is_machinery(f.__code__.co_filename)
    return names_in(f.__code__) if own else frozenset()


@functools.lru_cache(1 << 14)
def constructs_arrays(code: types.CodeType) -> bool:
    """Return whether code calls ``np.ndarray`` itself, which it may also name as the class that it is."""
    steps = list(dis.get_instructions(code)) if "ndarray" in code.co_names else []
    if any(at.argval == "ndarray" and _is_to_be_called(steps, n) for n, at in enumerate(steps)):
        return True
    return any(constructs_arrays(c) for c in code.co_consts if isinstance(c, types.CodeType))


def _is_to_be_called(steps: list[dis.Instruction], n: int) -> bool:
    """Return whether what an instruction loads is called: a place for `self` is made beside it or its module."""
    first = n - (steps[n].opname in ("LOAD_ATTR", "LOAD_METHOD"))
    made = [steps[first - 1].opname, steps[n + 1].opname] if first else [steps[n + 1].opname]
    loads = steps[first : n + 1]
    return "PUSH_NULL" in made or any("NULL" in at.argrepr or at.opname == "LOAD_METHOD" for at in loads)


@functools.lru_cache(1 << 14)
def compares_classes(code: types.CodeType) -> bool:
    """Return whether code compares a class with ``np.ndarray``."""
    steps = list(dis.get_instructions(code)) if "ndarray" in code.co_names else []
    pairs = itertools.pairwise(steps)
    if any(a.argval == "ndarray" and b.opname in ("IS_OP", "COMPARE_OP", "CONTAINS_OP") for a, b in pairs):
        return True
    return any(compares_classes(c) for c in code.co_consts if isinstance(c, types.CodeType))


@functools.lru_cache(1 << 14)
def may_identify(code: types.CodeType, name: str) -> bool:
    """Return whether code may ask whether something ``is`` what a name stands for: beside it, or in a variable."""
    steps = list(dis.get_instructions(code)) if name in code.co_names else []
    asked = [b for a, b in itertools.pairwise(steps) if b.opname == "IS_OP" and a.opname != "LOAD_CONST"]
    for at, after in itertools.pairwise(steps if asked else []):
        if at.argval != name:
            continue
        named = [at]
        if after.opname.startswith("STORE"):  # a variable, which is asked about later
            named += [x for x in steps if x.argval == after.argval and x.offset > after.offset]
        if any(_is_within(x, question) for x in named for question in asked):
            return True
    return any(may_identify(c, name) for c in code.co_consts if isinstance(c, types.CodeType))


def _is_within(at: dis.Instruction, whole: dis.Instruction) -> bool:
    """Return whether the text of an instruction is part of another's, as far as the code says where they stand."""
    if at.positions is None or whole.positions is None or None in (*at.positions, *whole.positions):
        return True
    (first, last, start, end), (top, bottom, left, right) = at.positions, whole.positions
    return (top, left) <= (first, start) and (last, end) <= (bottom, right)


@functools.lru_cache(1 << 14)
def imports_library(code: types.CodeType) -> bool:
    """Return whether code itself imports a library whose names something stands in for."""
    if any(name.partition(".")[0] in _OVERLAID for name in code.co_names):
        imported = [at.argval for at in dis.get_instructions(code) if at.opname == "IMPORT_NAME"]
        if any(name.partition(".")[0] in _OVERLAID for name in imported):
            return True
    return any(imports_library(c) for c in code.co_consts if isinstance(c, types.CodeType))


@functools.lru_cache(1 << 14)
def writes_arrays(code: types.CodeType) -> bool:
    """Return whether code writes into something by index, in place or by ``out=``, or makes arrays of lists."""
    names = names_in(code)
    if names & _FROM_LISTS or names & _WRITERS or any(type(c) is tuple and "out" in c for c in code.co_consts):
        return True
    if any(at in _STORES or (at == _BINARY_OP and operand >= _IN_PLACE) for at, operand in operations_in(code)):
        return True
    return any(writes_arrays(c) for c in code.co_consts if isinstance(c, types.CodeType))
