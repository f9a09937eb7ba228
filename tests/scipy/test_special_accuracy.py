"""Derivatives of the special functions against mpmath's, computed with 30 digits: relative error below 1e-9."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError

mp = pytest.importorskip("mpmath")
sc = pytest.importorskip("scipy.special")

TOLERANCE = 1e-9
SMALL = (-2.7, -0.6, 0.4, 1.3, 3.1)
POSITIVE = (0.07, 0.6, 1.8, 4.3, 17.0)
UNIT = (0.04, 0.3, 0.62, 0.93)
ORDER = (0.4, 1.0, 2.7, 8.5)


def grid(*axes):
    return [tuple(p) for p in np.stack([a.ravel() for a in np.meshgrid(*axes, indexing="ij")], axis=-1)]


def normal(x):
    return mp.ncdf(x)


def inverse(function, start):
    return lambda y: mp.findroot(lambda t: function(t) - y, start(y))


def gammainc(a, x):
    return mp.gammainc(a, 0, x, regularized=True)


def gammaincc(a, x):
    return mp.gammainc(a, x, mp.inf, regularized=True)


def betainc(a, b, x):
    return mp.betainc(a, b, 0, x, regularized=True)


def student(df, t):
    tail = betainc(df / 2, mp.mpf(1) / 2, df / (df + t * t)) / 2
    return 1 - tail if t > 0 else tail


def boxcox(x, lmbda):
    return mp.expm1(lmbda * mp.log(x)) / lmbda if lmbda else mp.log(x)


def spence(z):
    return mp.polylog(2, 1 - z)


def ellipkinc(phi, m):
    return mp.ellipf(phi, m)


def struve_integral(x):
    return mp.quad(lambda t: mp.struveh(0, t), [0, x])


_FAR = [(z,) for z in (0.3 + 0.5j, 4 - 3j, 11.9 + 1j, 12 + 1j, 90 + 4j, -1e6 + 1e-2j, 20 - 9j, 5 + 15j)]

# name: (mpmath's function, points, operands to differentiate)
CASES = {
    "gamma": (mp.gamma, [(x,) for x in (-1.3, 0.2, 1.4, 5.7, 30.0)]),
    "gammaln": (mp.loggamma, [(x,) for x in (0.02, 0.7, 2.4, 40.0, 1e6)]),
    "rgamma": (mp.rgamma, [(x,) for x in (-3.0, -2.4, -1.0, 0.0, 0.4, 2.3, 9.0)]),
    "digamma": (mp.digamma, [(x,) for x in (-1.7, 0.02, 0.7, 2.4, 40.0)]),
    "beta": (mp.beta, [*grid(POSITIVE, ORDER), (1e8, 1.0), (1e12, 0.5), (1.5, 1e9), (25.0, 21.0)]),
    "betaln": (lambda a, b: mp.log(mp.beta(a, b)), [*grid(POSITIVE, ORDER), (1e8, 1.0), (1e12, 0.5), (3e5, 2e7)]),
    "poch": (mp.rf, [*grid(POSITIVE, ORDER), (1e8, 1.0), (1e12, -2.5), (80.0, 0.3)]),
    "binom": (mp.binomial, [(5.3, 2.1), (8.0, 3.0), (3.0, 5.0), (2.5, 4.5), (1e8, 1.0), (1e12, 2.0)]),
    "gammainc": (
        gammainc,
        grid((0.05, 0.6, 1.8, 9.3, 60.0), (0.01, 0.4, 2.5, 9.0, 60.0)) + grid((0.01, 0.4), (1e-60, 1e-15, 1e-7)),
    ),
    "gammaincc": (gammaincc, grid((0.05, 0.6, 1.8, 9.3, 60.0), (0.01, 0.4, 2.5, 9.0, 60.0))),
    "betainc": (
        betainc,
        grid((0.1, 0.6, 2.3, 30.0), (0.1, 0.8, 5.0, 30.0), UNIT) + grid((0.02, 3.0), (0.3, 9.0), (1e-30, 1e-14)),
    ),
    "erf": (mp.erf, [(x,) for x in SMALL]),
    "erfc": (mp.erfc, [(x,) for x in (*SMALL, 12.0)]),
    "erfcx": (lambda x: mp.exp(x * x) * mp.erfc(x), [(x,) for x in (*SMALL, 11.9, 12.1, 90.0)]),
    "erfi": (mp.erfi, [(x,) for x in SMALL]),
    "dawsn": (lambda x: mp.sqrt(mp.pi) / 2 * mp.exp(-x * x) * mp.erfi(x), [(x,) for x in (*SMALL, 11.9, 12.1, 90.0)]),
    "erfinv": (mp.erfinv, [(x,) for x in (-0.99, -0.3, 0.2, 0.9)]),
    "erfcinv": (lambda x: mp.erfinv(1 - x), [(x,) for x in (0.01, 0.3, 1.2, 1.9)]),
    "ndtr": (normal, [(x,) for x in (-9.0, *SMALL)]),
    "log_ndtr": (lambda x: mp.log(normal(x)), [(x,) for x in (-300.0, -20.0, *SMALL, 9.0)]),
    "ndtri": (lambda p: mp.sqrt(2) * mp.erfinv(2 * p - 1), [(x,) for x in UNIT]),
    "expit": (lambda x: 1 / (1 + mp.exp(-x)), [(x,) for x in (-40.0, *SMALL, 40.0)]),
    "logit": (lambda x: mp.log(x / (1 - x)), [(x,) for x in UNIT]),
    "log_expit": (lambda x: -mp.log(1 + mp.exp(-x)), [(x,) for x in (-40.0, *SMALL, 40.0)]),
    "exprel": (lambda x: mp.expm1(x) / x if x else mp.mpf(1), [(x,) for x in (-20.0, -1.49, -1e-3, 1e-8, 1.51, 6.0)]),
    "entr": (lambda x: -x * mp.log(x), [(x,) for x in POSITIVE]),
    "xlogy": (lambda x, y: x * mp.log(y), grid(SMALL, POSITIVE)),
    "xlog1py": (lambda x, y: x * mp.log1p(y), grid(SMALL, (-0.9, 0.2, 7.0))),
    "rel_entr": (lambda x, y: x * mp.log(x / y), grid(POSITIVE, POSITIVE)),
    "kl_div": (lambda x, y: x * mp.log(x / y) - x + y, [(0.3, 0.7), (2.0, 0.4), (1.0, 5.0)]),
    "pseudo_huber": (lambda d, r: d * d * (mp.sqrt(1 + (r / d) ** 2) - 1), grid((0.4, 2.0), (-3.0, 1e-3, 0.7))),
    "boxcox": (boxcox, grid((0.2, 1.1, 7.0), (-1.3, -1e-4, 1e-7, 0.4, 2.0))),
    "inv_boxcox": (lambda y, k: mp.exp(mp.log1p(k * y) / k), grid((-0.3, 0.5), (-1.1, 1e-4, 0.8))),
    "spence": (spence, [(x,) for x in (0.05, 0.6, 0.999, 1.2, 1.26, 8.0)]),
    "expi": (mp.ei, [(x,) for x in (-3.0, 0.3, 2.0, 9.0)]),
    "exp1": (mp.e1, [(x,) for x in (0.3, 2.0, 20.0)]),
    "zetac": (lambda s: mp.zeta(s) - 1, [(x,) for x in (-30.0, -15.1, -9.4, -2.0, -0.3, 0.5, 1.2, 2.0, 3.5, 12.0)]),
    "j0": (lambda x: mp.besselj(0, x), [(x,) for x in (0.0, 0.3, 2.0, 30.0)]),
    "j1": (lambda x: mp.besselj(1, x), [(x,) for x in (0.0, 0.3, 2.2, 30.0)]),
    "y0": (lambda x: mp.bessely(0, x), [(x,) for x in (0.3, 2.0, 30.0)]),
    "y1": (lambda x: mp.bessely(1, x), [(x,) for x in (0.3, 2.0, 30.0)]),
    "i0": (lambda x: mp.besseli(0, x), [(x,) for x in (0.0, 0.3, 2.0, 30.0)]),
    "i1": (lambda x: mp.besseli(1, x), [(x,) for x in (0.0, 0.3, 2.0, 30.0)]),
    "i0e": (lambda x: mp.besseli(0, x) * mp.exp(-abs(x)), [(x,) for x in (-3.0, 0.3, 2.0, 30.0)]),
    "k0": (lambda x: mp.besselk(0, x), [(x,) for x in (0.03, 0.3, 2.0, 30.0)]),
    "k1": (lambda x: mp.besselk(1, x), [(x,) for x in (0.03, 0.3, 2.0, 30.0)]),
    "jv": (mp.besselj, grid(ORDER, (0.3, 2.0, 17.0)), (1,)),
    "yv": (mp.bessely, grid(ORDER, (0.3, 2.0, 17.0)), (1,)),
    "hankel1": (mp.hankel1, grid(ORDER, (0.3, 2.0, 17.0)), (1,)),
    "iv": (mp.besseli, grid((-0.7, 0.0, *ORDER), (0.3, 2.0, 17.0))),
    "kv": (mp.besselk, grid((-0.7, 0.3, *ORDER), (0.3, 2.0, 17.0))),
    "kve": (lambda v, x: mp.besselk(v, x) * mp.exp(x), grid((0.3, *ORDER), (1e-3, 0.3, 17.0, 400.0))),
    "ive": (lambda v, x: mp.besseli(v, x) * mp.exp(-x), grid((0.3, 1.0, 8.5), (0.3, 17.0, 60.0))),
    "ber": (lambda x: mp.ber(0, x), [(x,) for x in (0.3, 2.0, 6.0)]),
    "bei": (lambda x: mp.bei(0, x), [(x,) for x in (0.3, 2.0, 6.0)]),
    "ker": (lambda x: mp.ker(0, x), [(x,) for x in (0.3, 2.0, 6.0)]),
    "kei": (lambda x: mp.kei(0, x), [(x,) for x in (0.3, 2.0, 6.0)]),
    "struve": (mp.struveh, grid((0.0, 1.0, 2.5), (0.3, 2.0, 8.0)), (1,)),
    "modstruve": (mp.struvel, grid((0.0, 1.0, 2.5), (0.3, 2.0, 8.0)), (1,)),
    "hyp0f1": (mp.hyp0f1, grid((0.7, 2.4), SMALL), (1,)),
    "hyp1f1": (mp.hyp1f1, grid((0.7, -2.0), (0.5, 2.4), SMALL), (2,)),
    "hyp2f1": (mp.hyp2f1, grid((0.7,), (1.2,), (1.9,), (-3.0, -0.4, 0.3, 0.8)), (3,)),
    "hyperu": (mp.hyperu, grid((0.7, 1.5), (0.4, 2.3), (0.3, 2.0, 5.0, 50.0)), (2,)),
    "ellipk": (mp.ellipk, [(m,) for m in (-4.0, 0.0, 1e-9, 0.4, 0.97)]),
    "ellipe": (mp.ellipe, [(m,) for m in (-4.0, 0.0, 1e-9, 0.4, 0.97)]),
    "ellipkinc": (ellipkinc, grid((-0.9, 0.4, 1.4, 5.0), (-3.0, 0.0, 0.6))),
    "ellipeinc": (mp.ellipe, grid((-0.9, 0.4, 1.4, 5.0), (-3.0, 0.0, 0.6))),
    "elliprc": (mp.elliprc, grid((0.2, 1.0, 6.0), (0.3, 1.0, 5.0))),
    "elliprf": (mp.elliprf, grid((0.2, 1.0), (0.3, 1.0), (1.0, 9.0))),
    "elliprd": (mp.elliprd, grid((0.2, 1.0), (0.3, 1.0), (1.0, 9.0))),
    "elliprg": (mp.elliprg, grid((0.2, 1.0), (0.3, 1.0), (1.0, 9.0))),
    "elliprj": (mp.elliprj, grid((0.2, 1.0), (0.3, 1.0), (1.0, 9.0), (0.4, 3.0))),
    "agm": (mp.agm, [(0.3, 2.0), (1.0, 1.0), (5.0, 5.001)]),
    "eval_legendre": (mp.legendre, [(n, x) for n in (0, 1, 4) for x in (-1.0, -0.3, 0.8)], (1,)),
    "eval_chebyt": (mp.chebyt, [(n, x) for n in (0, 1, 4) for x in (-0.9, -0.3, 0.8)], (1,)),
    "eval_chebyu": (mp.chebyu, [(n, x) for n in (0, 1, 4) for x in (-0.9, -0.3, 0.8)], (1,)),
    "eval_hermite": (mp.hermite, [(n, x) for n in (0, 1, 4) for x in (-0.9, 0.3)], (1,)),
    "eval_laguerre": (lambda n, x: mp.laguerre(n, 0, x), [(n, x) for n in (0, 1, 4) for x in (0.9, 2.3)], (1,)),
    "eval_gegenbauer": (mp.gegenbauer, [(n, 1.3, x) for n in (0, 1, 4) for x in (-0.9, 0.3)], (2,)),
    "eval_jacobi": (mp.jacobi, [(n, 0.5, 1.5, x) for n in (0, 1, 4) for x in (-0.9, 0.3)], (3,)),
    "chdtr": (lambda v, x: gammainc(v / 2, x / 2), grid((0.7, 4.0), (0.5, 6.0))),
    "gdtr": (lambda a, b, x: gammainc(b, a * x), grid((0.7, 2.0), (0.6, 3.0), (0.4, 2.0))),
    "fdtr": (lambda n, d, x: betainc(n / 2, d / 2, n * x / (n * x + d)), grid((1.5, 6.0), (2.5, 9.0), (0.4, 2.0))),
    "stdtr": (student, grid((0.04, 0.8, 3.0, 40.0), (-1e6, -4.0, -0.3, 0.3, 2.0, 1e3))),
    "owens_t": (
        lambda h, a: mp.quad(lambda t: mp.exp(-h * h * (1 + t * t) / 2) / (1 + t * t), [0, a]) / (2 * mp.pi),
        grid((0.2, 1.4), (0.4, 2.0)),
    ),
    "voigt_profile": (
        lambda x, s, g: mp.re(mp.exp(-(((x + 1j * g) / s) ** 2) / 2) * mp.erfc(-1j * (x + 1j * g) / (s * mp.sqrt(2))))
        / (s * mp.sqrt(2 * mp.pi)),
        grid((-0.7, 0.02, 2.0), (1e-9, 1e-4, 0.01, 0.17, 0.6, 1.5), (1e-3, 0.3, 1.1)),
    ),
    "wofz": (lambda z: mp.exp(-z * z) * mp.erfc(-1j * z), [*_FAR, (3e4j,), (1e4 + 3e4j,)]),
    "dawsn of complex numbers": (lambda z: mp.sqrt(mp.pi) / 2 * mp.exp(-z * z) * mp.erfi(z), _FAR),
    "erfcx of complex numbers": (lambda z: mp.exp(z * z) * mp.erfc(z), [(-1j * z,) for (z,) in _FAR]),
}  # fmt: skip


@pytest.mark.parametrize("name", sorted(CASES))
def test_first_derivatives_equal_mpmaths(name):
    function, points, *rest = CASES[name]
    ufunc = getattr(sc, name.split()[0])
    columns = [np.array(c) for c in zip(*points, strict=True)]
    operands = rest[0] if rest else range(len(columns))
    with mp.workdps(30):
        for k in operands:
            x = columns[k]
            found = fad.jvp(lambda x, k=k: ufunc(*columns[:k], x, *columns[k + 1 :]), (x,), (np.ones_like(x),))[1]
            wanted = [complex(partial(function, p, k)) for p in points]
            assert_close(found, np.array(wanted), points)


def partial(function, point, k):
    kind = mp.mpc if isinstance(point[k], complex) else mp.mpf
    point = [kind(v) if not isinstance(v, int) else v for v in point]
    h = mp.mpf(10) ** -10 * min(1, abs(point[k]) or 1)
    return mp.diff(lambda t: function(*point[:k], t, *point[k + 1 :]), point[k], h=h)


def assert_close(found, wanted, points):
    error = np.abs(found - wanted) / np.maximum(np.abs(wanted), 1e-300)
    error[np.abs(found - wanted) < 1e-15 * np.abs(wanted).max()] = 0.0  # zeros of the derivative itself
    worst = int(np.argmax(error))
    assert error[worst] < TOLERANCE, f"at {points[worst]}: {found[worst]} instead of {wanted[worst]}"


@pytest.mark.parametrize("s", [1.3, 2.0, 5.5])
@pytest.mark.parametrize("q", [0.3, 1.0, 7.5])
def test_hurwitz_zeta_is_differentiable_in_both_arguments(s, q):
    from fad.scipy.special import zeta

    in_s, in_q = fad.grad(zeta, argnums=(0, 1))(s, q)
    with mp.workdps(30):
        assert abs(in_s / float(mp.diff(lambda t: mp.zeta(t, q), s, h=mp.mpf(10) ** -10)) - 1) < TOLERANCE
        assert abs(in_q / float(-s * mp.zeta(s + 1, q)) - 1) < TOLERANCE


@pytest.mark.parametrize(
    ("name", "forward", "point", "solved"),
    [
        ("gammaincinv", "gammainc", (2.3, 0.4), 1),
        ("gammainccinv", "gammaincc", (2.3, 0.4), 1),
        ("betaincinv", "betainc", (2.3, 1.4, 0.4), 2),
        ("stdtrit", "stdtr", (4.3, 0.2), 1),
        ("gdtrix", "gdtr", (1.3, 2.0, 0.4), 2),
        ("fdtri", "fdtr", (3.0, 5.0, 0.4), 2),
    ],
)
def test_inverses_undo_their_functions_to_second_order(name, forward, point, solved):
    """If G inverts F, then F(params, G(params, p)) = p for all params: every derivative of the left side is known."""
    outer, inner = getattr(sc, forward), getattr(sc, name)

    def identity(*xs):
        return outer(*xs[:solved], inner(*xs))

    n = len(point)
    gradient = fad.grad(identity, argnums=tuple(range(n)))(*point)
    np.testing.assert_allclose(gradient, [0.0] * (n - 1) + [1.0], atol=1e-10)
    rows = fad.hessian(identity, argnums=tuple(range(n)))(*point)
    np.testing.assert_allclose(np.array(rows, dtype=float), np.zeros((n, n)), atol=1e-8)


def test_stdtridf_has_the_second_derivatives_of_an_inverse_function():
    def solved(p, t, near):
        def distance(df):
            return 1 - mp.betainc(df / 2, mp.mpf(1) / 2, 0, df / (df + t * t), regularized=True) / 2 - p

        return mp.findroot(distance, near)

    for p, t in ((0.94, 2.1), (0.86, 2.0), (0.949, 2.22)):
        rows = fad.hessian(lambda x: sc.stdtridf(x[0], x[1]))(np.array([p, t]))
        with mp.workdps(40):
            near, h = mp.mpf(float(sc.stdtridf(p, t))), mp.mpf(10) ** -9
            f = lambda i, j, p=p, t=t, near=near, h=h: solved(mp.mpf(p) + i * h, mp.mpf(t) + j * h, near)
            middle = f(0, 0)
            in_p, in_t = (f(1, 0) - 2 * middle + f(-1, 0)) / h**2, (f(0, 1) - 2 * middle + f(0, -1)) / h**2
            mixed = (f(1, 1) - f(1, -1) - f(-1, 1) + f(-1, -1)) / (4 * h * h)
        np.testing.assert_allclose(rows, np.array([[in_p, mixed], [mixed, in_t]], dtype=float), rtol=1e-10)


@pytest.mark.parametrize("q", [0.1, 3.0, -7.0])
@pytest.mark.parametrize("m", [1, 2, 5])
@pytest.mark.parametrize("name", ["mathieu_a", "mathieu_b"])
def test_characteristic_values_of_mathieus_equation_have_derivatives_of_any_order(name, m, q):
    value = lambda q: getattr(sc, name)(float(m), q)
    with mp.workdps(40):
        h = mp.mpf(10) ** -7
        points = [_characteristic_value(m, q + i * h, name == "mathieu_a", mp.mpf(value(q))) for i in range(-2, 3)]
        a, b, c, d, e = points
        wanted = [(d - b) / (2 * h), (d - 2 * c + b) / h**2, (e - 2 * d + 2 * b - a) / (2 * h**3)]
    for order in range(3):
        value = fad.grad(value)
        np.testing.assert_allclose(value(q), float(wanted[order]), rtol=1e-10)


def _characteristic_value(m, q, cosines, near):
    """Solve the continued fraction of the recurrence of Fourier's coefficients (DLMF 28.4)."""
    odd = m % 2
    squares = [mp.mpf(2 * k + (1 if odd else 0 if cosines else 2)) ** 2 for k in range(60)]
    if odd:
        squares[0] += q if cosines else -q
    couplings = [q * q * (2 if k == 0 and cosines and not odd else 1) for k in range(59)]

    def pivot(x):
        d = squares[-1] - x
        for square, coupling in zip(squares[-2::-1], couplings[::-1], strict=True):
            d = square - x - coupling / d
        return d

    return mp.findroot(pivot, (near, near + mp.mpf(10) ** -9), tol=mp.mpf(10) ** -60, verify=False)


