"""Traces: what a transform does with the operations on its tracers, and what it answers for them."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends.counterparts import explain
from fad.core.tracing.array_likes import open_operand
from fad.core.tracing.conversions import of_compiled_code, own_error, to_array, to_number
from fad.core.tracing.tracer import Tracer, any_of, bind, outcome, stop, strong, tracer, youngest
from fad.core.tracing.views import RUNS, copy_layout, replace_root, root_of, snapshot, unwrap
from fad.core.tracing.weak import is_weak, number
from fad.errors import FadError, LeakedTracerError
from fad.introspect.frames import is_printing_number

_births = itertools.count(1)

class Trace:
    """One run of one transform. Subclasses say what an operation on their tracers does.

    A finished trace is dead: `finish` makes every later use of its tracers a LeakedTracerError.
    """

    __slots__ = ("birth", "dead", "ended", "withheld", "adopted")
    kind = "trace"  # the transform's name, for messages
    order = 1  # how many derivatives a differentiating trace takes
    batched = False  # whether values carry a batch axis in front
    parts: tuple[str, ...] = ()  # the slots of its tracers that hold arrays, if they are made of these alone
    recorded = False  # whether what is written into these is recorded by the trace: `write` is to do it
    answers = True  # whether a value of it may be asked for, as `if` does
    compiled = False  # whether its operations become a program, whose elementwise operations are fused
    physical = False  # whether its arrays are written where they lie in memory, with all that shares it
    of_plain: Any = None  # the trace of plain arrays behind handles; set by `fad.core.handles.buffers`

    def __init__(self) -> None:
        self.birth: float = next(_births)
        self.dead = False
        self.ended: BaseException | None = None  # why, before its time: `fad.core.tracing.ended_runs`
        self.withheld: BaseException | None = None
        self.adopted: list = []  # arrays of older traces into which values of this one were written

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        """Run one operation of which at least one argument is a tracer of this trace."""
        raise TypeError(f"{type(self).__name__} does not say how it runs operations")

    # Short paths for one and two operands; a trace that lives on the hot path gives its own.
    def unary(self, prim: Any, x: Tracer) -> Any:
        return self.process(prim, (x,), {}) if x.memory is None and prim.view is None else bind(prim, x)

    def both(self, prim: Any, x: Tracer, y: Tracer) -> Any:
        plain = x.memory is None and y.memory is None
        return self.process(prim, (x, y), {}) if plain else bind(prim, x, y)

    def left(self, prim: Any, x: Tracer, y: Any) -> Any:
        operands = x, open_operand(y, x)
        return youngest(operands).process(prim, operands, {})

    def right(self, prim: Any, x: Any, y: Tracer) -> Any:
        operands = open_operand(x, y), y
        return youngest(operands).process(prim, operands, {})

    def index(self, prim: Any, x: Tracer, index: tuple) -> Any:
        """Run ``x[index]`` for an index of slices and integers alone."""
        return bind(prim, x, template=index)

    def note_writes(self) -> None:
        """Note that an array of this trace is written: its views have to be taken again from now on."""

    def take_view(self, x: Tracer, root: Tracer) -> bool:
        """Let a view stand for its part of a root of this trace again, in one step; False where that takes more."""
        return False

    def store(self, x: Tracer, index: tuple, v: Any) -> bool:
        """Write at slices and integers into memory of its own, the fast path of `overwrite`; or return False."""
        return False

    def overwrite(self, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
        """Write into the memory of a root in place, and return True; False where its value must be computed."""
        return False

    def add_into(self, x: Tracer, y: Any) -> Any:
        """Return ``x + y``, where nobody else knows the value of `x` or reads it any more."""
        return x + y

    def lower(self, x: Any) -> Any:
        """Return the value behind a tracer of this trace, and anything else as it is."""
        return x.wrapped if type(x) is Tracer and x.owner is self else x

    def hand_out(self, x: Any) -> Any:
        """Return a value that leaves the transform: no Python number, in memory that is not overwritten any more."""
        return strong(x)

    def shape(self, x: Tracer) -> tuple[int, ...]:
        return x.wrapped.shape

    def class_of(self, x: Tracer) -> type:
        return x.wrapped.__class__

    def show(self, x: Tracer) -> str:
        return str(self.value_to_print(x))

    def value_to_print(self, x: Tracer) -> Any:
        """Return the value that becomes text, which may be traced as well."""
        return x.wrapped

    def format(self, x: Tracer, spec: str) -> str:
        return format(self.value_to_print(x), spec)

    def concrete(self, x: Tracer, convert: Callable) -> Any:
        """Answer ``bool``, ``int`` or ``__index__``: piecewise constant, so no derivative is lost."""
        return convert(x.wrapped)

    def outcome(self, x: Tracer) -> Any:
        """Return the plain array behind a tracer of this trace, on which the shape of a result depends (a mask)."""
        self.check_alive()
        return outcome(x.wrapped)

    def is_flat(self, x: Tracer) -> bool:
        """Return whether a value is known to have no derivative, as whole numbers have none, and what floor gives."""
        return x.dtype.kind in "biu"

    def any_of(self, x: Tracer) -> bool:
        """Return whether any element of a flat condition holds, in any batch element: it is an error then."""
        return any_of(x.wrapped)

    def number(self, x: Tracer, convert: Callable) -> Any:
        """Answer ``float``, ``complex`` or ``item``; a differentiating trace refuses, for the derivative is lost."""
        self.check_alive()
        if not is_printing_number():
            raise self.refusal(to_number(self.kind))
        return convert(self.value_to_print(x))

    def as_array(self, x: Tracer, dtype: Any, copy: bool | None) -> Any:
        """Answer a request for a plain array; refused but for whole numbers, for the derivative would be lost."""
        self.check_alive()
        if dtype is not None and np.dtype(dtype).kind in "biu":  # piecewise constant, as int(x) is
            return np.asarray(outcome(x.astype(dtype)))
        raise self.refusal(to_array(x.shape))

    def refusal(self, error: FadError) -> FadError:
        """Keep what was refused: a library may put an error of its own on top, and `clarify` looks below."""
        self.withheld = RUNS.refused = error
        return error

    def clarify(self, error: Exception) -> None:
        """Raise fad's error where a library put its own on top, or said that it was given another's arrays."""
        own = self.own_error(error)
        if own is not error:
            raise own.with_traceback(error.__traceback__) from None
        explain(error)

    def own_error(self, error: Exception) -> BaseException:
        """Return fad's error below one that a library put on top, or else the error itself."""
        return own_error(error, self.withheld) or of_compiled_code(error) or error

    def stop(self, x: Tracer) -> Any:
        """Return what `stop_gradient` leaves of a tracer of this trace."""
        value = number(stop(x.wrapped))
        if type(value) is not np.ndarray:
            return value
        value = copy_layout(value)  # what is written into it changes no traced value
        return tracer(value, Trace.of_plain, None) if RUNS.buffers and value.dtype.kind in "fc" else value

    def strong(self, x: Tracer) -> Tracer:
        """Return a tracer of this trace as what a transform takes: no Python number, even if it stands for one."""
        self.check_alive()
        return snapshot(self.convert_to_array(x))

    def convert_to_array(self, x: Tracer) -> Tracer:
        """Return what NumPy's conversion to an array makes of a tracer that may stand for a Python number."""
        strong: Any = np.positive(x) if is_weak(unwrap(x)) else x
        return strong

    def primal(self, x: Tracer) -> Tracer:
        """Return a tracer of this trace as what a transform differentiates: a Python number, if it stands for one."""
        self.check_alive()
        return snapshot(x)

    def freeze(self, x: Tracer) -> Any:
        """Return what a younger trace keeps of a tracer of this one: what it is now, whatever is written into it."""
        return snapshot(x)

    def check_alive(self) -> None:
        if self.dead:
            raise leaked_error(self)

    def finish(self) -> None:
        """Declare the transform finished."""
        self.give_back_adopted()
        self.dead, self.ended = True, None

    def give_back_adopted(self) -> None:
        """Let arrays of older traces keep what the values of this one that were written into them stand for."""
        for reference in self.adopted:
            x = reference()
            root = x if x is None else root_of(x)  # of an array that has become a view of what it was (x.shape = ...)
            if root is not None and root.owner is self:
                self.give_back(root)

    def give_back(self, x: Tracer) -> None:
        """Let an array of an older trace stand for a value of that trace again."""
        y = self.lower(x)
        plain = type(y) is not Tracer
        new = tracer(copy_layout(y) if type(y) is np.ndarray else y, Trace.of_plain, None) if plain else snapshot(y)
        replace_root(x, new)


def leaked_error(trace: Trace | type[Trace]) -> LeakedTracerError:
    kind = trace.kind if " " in trace.kind else f"the {trace.kind}"  # "a reverse-mode transform", "the vmap"
    instead = "return it from the function instead (has_aux=True), or keep fad.stop_gradient(x), the bare numbers"
    instead = "carry it: give it to the body, and return it" if "body" in kind else instead
    return LeakedTracerError(
        f"a traced value was used after {kind} that made it had finished. It was kept in a list, an attribute, a "
        f"global or an array from outside; {instead}"
    )
