"""Regression, correlations, tests of means, robust statistics, density estimates: SciPy's numbers, and derivatives."""

from __future__ import annotations

import warnings

import numpy as np
import pytest

import fad
from fad import tree
from fad.errors import DerivativeError, MissingRuleError
from fad.testing import check_grads

stats = pytest.importorskip("scipy.stats")

from fad.scipy import stats as ours  # noqa: E402

rng = np.random.default_rng(3)
X, Y, Z = rng.normal(size=9), rng.normal(size=9), rng.normal(size=(4, 9))
Y = Y + 0.7 * X


def numbers(result):
    return [np.asarray(v, float) for v in tree.leaves(result)]


CALLS = {
    "linregress": lambda m, x: m.linregress(x, Y),
    "linregress, less": lambda m, x: m.linregress(x, Y, alternative="less"),
    "linregress, greater": lambda m, x: m.linregress(Y, x, "greater"),
    "linregress of two points": lambda m, x: m.linregress(x[:2], Y[:2]),
    "linregress of equal y": lambda m, x: m.linregress(x, 0 * Y),
    "linregress of equal y of two points": lambda m, x: m.linregress(x[:2], np.ones(2)),
    "pearsonr": lambda m, x: m.pearsonr(x, Y),
    "pearsonr, less": lambda m, x: m.pearsonr(x, Y, alternative="less"),
    "pearsonr, greater": lambda m, x: m.pearsonr(x, Y, alternative="greater"),
    "pearsonr along an axis": lambda m, x: m.pearsonr(Z, x, axis=-1),
    "pearsonr of all": lambda m, x: m.pearsonr(Z[:3, :3], x.reshape(3, 3), axis=None),
    "pearsonr of two pairs": lambda m, x: m.pearsonr(x[:2], Y[:2]),
    "pearsonr of large numbers": lambda m, x: m.pearsonr(1e200 * x, Y),
    "interval of pearsonr": lambda m, x: m.pearsonr(x, Y).confidence_interval(0.9),
    "interval of pearsonr, less": lambda m, x: m.pearsonr(x, Y, alternative="less").confidence_interval(),
    "interval of pearsonr, greater": lambda m, x: m.pearsonr(x, Y, alternative="greater").confidence_interval(),
    "interval of three pairs": lambda m, x: m.pearsonr(x[:3], Y[:3]).confidence_interval(),
    "spearmanr": lambda m, x: m.spearmanr(x, Y),
    "spearmanr of columns": lambda m, x: m.spearmanr(Z * x, axis=1, alternative="less"),
    "spearmanr of all": lambda m, x: m.spearmanr(Z[:3, :3], x.reshape(3, 3), axis=None),
    "rankdata": lambda m, x: m.rankdata(np.round(x, 0)),
    "rankdata, dense": lambda m, x: m.rankdata(np.round(x, 0), "dense"),
    "rankdata, min": lambda m, x: m.rankdata(np.round(x, 0), "min"),
    "rankdata, max": lambda m, x: m.rankdata(np.round(Z * x, 0), "max", axis=1),
    "rankdata, ordinal": lambda m, x: m.rankdata(np.round(Z * x, 0), "ordinal", axis=0),
    "rankdata with a NaN": lambda m, x: m.rankdata(np.where(x > 1.0, np.nan, x)),
    "ttest_1samp": lambda m, x: m.ttest_1samp(x, 0.3),
    "ttest_1samp, less": lambda m, x: m.ttest_1samp(Z * x, x[:4, None], axis=1, alternative="less"),
    "ttest_1samp, greater": lambda m, x: m.ttest_1samp(Z * x, x, alternative="greater"),
    "ttest_1samp of all": lambda m, x: m.ttest_1samp(Z * x, 0.1, axis=None, keepdims=True),
    "ttest_1samp with an axis of means": lambda m, x: m.ttest_1samp(Z * x, x[None], axis=0),
    "ttest_rel": lambda m, x: m.ttest_rel(x, Y),
    "ttest_rel along an axis": lambda m, x: m.ttest_rel(Z * x, Z + 0.2, axis=1, alternative="less"),
    "ttest_ind": lambda m, x: m.ttest_ind(x, Y[:6]),
    "ttest_ind, Welch's": lambda m, x: m.ttest_ind(x, Y[:6], equal_var=False, alternative="greater"),
    "ttest_ind, Yuen's": lambda m, x: m.ttest_ind(x, Y[:6], equal_var=False, trim=0.2),
    "ttest_ind along an axis": lambda m, x: m.ttest_ind(Z * x, Z[:, :5], axis=1, keepdims=True),
    "ttest_ind of all": lambda m, x: m.ttest_ind(Z * x, Z[:, :5], axis=None),
    "ttest_ind with one element": lambda m, x: m.ttest_ind(x, Y[:1]),
    "interval of ttest_ind": lambda m, x: m.ttest_ind(x, Y[:6]).confidence_interval(0.9),
    "interval of ttest_ind, Welch's": lambda m, x: m.ttest_ind(x, Y[:6], equal_var=False).confidence_interval(0.9),
    "interval of ttest_1samp": lambda m, x: m.ttest_1samp(x, 0.3, alternative="less").confidence_interval(),
    "interval of ttest_rel": lambda m, x: m.ttest_rel(Z, Z * x, alternative="greater").confidence_interval(),
    "median_abs_deviation": lambda m, x: m.median_abs_deviation(x),
    "median_abs_deviation of rows": lambda m, x: m.median_abs_deviation(Z * x, axis=1, scale="normal", keepdims=True),
    "median_abs_deviation from the mean": lambda m, x: m.median_abs_deviation(Z * x, axis=None, center=np.mean),
    "iqr": lambda m, x: m.iqr(x),
    "iqr of rows": lambda m, x: m.iqr(Z * x, axis=1, rng=(90, 20), scale="normal", keepdims=True),
    "iqr of all": lambda m, x: m.iqr(Z * x, scale=2.0, interpolation="midpoint"),
    "trim_mean": lambda m, x: m.trim_mean(x, 0.2),
    "trim_mean of rows": lambda m, x: m.trim_mean(Z * x, 0.3, axis=1, keepdims=True),
    "trim_mean of all": lambda m, x: m.trim_mean(Z * x, 0.1, axis=None),
    "describe": lambda m, x: m.describe(x),
    "describe of rows": lambda m, x: m.describe(Z * x, axis=1, ddof=0, bias=False),
    "describe of all": lambda m, x: m.describe(Z * x, axis=None),
    "gstd": lambda m, x: m.gstd(np.exp(x)),
    "gzscore": lambda m, x: m.gzscore(np.exp(Z * x), axis=1),
}


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_values_dtypes_and_fields_are_scipys(name):
    f = CALLS[name]
    got, wanted = fad.vjp(lambda x: f(ours, x), X)[0], f(stats, X)
    assert type(got).__name__ == type(wanted).__name__
    found, expected = tree.leaves(got), tree.leaves(wanted)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)
        assert np.result_type(a) == np.result_type(b)
        assert np.shape(a) == np.shape(b)


