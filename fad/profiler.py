"""A profiler: which operations took the time and the memory, forward and backward apart.

While a profile is active the forward functions of all operations are replaced by timed ones, and backward passes are
watched rule by rule. When none is active nothing is replaced, and nothing is paid. Other threads are not recorded.

Times are those of the clock, and of the device's own events where the operands live on one.

What is timed is fad's operations: in `fad.grad` and related functions, and in the eager API. NumPy on plain arrays goes
to NumPy alone, and a jitted function is one call.
"""

from __future__ import annotations

import contextlib
import functools
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad.backends import behind
from fad.core.primitives.primitive import REGISTRY, Primitive
from fad.core.tracing.tracer import Tracer
from fad.introspect.frames import show_place, user_place
from fad.transforms.tape_hooks import Note, Watcher, plain, watching
from fad.viz import tables, timelines

__all__ = ["Averages", "Event", "Row", "profile", "record_function"]


def __dir__() -> list[str]:
    return __all__


_active: ContextVar[profile | None] = ContextVar("active_profile", default=None)
# (primitive, function that replaces a forward function held elsewhere): the eager API's operators add themselves.
SWAPS: list[tuple[Primitive, Callable]] = []
_lock = threading.Lock()
_users = [0]
_originals: list[tuple[Any, Callable, Callable | None]] = []


class Event:
    """One call: what ran, when, how long (seconds), how much of that in calls inside it, and its shapes and bytes."""

    __slots__ = ("name", "kind", "start", "end", "inside", "device", "read", "shapes", "bytes", "place", "thread")

    def __init__(self, name: str, kind: str, start: float):
        self.name = name
        self.kind = kind  # "forward", "backward" or "block"
        self.start = self.end = start
        self.inside: list[Event] = []  # the calls inside it
        self.read: Callable | None = None  # gives the seconds by the device's events, for which it waits
        self.device: float | None = None
        self.shapes: tuple = ()
        self.bytes = 0
        self.place = ""
        self.thread = threading.get_native_id()  # trace viewers take ids of 32 bits

    @property
    def total(self) -> float:
        if self.read is not None and self.device is None:
            self.device = self.read()
        return self.end - self.start if self.device is None else self.device

    @property
    def own(self) -> float:
        return self.total - sum(e.total for e in self.inside)


class Row:
    """What calls of one kind took together; times in microseconds."""

    __slots__ = ("name", "kind", "shapes", "place", "calls", "self_time_total", "time_total", "bytes")

    def __init__(self, event: Event, shapes: Any):
        self.name = event.name
        self.kind = event.kind
        self.shapes = shapes
        self.place = event.place
        self.calls = 0
        self.self_time_total = 0.0
        self.time_total = 0.0
        self.bytes = 0

    @property
    def key(self) -> str:
        return self.name if self.kind != "backward" else f"{self.name} (backward)"

    @property
    def count(self) -> int:
        return self.calls

    @property
    def time_avg(self) -> float:
        return self.time_total / self.calls

    def __repr__(self) -> str:
        return f"<{self.key}: {self.calls} calls, {self.self_time_total:.1f} us>"


_SORTS = {
    "self_time_total": lambda r: -r.self_time_total,
    "time_total": lambda r: -r.time_total,
    "time_avg": lambda r: -r.time_avg,
    "calls": lambda r: -r.calls,
    "bytes": lambda r: -r.bytes,
    "name": lambda r: r.key,
}
_ALIASES = {
    "self_cpu_time_total": "self_time_total", "cpu_time_total": "time_total", "cpu_time": "time_avg", "count": "calls",
    "self_cpu_memory_usage": "bytes", "cpu_memory_usage": "bytes", "self_cuda_time_total": "self_time_total",
    "cuda_time_total": "time_total",
}  # fmt: skip
_TEXT = ("Name", "Input shapes", "Line")  # columns that are no numbers


