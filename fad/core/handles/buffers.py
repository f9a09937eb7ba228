"""Plain arrays behind a handle: memory that a function made for itself, and into which traced values may be written.

NumPy's arrays cannot carry a derivative. While a transform runs, arrays that user code makes (``np.zeros(n)``) are
tracers of `PLAIN`, the trace older than every other: they compute as NumPy does, are written in place, and
become values of a younger trace when one of its values is written into them. Arrays of a device have handles, too,
and are never overwritten: a write makes a new one.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.backends import ARRAYS, is_on_device
from fad.core.tracing.trace import Trace
from fad.core.tracing.tracer import Tracer, bind, tracer, up_to_date
from fad.core.tracing.views import (
    RUNS,
    Memory,
    ViewRule,
    contents_of,
    copy_layout,
    fresh,
    may_be_view,
    refresh,
    root_of,
    snapshot,
    unwrap,
    version_of,
)
from fad.errors import ItemAssignmentError, TracerConversionError
from fad.introspect.frames import step

_PLAIN = {float, int, bool, complex, np.ndarray, np.float64, np.float32, np.int64, np.int32, np.bool_, np.complex128}


class PlainTrace(Trace):
    """The trace of plain arrays behind handles."""

    __slots__ = ()
    kind = "a plain array"
    physical = True

    def __init__(self) -> None:
        super().__init__()
        self.birth = -(1 << 62)

    # Short paths: views need not be taken again but where a younger trace has taken their memory over.
    def unary(self, prim: Any, x: Tracer) -> Any:
        if type(x.memory) is tuple:
            refresh(x)
        if x.owner is not self or prim.view is not None:
            return bind(prim, x)
        return self._own(prim.forward(x.wrapped), (x.wrapped,))

    def both(self, prim: Any, x: Tracer, y: Tracer) -> Any:
        if type(x.memory) is tuple:
            refresh(x)
        if type(y.memory) is tuple:
            refresh(y)
        if x.owner is not self or y.owner is not self:
            return prim(x, y)
        return self._own(prim.forward(x.wrapped, y.wrapped), (x.wrapped, y.wrapped))

    def left(self, prim: Any, x: Tracer, y: Any) -> Any:
        if type(x.memory) is tuple:
            refresh(x)
        if x.owner is not self or type(y) not in _PLAIN:
            # an operand that NumPy's operators leave to its own class, such as a sparse matrix
            return NotImplemented if getattr(type(y), "__array_ufunc__", x) is None else super().left(prim, x, y)
        return self._own(prim.forward(x.wrapped, y), (x.wrapped, y))

    def right(self, prim: Any, x: Any, y: Tracer) -> Any:
        if type(y.memory) is tuple:
            refresh(y)
        if y.owner is not self or type(x) not in _PLAIN:
            return super().right(prim, x, y)
        return self._own(prim.forward(x, y.wrapped), (x, y.wrapped))

    def index(self, prim: Any, x: Tracer, index: tuple) -> Any:
        y = x.wrapped[index]
        if not may_be_view(y):
            return y
        out = tracer(y, self, None)
        out.memory = x, prim, {"template": index}, version_of(x)
        return out

    def store(self, x: Tracer, index: tuple, v: Any) -> bool:
        if type(v) is Tracer:
            if type(v.memory) is tuple:
                refresh(v)
            if v.owner is not self:
                return False
            v = v.wrapped
        elif type(v) not in _PLAIN:
            return False
        if type(x.wrapped) is not np.ndarray:
            return False
        root = root_of(x)
        if root.memory is None:
            root.memory = Memory()
        elif root.memory.borrowed:
            return False
        x.wrapped[index] = v
        root.memory.contents += 1
        return True

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        values = [x.wrapped if type(x) is Tracer else x for x in args]
        y = bind(prim, *values, **params)
        if prim.multi:
            return tuple([self._own(v, values) for v in y])
        return tracer(y, self, None) if prim.view is not None and type(y) in ARRAYS else self._own(y, values)

    def _own(self, y: Any, operands: Any) -> Any:
        """Return a result in memory of its own, behind a handle where a transform runs."""
        if type(y) not in ARRAYS:
            return y
        y = fresh(y, operands)
        return tracer(y, self, None) if RUNS.depth else y

    def overwrite(self, root: Tracer, path: list, template: tuple, v: Any, arrays: tuple) -> bool:
        if type(root.wrapped) is not np.ndarray:
            return False
        memory = root.memory
        if memory is None:
            memory = root.memory = Memory()
        elif memory.borrowed:
            memory.borrowed = False
            memory.version += 1  # views are taken again, of the copy
            root.wrapped = copy_layout(root.wrapped)
        place = root.wrapped
        for prim, params in path:
            place = prim.forward(place, **params)
        it = iter(arrays)
        place[tuple([next(it) if type(part) is str else part for part in template])] = v
        memory.contents += 1
        return True

    def freeze(self, x: Tracer) -> Any:
        """Return a read-only copy of the array as it is now: the same one until it is written."""
        memory = root_of(x).memory
        if is_on_device(x.wrapped):
            return x.wrapped
        if memory is not None and (memory.borrowed or memory.outside):
            return x.wrapped
        contents = contents_of(x)
        if x.info is None or x.info[0] != contents:
            copy = copy_layout(x.wrapped)
            copy.flags.writeable = False
            x.info = contents, copy
        return x.info[1]

    def strong(self, x: Tracer) -> Any:
        return copy_layout(x.wrapped)

    primal = strong

    def outcome(self, x: Tracer) -> np.ndarray:
        return x.wrapped.copy()

    def number(self, x: Tracer, convert: Callable) -> Any:
        return convert(x.wrapped)

    def as_array(self, x: Tracer, dtype: Any, copy: bool | None) -> np.ndarray:
        value = x.wrapped
        if value.dtype.kind == "b" and value.ndim > 1 and not value.size and (at := step()).kind == "index":
            raise TracerConversionError(  # NumPy takes what is no array of its own, and empty, for integers
                f"a mask of shape {value.shape} was about to be taken for integers in {at.text}; "
                "make it a plain array, a[np.asarray(mask)]"
            )
        return np.array(value, dtype, copy=copy)

    def stop(self, x: Tracer) -> Tracer:
        return x


PLAIN = Trace.of_plain = PlainTrace()


def flat_result(prim: Any, y: Any, operands: Any) -> Any:
    """Return what a flat operation gives, which has no derivative; behind a handle where the user may write into it."""
    if not RUNS.buffers or RUNS.rules or type(y) not in ARRAYS or y.dtype.kind not in "fc" or prim.shape_only:
        return y
    return buffer(fresh(y, operands))


class LostTrace(Trace):
    """The trace of arrays that were written with plain numbers in the place of traced ones: all that they are is lost.

    They may be filled again, which makes them plain arrays.
    """

    __slots__ = ()
    kind = "a lost array"

    def check_alive(self) -> None:
        raise ItemAssignmentError(
            "an array is read that a function given to a solver wrote into: it was called with plain numbers in the "
            "place of traced ones, so what stands in the array has no derivative. Return what is needed from the "
            "function, or make the array in it; to use the array again, fill all of it: x[...] = 0"
        )

    def process(self, prim: Any, args: tuple, params: dict) -> Any:
        self.check_alive()

    def concrete(self, x: Tracer, convert: Callable) -> Any:
        self.check_alive()

    def freeze(self, x: Tracer) -> Any:
        self.check_alive()

    outcome = any_of = value_to_print = stop = hand_out = freeze  # type: ignore[assignment]

    def store(self, x: Tracer, index: tuple, v: Any) -> bool:
        if type(x.memory) is tuple or any(part is not Ellipsis and part != slice(None) for part in index):
            return False
        x.wrapped, x.owner = blank(x), PLAIN
        return PLAIN.store(x, index, v)


LOST = LostTrace()


def lose(x: Tracer) -> None:
    """Let an array be lost, and its views with it."""
    root = root_of(x)
    if root.memory is None:
        root.memory = Memory()
    root.memory.version += 1
    root.wrapped, root.owner, root.info = unwrap(root.wrapped), LOST, None


def blank(x: Tracer) -> np.ndarray:
    """Return an array like a lost one, in which no number is taken for a right one before it is filled."""
    kind = x.dtype.kind
    return np.full_like(x.wrapped, math.nan if kind in "fc" else np.iinfo(x.dtype).min if kind == "i" else 0)


class Taken:
    """A view for which NumPy has one function, and traced values take several operations; read-only by default."""

    __slots__ = ("forward", "function", "view")

    def __init__(self, function: Callable, forward: Callable, put_back: Callable | None = None):
        self.function = function
        self.forward = forward
        self.view = ViewRule(lambda x, y, params: True, put_back, in_place=False, of_plain=forward)

    def __call__(self, x: Any, **params: Any) -> Any:
        if type(x) is not Tracer:
            return self.function(x, **params)
        if up_to_date(x).owner is PLAIN:
            y = tracer(self.forward(x.wrapped, **params), PLAIN, None)
        else:
            y = self.function(x, **params)
        if type(y) is Tracer:
            y.memory = x, self, params, version_of(x)
        return y


def buffer(a: np.ndarray) -> Tracer:
    """Return a handle on a plain array."""
    return tracer(a, PLAIN, None)


def borrow(x: Any) -> Any:
    """Return a handle on an array that a function was given, if arrays may be written in it: it is a value there."""
    if type(x) is Tracer:
        return snapshot(x)
    if type(x) not in ARRAYS or not RUNS.buffers or x.dtype.kind not in "fcbiu":
        return x
    handle = buffer(x)
    handle.memory = Memory()
    handle.memory.borrowed = True
    return handle


def plain(x: Any) -> Any:
    """Return the plain array behind a handle of `PLAIN`; anything else as it is."""
    return x.wrapped if type(x) is Tracer and x.owner is PLAIN else x
