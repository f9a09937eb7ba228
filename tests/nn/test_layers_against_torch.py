"""Each layer agrees with PyTorch's on the same weights: outputs, gradients of inputs and of parameters."""

import numpy as np
import pytest

import fad
from fad import nn
from fad.nn import functional as F

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is not installed")

pytestmark = pytest.mark.oracle
rng = np.random.default_rng(0)


def real(*shape):
    return rng.standard_normal(shape)


def first(y):
    return y[0] if isinstance(y, tuple) else y


def compare(mine, theirs, x, *, training=False, rtol=1e-10):
    """Load my weights into PyTorch's layer, and compare outputs and gradients of a random pairing with the output."""
    theirs = theirs.double().train(training)
    mine.train(training)
    theirs.load_state_dict({k: torch.from_numpy(np.asarray(v)) for k, v in mine.state_dict().items()})
    integer = x.dtype.kind == "i"
    tx = torch.from_numpy(x) if integer else torch.from_numpy(x).requires_grad_()
    ty = first(theirs(tx))
    ct = real(*ty.shape)
    (ty * torch.from_numpy(ct)).sum().backward()

    def paired(model, x):
        y = first(model(x))
        return np.sum(y * ct), y

    argnums = 0 if integer else (0, 1)
    (_, y), grads = fad.value_and_grad(paired, argnums, has_aux=True)(mine, x)
    np.testing.assert_allclose(y, ty.detach().numpy(), rtol=rtol, atol=1e-11)
    if not integer:
        np.testing.assert_allclose(grads[1], tx.grad.numpy(), rtol=rtol, atol=1e-10)
    found = dict((grads if integer else grads[0]).named_parameters())
    for name, p in theirs.named_parameters():
        np.testing.assert_allclose(found[name], p.grad.numpy(), rtol=rtol, atol=1e-10, err_msg=name)
    for name, b in theirs.named_buffers():
        np.testing.assert_allclose(dict(mine.named_buffers())[name], b.numpy(), rtol=rtol, err_msg=name)


