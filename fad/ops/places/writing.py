"""In-place writes: ``x[i] = v``, ``x += y``, ``out=``, and NumPy's functions and methods that write into an array.

Each comes down to `write`, which gives the root of the views that the array belongs to a new value. NumPy's rules
of casting, broadcasting and overlap hold: the value is read before the place is written.
"""

from __future__ import annotations

import operator
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy._core._exceptions import _UFuncOutputCastingError

from fad.backends import is_on_device, like
from fad.core.primitives.primitive import has_tracer
from fad.core.tracing.array_likes import open_array_like
from fad.core.tracing.conversions import error_of_written_outside
from fad.core.tracing.tracer import Tracer, add_methods, bind, up_to_date, youngest
from fad.core.tracing.values import has_derivative
from fad.core.tracing.views import (
    RUNS,
    is_array,
    is_outside,
    layout,
    path_of,
    refresh,
    refuse,
    replace_root,
    root_of,
    snapshot,
)
from fad.errors import ItemAssignmentError
from fad.ops.arrangement.structural import as_array
from fad.ops.layout.asking import example
from fad.ops.layout.index_layout import ARRAY, shape_text, with_elements
from fad.ops.places.indexing import as_basic, as_full_value, index_set_p, join_index, split_index
from fad.ops.places.traced_index import TracedIndex, is_same_place, slicer


def write(x: Tracer, index: Any, v: Any) -> None:
    """Write a value at an index of an array, as ``x[index] = v`` does in NumPy."""
    if type(x.memory) is tuple:
        refresh(x)
    v = open_array_like(v)
    template = as_basic(index)
    if template is not None:
        if type(v) is Tracer and _is_that_place(x, template, v) and is_array(x):
            return  # what x[i] += 1 does at its end
        if RUNS.touched is not None:
            RUNS.touched.add(root_of(x))
        if x.owner.store(x, template, v):
            return
        arrays: list = []
    elif is_same_place(x, index, v):
        return
    x.owner.check_alive()
    if not is_array(x):
        raise TypeError(f"'numpy.{x.dtype.name}' object does not support item assignment")
    if template is None:
        by_bounds = slicer(index)
        if by_bounds is not None:
            return by_bounds.write(x, index, v)
        template, arrays = split_index(index)
        if not arrays:
            return write(x, template, v)
        if RUNS.touched is not None:
            RUNS.touched.add(root_of(x))
    if any(prim.view.put_back is None for prim, _ in path_of(x)):
        raise ValueError("assignment destination is read-only")
    arrays = [_freeze(a) for a in arrays]
    if template == (ARRAY,) and type(v) is Tracer and arrays[0].dtype.kind == "b" and arrays[0].ndim == x.ndim > 0:
        _check_masked(x, arrays[0], v)
    v = _as_placed(v, x, template, arrays)
    root, path = root_of(x), path_of(x)
    trace = youngest((root, v, *arrays))
    if trace is not root.owner and is_outside(root):
        raise refuse(error_of_written_outside())
    if not trace.overwrite(root, path, template, v, tuple(arrays)):
        if type(v) is not Tracer and not is_on_device(v):
            v = like(x, np.array(v, x.dtype))  # the user may refill an array of his own
        replace_root(root, write_through(root, path, template, v, arrays))


def _check_masked(x: Tracer, mask: Any, v: Tracer) -> None:
    """Check what is to be written where a mask of the array's own shape is true, which NumPy does in its own way."""
    if v.ndim > 1:
        raise TypeError(
            "NumPy boolean array indexing assignment requires a 0 or 1-dimensional input, input has "
            f"{v.ndim} dimensions"
        )
    places = np.flatnonzero(mask)
    if v.size == len(places):
        check_order(x, places, v)


def check_order(x: Tracer, places: Any, v: Any) -> None:
    """Refuse values that are overwritten before their turn: NumPy reads them one by one here, as it writes.

    ``places`` says which elements of the array are written, in C order.
    """
    if type(v) is not Tracer or v.size < 2 or root_of(v) is not root_of(x):
        return
    plain = layout(x), layout(v)
    if any(type(a) is not np.ndarray for a in plain):
        return
    targets = _addresses(plain[0])[places].tolist()
    written: set = set()
    for target, source in zip(targets, np.resize(_addresses(plain[1]), len(targets)).tolist(), strict=True):
        if source in written:
            raise ItemAssignmentError(
                "an array was given values that are a view of itself, by a mask or through x.flat, where NumPy reads "
                "them while it writes: some would be overwritten first. Write a copy of the values, x[mask] = v.copy()"
            )
        written.add(target)


def _addresses(x: np.ndarray) -> Any:
    """Return where in memory the elements of a plain array lie, in C order."""
    steps = [np.arange(n) * step for n, step in zip(x.shape, x.strides, strict=True)]
    return (x.ctypes.data + sum(np.ix_(*steps), np.zeros(x.shape, np.intp))).ravel()


