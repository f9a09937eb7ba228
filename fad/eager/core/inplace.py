"""Changes in place. The memory is really overwritten, as PyTorch does it, so everything that shares it sees the change.

A change is refused on a leaf that requires grad. Elsewhere it is one more operation of the history, and what a changed
view was taken from gets one too. Every change is noted with its line:
a backward pass that needs the old values will say so.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from fad.core.tracing.tracer import Tracer
from fad.eager.core.composite import composite
from fad.eager.core.engine import GENERAL
from fad.eager.core.mode import is_recording
from fad.eager.core.records import (
    BIRTH,
    LEAF,
    births,
    copy_result,
    find_saved_in,
    is_leaf,
    name_user_line,
    note_change,
    parents,
    root,
    user_frame,
)
from fad.eager.core.views import above, chain, is_seen_elsewhere, renew, set_node, views
from fad.eager.errors import InPlaceError
from fad.eager.ops import functions as f
from fad.eager.ops.operators import run
from fad.eager.ops.shaping import plain_index, reshape
from fad.eager.tensor import Tensor, add_methods, memory
from fad.errors import ShapeMismatchError
from fad.ops.places.indexing import index_set_p, split_index
from fad.ops.ufuncs.conversion import astype_p


def _refuse_leaf(x: Tensor) -> None:
    if is_recording() and x.node is not None and x.node[0] == LEAF:
        raise InPlaceError(
            "a leaf that requires grad was to be changed in place, and its gradient would have no meaning. "
            "To update a parameter, write the change under `with torch.no_grad():`; "
            "to compute with it, write it out of place (y = x + 1)"
        )


def _refuse_view(x: Tensor) -> None:
    """A tracked change of memory that something else sees as well would be missing from that one's history."""
    *_, top = line_up = chain(x)
    for t in line_up:
        _refuse_leaf(t)
    base = top.value.base if type(top.value) is np.ndarray else None
    if type(base) is np.ndarray and is_seen_elsewhere(top, sys.getrefcount(base) - 1):
        raise InPlaceError(
            "memory that something else shows as well was to be changed in place by a tracked operation, "
            "of which the other's history would not know. Work on a copy: y.clone()"
        )


def _set_history(x: Tensor, node: Any) -> None:
    """Give a tensor a new record, and the tensor that it is a view of one that says so."""
    set_node(x, node)
    step = above(x)
    if step is None:
        return
    base, (how, detail) = step
    if how == "index":
        index = detail(base) if callable(detail) else detail
        _set_history(base, _assignment(base, index, x.value, node))
    else:
        _set_history(base, run(how, Tensor(x.value, node), **detail).node)


def _writable(x: Tensor) -> Any:
    if type(x.value) is Tracer:
        raise InPlaceError(
            "inside a transform tensors cannot be changed in place. Write it out of place: y = x + 1 for x += 1, "
            "torch.where(mask, v, x) for x[mask] = v"
        )
    value = memory(x)
    if not value.flags.writeable:
        raise InPlaceError(
            "this tensor's memory cannot be written: several of its elements are one number (after expand, unfold or "
            "meshgrid), or it is a read-only array. Work on a copy: x.clone()"
        )
    return value


def _copy_results(x: Tensor) -> None:
    """Let the records of a tensor, and of what it is a view of, keep copies of what is about to be overwritten."""
    for t in chain(x):
        copy_result(t.node)


def replace(x: Tensor, new: Tensor) -> Tensor:
    """Write the value of `new` into the memory of `x`, and give `x` its history."""
    target = _writable(x)
    if new.value.shape != target.shape:
        raise ShapeMismatchError(
            f"a change in place must keep the shape {tuple(x.shape)}, but the result has shape {tuple(new.shape)}"
        )
    if new.node is not None:
        _refuse_view(x)
        new = new if new.dtype == x.dtype else run(astype_p, new, dtype=x.dtype)
    if not np.can_cast(new.value.dtype, target.dtype, "same_kind"):
        raise TypeError(f"a result of dtype {new.dtype} cannot be written into a tensor of dtype {x.dtype}")
    _copy_results(x)
    np.copyto(target, new.value, casting="same_kind")
    note_change(target)
    if is_recording() and (new.node is not None or not is_leaf(x.node)):
        _set_history(x, new.node)
        renew(x)
    return x


def _is_kept(x: Tensor, node: list | None, mark: int) -> bool:
    """Return whether what was recorded since a mark keeps the memory of a tensor, which will be overwritten."""
    memory_of = root(x.value)
    waiting, seen = [node], set()
    while waiting:
        rec = waiting.pop()
        if rec is None or rec[BIRTH] <= mark or rec[BIRTH] in seen:
            continue
        seen.add(rec[BIRTH])
        if any(type(v) is np.ndarray and root(v) is memory_of for v in find_saved_in(rec)):
            return True
        waiting += parents(rec)
    return False


