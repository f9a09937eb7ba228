"""Cutting the derivative of a loop's body in two: what runs forward and what it keeps, and what runs backward."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from fad import tree
from fad.control_flow.bodies.loop_layout import (
    BackwardInputs,
    Inputs,
    Operands,
    Results,
    has_condition,
    place_marked,
    select_marked,
)
from fad.control_flow.bodies.subgraph import record_flat, to_number_p
from fad.control_flow.derivatives.final_reads import FinalReads
from fad.core.programs.graph import ARRAY, NUMBER, SCALAR, Equation, Graph, Type
from fad.core.programs.rewriter import Rewriting
from fad.core.tracing.values import is_zero
from fad.ops.places.creation import ones_p, zeros_p
from fad.ops.places.indexing import getitem_p
from fad.ops.ufuncs.elementwise import add as add_p
from fad.ops.ufuncs.selection import where_p
from fad.staging.may_raise import find_unread_in_body
from fad.transforms.arguments.check import zeros_like
from fad.transforms.vjp import Tape, vjp

_NEAR = 1 << 21  # bytes that a loop keeps, which stay in the cache until its backward pass
PIECES = 8  # a piece of the state is kept if it is so many times smaller: then the state need not be


class Halves(NamedTuple):
    """The body run forward, which also returns what it keeps, and the body run backward.

    `backward` takes `BackwardInputs`, and returns cotangents. Of the parts of the state whose numbers are `finals` it
    reads what the loop leaves.
    """

    forward: Graph
    backward: Graph
    kept: int
    nbytes: int
    finals: tuple[int, ...] = ()


def find_needed(equations: list[Equation], outputs: Any) -> list[Equation]:
    """Return the equations that some outputs need, in their order."""
    alive = set(outputs)
    kept = []
    for eq in reversed(equations):
        if any(o in alive for o in eq.outs):
            alive.update(eq.ins)
            kept.append(eq)
    return kept[::-1]


def record_pullback(body: Graph, active: list[bool], seeds: list[bool], examples: list) -> Graph:
    """Record a body with its pullback: inputs and cotangents of the outputs marked, to outputs and cotangents."""
    n = len(body.inputs)

    def fun(*flat: Any) -> list:
        ins, cts = flat[:n], iter(flat[n:])
        raw: list = []

        def some(*xs: Any) -> list:
            it = iter(xs)
            raw[:] = body(*[next(it) if a else x for a, x in zip(active, ins, strict=True)])
            return list(raw)

        ys, pullback = vjp(some, *[x for a, x in zip(active, ins, strict=True) if a])
        grads = pullback([next(cts) if s else zeros_like(y) for s, y in zip(seeds, ys, strict=True)])
        # an output that depends on none of the marked inputs is taken as it was: a Python number stays one
        return [*[y if s else r for s, y, r in zip(seeds, ys, raw, strict=True)], *grads]

    return record_flat(fun, examples)


def record_uses(body: Graph, active: list[bool], seeds: list[bool], examples: list) -> Graph:
    """Record a body with what it uses: inputs and marks of the outputs, to outputs and marks of the inputs.

    A mark is a number for each element, which is zero where it is not used.
    """
    return _record_with_marks(body, active, seeds, examples, lambda tape, marks: tape.find_live(marks))


def record_marked(body: Graph, active: list[bool], seeds: list[bool], examples: list) -> Graph:
    """Record a body with its pullback, of cotangents with marks of what is used: these come behind all cotangents."""

    def pull(tape: Tape, given: list) -> list:
        n = len(given) // 2
        cts, marks = tape.pull_marked(given[:n], given[n:])
        return [*cts, *marks]

    return _record_with_marks(body, active, seeds, examples, pull)


def _record_with_marks(body: Graph, active: list[bool], seeds: list[bool], examples: list, pull: Callable) -> Graph:
    n = len(body.inputs)

    def fun(*flat: Any) -> list:
        ins, given = flat[:n], iter(flat[n:])
        layers = (len(flat) - n) // max(1, sum(seeds))
        raw: list = []
        leaves, in_tree = tree.flatten(tuple(select_marked(ins, active)))

        def some(*xs: Any) -> list:
            it = iter(xs)
            raw[:] = body(*[next(it) if a else x for a, x in zip(active, ins, strict=True)])
            return list(raw)

        tape = Tape(some, in_tree, leaves, False, own=True)
        ys = tape.values()
        found = pull(tape, place_marked(given, list(seeds) * layers))
        return [*[y if s else r for s, y, r in zip(seeds, ys, raw, strict=True)], *found]

    return record_flat(fun, examples)


def _is_kept(eq: Equation, graph: Graph, near: bool, moving: set[int]) -> bool:
    """Return whether a value is kept for the backward pass; `moving` are those that depend on the state."""
    if eq.prim is getitem_p and not any(i in moving for i in eq.ins):
        return False  # it is read again where it is
    if eq.prim is getitem_p and len(eq.ins) == 1 and eq.ins[0] in moving:  # or the array would have to be kept
        return graph.types[eq.outs[0]].size * PIECES <= graph.types[eq.ins[0]].size
    index_of_slices = eq.prim is getitem_p and len(eq.ins) == 1
    numbers = all(graph.types[o].kind == NUMBER for o in eq.outs)
    cheap = not near if eq.prim.cheap == "far" else eq.prim.cheap  # and computed again
    return not (cheap or index_of_slices or numbers)


def halves(
    joint: Graph, own: Inputs, outputs: int, everything: bool, steps: int | None, finals: tuple[int, bool] | None = None
) -> Halves:
    """Cut what :func:`record_pullback` recorded in two. Its first inputs are the body's `own`, then come cotangents.

    With `everything` costly results are kept, too, and otherwise the state alone. More is costly where `steps` is
    given, and all that so many keep stays in the cache. `finals` are the number of steps and whether they run in
    reverse, if what the loop leaves may be read.
    """
    if everything and steps is not None:
        found = _halves(joint, own, outputs, lambda eq, moving: _is_kept(eq, joint, True, moving), finals)
        if found.nbytes * steps <= _NEAR:
            return found
    is_costly = lambda eq, moving: everything and _is_kept(eq, joint, False, moving)
    return _halves(joint, own, outputs, is_costly, finals if everything else None)


def _halves(joint: Graph, own: Inputs, outputs: int, is_costly: Callable, finals: tuple[int, bool] | None) -> Halves:
    joint = _with_constant_zeros(joint)
    grads = joint.outputs[outputs:]
    inputs = len(own.join())
    seeds = joint.inputs[inputs:]
    late = set(seeds)
    producer: dict[int, Equation] = {}
    state = set(own.carry)
    moving = set(state)
    for eq in joint.equations:
        if any(i in late for i in eq.ins):
            late.update(eq.outs)
        if any(i in moving for i in eq.ins):
            moving.update(eq.outs)
        producer.update(dict.fromkeys(eq.outs, eq))

    def is_kept(v: int, producer: dict[int, Equation] = producer) -> bool:
        made_early = v in producer and v not in late
        return v in state or (made_early and is_costly(producer[v], moving))

    kept, seen, chosen = _trace_back(grads, producer, is_kept)
    masked = _find_masked(kept, [eq for eq in joint.equations if id(eq) in chosen], joint, state | late)
    if masked:
        kept, seen, chosen = _trace_back(grads, producer, lambda v: v in masked or is_kept(v))
    source, left = joint, FinalReads(joint, own, *finals) if finals and kept else None
    if left is not None:
        made = left.rewrite(late, moving)
        found = _trace_back(grads, made, lambda v: v in masked or is_kept(v, made))
        if left.pays(kept, found[0], found[1]):
            source, producer, (kept, seen, chosen) = left.finish(), made, found
        else:
            left = None
    again = _read_again(kept, producer, seen)
    chosen.update([id(producer[v]) for v in again])
    kept = sorted(v for v in kept if v not in again)
    unread = [o for o in find_unread_in_body(joint, joint.outputs) if o not in late]
    forward = joint.replace(
        inputs=joint.inputs[:inputs],
        outputs=[*joint.outputs[:outputs], *kept],
        equations=find_needed(joint.equations, [*joint.outputs[:outputs], *kept, *unread]),
    )
    work = Rewriting(source)
    work.equations = [e for e in source.equations if id(e) in chosen]
    given = [_as_given(work, v) for v in kept]
    ends = left.inputs_among(seen) if left is not None else {}
    inputs = BackwardInputs(own.consts, [*ends.values()], own.number, own.xs, given, seeds).join()
    backward = work.finish().replace(inputs=inputs, outputs=list(grads))
    return Halves(forward, backward, len(kept), sum(source.types[v].nbytes for v in kept), tuple(ends))


def _trace_back(grads: list[int], producer: dict, is_kept: Callable) -> tuple[list[int], set[int], set[int]]:
    """Return the values that are kept for some cotangents, all that are met, and the equations that run backward."""
    kept: list[int] = []
    seen: set[int] = set()
    chosen: set[int] = set()
    waiting = list(dict.fromkeys(grads))
    while waiting:
        v = waiting.pop()
        if v in seen:
            continue
        seen.add(v)
        eq = producer.get(v)
        if is_kept(v):
            kept.append(v)
        elif eq is not None:
            chosen.add(id(eq))
            waiting += eq.ins
    return kept, seen, chosen


def _find_masked(kept: list[int], equations: list[Equation], graph: Graph, late: set[int]) -> set[int]:
    """Return what is kept instead of values of which the backward pass reads what a mask chooses alone.

    A slice whose length depends on a counter is a whole axis and a mask: most of it need not be looked up.
    """
    readers: dict[int, list[Equation]] = {}
    for eq in equations:
        for i in eq.ins:
            readers.setdefault(i, []).append(eq)
    found: set[int] = set()
    for v in kept:
        some = readers.get(v, ())
        if v in late or len(some) != 1 or some[0].prim is not where_p or some[0].ins[1] != v:
            continue
        (o,) = some[0].outs
        if late.isdisjoint((o, *some[0].ins)) and graph.types[o] == graph.types[v] and graph.types[v].shape:
            found.add(o)
    return found


def _read_again(kept: list[int], producer: dict[int, Equation], known: set[int]) -> set[int]:
    """Return the kept values that are read from an array that is kept, too, at places that are known anyway."""
    found: set[int] = set()
    for v in kept:
        eq = producer.get(v)
        if eq is not None and eq.prim is getitem_p and eq.ins[0] in kept and known.issuperset(eq.ins):
            found.add(v)
    return found


def _with_constant_zeros(graph: Graph) -> Graph:
    """Make constants of zeros and ones of a value's shape: the value itself need not be kept for them."""
    constants, equations = dict(graph.constants), []
    for eq in graph.equations:
        t = graph.types[eq.outs[0]] if eq.outs else None
        if not eq.prim.shape_only or t is None or t.home is not None:
            equations.append(eq)
            continue
        constants[eq.outs[0]] = _everywhere(eq.prim is ones_p, t)
    return graph.replace(constants=constants, equations=equations)


