"""Loops over what `itertools` makes of ranges, arrays and lists of numbers: islice, count, cycle and repeat."""

import itertools
from itertools import count, cycle, islice, repeat

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
TABLE = np.linspace(0.5, 1.5, 40)


def numbers_from_one(x):
    s = 0.0
    for k in islice(count(1), 30):
        s = 0.9 * s + x[k % 5] / k
    return s


def every_other_one(x):
    s = 0.0
    for v in islice(TABLE, 3, None, 2):
        s = 0.9 * s + v * x[0]
    for v in itertools.islice(TABLE, 2, 90):
        s = 0.9 * s + v * x[1]
    for k in islice(range(100), 10, 30):
        s = 0.9 * s + np.sin(k * x[2])
    return s


def steps_in_turn(x):
    y = x[0]
    for h, k in zip(cycle([0.01, 0.02, 0.005]), range(30)):
        y = y - h * x[1] * y + 0.001 * k
    for (a, b), v in zip(cycle(((0.1, 0.2), (0.3, 0.4))), TABLE):
        y = y - a * v * y + b * x[2]
    return y


def the_same_again(x):
    y = x[0]
    for h in repeat(0.05, 20):
        y = y - h * x[1] * y
    for v, w, k in zip(TABLE, repeat(x[3]), count(10, -2)):
        y = 0.9 * y + v * w + 0.01 * k
    return y


def forces_between_pairs(x):
    forces, energy = np.zeros(5), 0.0
    for i, j in itertools.permutations(range(5), 2):
        forces[i] += np.sin(x[i] - x[j])
    for i, j in itertools.combinations_with_replacement(range(5), 2):
        energy += np.cos(x[i] * x[j])
    for a, b, c in itertools.permutations(x[:3]):
        energy += 0.1 * a * b**2 * c**3
    energy += sum(a * b**2 for a, b in itertools.permutations(x, 2))
    return np.sum(forces**2) + energy


def one_behind_the_other(x):
    s, u = 0.0, x * 1.0
    for k in itertools.chain([2], range(5), (), (1, 3)):
        u[k] = 0.9 * u[k] + 0.1 * s
        s = s + np.sin(x[k] * u[k])
    for v in itertools.chain(u[:3], x, TABLE[:4]):
        s = 0.9 * s + v * u[4]
    for k, (v, w) in enumerate(itertools.chain(zip(x, u, strict=True), [(0.1, 0.2)], zip(u, x, strict=True))):
        s = 0.9 * s + v * w * k
    for row in itertools.chain(np.outer(x, x), u[None]):
        s = 0.5 * s + np.sum(np.cos(row))
    return s + sum(v * v for v in itertools.chain(x, u))


def zero_before_the_others(x):
    s = x[0]
    for v in itertools.chain([0.0], x):
        s = 0.9 * s + v * x[1]
    return s


def elements_in_one_row(x):
    u, s = np.outer(x, x)[:4], 0.0
    for i, v in enumerate(u.flat):
        s = s + v * np.sin(0.1 * i * s)
    for v in u.T.flat:
        s = 0.9 * s + v
    for v, w in zip(u.flat, np.arange(20.0).reshape(4, 5).flat):  # noqa: B905
        s = s + 0.1 * v * w
    return s


@pytest.mark.parametrize(
    "f",
    [
        numbers_from_one, every_other_one, steps_in_turn, the_same_again, forces_between_pairs, one_behind_the_other,
        zero_before_the_others, elements_in_one_row,
    ],
    ids=lambda f: f.__name__,
)
def test_a_loop_over_some_of_itertools_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree(f, X)


def until_it_is_small(x):
    y = 2.0 + x[0]
    for k in count():
        y = y * 0.8
        if y < 0.1:
            break
        x = x * (1.0 + 0.001 * k)
    return y * k + x[0]


def a_time_that_is_added_up(x):
    s = 0.0
    for t in islice(count(0.0, 0.1), 30):
        s = 0.9 * s + x[0] * (t == 0.1 * 3) + np.sin(t)
    return s


def an_array_that_is_written(x):
    u, s = x * 1.0, 0.0
    for v, k in zip(cycle(u), range(12)):
        u[k % 5] = 0.5 * u[k % 5]
        s = s + v * (k + 1)
    return s


def an_iterator_that_is_used_up(x):
    s, numbers = 0.0, iter(range(20))
    for k in islice(numbers, 5):
        s = s + k * x[0]
    for k in islice(numbers, 5):
        s = s + k * x[1]
    return s + next(numbers)


def bounds_that_are_none(x):
    s = 0.0
    for k in islice(range(7), None):
        s = s + k * x[0]
    for k in islice(range(7), 0):
        s = s + k * x[1]
    for k in islice(range(7), 5, 2):
        s = s + k * x[2]
    return s


@pytest.mark.parametrize(
    "f",
    [
        until_it_is_small, a_time_that_is_added_up, an_array_that_is_written, an_iterator_that_is_used_up,
        bounds_that_are_none,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_other_loops_over_itertools_are_right(f):
    agree(f, X)


def test_bounds_that_islice_refuses_are_its_own_error():
    def f(x):
        for k in islice(range(7), -1):
            x = x * k
        return x

    with pytest.raises(ValueError, match="must be"):
        fad.jit(f)(X)
