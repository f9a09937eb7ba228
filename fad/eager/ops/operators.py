"""The operators: the short paths for elementwise operations of one and two operands, and the general one.

`unary` and `binary` return functions that serve as method, as function and as operator, so that the frame above them is
the user's. What they record is what `fad.grad` records; the bodies are written out because they are the cost.
"""

from __future__ import annotations

from collections.abc import Callable
from sys import _getframe
from typing import Any, cast

import numpy as np

from fad import profiler
from fad.backends.counterparts import with_notes
from fad.core.primitives.archetypes import BINARY_METHODS, COMPARISON_METHODS, UNARY_METHODS
from fad.core.primitives.primitive import REGISTRY, Binary, Primitive, Unary
from fad.core.tracing.tracer import Tracer, bind
from fad.eager.core.engine import apply
from fad.eager.core.mode import is_recording
from fad.eager.core.records import BOTH, ONE, UNARY, births, name_user_line
from fad.eager.tensor import BY_PRIMITIVE, Parameter, Tensor, add_methods, float32
from fad.errors import ShapeMismatchError
from fad.nn import fused as _  # noqa: F401  (its elementwise operations are among those installed below)
from fad.ops.products import contraction
from fad.ops.ufuncs.conversion import astype_p
from fad.ops.ufuncs.elementwise import arctan2, divide, power

_next = births.__next__
_RANK = {"b": 0, "u": 1, "i": 1, "f": 2, "c": 3}


def run(prim: Primitive, *operands: Any, **params: Any) -> Any:
    """Run any operation on tensors and constants."""
    values = [x.value if isinstance(x, Tensor) else x for x in operands]
    nodes = [x.node if isinstance(x, Tensor) else None for x in operands]
    y, rec = apply(prim, values, nodes, params)
    return tuple(map(Tensor, y, rec)) if type(rec) is tuple else Tensor(y, rec)


def convert(x: Tensor, dtype: Any) -> Tensor:
    """Return a tensor in another dtype; recorded if both are inexact."""
    if x.value.dtype == dtype:
        return x
    if x.node is None or dtype.kind not in "fc":
        return Tensor(x.value.astype(dtype))
    return run(astype_p, x, dtype=dtype)


def common_dtype(x: Any, y: Any) -> np.dtype:
    """Return PyTorch's dtype for two operands: kinds come first, then arrays before single numbers."""
    a, b = _kind_of(x), _kind_of(y)
    if a == b:
        dims = [t.value.ndim > 0 for t in (x, y) if isinstance(t, Tensor)]
        if len(dims) == 2 and dims[0] != dims[1]:
            return x.dtype if dims[0] else y.dtype
        dtypes = [t.dtype for t in (x, y) if isinstance(t, Tensor)]
        return np.result_type(*dtypes)
    winner = x if a > b else y
    if isinstance(winner, Tensor):
        return winner.dtype
    other = x if winner is y else y
    defaults: dict[int, np.dtype] = {2: float32, 1: np.dtype("int64"), 0: np.dtype(bool)}
    return defaults.get(max(a, b)) or np.result_type(
        other.dtype, np.complex64
    )


def _kind_of(x: Any) -> int:
    if isinstance(x, Tensor):
        return _RANK[x.dtype.kind]
    return 0 if type(x) is bool else 1 if isinstance(x, int) else 3 if isinstance(x, complex) else 2


def _operand(x: Any) -> Any:
    """Return an operand as a tensor or a Python number; NotImplemented for what is neither."""
    kind = type(x)
    if isinstance(x, Tensor) or kind is float or kind is int or kind is bool or kind is complex:
        return x
    if isinstance(x, (np.ndarray, np.generic)) or kind is Tracer:
        return Tensor(x) if x.ndim or kind is Tracer else x.item()
    return NotImplemented


def mix(prim: Primitive, x: Any, y: Any) -> Any:
    """Run an operation of two operands of different kinds or dtypes, by PyTorch's promotion."""
    x, y = _operand(x), _operand(y)
    if x is NotImplemented or y is NotImplemented:
        return NotImplemented
    dtype = common_dtype(x, y)
    if prim in (divide, arctan2) and dtype.kind in "biu":
        dtype = float32
    x = convert(x, dtype) if isinstance(x, Tensor) else x
    y = convert(y, dtype) if isinstance(y, Tensor) else y
    if any(isinstance(t, Tensor) and type(t.value) is Tracer for t in (x, y)):
        return run(prim, x, y)
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        return run(prim, x, y) if prim.partials is None else name_user_line(_pair(prim, x, y))
    return name_user_line(_with_number(prim, x, y))


def _pair(prim: Primitive, x: Tensor, y: Tensor) -> Any:
    # Equal dtypes that are not one object (after unpickling) would send the short path back here.
    short = x.value.dtype is y.value.dtype and not prim.flat and (x.node is not None or y.node is not None)
    return BY_PRIMITIVE[prim](x, y) if short else run(prim, x, y)


