"""Gradients of single operations beside JAX's: ``python benchmarks/beside_jax.py [--write] [--only points]``.

With ``--write`` the tables of docs/benchmarks.md are rewritten, with ``--only`` those of some groups.
"""

from __future__ import annotations

import argparse
import gc
import math
import pathlib
import time
from collections.abc import Callable

import jax
import jax.numpy as jnp
import numpy as np

import fad

PAGE = pathlib.Path(__file__).parents[1] / "docs" / "benchmarks.md"
NEXT = "## Differential equations beside JAX"

ALGEBRA = {
    "solve": lambda xp, a: xp.linalg.solve(a, a[:, :1]).sum(),
    "solve for n columns": lambda xp, a: xp.linalg.solve(a, a.T).sum(),
    "inv": lambda xp, a: xp.linalg.inv(a).sum(),
    "det": lambda xp, a: xp.linalg.det(a / len(a)),
    "slogdet": lambda xp, a: xp.linalg.slogdet(a)[1],
    "cholesky": lambda xp, a: xp.linalg.cholesky(a @ a.T).sum(),
    "qr": lambda xp, a: xp.linalg.qr(a)[0].sum(),
    "eigh": lambda xp, a: (xp.linalg.eigh(a + a.T)[1] ** 3).sum(),
    "svd": lambda xp, a: (xp.linalg.svd(a)[0] ** 3).sum(),
    "singular values": lambda xp, a: xp.sqrt(xp.linalg.svd(a, compute_uv=False)).sum(),
}


def _forces(xp, x):
    d = x[:, None, :] - x[None, :, :]
    return (((d / xp.sqrt((d**2).sum(-1) + 0.1)[..., None] ** 3).sum(1)) ** 2).sum()


POINTS = {
    "distances": lambda xp, x: xp.sqrt(((x[:, None] - x[None]) ** 2).sum(-1) + 1).sum(),
    "a Gaussian kernel": lambda xp, x: xp.exp(-0.5 * ((x[:, None] - x[None]) ** 2).sum(-1)).sum(),
    "forces": _forces,
}
STACKS = {
    "solve": lambda xp, a: (xp.linalg.solve(a, a[..., :1] + 1.0) ** 2).sum(),
    "inv": lambda xp, a: (xp.linalg.inv(a) ** 2).sum(),
    "slogdet": lambda xp, a: xp.linalg.slogdet(a)[1].sum(),
    "cholesky": lambda xp, a: (xp.linalg.cholesky(a @ a.swapaxes(1, 2)) ** 3).sum(),
}


def _run(step, state, observed):
    for y in observed:
        state = step(state, y)
    return state


def _scan(step, state, observed):
    return jax.lax.scan(lambda state, y: (step(state, y), None), state, observed)[0]


def _filter(how: Callable) -> tuple[Callable, Callable]:
    """Return the likelihood of a Kalman filter with n states, a function of the n x n factor of the noise."""

    def likelihood(xp, factor, run):
        n = len(factor)
        m = n // 2
        move, see = 0.9 * np.eye(n) + 0.1 * np.eye(n, k=1), np.eye(m, n)
        observed = np.random.default_rng(0).normal(size=(200, m)).cumsum(0)

        def step(state, y):
            x, p, total = state
            x, p = move @ x, move @ p @ move.T + factor @ factor.T
            error, seen = y - see @ x, see @ p
            found, gain = how(xp, error, seen @ see.T + xp.eye(m), seen)
            return x + gain @ error, p - gain @ seen, total + found

        return run(step, (xp.zeros(n), xp.eye(n), 0.0), observed)[2]

    return lambda xp, factor: likelihood(xp, factor, _run), lambda xp, factor: likelihood(xp, factor, _scan)


def _by_inverse(xp, error, s, seen):
    inverse = xp.linalg.inv(s)
    return error @ inverse @ error + xp.log(xp.linalg.det(s)), (inverse @ seen).T


def _by_solving(xp, error, s, seen):
    return error @ xp.linalg.solve(s, error) + xp.linalg.slogdet(s)[1], xp.linalg.solve(s, seen).T


def _by_factor(xp, error, s, seen):
    factor = xp.linalg.cholesky(s)
    white = xp.linalg.solve(factor, error)
    gain = xp.linalg.solve(factor.T, xp.linalg.solve(factor, seen)).T
    return white @ white + 2 * xp.log(xp.diagonal(factor)).sum(), gain


