"""What is computed of repeated elements is computed of each once."""

import numpy as np
import pytest

import fad
from fad.compile.passes.compute_before_repeating import compute_before_repeating
from fad.compile.pipeline import optimise
from fad.core.programs.rewriter import check_types

rng = np.random.default_rng(0)
X, A, S = rng.normal(size=2000), rng.normal(size=(50, 60)), 0.75
OPERANDS = (X, A, S)

ONCE = {
    "a function": lambda x, a, s: np.sin(np.repeat(x, 4)),
    "rows": lambda x, a, s: np.exp(np.repeat(a, 3, axis=0)) * 2.0,
    "columns": lambda x, a, s: np.exp(np.repeat(a, 3, axis=1)) * s,
    "tiles": lambda x, a, s: np.tile(x, 4) ** 2 + 1.0,
    "a table of copies": lambda x, a, s: np.cos(np.broadcast_to(x, (5, 2000))),
    "a number": lambda x, a, s: np.cos(np.broadcast_to(a[0, 0], (90, 90))),
    "two repeated arrays": lambda x, a, s: np.repeat(x, 4) * np.repeat(np.cos(x), 4),
    "comparisons": lambda x, a, s: np.where(np.repeat(x, 4) > 0.0, np.repeat(x, 4), 0.5),
    "single precision": lambda x, a, s: np.sin(np.repeat(x.astype(np.float32), 4)) * 2.0,
    "complex numbers": lambda x, a, s: np.exp(np.repeat(1j * x, 4)),
    "integers": lambda x, a, s: np.repeat(x.astype(int), 4) * 3 + 1,
    "a sum over the copies": lambda x, a, s: np.broadcast_to(x[:, None], (2000, 5)).sum(1),
    "a sum over all": lambda x, a, s: np.broadcast_to(x[:, None], (2000, 5)).sum(),
    "a sum over other axes, too": lambda x, a, s: np.broadcast_to(a[:, None], (50, 4, 60)).sum((0, 1), keepdims=True),
    "the gradient": lambda x, a, s: fad.grad(lambda x: np.sum(np.sin(np.repeat(x, 4)) ** 2))(x),
    "the gradient of tiles": lambda x, a, s: fad.grad(lambda x: np.sum(np.tile(x, (3, 1)) ** 3))(x),
    "the gradient of rows": lambda x, a, s: fad.grad(lambda a: np.sum(np.exp(np.repeat(a, 3, axis=0))))(a),
}
AS_IT_IS = {
    "with another array": lambda x, a, s: np.repeat(x, 2) * np.concatenate([x, x]),
    "copies in another order": lambda x, a, s: np.repeat(x, 4) * np.tile(x, 4),
    "a small array": lambda x, a, s: np.repeat(x[:10], 4) * 2.0,
    "one axis of one": lambda x, a, s: np.sin(np.broadcast_to(x, (1, 2000))).sum() + np.sin(x.reshape(1, 2000)),
    "the number of true ones": lambda x, a, s: np.broadcast_to(x[:, None] > 0, (2000, 5)).sum(1),
    "a sum over the other axis": lambda x, a, s: np.broadcast_to(x[:, None], (2000, 5)).sum(0),
    "complex sums": lambda x, a, s: np.broadcast_to((1j * x)[:, None], (2000, 5)).sum(1),
}


@pytest.mark.parametrize("name", [*ONCE, *AS_IT_IS])
def test_a_program_with_copies_computes_the_same(name):
    f = {**ONCE, **AS_IT_IS}[name]
    graph = fad.make_graph(f)(*OPERANDS)
    found = compute_before_repeating(graph)
    check_types(found)
    tolerance = 1e-5 if name == "single precision" else 1e-13
    for a, b in zip(found(*OPERANDS), graph(*OPERANDS), strict=True):
        assert (np.shape(a), a.dtype) == (np.shape(b), b.dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=1e-13)
    run, expected = fad.jit(f), f(*OPERANDS)
    for _ in range(3):
        y = run(*OPERANDS)
        assert (np.shape(y), y.dtype) == (np.shape(expected), expected.dtype)
        np.testing.assert_allclose(y, expected, rtol=tolerance, atol=1e-13)


@pytest.mark.parametrize("name", ONCE)
def test_no_function_or_sum_is_computed_of_copies(name):
    graph = optimise(fad.make_graph(ONCE[name])(*OPERANDS))
    computed = [eq for eq in graph.equations if eq.prim.archetype in ("elementwise", "reduction")]
    assert all(graph.types[i].size <= A.size for eq in computed for i in (*eq.ins, *eq.outs))


@pytest.mark.parametrize("name", AS_IT_IS)
def test_what_is_not_the_same_for_all_copies_stays(name):
    graph = fad.make_graph(AS_IT_IS[name])(*OPERANDS)
    assert compute_before_repeating(graph) is graph


def test_a_sum_of_copies_of_infinity_and_nan_is_what_it_was():
    x = np.array([np.inf, -np.inf, np.nan, -0.0] * 500)
    run = fad.jit(lambda x: np.broadcast_to(x[:, None], (2000, 5)).sum(1))
    for _ in range(3):
        np.testing.assert_array_equal(run(x), 5 * x)
