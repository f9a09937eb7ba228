"""Arrangements that undo each other cancel through the elementwise operations between them."""

import numpy as np
import pytest

import fad
from fad.compile.passes.cancel_arrangements import cancel_arrangements
from fad.compile.pipeline import optimise
from fad.core.programs.rewriter import check_types
from fad.ops.arrangement.structural import transpose_p
from fad.ops.places.indexing import getitem_p

rng = np.random.default_rng(0)
A, B, V, C = rng.normal(size=(70, 90)), rng.normal(size=(90, 70)), rng.normal(size=90), rng.normal(size=(6, 35, 30))
K = rng.normal(size=(90, 70))
K_IN_A_ROW = K.ravel().copy()
OPERANDS = (A, B, V, C)

CANCELLED = {
    "a transpose": lambda a, b, v, c: np.sin(a.T).T,
    "more than one operation": lambda a, b, v, c: (2.0 * np.sin(a.T) + a.T * a.T).T,
    "three axes": lambda a, b, v, c: np.transpose(np.exp(np.transpose(c, (2, 0, 1))) * 2.0, (1, 2, 0)),
    "a reshape between them": lambda a, b, v, c: (a.T.reshape(-1) * 3.0).reshape(90, 70).T,
    "a constant": lambda a, b, v, c: (a.T * K.copy()).T,
    "a constant in a row": lambda a, b, v, c: (a.T.reshape(-1) * K_IN_A_ROW.copy()).reshape(90, 70).T,
    "a row for all": lambda a, b, v, c: (a.T * v[:, None] + v[:70]).T,
    "a choice": lambda a, b, v, c: np.where(a.T > 0.0, a.T, 0.5).T,
    "another array": lambda a, b, v, c: (a.T * b).T,
    "a copy between them": lambda a, b, v, c: (a.T.copy() + 1.0).T,
    "a reversal": lambda a, b, v, c: np.flip(np.exp(np.flip(a))),
    "a reversal along one axis": lambda a, b, v, c: (np.exp(a[:, ::-1]) * a)[:, ::-1],
    "a rotation": lambda a, b, v, c: np.rot90(np.rot90(a) * 2.0, 3),
    "two arrangements of one operation": lambda a, b, v, c: (lambda y: (y.T, y.sum()))(a.T * 2.0),
    "a derivative": lambda a, b, v, c: fad.grad(lambda a: np.sum(np.sin(a.T) ** 2))(a),
    "a derivative of copies": lambda a, b, v, c: fad.grad(lambda a: np.sum(np.cos(a.T.copy())))(a),
    "a derivative of integers' weights": lambda a, b, v, c: fad.grad(lambda a: np.sum(np.arange(70) * a.T ** 2))(a),
}
AS_IT_IS = {
    "something costly that is a result": lambda a, b, v, c: (lambda y: (y, y.T))(np.sin(a.T)),
    "two other arrays": lambda a, b, v, c: (a.T * b * (b @ a)[:, :70]).T,
    "other axes": lambda a, b, v, c: np.transpose(np.exp(np.transpose(c, (2, 0, 1))), (2, 0, 1)),
    "another reversal": lambda a, b, v, c: np.exp(a[::-1])[:, ::-1],
    "a sum": lambda a, b, v, c: np.cumsum(a.T, axis=0).T,
    "a row before a reshape": lambda a, b, v, c: ((a.T * v[:, None]).reshape(30, 210) * v[:30, None]).T,
    "a small array": lambda a, b, v, c: np.sin(a[:5, :5].T).T,
}


def arrangements(graph):
    found = [eq for eq in graph.equations if eq.prim in (transpose_p, getitem_p)]
    return [eq for eq in found if graph.types[eq.outs[0]].size > 1000]


@pytest.mark.parametrize("name", [*CANCELLED, *AS_IT_IS])
def test_a_program_with_arrangements_computes_the_same(name):
    f = {**CANCELLED, **AS_IT_IS}[name]
    graph = fad.make_graph(f)(*OPERANDS)
    found = cancel_arrangements(graph)
    check_types(found)
    for a, b in zip(found(*OPERANDS), graph(*OPERANDS), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-14)
    run = fad.jit(f)
    for _ in range(3):
        for a, b in zip(fad.tree.leaves(run(*OPERANDS)), fad.tree.leaves(f(*OPERANDS)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-13)


@pytest.mark.parametrize("name", CANCELLED)
def test_what_undoes_an_arrangement_is_left_out(name):
    graph = fad.make_graph(CANCELLED[name])(*OPERANDS)
    kept = {"a reversal along one axis": 1, "another array": 1, "two arrangements of one operation": 1}
    assert len(arrangements(optimise(graph))) == kept.get(name, 0)


@pytest.mark.parametrize("name", AS_IT_IS)
def test_nothing_is_written_where_it_does_not_pay(name):
    graph = fad.make_graph(AS_IT_IS[name])(*OPERANDS)
    assert cancel_arrangements(graph) is graph


def test_a_constant_of_one_number_stays_one_number_in_memory():
    graph = fad.make_graph(lambda a: (a.T * np.broadcast_to(2.0, (90, 70))).T)(A)
    found = cancel_arrangements(graph)
    assert all(not any(c.strides) for i, c in found.constants.items() if np.shape(c) == A.shape)
    np.testing.assert_array_equal(found(A)[0], 2.0 * A)
