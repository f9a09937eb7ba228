"""NumPy's and SciPy's draws that are standard ones, shifted and scaled, follow traced parameters."""

import numpy as np
import pytest
import scipy.stats

import fad
from fad.scipy import stats

X = np.array([0.5, 1.2])
SOURCES = {
    "a generator": lambda: np.random.default_rng(3),
    "a generator of NumPy's older ones": lambda: np.random.RandomState(3),
    "numpy.random": lambda: np.random.seed(3) or np.random,
}
SHIFTED = ["normal", "laplace", "logistic", "gumbel", "uniform", "lognormal"]
SCALED = ["exponential", "rayleigh"]
SHARED = np.random.default_rng(8)


def differences(f, x, step=1e-6):
    return np.array([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(len(x))])


@pytest.mark.parametrize("source", SOURCES)
@pytest.mark.parametrize("name", SHIFTED + SCALED)
def test_draws_are_numpys_and_follow_their_parameters(name, source):
    def draws(x):
        draw = getattr(SOURCES[source](), name)
        own = x[1:] if name in SCALED else x
        wide = [*own[:-1], own[-1] * np.array([1.0, 2.0])]
        return draw(*own), draw(*own, size=3), draw(*wide, (3, 2)), draw(*wide)

    def total(x):
        return sum(np.sum(y) for y in draws(x))

    plain, pushed = draws(X), fad.jvp(draws, (X,), (X,))[0]
    for y, z in zip(plain, pushed, strict=True):
        np.testing.assert_array_max_ulp(np.asarray(y), np.asarray(z), 1 if name == "lognormal" else 0)  # C's exp
        assert np.shape(y) == np.shape(z)
    slope = differences(total, X)
    assert fad.grad(total)(X) == pytest.approx(slope, rel=1e-7)
    assert fad.vmap(total)(np.stack([X, 2 * X])) == pytest.approx([total(X), total(2 * X)], rel=1e-14)


def test_a_generator_from_outside_draws_as_it_does_for_plain_numbers():
    class Walk:
        def __init__(self):
            self.rng = np.random.default_rng(7)

        def end(self, x):
            return np.sum(self.rng.normal(x[0], x[1], 4)) + SHARED.uniform(x[0], 2.0)

    used, other = Walk(), Walk()
    state = SHARED.bit_generator.state
    value, slope = fad.value_and_grad(used.end)(X)
    SHARED.bit_generator.state = state
    assert value == other.end(X)
    assert type(used.rng) is np.random.Generator
    assert used.rng.bit_generator.state == other.rng.bit_generator.state
    assert X @ slope == pytest.approx(value - 2 * (5 - slope[0]))  # linear, but for the upper end of the uniform draw


def test_a_captured_loop_draws_for_parameters_that_no_step_changes():
    def path(x):
        rng, s = np.random.default_rng(0), np.ones(2)
        for _ in range(100):
            s = s * np.exp(0.01 * rng.normal(x[0], x[1], size=2))
        return np.sum(s)

    with fad.config.use(loops="capture"):
        slope = fad.jit(fad.grad(path))
        assert slope(X) == pytest.approx(fad.grad(path)(X), rel=1e-12)
        assert "captured: 100 steps" in slope.explain()
        assert slope(X) == pytest.approx(fad.grad(path)(X), rel=1e-12)


@pytest.mark.parametrize("name", ["norm", "expon", "gamma", "uniform", "t"])
def test_scipys_draws_follow_loc_and_scale(name):
    shapes = {"gamma": (2.5,), "t": (4.0,)}.get(name, ())
    own, plain = getattr(stats, name), getattr(scipy.stats, name)
    for size in (None, 3, (2, 3)):
        f = lambda x, d=own, size=size: d.rvs(*shapes, x[0], x[1], size=size, random_state=5)
        y = fad.jvp(f, (X,), (X,))[0]
        assert np.array_equal(y, plain.rvs(*shapes, *X, size=size, random_state=5))
        total = lambda x, f=f: np.sum(f(x))
        assert fad.grad(total)(X) == pytest.approx(differences(total, X), rel=1e-7)


def test_what_numpy_refuses_is_refused():
    def draw(name, *args, **kwargs):
        return fad.grad(lambda x: np.sum(getattr(np.random.default_rng(0), name)(x[0], *args, **kwargs)))(X)

    with pytest.raises(ValueError, match="scale < 0"):
        draw("normal", -1.0)
    with pytest.raises(ValueError, match="not compatible with broadcast dimensions"):
        draw("normal", np.ones(3), 2)
    with pytest.raises(TypeError, match="takes loc, scale and size"):
        draw("normal", 1.0, 2, 3)
    with pytest.raises(TypeError, match="takes loc, scale and size"):
        draw("normal", loc=1.0)
    with pytest.raises(ValueError, match="scale of at least 0"):
        fad.grad(lambda x: stats.norm.rvs(x[0], -x[1]))(X)
    with pytest.raises(fad.errors.DerivativeError, match="no derivative in its parameters"):
        fad.grad(lambda x: stats.gamma.rvs(x[0]))(X)
