"""jet: power series through operations, against nested jvp, mpmath, exact polynomials and known series."""

import math

import all_of_fad
import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
from curves import check

import fad
from fad.core.primitives.primitive import REGISTRY
from fad.testing.cases import cases

all_of_fad.load()

# --- every operation ---------------------------------------------------------------------------------------------


def _sample(operation):
    """Return the first sample of an operation that has a derivative, or None."""
    usable = (c for c in cases(operation, batch=1) if c.differentiable() and all(x.size for x in c.points))
    return next(usable, None)


def _direction(x, rng):
    size = np.max(np.where(np.isfinite(x), np.abs(x), 0.0))
    return np.asarray(0.3 * size * rng.uniform(-1, 1, x.shape)).astype(x.dtype)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("part", range(16))
def test_the_third_derivatives_of_every_operation_are_those_of_nested_jvp(part):
    for name in sorted(REGISTRY)[part::16]:
        if (case := _sample(REGISTRY[name])) is None:
            continue
        rng = np.random.default_rng(1)
        order = min(3, REGISTRY[name].order)
        series = tuple([_direction(x, rng) for _ in range(order)] for x in case.points)
        with np.errstate(all="ignore"):
            try:
                check(case.of(case.diff), case.points, series, 1e-6)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None


@pytest.mark.parametrize("name", ["sin", "divide", "power", "absolute", "matmul", "solve", "fourier", "where"])
def test_complex_curves_have_the_derivatives_of_nested_jvp(name):
    case = next(c for c in cases(REGISTRY[name], np.complex128, batch=1) if c.differentiable())
    rng = np.random.default_rng(0)
    series = tuple([_direction(x, rng) * (1 + 0.5j) for _ in range(3)] for x in case.points)
    check(case.of(case.diff), case.points, series, 1e-8)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64])
@pytest.mark.parametrize("f", [np.sin, np.tanh, lambda x: x**2.5, lambda x: 1 / x, lambda x: x @ x[0], np.linalg.inv])
def test_single_precision_stays_single(f, dtype):
    x = (np.eye(2) + 0.5).astype(dtype)
    y, series = fad.jet(f, (x,), ([x, x, x],))
    assert {c.dtype for c in [y, *series]} == {np.dtype(dtype)}


def test_numpy_scalars_go_in_and_come_out():
    y, series = fad.jet(lambda x: np.sin(x) * 2, (1.0,), ([1.0, 0.0, 0.0],))
    assert {type(c) for c in [y, *series]} == {np.float64}
    y, series = fad.jet(lambda x: x, (np.array(1.0),), ([np.array(1.0), np.array(0.0)],))
    assert {type(c) for c in [y, *series]} == {np.ndarray}


# --- known series ------------------------------------------------------------------------------------------------


@hypothesis.given(st.lists(st.integers(-9, 9), min_size=1, max_size=7), st.integers(-3, 3))
def test_a_polynomial_of_integers_has_its_exact_derivatives(coefficients, at):
    p = np.polynomial.Polynomial([float(c) for c in coefficients])

    def horner(x):
        y = 0.0 * x
        for c in coefficients[::-1]:
            y = y * x + c
        return y

    y, series = fad.jet(horner, (float(at),), ([1.0] + [0.0] * 7,))
    assert y == p(at)
    assert series == [p.deriv(k)(at) for k in range(1, 9)]


@pytest.mark.parametrize("f", [np.sin, np.exp, np.tanh, lambda x: x / (2 + x * x), lambda x: np.cumsum(x**3)])
@pytest.mark.parametrize(
    "g", [np.cos, lambda x: np.sqrt(4 + x), lambda x: x[::-1] * x, lambda x: np.where(x > 0, x, x**2)]
)
def test_the_jet_of_a_composition_is_the_composition_of_jets(f, g):
    @hypothesis.settings(max_examples=10)
    @hypothesis.given(hnp.arrays(np.float64, (5, 3), elements=st.floats(-1.5, 1.5)))
    def holds(rows):
        x, *series = rows
        whole = fad.jet(lambda v: f(g(v)), (x,), (series,))
        y, middle = fad.jet(g, (x,), (series,))
        parts = fad.jet(f, (y,), (middle,))
        for a, b in zip(fad.tree.leaves(whole), fad.tree.leaves(parts), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)

    holds()


