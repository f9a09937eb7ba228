"""Nearest neighbours, distances between sets and hulls of traced points, in programs with SciPy's names."""

from __future__ import annotations

import numpy as np
import pytest

import fad

spatial = pytest.importorskip("scipy.spatial")

from scipy.spatial import KDTree  # noqa: E402

RNG = np.random.default_rng(0)
POINTS, X = RNG.normal(size=(12, 2)), RNG.normal(size=8)
TREE = spatial.cKDTree(POINTS)


class Map:
    def __init__(self):
        self.tree = KDTree(POINTS)


MAP = Map()
PROGRAMS = {
    "a tree made before": lambda x: TREE.query(x[:2], 3)[0],
    "a tree of an object": lambda x: MAP.tree.query(x.reshape(4, 2))[0],
    "traced points": lambda x: KDTree(x.reshape(4, 2)).query(POINTS[0], 2)[0],
    "both": lambda x: spatial.cKDTree(x.reshape(4, 2)).query(x[:6].reshape(3, 2) + 0.1, k=2)[0],
    "some of them": lambda x: KDTree(POINTS).query(x[:2], k=[2, 4])[0],
    "the norm 1": lambda x: TREE.query(x[:2], 2, p=1)[0],
    "the norm 3": lambda x: TREE.query(x[:2], 2, p=3)[0],
    "the greatest coordinate": lambda x: TREE.query(x[:2], 2, p=np.inf)[0],
    "a periodic space": lambda x: KDTree(np.abs(POINTS) % 2.0, boxsize=2.0).query(x[:2] % 2.0, 3)[0],
    "the values at neighbours": lambda x: np.sum(x[TREE.query(POINTS[:3] + 0.01, 2)[1] % 8] ** 2),
    "distance_matrix": lambda x: spatial.distance_matrix(x.reshape(4, 2), POINTS),
}  # fmt: skip


def differences(program, x, h=1e-6):
    return np.stack([(program(x + d) - program(x - d)) / (2 * h) for d in h * np.eye(x.size)], -1)


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_distances_to_neighbours_have_the_derivatives_of_their_differences(program):
    for x in (X, -0.7 * X[::-1]):
        value, wanted = program(x), differences(program, x)
        for jacobian in (fad.jacrev(program), fad.jacfwd(program), fad.jit(fad.jacrev(program))):
            np.testing.assert_allclose(jacobian(x), wanted, 1e-6, 1e-7)
        np.testing.assert_allclose(fad.jit(program)(x), value, 1e-13)
        many = np.stack([value, program(1.1 * x)])
        np.testing.assert_allclose(fad.vmap(program)(np.stack([x, 1.1 * x])), many, 1e-13)
        slope = fad.grad(lambda s, x=x: np.sum(program(x + s * np.cos(x)) ** 2))
        np.testing.assert_allclose(fad.grad(slope)(0.0), (slope(1e-5) - slope(-1e-5)) / 2e-5, 1e-5, 1e-5)


def test_numbers_and_missing_neighbours_are_those_of_scipy():
    tree = fad.scipy.spatial.KDTree(POINTS)
    for settings in ({"k": 3}, {"k": 1}, {"k": [1]}, {"k": 20}, {"k": 3, "distance_upper_bound": 0.3}):
        for got, wanted in zip(tree.query(POINTS[:5], **settings), TREE.query(POINTS[:5], **settings), strict=True):
            np.testing.assert_allclose(got, wanted, 1e-12)
    coinciding = fad.grad(lambda x: tree.query(x)[0])(POINTS[2])
    np.testing.assert_array_equal(coinciding, 0.0)
    found = fad.jvp(lambda x: TREE.query(x, 3, distance_upper_bound=0.1)[0], (POINTS[0] + 0.01,), (np.ones(2),))
    assert np.isinf(found[0][1:]).all()
    assert (found[1][1:] == 0).all()
    assert tree.query_ball_point(POINTS[0], 0.5) == TREE.query_ball_point(POINTS[0], 0.5)
    assert isinstance(MAP.tree, KDTree)


def energy_within(points):  # pairs of all points that are near each other
    tree = KDTree(points)
    total = 0.0
    for i, near in enumerate(tree.query_ball_point(points, 0.7)):
        for j in near:
            if j != i:
                total = total + np.exp(-np.sum((points[i] - points[j]) ** 2))
    return total


