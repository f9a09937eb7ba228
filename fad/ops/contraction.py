"""Contractions: matmul and everything that is a sum of products over shared axes."""

from __future__ import annotations

import numpy as np

from fad.core.archetypes import align, cast, fit, install_operator
from fad.core.primitive import Binary, answer, register
from fad.core.samples import call

# --- matmul --------------------------------------------------------------------------------------------------------


def _t(x):
    return x.swapaxes(-1, -2) if x.ndim > 2 else x.T


def _matmul_left(ct, z, x, y):
    if x.ndim == 2 and y.ndim == 2:
        return ct @ y.T
    if y.ndim == 1:  # ct has the shape of x without its last axis
        return fit(ct[..., None] * y, x.shape, ct.dtype) if x.ndim > 1 else ct * y
    if x.ndim == 1:
        ct = ct[..., None, :]
        return fit((ct @ _t(y))[..., 0, :], x.shape, ct.dtype)
    return fit(ct @ _t(y), x.shape, ct.dtype)


def _matmul_right(ct, z, x, y):
    if x.ndim == 2 and y.ndim == 2:
        return x.T @ ct
    if x.ndim == 1:
        return fit(x[:, None] * ct[..., None, :], y.shape, ct.dtype) if y.ndim > 1 else x * ct
    if y.ndim == 1:
        return fit((_t(x) @ ct[..., None])[..., 0], y.shape, ct.dtype)
    return fit(_t(x) @ ct, y.shape, ct.dtype)


def _matmul_jvp(tangents, z, xs, params):
    tx, ty = tangents
    x, y = xs
    left = None if tx is None else tx @ y
    right = None if ty is None else x @ ty
    total = left if right is None else right if left is None else left + right
    return cast(total, z.dtype)


def _matmul_batch(size, batched, xs, params):
    x, y = xs
    bx, by = batched
    nx, ny = np.ndim(x) - bx, np.ndim(y) - by  # ranks without the lane axis
    if not by and ny == 2 and nx == 1:
        return x @ y
    if not by and ny == 2:  # one large product instead of one per lane
        return (x.reshape(-1, x.shape[-1]) @ y).reshape(*x.shape[:-1], y.shape[-1])
    if not bx and nx == 2 and ny == 1:
        return y @ x.T
    x = np.expand_dims(x, -2) if nx == 1 else x
    y = np.expand_dims(y, -1) if ny == 1 else y
    x, y = align(batched, (x, y))
    z = x @ y
    if nx == 1:
        z = z[..., 0, :]
    return z[..., 0] if ny == 1 else z


def _matmul_samples(s):
    return [
        call(s.real(3, 4), s.real(4, 2)),
        call(s.real(4), s.real(4)),
        call(s.real(3, 4), s.real(4)),
        call(s.real(4), s.real(4, 2)),
        call(s.real(2, 3, 4), s.real(4, 2)),
        call(s.real(2, 1, 3, 4), s.real(5, 4, 2)),
        call(s.real(4), s.real(2, 4, 3)),
        call(s.real(2, 3, 4), s.real(4)),
        call(s.real(0, 4), s.real(4, 2)),
    ]


matmul = register(
    Binary(
        "matmul",
        np.matmul,
        jvp=_matmul_jvp,
        vjp=(_matmul_left, _matmul_right),
        batch=_matmul_batch,
        numpy=(np.matmul,),
        samples=_matmul_samples,
        archetype="bilinear",
    )
)
answer(np.matmul, matmul)
install_operator(matmul, "@")
