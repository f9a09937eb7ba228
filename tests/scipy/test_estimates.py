"""Entropies, fits, orders and shapes of traced samples, in programs with SciPy's names."""

from __future__ import annotations

import numpy as np
import pytest

import fad

stats = pytest.importorskip("scipy.stats")
spatial = pytest.importorskip("scipy.spatial")

from fad.scipy.stats.estimates import ENTROPIES  # noqa: E402

X = np.array([1.1, 0.7, 1.3])
SAMPLE = np.random.default_rng(1).gamma(2.0, size=9)
SHAPES = {
    "erlang": [3.0], "f": [2.3, 5.1], "beta": [1.7, 2.9], "loguniform": [1.3, 4.0], "reciprocal": [1.3, 4.0],
    "triang": [0.4],
}  # fmt: skip
PROGRAMS = {
    "norm.fit": lambda x: np.stack(stats.norm.fit(SAMPLE * x[0] + x[1])),
    "a fixed place": lambda x: np.stack(stats.norm.fit(SAMPLE * x[0], floc=x[1])),
    "expon.fit": lambda x: np.stack(stats.expon.fit(SAMPLE**x[0])),
    "laplace.fit": lambda x: np.stack(stats.laplace.fit(SAMPLE**x[0])),
    "uniform.fit": lambda x: np.stack(stats.uniform.fit(SAMPLE * x[0])),
    "halfnorm.fit": lambda x: np.stack(stats.halfnorm.fit(SAMPLE**x[0])),
    "lognorm.fit": lambda x: np.stack(stats.lognorm.fit(SAMPLE**x[0], floc=-x[1])),
    "rayleigh.fit": lambda x: np.stack(stats.rayleigh.fit(SAMPLE**x[0], floc=0.0)),
    "gamma.fit": lambda x: np.stack(stats.gamma.fit(SAMPLE**x[0] + x[1], floc=0.0)),
    "an entropy": lambda x: stats.gamma.entropy(x[0], scale=x[1:]),
    "of a frozen one": lambda x: stats.norm(x[0], x[1]).entropy(),
    "procrustes": lambda x: spatial.procrustes(SAMPLE.reshape(3, 3), (SAMPLE**2).reshape(3, 3) * x)[1],
    "its disparity": lambda x: spatial.procrustes(SAMPLE.reshape(3, 3), (SAMPLE**2).reshape(3, 3) * x)[2],
    "the place of a gap": lambda x: stats.ks_2samp(SAMPLE * x[0], SAMPLE[:4] + x[1]).statistic_location,
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_estimates_have_scipys_values_and_the_derivatives_of_their_differences(program):
    value = program(X)
    wanted = np.stack([(program(X + d) - program(X - d)) / 2e-5 for d in 1e-5 * np.eye(3)], -1)
    for jacobian in (fad.jacfwd(program), fad.jacrev(program), fad.jit(fad.jacrev(program))):
        np.testing.assert_allclose(jacobian(X), wanted, 1e-5, 1e-6)
    np.testing.assert_allclose(fad.jvp(program, (X,), (X,))[0], value, 1e-9)
    many = np.stack([value, program(1.01 * X)])
    np.testing.assert_allclose(fad.vmap(program)(np.stack([X, 1.01 * X])), many, 1e-9)


@pytest.mark.parametrize("name", sorted(ENTROPIES))
def test_entropies_are_scipys(name):
    shapes = SHAPES.get(name, [3.7] * len(getattr(fad.scipy.stats, name).shapes))
    own = fad.jvp(lambda s: getattr(fad.scipy.stats, name).entropy(*shapes, 0.3, s), (1.7,), (1.0,))
    np.testing.assert_allclose(own[0], getattr(stats, name).entropy(*shapes, 0.3, 1.7), 1e-9)
    np.testing.assert_allclose(own[1], 1 / 1.7)


def test_statistics_of_orders_are_constant():
    tau = lambda x: stats.kendalltau(x, SAMPLE)
    gap = lambda x: stats.ks_2samp(x, SAMPLE[:5])
    for f in (lambda x: tau(x).statistic, lambda x: tau(x)[1], lambda x: gap(x)[0], lambda x: gap(x).pvalue):
        value, slope = fad.value_and_grad(f)(SAMPLE**2)
        assert value == pytest.approx(f(SAMPLE**2))
        np.testing.assert_array_equal(slope, 0.0)
    assert fad.jit(gap)(SAMPLE + 1.0).statistic_sign == gap(SAMPLE + 1.0).statistic_sign
    both = fad.vmap(lambda x: tau(x).statistic)(np.stack([SAMPLE, -SAMPLE]))
    np.testing.assert_allclose(both, [1.0, -1.0])


REFUSED = {
    "a fit without a formula": (lambda x: stats.gamma.fit(x), NotImplementedError, "nnlf"),
    "a fixed shape": (lambda x: stats.gamma.fit(x, fa=2.0, floc=0.0), NotImplementedError, "nnlf"),
    "an entropy without a formula": (lambda x: stats.skewnorm.entropy(x), fad.errors.DerivativeError, "quad"),
    "nothing to fit": (lambda x: stats.norm.fit(x, floc=0.0, fscale=1.0), ValueError, "All parameters fixed"),
    "other axes": (lambda x: stats.ks_2samp(x[:, None], x[:, None]), NotImplementedError, "vmap"),
    "points that coincide": (lambda x: spatial.procrustes(np.stack([x, x]), np.eye(2, 3)), ValueError, "unique"),
}  # fmt: skip


@pytest.mark.parametrize(("program", "error", "says"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_formula_says_what_to_write(program, error, says):
    with pytest.raises(error, match=says):
        fad.vjp(program, X)
