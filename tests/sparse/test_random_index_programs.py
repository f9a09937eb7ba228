"""Random programs that gather, scatter, sort, choose and loop: their sparse derivatives are the dense ones.

``SPARSE_PROGRAMS`` is how many, and ``SPARSE_SEED`` the first seed.
"""

import os
from unittest import mock

import numpy as np
import pytest
import scipy.sparse

import fad
from fad.sparse import passes

COUNT = int(os.environ.get("SPARSE_PROGRAMS", "60"))
FIRST = int(os.environ.get("SPARSE_SEED", "0"))
N = 9


def _indices(rng, size=None):
    return rng.integers(0, N, rng.integers(3, 20) if size is None else size)


def gather_product(rng):
    i, j = _indices(rng, 14), _indices(rng, 14)
    return lambda x, y: np.bincount(i, x[i] * np.sin(y[j]), N)


def add_at(rng):
    i, j = _indices(rng, 11), _indices(rng, 11)

    def step(x, y):
        total = x.copy()
        np.add.at(total, i, y[j] * x[i])
        return total

    return step


def multiply_at(rng):
    i = rng.permutation(N)[:5]

    def step(x, y):
        total = np.tanh(x)
        np.multiply.at(total, i, y[i])
        return total

    return step


def subtract_at(rng):
    i, j = _indices(rng, 6), _indices(rng, 6)

    def step(x, y):
        total = np.zeros(N)
        np.subtract.at(total, i, x[j] ** 2)
        return total + y

    return step


def maximum_at(rng):
    i = rng.permutation(N)[:4]

    def step(x, y):
        total = x * 0.5
        np.maximum.at(total, i, y[i])
        return total

    return step


def segment_sums(rng):
    starts = np.sort(rng.permutation(N)[:4])
    i = _indices(rng, N)
    return lambda x, y: np.add.reduceat(x * y[i], starts)[np.resize(np.arange(starts.size), N)] * np.sum(x[starts])


def by_weights(rng):
    dense = np.where(rng.uniform(size=(N, N)) < 0.3, rng.normal(size=(N, N)), 0.0)
    return lambda x, y: np.tanh(dense @ x) + y


def by_sparse_matrix(rng):
    matrix = scipy.sparse.random_array((N, N), density=0.3, rng=rng, format="csr")
    return lambda x, y: fad.scipy.sparse.matmul(matrix, x * y)


def traced_sparse_matrix(rng):
    i, j = _indices(rng, 10), _indices(rng, 10)
    return lambda x, y: fad.scipy.sparse.coo_array((x[i] * 0.5, (i, j)), shape=(N, N)) @ y


def sort(rng):
    return lambda x, y: np.sort(x) * y


def by_order(rng):
    i = _indices(rng, N)
    return lambda x, y: x[np.argsort(y)][i]


def partition(rng):
    return lambda x, y: np.partition(x, 4)[4] * y


def choose(rng):
    i = _indices(rng, N)
    return lambda x, y: np.where(x > y[i], x * y, np.cos(y))


def clip(rng):
    return lambda x, y: np.clip(x, -0.5, 0.5) + np.maximum(x, y)[::-1]


def branch(rng):
    i, j = _indices(rng, N), _indices(rng, N)
    return lambda x, y: x[i] * y if x[0] > y[1] else y[j] - x


def index_of_values(rng):
    i = _indices(rng, N)
    return lambda x, y: y[(i + (x > 0.0)) % N] * x


def mask(rng):
    def step(x, y):
        out = x * 1.0
        out[y > 0.2] = np.sin(y[y > 0.2])
        return out

    return step


