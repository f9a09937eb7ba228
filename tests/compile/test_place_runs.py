"""Places that are known and follow one another are slices."""

import numpy as np
import pytest
from natively import compiled

import fad
from fad.compile.legalize.places.place_runs import place_runs
from fad.compile.passes.constants import fold_constants
from fad.core.programs.rewriter import check_types
from fad.ops.layout.index_layout import ARRAY
from fad.ops.places.indexing import getitem_p, scatter_p

rng = np.random.default_rng(0)
N = 15_000
X, A = rng.normal(size=N), rng.normal(size=(60, 90))
MIXED = rng.permutation(N)
OPERANDS = (X, A)


def grad(f, k=0):
    """Return the gradient of a weighted sum of what a function looks up."""

    def total(*xs):
        y = f(*xs)
        return np.sum(y * np.arange(1.0, y.size + 1).reshape(y.shape))

    return fad.grad(total, argnums=k)


LOOKED_UP = {
    "all": lambda x, a: x[np.arange(N)],
    "the other way round": lambda x, a: x[np.arange(N)[::-1]],
    "every third": lambda x, a: x[np.arange(N)[::3]],
    "with negative places": lambda x, a: x[np.arange(-N, 0)],
    "reflected": lambda x, a: np.pad(x, 7, mode="reflect"),
    "the edges": lambda x, a: np.pad(x, 7, mode="edge"),
    "around": lambda x, a: np.pad(x, 7, mode="wrap"),
    "symmetric": lambda x, a: np.pad(x, (1, 6), mode="symmetric"),
    "one place more": lambda x, a: x[np.append(np.arange(N), 17)],
    "one place before": lambda x, a: x[np.append([17], np.arange(N))],
    "rows": lambda x, a: a[np.r_[3:60, 0:60]],
    "columns": lambda x, a: a[:, np.r_[89:-1:-1, 5:80]],
    "twice the same": lambda x, a: x[np.r_[0:4000, 0:4000]],
    "one place often": lambda x, a: x[np.r_[np.full(4000, 3), 0:4000]],
}
AS_IT_IS = {
    "in disorder": lambda x, a: x[MIXED],
    "many runs": lambda x, a: x[np.concatenate([np.arange(700 * (k % 3), 700 * (k % 3) + 600) for k in range(12)])],
    "few places": lambda x, a: x[np.arange(N)[:100]],
    "two arrays": lambda x, a: a[np.arange(60)[:, None], np.arange(90)],
    "beside a number": lambda x, a: a.reshape(1, 60, 90)[0, np.arange(60)],
    "places that are no constant": lambda x, a: x[(np.arange(N) + (x[0] > 100.0)) % N],
}


def indexed(graph):
    """Return the operations that look up or add at arrays of places."""
    looked = [eq for eq in graph.equations if eq.prim is getitem_p and ARRAY in eq.params["template"]]
    added = [eq for eq in graph.equations if eq.prim is scatter_p]
    return looked + [eq for eq in added if "array" in str(eq.params["indices"])]


EVERY = {**LOOKED_UP, **AS_IT_IS}
PROGRAMS = {
    **EVERY,
    **{f"the gradient of {name}": grad(f) for name, f in EVERY.items()},
    **{f"the gradient in a of {name}": grad(EVERY[name], 1) for name in ("rows", "columns", "two arrays")},
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_program_with_known_places_computes_the_same(name):
    f = PROGRAMS[name]
    graph = fold_constants(fad.make_graph(f)(*OPERANDS))
    found = place_runs(graph)
    check_types(found)
    np.testing.assert_allclose(found(*OPERANDS)[0], graph(*OPERANDS)[0], rtol=1e-14)
    fast = compiled(f, *OPERANDS)
    for _ in range(2):
        np.testing.assert_allclose(fast(*OPERANDS), graph(*OPERANDS)[0], rtol=1e-12)


@pytest.mark.parametrize("name", [*LOOKED_UP, "the gradient of reflected", "the gradient of the edges",
                                  "the gradient of around", "the gradient in a of columns"])  # fmt: skip
def test_runs_of_places_are_slices(name):
    graph = fold_constants(fad.make_graph(PROGRAMS[name])(*OPERANDS))
    assert indexed(graph)
    assert not indexed(place_runs(graph))


@pytest.mark.parametrize("name", AS_IT_IS)
def test_other_places_stay(name):
    graph = fold_constants(fad.make_graph(AS_IT_IS[name])(*OPERANDS))
    assert place_runs(graph) is graph


@pytest.mark.parametrize("name", ["looked up", "arranged"])
def test_an_array_of_the_users_may_change_between_calls(name):
    places, factors = np.arange(N), rng.normal(size=(150, 100))
    f = {
        "looked up": lambda x: x[places] + 0.0,
        "arranged": lambda x: (x.reshape(100, 150).T * factors).T,
    }[name]
    run = compiled(f, X)
    for k in (7001, 77, N - 2):
        places[k] = 5
        factors.reshape(-1)[k] = 5.0
        np.testing.assert_allclose(run(X), f(X), rtol=1e-14)
