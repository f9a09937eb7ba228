"""Derivatives of differential equations by every method: stiff, contracting, chaotic, and against tight differences."""

from __future__ import annotations

import functools
import math

import numpy as np
import pytest

import fad

si = pytest.importorskip("scipy.integrate")

from fad.scipy import integrate as ours  # noqa: E402

METHODS = ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"]
IMPLICIT = ["Radau", "BDF", "LSODA"]
EVERY = pytest.mark.parametrize("method", METHODS)
STIFF = pytest.mark.parametrize("method", IMPLICIT)


def tolerances(method):
    return {"rtol": 1e-6, "atol": 1e-7} if method == "RK23" else {"rtol": 1e-8, "atol": 1e-9}


def accuracy(method):
    return 2e-4 if method == "RK23" else 2e-6


def van_der_pol(t, y, mu):
    return np.stack([y[1], mu * (1 - y[0] ** 2) * y[1] - y[0]])


def end(field, y0, t1, method, *args, of=ours, t0=0.0, **options):
    return of.solve_ivp(field, (t0, t1), y0, method, args=args, **options).y[:, -1]


def differences(f, x, h):
    return (8 * (f(x + h) - f(x - h)) - (f(x + 2 * h) - f(x - 2 * h))) / (12 * h)


def tight(field, y0, t1, *args, method="DOP853", atol=1e-13):
    numbers = lambda t, y, *args: np.asarray(field(t, y, *args))
    return end(numbers, y0, t1, method, *args, of=si, rtol=1e-12, atol=atol)


def both_modes(f, x):
    return fad.grad(f)(x), fad.jvp(f, (x,), (1.0,))[1]


@functools.cache
def stiff_reference(mu, t1):
    y0 = np.array([2.0, 0.0])
    in_mu = differences(lambda mu: tight(van_der_pol, y0, t1, mu, method="LSODA")[0], mu, 5e-4 * mu)
    return in_mu, tight(van_der_pol, y0, t1, mu, method="LSODA")[1]


@functools.cache
def oscillation():
    return differences(lambda mu: np.sum(tight(van_der_pol, np.array([2.0, 0.0]), 10.0, mu)), 3.5, 1e-3)


@EVERY
def test_an_oscillation_that_contracts_has_the_derivative_of_a_tight_solution_in_both_modes(method):
    def total(mu):
        return np.sum(end(van_der_pol, np.array([2.0, 0.0]), 10.0, method, mu, **tolerances(method)))

    assert pytest.approx(0.39138, abs=5e-6) == oscillation()
    forward, reverse = both_modes(total, 3.5)
    np.testing.assert_allclose([forward, reverse], oscillation(), rtol=accuracy(method))
    assert forward == pytest.approx(reverse, rel=1e-9)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_every_method_has_a_derivative_along_its_stored_solution(method):
    def total(mu):
        field = lambda t, y: van_der_pol(t, y, mu)
        return np.sum(end(field, np.array([2.0, 0.0]), 10.0, method, adjoint="continuous", rtol=1e-7, atol=1e-8))

    np.testing.assert_allclose(both_modes(total, 3.5), oscillation(), rtol=1e-6)


@EVERY
def test_the_error_of_a_derivative_shrinks_with_the_tolerances(method):
    for rtol in (1e-5, 1e-6) if method == "RK23" else (1e-5, 1e-7, 1e-9):
        options = {"rtol": rtol, "atol": rtol}
        slope = fad.grad(lambda mu, o=options: np.sum(end(van_der_pol, np.array([2.0, 0.0]), 10.0, method, mu, **o)))
        assert abs(slope(3.5) / oscillation() - 1) < 1000 * rtol


def test_odeint_of_a_contracting_oscillation():
    times = np.array([0.0, 3.0, 3.0, 10.0])

    def total(mu):
        return np.sum(ours.odeint(van_der_pol, np.array([2.0, 0.0]), times, (mu,), tfirst=True)[-1])

    np.testing.assert_allclose(both_modes(total, 3.5), oscillation(), rtol=1e-6)
    rows, slopes = fad.jvp(lambda t: ours.odeint(lambda y, t: -y, np.ones(1), t), (times,), (np.ones(4),))
    np.testing.assert_allclose(rows, ours.odeint(lambda y, t: -y, np.ones(1), times), rtol=1e-7)
    np.testing.assert_allclose(rows, si.odeint(lambda y, t: -y, np.ones(1), times), atol=2e-8)  # the solver's atol
    np.testing.assert_allclose(slopes[1:], 0.0, atol=1e-7)