def write_slice(rng):
    def step(x, y):
        out = np.zeros(N)
        out[2:6] = x[1:5] * y[0]
        out[0] = x[8]
        out[::2] += y[: (N + 1) // 2]
        return out

    return step


def write_at_indices(rng):
    i = rng.permutation(N)[:5]

    def step(x, y):
        out = x.copy()
        out[i] = y[i[::-1]] * x[i]
        out[i[:2]] *= 2.0
        return out

    return step


def loop(rng):
    i = _indices(rng, N)

    def step(x, y):
        for k in range(3):
            x = 0.5 * x[i] + y * (k + 1)
        return x

    return step


def loop_over_elements(rng):
    def step(x, y):
        out = np.zeros(N)
        for k in range(1, N):
            out[k] = out[k - 1] * 0.3 + x[k] * y[k - 1]
        return out

    return step


def by_scan(rng):
    i = _indices(rng, N)
    return lambda x, y: fad.scan(lambda c, a: (0.5 * c + a, c * a), y[0], x[i])[1]


def by_cond(rng):
    i = _indices(rng, N)
    return lambda x, y: fad.cond(x[0] > 0, lambda u, v: u[i] * v, lambda u, v: u - v[::-1], x, y)


def mapped(rng):
    i, j = _indices(rng, N), _indices(rng, N)
    return lambda x, y: fad.vmap(lambda a, b: np.exp(0.1 * a) * b)(x[i], y[j])


def mapped_rows(rng):
    i = rng.integers(0, N, (N, 3))
    return lambda x, y: fad.vmap(lambda a, b: np.prod(a) + b**2)(x[i], y)


def moved(rng):
    return lambda x, y: np.roll(x, 2) * np.flip(y) + np.pad(x[:-2], 1)


def rows(rng):
    i = rng.integers(0, 3, (N,))
    return lambda x, y: np.sum(x.reshape(3, 3)[i] * y.reshape(3, 3)[i[::-1]], axis=1)


def stacked(rng):
    i, j = _indices(rng, N), _indices(rng, N)
    return lambda x, y: np.stack([x[i], y[j], x], axis=1).max(axis=1) * y[i]


def sums(rng):
    i = _indices(rng, N)
    return lambda x, y: np.cumsum(x)[i] * 0.1 + np.diff(y, append=y[0])


def take_along(rng):
    i = rng.integers(0, 3, (3, 3))
    return lambda x, y: np.take_along_axis(x.reshape(3, 3), i, 1).reshape(-1) * y


def neighbours(rng):
    return lambda x, y: np.convolve(x, np.array([0.25, 0.0, 0.5]), "same") * y


def of_a_gradient(rng):
    i, j = _indices(rng, 12), _indices(rng, 12)
    return lambda x, y: fad.grad(lambda z: np.sum(np.tanh(z[i] * y[j]) * z[j]))(x)


def doubled(rng):
    i = _indices(rng, N)
    return lambda x, y: _doubled(x[i]) * y


@fad.custom_jvp
def _doubled(x):
    return x * 1.0


_doubled.defjvp(lambda primals, tangents: (primals[0] * 1.0, 2 * tangents[0]))


def bound(rng):
    i = _indices(rng, N)
    return lambda x, y: _bound(x[i]) + x[i] * y


@fad.custom_vjp
def _bound(x):
    return np.sin(x)


_bound.defvjp(lambda x: (np.sin(x), x), lambda x, ct: (np.cos(x) * ct,))  # right: Hessians are symmetric


def checkpointed(rng):
    i, j = _indices(rng, N), _indices(rng, N)
    return lambda x, y: fad.checkpoint(lambda u, v: np.sin(u[i]) * v[j])(x, y)


def complex_numbers(rng):
    i = _indices(rng, N)
    return lambda x, y: np.real(np.exp(1j * x[i]) * y) + np.abs(x + 1j * y)


STEPS = [
    gather_product, add_at, multiply_at, subtract_at, maximum_at, segment_sums, by_weights, by_sparse_matrix,
    traced_sparse_matrix, sort, by_order, partition, choose, clip, branch, index_of_values, mask, write_slice,
    write_at_indices, loop, loop_over_elements, by_scan, by_cond, mapped, mapped_rows, moved, rows, stacked, sums,
    take_along, neighbours, of_a_gradient, doubled, bound, checkpointed, complex_numbers,
]  # fmt: skip


def draw(seed):
    """Return a function of two vectors, of a few steps of those above."""
    rng = np.random.default_rng(seed)
    made = [(STEPS[rng.integers(len(STEPS))], *rng.integers(0, 2 + k, 2)) for k in range(rng.integers(1, 4))]
    steps = [(make(rng), i, j) for make, i, j in made]
    last = rng.integers(0, 2)

    def f(x, y):
        seen = [x, y]
        for step, i, j in steps:
            seen.append(0.9 * step(seen[i], seen[j]))
        return seen[-1] if last else {"a": seen[-1], "b": seen[-1][1:] * seen[-2][0]}

    return f


def dense(f, x, y):
    blocks = fad.jacobian(lambda x, y: fad.tree.leaves(f(x, y)), argnums=(0, 1))(x, y)
    return np.concatenate([np.hstack(row) for row in blocks])


def points(seed):
    """Return four points: two that are close to each other, another one, and the first once more."""
    rng = np.random.default_rng([seed, 1])
    x, y, u, v = rng.normal(size=(4, N))
    return [(x, y), (x + 1e-3 * u, y + 1e-3 * v), (u, v), (x, y)]


def same(found, wanted):
    np.testing.assert_allclose(found.toarray(), wanted, rtol=1e-9, atol=1e-10)


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT))
@pytest.mark.parametrize("wide", [0, 1 << 40], ids=["each by itself", "together"])
def test_the_jacobian_is_the_dense_one(seed, wide):
    f = draw(seed)
    mode = ("auto", "auto", "fwd", "rev")[seed % 4]
    jacobian = fad.sparse.jacobian(f, (0, 1), mode=mode)
    with mock.patch.object(passes, "WIDE", wide):
        for x, y in points(seed):
            same(jacobian(x, y), dense(f, x, y))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT, 3))
