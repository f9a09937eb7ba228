"""Rotations and their interpolation are SciPy's, and so are their derivatives by differences of SciPy's values."""

import itertools

import numpy as np
import pytest
from scipy.spatial import transform as theirs
from scipy.spatial.transform import Rotation

import fad
from fad.scipy.spatial import transform as ours

BEFORE = Rotation.from_euler("zyx", [0.3, -0.2, 0.9])
TURN = theirs.Slerp([0.0, 1.0, 3.0], Rotation.from_rotvec([[0.1, 0.2, 0.3], [0.4, -1.0, 0.2], [2.0, 0.3, 0.1]]))
SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3) if s[0] != s[1] != s[2]]
VECTORS = np.array([[0.3, -0.4, 0.8], [1e-5, 2e-4, -3e-4], [0.0, 0.0, 0.0], [-1.2, 2.2, 0.7]])
POINTS = np.array([[1.0, 0.5, -0.3], [0.2, -0.7, 0.4], [0.9, 0.1, 0.3], [-0.4, 0.6, 0.2]])


def slopes(f, x, h=1e-6):
    """Return the Jacobian by differences."""
    columns = [(f(x + d) - f(x - d)) / (2 * h) for d in np.eye(x.size).reshape(-1, *x.shape) * h]
    return np.stack(columns, -1).reshape(*np.shape(f(x)), *x.shape)


def check(build, x, tolerance=1e-7):
    """Hold ``build(transform)``, a function of an array, to SciPy: values, both Jacobians, batches and compiled."""
    ours_of, theirs_of = build(ours), build(theirs)
    wanted = theirs_of(x)
    np.testing.assert_allclose(ours_of(x), wanted, 1e-12, 1e-12)
    for jacobian in (fad.jacfwd(ours_of), fad.jacrev(ours_of), fad.jit(fad.jacfwd(ours_of))):
        np.testing.assert_allclose(jacobian(x), slopes(theirs_of, x), 1e-6, tolerance)
    np.testing.assert_allclose(fad.vmap(ours_of)(np.stack([x, x])), [wanted, wanted], 1e-12, 1e-12)


@pytest.mark.parametrize("vector", [*VECTORS, VECTORS], ids=str)
def test_rotation_vectors(vector):
    check(lambda t: lambda v: t.Rotation.from_rotvec(v).as_quat(), vector)
    check(lambda t: lambda v: t.Rotation.from_rotvec(v).as_rotvec(), vector)
    check(lambda t: lambda v: t.Rotation.from_rotvec(v, degrees=True).as_matrix(), vector)


@pytest.mark.parametrize("seq", [*SEQUENCES, *map(str.upper, SEQUENCES)])
def test_angles_there_and_back(seq):
    for angles in ([0.3, 0.9, -0.4], [-2.0, 0.4, 2.5], [[0.1, 1.2, 0.3], [0.7, 0.2, -1.0]]):
        check(lambda t: lambda a: t.Rotation.from_euler(seq, a).as_matrix(), np.array(angles))
        check(lambda t: lambda a: t.Rotation.from_euler(seq, a).as_euler(seq), np.array(angles))


@pytest.mark.parametrize("seq", ["xyz", "XYZ", "zxz", "YXY"])
@pytest.mark.parametrize("end", [0, 1])
def test_at_gimbal_lock_the_angles_are_scipys(seq, end):
    angles = [0.4, np.pi * end if seq[0] == seq[2] else np.pi * (end - 0.5), 0.3]
    q = Rotation.from_euler(seq, angles).as_quat()
    with pytest.warns(UserWarning, match="Gimbal lock"):
        wanted = Rotation(q).as_euler(seq)
    with pytest.warns(UserWarning, match="Gimbal lock"):
        found = ours.Rotation(q).as_euler(seq)
    np.testing.assert_allclose(found, wanted, 1e-9, 1e-9)
    jacobian = fad.jacrev(lambda q: ours.Rotation(q).as_euler(seq, suppress_warnings=True))(q)
    assert np.all(np.isfinite(jacobian))