@pytest.mark.parametrize("name", CALLS)
@pytest.mark.filterwarnings("ignore")
def test_under_jit_and_vmap_the_values_are_scipys(name):
    f = CALLS[name]
    run = fad.jit(lambda x: f(ours, x))
    for x in (X, X[::-1] + 0.1, 2.0 * X):
        for a, b in zip(numbers(run(x)), numbers(f(stats, x)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-13)
    batch = np.stack([X, X[::-1]])
    for a, b, c in zip(
        *map(numbers, (fad.vmap(lambda x: f(ours, x))(batch), f(stats, X), f(stats, X[::-1]))), strict=True
    ):
        np.testing.assert_allclose(a if a.shape == b.shape else a[0], b, rtol=1e-10, atol=1e-13)
        np.testing.assert_allclose(a if a.shape == b.shape else a[1], c, rtol=1e-10, atol=1e-13)


FLAT = ("spearmanr", "rankdata", "two pairs", "three pairs", "equal y", "large numbers", "two points")


@pytest.mark.parametrize("name", [n for n in CALLS if not any(word in n for word in FLAT)])
def test_derivatives_to_second_order_are_those_of_the_values(name):
    f = CALLS[name]
    values = tree.leaves(f(stats, X))
    places = [k for k, v in enumerate(values) if np.result_type(v).kind == "f" and np.isfinite(v).all()]
    order = 1 if "of rows" in name else 2  # near a tie in a row there is a kink
    check_grads(lambda x: [tree.leaves(f(ours, x))[k] for k in places], (X,), order=order)


def test_the_line_through_points_has_the_derivatives_of_the_normal_equations():
    a = np.stack([X, np.ones_like(X)], axis=1)
    for k, name in enumerate(("slope", "intercept")):
        gradient = fad.grad(lambda y, name=name: getattr(stats.linregress(X, y), name))(Y)
        np.testing.assert_allclose(gradient, np.linalg.pinv(a)[k], atol=1e-12)


def test_the_tuple_of_a_regression_unpacks_as_scipys():
    def slope_over_error(x):
        slope, _, _, _, error = stats.linregress(x, Y)
        return slope / error

    step = (slope_over_error(X + 1e-6 * Y) - slope_over_error(X - 1e-6 * Y)) / 2e-6
    assert fad.grad(slope_over_error)(X) @ Y == pytest.approx(step, rel=1e-6)


def test_points_on_a_line_have_standard_errors_zero_with_the_derivative_zero():
    x = np.arange(4.0)
    for name in ("stderr", "intercept_stderr", "rvalue"):
        np.testing.assert_allclose(fad.grad(lambda y, n=name: getattr(ours.linregress(x, y), n))(x), 0.0, atol=1e-12)


def test_a_plain_result_may_be_that_of_a_transformed_function():
    f = lambda x: (x * 2, stats.ttest_ind(X, Y), stats.linregress(X, Y), stats.pearsonr(X, Y), stats.spearmanr(X, Y))
    _, *found = fad.jit(f)(1.0)
    assert [r.pvalue for r in found] == [r.pvalue for r in f(1.0)[1:]]


@pytest.mark.filterwarnings("ignore")
def test_samples_without_elements_give_nan_as_in_scipy():
    empty = np.zeros((3, 0))
    for f in (
        lambda m, x: m.iqr(x, axis=1),
        lambda m, x: m.iqr(x, keepdims=True),
        lambda m, x: m.median_abs_deviation(x, axis=1),
        lambda m, x: m.trim_mean(x, 0.1, axis=1),
        lambda m, x: m.ttest_ind(x[0], X),
        lambda m, x: m.ttest_ind(X, x[0], equal_var=False),
        lambda m, x: m.ttest_1samp(x[0], 0.1),
    ):
        found, wanted = fad.vjp(lambda x, f=f: f(ours, x), empty)[0], f(stats, empty)
        for a, b in zip(numbers(found), numbers(wanted), strict=True):
            np.testing.assert_array_equal(a, b)


def test_a_constant_sample_has_no_correlation_and_warns_as_scipy():
    with pytest.warns(stats.ConstantInputWarning, match="constant"):
        value, slope = fad.value_and_grad(lambda y: ours.pearsonr(np.ones(9), y).statistic)(Y)
    assert np.isnan(value)
    assert np.isnan(slope).all()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(
    "name", [n for n in CALLS if "zscore" not in n and "gstd" not in n and not n.startswith(("interval", "linregress"))]
)
def test_a_nan_in_a_sample_is_one_in_the_result_where_scipy_has_one(name):
    x = np.where(np.arange(9) == 3, np.nan, X)
    found, wanted = CALLS[name](ours, x), CALLS[name](stats, x)
    traced = fad.vjp(lambda x: CALLS[name](ours, x), x)[0]
    for a, b, c in zip(numbers(found), numbers(wanted), numbers(traced), strict=True):
        np.testing.assert_array_equal(np.isnan(a), np.isnan(b))
        np.testing.assert_array_equal(np.isnan(c), np.isnan(b))


def test_what_draws_or_leaves_out_is_refused():
    with pytest.raises(NotImplementedError, match="method=None"):
        fad.grad(lambda x: ours.pearsonr(x, Y, method=stats.PermutationMethod()).statistic)(X)
    with pytest.raises(NotImplementedError, match="method=None"):
        fad.grad(lambda x: ours.ttest_ind(x, Y, method=stats.PermutationMethod()).statistic)(X)
    for f in (ours.iqr, ours.median_abs_deviation, lambda x, nan_policy: ours.ttest_rel(x, Y, 0, nan_policy).statistic):
        with pytest.raises(MissingRuleError, match="nan_policy"):
            fad.grad(lambda x, f=f: f(x, nan_policy="omit"))(X)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: ours.linregress(x[:0], Y[:0]).slope,
        lambda x: ours.linregress(0 * x, Y).slope,
        lambda x: ours.pearsonr(x, Y[:4]).statistic,
        lambda x: ours.pearsonr(x[:1], Y[:1]).statistic,
        lambda x: ours.ttest_ind(x, Y, trim=0.5).statistic,
        lambda x: ours.ttest_1samp(x, 0.0, alternative="more").statistic,
        lambda x: ours.ttest_rel(x, Y[:4]).statistic,
        lambda x: ours.iqr(x, rng=(0, 101)),
        lambda x: ours.iqr(x, scale="raw"),
        lambda x: ours.median_abs_deviation(x, scale="raw"),
        lambda x: ours.trim_mean(x, 0.7),
        lambda x: ours.describe(x[:0]).mean,
        lambda x: ours.gaussian_kde(x[:1])(0.0)[0],
        lambda x: ours.gaussian_kde(x, weights=X[:3])(0.0)[0],
        lambda x: ours.gaussian_kde(x, "wide")(0.0)[0],
        lambda x: ours.gaussian_kde(x.reshape(9, 1))(0.0)[0],
        lambda x: ours.gaussian_kde(x)(np.ones((3, 3)))[0],
    ],
)
def test_what_scipy_refuses_with_a_value_error_is_one_of_traced_values_too(f):
    with pytest.raises(ValueError):
        fad.grad(f)(X)


