"""Elementwise functions of tensors: arithmetic, comparisons, rounding, complex numbers, special functions."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.eager.core.composite import composite, step
from fad.eager.core.records import name_user_line
from fad.eager.ops.copies import clone
from fad.eager.ops.creation import get_default_dtype
from fad.eager.ops.nodes import as_node, special_function
from fad.eager.ops.operators import common_dtype, convert
from fad.eager.tensor import BY_PRIMITIVE, Tensor, int64
from fad.nn import fused
from fad.ops.ufuncs import activation
from fad.ops.ufuncs import elementwise as e

sin, cos, tan, exp, log, log2, log10, log1p, expm1, exp2, sqrt, tanh, sinh, cosh, square, reciprocal, neg = (
    BY_PRIMITIVE[p]
    for p in (
        e.sin, e.cos, e.tan, e.exp, e.log, e.log2, e.log10, e.log1p, e.expm1, e.exp2, e.sqrt, e.tanh, e.sinh, e.cosh,
        e.square, e.reciprocal, e.negative,
    )
)  # fmt: skip
asin, acos, atan, isnan, isinf, isfinite, logical_not = (
    BY_PRIMITIVE[p]
    for p in (
        e.arcsin,
        e.arccos,
        e.arctan,
        e.isnan,
        e.isinf,
        e.isfinite,
        e.logical_not,
    )
)
mul, pow, maximum, minimum, atan2, fmod, remainder = (
    BY_PRIMITIVE[p] for p in (e.multiply, e.power, e.maximum, e.minimum, e.arctan2, e.fmod, e.remainder)
)
eq, ne, lt, le, gt, ge, logical_and, logical_or, logical_xor = (
    BY_PRIMITIVE[p]
    for p in (
        e.equal, e.not_equal, e.less, e.less_equal, e.greater, e.greater_equal, e.logical_and, e.logical_or,
        e.logical_xor,
    )
)  # fmt: skip


def _unary_as(name: str, fun: Callable) -> Callable:
    def call(input):
        return composite(name, fun, input)

    call.__doc__ = f"Apply {name.removesuffix('Backward0').lower()} to each element."
    return call


def _step(name: str, prim: Any) -> Callable:
    compute = BY_PRIMITIVE[prim]

    def call(input):
        whole = input.dtype.kind in "biu"
        return step(name, clone(input) if whole else compute(input), input)

    call.__name__ = call.__qualname__ = prim.name
    call.__doc__ = f"Apply {prim.name} to each element; the derivative is zero."
    BY_PRIMITIVE[prim] = call
    return call


floor, ceil, trunc = _step("FloorBackward0", e.floor), _step("CeilBackward0", e.ceil), _step("TruncBackward0", e.trunc)
round_ = _step("RoundBackward0", e.rint)
abs = Tensor.__abs__


def sign(input: Tensor) -> Tensor:
    """Return the sign of each element, 0 for NaN; the derivative is zero."""
    signs = np.sign if input.dtype.kind in "biuc" else lambda x: np.nan_to_num(np.sign(x))
    return step("SignBackward0", composite("SignBackward0", signs, input.detach()), input)


rsqrt = _unary_as("RsqrtBackward0", lambda x: 1.0 / np.sqrt(x))
sigmoid, relu = BY_PRIMITIVE[activation.sigmoid], BY_PRIMITIVE[fused.relu]


def add(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Return ``input + alpha * other``."""
    return name_user_line(input + (other if alpha == 1 else alpha * other))


def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Return ``input - alpha * other``."""
    return name_user_line(input - (other if alpha == 1 else alpha * other))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return the quotient; rounded towards zero ("trunc") or down ("floor") it has no derivative."""
    if rounding_mode is None:
        return name_user_line(input / other)
    if rounding_mode not in ("trunc", "floor"):
        raise ValueError(f"rounding_mode must be None, 'trunc' or 'floor', not {rounding_mode!r}")
    if rounding_mode == "floor":
        y = input // other
    else:
        y = Tensor(trunc(input / other).value)
        kinds = {t.dtype.kind for t in (input, other) if isinstance(t, Tensor)}
        y = y if kinds & {"f", "c"} else y.long()
    return step("DivBackward2", y, input, other)


def clamp(input: Tensor, min: Any = None, max: Any = None) -> Tensor:
    """Limit each element to ``[min, max]``; outside, the derivative is zero."""

    def limit(x, low, high):
        x = x if low is None else np.where(x < low, np.zeros_like(x) + low, x)
        return x if high is None else np.where(x > high, np.zeros_like(x) + high, x)

    return composite("ClampBackward0", limit, input, min, max)


def round_to(input: Tensor, *, decimals: int = 0) -> Tensor:
    """Return each element rounded to a number of decimals; halves go to the even neighbour."""
    if not decimals or input.dtype.kind in "biu":
        return round_(input)
    return step("RoundBackward1", composite("RoundBackward1", lambda x: np.round(x, decimals), input.detach()), input)