t = torch.nn
CASES = {
    "linear": (lambda: nn.Linear(4, 3), lambda: t.Linear(4, 3), (5, 4)),
    "linear on three axes": (lambda: nn.Linear(4, 3), lambda: t.Linear(4, 3), (2, 5, 4)),
    "linear without bias": (lambda: nn.Linear(4, 3, bias=False), lambda: t.Linear(4, 3, bias=False), (4,)),
    "layer norm": (lambda: nn.LayerNorm(4), lambda: t.LayerNorm(4), (5, 4)),
    "layer norm over two axes": (lambda: nn.LayerNorm((3, 4)), lambda: t.LayerNorm((3, 4)), (5, 3, 4)),
    "rms norm": (lambda: nn.RMSNorm(4), lambda: t.RMSNorm(4), (5, 4)),
    "batch norm": (lambda: nn.BatchNorm1d(4), lambda: t.BatchNorm1d(4), (5, 4)),
    "batch norm of sequences": (lambda: nn.BatchNorm1d(4), lambda: t.BatchNorm1d(4), (5, 4, 3)),
    "batch norm of images": (lambda: nn.BatchNorm2d(2), lambda: t.BatchNorm2d(2), (3, 2, 4, 5)),
    "conv1d": (lambda: nn.Conv1d(4, 6, 3, stride=2, padding=1), lambda: t.Conv1d(4, 6, 3, 2, 1), (2, 4, 9)),
    "conv1d, same": (lambda: nn.Conv1d(2, 3, 3, padding="same"), lambda: t.Conv1d(2, 3, 3, padding="same"), (2, 2, 5)),
    "conv2d": (lambda: nn.Conv2d(3, 4, 3, padding=1), lambda: t.Conv2d(3, 4, 3, padding=1), (2, 3, 6, 5)),
    "conv2d, groups and dilation": (
        lambda: nn.Conv2d(4, 6, (3, 2), stride=(2, 1), dilation=(1, 2), groups=2, bias=False),
        lambda: t.Conv2d(4, 6, (3, 2), stride=(2, 1), dilation=(1, 2), groups=2, bias=False),
        (2, 4, 7, 6),
    ),
    "conv2d of one image": (lambda: nn.Conv2d(3, 4, 3), lambda: t.Conv2d(3, 4, 3), (3, 6, 5)),
    "transposed conv2d": (
        lambda: nn.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1),
        lambda: t.ConvTranspose2d(3, 4, 3, stride=2, padding=1, output_padding=1),
        (2, 3, 4, 5),
    ),
    "transposed conv1d": (lambda: nn.ConvTranspose1d(3, 4, 3), lambda: t.ConvTranspose1d(3, 4, 3), (2, 3, 5)),
    "max pool 1d": (lambda: nn.MaxPool1d(2), lambda: t.MaxPool1d(2), (2, 3, 7)),
    "max pool": (lambda: nn.MaxPool2d(3, 2, 1), lambda: t.MaxPool2d(3, 2, 1), (2, 3, 7, 6)),
    "average pool 1d": (lambda: nn.AvgPool1d(3, 2, 1), lambda: t.AvgPool1d(3, 2, 1), (2, 3, 7)),
    "average pool": (lambda: nn.AvgPool2d((2, 3)), lambda: t.AvgPool2d((2, 3)), (2, 3, 4, 6)),
    "lstm": (lambda: nn.LSTM(3, 4), lambda: t.LSTM(3, 4), (6, 2, 3)),
    "lstm of two layers, both ways": (
        lambda: nn.LSTM(3, 4, 2, bidirectional=True),
        lambda: t.LSTM(3, 4, 2, bidirectional=True),
        (5, 2, 3),
    ),
    "lstm, batch first": (lambda: nn.LSTM(3, 4, batch_first=True), lambda: t.LSTM(3, 4, batch_first=True), (2, 6, 3)),
    "gru": (lambda: nn.GRU(3, 4), lambda: t.GRU(3, 4), (6, 2, 3)),
    "gru of one example, no bias": (lambda: nn.GRU(3, 4, bias=False), lambda: t.GRU(3, 4, bias=False), (6, 3)),
    "layer norm without bias": (lambda: nn.LayerNorm(4, bias=False), lambda: t.LayerNorm(4, bias=False), (5, 4)),
    "layer norm without weights": (
        lambda: nn.LayerNorm(4, eps=1e-3, elementwise_affine=False),
        lambda: t.LayerNorm(4, eps=1e-3, elementwise_affine=False),
        (5, 4),
    ),
    "rms norm, eps": (lambda: nn.RMSNorm((3, 4), eps=1e-3), lambda: t.RMSNorm((3, 4), eps=1e-3), (5, 3, 4)),
    "rms norm without weights": (
        lambda: nn.RMSNorm(4, elementwise_affine=False),
        lambda: t.RMSNorm(4, elementwise_affine=False),
        (5, 4),
    ),
    "batch norm, plain average": (
        lambda: nn.BatchNorm1d(4, momentum=None),
        lambda: t.BatchNorm1d(4, momentum=None),
        (5, 4),
    ),
    "batch norm without weights": (
        lambda: nn.BatchNorm1d(4, eps=1e-3, momentum=0.3, affine=False),
        lambda: t.BatchNorm1d(4, eps=1e-3, momentum=0.3, affine=False),
        (5, 4),
    ),
    "batch norm without statistics": (
        lambda: nn.BatchNorm1d(4, track_running_stats=False),
        lambda: t.BatchNorm1d(4, track_running_stats=False),
        (5, 4),
    ),
    "batch norm of volumes": (lambda: nn.BatchNorm3d(2), lambda: t.BatchNorm3d(2), (3, 2, 2, 3, 2)),
    "group norm": (lambda: nn.GroupNorm(2, 6), lambda: t.GroupNorm(2, 6), (3, 6, 4)),
    "group norm of images": (lambda: nn.GroupNorm(3, 6, eps=1e-3), lambda: t.GroupNorm(3, 6, eps=1e-3), (3, 6, 4, 5)),
    "group norm without weights": (
        lambda: nn.GroupNorm(2, 6, affine=False),
        lambda: t.GroupNorm(2, 6, affine=False),
        (3, 6),
    ),
    "conv1d, circular": (
        lambda: nn.Conv1d(2, 3, 3, padding=2, padding_mode="circular"),
        lambda: t.Conv1d(2, 3, 3, padding=2, padding_mode="circular"),
        (2, 2, 7),
    ),
    "conv1d, replicate": (
        lambda: nn.Conv1d(2, 3, 3, padding="same", padding_mode="replicate"),
        lambda: t.Conv1d(2, 3, 3, padding="same", padding_mode="replicate"),
        (2, 2, 7),
    ),
    "conv2d, reflect": (
        lambda: nn.Conv2d(2, 3, 3, padding=(1, 2), stride=2, padding_mode="reflect"),
        lambda: t.Conv2d(2, 3, 3, padding=(1, 2), stride=2, padding_mode="reflect"),
        (2, 2, 6, 5),
    ),
    "conv2d, reflect, one image": (
        lambda: nn.Conv2d(2, 3, (3, 2), padding=1, padding_mode="reflect"),
        lambda: t.Conv2d(2, 3, (3, 2), padding=1, padding_mode="reflect"),
        (2, 6, 5),
    ),
    "conv2d, each channel apart": (
        lambda: nn.Conv2d(4, 8, 3, groups=4),
        lambda: t.Conv2d(4, 8, 3, groups=4),
        (2, 4, 6, 5),
    ),
    "conv2d, same, dilated": (
        lambda: nn.Conv2d(2, 3, (3, 5), padding="same", dilation=2),
        lambda: t.Conv2d(2, 3, (3, 5), padding="same", dilation=2),
        (2, 2, 9, 10),
    ),
    "conv3d": (
        lambda: nn.Conv3d(2, 3, (2, 3, 2), stride=(1, 2, 1), padding=1),
        lambda: t.Conv3d(2, 3, (2, 3, 2), stride=(1, 2, 1), padding=1),
        (2, 2, 3, 4, 5),
    ),
    "transposed conv2d, groups": (
        lambda: nn.ConvTranspose2d(4, 6, 3, stride=2, groups=2, dilation=2, bias=False),
        lambda: t.ConvTranspose2d(4, 6, 3, stride=2, groups=2, dilation=2, bias=False),
        (2, 4, 3, 4),
    ),
    "transposed conv3d": (
        lambda: nn.ConvTranspose3d(2, 3, 2, stride=2),
        lambda: t.ConvTranspose3d(2, 3, 2, stride=2),
        (2, 2, 2, 3, 2),
    ),
    "max pool, dilated": (
        lambda: nn.MaxPool2d((2, 3), stride=1, padding=1, dilation=(1, 2)),
        lambda: t.MaxPool2d((2, 3), stride=1, padding=1, dilation=(1, 2)),
        (2, 3, 7, 8),
    ),
    "max pool, ceil": (
        lambda: nn.MaxPool2d(3, 2, 1, ceil_mode=True),
        lambda: t.MaxPool2d(3, 2, 1, ceil_mode=True),
        (2, 3, 8, 7),
    ),
    "max pool 1d, ceil": (
        lambda: nn.MaxPool1d(2, 3, ceil_mode=True),
        lambda: t.MaxPool1d(2, 3, ceil_mode=True),
        (2, 3, 7),
    ),
    "max pool 3d": (lambda: nn.MaxPool3d(2), lambda: t.MaxPool3d(2), (2, 2, 4, 4, 5)),
    "average pool, ceil": (
        lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True),
        lambda: t.AvgPool2d(3, 2, 1, ceil_mode=True),
        (2, 3, 8, 7),
    ),
    "average pool, ceil, bare": (
        lambda: nn.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
        lambda: t.AvgPool2d(3, 2, 1, ceil_mode=True, count_include_pad=False),
        (2, 3, 8, 7),
    ),
    "average pool, bare": (
        lambda: nn.AvgPool2d(3, 2, 1, count_include_pad=False),
        lambda: t.AvgPool2d(3, 2, 1, count_include_pad=False),
        (2, 3, 7, 6),
    ),
    "average pool 3d": (
        lambda: nn.AvgPool3d((1, 2, 2), padding=(0, 1, 0)),
        lambda: t.AvgPool3d((1, 2, 2), padding=(0, 1, 0)),
        (2, 2, 4, 4, 5),
    ),
    "adaptive average pool 1d": (lambda: nn.AdaptiveAvgPool1d(4), lambda: t.AdaptiveAvgPool1d(4), (2, 3, 10)),
    "adaptive average pool": (
        lambda: nn.AdaptiveAvgPool2d((3, None)),
        lambda: t.AdaptiveAvgPool2d((3, None)),
        (2, 3, 7, 6),
    ),
    "global average pool": (lambda: nn.AdaptiveAvgPool2d(1), lambda: t.AdaptiveAvgPool2d(1), (2, 3, 7, 6)),
    "adaptive max pool 1d": (lambda: nn.AdaptiveMaxPool1d(4), lambda: t.AdaptiveMaxPool1d(4), (2, 3, 10)),
    "adaptive max pool": (lambda: nn.AdaptiveMaxPool2d((3, 2)), lambda: t.AdaptiveMaxPool2d((3, 2)), (2, 3, 7, 6)),
    "rnn": (lambda: nn.RNN(3, 4), lambda: t.RNN(3, 4), (6, 2, 3)),
    "rnn of two layers, both ways": (
        lambda: nn.RNN(3, 4, 2, bidirectional=True, batch_first=True),
        lambda: t.RNN(3, 4, 2, bidirectional=True, batch_first=True),
        (2, 5, 3),
    ),
    "gru of two layers, both ways": (
        lambda: nn.GRU(3, 4, 2, bidirectional=True),
        lambda: t.GRU(3, 4, 2, bidirectional=True),
        (5, 2, 3),
    ),
    "lstm without bias": (lambda: nn.LSTM(3, 4, bias=False), lambda: t.LSTM(3, 4, bias=False), (5, 2, 3)),
    "lstm of one example": (lambda: nn.LSTM(3, 4, 2), lambda: t.LSTM(3, 4, 2), (5, 3)),
    "prelu": (lambda: nn.PReLU(), lambda: t.PReLU(), (5, 3)),
    "prelu of channels": (lambda: nn.PReLU(3, 0.1), lambda: t.PReLU(3, 0.1), (5, 3, 4)),
    "CELU(0.5)": (lambda: nn.CELU(0.5), lambda: t.CELU(0.5), (3, 4, 6)),
    "ELU(0.7)": (lambda: nn.ELU(0.7), lambda: t.ELU(0.7), (3, 4, 6)),
    "GELU()": (lambda: nn.GELU(), lambda: t.GELU(), (3, 4, 6)),
    "GELU, tanh": (lambda: nn.GELU("tanh"), lambda: t.GELU(approximate="tanh"), (3, 4, 6)),
    "GLU()": (lambda: nn.GLU(), lambda: t.GLU(), (3, 4, 6)),
    "SELU()": (lambda: nn.SELU(), lambda: t.SELU(), (3, 4, 6)),
    "Hardsigmoid()": (lambda: nn.Hardsigmoid(), lambda: t.Hardsigmoid(), (3, 4, 6)),
    "Hardswish()": (lambda: nn.Hardswish(), lambda: t.Hardswish(), (3, 4, 6)),
    "Hardtanh(-0.5, 0.7)": (lambda: nn.Hardtanh(-0.5, 0.7), lambda: t.Hardtanh(-0.5, 0.7), (3, 4, 6)),
    "LeakyReLU(0.2)": (lambda: nn.LeakyReLU(0.2), lambda: t.LeakyReLU(0.2), (3, 4, 6)),
    "LogSigmoid()": (lambda: nn.LogSigmoid(), lambda: t.LogSigmoid(), (3, 4, 6)),
    "Mish()": (lambda: nn.Mish(), lambda: t.Mish(), (3, 4, 6)),
    "ReLU()": (lambda: nn.ReLU(), lambda: t.ReLU(), (3, 4, 6)),
    "ReLU6()": (lambda: nn.ReLU6(), lambda: t.ReLU6(), (3, 4, 6)),
    "SiLU()": (lambda: nn.SiLU(), lambda: t.SiLU(), (3, 4, 6)),
    "Sigmoid()": (lambda: nn.Sigmoid(), lambda: t.Sigmoid(), (3, 4, 6)),
    "Softplus()": (lambda: nn.Softplus(), lambda: t.Softplus(), (3, 4, 6)),
    "Softsign()": (lambda: nn.Softsign(), lambda: t.Softsign(), (3, 4, 6)),
    "Tanh()": (lambda: nn.Tanh(), lambda: t.Tanh(), (3, 4, 6)),
    "Identity()": (lambda: nn.Identity(), lambda: t.Identity(), (3, 4, 6)),
    "Flatten()": (lambda: nn.Flatten(), lambda: t.Flatten(), (3, 4, 6)),
    "Softmax": (lambda: nn.Softmax(1), lambda: t.Softmax(1), (3, 4, 6)),
    "LogSoftmax": (lambda: nn.LogSoftmax(1), lambda: t.LogSoftmax(1), (3, 4, 6)),
    "sequential": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 3)),
        lambda: t.Sequential(t.Linear(4, 6), t.GELU(), t.Linear(6, 3)),
        (5, 4),
    ),
    "rnn cell": (lambda: nn.RNNCell(3, 4), lambda: t.RNNCell(3, 4), (5, 3)),
    "gru cell": (lambda: nn.GRUCell(3, 4), lambda: t.GRUCell(3, 4), (5, 3)),
    "gru cell of one example, no bias": (lambda: nn.GRUCell(3, 4, False), lambda: t.GRUCell(3, 4, bias=False), (3,)),
    "lstm cell": (lambda: nn.LSTMCell(3, 4), lambda: t.LSTMCell(3, 4), (5, 3)),
    "upsample": (lambda: nn.Upsample(scale_factor=2), lambda: t.Upsample(scale_factor=2), (2, 3, 4, 5)),
    "upsample, linear": (
        lambda: nn.Upsample(7, mode="linear", align_corners=True),
        lambda: t.Upsample(7, mode="linear", align_corners=True),
        (2, 3, 4),
    ),
    "upsample, bilinear": (
        lambda: nn.Upsample((7, 3), mode="bilinear"),
        lambda: t.Upsample((7, 3), mode="bilinear"),
        (2, 3, 4, 5),
    ),
    "pixel shuffle": (lambda: nn.PixelShuffle(2), lambda: t.PixelShuffle(2), (2, 8, 3, 5)),
    "encoder layer": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0),
        lambda: t.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True),
        (3, 5, 8),
    ),
    "encoder layer, norms first, gelu, no bias": (
        lambda: nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", layer_norm_eps=1e-3, norm_first=True, bias=False),
        lambda: t.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", 1e-3, True, True, False),
        (3, 5, 8),
    ),
    "encoder of one example": (
        lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.0), 2, nn.LayerNorm(8)),
        lambda: t.TransformerEncoder(
            t.TransformerEncoderLayer(8, 2, 16, 0.0, batch_first=True), 2, t.LayerNorm(8), enable_nested_tensor=False
        ),
        (5, 8),
    ),
}

