"""Functions and methods of tensors in PyTorch's names and signatures. Each runs NumPy's or fad's own operation.

The names shadow Python's own (`sum`, `max`, `abs`), so what needs those stands elsewhere.
"""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracer import Tracer
from fad.eager.core.composite import composite, step
from fad.eager.core.records import placed
from fad.eager.ops.creation import get_default_dtype
from fad.eager.ops.operators import bmm, common_dtype, convert, dot, matmul, mm, mv, of_ranks, run  # noqa: F401
from fad.eager.ops.shaping import reshape, unsqueeze
from fad.eager.tensor import BY_PRIMITIVE, Tensor, int64, wrap
from fad.errors import ShapeMismatchError
from fad.nn import fused
from fad.ops import activation
from fad.ops import elementwise as e
from fad.ops.reduction import logsumexp as _logsumexp
from fad.ops.reduction import sum_p
from fad.ops.structural import normalize_axis, reduced_axes

# --- elementwise --------------------------------------------------------------------------------------------------

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
    return placed(input + (other if alpha == 1 else alpha * other))


def sub(input: Any, other: Any, *, alpha: float = 1) -> Any:
    """Return ``input - alpha * other``."""
    return placed(input - (other if alpha == 1 else alpha * other))


def div(input: Any, other: Any, *, rounding_mode: str | None = None) -> Any:
    """Return the quotient; rounded towards zero ("trunc") or down ("floor") it has no derivative."""
    if rounding_mode is None:
        return placed(input / other)
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

    def limited(x, low, high):
        x = x if low is None else np.where(x < low, np.zeros_like(x) + low, x)
        return x if high is None else np.where(x > high, np.zeros_like(x) + high, x)

    return composite("ClampBackward0", limited, input, min, max)


def rounded(input: Tensor, *, decimals: int = 0) -> Tensor:
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


# --- along axes ---------------------------------------------------------------------------------------------------


def of_numbers(fun: Callable, always: bool = False) -> Callable:
    """Return a function along an axis that takes single numbers too: they have axis 0, or -1, as well.

    Without arguments most functions need no axis; those that do `always` take them as vectors of one.
    """

    def call(input, *args, **kwargs):
        if input.ndim or not (always or args or kwargs) or isinstance(next(iter(args), None), Tensor):
            return fun(input, *args, **kwargs)
        return _as_numbers(fun(reshape(input, 1), *args, **kwargs))

    call.__name__ = call.__qualname__ = fun.__name__
    call.__doc__, call.__wrapped__ = fun.__doc__, fun  # its signature is that of `fun`
    return call


def _as_numbers(y: Any) -> Any:
    if isinstance(y, tuple):
        return type(y)(*map(_as_numbers, y)) if hasattr(y, "_fields") else tuple(map(_as_numbers, y))
    return reshape(y, ()) if y.value.size == 1 else y


# --- reductions ---------------------------------------------------------------------------------------------------


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over `dim`, an axis or several; over all if None."""
    x = input if dtype is None else convert(input, np.dtype(dtype))
    x = x if x.dtype.kind in "fc" else Tensor(x.value.astype(int64))
    return run(sum_p, x, axis=reduced_axes(dim if type(dim) is not list else tuple(dim), x.ndim), keepdims=keepdim)


def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean over `dim`, an axis or several; over all if None."""
    input = input if dtype is None else convert(input, np.dtype(dtype))
    axis = reduced_axes(dim if type(dim) is not list else tuple(dim), input.ndim)
    return composite(
        "MeanBackward0" if dim is None else "MeanBackward1", lambda x: np.mean(x, axis, keepdims=keepdim), input,
        linear=True,
    )  # fmt: skip


