"""Places that a step binds to values: variables, attributes of objects, and items of dictionaries and lists.

A variable that functions share is a cell. What else can be bound looks like one here, so that a loop or a branch
treats all of them alike: it reads what they are bound to, lets them stand for other values, and puts them back.
"""

from __future__ import annotations

import collections
import sys
import types
from contextvars import ContextVar
from typing import Any


class _Unbound:
    """What a place that is not bound stands for."""

    def __repr__(self) -> str:
        return "<not bound>"


UNBOUND = _Unbound()


class _Part:
    """A place that a part of an object is; two are equal if they are the same part of the same object."""

    __slots__ = ("holder", "key")

    def __init__(self, holder: Any, key: Any):
        self.holder = holder
        self.key = key

    def __eq__(self, other: Any) -> bool:
        return type(other) is type(self) and other.holder is self.holder and other.key == self.key

    def __hash__(self) -> int:
        return hash((id(self.holder), self.key))


class Attribute(_Part):
    """An attribute of an object."""

    __slots__ = ()

    @property
    def cell_contents(self) -> Any:
        """What the attribute is; ValueError if the object itself has none."""
        own = getattr(self.holder, "__dict__", {})
        if self.key in own:
            return own[self.key]
        slot = getattr(type(self.holder), self.key, None)
        if not isinstance(slot, types.MemberDescriptorType):
            raise ValueError
        try:
            return slot.__get__(self.holder)
        except AttributeError:
            raise ValueError from None

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        setattr(self.holder, self.key, value)

    @cell_contents.deleter
    def cell_contents(self) -> None:
        delattr(self.holder, self.key)

    def __str__(self) -> str:
        return self.key if type(self.holder) is Module else f"{type(self.holder).__name__}.{self.key}"


class Module:
    """An object whose attributes are the global variables of a module."""

    def __init__(self, variables: dict[str, Any]):
        self.__dict__ = variables


_modules: dict[int, Module] = {}


def module_of(variables: dict[str, Any]) -> Module:
    """Return the object whose attributes are the global variables in a dictionary; for each there is one."""
    found = _modules.get(id(variables))
    if found is None or vars(found) is not variables:
        found = _modules[id(variables)] = Module(variables)
    return found


class Item(_Part):
    """An item of a dictionary by its key, or of a list by its place."""

    __slots__ = ()

    @property
    def cell_contents(self) -> Any:
        """What the item is; ValueError if there is none."""
        holder = self.holder
        if isinstance(holder, dict) and self.key not in holder:  # which a defaultdict would make
            raise ValueError
        return holder[self.key]

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self.holder[self.key] = value

    @cell_contents.deleter
    def cell_contents(self) -> None:
        del self.holder[self.key]

    def __str__(self) -> str:
        return f"{type(self.holder).__name__}[{self.key!r}]"


class Variable(_Part):
    """A variable of a function that another one binds, which declares it nonlocal: its cell and its name."""

    __slots__ = ()

    @property
    def cell_contents(self) -> Any:
        """What the variable is bound to; ValueError if it is not bound."""
        return self.holder.cell_contents

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self.holder.cell_contents = value

    @cell_contents.deleter
    def cell_contents(self) -> None:
        del self.holder.cell_contents

    def __str__(self) -> str:
        return self.key


class Elements(_Part):
    """All elements of a deque or list that is moved on: the window of a moving average, a delay line."""

    __slots__ = ()

    def __init__(self, holder: collections.deque | list):
        super().__init__(holder, None)

    @property
    def cell_contents(self) -> Any:
        """The elements."""
        return tuple(self.holder)

    @cell_contents.setter
    def cell_contents(self, value: Any) -> None:
        self.holder.clear()
        self.holder.extend(value)

    def __str__(self) -> str:
        return f"a {type(self.holder).__name__}"


_PLAIN_SETTERS = (object.__setattr__, types.SimpleNamespace.__setattr__)
_DICTIONARIES = (dict, collections.defaultdict, collections.OrderedDict)
Part = Attribute | Item | Elements | Variable
Cell = types.CellType | Part


def content(cell: Cell) -> Any:
    """Return what a place is bound to, or UNBOUND."""
    try:
        return cell.cell_contents
    except ValueError:
        return UNBOUND


def bind_name(cell: Cell, value: Any) -> None:
    """Bind a place, or unbind it."""
    if value is not UNBOUND:
        cell.cell_contents = value
    elif content(cell) is not UNBOUND:
        del cell.cell_contents


def cells_of(*functions: Any) -> dict[Any, Cell]:
    """Return the variables that functions share with the function around them."""
    found: dict[Any, Cell] = {}
    for f in functions:
        found.update(zip(f.__code__.co_freevars, f.__closure__ or (), strict=True))
    return found


# How many references to objects, by identity, those have who keep what was there to put it back.
keeping: ContextVar[tuple[dict[int, int], ...]] = ContextVar("keeping", default=())


def is_exclusive(cell: Cell, held: int = 0) -> bool:
    """Return whether nobody but a place knows the object that it is bound to, besides who has `held` references."""
    x = cell.cell_contents
    return sys.getrefcount(x) <= 3 + held + _count_kept(x)


def is_viewed_by_one(x: Any) -> bool:
    """Return whether nobody but a view knows the array that it was taken from."""
    while type(x.memory) is tuple:
        parent = x.memory[0]
        if sys.getrefcount(parent) > 3 + _count_kept(parent):
            return False
        x = parent
    return True


def _count_kept(x: Any) -> int:
    return sum(counts.get(id(x), 0) for counts in keeping.get())


def find_part(holder: Any, key: Any) -> Attribute | Item | None:
    """Return the place that ``holder.key = value`` binds, if it binds no other and runs no code; None otherwise."""
    kind = type(holder)
    if isinstance(holder, (type, types.ModuleType)) or kind.__setattr__ not in _PLAIN_SETTERS:
        return None
    found = next((vars(base)[key] for base in kind.__mro__ if key in vars(base)), None)
    plain = isinstance(found, types.MemberDescriptorType) or not hasattr(type(found), "__set__")
    return Attribute(holder, key) if plain and not hasattr(kind, "__getattr__") else None


def find_item(holder: Any, key: Any) -> Item | None:
    """Return the place that ``holder[key] = value`` binds, if it is one item of a dict or list; None otherwise."""
    if type(holder) in _DICTIONARIES:
        return Item(holder, key) if type(key) in (str, int, bool, float, tuple, type(None)) else None
    if type(holder) is list and type(key) is int and -len(holder) <= key < len(holder):
        return Item(holder, key % len(holder))
    return None
