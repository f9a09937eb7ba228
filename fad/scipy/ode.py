"""Ordinary differential equations: ``solve_ivp`` and ``odeint``.

The explicit Runge-Kutta methods are run in fad's operations. The others are run by SciPy, and the solution that they
store is differentiated along their steps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate as si

from fad import tree
from fad.core.runs.transformed import as_run
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import stop_gradient
from fad.errors import DerivativeError, MissingRuleError
from fad.scipy.collocation import store_solution
from fad.scipy.events import DenseSolution, solve_with_events
from fad.scipy.host import host_function, needs_host_call, plain
from fad.scipy.runge_kutta import EXPLICIT, find_fractions, integrate, integrate_at, pose
from fad.scipy.special.build import number
from fad.transforms.arguments.check import as_value, is_inexact
from fad.transforms.outside.closures import Closure
from fad.typing import ArrayLike, PyTree

_METHODS = {method: name for name, method in EXPLICIT.items()} | {si.Radau: "Radau", si.BDF: "BDF", si.LSODA: "LSODA"}
_DISCRETE = {*EXPLICIT, "Radau"}
_STAGES = {"DOP853": 5, "LSODA": 4}  # along the steps of methods of higher order than BDF's, which are longer
_OF_STIFF_METHODS = {"jac", "jac_sparsity", "lband", "uband", "min_step"}


def solve_ivp(
    fun: Callable, t_span: ArrayLike, y0: ArrayLike, method: str = "RK45", t_eval: ArrayLike | None = None,
    dense_output: bool = False, events: Callable | Sequence[Callable] | None = None, vectorized: bool = False,
    args: tuple = (), *, adjoint: str | None = None, rtol: float = 1e-3, atol: ArrayLike = 1e-6,
    max_step: float = np.inf, first_step: float | None = None, **options: Any,
) -> Any:  # fmt: skip
    """Solve ``dy/dt = fun(t, y, *args)`` from ``y(t_span[0]) = y0``, as ``scipy.integrate.solve_ivp`` does.

    On plain values this is SciPy's function. On traced ones the solution is differentiable in `y0`, `t_span`, `t_eval`
    and whatever `fun` uses, `args` or its closure.

    Parameters
    ----------
    fun, t_span, y0, method, t_eval, args, rtol, atol, max_step, first_step
        As in SciPy.
    events, dense_output
        As in SciPy; not under jit and vmap, where their number is not known. The time of an event is differentiated
        as the root that it is. Each call of ``sol`` solves the equation once more on traced values.
    vectorized
        As in SciPy, for plain values only.
    **options
        jac, jac_sparsity, lband, uband, min_step: as in SciPy, for its stiff methods; `fad.jacobian` and
        `fad.sparse.jacobian` give `jac`. On traced values, where `jac` would change the time alone, the method
        estimates the Jacobian by itself.
    adjoint : "discrete", "continuous" or None, keyword only
        How to differentiate, forward and reverse alike. "discrete" ("RK45", "RK23", "DOP853", "Radau") gives the
        derivative of the numbers computed: through the steps, whose sizes are chosen by the error estimate and held
        constant. "continuous" (any method) solves the sensitivity equations, or their transpose, along a stored
        solution of the same method with `rtol` and `atol` a hundred times smaller, by Radau's method on its steps. None
        takes "discrete" where the method has it, so "continuous" for "BDF" and "LSODA".

    Returns
    -------
    OptimizeResult-like bunch with ``t``, ``y`` of shape (n, number of times), ``success``, ``message``, ``nfev``, and
    ``t_events`` and ``y_events`` if there are events. Under jit and vmap the number of steps is not known: without
    `t_eval` "Radau", "BDF", "LSODA" and "continuous" then give ``y`` at both ends of `t_span` alone.

    Raises
    ------
    DerivativeError
        if a derivative is taken of a solution that the solver could not complete, or of `events` under jit or vmap.

    Notes
    -----
    The error of a derivative shrinks with `rtol` and `atol`, as that of the solution does, and is often larger: where
    neighbouring solutions run apart and together again, as in the jumps of a relaxation oscillation, by orders of
    magnitude. Nothing is integrated backwards in time, so stiff and contracting equations are as stable as they are
    forwards.

    The explicit methods keep every operation of every step; under jit they are a native loop, which is for one
    number of steps if `t_eval` is not given. The others keep the states at three points of every step
    (four with "LSODA"), what `fun` computes there (evaluated for all points at once, by vmap), and for every step a
    matrix of three (four) times as many rows as the state has, if all take less than 64 MB together; larger ones are
    computed again in every pass. Under jit and vmap the solution is computed again for its derivative.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import solve_ivp
    >>> def end(rate):
    ...     return solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), np.array([1.0]), rtol=1e-9, atol=1e-9).y[0, -1]
    >>> fad.grad(end)(2.0).round(7) + 0.0, round(-np.exp(-2.0), 7)
    (np.float64(-0.1353353), np.float64(-0.1353353))

    When a stone hits the ground that falls from a height, ``sqrt(2 * height / g)``:

    >>> def ground(t, y):
    ...     return y[0]
    >>> ground.terminal = True
    >>> def time_of_fall(height):
    ...     fall = solve_ivp(lambda t, y: np.stack([y[1], -9.81]), (0.0, 9.0), np.stack([height, 0.0]), events=ground)
    ...     return fall.t_events[0][0]
    >>> np.round(fad.value_and_grad(time_of_fall)(2.0), 6), np.round((np.sqrt(4.0 / 9.81), np.sqrt(0.25 / 9.81)), 6)
    (array([0.638551, 0.159638]), array([0.638551, 0.159638]))
    """
    given = list(tree.leaves((t_span, y0, t_eval)))
    happenings = [_with_arguments(e, args) for e in _as_list(events)]
    held = Closure(_field(fun, args)).held + [x for e in happenings for x in Closure(e).held]
    if not any(type(x) is Tracer for x in [*given, *held]):
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
    options = {k: v for k, v in options.items() if k != "jac"}
    options |= {"rtol": rtol, "atol": atol, "max_step": max_step, "first_step": first_step}
    problem = _Problem(_field(fun, args), t_span, y0, method, adjoint, options)
    times = None if t_eval is None else _real(t_eval).astype(float)
    if not (events or dense_output):
        return _result(*problem.solve(times))
    if needs_host_call((problem.y0, problem.t0, problem.t1, times, held)):
        raise DerivativeError(
            "solve_ivp has no events and no dense output under jit and vmap, where their number is not known. Call it "
            "outside of them, or pass t_eval; the time of one event is the root of y(t): fad.scipy.optimize.brentq"
        )
    return problem.solve_with_events(times, happenings, dense_output)


_NUMBERS = frozenset({float, int, np.float64})
# What SciPy's odeint takes besides: how to find the slope of the right-hand side, limits and messages.
_OF_ODEPACK = {
    "Dfun", "col_deriv", "ml", "mu", "tcrit", "hmin", "ixpr", "mxstep", "mxhnil", "mxordn", "mxords", "printmessg",
}  # fmt: skip


def odeint(
    func: Callable, y0: PyTree, t: ArrayLike, args: tuple = (), *, tfirst: bool = False, rtol: float = 1.49012e-8,
    atol: float = 1.49012e-8, adjoint: str = "continuous", h0: float = 0.0, hmax: float = 0.0,
    full_output: bool = False, **options: Any,
) -> PyTree:  # fmt: skip
    """Solve ``dy/dt = func(y, t, *args)`` and return y at the times `t`, as ``scipy.integrate.odeint`` does.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)``, or ``func(t, y, *args)`` if `tfirst`.
    y0 : array or pytree
        The state at ``t[0]``. A number, or a list of numbers, is a vector, as in SciPy.
    tfirst : bool, keyword only
        Whether `func` takes the time before the state.
    t : array
        Times, increasing or decreasing.
    args, rtol, atol
        As in SciPy.
    adjoint : "continuous" or "discrete", keyword only
        Solve by LSODA and differentiate along the stored solution, or solve by "RK45" and differentiate its steps; see
        :func:`solve_ivp`.
    h0, hmax : float, keyword only
        The first step and the greatest one, if they are not zero.
    full_output : bool, keyword only
        Is refused: the report is SciPy's alone.
    **options
        Others of SciPy's, such as `mxstep` and `Dfun`, which say how it goes about it; fad needs none of them.

    Returns
    -------
    array of shape (len(t), n), or a pytree with the times in front

    Raises
    ------
    RuntimeError
        The integration cannot be completed, or the function returns another shape than the state has.
    ValueError
        The times neither increase nor decrease.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import odeint
    >>> def end(rate):
    ...     return odeint(lambda y, t, k: -k * y, np.array([1.0]), np.array([0.0, 1.0]), (rate,))[-1, 0]
    >>> fad.grad(end)(2.0).round(6), fad.grad(fad.grad(end))(2.0).round(6)
    (np.float64(-0.135335), np.float64(0.135335))
    """
    if full_output:
        raise MissingRuleError("odeint has no full_output: call solve_ivp, whose result has SciPy's entries")
    if unknown := options.keys() - _OF_ODEPACK:
        raise TypeError(f"odeint does not take {sorted(unknown)}")
    steps: dict[str, Any] = {"first_step": h0 or None, "max_step": hmax or np.inf, "rtol": rtol, "atol": atol}
    if isinstance(y0, (list, tuple)) and not any(np.ndim(x) or isinstance(x, (list, tuple, dict)) for x in y0):
        y0 = np.stack(y0)
    elif isinstance(y0, (int, float, complex)) or getattr(y0, "ndim", 1) == 0:
        y0 = np.reshape(y0, 1)
    flat, unravel = tree.ravel(y0) if not hasattr(y0, "ndim") or y0.ndim != 1 else (y0, lambda y: y)

    def field(s, y, *rest):
        state = unravel(y)
        out = as_run(func)(s, state, *rest) if tfirst else as_run(func)(state, s, *rest)
        if hasattr(out, "ndim") and out.ndim == 1:
            return out
        plain_numbers = type(out) in (list, tuple) and _NUMBERS.issuperset(map(type, out))
        return np.array(out, dtype=float) if plain_numbers else tree.ravel(out)[0]

    t = np.stack(t) if isinstance(t, (list, tuple)) else as_value(t, "the times of odeint")
    method = "LSODA" if adjoint == "continuous" else "RK45"
    new = np.append(True, np.diff(t) != 0) if type(t) is np.ndarray else slice(None)
    solution = solve_ivp(field, (t[0], t[-1]), flat, method, t[new], args=args, adjoint=adjoint, **steps)
    if not solution.success:
        raise RuntimeError(f"odeint could not complete the integration: {solution.message}")
    rows = _state(flat)[None] if type(solution.y) is list else solution.y.T  # SciPy's for an interval without length
    rows = rows if isinstance(new, slice) else rows[np.cumsum(new) - 1]
    if hasattr(y0, "ndim") and y0.ndim == 1:
        return rows
    states = [unravel(rows[i]) for i in range(rows.shape[0])]
    return tree.map(lambda *xs: np.stack(xs), *states)


def _field(fun: Callable, args: Any) -> Callable:
    args = tuple(args or ())

    def field(t, y):
        return _vector(as_run(fun)(t, y, *args), y)

    return field


def _vector(dy: Any, y: Any) -> Any:
    """Return the right-hand side as one vector; a list of numbers, traced or not, is stacked."""
    if hasattr(dy, "ndim"):
        return dy if dy.ndim else dy.reshape(1)
    if _NUMBERS.issuperset(map(type, dy)):
        return np.array(dy, dtype=float)
    return np.stack([x if hasattr(x, "dtype") else np.asarray(x, dtype=float) for x in dy])


def _state(y0: Any) -> Any:
    """Return the initial state in the precision that SciPy computes in."""
    y0 = _real(y0)
    if y0.ndim != 1:
        raise ValueError(f"`y0` must be 1-dimensional, but has the shape {y0.shape}")
    return y0.astype(complex if y0.dtype.kind == "c" else float)


def _real(x: Any) -> Any:
    x = np.stack([_real(v) for v in x]) if type(x) in (list, tuple) else as_value(x, "an operand of solve_ivp")
    return x if is_inexact(x) else x.astype(float)


def _result(t: Any, y: Any, nfev: int) -> Any:
    from scipy.optimize import OptimizeResult

    message = "The solver successfully reached the end of the integration interval."
    return OptimizeResult(
        t=t, y=y, sol=None, t_events=None, y_events=None, nfev=nfev, njev=0, nlu=0, status=0, message=message,
        success=True,
    )  # fmt: skip


class _Problem:
    """An initial value problem with traced values, and how it is solved and differentiated."""

    def __init__(self, field: Callable, t_span: Any, y0: Any, method: Any, adjoint: str | None, options: dict):
        if isinstance(method, type):
            method = _METHODS.get(method, method)
        adjoint = adjoint or ("discrete" if method in _DISCRETE else "continuous")
        if adjoint == "discrete" and method not in _DISCRETE:
            raise ValueError(
                f"the discrete adjoint has the methods {sorted(_DISCRETE)}, not {method!r}; use adjoint='continuous'"
            )
        self.field, self.method, self.adjoint, self.options = field, method, adjoint, options
        self.t0, self.t1 = (_real(t).astype(float) for t in t_span)
        self.y0 = _state(y0)

    def solve(self, times: Any, end: float | None = None) -> tuple[Any, Any, int]:
        """Return times, states as columns, and how often the right-hand side ran; nothing is asked behind `end`."""
        y0, t0, t1, method = self.y0, self.t0, self.t1, self.method
        if self.adjoint == "discrete" and method in EXPLICIT and np.all(number(t0 != t1)):
            o = self.options
            problem = pose(self.field, t0, t1, method, o["rtol"], o["atol"], o["max_step"])
            if times is None:
                ends, states, nfev = as_run(integrate)(problem, y0, o["first_step"])
                return t0 + (t1 - t0) * np.stack(ends), np.stack(states).T, nfev
            fractions = find_fractions(times, t0, t1 - t0)
            rows, nfev = as_run(integrate_at)(problem, y0, o["first_step"], fractions, end is not None)
            return times, rows.T, nfev
        if end is not None:
            t1 = np.float64(end)
        closure = Closure(self.field)
        held = closure.held
        closure.keep(y0, t0, t1, times)
        solver = _Solver(closure.at, method, self.adjoint == "discrete", self.options)
        if needs_host_call((y0, t0, t1, times, held)):
            times = np.stack([t0, t1]) if times is None else times
            (rows,) = host_function("scipy.integrate.solve_ivp", solver.rows)(y0, t0, t1, times, *held)
        else:
            times, rows = solver.solve(y0, t0, t1, times, held)
        closure.settle()
        return times, rows.T, solver.nfev

    def solve_with_events(self, times: Any, events: list[Callable], dense_output: bool) -> Any:
        """Return the solution, and when events happened, as SciPy gives them."""
        solve = lambda ts, end=None: self.solve(ts, end)[1].T
        span, options = (self.t0, self.t1), self.options
        found = solve_with_events(solve, self.field, self.y0, span, times, events, self.method, options)
        if not found.success:
            raise _has_failed(found)
        if dense_output:
            found.sol = DenseSolution(solve, self.t0, found.t[-1] if found.status == 1 else self.t1)
        return found


def _as_list(events: Any) -> list:
    return [] if events is None else [events] if callable(events) else list(events)


def _with_arguments(event: Callable, args: Any) -> Callable:
    """Return an event that gets the further arguments, with the attributes that SciPy reads."""
    args = tuple(args or ())
    if not args:
        return event

    def of_state(t: Any, y: Any) -> Any:
        return event(t, y, *args)

    of_state.__dict__.update(getattr(event, "__dict__", {}))
    return of_state


def _has_failed(found: Any) -> DerivativeError:
    return DerivativeError(f"solve_ivp could not complete the integration, so it has no derivative: {found.message}")


# --- solutions stored by SciPy ----------------------------------------------------------------------------------------


class _Solver:
    """A solution by SciPy, made differentiable along stored steps.

    Radau's method is differentiated along its own steps, by its own equations and interpolation. For the others SciPy
    solves again with tighter tolerances: where solutions run together, after the jumps of a relaxation oscillation for
    instance, the derivative loses digits that the solution keeps.
    """

    def __init__(self, build: Callable, method: Any, exact: bool, options: dict):
        self.build = build
        self.method = method
        self.exact = exact
        self.options = options
        self.nfev = 0
        self.traced = False  # whether the right-hand side holds traced values that were not found

    def rows(self, y0: Any, t0: Any, t1: Any, times: Any, *held: Any) -> list:
        return [self.solve(y0, t0, t1, times, held)[1]]

    def solve(self, y0: Any, t0: Any, t1: Any, times: Any, held: Any) -> tuple[Any, Any]:
        """Return times and states, the times in front; all steps if no times are given."""
        plain_field, field = self.build(list(stop_gradient(held))), self.build(list(held))
        first, start, end = (number(x) for x in (y0, t0, t1))
        found = self.run(plain_field, first, start, end, self.options)
        if not found.success:
            raise _has_failed(found)
        self.nfev = found.nfev
        if times is None:
            times = t0 + (t1 - t0) * found.fractions
        if times.shape[0] == 0:
            return times, y0[None][:0]
        if number(t0) != number(t1):
            find_fractions(times, t0, t1 - t0)
        rows = found.sol(number(times)).T
        if not self.traced and not any(type(x) is Tracer for x in (y0, t0, t1, times, *held)):
            return times, rows
        if not self.exact:
            tight = self.run(plain_field, first, start, end, self.options | _tighten(self.options))
            found = tight if tight.success else found
        if y0.dtype.kind != "c":
            traced = self.along(field, plain_field, y0, t0, t1, times, found.fractions, found.sol)
        else:  # the right-hand side need not be holomorphic: real and imaginary parts are differentiated
            n = y0.shape[0]
            parts = lambda t: _parts(found.sol(t).T).T
            traced = self.along(
                _of_parts(field, n), _of_parts(plain_field, n), _parts(y0), t0, t1, times, found.fractions, parts
            )
            traced = traced[:, :n] + 1j * traced[:, n:]
        return times, rows + (traced - stop_gradient(traced))

    def run(self, field: Callable, y0: Any, t0: Any, t1: Any, options: dict) -> Any:
        """Return SciPy's solution, with its accepted steps as fractions of the interval."""

        def numbers(t, y):
            slope = field(np.float64(t), y.copy())  # LSODA overwrites it, and operations may keep it
            self.traced = self.traced or type(slope) is Tracer
            return plain(slope)

        found = si.solve_ivp(numbers, (float(t0), float(t1)), y0, self.method, dense_output=True, **options)
        if t0 == t1:
            found.fractions, found.sol = np.array([0.0, 1.0]), lambda ts: np.repeat(y0[:, None], len(ts), axis=1)
        else:
            found.fractions = (found.t - t0) / (t1 - t0)
        return found

    def along(self, field, plain_field, y0, t0, t1, times, accepted, sol):
        """Return the states at some times, differentiable along the stored solution."""
        length = t1 - t0
        if not number(length):
            nodes = np.concatenate([t0.reshape(1), times])
            return store_solution(field, plain_field, nodes, y0, sol, 3)[1][:, -1]
        numbers = number((times - t0) / length)
        if self.exact:
            accepted = _join_rounding(accepted)
            nodes = t0 + length * accepted
            starts, states, method = store_solution(field, plain_field, nodes, y0, sol, 3)
            step = np.clip(np.searchsorted(accepted, numbers) - 1, 0, len(accepted) - 2)
            x = (times - nodes[step]) / (nodes[step + 1] - nodes[step])
            return method.interpolate(x, starts[step], states[step])
        nodes, places = _mesh(t0, length, accepted, times, numbers)
        stages = _STAGES.get(self.method, 3)
        return store_solution(field, plain_field, nodes, y0, sol, stages)[1][:, -1][places]


