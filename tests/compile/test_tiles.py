"""Loops across memory run in tiles, and compute what they computed."""

import math

import numpy as np
import pytest
from natively import native

import fad
from fad.compile.schedule.tiles import find_tiles

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
SHAPES = [(96, 100), (100, 96), (513, 33), (16, 1024), (1024, 15), (3000, 3), (3, 3000), (2, 5000), (128, 128)]
ACROSS = {
    "a transpose": lambda a: a.T.copy(),
    "with another array": lambda a: a.T * 2.0 + np.arange(a.shape[0]),
    "rows and columns": lambda a: (a.T + 1.0, np.sqrt(np.abs(a.T)), a.T > 0.0),
    "into a part": lambda a: np.concatenate([a.T, 2.0 * a.T], axis=1),
    "the other way round": lambda a: a.T[::-1, ::-1] - 1.0,
    "three axes": lambda a: np.transpose(np.stack([a, a + 1.0]), (2, 0, 1)) * 2.0,
    "every second": lambda a: a[::2].T * 3.0,
    "single precision": lambda a: a.astype(np.float32).T * np.float32(2.0),
    "booleans": lambda a: np.logical_not((a > 0.0).T),
    "whole numbers": lambda a: (a * 10).astype(int).T + 1,
    "functions": lambda a: np.exp(a).T * a.T,
    "columns": lambda a: np.stack([a[:, 0] + a[:, 1], a[:, 0] - a[:, 1]], axis=1),
}


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("name", ACROSS)
def test_a_loop_across_memory_computes_the_same(name, shape):
    f, a = ACROSS[name], rng.normal(size=shape)
    for x, y in zip(fad.tree.leaves(native(f, a)), fad.tree.leaves(f(a)), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-6 if x.dtype == np.float32 else 1e-14, strict=True)


LOOPS = {
    "a transpose": ((100, 96), ((8, 800), (768, 8))),
    "a long one": ((513, 512), ((8, 4104), (4096, 8))),
    "short rows": ((5000, 2), ((8, 40000), (16, 8))),
    "three axes": ((3, 100, 96), ((76800, 8, 800), (76800, 768, 8))),
    "an axis in front": ((100, 3, 96), ((8, 76800, 800), (2304, 768, 8))),
}


@pytest.mark.parametrize("name", LOOPS)
def test_tiles_have_each_element_once(name):
    extents, strides = LOOPS[name]
    parts = find_tiles(extents, strides, 4)
    assert parts[0][0] != extents
    places = []
    for lengths, moves, starts in parts:
        steps = [np.add.outer(start, _offsets(lengths, s)).ravel() for start, s in zip(starts, moves, strict=True)]
        places.append(np.stack(steps, axis=1))
    found = np.concatenate(places)
    wanted = np.stack([_offsets(extents, s).ravel() for s in strides], axis=1)
    assert len(found) == math.prod(extents)
    np.testing.assert_array_equal(found[np.lexsort(found.T)], wanted[np.lexsort(wanted.T)])


def _offsets(extents, strides):
    grid = np.meshgrid(*[s * np.arange(n) for n, s in zip(extents, strides, strict=True)], indexing="ij")
    return sum(grid)


WHOLE = [((100, 96), ((768, 8), (768, 8))), ((20, 30), ((8, 160), (240, 8))), ((9600,), ((8,),))]


@pytest.mark.parametrize("loop", WHOLE)
def test_other_loops_stay_whole(loop):
    assert find_tiles(*loop, 4) == [(*loop, (0,) * len(loop[1]))]
