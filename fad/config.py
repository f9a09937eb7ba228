"""Settings, each in a context variable: threads and async tasks do not disturb one another.

with fad.config.use(check_mutation="full"):
    ...
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

check_mutation: ContextVar[str] = ContextVar("check_mutation", default="sample")
"""How a change is noticed of an array that is kept by reference: an input of a gradient while the function runs, a
large constant of a jitted function between calls. ``"sample"`` (a fingerprint of a few elements: cheap, may miss a
change), ``"full"`` (every byte), ``"off"`` (not at all; then derivatives keep references to constants, too)."""

default_dtype: ContextVar[str] = ContextVar("default_dtype", default="float64")
"""The dtype of ``fad.random`` and of new parameters of ``fad.nn``, where none is given."""

_CHOICES = {
    check_mutation: ("sample", "full", "off"),
    default_dtype: ("float32", "float64"),
}
_SETTINGS = {setting.name: setting for setting in _CHOICES}


@contextlib.contextmanager
def use(**settings: Any) -> Iterator[None]:
    """Set options for the length of a ``with`` block.

    Raises ValueError for an unknown option or value, naming those that exist.

    >>> with use(check_mutation="full"):
    ...     check_mutation.get()
    'full'
    """
    tokens = []
    for name, value in settings.items():
        setting = _SETTINGS.get(name)
        if setting is None:
            raise ValueError(f"no option {name!r}; the options are {sorted(_SETTINGS)}")
        if value not in _CHOICES[setting]:
            raise ValueError(f"{name} must be one of {_CHOICES[setting]}, not {value!r}")
        tokens.append((setting, setting.set(value)))
    try:
        yield
    finally:
        for setting, token in reversed(tokens):
            setting.reset(token)
