"""Distances: SciPy's values for every metric, and no NaN where points coincide."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.testing import check_grads

sd = pytest.importorskip("scipy.spatial.distance")

from fad.scipy.spatial import distance as ours  # noqa: E402
from fad.scipy.spatial import pairs  # noqa: E402
from fad.scipy.spatial.slopes import slopes  # noqa: E402

RNG = np.random.default_rng(12)
A, B = (RNG.uniform(0.1, 1.0, (n, 3)) + np.array([0.0, 1.5, 0.7]) for n in (6, 5))
METRICS = {
    "euclidean": {}, "sqeuclidean": {}, "cityblock": {}, "chebyshev": {}, "canberra": {}, "braycurtis": {},
    "cosine": {}, "correlation": {}, "jensenshannon": {}, "seuclidean": {}, "mahalanobis": {}, "minkowski": {"p": 3.0},
    "e": {"w": np.array([1.0, 2.0, 0.5])}, "mah": {"VI": np.diag([1.0, 2.0, 3.0])},
    "se": {"V": np.array([1.0, 2.0, 3.0])},
}  # fmt: skip


@pytest.mark.parametrize("metric", METRICS)
def test_distances_of_all_points_are_scipys_and_have_derivatives(metric):
    options = METRICS[metric]
    got = fad.vjp(lambda a, b: ours.cdist(a, b, metric, **options), A, B)[0]
    np.testing.assert_allclose(got, sd.cdist(A, B, metric, **options), atol=1e-12)
    got = fad.vjp(lambda a: ours.pdist(a, metric, **options), A)[0]
    np.testing.assert_allclose(got, sd.pdist(A, metric, **options), atol=1e-12)
    check_grads(lambda a, b: ours.cdist(a, b, metric, **options), (A[:4], B), order=2)


@pytest.mark.parametrize("metric", [m for m in METRICS if m not in ("cosine", "correlation")])
def test_at_coinciding_points_the_derivative_is_zero_and_no_nan(metric):
    options = dict(METRICS[metric])
    if metric in ("seuclidean", "mahalanobis"):
        options = {"V": np.ones(3)} if metric == "seuclidean" else {"VI": np.eye(3)}
    point = A[:1]
    value, pullback = fad.vjp(lambda a: ours.cdist(a, point, metric, **options), point)
    assert value[0, 0] == 0
    np.testing.assert_array_equal(pullback(np.ones((1, 1)))[0], np.zeros((1, 3)))
    with np.errstate(all="raise"):
        assert np.all(np.isfinite(fad.hessian(lambda a: ours.cdist(a, point, metric, **options)[0, 0])(point)))


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "chebyshev", "canberra", "braycurtis", "minkowski"])
def test_the_gradients_of_large_sets_are_sums_of_those_of_their_points(metric):
    options = {"p": 3.0} if metric == "minkowski" else {}
    single = (lambda u, v: ours.minkowski(u, v, 3.0)) if options else getattr(ours, metric)
    a, b, ct = RNG.normal(size=(50, 2)), RNG.normal(size=(900, 2)), RNG.normal(size=(50, 900))
    to_a, to_b = fad.vjp(lambda a, b: ours.cdist(a, b, metric, **options), a, b)[1](ct)
    slope = fad.vmap(fad.grad(single, (0, 1)), in_axes=(None, 0))
    of_points = [slope(a[i], b) for i in (0, 17, 49)]
    wanted = [ct[i] @ found[0] for i, found in zip((0, 17, 49), of_points, strict=True)]
    np.testing.assert_allclose(to_a[[0, 17, 49]], wanted, rtol=1e-9)
    np.testing.assert_allclose(np.sum(to_b, axis=0), np.sum(_pulled_to_all(slope, a, b, ct), axis=0), rtol=1e-9)


def _pulled_to_all(slope, a, b, ct):
    return sum(ct[i, :, None] * slope(a[i], b)[1] for i in range(len(a)))


def test_the_direction_between_points_far_closer_than_the_others_keeps_its_digits():
    a, b = np.array([[0.0, 0.0], [5.0, 7.0]]), np.array([[3e-17, 4e-17], [1e3, -1e3]])
    found = fad.grad(lambda a: ours.cdist(a, b)[0, 0])(a)
    np.testing.assert_allclose(found, [[-0.6, -0.8], [0.0, 0.0]], rtol=1e-14)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "chebyshev", "canberra"])
@pytest.mark.parametrize(("m", "n", "k"), [(2, 3, 0), (0, 3, 2), (2, 0, 2), (0, 0, 0)])
def test_sets_without_points_or_coordinates_have_gradients_of_their_shapes(metric, m, n, k):
    a, b = np.ones((m, k)), np.zeros((n, k))
    y, pull = fad.vjp(lambda a, b: ours.cdist(a, b, metric), a, b)
    np.testing.assert_array_equal(y, sd.cdist(a, b, metric))
    for found, x in zip(pull(np.ones((m, n))), (a, b), strict=True):
        np.testing.assert_array_equal(found, np.zeros_like(x))


def test_hundreds_of_coordinates_share_the_largest_difference():
    found = fad.grad(lambda a: ours.cdist(a, np.zeros((1, 400)), "chebyshev")[0, 0])(np.ones((1, 400)))
    np.testing.assert_allclose(found, np.full((1, 400), 1.0 / 400))


def test_vectors_of_zeros_have_distances_with_finite_derivatives():
    zero = np.zeros(3)
    for metric in (ours.euclidean, ours.cityblock, ours.canberra, ours.chebyshev, ours.sqeuclidean):
        assert np.all(np.isfinite(fad.grad(metric, (0, 1))(zero, zero)))


def test_a_matrix_and_its_vector_are_turned_into_each_other():
    vector = sd.pdist(A)
    np.testing.assert_array_equal(fad.vjp(ours.squareform, vector)[0], sd.squareform(vector))
    back, pullback = fad.vjp(lambda v: ours.squareform(ours.squareform(v)), vector)
    np.testing.assert_array_equal(back, vector)
    np.testing.assert_array_equal(pullback(vector)[0], vector)


BAD = {
    "a metric": lambda a: ours.cdist(a, B, "nearness"),
    "a metric of booleans": lambda a: ours.cdist(a, B, "jaccard"),
    "columns": lambda a: ours.cdist(a, B[:, :2]),
    "a vector for a set": lambda a: ours.pdist(a[0]),
    "a matrix for a vector": lambda a: ours.euclidean(a, a),
    "negative weights": lambda a: ours.euclidean(a[0], B[0], -np.ones(3)),
    "a power": lambda a: ours.minkowski(a[0], B[0], 0),
    "no distance matrix": lambda a: ours.squareform(a[:3]),
    "a length": lambda a: ours.squareform(a.reshape(-1)[:4]),
}


@pytest.mark.parametrize("what", BAD)
def test_what_has_no_distance_is_refused(what):
    with pytest.raises(ValueError):
        fad.vjp(BAD[what], A)


def test_an_argument_that_a_metric_does_not_take_is_refused():
    with pytest.raises(TypeError, match="'p'"):
        fad.vjp(lambda a: ours.cdist(a, B, "euclidean", p=3), A)


@pytest.mark.parametrize("sizes", [(700, 40), (10, 8), (1, 3), (3, 0)])
@pytest.mark.parametrize("kernel", ["square", "absolute", "canberra", "largest"])
def test_the_quick_slopes_of_the_host_are_those_of_the_general_sums(kernel, sizes):
    one, u = np.ones((1, 1)), RNG.normal(size=sizes)
    whole = [RNG.integers(-2, 3, size=(n, 3)).astype(float) for n in sizes]  # ties, zeros and both signs
    for a, b in (whole, [RNG.normal(size=(n, 3)) for n in sizes], [np.abs(x) + 1.0 for x in whole]):
        found = pairs._over_right(u, one, a, b, kernel, 0.0, (1, 0))
        np.testing.assert_allclose(slopes(kernel, u, a, b), found, rtol=1e-12, atol=1e-12)
