"""Moments of distributions, and what compares samples: values are SciPy's, derivatives those of its differences."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError

stats = pytest.importorskip("scipy.stats")

from fad.scipy.stats.moments import MOMENTS  # noqa: E402

RNG = np.random.default_rng(0)
X, Y = np.abs(RNG.normal(size=8)) + 0.3, np.abs(RNG.normal(size=8)) + 0.5


@pytest.mark.parametrize("name", sorted(MOMENTS))
def test_moments_are_scipys_where_they_are_finite_and_where_they_are_not(name):
    own, theirs = getattr(fad.scipy.stats, name), getattr(stats, name)
    discrete = hasattr(theirs, "pmf")
    for shift in (0.0, 1.7):
        shapes = [a if type(a) is int else 0.5 * (a + b) + (0.0 if b <= 1 else shift) for a, b in own.domains]
        shapes = [2.0] if name == "erlang" else shapes
        if name == "invweibull":
            shapes = [2.5 + shift]
        last = (0.5,) if discrete else (0.5, 2.0)
        for method in ("mean", "var", "std"):
            wanted = getattr(theirs, method)(*shapes, *last)
            np.testing.assert_allclose(getattr(own, method)(*shapes, *last), wanted, 1e-9, 1e-12)
    if not discrete:
        assert np.isnan(own.mean(*shapes, 0.0, -1.0))


def test_moments_that_do_not_exist_are_those_of_scipy():
    given = [("t", 0.7), ("t", 1.5), ("pareto", 0.8), ("pareto", 1.5), ("lomax", 1.5), ("invgamma", 1.5), ("fisk", 1.5)]
    for name, shape in given:
        own, theirs = getattr(fad.scipy.stats, name), getattr(stats, name)
        for method in ("mean", "var"):
            np.testing.assert_allclose(getattr(own, method)(shape), getattr(theirs, method)(shape), 1e-13)
    with pytest.raises(DerivativeError, match="quad"):
        fad.grad(lambda c: stats.gompertz.mean(c))(1.0)


PROGRAMS = {
    "means and variances": lambda x: stats.gamma.mean(x[0], scale=x[1]) * stats.norm.var(x[0], x[1]) + x[2],
    "of one with its parameters": lambda x: stats.beta(x[0], x[1]).mean() + stats.weibull_min(x[2], scale=x[1]).std(),
    "of counts": lambda x: stats.poisson.std(x[0]) + stats.binom.mean(7, 0.2 * x[1]) + stats.geom(0.1 * x[2]).var(),
    "medians": lambda x: stats.gamma.median(x[0]) + stats.lognorm(x[1]).median(),
    "intervals": lambda x: np.stack(stats.norm.interval(0.9, x[0], x[1])),
    "a likelihood": lambda x: stats.gamma.nnlf((x[0], 0.0, x[1]), Y),
    "f_oneway": lambda x: np.stack(stats.f_oneway(x[:3], x[3:5], x[5:])),
    "chisquare": lambda x: np.stack(stats.chisquare(x, x.mean() * np.ones(8))),
    "chisquare along an axis": lambda x: stats.chisquare(x.reshape(4, 2), axis=1, ddof=-1).pvalue,
    "wasserstein_distance": lambda x: stats.wasserstein_distance(x, Y),
    "with weights": lambda x: stats.wasserstein_distance(x, Y, x**2, Y),
    "energy_distance": lambda x: stats.energy_distance(x, Y, v_weights=x),
    "boxcox_llf": lambda x: stats.boxcox_llf(x[0], Y + x[1]),
    "boxcox_llf at 0": lambda x: stats.boxcox_llf(0.0, x),
    "multivariate_t": lambda x: stats.multivariate_t.logpdf(x[:2], Y[:2], np.diag(x[2:4]) + 0.1, x[4]),
    "multivariate_t with its parameters": lambda x: stats.multivariate_t(x[:2], np.eye(2), 3.0).pdf(Y[:2]),
    "wishart": lambda x: stats.wishart.logpdf(np.diag(x[:2]) + 0.1, 3 + x[2], np.diag(x[3:5])),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore:invalid value encountered")
@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_programs_with_scipys_names_have_the_derivatives_of_their_differences(program):
    h = 1e-6
    for x in (X, 1.3 * X[::-1]):
        value = np.asarray(program(x))
        columns = [(np.asarray(program(x + d)) - np.asarray(program(x - d))) / (2 * h) for d in h * np.eye(8)]
        for jacobian in (fad.jacrev(program), fad.jacfwd(program), fad.jit(fad.jacrev(program))):
            np.testing.assert_allclose(jacobian(x), np.stack(columns, -1), 1e-5, 1e-6)
        np.testing.assert_allclose(fad.jit(program)(x), value, 1e-11)
        many = np.stack([value, program(1.1 * x)])
        np.testing.assert_allclose(fad.vmap(program)(np.stack([x, 1.1 * x])), many, 1e-11)


def test_a_large_power_of_box_and_cox_does_not_overflow():
    data = np.array([1e3, 2e3, 5e3])
    np.testing.assert_allclose(fad.scipy.stats.boxcox_llf(90.0, data), stats.boxcox_llf(90.0, data), 1e-9)
    slope = (stats.boxcox_llf(90.001, data) - stats.boxcox_llf(89.999, data)) / 0.002
    np.testing.assert_allclose(fad.grad(fad.scipy.stats.boxcox_llf)(90.0, data), slope, 1e-6)


def test_bad_counts_and_samples_are_refused():
    with pytest.raises(ValueError, match="agree"):
        fad.grad(lambda x: stats.chisquare(x, np.ones(8)).statistic)(X)
    with pytest.raises(TypeError, match="two inputs"):
        fad.grad(lambda x: fad.scipy.stats.f_oneway(x).statistic)(X)
    with pytest.raises(ValueError, match="empty"):
        fad.grad(lambda x: fad.scipy.stats.wasserstein_distance(x[:0], Y))(X)
