"""Events of differential equations have the times and states that SciPy finds, and derivatives of where they are."""

import numpy as np
import pytest

import fad

si = pytest.importorskip("scipy.integrate")
ours = pytest.importorskip("fad.scipy.integrate")

METHODS = ["RK45", "RK23", "DOP853", "Radau", "BDF", "LSODA"]
STONE = np.array([1.0, 3.0, 9.81])  # height, velocity upwards, gravity
TIGHT = {"rtol": 1e-9, "atol": 1e-9}


def ground(t, y):
    return y[0]


ground.terminal, ground.direction = True, -1


def top(t, y):
    return y[1]


def throw(p, module=ours, method="RK45", span=(0.0, 10.0), **options):
    fall = lambda t, y: np.stack([y[1], -p[2]])
    return module.solve_ivp(fall, span, np.stack([p[0], p[1]]), method, **{"events": [ground, top], **TIGHT, **options})


def times_by_hand(p):
    h, v, g = p
    return np.stack([(v + np.sqrt(v * v + 2 * g * h)) / g, v / g])


@pytest.mark.parametrize("derivative", [fad.jacobian, fad.jacfwd])
@pytest.mark.parametrize("method", METHODS)
def test_the_times_of_events_have_the_derivatives_of_their_formulas(method, derivative):
    times = lambda p: np.concatenate(throw(p, method=method).t_events)
    np.testing.assert_allclose(derivative(times)(STONE), fad.jacobian(times_by_hand)(STONE), 1e-5, 1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_the_states_at_events_have_the_derivatives_of_their_formulas(method):
    def states(p):
        (landed,), (highest,) = throw(p, method=method).y_events
        return np.stack([landed[1], highest[0], landed[0], highest[1]])

    by_hand = lambda p: np.stack(
        [-np.sqrt(p[1] ** 2 + 2 * p[2] * p[0]), p[0] + p[1] ** 2 / (2 * p[2]), 0 * p[0], 0 * p[0]]
    )
    np.testing.assert_allclose(fad.jacobian(states)(STONE), fad.jacobian(by_hand)(STONE), 1e-5, 1e-5)


def test_the_time_of_an_event_has_second_derivatives_in_every_nesting():
    landing = lambda p: throw(p).t_events[0][0]
    wanted = fad.hessian(lambda p: times_by_hand(p)[0])(STONE)
    for outer in (fad.jacfwd, fad.jacrev):
        for inner in (fad.jacfwd, fad.jacrev):
            np.testing.assert_allclose(outer(inner(landing))(STONE), wanted, 1e-6, 1e-8)


@pytest.mark.parametrize("t_eval", [None, np.linspace(0.0, 2.0, 9)])
@pytest.mark.parametrize("method", METHODS)
def test_the_values_are_scipys_whatever_is_traced(method, t_eval):
    wanted, found = throw(STONE, si, method, t_eval=t_eval), []
    fad.grad(lambda p: (found.append(throw(p, method=method, t_eval=t_eval)), found[-1].y.sum())[1])(STONE)
    (found,) = found
    assert (found.status, found.message, len(found.t)) == (wanted.status, wanted.message, len(wanted.t))
    for name in ("t", "y"):
        np.testing.assert_allclose(fad.stop_gradient(found[name]), wanted[name], 1e-12, 1e-12)
    for name in ("t_events", "y_events"):
        for a, b in zip(found[name], wanted[name], strict=True):
            assert a.shape == b.shape
            np.testing.assert_allclose(fad.stop_gradient(a), b, 1e-12, 1e-12)


@pytest.mark.parametrize("method", ["RK45", "DOP853", "Radau"])
def test_nothing_is_computed_behind_the_end(method):
    def empty(t, y):
        return y[0] - 1e-3

    empty.terminal = True

    def time(k):  # a tank, whose level has no root below zero
        drain = lambda t, y: -k * np.sqrt(np.where(y > 0, y, np.nan))
        return ours.solve_ivp(drain, (0.0, 5.0), np.ones(1), method, events=empty, **TIGHT).t[-1]

    by_hand = lambda k: 2 * (1 - np.sqrt(1e-3)) / k
    np.testing.assert_allclose(fad.value_and_grad(time)(1.3), fad.value_and_grad(by_hand)(1.3), 1e-5)


@pytest.mark.parametrize("method", ["RK45", "BDF"])
def test_events_that_happen_often_backwards_or_never_are_differentiated(method):
    tolerances = {"rtol": 1e-7, "atol": 1e-7} if method == "RK45" else TIGHT

    def crossings(w, span):
        events = [lambda t, y: y[0] - 0.5, lambda t, y: y[0] - 7.0]
        swing = lambda t, y: np.stack([y[1], -w * w * y[0]])
        return ours.solve_ivp(swing, span, np.array([1.0, 0.0]), method, events=events, **tolerances).t_events

    for span in ((0.0, 4.0), (0.0, -4.0)):
        often = lambda w, span=span: crossings(w, span)[0]
        found, slope = often(2.0), fad.jacfwd(often)(2.0)
        assert len(found) == 3
        np.testing.assert_allclose(slope, -found / 2.0, 1e-4, 1e-5)  # of k pi / w, plus or minus pi / 3 w
        assert crossings(2.0, span)[1].shape == (0,)


def test_an_event_may_have_arguments_and_values_from_outside():
    def level(t, y, a, b):
        return y[0] - b

    level.terminal = True
    decay = lambda t, y, a, b: -a * y
    time = lambda a, b: ours.solve_ivp(decay, (0.0, 9.0), [1.0], args=(a, b), events=level, **TIGHT).t[-1]
    np.testing.assert_allclose(fad.grad(time, (0, 1))(0.7, 0.3), (np.log(0.3) / 0.49, -1 / (0.7 * 0.3)), 1e-6)
    only_the_event = lambda b: ours.solve_ivp(
        lambda t, y: -0.7 * y, (0.0, 9.0), [1.0], events=lambda t, y: y[0] - b, **TIGHT
    ).t_events[0][0]
    np.testing.assert_allclose(fad.grad(only_the_event)(0.3), -1 / (0.7 * 0.3), 1e-6)


def test_a_bounce_goes_on_where_the_last_flight_ended():
    def height(restitution, module=ours):
        t, y = 0.0, np.array([1.0, 0.0])
        for _ in range(2):
            flight = module.solve_ivp(lambda t, y: np.stack([y[1], -9.81]), (t, 9.0), y, events=ground, **TIGHT)
            t, y = flight.t[-1], np.stack([0.0 * flight.y[0, -1], -restitution * flight.y[1, -1]])
        return y[1] ** 2 / (2 * 9.81), t

    np.testing.assert_allclose(height(0.8, si), (0.8**4, np.sqrt(2 / 9.81) * (1 + 2 * 0.8)), 1e-7)
    slopes = fad.jacfwd(lambda r: np.stack(height(r)))(0.8)
    np.testing.assert_allclose(slopes, (4 * 0.8**3, 2 * np.sqrt(2 / 9.81)), 1e-6)


@pytest.mark.parametrize("method", METHODS)
def test_a_dense_solution_is_differentiable_at_any_time(method):
    def position(p, t):
        return throw(p, method=method, dense_output=True, events=None, span=(0.0, 1.0)).sol(t)

    by_hand = lambda p, t: np.stack([p[0] + p[1] * t - p[2] * t * t / 2, p[1] - p[2] * t])
    for t in (np.array([0.7, 0.2, 0.2]), 0.4):
        found, wanted = (fad.jacobian(f, (0, 1))(STONE, t) for f in (position, by_hand))
        np.testing.assert_allclose(position(STONE, t), by_hand(STONE, t), 1e-6, 1e-6)
        for a, b in zip(found, wanted, strict=True):
            np.testing.assert_allclose(a, b, 1e-5, 1e-5)
