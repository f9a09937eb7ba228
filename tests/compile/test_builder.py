"""The builder of passes: what it infers of a result is what the operation gives."""

import numpy as np
import pytest

from fad.compile.ir.builder import Builder
from fad.core.programs.graph import Equation, Graph, type_of

RNG = np.random.default_rng(0)
A, B = RNG.standard_normal((2, 3, 4)), RNG.standard_normal((4, 5))
V, S = RNG.standard_normal(4), np.float32(2.0)
MASK = RNG.random((3, 4)) > 0.5

BUILT = {
    "of operands that broadcast": lambda w, a, b, v, s, m: w.add(a, v),
    "of two dtypes": lambda w, a, b, v, s, m: w.multiply(b, s),
    "of comparisons": lambda w, a, b, v, s, m: w.greater(a, v),
    "of a test": lambda w, a, b, v, s, m: w.isfinite(v),
    "of a choice": lambda w, a, b, v, s, m: w.where(m, a, v),
    "of a function": lambda w, a, b, v, s, m: w.exp(s),
    "of a conversion": lambda w, a, b, v, s, m: w.astype(a, np.float32),
    "of a sum": lambda w, a, b, v, s, m: w.sum(a, (0, 2)),
    "of a sum that keeps its axes": lambda w, a, b, v, s, m: w.sum(a, (1,), keepdims=True),
    "of how many are true": lambda w, a, b, v, s, m: w.sum(m, (0, 1)),
    "of a maximum": lambda w, a, b, v, s, m: w.max(a, (2,)),
    "of a batch of products": lambda w, a, b, v, s, m: w.matmul(a, b),
    "of a vector times a matrix": lambda w, a, b, v, s, m: w.matmul(v, b),
    "of a matrix times a vector": lambda w, a, b, v, s, m: w.matmul(a, v),
    "of a dot product": lambda w, a, b, v, s, m: w.matmul(v, v),
    "of a reshape": lambda w, a, b, v, s, m: w.reshape(a, (6, 4)),
    "of a transpose": lambda w, a, b, v, s, m: w.transpose(a, (2, 0, 1)),
    "of matrices that are transposed": lambda w, a, b, v, s, m: w.matrix_transpose(a),
    "of a broadcast": lambda w, a, b, v, s, m: w.broadcast_to(v, (2, 4)),
    "of slices and integers": lambda w, a, b, v, s, m: w.getitem(a, (1, slice(None, None, 2), slice(-3, None))),
    "of the first axes": lambda w, a, b, v, s, m: w.getitem(a, (-1,)),
    "of a part of an axis": lambda w, a, b, v, s, m: w.take_along(a, 1, 1, 3),
    "of a join": lambda w, a, b, v, s, m: w.concatenate([a, a, a], 1),
    "of pieces": lambda w, a, b, v, s, m: w.scatter([v, v], [(0,), (slice(2, 3),)], (3, 4)),
    "of an addition in place": lambda w, a, b, v, s, m: w.index_add(a, v, (0, slice(1, 3))),
}


def _graph():
    values = [A, B, V, S, MASK]
    return Graph([type_of(x) for x in values], list(range(len(values))), {}, [], []), values


@pytest.mark.parametrize("build", BUILT.values(), ids=list(BUILT))
def test_the_type_that_the_builder_infers_is_that_of_the_result(build):
    graph, values = _graph()
    work = Builder(graph)
    value = build(work, *graph.inputs)
    (eq,) = work.equations
    found = type_of(eq.prim.forward(*[values[i] for i in eq.ins], **eq.params))
    assert found == work.types[value]


def test_an_old_result_is_given_by_the_operation_that_was_applied_last():
    graph, _ = _graph()
    work = Builder(graph)
    old = Equation(None, (0,), {}, (work.add_value(graph.types[0]),), ("file", 1))
    work.replace(old, work.multiply(0, work.exp(0)))
    exp, multiply = work.equations
    assert multiply.outs == old.outs
    assert multiply.place == ("file", 1)
    assert multiply.ins == (0, exp.outs[0])
    assert len(work.types) == exp.outs[0] + 1


@pytest.mark.parametrize("value", ["an earlier one", "one of another shape"])
def test_an_old_result_is_given_by_nothing_else(value):
    graph, _ = _graph()
    work = Builder(graph)
    old = Equation(None, (0,), {}, (work.add_value(graph.types[0]),))
    new = work.exp(0) if value == "an earlier one" else work.sum(0, (0,))
    if value == "an earlier one":
        work.exp(new)
    with pytest.raises(AssertionError):
        work.replace(old, new)
