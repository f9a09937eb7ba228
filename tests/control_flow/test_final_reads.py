"""What a backward pass reads where no later step writes is read from what the loop leaves, not kept by each step."""

import numpy as np
import pytest
from capture.agreement import agree

import fad
from fad import control

N = 14


def substitution(x):
    y = np.zeros(N)
    for i in range(N):
        y[i] = (x[0, i] - x[i, :i] @ y[:i]) / (x[i, i] + 3.0)
    return np.sum(y * y)


def substitution_backwards(x):
    y = np.zeros(N)
    for i in range(N - 1, -1, -1):
        y[i] = (x[0, i] - x[i, i + 1 :] @ y[i + 1 :]) / (x[i, i] + 3.0)
    return np.sum(y * y)


def recursion(x):
    y = x * 1.0
    for i in range(1, N):
        y[i] = np.sin(y[i - 1]) * y[i] + 0.3 * y[i - 1, 0]
    return np.sum(y * y)


def reads_its_own(x):
    y = x * 1.0
    for i in range(1, N):
        y[i] = y[i] * y[i - 1]
        y[i] = np.sin(y[i]) + 0.1 * y[i] * y[i]
    return np.sum(y * y)


def wraps_around(x):
    y = x * 1.0
    for i in range(N):
        y[i] = y[i] * y[i - 1]
    return np.sum(y * y)


def reads_what_comes(x):
    y = x * 1.0
    for i in range(N - 1):
        y[i] = y[i] * y[i + 1] + np.sum(y[i:] * y[i:], axis=0)
    return np.sum(y * y)


def writes_twice(x):
    y = x * 1.0
    for i in range(1, N):
        y[i] = y[i] * y[i - 1]
        y[0] = y[0] * 0.6 + 0.4 * y[i]
    return np.sum(y * y)


def of_a_matrix(x):
    y = x * 0.1 + 3.0 * np.eye(N)
    for i in range(N):
        for j in range(i):
            y[i, j] -= np.dot(y[i, :j], y[j, :j])
            y[i, j] /= y[j, j]
        y[i, i] = np.sqrt(y[i, i] - np.dot(y[i, :i], y[i, :i]))
    return np.sum(np.tril(y))


PROGRAMS = [
    substitution, substitution_backwards, recursion, reads_its_own, wraps_around, reads_what_comes, writes_twice,
    of_a_matrix,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_gradients_are_those_of_the_loop_that_is_written_out(f):
    agree(f, np.random.default_rng(5).uniform(0.8, 1.1, (N, N)))


def kept_by(f):
    """Return how many numbers the steps of the loop keep for its backward pass."""
    with fad.config.use(loops="capture"):
        graph = fad.make_graph(fad.grad(f))(np.random.default_rng(0).uniform(0.2, 1.0, (N, N)))
    forward = next(eq for eq in graph.equations if eq.prim.archetype == "loop")
    return sum(graph.types[o].size for o in forward.outs[forward.params["carries"] :])


@pytest.mark.parametrize("f", [substitution, substitution_backwards])
def test_no_step_keeps_what_earlier_ones_have_written(f):
    assert kept_by(f) <= 4 * N


@pytest.mark.parametrize("f", [reads_what_comes, wraps_around])
def test_what_later_steps_overwrite_is_kept(f):
    assert kept_by(f) >= N * N


def test_a_result_may_be_overwritten_before_the_backward_pass():
    def step(i, y):
        y = y.copy()
        y[i] = y[i - 1] * y[i]
        return y

    def f(x):
        y = control.fori_loop(1, N, step, x * 1.0)
        total = np.sum(y)
        y[:] = 0.0
        return total + np.sum(y)

    def plain(x):
        y = x * 1.0
        for i in range(1, N):
            y[i] = y[i - 1] * y[i]
        return np.sum(y)

    x = np.random.default_rng(0).uniform(0.5, 1.5, N)
    for gradient in (fad.grad(f), fad.jit(fad.grad(f))):
        for _ in range(2):
            np.testing.assert_allclose(gradient(x), fad.grad(plain)(x), rtol=1e-12)
