"""Settings, each in a context variable: threads and async tasks do not disturb one another.

with fad.config.use(check_mutation="full"):
    ...
"""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator
from contextvars import ContextVar
from typing import Any

check_mutation: ContextVar[str] = ContextVar("check_mutation", default="sample")
"""How a change is noticed of an array that is kept by reference: an input of a gradient while the function runs, a
large constant of a jitted function between calls. ``"sample"`` (a fingerprint of a few elements: cheap, may miss a
change), ``"full"`` (every byte), ``"off"`` (not at all; then derivatives keep references to constants, too)."""

default_dtype: ContextVar[str] = ContextVar("default_dtype", default="float64")
"""The dtype of ``fad.random`` and of new parameters of ``fad.nn``, where none is given."""

device_graphs: ContextVar[bool] = ContextVar("device_graphs", default=True)
"""Whether the launches of a jitted program on a GPU are recorded (as a CUDA graph) and replayed as one from the third
call on. A recording keeps the memory that the program's run takes, and its results."""

error_links: ContextVar[bool] = ContextVar("error_links", default=True)
"""Whether the message of an error ends with the address of its page. ``fad.config.error_links.set(False)`` turns that
off for the rest of the program."""

kernel_cache_bytes: ContextVar[int] = ContextVar("kernel_cache_bytes", default=256 * 2**20)
"""How many bytes of compiled kernels are kept on disk, for all programs together. Beyond that the oldest are removed,
now and then, so that there may be about a sixteenth more for each process that compiles. With 0 none are written."""

loops: ContextVar[str] = ContextVar("loops", default="auto")
"""What becomes of Python's loops in a recorded program: ``"auto"`` captures those that are longer than they are quick
to record step by step, ``"capture"`` all that can be, ``"record"`` none. It counts when a program is recorded."""

memory_limit: ContextVar[int | str | None] = ContextVar("memory_limit", default=None)
"""How much memory the backward pass of recorded loops may take, in bytes or as ``"200MB"`` (a million bytes each) or
``"2GiB"``: it chooses what steps keep and what is computed again. It is read when ``fad.jit`` records a program. With
None there is no limit, and `scan` keeps what takes less than 32 MB."""

_UNITS = {"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12, "ki": 2**10, "mi": 2**20, "gi": 2**30, "ti": 2**40}


def bytes_of(amount: int | str) -> int:
    """Return a number of bytes that may be written as ``"200MB"`` or ``"2GiB"``.

    >>> bytes_of("1.5kB"), bytes_of("2 GiB"), bytes_of(100)
    (1500, 2147483648, 100)
    """
    if isinstance(amount, str):
        found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?)\s*([kmgt]?i?)b?", amount.strip().lower())
        if found is None or found[2] not in _UNITS:
            raise ValueError(f"an amount of memory is a number of bytes or as '200MB' or '2GiB', not {amount!r}")
        return int(float(found[1]) * _UNITS[found[2]])
    return amount


def _is_amount(x: Any) -> bool:
    try:
        return x is None or (not isinstance(x, bool) and isinstance(x, (int, str)) and bytes_of(x) > 0)
    except ValueError:
        return False


# What a setting may be: one of some values, or a test and what passes it.
_CHOICES: dict[ContextVar, Any] = {
    check_mutation: ("sample", "full", "off"),
    default_dtype: ("float32", "float64"),
    device_graphs: (True, False),
    error_links: (True, False),
    loops: ("auto", "capture", "record"),
    memory_limit: (_is_amount, "a positive number of bytes, such as 10**9, '200MB' or '2GiB', or None"),
    kernel_cache_bytes: (lambda n: isinstance(n, int) and not isinstance(n, bool) and n >= 0, "an integer, 0 or more"),
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
    for name, value in settings.items():
        setting = _SETTINGS.get(name)
        if setting is None:
            raise ValueError(f"no option {name!r}; the options are {sorted(_SETTINGS)}")
        choices = _CHOICES[setting]
        fits, what = choices if callable(choices[0]) else (lambda v, c=choices: v in c, f"one of {choices}")
        if not fits(value):
            raise ValueError(f"{name} must be {what}, not {value!r}")
    tokens = [(_SETTINGS[name], _SETTINGS[name].set(value)) for name, value in settings.items()]
    try:
        yield
    finally:
        for setting, token in reversed(tokens):
            setting.reset(token)
