"""Indexing: basic, advanced, boolean and mixed, and its transpose, adding at an index.

An index is split in two: a static template of slices, integers and places for arrays, and the index arrays,
which are operands because they may be batched. The cotangent of ``x[i]`` is not an array of zeros with a few
entries but an `Indexed`: the backward pass adds into one buffer, so a loop over ``x[t]``, t < T, costs O(T).
"""

from __future__ import annotations

import math
import operator
from typing import Any

import numpy as np

from fad.backends import backend_of, host, is_on_device, like, made_like
from fad.core.primitives.archetypes import cast, fit
from fad.core.primitives.cotangent import FEW, Indexed, Masked, Selection, is_basic
from fad.core.primitives.primitive import Primitive, has_tracer, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, add_methods, bind, outcome
from fad.core.tracing.views import Memory, ViewRule, copy_layout, is_array, layout, refresh, repeats_elements, unwrap
from fad.introspect.frames import user_line
from fad.ops.layout.index_layout import (
    ARRAY,
    can_broadcast,
    check_masks,
    describe_misfit,
    index_layout,
    join_index,
    last_of_each,
    with_elements,
)
from fad.ops.layout.memory_order import axes_in_memory, lay_out_axes
from fad.ops.places.traced_index import TracedIndex, link_view, slicer

_SMALL = 8  # an array has so many times the elements of values that are added into it one by one


def split_index(index: Any) -> tuple[tuple, list]:
    """Return ``(template, arrays)`` for what stands in the brackets of ``x[...]``."""
    template: list[Any] = []
    arrays: list[Any] = []
    for part in index if type(index) is tuple else (index,):
        if part is None or part is Ellipsis or type(part) is int:
            template.append(part)
        elif type(part) is slice:
            template.append(slice(_as_index(part.start), _as_index(part.stop), _as_index(part.step)))
        elif issubclass(type(part), np.integer):
            template.append(int(part))
        else:
            template.append(ARRAY)
            arrays.append(_index_array(part))
    return tuple(template), arrays


def as_basic(index: Any) -> tuple | None:
    """Return an index of integers and slices as a tuple; None if something else is in it, which `split_index` reads."""
    if type(index) is not tuple:
        index = (index,)
    for part in index:
        kind = type(part)
        if kind is int or part is None or part is Ellipsis:
            continue
        if kind is not slice:
            return None
        start, stop, step = part.start, part.stop, part.step
        if (
            (start is not None and type(start) is not int)
            or (stop is not None and type(stop) is not int)
            or (step is not None and type(step) is not int)
        ):
            return None
    return index


def _index_array(part: Any) -> Any:
    """Return an index array; the mask among them is made plain, for the shape of the result depends on its values."""
    if type(part) is list and has_tracer(part):
        part = np.stack(part)
    part = part if hasattr(part, "dtype") else np.asarray(part)
    if part.dtype.kind == "b":
        return outcome(part)
    if part.dtype.kind not in "iu":
        if part.size or type(part) is Tracer:
            raise IndexError(f"arrays used as indices must be of integer or boolean type, not {part.dtype}")
        part = part.astype(np.intp)
    return part


def _as_arrays(indices: Any) -> list:
    """Return index operands as arrays: a loop that runs step by step gives its counter, a Python number, for one."""
    return [a if hasattr(a, "dtype") else np.asarray(a) for a in indices]


def _as_index(x: Any) -> Any:
    return x if x is None or type(x) is int else operator.index(x)


def _forward(x, *arrays, template):
    return x[join_index(template, arrays)]


def _getitem_vjp(k, ct, y, x, *arrays, template):
    if k:
        return None
    live = True if arrays else None  # loops over x[t] are to cost nothing more
    return Indexed(x.shape, x.dtype, join_index(template, arrays), cast(ct, x.dtype), _sum_entries, live)


def _sum_entries(shape: tuple, dtype: Any, entries: list, onto: Any = None) -> Any:
    """Return zeros, or the array `onto`, with traced values added at their indices.

    Into zeros they are added in one operation if all indices are plain. Into an array that is there, a few small values
    are added one by one: in a compiled program that costs what they are, and not what the array is.
    """
    indices = [index if type(index) is tuple else (index,) for index, _ in entries]
    values = [v for _, v in entries]
    if onto is not None:
        touched = sum(math.prod(np.shape(v)) for v in values)
        same = onto.shape == tuple(shape) and onto.dtype == dtype
        if not same or len(entries) > FEW or touched * _SMALL > math.prod(shape):
            return onto + _sum_entries(shape, dtype, entries)
        return _add(onto, indices, values)
    if not any(type(part) is Tracer for index in indices for part in index):
        return bind(scatter_p, *values, shape=shape, dtype=dtype, indices=tuple(indices))
    return _add(made_like(np.zeros_like, values[0], shape, dtype), indices, values)


