"""More functions of tensors, each one node: arithmetic, products, arranging, complex numbers, linear algebra."""

from __future__ import annotations

import importlib
import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.eager.core.composite import composite
from fad.eager.core.records import placed
from fad.eager.ops.functions import mul, softmax
from fad.eager.ops.further import _as, _special, fft, linalg
from fad.eager.ops.operators import of_ranks
from fad.eager.ops.shaping import diagonal
from fad.eager.tensor import Tensor, through

# --- elementwise ----------------------------------------------------------------------------------------------------


def _double(x: Any) -> Any:
    return float(x) if np.isscalar(x) else x.astype("float64")


def _chosen(greater: bool) -> Callable:
    def choose(x, y):
        better = x >= y if greater else x <= y
        return np.where(better | (y != y), x, y)

    return choose


deg2rad = _as("deg2rad", lambda x: x * (math.pi / 180.0))
rad2deg = _as("rad2deg", lambda x: x * (180.0 / math.pi))
frac = _as("frac", lambda x: x - np.trunc(x))
copysign = _as("copysign", lambda x, y: np.copysign(x, y))
fmax, fmin = _as("fmax", _chosen(True)), _as("fmin", _chosen(False))
sgn = _as("sgn", np.sign)
ldexp = _as("ldexp", lambda x, n: x * 2.0 ** np.asarray(n).astype("float32"))
logaddexp2 = _as("logaddexp2", lambda x, y: np.logaddexp(x * math.log(2.0), y * math.log(2.0)) / math.log(2.0))
float_power = _as("float_power", lambda x, p: _double(x) ** _double(p))
polygamma = _as("polygamma", lambda n, x: importlib.import_module("fad.scipy.special").polygamma(n, x))
i0, ndtr = _as("i0", _special("i0")), _as("ndtr", _special("ndtr"))
igamma, igammac = _as("igamma", _special("gammainc")), _as("igammac", _special("gammaincc"))
mvlgamma = _as("mvlgamma", lambda x, p: importlib.import_module("fad.scipy.special").multigammaln(x, p))
heaviside = _as("heaviside", lambda x, v: np.where(x == 0, v, (x > 0).astype(x.dtype)))
renorm = _as("renorm", lambda x, p, dim, maxnorm: _renormed(x, p, dim % x.ndim, maxnorm))


def _renormed(x: Any, p: float, dim: int, most: float) -> Any:
    norms = np.sum(np.abs(x) ** p, axis=tuple(i for i in range(x.ndim) if i != dim), keepdims=True) ** (1.0 / p)
    return x * np.where(norms > most, most / (norms + 1e-7), 1.0)


# --- products -------------------------------------------------------------------------------------------------------

inner = _as("inner", np.inner)
vdot = of_ranks(_as("vdot", lambda x, y: np.sum(np.conj(x) * y)), 1, 1)
addmv = of_ranks(_as("addmv", lambda x, a, v, beta=1, alpha=1: beta * x + alpha * (a @ v)), None, 2, 1)
addr = of_ranks(_as("addr", lambda x, a, b, beta=1, alpha=1: beta * x + alpha * np.outer(a, b)), None, 1, 1)
addbmm = of_ranks(_as("addbmm", lambda x, a, b, beta=1, alpha=1: beta * x + alpha * np.sum(a @ b, axis=0)), None, 3, 3)
matrix_power = _as("matrix_power", np.linalg.matrix_power)
trapezoid = _as("trapezoid", lambda y, x=None, dx=1.0, dim=-1: np.trapezoid(y, x, dx, dim))
cov = _as("cov", lambda x, correction=1: np.cov(x, ddof=correction).astype(x.dtype))
corrcoef = _as("corrcoef", lambda x: np.corrcoef(x).astype(x.dtype))
vander = _as("vander", lambda x, N=None, increasing=False: np.stack(_powers(x, N, increasing), axis=-1))
gradient = _as("gradient", lambda y, spacing=1.0: np.gradient(y, spacing))


def _powers(x: Any, n: int | None, increasing: bool) -> list:
    found = [np.ones_like(x)]
    for _ in range((len(x) if n is None else n) - 1):
        found.append(found[-1] * x)
    return found if increasing else found[::-1]


def chain_matmul(*matrices: Tensor) -> Tensor:
    """Return the product of matrices."""
    return linalg.multi_dot(list(matrices))


def block_diag(*tensors: Tensor) -> Tensor:
    """Return a matrix with the matrices along its diagonal, and zeros elsewhere."""

    def joined(*xs):
        xs = [x.reshape(1, -1) if x.ndim < 2 else x for x in xs]
        width, rows, start = sum(x.shape[1] for x in xs), [], 0
        for x in xs:
            rows.append(np.pad(x, ((0, 0), (start, width - start - x.shape[1]))))
            start += x.shape[1]
        return np.concatenate(rows)

    return composite("BlockDiagBackward0", joined, *tensors)


