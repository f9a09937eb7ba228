"""Systems of equations by factors that are kept: LU of a square matrix, and triangular matrices as they are.

A gradient through `np.linalg.solve` needs the factors of the same matrix twice, and NumPy hands out none. SciPy's
LAPACK does, where it is installed, and it solves with a triangular matrix without factoring that again. Stacks of
matrices, which LAPACK takes one by one, arrays of a device and programs without SciPy keep to NumPy's functions.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np

from fad.backends import behind
from fad.backends.counterparts import ScipyModule, with_notes
from fad.core.primitives.archetypes import align, cast, fit
from fad.core.primitives.primitive import Primitive
from fad.core.tracing.tracer import bind
from fad.core.tracing.values import traces_of
from fad.ops.linalg.common import broadcast_batch, over_stacks, t

_LETTERS = {"f": "s", "d": "d", "F": "c", "D": "z"}  # LAPACK's for NumPy's types
_DOUBLE = {"f": "d", "d": "d", "F": "D", "D": "D"}  # in which NumPy computes: single precision is rounded at the end


@functools.cache
def _lapack() -> Any:
    """Return SciPy's LAPACK, or None."""
    try:
        from scipy.linalg import lapack
    except ImportError:
        return None
    return lapack


def is_one_matrix(*xs: Any) -> bool:
    """Return whether the first operand is a square matrix for LAPACK, and so are others with as many rows.

    It takes them of one dtype, on the host and not empty. The first is of no batch; the others of a batch are columns.
    """
    n, dtype = xs[0].shape[-1], xs[0].dtype
    if dtype.char not in _LETTERS or not dtype.isnative or _lapack() is None:
        return False
    for x in xs:
        shape = x.shape
        if len(shape) != 2 or shape[0] != n or not shape[1] or x.dtype != dtype:
            return False
        if type(x) is not np.ndarray and behind(x).name != "numpy":
            return False
    return not any(trace.batched for trace in traces_of(xs[0]))


@functools.cache
def _routine(name: str, letter: str) -> Any:
    return getattr(_lapack(), _LETTERS[letter] + name)


# --- LU --------------------------------------------------------------------------------------------------------------


def _factor(a):
    """Return the LU factors of a matrix, transposed, as LAPACK lays them out, and the places of its pivots."""
    if a.ndim > 2:
        found = [_factor(x) for x in a]
        lu, places = zip(*found, strict=True) if found else (a, a.real[..., 0].astype(np.int32))
        return np.array(lu), np.array(places)
    lu, places, _ = _routine("getrf", _DOUBLE[a.dtype.char])(a)
    return lu.T, places


lu_p: Primitive = Primitive(
    "lu_factor", _factor, flat=True, multi=True, archetype="flat",
    batch=lambda size, batched, xs, params: bind(lu_p, xs[0]), text=lambda a: f"scipy.linalg.lu_factor({a})",
)  # fmt: skip


def find_factors(a: Any) -> tuple:
    """Return the LU factors of one matrix, which are constants to derivatives."""
    return bind(lu_p, a)


def batch_factors(prim: Any) -> Any:
    """Return the batching rule of an operation on matrices, and on their factors if they are known."""
    return lambda size, batched, xs, params: bind(prim(), *broadcast_batch(size, batched, xs), **params)


def _solve_factored(a, b, lu, places, *, transposed):
    if lu.ndim > 2 or b.dtype != a.dtype:
        return np.linalg.solve(t(a) if transposed else a, b)
    if not lu.diagonal().all():
        raise np.linalg.LinAlgError("Singular matrix")
    x, _ = _routine("getrs", lu.dtype.char)(lu.T, places, b, trans=int(transposed))
    return np.ascontiguousarray(x, a.dtype)


def _solve_jvp(tangents, y, xs, params):
    a, _, *factors = xs
    da, db = tangents[:2]
    right = None if da is None else -((t(da) if params["transposed"] else da) @ y)
    if db is not None:
        right = db if right is None else right + db
    return cast(bind(solve_factored_p, a, right, *factors, **params), y.dtype)


def _solve_left(ct, y, a, b, *factors, transposed):
    right = _solve_right(ct, y, a, b, *factors, transposed=transposed)
    return -(y @ t(right)) if transposed else -(right @ t(y))


def _solve_right(ct, y, a, b, *factors, transposed):
    return fit(bind(solve_factored_p, a, ct, *factors, transposed=not transposed), b.shape, b.dtype)


def _solve_batch(size, batched, xs, params):
    if batched == (False, True, False, False) and xs[0].ndim == 2:  # many right-hand sides of one matrix
        return solve_columns(size, xs[1], lambda b: bind(solve_factored_p, xs[0], b, *xs[2:], **params))
    return bind(solve_factored_p, *broadcast_batch(size, batched, xs), **params)


def solve_columns(size: int, b: Any, solve: Any) -> Any:
    """Solve for a batch of right-hand sides as for the columns of one."""
    n, k = b.shape[1:]
    y = solve(np.moveaxis(b, 0, 1).reshape(n, size * k))
    return np.moveaxis(y.reshape(n, size, k), 1, 0)


