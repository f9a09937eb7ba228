"""Products with a matrix of so few columns that they fill no vector are computed otherwise, and are the same."""

import numpy as np
import pytest
from each import each
from natively import compiled

import fad

pytest.importorskip("llvmlite")
RNG = np.random.default_rng(0)
LAYOUTS = {
    "by rows": lambda x, y: x @ y, "right by columns": lambda x, y: x @ y.T, "left by columns": lambda x, y: x.T @ y,
    "both by columns": lambda x, y: x.T @ y.T,
}  # fmt: skip


def kernels_of(fast):
    (signature,) = fast._signatures.values()
    return set(signature.paths[0].program.keep.table.kernels)


@each("layout", LAYOUTS)
@each("dtype", [np.float64, np.float32])
@each("shape", [(32, 64, 2), (100, 65, 3), (257, 130, 4), (40, 200, 7), (700, 300, 5)])
def test_a_product_with_a_narrow_matrix_is_numpys(layout, dtype, shape):
    m, k, n = shape
    x, y = RNG.normal(size=(m, k)).astype(dtype), RNG.normal(size=(k, n)).astype(dtype)
    x = x.T.copy() if layout in ("left by columns", "both by columns") else x
    y = y.T.copy() if layout in ("right by columns", "both by columns") else y
    product = LAYOUTS[layout]
    found = compiled(product, x, y)(x, y)
    assert found.dtype == dtype
    np.testing.assert_allclose(found, product(x, y), rtol=0, atol=1e-12 if dtype is np.float64 else 1e-4)


def test_a_layer_with_two_outputs_and_its_gradients_fill_their_vectors():
    x, w, y = RNG.normal(size=(300, 200)), RNG.normal(size=(200, 2)), RNG.normal(size=(300, 2))
    gradient = fad.grad(lambda x, w: np.sum((np.tanh(x) @ w - y) ** 2), (0, 1))
    fast = compiled(gradient, x, w)
    for found, want in zip(fast(x, w), gradient(x, w), strict=True):
        np.testing.assert_allclose(found, want, rtol=1e-10, atol=1e-10)
    assert {name for name in kernels_of(fast) if name.startswith("mm_dots")}
    assert not {name for name in kernels_of(fast) if name.startswith("mm_gather")}


def test_in_a_loop_it_is_the_same():
    a, x = RNG.normal(size=(64, 64)) / 16.0, RNG.normal(size=(64, 3))

    def steps(x):
        for _ in range(60):
            x = np.tanh(a @ x)
        return np.sum(x)

    fast = compiled(fad.grad(steps), x)
    np.testing.assert_allclose(fast(x), fad.grad(steps)(x), rtol=1e-9, atol=1e-12)
