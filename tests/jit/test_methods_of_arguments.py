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


@fad.tree.register_dataclass
@dataclasses.dataclass
class Scaled:
    w: np.ndarray
    by: tuple = dataclasses.field(metadata={"static": True})


class Registered:
    def __init__(self, w, by):
        self.w, self.by = w, by


fad.tree.register_node(Registered, lambda x: ((x.w,), x.by), lambda by, ws: Registered(*ws, by))


class ScaledModule(nn.Module):
    def __init__(self, w, by):
        self.w, self.by = w, by


@pytest.mark.parametrize("wrap", [fad.jit, lambda f: lambda x: fad.jvp(fad.jit(f), (x,), (x,))[0]], ids=["jit", "jvp"])
@pytest.mark.parametrize(("a", "b"), [
    (1, 1.0), (1.0, 1), (True, 1), (0.0, -0.0), (np.float32(2), np.float64(2)), (np.float64(0.0), np.float64(-0.0)),
])  # fmt: skip
@pytest.mark.parametrize("kind", [Scaled, Registered, ScaledModule])
def test_settings_that_are_equal_and_not_the_same_are_told_apart(kind, a, b, wrap):
    f = wrap(lambda x: (np.arange(3, dtype="int8") * x.by[0], np.ones(2, "float32") * x.by[0], x.w))
    w = np.ones(2)
    for by in (a, b, a):
        for got, like in zip(f(kind(w, (by,))), (np.arange(3, dtype="int8"), np.ones(2, "float32")), strict=False):
            assert got.dtype == (like * by).dtype
            assert got.tobytes() == (like * by).tobytes()


def test_a_class_that_could_not_be_registered_is_as_it_was():
    with pytest.raises(ValueError, match="registered"):
        fad.tree.register_node(dict, lambda x: ((x["w"],), None), lambda _, ws: {"w": ws[0]})
    assert fad.jit(lambda d: d["v"] * 2)({"v": 1.5}) == 3.0