def _spread_of(name: str, function: Callable) -> Callable:
    def reduced(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
        ddof = int(unbiased) if correction is None else correction
        axis = None if dim is None else reduced_axes(dim if type(dim) is not list else tuple(dim), input.ndim)
        return composite(name, lambda x: function(x, axis, ddof=ddof, keepdims=keepdim), input)

    reduced.__doc__ = (
        f"Return NumPy's {function.__name__} over `dim`, with n - 1 in the denominator by default."
    )
    return reduced


var = _spread_of("VarBackward0", np.var)
std = _spread_of("StdBackward0", np.std)


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the product over an axis, or over all elements."""
    input = input if dtype is None else convert(input, np.dtype(dtype))
    return composite("ProdBackward0", lambda x: np.prod(x, dim, keepdims=keepdim), input)


Extreme = namedtuple("Extreme", "values indices")


def _extreme(name: str, function: Callable, arg: Callable, pair: Any) -> Callable:
    def reduced(input, dim=None, keepdim=False):
        if isinstance(dim, Tensor):
            return pair(input, dim)
        if dim is None:
            return composite(f"{name}Backward1", lambda x: function(x, None), input)
        # the derivative goes to the element that the indices name, alone at ties too
        best = arg(np.asarray(input.detach()), dim, keepdims=True)
        chosen = lambda x: np.take_along_axis(x, best, dim)
        y = composite(f"{name}Backward0", chosen if keepdim else lambda x: np.squeeze(chosen(x), dim), input)
        return Extreme(y, Tensor(best if keepdim else np.squeeze(best, dim)))

    reduced.__doc__ = (
        f"Return the {name.lower()}imum; over `dim`, with its indices; of two tensors, element by element."
    )
    return reduced


max = _extreme("Max", np.max, np.argmax, maximum)
min = _extreme("Min", np.min, np.argmin, minimum)
amax = lambda input, dim=None, keepdim=False: composite(
    "AmaxBackward0", lambda x: np.max(x, dim, keepdims=keepdim), input
)
amin = lambda input, dim=None, keepdim=False: composite(
    "AminBackward0", lambda x: np.min(x, dim, keepdims=keepdim), input
)


def _flat(function: Callable) -> Callable:
    def reduced(input, dim=None, keepdim=False):
        return wrap(np.asarray(function(input.value, dim, keepdims=keepdim)))

    reduced.__doc__ = f"Return NumPy's {function.__name__}; it has no derivative."
    return reduced


argmax, argmin, any, all = _flat(np.argmax), _flat(np.argmin), _flat(np.any), _flat(np.all)


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the Euclidean norm, or the p-norm, of all elements or along `dim`; its derivative at zero is zero."""
    if p in ("fro", 2, 2.0, None):
        fun = lambda x: np.linalg.norm(x if dim is not None else x.reshape(-1), axis=dim, keepdims=keepdim)
    elif p in (1, float("inf"), -float("inf")):
        how = {1: np.sum, float("inf"): np.max}.get(p, np.min)
        fun = lambda x: how(np.abs(x), axis=dim, keepdims=keepdim)
    else:
        fun = lambda x: np.sum(np.abs(x) ** p, axis=dim, keepdims=keepdim) ** (1.0 / p)
    return composite("LinalgVectorNormBackward0", fun, input)


def cumsum(input: Tensor, dim: int, *, dtype: Any = None) -> Tensor:
    """Return the running sum along an axis."""
    input = input if dtype is None else convert(input, np.dtype(dtype))
    return composite("CumsumBackward0", lambda x: np.cumsum(x, dim), input, linear=True)


def logsumexp(input: Tensor, dim: Any, keepdim: bool = False) -> Tensor:
    """Return log(sum(exp(x))) over `dim`, without overflow."""
    return composite("LogsumexpBackward0", lambda x: _logsumexp(x, dim, keepdims=keepdim), input)


def equal(input: Tensor, other: Tensor) -> bool:
    """Return whether two tensors have one shape and equal elements."""
    return input.shape == other.shape and bool(np.all(input.value == other.value))


def isclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Compare element by element, within tolerances."""
    return Tensor(np.isclose(input.value, other.value, rtol, atol, equal_nan))


def allclose(input: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Return whether all elements agree within tolerances."""
    return bool(np.allclose(input.value, other.value, rtol, atol, equal_nan))


# --- products -----------------------------------------------------------------------------------------------------



def _outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return all products of the elements of two vectors."""
    return placed(unsqueeze(input, 1) * vec2)


outer = of_ranks(_outer, 1, 1)
outer.__name__ = outer.__qualname__ = "outer"


def einsum(equation: str, *operands: Any) -> Tensor:
    """Return a sum of products, in Einstein's notation."""
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return composite("EinsumBackward0", lambda *xs: np.einsum(equation, *xs), *operands)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * mat1 @ mat2``."""
    product = mm(mat1, mat2) if alpha == 1 else alpha * mm(mat1, mat2)
    return placed((input if beta == 1 else beta * input) + product)


# --- copies, dtypes -------------------------------------------------------------------------------------------------


def clone(input: Tensor) -> Tensor:
    """Return a copy, through which gradients flow."""
    return (
        Tensor(np.array(input.value))
        if type(input.value) is not Tracer and input.node is None
        else run(e.positive, input)
    )


def contiguous(self: Tensor) -> Tensor:
    """Return the tensor if its elements lie in order in memory, else a copy in which they do."""
    value = self.value
    if type(value) is not np.ndarray or value.flags.c_contiguous:
        return self
    y = clone(self)
    y.value = np.ascontiguousarray(y.value)
    return placed(y)


def to(self: Tensor, *args: Any, dtype: Any = None, device: Any = None, **options: Any) -> Tensor:
    """Return the tensor in another dtype; devices other than the host's memory are refused."""
    for x in args:
        if isinstance(x, Tensor):
            dtype = x.dtype
        elif isinstance(x, (np.dtype, type)):
            dtype = x
        else:
            device = x
    if device is not None and str(device).partition(":")[0] != "cpu":
        raise ValueError(f"the eager API keeps tensors in host memory; there is no device {device!r}")
    return self if dtype is None else convert(self, np.dtype(dtype))


def _to(dtype: str) -> Callable:
    return lambda self: convert(self, np.dtype(dtype))


def softmax(input: Tensor, dim: int = -1, dtype: Any = None) -> Tensor:
    """Return exp(x) / sum(exp(x)) along an axis."""
    input = input if dtype is None else convert(input, np.dtype(dtype))
    if not input.ndim and dim in (0, -1):
        return softmax(input.reshape(1), 0)[0]
    return run(fused.softmax_p, input, axis=normalize_axis(dim, input.ndim))


def log_softmax(input: Tensor, dim: int = -1, dtype: Any = None) -> Tensor:
    """Return the logarithm of the softmax along an axis."""
    input = input if dtype is None else convert(input, np.dtype(dtype))
    if not input.ndim and dim in (0, -1):
        return log_softmax(input.reshape(1), 0)[0]
    return run(fused.log_softmax_p, input, axis=normalize_axis(dim, input.ndim))


softmax, log_softmax = of_numbers(softmax, True), of_numbers(log_softmax, True)


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Put a value, a number or a tensor of one, where the mask holds."""
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeMismatchError(
            f"masked_fill puts one value everywhere, and was given a tensor of shape {tuple(value.shape)}: "
            "torch.where(mask, value, x) chooses element by element"
        )
    return composite("MaskedFillBackward0", lambda x, m, v: np.where(m, v, x).astype(x.dtype), input, mask, value)


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Take along an axis, one index for each result."""
    return composite("GatherBackward0", lambda x, i: np.take_along_axis(x, i, dim), input, index)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Take whole slices along an axis."""
    return composite("IndexSelectBackward0", lambda x, i: np.take(x, i, dim), input, index)


def _with_diagonal(name: str, fun: Callable) -> Callable:
    def call(input, diagonal=0):
        return composite(name, lambda x: fun(x, diagonal), input)

    call.__doc__ = f"Return NumPy's {fun.__name__}, from the diagonal of a number on."
    return call


tril, triu = _with_diagonal("TrilBackward0", np.tril), _with_diagonal("TriuBackward0", np.triu)
diag = _with_diagonal("DiagonalBackward0", np.diag)


def flip(input: Tensor, *numbers: Any, dims: Any = None) -> Tensor:
    """Turn axes the other way round: ``flip(x, 0, 1)`` or ``flip(x, dims=(0, 1))``."""
    dims = numbers if dims is None else dims
    dims = dims[0] if type(dims) is tuple and len(dims) == 1 else dims
    axes = tuple(dims) if type(dims) is list else dims
    return composite("FlipBackward0", lambda x: np.flip(x, axes), input, linear=True)


_METHODS = [
    "sin", "cos", "tan", "exp", "log", "log2", "log10", "log1p", "expm1", "exp2", "sqrt", "tanh", "sinh", "cosh",
    "square", "reciprocal", "neg", "asin", "acos", "atan", "floor", "ceil", "isnan", "isinf", "isfinite",
    "logical_not", "trunc", "mul", "div", "pow", "maximum", "minimum", "atan2", "fmod", "remainder", "eq", "ne", "lt",
    "le", "gt", "ge", "logical_and", "logical_or", "logical_xor", "abs", "sign", "rsqrt", "sigmoid", "relu", "add",
    "sub", "clamp", "sum", "mean", "var", "std", "prod", "max", "min", "amax", "amin", "argmax", "argmin", "any",
    "all", "norm", "cumsum", "logsumexp", "equal", "isclose", "allclose", "matmul", "mm", "mv", "bmm", "dot", "outer",
    "clone", "to", "softmax", "log_softmax", "masked_fill", "gather", "index_select", "tril", "triu", "diag", "flip",
]  # fmt: skip
for _name in _METHODS:
    setattr(Tensor, _name, globals()[_name])
Tensor.round = rounded
Tensor.absolute = abs
Tensor.float, Tensor.double, Tensor.long, Tensor.int, Tensor.bool, Tensor.half = map(
    _to, ("float32", "float64", "int64", "int32", "bool", "float16")
)
Tensor.type = lambda self, dtype=None: dtype_name(self.dtype) if dtype is None else convert(self, np.dtype(dtype))
Tensor.cpu = lambda self: self
Tensor.contiguous = contiguous
Tensor.__pos__ = lambda self: self
Tensor.type_as = lambda self, other: convert(self, other.dtype)
Tensor.size = lambda self, dim=None: self.shape if dim is None else self.shape[dim]
Tensor.dim = Tensor.ndimension = lambda self: self.ndim
Tensor.numel = Tensor.nelement = lambda self: self.value.size
Tensor.is_floating_point = lambda self: self.dtype.kind == "f"
Tensor.is_complex = lambda self: self.dtype.kind == "c"
Tensor.is_contiguous = lambda self: self.value.flags.c_contiguous
Tensor.element_size = lambda self: self.dtype.itemsize
Tensor.data_ptr = lambda self: self.detach().value.ctypes.data


def dtype_name(dtype: np.dtype) -> str:
    names = {"float32": "Float", "float64": "Double", "int64": "Long", "int32": "Int", "bool": "Bool"}
    return f"torch.{names.get(dtype.name, dtype.name.title())}Tensor"


__all__ = [*_METHODS, "addmm", "einsum", "where"]
