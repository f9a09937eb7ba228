"""A model trains on arrays that are not NumPy's: nothing falls back to the host."""

import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).parent.parent / "backends"))

import standin
from standin import DeviceArray

import fad
from fad import backends, nn, optim
from fad.nn import functional as F

backends.register(standin)
X = np.random.default_rng(0).standard_normal((6, 1, 4, 4))
LABELS = np.array([0, 1, 2, 0, 1, 2])


def network():
    with nn.seed(0):
        return nn.Sequential(
            nn.Conv2d(1, 3, 3, padding=1), nn.BatchNorm2d(3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(12, 8), nn.LayerNorm(8), nn.GELU("tanh"), nn.Linear(8, 3),
        )  # fmt: skip


def sequence_model():
    with nn.seed(0):
        return nn.Sequential(nn.Linear(4, 8), nn.LSTM(8, 8), lambda out: out[0], nn.MultiheadAttention(8, 2))


def to_device(model):
    state = model.state_dict()
    places = {name: (holder, key) for name, holder, key in model._entries()}
    for prefix, module in model.named_modules():
        for name in module.__dict__.get("_buffers", {}):
            places[f"{prefix}.{name}"] = (module.__dict__["_buffers"], name)
    for name, x in state.items():
        holder, key = places[name]
        holder[key] = DeviceArray(x)
    return model


def train(model, x, labels, make, loss):
    opt = make(model)
    for _ in range(3):
        value, grads = fad.value_and_grad(loss)(model, x, labels)
        opt.step(grads)
    return value


def compare(build, loss, make, x, labels=LABELS):
    host, device = build(), to_device(build())
    expected = train(host, x, labels, make, loss)
    found = train(device, DeviceArray(x), None if labels is None else DeviceArray(labels), make, loss)
    np.testing.assert_allclose(found._a, expected, rtol=1e-9)
    for name, p in device.named_parameters():
        assert type(p) is DeviceArray
        np.testing.assert_allclose(p._a, dict(host.named_parameters())[name], rtol=1e-7, atol=1e-9, err_msg=name)


OPTIMISERS = {
    "sgd": lambda m: optim.SGD(m, lr=0.01, momentum=0.9, nesterov=True, weight_decay=0.1),
    "rmsprop": lambda m: optim.RMSProp(m, lr=0.01, momentum=0.9, centered=True, eps=1e-2),
    "adamw": lambda m: optim.AdamW(m, lr=0.01, eps=1e-2),
}


@pytest.mark.parametrize("name", OPTIMISERS)
def test_a_convolutional_network_trains_on_the_device(name):
    compare(network, lambda m, x, y: F.cross_entropy(m(x), y), OPTIMISERS[name], X)


def test_recurrence_and_attention_train_on_the_device():
    loss = lambda m, x, y: np.mean(m(x) ** 2)
    compare(sequence_model, loss, OPTIMISERS["adamw"], X.reshape(6, 4, 4), None)
    causal = lambda m, x, y: np.mean(m[3](m[0](x), is_causal=True) ** 2)
    compare(sequence_model, causal, OPTIMISERS["adamw"], X.reshape(6, 4, 4), None)


def test_a_shared_parameter_is_one_leaf_on_the_device():
    model = nn.Sequential(nn.Linear(2, 2, bias=False, key=0), nn.Linear(2, 2, bias=False, key=1))
    model[0].weight = model[1].weight = DeviceArray(np.eye(2))
    assert len(fad.tree.leaves(model)) == 1


DRAWS = {
    "split": lambda k: fad.random.split(k)[0],
    "fold_in": lambda k: fad.random.fold_in(k, 3),
    "uniform": lambda k: fad.random.uniform(k, (3,)),
    "single": lambda k: fad.random.normal(k, (3,), "float32"),
    "normal": lambda k: fad.random.normal(k, (2, 2)),
    "bernoulli": lambda k: fad.random.bernoulli(k, 0.3, (4,)),
    "gumbel": lambda k: fad.random.gumbel(k, (3,)),
    "laplace": lambda k: fad.random.laplace(k, (3,)),
    "randint": lambda k: fad.random.randint(k, (3,), 0, 10),
    "permutation": lambda k: fad.random.permutation(k, 5),
    "choice": lambda k: fad.random.choice(k, 5, (3,), replace=False),
    "gamma": lambda k: fad.random.gamma(k, 2.0, (3,)),
    "beta": lambda k: fad.random.beta(k, 2.0, 0.5, (3,)),
    "t": lambda k: fad.random.t(k, 3.0, (3,)),
    "poisson": lambda k: fad.random.poisson(k, 200.0, (3,)),
    "a layer": lambda k: nn.Linear(2, 2, key=k).weight,
}


@pytest.mark.parametrize("name", DRAWS)
def test_the_same_key_gives_the_same_numbers_on_the_device(name):
    expected = DRAWS[name](fad.random.key(3))
    with backends.use("standin"):
        found = DRAWS[name](fad.random.key(3))
    assert type(found) is DeviceArray
    np.testing.assert_array_equal(found._a, expected)
