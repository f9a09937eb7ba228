"""State that a function changes while a transform runs it, and that must not change twice when it is run again.

`checkpoint` runs a function a second time in the backward pass. A layer that counts or averages as it runs
would then see later numbers than the first time, and count twice. So the first run is recorded (what each piece of
state was when it was first touched) and the second one is played in a world of its own that starts from there.

`jit` replays a program in which nothing is written at all. So it takes the state of its arguments as further
inputs, and what the function left there as further outputs: see :func:`open_flatten`.
"""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import tree
from fad.core.runs.transformed import as_run
from fad.core.tracing import views
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import stop
from fad.introspect.reachable import INSIDE, OPEN, Open, code_of
from fad.tree.nodes import enter_node


class Stateful:
    """What every `fad.nn.Module` derives from, for code below it: an object whose state is saved, and put back."""

    __slots__ = ("__dict__", "__weakref__")

    def state_dict(self, everything: bool = False) -> dict[str, Any]:
        """Return the arrays of the state by their names."""
        raise NotImplementedError

    def load_state_dict(self, state: dict[str, Any], strict: bool = True) -> Any:
        """Return the object with this state."""
        raise NotImplementedError

    def __fad_settings__(self, leaf: Any) -> Iterator[Any]:
        """Give what the object and those below hold besides its state and what is the object `leaf`."""
        raise NotImplementedError


OPEN[Stateful] = Open(private=frozenset({"_buffers"}), called=frozenset({"forward"}))


def _read_structure(structure: Any) -> Iterator[Any]:
    """Give what a function finds in arguments of a structure besides their leaves: code of classes, and settings."""
    leaf = np.zeros(())
    nodes: list = []
    try:
        tree.flatten(tree.unflatten(structure, [leaf] * structure.num_leaves), nodes.append)
    except Exception:  # a class of the user's may take no other leaves
        return
    for x in nodes:
        if x is not leaf:
            yield from code_of(type(x))
        if isinstance(x, Stateful):
            yield from x.__fad_settings__(leaf)
        elif dataclasses.is_dataclass(x):
            yield from (v for v in (getattr(x, f.name, leaf) for f in dataclasses.fields(x)) if v is not leaf)


INSIDE[type(tree.structure(0))] = _read_structure


# The logs of the runs in progress, outermost first, or None; and the world that a replay reads and writes.
_recording: ContextVar[tuple] = ContextVar("recording", default=())
_world: ContextVar[Any] = ContextVar("world", default=None)


class Log:
    """What the state was when a run first touched it: ``(id(store), name) -> value``.

    The values are copies: a run may write into an array of the state (``self.count += 1``), as well as set another.
    """

    __slots__ = ("values", "stores", "originals", "copies")

    def __init__(self, values: dict | None = None):
        self.values: dict[tuple[int, str], Any] = values or {}
        self.stores: list = []  # kept alive, so that an id is never used twice
        self.originals: dict[tuple[int, str], Any] = {}
        # The copy of each original, which a model and its copies may share, by id; a copy's copy is itself.
        self.copies: dict[int, Any] = {id(x): x for x in self.values.values()}

    def note(self, store: dict, name: str, value: Any) -> None:
        key = (id(store), name)
        if key not in self.values:
            if id(value) not in self.copies:
                own = _apart(value)
                self.copies[id(value)] = self.copies[id(own)] = own
            self.values[key] = self.copies[id(value)]
            self.originals[key] = value
            self.stores.append(store)

    def again(self) -> Log:
        """Return the state as it was, for one more run, which may write into it."""
        own = {id(x): _apart(x) for x in self.values.values()}
        return Log({key: own[id(value)] for key, value in self.values.items()})

    def restore(self) -> bool:
        """Put back what the run changed; return whether it changed anything."""
        changed = False
        stores = {id(store): store for store in self.stores}
        for key, value in self.values.items():
            store, name, original = stores[key[0]], key[1], self.originals[key]
            if not _holds(read(store, name), value, original):
                if type(original) is np.ndarray and original is not value:
                    original[...] = value  # others have it, too
                    value = original
                write(store, name, value)
                changed = True
        return changed


def _apart(value: Any) -> Any:
    """Return a value into which nobody else writes."""
    if type(value) is np.ndarray:
        return views.copy_layout(value) if views.is_writeable(value) else value
    return views.snapshot(value) if type(value) is Tracer else value


def _holds(now: Any, before: Any, original: Any) -> bool:
    """Return whether a piece of state is what it was: the same object, into which nothing was written since."""
    if now is not original or before is original:
        return now is original
    if type(now) is Tracer:
        return now.wrapped is before.wrapped and now.info is before.info
    return now.tobytes() == before.tobytes()


