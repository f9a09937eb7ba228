"""The trace of a recording: each operation becomes an equation, and each question to a value a guard."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import host, is_numpy_scalar, is_on_device
from fad.core.handles.buffers import PLAIN
from fad.core.programs.graph import EFFECT, GUARD, Equation, Type, hashable, type_of
from fad.core.programs.refusals import may_refuse, refuses
from fad.core.runs.errstate import calm, is_strict, state
from fad.core.runs.journal import effect_place
from fad.core.runs.overlay_needs import is_to_exchange
from fad.core.tracing.conversions import to_number
from fad.core.tracing.ended_runs import end_run
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, any_of, tracer
from fad.core.tracing.views import own_small_part
from fad.core.tracing.weak import is_weak, may_raise, number, weaken
from fad.introspect.frames import is_printing, is_printing_number, user_line, user_place
from fad.ops.ufuncs.conversion import python_number_p, widest_of
from fad.ops.ufuncs.elementwise import add
from fad.staging.flatness import has_no_derivative
from fad.staging.may_raise import Refused
from fad.staging.mixed_types import is_element, note_question
from fad.staging.python_numbers import gives_number, keep_kind, on_numbers, to_number_p, to_scalar_p
from fad.transforms.arguments.check import as_operand
from fad.transforms.arguments.mutation import Snapshots

_depth = itertools.count(1)
_NUMBERS = (bool, int, float, complex)
LARGEST = 2**62  # integers beyond are constants of a program, not arguments: sums of smaller ones have 64 bits


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
        self.integers: Any = None  # what is known of its integers: `fad.control_flow.bodies.intervals`

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


def is_traceable(x: Any) -> bool:
    """Return whether a leaf is an array or number, and no string, function or array of objects."""
    kind = type(x)
    if kind is np.ndarray or is_numpy_scalar(x):
        return x.dtype.kind in "fcbiu"
    if kind in _NUMBERS:
        return not (kind is int and not -LARGEST < x < LARGEST)
    return is_on_device(x) and x.dtype.kind in "fcbiu"
