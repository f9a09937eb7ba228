"""The optimisers: each is its update rule and a docstring. Defaults and formulas are PyTorch's."""

from __future__ import annotations

from typing import Any

import numpy as np

from fad.optim.optimizer import Optimizer, Schedule


class SGD(Optimizer):
    """Gradient descent, with momentum and Nesterov's variant.

    ``v = momentum v + (1 - dampening) g``, ``p -= lr v`` (Nesterov: ``p -= lr (g + momentum v)``); v starts as g.

    >>> w = np.array([1.0])
    >>> SGD(w, lr=0.1).step(np.array([2.0])); w
    array([0.8])
    """

    def __init__(
        self,
        params: Any = None,
        lr: Schedule = 1e-3,
        momentum: float = 0.0,
        dampening: float = 0.0,
        weight_decay: float = 0.0,
        nesterov: bool = False,
    ):
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("nesterov needs momentum > 0 and dampening = 0")
        self.momentum = momentum
        self.dampening = dampening
        self.weight_decay = weight_decay
        self.nesterov = nesterov
        self.slots = 1 if momentum else 0
        self.reads_parameters = bool(weight_decay)
        super().__init__(params, lr)

    def rule(self, g, p, slots, t, lr):
        if self.weight_decay:
            g = g + self.weight_decay * p
        if not self.momentum:
            return lr * g, ()
        v = g if t == 1 else self.momentum * slots[0] + (1.0 - self.dampening) * g
        v = v.copy() if v is g and type(g) is np.ndarray else v
        return lr * (g + self.momentum * v if self.nesterov else v), (v,)


class Adam(Optimizer):
    """Adam: running means of g and g², corrected for their start at zero (D. Kingma and J. Ba, ICLR 2015).

    ``p -= lr m̂ / (√v̂ + eps)``; `weight_decay` adds ``weight_decay p`` to the gradient, as in PyTorch.

    >>> w = np.array([1.0])
    >>> Adam(w, lr=0.1).step(np.array([2.0])); w
    array([0.9])
    """

    slots = 2

    def __init__(
        self,
        params: Any = None,
        lr: Schedule = 1e-3,
        betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8,
        weight_decay: float = 0.0,
    ):
        if not all(0 <= b < 1 for b in betas):
            raise ValueError(f"betas must lie in [0, 1), not {betas}")
        self.betas = betas
        self.eps = eps
        self.weight_decay = weight_decay
        self.reads_parameters = bool(weight_decay)
        super().__init__(params, lr)

    def rule(self, g, p, slots, t, lr):
        if self.weight_decay:
            g = g + self.weight_decay * p
        return self.direction(g, slots, t, lr)

    def direction(self, g, slots, t, lr):
        a, b = self.betas
        m = a * slots[0] + (1.0 - a) * g
        v = b * slots[1] + (1.0 - b) * (g * g)
        # lr m̂ / (√v̂ + eps), with the corrections drawn into two numbers
        root = (1.0 - b**t) ** 0.5
        return (lr * root / (1.0 - a**t)) * m / (np.sqrt(v) + self.eps * root), (m, v)
