"""Bodies: what a loop repeats, or a branch does, recorded as a graph of its own.

The trace of a body is younger than those around it, so it sees every operation on its values, and a value from
outside that the body uses becomes a further input. The values in it are those of a first step: they stand for
all others, so nothing may depend on them. A question (``if``, ``int``) about one raises `Unrecordable`, and the loop is
unrolled, with guards.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.backends import is_numpy_array, is_on_device, made_like
from fad.control_flow.bodies.axis_positions import is_places
from fad.core.handles.buffers import PLAIN, PlainTrace
from fad.core.primitives.limits import LimitTrace
from fad.core.primitives.primitive import Primitive
from fad.core.programs.graph import NUMBER, Equation, Graph
from fad.core.programs.rewriter import Rewriting, rename
from fad.core.runs import effects
from fad.core.tracing.ended_runs import end_run, run_to_end
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, tracer, up_to_date
from fad.core.tracing.values import traces_of
from fad.core.tracing.views import RUNS, finding_writes, root_of, snapshot, unwrap
from fad.core.tracing.weak import number
from fad.introspect.frames import user_line
from fad.ops.layout.index_layout import ARRAY
from fad.staging.may_raise import stand_in
from fad.staging.python_numbers import to_number_p  # noqa: F401  (what loops know it by)
from fad.staging.record import _output, is_recording, recording_by
from fad.staging.record_trace import RecordTrace, is_traceable
from fad.transforms.arguments.check import as_value
from fad.transforms.arguments.mutation import equal
from fad.transforms.arguments.undo_writes import outside
from fad.transforms.batching.batch_trace import BatchTrace
from fad.transforms.custom_rules import RULES, Call, run_batch
from fad.transforms.jvp import JVPTrace
from fad.transforms.linearize import LinearTrace
from fad.transforms.vjp import VJPTrace

_BATCHED = (BatchTrace, LimitTrace)


class Unrecordable(BaseException):
    """A body asks what only its real values can answer. Not an Exception: user code may catch those."""

    def __init__(self, trace: Trace, why: str):
        super().__init__(why)
        self.trace = trace
        self.line = user_line()


class BodyTrace(RecordTrace):
    """The trace of recording a body; values of older traces are its captured inputs."""

    __slots__ = ("captured", "order", "discarded", "_numbers", "_examples")
    answers = False
    kind = "the body of a loop or branch"
    of_examples = True

    def __init__(self) -> None:
        super().__init__()
        Trace.__init__(self)  # the youngest, and not the oldest
        self.order = RUNS.orders  # the transforms that are under way differentiate what is recorded here
        self.captured: list = []  # (value from outside, its number here)
        self.discarded: set[int] = set()  # what an attempt has computed that was given up
        self._numbers: dict[int, int] = {}
        self._examples: dict[int, Any] = {}

    def number_of_outer(self, x: Any) -> int:
        number = self._numbers.get(id(x))
        if number is None:
            value = example(x)
            number = self._numbers[id(x)] = self.new(value).info
            self._examples[number] = value
            self.captured.append((x, number))
        return number

    def example(self, number: int) -> Any:
        return self._examples[number]

    def lift(self, x: Tracer) -> Tracer:
        """Return a value from outside as one of this body, so that what is computed from it is computed here."""
        number = self.number_of_outer(x)
        value = self._examples[number]
        return tracer(np.asarray(value)[()] if number in self.weak else value, self, number)

    def constant(self, x: Any) -> int:
        if is_places(x):
            number = self.seen.get(("id", id(x)))
            return self._constant(("id", id(x)), x) if number is None else number
        # Arrays are inputs, too: a recording around this body watches them for changes.
        if type(x) is np.ndarray and id(x) not in self._numbers:
            copy = self.snapshots.take(x)
            self.sources.setdefault(id(copy), [x, copy])
            return self.number_of_outer(copy)
        return self.number_of_outer(x) if is_numpy_array(x) or is_on_device(x) else super().constant(x)

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if ARRAY in params.get("template", ()):
            args = tuple([self._keep_mask(x) if _is_plain_mask(x) else x for x in args])
        return super().process(prim, args, params)

    def _keep_mask(self, mask: np.ndarray) -> Tracer:
        """Return a mask of an index as a constant of the body: how many elements it selects says what shapes are.

        As an input it would be unknown in what is recorded of the body later, its derivative or a batch of it. It is
        captured all the same, for those who watch it.
        """
        self.constant(mask)
        copy = self.snapshots.take(mask)
        key = ("id", id(copy))
        number = self.seen[key] if key in self.seen else self._constant(key, copy)
        return tracer(copy, self, number)

    def discard(self, equations: list[Equation]) -> None:
        """Note operations of an attempt that was given up: of these the body has what is read elsewhere alone."""
        self.discarded.update(o for eq in equations for o in eq.outs)

    def equations_for(self, outputs: list[int]) -> list[Equation]:
        """Return the operations of the body without those of attempts that were given up."""
        if not self.discarded:
            return self.equations
        alive, kept = set(outputs), []
        for eq in reversed(self.equations):
            if not eq.outs or not self.discarded.issuperset(eq.outs) or not alive.isdisjoint(eq.outs):
                alive.update(eq.ins)
                kept.append(eq)
        return kept[::-1]

    def from_outside(self) -> list:
        """Return the captured values: arrays themselves, not their copies, so that those around can watch them.

        A view may have been taken again in a body within this one, for which its array stood for another value.
        """
        found = []
        for x, _ in self.captured:
            if type(x) is Tracer:
                up_to_date(x)
            source, copy = self.sources.get(id(x), (x, x))
            if source is not copy and not equal(source, copy):
                raise Unrecordable(self, "its steps write into an array")
            found.append(source)
        return found

    def compute(self, prim: Any, values: list, params: dict) -> Any:
        return (prim.example or prim.forward)(*values, **params)

    def give_up(self, prim: Any, values: list, params: dict, error: Exception) -> Any:
        y = stand_in(prim, values, params)
        if y is None:
            why = f"its operation {prim.name} raises for values that it may never see: {error}"
            end_run(self, Unrecordable(self, why))
        return y

    def guard(self, x: Tracer, convert: Callable | None, outcome: Any) -> Any:
        self.check_alive()
        end_run(self, Unrecordable(self, "its control flow depends on values that differ from step to step"))

    def outcome(self, x: Tracer) -> Any:
        return self.guard(x, None, None)

    def concrete(self, x: Tracer, convert: Callable) -> Any:
        return self.guard(x, convert, None)

    number = concrete

    def any_of(self, x: Tracer) -> bool:
        return False  # the values of a first step say nothing about the others

    def give_back(self, x: Tracer) -> None:
        """Leave an array from outside that a body wrote into without telling dead: its use is an error."""

    def stop(self, x: Tracer) -> Any:
        return self.process(stopped_p, (x,), {})


# A value without its derivative: written down, because the transforms around a body see the body's graph only.
stopped_p: Primitive = Primitive(
    "stop_gradient", lambda x: x, flat=True, lower="({0})", batch=lambda size, batched, xs, params: stopped_p(xs[0]),
    archetype="elementwise", cheap=True,
)  # fmt: skip


def example(x: Any) -> Any:
    """Return a plain value of the shape, dtype and kind of a value from outside; of a batched one, of one element."""
    if type(x) is not Tracer:
        return number(x)
    trace = x.owner
    trace.check_alive()
    if isinstance(trace, RecordTrace):
        return trace.weak.get(x.info, x.wrapped)
    value = example(x.wrapped)
    if isinstance(trace, _BATCHED):
        return value[0] if len(value) else made_like(np.zeros_like, value, value.shape[1:])[()]
    return value


def as_recorded(graph: Graph, examples: list) -> list:
    """Return examples of the inputs of a body, Python numbers where it was recorded with such.

    A rule of a derivative may have made a scalar of one. With that an array in single precision would become double.
    """
    kinds = [graph.types[i].kind for i in graph.inputs]
    return [x.item() if k == NUMBER and isinstance(x, np.generic) else x for k, x in zip(kinds, examples, strict=True)]


def is_weak(x: Any) -> bool:
    """Return whether a value stands for a Python number, whose dtype does not count in promotion."""
    return type(x) is Tracer and isinstance(x.owner, RecordTrace) and x.info in x.owner.weak


def freeze_operands(leaves: list) -> list:
    """Return operands of a loop or branch, those that are arrays made by the running function as they are now."""
    return [PLAIN.freeze(x) if type(x) is Tracer and up_to_date(x).owner is PLAIN else x for x in leaves]


def can_record(leaves: list) -> bool:
    """Return whether a loop over these values is to become an operation: a program is being recorded."""
    return is_recording() and all(map(_is_known, leaves))


def _is_known(x: Any) -> bool:
    known = (RecordTrace, VJPTrace, JVPTrace, LinearTrace, PlainTrace, *_BATCHED)
    return all(isinstance(trace, known) for trace in traces_of(x)) and is_traceable(unwrap(x))


class Body:
    """A recorded body: its graph (captured values are its first inputs), what it captured, its output's structure."""

    __slots__ = ("graph", "captured", "out_tree", "trace")

    def __init__(self, graph: Graph, captured: list, out_tree: Any, trace: BodyTrace):
        self.graph = graph
        self.captured = captured
        self.out_tree = out_tree
        self.trace = trace  # it knows the bounds of the integers of the graph


