"""A sparse derivative is computed without a check where it repeats a run that was checked, and only there."""

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError
from fad.sparse import entries, passes

pytestmark = pytest.mark.usefixtures("by_themselves")
RNG = np.random.default_rng(1)
I, J = RNG.integers(0, 8, (2, 25))
X = RNG.normal(size=8)


@pytest.fixture
def checks(monkeypatch):
    """Count the checks."""
    seen = []
    find = entries._find_unexplained
    monkeypatch.setattr(entries, "_find_unexplained", lambda *args: seen.append(1) or find(*args))
    return seen


def same(derivative, f, *args):
    found, wanted = derivative(*args).toarray(), fad.jacobian(f)(*args)
    np.testing.assert_allclose(found, wanted.reshape(found.shape), rtol=1e-12, atol=1e-13)


FUNCTIONS = {
    "gathers": lambda x: np.sin(x[I]) * x[J],
    "a stencil": lambda x: x[1:] ** 2 * x[:-1],
    "a layer": lambda x: np.tanh(np.bincount(I, x[I] * x[J], 8))[J],
    "a band": lambda x: np.tanh((np.eye(8) + np.eye(8, k=1)) @ x),
    "full and sparse rows": lambda x: np.concatenate([np.sum(x**2)[None], x[1:] * x[:-1]]),
    "choices": lambda x: np.where(x > 0, x**2, np.sin(x)) * np.maximum(x, 0.3)[J % 8][:8],
}


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_run_that_repeats_another_is_checked_once(name, mode, checks):
    f = FUNCTIONS[name]
    derivative = fad.sparse.jacobian(f, mode=mode)
    for x in (X, X + 0.5, -X):
        same(derivative, f, x)
    assert len(checks) == 1


def test_hessians_are_checked_once(checks):
    def f(x):
        return np.sum(np.cosh(x[I] * x[J])) + np.sum(x**3)

    hessian = fad.sparse.hessian(f)
    for x in (X, X + 0.5, -X):
        np.testing.assert_allclose(hessian(x).toarray(), fad.hessian(f)(x), rtol=1e-12, atol=1e-12)
    assert len(checks) == 1


def branching(x):
    return x[1:] * x[:-1] if x[0] > 0 else x[1:] * x[0]


def swapping(x):
    first, second = (x[:4], x[4:]) if x[0] > 0 else (x[4:], x[:4])
    return first**2 - 3 * second[::-1]


def ordering(x):
    return x[np.argsort(x)] * x


def weighing(x):
    weights = np.eye(8) if x[0] > 0 else np.eye(8)[::-1]
    return weights @ np.sin(x)


def rolling(x):
    return np.roll(x, 1 if x[0] > 0 else 2) * x


def scattering(x):
    total = np.zeros(8)
    np.add.at(total, I if x[0] > 0 else J, x[I] * 2.0)
    return total


def convolving(x):
    return np.convolve(x, [1.0, 0.0, 2.0] if x[0] > 0 else [1.0, 3.0, 0.0], "same") ** 2


def vanishing(x):
    """At the first point a place is zero by its value alone."""
    return x[1:] * (x[0] - X[0]) + x[:-1]


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize(
    "f", [branching, swapping, ordering, weighing, rolling, scattering, convolving, vanishing], ids=lambda f: f.__name__
)
def test_a_run_that_does_otherwise_is_seen(f, mode):
    derivative = fad.sparse.jacobian(f, mode=mode)
    start = np.abs(X) if f is not vanishing else X
    for x in (start, start + 0.1, -start, start, -start[::-1], start[::-1].copy()):
        same(derivative, f, x)


def test_an_index_array_that_is_written_into_is_seen():
    index = I.copy()

    def f(x):
        total = np.zeros(8)
        np.add.at(total, index, np.sin(x[J]))
        return total

    for mode in ("auto", "fwd", "rev"):
        derivative = fad.sparse.jacobian(f, mode=mode)
        for _ in range(3):
            same(derivative, f, X)
            index[:] = RNG.integers(0, 8, 25)


def test_a_matrix_whose_zeros_are_elsewhere_is_seen():
    weights = np.eye(8)
    derivative = fad.sparse.jacobian(lambda x: np.sin(weights @ x))
    for _ in range(3):
        same(derivative, lambda x: np.sin(weights @ x), X)
        weights[:] = weights[RNG.permutation(8)]


def test_a_pattern_that_is_given_is_checked_by_every_call():
    derivative = fad.sparse.jacobian(lambda x: np.sin(x) * x[0], pattern=np.eye(8))
    x = np.append(0.0, X[1:])
    x[1:] = 0.0
    assert derivative(x).nnz == 8  # at zero the first column is zero as well
    with pytest.raises(DerivativeError, match="lacks places"):
        derivative(np.append(0.5, X[1:]))


def test_a_run_after_places_were_found_elsewhere_is_checked(checks):
    f = FUNCTIONS["gathers"]
    derivative = fad.sparse.jacobian(f)
    derivative.explain(X)
    for x in (X, X + 1):
        same(derivative, f, x)
    assert len(checks) == 2


@pytest.mark.parametrize("mode", ["fwd", "rev"])
def test_other_transforms_get_the_same_after_a_run_of_plain_numbers(mode):
    def f(x, a):
        return np.sin(a * x[I]) * x[J] if a > 0 else x[J] * a

    derivative, dense = fad.sparse.jacobian(f, mode=mode), fad.jacobian(f)
    for a in (1.5, 0.5, -1.0):
        same(derivative, f, X, a)
        found = fad.grad(lambda a: np.sum(derivative(X, a).toarray() ** 2))(a)
        assert found == pytest.approx(fad.grad(lambda a: np.sum(dense(X, a) ** 2))(a))
        found = fad.grad(lambda x, a=a: np.sum(derivative(x, a).toarray() ** 3))(X)
        np.testing.assert_allclose(found, fad.grad(lambda x, a=a: np.sum(dense(x, a) ** 3))(X), rtol=1e-10, atol=1e-12)
        compiled = fad.jit(derivative)
        for x in (X, X + 1):
            same(compiled, f, x, a)


@pytest.mark.parametrize("f", [ordering, branching, scattering, weighing], ids=lambda f: f.__name__)
def test_a_program_compiled_after_a_run_of_plain_numbers_sees_other_places(f):
    derivative = fad.sparse.jacobian(f)
    for x in (np.abs(X), np.abs(X) + 0.1):
        same(derivative, f, x)
    compiled = fad.jit(derivative)
    for x in (np.abs(X), np.abs(X) + 0.1, -np.abs(X), np.abs(X[::-1]), X):
        same(compiled, f, x)


def test_passes_in_several_runs_are_compared_too(checks, monkeypatch):
    monkeypatch.setattr(passes, "_TOGETHER", 2)
    x = RNG.normal(size=(4, 7))

    def f(x):
        return np.exp(np.sum(x, axis=1)) * x[:, 0]

    derivative = fad.sparse.jacobian(f, mode="fwd")
    for _ in range(3):
        same(derivative, f, x)
        x = x[::-1] + 0.1
    assert derivative.explain(x).endswith("passes: 7 forward")
    assert len(checks) == 1