def energy_of_one(points):
    near = KDTree(points).query_ball_point(points[0] + 0.1, 0.8)
    return np.sum(np.sin(points[sorted(near)]))


def energy_of_pairs(points):
    pairs = sorted(KDTree(points).query_pairs(0.9))
    again = KDTree(points).query_pairs(0.9, output_type="ndarray")
    return sum(np.sum(points[i] * points[j]) for i, j in pairs) + np.sum(points[again[:, 0]])


def energy_of_trees(points):
    near = KDTree(points).query_ball_tree(KDTree(points + 0.3), 0.6)
    return sum(np.sum(points[i] * points[j]) for i, js in enumerate(near) for j in js)


def energy_of_counts(points):
    counts = KDTree(points).query_ball_point(points, np.linspace(0.3, 1.0, len(points)), p=1.0, return_length=True)
    return np.sum(counts[:, None] * points**2)


def energy_in_a_box(points):
    inside = points % 1.0
    near = KDTree(inside, boxsize=1.0).query_ball_point(inside, 0.3)
    return sum(len(found) * np.sum(points[found] ** 2) for found in near)


@pytest.mark.parametrize(
    "f", [energy_within, energy_of_one, energy_of_pairs, energy_of_trees, energy_of_counts, energy_in_a_box],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_the_points_within_a_distance_choose_the_path_of_a_program(f):
    first = np.random.default_rng(3).uniform(0.1, 0.9, size=(7, 2))
    batch = np.stack([first, 1.01 * first, first[::-1] ** 2])
    slopes = np.stack([fad.grad(f)(points) for points in batch])
    np.testing.assert_allclose(slopes[0].ravel(), differences(lambda v: f(v.reshape(7, 2)), first.ravel()), 1e-6, 1e-7)
    np.testing.assert_allclose(fad.vmap(f)(batch), [f(points) for points in batch], 1e-12)
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(batch), slopes, 1e-12)
    compiled, slope = fad.jit(f), fad.jit(fad.grad(f))
    for points, wanted in zip(batch, slopes, strict=True):
        np.testing.assert_allclose(compiled(points), f(points), 1e-12)
        np.testing.assert_allclose(slope(points), wanted, 1e-12)


HULLS = {
    "the area of a polygon": (lambda p: spatial.ConvexHull(p).volume, (9, 2)),
    "the length around it": (lambda p: spatial.ConvexHull(p).area, (9, 2)),
    "a volume": (lambda p: spatial.ConvexHull(p).volume, (12, 3)),
    "a surface": (lambda p: spatial.ConvexHull(p).area, (12, 3)),
}


@pytest.mark.parametrize(("program", "shape"), HULLS.values(), ids=HULLS)
def test_a_hull_has_the_derivatives_of_its_differences(program, shape):
    for seed in (1, 2):
        points = np.random.default_rng(seed).normal(size=shape)
        value, gradient = fad.value_and_grad(program)(points)
        np.testing.assert_allclose(value, program(points), 1e-12)
        wanted = differences(lambda v: program(v.reshape(shape)), points.ravel()).reshape(shape)
        np.testing.assert_allclose(gradient, wanted, 1e-6, 1e-7)
        slope = fad.grad(lambda s, p=points: program(p + s * np.cos(3 * p)))
        np.testing.assert_allclose(fad.grad(slope)(0.0), (slope(1e-5) - slope(-1e-5)) / 2e-5, 1e-5, 1e-5)
    with pytest.raises(fad.errors.TracerConversionError):
        fad.jit(program)(points)
    corners = fad.jvp(lambda p: (np.sum(p), spatial.ConvexHull(p).vertices), (points,), (points,), has_aux=True)[2]
    np.testing.assert_array_equal(corners, spatial.ConvexHull(points).vertices)


def test_what_has_no_derivative_is_refused():
    with pytest.raises(TypeError, match="from distances"):
        fad.grad(lambda x: np.sum(KDTree(x.reshape(4, 2)).count_neighbors(TREE, 1.0) + x))(X)
    with pytest.raises(AttributeError, match="take its points"):
        fad.grad(lambda x: spatial.ConvexHull(x.reshape(4, 2)).equations[0, 0])(X)
    with pytest.raises(ValueError, match="vectors of length 2"):
        fad.grad(lambda x: TREE.query(x)[0])(X)
