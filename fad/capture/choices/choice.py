"""A choice between two ways: each is looked at, then recorded, and one operation joins what they give."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.capture.body.aliases import RETURNED, arrays_in, links_of, note_links
from fad.capture.body.context import (
    bind_result,
    current,
    recording_body,
    refuse,
)
from fad.capture.body.held_arrays import held_since, mark_lists
from fad.capture.body.labels import close_name, find_numbers, name_labels, number_labels, open_name
from fad.capture.body.objects import is_known_alone, knows_arrays_alone
from fad.capture.body.outcomes import END, Outcome, add_raises, count_raises, kind_of, note_raise, value_of
from fad.capture.body.places import UNBOUND, bind_name, cells_of, content
from fad.capture.body.state import (
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
from fad.capture.body.trial import TrialTrace
from fad.capture.body.unseen import Holdings
from fad.capture.choices.common_types import convert_leaf, find_common
from fad.capture.containers.growth import Ways
from fad.capture.rewriting.sites import Branch
from fad.control_flow.bodies.subgraph import example
from fad.control_flow.cond import join_branches, record_branch
from fad.core.runs import effects
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import finding_writes, root_of, snapshot
from fad.staging.record import recorder, recording_by

NO_BRANCH = Branch(0, (), frozenset())


class Choice:
    """A choice between two ways that is being recorded."""

    def __init__(self, site: Branch, functions: tuple, ways: Sequence[Callable] | None = None):
        self.site = site
        self.ways = list(functions if ways is None else ways)
        found = cells_of(*functions)
        # What the ways bind, and names that nobody reads behind the `if`: these no longer know what they are bound to.
        dead = found.keys() - site.behind if site is not NO_BRANCH else set()
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
