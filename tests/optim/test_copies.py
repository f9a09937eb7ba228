"""Optimisers, schedules and averages that are copied or pickled in the middle of training go on as they were."""

import copy
import pickle

import numpy as np
import pytest
from test_optimisers import ALL, loss, params

import fad
from fad import optim

COPIES = {"deepcopy": copy.deepcopy, "pickle": lambda x: pickle.loads(pickle.dumps(x))}


def train(opt, p, steps):
    for _ in range(steps):
        opt.step(fad.grad(loss)(p))


@pytest.mark.parametrize("how", COPIES)
@pytest.mark.parametrize("name", ALL)
def test_a_copied_optimiser_steps_on_its_own_model_as_the_first_on_its(name, how):
    p = params()
    opt = ALL[name](p)
    train(opt, p, 2)
    other, q = COPIES[how]((opt, p))
    train(opt, p, 2)
    train(other, q, 2)
    for x, y in zip(fad.tree.leaves(p), fad.tree.leaves(q), strict=True):
        assert x is not y
        np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("make", [
    lambda s: s.constant(0.5),
    lambda s: s.linear(1.0, 0.5, 10),
    lambda s: s.cosine(1.0, 10, end=0.1),
    lambda s: s.exponential(1.0, 0.5, every=2),
    lambda s: s.step_decay(1.0, 0.5, 2),
    lambda s: s.warmup(3, s.cosine(1.0, 10)),
    lambda s: s.joined([s.constant(1.0), s.constant(0.1)], [2]),
    lambda s: s.one_cycle(1.0, 11),
])  # fmt: skip
def test_a_schedule_can_be_pickled(make):
    schedule = make(optim.schedules)
    again = pickle.loads(pickle.dumps(schedule))
    assert repr(again) == repr(schedule)
    assert [again(i) for i in range(12)] == [schedule(i) for i in range(12)]
