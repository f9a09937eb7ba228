"""Elements of tensors by their places: gathered, selected by a mask, and scattered."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.core.tracing.tracer import bind
from fad.eager.core.composite import composite
from fad.eager.core.records import name_user_line
from fad.eager.ops.nodes import _title, as_array, as_node, without_derivative
from fad.eager.tensor import Tensor
from fad.errors import ShapeMismatchError
from fad.ops.places.indexing import index_add_p, index_set_p, split_index


def masked_fill(input: Tensor, mask: Tensor, value: Any) -> Tensor:
    """Put a value, a number or a tensor of one, where the mask holds."""
    if isinstance(value, Tensor) and value.ndim:
        raise ShapeMismatchError(
            f"masked_fill puts one value everywhere, and was given a tensor of shape {tuple(value.shape)}: "
            "torch.where(mask, value, x) chooses element by element"
        )
    choose: Any = np.where
    return composite("MaskedFillBackward0", lambda x, m, v: choose(m, v, x).astype(x.dtype), input, mask, value)


def gather(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Take along an axis, one index for each result."""
    return composite("GatherBackward0", lambda x, i: np.take_along_axis(x, i, dim), input, index)


def index_select(input: Tensor, dim: int, index: Tensor) -> Tensor:
    """Take whole slices along an axis."""
    return composite("IndexSelectBackward0", lambda x, i: np.take(x, i, dim), input, index)


take_along_dim = as_node("take_along_dim", lambda x, i, dim=None: np.take_along_axis(x, i, dim))


def index_add(input: Tensor, dim: int, index: Tensor, source: Tensor, *, alpha: float = 1) -> Tensor:
    """Return the tensor with slices of another added along an axis, where the index says."""
    lead = (slice(None),) * (dim % input.ndim)
    template, arrays = split_index((*lead, np.asarray(index.detach())))
    add = lambda x, v: bind(index_add_p, x, v if alpha == 1 else alpha * v, *arrays, template=template)
    return composite("IndexAddBackward0", add, input, source)


def masked_select(input: Tensor, mask: Tensor) -> Tensor:
    """Return the elements where the mask holds, as a vector."""
    return name_user_line(input[mask])


def take(input: Tensor, index: Tensor) -> Tensor:
    """Return elements of the flattened tensor by their numbers."""
    return name_user_line(input.reshape(-1)[index])


def _along(index: Tensor, dim: int) -> tuple:
    """Return what the indexing operations need to reach ``x[i, ..., index[i, ...], ...]``."""
    places: list = list(np.ogrid[tuple(map(slice, index.shape))])
    places[dim] = np.asarray(index.detach())
    return split_index(tuple(places))


def _scatter(name: str, prim: Any) -> Callable:
    def call(input, dim, index, src):
        template, arrays = _along(index, dim)
        inside = tuple(map(slice, index.shape))

        def put(x, v):
            return bind(prim, x, v[inside] if np.ndim(v) else v, *arrays, template=template)

        return composite(_title(name), put, input, src)

    call.__name__ = call.__qualname__ = name
    return call


scatter = _scatter("scatter", index_set_p)
scatter.__doc__ = "Return the tensor with elements along an axis replaced by those of another, or by a number."
scatter_add = _scatter("scatter_add", index_add_p)
scatter_add.__doc__ = "Return the tensor with the elements of another added along an axis, where the index says."
argwhere = without_derivative("argwhere", np.argwhere)


def select(input: Tensor, dim: int, index: int) -> Tensor:
    """Return one slice along an axis; a view."""
    return name_user_line(input[(*(slice(None),) * (dim % input.ndim), index)])


def nonzero(input: Tensor, *, as_tuple: bool = False) -> Any:
    """Return the indices of the elements that are not zero, one row for each; or one tensor for each axis."""
    found = np.nonzero(as_array(input))
    return tuple(map(Tensor, found)) if as_tuple else Tensor(np.argwhere(as_array(input)))
