"""Functions that are run later, or again: the traced values and arrays that they find by name, as they are now."""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad import tree
from fad.core.handles.buffers import PLAIN, borrow, lose, plain
from fad.core.runs.outside import lend, take_back
from fad.core.runs.overlay_needs import needs_of
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import (
    RUNS,
    contents_of,
    copy_layout,
    finding_writes,
    is_outside,
    replace_root,
    root_of,
    snapshot,
)
from fad.errors import ItemAssignmentError, TracerConversionError
from fad.introspect.reachable import Walk, code_names
from fad.transforms.arguments.mutation import Earlier, equal
from fad.transforms.outside.closed_over import find_closed_over
from fad.transforms.outside.handles import Handles
from fad.transforms.outside.kept_names import find_plain, holding, keep_names, read_place


class Kept:
    """What functions find by name as it is now, for rules that run them later, or again: what they write is undone."""

    __slots__ = ("earlier", "found", "functions", "handles", "places", "writes")

    def __init__(self, *functions: Any):
        self.functions = functions
        walk = Walk(functions)
        found = list(walk)
        self.found = find_plain(walk.places)
        self.places: list = []  # those that hold numbers, when the solver has returned
        handles = [x for x in found if type(x) is Tracer]
        lent = [x for x in map(root_of, handles) if is_outside(x)]
        self.writes = any(needs_of(f).spaces for f in functions if f is not None)
        held = [*found, *(x.wrapped for x in lent)]
        self.earlier = Earlier((x for x in held if type(x) is np.ndarray), copy_all=True)
        self.handles = Handles(x for x in handles if not is_outside(root_of(x)))

    def keep_made(self) -> None:
        """Keep the arrays, too, that the functions made since and find by name now, and the numbers that they left."""
        self.places = find_plain(self.found)
        if self.writes:
            found = [x for x in Walk(self.functions) if type(x) is Tracer]
            self.handles.add(x for x in found if not is_outside(root_of(x)))

    def run(self, function: Callable, args: tuple, kwargs: dict, changed: list[tuple] | None) -> Any:
        """Run one of the functions on what it found; `changed` are arrays from outside that hold something else now.

        None says that it runs for the first time: what it writes into arrays from outside stays there.
        """
        if not (self.writes or changed or self.handles.were_written()):
            return function(*args, **kwargs)
        outside = contextlib.nullcontext() if changed is None else self.earlier.restore(changed, self.writes)
        with outside, self.handles.restore(), _leaving_plain():
            return tree.map(_snapshot, function(*args, **kwargs))

    def as_then(self, function: Callable) -> Callable:
        """Return a function that finds numbers in objects, dictionaries, lists as they were when the solver returned.

        What it has made of them itself by then it goes on with.
        """
        if all(place.value is read_place(place) for place in self.places):
            return function

        def run(*args: Any, **kwargs: Any) -> Any:
            with holding(self.places):
                return function(*args, **kwargs)

        return run


@contextlib.contextmanager
def _leaving_plain() -> Iterator[None]:
    """For the length of a block a function runs that may make an array and keep it: it holds no traced values then.

    The next run writes others into it, or plain numbers. What it stood for is not written back, for a tape may have the
    memory by now: it gets a copy.
    """
    try:
        with finding_writes(undoable=True) as written:
            yield
    finally:
        for x, (_, trace, _, then) in written.found:
            if trace is PLAIN and x.owner is not PLAIN:
                replace_root(x, then)


_NAMES_NOTHING = {types.ModuleType, types.BuiltinFunctionType, np.ufunc, type(np.sum), type(None)}


def finds_nothing(function: Any) -> bool:
    """Return whether a function finds no arrays by name, as far as a look at its globals tells."""
    if type(function) is not types.FunctionType or function.__closure__ or function.__defaults__:
        return function is None
    known = function.__globals__
    return not function.__kwdefaults__ and all(
        type(known.get(name)) in _NAMES_NOTHING for name in code_names(function.__code__).loaded
    )


def _snapshot(x: Any) -> Any:
    return snapshot(x) if type(x) is Tracer else x


def with_own_scratch(function: Callable) -> Callable:
    """Return a function that writes into copies of the arrays which it finds by name, where a run on them failed.

    A solver that takes derivatives itself runs a function of plain numbers on traced ones, which its scratch arrays do
    not take. Nothing is traced in the user's program, so nobody else is to see what such a run writes.
    """
    if not needs_of(function).spaces:
        return function
    failed = False

    def run(*args: Any) -> Any:
        nonlocal failed
        traced = Tracer in map(type, tree.leaves(args))
        if not traced or not failed:
            try:
                return function(*args)
            except (TracerConversionError, TypeError, ValueError):
                if not traced:
                    raise
                failed, RUNS.refused = True, None
        lent = lend(function, own=True)
        try:
            return tree.map(_snapshot, function(*args))
        finally:
            take_back(lent)

    return run


class Closure:
    """A function that is run by a solver: the traced values of its closure, which are operands of the solver's rules.

    It may be run again later, and write wherever NumPy's would: what it finds by name is as it was when this was made.
    What it writes into arrays that the program made has no derivative, so it is lost; arrays from outside are written
    by the first run alone.
    """

    def __init__(self, function: Any):
        self.__wrapped__ = function = keep_names(function)
        self.found, self.build = find_closed_over(function)
        self.held = [snapshot(x) for x in self.found]
        self.kept: Kept | None = None
        self.written: set[int] = set()  # which of the held arrays were written
        self.is_new = True

    def keep(self, *operands: Any) -> Closure:
        """Keep what the function finds if anything is traced that it is run on."""
        if self.__wrapped__ is not None and any(type(plain(x)) is Tracer for x in (*operands, *self.held)):
            self.kept = Kept(self.__wrapped__)
        return self

    def at(self, values: Any) -> Callable:
        """Return the function with values in the place of the traced ones that it holds."""
        kept, values = self.kept, list(values)
        first, self.is_new = self.is_new, False
        if kept is None:
            return self.build(values)
        changed = None if first else kept.earlier.find_changed()
        if not kept.writes:
            function = self.build(values) if first else kept.as_then(self.build(values))
            if not changed and not kept.handles.were_written():
                return function
            return lambda *args, **kwargs: kept.run(function, args, kwargs, changed)

        def run(*args: Any, **kwargs: Any) -> Any:
            own = [borrow(x) if RUNS.buffers else copy_layout(x) if type(x) is np.ndarray else x for x in values]
            function = self.build(own)
            out = kept.run(function if first else kept.as_then(function), args, kwargs, changed)
            self._note_written(values, own)
            return out

        return run

    def _note_written(self, values: list, own: list) -> None:
        """Note which of the held arrays were written, which were copies of their values."""
        written = {i for i, (x, y) in enumerate(zip(values, own, strict=True)) if _was_written(x, y)}
        self.written |= written
        roots = [id(root_of(x)) for x in self.found]
        if any(roots.count(roots[i]) > 1 for i in written):
            raise ItemAssignmentError(
                "a function given to a solver wrote into an array that holds traced values, and which it knows by two "
                "names, as an array and as a view of it: use one of them"
            )

    def settle(self) -> None:
        """Let the arrays that were written with plain numbers be lost, when the solver has returned."""
        if self.kept is not None:
            self.kept.keep_made()
            for x in (*self.kept.handles.written.values(), *(self.found[i] for i in self.written)):
                lose(x)


def _was_written(x: Any, own: Any) -> bool:
    if type(own) is Tracer:
        return contents_of(own) != (0, 0)
    return type(x) is np.ndarray and not equal(x, own)
