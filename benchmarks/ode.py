"""Differential equations beside JAX's ``odeint``: ``python benchmarks/ode.py [--write]``.

One program solves by ``scipy.integrate.solve_ivp`` (RK45), as it is and under ``fad.jit``, the other by
``jax.experimental.ode.odeint`` under ``jax.jit``, a method of the same order; both with the same tolerances. With
``--write`` the table of docs/benchmarks.md is rewritten.
"""

from __future__ import annotations

import argparse
import pathlib
import time
from collections.abc import Callable
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import scipy.integrate as si
from jax.experimental.ode import odeint

import fad

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "benchmarks.md"
TITLE, NEXT = "## Differential equations beside JAX", "## GradBench"
ROUNDS = 50


class Problem(NamedTuple):
    """A right-hand side ``f(xp, t, y, p)``, a first state, the end of time, and parameters."""

    slope: Callable
    start: Any
    end: float
    parameters: Any
    tolerance: float


def predators(xp: Any, t: Any, y: Any, p: Any) -> Any:
    return xp.stack([p[0] * y[0] - p[1] * y[0] * y[1], p[3] * y[0] * y[1] - p[2] * y[1]])


def lorenz(xp: Any, t: Any, y: Any, p: Any) -> Any:
    return xp.stack([p[0] * (y[1] - y[0]), y[0] * (p[1] - y[2]) - y[1], y[0] * y[1] - p[2] * y[2]])


def heat(xp: Any, t: Any, u: Any, p: Any) -> Any:
    inner = u[2:] - 2.0 * u[1:-1] + u[:-2]
    return 100.0 * xp.concatenate([u[1:2] - u[:1], p[1:-1] * inner, u[-2:-1] - u[-1:]])


PROBLEMS = {
    "predator and prey": Problem(predators, np.array([1.0, 1.0]), 10.0, np.array([1.5, 1.0, 3.0, 1.0]), 1e-8),
    "Lorenz": Problem(lorenz, np.array([1.0, 1.0, 1.0]), 2.0, np.array([10.0, 28.0, 8 / 3]), 1e-8),
    "heat in 100 places": Problem(
        heat, np.sin(np.linspace(0.0, 3.0, 100)), 0.2, np.linspace(0.5, 1.5, 100), 1e-6
    ),
}  # fmt: skip


def by_scipy(problem: Problem) -> Callable:
    """Return the sum of squares of a solution at fifty times, as SciPy's users write it."""
    times = np.linspace(0.0, problem.end, 50)

    def loss(p: Any) -> Any:
        field = lambda t, y: problem.slope(np, t, y, p)
        options = {"rtol": problem.tolerance, "atol": problem.tolerance}
        return np.sum(si.solve_ivp(field, (0.0, problem.end), problem.start, t_eval=times, **options).y ** 2)

    return loss


def by_jax(problem: Problem) -> Callable:
    """Return the same by JAX's solver."""
    times, start = jnp.linspace(0.0, problem.end, 50), jnp.asarray(problem.start)

    def loss(p: Any) -> Any:
        field = lambda y, t, p: problem.slope(jnp, t, y, p)
        return jnp.sum(odeint(field, start, times, p, rtol=problem.tolerance, atol=problem.tolerance) ** 2)

    return loss


def measure(f: Callable, p: Any) -> tuple[float, float]:
    """Return the milliseconds of a call, the least of many, and the seconds of the first one."""
    seconds = []
    for _ in range(ROUNDS):
        begin = time.perf_counter()
        np.asarray(f(p))
        seconds.append(time.perf_counter() - begin)
    return 1e3 * min(seconds), seconds[0]


def compare(problem: Problem) -> list[float]:
    """Return the times of SciPy, fad and JAX for the value, of fad and JAX for the gradient, and their first calls."""
    ours, theirs = by_scipy(problem), by_jax(problem)
    p, q = problem.parameters, jnp.asarray(problem.parameters)
    fast, gradient = fad.jit(ours), fad.jit(fad.grad(ours))
    jax_fast, jax_gradient = jax.jit(theirs), jax.jit(jax.grad(theirs))
    found = [measure(f, x) for f, x in ((fast, p), (jax_fast, q), (gradient, p), (jax_gradient, q))]
    np.testing.assert_allclose(fast(p), jax_fast(q), rtol=1e-3)
    np.testing.assert_allclose(gradient(p), jax_gradient(q), rtol=1e-2, atol=1e-2)
    plain = measure(ours, p)[0]
    return [plain, *[ms for ms, _ in found], *[first for _, first in found[2:]]]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help="rewrite the table of docs/benchmarks.md")
    given = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    rows = [
        "| equation | SciPy | fad | JAX | gradient, fad | JAX | fad / JAX | first call, s, fad | JAX |",
        "|---|---:|---:|---:|---:|---:|---:|---:|---:|",
    ]
    for name, problem in PROBLEMS.items():
        plain, ours, theirs, steep, jax_steep, first, jax_first = compare(problem)
        ratios = f"{ours / theirs:.2f}, {steep / jax_steep:.2f}"
        numbers = " | ".join(f"{x:.3g}" for x in (plain, ours, theirs, steep, jax_steep))
        rows.append(f"| {name} | {numbers} | {ratios} | {first:.2f} | {jax_first:.2f} |")
    print("\n".join(rows))
    if given.write:
        text = PAGE.read_text()
        before, _, rest = text.partition(TITLE)
        about = rest[: rest.index("\n|")] if rest else ""
        behind = text[text.index(NEXT) :]
        PAGE.write_text(f"{before.partition(NEXT)[0]}{TITLE}{about}\n" + "\n".join(rows) + f"\n\n{behind}")


if __name__ == "__main__":
    main()
