"""Special functions: dispatch of SciPy's own ufuncs, edge cases without NaN, and errors."""

from __future__ import annotations

import functools
import itertools
import math
import subprocess
import sys

import numpy as np
import pytest

import fad
from fad.core.tracing.numpy_dispatch import UFUNCS
from fad.errors import DerivativeError
from fad.testing import check_grads

sc = pytest.importorskip("scipy.special")
stats = pytest.importorskip("scipy.stats")

import fad.scipy.special as ours  # noqa: E402
from fad.scipy import stats as densities  # noqa: E402
from fad.scipy.integrate import quad  # noqa: E402


def test_importing_fad_does_not_import_scipy_and_plain_ufuncs_work_nevertheless():
    program = (
        "import fad, sys; assert not any(m.split('.')[0] == 'scipy' for m in sys.modules)\n"
        "from scipy.special import gammaln\n"
        "assert abs(fad.grad(gammaln)(3.0) - 0.9227843350984671) < 1e-15"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_every_ufunc_of_scipy_has_a_rule_or_says_that_it_has_none():
    names = [n for n in dir(sc) if isinstance(getattr(sc, n), np.ufunc)]
    retired = {"sph_harm"}  # SciPy 1.17 has sph_harm_y alone
    assert not [n for n in names if getattr(sc, n) not in UFUNCS and n not in retired]
    assert len(names) > 200


def test_plain_arguments_give_what_scipy_gives():
    x = np.linspace(0.1, 3.0, 5)
    np.testing.assert_array_equal(ours.gammaln(x), sc.gammaln(x))
    np.testing.assert_array_equal(ours.zeta(x + 1.5, 2.0), sc.zeta(x + 1.5, 2.0))
    np.testing.assert_array_equal(ours.polygamma(2, x), sc.polygamma(2, x))
    np.testing.assert_allclose(ours.logsumexp(x), sc.logsumexp(x), rtol=1e-15)
    np.testing.assert_allclose(
        ours.spherical_jn(2, x, derivative=True), sc.spherical_jn(2, x, derivative=True), rtol=1e-12
    )
    np.testing.assert_allclose(ours.jvp(1.5, x, 3), sc.jvp(1.5, x, 3), rtol=1e-11)
    np.testing.assert_allclose(ours.sph_harm_y(3, 1, x, 0.3), sc.sph_harm_y(3, 1, x, 0.3), rtol=1e-14)
    np.testing.assert_allclose(ours.multigammaln(x + 2, 3), sc.multigammaln(x + 2, 3), rtol=1e-14)
    np.testing.assert_allclose(ours.comb(5.0, np.array([0.0, 2.0, 6.0])), [1.0, 10.0, 0.0])
    np.testing.assert_allclose(ours.perm(5.0, 2.0), 20.0)
    np.testing.assert_allclose(ours.factorial(np.array([4.0, -1.0])), [24.0, 0.0])


# --- edge cases -----------------------------------------------------------------------------------------------------


def test_x_log_y_at_zero():
    assert fad.grad(sc.xlogy, 1)(0.0, 0.0) == 0.0
    assert fad.grad(sc.xlog1py, 1)(0.0, -1.0) == 0.0
    assert fad.grad(sc.rel_entr, 1)(0.0, 0.0) == 0.0
    assert fad.grad(sc.kl_div, 1)(0.0, 0.5) == 1.0
    assert not np.isnan(fad.grad(lambda x: sc.kl_div(x, x))(0.0))


@pytest.mark.parametrize(("f", "mixed"), [(sc.xlogy, 0.5), (sc.xlog1py, 1 / 3), (sc.rel_entr, -0.5), (sc.kl_div, -0.5)])
def test_the_second_derivatives_of_x_log_y_at_zero_are_there(f, mixed):
    for outer, inner in itertools.product((fad.jacfwd, fad.jacrev), repeat=2):
        assert outer(inner(f, 1))(0.0, 2.0) == pytest.approx(mixed)


def test_densities_with_a_vanishing_exponent_have_second_derivatives():
    f = lambda a: densities.f.logpdf(0.7, a, 3.0)
    assert fad.grad(fad.grad(f))(2.0) == pytest.approx((fad.grad(f)(2.0001) - fad.grad(f)(1.9999)) / 2e-4, rel=1e-6)
    g = lambda x: fad.grad(lambda a: densities.gamma.logpdf(x, a))(1.0)
    assert fad.grad(g)(0.7) == pytest.approx(1 / 0.7)


def test_faddeevas_function_of_single_precision_is_scipys():
    x = np.array([0.3, 1.2], np.float32)
    assert fad.vjp(sc.wofz, x)[0].dtype == sc.wofz(x).dtype
    assert fad.grad(lambda x: np.sum(sc.wofz(x).imag))(x).dtype == np.float32


def test_entropy_at_zero_has_the_slope_it_has():
    with np.errstate(divide="ignore"):
        assert fad.grad(sc.entr)(0.0) == np.inf


def test_logsumexp_of_minus_infinities():
    x = np.array([-np.inf, 0.0, 1.0])
    gradient = fad.grad(ours.logsumexp)(x)
    np.testing.assert_allclose(gradient, [0.0, *sc.softmax(x[1:])])
    assert ours.logsumexp(np.full(3, -np.inf)) == -np.inf
    second = fad.hessian(ours.logsumexp)(x)
    assert np.isfinite(second).all()
    np.testing.assert_array_equal(second[0], 0.0)


def test_masked_softmax_has_no_nan():
    x = np.array([[0.3, -np.inf, 1.0], [0.0, 0.0, -np.inf]])
    jacobian = fad.jacobian(lambda x: ours.softmax(x, axis=1))(x)
    assert np.isfinite(jacobian).all()
    masked = fad.grad(lambda x: np.sum(ours.log_softmax(np.where(np.isfinite(x), x, -np.inf), axis=1)[0, ::2]))(x)
    assert np.isfinite(masked).all()


def test_weights_and_signs_of_logsumexp():
    x, b = np.array([0.3, 1.2, -0.4]), np.array([1.0, -2.0, 0.5])
    value, sign = ours.logsumexp(x, b=b, return_sign=True)
    wanted, wanted_sign = sc.logsumexp(x, b=b, return_sign=True)
    assert value == pytest.approx(wanted)
    assert sign == wanted_sign
    weights = b * np.exp(x) / np.sum(b * np.exp(x))
    np.testing.assert_allclose(fad.grad(lambda x: ours.logsumexp(x, b=b, return_sign=True)[0])(x), weights)


def test_log1p_next_to_its_pole_and_gammaln_of_a_large_number():
    eps = 1e-12
    assert fad.grad(sc.log1p)(-1 + eps) == pytest.approx(1 / eps, rel=1e-3)
    assert fad.grad(sc.gammaln)(1e12) == pytest.approx(np.log(1e12), rel=1e-12)


def test_derivatives_at_the_origin_are_the_limits():
    assert fad.grad(sc.j1)(0.0) == 0.5
    assert fad.grad(sc.i1)(0.0) == 0.5
    assert fad.grad(sc.exprel)(0.0) == 0.5
    assert fad.grad(fad.grad(sc.ellipk))(0.0) == pytest.approx(9 * np.pi / 64, rel=1e-12)
    assert fad.grad(fad.grad(sc.spence))(1.0) == pytest.approx(0.5)
    assert fad.grad(lambda x: ours.lambertw(x).real)(0.0) == 1.0
    assert fad.grad(lambda m: sc.ellipj(0.7, m)[0])(0.0) == pytest.approx(
        -0.25 * (0.7 - np.sin(0.7) * np.cos(0.7)) * np.cos(0.7)
    )


def test_gammainc_at_zero_does_not_move_with_its_order():
    gradient = fad.grad(sc.gammainc, (0, 1))(2.5, 0.0)
    assert gradient[0] == 0.0
    assert gradient[1] == 0.0


def test_spherical_harmonics_are_differentiable_at_the_pole():
    slope = fad.jvp(lambda t: ours.sph_harm_y(2, 1, t, 0.3), (0.0,), (1.0,))[1]
    assert slope == pytest.approx(-np.sqrt(15 / (8 * np.pi)) * np.exp(0.3j))


def test_spherical_harmonics_are_even_in_theta_and_zero_past_the_last_order():
    theta, away = np.array([-1.3, 0.4, 4.0]), np.array([1.3, 0.4, 2 * np.pi - 4.0])
    slope = lambda m, t: fad.jvp(lambda t: sc.sph_harm_y(2, m, t, 0.3), (t,), (np.ones(3),))[1]
    np.testing.assert_allclose(slope(1, theta), [-1.0, 1.0, -1.0] * slope(1, away), rtol=1e-12)
    np.testing.assert_array_equal(slope(3, theta), 0.0)


@pytest.mark.filterwarnings("ignore:.*integer")
@pytest.mark.parametrize(
    ("f", "given", "meant"), [(sc.kn, (0.6,), (0,)), (sc.yn, (0.6,), (0,)), (sc.bdtr, (2.5, 5.4), (2, 5)),
                              (sc.nbdtr, (2.5, 3.5), (2, 3)), (sc.expn, (0.5,), (0,))],
)  # fmt: skip
def test_fractional_counts_are_cut_in_the_derivative_too(f, given, meant):
    assert fad.grad(f, len(given))(*given, 0.7) == pytest.approx(fad.grad(f, len(meant))(*meant, 0.7), rel=1e-14)


# --- precision and shape --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["gammaln", "erf", "expit", "i0e", "ndtri"])
def test_single_precision_stays_single(name):
    x = np.array([0.2, 0.7], dtype=np.float32)
    assert fad.grad(lambda x: np.sum(getattr(sc, name)(x)))(x).dtype == np.float32


def test_a_quadrature_over_a_large_array_runs_in_pieces():
    a = np.linspace(0.5, 3.0, 50_000)
    whole = fad.grad(lambda a: np.sum(sc.gammainc(a, 2.0)))(a)
    np.testing.assert_allclose(whole[::5000], fad.grad(lambda a: np.sum(sc.gammainc(a, 2.0)))(a[::5000]), rtol=1e-13)


# --- errors ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "point"),
    [
        (lambda v: sc.jv(v, 1.0), 0.5),
        (lambda b: sc.hyp2f1(0.3, b, 1.2, 0.4), 0.5),
        (lambda n: sc.eval_legendre(n, 0.3), 2.0),
        (lambda k: sc.pdtr(k, 1.5), 2.0),
        (lambda n: ours.polygamma(n, 1.5), 2.0),
        (lambda q: sc.mathieu_cem(1.0, q, 30.0)[0], 2.0),
        (lambda x: sc.nctdtr(3.0, 0.5, x), 2.0),
    ],
)
def test_a_parameter_without_a_derivative_is_an_error_that_says_so(call, point):
    for transform in (fad.grad, lambda f: lambda x: fad.jvp(f, (x,), (1.0,))):
        with pytest.raises(DerivativeError, match="has no derivative that fad could give in its argument"):
            transform(call)(point)


