"""Functions that a program picks while it runs, of modules that its code does not show, need NumPy's overlay."""

import math
import sys
import types

import numpy as np
import pytest
import scipy.linalg

import fad

X = np.array([0.5, 1.5, -0.7])
SQUARES = np.array([1.0, 2.0, 3.0])
MODULES = {
    "begins": """
def run(x, pick):
    rows = np.empty((2, 3))
    rows[0], rows[1] = x, 2 * x
    return pick("goes_on")(rows, pick)
""",
    "goes_on": """
def run(rows, pick):
    out = np.zeros(3)
    out += rows[0] * rows[1]
    return pick("ends")(out)
""",
    "ends": """
def run(y):
    return float(np.sum(y))
""",
}


@pytest.fixture
def pick():
    """Return a function that gives the function `run` of a module by name, and notes the names."""
    modules = {}
    for name, text in MODULES.items():
        modules[name] = types.ModuleType(name)
        vars(modules[name]).update(np=np)
        exec(compile(text, f"<{name}>", "exec"), vars(modules[name]))
    picked = []

    def find(name):
        picked.append(name)
        return getattr(modules[name], "run")  # noqa: B009  (so that no code names it)

    find.picked = picked
    return find


@pytest.mark.parametrize("transform", [fad.grad, lambda f: fad.jit(fad.grad(f))])
def test_each_module_that_a_run_comes_to_is_known_from_then_on(transform, pick):
    gradient = transform(lambda x: pick("begins")(x, pick))
    np.testing.assert_allclose(gradient(X), 4 * X)
    gradient = fad.grad(lambda x: pick("begins")(x, pick))
    gradient(X)
    pick.picked.clear()
    np.testing.assert_allclose(gradient(2 * X), 8 * X)
    assert pick.picked == ["begins", "goes_on", "ends"]  # it ran once


def test_a_namespace_that_is_chosen_by_running_makes_arrays_that_take_traced_values():
    space = types.ModuleType("space")
    vars(space).update(zeros=np.zeros, sum=np.sum)

    def doubled(x, xp):
        out = xp.zeros(3)
        out[:] = x
        return xp.sum(out * SQUARES)

    np.testing.assert_array_equal(fad.grad(lambda x: doubled(x, space))(X), SQUARES)
    assert space.zeros is np.zeros


class Lazy:
    def __init__(self, x):
        self.x = x

    def rows(self):
        if not hasattr(self, "held"):
            self.held = np.full((2, 3), 7.0)
            self.held[0], self.held[1] = self.x, 2 * self.x
        return self.held


def keeps_what_it_began(x):
    lazy = Lazy(x)
    try:
        size = np.sum(lazy.rows())
    except Exception:
        size = 0.0
    return size + np.sum(lazy.rows() ** 2)


def tries_an_element(x):
    y = np.zeros(3)
    try:
        y[1] = x[0]
    except Exception:
        return np.sum(x)
    return np.sum(y) * x[1]


def tries_to_add(x):
    y = np.zeros(3)
    try:
        y += x
    except TypeError:
        return np.sum(x)
    return np.sum(y) * x[1]


def tries_a_list(x):
    try:
        return np.prod(np.array([x[0], x[1], 2.0]))
    except Exception as error:
        raise ValueError("bad input") from error


@pytest.mark.parametrize("name", ["keeps_what_it_began", "tries_an_element", "tries_to_add", "tries_a_list"])
def test_a_write_whose_error_the_program_catches_is_run_again(name):
    call = lambda x: getattr(sys.modules[__name__], name)(x)
    wanted = [(call(X + step) - call(X - step)) / 2e-6 for step in 1e-6 * np.eye(3)]
    for transform in (fad.jacfwd, fad.grad, lambda g: fad.jit(fad.grad(g))):
        np.testing.assert_allclose(transform(lambda x: call(x))(X), wanted, rtol=1e-8)


HELD = {
    "a part of a module that code names": "def run(x): return backend.linalg.expm(np.diag(x)).sum()",
    "an object of vectorize": "def run(x): return exponential(x).sum()",
}


@pytest.mark.parametrize("name", HELD)
def test_functions_that_a_picked_module_passes_on_are_differentiated(name, monkeypatch):
    backend, module = types.ModuleType("backend"), types.ModuleType("module")
    backend.linalg = types.ModuleType("backend.linalg")
    backend.linalg.expm = scipy.linalg.expm
    vars(module).update(np=np, backend=backend, exponential=np.vectorize(math.exp))
    exec(compile(HELD[name], "<picked>", "exec"), vars(module))
    monkeypatch.setitem(sys.modules, "picked", module)

    def f(x):
        return sys.modules["picked"].run(x)

    np.testing.assert_allclose(fad.jit(f)(X), np.sum(np.exp(X)), rtol=1e-14)
    np.testing.assert_allclose(fad.grad(f)(X), np.exp(X), rtol=1e-14)
