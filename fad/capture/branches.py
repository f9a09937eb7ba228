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
from fad.capture.aliases import RETURNED, arrays_in, links_of, note_links
from fad.capture.common_types import NUMBERS, convert_leaf, find_common
from fad.capture.context import (
    bind_result,
    current,
    in_one_way,
    is_staged,
    noting_changes,
    put_back,
    recording_body,
    refuse,
)
from fad.capture.growing_lists import truth_of
from fad.capture.growth import Ways
from fad.capture.held_arrays import held_since, mark_lists
from fad.capture.keyed_looks import DICTIONARIES
from fad.capture.labels import Label, close_name, find_numbers, is_one_of, name_labels, number_labels, open_name
from fad.capture.number_dicts import NumberDict
from fad.capture.objects import is_known_alone, knows_arrays_alone
from fad.capture.outcomes import END, Outcome, add_raises, count_raises, kind_of, note_raise, value_of
from fad.capture.places import UNBOUND, Item, bind_name, cells_of, content
from fad.capture.sites import Branch
from fad.capture.state import (
    as_leaf,
    check_aliased,
    check_replaceable,
    fresh,
    is_state,
    is_written,
    lifted_into,
    reached_things,
    replace,
    standing_for,
    traced_roots,
)
from fad.capture.trial import TrialTrace
from fad.capture.unseen import Holdings
from fad.capture.values import as_number, has_key, to_boolean
from fad.control_flow.cond import join_branches, record_branch
from fad.control_flow.subgraph import example
from fad.core import effects
from fad.core.graph import Equation, has_effects
from fad.core.refusals import may_refuse
from fad.core.tracer import Tracer
from fad.core.views import finding_writes, root_of, snapshot
from fad.staging.may_raise import raises_for_numbers
from fad.staging.record import recorder, recording_by

_EXACT = 2**53  # below which an integer is a floating-point number
_NO_BRANCH = Branch(0, (), frozenset())


def run_if(site: Branch, test: Any, then: Callable, orelse: Callable) -> Outcome | None:
    """Run an ``if`` statement; return how it ended."""
    test = truth_of(test)
    if not is_staged(test):
        return then() if test else orelse()
    body = current()
    if body.trial:  # type: ignore[union-attr]
        return _try_both(site, then, orelse)
    return _Choice(site, (then, orelse)).record(to_boolean(test))


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
    choice = _Choice(_NO_BRANCH, (then, orelse), ways)
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


