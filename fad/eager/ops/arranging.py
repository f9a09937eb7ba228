"""Tensors in other arrangements: repeated, rolled, joined and cut, diagonals and triangles."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from fad.eager.core.composite import composite
from fad.eager.core.records import name_user_line
from fad.eager.ops.nodes import as_node, join_node, without_derivative
from fad.eager.tensor import Tensor


def _with_diagonal(name: str, fun: Callable) -> Callable:
    def call(input, diagonal=0):
        return composite(name, lambda x: fun(x, diagonal), input)

    call.__doc__ = f"Return NumPy's {fun.__name__}, from the diagonal of a number on."
    return call


tril, triu = _with_diagonal("TrilBackward0", np.tril), _with_diagonal("TriuBackward0", np.triu)
diag = _with_diagonal("DiagonalBackward0", np.diag)


def flip(input: Tensor, *numbers: Any, dims: Any = None) -> Tensor:
    """Turn axes the other way round: ``flip(x, 0, 1)`` or ``flip(x, dims=(0, 1))``."""
    dims = numbers if dims is None else dims
    dims = dims[0] if type(dims) is tuple and len(dims) == 1 else dims
    axes = tuple(dims) if type(dims) is list else dims
    return composite("FlipBackward0", lambda x: np.flip(x, axes), input, linear=True)


tile = as_node(
    "tile", lambda x, *dims: np.tile(x, dims[0] if isinstance(dims[0], (tuple, list)) else dims), linear=True
)
roll = as_node("roll", lambda x, shifts, dims=None: np.roll(x, shifts, axis=dims), linear=True)
repeat_interleave = as_node("repeat_interleave", lambda x, repeats, dim=None: np.repeat(x, repeats, axis=dim))
diag_embed = as_node("diag_embed", lambda x: x[..., None] * np.eye(x.shape[-1], dtype=x.dtype), linear=True)


def unflatten(input: Tensor, dim: int, sizes: Any) -> Tensor:
    """Return the tensor with an axis split into several, in which one -1 is worked out."""
    dim = dim % input.ndim
    known = -math.prod(sizes)
    sizes = [input.shape[dim] // known if d == -1 else d for d in sizes]
    return input.reshape((*input.shape[:dim], *sizes, *input.shape[dim + 1 :]))


vstack, hstack, dstack = join_node("vstack", np.vstack), join_node("hstack", np.hstack), join_node("dstack", np.dstack)
column_stack = join_node("column_stack", np.column_stack)
tril_indices = without_derivative(
    "tril_indices", lambda row, col, offset=0: np.stack(np.tril_indices(row, offset, col))
)
triu_indices = without_derivative(
    "triu_indices", lambda row, col, offset=0: np.stack(np.triu_indices(row, offset, col))
)


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
    return name_user_line(input[places])


rot90 = as_node("rot90", lambda x, k=1, dims=(0, 1): np.rot90(x, k, tuple(dims)), linear=True)
fliplr, flipud = as_node("fliplr", np.fliplr, linear=True), as_node("flipud", np.flipud, linear=True)
diagflat = as_node("diagflat", lambda x, offset=0: np.diag(x.reshape(-1), offset))


def tensor_split(input: Tensor, indices_or_sections: Any, dim: int = 0) -> tuple:
    """Cut along an axis into so many parts, of which the first may be larger by one, or at the places given."""
    n, axis = input.shape[dim], dim % input.ndim
    if isinstance(indices_or_sections, int):
        small, more = divmod(n, indices_or_sections)
        ends = np.cumsum([small + (i < more) for i in range(indices_or_sections)])[:-1].tolist()
    else:
        ends = [int(i) for i in indices_or_sections]
    bounds = [0, *ends, n]
    return tuple(name_user_line(input[(*(slice(None),) * axis, slice(a, b))]) for a, b in itertools.pairwise(bounds))


def hsplit(input: Tensor, indices_or_sections: Any) -> tuple:
    """Cut a tensor along its second axis, a vector along its only one."""
    return tensor_split(input, indices_or_sections, 0 if input.ndim == 1 else 1)


def vsplit(input: Tensor, indices_or_sections: Any) -> tuple:
    """Cut a tensor along its first axis."""
    return tensor_split(input, indices_or_sections, 0)
