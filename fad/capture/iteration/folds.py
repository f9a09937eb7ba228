"""Python's functions over many numbers, as loops: sum, max, min, any and all of a traced array, or a list of elements.

Each is written here as Python has it, and converted like a function of the user's.
"""

from __future__ import annotations

import collections
import functools
import math
from collections.abc import Callable, Iterable
from typing import Any

from fad.capture.body.context import current
from fad.capture.body.values import holds_numbers
from fad.capture.callees.calls import make_helpers, prepare_call
from fad.capture.containers.growing_lists import GrowingList
from fad.capture.iteration.sequences import sequence_of
from fad.capture.rewriting.convert import convert_function
from fad.core.tracing.tracer import Tracer
from fad.staging.record import is_recording


def _add(xs: Iterable, found: Any = 0) -> Any:
    for x in xs:
        found = found + x
    return found


def _multiply(xs: Iterable) -> Any:
    found: Any = 1
    for x in xs:
        found = found * x
    return found


def _find_greatest(xs: Iterable) -> Any:
    found = None
    for x in xs:
        if found is None or x > found:
            found = x
    return found


def _find_least(xs: Iterable) -> Any:
    found = None
    for x in xs:
        if found is None or x < found:
            found = x
    return found


def _find_greatest_by(xs: Iterable, key: Callable) -> Any:
    found, best = None, None
    for x in xs:
        value = key(x)
        if best is None or value > best:
            found, best = x, value
    return found


def _find_least_by(xs: Iterable, key: Callable) -> Any:
    found, best = None, None
    for x in xs:
        value = key(x)
        if best is None or value < best:
            found, best = x, value
    return found


def _reduce(f: Callable, xs: Iterable, found: Any = functools.reduce) -> Any:
    for x in xs:
        found = x if found is functools.reduce else f(found, x)
    return found


def _has_any(xs: Iterable) -> bool:
    for x in xs:  # noqa: SIM110  a loop is what it is for
        if x:
            return True
    return False


def _has_all(xs: Iterable) -> bool:
    for x in xs:  # noqa: SIM110
        if not x:
            return False
    return True


def _fold_by(own: Callable, builtin: Callable) -> Callable:
    """Return one of Python's functions that runs a loop where an array holds the numbers that it is given."""

    def fold(*args: Any, **kwargs: Any) -> Any:
        if builtin in _BY_KEY and kwargs.keys() == {"key"} and len(args) == 1 and _is_asked_by_key(args[0]):
            return _convert(_BY_KEY[builtin])(args[0], kwargs["key"])
        if kwargs or not args or not is_recording():
            return builtin(*args, **kwargs)
        args = tuple([list(x) if type(x) is collections.deque else x for x in args])
        if builtin is functools.reduce:
            if len(args) not in (2, 3) or not _is_of_traced(args[1]):
                return builtin(prepare_call(args[0]), *args[1:])
        elif builtin in (max, min) and len(args) > 1:
            if current() is None or not any(type(x) is Tracer and not x.shape for x in args):
                return builtin(*args)
            args = (args,)
        elif len(args) > 1 + (builtin is sum) or not (_is_of_traced(args[0]) or _asks_in_body(builtin, args[0])):
            return builtin(*args)
        return _convert(own)(*args)

    return fold


def _convert(own: Callable) -> Callable:
    converted, _ = convert_function(own, make_helpers[0], everywhere=current() is not None)
    return converted or own


def _is_asked_by_key(xs: Any) -> bool:
    """Return whether a body looks for the least or greatest of some things, of which it knows how many there are."""
    return current() is not None and type(xs) in (list, tuple, range) and len(xs) > 0


def _is_of_traced(xs: Any) -> bool:
    """Return whether numbers are the elements of one traced array, and there are any."""
    if type(xs) is Tracer:
        return xs.shape != () and xs.shape[0] > 0
    return type(xs) in (list, tuple, GrowingList) and not holds_numbers(xs) and sequence_of(xs) is not None


def _asks_in_body(builtin: Callable, xs: Any) -> bool:
    """Return whether a function asks numbers in a body, of which some are traced: of several types, or a few."""
    several = type(xs) in (list, tuple) and builtin in (max, min, any, all) and current() is not None
    return several and any(type(x) is Tracer and not x.shape for x in xs)


_OWN: dict[Callable, Callable] = {
    sum: _add, math.prod: _multiply, max: _find_greatest, min: _find_least, any: _has_any, all: _has_all,
    functools.reduce: _reduce,
}  # fmt: skip
_BY_KEY: dict[Callable, Callable] = {max: _find_greatest_by, min: _find_least_by}
FOLDS = {builtin: _fold_by(own, builtin) for builtin, own in _OWN.items()}
