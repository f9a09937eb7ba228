"""The operations ``scan`` and ``while_loop``: a body that is run again and again, with rules for every transform.

Operands are ``consts..., [count], carry..., xs...``, results ``carry..., ys..., [count]``. Parameters:

``body``     the graph of one step: ``consts..., [index], carry..., x...`` to ``carry..., y...``
``consts``   how many values are loop-invariant
``carries``  how many values go from one step to the next
``length``   the extent of xs and ys, None if there are none
``reverse``  whether steps run from the last x to the first
``index``    whether the body takes the number of its x, a Python int
``stop``     "length": after so many steps; "count": after as many as that operand says (at most `length`);
             "cond": when the first of the carry, a bool, is false
``save``     what reverse mode keeps of a long loop: "sqrt", "binomial", "none", "carry" (the state alone), or the
             lengths of the loops that it is cut into
``adjoint``  of a loop that runs backward: all numbers that it carries are cotangents, or what is derived from them
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import like
from fad.control_flow.chunks import chunk_sizes, run_in_chunks
from fad.control_flow.dependence import find_active
from fad.control_flow.interpreter import Parts, example_step, first_step, parts_of, run, step_by_step
from fad.control_flow.pullback import active_operands, pullback_p
from fad.control_flow.split_pullback import accumulate_outputs, halves, record_pullback, without
from fad.control_flow.subgraph import Unrecordable, example, record_flat
from fad.core.cotangent import densify
from fad.core.graph import Graph, type_of
from fad.core.memory import unwrap
from fad.core.primitive import Primitive
from fad.core.tracer import Tracer, bind, tracer, youngest
from fad.transforms.check import as_value, kind_of, split_as_kept, zeros_like
from fad.transforms.jvp import JVPTrace, jvp
from fad.transforms.linearize import LinearTrace
from fad.transforms.tape import is_inexact
from fad.transforms.vjp import VJPTrace
from fad.transforms.vmap import BatchTrace

# --- derivatives ---------------------------------------------------------------------------------------------------


def _differentiate(*args: Any, **params: Any) -> tuple:
    trace: Any = youngest(args)
    rule = _reverse if isinstance(trace, VJPTrace) else _RULES.get(type(trace))
    if rule is None:
        return step_by_step(args, params)
    trace.check_alive()
    try:
        return tuple(rule(trace, args, params))
    except Unrecordable as why:
        if why.trace.birth < trace.birth:
            raise  # it is an older body that cannot be recorded
        return step_by_step(args, params)


def _select_marked(items: Any, marks: list[bool]) -> list:
    return [x for x, m in zip(items, marks, strict=True) if m]


def _forward(trace: JVPTrace, args: Any, params: dict) -> list:
    values = [trace.lower(x) for x in args]
    tangents = [x.info if x is not v else None for x, v in zip(args, values, strict=True)]
    outs, pushed = _push(values, tangents, params)
    return [y if t is None else tracer(y, trace, t) for y, t in zip(outs, pushed, strict=True)]


def _linear(trace: LinearTrace, args: Any, params: dict) -> Any:
    values, parents = split_as_kept(trace, args, None)
    ys = bind(_operation(params), *values, **params)
    values = trace.keep_constants(values, parents)
    return trace.attach(True, ys, parents, lambda ts: _push(values, ts, params)[1])


def _push(values: list, tangents: list, params: dict) -> tuple[list, list]:
    """Run a loop with tangents beside its values; a tangent is None where it is zero."""
    tangents = [densify(t) for t in tangents]
    body = params["body"]
    parts = Parts(values, **params)
    inputs, outputs = find_active([t is not None for t in tangents], params)
    n = len(body.inputs)

    def fun(*flat: Any) -> list:
        raw: list = []

        def some(*xs: Any) -> list:
            it = iter(xs)
            raw[:] = body(*[next(it) if a else x for a, x in zip(inputs, flat, strict=False)])
            return list(raw)

        ys, ts = jvp(some, _select_marked(flat[:n], inputs), flat[n:])
        return [*[y if a else r for a, y, r in zip(outputs, ys, raw, strict=True)], *_select_marked(ts, outputs)]

    filled = [_tangent(v) if t is None else t for t, v in zip(tangents, values, strict=True)]
    given = Parts(filled, **params)
    shown = first_step(parts, params["length"], params["reverse"], params["index"])
    pushed_in = [kind_of(example(t), x) for t, x in zip(_step_tangents(filled, params), shown, strict=True)]
    graph = record_flat(fun, [*shown, *_select_marked(pushed_in, inputs)])
    c, k = params["consts"], params["consts"] + params["index"] + params["carries"]
    ins, more = graph.inputs[:n], iter(graph.inputs[n:])
    twin = [next(more) if a else None for a in inputs]
    grouped = [[*ins[a:b], *[t for t in twin[a:b] if t is not None]] for a, b in ((0, c), (c, k), (k, n))]
    m, outs = params["carries"], graph.outputs[: len(outputs)]
    more = iter(graph.outputs[len(outputs) :])
    twin = [next(more) if a else None for a in outputs]
    results = [[*outs[a:b], *[t for t in twin[a:b] if t is not None]] for a, b in ((0, m), (m, len(outputs)))]
    graph = graph.replace(inputs=[i for g in grouped for i in g], outputs=[*results[0], *results[1]])
    split = [inputs[:c], inputs[c + params["index"] : k], inputs[k:]]
    both = Parts([], 0, 0, "length")
    both.consts = [*parts.consts, *_select_marked(given.consts, split[0])]
    both.carry = [*parts.carry, *_select_marked(given.carry, split[1])]
    both.xs = [*parts.xs, *_select_marked(given.xs, split[2])]
    both.count = parts.count
    new = {**params, "body": graph, "consts": len(both.consts), "carries": len(both.carry)}
    found = list(bind(_operation(params), *both.operands(), **new))
    return _sort_results(found, outputs, params)


def _sort_results(found: list, marks: list[bool], params: dict) -> tuple[list, list]:
    """Sort results: carries, their tangents, ys, their tangents, and the count."""
    m = params["carries"]
    ys, ts = [], []
    for some in (marks[:m], marks[m:]):
        ys += [found.pop(0) for _ in some]
        ts += [found.pop(0) if a else None for a in some]
    return ys + found, ts + [None] * len(found)


def _tangent(x: Any) -> Any:
    return zeros_like(as_value(x)) if is_inexact(as_value(x)) else None


def _step_tangents(filled: list, params: dict) -> list:
    """Return one step's tangents, or a placeholder where there are none."""
    parts = Parts([0 if t is None else t for t in filled], **params)
    xs = [x[0] if np.ndim(example(x)) else 0 for x in map(example, parts.xs)]
    return [*parts.consts, *([0] if params["index"] else []), *parts.carry, *xs]


