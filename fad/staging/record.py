"""Recording: run a function on its values, and write down every operation as an equation of a `Graph`.

The recording trace lies under every other one, so ``grad`` and ``vmap`` inside the function leave their arithmetic in
the graph as well. Its tracers carry the concrete values: Python's ``if``, ``while`` and ``int(x)`` work,
and each such question becomes a guard, an equation that says which answer was seen.

Python numbers among the arguments keep NumPy's weak promotion: ``0.1 * x`` stays float32 with a float32 x.
"""

from __future__ import annotations

import contextlib
import types
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import config, tree
from fad.core.handles.buffers import PLAIN
from fad.core.handles.random_sources import GeneratorStates
from fad.core.programs.graph import Graph
from fad.core.runs import effects
from fad.core.runs.journal import rewind, with_journal
from fad.core.runs.running import Running
from fad.core.runs.stand_ins import stand_for_given
from fad.core.runs.transformed import as_run, transformed
from fad.core.tracing.ended_runs import run_to_end
from fad.core.tracing.tracer import Tracer, up_to_date
from fad.core.tracing.views import RUNS, Aliased, noticing_layouts, noting_aliases
from fad.errors import NonArrayOutputError, TracerConversionError
from fad.introspect.collection import pause_collection
from fad.staging.counters import settling_counts
from fad.staging.live_constants import find_live_constants
from fad.staging.may_raise import Refused, noting_tries
from fad.staging.mixed_types import (
    MixedTypes,
    is_asked,
    noting_types,
    tells_types_apart,
)
from fad.staging.outer_state import OuterState
from fad.staging.prints import drop_prints
from fad.staging.record_trace import RecordTrace, is_traceable
from fad.transforms.arguments.mutation import Earlier, recording
from fad.transforms.arguments.undo_writes import outside

recorder: ContextVar[RecordTrace | None] = ContextVar("recorder", default=None)
"""The trace that writes down what the running function does, the innermost one."""

_found: ContextVar[Sequence] = ContextVar("found", default=())  # what the function that is recorded finds by name


def is_found_by_name(x: Any) -> bool:
    """Return whether an object was there before the function that is recorded, which finds it by name."""
    return any(x is y for y in _found.get())


def is_variable_found(cell: types.CellType) -> bool:
    """Return whether a variable was there before the function that is recorded, which shares it with others."""
    return any(cell is own for f in _found.get() for own in getattr(f, "__closure__", None) or ())


class Recording:
    """What one recorded call gave: the graph, the structure of the output, the output itself, what it depends on."""

    __slots__ = ("graph", "out_tree", "result", "outer", "by_layout", "remembers", "pull")

    def __init__(
        self, graph: Graph, out_tree: Any, result: Any, outer: OuterState, by_layout: bool, remembers: bool
    ):  # fmt: skip
        self.graph = graph
        self.out_tree = out_tree
        self.result = result
        self.outer = outer
        self.by_layout = by_layout  # whether it is right for arguments alone that lie in memory as these do
        self.remembers = remembers  # as the trace's
        self.pull: Any = None  # of a call under reverse mode: what gives the cotangents of its arguments


@with_journal
def record(
    fun: Callable,
    in_tree: Any,
    leaves: list,
    traced: list[bool],
    places: bool = False,
    outer: OuterState | None = None,
    before: Earlier | None = None,
) -> Recording:
    """Run ``fun(*args, **kwargs)`` once and write it down; ``in_tree`` holds ``(args, kwargs)``.

    Leaves for which `traced` is false go in as they are. With `places` each equation knows the user's line.
    `outer` is what the function finds by name, as it is before the call; of other arrays it is assumed that they were
    as they are when the function first uses them. `before` is what arrays from outside held, if anybody looked.
    """
    before = Earlier(()) if before is None else before
    outer = OuterState() if outer is None else outer
    with pause_collection(), Running(fun, before=before.small) as running:
        try:
            recorded = _record_again(before, fun, in_tree, leaves, traced, places, outer)
        except Exception as error:
            again = isinstance(error, TracerConversionError) and running.retry(error, error)
            if not again and not running.passed_over(error):
                raise
        else:
            if not running.passed_over():
                return recorded
        record = lambda: _record_again(before, fun, in_tree, leaves, traced, places, outer)
        return running.again(record, lambda error: error)


def _record_again(before: Earlier, *args: Any) -> Recording:
    """Record a function, again with its loops step by step if one lost track of an array, a type or an error."""
    *_, outer = args
    states = GeneratorStates(outer.found)
    try:
        with noting_tries() as tries:
            return _record(*args)
    except (Aliased, MixedTypes, Refused) as why:
        if isinstance(why, Refused) and (not tries or config.loops.get() == "record"):
            raise
        states.put_back()
        before.undo()
        rewind()
        with config.use(loops="record"):
            return _record(*args)


def is_recording() -> bool:
    """Return whether a program is being recorded: loops are operations of it then."""
    return recording.get() is not None


