"""A bare ``except:`` also catches what ends a run for reasons of fad's; the function then goes on where it should not.

Each function takes a path by a try with such an except, and is compared with the plain one, element by element.
"""

import numpy as np
import pytest

import fad
from fad.errors import BatchedValueError


def fold(x):
    try:
        y = x if x > 0 else -x
    except:  # noqa: E722
        y = 7.0 * x
    return y * x


def root_or_fold(x):
    try:
        if x < 0:
            raise ValueError
        return np.sqrt(x)
    except:  # noqa: E722
        return -x


def cover_the_error(x):
    try:
        y = x if x > 0 else -x
    except BaseException as error:
        raise ValueError("bad") from error
    return y


def try_until_positive(x):
    while True:
        try:
            if x > 0:
                return x * x
            x = x + 1
        except:  # noqa: E722
            pass


def factor_with_more_and_more(x):
    shift, A = 0.25, x * np.eye(2)
    while True:
        try:
            return np.linalg.cholesky(A)[0, 0] * x
        except:  # noqa: E722
            A, shift = A + shift * np.eye(2), 2 * shift


def ask_by_a_fold(x):
    return fold(x) + fad.cond(x > 1, lambda: fold(x - 2), lambda: x)


def sum_in_a_loop(x):
    total = 0.0
    for k in range(12):
        total = total + fold(x - k)
    return total


def sum_by_scan(x):
    return fad.scan(lambda c, k: (c + fold(x - k), None), 0.0, np.arange(12.0))[0]


FUNCTIONS = [
    fold, root_or_fold, cover_the_error, try_until_positive, factor_with_more_and_more, ask_by_a_fold, sum_in_a_loop,
    sum_by_scan,
]  # fmt: skip
POINTS = np.array([1.5, -2.25, 3.5, -0.3])

by_function = pytest.mark.parametrize("fun", FUNCTIONS, ids=lambda f: f.__name__)


@by_function
def test_vmap_gives_each_element_what_the_plain_function_gives(fun):
    np.testing.assert_allclose(fad.vmap(fun)(POINTS), [fun(x) for x in POINTS], rtol=1e-14)


@by_function
def test_vmap_of_grad_gives_each_element_its_derivative(fun):
    h = 1e-6
    expected = [(fun(x + h) - fun(x - h)) / (2 * h) for x in POINTS]
    np.testing.assert_allclose(fad.vmap(fad.grad(fun))(POINTS), expected, rtol=1e-7)


@by_function
def test_jit_gives_what_the_plain_function_gives_at_every_point(fun):
    compiled = fad.jit(fun)
    np.testing.assert_allclose([compiled(x) for x in POINTS], [fun(x) for x in POINTS], rtol=1e-14)


@by_function
def test_jit_of_grad_gives_what_grad_gives_at_every_point(fun):
    compiled = fad.jit(fad.grad(fun))
    np.testing.assert_allclose([compiled(x) for x in POINTS], [fad.grad(fun)(x) for x in POINTS], rtol=1e-14)


@pytest.mark.parametrize("fun", [fold, root_or_fold, factor_with_more_and_more], ids=lambda f: f.__name__)
def test_an_error_that_was_asked_for_is_raised_though_the_function_caught_it(fun):
    with pytest.raises(BatchedValueError, match="on_branch='error'"):
        fad.vmap(fun, on_branch="error")(POINTS)


def test_a_graph_of_an_operation_that_raised_is_no_graph_of_what_the_function_did_then():
    with pytest.raises(np.linalg.LinAlgError):
        fad.make_graph(factor_with_more_and_more)(-1.0)
