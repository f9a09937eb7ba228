"""Convolution of any number of dimensions, with stride, padding, dilation and groups, as matrix products.

Three primitives share one trilinear form of an input x, a kernel w and an output c: each is its derivative by one of
the three. So they are each other's transposes, and derivatives of every order stay among them:

    conv_p(x, w) -> c        conv_input_p(c, w) -> x        conv_kernel_p(x, c) -> w

The layouts are those of deep learning: x is (N, C, *spatial), w is (O, C / groups, *kernel), c is (N, O, *spatial).
In memory results have the channels in front, which is how the matrix products leave them and the next layer wants them.
"""

from __future__ import annotations

import functools
import itertools
import math
import threading
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.backends.counterparts import with_notes
from fad.core.primitives.archetypes import cast
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.errors import ShapeMismatchError
from fad.ops.arrangement.structural import as_array
from fad.ops.products import device_conv
from fad.ops.products.windows import by_group, output_size, pad_last_axes, pads, per_axis, taps
from fad.typing import Array

# --- windows as columns of a matrix ---------------------------------------------------------------------------------


class _Scratch(threading.local):
    """Memory for columns, kept from call to call: they never leave one, and fresh memory costs more than filling it."""

    most = 1 << 28  # bytes; more than this is not kept
    buffer: Any = None
    in_source = (
        "class _scratch:\n    like = staticmethod(lambda x, shape: np.empty(shape, x.dtype))\n"  # for `fad.source`
    )

    def like(self, x: Any, shape: tuple) -> Any:
        size = math.prod(shape) * x.dtype.itemsize
        if type(x) is not np.ndarray or size > self.most:
            return np.empty_like(x, shape=shape, order="C")
        if self.buffer is None or self.buffer.size < size:
            self.buffer = np.empty_like(x, shape=(size,), dtype=np.uint8)
        return self.buffer[:size].view(x.dtype).reshape(shape)


_scratch = _Scratch()


