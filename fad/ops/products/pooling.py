"""Pooling: the maximum or the mean of windows over the last axes of an array.

Each runs as a few operations on shifted slices, one per place in the window, and never builds the windows.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import linear
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.errors import ShapeMismatchError
from fad.ops.arrangement.structural import as_array
from fad.ops.products.windows import output_size, pad_last_axes, pads, per_axis, taps
from fad.typing import Array


def window_parts(x: Any, window: tuple, stride: tuple, padding: tuple, dilation: tuple, value: float) -> tuple:
    """Return the padded input, and the slices of it whose elements meet in each window."""
    size = x.shape[x.ndim - len(window) :]
    out = output_size(size, window, stride, padding, dilation)
    return pad_last_axes(x, padding, value), [(Ellipsis, *tap) for tap in taps(window, stride, dilation, out)]


def _inside(x: Any, size: tuple, padding: tuple) -> Any:
    return x[(Ellipsis, *(slice(lo, lo + n) for n, (lo, _) in zip(size, padding, strict=True)))]


def _merge(prim: Any) -> Any:
    """Return the batching rule: pooling looks at the last axes only, so batch elements in front change nothing."""
    return lambda size, batched, xs, params: bind(
        prim(), *[x if b else np.broadcast_to(x, (size, *x.shape)) for x, b in zip(xs, batched, strict=True)], **params
    )


# --- the maximum ---------------------------------------------------------------------------------------------------


def _max_forward(x, *, window, stride, padding, dilation):
    x, slices = window_parts(x, window, stride, padding, dilation, -np.inf)
    y = x[slices[0]].copy()
    for part in slices[1:]:
        np.maximum(y, x[part], out=y)
    return y


def _ties(x, y, slices):
    """Return how many elements of each window are its maximum."""
    count = np.zeros_like(y)
    for part in slices:
        count += x[part] == y
    return np.maximum(count, 1.0, out=count)


def _max_spread(ct, x, y, *, window, stride, padding, dilation):
    """Give each window's cotangent to its maximum, shared where there are several."""
    size = x.shape[x.ndim - len(window) :]
    x, slices = window_parts(x, window, stride, padding, dilation, -np.inf)
    share = ct / _ties(x, y, slices)
    out = np.zeros_like(x, dtype=share.dtype)
    for part in slices:
        out[part] += share * (x[part] == y)
    return _inside(out, size, padding)


def _max_pick(t, x, y, *, window, stride, padding, dilation):
    """Return the tangent of each window's maximum, the mean where there are several: the transpose of `_max_spread`."""
    t, _ = window_parts(t, window, stride, padding, dilation, 0.0)
    x, slices = window_parts(x, window, stride, padding, dilation, -np.inf)
    total = np.zeros_like(y, dtype=t.dtype)
    for part in slices:
        total += t[part] * (x[part] == y)
    return total / _ties(x, y, slices)


def _max_samples(s):
    wide = {"window": (2, 2), "stride": (2, 2), "padding": ((0, 0), (0, 0)), "dilation": (1, 1)}
    return [
        call(s.real(2, 3, 4, 4), **wide),
        call(s.real(2, 6), window=(3,), stride=(1,), padding=((1, 0),), dilation=(2,)),
    ]


def _transpose_samples(first):
    def samples(s):
        made = []
        for c in _max_samples(s):
            x = c.args[0]
            y = _max_forward(x, **c.kwargs)
            made.append(call(s.real(*(y if first == "y" else x).shape), x, y, **c.kwargs))
        return made

    return samples


def _linear_in_first(name: str, forward: Any, other: Any, first: str) -> Primitive:
    """Make an operation that is linear in its first operand and flat in the others."""
    # The contract varies the first operand alone: the others must stay each other's input and result.
    prim = Primitive(name, forward, archetype="linear", samples=_transpose_samples(first), constants=(1, 2))
    prim.jvp = lambda tangents, y, xs, params: (
        None if tangents[0] is None else bind(prim, tangents[0], *xs[1:], **params)
    )
    prim.vjp = (lambda ct, y, t, x, best, **params: bind(other(), ct, x, best, **params), None, None)
    prim.batch = _merge(lambda: prim)
    return register(prim)


max_spread_p: Any = _linear_in_first("max_pool_spread", _max_spread, lambda: max_pick_p, "y")
max_pick_p: Any = _linear_in_first("max_pool_pick", _max_pick, lambda: max_spread_p, "x")
max_pool_p: Any = register(
    Primitive(
        "max_of_windows",
        _max_forward,
        jvp=lambda tangents, y, xs, params: bind(max_pick_p, tangents[0], xs[0], y, **params),
        vjp=(lambda ct, y, x, **params: bind(max_spread_p, ct, x, y, **params),),
        batch=_merge(lambda: max_pool_p),
        archetype="selection",
        dependence="windows",
        samples=_max_samples,
        doc="The maximum of windows over the last axes; ties share the derivative.",
    )
)

# --- the sum --------------------------------------------------------------------------------------------------------


def _sum_forward(x, *, window, stride, padding, dilation):
    x, slices = window_parts(x, window, stride, padding, dilation, 0.0)
    y = x[slices[0]].copy()
    for part in slices[1:]:
        y += x[part]
    return y


