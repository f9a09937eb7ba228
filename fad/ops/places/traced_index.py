"""Indices with traced integers: views that such an index takes, and slices and masks that a loop's body computes.

``A[i]`` with a traced integer i is a view in NumPy, though its operation has the integer for an operand. What it takes
to read it again, and to put it back, is kept as one operation of the array alone.
"""

from __future__ import annotations

import operator
from typing import Any, Protocol

from fad.core.tracing.tracer import Tracer, bind
from fad.core.tracing.views import ViewRule, is_array, version_of
from fad.ops.layout.index_layout import join_index


class TracedIndex:
    """How a view was taken by an index of slices and traced integers: an operation of the array alone."""

    __slots__ = ("index", "template", "arrays", "get", "put")

    def __init__(self, index: Any, template: tuple, arrays: list, get: Any, put: Any):
        self.index = index  # what stood in the brackets
        self.template = template
        self.arrays = arrays
        self.get = get
        self.put = put

    @property
    def view(self) -> ViewRule:
        """The rule of this view; it is made each time, for kept here the two would keep each other alive."""
        return ViewRule(_is_always_a_view, self.put_back, in_place=False)

    def __call__(self, x: Any) -> Any:
        return bind(self.get, x, *self.arrays, template=self.template)

    def forward(self, x: Any) -> Any:
        """Return the view of a plain array; its index must have plain values."""
        return x[join_index(self.template, [operator.index(a) for a in self.arrays])]

    def put_back(self, x: Any, y: Any) -> Any:
        return bind(self.put, x, y, *self.arrays, template=self.template)


def _is_always_a_view(x: Any, y: Any, params: dict) -> bool:
    return True


def link_view(x: Tracer, y: Any, taken: TracedIndex) -> None:
    """Note that a result is a view of the array that it was taken from, if NumPy makes it one."""
    integers = all(type(a) is Tracer and not a.shape and a.dtype.kind in "iu" and not is_array(a) for a in taken.arrays)
    if integers and type(y) is Tracer and y.memory is None and is_array(x) and (y.shape or Ellipsis in taken.template):
        y.memory = x, taken, {}, version_of(x)


def is_same_place(x: Tracer, index: Any, v: Any) -> bool:
    """Return whether a value is the view that this very index took: what ``x[i] += 1`` writes at its end."""
    if type(v) is not Tracer or type(v.memory) is not tuple or v.memory[0] is not x:
        return False
    taken = v.memory[1]
    return type(taken) is TracedIndex and taken.index is index


# --- slices with traced bounds, and traced masks ---------------------------------------------------------------------


class Slicer(Protocol):
    """What reads and writes by slices whose bounds are traced integers of a loop's body, and by its masks."""

    def read(self, x: Any, index: Any) -> Any: ...

    def write(self, x: Any, index: Any, v: Any) -> None: ...


SLICERS: list[Slicer] = []  # put here by the loops, which stand above


def slicer(index: Any) -> Slicer | None:
    """Return what answers an index, if a loop's body computes a bound of a slice in it, or it is a mask of one."""
    if not SLICERS:
        return None
    if type(index) is Tracer:
        return SLICERS[0] if index.dtype.kind == "b" and index.shape and _of_body(index) else None
    for part in index if type(index) is tuple else (index,):
        if type(part) is slice and (_of_body(part.start) or _of_body(part.stop)):
            return SLICERS[0]
        if getattr(type(part), "holds_places", False):
            return SLICERS[0]
    return None


def _of_body(bound: Any) -> bool:
    return type(bound) is Tracer and getattr(bound.owner, "of_examples", False)
