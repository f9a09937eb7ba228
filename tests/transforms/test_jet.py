"""jet: power series through programs, against nested jvp, mpmath, exact polynomials and known series."""

import gc
import math

import hypothesis
import hypothesis.extra.numpy as hnp
import hypothesis.strategies as st
import numpy as np
import pytest
import rooms

import fad
from fad.core.primitive import REGISTRY, Primitive
from fad.errors import (
    CustomRuleError,
    DtypeMismatchError,
    IntegerInputError,
    LeakedTracerError,
    ShapeMismatchError,
    TracerConversionError,
    TreeMismatchError,
)
from fad.testing.cases import cases

rooms.load()

X = np.array([0.7, -0.4, 1.1])
SERIES = [np.array([0.3, -1.2, 0.5]), np.array([0.1, 0.2, -0.3]), np.array([1.0, 0.0, 0.5]), np.array([0.3, 0.4, 0.2])]


def curve(points, series):
    """Return t -> the points moved along curves with these derivatives at 0."""

    def at(t):
        terms = [[t**k * (c * (1 / math.factorial(k))) for k, c in enumerate(cs, 1)] for cs in series]
        return [x + sum(ts) for x, ts in zip(points, terms, strict=True)]

    return at


def nested(f, points, series):
    """Return the derivatives of f along curves by jvp of jvp of ..., one list per result."""
    at, order = curve(points, series), len(series[0])

    def derived(k):
        return (lambda t: f(*at(t))) if k == 0 else lambda t: fad.jvp(derived(k - 1), (t,), (1.0,))

    def pick(pairs, k):
        for i in range(order):
            pairs = pairs[i < k]
        return fad.tree.leaves(pairs)

    found = derived(order)(0.0)
    return [list(column) for column in zip(*[pick(found, k) for k in range(1, order + 1)], strict=True)]


def check(f, points=(X,), series=(SERIES,), tolerance=1e-10):
    out, found = fad.jet(f, points, series)
    values, ys = fad.tree.leaves(out), fad.tree.leaves(f(*points))
    for value, y, cs, es in zip(values, ys, _lists(found), nested(f, points, series), strict=True):
        np.testing.assert_allclose(value, y, rtol=1e-12, atol=1e-12)
        for c, e in zip(cs, es, strict=True):
            assert (np.shape(c), np.result_type(c)) == (np.shape(e), np.result_type(value))
            np.testing.assert_allclose(c, e, rtol=tolerance, atol=tolerance * max(1.0, np.max(np.abs(e), initial=0.0)))


def _lists(found):
    """Return the lists of derivatives in the series of a result, one for each leaf."""
    return fad.tree.leaves(found, is_leaf=lambda x: isinstance(x, list) and not any(isinstance(c, list) for c in x))


# --- every operation ---------------------------------------------------------------------------------------------


def _sample(operation):
    """Return the first sample of an operation that has a derivative, or None."""
    usable = (c for c in cases(operation, lanes=1) if c.differentiable() and all(x.size for x in c.points))
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
        order = min(3, REGISTRY[name].extra.get("order", 3))
        series = tuple([_direction(x, rng) for _ in range(order)] for x in case.points)
        with np.errstate(all="ignore"):
            try:
                check(case.of(case.diff), case.points, series, 1e-6)
            except AssertionError as error:
                raise AssertionError(f"{name}: {error}") from None


@pytest.mark.parametrize("name", ["sin", "divide", "power", "absolute", "matmul", "solve", "fourier", "where"])
def test_complex_curves_have_the_derivatives_of_nested_jvp(name):
    case = next(c for c in cases(REGISTRY[name], np.complex128, lanes=1) if c.differentiable())
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


# --- compositions ------------------------------------------------------------------------------------------------


def program(x):
    return np.sum(np.sin(x) * np.exp(x[::-1])) + x[0] ** 3 / (1 + x[1] ** 2)


@fad.custom_jvp
def logistic(x):
    return 1 / (1 + np.exp(-x))


@logistic.defjvp
def _(primals, tangents):
    y = logistic(*primals)
    return y, y * (1 - y) * tangents[0]


@fad.custom_vjp
def growing(x):
    return np.exp(x)


growing.defvjp(lambda x: (growing(x), growing(x)), lambda y, ct: (y * ct,))


@fad.custom_jvp
def sine(x):
    return np.sin(x)


@fad.custom_jvp
def cosine(x):
    return np.cos(x)


