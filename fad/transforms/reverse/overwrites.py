"""In-place writes in reverse mode: what the tape keeps of a write, and how the backward sweep takes it back.

A write into memory of the tape's own keeps what stood there. The sweep meets the writes in reverse order and puts the
old values back, so that what earlier operations kept by reference is again what they saw; the cotangent of the
place moves to the written value, and the cotangent of the array goes on to its version before the write with zeros in
that place. All of it costs what was touched, not the size of the array.

What is written over takes no part: what was computed before the first write, or written before a later one, takes a
cotangent of zero there that stays zero, though the partial derivative may be infinite (``r = np.sqrt(d)``, and
``r[i, i] = 1.0``). A mask says where, if it is not known that all slopes are finite, and where masks or index arrays
chose the places (``r[r > 0] = 1 / r[r > 0]``).
"""

from __future__ import annotations

import math
import weakref
from typing import Any

import numpy as np

from fad.core.handles.buffers import PLAIN
from fad.core.primitives.archetypes import fit
from fad.core.primitives.cotangent import Indexed, Masked, Selection, densify
from fad.core.tracing.layers import arrays_of, copy_layers, find_layers, map_arrays, takes
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import (
    RUNS,
    Memory,
    copy_layout,
    follow,
    layout,
    own_memory,
    pick,
    refresh,
    shares,
    snapshot,
)
from fad.ops.places.indexing import join_index, split_index
from fad.ops.places.writing import write_through
from fad.transforms.reverse.accumulate import accumulate
from fad.transforms.reverse.layered_writes import (
    are_all_below,
    copy_below,
    find_place,
    move_in_place,
    own_layers,
    pick_at,
    put_at,
    put_below,
    view_along,
)
from fad.transforms.reverse.tape import WRITE, Recorder

_PLACE, _INDEX, _OTHER, _WHOLE, _UNDONE = 3, 4, 5, 7, 8
VIEW = 11  # (kind, i, path, index, shape, dtype)    what was read from array i, of that shape, through views
_NO_PATH: tuple = ()
_NUMBERS = (float, int, bool)


def store(trace: Recorder, x: Tracer, index: tuple, v: Any) -> bool:
    """Write at an index of slices and integers into memory that is owned already, and record it; False elsewhere.

    The fast path of `overwrite`: for an array, or a slice of one, and a value of its dtype.
    """
    memory = x.memory
    if type(memory) is tuple:
        root, prim, params, _ = memory
        if "template" not in params:
            return False
        memory = root.memory
        path: Any = ((prim, params),)
    else:
        root, path = x, _NO_PATH
    if type(memory) is not Memory or not memory.private or RUNS.depth != 1:
        return False
    place = x.wrapped
    dtype = place.dtype
    kind = type(v)
    position, shape = -1, None
    if kind is Tracer:
        if v.owner is not trace:
            return False
        if type(v.memory) is tuple:
            refresh(v)
        position, v = v.info, v.wrapped
        if type(v) is Tracer or v.dtype is not dtype:  # a Tracer is a limit, as of equal eigenvalues: no plain memory
            return False
        shape = v.shape
    elif kind in _NUMBERS:
        if dtype.kind not in "fc":
            return False
    elif (kind is not np.ndarray and not issubclass(kind, np.generic)) or v.dtype is not dtype:
        return False
    tape = trace.tape
    end = len(tape)
    old = place[index]
    if type(old) is np.ndarray:
        old = old.copy()
    place[index] = v
    tape.append([WRITE, root.info, position, place, index, old, path, root.wrapped, False, shape, dtype, False])
    root.info = end
    memory.version += 1
    return True


