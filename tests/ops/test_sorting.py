"""Sorting, order statistics and sets: values carry derivatives, orders are flat."""

import numpy as np
import pytest

import fad
from fad.ops.ordering.quantiles import METHODS
from fad.ops.ordering.sorting import top_k

RNG = np.random.default_rng(0)
X = RNG.permutation(15).reshape(3, 5) / 7.0


@pytest.mark.parametrize("axis", [0, 1, None])
def test_the_derivative_of_sort_is_its_permutation(axis):
    w = np.arange(15.0).reshape(np.sort(X, axis=axis).shape)
    g = fad.grad(lambda x: np.sum(np.sort(x, axis=axis) * w))(X)
    order = np.argsort(np.argsort(X, axis=axis), axis=axis) if axis is not None else np.argsort(np.argsort(X.ravel()))
    wanted = w[order].reshape(3, 5) if axis is None else np.take_along_axis(w, order, axis)
    np.testing.assert_array_equal(g, wanted)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n", [1, 2, 5, 8])
def test_quantiles_by_every_method_equal_numpys_wherever_they_fall(method, n):
    x = RNG.standard_normal((n, 3))
    q = np.concatenate([np.linspace(0, 1, 21), np.arange(n + 1) / n])
    got, _ = fad.jvp(lambda x: np.quantile(x, q, axis=0, method=method), (x,), (x,))
    np.testing.assert_allclose(got, np.quantile(x, q, axis=0, method=method), atol=1e-14)
    holes = np.where(RNG.random((n, 3)) < 0.3, np.nan, x)
    holes[0] = x[0]
    got, t = fad.jvp(lambda x: np.nanquantile(x, q, axis=0, method=method), (holes,), (np.ones_like(x),))
    np.testing.assert_allclose(got, np.nanquantile(holes, q, axis=0, method=method), atol=1e-14)
    np.testing.assert_allclose(t, 1.0)  # shifting all samples shifts every quantile


def test_weighted_quantiles_equal_numpys():
    w = np.array([[0.0, 1.0, 2.0, 0.5, 3.0]] * 3)
    q = np.linspace(0, 1, 11)
    for weights in (w, w[0]):
        f = lambda x, w=weights: np.quantile(x, q, axis=1, method="inverted_cdf", weights=w)
        y, t = fad.jvp(f, (X,), (np.ones_like(X),))
        np.testing.assert_array_equal(y, f(X))
        np.testing.assert_array_equal(t, 1.0)


def test_a_quantile_is_differentiable_in_its_level():
    x = np.sort(X.ravel())
    slope = fad.grad(lambda q: np.quantile(x, q))(0.33)
    i = int(0.33 * 14)
    np.testing.assert_allclose(slope, 14 * (x[i + 1] - x[i]))


def test_nan_in_a_row_makes_its_median_nan_as_in_numpy():
    x = X.copy()
    x[1, 2] = np.nan
    y, _ = fad.jvp(lambda x: np.median(x, axis=1), (x,), (np.ones_like(x),))
    np.testing.assert_array_equal(y, np.median(x, axis=1))
    y = fad.vmap(np.median)(x)
    np.testing.assert_array_equal(y, np.median(x, axis=1))
    g = fad.grad(lambda x: np.sum(np.nanmedian(x, axis=1)))(x)
    assert g[1, 2] == 0
    assert g.sum() == 3


def test_bad_quantiles_are_refused_with_numpys_errors():
    for bad in (
        lambda x: np.quantile(x, 1.5),
        lambda x: np.percentile(x, -1),
        lambda x: np.quantile(x, 0.5, method="no"),
    ):
        with pytest.raises(ValueError, match=r"range|not a valid method"):
            fad.grad(bad)(X)
    with pytest.raises(TypeError, match="real numbers"):
        fad.jvp(lambda x: np.quantile(x, 0.5), (X + 0j,), (X + 0j,))


def test_top_k_is_in_fad_numpy():
    values, places = fad.numpy.top_k(np.array([3.0, 1.0, 2.0]), 2)
    assert values.tolist() == [3.0, 2.0]
    assert places.tolist() == [0, 2]
    assert fad.grad(lambda x: fad.numpy.top_k(x, 2)[0][1])(np.array([3.0, 1.0, 2.0])).tolist() == [0.0, 0.0, 1.0]


def test_top_k_gives_the_first_of_equal_elements_first():
    x = np.array([[2.0, 5.0, 5.0, 1.0], [0.0, -1.0, 0.0, 0.0]])
    values, places = top_k(x, 2)
    np.testing.assert_array_equal(values, [[5, 5], [0, 0]])
    np.testing.assert_array_equal(places, [[1, 2], [0, 2]])
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(top_k(x, 1)[0]))(x), [[0, 1, 0, 0], [1, 0, 0, 0]])
    np.testing.assert_array_equal(fad.vmap(lambda row: top_k(row, 2)[1])(x), places)
    with pytest.raises(ValueError, match="k must be from 0 to 4"):
        top_k(x, 5)


