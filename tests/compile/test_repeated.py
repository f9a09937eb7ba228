"""What `np.repeat` and `np.tile` copy is computed in the shape of the copies."""

import numpy as np
import pytest
from natively import compiled, native

import fad
from fad.compile.legalize.layouts.repeated import compute_repeated
from fad.compile.pipeline import optimise

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)
N = 700
X, V = rng.normal(size=(N, 4)), rng.normal(size=N)

REPEATED = {
    "rows": lambda x, v: np.repeat(x * 2.0, 3, axis=0),
    "columns": lambda x, v: np.repeat(x + v[:, None], 3, axis=1),
    "tiles": lambda x, v: np.tile(x * x, (2, 3)),
    "a join": lambda x, v: np.repeat(np.concatenate([x + 1.0, v[:, None] * 2.0, x[:, :2]], axis=1), 2, axis=0).ravel(),
    "a join along the repeated axis": lambda x, v: np.repeat(np.concatenate([x, x * 2.0]), 2, axis=0),
    "a vector": lambda x, v: np.repeat(v - 1.0, 8),
    "a number": lambda x, v: np.tile(v[:1] * 2.0, 5000),
    "integers": lambda x, v: np.repeat((10 * np.arange(N)[:, None] + np.arange(4)), 2, axis=0).ravel() + x.size,
    "booleans": lambda x, v: np.repeat(x > v[:, None], 2, axis=0),
    "what is read again": lambda x, v: (lambda y: (np.repeat(y, 2, axis=0), y))(x * 2.0),
    "a function": lambda x, v: np.repeat(np.exp(x), 2, axis=0),
    "pieces of a larger array": lambda x, v: np.concatenate([np.repeat(x, 2, axis=0).ravel(), -2 * v]),
    "an outer product": lambda x, v: np.broadcast_to((x * 2.0)[:, None, :], (N, 5, 4)).reshape(-1, 4),
    "the derivative": lambda x, v: fad.grad(lambda x: np.sum(np.sin(np.repeat(x, 3, axis=0)) ** 2))(x),
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", REPEATED)
def test_what_is_repeated_is_the_same(name, dtype):
    f, xs = REPEATED[name], (X.astype(dtype), V.astype(dtype))
    fast = compiled(f, *xs)
    for _ in range(2):
        for a, b in zip(fad.tree.leaves(fast(*xs)), fad.tree.leaves(f(*xs)), strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_allclose(a, b, rtol=1e-12 if dtype is np.float64 else 1e-5)


def stored(f):
    """Return the names and shapes of what is computed in loops after the pass."""
    graph = compute_repeated(optimise(fad.make_graph(f)(X, V)))
    elementwise = [eq for eq in graph.equations if eq.prim.archetype == "elementwise"]
    return {(eq.prim.name, graph.types[eq.outs[0]].shape) for eq in elementwise}


def test_cheap_operations_are_done_in_the_shape_of_the_copies():
    assert stored(REPEATED["rows"]) == {("multiply", (N, 3, 4))}
    parts = {("add", (N, 2, 4)), ("multiply", (N, 2, 1)), ("materialise", (N, 2, 2))}
    assert stored(REPEATED["a join"]) == parts


def test_what_is_costly_or_read_again_is_computed_once():
    assert stored(REPEATED["a function"]) == {("exp", (N, 4)), ("materialise", (N, 2, 4))}
    assert stored(REPEATED["what is read again"]) == {("multiply", (N, 4)), ("materialise", (N, 2, 4))}


def test_a_repeated_array_is_native_where_it_is_wanted():
    f = REPEATED["pieces of a larger array"]
    np.testing.assert_allclose(native(f, X, V), f(X, V))