def test_the_argument_is_differentiable_while_such_a_parameter_is_constant():
    v = 0.5
    assert fad.grad(lambda x: sc.jv(v, x))(1.0) == pytest.approx(sc.jvp(v, 1.0))
    assert fad.grad(lambda x: sc.jv(fad.stop_gradient(x), x))(1.0) == pytest.approx(sc.jvp(1.0, 1.0))


@pytest.mark.parametrize("name", ["jve", "yve", "ive"])
def test_scalings_that_are_not_holomorphic_are_refused_for_complex_arguments(name):
    with pytest.raises(DerivativeError, match="not complex-differentiable"):
        fad.grad(lambda z: np.real(getattr(sc, name)(1.0, z)))(1.0 + 0.5j)


def test_an_output_array_from_outside_is_refused():
    out = np.empty(2)
    with pytest.raises(TypeError, match="written into"):
        fad.grad(lambda x: np.sum(sc.betainc(1.0, 2.0, x, out=out)))(np.array([0.2, 0.4]))


def test_an_output_array_made_in_the_function_takes_the_result():
    x = np.array([0.2, 0.4])
    found = fad.grad(lambda x: np.sum(sc.betainc(1.0, 2.0, x, out=np.empty(2))))(x)
    np.testing.assert_allclose(found, fad.grad(lambda x: np.sum(sc.betainc(1.0, 2.0, x)))(x))