def _columns(x, kernel, stride, padding, dilation, groups):
    """Return windows of a (C, N, *spatial) input as a matrix per group, (G, C/G * kernel, N * out), and out."""
    out = output_size(x.shape[2:], kernel, stride, padding, dilation)
    x = pad_last_axes(x, padding)
    c, n = x.shape[:2]
    columns = _scratch.like(x, (c, *kernel, n, *out))
    every, places = slice(None), itertools.product(*[range(k) for k in kernel])
    for place, tap in zip(places, taps(kernel, stride, dilation, out), strict=True):
        columns[(every, *place)] = x[(every, every, *tap)]
    return columns.reshape(groups, c // groups * math.prod(kernel), n * math.prod(out)), out


def _conv(x, w, *, stride, padding, dilation, groups):
    columns, out = _columns(x.swapaxes(0, 1), w.shape[2:], stride, padding, dilation, groups)
    kernel = w.reshape(groups, w.shape[0] // groups, columns.shape[1])
    y = np.matmul(kernel, columns) if groups > 1 else np.matmul(kernel[0], columns[0])
    return y.reshape(w.shape[0], x.shape[0], *out).swapaxes(0, 1)


def _conv_input(c, w, *, size, stride, padding, dilation, groups):
    """Add each output back to the window it came from."""
    channels, kernel = w.shape[1], w.shape[2:]
    n, out = c.shape[0], c.shape[2:]
    c = by_group(c.swapaxes(0, 1), groups)
    spatial = tuple(d + lo + hi for d, (lo, hi) in zip(size, padding, strict=True))
    x = np.zeros_like(c, shape=(groups * channels, n, *spatial), dtype=np.result_type(c, w))
    every, places = slice(None), itertools.product(*[range(k) for k in kernel])
    by_place = w.reshape(groups, w.shape[0] // groups, *w.shape[1:])
    for place, tap in zip(places, taps(kernel, stride, dilation, out), strict=True):
        weights = by_place[(every, every, every, *place)].swapaxes(1, 2)
        part = np.matmul(weights, c) if groups > 1 else np.matmul(weights[0], c[0])
        x[(every, every, *tap)] += part.reshape(groups * channels, n, *out)
    inner = tuple(slice(lo, lo + d) for d, (lo, _) in zip(size, padding, strict=True))
    return x[(slice(None), slice(None), *inner)].swapaxes(0, 1)


def _conv_kernel(x, c, *, kernel, stride, padding, dilation, groups):
    columns, _ = _columns(x.swapaxes(0, 1), kernel, stride, padding, dilation, groups)
    c = c.swapaxes(0, 1)
    grouped = by_group(c, groups)
    w = np.matmul(grouped, columns.swapaxes(1, 2)) if groups > 1 else np.matmul(grouped[0], columns[0].T)
    return w.reshape(c.shape[0], x.shape[1] // groups, *kernel)


# --- the three primitives -------------------------------------------------------------------------------------------


def _where_they_live(host: Callable, device: Callable) -> Callable:
    """Return what runs one function on arrays of the host and another on those of a device."""

    @functools.wraps(host)
    def run(a, b, **params):
        if type(a) is type(b) is np.ndarray or not (is_on_device(a) or is_on_device(b)):
            return host(a, b, **params)
        return device(a, b, **params)

    return with_notes(run, host=host)  # as in `fad.source`


def _bilinear_jvp(prim):
    def jvp(tangents, y, xs, params):
        t, u = tangents
        total = None if t is None else bind(prim(), t, xs[1], **params)
        if u is not None:
            other = bind(prim(), xs[0], u, **params)
            total = other if total is None else total + other
        return cast(total, y.dtype)

    return jvp


def _make_conv(x, w, options):
    return bind(conv_p, x, w, **options)


def _make_input(c, w, x_shape, options):
    return bind(conv_input_p, c, w, size=tuple(x_shape[2:]), **options)


def _make_kernel(x, c, w_shape, options):
    return bind(conv_kernel_p, x, c, kernel=tuple(w_shape[2:]), **options)


def _fold(x: Any, axis: int) -> Any:
    """Merge the batch axis in front into another axis, as its slower part."""
    x = np.moveaxis(x, 0, axis)
    return x.reshape(x.shape[:axis] + (x.shape[axis] * x.shape[axis + 1],) + x.shape[axis + 2 :])


def _unfold(x: Any, axis: int, size: int) -> Any:
    """Take the batch axis out of an axis, to the front: the inverse of `_fold`."""
    x = x.reshape(x.shape[:axis] + (size, x.shape[axis] // size) + x.shape[axis + 1 :])
    return np.moveaxis(x, axis, 0)


def _batch(prim, batch_axes, out_axis):
    """Return the batching rule: a batch of one operand is more examples, of both more groups.

    `batch_axes` holds the axis of each operand that the batch becomes part of when both are batched, `out_axis` that of
    the result.
    """

    def batch(size, batched, xs, params):
        if batched == (True, False) and prim() is not conv_kernel_p:
            return _unfold(bind(prim(), _fold(xs[0], 0), xs[1], **params), 0, size)
        xs = [x if b else np.broadcast_to(x, (size, *x.shape)) for x, b in zip(xs, batched, strict=True)]
        folded = [_fold(x, axis) for x, axis in zip(xs, batch_axes, strict=True)]
        y = bind(prim(), *folded, **{**params, "groups": params["groups"] * size})
        return _unfold(y, out_axis, size)

    return batch


def _settings(**more):
    return {"stride": (1,), "padding": ((0, 0),), "dilation": (1,), "groups": 1, **more}


_PLANE = {"stride": (2, 1), "padding": ((1, 0), (1, 1)), "dilation": (1, 2), "groups": 2}

conv_p: Any = register(
    Primitive(
        "convolution",
        _where_they_live(_conv, device_conv.conv),
        jvp=_bilinear_jvp(lambda: conv_p),
        vjp=(
            lambda ct, y, x, w, **p: _make_input(ct, w, x.shape, p),
            lambda ct, y, x, w, **p: _make_kernel(x, ct, w.shape, p),
        ),
        batch=_batch(lambda: conv_p, (1, 0), 1),
        archetype="bilinear",
        saves="operands",
        samples=lambda s: [
            call(s.real(2, 3, 6), s.real(4, 3, 3), **_settings()),
            call(s.real(2, 4, 5, 6), s.real(2, 2, 3, 2), **_PLANE),
        ],
        doc="The cross-correlation of (N, C, *space) with windows (O, C / groups, *kernel).",
    )
)
conv_input_p: Any = register(
    Primitive(
        "convolution_input",
        _where_they_live(_conv_input, device_conv.conv_input),
        jvp=_bilinear_jvp(lambda: conv_input_p),
        vjp=(
            lambda ct, y, c, w, size, **p: _make_conv(ct, w, p),
            lambda ct, y, c, w, size, **p: _make_kernel(ct, c, w.shape, p),
        ),
        batch=_batch(lambda: conv_input_p, (1, 0), 1),
        archetype="bilinear",
        saves="operands",
        samples=lambda s: [
            call(s.real(2, 4, 4), s.real(4, 3, 3), size=(6,), **_settings()),
            call(s.real(2, 2, 2, 6), s.real(2, 2, 3, 2), size=(5, 6), **_PLANE),
        ],
    )
)
conv_kernel_p: Any = register(
    Primitive(
        "convolution_kernel",
        _where_they_live(_conv_kernel, device_conv.conv_kernel),
        jvp=_bilinear_jvp(lambda: conv_kernel_p),
        vjp=(
            lambda ct, y, x, c, kernel, **p: _make_input(c, ct, x.shape, p),
            lambda ct, y, x, c, kernel, **p: _make_conv(x, ct, p),
        ),
        batch=_batch(lambda: conv_kernel_p, (1, 1), 0),
        archetype="bilinear",
        saves="operands",
        samples=lambda s: [
            call(s.real(2, 3, 6), s.real(2, 4, 4), kernel=(3,), **_settings()),
            call(s.real(2, 4, 5, 6), s.real(2, 2, 2, 6), kernel=(3, 2), **_PLANE),
        ],
        doc="The gradient of a convolution in its windows.",
    )
)

# --- the public functions ---------------------------------------------------------------------------------------------


def _check(x: Any, w: Any, channels: int, groups: int, name: str, what: str) -> tuple[Any, Any, bool]:
    x, w = as_array(x), as_array(w)
    single = x.ndim == w.ndim - 1
    x = np.expand_dims(x, 0) if single else x
    if x.ndim != w.ndim or w.ndim < 3:
        raise ShapeMismatchError(
            f"{name} takes x of shape (N, C, *spatial) or (C, *spatial) and w of shape {what}, "
            f"but they are {x.shape} and {w.shape}"
        )
    if x.shape[1] != w.shape[channels] * (groups if channels else 1) or w.shape[0] % groups:
        raise ShapeMismatchError(
            f"{name} with groups={groups} needs w of shape {what}, but x has {x.shape[1]} channels and w is {w.shape}"
        )
    return x, w, single


def _with_bias(y: Any, bias: Any, single: bool) -> Any:
    if bias is not None:
        bias = as_array(bias)
        y = y + bias.reshape((-1,) + (1,) * (y.ndim - 2))
    return y[0] if single else y


def _conv_samples(s):
    return [
        call(s.real(2, 3, 6), s.real(4, 3, 3), s.real(4)),
        call(s.real(2, 4, 5, 6), s.real(6, 2, 3, 2), stride=(2, 1), padding=1, groups=2),
        call(s.real(1, 5, 5), s.real(2, 1, 3, 3), padding="same", dilation=2),
        call(s.real(1, 2, 4, 3, 3), s.real(2, 2, 2, 2, 2), padding=((1, 0), (0, 1), (0, 0))),
    ]


@public(samples=_conv_samples)
def conv(
    x: Array, w: Array, bias: Array | None = None, stride: int | Sequence[int] = 1,
    padding: int | Sequence[int] | str = "valid", dilation: int | Sequence[int] = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """Convolve (cross-correlate, as deep learning calls it) an input with a kernel, in any number of dimensions.

    Parameters
    ----------
    x : array ``(N, C, *spatial)``, or ``(C, *spatial)`` for a single example
    w : array ``(O, C / groups, *kernel)``
    bias : array (O,), optional
    stride, dilation : int, or one per spatial axis
    padding : "valid", "same", int, one int per spatial axis, or one pair (before, after) per spatial axis
        Zeros put around the input. "same" gives a result of the size of the input, divided by the stride.
    groups : int
        The channels are split into groups that are convolved apart; with ``groups=C`` each channel by itself.

    Returns
    -------
    array ``(N, O, *spatial)``

    Raises
    ------
    ShapeMismatchError
        if ranks, channels or groups do not fit.

    Examples
    --------
    >>> x = np.arange(5.0).reshape(1, 1, 5)
    >>> conv(x, np.ones((1, 1, 3)), padding="same")
    array([[[1., 3., 6., 9., 7.]]])
    """
    x, w, single = _check(x, w, 1, groups, "conv", "(O, C / groups, *kernel)")
    n, kernel = w.ndim - 2, w.shape[2:]
    stride, dilation = per_axis(stride, n, "stride"), per_axis(dilation, n, "dilation")
    padding = pads(padding, x.shape[2:], kernel, stride, dilation)
    if min(output_size(x.shape[2:], kernel, stride, padding, dilation)) < 1:
        raise ShapeMismatchError(
            f"the kernel of shape {kernel} is larger than the (padded) input of shape {x.shape[2:]}"
        )
    y = bind(conv_p, x, w, stride=stride, padding=padding, dilation=dilation, groups=int(groups))
    return _with_bias(y, bias, single)


def _conv_transpose_samples(s):
    return [
        call(s.real(2, 3, 4), s.real(3, 2, 3), s.real(2)),
        call(s.real(2, 4, 3, 3), s.real(4, 3, 3, 2), stride=2, padding=(1, 0), output_padding=(1, 0), groups=2),
    ]


@public(samples=_conv_transpose_samples)
def conv_transpose(
    x: Array, w: Array, bias: Array | None = None, stride: int | Sequence[int] = 1, padding: int | Sequence[int] = 0,
    output_padding: int | Sequence[int] = 0, dilation: int | Sequence[int] = 1, groups: int = 1,
) -> Array:  # fmt: skip
    """Apply the transpose of a convolution, which spreads each input over a window and enlarges by the stride.

    Parameters
    ----------
    x : array ``(N, C, *spatial)``, or ``(C, *spatial)`` for a single example
    w : array ``(C, O / groups, *kernel)``
    bias : array (O,), optional
    stride, dilation : int, or one per spatial axis
    padding : int, one int or one pair per spatial axis
        How much of the result's border is cut off: the padding of the convolution that this is the transpose of.
    output_padding : int, or one per spatial axis
        Added to the size of the result at the end, where the stride leaves it undetermined.
    groups : int
        Into how many groups the channels are divided.

    Returns
    -------
    array ``(N, O, *spatial)``
        Of size ``(n - 1) * stride - padding before - after + dilation * (k - 1) + 1 + output_padding`` along each axis.

    Raises
    ------
    ShapeMismatchError
        if ranks, channels or groups do not fit.

    Examples
    --------
    >>> conv_transpose(np.array([[[1.0, 2.0]]]), np.ones((1, 1, 2)), stride=2)
    array([[[1., 1., 2., 2.]]])
    """
    x, w, single = _check(x, w, 0, groups, "conv_transpose", "(C, O / groups, *kernel)")
    n, kernel = w.ndim - 2, w.shape[2:]
    stride, dilation = per_axis(stride, n, "stride"), per_axis(dilation, n, "dilation")
    padding = pads(padding, x.shape[2:], kernel, stride, dilation)
    extra = (output_padding,) * n if hasattr(output_padding, "__index__") else tuple(output_padding)
    size = tuple(
        (m - 1) * s - lo - hi + d * (k - 1) + 1 + e
        for m, k, s, (lo, hi), d, e in zip(x.shape[2:], kernel, stride, padding, dilation, extra, strict=True)
    )
    if min(size) < 1 or any(e >= max(s, d) for e, s, d in zip(extra, stride, dilation, strict=True)):
        raise ShapeMismatchError(
            f"conv_transpose would give the spatial shape {size} with output_padding={output_padding}"
        )
    y = bind(conv_input_p, x, w, size=size, stride=stride, padding=padding, dilation=dilation, groups=int(groups))
    return _with_bias(y, bias, single)
