"""The values that a function holds: in its closure, its defaults, the arguments of a partial, a method's instance."""

from __future__ import annotations

import functools
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.memory import copy_layout, is_writeable, snapshot
from fad.core.tracer import Tracer
from fad.core.transformed import Transformed
from fad.errors import CustomRuleError


def find_closed_over(function: Any, arrays: bool = False) -> tuple[list, Callable]:
    """Return the traced values that a function holds, and a function that makes it again with others in their place.

    With `arrays`, plain arrays of numbers are returned with them. A tuple of functions is taken too.

    They are looked for in the cells of its closure, its defaults, the arguments of a partial, the instance of a method
    that is a pytree, and in functions found there. Values are the leaves of pytrees.
    """
    held: list = []
    build = _open_value(function, held, {}, arrays)
    return held, lambda values: _build(build, function, list(values))


def find_as_now(function: Any) -> tuple[list, Callable]:
    """Do what `find_closed_over` does for a rule that runs later: the values stay what they are now."""
    held, rebuild = find_closed_over(function)
    return [snapshot(x) for x in held], rebuild


def hold_as_now(function: Any) -> Any:
    """Return a function that finds the arrays of its closure as they are now, whatever is written into them."""
    held, rebuild = find_closed_over(function, arrays=True)
    return rebuild([_copy(x) if type(x) is np.ndarray else snapshot(x) for x in held]) if held else function


def hold_arrays(function: Any) -> Any:
    """Return a function that finds the plain arrays of its closure as they are now, and traced ones where they were."""
    held, rebuild = find_closed_over(function, arrays=True)
    return rebuild([_copy(x) if type(x) is np.ndarray else x for x in held]) if held else function


def _copy(x: np.ndarray) -> np.ndarray:
    return copy_layout(x) if is_writeable(x) else x


def _open_value(x: Any, held: list, seen: dict, arrays: bool) -> Callable | None:
    """Collect the traced values inside `x`; return what builds `x` from others in their place, or None."""
    if type(x) is Tracer or (arrays and type(x) is np.ndarray and x.dtype.kind in "biufc"):
        place = len(held)
        held.append(x)
        return lambda values: values[place]
    if id(x) in seen:
        return seen[id(x)]
    if isinstance(x, types.FunctionType):
        return _open_function(x, held, seen, arrays)
    if isinstance(x, Transformed):
        run = _open_value(x.run, held, seen, arrays)
        return run and (lambda values: x.with_run(run(values)))
    if isinstance(x, types.MethodType):
        owner, plain = _open_value(x.__self__, held, seen, arrays), x.__func__
        return owner and (lambda values: types.MethodType(plain, owner(values)))
    if isinstance(x, functools.partial):
        parts = _open_value((x.func, x.args, x.keywords), held, seen, arrays)
        made = lambda func, args, keywords: functools.partial(func, *args, **keywords)
        return parts and (lambda values: made(*parts(values)))
    leaves, structure = tree.flatten(x)
    if len(leaves) == 1 and leaves[0] is x:
        return None
    builders = [_open_value(leaf, held, seen, arrays) for leaf in leaves]
    if not any(builders):
        return None
    return lambda values: tree.unflatten(
        structure, [_build(b, v, values) for b, v in zip(builders, leaves, strict=True)]
    )


def _open_function(f: types.FunctionType, held: list, seen: dict, arrays: bool) -> Callable | None:
    seen[id(f)] = None  # a function that refers to itself keeps its own closure
    places = f.__closure__ or ()
    cells = [_open_value(_contents(c), held, seen, arrays) for c in places]
    defaults = _open_value(f.__defaults__, held, seen, arrays)
    keywords = _open_value(f.__kwdefaults__, held, seen, arrays)

    def build(values):
        closure = tuple(types.CellType(b(values)) if b else c for b, c in zip(cells, places, strict=True))
        made = types.FunctionType(
            f.__code__, f.__globals__, f.__name__, _build(defaults, f.__defaults__, values), closure or None
        )
        made.__kwdefaults__ = _build(keywords, f.__kwdefaults__, values)
        return made

    if any(cells) or defaults or keywords:
        seen[id(f)] = build  # met again, in another function's closure, it is made again there too
    return seen[id(f)]


def _build(builder: Callable | None, x: Any, values: list) -> Any:
    return builder(values) if builder else x


def _contents(cell: Any) -> Any:
    try:
        return cell.cell_contents
    except ValueError:  # a cell that is not filled yet
        raise CustomRuleError("a function was used before a variable of its closure had a value") from None
