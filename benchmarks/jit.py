"""jit beside JAX's jit, fad without jit, and PyTorch's eager mode: run time, and time to the second result.

    python benchmarks/jit.py [--quick] [--markdown] [workload ...]

All take turns in one process and one run; the table shows medians over the turns. One thread each. The warm-up is the
time of the first two calls less two steady ones; fad's cache on disk is empty at the start of each run.
"""

from __future__ import annotations

import os
import sys
import tempfile

os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_cpu_multi_thread_eigen=false intra_op_parallelism_threads=1")
os.environ["FAD_CACHE_DIR"] = tempfile.mkdtemp(prefix="fad-bench-")

import statistics
import time

import numpy as np

import fad

QUICK = "--quick" in sys.argv
ROUNDS = 3 if QUICK else 7

try:
    import jax
    import jax.numpy as jnp

    jax.config.update("jax_enable_x64", True)
except ImportError:  # the table then has no column for it
    jax = jnp = None
try:
    import torch

    torch.set_num_threads(1)
except ImportError:
    torch = None

rng = np.random.default_rng(0)


# --- workloads: (name, function of (np, *args), args, what is differentiated) ------------------------------------


def chain(xp, x):
    for _ in range(25):
        y = x * 1.01
        x = xp.tanh(y + x) * y
    return xp.sum(x)


def rosenbrock(xp, x):
    return xp.sum(100.0 * (x[1:] - x[:-1] * x[:-1]) ** 2 + (1.0 - x[:-1]) ** 2)


def black_scholes(xp, s, k, t):
    d1 = (xp.log(s / k) + (0.03 + 0.02) * t) / (0.2 * xp.sqrt(t))
    d2 = d1 - 0.2 * xp.sqrt(t)

    def cdf(x):  # a smooth stand-in with the cost of the error function
        return 0.5 * (1.0 + xp.tanh(0.7978845608 * (x + 0.044715 * x * x * x)))

    return xp.sum(s * cdf(d1) - k * xp.exp(-0.03 * t) * cdf(d2))


def mlp(xp, w1, b1, w2, b2, x, y):
    h = xp.maximum(x @ w1 + b1, 0.0)
    z = h @ w2 + b2
    m = xp.max(z, 1)
    e = xp.sum(xp.exp(z - m.reshape(-1, 1)), 1)
    return xp.mean(xp.log(e) + m - xp.sum(z * y, 1))


def lstm(steps):
    def run(xp, w, u, b, xs):
        h = xp.zeros_like(xs[0] @ w[:, :32])
        c = h
        for t in range(steps):
            z = xs[t] @ w + h @ u + b
            i, f, g, o = (z[:, 32 * k : 32 * (k + 1)] for k in range(4))
            c = c / (1.0 + xp.exp(-f)) + xp.tanh(g) / (1.0 + xp.exp(-i))
            h = xp.tanh(c) / (1.0 + xp.exp(-o))
        return xp.sum(h * h)

    return run