class recording:
    """Record what state a run touches; give the log to :func:`replaying` later.

    With `undo`, state is put back where the run ends in an error: that of a trial, after which it runs another way.
    """

    __slots__ = ("undo", "log", "token")

    def __init__(self, undo: bool = False):
        self.undo = undo
        self.log = Log()

    def __enter__(self) -> Log:
        self.token = _recording.set((*_recording.get(), self.log))
        return self.log

    def __exit__(self, kind: type | None, *_: Any) -> None:
        _recording.reset(self.token)
        if self.undo and kind is not None:
            self.log.restore()


@contextlib.contextmanager
def replaying(log: Log) -> Iterator[None]:
    """Run in a world where all state is as it was at the start of the recorded run, and where writes stay."""
    token = _world.set(log.again())
    try:
        yield
    finally:
        _world.reset(token)


def is_remembered() -> bool:
    """Return whether this run is recorded, to be run again, or is a second run."""
    return bool(_recording.get()) or _world.get() is not None


def read(store: dict, name: str) -> Any:
    """Return ``store[name]`` as this run should see it."""
    world = _world.get()
    value = store[name]
    if world is not None:
        world.note(store, name, value)
        value = world.values[id(store), name]
    for log in _recording.get():
        log.note(store, name, value)
    return value


def write(store: dict, name: str, value: Any) -> None:
    """Set ``store[name]``, or within a replay what that stands for there."""
    world = _world.get()
    if _recording.get():
        read(store, name)
    if world is not None:
        world.values[(id(store), name)] = value
        world.stores.append(store)
    else:
        store[name] = value


def snapshot(store: dict) -> dict:
    """Return a copy of a store as this run sees it."""
    return {name: read(store, name) for name in store}


_parting: ContextVar[bool] = ContextVar("parting", default=False)


@contextlib.contextmanager
def parting() -> Iterator[None]:
    """For the length of a block, give what ``fad.tree.map`` makes of an object with buffers ones that are its own."""
    token = _parting.set(True)
    try:
        yield
    finally:
        _parting.reset(token)


def is_parting() -> bool:
    """Return whether objects with buffers are being made that have their own."""
    return _parting.get()


_compiling: ContextVar[bool] = ContextVar("compiling", default=False)


@contextlib.contextmanager
def compiling() -> Iterator[None]:
    """Say that this run is recorded by jit: what it writes outside of its arguments, a replay would not write."""
    token = _compiling.set(True)
    try:
        yield
    finally:
        _compiling.reset(token)


def is_compiling() -> bool:
    """Return whether jit records this run."""
    return _compiling.get()


# --- state as inputs and outputs of a program ------------------------------------------------------------------------

_slots: ContextVar[Any] = ContextVar("slots", default=None)


def slots() -> list | None:
    """Return the list into which a node that is being flattened puts its state, or None if it is to keep it."""
    return _slots.get()


def open_flatten(value: Any, flatten: Callable = tree.flatten) -> tuple:
    """Flatten a tree with the state of its nodes as leaves.

    Returns ``(leaves, structure, slots)``; a slot ``(store, home, name)`` says where a piece of state came from.
    What else `flatten` returns comes before the slots.
    """
    found: list = []
    token = _slots.set(found)
    try:
        return *flatten(value), found
    finally:
        _slots.reset(token)


class Opened:
    """A tree whose nodes give up their state as leaves."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value


enter_node(
    Opened,
    lambda x: open_flatten(x.value)[:2],
    lambda structure, leaves: Opened(tree.unflatten(structure, leaves)),
)


def _state(value: Any) -> list:
    return [store[name] for store, _, name in open_flatten(value)[2]]


def with_changes(fun: Callable) -> Callable:
    """Return a function of the same arguments that returns ``(output, changes)``: number of the slot -> new state."""

    def run(*args: Any, **kwargs: Any) -> tuple:
        before = _state((args, kwargs))
        written = [_find_writes(x) for x in before]
        out = as_run(fun)(*args, **kwargs)
        after = _state((args, kwargs))
        changed = [u is not v or was_written() for u, v, was_written in zip(before, after, written, strict=True)]
        return Opened(out), {i: v for i, v in enumerate(after) if changed[i]}

    return run


def _find_writes(x: Any) -> Callable[[], bool]:
    """Return a function that says whether something was written into an array since."""
    if type(x) is Tracer:
        contents = views.contents_of(x)
        return lambda: views.contents_of(x) != contents
    if type(x) is np.ndarray and views.is_writeable(x):
        numbers = x.tobytes()
        return lambda: x.tobytes() != numbers
    return lambda: False


def write_home(store: dict, home: tuple, name: str, value: Any, plain: Any) -> None:
    """Set ``store[name]``, and the same in the stores of what this is a copy of, as a plain number or array."""
    write(store, name, value if home else plain)
    for other in home:
        write(other, name, plain)


def apply_changes(found: list, given: tuple, as_plain: Callable) -> Any:
    """Write the changes that a program returned into the state of the arguments of this call; return its output."""
    out, changes = given
    for i, value in changes.items():
        store, home, name = found[i]
        value = stop(value)
        write_home(store, home, name, value, as_plain(value))
    return out.value
