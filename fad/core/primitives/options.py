"""A ufunc's keyword arguments on traced values: `dtype`, `where`, `out`, and what has no meaning there."""

from __future__ import annotations

import functools
import sys
from typing import Any

import numpy as np

from fad.core.tracing.conversions import is_wider, same_size, written_into
from fad.core.tracing.numpy_versions import SINCE_2_5
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import RUNS, is_array, layout, refuse
from fad.errors import MissingRuleError, TracerConversionError

_NUMBERS = (int, float, complex)
_HARMLESS = {"casting", "subok"}


def refuse_out(out: Any) -> None:
    """Raise if a traced result was to be written into an array that cannot carry it."""
    out = out[0] if type(out) is tuple and len(out) == 1 else out
    if out is None:
        return
    what = "a traced array" if type(out) is Tracer else "a plain array, which cannot carry a derivative"
    raise refuse(written_into(what))


# What writes its result into an array of any dtype.
_UNSAFE = {
    "sum", "prod", "max", "min", "amax", "amin", "mean", "var", "cumsum", "cumprod", "take", "choose", "compress",
    "trace", "median", "any", "all", "nansum", "nanprod", "nanmax", "nanmin", "nanmean", "nanvar", "nancumsum",
    "nancumprod", "nanmedian",
}  # fmt: skip
# What broadcasts its result to an array of another shape.
_BROADCAST = {"clip", "einsum", "outer"}
# What NumPy computes in the dtype of the array for its result.
_ADDS = {"sum", "prod", "cumsum", "cumprod"}


def with_out(function: Any) -> Any:
    """Return a function that can write its result into a traced array, ``out=``, as NumPy's does."""
    code = function.__code__
    names = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    if "out" not in names:
        return function
    name = function.__name__
    place = names.index("out")
    place = place if place < code.co_argcount else sys.maxsize

    @functools.wraps(function)
    def run(*args: Any, **kwargs: Any) -> Any:
        if len(args) <= place and "out" not in kwargs:
            return function(*args, **kwargs) if kwargs else function(*args)
        out = args[place] if len(args) > place else kwargs.get("out")
        if type(out) is not Tracer:
            return function(*args, **kwargs)
        if not is_array(out):
            raise TypeError("return arrays must be of ArrayType")
        args = (*args[:place], None, *args[place + 1 :]) if len(args) > place else args
        kwargs.pop("out", None)
        if name in _ADDS and "dtype" not in kwargs and len(args) <= names.index("dtype") and is_wider(out, args):
            kwargs["dtype"] = out.dtype
        y = function(*args, **kwargs)
        multiplies = name == "dot" and _multiplies(y, args[:2])
        if name == "dot" and not multiplies:
            _check_as_dot(out, y)
        if not SINCE_2_5 and name.startswith("cum") and out.ndim == 1 and not (np.size(y) and out.size):
            given = getattr(kwargs.get("a", args[0] if args else None), "dtype", out.dtype)
            if (given == out.dtype and given.isnative) or np.size(y) == 1:
                return out  # the sums of nothing change nothing, whatever the array's size, unless they are converted
        if name == "einsum" and out.ndim != np.ndim(y):
            raise ValueError(f"out parameter does not have the correct number of dimensions, {np.ndim(y)}")
        if name == "einsum":
            np.broadcast_shapes(out.shape, np.shape(y))  # which NumPy looks at before it looks at the dtypes
        if name not in _BROADCAST and not multiplies:
            same_size(out, y, name)
        casting = "unsafe" if name in _UNSAFE else kwargs.get("casting", "safe") if name == "einsum" else "same_kind"
        return out.receive(y, casting)

    return run


def _multiplies(y: Any, operands: tuple) -> bool:
    """Return whether NumPy's dot multiplies by a number as np.multiply does, and not by BLAS."""
    ranks = [np.ndim(x) for x in operands]
    return 0 in ranks and (max(ranks) > 2 or y.dtype.char not in "fdFD")


def _check_as_dot(out: Any, y: Any) -> None:
    """Raise where NumPy's dot does not take an array for its result, which it writes without a conversion."""
    RUNS.laid_out = True
    plain = layout(out)
    if out.dtype != y.dtype or (type(plain) is np.ndarray and not plain.flags.c_contiguous):
        raise ValueError(
            f"the output array of dot has dtype {out.dtype}, and lies in memory as {getattr(plain, 'strides', ())}: it "
            f"must have the dtype of the result, {y.dtype}, and lie in C order. Write out[...] = np.dot(a, b)"
        )


def refuse_options(name: str, options: dict) -> None:
    """Raise for ufunc options that a function written in other operations cannot honour."""
    refuse_out(options.get("out"))
    if options.get("where", True) is not True:
        raise TracerConversionError(
            f"{name}(x, where=mask) without out leaves the rest of the result undefined. "
            f"Write np.where(mask, {name}(x), other)"
        )
    unknown = set(options) - _HARMLESS - {"out", "where", *(["order"] if options.get("order") in (None, "K") else [])}
    if unknown:
        raise MissingRuleError(f"{name} of a traced value does not take {sorted(unknown)}")


