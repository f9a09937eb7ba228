"""One step of a captured loop as a function of its state: what the loop's operation is recorded from."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator
from typing import Any

from fad import tree
from fad.capture.body.aliases import RETURNED, arrays_in, links_of, note_links
from fad.capture.body.context import (
    bind_result,
    current,
    is_outer,
    noting_changes,
    recording_body,
    refuse,
    refuse_outer,
)
from fad.capture.body.draws import StepDraws
from fad.capture.body.element_tables import check_elements, elements_behind
from fad.capture.body.held_arrays import Marks, held_since, mark_lists
from fad.capture.body.labels import close_name, is_opened_label, open_name
from fad.capture.body.objects import holders_in, is_known_alone, knows_arrays_alone, open_objects
from fad.capture.body.outcomes import Outcome, add_raises, count_raises, kind_of, value_of
from fad.capture.body.places import UNBOUND, Item, bind_name, cells_of, content
from fad.capture.body.state import (
    as_leaf,
    check_aliased,
    fresh,
    is_handle,
    is_state,
    is_written,
    require_body,
    standing_for,
)
from fad.capture.body.values import as_number
from fad.capture.containers.growing_lists import Last
from fad.capture.containers.growth import Growth
from fad.capture.containers.number_lists import NumberLists
from fad.capture.rewriting.sites import Loop
from fad.control_flow.bodies.subgraph import BodyTrace, example
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import number_behind
from fad.core.tracing.views import root_of, snapshot
from fad.core.tracing.weak import WeakFloat
from fad.staging.mixed_types import note_mixed, note_number
from fad.staging.record import recorder
from fad.transforms.batching.batch_trace import BatchTrace


class NeedsFirstStep(Exception):
    """A loop may be captured once another step of it has been run: its state is not yet what it will be.

    Where a list or deque is being filled, as many steps are run as change its length, which `size` gives.
    """

    def __init__(self, size: Callable[[], int] = lambda: 0):
        super().__init__()
        self.size = size


class Step:
    """A loop's body, the names that it carries by value, and the arrays that it writes into.

    A part of an object that a step binds, as ``p.x = ...`` does, is carried like a name, and stands where names do.
    """

    def __init__(self, site: Loop, body: Callable, test: Callable | None):
        self.site = site
        self.body = body
        self.test = test
        self.counts = test is None  # whether its steps are counted
        self.cells: dict[Any, Any] = cells_of(*([body] if test is None else [body, test]))
        self.bound: list[Any] = [name for name in site.names if name in self.cells]
        self.names: list[Any] = []
        self.roots: list[Tracer] = []
        self.late: dict[Any, Any] = {}  # names that a step binds and the code behind reads: values of their types
        self.value: tuple = ()  # (what a return in the loop gives, as a value of its type,)
        self.before: dict[str, Any] = {}  # what names are bound to before the loop
        cells = [(name, self.cells[name]) for name in self.bound if content(self.cells[name]) is not UNBOUND]
        self.exclusive = {name for name, cell in cells if knows_arrays_alone(cell)}
        self.alone = {name for name, cell in cells if is_known_alone(cell)}  # those whose objects nobody else knows
        self.judged: set[Any] = set()  # parts of objects of which it has been looked who else knows their contents
        self.lists = Growth(site, self.cells)
        # `ys += [x]` and `ys = np.append(ys, x)` bind the name to what it was.
        grown = self.lists.known.keys() - (site.rebound - {*site.joined})
        self.bound = [name for name in self.bound if name not in grown]
        self.number_lists = NumberLists(self.cells)
        self.outer: set[Any] = set()  # parts of objects that are from outside of the function: counters
        self.windows: set[int] = set()  # lists that looks have seen moved, by identity
        self.draws = StepDraws()
        self.kinds: list | None = None  # which leaves are numbers of Python's behind the first step that is recorded
        self.links: dict[str, list] = {}  # what the arrays that a step leaves names bound to may be, besides new ones
        self.marks: Marks = []  # of lists of arrays, where the step began
        self.passed: set[str] = set()  # names whose arrays a step may leave to itself or to another name
        self._guess()

    def _guess(self) -> None:
        """Take those names by value that the text rebinds, and those arrays as written that the text writes into."""
        for name in (name for name in self.site.carried if name in self.bound):
            x = self.read(name)
            if is_opened_label(x):  # which most steps bind to itself
                continue
            if x is not UNBOUND and is_state(x) and (name in self.site.rebound or not is_handle(x)):
                self.names.append(name)
        for name in self.site.updated:
            x = self.content(name) if name in self.cells and name not in self.names else None
            if type(x) is Tracer and is_handle(x):
                self.add_root(x)

    def add_places(self) -> dict[Any, Any]:
        """Note the parts of objects that the step has bound; return what new ones were bound to before."""
        found = {place: x for place, x in require_body().changed.items() if place not in self.cells}
        for place, before in found.items():
            if type(before) is not Tracer and is_outer(place):
                if example(content(place)).__class__ not in (bool, int):
                    refuse_outer(place)
                self.outer.add(place)
        self.cells.update({place: place for place in found})
        self.bound += found
        return found

    @contextlib.contextmanager
    def stand_for_lists(self, body: Any, number: Any) -> Iterator[None]:
        """Let something stand for lists that the step appends to, or reads or writes by a counter; let it draw."""
        if body is not None:
            body.made |= self._find_own()
            body.windows |= self.windows
            self.windows = body.windows
            outer = body.own, body.numbers, body.shared  # of the loop around, where the first condition is asked in it
            body.own = [self.cells[name] for name in self.bound if type(name) is str]
            body.numbers = (*body.numbers, number if self.counts else None)
            body.shared = {id(cell) for name, cell in self.cells.items() if type(name) is str}
        with self.lists.growing(body, number), self.number_lists.standing(body), self.draws.drawing(body, number):
            self.marks = mark_lists()
            yield
        if body is not None:
            body.own, body.numbers, body.shared = outer

    def _find_own(self) -> dict[int, Any]:
        """Return the lists and dictionaries that names are bound to by value: each step has its own."""
        found = [self.content(name) for name in self.names if type(name) is str]
        return {id(x): x for x in found if type(x) in (list, dict)}

    def look_at_lists(self, touched: dict[int, tuple[Any, list]]) -> bool:
        """Note the lists that a look has read or written by a counter; return whether it showed something new."""
        changed = {id(place.holder) for place in self.bound if type(place) is Item}
        return self.number_lists.look(touched, changed)

    def add_lists(self) -> bool:
        """Note what a look showed of lists that grow; return whether it was something new."""
        grown: Any = require_body().grown
        for place in grown:
            if not self.lists.add(place, place):
                refuse(f"it appends to {place}, which may have another name")
        changed, wanted = self.lists.look()
        for place in wanted:
            if not is_state(open_objects(place.cell_contents)):
                raise NeedsFirstStep
            self.cells[place] = place
            self.alone.add(place)
        self.bound += wanted
        self.names += wanted
        return changed or bool(grown)

    def join(self, name: Any) -> bool:
        """Let the array that a name is bound to grow, if the step has made it longer; return whether it has."""
        joins = self.lists.join(name, self.before[name], self.content(name))
        if joins:
            self.names.remove(name)
            self.bound.remove(name)
        return joins

    def forget_made(self) -> None:
        """Forget the parts of objects that the step that was looked at has made, which the next step does not know."""
        made = {name for name in self.names if any(map(_is_dead, tree.leaves(self.read(name))))}
        self.names = [name for name in self.names if name not in made]
        self.bound = [name for name in self.bound if name not in made]

    def look_who_knows(self) -> None:
        """Note who knows what the parts of objects that were found are bound to, while nothing here holds it."""
        for place in self.bound:
            if type(place) is not str and place not in self.judged:
                self.judged.add(place)
                held = sum(self.content(place) is root for root in self.roots)
                if self.content(place) is not UNBOUND and knows_arrays_alone(place, held):
                    self.exclusive.add(place)
                if is_known_alone(place):
                    self.alone.add(place)

    def check_test(self) -> None:
        """Run the condition of a while loop, and refuse one that binds parts of objects."""
        with noting_changes(require_body()) as changed:
            found = self.test()  # type: ignore[misc]
            if type(found) is not Tracer:
                bool(found)  # of an object of the user's, which may change something
        if changed:
            refuse(f"its condition binds {min(map(str, changed))}")

    def is_carried(self, name: Any) -> bool:
        """Return whether a step may take what a name is bound to from the step before, or hand it through."""
        return type(name) is not str or name in self.site.carried

    def content(self, name: Any) -> Any:
        return content(self.cells[name]) if name in self.cells else UNBOUND

    def read(self, name: Any) -> Any:
        """Return what a name is bound to, with objects as their attributes."""
        return open_name(self.content(name))

    def add_root(self, x: Tracer) -> bool:
        """Carry an array that is written; return whether it was not carried before."""
        root = root_of(x)
        if any(root is y for y in self.roots):
            return False
        self.roots.append(root)
        return True

    # --- the state ------------------------------------------------------------------------------------------------

    def first(self) -> tuple:
        """Return the state before the first step."""
        values = [self.read(name) for name in self.names]
        lates = [self.read(n) if n in self.names else x for n, x in self.late.items()]
        return values, list(self.roots), lates

    @contextlib.contextmanager
    def enter(self, values: list, arrays: list) -> Iterator[dict[str, Any]]:
        """Let names and arrays be those of a state for the length of a block; give what names are bound to without."""
        before = {name: self.content(name) for name in self.bound}
        try:
            with standing_for(self.roots, arrays):
                for name, x in zip(self.names, values, strict=True):
                    bind_result(self.cells[name], close_name(x))
                values.clear()
                yield before
        finally:
            for name, x in before.items():
                bind_name(self.cells[name], x)

    def run(self, state: tuple, number: Any, item: Callable | None) -> tuple[tuple, Outcome | None]:
        """Return the state after the step of a number, and how the step ended; `item` gives what it runs over."""
        values, arrays, _ = state
        given = [fresh(x) for x in values]
        handles = dict(zip(self.names, given, strict=True))
        with self.enter(list(given), arrays) as before, self._context():
            with self.stand_for_lists(require_body(), number):
                with noting_changes(require_body()) as changed:
                    outcome = add_raises(self.body() if item is None else self.body(item(number)))
                self.draws.check_complete()
                self.lists.note_appended()
                self._check_kept(before, changed)
                self.check_aliases(handles, value_of(outcome))
                self.forget_given()
                self._drop_dead()
                left = [self._find_left(name) for name in self.names]
                lates = [self._find_left(name) for name in self.late]
                if self.kinds is None:
                    self.kinds = [list(map(is_pythons, tree.leaves(x))) for x in (*left, *lates)]
                self.lists.find_rows()
                outcome = _describe_end(outcome)
            return (left, [snapshot(x) for x in self.roots], lates), outcome

    def _check_kept(self, before: dict[Any, Any], changed: dict) -> None:
        """Refuse a step that binds a name or a part of an object of which the first look did not show it."""
        shown = {*self.names, *self.late}
        for name in {*self.site.carried, *self.site.behind} & before.keys() - shown:
            if self.content(name) is not before[name]:
                refuse(f"it binds {name} in one step and not in another")
        for place in changed.keys() - shown - self.lists.find_renewed():
            if place not in before or self.content(place) is not before[place]:
                refuse(f"it binds {place} in one step and not in another")

    def _drop_dead(self) -> None:
        """Unbind the names that nobody reads behind the step, so that they do not know what others are bound to."""
        for name in self.bound:
            if not self.is_carried(name) and name not in self.site.behind:
                bind_name(self.cells[name], UNBOUND)

    def ask(self, state: tuple, number: Any) -> Any:
        """Return whether a while loop goes on with the step of a number."""
        values, arrays, _ = state
        with self.enter([fresh(x) for x in values], arrays), self._context(), self.stand_for_lists(current(), number):
            before = count_raises()
            found = self.test()  # type: ignore[misc]
            self.lists.check_known()
            if count_raises() > before:
                refuse("its condition calls a function that may raise an error")
            return found if type(found) is Tracer else bool(found)

    def _context(self) -> Any:
        trace = recorder.get()
        known = current()
        if not isinstance(trace, BodyTrace) or (known is not None and known.trace is trace):
            return contextlib.nullcontext()
        return recording_body(trace, False)

    def _find_left(self, name: str) -> Any:
        x = self.read(name)
        if x is UNBOUND:
            refuse(f"it leaves {name} unbound")
        if not is_state(x):
            refuse(f"it binds {name} to something that is no array")
        if not is_known_alone(self.cells[name]):
            refuse(f"it binds {name} to an object that may have another name")
        return tree.map(as_leaf, x)

    def as_left(self, values: list) -> list:
        """Return what a loop has made of the names, the numbers as Python's that are such in its steps.

        To a program a number that is differentiated is a scalar, and so it is to the body of a loop around.
        """
        if current() is not None or self.kinds is None:  # no step was recorded
            return values
        found = []
        for x, marks in zip(values, self.kinds, strict=True):
            leaves, structure = tree.flatten(x)
            for y in leaves:
                _note_batch(y)
            pairs = zip(leaves, marks, strict=True)
            made = [as_number(y) if mark and not is_pythons(y) else y for y, mark in pairs]
            found.append(tree.unflatten(structure, made))
        return found

    # --- who knows which array ------------------------------------------------------------------------------------

    def check_aliases(self, handles: dict[str, Any], returned: Any) -> None:
        """Refuse a step after which two names may know one array that some step writes into."""
        mine = {id(x): x for x in self.roots}
        given = {id(x): x for value in handles.values() for x in tree.leaves(value) if is_handle(x)}
        writes = [x for x in given.values() if is_written(x)]
        seen: set[int] = set()
        values = {**self._left_by(returned), **held_since(self.marks)}
        check_elements(values.values())
        left = [(name, x) for name, value in values.items() for x in arrays_in(value)]
        for name, x in left:
            root = root_of(x)
            if id(root) in mine:
                refuse(f"it binds {name} to an array that it writes into by another name, too")
            if writes and (id(root) in seen or not _is_own(root, given)):
                refuse(f"it writes into {name}, and binds it to an array that may have another name")
            seen.add(id(root))
        if check_aliased() and writes:
            refuse("it writes into an array that may have another name, as an if decides")
        self._link(handles, values)

    def forget_given(self) -> None:
        """Forget what the step has put into lists, so that nobody here holds it."""
        self.lists.forget_appended()
        require_body().passing.clear()
        for x, since in self.marks:
            x.forget(since, recorder.get())

    def _left_by(self, returned: Any) -> dict[Any, Any]:
        """Return what a step leaves names bound to, and what it returns."""
        appended = {f"what it appends to {name}": open_objects(xs) for name, xs in self.lists.appended.items()}
        names = {name: self.read(name) for name in [*self.names, *self.late]}
        return {**names, **appended, RETURNED: returned}

    def _link(self, handles: dict[str, Any], values: dict[Any, Any]) -> None:
        """Note for each name which arrays it may know besides new ones."""
        given = {id(x): name for name, value in handles.items() for x in tree.leaves(value) if is_handle(x)}
        self.passed = set()

        def find_links(x: Tracer) -> list | None:
            name = given.get(id(x))
            if name is None:
                return elements_behind(x)
            self.passed.add(name)
            return [("before", name), *[root_of(y) for y in self._known_before(name) if y.shape]]

        links = links_of(values, find_links)
        self.links = {name: list(_follow(name, links)) for name in links}

    def note_links(self, runs: bool, returned: Any = ()) -> None:
        """Note behind the loop which names may know one array."""
        before = {name: [root_of(y) for y in self._known_before(name) if y.shape] for name in self.names}
        tables: list[dict] = [self.links, {} if runs else before]
        alone = {id(x) for name in self.exclusive for x in before.get(name, ())}
        lists = {**self.number_lists.held(), **self.lists.held()}
        tables.append({x: x.before for x in lists})
        held = {x: x.left(lists.get(x)) for x, _ in self.marks}
        note_links(tables, self._left_by(returned) | held, lambda x: id(x) in alone)

    def _known_before(self, name: str) -> list[Tracer]:
        """Return the arrays that a name is bound to before the loop."""
        return [x for x in tree.leaves(open_objects(self.before.get(name, ()))) if is_handle(x)]

    def check_shared(self, handles: dict[str, Any], may_peel: bool) -> None:
        """Refuse names whose arrays a step writes into while somebody else may know them before the first step."""
        arrays = {name: [x for x in tree.leaves(handles[name]) if is_handle(x)] for name in self.names}
        written = {name for name in self.names if any(map(is_written, arrays[name]))}
        mine = [id(x) for x in self.roots]
        seen = {name for name in self.names if any(id(root_of(x)) in mine for x in self._known_before(name))}
        elements = set().union(*(holders_in(self.content(name)) for name in self.names if type(name) is Last))
        if any(id(getattr(place, "holder", None)) in elements for place in self.bound):
            if may_peel:  # each step appends a new one
                raise NeedsFirstStep
            refuse("it changes an element of a list to which it appends")
        if any(type(name) is Last for name in written):
            refuse("it writes into an array that it has appended to a list")
        for name in written | seen | (self.passed if written else set()):  # what is passed on may be written next
            x = self.content(name)
            alone = type(x) is Tracer and type(x.memory) is not tuple and name in self.exclusive
            if alone and all(root_of(x) is not y for y in self.roots):
                continue
            if may_peel:
                raise NeedsFirstStep
            refuse(f"it writes into {name} and rebinds it, and the array may have another name")


def _note_batch(x: Any) -> None:
    """Note an integer of Python's that a batch has for each element: there it is a scalar of NumPy's."""
    if type(x) is Tracer and isinstance(x.owner, BatchTrace) and not x.shape and x.dtype.kind in "biu":
        note_mixed()
        note_number(x)


def is_pythons(x: Any) -> bool:
    """Return whether a traced value is a real number of Python's, or stands for one."""
    return type(x) is Tracer and type(number_behind(x)) in (float, WeakFloat)


def _follow(name: str, links: dict[str, list]) -> Iterator:
    """Give what a name may be after any number of steps: what the next one makes of it, the one behind hands on."""
    names, seen = [name], {name}
    while names:
        for link in links.get(names.pop(), ()):
            yield link
            if type(link) is tuple and link[0] == "before" and link[1] not in seen:
                seen.add(link[1])
                names.append(link[1])


def _is_dead(x: Any) -> bool:
    return type(x) is Tracer and x.owner.dead


def _is_own(root: Tracer, given: dict[int, Tracer]) -> bool:
    """Return whether an array was made in the step, or is one that the step was given for itself."""
    return id(root) in given or root.owner is recorder.get()


def _describe_end(outcome: Outcome | None) -> Outcome | None:
    """Return how a step ended, with what it returned as it is now."""
    value = value_of(outcome)
    if not is_state(value):
        refuse("it returns something that is no array")
    return None if outcome is None else Outcome(kind_of(outcome), tree.map(as_leaf, value))