def _reverse(trace: VJPTrace, args: Any, params: dict) -> list:
    values, parents = split_as_kept(trace, args, -1)
    inputs, outputs = find_active([p >= 0 for p in parents], params)
    cut = _cut(values, inputs, outputs, params)
    if params["stop"] == "length":
        sizes = chunk_sizes(params["length"], params["save"], *_bytes(cut, values, inputs, params))
        if sizes:
            return run_in_chunks(scan_p, args, params, sizes)
    if params["length"] is None:
        return _reverse_unbounded(trace, values, parents, inputs, outputs, cut, params)
    new = {**params, "body": cut.forward}
    found = list(bind(_operation(params), *values, **new))
    fixed = Parts(trace.keep(values, parents), **params)
    n = len(outputs)
    ys, kept = found[:n], found[n : n + cut.kept]
    if params["stop"] == "cond":
        ys.append(found[-1])
    count = found[-1] if params["stop"] == "cond" else fixed.count
    pull = _Pullback(fixed, count, kept, ys, inputs, outputs, cut.backward, params)
    outs = trace.call(parents, ys, pull)
    # a float that depends on nothing traced is no traced value: it may be a Python number
    return [t if a else y for t, y, a in zip(outs, ys, [*outputs, False], strict=False)]


def _bytes(cut: Any, values: list, inputs: list[bool], params: dict) -> list[int]:
    """Return the bytes of the state, of what a step keeps, of what is there in any case, and of each level besides.

    In any case there are the operands and the state with its cotangent; on each level the state where a part begins,
    cotangents where it begins and ends, and the sums of what is added up over its steps.
    """
    types, body, start = params["body"].types, params["body"], params["consts"] + params["index"]
    state = sum(types[i].nbytes for i in body.inputs[start : start + params["carries"]])
    sums = sum(types[i].nbytes for i, a in zip(body.inputs[: params["consts"]], inputs, strict=False) if a)
    operands = sum(type_of(example(v)).nbytes for v in values)
    return [n * _lanes(values) for n in (state, cut.nbytes, operands + 2 * state, 3 * state + 2 * sums)]


def _reverse_unbounded(trace: VJPTrace, values, parents, inputs, outputs, cut, params: dict) -> list:
    """Record a loop whose number of steps has no bound: its pullback is an operation, which runs the loop again."""
    loop = _operation(params)
    ys = list(bind(loop, *values, **params))
    operands = trace.keep(values, parents)
    own = {"loop": loop, "active": tuple(inputs), "seeds": tuple(outputs), "cut": cut}

    def pull(cts: list) -> list:
        seeds = [zeros_like(y) if ct is None else ct for ct, y, a in zip(cts, ys, outputs, strict=False) if a]
        found = bind(pullback_p, *operands, *seeds, **params, **own)
        grads = dict(zip(active_operands({**params, **own}), found, strict=True))
        return [grads.get(k) for k in range(len(operands))]

    outs = trace.call(parents, ys, pull)
    return [t if a else y for t, y, a in zip(outs, ys, [*outputs, False], strict=False)]


