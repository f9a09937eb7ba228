"""Generators of random numbers that a step may draw from where no call shows it: in a property, or a sort's key."""

from __future__ import annotations

import pickle
import random
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.introspect.reachable import Walk

_MOST = 200  # things that are looked at, from the step on


class Draws:
    """The states of the generators that functions reach, as they are when this is made."""

    __slots__ = ("_states",)

    def __init__(self, functions: Iterable[Callable]):
        found = [access for x in Walk(functions, _MOST) if (access := _access(x)) is not None]
        self._states = [(read, write, pickle.dumps(read())) for read, write in found]

    def put_back(self) -> bool:
        """Put the states back; return whether one had changed."""
        changed = [(write, before) for read, write, before in self._states if pickle.dumps(read()) != before]
        for write, before in changed:
            write(pickle.loads(before))
        return bool(changed)


def _access(x: Any) -> tuple[Callable, Callable] | None:
    """Return what reads the state of a generator and what sets it; None of anything else."""
    kind = type(x)
    if x is random:
        return random.getstate, random.setstate
    if issubclass(kind, np.random.Generator):
        bits = x.bit_generator
        return lambda: bits.state, lambda state: setattr(bits, "state", state)
    if issubclass(kind, np.random.RandomState):
        return lambda: x.get_state(legacy=False), x.set_state
    if issubclass(kind, random.Random) and not issubclass(kind, random.SystemRandom):
        return x.getstate, x.setstate
    return None
