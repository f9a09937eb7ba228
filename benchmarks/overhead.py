"""What a derivative costs without compiling: fad beside hand-written NumPy, HIPS autograd, PyTorch and JAX, in one run.

    python benchmarks/overhead.py [--quick]

Every workload is one program, written against a small set of array functions, and run by each library on the same
numbers. The libraries take turns, so that a machine that changes its speed changes it for all; the table shows the
median over the turns, and the ratio to hand-written NumPy. JAX runs without jit: this table is about dispatch.
Arrays are small on purpose, but for the MLP. One thread. On CPUs that OpenBLAS does not know,
``OPENBLAS_CORETYPE=SKYLAKEX`` may speed NumPy's matrix products up: run it with and without.
"""

from __future__ import annotations

import os
import sys

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("JAX_ENABLE_X64", "1")

import statistics
import time
from types import SimpleNamespace

import numpy as np

import fad
import fad.ops.ufuncs.elementwise as fad_elementwise
from fad.ops.ufuncs.activation import sigmoid

ROUNDS = 3 if "--quick" in sys.argv else 7
RNG = np.random.default_rng(0)

# --- the programs: f(m, *arrays), m holding the library's tanh, sum, ... ----------------------------------------


def chain(m, x):
    for _ in range(25):
        y = x * 1.01
        z = y + x
        x = m.tanh(z)
        x = x * y
    return m.sum(x)


def chain_by_hand(x0):
    xs, ys, ts = [], [], []
    x = x0
    for _ in range(25):
        y = x * 1.01
        t = np.tanh(y + x)
        xs.append(x), ys.append(y), ts.append(t)
        x = t * y
    g = np.ones_like(x)
    for y, t in zip(reversed(ys), reversed(ts), strict=True):
        gt = g * y * (1 - t * t)
        gy = g * t + gt
        g = gy * 1.01 + gt
    return g


def rosenbrock(m, x):
    return m.sum(100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2)


def rosenbrock_by_hand(x):
    a = x[1:] - x[:-1] ** 2
    g = np.zeros_like(x)
    g[1:] = 200 * a
    g[:-1] += -400 * a * x[:-1] - 2 * (1 - x[:-1])
    return g


def mlp(m, w1, b1, w2, b2, w3, b3, x, y):
    h = m.tanh(x @ w1 + b1)
    h = m.tanh(h @ w2 + b2)
    d = h @ w3 + b3 - y
    return m.sum(d * d)


def mlp_by_hand(w1, b1, w2, b2, w3, b3, x, y):
    h1 = np.tanh(x @ w1 + b1)
    h2 = np.tanh(h1 @ w2 + b2)
    d = 2 * (h2 @ w3 + b3 - y)
    g3 = h2.T @ d
    a2 = (d @ w3.T) * (1 - h2 * h2)
    g2 = h1.T @ a2
    a1 = (a2 @ w2.T) * (1 - h1 * h1)
    return x.T @ a1, a1.sum(0), g2, a2.sum(0), g3, d.sum(0)


def lstm(m, wx, wh, b, xs, h, c):
    n = h.shape[1]
    for t in range(64):
        z = xs[t] @ wx + h @ wh + b
        i, f, o, g = (z[:, k * n : (k + 1) * n] for k in range(4))
        c = m.sigmoid(f) * c + m.sigmoid(i) * m.tanh(g)
        h = m.sigmoid(o) * m.tanh(c)
    return m.sum(h * h)


def slices(count):
    def program(m, x):
        total = 0.0
        for t in range(count):
            total = total + m.sin(x[t])
        return total

    return program


def rk4(m, w1, b1, w2, y):
    def field(y):
        return m.tanh(y @ w1 + b1) @ w2

    h = 0.01
    for _ in range(200):
        k1 = field(y)
        k2 = field(y + 0.5 * h * k1)
        k3 = field(y + 0.5 * h * k2)
        k4 = field(y + h * k3)
        y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
    return m.sum(y * y)


def arrays(*shapes, dtype=np.float64, scale=0.3):
    return [(scale * RNG.standard_normal(s)).astype(dtype) for s in shapes]


F4 = np.float32
MLP = arrays((784, 512), (512,), (512, 512), (512,), (512, 10), (10,), dtype=F4, scale=0.05)
MLP_DATA = arrays((128, 784), (128, 10), dtype=F4)
LSTM = arrays((32, 128), (32, 128), (128,))
LSTM_DATA = arrays((64, 16, 32), (16, 32), (16, 32))
# name: (program, parameters, data, gradient by hand or None, number of operations)
WORKLOADS = {
    "chain of 100 tiny operations": (chain, arrays((10,)), [], chain_by_hand, 100),
    "Rosenbrock, 10 variables": (rosenbrock, arrays((10,)), [], rosenbrock_by_hand, None),
    "MLP 784-512-512-10, batch 128, float32": (mlp, MLP, MLP_DATA, mlp_by_hand, None),
    "LSTM, 64 steps": (lstm, LSTM, LSTM_DATA, None, None),
    "loop of 1000 slices": (slices(1000), arrays((1000,)), [], None, None),
    "loop of 2000 slices": (slices(2000), arrays((2000,)), [], None, None),
    "loop of 4000 slices": (slices(4000), arrays((4000,)), [], None, None),
    "RK4, 200 steps through a network": (rk4, arrays((4, 32), (32,), (32, 4), (16, 4)), [], None, None),
}

