"""Sorting: sort, partition and top_k carry derivatives along; argsort, argpartition and lexsort are flat.

Sorting is a permutation that is constant nearby: a flat order, and a linear operation that permutes by it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.primitives.archetypes import flat
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.ops.layout.memory_order import lay_out_as_copy
from fad.ops.reductions.reduction import shift_axes
from fad.ops.reductions.scans import cut, flatten

# --- orders --------------------------------------------------------------------------------------------------------


def _flat_along(name: str, forward: Any, samples: Any, doc: str = "") -> Primitive:
    batch = lambda size, batched, xs, params: bind(prim, *xs, **shift_axes(params))
    prim: Primitive = flat(name, forward, batch=batch, samples=samples, positions=True, doc=doc)
    return prim


argsort_p: Any = _flat_along(
    "order_along",
    lambda x, *, axis, kind: np.argsort(x, axis=axis, kind=kind),
    lambda s: [call(s.real(3, 4), axis=1, kind=None), call(s.real(5), axis=0, kind="stable")],
    doc="The indices that sort along an axis.",
)


def _partly(x, *, axis, kth):
    """Return an order with the elements at `kth` in their places: on a device, which may wait for it, a whole one."""
    return np.argpartition(x, kth, axis=axis) if type(x) is np.ndarray else np.argsort(x, axis=axis)


argpartition_p: Any = _flat_along(
    "partial_order_along",
    _partly,
    lambda s: [call(s.real(3, 5), axis=1, kth=2)],
)


def _permute_pair() -> tuple:
    """Make the two operations that permute along an axis by an order, and back by it: each is the other's transpose."""

    def place(x, order, *, axis):
        if type(x) is not np.ndarray:  # where put_along_axis may not know the array
            return np.take_along_axis(x, np.argsort(order, axis=axis), axis)
        out = np.empty_like(x)
        np.put_along_axis(out, order, x, axis)
        return out

    permute = Primitive(
        "permute_along",
        lambda x, order, *, axis: np.take_along_axis(x, order, axis),
        doc="The elements along an axis in a given order.",
    )
    back = Primitive("permute_back_along", place, doc="The elements along an axis put back from a given order.")
    for prim, other in ((permute, back), (back, permute)):
        _fill(prim, other)
    return permute, back


def _fill(prim: Primitive, other: Primitive) -> None:
    prim.jvp = lambda tangents, y, xs, params: bind(prim, tangents[0], xs[1], **params)
    prim.vjp = (lambda ct, y, x, order, axis: bind(other, ct, order, axis=axis), None)
    prim.batch = lambda size, batched, xs, params: bind(prim, *_broadcast(size, batched, xs), **shift_axes(params))
    prim.samples = lambda s: [
        call(s.real(3, 4), np.argsort(s.real(3, 4), axis=1), axis=1),
        call(s.real(4), np.array([2, 0, 3, 1]), axis=0),
    ]
    prim.archetype = "linear"
    prim.moves = True
    register(prim)


def _broadcast(size, batched, xs):
    return [x if b else np.broadcast_to(x, (size, *x.shape)) for x, b in zip(xs, batched, strict=True)]


permute_p, permute_back_p = _permute_pair()


def _make_sorted(name: str, rearrange: Any, find_order: Any, samples: Any, doc: str) -> Primitive:
    """Make the operation ``rearrange(x, axis=, ...)``, which is given the order that its derivative permutes by.

    Of equal elements, zeros of both signs, NumPy may take others than that order does.
    """

    def forward(x, order, *, axis, **how):
        return rearrange(x, axis=axis, **how) if type(x) is np.ndarray else np.take_along_axis(x, order, axis)

    prim: Primitive = Primitive(
        name,
        forward,
        dependence="permuted",
        moves=True,
        jvp=lambda tangents, y, xs, params: bind(permute_p, tangents[0], xs[1], axis=params["axis"]),
        vjp=(lambda ct, y, x, order, axis, **how: bind(permute_back_p, ct, order, axis=axis), None),
        batch=lambda size, batched, xs, params: bind(prim, *_broadcast(size, batched, xs), **shift_axes(params)),
        saves="operands",
        samples=lambda s: [call(x, find_order(x, **how), **how) for x, how in samples(s)],
        doc=doc,
    )
    return register(prim)


