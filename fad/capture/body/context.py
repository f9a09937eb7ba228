"""What is being captured: the body that is recorded at this moment, and the report of what became of each loop."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any, NamedTuple, NoReturn

from fad.capture.body.places import Cell, Module, Part, Variable, bind_name, content
from fad.control_flow.bodies.subgraph import BodyTrace, Unrecordable
from fad.core.tracing.ended_runs import end_run
from fad.core.tracing.tracer import Tracer, up_to_date
from fad.introspect.frames import is_machinery
from fad.staging.record import is_found_by_name, is_variable_found

_MOST_WAYS = 32  # of ifs in one another, calls included


class Body:
    """A body that is being recorded."""

    __slots__ = (
        "trace", "trial", "aliased", "level", "ways", "around", "grown", "growing", "changed", "made", "made_around",
        "kept", "tables", "windows", "fillable", "filled", "unfilled", "held",
        "touched", "rows", "passing", "lent", "sources", "alone", "draws", "raised", "own", "shared", "numbers",
    )  # fmt: skip

    def __init__(self, trace: Any, trial: bool, kept: tuple[dict, ...] = ()):
        self.trace = trace
        self.trial = trial  # whether it is run to see what it does: loops in it run one step, and branches both ways
        self.aliased: list[list[Tracer]] = []  # groups of arrays of which some may be one and the same
        self.level = 0  # how many inner loops are around what is done
        self.ways = 0  # how many blocks that only some steps do, the ways of an if
        self.around: Body | None = None  # of a way of an if, the body that the if is in
        self.growing: list = []  # what stands for lists to which the steps append
        self.grown: dict | None = None  # parts of objects that are lists to which the step appends; None if it may not
        self.changed: dict[Part, Any] = {}  # parts of objects that it binds: what they were bound to before
        self.made: dict[int, Any] = {}  # objects that it makes, by identity: what it does to them nobody else sees
        self.made_around: dict[int, Any] = {}  # those that it made before a block of which it looks at one step
        self.tables: dict[int, tuple] = {}  # lists that are read by a counter, by identity, and what stands for each
        self.windows: set[int] = set()  # lists that looks have seen moved, by identity
        self.fillable: set[int] = set()  # dictionaries, and lists of more than numbers, that it may fill, by identity
        self.filled: dict[int, Any] = {}  # those of which it sets items by traced keys: one, and its direction
        self.unfilled: list = []  # lists of arrays of which it has come to a place where there is none yet
        self.held: list = []  # what lists hold for which arrays stand
        self.touched: dict[int, tuple[Any, Any]] = {}  # lists that a look has read or written so: what was written
        self.rows: list[tuple[Any, Any]] = []  # lists of arrays read so, and what a look was given for an element
        # What stands for lists as they are in the middle of it, and how often the arrays of both have been written.
        self.passing: list[tuple[Any, list]] = []
        self.lent: list = []  # objects that stand for others, so that nobody may keep them
        self.sources: dict[int, list] = {}  # lists by identity that are read as they were before the loop
        self.alone = True  # whether no other body is around
        self.draws: Any = None  # the random numbers that the step draws, if it may
        self.own: list[Any] = []  # variables that are state by their names
        self.shared: set[int] | None = None  # variables that its code shares with the functions around it, by identity
        self.raised: list[Any] = []  # whether functions that it has called have raised errors
        self.numbers: tuple = ()  # of its step and those of the loops around; None of one whose steps are not counted
        self.kept = kept  # what places were bound to, as loops and branches around keep it to put it back

    def note_change(self, place: Part) -> None:
        """Note that a part of an object is about to be bound."""
        if id(place.holder) in self.sources:
            refuse("it changes a list that it runs over, or reads by a counter")
        if id(place.holder) in self.made or place in self.changed:
            return
        if type(place) is Variable and any(place.holder is cell for cell in self.own):
            return
        before = content(place)
        if type(before) not in (Tracer, bool, int) and is_outer(place):  # where a traced value shall not be left
            refuse_outer(place)
        self.changed[place] = before


def is_outer(place: Part) -> bool:
    """Return whether a place was there before the function that is recorded, and is there behind it."""
    if type(place) is Variable and is_variable_found(place.holder):
        return True
    return type(place.holder) is Module or is_found_by_name(place.holder)


def refuse_outer(place: Part) -> NoReturn:
    """Refuse a step that binds a place from outside of the function to something else than an integer."""
    if type(place) is Variable or type(place.holder) is Module:
        refuse(f"it binds {place}, a variable from outside of the function, to what is no integer")
    refuse(f"it changes a {type(place.holder).__name__} from outside of the function")


_current: ContextVar[Body | None] = ContextVar("body", default=None)


def current() -> Body | None:
    """Return the body of a captured loop or branch that is being recorded, the innermost one."""
    return _current.get()


@contextlib.contextmanager
def recording_body(trace: Any, trial: bool, kept: dict | None = None, way: bool = False) -> Iterator[None]:
    """Say for the length of a block which body is being recorded; then put back what it bound parts of objects to.

    It may be a way of an ``if`` in the body that is recorded now.
    """
    around = _current.get()
    outer = () if around is None else around.kept
    body = Body(trace, trial, outer if kept is None else (*outer, kept))
    if around is not None:
        body.alone = False
        body.tables, body.windows = around.tables, around.windows
        body.fillable, body.filled, body.unfilled = around.fillable, around.filled, around.unfilled
        body.held, body.numbers = around.held, around.numbers
    if around is not None and way:
        body.around, body.growing, body.passing = around, around.growing, around.passing
    token = _current.set(body)
    try:
        yield
    finally:
        _current.reset(token)
        put_back(body.changed)


def put_back(changed: dict) -> None:
    """Bind parts of objects to what they were bound to before."""
    for place, before in reversed(changed.items()):
        bind_name(place, before)


@contextlib.contextmanager
def looking_at_one_step(body: Body) -> Iterator[None]:
    """Let a block be one step of many: objects made before are for its length not the body's own."""
    outer, body.made = body.made, {}
    around, body.made_around = body.made_around, body.made_around | outer
    body.level += 1
    try:
        yield
    finally:
        body.level -= 1
        body.made |= outer
        body.made_around = around
        body.changed = {place: x for place, x in body.changed.items() if id(place.holder) not in outer}


