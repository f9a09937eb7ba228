"""Lists of numbers that a loop reads and writes by its counter: arrays stand for them, and they stay lists."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.7, 0.3, 1.2])
N = 9


def a_recurrence(x):
    y = [0.0] * N
    y[0] = x[0]
    for i in range(1, N):
        y[i] = y[i - 1] * x[1] + 0.1 * np.sin(y[i - 1])
    return y[-1] * sum(y)


def a_list_of_whole_numbers_at_first(x):
    y = [0] * N
    y[0] = x[0]
    for i in range(1, N - 2):
        y[i] = y[i - 1] * 0.9 + 0.01 * i
    return sum(y) + y[-1]


def a_tridiagonal_system(x):
    a, b, c = [-1.0] * N, [2.0 + x[0]] * N, [-1.0] * N
    d = [float(i) * x[1] for i in range(N)]
    for i in range(1, N):
        w = a[i] / b[i - 1]
        b[i] -= w * c[i - 1]
        d[i] -= w * d[i - 1]
    u = [0.0] * N
    u[-1] = d[-1] / b[-1]
    for i in range(N - 2, -1, -1):
        u[i] = (d[i] - c[i] * u[i + 1]) / b[i]
    return sum(v * x[2] for v in u)


def a_table_of_two_axes(x):
    rows, columns = [x[0], x[1], 0.4], [0.2, x[2], 0.9, 0.1]
    table = [[0.0] * 5 for _ in range(4)]
    for i in range(1, 4):
        for j in range(1, 5):
            cost = (rows[i - 1] - columns[j - 1]) ** 2
            table[i][j] = cost + min(table[i - 1][j], table[i][j - 1], table[i - 1][j - 1])
    return table[3][4]


def a_table_of_constants_and_values(x):
    weights, order, s = [x[0], 0.5, x[1]], [2, 0, 1], 0.0
    for i in range(N):
        s = s * 0.9 + weights[order[i % 3]] * 0.1 + np.sin(s)
    return s


def insertion_sort(x):
    a = [np.sin(x[0] * i * 7) + x[1] * i for i in range(6)]
    for i in range(1, 6):
        v, j = a[i], i - 1
        while j >= 0 and a[j] > v:
            a[j + 1] = a[j]
            j -= 1
        a[j + 1] = v
    return sum(k * v for k, v in enumerate(a))


def constant_places_too(x):
    a = [x[0] * i for i in range(4)]
    for i in range(N):
        a[0] = a[0] * 0.9 + 0.1 * a[i % 4]
        a[i % 4] *= x[1]
    return a[0] + 2 * a[3] + len(a)


def a_list_of_an_object(x):
    class Ring:
        def __init__(self):
            self.w = [0.0] * 4

        def put(self, i, v):
            self.w[i] = self.w[i - 1] * 0.5 + v

    ring, other = Ring(), {"w": [0.1] * 3}
    for k in range(N):
        ring.put(k % 4, x[0] * k)
        other["w"][k % 3] += ring.w[1] * x[1]
    return sum(ring.w) * other["w"][2]


def by_a_function(x):
    a = [0.0] * 4

    def put(values, i, v):
        values[i] = values[i] + v

    for k in range(N):
        put(a, k % 4, x[k % 3] * k)
    return sum(a) * a[2]


def rows_of_a_step(x):
    s = 0.0
    for i in range(N):
        row = [0.1 * s] * 5
        for j in range(1, 5):
            row[j] = row[j - 1] * 0.9 + x[j % 3] * i
        s = s + 0.01 * row[4]
    return s


def rows_by_a_counter_and_places_that_are_constant(x):
    rows = [[0.1] * 3, [x[0], 0.0, 0.2]]
    for i in range(N):
        rows[i // 2 % 2][2] += 0.1 * x[1]
        rows[0][i % 3] = rows[1][i % 2] * 0.5
    return rows[0][2] * rows[1][2] + sum(rows[0])


def only_numbers_of_pythons(x):
    a = [0.5] * N
    for i in range(1, N):
        a[i] = a[i - 1] * 0.5
    assert type(a[3]) is float
    return np.sum(np.ones(2, np.float32) * a[4]) * x[0] + a[8]


def rows_of_plain_numbers(x):
    points, slope, offset = [(1.0, 2.1, 1), (2.0, 3.9, 2), (3.0, 6.2, 2), (4.0, 7.8, 5)] * 3, x[0], x[1]
    for at, value, weight in points:
        error = (slope * at + offset - value) * weight
        slope, offset = slope - 0.01 * error * at, offset - 0.01 * error
    return slope * offset


def rows_of_a_table(x):
    w, data = [0.1, 0.2, 0.3], [[1.0, 2.0, 0.5], [0.3, 0.2, 0.1], [2.0, -1.0, 0.4]] * 3
    for k, row in enumerate(data):
        e = np.tanh(sum(a * b for a, b in zip(w, row, strict=True))) - x[0] * k
        for j in range(3):
            w[j] -= 0.1 * e * row[j]
    return sum(w) * x[1]


def whole_numbers(x):
    f, counts = [1] * 90, [0] * 3
    for i in range(2, 90):
        f[i] = f[i - 1] + f[i - 2]
        counts[i % 3] += 1
    return x[0] * (f[-1] % 1000) + counts[0]


def flags(x):
    prime, s = [True] * 20, 0.0
    for i in range(2, 20):
        if prime[i]:
            s = s + np.sin(x[0] * i)
            for j in range(i * i, 20, i):
                prime[j] = False
    return s


def a_table_of_whole_numbers(x):
    a, b = [i * 7 % 5 for i in range(N)], [i * i % 5 for i in range(N)]
    best, y = [[0] * (N + 1) for _ in range(N + 1)], x[0]
    for i in range(1, N + 1):
        y = y * 0.9
        for j in range(1, N + 1):
            if a[i - 1] == b[j - 1] and y > 0.1:
                best[i][j] = best[i - 1][j - 1] + 1
            else:
                best[i][j] = max(best[i - 1][j], best[i][j - 1])
    return y * best[N][N] + best[3][4] / 2 + (best[5][5] << 2)


CAPTURED = [
    rows_of_plain_numbers, rows_of_a_table,
    a_recurrence, a_list_of_whole_numbers_at_first, a_tridiagonal_system, a_table_of_two_axes,
    a_table_of_constants_and_values, insertion_sort, constant_places_too, a_list_of_an_object, by_a_function,
    rows_by_a_counter_and_places_that_are_constant, flags, a_table_of_whole_numbers,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_over_a_list_of_numbers_is_captured(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert "captured" in what, text
    assert "recorded step by step" not in what, text


def by_another_name(x):
    a = [0.0] * N
    b = a
    for i in range(1, N):
        a[i] = b[i - 1] + x[0]
    return sum(b)


def rows_that_change_places(x):
    old, new = [x[0] * j for j in range(5)], [0.0] * 5
    for i in range(4):
        new[0] = i * 0.1
        for j in range(1, 5):
            new[j] = 0.5 * old[j - 1] + 0.3 * new[j - 1]
        old, new = new, old
    return sum(old)


def rows_that_are_read_by_the_counter_and_change_at_constant_places(x):
    rows, s = [[x[0], 0.5, 0.1], [0.3, x[1], 0.2]], 0.0

    def put(row, v):
        row[0] = v

    for i in range(N):
        rows[0][1] = x[2] * i
        put(rows[1], s * 0.1)
        s = s * 0.9 + rows[i % 2][1] + rows[(i + 1) % 2][0]
    return s + rows[1][0]


def a_row_with_another_name(x):
    rows, s = [[x[0], 0.5], [0.3, x[1]]], 0.0
    row = rows[0]
    for i in range(N):
        row[1] = x[2] * i
        s = s * 0.9 + rows[i % 2][1]
    return s


def whole_numbers_at_constant_places(x):
    w, s = [1, 2, 3], 0.0
    for i in range(N):
        s = s * 0.9 + w[i % 3] * x[0]
        w[1] = i
    return s + sum(range(w[1]))


def rows_that_a_step_replaces(x):
    rows, s = [(1.0, 2.0)] * N, 0.0
    for a, _ in rows:
        s = s * 0.9 + a * x[0]
        rows[6] = (7.0, 8.0)
    return s


def rows_that_a_step_changes(x):
    rows, s = [[1.0, 2.0] for _ in range(N)], 0.0
    last = rows[-1]
    for k, row in enumerate(rows):
        s = s * 0.9 + row[0] * x[0] + k
        rows[5][0] = 3.0 * x[1]
        last[0] += 0.5
    return s


def rows_that_a_function_changes_in_some_steps(x):
    rows, s = [[1.0, 2.0] for _ in range(N)], 0.0

    def change(v):
        rows[7][0] = rows[7][0] + v

    for (a, _), w in zip(rows, range(N), strict=True):
        s = s * 0.9 + a * x[0]
        if s > x[2]:
            change(w * x[1])
    return s


def as_a_whole(x):
    a = [x[0]] * 4
    for i in range(N):
        a[i % 4] = sum(a[1:]) * 0.3 + (0.1 if x[1] in a else 0.2)
    return sum(a)


AS_PYTHON_DOES = [
    by_another_name, rows_that_change_places, rows_that_a_step_replaces, rows_that_a_step_changes,
    rows_that_a_function_changes_in_some_steps,
    rows_that_are_read_by_the_counter_and_change_at_constant_places, a_row_with_another_name,
    whole_numbers_at_constant_places, whole_numbers, as_a_whole, rows_of_a_step, only_numbers_of_pythons,
]  # fmt: skip


@pytest.mark.parametrize("f", AS_PYTHON_DOES, ids=lambda f: f.__name__)
def test_a_list_of_numbers_is_what_pythons_would_be(f):
    agree(f, X, order=1)


def test_a_list_from_outside_keeps_its_numbers():
    kept = [0.5] * 4

    def f(x):
        for i in range(N):
            kept[i % 4] = 0.25 * i
            x = x * 1.1
        return x

    with fad.config.use(loops="capture"):
        fad.jit(f)(1.0)
    assert kept == [2.0, 1.25, 1.5, 1.75]
    assert {*map(type, kept)} == {float}


def test_an_index_that_is_not_there_raises_pythons_error():
    def f(x):
        a, s = [x, 0.5, x * x], 0.0
        for i in range(N):
            s = s + a[i]
        return s

    with fad.config.use(loops="capture"), pytest.raises(IndexError):
        fad.jit(f)(1.0)


def test_lists_stay_lists_of_their_own_rows():
    def f(x):
        rows = [[x, 0.0], [0.5, x]]
        first = rows
        for i in range(N):
            rows[i % 2][(i + 1) % 2] += 0.1 * x
        return rows is first, [type(row) is list for row in rows], rows[0][1] + rows[1][0]

    with fad.config.use(loops="capture"):
        same, lists, value = fad.jit(f)(1.0)
    assert same
    assert lists == [True, True]
    np.testing.assert_allclose(value, f(1.0)[2])


def test_whole_numbers_in_a_list_are_pythons_however_large_they_become():
    def powers(x):
        f = [1] * 60
        for k in range(1, 60):
            x = x * 0.9
            f[k] = f[k - 1] * int(10 * x + 1)
        return f[-1] % 1009, f[20], x

    with fad.config.use(loops="capture"):
        fast = fad.jit(powers)
        for x in (0.3, 30.0, 0.3, 30.0):
            assert fast(x) == powers(x)
            assert [*map(type, fast(x))] == [*map(type, powers(x))]
        got, _, _ = fad.jit(fad.vmap(lambda x: powers(x)))(np.array([0.3, 0.4]))
        np.testing.assert_array_equal(got, [powers(0.3)[0], powers(0.4)[0]])
