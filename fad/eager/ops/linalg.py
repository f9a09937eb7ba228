"""Products and linear algebra of tensors, and ``torch.linalg`` and ``torch.fft``."""

from __future__ import annotations

import importlib
from collections import namedtuple
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

from fad.eager.core.composite import composite
from fad.eager.core.records import name_user_line
from fad.eager.ops.creation import get_default_dtype
from fad.eager.ops.nodes import as_node, join_node
from fad.eager.ops.operators import mm, of_ranks
from fad.eager.ops.shaping import diagonal, unsqueeze
from fad.eager.tensor import Tensor, through
from fad.eager.unsupported import explain_missing


def _outer(input: Tensor, vec2: Tensor) -> Tensor:
    """Return all products of the elements of two vectors."""
    return name_user_line(unsqueeze(input, 1) * vec2)


outer = of_ranks(_outer, 1, 1)
outer.__name__ = outer.__qualname__ = "outer"


def einsum(equation: str, *operands: Any) -> Tensor:
    """Return a sum of products, in Einstein's notation."""
    operands = operands[0] if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    return composite("EinsumBackward0", lambda *xs: np.einsum(equation, *xs), *operands)


def addmm(input: Tensor, mat1: Tensor, mat2: Tensor, *, beta: float = 1, alpha: float = 1) -> Tensor:
    """Return ``beta * input + alpha * mat1 @ mat2``."""
    product = mm(mat1, mat2) if alpha == 1 else alpha * mm(mat1, mat2)
    return name_user_line((input if beta == 1 else beta * input) + product)


baddbmm = of_ranks(as_node("baddbmm", lambda x, a, b, beta=1, alpha=1: beta * x + alpha * (a @ b)), None, 3, 3)
kron = as_node("kron", np.kron)
cross = as_node("cross", lambda x, y, dim=-1: np.cross(x, y, axis=dim))
trace = as_node("trace", np.trace)
cdist = as_node("cdist", lambda x, y, p=2.0: np.linalg.norm(x[..., :, None, :] - y[..., None, :, :], p, axis=-1))
tensordot = as_node("tensordot", lambda a, b, dims=2: np.tensordot(a, b, dims))
dist = as_node("dist", lambda x, y, p=2.0: np.linalg.norm((x - y).reshape(-1), p))
_LINALG: dict[str, Any] = {
    "cholesky": np.linalg.cholesky, "cond": np.linalg.cond, "det": np.linalg.det, "eigvalsh": np.linalg.eigvalsh,
    "inv": np.linalg.inv, "matrix_power": np.linalg.matrix_power, "pinv": np.linalg.pinv,
    "norm": lambda x, ord=None, dim=None, keepdim=False: np.linalg.norm(x, ord, _axes(dim), keepdim),
    "solve": lambda a, b, left=True: _solve(a, b, left),
    "svdvals": lambda x: np.linalg.svd(x, full_matrices=False)[1],
}  # fmt: skip


class _Names(SimpleNamespace):
    """The functions of ``torch.linalg``, or of ``torch.fft``; of a missing one it says what to write instead."""

    def __getattr__(self, name: str) -> Any:
        return explain_missing("this part of torch", vars(self))(name)


linalg = _Names(**{name: as_node(f"linalg_{name}", fun) for name, fun in _LINALG.items()})


def _axes(dim: Any) -> Any:
    return tuple(dim) if isinstance(dim, list) else dim


def _solve(a: Any, b: Any, left: bool) -> Any:
    """Solve ``A X = B``, or ``X A = B``; of a batch of matrices B may be a batch of vectors."""
    if b.ndim == 1 or (b.ndim == a.ndim - 1 and b.shape == a.shape[:-1]):
        return np.linalg.solve(a, b[..., None])[..., 0]
    if left:
        return np.linalg.solve(a, b)
    return np.swapaxes(np.linalg.solve(np.swapaxes(a, -1, -2), np.swapaxes(b, -1, -2)), -1, -2)


_Eigh = namedtuple("_Eigh", "eigenvalues eigenvectors")
_Svd = namedtuple("_Svd", "U S Vh")
_Qr = namedtuple("_Qr", "Q R")
_Slogdet = namedtuple("_Slogdet", "sign logabsdet")


def _eigh(A: Tensor, UPLO: str = "L") -> tuple:
    """Return the eigenvalues, ascending, and eigenvectors of a symmetric or Hermitian matrix."""
    return _Eigh(*map(name_user_line, through(np.linalg.eigh, (A, UPLO), {})))


def _svd(A: Tensor, full_matrices: bool = True) -> tuple:
    """Return ``(U, S, Vh)``, the singular values with their vectors."""
    return _Svd(*map(name_user_line, through(np.linalg.svd, (A,), {"full_matrices": full_matrices})))


def _qr(A: Tensor, mode: str = "reduced") -> tuple:
    """Return ``(Q, R)``; in the mode "r" Q is empty."""
    if mode == "r":
        return _Qr(Tensor(np.empty(0, A.detach().numpy().dtype)), _r_of_qr(A))
    return _Qr(*_whole_qr(A, mode))


