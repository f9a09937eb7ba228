"""Convolution of the last axes of two arrays: one bilinear primitive, closed under differentiation.

The primitive convolves the last axes of two arrays and broadcasts those in front. With y = a * v in full, the cotangent
of a is the valid part of ct * reversed(v); for the valid part it is the other way round (see
`fad.ops.products.convolution`).
"""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
from scipy.fft import next_fast_len

from fad.core.primitives.archetypes import align, cast, fit
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind


def backwards(x: Any, n: int) -> Any:
    """Turn the last n axes round."""
    return x[(..., *[slice(None, None, -1)] * n)]


def _by_spectra(a, v, sizes, rank, mode):
    """Convolve by way of Fourier transforms of a length that is quick to transform."""
    axes = tuple(range(-rank, 0))
    real = a.dtype.kind != "c" and v.dtype.kind != "c"
    full = [n + m - 1 for n, m in sizes]
    lengths = [next_fast_len(n, real) for n in full]
    forth, back = (np.fft.rfftn, np.fft.irfftn) if real else (np.fft.fftn, np.fft.ifftn)
    y = back(forth(a, lengths, axes=axes) * forth(v, lengths, axes=axes), lengths, axes=axes)
    starts = [m - 1 if mode == "valid" else 0 for _, m in sizes]
    stops = [n if mode == "valid" else f for (n, _), f in zip(sizes, full, strict=True)]
    part: tuple = (..., *map(slice, starts, stops))
    return y[part]


def _by_sums(a, v, sizes, rank, mode):
    """Convolve by adding up shifted copies of `a`, one for each element of `v`."""
    if mode == "full":
        a = np.pad(a, [(0, 0)] * (a.ndim - rank) + [(m - 1, m - 1) for _, m in sizes])
    out = [k - m + 1 for k, (_, m) in zip(a.shape[a.ndim - rank :], sizes, strict=True)]
    if math.prod(out) < math.prod(m for _, m in sizes):
        return _by_places(a, backwards(v, rank), sizes, rank, out)
    if rank == a.ndim == v.ndim == 1:
        flipped = v[::-1].copy()  # NumPy's loop is many times slower where it runs through memory backwards
        return np.convolve(a, flipped[::-1], "valid")
    total = None
    for place in itertools.product(*[range(m) for _, m in sizes]):
        starts = [m - 1 - p for p, (_, m) in zip(place, sizes, strict=True)]
        window: tuple = (..., *[slice(i, i + k) for i, k in zip(starts, out, strict=True)])
        part = a[window] * v[(..., *place)][(..., *[None] * rank)]
        total = part if total is None else total + part
    return total


def _by_places(a, v, sizes, rank, out):
    """Convolve by a sum of products for each place of a small result; `v` is reversed."""
    axes = tuple(range(-rank, 0))
    v = v.copy()  # inner products are several times slower where one runs through memory backwards
    found: list[Any] = []
    for place in itertools.product(*[range(k) for k in out]):
        window = tuple(slice(p, p + m) for p, (_, m) in zip(place, sizes, strict=True))
        part = a[(..., *window)]
        if v.ndim > rank:
            found.append(np.sum(part * v, axis=axes))
        else:  # the general product takes longer to begin than this one to be done
            found.append(np.dot(part, v) if rank == 1 else np.tensordot(part, v, rank))
    y = np.stack(found, axis=-1)
    return y.reshape((*y.shape[:-1], *out))


def _forward(a, v, *, rank, mode, method):
    sizes = list(zip(a.shape[a.ndim - rank :], v.shape[v.ndim - rank :], strict=True))
    if method == "direct":
        if mode == "full" and math.prod(n for n, _ in sizes) < math.prod(m for _, m in sizes):
            a, v, sizes = v, a, [(m, n) for n, m in sizes]
        return _by_sums(a, v, sizes, rank, mode)
    return cast(_by_spectra(a, v, sizes, rank, mode), np.result_type(a, v))


def run_convolution(a, v, rank, mode, method):
    return bind(convolve_p, a, v, rank=rank, mode=mode, method=method)


def _left(ct, y, a, v, *, rank, mode, method):
    other = "valid" if mode == "full" else "full"
    return fit(run_convolution(ct, backwards(v, rank), rank, other, method), a.shape, a.dtype)


def _right(ct, y, a, v, *, rank, mode, method):
    if mode == "full":
        found = run_convolution(ct, backwards(a, rank), rank, "valid", method)
    else:
        found = backwards(run_convolution(a, backwards(ct, rank), rank, "valid", method), rank)
    return fit(found, v.shape, v.dtype)


def _jvp(tangents, y, xs, params):
    ta, tv = tangents
    parts = [] if ta is None else [bind(convolve_p, ta, xs[1], **params)]
    parts += [] if tv is None else [bind(convolve_p, xs[0], tv, **params)]
    return cast(parts[0] if len(parts) == 1 else parts[0] + parts[1], y.dtype)


convolve_p: Any = register(
    Primitive(
        "scipy.convolution",
        _forward,
        jvp=_jvp,
        vjp=(_left, _right),
        batch=lambda size, batched, xs, params: bind(convolve_p, *align(batched, xs), **params),
        archetype="bilinear",
        samples=lambda s: [
            call(s.real(5), s.real(3), rank=1, mode="full", method="direct"),
            call(s.real(2, 5), s.real(3), rank=1, mode="valid", method="direct"),
            call(s.real(2, 3), s.real(3, 4), rank=2, mode="full", method="fft"),
            call(s.real(3, 4), s.real(2, 3, 2), rank=2, mode="valid", method="fft"),
            call(s.real(2, 1, 3), s.real(3, 4), rank=1, mode="full", method="direct"),
        ],
        doc="The convolution of arrays of any rank.",
    )
)


def cost_of(larger: int, smaller: int) -> str:
    """Return which way is quicker, from the sizes alone: adding up shifted copies, or Fourier transforms."""
    return "direct" if smaller <= 30.0 * math.log2(max(larger + smaller, 2)) else "fft"
