"""Arrays of several transforms at once: a batch of values, each beside its tangent, is plain arrays in the end.

A trace whose values are made of arrays alone names the slots of its tracers that hold them (`Trace.parts`). What such
tracers stand for can be written where it lies in memory, layer by layer, as a plain array is.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, tracer
from fad.core.tracing.views import copy_layout, is_array, is_writeable, owner, refresh, repeats_elements, shares

_HOST = (np.ndarray, np.generic)


def find_layers(x: Any) -> set[Trace] | None:
    """Return the traces that a value is made by, if it is arrays of the host alone in the end; else None."""
    if type(x) is not Tracer:
        return set() if isinstance(x, _HOST) else None
    found = {x.owner}
    for part in _parts(x):
        inner = find_layers(part)
        if inner is None:
            return None
        found |= inner
    return found if x.owner.parts else None


def _parts(x: Tracer) -> list:
    return [getattr(x, name) for name in x.owner.parts]


def _rebuild(x: Tracer, parts: list) -> Tracer:
    y = tracer(None, x.owner, x.info)
    for name, part in zip(x.owner.parts, parts, strict=True):
        setattr(y, name, part)
    return y


def map_arrays(f: Callable, x: Any) -> Any:
    """Return a value made of ``f(array)`` for each plain array that it is made of."""
    return _rebuild(x, [map_arrays(f, part) for part in _parts(x)]) if type(x) is Tracer else f(x)


def arrays_of(x: Any) -> Iterator[Any]:
    """Walk over the plain arrays that a value is made of."""
    if type(x) is not Tracer:
        yield x
        return
    for part in _parts(x):
        yield from arrays_of(part)


def copy_layers(x: Any) -> Any:
    """Return the same value in memory of its own."""
    if type(x) is Tracer:
        refresh(x)
    return map_arrays(_copy, x)


def _copy(x: Any) -> Any:
    return copy_layout(x) if type(x) is np.ndarray else x


def can_write(x: Any) -> bool:
    """Return whether all arrays that a value is made of can be written, and repeat no element."""
    if type(x) is Tracer:
        return is_array(x) if x.owner.recorded else all(map(can_write, _parts(x)))
    return type(x) is np.ndarray and is_writeable(x) and not repeats_elements(x)


def is_part(x: Any, whole: Any) -> bool:
    """Return whether each array of a view lies in the memory of its own of another value."""
    if find_layers(x) is None:
        return False
    pairs = zip(arrays_of(x), arrays_of(whole), strict=True)
    return all(type(a) is np.ndarray and shares(a, b) for a, b in pairs)


def fresh_layers(y: Any, operands: list) -> Any:
    """Return a result in memory of its own: some operations hand an operand on, or a part of it."""
    if type(y) is not Tracer or find_layers(y) is None:
        return y
    known = {id(owner(a)) for x in operands for a in _known_arrays(x)}
    return copy_layers(y) if any(type(a) is np.ndarray and id(owner(a)) in known for a in arrays_of(y)) else y


def _known_arrays(x: Any) -> list:
    return [a for a in arrays_of(x) if type(a) is np.ndarray] if find_layers(x) is not None else []


def takes(x: Any, v: Any) -> bool:
    """Return whether a value can be written into an array as it is made: no part of it needs another layer."""
    if type(v) is not Tracer:
        return isinstance(v, (*_HOST, int, float, complex))
    if type(x) is not Tracer or v.owner.birth > x.owner.birth:
        return False
    if v.owner is x.owner:
        return all(map(takes, _parts(x), _parts(v)))
    return takes(x.wrapped, v)


def pick_layers(x: Any, index: tuple) -> Any:
    """Return what stands at an index of slices and integers, in memory of its own."""
    if type(x) is Tracer and not x.owner.recorded:
        inner = (slice(None), *index) if x.owner.batched else index
        return _rebuild(x, [pick_layers(part, inner) for part in _parts(x)])
    return copy_layers(x[index])


def put_layers(x: Any, index: tuple, v: Any) -> None:
    """Write a value, of the shape that stands there or without axes, at an index of slices and integers."""
    _at(x, index, v, operator.setitem)


def add_layers(x: Any, index: tuple, v: Any) -> None:
    """Add a value in the same way."""
    _at(x, index, v, _add)


def _at(x: Any, index: tuple, v: Any, change: Callable) -> None:
    if type(x) is not Tracer or x.owner.recorded:
        change(x, index, v)
        return
    inner = (slice(None), *index) if x.owner.batched else index
    own = type(v) is Tracer and v.owner is x.owner
    values = _parts(v) if own else [v, *[0.0 for _ in x.owner.parts[1:]]]
    for part, value in zip(_parts(x), values, strict=True):
        _at(part, inner, value, change)


def _add(x: Any, index: tuple, v: Any) -> None:
    x[index] += v


def zeros_in_layers(x: Any, shape: tuple, dtype: Any) -> Any:
    """Return zeros of a shape in the layers of another value."""
    if type(x) is not Tracer:
        return np.zeros(shape, dtype)
    inner = (x.wrapped.shape[0], *shape) if x.owner.batched else shape
    return _rebuild(x, [zeros_in_layers(part, inner, dtype) for part in _parts(x)])
