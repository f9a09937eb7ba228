"""Images: filters and values between pixels, in every mode at the edges, and derivatives in all that is continuous."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import MissingRuleError, TracerConversionError
from fad.testing import check_grads

nd = pytest.importorskip("scipy.ndimage")

from fad.scipy import ndimage as ours  # noqa: E402

X = np.random.default_rng(5).standard_normal((13, 17))
W = np.random.default_rng(6).standard_normal((4, 3))
MODES = ("reflect", "constant", "nearest", "mirror", "wrap", "grid-wrap", "grid-mirror", "grid-constant")
FILTERS = {
    "correlate": lambda m, x, **o: m.correlate(x, W, origin=(1, -1), **o),
    "convolve": lambda m, x, **o: m.convolve(x, W, origin=(-1, 1), **o),
    "gaussian_filter": lambda m, x, **o: m.gaussian_filter(x, (1.3, 2.4), order=(0, 1), **o),
    "uniform_filter": lambda m, x, **o: m.uniform_filter(x, (4, 5), **o),
    "sobel": lambda m, x, **o: m.sobel(x, 0, **o),
    "prewitt": lambda m, x, **o: m.prewitt(x, 1, **o),
    "laplace": lambda m, x, **o: m.laplace(x, **o),
    "gaussian_laplace": lambda m, x, **o: m.gaussian_laplace(x, 1.5, **o),
    "gaussian_gradient_magnitude": lambda m, x, **o: m.gaussian_gradient_magnitude(x, 1.5, **o),
}


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", FILTERS)
def test_filters_of_traced_images_are_scipys_in_every_mode(name, mode):
    for x in (X, X[:2, :3]):  # the second is smaller than the windows
        got = fad.vjp(lambda x: FILTERS[name](ours, x, mode=mode, cval=0.7), x)[0]
        np.testing.assert_allclose(got, FILTERS[name](nd, x, mode=mode, cval=0.7), atol=1e-12)


@pytest.mark.parametrize("mode", ["reflect", "wrap", "mirror", "nearest"])
def test_the_derivative_of_a_filter_is_its_transpose(mode):
    y, pullback = fad.vjp(lambda x: ours.correlate(x, W, mode=mode), X)
    ct = np.random.default_rng(1).standard_normal(y.shape)
    np.testing.assert_allclose(np.sum(ct * y), np.sum(pullback(ct)[0] * X), rtol=1e-10)


def test_weights_and_the_width_of_a_gaussian_have_derivatives():
    check_grads(lambda x, w: ours.correlate(x, w), (X[:5, :4], W), order=2)
    check_grads(lambda s: ours.gaussian_filter(X[:6, :5], s), (1.3,), order=2)
    check_grads(lambda s: ours.gaussian_filter(X[:6, :5], s, order=1), (np.array([1.3, 0.8]),), order=2)


def test_a_large_kernel_goes_by_fourier_transforms_to_the_same_numbers():
    big = np.random.default_rng(2).standard_normal((31, 29))
    image = np.random.default_rng(3).standard_normal((64, 50))
    got, pullback = fad.vjp(lambda w: ours.convolve(image, w, mode="wrap"), big)
    np.testing.assert_allclose(got, nd.convolve(image, big, mode="wrap"), atol=1e-10)
    ct = np.random.default_rng(4).standard_normal(got.shape)
    np.testing.assert_allclose(np.sum(ct * got), np.sum(pullback(ct)[0] * big), rtol=1e-9)


def test_where_an_image_is_flat_the_length_of_its_gradient_has_derivative_zero():
    gradient = fad.grad(lambda x: np.sum(ours.gaussian_gradient_magnitude(x, 1.0)))(np.zeros((5, 5)))
    np.testing.assert_array_equal(gradient, np.zeros((5, 5)))


COORDINATES = np.random.default_rng(8).uniform(-9.0, 22.0, (2, 300))


@pytest.mark.parametrize("order", range(6))
@pytest.mark.parametrize("mode", MODES)
def test_values_between_pixels_are_scipys_for_every_order_and_mode_far_outside_too(order, mode):
    got = fad.vjp(lambda x, c: ours.map_coordinates(x, c, order=order, mode=mode, cval=0.3), X, COORDINATES)[0]
    np.testing.assert_allclose(got, nd.map_coordinates(X, COORDINATES, order=order, mode=mode, cval=0.3), atol=1e-9)


@pytest.mark.parametrize("mode", MODES)
def test_pixels_themselves_and_places_halfway_are_scipys(mode):
    halves = np.stack([np.arange(-30.0, 31.0) / 2, np.full(61, 4.0)])
    for order in (0, 1, 3):
        got = fad.vjp(lambda c, order=order: ours.map_coordinates(X, c, order=order, mode=mode), halves)[0]
        np.testing.assert_allclose(got, nd.map_coordinates(X, halves, order=order, mode=mode), atol=1e-12)


def test_coefficients_of_long_lines_are_solved_for_and_transposed():
    line = np.random.default_rng(9).standard_normal(500)
    for order, mode in ((3, "mirror"), (5, "reflect"), (4, "grid-wrap")):
        y, pullback = fad.vjp(lambda x, o=order, m=mode: ours.spline_filter1d(x, o, mode=m), line)
        np.testing.assert_allclose(y, nd.spline_filter1d(line, order, mode=mode), atol=1e-10)
        np.testing.assert_allclose(np.sum(line * y), np.sum(pullback(line)[0] * line), rtol=1e-10)


def test_shifts_turns_and_affine_maps_are_scipys_and_have_derivatives():
    turn, offset = np.array([[0.913, 0.307], [-0.219, 1.131]]), np.array([0.437, -1.291])
    cases = {
        "shift": (lambda m, s: m.shift(X, s, mode="nearest"), (np.array([1.3, -0.6]),)),
        "affine": (lambda m, a, b: m.affine_transform(X, a, b, (9, 8), mode="mirror"), (turn, offset)),
        "rotate": (lambda m, a: m.rotate(X, a, mode="reflect"), (33.0,)),
        "rotate inside": (lambda m, a: m.rotate(X, a, reshape=False, order=1), (-71.0,)),
    }
    for name, (f, operands) in cases.items():
        got = fad.vjp(lambda *xs, f=f: f(ours, *xs), *operands)[0]
        np.testing.assert_allclose(got, f(nd, *operands), atol=1e-9, err_msg=name)
    check_grads(lambda a, b: ours.affine_transform(X[:5, :5], a, b, mode="mirror"), (turn, offset), order=2)
    check_grads(lambda a: ours.rotate(X[:5, :5], a, reshape=False, mode="mirror"), (33.0,), order=2)


@pytest.mark.parametrize("grid_mode", [False, True])
def test_zooms_are_scipys_and_linear(grid_mode):
    mode = "grid-constant" if grid_mode else "reflect"
    y, pullback = fad.vjp(lambda x: ours.zoom(x, (1.7, 0.6), mode=mode, grid_mode=grid_mode), X)
    np.testing.assert_allclose(y, nd.zoom(X, (1.7, 0.6), mode=mode, grid_mode=grid_mode), atol=1e-10)
    np.testing.assert_allclose(np.sum(y * y), np.sum(pullback(y)[0] * X), rtol=1e-9)


WRITTEN = {
    "gaussian_filter": lambda x, out: nd.gaussian_filter(x, 1.0, output=out),
    "sobel": lambda x, out: nd.sobel(x, 0, output=out),
    "median_filter": lambda x, out: nd.median_filter(x, 3, output=out),
    "shift": lambda x, out: nd.shift(x, (0.5, 0.2), output=out),
    "map_coordinates": lambda x, out: nd.map_coordinates(x, 0.9 * np.indices(x.shape), out),
    "spline_filter": lambda x, out: nd.spline_filter(x, output=out),
}


@pytest.mark.parametrize("f", WRITTEN.values(), ids=WRITTEN)
def test_an_output_array_is_filled(f):
    def filled(x, kind=np.float64):
        out = np.zeros((2, *x.shape), kind)
        f(x, out[1])
        return out * 2.0

    def overwritten(x):
        y = x * 1.0
        f(y, y)
        return y * 2.0

    for g in (filled, overwritten, lambda x: filled(x, np.float32)):
        value, tangent = fad.jvp(g, (X,), (np.ones_like(X),))
        np.testing.assert_allclose(value, g(X), rtol=1e-5, atol=1e-6)
        assert value.dtype == g(X).dtype
        np.testing.assert_allclose(fad.jit(g)(X), g(X), rtol=1e-5, atol=1e-6)
        slope = fad.grad(lambda x, g=g: np.sum(g(x)))(X)
        np.testing.assert_allclose(np.sum(slope), np.sum(tangent), rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose(np.sum(tangent), np.sum(g(X + 1e-3) - g(X - 1e-3)) / 2e-3, rtol=2e-3, atol=1e-9)


def test_an_output_array_is_refused_where_scipy_reads_it_again_and_from_outside():
    def overwrite(x):
        y = x * 1.0
        nd.laplace(y, output=y)
        return y

    with pytest.raises(MissingRuleError, match="output= is the image itself"):
        fad.vjp(overwrite, X)
    kept = np.empty_like(X)
    with pytest.raises(TracerConversionError, match="not made in the function"):
        fad.vjp(lambda x: ours.laplace(x, output=kept), X)
    with pytest.raises(RuntimeError, match="shape"):
        fad.vjp(lambda x: ours.laplace(x, output=np.empty_like(x[1:])), X)
    assert fad.vjp(lambda x: ours.laplace(x, output=np.float32), X)[0].dtype == np.float32


BAD = {
    "a mode": lambda x: ours.correlate1d(x, [1.0, 2.0], mode="open"),
    "an origin": lambda x: ours.correlate1d(x, [1.0, 2.0], origin=3),
    "no weights": lambda x: ours.correlate1d(x, []),
    "ranks": lambda x: ours.correlate(x, [1.0, 2.0]),
    "a radius": lambda x: ours.gaussian_filter1d(x, 1.0, radius=1.5),
    "an order": lambda x: ours.map_coordinates(x, COORDINATES, order=6),
    "coordinates": lambda x: ours.map_coordinates(x, COORDINATES[:1]),
    "a matrix": lambda x: ours.affine_transform(x, np.eye(3)[:, :2]),
    "a size": lambda x: ours.uniform_filter1d(x, 0),
}


@pytest.mark.parametrize("what", BAD)
def test_what_scipy_refuses_is_refused_with_its_kind_of_error(what):
    with pytest.raises((ValueError, RuntimeError)) as theirs:
        BAD[what](X)
    with pytest.raises(theirs.type):
        fad.vjp(BAD[what], X)
