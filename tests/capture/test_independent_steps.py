"""Captured loops whose steps are independent of each other run at once, others do not; all are right."""

import numpy as np
import pytest
from capture.agreement import agree, close

import fad
from fad.control_flow.bodies.axis_positions import is_places, places
from fad.control_flow.bodies.counters import Counters

N = 12


def columns(x):
    y = x * 1.0
    for j in range(N):
        y[:, j] = np.sin(x[:, j]) * y[0, j] + x[j]
        k = j
    return np.sum(y * y) * k


def backwards(x):
    y = x * 0.1
    for j in range(N - 1, -1, -1):
        y[j] = y[j] * x[:, j] @ x + x[N - 1 - j]
        last = np.sum(y[j])
    return np.sum(y) * last


def beside(x):
    y = x * 1.0
    for j in range(1, N):
        y[j - 1, 1:] = x[j, :-1] * x[j, 2] + np.outer(x[j], x[:, j]).sum(0)[1:]
        y[j - 1, 0] += j / 3 + j % 3
    return np.sum(y * y)


def each_element(x):
    y = x * 1.0
    for i in range(N):
        for j in range(N):
            y[i, j] = y[i, j] * 2.0 + x[j, i] * x[i, j]
    return np.sum(y * y)


def chosen(x):
    y = x * 1.0
    for j in range(N):
        y[j] = np.where(x[j] > 0, y[j] * x[j], 0.1)
        y[j] /= np.sum(y[j] * y[j])
    return np.sum(y * x)


def triangle(x):
    b = x * 0.5
    for i in range(N):
        for j in range(N):
            b[i, j] += np.dot(x[i + 1 :, i], b[i + 1 :, j])
        b[i] *= 0.9
    return np.sum(b * b)


def factor(x):
    b = x * 0.1 + np.eye(N)
    for i in range(1, N):
        for j in range(N):
            b[i, j] -= np.dot(x[i, :i], b[:i, j])
    return np.sum(b * b)


def broadcast(x):
    y = np.zeros((3, N, 4))
    for j in range(N):
        y[:, j] = x[j, :4]
        y[:, j] += x[j, 0]
    return np.sum(y * y)


INDEPENDENT = [columns, backwards, beside, each_element, chosen, triangle, broadcast]


def reads_the_step_before(x):
    y = x * 1.0
    for j in range(1, N):
        y[j] += 0.1 * y[j - 1]
    return np.sum(y * y)


def carries_a_number(x):
    y, s = x * 1.0, 0.0
    for j in range(N):
        s = s * 0.5 + x[j, 0]
        y[j] *= s
    return np.sum(y * y)


def counts_from_the_end(x):
    y = x * 1.0
    for j in range(N):
        y[j - 3] += y[j - 3] * np.sum(y[j + 1 :] * x[j + 1 :], axis=0)
    return np.sum(y * y)


def swaps(x):
    a, b = x * 1.0, x * 2.0
    for _ in range(N - 1):
        a, b = b, a
    return np.sum(a) + 3.0 * np.sum(b)


def writes_and_swaps(x):
    a, b = x * 1.0, x * 2.0
    for j in range(N - 1):
        a[j] += b[j] * b[j]
        a, b = b, a
    return np.sum(a * a) + 3.0 * np.sum(b * b)


def keeps_what_was_there(x):
    a, c = x * 1.0, x * 1.0
    for j in range(N):
        c = a * 1.0
        a[j] *= 2.0
    return np.sum(a * c)


def writes_at_two_places(x):
    y = x * 1.0
    for j in range(N - 1):
        y[j] *= 2.0
        y[j + 1] += x[j]
    return np.sum(y * y)


DEPENDENT = [
    reads_the_step_before, carries_a_number, counts_from_the_end, writes_and_swaps, keeps_what_was_there,
    writes_at_two_places,
]  # fmt: skip