ROUGH = {"Hardsigmoid()": 1e-7}  # PyTorch's derivative is 1/6 rounded to float32


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("training", [False, True])
def test_each_layer_agrees_with_torch(name, training):
    mine, theirs, shape = CASES[name]
    compare(mine(), theirs(), real(*shape), training=training, rtol=ROUGH.get(name, 1e-10))


@pytest.mark.parametrize("padding_idx", [None, 2, -1])
def test_embedding_agrees_with_torch(padding_idx):
    mine, theirs = nn.Embedding(7, 3, padding_idx), t.Embedding(7, 3, padding_idx)
    if padding_idx is not None:
        assert not mine.weight[padding_idx].any()
    compare(mine, theirs, rng.integers(0, 7, (4, 9)))


@pytest.mark.parametrize("kind", ["RNN", "GRU", "LSTM"])
def test_recurrent_layers_go_on_from_a_given_state_and_return_the_last_one(kind):
    mine, theirs = getattr(nn, kind)(3, 4, 2), getattr(t, kind)(3, 4, 2).double()
    theirs.load_state_dict({k: torch.from_numpy(v) for k, v in mine.state_dict().items()})
    x, h, c = real(5, 2, 3), real(2, 2, 4), real(2, 2, 4)
    given = (h, c) if kind == "LSTM" else h
    ty, tends = theirs(
        torch.from_numpy(x), tuple(map(torch.from_numpy, given)) if kind == "LSTM" else torch.from_numpy(h)
    )
    y, ends = mine(x, given)
    np.testing.assert_allclose(y, ty.detach().numpy(), rtol=1e-10)
    for a, b in zip(ends, tends, strict=True):
        np.testing.assert_allclose(a, b.detach().numpy(), rtol=1e-10)


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells_go_on_from_a_given_state_and_take_the_steps_of_their_layer(kind):
    mine, theirs = getattr(nn, kind)(3, 4), getattr(t, kind)(3, 4).double()
    theirs.load_state_dict({k: torch.from_numpy(v) for k, v in mine.state_dict().items()})
    x, h, c = real(5, 2, 3), real(2, 4), real(2, 4)
    state = (h, c) if kind == "LSTMCell" else h
    layer = getattr(nn, kind.removesuffix("Cell"))(3, 4)
    for name, w in mine.named_parameters():
        setattr(layer, f"{name}_l0", w)
    _, whole = layer(x, tuple(s[None] for s in state) if kind == "LSTMCell" else state[None])
    tstate = fad.tree.map(torch.from_numpy, state)
    for step in x:
        state, tstate = mine(step, state), theirs(torch.from_numpy(step), tstate)
    for a, b, c in zip(*(fad.tree.leaves(s) for s in (state, whole)), fad.tree.leaves(tstate), strict=True):
        np.testing.assert_allclose(a, b[0], rtol=1e-12)
        np.testing.assert_allclose(a, c.detach().numpy(), rtol=1e-10)


