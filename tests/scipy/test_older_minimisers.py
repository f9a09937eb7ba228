"""SciPy's older names of minimisers within bounds, robust fits, and difference quotients, by SciPy's names."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError

so = pytest.importorskip("scipy.optimize")

A = np.array([0.7, 1.3])


def objective(x, a):
    return np.sum((x - a) ** 2 + x**4)


def slope(x, a):
    return 2 * (x - a) + 4 * x**3


def both(x, a):
    return objective(x, a), slope(x, a)


START = np.zeros(2)
FREE = {
    "fmin_l_bfgs_b": lambda a: so.fmin_l_bfgs_b(objective, START, None, (a,), True, factr=10, pgtol=1e-10)[0],
    "with the gradient": lambda a: so.fmin_l_bfgs_b(objective, START, slope, (a,), factr=10, pgtol=1e-10)[0],
    "with both in one": lambda a: so.fmin_l_bfgs_b(both, START, args=(a,), factr=10, pgtol=1e-10)[0],
    "fmin_tnc": lambda a: so.fmin_tnc(objective, START, slope, (a,), ftol=1e-14, messages=0)[0],
    "fmin_ncg": lambda a: so.fmin_ncg(objective, START, slope, args=(a,), avextol=1e-12, disp=0),
    "fmin_slsqp": lambda a: so.fmin_slsqp(objective, START, args=(a,), acc=1e-14, iprint=0),
}


@pytest.mark.parametrize("find", FREE.values(), ids=FREE)
def test_a_minimum_has_the_derivative_of_the_equation_that_it_solves(find):
    for a in (A, -2.0 * A):
        x = find(a)
        np.testing.assert_allclose(slope(x, a), 0.0, atol=1e-4)
        wanted = np.diag(1.0 / (1.0 + 6.0 * x**2))
        for jacobian in (fad.jacrev(find), fad.jacfwd(find), fad.jit(fad.jacrev(find))):
            np.testing.assert_allclose(jacobian(a), wanted, 1e-4, 1e-12)
        np.testing.assert_allclose(fad.vmap(find)(np.stack([a, 2 * a])), np.stack([x, find(2 * a)]), 1e-5)
        second = fad.jacobian(fad.jacobian(lambda a: find(a)[0]))(a)[0, 0]
        np.testing.assert_allclose(second, -12 * x[0] / (1 + 6 * x[0] ** 2) ** 3, 1e-3)


def test_an_unknown_on_a_bound_stays_there_and_the_value_has_the_derivative_of_the_objective():
    within = [(0, 0.2), (0, 5)]
    for bounded in (
        lambda a: so.fmin_l_bfgs_b(objective, START, slope, (a,), bounds=within),
        lambda a: so.fmin_tnc(objective, START, slope, (a,), bounds=within, messages=0),
    ):
        jacobian = fad.jacobian(lambda a, f=bounded: f(a)[0])(A)
        assert jacobian[0].tolist() == [0.0, 0.0]
        assert jacobian[1, 1] > 0.2
    value = lambda a: so.fmin_l_bfgs_b(objective, START, slope, (a,))[1]
    np.testing.assert_allclose(fad.grad(value)(A), -2 * (so.fmin_l_bfgs_b(objective, START, slope, (A,))[0] - A), 1e-4)
    report = fad.jvp(lambda a: so.fmin_l_bfgs_b(both, START, args=(a,))[2]["grad"], (A,), (A,))[0]
    np.testing.assert_allclose(report, 0.0, atol=1e-3)


def test_constraints_of_slsqp_may_be_traced():
    line = lambda x, a: x[0] + x[1] - a[0] * a[1]
    distance = lambda x, a: np.sum((x - a) ** 2)
    for constraints in ({"eqcons": [line]}, {"f_eqcons": lambda x, a: np.stack([line(x, a)])}):
        find = lambda a, c=constraints: so.fmin_slsqp(distance, START, args=(a,), acc=1e-13, iprint=0, **c)
        shift = np.array([[A[1] - 1, A[0] - 1]]) / 2
        np.testing.assert_allclose(fad.jacobian(find)(A), np.eye(2) + shift, 1e-6)
    above = lambda x, a: np.stack([x[0] - a[1], 10.0 - x[1]])
    find = lambda a: so.fmin_slsqp(distance, START, f_ieqcons=above, args=(a,), acc=1e-13, iprint=0)
    np.testing.assert_allclose(fad.jacobian(find)(A), [[0.0, 1.0], [0.0, 1.0]], atol=1e-6)


REPORTING = {
    "fmin": lambda of, a: of.fmin(objective, START, (a,), 1e-8, 1e-8, full_output=True, disp=False),
    "fmin_powell": lambda of, a: of.fmin_powell(objective, START, (a,), 1e-8, 1e-8, full_output=True, disp=False),
    "fmin_bfgs": lambda of, a: of.fmin_bfgs(objective, START, slope, (a,), 1e-8, full_output=True, disp=False),
    # Below 1e-7 the rounding of the objective decides whether its line search ends, in SciPy alone as well.
    "fmin_cg": lambda of, a: of.fmin_cg(objective, START, slope, (a,), 1e-7, full_output=True, disp=False),
    "fmin_ncg": lambda of, a: of.fmin_ncg(objective, START, slope, args=(a,), full_output=True, disp=False),
    "fmin_slsqp": lambda of, a: of.fmin_slsqp(objective, START, args=(a,), acc=1e-9, full_output=True, iprint=0),
}


@pytest.mark.parametrize("name", REPORTING)
def test_full_output_is_scipys_and_its_value_has_the_derivative_of_the_objective(name):
    report = lambda a: REPORTING[name](so, a)
    wanted, ours = report(A), REPORTING[name](fad.scipy.optimize, A)
    assert len(ours) == len(wanted)
    for found, theirs in zip(ours[:2], wanted[:2], strict=True):
        np.testing.assert_allclose(found, theirs, 1e-4)
    assert ours[-1] == wanted[-1]
    np.testing.assert_allclose(fad.grad(lambda a: report(a)[1])(A), -2 * (wanted[0] - A), 1e-3)
    np.testing.assert_allclose(
        fad.jacobian(lambda a: report(a)[0])(A), np.diag(1.0 / (1.0 + 6.0 * wanted[0] ** 2)), 1e-3, 1e-12
    )
    if name in ("fmin", "fmin_cg", "fmin_ncg"):
        np.testing.assert_allclose(fad.jit(lambda a: report(a)[1])(A), wanted[1], 1e-6)
    else:
        with pytest.raises(NotImplementedError, match="of minimize there"):
            fad.jit(report)(A)


@pytest.mark.parametrize("method", ["CG", "BFGS", "Nelder-Mead", "L-BFGS-B", "SLSQP"])
def test_the_value_of_a_minimum_is_a_number_where_the_objective_gives_an_array_of_one_element(method):
    bounds = [(0.0, 5.0)] if method in ("L-BFGS-B", "SLSQP") else None
    find = lambda a: so.minimize(lambda x, a: (x - a) ** 2 + a**3, [0.5], (a,), method, bounds=bounds)
    assert np.shape(fad.vjp(lambda a: find(a).fun, 2.0)[0]) == ()
    np.testing.assert_allclose(fad.grad(lambda a: find(a).fun)(2.0), 12.0, 1e-6)
    np.testing.assert_allclose(fad.jit(fad.grad(lambda a: find(a).fun))(2.0), 12.0, 1e-6)
    below = {"type": "ineq", "fun": lambda x: 5.0 - x[0]}
    constrained = lambda a: so.minimize(lambda x, a: (x - a) ** 2 + a**3, [0.5], (a,), constraints=below).fun
    assert np.shape(fad.vjp(constrained, 2.0)[0]) == ()


def test_the_iterates_of_a_minimisation_are_refused():
    with pytest.raises(NotImplementedError, match="callback of minimize"):
        fad.grad(lambda a: so.fmin_cg(objective, START, slope, (a,), retall=True)[0][0])(A)


T = np.arange(8.0)
DATA = 0.5 * T + 1.0 + np.array([0.1, -0.2, 0.05, 3.0, 0.1, -0.1, -2.0, 0.15])


@pytest.mark.parametrize("loss", ["linear", "soft_l1", "huber", "cauchy", "arctan"])
def test_a_robust_fit_has_the_derivative_of_its_differences_and_its_cost_is_scipys(loss):
    tight = {"xtol": 1e-15, "ftol": 1e-15, "gtol": 1e-15, "loss": loss, "f_scale": 0.3}
    slopes = np.stack([T, np.ones(8)], 1)
    fit = lambda y: so.least_squares(lambda p: p[0] * T + p[1] - y, np.array([0.5, 1.0]), lambda p: slopes, **tight)
    h = 2e-4 * np.eye(8)  # above what the solver leaves over
    wanted = np.stack([(fit(DATA + d).x - fit(DATA - d).x) / 4e-4 for d in h], -1)
    for jacobian in (fad.jacrev(lambda y: fit(y).x), fad.jacfwd(lambda y: fit(y).x)):
        np.testing.assert_allclose(jacobian(DATA), wanted, 1e-4, 1e-5)
    value, slope = fad.value_and_grad(lambda y: fit(y).cost)(DATA)
    np.testing.assert_allclose(value, fit(DATA).cost, 1e-12)
    np.testing.assert_allclose(slope, [(fit(DATA + d).cost - fit(DATA - d).cost) / 4e-4 for d in h], 1e-4, 1e-6)
    own = fad.scipy.optimize.least_squares(lambda p: p[0] * T + p[1] - DATA, np.array([0.5, 1.0]), **tight)
    np.testing.assert_allclose(own.cost, fit(DATA).cost, 1e-12)


def test_a_loss_of_the_programs_own_is_refused():
    loss = lambda z: np.stack([np.log1p(z), 1 / (1 + z), -1 / (1 + z) ** 2])
    with pytest.raises(DerivativeError, match="minimize"):
        fad.grad(lambda y: so.least_squares(lambda p: p[0] * T + p[1] - y, np.ones(2), loss=loss).x[0])(DATA)


def test_difference_quotients_are_differentiated_as_they_are_computed():
    cubes = lambda x, s=1.0: np.sum(s * x**3)
    for x in (A, np.array([-2.0, 0.5, 3.0])):
        np.testing.assert_allclose(fad.scipy.optimize.approx_fprime(x, cubes), so.approx_fprime(x, cubes), 1e-12)
        got = fad.jacobian(lambda x: so.approx_fprime(x, cubes, 1e-6, 2.0))(x)
        np.testing.assert_allclose(got, np.diag(12 * x), 1e-4, 1e-6)
    pairs = lambda x: np.stack([x[0] * x[1], x[0] ** 2])
    np.testing.assert_allclose(fad.jvp(lambda x: so.approx_fprime(x, pairs), (A,), (A,))[0], so.approx_fprime(A, pairs))
