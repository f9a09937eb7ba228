"""Derivatives of functions of tensors: ``jacobian``, ``hessian``, and products with them, in PyTorch's signatures.

Inputs are one tensor or a tuple, and results have the same form. `create_graph` records the result for further
derivatives; `strict` raises where an output does not depend on an input, instead of giving zeros.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad.eager.autograd.gradients import grad
from fad.eager.core.mode import enable_grad
from fad.eager.errors import BackwardError
from fad.eager.ops.shaping import reshape, stack
from fad.eager.tensor import Tensor
from fad.errors import NonScalarOutputError, ShapeMismatchError


def _inputs(inputs: Any, create_graph: bool) -> tuple[tuple, bool]:
    """Return inputs that are recorded apart from what was there before, but still joined to it under create_graph."""
    single = isinstance(inputs, Tensor)
    xs = (inputs,) if single else tuple(inputs)
    fresh = []
    for x in xs:
        if create_graph and x.requires_grad:
            fresh.append(x.view_as(x))
        else:
            value = x.value if create_graph else x.detach().value
            fresh.append(Tensor(value).requires_grad_())
    return tuple(fresh), single


def _call(func: Callable, xs: tuple, what: str) -> tuple[tuple, bool]:
    out = func(*xs)
    single = isinstance(out, Tensor)
    ys = tuple(out) if type(out) in (tuple, list) else (out,)
    for y in ys:
        if not isinstance(y, Tensor):
            raise TypeError(f"the function given to {what} must return tensors, but returned {type(y).__name__}")
    return ys, single


def _pull(y: Tensor, xs: tuple, v: Any, create_graph: bool, strict: bool) -> list:
    if y.node is None:
        if strict:
            raise BackwardError("with strict=True, an output of the function does not depend on any input")
        found: list = [None] * len(xs)
    else:
        found = list(grad(y, xs, v, retain_graph=True, create_graph=create_graph, allow_unused=True))
    for i, (g, x) in enumerate(zip(found, xs, strict=True)):
        if g is None:
            if strict:
                raise BackwardError(f"with strict=True, an output of the function does not depend on input {i}")
            found[i] = Tensor(np.zeros_like(x.value))
    return found


def _unpack(xs: list, single: bool) -> Any:
    return xs[0] if single else tuple(xs)


def jacobian(
    func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False
) -> Any:
    """Return the Jacobian: for each output and input a tensor of shape ``output.shape + input.shape``.

    One tensor for one output and one input; a tuple where there are several, outputs outside.

    >>> import fad.eager as torch
    >>> jacobian(lambda x: x**2, torch.tensor([1.0, 2.0]))
    tensor([[2., 0.],
            [0., 4.]])
    """
    with enable_grad():
        xs, one_input = _inputs(inputs, create_graph)
        ys, one_output = _call(func, xs, "jacobian")
        blocks = [_unpack(_rows(y, xs, create_graph, strict), one_input) for y in ys]
    return _unpack(blocks, one_output)


def _rows(y: Tensor, xs: tuple, create_graph: bool, strict: bool) -> list:
    rows = []
    for i in range(y.value.size):
        unit = np.zeros(y.value.size, y.dtype)
        unit[i] = 1
        rows.append(_pull(y, xs, Tensor(unit.reshape(y.shape)), create_graph, strict))
    return [
        reshape(stack([row[k] for row in rows]), (*y.shape, *x.shape)) if rows
        else Tensor(np.zeros((*y.shape, *x.shape), x.dtype))
        for k, x in enumerate(xs)
    ]  # fmt: skip


def _scalar(func: Callable, what: str) -> Callable:
    def check(*xs):
        y = func(*xs)
        if not isinstance(y, Tensor) or y.value.size != 1:
            raise NonScalarOutputError(
                f"{what} needs a function that returns one number; sum its result, or use jacobian"
            )
        return y if y.ndim == 0 else reshape(y, ())

    return check


def hessian(
    func: Callable, inputs: Any, create_graph: bool = False, strict: bool = False, vectorize: bool = False
) -> Any:
    """Return the matrix of second derivatives of a scalar function; for several inputs a tuple of tuples of blocks.

    >>> import fad.eager as torch
    >>> hessian(lambda x: (x**3).sum(), torch.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    single = isinstance(inputs, Tensor)
    f = _scalar(func, "hessian")

    def gradient(*xs):
        y = f(*xs)
        return _unpack(_pull(y, xs, None, True, strict), single)

    return jacobian(gradient, inputs, create_graph=create_graph, strict=strict)


def _vectors(v: Any, like: tuple, what: str) -> tuple:
    if v is None:
        if len(like) == 1 and like[0].value.size == 1:
            return (Tensor(np.ones_like(like[0].value)),)
        raise NonScalarOutputError(
            f"{what} needs v: one tensor of the shape of each of {[tuple(x.shape) for x in like]}"
        )
    vs = (v,) if isinstance(v, Tensor) else tuple(v)
    if len(vs) != len(like) or any(a.shape != b.shape for a, b in zip(vs, like, strict=True)):
        raise ShapeMismatchError(
            f"v of {what} must have the shapes {[tuple(x.shape) for x in like]}, not {[tuple(x.shape) for x in vs]}"
        )
    return vs


def _finish(ys: tuple, single: bool, create_graph: bool) -> Any:
    return _unpack([y if create_graph else y.detach() for y in ys], single)


def vjp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return ``(func(inputs), v @ J)``; v has the form of the output, and may be left out for one number."""
    with enable_grad():
        xs, one_input = _inputs(inputs, create_graph)
        ys, one_output = _call(func, xs, "vjp")
        vs = _vectors(v, ys, "vjp")
        total: list = [None] * len(xs)
        for y, w in zip(ys, vs, strict=True):
            found = _pull(y, xs, w, create_graph, strict)
            total = [g if t is None else t + g for t, g in zip(total, found, strict=True)]
    return _finish(ys, one_output, create_graph), _unpack(total, one_input)


def jvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return ``(func(inputs), J @ v)``; v has the form of the inputs.

    By reverse mode twice, as PyTorch does it, so that `detach` and `no_grad` hold in the function as they do in a
    backward pass; `torch.func.jvp` is forward mode.
    """
    with enable_grad():
        xs, _ = _inputs(inputs, create_graph)
        vs = _vectors(v, xs, "jvp")
        ys, one_output = _call(func, xs, "jvp")
        tangents = []
        for y in ys:
            w = Tensor(np.zeros_like(y.value)).requires_grad_()
            pulled = _pull(y, xs, w, True, strict)  # linear in w
            along = _pull(_inner(pulled, vs), (w,), None, create_graph, False)
            tangents.append(along[0])
    return _finish(ys, one_output, create_graph), _unpack(tangents, one_output)


def _inner(xs: Any, ys: Any) -> Any:
    total = None
    for x, y in zip(xs, ys, strict=True):
        term = (x * y).sum()
        total = term if total is None else total + term
    return total


def _second(func: Callable, inputs: Any, v: Any, create_graph: bool, strict: bool, what: str) -> tuple:
    with enable_grad():
        xs, single = _inputs(inputs, create_graph)
        vs = _vectors(v, xs, what)
        y = _scalar(func, what)(*xs)
        first = _pull(y, xs, None, True, strict)
        second = _pull(_inner(first, vs), xs, None, create_graph, strict)
    return _finish((y,), True, create_graph), _unpack(second, single)


def hvp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return ``(func(inputs), H @ v)`` of a scalar function; v has the form of the inputs."""
    return _second(func, inputs, v, create_graph, strict, "hvp")


def vhp(func: Callable, inputs: Any, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple:
    """Return ``(func(inputs), v @ H)`` of a scalar function; the same numbers as :func:`hvp`, for H is symmetric."""
    return _second(func, inputs, v, create_graph, strict, "vhp")
