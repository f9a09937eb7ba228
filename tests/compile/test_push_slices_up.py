"""Elementwise operations beside pooling are done on its slices: same values, and no array of the full size between."""

import numpy as np
import pytest
from natively import compiled, native

import fad
from fad.compile.legalize.decompose import decompose
from fad.compile.legalize.places.pooling import expand_pools
from fad.compile.legalize.places.push_slices_up import push_slices_up
from fad.compile.pipeline import optimise
from fad.ops.products.conv import conv
from fad.ops.products.pooling import avg_pool, max_pool

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)


def _whole(f, *xs):
    """Return how many elementwise operations on the whole of the first array a program has, before and after."""
    graph = expand_pools(decompose(optimise(fad.make_graph(f)(*xs))))
    counts = []
    for g in (graph, push_slices_up(graph)):
        big = [eq for eq in g.equations if g.types[eq.outs[0]].size == xs[0].size]
        counts.append(sum(eq.prim.archetype == "elementwise" for eq in big))
    return counts


def _relu(x, b):
    return np.maximum(x + b[:, None, None], 0.0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", [16, 17])  # with places outside of all windows
@pytest.mark.parametrize("pool", [max_pool, avg_pool])
def test_an_activation_before_pooling_is_computed_in_slices_with_the_same_gradient(pool, size, dtype):
    x, b = rng.normal(size=(8, 3, size, size)).astype(dtype), rng.normal(size=3).astype(dtype)

    def f(x, b):
        value, slopes = fad.value_and_grad(lambda x, b: np.sum(pool(_relu(x, b), 2) ** 2), argnums=(0, 1))(x, b)
        return value, *slopes

    for found, want in zip(native(f, x, b), f(x, b), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-12 if dtype is np.float64 else 1e-5, atol=1e-6)
    if pool is max_pool:
        before, after = _whole(f, x, b)
        assert before >= 4
        assert after == 0


@pytest.mark.parametrize("size", [16, 17])
def test_what_something_else_reads_whole_stays_whole(size):
    x, b = rng.normal(size=(8, 3, size, size)), rng.normal(size=3)

    def f(x, b):
        def loss(x, b):
            y = _relu(x, b)
            return np.sum(max_pool(y, 2) ** 2) + np.sum(np.sin(y))

        return _relu(x, b), fad.grad(loss, argnums=(0, 1))(x, b)

    (y, slopes), (want, want_slopes) = native(f, x, b), f(x, b)
    np.testing.assert_array_equal(y, want)
    for found, slope in zip(slopes, want_slopes, strict=True):
        np.testing.assert_allclose(found, slope, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("activation", [np.tanh, lambda x: np.where(x > 0, x, 0.0), lambda x: x * x, np.abs])
@pytest.mark.parametrize("size", [16, 17])
def test_other_activations_between_convolutions_and_pooling(activation, size):
    x, w = rng.normal(size=(16, 2, size, size)), rng.normal(size=(3, 2, 3, 3))
    gain = rng.normal(size=(16, 3, size, size))

    def f(x, w):
        loss = lambda x, w: np.sum(np.sin(max_pool(activation(conv(x, w, padding=1)) * gain, 2)))
        return fad.grad(loss, argnums=(0, 1))(x, w)

    for found, want in zip(native(f, x, w), f(x, w), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-11, atol=1e-12)


def test_what_is_not_finite_beside_zeros_is_nan_as_in_numpy():
    """Zero times infinity, at places that no window meets."""
    x, scale = rng.normal(size=(4, 4, 17, 17)), np.ones((4, 4, 17, 17))
    scale[..., 16, 16] = np.inf

    def f(x, scale):
        return fad.grad(lambda x: np.sum(max_pool(x * scale, 2)))(x)

    with np.errstate(all="ignore"):
        want = f(x, scale)
        np.testing.assert_allclose(compiled(f, x, scale)(x, scale), want)
    assert np.isnan(want[..., 16, 16]).all()


def test_questions_asked_of_slices_are_still_asked():
    x = rng.normal(size=(8, 3, 16, 16))

    def f(x):
        y = np.maximum(x + 1.0, 0.0)
        if np.sum(y[:, :, ::2, ::2]) > np.sum(y[:, :, 1::2, 1::2]):
            return max_pool(y, 2)
        return -max_pool(y, 2)

    g = compiled(f, x)
    for scale in (1.0, -1.0, np.linspace(0, 1, 16), np.arange(16) % 2):
        np.testing.assert_array_equal(g(x * scale), f(x * scale))
