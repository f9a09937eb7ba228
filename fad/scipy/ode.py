"""Ordinary differential equations: an adaptive Runge-Kutta method in fad's operations, and the continuous adjoint."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as si

from fad import tree
from fad.core.tracer import Tracer, stop_gradient
from fad.errors import DerivativeError
from fad.scipy.host import HostCall
from fad.scipy.special.build import number
from fad.transforms.check import as_value
from fad.transforms.implicit import closed_over
from fad.transforms.tape import is_inexact
from fad.transforms.vjp import vjp

_EXPLICIT = {"RK45": si.RK45, "RK23": si.RK23}
_OF_STIFF_METHODS = {"jac", "jac_sparsity", "lband", "uband", "min_step"}


def solve_ivp(
    fun: Callable, t_span: Any, y0: Any, method: str = "RK45", t_eval: Any = None, dense_output: bool = False,
    events: Any = None, vectorized: bool = False, args: tuple = (), *, adjoint: str | None = None, rtol: float = 1e-3,
    atol: Any = 1e-6, max_step: float = np.inf, first_step: float | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Solve ``dy/dt = fun(t, y, *args)`` from ``y(t_span[0]) = y0``, as ``scipy.integrate.solve_ivp`` does.

    On plain values this is SciPy's function. On traced ones the solution is differentiable in `y0`, `t_span`, `t_eval`
    and whatever `fun` uses, `args` or its closure.

    Parameters
    ----------
    fun, t_span, y0, method, t_eval, args, rtol, atol, max_step, first_step
        As in SciPy.
    dense_output, events, vectorized
        As in SciPy, for plain values only.
    jac, jac_sparsity, lband, uband, min_step
        As in SciPy, for its stiff methods on plain values; `fad.jacobian` and `fad.sparse.jacobian` give `jac`. On
        traced values, where they would change the time alone, the method estimates the Jacobian by itself.
    adjoint : "discrete", "continuous" or None, keyword only
        How to differentiate: through the Runge-Kutta steps ("RK45", "RK23"), whose sizes are chosen by the error
        estimate and held constant, all lanes of a vmap alike; or by the adjoint equation, solved by SciPy backwards in
        time (any method).
        None takes the first where it can.

    Returns
    -------
    OptimizeResult-like bunch with ``t``, ``y`` of shape (n, number of times), ``success``, ``message``, ``nfev``.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a solution that the solver could not complete, or through `events`.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import solve_ivp
    >>> def end(rate):
    ...     return solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), np.array([1.0]), rtol=1e-9, atol=1e-9).y[0, -1]
    >>> fad.grad(end)(2.0).round(7) + 0.0, round(-np.exp(-2.0), 7)
    (np.float64(-0.1353353), np.float64(-0.1353353))
    """
    field, (held, rebuild) = _field(fun, args)
    if not any(type(x) is Tracer for x in [*tree.leaves((t_span, y0, t_eval)), *held]):
        return si.solve_ivp(
            fun,
            t_span,
            y0,
            method,
            t_eval,
            dense_output,
            events,
            vectorized,
            tuple(args or ()) or None,
            rtol=rtol,
            atol=atol,
            max_step=max_step,
            first_step=first_step,
            **options,
        )
    if options.keys() - _OF_STIFF_METHODS:
        raise TypeError(f"solve_ivp of traced values does not take {sorted(options.keys() - _OF_STIFF_METHODS)}")
    if events is not None or dense_output:
        raise DerivativeError(
            "solve_ivp of traced values has no events and no dense output. For the time of an event, find the root of "
            "y(t) with fad.scipy.optimize.brentq; for other times, pass t_eval"
        )
    adjoint = adjoint or ("discrete" if method in _EXPLICIT else "continuous")
    t0, t1 = (_real(t) for t in t_span)
    y0 = _real(y0)
    if adjoint == "continuous":
        return _continuous(
            rebuild, held, t0, t1, y0, method, t_eval, {"rtol": rtol, "atol": atol, "max_step": max_step}
        )
    if method not in _EXPLICIT:
        raise ValueError(
            f"the discrete adjoint has the methods {sorted(_EXPLICIT)}, not {method!r}; use adjoint='continuous'"
        )
    return _Stepper(field, t0, t1, y0, method, rtol, atol, max_step, first_step).solve(t_eval)


