"""Random programs of nested loops and branches: under jit they give what they give without, on both lowerings."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import fad
from fad import control
from fad.compile.targets.select import has_llvm, using

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
M = 0.5 * np.random.default_rng(3).normal(size=(3, 3))
SIMPLE = [
    lambda s, w: np.tanh(s * w),
    lambda s, w: np.sin(s) + w,
    lambda s, w: s / (1.0 + w * w),
    lambda s, w: np.tanh(M @ s),
    lambda s, w: s[::-1] * 0.9,
    lambda s, w: np.where(s > 0.2, s, w * 0.5),
    lambda s, w: s + np.sum(np.cos(s)) * 0.1,
]


def scanned(f, n, reverse):
    def run(s, w):
        xs = np.linspace(0.1, 0.9, n)
        c, ys = control.scan(lambda c, x: (f(c, w * x), c * x), s, xs, reverse=reverse)
        return np.tanh(c + np.sum(ys, 0))

    return run


def counted(f, n):
    return lambda s, w: control.fori_loop(1, 1 + n, lambda i, c: np.tanh(f(c, w) + 0.1 * i), s)


def repeated(f, n):
    def run(s, w):
        def more(state):
            return (np.sum(state[0] * state[0]) > 0.05) & (state[1] < n)

        return control.while_loop(more, lambda state: (0.7 * np.tanh(f(state[0], w)), state[1] + 1), (s, 0))[0]

    return run


def branched(f, g):
    return lambda s, w: control.cond(np.sum(s) > 0.3, lambda v: np.tanh(f(v, w)), lambda v: g(v, w) * w, s)


def chosen(f, g):
    def run(s, w):
        index = np.int64(1) * (s[0] > 0.0) + (s[1] > 0.0)
        return control.switch(index, [f, g, lambda a, b: a * b], s, w)

    return run


def program(r, depth):
    if not depth:
        return SIMPLE[r.integers(len(SIMPLE))]
    f, n = program(r, depth - 1), int(r.integers(2, 5))
    kind = r.integers(6)
    if kind == 0:
        return scanned(f, n, bool(r.integers(2)))
    if kind == 1:
        return counted(f, n)
    if kind == 2:
        return repeated(f, n)
    g = program(r, int(r.integers(depth)))
    if kind == 3:
        return branched(f, g)
    if kind == 4:
        return chosen(f, g)
    return lambda s, w: g(np.tanh(f(s, w)), w)


@pytest.mark.parametrize("lowering", LOWERINGS)
@settings(max_examples=12, deadline=None)
@given(seed=st.integers(0, 10_000), depth=st.integers(1, 3))
def test_nested_control_flow_under_jit_is_that_without(lowering, seed, depth):
    r = np.random.default_rng(seed)
    f = program(r, depth)
    s, w = r.normal(size=3), r.normal(size=3)

    def total(s, w):
        return np.sum(f(s, w) ** 2)

    batch = np.stack([s, -s, 0.3 * s])
    for g, args in (
        (f, (s, w)),
        (fad.grad(total, argnums=(0, 1)), (s, w)),
        (fad.vmap(f, in_axes=(0, None)), (batch, w)),
        (fad.vmap(fad.grad(total), in_axes=(0, None)), (batch, w)),
    ):
        wanted = g(*args)
        with using(lowering):
            fast = fad.jit(g)
            fast(*args)
            got = fast(*args)
        for a, b in zip(fad.tree.leaves(got), fad.tree.leaves(wanted), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-10)
