"""Native code: selections, strides, sums, products and guards."""

import math
import tracemalloc

import numpy as np
import pytest

import fad
from fad import control
from fad.compile.targets.select import using

pytest.importorskip("llvmlite")

RNG = np.random.default_rng(0)


def compiled(f, *args):
    with using("llvm"):
        fast = fad.jit(f)
        fast(*args)
        return fast(*args)


def test_comparisons_selections_and_extremes_treat_nan_as_numpy_does():
    x = np.array([1.0, np.nan, 3.0, -np.inf, 0.0])
    y = np.array([np.nan, 2.0, 3.0, 5.0, -0.0])

    def f(x, y):
        return (
            np.maximum(x, y), np.minimum(x, y), x < y, x == y, x != y, np.isnan(x), np.where(x >= y, x, y),
            np.sign(x), np.floor(x), np.logical_not(x > y) & (y > 0),
        )  # fmt: skip

    with np.errstate(all="ignore"):
        for a, b in zip(compiled(f, x, y), f(x, y), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 4), (2, 1, 3, 4), (1, 1), (130, 3)])
def test_operands_of_any_strides_and_broadcasts_are_read_in_place(shape):
    x = RNG.normal(size=shape)
    row = RNG.normal(size=shape[-1])
    column = RNG.normal(size=(*shape[:-1], 1))

    def f(x, row, column):
        y = x * row + column
        return y, y.T * 2.0, x[..., ::-1] + x, np.sin(x.T), x[:1] - x, np.broadcast_to(row, shape) * x

    for a, b in zip(compiled(f, x, row, column), f(x, row, column), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15)
    big = RNG.normal(size=tuple(2 * n for n in shape))[tuple(slice(None, None, 2) for _ in shape)]
    for a, b in zip(compiled(f, big, row, column), f(big, row, column), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (1, 2), (0, 2), -1])
@pytest.mark.parametrize("keepdims", [False, True])
def test_sums_over_any_axes_with_and_without_a_loop_before_them(axis, keepdims):
    x = RNG.normal(size=(3, 4, 5))
    for f in (
        lambda x: np.sum(x, axis=axis, keepdims=keepdims),
        lambda x: np.sum(x.T * x.T, axis=axis, keepdims=keepdims),
    ):
        np.testing.assert_allclose(compiled(f, x), f(x), rtol=1e-13)


def test_long_sums_are_as_accurate_as_numpys():
    x = RNG.uniform(0.0, 1.0, 1_000_001)
    exact = math.fsum(x.tolist())
    assert abs(compiled(np.sum, x) - exact) <= abs(np.sum(x) - exact) + 4 * np.spacing(exact)
    single = x.astype(np.float32)
    exact = float(np.sum(single.astype(np.float64)))
    assert abs(compiled(np.sum, single) - exact) <= 4 * np.spacing(np.float32(exact))


def test_infinite_sums_stay_infinite():
    with np.errstate(all="ignore"):
        assert compiled(np.sum, np.array([1.0, np.inf, 2.0])) == np.inf
        assert np.isnan(compiled(np.sum, np.array([np.inf, -np.inf])))
        assert compiled(np.sum, np.full(5000, 1e308)) == np.inf


@pytest.mark.parametrize("m", [1, 3, 4, 9])
@pytest.mark.parametrize("n", [1, 2, 4, 17, 33])
@pytest.mark.parametrize("k", [1, 5, 32])
def test_small_matrix_products_in_every_arrangement(m, n, k):
    a, b = RNG.normal(size=(m, k)), RNG.normal(size=(k, n))

    def f(a, b):
        return a @ b, a.T.copy().T @ b, a @ b.T.copy().T, b.T @ a.T, a[0] @ b, a @ b[:, 0], a[::-1] @ b[:, ::-1]

    for got, wanted in zip(compiled(f, a, b), f(a, b), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12, atol=1e-13)


def test_pieces_are_joined_scattered_and_updated_in_place_of_a_copy():
    x = RNG.normal(size=(4, 6))

    def f(x):
        y = np.concatenate([x, x[:, :2], 2.0 * x], axis=1)
        return y, np.stack([x, -x]), fad.grad(lambda v: np.sum(v[1:] * v[:-1]) + np.sum(v[:, 0]) ** 2 + v[2, 3])(x)

    for a, b in zip(compiled(f, x), f(x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13)


def test_kernels_are_shared_by_programs_of_any_shape():
    from fad.compile.runtime import jit_engine

    def f(x):
        return np.sum(np.sin(x) * np.exp(-x) + 0.125 * x)

    for n in (10, 100_000):  # a large loop is cut, and its parts are added up
        compiled(f, np.ones(n))
    before = dict(jit_engine.statistics)
    for n in (5, 1000, 150_000):
        compiled(f, np.ones(n))
    assert jit_engine.statistics == before


def test_twice_the_steps_need_no_new_kernel():
    from fad.compile.runtime import jit_engine

    def loop(n):
        def f(x, w):
            for _ in range(n):
                x = np.tanh(x @ w) + 0.5 * x
            return np.sum(x * x)

        return fad.grad(f, argnums=(0, 1))

    x, w = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4))
    compiled(loop(10), x, w)
    before = dict(jit_engine.statistics)
    compiled(loop(40), x, w)
    assert jit_engine.statistics == before


