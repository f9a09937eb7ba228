"""Random programs that mix operations and collectives, on ranks and, with all ranks' values in one array, on one."""

import numpy as np
import rank_programs as R

import fad
from fad import distributed as D

UNARY = {
    "sin": np.sin, "tanh": np.tanh, "half": lambda x: 0.5 * x, "flip": lambda x: x[..., ::-1],
    "logistic": lambda x: 1.0 / (1.0 + np.exp(-x)), "scan": lambda x: np.cumsum(x, axis=-1) / 12.0,
}  # fmt: skip
BINARY = {"add": np.add, "multiply": np.multiply, "maximum": np.maximum, "subtract": np.subtract}
COLLECTIVES = [
    "sum", "mean", "max", "min", "prod", "broadcast", "reduce", "permute", "permute_line", "permute_edge", "all_to_all",
    "send_recv", "barrier", "start_all_reduce", "start_permute", "pytree", "scatter_gather",
]  # fmt: skip


def _scatter_gather(comm, x):
    return comm.all_gather(comm.reduce_scatter(x, tiled=True), tiled=True)


def collective(name):
    if name == "scatter_gather":
        return _scatter_gather, lambda n, xs: np.stack([np.sum(xs, 0)] * n)
    return R.CASES[name]


def run(program, comm, w, x):
    """Run a program, a list of (name, operand, operand), on a rank: values 0 and 1 are w and x."""
    values = [w, x]
    for name, i, j in program:
        a, b = values[i % len(values)], values[j % len(values)]
        if name in UNARY:
            y = UNARY[name](a)
        elif name in BINARY:
            y = BINARY[name](a, b)
        else:
            y = np.tanh(collective(name)[0](comm, a + 0.1 * x))
        values.append(y)
    return comm.all_reduce(np.sum(values[-1] * np.cos(np.arange(12.0) + comm.rank) * (1.0 + w) + 0.1 * values[-2]))


def whole(program, n, w, xs):
    values = [np.stack([w] * n), xs]
    for name, i, j in program:
        a, b = values[i % len(values)], values[j % len(values)]
        if name in UNARY:
            y = UNARY[name](a)
        elif name in BINARY:
            y = BINARY[name](a, b)
        else:
            y = np.tanh(collective(name)[1](n, a + 0.1 * xs))
        values.append(y)
    weights = np.cos(np.arange(12.0) + np.arange(n)[:, None])
    return np.sum(values[-1] * weights * (1.0 + w) + 0.1 * values[-2])


def drawn(seed, length=8):
    rng = np.random.default_rng(seed)
    names = [*UNARY, *BINARY, *COLLECTIVES, *COLLECTIVES]
    return [(names[rng.integers(len(names))], int(rng.integers(99)), int(rng.integers(99))) for _ in range(length)]


def check(program, comm):
    """Compare value, gradients, a second derivative and the compiled gradient with those of the serial program."""
    n, r = comm.size, int(comm.rank)
    w, xs = R.W, R.all_data(n, R.SHAPE, 3)
    f = D.spmd(lambda w, x: run(program, comm, w, x), comm, replicated=0)
    s = lambda w, xs: whole(program, n, w, xs)
    value, (gw, gx) = fad.value_and_grad(s, argnums=(0, 1))(w, xs)
    g = fad.value_and_grad(f, argnums=(0, 1))
    j = fad.jit(g)
    for found, (ranks, mine) in (g(w, xs[r]), j(w, xs[r]), j(w, xs[r])):
        np.testing.assert_allclose(found, value, rtol=1e-8, atol=1e-9)
        np.testing.assert_allclose(ranks, gw, rtol=1e-7, atol=1e-8)
        np.testing.assert_allclose(mine, gx[r], rtol=1e-7, atol=1e-8)
    bent = fad.jvp(lambda w: fad.grad(f)(w, xs[r]), (w,), (w * w,))[1]
    np.testing.assert_allclose(bent, fad.jvp(lambda w: fad.grad(s)(w, xs), (w,), (w * w,))[1], rtol=1e-6, atol=1e-7)
