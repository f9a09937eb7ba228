"""Random numbers: the same from the same key, of the right distribution, and differentiable where that is natural."""

import numpy as np
import pytest

import fad
from fad import random

KEY = random.key(42)
N = 20_000


def test_philox_gives_the_published_numbers():
    # The test vectors of the Random123 library for Philox 4x32-10: of zeros, of ones, of digits of pi.
    zero, ones = np.array([0], np.uint64), np.array([0xFFFFFFFF], np.uint64)
    words = random.philox(np.zeros(2, np.uint32), (zero,) * 4)
    assert [int(w[0]) for w in words] == [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]
    words = random.philox(np.full(2, 0xFFFFFFFF, np.uint32), (ones,) * 4)
    assert [int(w[0]) for w in words] == [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]
    counter = tuple(np.array([c], np.uint64) for c in (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344))
    words = random.philox(np.array([0xA4093822, 0x299F31D0], np.uint32), counter)
    assert [int(w[0]) for w in words] == [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1]


def test_the_same_key_gives_the_same_numbers_and_other_keys_others():
    assert np.array_equal(random.normal(KEY, (5,)), random.normal(KEY, (5,)))
    assert not np.array_equal(random.normal(KEY, (5,)), random.normal(random.key(43), (5,)))
    assert not np.array_equal(random.key(1), random.key(1 + 2**32))


def test_a_key_is_folded_with_the_number_of_a_step_in_a_compiled_function_and_in_a_captured_loop():
    key = fad.random.key(0)
    fold = fad.jit(fad.random.fold_in)
    for number in (3, 4, 5, -1):
        assert np.array_equal(fold(key, number), fad.random.fold_in(key, number))

    def walk(x, key):
        for i in range(5):
            x = x + fad.random.normal(fad.random.fold_in(key, i), (3,))
        return x

    with fad.config.use(loops="capture"):
        compiled = fad.jit(walk)
        for _ in range(2):
            np.testing.assert_allclose(compiled(np.zeros(3), key), walk(np.zeros(3), key), rtol=1e-14)
    assert "captured: 5 steps" in compiled.explain()


def test_split_and_fold_in_give_different_keys():
    keys = [KEY, *random.split(KEY, 5), *(random.fold_in(KEY, i) for i in range(5))]
    assert len({k.tobytes() for k in keys}) == len(keys)


def test_keys_can_be_mapped_over():
    keys = random.split(KEY, 4)
    out = fad.vmap(lambda k: random.normal(k, (3,)))(keys)
    np.testing.assert_array_equal(out, [random.normal(k, (3,)) for k in keys])
    folded = fad.vmap(random.fold_in, in_axes=(None, 0))(KEY, np.arange(3))
    np.testing.assert_array_equal(folded, [random.fold_in(KEY, i) for i in range(3)])
    out = fad.vmap(lambda k, a: random.gamma(k, a))(keys, np.array([0.5, 1.0, 2.0, 30.0]))
    expected = [random.gamma(k, a) for k, a in zip(keys, [0.5, 1.0, 2.0, 30.0], strict=True)]
    np.testing.assert_allclose(out, expected, rtol=1e-14)


@pytest.mark.parametrize("shape", [(), (3,), (2, 0), (2, 3)])
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_shapes_and_dtypes_are_those_asked_for(shape, dtype):
    for f in (random.uniform, random.normal, random.exponential, random.gumbel, random.logistic, random.laplace,
              random.cauchy, random.rademacher):  # fmt: skip
        x = f(KEY, shape, dtype)
        assert x.shape == shape, f
        assert x.dtype == dtype, f


# name -> (numbers, SciPy's distribution)
def continuous():
    return {
        "uniform": (random.uniform(KEY, N, None, -1.0, 3.0), ("uniform", (-1, 4))),
        "uniform of float32": (random.uniform(KEY, N, "float32"), ("uniform", ())),
        "normal": (random.normal(KEY, N), ("norm", ())),
        "exponential": (random.exponential(KEY, N), ("expon", ())),
        "gumbel": (random.gumbel(KEY, N), ("gumbel_r", ())),
        "logistic": (random.logistic(KEY, N), ("logistic", ())),
        "laplace": (random.laplace(KEY, N), ("laplace", ())),
        "cauchy": (random.cauchy(KEY, N), ("cauchy", ())),
        "truncated normal": (random.truncated_normal(KEY, -1.0, 2.0, N), ("truncnorm", (-1, 2))),
        "gamma below 1": (random.gamma(KEY, 0.3, N), ("gamma", (0.3,))),
        "gamma": (random.gamma(KEY, 4.5, N), ("gamma", (4.5,))),
        "beta": (random.beta(KEY, 0.5, 2.0, N), ("beta", (0.5, 2.0))),
        "t": (random.t(KEY, 5.0, N), ("t", (5.0,))),
        "dirichlet": (random.dirichlet(KEY, np.array([1.0, 2.0, 3.0]), N)[:, 0], ("beta", (1.0, 5.0))),
    }


def test_continuous_distributions_are_those_of_scipy():
    stats = pytest.importorskip("scipy.stats", reason="SciPy's distributions are the reference")
    for name, (x, (distribution, args)) in continuous().items():
        assert stats.kstest(x, distribution, args).pvalue > 1e-3, name


@pytest.mark.parametrize("mean", [0.0, 0.3, 7.0, 150.0])
def test_poisson_numbers_have_their_mean_and_variance(mean):
    x = random.poisson(KEY, mean, N)
    assert abs(x.mean() - mean) <= 5 * np.sqrt(mean / N)
    assert abs(x.var() - mean) <= 5 * np.sqrt((mean + 2 * mean**2) / N)