def _with_number(prim: Primitive, x: Any, y: Any) -> Any:
    k = 0 if isinstance(x, Tensor) else 1
    tensor, number = (x, y) if k == 0 else (y, x)
    if tensor.node is not None and not prim.flat and is_recording() and type(number) in (float, int):
        return (forwards_of if k == 0 else backwards_of)[prim](tensor, number)
    number = int(number) if type(number) is bool else number
    number = complex(number) if type(number) is complex else number
    return run(prim, *((tensor, number) if k == 0 else (number, tensor)))


forwards_of: dict[Primitive, Callable] = {}
backwards_of: dict[Primitive, Callable] = {}


def unary(prim: Primitive) -> Callable:
    """Return the function on tensors that runs an elementwise operation of one operand."""
    forward, (partial,) = prim.forward, cast(tuple, prim.partials)
    kept_y, kept_x = prim.keep[0]

    def swap(new):
        nonlocal forward
        forward = new

    profiler.SWAPS.append((prim, swap))

    def call(x):
        try:
            v, p = x.value, x.node
        except AttributeError:
            return prim(x)
        if p is None or partial is None or not is_recording():
            return _untrack(prim, v)
        y = forward(v)
        frame = _getframe(1)
        return Tensor(y, [
            UNARY, _next(), None, prim, frame.f_code, frame.f_lasti, p, partial,
            y if kept_y else None, v if kept_x else None,
        ])  # fmt: skip

    call.__name__ = call.__qualname__ = prim.name
    call.__doc__ = f"Apply {prim.name} to each element."
    BY_PRIMITIVE[prim] = call
    return call


_KEEPS_INTEGERS = {"negative", "absolute", "positive", "square", "sign", "conjugate", "invert", "logical_not"}


def _untrack(prim: Primitive, v: Any) -> Tensor:
    if v.dtype.kind in "biu" and prim.partials != (None,) and prim.name not in _KEEPS_INTEGERS:
        v = v.astype(float32)
    return Tensor(bind(prim, v))


def _by_products(forward: Callable) -> Callable:
    """Return a power that takes the Python numbers 3 and -2 by products, as PyTorch does: NumPy's takes long."""

    def run(x, y):
        if (type(y) is int or type(y) is float) and type(x) is np.ndarray and x.dtype.kind == "f":
            if y == 3:
                return x * x * x
            if y == -2:
                return 1.0 / (x * x)
        return forward(x, y)

    return run


def binary(prim: Primitive) -> tuple[Callable, Callable]:
    """Return the function that runs an elementwise operation of two operands, and the one for ``__rmul__``."""
    adapt = _by_products if prim is power else lambda forward: forward
    forward = adapt(prim.forward)
    px, py = cast(tuple, prim.partials)
    (zx, ax, bx), (zy, ay, by) = prim.keep[:2]
    kept_z, kept_a, kept_b = zx or zy, ax or ay, bx or by

    def swap(new):
        nonlocal forward
        forward = adapt(new)

    profiler.SWAPS.append((prim, swap))

    def forwards(x, y):
        try:
            a, p = x.value, x.node
        except AttributeError:
            return backwards(y, x) if isinstance(y, Tensor) else prim(x, y)
        kind = type(y)
        if kind is Tensor or kind is Parameter:
            b, q = y.value, y.node
            if a.dtype is not b.dtype:
                return mix(prim, x, y)
            z = forward(a, b)
            if (p is None and q is None) or px is None or py is None or not is_recording():
                if z.dtype.kind == "f" and a.dtype.kind in "biu":
                    return mix(prim, x, y)
                return run(prim, x, y) if p is not None or q is not None or z.dtype.kind == "i" else Tensor(z)
            if type(z) is Tracer:
                return run(prim, x, y)
            frame = _getframe(1)
            shape = z.shape
            if q is None:
                return Tensor(z, [
                    ONE, _next(), None, prim, frame.f_code, frame.f_lasti, p, px,
                    z if zx else None, a if ax else None, b if bx else None,
                    None if a.shape == shape else (a.shape, a.dtype), 0,
                ])  # fmt: skip
            if p is None:
                return Tensor(z, [
                    ONE, _next(), None, prim, frame.f_code, frame.f_lasti, q, py,
                    z if zy else None, a if ay else None, b if by else None,
                    None if b.shape == shape else (b.shape, b.dtype), 1,
                ])  # fmt: skip
            return Tensor(z, [
                BOTH, _next(), None, prim, frame.f_code, frame.f_lasti, p, q, px, py,
                z if kept_z else None, a if kept_a else None, b if kept_b else None,
                None if a.shape == shape else (a.shape, a.dtype), None if b.shape == shape else (b.shape, b.dtype),
            ])  # fmt: skip
        if (kind is not float and kind is not int) or p is None or px is None or not is_recording():
            return _plain(prim, x, y)
        z = forward(a, y)
        if z.dtype is not a.dtype:
            return mix(prim, x, y)
        frame = _getframe(1)
        return Tensor(z, [
            ONE, _next(), None, prim, frame.f_code, frame.f_lasti, p, px,
            z if zx else None, a if ax else None, y if bx else None, None, 0,
        ])  # fmt: skip

    def backwards(y, x):
        b, q = y.value, y.node
        kind = type(x)
        if (kind is not float and kind is not int) or q is None or py is None or not is_recording():
            return _plain(prim, x, y)
        z = forward(x, b)
        frame = _getframe(1)
        return Tensor(z, [
            ONE, _next(), None, prim, frame.f_code, frame.f_lasti, q, py,
            z if zy else None, x if ay else None, b if by else None, None, 1,
        ])  # fmt: skip

    forwards.__name__ = forwards.__qualname__ = prim.name
    forwards.__doc__ = f"Apply {prim.name} to two tensors, element by element."
    forwards_of[prim], backwards_of[prim] = forwards, backwards
    BY_PRIMITIVE[prim] = forwards
    return forwards, backwards