@STIFF
@pytest.mark.parametrize("mu", [10.0, 1000.0])
def test_a_stiff_oscillator_in_both_modes_and_in_its_end(method, mu):
    y0, t1 = np.array([2.0, 0.0]), 0.5 * mu
    expected = stiff_reference(mu, t1)

    def last(mu, t1):
        return end(van_der_pol, y0, t1, method, mu, rtol=1e-6, atol=1e-8)[0]

    np.testing.assert_allclose(fad.grad(last, (0, 1))(mu, t1), expected, rtol=2e-5)
    pushed = fad.jvp(last, (mu, t1), (1.0, 0.0))[1], fad.jvp(last, (mu, t1), (0.0, 1.0))[1]
    np.testing.assert_allclose(pushed, expected, rtol=2e-5)


def test_the_derivative_passes_through_the_jumps_of_a_relaxation_oscillation():
    y0 = np.array([2.0, 0.0])
    expected = stiff_reference(1000.0, 2000.0)[0]
    last = lambda mu: end(van_der_pol, y0, 2000.0, "Radau", mu, rtol=1e-8, atol=1e-10)[0]
    np.testing.assert_allclose(fad.grad(last)(1000.0), expected, rtol=1e-4)


def robertson(t, y, k):
    slow, fast, back = k[0] * y[0], k[1] * y[1] ** 2, k[2] * y[1] * y[2]
    return np.stack([back - slow, slow - back - fast, fast])


RATES = np.array([0.04, 3e7, 1e4])
LATE = np.array([0.4, 40.0, 4e4, 4e8])


def reaction(k, method, of=ours, rtol=1e-8, atol=1e-14):
    return of.solve_ivp(robertson, (0.0, LATE[-1]), np.eye(3)[0], method, LATE, args=(k,), rtol=rtol, atol=atol).y


@functools.cache
def reaction_reference():
    def at(factor, i):
        return reaction(RATES * (1 + factor * np.eye(3)[i]), "LSODA", si, 1e-12, 1e-18)

    return np.stack([differences(lambda f, i=i: at(f, i), 0.0, 1e-2) for i in range(3)], axis=-1)


@STIFF
@pytest.mark.parametrize("jacobian", [fad.jacfwd, fad.jacrev])
def test_robertsons_reaction_in_all_rates(method, jacobian):
    found = jacobian(lambda k: reaction(k, method))(RATES) * RATES
    np.testing.assert_allclose(found, reaction_reference(), rtol=2e-6)


@EVERY
def test_a_strong_contraction_over_a_long_time_forgets_its_start(method):
    def last(a, y0):
        return end(lambda t, y: -a * (y - np.cos(t)), y0, 10.0, method, rtol=1e-6, atol=1e-6)[0]

    slow = lambda a: (a * a * np.cos(10.0) + a * np.sin(10.0)) / (a * a + 1)
    in_a, in_y0 = fad.grad(last, (0, 1))(50.0, np.zeros(1))
    assert in_a == pytest.approx(fad.grad(slow)(50.0), rel=1e-3)
    assert abs(in_y0[0]) < 1e-30
    assert fad.jvp(last, (50.0, np.zeros(1)), (1.0, np.ones(1)))[1] == pytest.approx(in_a, rel=1e-7)


def lorenz(t, y, r):
    return np.stack([10 * (y[1] - y[0]), y[0] * (r - y[2]) - y[1], y[0] * y[1] - 8 / 3 * y[2]])


@functools.cache
def lorenz_reference():
    return differences(lambda r: tight(lorenz, np.ones(3), 2.0, r)[0], 28.0, 1e-3)


@EVERY
def test_chaos_over_a_short_time_and_growth(method):
    options = tolerances(method)
    np.testing.assert_allclose(
        both_modes(lambda r: end(lorenz, np.ones(3), 2.0, method, r, **options)[0], 28.0),
        lorenz_reference(),
        rtol=10 * accuracy(method),
    )
    growth = lambda a: end(lambda t, y: a * y, np.ones(1), 20.0, method, **options)[0]
    np.testing.assert_allclose(both_modes(growth, 1.0), 20 * np.exp(20.0), rtol=10 * accuracy(method))


