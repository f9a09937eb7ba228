"""The operation ``cond``: one of several programs, chosen by an index, with rules for every transform.

Operands are the index (an integer or a bool) and what the branches take; ``branches`` holds one graph for each, with
equal inputs and outputs. Only the chosen one is run; under a batched index all are, and each element takes its own.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.control_flow.bodies.dependence import find_chosen
from fad.control_flow.bodies.interpreter import compute_example
from fad.control_flow.bodies.loop_layout import has_condition, place_marked, select_marked
from fad.control_flow.bodies.subgraph import (
    Body,
    BodyTrace,
    Unrecordable,
    as_recorded,
    can_record,
    example,
    freeze_operands,
    record_body,
    record_flat,
)
from fad.control_flow.derivatives.branch_pieces import as_scalar, cut_pullbacks
from fad.control_flow.derivatives.linear_map import make_pusher
from fad.control_flow.derivatives.split_pullback import find_needed, record_marked, record_uses
from fad.control_flow.record_loop import attempt
from fad.control_flow.recording.compose_views import compose_views
from fad.control_flow.recording.unread_places import refuse_unread_places
from fad.control_flow.scan import CHOOSE
from fad.core.primitives.cotangent import Masked, Masking, densify, ones_where_live
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import Equation, Graph, has_effects, type_of
from fad.core.programs.rewriter import Rewriting
from fad.core.tracing.tracer import Tracer, bind, tracer, youngest
from fad.core.tracing.values import stop, traces_of
from fad.ops.places.creation import zeros_p
from fad.transforms.arguments.check import as_value, is_inexact, kind_of, split_as_kept, was_changed, zeros_like
from fad.transforms.batching.batch_trace import BatchTrace
from fad.transforms.jvp import JVPTrace, jvp, jvp_masked
from fad.transforms.linearize import LinearTrace
from fad.transforms.push_tangents import push_body, takes_masks
from fad.transforms.reverse.slopes import find_care_of_call
from fad.transforms.reverse.steep_programs import has_steep
from fad.transforms.vjp import VJPTrace, deferring_looks, vjp


def clamp_index(index: Any, n: int) -> int:
    return min(max(int(index), 0), n - 1)


def _run(index: Any, *operands: Any, branches: tuple) -> tuple:
    return tuple(branches[clamp_index(index, len(branches))](*operands))


def _run_example(index: Any, *operands: Any, branches: tuple) -> tuple:
    """Return values of the right types: those of a branch, unless it refuses values that it may never see."""
    graph = branches[clamp_index(index, len(branches))]
    try:
        return tuple(compute_example(graph, list(operands)))
    except Exception:
        return tuple([graph.types[o].zeros() for o in graph.outputs])


def choose(index: Any, branches: Sequence[Callable], operands: tuple) -> Any:
    """Record a choice between functions; returns ``[result]``, or None where that cannot be."""
    leaves, in_tree = tree.flatten(operands)
    leaves = freeze_operands(leaves)
    if type(index) is not Tracer or not can_record([index, *leaves]):
        return None
    t = type_of(as_value(example(index)))
    if t.size != 1 or t.dtype.kind not in "biu":
        return None

    def flat(branch: Callable) -> Callable:
        def run(*given: Any) -> Any:
            own = tree.unflatten(in_tree, given)
            before = tree.leaves(own)
            result = branch(*own)
            if was_changed(own, in_tree, before, list(given)):
                raise ValueError("it puts something into a list or dictionary, which is to stay there")
            return result

        return run

    shown = [example(x) for x in leaves]
    bodies = attempt(lambda: [record_branch(flat(branch), shown) for branch in branches])
    return None if bodies is None else join_branches(index, bodies, leaves)


def record_branch(fun: Callable, examples: list) -> Body:
    """Record one branch of a choice."""
    body = record_body(fun, examples)
    refuse_unread_places(body)
    return body


def join_branches(index: Any, bodies: list[Body], leaves: list) -> Any:
    """Write the choice between recorded branches down; returns ``[result]``, or None if they give different things."""
    for body in bodies:
        compose_views(body)
    first = bodies[0]
    if any(b.out_tree != first.out_tree for b in bodies):
        return None  # branches that give different things are different paths
    if any(_out_types(b) != _out_types(first) for b in bodies) and not (_in_body(index) and _of_one_type(bodies)):
        return None
    captured = list({id(x): x for b in bodies for x in b.captured}.values())
    graphs = tuple([_widen_branch(b, captured) for b in bodies])
    index = index.reshape(()) if index.shape else index
    found = bind(cond_p, index, *captured, *leaves, branches=graphs)
    return [tree.unflatten(first.out_tree, found)]


def _in_body(x: Any) -> bool:
    """Return whether a value belongs to a body, where there are no paths."""
    return any(isinstance(trace, BodyTrace) for trace in traces_of(x))


def _of_one_type(bodies: list[Body]) -> bool:
    """Let branches return scalars where some return Python numbers of that dtype; false if they differ in more."""
    columns = zip(*[_out_types(b) for b in bodies], strict=True)
    if any(len({(t.shape, t.dtype) for t in column}) > 1 for column in columns):
        return False
    for b in bodies:
        work = Rewriting(b.graph)
        work.equations += b.graph.equations
        outputs = [as_scalar(work, v) for v in b.graph.outputs]
        b.graph = work.finish().replace(outputs=outputs)
    return True


def _out_types(body: Body) -> list:
    return [body.graph.types[o] for o in body.graph.outputs]


def _widen_branch(body: Body, captured: list) -> Graph:
    """Give a branch the values that other branches take from outside, too."""
    graph = body.graph
    work = Rewriting(graph)
    mine = dict(zip(map(id, body.captured), graph.inputs, strict=False))
    inputs = [mine[id(x)] if id(x) in mine else work.add_value(type_of(example(x))) for x in captured]
    return graph.replace(types=work.types, inputs=[*inputs, *graph.inputs[len(body.captured) :]])


# --- derivatives ---------------------------------------------------------------------------------------------------


def _differentiate(index: Any, *args: Any, branches: tuple) -> tuple:
    trace: Any = youngest([index, *args])
    rule = _reverse if isinstance(trace, VJPTrace) else _RULES.get(type(trace))
    if rule is None:
        return _run(index, *args, branches=branches)
    trace.check_alive()
    try:
        (index,), _ = split_as_kept(trace, [index], None)
        return tuple(rule(trace, index, args, branches))
    except Unrecordable as why:
        if why.trace.birth < trace.birth:
            raise
        return _run(index, *args, branches=branches)


def _some(graph: Graph, xs: Any, active: list[bool], raw: list) -> Callable:
    """Return a function of the marked inputs of a graph; it leaves the outputs as they were in `raw`."""

    def some(*given: Any) -> list:
        it = iter(given)
        raw[:] = graph(*[next(it) if a else x for a, x in zip(active, xs, strict=True)])
        return list(raw)

    return some


def _reverse(trace: VJPTrace, index: Any, args: Any, branches: tuple) -> list:
    values, parents = split_as_kept(trace, args, -1)
    active = [p >= 0 for p in parents]
    marks = find_chosen(branches, active)
    n = len(values)

    def pull(graph: Graph) -> Callable:
        def fun(*flat: Any) -> list:
            xs, cts = flat[:n], iter(flat[n:])
            found, pullback = vjp(_some(graph, xs, active, []), *[x for x, a in zip(xs, active, strict=True) if a])
            return list(pullback([next(cts) if m else zeros_like(y) for m, y in zip(marks, found, strict=True)]))

        return fun

    shown = as_recorded(branches[0], [example(v) for v in values])
    out_types = [branches[0].types[o] for o in branches[0].outputs]
    shown_cts = [np.zeros_like(t.zeros())[()] for t in select_marked(out_types, marks)]
    whole, operands = branches, trace.keep(values, parents)
    with deferring_looks() as looks:
        pullbacks = [record_flat(pull(g), [*shown, *shown_cts]) for g in branches]
    branches, pullbacks, _ = cut_pullbacks(branches, pullbacks, n)
    graphs, read = _drop_unread(pullbacks, n)
    used = _find_used(graphs)
    ys = list(bind(cond_p, index, *values, branches=branches))
    values = select_marked(trace.keep(values, parents), read)
    ys, pieces = ys[: len(marks)], ys[len(marks) :]

    def fill(cts: list) -> list:
        return [zeros_like(y) if ct is None else ct for ct, y, m in zip(cts, ys, marks, strict=True) if m]

    def pullback(cts: list) -> list:
        found = bind(cond_p, index, *values, *pieces, *fill(cts), branches=graphs)
        return place_marked([_mask_unused(c, index, u) for c, u in zip(found, used, strict=True)], active)

    def find_uses(used: list, when: Any) -> list:
        graphs = tuple([_only_pulls(record_uses, g, active, marks, [*shown, *shown_cts]) for g in whole])
        return place_marked(bind(cond_p, index, *map(stop, operands), *fill(used), branches=graphs), active)

    def pull_marked(cts: list, used: list) -> tuple[list, list]:
        cts, used = fill(cts), fill(used)
        graphs = tuple([_only_pulls(record_marked, g, active, marks, [*shown, *shown_cts, *shown_cts]) for g in whole])
        found = bind(cond_p, index, *operands, *cts, *used, branches=graphs)
        return place_marked(found[: sum(active)], active), place_marked(found[sum(active) :], active)

    care = find_care_of_call(values) if any(map(has_steep, whole)) else 0
    outs = trace.call(parents, ys, Masking(pullback, find_uses, pull_marked, care, looks.wanted))
    return [t if m else y for t, y, m in zip(outs, ys, marks, strict=True)]


def _only_pulls(record: Callable, graph: Graph, active: list[bool], marks: list[bool], shown: list) -> Graph:
    """Return what is recorded of a branch with its pullback, or with what it uses, without its own results."""
    graph = record(graph, active, marks, shown)
    outputs = graph.outputs[len(marks) :]
    return graph.replace(outputs=outputs, equations=find_needed(graph.equations, outputs))


def _find_used(pullbacks: Sequence[Graph]) -> list[list[bool]]:
    """Return for each operand which of the branches use it: the others' cotangents of it are zeros."""
    zeros = []
    for g in pullbacks:
        none = {i for i, x in g.constants.items() if not np.any(x)}
        for eq in g.equations:
            moved = [i for i in eq.ins if g.types[i].dtype.kind in "fc"] if eq.prim.moves else ()
            if eq.prim is zeros_p or (moved and none.issuperset(moved)):
                none.update(eq.outs)
        zeros.append(none)
    outputs = zip(*[g.outputs for g in pullbacks], strict=True)
    return [[o not in none for o, none in zip(outs, zeros, strict=True)] for outs in outputs]


