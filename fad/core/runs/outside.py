"""Arrays from outside of a function behind handles while it runs, so that copies of them can be written.

``u = u0.copy()`` of an array that a closure, a module or an object holds makes a plain array, without a word to fad. So
where a function failed to write a traced value, the arrays that it finds by name are exchanged for handles on the same
memory: what is computed from a handle is one, too. A plain number that is written into the array itself is there for
everybody; a traced one is an error. What stands in for a library's functions and objects, such as a spline of SciPy's,
takes their places in the same way.
"""

from __future__ import annotations

import collections
import itertools
import sys
import threading
import types
from collections.abc import Iterable
from typing import Any

import numpy as np

from fad.backends import DEVICE_ARRAYS
from fad.core.handles.buffers import buffer
from fad.core.handles.structured_arrays import is_structured, open_structured
from fad.core.runs.stand_ins import KEPT, MADE, NUMPYS, find_stand_in, has_stand_in
from fad.core.tracing.views import Memory, copy_layout, is_writeable
from fad.introspect.reachable import Walk, is_library, is_of_library

_MOST = 400  # things that are looked at, from the function on
MANY = 10_000  # after a failure, when it is worth the time
_MOST_BYTES = 1 << 26  # bytes of arrays that are copied before a function runs for the first time

_lock = threading.Lock()
_lent: dict[tuple, list] = {}  # where -> [container, key, what was there, what stands in, uses]


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
        elif has_changed(x, then):
            x[...] = then


def has_changed(x: np.ndarray, then: np.ndarray) -> bool:
    """Return whether an array holds something else than a copy of it does."""
    if x.dtype.names is not None:  # what lies between the fields was not copied
        return any(has_changed(x[name], then[name]) for name in x.dtype.names)
    return x.tobytes() != then.tobytes()


def lend(function: Any, own: bool = False) -> list[tuple]:
    """Exchange the arrays that a function finds by name for handles, and a library's objects for what stands in.

    Returns what `take_back` needs.

    With `own` they are handles on copies, which take traced values and are gone when the arrays are back.
    """
    found = []
    with _lock:
        for place, (container, key, value) in _places(function).items():
            entry = _lent.get(place)
            if entry is None or value is not entry[3]:
                stands_in = _as_attribute(container, value, _find_loan(value, own))
                if stands_in is not None:
                    entry = _lent[place] = [container, key, value, stands_in, entry[4] if entry else 0]
                    _put(container, key, stands_in)
            if entry is not None:
                entry[4] += 1
                found.append(place)
    return found


def _as_attribute(container: Any, value: Any, stands_in: Any) -> Any:
    """Return what stands in, so that a class whose attribute it is does not make a method of it."""
    if type(value) is types.BuiltinFunctionType and issubclass(type(container), type):
        return staticmethod(stands_in)
    return stands_in


def _find_loan(x: Any, own: bool) -> Any:
    """Return what is to stand in the place of something, or None where that stays."""
    if _is_rebuildable(x):
        loans = [_find_loan(value, own) for value in x]
        parts = [old if new is None else new for new, old in zip(loans, x, strict=True)]
        return tuple(parts) if type(x) is tuple else type(x)._make(parts)
    if is_structured(x):
        return open_structured(x, own, outside=not own)
    if not _is_numeric(x):
        return find_stand_in(x)
    handle = buffer(copy_layout(x) if own else x)
    if not own:
        handle.memory = Memory()
        handle.memory.outside = True
    return handle


def take_back(found: Iterable[tuple]) -> None:
    """Put the arrays back, where the function has not put something else."""
    with _lock:
        for place in found:
            container, key, value, stands_in, uses = entry = _lent[place]
            entry[4] = uses - 1
            if uses == 1:
                del _lent[place]
                if _get(container, key) is stands_in:
                    _put(container, key, value)
        if not _lent:
            MADE.clear()  # a program may change its objects between two transforms


def find_lent() -> dict[int, Any]:
    """Return what is lent now, by the id of what stands in its place."""
    with _lock:
        return {id(stands_in): value for _, _, value, stands_in, _ in _lent.values()}


def _get(container: Any, key: Any) -> Any:
    kind = type(container)
    if kind is types.FunctionType:
        return container.__defaults__
    if issubclass(kind, type):
        return vars(container).get(key)
    if issubclass(kind, dict):
        return dict.get(container, key)
    if kind is list or kind is collections.deque:
        return container[key] if key < len(container) else None
    try:
        return container.__get__(key) if kind is types.MemberDescriptorType else container.cell_contents
    except (ValueError, AttributeError):  # a cell, or a slot, that is empty
        return None


def _put(container: Any, key: Any, value: Any) -> None:
    kind = type(container)
    if kind is types.FunctionType:
        container.__defaults__ = value
    elif issubclass(kind, type):
        type.__setattr__(container, key, value)
    elif issubclass(kind, dict):
        dict.__setitem__(container, key, value)
    elif kind is types.CellType:
        container.cell_contents = value
    elif kind is types.MemberDescriptorType:
        container.__set__(key, value)
    else:
        container[key] = value


def _places(function: Any) -> dict[tuple, tuple]:
    """Return where a function finds what may be lent, by what tells places apart: a container, a key, what is there.

    Containers are dictionaries, lists, cells, classes, functions with defaults, and slots' descriptors, whose key is an
    object.
    """
    walk = Walk([function], _MOST, every=True)
    found: list[tuple] = []
    classes: dict[type, None] = {}
    for x in walk:
        kind = type(x)
        if kind is types.FunctionType and not is_of_library(x):
            found.append((x, None, x.__defaults__))
            found += [(x.__kwdefaults__, key, value) for key, value in (x.__kwdefaults__ or {}).items()]
        elif kind is list or kind is collections.deque:
            found += [(x, key, value) for key, value in enumerate(itertools.islice(x, _MOST))]
        classes.update(dict.fromkeys((x if issubclass(kind, type) else kind).__mro__))
    for _, container, key, value in walk.places:
        if type(container) is types.CellType:
            found.append((container, None, value))
        elif type(container) is dict and KEPT in container:
            continue  # the attributes of what stands in itself
        elif type(container) is types.MemberDescriptorType or (
            issubclass(type(container), dict)
            and ("__spec__" not in container or not is_library(container.get("__name__")))
        ):
            found.append((container, key, value))
    for cls in classes:
        if not is_library(cls.__module__):
            found += [(cls, name, value) for name, value in vars(cls).items() if name in walk.names]
    places = {(id(c), id(key) if type(c) is types.MemberDescriptorType else key): (c, key, x) for c, key, x in found}
    return {place: at for place, at in places.items() if place in _lent or (_may_be_lent(at[2]) and not _is_named(*at))}


def _is_named(container: Any, key: Any, x: Any) -> bool:
    """Return whether something is a function of NumPy's under a name of a module, which the overlay exchanges."""
    return id(x) in NUMPYS and type(container) is dict and "__builtins__" in container


def _may_be_lent(x: Any) -> bool:
    """Return whether something is an array, a library's object for which another stands in, or a tuple with such."""
    if _is_rebuildable(x):
        return any(map(_may_be_lent, x))
    return _is_numeric(x) or is_structured(x) or has_stand_in(x)


def _is_rebuildable(x: Any) -> bool:
    return type(x) is tuple or (issubclass(type(x), tuple) and hasattr(type(x), "_make"))


def _is_numeric(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype.kind in "fcbiu"
