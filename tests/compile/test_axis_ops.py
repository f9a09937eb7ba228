"""Accumulations, products, positions of extremes, recurrences and searches run natively and give what NumPy gives."""

import numpy as np
import pytest
from natively import compiled, native

import fad
from fad import control

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
DTYPES = [np.float64, np.float32, np.int64, np.int32]


def drawn(dtype, shape):
    x = rng.integers(-9, 9, shape) if np.dtype(dtype).kind == "i" else rng.normal(size=shape)
    return x.astype(dtype)


ALONG = {
    "cumsum": np.cumsum,
    "cumprod": lambda x, axis: np.cumprod(x * 2 % 5 * 0.5 if x.dtype.kind == "f" else x, axis=axis),
    "running maximum": np.maximum.accumulate,
    "running minimum": np.minimum.accumulate,
    "argmax": np.argmax,
    "argmin": np.argmin,
    "prod": lambda x, axis: np.prod(x % 3 - 1, axis=axis),
    "max": np.max,
    "min": np.min,
    "position kept": lambda x, axis: np.argmax(x, axis=axis, keepdims=True),
    "of a view": lambda x, axis: np.cumsum(x[..., ::-1] * 2, axis=axis),
}


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", ALONG)
def test_an_operation_along_any_axis_is_numpys(name, dtype):
    f = ALONG[name]
    for shape in ((40,), (5, 7), (3, 1, 4), (2, 33, 3), (1, 1)):
        x = drawn(dtype, shape)
        for axis in (*range(len(shape)), *([] if name.startswith("running") else [None])):
            want = f(x, axis=axis)
            y = native(lambda x, axis=axis: f(x, axis=axis), x)
            assert np.asarray(y).dtype == want.dtype
            np.testing.assert_allclose(y, want, rtol=1e-5 if dtype is np.float32 else 1e-13, atol=1e-6)


