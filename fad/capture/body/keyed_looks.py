"""What looks at a loop show of a dictionary whose keys it computes: by which keys it sets items, and to what.

The first look has the dictionary itself, and no number for a key: so it finds the type of an item, and a value of which
nothing else is known. From the next one on arrays stand for the dictionary (`number_dicts.py`).
"""

from __future__ import annotations

import collections
from typing import Any

import numpy as np

from fad.capture.body.context import Body, refuse
from fad.control_flow.bodies.intervals import interval, interval_at_hand
from fad.control_flow.bodies.subgraph import example
from fad.core.tracing.tracer import Tracer

DICTIONARIES = (dict, collections.defaultdict, collections.OrderedDict, collections.Counter)
# The types of numbers in one dictionary, the one to which the others are converted first.
KINDS: tuple[type, ...] = (np.float64, float, int, bool)


class Uses:
    """By which keys steps set items of a dictionary, and which types of numbers are in it."""

    __slots__ = ("box", "kinds", "classes", "single", "sets")

    def __init__(self, plain: dict):
        self.box: list[tuple[int, int]] | None = None  # between which keys lie, for each part of one
        self.classes: list[set[type]] = []  # of the keys that are set, for each part of one
        self.sets = False  # whether a step sets any
        self.single = True  # whether a key is an integer, and no tuple of such
        self.kinds: set[type] = set()
        for key, value in plain.items():
            self._widen(self.parts_of(key))
            self.add_value(value)

    def parts_of(self, key: Any) -> tuple:
        """Return the integers that a key is made of; refuse any other key."""
        parts = key if type(key) is tuple else (key,)
        if not parts or not all(map(_is_integer, parts)):
            refuse("it takes items of a dictionary by keys of which some are no integers")
        if self.classes and (len(parts) != len(self.classes) or self.single is (type(key) is tuple)):
            refuse("it takes items of a dictionary by keys of several lengths")
        if not self.classes:
            self.classes, self.single = [set() for _ in parts], type(key) is not tuple
        return parts

    def add_key(self, key: Any) -> None:
        """Note a key by which a step sets an item."""
        parts, self.sets = self.parts_of(key), True
        for part, classes in zip(parts, self.classes, strict=True):
            classes.add(example(part).__class__)
            if len(classes) > 1:
                refuse("it sets items of a dictionary by keys of Python's and of NumPy's integers")
        self._widen(parts)

    def _widen(self, parts: tuple) -> None:
        """Widen what keys lie between, if it is known between which integers this one is, at least in this call."""
        found = [interval_at_hand(x) if type(x) is Tracer else (int(x), int(x)) for x in parts]
        sides = [(least, most) for least, most in found if least is not None and most is not None]
        if len(sides) == len(found):
            box = sides if self.box is None else self.box
            self.box = [(min(a, c), max(b, d)) for (a, b), (c, d) in zip(box, sides, strict=True)]

    def add_value(self, value: Any) -> None:
        """Note what an item is set to."""
        kind = example(value).__class__
        if kind not in KINDS or np.shape(example(value)):
            refuse("it takes items of a dictionary by a key that differs from step to step, and some are no numbers")
        self.kinds.add(kind)

    def show_value(self) -> Any:
        """Return a number of the type that items have."""
        return next((kind(0) for kind in KINDS if kind in self.kinds), 0)


def bounds_of(part: Any) -> tuple[int | None, int | None]:
    """Return the least and the most that an integer of a key can be, as far as that is known."""
    return interval(part) if type(part) is Tracer else (int(part), int(part))


def _is_integer(part: Any) -> bool:
    return example(part).__class__ in (int, np.int64) and not np.shape(example(part))


def note_uses(x: dict, body: Body) -> Uses:
    """Return what the look that is run shows of a dictionary."""
    found = body.touched.get(id(x), (x, []))[1]
    if type(found) is not Uses:
        found = Uses(x)
        body.touched[id(x)] = (x, found)
    return found


def look_at_item(x: dict, key: Any, body: Body) -> Any:
    """Do ``x[key]`` in a first look."""
    uses, default = note_uses(x, body), default_of(x)
    uses.parts_of(key)
    if default is not None and type(x) is collections.defaultdict:
        look_at_change(x, key, default, body)
    return body.trace.new(uses.show_value())


def look_at_change(x: dict, key: Any, value: Any, body: Body) -> None:
    """Do ``x[key] = value`` in a first look."""
    uses = note_uses(x, body)
    uses.add_key(key)
    uses.add_value(value)


def look_for(x: dict, key: Any, default: Any, body: Body) -> Any:
    """Do ``x.get(key, default)`` in a first look."""
    uses = note_uses(x, body)
    uses.parts_of(key)
    if example(default).__class__ not in KINDS or np.shape(example(default)):
        refuse("it takes an item of a dictionary, or something else than a number")
    return body.trace.new(uses.show_value() if uses.kinds else example(default))


def default_of(x: dict) -> Any:
    """Return what a dictionary has for a key that is not there; None if that is an error."""
    if type(x) is collections.Counter:
        return 0
    factory = x.default_factory if type(x) is collections.defaultdict else None
    if factory is None:
        return None
    return factory() if factory in (int, float) else refuse("it takes items of a defaultdict that are no numbers")
