"""Arranging tensors: other shapes, slices, joins and cuts. A slice knows what it was taken from."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from fad.eager.core.composite import composite
from fad.eager.core.views import above, note_view
from fad.eager.ops.operators import run
from fad.eager.tensor import Tensor, add_methods, memory
from fad.errors import ShapeMismatchError
from fad.ops.arrangement.structural import (
    broadcast_p,
    find_reduced_axes,
    inverse,
    normalize_axes,
    normalize_axis,
    reshape_p,
    transpose_p,
)
from fad.ops.places.indexing import getitem_p, is_basic, split_index


def _mark_view(y: Tensor, x: Tensor, how: Any) -> Tensor:
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
    memory(input)
    y = run(reshape_p, input, shape=tuple(size // n if d == -1 else int(d) for d in shape))
    return _mark_view(y, input, (reshape_p, {"shape": tuple(input.shape)}))


def flatten(input: Tensor, start_dim: int = 0, end_dim: int = -1) -> Tensor:
    """Join the axes from `start_dim` to `end_dim` into one."""
    if not input.ndim:
        return reshape(input, 1)
    a, b = normalize_axis(start_dim, input.ndim), normalize_axis(end_dim, input.ndim)
    if a == b:
        return input
    n = 1
    for d in input.shape[a : b + 1]:
        n *= d
    return reshape(input, *input.shape[:a], n, *input.shape[b + 1 :])


def permute(input: Tensor, *dims: Any) -> Tensor:
    """Reorder the axes."""
    axes = normalize_axes(_sizes(dims), input.ndim)
    memory(input)
    return _mark_view(run(transpose_p, input, axes=axes), input, (transpose_p, {"axes": inverse(axes)}))


def transpose(input: Tensor, dim0: int, dim1: int) -> Tensor:
    """Exchange two axes."""
    axes = list(range(input.ndim))
    if not axes:
        return permute(input, axes)
    i, j = normalize_axis(dim0, input.ndim), normalize_axis(dim1, input.ndim)
    axes[i], axes[j] = j, i
    return permute(input, *axes)


def t(input: Tensor) -> Tensor:
    """Transpose a matrix; leave a vector as it is."""
    if input.ndim > 2:
        raise ShapeMismatchError(
            f"t() transposes a matrix, and this tensor has shape {tuple(input.shape)}: name the axes, x.transpose(0, 1)"
        )
    return reshape(input, *input.shape) if input.ndim < 2 else transpose(input, 0, 1)


def movedim(input: Tensor, source: Any, destination: Any) -> Tensor:
    """Move axes to other places; the others keep their order."""
    sources, places = normalize_axes(source, input.ndim), normalize_axes(destination, input.ndim)
    if len(sources) != len(places):
        raise ShapeMismatchError(f"movedim needs a place for each axis, and was given {source} and {destination}")
    axes = [i for i in range(input.ndim) if i not in sources]
    for place, axis in sorted(zip(places, sources, strict=True)):
        axes.insert(place, axis)
    return permute(input, axes)


def narrow(input: Tensor, dim: int, start: int, length: int) -> Tensor:
    """Return `length` slices along an axis, from number `start` on; a view."""
    dim, start = normalize_axis(dim, input.ndim), int(start)
    n = input.shape[dim]
    start += n if start < 0 else 0
    if start < 0 or length < 0 or start + length > n:
        raise IndexError(f"{length} slices from number {start} on do not fit an axis of length {n}")
    return input[(*(slice(None),) * dim, slice(start, start + length))]


def diagonal(input: Tensor, offset: int = 0, dim1: int = 0, dim2: int = 1) -> Tensor:
    """Return a diagonal of the matrices along two axes, as the last axis; a view."""
    return _take_strided(input, lambda x: np.diagonal(x, offset, dim1, dim2), True)


def unfold(self: Tensor, dimension: int, size: int, step: int) -> Tensor:
    """Return the windows of a size along an axis, each `step` after the one before, in a new last axis; a view."""
    if not self.ndim:
        return reshape(self, 1)
    axis = normalize_axis(dimension, self.ndim)
    if not 0 <= size <= self.shape[axis] or step < 1:
        raise ShapeMismatchError(
            f"windows of {size} elements, {step} apart, were to be cut from an axis of length {self.shape[axis]}"
        )
    every = (*(slice(None),) * axis, slice(None, None, step))
    return _take_strided(self, lambda x: sliding_window_view(x, size, axis, writeable=True)[every], step >= size)


def atleast_3d(input: Tensor) -> Tensor:
    """Return the tensor with axes of length one added until there are three."""
    shape = tuple(input.shape)
    return input if len(shape) > 2 else reshape(input, {0: (1, 1, 1), 1: (1, *shape, 1), 2: (*shape, 1)}[len(shape)])


def atleast_2d(input: Tensor) -> Tensor:
    """Return the tensor with axes of length one put in front until there are two."""
    return input if input.ndim > 1 else reshape(input, 1, -1)


def atleast_1d(input: Tensor) -> Tensor:
    """Return the tensor, a single number as a vector."""
    return input if input.ndim else reshape(input, 1)


def _take_strided(x: Tensor, view: Callable, writable: bool) -> Tensor:
    """Return what a function of arrays that makes a view shows of a tensor."""

    def places(x):
        numbers = np.arange(x.value.size).reshape(x.value.shape)
        return np.unravel_index(view(numbers), x.value.shape)

    template, arrays = split_index(places(x))
    value = memory(x)
    y = run(getitem_p, x, *arrays, template=template)
    if type(value) is np.ndarray:
        y.value = view(value)
        y.value.flags.writeable = writable and value.flags.writeable
    return _mark_view(y, x, ("index", places))


def squeeze(input: Tensor, dim: Any = None) -> Tensor:
    """Remove axes of length one: all, or those named that have it."""
    dims = range(input.ndim) if dim is None else find_reduced_axes(dim, input.ndim)
    return reshape(input, tuple(d for i, d in enumerate(input.shape) if i not in dims or d != 1))


def unsqueeze(input: Tensor, dim: int) -> Tensor:
    """Insert an axis of length one."""
    i = normalize_axis(dim, input.ndim + 1)
    return reshape(input, (*input.shape[:i], 1, *input.shape[i:]))


def expand(input: Tensor, *sizes: Any) -> Tensor:
    """Repeat an axis of length one without copying; -1 leaves an axis as it is. A view, not to be written into."""
    sizes = _sizes(sizes)
    lead = len(sizes) - input.ndim
    if lead < 0 or any(d == -1 for d in sizes[:lead]):
        raise ShapeMismatchError(f"a tensor of shape {tuple(input.shape)} cannot be expanded to {tuple(sizes)}")
    shape = tuple(input.shape[i - lead] if d == -1 else int(d) for i, d in enumerate(sizes))
    if all(d == 1 for d in shape[:lead]) and shape[lead:] == tuple(input.shape):
        return reshape(input, *shape)
    memory(input)
    return _mark_view(run(broadcast_p, input, shape=shape), input, (broadcast_p, {"shape": shape}))


def broadcast_to(input: Tensor, shape: Any) -> Tensor:
    """Repeat along new or unit axes, to a shape."""
    return expand(input, *shape)


def repeat(input: Tensor, *sizes: Any) -> Tensor:
    """Tile a tensor."""
    return composite("RepeatBackward0", lambda x: np.tile(x, _sizes(sizes)), input, linear=True)


def broadcast_tensors(*tensors: Tensor) -> tuple:
    """Return tensors repeated to their common shape; views."""
    shape = np.broadcast_shapes(*(x.shape for x in tensors))
    return tuple(expand(x, shape) for x in tensors)


def meshgrid(*tensors: Any, indexing: str = "ij") -> tuple:
    """Return one tensor per vector: its elements at every point of their grid; views."""
    if indexing not in ("ij", "xy"):
        raise ValueError(f"indexing of meshgrid is 'ij' or 'xy', not {indexing!r}")
    vectors = list(tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (list, tuple)) else tensors)
    turned = indexing == "xy" and len(vectors) > 1
    if turned:
        vectors[:2] = vectors[1::-1]
    shape = tuple(x.numel() for x in vectors)
    grids = [
        expand(reshape(x, tuple(n if j == i else 1 for j, n in enumerate(shape))), shape) for i, x in enumerate(vectors)
    ]
    if turned:
        grids[:2] = grids[1::-1]
    return tuple(grids)


def cat(tensors: Any, dim: int = 0) -> Tensor:
    """Join tensors along an axis."""
    return composite("CatBackward0", lambda *xs: np.concatenate(xs, dim), *tensors, linear=True)


def stack(tensors: Any, dim: int = 0) -> Tensor:
    """Join tensors along a new axis."""
    return composite("StackBackward0", lambda *xs: np.stack(xs, dim), *tensors, linear=True)


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
    memory(self)
    if is_basic(index):
        parts = index if type(index) is tuple else (index,)
        if type(self.value) is np.ndarray and len(parts) == self.value.ndim and not any(_is_wide(p) for p in parts):
            parts = (*parts, Ellipsis)  # a single element is a view too, not a number apart
        y = run(getitem_p, self, template=parts)
        return _mark_view(y, self, ("index", index))
    template, arrays = split_index(index)
    return run(getitem_p, self, *arrays, template=template)


def _is_wide(part: Any) -> bool:
    return part is None or part is Ellipsis or type(part) is slice


def plain_index(index: Any) -> Any:
    if type(index) is tuple:
        return tuple(map(plain_index, index))
    return index.value if isinstance(index, Tensor) else index


add_methods(__getitem__=_getitem)


def view(self: Tensor, *shape: Any) -> Tensor:
    """Return the elements in another shape, in the same memory."""
    y = reshape(self, *shape)
    value = self.value
    if type(value) is not np.ndarray or not value.size or np.may_share_memory(y.value, value):
        return y
    if above(self) is not None:
        raise ShapeMismatchError(
            f"the memory of a tensor of shape {tuple(self.shape)} and strides {self.stride()} cannot be viewed in the "
            f"shape {tuple(y.shape)}: write x.reshape(...), which copies where it must"
        )
    self.value = np.ascontiguousarray(value)  # a result whose elements NumPy happened to put in another order
    return reshape(self, *shape)


for _function in (reshape, flatten, permute, transpose, t, squeeze, unsqueeze, expand, repeat, split, chunk, unbind,
                  movedim, narrow, diagonal, unfold, view):  # fmt: skip
    setattr(Tensor, _function.__name__, _function)
swapaxes = swapdims = transpose
add_methods(
    swapaxes=transpose,
    swapdims=transpose,
    ravel=lambda self: reshape(self, -1),
    T=property(lambda self: permute(self, tuple(range(self.ndim))[::-1])),
    mT=property(lambda self: transpose(self, -1, -2)),
    view_as=lambda self, other: view(self, *other.shape),
    reshape_as=lambda self, other: reshape(self, *other.shape),
    expand_as=lambda self, other: expand(self, *other.shape),
)
