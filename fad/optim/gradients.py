"""What is done with gradients and weights around an optimiser's step: clipping, and averages of weights."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

from fad import tree
from fad.nn.structure import leaves_of
from fad.typing import Array, PyTree


def global_norm(grads: PyTree) -> Array:
    """Return the Euclidean norm of all leaves together.

    >>> global_norm([np.array([3.0]), np.array([4.0])])
    np.float64(5.0)
    """
    return np.sqrt(sum(np.sum((g * np.conj(g)).real) for g in tree.leaves(grads)))


def clip_by_global_norm(grads: PyTree, max_norm: float) -> tuple[Any, Any]:
    """Return ``(gradients, norm)``: all leaves scaled by one factor so that their norm together is at most `max_norm`.

    Raises FloatingPointError if the norm is not finite: no factor would mend that.

    >>> clip_by_global_norm([np.array([3.0]), np.array([4.0])], 1.0)
    ([array([0.6]), array([0.8])], np.float64(5.0))
    """
    norm = global_norm(grads)
    if not np.isfinite(norm):
        raise FloatingPointError(
            f"the norm of the gradient is {norm}, which cannot be clipped; fad.debug.nans finds the cause"
        )
    if norm <= max_norm:
        return grads, norm
    factor = max_norm / norm.astype(np.float64)  # no float, which examples in a vmap have not
    return tree.map(lambda g: g * factor.astype(np.result_type(g).type(0).real.dtype), grads), norm


def clip_by_value(grads: PyTree, limit: float) -> PyTree:
    """Return the gradients with each element brought into [-limit, limit]; of complex numbers, both parts.

    >>> fad.optim.clip_by_value([np.array([3.0, -0.5])], 1.0)
    [array([ 1. , -0.5])]
    """

    def clip(g: Any) -> Any:
        if np.iscomplexobj(g):
            return np.clip(g.real, -limit, limit) + 1j * np.clip(g.imag, -limit, limit)
        return np.clip(g, -limit, limit)

    return tree.map(clip, grads)


class EMA:
    """An exponential moving average of a model's weights; ``ema.model`` is an independent model that holds it.

    ``ema.update()`` after each step: ``average = decay average + (1 - decay) weights``; buffers and whole
    numbers are copied.

    >>> w = [np.array([0.0])]
    >>> ema = EMA(w, decay=0.5)
    >>> w[0] += 1.0
    >>> ema.update()
    >>> ema.model
    [array([0.5])]
    """

    def __init__(self, model: PyTree, decay: float = 0.999):
        if not 0.0 <= decay <= 1.0:
            raise ValueError(f"decay must lie in [0, 1], not {decay}")
        for x in leaves_of(model):
            if not hasattr(x, "__setitem__"):
                raise TypeError(
                    f"an EMA changes its average in place, which a {type(x).__name__} does not allow: use np.array(x)"
                )
        self.source = model
        self.model = copy.deepcopy(model)
        self.decay = decay

    def __repr__(self) -> str:
        return f"<fad.optim.EMA of {type(self.source).__name__}, decay={self.decay}>"

    def update(self) -> None:
        """Take the source's present weights into the average."""
        pairs = zip(leaves_of(self.model), leaves_of(self.source), strict=True)
        for mean, x in {id(mean): (mean, x) for mean, x in pairs}.values():  # an array in two places is one
            if mean.dtype.kind in "fc":
                mean *= self.decay
                mean += (1.0 - self.decay) * x
            else:
                mean[...] = x
        if hasattr(self.model, "copy_buffers"):
            self.model.copy_buffers(self.source)
