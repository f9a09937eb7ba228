"""Whether operations are recorded: one state per thread and async task, switched by context managers or decorators.

The history of tensors is recorded or not by one flag. Inside transforms there is more to say: `no_grad` hides what is
computed from the reverse-mode transforms that run already, and not from those that begin inside the block. So the state
also holds a birth number: traces that were made before it do not see what is computed now.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from fad.core.tracing.trace import _births
from fad.core.tracing.tracer import Tracer, tracer
from fad.transforms.batching.batch_trace import BatchTrace
from fad.transforms.jvp import JVPTrace
from fad.transforms.reverse.tape import Recorder

_recording: ContextVar[bool] = ContextVar("recording", default=True)
# Reverse-mode traces born before the first number see nothing now; the second is the first one's value where the
# innermost transform began, to which `enable_grad` goes back.
_hidden: ContextVar[tuple[int, int]] = ContextVar("hidden", default=(0, 0))

is_recording = _recording.get
"""Return whether operations on tensors that require grad are recorded in their history now."""


def is_grad_enabled() -> bool:
    """Return whether derivatives are recorded now: by the history of tensors, inside a transform by that transform."""
    before, floor = _hidden.get()
    return before == floor and (_recording.get() or floor != 0)


def _state(mode: bool) -> tuple:
    """Return the state in which recording is on or off."""
    _, floor = _hidden.get()
    return (floor == 0, (floor, floor)) if mode else (False, (next(_births), floor))


def _set(state: tuple) -> None:
    _recording.set(state[0])
    _hidden.set(state[1])


def without_recording(fun: Callable) -> Any:
    """Run a function while the history of tensors records nothing; an interrupt at any moment restores the mode."""
    before = _recording.get()
    try:
        _recording.set(False)
        return fun()
    finally:
        _recording.set(before)


def transform(fun: Callable) -> Callable:
    """Return a function for a reverse-mode transform: a `no_grad` around the transform does not concern it."""
    if not callable(fun):
        return fun

    @functools.wraps(fun, updated=())
    def run(*args, **kwargs):
        before = _hidden.get()
        try:
            _hidden.set((before[0], before[0]))
            return fun(*args, **kwargs)
        finally:
            _hidden.set(before)

    return run


class NeedsHistory(BaseException):
    """Raised by `autograd.grad` inside a transform of `torch.func`, which then runs its function with a history.

    No Exception: it goes past the handlers of the function itself.
    """


# What `autograd.grad` finds when it is asked about a value traced by reverse mode.
OUTSIDE, WITHOUT_HISTORY, WITH_HISTORY = range(3)
inside: ContextVar[int] = ContextVar("inside", default=OUTSIDE)


def visible(x: Any) -> Any:
    """Return a traced value as the transforms may see it that now is computed: `no_grad` hides it from older ones."""
    before, _ = _hidden.get()
    return x if before == 0 else _hide(x, before)


def _hide(x: Any, before: int) -> Any:
    if type(x) is not Tracer:
        return x
    trace = x.owner
    if isinstance(trace, Recorder):
        return _hide(x.wrapped, before) if trace.birth < before else x
    if type(trace) is BatchTrace:
        return tracer(_hide(x.wrapped, before), trace, x.info)
    if type(trace) is JVPTrace:
        return tracer(_hide(x.wrapped, before), trace, _hide(x.info, before))
    return x


class _Switch:
    """Sets the mode for the length of a ``with`` block or of a decorated function; may be entered again and again."""

    def __init__(self, mode: bool):
        self.mode = mode
        self._before: list = []

    def _state(self) -> tuple:
        return _state(self.mode)

    def __enter__(self) -> None:
        before = _recording.get(), _hidden.get()
        self._before.append(before)
        try:
            _set(self._state())
        except BaseException:  # an interrupt: the block will not be entered, so nobody would leave it
            self._before.pop()
            _set(before)
            raise

    def __exit__(self, *_: Any) -> None:
        _set(self._before.pop())

    def __call__(self, fun: Callable) -> Callable:
        mode = self.mode
        if inspect.isgeneratorfunction(fun):
            return _generator(fun, mode)

        @functools.wraps(fun)
        def wrapper(*args, **kwargs):
            with _Switch(mode):
                return fun(*args, **kwargs)

        return wrapper


def _generator(fun: Callable, mode: bool) -> Callable:
    """Set the flag while a generator runs, and not while its caller does."""

    @functools.wraps(fun)
    def wrapper(*args, **kwargs):
        it = fun(*args, **kwargs)
        sent = None
        while True:
            with _Switch(mode):
                try:
                    value = it.send(sent)
                except StopIteration as end:
                    return end.value
            sent = yield value

    return wrapper


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


class unrecorded(_Switch):
    """Lets the history of tensors record nothing for a block, while transforms go on seeing what is computed."""

    def __init__(self) -> None:
        super().__init__(False)

    def _state(self) -> tuple:
        return False, _hidden.get()


class set_grad_enabled(_Switch):
    """Set the mode by a boolean: at once when called; as a context manager, until the block ends; or a decorator."""

    def __init__(self, mode: bool):
        super().__init__(bool(mode))
        self._first = _recording.get(), _hidden.get()
        _set(_state(self.mode))

    def __enter__(self) -> None:
        _set(_state(self.mode))

    def __exit__(self, *_: Any) -> None:
        _set(self._first)

    def __call__(self, fun: Callable) -> Callable:
        _set(self._first)  # as a decorator it concerns the function alone
        return super().__call__(fun)
