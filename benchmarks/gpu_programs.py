"""The programs of `gpu.py`: each is written once, and reads the functions of a library from the namespace `xp`.

Gradients are taken of all in a program's first argument, a list of arrays or an array. Those in STEPS are losses of a
model as well, of which a step of training with momentum is measured.
"""

from __future__ import annotations

import numpy as np

STEPS = ("mlp", "attention", "cnn")
RATE, MOMENTUM = 0.01, 0.9


def chain(x, xp):
    for _ in range(20):
        x = xp.tanh(x) * x + 0.5
    return x.sum()


def mlp(params, x, xp):
    for w in params[:-1]:
        x = xp.relu(x @ w)
    return ((x @ params[-1]) ** 2).mean()


def attention(params, x, xp):
    q, k, v = (x @ w for w in params)
    scores = xp.exp((q @ k.swapaxes(-1, -2)) * (q.shape[-1] ** -0.5) - 4.0)
    return ((scores / scores.sum(-1)[..., None]) @ v).sum()


def cnn(params, x, xp):
    for w in params:
        y = xp.conv(x, w)
        x = y * (y > 0)
    return (x * x).mean()


def lstm(params, xs, xp):
    """A Python loop over the steps of a sequence."""
    w, u, b = params
    h = c = xs[0] @ w[:, : u.shape[0]] * 0.0
    n = u.shape[0]
    for t in range(xs.shape[0]):
        gates = xs[t] @ w + h @ u + b
        i, f, o = (1.0 / (1.0 + xp.exp(-gates[:, k * n : (k + 1) * n])) for k in range(3))
        c = f * c + i * xp.tanh(gates[:, 3 * n :])
        h = o * xp.tanh(c)
    return (h * h).mean()


def black_scholes(params, xp):
    """The prices of calls: of a share, at a strike, until a time in years, with a rate and a volatility."""
    share, strike, time, rate, volatility = params
    spread = volatility * xp.sqrt(time)
    d = (xp.log(share / strike) + (rate + 0.5 * volatility * volatility) * time) / spread
    normal = lambda z: 0.5 * (1.0 + xp.erf(z * 0.7071067811865476))
    return (share * normal(d) - strike * xp.exp(-rate * time) * normal(d - spread)).sum()


def mixture(params, x, xp):
    """The mean log-likelihood of points under a mixture of Gaussians with diagonal covariances."""
    means, log_scales, weights = params
    z = (x[:, None, :] - means) * xp.exp(-log_scales)
    each = weights - log_scales.sum(-1) - 0.5 * (z * z).sum(-1)
    return xp.log(xp.exp(each).sum(-1)).mean() - xp.log(xp.exp(weights).sum())


def nbody(x, masses, xp):
    """The potential energy of bodies."""
    apart = x[:, None, :] - x
    distance = xp.sqrt((apart * apart).sum(-1) + 0.01)
    return -(masses[:, None] * masses / distance).sum()


PROGRAMS = {f.__name__: f for f in (chain, mlp, attention, cnn, lstm, black_scholes, mixture, nbody)}


def draw(small=False):
    """Return the programs' operands by name, in single precision."""
    rng = np.random.default_rng(0)
    wide, batch = (16, 4) if small else (512, 128)
    many, hidden = (1000, 8) if small else (1_000_000, 256)
    points, bodies = (50, 10) if small else (100_000, 2048)

    def normal(*shape):
        return (0.05 * rng.standard_normal(shape)).astype(np.float32)

    def uniform(low, high, n):
        return rng.uniform(low, high, n).astype(np.float32)

    return {
        "chain": (normal(many),),
        "mlp": ([normal(784, wide), normal(wide, wide), normal(wide, 10)], normal(batch, 784)),
        "attention": ([normal(64, 64) for _ in range(3)], normal(8, batch * 2, 64)),
        "cnn": ([normal(16, 3, 3, 3), normal(32, 16, 3, 3)], normal(batch // 4, 3, 32, 32)),
        "lstm": ([normal(64, 4 * hidden), normal(hidden, 4 * hidden), normal(4 * hidden)], normal(32, batch // 4, 64)),
        "black_scholes": (
            [uniform(*ends, many) for ends in ((90, 110), (90, 110), (0.2, 2), (0.01, 0.05), (0.1, 0.4))],
        ),
        "mixture": ([normal(16, 4), normal(16, 4), normal(16)], normal(points, 4)),
        "nbody": (normal(bodies, 3), uniform(0.5, 1.5, bodies)),
    }
