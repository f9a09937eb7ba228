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


def test_an_average_takes_an_array_in_two_places_once_and_copies_whole_numbers():
    w, n = np.array([1.0, 2.0]), np.array([1, 2])
    average = optim.EMA({"encoder": w, "decoder": [w], "n": n}, decay=0.5)
    w += 1.0
    n += 1
    average.update()
    assert average.model["encoder"].tolist() == average.model["decoder"][0].tolist() == [1.5, 2.5]
    assert average.model["n"].tolist() == [2, 3]


def test_an_average_of_numbers_that_cannot_change_is_refused():
    with pytest.raises(TypeError, match=r"np\.array"):
        optim.EMA({"w": 1.0})


@pytest.mark.parametrize("wrap", [lambda f: f, fad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("name", ALL)
def test_the_pure_form_takes_numbers_and_keeps_whole_ones(name, wrap):
    opt = ALL[name]()
    f = lambda p: p["a"] ** 2 + np.sum(p["w"] ** 2) * p["n"]
    start = lambda x: {"a": x, "w": np.array([1.0, -2.0]), "n": np.array(2), "none": None}
    p, q = start(1.5), start(np.array(1.5))
    state, other = opt.init(p), opt.init(q)
    step = wrap(lambda p, state: opt.update(fad.grad(f, allow_int=True)(p), state, p))
    for _ in range(3):
        p, state = step(p, state)
        q, other = step(q, other)
    assert p["n"] == 2
    assert p["n"].dtype.kind == "i"
    np.testing.assert_allclose(p["a"], q["a"], rtol=1e-15)
    np.testing.assert_allclose(p["w"], q["w"], rtol=1e-15)
    assert p["a"] != 1.5


@pytest.mark.parametrize("name", ALL)
def test_whole_numbers_stay_as_they_are(name):
    p = {"w": np.array([1.0, -2.0]), "n": np.array([1000, -1000])}
    opt = ALL[name](p)
    for _ in range(3):
        opt.step(fad.grad(lambda p: np.sum(p["w"] * p["n"]), allow_int=True)(p))
    assert p["n"].tolist() == [1000, -1000]
    assert p["w"].tolist() != [1.0, -2.0]


@pytest.mark.parametrize("name", ALL)
def test_a_model_without_parameters_is_updated_like_any_other(name):
    opt = ALL[name]({})
    opt.step({})
    assert opt.steps == 1
    params, state = opt.update({}, opt.init({}), {})
    assert params == {}
    assert state["steps"] == 1