def _add(total: Any, indices: list, values: list) -> Any:
    for index, v in zip(indices, values, strict=True):
        template, arrays = split_index(index)
        total = bind(index_add_p, total, v, *arrays, template=template)
    return total


def _concrete_masks(trace, template, arrays, batched, shape):
    """Turn boolean masks into integer index arrays; a mask that differs between batch elements splits them."""
    parts: list = []
    out: list = []
    flags: list = []
    arrays = _as_arrays(arrays)
    if any(a.dtype.kind == "b" for a in arrays):
        pairs = list(zip(arrays, batched, strict=True))
        arrays = [(trace.decide(a) if b else outcome(a)) if a.dtype.kind == "b" else a for a, b in pairs]
        batched = [b and a.dtype.kind != "b" for a, b in pairs]
        check_masks(template, arrays, shape)
    it = iter(zip(arrays, batched, strict=True))
    for part in template:
        if part is not ARRAY:
            parts.append(part)
            continue
        a, b = next(it)
        found = np.nonzero(a) if a.dtype.kind == "b" and a.ndim else (a,)
        parts += [ARRAY] * len(found)
        out += found
        flags += [b] * len(found)
    if any(flags) and any(a.dtype.kind == "b" for a in out):
        raise IndexError("x[True, i] with an i that differs between the batch elements of vmap: write x[None][:, i]")
    return tuple(parts), out, tuple(flags)


def _add_batch_axis(a, batched, size, rank):
    """Give an index array the rank `rank` behind a batch axis, of length 1 if the array is not batched."""
    shape = a.shape[1:] if batched else a.shape
    return a.reshape((size if batched else 1,) + (1,) * (rank - len(shape)) + shape)


def _index_in_batch(trace, template, arrays, flags, ndim):
    """Index with a leading batch axis: batch element i of the result takes from batch element i of the operand.

    Returns ``(template, arrays, rank, position)``: NumPy puts the `rank` axes of the index arrays after the batch axis,
    and they belong at `position` (counted without the batch axis).
    """
    rank = max(np.ndim(a) - b for a, b in zip(arrays, flags, strict=True))
    _, position, _ = index_layout(template, arrays, ndim)
    wide = [_add_batch_axis(a, b, trace.size, rank) for a, b in zip(arrays, flags, strict=True)]
    elements = like(wide[0], np.arange(trace.size).reshape((trace.size,) + (1,) * rank))
    return (ARRAY, *template), [elements, *wide], rank, position


def _move_axes(x, rank, source, target):
    if source == target or not rank:
        return x
    return np.moveaxis(x, tuple(range(source, source + rank)), tuple(range(target, target + rank)))


def _getitem_batch(trace, batched, xs, params):
    x, *arrays = xs
    shape = x.shape[1:] if batched[0] else x.shape
    template, arrays, flags = _concrete_masks(trace, params["template"], arrays, batched[1:], shape)
    if not any(flags) and not batched[0]:  # only a mask differed, and these batch elements agree on it
        y = bind(getitem_p, x, *arrays, template=template)
        return np.broadcast_to(y, (trace.size, *y.shape))
    if not any(flags):
        rank, _, separated = index_layout(template, arrays, x.ndim - 1)
        y = bind(getitem_p, x, *arrays, template=(slice(None), *template))
        y = np.moveaxis(y, rank, 0) if separated else y
        return _lay_out_each(y, x, template, arrays) if arrays else y
    if not batched[0]:
        rank = max(np.ndim(a) - b for a, b in zip(arrays, flags, strict=True))
        _, position, _ = index_layout(template, arrays, x.ndim)
        wide = [_add_batch_axis(a, b, trace.size, rank) for a, b in zip(arrays, flags, strict=True)]
        y = bind(getitem_p, x, *wide, template=template)
        return np.moveaxis(y, position, 0) if position else y
    template, arrays, rank, position = _index_in_batch(trace, template, arrays, flags, x.ndim - 1)
    return _move_axes(bind(getitem_p, x, *arrays, template=template), rank, 1, 1 + position)