@pytest.mark.parametrize(
    ("call", "own"),
    [
        (sc.logsumexp, ours.logsumexp),
        (functools.partial(sc.polygamma, 1), functools.partial(ours.polygamma, 1)),
        (stats.norm.logpdf, fad.scipy.stats.norm.logpdf),
        (functools.partial(sc.sph_harm_y, 1, 1, 0.5), functools.partial(ours.sph_harm_y, 1, 1, 0.5)),
    ],
)
def test_functions_of_scipy_that_a_program_holds_have_the_derivatives_of_their_namesakes(call, own):
    slopes = [fad.grad(lambda x, f=f: np.sum(np.real(f(x))))(np.array([0.2, 0.7])) for f in (call, own)]
    np.testing.assert_allclose(*slopes, rtol=1e-14)


def test_a_name_that_scipy_has_and_fad_has_not_says_what_to_do():
    with pytest.raises(AttributeError, match="custom_jvp"):
        _ = ours.ellip_harm
    with pytest.raises(AttributeError, match="neither"):
        _ = ours.no_such_function


# --- compiled -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "function",
    [
        lambda x: sc.gammaln(x) + sc.erf(x),
        lambda x: sc.airy(x)[2] + sc.betainc(x, 2.0, 0.3),
        lambda x: sc.iv(x, 3.0 * x) + sc.elliprd(x, 1.0, 2.0),
        lambda x: ours.logsumexp(x) + ours.softmax(x),
    ],
)
def test_compiled_programs_give_the_same_on_other_arguments(function):
    gradient = fad.grad(lambda x: np.sum(function(x)))
    compiled = fad.jit(gradient)
    for factor in (1.0, 0.7, 9.0):
        x = factor * np.linspace(0.2, 2.0, 4)
        np.testing.assert_allclose(compiled(x), gradient(x), rtol=1e-13)