def _freeze(a: Any) -> Any:
    """Return an index array that stays what it is, whatever the user writes into it."""
    return a.copy() if type(a) is np.ndarray else up_to_date(a).owner.freeze(a) if type(a) is Tracer else a


def write_through(x: Any, path: list, template: tuple, v: Any, arrays: list) -> Any:
    """Return an array with a value written at an index of the view of it that a path leads to."""
    if path:
        prim, params = path[0]
        if len(path) == 1 and template == (Ellipsis,) and type(prim) is TracedIndex:  # all of a row that x[i] gave
            return prim.put_back(x, as_full_value(prim(x), v, arrays, template))
        part = prim(x, **params)
        return prim.view.put_back(x, write_through(part, path[1:], template, v, arrays), **params)
    v = as_full_value(x, v, arrays, template)
    return bind(index_set_p, x, v, *[like(x, a) for a in arrays], template=template)


def _is_that_place(x: Tracer, template: tuple, v: Any) -> bool:
    """Return whether a traced value is the view of just the place that it is to be written to."""
    if v is x:
        return template == (Ellipsis,)
    return type(v.memory) is tuple and v.memory[0] is x and v.memory[2].get("template") == template


def _as_placed(v: Any, x: Tracer, template: tuple, arrays: list) -> Any:
    """Return a value as NumPy converts it when it is written at an index; raise what NumPy raises if it does not fit.

    NumPy writes an array or a list into a stand-in for the place: which lists and shapes it takes, it alone knows.
    """
    if type(v) not in (list, tuple, np.ndarray) or not all(type(a) is np.ndarray for a in arrays):
        if type(v) is Tracer and v.shape and len(template) == len(x.shape) and all(type(n) is int for n in template):
            np.broadcast_to(False, x.shape)[template]  # it looks first whether there is such an element
            np.empty(1, x.dtype)[0] = np.broadcast_to(False, v.shape)  # NumPy says whether an element takes an array
        return _as_written(v, x)
    index = join_index(template, arrays)
    # NumPy looks at the shapes before it looks whether places exist, so other places stand in for integers.
    stand_ins = [a if a.dtype.kind == "b" else np.zeros(a.shape, np.intp) for a in arrays]
    shape = with_elements(x.shape, template, arrays)
    place = np.broadcast_to(np.empty((), x.dtype), shape)[join_index(template, stand_ins)]
    is_element = type(place) is not np.ndarray
    if type(v) is np.ndarray and v.shape == place.shape and v.dtype == place.dtype:
        return v
    if type(v) is not np.ndarray and has_tracer(v):
        if not is_element:
            return _as_written(v, x)
        v = [0.0] * len(v)  # NumPy refuses any list, or asks whether it is empty
    if any(a.dtype.kind == "b" for a in arrays):  # it counts what the mask selects before it looks at the shape
        stand_in = np.empty(x.shape, x.dtype)
        stand_in[index] = v
        return stand_in[index]
    if arrays:  # the value is an array before NumPy looks at the shape
        return _as_written(v if type(v) is np.ndarray else np.array(v, x.dtype), x)
    stand_in = np.empty(place.shape, place.dtype)
    stand_in[() if is_element else ...] = v
    return stand_in


def _as_written(v: Any, x: Tracer) -> Any:
    """Return a value as NumPy converts it when it is written into an array."""
    refuse_complex(x, v)
    if type(v) in (list, tuple):
        v = as_array(v) if has_tracer(v) else np.asarray(v)
    if type(v) is Tracer:
        refresh(v)
    if not hasattr(v, "dtype") or v.dtype == x.dtype:
        return v
    if v.dtype.kind == "c" and x.dtype.kind not in "cb":
        message = "Casting complex values to real discards the imaginary part"
        warnings.warn(message, np.exceptions.ComplexWarning, stacklevel=4)
        v = v.real
    if type(v) is Tracer and v.dtype.kind in "fc" and x.dtype.kind not in "fc" and has_derivative(v):
        raise ItemAssignmentError(
            f"a traced value of dtype {v.dtype} was written into an array of dtype {x.dtype}, which would round it and "
            "lose its derivative. Make the array of floating-point numbers (np.zeros(n) for np.zeros(n, int)), "
            "or write fad.stop_gradient(v)"
        )
    return v.astype(x.dtype)


def refuse_complex(x: Tracer, v: Any) -> None:
    """Raise what NumPy raises if a complex number of Python's, or one in a list, is written into a real array."""
    if type(v) in (list, tuple):
        for part in v:
            refuse_complex(x, part)
    elif type(v) is complex or (type(v) is Tracer and v.dtype.kind == "c" and type(example(v)) is complex):
        np.empty((), x.dtype)[()] = 1j  # it drops the imaginary part of its own numbers alone


