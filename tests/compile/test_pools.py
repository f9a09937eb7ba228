"""Pooling in native programs: maxima of slices, and their derivatives, as NumPy computes them."""

import numpy as np
import pytest

import fad
from fad.compile.lowering import using
from fad.ops.pooling import max_pool

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 3, 8, 8), {"window": 2}), ((2, 3, 9, 7), {"window": (3, 2)}), ((4, 11), {"window": (3,), "stride": 2}),
        ((1, 2, 9, 9), {"window": 2, "stride": 3}), ((2, 6, 6), {"window": (1, 1)}),
        ((2, 2, 7, 7), {"window": 3, "padding": 1}), ((1, 1, 12), {"window": (2,), "dilation": 3}),
    ],
)  # fmt: skip
def test_pooling_and_its_gradient_equal_numpys(shape, options, dtype):
    x = rng.integers(-4, 5, shape).astype(dtype)  # with ties

    def both(x):
        return fad.value_and_grad(lambda x: np.sum(np.sin(max_pool(x, **options)) * 1.5))(x)

    with using("llvm"):
        f = fad.jit(both)
        f(x)
        value, slope = f(x)
    want, want_slope = both(x)
    np.testing.assert_allclose(value, want, rtol=1e-5)
    np.testing.assert_allclose(slope, want_slope, rtol=1e-5, atol=1e-6)
    assert slope.dtype == dtype


def test_plain_windows_are_no_call_of_numpy_and_keep_nan():
    x = rng.normal(size=(2, 3, 8, 8))
    x[0, 0, 0, 0] = np.nan
    with using("llvm"):
        f = fad.jit(lambda x: max_pool(x, 2))
        f(x)
        np.testing.assert_array_equal(f(x), max_pool(x, 2))
    assert "calls of NumPy" not in f.explain()