@pytest.mark.parametrize("name", ["jv", "yv"])
def test_the_order_of_a_bessel_function_is_refused_with_the_integral_to_write(name):
    with pytest.raises(DerivativeError, match=r"write it as an integral with fad\.scipy\.integrate\.quad"):
        fad.grad(lambda v: getattr(sc, name)(v, 1.3))(0.7)


@pytest.mark.parametrize("name", ["j", "y"])
@pytest.mark.parametrize(("v", "x"), [(0.7, 1.3), (2.5, 10.0), (0.0, 3.0), (-0.4, 0.8)])
def test_a_bessel_function_written_as_an_integral_has_a_derivative_in_its_order(name, v, x):
    mpmath = pytest.importorskip("mpmath")

    def by_integrals(v):
        def rising(t):
            return np.exp(-x * np.sinh(t) - v * t)

        if name == "j":
            waves = quad(lambda t: np.cos(v * t - x * np.sin(t)), 0.0, np.pi)[0]
            return (waves - np.sin(np.pi * v) * quad(rising, 0.0, 10.0)[0]) / np.pi
        waves = quad(lambda t: np.sin(x * np.sin(t) - v * t), 0.0, np.pi)[0]
        both = quad(lambda t: np.exp(v * t - x * np.sinh(t)) + np.cos(np.pi * v) * rising(t), 0.0, 10.0)[0]
        return (waves - both) / np.pi

    of = {"j": mpmath.besselj, "y": mpmath.bessely}[name]
    np.testing.assert_allclose(by_integrals(v), float(of(v, x)), rtol=1e-9)
    np.testing.assert_allclose(fad.grad(by_integrals)(v), float(mpmath.diff(lambda v: of(v, x), v)), rtol=1e-8)


