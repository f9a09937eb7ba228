"""Numbers without a derivative (whole numbers, booleans, what floor gives) are keys of dictionaries by their value."""

import collections
import functools

import numpy as np
import pytest

import fad

POINTS = np.array([[0.3, 0.9, 0.4], [0.8, 0.1, 0.2], [0.55, 0.5, 0.7]])


def sums_by_class(x):
    sums = collections.defaultdict(float)
    for v, k in zip(x, (x * 3).astype(int), strict=True):
        sums[k] = sums[k] + v * v
    return sum(s**2 for s in sums.values()) * len(sums)


def weight_from_a_table(x):
    return {0: 1.0, 1: 2.0, 2: 5.0}[np.argmax(x)] * x[2] ** 2


def number_of_visits(x):
    seen, again = set(), 0
    for i in [*np.argsort(x)[:2], np.argmin(x), np.argmax(x)]:
        again += i in seen
        seen.add(i)
    return again * np.sum(x**3)


def answer_in_a_table(x):
    return {True: 2.0, False: 3.0}[x[0] > 0.5] * x[1] ** 2


def cached_by_place(x):
    @functools.cache
    def power(i):
        return x[i % 3] ** (i + 2)

    return power(np.argmax(x)) + power(np.argmin(x) + 1) * power(0)


def means_of_cells(x):
    cells = collections.defaultdict(list)
    for v in x:
        cells[v // 0.47].append(v)
    return sum(np.mean(cell) ** 2 for cell in cells.values())


def means_of_cells_of_points(x):
    points = np.stack([x, x[::-1] + 0.1, 1.2 * x])
    cells = collections.defaultdict(list)
    for point in points:
        cells[tuple(point // 0.47)].append(point)
    return np.sum(np.vstack([np.mean(cell, axis=0) for cell in cells.values()]) ** 2)


def number_of_rounded_values(x):
    return len({*np.round(x), np.sign(x[0]), np.trunc(x[1])}) * np.sum(x**3)


PROGRAMS = [
    sums_by_class, weight_from_a_table, number_of_visits, answer_in_a_table, cached_by_place, means_of_cells,
    means_of_cells_of_points, number_of_rounded_values,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_numbers_without_a_derivative_are_keys_by_their_value(f):
    values = np.stack([f(x) for x in POINTS])
    h = 1e-6
    steps = h * np.eye(3)
    slopes = np.array([[(f(x + e) - f(x - e)) / (2 * h) for e in steps] for x in POINTS])
    compiled, gradient = fad.jit(f), fad.jit(fad.grad(f))
    for k, x in enumerate(POINTS):
        np.testing.assert_allclose(fad.grad(f)(x), slopes[k], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(fad.grad(fad.checkpoint(f))(x), slopes[k], rtol=1e-6, atol=1e-8)
        np.testing.assert_allclose(compiled(x), values[k])
        np.testing.assert_allclose(gradient(x), slopes[k], rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fad.vmap(f)(POINTS), values)
    np.testing.assert_allclose(fad.grad(lambda xs: np.sum(fad.vmap(f)(xs)))(POINTS), slopes, rtol=1e-6, atol=1e-8)
    np.testing.assert_allclose(fad.jit(fad.vmap(fad.grad(f)))(POINTS), slopes, rtol=1e-6, atol=1e-8)


def test_a_cache_does_not_take_one_float_for_an_equal_one():
    def f(x):
        square = functools.cache(lambda v: v * v)
        return square(x[0]) + square(x[1])

    np.testing.assert_array_equal(fad.grad(f)(np.array([2.0, 2.0])), [4.0, 4.0])


def test_what_is_computed_of_such_numbers_is_a_key_by_its_value_in_compiled_functions():
    f = lambda x: len({v + 1.0 for v in 0.5 * np.floor(2.0 * x)}) * x
    compiled = fad.jit(f)
    for x in (*POINTS, POINTS[0]):
        np.testing.assert_array_equal(compiled(x), f(x))
