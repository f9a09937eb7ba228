"""Random programs, their gradients, batched gradients and Hessians: jitted, they give what they give without jit."""

import numpy as np
import pytest

import fad
from fad.compile.targets.select import has_llvm, using

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
UNARY = [
    np.sin, np.cos, np.tanh, np.exp, lambda x: np.log(np.abs(x) + 1), lambda x: x * x, np.transpose, lambda x: x[::-1],
    lambda x: np.maximum(x, 0.1), lambda x: np.where(x > 0, x, -0.5 * x),
    lambda x: x - np.mean(x, axis=0, keepdims=True),
    lambda x: x / (1 + np.sum(x * x)), lambda x: np.sqrt(x * x + 1.0), lambda x: x.reshape(-1).reshape(x.shape),
    lambda x: np.cumsum(x, 0), lambda x: np.max(x, 1, keepdims=True) * x, lambda x: np.concatenate([x[1:], x[:1]]),
]  # fmt: skip
BINARY = [np.add, np.multiply, np.subtract, lambda a, b: a / (1 + b * b), np.minimum, np.matmul]


def program(seed):
    r = np.random.default_rng(seed)
    choices = UNARY + BINARY
    plan = [(choices[r.integers(len(choices))], r.integers(100), r.integers(100)) for _ in range(r.integers(3, 20))]

    def run(x, w):
        values = [x, w]
        for f, i, j in plan:
            a, b = values[i % len(values)], values[j % len(values)]
            values.append(np.tanh(f(a, b)) if f in BINARY else f(np.tanh(a)))
        return np.sum(np.tanh(values[-1]) + 0.1 * values[-2])

    n = int(r.integers(1, 5))
    return run, r.normal(size=(n, n)), r.normal(size=(n, n))


@pytest.mark.parametrize("lowering", LOWERINGS)
@pytest.mark.parametrize("seed", range(12))
def test_a_random_program_and_its_derivatives_are_the_same_under_jit(seed, lowering):
    f, x, w = program(seed)
    batch = np.stack([w, 0.5 * w, -w])
    for g, args in (
        (f, (x, w)),
        (fad.grad(f, argnums=(0, 1)), (x, w)),
        (fad.vmap(fad.grad(f), in_axes=(None, 0)), (x, batch)),
        (fad.hessian(f), (x, w)),
    ):
        wanted = fad.tree.leaves(g(*args))
        with using(lowering):
            fast = fad.jit(g)
            fast(*args)
            got = fad.tree.leaves(fast(*args))
        for a, b in zip(got, wanted, strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-9 * max(1.0, float(np.abs(b).max())))
