"""Cheap values that a later loop reads are computed there again, where that loop then reads fewer arrays."""

import numpy as np
import pytest
from natively import compiled

import fad
from fad.compile.codegen.selection import kind_of
from fad.compile.pipeline import optimise
from fad.compile.schedule.steps import plan_steps

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
X, Y, C = rng.uniform(0.5, 1.0, 900), rng.uniform(0.5, 1.0, 900), rng.normal(size=80)


def powers(x, y, n, step):
    found = [x]
    for _ in range(n):
        found.append(step(found[-1], y))
    return found


def scaled(values):
    """Scale values by what is known only when all of them are."""
    s = np.mean(np.sin(values[-1]))
    return sum(v * (v - s) for v in values[1:])


def chain(x, y, c):
    return scaled(powers(x, y, 8, lambda p, y: p * y))


def chain_of_two(x, y, c):
    return scaled(powers(x, y, 8, lambda p, y: (p + y) * 0.5))


def two_chains(x, y, c):
    return scaled(powers(x, y, 6, np.multiply) + powers(y, x, 6, np.subtract))


def functions(x, y, c):
    return scaled(powers(x, y, 8, lambda p, y: np.tanh(p + y)))


def few(x, y, c):
    return scaled(powers(x, y, 2, lambda p, y: p * y))


def written_between(x, y, c):
    y = y * 1.5
    p = powers(x, y, 8, lambda p, y: p * y)
    s = np.mean(np.sin(p[-1]))
    y[100:] = s
    return sum(v * (v - s) for v in p[1:]) + y


def sum_of_powers(x, y, c):
    """A running product and a sum of its multiples, of more numbers than one loop has."""
    p, total = x, c[0] * x
    for k in range(1, len(c)):
        p = p * y
        total = total + c[k] * p
    return total


AGAIN = [chain, two_chains]
ONCE = [functions, few]
PROGRAMS = [*AGAIN, *ONCE, chain_of_two, written_between, sum_of_powers]


def plan(f):
    graph = optimise(fad.make_graph(f)(X, Y, C))
    return graph, plan_steps(graph, kind_of)


def read_of_others(f):
    """Return how many arrays of other loops each loop reads."""
    graph, steps = plan(f)
    found = []
    for step in steps:
        own = {o for eq in step.equations for o in eq.outs}
        read = {i for eq in step.equations for i in eq.ins} - own - set(graph.inputs) - graph.constants.keys()
        found.append(sum(graph.types[i].shape == X.shape for i in read))
    return found


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_program_that_computes_values_again_has_the_same_ones(f):
    for g in (f, fad.grad(lambda *xs: np.sum(np.sin(f(*xs))), (0, 1, 2))):
        for a, b in zip(fad.tree.leaves(compiled(g, X, Y, C)(X, Y, C)), fad.tree.leaves(g(X, Y, C)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("f", AGAIN)
def test_a_chain_of_cheap_operations_is_computed_again(f):
    assert max(read_of_others(f)) == 0


@pytest.mark.parametrize("f", ONCE)
def test_functions_and_few_values_are_not(f):
    assert max(read_of_others(f)) > 1


def test_a_running_product_is_handed_on_to_the_next_loop_and_stored_once():
    _, steps = plan(sum_of_powers)
    assert sum(step.kind == "loop" for step in steps) == 4  # of up to 24 numbers each
    assert max(read_of_others(sum_of_powers)) == 2  # the product and the sum so far
