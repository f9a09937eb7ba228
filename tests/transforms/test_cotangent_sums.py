"""What adding up the cotangents of a factor costs, and that a sum in place is seen by nobody else."""

import tracemalloc

import numpy as np
import pytest

import fad

N = 500
A = np.random.default_rng(0).standard_normal((N, N))
X = np.linspace(0.5, 1.5, N)


def read_by_three_products(a):
    return np.sum(np.tanh(a @ X)) + np.sum(X @ a) + (X[::-1] @ a) @ X


def peak_of(run):
    tracemalloc.start()
    try:
        run()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("transform", [lambda f: f, fad.jit], ids=["plain", "recorded by jit"])
def test_a_matrix_that_many_products_read_takes_memory_for_two_cotangents(transform):
    small, gradient = np.eye(2), fad.grad(read_by_three_products)
    transform(fad.grad(lambda a: np.sum(a @ small)))(small)  # what is imported at first is not counted
    assert peak_of(lambda: transform(gradient)(A)) < 2.6 * A.nbytes


def test_a_pullback_called_twice_gives_the_same_sum():
    def twice(a):
        _, pullback = fad.vjp(read_by_three_products, a)
        return pullback(1.0)[0], pullback(2.0)[0]

    compiled = fad.jit(twice)
    expected = fad.grad(read_by_three_products)(A)
    for once, double in (twice(A), compiled(A), compiled(A)):
        np.testing.assert_allclose(once, expected, rtol=1e-12)
        np.testing.assert_allclose(double, 2 * expected, rtol=1e-12)
