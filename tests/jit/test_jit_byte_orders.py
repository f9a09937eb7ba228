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
