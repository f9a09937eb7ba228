"""A sum of a product's rows or columns is a product with a factor's sum."""

import numpy as np
import pytest

import fad
from fad.compile.passes.dce import drop_dead
from fad.compile.passes.reduce_before_matmul import reduce_before_matmul
from fad.compile.pipeline import optimise
from fad.core.programs.rewriter import check_types

rng = np.random.default_rng(0)
A, B, C = rng.normal(size=(4, 30, 6)), rng.normal(size=(4, 6, 5)), rng.normal(size=(4, 30, 5))
W, ROW, COLUMN = rng.normal(size=(6, 5)), rng.normal(size=(4, 1, 5)), rng.normal(size=(4, 30, 1))

CHEAPER = {
    "rows": lambda a, b, c, w, r, k: np.sum(a @ b, 1),
    "rows, kept": lambda a, b, c, w, r, k: np.sum(a @ b, 1, keepdims=True),
    "columns": lambda a, b, c, w, r, k: np.sum(a @ b, 2),
    "a batch of one factor": lambda a, b, c, w, r, k: np.sum(a @ w, (0, 1)),
    "some of a batch": lambda a, b, c, w, r, k: np.sum(a @ w, 0),
    "a broadcast batch": lambda a, b, c, w, r, k: np.sum(a[0] @ b, 1),
    "a column of a broadcast batch": lambda a, b, c, w, r, k: np.sum(a @ w, 2),
    "with what is added": lambda a, b, c, w, r, k: np.sum(c - (a @ b), 1),
    "with a factor": lambda a, b, c, w, r, k: np.sum(-(r * (a @ b) + c / r) * 0.5, 1),
    "with a factor along columns": lambda a, b, c, w, r, k: np.sum((a @ b) * k, 2),
    "two products": lambda a, b, c, w, r, k: np.sum(a @ b - 2.0 * (a @ w), 1),
}
AS_IT_IS = {
    "the product is read": lambda a, b, c, w, r, k: (lambda y: (np.sum(y, 1), y))(a @ b),
    "not linear": lambda a, b, c, w, r, k: np.sum(np.tanh(a @ b), 1),
    "squared": lambda a, b, c, w, r, k: np.sum((a @ b) ** 2, 1),
    "a factor along what is added": lambda a, b, c, w, r, k: np.sum((a @ b) * k, 1),
    "something broadcast is added": lambda a, b, c, w, r, k: np.sum(a @ b + r, 1),
    "divided by it": lambda a, b, c, w, r, k: np.sum(r / (a @ b), 1),
    "the batch": lambda a, b, c, w, r, k: np.sum(a @ b, 0),
    "rows and columns": lambda a, b, c, w, r, k: np.sum(a @ b, (1, 2)),
    "a product with a vector": lambda a, b, c, w, r, k: np.sum(a @ w[:, 0], 1),
}
OPERANDS = (A, B, C, W, ROW, COLUMN)


def largest_product(graph):
    return max(graph.types[eq.outs[0]].size for eq in graph.equations if eq.prim.name == "matmul")


@pytest.mark.parametrize("name", [*CHEAPER, *AS_IT_IS])
def test_a_program_with_sums_of_products_computes_the_same(name):
    graph = fad.make_graph({**CHEAPER, **AS_IT_IS}[name])(*OPERANDS)
    found = reduce_before_matmul(graph)
    check_types(found)
    for a, b in zip(found(*OPERANDS), graph(*OPERANDS), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)
    for a, b in zip(optimise(graph)(*OPERANDS), graph(*OPERANDS), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("name", CHEAPER)
def test_a_factor_is_added_up_instead_of_the_product(name):
    graph = fad.make_graph(CHEAPER[name])(*OPERANDS)
    assert largest_product(drop_dead(reduce_before_matmul(graph))) < largest_product(graph)


@pytest.mark.parametrize("name", AS_IT_IS)
def test_what_is_not_linear_in_a_product_stays(name):
    graph = fad.make_graph(AS_IT_IS[name])(*OPERANDS)
    names = [eq.prim.name for eq in graph.equations]
    assert [eq.prim.name for eq in drop_dead(reduce_before_matmul(graph)).equations] == names


def test_whole_numbers_stay():
    a = np.arange(6).reshape(2, 3)
    graph = fad.make_graph(lambda a: np.sum(a @ a.T, 0))(a)
    assert [eq.prim.name for eq in reduce_before_matmul(graph).equations] == [eq.prim.name for eq in graph.equations]


def test_the_gradient_of_means_spares_a_product():
    def f(m, w):
        return np.sum(np.tanh((A[0] - m) @ w))

    graph = fad.make_graph(fad.grad(f, (0, 1)))(A[0, :1], W)
    found = optimise(graph)
    assert largest_product(found) == 30 * 5  # that of the forward pass
    for a, b in zip(found(A[0, :1], W), graph(A[0, :1], W), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
