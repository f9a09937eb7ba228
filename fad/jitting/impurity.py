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

from fad.core.graph import Graph
from fad.errors import ImpureFunctionWarning
from fad.introspect.frames import show_place
from fad.introspect.reachable import (
    CONTAINERS,
    cells_of,
    codes_in,
    defaults_of,
    held_by,
    is_users,
    line_that_reads,
    reached,
)

_CLOCKS = (time.time, time.perf_counter, time.monotonic)


class Hidden:
    """What a function could read besides its arguments, as it was before the function ran."""

    __slots__ = ("fun", "states", "begun", "alone")

    def __init__(self, fun: Callable, found: list):
        self.fun = fun
        self.states = [(source, ask, ask()) for source, ask in _sources(found)]
        self.alone = threading.active_count() == 1  # another thread may draw from the global ones meanwhile
        self.begun = [clock() for clock in _CLOCKS]

    def warn(self, graph: Graph) -> bool:
        """Warn of the first source that changed, or of a clock's time among the constants; tell if there is one."""
        ended = [clock() for clock in _CLOCKS]
        for source, ask, before in self.states:
            if ask() != before:
                place = _place(self.fun, functools.partial(_draws, source))
                if place or (self.alone and not _may_draw(graph)):
                    return _warn(f"draws random numbers from {_name(source)}", "a key of fad.random", place)
        spans = list(zip(self.begun, ended, strict=True))
        if any(type(x) is float and any(a <= x <= b for a, b in spans) for x in graph.constants.values()):
            place = _place(self.fun, _is_clock)
            return place is not None and _warn("reads a clock", "the time", place)
        return False


def _may_draw(graph: Graph) -> bool:
    """Tell whether an operation of a program, or of the bodies of its loops and branches, draws for ends of its own."""
    for eq in graph.equations:
        bodies = [x for v in eq.params.values() for x in (v if type(v) is tuple else (v,)) if type(x) is Graph]
        if eq.prim.extra.get("draws") or any(map(_may_draw, bodies)):
            return True
    return False


def _draws(source: Any, x: Any) -> bool:
    """Tell whether a thing that code names is a source of random numbers, or a function that draws from it."""
    if x is source or (type(x) in CONTAINERS and any(held is source for held in held_by(x).values())):
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
            if not issubclass(kind, of_python.SystemRandom):  # which has no state to ask for
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


# --- the line that draws ----------------------------------------------------------------------------------------------


def _place(fun: Any, reads: Callable[[Any], bool]) -> tuple[str, int] | None:
    """Return the first line, in the user's functions, that names something that `reads`."""
    known = list(reached(fun))
    held = {name for x in known for name, value in held_by(x).items() if reads(value)}
    for f in known:
        if type(f) is types.FunctionType and is_users(f):
            for code in codes_in(f.__code__):
                line = line_that_reads(code, {**f.__globals__, **defaults_of(f), **cells_of(f)}, held, reads)
                if line is not None:
                    return code.co_filename, line
    return None
