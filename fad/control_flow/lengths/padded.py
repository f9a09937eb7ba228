"""Arrays of a length that only a loop's body knows: ``x[:k]`` with a traced k.

A recorded body has static shapes. So such an array is kept as one of full size, of which a part counts: an `Axis` says
where it starts and how long it is. Elementwise operations work on all of it; what adds up, compares or writes
elements looks at the part alone.

What stands beside the part is never what the plain program would not compute with. Where it must be something, it is
the first element of the part: an operation then meets there what it meets in the part anyway, so that a division by
what happens to lie behind the slice raises no warning, and puts no NaN into a derivative. The copies of the first
element carry no derivative.

What NumPy allows and these arrays do not is no error: the body is not recorded, and its loop runs step by step.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NoReturn

import numpy as np

from fad.control_flow.bodies.axis_positions import places
from fad.control_flow.bodies.intervals import form_of
from fad.control_flow.lengths.slice_bounds import (
    Axis,
    at_least,
    at_most,
    bounds,
    by_axis,
    counted_from_the_end,
    fixed_integer,
    is_index,
    refuse,
    same,
)
from fad.control_flow.lengths.traced_length import ArrayOfTracedLength
from fad.core.tracing.tracer import Tracer, stop
from fad.ops.places.functional_updates import At
from fad.ops.places.writing import _as_written, write

FUNCTIONS: dict[Any, Callable] = {}
"""NumPy's functions that take such arrays, and methods by names: filled by `padded_functions`."""

_WHOLE = slice(None)


