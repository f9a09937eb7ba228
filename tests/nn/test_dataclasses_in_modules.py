"""What a registered dataclass in a module holds are the module's parameters, as what a list or a dictionary holds."""

import copy
import dataclasses
import functools

import numpy as np
import pytest

import fad
from fad import nn, optim


@functools.partial(fad.tree.register_dataclass, meta_fields=["power"])
@dataclasses.dataclass
class Scale:
    w: np.ndarray
    b: np.ndarray
    power: int = 1


@fad.tree.register_dataclass
@dataclasses.dataclass(frozen=True)
class Pair:
    scale: Scale
    layer: nn.Linear


class Model(nn.Module):
    def __init__(self):
        self.first = Scale(np.array([1.0, 2.0]), np.zeros(2), 2)
        self.rest = [Pair(Scale(np.ones(2), np.ones(2)), nn.Linear(2, 1, key=fad.random.key(0)))]

    def forward(self, x):
        x = (x * self.first.w + self.first.b) ** self.first.power
        for pair in self.rest:
            x = pair.layer(x * pair.scale.w + pair.scale.b)
        return np.sum(x)


NAMES = ["first.w", "first.b", "rest.0.scale.w", "rest.0.scale.b", "rest.0.layer.weight", "rest.0.layer.bias"]
X = np.array([0.5, -1.0])


def loss(model, x):
    return model(x) ** 2


def test_its_arrays_are_parameters_under_their_names():
    model = Model()
    assert [name for name, _ in model.named_parameters()] == NAMES
    assert len(fad.tree.leaves(model)) == 6
    assert list(model.state_dict()) == NAMES
    assert [name for name, _ in model.named_modules()] == ["", "rest.0.layer"]


@pytest.mark.parametrize("transform", [lambda f: f, fad.jit], ids=["plain", "jit"])
def test_gradients_have_its_structure_and_are_right(transform):
    model = Model()
    gradient = transform(fad.grad(loss))(model, X)
    assert type(gradient.first) is Scale
    assert type(gradient.rest[0]) is Pair
    assert gradient.first.power == 2
    step = 1e-6
    for name, place in (("w", 0), ("b", 1)):
        ends = []
        for sign in (1, -1):
            moved = copy.deepcopy(model)
            getattr(moved.first, name)[place] += sign * step
            ends.append(loss(moved, X))
        np.testing.assert_allclose(getattr(gradient.first, name)[place], (ends[0] - ends[1]) / (2 * step), rtol=1e-6)


def test_a_setting_that_changes_is_seen_by_a_compiled_function():
    model, run = Model(), fad.jit(loss)
    for power in (2, 2, 3, 1):
        model.first.power = power
        np.testing.assert_allclose(run(model, X), loss(model, X))


@pytest.mark.parametrize("make", [lambda m: optim.SGD(m, lr=0.1), lambda m: optim.Adam(m, lr=0.1)])
def test_an_optimiser_trains_them(make):
    model = Model()
    optimiser, before = make(model), model.state_dict()
    first = loss(model, X)
    for _ in range(20):
        optimiser.step(fad.grad(loss)(model, X))
    assert loss(model, X) < 0.1 * first
    assert all(np.any(before[name] != value) for name, value in model.state_dict().items())


def test_they_are_saved_loaded_frozen_and_copied():
    model, other = Model(), Model()
    for parameter in model.parameters():
        parameter += 1.0
    other.load_state_dict(model.state_dict())
    assert loss(other, X) == loss(model, X) != loss(Model(), X)
    twice = fad.tree.map(lambda x: 2 * x, model)
    np.testing.assert_array_equal(twice.first.w, 2 * model.first.w)
    assert type(twice.rest[0]) is Pair
    assert fad.tree.structure(twice) == fad.tree.structure(model)
    model.freeze()
    assert fad.tree.leaves(model) == []
    model.requires_grad_(True)
    assert len(fad.tree.leaves(model)) == 6


def test_an_array_in_two_places_is_one_parameter():
    model = Model()
    model.rest[0].scale.w = model.first.w
    assert len(fad.tree.leaves(model)) == 5
    gradient = fad.grad(loss)(model, X)
    assert gradient.rest[0].scale.w is gradient.first.w


def test_models_whose_settings_differ_differ_in_structure():
    model, other = Model(), Model()
    assert fad.tree.structure(model) == fad.tree.structure(other)
    other.first.power = 3
    assert fad.tree.structure(model) != fad.tree.structure(other)


@fad.tree.register_dataclass
@dataclasses.dataclass
class Shifted:
    w: np.ndarray
    shift: float = dataclasses.field(default=0.5, init=False)


class OfShifted(nn.Module):
    def __init__(self):
        self.part = Shifted(np.array([1.0, 2.0]))

    def forward(self, x):
        return np.sum(self.part.w * x) + self.part.shift


def test_a_default_that_the_class_alone_holds_stays_in_copies():
    model = OfShifted()
    value, gradient = fad.value_and_grad(lambda model: model(X))(model)
    assert value == model(X) == fad.jit(lambda model: model(X))(model)
    np.testing.assert_array_equal(gradient.part.w, X)
    assert gradient.part.shift == 0.5