@contextlib.contextmanager
def recording_by(trace: RecordTrace) -> Iterator[None]:
    """Say which trace records: those above it share its copies of constants."""
    token, mine = recording.set(trace.snapshots), recorder.set(trace)
    try:
        yield
    finally:
        recorder.reset(mine)
        recording.reset(token)


def _record(
    fun: Callable, in_tree: Any, leaves: list, traced: list[bool], places: bool, outer: OuterState
) -> Recording:
    trace = RecordTrace(places)
    token = _found.set(outer.found)
    try:
        noting = noting_types(), noticing_layouts(), noting_aliases()
        with settling_counts(), recording_by(trace), noting[0] as notes, noting[1] as layouts, noting[2]:
            given = [trace.new(x) if t else stand_for_given(x) for x, t in zip(leaves, traced, strict=True)]
            args, kwargs = tree.unflatten(in_tree, given)
            inputs = [x.info for x, t in zip(given, traced, strict=True) if t]
            outs, out_tree = tree.flatten(run_to_end(trace, lambda: as_run(fun)(*args, **kwargs)))
            outs = [_as_plain(y) for y in outs]
            outputs = [_output(trace, y) for y in outs]
    except Exception as error:
        if notes.mixed and config.loops.get() != "record":  # an integer may be an index, which no other number is
            raise MixedTypes from error
        trace.clarify(error)
        raise
    finally:
        _found.reset(token)
        trace.finish()
    trace.snapshots.check()
    graph = drop_prints(Graph(trace.types, inputs, trace.constants, trace.equations, outputs))
    if notes.mixed and (is_asked(notes, trace, graph) or tells_types_apart(graph)):
        raise MixedTypes
    shared = {id(x) for x in (*leaves, *trace.constants.values()) if hasattr(x, "shape")} | trace.sources.keys()
    lowered = [_as_plain(trace.lower(y)) for y in outs]  # arrays that took traced values are plain ones since the end
    result = tree.unflatten(out_tree, [_own(y, shared) for y in lowered])
    trace.seen.clear()
    outer.settle(find_live_constants(trace, outs, outer))
    return Recording(graph, out_tree, result, outer, layouts.found, trace.remembers)


def _as_plain(y: Any) -> Any:
    """Return an array that the function made and that holds no traced value as what it is: a plain one."""
    y = up_to_date(y) if type(y) is Tracer else y
    return PLAIN.outcome(y) if type(y) is Tracer and y.owner is PLAIN and RUNS.buffers < 2 else y  # not one from around


def _own(y: Any, shared: set[int]) -> Any:
    """Return a result as a replay gives it, in memory of its own: no argument, constant, result or view of one."""
    if hasattr(y, "shape") and (id(y) in shared or getattr(y, "base", None) is not None):
        return y.copy()
    shared.add(id(y))
    return y


def _output(trace: RecordTrace, y: Any) -> int:
    if type(y) is Tracer:
        if up_to_date(y).owner is not trace:
            y.owner.check_alive()
            return trace.number_of_outer(y)
        return y.info
    of_subclass = isinstance(y, np.ndarray) and y.dtype.kind in "fcbiu"
    if type(y) is not int and not is_traceable(y) and not of_subclass:
        raise NonArrayOutputError(
            f"a jitted function returned a {type(y).__name__}"
            f"{f' of dtype {y.dtype}' if hasattr(y, 'dtype') else ''}, but a program's outputs are arrays and numbers, "
            "in tuples, lists, dicts and other pytrees. Return what is no array outside of jit"
        )
    return trace.constant(y)


def make_graph(fun: Callable) -> Callable:
    """Return a function that records one call of `fun` and gives the recorded program.

    Parameters
    ----------
    fun : callable
        A function of arrays and pytrees; derivatives, batches and other transforms may be anywhere in it.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns a :class:`fad.core.programs.graph.Graph`: ``str()``, ``.to_dot()``,
        ``.to_html()``, and a call of its own that runs the program on a flat list of values. Buffers of models
        (BatchNorm's statistics) are further inputs, and what is written to them further outputs; the model itself stays
        as it was.

    Raises
    ------
    NonArrayOutputError
        An output of the function is neither an array nor a number.

    Examples
    --------
    >>> import numpy as np
    >>> print(make_graph(lambda x: np.sum(np.sin(x) * 2.0))(np.ones(3)))
    graph(a: f64[3]) {
      b: f64[3] = sin a
      c: f64[3] = multiply b 2.0
      d: f64[] = sum_over c {axis=(0,), keepdims=False}
      return d
    }
    """

    @transformed("make_graph", fun)
    def recorded(*args: Any, **kwargs: Any) -> Graph:
        leaves, in_tree, state = effects.open_flatten((args, kwargs))
        program = effects.with_changes(fun) if state else fun
        with effects.compiling():
            try:
                traced = [is_traceable(x) for x in leaves]
                outer = OuterState([fun, in_tree])
                return record(program, in_tree, leaves, traced, places=True, outer=outer, before=outside(fun)).graph
            except Refused as why:
                raise why.error from None

    return recorded
