"""Traced arrays that NumPy's generators shuffle, permute or are added to: what NumPy gives, and its derivative."""

import numpy as np
import pytest

import fad

WEIGHTS = np.arange(8.0).reshape(4, 2) ** 2
X = np.arange(1.0, 9.0).reshape(4, 2)
SEEDS = range(6)


def by_global(seed, y):
    np.random.seed(seed)
    np.random.shuffle(y)


def by_state(seed, y):
    np.random.RandomState(seed).shuffle(y)


def by_default(seed, y):
    np.random.default_rng(seed).shuffle(y)


def by_generator(seed, y):
    np.random.Generator(np.random.PCG64(seed)).shuffle(y)


def by_columns(seed, y):
    np.random.default_rng(seed).shuffle(y, axis=-1)


def by_state_permutation(seed, y):
    y[...] = np.random.RandomState(seed).permutation(y)


def by_global_permutation(seed, y):
    np.random.seed(seed)
    y[...] = np.random.permutation(y)


def check(f, x):
    """Check a function that is linear in an array under every transform."""
    slope = np.array([f(e.reshape(x.shape)) for e in np.eye(x.size)]).reshape(x.shape)
    for g in (fad.value_and_grad(f), fad.jit(fad.value_and_grad(f))):
        value, gradient = g(x)
        assert value == f(x)
        np.testing.assert_array_equal(gradient, slope)
    assert fad.jit(f)(x) == f(x)
    np.testing.assert_array_equal(fad.vmap(f)(np.stack([x, 2 * x])), [f(x), f(2 * x)])


@pytest.mark.parametrize(
    "shuffle",
    [by_global, by_state, by_default, by_generator, by_columns, by_state_permutation, by_global_permutation],
)
@pytest.mark.parametrize("seed", SEEDS)
def test_a_shuffle_of_a_traced_array_moves_its_rows(shuffle, seed):
    def f(x):
        y = x.copy()
        shuffle(seed, y)
        return np.sum(y * WEIGHTS)

    check(f, X)


@pytest.mark.parametrize("shuffle", [by_global, by_state, by_default, by_generator])
def test_a_shuffle_of_a_traced_vector_moves_its_entries(shuffle):
    def f(x):
        y = x.copy()
        shuffle(1, y)
        return np.sum(y * WEIGHTS.ravel())

    check(f, X.ravel())


@pytest.mark.parametrize("axis", [0, 1, -1])
def test_a_permutation_of_a_traced_array_is_numpys(axis):
    def f(x):
        y = np.zeros((4, 2))
        y[...] = np.random.default_rng(1).permutation(x, axis=axis)
        return np.sum(y * WEIGHTS)

    check(f, X)


def test_a_permutation_of_a_traced_vector_is_numpys():
    def f(x):
        y = np.zeros(8)
        y[:] = np.random.default_rng(1).permutation(x)
        return np.sum(y * WEIGHTS.ravel())

    check(f, X.ravel())


def test_a_function_that_writes_draws_from_a_multivariate_normal():
    def f(x):
        y = np.random.default_rng(1).multivariate_normal(np.zeros(2), np.eye(2), size=4)
        y[0] = 0.0
        return np.sum(y * x * WEIGHTS)

    np.testing.assert_allclose(fad.grad(f)(X) * X, fad.jit(fad.grad(f))(X) * X)
    np.testing.assert_allclose(np.sum(fad.grad(f)(X) * X), f(X))
    np.testing.assert_allclose(fad.jit(f)(X), f(X))


def test_a_generator_is_an_instance_of_numpys_class_in_a_function_that_writes():
    outside = np.random.RandomState(1)

    def f(x):
        y = np.zeros(2)
        y[0] = x
        assert isinstance(outside, np.random.RandomState)
        assert isinstance(np.random.default_rng(1), np.random.Generator)
        assert isinstance(np.random.RandomState(1), np.random.RandomState)
        return y[0]

    assert fad.grad(f)(1.0) == 1.0
