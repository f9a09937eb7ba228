"""Recording: run a function on its values, and write down every operation as an equation of a `Graph`.

The recording trace lies under every other one, so ``grad`` and ``vmap`` inside the function leave their arithmetic in
the graph as well. Its tracers carry the concrete values: Python's ``if``, ``while`` and ``int(x)`` work,
and each such question becomes a guard, an equation that says which answer was seen.

Python numbers among the arguments keep NumPy's weak promotion: ``0.1 * x`` stays float32 with a float32 x.
"""

from __future__ import annotations

import contextlib
import itertools
import types
from collections.abc import Callable, Iterator, Sequence
from contextvars import ContextVar
from typing import Any

import numpy as np

from fad import config, tree
from fad.backends import host, is_numpy_scalar, is_on_device
from fad.core import effects
from fad.core.buffers import PLAIN
from fad.core.conversions import to_number
from fad.core.ended_runs import end_run, run_to_end
from fad.core.errstate import calm, is_strict, state
from fad.core.graph import EFFECT, GUARD, Equation, Graph, Type, hashable, type_of
from fad.core.journal import effect_place, rewind, with_journal
from fad.core.overlay_needs import is_to_exchange
from fad.core.random_sources import GeneratorStates
from fad.core.refusals import may_refuse, refuses
from fad.core.running import Running
from fad.core.stand_ins import stand_for_given
from fad.core.tracer import Trace, Tracer, any_of, tracer, up_to_date
from fad.core.transformed import as_run, transformed
from fad.core.views import RUNS, Aliased, noticing_layouts, noting_aliases, own_small_part
from fad.core.weak import is_weak, may_raise, number, weaken
from fad.errors import NonArrayOutputError, TracerConversionError
from fad.introspect.collection import pause_collection
from fad.introspect.frames import is_printing, is_printing_number, user_line, user_place
from fad.ops.conversion import python_number_p, widest_of
from fad.ops.elementwise import add
from fad.staging.counters import settling_counts
from fad.staging.flatness import has_no_derivative
from fad.staging.live_constants import find_live_constants
from fad.staging.may_raise import Refused, noting_tries
from fad.staging.mixed_types import (
    MixedTypes,
    is_asked,
    is_element,
    note_question,
    noting_types,
    tells_types_apart,
)
from fad.staging.outer_state import OuterState
from fad.staging.prints import drop_prints
from fad.staging.python_numbers import gives_number, keep_kind, on_numbers, to_number_p, to_scalar_p
from fad.transforms.check import as_operand
from fad.transforms.mutation import Earlier, Snapshots, recording
from fad.transforms.undo_writes import outside

_depth = itertools.count(1)
_NUMBERS = (bool, int, float, complex)
LARGEST = 2**62  # integers beyond are constants of a program, not arguments: sums of smaller ones have 64 bits

recorder: ContextVar[RecordTrace | None] = ContextVar("recorder", default=None)
"""The trace that writes down what the running function does, the innermost one."""

_found: ContextVar[Sequence] = ContextVar("found", default=())  # what the function that is recorded finds by name


def is_found_by_name(x: Any) -> bool:
    """Return whether an object was there before the function that is recorded, which finds it by name."""
    return any(x is y for y in _found.get())


def is_variable_found(cell: types.CellType) -> bool:
    """Return whether a variable was there before the function that is recorded, which shares it with others."""
    return any(cell is own for f in _found.get() for own in getattr(f, "__closure__", None) or ())


class OuterTracer(BaseException):
    """Nothing can be recorded: a traced value from outside, which is no constant, met the recording, say."""


