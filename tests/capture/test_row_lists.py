"""Lists of arrays of which loops write one by their counters: buffers that take turns."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
N = 9


def total(u):
    return sum((k + 1) * np.sum(row) for k, row in enumerate(u))


def heat_in_two_buffers(x):
    u, old, new = [x * 1.0, np.zeros(len(x))], 0, 1
    for _ in range(N):
        u[new][1:-1] = u[old][1:-1] + 0.2 * (u[old][2:] - 2 * u[old][1:-1] + u[old][:-2])
        u[new][0] = x[1]
        u[new][-1] = x[2]
        old, new = new, old
    return np.sum(u[old] ** 2) + np.sum(u[new])


def waves_in_three(x):
    u, p, c, o = [np.zeros(len(x)), x * 1.0, x * 0.9], 0, 1, 2
    for _ in range(N):
        u[p][1:-1] = 2 * u[c][1:-1] - u[o][1:-1] + 0.1 * (u[c][2:] - 2 * u[c][1:-1] + u[c][:-2])
        p, c, o = o, p, c
    return np.sum(u[c] ** 2)


def matrices_by_parity_in_a_tuple(x):
    g = (np.outer(x, x), np.zeros((len(x), len(x))))
    for t in range(N):
        a, b = g[t % 2], g[1 - t % 2]
        b[1:-1, 1:-1] = 0.25 * (a[2:, 1:-1] + a[:-2, 1:-1] + a[1:-1, 2:] + a[1:-1, :-2])
        b[0, :] = x
    return total(g)


def names_of_two_rows(x):
    u = [x * 1.0, x * 0.0, x * 0.3]
    for i in range(N):
        a, b = u[i % 3], u[i % 3 - 2]
        b[1:-1] = a[2:] * 0.5 + a[:-2] * np.cos(a[1:-1])
        b[0] = a[1]
        a[-1] = b[1]
    return total(u)


def updated_in_place(x):
    u = [x * 1.0, x * 0.5]
    for i in range(N):
        u[i % 2] += 0.1 * u[(i + 1) % 2]
        u[i % 2] *= 0.7
        u[(i + 1) % 2][0] = np.sin(u[i % 2][1]) + 0.1 * x[0]
    return total(u)


def by_functions(x):
    def step(a, b):
        b[1:-1] = a[1:-1] + 0.1 * (a[2:] + a[:-2])
        b[0] = a[0]

    u = [x * 1.0, x * 0.5]
    for i in range(N):
        step(u[i % 2], u[1 - i % 2])
        np.copyto(u[i % 2], u[1 - i % 2] * 0.9)
    return total(u)


def in_an_if(x):
    u = [x * 1.0, x * 0.5]
    for i in range(N):
        u[0][2] = 0.1 * i
        if np.sum(u[i % 2]) > 0.5:
            u[(i + 1) % 2][1:] = 0.9 * u[i % 2][1:]
        else:
            u[i % 2][0] += 0.1
    return total(u)


def constant_places_as_well(x):
    u = [x * 1.0, x * 0.5, x * 0.1]
    for i in range(N):
        for row in u:
            row[0] = row[1] * 0.9 + 0.1 * i
        u[i % 3][1] += u[(i + 1) % 3][0]
    return total(u)


def an_attribute(x):
    class Field:
        def __init__(self):
            self.u, self.k = [x * 1.0, x * 0.5], 0

        def step(self):
            a, b = self.u[self.k], self.u[1 - self.k]
            b[1:] = a[:-1] * 0.9 + 0.1
            b[0] = a[-1]
            self.k = 1 - self.k

    field = Field()
    for _ in range(N):
        field.step()
    return total(field.u)


def until_it_is_large(x):
    u, old, new, n = [x * 1.0, x * 0.5], 0, 1, 0
    while np.sum(u[old] ** 2) < 20.0 and n < 40:
        u[new][:] = u[old] * 1.1 + 0.1
        old, new, n = new, old, n + 1
    return total(u) + n


def rows_are_appended_as_copies(x):
    u, path = [x * 1.0, x * 0.5], []
    for i in range(N):
        u[i % 2][1:] = u[(i + 1) % 2][:-1] * 0.9 + 0.1
        path.append(u[i % 2].copy())
    return np.sum(np.array(path)) + total(u)


def infinite_slopes_in_one(x):
    u = [x**2, x**2 * 0.0]
    for i in range(N):
        u[(i + 1) % 2][1:] = np.sqrt(u[i % 2][1:] + 0.1 * i + 0.01)
    return total(u)


def a_list_of_each_step_that_is_read(x):
    s = 0.0
    for i in range(N):
        rows = [x * i, x * 2.0]
        rows[0][0] = 7.0
        s += np.sum(rows[i % 2] * np.arange(5))
    return s


CAPTURED = [
    heat_in_two_buffers, waves_in_three, matrices_by_parity_in_a_tuple, names_of_two_rows, updated_in_place,
    by_functions, in_an_if, constant_places_as_well, an_attribute, until_it_is_large, rows_are_appended_as_copies,
    infinite_slopes_in_one, a_list_of_each_step_that_is_read,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_writes_into_them_is_captured(f):
    what, text = report_of(f, X)
    assert "captured" in what, text
    assert "step by step" not in text, text
    agree(f, X, order=1)


# --- others -----------------------------------------------------------------------------------------------------------


def a_row_is_kept_behind_the_loop(x):
    u = [x * 1.0, x * 0.5]
    for i in range(N):
        r = u[i % 2]
        r[0] = r[1] * 0.9 + 0.1
    r[1] = 5.0
    return total(u) + np.sum(r)


def a_row_is_kept_between_steps(x):
    u = [x * 1.0, x * 0.5]
    r = u[0]
    for i in range(N):
        r[1] += 0.1
        r = u[i % 2]
        r[0] = r[1] * 0.9 + 0.1
    return total(u) + np.sum(r)


def one_array_stands_there_twice(x):
    u = [x * 1.0] * 2
    for i in range(N):
        u[i % 2][0] = u[(i + 1) % 2][1] * 0.9 + i
        u[i % 2][1] = u[(i + 1) % 2][0] * 0.5
    return total(u)


def a_name_knows_an_array(x):
    a = x * 1.0
    u = [a, x * 0.5]
    for i in range(N):
        u[i % 2][0] = u[(i + 1) % 2][1] * 0.9 + i + a[0] * 0.6
    return total(u)


def views_that_overlap(x):
    m = x * 1.0
    u = [m[:-1], m[1:]]
    del m
    for i in range(N):
        u[i % 2][0] = u[(i + 1) % 2][1] * 0.9 + 0.1
    return total(u)


def a_name_knows_the_list(x):
    u = [x * 1.0, x * 0.5]
    w = u
    for i in range(N):
        u[i % 2][0] = u[(i + 1) % 2][1] * 0.9 + w[0][0] * 0.1
    return total(w)


def arrays_are_put_in_as_well(x):
    u = [x * 1.0, x * 0.5]
    for i in range(N):
        u[i % 2] = np.sin(u[(i + 1) % 2])
        u[i % 2][0] = 0.5 * u[(i + 1) % 2][1]
    return total(u)


def arrays_change_places(x):
    u = [x * 1.0, x * 0.5]
    for i in range(N):
        u[i % 2][0] = 0.5 * u[(i + 1) % 2][1] + 0.1
        u[0], u[1] = u[1], u[0]
    return total(u)


def rows_are_appended(x):
    u, path = [x * 1.0, x * 0.5], []
    for i in range(N):
        u[i % 2][1:] = u[(i + 1) % 2][:-1] * 0.9 + 0.1
        path.append(u[i % 2])
    return np.sum(np.array(path)) + total(u)


def a_list_of_each_step(x):
    s = 0.0
    for i in range(N):
        rows = [x * i, x * 2.0]
        rows[i % 2][0] = 3.0 * i
        s += total(rows)
    return s


def an_array_is_written_while_a_name_knows_it(x):
    u, s = [x * 1.0, x * 2.0], 0.0
    for i in range(N):
        u[1][1] += 0.1
        r = u[i % 2]
        u[0][0] = 7.0 * i
        s += np.sum(r * np.arange(5))
    return s + np.sum(u[0])


def a_name_is_left_with_one(x):
    u = [x * 1.0, x * 2.0]
    r = u[0]
    for i in range(N):
        u[0][0] = 7.0 * i
        r = u[i % 2]
    r[1] = 100.0
    return total(u)


def arrays_of_a_dictionary(x):
    d = {0: x * 1.0, 1: x * 2.0}
    for i in range(N):
        d[0][0] = 0.1 * i
        d[i % 2][1] = d[(i + 1) % 2][0] * 0.9
    return total(d.values())


def arrays_in_tuples(x):
    pairs = [(x * 1.0, 1.0), (x * 2.0, 2.0)]
    for i in range(N):
        pairs[0][0][0] = 0.1 * i
        a, h = pairs[i % 2]
        a[1] = pairs[(i + 1) % 2][0][0] * 0.9 * h
    return total([pairs[0][0], pairs[1][0]])


LEFT = [
    a_row_is_kept_behind_the_loop, a_row_is_kept_between_steps, one_array_stands_there_twice, a_name_knows_an_array,
    views_that_overlap, a_name_knows_the_list, arrays_are_put_in_as_well, arrays_change_places, rows_are_appended,
    a_list_of_each_step, an_array_is_written_while_a_name_knows_it, a_name_is_left_with_one, arrays_of_a_dictionary,
    arrays_in_tuples,
]  # fmt: skip


@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_another_loop_is_left_to_python(f):
    assert "recorded step by step" in report_of(f, X)[1]
    agree(f, X, order=1)
