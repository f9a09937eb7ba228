"""``print`` in the steps of a captured loop, also of text that is made of their values: ``print(f"{i}: {x:.3f}")``."""

from __future__ import annotations

import builtins
import contextlib
import logging
import operator
import types
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.capture.body.context import current, is_staged, refuse
from fad.control_flow.bodies.subgraph import example
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import stop_gradient, traces_of
from fad.introspect.frames import is_showing, showing
from fad.staging.prints import Prints, print_p
from fad.staging.record import recorder
from fad.staging.record_trace import RecordTrace
from fad.transforms.batching.batch_trace import BatchTrace

_CONVERSIONS: dict[int, Callable] = {-1: lambda x: x, 115: str, 114: repr, 97: ascii}
_OF_LOGGING = (logging.debug, logging.info, logging.warning, logging.error, logging.critical, logging.log)
SHOWING = (print, warnings.warn, *_OF_LOGGING)
_PLAIN = (str, int, float, complex, bool, type(None), np.generic)


class StepText:
    """Text made of values that differ from step to step, for a function that shows it."""

    __slots__ = ("make", "values")

    def __init__(self, make: Callable[..., str], values: tuple):
        self.make = make
        self.values = values

    def waits(self) -> bool:
        """Whether it is known in a step alone."""
        return any(is_staged(x) or (type(x) is StepText and x.waits()) for x in self.values)

    def whole(self) -> str:
        """Return the text."""
        return self.make(*[x.whole() if type(x) is StepText else x for x in self.values])


def make_text(show: Any, text: Any) -> Any:
    """Return a text, or what stands for one that differs from step to step, if a function shows it and no more."""
    if type(text) is not StepText or (text.waits() and (any(show is x for x in SHOWING) or is_of_logging(show))):
        return text
    with showing() if is_showing(show) else contextlib.nullcontext():
        return text.whole()


def is_of_logging(f: Any) -> bool:
    """Return whether a function is a method that loggers have of Python's library."""
    return type(f) is types.MethodType and isinstance(f.__self__, logging.Logger) and f.__module__ == "logging"


def text_of_parts(*parts: Any) -> StepText:
    """Return an f-string of texts, and of values with their conversions and formats."""
    templates = [part if type(part) is str else part[1:] for part in parts]

    def join(*values: Any) -> str:
        rest = iter(values)
        return "".join([x if type(x) is str else _format(next(rest), *x) for x in templates])

    return StepText(join, tuple([part[0] for part in parts if type(part) is not str]))


def text_of_percent(text: str, several: bool, *values: Any) -> StepText:
    """Return ``text % values``, of a tuple of several, or of one."""
    return StepText(lambda *found: text % (found if several else found[0]), values)


def text_of_format(text: str, *args: Any, **kwargs: Any) -> StepText:
    """Return ``text.format(*args, **kwargs)``."""
    count = len(args)

    def make(*found: Any) -> str:
        return text.format(*found[:count], **dict(zip(kwargs, found[count:], strict=True)))

    return StepText(make, (*args, *kwargs.values()))


def text_of_two(a: Any, b: Any) -> Any:
    """Return ``a + b`` of which one is a text."""
    return StepText(operator.add, (a, b)) if StepText in (type(a), type(b)) else a + b


def text_of_value(kind: type | Callable, x: Any) -> StepText:
    """Return ``str(x)`` or ``repr(x)``."""
    return StepText(kind, (x,))


def _format(value: Any, conversion: int, spec: str) -> str:
    return format(_CONVERSIONS[conversion](value), spec)


def print_in_step(*args: Any, **options: Any) -> None:
    """Print in each step of the loop that is captured."""
    if options.keys() - {"sep", "end", "flush"} or not all(isinstance(x, _PLAIN) for x in options.values()):
        refuse("it prints to a file")
    show_in_step("prints", lambda *plain: builtins.print(*plain, **options), args)


def show_in_step(what: str, show: Callable, args: tuple) -> None:
    """Call a function in each step of the loop that is captured, with texts, numbers and arrays of that step."""
    body: Any = current()
    if not body.numbers or None in body.numbers:
        refuse(f"it {what}, and it is not known how many steps there are")
    values: list = []
    shown = [_find_values(x, values, what) for x in args]
    if any(isinstance(trace, BatchTrace) for x in values for trace in traces_of(x)):
        refuse(f"it {what} batches of values")
    if body.trial:
        return
    kinds = [example(x).__class__ for x in values]

    def run(*found: Any) -> None:
        plain = [_as_pythons(x, kind) for x, kind in zip(found, kinds, strict=True)]
        show(*[_fill(x, plain) for x in shown])

    trace: Any = recorder.get()
    operands = tuple([_number_behind(stop_gradient(x)) for x in (*body.numbers, *values)])
    trace.process(print_p, operands, {"prints": Prints(run, _has_real_values), "count": len(body.numbers)})


class _Value:
    """The place of a value among those of a step."""

    __slots__ = ("place",)

    def __init__(self, place: int):
        self.place = place


def _find_values(x: Any, values: list, what: str) -> Any:
    """Return what is to be shown with places for its values, which are put into a list."""
    if type(x) is StepText:
        return StepText(x.make, tuple([_find_values(v, values, what) for v in x.values]))
    if type(x) is Tracer:
        values.append(x)
        return _Value(len(values) - 1)
    return x if type(x) in _PLAIN or isinstance(x, np.generic) else refuse(f"it {what} a {type(x).__name__}")


def _fill(x: Any, values: list) -> Any:
    if type(x) is StepText:
        return x.make(*[_fill(v, values) for v in x.values])
    return values[x.place] if type(x) is _Value else x


def _as_pythons(x: Any, kind: type) -> Any:
    """Return a value of a step as what it is to the plain program: a number of Python's, a scalar or an array."""
    if kind in (bool, int, float, complex):
        return kind(x)
    return x[()] if type(x) is np.ndarray and not x.shape and kind is not np.ndarray else x


def _number_behind(x: Any) -> Any:
    while type(x) is Tracer and not isinstance(x.owner, RecordTrace):
        x = x.wrapped
    return x


def _has_real_values() -> bool:
    trace = recorder.get()
    return trace is None or not trace.of_examples
