"""Captured loops inside functions that a transform runs again, looks at, or has a rule for."""

import math

import numpy as np
import pytest

import fad

X = np.array([0.7, -0.4, 1.3])


@pytest.fixture(autouse=True)
def _captured():
    with fad.config.use(loops="capture"):
        yield


def reads(x):
    i, s = 0, x[0]
    while True:
        if i >= 5:
            break
        s = np.sin(s) + x[i % 3]
        i += 1
    return s


def writes(x):
    i = 0
    while i < 5:
        x[i % 3] = x[i % 3] * 2.0
        i += 1
    return x.sum()


def with_a_rule(f):
    found = fad.custom_jvp(f)
    found.defjvp(lambda primals, tangents: fad.jvp(f, primals, tangents))
    return found


@pytest.mark.parametrize("wrap", [fad.checkpoint, with_a_rule])
def test_a_loop_that_only_reads_an_array_is_not_taken_for_one_that_writes(wrap):
    assert fad.jit(fad.grad(wrap(reads)))(X) == pytest.approx(fad.grad(reads)(X))
    with pytest.raises((fad.errors.ItemAssignmentError, fad.errors.CustomRuleError), match=r"x = x\.copy\(\)"):
        fad.jit(fad.grad(wrap(writes)))(X)


def least_sums(x):
    n = len(x)
    sums = np.full((n + 1, n + 1), np.inf)
    sums[0, 0] = 0.0
    for i in range(1, n + 1):
        for j in range(1, n + 1):
            sums[i, j] = (x[i - 1] - 0.3 * x[j - 1]) ** 2 + min(sums[i - 1, j], sums[i, j - 1], sums[i - 1, j - 1])
    return sums[n:, n]


def sums_of_tails(x):
    total = 0.0
    for i in range(len(x) - 1, -1, -1):
        total = total * 0.5 + x[i]
    return total * np.ones(2), i


def lengths(x):
    h = 0.0
    for v in x:
        h = math.hypot(h, v)
    return h * np.ones(2)


@pytest.mark.parametrize("f", [least_sums, lambda x: sums_of_tails(x)[0], lengths], ids=["min", "integer", "float"])
def test_sparse_derivatives_of_jitted_loops_are_the_dense_ones(f):
    found = fad.jit(lambda x: fad.sparse.jacobian(f)(x).toarray())
    for x in (X, X[::-1].copy()):
        np.testing.assert_allclose(found(x), fad.jacobian(f)(x), rtol=1e-12)