def rk4(steps):
    def run(xp, p0, p1, p2, y):
        def field(y):
            return xp.tanh(y @ p0 + p1) @ p2

        h = 0.01
        for _ in range(steps):
            k1 = field(y)
            k2 = field(y + 0.5 * h * k1)
            k3 = field(y + 0.5 * h * k2)
            k4 = field(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return xp.mean(y * y)

    return run


def mixture(xp, alphas, means, logs, x):
    d = (x[:, None, :] - means[None]) * xp.exp(logs)[None]
    parts = alphas + xp.sum(logs, 1) - 0.5 * xp.sum(d * d, 2)
    m = xp.max(parts, 1)
    inner = xp.log(xp.sum(xp.exp(parts - m.reshape(-1, 1)), 1)) + m
    ma = xp.max(alphas)
    return xp.sum(inner) - x.shape[0] * (xp.log(xp.sum(xp.exp(alphas - ma))) + ma)


def normal(*shape, scale=1.0):
    return rng.normal(size=shape) * scale


def workloads():
    million = 10**5 if QUICK else 10**6
    yield "chain of 75 tiny operations", chain, (normal(10, scale=0.3),), 1
    yield "Rosenbrock (10)", rosenbrock, (normal(10),), 1
    yield f"Rosenbrock ({million})", rosenbrock, (normal(million),), 1
    market = [rng.uniform(a, b, million) for a, b in ((80, 120), (80, 120), (0.2, 2))]
    yield f"Black-Scholes Greeks ({million})", black_scholes, tuple(market), 3
    y = np.eye(10)[rng.integers(0, 10, 128)]
    net = (normal(784, 512, scale=0.05), np.zeros(512), normal(512, 10, scale=0.05), np.zeros(10), normal(128, 784), y)
    yield "MLP 784-512-10, 128 rows", mlp, net, 4
    cells = (normal(16, 128, scale=0.3), normal(32, 128, scale=0.3), np.zeros(128), normal(64, 8, 16))
    yield "LSTM, 64 steps", lstm(64), cells, 3
    yield (
        "RK4 network, 200 steps",
        rk4(200),
        (normal(4, 32, scale=0.3), np.zeros(32), normal(32, 4, scale=0.3), normal(16, 4)),
        3,
    )
    yield "Gaussian mixture (1000 x 10, 25)", mixture, (normal(25), normal(25, 10), normal(25, 10), normal(1000, 10)), 3


# --- contenders --------------------------------------------------------------------------------------------------


def by_fad(f, args, n, jit):
    gradient = fad.grad(lambda *a: f(np, *a), argnums=tuple(range(n)))
    run = fad.jit(gradient) if jit else gradient
    return lambda: run(*args)


def by_jax(f, args, n):
    run = jax.jit(jax.grad(lambda *a: f(jnp, *a), argnums=tuple(range(n))))
    args = [jnp.asarray(a) for a in args]
    return lambda: jax.block_until_ready(run(*args))


class _Torch:
    """torch under NumPy's names, as far as the workloads use them."""

    def __getattr__(self, name):
        return getattr(torch, name)

    def sum(self, x, axis=None):
        return torch.sum(x) if axis is None else torch.sum(x, axis)

    def max(self, x, axis=None):
        return torch.max(x) if axis is None else torch.amax(x, axis)

    def maximum(self, x, y):
        return torch.clamp(x, min=y)


def by_torch(f, args, n):
    xs = [torch.tensor(a, requires_grad=k < n) for k, a in enumerate(args)]

    def run():
        return torch.autograd.grad(f(_Torch(), *xs), xs[:n])

    return run


def seconds(run):
    """Return the time of one call, the best over a tenth of a second."""
    best, spent = float("inf"), 0.0
    while spent < (0.03 if QUICK else 0.1):
        start = time.perf_counter()
        run()
        took = time.perf_counter() - start
        best, spent = min(best, took), spent + took
    return best


def first_two(run):
    start = time.perf_counter()
    run()
    run()
    return time.perf_counter() - start


SLOW_TO_COMPILE = "LSTM"  # JAX takes minutes for it


def measure(name, f, args, n):
    runs = {"fad jit": by_fad(f, args, n, True), "fad": by_fad(f, args, n, False)}
    if jax is not None and not name.startswith(SLOW_TO_COMPILE):
        runs["JAX jit"] = by_jax(f, args, n)
    if torch is not None:
        runs["PyTorch"] = by_torch(f, args, n)
    cold = {k: first_two(run) for k, run in runs.items()}
    rounds = [{k: seconds(run) for k, run in runs.items()} for _ in range(ROUNDS)]
    steady = {k: statistics.median(r[k] for r in rounds) for k in runs}
    return steady, {k: max(0.0, cold[k] - 2 * steady[k]) for k in runs}


def main():
    wanted = [a for a in sys.argv[1:] if not a.startswith("--")]
    bar = " | " if "--markdown" in sys.argv else "  "
    head = ["workload (gradient)".ljust(34), *(h.rjust(10) for h in ("fad jit", "fad", "JAX jit", "PyTorch"))]
    print(bar.join([*head, "fad/JAX".rjust(8), "warm-up fad".rjust(12), "JAX".rjust(9)]))
    for name, f, args, n in workloads():
        if wanted and not any(w.lower() in name.lower() for w in wanted):
            continue
        steady, warm = measure(name, f, args, n)
        cells = [name.ljust(34)]
        cells += [
            f"{steady[k] * 1e3:10.4f}" if k in steady else " " * 10 for k in ("fad jit", "fad", "JAX jit", "PyTorch")
        ]
        cells.append(f"{steady['fad jit'] / steady['JAX jit']:8.2f}" if "JAX jit" in steady else " " * 8)
        cells.append(f"{warm['fad jit']:12.3f}")
        cells.append(f"{warm['JAX jit']:9.3f}" if "JAX jit" in warm else " " * 9)
        print(bar.join(cells), flush=True)
    print("\nms per call, median; warm-up in seconds. JAX is left out where it compiles for minutes.")


if __name__ == "__main__":
    main()