def _plain(prim: Primitive, x: Any, y: Any) -> Any:
    """Run what the short paths leave: constants of other types, untracked tensors, tracers of a transform."""
    x, y = _operand(x), _operand(y)
    if x is NotImplemented or y is NotImplemented:
        return NotImplemented
    if isinstance(x, Tensor) and isinstance(y, Tensor):
        same = x.value.dtype == y.value.dtype
        return run(prim, x, y) if same and prim is not divide else mix(prim, x, y)
    return mix(prim, x, y)


# --- methods and operators of Tensor --------------------------------------------------------------------------------

_SHIFTS = ("<<", ">>")


def _install() -> None:
    for prim in list(REGISTRY.values()):
        if not isinstance(prim, (Unary, Binary)) or prim.partials is None:
            continue
        if len(prim.partials) == 1:
            call = unary(prim)
            if prim.symbol in UNARY_METHODS:
                setattr(Tensor, f"__{UNARY_METHODS[prim.symbol]}__", call)
        elif len(prim.partials) == 2:
            forwards, backwards = binary(prim)
            if prim.symbol in BINARY_METHODS and prim.symbol not in _SHIFTS:
                setattr(Tensor, f"__{BINARY_METHODS[prim.symbol]}__", forwards)
                setattr(Tensor, f"__r{BINARY_METHODS[prim.symbol]}__", backwards)
            if prim.symbol in COMPARISON_METHODS:
                setattr(Tensor, f"__{COMPARISON_METHODS[prim.symbol]}__", forwards)


_install()


def matmul(x, y):
    """Matrix product of the last two axes."""
    x, y = _operand(x), _operand(y)
    if not isinstance(x, Tensor) or not isinstance(y, Tensor):
        return NotImplemented
    if type(x.value) is not Tracer and type(y.value) is not Tracer and x.dtype != y.dtype:
        dtype = common_dtype(x, y)
        x, y = convert(x, dtype), convert(y, dtype)
    return run(contraction.matmul, x, y)


BY_PRIMITIVE[contraction.matmul] = matmul
add_methods(__matmul__=matmul, __rmatmul__=lambda y, x: matmul(x, y))


def of_ranks(fun: Callable, *ranks: int | None) -> Callable:
    """Return a function that takes tensors of these ranks only; None is any."""

    def call(*args, **kwargs):
        found = [x.ndim for x in args if isinstance(x, Tensor)]
        if any(r is not None and n != r for n, r in zip(found, ranks, strict=False)):
            wanted = " and ".join("any" if r is None else str(r) for r in ranks)
            shapes = ", ".join(str(tuple(x.shape)) for x in args if isinstance(x, Tensor))
            raise ShapeMismatchError(
                f"{call.__name__} takes tensors of {wanted} axes, and was given the shapes {shapes}: "
                "matmul and einsum take others"
            )
        return fun(*args, **kwargs)

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__ = fun.__doc__
    return with_notes(call, __wrapped__=fun)  # its signature is that of `fun`


def _product(name: str, *ranks: int) -> Callable:
    def call(input, other):
        if ranks == (3, 3) and input.shape[0] != other.shape[0]:
            raise ShapeMismatchError(
                f"bmm takes two batches of equal length, and was given the shapes {tuple(input.shape)} and "
                f"{tuple(other.shape)}: matmul repeats a batch of one"
            )
        return name_user_line(matmul(input, other))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return the matrix product of tensors of {ranks[0]} and {ranks[1]} axes."
    return of_ranks(call, *ranks)


mm, mv, bmm, dot = _product("mm", 2, 2), _product("mv", 2, 1), _product("bmm", 3, 3), _product("dot", 1, 1)
