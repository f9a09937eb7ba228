"""What `fad.jet` costs beside nested `fad.jvp`: ``python benchmarks/taylor.py`` prints a table for each size.

An entry is the processor time of all derivatives up to an order along a curve, as a multiple of that of f(x), and how
many times longer nested jvp takes along a straight line. The three are timed in turn; the least of several is shown.
Under jit both are compiled, and f is not.
"""

from __future__ import annotations

import argparse
import functools
import os
import time
from collections.abc import Callable

os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import numpy as np

import fad

ORDERS = (1, 2, 3, 4, 5, 6, 8)
DEEPEST = 6  # of nested jvp
WEIGHTS = np.random.default_rng(0).normal(size=(30, 30)) / 6


def _matrix(x):
    x = x[:20]
    return np.outer(x, x) + np.diag(x * x) + 3 * np.eye(20)


ELEMENTWISE = {
    "sin": np.sin,
    "exp": np.exp,
    "log": np.log,
    "tanh": np.tanh,
    "sqrt": np.sqrt,
    "1 / (1 + x)": lambda x: 1 / (1 + x),
    "x ** 3": lambda x: x**3,
    "x ** 2.5": lambda x: x**2.5,
    "arctan2(x, 1 + x)": lambda x: np.arctan2(x, 1 + x),
    "log1p(exp(x))": lambda x: np.log1p(np.exp(x)),
}
MATRICES = {
    "two layers, tanh": lambda x: np.tanh(WEIGHTS @ np.tanh(WEIGHTS @ x[:30])),
    "solve": lambda x: np.linalg.solve(_matrix(x), x[:20]),
    "inv": lambda x: np.linalg.inv(_matrix(x)),
    "cholesky": lambda x: np.linalg.cholesky(_matrix(x)),
    "eigh": lambda x: np.linalg.eigh(_matrix(x))[0],
}


def nested(f: Callable, order: int) -> Callable:
    """Return the derivatives up to an order of t -> f(x + t d) at 0, by jvp of jvp of ..."""

    def derived(x, d, k):
        if k == 0:
            return f(x)
        return fad.jvp(lambda t: derived(x + t * d, d, k - 1), (0.0,), (1.0,))

    return lambda x, d: derived(x, d, order)


def least(calls: dict, seconds: float) -> dict:
    """Return the least processor time of each call, timed in turn."""
    found = dict.fromkeys(calls, np.inf)
    for _ in range(3):
        for name, call in calls.items():
            count, start = 0, time.process_time()
            while count == 0 or time.process_time() - start < seconds:
                call()
                count += 1
            found[name] = min(found[name], (time.process_time() - start) / count)
    return found


def rows(functions: dict, size: int, seconds: float, compiled: bool = False) -> None:
    x = np.linspace(0.5, 1.5, size)
    d = 0.1 * x
    run = fad.jit if compiled else lambda f: f
    for name, f in functions.items():
        cells = []
        for k in ORDERS:
            calls = {
                "f": functools.partial(f, x),
                "jet": functools.partial(run(lambda x, d, f=f, k=k: fad.jet(f, (x,), ([d] * k,))), x, d),
            }
            if k <= DEEPEST:
                calls["nested"] = functools.partial(run(nested(f, k)), x, d)
            for call in calls.values():
                call(), call()
            t = least(calls, seconds)
            more = f", {t['nested'] / t['jet']:.1f}" if k <= DEEPEST else ""
            multiple = t["jet"] / t["f"]
            cells.append(f"{multiple:.{0 if multiple > 10 else 1}f}{more}")
        print(f"| {name} |", " | ".join(cells), "|", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--seconds", type=float, default=0.02, help="of each measurement")
    seconds = parser.parse_args().seconds
    chosen = {name: ELEMENTWISE[name] for name in ("sin", "tanh", "x ** 2.5", "log1p(exp(x))")}
    for size, functions, compiled in (
        (100, {**ELEMENTWISE, **MATRICES}, False),
        (100_000, ELEMENTWISE, False),
        (100, {**chosen, "two layers, tanh": MATRICES["two layers, tanh"]}, True),
        (100_000, chosen, True),
    ):
        print(f"\n| {size} numbers{', under jit' * compiled}, order |", " | ".join(map(str, ORDERS)), "|")
        print("|---" * (len(ORDERS) + 1) + "|")
        rows(functions, size, seconds, compiled)


if __name__ == "__main__":
    main()