def _everywhere(value: Any, t: Type) -> Any:
    """Return a constant that is one number everywhere."""
    found = np.broadcast_to(np.asarray(value, t.dtype), t.shape)
    return found if t.kind == ARRAY else found[()]


def _as_given(work: Rewriting, v: int) -> int:
    """Return the input under which a kept value comes back: a Python number comes as a scalar."""
    if work.types[v].kind != NUMBER:
        return v
    given = work.add_value(Type((), work.types[v].dtype, SCALAR))
    work.equations.insert(0, Equation(to_number_p, (given,), {}, (v,)))
    return given


def without(backward: Graph, cts: list[int], absent: set[int]) -> Graph:
    """Let some cotangents of a backward body be zero: what is computed from them alone is zero, whatever it meets."""
    late, zero = set(cts), set(absent)
    work, types = Rewriting(backward), backward.types
    alias: dict[int, int] = {}

    def zeros(v: int) -> int:
        zero = work.add_value(types[v])
        work.constants[zero] = _everywhere(0, types[v])
        return zero

    for eq in backward.equations:
        mine = [i for i in eq.ins if i in late]
        late.update(eq.outs if mine else ())
        if mine and all(i in zero for i in mine):
            zero.update(eq.outs)
            continue
        if eq.prim is add_p and mine and any(i in zero for i in eq.ins):
            (other,) = [i for i in eq.ins if i not in zero]
            if types[other].key() == types[eq.outs[0]].key():
                alias[eq.outs[0]] = alias.get(other, other)
                continue
        ins = tuple([zeros(i) if i in zero else alias.get(i, i) for i in eq.ins])
        work.equations.append(Equation(eq.prim, ins, eq.params, eq.outs, eq.place))
    outputs = [zeros(v) if v in zero else alias.get(v, v) for v in backward.outputs]
    inputs = [i for i in backward.inputs if i not in absent]
    return work.finish().replace(inputs=inputs, outputs=outputs)


