"""A branch of a loop nest reads its operands as they were, where another one beside it has changed the array."""

import numpy as np
import pytest
from compile.natively import native

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def elements_that_are_read_and_replaced(x):
    m = np.outer(x, x)
    for _ in range(3):
        for j in range(3, 5):
            for k in range(1, 5):
                m *= 0.9
                if k % 2 == 0:  # noqa: SIM102 (the branch within the branch is what is tested)
                    if x[k] <= 10:
                        m[j - 1, j] = np.tanh(0.1 + m[k - 1, 4])
    return np.sum(m)


def elements_that_are_read_and_added_to(x):
    m = np.outer(x, x)
    for _ in range(3):
        for j in range(5):
            for k in range(1, 5):
                m *= 0.9
                if k > 1:
                    if m[k, 0] < 10:
                        m[j - 1, j] += np.sin(m[k - 1, j])
                    else:
                        m[j] *= 2.0
    return np.sum(m**2)


def a_row_that_is_read_by_two_choices(x):
    v = x * 1.0
    for i in range(4):
        for k in range(5):
            v *= 0.95
            if k != i:
                if x[0] > 0:
                    v[k] = np.exp(-v[i] * v[k])
                if v[i] > -5:
                    v[i] = np.cos(v[k] + v[i])
    return np.sum(v)


@pytest.mark.parametrize(
    "f",
    [
        elements_that_are_read_and_replaced, elements_that_are_read_and_added_to, a_row_that_is_read_by_two_choices,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_native_gradients_of_branches_within_branches_are_right(f):
    with fad.config.use(loops="capture"):
        np.testing.assert_allclose(native(fad.grad(f), X), fad.grad(f)(X), rtol=1e-12, atol=1e-14)
        np.testing.assert_allclose(native(fad.hessian(f), X), fad.hessian(f)(X), rtol=1e-9, atol=1e-12)
