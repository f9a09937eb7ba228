"""The mathematical functions of native code: accuracy over their whole range, and NumPy's special values."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import fad
import fad.scipy.special as fs
from fad.compile.codegen.llvm import loop_nest, simd
from fad.compile.codegen.llvm.math.catalogue import OF_EXPONENTS, REAL, TYPED
from fad.compile.ir.expressions import POLYNOMIALS, SHORT
from fad.compile.targets.select import using
from fad.nn.functional import normal_cdf

pytest.importorskip("llvmlite")
mpmath = pytest.importorskip("mpmath")
mp = mpmath.mp

RNG = np.random.default_rng(0)


def exact_cdf(v):
    return mpmath.erfc(-v / mpmath.sqrt(2)) / 2


def near(low=0.0, width=3.0, n=200):
    """Numbers of all sizes around `low`."""
    return low + RNG.uniform(-1.0, 1.0, n) * width * 10.0 ** RNG.uniform(-12, 0, n)


def wide(low=-300, high=300, n=200):
    return 10.0 ** RNG.uniform(low, high, n)


def between(low, high, n=400):
    return RNG.uniform(low, high, n)


# name -> (function, the same in mpmath, arguments)
ONE = {
    "exp": (np.exp, mpmath.exp, (between(-745, 709.7), near())),
    "exp2": (np.exp2, lambda v: mpmath.mpf(2) ** v, (between(-1074, 1023.9), near())),
    "expm1": (np.expm1, mpmath.expm1, (between(-40, 709.7), near())),
    "log": (np.log, mpmath.log, (between(1e-9, 9.0), near(1.0, 0.1), wide(-320, 308))),
    "log2": (np.log2, lambda v: mpmath.log(v, 2), (between(1e-9, 9.0), near(1.0, 0.1), wide(-320, 308))),
    "log10": (np.log10, lambda v: mpmath.log(v, 10), (between(1e-9, 9.0), near(1.0, 0.1), wide(-320, 308))),
    "log1p": (np.log1p, mpmath.log1p, (between(-1 + 1e-16, 9.0), near(0.0, 0.3), wide(0, 308))),
    "sin": (np.sin, mpmath.sin, (between(-100, 100), between(-1e5, 1e5), wide(5, 300), near())),
    "cos": (np.cos, mpmath.cos, (between(-100, 100), between(-1e5, 1e5), wide(5, 300), near())),
    "tan": (np.tan, mpmath.tan, (between(-100, 100), between(-1e5, 1e5), wide(5, 300), near())),
    "arcsin": (np.arcsin, mpmath.asin, (between(-1, 1), near(0, 0.5), -near(1, 0.5, 50).clip(-1, 1))),
    "arccos": (np.arccos, mpmath.acos, (between(-1, 1), near(0, 0.5), near(1, 0.5).clip(-1, 1))),
    "arctan": (np.arctan, mpmath.atan, (between(-30, 30), near(), wide())),
    "sinh": (np.sinh, mpmath.sinh, (between(-710, 710), between(-30, 30), near())),
    "cosh": (np.cosh, mpmath.cosh, (between(-710, 710), between(-30, 30), near())),
    "tanh": (np.tanh, mpmath.tanh, (between(-20, 20), near())),
    "arcsinh": (np.arcsinh, mpmath.asinh, (between(-30, 30), near(), wide(-300, 308))),
    "arccosh": (np.arccosh, mpmath.acosh, (between(1, 30), near(1.0).clip(1), wide(0, 308))),
    "arctanh": (np.arctanh, mpmath.atanh, (between(-1, 1), near(0, 0.5), near(1, 0.1).clip(-1, 1 - 1e-16))),
    "cbrt": (np.cbrt, lambda v: mpmath.sign(v) * mpmath.cbrt(abs(v)), (between(-30, 30), wide(-320, 308), -wide())),
    "sqrt": (np.sqrt, mpmath.sqrt, (between(0, 30), wide(-320, 308))),
    "erf": (fs.erf, mpmath.erf, (between(-6, 6), between(0.8, 0.9), near())),
    "erfc": (fs.erfc, mpmath.erfc, (between(-6, 27.2), between(0.4, 0.9), near())),
    "ndtr": (fs.ndtr, exact_cdf, (between(-38, 9), between(-1.3, 1.3), near())),
    "normal_cdf": (normal_cdf, exact_cdf, (between(-38, 9), near())),
}
TWO = {
    "power": (np.power, mpmath.power, (
        (between(0, 10), between(-30, 30)), (wide(), between(-1, 1, 200)), (near(1.0, 0.1), between(-500, 500, 200)),
        (between(0.5, 2), between(-1000, 1000)), (-between(0, 10, 100), np.arange(100.0) - 50),
    )),
    "arctan2": (np.arctan2, mpmath.atan2, ((RNG.normal(size=400), RNG.normal(size=400)), (wide(), -wide()))),
    "hypot": (np.hypot, mpmath.hypot, ((RNG.normal(size=400), RNG.normal(size=400)), (wide(), wide()))),
    "logaddexp": (np.logaddexp, lambda a, b: mpmath.log(mpmath.exp(a) + mpmath.exp(b)), (
        (between(0, 30), between(-30, 30)), (near(0, 30, 400), np.zeros(400)),  # the second is softplus
    )),
}  # fmt: skip
ALL = {**{n: (f, m, [(x,) for x in xs]) for n, (f, m, xs) in ONE.items()}, **TWO}
# SciPy's values are these many units off, so it cannot say what is right there.
LOOSE = {"erf": 1e-15, "erfc": 1e-12, "ndtr": 1e-11, "normal_cdf": 1e-11}
HALVES = (-0.5, 1.5, -1.5, 2.5, -3.5, 10.5)
SPECIAL = [0.0, 0.3, 0.5, 1.0, 2.0, 3.0, 1e308, 1e-310, 5e-324, 709.9, 710.9, 711.2, 745.2, 800.0, 1e6, 1e22, np.inf]
SPECIAL = np.array([*SPECIAL, 2.0**-30, 2.0**-60, *[-v for v in SPECIAL], np.nan])


def compiled(f, *args):
    with using("llvm"), np.errstate(all="ignore"):
        fast = fad.jit(f)
        fast(*args)
        y = fast(*args)
    (signature,) = fast._signatures.values()
    assert signature.paths[0].program.fallbacks == []
    return y


def ulps(f, xs, y):
    worst = 0.0
    with mpmath.workprec(200):
        for *a, b in zip(*[x.tolist() for x in xs], y.tolist(), strict=True):
            t = f(*[mpmath.mpf(v) for v in a])
            if t != 0 and abs(t) < mpmath.mpf(1.7e308):
                worst = max(worst, float(abs(t - mpmath.mpf(b)) / float(np.spacing(abs(float(t))))))
    return worst


@pytest.mark.parametrize("name", ALL)
def test_a_function_is_within_two_ulp_in_double_precision(name):
    f, exact, sets = ALL[name]
    xs = [np.concatenate(x) for x in zip(*sets, strict=True)]
    assert ulps(exact, xs, compiled(f, *xs)) <= 2.0


def every_exponent(n, seed):
    """Single-precision numbers of either sign and every exponent, subnormal and infinite ones and NaN included."""
    r = np.random.default_rng(seed)
    mantissas = np.concatenate([[0, 1, 2**22, 2**23 - 1], r.integers(0, 2**23, n - 4)]).astype(np.uint32)
    return ((np.arange(512, dtype=np.uint32)[:, None] << 23) | mantissas).reshape(-1).view(np.float32)


@pytest.mark.parametrize("name", ALL)
def test_a_function_is_within_one_ulp_in_single_precision(name):
    f, _, sets = ALL[name]
    xs = [every_exponent(128, k) for k in range(len(sets[0]))]
    if len(xs) == 2:
        xs[1] = np.random.default_rng(5).permutation(xs[1])
        with np.errstate(over="ignore"):
            drawn = [np.concatenate(x).astype(np.float32) for x in zip(*sets, strict=True)]
        xs = [np.concatenate([x, more]) for x, more in zip(xs, drawn, strict=True)]
    y = compiled(f, *xs)
    with np.errstate(all="ignore"):
        wanted = f(*[x.astype(np.float64) for x in xs])
        single = wanted.astype(np.float32)
        ok = np.isfinite(single)
        off = np.abs(y[ok] - wanted[ok]) / np.spacing(np.abs(single[ok])).astype(float)
    assert y.dtype == np.float32
    # the difference of near equal numbers: rounded in double precision, both here and in what is compared
    assert off.max() <= 1.0
    np.testing.assert_array_equal(np.isnan(y), np.isnan(single))
    np.testing.assert_array_equal(y[np.isinf(single)], single[np.isinf(single)])


@pytest.mark.parametrize("name", ALL)
def test_special_values_are_numpys(name):
    f, _, sets = ALL[name]
    xs = [SPECIAL] if len(sets[0]) == 1 else [v.reshape(-1) for v in np.meshgrid(SPECIAL, SPECIAL)]
    with np.errstate(all="ignore"):
        wanted = f(*xs)
    got = compiled(f, *xs)
    np.testing.assert_allclose(got, wanted, rtol=LOOSE.get(name, 1e-15), atol=0)
    real = ~np.isnan(wanted)
    np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(wanted[real]))


DOUBLES = st.floats(width=64)


@pytest.mark.parametrize("name", ALL)
def test_any_doubles_give_what_mpmath_gives(name):
    f, exact, sets = ALL[name]
    with using("llvm"):
        fast = fad.jit(f)

        @given(st.lists(st.tuples(*[DOUBLES] * len(sets[0])), min_size=8, max_size=8))
        def holds(rows):
            xs = [np.array(x) for x in zip(*rows, strict=True)]
            with np.errstate(all="ignore"):
                wanted, got = f(*xs), fast(*xs)
            np.testing.assert_array_equal(np.isnan(got), np.isnan(wanted))
            with mpmath.workprec(200):
                for row, y, z in zip(rows, got.tolist(), wanted.tolist(), strict=True):
                    if not np.isfinite(z) or not all(np.isfinite(row)):
                        assert y == z or (y != y and z != z)
                    elif name == "logaddexp" or 0.0 in row:  # a sum that cancels is no better than NumPy's
                        assert abs(y - z) <= 1e-13 * abs(z)
                    elif max(map(abs, row)) < 1e30:
                        t = exact(*[mpmath.mpf(v) for v in row])
                        assert abs(t - mpmath.mpf(y)) <= 2 * mpmath.mpf(float(np.spacing(abs(float(t)))))

        holds()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_powers_with_constant_exponents_are_numpys(dtype):
    x = np.concatenate([RNG.uniform(-5.0, 5.0, 50), 10.0 ** RNG.uniform(-300, 300, 50), SPECIAL])
    for exponent in (0.0, 1.0, 2.0, 3.0, 4.0, -1.0, -2.0, -3.0, 7.0, 12.0, 64.0, -64.0, 65.0, 0.5, *HALVES, 1.7, 1 / 3):
        with np.errstate(all="ignore"):
            given = x.astype(dtype)
            wanted = given**exponent
        got = compiled(lambda x, p=exponent: x**p, given)
        np.testing.assert_allclose(got, wanted, rtol=4e-16 if dtype is np.float64 else 2e-7, atol=np.finfo(dtype).tiny)
        real = ~np.isnan(wanted)
        np.testing.assert_array_equal(np.signbit(got[real]), np.signbit(wanted[real]))


@pytest.mark.parametrize("exponent", [4, 5, 7, 12, 33, 64, -2, -3, -12, *HALVES])
def test_powers_by_products_are_rounded_once(exponent):
    size = min(250 / abs(exponent), 300)
    x = np.concatenate([RNG.uniform(0.1, 3.0, 300), 10.0 ** RNG.uniform(-size, size, 300)])
    y = compiled(lambda x: x**exponent, x)
    with mpmath.workprec(2000):
        for a, b in zip(x.tolist(), y.tolist(), strict=True):
            assert abs(mpmath.mpf(a) ** exponent - mpmath.mpf(b)) <= 0.53 * mpmath.mpf(float(np.spacing(b)))


def test_loops_of_scalars_for_machines_of_other_registers_are_as_right(monkeypatch):
    widths = []
    module = loop_nest._text
    monkeypatch.setattr(simd, "register_bytes", lambda: 0)
    monkeypatch.setattr(loop_nest, "_text", lambda kernel, n: widths.append(n) or module(kernel, n))

    def f(x):
        y = np.sin(x) - 0.37 * np.cos(x)
        return y, np.sum(np.tan(x), -1)

    near = np.random.default_rng(1).uniform(-3.0, 3.0, (5, 37))
    far = np.where(near > 2.5, 1e17 * near, near)  # where polynomials are no longer good
    for x in (near, far):
        for found, wanted in zip(compiled(f, x), f(x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-12)
    assert set(widths) == {1}


def test_derivatives_of_the_functions_run_without_numpy():
    x = RNG.uniform(0.1, 0.9, 50)

    def f(x):
        return np.sum(np.arctan(x) * fs.erf(x) + x**x + np.arcsin(x) + np.logaddexp(x, 0.0) + np.arctan2(x, 1 - x))

    np.testing.assert_allclose(compiled(fad.grad(f), x), fad.grad(f)(x), rtol=1e-12)


def test_every_function_that_a_template_may_call_can_be_emitted():
    assert set(REAL) == POLYNOMIALS
    assert set(TYPED) | set(OF_EXPONENTS) == SHORT
