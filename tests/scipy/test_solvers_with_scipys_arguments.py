"""Solvers called as SciPy's pages say, with derivatives of the user's, reports, and arguments by position."""

import numpy as np
import pytest
from scipy import integrate, optimize

import fad
from fad.scipy import optimize as ours


def cubic(x, a):
    return x**3 + x - a


def slope(x, a):
    return 3 * x**2 + 1


def bowl(x, a):
    return np.sum((x - a) ** 2) + np.sum(x**4)


def slope_of_bowl(x, a):
    return 2 * (x - a) + 4 * x**3


def residuals(x, a, scale=1.0):
    return np.array([x[0] - a, scale * x[1] ** 2 + x[0], x[1] - 1.0])


def both(x, a):
    return bowl(x, a), slope_of_bowl(x, a)


START = np.array([0.3, 0.2])
CALLS = {
    "newton, fprime by position": lambda a: optimize.newton(cubic, 1.0, slope, (a,)),
    "newton, fprime by name": lambda a: optimize.newton(cubic, 1.0, fprime=slope, args=(a,), maxiter=80),
    "newton, of several": lambda a: optimize.newton(cubic, np.array([1.0, 0.5]), slope, (a,))[1],
    "newton, x1": lambda a: optimize.newton(cubic, 1.0, x1=1.2, args=(a,)),
    "newton, Halley": lambda a: optimize.newton(cubic, 1.0, slope, (a,), 1e-10, 60, lambda x, a: 6 * x),
    "newton, report": lambda a: optimize.newton(cubic, 1.0, slope, (a,), full_output=True)[0],
    "brentq, report": lambda a: optimize.brentq(cubic, 0.0, 3.0, (a,), full_output=True)[1].root,
    "brentq, one argument": lambda a: optimize.brentq(cubic, 0.0, 3.0, a),
    "brentq, by position": lambda a: optimize.brentq(cubic, 0.0, 3.0, (a,), 1e-13, 1e-14, 90, False, True),
    "root_scalar, by position": lambda a: optimize.root_scalar(cubic, (a,), "newton", None, slope, None, 1.0).root,
    "root_scalar, secant": lambda a: optimize.root_scalar(cubic, (a,), "secant", x0=1.0, x1=1.3).root,
    "root_scalar, options": lambda a: optimize.root_scalar(cubic, (a,), bracket=(0, 3), options={"disp": False}).root,
    "root, one argument": lambda a: optimize.root(cubic, np.ones(1), a).x[0],
    "root, callback": lambda a: optimize.root(cubic, [1.0], (a,), "hybr", None, 1e-12).x[0],
    "minimize, jac by position": lambda a: optimize.minimize(bowl, START, (a,), "BFGS", slope_of_bowl, tol=1e-9).x[0],
    "minimize, jac=True": lambda a: optimize.minimize(both, START, args=a, jac=True, tol=1e-9).x[0],
    "minimize, bounds": lambda a: optimize.minimize(
        bowl, START, (a,), "L-BFGS-B", slope_of_bowl, None, None, [(0, 9)] * 2, (), 1e-12
    ).x[0],
    "least_squares, jac": lambda a: optimize.least_squares(residuals, START, "2-point", args=(a,), xtol=1e-14).x[0],
    "least_squares, kwargs": lambda a: optimize.least_squares(
        residuals, START, args=(a,), kwargs={"scale": 2.0}, verbose=0, xtol=1e-14, gtol=1e-14
    ).x[0],
    "curve_fit, by position": lambda a: optimize.curve_fit(
        lambda x, p: p * x + 0.1 * p**2, np.arange(4.0), a * np.arange(4.0) ** 2, [1.0], None, False, True, (0.0, 9.0)
    )[0][0],
    "curve_fit, maxfev": lambda a: optimize.curve_fit(
        lambda x, p: p * x + 0.1 * p**2, np.arange(4.0), a * np.arange(4.0) ** 2, maxfev=500
    )[0][0],
    "odeint, limits": lambda a: integrate.odeint(
        lambda y, t, a: -a * y, [1.0], [0.0, 1.0], (a,), mxstep=500, hmax=0.1, rtol=1e-9, atol=1e-9
    )[-1, 0],
    "quad, one argument": lambda a: integrate.quad(lambda x, a: np.exp(-a * x), 0.0, 1.0, a)[0],
}


