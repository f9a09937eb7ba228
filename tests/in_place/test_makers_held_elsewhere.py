"""Functions of NumPy's that closures, defaults, classes and tables hold make arrays as those that modules name."""

import dataclasses
import functools
import types
from typing import Any, NamedTuple

import numpy as np
import pytest

import fad

X = np.array([1.0, 2.0])
SLOPES = [1.0, 4.0]


def fill(y, x):
    y[0] = x[0]
    y[1] = x[1] ** 2
    return y.sum()


def wrap(target):
    @functools.wraps(target)
    def wrapped(*args, **kwargs):
        return target(*args, **kwargs)

    return wrapped


def take_from(xp):
    return lambda x: fill(xp.zeros(2), x)


class Pair(NamedTuple):
    make: Any


class Backend:
    array = np.array
    zeros = staticmethod(np.zeros)
    stack = np.stack

    def collect(self, x):
        return self.array([x[0], x[1] ** 2]).sum()


@dataclasses.dataclass
class Model:
    make: Any = np.zeros

    def __call__(self, x):
        return fill(self.make(2), x)


own_array, own_zeros = wrap(np.array), wrap(np.zeros)
TABLE = {"array": np.array, "module": np}
MAKERS = [np.zeros, np.ones]
PAIR = Pair(np.zeros)
PART = functools.partial(np.zeros, dtype=float)
SPACE = types.SimpleNamespace(xp=np)
BACKEND, MODEL = Backend(), Model()


def default(x, make=np.zeros, *, again=np.array):
    return again([fill(make(2), x)]).sum()


PROGRAMS = {
    "a closure": lambda x: own_array([x[0], x[1] ** 2]).sum(),
    "a closure that makes what is written": lambda x: fill(own_zeros(2), x),
    "a closure with the module": take_from(np),
    "a class": lambda x: BACKEND.collect(x) + 0 * Backend.stack([x, x]).sum(),
    "a static method": lambda x: fill(Backend.zeros(2), x),
    "a table": lambda x: TABLE["array"]([x[0], x[1] ** 2]).sum(),
    "a table with the module": lambda x: fill(TABLE["module"].zeros(2), x),
    "a list": lambda x: sum(fill(make(2), x) for make in MAKERS) / 2,
    "a tuple with names": lambda x: fill(PAIR.make(2), x),
    "a partial function": lambda x: fill(PART(2), x),
    "an attribute": lambda x: fill(SPACE.xp.zeros(2), x),
    "a field": MODEL,
    "a default": default,
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_take_traced_values_and_make_what_can_be_written(name):
    f = PROGRAMS[name]
    for _ in range(2):  # what was learned the first time
        np.testing.assert_allclose(fad.grad(f)(X), SLOPES)
        np.testing.assert_allclose(fad.jvp(f, (X,), (X,))[1], 9.0)
        np.testing.assert_allclose(fad.jit(fad.grad(f))(X), SLOPES)
        np.testing.assert_allclose(fad.vmap(f)(np.stack([X, 2 * X])), [5.0, 18.0])


def test_they_are_numpys_again_afterwards():
    fad.grad(PROGRAMS["a list"])(X)
    fad.grad(PROGRAMS["a default"])(X)
    fad.grad(PROGRAMS["a class"])(X)
    fad.grad(PROGRAMS["a table"])(X)
    (cell,) = own_array.__closure__
    found = [*MAKERS, *default.__defaults__, *TABLE.values(), vars(Backend)["array"], cell.cell_contents]
    assert found == [np.zeros, np.ones, np.zeros, np.array, np, np.array, np.array]


def test_a_loop_over_makers_in_a_compiled_gradient():
    def total(x):
        t = 0.0
        for make in MAKERS:
            y = make(2)
            y[0] = x[0]
            y[1] = x[1] ** 2
            t = t + y.sum()
        return t / 2

    np.testing.assert_allclose(fad.grad(total)(X), SLOPES)
    np.testing.assert_allclose(fad.jit(fad.grad(total))(X), SLOPES)


@pytest.mark.parametrize("name", ["zeros_like", "ones_like", "full_like", "empty_like"])
def test_what_is_made_like_a_number_is_an_array_that_takes_values(name):
    class Proxy:
        def __init__(self, module):
            self.module = module

        def __getattr__(self, name):
            return getattr(self.module, name)

    proxy = Proxy(np)

    def write(x):
        y = getattr(proxy, name)(x, *[2.0] * (name == "full_like"))
        y[np.abs(x) > 1] = 0.5
        y[np.abs(x) <= 1] = 3.0
        return y

    np.testing.assert_array_equal(fad.vmap(write)(X), [3.0, 0.5])
