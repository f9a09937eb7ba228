"""Where `fad.eager`'s random numbers come from: one stream per thread, restarted by ``manual_seed``."""

from __future__ import annotations

import contextlib
import secrets
import threading
from collections.abc import Iterator
from typing import Any

import numpy as np

from fad import random
from fad.core.runs import effects
from fad.errors import ImpureFunctionError


class _Stream(threading.local):
    """The numbers of a thread: a generator, and what a run that may be repeated draws from instead."""

    def __init__(self) -> None:
        self.start(secrets.randbits(63))
        self.refused = ""  # why nothing may be drawn now

    def start(self, seed: int) -> None:
        self.generator = np.random.default_rng(seed)
        self.repeated = {"seed": seed % 2**64, "drawn": 0}


_stream = _Stream()


class Generator:
    """A stream of random numbers of its own, for functions that take ``generator=``. The numbers are NumPy's.

    >>> import fad.eager as torch
    >>> first, again = (torch.rand(2, generator=Generator().manual_seed(0)) for _ in range(2))
    >>> torch.equal(first, again)
    True
    """

    def __init__(self, device: Any = "cpu"):
        self.seed()

    def manual_seed(self, seed: int) -> Generator:
        """Start the stream again, and return it."""
        self._seed = int(seed)
        self.numbers = np.random.default_rng(self._seed)
        return self

    def seed(self) -> int:
        """Start the stream again from an unforeseeable number, and return this."""
        return self.manual_seed(secrets.randbits(63))._seed

    def initial_seed(self) -> int:
        """Return the number from which the stream was started last."""
        return self._seed


def generator(given: Generator | None = None) -> np.random.Generator:
    """Return a generator of random numbers, for what is drawn now: of a stream that the user has `given`, or ours.

    What `fad.checkpoint` runs a second time draws the same numbers then. What `fad.jit` records draws none: a replay
    would give the recorded numbers again.
    """
    if _stream.refused:
        raise ImpureFunctionError(_stream.refused)
    if effects.is_compiling():
        raise ImpureFunctionError(
            "random numbers of fad.eager were drawn while jit recorded the function, and a replay would give the same "
            "ones each time. Draw them outside and give them as an argument, or use fad.random with a key"
        )
    if given is not None:
        return given.numbers
    if not effects.is_remembered():
        return _stream.generator
    store = _stream.repeated
    drawn = effects.read(store, "drawn")
    effects.write(store, "drawn", drawn + 1)
    return np.random.default_rng((effects.read(store, "seed"), drawn))


@contextlib.contextmanager
def refusing(why: str) -> Iterator[None]:
    """Raise where something draws random numbers inside of the block."""
    before, _stream.refused = _stream.refused, why
    try:
        yield
    finally:
        _stream.refused = before


def drawn_seed() -> int:
    """Return a random whole number, to begin something else's random numbers with."""
    return int(generator().integers(2**63))


def drawn_key() -> Any:
    """Return a random key for `fad.random`."""
    return random.key(drawn_seed())


def manual_seed(seed: int) -> None:
    """Start this thread's random numbers again. The numbers are NumPy's, not PyTorch's."""
    _stream.start(int(seed))


def seed() -> int:
    """Start this thread's random numbers again from an unforeseeable number, and return it."""
    number = secrets.randbits(63)
    manual_seed(number)
    return number
