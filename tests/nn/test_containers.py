"""Modules and parameters in containers of classes derived from Python's."""

from collections import OrderedDict, defaultdict, deque
from typing import NamedTuple

import numpy as np

import fad
from fad import nn
from fad.testing import check_grads


class Pair(NamedTuple):
    layer: nn.Module
    scale: np.ndarray


class Counted(dict):
    calls = 0


def test_containers_derived_from_pythons_are_looked_into_and_keep_their_classes():
    class Model(nn.Module):
        def __init__(self):
            self.ordered = OrderedDict(a=nn.Linear(2, 2, key=0), b=2.0)
            self.pair = Pair(nn.Linear(2, 2, key=1), np.ones(2))
            self.lists = defaultdict(list, x=[np.ones(1)])
            self.last = deque([nn.Linear(2, 2, key=2)], maxlen=3)
            self.own = Counted(w=np.ones(2))
            self.own.calls = 3

        def forward(self, x):
            x = self.pair.scale * self.pair.layer(self.ordered["a"](x)) * self.ordered["b"] * self.own.calls
            return self.last[0](x) * self.lists["x"][0] * self.own["w"]

    model, f = Model(), lambda model: np.sum(model(np.ones((1, 2))) ** 2)
    assert [x.shape for x in fad.tree.leaves(model)] == [(2, 2), (2,), (2, 2), (2,), (2,), (1,), (2, 2), (2,), (2,)]
    check_grads(f, (fad.tree.map(lambda p: p.astype(float), model),), order=1)
    grads = fad.jit(fad.grad(f))(model)
    for mine, theirs in zip(vars(grads).values(), vars(model).values(), strict=True):
        assert type(mine) is type(theirs)
    assert grads.last.maxlen == 3
    assert grads.lists.default_factory is list
    assert grads.own.calls == 3
    new = Model()
    for p in fad.tree.leaves(new):
        p[...] = 0.0
    new.load_state_dict(model.state_dict())
    assert f(new) == f(model)
    assert not fad.tree.leaves(new.freeze())