class RecordTrace(Trace):
    """The trace of recording; its tracers' `info` is the number of the value in the graph."""

    __slots__ = (
        "types", "equations", "constants", "seen", "snapshots", "sources", "weak", "asked", "places", "integers",
        "strict", "remembers",
    )  # fmt: skip
    kind = "jit"
    compiled = True
    of_examples = False  # whether its values stand for others, so that nobody outside may see what it does

    def __init__(self, places: bool = False) -> None:
        # whether to note the user's line of every operation, and not of those alone that refuse some values
        self.places = places or "raise" in np.geterr().values()
        self.strict = is_strict()
        super().__init__()
        self.birth = -next(_depth)  # older than any other trace, and than any recording around it
        self.types: list[Type] = []
        self.equations: list[Equation] = []
        self.constants: dict[int, Any] = {}
        self.seen: dict[Any, int] = {}
        self.snapshots = Snapshots()
        self.sources: dict[int, list] = {}  # by id: an array that was copied, and the numbers of its copies
        self.weak: dict[int, Any] = {}  # values that are Python numbers
        self.asked: set = set()
        self.remembers = False  # whether what it asks depends on what earlier calls found out, as in `fad.sparse`
        self.integers: Any = None  # what is known of its integers: `fad.control_flow.intervals`

    def new(self, x: Any) -> Tracer:
        """Return a tracer for a value that the program computes or is given."""
        number = len(self.types)
        self.types.append(type_of(x))
        if type(x) in _NUMBERS:
            self.weak[number] = x
            x = np.asarray(x)[()]
        return tracer(x, self, number)

    def constant(self, x: Any) -> int:
        """Return the number of a constant: numbers are distinguished by value, arrays by identity and contents."""
        key = hashable(x) if isinstance(x, (*_NUMBERS, np.generic)) else ("id", id(x))
        number = self.seen.get(key)
        if number is None:
            if type(x) is np.ndarray:
                return self.snapshot(x)
            number = self._constant(key, x)
        return number

    def snapshot(self, x: np.ndarray) -> int:
        """Return the number of what an array holds now, as the program would refill it otherwise."""
        copy = self.snapshots.take(x)
        number = self.seen.get(("id", id(copy)))
        if number is None:
            number = self._constant(("id", id(copy)), copy)
            self.sources.setdefault(id(x), [x]).append(number)
        return number

    def _constant(self, key: Any, x: Any) -> int:
        number = self.seen[key] = len(self.types)
        self.types.append(type_of(x))
        self.constants[number] = x
        return number

    def shape(self, x: Tracer) -> tuple[int, ...]:
        return self.types[x.info].shape  # an integer that 64 bits do not hold has none of its own

    def class_of(self, x: Tracer) -> type:
        if not self.types[x.info].shape or is_element(self, x.info):
            note_question(self, x.info)
        return self.weak.get(x.info, x.wrapped).__class__

    def number_of_outer(self, x: Tracer) -> int:
        """Return the number of a traced value from outside."""
        end_run(self, OuterTracer())

    def example(self, number: int) -> Any:
        """Return the plain value of a value from outside."""
        end_run(self, OuterTracer())

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        if self.dead:
            self.check_alive()
        if prim is python_number_p:
            return self._python_number(*args)
        weak = self.weak
        values, ins = [], []
        numbers = True
        for x in args:
            if type(x) is Tracer and x.owner is PLAIN:
                x = PLAIN.freeze(x)
            if type(x) is Tracer:
                number = x.info if x.owner is self else self.number_of_outer(x)
                if number in weak:
                    values.append(weak[number])
                else:
                    values.append(x.wrapped if x.owner is self else self.example(number))
                    numbers = False
                ins.append(number)
                continue
            x = as_operand(x)
            if x is NotImplemented:
                return x
            numbers = numbers and type(x) in _NUMBERS
            values.append(x)
            ins.append(self.constant(x))
        if any(map(is_weak, values)) and prim.archetype in ("elementwise", "selection"):
            promoted = self._promote(args, values)
            if promoted is not None:
                return self.process(prim, promoted, params)
        if len(values) == 2 and not numbers and may_raise(prim.forward, *values):
            return self._raising(prim, args)
        if prim.symbol is not None and not params and gives_number(prim.symbol, values, numbers):
            prim = on_numbers(prim)
        try:
            y = self.compute(prim, values, params)
        except Exception as error:
            if not refuses(prim, ins, error):
                raise
            y = self.give_up(prim, values, params, error)
        return self._write(keep_kind(prim, type(y)), ins, params, y)

    def _promote(self, args: tuple, values: list) -> tuple | None:
        """Return operands with Python numbers that a transform differentiates in the dtype that the others give."""
        others = [v.dtype for v in values if not is_weak(v) and type(v) not in _NUMBERS]
        dtypes = [np.result_type(*others, number(v)) if others and is_weak(v) else None for v in values]
        if all(d is None or d == v.dtype for d, v in zip(dtypes, values, strict=True)):
            return None
        return tuple([x if d is None else x.astype(d) for x, d in zip(args, dtypes, strict=True)])

    def _raising(self, prim: Any, args: tuple) -> Any:
        """Write down what Python does with numbers that are differentiated, which is an error for some."""
        numbers = [self.process(to_number_p, (x,), {}) if type(x) is Tracer else x for x in args]
        return self.primal(self.process(on_numbers(prim), tuple(numbers), {}))

    def _python_number(self, x: Tracer) -> Tracer:
        """Write down a scalar as a Python number."""
        x = x.astype(widest_of(x.dtype))
        if x.shape or is_on_device(x.wrapped):  # the numbers of a batch, and one that stays where it is
            return x
        return self.process(to_number_p, (x,), {})

    def compute(self, prim: Any, values: list, params: dict) -> Any:
        y = prim.forward(*values, **params)
        return y if prim.view is None else own_small_part(y)

    def add_into(self, x: Tracer, y: Any) -> Any:
        """Return a sum that takes the memory of `x`: what was never touched costs more than the addition."""
        a, b = x.wrapped, y.wrapped if type(y) is Tracer and y.owner is self else None
        same = type(a) is type(b) is np.ndarray and (a.shape, a.dtype) == (b.shape, b.dtype)
        if not same or self.of_examples or not a.flags.writeable:
            return x + y
        a += b
        return self._write(add, [x.info, y.info], {}, a)

    def give_up(self, prim: Any, values: list, params: dict, error: Exception) -> Any:
        """Give up: what a caller that catches the error does then is right for these values alone."""
        end_run(self, Refused(self, error))

    def _write(self, prim: Any, ins: list, params: dict, y: Any) -> Any:
        if state() is not calm[0] and is_strict() and not self.strict:
            why = "a part of the function sets np.errstate, which no program does"
            end_run(self, Refused(self, FloatingPointError(why)))
        ys = tuple(y) if prim.multi else (y,)
        if prim.archetype == EFFECT and (earlier := effect_place(self, first := len(self.types))) != first:
            outs = tuple([tracer(v, self, earlier + k) for k, v in enumerate(ys)])
            return outs if prim.multi else outs[0]
        outs = tuple([self.new(v) for v in ys])
        noted = self.places or (prim.archetype != "elementwise" and may_refuse(prim, ins))
        place = user_place() if noted else None
        self.equations.append(Equation(prim, tuple(ins), params, tuple([t.info for t in outs]), place))
        return outs if prim.multi else outs[0]

    # --- questions: answered with the value, and guarded --------------------------------------------------------

    def guard(self, x: Tracer, convert: Callable | None, outcome: Any) -> Any:
        if self.dead:
            self.check_alive()
        if (x.info, convert) not in self.asked:
            self.asked.add((x.info, convert))
            params = {"convert": convert, "outcome": outcome, "line": user_line()}
            self.equations.append(Equation(GUARD, (x.info,), params, (), user_place() if self.places else None))
        return outcome

    def concrete(self, x: Tracer, convert: Callable) -> Any:
        try:
            answer = convert(number(self.lower(x)))
        except (ValueError, OverflowError) as error:
            if x.size != 1:
                raise
            end_run(self, Refused(self, error))  # int() of NaN
        return self.guard(x, convert, answer)

    def is_flat(self, x: Tracer) -> bool:
        return super().is_flat(x) or has_no_derivative(self, x.info)

    def number(self, x: Tracer, convert: Callable) -> Any:
        if not self.dead and is_printing_number():
            return convert(self.value_to_print(x))
        if is_to_exchange():  # to a traced number, which every call may have another of
            raise self.refusal(to_number(self.kind))
        return self.concrete(x, convert)

    def any_of(self, x: Tracer) -> bool:
        return self.concrete(x, any_of)

    def outcome(self, x: Tracer) -> Any:
        return self.guard(x, None, np.array(host(x.wrapped)))

    def value_to_print(self, x: Tracer) -> Any:
        if not self.dead and not is_printing():  # the text may be a key, or be read as a number
            self.outcome(x)
        return self.lower(x)

    def stop(self, x: Tracer) -> Any:
        return x

    def convert_to_array(self, x: Tracer) -> Tracer:
        self.check_alive()
        return self.process(to_scalar_p, (x,), {}) if x.info in self.weak or is_weak(x.wrapped) else x

    def primal(self, x: Tracer) -> Tracer:
        if x.info not in self.weak:
            return super().primal(x)
        y = self.convert_to_array(x)
        y.wrapped = weaken(y.wrapped)
        return y

    def lower(self, x: Any) -> Any:
        if type(x) is Tracer and x.owner is self:
            return self.weak.get(x.info, x.wrapped)
        return x


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


def is_traceable(x: Any) -> bool:
    """Return whether a leaf is an array or number, and no string, function or array of objects."""
    kind = type(x)
    if kind is np.ndarray or is_numpy_scalar(x):
        return x.dtype.kind in "fcbiu"
    if kind in _NUMBERS:
        return not (kind is int and not -LARGEST < x < LARGEST)
    return is_on_device(x) and x.dtype.kind in "fcbiu"


def make_graph(fun: Callable) -> Callable:
    """Return a function that records one call of `fun` and gives the recorded program.

    Parameters
    ----------
    fun : callable
        A function of arrays and pytrees; derivatives, batches and other transforms may be anywhere in it.

    Returns
    -------
    callable
        Takes the arguments of `fun` and returns a :class:`fad.core.graph.Graph`: ``str()``, ``.to_dot()``,
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