WEIGHTS = np.linspace(0.5, 2.0, 9)
POINTS = np.array([-8.0, -0.3, 0.4, 30.0])
KDES = {
    "plain": lambda m, x: m.gaussian_kde(x),
    "weighted": lambda m, x: m.gaussian_kde(x, weights=WEIGHTS),
    "silverman": lambda m, x: m.gaussian_kde(x, "silverman"),
    "narrow": lambda m, x: m.gaussian_kde(x, 0.3, WEIGHTS),
    "by a function": lambda m, x: m.gaussian_kde(x, lambda kde: 0.5 * kde.neff**-0.2),
}


@pytest.mark.parametrize("name", KDES)
def test_a_density_estimate_and_its_integrals_are_scipys(name):
    uses = {
        "evaluate": lambda k: k(POINTS),
        "pdf": lambda k: k.pdf(0.2),
        "logpdf": lambda k: k.logpdf(POINTS),
        "box": lambda k: k.integrate_box_1d(-0.3, np.inf),
        "gaussian": lambda k: k.integrate_gaussian(0.2, 0.7),
        "kde": lambda k: k.integrate_kde(k),
        "marginal": lambda k: k.marginal(0)(POINTS),
        "attributes": lambda k: [
            k.covariance, k.inv_cov, k.factor, k.neff, k.weights, k.dataset, k.cho_cov, k.log_det,
            k.scotts_factor(), k.silverman_factor(),
        ],
    }  # fmt: skip
    for use, f in uses.items():
        got = fad.vjp(lambda x, f=f: f(KDES[name](ours, x)), X)[0]
        for a, b in zip(tree.leaves(got), tree.leaves(f(KDES[name](stats, X))), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-11, err_msg=use)
            assert np.shape(a) == np.shape(b), use
        if use != "attributes":
            check_grads(lambda x, f=f: f(KDES[name](ours, x)), (X,), order=2)
            run = fad.jit(lambda x, f=f: f(KDES[name](ours, x)))
            for x in (X, 2 * X):
                np.testing.assert_allclose(run(x), f(KDES[name](stats, x)), rtol=1e-11)


