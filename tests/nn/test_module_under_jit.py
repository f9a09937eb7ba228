"""A model under jit: buffers are inputs and outputs of the program, so replays read and write them rightly."""

import numpy as np
import pytest

import fad
from fad import nn, optim
from fad.nn import functional as F

RNG = np.random.default_rng(0)
BATCHES = [RNG.standard_normal((8, 3)) for _ in range(4)]
LABELS = RNG.integers(0, 2, 8)


def network():
    with nn.seed(0):
        return nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.ReLU(), nn.Dropout(0.25), nn.Linear(4, 2))


def loss(model, x):
    return F.cross_entropy(model(x), LABELS)


def trained(transform):
    model = network()
    opt = optim.SGD(model, lr=0.1, momentum=0.9)
    step = transform(fad.value_and_grad(loss))
    values = []
    for x in BATCHES:
        value, grads = step(model, x)
        opt.step(grads)
        values.append(float(value))
    return model, values


def same(a, b):
    assert a.keys() == b.keys()
    for name in a:
        np.testing.assert_allclose(a[name], b[name], rtol=1e-12, err_msg=name)


def test_training_under_jit_equals_training_without():
    model, values = trained(lambda f: f)
    compiled, same_values = trained(fad.jit)
    np.testing.assert_allclose(same_values, values, rtol=1e-12)
    same(compiled.state_dict(everything=True), model.state_dict(everything=True))
    assert compiled[1].num_batches_tracked == 4


def test_replays_are_hits_and_evaluation_reads_the_newest_buffers():
    model = network().eval()
    run = fad.jit(lambda model, x: model(x))
    for x in BATCHES:
        model.train()(x)
        np.testing.assert_allclose(run(model.eval(), x), model(x), rtol=1e-12)
    assert run.cache_info().hits == 3


def test_a_model_returned_from_jit_has_plain_buffers():
    model = network()
    opt = optim.SGD(lr=0.1)

    def step(model, state, x):
        grads = fad.grad(loss)(model, x)
        return opt.update(grads, state, model)

    expected, state = network(), opt.init(model)
    compiled = fad.jit(step)
    for x in BATCHES[:3]:
        expected, _ = step(expected, opt.init(expected), x)
        model, _ = compiled(model, opt.init(model), x)
    same(model.state_dict(everything=True), expected.state_dict(everything=True))
    assert all(type(x) is not fad.core.tracing.tracer.Tracer for _, x in model.named_buffers())
    assert state["steps"] == 0


def test_buffers_are_right_under_jit_of_vmap_and_checkpoint():
    layer, other = nn.BatchNorm1d(3), nn.BatchNorm1d(3)

    def f(layer, xs):
        one = lambda layer, x: np.sum(fad.checkpoint(lambda x: layer(x) ** 2)(x))
        return np.sum(fad.vmap(fad.grad(one), in_axes=(None, 0))(layer, xs).weight)

    xs = np.stack(BATCHES)
    compiled = fad.jit(f)
    for _ in range(3):
        np.testing.assert_allclose(compiled(layer, xs), f(other, xs), rtol=1e-10, atol=1e-10)
    same(layer.state_dict(), other.state_dict())


def test_a_closed_over_model_that_would_write_buffers_is_an_error():
    model = network()
    with pytest.raises(fad.errors.ImpureFunctionError, match="as an argument"):
        fad.jit(lambda x: model(x))(BATCHES[0])
    assert model[1].num_batches_tracked == 0


def test_labels_and_indices_out_of_range_are_an_error_in_replays_too():
    f = fad.jit(fad.grad(lambda z, labels: F.cross_entropy(z, labels)))
    g = fad.jit(lambda w, i: F.embedding(i, w))
    z = np.zeros((2, 3))
    f(z, np.array([0, 1]))
    g(z, np.array([0, 1]))
    with pytest.raises(nn.LabelError, match="range from -1 to 1"):
        f(z, np.array([-1, 1]))
    with pytest.raises(IndexError, match=r"0 ... 1, but range from -1"):
        g(z, np.array([-1, 1]))


CHANGES = {
    "another weight": lambda model: setattr(model[0], "weight", 2 * model[0].weight),
    "a weight written in place": lambda model: np.multiply(model[0].weight, 2, out=model[0].weight),
    "another buffer": lambda model: setattr(model[1], "running_mean", model[1].running_mean + 1),
    "a loaded state": lambda model: model.load_state_dict({k: v + 1 for k, v in model.state_dict().items()}),
    "a setting": lambda model: setattr(model[1], "eps", 0.5),
    "training mode of dropout": lambda model: model[3].train(),
    "another layer": lambda model: setattr(model, "2", np.tanh),
}


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("kind", [nn.Sequential, type("Own", (nn.Sequential,), {})])
def test_a_closed_over_model_that_changes_between_calls_is_read_again(kind, change):
    model = kind(*network().eval()).eval()
    run = fad.jit(lambda x: model(x))
    for _ in range(3):
        run(BATCHES[0])
    CHANGES[change](model)
    if change == "training mode of dropout":
        with pytest.raises(fad.errors.ImpureFunctionError, match="as an argument"):
            run(BATCHES[0])
    else:
        np.testing.assert_allclose(run(BATCHES[0]), model(BATCHES[0]), rtol=1e-12)


def test_a_closed_over_model_that_writes_a_buffer_in_place_writes_it_in_each_call():
    class Counter(nn.Module):
        def __init__(self):
            self.count = nn.Buffer(np.zeros(2))

        def forward(self, x):
            self.count[0] += 1
            return x * self.count[0]

    model = Counter()
    run = fad.jit(fad.grad(lambda x: model(x)))
    assert [run(1.0) for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]
    assert model.count.tolist() == [4.0, 0.0]


@pytest.mark.parametrize("wrap", [lambda f: f, fad.jit], ids=["plain", "jit"])
@pytest.mark.parametrize("opt", [optim.SGD(lr=0.1, momentum=0.9), optim.Adam(lr=0.1)], ids=["momentum", "adam"])
def test_a_scan_of_training_steps_is_their_loop(opt, wrap):
    def step(carry, x):
        value, grads = fad.value_and_grad(loss)(carry[0], x)
        return opt.update(grads, carry[1], carry[0]), value

    expected, values = (network(), opt.init(network())), []
    for x in BATCHES:
        expected, value = step(expected, x)
        values.append(value)
    run = wrap(lambda model: fad.scan(step, (model, opt.init(model)), np.stack(BATCHES)))
    for _ in range(2):
        (model, _), found = run(network())
        np.testing.assert_allclose(found, values, rtol=1e-6)
        for name, x in expected[0].state_dict(everything=True).items():
            np.testing.assert_allclose(model.state_dict(everything=True)[name], x, rtol=1e-5, err_msg=name)
