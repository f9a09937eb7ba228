"""Index arrays and masked slices in loop nests: one function, the values of NumPy, and its errors."""

import warnings

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import fad
from fad.compile.targets.select import using


def nest(f, *args):
    """Return f with its loops captured, compiled for such arguments; all its loops must be one function."""
    with using("llvm"), fad.config.use(loops="capture"), warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        fast = fad.jit(f)
        fast(*args)
        fast(*args)
    assert "loop is one function" in fast.explain() or "loops are one function each" in fast.explain(), fast.explain()
    assert "calls of NumPy" not in fast.explain(), fast.explain()
    return fast


def check(f, *args):
    """Compare a function and its gradient with plain NumPy, and with the gradient without jit."""
    np.testing.assert_allclose(nest(f, *args)(*args), f(*args), rtol=1e-12)
    g = fad.grad(f, argnums=tuple(range(len(args))))
    for got, wanted in zip(nest(g, *args)(*args), g(*args), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def durbin(r):
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return np.sum(y * np.cos(y))


def scattered(x, w):
    places = np.array([3, 0, 7, 7, -1, 2])
    y = x * 1.0
    for k in range(60):
        y[places] = 0.5 * y[places] + w[:6] * np.sin(y[k % 5])
        y[1:] = y[1:] + 0.01 * y[(np.arange(1, y.shape[0]) * 3) % y.shape[0]]
    return np.sum(y)


def lengthening(x, w):
    """Slices of all kinds whose lengths depend on the counter."""
    y, s = x * 1.0, 0.0
    n = x.shape[0]
    for k in range(1, n - 1):
        s = s + np.dot(y[:k], w[:k]) * 0.01
        y[k:] = y[k:] - 0.1 * w[k] * x[k:]
        y[:k] *= 0.99
        y[: n - k] += 0.01 * x[k:]
        s = s + 0.1 * np.sum(y[k:] * w[k:]) + 0.01 * y[k - 1]
    return s + np.sum(y)


@pytest.mark.parametrize("n", [5, 150])
def test_durbin_is_one_function(n):
    check(durbin, np.random.default_rng(n).random(n) * 0.05)


def test_places_that_an_array_gives_are_read_and_written():
    r = np.random.default_rng(1)
    check(scattered, r.random(20), r.random(20))


@pytest.mark.parametrize("n", [6, 45])
def test_slices_by_counters_are_one_function(n):
    r = np.random.default_rng(n)
    check(lengthening, r.random(n), r.random(n))


def test_a_place_outside_of_the_array_is_an_error():
    def far(x, places):
        y = x * 1.0
        for k in range(100):
            y = 0.5 * y + 0.1 * x[places + k]
        return np.sum(y)

    x, places = np.arange(110.0), np.arange(110) // 12
    fast = nest(far, x, places)
    np.testing.assert_allclose(fast(x, places), far(x, places), rtol=1e-12)
    with pytest.raises(IndexError):
        fast(x, places + 3)
