"""The passes: each leaves what a program computes as it was, and does what it is for; all are linear in the program."""

import sys

import numpy as np
import pytest

import fad
from fad.compile.codegen.selection import kind_of
from fad.compile.passes.algebra import simplify
from fad.compile.passes.constants import fold_constants
from fad.compile.passes.cse import share, share_copies
from fad.compile.passes.dce import drop_dead
from fad.compile.passes.expand_layers import expand_layers
from fad.compile.passes.hoist_loop_matmuls import hoist_loop_matmuls
from fad.compile.pipeline import OPTIMISE, optimise, schedule
from fad.compile.schedule.numpy_buffers import owner_of, plan_memory
from fad.compile.schedule.steps import plan_steps
from fad.compile.targets.numpy_program import NumPyProgram
from fad.core.programs.graph import GUARD
from fad.core.programs.rewriter import check_types

X = np.random.default_rng(0).normal(size=(3, 4))


def names(graph):
    return [eq.prim.name for eq in graph.equations]


def record(f, *args):
    return fad.make_graph(f)(*args)


@pytest.mark.parametrize("step", [fold_constants, simplify, share, drop_dead, optimise])
def test_a_pass_changes_no_result(step):
    def f(x):
        y = np.zeros_like(x) + x * 1.0
        z = np.sin(y).T.T + np.sin(x) - np.negative(-x)
        return fad.grad(lambda v: np.sum(v**2 * z))(x), np.sum(z.reshape(4, 3).reshape(3, 4))

    graph = record(f, X)
    for a, b in zip(step(graph)(X), graph(X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)
    check_types(step(graph))


def test_constants_are_computed_beforehand():
    graph = record(lambda x: x * (np.ones_like(x) + np.ones_like(x)), X)
    assert names(optimise(graph)) == ["multiply"]


def test_what_changes_nothing_is_left_out_but_times_zero_stays():
    assert names(optimise(record(lambda x: (x * 1.0 - 0.0 + -0.0).T.T, X))) == []
    assert names(optimise(record(lambda x: x.reshape(4, 3).reshape(12), X))) == ["reshape_to"]
    assert names(optimise(record(lambda x: x * 0.0, X))) == ["multiply"]
    assert names(optimise(record(lambda x: x**2, X))) == ["multiply"]


def test_adding_zero_stays_since_it_makes_negative_zeros_positive():
    zeros = np.array([0.0, -0.0])
    for f in (lambda x: x + 0.0, lambda x: 0 + x, lambda x: x - (-0.0), lambda x: x + np.zeros(2)):
        graph = record(f, zeros)
        np.testing.assert_array_equal(np.signbit(optimise(graph)(zeros)[0]), np.signbit(f(zeros)))
    assert names(optimise(record(lambda x: x + 0, np.arange(3)))) == []


def test_a_square_by_an_exponent_of_more_axes_has_their_shape():
    x = np.arange(3.0)
    for exponent in (np.full((1, 1), 2.0), np.full((2, 3), 2.0), np.broadcast_to(2.0, (2, 3))):
        np.testing.assert_array_equal(optimise(record(lambda x, e=exponent: x**e, x))(x)[0], x**exponent)


def test_axes_named_in_any_order_are_reduced_in_their_own():
    x = np.random.default_rng(0).normal(size=(3, 3, 3))
    for reduce in (np.sum, np.max, np.prod, np.var, np.linalg.norm, np.any, np.logaddexp.reduce, np.nansum):
        for axis in ((1, 0), (2, 0), (2, 1), (0, 2, 1)):
            if reduce is np.linalg.norm and len(axis) > 2:
                continue
            graph = optimise(record(lambda x, f=reduce, a=axis: f(x, axis=a), x))
            axes = [eq.params["axis"] for eq in graph.equations if type(eq.params.get("axis")) is tuple]
            assert axes
            assert all(list(a) == sorted(a) for a in axes)


def test_adding_zero_to_a_number_of_another_dtype_is_not_left_out():
    graph = optimise(record(lambda x: x + np.zeros(3), np.ones(3, np.float32)))
    assert graph(np.ones(3, np.float32))[0].dtype == np.float64


def test_an_expression_is_computed_once():
    assert names(optimise(record(lambda x: np.sin(x) * np.sin(x) + np.sin(x), X))) == ["sin", "multiply", "add"]


def test_what_nobody_needs_is_dropped_but_guards_stay():
    def f(x):
        np.exp(x)
        return x * 2.0 if np.sum(x) > -1e9 else x

    graph = optimise(record(f, X))
    assert names(graph) == ["sum_over", "greater", "guard", "multiply"]
    assert graph.equations[2].prim is GUARD


def test_buffers_are_used_again_once_their_value_was_read_last():
    def f(x):
        for _ in range(20):
            x = np.sin(x)
        return np.sum(x)

    plan = plan_memory(optimise(record(f, X)))
    assert len(plan.buffer) == 20
    assert len(plan.specs) == 2


def test_a_buffer_is_not_used_again_while_a_view_of_it_is_read():
    def f(x):
        y = np.sin(x)
        view = y[0]
        for _ in range(3):
            x = np.cos(x)
        return np.sum(x) + np.sum(view)

    graph = optimise(record(f, X))
    plan = plan_memory(graph)
    sin = graph.equations[names(graph).index("sin")].outs[0]
    assert [plan.buffer[o] for o in plan.buffer].count(plan.buffer[sin]) == 1


def test_elementwise_chains_become_one_loop_with_the_sum_at_their_end():
    steps = plan_steps(optimise(record(lambda x, y: np.sum(np.exp(-x * x) * y + 1.0), X, X)), kind_of)
    assert [(s.kind, len(s.equations)) for s in steps] == [("sum", 6)]


def test_a_group_that_gives_an_operation_two_operands_is_merged_once():
    def f(x, y):
        a = y * 2.0
        return np.where(x > 0, a, a + 1.0)

    (step,) = plan_steps(optimise(record(f, X, X)), kind_of)
    assert len(step.equations) == len(step.templates) == 4


def test_a_loop_never_reads_what_a_later_step_computes():
    def f(x, w):
        a = np.sin(x)
        b = a @ w
        return a * b + np.cos(a)

    graph = optimise(record(f, X, np.ones((4, 4))))
    ready = {*graph.inputs, *graph.constants}
    for step in plan_steps(graph, kind_of):
        for eq in step.equations:
            assert all(i in ready or i in step.members for i in eq.ins)
        ready.update(o for eq in step.equations for o in eq.outs)
    assert set(graph.outputs) <= ready


def test_the_number_of_equations_after_all_passes_grows_as_the_program_does():
    def f(n):
        def run(x):
            for _ in range(n):
                x = np.sin(x) * 1.5 + 0.1
            return np.sum(x)

        return fad.grad(run)

    short, long = (len(optimise(step_by_step(f(n), X))) for n in (10, 100))
    per_turn = (long - short) / 90
    assert short == pytest.approx(10 * per_turn, abs=6)


def step_by_step(f, *args):
    """Record a program whose loops are written out: a long one is what these tests are about."""
    with fad.config.use(loops="record"):
        return record(f, *args)


def chain(n):
    def f(x):
        for k in range(n):
            x = np.sin(x) * 0.5 + x * (k * 1e-4)
        return x

    return step_by_step(f, np.zeros(10))


def recurrent(n):
    def f(w, xs):
        h = np.zeros_like(xs[0])
        for t in range(n):
            h = np.tanh(h @ w + xs[t]) * 1.5 + np.sum(h[::2]) * 0.1
        return np.sum(h**2)

    return step_by_step(fad.grad(f, argnums=(0, 1)), np.eye(6), np.ones((n, 3, 6)))


def python_steps(work):
    """Count the lines, calls and turns of loops that Python runs."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        count += 1
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        work()
    finally:
        sys.settrace(before)
    return count


def growth(work, programs):
    """Return how much more the steps grow from the second program to the third than from the first to the second."""
    work(programs[0])  # what is imported or found once does not count
    a, b, c = (python_steps(lambda p=p: work(p)) for p in programs)
    return (c - b) / (b - a)


PROGRAMS = {"chain": [chain(n) for n in (50, 100, 200)], "recurrent": [recurrent(n) for n in (20, 40, 80)]}
PASSES = [*OPTIMISE, hoist_loop_matmuls, optimise, schedule, plan_memory, NumPyProgram]


@pytest.mark.parametrize("programs", list(PROGRAMS))
@pytest.mark.parametrize("work", PASSES, ids=lambda work: work.__name__)
def test_the_work_of_a_pass_grows_as_the_program_does(work, programs):
    small, middle, large = map(len, PROGRAMS[programs])
    assert (large - middle) / (middle - small) == pytest.approx(2.0)
    assert growth(work, PROGRAMS[programs]) < 2.2  # a pass that is quadratic in the program has 4


def test_work_that_grows_faster_than_the_program_is_seen():
    def pairs(graph):
        return [a is b for a in graph.equations for b in graph.equations]

    assert growth(pairs, PROGRAMS["chain"]) > 3.5


def test_a_long_chain_becomes_few_steps():
    graph = optimise(chain(200))
    assert len(plan_steps(graph, kind_of)) < len(graph) / 4


def test_a_layer_is_taken_apart_so_that_its_activation_is_fused():
    from fad import nn

    layer = nn.Linear(4, 5, key=fad.random.key(0))
    graph = record(lambda m, x: np.tanh(m(x)), layer, X)
    found = expand_layers(graph)
    assert names(found)[:3] == ["permute", "matmul", "add"]
    values = [*fad.tree.leaves(layer), X]
    np.testing.assert_allclose(found(*values)[0], graph(*values)[0], rtol=1e-14)
    assert [s.kind for s in plan_steps(optimise(graph), kind_of)] == ["view", "matmul", "loop"]


def test_a_rotation_is_two_slices_that_are_joined():
    for shift, axis in ((1, 1), (-5, 0), ((1, 2), (0, 1)), (0, 1), (7, None)):
        graph = record(lambda x, s=shift, a=axis: np.roll(x, s, a) * 2.0, X)
        found = optimise(graph)
        np.testing.assert_array_equal(found(X)[0], graph(X)[0])
        assert "roll_round" not in names(found)
    assert names(optimise(record(lambda x: np.roll(x, 1, 0), X))) == ["getitem", "getitem", "join"]


def test_products_leave_their_loop_and_what_is_not_needed_is_not_computed():
    def f(w, xs):
        h, _ = fad.scan(lambda h, x: (np.tanh(h @ w + x), np.exp(h)), np.zeros((2, 3)), xs)
        return np.sum(h)

    w, xs = 0.3 * np.ones((3, 3)), np.random.default_rng(1).normal(size=(9, 2, 3))
    graph = record(fad.grad(f), w, xs)
    found = optimise(graph)
    np.testing.assert_allclose(found(w, xs)[0], graph(w, xs)[0], rtol=1e-12)
    assert names(found).count("matmul") == 1
    bodies = [eq.params["body"] for eq in found.equations if eq.prim.name == "scan"]
    assert [names(body).count("matmul") for body in bodies] == [1, 1]
    assert not any("exp" in names(body) for body in bodies)


def test_values_that_may_share_memory_have_one_owner_however_often_they_are_asked_for():
    def f(x):  # a selection is no ufunc, and may be a view for all that is known
        y = np.sin(x)
        for k in range(6):
            y = np.where(x > k, np.cos(x + k), y)
        return y, y.T, np.exp(x)

    graph = record(f, X)
    owner = owner_of(graph)
    shared = [o for eq in graph.equations for o in eq.outs if eq.prim.name in ("sin", "cos", "where_select", "permute")]
    for _ in range(3):
        assert len({owner(i) for i in shared}) == 1
    assert owner(graph.outputs[2]) != owner(graph.outputs[0])


def test_a_transposed_array_is_copied_once_for_all_its_shapes():
    x = np.arange(24.0).reshape(4, 6)

    def f(x):
        y = x.T
        return y.reshape(3, 8) * 2.0, y.reshape(-1) + 1.0, y.reshape(2, 12)

    graph = optimise(fad.make_graph(f)(x))
    found = share_copies(graph)
    (turned,) = [eq.outs[0] for eq in found.equations if eq.prim.name == "permute"]
    assert sum(turned in eq.ins for eq in graph.equations) == 3
    assert sum(turned in eq.ins for eq in found.equations) == 1
    for a, b in zip(found(x), f(x), strict=True):
        np.testing.assert_array_equal(a, b)
