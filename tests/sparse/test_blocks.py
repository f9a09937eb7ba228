"""Sets that lie in blocks are the same sets as sparse matrices, operation by operation and in whole derivatives."""

from unittest import mock

import numpy as np
import pytest

import fad
from fad.sparse import sets as of
from fad.sparse.blocks import Blocks, number_blocks
from fad.sparse.dependence import dependences

SHAPES = [(7, 2), (3, 7), (7,), (2, 5, 2), (5,)]


def draw_sets(rng):
    """Return the sets of arrays of inputs, gathered and united a few times: as blocks where that is possible."""
    sizes = [int(np.prod(s)) for s in SHAPES]
    starts = np.cumsum([4, *sizes])
    arrays = number_blocks(starts[:-1].tolist(), SHAPES, int(starts[-1]), np.int32)
    return [s.gather(rng.integers(-1, s.block.size, 7)) for s in arrays]


def assert_same(sets, wanted):
    assert np.array_equal(of.plain(sets).toarray(), wanted.toarray())


@pytest.mark.parametrize("seed", range(20))
def test_operations_on_blocks_give_the_sets_that_matrices_give(seed):
    rng = np.random.default_rng(seed)
    sets = draw_sets(rng)
    for _ in range(12):
        a, b = rng.choice(len(sets), 2)
        a, b = sets[a], sets[b]
        places = rng.integers(-1, 7, 7)
        rows, columns = rng.permutation(7)[:5], rng.integers(0, 7, 5)
        repeated = rng.integers(0, 7, 5)
        found = of.union([a, b])
        assert_same(found, of.union([of.plain(a), of.plain(b)]))
        assert_same(of.gather(a, places), of.gather(of.plain(a), places))
        assert_same(of.through(rows, columns, 7, a), of.through(rows, columns, 7, of.plain(a)))
        assert_same(of.through(repeated, columns, 7, a), of.through(repeated, columns, 7, of.plain(a)))
        wide = of.gather(a, np.arange(14) // 2)
        assert_same(of.over(wide, (7, 2), (1,)), of.over(of.plain(wide), (7, 2), (1,)))
        assert_same(of.over(wide, (2, 7), (0,)), of.over(of.plain(wide), (2, 7), (0,)))
        assert_same(of.everything(a, 3), of.everything(of.plain(a), 3))
        joined = of.stack([of.plain(a), of.nothing(2, of.plain(a).shape[1]), of.plain(b)])
        if type(a) is type(b) is type(wide) is Blocks:
            assert_same(a.move(lambda *xs: np.concatenate(xs), [a, None, b], [(7,), (2,), (7,)]), joined)
            turned = np.arange(14).reshape(7, 2).T[::-1].ravel()
            assert_same(wide.move(lambda x: x.T[::-1], [wide], [(7, 2)]), of.plain(wide)[turned])
        sets.append(of.gather(found, places))


def test_sets_of_the_same_inputs_of_each_block_are_expanded_as_others_are():
    few, other = number_blocks([0, 14], [(7, 2), (5, 3)], 29, np.int32)
    both = of.union([few, of.gather(few, np.arange(14) ^ 1)])
    wanted = np.repeat(np.arange(14).reshape(7, 2), 2, axis=0)
    assert both._expand_alike(np.int32).indices.tolist() == wanted.ravel().tolist()
    assert other._expand_alike(np.int32) is None
    for sets in (both, few, other):
        with mock.patch.object(Blocks, "_expand_alike", return_value=None):
            slow = of.plain(sets)
        assert_same(sets, slow)


def test_side_by_side_work_stays_in_blocks_and_what_mixes_them_does_not():
    inside = number_blocks([0, 12], [(6, 2), (6,)], 18, np.int32)
    first = of.gather(inside[0], 2 * np.arange(6))
    assert type(of.union([first, inside[1]])) is Blocks
    assert type(of.over(inside[0], (6, 2), (1,))) is Blocks
    assert type(of.union([first, of.gather(inside[1], np.arange(6)[::-1])])) is not Blocks
    assert type(of.over(inside[0], (6, 2), (0,))) is not Blocks


def test_a_block_of_more_inputs_than_bits_is_kept_as_a_matrix():
    few, many = number_blocks([0, 200], [(100, 2), (100, 63)], 6500, np.int32)
    assert type(few) is Blocks
    assert many is None


FUNCTIONS = {
    "side by side": (lambda a, b: np.sin(a[:, 0]) * b + a[:, 1], (9, 2), (9,)),
    "the axis of observations last": (lambda a, b: a[0] * a[2] - b, (3, 9), (9,)),
    "sums in blocks": (lambda a, b: np.sum(a * b[:, None], axis=1), (9, 3), (9,)),
    "sums of all": (lambda a, b: np.sum(a) * b, (9, 3), (9,)),
    "neighbours": (lambda a, b: a[1:, 0] * a[:-1, 1] + b[1:], (9, 3), (9,)),
    "two lengths": (lambda a, b: np.concatenate([a[:, 0], b**2]), (9, 3), (4,)),
    "products of small matrices": (lambda a, b: np.einsum("nij,nj->ni", a, b), (9, 2, 2), (9, 2)),
    "one block": (lambda a, b: a * b, (1, 2), (1,)),
    "none at all": (lambda a, b: a[:, 0] + b, (0, 2), (0,)),
    "scattered": (lambda a, b: np.bincount(np.arange(9) // 2, a[:, 0] * b, 5), (9, 2), (9,)),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_dependences_are_the_same_whether_inputs_lie_in_blocks_or_not(name):
    fun, *shapes = FUNCTIONS[name]
    rng = np.random.default_rng(0)
    args = tuple(rng.normal(size=s) for s in shapes)

    def together(args):
        return fun(*args)

    wanted = dependences(together, (args,)).toarray()
    for gathered in (1, 2):
        assert np.array_equal(dependences(together, (args,), gathered).toarray(), wanted)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_derivatives_of_gathered_arrays_are_the_dense_ones(name):
    fun, *shapes = FUNCTIONS[name]
    rng = np.random.default_rng(1)
    x = rng.normal(size=6)
    places = [rng.integers(0, 6, s) for s in shapes]

    def f(x):
        return fun(x[places[0]], x[places[1]])

    def energy(x):
        return np.sum(np.cos(f(x)))

    if f(x).size:
        dense = fad.jacobian(f)(x).reshape(-1, x.size)
        assert np.allclose(fad.sparse.jacobian(f)(x).toarray(), dense, rtol=1e-12)
    assert np.allclose(fad.sparse.hessian(energy)(x).toarray(), fad.hessian(energy)(x), rtol=1e-10, atol=1e-12)
