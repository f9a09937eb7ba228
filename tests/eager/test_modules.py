"""Modules and optimisers of tensors: PyTorch's loops, with the layers and rules of `fad.nn` and `fad.optim`."""

import numpy as np
import pytest

import fad.eager as torch
from fad.nn import StateDictError

nn, F = torch.nn, torch.nn.functional


def make(t, *layers):
    """Return a Sequential of PyTorch's or of the eager API, with parameters that follow from their place."""
    model = t.nn.Sequential(*layers)
    for i, p in enumerate(model.parameters()):
        with t.no_grad():
            p.copy_(t.linspace(-1, 1, p.numel()).view_as(p) * 0.3 * (i + 1))
    return model


def train(t, optimizer, steps=20, **options):
    model = make(t, t.nn.Linear(3, 8), t.nn.Tanh(), t.nn.Linear(8, 2))
    opt = getattr(t.optim, optimizer)(model.parameters(), **options)
    x = t.linspace(-1, 1, 15).view(5, 3)
    y = t.tensor([0, 1, 1, 0, 1])
    criterion = t.nn.CrossEntropyLoss()
    losses = []
    for _ in range(steps):
        opt.zero_grad()
        loss = criterion(model(x), y)
        loss.backward()
        opt.step()
        losses.append(loss.item())
    return losses, [p.detach().numpy() for p in model.parameters()]


@pytest.mark.oracle
@pytest.mark.parametrize(
    ("optimizer", "options"),
    [
        ("SGD", {"lr": 0.1}),
        ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True, "weight_decay": 0.01}),
        ("Adam", {"lr": 0.01}),
        ("AdamW", {"lr": 0.01, "weight_decay": 0.1}),
        ("RMSprop", {"lr": 0.01}),
        ("Adagrad", {"lr": 0.1}),
    ],
)
def test_twenty_steps_of_training_follow_pytorch(optimizer, options):
    pytorch = pytest.importorskip("torch")
    losses, parameters = train(torch, optimizer, **options)
    expected, theirs = train(pytorch, optimizer, **options)
    np.testing.assert_allclose(losses, expected, rtol=2e-5)
    for p, q in zip(parameters, theirs, strict=True):
        np.testing.assert_allclose(p, q, rtol=2e-4, atol=2e-6)


