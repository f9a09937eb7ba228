"""What numbers answer and arrays do not: ``x.is_integer()``, ``x.as_integer_ratio()``, ``n.bit_length()``."""

from __future__ import annotations

from collections.abc import Callable
from types import MethodType
from typing import Any

import numpy as np

from fad.core.tracing.own_attributes import OwnAttribute
from fad.core.tracing.tracer import Tracer, add_methods, up_to_date

# What looks at a number's digits: answered as ``float(x)`` is, where no derivative would be lost.
_DIGITS = ("as_integer_ratio", "hex", "bit_length", "bit_count", "to_bytes")


def _is_integer(x: Tracer) -> Any:
    x = up_to_date(x)
    if x.__class__ is float:
        with np.errstate(invalid="ignore"):  # of what is infinite
            answer = x // 1.0 == x
        if answer.__class__ is bool:
            return answer
    return x.owner.concrete(x, lambda value: value.is_integer())  # NumPy's comparisons give no Python boolean


def _itself(value: Any) -> Any:
    return value


def _looking_at_digits(name: str) -> Callable:
    def answer(x: Tracer, *args: Any, **options: Any) -> Any:
        x = up_to_date(x)
        plain = int(x) if x.dtype.kind in "iub" else x.owner.number(x, _itself)
        return getattr(x.__class__(plain), name)(*args, **options)

    answer.__name__ = name
    return answer


def _method(name: str, answer: Callable) -> OwnAttribute:
    return OwnAttribute(name, lambda x: MethodType(answer, x))


add_methods(
    is_integer=_method("is_integer", _is_integer),
    numerator=OwnAttribute("numerator", lambda x: +x),
    denominator=OwnAttribute("denominator", lambda x: 1),
    **{name: _method(name, _looking_at_digits(name)) for name in _DIGITS},
)
