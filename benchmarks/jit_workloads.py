"""The workloads of ``benchmarks/jit.py``, written once for all libraries.

Each function takes `xp`, the names of a library as `jit_sides.py` spells them, and arrays. What is measured is a
derivative of it: the gradient in its first arguments, a step of gradient descent, or a Hessian.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np


class Workload(NamedTuple):
    title: str
    function: Callable
    arguments: Callable  # of a generator: returns the tuple of arrays
    derived: int = 1  # the first so many arguments
    kind: str = "gradient"  # or "step": parameters in, parameters and loss out; or "hessian"
    without: tuple[str, ...] = ()  # libraries in which it cannot be written so


def chain(xp, x):
    for _ in range(25):
        y = x * 1.01
        x = xp.tanh(y + x) * y
    return xp.sum(x)


def rosenbrock(xp, x):
    return xp.sum(100.0 * (x[1:] - x[:-1] * x[:-1]) ** 2 + (1.0 - x[:-1]) ** 2)


def black_scholes(xp, price, strike, time):
    """Calls at a rate of 3 % and a volatility of 20 %; the gradient is delta, the strike's derivative and theta."""
    root = 0.2 * xp.sqrt(time)
    d1 = (xp.log(price / strike) + 0.05 * time) / root
    d2 = d1 - root

    def below(x):
        return 0.5 * (1.0 + xp.erf(x * 0.7071067811865476))

    return xp.sum(price * below(d1) - strike * xp.exp(-0.03 * time) * below(d2))


def mlp(xp, w1, b1, w2, b2, w3, b3, x, y):
    h = xp.maximum(x @ w1 + b1, 0.0)
    h = xp.maximum(h @ w2 + b2, 0.0)
    z = h @ w3 + b3
    z = z - xp.max(z, 1).reshape(-1, 1)
    return xp.mean(xp.log(xp.sum(xp.exp(z), 1)) - xp.sum(z * y, 1))


def cnn(xp, w1, b1, w2, b2, w3, b3, x, y):
    h = xp.max_pool(xp.maximum(xp.conv(x, w1, b1), 0.0))
    h = xp.max_pool(xp.maximum(xp.conv(h, w2, b2), 0.0))
    z = h.reshape(x.shape[0], -1) @ w3 + b3
    z = z - xp.max(z, 1).reshape(-1, 1)
    return xp.mean(xp.log(xp.sum(xp.exp(z), 1)) - xp.sum(z * y, 1))


