"""np.convolve and np.correlate of vectors, over one bilinear primitive that is closed under differentiation.

With y = a * v, in full, the cotangent of a is the valid part of ct * reversed(v), and that of v the valid part of
ct * reversed(a); for the valid part it is the other way round. So every derivative is again a convolution.
"""

from __future__ import annotations

import numpy as np

from fad.core.primitives.archetypes import cast
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.ops.arrangement.structural import as_array

_MANY = 10**7  # numbers that a batched convolution may lay out at once; above, it goes one batch element at a time


def _left(ct, y, a, v, *, mode):
    return cast(_conv(ct, v[::-1], "valid" if mode == "full" else "full"), a.dtype)


def _right(ct, y, a, v, *, mode):
    c = _conv(ct, a[::-1], "valid") if mode == "full" else _conv(a, ct[::-1], "valid")[::-1]
    return cast(c, v.dtype)


def _jvp(tangents, y, xs, params):
    ta, tv = tangents
    parts = [] if ta is None else [_conv(ta, xs[1], **params)]
    parts += [] if tv is None else [_conv(xs[0], tv, **params)]
    return cast(parts[0] if len(parts) == 1 else parts[0] + parts[1], y.dtype)


def _batch(size, batched, xs, params):
    a, v = xs
    n, m = a.shape[-1], v.shape[-1]
    if size * n * m > _MANY:
        results = [_conv(a[i] if batched[0] else a, v[i] if batched[1] else v, **params) for i in range(size)]
        return np.stack(results)
    if params["mode"] == "full":
        a = np.pad(a, ((0, 0),) * batched[0] + ((m - 1, m - 1),))
    places = np.arange(a.shape[-1] - m + 1)[:, None] + np.arange(m)
    windows, kernel = a[..., places], v[..., ::-1]
    if not batched[1]:
        return windows @ kernel
    return (windows @ kernel[..., None])[..., 0]


convolve_p = register(
    Primitive(
        "convolve_vectors",
        lambda a, v, *, mode: np.convolve(a, v, mode),
        jvp=_jvp,
        vjp=(_left, _right),
        batch=_batch,
        archetype="bilinear",
        saves="operands",
        samples=lambda s: [
            call(s.real(5), s.real(3), mode="full"),
            call(s.real(5), s.real(3), mode="valid"),
            call(s.real(2), s.real(2), mode="valid"),
        ],
        doc="The convolution of two vectors.",
    )
)


def _conv(a, v, mode):
    return bind(convolve_p, a, v, mode=mode)


def _samples(s):
    return [
        call(s.real(n), s.real(m), mode)
        for n, m in ((5, 3), (4, 2), (2, 5), (3, 3), (1, 4))
        for mode in ("full", "same", "valid")
    ]


def _vectors(*vectors):
    vectors = [np.atleast_1d(as_array(x)) for x in vectors]
    if any(x.ndim > 1 for x in vectors):
        raise ValueError("object too deep for desired array: convolve and correlate take vectors")
    return vectors


@public(np.convolve, samples=_samples)
def convolve(a, v, mode="full"):
    """Convolve two vectors: all of it ("full"), the length of the longer ("same"), or where both overlap ("valid").

    >>> fad.numpy.convolve(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([1., 3., 5., 3.])
    >>> fad.grad(lambda v: fad.numpy.convolve(np.array([1.0, 2.0, 3.0]), v)[1])(np.array([1.0, 1.0]))
    array([2., 1.])
    """
    a, v = _vectors(a, v)
    if not a.size or not v.size:
        raise ValueError("a cannot be empty" if not a.size else "v cannot be empty")
    a, v = (a, v) if a.size >= v.size else (v, a)
    if mode in ("full", "valid"):
        return _conv(a, v, mode)
    if mode != "same":
        raise ValueError(f"mode must be one of 'valid', 'same', or 'full' (got {mode!r})")
    start = (v.size - 1) // 2
    return _conv(a, v, "full")[start : start + a.size]


@public(np.correlate, samples=_samples)
def correlate(a, v, mode="valid"):
    """Correlate two vectors: ``c[k] = sum(a[n + k] * conj(v[n]))``, in the modes of `convolve`.

    >>> fad.numpy.correlate(np.array([1.0, 2.0, 3.0]), np.array([1.0, 1.0]))
    array([3., 5.])
    >>> fad.grad(lambda v: fad.numpy.correlate(np.array([1.0, 2.0, 3.0]), v)[0])(np.array([1.0, 1.0]))
    array([1., 2.])
    """
    a, v = _vectors(a, v)
    if not a.size or not v.size:
        raise ValueError(
            "first array argument cannot be empty" if not a.size else "second array argument cannot be empty"
        )
    if a.size >= v.size:
        return convolve(a, v[::-1].conj(), mode)
    # NumPy slides the shorter one along the longer and turns the result round, which matters for "same".
    return convolve(v, a[::-1].conj(), mode).conj()[::-1]
