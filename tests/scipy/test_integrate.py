"""Integrals and differential equations: SciPy's values, and derivatives by both adjoints."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError

si = pytest.importorskip("scipy.integrate")

from fad.scipy import integrate as ours  # noqa: E402

TIGHT = {"rtol": 1e-9, "atol": 1e-10}
EITHER = pytest.mark.parametrize(
    ("adjoint", "method"),
    [("discrete", "RK45"), ("discrete", "RK23"), ("continuous", "DOP853"), ("continuous", "Radau")],
)


def predators(t, y, a, b):
    return np.stack([a * y[0] - b * y[0] * y[1], -y[1] + 0.5 * y[0] * y[1] * np.cos(t)])


def final(a, b, y0, t1, t0, method="RK45", adjoint=None, **options):
    solution = ours.solve_ivp(predators, (t0, t1), y0, method, args=(a, b), adjoint=adjoint, **(options or TIGHT))
    return np.sum(np.sin(solution.y[:, -1]))


OPERANDS = (1.1, 0.6, np.array([1.0, 0.7]), 1.0, 0.1)


def by_differences(k):
    def at(shift):
        operands = list(OPERANDS)
        operands[k] = operands[k] + shift
        return final(*operands, rtol=1e-12, atol=1e-13)

    return (at(1e-4) - at(-1e-4)) / 2e-4


@EITHER
def test_the_solution_is_differentiable_in_parameters_state_and_times(adjoint, method):
    options = {"rtol": 1e-6, "atol": 1e-8} if method == "RK23" else TIGHT
    gradient = fad.grad(lambda *xs: final(*xs, method, adjoint, **options), (0, 1, 2, 3, 4))(*OPERANDS)
    for k in (0, 1, 3, 4):
        assert gradient[k] == pytest.approx(by_differences(k), rel=2e-5)
    assert np.sum(gradient[2]) == pytest.approx(by_differences(2), rel=2e-5)


@EITHER
def test_times_asked_for_are_interpolated_as_scipy_does(adjoint, method):
    times = np.array([0.0, 0.3, 0.31, 1.0])

    def solve(a, t_eval):
        return ours.solve_ivp(
            predators, (0.0, 1.0), OPERANDS[2], method, t_eval, args=(a, 0.6), adjoint=adjoint, rtol=1e-7, atol=1e-9
        )

    rows, slopes = fad.jvp(lambda t: solve(1.1, t).y, (times,), (np.ones(4),))
    np.testing.assert_allclose(rows, solve(1.1, times).y, rtol=1e-6)
    wanted = np.stack([predators(t, y, 1.1, 0.6) for t, y in zip(times, rows.T, strict=True)], axis=1)
    np.testing.assert_allclose(slopes[:, 1:], wanted[:, 1:], rtol=1e-4)


@pytest.mark.parametrize("adjoint", ["discrete", "continuous"])
def test_second_derivatives_and_maps(adjoint):
    def end(rate):
        return ours.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), np.ones(1), adjoint=adjoint, **TIGHT).y[0, -1]

    assert fad.grad(fad.grad(end))(2.0) == pytest.approx(np.exp(-2.0), rel=1e-6)
    assert fad.jvp(fad.grad(end), (2.0,), (1.0,))[1] == pytest.approx(np.exp(-2.0), rel=1e-6)
    rates = np.array([0.5, 2.0, 7.0])
    np.testing.assert_allclose(fad.vmap(end)(rates), np.exp(-rates), rtol=1e-6)
    np.testing.assert_allclose(fad.vmap(fad.grad(end))(rates), -np.exp(-rates), rtol=1e-6)
    np.testing.assert_allclose(fad.grad(lambda r: np.sum(fad.vmap(end)(r)))(rates), -np.exp(-rates), rtol=1e-6)


def test_the_discrete_adjoint_is_the_derivative_of_the_numbers_computed():
    """With few, rough steps the derivative still equals differences of the rough solution, not of the exact one."""

    def end(rate):
        found = ours.solve_ivp(
            lambda t, y: -rate * y, (0.0, 1.0), np.ones(1), adjoint="discrete", first_step=0.5, rtol=1e3, atol=1e3
        )
        return found.y[0, -1]

    value, slope = fad.jvp(end, (2.0,), (1.0,))
    assert abs(value - np.exp(-2.0)) > 1e-5
    near = [fad.jvp(end, (2.0 + h,), (0.0,))[0] for h in (1e-5, -1e-5)]
    assert slope == pytest.approx((near[0] - near[1]) / 2e-5, rel=1e-8)


def test_plain_values_go_to_scipy_itself():
    ours_now = ours.solve_ivp(predators, (0.0, 1.0), [1.0, 0.7], args=(1.1, 0.6), dense_output=True)
    scipys = si.solve_ivp(predators, (0.0, 1.0), [1.0, 0.7], args=(1.1, 0.6))
    np.testing.assert_array_equal(ours_now.y, scipys.y)
    assert ours_now.sol(0.5).shape == (2,)


def test_plain_calls_give_their_arguments_to_jacobian_and_events_too():
    def fun(t, y, k):
        return -k * y**3 + np.roll(y, 1)

    jacobian = fad.sparse.jacobian(lambda y, t, k: fun(t, y, k))
    options = dict(
        method="BDF", args=(2.0,), rtol=1e-8, atol=1e-10, jac=lambda t, y, k: jacobian(y, t, k),
        events=lambda t, y, k: y[0] - 0.2 * k,
    )  # fmt: skip
    got = ours.solve_ivp(fun, (0.0, 1.0), np.linspace(0, 1, 6), **options)
    wanted = si.solve_ivp(fun, (0.0, 1.0), np.linspace(0, 1, 6), **options)
    assert got.njev == wanted.njev > 0
    assert len(got.t_events[0]) == 1
    np.testing.assert_array_equal(got.y, wanted.y)


def test_what_helps_a_stiff_method_changes_no_derivative():
    def end(k, **options):
        options |= {"rtol": 1e-9, "atol": 1e-9}
        return ours.solve_ivp(lambda t, y: -k * y, (0.0, 1.0), np.ones(2), "BDF", **options).y[0, -1]

    with_jac = fad.grad(lambda k: end(k, jac=lambda t, y: -2.0 * np.eye(2)))(2.0)
    np.testing.assert_allclose([with_jac, fad.grad(end)(2.0)], -np.exp(-2.0), rtol=1e-6)
    with pytest.raises(TypeError, match=r"does not take \['jack'\]"):
        fad.grad(lambda k: end(k, jack=None))(2.0)


def test_the_discrete_steps_are_scipys():
    plain = si.solve_ivp(predators, (0.0, 2.0), [1.0, 0.7], args=(1.1, 0.6), rtol=1e-5)
    times = fad.jvp(
        lambda a: ours.solve_ivp(predators, (0.0, 2.0), [1.0, 0.7], args=(a, 0.6), rtol=1e-5).t, (1.1,), (1.0,)
    )[0]
    np.testing.assert_allclose(times, plain.t, rtol=1e-9)


def test_what_cannot_be_differentiated_is_refused():
    def blows_up(a, adjoint):
        return ours.solve_ivp(lambda t, y: a * y * y, (0.0, 2.0), np.ones(1), adjoint=adjoint).y[0, -1]

    for adjoint in ("discrete", "continuous"):
        with pytest.raises(DerivativeError, match="could not complete"), np.errstate(all="ignore"):
            fad.grad(blows_up)(1.0, adjoint)
    with pytest.raises(DerivativeError, match="events"):
        fad.jit(lambda a: ours.solve_ivp(lambda t, y: a * y, (0, 1), [1.0], events=lambda t, y: y[0]).y[0, -1])(1.0)
    with pytest.raises(ValueError, match="continuous"):
        fad.grad(lambda a: ours.solve_ivp(lambda t, y: a * y, (0, 1), [1.0], "BDF", adjoint="discrete").y[0, -1])(1.0)
    with pytest.raises(ValueError, match="t_eval"):
        fad.grad(lambda a: ours.solve_ivp(lambda t, y: a * y, (0, 1), [1.0], t_eval=[0.0, 2.0]).y[0, -1])(1.0)


@pytest.mark.parametrize("adjoint", ["discrete", "continuous"])
def test_odeint_takes_trees(adjoint):
    def end(k, start):
        states = ours.odeint(
            lambda s, t, k: {"u": s["v"], "v": -k * s["u"]}, start, np.array([0.0, 0.5, 1.0]), (k,), adjoint=adjoint
        )
        return states["u"][-1]

    slope, moved = fad.grad(end, (0, 1))(4.0, {"u": 1.0, "v": 0.0})
    assert slope == pytest.approx(-np.sin(2.0) / 4, rel=1e-6)
    assert moved["u"] == pytest.approx(np.cos(2.0), rel=1e-6)
    assert moved["v"] == pytest.approx(np.sin(2.0) / 2, rel=1e-6)


def test_odeint_equals_scipys():
    times = np.linspace(0.0, 1.0, 4)
    found = ours.odeint(lambda y, t: -y * t, np.array([1.0, 2.0]), times)
    np.testing.assert_allclose(found, si.odeint(lambda y, t: -y * t, [1.0, 2.0], times), rtol=1e-6)


@pytest.mark.parametrize("times", [[1.0], [1.0, 1.0], [2.0, 2.0, 1.0]])
@pytest.mark.parametrize("adjoint", ["discrete", "continuous"])
@pytest.mark.parametrize("y0", [1, np.array([1.0, 2.0])])
def test_odeint_at_one_time_gives_the_state_there(y0, adjoint, times):
    expected = si.odeint(lambda y, t: -y, y0, times)
    solve = lambda k: ours.odeint(lambda y, t: -k * y, y0, times, adjoint=adjoint)
    for found in (solve(1.0), fad.jvp(solve, (1.0,), (1.0,))[0], fad.jit(solve)(1.0)):
        assert found.dtype == expected.dtype
        np.testing.assert_allclose(found, expected, rtol=1e-3 if adjoint == "discrete" else 1e-6)


@pytest.mark.parametrize("y0", [1.0, np.array(1.0), [1.0, 2.0], (1.0, 2.0)])
def test_odeint_takes_numbers_and_lists_of_them_as_scipy_does(y0):
    times = [0.0, 0.5, 1.0]
    rates = lambda y, t: [-a for a in y]
    expected = si.odeint(rates, y0, times)
    found = ours.odeint(rates, y0, times)
    assert found.shape == expected.shape
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    slope = fad.grad(lambda k: ours.odeint(lambda y, t: [-k * a for a in y], y0, times)[-1, 0])(1.0)
    assert slope == pytest.approx(-np.exp(-1.0), rel=1e-6)


# --- quad -----------------------------------------------------------------------------------------------------------


def bell(a, b, low=0.0):
    return ours.quad(lambda x: a[1] * np.exp(-a[0] * x * x), low, b)[0]


def test_quad_is_differentiable_in_limits_arguments_and_closure():
    a = np.array([1.0, 2.0])
    in_a, in_b, in_low = fad.grad(bell, (0, 1, 2))(a, 1.5, 0.2)
    assert in_b == pytest.approx(2 * np.exp(-2.25))
    assert in_low == pytest.approx(-2 * np.exp(-0.04))
    assert in_a[1] == pytest.approx(bell(a, 1.5, 0.2) / 2)
    assert in_a[0] == pytest.approx(-si.quad(lambda x: 2 * x * x * np.exp(-x * x), 0.2, 1.5)[0])


def test_quad_to_second_order_and_mapped():
    a = np.array([1.0, 2.0])
    hessian = fad.hessian(bell)(a, 1.5)
    np.testing.assert_allclose(hessian, fad.jacrev(fad.jacfwd(bell))(a, 1.5), rtol=1e-9)
    assert hessian[0, 0] == pytest.approx(si.quad(lambda x: 2 * x**4 * np.exp(-x * x), 0, 1.5)[0])
    assert fad.hessian(lambda b: ours.quad(np.sin, 0.0, b)[0])(1.0) == pytest.approx(np.cos(1.0))
    ends = np.array([0.5, 1.5])
    np.testing.assert_allclose(fad.vmap(bell, (None, 0))(a, ends), [bell(a, b) for b in ends])


def test_an_integral_of_arrays_has_the_derivatives_of_its_formula():
    powers = np.arange(3.0)
    at = np.array([0.7, 1.9])

    def found(x, of=ours):
        return of.quad_vec(lambda t: np.exp(-x[0] * t) * t**powers * x[1], 0.0, x[1], epsrel=1e-11)[0]

    def formula(x):
        a, b = x[0], x[1]
        e = np.exp(-a * b)
        zeroth, first = (1 - e) / a, (1 - e * (1 + a * b)) / a**2
        return b * np.stack([zeroth, first, (2 - e * (2 + 2 * a * b + (a * b) ** 2)) / a**3])

    theirs = lambda x: found(x, si)  # while a transform runs, SciPy's name stands for fad's function
    for f in (found, theirs):
        np.testing.assert_allclose(f(at), formula(at), 1e-9)
        for jacobian in (fad.jacfwd(f), fad.jacrev(f), fad.jit(fad.jacrev(f))):
            np.testing.assert_allclose(jacobian(at), fad.jacfwd(formula)(at), 1e-8)
        np.testing.assert_allclose(fad.jacfwd(fad.jacrev(f))(at), fad.jacfwd(fad.jacfwd(formula))(at), 1e-7)
        np.testing.assert_allclose(fad.vmap(f)(np.stack([at, 2 * at])), [formula(at), formula(2 * at)], 1e-9)
    weights = np.array([1.0, 2.0, -1.0])
    gradient = fad.grad(lambda w: ours.quad_vec(lambda t: w * t, 0.0, 2.0)[0] @ w)(weights)
    np.testing.assert_allclose(gradient, 4 * weights, 1e-12)
    assert fad.grad(lambda a: ours.quad_vec(lambda t: np.exp(-a * t), 0.0, np.inf)[0])(2.0) == pytest.approx(-0.25)


@pytest.mark.parametrize("integrate", [ours.quad, ours.quad_vec, si.quad, si.quad_vec])
def test_a_limit_that_stays_may_be_where_the_integrand_has_no_value(integrate):
    def of(s, b):
        return integrate(lambda x: s * np.log(1 + x * x) / x, 0, b)[0]

    def anywhere(a, s):
        return integrate(lambda x: s / np.sqrt(x), a, 1.0)[0]

    with np.errstate(all="raise"):  # nor is it asked for one there
        slope = of(1.0, 1.5)
        expected = [slope, 0.7 * np.log(3.25) / 1.5]
        np.testing.assert_allclose(fad.grad(of, (0, 1))(0.7, 1.5), expected, rtol=1e-9)
        np.testing.assert_allclose(fad.jvp(of, (0.7, 1.5), (1.0, 0.0))[1], expected[0], rtol=1e-9)
        np.testing.assert_allclose(fad.jvp(of, (0.7, 1.5), (0.0, 1.0))[1], expected[1], rtol=1e-9)
        np.testing.assert_allclose(fad.hessian(of, (0, 1))(0.7, 1.5)[1][0], np.log(3.25) / 1.5, rtol=1e-9)
        np.testing.assert_allclose(fad.jit(fad.grad(of))(0.7, 1.5), slope, rtol=1e-9)
    with np.errstate(divide="ignore"):
        np.testing.assert_allclose(fad.jvp(anywhere, (0.0, 3.0), (0.0, 1.0))[1], 2.0, rtol=1e-7)


def test_quad_over_the_whole_line():
    gradient = fad.grad(lambda a: ours.quad(lambda x, a: np.exp(-a * x * x), -np.inf, np.inf, (a,))[0])(2.0)
    assert gradient == pytest.approx(-np.sqrt(np.pi) / 2 * 2**-1.5)


# --- samples --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["trapezoid", "simpson", "cumulative_trapezoid", "cumulative_simpson"])
@pytest.mark.parametrize("n", [2, 3, 4, 5, 8])
def test_rules_for_samples_are_scipys(name, n):
    rng = np.random.default_rng(n)
    y, x = rng.normal(size=(2, n)), np.cumsum(rng.random(n) + 0.1)
    for options in ({}, {"x": x}, {"dx": 0.3}):
        found = getattr(ours, name)(y, **options)
        np.testing.assert_allclose(found, getattr(si, name)(y, **options), rtol=1e-12, atol=1e-14)
        by_column = getattr(ours, name)(y.T, axis=0, **options)
        np.testing.assert_allclose(by_column.T, found, rtol=1e-13)


def test_under_jit_integrals_are_computed_again_on_every_call():
    def parabola(a):
        return ours.quad(lambda x: a * x, 0.0, 1.0)[0]

    def end(rate):
        return ours.solve_ivp(lambda t, y: -rate * y, (0.0, 1.0), np.ones(1), adjoint="continuous", **TIGHT).y[0, -1]

    compiled, solved, slope = fad.jit(parabola), fad.jit(end), fad.jit(fad.grad(end))
    for a in (1.0, 2.5, 4.0):
        assert compiled(a) == pytest.approx(a / 2)
        assert solved(a) == pytest.approx(np.exp(-a), rel=1e-6)
        assert slope(a) == pytest.approx(-np.exp(-a), rel=1e-6)


SAMPLES = np.random.default_rng(0).standard_normal((9, 2))
PLACES = np.cumsum(np.random.default_rng(1).uniform(0.2, 1.0, 9))


@pytest.mark.parametrize("name", ["trapezoid", "simpson", "cumulative_trapezoid", "cumulative_simpson"])
@pytest.mark.parametrize("n", [2, 5, 8, 9])
def test_integrals_of_traced_samples_are_scipys_and_linear_in_them(name, n):
    y, x = SAMPLES[:n], PLACES[:n]
    for options in ({"x": x}, {"dx": 0.3}, {"x": np.stack([x, x**2], 1)}):
        f = lambda y, o=options: getattr(ours, name)(y, axis=0, **o)
        value, pullback = fad.vjp(f, y)
        np.testing.assert_allclose(value, getattr(si, name)(y, axis=0, **options), rtol=1e-12)
        np.testing.assert_allclose(np.sum(value * value), np.sum(pullback(value)[0] * y), rtol=1e-10)


def test_rombergs_rule_is_exact_for_polynomials_and_differentiable_in_the_step():
    x = np.linspace(0.0, 2.0, 9)
    value, slope = fad.value_and_grad(lambda dx: ours.romb(x**7, dx))(0.25)
    assert value == pytest.approx(32.0, rel=1e-12)
    assert slope == pytest.approx(value / 0.25, rel=1e-12)
    with pytest.raises(ValueError, match="power of 2"):
        fad.vjp(ours.romb, x[:-1])
    with pytest.raises(ValueError, match="show=False"):
        fad.vjp(lambda y: ours.romb(y, show=True), x)


def test_intervals_without_width_add_nothing_and_no_nan():
    x = np.array([0.0, 1.0, 1.0, 2.0, 3.0])
    value, pullback = fad.vjp(lambda y: ours.simpson(y, x), SAMPLES[:5, 0])
    np.testing.assert_allclose(value, si.simpson(SAMPLES[:5, 0], x))
    assert np.all(np.isfinite(pullback(1.0)[0]))


def test_steps_and_starts_of_running_sums_may_be_arrays():
    dx, start = np.array([[0.3], [0.7]]), np.array([[1.0], [-2.0]])
    got = fad.vjp(lambda y: ours.cumulative_simpson(y, dx=dx, initial=start), SAMPLES.T)[0]
    np.testing.assert_allclose(got, si.cumulative_simpson(SAMPLES.T, dx=dx, initial=start), rtol=1e-12)
    with pytest.raises(ValueError, match="strictly increasing"):
        fad.vjp(lambda y: ours.cumulative_simpson(y, x=PLACES[::-1]), SAMPLES[:, 0])


# --- several variables, and Gauss's rule ------------------------------------------------------------------------------


INTEGRALS = {
    "tplquad": lambda a, of: of.tplquad(
        lambda z, y, x, a: np.exp(-a * (x + y * z)), 0.0, 1.0, lambda x: x, lambda x: 1.0 + x, 0.0,
        lambda x, y: x * y + 0.5, args=(a,))[0],
    "dblquad": lambda a, of: of.dblquad(
        lambda y, x, a: np.cos(a * x * y), 0.0, 1.5, 0.0, lambda x: x + 1.0, (a,))[0],
    "nquad": lambda a, of: of.nquad(
        lambda x, y, z: np.sin(a * x * y + z), [lambda y, z: (0.0, y + z), (0.0, 1.0), (0.0, 1.0)],
        opts={"epsrel": 1e-9})[0],
    "fixed_quad": lambda a, of: of.fixed_quad(lambda x: np.exp(a * x), 0.0, 2.0, n=7)[0],
}  # fmt: skip


@pytest.mark.parametrize("name", INTEGRALS)
def test_integrals_over_several_variables_are_scipys_and_differentiable(name):
    f = INTEGRALS[name]
    assert f(0.7, ours) == pytest.approx(f(0.7, si), rel=1e-12)
    slope = (f(0.7 + 1e-5, si) - f(0.7 - 1e-5, si)) / 2e-5
    assert fad.grad(lambda a: f(a, ours))(0.7) == pytest.approx(slope, rel=1e-7)


def _disc(r):
    half = lambda x: np.sqrt(r * r - x * x)
    return ours.dblquad(lambda y, x: x * x + y * y, 0.0, r, 0.0, half)[0]


def test_limits_that_depend_on_traced_numbers_and_variables_are_differentiated():
    assert _disc(1.5) == pytest.approx(np.pi / 8 * 1.5**4)
    assert fad.grad(_disc)(1.5) == pytest.approx(np.pi / 2 * 1.5**3)
    ends = fad.grad(lambda a, b: ours.fixed_quad(lambda x: np.sin(x) ** 2, a, b, n=20)[0], (0, 1))(0.3, 1.1)
    np.testing.assert_allclose(ends, [-np.sin(0.3) ** 2, np.sin(1.1) ** 2], rtol=1e-12)
    second = fad.hessian(lambda c: ours.dblquad(lambda y, x: np.exp(c * x * y), 0.0, 1.0, 0.0, 1.0)[0])(0.0)
    assert second == pytest.approx(1 / 9)


def test_integrals_over_several_variables_refuse_what_scipy_refuses():
    with pytest.raises(ValueError, match="finite limits"):
        ours.fixed_quad(np.exp, -np.inf, 0.0)
    with pytest.raises(ValueError, match=r"as many as ranges, 2, but there are 1"):
        ours.nquad(lambda x, y: x, [(0.0, 1.0), (0.0, 1.0)], opts=[{}])


def bounded_growth(t, y, rate):
    dy = np.zeros(2)
    dy[0] = rate * y[0] if y[0] < 2.0 else rate * y[0] * np.exp(2.0 - y[0])
    for k in range(1, 2):
        dy[k] = y[k - 1] - y[k]
    return dy


def test_a_jitted_solution_is_one_loop_for_all_parameters():
    def end(rate):
        times = np.linspace(0.0, 3.0, 7)
        return np.sum(si.solve_ivp(bounded_growth, (0.0, 3.0), [1.0, 0.5], "RK23", times, args=(rate,)).y ** 2)

    solved, slope = fad.jit(end), fad.jit(fad.grad(end))
    for rate in (0.3, 0.3, 2.7, 0.01):  # which take other numbers of steps, and reject some
        assert solved(rate) == pytest.approx(end(rate), rel=1e-12)
        assert slope(rate) == pytest.approx(fad.grad(end)(rate), rel=1e-9)
    assert solved.cache_info().paths == slope.cache_info().paths == 1
    several = np.array([0.3, 2.7])
    found = fad.jit(fad.vmap(fad.value_and_grad(end)))(several)
    np.testing.assert_allclose(found[0], [end(rate) for rate in several], rtol=2e-3)  # with steps that suit both
    np.testing.assert_allclose(found[1], [fad.grad(end)(rate) for rate in several], rtol=2e-3)


@pytest.mark.parametrize("method", ["RK45", "DOP853"])
def test_the_steps_that_a_jitted_solver_takes_are_those_of_scipy(method):
    def steps(rate):
        found = si.solve_ivp(lambda t, y: -rate * y * np.cos(t), (0.0, 9.0), np.array([1.0, 2.0]), method)
        return found.t, found.y, found.nfev

    solved = fad.jit(steps)
    for rate in (1.0, 1.0, 5.0):
        for found, wanted in zip(solved(rate), steps(rate), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-7)  # an error, a difference, decides of a step
