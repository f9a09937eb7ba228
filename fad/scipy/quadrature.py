"""Integrals of functions: quad, and quad_vec for those with several numbers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.integrate as si

from fad.core.handles import buffers
from fad.core.tracing.tracer import Tracer
from fad.core.tracing.values import stop_gradient
from fad.errors import DerivativeError
from fad.ops.ufuncs.conversion import as_python_number
from fad.scipy.host import HostCall, check_found, needs_host_call
from fad.scipy.special.build import number
from fad.transforms.arguments.check import as_value, is_inexact
from fad.transforms.jvp import jvp
from fad.transforms.outside.closures import Closure
from fad.transforms.vjp import vjp
from fad.typing import ArrayLike


def quad(
    func: Callable, a: ArrayLike, b: ArrayLike, args: tuple = (), *, epsabs: float = 1.49e-8, epsrel: float = 1.49e-8,
    limit: int = 50, points: ArrayLike | None = None,
) -> tuple:  # fmt: skip
    """Integrate a function of one number from `a` to `b` by ``scipy.integrate.quad``.

    The integral is differentiable in both limits, where its derivative is the integrand, and in whatever `func` uses,
    `args` or its closure, where it is the integral of the derivative, taken with the same tolerances.

    What an integrand adds that jumps at a place which depends on a parameter is no part of that integral, and what a
    kink adds no part of the second derivative's: split the integral there into those of the smooth pieces.

    Parameters
    ----------
    func : callable
        ``func(x, *args)`` returns a number.
    a, b : float
        Limits; infinite ones are allowed, and are constants.
    args : tuple
        What the integrand depends on.
    epsabs, epsrel, limit, points
        As in SciPy.

    Returns
    -------
    (integral, error) : the error is SciPy's estimate, a constant.

    Raises
    ------
    DerivativeError
        if `points` varies under `vmap` or `jit`.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import quad
    >>> def f(a, b):
    ...     return quad(lambda x, a: np.exp(-a * x * x), 0.0, b, (a,))[0]
    >>> [g.round(9) for g in fad.grad(f, (0, 1))(1.0, 2.0)]
    [np.float64(-0.422725056), np.float64(0.018315639)]

    The integral of ``abs(x - a)``, which has a kink at `a`, from two smooth pieces:

    >>> def distance(a):
    ...     return quad(lambda x: a - x, 0.0, a)[0] + quad(lambda x: x - a, a, 1.0)[0]
    >>> fad.grad(fad.grad(distance))(0.3)
    np.float64(2.0)
    """
    options = {"epsabs": epsabs, "epsrel": epsrel, "limit": limit}
    return _integrate(func, a, b, args, points, options, "quad")


def quad_vec(
    f: Callable, a: ArrayLike, b: ArrayLike, epsabs: float = 1e-200, epsrel: float = 1e-8, norm: str = "2",
    cache_size: float = 1e8, limit: float = 10000, workers: Any = 1, points: ArrayLike | None = None,
    quadrature: str | None = None, full_output: bool = False, *, args: tuple = (),
) -> tuple:  # fmt: skip
    """Integrate a function of one number whose values are arrays, from `a` to `b`, by ``scipy.integrate.quad_vec``.

    The integral is differentiable as that of `quad` is.

    Parameters
    ----------
    f : callable
        ``f(x, *args)`` returns an array, or a number.
    a, b : float
        Limits; infinite ones are allowed, and are constants.
    epsabs, epsrel, norm, cache_size, limit, points, quadrature
        As in SciPy.
    workers : int
        1 only.
    full_output : bool
        False only.
    args : tuple, keyword only
        What the integrand depends on.

    Returns
    -------
    (integral, error) : the error is SciPy's estimate, a constant.

    Raises
    ------
    DerivativeError
        if `points` varies under `vmap` or `jit`.
    NotImplementedError
        for several workers, and full output.

    Examples
    --------
    >>> import numpy as np, fad
    >>> from fad.scipy.integrate import quad_vec
    >>> powers = np.arange(3.0)
    >>> fad.jacobian(lambda b: quad_vec(lambda x: x**powers, 0.0, b)[0])(2.0).round(9)
    array([1., 2., 4.])
    """
    if full_output or workers != 1:
        raise NotImplementedError("quad_vec takes full_output=False and workers=1 here")
    options = {
        "epsabs": epsabs, "epsrel": epsrel, "norm": norm, "cache_size": cache_size, "limit": limit,
        "quadrature": quadrature,
    }  # fmt: skip
    return _integrate(f, a, b, args, points, options, "quad_vec")


def _integrate(func: Callable, a: Any, b: Any, args: Any, points: Any, options: dict, name: str) -> tuple:
    """Return the integral of a function by one of SciPy's, and the estimate of its error."""
    points = stop_gradient(points)  # they say where to divide the interval: the integral does not depend on them
    if needs_host_call(points):
        raise DerivativeError(
            f"the points given to {name} vary under vmap or jit, and SciPy takes them as numbers. Split the integral "
            f"at them: {name}(f, a, p)[0] + {name}(f, p, b)[0]"
        )
    args = args if isinstance(args, tuple) else (args,)  # as in SciPy
    closure = Closure(lambda x: func(x, *args)).keep(a, b)
    moves = tuple(type(buffers.plain(x)) is Tracer for x in (a, b))
    integral = _Integral(closure.at, options | {"points": points}, moves, name == "quad_vec")
    a, b = (as_value(x, f"a limit of {name}") for x in (a, b))
    a, b = (x if is_inexact(x) else x.astype(float) for x in (a, b))
    value, error = integral.call(a, b, *closure.held)
    closure.settle()
    return value if name == "quad_vec" else as_python_number(value), stop_gradient(error)


