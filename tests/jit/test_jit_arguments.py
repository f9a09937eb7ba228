"""What a jitted function writes into its arguments stays with it, whatever runs around the call."""

import itertools

import numpy as np
import pytest

import fad

X = np.array([2.0, 3.0])


def _write(v):
    v[0] = 10 * v[1]
    return v.sum()


def _write_through_a_view(v):
    part = v[:1]
    part += 10 * v[1]
    return v.sum()


def _write_a_number(v):
    v[0] = 7.0
    return v.sum()


def _fill(v):
    v.fill(5.0)
    return v.sum()


INNER = {
    "jit": fad.jit,
    "jit of grad": lambda f: fad.jit(lambda v: np.sum(fad.grad(f)(v))),
    "grad of jit": lambda f: lambda v: np.sum(fad.grad(fad.jit(f))(v)),
    "jit of vmap": lambda f: fad.jit(lambda v: np.sum(fad.vmap(f)(v[None]))),
    "vmap of jit": lambda f: lambda v: np.sum(fad.vmap(fad.jit(f))(v[None])),
    "jit of jit": lambda f: fad.jit(fad.jit(f)),
}
OUTER = {
    "plain": lambda f: f(X),
    "jit": lambda f: fad.jit(f)(X),
    "grad": lambda f: fad.value_and_grad(f)(X),
    "jvp": lambda f: fad.jvp(f, (X,), (X,)),
    "linearize": lambda f: fad.linearize(f, X)[0],
    "jacfwd": lambda f: fad.jacfwd(f)(X),
    "vmap": lambda f: fad.vmap(f)(np.stack([X, X])),
    "jit of grad": lambda f: fad.jit(fad.value_and_grad(f))(X),
    "grad of jit": lambda f: fad.value_and_grad(fad.jit(f))(X),
    "jit of vmap": lambda f: fad.jit(fad.vmap(f))(np.stack([X, X])),
    "vmap of jit": lambda f: fad.vmap(fad.jit(f))(np.stack([X, X])),
    "jvp of jit": lambda f: fad.jvp(fad.jit(f), (X,), (X,)),
    "vmap of grad": lambda f: fad.vmap(fad.grad(f))(np.stack([X, X])),
    "grad of vmap": lambda f: fad.grad(lambda x: np.sum(fad.vmap(f)(np.stack([x, x]))))(X),
    "jit of grad of a checkpoint": lambda f: fad.jit(fad.grad(fad.checkpoint(f)))(X),
    "hessian": lambda f: fad.hessian(f)(X),
}


@pytest.mark.parametrize("write", [_write, _write_through_a_view, _write_a_number, _fill])
@pytest.mark.parametrize("inner", INNER)
@pytest.mark.parametrize("outer", OUTER)
def test_the_caller_keeps_what_it_gave(outer, inner, write):
    fast = INNER[inner](write)

    def f(x):
        y = x.copy()
        s = fast(y)
        return y[0] + 0 * s

    for _ in range(3):
        for got, want in zip(
            fad.tree.leaves(OUTER[outer](f)), fad.tree.leaves(OUTER[outer](lambda x: x[0])), strict=True
        ):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("outer", OUTER)
def test_the_caller_keeps_an_array_that_no_transform_traces(outer):
    @fad.jit
    def fast(v, x):
        v[0] = 7.0
        return v[0] * x

    def f(x):
        y = np.ones(2)
        s = fast(y, x[0])
        return y[0] * s

    for _ in range(3):
        for got, want in zip(
            fad.tree.leaves(OUTER[outer](f)), fad.tree.leaves(OUTER[outer](lambda x: 7.0 * x[0])), strict=True
        ):
            np.testing.assert_array_equal(got, want)


def test_a_call_whose_program_raised_leaves_its_argument_alone():
    @fad.jit
    def f(v):
        v[0, 0] = 7.0
        try:
            return np.linalg.inv(v)
        except np.linalg.LinAlgError:
            return v * 0

    regular, singular = np.array([[1.0, 0.0], [0.0, 1.0]]), np.zeros((2, 2))
    for _ in range(3):
        f(regular)
        np.testing.assert_array_equal(f(singular), np.zeros((2, 2)))
        np.testing.assert_array_equal(singular, np.zeros((2, 2)))


def test_an_array_that_is_given_to_a_jitted_function_is_watched_all_the_same():
    x = np.array([1.0, 2.0])
    hidden = itertools.repeat(x)  # where no walk finds it

    @fad.jit
    def inner(v, w):
        v[1] = 0.0
        return np.sum(w * v)

    outer = fad.jit(lambda v: inner(v, next(hidden)))
    for n in (1.0, 2.0, 3.0):
        x[:] = [n, 0.0]
        assert outer(X) == 2.0 * n