def _lay_out_each(y, x, template, arrays):
    """Return a batch in which each element's result lies in memory as NumPy's: on that depends what is a view."""
    plain = layout(x)
    if type(plain) is not np.ndarray or not plain.size:
        return y
    own = plain[0][join_index(template, [_any_place(layout(a)) for a in arrays])]
    if type(own) is not np.ndarray:
        return y
    return lay_out_axes(y, (0, *[axis + 1 for axis in axes_in_memory(own)]))


def _any_place(index):
    """Return an index array that lies in memory alike: a loop's body is recorded with numbers that may lie outside."""
    return index if index.dtype.kind == "b" else np.zeros_like(index)


def _getitem_samples(s):
    return [
        call(s.real(3, 4), template=(1,)),
        call(s.real(3, 4), template=(slice(None, None, -1), None, 2)),
        call(s.real(3, 4), np.array([0, 2, 0]), template=(ARRAY,)),
        call(s.real(3, 4, 2), np.array([0, 2, 0]), template=(slice(None), ARRAY, 0)),
        call(s.real(3, 4), np.array([True, False, True]), template=(ARRAY,)),
        call(s.real(2, 3, 4), np.array([[0, 1], [1, 1]]), np.array([3, 0]), template=(ARRAY, slice(0, 2), ARRAY)),
    ]


getitem_p: Any = register(
    Primitive(
        "getitem",
        _forward,
        jvp=lambda tangents, y, xs, params: bind(getitem_p, tangents[0], *xs[1:], **params),
        vjp=_getitem_vjp,
        batch=_getitem_batch,
        archetype="linear",
        saves="indices",
        samples=_getitem_samples,
        indexed=1,
        needs_trace=True,
        moves=True,
        dependence="moved",
        cotangent=lambda shape, dtype, index, ct, live: Indexed(shape, dtype, index, ct, _sum_entries, live),
        view=ViewRule(
            lambda x, y, params: _is_view(x, y, **params),
            lambda x, y, template: bind(index_set_p, x, y, template=template),
        ),
        doc="The elements at an index: slices and integers in the template, arrays of integers as operands.",
    )
)


def _is_view(x: Any, y: Any, template: tuple) -> bool:
    return ARRAY not in template and is_array(x) and (bool(y.shape) or Ellipsis in template)


def getitem(x: Any, index: Any) -> Any:
    """Return ``x[index]``, as NumPy does, for every kind of index."""
    try:
        if type(x.memory) is tuple:
            refresh(x)
        if type(index) is int:
            return x.owner.index(getitem_p, x, (index,))
        basic = as_basic(index)
        if basic is not None:
            y = x.owner.index(getitem_p, x, basic)
            if index is Ellipsis and type(y) is Tracer and y.memory is None:
                y.memory = Memory()  # of a NumPy scalar: an array without axes
            return y
        by_bounds = slicer(index)
        if by_bounds is not None:
            return by_bounds.read(x, index)
        template, arrays = split_index(index)
        if not arrays:
            return x.owner.index(getitem_p, x, template)
        taken = TracedIndex(index, template, [like(x, a) for a in arrays], getitem_p, index_set_p)
        y = taken(x)
        link_view(x, y, taken)
        return y
    except IndexError as error:
        if not hasattr(error, "__notes__"):
            error.add_note(f"  in getitem of shape {x.shape}, at {user_line()}")
        raise


add_methods(__getitem__=getitem)


def pick(x: Any, index: Any) -> Any:
    """Return ``x[index]`` for a plain array too, which cannot be indexed by a traced index itself."""
    if type(x) is Tracer:
        return getitem(x, index)
    template, arrays = split_index(index)
    return bind(getitem_p, x, *[like(x, a) for a in arrays], template=template)


# --- several values added at several indices: the sum of Indexed cotangents, on tracers -----------------------


def _scatter_forward(*values, shape, dtype, indices):
    out = made_like(np.zeros_like, values[0], shape, dtype)
    for index, v in zip(indices, values, strict=True):
        add_at(out, index, v)
    return out


def add_at(target: Any, index: tuple, values: Any) -> None:
    if is_basic(index):
        target[index] += values
    else:
        backend_of(target).scatter_add(target, index, values)


def _scatter_jvp(tangents, y, xs, params):
    present = [(t, i) for t, i in zip(tangents, params["indices"], strict=True) if t is not None]
    ts, indices = zip(*present, strict=True)
    return bind(scatter_p, *ts, **{**params, "indices": indices})


