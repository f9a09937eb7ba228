"""Questions about values that differ from step to step: both ways are recorded, and joined by ``cond``.

A way is a function of the variables around it. What it reads is lifted into its own program, so that an operation that
is not reached does nothing, not even to a derivative; what it binds and the arrays that it writes are its results.
"""

from __future__ import annotations

import enum
import operator
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.context import (
    current,
    in_one_way,
    is_staged,
    noting_changes,
    put_back,
    refuse,
)
from fad.capture.body.keyed_looks import DICTIONARIES
from fad.capture.body.labels import Label, close_name, is_one_of, open_name
from fad.capture.body.objects import is_known_alone
from fad.capture.body.outcomes import END, Outcome, value_of
from fad.capture.body.places import UNBOUND, Item, bind_name, cells_of, content
from fad.capture.body.state import (
    is_state,
)
from fad.capture.body.values import as_number, has_key, to_boolean
from fad.capture.choices.choice import NO_BRANCH, Choice
from fad.capture.choices.common_types import NUMBERS
from fad.capture.containers.growing_lists import truth_of
from fad.capture.containers.growth import Ways
from fad.capture.containers.number_dicts import NumberDict
from fad.capture.rewriting.sites import Branch
from fad.control_flow.bodies.subgraph import example
from fad.core.programs.graph import Equation, has_effects
from fad.core.programs.refusals import may_refuse
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import finding_writes
from fad.staging.may_raise import raises_for_numbers
from fad.staging.record import recorder

_EXACT = 2**53  # below which an integer is a floating-point number
def run_if(site: Branch, test: Any, then: Callable, orelse: Callable) -> Outcome | None:
    """Run an ``if`` statement; return how it ended."""
    test = truth_of(test)
    if not is_staged(test):
        return then() if test else orelse()
    body = current()
    if body.trial:  # type: ignore[union-attr]
        return _try_both(site, then, orelse)
    return Choice(site, (then, orelse)).record(to_boolean(test))


def choose(test: Any, then: Callable, orelse: Callable) -> Any:
    """Return the value of ``then() if test else orelse()``."""
    test = truth_of(test)
    if not is_staged(test):
        return then() if test else orelse()
    body = current()
    if body.trial:  # type: ignore[union-attr]
        body.trace.decides = True  # type: ignore[union-attr]
        first, second = _try_each(lambda: _evaluate(then), lambda: _evaluate(orelse), {})
        return close_name(_stronger(first, second))
    ways = [lambda f=f: Outcome(END, (_evaluate(f),)) for f in (then, orelse)]
    choice = Choice(NO_BRANCH, (then, orelse), ways)
    return close_name(value_of(choice.record(to_boolean(test)))[0])


def _evaluate(way: Callable) -> Any:
    """Return the value of an expression that only some steps evaluate, with objects as their attributes."""
    place = Item([way()], 0)
    if not is_known_alone(place):
        refuse("it chooses between objects that may have other names")
    found = open_name(content(place))
    if not is_state(found):
        refuse("it chooses between things that are no arrays or numbers")
    return found


def and_(x: Any, rest: Callable) -> Any:
    """Return ``x and rest()``."""
    if not is_staged(x):
        return x and rest()
    return _logical(np.logical_and, x, rest, lambda: choose(x, rest, lambda: x))


def or_(x: Any, rest: Callable) -> Any:
    """Return ``x or rest()``."""
    if not is_staged(x):
        return x or rest()
    return _logical(np.logical_or, x, rest, lambda: choose(x, lambda: x, rest))


def _logical(combine: Callable, x: Any, rest: Callable, chosen: Callable) -> Any:
    """Evaluate both operands where that does no harm, and otherwise the second one where it decides."""
    trace: Any = recorder.get()
    if x.dtype != bool or x.shape:
        return chosen()
    before, body = len(trace.equations), current()
    raised = len(body.raised)  # type: ignore[union-attr]
    with finding_writes(undoable=True) as written, noting_changes(body) as changed:  # type: ignore[arg-type]
        y = rest()
    plain = type(y) is bool or isinstance(y, np.bool_) or (type(y) is Tracer and y.dtype == bool and not y.shape)
    harmless = not any(_does_harm(eq, trace.constants) for eq in trace.equations[before:])
    if not (written.found or changed) and plain and (harmless or body.trial):  # type: ignore[union-attr]
        return combine(x, y)
    written.undo()
    put_back(changed)
    del body.raised[raised:]  # type: ignore[union-attr]
    trace.discard(trace.equations[before:])
    return chosen()


def _does_harm(eq: Equation, constants: dict) -> bool:
    """Return whether an operation may raise, or does something, in steps in which Python does not do it."""
    raises = may_refuse(eq.prim, eq.ins) or raises_for_numbers(eq, constants)
    return raises or eq.prim.archetype in ("loop", "branch") or has_effects(eq)


def not_(x: Any) -> Any:
    """Return ``not x``."""
    x = truth_of(x)
    return as_number(np.logical_not(to_boolean(x))) if is_staged(x) else not x


_VALUES = (Tracer, bool, int, float, complex, np.generic, np.ndarray)


