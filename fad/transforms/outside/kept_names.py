"""Functions that run later, or again, with what their closures and objects hold now, whatever loops bind meanwhile."""

from __future__ import annotations

import contextlib
import dis
import functools
import types
from collections.abc import Iterable, Iterator
from typing import Any

from fad.core.runs.transformed import LinearMap, Transformed
from fad.introspect.reachable import PLAIN, Place

_MISSING: Any = object()
_FEW = 64  # elements up to which a list is looked into for functions


def keep_names(function: Any) -> Any:
    """Return a function that finds in its closure what is there now, whatever the program binds the names to later.

    ``for k in range(9): total += quad(lambda t: f(t, k), 0, 1)[0]`` gives a solver functions that run again in the
    backward pass. What a function binds itself (``nonlocal``) it shares with the program, as before.
    """
    return _keep(function, {})


def _keep(x: Any, known: dict[int, Any]) -> Any:
    kind = type(x)
    if kind is types.FunctionType:
        if id(x) not in known:
            _keep_function(x, known)
        return known[id(x)]
    if kind is functools.partial:
        return functools.partial(_keep(x.func, known), *x.args, **x.keywords)
    if kind in (Transformed, LinearMap):
        run = _keep(x.run, known)
        return x if run is x.run else x.with_run(run)
    if kind in (list, tuple) and len(x) <= _FEW and any(type(y) is types.FunctionType for y in x):
        return kind(_keep(y, known) for y in x)
    return x


def _keep_function(f: types.FunctionType, known: dict[int, Any]) -> None:
    """Note what stands for a function: itself if no name of its closure can be bound again."""
    known[id(f)] = f
    bound = _find_bound(f.__code__)
    old = f.__closure__ or ()
    kept = [name not in bound and _is_filled(c) for name, c in zip(f.__code__.co_freevars, old, strict=True)]
    if not any(kept):
        return
    cells = tuple([types.CellType() if keep else c for keep, c in zip(kept, old, strict=True)])
    made = types.FunctionType(f.__code__, f.__globals__, f.__name__, f.__defaults__, cells)
    made.__kwdefaults__, made.__qualname__, made.__module__ = f.__kwdefaults__, f.__qualname__, f.__module__
    made.__doc__ = f.__doc__
    vars(made).update(vars(f))
    known[id(f)] = made  # before its cells are filled: it may call itself
    for keep, new, c in zip(kept, cells, old, strict=True):
        if keep:
            new.cell_contents = _keep(c.cell_contents, known)


def _is_filled(cell: types.CellType) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


@functools.lru_cache(4096)
def _find_bound(code: types.CodeType) -> frozenset[str]:
    """Return the names of its closure that some code binds, or a function within it."""
    own = {at.argval for at in dis.get_instructions(code) if at.opname in ("STORE_DEREF", "DELETE_DEREF")}
    inner = [_find_bound(c) for c in code.co_consts if isinstance(c, types.CodeType)]
    return frozenset(own.union(*inner))


# --- numbers in objects, dictionaries and lists ---------------------------------------------------------------------


def find_plain(places: Iterable[Place]) -> list[Place]:
    """Return those of some places in dictionaries, of objects too, and lists that hold numbers or text now."""
    now = [place._replace(value=read_place(place)) for place in places if type(place.held) in (dict, list)]
    return [place for place in now if type(place.value) in PLAIN]


def read_place(place: Place) -> Any:
    """Return what a place holds now."""
    try:
        return place.held[place.key]
    except (LookupError, TypeError):  # it is not there any more, or no place of a dictionary or list
        return _MISSING


@contextlib.contextmanager
def holding(places: list[Place]) -> Iterator[None]:
    """Let places hold for the length of a block what they held when they were found; what is bound there stays."""
    now = [(place, read_place(place)) for place in places]
    now = [(place, x) for place, x in now if x is not place.value and x is not _MISSING]
    for place, _ in now:
        place.held[place.key] = place.value
    try:
        yield
    finally:
        for place, x in now:
            if read_place(place) is place.value:
                place.held[place.key] = x
