"""What the eager API costs: a chain of 100 tiny operations, forward and backward, beside `fad.grad` and PyTorch's own.

    python benchmarks/eager.py [--quick]

The three take turns in one run, and the table shows the medians over the turns and the medians of the ratios within
a turn, so that a machine that changes its speed changes it for all. One thread, 10 numbers of float64.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")

import statistics
import time

import numpy as np

import fad
import fad.eager
import fad.ops.ufuncs.elementwise as plain

ROUNDS = 5 if "--quick" in sys.argv else 15
X = 0.3 * np.random.default_rng(0).standard_normal(10)


def chain(tanh, total, x):
    for _ in range(25):
        y = x * 1.01
        z = y + x
        x = tanh(z)
        x = x * y
    return total(x)


def by_fad():
    gradient = fad.grad(lambda x: chain(plain.tanh, np.sum, x))
    return lambda: gradient(X)


def by(torch):
    x = torch.tensor(X, requires_grad=True)

    def run():
        x.grad = None
        chain(torch.tanh, torch.sum, x).backward()
        return x.grad

    return run


def seconds(run):
    """Return the time of one call: the best of several over a twentieth of a second."""
    run()
    best, spent = float("inf"), 0.0
    while spent < 0.05:
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
    return best


def measure():
    runs = {"fad.grad": by_fad(), "fad.eager": by(fad.eager)}
    try:
        import torch
    except ImportError:
        print("(PyTorch is not installed)")
    else:
        torch.set_num_threads(1)
        runs["PyTorch"] = by(torch)
        np.testing.assert_allclose(runs["fad.eager"]().numpy(), runs["PyTorch"]().numpy(), rtol=1e-12)
    np.testing.assert_allclose(runs["fad.eager"]().numpy(), runs["fad.grad"](), rtol=1e-12)
    rounds = [{name: seconds(run) for name, run in runs.items()} for _ in range(ROUNDS)]
    for name in runs:
        t = statistics.median(r[name] for r in rounds)
        ratio = statistics.median(r["fad.eager"] / r[name] for r in rounds)
        print(f"{name:10s} {1e6 * t:8.1f} us  {1e4 * t:6.2f} us/operation   the eager API takes {ratio:.2f} of it")


if __name__ == "__main__":
    measure()
