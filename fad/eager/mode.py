"""Whether operations are recorded: one flag per thread and async task, switched by context managers or decorators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

_enabled: ContextVar[bool] = ContextVar("grad_enabled", default=True)

is_grad_enabled = _enabled.get
"""Tell whether operations on tensors that require grad are recorded now."""


class _Switch:
    """Sets the flag for the length of a ``with`` block or of a decorated function; may be entered again and again."""

    def __init__(self, mode: bool):
        self.mode = mode
        self._tokens: list = []

    def __enter__(self) -> None:
        self._tokens.append(_enabled.set(self.mode))

    def __exit__(self, *_: Any) -> None:
        _enabled.reset(self._tokens.pop())

    def __call__(self, fun: Callable) -> Callable:
        mode = self.mode
        if inspect.isgeneratorfunction(fun):
            return _generator(fun, mode)

        @functools.wraps(fun)
        def wrapped(*args, **kwargs):
            with _Switch(mode):
                return fun(*args, **kwargs)

        return wrapped


def _generator(fun: Callable, mode: bool) -> Callable:
    """Set the flag while a generator runs, and not while its caller does."""

    @functools.wraps(fun)
    def wrapped(*args, **kwargs):
        it = fun(*args, **kwargs)
        sent = None
        while True:
            with _Switch(mode):
                try:
                    value = it.send(sent)
                except StopIteration as end:
                    return end.value
            sent = yield value

    return wrapped


def no_grad(fun: Callable | None = None) -> Any:
    """Record nothing inside: ``with no_grad():``, ``@no_grad()`` or ``@no_grad``.

    >>> import fad.eager as torch
    >>> x = torch.ones(2, requires_grad=True)
    >>> with torch.no_grad():
    ...     y = 2 * x
    >>> y.requires_grad
    False
    """
    return _Switch(False) if fun is None else _Switch(False)(fun)


def enable_grad(fun: Callable | None = None) -> Any:
    """Record again inside a block where :func:`no_grad` holds; a context manager or a decorator."""
    return _Switch(True) if fun is None else _Switch(True)(fun)


class set_grad_enabled(_Switch):
    """Set the flag by a boolean: at once when called; as a context manager, until the block ends; or a decorator."""

    def __init__(self, mode: bool):
        super().__init__(bool(mode))
        self._before = _enabled.get()
        _enabled.set(self.mode)

    def __enter__(self) -> None:
        _enabled.set(self.mode)

    def __exit__(self, *_: Any) -> None:
        _enabled.set(self._before)

    def __call__(self, fun: Callable) -> Callable:
        _enabled.set(self._before)  # as a decorator it concerns the function alone
        return super().__call__(fun)
