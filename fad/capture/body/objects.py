"""Objects of the user's classes whose attributes a step binds, or that a step makes and binds to a name.

A step that makes an object and binds a name to it (``p = p.moved(h)``) carries the object as its attributes: in each
step the name is bound to an object of its own. That can be told from Python only if somebody else knows the object, or
if it is changed; so it must be known to the name alone, and no step may bind its attributes.
"""

from __future__ import annotations

import collections
from typing import Any

from fad import tree
from fad.capture.body.context import current
from fad.capture.body.places import Cell, Item, content, is_exclusive, is_viewed_by_one
from fad.core.tracing.tracer import Tracer
from fad.introspect.reachable import is_library
from fad.staging.record_trace import is_traceable

_DEEPEST = 8  # objects within objects
_CONTAINERS = (list, dict, collections.deque)  # and what is derived from them
_BARE = (Tracer, bool, int, float, complex, str, type(None))


class Opened:
    """An object as its attributes: those that are arrays and numbers, and what stays the same in all steps."""

    __slots__ = ("kind", "parts", "rest")

    def __init__(self, kind: type, parts: dict[str, Any], rest: dict[str, Any]):
        self.kind = kind
        self.parts = parts
        self.rest = rest


class _Rest:
    """The attributes of an object that are no arrays: equal where they are the same objects, or equal texts."""

    __slots__ = ("kind", "names", "items")

    def __init__(self, kind: type, names: tuple, items: dict[str, Any]):
        self.kind = kind
        self.names = names
        self.items = items

    def __eq__(self, other: Any) -> bool:
        return (
            type(other) is _Rest and (self.kind, self.names) == (other.kind, other.names)
            and self.items.keys() == other.items.keys()
            and all(_is_same(x, other.items[name]) for name, x in self.items.items())
        )  # fmt: skip

    def __hash__(self) -> int:
        return hash((self.kind, self.names, *self.items))


def _is_same(x: Any, y: Any) -> bool:
    return x is y or (type(x) is type(y) is str and x == y)


tree.register_node(
    Opened,
    lambda x: (tuple(x.parts.values()), _Rest(x.kind, tuple(x.parts), x.rest)),
    lambda rest, values: Opened(rest.kind, dict(zip(rest.names, values, strict=True)), rest.items),
)


def is_openable(x: Any) -> bool:
    """Return whether an object is its attributes and nothing else: of a class of the user's, made as all are."""
    kind = type(x)
    if kind in _BARE or kind.__new__ is not object.__new__ or not kind.__dictoffset__ or hasattr(kind, "__del__"):
        return False
    *bases, _ = kind.__mro__
    plain = not any(is_library(base.__module__) or vars(base).get("__slots__") for base in bases)
    return plain and any(leaf is x for leaf in tree.leaves(x))


def open_objects(x: Any, depth: int = _DEEPEST) -> Any:
    """Return a value with its objects as their attributes."""
    if type(x) in _BARE or not depth:
        return x
    if not is_openable(x):
        return tree.map(lambda leaf: leaf if leaf is x else open_objects(leaf, depth - 1), x)
    parts = {name: open_objects(y, depth - 1) for name, y in vars(x).items()}
    carried = {name: y for name, y in parts.items() if y is not None and _is_carried(y)}
    return Opened(type(x), carried, {name: y for name, y in vars(x).items() if name not in carried})


def _is_carried(x: Any) -> bool:
    return all(type(leaf) is Tracer or is_traceable(leaf) for leaf in tree.leaves(x))


def close_objects(x: Any) -> Any:
    """Return a value whose objects are objects again, new ones."""
    if type(x) in _BARE:
        return x
    return tree.map(_close_leaf, x, is_leaf=lambda y: type(y) is Opened)


def _close_leaf(x: Any) -> Any:
    if type(x) is not Opened:
        return x
    made: Any = object.__new__(x.kind)
    vars(made).update({**x.rest, **{name: close_objects(y) for name, y in x.parts.items()}})
    return made


def is_known_alone(cell: Cell, held: int = 0) -> bool:
    """Return whether nobody but a place knows the objects, lists and dictionaries that it is bound to.

    Of arrays nothing is asked. `held` is how many references the caller has himself.
    """
    if not _can_be_changed(content(cell)):
        return True
    return is_exclusive(cell, held + count_held(cell)) and all(map(is_known_alone, _parts_of(content(cell))))


def knows_arrays_alone(cell: Cell, held: int = 0) -> bool:
    """Return whether nobody but a place knows what it is bound to, the arrays in it, and those that they are views of.

    `held` is how many references the caller has himself to what the place is bound to.
    """
    x = content(cell)
    if type(x) is Tracer:
        return is_viewed_by_one(x) and is_exclusive(cell, held + 1)
    if Tracer not in map(type, tree.leaves(open_objects(x))):
        return True
    return is_exclusive(cell, held + 1) and all(map(knows_arrays_alone, _parts_of(x)))


def _can_be_changed(x: Any) -> bool:
    """Return whether a value is, or holds, an object or container that a step may change."""
    if type(x) in _BARE:
        return False
    if isinstance(x, tuple):
        return any(map(_can_be_changed, x))
    return isinstance(x, _CONTAINERS) or any(is_openable(leaf) and not _is_frozen(leaf) for leaf in tree.leaves(x))


def _is_frozen(x: Any) -> bool:
    """Return whether an object is of a frozen dataclass, and so is all that it holds."""
    made = getattr(type(x), "__dataclass_params__", None)
    return made is not None and made.frozen and not any(map(_can_be_changed, vars(x).values()))


def _parts_of(x: Any) -> list[Item]:
    """Return the places within a container or object."""
    if isinstance(x, (list, tuple, collections.deque)):
        return [Item(x, k) for k in range(len(x))]
    holder = x if isinstance(x, dict) else getattr(x, "__dict__", {})
    return [Item(holder, key) for key in holder]


def holders_in(x: Any) -> set[int]:
    """Return the identities of the objects, lists and dictionaries in a value whose parts a step may bind."""
    if type(x) in _BARE or not _can_be_changed(x):
        return set()
    parts = _parts_of(x)
    return {id(x), *(id(part.holder) for part in parts)}.union(*(holders_in(content(part)) for part in parts))


def count_held(cell: Cell) -> int:
    """Return how many references to what a place is bound to are those of what is being captured."""
    body, x = current(), content(cell)
    kept = () if body is None else body.kept
    held = sum(x is y for table in kept for y in table.values())
    while body is not None:  # a way of an if, and what it is in
        held += id(x) in body.made
        body = body.around
    return held
