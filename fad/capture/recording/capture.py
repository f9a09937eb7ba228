"""The capture of one loop: a first look at what a step does, then the recording of the operation."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any, NoReturn

import numpy as np

from fad import tree
from fad.capture.body.context import bind_result, current, recording_body, refuse, report
from fad.capture.body.draws import states_reached
from fad.capture.body.labels import close_name, is_opened_label, open_name
from fad.capture.body.outcomes import (
    END,
    NOTHING,
    Outcome,
    add_raises,
    count_raises,
    find_raises,
    kind_of,
    note_raise,
    value_of,
)
from fad.capture.body.places import UNBOUND, Attribute, Elements, Item, Variable
from fad.capture.body.state import (
    check_replaceable,
    fresh,
    is_state,
    is_written,
    reached_things,
    replace,
    require_body,
    type_example,
)
from fad.capture.body.trial import TrialTrace
from fad.capture.body.unseen import Holdings
from fad.capture.containers.number_dicts import Unsuitable
from fad.capture.containers.row_lists import note_written_rows
from fad.capture.recording.integer_range import FIT, GROW, judge_integers, state_interval
from fad.capture.recording.step import NeedsFirstStep, Step
from fad.capture.rewriting.sites import Loop
from fad.control_flow import record_loop
from fad.control_flow.bodies.intervals import assume, fits
from fad.control_flow.bodies.loop_layout import Operands, Outputs
from fad.control_flow.bodies.subgraph import BodyTrace, Unrecordable, example
from fad.core.runs import effects
from fad.core.tracing.ended_runs import run_to_end
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, up_to_date
from fad.core.tracing.tracer import outcome as ask_value
from fad.core.tracing.values import traces_of
from fad.core.tracing.views import finding_writes
from fad.staging.counters import leave_count
from fad.staging.may_raise import Refused
from fad.staging.record import recorder, recording_by
from fad.staging.record_trace import LARGEST, RecordTrace
from fad.transforms.batching.batch_trace import BatchTrace

_TRIALS = 8
_FIRST_CAPACITY = 4096  # steps for which there are arrays at first of what a while loop appends
_GROWTH = 16  # how many times as many there are in the next attempt
_TOO_LARGE = "an integer of Python's may leave 64 bits"


class NotCaptured(Exception):
    """A loop is to be run as Python runs it."""


class NeedsOtherStart(Exception):
    """A loop may be captured if some of its state is bound to numbers of another type before it, equal to its own."""

    def __init__(self, numbers: dict[Any, float]):
        super().__init__()
        self.numbers = numbers


class Capture:
    """One attempt to capture a loop, of which at most so many steps are known, and whether there is any for certain."""

    def __init__(self, site: Loop, body: Callable, test: Callable | None, most: int | None, runs: bool, peel: bool):
        self.site = site
        self.step = Step(site, body, test)
        self.most = most
        self.runs = runs
        self.counted = type(most) is int and test is None and runs  # whether it is known how many steps there are
        self.peel = peel  # whether a first step may be run apart
        self.work = 0  # operations of a step
        self.branches = False  # whether values decide in it which of them are done
        self.leaves = False  # whether a step may end by break, return or raise
        self.raises = False  # whether a function may raise that it calls
        self.traced = False  # whether anything in it is traced
        self.entry: dict[Any, Any] = {}  # what names are bound to before the loop
        self.touched: dict[int, tuple] = {}  # lists that a look has read or written by a counter
        self.entered: dict[Any, Any] = {}  # and in the step that is looked at, before it has begun
        self.becomes: set[Any] = set()  # what a step binds to floating-point numbers
        self.why: Any = None

    def over(self, n: Any, item: Callable, limit: int) -> Outcome | None:
        """Capture a loop of n steps; return how it ended. Raises NotCaptured where it is short, or cannot be."""
        self.step.lists.note_steps(n)
        if type(n) is not int:
            self.step.lists.allow_masked(self.most)
        with self._reporting_errors():
            return self._over(n, item, limit)

    def _over(self, n: Any, item: Callable | None, limit: int) -> Outcome | None:
        self.prepare(n, item)
        if self.branches and current() is not None:  # which say nothing of those of the next step
            limit = 0
        if type(n) is int and (not self.traced or n * self.work <= limit):
            self.leave_to_python("unrolled", f"{n} steps", refused=not self.traced)
        self._check_draws(None if self.leaves else n)
        if self.leaves:
            return self._stopping(n, item, limit)
        self.step.draws.draw(n)
        try:
            self._record_steps(n, item)
        except BaseException:
            self.step.draws.put_back()
            raise
        return None

    def _check_draws(self, n: Any) -> None:
        """Give up if the steps draw what cannot be drawn before them, n times."""
        self.why = self.step.draws.find_refusal(n)
        if self.why is not None:
            self.give_up()

    def _record_steps(self, n: Any, item: Callable | None) -> None:
        """Record a loop of n steps."""

        def step(state: tuple, k: Any) -> tuple:
            state, outcome = self.step.run(state, k, item)
            if not self.leaves:
                self._check_stays(outcome)
            return state, self.step.lists.rows

        first = self.step.first()
        found = record_loop.scan(
            step,
            first,
            None,
            n,
            False,
            "sqrt",
            True,
            bound=self.most,
            peeled=0,
            failed=self.note_failure,
            accept=self.has_small_integers,
            at_once=True,
        )
        self.finish(None if found is None else found[0], n, rows=None if found is None else found[1])

    def until(self, limit: int) -> Outcome | None:
        """Capture a loop that stops by itself."""
        self.step.lists.note_steps(_FIRST_CAPACITY if self.step.lists.allowed else None)
        self.prepare(None, None)
        if not self.traced:
            self.leave_to_python("unrolled", "nothing in it is traced", refused=True)
        self._check_draws(None)
        with self._reporting_errors():
            return self._stopping(None, None, limit)

    @contextlib.contextmanager
    def _reporting_errors(self) -> Iterator[None]:
        """Report that the loop raises for the values at hand: then it may be recorded step by step."""
        try:
            yield
        except Refused as why:
            what = "an error" if type(why.error) is RuntimeError else type(why.error).__name__
            report(self.site.file, self.site.line, "recorded step by step", f"it raises {what} for the values at hand")
            raise

    def _stopping(self, n: Any, item: Callable | None, limit: int) -> Outcome | None:
        """Record a loop that stops by its condition, or by break or return."""
        leaves, lists, raised = self.leaves, self.step.lists.known, find_raises()
        capacity = self.step.lists.find_capacity() if n is None else None
        if n is None and capacity is None:
            self.step.lists.note_steps(None)
        if lists and self.step.value:
            self.why = "it appends to a list, and returns from within the loop"
            self.give_up()

        def goes_on(state: tuple) -> Any:
            k, kind, _, inner = state
            go = np.less(k, n) if n is not None else self.step.ask(inner, k)
            go = go if capacity is None else np.logical_and(go, np.less(k, capacity))
            for x in raised if n is None else ():
                go = np.logical_and(go, np.logical_not(x))
            return np.logical_and(go, np.equal(kind, END)) if leaves else go

        def step(state: tuple) -> tuple:
            k, kind, value, inner = state
            if n is not None or capacity is not None:
                assume(k, 0, capacity if n is None else n)
            inner, outcome = self.step.run(inner, k, item)
            new = value_of(outcome)
            if not leaves:
                self._check_stays(outcome)
            if new and not value:  # no way of the first look returned
                self.step.value = type_example(new)
                raise Unrecordable(recorder.get(), "its first look saw no return")  # type: ignore[arg-type]
            kind = np.int64(0) + kind_of(outcome) if leaves else kind
            return (k + 1 if n is not None or lists else k), kind, new or value, inner

        def record() -> list | None:
            init = (0, np.int64(END), self.step.value, self.step.first())
            return record_loop.while_loop(
                goes_on, step, init, bound=None if current() is None else self.most, failed=self.note_failure,
                accept=lambda operands, params: self.is_long(operands, params, limit),
            )  # fmt: skip

        seen = self.step.value
        found = record()
        if found is None and self.step.value is not seen:  # with a value of the type that was returned
            found = record()
        if found is None:
            self.give_up()
        k, kind, value, inner = found[0]
        if lists:  # which are as long as there are steps: the program is for this number of them
            steps = int(k)
            if n is None:
                self.step.lists.note_steps(steps if steps != capacity else _GROWTH * capacity)
            if capacity is not None:  # the arrays of all elements shall be as long
                self.prepare(None, None)
            if steps == capacity:
                return self._stopping(n, item, limit)
            self._record_steps(steps, item)
        else:
            value = fresh(value)
            self.finish(inner, n, value)
        outcome = Outcome(kind, () if lists else value) if leaves else None
        if self.raises:
            note_raise(outcome)
        return outcome

    def _check_stays(self, outcome: Outcome | None) -> None:
        if outcome is not None:
            raise Unrecordable(recorder.get(), "its first look saw no break, return or raise")  # type: ignore[arg-type]

    def has_small_integers(self, operands: list, params: dict) -> bool:
        """Return whether Python's integers in a loop stay within 64 bits."""
        parts = Operands.split(operands, params)
        first, consts = [*map(state_interval, parts.carry)], [*map(state_interval, parts.consts)]
        found = judge_integers(params, first, consts, self.most)
        # A program finds out while it runs, and leaves such a call to Python. In a batch there is one path for all.
        batched = any(isinstance(trace, BatchTrace) for x in operands for trace in traces_of(x))
        if found == FIT and not (batched and self.step.number_lists.hold_integers()):
            return True
        if batched or (found == GROW and self.counted):
            self.why = _TOO_LARGE
            return False
        return True

    def is_long(self, operands: list, params: dict, limit: int) -> bool:
        """Return whether a loop takes more steps, on the values at hand, than are recorded one by one."""
        if not self.has_small_integers(operands, params):
            return False
        shown = Operands.split([example(x) for x in operands], params)
        if not limit or any(type(x) is Tracer and isinstance(x.owner, BodyTrace) for x in operands):
            return True
        state, steps = shown.carry, 0
        with np.errstate(all="ignore"):
            while state[0] and steps * self.work <= limit:
                try:
                    state = Outputs.split(params["body"](*shown.consts, *state), params).carry
                except Exception as error:  # Python shall raise it, at the user's line
                    self.why = error
                    return False
                steps += 1
                if any(type(x) is int and abs(x) > LARGEST for x in state):
                    self.why = _TOO_LARGE
                    return False
        if state[0]:
            return True
        self.why = steps
        return False

    def finish(self, state: Any, n: Any, returned: Any = (), rows: Any = None) -> None:
        """Let names and arrays be what the loop made of them."""
        if state is None:
            self.give_up()
        values, arrays, lates = state
        step = self.step
        for name, x in zip((*step.names, *step.late), step.as_left([*values, *lates]), strict=True):
            unread = current() is None and type(name) is str and name not in self.site.behind
            if current() is None and name in step.outer:  # what counts the steps is a number behind the call
                leave_count(step.cells[name], _find_count(x))
            elif not (unread and is_opened_label(x)):  # which label it is would be asked
                bind_result(step.cells[name], close_name(fresh(x)))
        for root, new in zip(step.roots, arrays, strict=True):
            replace(root, new)
        step.number_lists.finish()
        if rows:
            step.lists.extend(rows, n, self.most if type(n) is Tracer else n)
        step.note_links(self.runs, returned)
        carried = ", ".join([*map(str, step.names), *(f"an array of shape {x.shape}" for x in step.roots)])
        steps = f"{n} steps" if type(n) is int else "as many steps as it takes"
        report(self.site.file, self.site.line, "captured", f"{steps}, state {carried or 'none'}")

    def note_failure(self, why: Any) -> None:
        """Note why the loop cannot be captured."""
        self.why = why

    def give_up(self) -> NoReturn:
        """Let the loop be run by Python, or its next step before another attempt."""
        why = self.why
        if type(why) is int:
            self.leave_to_python("unrolled", f"{why} steps")
        if numbers := self._find_other_start():
            raise NeedsOtherStart(numbers)
        if self.peel and (why is None or isinstance(why, record_loop.BecomesNumber)):
            raise NeedsFirstStep
        text = "its state does not keep its type" if why is None else str(why)
        if isinstance(why, Exception):
            text = f"its body raises {type(why).__name__}" + (f": {text}" if text else "")
        if isinstance(why, BaseException):  # whose traceback holds this object and the arrays of the body
            why.__traceback__ = why.__context__ = None
        line = getattr(why, "line", "")
        self.leave_to_python("recorded step by step", f"{text} (at {line})" if line else text, refused=True)

    def _find_other_start(self) -> dict[Any, float]:
        """Return integers of the state as floating-point numbers that they may become: ``s = 0``, in an if ``s += y``.

        So where an inner loop adds to it that may have no step. A program can tell the types apart, before anything is
        added, as it can those of two ways of an if.
        """
        if not isinstance(self.why, Unrecordable):
            return {}
        names = [name for name in self.becomes if type(name) in (str, Attribute, Item, Variable)]
        before = {name: self.step.content(name) for name in names}
        return {name: float(x) for name, x in before.items() if type(x) is int and fits(x, np.dtype(np.float64))}

    def leave_to_python(self, what: str, detail: str, refused: bool = False) -> NoReturn:
        """Report that the loop is not captured, and whether it could not be, however long it is."""
        report(self.site.file, self.site.line, what, detail, refused)
        self.step.number_lists.forget()
        raise NotCaptured

    # --- a first look ---------------------------------------------------------------------------------------------

    def prepare(self, n: Any, item: Callable | None) -> None:
        """Find out what a step changes, by running it until what is carried is what it changes."""
        mark = Trace().birth
        step = self.step
        functions = [f for f in (step.body, step.test) if f is not None]
        draws = states_reached(functions)
        try:
            with Holdings(reached_things(functions), functions) as holdings:
                for _ in range(_TRIALS):
                    changed = self._try_or_fill(n, item, holdings, mark)
                    if draws.put_back():
                        self.why = "it draws random numbers"
                        break
                    if not changed:
                        return
                else:
                    self.why = "what it changes is not the same in every step"
        except Unrecordable as why:
            if why.trace.birth < mark:
                raise
            unfilled = step.number_lists.find_unfilled()
            if self.peel and unfilled is not None:
                raise NeedsFirstStep(lambda: sum(x is not None for x in unfilled)) from None
            if self.peel and (count := step.lists.count_missing()):
                raise NeedsFirstStep(count) from None
            self.why = why
        except NeedsFirstStep:
            if self.peel:
                raise
            self.why = "its state is not bound before it, or is no array"
        except Unsuitable as why:
            self.why = str(why)
        except Exception as error:
            self.why = error
        finally:
            draws.put_back()
        self.give_up()

    def _try_or_fill(self, n: Any, item: Callable | None, holdings: Holdings, mark: float) -> bool:
        """Run a step, as `_try` does; where it shows what grows in another way than was thought, let it run again."""
        try:
            return self._try(n, item, holdings)
        except Unrecordable as why:
            lists = self.step.lists
            if why.trace.birth < mark or not (lists.fill(self.step.cells) or lists.preallocate() or lists.unfill()):
                raise
            return True

    def _try(self, n: Any, item: Callable | None, holdings: Holdings) -> bool:
        """Run a step; return whether it showed that more is carried, or less, than was thought."""
        step, trace = self.step, TrialTrace()
        self.entry = step.before = {}
        step.look_who_knows()
        self.entry = step.before = {name: step.content(name) for name in step.bound}
        written = finding_writes(undoable=True)
        with np.errstate(all="ignore"), recording_by(trace), effects.recording(undo=True) as log:
            try:
                with written, recording_body(trace, True, self.entered):
                    changed = self._look(trace, n, item)
                    if log.restore():
                        refuse("its steps change state outside of it")
                    for root in step.roots:
                        check_replaceable(root)
                for root, _ in written.found:
                    changed = step.add_root(root) or changed
            finally:
                written.undo()
                trace.finish()
                unseen = holdings.put_back()
        if unseen is not None:  # what is made once, and kept, is not made in the steps behind the first one
            if self.peel:
                raise NeedsFirstStep
            raise Unrecordable(trace, f"it changes {unseen} by code that is not seen, as a property or an operator")
        step.forget_made()
        changed = step.look_at_lists(self.touched) or changed
        self.work = len(trace.equations) + trace.inner_work
        self.branches = trace.branches > 0
        state = [*(x for x, _ in trace.captured), *tree.leaves(step.first())]
        self.traced = trace.decides or any(type(x) is Tracer and not x.owner.physical for x in state)
        trace.captured.clear()  # an array that lives on is to a body around one from outside
        return changed

    def _look(self, trace: Any, n: Any, item: Callable | None) -> bool:
        step = self.step
        values, arrays, _ = tree.map(lambda x: trace.new(example(x)), step.first())
        given = {name: fresh(x) for name, x in zip(step.names, values, strict=True)}
        with step.enter(list(given.values()), arrays):
            self.entered.clear()
            self.entered.update({name: step.content(name) for name in step.names})
            number, most = trace.new(0), step.lists.find_capacity() if n is None else n
            if most is not None:
                assume(number, 0, most)
            with step.stand_for_lists(require_body(), number):
                if step.test is not None:
                    step.check_test()
                outcome = run_to_end(trace, lambda: step.body(*([] if item is None else [item(number)])))
                self.raises = count_raises() > 0
                outcome = add_raises(outcome)
                roots = [x for x in step.roots if is_written(x)]
                self.entry.update(step.add_places())
                changed = self._compare(given)
                changed = (step.lists.allowed and step.add_lists()) or changed
                self.entered.clear()  # what was written lives on where somebody knows it; nobody here shall
                # Of inner loops one step is run, which does not show all.
                self.leaves = self.raises or (self.site.leaves and (outcome is not None or self.site.nested))
                if not is_state(value_of(outcome)):
                    refuse("it returns something that is no array")
                step.value = NOTHING if outcome is None else type_example(value_of(outcome))
                if not (note_written_rows(require_body()) or changed):
                    step.check_aliases(given, value_of(outcome))
                step.forget_given()
            self.touched = require_body().touched
        if not changed and len(roots) == len(step.roots):
            step.check_shared(given, self.peel)
        changed = changed or len(roots) < len(step.roots)
        step.roots = roots
        return changed

    def _compare(self, given: dict[str, Any]) -> bool:
        """Adjust what is carried to what the step did; return whether it was something else."""
        step, changed, late = self.step, False, {}
        for name in [*step.bound]:
            now, before = step.content(name), self.entry[name]
            if name in given:
                if type(now) is Tracer and example(now).__class__ in (float, np.float64):
                    self.becomes.add(name)
                if now is self.entered[name]:  # it is bound to what it was bound to before
                    step.names.remove(name)
                    changed = True
                elif step.join(name):
                    changed = True
                elif not _is_like(open_name(now), given[name]) or name not in step.alone:
                    raise _needs_step(step.cells[name], given[name], open_name(now))
            elif now is before or now is UNBOUND:
                continue
            elif step.is_carried(name) or (name in self.site.behind and not self.runs):
                if before is UNBOUND or not is_state(open_name(before)):
                    raise NeedsFirstStep
                step.names.append(name)
                changed = True
            elif name in self.site.behind:
                if not is_state(open_name(now)):
                    refuse(f"it binds {name}, which is read behind the loop, to something that is no array")
                late[name] = type_example(open_name(now))
        changed = changed or late.keys() != step.late.keys()
        step.late = late
        return changed


def _needs_step(cell: Any, before: Any, now: Any) -> NeedsFirstStep:
    """Return what says that another step is to be run, or as many as fill a list or deque."""
    fills = isinstance(cell, Elements) or {type(before), type(now)} <= {list, tuple}
    if fills and len(now) > len(before):
        return NeedsFirstStep(lambda: len(cell.cell_contents))
    return NeedsFirstStep()


def _find_count(x: Any) -> Any:
    """Return a traced integer as the program has it, without the traces of derivatives; in a batch its value."""
    while type(x) is Tracer and not isinstance(x.owner, RecordTrace):
        if isinstance(x.owner, BatchTrace):
            return ask_value(x).tolist()
        x = up_to_date(x).wrapped
    return x if type(x) is Tracer else np.asarray(x).tolist()


def _is_like(x: Any, y: Any) -> bool:
    """Return whether a value can be what another is in the next step: both have the same parts."""
    return is_state(x) and tree.structure(x) == tree.structure(y)
