"""Sorting is native, alone and in loops, by NumPy's own functions: equal elements are where NumPy puts them."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from natively import compiled, native

import fad
from fad.compile.machine import numpy_sorts

KINDS = [None, "stable", "heapsort", "mergesort"]
SHAPES = [(1,), (7,), (700,), (3, 40), (5, 4, 6), (1, 9), (9, 1)]


def draw(shape, dtype):
    """Return numbers with many equal ones; of floating-point ones with zeros of both signs and some that are none."""
    rng = np.random.default_rng(len(shape))
    x = rng.integers(-4, 5, shape).astype(dtype)
    if x.dtype.kind == "f":
        x = x * rng.choice([1.0, -1.0], shape).astype(dtype)
        x[rng.random(shape) < 0.05] = np.nan
        x[rng.random(shape) < 0.05] = -np.inf
    return x


def is_same(a, b):
    return a.dtype == b.dtype and a.shape == b.shape and a.tobytes() == b.tobytes()


@pytest.mark.parametrize("dtype", [float, np.float32, np.int64, np.int32])
@pytest.mark.parametrize("kind", KINDS)
def test_sorted_elements_and_orders_are_numpys_bit_for_bit(dtype, kind):
    for shape in SHAPES:
        x = draw(shape, dtype)
        for axis in {0, len(shape) - 1, None}:
            def program(x, axis=axis):
                order = np.argsort(x[::-1] + 1, axis, kind)
                return np.sort(x, axis, kind), order, np.take_along_axis(x, np.argsort(x, -1, kind), -1)

            for got, wanted in zip(native(program, x), program(x), strict=True):
                assert is_same(got, wanted), (shape, axis)


def smoothed(x):
    """A median filter, a trimmed mean and ranks, in the steps of a loop."""
    y = x.copy()
    for k in range(2, len(x) - 2):
        y[k] = np.median(y[k - 2 : k + 3]) + 0.1 * np.sort(x)[2:-2].mean() + 0.01 * np.argsort(y)[k]
    return y


def along_columns(x):
    total = np.zeros((4, 5))
    for k in range(40):
        total = 0.5 * np.sort(total + x[:20].reshape(4, 5) * k, axis=0) + np.sort(total, axis=1)[:, ::-1]
    return total.ravel()


def of_rows(x):
    z = x[:20].reshape(4, 5)
    for _ in range(40):
        order = np.argsort(z[:, 0])
        z = z[order] * 0.9 + np.take_along_axis(z, np.argsort(-z, axis=1), axis=1) * 0.2
    return z.ravel()


@pytest.mark.parametrize("f", [smoothed, along_columns, of_rows], ids=lambda f: f.__name__)
def test_a_loop_that_sorts_is_one_function_with_the_values_and_gradient_of_python(f):
    x = np.random.default_rng(3).normal(size=30)
    g = fad.grad(lambda x: np.sum(np.sin(f(x))))
    with fad.config.use(loops="capture"):
        np.testing.assert_allclose(native(f, x), f(x), rtol=1e-13)
        np.testing.assert_allclose(native(g, x), g(x), rtol=1e-10, atol=1e-12)
        assert "one function each" in compiled(g, x).explain()


def test_an_order_that_only_sorts_is_not_found():
    x = np.random.default_rng(0).normal(size=50)
    for signature in compiled(np.sort, x)._signatures.values():
        graph, _ = signature.paths[0].program.steps()
        assert [eq.prim.name for eq in graph.equations] == ["sorted_rows"]


def test_without_numpys_functions_numpy_is_called(monkeypatch):
    monkeypatch.setattr(numpy_sorts, "_is_right", lambda *_: False)
    numpy_sorts.find_sorts.cache_clear()
    x = draw((3, 40), float)
    try:
        fast = compiled(lambda x: np.sort(x, axis=0), x)
        assert "calls of NumPy" in fast.explain()
        assert is_same(fast(x), np.sort(x, axis=0))
    finally:
        numpy_sorts.find_sorts.cache_clear()
