"""In-place writes in reverse mode: what the tape keeps of a write, and how the backward sweep takes it back.

A write into memory of the tape's own keeps what stood there. The sweep meets the writes in reverse order and puts the
old values back, so that what earlier operations kept by reference is again what they saw; the cotangent of the
place moves to the written value, and the cotangent of the array goes on to its version before the write with zeros in
that place. All of it costs what was touched, not the size of the array.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.archetypes import fit
from fad.core.cotangent import densify, is_basic
from fad.core.memory import RUNS, copy_layout, follow, own_memory, pick, shares, snapshot
from fad.core.tracer import Tracer
from fad.ops.indexing import join_index
from fad.ops.writing import write
from fad.transforms.accumulate import accumulate
from fad.transforms.tape import WRITE, Recorder

_PLACE, _INDEX, _OTHER, _WHOLE, _UNDONE = 3, 4, 5, 7, 8


def overwrite(trace: Recorder, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
    """Write into the memory of an array that only this trace knows, and record it; False where others may know it."""
    if RUNS.depth != 1 or root.trace is not trace or type(root.value) is not np.ndarray:
        return False
    position = -1
    if type(v) is Tracer:
        if v.trace is not trace or type(v.value) is Tracer:
            return False
        position, v = v.info, v.value
    memory = own_memory(root, _copy)
    place = follow(root.value, path)
    if place is None:
        return False
    index = join_index(template, arrays)
    old = pick(place, index)
    place[index] = v
    shape, dtype = (v.shape, v.dtype) if position >= 0 else (None, None)
    tape = trace.tape
    tape.append([WRITE, root.info, position, place, index, old, path, root.value, False, shape, dtype])
    root.info = len(tape) - 1
    memory.version += 1
    return True


def _copy(root: Tracer) -> None:
    root.value = copy_layout(root.value)


def exchange(record: list) -> None:
    """Put back what a write replaced, or, the second time, what it had written."""
    place, index = record[_PLACE], record[_INDEX]
    other = pick(place, index)
    place[index] = record[_OTHER]
    record[_OTHER] = other
    record[_UNDONE] = not record[_UNDONE]


def redo(tape: list) -> None:
    """Write again, in order, what a sweep has put back."""
    for record in tape:
        if type(record) is list and record[_UNDONE]:
            exchange(record)


def sweep_write(record: list, i: int, cts: list, own: bytearray) -> None:
    """Take a write back, and move the cotangent of its place to the value that was written there."""
    _, j, k, _, index, _, path, whole, _, shape, dtype = record
    exchange(record)
    g = cts[i]
    cts[i] = None
    if g is None:
        return
    g = densify(g)
    if type(g) is Tracer:
        g = g if own[i] else snapshot(g)
        c = _move_traced(g, path, index)
    else:
        g, c = _move(g, own[i], path, index, whole)
    if cts[j] is None:
        cts[j] = g
        own[j] = 1
    else:
        accumulate(cts, own, j, g)
    if k >= 0:
        c = _last(c, index, record[_PLACE].shape)
        lead = len(shape) - np.ndim(c)  # NumPy lets x[i] = v have superfluous unit axes in front
        c = c.reshape((1,) * lead + np.shape(c)) if lead > 0 else c
        accumulate(cts, own, k, fit(c, shape, dtype))


def _move(g: Any, owned: int, path: list, index: Any, whole: np.ndarray) -> tuple:
    """Take the cotangent of a place out of that of the array, in place where it is the sweep's own."""
    part = follow(g, path) if owned and type(g) is np.ndarray and g.flags.writeable else None
    if part is None:
        given = g
        g = copy_layout(whole) if whole.dtype == given.dtype else copy_layout(whole).astype(given.dtype)
        g[...] = given
        part = follow(g, path)
    c = pick(part, index)
    part[index] = 0
    return g, c


def _move_traced(g: Tracer, path: list, index: Any) -> Any:
    part: Any = g
    for prim, params in path:
        part = prim(part, **params)
    c = part[index]
    c = snapshot(c) if type(c) is Tracer else c
    write(part, index, 0.0)
    return c


def _last(c: Any, index: Any, shape: tuple) -> Any:
    """Keep the cotangent of the last value that was written to each element; those before it were overwritten."""
    if is_basic(index) or not np.size(c) or all(type(p) is not np.ndarray or p.dtype.kind == "b" for p in index):
        return c
    order = np.arange(np.size(c)).reshape(np.shape(c))
    marks = np.zeros(shape, order.dtype)
    marks[index] = order
    return np.where(marks[index] == order, c, 0.0)


def detach(tape: list) -> None:
    """Let the records keep copies of what they kept of written memory, and the writes no memory at all.

    The sweep then puts nothing back: another transform may keep what this sweep computes with.
    """
    written = [record[_WHOLE] for record in tape if type(record) is list]
    for i in range(len(tape) - 1, -1, -1):
        record = tape[i]
        if type(record) is list:
            exchange(record)
        elif record is not None:
            tape[i] = _copied(record, written)
    redo(tape)
    for record in tape:
        if type(record) is list:
            record[_PLACE] = np.empty(record[_PLACE].shape, record[_PLACE].dtype)


def _copied(item: Any, written: list) -> Any:
    """Return a record with copies of the arrays in it that share memory with one of `written`."""
    if type(item) is tuple:
        parts = tuple([_copied(part, written) for part in item])
        return parts if any(a is not b for a, b in zip(parts, item, strict=True)) else item
    return item.copy() if type(item) is np.ndarray and any(shares(item, w) for w in written) else item
