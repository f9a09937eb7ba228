"""Lists and arrays that loops make longer and read as a whole: the mean so far, an element in the middle."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 0.33])
N = 5


def the_mean_so_far(x):
    p = [x[0]]
    for _ in range(N):
        p.append(0.9 * p[-1] + 0.1 * np.mean(p) * x[1])
    return p[-1] + np.sum(p)


def the_sum_of_pythons(x):
    p = [x[0], 0.5]
    for _ in range(N):
        p.append(0.9 * p[-1] + 0.1 * sum(p) / len(p))
    return p[-1] * x[2]


def an_element_in_the_middle(x):
    p = [x[0]]
    for _ in range(N):
        p.append(0.9 * p[-1] + 0.1 * p[len(p) // 2] + 0.01 * p[-(len(p) // 2) - 1])
    return np.sum(np.array(p) * x[1])


def an_array_of_all_that_is_written(x):
    p = [x[0], x[1]]
    for _ in range(N):
        q = np.array(p)
        q[0] = 0.3
        p.append(0.5 * np.sum(q * q) / len(p) + 0.1 * p[0])
    return np.sum(p)


def the_last_few_of_an_array(x):
    p = [x[0]]
    for _ in range(N):
        p.append(0.9 * p[-1] + 0.1 * np.array(p)[-4:].mean() + 0.1 * np.max(p))
    return np.sum(p)


def more_of_the_last_than_there_are_at_first(x):
    p = [x[0]]
    for _ in range(N):
        p.append(0.9 * p[-1] + 0.1 * np.mean(p[-4:]))
    return np.sum(p)


def rows_that_are_arrays(x):
    us = [x * 1.0]
    for _ in range(N):
        us.append(0.8 * us[-1] + 0.1 * np.mean(us, axis=0) + 0.05 * us[len(us) // 3])
    return np.sum(us[-1]) + np.sum(np.array(us) ** 2)


def numbers_of_pythons_at_first(x):
    p, s = [1.0], 0.0
    for i in range(N):
        p.append(p[len(p) // 2] * 0.9 + 0.1 * x[i % 3])
        s = s + p[i // 2]
    return s


def a_loop_over_all(x):
    p = [x[0]]
    for _ in range(N):
        s = 0.0
        for v in p:
            s = s + np.sin(v)
        p.append(0.9 * p[-1] + 0.1 * s / len(p))
    return sum(p)


def an_array_that_grows(x):
    p = x * 1.0
    for _ in range(N):
        p = np.append(p, 0.9 * p[-1] + 0.1 * np.mean(p) + 0.1 * p[len(p) // 2] - 0.01 * p.max())
    return np.sum(p**2)


def rows_of_a_matrix_that_grows(x):
    p = np.stack([x, 0.5 * x])
    for _ in range(N):
        p = np.vstack([p, 0.8 * p[-1] + 0.1 * np.mean(p, axis=0) * p[1:].sum()])
    return np.sum(p[-1]) + np.sum(p**2)


def given_to_a_function(x):
    class Tools:
        @staticmethod
        def spread(q):
            return np.sqrt(np.mean(q * q) + 0.1)

    p = x * 1.0
    for _ in range(N):
        p = np.append(p, 0.9 * p[-1] + 0.1 * Tools.spread(p))
    return np.sum(p**2)


def until_it_breaks(x):
    p = [x[0]]
    for _ in range(N):
        p.append(0.9 * p[-1] + 0.1 * np.mean(p))
        if len(p) > 4:
            break
    return np.sum(p)


CAPTURED = [
    the_mean_so_far, the_sum_of_pythons, an_element_in_the_middle, an_array_of_all_that_is_written,
    the_last_few_of_an_array, more_of_the_last_than_there_are_at_first, rows_that_are_arrays,
    numbers_of_pythons_at_first, a_loop_over_all, an_array_that_grows, rows_of_a_matrix_that_grows,
    given_to_a_function, until_it_breaks,
]  # fmt: skip


def nothing_at_first(x):
    p = []
    for i in range(N):
        p.append(x[i % 3] * 0.5)
        p.append(np.mean(p))
    return np.sum(p)


def in_an_if(x):
    p = [x[0]]
    for i in range(N):
        v = np.mean(p)
        if v > 0.3 or i % 2:
            p.append(0.9 * v + 0.1 * x[1])
    return np.sum(p)


def in_an_inner_loop(x):
    p = [x[0]]
    for _ in range(N):
        for _ in range(2):
            p.append(0.9 * np.mean(p))
    return np.sum(p)


def elements_are_written(x):
    us = [x * 1.0]
    for i in range(N):
        us.append(us[-1] * 0.9)
        us[0][i % 3] = 0.1 * np.mean(us)
    return np.sum(np.array(us))


def a_list_of_whole_numbers(x):
    p, s = [1, 2], 0.0
    for _ in range(N):
        p.append(p[-1] + p[len(p) // 2])
        s = s + x[0] * np.mean(p)
    return s


def a_while_loop(x):
    p, k = [x[0]], 0
    while k < N:
        p.append(0.9 * np.mean(p))
        k += 1
    return np.sum(p)


def kept_as_it_was(x):
    class Tools:
        @staticmethod
        def same(q):
            return q

    p, s = x * 1.0, 0.0
    for _ in range(N):
        q = Tools.same(p)
        p = np.append(p, 0.9 * np.mean(p))
        s = s + np.mean(q) * q.shape[0]
    return s + np.sum(p)


def another_type_is_appended(x):
    p = [1.0]
    for i in range(N):
        p.append(0.5 * np.mean(p) if i % 2 else i)
    return np.sum(p) * x[0]


OTHER = [
    nothing_at_first, in_an_if, in_an_inner_loop, elements_are_written, a_list_of_whole_numbers, a_while_loop,
    kept_as_it_was, another_type_is_appended,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_reads_all_it_has_appended_is_captured(f):
    agree(f, X, order=2 if f in (the_mean_so_far, an_element_in_the_middle) else 1)
    what, text = report_of(f, X)
    assert "recorded step by step" not in what, text


@pytest.mark.parametrize("f", OTHER, ids=lambda f: f.__name__)
def test_other_lists_that_grow_and_are_read_are_right(f):
    agree(f, X, order=1)


@pytest.mark.parametrize("place", [lambda n: n, lambda n: -n - 1], ids=["behind it", "before it"])
def test_a_place_outside_of_a_list_that_grows_is_an_index_error(place):
    def f(x):
        p = [x, x * 0.5]
        for i in range(N):
            p.append(p[place(len(p)) if i == 4 else i // 2] * 0.5)
        return p[-1]

    with fad.config.use(loops="capture"), pytest.raises(IndexError):
        fad.jit(f)(1.0)