def _slogdet(A: Tensor) -> tuple:
    """Return the sign of the determinant, and the logarithm of its absolute value."""
    return _Slogdet(*_sign_and_log(A))


_whole_qr, _sign_and_log = as_node("linalg_qr", np.linalg.qr), as_node("linalg_slogdet", np.linalg.slogdet)
_r_of_qr = as_node("linalg_qr", lambda x: np.linalg.qr(x, "r"))


# Not nodes of their own kind, but NumPy's operation: its rule says what it cannot know where values are repeated.
linalg.eigh, linalg.svd, linalg.qr, linalg.slogdet = _eigh, _svd, _qr, _slogdet
linalg.multi_dot = join_node("multi_dot", np.linalg.multi_dot)
det, inverse = linalg.det, linalg.inv


def _transform(name: str) -> Callable:
    """Return a Fourier transform by the names that PyTorch gives to its arguments."""
    function, of_one = getattr(np.fft, name), name.removeprefix("i") in ("fft", "rfft", "hfft")

    def transform(x: Any, *args: Any, dim: Any = None, **options: Any) -> Any:
        if dim is not None:
            options["axis" if of_one else "axes"] = dim if of_one else tuple(np.atleast_1d(dim).tolist())
        return function(x, *args, **options)

    return as_node(f"fft_{name}", transform)


_FFT = ("fft", "rfft", "hfft", "fft2", "rfft2", "fftn", "rfftn")
fft = _Names(**{name: _transform(name) for name in (*_FFT, *[f"i{n}" for n in _FFT], "fftshift", "ifftshift")})
fft.fftfreq = lambda n, d=1.0: Tensor(np.fft.fftfreq(n, d).astype(get_default_dtype()))
fft.rfftfreq = lambda n, d=1.0: Tensor(np.fft.rfftfreq(n, d).astype(get_default_dtype()))
inner = as_node("inner", np.inner)
vdot = of_ranks(as_node("vdot", lambda x, y: np.sum(np.conj(x) * y)), 1, 1)
addmv = of_ranks(as_node("addmv", lambda x, a, v, beta=1, alpha=1: beta * x + alpha * (a @ v)), None, 2, 1)
addr = of_ranks(as_node("addr", lambda x, a, b, beta=1, alpha=1: beta * x + alpha * np.outer(a, b)), None, 1, 1)
addbmm = of_ranks(
    as_node("addbmm", lambda x, a, b, beta=1, alpha=1: beta * x + alpha * np.sum(a @ b, axis=0)), None, 3, 3
)
matrix_power = as_node("matrix_power", np.linalg.matrix_power)
vander = as_node("vander", lambda x, N=None, increasing=False: np.stack(_powers(x, N, increasing), axis=-1))


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

    def join(*xs):
        xs = [x.reshape(1, -1) if x.ndim < 2 else x for x in xs]
        width, rows, start = sum(x.shape[1] for x in xs), [], 0
        for x in xs:
            rows.append(np.pad(x, ((0, 0), (start, width - start - x.shape[1]))))
            start += x.shape[1]
        return np.concatenate(rows)

    return composite("BlockDiagBackward0", join, *tensors)


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


_MORE_LINALG: dict[str, Callable] = {
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
for _name, _fun in _MORE_LINALG.items():
    setattr(linalg, _name, as_node(f"linalg_{_name}", _fun))


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

    def solve(b, L):
        low = np.swapaxes(L, -1, -2) if upper else L
        y = _solve_triangular(low, b, False)
        return _solve_triangular(np.swapaxes(low, -1, -2), y, True)

    return composite("CholeskySolveBackward0", solve, b, L)


linalg.solve_triangular, linalg.matrix_rank, linalg.lstsq = _triangular, _matrix_rank, _lstsq
linalg.vander = as_node(
    "linalg_vander", lambda x, N=None: np.stack(_powers(x, x.shape[-1] if N is None else N, True), axis=-1)
)
linalg.LinAlgError = np.linalg.LinAlgError
linalg.diagonal = lambda x, *, offset=0, dim1=-2, dim2=-1: diagonal(x, offset, dim1, dim2)
linalg.matmul = lambda a, b: name_user_line(a @ b)
matrix_exp, slogdet, pinverse = linalg.matrix_exp, linalg.slogdet, linalg.pinv
qr, cholesky, logdet = linalg.qr, linalg.cholesky, as_node("logdet", lambda x: np.linalg.slogdet(x)[1])


def svd(input: Tensor, some: bool = True, compute_uv: bool = True) -> tuple:
    """Return ``(U, S, V)`` with ``U diag(S) Vᴴ`` the matrix: the form of old, in which V is not transposed."""
    u, s, vh = linalg.svd(input, full_matrices=not some)
    return u, s, name_user_line(through(lambda x: np.conj(np.swapaxes(x, -1, -2)), (vh,), {}))
