"""Solvers: SciPy's answers, exact derivatives through them, and errors where there is no equation."""

from __future__ import annotations

import inspect
from typing import NamedTuple

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError

so = pytest.importorskip("scipy.optimize")

from fad.scipy import optimize as ours  # noqa: E402


def circle_and_line(x, a):
    return np.stack([x[0] ** 2 + x[1] ** 2 - a[0], x[0] - a[1] * x[1]])


def exact(a):
    y = np.sqrt(a[0] / (1 + a[1] ** 2))
    return np.stack([a[1] * y, y])


POINT = np.array([2.0, 0.5])


@pytest.mark.parametrize("method", ["hybr", "lm", "krylov", "df-sane"])
def test_root_is_differentiable_to_second_order(method):
    def found(a):
        return ours.root(circle_and_line, np.array([1.0, 1.0]), (a,), method=method, tol=1e-12).x

    np.testing.assert_allclose(found(POINT), exact(POINT), rtol=1e-9)
    np.testing.assert_allclose(fad.jacobian(found)(POINT), fad.jacobian(exact)(POINT), rtol=1e-8)
    hessian = fad.jacfwd(fad.jacrev(found))(POINT)
    np.testing.assert_allclose(hessian, fad.jacfwd(fad.jacrev(exact))(POINT), rtol=1e-7, atol=1e-9)


def test_root_of_a_tree_with_arguments_in_the_closure():
    def f(a):
        def equations(x):
            return {"sum": x["u"] + np.sum(x["v"]) - a, "v": x["v"] - np.stack([x["u"], 2 * x["u"]])}

        solution = ours.root(equations, {"u": 1.0, "v": np.ones(2)}).x
        return solution["u"] * 2 + solution["v"][1]

    assert f(8.0) == pytest.approx(8.0)
    assert fad.grad(f)(8.0) == pytest.approx(1.0)


def test_root_maps_over_its_arguments_and_is_differentiable_through_the_map():
    def found(a):
        return ours.root(circle_and_line, np.array([1.0, 1.0]), (a,), tol=1e-12).x

    many = np.array([[2.0, 0.5], [3.0, 1.0], [1.0, 2.0]])
    np.testing.assert_allclose(fad.vmap(found)(many), np.stack([exact(a) for a in many]), rtol=1e-9)
    inside = fad.vmap(fad.jacobian(found))(many)
    np.testing.assert_allclose(inside, np.stack([fad.jacobian(exact)(a) for a in many]), rtol=1e-7)
    outside = fad.grad(lambda m: np.sum(fad.vmap(found)(m)))(many)
    np.testing.assert_allclose(outside, fad.grad(lambda m: np.sum(fad.vmap(exact)(m)))(many), rtol=1e-7, atol=1e-15)


def test_a_mapped_value_in_the_closure_is_found():
    found = fad.vmap(lambda a: ours.root(lambda x: x**3 - a, np.array([1.0])).x[0])
    np.testing.assert_allclose(found(np.array([1.0, 8.0, 27.0])), [1.0, 2.0, 3.0])


def test_what_scipy_reports_is_reported():
    result = ours.root(circle_and_line, np.array([1.0, 1.0]), (POINT,))
    assert result.success is True
    assert result.nfev > 0
    np.testing.assert_allclose(result.fun, 0.0, atol=1e-8)


def test_a_root_that_was_not_found_warns_and_has_no_derivative():
    def nowhere(x, a):
        return x * x + a

    with pytest.warns(RuntimeWarning, match="did not converge"):
        assert not ours.root(nowhere, np.array([1.0]), (1.0,)).success
    with pytest.raises(DerivativeError, match="did not converge"):
        fad.grad(lambda a: ours.root(nowhere, np.array([1.0]), (a,)).x[0])(1.0)


def test_a_double_root_has_no_derivative():
    with pytest.raises(DerivativeError, match=r"singular|slope"):
        fad.grad(lambda a: ours.newton(lambda x, a: (x - a) ** 2 * 0.0, 1.0, args=(a,)))(1.0)


