"""Sparse derivatives: Jacobians and Hessians of large functions whose results depend on few inputs each.

The places of the matrix are found by running the function once with sets of inputs beside its values; columns that
have no row in common share one pass of forward mode (or rows one of reverse mode), so that a tridiagonal Jacobian takes
three passes, whatever its size. The matrices are SciPy's. Needs the extra ``scipy``.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence

import fad.scipy  # noqa: F401  which says what to install where there is no SciPy
from fad.core.runs.transformed import transformed
from fad.sparse.colouring import plan_passes, plan_symmetric
from fad.sparse.derivatives import Point, Sparse
from fad.transforms.arguments.check import check_function
from fad.transforms.grad import grad
from fad.typing import ArrayLike

__all__ = ["hessian", "jacobian", "pattern"]


def pattern(fun: Callable, argnums: int | Sequence[int] = 0) -> Callable:
    """Return a function that returns which elements of the output can depend on which elements of the input.

    Parameters
    ----------
    fun : callable
        Function of arrays or pytrees.
    argnums : int or tuple of int
        The arguments whose elements count.

    Returns
    -------
    callable
        Of the same arguments. Returns a ``scipy.sparse.csr_array`` of booleans with a row for each element of the
        output and a column for each element of the input, both in the order of the tree. It may have places at which
        the derivative is zero, and lacks none for the path that the program takes at these values. That of the second
        derivatives is ``fad.sparse.pattern(fad.grad(fun))``.

    Raises
    ------
    NotSparseError
        if the matrix has too many places.

    Examples
    --------
    >>> import numpy as np, fad
    >>> fad.sparse.pattern(lambda x: x[1:] * x[:-1])(np.ones(4)).toarray().astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """

    check_function(fun, "sparse.pattern", argnums)

    @transformed("sparse.pattern", fun)
    def find(*args, **kwargs):
        return Point(fun, args, kwargs, argnums, "fad.sparse.pattern").pattern()

    return find


def jacobian(
    fun: Callable, argnums: int | Sequence[int] = 0, *, pattern: ArrayLike | None = None, mode: str = "auto",
    check: bool = True, chunk_size: int | str | None = "auto",
) -> Callable:  # fmt: skip
    """Return a function that computes the Jacobian as a sparse matrix.

    Parameters
    ----------
    fun : callable
        Function of arrays or pytrees with real elements.
    argnums : int or tuple of int
        The arguments to differentiate with respect to.
    pattern : matrix, keyword only
        Where the Jacobian may differ from zero; a sparse or dense matrix of shape ``(out.size, in.size)``. By default
        it is found at the first call, and kept for further calls with arguments of the same shapes.
    mode : "auto", "fwd" or "rev", keyword only
        Which passes to use. "auto" takes what is cheapest, full rows or columns by themselves.
    check : bool, keyword only
        Whether each call compares one product with a vector drawn at random, for one pass more. Where the places of an
        earlier call are too few for this one, or index arrays take other elements, they are looked for again. False
        trusts that they are those of the first call with arguments of these shapes.
    chunk_size : int, None or "auto", keyword only
        How many passes to run at once.

    Returns
    -------
    callable
        Of the same arguments. Returns a ``scipy.sparse.csr_array`` of shape ``(out.size, in.size)``, elements in the
        order of the tree; inside another transform, a sparse array of `fad.scipy.sparse` with the same entries. Its
        method ``explain`` tells the number of places and passes.

    Raises
    ------
    NotSparseError
        if the matrix has too many places.
    DerivativeError
        if the given pattern lacks places (only seen with ``check=True``).

    Notes
    -----
    Curtis, Powell and Reid, "On the estimation of sparse Jacobian matrices", J. Inst. Maths Applics 13 (1974), 117-119.

    Examples
    --------
    >>> import numpy as np, fad
    >>> def f(x):
    ...     return x[1:] ** 2 - x[:-1]
    >>> jacobian = fad.sparse.jacobian(f)
    >>> jacobian(np.arange(4.0)).toarray()
    array([[-1.,  2.,  0.,  0.],
           [ 0., -1.,  4.,  0.],
           [ 0.,  0., -1.,  6.]])
    >>> jacobian.explain(np.arange(4.0))
    '3 x 4 with 6 places; passes: 2 forward'
    """
    check_function(fun, "sparse.jacobian", argnums)
    if mode not in ("auto", "fwd", "rev"):
        raise ValueError(f"mode of fad.sparse.jacobian must be 'auto', 'fwd' or 'rev', not {mode!r}")
    plan = functools.partial(plan_passes, mode=mode)
    return Sparse(fun, argnums, "fad.sparse.jacobian", pattern, plan, check, chunk_size)


def hessian(
    fun: Callable, argnums: int | Sequence[int] = 0, *, pattern: ArrayLike | None = None, check: bool = True,
    chunk_size: int | str | None = "auto",
) -> Callable:  # fmt: skip
    """Return a function that computes the matrix of second derivatives of a scalar function as a sparse matrix.

    Parameters
    ----------
    fun : callable
        Function of arrays or pytrees with real elements; returns one real number.
    argnums, pattern, check, chunk_size
        As in :func:`jacobian`; the pattern is that of ``fad.grad(fun)``.

    Returns
    -------
    callable
        Of the same arguments. Returns a symmetric ``scipy.sparse.csr_array`` of shape ``(in.size, in.size)``; inside
        another transform, a sparse array of `fad.scipy.sparse`. Each pass is a product of the Hessian with a vector,
        forward over reverse mode.

    Raises
    ------
    NotSparseError
        if the matrix has too many places.

    Examples
    --------
    >>> import numpy as np, fad
    >>> def f(x):
    ...     return np.sum(x[1:] * x[:-1] ** 2)
    >>> fad.sparse.hessian(f)(np.array([1.0, 2.0, 3.0])).toarray()
    array([[4., 2., 0.],
           [2., 6., 4.],
           [0., 4., 0.]])
    """
    check_function(fun, "sparse.hessian", argnums)
    gradient = grad(fun, argnums)
    return Sparse(gradient, argnums, "fad.sparse.hessian", pattern, plan_symmetric, check, chunk_size, fun)