class PaddedArray(ArrayOfTracedLength):
    """An array of which some axes have a length that only a loop's body knows.

    `axes` holds an `Axis` for each of those, and the static size for the others. `read` gives the array of full size,
    which for a view is taken from what it is a view of; `store` puts one there, None where that cannot be. `clean`
    says that the first element stands beside the part already.
    """

    __slots__ = ("axes", "dtype", "read", "store", "clean", "parent", "index")

    functions = FUNCTIONS

    def __init__(self, axes: tuple, dtype: Any, read: Callable, store: Callable | None, clean: bool = False):
        self.axes = axes
        self.dtype = dtype
        self.read = read
        self.store = store
        self.clean = clean
        self.parent: Any = None
        self.index: Any = None

    # --- what an array says of itself -------------------------------------------------------------------------

    @property
    def shape(self) -> tuple:
        return tuple([axis.length if type(axis) is Axis else axis for axis in self.axes])

    @property
    def ndim(self) -> int:
        return len(self.axes)

    @property
    def size(self) -> Any:
        n: Any = 1
        for length in self.shape:
            n = n * length
        return n

    def refuse(self, what: str) -> NoReturn:
        refuse(_numbers(self.axes), f"{what} of a slice whose length depends on the counter of the loop")

    def __len__(self) -> int:
        self.refuse("it takes len()")

    def __iter__(self) -> Any:
        self.refuse("it iterates over the elements")

    def __bool__(self) -> bool:
        self.refuse("it takes the boolean")

    def __array__(self, *args: Any, **options: Any) -> Any:
        self.refuse("it makes a plain array")

    __int__ = __float__ = __complex__ = __index__ = __array__

    @property
    def T(self) -> Any:
        return FUNCTIONS[np.transpose](self)

    @property
    def real(self) -> Any:
        return elementwise(np.real, [self])

    @property
    def imag(self) -> Any:
        return elementwise(np.imag, [self])

    # --- operations -------------------------------------------------------------------------------------------

    def __array_ufunc__(self, ufunc: np.ufunc, method: str, *inputs: Any, out: Any = None, **options: Any) -> Any:
        if method == "reduce" and out is None:
            function = FUNCTIONS.get((ufunc, method))
            if function is not None:
                return function(*inputs, **options)
        if method != "__call__" or options:
            self.refuse(f"it calls {ufunc.__name__} with {method if method != '__call__' else sorted(options)}")
        if ufunc.signature is not None:
            function = FUNCTIONS.get(ufunc)
            y = self.refuse(f"it takes {ufunc.__name__}") if function is None else function(*inputs)
        else:
            y = elementwise(ufunc, inputs)
        if out is None:
            return y
        if ufunc.nout > 1 or type(out[0]) is not PaddedArray:
            self.refuse(f"it writes the result of {ufunc.__name__} into an array")
        return out[0].receive(y)

    @staticmethod
    def apply_elementwise(call: Callable, operands: Any) -> Any:
        return elementwise(call, operands)

    holds_places = True  # it may be an index, which `fad.control_flow.lengths.traced_slices` answers

    # --- parts of it ------------------------------------------------------------------------------------------

    def __getitem__(self, index: Any) -> Any:
        y = self._part(index)
        if type(y) is PaddedArray:
            y.parent, y.index = self, index
        return y

    def _part(self, index: Any) -> Any:
        parts = by_axis(index, self.ndim)
        inner: list[Any] = []
        axes: list[Any] = []
        backward = []
        own = iter(self.axes)
        for part in parts:
            if part is None:
                inner.append(None)
                axes.append(1)
                continue
            axis = next(own)
            if is_index(part):
                inner.append(self._place(part, axis))
            elif type(part) is slice:
                start, length, step = bounds(part, axis.length if type(axis) is Axis else axis)
                if step not in (1, -1):
                    self.refuse("it takes every other element")
                if step < 0:
                    backward.append(len(axes))
                    start = at_least(start - length + 1, 0)
                inner.append(_WHOLE)
                axes.append(_inside(axis, start, length))
            else:
                self.refuse("it takes elements by an array or a mask")
        if not any(type(axis) is Axis for axis in axes):
            y = self.read()[tuple(inner)]
            return y if self.store is not None or not y.shape else self.refuse("it takes a row")
        y = self._view(tuple(inner), tuple(axes))
        for k in backward:
            y = reverse(y, k)
        return y

    def _place(self, part: Any, axis: Any) -> Any:
        """Return the place of an element by its index, which must be one of the part."""
        if type(axis) is not Axis:
            return part
        at = counted_from_the_end(part, axis.length)
        before, behind = form_of(at).least, (form_of(axis.length) - form_of(at)).least
        if before is None or before < 0 or behind is None or behind < 1:
            self.refuse("it takes an element that may not be there")
        return axis.start + at

    def _view(self, inner: tuple, axes: tuple) -> PaddedArray:
        if all(type(part) is slice for part in inner):
            return PaddedArray(axes, self.dtype, self.read, self.store)
        store = None if self.store is None else lambda v: self.store(At(self.read())[inner].set(v))  # type: ignore[misc]
        return PaddedArray(axes, self.dtype, lambda: self.read()[inner], store)

    def __setitem__(self, index: Any, v: Any) -> None:
        if type(v) is PaddedArray and v.parent is self and v.index is index:
            return  # what x[i:] += 1 does at its end
        y = self._part(index)
        if type(y) is PaddedArray:
            y.put(v)
        elif type(y) is Tracer and y.shape:
            write(y, Ellipsis, v)
        else:
            own = iter(self.axes)
            parts = [p if p is None else self._place(p, next(own)) for p in by_axis(index, self.ndim)]
            if self.store is None:
                self.refuse("it writes into a part")
            self.store(At(self.read())[tuple(parts)].set(v))
        self.clean = False

    def receive(self, y: Any) -> PaddedArray:
        """Take the result of augmented assignment, or of a ufunc with ``out=``."""
        if not np.can_cast(y.dtype, self.dtype, "same_kind"):
            self.refuse("it writes numbers of another kind into an array")
        self.put(y)
        return self

    def put(self, v: Any) -> None:
        """Write values into the whole part."""
        if self.store is None:
            self.refuse("it writes into a part")
        if type(v) in (list, tuple):
            v = np.asarray(v)
        shape = v.axes if type(v) is PaddedArray else np.shape(v)
        if len(shape) > self.ndim:
            self.refuse("it writes values of more axes into a part")
        for mine, theirs in zip(self.axes[::-1], shape[::-1], strict=False):
            if theirs != 1 and not _agree(mine, theirs):
                self.refuse("it writes values of another length, or of one that cannot be compared, into a part")
        value = bring_parts(v, self.axes[self.ndim - len(shape) :]) if type(v) is PaddedArray else v
        whole = self.read()
        value = _as_written(value, whole) if hasattr(value, "dtype") else np.asarray(value, self.dtype)
        self.store(np.where(mask_of(self.axes), value, whole))
        self.clean = False


def _numbers(axes: Any) -> list:
    return [x for axis in axes if type(axis) is Axis for x in (axis.start, axis.length)]


def _inside(axis: Any, start: Any, length: Any) -> Any:
    """Return a part of an axis."""
    if type(axis) is Axis:
        return Axis(axis.size, axis.start + start, length)
    return axis if fixed_integer(start) == 0 and fixed_integer(length) == axis else Axis(axis, start, length)


def _agree(mine: Any, theirs: Any) -> bool:
    """Return whether two axes have one length in every step."""
    a, b = [axis.length if type(axis) is Axis else axis for axis in (mine, theirs)]
    return same(a, b)


def fresh(value: Any, axes: tuple) -> Any:
    """Return an array of its own, or what it holds, if every length is static."""
    if not any(type(axis) is Axis for axis in axes):
        return value
    held = [value]
    return PaddedArray(axes, value.dtype, lambda: held[0], lambda v: held.__setitem__(0, v), clean=True)


# --- the elements beside the part ------------------------------------------------------------------------------------


def along(x: Any, k: int, ndim: int) -> Any:
    """Return an array of one axis with axes of length 1 behind it, to stand for axis k of `ndim`."""
    return x.reshape((-1,) + (1,) * (ndim - 1 - k))