def test_characteristic_values_of_many_orders_are_differentiated_together_and_with_jit():
    orders, q = np.array([0.0, 1.0, 12.0, 30.0]), np.array([0.3, 40.0, 0.2, 0.1])
    pull = fad.jit(lambda q: fad.vjp(lambda q: sc.mathieu_a(orders, q), q)[1](np.ones(4))[0])
    for _ in range(2):
        found = pull(q)
        single = [fad.grad(lambda q, m=m: sc.mathieu_a(m, q))(x) for m, x in zip(orders, q, strict=True)]
        np.testing.assert_allclose(found, single, rtol=1e-13)
        np.testing.assert_allclose(
            found[2:], [q[2] / (12.0**2 - 1.0), q[3] / (30.0**2 - 1.0)], rtol=1e-4
        )  # DLMF 28.6.15
        q = 1.01 * q
    with pytest.raises(DerivativeError, match="orders up to 4000"):
        fad.grad(lambda q: sc.mathieu_a(1e5, q))(1.0)


def test_the_second_derivative_of_gammainc_in_its_order_is_the_derivative_of_the_first():
    second = fad.grad(fad.grad(sc.gammainc))
    for a, x in [(0.6, 0.3), (2.4, 5.0), (9.0, 7.0)]:
        with mp.workdps(40):
            wanted = float(mp.diff(lambda t, x=x: gammainc(t, x), a, 2, h=mp.mpf(10) ** -10))
        assert abs(second(a, x) - wanted) < 1e-8 * abs(wanted)


