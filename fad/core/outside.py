"""Arrays from outside of a function behind handles while it runs, so that copies of them can be written.

``u = u0.copy()`` of an array that a closure, a module or an object holds makes a plain array, without a word to fad. So
where a function failed to write a traced value, the arrays that it finds by name are exchanged for handles on the same
memory: what is computed from a handle is one, too. A plain number that is written into the array itself is there for
everybody; a traced one is an error.
"""

from __future__ import annotations

import functools
import threading
import types
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from fad.core.buffers import buffer
from fad.core.memory import Memory
from fad.core.tracer import Tracer
from fad.introspect.frames import is_machinery
from fad.introspect.reachable import Walk

_MOST = 400  # things that are looked at, from the function on
MANY = 10_000  # after a failure, when it is worth the time
_MOST_BYTES = 1 << 26  # bytes of arrays that are copied before a function runs for the first time
_LIBRARIES = ("builtins", "numpy", "scipy", "fad")
_PLAIN = (bool, int, float, complex, str, bytes, type(None), tuple, types.ModuleType)

_lock = threading.Lock()
_lent: dict[tuple, list] = {}  # (id of a container, key) -> [container, array, handle, uses]


def copies(roots: Iterable[Any], most: int = _MOST, left: int = _MOST_BYTES) -> list[tuple]:
    """Return the arrays that functions find by name, with copies of at most so many bytes: a run may be undone."""
    found = []
    for x in Walk(roots, most):
        if type(x) is np.ndarray and x.flags.writeable and x.nbytes <= left:
            left -= x.nbytes
            found.append((x, x.copy()))
    return found


def lend(function: Any) -> list[tuple]:
    """Exchange the arrays that a function finds by name for handles; return what `take_back` needs."""
    found = []
    with _lock:
        for container, key, value in _places(function):
            place = id(container), key
            entry = _lent.get(place)
            if type(value) is np.ndarray:
                handle = buffer(value)
                handle.memory = Memory()
                handle.memory.outside = True
                entry = _lent[place] = [container, value, handle, 0]
                _put(container, key, handle)
            if entry is not None:
                entry[3] += 1
                found.append(place)
    return found


def take_back(found: Iterable[tuple]) -> None:
    """Put the arrays back, where the function has not put something else."""
    with _lock:
        for place in found:
            container, array, handle, uses = entry = _lent[place]
            entry[3] = uses - 1
            if uses == 1:
                del _lent[place]
                if _get(container, place[1]) is handle:
                    _put(container, place[1], array)


def _get(container: Any, key: Any) -> Any:
    if type(container) is list:
        return container[key] if key < len(container) else None
    if type(container) is not types.CellType:
        return container.get(key)
    try:
        return container.cell_contents
    except ValueError:  # a cell that is empty
        return None


def _put(container: Any, key: Any, value: Any) -> None:
    if type(container) is types.CellType:
        container.cell_contents = value
    else:
        container[key] = value


def _places(function: Any) -> list[tuple]:
    """Return where a function finds arrays by name: containers (dictionaries, lists, cells), keys, what is there."""
    found: list[tuple] = []
    seen: set[int] = set()
    todo = [function]
    for x in todo:
        if id(x) in seen or len(seen) == _MOST:
            continue
        seen.add(id(x))
        for container, key, value in _held(x):
            if type(value) is Tracer or (type(value) is np.ndarray and value.dtype.kind in "fc"):
                found.append((container, key, value))
            elif type(value) not in _PLAIN:
                todo.append(value)
    return list({(id(c), key): (c, key, value) for c, key, value in found}.values())


def _held(x: Any) -> Iterator[tuple]:
    """Give what a function, object, dictionary or list holds, with where it holds it: (container, key, value)."""
    kind = type(x)
    if kind is types.FunctionType:
        for cell in x.__closure__ or ():
            yield cell, None, _get(cell, None)
        if not is_machinery(x.__code__.co_filename):
            known = x.__globals__
            yield from [(known, name, known[name]) for name in _names(x.__code__) if name in known]
    elif kind is types.MethodType:
        yield from [(None, None, x.__self__), (None, None, x.__func__)]
    elif kind is functools.partial:
        yield None, None, x.func
    elif kind is dict:
        yield from [(x, key, value) for key, value in list(x.items())[:_MOST]]
    elif kind is list:
        yield from [(x, key, value) for key, value in enumerate(x[:_MOST])]
    elif issubclass(kind, type):
        yield from [(None, None, f) for f in vars(x).values() if type(f) is types.FunctionType]
    elif kind.__module__.partition(".")[0] not in _LIBRARIES:
        held = getattr(x, "__dict__", None)
        yield from [(held, key, value) for key, value in held.items()] if type(held) is dict else ()
        yield None, None, kind


@functools.lru_cache(4096)
def _names(code: types.CodeType) -> frozenset:
    return frozenset(code.co_names).union(*[_names(c) for c in code.co_consts if isinstance(c, types.CodeType)])