def in_place(out_of_place: Any) -> Any:
    def method(self, *args, **kwargs):
        _refuse_leaf(self)
        mark = next(births)
        new = name_user_line(out_of_place(self, *args, **kwargs))
        if new is NotImplemented:
            return new
        if _is_kept(self, new.node, mark):
            new = name_user_line(out_of_place(Tensor(np.array(self.value), self.node), *args, **kwargs))
        return replace(self, new)

    method.__doc__ = f"Do `{out_of_place.__name__}` in place, and return the tensor."
    return method


def take_place(fun: Any, x: Tensor) -> Tensor:
    """Put what a function gives of a tensor in its place, as layers with ``inplace=True`` do, and return the tensor.

    Inside a transform, where memory cannot be written, the tensor stands for the result, if it has no views.
    """
    if type(x.value) is not Tracer or above(x) is not None or any(True for _ in views(x)):
        return in_place(fun)(x)
    _refuse_leaf(x)
    new = fun(x)
    x.value = new.value
    set_node(x, new.node)
    return x


for _name in ("add", "sub", "mul", "div", "pow", "neg", "exp", "log", "sqrt", "sin", "cos", "tanh", "sigmoid", "relu",
              "clamp", "abs", "reciprocal", "floor", "ceil", "square", "rsqrt", "masked_fill", "fmod",
              "remainder"):  # fmt: skip
    setattr(Tensor, f"{_name}_", in_place(getattr(f, _name)))
for _symbol in ("add", "sub", "mul", "truediv", "pow", "mod", "floordiv"):
    setattr(Tensor, f"__i{_symbol}__", in_place(getattr(Tensor, f"__{_symbol}__")))


def assign(self: Tensor, index: Any, v: Any) -> None:
    """``x[index] = v``."""
    _refuse_leaf(self)
    index = plain_index(index)
    target = _writable(self)
    value = v.value if isinstance(v, Tensor) else v
    node = v.node if isinstance(v, Tensor) else None
    tracked = is_recording() and (node is not None or not is_leaf(self.node))
    if type(value) is Tracer:
        raise InPlaceError(
            "a value traced by a transform cannot be written into a tensor: use torch.where or torch.cat"
        )
    if tracked:
        _refuse_view(self)
    _copy_results(self)
    target[index] = value
    note_change(target)
    if tracked:
        _set_history(self, _assignment(self, index, value, node))
        renew(self)


def _assignment(x: Tensor, index: Any, value: Any, node: Any) -> list:
    """Return the record of an assignment. Its rule reads shapes and dtypes only, so it keeps stand-ins of no size."""
    template, arrays = split_index(index)
    place = x.value[index]
    frame = user_frame(3)
    value_like = _stand_in(place.shape, np.asarray(value).dtype if node is not None else x.dtype)
    operands = (_stand_in(x.value.shape, x.dtype), value_like, *arrays)
    nodes = [x.node, _broadcast_node(node, value, place.shape), *(None for _ in arrays)]
    return [
        GENERAL,
        next(births),
        None,
        index_set_p,
        frame.f_code,
        frame.f_lasti,
        nodes,
        None,
        operands,
        {"template": template},
    ]


def _broadcast_node(node: Any, value: Any, shape: tuple) -> Any:
    if node is None or np.shape(value) == shape:
        return node
    lead = np.ndim(value) - len(shape)  # superfluous unit axes in front
    v = Tensor(value, node)
    v = reshape(v, np.shape(value)[lead:]) if lead > 0 else v
    return composite("ExpandBackward0", lambda a: np.broadcast_to(a, shape), v).node


def _stand_in(shape: tuple, dtype: Any) -> np.ndarray:
    return np.broadcast_to(np.zeros((), dtype), shape)


def fill_(self: Tensor, value: Any) -> Tensor:
    """Put one value everywhere, and return the tensor."""
    assign(self, Ellipsis, value)
    return self


def zero_(self: Tensor) -> Tensor:
    """Put zeros everywhere, and return the tensor."""
    return fill_(self, 0)


def copy_(self: Tensor, src: Any) -> Tensor:
    """Take over the elements of another tensor, and return this one."""
    assign(self, Ellipsis, src)
    return self


add_methods(__setitem__=assign, fill_=fill_, zero_=zero_, copy_=copy_)


# PyTorch has these as functions too: ``torch.sin_(x)``.
_NAMED: Any = Tensor
abs_, ceil_, clamp_, cos_, exp_, floor_, log_, neg_ = (
    _NAMED.abs_, _NAMED.ceil_, _NAMED.clamp_, _NAMED.cos_, _NAMED.exp_, _NAMED.floor_, _NAMED.log_, _NAMED.neg_,
)  # fmt: skip
reciprocal_, relu_, rsqrt_, sigmoid_, sin_, sqrt_, square_, tanh_ = (
    _NAMED.reciprocal_, _NAMED.relu_, _NAMED.rsqrt_, _NAMED.sigmoid_, _NAMED.sin_, _NAMED.sqrt_, _NAMED.square_,
    _NAMED.tanh_,
)  # fmt: skip

__all__ = [
    "abs_", "ceil_", "clamp_", "cos_", "exp_", "floor_", "log_", "neg_", "reciprocal_", "relu_", "rsqrt_", "sigmoid_",
    "sin_", "sqrt_", "square_", "tanh_",
]  # fmt: skip
