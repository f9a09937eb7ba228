"""Loops at run time: captured as one operation where that can be and pays, and otherwise run as Python runs them."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from fad import config
from fad.capture.body.context import count_refusals, current, looking_at_one_step, refuse, report
from fad.capture.body.outcomes import END, Outcome, has_jumped, value_of
from fad.capture.body.places import bind_name, cells_of, content
from fad.capture.body.state import is_handle
from fad.capture.containers.growth import Growth
from fad.capture.iteration.generators import Generated, as_generated, run_generated
from fad.capture.iteration.iterables import Reiterable, items
from fad.capture.iteration.sequences import Sequence, sequence_of
from fad.capture.recording.capture import Capture, NeedsOtherStart, NotCaptured
from fad.capture.recording.step import NeedsFirstStep
from fad.capture.rewriting.sites import Loop
from fad.capture.rewriting.yields import BREAKS, STOPS
from fad.control_flow.bodies.intervals import assume, most_steps
from fad.control_flow.bodies.subgraph import Unrecordable, example
from fad.core.tracing.ended_runs import go_on
from fad.core.tracing.tracer import Tracer
from fad.staging.mixed_types import note_mixed
from fad.staging.record import is_recording

LONG = 400  # operations up to which a loop is recorded step by step
LONG_INSIDE = 48  # the same within a captured body, whose operations run again and again
_REFUSALS = 8  # of a loop that is short enough to be recorded, before it is recorded without another attempt
_BEARABLE = 4000  # operations of such a loop
_FEW = 16  # steps of an inner loop that is not captured itself, all of which are run to see what they do
_PEELED = 2  # first steps that may be run before the others are captured
_FILLING = 512  # those that may fill a list or deque
_GROWS = "a list or deque, from which it may take elements, becomes longer in its first steps"


def run_for(site: Loop, iterable: Any, body: Callable) -> Outcome | None:
    """Run a ``for`` loop; return how it ended, None if at its end."""
    if not is_recording():
        return _run_plainly(iterable, body)
    iterable = as_generated(iterable)
    if type(iterable) is Generated:
        return _run_generator(site, iterable, body)
    sequence = sequence_of(iterable)
    if sequence is None:
        what = iterable.what if type(iterable) is Reiterable else type(iterable).__name__
        if not site.comprehends:
            report(site.file, site.line, "recorded step by step", f"it runs over a {what}")
        return _run_plainly(items(iterable), body)
    inside = current()
    if inside is not None and inside.trial:
        return _try_for(site, sequence, body, inside)
    left: Iterator | None = None  # what is not run yet, once a step has been
    started, most = 0, _PEELED
    start = _Start(body)
    while True:
        try:
            return _capture_for(site, sequence, started, started <= most, body)
        except NeedsOtherStart as other:
            start.change(other.numbers)
        except NotCaptured:
            start.restore()
            return _run_plainly(sequence if left is None else left, body)
        except NeedsFirstStep as needed:
            start.restore()
            left = iter(sequence) if left is None else left
            size, steps = -1, 0
            while size != needed.size() and steps < min(_FILLING, sequence.length - started):
                size, steps = needed.size(), steps + 1
                outcome = _run_plainly(itertools.islice(left, 1), body)
                if outcome is not None:
                    return outcome
            if size != needed.size():
                report(site.file, site.line, "recorded step by step", _GROWS, refused=True)
                return _run_plainly(left, body)
            started, most = started + steps, most + steps - 1


def _run_generator(site: Loop, iterable: Generated, body: Callable) -> Outcome | None:
    for form in dict.fromkeys((site.form, STOPS if site.form == BREAKS else site.form)):
        run, why = iterable.convert(form)
        if run is not None:
            return run_generated(site, iterable, run, body, form)
    if current() is not None:
        refuse(f"it runs over a generator, and {why}")
    report(site.file, site.line, "recorded step by step", f"it runs over a generator, and {why}")
    return _run_plainly(iterable, body)


class _Start:
    """What the state is before a loop, while it is changed to numbers of the types that the steps leave."""

    def __init__(self, *functions: Callable):
        self._places: dict[Any, Any] = cells_of(*functions)  # of names; a part of an object is a place itself
        self._before: dict[Any, Any] = {}

    def change(self, numbers: dict[Any, float]) -> None:
        """Bind names and parts of objects to other numbers, which are equal to theirs."""
        for name, x in numbers.items():
            self._before.setdefault(name, content(self._places.get(name, name)))
            bind_name(self._places.get(name, name), x)
        note_mixed()

    def restore(self) -> None:
        """Bind them to what they were bound to."""
        for name, x in self._before.items():
            bind_name(self._places.get(name, name), x)
        self._before = {}


def _run_plainly(iterable: Any, body: Callable) -> Outcome | None:
    for item in iterable:
        outcome = body(item)
        if outcome is not None and has_jumped(outcome):
            return outcome
    return None


def _capture_for(site: Loop, sequence: Sequence, started: int, may_peel: bool, body: Callable) -> Outcome | None:
    fixed = type(sequence.length) is int
    n = sequence.length - started if started else sequence.length
    if fixed and _is_short(site, n):
        report(site.file, site.line, "unrolled", f"{n} steps")
        raise NotCaptured
    if fixed and _is_hopeless(site, n):
        raise NotCaptured
    most = n if fixed else most_steps(n)
    peel = may_peel and fixed and n > 1
    work = Capture(site, body, None, most, fixed and n > 0, peel)
    return work.over(n, lambda k: sequence.element(k + started if started else k), _limit())


def _limit() -> int:
    """Return how many operations of a loop are recorded one by one rather than as a loop."""
    if config.loops.get() == "capture":
        return 0
    return LONG if current() is None else LONG_INSIDE


def _is_short(site: Loop, n: int) -> bool:
    """Return whether a loop of n steps need not even be looked at."""
    if n < 2:
        return True
    if config.loops.get() != "auto" or (site.nested and not site.comprehends):
        return False  # of a comprehension the loops in it may be captured, each by itself
    return n <= 2 or (current() is None and n * site.operations < LONG // 4)


def _is_hopeless(site: Loop, n: int) -> bool:
    """Return whether a loop was refused so often that another attempt costs more than to record its n steps."""
    if config.loops.get() != "auto" or n * site.operations >= _BEARABLE:
        return False
    return count_refusals(site.file, site.line) >= _REFUSALS


def _try_for(site: Loop, sequence: Sequence, body: Callable, inside: Any) -> Outcome | None:
    """Run one step of a loop within a body that is run to see what it does."""
    fixed = type(sequence.length) is int
    if fixed and sequence.length == 0:
        return None
    few = fixed and (sequence.length <= _FEW or site.comprehends)
    if few and id(site) in inside.trace.plain:
        return _try_outcome(_run_plainly(sequence, body), inside)
    lists = Growth(site, cells_of(body))
    most = sequence.length if fixed else most_steps(sequence.length)
    if not fixed:
        lists.allow_masked(most)
    try:
        with inside.trace.repeat(sequence.length if fixed else 16) as number, looking_at_one_step(inside):
            assume(number, 0, sequence.length)
            with lists.growing(inside, number):
                outcome = _try_step(site, inside, [body], lambda: body(sequence.element(number)))
                lists.note_appended()
        lists.repeat(most, fixed)
    except (Exception, Unrecordable) as why:
        if not few or (isinstance(why, Unrecordable) and why.trace is not inside.trace):
            raise
        go_on(inside.trace)
        # As it will be run: it cannot do without the number of its step. Loops in loops are not to find out each
        # time, or the attempts would be as many as 3 to the power of how deep they are.
        inside.trace.plain.add(id(site))
        outcome = _run_plainly(sequence, body)
    return _try_outcome(outcome, inside)


def _try_step(site: Loop, inside: Any, functions: list, run: Callable) -> Outcome | None:
    """Run a step with numbers of its state that are not known, as they are in further steps: then all ways are seen.

    Where it cannot do without what they are, as a loop that is not captured may do, it is run as the first one.
    """
    cells = {name: cell for name, cell in cells_of(*functions).items() if name in site.names}
    before = {name: content(cell) for name, cell in cells.items()}
    carried = [name for name in site.carried if name in cells and _is_number(before[name])]
    given = {name: inside.trace.new(example(before[name])) for name in carried}
    try:
        for name, x in given.items():
            bind_name(cells[name], x)
        return run()
    except (Exception, Unrecordable) as why:
        if not given or (isinstance(why, Unrecordable) and why.trace is not inside.trace):
            raise
        for name, cell in cells.items():
            bind_name(cell, before[name])
        given = {}
        go_on(inside.trace)
        return run()
    finally:
        for name, x in given.items():
            if content(cells[name]) is x:  # it is handed through
                bind_name(cells[name], before[name])


def _is_number(x: Any) -> bool:
    if type(x) is Tracer:
        return not x.shape and not is_handle(x)
    return isinstance(x, (bool, int, float, complex, np.number, np.bool_))


def _try_outcome(outcome: Outcome | None, inside: Any) -> Outcome | None:
    """Return an outcome of which it is not known what it is."""
    return None if outcome is None else Outcome(inside.trace.new(np.int64(END)), value_of(outcome))


def run_while(site: Loop, test: Callable, body: Callable) -> Outcome | None:
    """Run a ``while`` loop; return how it ended."""
    inside = current()
    if inside is not None and inside.trial:
        with inside.trace.repeat(16), looking_at_one_step(inside):
            outcome = _try_step(site, inside, [test, body], lambda: (test(), body())[1])
        return _try_outcome(outcome, inside)
    left = _PEELED  # first steps that may be run before the others are captured
    start = _Start(body, test)
    while is_recording():
        try:
            work = Capture(site, body, test, None, False, left > 0)
            return work.until(_limit())
        except NeedsOtherStart as other:
            start.change(other.numbers)
        except NotCaptured:
            start.restore()
            break
        except NeedsFirstStep as needed:
            start.restore()
            size, steps = -1, 0
            while size != needed.size() and steps < _FILLING:
                size, steps = needed.size(), steps + 1
                if not test():
                    return None
                outcome = body()
                if outcome is not None and has_jumped(outcome):
                    return outcome
            if size != needed.size():
                report(site.file, site.line, "recorded step by step", _GROWS, refused=True)
                break
            left -= 1
    while test():
        outcome = body()
        if outcome is not None and has_jumped(outcome):
            return outcome
    return None