def _cut(values: list, inputs: list[bool], outputs: list[bool], params: dict) -> Any:
    """Record the body's pullback, and cut it in two."""
    body = params["body"]
    shown = first_step(Parts(values, **params), params["length"], params["reverse"], params["index"])
    shown = [as_value(x) if a else x for x, a in zip(shown, inputs, strict=True)]
    types = [body.types[o] for o in body.outputs]
    cts = [t.zeros() for t in _select_marked(types, outputs)]
    joint = record_pullback(body, inputs, outputs, [*shown, *cts])
    start = params["consts"] + params["index"]
    state = range(start, start + params["carries"])
    return halves(joint, len(body.inputs), len(body.outputs), state, params["save"] != "carry")


class _Pullback:
    """What the tape keeps of a loop: its operands, what its steps kept, and the body that runs backward."""

    def __init__(self, parts, count, kept, ys, inputs, outputs, backward, params):
        self.parts = parts
        self.count = count
        self.kept = kept
        self.ys = ys
        self.inputs = inputs
        self.outputs = outputs
        self.backward = backward
        self.params = params

    def __call__(self, cts: list) -> list:
        params, parts = self.params, self.parts
        c, index, m = params["consts"], params["index"], params["carries"]
        k = c + index + m
        split = [self.inputs[:c], self.inputs[c + index : k], self.inputs[k:]]
        consts = _select_marked(parts.consts, split[0])
        full = [zeros_like(y) if ct is None else ct for ct, y in zip(cts, self.ys, strict=True)]
        n = len(self.outputs)
        seeds = _select_marked(full[:m], self.outputs[:m])
        cut = c + index + len(parts.xs) + len(self.kept)
        slots = self.backward.inputs[cut:]  # of the cotangents
        given_cts = _select_marked(cts[m:n], self.outputs[m:])
        absent = {i for i, ct in zip(slots[len(seeds) :], given_cts, strict=True) if ct is None}
        stacked = [ct for ct in given_cts if ct is not None]
        graph, sums = accumulate_outputs(
            without(self.backward, slots, absent) if absent else self.backward, len(consts)
        )
        ins = graph.inputs
        given = [*ins[:c], *ins[c : c + index], *sums, *ins[cut : cut + len(seeds)]]
        graph = graph.replace(inputs=[*given, *ins[c + index : cut], *ins[cut + len(seeds) :]])
        new = {
            **params, "body": graph, "carries": len(sums) + len(seeds), "reverse": not params["reverse"],
            "stop": "length" if params["stop"] == "length" else "count", "adjoint": True,
        }  # fmt: skip
        count = [self.count] if params["stop"] != "length" else []
        zeros = [zeros_like(as_value(x)) for x in consts]
        operands = [*parts.consts, *count, *zeros, *seeds, *parts.xs, *self.kept, *stacked]
        found = iter(bind(scan_p, *operands, **new))
        grads = [[next(found) if a else None for a in some] for some in split]
        return [*grads[0], *([] if parts.count is None else [None]), *grads[1], *grads[2]]


