"""Lists of arrays into which loops put others by their counters: layers of a time stepping, ring buffers."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 0.33, 0.5])
N = 9


def two_layers(x):
    layers = [x * 1.0, x * 0.9]
    for i in range(N):
        layers[i % 2] = 1.9 * layers[(i + 1) % 2] - 0.95 * layers[i % 2] + 0.01 * np.sin(layers[i % 2])
    return np.sum(layers[0]) + 2 * np.sum(layers[1] ** 2)


def layers_by_names_that_are_swapped(x):
    u = [x * 1.0, x * 0.0]
    old, new = 0, 1
    for _ in range(N):
        u[new] = u[old] + 0.1 * np.cos(u[old])
        old, new = new, old
    return np.sum(u[old] * u[new])


def slopes_in_a_ring(x):
    m, y = 4, x
    slopes = [np.zeros_like(x) for _ in range(m)]
    for i in range(N):
        slopes[i % m] = -np.sin(y)
        y = y + 0.1 * (1.5 * slopes[i % m] - 0.5 * slopes[(i - 1) % m])
    return np.sum(y)


def a_ring_that_is_filled_first(x):
    ring, y = [None] * 3, x
    for i in range(N):
        ring[i % 3] = np.sin(y)
        y = y + 0.1 * ring[i % 3]
        if i >= 2:
            y = y - 0.05 * ring[(i + 1) % 3]
    return np.sum(y * ring[0])


def pairs_of_arrays_and_numbers(x):
    ring = [(x * 1.0, 0.0), (x * 0.5, 0.1)]
    for i in range(N):
        u, t = ring[i % 2]
        ring[(i + 1) % 2] = (0.9 * u + 0.1 * np.sin(u + t), t + 0.1)
    return np.sum(ring[0][0]) * ring[1][1]


def parts_of_new_arrays_are_written_first(x):
    layers = [x * 1.0, x * 0.0]
    for i in range(N):
        u = layers[i % 2]
        v = np.zeros_like(u)
        v[1:-1] = 0.3 * u[2:] + 0.5 * u[1:-1]
        v[0] = u[1]
        layers[(i + 1) % 2] = v
    return np.sum(layers[0]) + 3 * np.sum(layers[1])


def in_an_if_and_an_inner_loop(x):
    ring = [x * 1.0, x * 0.5, x * 0.2]
    for i in range(N):
        if i % 4 > 1:
            ring[i % 3] = np.sin(ring[(i + 1) % 3])
        for j in range(2):
            ring[(i + j) % 3] = 0.9 * ring[(i + j) % 3] + 0.1 * ring[j]
        ring[0] = ring[0] * 0.99
    return np.sum(ring[0]) + 2 * np.sum(ring[1]) + 3 * np.sum(ring[2])


def a_list_of_an_object(x):
    class Flow:
        def __init__(self):
            self.u, self.k = [x * 1.0, x * 0.5], 0

        def step(self):
            self.u[1 - self.k % 2] = np.tanh(self.u[self.k % 2]) * 0.9
            self.k += 1

    flow = Flow()
    for _ in range(N):
        flow.step()
    return np.sum(flow.u[0]) - 2 * np.sum(flow.u[1])


def kept_from_step_to_step(x):
    ring, y = [x * 1.0, x * 0.5, x * 0.2], x * 0.0
    for i in range(N):
        y = 0.5 * y + ring[i % 3]
        ring[(i + 1) % 3] = y
    return np.sum(y * ring[1])


def a_while_loop(x):
    ring, k = [x * 1.0, x * 0.5], 0
    while np.sum(ring[k % 2] ** 2) > 0.1:
        ring[(k + 1) % 2] = ring[k % 2] * 0.8
        k += 1
    return np.sum(ring[0]) + 2 * np.sum(ring[1])


CAPTURED = [
    two_layers, layers_by_names_that_are_swapped, slopes_in_a_ring, a_ring_that_is_filled_first,
    pairs_of_arrays_and_numbers, parts_of_new_arrays_are_written_first, in_an_if_and_an_inner_loop,
    a_list_of_an_object, kept_from_step_to_step, a_while_loop,
]  # fmt: skip


def written_after_it_was_put_in(x):
    ring = [x * 1.0, x * 0.5]
    for i in range(N):
        y = np.sin(ring[i % 2])
        ring[(i + 1) % 2] = y
        y[0] = 0.5
    return np.sum(ring[0] * ring[1])


def written_in_the_next_step(x):
    ring, y = [x * 1.0, x * 0.5], x * 0.3
    for i in range(N):
        y[0] = 0.5 * y[1]
        y = y * 0.9 + ring[(i + 1) % 2]
        ring[i % 2] = y
    return np.sum(ring[0] * ring[1] * y)


def taken_out_and_written(x):
    ring = [x * 1.0, x * 0.5, x * 0.2]
    for i in range(N):
        u = ring[i % 3]
        u[1:] = u[:-1] * 0.9
        ring[(i + 1) % 3] = ring[(i + 2) % 3] * 0.99
    return np.sum(ring[0] * ring[1] + ring[2])


def taken_out_and_written_in_the_next_step(x):
    ring, y = [x * 1.0, x * 0.5, x * 0.2], x * 0.3
    for i in range(N):
        y[0] = y[1] * 0.5
        y = ring[i % 3]
        ring[(i + 1) % 3] = ring[(i + 2) % 3] * 0.99
    return np.sum(ring[0] * ring[1] + ring[2])


def an_element_has_another_name(x):
    u = x * 1.0
    ring = [u, x * 0.5]
    for i in range(N):
        ring[1] = ring[i % 2] * 0.9
        u[i % 4] = 0.5 * u[(i + 1) % 4]
    return np.sum(ring[0] * ring[1])


def put_in_by_an_if_and_written_behind_it(x):
    ring, y = [x * 1.0, x * 0.5], x * 0.3
    for i in range(N):
        if y[0] > 0.1:
            y = ring[i % 2] * 0.9
            ring[(i + 1) % 2] = y
        else:
            y = y * 1.1
        y[1] = 0.5 * y[0] + 0.1
    return np.sum(ring[0] * ring[1] * y)


def put_in_by_an_inner_loop_and_written_behind_it(x):
    ring, y = [x * 1.0, x * 0.5], x * 0.3
    for i in range(N):
        for j in range(3):
            y = ring[(i + j) % 2] * 0.9
            ring[(i + j + 1) % 2] = y
        y[1] = 0.5 * y[0] + 0.1
    return np.sum(ring[0] * ring[1] * y)


def the_same_array_twice(x):
    ring = [x * 1.0, x * 0.5]
    for i in range(N):
        ring[i % 2] = ring[(i + 1) % 2] * 0.9
        ring[(i + 1) % 2] = ring[i % 2]
    ring[0][1] = 0.3
    return np.sum(ring[0] * ring[1])


def a_name_is_written_behind_the_loop(x):
    ring, y = [x * 1.0, x * 0.5], x
    for i in range(N):
        y = ring[i % 2] * 0.9
        ring[(i + 1) % 2] = y
    y[0] = 0.1
    return np.sum(ring[0] * ring[1])


def a_name_from_before_is_written_behind_the_loop(x):
    u = x * 1.0
    ring = [u, x * 0.5]
    for i in range(N):
        ring[1] = ring[i % 2] * 0.9
    ring[0][2] = 0.4
    return np.sum(u * ring[1])


def another_list_has_the_arrays(x):
    ring = [x * 1.0, x * 0.5]
    kept = list(ring)
    for i in range(N):
        ring[i % 2] = ring[(i + 1) % 2] * 0.9
    kept[0][1] = 0.5
    return np.sum(ring[0] * ring[1] * kept[0])


def another_name_for_the_list(x):
    ring = [x * 1.0, x * 0.5]
    other, s = ring, 0.0
    for i in range(N):
        ring[i % 2] = ring[(i + 1) % 2] * 0.9
        s = s + np.sum(other[0])
    return s + np.sum(other[1])


def arrays_of_another_shape(x):
    ring = [x * 1.0, x * 0.5]
    for i in range(4):
        ring[i % 2] = ring[(i + 1) % 2][: 4 - i] * 0.9
    return np.sum(ring[0]) * np.sum(ring[1])


LEFT = [
    written_after_it_was_put_in, written_in_the_next_step, taken_out_and_written,
    taken_out_and_written_in_the_next_step, an_element_has_another_name, put_in_by_an_if_and_written_behind_it,
    put_in_by_an_inner_loop_and_written_behind_it, the_same_array_twice, a_name_is_written_behind_the_loop,
    a_name_from_before_is_written_behind_the_loop, another_list_has_the_arrays, another_name_for_the_list,
    arrays_of_another_shape,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_puts_arrays_into_a_list_is_captured(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert "recorded step by step" not in what, text


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_arrays_that_are_written_while_a_list_knows_them_are_right(f):
    agree(f, X, order=1)


def test_a_place_that_is_not_there_is_an_index_error():
    def f(x):
        ring = [x * 1.0, x * 0.5]
        for i in range(N):
            ring[i % 3] = ring[0] * 0.9
        return np.sum(ring[1])

    with fad.config.use(loops="capture"), pytest.raises(IndexError):
        fad.jit(f)(X)


def test_the_list_that_is_returned_is_a_list_of_arrays():
    def f(x):
        ring = [x * 1.0, x * 0.5]
        for i in range(N):
            ring[i % 2] = ring[(i + 1) % 2] * 0.9
        return ring

    with fad.config.use(loops="capture"):
        got = fad.jit(f)(X)
    assert type(got) is list
    for a, b in zip(got, f(X), strict=True):
        np.testing.assert_allclose(a, b)
