"""Distances between sets of points run natively, and give what SciPy's do."""

import numpy as np
import pytest
from natively import compiled, native

import fad

pytest.importorskip("llvmlite")
sd = pytest.importorskip("scipy.spatial.distance")

from fad.scipy.spatial import distance as ours  # noqa: E402

RNG = np.random.default_rng(5)
A, B = RNG.normal(size=(37, 4)), RNG.normal(size=(29, 4))
FAR_A, FAR_B = RNG.normal(size=(150, 11)), RNG.normal(size=(90, 11))  # more than is fused with a bounded weight
W = np.array([0.5, 2.0, 1.0, 0.25])
METRICS = {
    "euclidean": {}, "sqeuclidean": {}, "cityblock": {}, "chebyshev": {}, "canberra": {}, "braycurtis": {},
    "cosine": {}, "correlation": {}, "minkowski": {"p": 3.5}, "minkowski of 3": {"p": 3.0},
    "euclidean weighed": {"w": W}, "canberra weighed": {"w": W}, "minkowski weighed": {"p": 1.5, "w": W},
    "chebyshev weighed": {"w": W * (W < 1)}, "seuclidean": {"V": W},
}  # fmt: skip


def _name(metric):
    return metric.split(" ")[0]


@pytest.mark.parametrize("metric", METRICS)
def test_native_distances_are_scipys(metric):
    name, options = _name(metric), METRICS[metric]
    got = native(lambda a, b: ours.cdist(a, b, name, **options), A, B)
    np.testing.assert_allclose(got, sd.cdist(A, B, name, **options), rtol=1e-12, atol=1e-13)
    got = native(lambda a: ours.pdist(a, name, **options), A)
    np.testing.assert_allclose(got, sd.pdist(A, name, **options), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("metric", METRICS)
def test_their_gradients_are_native_too(metric):
    name, options = _name(metric), METRICS[metric]
    ct = RNG.normal(size=(37, 29))
    slope = fad.grad(lambda a, b: np.sum(ct * ours.cdist(a, b, name, **options)), (0, 1))
    for got, want in zip(native(slope, A, B), slope(A, B), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)
    slope = fad.grad(lambda a: np.sum(ours.pdist(a, name, **options) ** 2))
    np.testing.assert_allclose(native(slope, A), slope(A), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "canberra", "minkowski", "chebyshev"])
def test_gradients_of_more_coordinates_are_native(metric):
    slope = fad.grad(lambda a, b: np.sum(ours.cdist(a, b, metric) ** 2), (0, 1))
    for got, want in zip(native(slope, FAR_A, FAR_B), slope(FAR_A, FAR_B), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "sqeuclidean", "chebyshev", "canberra", "braycurtis", "minkowski"])
def test_compiled_derivatives_of_second_order_and_of_batches_are_those_of_numpy(metric):
    options = {"p": 3.5} if metric == "minkowski" else {}

    def total(a, b):
        return np.sum(ours.cdist(a, b, metric, **options) ** 2)

    a, b = A[:3, :2], B[:4, :2]
    bend = fad.hessian(total)
    np.testing.assert_allclose(compiled(bend, a, b)(a, b), bend(a, b), rtol=1e-9, atol=1e-11)
    along = fad.grad(lambda a, b: np.vdot(fad.grad(total, 1)(a, b), b), 0)
    np.testing.assert_allclose(compiled(along, a, b)(a, b), along(a, b), rtol=1e-9, atol=1e-11)
    each = fad.vmap(fad.grad(total, (0, 1)), in_axes=(0, None))
    several = A[:12].reshape(3, 4, 4)
    for got, want in zip(compiled(each, several, B)(several, B), each(several, B), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "chebyshev", "canberra", "braycurtis", "minkowski"])
def test_coinciding_points_ties_and_zeros_have_the_derivatives_that_numpy_gives(metric):
    points = np.array([[0.0, 0.0, 0.0], [1.0, -1.0, 1.0], [1.0, -1.0, 1.0], [0.0, 2.0, -2.0], [-1.0, 0.0, 0.0]])
    some, others = points[1:], points[:3]
    if metric == "braycurtis":
        some = np.abs(some)
    options = {"p": 2.5} if metric == "minkowski" else {}
    slope = fad.grad(lambda a, b: np.sum(ours.cdist(a, b, metric, **options)), (0, 1))
    for got, want in zip(native(slope, some, others), slope(some, others), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("metric", ["euclidean", "canberra", "chebyshev"])
def test_sets_without_points_or_coordinates_are_compiled(metric):
    slope = fad.grad(lambda a, b: np.sum(ours.cdist(a, b, metric)), (0, 1))
    for m, n, k in ((0, 3, 2), (2, 0, 2), (2, 3, 0)):
        a, b = np.ones((m, k)), np.zeros((n, k))
        for got, x in zip(compiled(slope, a, b)(a, b), (a, b), strict=True):
            np.testing.assert_array_equal(got, np.zeros_like(x))


def test_batches_of_batches_are_right():
    each = fad.vmap(fad.vmap(fad.grad(lambda a: np.sum(ours.cdist(a, A[:5], "cityblock") ** 2))))
    several = RNG.normal(size=(2, 3, 6, 4))
    np.testing.assert_allclose(compiled(each, several)(several), each(several), rtol=1e-12)
