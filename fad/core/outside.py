"""Arrays from outside of a function behind handles while it runs, so that copies of them can be written.

``u = u0.copy()`` of an array that a closure, a module or an object holds makes a plain array, without a word to fad. So
where a function failed to write a traced value, the arrays that it finds by name are exchanged for handles on the same
memory: what is computed from a handle is one, too. A plain number that is written into the array itself is there for
everybody; a traced one is an error.
"""

from __future__ import annotations

import sys
import threading
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from fad.backends import DEVICE_ARRAYS
from fad.core.buffers import buffer
from fad.core.tracer import Tracer
from fad.core.views import Memory, copy_layout, is_writeable
from fad.introspect.reachable import Walk

_MOST = 400  # things that are looked at, from the function on
MANY = 10_000  # after a failure, when it is worth the time
_MOST_BYTES = 1 << 26  # bytes of arrays that are copied before a function runs for the first time

_lock = threading.Lock()
_lent: dict[tuple, list] = {}  # (id of a container, key) -> [container, array, handle, uses]


def copies(roots: Iterable[Any], most: int = _MOST, left: int = _MOST_BYTES) -> list[tuple]:
    """Return the arrays that functions find by name, with copies of at most so many bytes: a run may be undone.

    And the sources of random numbers, NumPy's own among them, with their states.
    """
    random = sys.modules.get("numpy.random")  # NumPy loads it when it is asked for
    found: list[tuple] = []
    for x in Walk(roots if random is None else [random.mtrand._rand, *roots], most):
        if random is not None and issubclass(type(x), random.RandomState):
            found.append((x, x.get_state(legacy=False)))
        elif random is not None and issubclass(type(x), random.Generator):
            found.append((x.bit_generator, x.bit_generator.state))
        elif type(x) is np.ndarray and is_writeable(x) and x.nbytes <= left:
            left -= x.nbytes
            found.append((x, x.copy()))
    return found


def reaches_device(function: Any) -> bool:
    """Return whether a function finds arrays of a device, or was given some."""
    return bool(DEVICE_ARRAYS) and any(type(x) in DEVICE_ARRAYS for x in Walk([function], MANY))


def restore(copied: Iterable[tuple]) -> None:
    """Write into arrays what their copies hold, where a run changed it: the others may not be written at all."""
    for x, then in copied:
        if type(then) is dict:
            x.set_state(then) if hasattr(x, "set_state") else setattr(x, "state", then)
        elif x.tobytes() != then.tobytes():
            x[...] = then


def lend(function: Any, own: bool = False) -> list[tuple]:
    """Exchange the arrays that a function finds by name for handles; return what `take_back` needs.

    With `own` they are handles on copies, which take traced values and are gone when the arrays are back.
    """
    found = []
    with _lock:
        for container, key, value in _places(function):
            place = id(container), key
            entry = _lent.get(place)
            if type(value) is np.ndarray:
                handle = buffer(copy_layout(value) if own else value)
                if not own:
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
    walk = Walk([function], _MOST, traced=True)
    found: list[tuple] = []
    modules: set[int] = set()  # variables of modules whose functions were found; those of others are theirs
    for x in walk:
        if type(x) is types.FunctionType:
            modules.add(id(x.__globals__))
        elif type(x) is list:
            found += [(x, key, value) for key, value in enumerate(x[:_MOST])]
    for _, container, key, value in walk.places:
        if type(container) is types.CellType:
            found.append((container, None, value))
        elif type(container) is dict and ("__spec__" not in container or id(container) in modules):
            found.append((container, key, value))
    return list({(id(c), key): (c, key, value) for c, key, value in found if _may_stand(value)}.values())


def _may_stand(x: Any) -> bool:
    """Return whether something is an array for which a handle may stand, or such a handle."""
    return type(x) is Tracer or (type(x) is np.ndarray and x.dtype.kind in "fcbiu")
