"""Texts and members of enumerations that differ from step to step: ``state = "cooling"``, ``phase = Phase.HEAT``.

A program computes with numbers. So a label has one, and a name that is bound to labels is carried as that number. In a
step a `Label` stands for what the name is bound to, which can be compared, and taken for a key of a dictionary. Behind
the loop the name is bound to a label again: which one it is, is asked.
"""

from __future__ import annotations

import enum
import functools
from typing import Any, NoReturn

import numpy as np

from fad import tree
from fad.capture.body.context import body_trace, refuse
from fad.capture.body.objects import close_objects, open_objects
from fad.capture.body.stacked_lists import list_numbers, stack_numbers
from fad.core.tracing.tracer import Tracer

_numbers: dict[tuple[type, Any], int] = {}  # of all labels that names were bound to
_labels: list[Any] = []


class Label:
    """Stands for a label of some type, of which a traced number says which it is."""

    __slots__ = ("kind", "number")

    def __init__(self, kind: type, number: Any):
        self.kind = kind
        self.number = number

    @property  # type: ignore[misc]
    def __class__(self) -> Any:
        """What `isinstance` asks for."""
        return self.kind

    def __eq__(self, other: Any) -> Any:
        kind = other.kind if type(other) is Label else type(other)
        if kind is self.kind:
            return np.equal(self.number, other.number if type(other) is Label else number_of(other))
        if not {kind, self.kind} <= {str, type(None)} and any(issubclass(k, (str, int)) for k in (kind, self.kind)):
            self._refuse()  # members of enumerations may be equal to others
        return False

    def __ne__(self, other: Any) -> Any:
        return np.logical_not(self == other)

    def _refuse(self, *_: Any) -> NoReturn:
        refuse(f"it uses a {self.kind.__name__} that differs from step to step otherwise than to compare it")

    __bool__ = __hash__ = __str__ = __repr__ = __format__ = __len__ = __iter__ = __getitem__ = __contains__ = _refuse
    __add__ = __radd__ = __mul__ = __rmul__ = __mod__ = __int__ = __index__ = __float__ = __lt__ = __gt__ = _refuse
    __le__ = __ge__ = __sub__ = __rsub__ = _refuse

    def __getattr__(self, name: str) -> NoReturn:
        self._refuse()


class _Numbered:
    """A label as its number."""

    __slots__ = ("kind", "number")

    def __init__(self, kind: type, number: Any):
        self.kind = kind
        self.number = number


tree.register_node(_Numbered, lambda x: ((x.number,), x.kind), lambda kind, numbers: _Numbered(kind, *numbers))


def number_of(x: Any) -> np.int64:
    """Return the number of a label."""
    if (type(x), x) not in _numbers:
        _numbers[type(x), x] = len(_labels)
        _labels.append(x)
    return np.int64(_numbers[type(x), x])


def is_label(x: Any) -> bool:
    """Return whether something is a text or a member of an enumeration."""
    return type(x) is str or (issubclass(type(x), enum.Enum) and not issubclass(type(x), enum.Flag))


def number_labels(x: Any) -> Any:
    """Return a value, or a tuple, with labels as their numbers."""
    if type(x) is Label:
        return _Numbered(x.kind, x.number)
    if isinstance(x, tuple):
        parts = map(number_labels, x)
        return type(x)(*parts) if hasattr(x, "_fields") else tuple(parts) if type(x) is tuple else x
    return _Numbered(type(x), number_of(x)) if is_label(x) else x


def name_labels(x: Any) -> Any:
    """Return a value with labels in the place of their numbers."""
    return tree.map(_name_label, x, is_leaf=is_opened_label)


def _name_label(x: Any) -> Any:
    if type(x) is not _Numbered:
        return x
    traced = type(x.number) is Tracer and body_trace(x.number) is not None
    return Label(x.kind, x.number) if traced else _labels[int(x.number)]


def open_name(x: Any) -> Any:
    """Return what a name is bound to with labels as their numbers, and objects as their attributes."""
    return stack_numbers(open_objects(number_labels(x)))


def close_name(x: Any) -> Any:
    """Return what a name is to be bound to, of what it was carried as."""
    return list_numbers(name_labels(close_objects(x)))


def find_numbers(things: list) -> list[Tracer]:
    """Return the numbers of the labels among some things."""
    return [x.number for x in things if type(x) is Label and type(x.number) is Tracer]


def is_opened_label(x: Any) -> bool:
    """Return whether something is the number of a label."""
    return type(x) is _Numbered


def is_one_of(x: Any, labels: Any) -> Any:
    """Return ``x in labels`` of a label that differs from step to step."""
    if type(labels) not in (tuple, list, set, frozenset, dict):
        x._refuse()
    return functools.reduce(np.logical_or, [x == y for y in labels], np.bool_(False))
