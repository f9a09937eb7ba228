"""Counters from outside that the steps of a captured loop count: traced in a program, and integers behind it."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

from fad.core.tracing.tracer import Tracer, up_to_date

_places: ContextVar[list | None] = ContextVar("places", default=None)


def leave_count(place: Any, x: Any) -> None:
    """Bind a place, an attribute or a variable, to a traced integer until the program has been recorded."""
    places = _places.get()
    if places is not None:
        places.append(place)
    place.cell_contents = x


@contextlib.contextmanager
def settling_counts() -> Iterator[None]:
    """Let what has been bound to traced integers in a block be bound to what they are for the values at hand."""
    token = _places.set([])
    try:
        yield
    finally:
        for place in _places.get() or ():
            x = place.cell_contents
            while type(x) is Tracer:
                x = up_to_date(x).wrapped
            place.cell_contents = getattr(x, "tolist", lambda x=x: x)()
        _places.reset(token)
