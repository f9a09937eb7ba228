"""Linear systems with a sparse matrix as an operation: how they are solved, and the derivatives of the solution.

The solution is differentiated by the implicit function theorem: forward derivatives solve the same system with another
right-hand side, reverse ones the transposed system, by the same method and to the same tolerance. The method itself,
a factorisation or an iteration, is never differentiated.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse
import scipy.sparse.linalg as sla

from fad.core.primitives.archetypes import cast
from fad.core.primitives.primitive import Primitive, register
from fad.core.primitives.samples import call
from fad.core.tracing.tracer import bind
from fad.errors import DerivativeError
from fad.ops.arrangement.structural import as_array
from fad.scipy.registration import on_host
from fad.scipy.sparse.array import SparseArray, from_scipy
from fad.scipy.sparse.products import at_places, run_batch_as_columns, sample_pattern, sparse_matmul_p

# --- how a system is solved -----------------------------------------------------------------------------------------


class Direct:
    """A sparse factorisation. The last one is kept: the backward pass solves with the matrix of the forward pass."""

    def __init__(self) -> None:
        self.last: Any = (None, None)

    def __call__(self, matrix: Any, b: Any, transposed: bool) -> Any:
        key, factors = self.last
        if key is None or key.dtype != matrix.dtype or not np.array_equal(key, matrix.data):
            try:
                factors = sla.splu(matrix.tocsc())
            except RuntimeError as error:
                raise np.linalg.LinAlgError(f"the sparse matrix is singular: {error}") from None
            self.last = (matrix.data.copy(), factors)
        trans = "T" if transposed else "N"
        if b.dtype.kind == "c" and matrix.dtype.kind != "c":
            return factors.solve(b.real.copy(), trans) + 1j * factors.solve(b.imag.copy(), trans)
        return factors.solve(b.astype(matrix.dtype), trans)


class Checked(Direct):
    """A factorisation of the equations of a solution, which has no derivative where they are singular, or nearly so."""

    def __init__(self, why: str, largest: float):
        super().__init__()
        self.why, self.largest = why, largest  # how great a solution of a right-hand side like 1 may be

    def __call__(self, matrix: Any, b: Any, transposed: bool) -> Any:
        probe = np.cos(np.arange(matrix.shape[0]) ** 2.0)[:, None]  # of no structure: it meets what is singular
        try:
            known = super().__call__(matrix, probe, transposed)
        except np.linalg.LinAlgError:
            raise DerivativeError(self.why) from None
        if np.max(np.abs(known), initial=0.0) * np.max(np.abs(matrix.data), initial=0.0) > self.largest:
            raise DerivativeError(self.why)
        return super().__call__(matrix, b, transposed)


class Iterative:
    """One of SciPy's iterations, with its settings; `info` says how the last one ended."""

    def __init__(self, name: str, settings: dict, preconditioner: Any):
        self.name = name
        self.settings = settings
        self.preconditioner = preconditioner
        self.info = 0

    def __call__(self, matrix: Any, b: Any, transposed: bool) -> Any:
        m = self.preconditioner
        if m is not None and transposed:
            m = sla.aslinearoperator(m).T
        solve = getattr(sla, self.name)
        columns = []
        for k in range(b.shape[1]):
            x, self.info = solve(matrix.T if transposed else matrix, b[:, k], M=m, **self.settings)
            if self.info:
                raise DerivativeError(
                    f"scipy.sparse.linalg.{self.name} did not converge (info = {self.info}), so there is no solution "
                    "to differentiate. Give it more steps (maxiter) or a preconditioner (M), or use spsolve"
                )
            columns.append(x)
        return np.stack(columns, axis=1)


# --- the primitive --------------------------------------------------------------------------------------------------


def _forward(data, b, *, pattern, transposed, method):
    on_host("a sparse linear system", data, b)
    return method(pattern.matrix(data), b, transposed)


def _jvp(tangents, y, xs, params):
    td, tb = tangents
    places = {k: params[k] for k in ("pattern", "transposed")}
    right = None if td is None else -bind(sparse_matmul_p, td, y, **places)
    if tb is not None:
        right = tb if right is None else right + tb
    return cast(bind(sparse_solve_p, xs[0], right, **params), y.dtype)


def _back(ct, data, params):
    return bind(sparse_solve_p, data, ct, **{**params, "transposed": not params["transposed"]})


def _entries(ct, y, data, b, **params):
    return cast(-at_places(_back(ct, data, params), y, params["pattern"], params["transposed"]), data.dtype)


def _samples(s):
    found = []
    iterative = Iterative("gmres", {"rtol": 10 * np.finfo(s.dtype).eps}, None)
    for method, n, transposed in ((Direct(), 2, False), (iterative, 1, True)):
        pattern = sample_pattern(4, 4, True)
        data = s.real(pattern.rows.size)
        data[pattern.rows == pattern.columns] += 8.0
        found.append(call(data, s.real(4, n), pattern=pattern, transposed=transposed, method=method))
    return found


sparse_solve_p: Any = register(
    Primitive(
        "scipy.sparse.solution",
        _forward,
        jvp=_jvp,
        vjp=(_entries, lambda ct, y, data, b, **params: cast(_back(ct, data, params), b.dtype)),
        batch=lambda size, batched, xs, params: run_batch_as_columns(
            lambda *ops: bind(sparse_solve_p, *ops, **params), size, batched, xs
        ),
        samples=_samples,
        refuses="singular",
        doc="The solution of a sparse linear system, given by its entries.",
    )
)


def check_system(a: Any, b: Any) -> tuple[SparseArray, Any]:
    """Return the matrix and the right-hand side of a system, if they are such; raise if not."""
    if not isinstance(a, SparseArray) and not scipy.sparse.issparse(a):
        raise TypeError(
            f"the matrix of a sparse system must be sparse, not {type(a).__name__}; for a dense one use "
            "fad.scipy.linalg.solve, for a function x -> A x fad.custom_linear_solve"
        )
    a, b = from_scipy(a), as_array(b)
    if a.shape[0] != a.shape[1]:
        raise ValueError(f"matrix must be square (has shape {a.shape})")
    if b.ndim not in (1, 2) or b.shape[0] != a.shape[0]:
        raise ValueError(f"matrix - rhs dimension mismatch ({a.shape} - {b.shape})")
    b = b if b.dtype.kind in "fc" else b.astype(float)
    dtype = np.result_type(a.dtype, b.dtype)
    own = dtype if a.dtype.kind == "c" else np.zeros((), dtype).real.dtype  # a real matrix solves for both parts
    return a if a.dtype == own else SparseArray(a.data.astype(own), a.pattern), b.astype(dtype, copy=False)


def solve_system(a: SparseArray, b: Any, method: Any, transposed: bool = False) -> Any:
    """Return the solution of a system, or of the one with the transposed matrix, by a method."""
    columns = b if b.ndim == 2 else b[:, None]
    x = bind(sparse_solve_p, a.data, columns, pattern=a.pattern, transposed=transposed, method=method)
    return x if b.ndim == 2 else x[:, 0]
