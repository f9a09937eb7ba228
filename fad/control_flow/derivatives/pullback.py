"""The operation ``loop_pullback``: the gradient of a loop whose number of steps is known only when it has run.

Operands are those of the loop, and a cotangent for each part of the state that `seeds` marks; results are the
cotangents of the operands that `active` marks. Parameters are those of the loop, and

``loop``    the loop's own operation
``active``  marks of the body's inputs that the derivative is taken of
``seeds``   marks of the parts of the state that have a cotangent
``cut``     the body's pullback, cut into what runs forward and what runs backward
``layers``  1, or 2 if there are marks of what is used, too: of each kind of value behind the cotangents

The operation runs the loop again and keeps what the steps need on a stack that grows. So nothing of it outlives the
operation: it stands in the body of another loop like any other, to any depth, and that loop keeps no more than its
operands.

Its derivatives need no stack. They follow from the loop's rule in forward mode: with J the loop's derivative, this
operation is ``J(x)ᵀ c``, and by the symmetry of second derivatives the derivative of ``<u, J(x)ᵀ c>`` with respect to
x is that of ``<J(x) u, c>``, the pullback of a loop that carries tangents.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.control_flow.bodies.interpreter import run_pullback, step_by_step
from fad.control_flow.bodies.loop_layout import Inputs, join_layers, place_marked, split_layers
from fad.control_flow.bodies.subgraph import Unrecordable
from fad.core.primitives.cotangent import Masking, densify
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.tracer import bind, tracer, youngest
from fad.transforms.arguments.check import as_value, is_inexact, split_as_kept, zeros_like
from fad.transforms.jvp import JVPTrace, jvp
from fad.transforms.linearize import LinearTrace
from fad.transforms.vjp import Tape, VJPTrace, vjp
from fad.transforms.vmap import vmap

_OWN = ("loop", "active", "seeds", "cut", "layers")


class _Call:
    """One call of the operation, sorted: the loop as a function, and which of its operands are differentiated."""

    def __init__(self, values: list, params: dict):
        self.params = params
        self.loop_params = loop_params(params)
        self.operands, cts = split_cotangents(values, params)
        n = len(cts) // params["layers"]
        self.cts, self.marks = cts[:n], cts[n:]
        self.active = active_operands(params)

    def loop(self, operands: list) -> list:
        return list(bind(self.params["loop"], *operands, **self.loop_params))

    def seed_cotangents(self, ys: Any) -> list:
        return [y for y, s in zip(ys, self.params["seeds"], strict=False) if s]

    def gradient(self, cts: list) -> list:
        found = bind(pullback_p, *self.operands, *cts, *self.marks, **self.params)
        return split_results(found, self.params)[0]

    def push_tangents(self, operands: list, at: list[int], tangents: list) -> tuple[list, list]:
        """Return the marked parts of the state, and their tangents where the operands numbered `at` have some."""
        fun = lambda *xs: self.seed_cotangents(self.loop(_with(operands, at, xs)))
        ys, ts = jvp(fun, [as_value(operands[k]) for k in at], tangents)
        return list(ys), list(ts)

    def pull(self, fun: Callable, at: list[int], cts: list) -> tuple[list, list, list]:
        """Return the values and the cotangents of a function of the operands, of those numbered `at`, with their marks.

        Its results are the marked parts of the state, or those and their tangents: they have the same marks.
        """
        if not self.marks:
            ys, pullback = vjp(lambda *xs: fun(_with(self.operands, at, xs)), *self._values(at))
            return list(ys), list(pullback(cts)), []
        tape = self._record(fun, at)
        return tape.values(), *tape.pull_marked(cts, self.marks * (len(cts) // len(self.marks)))

    def find_uses(self, fun: Callable, at: list[int]) -> list:
        """Return marks of what a function of the operands, whose results are parts of the state, uses of some."""
        marks = self.marks or list(map(np.ones_like, self.cts))
        return self._record(fun, at).find_live(marks)

    def _record(self, fun: Callable, at: list[int]) -> Tape:
        xs = self._values(at)
        return Tape(lambda *xs: fun(_with(self.operands, at, xs)), tree.structure(tuple(xs)), xs, False, own=True)

    def _values(self, at: list[int]) -> list:
        return [as_value(self.operands[k]) for k in at]

    def pull_loop(self, loop: Callable) -> tuple:
        """Return the results of the operation, by the pullback of a function that is the loop."""
        _, grads, marks = self.pull(lambda xs: self.seed_cotangents(loop(xs)), self.active, self.cts)
        return tuple(join_results([grads, marks][: self.params["layers"]], self.params))

    def step_by_step(self) -> tuple:
        """Return the gradient of the loop, step by step: nothing is left of it in a recording."""
        return self.pull_loop(lambda xs: step_by_step(xs, self.loop_params))


def loop_params(params: dict) -> dict:
    """Return the parameters of the loop whose pullback it is."""
    return {k: v for k, v in params.items() if k not in _OWN}


def split_cotangents(values: Any, params: dict) -> tuple[Any, Any]:
    """Return the operands of the loop, and the cotangents of its state."""
    n = len(values) - sum(params["seeds"]) * params["layers"]
    return values[:n], values[n:]


def active_operands(params: dict) -> list[int]:
    """Return the numbers of the loop's operands that the derivative is taken of, in the order of the results."""
    count = [False] if params["stop"] == "count" else []
    marks = Inputs.split(params["active"], params).at_operands(count)
    return [k for k, mark in enumerate(marks.join()) if mark]


def _active_inputs(params: dict) -> Inputs:
    marks = Inputs.split(params["active"], params)
    return marks.select(marks)


