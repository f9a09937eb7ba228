"""Batches of small arrays are computed as one vector for each of their elements, with the same results."""

import math

import numpy as np
import pytest
from natively import compiled, native

import fad
from fad.compile.codegen.selection import kind_of
from fad.compile.legalize.decompose import decompose
from fad.compile.legalize.layouts import struct_of_arrays
from fad.compile.legalize.layouts.struct_of_arrays import split_small_arrays
from fad.compile.pipeline import optimise
from fad.compile.schedule.steps import plan_steps
from fad.core.programs.rewriter import check_types

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)


def rotated(w, p):
    """Return points rotated about axes, whose lengths are the angles."""
    angle = np.sqrt(np.sum(w * w, axis=1, keepdims=True) + 0.1)
    axis = w / angle
    along = np.sum(axis * p, axis=1, keepdims=True) * (1 - np.cos(angle))
    return p * np.cos(angle) + np.cross(axis, p) * np.sin(angle) + axis * along


def softmax(x):
    e = np.exp(x - np.max(x, axis=1, keepdims=True))
    return e / np.sum(e, axis=1, keepdims=True)


def quaternion(a, b):
    w, x, y, z = a.T
    matrix = np.stack([np.stack(r, axis=1) for r in ((w, -x, -y, -z), (x, w, -z, y), (y, z, w, -x), (z, -y, x, w))], 1)
    return np.sum(matrix * b[:, None, :], axis=2)


def written(x, y):
    a = np.zeros((len(x), 3, 3))
    a[:, 0, 0] = x[:, 0] * y[:, 1]
    a[:, 1, 1] += np.sin(x[:, 1])
    a[:, 2] = x * 2.0
    a[:, :, 1] += y
    return a, a + a.transpose(0, 2, 1) * x[:, :1, None]


def whole(x):
    y = x * x[:, :1] - np.min(x, axis=1, keepdims=True)
    return y, y @ np.ones((3, 3)), np.sum(y, axis=0), np.sort(y, axis=0), y[::-1], y[:, 0], y[:, 0], y[:, 1] + y[:, 2]


def chosen(x, y):
    larger = x > y[:, :1]
    both = larger & (x < 2.0)
    return np.where(both, x, y), larger, both[:, 0] | both[:, 1], np.sum(np.where(larger, x, 0.0), axis=1)


def integers(x):
    n = (x * 10).astype(np.int64)
    return n * 3 + np.arange(3), np.stack([n[:, 0], n[:, 1], n[:, 0]], axis=1) - n[:, :1], np.sum(n % 4, axis=1)


def alike(x):
    return np.concatenate([np.ones((len(x), 1)), 2.0 * x[:, :1], np.ones((len(x), 1))], axis=1) * np.array([1.0, 2, 3])


def blocks(x, y):
    def f(a, b):
        return np.stack([a[0] * b[1] / a[2], np.exp(a[1] * b[0]) - b[2]])

    by_a, by_b = fad.vmap(fad.jacrev(f, argnums=(0, 1)))(x, y)
    return np.concatenate([by_a, by_b], axis=2).ravel(), by_a[..., 1]


def asked(x):
    y = x - x[:, :1] * 2.0
    return y if np.sum(y[:, 2]) > 1e9 else y * y[:, 1:2]


def nearest(x, c):
    """Return the sum of the squared distances of points from the nearest of some others."""
    squares = np.sum(x * x, axis=1) + np.sum(c * c, axis=1)[:, None] - 2 * c @ x.T
    return np.sum(np.min(squares, axis=0))


def rows(x):
    y = x.T * np.arange(1.0, 4.0)[:, None]
    return y / np.max(np.abs(y), axis=0), y[0] * y[1], np.sum(y, axis=1), np.max(y[:2] * y[2], axis=1)


def in_the_middle(x, y):
    both = np.stack([x, y])  # (2, n, 3)
    return np.sum(both * both[:, :, :1], axis=(0, 2)), both.transpose(1, 2, 0) * 2.0, np.sum(both[0] * both[1], 0)


def fitted(x, w):
    def loss(w):
        residual = np.tanh(x[:, 0] * w[0] + w[1]) - x[:, 1] * w[2]
        return np.sum(np.stack([residual, 0.1 * residual * x[:, 2]], axis=1) ** 2)

    return fad.value_and_grad(loss)(w)


def counted(x):
    larger = x > x[:, :1]
    return np.sum(larger, axis=0), np.sum(larger), np.sum(larger * x, axis=0, keepdims=True), np.sum(x * x[:, 1:2])


X, Y, Q = rng.normal(size=(45, 3)), rng.normal(size=(45, 3)), rng.normal(size=(45, 4))
PROGRAMS = {
    "rotations": (rotated, X, Y),
    "their derivatives": (fad.grad(lambda w, p: np.sum(np.sin(rotated(w, p)) * p), (0, 1)), X, Y),
    "softmax": (softmax, Q),
    "its derivative": (fad.grad(lambda x: np.sum(softmax(x)[:, 1] * x[:, 0])), Q),
    "quaternions": (quaternion, Q, Q[::-1].copy()),
    "writes": (written, X, Y),
    "results that are read whole": (whole, X),
    "booleans": (chosen, X, Y),
    "integers": (integers, X),
    "elements that are the same throughout": (alike, X),
    "Jacobians": (blocks, X, Y),
    "a guard": (asked, X),
    "distances from a few points": (fad.grad(nearest, argnums=1), X, Y[:5]),
    "rows": (rows, X),
    "a batch in the middle": (in_the_middle, X, Y),
    "sums over the batch": (fitted, X, Y[0]),
    "counts": (counted, X),
    "shared arrays": (lambda x, m, v: np.sum(x[:, None, :] * m, axis=2) + v, X, Y[:3], Y[0]),
    "an ellipsis": (lambda x: x[..., 0] * x[..., ::2].sum(axis=-1), X),
    "a column of what is given": (lambda x, y: x[:, 1] * np.sum(x * y, axis=1), X, Y),
}
SMALL = ("rotations", "their derivatives", "softmax", "its derivative", "booleans", "Jacobians")