@hypothesis.given(st.integers(1, 9), st.floats(0.2, 2.0))
def test_the_coefficients_of_elementary_functions_are_those_of_the_books(order, x):
    line = ([1.0] + [0.0] * (order - 1),)
    k = np.arange(1, order + 1)
    factorial = np.array([math.factorial(i) for i in k], float)
    known = {
        np.exp: np.full(order, math.exp(x)),
        np.sin: np.sin(x + k * np.pi / 2),
        np.cosh: np.where(k % 2, np.sinh(x), np.cosh(x)),
        np.log: -((-1.0) ** k) * factorial / k / x**k,
        np.reciprocal: (-1.0) ** k * factorial / x ** (k + 1),
        np.sqrt: np.array([np.prod(0.5 - np.arange(i)) * x ** (0.5 - i) for i in k]),
        (lambda v: v**-1.5): np.array([np.prod(-1.5 - np.arange(i)) * x ** (-1.5 - i) for i in k]),
    }
    for f, expected in known.items():
        np.testing.assert_allclose(fad.jet(f, (x,), line)[1], expected, rtol=1e-11, atol=1e-13)


def test_the_order_may_be_high():
    k = np.arange(1, 41)
    line = ([1.0] + [0.0] * 39,)
    _, series = fad.jet(np.log, (0.7,), line, factorial_scaled=False)
    np.testing.assert_allclose(series, -((-1.0 / 0.7) ** k) / k, rtol=1e-12)
    _, series = fad.jet(lambda x: np.arctan2(np.sin(x), np.cos(x)), (0.7,), line, factorial_scaled=False)
    np.testing.assert_allclose(series, line[0], atol=1e-12)


SPECIAL = {
    "erf": (0.4, "erf"), "gammaln": (2.3, "loggamma"), "gamma": (1.7, "gamma"), "digamma": (1.3, "digamma"),
    "expi": (0.8, "ei"), "ellipk": (0.3, "ellipk"), "lambertw": (0.6, "lambertw"), "zetac": (2.5, "zeta"),
    "j0": (1.2, "j0"), "expit": (0.5, lambda mp, x: 1 / (1 + mp.exp(-x))),
    "i1": (1.1, lambda mp, x: mp.besseli(1, x)), "erfinv": (0.3, "erfinv"),
    "spence": (0.6, lambda mp, x: mp.polylog(2, 1 - x)),
}  # fmt: skip


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_have_the_taylor_coefficients_of_mpmath(name):
    mpmath = pytest.importorskip("mpmath", reason="mpmath, the oracle of this test, is not installed")
    special = pytest.importorskip("fad.scipy.special", reason="SciPy is not installed")
    x, other = SPECIAL[name]
    function = getattr(mpmath, other) if isinstance(other, str) else lambda v: other(mpmath, v)
    with mpmath.workdps(40):
        expected = [complex(c).real for c in mpmath.taylor(function, x, 6)]
    y, series = fad.jet(getattr(special, name), (x,), ([1.0] + [0.0] * 5,), factorial_scaled=False)
    value = y + 1.0 if name == "zetac" else y
    np.testing.assert_allclose(np.real([value, *series]), expected, rtol=1e-9, atol=1e-11)


# --- linear algebra ----------------------------------------------------------------------------------------------