def _tighten(options: dict) -> dict:
    """Return the tolerances for the solution that is differentiated."""
    rtol = np.asarray(options["rtol"])
    return {"rtol": np.minimum(rtol, np.maximum(0.01 * rtol, 1e-12))[()], "atol": 0.01 * np.asarray(options["atol"])}


def _mesh(t0: Any, length: Any, accepted: Any, times: Any, numbers: Any) -> tuple[Any, Any]:
    """Return nodes at all times that are requested, and at the accepted steps that are not near them; and the places.

    A step between two nodes that are very near each other would take the slope from the solver's error.
    """
    inner = accepted[1:-1][accepted[1:-1] < numbers[-1]]
    size = np.minimum(np.diff(accepted)[: len(inner)], np.diff(accepted)[1 : len(inner) + 1])
    after = np.searchsorted(numbers, inner)
    near = numbers[np.clip([after - 1, after], 0, len(numbers) - 1)]
    inner = inner[np.abs(near - inner).min(0) > 0.1 * size]
    order = np.argsort(np.concatenate([inner, numbers]), kind="stable")
    nodes = np.concatenate([t0 + length * inner, times])[order]
    places = np.argsort(order, kind="stable")[len(inner) :]
    return np.concatenate([t0.reshape(1), nodes]), places


def _join_rounding(accepted: Any) -> Any:
    """Return the nodes without those that a step of rounding alone follows, as a solver takes to reach the end.

    The slope along such a step, a difference over no time, would be the solver's error.
    """
    sizes = np.diff(accepted)
    follows = np.append(False, sizes[1:] < 1e-9 * sizes[:-1])  # for each node but the last, whether one does
    return accepted[np.append(~follows, True)]


def _parts(y: Any) -> Any:
    return np.concatenate([np.real(y), np.imag(y)], axis=-1)


def _of_parts(field: Callable, n: int) -> Callable:
    """Return the right-hand side for real and imaginary parts, one behind the other."""
    return lambda t, z: _parts(field(t, z[:n] + 1j * z[n:]))
