"""A module, a parameter or a buffer that a model has under several names."""

import importlib

import numpy as np
import pytest


def make(torch):
    class Tied(torch.nn.Module):
        """A model of language: what reads words and what predicts them has one matrix, and a block is used twice."""

        def __init__(self):
            super().__init__()
            nn = torch.nn
            self.words, self.block = nn.Embedding(5, 3), nn.Linear(3, 3)
            self.head = nn.Linear(3, 5, bias=False)
            self.head.weight = self.words.weight
            self.norm = nn.BatchNorm1d(3)
            self.layers = nn.ModuleList([self.block, self.norm, self.block])
            self.register_buffer("scale", torch.full((1,), 2.0))
            self.register_buffer("factor", self.scale)

        def forward(self, x):
            y = self.words(x)
            for layer in self.layers:
                y = torch.tanh(layer(y)) * self.factor
            return self.head(y)

    torch.manual_seed(0)
    model = Tied()
    rng = np.random.default_rng(0)
    with torch.no_grad():
        for p in model.parameters():
            p.copy_(torch.tensor(rng.normal(size=tuple(p.shape)).astype("float32")))
    return model


def gradients_of(model):
    return [(n, p.grad) for n, p in model.named_parameters()]


@pytest.fixture(params=["fad.eager", "torch"])
def torch(request):
    if request.param == "torch":
        return pytest.importorskip("torch")
    return importlib.import_module(request.param)


NAMES = [
    "scale", "factor", "words.weight", "block.weight", "block.bias", "head.weight", "norm.weight", "norm.bias",
    "norm.running_mean", "norm.running_var", "norm.num_batches_tracked", "layers.0.weight", "layers.0.bias",
    "layers.1.weight", "layers.1.bias", "layers.1.running_mean", "layers.1.running_var",
    "layers.1.num_batches_tracked", "layers.2.weight", "layers.2.bias",
]  # fmt: skip


def test_a_state_dict_has_what_is_shared_under_each_name(torch):
    model = make(torch)
    assert list(model.state_dict()) == NAMES
    assert [n for n, _ in model.named_parameters()] == [
        "words.weight", "block.weight", "block.bias", "norm.weight", "norm.bias"
    ]  # fmt: skip
    assert [n for n, _ in model.named_parameters(remove_duplicate=False)] == [
        n for n in NAMES if n.endswith((".weight", ".bias"))
    ]
    assert [n for n, _ in model.named_buffers(remove_duplicate=False)][:2] == ["scale", "factor"]
    assert [n for n, _ in model.named_modules(remove_duplicate=False)] == [
        "", "words", "block", "head", "norm", "layers", "layers.0", "layers.1", "layers.2"
    ]  # fmt: skip
    assert model.get_submodule("layers.2") is model.block
    assert model.get_parameter("head.weight") is model.words.weight


def test_a_state_dict_goes_to_a_model_with_the_same_shared_parts(torch):
    model, other = make(torch), make(torch)
    with torch.no_grad():
        for p in model.parameters():
            p.mul_(1.5)
    other.load_state_dict(model.state_dict())
    assert other.head.weight is other.words.weight
    x = torch.tensor([0, 2, 4, 1])
    assert torch.allclose(model(x), other(x))
    state = model.state_dict()
    del state["layers.2.bias"]
    with pytest.raises(Exception, match=r"layers\.2\.bias"):
        other.load_state_dict(state)
    assert model.state_dict(prefix="m.", keep_vars=True)["m.head.weight"] is model.words.weight


def test_a_call_with_other_parameters_puts_a_tied_one_under_all_its_names(torch):
    model, x = make(torch), torch.tensor([0, 2, 4, 1])
    model.eval()
    (model(x) ** 2).sum().backward()
    weights, wanted = ({n: x.detach() for n, x in made} for made in (model.named_parameters(), gradients_of(model)))
    loss = lambda w: (torch.func.functional_call(model, w, (x,)) ** 2).sum()
    slopes = torch.func.grad(loss)(weights)
    for n, g in wanted.items():
        np.testing.assert_allclose(slopes[n].numpy(), g.numpy(), rtol=2e-5, atol=1e-5)
    assert model.head.weight is model.words.weight
    changed = {n: 2 * w for n, w in weights.items()}
    again = {**changed, "head.weight": changed["words.weight"]}
    assert torch.equal(torch.func.functional_call(model, changed, (x,)), torch.func.functional_call(model, again, (x,)))


def test_two_values_for_one_tied_parameter_are_refused(torch):
    model, x = make(torch), torch.tensor([0, 2])
    one, other = torch.ones(5, 3), torch.zeros(5, 3)
    before = model.words.weight
    with pytest.raises(ValueError, match="tied"):
        torch.func.functional_call(model, {"words.weight": one, "head.weight": other}, (x,))
    assert model.words.weight is before is model.head.weight
