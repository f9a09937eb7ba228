"""The programs of ``benchmarks/casadi_dace.py`` for DaCe, as far as its reverse mode differentiates them.

DaCe reads types from annotations, so this file has none of the postponed kind.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

try:
    import dace
    from dace.autodiff import add_backward_pass
except ImportError:
    dace = None

DACE: dict[str, Callable] = {}


def gradient(program: Any, *buffers: np.ndarray) -> Callable:
    """Return a maker of the gradient by a program's first argument; its last one is the value, after the buffers."""
    name, *rest = program.argnames

    def make(*arguments: np.ndarray) -> Callable:
        sdfg = program.to_sdfg()
        add_backward_pass(sdfg, outputs=[rest[-1]], inputs=[name])
        compiled = sdfg.compile()

        def call(*xs: np.ndarray) -> np.ndarray:
            # copies, for they are overwritten
            given = {n: x.copy() for n, x in zip((name, *rest[:-1]), (*xs, *buffers), strict=True)}
            found = {f"gradient_{name}": np.zeros_like(xs[0]), f"gradient_{rest[-1]}": np.ones(1)}
            compiled(**given, **found, **{rest[-1]: np.zeros(1)})
            return found[f"gradient_{name}"]

        return call

    return make


if dace is not None:

    @dace.program
    def chain(x: dace.float64[10], out: dace.float64[1]):
        for _ in range(25):
            y = x * 1.01
            x[:] = np.tanh(y + x) * y
        out[0] = np.sum(x)

    @dace.program
    def rosenbrock(x: dace.float64[10], out: dace.float64[1]):
        total = 0.0
        for i in range(9):
            total = total + 100.0 * (x[i + 1] - x[i] * x[i]) * (x[i + 1] - x[i] * x[i]) + (1.0 - x[i]) * (1.0 - x[i])
        out[0] = total

    @dace.program
    def runge_kutta(y: dace.float64[16, 4], w1: dace.float64[4, 32], w2: dace.float64[32, 4], out: dace.float64[1]):
        for _ in range(200):
            k1 = np.tanh(y @ w1) @ w2
            k2 = np.tanh((y + 0.005 * k1) @ w1) @ w2
            k3 = np.tanh((y + 0.005 * k2) @ w1) @ w2
            k4 = np.tanh((y + 0.01 * k3) @ w1) @ w2
            y[:] = y + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        out[0] = np.sum(y)

    @dace.program
    def stencil(a: dace.float64[100, 100], b: dace.float64[100, 100], out: dace.float64[1]):
        b[:] = a
        for _ in range(50):
            b[1:-1, 1:-1] = 0.2 * (a[1:-1, 1:-1] + a[1:-1, :-2] + a[1:-1, 2:] + a[2:, 1:-1] + a[:-2, 1:-1])
            a[1:-1, 1:-1] = 0.2 * (b[1:-1, 1:-1] + b[1:-1, :-2] + b[1:-1, 2:] + b[2:, 1:-1] + b[:-2, 1:-1])
        out[0] = np.sum(np.tanh(a))

    DACE |= {
        "chain of 75 small operations": gradient(chain),
        "Rosenbrock, 10": gradient(rosenbrock),
        "Runge-Kutta, 200 steps, 16 × 4": gradient(runge_kutta),
        "stencil 100 × 100, 100 sweeps": gradient(stencil, np.zeros((100, 100))),
    }