def test_the_first_of_equal_elements_carries_the_derivative_of_unique():
    x = np.array([3.0, 1.0, 3.0, 2.0, 1.0])
    np.testing.assert_array_equal(
        fad.grad(lambda x: np.sum(np.unique(x) * np.array([1.0, 10, 100])))(x), [100, 1, 0, 10, 0]
    )
    y, pull = fad.vjp(lambda x: np.unique(x, return_inverse=True)[0], x)
    np.testing.assert_array_equal(y, [1, 2, 3])
    np.testing.assert_array_equal(pull(np.ones(3))[0], [1, 1, 0, 1, 0])


def test_unique_gives_places_inverse_and_counts_as_numpy_does():
    x = np.array([[3.0, 1.0, np.nan], [2.0, np.nan, 1.0]])
    for options in ({}, {"equal_nan": False}, {"axis": 1}):
        found = fad.vjp(lambda x, options=options: np.unique(x, True, True, True, **options), x)[0]
        for got, want in zip(found, np.unique(x, True, True, True, **options), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("kind", [None, "stable"])
def test_zeros_of_both_signs_are_sorted_as_numpy_sorts_them(kind):
    rng = np.random.default_rng(0)
    f = lambda x: np.sort(x, axis=0, kind=kind)
    jitted, batched = fad.jit(f), fad.vmap(f)
    for n in (3, 6, 17, 100):
        x = rng.choice([0.0, -0.0, 1.0, -1.0], n)
        for got in (fad.jvp(f, (x,), (x,))[0], fad.vjp(f, x)[0], jitted(x), batched(x[None])[0]):
            np.testing.assert_array_equal(np.signbit(got), np.signbit(f(x)))


@pytest.mark.parametrize("kth", [0, 2, 11, (3, 7)])
def test_a_partition_of_traced_values_has_the_order_of_numpys(kth):
    rng = np.random.default_rng(0)
    for x in (np.arange(40.0)[::-1], rng.normal(size=(12, 40)), rng.integers(0, 5, (40, 12)).astype(float)):
        for axis in range(x.ndim):
            f = lambda x, axis=axis: np.partition(x, kth, axis)
            wanted = f(x)
            np.testing.assert_array_equal(fad.jit(f)(x), wanted)
            np.testing.assert_array_equal(fad.vmap(f)(x[None])[0], wanted)
            y, pull = fad.vjp(f, x)
            np.testing.assert_array_equal(y, wanted)
            np.testing.assert_array_equal(pull(wanted)[0], x)


LONG_ROWS = np.random.default_rng(3).normal(size=(2, 3000))
OF_RANKS = {
    "median": np.median,
    "medians": lambda x: np.median(x, axis=1),
    "median of an odd number": lambda x: np.median(x[:, 1:].ravel()[1:]),
    "percentiles": lambda x: np.percentile(x, [0, 2.5, 50, 97.5, 100], axis=1),
    "quantile by an element": lambda x: np.quantile(x, 0.3, method="higher"),
    "quantile between": lambda x: np.quantile(x, [[0.1, 0.9]], axis=1, method="hazen", keepdims=True),
}


@pytest.mark.parametrize("name", OF_RANKS)
def test_ranks_of_long_rows_are_found_without_sorting(name):
    f = OF_RANKS[name]
    graph = fad.make_graph(fad.value_and_grad(lambda x: np.sum(f(x) ** 2)))(LONG_ROWS)
    assert {"sort_along", "argsort"}.isdisjoint([eq.prim.name for eq in graph.equations])
    holes, ties = LONG_ROWS.copy(), np.round(LONG_ROWS)
    holes[1, 7] = np.nan
    for x in (LONG_ROWS, holes, ties, LONG_ROWS.astype(np.float32), np.arange(6000).reshape(2, 3000)):
        wanted = f(x)
        for found in (fad.jit(f)(x), fad.vmap(f)(x[None])[0]):
            assert np.asarray(found).dtype == np.asarray(wanted).dtype
            np.testing.assert_array_equal(found, wanted)
    v = np.random.default_rng(4).normal(size=LONG_ROWS.shape)
    slope = fad.jvp(f, (LONG_ROWS,), (v,))[1]
    np.testing.assert_allclose(slope, (f(LONG_ROWS + 1e-8 * v) - f(LONG_ROWS - 1e-8 * v)) / 2e-8, rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(np.sum(fad.grad(lambda x: np.sum(f(x)))(LONG_ROWS) * v), np.sum(slope), rtol=1e-10)