@pytest.mark.parametrize("kind", ["RNNCell", "GRUCell", "LSTMCell"])
def test_cells_refuse_inputs_of_another_width(kind):
    with pytest.raises(ValueError, match=rf"{kind} needs an input of shape \(batch, 3\)"):
        getattr(nn, kind)(3, 4)(real(2, 5))


def test_each_layer_of_an_encoder_drops_other_elements():
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.5, key=0), 2)
    first, second = (layer.dropout1(np.ones(100)) for layer in encoder.layers)
    assert not np.array_equal(first, second)
    encoder.eval()
    assert np.array_equal(encoder(X := real(3, 5, 8)), encoder(X))


class TorchAttention(t.Module):
    def __init__(self, causal):
        super().__init__()
        self.inner = t.MultiheadAttention(8, 2, batch_first=True)
        self.causal = causal

    def forward(self, x):
        n = x.shape[1]
        mask = torch.triu(torch.ones(n, n, dtype=torch.bool), 1) if self.causal else None
        return self.inner(x, x, x, attn_mask=mask, need_weights=False)[0]


class Attention(nn.Module):
    def __init__(self, causal):
        self.inner = nn.MultiheadAttention(8, 2)
        self.inner.in_proj_bias = real(24)
        self.causal = causal

    def forward(self, x):
        return self.inner(x, is_causal=self.causal)