sine.defjvps(lambda t, y, x: cosine(x) * t)
cosine.defjvps(lambda t, y, x: -sine(x) * t)

JITTED = fad.jit(lambda x, y: (np.sin(x) * y, np.floor(x), x > 0))
PROGRAMS = {
    "a gradient": fad.grad(program),
    "a Hessian": fad.hessian(program),
    "a jvp": lambda x: fad.jvp(program, (x,), (x * x,))[1],
    "a pushed tangent": lambda x: fad.linearize(program, x)[1](np.cos(x)),
    "a jet": lambda x: fad.jet(program, (x,), ([np.sin(x), x],))[1][1],
    "a vmap": fad.vmap(lambda v: np.sin(v) * v**2),
    "lanes that part": fad.vmap(lambda v: np.sin(v) if v > 0 else v**3),
    "a jitted function": fad.jit(lambda x: np.sin(x) * np.exp(x)),
    "a gradient of a jitted function": fad.grad(fad.jit(program)),
    "jitted functions in a loop": lambda x: fad.fori_loop(0, 3, lambda i, c: JITTED(c, x)[0], x),
    "a checkpoint": fad.grad(fad.checkpoint(program)),
    "a custom jvp": lambda x: logistic(x) * x,
    "a custom vjp": lambda x: growing(x) * x,
    "two custom rules": lambda x: sine(x) * cosine(x),
    "a loop": lambda x: np.stack([np.tanh(x[i]) * x[i - 1] for i in range(3)]),
    "a branch": lambda x: np.sin(x) if x[0] > 0 else np.cos(x),
    "cond": lambda x: fad.cond(x[0] > 0, np.sin, np.cos, x),
    "switch": lambda x: fad.switch(1, [np.sin, lambda v: v**3], x),
    "scan": lambda x: fad.scan(lambda c, a: (np.sin(c) * a, c * a), x[0], x)[1],
    "fori_loop": lambda x: fad.fori_loop(0, 5, lambda i, c: np.tanh(c) * (1 + i), x),
    "while_loop": lambda x: fad.while_loop(lambda c: np.sum(c * c) > 0.01, lambda c: c / 2 * np.cos(c), x),
    "map": lambda x: fad.map(lambda v: np.exp(v) * v, x),
    "a jitted scan": fad.jit(lambda x: fad.scan(lambda c, a: (np.sin(c) * a, c * a), x[0], x)[1]),
    "a jitted cond": fad.jit(lambda x: fad.cond(x[0] > 0, np.sin, np.cos, x)),
    "a stopped gradient": lambda x: x * fad.stop_gradient(np.sin(x)),
    "an index": lambda x: x[np.argsort(x)] * np.array([1.0, 2.0, 3.0]),
    "a changed copy": lambda x: fad.numpy.at(x)[1].multiply(x[0]),
    "a linear system": lambda x: fad.custom_linear_solve(
        lambda v: x**2 * v + v[0], np.ones(3), lambda mv, b: np.linalg.solve(fad.jacobian(mv)(b), b), symmetric=True
    ),
    "nothing that depends on it": lambda x: np.ones(3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fourth_derivatives_of_a_program_are_those_of_nested_jvp(name):
    check(PROGRAMS[name])


def test_a_jitted_function_runs_compiled_on_series():
    runs = []

    @fad.jit
    def f(x, y):
        runs.append(1)
        return {"a": np.tanh(x) * y, "b": np.floor(x), "c": y}

    expected = fad.jet(lambda x: {"a": np.tanh(x) * 2.0, "b": np.floor(x), "c": 2.0}, (X,), (SERIES,))
    for _ in range(3):
        found = fad.jet(lambda x: f(x, 2.0), (X,), (SERIES,))
    assert len(runs) == 1
    for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    fad.jet(lambda x: f(x, 2.0), (X,), (SERIES[:2],))
    assert len(runs) == 2


def test_an_implicit_function_is_followed_to_the_order_of_the_jet():
    def bisect(f, x):
        low, high = 0.0, 4.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) < 0 else (low, middle)
        return high

    def root(a):
        return fad.custom_root(lambda x: x * x - a, 1.0, bisect, lambda g, y: y / g(1.0))

    line = ([1.0, 0.0, 0.0, 0.0, 0.0],)
    np.testing.assert_allclose(fad.jet(root, (2.0,), line)[1], fad.jet(np.sqrt, (2.0,), line)[1], rtol=1e-12)


def _second(x):
    return fad.jet(program, (x,), (SERIES[:2],))[1][1]


def _second_nested(x):
    return nested(program, (x,), (SERIES[:2],))[0][1]


ROWS = np.stack([X, 2 * X, -X])


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: fad.grad(f)(X),
        lambda f: fad.hessian(f)(X),
        lambda f: fad.jvp(f, (X,), (SERIES[0],))[1],
        lambda f: fad.linearize(f, X)[1](SERIES[0]),
        lambda f: fad.vmap(f)(ROWS),
        lambda f: fad.vmap(fad.grad(f))(ROWS),
        lambda f: fad.jit(f)(X),
        lambda f: fad.jit(fad.grad(f))(X),
        lambda f: fad.grad(fad.jit(f))(X),
        lambda f: fad.grad(fad.checkpoint(f))(X),
        lambda f: fad.jit(fad.vmap(f))(ROWS),
    ],
)
def test_transforms_of_a_jet_are_those_of_nested_jvp(transform):
    np.testing.assert_allclose(transform(_second), transform(_second_nested), rtol=1e-10, atol=1e-12)


