"""Products whose weighted sum alone is wanted, and sums of products with a common factor."""

import numpy as np
import pytest
from natively import compiled

import fad
from fad.compile.pipeline import optimise

rng = np.random.default_rng(0)
A, B, C = (rng.normal(size=s) for s in ((12, 9), (9, 15), (15, 11)))
X, V, U = rng.normal(size=(12, 9)), rng.normal(size=9), rng.normal(size=12)
W = rng.normal(size=(20, 20))


def weigh(w, y):
    return np.sum(w[tuple(slice(n) for n in (1,) * (2 - y.ndim) + y.shape)].reshape(y.shape) * y)


# a loss of weights and arguments, the arguments, and how many products its gradient has with its value
PROGRAMS = {
    "one product": (lambda w, a, b: weigh(w, a @ b), (A, B), 2),
    "one product, one argument": (lambda w, a: weigh(w, a @ B), (A,), None),
    "three factors": (lambda w, a, b, c: weigh(w, a @ b @ c), (A, B, C), 5),
    "scaled and added": (lambda w, a, b: weigh(w, 2.5 * (a @ b) + a[:, :1] * np.ones(15) - np.sin(a @ b)), (A, B), 4),
    "scaled before": (lambda w, a, b: weigh(w, 0.7 * ((0.3 * a) @ b)), (A, B), 2),
    "transposed": (lambda w, a, b: weigh(w, b.T @ a.T), (A, B), 2),
    "a difference": (lambda w, a, b: weigh(w, np.cos(b[0]) * np.ones((12, 15)) - a @ b), (A, B), 2),
    "of the negative": (lambda w, a, b: weigh(w, -(a @ b)), (A, B), 2),
    "a matrix and a vector": (lambda w, a, v: weigh(w, a @ v), (A, V), 1),
    "a vector and a matrix": (lambda w, a, u: weigh(w, u @ a), (A, U), 1),
    "both": (lambda w, a, u, v: weigh(w, u @ a) + weigh(w, a @ v), (A, U, V), 2),
    "one after the other": (lambda w, a, v: weigh(w, (a @ v) @ a), (A, V), 3),
    "read twice": (lambda w, a, b: weigh(w, a @ b) + np.sum((a @ b) ** 2), (A, B), 3),
    "squared": (lambda w, a, b: weigh(w, (a @ b) ** 2), (A, B), 3),
    "weights that depend on it": (lambda w, a, b: weigh(w * np.cos(a[0, 0]), a @ b), (A, B), 3),
    "Gram": (lambda w, x: weigh(w, x @ x.T), (X,), 1),
    "Gram of columns": (lambda w, x: weigh(w, 0.1 * (x.T @ x)), (X,), 1),
    "Gram, not linear": (lambda w, x: weigh(w, np.sin(x @ x.T)), (X,), 2),
    "two with a common factor": (lambda w, a, b: weigh(w, np.sin(a @ b + X @ b)), (A, B), 3),
    "a difference with a common factor": (lambda w, a, b: weigh(w, np.sin(a @ b - a @ (b + 1.0))), (A, B), None),
    "a vector in common": (lambda w, a, v: weigh(w, np.sin(a @ v + X @ v)), (A, V), None),
}


def products(f, *args):
    fast = compiled(f, *args)
    (path,) = [path for signature in fast._signatures.values() for path in signature.paths]
    return sum(eq.prim.name == "matmul" for eq in optimise(path.graph).equations)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", PROGRAMS)
def test_values_and_gradients_are_those_without_jit(name, dtype):
    f, args, _ = PROGRAMS[name]
    args = [x.astype(dtype) for x in (W, *args)]
    within = {"rtol": 1e-3, "atol": 1e-3} if dtype is np.float32 else {"rtol": 1e-11, "atol": 1e-11}
    g = fad.value_and_grad(f, argnums=tuple(range(1, len(args))))
    for got, wanted in zip(fad.tree.leaves(compiled(g, *args)(*args)), fad.tree.leaves(g(*args)), strict=True):
        assert np.asarray(got).dtype == np.asarray(wanted).dtype
        np.testing.assert_allclose(got, wanted, **within)


@pytest.mark.parametrize("name", PROGRAMS)
def test_no_product_is_computed_beside_its_adjoint(name):
    f, args, count = PROGRAMS[name]
    if count is not None:
        assert products(fad.value_and_grad(f, argnums=tuple(range(1, len(args) + 1))), W, *args) == count


@pytest.mark.parametrize("name", PROGRAMS)
def test_second_derivatives_are_right(name):
    f, args, _ = PROGRAMS[name]
    g = fad.grad(f, argnums=1)
    product = lambda w, x, *rest: (f(w, x, *rest), fad.jvp(lambda x: g(w, x, *rest), (x,), (np.cos(x),))[1])
    for got, wanted in zip(compiled(product, W, *args)(W, *args), product(W, *args), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-10)


def test_a_product_that_is_a_result_stays():
    def f(a, b):
        y = a @ b
        return weigh(W, y), y

    g = fad.value_and_grad(f, argnums=(0, 1), has_aux=True)
    (value, y), gradient = compiled(g, A, B)(A, B)
    np.testing.assert_allclose(y, A @ B, rtol=1e-12)
    np.testing.assert_allclose(value, weigh(W, A @ B), rtol=1e-12)
    for got, wanted in zip(gradient, g(A, B)[1], strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)


@pytest.mark.parametrize("shapes", [((0, 3), (3, 4)), ((2, 0), (0, 4)), ((2, 3), (3, 0)), ((1, 1), (1, 1))])
def test_empty_products_have_their_sums(shapes):
    a, b = (rng.normal(size=s) for s in shapes)
    g = fad.value_and_grad(lambda a, b: weigh(W, a @ b + a[:, :1] if a.shape[1] else a @ b), argnums=(0, 1))
    for got, wanted in zip(fad.tree.leaves(compiled(g, a, b)(a, b)), fad.tree.leaves(g(a, b)), strict=True):
        np.testing.assert_allclose(got, wanted)


def test_complex_products_are_as_they_were():
    a, b = A + 1j * A[::-1], B - 0.5j * B
    g = fad.value_and_grad(lambda a, b: weigh(W, (a @ b).real + (a @ b).imag), argnums=(0, 1))
    for got, wanted in zip(fad.tree.leaves(compiled(g, a, b)(a, b)), fad.tree.leaves(g(a, b)), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-11)
