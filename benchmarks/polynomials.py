"""A polynomial fitted by a matrix of powers beside one by ``np.polyval``: what the gradient by the coefficients costs.

    python benchmarks/polynomials.py [--points 1000,16000] [--powers 4,32,128] [--seconds 0.1]

The programs compute the powers in ways that one writes in NumPy. For each the table shows how many times the gradient
by ``np.polyval`` its own takes, under ``fad.grad`` and under ``fad.jit`` of it: least times, all programs in turns. The
aim is twice as much at most under jit.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
os.environ.setdefault("FAD_NUM_THREADS", "1")

import numpy as np

import fad


def polyval(x, t):
    return np.polyval(x, t)


def vander(x, t):
    return np.vander(t, len(x)) @ x


def written(x, t):
    a, p = np.empty((len(t), len(x))), np.ones_like(t)
    for k in range(len(x)):
        a[:, -1 - k] = p
        p = p * t
    return a @ x


def read(x, t):
    a, y = np.vander(t, len(x)), 0.0
    for k in range(len(x)):
        y = y + a[:, k] * x[k]
    return y


def running(x, t):
    p = np.ones_like(t)
    y = x[-1] * p
    for k in range(1, len(x)):
        p = p * t
        y = y + x[-1 - k] * p
    return y


def each(x, t):
    return np.stack([t**k for k in range(len(x))], axis=1) @ x[::-1]


PROGRAMS = {
    "np.vander(t, m) @ x": vander,
    "a[:, k] = p": written,
    "a[:, k] * x[k]": read,
    "p = p * t": running,
    "t**k": each,
}


def loss_of(model: Callable) -> Callable:
    return lambda x, t, y: np.sum((y - model(x, t)) ** 2)


def least_times(functions: list[Callable], args: tuple, seconds: float) -> list[float]:
    """Return the least time of each function, which take turns."""
    for f in functions:
        for _ in range(3):
            f(*args)
    best, end = [float("inf")] * len(functions), time.perf_counter() + seconds * len(functions)
    while time.perf_counter() < end or best[-1] == float("inf"):
        for k, f in enumerate(functions):
            start = time.perf_counter()
            f(*args)
            best[k] = min(best[k], time.perf_counter() - start)
    return best


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", default="1000,16000")
    parser.add_argument("--powers", default="4,32,128")
    parser.add_argument("--seconds", type=float, default=0.1)
    options = parser.parse_args()
    print("| points, powers | µs by np.polyval | " + " | ".join(PROGRAMS) + " |")
    print("|---|---|" + "---|" * len(PROGRAMS))
    gradients = [fad.grad(loss_of(model)) for model in (polyval, *PROGRAMS.values())]
    for n in map(int, options.points.split(",")):
        for m in map(int, options.powers.split(",")):
            t = np.linspace(-1.0, 1.0, n)
            args = np.random.default_rng(0).normal(size=m), t, np.sign(t)
            for name, functions in (("grad", gradients), ("jit", [fad.jit(g) for g in gradients])):
                first, *others = least_times(functions, args, options.seconds)
                found = " | ".join(f"{s / first:.2f}" for s in others)
                print(f"| {n}, {m}, {name} | {first * 1e6:.0f} | {found} |", flush=True)


if __name__ == "__main__":
    main()