@contextlib.contextmanager
def noting_changes(body: Body) -> Iterator[dict[Part, Any]]:
    """Give the parts of objects that a block of a body binds, with what they were bound to before the block."""
    outer, body.changed = body.changed, {}
    try:
        yield body.changed
    finally:
        body.changed = outer | {place: x for place, x in body.changed.items() if place not in outer}


@contextlib.contextmanager
def in_one_way(body: Body) -> Iterator[None]:
    """Let a block be what only some steps do.

    A function that calls itself in such blocks does not end in a look, which runs both ways: Python's limit would
    end it, much later.
    """
    if body.ways == _MOST_WAYS:
        refuse("ifs on values that differ from step to step are in one another without end: a function calls itself")
    body.ways += 1
    try:
        yield
    finally:
        body.ways -= 1


def bind_result(place: Cell, value: Any) -> None:
    """Bind a place to what a loop or branch made of it, which may be within the body of another."""
    body = _current.get()
    if body is not None and isinstance(place, Part):
        body.note_change(place)
    bind_name(place, value)


def refuse(why: str) -> NoReturn:
    """Give the recording of the current body up: it does what a program cannot repeat, or what cannot be seen."""
    body = _current.get()
    if body is None:
        raise AssertionError("nothing is being captured")
    end_run(body.trace, Unrecordable(body.trace, why))


def body_trace(x: Any) -> Any:
    """Return the trace of the body that a traced value belongs to, the innermost one; None if there is none."""
    if type(x) is not Tracer:
        return None
    x = up_to_date(x)
    while type(x) is Tracer:
        if isinstance(x.owner, BodyTrace):
            return x.owner
        x = x.wrapped
    return None


def is_staged(x: Any) -> bool:
    """Return whether a value differs from step to step of a body being recorded, so that Python cannot ask it."""
    return _current.get() is not None and type(x) is Tracer and body_trace(x) is not None


# --- the report -----------------------------------------------------------------------------------------------------


class Entry(NamedTuple):
    """What became of a loop."""

    file: str
    line: int
    what: str  # "captured", "unrolled" or "recorded step by step"
    detail: str
    refusals: int = 0  # how often it could not be captured since it last was

    def __str__(self) -> str:
        name = self.file.replace("\\", "/").rpartition("/")[2]
        return f"loop at {name}:{self.line}: {self.what}" + (f": {self.detail}" if self.detail else "")


_report: ContextVar[dict | None] = ContextVar("report", default=None)


@contextlib.contextmanager
def reporting() -> Iterator[dict]:
    """Gather for the length of a block what becomes of loops, by their places."""
    entries: dict = {}
    token = _report.set(entries)
    try:
        yield entries
    finally:
        _report.reset(token)


def forget() -> None:
    """Note that the program is recorded again without captured loops, if it had any."""
    entries = _report.get() or {}
    for key, entry in entries.items():
        if entry.what == "captured":
            why = "behind it an array is written that may have another name, or the type of a number is asked for"
            why += ", or an error is caught"
            entries[key] = entry._replace(what="recorded step by step", detail=why)


# The user's loop in whose place one of fad's is run, which is written as users write theirs.
_in_place_of: ContextVar[tuple[str, int] | None] = ContextVar("in_place_of", default=None)


@contextlib.contextmanager
def reporting_as(file: str, line: int) -> Iterator[None]:
    """Let what becomes of fad's own loops in a block be reported of the user's."""
    token = _in_place_of.set((file, line))
    try:
        yield
    finally:
        _in_place_of.reset(token)


def report(file: str, line: int, what: str, detail: str = "", refused: bool = False) -> None:
    """Note what became of a loop; the last time counts."""
    entries, body = _report.get(), _current.get()
    if is_machinery(file):
        file, line = _in_place_of.get() or (file, line)
    if entries is not None and (body is None or not body.trial) and not is_machinery(file):
        refusals = 0 if what == "captured" else count_refusals(file, line) + refused
        entries[file, line] = Entry(file, line, what, detail, refusals)


def count_refusals(file: str, line: int) -> int:
    """Return how often a loop could not be captured in this recording, since it last was."""
    entry = (_report.get() or {}).get((file, line))
    return 0 if entry is None else entry.refusals