def test_fsolve_gives_what_scipy_gives_and_derivatives():
    found = lambda a: ours.fsolve(circle_and_line, [1, 1], (a,), xtol=1e-12)
    np.testing.assert_allclose(found(POINT), so.fsolve(circle_and_line, [1, 1], (POINT,), xtol=1e-12), rtol=1e-9)
    np.testing.assert_allclose(fad.jacobian(found)(POINT), fad.jacobian(exact)(POINT), rtol=1e-8)
    np.testing.assert_allclose(fad.jit(fad.jacobian(found))(POINT), fad.jacobian(exact)(POINT), rtol=1e-8)
    x, report, flag, message = ours.fsolve(lambda x, a: x**3 - a, 1.0, 8.0, full_output=True)
    wanted = so.fsolve(lambda x, a: x**3 - a, 1.0, 8.0, full_output=True)
    assert (x.shape, flag, message, set(report)) == (wanted[0].shape, 1, wanted[3], {*wanted[1], "njev"})
    with pytest.warns(RuntimeWarning, match="did not converge"):
        ours.fsolve(lambda x: x * x + 1.0, 1.0)


@pytest.mark.parametrize("method", ["brent", "golden", "bounded"])
def test_minimize_scalar_is_differentiable_to_second_order(method):
    bounds = (0.0, 9.0) if method == "bounded" else None

    def found(a):
        tol = {"xatol": 1e-9} if method == "bounded" else {"xtol": 1e-9}
        return ours.minimize_scalar(
            lambda x, a: np.cosh(x) - a * x, bounds=bounds, args=(a,), method=method, options=tol
        ).x

    assert np.ndim(found(0.7)) == 0
    orders = [f(0.7) for f in (found, fad.grad(found), fad.grad(fad.grad(found)), fad.jit(fad.grad(found)))]
    exact = [f(0.7) for f in (np.arcsinh, fad.grad(np.arcsinh), fad.grad(fad.grad(np.arcsinh)), fad.grad(np.arcsinh))]
    np.testing.assert_allclose(orders, exact, rtol=1e-6)
    np.testing.assert_allclose(fad.vmap(found)(np.array([0.2, 0.7])), np.arcsinh([0.2, 0.7]), rtol=1e-6)


def test_a_number_whose_minimum_lies_on_a_bound_stays_there():
    found = lambda a: ours.minimize_scalar(lambda x: (x - a) ** 2, bounds=(0.0, 1.0), method="bounded").x
    assert [fad.grad(found)(a) for a in (2.0, 0.4)] == pytest.approx([0.0, 1.0])


def test_fixed_point_is_differentiable():
    def found(a):
        return ours.fixed_point(lambda x, a: np.sqrt(x + a), np.array([1.0]), (a,), xtol=1e-13)[0]

    assert found(2.0) == pytest.approx(2.0)
    assert fad.grad(found)(2.0) == pytest.approx(1 / 3)
    assert fad.grad(fad.grad(found))(2.0) == pytest.approx(-2 / 27)


@pytest.mark.parametrize(
    "method", ["BFGS", "L-BFGS-B", "CG", "Newton-CG", "trust-exact", "trust-ncg", "SLSQP", "Nelder-Mead"]
)
def test_minimize_is_differentiable_with_every_kind_of_method(method):
    def valley(x, a):
        return (a[0] - x[0]) ** 2 + a[1] * (x[1] - x[0] ** 2) ** 2

    tolerance = {"L-BFGS-B": 1e-15, "Nelder-Mead": 1e-12, "SLSQP": 1e-14}.get(method, 1e-8)
    a = np.array([1.2, 3.0])  # the minimum is at (a0, a0^2)
    gradient = fad.jacobian(lambda a: ours.minimize(valley, np.array([0.9, 1.1]), (a,), method, tol=tolerance).x)(a)
    np.testing.assert_allclose(gradient, [[1.0, 0.0], [2.4, 0.0]], atol=1e-5)


def test_minimize_holds_what_lies_on_a_bound():
    def f(a):
        return ours.minimize(lambda x, a: np.sum((x - a) ** 2), np.zeros(2), (a,), bounds=[(0, 1), (0, 9)]).x

    np.testing.assert_allclose(fad.jacobian(f)(np.array([2.0, 3.0])), [[0.0, 0.0], [0.0, 1.0]], atol=1e-8)


