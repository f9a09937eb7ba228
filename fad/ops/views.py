"""Views whose elements are gathered: diagonals and sliding windows, which are no slices.

NumPy's diagonal shows what is written into its matrix later. Here it is an index by arrays, and so a value of its own;
a `Gathered` view lets it be taken again after a write, as `fad.core.memory` does with slices, and put back.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from fad.core.memory import ViewRule, version_of
from fad.core.tracer import Tracer, up_to_date


class Gathered(NamedTuple):
    """How the elements of a view are gathered, in place of the operation that slices have."""

    function: Callable  # (x, **params): in operations of fad
    forward: Callable  # (x, **params): NumPy's view of a plain array
    view: ViewRule

    def __call__(self, x: Any, **params: Any) -> Any:
        y = self.function(x, **params)
        if type(y) is Tracer and y.trace.overwrites:
            y.value = self.forward(x.value, **params)
        return y

    def of(self, x: Any, **params: Any) -> Any:
        """Return a view of an array; of a plain array the elements themselves."""
        if type(x) is not Tracer:
            return self.function(x, **params)
        y = self(up_to_date(x), **params)
        if type(y) is Tracer:
            y.memory = x, self, params, version_of(x)
        return y
