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
    "sequential": (
        lambda: nn.Sequential(nn.Linear(4, 6), nn.GELU(), nn.Linear(6, 3)),
        lambda: t.Sequential(t.Linear(4, 6), t.GELU(), t.Linear(6, 3)),
        (5, 4),
    ),
}


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("training", [False, True])
def test_each_layer_agrees_with_torch(name, training):
    mine, theirs, shape = CASES[name]
    compare(mine(), theirs(), real(*shape), training=training)


def test_embedding_agrees_with_torch():
    compare(nn.Embedding(7, 3), t.Embedding(7, 3), rng.integers(0, 7, (2, 5)))


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


ACTIVATIONS = [
    "relu", "relu6", "elu", "selu", "leaky_relu", "silu", "mish", "gelu", "softplus", "softsign", "tanh", "sigmoid",
    "hardtanh",
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
    "nll": ("nll_loss", np.log(PROBABILITIES), (LABELS, WEIGHT), {}),
    "mse": ("mse_loss", real(6, 4), (real(6, 4),), {}),
    "l1": ("l1_loss", real(6, 4), (real(6, 4),), {}),
    "huber": ("huber_loss", real(6, 4), (real(6, 4),), {"delta": 0.7}),
    "smooth l1": ("smooth_l1_loss", real(6, 4), (real(6, 4),), {"beta": 0.7}),
    "bce": ("binary_cross_entropy", rng.uniform(0.1, 0.9, 6), (rng.uniform(0, 1, 6),), {}),
    "bce with logits": (
        "binary_cross_entropy_with_logits", real(6), (rng.uniform(0, 1, 6),), {"pos_weight": np.array(2.0)}
    ),
    "gaussian nll": ("gaussian_nll_loss", real(6), (real(6), rng.uniform(0.5, 2, 6)), {"full": True}),
    "kl": ("kl_div", np.log(PROBABILITIES), (PROBABILITIES[::-1].copy(),), {"reduction": "batchmean"}),
    "soft margin": ("soft_margin_loss", real(6), (np.sign(real(6)),), {}),
}  # fmt: skip


@pytest.mark.parametrize("name", LOSSES)
def test_each_loss_agrees_with_torch(name):
    function, x, args, options = LOSSES[name]
    tx = torch.from_numpy(x).requires_grad_()
    given = {k: torch.from_numpy(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
    ty = getattr(torch.nn.functional, function)(tx, *map(torch.from_numpy, args), **given)
    ty.sum().backward()
    f = lambda x: getattr(F, function)(x, *args, **options)
    np.testing.assert_allclose(f(x), ty.detach().numpy(), rtol=1e-12)
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(f(x)))(x), tx.grad.numpy(), rtol=1e-11, atol=1e-14)
