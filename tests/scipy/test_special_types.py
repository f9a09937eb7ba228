"""Functions of SciPy that are written in Python give the types that SciPy's give: of single precision, of integers."""

import numpy as np
import scipy.special as sc
from each import each
from scipy import spatial, stats

import fad
from fad.scipy import special

CASES = {
    "factorial": lambda s, x: s.factorial(x),
    "polygamma": lambda s, x: s.polygamma(1, x),
    "polygamma of orders": lambda s, x: s.polygamma(np.array([1, 2]), x),
    "comb": lambda s, x: s.comb(x, 1),
    "comb of a float": lambda s, x: s.comb(5.0, x),
    "comb of one type": lambda s, x: s.comb(x, x),
    "perm": lambda s, x: s.perm(x, 1),
    "multigammaln": lambda s, x: s.multigammaln(x, 2),
    "spherical_jn": lambda s, x: s.spherical_jn(1, x),
    "spherical_yn": lambda s, x: s.spherical_yn(1, x),
    "spherical_in": lambda s, x: s.spherical_in(1, x),
    "spherical_kn": lambda s, x: s.spherical_kn(1, x),
    "logsumexp": lambda s, x: s.logsumexp(x),
    "softmax": lambda s, x: s.softmax(x),
    "log_softmax": lambda s, x: s.log_softmax(x),
}
NUMBERS = [np.float32(3), np.float32([3, 4]), np.array(2.5, np.float32), 3.0, np.array(2.5), 3, np.array([2, 3])]


@each("name", CASES)
def test_a_jitted_function_has_the_values_and_types_of_scipys(name):
    for x in NUMBERS:
        want = CASES[name](sc, x)
        got = fad.jit(lambda x: CASES[name](special, x))(x)
        assert np.asarray(got).dtype == np.asarray(want).dtype, repr(x)
        np.testing.assert_allclose(got, want, rtol=1e-5)


OF_NUMBERS = {
    "uniform.logpdf": lambda x: stats.uniform.logpdf(0.5, x[0] - 5, 10),
    "expon.logpdf": lambda x: stats.expon.logpdf(x[0], scale=x[1]),
    "expon.pdf": lambda x: stats.expon.pdf(x[0]),
    "gamma.logpdf": lambda x: stats.gamma.logpdf(x[0], 2.0),
    "uniform.cdf": lambda x: stats.uniform.cdf(x[0]),
    "uniform.ppf": lambda x: stats.uniform.ppf(x[0]),
    "binom.logpmf": lambda x: stats.binom.logpmf(2, 5, x[0]),
    "distances to neighbours": lambda x: spatial.KDTree(x[:, None]).query(x[:, None] + 1)[0],
}


@each("name", OF_NUMBERS)
def test_a_distribution_of_a_number_and_a_distance_have_scipys_types(name):
    fun = OF_NUMBERS[name]
    for x in (np.array([0.3, 0.8]), np.float32([0.3, 0.8])):
        want, got = fun(x), fad.jit(fun)(x)
        assert (type(got), got.dtype) == (type(want), want.dtype)
        np.testing.assert_allclose(got, want, rtol=1e-7)