def overwrite(trace: Recorder, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
    """Write into the memory of an array that only this trace knows, and record it; False where others may know it."""
    position = -1
    if type(v) is Tracer and v.owner is trace:
        position, v = v.info, v.wrapped
    if type(root.wrapped) is Tracer:
        return _overwrite_below(trace, root, path, template, v, position, arrays)
    if type(root.wrapped) is not np.ndarray or type(v) is Tracer or not (RUNS.depth == 1 or RUNS.below):
        return False
    shape, dtype = (v.shape, v.dtype) if position >= 0 else (None, None)
    index = join_index(template, arrays)
    if root.owner is PLAIN:
        whole = root.wrapped if root.memory is None or not root.memory.borrowed else copy_layout(root.wrapped)
    elif root.owner is trace:
        own_memory(root, _copy)
        whole = root.wrapped
    else:
        return False
    place = follow(whole, path)
    if place is None:
        return False
    try:
        old = pick(place, index)
    except IndexError:
        place[index] = v  # which raises, too: NumPy looks at the shapes before it looks whether places exist
        raise
    place[index] = v
    if root.owner is PLAIN:
        adopt(trace, root, whole)
    memory = root.memory
    tape = trace.tape
    picks = any(map(np.ndim, arrays))
    tape.append([WRITE, root.info, position, place, index, old, path, whole, False, shape, dtype, picks])
    root.info = len(tape) - 1
    memory.version += 1
    return True


def _overwrite_below(
    trace: Recorder, root: Tracer, path: list, template: tuple, v: Any, position: int, arrays: tuple
) -> bool:
    """Write into an array of layers that only this trace and they know, and record it; False elsewhere."""
    if root.owner is not trace or arrays or not are_all_below(trace, root.wrapped) or not takes(root.wrapped, v):
        return False
    memory = own_layers(root, copy_below)
    whole = root.wrapped
    found = find_place(whole, path, template, v)
    if found is None:
        return False
    place, value = found
    shape, dtype = (v.shape, v.dtype) if position >= 0 else (None, None)
    old = pick_at(place, template)
    put_below(place, template, value)
    tape = trace.tape
    tape.append([WRITE, root.info, position, place, template, old, path, whole, False, shape, dtype, False])
    root.info = len(tape) - 1
    memory.version += 1
    return True


def may_view(root: Tracer, path: list) -> bool:
    """Return whether what is read through views of an array can be recorded in one step, past the views between.

    Cotangents are added into such a view, so it has to be one that can be written, and repeats no element.
    """
    memory = root.memory
    if type(memory) is not Memory or not memory.private:
        return False
    whole = root.wrapped
    if type(whole) is Tracer:
        if not are_all_below(root.owner, whole):
            return False
        simple = all(a.flags.c_contiguous for a in arrays_of(whole))
    elif RUNS.depth != 1:
        return False
    else:
        simple = whole.flags.c_contiguous
    return all(
        "template" in params or (simple and prim.view.in_place and prim.view.put_back is not None)
        for prim, params in path
    )


def record_view(trace: Recorder, root: Tracer, path: list, index: Any) -> int:
    """Record that an index of a view was read; return the position on the tape.

    A view taken again after each write would have a cotangent of its own each time, as large as the view.
    """
    position = len(trace.tape)
    trace.tape.append((VIEW, root.info, path, index, root.wrapped.shape, root.wrapped.dtype))
    return position


def adopt(trace: Any, root: Tracer, whole: np.ndarray) -> None:
    """Let plain memory become a value of a trace, which owns it from now on; before it there was no derivative."""
    trace.note_writes()
    trace.adopted.append(weakref.ref(root))
    if root.memory is None:
        root.memory = Memory()
    root.memory.private, root.memory.borrowed = True, False
    root.wrapped, root.owner, root.info = whole, trace, -1


def _copy(root: Tracer) -> None:
    root.wrapped = copy_layout(root.wrapped)


def exchange(record: list) -> None:
    """Put back what a write replaced, or, the second time, what it had written."""
    place, index = record[_PLACE], record[_INDEX]
    other = pick_at(place, index)
    put_at(place, index, record[_OTHER])
    record[_OTHER] = other
    record[_UNDONE] = not record[_UNDONE]


def redo(tape: list) -> None:
    """Write again, in order, what a sweep has put back."""
    for record in tape:
        if type(record) is list and record[_UNDONE]:
            exchange(record)


def sweep_write(record: list, i: int, cts: list, own: bytearray, keep: bool, careful: bool) -> None:
    """Take a write back, and move the cotangent of its place to the value that was written there.

    A `careful` sweep masks what was written over: it may meet an infinite slope.
    """
    _, j, k, place, index, old, path, whole, _, shape, dtype, picks = record
    masks = picks or careful
    if keep:
        exchange(record)
    elif type(place) is Tracer:
        put_at(place, index, old)
    else:
        place[index] = old
    g = cts[i]
    cts[i] = None
    if g is None:
        return
    if type(g) is Indexed:
        g = g.gather()
    whole = layout(whole) if type(whole) is Tracer else whole
    live = _find_live(g, own[i], path, whole) if masks or type(g) is Masked else None
    if type(g) is Masked and live is None:
        g, c = _move_masked(g, path, index, masks)
    elif type(g := densify(g)) is Tracer:
        g, c = _move_traced(g, own[i], path, index)
    else:
        g, c = _move(g, own[i], path, index, whole)
    if live is not None:
        g, c = _mask_moved(live, g, c, index, masks)
    if j >= 0 and (picks or old.size != whole.size):  # else all of it is written over
        if cts[j] is None:
            cts[j] = g
            own[j] = 2 if type(g) is Masked else 1
        else:
            accumulate(cts, own, j, g)
    if k >= 0 and c is not None:
        if type(c) is Masked or c.shape != shape or c.dtype is not dtype or shape:
            c = _fit_written(c, index, place.shape, shape, dtype)
        if cts[k] is None:
            cts[k] = c
            own[k] = type(c) is np.ndarray
        else:
            accumulate(cts, own, k, c)


def _fit_written(c: Any, index: Any, place: tuple, shape: tuple, dtype: Any) -> Any:
    """Bring the cotangent of what was written at an index of a place to the shape and dtype of the value."""
    if (last := _find_last(np.shape(c.value if type(c) is Masked else c), index, place)) is not None:
        c = Selection(last) * c  # those before it were overwritten
    if type(c) is Masked:
        return c.move(lambda c: _fit_value(c, shape, dtype))
    return _fit_value(c, shape, dtype)


def _fit_value(c: Any, shape: tuple, dtype: Any) -> Any:
    lead = len(shape) - np.ndim(c)  # NumPy lets x[i] = v have superfluous unit axes in front
    return fit(c.reshape((1,) * lead + np.shape(c)) if lead > 0 else c, shape, dtype)


def _find_live(g: Any, owned: int, path: list, whole: np.ndarray) -> tuple | None:
    """Return which elements of a cotangent are live, as a mask to write into, and the part that a path leads to.

    None if the mask is traced, or no view of it.
    """
    live = g.live if type(g) is Masked else True
    if type(live) is Tracer:
        return None
    if owned < 2 or type(live) is not np.ndarray or live.shape != whole.shape:
        given, live = live, np.empty_like(whole, dtype=bool)
        live[...] = given
    part = follow(live, path)
    return None if part is None else (live, part)


def _mask_moved(live: tuple, g: Any, c: Any, index: Any, masks: bool) -> tuple:
    """Return the cotangents of an array before a write, and of what was written, which may be None: as they are live.

    With `masks` nothing that stood where it was written is.
    """
    mask, part = live
    written = pick(part, index)
    if masks:
        part[index] = False
    count = np.count_nonzero(written)
    if not count:
        c = None
    elif count < np.size(written):
        c = Masked(c, written, clean=True)
    return Masked(g, mask, clean=True), c


def _move(g: Any, owned: int, path: list, index: Any, whole: np.ndarray) -> tuple:
    """Take the cotangent of a place out of that of the array, in place where it is the sweep's own."""
    part = follow(g, path) if owned and type(g) is np.ndarray else None
    if part is None:
        given = g
        g = copy_layout(whole) if whole.dtype == given.dtype else copy_layout(whole).astype(given.dtype)
        g[...] = given
        part = follow(g, path)
    c = part[index]
    if type(c) is np.ndarray and c.base is not None:
        c = c.copy()
    part[index] = 0.0
    return g, c


def _move_masked(g: Masked, path: list, index: Any, masks: bool) -> tuple:
    """Take a cotangent of which it is traced where it is live out of that of the array."""
    live = np.broadcast_to(g.live, g.value.shape)
    written = view_along(live, path)[index]
    if masks:
        template, arrays = split_index(index)
        live = write_through(live, path, template, np.False_, arrays)
    rest, c = _move_traced(g.dense(), 0, path, index)
    return Masked(rest, live, clean=True), Masked(c, written, clean=True)


def _move_traced(g: Tracer, owned: int, path: list, index: Any) -> tuple:
    """Take the cotangent of a place out of that of the array, however that one lies in memory."""
    c = move_in_place(g, owned, path, index)
    if c is not None:
        return g, c
    part = view_along(g, path)
    c = part[index]
    template, arrays = split_index(index)
    return write_through(g, path, template, part.dtype.type(0), arrays), snapshot(c) if type(c) is Tracer else c


def _find_last(values: tuple, index: Any, shape: tuple) -> Any:
    """Return which of the values written at an index is the last one of its element; None if each of them is."""
    for part in index:
        if type(part) is np.ndarray and part.dtype.kind != "b":
            break
    else:
        return None
    order = np.arange(math.prod(values)).reshape(values)
    marks = np.zeros(shape, order.dtype)
    marks[index] = order
    last = marks[index] == order
    return None if last.all() else last


def detach(tape: list) -> None:
    """Let the records keep copies of what they kept of written memory, and the writes no memory at all.

    The sweep then puts nothing back: another transform may keep what this sweep computes with.
    """
    written = [a for record in tape if type(record) is list for a in arrays_of(record[_WHOLE])]
    for i in range(len(tape) - 1, -1, -1):
        record = tape[i]
        if type(record) is list:
            exchange(record)
        elif record is not None:
            tape[i] = _copy_shared(record, written)
    redo(tape)
    for record in tape:
        if type(record) is list:
            record[_PLACE] = map_arrays(lambda a: np.empty(a.shape, a.dtype), record[_PLACE])


def _copy_shared(item: Any, written: list) -> Any:
    """Return a record with copies of the arrays in it that share memory with one of `written`."""
    if type(item) is tuple:
        parts = tuple([_copy_shared(part, written) for part in item])
        return parts if any(a is not b for a, b in zip(parts, item, strict=True)) else item
    if type(item) is not np.ndarray and (type(item) is not Tracer or find_layers(item) is None):
        return item
    return copy_layers(item) if any(shares(a, w) for a in arrays_of(item) for w in written) else item
