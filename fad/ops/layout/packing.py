"""Numbers side by side as a vector: what right-hand sides of equations return, ``np.array([v, -k * x])``.

One operation for all of them, where a join takes one more for each. A program that is compiled has the join, whose
parts its passes know.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import is_on_device
from fad.core.primitives.archetypes import cast
from fad.core.primitives.cotangent import Masked
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, bind


def pack(xs: list) -> Any:
    """Return the vector of values without axes; None if they become part of a program, or live on a device."""
    return bind(pack_p, *xs) if all(map(is_of_numpy, xs)) else None


def pack_numbers(xs: Any) -> Any:
    """Return the vector of a list of double precision numbers, which is most lists; None if something else is there."""
    for x in xs:
        kind = type(x)
        if kind is Tracer:
            if type(x.wrapped) is not np.float64 or x.owner.compiled:
                return None
        elif kind is not float and kind is not np.float64:
            return None
    return bind(pack_p, *xs)


def is_of_numpy(x: Any) -> bool:
    """Return whether NumPy itself computes with a value, traced or not: no program, and no device."""
    while type(x) is Tracer:
        if x.owner.compiled:
            return False
        x = x.wrapped
    return isinstance(x, (np.generic, np.ndarray))


def _push(tangents, y, xs, params):
    filled = [np.zeros_like(x) if t is None else t for t, x in zip(tangents, xs, strict=True)]
    pushed = cast(bind(pack_p, *filled), y.dtype)
    if all(t is not None for t in tangents):
        return pushed
    given = [np.full_like(x, t is not None, dtype=bool) for t, x in zip(tangents, xs, strict=True)]
    return Masked(pushed, lambda: bind(pack_p, *given), clean=True)


def _batch(size, batched, xs, params):
    rows = [x if b else np.broadcast_to(x, (size,)) for x, b in zip(xs, batched, strict=True)]
    return np.stack(rows, axis=1)


pack_p: Any = register(
    Primitive(
        "pack",
        lambda *xs: np.stack(xs) if any(map(is_on_device, xs)) else np.array(xs),
        jvp=_push,
        vjp_of_all=lambda ct, y, *xs: [ct[k] for k in range(len(xs))],
        batch=_batch,
        saves="none",
        archetype="linear",
        samples=lambda s: [call(s.real(), s.real(), s.real()), call(s.real())],
        moves=True,
        dependence="moved",
        fresh=True,
        text=lambda *xs: f"np.array([{', '.join(xs)}])",
        doc="Numbers side by side.",
    )
)
