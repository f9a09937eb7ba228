"""The derivative of a stored solution of a differential equation: Radau's collocation along the accepted steps.

SciPy solves the equation, forwards. The states at the nodes of the steps, and inside them, are stored; they satisfy, up
to the tolerance, the equations of an implicit Runge-Kutta method on those steps:

    Y[n, i] = y[n] + h[n] sum_j A[i, j] f(t[n] + c[j] h[n], Y[n, j]),    y[n + 1] = Y[n, -1]

These equations make the states differentiable, to every order and in every mode, by the implicit function theorem.
Nothing is integrated backwards in time: the reverse derivative solves the transposed linear equations from the last
step to the first, which is as stable as the method, and the method is L-stable.

Kept for the backward pass are the states, and the matrices of the steps if they are small; larger ones are computed
again in every pass, some steps at a time.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special

from fad.errors import BatchedValueError, DerivativeError
from fad.scipy.host import HostCall, plain
from fad.transforms.implicit import implicit_root
from fad.transforms.jacobian import jacobian
from fad.transforms.vmap import vmap

_KEPT_BYTES = 2**26  # of the matrices of all steps; larger ones are computed again in every pass


class Tableau:
    """Radau's method IIA of some stages, of order ``2 * stages - 1``."""

    def __init__(self, stages: int):
        inner = (1 + scipy.special.roots_jacobi(stages - 1, 1, 0)[0]) / 2
        self.c = np.append(inner, 1.0)
        powers = self.c[:, None] ** np.arange(stages)
        self.a = (self.c[:, None] * powers / np.arange(1, stages + 1)) @ np.linalg.inv(powers)
        # stage values minus the start of the step -> coefficients of x, x**2, ... of the collocation polynomial
        self.polynomial = np.linalg.inv(self.c[:, None] * powers)

    def interpolate(self, x: Any, starts: Any, states: Any) -> Any:
        """Return the collocation polynomials of some steps, each at its fraction `x` of the step."""
        powers = [x]
        for _ in self.c[1:]:
            powers.append(powers[-1] * x)
        return starts + np.einsum("pk,pi,kin->kn", np.stack(powers), self.polynomial, states - starts[:, None])


def store_solution(
    field: Callable, plain_field: Callable, times: Any, y0: Any, sol: Callable, stages: int
) -> tuple[Any, Any, Tableau]:
    """Return the states at nodes in time and at the stages between, differentiable in what `field`, `times`, `y0` use.

    Parameters
    ----------
    field, plain_field : callable
        ``f(t, y)`` with the values as they came, and with numbers in their place.
    times : array, shape (N + 1,)
        Nodes of the steps; traced ones may move.
    y0 : array, shape (n,)
        The real state at the first node.
    sol : callable
        The stored solution: the states, shape (n, k), at k times.
    stages : int

    Returns
    -------
    (starts, states, tableau) : starts of shape (N, n), states at the stages of shape (N, stages, n)
    """
    method = Tableau(stages)
    h = times[1:] - times[:-1]
    inside = times[:-1, None] + method.c * h[:, None]
    at = plain(inside)
    stored = np.ascontiguousarray(sol(at.ravel()).T).reshape(*at.shape, y0.shape[0])
    steps = _Steps(plain_field, method, at, plain(h), stored)

    def starts(states):
        return np.concatenate([y0[None], states[:-1, -1]])

    def equations(states):
        slopes = _at_all(field, inside.reshape(-1), states.reshape(-1, y0.shape[0])).reshape(states.shape)
        return states - starts(states)[:, None] - h[:, None, None] * np.einsum("ij,njk->nik", method.a, slopes)

    states = implicit_root(equations, stored, lambda _slope, r: steps.solve(r))
    return starts(states), states, method


def _at_all(field: Callable, ts: Any, ys: Any) -> Any:
    """Return ``field(t, y)`` at many points at once, or one by one where the function wants numbers."""
    try:
        return vmap(field)(ts, ys)
    except BatchedValueError:
        return np.stack([field(ts[i], ys[i]) for i in range(ts.shape[0])])


