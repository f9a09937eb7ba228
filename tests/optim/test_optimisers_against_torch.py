"""Twenty steps of each optimiser agree with PyTorch's."""

import numpy as np
import pytest

import fad
from fad import nn, optim

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is not installed")

pytestmark = pytest.mark.oracle

CASES = {
    "sgd": ("SGD", "SGD", dict(lr=0.1)),
    "momentum": ("SGD", "SGD", dict(lr=0.1, momentum=0.9, dampening=0.1)),
    "nesterov": ("SGD", "SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": ("Adam", "Adam", dict(lr=0.1)),
    "adam with decay": ("Adam", "Adam", dict(lr=0.1, betas=(0.8, 0.99), eps=1e-3, weight_decay=0.1)),
    "adamw": ("AdamW", "AdamW", dict(lr=0.1)),
    "rmsprop": ("RMSProp", "RMSprop", dict(lr=0.05)),
    "rmsprop, centred": ("RMSProp", "RMSprop", dict(lr=0.05, momentum=0.9, centered=True, weight_decay=0.01)),
    "adagrad": ("Adagrad", "Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.01, initial_accumulator_value=0.1)),
    "lbfgs": ("LBFGS", "LBFGS", dict(lr=0.5, history_size=5)),
}
X = np.random.default_rng(0).standard_normal((16, 3))
Y = np.sin(X.sum(axis=1, keepdims=True))


def model():
    return nn.Sequential(nn.Linear(3, 8, key=0), nn.Tanh(), nn.Linear(8, 1, key=1))


def loss(model, x, y):
    return np.mean((model(x) - y) ** 2)


def torch_path(theirs, options, steps):
    net = torch.nn.Sequential(torch.nn.Linear(3, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1)).double()
    net.load_state_dict({k: torch.from_numpy(v) for k, v in model().state_dict().items()})
    if theirs == "LBFGS":
        options = {**options, "max_iter": 1}
    opt = getattr(torch.optim, theirs)(net.parameters(), **options)
    x, y = torch.from_numpy(X), torch.from_numpy(Y)

    def closure():
        opt.zero_grad()
        value = ((net(x) - y) ** 2).mean()
        value.backward()
        return value

    for _ in range(steps):
        opt.step(closure)
        yield {k: v.detach().numpy() for k, v in net.state_dict().items()}


@pytest.mark.parametrize("name", CASES)
def test_twenty_steps_agree_with_torch(name):
    mine, theirs, options = CASES[name]
    net = model()
    opt = getattr(optim, mine)(net, **options)
    for expected in torch_path(theirs, options, 20):
        opt.step(fad.grad(loss)(net, X, Y))
        for key, value in net.state_dict().items():
            np.testing.assert_allclose(value, expected[key], rtol=1e-8, atol=1e-11, err_msg=key)


@pytest.mark.parametrize("name", ["nesterov", "adam", "adamw", "rmsprop", "adagrad"])
def test_complex_parameters_agree_with_torch(name):
    mine, theirs, options = CASES[name]
    if name == "adagrad":
        options = {**options, "initial_accumulator_value": 0.0}
    z = np.array([1 + 2j, -0.5 + 0.3j])
    tz = torch.from_numpy(z.copy()).requires_grad_()
    opt, topt = getattr(optim, mine)(z, **options), getattr(torch.optim, theirs)([tz], **options)
    goal = np.array([0.3 - 1j, 2j])
    for _ in range(20):
        opt.step(fad.grad(lambda z: np.sum(np.abs(z - goal) ** 2))(z))
        topt.zero_grad()
        ((tz - torch.from_numpy(goal)).abs() ** 2).sum().backward()
        topt.step()
        np.testing.assert_allclose(z, tz.detach().numpy(), rtol=1e-9)