def test_a_hyperparameter_is_tuned_through_the_inner_problem():
    rng = np.random.default_rng(0)
    x, noise = rng.normal(size=(20, 3)), rng.normal(size=20)
    y = x @ np.array([1.0, -2.0, 0.0]) + 0.1 * noise

    def ridge(penalty):
        def inner(w, p):
            return np.sum((x @ w - y) ** 2) + p * np.sum(w**2)

        w = ours.minimize(inner, np.zeros(3), (penalty,), tol=1e-7).x
        return np.sum((w - np.array([1.0, -2.0, 0.0])) ** 2)

    def closed(penalty):
        w = np.linalg.solve(x.T @ x + penalty * np.eye(3), x.T @ y)
        return np.sum((w - np.array([1.0, -2.0, 0.0])) ** 2)

    assert fad.grad(ridge)(1.5) == pytest.approx(fad.grad(closed)(1.5), rel=1e-5)


def _circle(a):
    return {"type": "ineq", "fun": lambda x, b: b - x[0] ** 2 - x[1] ** 2, "args": (a[1],)}


CONSTRAINTS = {
    "an equation": lambda a: {"type": "eq", "fun": lambda x: x[0] + a[0] * x[1] - a[1]},
    "one that holds the minimum": _circle,
    "one that does not, and an equation": lambda a: [
        _circle(100 * a), {"type": "eq", "fun": lambda x: x[0] - x[1] ** 2}
    ],
    "with its own slope": lambda a: {**_circle(a), "jac": lambda x, b: np.stack([-2 * x[0], -2 * x[1]])},
    "a linear one": lambda a: ours.LinearConstraint(np.stack([np.stack([a[0], 1.0])]), -np.inf, a[1]),
    "SciPy's linear one": lambda a: so.LinearConstraint([[1.0, 1.0]], [-np.inf], [0.5]),
    "two between ends": lambda a: so.NonlinearConstraint(
        lambda x: np.stack([x[0] ** 2 + x[1], x[0] - x[1]]), np.array([-1.0, -0.5]), np.stack([a[1], 0.7])
    ),
}
def best_within(constraint, a, **options):
    objective = lambda x: np.sum((x - 2.0 * a) ** 2) + 0.1 * x[0] ** 4
    options = {"options": {"ftol": 1e-13, "maxiter": 500}, **options}
    return ours.minimize(objective, np.array([0.5, 0.3]), constraints=constraint(a), **options).x


@pytest.mark.parametrize("bounds", [None, [(0.1, 2.0), (None, 0.45)]], ids=["free", "with bounds"])
@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_a_minimum_within_constraints_has_the_derivative_of_its_differences(constraint, bounds):
    best = lambda a: best_within(constraint, a, bounds=bounds)
    a = np.array([1.3, 0.8])
    wanted = np.stack([(best(a + d) - best(a - d)) / 2e-4 for d in 1e-4 * np.eye(2)], -1)
    for jacobian in (fad.jacfwd(best), fad.jacrev(best), fad.jit(fad.jacfwd(best))):
        for _ in range(2):
            np.testing.assert_allclose(jacobian(a), wanted, 1e-3, 3e-4)
    np.testing.assert_allclose(fad.vmap(fad.jacfwd(best))(np.stack([a, a]))[1], wanted, 1e-3, 3e-4)


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")  # SciPy's trust-constr, of linear constraints
@pytest.mark.parametrize("constraint", CONSTRAINTS.values(), ids=CONSTRAINTS)
def test_a_method_that_stays_inside_finds_the_same_constraints_to_be_active(constraint):
    a, tight = np.array([1.3, 0.8]), {"gtol": 1e-8, "xtol": 1e-8}
    found = fad.jacfwd(lambda a: best_within(constraint, a, method="trust-constr", options=tight))(a)
    np.testing.assert_allclose(found, fad.jacfwd(lambda a: best_within(constraint, a))(a), 1e-2, 1e-3)


def test_a_portfolio_has_the_derivative_of_its_formula_to_second_order():
    covariance = np.array([[2.0, 0.3, 0.1], [0.3, 1.0, 0.2], [0.1, 0.2, 0.5]])

    def risk(wanted, mean):
        budget = {"type": "eq", "fun": lambda w: np.sum(w) - 1.0}
        income = {"type": "eq", "fun": lambda w: mean @ w - wanted}
        variance = lambda w: 0.5 * w @ covariance @ w
        return ours.minimize(variance, np.ones(3) / 3, constraints=[budget, income], options={"ftol": 1e-14}).fun

    def closed(wanted, mean):
        rows = np.stack([np.ones(3), mean])
        held = np.concatenate([np.concatenate([covariance, rows.T], 1), np.concatenate([rows, np.zeros((2, 2))], 1)])
        w = np.linalg.solve(held, np.concatenate([np.zeros(3), np.stack([1.0, wanted])]))[:3]
        return 0.5 * w @ covariance @ w

    mean = np.array([0.05, 0.08, 0.02])
    for argnum in (0, 1):
        np.testing.assert_allclose(fad.grad(risk, argnum)(0.05, mean), fad.grad(closed, argnum)(0.05, mean), 1e-5)
    np.testing.assert_allclose(fad.grad(fad.grad(risk))(0.05, mean), fad.grad(fad.grad(closed))(0.05, mean), 1e-5)


