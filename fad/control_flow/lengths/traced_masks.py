"""Elements that a boolean mask of a loop's body selects: ``x[x > 0]``, read and written.

How many there are only the body's values say, and a recorded body has static shapes. So they are kept where they are,
in an array of the mask's shape: elementwise operations work on all of it, what adds up looks at those that the mask
selects, and writing them where the same mask selects is a choice between two arrays.

At the other places stands the first element that is selected, without its derivative, as beside a slice of traced
length (`fad.control_flow.lengths.padded`): operations meet nothing there that they do not meet elsewhere.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fad.control_flow.bodies.axis_positions import places
from fad.control_flow.lengths.slice_bounds import refuse
from fad.control_flow.lengths.traced_length import ArrayOfTracedLength
from fad.core.programs.graph import Equation
from fad.core.tracing.tracer import Tracer, stop, up_to_date
from fad.ops.places.writing import _as_written
from fad.ops.places.writing import write as write_at
from fad.staging.record_trace import RecordTrace

_DEEP = 6  # operations that two masks are compared through


class Selection:
    """A boolean mask of a loop's body, as it was when it stood in brackets."""

    __slots__ = ("mask", "_count", "_first")

    def __init__(self, mask: Tracer):
        self.mask = up_to_date(mask).owner.freeze(mask)
        self._count: Any = None
        self._first: Any = None

    @property
    def count(self) -> Any:
        """How many elements are selected."""
        if self._count is None:
            self._count = np.sum(self.mask)
        return self._count

    def others_replaced(self, value: Any) -> Any:
        """Return an array with the first element that is selected, or 1 if there is none, at all other places."""
        n = self.mask.size
        if not n:
            return value
        if self._first is None:
            self._first = np.min(np.where(self.mask, places(n).reshape(self.mask.shape), n))
        found = stop(value.reshape(-1)[np.minimum(self._first, n - 1)])
        return np.where(self.mask, value, np.where(self._first < n, found, value.dtype.type(1)))

    def is_same(self, other: Selection) -> bool:
        """Return whether two masks are the same in every step: they are one value, or computed alike."""
        return self is other or _is_same(self.mask, other.mask)

    def refuse(self, what: str) -> NoReturn:
        refuse((self.mask,), f"{what} of elements that a mask selects, whose number differs from step to step")


FUNCTIONS: dict[Any, Callable] = {}
"""NumPy's functions that take such elements, and methods by names."""


class SelectedElements(ArrayOfTracedLength):
    """The elements that a mask selects, as an array of one axis whose length only a loop's body knows."""

    __slots__ = ("selection", "value", "clean")

    functions = FUNCTIONS

    def __init__(self, selection: Selection, value: Any, clean: bool = True):
        self.selection = selection
        self.value = value  # an array of the mask's shape
        self.clean = clean  # whether the first element that is selected stands at the other places already

    def clean_value(self) -> Any:
        """Return the array with nothing at other places that operations do not meet elsewhere."""
        if not self.clean:
            self.value, self.clean = self.selection.others_replaced(self.value), True
        return self.value

    # --- what an array says of itself -------------------------------------------------------------------------

    @property
    def dtype(self) -> Any:
        return self.value.dtype

    @property
    def shape(self) -> tuple:
        return (self.selection.count,)

    @property
    def size(self) -> Any:
        return self.selection.count

    @property
    def ndim(self) -> int:
        return 1

    @property
    def T(self) -> SelectedElements:
        return self

    def refuse(self, what: str) -> NoReturn:
        self.selection.refuse(what)

    def _plain(self, *_: Any, **__: Any) -> NoReturn:
        self.refuse("it makes a plain value")

    __array__ = __bool__ = __int__ = __float__ = __complex__ = __index__ = __len__ = __iter__ = _plain

    def __getitem__(self, index: Any) -> Any:
        if index is not Ellipsis:
            self.refuse("it takes a part")
        return SelectedElements(self.selection, self.value, self.clean)

    def __setitem__(self, index: Any, v: Any) -> None:
        self.refuse("it writes a part")

    # --- operations -------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if (ufunc, method) in FUNCTIONS and out is None:
            return FUNCTIONS[ufunc, method](*inputs, **options)
        if method != "__call__" or options or ufunc.signature is not None:
            self.refuse(f"it calls {ufunc.__name__}")
        y = elementwise(ufunc, inputs)
        if out is None:
            return y
        mine = type(out[0]) is SelectedElements and type(y) is not tuple
        if not mine or not np.can_cast(y.dtype, out[0].dtype, "same_kind"):
            self.refuse(f"it writes the result of {ufunc.__name__} into an array")
        out[0].value, out[0].clean = y.value.astype(out[0].dtype), True
        return out[0]

    @staticmethod
    def apply_elementwise(call: Callable, operands: Any) -> Any:
        return elementwise(call, operands)


