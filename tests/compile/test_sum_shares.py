"""Sums of what is divided by its own sum are known; other multiples of a sum are added up as they are."""

import numpy as np
import pytest

import fad
from fad.compile.pipeline import optimise

ROWS = np.random.default_rng(0).normal(size=(5, 7))


def count_sums(f, *args):
    graph = optimise(fad.make_graph(f)(*args))
    floats = [eq for eq in graph.equations if eq.prim.name == "sum_over" and graph.types[eq.ins[0]].dtype.kind == "f"]
    return sum(graph.types[eq.ins[0]].shape != () for eq in floats)


def logsumexp(x, axis=None):
    largest = np.max(x, axis=axis, keepdims=True)
    return np.sum(np.log(np.sum(np.exp(x - largest), axis=axis, keepdims=True)) + largest)


def sum_of_softmax(x, axis=None):
    e = np.exp(x)
    share = -(e / np.sum(e, axis=axis, keepdims=True)) * 3.0
    return np.sum(np.sum(share, axis=axis) ** 2)


@pytest.mark.parametrize("axis", [None, 0, 1, (0, 1)])
@pytest.mark.parametrize("f", [fad.grad(logsumexp), sum_of_softmax, fad.grad(sum_of_softmax)])
def test_sums_of_shares_are_what_they_are_without_jit(f, axis):
    plain, compiled = f(ROWS, axis=axis), fad.jit(f, static_argnames="axis")
    for _ in range(2):
        np.testing.assert_allclose(compiled(ROWS, axis=axis), plain, rtol=1e-13, atol=1e-13)


def test_the_gradient_of_a_shifted_logsumexp_adds_up_once():
    assert count_sums(fad.grad(logsumexp), ROWS.ravel()) == 1
    assert count_sums(fad.grad(lambda x: logsumexp(x, axis=1)), ROWS) == 1


def test_shares_of_another_axis_are_added_up():
    def f(x):
        return np.sum(x / np.sum(x, axis=0), axis=1)

    np.testing.assert_allclose(fad.jit(f)(ROWS), f(ROWS), rtol=1e-13)
    assert count_sums(f, ROWS) == 2


def test_a_multiple_whose_sum_is_in_range_is_not_computed_from_a_sum_that_overflows():
    def f(x, scale):
        return np.sum(x), np.sum(x * scale), np.sum(x / scale)

    x = np.full(10, 1e308)
    with np.errstate(over="ignore"):
        total, scaled, _ = fad.jit(f)(x, np.float64(1e-10))
    assert np.isinf(total)
    assert scaled == pytest.approx(1e299)
