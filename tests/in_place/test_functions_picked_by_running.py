"""Functions that a program picks while it runs, of modules that its code does not show, need NumPy's overlay."""

import types

import numpy as np
import pytest

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