def _split(f, *xs):
    """Return a program's graph before and after, and the number of its loops."""
    graph = decompose(optimise(fad.make_graph(f)(*xs)))
    found = split_small_arrays(graph)
    return graph, found, [sum(s.kind in ("loop", "sum") for s in plan_steps(g, kind_of)) for g in (graph, found)]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [31, 32, 45])  # shorter, as long as is worth while, and no multiple of a vector
@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_of_small_arrays_computes_the_same(name, n, dtype):
    f, *xs = PROGRAMS[name]
    xs = [(x[:n] if len(x) > 3 else x).astype(dtype) for x in xs]
    fast, tolerance = compiled(f, *xs), 1e-12 if dtype is np.float64 else 2e-5
    for _ in range(2):
        for a, b in zip(fad.tree.leaves(fast(*xs)), fad.tree.leaves(f(*xs)), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", PROGRAMS)
def test_all_constants_have_their_types(name):
    f, *xs = PROGRAMS[name]
    check_types(_split(f, *xs)[1])


@pytest.mark.parametrize("name", SMALL)
def test_what_computes_with_small_arrays_is_one_loop(name):
    f, *xs = PROGRAMS[name]
    before, after = _split(f, *[np.tile(x, (200, 1)) for x in xs])[2]
    assert before > after
    assert after == 1


def test_sums_over_the_batch_are_in_the_loop_that_computes_what_they_add_up():
    steps = plan_steps(_split(fitted, np.tile(X, (200, 1)), Y[0])[1], kind_of)
    assert [s.kind for s in steps if math.prod(s.shape) > 9] == ["sum"]


def test_as_many_rows_as_are_split_are_one_loop_with_a_number_for_each():
    rows, scales = np.ones((16, 10_000)), np.ones(16)
    steps = plan_steps(_split(lambda y, c: np.min(y * c[:, None], axis=0), rows, scales)[1], kind_of)
    assert [s.kind for s in steps if s.shape] == ["loop"]


def test_a_loop_reads_no_more_numbers_than_there_are_registers_for():
    graph = optimise(fad.make_graph(np.polyval)(np.ones(60), np.ones(10_000)))
    loops = [s for s in plan_steps(graph, kind_of) if s.kind == "loop"]
    numbers = [sum(not graph.types[i].shape for i in s.operands - s.members) for s in loops]
    assert sum(numbers) >= 60
    assert max(numbers) <= 24


def test_a_result_is_stored_where_it_is_wanted():
    graph = _split(blocks, X, Y)[1]
    scattered = [eq for eq in graph.equations if eq.prim.name == "scatter"]
    assert {graph.types[i].shape for eq in scattered for i in eq.ins} == {(45,)}
    assert "calls of NumPy" not in compiled(blocks, X, Y).explain()


@pytest.mark.parametrize(
    "f",
    [
        lambda x, w: x * w[:, None],  # loads and stores of elements that lie apart cost more
        lambda x, w: np.exp(x) + 1.0,  # one long vector
        lambda x, w: np.concatenate([x, x], axis=1),
    ],
)
def test_what_is_quick_as_it_is_stays(f):
    graph, found, _ = _split(f, rng.normal(size=(45, 8)), X[:, 0])
    assert found is graph


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x[::-1] * x[:, :1],  # another order of the batch
        lambda x: x.T * x[:, 0],
        lambda x: x.reshape(-1, 9)[:, :3] * 2.0,
        lambda x: np.sum(x * x[:, :1], axis=0),
        lambda x: np.concatenate([x[1:], x[:1]]) / (x[:, :1] + 3.0),
        lambda x: np.cumsum(x * x[:, :1], axis=1),
    ],
)
def test_what_mixes_a_batch_computes_the_same(f):
    x = X[:36]
    g = fad.grad(lambda x: np.sum(np.sin(f(x))))
    for h in (f, g):
        np.testing.assert_allclose(compiled(h, x)(x), h(x), rtol=1e-12, atol=1e-12)


def test_each_result_is_an_array_of_its_own():
    def f(x):
        y = np.sum(x * x, axis=1)
        return y, y, np.stack([y, y], axis=1) * x[:, :1], y[:, None]

    found = native(f, X)
    for k, a in enumerate(found):
        assert not any(np.may_share_memory(a, b) for b in found[:k])
        a += 1.0
    for a, b in zip(found, f(X), strict=True):
        np.testing.assert_allclose(a, b + 1.0)


def test_long_programs_are_left_alone(monkeypatch):
    monkeypatch.setattr(struct_of_arrays, "_MOST_OPERATIONS", 20)
    graph, found, _ = _split(rotated, X, Y)
    assert found is graph


def test_nan_and_infinity_go_where_numpy_puts_them():
    x = X.copy()
    x[3, 1], x[5, 0], x[7, 2] = np.nan, np.inf, -np.inf
    with np.errstate(all="ignore"):
        for f in (softmax, lambda x: np.max(x, 1), lambda x: 0.0 * x[:, :1] + x, lambda x: np.min(x * x[:, :1], 1)):
            np.testing.assert_array_equal(np.isnan(compiled(f, x)(x)), np.isnan(f(x)))