def _lanes(values: list) -> int:
    """Return how many examples the values hold, if they are batched below."""
    return max((np.size(unwrap(v)) // max(1, np.size(example(v))) for v in values), default=1)


# --- batches -------------------------------------------------------------------------------------------------------


def _batch(trace: Any, batched: tuple, values: list, params: dict) -> tuple:
    try:
        found = _over_batch(trace.size, batched, values, params)
    except Unrecordable as why:
        if why.trace.birth < trace.birth:
            raise
        elements = [tracer(v, trace, None) if b else v for v, b in zip(values, batched, strict=True)]
        found = [trace.lower(y) if _is_of(y, trace) else _spread(y, trace.size) for y in step_by_step(elements, params)]
    return tuple(found)


def _is_of(y: Any, trace: Any) -> bool:
    return type(y) is Tracer and y.owner is trace


def _spread(y: Any, size: int) -> Any:
    return np.broadcast_to(y, (size, *np.shape(y)))


def _over_batch(size: int, batched: tuple, values: list, params: dict) -> list:
    body, m = params["body"], params["carries"]
    parts, marks = Parts(values, **params), Parts(batched, **params)
    lanes_stop = bool(marks.count)
    inputs, outputs = find_active(list(batched), params, derivative=False)
    if params["stop"] == "cond" and outputs[0]:
        lanes_stop = True
    if lanes_stop:  # every batch element's state is its own
        k = params["consts"] + params["index"]
        inputs[k : k + m] = [True] * m
        marks.carry = [True] * m
        outputs = [True] * len(outputs)
    carry = [
        v if b else (_spread(v, size) if a else v)
        for v, b, a in zip(parts.carry, Parts(batched, **params).carry, outputs[:m], strict=True)
    ]
    xs = [np.moveaxis(x, 0, 1) if b else x for x, b in zip(parts.xs, marks.xs, strict=True)]
    dtypes = [body.types[o].dtype for o in body.outputs]

    def step(*flat: Any) -> list:
        trace = BatchTrace(size, (), "split")
        try:
            ys = body(*[tracer(x, trace, None) if b else x for x, b in zip(flat, inputs, strict=True)])
            # a batch of Python numbers is an array, whose dtype counts in promotion: the state keeps its own
            ys = [y.astype(t) if _is_of(y, trace) and y.dtype != t else y for y, t in zip(ys, dtypes, strict=True)]
            return [
                y.value if _is_of(y, trace) else _spread(y, size) if b else y for y, b in zip(ys, outputs, strict=True)
            ]
        finally:
            trace.finish()

    if lanes_stop:
        return _until_all_stop(size, step, parts_of(parts.consts, carry, xs), parts.count, body, params)
    shown = first_step(parts_of(parts.consts, carry, xs), params["length"], params["reverse"], params["index"])
    new = {**params, "body": record_flat(step, shown)}
    operands = parts_of(parts.consts, carry, xs)
    operands.count = parts.count
    found = list(bind(_operation(params), *operands.operands(), **new))
    out = [y if b else _spread(y, size) for y, b in zip(found[:m], outputs[:m], strict=True)]
    stacks = zip(found[m : len(outputs)], outputs[m:], strict=True)
    out += [np.moveaxis(y, 1, 0) if b else _spread(y, size) for y, b in stacks]
    return out + [_spread(y, size) for y in found[len(outputs) :]]


def _until_all_stop(size: int, step: Callable, parts: Parts, count: Any, body: Graph, params: dict) -> list:
    """Run until the last batch element is done; one that is done keeps its state."""
    c, m, index, cond = params["consts"], params["carries"], params["index"], params["stop"] == "cond"
    per_element = like(parts.carry[0], np.zeros(size, np.int64)) if cond else count

    def masked(*flat: Any) -> list:
        """consts, [counts], position, [any go, done], carry, xs."""
        flat = list(flat)
        consts = flat[:c]
        rest = flat[c:]
        if cond:
            at, _, done, *rest = rest
            live = rest[0]
        else:
            counts, at, *rest = rest
            live = np.less(at, counts)
        old = rest[:m]
        ys = step(*consts, *([at] if index else []), *rest)
        new = [np.where(_beside(live, y), y, o) for y, o in zip(ys[:m], old, strict=True)]
        if not cond:
            return [*new, *[np.where(_beside(live, y), y, np.zeros_like(y)) for y in ys[m:]]]
        new[0] = np.logical_and(live, ys[0])
        return [np.any(new[0]), done + live.astype(np.int64), *new, *ys[m:]]

    if cond:
        state = [np.any(parts.carry[0]), per_element, *parts.carry]
        shown = first_step(parts_of(parts.consts, state, parts.xs), params["length"], params["reverse"], True)
        new = {**params, "body": record_flat(masked, shown), "carries": m + 2, "index": True}
        found = list(bind(while_p, *parts.consts, *state, *parts.xs, **new))
        return [*found[2 : 2 + m], *[np.moveaxis(y, 1, 0) for y in found[2 + m : -1]], found[1]]
    consts = [*parts.consts, per_element]
    shown = first_step(parts_of(consts, parts.carry, parts.xs), params["length"], params["reverse"], True)
    new = {**params, "body": record_flat(masked, shown), "consts": c + 1, "index": True}
    found = list(bind(scan_p, *consts, np.max(per_element), *parts.carry, *parts.xs, **new))
    return [*found[:m], *[np.moveaxis(y, 1, 0) for y in found[m:]]]


def _beside(live: Any, y: Any) -> Any:
    rank = np.ndim(y)
    return live.reshape((live.shape[0],) + (1,) * (rank - 1)) if rank > 1 else live


def _make(name: str) -> Primitive:
    return Primitive(
        name, run, multi=True, batch=_batch, archetype="loop",
        differentiated=_differentiate, example=example_step, needs_trace=True, over_batch=_over_batch,
    )  # fmt: skip


scan_p, while_p = _make("scan"), _make("while_loop")
_RULES: dict[type, Callable] = {JVPTrace: _forward, LinearTrace: _linear}


def _operation(params: dict) -> Primitive:
    return while_p if params["stop"] == "cond" else scan_p
