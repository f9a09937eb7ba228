"""What a write costs: a thousand steps, each of which reads and writes at most eight elements of an array of n.

    python benchmarks/writes.py [--steps N] [--sizes 1024,65536] [--rounds N] [--only scan]

The table shows microseconds a step, of the value and of its gradient: for the plain NumPy program and `fad.grad` of it
("eager"), for both under `fad.jit`, where Python's loop is unrolled, and for the same steps in `fad.scan` with
``.at[]``. The time of a program of a few steps is taken off, so that what a call costs whatever it writes (to copy the
argument, to add up the result) does not count. A step that costs what it touches takes the same time for every n.
"""

from __future__ import annotations

import argparse
import os
import time
from collections.abc import Callable

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("FAD_NUM_THREADS", "1")

import numpy as np

import fad

FEW = 8  # steps of the program whose time is taken off
EIGHT = np.arange(8)


def product(a, steps):
    for i in range(1, steps + 1):
        a[i] = a[i] * a[i - 1]
    return np.sum(a * a)


def slices(a, steps):
    for i in range(1, steps + 1):
        a[i : i + 8] = a[i : i + 8] * a[i - 1 : i + 7]
    return np.sum(a * a)


def added(a, steps):
    for i in range(1, steps + 1):
        a[i] += 0.5 * a[i - 1]
    return np.sum(a * a)


def scanned(step: Callable) -> Callable:
    def run(a, steps):
        a, _ = fad.scan(lambda a, i: (step(a, i), None), a, np.arange(1, steps + 1))
        return np.sum(a * a)

    return run


PROGRAMS = {
    "a[i] = a[i] * a[i-1]": (product, scanned(lambda a, i: a.at[i].set(a[i] * a[i - 1]))),
    "slice of 8": (slices, scanned(lambda a, i: a.at[i + EIGHT].set(a[i + EIGHT] * a[i - 1 + EIGHT]))),
    "a[i] += a[i-1] / 2": (added, scanned(lambda a, i: a.at[i].add(0.5 * a[i - 1]))),
}


def seconds(f: Callable, x: np.ndarray) -> float:
    y = x.copy()
    start = time.perf_counter()
    f(y)
    return time.perf_counter() - start


def a_step(f: Callable, x: np.ndarray, options: argparse.Namespace, compiled: bool) -> float:
    """Return microseconds a step: what the long program takes beyond the short one, both in turns."""
    runs = []
    for steps in (FEW, options.steps):
        run = lambda a, steps=steps: f(a, steps)
        runs.append(fad.jit(run) if compiled else run)
    for run in runs:
        for _ in range(3 if compiled else 1):
            run(x.copy())
    few, many = zip(*[[seconds(run, x) for run in runs] for _ in range(options.rounds)], strict=True)
    return 1e6 * (min(many) - min(few)) / (options.steps - FEW)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--steps", type=int, default=1000)
    parser.add_argument("--sizes", default="1024,16384,65536,1000000")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--only", choices=("eager", "unrolled", "scan"))
    options = parser.parse_args()
    sizes = [int(n) for n in options.sizes.split(",")]
    print("| microseconds a step, value/gradient | " + " | ".join(f"n = {n:,}" for n in sizes) + " |")
    print("|---|" + "---|" * len(sizes))
    for name, (loop, scan) in PROGRAMS.items():
        for how, f, compiled in (("eager", loop, False), ("unrolled", loop, True), ("scan", scan, True)):
            if options.only not in (None, how):
                continue
            cells = []
            for n in sizes:
                x = 0.999 + 0.001 * np.random.default_rng(0).random(max(n, options.steps + 9))
                gradient = lambda a, steps, f=f: fad.grad(f)(a, steps)
                cells.append("/".join(f"{a_step(g, x, options, compiled):.2g}" for g in (f, gradient)))
            print(f"| {how}: `{name}` | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
