"""L-BFGS: a quasi-Newton method that remembers the last steps (J. Nocedal, Math. Comp. 35, 1980)."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.optim.optimizer import Optimizer, Schedule, _arrays, check_gradients
from fad.transforms.grad import value_and_grad

_CURVED = 1e-10  # a step is remembered if the gradient changed by more than this along it


def two_loop(g: Any, pairs: Sequence[tuple], scale: Any) -> Any:
    """Return ``-H g`` for the inverse Hessian H that ``(step s, change of the gradient y, 1 / s·y)`` tell of, and that
    is `scale` without them; a pair of which the last is zero tells nothing."""
    d = -g
    weights = []
    for s, y, rho in reversed(pairs):
        a = rho * (s @ d)
        d = d - a * y
        weights.append(a)
    d = d * scale
    for (s, y, rho), a in zip(pairs, reversed(weights), strict=True):
        d = d + s * (a - rho * (y @ d))
    return d


def as_vector(leaves: list) -> Any:
    """Return all leaves as one real vector; of a complex gradient, the direction in which its parts grow."""
    parts = []
    for g in leaves:
        parts += [g] if g.dtype.kind != "c" else [g.real, -g.imag]
    return np.concatenate([np.reshape(x, (-1,)) for x in parts])


def as_leaves(vector: Any, like: list) -> list:
    """Return the pieces of a vector of :func:`as_vector` in the shapes and dtypes of `like`."""
    found, start = [], 0

    def take(shape: tuple, size: int) -> Any:
        nonlocal start
        start += size
        return np.reshape(vector[start - size : start], shape)

    for x in like:
        part = take(x.shape, x.size)
        part = part if x.dtype.kind != "c" else part + 1j * take(x.shape, x.size)
        found.append(part if part.dtype == x.dtype else part.astype(x.dtype))
    return found


class LBFGS(Optimizer):
    """L-BFGS on all parameters as one vector.

    ``step(grads)`` takes one step of length `lr` (the first is shortened as in PyTorch, with which it then agrees for
    ``max_iter=1``); :meth:`minimize` searches along each direction for a step that lowers the loss enough.
    The pure form takes the same steps, with a state of fixed shapes: vectors of length n, the number of parameters,
    and matrices (history_size, n). So it runs in ``fad.scan`` and under ``jit``, `vmap` and `grad`.

    >>> w = np.array([3.0, -2.0])
    >>> value = LBFGS(w).minimize(lambda w: np.sum(w**2 + w**4))
    >>> bool(value < 1e-12)
    True
    """

    def __init__(self, params: Any = None, lr: Schedule = 1.0, history_size: int = 100):
        super().__init__(None, lr)
        self.params = params
        self.history_size = history_size
        self._groups = []
        self._pairs: list[tuple[Any, Any]] = []  # (step, change of the gradient)
        self._gradient: Any = None
        self._step: Any = None

    def direction(self, g: Any) -> Any:
        """Return the direction of descent for a gradient vector, and remember the last step."""
        if self._gradient is not None:
            change = g - self._gradient
            if change @ self._step > _CURVED:
                self._pairs = [*self._pairs, (self._step, change)][-self.history_size :]
        self._gradient = g
        s, y = self._pairs[-1] if self._pairs else (g, g)
        return two_loop(g, [(s, y, 1.0 / (y @ s)) for s, y in self._pairs], (y @ s) / (y @ y) if self._pairs else 1.0)

    def _move(self, step: Any) -> None:
        arrays = _arrays(self.params)
        for x, part in zip(arrays, as_leaves(step, arrays), strict=True):
            x += part

    def step(self, grads: Any) -> None:
        """Take one step, in place, along the direction for a gradient in the structure of the model."""
        check_gradients(_arrays(self.params), tree.leaves(grads), self.params, grads, None)
        self.advance(as_vector(tree.leaves(grads)))

    @property
    def last_step(self) -> Any:
        """The last step, as a vector; None before the first."""
        return self._step

    def advance(self, g: Any, steepest: float = math.inf) -> float | None:
        """Take one step for a gradient vector and return the slope along it; None, and no step, if the slope is not
        below `steepest`."""
        d = self.direction(g)
        slope = float(d @ g)
        self._step = float(self.rate(self.steps) * _shortened(self.steps, g)) * d
        self.steps += 1
        if slope > steepest:
            return None
        self._move(self._step)
        return slope

    def minimize(self, loss: Callable, *args: Any, steps: int = 200, tol: float = 1e-9) -> float:
        """Lower ``loss(params, *args)`` in place until its gradient is below `tol` or no step helps; return the value.

        Each step is halved until the loss falls by a ten-thousandth of what the slope promises (Armijo).
        """
        evaluate = value_and_grad(loss)
        value, grads = evaluate(self.params, *args)
        for _ in range(steps):
            g = as_vector(tree.leaves(grads))
            if np.max(np.abs(g)) <= tol:
                break
            d = self.direction(g)
            if not d @ g < 0:
                self._pairs, d = [], -g
            length = 1.0 if self._pairs else float(_shortened(0, g))
            found = self._search(evaluate, args, value, d, float(d @ g), length)
            if found is None:
                break
            value, grads = found
            self.steps += 1
        return float(value)

    def _search(self, evaluate: Callable, args: tuple, value: Any, d: Any, slope: float, length: float) -> Any:
        for _ in range(40):
            self._step = length * d
            self._move(self._step)
            new, grads = evaluate(self.params, *args)
            if new <= value + 1e-4 * length * slope:
                return new, grads
            self._move(-self._step)
            length *= 0.5
        return None

    def state_dict(self) -> dict[str, Any]:
        """Return the optimiser's state: the number of steps, and the remembered steps and gradients."""
        last = [] if self._gradient is None else [self._gradient.copy(), self._step.copy()]
        return {"steps": np.asarray(self.steps), "pairs": [[s.copy(), y.copy()] for s, y in self._pairs], "last": last}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        """Take over a state of :meth:`state_dict`."""
        self.steps = int(state["steps"])
        self._pairs = [(np.array(s), np.array(y)) for s, y in state["pairs"]]
        last = state["last"]
        self._gradient, self._step = (np.array(last[0]), np.array(last[1])) if len(last) else (None, None)

    # --- pure -----------------------------------------------------------------------------------------------------

    def init(self, params: Any) -> dict[str, Any]:
        """Return the state for a tree of parameters, for :meth:`update`."""
        none = np.zeros_like(as_vector(tree.leaves(params)))
        rows = np.zeros_like(none, shape=(self.history_size, len(none)))
        rho = np.zeros_like(none, shape=(self.history_size,))
        return {"steps": 0, "s": rows, "y": rows, "rho": rho, "gradient": none, "step": none}

    def update(self, grads: Any, state: dict[str, Any], params: Any) -> tuple[Any, dict[str, Any]]:
        """Return ``(new parameters, new state)`` after the step that :meth:`step` takes; pure, and differentiable."""
        ps = tree.leaves(params)
        gs = tree.leaves(grads)
        check_gradients(ps, gs, params, grads, None)
        g = as_vector(gs)
        s, y, rho = _remembered(state, g)
        square = y[-1] @ y[-1]
        known = rho[-1] > 0.0
        scale = np.where(known, 1.0 / np.where(known, rho[-1] * square, 1.0), 1.0)
        d = two_loop(g, [(s[i], y[i], rho[i]) for i in range(self.history_size)], scale)
        step = self.rate(state["steps"]) * _shortened(state["steps"], g) * d
        found = iter([p + part for p, part in zip(ps, as_leaves(step, ps), strict=True)])
        new = {"steps": state["steps"] + 1, "s": s, "y": y, "rho": rho, "gradient": g, "step": step}
        return tree.map(lambda _: next(found), params), new


def _shortened(steps: Any, g: Any) -> Any:
    """Return the factor by which the first step, whose length nothing tells, is shortened."""
    first = np.minimum(1.0, 1.0 / np.maximum(np.sum(np.abs(g)), 1e-30))
    return np.where(steps == 0, first, 1.0)


def _remembered(state: dict[str, Any], g: Any) -> tuple:
    """Return the pairs of a pure state with the last step taken in, if the gradient says something of it."""
    change = g - state["gradient"]
    product = change @ state["step"]
    curved = product > _CURVED
    new = (state["step"], change, 1.0 / np.where(curved, product, 1.0))
    old = (state["s"], state["y"], state["rho"])
    return tuple(np.where(curved, np.concatenate([x[1:], v[None]]), x) for x, v in zip(old, new, strict=True))
