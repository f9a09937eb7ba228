"""What large tables between products are computed from runs strip by strip, and gives what it gives at once."""

import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from natively import native

import fad
from fad.compile.legalize.layouts import strip_mine
from fad.compile.pipeline import optimise

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)


@pytest.fixture
def short_strips(monkeypatch):
    """Let strips pay from small tables on."""
    for name, value in {"STRIP": 1 << 9, "LEAST": 1 << 10, "_SHORTEST": 3}.items():
        monkeypatch.setattr(strip_mine, name, value)


def distances(x, w):
    squares = np.sum(x**2, axis=1) + np.sum(w**2, axis=1)[:, None] - 2 * w @ x.T
    return np.sum(np.min(squares, axis=0))


def cross_entropy(x, w):
    scores = np.tanh(x) @ w.T
    scores = scores - np.max(scores, axis=1, keepdims=True)
    return np.mean(np.log(np.sum(np.exp(scores), axis=1)) - scores[:, 1])


def two_layers(x, w):
    hidden = np.maximum(x @ w.T, 0.1)
    return np.sum(np.tanh(hidden @ w) ** 2) + np.sum(hidden**2)


def kernel(x, w):
    return np.sum(np.exp(-0.1 * (x @ x.T))) + np.sum(w)


def mixture(x, w):
    centred = x - w[:, None, :]
    factors = np.array([0.5 * np.eye(3), 0.1 * np.ones((3, 3))], x.dtype)[[0, 1, 0, 1]]
    terms = -0.5 * np.sum((centred @ factors) ** 2, axis=2).T
    largest = np.max(terms, axis=1, keepdims=True)
    return np.sum(np.log(np.sum(np.exp(terms - largest), axis=1)) + largest[:, 0])


def of_vectors(x, w):
    hidden = np.sin(x @ w.T)
    return np.sum((hidden @ w[:, 0] - x[:, 0]) ** 2) + np.sum((x[:, 1] @ hidden) ** 2)


def of_a_batch(x, w):
    scores = x.reshape(-1, 1, x.shape[1]) * w @ w.T
    return np.sum(np.exp(scores / 9.0) @ w)


def normalised_along_the_rows(x, w):
    hidden = x @ w.T
    scaled = (hidden - np.mean(hidden, axis=0)) / (1.0 + np.std(hidden, axis=0))
    return np.sum(np.tanh(scaled) @ w)


def of_every_other_row(x, w):
    return np.sum(np.exp((x @ w.T)[::2]))


REDUCED = [
    distances, cross_entropy, two_layers, kernel, mixture, of_vectors, of_a_batch, normalised_along_the_rows,
    of_every_other_row,
]  # fmt: skip


def kept_rows(x, w):
    scores = x @ w.T
    return np.max(np.exp(scores), axis=1), (scores > 0).sum(0)


def kept_columns(x, w):
    scores = w @ x.T
    return np.min(scores, axis=0, keepdims=True), np.cos(scores) @ x


def the_table_itself(x, w):
    scores = x @ w.T
    return scores, np.exp(scores).sum(0)


def loops_of(f, *xs):
    """Return the numbers of steps of the loops that strips became, in the program of a function."""
    graph = strip_mine.strip_mine(optimise(fad.make_graph(f)(*xs)))
    return [eq.params["length"] for eq in graph.equations if eq.prim.archetype == "loop"]


def arguments(rows, dtype=np.float64):
    return rng.normal(size=(rows, 3)).astype(dtype), rng.normal(size=(4, 3)).astype(dtype)


def assert_same(found, wanted, dtype):
    for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(wanted), strict=True):
        assert (type(a), a.dtype, a.shape) == (type(b), b.dtype, b.shape)
        np.testing.assert_allclose(a, b, *((1e-11, 1e-11) if dtype is np.float64 else (2e-4, 2e-4)))


@pytest.mark.usefixtures("short_strips")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("rows", [96, 101])
@pytest.mark.parametrize("f", REDUCED)
def test_a_value_and_gradient_in_strips_are_those_of_whole_tables(f, rows, dtype):
    xs = arguments(rows, dtype)
    both = fad.value_and_grad(f, (0, 1))
    assert_same(native(both, *xs), both(*xs), dtype)


