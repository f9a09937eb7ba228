"""Buffers that layers write into in place, in jitted functions inside other transforms, and of mapped models."""

import numpy as np
import pytest

import fad
from fad import nn, optim

X = np.array([2.0, 3.0])


class Counter(nn.Module):
    """Its output depends on how often it was called."""

    def __init__(self):
        self.w = np.ones(2)
        self.count = nn.Buffer(np.zeros(3))

    def forward(self, x):
        self.add_one()
        return np.sum(self.w * x) * self.count[0]

    def add_one(self):
        self.count = self.count + 1


class ByAssignment(Counter):
    def add_one(self):
        self.count[0] += 1


class ByOut(Counter):
    def add_one(self):
        np.add(self.count, 1, out=self.count)


class ByView(Counter):
    def add_one(self):
        first = self.count[:1]
        first += 1


class ByAugmentedAssignment(Counter):
    def add_one(self):
        self.count += 1


KINDS = [Counter, ByAssignment, ByOut, ByView, ByAugmentedAssignment]


def value(model):
    return model(X)


def over_batch(f):
    return fad.vmap(lambda model, i: f(model), in_axes=(None, 0))


TRANSFORMS = {
    "jit": fad.jit,
    "grad": fad.grad,
    "jit of grad": lambda f: fad.jit(fad.grad(f)),
    "grad of jit": lambda f: fad.grad(fad.jit(f)),
    "jit of grad of jit": lambda f: fad.jit(fad.grad(fad.jit(f))),
    "grad of checkpoint": lambda f: fad.grad(fad.checkpoint(f)),
    "grad of checkpoint of jit": lambda f: fad.grad(fad.checkpoint(fad.jit(f))),
    "jvp": lambda f: lambda model: fad.jvp(f, (model,), (model,)),
    "jvp of jit": lambda f: lambda model: fad.jvp(fad.jit(f), (model,), (model,)),
    "hessian-vector product": lambda f: lambda model: fad.hvp(f, (model,), (model,)),
    "vmap": lambda f: lambda model: over_batch(f)(model, np.arange(2.0)),
    "vmap of jit": lambda f: lambda model: over_batch(fad.jit(f))(model, np.arange(2.0)),
    "jit of vmap of grad": lambda f: lambda model: fad.jit(over_batch(fad.grad(f)))(model, np.arange(2.0)),
    "jit of a branch": lambda f: fad.jit(lambda model: fad.cond(model.w[0] > 0, f, lambda model: -f(model), model)),
    "jit of grad of a switch": lambda f: fad.jit(
        fad.grad(lambda model: fad.switch((model.w[0] > 0).astype(int), [lambda model: 0.0, f], model))
    ),
    "jit of a closure": lambda f: fad.grad(lambda model: fad.jit(lambda model, x: model(x))(model, X)),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("kind", KINDS)
def test_what_a_layer_writes_reaches_the_model_once_in_each_call(kind, transform):
    model, other = kind(), kind()
    run = TRANSFORMS[transform](value)
    for _ in range(3):
        run(model)
        other(X)
        np.testing.assert_array_equal(model.count, other.count)
        assert type(model.count) is np.ndarray


@pytest.mark.parametrize("transform", ["grad", "jit of grad", "grad of jit", "grad of checkpoint"])
@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_at_the_written_buffer(kind, transform):
    model = kind()
    run = TRANSFORMS[transform](value)
    for n in (1.0, 2.0, 3.0):
        np.testing.assert_array_equal(run(model).w, n * X)


@pytest.mark.parametrize("kind", KINDS)
def test_examples_that_take_different_paths_write_once(kind):
    model = kind()

    def branching(model, x):
        return model(X) if x > 0 else -model(X)

    values = fad.vmap(branching, in_axes=(None, 0))(model, np.array([1.0, -1.0]))
    assert values.tolist() == [5.0, -5.0]
    assert model.count[0] == 1.0


@pytest.mark.parametrize("chunk_size", [None, 1])
def test_a_model_of_a_closure_writes_once_however_often_its_examples_run(chunk_size):
    model = Counter()
    f = lambda x: model(X) if x > 0 else -model(X)
    values = fad.vmap(f, chunk_size=chunk_size)(np.array([1.0, -1.0, 2.0]))
    assert values.tolist() == [5.0, -5.0, 5.0]
    assert model.count[0] == 1.0


@pytest.mark.parametrize("wrap", [lambda f: f, fad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_checkpoint_in_a_checkpoint_reads_what_the_one_before_wrote(kind, wrap):
    def three(model, around):
        return sum(around(lambda model: model(X) ** 2)(model) for _ in range(3))

    model = kind()
    run = wrap(fad.grad(fad.checkpoint(lambda model: three(model, fad.checkpoint))))
    for _ in range(2):
        found = run(model)
    assert model.count[0] == 6.0
    model = kind()
    model.count = model.count + 3.0
    expected = fad.grad(lambda model: three(model, lambda f: f))(model)
    np.testing.assert_allclose(found.w, expected.w, rtol=1e-13)


def test_dropout_in_a_jitted_function_drops_other_elements_in_each_call():
    x = np.arange(1.0, 101.0)
    models = [nn.Sequential(nn.Dropout(0.5, key=0), nn.PReLU()) for _ in range(2)]
    f = lambda model, x: np.sum(model(x) ** 2)
    plain, compiled = fad.value_and_grad(f, 1), fad.value_and_grad(fad.jit(f), 1)
    for _ in range(3):
        (a, da), (b, db) = plain(models[0], x), compiled(models[1], x)
        np.testing.assert_allclose(b, a, rtol=1e-12)
        np.testing.assert_allclose(db, da, rtol=1e-12)
    assert models[1][0].calls == 3


def mapped(model):
    return fad.tree.map(lambda p: 2 * p, model)


def updated(model):
    opt = optim.SGD(lr=0.1)
    return opt.update(fad.tree.map(np.ones_like, model), opt.init(model), model)[0]


@pytest.mark.parametrize("wrap", [lambda f: f, fad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("make", [mapped, updated])
@pytest.mark.parametrize("kind", KINDS)
def test_a_new_model_has_buffers_of_its_own(kind, make, wrap):
    def counts(model):
        new = make(model)
        new(X)
        new(X)
        return new.count

    run = wrap(counts)
    for _ in range(2):
        model = kind()
        assert run(model)[0] == 2.0
        assert model.count[0] == 0.0


def test_loading_a_state_into_a_new_model_leaves_the_old_one_as_it_was():
    model = Counter()
    new = mapped(model)
    average = optim.EMA(model, decay=0.5)
    average.update()
    state = {"w": np.zeros(2), "count": np.full(3, 7.0)}
    new.load_state_dict(state)
    average.model.load_state_dict(state)
    assert model.count.tolist() == [0.0, 0.0, 0.0]