def loops_of(f):
    with fad.config.use(loops="capture"):
        graph = fad.make_graph(f)(np.ones((N, N)))
    return [eq for eq in graph.equations if eq.prim.archetype == "loop"]


@pytest.mark.parametrize("f", [*INDEPENDENT, *DEPENDENT, swaps, factor])
def test_every_transform_gives_what_python_gives(f):
    agree(f, np.random.default_rng(3).uniform(-1, 1, (N, N)))


@pytest.mark.parametrize("f", INDEPENDENT)
def test_independent_steps_are_no_loop(f):
    assert not loops_of(f)


@pytest.mark.parametrize("f", DEPENDENT)
def test_steps_that_read_what_others_changed_are_a_loop(f):
    assert loops_of(f)


def test_a_loop_around_independent_steps_stays_one():
    (loop,) = loops_of(factor)
    assert not any(eq.prim.archetype == "loop" for eq in loop.params["body"].equations)


def test_steps_that_would_take_much_more_memory_than_the_arrays_are_a_loop():
    def f(x):
        y = x[:, 0] * 1.0
        for j in range(400):
            y[j] = np.sum(np.outer(x[:, 0], x[:, 1]) * x[j, 1])
        return y

    with fad.config.use(loops="capture"):
        graph = fad.make_graph(f)(np.ones((400, 2)))
    assert all(t.size <= 400 * 400 for t in graph.types)


def test_an_index_out_of_range_is_an_error():
    def f(x):
        y = x * 1.0
        for j in range(N):
            y[j + 1] = x[j]
        return y

    with fad.config.use(loops="capture"), pytest.raises(IndexError):
        fad.jit(f)(np.ones(N))


def test_python_numbers_stay_python_numbers():
    def f(x):
        y = x * 1.0
        for j in range(N):
            y[j] += 1.0
            k = 2 * j + 1
        return y, k

    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        for _ in range(2):
            y, k = fast(np.zeros(N))
            close(y, np.ones(N), "y")
            assert type(k) is int
            assert k == 2 * N - 1


def test_places_are_known_by_identity():
    x = places(9)
    assert x is places(9)
    assert is_places(x)
    assert is_places(places(4, -1))
    copy = x.copy()
    copy.flags.writeable = False
    assert not is_places(copy)


def test_counters_are_the_integers_that_follow_the_number_of_the_step():
    def f(x):
        y = x * 1.0
        for j in range(1, N):
            y[N - 1 - j] = y[N - j] + x[3 + 0 * j]
        return y

    with fad.config.use(loops="capture"):
        graph = fad.make_graph(f)(np.ones(2 * N))
    (body,) = [eq.params["body"] for eq in graph.equations if eq.prim.archetype == "loop"]
    number = next(i for i in body.inputs if not body.types[i].shape and body.types[i].dtype.kind == "i")
    found = Counters(body, [number], N - 1)
    (write,) = [eq for eq in body.equations if eq.prim.name == "index_set"]
    assert found.place(write, 2)[0] == 0
    assert found.place(write, 2).step == -1


@pytest.mark.parametrize("adds", [False, True])
def test_a_number_of_an_outer_step_that_is_written_in_all_inner_ones_has_a_derivative(adds):
    n = 70  # so large that both loops run at once

    def f(c):
        y = np.ones((n, n))
        for i in range(1, n):
            for j in range(n):
                if adds:
                    y[i, j] += c[i - 1] * c[i - 1]
                else:
                    y[i, j] = c[i - 1] * c[i - 1]
        return np.sum(y * y)

    c = np.linspace(0.5, 1.5, n - 1)
    want = fad.grad(f)(c)
    close([fad.jit(fad.grad(f))(c)], [want], "jit of grad")
    close([fad.grad(fad.jit(f))(c)], [want], "grad of jit")
    along = fad.jit(lambda c: fad.jvp(fad.grad(f), (c,), (c,))[1])(c)
    close([along], [fad.jvp(fad.grad(f), (c,), (c,))[1]], "second")