def accumulate_outputs(backward: Graph, grads: int) -> tuple[Graph, list[int]]:
    """Let the first `grads` outputs of a graph be added to further inputs; return the graph and those inputs."""
    work = _Accumulation(backward)
    inputs, outputs = [], []
    for v in backward.outputs[:grads]:
        inputs.append(work.add_value(backward.types[v]))
        outputs.append(work.add(inputs[-1], v))
    outputs += backward.outputs[grads:]
    needed = find_needed(work.equations, outputs)
    work.equations = _in_order(needed) if work.moved else needed
    return work.finish().replace(outputs=outputs), inputs


def _in_order(equations: list[Equation]) -> list[Equation]:
    """Return equations so that each stands behind those whose results it reads, and otherwise in their order."""
    made = {o: eq for eq in equations for o in eq.outs}
    done: set[int] = set()
    ordered: list[Equation] = []
    for first in equations:
        waiting = [first]
        while waiting:
            eq = waiting[-1]
            before = [made[i] for i in eq.ins if i in made and id(made[i]) not in done]
            if before:
                waiting += before
                continue
            waiting.pop()
            if id(eq) not in done:
                done.add(id(eq))
                ordered.append(eq)
    return ordered


class _Accumulation(Rewriting):
    """Adds values of a graph to sums: what is added at an index goes into the sum at once, not into zeros first."""

    def __init__(self, graph: Graph):
        super().__init__(graph)
        self.equations = list(graph.equations)
        self.made = {o: eq for eq in graph.equations for o in eq.outs}
        self.uses = Counter(i for eq in graph.equations for i in eq.ins)
        self.uses.update(graph.outputs)
        self.moved = False  # whether an equation stands where its operands are not known yet

    def add(self, total: int, v: int) -> int:
        """Return the sum of a total and value v."""
        updates: list[Equation] = []
        w = v
        while self.is_own(w) and self.made[w].prim.adds and self.types[w] == self.types[total]:
            updates.append(self.made[w])
            w = updates[-1].ins[0]
        if not self.is_zero(w):
            total = self.through_loop(total, w) or self.apply(add_p, (total, w), {}, self.types[total])
        for eq in reversed(updates):
            total = self.apply(eq.prim, (total, *eq.ins[1:]), eq.params, self.types[total])
        return total

    def through_loop(self, total: int, v: int) -> int | None:
        """Let a loop that adds up v from zeros begin with the total; None if v is no such sum."""
        eq = self.made[v] if self.is_own(v) else None
        results = Results.split(eq.outs, eq.params) if eq is not None and _is_loop(eq) else None
        if eq is None or results is None or v not in results.carry:
            return None
        k = results.carry.index(v)
        operands = Operands.split(eq.ins, eq.params)
        if not self.is_zero(operands.carry[k]) or self.types[total] != self.types[v] or not _only_adds(eq.params, k):
            return None
        operands.carry[k], results.carry[k] = total, self.add_value(self.types[total])
        longer = Equation(eq.prim, tuple(operands.join()), eq.params, tuple(results.join()), eq.place)
        self.equations[self.equations.index(eq)] = longer
        self.made.update(dict.fromkeys(longer.outs, longer))
        self.moved = True
        return results.carry[k]

    def is_own(self, v: int) -> bool:
        return v in self.made and self.uses[v] == 1

    def is_zero(self, v: int) -> bool:
        c = self.graph.constants.get(v)
        return (v in self.made and self.made[v].prim is zeros_p) or (c is not None and is_zero(c))


