"""What stands for functions of Python's `math` and `cmath`, which make plain numbers of all that they are given."""

from __future__ import annotations

import contextlib
import inspect
import pkgutil
import sys
import types
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.core.primitives.archetypes import parameters
from fad.core.primitives.primitive import Primitive
from fad.core.runs.stand_ins import FINDERS, HARMFUL
from fad.core.tracing.conversions import OFFERED
from fad.core.tracing.tracer import Tracer, strong
from fad.core.tracing.weak import number, weaken


class StandIn:
    """What stands for a function: equal to it, so that a table with functions for keys has the same keys.

    Copies and pickles are those of the function, a class makes no method of it, and its name and text are the same.
    """

    def __init__(self, original: Callable, call: Callable):
        self.stands_for, self._call = original, call
        for name in ("__module__", "__name__", "__qualname__", "__doc__", "__self__", "__text_signature__"):
            setattr(self, name, getattr(original, name, None))
        with contextlib.suppress(ValueError):  # there is none that Python can read
            self.__signature__ = inspect.signature(original)

    def __call__(self, *args: Any, **options: Any) -> Any:
        return self._call(*args, **options)

    def __eq__(self, other: object) -> bool:
        return self is other or self.stands_for is other

    def __hash__(self) -> int:
        return hash(self.stands_for)

    def __repr__(self) -> str:
        return repr(self.stands_for)

    def __copy__(self) -> StandIn:
        return self

    def __deepcopy__(self, _: Any) -> StandIn:
        return self

    def __reduce__(self) -> tuple:
        return pkgutil.resolve_name, (f"{self.stands_for.__module__}.{self.stands_for.__name__}",)


def is_traced(args: tuple) -> bool:
    return Tracer in map(type, args)


def stand_for_operation(original: Callable, operation: Primitive, take: Callable) -> Callable:
    """Return a function that is an operation for traced values, each as `take` makes it."""
    arity = len(operation.partials or ())

    def call(*args: Any, **options: Any) -> Any:
        if is_traced(args) and len(args) == arity and not options:
            return leave(operation(*map(take, args)))
        return original(*args, **options)

    return call


def stand_for(original: Callable, own: Callable) -> Callable:
    """Return a function that is another one for traced values."""
    taken = inspect.signature(own)

    def call(*args: Any, **options: Any) -> Any:
        traced = is_traced((*args, *options.values()))
        return leave(own(*args, **options)) if traced and fits(taken, args, options) else original(*args, **options)

    return call


def fits(taken: inspect.Signature, args: tuple, options: dict) -> bool:
    """Return whether a function takes such arguments; if not, that of `math` is to say so."""
    try:
        taken.bind(*args, **options)
    except TypeError:
        return False
    return True


def leave(y: Any) -> Any:
    """Return a result as Python's where no traced value was left in it: those behind handles are plain."""
    return tuple(map(number, y)) if type(y) is tuple else number(y)


def stand_for_iterables(original: Callable, own: Callable) -> Callable:
    """Return a function that is another one where the iterables that it is given hold traced values."""
    taken = inspect.signature(own)

    def call(*args: Any, **options: Any) -> Any:
        args = tuple([list(x) if np.iterable(x) else x for x in args])
        traced = any(is_traced(tuple(x)) for x in args if type(x) is list)
        return leave(own(*args, **options)) if traced and fits(taken, args, options) else original(*args, **options)

    return call


def enter(title: str, names: Iterable[str], make: Callable[[str, Callable], Callable]) -> None:
    """Let functions of a module be differentiated: `make` gives what is called, of a name and the function."""
    names = frozenset(names)

    def pair_names(stand_ins: dict[int, Any], objects: dict[type, Any]) -> None:
        module = sys.modules.get(title)
        if module is not None and id(module) not in stand_ins:
            originals = {name: getattr(module, name) for name in names if hasattr(module, name)}
            made = {name: StandIn(f, make(name, f)) for name, f in originals.items()}
            own = types.ModuleType(title, module.__doc__)
            vars(own).update(vars(module), **made)
            stand_ins.update({id(originals[name]): f for name, f in made.items()})
            stand_ins[id(module)] = own

    FINDERS.append(pair_names)
    HARMFUL[title] = names
    OFFERED.append(lambda name: name.startswith(f"{title}.") and name[len(title) + 1 :] in ("", *names))


# --- operations that compute with such functions ----------------------------------------------------------------------


def make_forward(function: Callable, of_arrays: Callable) -> Callable:
    """Return a function that takes arrays, too: those of a batch. It raises where it does for an element."""

    def forward(*xs: Any) -> Any:
        if not any(map(np.ndim, xs)):
            return weaken(function(*map(number, xs)))
        with np.errstate(all="ignore"):
            y = of_arrays(*xs)
        if not np.all(np.isfinite(y)):
            for row in np.broadcast(*xs):
                function(*row)
        return y

    return forward


def of_scalars(partial: Callable) -> Callable:
    """Return a partial derivative that computes as NumPy does, which gives infinity where Python raises."""

    def scalars(*zs: Any) -> Any:
        return partial(*map(strong, zs))

    scalars.__dict__["parameters"] = parameters(partial)
    return scalars

