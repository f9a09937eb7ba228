"""Distributions: SciPy's values and signatures, and derivatives in every parameter."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError

stats = pytest.importorskip("scipy.stats")

from fad.scipy import stats as ours  # noqa: E402

SHAPES = {
    "norm": (), "t": (3.3,), "laplace": (), "logistic": (), "cauchy": (), "gumbel_r": (), "gumbel_l": (), "expon": (),
    "gamma": (1.7,), "invgamma": (1.7,), "chi2": (3.3,), "f": (3.0, 4.5), "lognorm": (0.8,), "weibull_min": (1.7,),
    "rayleigh": (), "halfnorm": (), "pareto": (1.7,), "uniform": (), "beta": (1.3, 2.2),
    "triang": (0.3,), "loguniform": (0.2, 2.2), "reciprocal": (0.2, 2.2), "invgauss": (1.3,), "genextreme": (0.2,),
    "genpareto": (-0.1,), "gengamma": (1.7, 1.3), "truncnorm": (-1.2, 2.1), "skewnorm": (1.3,), "erlang": (2.0,),
    "exponnorm": (0.8,), "loglaplace": (1.7,), "maxwell": (), "powerlaw": (1.7,), "weibull_max": (1.7,),
    "gompertz": (0.2,), "lomax": (1.7,), "burr": (1.7, 2.2), "burr12": (1.7, 2.2), "fisk": (1.7,), "halfcauchy": (),
    "chi": (3.3,), "invweibull": (1.7,), "nakagami": (1.7,), "johnsonsu": (0.4, 1.3),
}  # fmt: skip
RARE_SHAPES = [
    ("genextreme", -0.3), ("genextreme", 0.0), ("genextreme", 1e-4), ("genpareto", 0.0), ("genpareto", 0.4),
    ("genpareto", 1e-9), ("gengamma", 1.7, -1.2), ("truncnorm", 1.5, 4.0), ("truncnorm", -5.0, -1.0),
    ("truncnorm", -np.inf, 1.0), ("truncnorm", 0.0, np.inf), ("triang", 0.0), ("triang", 1.0), ("skewnorm", -2.0),
    ("loguniform", 3.0, 2.0), ("triang", 1.2), ("johnsonsu", -1.0, 0.5),
]  # fmt: skip
COUNTS = {"poisson": (2.3,), "binom": (6, 0.3), "bernoulli": (0.3,), "nbinom": (2.5, 0.3), "geom": (0.3,)}
METHODS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf")


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("method", METHODS)
def test_continuous_values_are_scipys_inside_and_outside_the_support(name, method):
    x = np.array([-3.0, 0.17, 0.6, 0.95, 1.45, 2.5, 9.0])
    arguments = (*SHAPES[name], 0.1, 1.3)
    with np.errstate(divide="ignore"):
        found = getattr(getattr(ours, name), method)(x, *arguments)
        wanted = getattr(getattr(stats, name), method)(x, *arguments)
    np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-16)  # a logarithm near 0 is rounded from near 1


@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("method", ["ppf", "isf"])
def test_quantiles_are_scipys_ends_and_nonsense_included(name, method):
    q = np.array([-0.1, 0.0, 0.01, 0.4, 0.9, 1.0, 1.1])
    arguments = (*SHAPES[name], 0.1, 1.3)
    found = getattr(getattr(ours, name), method)(q, *arguments)
    np.testing.assert_allclose(found, getattr(getattr(stats, name), method)(q, *arguments), rtol=1e-10)


@pytest.mark.parametrize("case", RARE_SHAPES, ids=str)
def test_other_signs_ends_and_limits_of_the_shapes_are_scipys(case):
    (name, *shapes), x, q = case, np.array([-3.0, 0.17, 0.6, 0.95, 1.3, 2.5, 9.0]), np.array([0.0, 0.01, 0.4, 0.9, 1.0])
    for method in (*METHODS, "ppf", "isf"):
        with np.errstate(all="ignore"):
            at = q if method in ("ppf", "isf") else x
            found = getattr(getattr(ours, name), method)(at, *shapes, 0.1, 1.3)
            wanted = getattr(getattr(stats, name), method)(at, *shapes, 0.1, 1.3)
        np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-15, err_msg=method)


def test_at_a_shape_that_is_a_limit_the_derivative_in_it_is_the_limit_of_those_beside_it():
    for name in ("genextreme", "genpareto"):
        for method in ("logpdf", "cdf", "logsf"):
            own, theirs = (getattr(getattr(where, name), method) for where in (ours, stats))
            slope = fad.grad(lambda c, f=own: f(0.7, c))
            assert slope(0.0) == pytest.approx(0.5 * (slope(1e-5) + slope(-1e-5)), rel=1e-8)
            assert slope(0.0143) == pytest.approx(0.5 * (slope(0.0142) + slope(0.0144)), rel=1e-7)
            step = theirs(0.7, 1e-4) - theirs(0.7, -1e-4)
            assert slope(0.0) == pytest.approx(step / 2e-4, rel=1e-5)


@pytest.mark.parametrize("name", SHAPES)
def test_far_in_the_tails_probabilities_have_derivatives_that_are_numbers(name):
    shapes = SHAPES[name]
    for x in (-900.0, -40.0, 40.0, 900.0):
        for method in ("pdf", "cdf", "sf"):
            with np.errstate(all="ignore"):
                slopes = fad.grad(getattr(getattr(ours, name), method), tuple(range(3 + len(shapes))))(
                    x, *shapes, 0.0, 1.0
                )
            assert np.isfinite(slopes).all(), (method, x, slopes)


def test_an_end_of_the_support_that_is_a_shape_moves_with_it():
    assert fad.grad(lambda a: ours.truncnorm.ppf(0.0, a, 2.0))(-1.0) == 1.0
    assert fad.grad(lambda b: ours.loguniform.isf(0.0, 0.5, b))(2.0) == 1.0


def test_far_in_the_tails_logarithms_of_truncated_normal_probabilities_are_scipys():
    x = np.array([9.0, 9.5, 11.5, 11.99])
    for method in ("logpdf", "logcdf", "logsf"):
        found = getattr(ours.truncnorm, method)(x, 8.0, 12.0)
        np.testing.assert_allclose(found, getattr(stats.truncnorm, method)(x, 8.0, 12.0), rtol=1e-9)


@pytest.mark.parametrize("name", COUNTS)
@pytest.mark.parametrize("method", ["logpmf", "pmf", "cdf", "sf"])
def test_discrete_values_are_scipys(name, method):
    k = np.array([-1, 0, 1, 2, 5, 6, 7])
    for shift in (0, 1):
        found = getattr(getattr(ours, name), method)(k, *COUNTS[name], shift)
        wanted = getattr(getattr(stats, name), method)(k, *COUNTS[name], shift)
        np.testing.assert_allclose(found, wanted, rtol=1e-11, atol=1e-15)


@pytest.mark.parametrize(("name", "method"), [*itertools.product(SHAPES, ("logpdf", "cdf")), ("vonmises", "logpdf")])
def test_single_precision_is_computed_in_double_as_by_scipy_and_its_gradient_is_single(name, method):
    x, scale = np.array([0.17, 0.6, 0.95], np.float32), np.float32(1.3)
    arguments = (*map(np.float32, SHAPES.get(name, (1.2,))), np.float32(0.1), scale)
    if name == "vonmises":
        arguments = arguments[:2]
    wanted = getattr(getattr(stats, name), method)(x.astype(float), *map(float, arguments))
    with np.errstate(divide="ignore"):
        found = getattr(getattr(ours, name), method)(x, *arguments)
        traced, back = fad.vjp(lambda x: getattr(getattr(ours, name), method)(x, *arguments), x)
    assert found.dtype == traced.dtype == getattr(getattr(stats, name), method)(x, *arguments).dtype == np.float64
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    np.testing.assert_array_equal(traced, found)
    assert back(np.ones(3))[0].dtype == np.float32


def test_single_precision_vectors_have_densities_computed_in_double():
    x = np.array([[0.2, 0.3], [0.5, 0.1]], np.float32)
    mean, cov = np.zeros(2, np.float32), np.array([[1.0, 0.2], [0.2, 0.7]], np.float32)
    found = ours.multivariate_normal.logpdf(x, mean, cov)
    assert found.dtype == stats.multivariate_normal.logpdf(x, mean, cov).dtype == np.float64
    wanted = stats.multivariate_normal.logpdf(x.astype(float), mean, cov.astype(float))
    np.testing.assert_allclose(found, wanted, rtol=1e-12)
    share, alpha = np.array([0.2, 0.3, 0.5]), np.array([1.5, 2.5, 0.7], np.float32)
    found, wanted = ours.dirichlet.logpdf(share, alpha), stats.dirichlet.logpdf(share, alpha.astype(float))
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


@pytest.mark.parametrize("name", COUNTS)
def test_counts_may_be_traced_integers_under_jit(name):
    k = np.arange(4)
    fast = fad.jit(lambda k, first: getattr(ours, name).logpmf(k, first, *COUNTS[name][1:]))
    for _ in range(3):
        wanted = getattr(stats, name).logpmf(k, *COUNTS[name])
        np.testing.assert_allclose(fast(k, COUNTS[name][0]), wanted, rtol=1e-11)


@pytest.mark.parametrize("name", SHAPES)
def test_the_density_is_the_derivative_of_the_distribution_function(name):
    distribution, q = getattr(ours, name), 0.37
    x = distribution.ppf(q, *SHAPES[name])
    assert fad.grad(distribution.cdf)(x, *SHAPES[name]) == pytest.approx(distribution.pdf(x, *SHAPES[name]), rel=1e-10)
    assert fad.grad(distribution.sf)(x, *SHAPES[name]) == pytest.approx(-distribution.pdf(x, *SHAPES[name]), rel=1e-10)
    slope = fad.grad(distribution.ppf)(q, *SHAPES[name])
    assert slope == pytest.approx(1 / distribution.pdf(x, *SHAPES[name]), rel=1e-9)


@pytest.mark.parametrize("name", [n for n in SHAPES if SHAPES[n]])
def test_a_quantile_stays_a_quantile_as_the_shapes_change(name):
    distribution, n = getattr(ours, name), len(SHAPES[name])
    gradients = fad.grad(lambda *s: distribution.cdf(distribution.ppf(0.37, *s), *s), argnums=tuple(range(n)))
    np.testing.assert_allclose(gradients(*SHAPES[name]), np.zeros(n), atol=1e-9)


def test_outside_the_support_the_gradient_is_zero_and_not_nan():
    x = np.array([-1.0, 0.5, 2.0])
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(ours.gamma.pdf(x, 1.0)))(x)[0], 0.0)
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(ours.beta.cdf(x, 2.0, 3.0)))(x)[[0, 2]], 0.0)


def test_a_scale_that_makes_no_distribution_gives_nan_as_in_scipy():
    assert np.isnan(ours.norm.pdf(0.0, 0.0, -1.0))
    assert np.isnan(ours.gamma.cdf(1.0, -2.0))


def test_parameters_go_by_position_and_by_name():
    by_name = ours.gamma.logpdf(1.5, a=2.0, loc=0.1, scale=3.0)
    assert by_name == ours.gamma.logpdf(1.5, 2.0, 0.1, 3.0) == pytest.approx(stats.gamma.logpdf(1.5, 2.0, 0.1, 3.0))
    with pytest.raises(TypeError, match="shape"):
        ours.gamma.logpdf(1.5)
    with pytest.raises(TypeError, match="unknown"):
        ours.norm.logpdf(1.5, sigma=2.0)


def test_vonmises_multivariate_normal_and_dirichlet_are_scipys():
    x = np.array([-0.3, 1.2, 2.9])
    np.testing.assert_allclose(ours.vonmises.logpdf(x, 1.7, 0.2), stats.vonmises.logpdf(x, 1.7, 0.2), rtol=1e-12)
    rng = np.random.default_rng(0)
    root, points, mean = rng.normal(size=(3, 3)), rng.normal(size=(5, 3)), rng.normal(size=3)
    cov = root @ root.T + np.eye(3)
    wanted = stats.multivariate_normal.logpdf(points, mean, cov)
    np.testing.assert_allclose(ours.multivariate_normal.logpdf(points, mean, cov), wanted, rtol=1e-12)
    alpha, p = np.array([0.7, 2.0, 3.0]), np.array([0.2, 0.3, 0.5])
    np.testing.assert_allclose(ours.dirichlet.logpdf(p, alpha), stats.dirichlet.logpdf(p, alpha), rtol=1e-12)
    np.testing.assert_allclose(ours.dirichlet.logpdf(p[:2], alpha), stats.dirichlet.logpdf(p[:2], alpha), rtol=1e-12)


def test_a_singular_covariance_has_a_density_on_its_subspace():
    cov, mean = np.diag([2.0, 1.0, 0.0, 0.0]), np.zeros(4)
    x = np.array([[0.3, -0.4, 0.0, 0.0], [0.1, 0.2, 0.0, 1.0]])
    for method in ("logpdf", "pdf"):
        wanted = getattr(stats.multivariate_normal, method)(x, mean, cov, allow_singular=True)
        found = getattr(ours.multivariate_normal, method)(x, mean, cov, allow_singular=True)
        np.testing.assert_allclose(found, wanted, rtol=1e-13)
    density = lambda x, c: ours.multivariate_normal.logpdf(x, mean, c, allow_singular=True)
    in_x, in_cov = fad.grad(density, argnums=(0, 1))(x[0], cov)
    np.testing.assert_allclose(in_x, [-0.15, 0.4, 0.0, 0.0], atol=1e-12)
    block = lambda c: ours.multivariate_normal.logpdf(x[0, :2], np.zeros(2), c)
    np.testing.assert_allclose(in_cov[:2, :2], fad.grad(block)(cov[:2, :2]), atol=1e-10)
    with pytest.raises(np.linalg.LinAlgError, match="semidefinite"):
        density(x[0], np.diag([1.0, 1.0, 1.0, -1.0]))
    with pytest.raises(np.linalg.LinAlgError):
        ours.multivariate_normal.logpdf(x[0], mean, cov)


def test_the_entropy_of_the_normal_distribution_of_vectors_is_scipys_and_has_a_gradient():
    cov = np.array([[2.0, 0.5], [0.5, 1.0]])
    for given in ((None, cov), (np.zeros(2), np.array([1.5, 0.2])), (np.zeros(3), 2.0), (None, 2.0)):
        wanted = stats.multivariate_normal.entropy(*given)
        np.testing.assert_allclose(ours.multivariate_normal.entropy(*given), wanted, rtol=1e-14)
    found = fad.grad(lambda c: ours.multivariate_normal.entropy(cov=c))(cov)
    np.testing.assert_allclose(found, 0.5 * np.linalg.inv(cov), rtol=1e-12)


def test_draws_are_scipys_and_refuse_traced_shapes():
    for name in ("norm", "gamma", "multivariate_normal", "dirichlet", "poisson"):
        args = {"gamma": (2.0,), "multivariate_normal": (np.zeros(2),), "dirichlet": (np.ones(3),), "poisson": (3.0,)}
        drawn = [getattr(where, name).rvs(*args.get(name, ()), size=4, random_state=0) for where in (ours, stats)]
        np.testing.assert_array_equal(*drawn)
    with pytest.raises(DerivativeError, match="do not follow"):
        fad.grad(lambda m: np.sum(ours.gamma.rvs(m, size=3)))(0.5)


def test_the_maximum_likelihood_covariance_is_where_the_gradient_vanishes():
    points = np.random.default_rng(1).normal(size=(40, 2)) @ np.array([[1.0, 0.4], [0.0, 0.7]])
    mean = points.mean(axis=0)
    cov = (points - mean).T @ (points - mean) / len(points)
    gradient = fad.grad(lambda c: np.sum(ours.multivariate_normal.logpdf(points, mean, c)))(cov)
    np.testing.assert_allclose(gradient, np.zeros((2, 2)), atol=1e-9)


@pytest.mark.parametrize("name", ["multivariate_normal", "multivariate_t"])
def test_the_mean_or_the_covariance_says_how_long_vectors_are_as_in_scipy(name):
    at, theirs = getattr(ours, name).logpdf, getattr(stats, name).logpdf
    points = [np.array(0.3), np.arange(3.0), np.ones((1, 3)), np.ones((4, 1)), np.arange(24.0).reshape(2, 4, 3) / 9]
    spreads = [None, 2.0, np.array([2.0]), np.array([1.0, 2.0, 3.0]), np.eye(3) + 0.2, np.eye(2)]
    for x, mean, spread in itertools.product(points, [None, 0.1, [0.1, 0.2, 0.3], np.ones((1, 3))], spreads):
        try:
            wanted = theirs(x, mean, spread)
        except ValueError:
            with pytest.raises(ValueError):
                at(x, mean, spread)
            continue
        found = at(x, mean, spread)
        assert type(found) is type(wanted)
        assert np.shape(found) == np.shape(wanted)
        np.testing.assert_allclose(found, wanted, rtol=1e-12)
