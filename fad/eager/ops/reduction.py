"""Functions along axes of tensors: sums, extremes, running ones, differences, softmax."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.eager.core.composite import composite
from fad.eager.ops.elementwise import maximum, minimum
from fad.eager.ops.nodes import as_array, as_node, of_flattened, of_numbers, without_derivative
from fad.eager.ops.operators import convert, run
from fad.eager.ops.sorting import Sorted
from fad.eager.tensor import Tensor, int64
from fad.nn import fused
from fad.ops.arrangement.structural import find_reduced_axes, normalize_axis
from fad.ops.reductions.reduction import logsumexp as _logsumexp
from fad.ops.reductions.reduction import sum_p


def sum(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the sum over `dim`, an axis or several; over all if None."""
    x = input if dtype is None else convert(input, np.dtype(dtype))
    x = x if x.dtype.kind in "fc" else Tensor(x.value.astype(int64))
    return run(sum_p, x, axis=find_reduced_axes(dim if type(dim) is not list else tuple(dim), x.ndim), keepdims=keepdim)


def mean(input: Tensor, dim: Any = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the mean over `dim`, an axis or several; over all if None."""
    input = input if dtype is None else convert(input, np.dtype(dtype))
    axis = find_reduced_axes(dim if type(dim) is not list else tuple(dim), input.ndim)
    return composite(
        "MeanBackward0" if dim is None else "MeanBackward1", lambda x: np.mean(x, axis, keepdims=keepdim), input,
        linear=True,
    )  # fmt: skip


def _spread_of(name: str, function: Callable) -> Callable:
    def reduce(input, dim=None, unbiased=True, keepdim=False, *, correction=None):
        ddof = int(unbiased) if correction is None else correction
        axis = None if dim is None else find_reduced_axes(dim if type(dim) is not list else tuple(dim), input.ndim)
        return composite(name, lambda x: function(x, axis, ddof=ddof, keepdims=keepdim), input)

    reduce.__doc__ = (
        f"Return NumPy's {function.__name__} over `dim`, with n - 1 in the denominator by default."
    )
    return reduce


var = _spread_of("VarBackward0", np.var)
std = _spread_of("StdBackward0", np.std)


def prod(input: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: Any = None) -> Tensor:
    """Return the product over an axis, or over all elements."""
    input = input if dtype is None else convert(input, np.dtype(dtype))
    return composite("ProdBackward0", lambda x: np.prod(x, dim, keepdims=keepdim), input)


Extreme = namedtuple("Extreme", "values indices")


def _extreme(name: str, function: Callable, arg: Callable, pair: Any) -> Callable:
    def reduce(input, dim=None, keepdim=False):
        if isinstance(dim, Tensor):
            return pair(input, dim)
        if dim is None:
            return composite(f"{name}Backward1", lambda x: function(x, None), input)
        # the derivative goes to the element that the indices name, alone at ties too
        best = arg(np.asarray(input.detach()), dim, keepdims=True)
        chosen = lambda x: np.take_along_axis(x, best, dim)
        y = composite(f"{name}Backward0", chosen if keepdim else lambda x: np.squeeze(chosen(x), dim), input)
        return Extreme(y, Tensor(best if keepdim else np.squeeze(best, dim)))

    reduce.__doc__ = (
        f"Return the {name.lower()}imum; over `dim`, with its indices; of two tensors, element by element."
    )
    return reduce


max = _extreme("Max", np.max, np.argmax, maximum)
min = _extreme("Min", np.min, np.argmin, minimum)
amax = lambda input, dim=None, keepdim=False: composite(
    "AmaxBackward0", lambda x: np.max(x, dim, keepdims=keepdim), input
)
amin = lambda input, dim=None, keepdim=False: composite(
    "AminBackward0", lambda x: np.min(x, dim, keepdims=keepdim), input
)
argmax, argmin, any, all = of_flattened(np.argmax), of_flattened(np.argmin), of_flattened(np.any), of_flattened(np.all)


def norm(input: Tensor, p: Any = "fro", dim: Any = None, keepdim: bool = False) -> Tensor:
    """Return the Euclidean norm, or the p-norm, of all elements or along `dim`; its derivative at zero is zero."""
    if p in ("fro", 2, 2.0, None):
        fun = lambda x: np.linalg.norm(x if dim is not None else x.reshape(-1), axis=dim, keepdims=keepdim)
    elif p in (1, float("inf"), -float("inf")):
        norms: dict[float, Callable] = {1: np.sum, float("inf"): np.max}
        how = norms.get(p, np.min)
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
cumprod = as_node("cumprod", lambda x, dim: np.cumprod(x, dim))
diff = as_node("diff", lambda x, n=1, dim=-1: np.diff(x, n, dim), linear=True)
quantile = as_node("quantile", lambda x, q, dim=None, keepdim=False: np.quantile(x, q, axis=dim, keepdims=keepdim))
nansum = as_node("nansum", lambda x, dim=None, keepdim=False: np.nansum(x, axis=dim, keepdims=keepdim))
nanmean = as_node("nanmean", lambda x, dim=None, keepdim=False: np.nanmean(x, axis=dim, keepdims=keepdim))


def std_mean(input: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> tuple:
    """Return the standard deviation and the mean."""
    return input.std(dim, unbiased, keepdim), input.mean(dim, keepdim)


def var_mean(input: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> tuple:
    """Return the variance and the mean."""
    return input.var(dim, unbiased, keepdim), input.mean(dim, keepdim)


count_nonzero = without_derivative("count_nonzero", lambda x, dim=None: np.count_nonzero(x, axis=dim))
renorm = as_node("renorm", lambda x, p, dim, maxnorm: _renorm(x, p, dim % x.ndim, maxnorm))


def _renorm(x: Any, p: float, dim: int, most: float) -> Any:
    norms = np.sum(np.abs(x) ** p, axis=tuple(i for i in range(x.ndim) if i != dim), keepdims=True) ** (1.0 / p)
    return x * np.where(norms > most, most / (norms + 1e-7), 1.0)


trapezoid = as_node("trapezoid", lambda y, x=None, dx=1.0, dim=-1: np.trapezoid(y, x, dx, dim))
cov = as_node("cov", lambda x, correction=1: np.cov(x, ddof=correction).astype(x.dtype))
corrcoef = as_node("corrcoef", lambda x: np.corrcoef(x).astype(x.dtype))
gradient = as_node("gradient", lambda y, spacing=1.0: np.gradient(y, spacing))
Extremes = namedtuple("Extremes", "min max")


def _running(name: str, ufunc: np.ufunc, reaches: Callable) -> Callable:
    def call(input, dim):
        x = np.moveaxis(as_array(input), dim, 0)
        best = ufunc.accumulate(x, axis=0)
        counts = np.arange(len(x)).reshape((-1,) + (1,) * (x.ndim - 1))
        places = np.moveaxis(np.maximum.accumulate(np.where(reaches(x, best) | (x != x), counts, 0), axis=0), 0, dim)
        return Sorted(composite(name, lambda v: np.take_along_axis(v, places, dim), input), Tensor(places))

    call.__doc__ = f"Return ``(values, indices)`` of the running {ufunc.__name__} along an axis."
    return call


cummax = _running("CummaxBackward0", np.maximum, np.greater_equal)
cummin = _running("CumminBackward0", np.minimum, np.less_equal)
cummax.__name__, cummin.__name__ = "cummax", "cummin"


def logcumsumexp(input: Tensor, dim: int) -> Tensor:
    """Return the logarithm of the running sum of exponentials along an axis."""
    return composite("LogcumsumexpBackward0", lambda x: np.logaddexp.accumulate(x, axis=dim), input)


def aminmax(input: Tensor, *, dim: int | None = None, keepdim: bool = False) -> Extremes:
    """Return ``(min, max)``; at ties the elements share the derivative."""
    return Extremes(input.amin(dim, keepdim), input.amax(dim, keepdim))