sort_p: Any = _make_sorted(
    "sort_along",
    np.sort,
    lambda x, *, axis, kind: np.argsort(x, axis=axis),
    lambda s: [(s.real(3, 4), dict(axis=1, kind=None)), (s.real(5), dict(axis=0, kind="stable"))],
    "The elements along an axis in ascending order; the places that they come from are given.",
)


def _find_partition(x, *, axis, kth):
    """Return the order that partitions as `np.partition` does, which is not that of `np.argpartition`."""
    if type(x) is not np.ndarray:
        return np.argsort(x, axis=axis)
    order = np.empty(x.shape, np.intp)
    places = np.argsort(np.partition(x, kth, axis=axis), axis=axis, kind="stable")
    np.put_along_axis(order, places, np.argsort(x, axis=axis, kind="stable"), axis)
    return order


partition_order_p: Any = _flat_along(
    "order_of_partition",
    _find_partition,
    lambda s: [call(s.real(3, 5), axis=1, kth=2)],
    doc="The order in which NumPy's partition has the elements along an axis.",
)
partition_p: Any = _make_sorted(
    "partition_along",
    lambda x, *, axis, kth: np.partition(x, kth, axis=axis),
    _find_partition,
    lambda s: [(s.real(3, 5), dict(axis=1, kth=2)), (s.real(6), dict(axis=0, kth=(1, 3)))],
    "The elements along an axis, those numbered kth where sorting puts them; the places that they come from are given.",
)


def _kind(kind: Any, order: Any, stable: Any) -> Any:
    if order is not None:
        raise ValueError("Cannot specify order when the array has no fields.")
    return "stable" if stable else kind


def _order(a: Any, axis: Any) -> tuple[Any, int]:
    a = as_array(a)
    if a.ndim == 0 and axis is not None:
        raise np.exceptions.AxisError(axis, 0)
    return flatten(a, axis)


def sort_with_order(a: Any, axis: int, kind: Any = None) -> tuple[Any, Any]:
    """Return an array sorted along an axis, and the order that sorts it."""
    order = bind(argsort_p, a, axis=axis, kind=kind)
    return bind(permute_p, a, order, axis=axis), order


def _sample_sort(s):
    return [
        call(s.real(3, 4)),
        call(s.real(3, 4), axis=0),
        call(s.real(2, 3), axis=None),
        call(s.real(5), kind="stable"),
    ]


@public(np.sort, samples=_sample_sort)
def sort(a, axis=-1, kind=None, order=None, *, stable=None):
    """Return a sorted copy along an axis, or of the flattened array.

    >>> fad.grad(lambda x: fad.numpy.sort(x)[0])(np.array([3.0, 1.0, 2.0]))
    array([0., 1., 0.])
    """
    a, axis = _order(a, axis)
    kind = _kind(kind, order, stable)
    return lay_out_as_copy(bind(sort_p, a, bind(argsort_p, a, axis=axis, kind=kind), axis=axis, kind=kind), a)


@public(
    np.sort_complex,
    samples=lambda s: [call(s.real(3, 4)), call(s.real(4) + 1j * s.real(4))],
    raises="AxisError: `a` has no axis.",
)
def sort_complex(a):
    """Return a copy sorted along the last axis, by real and then by imaginary parts, as complex numbers.

    >>> fad.numpy.sort_complex(np.array([2.0, 1.0]))
    array([1.+0.j, 2.+0.j])
    """
    y = sort(a)
    wide = {"b": "F", "h": "F", "B": "F", "H": "F", "g": "G"}.get(y.dtype.char, "D")
    return y if y.dtype.kind == "c" else y.astype(wide)


@public(np.argsort, flat=True, methods=("argsort",), samples=_sample_sort)
def argsort(a, axis=-1, kind=None, order=None, *, stable=None):
    """Return the places of the sorted elements; integers, and so flat.

    >>> fad.numpy.argsort(np.array([3.0, 1.0, 2.0]))
    array([1, 2, 0])
    """
    a, axis = flatten(a, axis)
    return bind(argsort_p, a, axis=axis, kind=_kind(kind, order, stable))


