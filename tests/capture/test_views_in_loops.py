"""Loops that read and write through views of an array: they do what NumPy does, at the cost of what they touch."""

import numpy as np
import pytest
from agreement import agree, report_of
from in_place.test_cost import whole_arrays_in_steps

import fad
from fad.compile.pipeline import optimise


def a_slice_of_a_vector(a):
    y = a[1:]
    for t in range(1, len(y)):
        y[t] = y[t] * y[t - 1]
    return a


def every_other_element_backwards(a):
    y = a[-2:0:-2]
    for t in range(1, len(y)):
        y[t] += 0.5 * y[t - 1]
    return a


def a_slice_of_a_slice(a):
    y = a[2:]
    z = y[::2]
    for t in range(len(z) - 1):
        z[t + 1] -= z[t] * y[t]
    return a


def numbers_from_the_end(a):
    y = a[1:]
    for t in range(1, len(y)):
        y[-t] = y[-t] * y[-t - 1]
    return a


def places_below_the_start_and_above(a):
    y = a[1:-1]
    for t in range(-2, 4):
        y[t] = 0.5 * y[t] + y[t - 1]
    return a


def a_view_taken_in_the_loop(a):
    for t in range(1, 6):
        y = a[2:]
        y[t] = y[t] * a[t]
    return a


def windows_of_a_view(a):
    y = a[1:]
    for t in range(len(y) - 4):
        y[t : t + 2] = y[t : t + 2] * y[t + 1 : t + 3]
    return a


def two_views_written_in_turn(a):
    y, z = a[1:], a[:-1]
    for t in range(1, len(y)):
        y[t] = 0.5 * z[t] + 0.2 * y[t - 1]
        z[t] = y[t] * y[t - 1]
    return a


def a_view_and_its_array(a):
    y = a[1:]
    for t in range(1, len(y)):
        a[t] = y[t] * 0.5
        y[t - 1] += a[t - 1] * a[t]
    return a


def a_view_as_a_whole_now_and_then(a):
    y = a[1:]
    for t in range(3):
        y[t] = np.sum(y) * 0.1
        y *= 1.1
        y[t + 1] = y[t] * a[0]
    return a


def a_view_that_the_loop_rebinds(a):
    y = a[1:]
    for t in range(3):
        y[t] = y[t] * 2.0
        y = a[1:]
    return a


def a_choice_in_a_view(a):
    y = a[1:]
    for t in range(1, len(y)):
        if y[t] > 0.2:
            y[t] = y[t] * y[t - 1]
        else:
            a[t] -= y[t]
    return a


def a_while_loop_over_a_view(a):
    y = a[1:]
    t = 1
    while t < len(y) and y[t] < 5.0:
        y[t] += y[t - 1] * 0.5
        t += 1
    return a


def two_loops_over_a_view(a):
    y = a[1:]
    for t in range(2, len(y)):
        for k in range(2):
            y[t] += 0.3 * y[t - k] * y[t - 1]
    return a


def places_from_an_array(a):
    y, places = a[1:], np.array([0, 3, 1, 3])
    for t in range(4):
        y[places[t]] = y[places[t]] * a[t]
    return a


VECTORS = [
    a_slice_of_a_vector, every_other_element_backwards, a_slice_of_a_slice, numbers_from_the_end,
    places_below_the_start_and_above, a_view_taken_in_the_loop, windows_of_a_view, two_views_written_in_turn,
    a_view_and_its_array, a_view_as_a_whole_now_and_then, a_view_that_the_loop_rebinds, a_choice_in_a_view,
    a_while_loop_over_a_view, two_loops_over_a_view, places_from_an_array,
]  # fmt: skip


def elements_of_rows(a):
    for t in range(1, len(a)):
        row = a[t]
        row[1] = row[0] * row[2]
        row[0] = row[1] - a[t - 1, 2]
    return a


def slices_of_rows(a):
    for row in a:
        row[1:] += row[:-1] * 0.5
    return a


def all_of_a_row(a):
    for t in range(len(a)):
        row = a[t]
        row[1] = row[0] * row[2]
        row *= 0.9
    return a


def rows_of_a_transpose(a):
    for t in range(1, 4):
        column = a.T[t]
        column[1:] -= column[:-1] * a[0, 0]
        column[0] = a.T[t - 1, 2]
    return a


def slices_of_a_transpose(a):
    y = a.T[1:]
    for t in range(len(a)):
        y[:, t] = y[:, t] * a[t, 0]
        y[1:, t] += y[:-1, t]
    return a


