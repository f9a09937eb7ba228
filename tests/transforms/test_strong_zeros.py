"""Where an exponential overflows and the result is finite all the same, the derivative is that of the limit."""

import numpy as np
import pytest
from each import each

import fad
from fad.compile.pipeline import optimise
from fad.ops.ufuncs.strong_zero import strong_multiply

X = np.array([-1000.0, -2.0, 0.0, 0.5, 3.0, 1000.0])


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def steps_of_a_unit(x):
    h = np.zeros_like(x)
    for _ in range(50):
        h = 0.5 * h + sigmoid(x)
    return h


# What overflows, and the same where nothing does.
PROGRAMS = {
    "sigmoid": (sigmoid, lambda x: 0.5 * (1 + np.tanh(x / 2))),
    "exp2": (lambda x: 1 / (1 + np.exp2(-2 * x)), lambda x: 0.5 * (1 + np.tanh(np.log(2) * x))),
    "Fermi and Dirac": (lambda x: 1 / (np.exp((x - 1.0) / 0.1) + 1), lambda x: 0.5 * (1 - np.tanh(5 * (x - 1.0)))),
    "logistic growth": (lambda x: 9 / (1 + 2 * np.exp(-x)), lambda x: 4.5 * (1 + np.tanh(0.5 * (x - np.log(2))))),
    "secant": (lambda x: 1 / np.cosh(x), lambda x: np.where(np.abs(x) < 99, 1 / np.cosh(np.clip(x, -99, 99)), 0.0)),
    "tangent": (lambda x: 1 - 2 / (np.exp(2 * x) + 1), np.tanh),
    "swish": (lambda x: x / (1 + np.exp(-x)), lambda x: 0.5 * x * (1 + np.tanh(x / 2))),
    "Planck": (lambda x: (3 + x) / np.expm1(x + 2000.5), lambda x: 0.0 * x),
    "a loop": (steps_of_a_unit, lambda x: (2 - 0.5**49) * 0.5 * (1 + np.tanh(x / 2))),
}  # fmt: skip


@pytest.fixture(autouse=True)
def quiet():
    with np.errstate(over="ignore"):
        yield


@each("name", PROGRAMS)
def test_the_derivative_of_what_saturates_is_right_where_its_exponential_overflows(name):
    f, same = PROGRAMS[name]
    want = fad.grad(lambda x: np.sum(same(x)))(X)
    gradient = fad.grad(lambda x: np.sum(f(x)))
    jitted = fad.jit(gradient)
    jitted(X / 100.0)  # recorded where nothing overflows
    batched = fad.vmap(fad.grad(f))(X)
    for found in (gradient(X), jitted(X), fad.jit(gradient)(X), batched, np.diag(fad.jacrev(f)(X))):
        np.testing.assert_allclose(found, want, rtol=1e-9, atol=1e-14)


@each("name", ["sigmoid", "exp2", "Fermi and Dirac", "logistic growth", "secant", "tangent", "Planck"])
def test_so_is_its_second_derivative(name):
    f, same = PROGRAMS[name]
    want = np.diag(fad.hessian(lambda x: np.sum(same(x)))(X))
    gradient = fad.grad(lambda x: np.sum(f(x)))
    for found in (fad.jacrev(gradient)(X), fad.jit(fad.jacrev(gradient))(X)):
        np.testing.assert_allclose(np.diag(found), want, rtol=1e-9, atol=1e-13)


def test_single_precision_overflows_sooner_and_keeps_its_dtype():
    x = np.array([-100.0, 1.0], np.float32)
    for gradient in (fad.grad(lambda x: np.sum(sigmoid(x))), fad.jit(fad.grad(lambda x: np.sum(sigmoid(x))))):
        found = gradient(x)
        assert found.dtype == np.float32
        np.testing.assert_allclose(found, [0.0, 0.19661193], rtol=1e-6)


def test_what_is_used_where_it_overflowed_has_an_infinite_derivative():
    for f in (np.exp, np.exp2, np.expm1, np.cosh, np.sinh):
        assert fad.grad(f)(5000.0) == np.inf
        assert fad.jit(fad.grad(f))(5000.0) == np.inf


def test_a_pole_is_no_overflow():
    with np.errstate(all="ignore"):
        assert np.isnan(fad.grad(lambda x: 1 / (1 / x))(np.zeros(1)[0]))  # it is 1


def test_the_second_derivative_at_a_zero_of_the_first_is_kept_beside_what_overflows():
    def f(x):
        return np.sum((x - 1.0) ** 2 * np.exp(x)) + np.sum(sigmoid(1000.0 * (x - 3.0)))

    np.testing.assert_allclose(fad.jacrev(fad.grad(f))(np.ones(1)), [[2 * np.e]], rtol=1e-12)


@each(
    "f, many",
    [
        (lambda x: np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x))), 0),
        (lambda x: np.exp(-(x**2) / 2.0) + np.exp(-np.abs(x)) + np.exp(np.minimum(x, 3.0)) + np.expm1(-0.5 * x * x), 0),
        (sigmoid, 1),
    ],
)
def test_what_cannot_overflow_is_multiplied_as_usual(f, many):
    graph = optimise(fad.make_graph(fad.grad(lambda x: np.sum(f(x) ** 3)))(np.ones(4)))
    assert sum(eq.prim is strong_multiply for eq in graph.equations) == many
