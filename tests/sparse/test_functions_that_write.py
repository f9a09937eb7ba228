"""Sparse derivatives of functions that write into arrays from outside: as if the function ran once."""

import numpy as np
import pytest

import fad

COUNT = np.zeros(1)


class Scaled:
    def __init__(self):
        self.calls = np.zeros(1)

    def __call__(self, x):
        self.calls += 1
        return x * self.calls[0]


def of_a_closure():
    count = np.zeros(1)

    def f(x):
        count[0] += 1
        return x * count[0]

    return f, count


def of_a_module():
    COUNT[:] = 0

    def f(x):
        COUNT[0] += 1
        return x * COUNT[0]

    return f, COUNT


def of_an_object():
    f = Scaled()
    return f, f.calls


def of_a_copy():
    count, scale = np.zeros(1), np.ones(2)

    def f(x):
        count[0] += 1
        y = scale.copy()
        y *= x * count[0]
        return y

    return f, count


MAKERS = [of_a_closure, of_a_module, of_an_object, of_a_copy]


@pytest.mark.parametrize("make", MAKERS)
@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
def test_each_run_of_a_jacobian_sees_what_the_first_one_saw(make, mode):
    f, count = make()
    jacobian = fad.sparse.jacobian(f, mode=mode)
    for k in (1, 2, 3):
        np.testing.assert_array_equal(jacobian(np.ones(2)).toarray(), k * np.eye(2))
        assert count[0] == k
    np.testing.assert_array_equal(fad.sparse.pattern(f)(np.ones(2)).toarray(), np.eye(2))
    assert count[0] == 4


@pytest.mark.parametrize("make", MAKERS)
def test_each_run_of_a_hessian_sees_what_the_first_one_saw(make):
    f, count = make()
    hessian = fad.sparse.hessian(lambda x: np.sum(f(x) ** 2))
    for k in (1, 2, 3):
        np.testing.assert_array_equal(hessian(np.ones(2)).toarray(), 2 * k**2 * np.eye(2))
        assert count[0] == k


def test_passes_in_chunks_and_gathers_that_are_cut():
    count, places = np.zeros(1), np.array([0, 1, 2, 0, 1, 2, 0])

    def f(x):
        count[0] += 1
        return np.cumsum(x[places]) * count[0]

    want = np.cumsum(np.eye(3)[places], axis=0)
    for options in ({}, {"chunk_size": 1}, {"chunk_size": None}, {"check": False}):
        count[:] = 0
        jacobian = fad.sparse.jacobian(f, **options)
        for k in (1, 2):
            np.testing.assert_array_equal(jacobian(np.ones(3)).toarray(), k * want)
            assert count[0] == k


def test_a_buffer_of_a_function_that_is_differentiated():
    def total(w):
        count = np.zeros(2)

        def f(x):
            count[0] += 1
            count[1] += w
            return x * w * count[0] * count[1]

        return fad.sparse.jacobian(f)(np.ones(2)).sum() + 10 * count.sum()

    assert total(2.0) == 8.0 + 30.0
    assert fad.grad(total)(2.0) == 8.0 + 10.0
    assert fad.jit(total)(2.0) == 38.0


def test_explain_leaves_what_one_run_leaves():
    f, count = of_a_closure()
    fad.sparse.jacobian(f).explain(np.ones(2))
    assert count[0] == 1