FILTERS = {
    "with inv and det": _filter(_by_inverse),
    "with solve and slogdet": _filter(_by_solving),
    "with cholesky": _filter(_by_factor),
}


def _repeat(step: Callable) -> tuple[Callable, Callable]:
    """Return 200 steps of ``step(xp, x, a)`` from a vector on, beside a matrix, as functions of the vector."""

    def finish(xp, x, run):
        a = np.random.default_rng(1).normal(size=(len(x), len(x))) / len(x)
        return (run(lambda x, _: step(xp, x, a), x, np.zeros(200)) * np.arange(len(x))).sum()

    return lambda xp, x: finish(xp, x, _run), lambda xp, x: finish(xp, x, _scan)


LOOPS = {
    "sort": _repeat(lambda xp, x, a: 0.9 * xp.sort(x) + 0.1 * x),
    "argsort": _repeat(lambda xp, x, a: 0.9 * x[xp.argsort(x)] + 0.1 * x),
    "median": _repeat(lambda xp, x, a: 0.9 * x + 0.01 * xp.median(x)),
    "eigvalsh": _repeat(lambda xp, x, a: xp.tanh(xp.linalg.eigvalsh(a + a.T + xp.diag(x)))),
    "eigh": _repeat(lambda xp, x, a: xp.tanh(xp.linalg.eigh(a + a.T + xp.diag(x))[1][:, 0] ** 2 + 0.5 * x)),
    "svd": _repeat(lambda xp, x, a: xp.tanh(xp.linalg.svd(a + xp.diag(x + 2))[0][0] + 0.5 * x)),
    "qr": _repeat(lambda xp, x, a: xp.tanh(xp.linalg.qr(a + xp.diag(x + 2))[1][0] + 0.5 * x)),
    "pinv": _repeat(lambda xp, x, a: xp.tanh(xp.linalg.pinv(a + xp.diag(x + 2)) @ x)),
    "lstsq": _repeat(lambda xp, x, a: xp.tanh(xp.linalg.lstsq(a + xp.diag(x + 2), x)[0])),
}
TABLE = np.linspace(0.0, 1.0, 9) ** 2


def _march(step: Callable, theirs: Callable | None = None) -> tuple[Callable, Callable]:
    """Return steps of one number, each with an element of a vector: ``step(math, s, v)``, and JAX's with ``jnp``."""

    def loop(xp, x):
        s = 0.5
        for v in x:
            s = step(math, s, v)
        return s

    return loop, lambda xp, x: jax.lax.scan(lambda s, v: ((theirs or step)(xp, s, v), None), 0.5, x)[0]


def _look_up(m, s, v):
    k = int(7 * s)
    return 0.5 * abs(m.tanh(v)) + 0.5 * (TABLE[k] + (7 * s - k) * (TABLE[k + 1] - TABLE[k]))


def _look_up_in_jax(m, s, v):
    k, table = (7 * s).astype(int), m.asarray(TABLE)
    return 0.5 * abs(m.tanh(v)) + 0.5 * (table[k] + (7 * s - k) * (table[k + 1] - table[k]))


NUMBERS = {
    "sine": _march(lambda m, s, v: 0.9 * s + 0.1 * m.sin(s) + 0.1 * v),
    "growth": _march(lambda m, s, v: s + 0.01 * s * (1.0 - s) * m.exp(-s * s) + 0.001 * v),
    "powers": _march(lambda m, s, v: 0.5 * s + 0.01 * (s * s + 1.5) ** -6 - 0.01 * (s * s + 1.5) ** -3 + 0.1 * v),
    "square root": _march(lambda m, s, v: 0.5 * (s + (1.0 + v * v) / s) + 0.1 * m.sqrt(s * s + v * v)),
    "table": _march(_look_up, _look_up_in_jax),
}


class Pendulum:
    """A pendulum that is pushed."""

    def __init__(self):
        self.angle, self.speed, self.energy = 1.0, 0.0, 0.0

    def step(self, h, push):
        self.speed -= h * (np.sin(self.angle) + 0.1 * self.speed - push)
        self.angle += h * self.speed
        self.energy = 0.9 * self.energy + 0.1 * self.speed**2


class Vector:
    """A vector of the plane."""

    def __init__(self, x, y):
        self.x, self.y = x, y

    def __add__(self, other):
        return Vector(self.x + other.x, self.y + other.y)

    def __mul__(self, k):
        return Vector(self.x * k, self.y * k)