def test_a_density_estimate_of_several_dimensions_is_scipys():
    data = rng.normal(size=(2, 12))
    points = rng.normal(size=(2, 5))
    uses = (
        lambda m, d: m.gaussian_kde(d)(points),
        lambda m, d: m.gaussian_kde(d).logpdf(points[:, 0]),
        lambda m, d: m.gaussian_kde(d).integrate_gaussian(points[:, 1], np.eye(2)),
        lambda m, d: m.gaussian_kde(d).integrate_kde(m.gaussian_kde(d[:, :7])),
        lambda m, d: m.gaussian_kde(d).marginal([1])(points[:1]),
    )
    for f in uses:
        np.testing.assert_allclose(fad.vjp(lambda d, f=f: f(ours, d), data)[0], f(stats, data), rtol=1e-11)
        check_grads(lambda d, f=f: f(ours, d), (data,), order=1)
        np.testing.assert_allclose(fad.vmap(lambda d, f=f: f(ours, d))(data[None])[0], f(stats, data), rtol=1e-11)


def test_the_bandwidth_weights_and_points_of_a_density_estimate_have_derivatives():
    def density(h, w, p):
        return stats.gaussian_kde(X, h, w).logpdf(p)

    check_grads(density, (0.5, WEIGHTS, POINTS[1:3]), order=2)
    kde = fad.jit(lambda x: stats.gaussian_kde(x))(X)  # a tree: a result, and an argument
    np.testing.assert_allclose(fad.jit(lambda k, p: k(p))(kde, POINTS), stats.gaussian_kde(X)(POINTS), rtol=1e-12)
    kde.set_bandwidth(0.4)
    np.testing.assert_allclose(kde(POINTS), stats.gaussian_kde(X, 0.4)(POINTS), rtol=1e-12)