@pytest.mark.usefixtures("short_strips")
@pytest.mark.parametrize("rows", [96, 101])
@pytest.mark.parametrize("f", [kept_rows, kept_columns, the_table_itself])
def test_what_is_wanted_of_each_row_is_kept(f, rows):
    xs = arguments(rows)
    assert_same(native(f, *xs), f(*xs), np.float64)


@pytest.mark.usefixtures("short_strips")
@pytest.mark.parametrize("f", [distances, cross_entropy, two_layers, mixture, of_vectors, kept_rows, kept_columns])
def test_tables_are_computed_in_strips(f):
    whole = f if f in (kept_rows, kept_columns) else fad.grad(f, 1)
    assert len(loops_of(whole, *arguments(96))) == 1


@pytest.mark.usefixtures("short_strips")
@pytest.mark.parametrize("f", [the_table_itself, of_every_other_row])
def test_a_table_that_is_wanted_as_a_whole_is_computed_as_a_whole(f):
    assert loops_of(f, *arguments(96)) == []


@pytest.mark.usefixtures("short_strips")
def test_the_second_derivatives_in_strips_are_those_of_whole_tables():
    xs = arguments(101)
    hessian = fad.hessian(cross_entropy, 1)
    assert_same(native(hessian, *xs), hessian(*xs), np.float64)


@pytest.mark.usefixtures("short_strips")
def test_a_question_in_between_is_answered_for_the_values_of_each_call():
    def f(x, w):
        scores = x @ w.T
        total = np.sum(np.exp(scores))
        return total * 2.0 if total > 400.0 else np.sum(scores**2)

    fast = fad.jit(f)
    for scale in (1.0, 0.1, 3.0, 0.2, 1.0, 0.1):
        x, w = (scale * a for a in arguments(101))
        np.testing.assert_allclose(fast(x, w), f(x, w), 1e-12)


def test_small_tables_are_left_as_they_are():
    assert loops_of(fad.grad(distances, 1), *arguments(101)) == []


def test_a_program_of_large_tables_takes_less_memory_than_one_of_them():
    x, w = rng.normal(size=(60_000, 4)), rng.normal(size=(50, 4))
    slope = fad.grad(distances, 1)
    fast = fad.jit(slope)
    wanted = fast(x, w)
    tracemalloc.start()
    found = fast(x, w)  # is compiled now
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < x.shape[0] * w.shape[0] * x.itemsize
    np.testing.assert_allclose(found, wanted, 1e-9, 1e-9)


STEPS = {
    "exp": lambda t, x, w: np.exp(-(t**2)),
    "shift": lambda t, x, w: t - np.max(t, axis=1, keepdims=True),
    "scale": lambda t, x, w: t / (1.0 + np.sum(t**2, axis=1, keepdims=True)),
    "mask": lambda t, x, w: np.where(t > 0, t, 0.5),
    "centre": lambda t, x, w: t - np.mean(t, axis=0),
    "row": lambda t, x, w: t * w[:, 0],
    "column": lambda t, x, w: t + x[:, :1],
    "layer": lambda t, x, w: np.tanh(t @ w) @ w.T,
    "turn": lambda t, x, w: np.tanh(w @ x.T @ t @ t.T / 9.0).T,
    "cut": lambda t, x, w: np.concatenate([t[:, :2], t[:, 2:] ** 2], axis=1),
    "reverse": lambda t, x, w: t[::-1],
    "apart": lambda t, x, w: (t.reshape(-1, 2, 2) * w[:2, :2]).reshape(-1, 4),
}


@pytest.mark.usefixtures("short_strips")
@given(
    names=st.lists(st.sampled_from(sorted(STEPS)), min_size=1, max_size=5),
    rows=st.sampled_from([60, 61, 64]),
    seed=st.integers(0, 9),
)
def test_random_programs_in_strips_do_what_a_plain_run_does(names, rows, seed):
    draw = np.random.default_rng(seed)
    x, w = draw.normal(size=(rows, 3)) / 2, draw.normal(size=(4, 3)) / 2

    def f(x, w):
        t = x @ w.T
        for name in names:
            t = STEPS[name](t, x, w)
        return np.sum(t**2) + np.sum(np.sin(t) @ w)

    both = fad.value_and_grad(f, (0, 1))
    found, wanted = native(both, x, w), both(x, w)
    for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, 1e-9, 1e-9 * max(1.0, np.abs(b).max()))