def _swing(xp, x):
    p = Pendulum()
    for push in x:
        p.step(0.01, push)
    return p.angle + p.energy


def _swing_in_jax(xp, x):
    def step(state, push):
        angle, speed, energy = state
        speed = speed - 0.01 * (xp.sin(angle) + 0.1 * speed - push)
        angle = angle + 0.01 * speed
        return (angle, speed, 0.9 * energy + 0.1 * speed**2), None

    angle, _, energy = jax.lax.scan(step, (1.0, 0.0, 0.0), x)[0]
    return angle + energy


def _fly(xp, x):
    place, speed = Vector(1.0, 0.0), Vector(0.0, 1.0)
    for wind in x:
        r = np.sqrt(place.x**2 + place.y**2)
        speed = speed + place * (-0.01 / r**3) + Vector(0.001 * wind, 0.0)
        place = place + speed * 0.01
    return place.x * speed.y


def _fly_in_jax(xp, x):
    def step(state, wind):
        (px, py), (vx, vy) = state
        pull = -0.01 / xp.sqrt(px**2 + py**2) ** 3
        vx, vy = vx + px * pull + 0.001 * wind, vy + py * pull
        return ((px + 0.01 * vx, py + 0.01 * vy), (vx, vy)), None

    (px, _), (_, vy) = jax.lax.scan(step, ((1.0, 0.0), (0.0, 1.0)), x)[0]
    return px * vy


def _trace(xp, x):
    seen = {"y": [0.5], "t": [0.0]}
    for v in x:
        seen["y"].append(seen["y"][-1] + 0.01 * (np.sin(seen["t"][-1]) - seen["y"][-1] + v))
        seen["t"].append(seen["t"][-1] + 0.01)
    return np.sum(np.array(seen["y"]) ** 2)


def _trace_in_jax(xp, x):
    def step(state, v):
        y, t = state
        y = y + 0.01 * (xp.sin(t) - y + v)
        return (y, t + 0.01), y

    return xp.sum(jax.lax.scan(step, (0.5, 0.0), x)[1] ** 2) + 0.25


OBJECTS = {
    "attributes": (_swing, _swing_in_jax),
    "new vectors": (_fly, _fly_in_jax),
    "lists in a dictionary": (_trace, _trace_in_jax),
}
VECTORS = {
    "convolve, 5": lambda xp, x: (xp.convolve(x, xp.arange(5.0)) ** 2).sum(),
    "convolve, 32": lambda xp, x: (xp.convolve(x, xp.arange(32.0), "same") ** 2).sum(),
    "sort": lambda xp, x: (xp.sort(x) * xp.arange(x.size)).sum(),
    "cumsum": lambda xp, x: (xp.cumsum(x) ** 2).sum(),
    "interp": lambda xp, x: xp.interp(xp.linspace(0, 1, x.size), xp.linspace(0, 1, x.size), x).sum(),
    "fft": lambda xp, x: xp.abs(xp.fft.rfft(x)).sum(),
    "median": lambda xp, x: xp.median(x),
}


def _matrix(n):
    return np.random.default_rng(0).normal(size=(n, n)) + n * np.eye(n)


def _matrices(shape):
    return np.random.default_rng(0).normal(size=shape) + shape[-1] * np.eye(shape[-1])


def _noise(n):
    return 0.3 * np.eye(n)


def _points(shape):
    return np.random.default_rng(0).normal(size=shape)


