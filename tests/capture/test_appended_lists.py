"""Lists to which each step of a loop appends: the loop stays one, and the list holds what Python's would."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([1.0, 0.5, 2.0])
STEPS = 12


def states(x):
    seen, h = [x], x
    for t in range(STEPS):
        h = np.tanh(h * 0.9 + 0.1 * t)
        seen.append(h)
    return np.sum(np.array(seen) ** 2) + len(seen)


def before_and_behind_the_step(x):
    seen, h = [], x
    for _ in range(STEPS):
        seen.append(h)
        h = np.sin(h) + x[0]
        seen.append(h * 2.0)
    return np.sum(np.stack(seen)[::3] ** 2)


def numbers_and_tuples(x):
    times, pairs, t = [], [], 0.0
    for i in range(STEPS):
        t += 0.1
        times.append(t)
        pairs.append((i, t * x[0]))
    return np.mean(np.array(times) * np.array([y for _, y in pairs])) + pairs[3][0] * pairs[2][1]


def copies_of_an_array_that_is_written(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        u[0] += 1.0
        seen.append(u.copy())
    return np.sum(np.array(seen) ** 2)


def written_after_it_was_appended(x):
    seen, u = [], x * 1.0
    for i in range(STEPS):
        w = u * 1.0
        seen.append(w)
        w[0] = i
        u = u * 1.01 + 0.1 * w
    return np.sum(np.array(seen) ** 2)


def slices(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        seen.append(u[1:])
        u = u * 1.01
    return np.sum(np.array(seen) ** 2)


CAPTURED = [
    states, before_and_behind_the_step, numbers_and_tuples, copies_of_an_array_that_is_written,
    written_after_it_was_appended, slices,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_appends_is_captured(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert what == ["captured"], text


def one_array_all_along(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        u[0] += 1.0
        seen.append(u)
    return np.sum(np.array(seen) ** 2)


def the_last_is_written_behind(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        u = u * 1.01
        seen.append(u)
    u[0] = 100.0 * x[1]
    return np.sum(np.array(seen) ** 2)


def elements_are_written_behind(x):
    seen, u = [], x * 1.0
    for _ in range(STEPS):
        u = u * 1.01
        seen.append(u)
    seen[3][0] = x[2]
    seen[-1][1] = 3.0
    return np.sum(np.array(seen) ** 2) + np.sum(u)


def the_first_is_written_by_another_name(x):
    seen, u = [], x * 1.0
    first = u
    for _ in range(STEPS):
        seen.append(u)
        u = u * 1.01
    first[0] = 9.0 * x[1]
    return np.sum(np.array(seen) ** 2)


def names_go_round(x):
    seen, u, v = [], x * 1.0, x * 2.0
    for _ in range(STEPS):
        u, v = v, u * 1.01
        seen.append(u)
    v[0] = 5.0
    return np.sum(np.array(seen) ** 2) + np.sum(u * v)


def rows_of_an_array(x):
    seen, u = [], np.zeros((STEPS, 3))
    for i in range(STEPS):
        u[i] = x * i
        seen.append(u[i])
    u[5] = 3.0
    return np.sum(np.array(seen) ** 2)


def one_array_from_outside(x):
    seen, one = [], np.ones(3)
    for _ in range(STEPS):
        seen.append(one)
    seen[0][1] = 5.0
    return np.sum(np.array(seen) @ x)


def read_by_another_name(x):
    seen, u = [], x
    alias = seen
    for _ in range(STEPS):
        u = u * 1.01 + 0.001 * len(alias)
        seen.append(u)
    return np.sum(np.array(seen) ** 2)


def read_by_a_function(x):
    seen, u = [], x

    def last():
        return seen[-1]

    for _ in range(STEPS):
        seen.append(u)
        u = last() * 1.01
    return np.sum(np.array(seen) ** 2)


def read_in_the_step(x):
    seen = [x]
    for _ in range(STEPS):
        seen.append(seen[-1] * 1.01)
    return np.sum(np.array(seen) ** 2)


def runs_over_the_list(x):
    seen, s = [x[0], x[1]], 0.0
    for a, _ in zip(seen, range(STEPS), strict=False):
        seen.append(a * 0.9)
        s = s + a
    return s + len(seen)


def in_some_steps(x):
    seen, u = [], x
    for i in range(STEPS):
        u = u * 1.1
        if u[0] > 2.0:
            seen.append(u)
        if i % 2:
            continue
        seen.append(u)
    return np.sum(np.array(seen) ** 2)


def rows_of_rows(x):
    rows = []
    for i in range(STEPS):
        row = []
        for j in range(STEPS):
            row.append(x[0] * i * j)
        rows.append(row)
    return np.sum(np.array(rows) ** 2)


AS_PYTHON_DOES = [
    one_array_all_along, the_last_is_written_behind, elements_are_written_behind, the_first_is_written_by_another_name,
    names_go_round, rows_of_an_array, one_array_from_outside, read_by_another_name, read_by_a_function,
    read_in_the_step, runs_over_the_list, in_some_steps, rows_of_rows,
]  # fmt: skip


@pytest.mark.parametrize("f", AS_PYTHON_DOES, ids=lambda f: f.__name__)
def test_a_list_holds_what_pythons_would(f):
    if f is in_some_steps:
        for x in (X, 3 * X, X):
            np.testing.assert_allclose(fad.jit(f)(x), f(x))
    else:
        agree(f, X)


def test_what_is_appended_keeps_its_kind_and_a_callers_list_is_its_own():
    def kinds(x, out):
        numbers = []
        for i in range(40):
            numbers.append((i, 0.5 * i, x[0], x))
            out.append(x * i)
        return numbers

    with fad.config.use(loops="capture"):
        given, wanted = [], []
        found, plain = fad.jit(lambda x: kinds(x, given))(X), kinds(X, wanted)
    assert [type(y) for y in fad.tree.leaves(found)] == [type(y) for y in fad.tree.leaves(plain)]
    assert len(given) == len(wanted)