@pytest.mark.parametrize("name", CALLS)
def test_a_solver_takes_scipys_arguments_and_is_differentiated(name):
    f = CALLS[name]
    value, derivative = fad.value_and_grad(f)(1.7)
    assert np.isclose(value, f(1.7), rtol=1e-6)
    assert np.isclose(derivative, (f(1.7 + 1e-3) - f(1.7 - 1e-3)) / 2e-3, rtol=1e-3)
    assert np.isclose(fad.jit(fad.grad(f))(1.7), derivative)
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(np.array([1.7, 1.9])), [derivative, fad.grad(f)(1.9)], rtol=1e-6)


def test_a_report_is_scipys():
    def f(a):
        root, report = optimize.brentq(cubic, 0.0, 3.0, args=(a,), full_output=True)
        seen.append((type(report), report.converged, report.iterations))
        return root

    seen = []
    f(1.7)
    fad.grad(f)(1.7)
    assert seen[0] == seen[-1]


@pytest.mark.parametrize("search", ["golden", "brent"])
def test_a_search_by_comparisons_has_the_derivative_of_its_minimum(search):
    at = optimize.brentq(lambda x: 2.0 * (x - 1.3) + 0.4 * x**3, 0.0, 2.0)
    wanted = 2.0 / (2.0 + 1.2 * at**2)
    assert fad.grad(lambda a: getattr(ours, search)(bowl_of_one, (a,)))(1.3) == pytest.approx(wanted, rel=1e-6)
    found, theirs = (getattr(module, search)(bowl_of_one, (1.3,), full_output=True) for module in (ours, optimize))
    assert found == pytest.approx(theirs)


def test_scipys_golden_section_has_the_derivative_of_its_minimum():
    at = optimize.brentq(lambda x: 2.0 * (x - 1.3) + 0.4 * x**3, 0.0, 2.0)
    wanted = 2.0 / (2.0 + 1.2 * at**2)
    assert fad.grad(lambda a: optimize.golden(lambda x: bowl_of_one(x, a)))(1.3) == pytest.approx(wanted, rel=1e-6)
    found, value, _ = fad.jacrev(lambda a: np.stack(optimize.golden(bowl_of_one, (a,), full_output=True)))(1.3)
    assert (found, value) == pytest.approx((wanted, -2.0 * (at - 1.3)), rel=1e-6)


def bowl_of_one(x, a):
    return (x - a) ** 2 + 0.1 * x**4


@pytest.mark.filterwarnings("ignore:delta_grad == 0.0")  # SciPy's trust-constr, of linear constraints
@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
@pytest.mark.parametrize(("at", "slope"), [(1e-5, 1.0), (-1e-3, 0.0), (0.1, 1.0), (-0.1, 0.0)])
def test_a_constraint_near_a_minimum_that_it_does_not_hold_leaves_it_its_derivative(method, at, slope):
    options = {"ftol": 1e-15} if method == "SLSQP" else {"gtol": 1e-10, "xtol": 1e-12, "barrier_tol": 1e-10}

    def best(a):
        positive = {"type": "ineq", "fun": lambda x: x[0]}
        objective = lambda x: 5.0 * np.sum((x - a) ** 2)
        return ours.minimize(objective, np.full(2, 0.25), method=method, constraints=positive, options=options).x

    np.testing.assert_allclose(fad.jacrev(best)(np.array([at, 0.5])), np.diag([slope, 1.0]), atol=1e-6)


