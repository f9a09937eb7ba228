"""The operations ``scan`` and ``while_loop``: a body that is run again and again, with rules for every transform.

How operands and results are laid out says `fad.control_flow.bodies.loop_layout`. Parameters:

``body``     the graph of one step
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

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import like
from fad.config import memory_limit
from fad.control_flow.bodies.dependence import find_active
from fad.control_flow.bodies.interpreter import example_step, first_step, run, step_by_step
from fad.control_flow.bodies.loop_layout import (
    BackwardInputs,
    Inputs,
    Operands,
    Outputs,
    Results,
    has_condition,
    join_layers,
    place_marked,
    select_marked,
    split_layers,
)
from fad.control_flow.bodies.subgraph import Unrecordable, as_recorded, example, record_flat
from fad.control_flow.derivatives.checkpoints import chunk_sizes, run_in_chunks
from fad.control_flow.derivatives.linear_map import make_pusher
from fad.control_flow.derivatives.pullback import active_operands, pullback_p, split_results
from fad.control_flow.derivatives.split_pullback import (
    accumulate_outputs,
    halves,
    record_marked,
    record_pullback,
    record_uses,
    without,
)
from fad.core.primitives.cotangent import Masked, Masking, densify, ones_where_live
from fad.core.primitives.limits import Crowded
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Graph, type_of
from fad.core.tracing.tracer import Tracer, bind, tracer, youngest
from fad.core.tracing.values import stop
from fad.core.tracing.views import unwrap
from fad.transforms.arguments.check import as_value, is_inexact, kind_of, split_as_kept, zeros_like
from fad.transforms.batching.batch_trace import BatchTrace
from fad.transforms.jvp import JVPTrace, jvp, jvp_masked
from fad.transforms.linearize import LinearTrace
from fad.transforms.push_tangents import push_body, takes_masks
from fad.transforms.reverse.slopes import find_care_of_call
from fad.transforms.reverse.steep_programs import has_steep, leaves_out
from fad.transforms.vjp import VJPTrace, deferring_looks

CHOOSE: list[Callable] = []  # `choose` of `fad.control_flow.cond`, which is made of loops itself

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
    except Crowded:  # the steps can be asked one by one where eigenvalues are repeated
        return step_by_step(args, params)


def _forward(trace: JVPTrace, args: Any, params: dict) -> list:
    values = [trace.lower(x) for x in args]
    tangents = [x.info if x is not v else None for x, v in zip(args, values, strict=True)]
    outs, pushed = push_body(lambda: _push(values, tangents, params), _is_steep_within(trace.steep, tangents, params))
    trace.steep = trace.steep or has_steep(params["body"])
    return [y if t is None else tracer(y, trace, t) for y, t in zip(outs, pushed, strict=True)]


def _linear(trace: LinearTrace, args: Any, params: dict) -> Any:
    values, parents = split_as_kept(trace, args, None)
    ys = bind(_operation(params), *values, **params)
    values = trace.keep_constants(values, parents)
    steep = _is_steep_within(trace.steep, parents, params)
    trace.steep = trace.steep or has_steep(params["body"])
    push = lambda ts: push_body(lambda: _push(values, ts, params), steep)[1]
    run = lambda xs: step_by_step(xs, params)
    return trace.attach(True, ys, parents, make_pusher(push, run, values))


def _is_steep_within(steep: bool, tangents: list, params: dict) -> bool:
    """Return whether tangents that come into a step may be infinite, and meet constants there that may be zero."""
    body = params["body"]
    if steep or not has_steep(body):
        return steep
    inputs, _ = find_active([t is not None for t in tangents], params)
    return leaves_out(body, inputs, Inputs.split(body.inputs, params).carry)


def _push(values: list, tangents: list, params: dict) -> tuple[list, list]:
    """Run a loop with tangents beside its values; a tangent is None where it is zero."""
    body = params["body"]
    parts = Operands.split(values, params)
    inputs, outputs = find_active([t is not None for t in tangents], params)
    marks, ends = Inputs.split(inputs, params), Outputs.split(outputs, params)
    masked = has_steep(body) and Masked in map(type, tangents) and takes_masks()
    n = len(body.inputs)

    def fun(*flat: Any) -> list:
        raw: list = []

        def some(*xs: Any) -> list:
            it = iter(xs)
            raw[:] = body(*[next(it) if a else x for a, x in zip(inputs, flat, strict=False)])
            return list(raw)

        ys, *layers = (jvp_masked if masked else jvp)(some, select_marked(flat[:n], inputs), flat[n:])
        pushed = [t for ts in layers for t in select_marked(ts, outputs)]
        return [*[y if a else r for a, y, r in zip(outputs, ys, raw, strict=True)], *pushed]

    layers = [list(map(densify, tangents)), *([[_mark(t) for t in tangents]] if masked else [])]
    given, shown, pushed_in = [], as_recorded(body, first_step(parts, params).join()), []
    for ts in layers:
        ts = [_tangent(v) if t is None else t for t, v in zip(ts, values, strict=True)]
        given.append(Operands.split(ts, params))
        pushed_in += select_marked(map(_kind_of_example, _step_tangents(given[-1], params), shown), inputs)
    graph = record_flat(fun, [*shown, *pushed_in])
    # of each kind of value the tangents stand behind the values, and their marks behind those
    own, results = Inputs.split(graph.inputs[:n], params), Outputs.split(graph.outputs[: len(outputs)], params)
    all_inputs = join_layers([own, *_sort_layers(Inputs, graph.inputs[n:], inputs, params)])
    all_outputs = join_layers([results, *_sort_layers(Outputs, graph.outputs[len(outputs) :], outputs, params)])
    operands = join_layers([parts, *[ts.select(marks)._replace(steps=[]) for ts in given]])
    graph = graph.replace(inputs=all_inputs.join(), outputs=all_outputs.join())
    new = {**params, "body": graph, **all_inputs.layout()}
    found = Results.split(bind(_operation(params), *operands.join(), **new), new)
    m, k = len(ends.carry), len(ends.ys)
    each = split_layers([*found.carry[m:], *found.ys[k:]], ends.select(ends), len(layers))
    pushed = each[0] if not masked else [Masked(t, np.not_equal(u, 0), True) for t, u in zip(*each, strict=True)]
    pushed = place_marked(pushed, outputs)
    return [*found.carry[:m], *found.ys[:k], *found.steps], [*pushed, *[None for _ in found.steps]]


def _sort_layers(kind: Any, numbers: list, marks: list, params: dict) -> list:
    """Return the values of each layer, which stand one layer after the other, as a layout of those that are marked."""
    n, one = max(1, sum(marks)), kind.split(marks, params)
    rows = [place_marked(numbers[i : i + n], marks) for i in range(0, len(numbers), n)]
    return [kind.split(row, params).select(one) for row in rows]


def _mark(t: Any) -> Any:
    return None if t is None else ones_where_live(t)


def _kind_of_example(t: Any, x: Any) -> Any:
    return kind_of(example(t), x)


def _tangent(x: Any) -> Any:
    return zeros_like(as_value(x)) if is_inexact(as_value(x)) else None


def _step_tangents(given: Operands, params: dict) -> list:
    """Return one step's tangents, or a placeholder where there are none."""
    consts, _, carry, xs = ([0 if t is None else t for t in some] for some in given)
    xs = [x[0] if np.ndim(example(x)) else 0 for x in map(example, xs)]
    return Inputs(consts, [0] if params["index"] else [], carry, xs).join()


