"""``scipy.linalg`` in SciPy's names and signatures, differentiable.

Every name of ``scipy.linalg`` is here. Those below have derivatives, of every order, in both modes, batched;
the others are SciPy's own functions, for arrays that are not traced.

>>> import numpy as np, fad
>>> fad.grad(lambda a: np.sum(fad.scipy.linalg.expm(a)))(np.zeros((2, 2)))
array([[1., 1.],
       [1., 1.]])
"""

from __future__ import annotations

from typing import Any

import scipy.linalg as _scipy

from fad.scipy.linalg.decompositions import (
    eig,
    eigh,
    eigvals,
    eigvalsh,
    eigvalsh_tridiagonal,
    null_space,
    orth,
    orthogonal_procrustes,
    pinvh,
    polar,
    qr,
    svd,
    svdvals,
)
from fad.scipy.linalg.equations import (
    solve_continuous_are,
    solve_continuous_lyapunov,
    solve_discrete_are,
    solve_discrete_lyapunov,
    solve_sylvester,
)
from fad.scipy.linalg.functions import (
    coshm,
    cosm,
    expm,
    expm_frechet,
    fractional_matrix_power,
    logm,
    sinhm,
    sinm,
    sqrtm,
    tanhm,
    tanm,
)
from fad.scipy.linalg.solving import det, inv, lstsq, norm, pinv, solve
from fad.scipy.linalg.structured import (
    block_diag,
    circulant,
    companion,
    convolution_matrix,
    diagsvd,
    fiedler,
    hankel,
    khatri_rao,
    leslie,
    matmul_toeplitz,
    solve_circulant,
    solve_toeplitz,
    toeplitz,
)
from fad.scipy.linalg.triangular import (
    cho_factor,
    cho_solve,
    cholesky,
    lu,
    lu_factor,
    lu_solve,
    solve_banded,
    solve_triangular,
    solveh_banded,
)

__all__ = [
    "block_diag", "cho_factor", "cho_solve", "cholesky", "circulant", "companion", "convolution_matrix", "coshm",
    "cosm", "det", "diagsvd", "eig", "eigh", "eigvals", "eigvalsh", "eigvalsh_tridiagonal",
    "expm", "expm_frechet", "fiedler", "fractional_matrix_power", "hankel", "inv", "khatri_rao", "leslie", "logm",
    "lstsq", "lu",
    "lu_factor", "lu_solve", "matmul_toeplitz", "norm", "null_space", "orth", "orthogonal_procrustes", "pinv",
    "pinvh", "polar", "qr", "sinhm", "sinm", "solve", "solve_banded", "solve_circulant", "solve_continuous_are",
    "solve_continuous_lyapunov", "solve_discrete_are", "solve_discrete_lyapunov", "solve_sylvester",
    "solve_toeplitz", "solve_triangular", "solveh_banded", "sqrtm", "svd", "svdvals", "tanhm", "tanm", "toeplitz",
]  # fmt: skip


def __getattr__(name: str) -> Any:
    return getattr(_scipy, name)