def cartesian_prod(*tensors: Tensor) -> Tensor:
    """Return all combinations of the elements of vectors, one row each."""
    if len(tensors) == 1:
        return tensors[0]
    return composite(
        "CartesianProdBackward0", lambda *xs: np.stack([g.reshape(-1) for g in np.meshgrid(*xs, indexing="ij")], -1),
        *tensors,
    )  # fmt: skip


def combinations(input: Tensor, r: int = 2, with_replacement: bool = False) -> Tensor:
    """Return the combinations of r elements of a vector, one row each."""
    choose = itertools.combinations_with_replacement if with_replacement else itertools.combinations
    places = np.array(list(choose(range(len(input)), r)), int).reshape(-1, r)
    return placed(input[places])


# --- arranging ------------------------------------------------------------------------------------------------------

rot90 = _as("rot90", lambda x, k=1, dims=(0, 1): np.rot90(x, k, tuple(dims)), linear=True)
fliplr, flipud = _as("fliplr", np.fliplr, linear=True), _as("flipud", np.flipud, linear=True)
diagflat = _as("diagflat", lambda x, offset=0: np.diag(x.reshape(-1), offset))


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple:
    """Cut along an axis into so many parts, of which the first may be larger by one, or at the places given."""
    n, axis = input.shape[dim], dim % input.ndim
    if isinstance(indices_or_sections, int):
        small, more = divmod(n, indices_or_sections)
        ends = np.cumsum([small + (i < more) for i in range(indices_or_sections)])[:-1].tolist()
    else:
        ends = [int(i) for i in indices_or_sections]
    bounds = [0, *ends, n]
    return tuple(placed(input[(*(slice(None),) * axis, slice(a, b))]) for a, b in itertools.pairwise(bounds))


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple:
    """Cut a tensor along its second axis, a vector along its only one."""
    return tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple:
    """Cut a tensor along its first axis."""
    return tensor_split(input, indices_or_sections, 0)


# --- complex numbers ------------------------------------------------------------------------------------------------

polar = _as("polar", lambda r, angle: r * (np.cos(angle) + 1j * np.sin(angle)))
view_as_real = _as("view_as_real", lambda z: np.stack([np.real(z), np.imag(z)], axis=-1))
view_as_complex = _as("view_as_complex", lambda x: x[..., 0] + 1j * x[..., 1])
complex = _as("complex", lambda re, im: re + 1j * im)

# --- linear algebra, Fourier, special functions ---------------------------------------------------------------------


def _scipy_linalg(name: str, *args: Any, **kwargs: Any) -> Any:
    return getattr(importlib.import_module("fad.scipy.linalg"), name)(*args, **kwargs)


def _vector_norm(x: Any, ord: float = 2, dim: Any = None, keepdim: bool = False) -> Any:
    if dim is None:
        y = np.linalg.norm(x.reshape(-1), ord)
        return y.reshape((1,) * x.ndim) if keepdim else y
    if isinstance(dim, (tuple, list)) and len(dim) != 1:
        axes = tuple(d % x.ndim for d in dim)
        rest = [i for i in range(x.ndim) if i not in axes]
        flat = np.transpose(x, (*rest, *axes)).reshape(*[x.shape[i] for i in rest], -1)
        y = np.linalg.norm(flat, ord, axis=-1)
        return y.reshape(tuple(1 if i in axes else n for i, n in enumerate(x.shape))) if keepdim else y
    return np.linalg.norm(x, ord, axis=dim[0] if isinstance(dim, (tuple, list)) else dim, keepdims=keepdim)


def _solve_triangular(a: Any, b: Any, upper: bool, left: bool = True, unitriangular: bool = False) -> Any:
    if not left:
        a, b = np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)
        return np.swapaxes(_solve_triangular(a, b, not upper, True, unitriangular), -1, -2)
    return _scipy_linalg("solve_triangular", a, b, lower=not upper, unit_diagonal=unitriangular)


_LINALG: dict[str, Callable] = {
    "vector_norm": _vector_norm,
    "matrix_norm": lambda x, ord="fro", dim=(-2, -1), keepdim=False: np.linalg.norm(x, ord, tuple(dim), keepdim),
    "matrix_exp": lambda x: _scipy_linalg("expm", x),
    "cross": lambda x, y, dim=-1: np.cross(x, y, axis=dim),
    "vecdot": lambda x, y, dim=-1: np.sum(np.conj(x) * y, axis=dim),
    "eigvals": np.linalg.eigvals,
    "eig": np.linalg.eig,
    "tensorsolve": np.linalg.tensorsolve,
    "tensorinv": np.linalg.tensorinv,
    "solve_triangular": lambda a, b, upper, left=True, unitriangular=False: _solve_triangular(
        a, b, upper, left, unitriangular
    ),
}
for _name, _fun in _LINALG.items():
    setattr(linalg, _name, _as(f"linalg_{_name}", _fun))