class Averages(list):
    """The rows of a profile; :meth:`table` prints them."""

    def __init__(self, rows: Any, memory: bool, shapes: bool, places: bool):
        super().__init__(rows)
        self._memory, self._shapes, self._places = memory, shapes, places

    @property
    def self_time_total(self) -> float:
        """The time of all operations together, in microseconds; labelled blocks count what their operations do not."""
        return sum(r.self_time_total for r in self)

    def table(self, sort_by: str | None = "self_time_total", row_limit: int = 10, **_: Any) -> str:
        """Return the rows as text: name, share and amount of self and total time, calls, and what else was recorded.

        Parameters
        ----------
        sort_by : str
            ``"self_time_total"``, ``"time_total"``, ``"time_avg"``, ``"calls"``, ``"bytes"`` or ``"name"``;
            PyTorch's names (``"self_cpu_time_total"``) mean the same.
        row_limit : int
            How many rows to print; -1 for all.
        """
        sort_by = _ALIASES.get(sort_by or "name", sort_by or "name")
        if sort_by not in _SORTS:
            raise ValueError(f"sort_by must be one of {sorted(_SORTS)}, not {sort_by!r}")
        rows = sorted(self, key=_SORTS[sort_by])
        rows = rows if row_limit < 0 else rows[:row_limit]
        total = self.self_time_total
        head, cells = self._cells(rows, total or 1.0)
        text = _align(head, cells, _TEXT)
        return f"{text}\nSelf time total: {_time(total)}"

    def _cells(self, rows: list, total: float) -> tuple[list, list]:
        head = ["Name", "Self %", "Self", "Total %", "Total", "Time avg", "# of Calls"]
        head += ["Bytes"] * self._memory + ["Input shapes"] * self._shapes + ["Line"] * self._places
        cells = []
        for r in rows:
            row = [
                r.key, f"{100 * r.self_time_total / total:.2f}%", _time(r.self_time_total),
                f"{100 * r.time_total / total:.2f}%", _time(r.time_total), _time(r.time_avg), str(r.calls),
            ]  # fmt: skip
            row += (
                [f"{r.bytes:,}"] * self._memory + [str(list(r.shapes or ()))] * self._shapes + [r.place] * self._places
            )
            cells.append(row)
        return head, cells

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return the rows for a notebook, behind each name a bar: its share of the self time."""
        rows = sorted(self, key=_SORTS["self_time_total"])
        total = self.self_time_total
        head, cells = self._cells(rows, total or 1.0)
        shares = [r.self_time_total / (total or 1.0) for r in rows]
        if self._places:
            cells = [[*row[:-1], tables.without_folder(row[-1])] for row in cells]
        shown = tables.table(head, cells, _TEXT, shares)
        return shown + tables.paragraph(f"Self time total: {_time(total)}")


def _time(us: float) -> str:
    return f"{us / 1e6:.3f}s" if us >= 1e6 else f"{us / 1e3:.3f}ms" if us >= 1e3 else f"{us:.3f}us"


def _align(head: list, rows: list, left: tuple) -> str:
    """Return a table: numbers to the right of their columns, text to the left."""
    widths = [max(len(r[i]) for r in (head, *rows)) for i in range(len(head))]
    rule = "  ".join("-" * w for w in widths)
    sides = [str.ljust if h in left else str.rjust for h in head]
    lines = ["  ".join(put(c, w) for put, c, w in zip(sides, r, widths, strict=True)) for r in (head, *rows)]
    lines = [line.rstrip() for line in lines]
    return "\n".join([rule, lines[0], rule, *lines[1:], rule])


def device_timer(operands: Any) -> Callable | None:
    """Start a clock of the device that an operand lives on; None if all live on the host.

    It is stopped by calling it, and what that returns gives the seconds: nothing waits before.
    """
    for x in operands:
        if type(x) is not np.ndarray and hasattr(x, "dtype"):
            backend = behind(x)
            if backend.name != "numpy":
                return backend.timer()
    return None


class _Backward(Watcher):
    """Times the rules of backward passes for a profile."""

    def __init__(self, owner: profile):
        self.owner = owner

    def backward(self, note: Note, cts: list, run: Callable) -> None:
        stop = device_timer(cts)
        event = self.owner._begin(note.name, "backward")
        found: list = []
        try:
            found = run()
            event.read = stop and stop()
        finally:
            self.owner._finish(event, cts, found, note.place)


class profile:
    """Record every operation of a ``with`` block; ``print(prof.key_averages().table())`` shows them.

    Parameters
    ----------
    record_shapes : bool
        Note the shapes of operands, for ``key_averages(group_by_input_shape=True)``.
    profile_memory : bool
        Note the bytes of results.
    with_stack : bool
        Note the user's line of every call; rows are then distinguished by line.

    Examples
    --------
    >>> import fad, numpy as np
    >>> with profile() as prof:
    ...     _ = fad.grad(lambda x: np.sum(np.sin(x)))(np.ones(3))
    >>> sorted((r.key, r.calls) for r in prof.key_averages())
    [('sin', 1), ('sin (backward)', 1), ('sum_over', 1), ('sum_over (backward)', 1)]
    """

    def __init__(
        self, enabled: bool = True, *, record_shapes: bool = False, profile_memory: bool = False,
        with_stack: bool = False, **_: Any,
    ):  # fmt: skip
        self.enabled = enabled
        self.record_shapes = record_shapes
        self.profile_memory = profile_memory
        self.with_stack = with_stack
        self.events: list[Event] = []
        self._open: list[Event] = []
        self._exit = contextlib.ExitStack()
        self.started = self.ended = 0.0

    def __enter__(self) -> profile:
        if self.enabled:
            token = _active.set(self)
            self._exit.callback(_active.reset, token)
            self._exit.enter_context(_time_forwards())
            self._exit.enter_context(watching(_Backward(self)))
        self.started = time.perf_counter()
        return self

    def __exit__(self, *_: Any) -> None:
        self.ended = time.perf_counter()
        self._exit.close()

    # --- recording ------------------------------------------------------------------------------------------------

    def _begin(self, name: str, kind: str) -> Event:
        event = Event(name, kind, time.perf_counter())
        self._open.append(event)
        return event

    def _finish(self, event: Event, operands: Any, results: Any, place: str = "") -> None:
        event.end = time.perf_counter()
        self._open.remove(event)
        if self._open:
            self._open[-1].inside.append(event)
        if self.record_shapes:
            event.shapes = tuple(tuple(plain(x).shape) for x in operands if hasattr(x, "shape"))
        if self.profile_memory:
            results = results if type(results) in (tuple, list) else (results,)
            event.bytes = sum(int(getattr(plain(x), "nbytes", 0)) for x in results if x is not None)
        if self.with_stack:
            event.place = place or show_place(user_place())
        self.events.append(event)

    # --- reading ----------------------------------------------------------------------------------------------------

    def key_averages(self, group_by_input_shape: bool = False) -> Averages:
        """Return one row per operation and direction, and per shapes of operands on request.

        Raises ValueError if shapes are requested and were not recorded.
        """
        if group_by_input_shape and not self.record_shapes:
            raise ValueError("to group by shape, record them: profile(record_shapes=True)")
        rows: dict[tuple, Row] = {}
        for e in self.events:
            shapes = e.shapes if group_by_input_shape else None
            key = (e.name, e.kind, shapes, e.place)
            if key not in rows:
                rows[key] = Row(e, shapes)
            row = rows[key]
            row.calls += 1
            row.self_time_total += 1e6 * e.own
            row.time_total += 1e6 * e.total
            row.bytes += e.bytes
        return Averages(rows.values(), self.profile_memory, group_by_input_shape, self.with_stack)

    def table(self, **options: Any) -> str:
        """Return ``key_averages().table(**options)``."""
        return self.key_averages().table(**options)

    def __str__(self) -> str:
        return self.table()

    def _repr_html_(self) -> str:
        """Return what was recorded for a notebook: a chart of the calls over time, and the table."""
        if not self.events:
            return tables.paragraph("Nothing was recorded.")
        chart = timelines.calls(_spans(self.events))
        return f"{chart}{self.key_averages()._repr_html_()}"

    def export_chrome_trace(self, path: Any) -> None:
        """Write the events as JSON in the trace-event format, which trace viewers open (Perfetto, chrome://tracing)."""
        pid = os.getpid()
        events: list[dict] = [{"name": "process_name", "ph": "M", "pid": pid, "tid": 0, "args": {"name": "fad"}}]
        for e in sorted(self.events, key=lambda e: (e.start, -e.end)):
            args: dict[str, Any] = {}
            if self.record_shapes:
                args["shapes"] = [list(s) for s in e.shapes]
            if self.profile_memory:
                args["bytes"] = e.bytes
            if e.place:
                args["line"] = e.place
            events.append({
                "name": e.name if e.kind != "backward" else f"{e.name} (backward)", "cat": e.kind, "ph": "X",
                "ts": 1e6 * (e.start - self.started), "dur": 1e6 * e.total, "pid": pid, "tid": e.thread, "args": args,
            })  # fmt: skip
        text = json.dumps({"traceEvents": events, "displayTimeUnit": "ms"})
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)