def test_constraints_that_say_the_same_twice_have_no_multipliers():
    def f(a):
        twice = [{"type": "eq", "fun": lambda x: x[0] - a}, {"type": "eq", "fun": lambda x: 2 * x[0] - 2 * a}]
        return ours.minimize(lambda x: np.sum(x**2), np.ones(2), constraints=twice, method="trust-constr").x[0]

    with pytest.warns(UserWarning, match="Singular Jacobian"), pytest.raises(DerivativeError, match="singular"):
        fad.grad(f)(1.0)


def test_least_squares_is_differentiable_with_large_residuals_too():
    t = np.linspace(0.0, 2.0, 9)
    y = np.exp(-0.7 * t) + 0.3 * np.cos(5 * t)

    def rate(y):
        return ours.least_squares(
            lambda p, y: p[0] * np.exp(-p[1] * t) - y, np.ones(2), args=(y,), xtol=1e-14, ftol=1e-14, gtol=1e-14
        ).x[1]

    gradient = fad.grad(rate)(y)
    h = 1e-5 * np.eye(9)
    numerical = [(rate(y + e) - rate(y - e)) / 2e-5 for e in h]
    np.testing.assert_allclose(gradient, numerical, atol=1e-6)


def test_brentq_newton_and_root_scalar_agree():
    def cosine(x, a):
        return np.cos(x) - a * x

    wanted = -0.441610791557
    assert fad.grad(lambda a: ours.brentq(cosine, 0.0, 2.0, (a,)))(1.0) == pytest.approx(wanted)
    assert fad.grad(lambda a: ours.newton(cosine, 1.0, args=(a,)))(1.0) == pytest.approx(wanted)
    assert fad.grad(lambda a: ours.root_scalar(cosine, (a,), bracket=(0.0, 2.0)).root)(1.0) == pytest.approx(wanted)
    assert fad.grad(lambda a: ours.root_scalar(cosine, (a,), x0=1.0).root)(1.0) == pytest.approx(wanted)


def test_newton_is_elementwise():
    a = np.array([1.0, 8.0, 27.0])
    gradient = fad.grad(lambda a: np.sum(ours.newton(lambda x, a: x**3 - a, np.full(3, 2.0), args=(a,))))(a)
    np.testing.assert_allclose(gradient, a ** (-2 / 3) / 3, rtol=1e-9)


def test_errors_of_scipy_pass_through():
    with pytest.raises(ValueError, match="different signs"):
        fad.grad(lambda a: ours.brentq(lambda x, a: x * x + a, 0.0, 1.0, (a,)))(1.0)
    with pytest.raises(RuntimeError):
        fad.grad(lambda a: ours.newton(lambda x, a: x * x + a, 1.0, args=(a,), maxiter=5))(1.0)


def test_under_jit_the_solver_runs_again_on_every_call():
    def found(a):
        return ours.newton(lambda x, a: x**3 - a, 1.0, args=(a,))

    compiled, slope = fad.jit(found), fad.jit(fad.grad(found))
    for a in (2.0, 2.5, 8.0):
        assert compiled(a) == pytest.approx(a ** (1 / 3))
        assert slope(a) == pytest.approx(a ** (-2 / 3) / 3)


def test_the_cost_of_a_fit_and_its_derivative_are_those_of_its_residuals():
    t = np.linspace(0.0, 2.0, 5)

    def fit(y):
        return ours.least_squares(lambda p, y: p[0] + p[1] * t - y, np.zeros(2), args=(y,))

    y = np.array([1.0, 1.2, 0.7, 2.0, 1.1])
    (fun, cost), push = fad.linearize(lambda y: (lambda r: (r.fun, r.cost))(fit(y)), y)
    assert cost == pytest.approx(0.5 * np.sum(fun**2))
    for e in np.eye(5):  # at the minimum the cost moves with the data alone
        assert push(e)[1] == pytest.approx(-fun @ e, abs=1e-7)