@pytest.mark.parametrize("a", [1e-3, 0.05, 1.0, 50.0, 1e4])
def test_the_order_of_gammainc_keeps_its_digits_in_both_tails_and_for_extreme_orders(a):
    for shift in (-4.0, -1.0, -0.01, 0.5, 3.0):
        x = max(a + shift * np.sqrt(a), 1e-8)
        with mp.workdps(50):
            wanted = float(mp.diff(lambda t, x=x: gammainc(t, x), a, h=mp.mpf(10) ** -15 * a))
        assert fad.grad(sc.gammainc)(a, x) == pytest.approx(wanted, rel=TOLERANCE)


@pytest.mark.parametrize("a", [0.01, 2.0, 1000.0])
@pytest.mark.parametrize("b", [0.01, 3.0, 1000.0])
def test_the_parameters_of_betainc_keep_their_digits_in_both_tails(a, b):
    mean, deviation = a / (a + b), np.sqrt(a * b / (a + b + 1)) / (a + b)
    for shift in (-3.0, -0.1, 1.0, 3.0):
        x = mean + shift * deviation
        if 1e-6 < x < 1 - 1e-6:
            with mp.workdps(50):
                in_a = float(mp.diff(lambda t, x=x: betainc(t, b, x), a, h=mp.mpf(10) ** -15 * a))
                in_b = float(mp.diff(lambda t, x=x: betainc(a, t, x), b, h=mp.mpf(10) ** -15 * b))
            assert fad.grad(sc.betainc, (0, 1))(a, b, x) == (
                pytest.approx(in_a, rel=TOLERANCE), pytest.approx(in_b, rel=TOLERANCE),
            )  # fmt: skip


