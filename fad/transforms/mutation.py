"""Noticing that the user overwrote an array between the forward and the backward pass.

A rule keeps references, not copies. If the user then writes into such an array, the derivative would be silently
wrong, as it is in JAX and HIPS autograd. So each user array that is kept gets a fingerprint, compared before use.
The cheap fingerprint reads small arrays whole and samples large ones: it is a smoke detector and no proof.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from fad import config
from fad.errors import MutationError
from fad.places import show_place, user_place

_WHOLE = 4096  # bytes up to which an array is copied whole: quicker than to sample it, and it notices everything
_SAMPLES = 32


def fingerprint(x: np.ndarray, mode: str) -> Any:
    """Return something that changes when the contents of `x` change."""
    if x.nbytes <= _WHOLE:
        return x.tobytes()
    if mode == "full":
        return hash(x.tobytes())
    if x.flags.forc:
        line = x.ravel(order="K")
        return hash(line[:: -(line.size // _SAMPLES)].tobytes())
    places = np.unravel_index(np.linspace(0, x.size - 1, _SAMPLES).astype(np.intp), x.shape)
    return hash(x[places].tobytes())


def overlaps(donated: list, others: list) -> bool:
    """Tell whether a donated array shares memory with another array of the call."""
    spans = [(*_span(x), True) for x in donated if type(x) is np.ndarray and x.nbytes]
    spans += [(*_span(x), False) for x in others if type(x) is np.ndarray and x.nbytes]
    spans.sort()
    ends = {True: -1, False: -1}  # how far the donated arrays before reach, and the others
    for a, b, gives in spans:
        if a < ends[True] or (gives and a < ends[False]):
            return True
        ends[gives] = max(ends[gives], b)
    return False


def _span(x: np.ndarray) -> tuple[int, int]:
    return np.lib.array_utils.byte_bounds(x)


class Watch:
    """The user arrays that one reverse trace has kept, with their fingerprints."""

    __slots__ = ("mode", "inputs", "kept", "places")

    def __init__(self, primals: list):
        self.mode = config.check_mutation.get()
        self.inputs = [(x, fingerprint(x, self.mode)) for x in primals if type(x) is np.ndarray and self.mode != "off"]
        self.kept: dict[int, tuple] = {}
        self.places: dict[int, Any] = {}  # where each array, or the array it is a view of, was first kept

    def add(self, x: np.ndarray) -> None:
        if self.mode != "off":
            owner = id(x if x.base is None else x.base)
            place = self.places.get(owner)
            if place is None:  # a loop over x[t] asks once: to look it up costs more than the rest
                place = self.places[owner] = user_place()
            self.kept[id(x)] = (x, fingerprint(x, self.mode), place)

    def check(self, tape: list) -> None:
        """Raise MutationError if an array that a rule needs is no longer what it was."""
        for x, before, place in self.kept.values():
            if fingerprint(x, self.mode) != before:
                raise _error(x, show_place(place))
        for x, before in self.inputs:
            if fingerprint(x, self.mode) != before and _is_kept(x, tape):
                raise _error(x, "the call of the transform")


def _error(x: np.ndarray, line: str) -> MutationError:
    return MutationError(
        f"an array of shape {x.shape} and dtype {x.dtype} was overwritten after an operation had kept it for the "
        f"derivative, at {line}. The derivative would be wrong: pass a copy (x.copy()), or call the pullback first. "
        "Noticed here"
    )


def _root(x: Any) -> Any:
    while type(x) is np.ndarray and x.base is not None:
        x = x.base
    return x


def _is_kept(x: np.ndarray, tape: list) -> bool:
    root = _root(x)
    for record in tape:
        for item in record or ():
            for part in item if type(item) is tuple else (item,):
                if type(part) is np.ndarray and _root(part) is root:
                    return True
    return False