def _sum_spread(ct, *, size, window, stride, padding, dilation):
    spatial = tuple(n + lo + hi for n, (lo, hi) in zip(size, padding, strict=True))
    out = np.zeros_like(ct, shape=ct.shape[: ct.ndim - len(size)] + spatial)
    for tap in taps(window, stride, dilation, ct.shape[ct.ndim - len(size) :]):
        out[(Ellipsis, *tap)] += ct
    return _inside(out, size, padding)


sum_pool_p: Any = linear(
    "sum_of_windows",
    _sum_forward,
    lambda ct, x, **params: bind(
        sum_spread_p, ct, size=tuple(x.shape[len(x.shape) - len(params["window"]) :]), **params
    ),
    _merge(lambda: sum_pool_p),
    samples=_max_samples,
    dependence="windows",
    moves=True,
    doc="The sum of windows over the last axes.",
)
sum_spread_p: Any = linear(
    "sum_of_windows_spread",
    _sum_spread,
    lambda ct, x, *, size, **params: bind(sum_pool_p, ct, **params),
    _merge(lambda: sum_spread_p),
    samples=lambda s: [
        call(s.real(2, 3), size=(7,), window=(2,), stride=(3,), padding=((0, 1),), dilation=(1,)),
        call(s.real(3, 3), size=(4, 4), window=(2, 2), stride=(1, 1), padding=((0, 0),) * 2, dilation=(1, 1)),
    ],
    moves=True,
    doc="Each number added to all places of its window: the transpose of the sum of windows.",
)

# --- the public functions ---------------------------------------------------------------------------------------------


def _windows(x: Any, window: Any, stride: Any, padding: Any, dilation: Any, name: str) -> tuple[Any, dict]:
    """Return the input and normalised parameters of a pooling."""
    x = as_array(x)
    n = max(x.ndim - 2, 1) if hasattr(window, "__index__") else len(tuple(window))
    if n > x.ndim:
        raise ShapeMismatchError(f"{name} over a window of {n} axes needs at least as many, but x has shape {x.shape}")
    window = per_axis(window, n, "window")
    stride = window if stride is None else per_axis(stride, n, "stride")
    dilation = per_axis(dilation, n, "dilation")
    size = x.shape[x.ndim - n :]
    padding = pads(padding, size, window, stride, dilation)
    if min(output_size(size, window, stride, padding, dilation)) < 1:
        raise ShapeMismatchError(f"the window {window} of {name} is larger than the (padded) input of shape {size}")
    return x, {"window": window, "stride": stride, "padding": padding, "dilation": dilation}


def _pool_samples(s):
    return [
        call(s.real(2, 2, 4, 4), 2),
        call(s.real(1, 2, 5, 6), (3, 2), stride=(2, 1), padding=1),
        call(s.real(2, 7), (3,), stride=1, padding="same"),
    ]


@public(samples=lambda s: [*_pool_samples(s), call(s.real(2, 7), (2,), stride=1, dilation=3)])
def max_pool(
    x: Array, window: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    dilation: int | Sequence[int] = 1,
) -> Array:  # fmt: skip
    """Return the maximum of windows over the last axes; ties share the derivative equally.

    Parameters
    ----------
    x : array ``(..., *spatial)``
    window : int or tuple of int
        The size of the window along each spatial axis; an int is for all axes behind the first two (N, C).
    stride : int or tuple of int, optional
        The step from window to window; the window's own size if not given.
    padding : int, one int or one pair per spatial axis, "same" or "valid"
        Minus infinity is put around the input.
    dilation : int or tuple of int
        The step inside the window.

    Returns
    -------
    array ``(..., *spatial)``

    Raises
    ------
    ShapeMismatchError
        if the window is larger than the padded input.

    Examples
    --------
    >>> max_pool(np.array([[1.0, 3.0, 2.0, 0.0]]), (2,))
    array([[3., 2.]])
    """
    x, params = _windows(x, window, stride, padding, dilation, "max_pool")
    return bind(max_pool_p, x, **params)


@public(samples=lambda s: [*_pool_samples(s), call(s.real(2, 7), (3,), padding=1, count_include_pad=False)])
def avg_pool(
    x: Array, window: int | Sequence[int], stride: int | Sequence[int] | None = None, padding: int | Sequence[int] = 0,
    count_include_pad: bool = True,
) -> Array:  # fmt: skip
    """Return the mean of windows over the last axes.

    Parameters
    ----------
    x : array ``(..., *spatial)``
    window, stride, padding
        As in :func:`max_pool`; zeros are put around the input.
    count_include_pad : bool
        Whether the padding counts as elements of a window, as zeros.

    Returns
    -------
    array ``(..., *spatial)``

    Raises
    ------
    ShapeMismatchError
        if the window is larger than the padded input.

    Examples
    --------
    >>> avg_pool(np.array([[1.0, 3.0, 2.0, 0.0]]), (2,))
    array([[2., 1.]])
    """
    x, params = _windows(x, window, stride, padding, 1, "avg_pool")
    total = bind(sum_pool_p, x, **params)
    if count_include_pad or not any(lo or hi for lo, hi in params["padding"]):
        return total / math.prod(params["window"])
    ones = np.ones_like(x, shape=x.shape[x.ndim - len(params["window"]) :], dtype=x.real.dtype)
    return total / np.maximum(bind(sum_pool_p, ones, **params), 1.0)
