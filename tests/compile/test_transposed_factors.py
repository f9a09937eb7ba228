"""Transposed matrices that products read are copied once, before a loop that reads them in each step."""

import numpy as np
import pytest
from natively import native

import fad
from fad.compile.legalize.products.transposed_factors import copy_transposed
from fad.compile.pipeline import optimise

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
U, XS, H = rng.normal(size=(6, 6)) * 0.3, rng.normal(size=(40, 8, 6)), rng.normal(size=(8, 6))


def recurrent(u, xs):
    h = fad.scan(lambda h, x: (np.tanh(x + h @ u), None), H, xs)[0]
    return np.sum(h * h)


def two_of_one(u, xs):
    return fad.scan(lambda h, x: (np.sin(h @ u.T + x) @ u.T, None), H, xs)[0]


def with_vectors(u, xs):
    return fad.scan(lambda h, x: (np.sin(u.T @ h + x @ u.T), None), H[0], xs[:, 0])[0]


def until_it_is_small(u, h):
    return fad.while_loop(lambda h: np.sum(h * h) > 1e-3, lambda h: 0.5 * h @ u.T, h)


def within_a_loop(u, xs):
    inner = lambda h, x: fad.scan(lambda h, y: (np.tanh(h @ u.T + y), None), h, x)[0]
    return fad.scan(lambda h, x: (inner(h, x), None), H, xs.reshape(8, 5, 8, 6))[0]


def loops(graph):
    return [eq for eq in graph.equations if eq.prim.archetype == "loop"]


def transposed(graph):
    """Return the number of products of loops that read a matrix as its columns lie."""
    before = {o for e in graph.equations if e.prim.name == "permute" for o in e.outs}
    count = 0
    for eq in loops(graph):
        body, c = eq.params["body"], eq.params["consts"]
        found = {i for i, x in zip(body.inputs[:c], eq.ins[:c], strict=True) if x in before}
        found |= {o for e in body.equations if e.prim.name == "permute" for o in e.outs}
        count += sum(e.prim.name == "matmul" and e.ins[1] in found for e in body.equations)
    return count


@pytest.mark.parametrize("f", [fad.grad(recurrent, (0, 1)), two_of_one], ids=["reverse", "two"])
def test_the_products_of_a_loop_read_a_copy_made_before_it(f):
    graph = optimise(fad.make_graph(f)(U, XS))
    left = copy_transposed(graph)
    assert transposed(graph) > 0
    assert transposed(left) == 0
    for a, b in zip(left(U, XS), graph(U, XS), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize(
    ("f", "x"),
    [(fad.grad(recurrent, (0, 1)), XS), (two_of_one, XS), (with_vectors, XS),
     (until_it_is_small, H), (within_a_loop, XS)],
    ids=["reverse", "two", "vectors", "while", "nested"],
)  # fmt: skip
def test_such_loops_are_native_and_right(f, x):
    for got, want in zip(fad.tree.leaves(native(f, U, x)), fad.tree.leaves(f(U, x)), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-10)


@pytest.mark.parametrize(
    ("u", "xs"),
    [(U, XS[:, :2]), (U, XS[:1]), (np.zeros((130, 130)), np.zeros((9, 8, 130)))],
    ids=["few rows", "few steps", "a large matrix"],
)
def test_what_does_not_pay_stays(u, xs):
    run = lambda u, xs: fad.scan(lambda h, x: (np.tanh(h @ u.T + x), None), xs[0], xs)[0]
    graph = optimise(fad.make_graph(run)(u, xs))
    assert transposed(graph) == len(loops(graph))
    assert copy_transposed(graph) is graph
