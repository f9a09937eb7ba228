"""``autograd.grad`` and ``autograd.backward``."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.core.tracing.tracer import Tracer
from fad.eager.core.backward import as_owned, run_backward
from fad.eager.core.mode import OUTSIDE, WITH_HISTORY, NeedsHistory, inside, no_grad
from fad.eager.errors import BackwardError
from fad.eager.ops.shaping import stack
from fad.eager.tensor import Tensor, wrap
from fad.transforms.reverse.tape import Recorder


def as_list(x: Any) -> list:
    return [x] if isinstance(x, Tensor) or x is None else list(x)


def _gradients(given: Any, n: int) -> list:
    return [None] * n if given is None else as_list(given)


def backward(
    tensors: Any,
    grad_tensors: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    inputs: Any = None,
) -> None:
    """Run one backward pass from several tensors at once, adding into the leaves; as ``Tensor.backward``."""
    tensors = as_list(tensors)
    leaves = None if inputs is None else as_list(inputs)
    run_backward(tensors, _gradients(grad_tensors, len(tensors)), retain_graph, create_graph, leaves)


def grad(
    outputs: Any,
    inputs: Any,
    grad_outputs: Any = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool | None = None,
    is_grads_batched: bool = False,
    materialize_grads: bool = False,
) -> tuple:
    """Return the sum of gradients of `outputs` with respect to each of `inputs`, as a tuple; no ``.grad`` is touched.

    Parameters
    ----------
    outputs, inputs : Tensor or sequence of them
        Inputs may be leaves or computed tensors.
    grad_outputs : Tensor or sequence of them, optional
        What to multiply the Jacobians with; may be left out (or None) for single numbers.
    retain_graph, create_graph : bool
        As in ``Tensor.backward``.
    only_inputs : bool
        Always so, as in PyTorch, where the argument remains from earlier times.
    allow_unused : bool
        Return None for an input that the outputs do not depend on, instead of raising.
    is_grads_batched : bool
        `grad_outputs` have a leading axis of several such vectors, and the gradients get one.
    materialize_grads : bool
        Return zeros there.

    Raises
    ------
    BackwardError
        For an input that does not require grad, or that is not used.

    Examples
    --------
    >>> import fad.eager as torch
    >>> x = torch.tensor(3.0, requires_grad=True)
    >>> (g,) = grad(x**3, x, create_graph=True)
    >>> grad(g, x)
    (tensor(18.),)
    """
    outputs, inputs = as_list(outputs), as_list(inputs)
    for x in inputs:
        if x.node is None:
            if inside.get() != OUTSIDE and type(x.value) is Tracer and isinstance(x.value.owner, Recorder):
                raise NeedsHistory
            raise BackwardError(
                "a gradient was asked with respect to a tensor that does not require grad: call x.requires_grad_() "
                "before it is used"
            )
    if is_grads_batched:
        return _of_each(
            outputs, inputs, as_list(grad_outputs), retain_graph, create_graph, allow_unused, materialize_grads
        )
    found = run_backward(
        outputs, _gradients(grad_outputs, len(outputs)), retain_graph, create_graph, inputs, capture=True
    )
    if inside.get() == WITH_HISTORY and not create_graph:
        with no_grad():  # for the transform around it is a constant, as in PyTorch
            return _results(inputs, found, allow_unused, materialize_grads)
    return _results(inputs, found, allow_unused, materialize_grads)


def _of_each(outputs: list, inputs: list, batches: list, retain_graph: Any, create_graph: bool, *options: Any) -> tuple:
    """Return the gradients for one vector after the other, stacked: the graph is kept until the last."""
    n = len(batches[0])
    retain = [True] * (n - 1) + [retain_graph]
    allow_unused, materialize_grads = options
    rows = [
        grad(outputs, inputs, [g[i] for g in batches], keep, create_graph, True, allow_unused, False, materialize_grads)
        for i, keep in enumerate(retain)
    ]
    return tuple(None if column[0] is None else stack(column) for column in zip(*rows, strict=True))


def _results(inputs: list, found: list, allow_unused: bool | None, materialize_grads: bool) -> tuple:
    taken: set = set()
    result = []
    for i, (x, ct) in enumerate(zip(inputs, found, strict=True)):
        if ct is not None:
            result.append(wrap(ct if type(ct) is Tracer else as_owned(ct, taken)))
        elif materialize_grads:
            result.append(Tensor(np.zeros_like(x.value)))
        elif allow_unused:
            result.append(None)
        else:
            raise BackwardError(
                f"input {i} of autograd.grad was not used to compute the outputs. "
                "Pass allow_unused=True to get None for it, or materialize_grads=True for zeros"
            )
    return tuple(result)