GROUPS: dict[str, tuple] = {
    "Linear algebra": (
        ALGEBRA, (10, 50, 200, 500), _matrix,
        "Functions of one matrix of n rows and columns. With SciPy installed the factors of a matrix are found once\n"
        "and serve its gradient, too ([how](design/linalg.md#factors-that-are-kept)).",
    ),
    "Stacks of small matrices": (
        STACKS, ((10_000, 2, 2), (5_000, 3, 3), (2_000, 5, 5), (500, 8, 8), (200, 16, 16), (50, 32, 32)), _matrices,
        "Functions of each matrix of a stack. Native code computes them by vectors that are a matrix's rows\n"
        "([how](design/linalg.md#small-matrices)).",
    ),
    "Kalman filters": (
        FILTERS, (4, 6, 8, 12, 20), _noise,
        "Filters of n states and n / 2 observations, 200 steps: a `for` loop as anyone writes it, and for JAX a\n"
        "`lax.scan`. The loop and its gradient are one native function each.",
    ),
    "Loops over single numbers": (
        NUMBERS, (1_000, 10_000), _points,
        "n steps of one number, written with Python's `math`, and for JAX a `lax.scan`; the column of NumPy is\n"
        "Python's.",
    ),
    "Loops over objects": (
        OBJECTS, (1_000, 10_000), _points,
        "n steps that change the attributes of an object, make two objects of a class with operators, or append to\n"
        "lists and read their ends, as Python's programs are written, and for JAX a `lax.scan` of the numbers.",
    ),
    "Loops that sort and decompose": (
        LOOPS, (6, 12, 24), _points,
        "200 steps with n numbers, or with an n x n matrix: a `for` loop, and for JAX a `lax.scan`. Sorting and\n"
        "LAPACK are those of NumPy ([how](design/linalg.md#decompositions-in-native-code)), called in the native loop.",
    ),
    "Points in space": (
        POINTS, ((50, 3), (200, 2), (200, 3), (200, 8), (500, 3)), _points,
        "Functions of all pairs of n points with d coordinates, written as ``x[:, None] - x[None]``.",
    ),
    "Vectors": (VECTORS, (1_000, 100_000), _points, "Functions of a vector of n numbers."),
}  # fmt: skip


def measure(runs: list[Callable]) -> list[float]:
    """Return the least times of functions that take turns, in milliseconds; none collects another's garbage."""
    found = []
    for run in runs:
        run(), run()
    gc.freeze()
    for _ in range(15):
        times = []
        for run in runs:
            gc.collect()
            start = time.perf_counter()
            run()
            times.append((time.perf_counter() - start) * 1e3)
        found.append(times)
    return np.min(found, axis=0).tolist()


def row(name: str, program: Callable | tuple[Callable, Callable], x: np.ndarray) -> str:
    program, theirs = program if isinstance(program, tuple) else (program, program)
    gradient = fad.grad(lambda x: program(np, x))
    compiled = fad.jit(gradient)
    other, near = jax.jit(jax.grad(lambda x: theirs(jnp, x))), jnp.asarray(x)
    wanted = gradient(x)
    np.testing.assert_allclose(compiled(x), wanted, rtol=1e-6, atol=1e-9 * np.abs(wanted).max())
    times = measure([
        lambda: program(np, x), lambda: gradient(x), lambda: compiled(x), lambda: other(near).block_until_ready(),
    ])  # fmt: skip
    size = "square" if x.ndim == 2 and x.shape[0] == x.shape[1] else " x ".join(map(str, x.shape))
    size = str(len(x)) if size == "square" else size
    return f"| {name}, {size} | " + " | ".join([f"{t:.3g}" for t in times]) + f" | {times[2] / times[3]:.2f} |"


def section(title: str, rows: list[str], text: str) -> str:
    lines = "\n".join(rows)
    return f"""### {title}

{text}

| | NumPy | fad | fad jit | JAX jit | jit / JAX |
|---|---:|---:|---:|---:|---:|
{lines}
"""


def page(sections: list[str]) -> str:
    return f"""{HEADING}

Double precision, on one thread, in milliseconds: the plain run, the gradient without and with `fad.jit`, and that of
`jax.jit`. `python benchmarks/beside_jax.py --write` makes these tables.

{chr(10).join(sections)}"""


HEADING = "## Single operations"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only", default="", help="part of a group's title")
    options = parser.parse_args()
    jax.config.update("jax_enable_x64", True)
    sections = []
    for title, (programs, sizes, make, text) in GROUPS.items():
        if options.only not in title.lower():
            continue
        rows = []
        for name, program in programs.items():
            for size in sizes:
                rows.append(row(name, program, make(size)))
                print(rows[-1], flush=True)
        sections.append(section(title, rows, text))
    if options.write:
        before, _, after = PAGE.read_text(encoding="utf-8").partition(f"\n{NEXT}\n")
        before, _, old = before.partition(f"\n{HEADING}\n")
        known = {text.partition("\n")[0]: f"### {text}" for text in old.split("\n### ")[1:]}
        known |= {text[4:].partition("\n")[0]: text for text in sections}
        made = [known[title].rstrip() + "\n" for title in GROUPS if title in known]
        PAGE.write_text(f"{before.rstrip()}\n\n{page(made)}\n{NEXT}\n{after}", encoding="utf-8")


if __name__ == "__main__":
    main()
