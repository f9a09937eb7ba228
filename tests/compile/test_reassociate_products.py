"""Products of products are computed in the order that takes less arithmetic, and give the same."""

import numpy as np
import pytest

import fad
from fad.compile.passes.reassociate_products import reassociate_products
from fad.compile.pipeline import optimise
from fad.core.programs.rewriter import check_types

rng = np.random.default_rng(0)
TALL, THIN, WIDE = rng.normal(size=(400, 30)), rng.normal(size=(400, 3)), rng.normal(size=(3, 400))
SQUARE, BATCH, SMALL, VECTOR = (rng.normal(size=s) for s in ((30, 30), (12, 30, 3), (3, 3), (30,)))
OPERANDS = (TALL, THIN, WIDE, SQUARE, BATCH, SMALL, VECTOR)

CHEAPER = {
    "a thin product after a large one": lambda t, h, w, s, b, m, v: (t @ s) @ b[0],
    "a vector last": lambda t, h, w, s, b, m, v: (t @ s) @ v,
    "a vector first": lambda t, h, w, s, b, m, v: v @ (s @ t.T),
    "a wide product before a large one": lambda t, h, w, s, b, m, v: w @ (t @ (s @ s)),
    "outer products": lambda t, h, w, s, b, m, v: (h @ w) @ t,
    "outer products on the right": lambda t, h, w, s, b, m, v: t.T @ (h @ w),
    "a batch of thin ones": lambda t, h, w, s, b, m, v: (t @ b) @ m,
    "rows of a batch": lambda t, h, w, s, b, m, v: (t @ b).reshape(-1, 3) @ m,
    "four factors": lambda t, h, w, s, b, m, v: ((h @ w) @ t) @ v,
    "a sum with what is read": lambda t, h, w, s, b, m, v: (lambda p: (t @ b + p @ b[:, :3], p))(t @ b[0]),
    "a difference with what is read": lambda t, h, w, s, b, m, v: (lambda p: (p @ b[:, :3] - t @ b, p))(t @ b[0]),
}
AS_IT_IS = {
    "the product is read": lambda t, h, w, s, b, m, v: (lambda p: (p @ v, p))(t @ s),
    "it costs as much": lambda t, h, w, s, b, m, v: (s @ s) @ s,
    "it is cheapest as it is": lambda t, h, w, s, b, m, v: t @ (s @ v),
    "rows are made of columns": lambda t, h, w, s, b, m, v: (t @ b).reshape(-1, 6) @ rng.normal(size=(6, 2)),
    "integers": lambda t, h, w, s, b, m, v: (np.arange(1200).reshape(400, 3) @ np.ones((3, 400), int)) @ t,
    "something lies between": lambda t, h, w, s, b, m, v: np.tanh(h @ w) @ t,
    "another factor": lambda t, h, w, s, b, m, v: (lambda p: (t @ b + p @ b[:, :3], p))(h @ m),
}


def multiplications(graph):
    made = [eq for eq in graph.equations if eq.prim.name == "matmul"]
    return sum(graph.types[eq.outs[0]].size * graph.types[eq.ins[0]].shape[-1] for eq in made)


@pytest.mark.parametrize("name", [*CHEAPER, *AS_IT_IS])
def test_a_program_with_products_of_products_computes_the_same(name):
    graph = fad.make_graph({**CHEAPER, **AS_IT_IS}[name])(*OPERANDS)
    wanted = graph(*OPERANDS)
    for found in (reassociate_products(graph), optimise(graph)):
        check_types(found)
        for a, b in zip(found(*OPERANDS), wanted, strict=True):
            assert (a.shape, a.dtype) == (b.shape, b.dtype)
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("name", CHEAPER)
def test_products_are_computed_in_the_cheaper_order(name):
    graph = fad.make_graph(CHEAPER[name])(*OPERANDS)
    assert multiplications(reassociate_products(graph)) < 0.96 * multiplications(graph)


@pytest.mark.parametrize("name", AS_IT_IS)
def test_products_that_would_not_be_cheaper_stay_as_they_are(name):
    graph = fad.make_graph(AS_IT_IS[name])(*OPERANDS)
    assert multiplications(reassociate_products(graph)) == multiplications(graph)
