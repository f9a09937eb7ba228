"""autograd.misc.optimizers: gradient descent on nested parameters, with autograd's signatures.

``grad`` is a function ``(params, iteration) -> gradient`` of the structure of the parameters; ``callback``, if given,
is called with ``(params, iteration, gradient)``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree

__all__ = ["adam", "rmsprop", "sgd"]


def _descend(grad: Callable, x0: Any, callback: Callable | None, num_iters: int, step: Callable) -> Any:
    """Run ``x, state = step(x, g, i, state)`` on the flattened parameters."""
    x, unflatten = tree.ravel(x0)
    state: Any = None
    for i in range(num_iters):
        gradient = grad(unflatten(x), i)
        g, _ = tree.ravel(gradient)
        if callback:
            callback(unflatten(x), i, unflatten(g))
        x, state = step(x, g, i, state)
    return unflatten(x)


def sgd(grad, x0, callback=None, num_iters=200, step_size=0.1, mass=0.9):
    """Descend with momentum.

    >>> abs(float(sgd(lambda x, i: 2 * x, 1.0, num_iters=400))) < 1e-6
    True
    """

    def step(x, g, i, velocity):
        velocity = mass * (np.zeros_like(x) if velocity is None else velocity) - (1.0 - mass) * g
        return x + step_size * velocity, velocity

    return _descend(grad, x0, callback, num_iters, step)


def rmsprop(grad, x0, callback=None, num_iters=100, step_size=0.1, gamma=0.9, eps=10**-8):
    """Descend by root mean squared propagation.

    >>> abs(float(rmsprop(lambda x, i: 2 * x, 1.0, step_size=0.01, num_iters=300))) < 0.02
    True
    """

    def step(x, g, i, average):
        average = (np.ones_like(x) if average is None else average) * gamma + g**2 * (1 - gamma)
        return x - step_size * g / (np.sqrt(average) + eps), average

    return _descend(grad, x0, callback, num_iters, step)


def adam(grad, x0, callback=None, num_iters=100, step_size=0.001, b1=0.9, b2=0.999, eps=10**-8):
    """Descend by Adam (https://arxiv.org/abs/1412.6980).

    >>> abs(float(adam(lambda x, i: 2 * x, 1.0, num_iters=500, step_size=0.05))) < 1e-3
    True
    """

    def step(x, g, i, state):
        m, v = (np.zeros_like(x), np.zeros_like(x)) if state is None else state
        m = (1 - b1) * g + b1 * m
        v = (1 - b2) * (g**2) + b2 * v
        return x - step_size * (m / (1 - b1 ** (i + 1))) / (np.sqrt(v / (1 - b2 ** (i + 1))) + eps), (m, v)

    return _descend(grad, x0, callback, num_iters, step)
