"""Sparse derivatives of functions that gather: cut behind the gathers they are the dense ones, in a few passes."""

import tracemalloc

import numpy as np
import pytest

import fad
from fad.sparse.colouring import colour
from fad.sparse.derivatives import Point

RNG = np.random.default_rng(3)
I, J = RNG.integers(0, 6, 40), RNG.integers(0, 9, 40)
TRIANGLES = np.array([[0, 1, 2], [1, 2, 3], [2, 3, 4], [0, 2, 4], [0, 4, 5], [0, 5, 1]])
A, B = TRIANGLES[:, 0], TRIANGLES[:, 1]
WHERE = I[:8].reshape(2, 4) % 4
X = RNG.normal(size=12)
CAMERAS, POINTS = RNG.normal(size=(6, 4)), RNG.normal(size=(9, 3)) + 3.0


def seen(camera, point):
    x, y = point[:2] * camera[0] + camera[1:3]
    return np.stack([x / point[2], y * np.exp(camera[3]) / point[2]])


def observations(cameras, points):
    return fad.vmap(seen)(cameras[I], points[J])


def springs(x):
    d = x.reshape(-1, 3)[I % 4] - x.reshape(-1, 3)[J % 4]
    return np.sum(np.sqrt(1.0 + np.sum(d**2, axis=1)))


JACOBIANS = {
    "observations": (observations, (CAMERAS, POINTS)),
    "what is gathered is used itself, too": (lambda x: x[J] * x[I] + x[:1] ** 2 + np.tile(x, 4)[:40], (X,)),
    "one leaf directly": (lambda x, w: (w * x[I], w**3), (CAMERAS[:, 1], RNG.normal(size=40))),
    "each element once": (lambda x: x[np.array([3, 0, 1])] * x[np.array([2, 1, 4])], (CAMERAS[:, 2],)),
    "of what was gathered": (lambda x: np.sin(x[I])[J], (CAMERAS[:, 0],)),
    "after moving": (lambda x: x.T.reshape(-1)[J] * np.concatenate([x[0], x[1]])[J % 8], (CAMERAS,)),
    "after computing": (lambda x: np.cos(2 * x)[J % 6] * x[J % 6], (CAMERAS[:, 0],)),
    "of two axes": (lambda x: x[I, I % 4] ** 2 * x[I][:, 1], (CAMERAS,)),
    "a mask": (lambda x: x[x > 0.1] * x[np.array([1, 1])][0], (CAMERAS[:, 0],)),
    "single precision": (lambda x: np.sin(x[I]) * x[I[::-1]], (CAMERAS[:, 0].astype(np.float32),)),
    "sums over edges": (lambda x: fad.numpy.bincount(I % 4, x[I] * x[J % 6], 4), (CAMERAS[:, 0],)),
    "by step": (lambda x: fad.scan(lambda c, a: (c * 0 + a, c + a), 0.0, x[I][:7])[1], (CAMERAS[:, 0],)),
    "by take": (lambda x: np.take(x, I, axis=0)[:, 0] * np.take_along_axis(x, WHERE, 0)[0, 0], (CAMERAS,)),
}  # fmt: skip


def _dense(f, args):
    blocks = fad.jacobian(f, argnums=tuple(range(len(args))))(*args)
    blocks = blocks if isinstance(f(*args), tuple) else (blocks,)
    return np.concatenate(
        [np.hstack([np.reshape(b, (-1, x.size)) for b, x in zip(row, args, strict=True)]) for row in blocks]
    )


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("name", JACOBIANS)
def test_the_jacobian_behind_gathers_is_the_dense_one(name, mode):
    f, args = JACOBIANS[name]
    found = fad.sparse.jacobian(f, tuple(range(len(args))), mode=mode)(*args)
    dense = _dense(f, args)
    assert found.has_canonical_format
    np.testing.assert_allclose(found.toarray(), dense, rtol=1e-5 if dense.itemsize == 4 else 1e-12, atol=1e-13)