def _spans(events: list[Event]) -> list[timelines.Span]:
    """Return events for a chart, each below those that it is inside of."""
    depth: dict[int, int] = {}
    for e in reversed(events):  # they are noted when they end: what is inside of another comes before it
        for inner in e.inside:
            depth[id(inner)] = depth.get(id(e), 0) + 1
    return [
        timelines.Span(
            e.start, e.start + e.total, depth.get(id(e), 0), e.kind, e.name,
            f"{e.name}  {e.kind}  {_time(1e6 * e.total)}  {tables.without_folder(e.place)}",
        )
        for e in events
    ]  # fmt: skip


@contextlib.contextmanager
def _time_forwards() -> Iterator[None]:
    """Replace the forward functions of all operations while at least one profile is active, in any thread."""
    with _lock:
        _users[0] += 1
        if _users[0] == 1:
            _install()
    try:
        yield
    finally:
        with _lock:
            _users[0] -= 1
            if _users[0] == 0:
                _uninstall()


def _collectives() -> list:
    """Return the operations of `fad.distributed`, if it was imported."""
    known = sys.modules.get("fad.distributed.primitives")
    return [] if known is None else [*known.TYPED, *known.TYPED.values()]


def _install() -> None:
    for prim in (*REGISTRY.values(), *_collectives()):
        if isinstance(prim, Primitive):
            _originals.append((prim, prim.forward, prim.on_scalars))
            prim.forward = _time_call(prim.name, prim.forward)
            if prim.on_scalars is not None:
                prim.on_scalars = _time_call(prim.name, prim.on_scalars)
    for prim, swap in SWAPS:
        swap(prim.forward)