def _reverse(trace: VJPTrace, args: Any, params: dict) -> list:
    values, parents = split_as_kept(trace, args, -1)
    inputs, outputs = find_active([p >= 0 for p in parents], params)
    with deferring_looks() as looks:
        cut = _cut(values, inputs, outputs, params, record_pullback)
    if params["stop"] == "length":
        sizes = chunk_sizes(params["length"], params["save"], *_bytes(cut, values, inputs, params))
        if sizes:
            return run_in_chunks(scan_p, args, params, sizes)
    if params["length"] is None:
        return _reverse_unbounded(trace, values, parents, inputs, outputs, cut, params, looks.wanted)
    results, kept = _run_forward(values, cut, params)
    operands = trace.keep(values, parents)
    finals = [results.carry[k] for k in cut.finals]
    finals = trace.keep(finals, [0 if outputs[k] else -1 for k in cut.finals])
    pull = _Pullback(Operands.split(operands, params), results, [finals, kept], inputs, outputs, cut.backward, params)
    ys = results.join()
    uses = functools.partial(_find_uses, operands, inputs, outputs, params)
    parts = (operands, inputs, outputs, params)
    outs = trace.call(parents, ys, _masking(lambda cts: pull(cts)[0], uses, parts, looks.wanted))
    # a float that depends on nothing traced is no traced value: it may be a Python number
    return [t if a else y for t, y, a in zip(outs, ys, [*outputs, False], strict=False)]


