"""Interpolation in the plane and beyond: grids, splines of two variables and scattered points, in SciPy's names."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad import tree

si = pytest.importorskip("scipy.interpolate")

from scipy.interpolate import RectBivariateSpline, RegularGridInterpolator, griddata  # noqa: E402
from scipy.sparse.linalg import spsolve  # noqa: E402

from fad.scipy import interpolate as ours  # noqa: E402

RNG = np.random.default_rng(3)
X, Y = np.cumsum(RNG.uniform(0.5, 1.5, 7)), np.cumsum(RNG.uniform(0.5, 1.5, 6))
TABLE = RNG.normal(size=(7, 6))
SCATTERED, HEIGHTS = RNG.normal(size=(20, 2)), RNG.normal(size=20)
AT = np.array([2.3, 1.9, 3.1, 4.2])
NEAR = np.array([0.1, -0.2, 0.33, 0.21])
SURFACE = RectBivariateSpline(X, Y, TABLE)
CUBIC = RegularGridInterpolator((X, Y), TABLE, "cubic")
EXACT = RegularGridInterpolator((X, Y), TABLE, "quintic", solver=spsolve)
TRIANGLES = si.LinearNDInterpolator(SCATTERED * [1.0, 30.0], HEIGHTS, rescale=True)
NEAREST = si.NearestNDInterpolator(SCATTERED, HEIGHTS)
FITTED = si.SmoothBivariateSpline(SCATTERED[:, 0], SCATTERED[:, 1], HEIGHTS, kx=2, ky=2)
LEAST = si.LSQBivariateSpline(SCATTERED[:, 0], SCATTERED[:, 1], HEIGHTS, [0.0], [0.0], kx=1, ky=1)
SLOPE = SURFACE.partial_derivative(1, 1)
KNOTS = si.bisplrep(SCATTERED[:, 0], SCATTERED[:, 1], HEIGHTS, kx=2, ky=2)

OF_POINTS = {
    "a spline of before": lambda p: SURFACE.ev(p[:2], p[2:]),
    "its slope of before": lambda p: SLOPE(p[0], p[2]),
    "a spline on a grid": lambda p: SURFACE(np.sort(p[:2]), np.sort(p[2:]), dx=1),
    "an integral": lambda p: SURFACE.integral(p[0], p[3], p[1], 99.0),
    "a grid of before": lambda p: CUBIC(p.reshape(2, 2)),
    "its own derivative": lambda p: EXACT(p.reshape(2, 2), nu=(1, 2)),
    "another method": lambda p: CUBIC(p.reshape(2, 2), method="pchip"),
    "a surface near points": lambda p: FITTED.ev(p[0] - 2.0, p[1] - 2.0) + LEAST(p[0] - 2.0, p[1] - 2.0),
    "bisplev": lambda p: si.bisplev(np.sort(p[:2]) - 2.0, p[2] - 3.0, KNOTS, dx=1),
    "splinef2d": lambda p: si.interpn((X, Y), TABLE, p.reshape(2, 2), method="splinef2d"),
    "triangles of before": lambda p: TRIANGLES(p[0] - 2.2, 30.0 * (p[1] - 2.0)),
}  # fmt: skip
OF_VALUES = {
    "a spline": lambda z: RectBivariateSpline(X, Y, z, kx=2, ky=4).ev(AT[:2], AT[2:]),
    "a grid": lambda z: RegularGridInterpolator((X, Y), z, "cubic_legacy")(AT.reshape(2, 2)),
    "a monotone grid": lambda z: si.interpn((X, Y), z, AT.reshape(2, 2), method="pchip"),
    "scattered points": lambda z: griddata(SCATTERED, z.ravel()[:20], NEAR.reshape(2, 2)),
    "their places": lambda z: griddata(SCATTERED + 0.1 * z.ravel()[:40].reshape(20, 2), HEIGHTS, NEAR.reshape(2, 2)),
    "the nearest": lambda z: griddata(SCATTERED, z.ravel()[:20], (NEAR[:2], NEAR[2:]), method="nearest"),
    "scattered points of a line": lambda z: griddata(SCATTERED[:, 0], z.ravel()[:20], NEAR, method="cubic"),
}  # fmt: skip



def differences(program, x, h=1e-6):
    ravelled = np.ravel(x)
    columns = [(program((ravelled + d).reshape(x.shape)) - program((ravelled - d).reshape(x.shape))) / (2 * h)
               for d in h * np.eye(ravelled.size)]  # fmt: skip
    return np.stack(columns, -1).reshape(*np.shape(columns[0]), *x.shape)


CASES = [(f, AT) for f in OF_POINTS.values()] + [(f, TABLE) for f in OF_VALUES.values()]


@pytest.mark.parametrize(("program", "x"), CASES, ids=[*OF_POINTS, *OF_VALUES])
def test_what_is_interpolated_has_scipys_value_and_the_derivative_of_its_differences(program, x):
    value, wanted = program(x), differences(program, x)
    for jacobian in (fad.jacrev(program), fad.jacfwd(program), fad.jit(fad.jacrev(program))):
        np.testing.assert_allclose(jacobian(x), wanted, 1e-5, 1e-7)
    np.testing.assert_allclose(fad.jvp(program, (x,), (x,))[0], value, 1e-12, 1e-13)
    np.testing.assert_allclose(fad.jit(program)(x), value, 1e-12, 1e-13)
    several = np.stack([program(x), program(0.99 * x)])
    np.testing.assert_allclose(fad.vmap(program)(np.stack([x, 0.99 * x])), several, 1e-11, 1e-12)
    slope = fad.grad(lambda s: np.sum(program(x + s * np.cos(x)) ** 2))
    np.testing.assert_allclose(fad.grad(slope)(0.0), (slope(1e-5) - slope(-1e-5)) / 2e-5, 1e-4, 1e-4)


@pytest.mark.parametrize("name", ["slinear", "cubic", "quintic", "pchip", "cubic_legacy"])
def test_grids_of_several_dimensions_go_on_beyond_their_ends_as_scipys(name):
    grid = (X, Y[::-1].copy(), np.arange(6.0))
    values = RNG.normal(size=(7, 6, 6, 2))
    points = np.stack([RNG.uniform(g.min() - 0.3, g.max() + 0.3, 30) for g in grid], -1)
    for fill in (None, 0.5):
        settings = {"method": name, "bounds_error": False, "fill_value": fill}
        solver = {} if name in ("pchip", "cubic_legacy") else {"solver": spsolve}
        wanted = si.RegularGridInterpolator(grid, values, **settings, **solver)(points)
        plain = ours.RegularGridInterpolator(grid, values, **settings, **solver)(points)
        np.testing.assert_allclose(plain, wanted, 1e-10)
        traced = fad.vjp(lambda v, p, s=settings: ours.RegularGridInterpolator(grid, v, **s)(p), values, points)[0]
        np.testing.assert_allclose(traced, wanted, 1e-9, 1e-10)
    curve = ours.RegularGridInterpolator(grid, values, name)
    np.testing.assert_array_equal(tree.map(lambda a: a * 1.0, curve)(points[:1] * 0 + 3.0), curve(np.full((1, 3), 3.0)))


def test_triangles_of_a_triangulation_are_kept():
    square = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0], [1.0, 1.0]])
    flat, heights = np.array([[0.5, 0.45]]), np.array([0.0, 0.0, 0.0, 1.0])
    mesh = pytest.importorskip("scipy.spatial").Delaunay(square)
    for points in (mesh, square):
        wanted = si.LinearNDInterpolator(points, heights)(flat)
        np.testing.assert_allclose(ours.LinearNDInterpolator(points, heights)(flat), wanted)
        np.testing.assert_allclose(fad.jit(ours.LinearNDInterpolator(points, heights).__call__)(flat), wanted)
    moved = tree.map(lambda a: a * 2.0, ours.LinearNDInterpolator(square, heights))
    np.testing.assert_allclose(moved(2.0 * flat), 2.0 * si.LinearNDInterpolator(square, heights)(flat))


def test_outside_of_the_triangles_the_fill_value_has_the_derivative():
    f = lambda fill, v: ours.LinearNDInterpolator(SCATTERED, v, fill)(np.array([[9.0, 9.0], [0.1, 0.2]]))
    by_fill, by_values = fad.jacobian(f, (0, 1))(0.5, HEIGHTS)
    np.testing.assert_array_equal(by_fill, [1.0, 0.0])
    np.testing.assert_array_equal(by_values[0], 0.0)
    np.testing.assert_allclose(by_values[1].sum(), 1.0)


REFUSED = {
    "a smoothing surface": (lambda z: RectBivariateSpline(X, Y, z, s=1.0)(2.0, 2.0), NotImplementedError, "s=0"),
    "a surface near traced points": (
        lambda z: si.SmoothBivariateSpline(*SCATTERED.T, z.ravel()[:20])(0.0, 0.0),
        NotImplementedError, "RBFInterpolator",
    ),
    "least squares": (
        lambda z: si.LSQBivariateSpline(*SCATTERED.T, z.ravel()[:20], [0.0], [0.0])(0, 0), NotImplementedError, "s=0"
    ),
    "smooth triangles": (
        lambda z: griddata(SCATTERED, z.ravel()[:20], NEAR, method="cubic"), NotImplementedError, "method='linear'"
    ),
    "a smoothing curve": (lambda z: si.splrep(X, z[:, 0], s=1.0), NotImplementedError, "pass s=0"),
    "a grid that falls": (lambda z: SURFACE(z[0], Y), ValueError, "increase"),
    "a derivative of the degree": (lambda z: SURFACE.ev(z[0, 0], 1.0, dx=3), ValueError, "less than the degrees"),
    "derivatives of lines": (
        lambda z: si.RegularGridInterpolator((X, Y), z)([2, 2], nu=(1, 0)), ValueError, "Can only compute derivatives"
    ),
    "too few points": (lambda z: ours.RegularGridInterpolator((X, Y), z[:, :1], "cubic"), ValueError, "points"),
    "points of one dimension": (lambda z: ours.LinearNDInterpolator(X[:, None], z[:, 0]), ValueError, "interp1d"),
    "complex surfaces": (lambda z: RectBivariateSpline(X, Y, z * 1j), ValueError, "real"),
}  # fmt: skip


@pytest.mark.parametrize(("program", "error", "says"), REFUSED.values(), ids=REFUSED)
def test_what_has_no_derivative_says_what_to_write(program, error, says):
    with pytest.raises(error, match=says):
        fad.vjp(program, TABLE)