def test_a_jet_is_differentiable_in_its_series():
    def f(*series):
        return fad.jet(lambda x: np.sum(np.sin(x)), (X,), (list(series),))[1][1]

    a, b = SERIES[:2]
    by_first, by_second = fad.grad(f, (0, 1))(a, b)
    np.testing.assert_allclose(by_first, -2 * np.sin(X) * a, rtol=1e-12)
    np.testing.assert_allclose(by_second, np.cos(X), rtol=1e-12)
    by_first, _ = fad.grad(f, (0, 1))(0 * a, b)
    np.testing.assert_allclose(by_first, 0.0)


def test_an_inner_jet_does_not_take_the_outer_curve_for_its_own():
    def f(x):
        return x * fad.jet(lambda y: x + y, (1.0,), ([1.0],))[1][0]

    assert fad.jet(f, (3.0,), ([1.0, 0.0],))[1] == [1.0, 0.0]


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


# --- how it is called --------------------------------------------------------------------------------------------


def test_pytrees_go_in_and_come_out_with_lists_in_the_places_of_leaves():
    def f(p, z):
        return {"a": p["w"] * z, "b": (np.sum(p["b"]), 3.0)}

    out, series = fad.jet(f, ({"w": X, "b": X}, 2.0), ({"w": [X, X], "b": [X, 0 * X]}, [1.0, 0.0]))
    np.testing.assert_allclose(out["a"], 2 * X)
    np.testing.assert_allclose(series["a"], [3 * X, 4 * X])
    assert series["b"] == ([X.sum(), 0.0], [0.0, 0.0])
    _, more = fad.jet(lambda t: t["a"], (out,), (series,))
    np.testing.assert_array_equal(more, series["a"])


def test_coefficients_of_powers_are_derivatives_divided_by_factorials():
    scaled = fad.jet(np.exp, (0.0,), ([1.0, 0.0, 0.0, 0.0],))[1]
    plain = fad.jet(np.exp, (0.0,), ([1.0, 0.0, 0.0, 0.0],), factorial_scaled=False)[1]
    np.testing.assert_allclose(scaled, [1, 1, 1, 1])
    np.testing.assert_allclose(plain, [1, 1 / 2, 1 / 6, 1 / 24])
    curve = ([0.3, 0.5, -0.2],)
    lower = fad.jet(np.sin, (0.4,), ([0.3, 1.0, -1.2],))[1]
    np.testing.assert_allclose(fad.jet(np.sin, (0.4,), curve, factorial_scaled=False)[1], lower / np.array([1, 2, 6]))


def test_what_is_returned_beside_the_output_is_passed_through():
    y, series, aux = fad.jet(lambda x: (x * x, x + 1), (3.0,), ([1.0, 0.0],), has_aux=True)
    assert (y, series, aux) == (9.0, [6.0, 2.0], 4.0)


def test_the_order_may_be_nought():
    assert fad.jet(np.exp, (0.0,), ([],)) == (1.0, [])


def test_results_share_no_memory_with_arguments_or_each_other():
    x, c = X.copy(), SERIES[0].copy()
    _, series = fad.jet(lambda v: (v, v, v[:2]), (x,), ([c, c],))
    arrays = fad.tree.leaves(series)
    for i, a in enumerate(arrays):
        assert a.flags.writeable
        assert not any(np.shares_memory(a, b) for b in [c, *arrays[i + 1 :]])
    np.testing.assert_array_equal(c, SERIES[0])