@pytest.mark.parametrize("causal", [False, True])
def test_attention_agrees_with_torch(causal):
    compare(Attention(causal), TorchAttention(causal), real(3, 5, 8))


@pytest.mark.parametrize("boolean", [False, True])
def test_attention_to_other_keys_and_values_under_a_mask_agrees_with_torch(boolean):
    mine, theirs = nn.MultiheadAttention(8, 2), t.MultiheadAttention(8, 2, batch_first=True).double()
    theirs.load_state_dict({k: torch.from_numpy(v) for k, v in mine.state_dict().items()})
    q, k, v = real(3, 5, 8), real(3, 6, 8), real(3, 6, 8)
    may = rng.random((5, 6)) < 0.7
    may[:, 0] = True
    mask = may if boolean else real(5, 6)
    tmask = torch.from_numpy(~mask if boolean else mask)  # PyTorch's layer says what may not be seen
    expected = theirs(*map(torch.from_numpy, (q, k, v)), attn_mask=tmask, need_weights=False)[0]
    np.testing.assert_allclose(mine(q, k, v, mask), expected.detach().numpy(), rtol=1e-10)


ACTIVATIONS = [
    "relu", "relu6", "elu", "selu", "leaky_relu", "silu", "mish", "gelu", "softplus", "softsign", "tanh", "sigmoid",
    "hardtanh", "celu", "hardsigmoid", "hardswish", "hardshrink", "softshrink", "tanhshrink", "logsigmoid",
]  # fmt: skip


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_each_activation_agrees_with_torch(name):
    x = 3.0 * real(50)
    tx = torch.from_numpy(x).requires_grad_()
    ty = getattr(torch.nn.functional, name)(tx)
    ty.sum().backward()
    f = getattr(F, name)
    np.testing.assert_allclose(f(x), ty.detach().numpy(), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(f(x)))(x), tx.grad.numpy(), rtol=1e-7, atol=1e-8)


