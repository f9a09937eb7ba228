"""The NumPy kernels of pyhpc-benchmarks, unchanged, differentiated, and compared with extrapolated differences.

    python benchmarks/pyhpc.py PATH [--size N]

PATH is a checkout of github.com/dionhaefner/pyhpc-benchmarks; nothing of it is copied. Every array of floating-point
numbers that a kernel takes is differentiated, in reverse and forward mode, plain and under ``fad.jit``. One kernel
calls a Fortran routine of LAPACK for tridiagonal systems, which nothing can look into; here is the same in NumPy.
"""

from __future__ import annotations

import argparse
import importlib
import sys
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np

import fad

KERNELS = {"equation_of_state": "eos", "isoneutral_mixing": "isoneutral", "turbulent_kinetic_energy": "tke"}
TOLERANCE = 1e-6


def solve_tridiag(a, b, c, d):
    """Solve tridiagonal systems along the last axis by elimination."""
    b, d = b.copy(), d.copy()
    n = d.shape[-1]
    for k in range(1, n):
        w = a[..., k] / b[..., k - 1]
        b[..., k] -= w * c[..., k - 1]
        d[..., k] -= w * d[..., k - 1]
    x = np.empty_like(d)
    x[..., -1] = d[..., -1] / b[..., -1]
    for k in range(n - 2, -1, -1):
        x[..., k] = (d[..., k] - c[..., k] * x[..., k + 1]) / b[..., k]
    return x


def problem(name: str, size: int) -> tuple[Callable, list]:
    """Return the loss, a weighted sum of what the kernel returns, and the arrays that it is differentiated by."""
    package = importlib.import_module(f"benchmarks.{name}")
    kernel = importlib.import_module(f"benchmarks.{name}.{KERNELS[name]}_numpy")
    run = kernel.run
    if hasattr(kernel, "solve_tridiag"):
        kernel.solve_tridiag = solve_tridiag
    inputs = list(package.generate_inputs(size))
    active = [i for i, x in enumerate(inputs) if x.dtype.kind == "f" and len(set(x.ravel()[:99])) > 2]
    rng = np.random.default_rng(0)
    weights: list = []

    def loss(*arrays):
        given = [x.copy() for x in inputs]
        for i, x in zip(active, arrays, strict=True):
            given[i] = x
        found = run(*given)
        found = found if isinstance(found, (tuple, list)) else [found]
        if not weights:
            weights.extend(rng.standard_normal(y.shape) / (1 + np.abs(y)) for y in found)  # some elements are huge
        return sum([np.sum(w * y) for w, y in zip(weights, found, strict=True)], start=0.0)

    return loss, [inputs[i] for i in active]


def difference(loss: Callable, point: list, direction: list) -> float:
    """Return the derivative along a direction by differences, extrapolated twice, of the step where they agree best."""

    def central(h: float) -> float:
        ends = [loss(*[x + s * h * d for x, d in zip(point, direction, strict=True)]) for s in (1, -1)]
        return float(ends[0] - ends[1]) / (2 * h)

    best = (np.inf, 0.0)
    for h in (1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8):
        a, b = central(h), central(h / 2)
        best = min(best, (abs(a - b), b + (b - a) / 3))
    return best[1]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--size", type=int, default=4096)
    options = parser.parse_args()
    sys.path[0] = str(options.path)
    warnings.simplefilter("ignore")
    np.seterr(all="ignore")
    for name in KERNELS:
        loss, point = problem(name, options.size)
        rng = np.random.default_rng(1)
        direction = [rng.standard_normal(x.shape) * (1e-3 + np.abs(x)) for x in point]
        fresh = lambda point=point: [x.copy() for x in point]
        loss(*fresh())
        wanted = difference(loss, point, direction)
        gradient = fad.grad(loss, argnums=tuple(range(len(point))))
        push = lambda xs, ts, loss=loss: fad.jvp(loss, xs, ts)[1]
        inner = lambda g, direction=direction: sum(float(np.sum(a * d)) for a, d in zip(g, direction, strict=True))
        found = {
            "grad": inner(gradient(*fresh())), "jvp": float(push(fresh(), direction)),
            "jit grad": inner(fad.jit(gradient)(*fresh())), "jit jvp": float(fad.jit(push)(fresh(), direction)),
        }  # fmt: skip
        seconds = []
        for run in (loss, gradient):
            start = time.perf_counter()
            run(*fresh())
            seconds.append(time.perf_counter() - start)
        errors = {k: abs(v - wanted) / (abs(wanted) + 1e-12) for k, v in found.items()}
        verdicts = ", ".join(f"{k} {'right' if e < TOLERANCE else f'WRONG ({e:.1e})'}" for k, e in errors.items())
        print(f"{name:26} {len(point):2} arrays, gradient {seconds[1] / seconds[0]:5.1f} times a run: {verdicts}")


if __name__ == "__main__":
    main()