def traced_ufunc_options(prim: Any, args: tuple, options: dict) -> Any:
    """Run an elementwise operation with ufunc options where a tracer is involved."""
    out = options.pop("out", None)
    out = out[0] if type(out) is tuple and len(out) == 1 else out
    where = options.pop("where", True)
    if type(out) is Tracer:
        casting = options.get("casting", "same_kind")
        return out.receive(prim(*args, **options), casting, where, prim.name)
    if type(out) is np.ndarray and _are_handles((*args, where)):
        return _write_numbers(out, prim(*args, **options), where, options.get("casting", "same_kind"))
    refuse_out(out)
    dtype = options.pop("dtype", None)
    axes = options.pop("axes", None) if prim.forward in WITH_AXES else None
    order = options.pop("order", None) or "K"
    unknown = set(options) - _HARMLESS
    if unknown:
        raise MissingRuleError(f"{prim.name} of a traced value does not take {sorted(unknown)}")
    if where is not True:
        raise TracerConversionError(
            f"{prim.name}(x, where=mask) without out leaves the rest of the result undefined. "
            f"Write np.where(mask, {prim.name}(x), other)"
        )
    args = args if dtype is None else _convert(prim, args, dtype, options.get("casting", "same_kind"))
    z = prim(*args) if axes is None else along_axes(prim.forward, prim, args, axes)
    return z if order == "K" else _lay_out(z, order, args)


def _are_handles(xs: tuple) -> bool:
    """Return whether all tracers among some values stand for plain arrays that the function has made."""
    return all(x.owner.physical for x in xs if type(x) is Tracer)


def _write_numbers(out: np.ndarray, y: Any, where: Any, casting: Any) -> np.ndarray:
    """Write a result without a derivative into a plain array, such as the flags that a comparison gave, ``p &= q``."""
    y, where = (x.wrapped if type(x) is Tracer else x for x in (y, where))
    np.copyto(out, y, casting=casting, where=where)
    return out


def _lay_out(z: Any, order: str, xs: tuple) -> Any:
    """Return the results of a ufunc as they lie in memory in an order: "A" is Fortran's if all operands lie in it."""
    RUNS.laid_out = True
    flags = [plain.flags for x in xs if type(plain := layout(x)) is np.ndarray]
    if order == "A":
        order = "F" if all(f.f_contiguous for f in flags) and not all(f.c_contiguous for f in flags) else "C"
    if type(z) is tuple:
        return tuple(_lay_out(y, order, ()) for y in z)
    plain = layout(z)
    if type(plain) is not np.ndarray:
        return z
    return z if (plain.flags.c_contiguous if order == "C" else plain.flags.f_contiguous) else z.copy(order)


# Products of matrices and vectors, which take ``axes=``.
WITH_AXES = frozenset(f for f in vars(np).values() if isinstance(f, np.ufunc) and f.signature)


def along_axes(ufunc: np.ufunc, product: Any, xs: tuple, axes: Any) -> Any:
    """Return a product along the axes that are named for both operands and the result, as NumPy's ``axes=`` does it."""
    if type(axes) is not list:
        raise TypeError("axes should be a list.")
    x, y = (v if hasattr(v, "ndim") else np.asarray(v) for v in xs)
    signature = ufunc.signature
    assert signature is not None  # these are the products of WITH_AXES
    least = [part.count(",") + 1 for part in signature.split("->")[0].split("),(")]
    ranks = [1 if ufunc is np.matmul and v.ndim == 1 else n for n, v in zip(least, (x, y), strict=True)]
    ranks.append(sum(ranks) - 2)
    axes = [*axes, ()] if len(axes) == 2 and not ranks[2] else axes
    if len(axes) != 3:
        raise ValueError(
            "axes should be a list with an entry for all 3 inputs and outputs; entries for outputs can only be omitted "
            "if none of them has core axes."
        )
    places = [(e,) if hasattr(e, "__index__") and n == 1 else e for e, n in zip(axes, ranks, strict=True)]
    for k, (entry, n) in enumerate(zip(places, ranks, strict=True)):
        if type(entry) is not tuple or len(entry) != n:
            raise np.exceptions.AxisError(
                f"{ufunc.__name__}: operand {k} has {n} core dimensions, but axes has the entry {axes[k]!r} for it."
            )
    last = [tuple(range(-n, 0)) for n in ranks]
    z = product(*(np.moveaxis(v, e, k) if e else v for v, e, k in zip((x, y), places, last, strict=False)))
    return np.moveaxis(z, last[2], places[2]) if ranks[2] else z


def _convert(prim: Any, args: tuple, dtype: Any, casting: Any) -> tuple:
    """Return operands as the loop wants them that gives a result of a dtype; NumPy refuses if there is none."""
    ufunc = next((f for f in (prim.forward, *prim.numpy) if isinstance(f, np.ufunc)), None)
    if ufunc is None:
        raise MissingRuleError(f"{prim.name} of a traced value does not take ['dtype']")
    kinds = [type(x) if type(x) in _NUMBERS else getattr(x, "dtype", None) or np.asarray(x).dtype for x in args]
    results = [np.dtype(dtype)] * ufunc.nout
    wanted = ufunc.resolve_dtypes(
        (*kinds, *[None] * ufunc.nout), signature=(*[None] * ufunc.nin, *results), casting=casting
    )
    pairs = zip(args, wanted[: ufunc.nin], strict=True)
    return tuple(x.astype(t) if hasattr(x, "astype") else np.asarray(x, t) for x, t in pairs)
