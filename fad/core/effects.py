"""State that a function changes while a transform runs it, and that must not change twice when it is run again.

`checkpoint` runs a function a second time in the backward pass. A layer that counts or averages as it runs
would then see later numbers than the first time, and count twice. So the first run is recorded (what each piece of
state was when it was first touched) and the second one is played in a world of its own that starts from there.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

# The logs of the runs in progress, outermost first, or None; and the world that a replay reads and writes.
_recording: ContextVar[tuple] = ContextVar("recording", default=())
_world: ContextVar[Any] = ContextVar("world", default=None)


class Log:
    """What the state was when a run first touched it: ``(id(store), name) -> value``."""

    __slots__ = ("values", "stores")

    def __init__(self, values: dict | None = None):
        self.values: dict[tuple[int, str], Any] = values or {}
        self.stores: list = []  # kept alive, so that an id is never used twice

    def note(self, store: dict, name: str, value: Any) -> None:
        key = (id(store), name)
        if key not in self.values:
            self.values[key] = value
            self.stores.append(store)


@contextlib.contextmanager
def recording() -> Iterator[Log]:
    """Record what state a run touches; give the log to :func:`replaying` later."""
    log = Log()
    token = _recording.set((*_recording.get(), log))
    try:
        yield log
    finally:
        _recording.reset(token)


@contextlib.contextmanager
def replaying(log: Log) -> Iterator[None]:
    """Run in a world where all state is as it was at the start of the recorded run, and where writes stay."""
    token = _world.set(Log(dict(log.values)))
    try:
        yield
    finally:
        _world.reset(token)


def read(store: dict, name: str) -> Any:
    """Return ``store[name]`` as this run should see it."""
    world = _world.get()
    value = store[name]
    if world is not None:
        value = world.values.get((id(store), name), value)
    for log in _recording.get():
        log.note(store, name, value)
    return value


def write(store: dict, name: str, value: Any) -> bool:
    """Set ``store[name]``; false if that is to stay within a replay."""
    world = _world.get()
    if _recording.get():
        read(store, name)
    if world is not None:
        world.values[(id(store), name)] = value
        world.stores.append(store)
        return False
    store[name] = value
    return True


def snapshot(store: dict) -> dict:
    """Return a copy of a store as this run sees it."""
    return {name: read(store, name) for name in store}