HESSIANS = {
    "springs": (springs, CAMERAS[:4, :3].reshape(-1)),
    "triangles": (lambda u: np.sum(np.exp(u[A] * u[B]) * u[TRIANGLES[:, 2]]), CAMERAS[:, 0]),
    "elements": (lambda u: np.sum(np.sin(np.sum(u[TRIANGLES] ** 2, axis=1))) + np.sum(u**4), CAMERAS[:, 1]),
    "the same element twice": (lambda u: np.sum(u[I] ** 2 * u[I[::-1]]), CAMERAS[:, 2]),
    "of vectors": (lambda u: np.sum(np.prod(u[TRIANGLES], axis=1)), CAMERAS),
    "a linear function": (lambda u: np.sum(u[I]), CAMERAS[:, 0]),
}  # fmt: skip


@pytest.mark.parametrize("name", HESSIANS)
def test_the_hessian_behind_gathers_is_the_dense_one(name):
    f, x = HESSIANS[name]
    found = fad.sparse.hessian(f)(x)
    np.testing.assert_allclose(found.toarray(), fad.hessian(f)(x).reshape(x.size, x.size), rtol=1e-12, atol=1e-13)


def test_the_passes_are_those_of_one_observation_however_many_share_an_element():
    cameras, points = RNG.normal(size=(2, 5)), RNG.normal(size=(300, 2))
    i, j = RNG.integers(0, 2, 900), RNG.integers(0, 300, 900)
    derivative = fad.sparse.jacobian(lambda c, p: np.sum(c[i], 1) * np.sum(p[j] ** 2, 1), (0, 1))
    assert derivative.explain(cameras, points).endswith("passes: 1 in reverse")
    ends = RNG.integers(0, 300, (900, 2))
    ends[:400, 0] = 7  # a hub
    hessian = fad.sparse.hessian(lambda x: np.sum(np.cosh(x[ends[:, 0]] - x[ends[:, 1]])))
    assert hessian.explain(points[:, 0]).endswith("passes: 2 forward")


def test_a_stencil_by_index_arrays_takes_no_more_passes_than_by_slices():
    left, right = np.arange(48), np.arange(2, 50)
    f = fad.sparse.jacobian(lambda u: u[right] - 2 * u[1:-1] ** 2 + u[left])
    assert f.explain(np.ones(50)).endswith("passes: 3 forward")


