"""autograd.numpy.linalg: the names of numpy.linalg, with autograd's convention for ``eigh``."""

from __future__ import annotations

from typing import Any, Literal

import numpy as _np

import fad.numpy as _fnp
from fad.core.tracing.tracer import Tracer as _Tracer


def eigh(a: Any, UPLO: Literal["L", "U", "l", "u"] = "L") -> Any:
    """Return eigenvalues and eigenvectors as a function of one triangle: the other one's derivative is zero.

    :func:`fad.numpy.linalg.eigh` differentiates among Hermitian matrices, so that both triangles have half of it each.

    >>> from fad.compat.autograd import grad
    >>> grad(lambda a: eigh(a)[0][0])(_np.array([[2.0, 1.0], [1.0, 2.0]])).round(12)
    array([[ 0.5,  0. ],
           [-1. ,  0.5]])
    """
    square = type(a) is _Tracer and a.ndim > 1 and a.shape[-1] == a.shape[-2]
    return _fnp.linalg.eigh(_from_triangle(a, UPLO) if square else a, UPLO)


def _from_triangle(a: Any, UPLO: str) -> Any:
    """Return the Hermitian matrices that have the same lower (or upper) triangle."""
    strict = _np.triu(a, 1) if UPLO.upper() == "U" else _np.tril(a, -1)
    diagonal = _np.real(_np.diagonal(a, axis1=-2, axis2=-1))
    eye = _np.eye(a.shape[-1], dtype=diagonal.dtype)
    return strict + _np.conj(_np.swapaxes(strict, -1, -2)) + diagonal[..., None] * eye


def __getattr__(name: str) -> Any:
    return getattr(_fnp.linalg, name)