SPREAD = np.linspace(0.0, 2.0, 5)
METHODS = ["trf", "dogbox", "L-BFGS-B", "TNC", "SLSQP", "Powell", "Nelder-Mead", "trust-constr"]


def _line(method, y, low, high):
    """Fit a line by least squares, with bounds for its slope."""

    def residuals(p, y):
        return p[0] + p[1] * SPREAD - y

    start = np.array([0.0, 0.5 * (low + high)])
    if method in ("trf", "dogbox"):
        bounds = ([-np.inf, low], [np.inf, high])
        return ours.least_squares(residuals, start, args=(y,), bounds=bounds, method=method).x
    bounds = [(None, None), (low, high)]
    return ours.minimize(lambda p, y: np.sum(residuals(p, y) ** 2), start, (y,), method, bounds=bounds).x


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("bounds", [(0.5, 1.0), (-1.0, -0.3)])
def test_an_unknown_held_by_a_bound_stays_there_though_the_solver_stopped_short_of_it(method, bounds):
    y = np.array([1.0, 1.2, 0.7, 2.0, 1.1])
    slopes = fad.jacobian(lambda y: _line(method, y, *bounds))(y)
    np.testing.assert_allclose(slopes, [np.full(5, 0.2), np.zeros(5)], atol=1e-7)
    batch = fad.vmap(fad.jacobian(lambda y: _line(method, y, *bounds)))(np.stack([y, y + 0.01]))
    np.testing.assert_allclose(batch, [slopes, slopes], atol=1e-7)


@pytest.mark.parametrize("method", METHODS)
def test_an_unknown_between_its_bounds_is_free(method):
    y = np.array([1.0, 1.2, 0.7, 2.0, 1.1])
    slopes = fad.jacobian(lambda y: _line(method, y, 0.0, 1.0))(y)
    np.testing.assert_allclose(slopes, np.linalg.pinv(np.stack([np.ones(5), SPREAD], axis=1)), atol=1e-6)


def test_a_mapped_value_is_found_in_the_instance_of_a_method():
    class Square(NamedTuple):
        a: float

        def off(self, x):
            return x * x - self.a

    side = lambda a: ours.root(Square(a).off, np.array([1.0])).x[0]
    np.testing.assert_allclose(fad.vmap(side)(np.array([4.0, 9.0])), [2.0, 3.0])
    np.testing.assert_allclose(fad.vmap(fad.grad(side))(np.array([4.0, 9.0])), [1 / 4, 1 / 6])


# --- fits of curves ---------------------------------------------------------------------------------------------------

TIMES = np.linspace(0.0, 3.0, 12)
ERRORS = np.random.default_rng(3).normal(size=12)
MEASURED = 2.0 * np.exp(-0.7 * TIMES) + 0.1 + 0.05 * ERRORS
DEVIATIONS = 0.05 + 0.01 * TIMES


def decay(t, a, k, c):
    return a * np.exp(-k * t) + c


FITS = {
    "plain": {},
    "started": {"p0": (1.5, 0.5, 0.0)},
    "weighted": {"sigma": DEVIATIONS},
    "of known spread": {"sigma": DEVIATIONS, "absolute_sigma": True},
    "correlated": {"sigma": np.diag(DEVIATIONS**2) + 1e-4, "absolute_sigma": True},
    "bounded": {"bounds": ([0.0, 0.0, 0.0], [5.0, 3.0, 1.0])},
}


@pytest.mark.parametrize("name", FITS)
def test_a_fitted_curve_and_its_covariance_are_scipys(name):
    got, wanted = (of.curve_fit(decay, TIMES, MEASURED, **FITS[name]) for of in (ours, so))
    np.testing.assert_allclose(got[0], wanted[0], rtol=1e-6)
    np.testing.assert_allclose(got[1], wanted[1], rtol=1e-4)


