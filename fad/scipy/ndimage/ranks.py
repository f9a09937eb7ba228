"""Filters that choose one element of each window: least, greatest, median, of a rank or a percentile.

The derivative goes to the element that was chosen: to one of them where several are equal.
"""

from __future__ import annotations

import functools
import itertools
import math
import warnings
from typing import Any

import numpy as np
import scipy.ndimage

from fad.backends import like
from fad.core.primitives.archetypes import flat
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array, normalize_axis
from fad.scipy.ndimage.filters import beyond, choose_axes, in_dtype, per_axis
from fad.scipy.registration import registrar

register_function = registrar("ndimage", order="C")
_BLOCK = 2**22  # how many elements of windows are looked at together


def _choose(windows: Any, rank: int) -> Any:
    """Return which element along the last axis has a rank."""
    count = windows.shape[-1]
    if rank == 0:
        return np.argmin(windows, axis=-1)
    return np.argmax(windows, axis=-1) if rank == count - 1 else np.argpartition(windows, rank, axis=-1)[..., rank]


def _find_places(x: Any, *, offsets: tuple, shape: tuple, rank: int) -> Any:
    """Return where in the flattened last axes the element of a rank stands, for each of `shape` windows."""
    n = len(shape)
    lead, whole = x.shape[: x.ndim - n], x.shape[x.ndim - n :]
    strides = [math.prod(whole[k + 1 :]) for k in range(n)]
    steps = like(x, np.array([sum(o * s for o, s in zip(offset, strides, strict=True)) for offset in offsets]))
    rows = max(1, _BLOCK // max(1, len(offsets) * math.prod(lead) * math.prod(shape[1:])))
    found = []
    for start in range(0, shape[0], rows):
        block = (min(rows, shape[0] - start), *shape[1:])
        begins = (start, *[0] * (n - 1))
        parts = [
            x[(Ellipsis, *[slice(b + o, b + o + m) for b, o, m in zip(begins, offset, block, strict=True)])]
            for offset in offsets
        ]
        corner = sum(np.ix_(*[(b + np.arange(m)) * s for b, m, s in zip(begins, block, strides, strict=True)]))
        found.append(like(x, corner) + steps[_choose(np.stack(parts, axis=-1), rank)])
    return np.concatenate(found, axis=len(lead)) if found else np.zeros_like(x, dtype=np.intp, shape=(*lead, *shape))


places_p: Any = flat(
    "scipy.window_places",
    _find_places,
    batch=lambda size, batched, xs, params: bind(places_p, xs[0], **params),
    samples=lambda s: [
        call(s.real(6), offsets=((0,), (1,), (2,)), shape=(4,), rank=1),
        call(s.real(4, 5), offsets=((0, 0), (1, 1)), shape=(3, 4), rank=0),
        call(s.real(2, 7), offsets=((0,), (2,)), shape=(5,), rank=1),
    ],
    doc="Where in a flattened array the element of a rank stands, for every place of a window.",
)


def _check_origins(sizes: tuple, origins: list) -> None:
    for size, origin in zip(sizes, origins, strict=True):
        if not 0 <= size // 2 + int(origin) < size:
            raise ValueError("invalid origin")


def _filter(x: Any, axes: tuple, footprint: Any, rank: int, mode: str, cval: Any, origins: list) -> Any:
    """Return the element of a rank in every window."""
    if not isinstance(mode, str):
        raise RuntimeError("A sequence of modes is not supported for non-separable footprints")
    sizes = footprint.shape
    _check_origins(sizes, origins)
    if not x.size or not axes:
        return x + 0 if x.dtype.kind != "b" else x
    widths = [(0, 0)] * x.ndim
    for axis, size, origin in zip(axes, sizes, origins, strict=True):
        before = size // 2 + int(origin)
        widths[axis] = (before, size - 1 - before)
    last = list(range(-len(axes), 0))
    wide = np.moveaxis(beyond(x, widths, mode, cval), axes, last)
    shape = tuple(x.shape[a] for a in axes)
    lead = wide.shape[: wide.ndim - len(axes)]
    offsets = tuple(o for o in itertools.product(*map(range, sizes)) if footprint[o])
    places = bind(places_p, wide, offsets=offsets, shape=shape, rank=rank)
    chosen = np.take_along_axis(wide.reshape((*lead, -1)), places.reshape((*lead, -1)), axis=-1)
    return np.moveaxis(chosen.reshape((*lead, *shape)), last, axes)


def _real(input: Any) -> Any:
    x = as_array(input)
    if x.dtype.kind == "c":
        raise TypeError("Complex type not supported")
    return x


def _window(size: Any, footprint: Any, n: int, error: str) -> Any:
    """Return the elements of a window as booleans."""
    if size is not None and footprint is not None:
        warnings.warn("ignoring size because footprint is set", UserWarning, stacklevel=5)
    if footprint is None:
        if size is None:
            raise RuntimeError(error)
        return np.ones([int(m) for m in per_axis(size, n)], bool)
    footprint = np.asarray(footprint, bool)
    if footprint.ndim != n:
        raise RuntimeError(f"footprint.ndim ({footprint.ndim}) must match len(axes) ({n})")
    return footprint


def _extreme(input, size, footprint, output, mode, cval, origin, axes, greatest):
    x = _real(input)
    axes = choose_axes(axes, x.ndim)
    window = _window(size, footprint, len(axes), "no footprint provided")
    if footprint is not None and not window.any():
        raise ValueError("All-zero footprint is not supported.")
    origins = per_axis(origin, len(axes))
    if not window.all():
        rank = int(window.sum()) - 1 if greatest else 0
        return in_dtype(_filter(x, axes, window, rank, mode, cval, origins), x, output)
    y = x
    for axis, m, how, at in zip(axes, window.shape, per_axis(mode, len(axes)), origins, strict=True):
        if m > 1:
            y = _filter(y, (axis,), np.ones(m, bool), m - 1 if greatest else 0, how, cval, [at])
    return in_dtype(y if y is not x else np.copy(x), x, output)


def _extreme_samples(s):
    cross = np.array([[0, 1, 0], [1, 1, 1], [0, 1, 0]], bool)
    return [
        call(s.real(3, 4), 3),
        call(s.real(4, 3), (2, 3), mode=("nearest", "wrap"), origin=(0, 1)),
        call(s.real(4, 4), footprint=cross, mode="mirror"),
        call(s.real(5), 2, mode="constant", cval=0.5),
        call(s.real(2, 3, 3), 3, axes=(1, 2)),
    ]


@register_function("minimum_filter", complex=False, samples=_extreme_samples)
def minimum_filter(
    input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None
):  # fmt: skip
    """Return the least element in a window around each.

    >>> import numpy as np, fad
    >>> x = np.array([3.0, 1.0, 2.0, 5.0])
    >>> fad.grad(lambda x: np.sum(fad.scipy.ndimage.minimum_filter(x, 3)))(x)
    array([0., 3., 1., 0.])
    """
    return _extreme(input, size, footprint, output, mode, cval, origin, axes, False)


@register_function("maximum_filter", complex=False, samples=_extreme_samples)
def maximum_filter(
    input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None
):  # fmt: skip
    """Return the greatest element in a window around each.

    >>> import numpy as np, fad
    >>> x = np.array([3.0, 1.0, 2.0, 5.0])
    >>> fad.grad(lambda x: np.sum(fad.scipy.ndimage.maximum_filter(x, 3)))(x)
    array([2., 0., 0., 2.])
    """
    return _extreme(input, size, footprint, output, mode, cval, origin, axes, True)


def _line_samples(s):
    return [call(s.real(3, 5), 3), call(s.real(4, 2), 2, axis=0, mode="wrap", origin=-1), call(s.real(5), 4, cval=0.5)]


def _extreme_along(input, size, axis, output, mode, cval, origin, greatest):
    x = _real(input)
    axis = normalize_axis(axis, x.ndim)
    if size < 1:
        raise RuntimeError("incorrect filter size")
    rank = int(size) - 1 if greatest else 0
    return in_dtype(_filter(x, (axis,), np.ones(int(size), bool), rank, mode, cval, [origin]), x, output)


@register_function("minimum_filter1d", complex=False, samples=_line_samples)
def minimum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Return the least of `size` elements along an axis, around each.

    >>> fad.scipy.ndimage.minimum_filter1d(np.array([3.0, 1.0, 2.0, 5.0]), 3)
    array([1., 1., 1., 2.])
    """
    return _extreme_along(input, size, axis, output, mode, cval, origin, False)


@register_function("maximum_filter1d", complex=False, samples=_line_samples)
def maximum_filter1d(input, size, axis=-1, output=None, mode="reflect", cval=0.0, origin=0):
    """Return the greatest of `size` elements along an axis, around each.

    >>> fad.scipy.ndimage.maximum_filter1d(np.array([3.0, 1.0, 2.0, 5.0]), 3)
    array([3., 3., 5., 5.])
    """
    return _extreme_along(input, size, axis, output, mode, cval, origin, True)


def _sample_ranks(s, *rank):
    return [
        call(s.real(3, 4), *rank, 3),
        call(s.real(4, 3), *rank, (2, 3), mode="nearest", origin=(0, 1)),
        call(s.real(6), *rank, footprint=np.array([1, 0, 1, 1], bool), mode="constant", cval=0.5),
        call(s.real(2, 3, 3), *rank, 2, axes=(1, 2)),
    ]


def _of_rank(input, choose, size, footprint, output, mode, cval, origin, axes):
    """Filter by the rank that ``choose(number of elements in the window)`` gives."""
    x = _real(input)
    axes = choose_axes(axes, x.ndim)
    window = _window(size, footprint, len(axes), "no footprint or filter size provided")
    count = int(window.sum())
    rank = choose(count)
    rank = rank + count if rank < 0 else rank
    if not 0 <= rank < count:
        raise RuntimeError("rank not within filter footprint size")
    origins = per_axis(origin, len(axes))
    if x.ndim == 1 and not window.all() and 0 < rank < count - 1:
        fits = x.size == 1 or x.size >= (window.size - 1) // 2 - int(origins[0])
        window = np.ones_like(window) if fits and _ignores_footprints_of_lines() else window
    return in_dtype(_filter(x, axes, window, rank, mode, cval, origins), x, output)


@functools.cache
def _ignores_footprints_of_lines() -> bool:
    """Return whether SciPy's rank filters of one axis look at the whole window whatever its footprint, as 1.17 does."""
    found = scipy.ndimage.median_filter(np.arange(9.0) ** 2, footprint=np.array([1, 0, 1, 1, 0], bool))
    return bool(found[4] != 16.0)


@register_function("median_filter", complex=False, samples=_sample_ranks)
def median_filter(input, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None):
    """Return the median of a window around each element: of an even number of them the greater of the two.

    >>> import numpy as np, fad
    >>> x = np.array([3.0, 1.0, 2.0, 5.0])
    >>> fad.grad(lambda x: np.sum(fad.scipy.ndimage.median_filter(x, 3)))(x)
    array([1., 0., 2., 1.])
    """
    return _of_rank(input, lambda count: count // 2, size, footprint, output, mode, cval, origin, axes)


@register_function("rank_filter", complex=False, samples=lambda s: _sample_ranks(s, -2))
def rank_filter(
    input, rank, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None
):  # fmt: skip
    """Return the element of a rank in a window around each: 0 is the least, -1 the greatest.

    >>> fad.scipy.ndimage.rank_filter(np.array([3.0, 1.0, 2.0, 5.0]), 1, 3)
    array([3., 2., 2., 5.])
    """
    rank = int(rank)
    return _of_rank(input, lambda count: rank, size, footprint, output, mode, cval, origin, axes)


@register_function("percentile_filter", complex=False, samples=lambda s: _sample_ranks(s, 40))
def percentile_filter(
    input, percentile, size=None, footprint=None, output=None, mode="reflect", cval=0.0, origin=0, *, axes=None
):  # fmt: skip
    """Return the element at a percentile of a window around each.

    >>> fad.scipy.ndimage.percentile_filter(np.array([3.0, 1.0, 2.0, 5.0]), 50, 3)
    array([3., 2., 2., 5.])
    """
    level = percentile + 100.0 if percentile < 0 else percentile
    if not 0 <= level <= 100:
        raise RuntimeError("invalid percentile")
    choose = lambda count: count - 1 if level == 100 else int(float(count) * level / 100.0)
    return _of_rank(input, choose, size, footprint, output, mode, cval, origin, axes)
