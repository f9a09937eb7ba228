"""What only a later loop reads is computed there, if nothing more has to be stored for it."""

import numpy as np
import pytest
from natively import compiled

import fad
from fad.compile.codegen.selection import kind_of
from fad.compile.pipeline import optimise
from fad.compile.schedule.steps import plan_steps

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
X, Y, W, V = rng.normal(size=(400, 100)), rng.normal(size=(400, 100)), rng.normal(size=(100, 100)), rng.normal(size=100)


def product_between(x, y, w, v):
    u = x - y
    return u * v + u @ w  # the product with v waits for the one with w


def chain_between(x, y, w, v):
    u = x - y
    return np.tanh(np.sin(u * v) * x) + u @ w


def two_of_one_between(x, y, w, v):
    u = x - y
    p = u * v
    return np.where(p < 0.0, np.tanh(p), 1.0) * (u @ w) + np.sin(p)  # what waits is made of one value


def read_twice(x, y, w, v):
    u = x - y
    p = u * v
    return p + u @ w, p.T @ p


def result(x, y, w, v):
    u = x - y
    p = u * v
    return p, p + u @ w


def needs_what_is_not_stored(x, y, w, v):
    u = x - y
    p = np.sin(u)
    return np.exp(p) + (x * p) @ w


def reads_much(x, y, w, v):
    a, b, c = x @ w, y @ w, (x + y) @ w
    u = np.sin(x * y * a * b * c)
    return u + (x * y) @ np.cos(w)


MOVES = [product_between, chain_between, two_of_one_between]
STAYS = [read_twice, result]
PROGRAMS = [*MOVES, *STAYS, needs_what_is_not_stored, reads_much]


def stored(f):
    """Return the operations whose results a later step or the caller reads."""
    graph = optimise(fad.make_graph(f)(X, Y, W, V))
    steps = plan_steps(graph, kind_of)
    found = set()
    for step in steps:
        within = {o for eq in step.equations for o in eq.outs}
        read = {i for s in steps if s is not step for eq in s.equations for i in eq.ins} | set(graph.outputs)
        found |= {eq.prim.name for eq in step.equations if step.kind == "loop" for o in eq.outs if o in read & within}
    return found


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_program_with_moved_operations_computes_the_same(f):
    def total(*xs):
        return sum(np.sum(np.sin(y)) for y in fad.tree.leaves(f(*xs)))

    for g in (f, fad.grad(total, (0, 1))):
        wanted = fad.tree.leaves(g(X, Y, W, V))
        for a, b in zip(fad.tree.leaves(compiled(g, X, Y, W, V)(X, Y, W, V)), wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("f", MOVES)
def test_what_waits_for_a_product_is_not_stored(f):
    assert stored(f) == {"subtract", "add"}


@pytest.mark.parametrize("f", STAYS)
def test_what_others_read_is_stored(f):
    assert "multiply" in stored(f)


def test_small_loops_stay_as_they_are():
    small = [a[:20, :20] for a in (X, Y, W)] + [V[:20]]
    steps = plan_steps(optimise(fad.make_graph(product_between)(*small)), kind_of)
    first = next(s for s in steps if s.kind == "loop")
    assert [eq.prim.name for eq in first.equations] == ["subtract", "multiply"]
    assert [[eq.prim.name for eq in s.equations] for s in steps if s.kind == "loop"][-1] == ["add"]
