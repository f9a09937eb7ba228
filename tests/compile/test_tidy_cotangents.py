"""What the pullback of a loop's body adds up for nothing is left out, and its gradient is the same."""

import numpy as np
import pytest

import fad
from fad.compile.passes.tidy_cotangents import tidy_cotangents
from fad.compile.pipeline import optimise
from fad.staging.record import make_graph

pytest.importorskip("llvmlite")


def levinson(r):
    """Solve a Toeplitz system: each step adds the reverse of what there is to it."""
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return np.sum(y * y)


def equations_of(graph):
    for eq in graph.equations:
        yield eq, graph
        if "body" in eq.params:
            yield from equations_of(eq.params["body"])


def adds_zeros(eq, graph):
    constants = [graph.constants[i] for i in eq.ins if i in graph.constants]
    return eq.prim.name == "add" and any(np.ndim(c) and not np.any(c) for c in constants)


def test_zeros_are_not_added_to_cotangents():
    with fad.config.use(loops="capture"):
        graph = make_graph(fad.grad(levinson))(np.linspace(0.1, 0.5, 30))
    assert not any(adds_zeros(*found) for found in equations_of(optimise(graph)))


@pytest.mark.parametrize("n", [2, 3, 17, 200])
def test_the_gradient_through_reversed_slices_is_that_of_plain_runs(n):
    r = np.random.default_rng(n).normal(size=n) * 0.2 / (1.0 + np.arange(n)) ** 2
    wanted = fad.value_and_grad(levinson)(r)
    with fad.config.use(loops="capture"):
        fast = fad.jit(fad.value_and_grad(levinson))
        for _ in range(2):
            for a, b in zip(fast(r), wanted, strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-11)


def test_what_a_mask_chose_and_left_is_the_whole():
    def f(x, y, mask):
        seed = y * 2.0
        return np.where(mask, seed, 0.0) + np.where(np.logical_not(mask), seed, 0.0), x + np.zeros(4)

    x, y, mask = np.ones(4), np.arange(4.0), np.array([True, False, True, False])
    graph = optimise(make_graph(f)(x, y, mask))
    found = tidy_cotangents(graph, {graph.inputs[1]})
    assert [eq.prim.name for eq in found.equations] == ["multiply", "add"]  # x is no cotangent: -0.0 becomes 0.0
    for got, wanted in zip(found(x, y, mask), f(x, y, mask), strict=True):
        np.testing.assert_array_equal(got, wanted)
