"""What a rank must do because another one does: differentiate what it sends, and send a batch where others send one.

All ranks run the same transforms, on other values. On one rank the operand of a collective may depend on what is
differentiated, or batched, and on another not; then this one sends zeros, or a batch of equal arrays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import numpy as np

from fad.core.primitives.primitive import Primitive
from fad.core.tracing.tracer import Tracer, tracer
from fad.core.tracing.values import traces_of
from fad.transforms.batching.batch_trace import batching
from fad.transforms.jvp import JVPTrace
from fad.transforms.linearize import LinearTrace


def trace_like(t: Any, y: Any, others: Sequence = ()) -> Any:
    """Return a tangent or cotangent that is traced wherever its value is, and the others; zeros where there is none.

    On other ranks it may depend on what is differentiated once more, and then they send its derivative, too; or there
    it may be a batch.
    """
    if t is None:
        t = np.zeros_like(y)
    found = find_untied(t, [y, *others])
    return tied(t, *found) if found else t


def find_untied(x: Any, anchors: Sequence) -> list:
    """Return the anchors that are, or may be in their tangents, traced by more than a value is."""
    mine = set(traces_of(x))
    return [a for a in anchors if not mine.issuperset(traces_of(a)) or _has_tangents(a)]


def join_batches(x: Any, without: Collection = ()) -> Any:
    """Return what is sent as a batch of all vmaps that are running, but some: on another rank it may be one.

    What is not differentiated needs no batch of tangents.
    """
    running = batching.get()
    if not running:
        return x
    mine = set(traces_of(x))
    missing = [trace for trace in running if trace not in mine and trace not in without and not trace.dead]
    return tied(x, *[tracer(np.zeros(trace.size), trace, None) for trace in missing]) if missing else x


def find_batches_of_tangents(x: Any) -> set:
    """Return the running vmaps that batch the tangents of a value, and not itself."""
    running = batching.get()
    behind = set(_traces_of_tangents(x)) if running else ()
    return {trace for trace in running if trace in behind}.difference(traces_of(x)) if behind else set()


def _traces_of_tangents(x: Any) -> Iterator:
    while type(x) is Tracer:
        if isinstance(x.owner, JVPTrace):
            yield from traces_of(x.info)
            yield from _traces_of_tangents(x.info)
        x = x.wrapped


def sweep_like(ct: Any, y: Any, seeds: Sequence) -> Any:
    """Return the cotangent of what was sent, or zeros, as the sweep of each rank has it: see `trace_like`."""
    if ct is None:
        ct = np.zeros_like(y)
    return trace_like(join_batches(ct, find_batches_of_tangents(y)), y, seeds)


def _has_tangents(x: Any) -> bool:
    """Return whether a value has tangents of its own, which may be traced by more than it is."""
    return any(isinstance(trace, (JVPTrace, LinearTrace)) for trace in traces_of(x))


def _tie_jvp(ts: Any, y: Any, xs: Any, params: dict) -> Any:
    return trace_like(ts[0], y, [t for t in ts[1:] if type(t) is Tracer])


# A value that is traced wherever the other operands are: a collective must be differentiated on every rank or on none,
# and its tangents be a batch on every rank or on none.
tied: Primitive = Primitive(
    "tied", lambda x, *anchors: x, saves="none", archetype="linear", jvp=_tie_jvp, identity=True,
    vjp=lambda k, ct, y, *xs: ct if k == 0 else None,
    batch=lambda size, batched, xs, params: _tie_batch(size, batched, xs),
)  # fmt: skip


def _tie_batch(size: int, batched: tuple, xs: list) -> Any:
    x = xs[0] if batched[0] else np.broadcast_to(xs[0], (size, *np.shape(xs[0])))
    anchors = [a[:1].sum(axis=0) if b else a for a, b in zip(xs[1:], batched[1:], strict=True) if type(a) is Tracer]
    return tied(x, *anchors) if anchors else x