# --- augmented assignment and out= -----------------------------------------------------------------------------------


def assign(x: Any, value: Any, casting: str = "same_kind", where: Any = True, name: str = "add") -> Any:
    """Write a result into a whole array, as ``out=`` and augmented assignment do, and return the array."""
    if type(x) is not Tracer or not is_array(x):
        raise TypeError("return arrays must be of ArrayType")
    if name in _OF_MATRICES:
        value = _drop_axes_in_front(value, x.ndim)
    if type(value) is not Tracer or value.dtype != x.dtype or value.shape != x.shape:
        _check_fits(x, value, casting, name)
    if where is not True:
        value = np.where(where, value, snapshot(up_to_date(x)))
    if _replaces(x, value):
        replace_root(x, snapshot(value))
    else:
        write(x, Ellipsis, value)
    return x


_OF_MATRICES = ("matmul", "matvec", "vecmat", "vecdot")


def _drop_axes_in_front(value: Any, ndim: int) -> Any:
    """Return a stack of one matrix or vector as an array of fewer axes: products take such an output, sums do not."""
    shape = np.shape(value)
    more = len(shape) - ndim
    return value.reshape(shape[more:]) if more > 0 and shape[:more] == (1,) * more else value


def _check_fits(x: Tracer, value: Any, casting: str, name: str) -> None:
    """Raise what NumPy raises if a result cannot be broadcast or cast to the array that is to take it."""
    if hasattr(value, "dtype"):
        _check_cast(x, value.dtype, casting, name)
    shape = np.shape(value)
    core = min(2, len(shape)) if name == "matmul" else 0  # axes that are not broadcast
    for axis in range(-core if len(shape) <= x.ndim else 0, 0):
        if shape[axis] != x.shape[axis]:
            raise ValueError(
                f"matmul: Output operand 0 has a mismatch in its core dimension {axis + core}, with gufunc signature "
                f"(n?,k),(k,m?)->(n?,m?) (size {x.shape[axis]} is different from {shape[axis]})"
            )
    if shape != x.shape and (len(shape) > len(x.shape) or np.broadcast_shapes(shape, x.shape) != x.shape):
        raise ValueError(
            f"non-broadcastable output operand with shape {shape_text(x.shape)} doesn't match the broadcast shape "
            f"{shape_text(np.broadcast_shapes(shape, x.shape))}"
        )


def _check_dtypes(x: Tracer, other: Any, name: str) -> None:
    """Raise what NumPy raises if an array cannot take what augmented assignment gives, whatever the shapes."""
    if hasattr(other, "dtype"):
        _check_cast(x, getattr(np, name).resolve_dtypes((x.dtype, other.dtype, None))[-1], "same_kind", name)


def _check_cast(x: Tracer, dtype: np.dtype, casting: Any, name: str) -> None:
    if not np.can_cast(dtype, x.dtype, casting):
        raise _UFuncOutputCastingError(getattr(np, name), casting, dtype, x.dtype, 0)


def _replaces(x: Tracer, value: Any) -> bool:
    """Return whether a new value can simply take the place of a whole array that is no view."""
    return (
        type(x.memory) is not tuple
        and not is_outside(x)
        and type(value) is Tracer
        and type(value.memory) is not tuple
        and value.shape == x.shape
        and value.dtype == x.dtype
        and value.owner.birth >= x.owner.birth
        and bool(x.shape)  # an array without axes stays one, and results without axes are NumPy's scalars
        and layout(value).strides == layout(x).strides
    )


def _in_place(op: Callable, name: str) -> Callable:
    def method(self: Tracer, other: Any) -> Any:
        if not is_array(self):
            return NotImplemented
        if name == "matmul" and (not self.ndim or np.ndim(other) < 2):
            _check_dtypes(self, other, name)
            raise ValueError(
                "inplace matrix multiplication requires the first operand to have at least one and the second at least "
                "two dimensions."
            )
        try:
            value = op(self, other)
        except ValueError:  # of the shapes; NumPy looks at the dtypes first
            _check_dtypes(self, other, name)
            raise
        return value if value is NotImplemented else assign(self, value, name=name)

    method.__name__ = f"__i{name}__"
    return method


_AUGMENTED = {
    "add": "add", "sub": "subtract", "mul": "multiply", "truediv": "divide", "floordiv": "floor_divide",
    "mod": "remainder", "pow": "power", "matmul": "matmul", "and": "bitwise_and", "or": "bitwise_or",
    "xor": "bitwise_xor", "lshift": "left_shift", "rshift": "right_shift",
}  # fmt: skip
for _name, _ufunc in _AUGMENTED.items():
    setattr(Tracer, f"__i{_name}__", _in_place(getattr(operator, f"__{_name}__"), _ufunc))
add_methods(__setitem__=write, receive=assign)