def _triangular(a: Tensor, b: Tensor, *, upper: bool, left: bool = True, unitriangular: bool = False) -> Tensor:
    """Solve a triangular system, or ``X A = B`` if not `left`."""
    return composite("LinalgSolveTriangularBackward0", lambda a, b: _solve_triangular(a, b, upper, left, unitriangular),
                     a, b)  # fmt: skip


def _matrix_rank(a: Tensor, **options: Any) -> Tensor:
    """Return the number of singular values that are not small."""
    return Tensor(np.asarray(np.linalg.matrix_rank(np.asarray(a.detach()), **options)))


def _lstsq(a: Tensor, b: Tensor) -> Any:
    """Return an object whose ``solution`` minimises ``|a x - b|``."""
    found = composite("LinalgLstsqBackward0", lambda a, b: np.linalg.pinv(a) @ b, a, b)
    return _Solved(found)


class _Solved(tuple):
    """What ``linalg.lstsq`` returns: ``solution``."""

    __slots__ = ()

    def __new__(cls, x: Tensor) -> _Solved:
        return super().__new__(cls, (x,))

    @property
    def solution(self) -> Tensor:
        return self[0]


def cholesky_solve(b: Tensor, L: Tensor, upper: bool = False) -> Tensor:
    """Solve ``L Lᵀ x = b``, or ``Lᵀ L x = b`` if L is `upper`."""

    def solved(b, L):
        low = np.swapaxes(L, -1, -2) if upper else L
        y = _solve_triangular(low, b, False)
        return _solve_triangular(np.swapaxes(low, -1, -2), y, True)

    return composite("CholeskySolveBackward0", solved, b, L)


linalg.solve_triangular, linalg.matrix_rank, linalg.lstsq = _triangular, _matrix_rank, _lstsq
linalg.LinAlgError = np.linalg.LinAlgError
linalg.diagonal = lambda x, *, offset=0, dim1=-2, dim2=-1: diagonal(x, offset, dim1, dim2)
linalg.matmul = lambda a, b: placed(a @ b)
matrix_exp, slogdet, pinverse = linalg.matrix_exp, linalg.slogdet, linalg.pinv
qr, cholesky, logdet = linalg.qr, linalg.cholesky, _as("logdet", lambda x: np.linalg.slogdet(x)[1])
for _name in ("fftn", "ifftn", "rfft2", "irfft2", "rfftn", "irfftn", "ifftshift", "hfft", "ihfft"):
    setattr(fft, _name, _as(f"fft_{_name}", getattr(np.fft, _name)))
fft.fftfreq = lambda n, d=1.0: Tensor(np.fft.fftfreq(n, d).astype("float32"))
fft.rfftfreq = lambda n, d=1.0: Tensor(np.fft.rfftfreq(n, d).astype("float32"))


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> tuple:
    """Return ``(U, S, V)`` with ``U diag(S) Vᴴ`` the matrix: the form of old, in which V is not transposed."""
    u, s, vh = linalg.svd(input, full_matrices=not some)
    return u, s, placed(through(lambda x: np.conj(np.swapaxes(x, -1, -2)), (vh,), {}))


class _Specials:
    """``torch.special``: functions of `fad.scipy.special`, by their names there or in PyTorch."""

    def __getattr__(self, name: str) -> Callable:
        if name == "softmax":
            return softmax
        if name.startswith("__") or not hasattr(importlib.import_module("fad.scipy.special"), name):
            raise AttributeError(f"torch.special has no {name!r} here: see fad.scipy.special for what there is")
        return _as(f"special_{name}", _special(name))


special = _Specials()
multiply = mul

_METHODS = [
    "addbmm", "addmv", "addr", "cholesky", "cholesky_solve", "copysign", "corrcoef", "cov", "deg2rad", "diagflat",
    "fliplr", "flipud", "float_power", "fmax", "fmin", "frac", "heaviside", "hsplit", "i0", "igamma", "igammac",
    "inner", "ldexp", "logaddexp2", "logdet", "matrix_exp", "matrix_power", "multiply", "mvlgamma", "pinverse", "qr",
    "rad2deg", "renorm", "rot90", "sgn", "slogdet", "svd", "tensor_split", "vdot", "vsplit",
]  # fmt: skip
for _name in _METHODS:
    setattr(Tensor, _name, globals()[_name])
Tensor.polygamma = lambda self, n: polygamma(n, self)

__all__ = [
    *_METHODS, "block_diag", "cartesian_prod", "chain_matmul", "combinations", "complex", "gradient",
    "polar", "polygamma", "special", "trapezoid", "vander", "view_as_complex", "view_as_real",
]  # fmt: skip
