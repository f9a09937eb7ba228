"""From a loop written as functions to an operation of the program that is being recorded.

Each function here returns None where that cannot be: no program is being recorded, or the body's control flow depends
on values. The caller then runs the loop step by step.
"""

from __future__ import annotations

import functools
import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import config, tree
from fad.backends import is_on_device
from fad.control_flow.bodies.intervals import assume, fits, most_steps
from fad.control_flow.bodies.loop_layout import Inputs, Operands, Outputs, Results, select_marked
from fad.control_flow.bodies.subgraph import (
    Body,
    BodyTrace,
    Unrecordable,
    can_record,
    example,
    freeze_operands,
    record_body,
    to_number_p,
)
from fad.control_flow.derivatives.split_pullback import find_needed
from fad.control_flow.lengths import traced_slices  # noqa: F401  answers slices with bounds of a body
from fad.control_flow.recording.compose_views import compose_views, reshape_carries
from fad.control_flow.recording.independent_steps import run_at_once
from fad.control_flow.recording.kinds_of_numbers import same_but_kinds
from fad.control_flow.recording.unread_places import refuse_unread_places
from fad.control_flow.recording.untouched_rows import read_from_the_start
from fad.control_flow.scan import scan_p, while_p
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import ARRAY, NUMBER, SCALAR, Equation, Graph, Type, place_constant, type_of
from fad.core.programs.rewriter import Rewriting
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.views import finding_writes
from fad.errors import LoopFallbackWarning
from fad.ops.places.indexing import getitem_p
from fad.staging.may_raise import find_unread_in_body
from fad.staging.mixed_types import note_mixed
from fad.staging.record import is_recording
from fad.transforms.arguments.check import as_value, separate
from fad.transforms.arguments.undo_writes import outside

_MANY = 1000  # steps that are long to record one by one
_PEELED = 2  # first steps that may be written out, until the state keeps its type
_ROUNDS = 3  # a number of the state that becomes a scalar may make another one a scalar


class BecomesNumber(TypeError):
    """A state is an array, or a scalar of NumPy's, before a step, and a number of Python's behind it."""


def attempt(record: Callable, steps: int = 0, failed: Callable | None = None) -> Any:
    """Return what ``record()`` gives, or None if something in it cannot be recorded; warn if that makes many steps.

    With `failed`, a function of the error, that is called instead of a warning.
    """
    mark = Trace().birth
    try:
        return record()
    except Unrecordable as why:
        if why.trace.birth < mark:
            raise
        if failed is not None:
            failed(why)
        elif steps >= _MANY:
            warnings.warn(
                f"a loop of {steps} steps is recorded step by step, because {why} (at {why.line}). "
                "Use np.where or fad.cond for an if on them, and pass arrays that are indexed as arguments",
                LoopFallbackWarning,
                stacklevel=2,
            )
        return None
    except Exception as error:
        # The step may fail on values that it would never see, or fail in any case: the plain loop will tell.
        if failed is not None:
            failed(error)
        return None


def scan(
    step: Callable,
    init: Any,
    xs: Any,
    n: Any,
    reverse: bool,
    save: str,
    index: bool,
    bound: int | None = None,
    peeled: int = _PEELED,
    failed: Callable | None = None,
    accept: Callable | None = None,
    at_once: bool = False,
) -> tuple | None:
    """Record a loop over xs, or of n steps, whose function is ``step(carry, x or number) -> (carry, y)``.

    `bound` is the most that a traced n can be, if that is known; `peeled` how many first steps may be written out.
    ``accept(operands, params)`` may still refuse. With `at_once`, independent steps need not be a loop.
    """
    if not is_recording():
        return None
    leaves, in_tree = tree.flatten(init)
    items, xs_tree = tree.flatten(xs)
    leaves, items = freeze_operands(leaves), freeze_operands(items)
    dynamic = type(n) is Tracer
    if not can_record([*leaves, *items]) or (not dynamic and n < 2):
        return None

    def flat(*given: Any) -> Any:
        _, number, carry, x = Inputs.split(given, {"consts": 0, "carries": len(leaves), "index": index})
        at = number[0] if number else None
        assume(at, 0, n)
        return step(tree.unflatten(in_tree, carry), tree.unflatten(xs_tree, x) if items else at)

    return _scan(flat, leaves, in_tree, items, n, reverse, save, index, bound, peeled, failed, accept, at_once)


