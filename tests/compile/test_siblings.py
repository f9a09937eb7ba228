"""Loops of one shape that read one array, or write pieces of one, become one loop."""

import numpy as np
import pytest
from natively import compiled

import fad
from fad.compile.codegen.selection import kind_of
from fad.compile.pipeline import optimise
from fad.compile.schedule.steps import plan_steps

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
X, Y, Z, M = rng.normal(size=900), rng.normal(size=900), rng.normal(size=900), rng.normal(size=(30, 30))


def loops(f, *xs):
    """Return how many loops a program is."""
    steps = plan_steps(optimise(fad.make_graph(f)(*xs)), kind_of)
    return sum(s.kind == "loop" for s in steps)


def reads_one_array(x, y, z):
    return x * y, np.cumsum(z) * y


def writes_one_array(x, y, z):
    return np.stack([np.sin(x), np.cos(y), z * 2.0], axis=1)


def one_after_the_other(x, y, z):
    a = x * y
    return a, np.cumsum(a) * y


def apart(x, y, z):
    return x * 2.0, y * 3.0


FUSED = [reads_one_array, writes_one_array]
APART = [one_after_the_other, apart]


@pytest.mark.parametrize("f", [*FUSED, *APART])
def test_a_program_with_fused_siblings_computes_the_same(f):
    for g in (f, fad.grad(lambda *xs: sum(np.sum(np.sin(y)) for y in fad.tree.leaves(f(*xs))), (0, 1, 2))):
        for a, b in zip(fad.tree.leaves(compiled(g, X, Y, Z)(X, Y, Z)), fad.tree.leaves(g(X, Y, Z)), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("f", FUSED)
def test_siblings_are_one_loop(f):
    assert loops(f, X, Y, Z) == 1


@pytest.mark.parametrize("f", APART)
def test_others_are_not(f):
    assert loops(f, X, Y, Z) == 2


def test_what_a_moved_loop_is_read_by_moves_behind_it():
    def f(m):
        a = m * 2.0
        b = a @ a  # needs the first loop, not the second
        return b, np.cumsum(m, axis=0) * m

    assert loops(f, M) == 1
    for a, b in zip(compiled(f, M)(M), f(M), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_short_loops_stay_apart():
    assert loops(reads_one_array, X[:20], Y[:20], Z[:20]) == 2


def test_a_guard_stays_before_what_it_guards():
    def f(x, y, z):
        a = x * y
        total = np.sum(np.cumsum(a))
        return (a, np.cumsum(z) * y) if total < 1e9 else (a, z)

    fast = compiled(f, X, Y, Z)
    for xs in ((X, Y, Z), (np.full(900, 1e9), np.ones(900), Z), (X, Y, Z)):
        for a, b in zip(fast(*xs), f(*xs), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)