def _scatter_batch(size, batched, xs, params):
    ndim = len(params["shape"])
    batch = [x if b else np.broadcast_to(x, (size, *np.shape(x))) for x, b in zip(xs, batched, strict=True)]
    values = [_move_batch_axis_behind(v, index, ndim) for v, index in zip(batch, params["indices"], strict=True)]
    indices = tuple((slice(None), *index) for index in params["indices"])
    return bind(scatter_p, *values, shape=(size, *params["shape"]), dtype=params["dtype"], indices=indices)


def _move_batch_axis_behind(values, index, ndim):
    """Put the batch axis of values where NumPy has it in ``x[:, *index]``: behind separated index arrays."""
    template, arrays = split_index(index)
    rank, _, separated = index_layout(template, arrays, ndim)
    return np.moveaxis(values, 0, rank) if separated else values


scatter_p: Any = register(
    Primitive(
        "scatter",
        _scatter_forward,
        jvp=_scatter_jvp,
        vjp=lambda k, ct, y, *xs, shape, dtype, indices: cast(ct[indices[k]], xs[k].dtype),
        batch=_scatter_batch,
        saves="none",
        archetype="linear",
        moves=True,
        dependence="scattered",
        samples=lambda s: [
            call(s.real(2), s.real(4), shape=(3, 4), dtype=np.dtype(s.dtype), indices=((slice(0, 2), 1), (2,))),
            call(s.real(3), shape=(4,), dtype=np.dtype(s.dtype), indices=((np.array([0, 2, 0]),),)),
        ],
        fresh=True,
        doc="Zeros of a shape with values at indices, added where they meet.",
    )
)

# --- x.at[i]: functional updates ---------------------------------------------------------------------------------


def _update(x, v, arrays, template, how):
    dtype = updated_dtype(x.dtype, v)
    if type(x) is np.ndarray and dtype == x.dtype:
        out = copy_layout(x)
    elif type(x) is np.ndarray:  # of a batch that was broadcast each element becomes one piece
        out = np.array(x, dtype=dtype, copy=True, order="C" if repeats_elements(x) else "K")
    else:
        out = np.copy(x)
    index = join_index(template, arrays)
    if how == "add":
        add_at(out, index, v)
    elif type(out) is not np.ndarray and any(np.size(a) > 1 and a.dtype.kind != "b" for a in arrays):
        _write_last(out, index, v)
    else:
        out[index] = v
    return out


def _write_last(target, index, values):
    """Write into an array of a device, of several values for one place the last, as NumPy does.

    The device writes them at once, and any of them may stay: so the last is looked up, and all write that.
    """
    order = backend_of(target).arange(values.size, np.int32 if values.size < 2**31 else np.uint64)
    last = np.zeros_like(target, dtype=order.dtype)
    backend_of(target).scatter_max(last, index, order.reshape(values.shape))
    target[index] = values.reshape(-1)[last[index]]


def updated_dtype(own, v):
    """Return the dtype of an updated array: the array's own, its byte order included, if the values fit in."""
    dtype = np.result_type(own, v)
    return own if dtype == own.newbyteorder("=") else dtype


def as_full_value(x, v, arrays, template):
    """Broadcast an update to the shape of what it replaces."""
    # NumPy looks at the shapes before it looks whether places exist, so other places stand in for integers.
    stand_ins = [host(a) if a.dtype.kind == "b" else np.zeros(a.shape, np.intp) for a in arrays]
    shape = np.broadcast_to(False, with_elements(np.shape(x), template, arrays))[join_index(template, stand_ins)].shape
    if np.shape(v) == shape:
        return v
    given = np.shape(v)
    lead = len(given) - len(shape)  # NumPy lets x[i] = v have superfluous unit axes in front
    v = v.reshape(given[lead:]) if lead > 0 and set(given[:lead]) == {1} else v
    if not can_broadcast(np.shape(v), shape):
        raise ValueError(describe_misfit(given, shape, template, arrays))
    return np.broadcast_to(v, shape)


def _repeat(x, size):
    """Return an array once for each example, in each of which its axes lie in memory as they do in the array."""
    y = np.broadcast_to(x, (size, *np.shape(x)))
    plain = layout(x)
    if type(plain) is not np.ndarray or plain.flags.c_contiguous:
        return y
    return lay_out_axes(y, (0, *[axis + 1 for axis in axes_in_memory(plain)]))


