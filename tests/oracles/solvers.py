"""What iterates or integrates is no single operation with samples: one program for each, here and in other libraries.

A program is a function of arrays; where another library has the function, `others` gives the same program in it.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import fad

ROWS, COLUMNS = np.array([0, 0, 1, 1, 2, 2]), np.array([0, 2, 0, 1, 1, 2])  # by rows, so that they make a csr_array too
STARTS = np.array([0, 2, 4, 6])
ENTRIES, B = np.array([4.0, -1.0, 0.5, 3.0, 1.0, 5.0]), np.array([1.0, -2.0, 0.5])
DIAGONALLY = np.array([[4.0, -1.0, 0.3], [-1.0, 3.0, 0.2], [0.3, 0.2, 2.0]])
A, TIMES, X0 = np.array([0.8, 0.5]), np.array([0.0, 0.4, 1.0]), np.array([1.0, 0.7])


class Program(NamedTuple):
    """`fad` and each of `others`, ``(library) -> function``, take `points` and return one array."""

    points: tuple
    fad: Callable
    others: dict[str, Callable] = {}
    tolerances: tuple = (1e-6, 1e-6)  # a solver stops where its tolerance says
    flat = False
    extra: dict[str, Any] = {}


def programs() -> dict[str, Program]:
    """Return ``{path: program}``; it needs SciPy."""
    return {**_roots(), **_integrals(), **_sparse()}


def _bowl(m: Any) -> Callable:
    return lambda x, a: m.sum((x**3 + x - a) ** 2)  # 0 at its minimum, where differences of values keep their digits


def _equations(x, a):
    return x**3 + a * x - 1.0


def _roots() -> dict[str, Program]:
    optimize = importlib.import_module("fad.scipy.optimize")
    one = lambda function: lambda a: function(_equations, a)
    newton = lambda f, x: x - f(x) / (3 * x**2 + A)  # steps enough for every digit
    steps = lambda f, x: newton(f, newton(f, newton(f, newton(f, newton(f, newton(f, x))))))
    return {
        "scipy.optimize.root": Program((A,), lambda a: optimize.root(_equations, np.ones(2), (a,), tol=1e-13).x),
        "scipy.optimize.fixed_point": Program(
            (A,),
            lambda a: optimize.fixed_point(lambda x, a: np.cos(a * x), np.ones(2), (a,), 1e-13),
            {"autograd": _autograd_fixed_point},
        ),
        "scipy.optimize.linprog": Program(
            (A,), lambda a: optimize.linprog([-1.0, -2.0], np.array([[1.0, 1.0], [1.0, 3.0]]), a).x
        ),
        "scipy.optimize.minimize": Program(
            (A,),
            lambda a: optimize.minimize(_bowl(np), 0.5 * np.ones(2), (a,), tol=1e-10).x,
            {"JAX": _jax_minimize},
        ),
        "scipy.optimize.least_squares": Program(
            (A,), lambda a: optimize.least_squares(_equations, np.ones(2), xtol=1e-13, args=(a,)).x
        ),
        "scipy.optimize.newton": Program((A,), one(lambda f, a: optimize.newton(f, np.ones(2), args=(a,), tol=1e-13))),
        "scipy.optimize.brentq": Program((A[0],), one(lambda f, a: optimize.brentq(f, 0.0, 1.0, (a,), 1e-14))),
        "scipy.optimize.root_scalar": Program(
            (A[0],), one(lambda f, a: optimize.root_scalar(f, (a,), bracket=(0.0, 1.0), xtol=1e-14).root)
        ),
        "custom_root": Program(
            (A,),
            lambda a: fad.custom_root(
                lambda x: _equations(x, a), np.ones(2), steps, lambda g, y: y / g(np.ones_like(y))
            ),
            {
                "JAX": lambda peer: (
                    lambda a: peer.jax.lax.custom_root(
                        lambda x: _equations(x, a), peer.jnp.ones(2), steps, lambda g, y: y / g(peer.jnp.ones_like(y))
                    )
                )
            },
        ),
        "custom_linear_solve": Program(
            (DIAGONALLY, B),
            lambda m, b: fad.custom_linear_solve(
                lambda x: _even(m) @ x, b, lambda g, y: np.linalg.solve(_even(m), y), symmetric=True
            ),
            {
                "JAX": lambda peer: (
                    lambda m, b: peer.jax.lax.custom_linear_solve(
                        lambda x: _even(m) @ x,
                        b,
                        lambda g, y: peer.jnp.linalg.solve(_even(m), y),
                        symmetric=True,
                    )
                )
            },
        ),
    }


def _autograd_fixed_point(peer: Any) -> Callable:
    fixed_point = importlib.import_module("autograd.misc.fixed_points").fixed_point
    distance = lambda x, y: peer.anp.max(peer.anp.abs(x - y))
    return lambda a: fixed_point(lambda a: lambda x: peer.anp.cos(a * x), a, np.ones(2), distance, 1e-13)


def _jax_minimize(peer: Any) -> Callable:
    minimize = importlib.import_module("jax.scipy.optimize").minimize
    return lambda a: minimize(_bowl(peer.jnp), 0.5 * peer.jnp.ones(2), (a,), method="BFGS", tol=1e-10).x


def _integrals() -> dict[str, Program]:
    integrate = importlib.import_module("fad.scipy.integrate")
    tight = {"rtol": 1e-10, "atol": 1e-11}
    decay = lambda m: lambda y, t, a: m.stack([-a[0] * y[0] * y[1], -a[1] * y[1] + m.sin(t) * y[0]])

    def solve(a, x0, t):
        f = lambda s, y, a: decay(np)(y, s, a)
        return integrate.solve_ivp(f, (t[0], t[-1]), x0, t_eval=t, args=(a,), **tight).y

    return {
        "scipy.integrate.quad": Program(
            (0.2, A),
            lambda low, a: integrate.quad(lambda x, b, c: np.exp(-b * x) * np.sin(c * x), low, 1.5, (a[0], a[1]))[0],
        ),
        "scipy.integrate.solve_bvp": Program((A,), lambda a: _bend(integrate, a)),
        "scipy.integrate.solve_ivp": Program((A, X0), lambda a, x0: solve(a, x0, TIMES)),
        "scipy.integrate.odeint": Program(
            (A, X0),
            lambda a, x0: integrate.odeint(decay(np), x0, TIMES, (a,), **tight),
            {
                "JAX": lambda peer: _jax_odeint(peer, decay, tight),
                "autograd": lambda peer: _autograd_odeint(peer, decay),
            },
        ),
    }


def _bend(integrate: Any, a: Any) -> Any:
    """Return the slopes at the ends of a rod whose ends are held, and on which a load of two parts lies."""
    x = np.linspace(0.0, 1.0, 11)
    fun = lambda x, y: np.stack([y[1], a[0] * y[0] + a[1] * x])
    return integrate.solve_bvp(fun, lambda s, e: np.stack([s[0] - 0.2, e[0] - a[0]]), x, np.ones((2, 11))).y[1]


def _jax_odeint(peer: Any, decay: Callable, tight: dict) -> Callable:
    odeint = importlib.import_module("jax.experimental.ode").odeint
    return lambda a, x0: odeint(decay(peer.jnp), x0, peer.jnp.asarray(TIMES), a, **tight)


def _autograd_odeint(peer: Any, decay: Callable) -> Callable:
    odeint = importlib.import_module("autograd.scipy.integrate").odeint
    return lambda a, x0: odeint(decay(peer.anp), x0, TIMES, peer.autograd.builtins.tuple((a,)), rtol=1e-10, atol=1e-11)


def _sparse() -> dict[str, Program]:
    sparse = importlib.import_module("fad.scipy.sparse")
    ours = lambda d: sparse.coo_array((d, (ROWS, COLUMNS)), shape=(3, 3))
    iterated = {
        f"scipy.sparse.linalg.{name}": Program(
            (DIAGONALLY, B),
            lambda m, b, name=name: getattr(sparse.linalg, name)(_as_sparse(sparse, _even(m)), b, rtol=1e-13)[0],
            {"JAX": lambda peer, name=name: _jax_iterated(peer, name)},
        )
        for name in ("cg", "bicgstab", "gmres")
    }
    return {
        "scipy.sparse.matmul": Program(
            (ENTRIES, B),
            lambda d, x: ours(d) @ x,
            {
                "JAX": lambda peer: lambda d, x: _bcoo(peer, d) @ x,
                "PyTorch": lambda peer: lambda d, x: peer.torch.sparse_coo_tensor(_places(), d, (3, 3)) @ x,
            },
        ),
        "scipy.sparse.linalg.spsolve": Program(
            (ENTRIES, B),
            lambda d, b: sparse.linalg.spsolve(ours(d), b),
            {
                "JAX": _jax_spsolve,
                "PyTorch": lambda peer: (
                    lambda d, b: peer.torch.sparse.spsolve(peer.torch.sparse_csr_tensor(STARTS, COLUMNS, d, (3, 3)), b)
                ),
            },
        ),
        **iterated,
    }


def _even(m: Any) -> Any:
    return (m + m.T) / 2  # what takes symmetric matrices is differentiated among those


def _as_sparse(sparse: Any, m: Any) -> Any:
    rows, columns = np.divmod(np.arange(9), 3)
    return sparse.coo_array((m.ravel(), (rows, columns)), shape=(3, 3))


def _places() -> np.ndarray:
    return np.stack([ROWS, COLUMNS])


def _bcoo(peer: Any, d: Any) -> Any:
    return importlib.import_module("jax.experimental.sparse").BCOO((d, peer.jnp.asarray(_places().T)), shape=(3, 3))


def _jax_iterated(peer: Any, name: str) -> Callable:
    solve = getattr(importlib.import_module("jax.scipy.sparse.linalg"), name)
    return lambda m, b: solve(lambda x: _even(m) @ x, b, tol=1e-13)[0]


def _jax_spsolve(peer: Any) -> Callable:
    spsolve = importlib.import_module("jax.experimental.sparse.linalg").spsolve
    return lambda d, b: spsolve(d, peer.jnp.asarray(COLUMNS), peer.jnp.asarray(STARTS), b)
