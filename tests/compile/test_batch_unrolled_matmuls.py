"""Products of unrolled steps that are done at once, and values computed in their place in a larger array."""

from collections import Counter

import numpy as np
import pytest
from natively import compiled

import fad
from fad.compile.passes.batch_unrolled_matmuls import share_stacks
from fad.compile.pipeline import optimise

RNG = np.random.default_rng(4)


def operations(f, *args):
    return Counter(eq.prim.name for eq in optimise(fad.make_graph(f)(*args)).equations)


def replayed(f, *args):
    """Return what a compiled function gives when its program runs, and what the function itself gives."""
    g = fad.jit(f)
    g(*args)
    assert g.cache_info().misses == 1
    return g(*args), f(*args)


def cells(w, u, b, h, xs):
    for t in range(len(xs)):
        h = np.tanh(xs[t] @ w + h @ u + b)
    return np.sum(h * h)


def vectors(w, u, h, xs):
    for x in xs:
        h = np.tanh(w @ x + u @ h)
    return np.sum(h * h)


# Weights that shrink the state: a network that amplifies it amplifies rounding as well, in the eager steps too.
ROWS = (RNG.normal(size=(5, 8)), RNG.normal(size=(8, 8)) * 0.2, RNG.normal(size=8), RNG.normal(size=(3, 8)) * 0.1)


def test_the_products_of_all_steps_with_one_weight_are_one_product():
    args = (*ROWS, RNG.normal(size=(9, 3, 5)))
    n = operations(fad.grad(cells, (0, 1, 2)), *args)
    assert n["matmul"] == 9 + 1 + 8 + 2  # h @ u, all x @ w, back through u, and the gradients of w and u
    assert n["sum_over"] == 1  # of all rows at once


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_the_gradient_of_an_unrolled_network_is_that_of_its_steps(dtype):
    args = [np.asarray(a, dtype) for a in (*ROWS, RNG.normal(size=(9, 3, 5)))]
    for x, y in zip(*replayed(fad.grad(cells, (0, 1, 2, 3, 4)), *args), strict=True):
        assert x.dtype == dtype
        np.testing.assert_allclose(x, y, rtol=0, atol=50 * np.finfo(dtype).eps * np.abs(y).max())


