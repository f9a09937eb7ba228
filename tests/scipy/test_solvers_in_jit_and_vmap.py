"""Solvers and integrals inside jit and vmap: the values and derivatives of the plain loop, or a clear error."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError

pytest.importorskip("scipy")

from fad.scipy import integrate, optimize

T = np.linspace(0.0, 3.0, 12)
DATA = 2 * np.exp(-0.7 * T) + 0.1 + 0.02 * np.random.default_rng(0).normal(size=(3, 12))
START = (1.5, 0.5, 0.0)
BOX = ([0.0, 0.0, 0.0], [5.0, 3.0, 1.0])


def decay(t, a, k, c):
    return a * np.exp(-k * t) + c


def fit(y, **options):
    p, covariance = optimize.curve_fit(decay, T, y, **({"p0": START} | options))
    return np.concatenate([p, covariance.ravel()])


def squares(y, **options):
    return optimize.least_squares(lambda p: decay(T, *p) - y, np.array(START), **options)


def valley(y, **options):
    found = optimize.minimize(lambda x: np.sum((x - y[:2]) ** 2) + np.sum(x**4), np.full(2, 0.4), tol=1e-7, **options)
    return np.append(found.x, found.fun)


def cubic(x, a):
    return x**3 + x - a


PROGRAMS = {
    "curve_fit": fit,
    "curve_fit, sigma": lambda y: fit(y, sigma=np.abs(y) + 0.1),
    "curve_fit, covariance": lambda y: fit(y, sigma=np.eye(12) + 0.1 * y[0], absolute_sigma=True),
    "curve_fit, bounds": lambda y: fit(y, bounds=BOX),
    "curve_fit, no start": lambda y: fit(y, p0=None),
    "curve_fit, traced start": lambda y: fit(DATA[0] * y[1], p0=(y[0], 0.5, 0.0)),
    "curve_fit, traced places": lambda y: optimize.curve_fit(decay, T * y[0] / 2, DATA[0], START)[0],
    "least_squares": lambda y: squares(y).x * squares(y).cost,
    "least_squares, bounds": lambda y: squares(y, bounds=BOX).x,
    "root": lambda y: optimize.root(lambda x: x**3 + x - y[:2], np.ones(2)).x,
    "fixed_point": lambda y: optimize.fixed_point(lambda x: np.cos(x) * y[0] / 4, 0.5),
    "brentq": lambda y: optimize.brentq(cubic, 0.0, 1.0 + y[0], (y[0],)),
    "newton": lambda y: optimize.newton(cubic, y, args=(2 * y,)),
    "root_scalar": lambda y: optimize.root_scalar(cubic, (y[0],), x0=y[0]).root,
    "root_scalar, bracket": lambda y: optimize.root_scalar(cubic, (y[0],), bracket=(0.0, 1.0 + y[0])).root,
    "minimize": valley,
    "minimize, trust-exact": lambda y: valley(y, method="trust-exact"),
    "minimize, bounds": lambda y: valley(y, bounds=[(0.0, 0.5), (0.0, 5.0)]),
    "quad": lambda y: integrate.quad(lambda x: np.exp(-y[0] * x), 0.0, y[1])[0],
    "quad, points": lambda y: integrate.quad(lambda x: y[0] * np.abs(x - 0.5), 0.0, y[1], points=[0.5])[0],
    "dblquad": lambda y: integrate.dblquad(lambda u, v: np.exp(-y[0] * u * v), 0.0, 1.0, 0.0, lambda v: v * y[1])[0],
    "fixed_quad": lambda y: integrate.fixed_quad(lambda x: np.exp(-y[0] * x), 0.0, y[1])[0],
    "odeint": lambda y: integrate.odeint(lambda u, s, k: -k * u, np.ones(2), np.linspace(0, 1, 3), (y[0],)),
    "odeint, traced times": lambda y: integrate.odeint(
        lambda u, s: -u, np.ones(2), np.stack([0 * y[0], y[0], y[0] + 1])),
    "solve_ivp": lambda y: integrate.solve_ivp(
        lambda s, u: -y[0] * u, (0.0, 1.0), y[:2], "BDF", np.array([0.5, 1.0]), rtol=1e-8, atol=1e-8).y,
    "solve_ivp, traced times": lambda y: integrate.solve_ivp(
        lambda s, u: -y[0] * u, (0.0, y[1]), np.ones(2), "Radau", y[1] * np.array([0.1, 0.2]), rtol=1e-8, atol=1e-8).y,
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_solver_gives_in_vmap_and_jit_what_it_gives_in_a_loop(name):
    f = PROGRAMS[name]
    data = DATA[:2] if name == "dblquad" else DATA  # a solver in a solver takes long
    values, slopes = np.stack([f(y) for y in data]), np.stack([fad.jacfwd(f)(y) for y in data])
    of_values, of_slopes = ({"rtol": 1e-6, "atol": 1e-7 * np.abs(x).max()} for x in (values, slopes))
    np.testing.assert_allclose(np.stack([fad.jacrev(f)(y) for y in data]), slopes, **of_slopes)
    np.testing.assert_allclose(fad.vmap(f)(data), values, **of_values)
    np.testing.assert_allclose(fad.vmap(fad.jacrev(f))(data), slopes, **of_slopes)
    through = fad.grad(lambda data: np.sum(fad.vmap(f)(data)))(data)
    sums = slopes.reshape(len(data), -1, 12).sum(1)
    np.testing.assert_allclose(through, sums, rtol=1e-5, atol=1e-5 * np.abs(slopes).max())
    compiled, slope = fad.jit(f), fad.jit(fad.jacrev(f))
    np.testing.assert_allclose(np.stack([compiled(y) for y in data]), values, **of_values)
    np.testing.assert_allclose(np.stack([slope(y) for y in data]), slopes, **of_slopes)


COUNTS = {
    "minimize": lambda y: optimize.minimize(lambda x: np.sum((x - y) ** 4), np.ones(2), tol=1e-6).nit * y[0],
    "root_scalar": lambda y: optimize.root_scalar(cubic, (y[0],), x0=1.0).function_calls * y[0],
    "quad": lambda y: integrate.quad(lambda x: np.sqrt(x + y[0]), -y[0], 4.0)[1],
}


@pytest.mark.parametrize("name", COUNTS)
def test_what_a_solver_counts_is_that_of_the_batch_element_and_of_the_call(name):
    f, ys = COUNTS[name], np.array([[0.5, 1.0], [30.0, 2.0], [2.0, 2.0]])
    expected = [f(y) for y in ys]
    assert len(set(expected)) == 3
    np.testing.assert_allclose(fad.vmap(f)(ys), expected)
    compiled = fad.jit(f)
    np.testing.assert_allclose([compiled(y) for y in ys], expected)


def test_what_a_solver_reports_of_one_run_only_is_left_out_in_vmap_and_jit():
    def slack(y):
        return optimize.root(lambda x: x**3 - y, np.ones(1)).qtf

    assert slack(2.0).shape == (1,)
    for transformed in (fad.vmap(slack), fad.jit(slack)):
        with pytest.raises(AttributeError, match="qtf"):
            transformed(np.ones(1))


def test_one_batch_element_that_is_not_solved_is_not_overlooked():
    ys = np.array([2.0, 1e6, 3.0])
    few = lambda y: optimize.root_scalar(cubic, (y,), x0=1.0, maxiter=8)
    with pytest.warns(RuntimeWarning, match="did not converge"):
        np.testing.assert_array_equal(fad.vmap(lambda y: few(y).converged * 1.0)(ys), [1.0, 0.0, 1.0])
    with pytest.raises(DerivativeError, match="did not converge"):
        fad.grad(lambda ys: np.sum(fad.vmap(lambda y: few(y).root)(ys)))(ys)
    compiled = fad.jit(fad.grad(lambda y: few(y).root))
    assert compiled(2.0) == pytest.approx(0.25)
    with pytest.raises(DerivativeError, match="did not converge"):
        compiled(1e6)


def test_a_covariance_that_cannot_be_estimated_is_infinite_for_that_batch_element_alone():
    so = pytest.importorskip("scipy.optimize")
    y = np.array([1.0, 1.9, 3.2])

    def spread(x):
        return optimize.curve_fit(lambda x, a, b: a + b * x, x, y, (1.0, 0.0), method="lm")[1][1, 1]

    places = np.array([[0.0, 1.0, 2.0], [0.0, 0.0, 0.0], [0.0, 1.0, 3.0]])
    with pytest.warns(so.OptimizeWarning, match="could not be estimated"):
        found = fad.vmap(spread)(places)
    np.testing.assert_allclose(found, [spread(places[0]), np.inf, spread(places[2])])


def test_bounds_may_be_recorded_and_batched():
    bounded = {
        "curve_fit": lambda b: fit(DATA[0], bounds=(np.zeros(3), np.stack([b, b, b])))[0],
        "least_squares": lambda b: squares(DATA[0], bounds=(np.zeros(3), np.stack([b, b, b]))).x[0],
        "minimize": lambda b: valley(DATA[0], bounds=[(0.0, b), (0.0, b)])[0],
    }
    for f in bounded.values():
        np.testing.assert_allclose([fad.jit(f)(5.0), fad.vmap(f)(np.array([5.0]))[0]], f(5.0), 1e-6)
        assert fad.grad(f)(50.0) == pytest.approx(0.0, abs=1e-6)  # far from the minimum


def test_what_a_solver_takes_as_numbers_alone_is_refused_with_a_way_out():
    broken = lambda p: integrate.quad(lambda x: np.abs(x - p), 0.0, 1.0, points=[p])[0]
    assert fad.grad(broken)(0.25) == pytest.approx(-0.5)
    for transformed in (fad.jit(broken), lambda p: fad.vmap(broken)(np.stack([p, p]))):
        with pytest.raises(DerivativeError, match="Split the integral"):
            transformed(0.25)


ROOTS = {
    "brentq": lambda x: optimize.brentq(lambda u: u**3 - x, 0.0, 9.0),
    "newton": lambda x: optimize.newton(lambda u: u**3 - x, 1.0),
    "root_scalar": lambda x: optimize.root_scalar(lambda u: u**3 - x, bracket=(0.0, 9.0)).root,
    "fixed_point": lambda x: optimize.fixed_point(lambda u: np.cos(u * x), 0.5),
}


@pytest.mark.parametrize("f", ROOTS.values(), ids=ROOTS)
def test_a_root_under_jit_is_a_scalar(f):
    x, jitted = np.float64(1.1), fad.jit(f)
    for got in (jitted(x), jitted(x), fad.vjp(f, x)[0]):
        assert type(got) in (np.float64, type(f(x)))
        np.testing.assert_allclose(got, f(x), rtol=1e-12)


def integrals(x):
    total = 0.3
    for k in range(4):
        total = 0.5 * total + integrate.quad(lambda t: np.exp(-t * x * (1 + k)), 0.0, 1.0)[0]  # noqa: B023
    return total


def roots(x):
    total = 0.3
    for k in range(4):
        total = 0.5 * total + optimize.brentq(lambda t: t**3 - x - k - total, 0.0, 10.0)  # noqa: B023
    return total


def equations(x):
    total, seen = np.array([0.3]), 0
    for k in range(4):

        def slope(y, t):
            nonlocal seen
            seen += 1  # what a function binds itself is the program's variable still
            return -y * (x + k)  # noqa: B023

        total = 0.5 * integrate.odeint(slope, 1.0 + total, T[:2], rtol=1e-9)[-1]
    assert seen
    return total[0]


class Decay:
    def __init__(self, x):
        self.x, self.k, self.seen = x, 0, 0

    def density(self, t):
        self.seen += 1
        return np.exp(-t * self.x * (1 + self.k))


def objects(x):
    decay, shift, total = Decay(x), {"by": 0.0}, 0.3
    for k in range(4):
        decay.k, shift["by"] = k, 0.1 * k
        total = 0.5 * total + integrate.quad(decay.density, 0.0, 1.0)[0]
        total = total + optimize.brentq(lambda t: t**3 - x - shift["by"], 0.0, 10.0)
    assert decay.seen == 84
    return total


def checkpoints(x):
    total = 0.3
    for k in range(4):
        total = 0.5 * total + fad.checkpoint(lambda y: np.sin(y * (k + total)))(x)  # noqa: B023
    return total


@pytest.mark.parametrize("f", [integrals, roots, equations, objects, checkpoints])
def test_functions_that_run_again_find_the_variables_of_a_loop_as_they_were(f):
    slope = (f(0.7 + 1e-5) - f(0.7 - 1e-5)) / 2e-5
    assert fad.grad(f)(0.7) == pytest.approx(slope, rel=1e-5)
    fast, steep = fad.jit(f), fad.jit(fad.grad(f))
    for _ in range(2):
        assert fast(0.7) == pytest.approx(f(0.7), rel=1e-7)
        assert steep(0.7) == pytest.approx(slope, rel=1e-5)


@pytest.mark.parametrize("around", [lambda f: f, fad.jit, lambda f: lambda a: fad.vmap(f)(np.array([a]))])
def test_why_a_solver_failed_is_said_in_every_transform(around):
    def stopped(a):
        f = lambda x: np.sum((x - a) ** 4 + x**2)
        return optimize.minimize(f, 9 * np.ones(2), options={"maxiter": 1}).x.sum()

    def outside(b):
        return optimize.linprog([1.0], A_eq=[[1.0]], b_eq=[b], bounds=[(0, 1)]).x[0]

    with pytest.raises(DerivativeError, match=r"minimize did not converge \(Maximum number of iterations"):
        around(fad.grad(stopped))(0.3)
    with pytest.raises(DerivativeError, match=r"linprog did not converge \(.*infeasible"):
        around(fad.grad(outside))(2.0)


@pytest.mark.parametrize(
    ("objective", "given"), [(lambda x: None, "None"), (lambda x: x * x, r"an array of shape \(2,\)")]
)
def test_an_objective_that_gives_no_number_says_what_it_gave(objective, given):
    with pytest.raises(ValueError, match=f"must return a number, but gave {given}"):
        optimize.minimize(objective, np.ones(2))
