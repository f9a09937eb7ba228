"""Settings, each in a context variable: threads and async tasks do not disturb one another. One is the process's.

with fad.config.use(check_mutation="full"):
    ...
"""

from __future__ import annotations

import contextlib
import ctypes
import re
import sys
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


_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # of mallopt, from malloc.h
_DEFAULT_TRIM, _DEFAULT_MMAP = 128 * 1024, 65536


def keep_freed_memory(most: int | str = "1GiB") -> bool:
    """Let the process keep memory that arrays have freed, for those to come.

    The C library of Linux gives the memory of each array of more than 128 kB back to the system, which hands it out
    again page by page. Gradients without `jit` of 10⁵ numbers and more take a third to a half less time without that.
    The setting is the process's: it counts for all that it allocates from then on.

    Parameters
    ----------
    most : int or str
        How much may lie unused at the end of the heap, in bytes or as ``"200MB"``, up to 2 GiB; what lies between
        arrays in use is kept as well. With 0 the C library does again what it does by itself.

    Returns
    -------
    bool
        Whether the C library has such a setting, as glibc has.

    Raises
    ------
    ValueError
        if `most` is no amount of memory.

    Notes
    -----
    Source: mallopt(3), M_MMAP_MAX and M_TRIM_THRESHOLD.

    Examples
    --------
    >>> kept = keep_freed_memory("500MB")
    """
    if not (most == 0 or _is_amount(most)):
        raise ValueError(f"most must be a number of bytes, such as 10**9, '200MB' or '2GiB', or 0, not {most!r}")
    set_option = getattr(ctypes.CDLL(None), "mallopt", None) if sys.platform == "linux" else None
    if set_option is None:
        return False
    kept = min(bytes_of(most), 2**31 - 1)
    trim, mmap = (kept, 0) if kept else (_DEFAULT_TRIM, _DEFAULT_MMAP)
    return bool(set_option(_TRIM_THRESHOLD, trim)) and bool(set_option(_MMAP_MAX, mmap))