def attention(xp, wq, wk, wv, wo, w1, w2, g1, g2, x, target):
    """A transformer's block, four heads, with the norms before."""
    n, t, d = x.shape

    def norm(x, gain):
        x = x - xp.mean(x, 2).reshape(n, t, 1)
        return x / xp.sqrt(xp.mean(x * x, 2).reshape(n, t, 1) + 1e-5) * gain

    def heads(x):
        return xp.transpose(x.reshape(n, t, 4, d // 4), (0, 2, 1, 3))

    u = norm(x, g1)
    q, k, v = heads(u @ wq), heads(u @ wk), heads(u @ wv)
    scores = q @ xp.transpose(k, (0, 1, 3, 2)) * (d // 4) ** -0.5
    e = xp.exp(scores - xp.max(scores, 3).reshape(n, 4, t, 1))
    weights = e / xp.sum(e, 3).reshape(n, 4, t, 1)
    x = x + xp.transpose(weights @ v, (0, 2, 1, 3)).reshape(n, t, d) @ wo
    u = norm(x, g2) @ w1
    x = x + (0.5 * u * (1.0 + xp.tanh(0.7978845608028654 * (u + 0.044715 * u * u * u)))) @ w2
    return xp.mean((x - target) ** 2)


def lstm(xp, w, u, b, xs):
    """Unrolled over the leading axis of xs; 32 units."""
    h = xp.zeros_like(xs[0] @ w[:, :32])
    c = h
    for t in range(xs.shape[0]):
        z = xs[t] @ w + h @ u + b
        i, f, g, o = (z[:, 32 * k : 32 * (k + 1)] for k in range(4))
        c = c / (1.0 + xp.exp(-f)) + xp.tanh(g) / (1.0 + xp.exp(-i))
        h = xp.tanh(c) / (1.0 + xp.exp(-o))
    return xp.sum(h * h)


def rk4(steps):
    def run(xp, w1, b1, w2, y):
        def field(y):
            return xp.tanh(y @ w1 + b1) @ w2

        h = 0.01
        for _ in range(steps):
            k1 = field(y)
            k2 = field(y + 0.5 * h * k1)
            k3 = field(y + 0.5 * h * k2)
            k4 = field(y + h * k3)
            y = y + h / 6 * (k1 + 2 * k2 + 2 * k3 + k4)
        return xp.mean(y * y)

    return run


def mixture(xp, alphas, means, icf, x):
    """The log-likelihood of a Gaussian mixture as ADBench writes it, without its Wishart prior.

    The inverse covariance's factor has d logarithms on its diagonal and d (d - 1) / 2 numbers below it; they are put
    into place by a product with a constant matrix, which every library can do.
    """
    k, d = means.shape
    logs, lower = icf[:, :d], icf[:, d:]
    rows, columns = np.tril_indices(d, -1)
    place = np.zeros((d * (d - 1) // 2, d * d))
    place[np.arange(len(rows)), rows * d + columns] = 1.0
    factor = (lower @ xp.constant(place)).reshape(k, d, d)
    away = x.reshape(1, -1, d) - means.reshape(k, 1, d)
    scaled = away * xp.exp(logs).reshape(k, 1, d) + away @ xp.transpose(factor, (0, 2, 1))
    parts = (alphas + xp.sum(logs, 1)).reshape(k, 1) - 0.5 * xp.sum(scaled * scaled, 2)
    m = xp.max(parts, 0)
    inner = xp.log(xp.sum(xp.exp(parts - m), 0)) + m
    top = xp.max(alphas, 0)
    return xp.sum(inner) - x.shape[0] * (xp.log(xp.sum(xp.exp(alphas - top))) + top)


def coupled(xp, x, a):
    return xp.sum(xp.tanh(a @ x) * x) + xp.sum(100.0 * (x[1:] - x[:-1] * x[:-1]) ** 2)


def recurrent(xp, w, h, xs):
    def step(h, x):
        return xp.tanh(w @ h + x)

    return xp.sum(xp.scan(step, h, xs) ** 2)


# --- arguments ---------------------------------------------------------------------------------------------------


def _normal(*shapes, scale=1.0, dtype=float):
    return lambda rng: tuple(_array(rng, s, scale, dtype) for s in shapes)


def _array(rng, shape, scale=1.0, dtype=float):
    return (rng.normal(size=shape) * scale).astype(dtype)


def _market(n):
    return lambda rng: tuple(rng.uniform(a, b, n) for a, b in ((80, 120), (80, 120), (0.2, 2)))


def _labelled(data, *parameters):
    def make(rng):
        weights = [_array(rng, s, 1 / np.sqrt(max(1, np.prod(s[1:]))), np.float32) for s in parameters]
        y = np.eye(10, dtype=np.float32)[rng.integers(0, 10, data[0])]
        return (*weights, _array(rng, data, dtype=np.float32), y)

    return make


def _block(n, t, d):
    def make(rng):
        square = [_array(rng, (d, d), d**-0.5, np.float32) for _ in range(4)]
        wide = [_array(rng, s, s[0] ** -0.5, np.float32) for s in ((d, 4 * d), (4 * d, d))]
        gains = [np.ones(d, np.float32)] * 2
        return (*square, *wide, *gains, *[_array(rng, (n, t, d), dtype=np.float32) for _ in range(2)])

    return make


def _cells(steps):
    def make(rng):
        return (*[_array(rng, s, 0.3) for s in ((16, 128), (32, 128), (128,))], _array(rng, (steps, 8, 16)))

    return make


def _field(rng):
    return (*[_array(rng, s, 0.3) for s in ((4, 32), (32,), (32, 4))], _array(rng, (16, 4)))


def _clusters(n, d, k):
    return _normal((k,), (k, d), (k, d * (d + 1) // 2), (n, d), scale=0.5)


MLP = ((784, 512), (512,), (512, 512), (512,), (512, 10), (10,))
CNN = ((8, 1, 3, 3), (8,), (16, 8, 3, 3), (16,), (400, 10), (10,))
LONG = ("torch.compile",)  # minutes to compile, as a short try shows
NO_CONV = ("autograd",)

WORKLOADS = {
    "chain": Workload("chain of 75 tiny operations", chain, _normal((10,), scale=0.3)),
    "rosenbrock-10": Workload("Rosenbrock, 10", rosenbrock, _normal((10,))),
    "rosenbrock-1e6": Workload("Rosenbrock, 10⁶", rosenbrock, _normal((10**6,))),
    "black-scholes": Workload("Black–Scholes Greeks, 10⁶", black_scholes, _market(10**6), 3),
    "mlp": Workload("MLP step, 784-512-512-10, 128 rows, f32", mlp, _labelled((128, 784), *MLP), 6, "step"),
    "cnn": Workload("CNN step, 32 images 28 × 28, f32", cnn, _labelled((32, 1, 28, 28), *CNN), 6, "step", NO_CONV),
    "attention": Workload("attention block step, 8 × 64 × 128, f32", attention, _block(8, 64, 128), 8, "step"),
    "lstm-64": Workload("LSTM, 64 steps unrolled", lstm, _cells(64), 3),
    "lstm-512": Workload("LSTM, 512 steps unrolled", lstm, _cells(512), 3, "gradient", LONG),
    "rk4": Workload("RK4 network, 200 steps unrolled", rk4(200), _field, 3, "gradient", LONG),
    "mixture-small": Workload("Gaussian mixture, n 1000, d 2, k 5", mixture, _clusters(1000, 2, 5), 3),
    "mixture-middle": Workload("Gaussian mixture, n 1000, d 10, k 25", mixture, _clusters(1000, 10, 25), 3),
    "mixture-large": Workload("Gaussian mixture, n 1000, d 32, k 50", mixture, _clusters(1000, 32, 50), 3),
    "hessian": Workload("Hessian of 100 variables", coupled, _normal((100,), (100, 100), scale=0.3), 1, "hessian"),
    "scan": Workload(
        "scan of 10⁴ steps", recurrent, lambda rng: (_array(rng, (8, 8), 0.3), _array(rng, 8), _array(rng, (10**4, 8))),
        2, "gradient", LONG,
    ),
}  # fmt: skip


def _grown():
    for n in (10, 10**3, 10**5, 10**6):
        # near 1.4 the chain leaves numbers as they are; smaller ones underflow, which some libraries flush to zero
        numbers = lambda rng, n=n: (rng.uniform(1.2, 1.5, n),)
        yield f"elementwise-{n}", Workload(f"chain of 75 operations on {n} numbers", chain, numbers)
    for steps in (10, 50, 200, 800):
        yield f"unrolled-{steps}", Workload(f"RK4 network, {steps} steps", rk4(steps), _field, 3)


GROWTH = dict(_grown())