def _run_forward(values: list, cut: Any, params: dict) -> tuple[Results, list]:
    """Run a loop; return what it gives, and what its steps keep."""
    found = Results.split(bind(_operation(params), *values, **{**params, "body": cut.forward}), params)
    k = len(found.ys) - cut.kept
    return found._replace(ys=found.ys[:k]), found.ys[k:]


def _find_uses(values: list, inputs: list[bool], outputs: list[bool], params: dict, marks: list, when: Any) -> list:
    """Return marks of the operands that are zeros where no step uses them, by the marks of what a loop gives."""
    values = [stop(x) for x in values]
    active = active_operands({**params, "active": inputs})
    find = lambda values, marks: _run_for_uses(values, inputs, outputs, params, marks)
    if type(when) is Tracer:
        everywhere = lambda values, marks: [np.ones_like(x) if k in active else None for k, x in enumerate(values)]
        found = CHOOSE[0](when, [everywhere, find], (values, marks))
        if found is not None:
            return found[0]
    return find(values, marks)


def _run_for_uses(values: list, inputs: list[bool], outputs: list[bool], params: dict, marks: list) -> list:
    return _run_again(values, inputs, outputs, params, record_uses, marks)[0]


def _run_again(values: list, inputs: list, outputs: list, params: dict, record: Callable, *layers: list) -> list:
    """Run a loop again, and backward what is recorded of its body: of cotangents, of marks, or of both."""
    cut = _cut(values, inputs, outputs, params, record, len(layers))
    if params["length"] is None:
        return _run_pullback(values, inputs, outputs, cut, params, *layers)
    results, kept = _run_forward(values, cut, params)
    finals = [results.carry[k] for k in cut.finals]
    pull = _Pullback(Operands.split(values, params), results, [finals, kept], inputs, outputs, cut.backward, params)
    return pull(*layers)


def _masking(pull: Callable, uses: Callable, parts: tuple, unsure: bool) -> Masking:
    """Return the pullback of a loop, which takes masks along if it has to."""
    values, inputs, outputs, params = parts
    body = params["body"]
    some, care = leaves_out(body, inputs), 0
    if has_steep(body):
        care = find_care_of_call(values)
        # what a step leaves out of the state may have an infinite slope in the step before
        unsure = unsure or (some and leaves_out(body, inputs, Inputs.split(body.inputs, params).carry))
    pull_marked = lambda cts, marks: _run_again(values, inputs, outputs, params, record_marked, cts, marks)
    return Masking(pull, uses, pull_marked, care, unsure, some)


def _bytes(cut: Any, values: list, inputs: list[bool], params: dict) -> list[int]:
    """Return the bytes of the state, of what a step keeps, of what is there in any case, and of each level besides.

    In any case there are the operands and the state with its cotangent; on each level the state where a part begins,
    cotangents where it begins and ends, and the sums of what is added up over its steps.
    """
    types = params["body"].types
    own, marks = Inputs.split(params["body"].inputs, params), Inputs.split(inputs, params)
    state = sum(types[i].nbytes for i in own.carry)
    sums = sum(types[i].nbytes for i in select_marked(own.consts, marks.consts))
    operands = sum(type_of(example(v)).nbytes for v in values)
    return [n * _count_elements(values) for n in (state, cut.nbytes, operands + 2 * state, 3 * state + 2 * sums)]


def _reverse_unbounded(
    trace: VJPTrace, values: list, parents: list, inputs: list, outputs: list, cut: Any, params: dict, unsure: bool
) -> list:
    """Record a loop whose number of steps has no bound: its pullback is an operation, which runs the loop again."""
    ys = list(bind(_operation(params), *values, **params))
    operands = trace.keep(values, parents)
    fill = lambda cts: [zeros_like(y) if ct is None else ct for ct, y in zip(cts, ys, strict=False)]
    pull = lambda cts: _run_pullback(operands, inputs, outputs, cut, params, fill(cts))[0]
    uses = lambda marks, when: _find_uses(operands, inputs, outputs, params, fill(marks), when)
    outs = trace.call(parents, ys, _masking(pull, uses, (operands, inputs, outputs, params), unsure))
    return [t if a else y for t, y, a in zip(outs, ys, [*outputs, False], strict=False)]