def _mask_unused(ct: Any, index: Any, used: list[bool]) -> Any:
    """Return a cotangent that meets no infinite partial where the branch that was taken does not use the operand."""
    if all(used) or not any(used):
        return ct
    last = len(used) - 1
    at = index if index.dtype == bool else np.clip(index, 0, last)
    return Masked(ct, lambda: functools.reduce(np.logical_or, [np.equal(at, k) for k, u in enumerate(used) if u]), True)


def _drop_unread(graphs: list[Graph], n: int) -> tuple[tuple[Graph, ...], list[bool]]:
    """Leave out which of the first n inputs no pullback of a branch reads, and what only led to the branch's results.

    The results have been computed: what computing them again would raise has been raised.
    """
    if any(has_effects(eq) or not eq.outs for g in graphs for eq in g.equations):
        return tuple(graphs), [True] * n
    graphs = [_keep_needed(g) for g in graphs]
    used = [{i for eq in g.equations for i in eq.ins} | set(g.outputs) for g in graphs]
    read = [any(g.inputs[k] in u for g, u in zip(graphs, used, strict=True)) for k in range(n)]
    return tuple([g.replace(inputs=[*select_marked(g.inputs[:n], read), *g.inputs[n:]]) for g in graphs]), read


def _keep_needed(graph: Graph) -> Graph:
    """Return what the outputs of a branch's pullback need: of that for which there are zeros alone, only its shape."""
    made, equations = {o for eq in graph.equations for o in eq.outs}, []
    for eq in graph.equations:
        if eq.prim.shape_only and eq.ins[0] in made and graph.types[eq.outs[0]].shape:
            t = graph.types[eq.outs[0]]
            eq = Equation(eq.prim, (graph.inputs[-1],), {"shape": t.shape, "dtype": t.dtype}, eq.outs, eq.place)
        equations.append(eq)
    return graph.replace(equations=find_needed(equations, graph.outputs))