def mask_of(axes: tuple) -> Any:
    """Return for each place whether it is one of the part."""
    masks = [along(axis.mask(), k, len(axes)) for k, axis in enumerate(axes) if type(axis) is Axis]
    found = masks[0]
    for mask in masks[1:]:
        found = np.logical_and(found, mask)
    return found


def _first(value: Any, k: int, axis: Axis) -> Any:
    """Return the first element of the part along an axis, without a derivative; if there is none, 1."""
    head = (_WHOLE,) * k
    at = fixed_integer(axis.start)
    if at is not None and at < axis.size:
        found = value[(*head, slice(at, at + 1))]
    else:
        found = value[(*head, at_most(axis.start, axis.size - 1))]
        found = found.reshape((*found.shape[:k], 1, *found.shape[k:]))
    found = stop(found)
    return np.where(axis.length > 0, found, value.dtype.type(1)) if axis.may_be_empty else found


def _fill_beside(value: Any, k: int, axis: Axis, fill: Any) -> Any:
    """Return values with the first element of the part, or a number, beside the part along an axis."""
    if not axis.size:
        return value
    other = _first(value, k, axis) if fill is None else value.dtype.type(fill)
    return np.where(along(axis.mask(), k, value.ndim), value, other)


def _move_part(value: Any, k: int, axis: Axis, target: Axis, backward: bool = False) -> Any:
    """Return values with the part along an axis where another part is; beside it stands the first element."""
    first = axis.start + axis.length - 1 if backward else axis.start
    index = first - places(target.size) if backward else places(target.size) + (axis.start - target.start)
    if axis.may_be_empty:
        first = np.clip(first, 0, max(axis.size - 1, 0))
    index = np.where(target.mask(), index, first)
    return value[(*(_WHOLE,) * k, index)]


def bring_parts(x: PaddedArray, targets: tuple, fills: Any = None) -> Any:
    """Return the array of full size with its parts where the target axes say.

    Beside the part along axis k stands ``fills[k]``, or the first element if that is None.
    """
    value = x.read()
    for k, (axis, target) in enumerate(zip(x.axes, targets, strict=True)):
        if type(axis) is not Axis:
            continue
        fill = None if fills is None else fills[k]
        if same(axis.start, target.start) and target.size <= axis.size:
            if target.size < axis.size:
                value = value[(*(_WHOLE,) * k, slice(0, target.size))]
            if fill is not None or not x.clean:
                value = _fill_beside(value, k, target, fill)
        else:
            value = _move_part(value, k, axis, target)
            value = value if fill is None else _fill_beside(value, k, target, fill)
    return value


def reverse(x: PaddedArray, k: int) -> PaddedArray:
    """Return the view with an axis of traced length the other way round; it cannot be written."""
    axis = x.axes[k]
    if type(axis) is not Axis:
        x.refuse("it reverses another axis")
    target = Axis(axis.size, 0, axis.length)
    axes = (*x.axes[:k], target, *x.axes[k + 1 :])
    alone = sum(type(a) is Axis for a in x.axes) == 1
    return PaddedArray(axes, x.dtype, lambda: _move_part(x.read(), k, axis, target, True), None, alone or x.clean)


# --- several arrays --------------------------------------------------------------------------------------------------


def common(parts: list[Axis], what: str) -> Axis:
    """Return where parts of one length are to be brought: to the beginning, if one is there."""
    first = parts[0]
    for other in parts[1:]:
        if not same(first.length, other.length):
            refuse(_numbers(parts), f"{what} slices whose lengths may differ")
    target = next((axis for axis in parts if fixed_integer(axis.start) == 0), first)
    return Axis(min(axis.size for axis in parts if same(axis.start, target.start)), target.start, target.length)


def elementwise(call: Callable, operands: Any) -> Any:
    """Apply an elementwise function to arrays, some of them of traced length."""
    shapes = [x.axes if type(x) is PaddedArray else np.shape(x) for x in operands]
    axes: list = []
    for column in _columns(shapes):
        parts = [axis for axis in column if type(axis) is Axis]
        sizes = [n for n in column if type(n) is not Axis and n != 1]
        if parts and sizes:
            refuse(_numbers(parts), "it combines an array with a slice whose length depends on the counter of the loop")
        axes.append(common(parts, "it combines") if parts else sizes[0] if sizes else 1)
    values = []
    for x in operands:
        own = x.axes if type(x) is PaddedArray else ()
        targets = [t if type(a) is Axis else a for a, t in zip(own, axes[len(axes) - len(own) :], strict=True)]
        values.append(bring_parts(x, tuple(targets)) if own else x)
    ys = call(*values)
    return tuple([fresh(y, tuple(axes)) for y in ys]) if type(ys) is tuple else fresh(ys, tuple(axes))


def _columns(shapes: list) -> list:
    rank = max(map(len, shapes))
    return [[s[len(s) - rank + k] for s in shapes if len(s) - rank + k >= 0] for k in range(rank)]