def odeint(
    func: Callable, y0: Any, t: Any, args: tuple = (), *, tfirst: bool = False, rtol: float = 1.49012e-8,
    atol: float = 1.49012e-8, adjoint: str = "continuous",
) -> Any:  # fmt: skip
    """Solve ``dy/dt = func(y, t, *args)`` and return y at the times `t`, as ``scipy.integrate.odeint`` does.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)``, or ``func(t, y, *args)`` if `tfirst`.
    y0 : array or pytree
        The state at ``t[0]``. A number, or a list of numbers, is a vector, as in SciPy.
    t : array
        Times, increasing or decreasing.
    args, rtol, atol
        As in SciPy.
    adjoint : "continuous" or "discrete", keyword only
        Solve the adjoint equation backwards (SciPy's LSODA, forwards too), or differentiate Runge-Kutta steps.

    Returns
    -------
    array of shape (len(t), n), or a pytree with the times in front

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import odeint
    >>> def end(rate):
    ...     return odeint(lambda y, t, k: -k * y, np.array([1.0]), np.array([0.0, 1.0]), (rate,))[-1, 0]
    >>> fad.grad(end)(2.0).round(6), fad.grad(fad.grad(end))(2.0).round(6)
    (np.float64(-0.135335), np.float64(0.135335))
    """
    if isinstance(y0, (list, tuple)) and not any(np.ndim(x) or isinstance(x, (list, tuple, dict)) for x in y0):
        y0 = np.stack(y0)
    elif isinstance(y0, (int, float, complex)) or getattr(y0, "ndim", 1) == 0:
        y0 = np.reshape(y0, 1)
    flat, unravel = tree.ravel(y0) if not hasattr(y0, "ndim") or y0.ndim != 1 else (y0, lambda y: y)

    def field(s, y, *rest):
        state = unravel(y)
        out = func(s, state, *rest) if tfirst else func(state, s, *rest)
        return out if hasattr(out, "ndim") and out.ndim == 1 else tree.ravel(out)[0]

    t = np.stack(t) if isinstance(t, (list, tuple)) else as_value(t, "the times of odeint")
    method = "LSODA" if adjoint == "continuous" else "RK45"
    solution = solve_ivp(field, (t[0], t[-1]), flat, method, t, args=args, adjoint=adjoint, rtol=rtol, atol=atol)
    if not solution.success:
        raise RuntimeError(f"odeint could not complete the integration: {solution.message}")
    rows = solution.y.T
    if hasattr(y0, "ndim") and y0.ndim == 1:
        return rows
    states = [unravel(rows[i]) for i in range(rows.shape[0])]
    return tree.map(lambda *xs: np.stack(xs), *states)


def _field(fun: Callable, args: Any) -> tuple:
    args = tuple(args or ())

    def field(t, y):
        return _vector(fun(t, y, *args), y)

    return field, closed_over(field)


def _vector(dy: Any, y: Any) -> Any:
    """Return the right-hand side as one vector; a list of numbers, traced or not, is stacked."""
    if hasattr(dy, "ndim"):
        return dy if dy.ndim else dy.reshape(1)
    return np.stack([x if hasattr(x, "dtype") else np.asarray(x, dtype=float) for x in dy])


def _real(x: Any) -> Any:
    x = np.stack([_real(v) for v in x]) if type(x) in (list, tuple) else as_value(x, "an operand of solve_ivp")
    return x if is_inexact(x) else x.astype(float)


# --- discrete -------------------------------------------------------------------------------------------------------


