"""Python's `statistics` in programs that are differentiated as they are written."""

import functools
import itertools
import math
import statistics
from fractions import Fraction
from statistics import NormalDist, stdev

import numpy as np
import pytest

import fad

X = np.array([1.3, 2.0, 0.7, 3.1])
STANDARD = NormalDist()


class Summary:
    def __init__(self, data):
        self.data = list(data)

    def score(self):
        return (self.data[0] - statistics.mean(self.data)) / stdev(self.data)


PROGRAMS = {
    "mean": lambda x: statistics.mean(x) ** 2,
    "fmean": lambda x: statistics.fmean(x, [1, 2, 3, 4]) ** 2,
    "geometric_mean": lambda x: statistics.geometric_mean(x) ** 2,
    "harmonic_mean": lambda x: statistics.harmonic_mean(list(x)) ** 2,
    "median": lambda x: statistics.median(x) ** 2,
    "variance": lambda x: statistics.variance(v * v for v in x),
    "of a centre": lambda x: statistics.pvariance(x, mu=x[0]) + statistics.variance(x, xbar=1.0),
    "stdev": lambda x: stdev(x) ** 3,
    "pstdev": lambda x: statistics.pstdev([x[0], 2.0, x[1] * x[2]]),
    "quantiles": lambda x: statistics.quantiles(x)[0] ** 2,
    "linear_regression": lambda x: statistics.linear_regression([1, 2, 3, 4], x).slope ** 2,
    "correlation": lambda x: statistics.correlation([1, 2, 3, 4.5], x),
    "pdf": lambda x: NormalDist(x[0], x[1]).pdf(x[2]) + NormalDist(x[0]).zscore(x[3]),
    "cdf": lambda x: STANDARD.cdf(x[0]) * STANDARD.inv_cdf(x[2]),
    "inv_cdf": lambda x: NormalDist(x[0], x[1]).inv_cdf(x[3] / 10),
    "from_samples": lambda x: NormalDist.from_samples(x).cdf(2.0),
    "overlap": lambda x: NormalDist(x[0], x[1]).overlap(NormalDist(x[2], x[3])),
    "object": lambda x: Summary(x).score(),
}


def differences(f, x):
    h = 1e-6
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(len(x))])


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_their_derivatives_in_every_transform(name):
    f = PROGRAMS[name]
    close = functools.partial(np.testing.assert_allclose, rtol=1e-6, atol=1e-7)
    wanted = differences(f, X)
    value, gradient = fad.value_and_grad(f)(X)
    np.testing.assert_allclose(value, f(X), rtol=1e-15)
    close(gradient, wanted)
    close(fad.jvp(f, (X,), (np.ones(4),))[1], np.sum(wanted))
    close(fad.vmap(f)(np.stack([X, X * 1.1])), [f(X), f(X * 1.1)])
    close(fad.hessian(f)(X), differences(fad.grad(f), X))
    fast, steep = fad.jit(f), fad.jit(fad.grad(f))
    for x in (X, X * 1.1, X):
        close(fast(x), f(x))
        close(steep(x), differences(f, x))


def test_a_mean_is_as_exact_as_pythons():
    data = [0.1] * 10
    assert fad.value_and_grad(lambda x: statistics.mean([x] * 10))(0.1)[0] == statistics.mean(data)
    assert fad.value_and_grad(lambda x: stdev([x] * 10))(0.1) == (0.0, 0.0)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_a_result_has_the_dtype_of_the_data(dtype):
    x = X.astype(dtype)
    for f in (lambda x: statistics.mean(x), lambda x: statistics.variance(x)):
        assert fad.value_and_grad(f)(x)[0].dtype == f(x).dtype


@pytest.mark.parametrize("f", [stdev, statistics.variance, lambda x: statistics.harmonic_mean(-x)])
def test_errors_are_those_of_statistics(f):
    x = np.ones(1)
    with pytest.raises(statistics.StatisticsError) as wanted:
        f(x)
    with pytest.raises(statistics.StatisticsError) as found:
        fad.grad(lambda x: f(x))(x)
    assert str(found.value) == str(wanted.value)


def test_a_fraction_is_refused_with_advice():
    with pytest.raises(fad.errors.TracerConversionError, match="a Fraction holds a plain number"):
        fad.grad(lambda x: float(Fraction(x)))(1.0)


def test_a_length_of_many_coordinates_is_compiled():
    x = np.linspace(1.0, 2.0, 120)
    f = fad.jit(fad.grad(lambda x: stdev(x)))
    for _ in range(2):
        np.testing.assert_allclose(f(x), (x - x.mean()) / (119 * x.std(ddof=1)), atol=1e-14)


def test_a_recorded_program_asks_for_no_number_within_a_library():
    calls = []

    def f(x):
        calls.append(x)
        return STANDARD.cdf(x) * 2

    jitted = fad.jit(f)
    assert [jitted(x) for x in (0.1, 0.2, 0.3, 0.4)] == [f(x) for x in (0.1, 0.2, 0.3, 0.4)]
    assert len(calls) <= 6


def test_numbers_of_python_and_of_numpy_give_what_they_give_without_jit():
    data = [[2, 7, 10, 20], [1, 3], [2.0, 7.5], [1, 2.5], [True, True], [np.float32(1), np.float32(3.5)]]
    functions = [statistics.mean, statistics.variance, statistics.pvariance, stdev, statistics.harmonic_mean]
    for xs, f in itertools.product(data, functions):
        wanted, found = f(xs), fad.jit(lambda xs, f=f: f(xs))(xs)
        assert type(wanted) is type(found)
        np.testing.assert_allclose(found, wanted, rtol=1e-15)
    assert fad.jit(statistics.mean)([np.float32(1), 2]).dtype == np.float32


def test_a_harmonic_mean_has_its_derivative_at_zero():
    f = lambda x: statistics.harmonic_mean(x, [1, 3])
    np.testing.assert_allclose(fad.grad(f)([0.0, 2.0]), [4.0, 0.0])


def test_functions_of_pythons_modules_are_transformed_themselves():
    assert fad.grad(math.sin)(1.0) == math.cos(1.0)
    assert fad.jit(statistics.mean)([1.0, 2.0]) == 1.5
    assert fad.grad(statistics.variance)([1.0, 3.0]) == [-2.0, 2.0]