def elementwise(call: Callable, operands: Any) -> Any:
    """Apply an elementwise function to elements that one mask selects, and numbers."""
    selection = next(x for x in operands if type(x) is SelectedElements).selection
    values = []
    for x in operands:
        if type(x) is SelectedElements:
            if not selection.is_same(x.selection):
                selection.refuse("it combines two groups")
            x = x.clean_value()
        elif np.shape(x):
            selection.refuse("it combines an array with a group")
        values.append(x)
    ys = call(*values)
    made = [SelectedElements(selection, y) for y in (ys if type(ys) is tuple else (ys,))]
    return tuple(made) if type(ys) is tuple else made[0]


# --- brackets --------------------------------------------------------------------------------------------------------


def read(x: Tracer, mask: Tracer) -> SelectedElements:
    """Return ``x[mask]``, where the mask is one of a loop's body."""
    selection = _selecting(x, mask)
    return SelectedElements(selection, up_to_date(x).owner.freeze(x), clean=False)


def write(x: Tracer, mask: Tracer, v: Any) -> None:
    """Do ``x[mask] = v``, where the mask is one of a loop's body."""
    selection = _selecting(x, mask)
    if type(v) is SelectedElements:
        if not selection.is_same(v.selection):
            selection.refuse("it writes a group where another mask selects, instead")
        v = v.value
    elif np.shape(v):
        selection.refuse("it writes an array in place")
    value = _as_written(v, x) if hasattr(v, "dtype") else np.asarray(v, x.dtype)
    write_at(x, Ellipsis, np.where(selection.mask, value, x))


def _selecting(x: Any, mask: Tracer) -> Selection:
    selection = Selection(mask)
    if mask.shape != x.shape:
        selection.refuse("it takes rows, instead")
    return selection


def _is_same(a: Any, b: Any) -> bool:
    """Return whether two values of a body are computed alike: by the same operations of the same values."""
    trace = a.owner if type(a) is Tracer else None
    if not isinstance(trace, RecordTrace) or type(b) is not Tracer or b.owner is not trace:
        return a is b
    made: dict[int, Equation] = {}
    equations = iter(reversed(trace.equations))

    def maker(number: int) -> Equation | None:
        while number not in made:
            eq = next(equations, None)
            if eq is None:
                return None
            made.update(dict.fromkeys(eq.outs, eq))
        return made[number]

    def same(i: int, j: int, depth: int) -> bool:
        if i == j:
            return True
        left, right = maker(i), maker(j)
        return (
            left is not None and right is not None and depth > 0
            and left.prim is right.prim and left.prim.archetype in ("elementwise", "selection")
            and left.params == right.params
            and all(same(x, y, depth - 1) for x, y in zip(left.ins, right.ins, strict=True))
        )  # fmt: skip

    return same(a.info, b.info, _DEEP)


# --- NumPy's functions -----------------------------------------------------------------------------------------------


def _of_all(function: Callable, neutral: int) -> Callable:
    """Return a reduction over all elements, where the neutral number stands for those that are not selected."""

    def reduce(x: SelectedElements, axis: Any = None) -> Any:
        if axis not in (None, 0, -1):
            x.refuse("it reduces another axis")
        return function(np.where(x.selection.mask, x.value, x.dtype.type(neutral)))

    return reduce


def _mean(x: SelectedElements, axis: Any = None) -> Any:
    if x.dtype.itemsize == 2:
        x.refuse("it takes the mean, in half precision,")
    y = total(x, axis)
    return y / x.size.astype(y.dtype if y.dtype.kind in "fc" else np.float64)


def _each(function: Callable) -> Callable:
    return lambda *xs, **options: elementwise(lambda *vs: function(*vs, **options), xs)


total = _of_all(np.sum, 0)
_product, _some, _every = _of_all(np.prod, 1), _of_all(np.any, 0), _of_all(np.all, 1)
_copy = _each(np.copy)

FUNCTIONS.update({
    np.sum: total, np.prod: _product, np.any: _some, np.all: _every, np.mean: _mean, np.size: lambda x: x.size,
    np.ndim: lambda x: 1, (np.add, "reduce"): total, (np.multiply, "reduce"): _product,
})  # fmt: skip
FUNCTIONS.update({f: _each(f) for f in (np.where, np.clip, np.copy, np.real, np.imag, np.zeros_like, np.ones_like)})
FUNCTIONS.update({
    "sum": total, "prod": _product, "any": _some, "all": _every, "mean": _mean, "copy": _copy, "clip": _each(np.clip),
    "astype": lambda x, dtype: elementwise(lambda v: v.astype(dtype), [x]),
})  # fmt: skip
