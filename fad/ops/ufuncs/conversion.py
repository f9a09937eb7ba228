"""Conversion of arrays: to another dtype, to Python's numbers and lists, of bits to bytes and back."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import is_numpy, like
from fad.backends.counterparts import with_notes
from fad.core.primitives.archetypes import cast, flat, linear
from fad.core.primitives.primitive import Primitive, public, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import Tracer, add_methods, bind, outcome
from fad.core.tracing.views import as_one_array, is_array
from fad.core.tracing.weak import weaken
from fad.errors import ComplexGradientError
from fad.ops.arrangement.structural import along
from fad.ops.layout.memory_order import duplicate, lay_out, lay_out_like
from fad.ops.ufuncs.complexes import parts_p

# --- convert -----------------------------------------------------------------------------------------------------


def _convert(x, *, dtype):
    return x.astype(dtype) if hasattr(x, "astype") else dtype.type(x)  # a Python number, among jit's arguments


astype_p: Any = linear(
    "convert",
    _convert,
    lambda ct, x, *, dtype: cast(ct, x.dtype),
    lambda size, batched, xs, params: bind(astype_p, *xs, **params),
    samples=lambda s: [call(s.real(3, 4), dtype=np.dtype("float32")), call(s.real(3), dtype=np.dtype("complex128"))],
    moves=True,
    dependence="elementwise",
    lower="{0}",
    cheap=True,
    fresh=True,
    doc="The array in another floating-point or complex dtype.",
)


def widest_of(dtype: np.dtype) -> type:
    """Return the dtype of Python's numbers of a kind."""
    return {"c": np.complex128, "f": np.float64}.get(dtype.kind, np.int64)


def _python_number(x):
    x = x.astype(widest_of(x.dtype))
    return x if x.ndim else x.item() if x.dtype.kind == "i" else weaken(x[()])


# Python's float or complex of a scalar; under vmap, where many numbers stand for one, double precision.
python_number_p: Any = register(
    Primitive(
        "python_number",
        _python_number,
        jvp=lambda tangents, y, xs, params: cast(tangents[0], y.dtype),
        vjp=(lambda ct, y, x: cast(ct, x.dtype),),
        batch=lambda size, batched, xs, params: bind(python_number_p, *xs),
        saves="none",
        archetype="linear",
        moves=True,
        samples=lambda s: [call(s.real())],
        doc="An array of no axes as a Python number, which widens nothing.",
    )
)


def as_python_number(x):
    """Return a scalar as a Python number, as SciPy's compiled functions give theirs; arrays as they are."""
    if x.shape or x.dtype.kind not in "fc":
        return x
    return bind(python_number_p, x) if type(x) is Tracer else x.item()


def join_parts(real, imaginary):
    """Return Python's complex number of two real numbers, of which one is traced."""
    scalars = [np.multiply(x, np.float64(1.0)) for x in (real, imaginary)]
    return bind(python_number_p, bind(parts_p, *scalars))


def _tolist(x):
    """Return nested lists of traced numbers: nothing is lost."""
    if x.dtype.kind == "b" or x.dtype == np.uint64:
        return outcome(x).tolist()
    if x.shape:
        return [_tolist(row) for row in x]
    if x.dtype.char in "gG":
        return x
    return bind(python_number_p, x) if type(x) is Tracer or x.dtype.kind in "fc" else x.item()


def _item(x, *args):
    """Return an element as a traced Python number, whole numbers and booleans as Python's own."""
    np.empty(x.shape, np.bool_).item(*args)  # NumPy's errors: of more elements than one, of places that there are not
    at = args[0] if len(args) == 1 else args
    one = x[at] if isinstance(at, tuple) and at else x.reshape(-1)[at or 0]
    if x.dtype.kind not in "biu":
        return _tolist(one)
    return x.owner.concrete(one, lambda value: value.item()) if type(one) is Tracer else one.item()


add_methods(tolist=_tolist, item=_item)
astype_flat_p: Any = register(
    Primitive(
        "convert_to_integer",
        _convert,
        flat=True,
        batch=lambda size, batched, xs, params: bind(astype_flat_p, *xs, **params),
        archetype="flat",
        samples=lambda s: [call(s.real(3, 4), dtype=np.dtype(int))],
        lower="{0}",
        fresh=True,
        doc="The array in a dtype without derivatives.",
    )
)


@public(
    np.astype,
    methods=("astype",),
    samples=lambda s: [call(s.real(3, 4), "float32"), call(s.real(3), complex)],
)
def astype(x, /, dtype, order="K", casting="unsafe", subok=True, copy=True, *, device=None):
    """Convert to a dtype; to integers and booleans the derivative is zero.

    >>> fad.grad(lambda x: fad.numpy.astype(x, np.float32).sum())(np.array([1.0, 2.0]))
    array([1., 1.])
    """
    dtype = np.dtype(dtype)
    if x.dtype.kind == "c" and dtype.kind == "f":
        raise ComplexGradientError(
            f"a complex traced value was about to lose its imaginary part in astype({str(dtype)!r}); write x.real"
        )
    if dtype == x.dtype and not copy:
        return _order(x, x, order)
    if dtype.kind == "O" and type(x) is Tracer:
        return as_objects(x)
    if dtype.kind not in "fc":
        y = bind(astype_flat_p, x, dtype=dtype)
    elif dtype == x.dtype:
        y = duplicate(x) if type(x) is Tracer else x
    else:
        y = bind(astype_p, x, dtype=dtype)
    y = _order(y, x, order)
    return as_one_array(y) if type(x) is Tracer and is_array(x) else y