@pytest.mark.parametrize("check", [True, False])
def test_a_compiled_jacobian_behind_gathers_is_the_dense_one(check):
    derivative = fad.jit(fad.sparse.jacobian(observations, (0, 1), check=check))
    for scale in (1.0, 0.5, 2.0):
        args = CAMERAS * scale, POINTS + scale
        np.testing.assert_allclose(derivative(*args).toarray(), _dense(observations, args), rtol=1e-12, atol=1e-13)
    hessian = fad.jit(fad.sparse.hessian(springs))
    for x in (CAMERAS[:4, :3].reshape(-1), np.arange(12.0)):
        np.testing.assert_allclose(hessian(x).toarray(), fad.hessian(springs)(x), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("transform", [lambda f: f, fad.jit], ids=["plain", "jit"])
def test_other_index_arrays_of_the_same_shape_are_seen(transform):
    def f(x, index):
        return np.sin(x[index]) * x[index[::-1]]

    derivative, x = transform(fad.sparse.jacobian(f)), CAMERAS[:, 0]
    for index in (np.array([0, 0, 1, 2]), np.array([3, 3, 1, 5]), np.array([0, 1, 2, 3]), np.array([0, 0, 1, 2])):
        np.testing.assert_allclose(derivative(x, index).toarray(), fad.jacobian(f)(x, index), rtol=1e-13)


def test_another_number_of_gathers_is_seen():
    def f(x):
        y = x[I] * x[J % 6]
        return y * x[I[::-1]] if x[0] > 0 else y

    derivative = fad.sparse.jacobian(f)
    for sign in (1.0, -1.0, 1.0):
        x = sign * np.abs(CAMERAS[:, 0])
        np.testing.assert_allclose(derivative(x).toarray(), fad.jacobian(f)(x), rtol=1e-13, atol=1e-15)


def test_indices_computed_from_values_are_seen():
    def f(x):
        near = np.argsort(x)[np.array([0, 0, 1, 2, 2])]
        return x[near] ** 2 * x[near[::-1]]

    derivative = fad.sparse.jacobian(f)
    for x in (CAMERAS[:, 0], CAMERAS[::-1, 0].copy(), CAMERAS[:, 1]):
        np.testing.assert_allclose(derivative(x).toarray(), fad.jacobian(f)(x), rtol=1e-13)


def test_arrays_written_before_they_are_gathered_are_followed():
    def f(x):
        y = x.copy()
        y[2] = x[0] * x[1]
        x[1:3] *= 2.0
        return y[I] * x[J % 6]

    found = fad.sparse.jacobian(f)(CAMERAS[:, 0])
    np.testing.assert_allclose(found.toarray(), fad.jacobian(f)(CAMERAS[:, 0]), rtol=1e-13)


def test_gathered_zeros_keep_their_sign():
    def f(x):
        return np.arctan2(x[np.array([0, 0, 1])], x[np.array([2, 2, 2])])

    for zero in (0.0, -0.0):
        signs = []
        fad.sparse.jacobian(lambda x, signs=signs: signs.append(np.signbit(x[np.array([0, 0])]).tolist()) or f(x))(
            np.array([zero, 1.0, -1.0])
        )
        assert all(s == signs[0] for s in signs)


@fad.custom_jvp
def _doubled(x):
    return x


_doubled.defjvp(lambda primals, tangents: (primals[0], 2 * tangents[0]))


def test_a_rule_of_its_own_holds_before_a_gather():
    def f(x):
        return _doubled(x)[I] * x[I]

    found = fad.sparse.jacobian(f)(CAMERAS[:, 0])
    np.testing.assert_allclose(found.toarray(), fad.jacobian(f)(CAMERAS[:, 0]), rtol=1e-13)


def test_derivatives_behind_gathers_compose_with_other_transforms():
    def total(a, derivative):
        return np.sum(derivative(lambda x: np.sin(a * x[I]) * x[J % 6])(CAMERAS[:, 0]).sum())

    found = fad.grad(lambda a: total(a, fad.sparse.jacobian))(1.5)
    assert found == pytest.approx(fad.grad(lambda a: total(a, fad.jacobian))(1.5))
    hessian, dense = fad.sparse.hessian(springs), fad.hessian(springs)
    x = CAMERAS[:4, :3].reshape(-1)
    found = fad.grad(lambda x: np.sum(hessian(x).data ** 2))(x)
    np.testing.assert_allclose(found, fad.grad(lambda x: np.sum(dense(x) ** 2))(x), rtol=1e-9, atol=1e-11)
    many = np.stack([x, x[::-1]])
    np.testing.assert_allclose(
        fad.vmap(lambda x: hessian(x).toarray())(many), fad.vmap(fad.hessian(springs))(many), rtol=1e-11, atol=1e-12
    )


def test_a_first_call_takes_little_memory_beside_its_matrix():
    rng = np.random.default_rng(0)
    n = 4_000
    i, j = rng.integers(0, n, 4 * n), rng.integers(0, n, 4 * n)

    def energy(x):
        return np.sum(np.sqrt(1 + (x[i] - x[j]) ** 2)) + 0.5 * np.sum(x**2)

    x = rng.normal(size=n)
    fad.sparse.hessian(energy)(x)  # what is imported and made once
    tracemalloc.start()
    found = fad.sparse.hessian(energy)(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak <= 6.5 * (found.data.nbytes + found.indices.nbytes + found.indptr.nbytes)


def test_blocks_are_coloured_with_as_few_colours_as_their_widest_column_needs():
    import scipy.sparse

    dense = np.kron(np.eye(30), np.ones((3, 4)))[RNG.permutation(90)]
    colours = colour(scipy.sparse.csr_array(dense > 0))
    assert colours.max() == 2
    for c in range(3):
        assert (dense[colours == c].sum(axis=0) <= 1).all()


def test_what_a_function_gathers_is_found_in_the_order_of_its_run():
    point = Point(lambda x: x[I] * x[J % 6][:3, None] * x[np.array([2, 1])][0], (CAMERAS[:, 0],), {}, 0, "here")
    cut = point.find_cut()
    assert [bool(c) for c in cut.cut] == [True, True, False]
    np.testing.assert_array_equal(cut.sources, np.concatenate([I, J % 6]))
