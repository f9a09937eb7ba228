"""Methods of dictionaries that a step calls, as the items that they bind and delete: ``pop``, ``update``, ``|=``."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from fad.capture.body.context import current, refuse
from fad.capture.body.keyed_looks import DICTIONARIES
from fad.capture.body.places import find_item
from fad.capture.body.values import get_item, set_default, setitem, update_by_operator
from fad.core.tracing.tracer import Tracer

_NOTHING = object()


def note_deleted(x: Any, key: Any) -> None:
    """Note that a step deletes an item; refuse it where Python's order of the items behind would not be known.

    An item that is set again is the last one. Only where every step does so is that the order behind the loop.
    """
    body: Any = current()
    place = find_item(x, key)
    if place is None:
        refuse(f"it deletes an item of a {type(x).__name__}")
    sometimes = body.ways or body.around is not None or None in body.numbers
    if sometimes and key in x and next(reversed(x)) != key:
        refuse("in some steps it deletes an item of a dictionary that is not its last one")
    body.note_change(place)


def _pop(x: dict, key: Any, default: Any = _NOTHING) -> Any:
    """Return ``x.pop(key, default)``."""
    if type(key) is Tracer:
        refuse("it takes an item out of a dictionary by a key that differs from step to step")
    if key not in x:
        return x.pop(key) if default is _NOTHING else default
    note_deleted(x, key)
    return x.pop(key)


def _update(x: dict, given: Any = (), /, **named: Any) -> None:
    """Do ``x.update(given, **named)``."""
    if isinstance(given, dict):
        given = given.items()
    elif type(given) not in (list, tuple):
        refuse(f"it updates a dictionary by a {type(given).__name__}")
    for key, value in [*given, *named.items()]:
        setitem(value, x, key)


def update(name: str, x: Any, value: Any) -> Any:
    """Return what ``x += value`` binds to x, by whichever operator; of dictionaries, ``x |= value``."""
    if name != "BitOr" or type(x) not in DICTIONARIES or type(x) is Counter or current() is None:
        return update_by_operator(name, x, value)
    _update(x, value)
    return x


METHODS: dict[str, Callable] = {"get": get_item, "setdefault": set_default, "pop": _pop, "update": _update}
