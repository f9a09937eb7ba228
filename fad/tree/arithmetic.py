"""Trees as vectors: raveled into one array, added, scaled, their inner product and norm."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.tree.nodes import PyTree, flatten, leaves, map, unflatten
from fad.typing import Array, ArrayLike


def ravel(tree: PyTree) -> tuple[Any, Callable]:
    """Return ``(flat, unravel)``: all leaves in one vector, and the function that puts a vector back into the tree.

    Parameters
    ----------
    tree : tree of arrays

    Returns
    -------
    (vector, callable)
        All elements in one axis, and the function that makes the tree of such a vector. It raises ValueError for a
        vector of another length.

    Examples
    --------
    >>> flat, unravel = ravel({"a": np.ones((2, 2)), "b": 3.0})
    >>> flat.shape, unravel(2 * flat)["b"]
    ((5,), np.float64(6.0))
    """
    xs, treedef = flatten(tree)
    shapes = [np.shape(x) for x in xs]
    dtypes = [np.result_type(x) for x in xs]
    sizes = [int(np.prod(s)) for s in shapes]
    flat = np.concatenate([np.reshape(x, (-1,)) for x in xs]) if xs else np.zeros(0)

    def unravel(flat):
        if np.shape(flat) != (sum(sizes),):
            raise ValueError(f"unravel takes a vector of {sum(sizes)} elements, and was given shape {np.shape(flat)}")
        parts, start = [], 0
        for shape, dtype, size in zip(shapes, dtypes, sizes, strict=True):
            part = np.reshape(flat[start : start + size], shape)
            part = part if part.dtype == dtype else part.astype(dtype)
            parts.append(part[()] if shape == () else part)
            start += size
        return unflatten(treedef, parts)

    return flat, unravel


def add(a: PyTree, b: PyTree) -> PyTree:
    """Return ``a + b``, leaf by leaf.

    Parameters
    ----------
    a, b : trees of arrays
        Of one structure.

    Returns
    -------
    tree

    Raises
    ------
    TreeMismatchError
        if the trees have different structures.

    Examples
    --------
    >>> add({"w": 1.0}, {"w": 2.0})
    {'w': 3.0}
    """
    return map(lambda x, y: x + y, a, b)


def sub(a: PyTree, b: PyTree) -> PyTree:
    """Return ``a - b``, leaf by leaf.

    Parameters
    ----------
    a, b : trees of arrays
        Of one structure.

    Returns
    -------
    tree

    Raises
    ------
    TreeMismatchError
        if the trees have different structures.

    Examples
    --------
    >>> sub({"w": 1.0}, {"w": 2.0})
    {'w': -1.0}
    """
    return map(lambda x, y: x - y, a, b)


def scale(factor: ArrayLike, tree: PyTree) -> PyTree:
    """Return ``factor * tree``, leaf by leaf.

    Parameters
    ----------
    factor : number
    tree : tree of arrays

    Returns
    -------
    tree

    Examples
    --------
    >>> scale(0.5, [2.0, 4.0])
    [1.0, 2.0]
    """
    return map(lambda x: factor * x, tree)


def vdot(a: PyTree, b: PyTree) -> Array:
    """Return the inner product of two trees, the first conjugated as in ``numpy.vdot``.

    Parameters
    ----------
    a, b : trees of arrays
        Of one structure.

    Returns
    -------
    number

    Raises
    ------
    TreeMismatchError
        if the trees have different structures.

    Examples
    --------
    >>> vdot([np.ones(2), 1.0], [np.ones(2), 3.0])
    np.float64(5.0)
    """
    return sum(leaves(map(np.vdot, a, b)))


def norm(tree: PyTree) -> Array:
    """Return the Euclidean norm of all leaves together; its gradient at zero is zero.

    Parameters
    ----------
    tree : tree of arrays

    Returns
    -------
    number
        The root of the sum of the squares of all elements.

    Examples
    --------
    >>> norm([3.0, np.array([0.0, 4.0])])
    np.float64(5.0)
    """
    flat, _ = ravel(tree)
    return np.linalg.norm(flat)


def zeros_like(tree: PyTree) -> PyTree:
    """Return a tree of zeros of the same structure, shapes and dtypes.

    Parameters
    ----------
    tree : tree of arrays

    Returns
    -------
    tree
        Of the same structure, shapes and dtypes.

    Examples
    --------
    >>> zeros_like({"w": np.ones(2)})
    {'w': array([0., 0.])}
    """
    return map(lambda x: np.zeros_like(x)[()] if np.ndim(x) == 0 else np.zeros_like(x), tree)