def _run_pullback(operands: list, inputs: list, outputs: list, cut: Any, params: dict, *layers: list) -> list:
    """Run a loop without a bound again, and then backward; return a cotangent for each operand, of each layer."""
    n = len(layers)
    own = {"loop": _operation(params), "active": tuple(inputs), "seeds": tuple(outputs), "cut": cut, "layers": n}
    seeds = [
        zeros_like(as_value(x)) if ct is None else ct
        for cts in layers for ct, x, a in zip(cts, Operands.split(operands, params).carry, outputs, strict=False) if a
    ]  # fmt: skip
    found = bind(pullback_p, *operands, *seeds, **params, **own)
    at = active_operands({**params, **own})
    grads = [dict(zip(at, some, strict=True)) for some in split_results(found, {**params, **own})]
    return [[some.get(k) for k in range(len(operands))] for some in grads]


def _cut(
    values: list, inputs: list[bool], outputs: list[bool], params: dict, record: Callable, layers: int = 1
) -> Any:
    """Record the body with its pullback, or with what it uses, and cut it in two."""
    body = params["body"]
    shown = as_recorded(body, first_step(Operands.split(values, params), params).join())
    types = [body.types[o] for o in body.outputs]
    cts = [t.zeros() for t in select_marked(types, outputs)] * layers
    joint = record(body, inputs, outputs, [*shown, *cts])
    if layers > 1:
        joint = _join_layers(joint, inputs, outputs, params)
    own = Inputs.split(joint.inputs[: len(body.inputs)], params)
    steps = params["length"] if memory_limit.get() is None else None
    known = params["index"] and params["length"] is not None and not has_condition(params)
    finals = (params["length"], params["reverse"]) if known else None
    return halves(joint, own, len(body.outputs), params["save"] != "carry", steps, finals)


def _join_layers(joint: Graph, inputs: list, outputs: list, params: dict) -> Graph:
    """Let what a body takes and gives of several layers stand by its kind: constants, state, rows."""
    n, m = len(inputs), len(outputs)
    cts = join_layers(_sort_layers(Outputs, joint.inputs[n:], outputs, params)).join()
    grads = join_layers(_sort_layers(Inputs, joint.outputs[m:], inputs, params)).join()
    return joint.replace(inputs=[*joint.inputs[:n], *cts], outputs=[*joint.outputs[:m], *grads])


class _Pullback:
    """What the tape keeps of a loop: its operands, what the steps and the end of it left, and the body run backward."""

    def __init__(self, operands, results, kept, inputs, outputs, backward, params):
        self.operands = operands
        self.results = results
        self.finals, self.kept = kept
        self.inputs = inputs
        self.outputs = outputs
        self.backward = backward
        self.params = params

    def __call__(self, *layers: list) -> list[list]:
        """Return the cotangents of the operands, of each layer of cotangents of the results."""
        params, operands = self.params, self.operands
        marks, outputs = Inputs.split(self.inputs, params), Outputs.split(self.outputs, params)
        seeds, stacked = [], []
        for cts in layers:
            given = Results.split(cts, params)
            pairs = zip(given.carry, self.results.carry, outputs.carry, strict=True)
            seeds += [zeros_like(y) if ct is None else ct for ct, y, a in pairs if a]
            stacked += select_marked(given.ys, outputs.ys)
        k, finals = len(seeds), len(self.finals)
        slots = BackwardInputs.split(self.backward.inputs, params, len(self.kept), k + len(stacked), finals).cts
        absent = {i for i, ct in zip(slots[k:], stacked, strict=True) if ct is None}
        graph = without(self.backward, slots, absent) if absent else self.backward
        stacked = [ct for ct in stacked if ct is not None]
        consts = select_marked(operands.consts, marks.consts) * len(layers)
        graph, sums = accumulate_outputs(graph, len(consts))
        own = BackwardInputs.split(graph.inputs, params, len(self.kept), k + len(stacked), finals)
        xs = [*own.xs, *own.kept, *own.cts[k:]]
        inputs = Inputs([*own.consts, *own.finals], own.number, [*sums, *own.cts[:k]], xs)
        new = {
            **params, "body": graph.replace(inputs=inputs.join()), **inputs.layout(), "reverse": not params["reverse"],
            "stop": "length" if params["stop"] == "length" else "count", "adjoint": True,
        }  # fmt: skip
        zeros = [zeros_like(as_value(x)) for x in consts]
        xs = [*operands.xs, *self.kept, *stacked]
        count = self.results.steps or operands.steps
        given = Operands([*operands.consts, *self.finals], count, [*zeros, *seeds], xs)
        found = bind(scan_p, *given.join(), **new)
        each = split_layers(found, Inputs.split(self.inputs, params).select(marks), len(layers))
        grads = [Inputs.split(place_marked(some, self.inputs), params) for some in each]
        return [some.at_operands([None for _ in operands.steps]).join() for some in grads]


