"""Derivatives by fad, CasADi and DaCe, one thread each:

OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 FAD_NUM_THREADS=1 python benchmarks/casadi_dace.py

It needs ``pip install casadi 'dace>=2.0.0b1'`` and a C++ compiler. A library that is missing is left out, and a program
that one of them cannot differentiate is shown with the error's name. Every derivative is compared with fad's. The sides
take turns, and the least CPU time of a call is shown, with all that it takes from NumPy arrays to NumPy arrays; *first*
is the time from the source to the second derivative, for fad compiles in the second call. CasADi evaluates in its
virtual machine, and in C that it writes. Words after the command choose programs by their titles.
"""

from __future__ import annotations

import contextlib
import os
import sys
import tempfile
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from casadi_programs import CASADI
from dace_programs import DACE

import fad

ROUNDS, LEAST = 15, 0.02  # turns, and the seconds that a burst of calls takes in each
Side = Callable[..., np.ndarray]


def chain(x):
    for _ in range(25):
        y = x * 1.01
        x = np.tanh(y + x) * y
    return np.sum(x)


def rosenbrock(x):
    return np.sum(100.0 * (x[1:] - x[:-1] * x[:-1]) ** 2 + (1.0 - x[:-1]) ** 2)


def coupled(x, a):
    return np.sum(np.tanh(a @ x) * x) + np.sum(100.0 * (x[1:] - x[:-1] * x[:-1]) ** 2)


def runge_kutta(y, w1, w2):
    def field(y):
        return np.tanh(y @ w1) @ w2

    for _ in range(200):
        k1 = field(y)
        k2 = field(y + 0.005 * k1)
        k3 = field(y + 0.005 * k2)
        k4 = field(y + 0.01 * k3)
        y = y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return np.sum(y)


def residual(u):
    wide = np.pad(u, 1)
    return wide[2:] - 2 * u + wide[:-2] - 1e-6 * np.exp(u)


def stencil(a):
    b = a.copy()
    for _ in range(50):
        b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
        a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
    return np.sum(np.tanh(a))


def _normal(*shapes: tuple, scale: float = 0.5) -> tuple:
    rng = np.random.default_rng(0)
    return tuple(scale * rng.normal(size=s) for s in shapes)


# title -> what fad differentiates, and the arguments; a derivative is by the first of them
PROGRAMS: dict[str, tuple[Callable, tuple]] = {
    "chain of 75 small operations": (fad.grad(chain), (np.linspace(1.0, 2.0, 10),)),
    "Rosenbrock, 10": (fad.grad(rosenbrock), _normal((10,))),
    "Hessian of 100 variables": (fad.hessian(coupled), _normal((100,), (100, 100))),
    "Runge-Kutta, 200 steps, 16 × 4": (fad.grad(runge_kutta), _normal((16, 4), (4, 32), (32, 4))),
    "sparse Jacobian, 1000 × 1000": (fad.sparse.jacobian(residual), _normal((1000,))),
    "stencil 100 × 100, 100 sweeps": (fad.grad(stencil), _normal((100, 100))),
}


def data_of(derivative: Any) -> np.ndarray:
    """Return the numbers of a derivative; of a sparse matrix those of its places, row by row."""
    if hasattr(derivative, "tocsr"):
        derivative = derivative.tocsr()
        derivative.sort_indices()
        return derivative.data
    return np.asarray(derivative)


def make(name: str, maker: Callable, arguments: tuple, expected: np.ndarray) -> tuple[Side | None, float, str]:
    """Return a library's derivative, the time from its source to its first value, and what went wrong."""
    start = time.perf_counter()
    try:
        side = maker(*arguments)
        side(*[a.copy() for a in arguments])
        found = data_of(side(*[a.copy() for a in arguments]))
    except Exception as error:  # of any kind: what these libraries raise is theirs
        return None, 0.0, type(error).__name__
    first = time.perf_counter() - start
    if found.size != expected.size or not np.allclose(found.ravel(), expected.ravel(), rtol=1e-6, atol=1e-9):
        return None, first, "wrong"
    return side, first, ""


def least(sides: dict[str, Side], arguments: tuple) -> dict[str, float]:
    """Return the least time of a call of each side, who take turns; in ms."""
    calls, times = {}, dict.fromkeys(sides, np.inf)
    for name, side in sides.items():
        start = time.process_time()
        side(*arguments)
        calls[name] = max(1, int(LEAST / max(time.process_time() - start, 1e-6)))
    for _ in range(ROUNDS):
        for name, side in sides.items():
            start = time.process_time()
            for _ in range(calls[name]):
                side(*arguments)
            times[name] = min(times[name], (time.process_time() - start) / calls[name])
    return {name: 1e3 * t for name, t in times.items()}


def row(title: str) -> str:
    function, arguments = PROGRAMS[title]
    expected = data_of(function(*arguments))
    compiled = fad.jit(function)
    makers = {"fad": lambda *_: compiled} | {
        name: programs[title]
        for name, programs in (*CASADI.items(), ("DaCe", DACE))
        if title in programs
    }  # fmt: skip
    sides, cells = {}, {}
    for name, maker in makers.items():
        with contextlib.redirect_stdout(sys.stderr):
            side, first, wrong = make(name, maker, arguments, expected)
        cells[name] = wrong or f"{first:.2f}"
        if side:
            sides[name] = side
    times = least(sides, arguments)
    shown = [f"{times[n]:.3g} ({cells[n]})" if n in times else cells.get(n, "–") for n in ("fad", *CASADI, "DaCe")]
    return f"| {title} | " + " | ".join(shown) + " |"


def main() -> None:
    os.chdir(tempfile.mkdtemp())  # CasADi and DaCe write their sources where they are
    print("CPU time per call, ms (first, s)")
    print("| derivative | fad, compiled | CasADi | CasADi in C | DaCe |\n|---|---|---|---|---|")
    for title in [t for t in PROGRAMS if not sys.argv[1:] or any(word in t for word in sys.argv[1:])]:
        print(row(title), flush=True)


if __name__ == "__main__":
    main()