class _Steps:
    """The linear equations of all steps, ``(I - h A J) x[n] - x[n - 1, -1] = r[n]``, and their solution."""

    def __init__(self, field: Callable, method: Tableau, times: Any, h: Any, states: Any):
        self.field, self.method, self.times, self.h, self.states = field, method, times, h, states
        count, stages, n = states.shape
        size = (stages * n) ** 2 * 8
        self.tile, self.last = np.tile(np.eye(n), (stages, 1)), np.eye(stages * n)[:, -n:]
        some = max(1, _KEPT_BYTES // 8 // size)
        self.chunks = [slice(i, min(i + some, count)) for i in range(0, count, some)]
        self.kept: dict | None = {} if count * size <= _KEPT_BYTES else None

    def solve(self, r: Any) -> Any:
        """Solve for residuals of shape (N, stages, n), traced or not."""
        column = r.reshape(r.shape[0], -1, 1)
        return self.call(False)(column)[0].reshape(r.shape)

    def call(self, transposed: bool) -> HostCall:
        def batch(size: int, batched: list, xs: list) -> tuple[list, list]:
            r = np.moveaxis(xs[0], 0, -1)  # (N, stages * n, columns, size)
            out = call(r.reshape(*r.shape[:2], -1))[0]
            return [np.moveaxis(out.reshape(r.shape), -1, 0)], [True]

        call: Any = HostCall(
            "scipy.integrate.solve_ivp",
            lambda r: [self.sweep(r, transposed)],
            lambda xs, ts: (call(*xs), call(*ts)),
            lambda r: (call(r), None),
            lambda _, cts: self.call(not transposed)(*cts),
            batch,
        )
        return call

    def sweep(self, r: Any, transposed: bool) -> Any:
        """Go through the steps, forwards, or backwards for the transposed equations; `r` has shape (N, ., columns)."""
        n = self.tile.shape[1]
        enter, leave = (self.last, self.tile) if transposed else (self.tile, self.last)
        carried = np.zeros((n, r.shape[-1]))
        out = np.empty_like(r)
        for chunk in reversed(self.chunks) if transposed else self.chunks:
            matrices = self.matrices(chunk)
            matrices = np.swapaxes(matrices, 1, 2) if transposed else matrices
            columns = np.concatenate([np.broadcast_to(enter, (len(matrices), *enter.shape)), r[chunk]], axis=-1)
            scale = 1 / np.abs(matrices).max(axis=2, keepdims=True)  # stiff rows are larger by many orders
            try:
                found = np.linalg.solve(matrices * scale, columns * scale)
            except np.linalg.LinAlgError as error:
                raise DerivativeError(
                    "the derivative of the solution of a differential equation does not exist along the stored steps: "
                    "the equations of a step are singular. Solve with a smaller rtol or max_step"
                ) from error
            order = range(chunk.start, chunk.stop)
            for i in reversed(order) if transposed else order:
                step = found[i - chunk.start]
                out[i] = step[:, n:] + step[:, :n] @ carried
                carried = leave.T @ out[i]
        return out

    def matrices(self, chunk: slice) -> Any:
        """Return ``I - h A J`` of some steps."""
        if self.kept is not None and chunk.start in self.kept:
            return self.kept[chunk.start]
        states, h = self.states[chunk], self.h[chunk]
        count, stages, n = states.shape
        slope = lambda t, y: jacobian(lambda y: self.field(t, y))(y)
        j = plain(_at_all(slope, self.times[chunk].reshape(-1), states.reshape(-1, n))).reshape(count, stages, n, n)
        scaled = h[:, None, None, None, None] * np.einsum("ij,njkl->nikjl", self.method.a, j)
        matrices = np.eye(stages * n) - scaled.reshape(count, stages * n, stages * n)
        if self.kept is not None:
            self.kept[chunk.start] = matrices
        return matrices
