"""Inner transforms and arrays of outer ones: what they are given are values, and nothing is written outside twice."""

import numpy as np
import pytest
from in_place.test_in_place_programs import X, close, differences

import fad


def the_same_table_for_all_examples(x):
    table = x * 1.0

    def row(y, t):
        t[0] = 0.0
        return y * t[1] + t[0]

    return np.sum(fad.vmap(row, in_axes=(0, None))(x, table)) + np.sum(table)


def an_argument_that_is_not_differentiated(x):
    table = x * 1.0

    def inner(y, t):
        t[0] = 0.0
        return y[1] ** 2 * t[1] + t[0]

    return np.sum(fad.grad(inner)(x, table)) + np.sum(table)


def examples_that_take_different_paths(x):
    def row(y):
        b = np.zeros(2)
        b[0] = y
        if y > 1.0:
            b[1] = y * y
        return b

    return np.sum(fad.vmap(row)(x) * np.arange(1.0, 3.0))


@pytest.mark.parametrize("f", [
    the_same_table_for_all_examples, an_argument_that_is_not_differentiated, examples_that_take_different_paths,
], ids=lambda f: f.__name__)  # fmt: skip
def test_an_inner_transform_leaves_what_it_is_given(f):
    value, g = f(X.copy()), differences(f, X)
    found, slope = fad.value_and_grad(f)(X)
    close(found, value, f, 1e-13)
    close(slope, g, f)
    close(fad.jit(fad.grad(f))(X), g, f)
    close(fad.vmap(fad.grad(f))(np.stack([X, X]))[1], g, f)


@pytest.mark.parametrize("make", [lambda x: x * 1.0, lambda x: np.array([1.0, 2.0])], ids=["traced", "plain"])
@pytest.mark.parametrize("at", [0, [0]], ids=["element", "index array"])
def test_examples_that_take_different_paths_do_not_write_outside(make, at):
    def f(x):
        count = make(x)

        def row(y):
            count[at] += 1.0
            return y * 2 if y > 1.0 else y

        return np.sum(fad.vmap(row)(x)) * count[0]

    with pytest.raises(fad.errors.ItemAssignmentError, match="different paths"):
        fad.grad(f)(X)


def test_an_array_of_a_run_that_was_given_up_is_not_taken_for_one_from_outside():
    def f(x, s):
        rows = np.zeros((3, 2))
        row = rows[1]
        row *= x
        if x[0] > 0:
            return np.array([x[-1], float(s)]) + row  # met for the first time on this path: the path runs again
        return x + row

    x, s = np.array([[1.0, 2.0], [-1.0, 3.0]]), np.array([4.0, 5.0])
    np.testing.assert_array_equal(fad.vmap(f)(x, s), [[2.0, 4.0], [-1.0, 3.0]])
