"""Where the state of a loop nest lies, what is kept of it, and that sums of any length are right."""

import re

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import fad
from fad.compile.codegen.nests.added_pieces import add_into
from fad.compile.pipeline import legalize, optimise
from fad.compile.targets.select import using


@pytest.fixture
def rng():
    return np.random.default_rng(11)


def nest(f, *args):
    """Return f compiled for such arguments; all its loops must be one function."""
    with using("llvm"), fad.config.use(loops="capture"):
        fast = fad.jit(f)
        fast(*args)
        fast(*args)
    text = fast.explain()
    assert "loop is one function" in text or "loops are one function each" in text, text
    assert "calls of NumPy" not in text, text
    return fast


def check(f, *args):
    """Compare a function's value and gradient with those without jit, in two calls."""
    g = fad.value_and_grad(f, argnums=tuple(range(len(args))))
    value, wanted = g(*args)
    fast = nest(g, *args)
    for _ in range(2):
        got = fast(*args)
        np.testing.assert_allclose(got[0], value, rtol=1e-12)
        for a, b in zip(got[1], wanted, strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-9, atol=1e-12)


def rolled(u):
    """The whole state is read, each element where another one was: two places, and each step keeps it."""
    for k in range(7):
        u = u * u * 0.5 + 0.3 * u[::-1] + k
        u = u / (1.0 + np.max(u))
    return np.sum(u * u)


def swapped(u):
    v = 0.5 * u
    for _ in range(6):
        u, v = v * u * 0.1 + 1.0, u * 0.9
    return np.sum(u * v)


def handed_on(u):
    """The state is kept twice and comes out as it is; the last state is read as well."""
    rows, a = np.zeros((5, u.shape[0])), u * 1.0
    for k in range(5):
        rows[k] = a
        a = a * a * 0.25 + a[::-1]
    return np.sum(rows * rows * 0.5) + np.sum(a * a * u)


def nested(u):
    a = u * 1.0
    for _ in range(3):
        for k in range(4):
            a = a * a * 0.1 + a[::-1] * (k + 1.0) * 0.2
        a = a + u
    return np.sum(a * a)


@pytest.mark.parametrize("n", [5, 200, 700])
@pytest.mark.parametrize("f", [rolled, swapped, handed_on, nested])
def test_a_state_that_every_step_keeps_is_the_right_one_in_every_step(f, n, rng):
    check(f, rng.uniform(0.1, 0.9, n))


@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_keeps_its_states_in_either_direction(reverse, rng):
    def f(u, xs):
        step = lambda s, x: (s * s * 0.3 + s[::-1] * x, np.sum(s * x))
        last, ys = fad.scan(step, u, xs, reverse=reverse)
        return np.sum(last * last) + np.sum(np.sin(ys))

    check(f, rng.uniform(0.1, 0.9, 300), rng.uniform(0.1, 0.9, 9))


def test_a_state_that_is_kept_is_not_overwritten_by_an_update_of_it(rng):
    def f(u):
        a = u * 1.0
        for k in range(40):
            b = a * a
            a[k] = 0.5 * a[k + 1]
            a = a[::-1] * 0.5 + b * 0.1
        return np.sum(a * a)

    check(f, rng.uniform(0.1, 0.9, 250))