def _is_loop(eq: Equation) -> bool:
    """Return whether an operation is a loop, and not the pullback of one, whose results are others."""
    return eq.prim.archetype == "loop" and "cut" not in eq.params


def _only_adds(params: dict, k: int) -> bool:
    """Return whether a loop does nothing with its k-th state but add to it."""
    body = params["body"]
    if has_condition(params) and k == 0:
        return False
    start = Inputs.split(body.inputs, params).carry[k]
    made = {o: eq for eq in body.equations for o in eq.outs}
    uses = Counter(i for eq in body.equations for i in eq.ins)
    uses.update(body.outputs)

    def leads(v: int) -> bool:
        if v == start:
            return True
        eq = made.get(v)
        if eq is None or uses[v] != 1 or body.types[v] != body.types[start]:
            return False
        if eq.prim.adds:
            return leads(eq.ins[0])
        if eq.prim is add_p:
            return leads(eq.ins[0]) or leads(eq.ins[1])
        carry = Results.split(eq.outs, eq.params).carry if _is_loop(eq) else []
        if v not in carry:
            return False
        inner = carry.index(v)
        return _only_adds(eq.params, inner) and leads(Operands.split(eq.ins, eq.params).carry[inner])

    return uses[start] == 1 and leads(body.outputs[k])
