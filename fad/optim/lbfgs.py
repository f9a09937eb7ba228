"""L-BFGS: a quasi-Newton method that remembers the last steps (J. Nocedal, Math. Comp. 35, 1980)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from fad import tree
from fad.optim.optimizer import Optimizer, Schedule, _arrays, check_gradients
from fad.transforms.grad import value_and_grad


class LBFGS(Optimizer):
    """L-BFGS on all parameters as one vector.

    ``step(grads)`` takes one step of length `lr` (the first is shortened as in PyTorch, with which it then agrees for
    ``max_iter=1``); :meth:`minimize` searches along each direction for a step that lowers the loss enough.
    Its state depends on all parameters together, so there is no pure form.

    >>> w = np.array([3.0, -2.0])
    >>> value = LBFGS(w).minimize(lambda w: np.sum(w**2 + w**4))
    >>> bool(value < 1e-12)
    True
    """

    def __init__(self, params: Any, lr: Schedule = 1.0, history_size: int = 100):
        super().__init__(None, lr)
        self.params = params
        self.history_size = history_size
        self._groups = []
        self._pairs: list[tuple[Any, Any]] = []  # (step, change of the gradient)
        self._gradient: Any = None
        self._step: Any = None

    def _vector(self, x: Any) -> Any:
        flat = tree.ravel(x)[0]
        return np.conj(flat).view(flat.real.dtype) if flat.dtype.kind == "c" else flat

    def direction(self, g: Any) -> Any:
        """Return the direction of descent for a gradient vector, and remember the last step."""
        if self._gradient is not None:
            change = g - self._gradient
            if change @ self._step > 1e-10:
                self._pairs = [*self._pairs, (self._step, change)][-self.history_size :]
        self._gradient = g
        d = -g
        weights = []
        for s, y in reversed(self._pairs):
            a = (s @ d) / (y @ s)
            d = d - a * y
            weights.append(a)
        if self._pairs:
            s, y = self._pairs[-1]
            d = d * ((y @ s) / (y @ y))
        for (s, y), a in zip(self._pairs, reversed(weights), strict=True):
            d = d + s * (a - (y @ d) / (y @ s))
        return d

    def _move(self, step: Any) -> None:
        start = 0
        for x in _arrays(self.params):
            flat = x.reshape(-1)
            width = flat.size * (2 if x.dtype.kind == "c" else 1)
            part = step[start : start + width]
            x += (part.view(x.dtype) if x.dtype.kind == "c" else part).reshape(x.shape).astype(x.dtype)
            start += width

    def step(self, grads: Any) -> None:
        """Take one step, in place, along the direction for a gradient in the structure of the model."""
        check_gradients(_arrays(self.params), tree.leaves(grads), self.params, grads, None)
        g = self._vector(grads)
        d = self.direction(g)
        length = float(self.rate(self.steps))
        if self.steps == 0:
            length *= min(1.0, 1.0 / max(float(np.sum(np.abs(g))), 1e-300))
        self.steps += 1
        self._step = length * d
        self._move(self._step)

    def minimize(self, loss: Callable, *args: Any, steps: int = 200, tol: float = 1e-9) -> float:
        """Lower ``loss(params, *args)`` in place until its gradient is below `tol` or no step helps; return the value.

        Each step is halved until the loss falls by a ten-thousandth of what the slope promises (Armijo).
        """
        evaluate = value_and_grad(loss)
        value, grads = evaluate(self.params, *args)
        for _ in range(steps):
            g = self._vector(grads)
            if np.max(np.abs(g)) <= tol:
                break
            d = self.direction(g)
            if not d @ g < 0:
                self._pairs, d = [], -g
            length = 1.0 if self._pairs else min(1.0, 1.0 / float(np.sum(np.abs(g))))
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

    def init(self, params: Any) -> Any:
        raise TypeError("L-BFGS has no pure form: use LBFGS(params).step(grads) or .minimize(loss)")

    def update(self, grads: Any, state: Any, params: Any) -> Any:
        return self.init(params)