LABELS = rng.integers(0, 4, 6)
WEIGHT = rng.uniform(0.5, 2, 4)
SPARSE = np.where(np.arange(6) == 2, -100, LABELS)
PROBABILITIES = rng.dirichlet(np.ones(4), 6)
SIGNS = np.array([1.0, -1.0, -1.0, 1.0, 1.0, -1.0])
LOSSES = {
    "cross entropy": ("cross_entropy", real(6, 4), (LABELS,), {}),
    "cross entropy, sum": ("cross_entropy", real(6, 4), (LABELS,), {"reduction": "sum"}),
    "cross entropy, none": ("cross_entropy", real(6, 4), (LABELS,), {"reduction": "none"}),
    "cross entropy of images": ("cross_entropy", real(2, 4, 3), (LABELS.reshape(2, 3),), {}),
    "cross entropy, weights": ("cross_entropy", real(6, 4), (LABELS, WEIGHT), {}),
    "cross entropy, ignored": ("cross_entropy", real(6, 4), (SPARSE, WEIGHT), {"ignore_index": -100}),
    "cross entropy, smooth": (
        "cross_entropy", real(6, 4), (SPARSE, WEIGHT), {"ignore_index": -100, "label_smoothing": 0.1}
    ),
    "cross entropy, soft": ("cross_entropy", real(6, 4), (PROBABILITIES, WEIGHT), {"label_smoothing": 0.2}),
    "cross entropy, soft, sum": ("cross_entropy", real(6, 4), (PROBABILITIES,), {"reduction": "sum"}),
    "cross entropy of one example": ("cross_entropy", real(4), (LABELS[0],), {}),
    "cross entropy of images, smooth": (
        "cross_entropy", real(2, 4, 3), (LABELS.reshape(2, 3), WEIGHT), {"label_smoothing": 0.1, "reduction": "none"}
    ),
    "nll": ("nll_loss", np.log(PROBABILITIES), (LABELS, WEIGHT), {}),
    "nll, ignored": ("nll_loss", np.log(PROBABILITIES), (SPARSE,), {"ignore_index": -100}),
    "nll of images": ("nll_loss", real(2, 4, 3), (LABELS.reshape(2, 3),), {"reduction": "none"}),
    "mse": ("mse_loss", real(6, 4), (real(6, 4),), {}),
    "l1": ("l1_loss", real(6, 4), (real(6, 4),), {}),
    "huber": ("huber_loss", real(6, 4), (real(6, 4),), {"delta": 0.7}),
    "smooth l1": ("smooth_l1_loss", real(6, 4), (real(6, 4),), {"beta": 0.7}),
    "bce": ("binary_cross_entropy", rng.uniform(0.1, 0.9, 6), (rng.uniform(0, 1, 6),), {}),
    "bce, weights": (
        "binary_cross_entropy", rng.uniform(0.1, 0.9, 6), (rng.uniform(0, 1, 6), rng.uniform(0, 1, 6)), {}
    ),
    "bce with logits": (
        "binary_cross_entropy_with_logits", real(6), (rng.uniform(0, 1, 6),), {"pos_weight": np.array(2.0)}
    ),
    "bce with logits, weights": (
        "binary_cross_entropy_with_logits", real(6, 4), (rng.uniform(0, 1, (6, 4)), WEIGHT),
        {"pos_weight": WEIGHT[::-1].copy()},
    ),
    "gaussian nll": ("gaussian_nll_loss", real(6), (real(6), rng.uniform(0.5, 2, 6)), {"full": True}),
    "gaussian nll, bare": ("gaussian_nll_loss", real(6), (real(6), rng.uniform(0.5, 2, 6)), {"eps": 0.8}),
    "kl": ("kl_div", np.log(PROBABILITIES), (PROBABILITIES[::-1].copy(),), {}),
    "kl, of logarithms": ("kl_div", real(6, 4), (np.log(PROBABILITIES),), {"log_target": True}),
    "soft margin": ("soft_margin_loss", real(6), (SIGNS,), {}),
    "many labels": ("multilabel_soft_margin_loss", real(6, 4), (PROBABILITIES.round(), WEIGHT), {}),
    "ranking": ("margin_ranking_loss", real(6), (real(6), SIGNS), {"margin": 0.3}),
    "hinge embedding": ("hinge_embedding_loss", real(6), (SIGNS,), {"margin": 0.7}),
    "cosine embedding": ("cosine_embedding_loss", real(6, 4), (real(6, 4), SIGNS), {"margin": 0.1}),
    "triplet": ("triplet_margin_loss", real(6, 4), (real(6, 4), real(6, 4)), {}),
    "triplet, swapped": ("triplet_margin_loss", real(6, 4), (real(6, 4), real(6, 4)), {"swap": True, "margin": 3.0}),
    "poisson": ("poisson_nll_loss", real(6), (np.arange(6.0),), {}),
    "poisson, of rates": (
        "poisson_nll_loss", rng.uniform(0.5, 2, 6), (np.arange(6.0),), {"log_input": False, "full": True}
    ),
}  # fmt: skip