class _Choice:
    """A choice between two ways that is being recorded."""

    def __init__(self, site: Branch, functions: tuple, ways: Sequence[Callable] | None = None):
        self.site = site
        self.ways = list(functions if ways is None else ways)
        found = cells_of(*functions)
        # What the ways bind, and names that nobody reads behind the `if`: these no longer know what they are bound to.
        dead = found.keys() - site.behind if site is not _NO_BRANCH else set()
        self.shared = {id(cell) for cell in found.values()}
        self.cells: dict[Any, Any] = {x: cell for x, cell in found.items() if x in site.names or x in dead}
        bound = [name for name, cell in self.cells.items() if content(cell) is not UNBOUND]
        self.exclusive = {name for name in bound if knows_arrays_alone(self.cells[name])}
        self.alone = {name for name, cell in self.cells.items() if is_known_alone(cell)}
        self.before: dict[Any, Any] = {name: content(cell) for name, cell in self.cells.items()}
        things = reached_things(functions)
        things += find_numbers(things)
        self.lifts = [(x, snapshot(x)) for x in traced_roots(things) if not x.owner.physical]
        self.holdings = Holdings(things, functions)  # last, for it knows what the names are bound to
        self.written: list[Tracer] = []
        self.lists = Ways()
        self.raises = False  # whether a function may raise that a way calls
        self.links: list[dict] = []  # of each way: what the arrays that it leaves names bound to may be

    def record(self, test: Any) -> Outcome | None:
        """Write the choice down, and let names and arrays be what it makes of them."""
        with self.holdings:
            looks = [self._look(way) for way in self.ways]
            if any(found[2] != self._extent() for found in looks):
                looks = [self._look(way) for way in self.ways]
        for root in self.written:
            check_replaceable(root)
        # What the places that were found are bound to is held by `before` as well.
        self.alone |= {place for place in self.cells if type(place) is not str and is_known_alone(self.cells[place], 1)}
        names, drop = self._names([found[0] for found in looks])
        kinds = [found[1][0] for found in looks]
        one_kind = all(type(k) is not Tracer and k == kinds[0] for k in kinds)
        targets = self._targets(looks, names, one_kind)
        bodies = [record_branch(lambda w=way: self._run(w, names, one_kind, targets), []) for way in self.ways[::-1]]
        joined = join_branches(test, bodies, [])
        if joined is None:
            refuse("the two ways of an if give different things")
        kind, value, values, arrays = joined[0]
        self.lists.finish()
        for name in drop:
            bind_name(self.cells[name], UNBOUND)
        for name, x in zip(names, values, strict=True):
            bind_result(self.cells[name], close_name(fresh(x)))
        for root, new in zip(self.written, arrays, strict=True):
            replace(root, new)
        value = name_labels(fresh(value))
        bound = self.exclusive & {*names, *drop}  # a name that no way binds knows its array still
        alone = {id(root_of(x)) for name in bound for x in arrays_in(open_name(self.before[name]))}
        left: dict[Any, Any] = {**{name: open_name(content(self.cells[name])) for name in names}, RETURNED: value}
        left |= {x: x.left(None) for x, _ in mark_lists()}
        note_links(self.links, left, lambda x: id(x) in alone)
        if one_kind and kinds[0] == END and not value:
            return None
        outcome = Outcome(kinds[0] if one_kind else kind, value)
        if self.raises:
            note_raise(outcome)
        return outcome

    def _names(self, ends: list[dict]) -> tuple[list[str], list[str]]:
        """Return the names that a way binds, and those that are not read behind the choice."""
        names, drop = [], []
        for name, before in self.before.items():
            found = [end[name] for end in ends]
            if all(x is _SAME for x in found):
                continue
            if type(name) is str and name not in self.site.behind:
                drop.append(name)
            elif any(x is UNBOUND or (x is _SAME and before is UNBOUND) for x in found):
                refuse(f"{name} is bound in one way of an if only, and read behind it")
            else:
                names.append(name)
        return names, drop

    def _look(self, way: Callable) -> tuple:
        """Run a way to see what it does: what names it leaves, as examples, how it ends, which arrays it writes."""
        trace = TrialTrace()
        written = finding_writes(undoable=True)
        with np.errstate(all="ignore"), recording_by(trace), effects.recording(undo=True) as log:
            try:
                with written, recording_body(trace, True, self.before, way=True), self.lists.one():
                    ends, outcome, mine = self._try_way(trace, way)
                    if log.restore():
                        refuse("it changes state outside of it")
                for root, _ in written.found:
                    if all(root is not x for x in self.written):
                        self.written.append(root)
            finally:
                written.undo()
                trace.finish()
                changed = self.holdings.put_back()
        if changed is not None:
            refuse(f"an if changes {changed} by code that is not seen, as a property or an operator")
        return ends, outcome, mine

    def _try_way(self, trace: Any, way: Callable) -> tuple:
        roots, values = self._lift(trace)
        self._note_variables()
        marks = mark_lists()
        try:
            with standing_for(roots, values):
                outcome = way()
                self.raises = self.raises or count_raises() > 0
                outcome = add_raises(outcome)
                self._add_places()
                ends = {name: self._show(name) for name in self.cells}
                value = number_labels(value_of(outcome))
                if not is_state(value):
                    refuse("it returns something that is no array")
                value = tree.map(example, tree.map(as_leaf, value))
                touched = [x for x in roots if is_written(x)]
            for root in touched:
                if all(root is not x for x in self.written):
                    self.written.append(root)
            return ends, (kind_of(outcome), value), self._extent()
        finally:
            for x, since in marks:
                del x.known[since:]
            self._restore()

    def _note_variables(self) -> None:
        body: Any = current()
        body.own = [cell for name, cell in self.cells.items() if type(name) is str]
        body.shared = self.shared

    def _add_places(self) -> None:
        """Note the parts of objects that a way has bound."""
        changed = current().changed  # type: ignore[union-attr]
        self.before |= {place: x for place, x in changed.items() if place not in self.cells}
        self.cells |= {place: place for place in changed}

    def _extent(self) -> tuple[int, int]:
        """Return how many arrays are written, and how many names and parts of objects bound, as far as is known."""
        return len(self.written), len(self.cells)

    def _lift(self, trace: Any) -> tuple[list, list]:
        lifts = [*self.lifts, *[(x, x) for x in self.written if all(x is not y for y, _ in self.lifts)]]
        return [x for x, _ in lifts], [lifted_into(trace, y) for _, y in lifts]

    def _show(self, name: str) -> Any:
        """Return what a way leaves a name bound to: that it is what it was, or an example of it."""
        x = content(self.cells[name])
        if x is self.before[name]:
            return _SAME
        if x is UNBOUND:
            return x
        x = open_name(x)
        if not is_state(x):
            if type(name) is str and name not in self.site.behind:  # a helper of this way alone
                return UNBOUND
            refuse(f"an if binds {name} to something that is no array")
        return _Shown(tree.map(example, tree.map(as_leaf, x)))

    def _restore(self) -> None:
        for name, cell in self.cells.items():
            bind_name(cell, self.before[name])

    def _targets(self, looks: list, names: list[str], one_kind: bool) -> Any:
        """Return examples of the results' types, to which each way converts its own."""
        values = [found[1][1] for found in looks]
        values = [value or values[0] or values[1] for value in values]
        ends = [[self._example(found[0][name], name) for name in names] for found in looks]
        try:
            return tree.map(find_common, *values), [tree.map(find_common, a, b) for a, b in zip(*ends, strict=True)]
        except (ValueError, TypeError) as error:
            return refuse(f"the two ways of an if give different things: {error}")

    def _example(self, end: Any, name: str) -> Any:
        if type(end) is _Shown:
            return end.value
        end = open_name(self.before[name])
        if not is_state(end) or name not in self.alone:
            refuse(f"an if binds {name}, which is no array, in one way only")
        return tree.map(example, end)

    def _find_left(self, name: Any) -> Any:
        """Return what a way leaves a name bound to."""
        cell = self.cells[name]
        if content(cell) is not self.before[name] and not is_known_alone(cell):
            refuse(f"an if binds {name} to an object that may have another name")
        return open_name(content(cell))

    def _check_kept(self, names: set) -> None:
        """Refuse a way that binds a name or a part of an object of which the first look did not show it."""
        changed = current().changed  # type: ignore[union-attr]
        if changed.keys() - self.cells.keys():
            refuse("an if binds a part of an object in one step and not in another")
        for name in (self.before.keys() & {*self.site.behind, *changed}) - names:
            if content(self.cells[name]) is not self.before[name]:
                refuse(f"an if binds {name} in one step and not in another")

    def _check_written(self, roots: list) -> None:
        """Refuse a way that writes into an array of which the first look did not show it: the write would be lost."""
        mine = {id(x) for x in self.written}
        if any(id(x) not in mine and is_written(x) for x in roots):
            refuse("an if writes into an array in one step and not in another")

    def _run(self, way: Callable, names: list[str], one_kind: bool, targets: Any) -> tuple:
        """Run a way for its results, in the types that both have."""
        trace = recorder.get()
        roots, values = self._lift(trace)
        marks = mark_lists()
        try:
            with recording_body(trace, False, self.before, way=True), standing_for(roots, values):
                self._note_variables()
                with self.lists.one():
                    outcome = add_raises(way())
                value = number_labels(value_of(outcome))
                value = tree.map(convert_leaf, value, targets[0]) if value else targets[0]
                kind = np.int64(END) if one_kind else np.int64(0) + kind_of(outcome)
                self._check_kept({*names})
                self._check_written(roots)
                for name in self.cells.keys() - self.site.behind:
                    if type(name) is str:  # nobody reads it: it shall not know what others are bound to
                        bind_name(self.cells[name], UNBOUND)
                found = [self._find_left(name) for name in names]
                left = [tree.map(convert_leaf, x, t) for x, t in zip(found, targets[1], strict=True)]
                check_aliased()
                outer = {id(x) for x in roots}
                ends = {**dict(zip(names, found, strict=True)), **held_since(marks), RETURNED: value_of(outcome)}
                self.links.append(links_of(ends, lambda x: [x] if id(x) in outer else None, len(self.links)))
                return kind, value, left, [snapshot(x) for x in self.written]
        finally:
            for x, since in marks:
                x.forget(since, trace)
            self._restore()


_SAME = object()  # what a way shows of a name that it does not bind


class _Shown:
    """An example of what a way binds a name to."""

    __slots__ = ("value",)

    def __init__(self, value: Any):
        self.value = value
