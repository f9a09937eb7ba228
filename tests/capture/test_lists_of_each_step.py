"""Lists that an inner loop writes by its counter, and that the step around has made, copied or swapped with another."""

import numpy as np
import pytest
from capture.agreement import agree_briefly, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
N = 20  # more than of an inner loop that a look runs as a whole
LETTERS = np.sin(np.arange(N))


def two_rows_in_turn(x):
    old, new = [j * x[0] for j in range(N)], [0.0] * N
    for i in range(9):
        new[0] = old[0] + x[1]
        for j in range(1, N):
            new[j] = min(old[j] + x[0], new[j - 1] + x[1], old[j - 1] + (LETTERS[j] - LETTERS[i]) ** 2)
        old, new = new, old
    return old[-1] + new[3]


def a_row_of_each_step(x):
    row = [j * x[0] for j in range(N)]
    for i in range(9):
        new = [0.0] * N
        new[0] = row[0] + x[1]
        for j in range(1, N):
            new[j] = 0.5 * row[j] + 0.3 * new[j - 1] + 0.1 * np.sin(0.2 * row[j - 1]) * i
        row = new
    return row[-1] * x[2]


def a_copy_that_is_read(x):
    u = [np.sin(j * x[0]) for j in range(N)]
    for _ in range(9):
        old, end = u[:], u[-3:]
        for j in range(1, N - 1):
            u[j] = old[j] + 0.1 * (old[j - 1] - 2 * old[j] + old[j + 1])
        end[0] = x[1]
        u[0] = 0.5 * sum(end)
    return u[4] * u[9] + u[0]


def few_arrays_in_turn(x, steps=9):
    old, new = [x, 2 * x, 3 * x], [0.0 * x] * 3
    for _ in range(steps):
        for j in range(3):
            new[j] = old[j] - 0.1 * old[(j + 1) % 3]
        old, new = new, old
    return np.sum(old[2] ** 2 + new[1])


def long_rows_that_are_one_array(x):
    row, best, sums = [np.sin(j) * x[0] for j in range(70)], [0.0] * 70, [0.0] * 70
    for i in range(9):
        new = [0.5 * row[0]]
        for j in range(1, 70):
            new.append(0.5 * row[j] + 0.3 * row[j - 1] + 0.1 * new[j - 1])
        if new[5] > best[5]:
            best = new[:]
        sums = [s + i * v for s, v in zip(sums, new, strict=True)]
        row = [*new[1:], x[1]]
    return row[3] * best[5] + sums[69] * sums[1]


def long_rows_of_whole_numbers(x):
    row, s = list(range(70)), x[0]
    for i in range(9):
        row = [row[-1] + i, *row[:-1]]
        s = 0.9 * s + 0.01 * row[3] * x[1]
    return s * sum(row) if all(isinstance(k, int) for k in row) else s


PROGRAMS = [
    long_rows_that_are_one_array, long_rows_of_whole_numbers, two_rows_in_turn, a_row_of_each_step, a_copy_that_is_read,
    few_arrays_in_turn,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_loop_around_one_that_writes_a_list_is_captured(f):
    text = report_of(f, X)[1]
    assert "captured: 9 steps" in text or "captured: 8 steps" in text, text
    agree_briefly(f, X)


def test_a_loop_around_one_that_is_too_short_to_be_captured_is():
    def f(x):
        return few_arrays_in_turn(x, 400)

    assert len(fad.make_graph(f)(X).equations) < 20
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), fad.grad(f)(X))


def a_list_with_another_name(x):
    old = [j * x[0] for j in range(N)]
    kept = old
    for _ in range(9):
        new = old
        for j in range(1, N):
            new[j] = 0.5 * old[j] + 0.3 * old[j - 1]
        old = new
    return old[-1] + sum(kept)


def rows_that_are_kept(x):
    row, rows = [j * x[0] for j in range(N)], []
    for _ in range(5):
        new = [0.0] * N
        for j in range(1, N):
            new[j] = 0.5 * row[j] + 0.3 * row[j - 1]
        rows.append(new)
        row = new
        row[2] = x[1]
    return sum(map(sum, rows))


@pytest.mark.parametrize("f", [a_list_with_another_name, rows_that_are_kept], ids=lambda f: f.__name__)
def test_a_list_that_others_know_is_what_pythons_would_be(f):
    agree_briefly(f, X)
