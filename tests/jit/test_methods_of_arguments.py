"""What methods of arguments read besides the arrays: globals, settings, attributes that change between calls."""

import dataclasses
from typing import NamedTuple

import numpy as np
import pytest

import fad
from fad import nn

SCALE = 2.0
TABLE = np.array([1.0, 2.0])
SETTINGS = {"power": 2}


def read_globals(w, x):
    return np.sum(w * x) ** SETTINGS["power"] * SCALE * TABLE[0]


class Layer(nn.Module):
    gain = 1.0

    def __init__(self):
        self.w = np.array([1.0, 2.0])
        self.index = np.array([0, 1])
        self.settings = {"powers": [1, 2]}
        self.mixed = [np.array([3.0]), [4.0], np.tanh]
        self.inner = nn.Linear(2, 1, key=0).freeze()
        self.note = Note()

    def forward(self, x):
        first, (factor,), f = self.mixed
        y = read_globals(self.w[self.index], x) ** self.settings["powers"][0] + self.scaled(first[0]) * factor
        return f(0.01 * y) + np.sum(self.inner(self.w)) * self.note.factor * self.gain

    def scaled(self, x):
        return x * SCALE


class Note:
    factor = 1.5


@fad.tree.register_dataclass
@dataclasses.dataclass
class Record:
    w: np.ndarray
    layer: Layer = dataclasses.field(default_factory=Layer)
    powers: list = dataclasses.field(default_factory=lambda: [1, 2], metadata={"static": True})

    def __call__(self, x):
        return read_globals(self.w, x) ** self.powers[0] + self.layer(x)

    __hash__ = object.__hash__
    __eq__ = object.__eq__


class Row(NamedTuple):
    w: np.ndarray
    layer: Layer

    def value(self, x):
        return read_globals(self.w, x) + self.layer(x)


MAKE = {
    "module": lambda: (Layer(), lambda a: a(2.0)),
    "dataclass": lambda: (Record(np.array([1.0, 2.0])), lambda a: a(2.0)),
    "named tuple": lambda: (Row(np.array([1.0, 2.0]), Layer()), lambda a: a.value(2.0)),
}
CHANGES = {
    "global": lambda patch, layer: patch.setattr(f"{__name__}.SCALE", 3.0),
    "element of a global": lambda patch, layer: patch.setitem(SETTINGS, "power", 3),
    "global array": lambda patch, layer: patch.setattr(f"{__name__}.TABLE", 3.0 * TABLE),
    "class attribute": lambda patch, layer: patch.setattr(Layer, "gain", 3.0),
    "integers": lambda patch, layer: layer.index.fill(1),
    "nested list": lambda patch, layer: layer.settings["powers"].__setitem__(0, 3),
    "list beside parameters": lambda patch, layer: layer.mixed[1].__setitem__(0, 9.0),
    "frozen parameter": lambda patch, layer: layer.inner.weight.fill(3.0),
    "attribute of an object": lambda patch, layer: setattr(layer.note, "factor", 3.0),
}
TRANSFORMS = {
    "jit": fad.jit,
    "jit of grad": lambda f: fad.jit(fad.grad(f)),
    "grad of jit": lambda f: fad.grad(fad.jit(f)),
    "jvp of jit": lambda f: (lambda g: lambda a: fad.jvp(g, (a,), (fad.tree.map(np.ones_like, a),)))(fad.jit(f)),
}


def leaves(x):
    return [np.asarray(leaf) for leaf in fad.tree.leaves(x)]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("make", MAKE)
def test_what_a_method_reads_is_read_again_when_it_has_changed(make, change, transform, monkeypatch):
    argument, f = MAKE[make]()
    run = TRANSFORMS[transform](f)
    for _ in range(3):
        before = run(argument)
    CHANGES[change](monkeypatch, argument if make == "module" else argument.layer)
    after, expected = run(argument), TRANSFORMS[transform](f)(argument)
    assert not all(map(np.array_equal, leaves(before), leaves(after)))
    for x, y in zip(leaves(after), leaves(expected), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


def test_a_list_that_is_a_static_field_is_read_again():
    record = Record(np.array([1.0, 2.0]))
    run = fad.jit(lambda r: r(2.0))
    for _ in range(2):
        run(record)
    record.powers[0] = 3
    np.testing.assert_allclose(run(record), record(2.0), rtol=1e-12)