# The solution of a system, or of the transposed one, of a matrix whose factors are known.
solve_factored_p: Primitive = Primitive(
    "lu_solve", _solve_factored, jvp=_solve_jvp, vjp=(_solve_left, _solve_right, None, None), batch=_solve_batch,
    refuses="singular",
    text=lambda a, b, lu, places, transposed: (
        f"scipy.linalg.lu_solve(({lu}, {places}), {b}{', trans=1' if transposed else ''})"
    ),
)


def _invert_factored(a, lu, places):
    if lu.ndim > 2:
        return np.linalg.inv(a)
    inverse, info = _routine("getri", lu.dtype.char)(lu.T, places, lwork=64 * len(lu))
    if info > 0:
        raise np.linalg.LinAlgError("Singular matrix")
    return np.add(inverse, 0.0, order="C").astype(a.dtype, copy=False)  # 0.0 where LAPACK leaves -0.0


# The inverse of a matrix whose factors are known.
invert_factored_p: Primitive = Primitive(
    "lu_inverse",
    _invert_factored,
    jvp=lambda tangents, y, xs, params: -(y @ tangents[0] @ y),
    vjp=(lambda ct, y, a, *factors: -(t(y) @ ct @ t(y)), None, None),
    batch=batch_factors(lambda: invert_factored_p),
    refuses="singular",
    text=lambda a, lu, places: f"np.linalg.inv({a})",
)


def multiply_pivots(lu: np.ndarray, places: np.ndarray) -> tuple:
    """Return sign, or phase, and logarithm of the absolute value of a determinant, in double precision."""
    pivots = lu.diagonal()
    size = np.abs(pivots)
    if not size.all():
        return lu.dtype.type(0.0), np.float64(-np.inf)
    sign = np.multiply.reduce(pivots / size)
    swaps = np.count_nonzero(places != np.arange(len(places)))
    return -sign if swaps % 2 else sign, np.add.reduce(np.log(size))


# --- triangular matrices ---------------------------------------------------------------------------------------------

_of_scipy = ScipyModule("linalg")  # its functions, and those that a device has in their place


def _solve_triangle(a, b, *, lower, unit):
    if not (type(a) is type(b) is np.ndarray and a.dtype == b.dtype and a.dtype.char in _LETTERS and b.size):
        return _of_scipy.solve_triangular(a, b, lower=lower, unit_diagonal=unit)
    straight = a.flags.f_contiguous  # else LAPACK is given the transposed matrix, which takes no copy
    solve = _routine("trtrs", a.dtype.char)
    x, info = solve(a if straight else a.T, b, lower=lower == straight, trans=int(not straight), unitdiag=unit)
    return x if info == 0 else _of_scipy.solve_triangular(a, b, lower=lower, unit_diagonal=unit)  # says what is wrong


def _part(x, lower, unit):
    """Return the triangle of a matrix that a triangular solve reads."""
    return np.tril(x, -1 if unit else 0) if lower else np.triu(x, 1 if unit else 0)


def _triangular_jvp(tangents, y, xs, params):
    da, db = tangents
    right = None if da is None else -(_part(da, **params) @ y)
    if db is not None:
        right = db if right is None else right + db
    return cast(bind(triangular_p, xs[0], right, **params), y.dtype)


def _pull_back(ct, a, lower, unit):
    return bind(triangular_p, t(a), ct, lower=not lower, unit=unit)


def _triangular_left(ct, y, a, b, *, lower, unit):
    return fit(-_part(_pull_back(ct, a, lower, unit) @ t(y), lower, unit), a.shape, a.dtype)


def _triangular_right(ct, y, a, b, *, lower, unit):
    return fit(_pull_back(ct, a, lower, unit), b.shape, b.dtype)


def _triangular_batch(size, batched, xs, params):
    a, b = xs
    if not batched[0] and a.ndim == 2 and b.ndim == 3:
        return solve_columns(size, b, lambda b: bind(triangular_p, a, b, **params))
    return bind(triangular_p, *align(batched, xs), **params)


def _write_triangular(a, b, lower, unit):
    options = f", lower={lower}" * lower + f", unit_diagonal={unit}" * unit
    return f"scipy.linalg.solve_triangular({a}, {b}{options})"


# The solution of a system of a triangular matrix, of which the other triangle is not read.
triangular_p: Primitive = Primitive(
    "triangular_solve", over_stacks(_solve_triangle), jvp=_triangular_jvp, vjp=(_triangular_left, _triangular_right),
    batch=_triangular_batch, refuses="singular", mixes=2, text=_write_triangular,
)  # fmt: skip


def solve_lower(a: Any, b: Any) -> Any:
    """Solve a system of a lower triangular matrix, which has zeros above; of a stack, by NumPy's function."""
    return bind(triangular_p, a, b, lower=True, unit=False) if is_one_matrix(a, b) else np.linalg.solve(a, b)


def solve_upper(a: Any, b: Any) -> Any:
    """Solve a system of an upper triangular matrix, which has zeros below; of a stack, by NumPy's function."""
    return bind(triangular_p, a, b, lower=False, unit=False) if is_one_matrix(a, b) else np.linalg.solve(a, b)


for _solve in (solve_lower, solve_upper):
    with_notes(_solve, host=np.linalg.solve)