def parts_of_a_transpose(a):
    y = a.T[:, 1:3]
    for t in range(3):
        y[t : t + 2] *= 0.5
        y[t + 1] += y[t]
        y[t, :] = y[t, ::-1]
    return a


def the_inside_of_a_matrix(a):
    y = a[1:-1, 1:-1]
    for i in range(1, y.shape[0]):
        for j in range(1, y.shape[1]):
            y[i, j] = 0.25 * (y[i - 1, j] + y[i, j - 1]) + a[i, j]
    return a


def windows_in_the_inside(a):
    y = a[1:-1, 1:]
    for t in range(1, 3):
        y[t - 1 : t + 1, t] *= y[t - 1 : t + 1, t - 1]
        y[t, t - 1 : t + 1] += a[t, 0]
    return a


def a_matrix_as_a_vector(a):
    y = a.reshape(-1)
    for t in range(1, y.size):
        y[t] += 0.5 * y[t - 1]
    return a


def a_matrix_as_a_vector_and_as_rows(a):
    y = a.ravel()
    for t in range(1, len(a)):
        y[t] += 0.5 * y[t - 1]
        a[t] = a[t] * y[t]
    return a


def rows_of_four_axes(a):
    y = a.reshape(2, -1, a.shape[1])
    for t in range(2):
        part = y[t, 1:]
        part[0] = part[0] * y[t - 1, 0]
        y[:, 0, t] += part[-1, t]
    return a


MATRICES = [
    elements_of_rows, slices_of_rows, all_of_a_row, rows_of_a_transpose, slices_of_a_transpose, parts_of_a_transpose,
    the_inside_of_a_matrix, windows_in_the_inside, a_matrix_as_a_vector, a_matrix_as_a_vector_and_as_rows,
    rows_of_four_axes,
]  # fmt: skip
NAMED = lambda f: f.__name__


def total(program):
    def f(x):
        y = program(x * 1.0)
        return np.sum(y * np.cos(np.arange(1.0 * y.size)).reshape(y.shape))

    f.__name__ = program.__name__
    return f


@pytest.mark.parametrize("program", VECTORS, ids=NAMED)
def test_a_loop_through_views_of_a_vector_is_numpys(program):
    agree(total(program), np.random.default_rng(0).uniform(0.1, 1.0, 9))


@pytest.mark.parametrize("program", MATRICES, ids=NAMED)
def test_a_loop_through_views_of_a_matrix_is_numpys(program):
    agree(total(program), np.random.default_rng(0).uniform(0.1, 1.0, (6, 5)))


WHOLE = {a_view_that_the_loop_rebinds, a_view_as_a_whole_now_and_then, a_matrix_as_a_vector_and_as_rows}


@pytest.mark.parametrize("program", [f for f in VECTORS + MATRICES if f not in WHOLE], ids=NAMED)
def test_no_step_through_a_view_computes_the_whole_array(program):
    x = np.random.default_rng(0).uniform(0.1, 0.2, 1000 if program in VECTORS else (20, 50))
    report, text = report_of(fad.grad(total(program)), x)
    assert set(report) <= {"captured", "inside"}, text
    g = fad.jit(fad.grad(total(program)))
    g(x), g(x)
    (path,) = g._quick.values()
    assert whole_arrays_in_steps(optimise(path.graph), 900) == []


@pytest.mark.parametrize("view", [lambda a: a[1:], lambda a: a[::-2], lambda a: a.T[2], lambda a: a[1]])
def test_an_index_outside_of_a_view_is_an_error(view):
    a = np.random.default_rng(0).uniform(0.1, 1.0, (7, 7))

    def f(a, places, n):
        y = view(a * 1.0)
        for t in range(n):
            y[places[t]] = y[places[t] - 1] * 2.0
        return np.sum(y)

    size = len(view(a))
    for fun in (f, fad.grad(f)):
        jitted = fad.jit(fun)
        for places in ([0, 1, 2], [0, size, 1], [2, 1, 1 - size], [0, 1, -size], [2, size + 1, 0], [-size - 1, 0, 0]):
            places = np.array(places)
            try:
                f(a, places, 3)
            except IndexError as error:
                with pytest.raises(IndexError, match=str(error)):
                    jitted(a, places, 3)
            else:
                np.testing.assert_allclose(jitted(a, places, 3), fun(a, places, 3), rtol=1e-12)
        with pytest.raises(IndexError, match=f"index {size} is out of bounds"):
            jitted(a, np.arange(9), size + 1)