def _is_plain_mask(x: Any) -> bool:
    return type(x) is np.ndarray and x.dtype == bool and x.ndim > 0


def record_body(fun: Callable, examples: list) -> Body:
    """Record ``fun(*leaves) -> tree``, given one plain value for each leaf.

    Raises Unrecordable if the body's program depends on values, or if it writes to state outside.
    """
    trace = BodyTrace()
    arrays, written = outside(fun), finding_writes(undoable=True)
    with np.errstate(all="ignore"), recording_by(trace):
        try:
            given = [trace.new(x) for x in examples]
            numbers = [x.info for x in given]  # the body may write into its arguments
            with effects.recording(undo=True) as log, written:
                outs, out_tree = tree.flatten(run_to_end(trace, lambda: fun(*given)))
                if written.written:
                    outs = _let_go(outs, given)
            if log.restore():
                raise Unrecordable(trace, "its steps change state outside of it")
            if written.undo(given) | arrays.undo():
                raise Unrecordable(trace, "its steps write into an array outside of it: carry the array")
            if not all(type(y) is Tracer or is_traceable(y) for y in outs):
                raise Unrecordable(trace, "it returns what is no array")
            outputs = [_output(trace, y) for y in outs]
            captured = trace.from_outside()
        except BaseException:
            written.undo()
            arrays.undo()
            raise
        finally:
            trace.finish()
    inputs = [*[n for _, n in trace.captured], *numbers]
    graph = Graph(trace.types, inputs, trace.constants, trace.equations_for(outputs), outputs)
    return Body(graph, captured, out_tree, trace)


