"""``eval_shape``: the shapes and dtypes that a function returns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.core.tracing.spec import ShapeDtypeStruct, spec_of
from fad.typing import PyTree


def eval_shape(fun: Callable, *args: PyTree, **kwargs: Any) -> PyTree:
    """Return the shapes and dtypes of a function's output, as a tree of ShapeDtypeStruct.

    Returns
    -------
    tree of ShapeDtypeStruct

    Parameters
    ----------
    fun : callable
    *args, **kwargs : arrays, pytrees, or ShapeDtypeStructs in their place
        A ShapeDtypeStruct stands for an array of ones that takes no memory: fad has no abstract values,
        so the function is run, and what it decides by value it decides for ones.

    Examples
    --------
    >>> eval_shape(lambda a, b: a @ b, ShapeDtypeStruct((2, 3), "float32"), ShapeDtypeStruct((3, 4), "float32"))
    ShapeDtypeStruct(shape=(2, 4), dtype=float32)
    """

    def fill(x):
        return np.broadcast_to(np.ones((), x.dtype), x.shape) if type(x) is ShapeDtypeStruct else x

    args, kwargs = tree.map(fill, (args, kwargs))
    with np.errstate(all="ignore"):
        return tree.map(spec_of, fun(*args, **kwargs))
