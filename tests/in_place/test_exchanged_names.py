"""NumPy's names are exchanged in a module as they stand there at each call, however many names it has."""

import numpy as np
import pytest

import fad
from fad.core.runs import overlay

BODY = """
import numpy as np
{names}
make = np.zeros
def fill(x):
    y = make(3)
    y[0] = x * x
    y[1:] = 2.0 * x
    return y[0] + y[1]
def draw(x):
    y = np.zeros(2)
    y[:] = rng.normal(size=2)
    return y[0] * x
"""


def build(count):
    space = {"__name__": f"module_of_{count}_names"}
    exec(BODY.format(names="\n".join(f"name_{i} = {i}" for i in range(count))), space)
    return space


@pytest.mark.parametrize("count", [3, 200])
def test_a_name_that_stands_for_something_else_later_is_exchanged_or_left_as_it_is_then(count):
    space = build(count)
    gradient = fad.grad(space["fill"])
    for make in (np.zeros, np.ones, lambda n: np.full(n, 7.0), np.zeros, np.empty):
        space["make"] = make
        assert gradient(3.0) == 8.0
        assert space["make"] is make
        assert space["np"] is np


@pytest.mark.parametrize("count", [3, 200])
def test_a_name_that_is_new_is_exchanged(count):
    space = build(count)
    gradient = fad.grad(space["fill"])
    assert gradient(3.0) == 8.0
    exec("def fill(x):\n    y = later(2)\n    y[0] = x**3\n    return y[0]", space)
    space["later"] = np.zeros
    assert fad.grad(space["fill"])(2.0) == 12.0
    del space["later"]
    space["later"] = np.ones
    assert fad.grad(space["fill"])(2.0) == 12.0


@pytest.mark.parametrize("count", [3, 200])
def test_a_generator_that_is_made_anew_draws_its_own_numbers(count):
    space = build(count)
    gradient = fad.grad(space["draw"])
    for seed in range(6):
        space["rng"] = np.random.default_rng(seed)  # where the one before lay
        assert gradient(1.0) == np.random.default_rng(seed).normal(size=2)[0]


class Rescaled:
    """What a library made, for which another thing is to stand in."""


def test_objects_of_a_class_that_is_exchanged_from_now_on_are_found_in_a_module_that_was_looked_at(monkeypatch):
    space = build(200)
    space["made"] = Rescaled()
    table = overlay._find_table(overlay._Needs())
    assert "made" not in [name for name, _, _ in overlay._find_names(space, table)]
    monkeypatch.setitem(overlay._stand_ins, Rescaled, lambda x: 3.0)
    assert ("made", space["made"], 3.0) in overlay._find_names(space, table)
