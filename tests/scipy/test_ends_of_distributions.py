"""Distributions at NaN, at infinities and at the ends of their supports."""

import numpy as np
import pytest
import scipy.stats

import fad
import fad.scipy.stats

FURTHEST = np.array([np.nan, -np.inf, np.inf, 0.0, 0.7])
SHAPES_OF = {
    "norm": (), "logistic": (), "laplace": (), "cauchy": (), "gumbel_r": (), "t": (3.0,), "expon": (), "gamma": (2.0,),
    "lognorm": (0.5,), "invgamma": (2.0,), "invgauss": (0.7,), "rayleigh": (), "beta": (2.0, 3.0), "genextreme": (0.2,),
}  # fmt: skip
COUNTED = {"poisson": (2.0,), "binom": (5.0, 0.3), "geom": (0.3,), "bernoulli": (0.3,)}
METHODS = ("logpdf", "pdf", "cdf", "sf", "logcdf", "logsf")


@pytest.mark.parametrize("name", [*SHAPES_OF, *COUNTED])
def test_distributions_have_scipys_values_at_nan_and_at_the_ends_of_the_line(name):
    shapes = SHAPES_OF.get(name) or COUNTED.get(name, ())
    for method in METHODS if name in SHAPES_OF else ("cdf", "sf"):
        theirs = getattr(getattr(scipy.stats, name), method)
        with np.errstate(all="ignore"):
            wanted = theirs(FURTHEST, *shapes)
            found = getattr(getattr(fad.scipy.stats, name), method)(FURTHEST, *shapes)
        known = np.isnan(FURTHEST) | ~np.isnan(wanted)  # SciPy has NaN for some densities at infinity
        np.testing.assert_allclose(found[known], wanted[known], rtol=1e-12)


def test_an_unlimited_interval_has_its_probability_with_its_derivative():
    share = lambda s: scipy.stats.norm.cdf(np.inf, 0.1, s) - scipy.stats.norm.cdf(0.5, 0.1, s)
    wanted = (share(1.3001) - share(1.2999)) / 2e-4
    assert share(1.3) > 0.3
    for gradient in (fad.grad(share), fad.jit(fad.grad(share))):
        np.testing.assert_allclose([gradient(1.3), gradient(1.3)], wanted, rtol=1e-6)


def test_a_parameter_that_is_not_a_number_leaves_none():
    for f in (scipy.stats.norm.logpdf, scipy.stats.norm.cdf, scipy.stats.expon.sf):
        assert np.isnan(fad.jit(f)(0.5, np.nan))
        assert np.isnan(fad.vjp(lambda s, f=f: f(0.5, 0.0, s), np.nan)[0])


def test_in_a_loop_each_step_looks_at_its_own_numbers():
    def weighed(x):
        total = 0.0
        for k in range(len(x)):
            share = scipy.stats.norm.cdf(x[k], 0.0, 1.0 - 0.1 * k + 0.0 * total)  # of no scale from the tenth step on
            total = 0.5 * total + (share if share == share else 1.0) + scipy.stats.expon.pdf(x[k] + 0.0 * total)
        return total

    x = np.linspace(2.0, -2.0, 15)
    with np.errstate(all="ignore"), fad.config.use(loops="capture"):
        assert fad.jit(weighed)(x) == pytest.approx(weighed(x), rel=1e-13)
        np.testing.assert_allclose(fad.jit(fad.grad(weighed))(x), fad.grad(weighed)(x), rtol=1e-12)