@pytest.mark.filterwarnings("ignore:Equality and inequality constraints")
def test_constraints_take_lists_of_traced_numbers():
    def best(a):
        rows = optimize.LinearConstraint([[1.0, 1.0], [1.0, -1.0]], [-np.inf, a[1]], [a[0], a[1]])
        curved = optimize.NonlinearConstraint(lambda x: [x[0] * x[0], x[1]], [-9.0, a[2] - 9.0], [9.0, 9.0])
        return optimize.minimize(lambda x: np.sum((x - 2.0) ** 2), np.zeros(2), constraints=[rows, curved]).x

    wanted = np.array([[0.5, 0.5, 0.0], [0.5, -0.5, 0.0]])
    np.testing.assert_allclose(fad.jacrev(best)(np.array([1.0, 0.2, 0.3])), wanted, atol=1e-6)


def test_solvers_that_unpack_further_arguments_take_a_list_of_them():
    assert fad.grad(lambda a: optimize.newton(cubic, 1.0, args=[a]))(2.0) == pytest.approx(0.25)
    cosine = lambda x, a, b: np.cos(a * x) + b
    slopes = [fad.grad(lambda a, c=c: optimize.fixed_point(cosine, 0.5, args=c([a, 0.1])))(0.5) for c in (tuple, list)]
    assert slopes[0] == slopes[1] != 0.0
    fit = lambda a: optimize.least_squares(residuals, np.ones(2), args=[a, 0.0]).x[0]
    assert fad.grad(fit)(2.0) == pytest.approx(0.5)


def test_a_fit_takes_traced_scales_of_its_losses_and_parameters_and_one_deviation_for_all():
    t = np.linspace(0.0, 3.0, 8)
    y = 2.0 * np.exp(-0.7 * t) + 0.1 * np.cos(9.0 * t)

    def fit(s):
        start, bounds, near = [2.0 * s, 0.5], ([0.0, 0.0], [9.0, 9.0]), {"ftol": 1e-14, "xtol": 1e-14, "gtol": 1e-14}
        model = lambda rows, a, k: a * np.exp(-k * rows[0]) + rows[1] * 0.0
        scales = {"x_scale": [s, 1.0], "f_scale": 0.05 * s, "loss": "soft_l1", "sigma": s}
        return np.sum(optimize.curve_fit(model, [t, t], y, start, bounds=bounds, **scales, **near)[0])

    wanted = (fit(1.301) - fit(1.299)) / 0.002
    compiled = fad.jit(fad.grad(fit))
    assert [fad.grad(fit)(1.3), compiled(1.3), compiled(1.3)] == pytest.approx([wanted] * 3, rel=1e-4)
    rows = [t.tolist(), t.tolist()]
    line = lambda rows, a, b: a + b * rows[0]
    np.testing.assert_allclose(ours.curve_fit(line, rows, y)[1], optimize.curve_fit(line, rows, y)[1], rtol=1e-6)


def test_a_bounded_fit_has_the_covariance_of_parameters_that_the_data_do_not_tell_apart():
    t, flat = np.linspace(0.0, 1.0, 5), lambda t, a, b: a + b + 0.0 * t
    fits = [f(flat, t, t, [0.2, 0.3], method="trf")[1] for f in (ours.curve_fit, optimize.curve_fit)]
    np.testing.assert_allclose(*fits, rtol=1e-6)


@pytest.mark.parametrize("start", [1.5, np.array([1.5, 2.0])], ids=["number", "array"])
def test_newton_goes_by_the_slope_that_it_is_given(start):
    def root(a):
        return np.sum(optimize.newton(lambda x: x**2 - a, start, lambda x: 2.2 * x + 0.1 * a))

    with np.errstate(all="raise"):
        plain = root(2.0)
        value, gradient = fad.value_and_grad(root)(2.0)
        fast = fad.jit(fad.value_and_grad(root))
        for _ in range(2):
            assert fast(2.0) == (value, gradient)
    assert value == plain
    assert gradient == pytest.approx(np.size(start) * 0.5 / np.sqrt(2.0), rel=1e-6)
