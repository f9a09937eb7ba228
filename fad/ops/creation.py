"""Creation: arrays of zeros and ones like another, ranges, identities."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.archetypes import flat
from fad.core.primitive import public
from fad.core.samples import call
from fad.core.tracer import bind


def _like(name: str, make: Any) -> Any:
    """Return the flat primitive of ``zeros_like`` and its kin: it looks at its operand's shape and dtype only."""

    def batch(size, batched, xs, params):
        shape = params["shape"]
        shape = xs[0].shape if shape is None else (size, *shape)
        return bind(prim, xs[0], shape=shape, dtype=params["dtype"])

    prim = flat(
        name,
        lambda x, *, shape, dtype: make(x, dtype=dtype, shape=shape),
        batch=batch,
        samples=lambda s: [call(s.real(3, 4), shape=None, dtype=None), call(s.real(3), shape=(2,), dtype=np.dtype("f4"))],
    )
    return prim


zeros_p = _like("zeros_from", np.zeros_like)
ones_p = _like("ones_from", np.ones_like)


def _shape(shape):
    return None if shape is None else tuple(shape) if isinstance(shape, (tuple, list)) else (int(shape),)


_samples = lambda s: [call(s.real(3, 4)), call(s.real(3, 4), dtype=int), call(s.real())]  # noqa: E731


@public(np.zeros_like, flat=True, samples=_samples)
def zeros_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Return zeros of the shape and dtype of an array."""
    return bind(zeros_p, a, shape=_shape(shape), dtype=None if dtype is None else np.dtype(dtype))


@public(np.ones_like, flat=True, samples=_samples)
def ones_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Return ones of the shape and dtype of an array."""
    return bind(ones_p, a, shape=_shape(shape), dtype=None if dtype is None else np.dtype(dtype))


@public(np.empty_like, flat=True)
def empty_like(a, dtype=None, order="K", subok=True, shape=None, *, device=None):
    """Return an array of the shape and dtype of another; of a traced one, zeros."""
    return np.zeros_like(a, dtype=dtype, shape=shape)