def test_discrete_draws_have_their_probabilities():
    p = np.array([0.5, 0.3, 0.2])
    tolerance = 5 * np.sqrt(0.25 / N)
    for i in (random.categorical(KEY, np.log(p), shape=(N,)), random.choice(KEY, 3, (N,), p=p)):
        np.testing.assert_allclose(np.bincount(i, minlength=3) / N, p, atol=tolerance)
    np.testing.assert_allclose(np.bincount(random.randint(KEY, N, 0, 3)) / N, np.full(3, 1 / 3), atol=tolerance)
    assert abs(random.bernoulli(KEY, 0.3, N).mean() - 0.3) < tolerance
    assert abs(random.rademacher(KEY, N).mean()) < 2 * tolerance


def test_draws_without_replacement_are_different():
    x = np.array([10.0, 20.0, 30.0, 40.0])
    assert sorted(random.choice(KEY, x, (4,), replace=False)) == x.tolist()
    assert len(set(random.choice(KEY, 100, (50,), replace=False, p=np.arange(1, 101) / 5050).tolist())) == 50
    assert sorted(random.permutation(KEY, x)) == x.tolist()
    with pytest.raises(ValueError, match="replace=True"):
        random.choice(KEY, 3, (4,), replace=False)


def test_bits_are_balanced():
    x = random.bits(KEY, N)
    for bit in range(32):
        assert abs(((x >> np.uint32(bit)) & 1).mean() - 0.5) < 5 * np.sqrt(0.25 / N)


def test_numbers_are_differentiable_in_the_parameters_of_their_distribution():
    g = fad.grad(lambda low, high: np.sum(random.uniform(KEY, 4, None, low, high)), (0, 1))(0.0, 1.0)
    np.testing.assert_allclose(sum(g), 4.0, rtol=1e-14)
    scale = fad.grad(lambda c: np.sum(random.multivariate_normal(KEY, np.zeros(2), c)))(np.eye(2))
    assert np.all(np.isfinite(scale))


@pytest.mark.parametrize("a", [0.4, 1.0, 3.0, 40.0])
def test_gamma_numbers_move_with_their_parameter_along_quantiles(a):
    special = pytest.importorskip("scipy.special", reason="the derivative is SciPy's incomplete gamma function")
    x, slope = fad.jvp(lambda a: random.gamma(KEY, a, (5,)), (a,), (1.0,))
    q, h = special.gammainc(a, x), 1e-5 * a
    expected = (special.gammaincinv(a + h, q) - special.gammaincinv(a - h, q)) / (2 * h)
    np.testing.assert_allclose(slope, expected, rtol=1e-6)


def test_what_is_no_key_is_refused():
    with pytest.raises(TypeError, match=r"fad.random.key\(seed\)"):
        random.normal("seed", (3,))
    with pytest.raises(TypeError, match="floating-point"):
        random.uniform(KEY, (3,), "int64")


def test_gamma_numbers_that_are_zero_have_a_finite_derivative():
    pytest.importorskip("scipy.special", reason="the derivative is SciPy's incomplete gamma function")
    x, slope = fad.jvp(lambda a: random.gamma(KEY, a, (50,)), (0.001,), (1.0,))
    assert np.any(x == 0.0)
    assert np.all(np.isfinite(slope))


@pytest.mark.parametrize("a", [0.3, 1.0, 4.5])
def test_gamma_numbers_have_their_mean_and_variance(a):
    x = random.gamma(KEY, a, N)
    assert abs(x.mean() - a) < 4.5 * np.sqrt(a / N)
    assert abs(x.var() - a) < 4.5 * np.sqrt((2 * a**2 + 6 * a) / N)


def test_classes_are_drawn_along_any_axis():
    logits = np.where(np.arange(3)[:, None] == np.array([2, 0]), 0.0, -np.inf)  # each column has one class alone
    assert random.categorical(KEY, logits, axis=0).tolist() == [2, 0]
    assert random.categorical(KEY, logits.T).tolist() == [2, 0]


@pytest.mark.parametrize("shape", [(-2,), (2, -1), -3])
def test_a_shape_is_refused_as_numpy_does(shape):
    with pytest.raises(ValueError, match="negative dimensions are not allowed"):
        fad.random.normal(fad.random.key(0), shape)
    with pytest.raises(TypeError, match="integer"):
        fad.random.uniform(fad.random.key(0), (2.5,))


@pytest.mark.parametrize(
    ("draw", "error", "words"),
    [
        (lambda: random.key(1.5), TypeError, "integer"),
        (lambda: random.key(2**64), ValueError, "64 bits"),
        (lambda: random.fold_in(KEY, 1.5), TypeError, "whole number"),
        (lambda: random.fold_in(KEY, 2**70), TypeError, "whole number"),
        (lambda: random.bernoulli(KEY, 1j), TypeError, "real number"),
        (lambda: random.truncated_normal(KEY, 2.0, 1.0), ValueError, "lower <= upper"),
        (lambda: random.truncated_normal(KEY, np.zeros(2), np.array([1.0, -1.0]), (2,)), ValueError, "lower <= upper"),
        (lambda: random.gamma(KEY, -1.0), ValueError, "negative"),
        (lambda: random.beta(KEY, 1.0, -1.0), ValueError, "negative"),
        (lambda: random.dirichlet(KEY, np.array([1.0, -1.0])), ValueError, "negative"),
    ],
)
def test_what_no_distribution_or_key_has_is_refused(draw, error, words):
    pytest.importorskip("scipy")
    with pytest.raises(error, match=words):
        draw()
