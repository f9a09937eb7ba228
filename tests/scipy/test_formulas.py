"""What takes the place of SciPy's functions on a device gives SciPy's numbers; tried on the host, over wide ranges."""

import numpy as np
import pytest
import scipy.special as sc

from fad.scipy.special import faddeeva, formulas

rng = np.random.default_rng(0)


def wide(low, high, n=300):
    return np.exp(rng.uniform(np.log(low), np.log(high), n))


X, Y, Z, P = (wide(1e-3, 1e3) for _ in range(4))
SHAPE, OTHER = rng.uniform(0.2, 9.0, (2, 300))
PART = rng.uniform(1e-6, 1.0 - 1e-6, 300)
CASES = {
    "elliprf": (X, Y, Z),
    "elliprd": (X, Y, Z),
    "elliprg": (X, Y, Z),
    "elliprc": (X, np.where(np.arange(300) % 3, Y, -Y)),
    "elliprj": (X, Y, Z, P),
    "ellipe": (rng.uniform(-50.0, 0.999, 300),),
    "agm": (wide(1e-200, 1e200), wide(1e-200, 1e200)),
    "nrdtrimn": (PART, SHAPE, X),
    "nrdtrisd": (OTHER, PART, X),
    "gdtrix": (SHAPE, OTHER, PART),
    "stdtr": (SHAPE, rng.uniform(-30.0, 30.0, 300)),
    "betainccinv": (SHAPE, OTHER, PART),
    "powm1": (X, rng.uniform(-2.0, 2.0, 300)),
    "kn": (rng.integers(0, 20, 300), rng.uniform(0.1, 30.0, 300)),
}


@pytest.mark.parametrize("name", CASES)
def test_each_formula_gives_scipys_numbers(name):
    np.testing.assert_allclose(getattr(formulas, name)(*CASES[name]), getattr(sc, name)(*CASES[name]), rtol=2e-13)


def test_quantiles_have_the_probability_that_they_were_asked_for():
    # SciPy's own had five digits in places before 1.17.
    np.testing.assert_allclose(sc.gdtr(formulas.gdtria(PART, SHAPE, OTHER), SHAPE, OTHER), PART, rtol=1e-12)
    p = np.where(np.abs(PART - 0.5) < 1e-3, 0.3, PART)
    np.testing.assert_allclose(sc.stdtr(SHAPE, formulas.stdtrit(SHAPE, p)), p, rtol=1e-12)


def test_students_quantile_keeps_its_digits_at_the_middle():
    df, p = np.array([3.0, 5.5]), np.array([0.5 + 1e-8, 0.5 - 3e-9])
    density = np.exp(sc.gammaln(0.5 * df + 0.5) - sc.gammaln(0.5 * df)) / np.sqrt(np.pi * df)
    np.testing.assert_allclose(formulas.stdtrit(df, p), (p - 0.5) / density, rtol=1e-14)


PARAMETERS = {
    "eval_jacobi": (0.5, 1.5),
    "eval_sh_jacobi": (2.5, 1.5),
    "eval_gegenbauer": (1.3,),
    "eval_genlaguerre": (0.5,),
}


@pytest.mark.parametrize("name", [n for n in vars(formulas) if n.startswith("eval_")])
def test_polynomials_of_whole_degree_give_scipys_numbers(name):
    params = PARAMETERS.get(name, ())
    theirs = getattr(sc, name)
    n, x = rng.integers(0, 30, 300), rng.uniform(-1.0, 1.0, 300)
    size = [np.max(np.abs(theirs(k, *params, np.linspace(-1.0, 1.0, 101)))) for k in n]
    error = np.abs(getattr(formulas, name)(n, *params, x) - theirs(n, *params, x))
    assert np.max(error / size) < 3e-14


def _plane(rng, spread):
    size = 10.0 ** rng.uniform(-8, 3, 4000) if spread else rng.uniform(0, 12, 4000)
    z = size * np.exp(2j * np.pi * rng.random(4000))
    return z[z.imag > -20.0]  # below, it overflows


@pytest.mark.parametrize("spread", [False, True])
def test_faddeevas_function_by_quadrature_is_that_of_scipy_in_the_whole_plane(spread):
    z = _plane(np.random.default_rng(0), spread)
    with np.errstate(all="ignore"):
        found, expected = faddeeva.wofz(z), sc.wofz(z)
    inside = np.isfinite(expected)
    # Near its zeros, below the real axis, it is what is left of two numbers as large as exp(-z**2).
    size = np.maximum(np.abs(expected), np.where(z.imag < 0, 2.0 * np.exp(np.minimum(-(z * z).real, 700.0)), 0.0))
    error = np.abs(found - expected)[inside] / size[inside]
    assert np.all(error < 1e-13 * (1.0 + np.abs(z[inside]) ** 2 * (z.imag < 0)[inside]))  # exp(-z**2) loses so much


@pytest.mark.parametrize("name", ["dawsn", "erfi"])
def test_dawsons_integral_by_quadrature_keeps_all_digits_of_small_and_large_numbers(name):
    x = np.concatenate([np.geomspace(1e-300, 26.0, 3000), -np.geomspace(1e-9, 26.0, 300)])
    with np.errstate(all="ignore"):
        np.testing.assert_allclose(getattr(faddeeva, name)(x), getattr(sc, name)(x), rtol=2e-13)
        z = x[::7] * np.exp(0.7j)
        np.testing.assert_allclose(getattr(faddeeva, name)(z), getattr(sc, name)(z), rtol=1e-11)


def test_fresnels_integrals_and_voigts_profile_by_quadrature_are_those_of_scipy():
    x = np.concatenate([np.geomspace(1e-60, 40.0, 500), -np.geomspace(1e-9, 40.0, 100)])
    with np.errstate(all="ignore"):
        for name, at in (("fresnel", x), ("modfresnelp", x[:500]), ("modfresnelm", x[:500])):  # SciPy's err below 0
            for found, expected in zip(getattr(faddeeva, name)(at), getattr(sc, name)(at), strict=True):
                np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-15)
        for sigma, gamma in ((0.7, 0.2), (1.3, 0.0), (0.0, 0.4), (1e-3, 1e3)):
            found = faddeeva.voigt_profile(x, np.full_like(x, sigma), np.full_like(x, gamma))
            np.testing.assert_allclose(found, sc.voigt_profile(x, sigma, gamma), rtol=1e-12, atol=1e-300)
