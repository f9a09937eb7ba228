"""Static arguments of a jitted function: those that are part of the program, and are distinguished by their hash."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.runs.transformed import as_run
from fad.errors import StaticArgumentError


class StaticArguments:
    """Which arguments of a function are static, by number and by name; false if there are none."""

    __slots__ = ("fun", "nums", "names")

    def __init__(self, fun: Callable, nums: Any, names: Any):
        self.fun = fun
        self.nums, self.names = _complete(fun, nums, names)

    def __bool__(self) -> bool:
        return bool(self.nums or self.names)

    def split(self, args: tuple, kwargs: dict) -> tuple:
        """Take static arguments out; return the function of the others, the others, and the static ones' key."""
        nums, names = self.nums, self.names
        if not nums and not names:
            return self.fun, args, kwargs, ()
        fixed = {n % len(args): args[n] for n in nums if -len(args) <= n < len(args)}
        named = {k: v for k, v in kwargs.items() if k in names}
        rest, count = tuple(a for n, a in enumerate(args) if n not in fixed), len(args)
        user = self.fun  # in the closure, where transforms look for the code that is going to run

        def fun(*rest, **others):
            it = iter(rest)
            return as_run(user)(*[fixed[n] if n in fixed else next(it) for n in range(count)], **others, **named)

        key = (
            tuple((n, type(v), hashable(v, f"static argument {n}")) for n, v in sorted(fixed.items())),
            tuple((k, type(v), hashable(v, f"static argument {k!r}")) for k, v in sorted(named.items())),
        )
        return fun, rest, {k: v for k, v in kwargs.items() if k not in names}, key


def hashable(x: Any, what: str) -> Any:
    """Return what a value is known by: itself where ``==`` tells all that the function may see.

    It does not tell 0.0 from -0.0 nor, inside a tuple, 1 from 1.0; NaN is not even equal to itself, and slices cannot
    be hashed in older Pythons.
    """
    if isinstance(x, (slice, tuple)):
        parts = (x.start, x.stop, x.step) if type(x) is slice else x
        return (type(x), *[(type(part), hashable(part, f"a part of {what}")) for part in parts])
    if type(x) in (float, complex):
        return repr(x)
    if isinstance(x, np.generic):
        return (type(x), x.tobytes())
    try:
        hash(x)
    except TypeError:
        kind = type(x).__name__
        advice = "Pass a tuple for a list, or an array as an ordinary argument"
        if dataclasses.is_dataclass(x):
            advice = f"Write @fad.tree.register_dataclass above @dataclass of {kind}, so that its fields are arguments"
        raise StaticArgumentError(
            f"{what} of a jitted function is of type {kind}, which cannot be hashed, so jit cannot know if it is "
            f"the same next time. {advice}"
        ) from None
    return x


def as_tuple(x: Any) -> tuple:
    return () if x is None else (x,) if isinstance(x, (int, str)) else tuple(x)


def _complete(fun: Callable, nums: Any, names: Any) -> tuple[tuple, frozenset]:
    """Complete numbers by names and names by numbers, so that an argument is static however it is passed."""
    if not callable(fun):
        raise TypeError(
            f"jit takes a function, not {type(fun).__name__}; options are keywords: jit(f, static_argnums=1)"
        )
    nums, names = as_tuple(nums), set(as_tuple(names))
    if not nums and not names:
        return (), frozenset()
    try:
        parameters = list(inspect.signature(fun).parameters.values())
    except (TypeError, ValueError):
        return nums, frozenset(names)
    positional = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    kinds = {p.kind for p in parameters}
    n = len(positional)
    wrong: list = [k for k in nums if inspect.Parameter.VAR_POSITIONAL not in kinds and not -n <= k < n]
    if inspect.Parameter.VAR_KEYWORD not in kinds:
        wrong += [repr(k) for k in names - {p.name for p in parameters}]
    if wrong:
        raise ValueError(f"jit has static arguments that the function lacks: {', '.join(map(str, wrong))}")
    more = {positional.index(n) for n in names if n in positional}
    names |= {positional[n] for n in nums if -len(positional) <= n < len(positional)}
    return tuple(sorted({*nums, *more})), frozenset(names)