# --- orders, operands, kinds ------------------------------------------------------------------------------------------


def damped(t, y, p):
    return np.stack([y[1], -p["stiffness"] * np.sin(y[0]) - p["damping"] * y[1]])


@EVERY
def test_a_hessian_in_a_tree_of_parameters_is_that_of_differences(method):
    def energy(p, of=ours, method=method, **options):
        return np.sum(end(damped, np.array([1.0, 0.0]), 1.0, method, p, of=of, **options) ** 2)

    def moved(a, b):
        return energy({"stiffness": 2.0 + a, "damping": 0.3 + b}, si, "DOP853", rtol=1e-13, atol=1e-14)

    h = 1e-3
    pure = [(moved(h * a, h * b) - 2 * moved(0, 0) + moved(-h * a, -h * b)) / h**2 for a, b in ((1, 0), (0, 1))]
    mixed = (moved(h, h) - moved(h, -h) - moved(-h, h) + moved(-h, -h)) / (4 * h * h)
    found = fad.hessian(lambda p: energy(p, **tolerances(method)))({"stiffness": 2.0, "damping": 0.3})
    np.testing.assert_allclose([found[k][k] for k in ("stiffness", "damping")], pure, rtol=5 * accuracy(method))
    np.testing.assert_allclose(
        [found["stiffness"]["damping"], found["damping"]["stiffness"]], mixed, rtol=5 * accuracy(method)
    )


@EVERY
def test_third_derivatives_and_series(method):
    last = lambda rate: end(lambda t, y: -rate * y, np.ones(1), 1.0, method, **tolerances(method))[0]
    assert fad.grad(fad.grad(fad.grad(last)))(2.0) == pytest.approx(-np.exp(-2.0), rel=accuracy(method))
    _, series = fad.jet(last, (2.0,), ([1.0, 0.0, 0.0],))
    np.testing.assert_allclose(series, np.exp(-2.0) * np.array([-1.0, 1.0, -1.0]), rtol=accuracy(method))


@EVERY
@pytest.mark.parametrize("span", [(0.2, 1.3), (1.3, 0.2), (0.7, 0.7)], ids=["forwards", "backwards", "no time"])
def test_both_ends_to_second_order_whatever_the_direction(method, span):
    def last(t0, t1):
        return end(lambda t, y: -np.cos(t) * y, np.ones(1), t1, method, t0=t0, **tolerances(method))[0]

    exact = lambda t0, t1: np.exp(np.sin(t0) - np.sin(t1))
    np.testing.assert_allclose(fad.grad(last, (0, 1))(*span), fad.grad(exact, (0, 1))(*span), rtol=accuracy(method))
    second = fad.hessian(last, (0, 1))(*span), fad.hessian(exact, (0, 1))(*span)
    np.testing.assert_allclose(*second, rtol=5 * accuracy(method), atol=5 * accuracy(method))


@EVERY
@pytest.mark.parametrize("backwards", [False, True])
def test_times_that_are_requested(method, backwards):
    times = np.array([0.2, 0.2 + 1e-9, 0.5, 0.9, 1.3])
    times = times[::-1] if backwards else times

    def states(times, t1):
        return ours.solve_ivp(lambda t, y: -np.cos(t) * y, (t0, t1), np.ones(1), method, times, **tolerances(method)).y[
            0
        ]

    t0, t1 = times[0], times[-1]
    exact = np.exp(np.sin(t0) - np.sin(times))
    np.testing.assert_allclose(states(times, t1), exact, rtol=accuracy(method))
    in_times, in_end = fad.jacobian(states, (0, 1))(times, t1)
    np.testing.assert_allclose(in_times, np.diag(-np.cos(times) * exact), rtol=accuracy(method), atol=accuracy(method))
    np.testing.assert_allclose(in_end, 0.0, atol=accuracy(method))


@EVERY
@pytest.mark.parametrize("t1", [0.8, 1.1, 5.0])
def test_a_step_of_rounding_at_the_end_leaves_the_slope_there(method, t1):
    steps = {"max_step": 0.1, "first_step": 0.1}  # of Radau's the last ends a rounding before t1
    at = lambda t: ours.solve_ivp(lambda t, y: -y, (0.0, t1), np.ones(1), method, np.stack([t]), **steps).y[0, 0]
    np.testing.assert_allclose(fad.value_and_grad(at)(t1), np.array([1.0, -1.0]) * math.exp(-t1), rtol=3e-3)