@pytest.mark.parametrize(
    ("f", "point"),
    [
        # 0 for whole numbers k beyond 0 to n, where a factor of the quotient of gammas is 0 and its logarithm infinite
        *[(ours.binom, (n, k)) for n, k in [(2.0, 3.0), (2.0, 4.0), (0.0, 1.0), (5.0, -1.0), (5.0, -2.0), (3.3, -1.0)]],
        *[(ours.rgamma, (x,)) for x in (0.0, -2.0, -2.5)],
        *[(ours.erfcx, (x,)) for x in (-1.0, 13.0, 30.0)],
        # Cauchy's principal value
        *[(ours.elliprc, point) for point in [(0.5, -1.5), (2.0, -0.7)]],
        *[(lambda x, f=f: f(2, 3, 0.7, x)[0], (0.4,)) for f in (ours.pro_ang1, ours.obl_ang1, ours.obl_rad1)],
        (lambda x: ours.pro_rad1(2, 3, 0.7, x)[0], (1.4,)),
    ],
)
def test_first_and_second_derivatives_are_right_at_rare_points(f, point):
    check_grads(f, point, order=2)


def test_logsumexp_takes_signs_of_complex_numbers_weights_of_zero_and_axes_that_are_kept():
    x, b = np.array([[0.3, 1.2, -0.4], [2.0, 0.1, 0.7]]), np.array([[1.0, 0.0, -3.5], [0.0, 0.5, 2.0]])
    for keepdims in (False, True):
        given = {"axis": 1, "b": b, "keepdims": keepdims, "return_sign": True}
        for y in (x, x + 1j * x[:, ::-1]):
            found = fad.vjp(lambda y, given=given: ours.logsumexp(y, **given), y)[0]
            for f, w in zip(found, sc.logsumexp(y, **given), strict=True):
                assert np.shape(f) == np.shape(w)
                np.testing.assert_allclose(f, w, rtol=1e-12)
    with np.errstate(over="raise"):
        masked = fad.grad(lambda x: ours.logsumexp(x, b=np.array([0.0, 1.0, 1.0])))(np.array([800.0, 0.0, 0.0]))
    np.testing.assert_allclose(masked, [0.0, 0.5, 0.5])
    assert np.isnan(fad.vjp(lambda x: ours.logsumexp(x, b=-b), x)[0])


def test_softmax_of_large_numbers_does_not_overflow():
    with np.errstate(over="raise", invalid="raise"):
        value, pullback = fad.vjp(ours.softmax, np.array([1000.0, 1000.0, -1000.0]))
        np.testing.assert_allclose(value, [0.5, 0.5, 0.0])
        np.testing.assert_allclose(pullback(np.array([1.0, 0.0, 0.0]))[0], [0.25, -0.25, 0.0])


def _cauchy(x, gamma):
    return gamma / np.pi / (x * x + gamma * gamma)


def test_voigts_profile_of_no_width_is_cauchys_and_spreads_as_heat_does():
    at = np.array([0.3, 0.0, 0.5])
    wanted = fad.hessian(lambda v: _cauchy(v[0], v[2]))(at)
    wanted[1, 1] = wanted[0, 0]
    profile = lambda v: sc.voigt_profile(v[0], v[1], v[2])
    np.testing.assert_allclose(fad.grad(profile)(at), fad.grad(lambda v: _cauchy(v[0], v[2]))(at), rtol=1e-14)
    np.testing.assert_allclose(fad.hessian(profile)(at), wanted, rtol=1e-13)
    in_x = fad.grad(fad.grad(fad.grad(fad.grad(lambda x: _cauchy(x, 0.5)))))(0.3)
    in_sigma = fad.grad(fad.grad(fad.grad(fad.grad(lambda s: sc.voigt_profile(0.3, s, 0.5)))))(0.0)
    np.testing.assert_allclose(in_sigma, 3 * in_x, rtol=1e-12)
    np.testing.assert_allclose(fad.grad(sc.voigt_profile, 2)(2.0, 0.0, 0.0), _cauchy(2.0, 1.0) * 5 / 4, rtol=1e-14)


