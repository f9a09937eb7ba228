"""Interpolants: SciPy's values, derivatives in values, knots and points, and trees of arrays."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad import tree
from fad.testing import check_grads

si = pytest.importorskip("scipy.interpolate")

from fad.scipy import interpolate as ours  # noqa: E402

RNG = np.random.default_rng(11)
X = np.cumsum(RNG.uniform(0.4, 1.6, 9))
Y = RNG.standard_normal((9, 2))
POINTS = RNG.uniform(X[0], X[-1], (3, 5))
OUTSIDE = RNG.uniform(X[0] - 4.0, X[-1] + 4.0, 40)
MAKERS = {
    "CubicSpline": lambda m, x, y: m.CubicSpline(x, y),
    "CubicSpline natural": lambda m, x, y: m.CubicSpline(x, y, bc_type="natural"),
    "CubicSpline clamped": lambda m, x, y: m.CubicSpline(x, y, bc_type=("clamped", (2, y[0]))),
    "PchipInterpolator": lambda m, x, y: m.PchipInterpolator(x, y),
    "Akima1DInterpolator": lambda m, x, y: m.Akima1DInterpolator(x, y, method="makima", extrapolate=True),
    "make_interp_spline": lambda m, x, y: m.make_interp_spline(x, y, k=5),
    "interp1d": lambda m, x, y: m.interp1d(x, y, axis=0, fill_value="extrapolate"),
    "interp1d cubic": lambda m, x, y: m.interp1d(x, y, "cubic", axis=0, fill_value="extrapolate"),
}


@pytest.mark.parametrize("name", MAKERS)
def test_curves_are_scipys_inside_and_outside_of_their_points(name):
    make = MAKERS[name]
    for points in (POINTS, OUTSIDE, X):
        wanted = make(si, X, Y)(points)
        np.testing.assert_allclose(make(ours, X, Y)(points), wanted, rtol=1e-9, atol=1e-9)
        got = fad.vjp(lambda x, y, t: make(ours, x, y)(t), X, Y, points)[0]
        np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("name", [n for n in MAKERS if n != "PchipInterpolator"])
def test_curves_have_derivatives_in_knots_values_and_points_to_second_order(name):
    check_grads(lambda x, y, t: MAKERS[name](ours, x, y)(t), (X, Y[:, 0], POINTS[0]), order=2)


def test_a_monotone_curve_has_derivatives_and_stays_monotone():
    rising = np.cumsum(np.abs(Y[:, 0]) + 0.1)
    check_grads(lambda x, y, t: ours.PchipInterpolator(x, y)(t), (X, rising, POINTS[0]), order=2)
    slopes = fad.vmap(fad.grad(ours.PchipInterpolator(X, Y[:, 0])))(np.sort(POINTS.ravel()))
    np.testing.assert_allclose(slopes, si.PchipInterpolator(X, Y[:, 0])(np.sort(POINTS.ravel()), 1), atol=1e-12)


@pytest.mark.parametrize("name", ["CubicSpline", "PchipInterpolator", "make_interp_spline"])
def test_the_derivative_in_the_points_is_the_curves_own_derivative(name):
    curve, theirs = MAKERS[name](ours, X, Y[:, 0]), MAKERS[name](si, X, Y[:, 0])
    flat = POINTS.ravel()
    for order, f in ((1, fad.grad(curve)), (2, fad.grad(fad.grad(curve)))):
        np.testing.assert_allclose(fad.vmap(f)(flat), theirs(flat, order), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(curve(flat, order), theirs(flat, order), rtol=1e-8, atol=1e-8)
        np.testing.assert_allclose(curve.derivative(order)(flat), theirs(flat, order), rtol=1e-8, atol=1e-8)


def test_integrals_are_scipys_and_differentiate_to_the_curve():
    for name in ("CubicSpline", "make_interp_spline"):
        curve, theirs = MAKERS[name](ours, X, Y[:, 0]), MAKERS[name](si, X, Y[:, 0])
        a, b = X[1] + 0.1, X[-2] - 0.1
        np.testing.assert_allclose(curve.integrate(a, b), theirs.integrate(a, b), rtol=1e-9)
        assert fad.grad(lambda b, c=curve, a=a: c.integrate(a, b))(b) == pytest.approx(theirs(b), rel=1e-9)
    pieces, theirs = ours.CubicSpline(X, Y), si.CubicSpline(X, Y)
    np.testing.assert_allclose(pieces.antiderivative(2)(POINTS), theirs.antiderivative(2)(POINTS), rtol=1e-9, atol=1e-9)


def test_a_closed_curve_is_periodic_with_its_derivatives():
    def closed(y):
        return ours.CubicSpline(X, np.concatenate([y, y[:1]]), bc_type="periodic")

    theirs = si.CubicSpline(X, np.concatenate([Y[:-1], Y[:1]]), bc_type="periodic")
    np.testing.assert_allclose(closed(Y[:-1])(OUTSIDE), theirs(OUTSIDE), atol=1e-10)
    np.testing.assert_allclose(closed(Y[:-1])(X[0] + 0.1, 2), theirs(X[-1] + 0.1, 2), atol=1e-10)
    check_grads(lambda y, t: closed(y)(t), (Y[:-1, 0], OUTSIDE[:6]), order=2)


def test_complex_values_are_interpolated():
    z = Y[:, 0] + 1j * Y[:, 1]
    np.testing.assert_allclose(ours.CubicSpline(X, z)(POINTS), si.CubicSpline(X, z)(POINTS), atol=1e-12)
    jacobian = fad.jacobian(lambda z: ours.CubicSpline(X, z)(POINTS[0]), holomorphic=True)(z)
    np.testing.assert_allclose(jacobian @ z, ours.CubicSpline(X, z)(POINTS[0]), atol=1e-10)


def test_an_interpolant_is_a_tree_of_its_arrays():
    for curve in (ours.CubicSpline(X, Y), ours.make_interp_spline(X, Y), ours.interp1d(X, Y, axis=0)):
        twice = tree.map(lambda a: a * 1.0, curve)
        assert type(twice) is type(curve)
        np.testing.assert_allclose(twice(POINTS), curve(POINTS))
    gradient = fad.grad(lambda spline: np.sum(spline(POINTS)))(ours.make_interp_spline(X, Y))
    assert gradient.c.shape == (9, 2)
    recorded = fad.jit(lambda curve, t: curve(t))
    for _ in range(2):
        np.testing.assert_allclose(recorded(ours.CubicSpline(X, Y), POINTS), si.CubicSpline(X, Y)(POINTS), atol=1e-12)


def test_many_knots_take_time_linear_in_their_number():
    x = np.arange(20001.0)
    gradient = fad.grad(lambda y: ours.CubicSpline(x, y)(10000.0))(np.sin(x / 50))
    np.testing.assert_allclose(gradient, np.eye(1, 20001, 10000)[0], atol=1e-12)


@pytest.mark.parametrize("kind", ["linear", "nearest", "nearest-up", "previous", "next", "zero", "quadratic", 1])
def test_every_kind_of_line_is_scipys_with_unsorted_points_and_filled_ends(kind):
    turn = RNG.permutation(9)
    options = {"kind": kind, "axis": 0, "bounds_error": False, "fill_value": (-1.0, 2.0)}
    got = fad.vjp(lambda y: ours.interp1d(X[turn], y, **options)(OUTSIDE), Y[turn])[0]
    np.testing.assert_allclose(got, si.interp1d(X[turn], Y[turn], **options)(OUTSIDE), atol=1e-10)


GRID = (X[:4], X[:5][::-1].copy(), np.array([0.0, 1.0, 3.0]))
VALUES = RNG.standard_normal((4, 5, 3, 2))


@pytest.mark.parametrize("method", ["linear", "nearest", "slinear"])
def test_grids_are_interpolated_as_by_scipy(method):
    points = np.stack([RNG.uniform(g.min() - 0.3, g.max() + 0.3, 50) for g in GRID], -1)
    for fill in (None, 0.5):
        options = {"method": method, "bounds_error": False, "fill_value": fill}
        wanted = si.RegularGridInterpolator(GRID, VALUES, **options)(points)
        got = fad.vjp(lambda v, p, o=options: ours.RegularGridInterpolator(GRID, v, **o)(p), VALUES, points)[0]
        np.testing.assert_allclose(got, wanted, atol=1e-12)
    inside = np.stack([RNG.uniform(g.min(), g.max(), 4) for g in GRID], -1)
    if method != "nearest":
        check_grads(lambda v, p: ours.interpn(GRID, v, p), (VALUES, inside), order=2)


BAD = {
    "knots that fall": lambda y: ours.CubicSpline(X[::-1], y),
    "too few knots": lambda y: ours.CubicSpline(X[:1], y[:1]),
    "lengths": lambda y: ours.PchipInterpolator(X[:4], y),
    "infinite values": lambda y: ours.CubicSpline(X, y / 0.0),
    "an end condition": lambda y: ours.CubicSpline(X, y, bc_type="loose"),
    "ends that do not meet": lambda y: ours.CubicSpline(X, y, bc_type="periodic"),
    "complex values": lambda y: ours.Akima1DInterpolator(X, y + 1j),
    "twice one knot": lambda y: ours.make_interp_spline(np.repeat(X, 2)[:9], y),
    "too much for a line": lambda y: ours.make_interp_spline(X, y, 1, bc_type="natural"),
    "knots for the degree": lambda y: ours.BSpline(X, y, 5),
    "a point outside": lambda y: ours.interp1d(X, y, axis=0)(X[-1] + 1.0),
    "a point outside of a grid": lambda y: ours.RegularGridInterpolator((X,), y)(np.array([X[-1] + 1.0])),
    "a grid of another size": lambda y: ours.RegularGridInterpolator((X[:3],), y),
}


@pytest.mark.parametrize("what", BAD)
def test_what_scipy_refuses_is_refused(what):
    with np.errstate(divide="ignore"), pytest.raises(ValueError):
        fad.vjp(lambda y: BAD[what](y) and y, Y)


def test_methods_without_a_derivative_are_named():
    with pytest.raises(NotImplementedError, match="method='linear'"):
        ours.griddata(np.eye(3)[:, :2], X[:3], np.eye(2), method="cubic")
    with pytest.raises(ValueError, match="CubicSpline does"):
        ours.make_interp_spline(X, Y, bc_type="periodic")
    with pytest.raises(AttributeError, match="no derivative rule"):
        _ = ours.pade


@pytest.mark.parametrize("order", [0, 1, 2])
def test_fitpacks_slopes_go_on_where_its_values_are_constant(order):
    x, beyond = np.linspace(0.0, 4.0, 9), np.array([-0.5, 0.6, 5.7])
    tck = si.splrep(x, np.sin(x))
    f = lambda at: ours.splev(at, tck, order, 3)
    np.testing.assert_allclose(f(beyond), si.splev(beyond, tck, order, 3), rtol=1e-9)
    slope = si.splev(beyond, tck, order + 1) * (np.array([0, 1, 0]) if order == 0 else 1)
    np.testing.assert_allclose(np.diag(fad.jacrev(f)(beyond)), slope, rtol=1e-9)


@pytest.mark.parametrize("kind", ["zero", 0, "previous", "next", "nearest", "nearest-up"])
def test_steps_end_with_the_value_that_scipy_has_at_and_beyond_the_last_point(kind):
    at, f = np.append(X, OUTSIDE), lambda m, y: m.interp1d(X, y, kind, axis=0, fill_value="extrapolate")(at)
    np.testing.assert_array_equal(f(ours, Y), f(si, Y))
    np.testing.assert_array_equal(fad.jvp(lambda y: f(ours, y), (Y,), (2.0 * Y,))[1], np.nan_to_num(2.0 * f(si, Y)))
    if kind in ("zero", 0):
        of = lambda m, y: m.make_interp_spline(X, y, 0)(at)
        np.testing.assert_array_equal(of(ours, Y), of(si, Y))