def test_the_factor_of_the_bandwidth_may_be_put_in_by_hand_or_by_a_class():
    def by_hand(x):
        kde = stats.gaussian_kde(x)
        kde.covariance_factor = lambda: 0.25
        kde._compute_covariance()
        return kde(0.1)[0]

    class Narrow(ours.gaussian_kde):
        def covariance_factor(self):
            return 0.25

    wanted = fad.grad(lambda x: stats.gaussian_kde(x, 0.25)(0.1)[0])(X)
    np.testing.assert_allclose(fad.grad(by_hand)(X), wanted)
    np.testing.assert_allclose(fad.grad(lambda x: Narrow(x)(0.1)[0])(X), wanted)
    assert fad.jit(Narrow)(X)(0.1) == pytest.approx(Narrow(X)(0.1))


def test_a_density_estimate_draws_as_scipys_and_refuses_draws_of_traced_data():
    np.testing.assert_array_equal(ours.gaussian_kde(X).resample(5, 1), stats.gaussian_kde(X).resample(5, 1))
    wanted = stats.gaussian_kde(X).integrate_box(-1.0, 1.0)
    assert ours.gaussian_kde(X).integrate_box(-1.0, 1.0) == pytest.approx(wanted)
    with pytest.raises(DerivativeError, match="cho_cov @ z"):
        fad.grad(lambda x: np.sum(ours.gaussian_kde(x).resample(5, 1)))(X)
    with pytest.raises(NotImplementedError, match="integrate_box_1d"):
        fad.grad(lambda x: ours.gaussian_kde(x).integrate_box(-1.0, 1.0))(X)


def test_programs_with_scipys_own_names_run():
    def loss(x):
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            result = stats.ttest_ind(x, Y)
            return result.statistic * stats.iqr(x) + stats.gaussian_kde(x)(0.1)[0] + stats.pearsonr(x, Y)[0]

    step = (loss(X + 1e-6 * Y) - loss(X - 1e-6 * Y)) / 2e-6
    assert fad.grad(loss)(X) @ Y == pytest.approx(step, rel=1e-6)
    assert fad.jit(loss)(X) == pytest.approx(loss(X), rel=1e-12)