@pytest.mark.parametrize("a", [0.0, -1.0, -2.0, -3.0])
def test_pochhammers_symbol_has_the_slopes_of_its_polynomial_at_poles_of_gamma(a):
    def polynomial(a, m):
        y = 1.0 + 0.0 * a
        for k in range(m):
            y = y * (a + k)
        return y

    for m in range(6):
        f, g = lambda a, m=m: sc.poch(a, float(m)), lambda a, m=m: polynomial(a, m)
        for _ in range(2):
            f, g = fad.grad(f), fad.grad(g)
            np.testing.assert_allclose(f(a), g(a), rtol=1e-13, atol=1e-12)
    for m in (1.0, 2.0):  # 1 / ((a - 1) ... (a - m))
        down = fad.grad(lambda a, m=m: 1.0 / polynomial(a - m, int(m)))
        np.testing.assert_allclose(fad.grad(sc.poch)(a, -m), down(a), rtol=1e-13)
    half = lambda a: (sc.poch(a + 1e-6, 0.5) - sc.poch(a - 1e-6, 0.5)) / 2e-6
    np.testing.assert_allclose(fad.grad(sc.poch)(a, 0.5), half(a), rtol=1e-8)
    assert np.isnan(fad.grad(sc.poch, 1)(a, 0.0))  # it jumps


@pytest.mark.parametrize("a", [1e-8, -1e-8, 1e-3 - 2.0, 1e-15, 0.4])
def test_pochhammers_symbol_has_the_slopes_of_its_quotient_beside_poles_of_gamma(a):
    for n in (1, 2, 5):
        quotient = lambda a, n=n: 1.0 / np.prod(a - np.arange(1.0, n + 1.0))
        for order in (fad.grad, lambda f: fad.grad(fad.grad(f))):
            np.testing.assert_allclose(order(lambda a, n=n: sc.poch(a, -float(n)))(a), order(quotient)(a), rtol=1e-12)


@pytest.mark.parametrize(("name", "sign"), [("struve", -1), ("modstruve", 1)])
@pytest.mark.parametrize("order", [-1.0, 0.0, 1.0, 2.0, 3.0])
def test_struves_functions_have_the_derivatives_of_their_series_at_0(name, sign, order):
    """The series is the sum of sign^k (x/2)^(2k+v+1) / (gamma(k+3/2) gamma(k+v+3/2))."""
    f = lambda x: getattr(sc, name)(order, x)
    for n in range(1, 6):
        f, k = fad.grad(f), (n - order - 1) / 2
        term = sign**k / 2.0**n / sc.gamma(k + 1.5) / sc.gamma(k + order + 1.5) if k >= 0 and k == int(k) else 0.0
        np.testing.assert_allclose(f(0.0), math.factorial(n) * term, rtol=1e-13, atol=1e-15)


def test_the_other_result_may_have_an_infinite_slope():
    for f, slope in ((sc.sici, 1.0), (sc.shichi, 1.0), (sc.itj0y0, 1.0), (sc.it2i0k0, 0.0)):
        first = lambda x, f=f: f(x)[0]
        assert fad.grad(first)(0.0) == fad.jit(fad.grad(first))(0.0) == slope
        with np.errstate(divide="ignore"):  # that of the other
            assert fad.jvp(first, (0.0,), (1.0,))[1] == slope
    np.testing.assert_allclose(fad.grad(fad.grad(fad.grad(sc.it2struve0)))(0.0), 4 / (9 * np.pi), rtol=1e-14)