class _Stepper:
    """An embedded Runge-Kutta pair with SciPy's step control, on traced values.

    Time runs as a fraction of the interval, so that the ends may be traced. Steps are chosen from numbers:
    the largest error of all lanes decides.
    """

    def __init__(self, field, t0, t1, y0, method, rtol, atol, max_step, first_step):
        self.field, self.t0, self.y0 = field, t0, y0
        self.length = t1 - t0
        self.span = float(np.max(np.abs(number(self.length))))
        self.rk = _EXPLICIT[method]
        self.rtol, self.atol = max(rtol, 100 * np.finfo(float).eps), atol
        self.largest = min(1.0, max_step / self.span) if self.span else 1.0
        self.first_step = first_step
        self.nfev = 0

    def slope(self, s, y):
        """Return dy/ds, the right-hand side for time counted in fractions."""
        self.nfev += 1
        return self.field(self.t0 + self.length * s, y) * self.length

    def norm(self, error, y, new):
        """Return the root mean square of an error in units of the tolerance, the worst of all lanes."""
        error, y, new = (stop_gradient(x) for x in (error, y, new))
        scaled = number(error / (self.atol + self.rtol * np.maximum(np.abs(y), np.abs(new))))
        return float(np.sqrt(np.mean(scaled * scaled, axis=-1)).max())

    def first(self, k):
        if self.first_step is not None:
            return min(self.first_step / self.span, self.largest)
        y, span = self.y0, self.span  # the formulas of Hairer, Norsett and Wanner (II.4), in units of time
        d0, d1 = self.norm(y, y, y), self.norm(k, y, y) / span
        h0 = min(1e-6 if d0 < 1e-5 or d1 < 1e-5 else 0.01 * d0 / d1, span)
        ahead = stop_gradient(self.slope(h0 / span, stop_gradient(y + (h0 / span) * k)) - k)
        steep = max(d1, self.norm(ahead, y, y) / span / h0)
        h1 = max(1e-6, h0 * 1e-3) if steep <= 1e-15 else (0.01 / steep) ** (1 / (self.rk.error_estimator_order + 1))
        return min(100 * h0 / span, h1 / span, self.largest)

    def step(self, s, y, k, h):
        """Return the new state and the slopes of all stages, the last one at the new state."""
        ks = [k]
        for row, c in zip(self.rk.A[1:], self.rk.C[1:], strict=True):
            ks.append(self.slope(s + c * h, y + h * _combine(row, ks)))
        new = y + h * _combine(self.rk.B, ks)
        ks.append(self.slope(s + h, new))
        return new, ks

    def solve(self, t_eval):
        out = _Output(self, t_eval)
        if self.span == 0.0:
            return out.result(True, self.y0)
        s, y = 0.0, self.y0
        k = self.slope(s, y)
        h = self.first(k)
        exponent = -1.0 / (self.rk.error_estimator_order + 1)
        rejected = False
        while s < 1.0:
            h = min(h, self.largest, 1.0 - s)
            if h < 10 * np.finfo(float).eps:
                raise DerivativeError(
                    "solve_ivp could not complete the integration: the required step is smaller than the spacing of "
                    "numbers. The solution may have a singularity, or the equation be stiff: use method='LSODA', "
                    "adjoint='continuous'"
                )
            new, ks = self.step(s, y, k, h)
            error = self.norm(h * _combine(self.rk.E, [stop_gradient(v) for v in ks]), y, new)
            factor = 10.0 if error == 0 else min(10.0, 0.9 * error**exponent)
            if not error < 1.0:
                h *= max(0.2, factor) if error == error else 0.2
                rejected = True
                continue
            reached = 1.0 if 1.0 - (s + h) < 1e-14 else s + h
            out.add(s, h, reached, y, new, ks)
            s, y, k = reached, new, ks[-1]
            h *= min(1.0, factor) if rejected else factor
            rejected = False
        return out.result(True, y)


def _combine(weights, ks):
    terms = [float(w) * k for w, k in zip(weights, ks, strict=False) if w]
    total = terms[0]
    for term in terms[1:]:
        total = total + term
    return total


class _Output:
    """Collects the solution: at every step, or at the times asked for, by the method's own interpolation."""

    def __init__(self, stepper, t_eval):
        self.stepper = stepper
        self.times = None if t_eval is None else _real(t_eval)
        if self.times is None:
            self.ts, self.ys = [stepper.t0], [stepper.y0]
            return
        self.ys, self.at = [], 0
        fractions = (self.times - stepper.t0) / stepper.length if stepper.span else self.times * 0.0
        self.fractions = fractions
        self.plain = number(fractions)
        if self.plain.ndim != 1:
            raise DerivativeError("solve_ivp under vmap takes one t_eval for all lanes, and one t_span with it")
        if np.any(np.diff(self.plain) < 0) or np.any((self.plain < -1e-14) | (self.plain > 1 + 1e-14)):
            raise ValueError("Values in `t_eval` are not within `t_span`, or not properly sorted.")

    def add(self, s, h, reached, y, new, ks):
        if self.times is None:
            self.ts.append(self.stepper.t0 + self.stepper.length * reached)
            self.ys.append(new)
            return
        while self.at < len(self.plain) and (self.plain[self.at] <= reached or reached == 1.0):
            x = (self.fractions[self.at] - s) / h
            self.ys.append(self.interpolated(x, h, y, ks))
            self.at += 1

    def interpolated(self, x, h, y, ks):
        total = y
        for row, k in zip(self.stepper.rk.P, ks, strict=True):
            weight = 0.0
            for c in row[::-1]:
                weight = (weight + float(c)) * x
            total = total + h * weight * k
        return total

    def result(self, success, last):
        ys = self.ys or [last] * (len(self.times) if self.times is not None else 0)
        times = np.stack(self.ts) if self.times is None else self.times
        return _result(times, np.stack(ys, axis=-1), self.stepper.nfev)