def test_a_network_of_vectors_adds_up_its_outer_products_at_once():
    args = RNG.normal(size=(6, 5)), RNG.normal(size=(6, 6)), RNG.normal(size=6) * 0.1, RNG.normal(size=(11, 5))
    f = fad.grad(vectors, (0, 1))
    n = operations(f, *args)
    assert n["matmul"] == 11 + 1 + 10 + 2
    for x, y in zip(*replayed(f, *args), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("order", [(4, 2, 3, 1), (-1, -2, -3, -4, -5), (0, 2, 4, 6), (1, 1, 2, 3, 4), (0, 1, 2)])
def test_slices_are_multiplied_each_by_its_number(order):
    def f(w, xs):
        return [np.cos(xs[k] @ w) for k in order]

    for x, y in zip(*replayed(f, RNG.normal(size=(4, 3)), RNG.normal(size=(7, 2, 4))), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_sums_of_few_or_different_products_are_added_one_by_one():
    def f(a, b, c):
        p = [np.tanh(a[k]) for k in range(6)]
        total = p[0].T @ b + p[1].T @ np.sin(b) + 2.0 * c
        return total + p[2].T @ b - c + p[3].T @ b, p[4], total

    args = RNG.normal(size=(6, 2, 4)), RNG.normal(size=(2, 5)), RNG.normal(size=(4, 5))
    for x, y in zip(*replayed(f, *args), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_one_factor_may_stand_in_several_terms():
    def f(a, b):
        p = [np.tanh(a[k]) for k in range(4)]
        q = np.sin(b)
        return p[0].T @ q + p[1].T @ q + p[2].T @ q + p[3].T @ q + p[1].T @ q, q

    for x, y in zip(*replayed(f, RNG.normal(size=(4, 2, 8)), RNG.normal(size=(2, 8))), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-13)


def test_other_terms_of_a_sum_stay_as_often_as_they_are_there():
    def f(a, b, c):
        p, y = [np.tanh(a[k]) for k in range(5)], np.sin(c)
        return y + (p[0].T @ b + (p[1].T @ b + (y + (p[2].T @ b + (p[3].T @ b + (p[4].T @ b + c))))))

    args = RNG.normal(size=(5, 2, 8)), RNG.normal(size=(2, 6)), RNG.normal(size=(8, 6))
    assert operations(f, *args)["matmul"] == 1
    x, y = replayed(f, *args)
    np.testing.assert_allclose(x, y, rtol=1e-13)


# --- values in their place ------------------------------------------------------------------------------------------


def test_what_lies_in_a_join_can_be_read_elsewhere_and_twice():
    def f(x):
        a, b = np.exp(x), np.sin(x)
        c = np.concatenate([a, b, a], 1)
        return c * 2.0, np.sort(b, 1), np.concatenate([b * 1.5, a + b], 0) @ b.T, np.concatenate([c, c + 1.0])

    for x, y in zip(*replayed(f, RNG.normal(size=(4, 6))), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-14)


def test_a_join_within_a_join_may_be_a_result():
    def f(x):
        a = np.concatenate([np.exp(x), np.sin(x)], 1)
        b = np.concatenate([a, a * 2.0])
        return b, np.sort(a, 1), np.sum(a)

    for n in (3, 900):  # large results lie where the caller gets them
        x = RNG.normal(size=(n, 6))
        (b, s, t), expected = replayed(f, x)
        for found, y in zip((b, s, t), expected, strict=True):
            np.testing.assert_allclose(found, y, rtol=1e-13)


@pytest.mark.parametrize(
    "places",
    [
        [(slice(0, 2),), (slice(2, 5),)],
        [(slice(3, 5),), (slice(0, 2),)],
        [(slice(0, 3),), (slice(2, 5),)],
        [(0,), (-1,), (2,)],
        [(0,), (0,), (slice(0, 2),)],
        [(slice(None), slice(1, 3)), (slice(None), 4)],
        [(slice(None), slice(1, 3)), (2,)],
        [(slice(None, None, 2),), (slice(1, None, 2),)],
    ],
)
def test_pieces_are_added_where_they_overlap_and_nothing_stands_between_them(places):
    def f(x):
        def some(x):
            return sum(np.sum(np.exp(x[p]) * (n + 1.0)) for n, p in enumerate(places))

        return fad.grad(some)(x) * 1.0

    x, y = replayed(f, RNG.normal(size=(5, 6)))
    np.testing.assert_allclose(x, y, rtol=1e-13)


PARTS = [RNG.normal(size=(2, 3)) for _ in range(20)]


def stacks(graph):
    return [len(eq.ins) for eq in graph.equations if eq.prim.name == "join"]


def the_longer_last(xs):
    ys = [np.sin(x) for x in xs]
    few = np.concatenate(ys[2:19])
    return np.tanh(few) @ np.ones(3), np.concatenate(ys)


def the_longer_first(xs):
    ys = [np.sin(x) for x in xs]
    return np.concatenate(ys) * 2.0, np.concatenate(ys[:18])


def a_stack_in_a_stack_in_a_stack(xs):
    ys = [np.sin(x) for x in xs]
    return np.concatenate(ys[3:19]), np.concatenate(ys[2:19]) * 2.0, np.concatenate(ys)


@pytest.mark.parametrize("f", [the_longer_last, the_longer_first, a_stack_in_a_stack_in_a_stack])
def test_a_stack_that_is_part_of_another_is_a_slice_of_it(f):
    graph = fad.make_graph(f)(PARTS)
    found = share_stacks(graph)
    assert stacks(found) == [20]
    for a, b in zip(found(*PARTS), graph(*PARTS), strict=True):
        np.testing.assert_array_equal(a, b)
    for a, b in zip(compiled(f, PARTS)(PARTS), f(PARTS), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_a_thousand_windows_of_one_stack_are_slices_of_it():
    def windows(xs):
        return [np.concatenate(xs), *[np.concatenate(xs[k : k + 16]) for k in range(len(xs) - 16)]]

    xs = [np.full(1, float(k)) for k in range(1100)]
    with fad.config.use(loops="record"):  # captured, the products would be one operation on a stack of xs
        graph = fad.make_graph(lambda *xs: windows([x * 2.0 for x in xs]))(*xs)
    found = share_stacks(graph)
    assert stacks(found) == [1100]
    for a, b in zip(found(*xs), windows([x * 2.0 for x in xs]), strict=True):
        np.testing.assert_array_equal(a, b)


def the_longer_needs_the_shorter(xs):
    ys = [np.sin(x) for x in xs]
    few = np.concatenate(ys[:18])
    return np.concatenate([*ys[:18], few[:2] * 2.0, ys[19]])


def others_between(xs):
    ys = [np.sin(x) for x in xs]
    return np.concatenate(ys[:18]), np.concatenate([*ys[:9], *ys[10:]])


def a_question_between(xs):
    ys = [np.sin(x) for x in xs]
    few = np.concatenate(ys[:18])
    return np.concatenate(ys) if np.sum(few) < 1e3 else few


@pytest.mark.parametrize("f", [the_longer_needs_the_shorter, others_between, a_question_between])
def test_a_stack_that_cannot_wait_for_another_or_is_no_part_of_it_stays(f):
    graph = fad.make_graph(f)(PARTS)
    assert stacks(share_stacks(graph)) == stacks(graph)
    assert len(stacks(graph)) == 2