REDUCTIONS = [
    (name, reduction)
    for name, (function, *_, options) in LOSSES.items()
    for reduction in ("mean", "sum", "none", *(["batchmean"] if function == "kl_div" else []))
    if "reduction" not in options or options["reduction"] == reduction
]


@pytest.mark.filterwarnings("ignore:reduction. 'mean' divides")  # of PyTorch's own kl_div
@pytest.mark.parametrize(("name", "reduction"), REDUCTIONS)
def test_each_loss_agrees_with_torch(name, reduction):
    function, x, args, options = LOSSES[name]
    options = {**options, "reduction": reduction}
    tx = torch.from_numpy(x).requires_grad_()
    given = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    ty = getattr(torch.nn.functional, function)(tx, *(torch.from_numpy(np.asarray(v)) for v in args), **given)
    ty.sum().backward()
    f = lambda x: getattr(F, function)(x, *args, **options)
    np.testing.assert_allclose(f(x), ty.detach().numpy(), rtol=1e-11, atol=1e-14)
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(f(x)))(x), tx.grad.numpy(), rtol=1e-10, atol=1e-13)


FUNCTIONS = {
    "softmin": ((4, 3), {}),
    "threshold": ((4, 3), {"threshold": 0.2, "value": 3.0}),
    "normalize": ((4, 3), {}),
    "pixel_shuffle": ((2, 8, 3, 4), {"upscale_factor": 2}),
    "pad": ((2, 3, 4), {"pad": (1, 2, 0, 3), "value": 2.0}),
    "pad, cut": ((2, 3, 4), {"pad": (-1, 2)}),
    "pad, reflect": ((2, 3, 4), {"pad": (1, 2), "mode": "reflect"}),
    "pad, replicate": ((2, 3, 4, 5), {"pad": (1, 2, 3, 0), "mode": "replicate"}),
    "pad, circular": ((2, 3, 4, 5), {"pad": (1, 2, 3, 0), "mode": "circular"}),
    "interpolate": ((2, 3, 5, 4), {"size": (7, 9)}),
    "interpolate, factor": ((2, 3, 5), {"scale_factor": 2.5}),
    "interpolate, linear": ((2, 3, 5), {"size": 8, "mode": "linear"}),
    "interpolate, bilinear": ((2, 3, 5, 4), {"scale_factor": 2, "mode": "bilinear"}),
    "interpolate, smaller": ((2, 3, 8, 9), {"size": (3, 4), "mode": "bilinear"}),
    "interpolate, corners": ((2, 3, 5, 4), {"size": (9, 7), "mode": "bilinear", "align_corners": True}),
    "max_pool1d": ((2, 3, 7), {"kernel_size": 3, "ceil_mode": True}),
    "max_pool2d": ((2, 3, 7, 6), {"kernel_size": 2}),
    "max_pool3d": ((2, 3, 4, 4, 4), {"kernel_size": 2, "stride": 1}),
    "avg_pool1d": ((2, 3, 7), {"kernel_size": 3, "padding": 1}),
    "avg_pool2d": ((3, 7, 6), {"kernel_size": (2, 3)}),
    "avg_pool3d": ((2, 3, 4, 4, 4), {"kernel_size": 2}),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_agrees_with_torch(name):
    shape, options = FUNCTIONS[name]
    function, x = name.partition(",")[0], real(*shape)
    tx = torch.from_numpy(x).requires_grad_()
    theirs = {("dim" if k == "axis" else k): v for k, v in options.items()}
    ty = getattr(torch.nn.functional, function)(
        tx, **theirs, **({"dim": -1} if function in ("softmin", "normalize") else {})
    )
    ct = real(*ty.shape)
    (ty * torch.from_numpy(ct)).sum().backward()
    f = lambda x: getattr(F, function)(x, **options)
    np.testing.assert_allclose(f(x), ty.detach().numpy(), rtol=1e-11, atol=1e-13)
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(f(x) * ct))(x), tx.grad.numpy(), rtol=1e-10, atol=1e-12)