M = np.array([[4.0, 1.0, 0.5], [1.0, 5.0, -1.0], [0.5, -1.0, 7.0]])
D = [np.array([[0.5, 0.3, -0.2], [0.3, -0.4, 0.6], [-0.2, 0.6, 0.1]]) * s for s in (1.0, -2.0, 0.7, 1.5, 0.3)]
FACTORISATIONS = {
    "cholesky": lambda a: np.linalg.cholesky(a),
    "eigh": lambda a: np.linalg.eigh(a),
    "eigvalsh": lambda a: np.linalg.eigvalsh(a),
    "svd": lambda a: np.linalg.svd(a[:, :2], full_matrices=False),
    "qr": lambda a: np.linalg.qr(a),
    "solve": lambda a: np.linalg.solve(a, a[0]),
    "inv": np.linalg.inv,
    "det": np.linalg.det,
    "slogdet": np.linalg.slogdet,
    "pinv": lambda a: np.linalg.pinv(a[:, :2]),
    "expm": lambda a: fad.scipy.linalg.expm(a / 4),
}


@pytest.mark.parametrize("name", FACTORISATIONS)
def test_fifth_derivatives_of_linear_algebra_are_those_of_nested_jvp(name):
    check(lambda a: tuple(fad.tree.leaves(FACTORISATIONS[name](a))), (M,), (D,), 1e-8)


def _multiplied(series_a, series_b):
    """Return the coefficients of a product of matrix polynomials."""
    order = len(series_a)
    return [sum(series_a[i] @ series_b[k - i] for i in range(k + 1)) for k in range(order)]


def test_series_of_factors_multiply_to_the_series_of_the_matrix():
    a = [M, *[d / math.factorial(k) for k, d in enumerate(D, 1)]]

    def factors(f):
        out, series = fad.jet(f, (a[0],), (a[1:],), factorial_scaled=False)
        return [[y, *cs] for y, cs in zip(out, series, strict=True)] if isinstance(out, tuple) else [out, *series]

    def transposed(series):
        return [np.swapaxes(c, -1, -2) for c in series]

    low = factors(np.linalg.cholesky)
    np.testing.assert_allclose(_multiplied(low, transposed(low)), a, atol=1e-12)
    w, v = factors(lambda x: tuple(np.linalg.eigh(x)))
    np.testing.assert_allclose(_multiplied(_multiplied(v, [np.diag(c) for c in w]), transposed(v)), a, atol=1e-11)
    u, s, vh = factors(lambda x: tuple(np.linalg.svd(x)))
    np.testing.assert_allclose(_multiplied(_multiplied(u, [np.diag(c) for c in s]), vh), a, atol=1e-11)
    q, r = factors(lambda x: tuple(np.linalg.qr(x)))
    np.testing.assert_allclose(_multiplied(q, r), a, atol=1e-12)
    one = _multiplied(factors(np.linalg.inv), a)
    np.testing.assert_allclose(one, [np.eye(3), *[np.zeros((3, 3))] * 5], atol=1e-12)


def test_a_function_of_repeated_eigenvalues_has_its_series():
    def root(a):
        w, v = np.linalg.eigh(a)
        return (v * np.sqrt(w)) @ v.T

    _, series = fad.jet(root, (4.0 * np.eye(3),), ([D[0], 0 * D[0]],))
    np.testing.assert_allclose(series[0], D[0] / 4, atol=1e-9)
    np.testing.assert_allclose(series[1], -D[0] @ D[0] / 32, atol=1e-7)


# --- an application ----------------------------------------------------------------------------------------------


def taylor(f, y, order):
    """Return the derivatives of the solution of y' = f(y): each jet gives one order more."""
    series = [f(y)]
    for _ in range(order - 1):
        first, rest = fad.jet(f, (y,), (series,))
        series = [first, *rest]
    return series


def test_a_taylor_method_solves_an_equation_to_machine_precision():
    y, h = 1.0, 0.25
    for _ in range(4):
        y = y + sum(c * h**k / math.factorial(k) for k, c in enumerate(taylor(lambda v: v, y, 14), 1))
    assert abs(y - math.e) < 4e-16 * math.e
    y = 0.5
    for _ in range(8):
        y = y + sum(c * 0.125**k / math.factorial(k) for k, c in enumerate(taylor(lambda v: v * (1 - v), y, 14), 1))
    assert abs(y - 1 / (1 + math.exp(-1))) < 1e-15
