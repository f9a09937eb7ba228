"""Layers and functions with ``inplace=True`` change what they are given, as PyTorch's do."""

import importlib

import numpy as np
import pytest


@pytest.fixture(params=["fad.eager", "torch"])
def torch(request):
    return pytest.importorskip("torch") if request.param == "torch" else importlib.import_module(request.param)


LAYERS = {
    "ReLU": (True,), "ReLU6": (True,), "ELU": (0.7, True), "SELU": (True,), "CELU": (0.7, True),
    "LeakyReLU": (0.1, True), "Hardtanh": (-0.5, 0.5, True),
    "SiLU": (True,), "Mish": (True,), "Hardswish": (True,), "Hardsigmoid": (True,),
    "Threshold": (0.1, 0.0, True),
}  # fmt: skip
A = np.random.default_rng(0).normal(size=(3, 4))


@pytest.mark.parametrize("name", LAYERS)
def test_a_layer_in_place_changes_what_the_program_goes_on_with(torch, name):
    # a block whose shortcut is what the activation has overwritten
    kind, (*settings, _) = getattr(torch.nn, name), LAYERS[name]
    layers = [(kind(*settings, True), False), (kind(*settings, inplace=True), False), (kind(*settings), True)]
    slopes = []
    for layer, shortcut in layers:
        x = torch.tensor(A, requires_grad=True)
        y = x * 1.5
        z = layer(y)
        assert (z is y) is not shortcut
        z = z * (z if shortcut else y)
        z.sum().backward()
        slopes.append((z.detach().numpy(), x.grad.numpy()))
    for found in slopes[:2]:
        np.testing.assert_allclose(found, slopes[2], rtol=1e-6)  # PyTorch has CELU's slope of its result then


FUNCTIONS = {
    "relu": lambda F, y: F.relu(y, True), "elu": lambda F, y: F.elu(y, 0.5, True),
    "leaky_relu": lambda F, y: F.leaky_relu(y, inplace=True), "silu": lambda F, y: F.silu(y, inplace=True),
    "hardswish": lambda F, y: F.hardswish(y, inplace=True), "threshold": lambda F, y: F.threshold(y, 0.1, 0.0, True),
    "dropout": lambda F, y: F.dropout(y, 0.5, True, True),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_in_place_gives_its_argument(torch, name):
    x = torch.tensor(A, requires_grad=True)
    y = x * 2.0
    z = FUNCTIONS[name](torch.nn.functional, y)
    assert z is y
    assert not np.array_equal(y.detach().numpy(), 2.0 * A)
    (y**2).sum().backward()
    assert np.isfinite(x.grad.numpy()).all()


def test_a_leaf_and_what_another_rule_needs_are_refused(torch):
    layer = torch.nn.ReLU(inplace=True)
    with pytest.raises(RuntimeError, match="leaf"):
        layer(torch.tensor(A, requires_grad=True))
    y = torch.exp(torch.tensor(A, requires_grad=True))
    layer(y - 1.0)
    torch.nn.functional.elu(y, inplace=True)
    with pytest.raises(RuntimeError, match=r"in place|inplace"):
        y.sum().backward()


def test_a_network_with_layers_in_place_has_the_slopes_of_one_without(torch):
    nn, slopes = torch.nn, []
    for inplace in (False, True):
        torch.manual_seed(0)
        model = nn.Sequential(
            nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.ReLU(inplace), nn.MaxPool2d(2), nn.LeakyReLU(0.1, inplace),
            nn.Dropout(0.0, inplace), nn.Flatten(), nn.Linear(8, 3), nn.SiLU(inplace),
        ).double()  # fmt: skip
        (model(torch.tensor(A.repeat(6)[:72].reshape(2, 1, 6, 6)[:, :, :6, :6])) ** 2).sum().backward()
        slopes.append([p.grad.numpy() for p in model.parameters()])
    for a, b in zip(*slopes, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def test_inside_a_transform_a_tensor_stands_for_what_a_layer_made_of_it(torch):
    layer = torch.nn.ReLU(inplace=True)

    def f(x):
        y = x * 1.0
        z = layer(y)
        return (y * z).sum()

    slope = torch.func.grad(f)(torch.tensor(A))
    np.testing.assert_allclose(slope.numpy(), 2.0 * np.maximum(A, 0.0))
    rows = torch.vmap(torch.func.grad(f))(torch.tensor(A))
    np.testing.assert_allclose(rows.numpy(), 2.0 * np.maximum(A, 0.0))