def is_(x: Any, y: Any) -> Any:
    """Return ``x is y``, which no operation computes: a flag of Python's that differs from step to step is a tracer."""
    if x is y or x is None or y is None:
        return x is y
    if Label in (type(x), type(y)):
        kind = (x if type(x) is Label else y).kind
        return x == y if issubclass(kind, enum.Enum) else refuse("`is` asks which text a value is; `==` can be asked")
    body = current()
    if body is not None and any(x is z or y is z for z in body.lent):
        refuse("`is` asks which object an element of a list is that differs from step to step")
    if all(isinstance(v, _VALUES) for v in (x, y)) and (is_staged(x) or is_staged(y)):
        refuse("`is` asks which object a value is that differs from step to step; `not done` and `==` can be asked")
    x, y = (y, x) if type(y) is Tracer else (x, y)
    flags = type(x) is Tracer and type(y) in (bool, np.bool_) and x.__class__ is type(y)  # there is one of each value
    return flags and bool(x) == bool(y)


def in_(x: Any, y: Any) -> Any:
    """Return ``x in y``."""
    if type(x) is Label:
        return is_one_of(x, y)
    if type(y) is NumberDict:
        return y.contains(x)
    if is_staged(x) and not x.shape and type(y) in (list, tuple, set, frozenset):
        return _is_element(x, y)
    return has_key(y, x) if type(y) in DICTIONARIES else x in y


def _is_element(x: Tracer, y: Collection) -> Any:
    """Return whether a number is in some plain numbers; what is no number it is not equal to."""
    numbers = [z for z in y if z is not None and not isinstance(z, str)]
    if not all(isinstance(z, (bool, int, float, np.number)) and np.abs(z) < _EXACT for z in numbers):
        return x in y
    return np.any(np.equal(np.array(numbers), x)) if numbers else False


_COMPARISONS = {
    "Lt": operator.lt, "LtE": operator.le, "Gt": operator.gt, "GtE": operator.ge, "Eq": operator.eq,
    "NotEq": operator.ne,
}  # fmt: skip


def compare(names: Sequence[str], left: Any, *operands: Callable) -> Any:
    """Return a chain of comparisons, ``a < b < c``; each operand is evaluated at most once."""
    right = operands[0]()
    found = _COMPARISONS[names[0]](left, right)
    if len(names) == 1:
        return found
    return and_(found, lambda: compare(names[1:], right, *operands[1:]))


# --- both ways in a first look ----------------------------------------------------------------------------------------


def _try_both(site: Branch, then: Callable, orelse: Callable) -> Outcome | None:
    """Run both ways of a branch within a body that is run to see what it does."""
    current().trace.branches += 1  # type: ignore[union-attr]
    current().trace.decides = True  # type: ignore[union-attr]
    cells = {name: cell for name, cell in cells_of(then, orelse).items() if name in site.names}
    first, second = _try_each(then, orelse, cells)
    if first is None and second is None:
        return None
    trace = current().trace  # type: ignore[union-attr]
    return Outcome(trace.new(np.int64(END)), value_of(first) or value_of(second))


def _try_each(then: Callable, orelse: Callable, cells: dict) -> tuple:
    """Run both ways, which may bind cells and parts of objects; leave bound what either binds."""
    before, ways = {name: content(cell) for name, cell in cells.items()}, Ways()
    with noting_changes(current()) as changed, in_one_way(current()):  # type: ignore[arg-type]
        with ways.one():
            first = then()
        before |= changed
        cells = cells | {place: place for place in changed}
        left = {name: content(cell) for name, cell in cells.items()}
        for name, cell in cells.items():
            bind_name(cell, before[name])
        with ways.one():
            second = orelse()
        left |= {place: x for place, x in changed.items() if place not in before}
        cells = cells | {place: place for place in changed}
        before |= changed
    ways.finish()
    for name, cell in cells.items():
        x, y = left[name], content(cell)
        if x is not y:
            bind_name(cell, _merge_marks(x, y, before[name]))
    return first, second


def _merge_marks(x: Any, y: Any, before: Any) -> Any:
    if x is UNBOUND or y is UNBOUND:
        return y if x is UNBOUND else x
    kept = (x is before, y is before)
    x, y, before = open_name(x), open_name(y), open_name(before)
    if any(kept):  # it must be seen that one way binds the name
        found = y if kept[0] else x
        return close_name(_stronger(found, before) if is_state(before) and is_state(found) else found)
    return close_name(_stronger(x, y) if is_state(x) and is_state(y) else x)


def _stronger(x: Any, y: Any) -> Any:
    """Return values of the types that a choice between two values has."""
    if tree.structure(x) != tree.structure(y):
        return x
    return tree.map(_strong_leaf, x, y)


def _strong_leaf(x: Any, y: Any) -> Any:
    """Return a leaf of the stronger type of two, as a new object: one way binds the name if the other does not."""
    a, b = example(x), example(y)
    weaker = type(a) in NUMBERS and (type(b) not in NUMBERS or type(a) is int)
    return fresh_number(y if weaker else x)


def fresh_number(x: Any) -> Any:
    """Return a leaf as a value of the body that is being looked at, and no object known before."""
    trace = current().trace  # type: ignore[union-attr]
    return trace.new(example(x))


# --- both ways as an operation ----------------------------------------------------------------------------------------