def _scan(flat, leaves, in_tree, items, n, reverse, save, index, bound, most, failed, accept, at_once) -> tuple | None:
    heads: list = []
    dynamic = type(n) is Tracer
    for peeled in range(most + 1):
        at = n - 1 - peeled if reverse and not dynamic else peeled
        left = n if dynamic else n - peeled
        number = [at] if index else []
        shown = Inputs([], number, [*map(example, leaves)], [example(x)[at] for x in items])
        settle = functools.partial(_settle_types, flat, leaves, shown, not dynamic)
        recorded = attempt(settle, 0 if dynamic else n, failed)
        if recorded is None:
            return None
        if recorded:
            body, leaves = recorded
            compose_views(body, rows=index)
            break
        if dynamic or left < 2 or peeled == most:
            return None
        carry, y = flat(*number, *leaves, *[x[at] for x in items])
        heads.append(y)
        leaves = tree.leaves(carry)
    if index and not dynamic and not heads:
        items += _rows(body, len(leaves), n)
    inputs = _inputs(body, len(leaves), index)
    inputs = inputs._replace(number=[i for i in inputs.number if _is_read(i, body.graph)])
    if heads:
        n -= len(heads)
        items = [x[:n] if reverse else x[len(heads) :] for x in items]
        if inputs.number and not reverse:
            return None  # numbers start at zero
    params = {
        "body": body.graph.replace(inputs=inputs.join()), **inputs.layout(),
        "length": _most_steps(n) if bound is None else bound if dynamic else n,
        "reverse": reverse, "stop": "count" if dynamic else "length", "save": save,
    }  # fmt: skip
    operands = Operands(body.captured, [n] if dynamic else [], leaves, items)
    if accept is not None and not accept(operands.join(), params):
        return None

    def run() -> list:
        read = read_from_the_start(operands, params) if at_once else (operands, params)
        found = run_at_once(*read) if at_once else None
        return _bind(scan_p, *read) if found is None else found

    found = _run_bound(run, operands, failed)
    if found is None:
        return None
    carry, y = tree.unflatten(body.out_tree, found)
    return tree.unflatten(in_tree, tree.leaves(carry)), _with_heads(heads, y, reverse)


def _most_steps(n: Any) -> int | None:
    """Return how many steps a loop has, or at most: within a body, where no run can be asked for the number."""
    if type(n) is not Tracer:
        return n
    return most_steps(n) if isinstance(n.owner, BodyTrace) else None


def _run_bound(run: Callable, operands: Operands, failed: Callable | None) -> list | None:
    """Return what a loop gives; None where it raises and nothing in it is traced: the plain loop has its own error."""
    return run() if Tracer in map(type, operands.join()) else attempt(run, failed=failed)


def _bind(prim: Primitive, operands: Operands, params: dict) -> list:
    """Run a loop as an operation, with its state in the shapes in which the steps have it."""
    graph, shapes = reshape_carries(params["body"], params)
    if not shapes:
        return _bind_moving(prim, operands, params)
    carry = [np.reshape(x, shapes[k]) if k in shapes else x for k, x in enumerate(operands.carry)]
    found = _bind_moving(prim, operands._replace(carry=carry), {**params, "body": graph})
    return [np.reshape(y, np.shape(operands.carry[k])) if k in shapes else y for k, y in enumerate(found)]