def _push(index: Any, values: list, tangents: list, branches: tuple) -> tuple[list, list]:
    active = [t is not None for t in tangents]
    marks = find_chosen(branches, active)
    masked = Masked in map(type, tangents) and any(map(has_steep, branches)) and takes_masks()
    n = len(values)

    def push(graph: Graph) -> Callable:
        def fun(*flat: Any) -> list:
            raw: list = []
            some = _some(graph, flat[:n], active, raw)
            ys, *layers = (jvp_masked if masked else jvp)(some, select_marked(flat[:n], active), flat[n:])
            pushed = [t for ts in layers for t in select_marked(ts, marks)]
            return [*[y if m else r for m, y, r in zip(marks, ys, raw, strict=True)], *pushed]

        return fun

    given = select_marked(tangents, active)
    given = [*map(densify, given), *(map(ones_where_live, given) if masked else [])]
    shown, some = as_recorded(branches[0], [example(v) for v in values]), select_marked(values, active)
    shown += [kind_of(example(t), example(v)) for t, v in zip(given, some * (1 + masked), strict=True)]
    graphs = tuple([record_flat(push(g), shown) for g in branches])
    found = list(bind(cond_p, index, *values, *given, branches=graphs))
    ys, pushed = found[: len(marks)], found[len(marks) :]
    if masked:
        k = sum(marks)
        pushed = [Masked(t, np.not_equal(u, 0), True) for t, u in zip(pushed[:k], pushed[k:], strict=True)]
    return ys, place_marked(pushed, marks)