@pytest.mark.parametrize("checkpoint", ["sqrt", "binomial"])
def test_a_hundred_thousand_steps_are_differentiated_in_less_than_a_hundredth_of_the_memory_of_the_states(checkpoint):
    x, n = np.full(100, 0.1), 100_000

    def f(x):  # steps towards the root of x
        return np.sum(control.fori_loop(0, n, lambda i, c: c + 0.001 * (x - c * c), x, checkpoint=checkpoint))

    fast = fad.jit(fad.grad(f))
    fast(x)
    fast(x)
    tracemalloc.start()
    found = fast(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    np.testing.assert_allclose(found, 0.5 / np.sqrt(x), rtol=1e-10)
    program = next(iter(fast._signatures.values())).paths[0].program
    assert peak + program.arena.nbytes < n * x.nbytes / 100


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 1), (1, 2), (0, 2)])
def test_extremes_over_any_axes_let_nan_through(axis):
    x = RNG.normal(size=(3, 4, 5))
    y = x.copy()
    y[1, 2, 3] = np.nan
    for f in (np.max, np.min):
        for v in (x, y, x.astype(np.float32)):
            np.testing.assert_array_equal(compiled(lambda v, f=f: f(v * 2.0, axis=axis), v), f(v * 2.0, axis=axis))
        assert compiled(lambda v, f=f: f(v), np.full(3000, -np.inf)) == -np.inf


@pytest.mark.parametrize("n", [4, 6000])
def test_pieces_that_a_loop_computes_are_written_where_they_belong(n):
    x, y = RNG.normal(size=(3, n)), RNG.normal(size=(3, n))

    def f(x, y):
        s = np.sin(x)
        return (
            np.concatenate([x * y, x + y, s]), np.concatenate([x * 2.0, y], axis=1), np.stack([x * y, s], axis=2), s,
            np.concatenate([np.cos(x), np.exp(y)], axis=0)[1:] * 2.0,
            fad.grad(lambda v: np.sum(v[:, 1:] * v[:, :-1] * y[:, 1:]))(x),
            fad.grad(lambda v: np.sum(np.sin(v[1:]) * v[0]))(x),
        )  # fmt: skip

    for _ in range(2):
        for a, b in zip(compiled(f, x, y), f(x, y), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("axis", [None, 0, 1, 2, (0, 2)])
def test_integers_are_added_and_truth_values_counted_exactly(axis):
    x = RNG.integers(-(2**60), 2**60, (3, 40, 5))
    for f in (
        lambda x: np.sum(x, axis=axis), lambda x: np.sum(x * 3 - 1, axis=axis), lambda x: np.sum(x > 0, axis=axis),
        lambda x: (x > 0, np.sum(x > 0, axis=axis), np.sum((x > 0) & (x < 2**59), axis=axis, keepdims=True)),
    ):  # fmt: skip
        for a, b in zip(fad.tree.leaves(compiled(f, x)), fad.tree.leaves(f(x)), strict=True):
            np.testing.assert_array_equal(a, b)
            assert a.dtype == b.dtype


DTYPES = [np.float64, np.float32, np.int64, np.int32, np.bool_]


@pytest.mark.parametrize("first", DTYPES)
@pytest.mark.parametrize("second", DTYPES)
def test_operands_of_different_types_are_computed_with_as_numpy_does(first, second):
    x = RNG.integers(-100, 100, (3, 33)).astype(first)
    y = RNG.integers(-100, 100, 33).astype(second)

    def f(x, y):
        both = [x + y, x * y, np.maximum(x, y), x < y, x == y, np.where(x > 0, x, y), x / (y * y + 1), np.sin(x)]
        if x.dtype != bool and y.dtype != bool:
            both += [x - y, -x, np.abs(x), np.minimum(x - 3, y)]
        if x.dtype.kind in "ib" and y.dtype.kind in "ib":
            both += [x & y, x | y, x ^ y, ~x, np.sum(x, axis=0)]
        return [*both, *[x.astype(t) for t in DTYPES], (x * 0.37).astype(np.int64), (x * 0.37).astype(np.int32)]

    with using("llvm"):
        fast = fad.jit(f)
        fast(x, y)
        for a, b in zip(fast(x, y), f(x, y), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-6 if a.dtype == np.float32 else 1e-14)
    (signature,) = fast._signatures.values()
    assert set(signature.paths[0].program.fallbacks) <= {"sin"}  # in half precision, of booleans


def test_integers_overflow_and_convert_as_numpys():
    big = np.array([2**31 - 1, -(2**31), 7], np.int32)
    far = np.array([1e300, -1e300, np.nan, np.inf, 2.5, -2.5])
    with np.errstate(all="ignore"):
        for f, x in (
            (lambda x: (x + x, x * x, np.abs(x), -x, x.astype(np.int64) * 2), big),
            (lambda x: (x.astype(np.int64), x.astype(np.int32), x.astype(bool)), far),
        ):
            for a, b in zip(compiled(f, x), f(x), strict=True):
                np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [100, 1000, 20_000, 400_000])
def test_sums_of_any_length_lose_no_more_than_numpys(n, dtype):
    with using("llvm"):
        fast = fad.jit(np.sum)
        ours, numpys = 0.0, 0.0
        for k in range(20):
            x = np.random.default_rng(k).lognormal(0.0, 2.0, n).astype(dtype)
            x[::3] *= -1
            exact = math.fsum(x.tolist()) if k < 3 else float(np.sum(x.astype(np.longdouble)))
            unit = np.finfo(dtype).eps * float(np.sum(np.abs(x.astype(float))))
            ours = max(ours, abs(float(fast(x)) - exact) / unit)
            numpys = max(numpys, abs(float(np.sum(x)) - exact) / unit)
    assert ours <= max(1.5 * numpys, 1.0)  # in units of rounding the sum of magnitudes once