def _bind_moving(prim: Primitive, operands: Operands, params: dict) -> list:
    """Run a loop as an operation; numbers of its state that no step changes are loop-invariant."""
    graph, first = params["body"], operands.carry
    inputs, outputs = Inputs.split(graph.inputs, params), Outputs.split(graph.outputs, params)
    ends = zip(inputs.carry, outputs.carry, strict=True)
    fixed = [i == o and graph.types[i].kind != ARRAY for i, o in ends]
    fixed[:1] = [False] if prim is while_p else fixed[:1]  # a while loop's first is whether it goes on
    if not any(fixed):
        return list(bind(prim, *operands.join(), **params))
    moving = [not mark for mark in fixed]
    inputs, operands = (_fix_carries(some, fixed, moving) for some in (inputs, operands))
    outputs = outputs._replace(carry=select_marked(outputs.carry, moving))
    graph = graph.replace(inputs=inputs.join(), outputs=outputs.join())
    found = iter(bind(prim, *operands.join(), **{**params, "body": graph, **inputs.layout()}))
    return [*[x if mark else next(found) for x, mark in zip(first, fixed, strict=True)], *found]


def _fix_carries(values: Any, fixed: list[bool], moving: list[bool]) -> Any:
    """Let a part of the carry be loop-invariant."""
    consts = [*values.consts, *select_marked(values.carry, fixed)]
    return values._replace(consts=consts, carry=select_marked(values.carry, moving))


def _with_heads(heads: list, y: Any, reverse: bool) -> Any:
    """Put the results of the steps that were written out beside the stacked ones."""
    if not heads or not tree.leaves(y):
        return y
    first = tree.map(lambda *column: np.stack(column[::-1] if reverse else column), *heads)
    return tree.map(lambda a, b: np.concatenate([b, a] if reverse else [a, b]), first, y)


def _inputs(body: Body, carries: int, index: bool) -> Inputs:
    """Return the inputs of a loop's body that was recorded; what it captured is loop-invariant."""
    return Inputs.split(body.graph.inputs, {"consts": len(body.captured), "carries": carries, "index": index})


def _is_read(i: int, graph: Graph) -> bool:
    return i in graph.outputs or any(i in eq.ins for eq in graph.equations)


def _rows(body: Body, carries: int, n: int) -> list:
    """Let the rows that a body takes from arrays by the number of its step be its xs; return those arrays."""
    graph, inputs = body.graph, _inputs(body, carries, True)
    captured = dict(zip(inputs.consts, body.captured, strict=True))
    number = dict.fromkeys(inputs.number, 0)  # value -> what it is more than the number of the step
    rows: dict[tuple, int] = {}  # of arrays from which rows are taken: the input that a row is
    work, types, items = Rewriting(graph), graph.types, []
    for eq in graph.equations:
        if eq.prim.symbol == "+" and eq.prim.array_form is not None:
            for i, j in (eq.ins, eq.ins[::-1]):
                if i in number and type(graph.constants.get(j)) is int:
                    number[eq.outs[0]] = number[i] + graph.constants[j]
        template = eq.params.get("template", ())
        found = eq.prim is getitem_p and len(eq.ins) > 1 and eq.ins[0] in captured and eq.ins[1] in number
        if found and template[0] == "array" and not any(type(part) is str for part in template[1:]):
            x, start = captured[eq.ins[0]], number[eq.ins[1]]
            size = np.shape(x)[0]
            if start >= 0 and start + n <= size:
                items.append(x if n == size else x[start : start + n])
                if len(template) == 1:
                    inputs.xs.append(eq.outs[0])
                    rows.setdefault((eq.ins[0], start), eq.outs[0])
                    continue
                shape = types[eq.ins[0]].shape[1:]
                row = work.add_value(Type(shape, types[eq.ins[0]].dtype, ARRAY if shape else SCALAR))
                inputs.xs.append(row)
                rows.setdefault((eq.ins[0], start), row)
                eq = Equation(eq.prim, (row,), {"template": template[1:]}, eq.outs, eq.place)
        work.equations.append(eq)
    work.equations = [_of_row(eq, rows, number) for eq in work.equations]
    if items:
        read = work.finish()
        equations = find_needed(read.equations, [*graph.outputs, *find_unread_in_body(read, graph.outputs)])
        used = {*graph.outputs, *(i for eq in equations for i in eq.ins)}
        kept = [i in used for i in inputs.consts]
        body.captured = select_marked(body.captured, kept)
        inputs = inputs._replace(consts=select_marked(inputs.consts, kept))
        body.graph = read.replace(inputs=inputs.join(), equations=equations)
    return items


