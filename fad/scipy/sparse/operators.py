"""SciPy's sparse matrices times traced arrays as programs write it: ``a @ x``, ``x @ a``, ``a.dot(x)``, ``a * x``.

SciPy hands the memory of what says that its class is NumPy's array to C code. Of anything else it makes an array, and
where that fails, in that it holds the object itself, it leaves the product to the operand. So its products alone see a
tracer as what it is (`fad.core.tracing.tracer.LEAVING`), and what they leave to it is computed here.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.sparse

from fad.core.tracing.tracer import LEAVING, Tracer, add_methods
from fad.scipy.sparse.array import from_scipy, matmul

_NO_MATRICES = frozenset({Tracer, np.ndarray, np.float64, float, int})  # what most operands are, told apart at once


def _with_matrices(operator: Callable, reflected: bool, multiply: Callable) -> Callable:
    """Return an operator of tracers that is one with SciPy's sparse matrices, too."""

    def apply(x: Any, y: Any) -> Any:
        if type(y) in _NO_MATRICES or not scipy.sparse.issparse(y):
            return operator(x, y)
        return multiply(y, x) if reflected else multiply(x, y)

    return apply


def _times(a: Any, b: Any) -> Any:
    """Return what ``*`` is: a product of elements, and the product of matrices for SciPy's older classes."""
    return from_scipy(a) * b if scipy.sparse.issparse(a) else from_scipy(b).__rmul__(a)


def install_products() -> None:
    """Let tracers answer the products that SciPy's matrices leave to them."""
    kinds = [vars(scipy.sparse)[f"{form}_array"] for form in ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")]
    LEAVING.update([kind._matmul_dispatch.__code__ for kind in kinds])
    add_methods(
        __matmul__=_with_matrices(Tracer.__matmul__, False, matmul),
        __rmatmul__=_with_matrices(Tracer.__rmatmul__, True, matmul),
        __mul__=_with_matrices(Tracer.__mul__, False, _times),
        __rmul__=_with_matrices(Tracer.__rmul__, True, _times),
    )