def test_a_view_that_the_second_half_of_a_condition_reads_outlives_it():
    def trimmed_sum(c):
        d = c[1:]
        n = len(d)
        while n > 0 and d[n - 1] == 0:
            n -= 1
        return np.sum(d[:n] ** 2) + n

    for c in (np.array([1.0, 2.0, 3.0, 0.0, 0.0]), np.array([1.0, 2.0, 0.0, 4.0, 5.0]), np.zeros(5)):
        expected = np.where(np.cumsum(c[::-1])[::-1] > 0, 2 * c, 0.0) * [0, 1, 1, 1, 1]
        np.testing.assert_allclose(fad.jit(trimmed_sum)(c), trimmed_sum(c))
        np.testing.assert_allclose(fad.jit(fad.grad(trimmed_sum))(c), expected)


def test_a_view_that_a_branch_in_a_loop_reads_outlives_it():
    def program(c):
        d = c[::2]
        total = 0.0
        for i in range(12):
            if total < 3.0:
                total = total + d[i % 3]
            total = total + 0.1 * d[0]
        return total + d[1]

    c = np.array([0.5, 1.0, 0.25, 1.0, 0.75])
    np.testing.assert_allclose(fad.jit(program)(c), program(c))
    np.testing.assert_allclose(fad.jit(fad.grad(program))(c), fad.grad(program)(c))


def test_a_view_that_only_the_attempt_to_capture_a_loop_reads_outlives_it():
    def of_no_steps(x):
        v, c = x[:], 0
        while c < 3 and x[0] > 16.0:
            x.flat[1] = v[-1]
            c += 1
        y = x * 1.0
        y += np.dot(v, y)
        return y

    def read_by_an_inner_loop(x):
        v = w = x[::-1]
        for _ in range(4):
            for _ in range(3):
                w = np.flip(v).reshape(2, 2).T.reshape(-1)
            x *= x * 1.0
        return w + x

    for f in (of_no_steps, read_by_an_inner_loop):
        x = np.array([0.5, 0.2, -0.3, 0.4])
        np.testing.assert_allclose(fad.jit(f)(x.copy()), f(x.copy()), rtol=1e-14)


def a_view(x, n):
    b = np.zeros((2, 3)) + x
    a, k = b[1], 0
    while k < n:
        a = a + x
        k += 1
    a[-1] += 1.0
    return a, b


def a_view_of_plain_numbers(x, n):
    b = np.zeros(6)
    a, k = b.reshape(2, 3), 0
    while k < n:
        a = a + x
        k += 1
    b[-1] += 1.0
    return a, b


def a_view_where_no_step_is_seen(x, n):
    b = np.zeros((2, 3))
    a, k = b[1], 0
    while k > 2:
        a = a + n * x
        k += 1
    a[-1] += 1.0
    return a, b


def an_array_in_a_tuple(x, n):
    b = x * 1.0
    t, k = (b, 0), 0
    while k < n:
        t = (t[0] + x, k)
        k += 1
    t[0][-1] += 1.0
    return t[0], b


def a_view_in_a_dictionary(x, n):
    d = {"a": np.zeros((2, 3)) + x, "k": 0}
    d["v"] = d["a"][1]
    while d["k"] < n:
        d["v"] = d["v"] + x
        d["k"] += 1
    d["a"] += 1.0
    return d["v"], d["a"]


@pytest.mark.parametrize(
    "f", [a_view, a_view_of_plain_numbers, a_view_where_no_step_is_seen, an_array_in_a_tuple, a_view_in_a_dictionary],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_what_no_step_rebinds_is_still_the_array_that_another_name_knows(f):
    x = np.array([0.7, -0.4, 1.3])
    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        for n in (0, 0, 2, 0):
            for found, wanted in zip(fast(x, n), f(x, n), strict=True):
                np.testing.assert_allclose(found, wanted, rtol=1e-14, strict=True)


def test_a_loop_that_rebinds_a_view_of_an_array_without_a_name_is_captured():
    def f(x):
        u, k = np.zeros(9).reshape(3, 3), 0
        while k < x[0]:
            u = u + x
            k += 1
        for i in range(3):
            u[i, 0] += x[i]
        return u.sum()

    assert report_of(f, np.array([1.5, 2.0, 0.5]))[0] == ["captured", "captured"]