def _of_row(eq: Equation, rows: dict[tuple, int], number: dict[int, int]) -> Equation:
    """Let an element that stands in a row which a body takes be read from that row."""
    template = eq.params.get("template", ())
    if eq.prim is not getitem_p or len(eq.ins) < 3 or eq.ins[1] not in number or template[0] != "array":
        return eq
    row = rows.get((eq.ins[0], number[eq.ins[1]]))
    return eq if row is None else Equation(eq.prim, (row, *eq.ins[2:]), {"template": template[1:]}, eq.outs, eq.place)


def _settle_types(flat: Callable, leaves: list, shown: Inputs, steps: bool) -> tuple:
    """Record a step whose state keeps its types; return it and the first state, which may be of another kind now.

    `steps` says whether there is any for certain: otherwise that state may be what the loop leaves.

    Returns nothing, ``()``, if the state does not keep its types in this step.

    A Python number as the first state becomes a scalar of the dtype that the step gives it, if that changes nothing
    in the step but the kinds of values.
    """
    body = record_body(flat, shown.join())
    refuse_unread_places(body)
    given, found = _carry_types(body, shown)
    if given == found:
        return body, leaves
    if any((a.shape, a.dtype) != (b.shape, b.dtype) and a.kind != NUMBER for a, b in zip(given, found, strict=True)):
        return ()
    late = False  # whether some of it becomes what it will be in a later step than the first
    for k in range(_ROUNDS):
        moved = _follow_moves(body, shown, found)
        late = late or k > 0 or moved != found
        shown = shown._replace(carry=[_of_type(x, t) for x, t in zip(shown.carry, moved, strict=True)])
        other = record_body(flat, shown.join())
        given, found = _carry_types(other, shown)
        if given == found:
            break
    if given != found or not same_but_kinds(body.graph, other.graph):
        return ()
    if any(type_of(example(x)) != t and not fits(x, t.dtype) for x, t in zip(leaves, found, strict=True)):
        return ()
    if not steps or late:
        if config.loops.get() == "record":  # as where the program has told the types apart
            return ()
        note_mixed()
    leaves = [x if type_of(example(x)) == t else _convert(x, t) for x, t in zip(leaves, found, strict=True)]
    return other, leaves


def _carry_types(body: Body, shown: Inputs) -> tuple[list, list]:
    """Return the types of a body's carry, before a step and after it."""
    layout, types = {**shown.layout(), "consts": len(body.captured)}, body.graph.types
    carry, ends = Inputs.split(body.graph.inputs, layout).carry, Outputs.split(body.graph.outputs, layout).carry
    return [types[i] for i in carry], [types[o] for o in ends]


def _follow_moves(body: Body, shown: Inputs, found: list) -> list:
    """Return the types of a state behind a step, those of numbers that it hands on being what they come to be.

    In a list that is moved by a place in each step, each number of Python's becomes a scalar once the first one has.
    """
    layout = {**shown.layout(), "consts": len(body.captured)}
    carry = Inputs.split(body.graph.inputs, layout).carry
    places = {i: k for k, i in enumerate(carry)}
    source = [places.get(o) for o in Outputs.split(body.graph.outputs, layout).carry]
    found = list(found)
    for _ in found:
        before = list(found)
        for k, j in enumerate(source):
            if j is not None and found[k].kind == NUMBER and found[k].dtype == found[j].dtype:
                found[k] = found[j]
        if found == before:
            break
    return found


