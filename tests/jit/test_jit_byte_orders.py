"""Arrays in the other byte order, as files hold them: jitted functions read them, in every call."""

import itertools

import numpy as np
import pytest

import fad
from fad import control
from fad.compile.targets.select import has_llvm, using

RNG = np.random.default_rng(0)
A, B, AT = RNG.normal(size=(4, 4)), RNG.normal(size=(4, 4)), np.array([2, 0, 3, 1])
OUTSIDE = RNG.normal(size=(4, 4)).astype(">f8")
ORDERS = list(itertools.product((">f8", "<f8", ">f4"), (">f8", "<f8"), (">i4", ">i8", "<i8")))


@pytest.fixture(autouse=True, params=["numpy", *(["llvm"] if has_llvm() else [])])
def lowering(request):
    with using(request.param):
        yield request.param


@pytest.mark.parametrize(
    "f",
    [
        lambda x, y, i: x[1, 2] * y[0, 0],
        lambda x, y, i: i.astype(float) * x[0, 0],
        lambda x, y, i: (x, x.T[::2] * 1.0, i[1:], i + i, i * 3),
        lambda x, y, i: x[i] @ y[:, i],
        lambda x, y, i: np.sum(np.sin(x) * y, axis=0) + np.cumsum(x, axis=1)[0],
        lambda x, y, i: np.concatenate([x, y]) * np.where(i > 1, x, y)[0],
        lambda x, y, i: x * OUTSIDE + OUTSIDE[0] @ y,
        lambda x, y, i: (x.astype(">f4") * y, y.astype(">f8").T),
        lambda x, y, i: fad.grad(lambda x: np.sum(np.exp(x)[i] * y))(x),
        lambda x, y, i: fad.vmap(np.dot)(x, y),
        lambda x, y, i: x if x[0, 0] > 5 else float(y[0, 1]) * x,
        lambda x, y, i: control.scan(lambda c, row: (c + 1.0 * np.sum(row), row * c), 0.0, x),
        lambda x, y, i: np.bincount(i) + np.argsort(x[0]),
    ],
)
def test_every_call_gives_what_the_function_gives(f):
    for first, second, index in ORDERS:
        args = A.astype(first), B.astype(second), AT.astype(index)
        fast = fad.jit(f)
        for _ in range(3):
            for got, want in zip(*map(fad.tree.leaves, (fast(*args), f(*args))), strict=True):
                np.testing.assert_allclose(got, want, rtol=1e-4 if "4" in first else 1e-10)


def chosen(x):
    y = x.copy()
    y.real = 2.0 * y.real
    return y


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (x, x[1:], x.T, x * 2, x.copy()), lambda x: np.roll(x, 1), lambda x: np.full_like(x, x[0, 0]),
        lambda x: np.zeros_like(x), np.nan_to_num, lambda x: np.insert(x, 1, 0.0),
        lambda x: np.pad(x, 1, constant_values=2), lambda x: (OUTSIDE, OUTSIDE[1:], x + OUTSIDE),
        lambda x: np.median(x[:1].real, axis=0), lambda x: np.piecewise(x, [x.real > 0], [2.0, 3.0]),
        lambda x: np.piecewise(np.squeeze(x[:1, :1]), 0, [2, lambda v: v]), chosen,
        lambda x: np.concatenate([x, x]), np.sort, np.diag, lambda x: x.astype(x.dtype), lambda x: list(x),
        lambda x: (np.einsum("ij->ji", x), np.einsum("ii->i", x), np.einsum("ij->ij", x, dtype=int)),
        lambda x: (np.diag(x[0]), np.diagflat(x[:2]), np.resize(x, 5), np.resize(x[:0], 2), np.ediff1d(x, x[0, 0])),
        lambda x: (np.linspace(x, 2.0, 3), np.linspace(x, x, 3), np.linspace(x, 2.0, 3, endpoint=False)),
        lambda x: np.linalg.matrix_power(x, 0), lambda x: np.full_like(np.squeeze(x[:1, :1]), 3),
        lambda x: np.quantile(x.real, 0.4, axis=0, method="nearest"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("dtype", [">f8", ">f4", ">i4", ">c16"])
def test_results_have_the_byte_order_that_numpy_gives_them(f, dtype):
    x = (10.0 * A).astype(dtype)
    fast = fad.jit(f)
    for _ in range(3):
        for got, want in zip(*map(fad.tree.leaves, (fast(x), f(x.copy()))), strict=True):
            assert np.asarray(got).dtype == np.asarray(want).dtype
            np.testing.assert_array_equal(got, want)


def transposed(x):
    np.einsum("ij->ji", x)[0] = 7
    return x


def diagonal(x):
    np.einsum("ii->i", x)[:] *= 2
    return x


@pytest.mark.parametrize("f", [transposed, diagonal])
@pytest.mark.parametrize("dtype", [">f8", ">c16"])
def test_views_by_einsum_are_written_through(f, dtype):
    x = A.astype(dtype)
    fast = fad.jit(f)
    for call in (fast, fast, fast, lambda x: fad.jvp(f, (x,), (x,))[0], lambda x: fad.vjp(f, x)[0]):
        np.testing.assert_array_equal(call(x.copy()), f(x.copy()))


def test_gradients_have_the_byte_order_of_the_machine():
    for f in (lambda x, y: np.sum(x[None] - x), lambda x, y: np.sum(y), lambda x, y: np.sum(x[1:] * x[:-1])):
        for g in (fad.grad(f), fad.jit(fad.grad(f))):
            for _ in range(2):
                assert g(A.astype(">f8"), B).dtype == np.dtype(float)
