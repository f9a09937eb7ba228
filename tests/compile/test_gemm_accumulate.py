"""A large product that is added to an array is one call of BLAS with it."""

import numpy as np
import pytest

import fad

pytest.importorskip("llvmlite")
from natively import compiled, native

from fad.compile.ir.lowered_ops import ADDED_PRODUCT
from fad.compile.legalize.products.gemm_accumulate import accumulate_gemm
from fad.compile.machine import blas
from fad.compile.pipeline import optimise
from fad.core.programs.rewriter import check_types

rng = np.random.default_rng(0)
X, D, W = rng.normal(size=(70, 90)), rng.normal(size=(70, 80)), rng.normal(size=(90, 80))

ADDED = {
    "a step of descent": lambda x, d, w: w - 0.01 * (x.T @ d),
    "added": lambda x, d, w: w + x.T @ d,
    "the product first": lambda x, d, w: x.T @ d + w,
    "negative": lambda x, d, w: w + -(x.T @ d),
    "by two numbers": lambda x, d, w: w - 0.5 * ((x.T @ d) * -3.0),
    "to another product": lambda x, d, w: x.T @ d + 2.0 * (x[:60].T @ d[:60]),
    "to a transposed array": lambda x, d, w: (d.T @ x) * 2.0 + w.T,
    "to a row for all": lambda x, d, w: np.broadcast_to(w[0], (90, 80)) - x.T @ d,
    "to a stack's part": lambda x, d, w: np.stack([w, w])[1] - x.T @ d,
}
APART = {
    "the product is read": lambda x, d, w: (lambda g: (w - g, np.sum(g * g)))(x.T @ d),
    "the product is a result": lambda x, d, w: (lambda g: (w - g, g))(x.T @ d),
    "the sum is read": lambda x, d, w: (lambda v: (v, np.sum(v)))(w - x.T @ d),
    "taken from the product": lambda x, d, w: x.T @ d - w,
    "added to itself": lambda x, d, w: (lambda g: g + g)(x.T @ d),
    "times an array": lambda x, d, w: w - w * (x.T @ d),
    "to what is computed": lambda x, d, w: w * 0.9 - x.T @ d,
    "small": lambda x, d, w: w[:9] - x[:, :9].T @ d,
    "a row is added": lambda x, d, w: x.T @ d + w[0],
}


def of(f, dtype):
    arrays = [a.astype(dtype) for a in (X, D, W)]
    return arrays, accumulate_gemm(optimise(fad.make_graph(f)(*arrays)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [*ADDED, *APART])
def test_a_program_with_added_products_computes_the_same(name, dtype):
    f = {**ADDED, **APART}[name]
    arrays, graph = of(f, dtype)
    tolerance = 1e-12 if dtype is np.float64 else 2e-5
    for found in (graph(*arrays), fad.tree.leaves(native(f, *arrays))):
        for a, b in zip(found, fad.tree.leaves(f(*arrays)), strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance * 20)


@pytest.mark.parametrize("name", [*ADDED, *APART])
def test_only_a_product_that_nobody_else_reads_is_joined_with_its_sum(name):
    _, graph = of({**ADDED, **APART}[name], np.float64)
    assert sum(eq.prim is ADDED_PRODUCT for eq in graph.equations) == (name in ADDED)


def test_a_factor_of_zero_keeps_what_is_not_finite():
    x = X.copy()
    x[3, 4] = np.nan
    f = lambda x, d, w: w + 0.0 * (x.T @ d)
    np.testing.assert_array_equal(np.isnan(native(f, x, D, W)), np.isnan(f(x, D, W)))


@pytest.mark.parametrize("number", [1e300, 1e30, 1e-30])
def test_a_factor_that_single_precision_does_not_hold_leaves_the_sum_as_it_is(number):
    x, d, w = (a.astype(np.float32) for a in (X, D, W))
    x[3, 4] = np.nan

    def f(x, d, w):
        return w - (x.T @ d) * number * number

    with np.errstate(over="ignore", invalid="ignore"):
        np.testing.assert_array_equal(native(f, x, d, w), f(x, d, w))


def test_a_product_of_single_precision_is_not_added_to_double_precision():
    x, d = X.astype(np.float32), D.astype(np.float32)
    f = lambda x, d, w: w - x.T @ d
    graph = accumulate_gemm(optimise(fad.make_graph(f)(x, d, W)))
    assert all(eq.prim is not ADDED_PRODUCT for eq in graph.equations)
    np.testing.assert_allclose(native(f, x, d, W), f(x, d, W), rtol=1e-5, atol=1e-4)


def test_arrays_that_blas_cannot_read_are_left_to_numpy():
    f = lambda x, d, w: w[:45] - x[:, ::2].T @ d
    np.testing.assert_allclose(compiled(f, X, D, W)(X, D, W), f(X, D, W), rtol=1e-12, atol=1e-12)


@pytest.mark.skipif(blas.choose() is None, reason="without a BLAS NumPy computes large products")
def test_a_donated_array_is_added_to_where_it_lies():
    f = lambda w, x, d: w - 0.01 * (x.T @ d)
    fast = fad.jit(f, donate_argnums=0)
    for _ in range(3):
        w = np.array(W)
        place = w.ctypes.data
        new = fast(w, X, D)
        np.testing.assert_allclose(new, f(W, X, D), rtol=1e-12, atol=1e-12)
    assert new.ctypes.data == place


def test_a_donated_array_that_is_a_factor_as_well_is_read_before_it_is_written():
    a, b = rng.normal(size=(2, 80, 80))
    f = lambda w, x: w + w.T @ x
    fast = fad.jit(f, donate_argnums=0)
    for _ in range(3):
        np.testing.assert_allclose(fast(np.array(a), b), f(a, b), rtol=1e-12, atol=1e-12)


def test_descent_in_a_loop_adds_its_products():
    def descend(w, x, y):
        return fad.fori_loop(0, 7, lambda i, w: w - 0.001 * (x.T @ (x @ w - y)), w)

    np.testing.assert_allclose(native(descend, W, X, D), descend(W, X, D), rtol=1e-11, atol=1e-11)
    check_types(accumulate_gemm(optimise(fad.make_graph(descend)(W, X, D))))
