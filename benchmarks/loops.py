"""Plain Python loops under ``fad.jit`` beside the same programs written with ``fad.scan`` and ``fad.while_loop``.

    python benchmarks/loops.py [--only lstm-1024,kalman] [--seconds 2]

Each line is the gradient of one program: the CPU time of the first call of both forms with no kernels on disk, the
least CPU time of a call, the two forms in turns, and the ratio of these. The goal is a ratio of 1.3 and a first call
of a second.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Callable
from typing import Any, NamedTuple

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ["FAD_CACHE_DIR"] = tempfile.mkdtemp(prefix="fad-bench-")

import numpy as np

import fad


class Pair(NamedTuple):
    """One program: its arguments, with a Python loop, and with fad's loops."""

    args: tuple
    plain: Callable
    structured: Callable


def _sigmoid(x: Any) -> Any:
    return 1 / (1 + np.exp(-x))


def _cell(w: Any, u: Any, b: Any, h: Any, c: Any, x: Any) -> tuple:
    forget, enter, leave, change = (w @ x + u @ h + b).reshape(4, -1)
    c = c * _sigmoid(forget) + _sigmoid(enter) * np.tanh(change)
    return _sigmoid(leave) * np.tanh(c), c


def lstm(steps: int, size: int = 16) -> Pair:
    """Return a network of LSTM cells, differentiated in its weights."""
    rng = np.random.default_rng(0)
    args = [0.3 * rng.standard_normal(s) for s in ((4 * size, size), (4 * size, size), 4 * size, (steps, size))]

    def plain(w, u, b, xs):
        h, c = np.zeros(size), np.zeros(size)
        for x in xs:
            h, c = _cell(w, u, b, h, c, x)
        return np.sum(h * h)

    def structured(w, u, b, xs):
        start = (np.zeros(size), np.zeros(size))
        (h, _), _ = fad.scan(lambda state, x: (_cell(w, u, b, *state, x), None), start, xs)
        return np.sum(h * h)

    return Pair(tuple(args), plain, structured)


_CHARGE = np.array([10.0, 0.0])


def _flight(w: Any, position: Any, velocity: Any) -> tuple:
    charges = np.stack([np.stack([10.0 + 0.0 * w[0], 10.0 - w[0]]), _CHARGE])
    force = fad.grad(lambda x: np.sum(1 / np.sqrt(np.sum((x - charges) ** 2, axis=1))))
    return position + 0.1 * velocity, velocity - 0.1 * force(position)


def particle() -> Pair:
    """Return the flight of a charged particle until it crosses an axis, with gradients in it."""

    def miss(position, velocity):
        return (position[0] - position[1] / velocity[1] * velocity[0]) ** 2

    def plain(w):
        position, velocity = np.array([0.0, 8.0]), np.array([0.75, 0.0])
        while position[1] > 0:
            position, velocity = _flight(w, position, velocity)
        return miss(position, velocity)

    def structured(w):
        start = (np.array([0.0, 8.0]), np.array([0.75, 0.0]))
        return miss(*fad.while_loop(lambda s: s[0][1] > 0, lambda s: _flight(w, *s), start))

    return Pair((np.array([0.5]),), plain, structured)


def saddle(outer: int = 60, inner: int = 60) -> Pair:
    """Return a descent on the result of an ascent: both take gradient steps, the outer one through the inner."""

    def height(x, y):
        return np.sum(x**2) - np.sum(y**2) + 0.5 * np.sum(x * y)

    def plain(start):
        def highest(x):
            y = start
            for _ in range(inner):
                y = y + 0.1 * fad.grad(height, argnums=1)(x, y)
            return height(x, y)

        x = start
        for _ in range(outer):
            x = x - 0.1 * fad.grad(highest)(x)
        return np.sum(x * x)

    def structured(start):
        def highest(x):
            up = lambda _, y: y + 0.1 * fad.grad(height, argnums=1)(x, y)
            return height(x, fad.fori_loop(0, inner, up, start))

        return np.sum(fad.fori_loop(0, outer, lambda _, x: x - 0.1 * fad.grad(highest)(x), start) ** 2)

    return Pair((np.array([1.0, -0.7]),), plain, structured)


def logistic(steps: int = 10_000) -> Pair:
    """Return the logistic map, a loop of one line."""

    def plain(x):
        for _ in range(steps):
            x = 3.2 * x * (1 - x)
        return x

    def structured(x):
        return fad.fori_loop(0, steps, lambda _, x: 3.2 * x * (1 - x), x)

    return Pair((np.float64(0.3),), plain, structured)


def kalman(steps: int = 1000) -> Pair:
    """Return the log likelihood of a Kalman filter of two states."""
    rng = np.random.default_rng(0)
    identity, noise, see = np.eye(2), 0.05 * np.eye(2), np.array([[1.0, 0.0]])

    def step(move, mean, spread, total, z):
        mean, spread = move @ mean, move @ spread @ move.T + noise
        error = z - see @ mean
        size = (see @ spread @ see.T)[0, 0] + 0.1
        gain = spread @ see.T / size
        total = total + np.log(size) + error[0] ** 2 / size
        return mean + gain @ error, (identity - gain @ see) @ spread, total

    def plain(move, zs):
        mean, spread, total = np.zeros(2), np.eye(2), 0.0
        for z in zs:
            mean, spread, total = step(move, mean, spread, total, z)
        return total

    def structured(move, zs):
        start = (np.zeros(2), np.eye(2), np.float64(0.0))
        return fad.scan(lambda s, z: (step(move, *s, z), None), start, zs)[0][2]

    return Pair((np.array([[1.0, 0.1], [-0.1, 0.98]]), rng.standard_normal(steps)), plain, structured)


PROGRAMS: dict[str, Callable[[], Pair]] = {
    "lstm-1024": lambda: lstm(1024), "lstm-4096": lambda: lstm(4096), "particle": particle, "saddle": saddle,
    "logistic": logistic, "kalman": kalman,
}  # fmt: skip


def _cpu(call: Callable) -> float:
    start = time.process_time()
    call()
    return time.process_time() - start


def compare(name: str, seconds: float) -> str:
    """Return the line of one program."""
    pair = PROGRAMS[name]()
    calls, first = [], []
    for form in (pair.plain, pair.structured):
        gradient = fad.jit(fad.grad(form))
        calls.append(lambda gradient=gradient: gradient(*pair.args))
        first.append(_cpu(calls[-1]))
    np.testing.assert_allclose(*[call() for call in calls], rtol=1e-6, err_msg=name)
    for call in calls:
        call()
    least, end = [np.inf, np.inf], time.monotonic() + seconds
    while time.monotonic() < end:
        for k, call in enumerate(calls):
            least[k] = min(least[k], _cpu(call))
    found = [f"{1e3 * x:10.3f}" for x in least]
    return f"{name:12} {first[0]:8.2f} {first[1]:8.2f} {found[0]} {found[1]} {least[0] / least[1]:8.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", default=",".join(PROGRAMS))
    parser.add_argument("--seconds", type=float, default=2.0)
    options = parser.parse_args()
    print(f"{'gradient of':12} {'first s':>8} {'scan s':>8} {'loop ms':>10} {'scan ms':>10} {'ratio':>8}")
    for name in options.only.split(","):
        print(compare(name, options.seconds), flush=True)


if __name__ == "__main__":
    main()