@pytest.mark.parametrize("n", [3, 17, 63, 64, 100, 511, 512, 1023, 1500])
def test_sums_and_dot_products_of_any_length_add_every_element_once(n, rng):
    def f(x, w):
        s = 0.0
        for k in range(1, n, max(1, n // 20)):
            s += np.dot(x[:k], w[:k]) + np.sum(x[k:] * x[k:]) + np.dot(x[:k][::-1], w[:k])
        return s

    check(f, rng.normal(size=n), rng.normal(size=n))


def test_what_is_written_where_a_mask_leaves_it_is_no_write(rng):
    def f(c, a):
        y, s = c * 1.0, 0.0
        for i in range(1, 40):
            for j in range(5):
                y[:i, j] += a[i, j] * a[i, :i]
                s = 0.5 * s + a[j, i]  # or all steps are done at once
        return np.sum(y * y * a[:, :5]) + s

    c, a = rng.normal(size=(40, 5)), rng.normal(size=(40, 40))
    check(f, c, a)
    with fad.config.use(loops="capture"):
        graph = legalize(optimise(fad.make_graph(fad.grad(f))(c, a)))
    outer = [eq for eq in graph.equations if eq.prim.archetype == "loop"][-1].params["body"]
    inner = [eq for eq in outer.equations if eq.prim.archetype == "loop"][-1].params["body"]
    writes = lambda g: sum(eq.prim.name in ("index_set", "index_add") for eq in g.equations)
    assert writes(inner) >= 3  # or there is nothing to do
    assert writes(add_into(inner)) == 0


def test_writes_at_a_place_known_in_the_loop_keep_their_order(rng):
    def f(x):
        y = x * 1.0
        for k in range(20):
            y[k] = 0.5 * y[k]
            y[k + 1] += y[k]
            y[k] += 3.0
            y[k + 1] = 0.1 * y[k + 1] * x[k]
            y[k] = y[k + 1] + y[k]
        return np.sum(y * y)

    check(f, rng.normal(size=300))


def test_places_that_turn_round_an_axis_are_those_of_numpy(rng):
    """A mask of reversed places may hide negative ones, or not."""

    def f(x, w):
        n, s = x.shape[0], 0.0
        i = np.arange(n)
        for k in range(3, n):
            inside = x[np.where(i < k, k - 1 - i, 0)]
            beyond = x[np.where(i < k, k - 4 - i, 0)]
            s += np.sum(np.where(i < k, inside * w + beyond * w * w, 0.0))
        return s

    x, w = rng.normal(size=40), rng.normal(size=40)
    g = fad.grad(f, argnums=(0, 1))
    with using("llvm"), fad.config.use(loops="capture"):
        fast = fad.jit(g)
        for _ in range(2):
            for got, wanted in zip(fast(x, w), g(x, w), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-10)


def carried_backward(f, x):
    """Return how many arrays each loop of the gradient carries, inner loops included."""
    found = []

    def look(graph):
        for eq in graph.equations:
            if eq.prim.archetype == "loop":
                body, first = eq.params["body"], eq.params["consts"] + eq.params["index"]
                if eq.params["reverse"]:
                    carried = body.inputs[first : first + eq.params["carries"]]
                    found.append(sum(body.types[i].shape == x.shape for i in carried))
                look(eq.params["body"])

    with fad.config.use(loops="capture"):
        look(fad.make_graph(fad.grad(f))(x))
    return found


def test_what_inner_loops_carry_has_no_cotangent_if_it_depends_on_nothing_differentiated(rng):
    """As the factors of a linear solver do, which are computed beside the solution."""

    def f(u):
        p, q = np.zeros_like(u), u * 1.0
        for _ in range(4):
            p[0], q[0] = 0.5, 1.0
            for j in range(1, u.shape[0]):
                p[j] = 1.0 / (2.0 + p[j - 1])
                q[j] = (q[j] + 0.3 * q[j - 1]) * p[j]
        return np.sum(q * q)

    x = rng.normal(size=30)
    check(f, x)
    assert carried_backward(f, x) == [1, 1]


def test_a_branch_in_a_loop_has_cotangents_of_what_either_side_makes_of_it(rng):
    def f(u):
        p, q = np.ones_like(u), u * 1.0
        for i in range(3):
            for j in range(1, u.shape[0]):
                if q[j] > 0.2 * i:
                    p[j] = 1.0 / (2.0 + p[j - 1])
                    q[j] = q[j] * p[j] + q[j - 1]
                else:
                    q[j] = q[j - 1] * 0.5 - q[j]
        return np.sum(q * q)

    check(f, rng.normal(size=30))


def read_in_a_branch(w, m):
    d = np.ones((m.shape[0] + 1, m.shape[1] + 1))
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] > 0:
                c = d[i, j]
            else:
                c = 0.5 * d[i, j + 1] + w * d[i + 1, j]
            d[i + 1, j + 1] = c
    return d[-1, -1]


def written_in_a_branch(w, m):
    d = np.ones((m.shape[0] + 1, m.shape[1] + 1))
    for i in range(m.shape[0]):
        for j in range(m.shape[1]):
            if m[i, j] > 0:
                d[i + 1, j + 1] = d[i, j] * np.sin(w)
            elif m[i, j] > -1:
                d[i + 1, j + 1] = min(d[i, j + 1] + w, d[i + 1, j] * w, d[i, j] - 1.0)
    return d[-1, -1] + d.sum()


@pytest.mark.parametrize("f", [read_in_a_branch, written_in_a_branch])
def test_a_branch_keeps_what_it_reads_of_an_array_and_no_state_of_a_step(f, rng):
    m = rng.normal(size=(12, 12))
    check(f, 0.7, m)
    text = nest(fad.grad(f), 0.7, m).explain()
    assert int(re.search(r"take (\d+) bytes of memory", text)[1]) < 20_000  # each of 144 states has 1352 bytes


@pytest.mark.parametrize("f", [read_in_a_branch, written_in_a_branch])
def test_a_loop_backward_adds_no_whole_arrays_for_what_a_branch_read(f, rng):
    def count_sums(graph):
        own = sum(eq.prim.name == "add" and bool(graph.types[eq.outs[0]].shape) for eq in graph.equations)
        return own + sum(count_sums(body) for eq in graph.equations for body in eq.bodies)

    with fad.config.use(loops="capture"):
        graph = optimise(fad.make_graph(fad.grad(f))(0.7, rng.normal(size=(12, 12))))
    assert count_sums(graph) == 0