def test_one_letter_and_two():
    check(lambda t: lambda a: t.Rotation.from_euler("Y", a, degrees=True).as_quat(), np.array(40.0))
    check(lambda t: lambda a: t.Rotation.from_euler("zx", a).as_quat(), np.array([[0.1, 0.2], [0.3, 0.4]]))


def test_quaternions_and_parameters():
    q = np.array([[0.1, -0.7, 0.3, -0.4], [0.5, 0.2, 0.0, 0.1]])
    check(lambda t: lambda q: t.Rotation.from_quat(q).as_quat(canonical=True, scalar_first=True), q)
    check(lambda t: lambda q: t.Rotation.from_quat(q, scalar_first=True).as_rotvec(degrees=True), q)
    check(lambda t: lambda q: t.Rotation(q).as_mrp(), q)
    check(lambda t: lambda p: t.Rotation.from_mrp(p).as_matrix(), VECTORS)
    check(lambda t: lambda q: t.Rotation(q).magnitude(), q)


@pytest.mark.parametrize("turn", [0, 1, 2, 3, 4])
def test_matrices_are_brought_to_the_nearest_rotation(turn):
    m = Rotation.from_rotvec(np.array([[2.9, 0.1, 0.2], [0.1, 2.9, 0.3], [0.2, 0.3, 2.9], [0.3, 0.2, 0.1], [0, 0, 0]]))
    m = m[turn].as_matrix()
    check(lambda t: lambda m: t.Rotation.from_matrix(m).as_quat(), m + 0.05 * np.outer(POINTS[0], POINTS[1]))
    inside = fad.jacfwd(lambda v: ours.Rotation.from_matrix(ours.Rotation.from_rotvec(v).as_matrix()).as_rotvec())
    np.testing.assert_allclose(inside(VECTORS[0]), np.eye(3), 1e-9, 1e-9)
    near = fad.jacrev(lambda m: ours.Rotation.from_matrix(m).as_quat())(m)
    np.testing.assert_allclose(near, slopes(lambda m: Rotation.from_matrix(m).as_quat(), m, 1e-5), 1e-5, 1e-6)


def test_products_powers_and_inverses():
    pair = VECTORS[[0, 3]]
    of = lambda t, v: t.Rotation.from_rotvec(v)
    check(lambda t: lambda v: (of(t, v)[0] * of(t, v)[1]).as_quat(), pair)
    check(lambda t: lambda v: (of(t, v) * of(t, v)[1].inv()).as_rotvec(), pair)
    check(lambda t: lambda v: (of(t, v) ** 0.3).as_matrix(), pair)
    check(lambda t: lambda v: (of(t, v) ** -1).as_matrix(), pair)
    check(lambda t: lambda v: of(t, v).apply(POINTS[:2]), pair)
    check(lambda t: lambda v: of(t, v)[0].apply(POINTS, inverse=True), pair)
    check(lambda t: lambda v: t.Rotation.concatenate([of(t, v), of(t, v)[0]]).as_quat(), pair)
    check(lambda t: lambda v: np.stack([r.magnitude() for r in of(t, v)]), pair)
    assert len(of(ours, pair)) == 2
    assert of(ours, pair)[0].single


def test_means():
    vectors = np.array([[0.3, -0.4, 0.8], [0.1, 0.2, 0.3], [0.5, -0.1, 0.7]])
    check(lambda t: lambda v: t.Rotation.from_rotvec(v).mean().as_matrix(), vectors)
    check(lambda t: lambda w: t.Rotation.from_rotvec(vectors).mean(w).as_matrix(), np.array([0.2, 0.5, 1.0]))
    check(lambda t: lambda v: t.Rotation.from_rotvec(v).mean().as_matrix(), vectors[:2])


def test_vectors_are_aligned():
    check(lambda t: lambda a: t.Rotation.align_vectors(a, POINTS)[0].as_matrix(), POINTS[::-1].copy())
    check(lambda t: lambda a: np.asarray(t.Rotation.align_vectors(a, POINTS)[1]), POINTS[::-1].copy())
    weights = np.array([0.2, 0.5, 1.0, 0.7])
    check(lambda t: lambda w: t.Rotation.align_vectors(POINTS, POINTS**2, w)[0].as_quat(), weights)
    check(lambda t: lambda a: t.Rotation.align_vectors(a, POINTS, return_sensitivity=True)[2], POINTS**2)


