"""Pooling in native programs: maxima of slices, and their derivatives, as NumPy computes them."""

import numpy as np
import pytest
from natively import native

import fad
from fad.compile.targets.select import using
from fad.ops.products.pooling import avg_pool, max_pool

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
    within = {"rtol": 1e-12, "atol": 1e-13} if dtype is np.float64 else {"rtol": 1e-5, "atol": 1e-6}
    np.testing.assert_allclose(value, want, **within)
    np.testing.assert_allclose(slope, want_slope, **within)
    assert slope.dtype == dtype


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("pool", [max_pool, avg_pool])
@pytest.mark.parametrize(
    ("shape", "options"),
    [
        ((2, 3, 8, 8), {"window": 2}), ((2, 3, 9, 7), {"window": (3, 2)}), ((4, 11), {"window": (3,), "stride": 2}),
        ((1, 2, 9, 9), {"window": 2, "stride": 3}), ((2, 6, 6), {"window": (1, 1)}),
        ((2, 2, 7, 7), {"window": 3, "padding": 1}), ((1, 2, 3, 3), {"window": (3, 3)}),
        ((2, 2, 9, 8), {"window": 3, "stride": 2, "padding": 1}), ((1, 2, 4, 4, 5), {"window": 2, "stride": 1}),
    ],
)  # fmt: skip
def test_pooling_runs_natively_with_its_first_and_second_derivatives(shape, options, pool, dtype):
    x, t = rng.integers(-4, 5, shape).astype(dtype), rng.normal(size=shape).astype(dtype)  # with ties
    loss = lambda x: np.sum(np.sin(pool(x, **options)) * 1.5)

    def f(x, t):
        return fad.grad(loss)(x), fad.jvp(fad.grad(loss), (x,), (t,))[1]

    within = {"rtol": 1e-12, "atol": 1e-12} if dtype is np.float64 else {"rtol": 1e-4, "atol": 1e-5}
    for found, want in zip(native(f, x, t), f(x, t), strict=True):
        assert found.dtype == dtype
        np.testing.assert_allclose(found, want, **within)


def test_a_mean_of_all_there_is_runs_natively_however_large_it_is():
    x = rng.normal(size=(3, 2, 7, 8))
    f = lambda x: fad.value_and_grad(lambda x: np.sum(avg_pool(x, (7, 8)) ** 2))(x)
    for found, want in zip(native(f, x), f(x), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-12)


def test_plain_windows_are_no_call_of_numpy_and_keep_nan():
    x = rng.normal(size=(2, 3, 8, 8))
    x[0, 0, 0, 0] = np.nan
    with using("llvm"):
        f = fad.jit(lambda x: max_pool(x, 2))
        f(x)
        np.testing.assert_array_equal(f(x), max_pool(x, 2))
    assert "calls of NumPy" not in f.explain()


@pytest.mark.parametrize("axis", [(0, 2, 3), (0, 2), (1, 3), (0, 1, 3), (0, 2, 4)])
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_over_axes_apart_run_natively(axis, keepdims):
    x = rng.normal(size=(3, 4, 5, 6, 2))
    with using("llvm"):
        f = fad.jit(lambda x: np.sum(np.abs(x), axis=axis, keepdims=keepdims))
        f(x)
        np.testing.assert_allclose(f(x), np.sum(np.abs(x), axis=axis, keepdims=keepdims), rtol=1e-13)
    assert "calls of NumPy" not in f.explain()


@pytest.mark.parametrize("axis", [(0, 1), (1, 2), (1, 2, 3), (0, 1, 2), None, (2, 3)])
@pytest.mark.parametrize("reduce", [np.sum, np.max, np.min])
def test_sums_over_axes_along_which_operands_do_not_run_as_one_run_natively(axis, reduce):
    x, rows, columns = rng.normal(size=(3, 4, 5, 6)), rng.normal(size=(4, 1, 1)), rng.normal(size=6)

    def f(x, rows, columns):
        y = np.tanh(x[:, :, ::2] * columns + rows)
        return reduce(y, axis=axis), y, np.sum(y > 0, axis=axis)

    with using("llvm"):
        g = fad.jit(f)
        g(x, rows, columns)
        for found, want in zip(g(x, rows, columns), f(x, rows, columns), strict=True):
            np.testing.assert_allclose(found, want, rtol=1e-13, atol=1e-14)
    assert "calls of NumPy" not in g.explain(), g.explain()


@pytest.mark.parametrize("dtype", [np.float64, np.float32, bool, np.int64])
def test_a_reshape_that_must_copy_runs_natively(dtype):
    x = (rng.normal(size=(3, 40, 20)) * 9).astype(dtype)
    with using("llvm"):
        for g in (
            lambda x: x.transpose(0, 2, 1).reshape(60, 40),
            lambda x: x[:, ::2].reshape(-1),
            lambda x: x[:, ::-1].reshape(3, 4, 200),
        ):
            f = fad.jit(g)
            f(x)
            np.testing.assert_array_equal(f(x), g(x))
            assert "calls of NumPy" not in f.explain()


def test_a_transposed_matrix_that_many_products_read_is_turned_once():
    w = rng.normal(size=(9, 9))

    def powers(w, x):
        for _ in range(6):
            x = np.tanh(x @ w.T)
        return x

    x = rng.normal(size=(4, 9))
    with using("llvm"):
        f = fad.jit(powers)
        f(w, x)
        np.testing.assert_allclose(f(w, x), powers(w, x), rtol=1e-12)
    (signature,) = f._signatures.values()
    names = {name for name, _ in signature.paths[0].program.keep.table.rows}
    assert not any("gather" in name for name in names)