def test_a_fitted_curve_and_its_covariance_are_differentiable_in_data_and_spread():
    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15}

    def some(data, spread):
        p, covariance = ours.curve_fit(decay, TIMES, data, (2.0, 0.7, 0.1), spread, **tight)
        return np.sum(p) + 100.0 * np.sum(np.sqrt(np.diagonal(covariance)))

    found = fad.grad(some, argnums=(0, 1))(MEASURED, DEVIATIONS)
    for k, gradient in enumerate(found):
        step = [1e-5 * ERRORS, 0 * TIMES] if k == 0 else [0 * TIMES, 1e-4 * DEVIATIONS * ERRORS]
        change = some(MEASURED + step[0], DEVIATIONS + step[1]) - some(MEASURED - step[0], DEVIATIONS - step[1])
        np.testing.assert_allclose(2 * np.sum(gradient * step[k]), change, rtol=1e-4)


def test_a_fit_refuses_what_scipy_refuses():
    with pytest.raises(ValueError, match="infs or NaNs"):
        ours.curve_fit(decay, TIMES, MEASURED * np.nan)
    with pytest.raises(ValueError, match="incorrect shape"):
        ours.curve_fit(decay, TIMES, MEASURED, sigma=np.ones(3))
    with pytest.raises(ValueError, match="number of fit parameters"):
        ours.curve_fit(lambda t: t, TIMES, MEASURED)
    with pytest.raises(RuntimeError, match="Optimal parameters not found"), pytest.warns(RuntimeWarning):
        ours.curve_fit(decay, TIMES, MEASURED, (50.0, 9.0, 3.0), max_nfev=2)


@pytest.mark.parametrize("f", [lambda t, a, k: a + k * t, lambda t, a, k: a + k + 0 * t], ids=["few data", "redundant"])
def test_a_covariance_that_cannot_be_estimated_is_infinite(f):
    n = 2 if f(1.0, 0.0, 1.0) == 1.0 and f(2.0, 0.0, 1.0) == 2.0 else 12
    with pytest.warns(so.OptimizeWarning, match="could not be estimated"):
        _, covariance = ours.curve_fit(f, TIMES[:n], MEASURED[:n], (1.0, 1.0))
    assert np.isinf(covariance).all()


PUBLIC = [name for name in ours.__all__ if name not in ("OptimizeResult", "LinearConstraint")]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_function_takes_scipys_arguments_in_scipys_order(name):
    def names(f):
        of = inspect.signature(f).parameters.values()
        return [p.name for p in of if p.kind is p.POSITIONAL_OR_KEYWORD]

    dropped = ("iprint", "disp") if name == "fmin_l_bfgs_b" else ()  # by SciPy 1.18
    theirs = [parameter for parameter in names(getattr(so, name)) if parameter not in dropped]
    assert names(getattr(ours, name))[: len(theirs)] == theirs


CUBIC = lambda x, a: x**3 - a


@pytest.mark.parametrize("name", ["bisect", "brenth", "brentq", "ridder", "toms748"])
def test_a_root_in_a_bracket_has_its_derivative_by_every_method(name):
    find = getattr(ours, name)
    for of in (lambda a: find(CUBIC, 0.0, 3.0, a), lambda a: find(CUBIC, 0.0, 3.0, (a,), full_output=True)[0]):
        of_each = fad.vmap(fad.grad(of))
        for gradient in (fad.grad(of), fad.jit(fad.grad(of)), lambda a, of_each=of_each: of_each(np.full(2, a))[1]):
            assert gradient(8.0) == pytest.approx(1 / 12, rel=1e-6)
        assert fad.grad(fad.grad(of))(8.0) == pytest.approx(-2 / 9 / 32, rel=1e-5)
    root, report = find(CUBIC, 0.0, 3.0, (8.0,), full_output=True)
    wanted, theirs = getattr(so, name)(CUBIC, 0.0, 3.0, (8.0,), full_output=True)
    assert (root, report.root, report.function_calls) == (wanted, wanted, theirs.function_calls)
    with pytest.raises(ValueError, match="sign"):
        find(CUBIC, 3.0, 4.0, (8.0,))


def _bowl(x, a):
    return np.sum((x - a) ** 2) + np.sum(np.cosh(x)), 2 * (x - a) + np.sinh(x)


