"""What a transform returns: a function that is called like the function it was made of, and says what it is."""

from __future__ import annotations

import functools
import re
import types
from collections.abc import Callable
from types import FunctionType
from typing import Any

from fad.core.runs.stand_ins import STOOD_FOR, stand_for_given

_COPIED = tuple(name for name in functools.WRAPPER_ASSIGNMENTS if name != "__doc__")


def name_of(fun: Any) -> str:
    """Return how a function is called in a repr: its name, or its own repr if fad made it or it has no name.

    >>> name_of(len)
    'len'
    """
    shown = repr(fun) if type(fun).__module__.startswith("fad.") else ""
    return shown if shown.startswith("<fad.") or type(fun) is LinearMap else getattr(fun, "__name__", None) or repr(fun)


class _TextOfWrapped:
    """``__doc__`` of an instance is that of the function within, read when somebody looks: `help` of an operation."""

    def __init__(self, text: str | None):
        self.text = text

    def __get__(self, instance: Any, owner: Any = None) -> str | None:
        return self.text if instance is None else instance.__wrapped__.__doc__


class Wrapping:
    """What the classes of transformed functions share: name, signature, module and docstring of the function within."""

    __wrapped__: Callable
    __qualname__: str

    def __init_subclass__(cls) -> None:
        cls.__doc__ = _TextOfWrapped(cls.__doc__)  # type: ignore[assignment]

    def adopt(self, fun: Callable) -> None:
        """Take over what a function is called; its docstring stays there and is read when somebody looks."""
        functools.update_wrapper(self, fun, _COPIED, ())  # type: ignore[arg-type]


class Running:
    """What all functions that transforms return share: code and variables of what runs, and that a copy is the same."""

    __slots__ = ()
    run: Callable

    def __copy__(self) -> Running:
        return self

    def __deepcopy__(self, memo: dict) -> Running:
        return self

    @property
    def __code__(self) -> types.CodeType:
        return self.run.__code__

    @property
    def __closure__(self) -> tuple | None:
        return self.run.__closure__


class Transformed(Running, Wrapping):
    """A function that a transform made of another, with that one's name, signature, module and docstring.

    Parameters
    ----------
    transform : str
        The public name of the transform below ``fad``.
    fun : callable
        The function that was transformed; it is ``__wrapped__``.
    run : callable
        What runs when the new function is called.

    Examples
    --------
    >>> import numpy as np, fad
    >>> fad.grad(np.sin)
    <fad.grad of sin>
    >>> fad.vmap(fad.grad(lambda x: x**2))
    <fad.vmap of <fad.grad of <lambda>>>
    """

    def __init__(self, transform: str, fun: Callable, run: Callable):
        self.adopt(fun)
        self._transform = transform
        self.run = run

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.run(*args, **kwargs) if kwargs else self.run(*args)

    def __get__(self, instance: Any, owner: Any = None) -> Any:
        return self if instance is None else types.MethodType(self, instance)

    def __repr__(self) -> str:
        return f"<fad.{self._transform} of {name_of(self.__wrapped__)}>"

    def __reduce__(self) -> str:  # pickled by name, as functions are
        return self.__qualname__

    def with_run(self, run: Callable) -> Transformed:
        """Return the same transformed function with another function that runs."""
        return Transformed(self._transform, self.__wrapped__, run)


def transformed(transform: str, fun: Callable) -> Callable[[Callable], Transformed]:
    """Return a decorator for what runs: ``@transformed("grad", fun)``."""
    return lambda run: Transformed(transform, fun, run)


class LinearMap(Running):
    """A derivative at a point, as a function: a pullback, or a pushforward.

    Parameters
    ----------
    kind : str
        "pullback" or "pushforward".
    fun : callable
        The function that was differentiated; only its name is kept.
    run : callable
        What runs when the map is called.
    takes, gives : tuple
        The structure and the leaves of something like what it takes and what it returns, which `run` holds as well.

    Examples
    --------
    >>> import numpy as np, fad
    >>> fad.vjp(np.sum, np.ones(3))[1]
    <pullback of sum: float64[] -> (float64[3],)>
    >>> fad.linearize(np.sum, np.ones(3))[1]
    <pushforward of sum: (float64[3],) -> float64[]>
    """

    __slots__ = ("kind", "name", "run", "takes", "gives", "__weakref__")

    def __init__(self, kind: str, fun: Callable, run: Callable, takes: tuple, gives: tuple):
        self.kind = kind
        self.name = fun.__name__ if type(fun) is types.FunctionType else name_of(fun)
        self.run = run
        self.takes: Any = takes
        self.gives: Any = gives

    def __call__(self, *args: Any) -> Any:
        return self.run(*args)

    def __repr__(self) -> str:
        return f"<{self.kind} of {self.name}: {_write_types(self.takes)} -> {_write_types(self.gives)}>"

    def with_run(self, run: Callable) -> LinearMap:
        """Return the same map with another function that runs; what the first one holds is let go."""
        other = LinearMap.__new__(LinearMap)
        other.kind, other.name, other.run = self.kind, self.name, run
        other.takes, other.gives = _write_types(self.takes), _write_types(self.gives)
        return other


def _write_types(like: Any) -> str:
    """Return the types of a tree's leaves in its structure: ``{'a': float64[3], 'b': float64[]}``."""
    if type(like) is str:
        return like
    structure, leaves = like
    words = [f"{x.dtype}{list(x.shape)}" if hasattr(x, "dtype") else type(x).__name__ for x in leaves]
    parts = re.sub(r"^PyTreeSpec\((.*?)(, NoneIsLeaf)?(, namespace='\w*')?\)$", r"\1", str(structure)).split("*")
    if len(parts) != len(words) + 1:  # a star in the name of a key
        return ", ".join(words)
    return parts[0] + "".join(w.replace(" ", "") + part for w, part in zip(words, parts[1:], strict=True))


conversions: list[Callable] = []
"""What makes of a function of the user's the one that is run while a program is recorded; put there by the capture of
loops, which stands above."""


def as_run(fun: Callable) -> Callable:
    """Return a function of the user's as a transform is to call it: a library's own as what stands in for it."""
    if type(fun) is not FunctionType or (fun.__module__ or "").partition(".")[0] in STOOD_FOR:
        fun = stand_for_given(fun)
    return conversions[0](fun) if conversions else fun