@pytest.mark.parametrize("v", [0.01, 3.0, 25.0, 100.0])
@pytest.mark.parametrize("x", [0.1, 2.0, 30.0])
def test_the_orders_of_k_and_i_keep_their_digits(v, x):
    with mp.workdps(40):
        in_k = float(mp.diff(lambda t: mp.besselk(t, x) * mp.exp(x), v, h=mp.mpf(10) ** -15))
        in_i = float(mp.diff(lambda t: mp.besseli(t, x) * mp.exp(-x), v, h=mp.mpf(10) ** -15))
    assert fad.grad(sc.kve)(v, x) == pytest.approx(in_k, rel=TOLERANCE)
    assert fad.grad(sc.ive)(v, x) == pytest.approx(in_i, rel=TOLERANCE)


def first_and_second(f, x):
    """Return the two derivatives of a real or complex function of one number."""
    first = lambda x: fad.jvp(f, (x,), (1.0,))[1]
    return first(x), fad.jvp(first, (x,), (1.0,))[1]


@pytest.mark.parametrize("x", [-5.0, -1.5, -0.3, 0.0, 0.4, 1.7, 6.0])
def test_integrals_of_airy_functions_have_exact_derivatives_though_scipys_values_lose_digits(x):
    integrands = [mp.airyai, mp.airybi, lambda t: mp.airyai(-t), lambda t: mp.airybi(-t)]
    for k, integrand in enumerate(integrands):
        found = first_and_second(lambda x, k=k: sc.itairy(x)[k], x)
        wanted = float(integrand(x)), float(mp.diff(integrand, x))
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=1e-14)