LOSSES = {
    "mse_loss": "float", "l1_loss": "float", "smooth_l1_loss": "float", "huber_loss": "float",
    "binary_cross_entropy_with_logits": "float", "cross_entropy": "class",
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("name", LOSSES)
def test_losses_and_their_gradients_are_those_of_pytorch(name):
    pytorch = pytest.importorskip("torch")
    found = []
    for t in (torch, pytorch):
        x = t.linspace(-2, 2, 12).view(4, 3).requires_grad_()
        y = t.tensor([0, 2, 1, 1]) if LOSSES[name] == "class" else t.linspace(0, 1, 12).view(4, 3)
        loss = getattr(t.nn.functional, name)(x, y)
        loss.backward()
        found.append((loss.item(), x.grad.numpy()))
    np.testing.assert_allclose(found[0][0], found[1][0], rtol=1e-6)
    np.testing.assert_allclose(found[0][1], found[1][1], rtol=1e-5, atol=1e-7)


def test_a_module_finds_its_parameters_by_name():
    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(2, 3), nn.Linear(3, 1)])
            self.scale = nn.Parameter(torch.ones(1))
            self.register_buffer("steps", torch.zeros(1))

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return x * self.scale

    model = Model()
    names = [n for n, _ in model.named_parameters()]
    assert names == ["scale", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias"]
    assert "steps" in model.state_dict()
    model(torch.ones(4, 2)).sum().backward()
    assert all(p.grad is not None for p in model.parameters())
    assert "(layers): ModuleList(" in repr(model)


def test_a_shared_parameter_is_found_once():
    a = nn.Linear(2, 2)
    b = nn.Linear(2, 2)
    b.weight = a.weight
    assert len(list(nn.Sequential(a, b).parameters())) == 3


def test_a_state_dict_goes_from_one_model_to_another():
    a, b = nn.Linear(2, 3), nn.Linear(2, 3)
    b.load_state_dict(a.state_dict())
    assert torch.equal(a.weight, b.weight)
    assert b.weight.is_leaf


def test_a_state_dict_that_does_not_fit_is_refused_with_every_misfit_listed():
    layer = nn.Linear(2, 3)
    before = layer.weight.tolist()
    with pytest.raises(StateDictError) as error:
        layer.load_state_dict({"weight": torch.ones(2, 2), "other": torch.ones(1)})
    for part in ("missing: bias", "unexpected: other", "weight has shape (2, 2)"):
        assert part in str(error.value)
    assert layer.weight.tolist() == before


def test_batch_norm_keeps_statistics_in_training_and_uses_them_in_evaluation():
    layer = nn.BatchNorm1d(2)
    x = torch.tensor([[0.0, 10.0], [2.0, 30.0]])
    y = layer(x)
    np.testing.assert_allclose(y.detach().numpy(), [[-1, -1], [1, 1]], atol=1e-4)
    assert dict(layer.named_buffers())["running_mean"].tolist() == pytest.approx([0.1, 2.0])
    layer.eval()
    assert not torch.allclose(layer(x), y)


def test_dropout_only_drops_in_training():
    torch.manual_seed(0)
    layer = nn.Dropout(0.5)
    assert set(layer(torch.ones(100)).tolist()) == {0.0, 2.0}
    assert layer.eval()(torch.ones(3)).tolist() == [1.0, 1.0, 1.0]


@pytest.mark.parametrize(
    ("layer", "shape"),
    [
        (lambda: nn.LayerNorm(3), (2, 3)),
        (lambda: nn.GELU(), (2, 3)),
        (lambda: nn.Softmax(), (2, 3)),
        (lambda: nn.LSTM(3, 4), (2, 5, 3)),
        (lambda: nn.GRU(3, 4, batch_first=True), (2, 5, 3)),
        (lambda: nn.GroupNorm(2, 4), (2, 4, 3)),
        (lambda: nn.PReLU(4), (2, 4, 3)),
        (lambda: nn.AdaptiveAvgPool2d(2), (2, 4, 5, 4)),
    ],
)
def test_layers_of_fad_take_tensors(layer, shape):
    x = torch.rand(*shape, requires_grad=True)
    module = layer()
    out = module(x)
    out = out[0] if isinstance(out, tuple) else out
    (out * out).sum().backward()
    assert x.grad is not None
    assert np.abs(x.grad.numpy()).sum() > 0
    assert all(p.grad is not None for p in module.parameters())


def test_an_embedding_collects_gradients_of_its_rows():
    layer = nn.Embedding(4, 2)
    layer(torch.tensor([1, 1, 3])).sum().backward()
    assert layer.weight.grad.tolist() == [[0.0, 0.0], [2.0, 2.0], [0.0, 0.0], [1.0, 1.0]]


def test_frozen_parameters_get_no_gradient():
    model = nn.Sequential(nn.Linear(2, 2), nn.Linear(2, 1))
    model[0].requires_grad_(False)
    model(torch.ones(1, 2)).sum().backward()
    assert model[0].weight.grad is None
    assert model[1].weight.grad is not None


def test_learning_rates_of_groups_can_be_changed():
    a, b = (torch.ones(1, requires_grad=True) for _ in range(2))
    opt = torch.optim.SGD([{"params": [a]}, {"params": b, "lr": 1.0}], lr=0.1)
    (a + b).sum().backward()
    opt.step()
    assert (a.item(), b.item()) == (pytest.approx(0.9), 0.0)
    opt.param_groups[0]["lr"] = 0.5
    opt.step()
    assert (a.item(), b.item()) == (pytest.approx(0.4), -1.0)


def test_zero_grad_leaves_nothing_or_zeros():
    a = torch.ones(2, requires_grad=True)
    opt = torch.optim.SGD([a], lr=0.1)
    a.sum().backward()
    opt.zero_grad(set_to_none=False)
    assert a.grad.tolist() == [0.0, 0.0]
    opt.zero_grad()
    assert a.grad is None


def test_a_parameter_that_a_step_did_not_use_waits_though_its_gradient_was_cleared():
    a, b = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    opt = torch.optim.Adam([a, b], lr=0.1)
    for loss in (lambda: (a * b).sum(), lambda: a.sum(), lambda: a.sum()):
        opt.zero_grad()
        loss().backward()
        opt.step()
    assert b.item() == pytest.approx(0.9)  # PyTorch's, since 2.0
    assert a.item() == pytest.approx(0.7)


def test_an_optimiser_refuses_what_it_cannot_step_on():
    a = torch.ones(1, requires_grad=True)
    with pytest.raises(ValueError, match="empty"):
        torch.optim.SGD([])
    with pytest.raises(TypeError, match="leaf"):
        torch.optim.SGD([a * 2])
    a.sum().backward()
    opt = torch.optim.Adam([a], lr=0.1)
    opt.step()
    with pytest.raises(ValueError, match="groups"):
        torch.optim.Adam([{"params": [a]}, {"params": [a]}]).load_state_dict(opt.state_dict())


def test_an_optimiser_resumes_where_it_stopped():
    def run(opt, w, steps):
        for _ in range(steps):
            opt.zero_grad()
            (w**4).sum().backward()
            opt.step()

    w = torch.tensor([1.0, -2.0], requires_grad=True)
    opt = torch.optim.Adam([w], lr=0.1)
    run(opt, w, 3)
    v = w.detach().clone().requires_grad_()
    again = torch.optim.Adam([v], lr=0.1)
    again.load_state_dict(opt.state_dict())
    run(opt, w, 3)
    run(again, v, 3)
    assert torch.equal(w, v)


def test_gradients_are_clipped_together():
    a = torch.tensor([3.0], requires_grad=True)
    b = torch.tensor([4.0], requires_grad=True)
    (a * a / 2 + b * b / 2).sum().backward()
    norm = nn.utils.clip_grad_norm_([a, b], 1.0)
    assert norm.item() == pytest.approx(5.0)
    assert (a.grad.item(), b.grad.item()) == (pytest.approx(0.6, rel=1e-5), pytest.approx(0.8, rel=1e-5))
    nn.utils.clip_grad_value_([a, b], 0.1)
    assert a.grad.item() == pytest.approx(0.1)


def test_initialisers_write_in_place():
    w = torch.empty(3, 4, requires_grad=True)
    nn.init.ones_(w)
    assert w.tolist() == [[1.0] * 4] * 3
    torch.manual_seed(0)
    nn.init.uniform_(w, 2.0, 3.0)
    assert 2.0 <= w.min().item() <= w.max().item() <= 3.0
    assert w.is_leaf


def test_forward_hooks_see_and_replace_the_output():
    layer = nn.Linear(2, 1)
    handle = layer.register_forward_hook(lambda module, args, out: out * 0)
    assert layer(torch.ones(2)).item() == 0.0
    handle.remove()
    assert layer(torch.zeros(2)).item() == layer.bias.item()


def test_a_slice_of_a_sequential_keeps_its_names_and_one_of_a_list_is_numbered_anew():
    model = nn.Sequential({"first": nn.Linear(2, 3), "act": nn.Tanh(), "last": nn.Linear(3, 1)})
    head = model[1:]
    assert list(head.state_dict()) == ["last.weight", "last.bias"]
    assert head.last.weight is model.last.weight
    assert list(nn.Sequential(nn.Tanh(), nn.Linear(2, 3))[1:].state_dict()) == ["1.weight", "1.bias"]
    assert len(model[3:]) == 0
    assert list(nn.ModuleList(model)[2:].state_dict()) == ["0.weight", "0.bias"]