def test_a_jet_leaves_nothing_to_the_garbage_collector():
    def f(x):
        return np.sum(np.tanh(np.sin(x) / (1 + np.arctan2(x, 2.0)))) + np.linalg.det(np.outer(x, x) + np.eye(3))

    fad.jet(f, (X,), (SERIES,))
    gc.collect()
    gc.freeze()  # what was there before is no concern
    gc.disable()
    try:
        fad.jet(f, (X,), (SERIES,))
        assert gc.collect() == 0
    finally:
        gc.enable()
        gc.unfreeze()


def test_a_long_chain_in_a_rule_does_not_exhaust_the_stack():
    @fad.custom_jvp
    def chain(x):
        return np.sin(x)

    @chain.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        y = t
        for _ in range(500):
            y = np.tanh(y) + 0.1 * x
        return chain(x), y

    series = fad.jet(chain, (0.1,), ([1.0, 0.0, 0.0, 0.0],))[1]
    np.testing.assert_allclose(series, nested(chain, (0.1,), ([1.0, 0.0, 0.0, 0.0],))[0])


@pytest.mark.parametrize("f", [np.sin, np.tanh, np.sqrt, lambda x: x**2.5, lambda x: 1 / x, np.arctan, np.log])
def test_the_number_of_operations_grows_like_a_power_of_the_order(f):
    few, many = (_operations(f, order) for order in (8, 16))
    assert many < 8 * few


def _operations(f, order):
    """Count the operations of a jet: those that a recording of it holds."""
    series = [1.0 + 0.1 * k for k in range(order)]
    return len(fad.make_graph(lambda x, cs: fad.jet(f, (x,), (cs,))[1])(0.5, series).equations)


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fad.jet(np.sin, 1.0, ([1.0],)), TypeError, "as tuples"),
        (lambda: fad.jet(np.sin, (1.0,), ([1.0], [1.0])), TreeMismatchError, "a list of derivatives for each"),
        (lambda: fad.jet(np.add, (1.0, 2.0), ([1.0], [1.0, 2.0])), TreeMismatchError, "as many derivatives"),
        (lambda: fad.jet(np.sin, (1.0,), (1.0,)), TreeMismatchError, "one of them is a float"),
        (lambda: fad.jet(np.sin, (X,), (X,)), TreeMismatchError, "one of them is a ndarray"),
        (lambda: fad.jet(np.sin, (X,), ([1.0],)), ShapeMismatchError, r"the shape \(3,\) of its value"),
        (lambda: fad.jet(np.sin, (np.float32(1),), ([np.float64(1)],)), DtypeMismatchError, "float32"),
        (lambda: fad.jet(np.sin, (1,), ([1],)), IntegerInputError, "a primal of jet has dtype int64"),
        (lambda: fad.jet(lambda: 1.0, (), ()), TreeMismatchError, "at least one array"),
        (lambda: fad.jet(lambda x: math.sin(x), (1.0,), ([1.0],)), TracerConversionError, "Taylor-mode"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_traced_value_that_was_kept_is_refused():
    kept = []
    fad.jet(lambda x: kept.append(x) or x, (1.0,), ([1.0],))
    with pytest.raises(LeakedTracerError):
        kept[0] + 1


@pytest.mark.parametrize("order", [1, 3])
def test_a_custom_rule_may_not_use_a_traced_value_from_outside(order):
    def f(x):
        @fad.custom_jvp
        def g(v):
            return v * 2

        g.defjvps(lambda t, y, v: t * x)
        return g(x * 3)

    with pytest.raises(CustomRuleError, match="from outside"):
        fad.jet(f, (1.0,), ([1.0] + [0.0] * (order - 1),))


def test_an_operation_without_any_rule_is_refused_as_under_jvp():
    no_rule = Primitive("no_rule", np.sin)
    with pytest.raises(Exception) as under_jvp:
        fad.jvp(no_rule, (1.0,), (1.0,))
    with pytest.raises(type(under_jvp.value)):
        fad.jet(no_rule, (1.0,), ([1.0, 0.0],))


def test_an_operation_with_a_vjp_alone_has_its_series_from_it():
    cube = Primitive("cube_by_vjp", lambda x: x**3, vjp=(lambda ct, y, x: 3 * x**2 * ct,))
    assert fad.jet(cube, (2.0,), ([1.0, 0.0, 0.0, 0.0],))[1] == [12.0, 12.0, 6.0, 0.0]
