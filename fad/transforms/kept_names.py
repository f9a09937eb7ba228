"""Functions that run later, or again, with what their closures hold now: loops bind the names anew meanwhile."""

from __future__ import annotations

import dis
import functools
import types
from typing import Any

from fad.core.transformed import LinearMap, Transformed


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
    if kind in (list, tuple) and any(type(y) is types.FunctionType for y in x):
        return kind(_keep(y, known) for y in x)
    return x


def _keep_function(f: types.FunctionType, known: dict[int, Any]) -> None:
    """Note what stands for a function: itself if no name of its closure can be bound anew."""
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

