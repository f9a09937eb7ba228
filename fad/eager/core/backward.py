"""``Tensor.backward``: one pass over the records, from seeds at the outputs to gradients at the leaves."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.backends import is_numpy_scalar
from fad.core.primitives.cotangent import densify
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.views import is_writeable
from fad.eager.core.engine import EAGER, EagerTrace, Sweep, conjugate_gradient, lift
from fad.eager.core.mode import without_recording
from fad.eager.core.records import BIRTH, LEAF, note_change
from fad.eager.errors import BackwardError, ImplicitGradientError
from fad.eager.tensor import Tensor, add_methods, lower, wrap
from fad.errors import ShapeMismatchError


def backward(
    self: Tensor, gradient: Any = None, retain_graph: bool | None = None, create_graph: bool = False, inputs: Any = None
) -> None:
    """Add the derivatives of this tensor to the ``.grad`` of every leaf that it depends on.

    Parameters
    ----------
    gradient : Tensor, optional
        What to multiply the Jacobian with from the left; may be left out for a single number.
    retain_graph : bool, optional
        Keep the saved values for another pass; by default if `create_graph`.
    create_graph : bool
        Record the pass itself, for higher derivatives.
    inputs : Tensor or sequence of them, optional
        The leaves to add to, instead of all.

    Raises
    ------
    ImplicitGradientError, BackwardError
    """
    leaves = None if inputs is None else [inputs] if isinstance(inputs, Tensor) else list(inputs)
    run_backward([self], [gradient], retain_graph, create_graph, leaves)


add_methods(backward=backward)


def run_backward(
    outputs: list,
    gradients: list,
    retain_graph: bool | None,
    create_graph: bool,
    inputs: list | None,
    capture: bool = False,
) -> list:
    """Run one backward pass; return the cotangents of `inputs` if `capture`, else add into the leaves."""
    keep = create_graph if retain_graph is None else retain_graph
    wanted = None if inputs is None else {_find_wanted(x)[BIRTH] for x in inputs}
    sweep = Sweep(keep, wanted)
    traced = any(type(y.value) is Tracer for y in outputs)
    trace = (EagerTrace() if traced else EAGER) if create_graph else None
    given = []
    for y, gradient in zip(outputs, gradients, strict=True):
        ct = conjugate_gradient(_seed(y, gradient, trace))
        given.append(ct)
        sweep.seed(y.node, ct)
    if trace is None:
        without_recording(sweep.run)  # hooks and custom functions record nothing
    else:
        sweep.run_traced(lambda v, r: lift(v, r, trace))
    if capture and inputs is not None:
        found = [sweep.found.get(x.node[BIRTH]) for x in inputs]
        return [None if ct is None else conjugate_gradient(ct) for ct in found]
    taken = {id(base(g)) for g in given}
    pairs = sweep.leaves if inputs is None else [(x.node, sweep.found.get(x.node[BIRTH])) for x in inputs]
    for rec, ct in pairs:
        if ct is not None:
            _add_to_leaf(rec, conjugate_gradient(densify(ct)), taken)
    return []


def _find_wanted(x: Tensor) -> list:
    if x.node is None:
        raise BackwardError(
            "a gradient was asked with respect to a tensor that does not require grad: x.requires_grad_()"
        )
    return x.node


def _seed(y: Tensor, gradient: Any, trace: Any) -> Any:
    if y.node is None:
        raise BackwardError(
            "backward() on a tensor that does not require grad and has no history. Something it depends on must be "
            "made with requires_grad=True, outside no_grad() and without detach()"
        )
    if gradient is None:
        if y.value.size != 1:
            raise ImplicitGradientError(
                f"the gradient of a tensor of shape {tuple(y.shape)} needs a vector to multiply the Jacobian with: "
                "write y.backward(torch.ones_like(y)) or y.sum().backward()"
            )
        if y.dtype.kind == "c":
            raise ImplicitGradientError(
                "a complex number has no gradient: take its real part or its size, y.abs(), or give a vector"
            )
        return np.ones_like(y.value)[()] if is_numpy_scalar(y.value) else np.ones_like(y.value)
    if not isinstance(gradient, Tensor):
        gradient = Tensor(np.asarray(gradient, dtype=y.dtype))
    if gradient.shape != y.shape:
        raise ShapeMismatchError(
            f"the gradient given to backward() must have the shape {tuple(y.shape)} of the tensor, "
            f"not {tuple(gradient.shape)}"
        )
    value = gradient.value if gradient.dtype == y.dtype else gradient.value.astype(y.dtype)
    return value if trace is None or gradient.node is None else lift(value, gradient.node, trace)


def base(x: Any) -> Any:
    while type(x) is np.ndarray and x.base is not None:
        x = x.base
    return x


def as_owned(ct: Any, taken: set) -> Any:
    """Return a cotangent as an array that shares memory with nothing."""
    if type(ct) is np.ndarray and (ct.base is not None or not is_writeable(ct) or id(ct) in taken):
        ct = ct.copy()
    elif is_numpy_scalar(ct):
        ct = np.asarray(ct)
    taken.add(id(ct))
    return ct


def _add_to_leaf(rec: list, ct: Any, taken: set) -> None:
    leaf = rec[6]() if rec[0] == LEAF else None
    if leaf is None:
        return
    old = getattr(leaf, "_grad", None)
    if old is None:
        leaf._grad = wrap(as_owned(ct, taken))
    elif type(ct) is Tracer or old.node is not None or type(old.value) is not np.ndarray:
        leaf._grad = wrap(lower(old) + ct)
    else:
        old.value += ct
        note_change(old.value)