def as_objects(x: Tracer) -> np.ndarray:
    """Return an array of Python objects, the traced numbers of an array: NumPy leaves what is computed to them."""
    if not x.shape:
        return _hold(_tolist(x))
    y = np.empty(x.shape, object)
    for place in np.ndindex(x.shape):
        y[place] = _tolist(x[place])
    return y


def array_of_objects(x: Any) -> np.ndarray:
    """Return what NumPy makes of a nested list with ``dtype=object``, whose elements may be traced values.

    Arrays of one shape are taken apart into their numbers; of different shapes they are the elements.
    """
    opened: dict[int, tuple] = {}

    def open_traced(x: Any) -> Any:
        if type(x) is Tracer:
            y = as_objects(x) if x.shape else _hold(x)
            opened[id(y)] = y, x
            return y
        return type(x)(map(open_traced, x)) if type(x) in (list, tuple) else x

    y = np.array(open_traced(x), dtype=object)
    for place in np.ndindex(y.shape):
        if id(y[place]) in opened:
            y[place] = opened[id(y[place])][1]
    return y


def _hold(x: Any) -> np.ndarray:
    """Return an array without axes whose element is an object, whatever NumPy would make of that."""
    y = np.empty((), object)
    y.fill(x)
    return y


def _order(y: Any, x: Any, order: str) -> Any:
    """Return a converted array in the order requested; "K" is the order that it has."""
    if order == "K":
        return y
    return lay_out_like(y, x) if order == "A" else lay_out(y, order)


# --- bits --------------------------------------------------------------------------------------------------------


_BIT = {"big": np.arange(7, -1, -1, dtype=np.uint8), "little": np.arange(8, dtype=np.uint8)}  # where each one stands


def _pack_bits(x, *, axis, bitorder):
    if is_numpy(x):
        return np.packbits(x, axis, bitorder)
    x = np.moveaxis(x != 0, axis, -1)  # a device packs flat arrays alone
    missing = -x.shape[-1] % 8
    x = np.pad(x, [(0, 0)] * (x.ndim - 1) + [(0, missing)]) if missing else x
    bits = x.reshape(*x.shape[:-1], -1, 8).astype(np.uint8) << like(x, _BIT[bitorder])
    return np.moveaxis(np.add.reduce(bits, axis=-1, dtype=np.uint8), -1, axis)


with_notes(_pack_bits, host=np.packbits)  # for `fad.source`
packbits_p: Any = flat(
    "pack_bits",
    _pack_bits,
    batch=lambda size, batched, xs, params: bind(packbits_p, *xs, **{**params, "axis": params["axis"] + 1}),
    samples=lambda s: [call(s.ints(0, 2, (3, 10)), axis=1, bitorder="big")],
    doc="Eight whole numbers, which are zero or not, as the bits of one byte.",
)


def _unpack_bits(x, *, axis, count, bitorder):
    if is_numpy(x):
        return np.unpackbits(x, axis=axis, bitorder=bitorder, **({} if count is None else {"count": count}))
    spread = np.moveaxis(x, axis, -1)[..., None] >> like(x, _BIT[bitorder]) & np.uint8(1)
    bits = np.moveaxis(spread.reshape(*spread.shape[:-2], -1), -1, axis)
    if count is None:
        return bits
    missing = count - bits.shape[axis]
    if missing > 0:
        widths = [(0, missing if d == axis % bits.ndim else 0) for d in range(bits.ndim)]
        return np.pad(bits, widths)
    return bits[(slice(None),) * (axis % bits.ndim) + (slice(count),)]


with_notes(_unpack_bits, host=np.unpackbits)
unpackbits_p: Any = flat(
    "unpack_bits",
    _unpack_bits,
    batch=lambda size, batched, xs, params: bind(unpackbits_p, *xs, **{**params, "axis": params["axis"] + 1}),
    samples=lambda s: [call(s.ints(0, 255, (3, 2)).astype(np.uint8), axis=1, count=None, bitorder="big")],
    doc="The bits of bytes, one after another.",
)


@public(
    np.packbits,
    flat=True,
    samples=lambda s: [call(s.ints(0, 2, (3, 10)), axis=0), call(s.ints(0, 2, (3, 10)), bitorder="little")],
    raises="TypeError: `a` holds neither integers nor booleans.",
)
def packbits(a, /, axis=None, bitorder="big"):
    """Pack whole numbers, which are zero or not, into the bits of bytes; flat.

    >>> fad.numpy.packbits(np.array([1, 0, 1]))
    array([160], dtype=uint8)
    """
    a, axis = along(a, axis)
    return bind(packbits_p, a, axis=axis, bitorder=bitorder)


@public(
    np.unpackbits,
    flat=True,
    samples=lambda s: [call(np.array([[3, 200]], np.uint8), axis=1), call(np.array([3], np.uint8), count=5)],
    raises="TypeError: `a` does not hold unsigned bytes.",
)
def unpackbits(a, /, axis=None, count=None, bitorder="big"):
    """Return the bits of bytes, one after another; flat.

    >>> fad.numpy.unpackbits(np.array([160], np.uint8), count=3)
    array([1, 0, 1], dtype=uint8)
    """
    a, axis = along(a, axis)
    return bind(unpackbits_p, a, axis=axis, count=count, bitorder=bitorder)
