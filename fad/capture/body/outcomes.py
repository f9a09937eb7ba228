"""How code ends that is captured: at its end, or by break, return or raise, which may differ from step to step.

A program cannot make the user's error, with its message. So a loop that is to raise stops, and behind it stands the
question whether it has: where it has, the call is left to Python.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.capture.body.context import current, refuse
from fad.core.tracing.ended_runs import end_run
from fad.core.tracing.tracer import Tracer
from fad.staging.may_raise import Refused, note_try
from fad.transforms.batching.batch_trace import BatchTrace

END, BROKEN, RETURNED, RAISED = 0, 1, 2, 3
NOTHING = ()  # in place of (value,), where nothing is returned


class Outcome:
    """A way in which code ended: its kind, traced where it depends on values, and (value,) if it returned one."""

    __slots__ = ("kind", "value")

    def __init__(self, kind: Any, value: Any = NOTHING):
        self.kind = kind
        self.value = value


BREAK = Outcome(BROKEN)
RAISE = Outcome(RAISED)


def kind_of(outcome: Outcome | None) -> Any:
    """Return the number of how code ended."""
    return END if outcome is None else outcome.kind


def value_of(outcome: Outcome | None) -> Any:
    """Return (value,) of what code returned, or ()."""
    return NOTHING if outcome is None else outcome.value


def _is(outcome: Outcome | None, kind: int) -> Any:
    found = kind_of(outcome)
    return np.equal(found, kind) if type(found) is Tracer else found == kind


def is_finished(outcome: Outcome | None) -> Any:
    """Return whether a loop ran to its end."""
    return _is(outcome, END)


def is_return(outcome: Outcome | None) -> Any:
    """Return whether code returned."""
    return _is(outcome, RETURNED)


def is_raise(outcome: Outcome | None) -> Any:
    """Return whether code is to raise an error."""
    return _is(outcome, RAISED)


def has_jumped(outcome: Outcome | None) -> Any:
    """Return whether a step ended otherwise than at its end or by ``continue``."""
    kind = kind_of(outcome)
    return np.not_equal(kind, END) if type(kind) is Tracer else kind != END


def stop(outcome: Outcome | None) -> Outcome:
    """Return what a generator returns that a loop over it ends, whose body has ended so."""
    return Outcome(RETURNED, ((np.int64(0) + kind_of(outcome), *value_of(outcome)),))


def ended_by(returned: Any) -> Outcome | None:
    """Return how the body of a loop ended over a generator that has returned this, by `stop` or at its own end."""
    if type(returned) is not Outcome:
        return None if returned is None else Outcome(returned[0], returned[1:])
    if not returned.value:
        return None
    ((kind, *value),) = returned.value
    if type(returned.kind) is Tracer:  # in the steps in which it has come to its own end nothing has jumped
        kind = np.where(np.equal(returned.kind, RETURNED), kind, np.int64(END))
    return Outcome(kind, tuple(value))


def leave_if_raised(outcome: Outcome | None) -> None:
    """Let Python run the whole call if a captured loop is to raise an error, in whichever element of a batch."""
    found = is_raise(outcome)
    while type(found) is Tracer and isinstance(found.owner, BatchTrace):
        found = found.wrapped
    if type(found) is Tracer and np.any(found):
        end_run(found.owner, Refused(found.owner, RuntimeError("a loop raises an error for these values")))


def again(outcome: Outcome | None) -> Outcome:
    """Return the outcome of the code around a loop that returned."""
    return Outcome(RETURNED, value_of(outcome))


def result(outcome: Outcome | None) -> Any:
    """Return what a function returns whose code ended so."""
    value = value_of(outcome)
    return value[0] if value else None


# --- errors of functions that a body calls ----------------------------------------------------------------------------
#
# The step goes on behind such a call, with any value in place of the result, and ends as if it had raised by itself.


def result_or_raise(outcome: Outcome | None) -> Any:
    """Return what a function returns that a body calls, and that may raise; note whether it does."""
    kind = kind_of(outcome)
    if type(kind) is Tracer:
        note_raise(outcome)
    elif kind == RAISED:
        refuse("it calls a function that raises an error")
    return result(outcome)


def run_tried(block: Callable) -> Outcome | None:
    """Run the block of a ``try`` in a body; return how it ended, which is at its end where it raises."""
    note_try()
    outcome = block()
    note_end(outcome)
    return outcome


def note_end(outcome: Outcome | None) -> None:
    """Note whether a block of a body has ended by an error, behind which the body goes on."""
    if type(kind_of(outcome)) is Tracer:
        note_raise(outcome)
    elif kind_of(outcome) == RAISED:
        refuse("it raises an error in every step")


def tell_outcome(outcome: Outcome | None) -> Outcome | None:
    """Return how the code of a generator ended, which may raise."""
    note_end(outcome)
    return outcome


def note_raise(outcome: Outcome | None) -> None:
    """Note in the body that is being recorded that code of it may raise, or ask where there is none."""
    body = current()
    if body is None:
        leave_if_raised(outcome)
    else:
        body.raised.append(is_raise(outcome))


def count_raises() -> int:
    """Return how many calls of the body that is being recorded may have raised an error."""
    body = current()
    return 0 if body is None else len(body.raised)


def add_raises(outcome: Outcome | None) -> Outcome | None:
    """Return how code of a body ended, or that it raised, if a function did that it called."""
    if not count_raises():
        return outcome
    raised = functools.reduce(np.logical_or, current().raised)  # type: ignore[union-attr]
    return Outcome(np.where(raised, np.int64(RAISED), kind_of(outcome)), value_of(outcome))


def find_raises() -> list:
    """Return whether calls before what is being recorded have raised: then a loop may run on values without end."""
    body, found = current(), []
    while body is not None:
        found += body.raised
        body = body.around
    return found
