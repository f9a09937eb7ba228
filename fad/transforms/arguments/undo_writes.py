"""Plain arrays from outside of a function that writes: what to undo before the function runs again.

A transform may have to run a function a second time: its recording met a value that it cannot write down, or the
examples of a batch take different paths. What the first run wrote into arrays of globals, closures and attributes must
not be written twice. Functions whose code writes nowhere pay nothing for it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from fad.core.runs.overlay_needs import needs_of
from fad.introspect.reachable import reach
from fad.transforms.arguments.mutation import Earlier

_NOTHING = Earlier(())


def outside(fun: Callable, found: Iterable[Any] | None = None) -> Earlier:
    """Return the arrays that a function reaches by name as they are now: none if its code writes nowhere."""
    if not needs_of(fun).spaces:
        return _NOTHING
    return Earlier(x for x in (reach(fun) if found is None else found) if type(x) is np.ndarray)