def _uninstall() -> None:
    for prim, forward, on_scalars in _originals:
        prim.forward, prim.on_scalars = forward, on_scalars
    _originals.clear()
    for prim, swap in SWAPS:
        swap(prim.forward)


def _time_call(name: str, forward: Callable) -> Callable:
    @functools.wraps(forward)
    def time_call(*args, **kwargs):
        owner = _active.get()
        if owner is None or any(type(x) is Tracer for x in args):
            return forward(*args, **kwargs)
        stop = device_timer(args)
        event = owner._begin(name, "forward")
        out = None
        try:
            out = forward(*args, **kwargs)
            event.read = stop and stop()
        finally:
            owner._finish(event, args, out)
        return out

    return time_call


class record_function(contextlib.ContextDecorator):
    """Label a block, or a function as a decorator, in the active profile; without one it does nothing.

    >>> with profile() as prof, record_function("my block"):
    ...     pass
    >>> prof.key_averages()[0].key
    'my block'
    """

    def __init__(self, name: str):
        self.name = name
        self._stack: list = []

    def __enter__(self) -> record_function:
        owner = _active.get()
        self._stack.append((owner, owner._begin(self.name, "block") if owner is not None else None))
        return self

    def __exit__(self, *_: Any) -> None:
        owner, event = self._stack.pop()
        if owner is not None:
            owner._finish(event, (), ())
