"""Libraries written for any array take traced ones: einops, opt_einsum, array-API paths of SciPy and scikit-learn."""

import os
import subprocess
import sys

import numpy as np
import opt_einsum
import pytest

import fad
from fad.compat.einops import einops
from fad.testing import check_grads

X = np.linspace(0.3, 1.7, 12).reshape(4, 3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: einops.rearrange(x, "(a b) c -> (c a) b", a=2) ** 2,
        lambda x: einops.reduce(x, "a b -> b", "mean") ** 2,
        lambda x: einops.reduce(x, "a b -> b", "max") ** 2,
        lambda x: einops.repeat(x, "a b -> a b two", two=2) ** 2,
        lambda x: einops.einsum(x, x, "a b, c b -> a c"),
        lambda x: einops.pack([x, 2 * x], "* b")[0] ** 2,
    ],
)
def test_einops_rearranges_traced_arrays(f):
    check_grads(f, (X,), order=2)
    batched = fad.vmap(f)(np.stack([X, 2 * X]))
    np.testing.assert_allclose(batched[1], f(2 * X))


def test_opt_einsum_contracts_traced_arrays():
    def f(x, y, z):
        return opt_einsum.contract("ij,kj,kl->il", x, y, z)

    check_grads(f, (X, 2 * X, X[:, :2]), order=2)


def test_the_namespace_of_a_traced_array_is_fad_numpy():
    seen = []
    fad.grad(lambda x: seen.append(x.__array_namespace__()) or np.sum(x))(X)
    assert seen == [fad.numpy]


PROGRAM = """
import numpy as np, fad, scipy.stats
from sklearn import config_context
from sklearn.metrics import mean_squared_error
x = np.linspace(0.3, 1.7, 12).reshape(4, 3)
g = fad.grad(lambda v: scipy.stats.skew(v))(x.ravel() ** 2)
h = 1e-6
e = np.eye(12)[5] * h
skew = lambda v: scipy.stats.skew(v)
assert abs(g[5] - (skew(x.ravel() ** 2 + e) - skew(x.ravel() ** 2 - e)) / (2 * h)) < 1e-5
with config_context(array_api_dispatch=True):
    g = fad.grad(lambda p: np.sum(mean_squared_error(p * 0, p, multioutput="raw_values")))(x)
assert np.allclose(g, 2 * x / len(x))
"""


def test_array_api_paths_of_scipy_and_scikit_learn_take_traced_arrays():
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}
    run = subprocess.run([sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True)
    assert run.returncode == 0, run.stderr