@pytest.mark.parametrize("method", ["RK45", "RK23", "DOP853", "BDF"])
def test_a_complex_state_whose_equation_is_not_holomorphic(method):
    def last(w, of=ours, method=method, **options):
        field = lambda t, y: 1j * w * y - 0.3 * np.abs(y) ** 2 * y
        return np.real(end(field, np.array([1 + 0.5j]), 1.0, method, of=of, **options)[0] * (1 - 2j))

    expected = differences(lambda w: last(w, si, "DOP853", rtol=1e-12, atol=1e-13), 2.0, 1e-3)
    np.testing.assert_allclose(
        both_modes(lambda w: last(w, **tolerances(method)), 2.0), expected, rtol=accuracy(method)
    )


@STIFF
def test_all_steps_are_returned_as_scipy_does(method):
    plain = si.solve_ivp(van_der_pol, (0.0, 3.0), [2.0, 0.0], method, args=(5.0,))
    solve = lambda mu: (lambda found: (found.t, found.y))(
        ours.solve_ivp(van_der_pol, (0.0, 3.0), np.array([2.0, 0.0]), method, args=(mu,)))  # fmt: skip
    t, y = fad.linearize(solve, 5.0)[0]
    np.testing.assert_allclose(t, plain.t, rtol=1e-12)
    np.testing.assert_allclose(y, plain.y, rtol=1e-10, atol=1e-12)


@EVERY
def test_the_right_hand_side_may_use_numbers_of_its_time_and_branches(method):
    def last(a):
        def field(t, y):
            rate = a * math.cos(t) if t < 0.5 else 2 * a
            return [-rate * y[0]]

        return end(field, [1.0], 1.0, method, max_step=0.1, **tolerances(method))[0]

    exact = lambda a: np.exp(-a * (np.sin(0.5) + 1.0))
    assert fad.grad(last)(1.0) == pytest.approx(fad.grad(exact)(1.0), rel=accuracy(method))


@pytest.mark.parametrize("method", [*METHODS, si.Radau, si.DOP853])
def test_single_precision_is_solved_in_double_as_by_scipy(method):
    start = np.ones(2, "f4")
    y, pullback = fad.vjp(lambda y0: end(lambda t, y: -y, y0, 1.0, method, rtol=1e-6), start)
    assert y.dtype == si.solve_ivp(lambda t, y: -y, (0.0, 1.0), start, method).y.dtype == np.float64
    assert pullback(np.ones(2))[0].dtype == np.float32


@STIFF
def test_derivatives_that_are_larger_than_what_is_kept_are_the_same(method, monkeypatch):
    last = lambda mu: np.sum(end(van_der_pol, np.array([2.0, 0.0]), 2.0, method, mu))
    kept = fad.hessian(last)(3.5)
    monkeypatch.setattr("fad.scipy.collocation._KEPT_BYTES", 8 * 2 * 36 * 8)  # two steps at a time
    assert fad.hessian(last)(3.5) == pytest.approx(kept, rel=1e-10)


class Model:
    def __init__(self, rate):
        self.rate = rate

    def __call__(self, t, y):
        return -self.rate * y


@STIFF
def test_a_traced_value_in_an_attribute_is_differentiated(method):
    last = lambda rate: end(Model(rate), np.ones(1) * rate, 1.0, method, **tolerances(method))[0]
    assert fad.grad(last)(2.0) == pytest.approx(-np.exp(-2.0), rel=1e-6)
    compiled = fad.jit(last)
    np.testing.assert_allclose([compiled(1.0), compiled(2.0)], [last(1.0), last(2.0)], rtol=1e-12)
    np.testing.assert_allclose(fad.vmap(last)(np.array([1.0, 2.0])), [last(1.0), last(2.0)], rtol=1e-12)
    start = np.ones(1)
    for begin in (lambda: np.ones(1), lambda: start):
        slope = fad.grad(lambda rate, begin=begin: end(Model(rate), begin(), 1.0, method, **tolerances(method))[0])(2.0)
        assert slope == pytest.approx(-np.exp(-2.0), rel=1e-6)
    assert type(start) is np.ndarray
