"""The programs of ``benchmarks/casadi_dace.py`` in CasADi's symbols, run by its virtual machine and as C."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.sparse import csc_array

try:
    import casadi as ca
except ImportError:
    ca = None

IN_C = {"jit": True, "compiler": "shell", "jit_options": {"flags": ["-O3", "-march=native"]}}
# For the C of these gcc takes more than five minutes.
TOO_LARGE = ("Runge-Kutta, 200 steps, 16 × 4", "stencil 100 × 100, 100 sweeps")


def function(inputs: list, output: Any, in_c: bool) -> Callable:
    """Return a function from NumPy's arrays to NumPy's, or to a SciPy matrix where the output is sparse.

    They go through CasADi's buffers, the quickest way there is to call it from Python.
    """
    made = ca.Function("derivative", inputs, [output], IN_C if in_c else {})
    given = [np.zeros(i.numel()) for i in inputs]  # column by column, as CasADi keeps matrices
    found = np.zeros(output.nnz())
    rows, starts = (np.array(part, np.int32) for part in (output.sparsity().row(), output.sparsity().colind()))
    shape = output.shape if output.shape[1] > 1 else output.shape[:1]
    buffer, run = made.buffer()
    for k, g in enumerate(given):
        buffer.set_arg(k, memoryview(g))
    buffer.set_res(0, memoryview(found))

    def call(*xs: np.ndarray) -> np.ndarray:
        for g, x in zip(given, xs, strict=True):
            g[:] = x.ravel("F")
        run()
        if not output.is_dense():
            return csc_array((found.copy(), rows, starts), shape=shape)
        return found.reshape(shape, order="F").copy()

    call.keep = made, buffer  # they own what `run` works on
    return call


def chain(x: np.ndarray, in_c: bool) -> Callable:
    s = z = ca.SX.sym("x", x.size)
    for _ in range(25):
        y = z * 1.01
        z = ca.tanh(y + z) * y
    return function([s], ca.gradient(ca.sum1(z), s), in_c)


def rosenbrock(x: np.ndarray, in_c: bool) -> Callable:
    s = ca.SX.sym("x", x.size)
    value = ca.sum1(100.0 * (s[1:] - s[:-1] * s[:-1]) ** 2 + (1.0 - s[:-1]) ** 2)
    return function([s], ca.gradient(value, s), in_c)


def hessian(x: np.ndarray, a: np.ndarray, in_c: bool) -> Callable:
    s, m = ca.MX.sym("x", x.size), ca.MX.sym("a", *a.shape)
    value = ca.sum1(ca.tanh(m @ s) * s) + ca.sum1(100.0 * (s[1:] - s[:-1] * s[:-1]) ** 2)
    return function([s, m], ca.hessian(value, s)[0], in_c)


def runge_kutta(y: np.ndarray, w1: np.ndarray, w2: np.ndarray, in_c: bool) -> Callable:
    s, u, v = (ca.MX.sym(name, *a.shape) for name, a in (("y", y), ("w1", w1), ("w2", w2)))

    def field(z):
        return ca.tanh(z @ u) @ v

    z = s
    for _ in range(200):
        k1 = field(z)
        k2 = field(z + 0.005 * k1)
        k3 = field(z + 0.005 * k2)
        k4 = field(z + 0.01 * k3)
        z = z + 0.01 / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return function([s, u, v], ca.gradient(ca.sum1(ca.sum2(z)), s), in_c)


def sparse(u: np.ndarray, in_c: bool) -> Callable:
    s = ca.SX.sym("u", u.size)
    wide = ca.vertcat(0, s, 0)
    return function([s], ca.jacobian(wide[2:] - 2 * s + wide[:-2] - 1e-6 * ca.exp(s), s), in_c)


def stencil(a: np.ndarray, in_c: bool) -> Callable:
    s = ca.MX.sym("a", *a.shape)
    now = ca.MX(s)
    for _ in range(100):
        inner = now[1:-1, 1:-1] + now[1:-1, :-2] + now[1:-1, 2:] + now[2:, 1:-1] + now[:-2, 1:-1]
        after = ca.MX(now)
        after[1:-1, 1:-1] = 0.2 * inner
        now = after
    return function([s], ca.gradient(ca.sum1(ca.sum2(ca.tanh(now))), s), in_c)


_ALL = {
    "chain of 75 small operations": chain,
    "Rosenbrock, 10": rosenbrock,
    "Hessian of 100 variables": hessian,
    "Runge-Kutta, 200 steps, 16 × 4": runge_kutta,
    "sparse Jacobian, 1000 × 1000": sparse,
    "stencil 100 × 100, 100 sweeps": stencil,
}


def _with(make: Callable, in_c: bool) -> Callable:
    return lambda *arguments: make(*arguments, in_c=in_c)


CASADI: dict[str, dict[str, Callable]] = {
    name: {title: _with(make, in_c) for title, make in _ALL.items()
           if ca is not None and not (in_c and title in TOO_LARGE)}
    for name, in_c in (("CasADi", False), ("CasADi in C", True))
}  # fmt: skip
