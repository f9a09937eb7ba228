"""In-place writes while several transforms run: into all the arrays that an array is made of, where they lie in memory.

A batch of values and tangents is plain arrays (`fad.core.tracing.layers`), which nobody else knows once the trace that
was written into has copied them. A write then costs what it touches, and not an array for each. It takes that all
transforms that run are layers of the array: any other may keep what it computes with.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.tracing.layers import (
    add_layers,
    can_write,
    copy_layers,
    find_layers,
    is_part,
    pick_layers,
    put_layers,
    takes,
    zeros_in_layers,
)
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import RUNS, Memory, own_memory, pick
from fad.ops.layout.index_layout import can_broadcast
from fad.ops.places.writing import write_through


def overwrite_layers(trace: Trace, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
    """Write into an array of a trace that is a layer itself; False where its value must be computed."""
    if root.owner is not trace or arrays or not _are_all(find_layers(root)) or not takes(root, v):
        return False
    memory = own_layers(root, _copy_parts)
    found = find_place(root, path, template, v)
    if found is None:
        return False
    put_below(found[0], template, found[1])
    memory.version += 1
    return True


class writing_layers:
    """For the length of a block layers are written, no arrays of the user's; `alone` if they are all that runs."""

    __slots__ = ("alone", "before")

    def __init__(self, alone: bool = False) -> None:
        self.alone = alone

    def __enter__(self) -> None:
        self.before = RUNS.below, RUNS.touched
        RUNS.below, RUNS.touched = RUNS.below or self.alone, None

    def __exit__(self, *_: Any) -> None:
        RUNS.below, RUNS.touched = self.before


def put_below(place: Any, template: tuple, v: Any) -> None:
    """Write into an array whose layers are all that runs."""
    with writing_layers(alone=True):
        put_layers(place, template, v)


def _are_all(layers: set[Trace] | None) -> bool:
    """Return whether these are all transforms that run."""
    return layers is not None and (len(layers) == RUNS.depth or RUNS.below)


def are_all_below(trace: Trace, x: Any) -> bool:
    """Return whether the layers of a value of a trace, and the trace, are all transforms that run."""
    layers = find_layers(x)
    return layers is not None and _are_all(layers | {trace})


def own_layers(root: Tracer, copy: Any) -> Memory:
    """Return the `Memory` of a root that may be overwritten; results of its layers have their own from then on."""
    if root.memory is None or not root.memory.private:
        for layer in find_layers(root) or ():
            layer.note_writes()
    memory: Memory = own_memory(root, copy)
    return memory


def _copy_parts(root: Tracer) -> None:
    copy = copy_layers(root)
    root.wrapped, root.info = copy.wrapped, copy.info


def copy_below(root: Tracer) -> None:
    """Give a root whose trace is no layer memory of its own."""
    root.wrapped = copy_layers(root.wrapped)


def view_along(x: Any, path: list) -> Any:
    """Return the view of an array that a path leads to, for any kind of array."""
    for prim, params in path:
        x = prim(x, **params)
    return x


def find_place(whole: Any, path: list, template: tuple, v: Any) -> tuple | None:
    """Return the view that a path leads to, and a value as it is written there; None if it cannot be in place.

    The value has the shape of what it replaces: a batch of numbers is not to be taken for a row.
    """
    if not all(prim.view.in_place for prim, _ in path):
        return None
    place = view_along(whole, path)
    shape = np.broadcast_to(False, place.shape)[template].shape
    if (path and not is_part(place, whole)) or not can_broadcast(np.shape(v), shape):
        return None
    return place, np.broadcast_to(v, shape) if type(v) is Tracer and v.shape != shape else v


def pick_at(place: Any, index: Any) -> Any:
    """Return what stands at an index of a plain or layered array, in memory of its own."""
    return pick_layers(place, index) if type(place) is Tracer else pick(place, index)


def put_at(place: Any, index: Any, v: Any) -> None:
    """Write at an index of a plain or layered array."""
    if type(place) is Tracer:
        with writing_layers(_are_all(find_layers(place))):
            put_layers(place, index, v)
    else:
        place[index] = v


# --- cotangents -------------------------------------------------------------------------------------------------------


def _is_own(g: Any, owned: int) -> bool:
    """Return whether a cotangent is layers in memory of the sweep's own."""
    return bool(owned) and type(g) is Tracer and _give_own_results(g) and can_write(g)


def _give_own_results(g: Tracer) -> bool:
    """Return whether what the layers of a value compute is in memory of its own, as they know that there are writes."""
    layers = find_layers(g)
    return layers is not None and all(layer.writes for layer in layers)  # type: ignore[attr-defined]


def move_in_place(g: Tracer, owned: int, path: list, index: tuple) -> Any:
    """Take the cotangent of a place out of that of the array, and return it; None where that takes a new array."""
    if not _is_own(g, owned) or any(type(part) is np.ndarray for part in index):
        return None
    part = view_along(g, path)
    if path and not is_part(part, g):
        return None
    c = pick_layers(part, index)
    put_at(part, index, 0.0)
    return c


def add_in_place(p: Any, owned: int, path: list, index: Any, g: Any, shape: tuple, dtype: Any) -> Any:
    """Return a cotangent of an array with that of what was read from it added in place; None where it cannot be."""
    template = index if type(index) is tuple else (index,)
    if p is None and type(g) is Tracer and _give_own_results(g):
        if any(layer.recorded for layer in find_layers(g) or ()):
            return write_through(np.zeros(shape, dtype), path, template, g, [])
        p, owned = zeros_in_layers(g, shape, dtype), 1
    if not _is_own(p, owned) or not takes(p, g) or find_layers(g) is None:
        return None
    part = view_along(p, path)
    if path and not is_part(part, p):
        return None
    with writing_layers(_are_all(find_layers(part))):
        add_layers(part, template, g)
    return p


def note_writes(cts: list) -> None:
    """Let the layers of cotangents give results in memory of their own: the sweep changes them in place."""
    for ct in cts:
        for layer in find_layers(ct) or () if type(ct) is Tracer else ():
            layer.note_writes()