def _forward(trace: JVPTrace, index: Any, args: Any, branches: tuple) -> list:
    values = [trace.lower(x) for x in args]
    tangents = [x.info if x is not v else None for x, v in zip(args, values, strict=True)]
    ys, ts = push_body(lambda: _push(index, values, tangents, branches), trace.steep)
    trace.steep = trace.steep or any(map(has_steep, branches))
    return [y if t is None or not is_inexact(y) else tracer(y, trace, t) for y, t in zip(ys, ts, strict=True)]


def _linear(trace: LinearTrace, index: Any, args: Any, branches: tuple) -> Any:
    values, parents = split_as_kept(trace, args, None)
    ys = bind(cond_p, index, *values, branches=branches)
    values = trace.keep_constants(values, parents)
    steep = trace.steep
    trace.steep = steep or any(map(has_steep, branches))
    push = lambda ts: push_body(lambda: _push(index, values, ts, branches), steep)[1]
    run = lambda xs: _run(index, *xs, branches=branches)
    return trace.attach(True, ys, parents, make_pusher(push, run, values))


# --- batches ---------------------------------------------------------------------------------------------------------


def _batch(trace: Any, batched: tuple, values: list, params: dict) -> tuple:
    size, branches = trace.size, params["branches"]
    index, *xs = values
    flags = batched[1:]

    def over(graph: Graph) -> Callable:
        def fun(*flat: Any) -> list:
            inner = BatchTrace(size, (), "split")
            try:
                ys = graph(*[tracer(x, inner, None) if b else x for x, b in zip(flat, flags, strict=True)])
                return [
                    y.wrapped if type(y) is Tracer and y.owner is inner else np.broadcast_to(y, (size, *np.shape(y)))
                    for y in ys
                ]
            finally:
                inner.finish()

        return fun

    if batched[0] and any(map(_may_not_end, branches)):
        # An element that does not take a branch may never leave its loop, so the batch is split by what is taken.
        chosen = over(branches[clamp_index(trace.concrete(tracer(index, trace, None), int), len(branches))])
        return tuple(chosen(*xs))
    if batched[0]:
        columns = list(zip(*[over(g)(*xs) for g in branches], strict=True))
        n = len(branches)
        at = np.clip(index.astype(np.int64), 0, n - 1)
        return tuple([_select(at, column) for column in columns])
    graphs = tuple([record_flat(over(g), [example(x) for x in xs]) for g in branches])
    return tuple(bind(cond_p, index, *xs, branches=graphs))


def _may_not_end(graph: Graph) -> bool:
    """Return whether a program holds a loop that stops by itself."""
    for eq in graph.equations:
        inner = [v for value in eq.params.values() for v in (value if type(value) is tuple else (value,))]
        if "stop" in eq.params and has_condition(eq.params):
            return True
        if any(type(g) is Graph and _may_not_end(g) for g in inner):
            return True
    return False


def _select(at: Any, column: tuple) -> Any:
    y = column[-1]
    at = at.reshape(at.shape + (1,) * (np.ndim(y) - 1))
    for k in range(len(column) - 2, -1, -1):
        y = np.where(np.equal(at, k), column[k], y)
    return y


cond_p = Primitive(
    "cond", _run, multi=True, batch=_batch, archetype="branch",
    differentiated=_differentiate, example=_run_example, needs_trace=True,
)  # fmt: skip
_RULES: dict[type, Callable] = {JVPTrace: _forward, LinearTrace: _linear}
CHOOSE.append(choose)
