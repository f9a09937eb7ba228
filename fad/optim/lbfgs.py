"""L-BFGS: a quasi-Newton method that remembers the last steps (J. Nocedal, Math. Comp. 35, 1980)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from fad import tree
from fad.optim.optimizer import Optimizer, Schedule, _arrays, check_gradients
from fad.optim.wolfe import Point, strong_wolfe
from fad.transforms.grad import value_and_grad
from fad.typing import PyTree

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
    for g in map(_with_dtype, leaves):
        parts += [g] if g.dtype.kind != "c" else [g.real, -g.imag]
    return np.concatenate([np.reshape(x, (-1,)) for x in parts]) if parts else np.zeros(0)


def _with_dtype(x: Any) -> Any:
    return x if hasattr(x, "dtype") else np.asarray(x)


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
    ``max_iter=1``); :meth:`minimize` searches along each direction for a step after which the loss is low and flat
    enough (the strong Wolfe conditions).
    The pure form takes the same steps, with a state of fixed shapes: vectors of length n, the number of parameters,
    and matrices (history_size, n). So it runs in ``fad.scan`` and under ``jit``, `vmap` and `grad`.

    >>> w = np.array([3.0, -2.0])
    >>> value = LBFGS(w).minimize(lambda w: np.sum(w**2 + w**4))
    >>> bool(value < 1e-12)
    True
    """

    def __init__(self, params: PyTree | None = None, lr: Schedule = 1.0, history_size: int = 100):
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

    def step(self, grads: Any) -> None:
        """Take one step, in place, along the direction for a gradient in the structure of the model."""
        check_gradients(_arrays(self.params), tree.leaves(grads), self.params, grads, None)
        d, length, _ = self.aim(as_vector(tree.leaves(grads)))
        self.go(length, d)

    @property
    def last_step(self) -> Any:
        """The last step, as a vector; None before the first."""
        return self._step

    def aim(self, g: Any) -> tuple[Any, float, float]:
        """Return the direction for a gradient vector, the length of the step to take or to try first, and the slope."""
        d = self.direction(g)
        length = float(self.rate(self.steps) * _shorten(self.steps, g))
        self._step = length * d
        self.steps += 1
        return d, length, float(d @ g)

    def go(self, length: float, d: Any) -> None:
        """Take a step along a direction, in place, and remember it."""
        self._step = length * d
        arrays = _arrays(self.params)
        for x, part in zip(arrays, as_leaves(self._step, arrays), strict=True):
            x += part

    def search(
        self, evaluate: Callable, start: Point, length: float, d: Any, *, tolerance: float = 1e-9, most: int = 25
    ) -> Point:
        """Go along a direction, in place, to a point that fulfils the strong Wolfe conditions, and return it.

        ``evaluate()`` returns the loss and its gradient vector at the present parameters. `length` is what is tried
        first, and `most` how many points after that; see ``fad.optim.wolfe.strong_wolfe``.
        """
        arrays = _arrays(self.params)
        before = [x.copy() for x in arrays]

        def at(length: float) -> Point:
            self.go(length, d)
            value, g = evaluate()
            for x, old in zip(arrays, before, strict=True):
                x[...] = old
            return Point(length, float(value), float(g @ d), g)

        size = float(np.max(np.abs(d)))
        found = strong_wolfe(at, start, length, size=size, tolerance=tolerance, most=most)
        self.go(found.length, d)
        return found

    def minimize(self, loss: Callable, *args: Any, steps: int = 200, tol: float = 1e-9) -> float:
        """Lower ``loss(params, *args)`` in place until its gradient is below `tol` or no step helps; return it."""
        both = value_and_grad(loss)

        def evaluate() -> tuple[float, Any]:
            value, grads = both(self.params, *args)
            return float(value), as_vector(tree.leaves(grads))

        value, g = evaluate()
        for _ in range(steps):
            if np.max(np.abs(g), initial=0.0) <= tol:
                break
            d = self.direction(g)
            if not d @ g < 0:
                self._pairs, d = [], -g
            length = 1.0 if self._pairs else float(_shorten(0, g))
            found = self.search(evaluate, Point(0.0, value, float(d @ g), g), length, d, tolerance=0.0)
            if not found.value < value:
                break
            value, g = found.value, found.gradient
            self.steps += 1
        return value

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
        ps = list(map(_with_dtype, tree.leaves(params)))
        gs = tree.leaves(grads)
        check_gradients(ps, gs, params, grads, None)
        g = as_vector(gs)
        s, y, rho = _remember(state, g)
        square = y[-1] @ y[-1]
        known = rho[-1] > 0.0
        scale = np.where(known, 1.0 / np.where(known, rho[-1] * square, 1.0), 1.0)
        d = two_loop(g, [(s[i], y[i], rho[i]) for i in range(self.history_size)], scale)
        step = self.rate(state["steps"]) * _shorten(state["steps"], g) * d
        found = iter([p + part for p, part in zip(ps, as_leaves(step, ps), strict=True)])
        new = {"steps": state["steps"] + 1, "s": s, "y": y, "rho": rho, "gradient": g, "step": step}
        return tree.map(lambda _: next(found), params), new


def _shorten(steps: Any, g: Any) -> Any:
    """Return the factor by which the first step, whose length nothing tells, is shortened."""
    first = np.minimum(1.0, 1.0 / np.maximum(np.sum(np.abs(g)), 1e-30))
    return np.where(steps == 0, first, 1.0)


def _remember(state: dict[str, Any], g: Any) -> tuple:
    """Return the pairs of a pure state with the last step taken in, if the gradient says something of it."""
    change = g - state["gradient"]
    product = change @ state["step"]
    curved = product > _CURVED
    new = (state["step"], change, 1.0 / np.where(curved, product, 1.0))
    old = (state["s"], state["y"], state["rho"])
    return tuple(np.where(curved, np.concatenate([x[1:], v[None]]), x) for x, v in zip(old, new, strict=True))
