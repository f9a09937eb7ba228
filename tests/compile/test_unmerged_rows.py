"""Products of rows merged from axes in another order copy nothing; short rows are computed several at a time."""

import numpy as np
import pytest
from natively import compiled, native

import fad
from fad.compile.legalize.products.unmerged_rows import unmerge_rows
from fad.compile.pipeline import optimise

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
X, W = rng.normal(size=(50, 6, 3)), rng.normal(size=(3, 5))


def merged(x, w):
    y = x.transpose(1, 0, 2)
    return (y.reshape(-1, 3) @ w).reshape(6, 50, 5)


def other_columns(x, w):
    return x.transpose(2, 1, 0).reshape(-1, 50) @ np.tile(w, (20, 1))[:50]


def in_their_order(x, w):
    return (x.reshape(-1, 3) @ w).reshape(50, 6, 5)


def read_again(x, w):
    rows = x.transpose(1, 0, 2).reshape(-1, 3)
    return rows @ w, rows * 2.0


def shape_of_product(f):
    graph = unmerge_rows(optimise(fad.make_graph(f)(X, W)))
    return [graph.types[eq.outs[0]].shape for eq in graph.equations if eq.prim.name == "matmul"]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("f", [merged, other_columns, in_their_order, read_again])
def test_products_of_merged_rows_are_the_same(f, dtype):
    x, w = X.astype(dtype), W.astype(dtype)
    for a, b in zip(fad.tree.leaves(native(f, x, w)), fad.tree.leaves(f(x, w)), strict=True):
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-12 if dtype is np.float64 else 1e-4, atol=1e-5)


def test_only_a_transposed_array_is_multiplied_as_it_lies():
    assert shape_of_product(merged) == [(6, 50, 5)]
    assert shape_of_product(read_again) == [(6, 50, 5)]
    assert shape_of_product(in_their_order) == [(300, 5)]
    assert shape_of_product(other_columns) == [(18, 5)]


def beside_a_row(x, v):
    return np.sin(x) * v + v


def beside_rows_of_a_batch(x, v):
    y = x.reshape(4, -1, x.shape[1])
    return y + y[:, :1] * 2.0 - v


def with_a_constant(x, v):
    return (x + np.arange(x.shape[1])) * 0.5


def with_columns(x, v):
    return x * x[:, :1] + v


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("shape", [(64, 3), (400, 2), (36, 15), (1004, 5), (4 * 67, 7), (8, 3), (1200, 1), (96, 16)])
@pytest.mark.parametrize("f", [beside_a_row, beside_rows_of_a_batch, with_a_constant, with_columns])
def test_short_rows_beside_a_row_are_the_same(f, shape, dtype):
    x = rng.normal(size=shape).astype(dtype) if dtype is not np.int64 else rng.integers(-9, 9, shape)
    v = x[3] * 2
    fast = compiled(f, x, v)
    for y in (x, x[::-1].copy()):  # what is written out is written out in each call
        a, b = fast(y, y[0]), f(y, y[0])
        assert (a.dtype, a.shape) == (b.dtype, b.shape)
        np.testing.assert_allclose(a, b, rtol=1e-12 if a.dtype == np.float64 else 1e-5, atol=1e-6)
