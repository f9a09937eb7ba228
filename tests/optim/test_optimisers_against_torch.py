"""Twenty steps of each optimiser agree with PyTorch's."""

import numpy as np
import pytest

import fad
from fad import nn, optim

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is not installed")

pytestmark = pytest.mark.oracle



@pytest.fixture(autouse=True)
def _state_in_double():  # the numbers that PyTorch's optimisers keep for themselves have its default dtype
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


CASES = {
    "sgd": ("SGD", "SGD", dict(lr=0.1)),
    "sgd with decay": ("SGD", "SGD", dict(lr=0.1, weight_decay=0.1)),
    "sgd, uphill": ("SGD", "SGD", dict(lr=0.01, weight_decay=0.1, maximize=True)),
    "momentum": ("SGD", "SGD", dict(lr=0.1, momentum=0.9, dampening=0.1)),
    "nesterov": ("SGD", "SGD", dict(lr=0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": ("Adam", "Adam", dict(lr=0.1)),
    "adam with decay": ("Adam", "Adam", dict(lr=0.1, betas=(0.8, 0.99), eps=1e-3, weight_decay=0.1)),
    "amsgrad": ("Adam", "Adam", dict(lr=0.1, betas=(0.8, 0.9), amsgrad=True)),
    "adam, uphill": ("Adam", "Adam", dict(lr=0.01, weight_decay=0.1, amsgrad=True, maximize=True)),
    "adamw": ("AdamW", "AdamW", dict(lr=0.1)),
    "adamw, amsgrad": ("AdamW", "AdamW", dict(lr=0.1, betas=(0.8, 0.9), weight_decay=0.2, amsgrad=True)),
    "adamw, uphill": ("AdamW", "AdamW", dict(lr=0.01, maximize=True)),
    "rmsprop": ("RMSProp", "RMSprop", dict(lr=0.05)),
    "rmsprop, momentum": ("RMSProp", "RMSprop", dict(lr=0.05, alpha=0.9, eps=1e-4, momentum=0.5)),
    "rmsprop, centred": ("RMSProp", "RMSprop", dict(lr=0.05, momentum=0.9, centered=True, weight_decay=0.01)),
    "rmsprop, uphill": ("RMSProp", "RMSprop", dict(lr=0.01, centered=True, maximize=True)),
    "adagrad": ("Adagrad", "Adagrad", dict(lr=0.1, lr_decay=0.1, weight_decay=0.01, initial_accumulator_value=0.1)),
    "adagrad, uphill": ("Adagrad", "Adagrad", dict(lr=0.01, eps=1e-4, maximize=True)),
    "adadelta": ("Adadelta", "Adadelta", dict(lr=0.5, eps=1e-3, weight_decay=0.01)),
    "adadelta, uphill": ("Adadelta", "Adadelta", dict(rho=0.8, maximize=True)),
    "adamax": ("Adamax", "Adamax", dict(lr=0.05, betas=(0.8, 0.9), weight_decay=0.01)),
    "nadam": ("NAdam", "NAdam", dict(lr=0.05, momentum_decay=0.1, weight_decay=0.01)),
    "nadam, decoupled": ("NAdam", "NAdam", dict(lr=0.05, weight_decay=0.1, decoupled_weight_decay=True)),
    "radam": ("RAdam", "RAdam", dict(lr=0.05, weight_decay=0.01)),
    "radam, decoupled": (
        "RAdam", "RAdam", dict(lr=0.05, betas=(0.8, 0.9), weight_decay=0.1, decoupled_weight_decay=True)
    ),
    "rprop": ("Rprop", "Rprop", dict(lr=0.02, etas=(0.4, 1.3), step_sizes=(1e-3, 0.05))),
    "asgd": ("ASGD", "ASGD", dict(lr=0.1, lambd=0.1, alpha=0.5, t0=5, weight_decay=0.01)),
    "lbfgs": ("LBFGS", "LBFGS", dict(lr=0.5, history_size=5)),
    "lbfgs, long memory": ("LBFGS", "LBFGS", dict(lr=0.3, history_size=100)),
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


S, L = optim.schedules, torch.optim.lr_scheduler
SCHEDULES = {
    "constant": (S.constant(0.5), lambda opt: L.ConstantLR(opt, 1.0, 1), 0.5),
    "linear": (S.linear(0.5, 0.05, 12), lambda opt: L.LinearLR(opt, 1.0, 0.1, 12), 0.5),
    "cosine": (S.cosine(0.5, 24, 0.1), lambda opt: L.CosineAnnealingLR(opt, 24, 0.1), 0.5),
    "exponential": (S.exponential(0.5, 0.9), lambda opt: L.ExponentialLR(opt, 0.9), 0.5),
    "step decay": (S.step_decay(0.5, 0.3, 7), lambda opt: L.StepLR(opt, 7, 0.3), 0.5),
    "warmup": (S.warmup(6, 0.5), lambda opt: L.LinearLR(opt, 1 / 6, 1.0, 5), 0.5),
    "joined": (
        S.joined([S.constant(0.05), S.exponential(0.5, 0.9)], [5]),
        lambda opt: L.SequentialLR(opt, [L.ConstantLR(opt, 0.1, 99), L.ExponentialLR(opt, 0.9)], [5]),
        0.5,
    ),
    "one cycle": (S.one_cycle(0.5, 24), lambda opt: L.OneCycleLR(opt, 0.5, total_steps=24), 0.5),
    "one cycle, early": (
        S.one_cycle(0.5, 25, 0.2, 10.0, 100.0),
        lambda opt: L.OneCycleLR(opt, 0.5, total_steps=25, pct_start=0.2, div_factor=10, final_div_factor=100),
        0.5,
    ),
}


@pytest.mark.parametrize("name", SCHEDULES)
@pytest.mark.filterwarnings("ignore:The epoch parameter")  # of PyTorch's own SequentialLR
def test_each_schedule_agrees_with_torch(name):
    mine, theirs, rate = SCHEDULES[name]
    opt = torch.optim.SGD([torch.zeros(1, requires_grad=True)], lr=rate)
    schedule = theirs(opt)
    for step in range(23):
        np.testing.assert_allclose(mine(step), opt.param_groups[0]["lr"], rtol=1e-12, err_msg=f"step {step}")
        opt.step()
        schedule.step()


COMPLEX = ["nesterov", "adam", "amsgrad", "adamw", "rmsprop, centred", "adagrad"]
COMPLEX += ["adadelta", "adamax", "nadam", "radam", "rprop"]


@pytest.mark.parametrize("name", COMPLEX)
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