def test_rotations_in_between():
    keys = np.array([0.0, 1.0, 3.0])
    make = lambda t, v, keys=keys: t.Slerp(keys, t.Rotation.from_rotvec(v))
    check(lambda t: lambda at: make(t, VECTORS[[0, 3, 1]])(at).as_quat(), np.array([0.2, 1.7, 2.9]))
    check(lambda t: lambda at: make(t, VECTORS[[0, 3, 1]])(at).as_matrix(), np.array(1.2))
    check(lambda t: lambda v: make(t, v)(1.4).as_matrix(), VECTORS[[0, 3, 1]])
    with pytest.raises(ValueError, match="within the range"):
        make(ours, VECTORS[:3])(3.1)


def test_second_derivatives_at_no_rotation_are_those_of_the_exponential():
    second = fad.hessian(lambda v: ours.Rotation.from_rotvec(v).as_matrix()[0, 0])(np.zeros(3))
    np.testing.assert_allclose(second, np.diag([0.0, -1.0, -1.0]), 0, 1e-12)


def test_programs_that_call_scipys_class_are_differentiated_as_they_are():
    def reach(angles):
        arm = Rotation.from_euler("ZY", angles[:2]) * BEFORE
        assert isinstance(arm, Rotation)
        return (BEFORE * arm * TURN(angles[2])).apply([1.0, 0.0, 0.5]) + BEFORE.inv().as_rotvec()

    angles = np.array([0.3, 0.5, 1.7])
    for jacobian in (fad.jacfwd(reach), fad.jacrev(reach), fad.jit(fad.jacfwd(reach))):
        for _ in range(2):
            np.testing.assert_allclose(jacobian(angles), slopes(reach, angles), 1e-6, 1e-8)
    assert type(BEFORE) is Rotation


def test_rotations_are_trees():
    turn = ours.Rotation.from_rotvec(VECTORS[:2])
    gradient = fad.grad(lambda r: r.apply(POINTS[0]).sum())(turn)
    assert type(gradient) is ours.Rotation
    assert gradient.as_quat().shape == (2, 4)


@pytest.mark.parametrize(
    "wrong",
    [
        lambda t: t.Rotation.from_quat(np.zeros(4)),
        lambda t: t.Rotation.from_quat(np.zeros(3)),
        lambda t: t.Rotation.from_matrix(-np.eye(3)),
        lambda t: t.Rotation.from_euler("xXy", np.zeros(3)),
        lambda t: t.Rotation.from_euler("xxy", np.zeros(3)),
        lambda t: t.Rotation.from_euler("xy", np.zeros(3)),
        lambda t: t.Rotation.from_rotvec(np.zeros(4)),
        lambda t: t.Rotation.identity(2).mean(weights=[-1.0, 1.0]),
        lambda t: t.Slerp([1.0, 0.0], t.Rotation.identity(2)),
    ],
)
def test_what_scipy_refuses_is_refused(wrong):
    for module in (theirs, ours):
        with pytest.raises(ValueError, match=r"\w"):
            wrong(module)


def test_random_rotations_are_those_of_scipys_generators():
    for options in ({"rng": 1}, {"random_state": 1}):
        np.testing.assert_array_equal(
            ours.Rotation.random(2, **options).as_quat(), Rotation.random(2, **options).as_quat()
        )
    np.testing.assert_array_equal(ours.Rotation.random(2, 1).as_quat(), Rotation.random(2, 1).as_quat())


def test_slerp_has_scipys_rotations():
    turns = Rotation.from_rotvec(np.eye(3))
    made = ours.Slerp([0.0, 1.0, 3.0], ours.Rotation(turns.as_quat()))
    np.testing.assert_allclose(made.rotations.as_quat(), theirs.Slerp([0.0, 1.0, 3.0], turns).rotations.as_quat())


@pytest.mark.parametrize("power", [1, -1, 1.0, 0, 2])
def test_powers_of_more_than_half_a_turn_have_scipys_quaternions(power):
    check(lambda t: lambda v: (t.Rotation.from_rotvec(v) ** power).as_quat(), np.array([3.0, 3.0, 3.0]))