def _kth(kth: Any) -> Any:
    return kth if type(kth) is int else tuple(int(k) for k in kth) if np.ndim(kth) else int(kth)


def _sample_partition(s):
    return [
        call(s.real(3, 5), 2),
        call(s.real(5), (1, 3)),
        call(s.real(4, 3), 1, axis=0),
        call(s.real(2, 3), 3, axis=None),
    ]


@public(np.partition, samples=_sample_partition)
def partition(a, kth, axis=-1, kind="introselect", order=None):
    """Return a copy in which the elements numbered `kth` stand where sorting would put them.

    >>> fad.numpy.partition(np.array([3.0, 1.0, 2.0]), 0)[0]
    np.float64(1.0)
    """
    a, axis = _order(a, axis)
    _kind(None, order, None)
    how = dict(axis=axis, kth=_kth(kth))
    return lay_out_as_copy(bind(partition_p, a, bind(partition_order_p, a, **how), **how), a)


@public(np.argpartition, flat=True, methods=("argpartition",), samples=_sample_partition)
def argpartition(a, kth, axis=-1, kind="introselect", order=None):
    """Return the places of the partitioned elements; integers, and so flat.

    >>> fad.numpy.argpartition(np.array([3.0, 1.0, 2.0]), 0)[0]
    np.int64(1)
    """
    a, axis = flatten(a, axis)
    _kind(None, order, None)
    return bind(argpartition_p, a, axis=axis, kth=_kth(kth))


def _lexsort(*keys, axis):
    if type(keys[0]) is np.ndarray:
        return np.lexsort(keys, axis=axis)
    order = np.argsort(keys[0], axis=axis, kind="stable")
    for key in keys[1:]:
        again = np.argsort(np.take_along_axis(key, order, axis), axis=axis, kind="stable")
        order = np.take_along_axis(order, again, axis)
    return order


lexsort_p: Any = flat(
    "lexical_order",
    _lexsort,
    batch=lambda size, batched, xs, params: bind(lexsort_p, *_broadcast(size, batched, xs), **shift_axes(params)),
    samples=lambda s: [call(s.ints(0, 2, (6,)), s.real(6), axis=0)],
    positions=True,
    doc="The indices that sort by several keys, the last one first.",
)


@public(np.lexsort, flat=True, samples=lambda s: [
    call((s.real(6), s.ints(0, 2, (6,)))), call([s.real(2, 3), s.real(2, 3)], axis=0)])  # fmt: skip
def lexsort(keys, axis=-1):
    """Return the order that sorts by the last key, ties by the one before it, and so on; flat.

    >>> fad.numpy.lexsort((np.array([3.0, 1.0, 2.0]),))
    array([1, 2, 0])
    """
    keys = [as_array(k) for k in keys]
    return bind(lexsort_p, *keys, axis=normalize_axis(axis, keys[0].ndim))


@public(samples=lambda s: [call(s.real(3, 6), 2), call(s.real(5), 3), call(s.real(4, 3), 2, axis=0)])
def top_k(x, k, axis=-1):
    """Return the `k` largest elements along an axis, largest first, and their places.

    Parameters
    ----------
    x : array
    k : int
        At most the size of the axis.
    axis : int

    Returns
    -------
    (values, indices)
        Arrays with `k` elements along `axis`; of equal elements the first come first. The indices are flat.

    Raises
    ------
    ValueError
        if there are fewer than `k` elements.

    Examples
    --------
    >>> top_k(np.array([1.0, 4.0, 2.0]), 2)
    (array([4., 2.]), array([1, 2]))
    """
    x = as_array(x)
    axis = normalize_axis(axis, x.ndim)
    n = x.shape[axis]
    if not 0 <= k <= n:
        raise ValueError(f"top_k was asked for k={k} elements of an axis of size {n}: k must be from 0 to {n}")
    # Sorted backwards, so that reversing gives the largest first and the first of equals first.
    backwards = cut(x, axis, None, None, -1)
    places = n - 1 - cut(bind(argsort_p, backwards, axis=axis, kind="stable"), axis, None, None, -1)
    places = cut(places, axis, 0, k)
    return np.take_along_axis(x, places, axis), places
