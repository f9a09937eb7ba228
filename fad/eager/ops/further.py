"""Functions of tensors beyond those that the tutorials need: sorting, scattering, joining, products, linear algebra.

Each is one node, and what it computes is NumPy's or fad's function of the same meaning.
"""

from __future__ import annotations

import importlib
import math
from collections import namedtuple
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from fad.core.tracer import bind
from fad.eager.core.composite import composite, of_tensors
from fad.eager.core.records import placed
from fad.eager.ops.operators import of_ranks
from fad.eager.tensor import Tensor, through
from fad.ops.indexing import add_p, set_p, split_index

# --- functions of one or several tensors ---------------------------------------------------------------------------


def _titled(name: str) -> str:
    return "".join(part.capitalize() for part in name.split("_")) + "Backward0"


def _as(name: str, fun: Callable, linear: bool = False) -> Callable:
    """Return a function of tensors, given in the order of PyTorch; other arguments go on as they are."""

    def call(*args, **kwargs):
        return of_tensors(_titled(name), fun, args, kwargs, linear)

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return PyTorch's {name} of tensors, as NumPy or fad computes it."
    return call


def _special(name: str) -> Callable:
    def fun(*xs):
        return getattr(importlib.import_module("fad.scipy.special"), name)(
            *xs
        )  # needs SciPy, so not before it is called

    return fun


erf, erfc = _as("erf", _special("erf")), _as("erfc", _special("erfc"))
lgamma, digamma = _as("lgamma", _special("gammaln")), _as("digamma", _special("psi"))
sinc, hypot, logaddexp = _as("sinc", np.sinc), _as("hypot", np.hypot), _as("logaddexp", np.logaddexp)
nan_to_num = _as("nan_to_num", lambda x, nan=0.0, posinf=None, neginf=None: np.nan_to_num(x, True, nan, posinf, neginf))
imag, angle = _as("imag", np.imag, linear=True), _as("angle", np.angle)
_real, _conj = _as("real", np.real, linear=True), _as("conj", np.conj, linear=True)
lerp = _as("lerp", lambda input, end, weight: input + weight * (end - input))
addcmul = _as("addcmul", lambda x, a, b, value=1.0: x + value * a * b)
addcdiv = _as("addcdiv", lambda x, a, b, value=1.0: x + value * a / b)
baddbmm = of_ranks(_as("baddbmm", lambda x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b)), None, 3, 3)
kron = _as("kron", np.kron)
cross = _as("cross", lambda x, y, dim=-1: np.cross(x, y, axis=dim))
trace = _as("trace", np.trace)
cumprod = _as("cumprod", lambda x, dim: np.cumprod(x, dim))
diff = _as("diff", lambda x, n=1, dim=-1: np.diff(x, n, dim), linear=True)
quantile = _as("quantile", lambda x, q, dim=None, keepdim=False: np.quantile(x, q, axis=dim, keepdims=keepdim))
cdist = _as("cdist", lambda x, y, p=2.0: np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, axis=-1))

asinh, acosh, atanh = _as("asinh", np.arcsinh), _as("acosh", np.arccosh), _as("atanh", np.arctanh)
logit, xlogy, erfinv = (
    _as("logit", _special("logit")),
    _as("xlogy", _special("xlogy")),
    _as("erfinv", _special("erfinv")),
)
clamp_min = _as("clamp_min", lambda x, min: np.where(x < min, np.zeros_like(x) + min, x))
clamp_max = _as("clamp_max", lambda x, max: np.where(x > max, np.zeros_like(x) + max, x))
tensordot = _as("tensordot", lambda a, b, dims=2: np.tensordot(a, b, dims))
dist = _as("dist", lambda x, y, p=2.0: np.linalg.norm((x - y).reshape(-1), p))
nansum = _as("nansum", lambda x, dim=None, keepdim=False: np.nansum(x, axis=dim, keepdims=keepdim))
nanmean = _as("nanmean", lambda x, dim=None, keepdim=False: np.nanmean(x, axis=dim, keepdims=keepdim))
take_along_dim = _as("take_along_dim", lambda x, i, dim=None: np.take_along_axis(x, i, dim))


def real(input: Tensor) -> Tensor:
    """Return the real part; of a real tensor the tensor itself."""
    return placed(_real(input)) if input.dtype.kind == "c" else input


def conj(input: Tensor) -> Tensor:
    """Return the complex conjugate; of a real tensor the tensor itself."""
    return placed(_conj(input)) if input.dtype.kind == "c" else input


