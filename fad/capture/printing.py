"""``print`` in the steps of a captured loop, also of text that is made of their values: ``print(f"{i}: {x:.3f}")``."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.capture.context import current, is_staged, refuse
from fad.control_flow.subgraph import example
from fad.core.tracer import Tracer
from fad.core.values import stop_gradient, traces_of
from fad.staging.prints import Prints, print_p
from fad.staging.record import RecordTrace, recorder
from fad.transforms.batch_trace import BatchTrace

_CONVERSIONS: dict[int, Callable] = {-1: lambda x: x, 115: str, 114: repr, 97: ascii}
_PLAIN = (str, int, float, complex, bool, type(None), np.generic)


class StepText:
    """Text made of values that differ from step to step, in the brackets of a call of ``print``."""

    __slots__ = ("parts",)

    def __init__(self, parts: tuple):
        self.parts = parts


def make_text(*parts: Any) -> Any:
    """Return an f-string of texts, and of values with their conversions and formats; or what stands for one."""
    if any(type(part) is tuple and is_staged(part[0]) for part in parts):
        return StepText(parts)
    return "".join([part if type(part) is str else _format(*part) for part in parts])


def _format(value: Any, conversion: int, spec: str) -> str:
    return format(_CONVERSIONS[conversion](value), spec)


def print_in_step(*args: Any, **options: Any) -> None:
    """Print in each step of the loop that is captured."""
    body: Any = current()
    if not body.numbers or None in body.numbers:
        refuse("it prints, and it is not known how many steps there are")
    if options.keys() - {"sep", "end", "flush"} or not all(isinstance(x, _PLAIN) for x in options.values()):
        refuse("it prints to a file")
    values: list = []
    shown = [_find_values(x, values) for x in args]
    if any(isinstance(trace, BatchTrace) for x in values for trace in traces_of(x)):
        refuse("it prints batches of values")
    if body.trial:
        return
    kinds = [example(x).__class__ for x in values]

    def show(*found: Any) -> None:
        plain = [_as_pythons(x, kind) for x, kind in zip(found, kinds, strict=True)]
        builtins.print(*[_fill(x, plain) for x in shown], **options)

    trace: Any = recorder.get()
    operands = tuple([_number_behind(stop_gradient(x)) for x in (*body.numbers, *values)])
    trace.process(print_p, operands, {"prints": Prints(show, _has_real_values), "count": len(body.numbers)})


class _Value:
    """The place of a value among those of a step."""

    __slots__ = ("place",)

    def __init__(self, place: int):
        self.place = place


def _find_values(x: Any, values: list) -> Any:
    """Return what is to be printed with places for its values, which are put into a list."""
    if type(x) is StepText:
        return StepText(tuple([p if type(p) is str else (_find_values(p[0], values), *p[1:]) for p in x.parts]))
    if type(x) is Tracer:
        values.append(x)
        return _Value(len(values) - 1)
    return x if type(x) in _PLAIN or isinstance(x, np.generic) else refuse(f"it prints a {type(x).__name__}")


def _fill(x: Any, values: list) -> Any:
    if type(x) is StepText:
        return "".join([p if type(p) is str else _format(_fill(p[0], values), *p[1:]) for p in x.parts])
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