def test_the_compiled_jacobian_is_the_dense_one(seed):
    f = draw(seed)
    jacobian = fad.jit(fad.sparse.jacobian(f, (0, 1)))
    for x, y in points(seed):
        same(jacobian(x, y), dense(f, x, y))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT, 2))
def test_the_hessian_is_the_dense_one(seed):
    f = draw(seed)

    def total(x, y):
        return sum(np.sum(np.sin(leaf)) for leaf in fad.tree.leaves(f(x, y)))

    hessian, gradient = fad.sparse.hessian(total, (0, 1)), fad.grad(total, (0, 1))
    with mock.patch.object(passes, "WIDE", 0 if seed % 4 else 1 << 40):
        for x, y in points(seed):
            same(hessian(x, y), dense(gradient, x, y))


@pytest.mark.parametrize("seed", range(FIRST, FIRST + COUNT, 4))
def test_it_is_differentiated_and_batched_by_other_transforms(seed):
    f = draw(seed)
    jacobian = fad.sparse.jacobian(f, (0, 1))
    (x, y), (u, v), *_ = points(seed)
    weights = np.cos(np.arange(2 * N))

    def by_sparse(x, y):
        return np.sum((jacobian(x, y) @ weights) ** 2)

    def by_dense(x, y):
        parts = fad.tree.leaves(fad.jvp(f, (x, y), (weights[:N], weights[N:]))[1])
        return sum(np.sum(part**2) for part in parts)

    with mock.patch.object(passes, "WIDE", 0):
        for point in ((x, y), (x, y), (u, v)):
            by_sparse(*point)
            for a, b in zip(fad.grad(by_sparse, (0, 1))(*point), fad.grad(by_dense, (0, 1))(*point), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-7, atol=1e-8)
        both = np.stack([x, u]), np.stack([y, v])
        wanted = fad.vmap(lambda x, y: fad.jvp(f, (x, y), (weights[:N], weights[N:]))[1])(*both)
        wanted = np.concatenate(fad.tree.leaves(wanted), axis=1)
        found = fad.vmap(lambda x, y: jacobian(x, y) @ weights)(*both)
        np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-10)
