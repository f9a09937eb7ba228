"""A jitted call inside grad, jvp or vmap: the pullback, the pushed or the batched function is jitted in its turn.

Each rule is given the call as a function of flat leaves, the leaves and the plain values under them, which of them are
traced, ``cached(kind, make)``, which jits a function once and keeps it, and ``before()``, which returns the arrays from
outside as they are.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.backends import is_on_device
from fad.core.primitives.cotangent import Masked, densify, is_finite, mask_result, ones_where_live
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, tracer, youngest
from fad.core.tracing.views import unwrap
from fad.jitting.call import own
from fad.jitting.reverse import ReverseCall, choose, fill
from fad.transforms.arguments.check import as_primal, finish_output, is_inexact, kind_of, zeros_like
from fad.transforms.arguments.mutation import Earlier
from fad.transforms.batching.batch_trace import BatchTrace, replaced
from fad.transforms.jet import JetTrace, expand
from fad.transforms.jvp import JVPTrace, jvp
from fad.transforms.push_tangents import beginning_steep
from fad.transforms.reverse.slopes import EVERYWHERE, NOWHERE
from fad.transforms.vjp import Tape, VJPTrace, vjp
from fad.transforms.vmap import vmap


def _depends_on(trace: Trace, values: Any) -> bool:
    """Return whether results depend on a transform by what the function closes over: its values were not taken off."""
    return any(type(y) is Tracer and y.owner.birth >= trace.birth for y in tree.leaves(values))


def _under_vjp(
    trace: VJPTrace, flat: Callable, leaves: list, values: list, mine: list, cached: Callable, before: Callable
) -> Any:
    """Run the program forward, and leave a pullback on the tape that runs it again together with its derivative."""
    call = ReverseCall(cached("reverse", lambda: flat), flat, leaves, values, mine)
    out = call.answer()
    path = call.path
    if path is None:  # the function ran without jit
        return out
    ys, out_tree = tree.flatten(out)
    ys = [finish_output(y) for y in ys]
    earlier = Earlier(path.outer.find_unchanged())
    values = [trace.take(x) if type(x) is np.ndarray else x for x in values]

    def pull_again(values, cts):
        out, pullback = vjp(fill(flat, values, mine), *choose(values, mine))
        ys, structure = tree.flatten(out)
        return pullback(tree.unflatten(structure, [ct if is_inexact(y) else y for ct, y in zip(cts, ys, strict=True)]))

    def pull(cts):
        full = [_cotangent_of(y, ct) for y, ct in zip(ys, cts, strict=True)]
        earlier.check()
        with earlier.restore():
            again = lambda values, cts: list(cached("vjp", lambda: pull_again)(values, cts))
            return path.pull(values, full, again) if path.pull else again(values, full)

    def retrace():
        some = choose(values, mine)
        return Tape(fill(path.graph, values, mine), tree.structure(some), list(some), False, own=True)

    parents = [x.info for x, m in zip(leaves, mine, strict=True) if m]
    pullback = pull if path.effects else _Pullback(pull, retrace, path.is_steep())  # effects are to be had once
    return tree.unflatten(out_tree, trace.call(parents, ys, pullback))


class _Pullback:
    """The pullback of a jitted call, which a program computes, and the recording where that has met 0 * inf.

    A program takes plain cotangents, which do not know where they are zero by selection: what was not used of a result.
    """

    __slots__ = ("pull", "retrace", "care")

    def __init__(self, pull: Callable, retrace: Callable, steep: bool):
        self.pull = pull
        self.retrace = retrace
        self.care = EVERYWHERE if steep else NOWHERE

    def __call__(self, cts: list) -> list:
        return self.pull(cts)

    def pull_masked(self, cts: list, ask: Callable) -> list:
        """Return the cotangents of the operands, with masks if those given have some."""
        found = self.pull([None if ct is None else densify(ct) for ct in cts])
        if any(is_on_device(unwrap(c)) for c in found):
            return found
        if Masked in map(type, cts) and not all(map(is_finite, found)):
            return self.retrace().pull_masked(cts)
        if not ask():
            return found
        live: list = []

        def find_live(k: int) -> Any:
            if not live:
                marks = [None if ct is None else ones_where_live(ct) for ct in cts]
                live.extend(self.retrace().find_live(marks))
            return np.not_equal(live[k], 0)

        return [mask_result(c, lambda k=k: find_live(k)) for k, c in enumerate(found)]


def _cotangent_of(y: Any, ct: Any) -> Any:
    """Return the cotangent of a result as the program takes it, which reads none of an integer."""
    if not is_inexact(y):
        return 0.0
    ct = zeros_like(y) if ct is None else ct
    return ct if ct.dtype.isnative else ct.astype(ct.dtype.newbyteorder("="))


def _under_jvp(
    trace: JVPTrace, flat: Callable, leaves: list, values: list, mine: list, cached: Callable, before: Callable
) -> Any:
    steep = trace.steep

    def push(values, tangents):
        with beginning_steep(steep):
            return jvp(fill(flat, values, mine), choose(values, mine), tangents)

    trace.check_alive()
    tangents = [densify(x.info) for x, m in zip(leaves, mine, strict=True) if m]
    if youngest(tangents) is not None:
        return flat(*map(own, leaves))
    tangents = tuple(kind_of(t, v) for t, v in zip(tangents, choose(values, mine), strict=True))
    earlier = before()
    out, pushed = cached(("jvp", steep), lambda: push)(values, tangents)
    if _depends_on(trace, (out, pushed)):
        earlier.undo()
        return flat(*map(own, leaves))
    trace.steep = True  # for all that is known of the program's slopes
    return tree.map(lambda y, t: tracer(y, trace, t) if is_inexact(y) else y, out, pushed)


def _under_vmap(
    trace: BatchTrace, flat: Callable, leaves: list, values: list, mine: list, cached: Callable, before: Callable
) -> Any:
    trace.check_alive()
    if not trace.size:
        return flat(*map(own, leaves))
    axes = tuple(0 if m else None for m in mine)
    batched = cached(("vmap", trace.on_branch), lambda: vmap(flat, in_axes=axes, on_branch=trace.on_branch))
    earlier = before()
    try:
        with replaced(trace):
            out = batched(*values)
    except Exception as error:
        earlier.undo()
        trace.separate_errors(error, flat, values, mine)
        raise
    if _depends_on(trace, out):
        earlier.undo()
        return flat(*map(own, leaves))
    return tree.map(lambda y: tracer(y, trace, None), out)


def _under_jet(
    trace: JetTrace, flat: Callable, leaves: list, values: list, mine: list, cached: Callable, before: Callable
) -> Any:
    trace.check_alive()
    series = [x.info.known[1:] for x, m in zip(leaves, mine, strict=True) if m]
    if trace.tape is not None or youngest(tree.leaves(series)) is not None:  # the series of a rule is not there yet
        return flat(*map(own, leaves))
    some = choose(values, mine)
    series = [[None if c is None else kind_of(c, v) for c in cs] for cs, v in zip(series, some, strict=True)]

    steep = trace.steep

    def push(values, series):
        some = [as_primal(x) for x in choose(values, mine)]
        with beginning_steep(steep):
            ys, known, structure, _ = expand(fill(flat, values, mine), some, series, tree.structure(some))
        return tree.unflatten(structure, ys), tree.unflatten(structure, known)

    earlier = before()
    out, known = cached(("jet", trace.order, steep), lambda: push)(values, series)
    if _depends_on(trace, (out, known)):
        earlier.undo()
        return flat(*map(own, leaves))
    trace.steep = True
    return tree.map(trace.attach_derivatives, out, known)


RULES: dict[type, Callable] = {
    VJPTrace: _under_vjp, JVPTrace: _under_jvp, JetTrace: _under_jet, BatchTrace: _under_vmap,
}  # fmt: skip
