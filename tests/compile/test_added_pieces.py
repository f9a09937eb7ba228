"""Pieces that a loop's body writes into an array: one update for each place, and the same derivative."""

import numpy as np
import pytest

import fad
from fad.compile.codegen.nests.added_pieces import add_into
from fad.core.primitives.primitive import REGISTRY
from fad.core.programs.graph import Equation


def smooth(x):
    """Read the middle four times, each neighbour once, in every step."""
    y = x * 1.0
    for _ in range(30):
        m = y[1:-1]
        y[1:-1] = m + 0.1 * (y[2:] - 2.0 * m + y[:-2]) + 0.01 * (y[:-2] - 2.0 * y[1:-1]) * m
    return np.sum(y * y)


def backward_body(x):
    return backward_body_of(smooth, x)


def backward_body_of(f, x):
    """Return the body of the backward loop."""
    graph = fad.make_graph(fad.grad(f))(x)
    loops = [eq for eq in graph.equations if eq.prim.archetype == "loop"]
    return loops[-1].params["body"]


def places_of(graph):
    """Return where a program writes, one entry for each update."""
    found = []
    for eq in graph.equations:
        if eq.prim.name in ("index_add", "index_set"):
            found.append(repr(eq.params["template"]))
        elif eq.prim.name == "write_pieces":
            found += map(repr, eq.params["templates"])
    return found


def test_what_is_added_to_one_place_is_summed_first():
    with fad.config.use(loops="capture"):
        body = backward_body(np.linspace(0, 1, 40))
    scatters = [str(eq.params["indices"]) for eq in body.equations if eq.prim.name == "scatter"]
    assert len(set(scatters)) < len(scatters)  # or there is nothing to do
    added = add_into(body)
    places = places_of(added)
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
        assert len(places_of(added)) == updates


def test_adding_to_a_slice_leaves_its_derivative_where_it_is():
    def program(x):
        y = x * 1.0
        for _ in range(50):
            y[1:] = y[1:] + 0.1 * np.sin(y[:-1])
        return np.sum(y)

    with fad.config.use(loops="capture"):
        body = backward_body_of(program, np.linspace(0, 1, 40))
    assert sum(eq.prim.name == "index_set" for eq in body.equations) == 1  # what was there is zeroed and put back
    assert len(places_of(add_into(body))) == 1


def random_updates(r, steps):
    """Return a program that writes and adds slices of one array, and arguments."""
    n = 12
    cuts = [(slice(a, n - b), slice(c, n - d)) for a, b, c, d in r.integers(0, 3, (3, 4))]
    cuts += [(slice(0, 2), slice(None)), (3, slice(1, 11)), (slice(None), -1), (slice(2, 10, 2), slice(5, 9))]
    chosen = [(cuts[r.integers(len(cuts))], r.integers(4), r.uniform(0.1, 0.5)) for _ in range(r.integers(3, 8))]

    def program(x, z):
        y, z = x * 1.0, z * 1.0
        for _ in range(steps):
            for cut, kind, w in chosen:
                if kind == 0:
                    y[cut] = 0.0
                elif kind == 1:
                    y[cut] = w * np.flip(z[cut])
                elif kind == 2:
                    y[cut] += w * z[cut]
                else:
                    y[cut] += w * y[cut] * z[cut]
            z[1:-1, 1:-1] = 0.2 * (y[2:, 1:-1] + y[:-2, 1:-1] + y[1:-1, 2:] + y[1:-1, :-2]) + 0.1 * y[1:-1, 1:-1]
        return np.sum(np.cos(y)) + np.sum(z * z)

    return program, (r.random((n, n)), r.random((n, n)))


@pytest.mark.parametrize("seed", range(3))
def test_random_updates_give_what_numpy_gives(seed):
    program, args = random_updates(np.random.default_rng(seed), 3)
    value, slopes = program(*args), fad.grad(program, argnums=(0, 1))(*args)
    for loops in ("capture", "record"):
        with fad.config.use(loops=loops):
            fast, steep = fad.jit(program), fad.jit(fad.grad(program, argnums=(0, 1)))
            for _ in range(2):
                np.testing.assert_allclose(fast(*args), value, rtol=1e-13)
                for got, wanted in zip(steep(*args), slopes, strict=True):
                    np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("seed", range(40))
def test_fewer_updates_leave_the_same_array(seed):
    r = np.random.default_rng(seed)
    program, args = random_updates(r, 1)
    graph = fad.make_graph(program)(*args)
    np.testing.assert_allclose(add_into(graph)(*args)[0], program(*args), rtol=1e-13)
