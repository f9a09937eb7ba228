"""What is computed of a join with one large part is computed of its parts."""

import numpy as np
import pytest
from natively import compiled

import fad
from fad.compile.legalize.decompose import decompose
from fad.compile.legalize.places.split_joins import split_joins
from fad.core.programs.rewriter import check_types
from fad.ops.arrangement.structural import concatenate_p

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
N = 40_000
X, A, V = rng.normal(size=N), rng.normal(size=(200, 200)), rng.normal(size=3)
OPERANDS = (X, A, V)
join = np.concatenate

SPLIT = {
    "a rotation": lambda x, a, v: join([x[-3:], x[:-3]]) * x,
    "padding": lambda x, a, v: np.sin(join([np.zeros(5), x, np.zeros(5)])) + 1.0,
    "more than one operation": lambda x, a, v: (lambda y: np.where(y > 0, y * y, 2.0 - y))(join([x, v])),
    "two joins alike": lambda x, a, v: join([x, v]) * join([np.cos(x), v[::-1]]),
    "a slice within": lambda x, a, v: (2.0 * join([v, x, v]))[3:-3:2],
    "the part itself": lambda x, a, v: (join([v, x, v]) + 1.0)[3:-3],
    "rows": lambda x, a, v: join([a, a[:2]]) * 2.0,
    "columns": lambda x, a, v: join([a[:, -2:], a], axis=1) * 3.0 + np.arange(202),
    "a row and a column": lambda x, a, v: join([a, a[:2]]) * np.arange(200) + np.arange(202)[:, None],
    "stored after all": lambda x, a, v: np.cumsum(np.sin(join([v, x]))),
    "read twice": lambda x, a, v: (lambda y: (y, np.sum(y)))(join([x[-1:], x[:-1]]) - x),
    "whole numbers": lambda x, a, v: join([(9 * x).astype(int), np.arange(3)]) * 2,
}
AS_IT_IS = {
    "a result": lambda x, a, v: (lambda y: (y, y * 2.0))(join([x, v])),
    "equal parts": lambda x, a, v: join([x, x]) * 2.0,
    "a small join": lambda x, a, v: join([x[:100], v]) * 2.0,
    "a sum": lambda x, a, v: np.sum(join([x, v])),
    "a slice across": lambda x, a, v: join([x, v])[N - 5 :],
    "many parts": lambda x, a, v: join([v, v, v, v, x]) * 2.0,
}


def recorded(f):
    return decompose(fad.make_graph(f)(*OPERANDS))


@pytest.mark.parametrize("name", [*SPLIT, *AS_IT_IS])
def test_a_program_with_joins_computes_the_same(name):
    f = {**SPLIT, **AS_IT_IS}[name]
    graph = recorded(f)
    found = split_joins(graph)
    check_types(found)
    for a, b in zip(found(*OPERANDS), graph(*OPERANDS), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-12)
    fast = compiled(f, *OPERANDS)
    for a, b in zip(fad.tree.leaves(fast(*OPERANDS)), fad.tree.leaves(f(*OPERANDS)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12, strict=True)


def joined(graph):
    """Return the large joins that something is computed of."""
    whole = {eq.outs[0] for eq in graph.equations if eq.prim is concatenate_p and graph.types[eq.outs[0]].size >= N}
    return [eq for eq in graph.equations if eq.prim.archetype == "elementwise" and not whole.isdisjoint(eq.ins)]


@pytest.mark.parametrize("name", SPLIT)
def test_nothing_is_computed_of_the_join(name):
    graph = recorded(SPLIT[name])
    assert joined(graph)
    assert not joined(split_joins(graph))


@pytest.mark.parametrize("name", AS_IT_IS)
def test_other_joins_stay(name):
    graph = recorded(AS_IT_IS[name])
    assert split_joins(graph) is graph


def test_joins_of_different_parts_are_stored():
    f = lambda x, a, v: np.sin(join([x, v])) * np.cos(join([v, x]))
    graph = recorded(f)
    np.testing.assert_allclose(split_joins(graph)(*OPERANDS)[0], f(*OPERANDS), rtol=1e-14)
    np.testing.assert_allclose(compiled(f, *OPERANDS)(*OPERANDS), f(*OPERANDS), rtol=1e-12)