def _let_go(outs: list, given: list) -> list:
    """Return results as new handles, but for the arrays given: a written array that lives on is somebody else's."""
    own = {id(x) for x in given}
    return [snapshot(y) if type(y) is Tracer and id(root_of(y)) not in own else y for y in outs]


def record_flat(fun: Callable, examples: list) -> Graph:
    """Record a function of flat leaves that captures nothing but arrays it makes itself; those become constants."""
    body = record_body(fun, examples)
    n = len(body.captured)
    if any(type(x) is Tracer for x in body.captured):
        raise AssertionError("a derived body captured a traced value")
    graph = body.graph
    constants = {**graph.constants, **dict(zip(graph.inputs[:n], body.captured, strict=True))}
    return graph.replace(inputs=graph.inputs[n:], constants=constants)


# --- custom rules within a body ------------------------------------------------------------------------------------


def _forward_call(*xs: Any, call: Call, graph: Graph | None) -> tuple:
    return tuple(call.fun(*xs))


def _batch_call(trace: Any, batched: tuple, xs: list, params: dict) -> tuple:
    return tuple(run_batch(trace, params["call"], list(batched), xs))


# A call of a function with custom rules. `graph` is what it computes, None for a library's function.
call_p = Primitive(
    "custom_call", _forward_call, multi=True, batch=_batch_call, archetype="call",
    differentiated=lambda *xs, call, graph: tuple(call(*xs)), needs_trace=True,
)  # fmt: skip


def _with_custom_rule(trace: BodyTrace, call: Call, xs: tuple) -> list:
    """Write a call down as one operation, so that a transform around the body finds its rules."""
    graph = None
    if not call.opaque:
        examples = [trace.lower(x) if type(x) is Tracer and x.owner is trace else example(x) for x in xs]
        body = record_body(lambda *xs: list(call.fun(*xs)), [as_value(x) for x in examples])
        if any(type(x) is Tracer for x in body.captured):
            end_run(trace, Unrecordable(trace, f"{call.name} uses a traced value from outside of its arguments"))
        graph = body.graph
        n = len(body.captured)
        constants = {**graph.constants, **dict(zip(graph.inputs[:n], body.captured, strict=True))}
        graph = graph.replace(inputs=graph.inputs[n:], constants=constants)
    return list(trace.process(call_p, xs, {"call": call, "graph": graph}))


RULES[BodyTrace] = _with_custom_rule


def inline_calls(graph: Graph) -> Graph:
    """Put the programs of calls with custom rules in their places: all derivatives have been taken."""
    if not any(eq.prim is call_p and eq.params["graph"] is not None for eq in graph.equations):
        return graph
    work = Rewriting(graph)
    alias: dict[int, int] = {}
    for eq in graph.equations:
        eq = rename(eq, alias)
        inner = eq.params.get("graph") if eq.prim is call_p else None
        if inner is None:
            work.equations.append(eq)
            continue
        inner = inline_calls(inner)
        name = {i: work.add_value(t) for i, t in enumerate(inner.types)}
        name.update(zip(inner.inputs, eq.ins, strict=True))
        work.constants.update({name[i]: c for i, c in inner.constants.items()})
        work.equations += [
            Equation(e.prim, tuple([name[i] for i in e.ins]), e.params, tuple([name[o] for o in e.outs]), eq.place)
            for e in inner.equations
        ]
        alias.update(zip(eq.outs, [name[i] for i in inner.outputs], strict=True))
    return work.finish().replace(outputs=[alias.get(i, i) for i in graph.outputs])
