"""Masks that are known, or exclude each other, are left out, and what a program gives is the same."""

import numpy as np

import fad
from fad.compile.passes.dce import drop_dead
from fad.compile.passes.simplify_masks import simplify_masks
from fad.core.primitives.primitive import REGISTRY
from fad.core.programs.graph import ARRAY, Equation, Graph, Type

N = 4
FLOATS, TRUTH = Type((N, N), np.dtype(float), ARRAY), Type((N, N), np.dtype(bool), ARRAY)
X = np.arange(16.0).reshape(N, N)
MASK = X % 3 == 0


def graph_of(types, inputs, constants, steps):
    """Return a graph of steps ``(operation, operands, parameters, type)``; the last one is its output."""
    types, equations = list(types), []
    for name, ins, params, t in steps:
        types.append(t)
        equations.append(Equation(REGISTRY[name], ins, params, (len(types) - 1,)))
    return Graph(types, inputs, constants, equations, [len(types) - 1])


def simplified(graph, *args):
    """Return the names of the operations that are left; the result must be what it was."""
    found = drop_dead(simplify_masks(graph))
    np.testing.assert_array_equal(found(*args)[0], graph(*args)[0])
    return [eq.prim.name for eq in found.equations]


def test_a_mask_and_what_it_leaves_are_false_together_and_true_either_way():
    for name in ("logical_and", "logical_or"):
        steps = [("logical_not", (0,), {}, TRUTH), (name, (0, 1), {}, TRUTH)]
        assert simplified(graph_of([TRUTH], [0], {}, steps), MASK) == []


def test_a_mask_beside_one_that_is_the_same_everywhere_is_that_mask_or_a_constant():
    for name in ("logical_and", "logical_or"):
        for known in (True, False):
            constants = {1: np.broadcast_to(known, (N, N))}
            assert simplified(graph_of([TRUTH, TRUTH], [0], constants, [(name, (0, 1), {}, TRUTH)]), MASK) == []


def test_masks_that_differ_stay():
    steps = [("logical_and", (0, 1), {}, TRUTH)]
    assert simplified(graph_of([TRUTH, TRUTH], [0, 1], {}, steps), MASK, X > 5) == ["logical_and"]


def test_a_choice_by_a_constant_is_what_it_chooses():
    for known in (True, False):
        constants = {2: np.broadcast_to(known, (N, N))}
        graph = graph_of([FLOATS, FLOATS, TRUTH], [0, 1], constants, [("where_select", (2, 0, 1), {}, FLOATS)])
        assert simplified(graph, X, X + 1) == []
    constants = {2: MASK}
    graph = graph_of([FLOATS, FLOATS, TRUTH], [0, 1], constants, [("where_select", (2, 0, 1), {}, FLOATS)])
    assert simplified(graph, X, X + 1) == ["where_select"]


def test_the_sum_of_a_mask_along_an_axis_along_which_it_does_not_differ_is_a_product():
    row, total = Type((N,), np.dtype(bool), ARRAY), Type((N,), np.dtype(float), ARRAY)
    steps = [
        ("broadcast", (0,), {"shape": (N, N)}, TRUTH),
        ("convert", (1,), {"dtype": np.dtype(float)}, FLOATS),
    ]
    across = graph_of([row], [0], {}, [*steps, ("sum_over", (2,), {"axis": (0,), "keepdims": False}, total)])
    assert "sum_over" not in simplified(across, MASK[0])
    along = graph_of([row], [0], {}, [*steps, ("sum_over", (2,), {"axis": (1,), "keepdims": False}, total)])
    assert "sum_over" in simplified(along, MASK[0])


def test_what_is_scattered_over_all_of_a_result_is_the_result():
    for index, left in ((slice(None), []), (slice(None, None, -1), ["scatter"])):
        params = {"shape": (N, N), "dtype": np.dtype(float), "indices": ((index,),)}
        assert simplified(graph_of([FLOATS], [0], {}, [("scatter", (0,), params, FLOATS)]), X) == left


def test_gradients_through_nested_slices_of_traced_length_are_right():
    def f(x):
        y = x * 1.0
        for i in range(1, 9):
            y[:i, i] += x[i, :i] * y[i - 1, :i]
            y[i, i:] -= np.sum(y[:i, i:] * x[:i, i:], axis=0)
        return np.sum(y * y)

    x = np.random.default_rng(0).uniform(-0.5, 0.5, (9, 9))
    with fad.config.use(loops="capture"):
        fast = fad.jit(fad.grad(f))
        for _ in range(2):
            np.testing.assert_allclose(fast(x), fad.grad(f)(x), rtol=1e-11, atol=1e-12)