def _update_batch(prim):
    def batch(trace, batched, xs, params):
        x, v, *arrays = xs
        shape = np.shape(x)[1:] if batched[0] else np.shape(x)
        template, arrays, flags = _concrete_masks(trace, params["template"], arrays, batched[2:], shape)
        x = x if batched[0] else _repeat(x, trace.size)
        if not batched[1]:
            v = np.broadcast_to(v, (trace.size, *np.shape(v)))
        if not any(flags):
            rank, _, separated = index_layout(template, arrays, x.ndim - 1)
            v = np.moveaxis(v, 0, rank) if separated else v
            return bind(prim, x, v, *[like(x, a) for a in arrays], template=(slice(None), *template))
        template, arrays, rank, position = _index_in_batch(trace, template, arrays, flags, x.ndim - 1)
        arrays = [like(x, a) for a in arrays]
        return bind(prim, x, _move_axes(v, rank, 1 + position, 1), *arrays, template=template)

    return batch


def _update_jvp(prim):
    def jvp(tangents, y, xs, params):
        x, v = (np.zeros_like(p, dtype=y.dtype) if t is None else t for t, p in zip(tangents[:2], xs[:2], strict=True))
        t = bind(prim, x, v, *xs[2:], **params)
        constant = [tangent is None for tangent in tangents[:2]]  # numbers over the rest, or the rest around them
        if any(map(np.ndim, xs[2:])) and (constant[0] or (constant[1] and prim.name == "index_set")):
            ones = [at if c else np.ones_like(at) for c, at in zip(constant, (x, v), strict=True)]
            return Masked(t, lambda: bind(prim, *ones, *xs[2:], **params) != 0, clean=True)
        return t

    return jvp


def _add_vjp(k, ct, y, x, v, *arrays, template):
    if k == 0:
        return cast(ct, x.dtype)
    return cast(pick(ct, join_index(template, arrays)), v.dtype) if k == 1 else None


def _set_vjp(k, ct, y, x, v, *arrays, template):
    index = join_index(template, arrays)
    if k == 0:
        if not arrays and v.size == x.size:
            return None  # all of it is written over
        zero = made_like(np.zeros_like, ct, v.shape)
        c = cast(bind(index_set_p, ct, zero, *arrays, template=template), x.dtype)
        return Masked(c, lambda: bind(index_set_p, *_marks(ct, x, v), *arrays, template=template), clean=True)
    if k > 1:
        return None
    if v.size and any(a.dtype.kind != "b" for a in _as_arrays(arrays)):  # masks choose each place once
        # Of several values for one place the last is kept; the others have no derivative.
        if all(math.prod(np.shape(a)) == 1 for a in arrays):
            return cast(pick(ct, index), v.dtype)
        kept = last_of_each(x.shape, _as_arrays(arrays), template)
        if kept is not None:
            return fit(Selection(kept) * pick(ct, index), v.shape, v.dtype)
        order = like(ct, np.arange(v.size).reshape(v.shape))
        last = bind(index_set_p, np.zeros_like(ct, dtype=order.dtype), order, *arrays, template=template)[index]
        return fit(Selection(last == order) * pick(ct, index), v.shape, v.dtype)
    return cast(pick(ct, index), v.dtype)


def _marks(ct, x, v):
    """Return true for the elements of an array, and false for those that are written over."""
    make = made_like if is_on_device(unwrap(ct)) else lambda make, _, shape, dtype: make(np.empty(shape, dtype))
    return make(np.ones_like, ct, x.shape, bool), make(np.zeros_like, ct, v.shape, bool)


def _update_samples(s):
    return [
        call(s.real(3, 4), s.real(4), template=(1,)),
        call(s.real(5), s.real(3), np.array([0, 2, 0]), template=(ARRAY,)),
        call(s.real(2, 3, 4), s.real(2, 2, 4), np.array([2, 0]), template=(slice(None), ARRAY)),
        call(s.real(4), s.real(2), np.array([True, False, False, True]), template=(ARRAY,)),
    ]


index_add_p: Any = register(
    Primitive(
        "index_add", lambda x, v, *arrays, template: _update(x, v, arrays, template, "add"), vjp=_add_vjp,
        samples=_update_samples, archetype="linear", saves="indices", indexed=2, updates=True, adds=True,
        needs_trace=True, moves=True, fresh=True,
        doc="The array with values added at an index.",
    )
)  # fmt: skip
index_set_p: Any = register(
    Primitive(
        "index_set", lambda x, v, *arrays, template: _update(x, v, arrays, template, "set"), vjp=_set_vjp,
        samples=_update_samples, archetype="linear", saves="indices", indexed=2, updates=True,
        needs_trace=True, moves=True, fresh=True,
        doc="The array with values put at an index.",
    )
)  # fmt: skip
for _prim in (index_add_p, index_set_p):
    _prim.jvp = _update_jvp(_prim)
    _prim.batch = _update_batch(_prim)
