"""What a function can reach without being run: the objects that its code, closure and attributes name."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable, Iterator
from typing import Any

_MOST = 100  # objects that are looked at, from the function on
CONTAINERS = (dict, list, tuple)
_PLAIN = (bool, int, float, complex, str, bytes, type(None))  # what holds nothing
_LIBRARIES = ("fad", "numpy", "scipy")  # their functions are not read for names, only their closures for functions
WRAPPERS: set[type] = set()
"""Classes of fad whose attribute `fun` is a function of the user's."""


def reached(fun: Any) -> Iterator[Any]:
    """Give what a function finds by name, and what that finds, without running anything; each once."""
    seen: set[int] = set()
    todo = [fun]
    for x in todo:
        if id(x) not in seen:
            if len(seen) == _MOST:
                break
            seen.add(id(x))
            yield x
            todo += _neighbours(x)


def _neighbours(x: Any) -> list:
    """Return what an object is known to use: a function its names, an object what it holds.

    Objects are asked for their types alone: others may stand in for them, and raise when they are looked at.
    """
    kind = type(x)
    if kind is types.MethodType:
        return [x.__self__, x.__func__]
    if kind is types.BuiltinFunctionType:
        return [x.__self__]
    if kind in WRAPPERS:
        return [x.fun]
    if issubclass(kind, functools.partial):
        return [x.func, *x.args, *x.keywords.values()]
    found = list(held_by(x).values())
    if kind is types.FunctionType:
        found += cells_of(x).values()
        if is_users(x):
            known = x.__globals__
            found += x.__defaults__ or ()
            found += [known[name] for code in codes_in(x.__code__) for name in code.co_names if name in known]
    elif type(call := getattr(kind, "__call__", None)) is types.FunctionType:  # noqa: B004 (the type is asked)
        found.append(call)
    return found


def held_by(x: Any) -> dict[str, Any]:
    """Return the attributes of an object that is no module and no class; of a container what is in it."""
    if type(x) in CONTAINERS:
        items = list(x.items())[:_MOST] if type(x) is dict else enumerate(x[:_MOST])
        return {str(name): value for name, value in items if type(value) not in _PLAIN}
    if issubclass(type(x), (type, types.ModuleType)):
        return {}
    try:
        held = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}


def is_users(fun: types.FunctionType) -> bool:
    return (fun.__module__ or "").partition(".")[0] not in _LIBRARIES


def cells_of(fun: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # a cell that is still empty
            continue
    return found


def codes_in(code: types.CodeType) -> list[types.CodeType]:
    """Return the code of a function, and of the functions that it makes."""
    found = [code]
    for c in found:
        found += [x for x in c.co_consts if isinstance(x, types.CodeType)]
    return found


def defaults_of(fun: types.FunctionType) -> dict[str, Any]:
    given = fun.__defaults__ or ()
    names = fun.__code__.co_varnames[: fun.__code__.co_argcount]
    return dict(zip(names[len(names) - len(given) :], given, strict=True))


def line_that_reads(code: types.CodeType, known: dict, held: set, reads: Callable[[Any], bool]) -> int | None:
    """Follow names like ``np.random.rand`` through the code; attributes of unknown objects are known by name alone."""
    import dis  # only where there is something to tell

    value: Any = None
    line = code.co_firstlineno
    for step in dis.get_instructions(code):
        line = (step.positions and step.positions.lineno) or line
        if step.opname in ("LOAD_ATTR", "LOAD_METHOD"):
            module = isinstance(value, types.ModuleType)
            if not module and step.argval in held:
                return line
            value = getattr(value, step.argval, None) if module else None
        elif step.opname.startswith(("LOAD_GLOBAL", "LOAD_NAME", "LOAD_DEREF", "LOAD_FAST", "STORE_FAST_LOAD")):
            names = step.argval if type(step.argval) is tuple else (step.argval,)  # since Python 3.13 two at once
            if any(reads(known.get(name)) for name in names):
                return line
            value = known.get(names[-1])
        else:
            continue
        if reads(value):
            return line
    return None
