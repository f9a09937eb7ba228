"""Under jit, sparse derivatives at other index arrays and values than those of the first call."""

import numpy as np
import pytest

import fad

P, Q = np.array([1.0, 2.0, 3.0]), np.array([-1.0, 2.0, -3.0])
I, J, K = np.array([0, 1, 1]), np.array([2, 0, 1]), np.array([0, 0, 0])
CALLS = [(P, I, J), (P, J, I), (P, I, I), (Q, J, J), (Q, K, J), (P, I, J)]


def network(x, i, j):
    return np.bincount(j, weights=np.tanh(x[i]), minlength=3)


def gathered_sums(x, i, j):
    return np.sin(np.bincount(i, weights=x, minlength=3)[j])


def doubled_where_positive(x, i, j):
    y = x * 1
    y[x > 0] *= 2
    return np.bincount(j, weights=y, minlength=3)


def squares_of_parts(x, i, j):
    return x[i] ** 2


PROGRAMS = [network, gathered_sums, doubled_where_positive, squares_of_parts]


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_compiled_jacobian_is_the_dense_one_at_other_indices(f):
    run = fad.jit(fad.sparse.jacobian(f))
    for args in CALLS:
        np.testing.assert_allclose(run(*args).toarray(), fad.jacobian(f)(*args), atol=1e-14)


def test_a_jacobian_made_in_a_compiled_function_is_the_dense_one_at_other_indices():
    run = fad.jit(lambda *args: fad.sparse.jacobian(squares_of_parts)(*args) @ np.ones(3))
    for args in CALLS:
        np.testing.assert_allclose(run(*args), fad.jacobian(squares_of_parts)(*args) @ np.ones(3), atol=1e-14)


def test_a_compiled_hessian_is_the_dense_one_at_other_indices():
    def total(x, i, j):
        return np.sum(network(x, i, j) ** 2)

    run = fad.jit(fad.sparse.hessian(total))
    for args in CALLS:
        np.testing.assert_allclose(run(*args).toarray(), fad.hessian(total)(*args), atol=1e-13)
