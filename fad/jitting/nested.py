"""A jitted call inside grad, jvp or vmap: the pullback, the pushed or the batched function is jitted in its turn.

Each rule is given the call as a function of flat leaves, the leaves and the plain values under them, which of them are
traced, ``cached(kind, make)``, which jits a function once and keeps it, and arrays from outside as they are before.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.cotangent import densify
from fad.core.tracer import Trace, Tracer, tracer, youngest
from fad.transforms.check import as_primal, finish_output, kind_of, zeros_like
from fad.transforms.jet import JetTrace, expand
from fad.transforms.jvp import JVPTrace, jvp
from fad.transforms.mutation import Earlier
from fad.transforms.tape import is_inexact
from fad.transforms.vjp import VJPTrace, vjp
from fad.transforms.vmap import BatchTrace, replaced, vmap


def _fill(flat: Callable, values: Any, mine: list) -> Callable:
    """Return a function of those arguments that are traced; the others are fixed."""

    def some(*xs):
        it = iter(xs)
        return flat(*[next(it) if m else v for v, m in zip(values, mine, strict=True)])

    return some


def _choose(values: Any, mine: list) -> tuple:
    return tuple(v for v, m in zip(values, mine, strict=True) if m)


def _depends_on(trace: Trace, values: Any) -> bool:
    """Return whether results depend on a transform by what the function closes over: its values were not taken off."""
    return any(type(y) is Tracer and y.owner.birth >= trace.birth for y in tree.leaves(values))


def _under_vjp(
    trace: VJPTrace, flat: Callable, leaves: list, values: list, mine: list, cached: Callable, before: Earlier
) -> Any:
    """Run the program forward, and leave a pullback on the tape that runs it again together with its derivative."""

    def pull(values, cts):
        out, pullback = vjp(_fill(flat, values, mine), *_choose(values, mine))
        ys, structure = tree.flatten(out)
        return pullback(tree.unflatten(structure, [ct if is_inexact(y) else y for ct, y in zip(cts, ys, strict=True)]))

    forward = cached("forward", lambda: flat)
    ys, out_tree = tree.flatten(forward(*values))
    ys = [finish_output(y) for y in ys]
    if before.undo() or _depends_on(trace, ys):  # the pullback would run the function once more
        return flat(*leaves)
    earlier = Earlier(forward.captured())
    values = [trace.watch.take(x) if type(x) is np.ndarray else x for x in values]

    def pullback(cts):
        full = [zeros_like(y) if ct is None else ct for ct, y in zip(cts, ys, strict=True)]
        earlier.check()
        with earlier.restore():
            return list(cached("vjp", lambda: pull)(values, full))

    parents = [x.info for x, m in zip(leaves, mine, strict=True) if m]
    return tree.unflatten(out_tree, trace.call(parents, ys, pullback))


def _under_jvp(
    trace: JVPTrace, flat: Callable, leaves: list, values: list, mine: list, cached: Callable, before: Earlier
) -> Any:
    def push(values, tangents):
        return jvp(_fill(flat, values, mine), _choose(values, mine), tangents)

    trace.check_alive()
    tangents = [densify(x.info) for x, m in zip(leaves, mine, strict=True) if m]
    if youngest(tangents) is not None:
        return flat(*leaves)
    tangents = tuple(kind_of(t, v) for t, v in zip(tangents, _choose(values, mine), strict=True))
    out, pushed = cached("jvp", lambda: push)(values, tangents)
    if _depends_on(trace, (out, pushed)):
        before.undo()
        return flat(*leaves)
    return tree.map(lambda y, t: tracer(y, trace, t) if is_inexact(y) else y, out, pushed)


def _under_vmap(
    trace: BatchTrace, flat: Callable, leaves: list, values: list, mine: list, cached: Callable, before: Earlier
) -> Any:
    trace.check_alive()
    if not trace.size:
        return flat(*leaves)
    axes = tuple(0 if m else None for m in mine)
    batched = cached(("vmap", trace.on_branch), lambda: vmap(flat, in_axes=axes, on_branch=trace.on_branch))
    with replaced(trace):
        out = batched(*values)
    if _depends_on(trace, out):
        before.undo()
        return flat(*leaves)
    return tree.map(lambda y: tracer(y, trace, None), out)


def _under_jet(
    trace: JetTrace, flat: Callable, leaves: list, values: list, mine: list, cached: Callable, before: Earlier
) -> Any:
    trace.check_alive()
    series = [x.info.known[1:] for x, m in zip(leaves, mine, strict=True) if m]
    if trace.tape is not None or youngest(tree.leaves(series)) is not None:  # the series of a rule is not there yet
        return flat(*leaves)
    some = _choose(values, mine)
    series = [[None if c is None else kind_of(c, v) for c in cs] for cs, v in zip(series, some, strict=True)]

    def push(values, series):
        some = [as_primal(x) for x in _choose(values, mine)]
        ys, known, structure, _ = expand(_fill(flat, values, mine), some, series, tree.structure(some))
        return tree.unflatten(structure, ys), tree.unflatten(structure, known)

    out, known = cached(("jet", trace.order), lambda: push)(values, series)
    if _depends_on(trace, (out, known)):
        before.undo()
        return flat(*leaves)
    return tree.map(trace.attach_derivatives, out, known)


RULES: dict[type, Callable] = {
    VJPTrace: _under_vjp, JVPTrace: _under_jvp, JetTrace: _under_jet, BatchTrace: _under_vmap,
}  # fmt: skip
