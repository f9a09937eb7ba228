"""Pieces that a loop's body adds to an array: one update for each place, and the same derivative."""

import numpy as np

import fad
from fad.compile.codegen.nests.added_pieces import add_into
from fad.core.graph import Equation
from fad.core.primitive import REGISTRY


def smooth(x):
    """Read the middle four times, each neighbour once, in every step."""
    y = x * 1.0
    for _ in range(30):
        m = y[1:-1]
        y[1:-1] = m + 0.1 * (y[2:] - 2.0 * m + y[:-2]) + 0.01 * (y[:-2] - 2.0 * y[1:-1]) * m
    return np.sum(y * y)


def backward_body(x):
    """Return the body of the backward loop."""
    graph = fad.make_graph(fad.grad(smooth))(x)
    loops = [eq for eq in graph.equations if eq.prim.archetype == "loop"]
    return loops[-1].params["body"]


def test_what_is_added_to_one_place_is_summed_first():
    with fad.config.use(loops="capture"):
        body = backward_body(np.linspace(0, 1, 40))
    scatters = [str(eq.params["indices"]) for eq in body.equations if eq.prim.name == "scatter"]
    assert len(set(scatters)) < len(scatters)  # or there is nothing to do
    added = add_into(body)
    places = [repr(eq.params["template"]) for eq in added.equations if eq.prim.name == "index_add"]
    assert len(places) == len(set(places)) == len(set(scatters))
    assert "scatter" not in {eq.prim.name for eq in added.equations}


def test_a_body_that_adds_pieces_gives_the_gradient():
    x = np.random.default_rng(0).random(40)
    wanted = fad.grad(smooth)(x)
    with fad.config.use(loops="capture"):
        compiled = fad.jit(fad.grad(smooth))
        for _ in range(2):
            np.testing.assert_allclose(compiled(x), wanted, rtol=1e-12, atol=1e-14)


def test_a_version_that_is_read_in_between_keeps_its_pieces():
    graph = fad.make_graph(lambda x, p: (x + 1.0, p + 1.0))(np.zeros(6), np.zeros(4))
    (x, p), types = graph.inputs, [*graph.types, graph.types[graph.inputs[0]], graph.types[graph.inputs[0]]]
    y, z = len(types) - 2, len(types) - 1
    template = (slice(1, -1),)
    equations = [
        Equation(REGISTRY["index_add"], (i, p), {"template": template}, (o,)) for i, o in ((x, y), (y, z))
    ]  # fmt: skip
    for outputs, updates in (([z], 1), ([y, z], 2)):
        added = add_into(graph.replace(types=types, equations=equations, outputs=outputs))
        assert sum(eq.prim.name == "index_add" for eq in added.equations) == updates