def where(condition: Tensor, input: Any = None, other: Any = None) -> Any:
    """Choose from `input` where the condition holds, else from `other`; alone, return the indices where it holds."""
    if input is None:
        return tuple(Tensor(i) for i in np.nonzero(condition.value))
    if not isinstance(input, Tensor) and not isinstance(other, Tensor):  # numbers have the dtype of tensors of them
        float_dtype = get_default_dtype() if isinstance(input, float) or isinstance(other, float) else None
        kind = int64 if float_dtype is None and not isinstance(input, bool) else float_dtype
        return composite("WhereBackward0", np.where, condition, np.asarray(input, kind), np.asarray(other, kind))
    dtype = common_dtype(input, other)
    input, other = (convert(x, dtype) if isinstance(x, Tensor) else x for x in (input, other))
    return composite("WhereBackward0", np.where, condition, input, other)


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have one shape and equal elements."""
    return input.shape == other.shape and bool(np.all(input.value == other.value))


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Compare element by element, within tolerances."""
    return Tensor(np.isclose(input.value, other.value, rtol, atol, equal_nan))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements agree within tolerances."""
    return bool(np.allclose(input.value, other.value, rtol, atol, equal_nan))


erf, erfc = as_node("erf", special_function("erf")), as_node("erfc", special_function("erfc"))
lgamma, digamma = as_node("lgamma", special_function("gammaln")), as_node("digamma", special_function("psi"))
sinc, hypot, logaddexp = as_node("sinc", np.sinc), as_node("hypot", np.hypot), as_node("logaddexp", np.logaddexp)
nan_to_num = as_node(
    "nan_to_num", lambda x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, True, nan, posinf, neginf)
)
imag, angle = as_node("imag", np.imag, linear=True), as_node("angle", np.angle)
_real, _conj = as_node("real", np.real, linear=True), as_node("conj", np.conj, linear=True)
lerp = as_node("lerp", lambda input, end, weight: input + weight * (end - input))
addcmul = as_node("addcmul", lambda x, a, b, value=1.0: x + value * a * b)
addcdiv = as_node("addcdiv", lambda x, a, b, value=1.0: x + value * a / b)
asinh, acosh, atanh = as_node("asinh", np.arcsinh), as_node("acosh", np.arccosh), as_node("atanh", np.arctanh)
_logit = special_function("logit")
logit, xlogy, erfinv = (
    as_node("logit", lambda x, eps=None: _logit(x if eps is None else np.clip(x, eps, 1.0 - eps))),
    as_node("xlogy", special_function("xlogy")),
    as_node("erfinv", special_function("erfinv")),
)
clamp_min = as_node("clamp_min", lambda x, min: np.where(x < min, np.zeros_like(x) + min, x))
clamp_max = as_node("clamp_max", lambda x, max: np.where(x > max, np.zeros_like(x) + max, x))


def real(input: Tensor) -> Tensor:
    """Return the real part; of a real tensor the tensor itself."""
    return name_user_line(_real(input)) if input.dtype.kind == "c" else input


def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate; of a real tensor the tensor itself."""
    return name_user_line(_conj(input)) if input.dtype.kind == "c" else input


def floor_divide(input: Any, other: Any) -> Tensor:
    """Return the quotient rounded down."""
    return name_user_line(input // other)


def _double(x: Any) -> Any:
    number = np.isscalar(x)
    return float(x) if number else x.astype("float64")


def _choose(greater: bool) -> Callable:
    def choose(x, y):
        better = x >= y if greater else x <= y
        return np.where(better | (y != y), x, y)

    return choose


deg2rad = as_node("deg2rad", lambda x: x * (math.pi / 180.0))
rad2deg = as_node("rad2deg", lambda x: x * (180.0 / math.pi))
frac = as_node("frac", lambda x: x - np.trunc(x))
copysign = as_node("copysign", lambda x, y: np.copysign(x, y))
fmax, fmin = as_node("fmax", _choose(True)), as_node("fmin", _choose(False))
sgn = as_node("sgn", np.sign)
ldexp = as_node("ldexp", lambda x, n: x * 2.0 ** np.asarray(n).astype("float32"))
logaddexp2 = as_node("logaddexp2", lambda x, y: np.logaddexp(x * math.log(2.0), y * math.log(2.0)) / math.log(2.0))
float_power = as_node("float_power", lambda x, p: _double(x) ** _double(p))
polygamma = as_node("polygamma", lambda n, x: importlib.import_module("fad.scipy.special").polygamma(n, x))
i0, ndtr = as_node("i0", special_function("i0")), as_node("ndtr", special_function("ndtr"))
igamma, igammac = as_node("igamma", special_function("gammainc")), as_node("igammac", special_function("gammaincc"))
mvlgamma = as_node("mvlgamma", lambda x, p: importlib.import_module("fad.scipy.special").multigammaln(x, p))
heaviside = as_node("heaviside", lambda x, v: np.where(x == 0, v, (x > 0).astype(x.dtype)))
polar = as_node("polar", lambda r, angle: r * (np.cos(angle) + 1j * np.sin(angle)))
view_as_real = as_node("view_as_real", lambda z: np.stack([np.real(z), np.imag(z)], axis=-1))
view_as_complex = as_node("view_as_complex", lambda x: x[..., 0] + 1j * x[..., 1])
complex = as_node("complex", lambda re, im: re + 1j * im)
multiply = mul