def _count_elements(values: list) -> int:
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
    body = params["body"]
    operands, marks = Operands.split(values, params), Operands.split(batched, params)
    inputs, outputs = find_active(list(batched), params, derivative=False)
    each_stops = any(marks.steps) or (has_condition(params) and outputs[0])
    if each_stops:  # every batch element's state is its own
        own = Inputs.split(inputs, params)
        inputs = own._replace(carry=[True for _ in own.carry]).join()
        outputs = [True] * len(outputs)
    wide = Outputs.split(outputs, params)
    carry = [
        _spread(v, size) if a and not b else v
        for v, b, a in zip(operands.carry, marks.carry, wide.carry, strict=True)
    ]
    xs = [np.moveaxis(x, 0, 1) if b else x for x, b in zip(operands.xs, marks.xs, strict=True)]
    operands = operands._replace(carry=carry, xs=xs)
    dtypes = [body.types[o].dtype for o in body.outputs]

    def step(*flat: Any) -> list:
        trace = BatchTrace(size, (), "split")
        try:
            ys = body(*[tracer(x, trace, None) if b else x for x, b in zip(flat, inputs, strict=True)])
            # a batch of Python numbers is an array, whose dtype counts in promotion: the state keeps its own
            ys = [y.astype(t) if _is_of(y, trace) and y.dtype != t else y for y, t in zip(ys, dtypes, strict=True)]
            return [
                y.wrapped if _is_of(y, trace) else _spread(y, size) if b else y
                for y, b in zip(ys, outputs, strict=True)
            ]
        finally:
            trace.finish()

    if each_stops:
        return _until_all_stop(size, step, operands, params)
    new = {**params, "body": record_flat(step, first_step(operands, params).join())}
    found = Results.split(bind(_operation(params), *operands.join(), **new), params)
    carry = [y if b else _spread(y, size) for y, b in zip(found.carry, wide.carry, strict=True)]
    ys = [np.moveaxis(y, 1, 0) if b else _spread(y, size) for y, b in zip(found.ys, wide.ys, strict=True)]
    return [*carry, *ys, *[_spread(y, size) for y in found.steps]]


def _until_all_stop(size: int, step: Callable, operands: Operands, params: dict) -> list:
    """Run until the last batch element is done; one that is done keeps its state.

    Whether any goes on, and the steps that each has done, come before a state that stops by itself; where the numbers
    of steps are known, they are the last of the consts.
    """
    if has_condition(params):
        done = like(operands.carry[0], np.zeros(size, np.int64))
        wide = operands._replace(carry=[np.any(operands.carry[0]), done, *operands.carry])
    else:
        (counts,) = operands.steps
        wide = operands._replace(consts=[*operands.consts, counts], steps=[np.max(counts)])
    new = {**params, "consts": len(wide.consts), "carries": len(wide.carry), "index": True}

    def step_masked(*flat: Any) -> list:
        given = Inputs.split(flat, new)
        first, consts, old = [], given.consts, given.carry
        if has_condition(params):
            _, done, *old = old
            live = old[0]
        else:
            *consts, counts = consts
            live = np.less(given.number[0], counts)
        carry, ys = Outputs.split(step(*consts, *given.number[: params["index"]], *old, *given.xs), params)
        state = [np.where(_beside(live, y), y, o) for y, o in zip(carry, old, strict=True)]
        if has_condition(params):
            state[0] = np.logical_and(live, carry[0])
            first = [np.any(state[0]), done + live.astype(np.int64)]
        else:
            ys = [np.where(_beside(live, y), y, np.zeros_like(y)) for y in ys]
        return [*first, *state, *ys]

    new["body"] = record_flat(step_masked, first_step(wide, new).join())
    found = Results.split(bind(_operation(params), *wide.join(), **new), new)
    ys = [np.moveaxis(y, 1, 0) for y in found.ys]
    if has_condition(params):
        _, done, *carry = found.carry
        return [*carry, *ys, done]
    return [*found.carry, *ys]


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
    return while_p if has_condition(params) else scan_p