@pytest.mark.parametrize("n", [1, 2, 15, 16, 17, 31, 32, 33, 1000])
@pytest.mark.parametrize("dtype", DTYPES)
def test_the_first_of_equal_extremes_and_the_first_nan_is_found(n, dtype):
    tied = rng.integers(0, 3, n).astype(dtype)
    samples = [tied, np.arange(n).astype(dtype), np.arange(n)[::-1].astype(dtype), np.zeros(n, dtype)]
    if np.dtype(dtype).kind == "f":
        for at in ({0}, {n - 1}, {n // 2, n - 1}):
            x = tied.copy()
            x[list(at)] = np.nan
            samples.append(x)
        samples += [np.full(n, -np.inf, dtype), np.where(np.arange(n) == n - 1, np.inf, -np.inf).astype(dtype)]
    for f in (np.argmax, np.argmin):
        fast = fad.jit(f)
        for x in samples:
            assert fast(x) == f(x)
        columns = np.stack([np.stack(samples), np.stack(samples)[::-1]])
        np.testing.assert_array_equal(native(lambda x, f=f: f(x, axis=1), columns), f(columns, axis=1))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("n", [16, 17, 40, 1100, 2500])
def test_extremes_of_rows_know_nan_infinities_and_the_sign_of_zero(n, dtype):
    odd = [[0.0, -0.0], [-0.0], [0.0], [np.nan], [np.inf, -np.inf], [-np.inf], [-0.0, np.nan], [1.0, -0.0], [-1.0, 0.0]]
    rows = [np.concatenate([np.full(n, fill), x])[-n:] for x in odd for fill in (x[0], -1.0, 1.0, -0.0)]
    x = np.concatenate([rows, np.array(rows)[:, ::-1]]).astype(dtype)
    for f, first in ((np.max, lambda r: np.signbit(r).all()), (np.min, lambda r: np.signbit(r).any())):
        y, want = native(lambda x, f=f: f(x * 1.0, axis=1), x), f(x, axis=1)
        np.testing.assert_array_equal(y, want)
        zero = want == 0
        np.testing.assert_array_equal(np.signbit(y[zero]), [first(r) for r in x[zero]])  # 0.0 is larger than -0.0


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("side", ["left", "right"])
def test_a_search_finds_the_place_that_numpy_finds(side, dtype):
    f = lambda a, v: np.searchsorted(a, v, side)
    for n in (1, 2, 7, 16, 100):
        a = np.sort(rng.integers(-20, 20, n).astype(dtype))
        v = np.arange(-22, 22).reshape(4, 11).astype(dtype)
        np.testing.assert_array_equal(native(f, a, v), f(a, v))
        assert native(f, a, v[1, 2]) == f(a, v[1, 2])
    if np.dtype(dtype).kind == "f":
        a = np.array([-np.inf, -1.0, 0.0, 0.0, 2.0, np.inf, np.nan, np.nan], dtype)
        v = np.array([np.nan, np.inf, -np.inf, 0.0, -0.0, 5.0], dtype)
        np.testing.assert_array_equal(native(f, a, v), f(a, v))
        many = np.concatenate([np.tile(v[1:], 7), v, np.tile(v[::-1], 9)])  # with and without NaN, side by side
        np.testing.assert_array_equal(native(f, a, many), f(a, many))


def test_tables_are_read_between_their_rows_natively():
    at, values = np.linspace(0.0, 4.0, 9), np.sin(np.linspace(0.0, 4.0, 9))
    f = lambda x: np.interp(x, at, values)
    x = np.linspace(-1.0, 5.0, 50)
    np.testing.assert_allclose(native(f, x), f(x), rtol=1e-14)
    derivative = fad.grad(lambda x: np.sum(f(x) ** 2))
    np.testing.assert_allclose(native(derivative, x), derivative(x), rtol=1e-12)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.cumsum(x, 0) ** 2),
        lambda x: np.sum(np.cumprod(x, 1) ** 2),
        lambda x: np.sum(np.maximum.accumulate(x, 1) ** 2),
        lambda x: np.sum(np.prod(x, axis=0) ** 2),
        lambda x: x.reshape(-1)[np.argmax(x)] ** 2,
    ],
)
def test_derivatives_of_accumulations_run_natively(f):
    x = rng.normal(size=(6, 5))
    np.testing.assert_allclose(native(fad.grad(f), x), fad.grad(f)(x), rtol=1e-12, atol=1e-13)
    np.testing.assert_allclose(native(fad.vmap(fad.grad(f)), x[None]), fad.grad(f)(x)[None], rtol=1e-12, atol=1e-13)


def test_a_loop_that_looks_for_extremes_does_not_return_to_python():
    costs = rng.normal(size=(5, 5))

    def viterbi(scores):
        def step(best, s):
            total = best[:, None] + costs
            return np.max(total, axis=0) + s, np.argmax(total, axis=0)

        return control.scan(step, scores[0], scores[1:])

    scores = rng.normal(size=(20, 5))
    best, back = native(viterbi, scores)
    want, steps = scores[0], []
    for s in scores[1:]:
        steps.append(np.argmax(want[:, None] + costs, axis=0))
        want = np.max(want[:, None] + costs, axis=0) + s
    np.testing.assert_allclose(best, want, rtol=1e-13)
    np.testing.assert_array_equal(back, steps)


def test_a_loop_of_few_numbers_may_add_up_nothing():
    x = np.arange(6.0).reshape(2, 3)

    def f(h, x):
        def step(h, x):
            return h * 0.5 + np.sum(x[:0]) + x[:0] @ x[:0] + np.sum(x[:1]), h

        return fad.scan(step, h, x)

    fast = compiled(f, np.float64(1.0), x)
    for y, want in zip(fast(np.float64(1.0), x), f(np.float64(1.0), x), strict=True):
        np.testing.assert_array_equal(y, want)
