"""Functions that Numba compiled: given traced values, the Python functions that they were made of run."""

import copy
import functools
import importlib.util
import pickle
import sys
import types

import numpy as np
import pytest

import fad
from fad.core.tracing.tracer import Tracer
from fad.testing import check_grads

X = np.array([0.3, 1.1, 0.7, 2.0])

if importlib.util.find_spec("numba"):
    from numba import njit
else:  # what behaves as its functions do
    calls = []

    class CPUDispatcher:
        def __init__(self, f):
            self.py_func = f
            functools.update_wrapper(self, f)

        def __get__(self, owner, kind=None):
            return self if owner is None else types.MethodType(self, owner)

        def __reduce__(self):
            return self.__qualname__

        def __call__(self, *args):
            if any(type(x) is Tracer for x in args):
                raise TypeError(
                    "can't unbox array from PyObject into native value.  The object maybe of a different type"
                )
            if any(type(x) is tuple and Tracer in map(type, x) for x in args):
                raise TypeError("bad argument type for built-in operation")
            calls.append(self)
            return self.py_func(*args)

    registry = types.ModuleType("numba.core.registry")
    registry.CPUDispatcher = CPUDispatcher
    sys.modules.setdefault(registry.__name__, registry)
    njit = CPUDispatcher


@njit
def square(v):
    return v * v


@njit
def total(x, n):
    found = 0.0
    for i in range(n):
        found += square(x[i]) * x[i]
    return found


@njit
def fill(out, x):
    for i in range(len(x)):
        out[i] = square(x[i]) + np.sin(x[i])


@njit
def smooth(x, steps):
    for _ in range(steps):
        x = 0.5 * x + 0.25 * (np.roll(x, 1) + np.roll(x, -1))
    return x


@njit
def grow(v):
    while v < 10.0:
        v = v * 1.7
    return v


@njit
def of_pair(pair):
    return pair[0] * pair[1]


def of_many(functions):
    first, second = functions

    @njit
    def composed(v):
        return first(v) * second(v)

    return composed


@njit
def shifted(v):
    return v + 1.0


composed = of_many((square, shifted))
TABLE = {"square": square}


class Model:
    rule = staticmethod(square)

    def __init__(self):
        self.sum = total

    def __call__(self, x):
        return self.sum(x, 3) + np.sum(self.rule(x)) + TABLE["square"](x[0])


MODEL = Model()


def filled(x):
    out = np.zeros(len(x))
    fill(out, x)
    return np.sum(out * x)


PROGRAMS = {
    "a call": lambda x: total(x, 3), "a call of a call": lambda x: total(square(x), 4), "writes": filled,
    "a loop": lambda x: np.sum(smooth(x, 6) ** 2), "a number": lambda x: square(x[0]) * x[1],
    "a branch": lambda x: grow(x[0]) * x[1], "a tuple": lambda x: of_pair((x[0], x[1])),
    "a closure": lambda x: np.sum(composed(x)), "an object": lambda x: MODEL(x),
    "beside plain arrays": lambda x: total(X, 2) * total(x, 2),
}  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_they_are_differentiated_mapped_and_compiled(f):
    slope = fad.grad(f)(X)
    check_grads(f, (X,), order=2)
    np.testing.assert_allclose(fad.value_and_grad(f)(X)[0], f(X))
    batch = np.stack([X, 0.9 * X, X[::-1]])
    np.testing.assert_allclose(fad.vmap(f)(batch), [f(x) for x in batch])
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(batch)[0], slope)
    compiled, compiled_slope = fad.jit(f), fad.jit(fad.grad(f))
    for x in batch:
        np.testing.assert_allclose(compiled(x), f(x))
        np.testing.assert_allclose(compiled_slope(x), fad.grad(f)(x))


def test_a_transform_is_given_one_itself():
    np.testing.assert_allclose(fad.grad(square)(3.0), 6.0)
    np.testing.assert_allclose(fad.jit(fad.grad(total))(X, 2), [3 * X[0] ** 2, 3 * X[1] ** 2, 0.0, 0.0])
    np.testing.assert_allclose(fad.vmap(square)(X), X**2)


def test_a_loop_in_one_is_captured():
    compiled = fad.jit(lambda x: np.sum(smooth(x, 500)))
    compiled(X)
    assert "captured: 500 steps" in str(compiled.explain())


def test_names_stand_for_them_again_behind_a_transform():
    before = square
    fad.grad(lambda x: np.sum(square(x)))(X)
    assert square is before
    assert MODEL.sum is total
    assert type(MODEL.rule) is type(square)
    np.testing.assert_allclose(square(X), X**2)


def test_plain_arguments_go_to_the_compiled_function():
    seen = []

    def f(x):
        seen.append(type(square(2.0)))
        return np.sum(square(x)) * square(2.0) + total(X, 3)

    np.testing.assert_allclose(fad.grad(f)(X), 8.0 * X)
    assert seen[-1] is type(square(2.0))


def test_what_stands_for_one_is_copied_as_it():
    def f(x):
        held = [square, copy.copy(square), copy.deepcopy({"f": square})["f"]]
        assert square.py_func is held[0].py_func
        assert isinstance(square, type(total))
        return sum(np.sum(g(x)) for g in held)

    np.testing.assert_allclose(fad.grad(f)(X), 6.0 * X)
    assert pickle.loads(pickle.dumps(square)) is not None


def test_its_ufuncs_are_mapped():
    numba = pytest.importorskip("numba")

    @numba.vectorize
    def bend(a, b):
        return a * b if a > 0.5 else b

    for f in (lambda x: np.sum(bend(x, 2 * x) * x), lambda x: np.sum(bend(x[:, None], X)[:, 0])):
        check_grads(f, (X,), order=2)
        np.testing.assert_allclose(fad.jit(f)(X), f(X))
        np.testing.assert_allclose(fad.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)])