OLDER = {
    "fmin": lambda of, a: of.fmin(lambda x: _bowl(x, a)[0], np.zeros(2), xtol=1e-10, ftol=1e-14, disp=0),
    "fmin_powell": lambda of, a: of.fmin_powell(lambda x: _bowl(x, a)[0], np.zeros(2), xtol=1e-8, ftol=1e-12, disp=0),
    "fmin_bfgs": lambda of, a: of.fmin_bfgs(
        lambda x, a: _bowl(x, a)[0], np.zeros(2), lambda x, a: _bowl(x, a)[1], (a,), 1e-9, disp=0
    ),
    "fmin_cg": lambda of, a: of.fmin_cg(lambda x, a: _bowl(x, a)[0], np.zeros(2), args=(a,), gtol=1e-8, disp=0),
    "fminbound": lambda of, a: of.fminbound(lambda x: _bowl(x, a[0])[0] + x * a[1], -3.0, 3.0, xtol=1e-9),
    "leastsq": lambda of, a: of.leastsq(lambda x, a: np.concatenate([x - a, np.sinh(x)]), np.zeros(2), a)[0],
    "minimize with a slope": lambda of, a: of.minimize(_bowl, np.zeros(2), a, "BFGS", True, tol=1e-9).x,
    "minimize with derivatives": lambda of, a: of.minimize(
        lambda x: _bowl(x, a)[0], np.zeros(2), method="trust-exact", jac=lambda x: _bowl(x, a)[1],
        hess=lambda x: np.diag(2 + np.cosh(x)), tol=1e-6,
    ).x,
    "newton with a slope": lambda of, a: of.newton(lambda x: x**3 - a, np.ones(2), lambda x: 3 * x**2),
    "root with its slope": lambda of, a: of.root(
        lambda x, a: (x**3 - a, np.diag(3 * x**2)), np.ones(2), (a,), jac=True, tol=1e-12
    ).x,
    "root_scalar with slopes": lambda of, a: of.root_scalar(
        lambda x: x**3 - a[0], fprime=lambda x: 3 * x**2, fprime2=lambda x: 6 * x, x0=1.0, method="halley"
    ).root,
    "least_squares with a slope": lambda of, a: of.least_squares(
        lambda x, a: x**3 - a, np.ones(2), lambda x, a: np.diag(3 * x**2), args=(a,)
    ).x,
    "a fit with a slope": lambda of, a: of.curve_fit(
        lambda t, p, q: p * t + q * t**2, np.arange(4.0), np.concatenate([a, a**2]),
        jac=lambda t, p, q: np.stack([t, t * t], 1),
    )[0],
    "nnls": lambda of, a: of.nnls(np.stack([a, a**2, np.ones(2)]), np.array([1.0, 2.0, -0.5]))[0],
    "nnls, its norm": lambda of, a: of.nnls(np.stack([a, a**2, np.ones(2)]), np.array([1.0, 2.0, -0.5]))[1],
    "lsq_linear": lambda of, a: of.lsq_linear(np.stack([a, a**2, np.ones(2)]), a[0] * np.arange(3.0), (-0.1, 0.3)).x,
}  # fmt: skip


@pytest.mark.parametrize("program", OLDER.values(), ids=OLDER)
def test_a_call_with_scipys_arguments_has_the_derivative_of_scipys_result(program):
    a = np.array([1.3, 0.6])
    np.testing.assert_allclose(program(ours, a), program(so, a), 1e-5, 1e-7)
    wanted = np.stack([(program(so, a + d) - program(so, a - d)) / 2e-4 for d in 1e-4 * np.eye(2)], -1)
    mine, theirs = (lambda a: program(ours, a)), (lambda a: program(so, a))
    for f in (mine, theirs):  # SciPy's name, too, stands for fad's function while a transform runs
        for jacobian in (fad.jacfwd(f), fad.jacrev(f), fad.jit(fad.jacfwd(f))):
            np.testing.assert_allclose(jacobian(a), wanted, 2e-3, 2e-4)


def test_a_number_to_start_at_is_a_vector_of_one_as_in_scipy():
    square = lambda x: np.sum((x - 2.0) ** 2)
    for of in (ours, so):
        assert of.minimize(square, 0.0).x.shape == (1,)
        assert of.root(lambda x: x**2 - 4.0, np.float64(1.0)).x.shape == (1,)
        assert of.least_squares(lambda x: x**2 - 4.0, 1.0).x.shape == (1,)
        assert np.shape(of.fixed_point(lambda x: np.sqrt(x + 2.0), 1.0)) == ()
        assert np.shape(of.newton(lambda x: x**2 - 4.0, 1.0)) == ()
