"""A batch of programs that write into arrays of their own, as their branches decide, gives what a loop gives.

Examples that answer differently are run apart. An array that one run made is never one from outside of the next, also
where it lives on: captured loops and functions that call themselves make cycles of references.
"""

import gc

import numpy as np
import pytest

import fad
from fad.errors import ItemAssignmentError


def clear_descents(x):
    a = x.copy()
    for i in range(len(a) - 1):
        if a[i] > a[i + 1]:
            a[i] = 0.0
    return (a * a).sum()


def sort_by_bubbles(x):
    a = x.copy()
    for i in range(len(a)):
        for j in range(len(a) - 1 - i):
            if a[j] > a[j + 1]:
                t = a[j]
                a[j] = a[j + 1]
                a[j + 1] = t
    return (a * np.arange(1.0, 1 + len(a))).sum()


def sort_by_pivots(x):
    a = x.copy()

    def sort(first, last):
        if first >= last:
            return
        i = first
        for j in range(first, last):
            if a[j] < a[last]:
                t = a[i]
                a[i] = a[j]
                a[j] = t
                i += 1
        t = a[i]
        a[i] = a[last]
        a[last] = t
        sort(first, i - 1)
        sort(i + 1, last)

    sort(0, len(a) - 1)
    return (a * np.arange(1.0, 1 + len(a))).sum()


def factor(x):
    a = x.reshape(3, 3).copy()
    for k in range(3):
        p = k
        for i in range(k + 1, 3):
            if abs(a[i, k]) > abs(a[p, k]):
                p = i
        if p != k:
            t = a[k].copy()
            a[k] = a[p]
            a[p] = t
        for i in range(k + 1, 3):
            a[i, k] = a[i, k] / a[k, k]
            a[i, k + 1 :] = a[i, k + 1 :] - a[i, k] * a[k, k + 1 :]
    return (a.reshape(9) * np.arange(1.0, 10)).sum()


def find_shortest_paths(x):
    w = x.reshape(3, 3)
    distance, done = np.full(3, 1e3), np.zeros(3)
    distance[0] = 0.0
    for _ in range(3):
        u = -1
        for v in range(3):
            if done[v] == 0 and (u < 0 or distance[v] < distance[u]):
                u = v
        done[u] = 1
        for v in range(3):
            if distance[u] + w[u, v] < distance[v]:
                distance[v] = distance[u] + w[u, v]
    return (distance * distance).sum()


def mark_what_is_large(x):
    marks = np.zeros(len(x))  # plain numbers alone are written into it

    def visit(i):
        if i < len(x):
            if x[i] > 1.0:
                marks[i] = 1.0
            visit(i + 1)

    visit(0)
    return (marks * x * x).sum()


PROGRAMS = {
    clear_descents: 4, sort_by_bubbles: 4, sort_by_pivots: 4, factor: 9, find_shortest_paths: 9, mark_what_is_large: 4,
}  # fmt: skip

VALUES = {
    "vmap(f)": fad.vmap,
    "jit(vmap(f))": lambda f: fad.jit(fad.vmap(f)),
    "vmap(jit(f))": lambda f: fad.vmap(fad.jit(f)),
    "vmap of chunks": lambda f: fad.jit(fad.vmap(f, chunk_size=3)),
}
GRADIENTS = {
    "jit(vmap(grad(f)))": lambda f: fad.jit(fad.vmap(fad.grad(f))),
    "vmap(jit(grad(f)))": lambda f: fad.vmap(fad.jit(fad.grad(f))),
    "vmap(grad(jit(f)))": lambda f: fad.vmap(fad.grad(fad.jit(f))),
    "jit(grad(sum of vmap(f)))": lambda f: fad.jit(fad.grad(lambda xs: fad.vmap(f)(xs).sum())),
    "grad(sum of jit(vmap(f)))": lambda f: fad.grad(lambda xs: fad.jit(fad.vmap(f))(xs).sum()),
    "grad(sum of vmap(jit(f)))": lambda f: fad.grad(lambda xs: fad.vmap(fad.jit(f))(xs).sum()),
}


@pytest.fixture
def rare_collections():
    """Let cycles of references live on, as they do until the garbage collector comes by."""
    gc.disable()
    yield
    gc.enable()


@pytest.mark.usefixtures("rare_collections")
@pytest.mark.parametrize("f", PROGRAMS)
@pytest.mark.parametrize("form", [*VALUES, *GRADIENTS])
def test_a_batch_is_a_loop_whatever_paths_its_examples_take(f, form):
    run = {**VALUES, **GRADIENTS}[form](f)
    one = f if form in VALUES else fad.grad(f)
    for seed in (0, 1, 0):  # other contents take other paths, and the first ones are known by then
        xs = np.random.default_rng(seed).uniform(0.1, 2.0, (4, PROGRAMS[f]))
        before = xs.copy()
        np.testing.assert_allclose(run(xs), np.stack([one(x) for x in xs]), 1e-12, 1e-12)
        np.testing.assert_array_equal(xs, before)


def test_a_batch_of_batches_is_a_loop_of_loops():
    xs = np.random.default_rng(0).uniform(0.1, 2.0, (2, 3, 4))
    wanted = np.array([[clear_descents(x) for x in row] for row in xs])
    np.testing.assert_allclose(fad.jit(fad.vmap(fad.vmap(clear_descents)))(xs), wanted, 1e-13)


@pytest.mark.parametrize("make", [lambda w: w * 1.0, np.zeros_like], ids=["traced", "plain"])
@pytest.mark.parametrize("around", [lambda f: f, fad.jit, fad.grad, lambda f: fad.jit(fad.grad(f))])
def test_an_array_that_the_function_around_the_batch_made_is_one_from_outside(make, around):
    xs = np.array([[3.0, 2, 1], [1, 3, 2], [1, 2, 3]])

    def whole(w):
        a = make(w)

        def f(x):
            for i in range(2):
                if x[i] > x[i + 1]:
                    a[i] = a[i] + 1.0
            return x.sum() * a.sum()

        return fad.vmap(f)(xs).sum()

    with pytest.raises(ItemAssignmentError, match="runs several times"):
        around(whole)(np.ones(3))