class _Integral:
    """The integral of ``build(held)`` between two limits, as a function of limits and held values."""

    def __init__(self, build: Callable, options: dict, moves: tuple[bool, ...], of_arrays: bool = False):
        self.build = self.__wrapped__ = build
        self.options = options
        self.moves = moves  # whether each limit may have a derivative
        self.of_arrays = of_arrays  # whether it is quad_vec's, of an integrand with several numbers
        self.call = HostCall("scipy.integrate.quad", self.run, self.push, self.forward, self.pull, self.batch)

    def run(self, a: Any, b: Any, *held: Any) -> list:
        f = self.build(list(held))
        if self.of_arrays:
            integral = si.quad_vec(lambda x: number(check_found(f(np.float64(x)))), float(a), float(b), **self.options)
        else:
            integral = si.quad(lambda x: _as_float(f(x)), float(a), float(b), **self.options)
        return [np.asarray(x)[()] for x in integral[:2]]

    def batch(self, size: int, batched: list, values: list) -> tuple[list, list]:
        found = [self.call(*[v[i] if m else v for v, m in zip(values, batched, strict=True)]) for i in range(size)]
        return [np.stack(column) for column in zip(*found, strict=True)], [True, True]

    def ends(self, a: Any, b: Any, held: Any) -> tuple:
        """Return the integrand at each limit that moves: at one that does not, it need not have a value."""
        f = self.build(list(held))
        limits = zip((a, b), self.moves, strict=True)
        return tuple(f(x) if moves and not np.isinf(number(x)).any() else None for x, moves in limits)

    def push(self, operands: list, tangents: list) -> tuple[list, list]:
        a, b, *held = operands
        ta, tb, *changes = tangents
        total = self._has_changed(a, b, held, changes)
        at_a, at_b = self.ends(a, b, held)
        if at_b is not None and _may_move(tb):
            total = total + at_b * tb
        if at_a is not None and _may_move(ta):
            total = total - at_a * ta
        value, error = self.call(*operands)
        return [value, error], [total, np.zeros_like(error)]

    def _has_changed(self, a, b, held, changes):
        moving = [i for i, h in enumerate(held) if is_inexact(h)]
        if not moving:
            return a * 0.0
        n = len(held)

        def build(both):
            hs, ts = both[:n], both[n:]

            def along(x):
                def of(*moved):
                    full = list(hs)
                    for i, h in zip(moving, moved, strict=True):
                        full[i] = h
                    return self.build(full)(x)

                return jvp(of, tuple(hs[i] for i in moving), tuple(ts[i] for i in moving))[1]

            return along

        return _Integral(build, self.options, self.moves, self.of_arrays).call(a, b, *held, *changes)[0]

    def forward(self, *operands: Any) -> tuple[list, Any]:
        return self.call(*operands), list(operands)

    def pull(self, operands: list, cts: list) -> list:
        a, b, *held = operands
        ct = cts[0]
        at_a, at_b = self.ends(a, b, held)
        back = [None if at_a is None else np.sum(-ct * at_a), None if at_b is None else np.sum(ct * at_b)]
        return back + [self._pull(a, b, held, i, ct) if is_inexact(h) else None for i, h in enumerate(held)]

    def _pull(self, a, b, held, i, ct):
        def build(both):
            *hs, weight = both

            def along(x):
                return vjp(lambda h: self.build([*hs[:i], h, *hs[i + 1 :]])(x), hs[i])[1](weight)[0]

            return along

        options, of_arrays = self.options, self.of_arrays
        if not of_arrays and np.shape(held[i]):
            options, of_arrays = {name: options[name] for name in ("epsabs", "epsrel", "points")}, True
        options = options | {"norm": "max"} if of_arrays else options
        return _Integral(build, options, self.moves, of_arrays).call(a, b, *held, ct)[0]


def _as_float(y: Any) -> Any:
    return y if type(y) in (float, np.float64) else number(check_found(y)).item()


def _may_move(tangent: Any) -> bool:
    """Whether a limit moves: one that stays may be where the integrand has no value, which times zero would be NaN."""
    return type(tangent) is Tracer or bool(np.any(tangent))