@pytest.mark.parametrize("x", [-4.0, -0.5, 0.0, 0.6, 3.0])
@pytest.mark.parametrize("sign", [1, -1])
def test_modified_fresnel_integrals_have_exact_derivatives_on_both_sides_though_scipys_first_value_has_not(x, sign):
    turn = mp.exp(sign * 1j * mp.pi / 4)
    rest = lambda t: mp.sqrt(mp.pi) / 2 * turn - mp.quad(lambda u: mp.exp(sign * 1j * u * u), [0, t])
    scaled = lambda t: rest(t) / mp.sqrt(mp.pi) * mp.exp(-sign * 1j * t * t) / turn
    name = "modfresnelp" if sign > 0 else "modfresnelm"
    for k, function in enumerate((rest, scaled)):
        found = first_and_second(lambda x, k=k: getattr(sc, name)(x)[k], x)
        wanted = complex(mp.diff(function, x)), complex(mp.diff(function, x, 2))
        np.testing.assert_allclose(found, wanted, rtol=TOLERANCE, atol=1e-10)


@pytest.mark.parametrize(("n", "d"), [(5, 0.0317), (5, 0.33), (30, 0.077), (30, 0.6), (1000, 0.0317)])
def test_smirnovs_distribution_has_second_derivatives_by_its_sum(n, d):
    def tail(d):
        last = int(mp.floor(n * (1 - d)))
        term = lambda j: mp.binomial(n, j) * (d + mp.mpf(j) / n) ** (j - 1) * (1 - d - mp.mpf(j) / n) ** (n - j)
        return d * mp.fsum(term(j) for j in range(last + 1))

    with mp.workdps(40):
        wanted = mp.diff(tail, mp.mpf(d), 2, h=mp.mpf(10) ** -12)
    found = fad.grad(fad.grad(lambda d: sc.smirnov(n, d)))(d)
    np.testing.assert_allclose(found, float(wanted), rtol=TOLERANCE)
    y = sc.smirnov(n, d)
    back = fad.grad(fad.grad(lambda p: sc.smirnovi(n, p)))(y)  # the second derivative of an inverse function
    np.testing.assert_allclose(back, -found / fad.grad(lambda d: sc.smirnov(n, d))(d) ** 3, rtol=1e-7)
