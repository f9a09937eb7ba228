"""Power poolings, activations in place, the loss of many labels and windows of signals, beside PyTorch's."""

import numpy as np
import pytest
from each import each

import fad.eager

torch = pytest.importorskip("torch")
APIS = (fad.eager, torch)
rng = np.random.default_rng(0)
SIGNALS, IMAGES, VOLUMES = (rng.uniform(0.1, 2.0, (2, 3, *size)) for size in ((7,), (5, 6), (4, 5, 4)))
IMAGES[0, 0, :2, :2] = 0.0

POOLINGS = {
    "signals": ("LPPool1d", (2, 3), {}, SIGNALS),
    "signals, step": ("LPPool1d", (2.0, 3), {"stride": 2}, SIGNALS),
    "signals, to the end": ("LPPool1d", (3, 2), {"ceil_mode": True}, SIGNALS),
    "images": ("LPPool2d", (2, 2), {}, IMAGES),
    "images, windows": ("LPPool2d", (1.5, (3, 2)), {"stride": (2, 1)}, IMAGES + 0.1),
    "images, to the end": ("LPPool2d", (2, 2), {"ceil_mode": True}, IMAGES),
    "images, largest": ("LPPool2d", (float("inf"), 2), {}, IMAGES[1:] - 1.0),
    "volumes": ("LPPool3d", (2, 2), {}, VOLUMES),
}


@each("name", POOLINGS)
def test_power_poolings_and_their_gradients_are_torchs(name):
    title, args, options, data = POOLINGS[name]
    found = []
    for api in APIS:
        x = api.tensor(data, requires_grad=True)
        y = getattr(api.nn, title)(*args, **options)(x)
        (y * y.detach().cos()).sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy()))
    for mine, theirs in zip(*found, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10, atol=1e-12)


IN_PLACE = {
    "relu_": (), "elu_": (0.7,), "celu_": (0.5,), "selu_": (), "leaky_relu_": (0.2,), "hardtanh_": (-0.5, 0.7),
    "threshold_": (0.1, 0.3),
}  # fmt: skip


@each("name", IN_PLACE)
def test_activations_in_place_change_their_argument_and_have_torchs_gradients(name):
    found = []
    for api in APIS:
        leaf = api.tensor([-1.5, -0.2, 0.05, 0.4, 1.6], dtype=api.float64, requires_grad=True)
        x = leaf * 2.0
        y = getattr(api.nn.functional, name)(x, *IN_PLACE[name])
        assert y is x
        (x * x).sum().backward()
        found.append((x.tolist(), leaf.grad.tolist()))
        with pytest.raises(RuntimeError):
            getattr(api.nn.functional, name)(leaf, *IN_PLACE[name])
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-12)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-12)


def test_relu_changes_its_argument_where_it_is_told_to():
    for api in APIS:
        x = api.tensor([-1.0, 2.0])
        assert api.nn.functional.relu(x).tolist() == [0.0, 2.0]
        assert x.tolist() == [-1.0, 2.0]
        assert api.nn.functional.relu(x, inplace=True) is x
        assert x.tolist() == [0.0, 2.0]


TARGETS = [[3, 0, -1, 1], [-1, 2, 0, 1], [1, 1, 2, -1], [0, 1, 2, 3]]


@each("reduction", ["none", "sum", "mean"])
def test_the_loss_of_many_labels_and_its_gradient_are_torchs(reduction):
    scores = rng.normal(size=(4, 4))
    for rows in (slice(None), 0):
        found = []
        for api in APIS:
            x, target = api.tensor(scores[rows], requires_grad=True), api.tensor(TARGETS)[rows]
            y = api.nn.functional.multilabel_margin_loss(x, target, reduction=reduction)
            assert api.allclose(y, api.nn.MultiLabelMarginLoss(reduction=reduction)(x, target))
            (y * y).sum().backward()
            found.append((y.detach().numpy(), x.grad.numpy()))
        for mine, theirs in zip(*found, strict=True):
            assert mine.shape == theirs.shape
            np.testing.assert_allclose(mine, theirs, rtol=1e-12)


def test_a_target_of_another_shape_is_refused():
    with pytest.raises(ValueError, match="target of the shape"):
        fad.eager.nn.functional.multilabel_margin_loss(fad.eager.ones(2, 3), fad.eager.tensor([0, 1]))


@each("name", ["hann_window", "hamming_window", "bartlett_window", "blackman_window"])
def test_windows_of_signals_are_torchs(name):
    for length in (0, 1, 2, 5, 8):
        for options in ({}, {"periodic": False}, {"dtype": "float64", "periodic": False}):
            mine, theirs = (
                getattr(api, name)(length, **{k: getattr(api, v) if k == "dtype" else v for k, v in options.items()})
                for api in APIS
            )
            assert str(mine.dtype)[-7:] == str(theirs.dtype)[-7:]
            np.testing.assert_allclose(mine.numpy(), theirs.numpy(), rtol=2e-6, atol=1e-7)
    np.testing.assert_allclose(*(api.hamming_window(6, True, 0.6, 0.4).numpy() for api in APIS), rtol=1e-6)
