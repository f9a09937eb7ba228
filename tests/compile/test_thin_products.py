"""One matrix times many thin ones is one product with all of their columns."""

import numpy as np
import pytest

import fad
from fad.compile.legalize.products.thin_products import join_thin_products
from fad.core.programs.rewriter import check_types

rng = np.random.default_rng(0)
A, B, C = rng.normal(size=(40, 50)), rng.normal(size=(9, 50, 3)), rng.normal(size=(2, 4, 50, 2))

JOINED = {
    "three columns": lambda a, b, c: a @ b,
    "two axes of them": lambda a, b, c: a @ c,
    "with what follows": lambda a, b, c: np.sum(np.tanh(a @ b) * 2.0, axis=0),
    "and another product": lambda a, b, c: (a @ b) @ b[0, :3],
    "transposed": lambda a, b, c: a @ np.swapaxes(np.swapaxes(b, 1, 2) + 1.0, 1, 2),
    "single precision": lambda a, b, c: a.astype("f4") @ b.astype("f4"),
    "a Jacobian": lambda a, b, c: fad.jacfwd(lambda x: np.sin(a @ (b[0] * x[:, None] + x[0])))(b[0, :, 1]),
}
AS_IT_IS = {
    "one column": lambda a, b, c: a @ b[..., :1],
    "many columns": lambda a, b, c: a @ np.concatenate([b, b], axis=2),
    "few of them": lambda a, b, c: a @ b[:2],
    "few rows": lambda a, b, c: a[:8] @ b,
    "short columns": lambda a, b, c: a[:, :20] @ b[:, :20],
    "a matrix for each": lambda a, b, c: (a + b[:, :40, :1]) @ b,
    "integers": lambda a, b, c: a.astype(int) @ b.astype(int),
    "complex numbers": lambda a, b, c: a @ (1j * b),
}
OPERANDS = A, B, C


def shapes(graph):
    return [graph.types[eq.outs[0]].shape for eq in graph.equations if eq.prim.name == "matmul"]


@pytest.mark.parametrize("name", [*JOINED, *AS_IT_IS])
def test_a_program_with_thin_products_computes_the_same(name):
    graph = fad.make_graph({**JOINED, **AS_IT_IS}[name])(*OPERANDS)
    found = join_thin_products(graph)
    check_types(found)
    assert (shapes(found) != shapes(graph)) == (name in JOINED)
    tolerance = 1e-5 if name == "single precision" else 1e-12
    for a, b in zip(np.atleast_1d(found(*OPERANDS)), np.atleast_1d(graph(*OPERANDS)), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [*JOINED, *AS_IT_IS])
def test_native_programs_with_thin_products_have_numpys_values(name):
    function = {**JOINED, **AS_IT_IS}[name]
    jitted = fad.jit(function)
    for _ in range(3):
        found = jitted(*OPERANDS)
    tolerance = 1e-5 if name == "single precision" else 1e-12
    np.testing.assert_allclose(found, function(*OPERANDS), rtol=tolerance, atol=tolerance)
