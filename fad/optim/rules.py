"""The first-order optimisers: each is its update rule and a docstring. Defaults and formulas are PyTorch's."""

from __future__ import annotations

import numpy as np

from fad.optim.optimizer import Optimizer, Schedule
from fad.typing import PyTree


class SGD(Optimizer):
    """Gradient descent, with momentum and Nesterov's variant.

    ``v = momentum v + (1 - dampening) g``, ``p -= lr v`` (Nesterov: ``p -= lr (g + momentum v)``); v starts as g.

    >>> w = np.array([1.0])
    >>> SGD(w, lr=0.1).step(np.array([2.0])); w
    array([0.8])
    """

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-3, momentum: float = 0.0, dampening: float = 0.0,
        weight_decay: float = 0.0, nesterov: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        if nesterov and (momentum <= 0 or dampening != 0):
            raise ValueError("nesterov needs momentum > 0 and dampening = 0")
        self.momentum = _check_momentum(momentum)
        self.dampening = dampening
        self.nesterov = nesterov
        self.slots = 1 if momentum else 0
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        if not self.momentum:
            return lr * g, ()
        v = g if t == 1 else self.momentum * slots[0] + (1.0 - self.dampening) * g
        v = v.copy() if v is g else v  # g is a buffer of the optimiser, rewritten at each step
        return lr * (g + self.momentum * v if self.nesterov else v), (v,)


class Adam(Optimizer):
    """Adam: running means of g and g², corrected for their start at zero (D. Kingma and J. Ba, ICLR 2015).

    ``p -= lr m̂ / (√v̂ + eps)``. With `amsgrad` the largest v so far takes the place of v (S. Reddi et al., ICLR 2018).

    >>> w = np.array([1.0])
    >>> Adam(w, lr=0.1).step(np.array([2.0])); w
    array([0.9])
    """

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        self.betas = _check(betas)
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
    """Adam with decoupled weight decay, ``p -= lr weight_decay p`` (I. Loshchilov and F. Hutter, ICLR 2019).

    >>> w = np.array(np.array([1.0]))
    >>> fad.optim.AdamW(w, lr=0.1, weight_decay=0.0).step(np.array(np.array([2.0]))); w
    array([0.9])
    """

    decoupled = True

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 1e-2, amsgrad: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        super().__init__(params, lr, betas, eps, weight_decay, amsgrad, maximize=maximize)


class RMSProp(Optimizer):
    """The gradient divided by the root of a running mean of g², with optional momentum; `centered` subtracts the mean².

    >>> w = np.array([1.0])
    >>> RMSProp(w, lr=0.01).step(np.array([2.0])); w
    array([0.9])
    """

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-2, alpha: float = 0.99, eps: float = 1e-8,
        weight_decay: float = 0.0, momentum: float = 0.0, centered: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        if not 0 <= alpha <= 1:
            raise ValueError(f"alpha must lie in [0, 1], not {alpha}")
        self.alpha = alpha
        self.eps = eps
        self.momentum = _check_momentum(momentum)
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
    """The gradient divided by the root of the sum of all g² so far (J. Duchi et al., JMLR 2011).

    >>> w = np.array(np.array([1.0]))
    >>> fad.optim.Adagrad(w, lr=0.1).step(np.array(np.array([2.0]))); w
    array([0.9])
    """

    slots = 1

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-2, lr_decay: float = 0.0, weight_decay: float = 0.0,
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


class Adadelta(Optimizer):
    """The gradient times the ratio of the roots of running means, of the steps so far and of g² (M. Zeiler, 2012).

    >>> w = np.array([1.0])
    >>> Adadelta(w, eps=1.0).step(np.array([2.0])); w.round(4)
    array([-0.6903])
    """

    slots = 2

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1.0, rho: float = 0.9, eps: float = 1e-6,
        weight_decay: float = 0.0, *, maximize: bool = False,
    ):  # fmt: skip
        if not 0 <= rho <= 1:
            raise ValueError(f"rho must lie in [0, 1], not {rho}")
        self.rho = rho
        self.eps = eps
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        v = self.rho * slots[0] + (1.0 - self.rho) * (g * g)
        step = np.sqrt(slots[1] + self.eps) / np.sqrt(v + self.eps) * g
        return lr * step, (v, self.rho * slots[1] + (1.0 - self.rho) * (step * step))


class Adamax(Optimizer):
    """Adam with a decaying maximum of the size of g in place of the root of v (D. Kingma and J. Ba, ICLR 2015).

    >>> w = np.array([1.0])
    >>> Adamax(w, lr=0.1).step(np.array([2.0])); w
    array([0.9])
    """

    slots = 2

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.0, *, maximize: bool = False,
    ):  # fmt: skip
        self.betas = _check(betas)
        self.eps = eps
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        a, b = self.betas
        m = a * slots[0] + (1.0 - a) * g
        largest = np.maximum(b * slots[1], np.abs(g) + self.eps)
        return (lr / (1.0 - a**t)) * m / largest, (m, largest)


class NAdam(Optimizer):
    """Adam with Nesterov's look ahead, whose momentum grows with the steps (T. Dozat, ICLR workshop 2016).

    >>> w = np.array([1.0])
    >>> NAdam(w, lr=0.1).step(np.array([2.0])); w.round(3)
    array([0.894])
    """

    slots = 3  # m, v, and 1 - μ₁ ... μ_t, which starts at zero as slots do

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 2e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.0, momentum_decay: float = 4e-3,
        decoupled_weight_decay: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        self.betas = _check(betas)
        self.eps = eps
        self.momentum_decay = momentum_decay
        self.decoupled = self.decoupled_weight_decay = decoupled_weight_decay
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        a, b = self.betas
        mu, ahead = (a * (1.0 - 0.5 * 0.96 ** (n * self.momentum_decay)) for n in (t, t + 1))
        m = a * slots[0] + (1.0 - a) * g
        v = b * slots[1] + (1.0 - b) * (g * g)
        rest = mu * slots[2] + (1.0 - mu)
        step = g * ((1.0 - mu) / rest) + m * (ahead / (ahead * rest + (1.0 - ahead)))
        return lr * step / (np.sqrt(v) * (1.0 - b**t) ** -0.5 + self.eps), (m, v, rest)