@pytest.mark.parametrize(
    ("f", "point"),
    [
        (sc.kolmogorov, (-0.7,)), (sc.kolmogorov, (0.0,)), (sc.tklmbda, (5.0, 0.3)), (sc.tklmbda, (-5.0, 0.3)),
        (sc.pdtrik, (0.05, 0.066)), (sc.bdtrik, (0.05, 14.7, 0.02)), (sc.nbdtrik, (0.08, 0.26, 0.9)),
        (sc.fdtridfd, (13.0, 0.09, 0.2)), (sc.stdtridf, (0.98, 2.0)), (sc.chndtrinc, (0.4, 3.5, 0.36)),
    ],
)  # fmt: skip
def test_what_has_come_to_its_end_does_not_move(f, point):
    """Distribution functions beyond their support, and SciPy's bound where an equation has no solution."""
    h = 1e-6
    for k, x in enumerate(point):
        moved = [f(*point[:k], x + s, *point[k + 1 :]) for s in (-h, h)]
        assert moved[0] == moved[1]
        if (f, k) != (sc.chndtrinc, 1):  # degrees of freedom have no derivative there
            assert fad.grad(f, k)(*point) == 0.0


def test_in_a_loop_each_step_takes_as_many_terms_as_it_needs():
    def of_order(v):
        total = 0.0
        for k in range(60):
            total = 0.5 * total + sc.ive(v, 1.0 + 5.0 * k + 0.0 * total)
        return total

    with fad.config.use(loops="capture"):
        assert fad.jit(fad.grad(of_order))(0.7) == pytest.approx(fad.grad(of_order)(0.7), rel=1e-12)


AT_AN_EDGE = {  # a function with an infinite slope, where that is, and a place inside
    "entr": (sc.entr, 0.0, 0.4), "xlogy": (lambda x: sc.xlogy(x, x), 0.0, 0.4),
    "xlog1py": (lambda x: sc.xlog1py(x, x), -1.0, 0.4), "rel_entr": (lambda x: sc.rel_entr(x, 1.3), 0.0, 0.4),
    "kl_div": (lambda x: sc.kl_div(x, 1.3), 0.0, 0.4), "logit": (sc.logit, 1.0, 0.4),
    "ndtri": (sc.ndtri, 0.0, 0.4), "erfinv": (sc.erfinv, -1.0, 0.4), "erfcinv": (sc.erfcinv, 2.0, 0.4),
    "gammaln": (sc.gammaln, 0.0, 0.4), "digamma": (sc.digamma, -2.0, 0.4), "cbrt": (sc.cbrt, 0.0, 0.4),
    "k0": (sc.k0, 0.0, 0.4), "y0": (sc.y0, 0.0, 0.4), "jv": (lambda x: sc.jv(0.5, x), 0.0, 0.4),
    "exp1": (sc.exp1, 0.0, 0.4), "ellipk": (sc.ellipk, 1.0, 0.4), "ellipe": (sc.ellipe, 1.0, 0.4),
    "boxcox": (lambda x: sc.boxcox(x, 0.5), 0.0, 0.4), "log1p": (sc.log1p, -1.0, 0.4),
    "betaln": (lambda x: sc.betaln(x, 2.0), 0.0, 0.4), "zeta": (lambda x: sc.zeta(3.0, x), 0.0, 0.4),
    "gammainc": (lambda x: sc.gammainc(0.5, x), 0.0, 0.4),
    "betainc": (lambda x: sc.betainc(0.5, 0.5, x), 1.0, 0.4),
}  # fmt: skip


@pytest.mark.parametrize("name", AT_AN_EDGE)
def test_what_is_written_over_or_not_read_takes_no_part_in_an_infinite_slope(name):
    function, edge, inside = AT_AN_EDGE[name]

    def write_over(x):
        r = function(x)
        r[0] = 1.0
        return np.sum(r)

    x = np.array([edge, inside])
    with np.errstate(all="ignore"):
        assert not np.isfinite(fad.grad(function)(edge))
        wanted = [0.0, fad.grad(function)(inside)]
        for f in (write_over, lambda x: np.sum(function(x)[1:])):
            for g in (fad.grad(f), fad.jit(fad.grad(f))):
                np.testing.assert_allclose(g(x), wanted, rtol=1e-12)