def split_results(found: Any, params: dict) -> list[list]:
    """Return the cotangents among the results, and the marks, if there are any."""
    return split_layers(found, _active_inputs(params), params["layers"])


def join_results(layers: list, params: dict) -> list:
    """Return results in their order, given the cotangents, and the marks, if there are any."""
    marks = Inputs.split(params["active"], params)
    placed = [Inputs.split(place_marked(some, params["active"]), params) for some in layers]
    return join_layers([some.select(marks) for some in placed]).join()


def _with(operands: list, at: list[int], xs: Any) -> list:
    found = list(operands)
    for k, x in zip(at, xs, strict=True):
        found[k] = x
    return found


def example_gradient(*operands: Any, **params: Any) -> tuple:
    """Return zeros of the right types, for the recording of a body, where values stand for others."""
    backward = params["cut"].backward
    return tuple([backward.types[o].zeros() for o in backward.outputs])


# --- derivatives -----------------------------------------------------------------------------------------------------


def _differentiate(*args: Any, **params: Any) -> tuple:
    trace: Any = youngest(args)
    rule = _reverse if isinstance(trace, VJPTrace) else _RULES.get(type(trace))
    if rule is None:  # a trace without a rule for loops sees the steps
        return _Call(list(args), params).step_by_step()
    trace.check_alive()
    return tuple(rule(trace, args, params))


def _forward(trace: JVPTrace, args: Any, params: dict) -> list:
    values = [trace.lower(x) for x in args]
    tangents = [densify(x.info) if x is not v else None for x, v in zip(args, values, strict=True)]
    ys = bind(pullback_p, *values, **params)
    pushed = zip(ys, _push(values, tangents, params), strict=True)
    return [y if t is None else tracer(y, trace, t) for y, t in pushed]


def _linear(trace: LinearTrace, args: Any, params: dict) -> Any:
    values, parents = split_as_kept(trace, args, None)
    ys = bind(pullback_p, *values, **params)
    values = trace.keep_constants(values, parents)
    return trace.attach(True, ys, parents, lambda ts: _push(values, [densify(t) for t in ts], params))


def _push(values: list, tangents: list, params: dict) -> list:
    """Return the tangents of the cotangents: the pullback of the loop that carries tangents. Marks have none."""
    call = _Call(values, params)
    found = _push_cotangents(call, tangents)
    return join_results([found, [None for _ in found]][: params["layers"]], params)


def _push_cotangents(call: _Call, tangents: list) -> list:
    n = len(call.operands)
    moved = [k for k in range(n) if tangents[k] is not None]
    cts = [zeros_like(ct) if t is None else t for ct, t in zip(call.cts, tangents[n:], strict=False)]
    if not moved:
        return call.gradient(cts)

    def both(operands: list) -> list:
        ys, ts = call.push_tangents(operands, moved, [tangents[k] for k in moved])
        return [*ys, *ts]

    return call.pull(both, call.active, [*cts, *call.cts])[1]


def _reverse(trace: VJPTrace, args: Any, params: dict) -> list:
    values, parents = split_as_kept(trace, args, -1)
    ys = list(bind(pullback_p, *values, **params))
    call = _Call(trace.keep(values, parents), params)
    n = len(call.operands)
    traced = [k for k in range(n) if parents[k] >= 0 and is_inexact(as_value(values[k]))]

    def along(cts: list) -> Callable:
        tangents = [zeros_like(y) if ct is None else densify(ct) for ct, y in zip(cts, ys, strict=True)]
        tangents = split_results(tangents, params)[0]
        return lambda operands: call.push_tangents(operands, call.active, tangents)[1]

    def pullback(cts: list) -> list:
        tangent = along(cts)
        seeds, found, _ = call.pull(tangent, traced, call.cts) if traced else (tangent(call.operands), [], [])
        grads = dict(zip(traced, found, strict=True))
        if call.marks:
            seeds = [np.where(np.not_equal(mark, 0), x, 0.0) for mark, x in zip(call.marks, seeds, strict=True)]
        return [*[grads.get(k) for k in range(n)], *seeds, *[None for _ in call.marks]]

    def find_uses(marks: list, when: Any) -> list:
        live = dict(zip(traced, call.find_uses(along(marks), traced), strict=True))
        return [*[live.get(k) for k in range(n)], *map(np.ones_like, call.cts), *[None for _ in call.marks]]

    return trace.call(parents, ys, Masking(pullback, find_uses))


# --- batches ---------------------------------------------------------------------------------------------------------


def _batch(trace: Any, batched: tuple, values: list, params: dict) -> tuple:
    """Differentiate the loop over batches: each element has gradients of its own."""
    size, active = trace.size, active_operands(params)
    n = len(split_cotangents(values, params)[0])
    flags = [b or k in active or k >= n for k, b in enumerate(batched)]
    spread = [v if b or not f else _spread(v, size) for v, b, f in zip(values, batched, flags, strict=True)]
    call = _Call(spread, params)
    over_batch = params["loop"].over_batch
    try:
        return call.pull_loop(lambda operands: over_batch(size, tuple(flags[:n]), operands, call.loop_params))
    except Unrecordable as why:
        if why.trace.birth < trace.birth:
            raise
    axes = tuple([0 if f else None for f in flags])
    return tuple(vmap(lambda *xs: _Call(list(xs), params).step_by_step(), in_axes=axes)(*spread))


def _spread(x: Any, size: int) -> Any:
    return np.broadcast_to(x, (size, *np.shape(x)))


pullback_p = Primitive(
    "loop_pullback", run_pullback, multi=True, batch=_batch, archetype="loop",
    differentiated=_differentiate, example=example_gradient, needs_trace=True,
)  # fmt: skip
_RULES: dict[type, Callable] = {JVPTrace: _forward, LinearTrace: _linear}
