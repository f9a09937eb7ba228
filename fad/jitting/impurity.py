"""Numbers that a program would repeat: what a function draws, or reads from a clock, while it is recorded.

The states of generators are compared before and after the function runs: NumPy's global one, and those that the
function reaches by its global names, its closure or its object, Python's ``random`` included. A recording alone pays
for it, never a call of a program. The line is looked for in the code of the function, once something was drawn.
"""

from __future__ import annotations

import functools
import sys
import threading
import time
import types
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from fad.core.programs.graph import Graph
from fad.errors import ImpureFunctionWarning
from fad.introspect.frames import show_place
from fad.introspect.reachable import MOST, PLAIN, codes_of, is_of_library, reach

_CONTAINERS = (dict, list, tuple)
_CLOCKS = (time.time, time.perf_counter, time.monotonic)


class Hidden:
    """What a function could read besides its arguments, as it was before the function ran."""

    __slots__ = ("fun", "states", "begun", "alone")

    def __init__(self, fun: Callable, found: list):
        self.fun = fun
        self.states = [(source, read, read()) for source, read in _sources(found)]
        self.alone = threading.active_count() == 1  # another thread may draw from the global ones meanwhile
        self.begun = [clock() for clock in _CLOCKS]

    def warn(self, graph: Graph) -> bool:
        """Warn of the first source that changed, or of a clock's time among the constants; return whether one did."""
        ended = [clock() for clock in _CLOCKS]
        for source, read, before in self.states:
            if read() != before:
                place = _place(self.fun, functools.partial(_draws, source))
                if place or (self.alone and not _may_draw(graph)):
                    return _warn(f"draws random numbers from {_name(source)}", "a key of fad.random", place)
        spans = list(zip(self.begun, ended, strict=True))
        if any(type(x) is float and any(a <= x <= b for a, b in spans) for x in graph.constants.values()):
            place = _place(self.fun, _is_clock)
            return place is not None and _warn("reads a clock", "the time", place)
        return False


def _may_draw(graph: Graph) -> bool:
    """Whether an operation of a program, or of the bodies of its loops and branches, draws for ends of its own."""
    for eq in graph.equations:
        bodies = [x for v in eq.params.values() for x in (v if type(v) is tuple else (v,)) if type(x) is Graph]
        if eq.prim.draws or any(map(_may_draw, bodies)):
            return True
    return False


def _draws(source: Any, x: Any) -> bool:
    """Return whether a thing that code names is a source of random numbers, or a function that draws from it."""
    if x is source or (type(x) in _CONTAINERS and any(held is source for held in _list_held(x).values())):
        return True
    try:
        return x is not None and getattr(x, "__self__", None) is source
    except Exception:  # of an object that stands in for another
        return False


def _is_clock(x: Any) -> bool:
    return type(x) is types.BuiltinFunctionType and x in _CLOCKS


def _warn(does: str, instead: str, place: tuple[str, int] | None) -> bool:
    text = (
        f"a jitted function {does}, {f'at {show_place(place)}' if place else 'in a function that it calls'}: "
        "its program repeats the numbers of this call in every later one. "
        f"Pass {instead} as an argument, or the numbers themselves"
    )
    if place:
        warnings.warn_explicit(text, ImpureFunctionWarning, *place)
    else:
        warnings.warn(text, ImpureFunctionWarning, stacklevel=2)
    return True


# --- sources of random numbers, and a short answer that changes when one is drawn from --------------------------------


def _sources(found: list) -> Iterator[tuple[Any, Callable]]:
    """Give NumPy's global generator, and the generators among what a function reaches, with what tells their states."""
    # Modules that nobody has imported so far are left alone: importing them takes longer than importing fad.
    of_python, of_numpy = sys.modules.get("random"), sys.modules.get("numpy.random")
    if of_numpy is not None:
        yield of_numpy.random.__self__, _position(of_numpy.get_bit_generator())
    for x in found if of_python or of_numpy else ():
        kind = type(x)
        if of_python is not None and (x is of_python or issubclass(kind, of_python.Random)):
            x = x.random.__self__ if x is of_python else x
            if not issubclass(kind, of_python.SystemRandom):  # which has no state to request
                yield x, x.getstate
        elif of_numpy is None:
            continue
        elif issubclass(kind, of_numpy.RandomState):
            yield x, _position(x._bit_generator)
        elif issubclass(kind, of_numpy.Generator):
            yield x, _position(x.bit_generator)


def _position(bits: Any) -> Callable:
    """Return a function that gives the state of a bit generator: of MT19937, which is long, a few words in memory."""
    if type(bits).__name__ != "MT19937":
        return lambda: bits.state
    import ctypes

    words = (ctypes.c_uint32 * 625).from_address(bits.ctypes.state_address)
    return lambda: (words[624], words[0], words[623])


def _name(source: Any) -> str:
    kind = type(source)
    for module in ("random", "numpy.random"):
        if module in sys.modules and source is sys.modules[module].random.__self__:
            return f"the module {module}"
    return f"a {kind.__name__} of {kind.__module__.partition('.')[0]}"


def _list_held(x: Any) -> dict[str, Any]:
    """Return the attributes of an object that is no module and no class; of a container what is in it."""
    if type(x) in _CONTAINERS:
        items = list(x.items())[:MOST] if type(x) is dict else enumerate(x[:MOST])
        return {str(name): value for name, value in items if type(value) not in PLAIN}
    if issubclass(type(x), (type, types.ModuleType)):
        return {}
    try:
        held = object.__getattribute__(x, "__dict__")
    except AttributeError:
        return {}
    return held if type(held) is dict else {}


def _cells(fun: types.FunctionType) -> dict[str, Any]:
    found = {}
    for name, cell in zip(fun.__code__.co_freevars, fun.__closure__ or (), strict=False):
        try:
            found[name] = cell.cell_contents
        except ValueError:  # a cell that is still empty
            continue
    return found


# --- the line that draws ----------------------------------------------------------------------------------------------


def _place(fun: Any, reads: Callable[[Any], bool]) -> tuple[str, int] | None:
    """Return the first line, in the user's functions, that names something that `reads`."""
    known = list(reach(fun))
    held = {name for x in known for name, value in _list_held(x).items() if reads(value)}
    for f in known:
        if type(f) is types.FunctionType and not is_of_library(f):
            for code in codes_of(f.__code__):
                line = _line(code, {**f.__globals__, **_defaults(f), **_cells(f)}, held, reads)
                if line is not None:
                    return code.co_filename, line
    return None


def _defaults(fun: types.FunctionType) -> dict[str, Any]:
    given = fun.__defaults__ or ()
    names = fun.__code__.co_varnames[: fun.__code__.co_argcount]
    return dict(zip(names[len(names) - len(given) :], given, strict=True))


def _line(code: types.CodeType, known: dict, held: set, reads: Callable[[Any], bool]) -> int | None:
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
