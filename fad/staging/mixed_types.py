"""Numbers whose type a captured loop does not know: ``t = 0 if x[i] < 0 else x[i]`` leaves one of Python's or NumPy's.

The operation that is recorded gives one type, into which both go without loss, and so the loop stays a loop. A program
can tell the difference all the same: by isinstance, as the sum of two bools of Python's is 2 and of two of NumPy's is
True, and as a number of Python's widens no array. Such a program is recorded again, with its loops step by step.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad.core.programs.graph import ARRAY, NUMBER, SCALAR, Equation, Graph, Type
from fad.core.tracing.tracer import Tracer


class MixedTypes(BaseException):
    """A program tells types of numbers apart that differ from step to step, or from one way of an ``if`` to the other.

    Not an Exception: user code may catch those.
    """


class _Notes:
    """What is known of a program while it is recorded."""

    __slots__ = ("mixed", "asked", "elements")

    def __init__(self) -> None:
        self.mixed = False  # whether a loop or choice gives numbers that are of another type at times
        self.asked: set[tuple[Any, int]] = set()  # numbers whose type the user's code asked for, with their traces
        self.elements: set[tuple[Any, int]] = set()  # numbers that a loop has put into a list


_notes: ContextVar[_Notes | None] = ContextVar("notes", default=None)


@contextmanager
def noting_types() -> Iterator[_Notes]:
    """Note for the length of a block where types of numbers differ, and whether the user's code asks for one."""
    notes = _Notes()
    token = _notes.set(notes)
    try:
        yield notes
    finally:
        _notes.reset(token)


def note_mixed() -> None:
    """Note that a loop or choice gives a number that is of another type at times."""
    notes = _notes.get()
    if notes is not None:
        notes.mixed = True


def note_number(x: Any) -> None:
    """Note a number that a loop has put into a list: it may be of another type at times, if any is."""
    notes = _notes.get()
    while notes is not None and notes.mixed and type(x) is Tracer:
        if type(x.info) is int:
            notes.elements.add((x.owner, x.info))
        x = x.wrapped


def is_element(trace: Any, number: int) -> bool:
    """Return whether a loop has put a value into a list: in a batch it is an array, of a number for each element."""
    notes = _notes.get()
    return notes is not None and (trace, number) in notes.elements


def note_question(trace: Any, number: int) -> None:
    """Note that the type of a traced number was asked for, if the user's code did so."""
    notes = _notes.get()
    if notes is not None:
        frame = sys._getframe(2)
        while frame.f_back is not None and frame.f_code.co_name in ("__class__", "class_of", "class_of_element"):
            frame = frame.f_back
        if (frame.f_globals.get("__name__") or "").partition(".")[0] not in ("fad", "numpy", "optree"):
            notes.asked.add((trace, number))


_OF_BOOLS = frozenset({"+", "-", "*", "/", "//", "%", "**", "~", "<<", ">>", "neg", "pos"})
_WIDENING = frozenset({"elementwise", "selection", "flat", "product", "bilinear"})


def is_asked(notes: _Notes, trace: Any, graph: Graph) -> bool:
    """Return whether the user's code asked for the type of a number that may be of another one at times.

    A narrow array asks, too, which a number of a batch widens.
    """
    either = {number for owner, number in notes.elements if owner is trace}
    if _widen_in_batches({*either}, graph):
        return True
    if not notes.asked:
        return False
    # Numbers that a loop or choice gives, and what is computed from these alone.
    for eq in graph.equations:
        if eq.prim.multi or (not either.isdisjoint(eq.ins) and not any(graph.types[i].shape for i in eq.ins)):
            either.update([o for o in eq.outs if not graph.types[o].shape])
    return any(owner is not trace or number in either for owner, number in notes.asked)


def _widen_in_batches(numbers: set[int], graph: Graph) -> bool:
    """Return whether numbers that a batch has in arrays, or integers of these, meet arrays of narrower dtypes."""
    for eq in graph.equations if numbers else ():
        if numbers.isdisjoint(eq.ins):
            continue
        others = [graph.types[i] for i in eq.ins if i not in numbers]
        if eq.prim.archetype in _WIDENING and any(t.kind != NUMBER and _is_narrow(t) for t in others):
            return True
        numbers.update([o for o in eq.outs if graph.types[o].dtype.kind in "iu" or eq.prim.archetype == "linear"])
    return False


def _is_narrow(t: Type) -> bool:
    return t.dtype.kind in "iuf" and t.dtype.itemsize < 8


def tells_types_apart(graph: Graph) -> bool:
    """Return whether a program has an operation that gives something else for numbers of Python's than for NumPy's."""
    return any(_tells_apart(eq, graph.types) for eq in graph.equations)


def _tells_apart(eq: Equation, types: list[Type]) -> bool:
    if any(map(tells_types_apart, eq.bodies)):
        return True
    given = [types[i] for i in eq.ins]
    if all(t.dtype == bool and t.kind != ARRAY for t in given):
        return eq.prim.symbol in _OF_BOOLS and any(t.kind == SCALAR for t in given)
    return eq.prim.archetype in _WIDENING and any(_widens(t, other) for t in given for other in given)


def _widens(number: Type, other: Type) -> bool:
    """Return whether a number gives a narrow operand another dtype that it would not give it as one of Python's."""
    if number.kind == ARRAY or other.kind == NUMBER or other.dtype.kind not in "iuf" or other.dtype.itemsize == 8:
        return False
    if number.kind == SCALAR:
        return number.dtype in (np.int64, np.float64, np.complex128)
    return number.dtype.kind == "f" and other.dtype.kind in "iu"
