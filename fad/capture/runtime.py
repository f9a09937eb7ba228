"""What converted code calls: the helpers of one function, which know its loops and branches."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from fad import config
from fad.capture.body import outcomes, places, values
from fad.capture.body.context import current, forget, report, reporting
from fad.capture.callees import calls, printing
from fad.capture.choices import branches
from fad.capture.containers import dict_methods
from fad.capture.iteration import folds, generators, iterables
from fad.capture.recording import loops
from fad.capture.rewriting.convert import Sites
from fad.capture.rewriting.expressions import is_made
from fad.core.runs import transformed
from fad.transforms.arguments.mutation import recording


class _as_local:
    """Raise the error of a local variable without a value as such: to a body, it is a variable of the code around."""

    __slots__ = ("_sites",)

    def __init__(self, sites: Sites):
        self._sites = sites

    def __enter__(self) -> None:
        pass

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        if kind is not NameError or error.name not in self._sites.local or "free variable" not in str(error):
            return
        while traceback.tb_next is not None:
            traceback = traceback.tb_next
        if is_made(traceback.tb_frame.f_code):
            message = f"cannot access local variable '{error.name}' where it is not associated with a value"
            raise UnboundLocalError(message) from None


class Helpers:
    """The helpers of a converted function, under the name that its code knows."""

    __slots__ = ("_sites",)

    def __init__(self, sites: Sites):
        self._sites = sites

    call = staticmethod(calls.prepare_call)
    sequence = staticmethod(iterables.sequence)
    generate = staticmethod(generators.generate)
    call_generator = staticmethod(generators.call_generator)
    elements_of = staticmethod(iterables.elements_of)
    items = staticmethod(iterables.items)
    is_builtin = staticmethod(generators.is_builtin)
    iterate_over = staticmethod(iterables.iterate_over)
    context = staticmethod(calls.check_context)
    append_to = staticmethod(calls.append_to)
    join = staticmethod(calls.join)
    join_in_brackets = staticmethod(calls.join_in_brackets)
    make_text = staticmethod(printing.make_text)
    text_of_parts = staticmethod(printing.text_of_parts)
    text_of_percent = staticmethod(printing.text_of_percent)
    text_of_format = staticmethod(printing.text_of_format)
    text_of_two = staticmethod(printing.text_of_two)
    made = staticmethod(values.note_made)
    getitem = staticmethod(values.getitem)
    setitem = staticmethod(calls.set_item)
    delete_item = staticmethod(calls.delete_item)
    setattr = staticmethod(calls.set_attribute)
    update = staticmethod(dict_methods.update)
    slice = staticmethod(slice)
    and_ = staticmethod(branches.and_)
    or_ = staticmethod(branches.or_)
    not_ = staticmethod(branches.not_)
    is_ = staticmethod(branches.is_)
    in_ = staticmethod(branches.in_)
    choose = staticmethod(branches.choose)
    compare = staticmethod(branches.compare)
    finished = staticmethod(outcomes.is_finished)
    returned = staticmethod(outcomes.is_return)
    raised = staticmethod(outcomes.is_raise)
    leave_if_raised = staticmethod(outcomes.leave_if_raised)
    again = staticmethod(outcomes.again)
    module_of = staticmethod(places.module_of)
    outcome = staticmethod(outcomes.tell_outcome)
    jumped = staticmethod(outcomes.has_jumped)
    stop = staticmethod(outcomes.stop)
    result = staticmethod(outcomes.result)
    run_tried = staticmethod(outcomes.run_tried)
    result_or_raise = staticmethod(outcomes.result_or_raise)

    @staticmethod
    def text_of_value(f: Callable, x: Any) -> Any:
        """Return ``str(x)`` or ``repr(x)`` for a text, unless these names stand for something else."""
        return printing.text_of_value(f, x) if f in (str, repr) else calls.prepare_call(f)(x)

    @staticmethod
    def broken() -> outcomes.Outcome:
        """Return the outcome of ``break``."""
        return outcomes.BREAK

    @staticmethod
    def captures() -> bool:
        """Return whether a body is being recorded, which is to run for other values, too."""
        return current() is not None

    @staticmethod
    def raising() -> outcomes.Outcome:
        """Return the outcome of ``raise``."""
        return outcomes.RAISE

    @staticmethod
    def returning(value: Any) -> outcomes.Outcome:
        """Return the outcome of ``return value``."""
        return outcomes.Outcome(outcomes.RETURNED, (value,))

    def for_(self, number: int, iterable: Any, body: Callable) -> Any:
        """Run a ``for`` loop."""
        site = self._sites.loops[number]
        with _as_local(self._sites):
            return loops.run_for(site, iterable, body)

    def while_(self, number: int, test: Callable, body: Callable) -> Any:
        """Run a ``while`` loop."""
        site = self._sites.loops[number]
        with _as_local(self._sites):
            return loops.run_while(site, test, body)

    def if_(self, number: int, test: Any, then: Callable, orelse: Callable) -> Any:
        """Run an ``if`` statement."""
        site = self._sites.branches[number]
        with _as_local(self._sites):
            return branches.run_if(site, test, then, orelse)

    def run_block(self, block: Callable) -> Any:
        """Run the block of a ``try`` as Python runs it."""
        with _as_local(self._sites):
            return block()

    def note(self, number: int) -> None:
        """Report a loop whose text says that it cannot be captured."""
        site = self._sites.loops[number]
        report(site.file, site.line, "recorded step by step", site.reason)


def _as_recorded(fun: Callable) -> Callable:
    if recording.get() is None:
        return fun
    if config.loops.get() == "record":
        forget()
        return fun
    return calls.run_converted(fun)


__all__ = ["Helpers", "reporting"]
calls.make_helpers.append(Helpers)
calls.folds.update(folds.FOLDS)
transformed.conversions.append(_as_recorded)