def _of_type(x: Any, t: Type) -> Any:
    if is_on_device(x):
        return x.astype(t.dtype)
    y = np.asarray(x, t.dtype)
    return place_constant(y, t) if t.kind == "array" else y.item() if t.kind == NUMBER else y[()]


def _convert(x: Any, t: Type) -> Any:
    if t.kind == NUMBER:
        raise BecomesNumber("a state that was an array becomes a Python number")
    if type(x) is not Tracer:
        return _of_type(x, t)
    x = as_value(x)
    return x if x.dtype == t.dtype else x.astype(t.dtype)


# --- loops that stop by themselves ---------------------------------------------------------------------------------


def while_loop(
    cond: Callable,
    step: Callable,
    init: Any,
    bound: int | None = None,
    failed: Callable | None = None,
    accept: Callable | None = None,
) -> Any:
    """Record a loop that runs while ``cond(state)`` holds; returns a list of the state, or None.

    `bound` is the most steps that it can take, if that is known; ``accept(operands, params)`` may still refuse.
    """
    if not is_recording():
        return None
    leaves, in_tree = tree.flatten(init)
    leaves = freeze_operands(leaves)
    if not can_record(leaves):
        return None

    def go(state: Any) -> Any:
        found = cond(state)
        if type(found) is not Tracer:
            return bool(found)
        if found.dtype != bool:
            found = np.not_equal(found, 0)
        return found.reshape(()) if found.shape else found

    def flat(*given: Any) -> Any:
        state = step(tree.unflatten(in_tree, given))
        return state, go(state)

    return _while(cond, go, flat, leaves, in_tree, bound, failed, accept)


def _while(cond, go, flat, leaves, in_tree, bound, failed, accept) -> Any:
    arrays = outside(cond)
    with finding_writes(undoable=True) as written:
        start = go(tree.unflatten(in_tree, leaves))
    if type(start) is not Tracer and not start:
        return [tree.unflatten(in_tree, separate(leaves, leaves))]
    shown = Inputs([], [], [*map(example, leaves)], [])
    sure = type(start) is not Tracer
    recorded = attempt(lambda: _settle_types(flat, leaves, shown, sure), failed=failed)
    if not recorded:
        written.undo()  # the caller asks once more
        arrays.undo()
        return None
    body, leaves = recorded
    compose_views(body)
    graph = body.graph
    if len(graph.outputs) != len(leaves) + 1:
        return None  # a step gives a state of another structure
    # whether to go on is the first of the state; a step does not read it
    types = [*graph.types, Type((), np.dtype(bool), SCALAR)]
    inputs = _inputs(body, len(leaves), False)
    inputs = inputs._replace(carry=[len(graph.types), *inputs.carry])
    *state, goes_on = graph.outputs
    graph = graph.replace(types=types, inputs=inputs.join(), outputs=[goes_on, *state])
    params = {
        "body": graph, **inputs.layout(), "length": bound, "reverse": False, "stop": "cond", "save": "none",
    }  # fmt: skip
    operands = Operands(body.captured, [], [as_value(start), *leaves], [])
    if accept is not None and not accept(operands.join(), params):
        return None
    found = _run_bound(lambda: _bind(while_p, operands, params), operands, failed)
    if found is None:
        return None
    _, *last = Results.split(found, params).carry
    return [tree.unflatten(in_tree, last)]


def steps_between(lower: Any, upper: Any) -> tuple[Any, Any] | None:
    """Return the number of steps of a loop from lower to upper and where it starts, if they are traced integers.

    None where the bounds are plain, or where each number of steps is better a recording of its own.
    """
    if not (type(lower) is Tracer or type(upper) is Tracer) or not can_record([lower, upper]):
        return None
    start = bind(to_number_p, lower) if type(lower) is Tracer else operator.index(lower)
    if any(np.shape(example(x)) or as_value(example(x)).dtype.kind not in "iu" for x in (lower, upper)):
        return None
    count = np.maximum(as_value(upper - start), 0)
    return count, start