class RAdam(Optimizer):
    """Adam that follows the mean alone until enough is known of the variance (L. Liu et al., ICLR 2020).

    >>> w = np.array([1.0])
    >>> RAdam(w, lr=0.1).step(np.array([2.0])); w
    array([0.8])
    """

    slots = 2

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-3, betas: tuple[float, float] = (0.9, 0.999),
        eps: float = 1e-8, weight_decay: float = 0.0, decoupled_weight_decay: bool = False, *, maximize: bool = False,
    ):  # fmt: skip
        self.betas = _check(betas)
        self.eps = eps
        self.decoupled = self.decoupled_weight_decay = decoupled_weight_decay
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        a, b = self.betas
        m = a * slots[0] + (1.0 - a) * g
        v = b * slots[1] + (1.0 - b) * (g * g)
        most = 2.0 / (1.0 - b) - 1.0
        known = most - 2.0 * t * b**t / (1.0 - b**t)  # of how many gradients v is a mean, as it were
        step = (lr / (1.0 - a**t)) * m
        if known > 5.0:
            variance = (known - 4.0) * (known - 2.0) * most / ((most - 4.0) * (most - 2.0) * known)
            step = (variance * (1.0 - b**t)) ** 0.5 * step / (np.sqrt(v) + self.eps)
        return step, (m, v)


class Rprop(Optimizer):
    """Steps of sizes of their own, which grow while the sign of the gradient stays (M. Riedmiller and H. Braun, 1993).

    For gradients of the whole data; the first steps have size `lr`. A size is multiplied by ``etas[1]``, or by
    ``etas[0]`` where the sign changed, within `step_sizes`; there the gradient counts as zero.

    >>> w = np.array([1.0])
    >>> Rprop(w, lr=0.1).step(np.array([2.0])); w
    array([0.9])
    """

    slots = 2  # the gradient, and the size of the step, of which zero is none yet

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-2, etas: tuple[float, float] = (0.5, 1.2),
        step_sizes: tuple[float, float] = (1e-6, 50.0), *, maximize: bool = False,
    ):  # fmt: skip
        if not 0 < etas[0] < 1 < etas[1]:
            raise ValueError(f"etas must be one number in (0, 1) and one above 1, not {etas}")
        self.etas = etas
        self.step_sizes = step_sizes
        super().__init__(params, lr, 0.0, maximize)

    def rule(self, g, p, slots, t, lr):
        before, size = slots
        size = np.where(size == 0.0, lr, size)
        agreement = g * before
        factor = np.where(agreement > 0.0, self.etas[1], np.where(agreement < 0.0, self.etas[0], 1.0))
        size = np.clip(size * factor, *self.step_sizes).astype(g.dtype)
        g = np.where(agreement < 0.0, 0.0, g)
        return np.sign(g) * size, (g, size)


class ASGD(Optimizer):
    """Gradient descent with a mean of the parameters, from step `t0` on (B. Polyak and A. Juditsky, 1992).

    ``p -= η (g + lambd p)`` with ``η = lr / (1 + lambd lr (t - 1))^alpha``. The mean is in the first slot of the state.

    >>> w = np.array([1.0])
    >>> ASGD(w, lr=0.1, lambd=0.0).step(np.array([2.0])); w
    array([0.8])
    """

    slots = 1
    reads_parameters = True

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-2, lambd: float = 1e-4, alpha: float = 0.75,
        t0: float = 1e6, weight_decay: float = 0.0, *, maximize: bool = False,
    ):  # fmt: skip
        self.lambd = lambd
        self.alpha = alpha
        self.t0 = t0
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        eta = lr / (1.0 + self.lambd * lr * (t - 1)) ** self.alpha
        step = eta * g + (eta * self.lambd) * p
        share = 1.0 / max(1.0, t - 1 - self.t0)
        return step, (slots[0] + share * (p - step - slots[0]),)


class Lion(Optimizer):
    """The sign of a running mean of the gradient, with decoupled weight decay (X. Chen et al., NeurIPS 2023).

    >>> w = np.array([1.0])
    >>> Lion(w, lr=0.1).step(np.array([2.0])); w
    array([0.9])
    """

    slots = 1
    decoupled = True

    def __init__(
        self, params: PyTree | None = None, lr: Schedule = 1e-4, betas: tuple[float, float] = (0.9, 0.99),
        weight_decay: float = 0.0, *, maximize: bool = False,
    ):  # fmt: skip
        self.betas = _check(betas)
        super().__init__(params, lr, weight_decay, maximize)

    def rule(self, g, p, slots, t, lr):
        a, b = self.betas
        m = slots[0]
        return lr * np.sign(a * m + (1.0 - a) * g), (b * m + (1.0 - b) * g,)


def _check(betas: tuple[float, float]) -> tuple[float, float]:
    if not all(0 <= b < 1 for b in betas):
        raise ValueError(f"betas must lie in [0, 1), not {betas}")
    return betas


def _check_momentum(momentum: float) -> float:
    if not momentum >= 0:
        raise ValueError(f"momentum must be a number >= 0, not {momentum!r}")
    return momentum