def floor_divide(input: Any, other: Any) -> Tensor:
    """Return the quotient rounded down."""
    return placed(input // other)


def std_mean(input: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> tuple:
    """Return the standard deviation and the mean."""
    return input.std(dim, unbiased, keepdim), input.mean(dim, keepdim)


def var_mean(input: Tensor, dim: Any = None, unbiased: bool = True, keepdim: bool = False) -> tuple:
    """Return the variance and the mean."""
    return input.var(dim, unbiased, keepdim), input.mean(dim, keepdim)


# --- arranging -----------------------------------------------------------------------------------------------------

tile = _as("tile", lambda x, *dims: np.tile(x, dims[0] if isinstance(dims[0], (tuple, list)) else dims), linear=True)
roll = _as("roll", lambda x, shifts, dims=None: np.roll(x, shifts, axis=dims), linear=True)
repeat_interleave = _as("repeat_interleave", lambda x, repeats, dim=None: np.repeat(x, repeats, axis=dim))


diag_embed = _as("diag_embed", lambda x: x[..., None] * np.eye(x.shape[-1], dtype=x.dtype), linear=True)


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Return the tensor with an axis split into several, in which one -1 is worked out."""
    dim = dim % input.ndim
    known = -math.prod(sizes)
    sizes = [input.shape[dim] // known if d == -1 else d for d in sizes]
    return input.reshape(*input.shape[:dim], *sizes, *input.shape[dim + 1 :])


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Return the tensor with slices of another added along an axis, where the index says."""
    lead = (slice(None),) * (dim % input.ndim)
    template, arrays = split_index((*lead, np.asarray(index.detach())))
    add = lambda x, v: bind(add_p, x, v if alpha == 1 else alpha * v, *arrays, template=template)
    return composite("IndexAddBackward0", add, input, source)


def _joined(name: str, fun: Callable) -> Callable:
    join = _as(name, lambda *xs: fun(xs), linear=True)
    call = lambda tensors: join(*tensors)
    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return the tensors joined as NumPy's {name} does."
    return call


vstack, hstack, dstack = _joined("vstack", np.vstack), _joined("hstack", np.hstack), _joined("dstack", np.dstack)
column_stack = _joined("column_stack", np.column_stack)


# --- sorting and choosing ------------------------------------------------------------------------------------------

Sorted = namedtuple("Sorted", "values indices")


def _chosen(x: Tensor, order: np.ndarray, dim: int) -> Sorted:
    values = composite("SortBackward0", lambda v: np.take_along_axis(v, order, dim), x)
    return Sorted(values, Tensor(order))


def argsort(input: Tensor, dim: int = -1, descending: bool = False) -> Tensor:
    """Return the indices that sort a tensor along an axis; equal elements stay in order."""
    value = np.asarray(input.detach())
    if not descending:
        return Tensor(np.argsort(value, dim, kind="stable"))
    back = np.argsort(np.flip(value, dim), dim, kind="stable")  # so that equal elements stay in order here too
    return Tensor(np.ascontiguousarray(np.flip(value.shape[dim] - 1 - back, dim)))


def sort(input: Tensor, dim: int = -1, descending: bool = False) -> Sorted:
    """Return ``(values, indices)`` in order along an axis."""
    return _chosen(input, argsort(input, dim, descending).value, dim)


def topk(input: Tensor, k: int, dim: int = -1, largest: bool = True, sorted: bool = True) -> Sorted:
    """Return ``(values, indices)`` of the k largest (or smallest) elements along an axis, the best first."""
    order = argsort(input, dim, largest).value
    return _chosen(input, np.take(order, np.arange(k), axis=dim), dim)


def median(input: Tensor, dim: int | None = None, keepdim: bool = False) -> Any:
    """Return the middle element, of two the lower; over `dim`, ``(values, indices)``."""
    if dim is None:
        flat = input.reshape(-1)
        return placed(flat[argsort(flat).value[(flat.shape[0] - 1) // 2]])
    order = np.take(argsort(input, dim).value, [(input.shape[dim] - 1) // 2], axis=dim)
    values, indices = _chosen(input, order, dim)
    return Sorted(values, indices) if keepdim else Sorted(placed(values.squeeze(dim)), indices.squeeze(dim))


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where the mask holds, as a vector."""
    return placed(input[mask])


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return elements of the flattened tensor by their numbers."""
    return placed(input.reshape(-1)[index])


def _along(index: Tensor, dim: int) -> tuple:
    """Return what the indexing operations need to reach ``x[i, ..., index[i, ...], ...]``."""
    places: list = list(np.ogrid[tuple(map(slice, index.shape))])
    places[dim] = np.asarray(index.detach())
    return split_index(tuple(places))


def _scattered(name: str, prim: Any) -> Callable:
    def call(input, dim, index, src):
        template, arrays = _along(index, dim)
        inside = tuple(map(slice, index.shape))

        def put(x, v):
            return bind(prim, x, v[inside] if np.ndim(v) else v, *arrays, template=template)

        return composite(_titled(name), put, input, src)

    call.__name__ = call.__qualname__ = name
    return call


scatter = _scattered("scatter", set_p)
scatter.__doc__ = "Return the tensor with elements along an axis replaced by those of another, or by a number."
scatter_add = _scattered("scatter_add", add_p)
scatter_add.__doc__ = "Return the tensor with the elements of another added along an axis, where the index says."


# --- what has no derivative ----------------------------------------------------------------------------------------


def _plain(name: str, fun: Callable) -> Callable:
    def call(*args, **kwargs):
        y = fun(*(np.asarray(x.detach()) if isinstance(x, Tensor) else x for x in args), **kwargs)
        return Tensor(np.asarray(y))

    call.__name__ = call.__qualname__ = name
    call.__doc__ = f"Return PyTorch's {name} of tensors; it has no derivative."
    return call


isin = _plain("isin", np.isin)
searchsorted = _plain("searchsorted", lambda a, v, right=False: np.searchsorted(a, v, "right" if right else "left"))
count_nonzero = _plain("count_nonzero", lambda x, dim=None: np.count_nonzero(x, axis=dim))
argwhere = _plain("argwhere", np.argwhere)
tril_indices = _plain("tril_indices", lambda row, col, offset=0: np.stack(np.tril_indices(row, offset, col)))
triu_indices = _plain("triu_indices", lambda row, col, offset=0: np.stack(np.triu_indices(row, offset, col)))

# --- namespaces ----------------------------------------------------------------------------------------------------

_LINALG = {
    "cholesky": np.linalg.cholesky, "cond": np.linalg.cond, "det": np.linalg.det, "eigvalsh": np.linalg.eigvalsh,
    "inv": np.linalg.inv, "matrix_power": np.linalg.matrix_power, "norm": np.linalg.norm, "pinv": np.linalg.pinv,
    "qr": np.linalg.qr, "slogdet": np.linalg.slogdet, "solve": np.linalg.solve,
    "svdvals": lambda x: np.linalg.svd(x, full_matrices=False)[1],
}  # fmt: skip
linalg = SimpleNamespace(**{name: _as(f"linalg_{name}", fun) for name, fun in _LINALG.items()})


def _eigh(A: Tensor, UPLO: str = "L") -> tuple:
    """Return the eigenvalues, ascending, and eigenvectors of a symmetric or Hermitian matrix."""
    return tuple(placed(x) for x in through(np.linalg.eigh, (A, UPLO), {}))


def _svd(A: Tensor, full_matrices: bool = True) -> tuple:
    """Return ``(U, S, Vh)``, the singular values with their vectors."""
    return tuple(placed(x) for x in through(np.linalg.svd, (A,), {"full_matrices": full_matrices}))


# Not nodes of their own kind, but NumPy's operation: its rule says what it cannot know where values are repeated.
linalg.eigh, linalg.svd = _eigh, _svd
linalg.multi_dot = _joined("multi_dot", np.linalg.multi_dot)
det, inverse = linalg.det, linalg.inv
_FFT = ("fft", "ifft", "rfft", "irfft", "fft2", "ifft2", "fftshift")
fft = SimpleNamespace(**{name: _as(f"fft_{name}", getattr(np.fft, name)) for name in _FFT})

_METHODS = [
    "acosh", "addcdiv", "addcmul", "angle", "argsort", "argwhere", "asinh", "atanh", "clamp_max", "clamp_min",
    "diag_embed", "dist", "erfinv", "floor_divide", "index_add", "logit", "median", "nanmean", "nansum",
    "take_along_dim", "unflatten", "xlogy", "conj", "count_nonzero", "cross", "cumprod", "det",
    "diff", "digamma", "erf", "erfc", "hypot", "inverse", "kron", "lerp", "lgamma", "logaddexp",
    "masked_select", "nan_to_num", "quantile", "repeat_interleave", "roll",
    "scatter", "scatter_add", "sinc", "sort", "take", "tile", "topk", "trace",
]  # fmt: skip
for _name in _METHODS:
    setattr(Tensor, _name, globals()[_name])

__all__ = [
    *_METHODS, "Sorted", "baddbmm", "cdist", "column_stack", "dstack",
    "fft", "hstack", "imag", "isin", "linalg", "real", "searchsorted", "std_mean", "tensordot",
    "tril_indices", "triu_indices", "var_mean", "vstack",
]  # fmt: skip

Tensor.real, Tensor.imag = property(real), property(imag)
