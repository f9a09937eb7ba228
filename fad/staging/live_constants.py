"""Constants of a recording that live on outside of it, and so may change between calls."""

from __future__ import annotations

import sys
from collections import Counter
from typing import Any

import numpy as np

from fad import config
from fad.staging.outer_state import Entered, OuterState
from fad.transforms.arguments.mutation import FEW_BYTES, equal, may_be_overwritten


def find_live_constants(trace: Any, outs: list, outer: OuterState) -> list[Entered]:
    """Return further arrays behind constants that live on outside the recording, as they were at their first use.

    Large ones that nobody wrote into meanwhile are constants themselves from now on, without a copy.
    """
    mode = config.check_mutation.get()
    found, back = [], {}
    constants, sources = trace.constants, trace.sources
    trace.sources = {}
    held = Counter(id(c) for c in constants.values())  # how often the recording itself holds an array
    for x, *_ in sources.values():
        held[id(x)] += 1
        held[id(x.base)] += 1
    local: Any = []
    alone = sys.getrefcount(local)  # of what this variable alone holds
    for x, *numbers in sources.values():
        owned = sys.getrefcount(x) - alone > held[id(x)] or any(x is y for y in outs)
        base = x.base  # an array made inside the function has no owner besides the recording, and so has its memory
        if base is not None:
            owned = owned or type(base) is not np.ndarray or sys.getrefcount(base) - alone > held[id(base)]
        if not (owned and x.size and may_be_overwritten(x)) or trace.snapshots.is_own(x):
            continue
        first = constants[numbers[0]]
        changed = len(numbers) > 1 or not equal(x, first)
        if not changed and x.nbytes > FEW_BYTES:
            constants[numbers[0]] = x
            back[id(first)] = x
        how = "full" if changed else mode
        known = outer.covering(x)
        if known is None or (changed and known.mode != "full"):
            found.append(Entered.of(first, how)._replace(array=x) if changed else Entered.of(x, how))
    for key, c in constants.items():
        if back and id(getattr(c, "base", None)) in back:
            constants[key] = _same_view(c, back[id(c.base)])
    for c in constants.values():
        if type(c) is np.ndarray and trace.snapshots.is_own(c):
            _seal(c)
    return found


def _seal(copy: np.ndarray) -> None:
    """Let nobody write into a copy, or a view of one: what is computed of it beforehand stays right."""
    if type(copy.base) is np.ndarray:
        copy.base.flags.writeable = False
    copy.flags.writeable = False


def _same_view(view: np.ndarray, x: np.ndarray) -> np.ndarray:
    """Return the view of an array that another is of its copy, if the copy lies in memory as the array does."""
    copy: Any = view.base
    if not (x.flags.forc and x.strides == copy.strides):
        return view
    offset = view.__array_interface__["data"][0] - copy.__array_interface__["data"][0]
    return np.ndarray(view.shape, view.dtype, x if x.flags.c_contiguous else x.T, offset, view.strides)
