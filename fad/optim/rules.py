"""The first-order optimisers: each is its update rule and a docstring. Defaults and formulas are PyTorch's."""

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
        self, params: Any = None, lr: Schedule = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("nesterov needs momentum > 0 and dampening = 0")
        self.momentum = momentum
        self.dampening = dampening
        self.nesterov = nesterov
        self.slots = 1 if momentum else 0
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        if not self.momentum:
            return lr * g, ()
        v = g if t == 1 else self.momentum * slots[0] + (1.0 - self.dampening) * g
        v = v.copy() if v is g else v  # g is a buffer of the optimiser, written anew at each step
        return lr * (g + self.momentum * v if self.nesterov else v), (v,)


class Adam(Optimizer):
    """Adam: running means of g and g², corrected for their start at zero (D. Kingma and J. Ba, ICLR 2015).

    ``p -= lr m̂ / (√v̂ + eps)``. With `amsgrad` the largest v so far takes the place of v (S. Reddi et al., ICLR 2018).

    >>> w = np.array([1.0])
    >>> Adam(w, lr=0.1).step(np.array([2.0])); w
    array([0.9])
    """

    def __init__(
        self, params: Any = None, lr: Schedule = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        self.betas = _checked(betas)
        self.eps = eps
        self.amsgrad = amsgrad
        self.slots = 3 if amsgrad else 2
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        a, b = self.betas
        m = a * slots[0] + (1.0 - a) * g
        v = b * slots[1] + (1.0 - b) * (g * g)
        new = (m, v)
        if self.amsgrad:
            v = np.maximum(slots[2], v)
            new = (*new, v)
        # lr m̂ / (√v̂ + eps), with the corrections drawn into two numbers
        root = (1.0 - b**t) ** 0.5
        return (lr * root / (1.0 - a**t)) * m / (np.sqrt(v) + self.eps * root), new


class AdamW(Adam):
    """Adam with decoupled weight decay, ``p -= lr weight_decay p`` (I. Loshchilov and F. Hutter, ICLR 2019)."""

    decoupled = True

    def __init__(
        self, params: Any = None, lr: Schedule = 1e-3, betas: tuple[float, float] = (0.9, 0.999), eps: float = 1e-8,
        weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class RMSProp(Optimizer):
    """The gradient divided by the root of a running mean of g², with optional momentum; `centered` subtracts the mean².

    >>> w = np.array([1.0])
    >>> RMSProp(w, lr=0.01).step(np.array([2.0])); w
    array([0.9])
    """

    def __init__(
        self, params: Any = None, lr: Schedule = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        self.alpha = alpha
        self.eps = eps
        self.momentum = momentum
        self.centered = centered
        self.slots = 1 + bool(momentum) + centered
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        v, *rest = slots
        v = self.alpha * v + (1.0 - self.alpha) * (g * g)
        new = [v]
        if self.centered:
            mean = self.alpha * rest.pop(0) + (1.0 - self.alpha) * g
            new.append(mean)
            v = v - mean * mean
        step = g / (np.sqrt(v) + self.eps)
        if self.momentum:
            step = self.momentum * rest[0] + step
            new.append(step)
        return lr * step, tuple(new)


class Adagrad(Optimizer):
    """The gradient divided by the root of the sum of all g² so far (J. Duchi et al., JMLR 2011)."""

    slots = 1

    def __init__(
        self, params: Any = None, lr: Schedule = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
        initial_accumulator_value: float = 0.0, eps: float = 1e-10, *, maximize: bool = False,
    ):  # fmt: skip
        self.lr_decay = lr_decay
        self.initial_accumulator_value = initial_accumulator_value
        self.eps = eps
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        total = slots[0] + g * g
        start = self.initial_accumulator_value  # the slots start at zero; this is added where they are read
        return (lr / (1.0 + (t - 1) * self.lr_decay)) * g / (np.sqrt(total + start) + self.eps), (total,)


class Lion(Optimizer):
    """The sign of a running mean of the gradient, with decoupled weight decay (X. Chen et al., NeurIPS 2023).

    >>> w = np.array([1.0])
    >>> Lion(w, lr=0.1).step(np.array([2.0])); w
    array([0.9])
    """

    slots = 1
    decoupled = True

    def __init__(
        self, params: Any = None, lr: Schedule = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0, *, maximize: bool = False,
    ):  # fmt: skip
        self.betas = _checked(betas)
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        a, b = self.betas
        m = slots[0]
        return lr * np.sign(a * m + (1.0 - a) * g), (b * m + (1.0 - b) * g,)


def _checked(betas: tuple[float, float]) -> tuple[float, float]:
    if not all(0 <= b < 1 for b in betas):
        raise ValueError(f"betas must lie in [0, 1), not {betas}")
    return betas
