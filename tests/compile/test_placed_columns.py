"""Values that are wanted in columns of a larger array are computed there."""

import re

import numpy as np
import pytest
from natively import compiled

import fad

pytest.importorskip("llvmlite")
RNG = np.random.default_rng(0)

COLUMNS = {
    "columns": lambda x, y: np.stack([np.sin(x), y * 2.0, x - y], axis=1),
    "raveled and joined": lambda x, y: np.concatenate([np.stack([x * y, x + y], axis=1).ravel(), -2 * x]),
    "columns of columns": lambda x, y: np.concatenate([np.stack([x * y, x + y], axis=1), (x - 1.0)[:, None]], axis=1),
    "a column that is read again": lambda x, y: (lambda a: (np.stack([a, y], axis=1), np.cumsum(a)))(x * y),
    "a column that its own loop reads": lambda x, y: (lambda a: np.stack([a, a * y], axis=1))(np.exp(x)),
    "a column twice": lambda x, y: (lambda a: np.stack([a, a, y], axis=1))(x * y),
    "a result as well": lambda x, y: (lambda a: (a, np.stack([a, y * 2.0], axis=1)))(x * y),
    "every second element": lambda x, y: fad.grad(lambda v: np.sum(v[::2] * y[::2]) + np.sum(np.sin(v[1::2])))(x),
    "integers": lambda x, y: np.stack([(x * 9).astype(int) + 1, (y * 9).astype(int) * 2], axis=1).ravel() * 3,
    "booleans": lambda x, y: np.stack([x > y, x < 0.5], axis=1),
    "a sum beside": lambda x, y: (lambda a: (np.stack([a, y], axis=1), np.sum(a)))(x * y),
    "single precision": lambda x, y: np.stack([np.sin(x).astype("f4"), (x * y).astype("f4")], axis=1),
}


@pytest.mark.parametrize("n", [5, 40, 1000, 20_000])
@pytest.mark.parametrize("name", COLUMNS)
def test_columns_are_written_where_they_belong(name, n):
    f, x, y = COLUMNS[name], RNG.normal(size=n), RNG.normal(size=n)
    fast = compiled(f, x, y)
    for _ in range(2):
        for a, b in zip(fad.tree.leaves(fast(x, y)), fad.tree.leaves(f(x, y)), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-12 if a.dtype != np.float32 else 1e-6)


@pytest.mark.parametrize("name", ["columns", "raveled and joined", "columns of columns"])
def test_columns_of_a_result_need_no_other_memory(name):
    n = 20_000
    x, y = RNG.normal(size=n), RNG.normal(size=n)
    fast = compiled(COLUMNS[name], x, y)
    memory = int(re.search(r"(\d+) bytes of memory", fast.explain()).group(1))
    assert memory < x.nbytes
