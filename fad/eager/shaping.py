"""Arranging tensors: other shapes, slices, joins and cuts. A slice knows what it was taken from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.eager.composite import composite
from fad.eager.operators import run
from fad.eager.tensor import Tensor
from fad.eager.views import note_view
from fad.errors import ShapeMismatchError
from fad.ops.indexing import getitem_p, is_basic, split_index
from fad.ops.structural import inverse, normalize_axes, normalize_axis, reduced_axes, reshape_p, transpose_p


def _viewed(y: Tensor, x: Tensor, how: Any) -> Tensor:
    """Note that a result may share memory with an operand, in case that one of them is changed in place.

    `how` leads back: ``("index", i)``, or the operation that undoes the view, with its parameters.
    """
    if type(y.value) is np.ndarray and y.value.base is not None:
        y._above = x, how
        note_view(y, x)
    return y


def _sizes(shape: tuple) -> tuple:
    return tuple(shape[0]) if len(shape) == 1 and isinstance(shape[0], (tuple, list)) else shape


def reshape(input: Tensor, *shape: Any) -> Tensor:
    """Return the elements in another shape, in which one -1 is worked out; a view where that is possible."""
    shape, n = _sizes(shape), 1
    for d in shape:
        n *= d if d != -1 else 1
    size = input.value.size
    if (shape.count(-1) == 1 and (n == 0 or size % n)) or (-1 not in shape and n != size) or shape.count(-1) > 1:
        raise ShapeMismatchError(
            f"a tensor of shape {tuple(input.shape)} has {size} elements, which do not fit {shape}"
        )
    y = run(reshape_p, input, shape=tuple(size // n if d == -1 else int(d) for d in shape))
    return _viewed(y, input, (reshape_p, {"shape": tuple(input.shape)}))


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the axes from `start_dim` to `end_dim` into one."""
    if not input.ndim:
        return reshape(input, 1)
    a, b = normalize_axis(start_dim, input.ndim), normalize_axis(end_dim, input.ndim)
    n = 1
    for d in input.shape[a : b + 1]:
        n *= d
    return reshape(input, *input.shape[:a], n, *input.shape[b + 1 :])


def permute(input: Tensor, *dims: Any) -> Tensor:
    """Reorder the axes."""
    axes = normalize_axes(_sizes(dims), input.ndim)
    return _viewed(run(transpose_p, input, axes=axes), input, (transpose_p, {"axes": inverse(axes)}))


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes."""
    axes = list(range(input.ndim))
    i, j = normalize_axis(dim0, input.ndim), normalize_axis(dim1, input.ndim)
    axes[i], axes[j] = j, i
    return permute(input, *axes)


def t(input: Tensor) -> Tensor:
    """Transpose a matrix; leave a vector as it is."""
    return input if input.ndim < 2 else transpose(input, 0, 1)


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Remove axes of length one: all, or those named that have it."""
    dims = range(input.ndim) if dim is None else reduced_axes(dim, input.ndim)
    return reshape(input, tuple(d for i, d in enumerate(input.shape) if i not in dims or d != 1))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert an axis of length one."""
    i = normalize_axis(dim, input.ndim + 1)
    return reshape(input, (*input.shape[:i], 1, *input.shape[i:]))


def expand(input: Tensor, *sizes: Any) -> Tensor:
    """Repeat an axis of length one without copying; -1 leaves an axis as it is."""
    sizes = _sizes(sizes)
    lead = len(sizes) - input.ndim
    shape = tuple(input.shape[i - lead] if d == -1 else d for i, d in enumerate(sizes))
    return through_numpy("ExpandBackward0", lambda x: np.broadcast_to(x, shape), input)


def through_numpy(name: str, fun: Callable, *operands: Any) -> Any:
    """Run a function as one node, on a copy of what it returns if that is read-only."""
    y = composite(name, fun, *operands)
    if type(y.value) is np.ndarray and not y.value.flags.writeable:
        y.value = y.value.copy()
    return y


def broadcast_to(input: Tensor, shape: Any) -> Tensor:
    """Repeat along new or unit axes, to a shape."""
    return expand(input, *shape)


def repeat(input: Tensor, *sizes: Any) -> Tensor:
    """Tile a tensor."""
    return composite("RepeatBackward0", lambda x: np.tile(x, _sizes(sizes)), input)


def cat(tensors: Any, dim: int = 0) -> Tensor:
    """Join tensors along an axis."""
    return composite("CatBackward0", lambda *xs: np.concatenate(xs, dim), *tensors)


def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Join tensors along a new axis."""
    return composite("StackBackward0", lambda *xs: np.stack(xs, dim), *tensors)


def split(input: Tensor, size: Any, dim: int = 0) -> tuple:
    """Cut along an axis into parts of one size (the last may be smaller), or of the sizes given."""
    n = input.shape[dim]
    sizes = [size] * (n // size) + ([n % size] if n % size else []) if isinstance(size, int) else list(size)
    ends = np.cumsum(sizes).tolist()
    lead = (slice(None),) * (dim % input.ndim)
    return tuple(input[(*lead, slice(b - n, b))] for b, n in zip(ends, sizes, strict=True))


def chunk(input: Tensor, chunks: int, dim: int = 0) -> tuple:
    """Cut along an axis into so many parts."""
    return split(input, -(-input.shape[dim] // chunks), dim)


def unbind(input: Tensor, dim: int = 0) -> tuple:
    """Return the slices along an axis."""
    return tuple(permute(input, dim, *(i for i in range(input.ndim) if i != dim % input.ndim)))


def _getitem(self: Tensor, index: Any) -> Tensor:
    index = plain_index(index)
    if is_basic(index):
        parts = index if type(index) is tuple else (index,)
        if type(self.value) is np.ndarray and len(parts) == self.value.ndim and not any(_is_wide(p) for p in parts):
            parts = (*parts, Ellipsis)  # a single element is a view too, not a number apart
        y = run(getitem_p, self, template=parts)
        return _viewed(y, self, ("index", index))
    template, arrays = split_index(index)
    return run(getitem_p, self, *arrays, template=template)


def _is_wide(part: Any) -> bool:
    return part is None or part is Ellipsis or type(part) is slice


def plain_index(index: Any) -> Any:
    if type(index) is tuple:
        return tuple(map(plain_index, index))
    return index.value if isinstance(index, Tensor) else index


Tensor.__getitem__ = _getitem


for _function in (reshape, flatten, permute, transpose, t, squeeze, unsqueeze, expand, repeat, split, chunk, unbind):
    setattr(Tensor, _function.__name__, _function)
Tensor.view = reshape
Tensor.ravel = flatten
Tensor.T = property(lambda self: permute(self, tuple(range(self.ndim))[::-1]))
Tensor.mT = property(lambda self: transpose(self, -1, -2))
Tensor.view_as = Tensor.reshape_as = lambda self, other: reshape(self, *other.shape)
Tensor.expand_as = lambda self, other: expand(self, *other.shape)