def _result(t, y, nfev):
    from scipy.optimize import OptimizeResult

    message = "The solver successfully reached the end of the integration interval."
    return OptimizeResult(
        t=t,
        y=y,
        sol=None,
        t_events=None,
        y_events=None,
        nfev=nfev,
        njev=0,
        nlu=0,
        status=0,
        message=message,
        success=True,
    )


# --- continuous -----------------------------------------------------------------------------------------------------


def _continuous(rebuild, held, t0, t1, y0, method, t_eval, options):
    times = np.stack([t0, t1]) if t_eval is None else np.concatenate([t0.reshape(1), _real(t_eval)])
    (rows,) = _Flow(lambda values: rebuild(values), method, options).call(y0, times, *held)
    if t_eval is not None:
        times, rows = times[1:], rows[1:]
    return _result(times, rows.T, 0)


class _Flow:
    """The solution of ``dy/dt = build(held)(t, y)`` at given times, as a function of y0, times and held values."""

    def __init__(self, build: Callable, method: str, options: dict):
        self.build = build
        self.method = method
        self.options = options
        self.call = HostCall("scipy.integrate.solve_ivp", self.run, None, self.forward, self.pull, self.batch)

    def run(self, y0: Any, times: Any, *held: Any) -> list:
        f = self.build(list(held))
        start, end = times[0], times[-1]
        if start == end:
            return [np.repeat(y0[None], len(times), axis=0)]
        distinct, where = np.unique(times, return_inverse=True)
        found = si.solve_ivp(
            lambda t, y: number(f(np.float64(t), y)),
            (start, end),
            np.asarray(y0, dtype=float),
            self.method,
            distinct if end > start else distinct[::-1],
            **self.options,
        )
        if not found.success:
            raise DerivativeError(
                f"solve_ivp could not complete the integration, so it has no derivative: {found.message}"
            )
        rows = found.y.T if end > start else found.y.T[::-1]
        return [rows[where].astype(y0.dtype)]

    def batch(self, size: int, batched: list, values: list) -> tuple[list, list]:
        lanes = [self.call(*[v[i] if m else v for v, m in zip(values, batched, strict=True)])[0] for i in range(size)]
        return [np.stack(lanes)], [True]

    def forward(self, *operands: Any) -> tuple[list, Any]:
        ys = self.call(*operands)
        return ys, (ys[0], list(operands))

    def pull(self, res: Any, cts: list) -> list:
        """Solve the adjoint equation backwards, restarting from the stored state at each time."""
        ys, (y0, times, *held) = res
        moving = [i for i, h in enumerate(held) if is_inexact(h)]
        n = y0.shape[0]
        f = self.build(held)
        adjoint = _Flow(lambda values: self.augmented(list(values), moving, n), self.method, self.options)
        a, gathered, in_times = cts[0][-1], None, []
        for i in range(times.shape[0] - 1, 0, -1):
            in_times.append(np.sum(cts[0][i] * f(times[i], ys[i])))
            rest = np.zeros_like(a, shape=(_count(held, moving),)) if gathered is None else gathered
            if np.any(number(times[i] != times[i - 1])):
                z = np.concatenate([ys[i], a, rest])
                z = adjoint.call(z, np.stack([times[i], times[i - 1]]), *held)[0][-1]
                a, rest = z[n : 2 * n], z[2 * n :]
            gathered = rest
            if i == 1:
                in_times.append(-np.sum(a * f(times[0], y0)))
            a = a + cts[0][i - 1]
        out: list = [a, np.stack(in_times[::-1]) if in_times else None, *[None] * len(held)]
        at = 0
        for i in moving:
            size = int(np.prod(held[i].shape))
            out[2 + i] = gathered[at : at + size].reshape(held[i].shape).astype(held[i].dtype)
            at += size
        return out

    def augmented(self, held: list, moving: list, n: int) -> Callable:
        """Return the right-hand side for state, adjoint and the gradient gathered so far."""

        def along(t, z):
            y, a = z[:n], z[n : 2 * n]

            def f(y, *moved):
                full = list(held)
                for i, h in zip(moving, moved, strict=True):
                    full[i] = h
                return self.build(full)(t, y)

            dy, pullback = vjp(f, y, *[held[i] for i in moving])
            back = pullback(-a)
            return np.concatenate([dy, *[c.reshape(-1) for c in back]])

        return along


def _count(held: list, moving: list) -> int:
    return sum(int(np.prod(held[i].shape)) for i in moving)
