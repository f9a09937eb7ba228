"""A run of a user's function by a transform: with NumPy's overlay if it needs that, and again if it failed without."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad.core.runs.callees import writes_arrays
from fad.core.runs.journal import JOURNAL, forget
from fad.core.runs.outside import MANY, copies, has_changed, lend, reaches_device, restore, take_back
from fad.core.runs.overlay import is_exchanged, swap_in, swap_out
from fad.core.runs.overlay_needs import (
    Needs,
    find_catching,
    find_constructing,
    find_frames,
    find_reach,
    is_in_sparse_matrix,
    is_learned,
    is_met_in_library,
    is_of_array,
    is_refused_by_c,
    learn,
    learn_to_widen,
    needs_of,
    remember,
)
from fad.core.tracing.conversions import is_offered
from fad.core.tracing.like_users import is_like_users, sees_overlay
from fad.core.tracing.views import RUNS
from fad.errors import BatchedValueError, ItemAssignmentError, TracerConversionError, UnsupportedInputError

_MOST_RUNS = 8  # of one function, each of which meets another that needs NumPy's overlay


class Running:
    """A transform that runs a function of the user's: NumPy's overlay is in place if the function needs it.

    It runs from the making of this on; ``with`` ends it. `user` is the function of the user's, where that is all that
    `function` calls, with arguments that it holds. `before` are copies of arrays that the function finds by name, if
    there are any. `as_before` is what was exchanged when the function ran for the first time (`swapped_in`). `order` is
    how many derivatives the transform takes.
    """

    spaces: tuple = ()
    lent: Sequence[tuple] = ()
    before: Sequence[tuple] = ()
    unknown: Sequence[tuple] = ()
    constructs: tuple = ()
    wide = False
    opens = False  # whether structured arrays have handles for its sake

    def __init__(
        self,
        function: Callable,
        user: Callable | None = None,
        before: Sequence[tuple] = (),
        as_before: tuple | None = None,
        order: int = 0,
    ):
        self.function = function
        self.user = user = user or function
        needs = needs_of(user)
        plain = needs.nothing and not before and as_before is None
        found, lends = ((), False) if plain else self._find_needed(needs, before, as_before)
        self.effects = JOURNAL.next
        self.runs = runs = RUNS.__dict__  # what is known in this thread, found once
        self.refused, runs["refused"] = runs["refused"], None  # before this run, in the function around it
        self.around = runs["depth"]
        runs["depth"] = self.around + 1
        self.orders = runs["orders"]
        runs["orders"] = self.orders + order
        if found:
            self._overlay(found)
        if lends:
            self.lent = lend(function)

    def _find_needed(self, needs: Needs, before: Sequence[tuple], as_before: tuple | None) -> tuple[tuple, bool]:
        """Return where the overlay is to be, and whether arrays from outside are to have handles."""
        found, self.wide, self.constructs = needs.spaces, needs.wide, needs.constructs
        if as_before is not None:
            found = (*found, *[s for s in as_before[0] if all(s is not t for t in found)])
            self.wide, self.constructs = self.wide or as_before[1], self.constructs + as_before[2]
        self.before = before
        if needs.first:
            needs.note_run()
            self.before = before or copies([self.function])
        return found, needs.failed or (as_before is not None and self.wide)

    def __enter__(self) -> Running:
        return self

    def _overlay(self, spaces: tuple) -> None:
        RUNS.buffers += not self.spaces
        RUNS.structured += self.wide - self.opens
        self.opens = self.wide
        self.spaces += spaces
        swap_in(spaces, self.wide, self.constructs)

    def run(self, call: Callable, own_error: Callable) -> Any:
        """Return what a call of the function gives, after a second one where `retry` says so.

        That runs when the first one's error is done with: its own then has no other before it in the traceback.
        """
        try:
            result = call()
        except Exception as error:
            if not self.retry(error, own_error(error)) and not self.passed_over(error):
                raise
        else:
            if self.runs["refused"] is None or not self.passed_over():
                return result
        return self.again(call, own_error)

    def passed_over(self, error: Exception | None = None) -> bool:
        """Return whether the function should run again, for it caught the error of a function that fad has, or a write.

        So does a program that tries one function, and goes on with another where that raises. A polynomial's operator
        says that it knows no such operand, and Python raises `error`.
        """
        refused, self.runs["refused"] = self.runs["refused"], None
        caught = find_catching(refused)
        if caught is None or not sees_overlay(caught.f_code.co_filename):
            return False  # solvers of fad's catch it for reasons of their own
        frames = find_frames(refused)
        if is_like_users(caught.f_code.co_filename):
            known = all(any(frame.f_globals is s for s in self.spaces) for frame in frames)
            return not known and self.retry(refused, refused, [] if error is None else find_frames(error))
        around = [] if frames else [caught]
        frames = [*around, *frames]
        helps = is_offered(getattr(refused, "caller", "")) or writes_arrays(frames[-1].f_code)
        known = is_learned(frames) and all(any(frame.f_globals is s for s in self.spaces) for frame in frames)
        return helps and not known and self.retry(refused, refused, around)

    def retry(self, error: Exception, own: BaseException, around: Sequence = ()) -> bool:
        """Return whether a function that failed should run again, with what had not been in place.

        That is the overlay, and handles on the arrays from outside. `own` is fad's error, on which a library may have
        put another, `error`; if it is no Exception, it is raised. What the run wrote into arrays from outside is
        undone; its effects are not repeated. `around` are frames of functions around those of `error`.
        """
        if not isinstance(own, Exception):
            raise own
        refused = isinstance(own, (TracerConversionError, BatchedValueError)) or is_met_in_library(own)
        refused = refused or (isinstance(own, UnsupportedInputError) and is_in_sparse_matrix(own))
        if not refused and not is_refused_by_c(own):
            return False
        if reaches_device(self.function):
            return False  # what the run wrote into arrays of a device is not undone
        found, writes, failed = learn(error, self.spaces, self.wide, around)
        found += tuple(s for s in needs_of(self.function).spaces if all(s is not t for t in (*found, *self.spaces)))
        frames = find_frames(error)
        constructs = find_constructing((frame.f_code, frame.f_globals) for frame in frames)
        more = tuple(s for s in constructs if all(s is not t for t in self.constructs))
        self.constructs += more
        found += more
        if found or writes:
            saved = {id(x) for x, _ in self.before}
            reached = copies([self.function, *find_reach(error)], MANY, sys.maxsize)
            self.unknown = [(x, then) for x, then in reached if type(x) is np.ndarray and id(x) not in saved]
        lent = lend(self.function) if failed and not found and not self.lent else []
        if found:
            self._overlay(found)
        self.lent = [*self.lent, *lent]
        if not found and not lent:
            return self._widen(error)
        self._give_up(error, own)
        return True

    def _give_up(self, *errors: BaseException) -> None:
        """Undo what a run did that failed by errors, and let go of what it made: traces hold on to the last error."""
        restore(self.before)
        JOURNAL.next = self.effects
        for error in errors:
            error.__traceback__ = error.__context__ = error.__cause__ = None

    def again(self, run: Callable, own_error: Callable) -> Any:
        """Return what a second run gives; raise if it writes into arrays that were not copied before the first.

        What the first run wrote there nobody knows, but the second does again what the first did: if it leaves the
        arrays alone, or writes what they held, nothing was written twice.
        """
        result = self._run_until_known(run, own_error)
        remember(self.user, self.spaces, bool(self.lent), self.wide, self.constructs)
        for x, then in self.unknown:
            if has_changed(x, then):
                raise ItemAssignmentError(
                    f"a function picked while the program ran wrote into an array of shape {x.shape} and dtype "
                    f"{x.dtype} from outside, and a traced value into one of its own, for which it had to run again: "
                    "the array from outside may have been changed twice. Put back what it held and call again, for "
                    "the function is known now; or make the array in the function, and return it"
                )
        return result

    def _run_until_known(self, run: Callable, own_error: Callable) -> Any:
        """Return what a run gives, after others as long as each fails in a function of which nothing was known."""
        for _ in range(_MOST_RUNS):
            self.runs["refused"] = None
            try:
                result = run()
            except Exception as error:
                if not self.retry(error, own_error(error)) and not self.passed_over(error):
                    raise
            else:
                if self.runs["refused"] is None or not self.passed_over():
                    return result
        return run()

    def _widen(self, error: Exception) -> bool:
        """Let all of NumPy's functions take lists and return handles, if a run with the overlay failed; return whether.

        That may help where a write failed, or where NumPy was to make a plain array. If it did not, handles on the
        arrays from outside may, whose methods and indices take traced values (``a.dot(x)``, ``a[np.argsort(x)]``). They
        come last, for to find these arrays takes time in each call; but at once where a library was given a traced
        value, for what stands in for its objects is lent with them.
        """
        frames = find_frames(error)
        widens = not self.wide or not all(is_exchanged(frame.f_globals) for frame in frames)
        if not frames or (self.lent and not widens):
            return False
        of_library = is_refused_by_c(error) or is_offered(getattr(error, "caller", ""))
        of_library = of_library or is_in_sparse_matrix(error)
        if not (writes_arrays(frames[-1].f_code) or is_of_array(error) or of_library):
            return False
        if not self.lent and (of_library or not widens):
            self.lent = lend(self.function)
            if not widens and not self.lent:
                return False
        if widens:
            learn_to_widen(frames, of_library)
            self.wide = True
            self._overlay(tuple({id(frame.f_globals): frame.f_globals for frame in frames}.values()))
        self._give_up(error)
        return True

    def __exit__(self, *_: Any) -> None:
        runs = self.runs
        runs["depth"] = self.around
        runs["orders"] = self.orders
        if self.around:
            runs["refused"] = runs["refused"] or self.refused
        else:
            runs["refused"] = None
            if runs["effects"]:
                forget()
        if self.lent:
            take_back(self.lent)
        if self.spaces:
            RUNS.buffers -= 1
            RUNS.structured -= self.opens
            swap_out(self.spaces)