# --- the libraries: gradient(program, parameters, data) -> a function to time -----------------------------------


def by_fad():
    m = SimpleNamespace(tanh=fad_elementwise.tanh, sum=np.sum, sin=fad_elementwise.sin, sigmoid=sigmoid)
    return _functional(fad.grad, m)


def by_plain_numpy():
    """The same through NumPy's own names: what an unchanged program pays for NumPy's dispatch."""
    m = SimpleNamespace(tanh=np.tanh, sum=np.sum, sin=np.sin, sigmoid=lambda x: 1.0 / (1.0 + np.exp(-x)))
    return _functional(fad.grad, m)


def by_autograd():
    import autograd
    import autograd.numpy as anp
    from autograd.scipy.special import expit

    m = SimpleNamespace(tanh=anp.tanh, sum=anp.sum, sin=anp.sin, sigmoid=expit)
    return _functional(autograd.grad, m)


def by_jax():
    import jax
    import jax.numpy as jnp

    m = SimpleNamespace(tanh=jnp.tanh, sum=jnp.sum, sin=jnp.sin, sigmoid=jax.nn.sigmoid)
    make = _functional(jax.grad, m)
    return lambda program, params, data: make(program, [jnp.asarray(p) for p in params], [jnp.asarray(d) for d in data])


def _functional(grad, m):
    def make(program, params, data):
        n = len(params)
        gradient = grad(lambda *xs: program(m, *xs), tuple(range(n)))
        return lambda: gradient(*params, *data)

    return make


def by_torch():
    import torch

    torch.set_num_threads(1)
    m = SimpleNamespace(tanh=torch.tanh, sum=torch.sum, sin=torch.sin, sigmoid=torch.sigmoid)

    def make(program, params, data):
        ps = [torch.tensor(p, requires_grad=True) for p in params]
        ds = [torch.tensor(d) for d in data]
        return lambda: torch.autograd.grad(program(m, *ps, *ds), ps)

    return make


def by_hand():
    return lambda program, params, data: lambda: HAND[program](*params, *data)


HAND = {w[0]: w[3] for w in WORKLOADS.values() if w[3]}
LIBRARIES = {
    "by hand": by_hand, "fad": by_fad, "fad, np. names": by_plain_numpy, "PyTorch": by_torch, "autograd": by_autograd,
    "JAX, no jit": by_jax,
}  # fmt: skip
SKIP = {("JAX, no jit", "loop of 2000 slices"), ("JAX, no jit", "loop of 4000 slices")}  # minutes


def seconds(f, least=0.05):
    """Return the time of one call: the best of several, over at least `least` seconds."""
    f()
    best, spent = float("inf"), 0.0
    while spent < least:
        start = time.perf_counter()
        f()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
    return best


def measure():
    makers = {}
    for name, load in LIBRARIES.items():
        try:
            makers[name] = load()
        except ImportError:
            print(f"({name} is not installed)")
    coretype = os.environ.get("OPENBLAS_CORETYPE")
    print(f"NumPy {np.__version__}, Python {sys.version.split()[0]}, OPENBLAS_CORETYPE={coretype}")
    table = {}
    for work, (program, params, data, hand, ops) in WORKLOADS.items():
        calls = {
            name: make(program, params, data)
            for name, make in makers.items()
            if (name != "by hand" or hand) and (name, work) not in SKIP
        }
        rounds = [{name: seconds(call) for name, call in calls.items()} for _ in range(ROUNDS)]
        row = {name: statistics.median(r[name] for r in rounds) for name in calls}
        ratio = {name: statistics.median(r["fad"] / r[name] for r in rounds) for name in calls}
        table[work] = row
        print(f"\n{work}")
        for name, t in row.items():
            per = f"  {1e6 * t / ops:7.2f} us/operation" if ops else ""
            hand_ratio = f"  {t / row['by hand']:6.2f} x by hand" if hand else ""
            print(f"  {name:16s} {1e6 * t:11.1f} us{per}{hand_ratio}   fad takes {ratio[name]:.2f} of it")
    grow = [table[f"loop of {n} slices"]["fad"] for n in (1000, 2000, 4000)]
    print(f"\ntwice the slices cost {grow[1] / grow[0]:.2f} and {grow[2] / grow[1]:.2f} times as much")


if __name__ == "__main__":
    measure()
