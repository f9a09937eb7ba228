"""Operations of the training layer that are worth a rule of their own: one record on the tape instead of five."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from fad.backends import backend_of, behind
from fad.core.primitives.archetypes import cast, elementwise, fit
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.views import unwrap
from fad.nn.labels import check_labels, checked_labels_p, spoilt

relu = elementwise(
    "relu", lambda z, _x: z > 0.0, forward=lambda x: np.maximum(x, 0.0), lower="maximum({0}, 0.0)", complex=True,
    doc="The positive part max(x, 0), elementwise; its derivative at 0 is 0.",
)

# --- x Wᵀ + b --------------------------------------------------------------------------------------------------------


def _rows(x: Any) -> Any:
    return x if x.ndim == 2 else x.reshape((math.prod(x.shape[:-1]), x.shape[-1]))


_FEW_ROWS = 8  # of each matrix in a stack: products with so few are sooner done as one


def _affine(x, w, b):
    y = _rows(x) @ w.T if x.ndim > 2 else x @ w.T  # one product: NumPy would do one for each matrix of a stack
    if y.dtype == b.dtype and y.ndim:
        y += b
    else:
        y = y + b
    return y.reshape(*x.shape[:-1], y.shape[-1]) if x.ndim > 2 else y


def _affine_vjp(k, ct, y, x, w, b):
    if k == 0:
        return (_rows(ct) @ w).reshape(x.shape) if x.ndim > 2 and x.shape[-2] < _FEW_ROWS else ct @ w
    if k == 2:
        return fit(ct, b.shape, b.dtype)
    if x.ndim == 1:
        return ct[:, None] * x
    return _rows(ct).T @ _rows(x)


def _affine_jvp(tangents, y, xs, params):
    tx, tw, tb = tangents
    x, w, _ = xs
    parts = [tx @ w.T] if tx is not None else []
    parts += [x @ tw.T] if tw is not None else []
    total = None
    for part in parts:
        total = part if total is None else total + part
    if tb is not None:
        total = np.broadcast_to(tb, y.shape) if total is None else total + tb
    return cast(total, y.dtype)


def _affine_batch(size, batched, xs, params):
    x, w, b = xs
    batched_x, batched_w, batched_b = batched
    if batched_x and not batched_w and not batched_b:
        return bind(affine, x, w, b)
    inner = x.ndim - batched_x
    x = x[..., None, :] if inner == 1 else x
    w = w[(slice(None), *(None,) * max(inner - 2, 0))] if batched_w else w
    y = x @ w.swapaxes(-1, -2)
    y = y[..., 0, :] if inner == 1 else y
    return y + (b[(slice(None), *(None,) * (inner - 1))] if batched_b else b)


affine = register(
    Primitive(
        "affine", _affine, jvp=_affine_jvp, vjp=_affine_vjp, batch=_affine_batch, saves="operands", dependence="affine",
        doc="A linear layer of dense rows: x @ w.T + b, for x (..., in), w (out, in) and b (out,).",
        samples=lambda s: [
            call(s.real(3, 4), s.real(2, 4), s.real(2)),
            call(s.real(4), s.real(2, 4), s.real(2)),
            call(s.real(2, 3, 4), s.real(2, 4), s.real(2)),
        ],
    )
)  # fmt: skip

# --- softmax and its logarithm -----------------------------------------------------------------------------------


def _softmax(x, *, axis):
    e = x - x.max(axis, keepdims=True)
    if e.ndim == 0:
        return np.ones_like(x)
    np.exp(e, out=e)
    e /= e.sum(axis, keepdims=True)
    return e


def _softmax_push(t, y, axis):
    return y * (t - np.sum(y * t, axis=axis, keepdims=True))


def _next_axis(prim):
    return lambda size, batched, xs, params: bind(prim[0], *xs, axis=params["axis"] + 1)


def _softmax_samples(s):
    return [call(s.real(3, 4), axis=1), call(s.real(2, 3, 4), axis=0), call(s.real(5), axis=0)]


softmax_p: Any = register(
    Primitive(
        "softmax_over", _softmax,
        jvp=lambda tangents, y, xs, params: _softmax_push(tangents[0], y, **params),
        vjp=(lambda ct, y, x, *, axis: _softmax_push(ct, y, axis),),
        batch=lambda size, batched, xs, params: bind(softmax_p, *xs, axis=params["axis"] + 1),
        samples=_softmax_samples,
        mixes="axis",
        doc="exp(x) / sum(exp(x)) along an axis.",
    )
)  # fmt: skip


def _log_softmax(x, *, axis):
    y = x - x.max(axis, keepdims=True)
    return y - np.log(np.exp(y).sum(axis, keepdims=True))


log_softmax_p: Any = register(
    Primitive(
        "log_softmax_over", _log_softmax,
        jvp=lambda tangents, y, xs, params: tangents[0]
        - np.sum(np.exp(y) * tangents[0], axis=params["axis"], keepdims=True),
        vjp=(lambda ct, y, x, *, axis: ct - np.exp(y) * np.sum(ct, axis=axis, keepdims=True),),
        batch=lambda size, batched, xs, params: bind(log_softmax_p, *xs, axis=params["axis"] + 1),
        samples=_softmax_samples,
        mixes="axis",
        doc="The logarithm of the softmax along an axis.",
    )
)  # fmt: skip

# --- cross entropy of logits and class numbers ---------------------------------------------------------------------


_HOST = (np.ndarray, np.generic)


def counting(n: int, x: Any) -> Any:
    """Return ``arange(n)`` in the memory where x lives."""
    return backend_of(unwrap(x)).arange(n, np.int64)


def one_hot_rows(labels: Any, classes: int, dtype: Any) -> Any:
    if behind(labels).name != "numpy":
        rows = (labels[..., None] == counting(classes, labels)).astype(dtype)
        return spoilt(rows, labels[..., None], classes)
    labels = bind(checked_labels_p, labels, classes=classes, ignore_index=None)
    return (labels[..., None] == counting(classes, labels)).astype(dtype)


def _reduce(rows: Any, reduction: str, batch_rank: int) -> Any:
    if reduction == "none":
        return rows
    axes = tuple(range(batch_rank, rows.ndim))
    total = np.sum(rows, axis=axes) if axes else rows
    return total / float(_count(rows.shape, batch_rank)) if reduction == "mean" else total


def _count(shape: tuple, batch_rank: int) -> int:
    n = 1
    for d in shape[batch_rank:]:
        n *= d
    return n


def _cross_entropy(z, labels, *, reduction, batch_rank):
    on_host = isinstance(labels, _HOST)
    if on_host:
        check_labels(labels, z.shape[-1])
    flat = _rows(z)
    s = flat - flat.max(-1, keepdims=True)
    wanted = labels.reshape(-1)
    picked = s[counting(len(s), s), wanted if on_host else np.clip(wanted, 0, z.shape[-1] - 1)]
    picked = picked if on_host else spoilt(picked, wanted, z.shape[-1])
    np.exp(s, out=s)
    rows = np.log(s.sum(-1)) - picked
    if batch_rank == 0 and reduction != "none":
        total = rows.sum()
        return total / z.dtype.type(len(rows)) if reduction == "mean" else total
    return _reduce(rows.reshape(z.shape[:-1])[()], reduction, batch_rank)


def _weights(ct, z, reduction, batch_rank):
    """Bring a cotangent to the shape of z, but for its last axis, and divide by the number of rows if need be."""
    lead = z.shape[:-1]
    if reduction == "mean":
        ct = ct / float(_count(lead, batch_rank))
    missing = len(lead) - np.ndim(ct)
    return np.reshape(ct, np.shape(ct) + (1,) * (missing + 1))


def _cross_entropy_vjp(k, ct, y, z, labels, *, reduction, batch_rank):
    if k == 1:
        return None
    if type(z) is not np.ndarray or type(labels) is not np.ndarray or type(ct) is Tracer:
        p = bind(softmax_p, z, axis=z.ndim - 1) - one_hot_rows(labels, z.shape[-1], z.dtype)
        return p * _weights(ct, z, reduction, batch_rank)
    p = _softmax(_rows(z), axis=1)
    p[np.arange(len(p)), labels.reshape(-1)] -= 1.0
    if batch_rank == 0 and reduction != "none":
        ct = ct.item()
        p *= ct / len(p) if reduction == "mean" else ct
        return p if z.ndim == 2 else p.reshape(z.shape)
    p = p if z.ndim == 2 else p.reshape(z.shape)
    p *= _weights(ct, z, reduction, batch_rank)
    return p


def _cross_entropy_jvp(tangents, y, xs, params):
    z, labels = xs
    p = bind(softmax_p, z, axis=z.ndim - 1) - one_hot_rows(labels, z.shape[-1], z.dtype)
    return _reduce(np.sum(p * tangents[0], axis=-1), **params)


def _cross_entropy_batch(size, batched, xs, params):
    xs = [x if b else np.broadcast_to(x, (size, *np.shape(x))) for x, b in zip(xs, batched, strict=True)]
    return bind(cross_entropy_p, *xs, reduction=params["reduction"], batch_rank=params["batch_rank"] + 1)


cross_entropy_p: Any = register(
    Primitive(
        "cross_entropy_of_logits", _cross_entropy,
        jvp=_cross_entropy_jvp, vjp=_cross_entropy_vjp, batch=_cross_entropy_batch,
        samples=lambda s: [
            call(s.real(3, 4), s.ints(0, 4, (3,)), reduction="mean", batch_rank=0),
            call(s.real(3, 4), s.ints(0, 4, (3,)), reduction="none", batch_rank=0),
            call(s.real(2, 3, 4), s.ints(0, 4, (2, 3)), reduction="sum", batch_rank=1),
            call(s.real(4), s.ints(0, 4, (1,)).reshape(()), reduction="mean", batch_rank=0),
        ],
        doc="The cross-entropy of logits (..., classes) and class numbers.",
    )
)  # fmt: skip
