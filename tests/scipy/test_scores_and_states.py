"""Percentiles by ``scoreatpercentile`` and states of filters by ``lfiltic`` are SciPy's, with derivatives."""

import itertools

import numpy as np
import pytest
from scipy import signal, stats

import fad

X = np.random.default_rng(0).uniform(size=(5, 3))


@pytest.mark.parametrize("dtype", [float, np.float32])
def test_percentiles_are_scipys(dtype):
    x = X.astype(dtype)
    ranks, methods = [0, 30, 50.0, 100, [10, 50.0]], ["fraction", "lower", "higher"]
    for per, method, axis in itertools.product(ranks, methods, [None, 0, 1]):
        for limit in [(), (0.1, 0.9)] if axis is None else [()]:

            def f(x, given=(per, limit, method, axis)):
                return stats.scoreatpercentile(x, *given)

            found, expected = fad.jit(f)(x), f(x)
            assert np.asarray(found).dtype == np.asarray(expected).dtype
            np.testing.assert_allclose(found, expected, rtol=1e-6)


def test_a_percentile_moves_with_its_neighbours():
    slopes = fad.grad(lambda x: stats.scoreatpercentile(x, 30))(np.array([3.0, 0.0, 1.0, 2.0]))
    np.testing.assert_allclose(slopes, [0.0, 0.1, 0.9, 0.0], atol=1e-12)


FILTERS = [
    ([0.5, 0.2, 0.1], [2.0, 0.3], [0.3, 0.2, 0.1], [0.7]),
    ([0.5, 0.2], [1.0, 0.3, 0.2, 0.1], [0.4, 0.6], None),
    ([0.5], [1.0, -0.5], [2.0], None),
    ([1.0], [2.0], [3.0], None),
]


@pytest.mark.parametrize(("b", "a", "y", "x"), FILTERS)
def test_a_state_goes_on_with_a_filter(b, a, y, x):
    b, a, y = map(np.array, (b, a, y))
    found, expected = fad.jit(lambda b, a, y: signal.lfiltic(b, a, y, x))(b, a, y), signal.lfiltic(b, a, y, x)
    np.testing.assert_allclose(found, expected, atol=1e-15)
    assert found.shape == expected.shape

    def go_on(b, a, y):
        return np.sum(signal.lfilter(b, a, np.ones(4), zi=signal.lfiltic(b, a, y, x))[0] ** 2)

    gradients = fad.grad(go_on, (0, 1, 2))(b, a, y)
    _, tangent = fad.jvp(go_on, (b, a, y), (b, a, y))
    h = 1e-6
    slope = (go_on(*[v * (1 + h) for v in (b, a, y)]) - go_on(*[v * (1 - h) for v in (b, a, y)])) / (2 * h)
    np.testing.assert_allclose(tangent, slope, rtol=1e-7)
    np.testing.assert_allclose(sum(g @ v for g, v in zip(gradients, (b, a, y), strict=True)), slope, rtol=1e-7)
