"""What objects held before code ran that nobody converts, and that may have changed them.

The code of a step is converted, and so are the functions and methods that it calls: what it binds is seen. Python
itself calls others of the user's: operators as ``__add__`` and ``__bool__``, properties, caches, the key of a sort.
What these bind is found by looking at the objects again, and put back.
"""

from __future__ import annotations

import collections
import dis
import functools
import operator
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from fad.capture.body.places import Attribute, Cell, Item, Variable, bind_name, content, keeping
from fad.capture.rewriting.convert import is_users
from fad.introspect.outer_values import MANY
from fad.introspect.reachable import is_library


class Holdings:
    """What the objects among some things hold, as it is when this is made, for the length of a block."""

    __slots__ = ("_tables", "_sequences", "_long", "_classes", "_places", "_counts", "_token")

    def __init__(self, things: Iterable[Any], own: Iterable[Callable] = ()):
        """`own` are functions that are converted: the variables that they bind are not looked at."""
        self._tables: list[tuple[Any, dict, Any]] = []  # dictionaries, what they hold, and whose they are
        self._sequences: list[tuple[Any, tuple]] = []
        self._long: list[tuple[Any, int]] = []  # containers of which only the length is looked at
        self._classes: dict[int, tuple[Any, dict]] = {}
        self._places: list[tuple[Cell, Any]] = []
        self._counts: collections.Counter[int] = collections.Counter()  # of the references that this has
        known = {id(f) for f in own}
        for x in things:
            kind = type(x)
            if kind is types.FunctionType:
                if id(x) not in known and is_users(x):
                    for cell in _bound_outside(x):
                        self._add_place(cell)
            elif issubclass(kind, type):
                self._add_class(x)
            elif issubclass(kind, (list, dict, collections.deque, set)):
                self._add_container(x)
            if not is_library(kind.__module__):
                self._add_object(x)

    def __enter__(self) -> Holdings:
        self._token = keeping.set((*keeping.get(), self._counts))
        return self

    def __exit__(self, *_: Any) -> None:
        keeping.reset(self._token)
        for held in (self._tables, self._sequences, self._long, self._classes, self._places):
            held.clear()

    def _count(self, *xs: Any) -> None:
        self._counts.update(map(id, xs))

    def _add_container(self, x: Any) -> None:
        if isinstance(x, (list, dict)) and len(x) > MANY:
            self._long.append((x, len(x)))
            self._count(x)
        elif isinstance(x, dict):
            self._add_table(x, x)
        else:
            self._sequences.append((x, tuple(x)))
            self._count(x, *x)

    def _add_table(self, held: dict, x: Any) -> None:
        self._tables.append((held, dict(held), x))
        self._count(held, x, *dict.values(held))

    def _add_place(self, place: Cell) -> None:
        x = content(place)
        self._places.append((place, x))
        self._count(x, getattr(place, "holder", None))

    def _add_class(self, cls: type) -> None:
        for base in cls.__mro__:
            if not is_library(base.__module__) and id(base) not in self._classes:
                self._classes[id(base)] = (base, dict(vars(base)))
                self._count(base, *vars(base).values())

    def _add_object(self, x: Any) -> None:
        kind = type(x)
        self._add_class(kind)
        try:
            held = object.__getattribute__(x, "__dict__")
        except AttributeError:
            held = None
        if type(held) is dict and held is not x:
            self._add_table(held, x)
        for base in kind.__mro__:
            for name, slot in vars(base).items():
                if type(slot) is types.MemberDescriptorType and not is_library(base.__module__):
                    self._add_place(Attribute(x, name))

    def put_back(self) -> str | None:
        """Put back what has changed; return what some of it is, by its type, and None if nothing had changed."""
        changed = list(self._changes())
        if not changed:
            return None
        return f"a {type(changed[0]).__name__}" if changed[0] is not None else "a global or nonlocal variable"

    def _changes(self) -> Iterator[Any]:
        """Put back what has changed, and give what held it; None of variables."""
        for held, before, x in self._tables:
            if not _is_same(held, before):
                dict.clear(held)
                dict.update(held, before)
                yield x
        for x, items in self._sequences:
            if len(x) != len(items) or not all(map(operator.is_, x, items)):
                x.clear()
                (x.update if isinstance(x, set) else x.extend)(items)
                yield x
        for x, n in self._long:
            if len(x) > n:
                for _ in range(len(x) - n):
                    x.popitem() if isinstance(x, dict) else x.pop()
                yield x
        for cls, before in self._classes.values():
            if not _is_same(vars(cls), before):
                for name in vars(cls).keys() - before.keys():
                    type.__delattr__(cls, name)
                for name, value in before.items():
                    if vars(cls).get(name) is not value:
                        type.__setattr__(cls, name, value)
                yield cls
        for place, value in self._places:
            if content(place) is not value:
                bind_name(place, value)
                yield place.holder if type(place) is Attribute else None


def _is_same(held: Any, before: dict) -> bool:
    return len(held) == len(before) and all(map(operator.is_, held.values(), before.values()))


def _bound_outside(f: types.FunctionType) -> list[Cell]:
    """Return the global and nonlocal variables that a function binds."""
    names, _ = _outer_names(f.__code__)
    return [*(Item(f.__globals__, name) for name in names), *find_variables(f)]


def find_variables(f: types.FunctionType) -> list[Variable]:
    """Return the nonlocal variables that a function binds."""
    _, variables = _outer_names(f.__code__)
    cells = dict(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    return [Variable(cells[name], name) for name in variables]


@functools.lru_cache(4096)
def _outer_names(code: types.CodeType) -> tuple[tuple, tuple]:
    """Return the names that the code of a function declares global and binds, and those that it declares nonlocal."""
    stored = {(at.opname, at.argval) for at in dis.get_instructions(code)}
    names = tuple(name for kind, name in stored if kind in ("STORE_GLOBAL", "DELETE_GLOBAL"))
    free = set(code.co_freevars)
    return names, tuple(name for kind, name in stored if kind in ("STORE_DEREF", "DELETE_DEREF") and name in free)
