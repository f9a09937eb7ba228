"""The eager face: fad for people who think in PyTorch. ``import fad.eager as torch`` runs the usual tutorials.

>>> import fad.eager as torch
>>> x = torch.tensor([1.0, 2.0], requires_grad=True)
>>> y = (x**2).sum()
>>> y
tensor(5., grad_fn=<SumBackward0>)
>>> y.backward()
>>> x.grad
tensor([2., 4.])

A tensor is an array with a history, and the history is kept by the same rules as everywhere in fad: there is no second
set of derivatives. Dtypes are NumPy's (``torch.float32`` is ``np.dtype("float32")``), and so is the memory.
"""

import numpy as _np

from fad.eager import autograd, nn, optim
from fad.eager import functions as _functions
from fad.eager import inplace as _inplace  # noqa: F401  (gives Tensor its methods that change it in place)
from fad.eager.creation import (
    arange, as_tensor, empty, empty_like, eye, from_numpy, full, full_like, get_default_dtype, linspace, logspace,
    manual_seed, normal, ones, ones_like, rand, rand_like, randint, randn, randn_like, randperm, seed,
    set_default_dtype, tensor, zeros, zeros_like,
)  # fmt: skip
from fad.eager.devices import cuda, device
from fad.eager.functions import (
    abs, acos, add, addmm, all, allclose, amax, amin, any, argmax, argmin, asin, atan, atan2, bmm, broadcast_to, cat,
    ceil, chunk, clamp, clone, cos, cosh, cumsum, diag, div, dot, einsum, eq, equal, exp, exp2, expm1, flatten, flip,
    floor, fmod, gather, ge, gt, index_select, isclose, isfinite, isinf, isnan, le, log, log1p, log2, log10,
    log_softmax, logical_and, logical_not, logical_or, logical_xor, logsumexp, lt, masked_fill, matmul, max, maximum,
    mean, min, minimum, mm, mul, mv, ne, neg, norm, outer, permute, pow, prod, reciprocal, relu, remainder, reshape,
    rsqrt, sigmoid, sign, sin, sinh, softmax, split, sqrt, square, squeeze, stack, std, sub, sum, t, tan, tanh,
    transpose, tril, triu, trunc, unbind, unsqueeze, var, where,
)  # fmt: skip
from fad.eager.mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from fad.eager.records import BackwardError, InPlaceError
from fad.eager.tensor import Parameter, RequiresGradError, Size, Tensor

round = _functions.round_
concat = concatenate = cat
FloatTensor = tensor
float16, float32, float64 = _np.dtype("float16"), _np.dtype("float32"), _np.dtype("float64")
int8, int16, int32, int64, uint8 = (_np.dtype(n) for n in ("int8", "int16", "int32", "int64", "uint8"))
complex64, complex128 = _np.dtype("complex64"), _np.dtype("complex128")
half, float, double, int, long, bool = float16, float32, float64, int32, int64, _np.dtype("bool")
pi, e, inf, nan = _np.pi, _np.e, _np.inf, _np.nan


def is_tensor(x: object) -> _np.bool_ | object:
    """Tell whether something is a tensor."""
    return isinstance(x, Tensor)


def numel(input: Tensor) -> object:
    """Return the number of elements."""
    return input.value.size


__all__ = [
    "BackwardError", "FloatTensor", "InPlaceError", "Parameter", "RequiresGradError", "Size", "Tensor", "abs", "acos",
    "add", "addmm", "all", "allclose", "amax", "amin", "any", "arange", "argmax", "argmin", "as_tensor", "asin",
    "atan", "atan2", "autograd", "bmm", "bool", "broadcast_to", "cat", "ceil", "chunk", "clamp", "clone", "complex128",
    "complex64", "concat", "concatenate", "cos", "cosh", "cuda", "cumsum", "device", "diag", "div", "dot", "double",
    "e", "einsum", "empty", "empty_like", "enable_grad", "eq", "equal", "exp", "exp2", "expm1", "eye", "flatten",
    "flip", "float", "float16", "float32", "float64", "floor", "fmod", "from_numpy", "full", "full_like", "gather",
    "ge", "get_default_dtype", "gt", "half", "index_select", "inf", "int", "int16", "int32", "int64", "int8",
    "is_grad_enabled", "is_tensor", "isclose", "isfinite", "isinf", "isnan", "le", "linspace", "log", "log10",
    "log1p", "log2", "log_softmax", "logical_and", "logical_not", "logical_or", "logical_xor", "logspace",
    "logsumexp", "long", "lt", "manual_seed", "masked_fill", "matmul", "max", "maximum", "mean", "min", "minimum",
    "mm", "mul", "mv", "nan", "ne", "neg", "nn", "no_grad", "norm", "normal", "numel", "ones", "ones_like", "optim",
    "outer", "permute", "pi", "pow", "prod", "rand", "rand_like", "randint", "randn", "randn_like", "randperm",
    "reciprocal", "relu", "remainder", "reshape", "round", "rsqrt", "seed", "set_default_dtype", "set_grad_enabled",
    "sigmoid", "sign", "sin", "sinh", "softmax", "split", "sqrt", "square", "squeeze", "stack", "std", "sub", "sum",
    "t", "tan", "tanh", "tensor", "transpose", "tril", "triu", "trunc", "uint8", "unbind", "unsqueeze", "var",
    "where", "zeros", "zeros_like",
]  # fmt: skip
