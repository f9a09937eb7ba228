"""The eager API takes PyTorch's own programs: the same calls on both give the same outputs and gradients."""

import numpy as np
import pytest

import fad.eager

torch = pytest.importorskip("torch", reason="PyTorch, the oracle of these tests, is not installed")

pytestmark = pytest.mark.oracle
rng = np.random.default_rng(0)


def real(*shape):
    return rng.standard_normal(shape)


def run(api, program, arrays):
    """Run a program on one of the two; return its output and the gradients of all inputs that are not whole numbers."""
    xs = [api.tensor(x, requires_grad=x.dtype.kind == "f") for x in arrays]
    y = program(api, *xs)
    (y * y).sum().backward()
    return [y.detach().numpy(), *(x.grad.numpy() for x in xs if x.requires_grad)]


X, K = real(2, 4, 7, 6), real(6, 2, 3, 2)
FUNCTIONS = {
    "conv1d": (
        lambda t, x, w, b: t.nn.functional.conv1d(x, w, b, stride=2, padding=1),
        real(2, 3, 7), real(4, 3, 3), real(4),
    ),
    "conv2d": (lambda t, x, w: t.nn.functional.conv2d(x, w, padding=(1, 0), groups=2), X, K),
    "conv3d": (lambda t, x, w: t.nn.functional.conv3d(x, w), real(1, 2, 4, 4, 3), real(3, 2, 2, 2, 2)),
    "conv_transpose2d": (lambda t, x, w: t.nn.functional.conv_transpose2d(x, w, stride=2), X, real(4, 3, 2, 2)),
    "max_pool2d": (lambda t, x: t.nn.functional.max_pool2d(x, 2), X),
    "max_pool2d, ceil": (lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1, ceil_mode=True), X),
    "avg_pool2d": (lambda t, x: t.nn.functional.avg_pool2d(x, 3, stride=2, padding=1, count_include_pad=False), X),
    "adaptive_avg_pool2d": (lambda t, x: t.nn.functional.adaptive_avg_pool2d(x, (1, 3)), X),
    "pad": (lambda t, x: t.nn.functional.pad(x, (1, 2, 0, 1), mode="reflect"), X),
    "interpolate": (lambda t, x: t.nn.functional.interpolate(x, scale_factor=2, mode="bilinear"), X),
    "pixel_shuffle": (lambda t, x: t.nn.functional.pixel_shuffle(x, 2), X),
    "group_norm": (lambda t, x, w, b: t.nn.functional.group_norm(x, 2, w, b), X, real(4), real(4)),
    "layer_norm": (lambda t, x, w, b: t.nn.functional.layer_norm(x, (6,), w, b), X, real(6), real(6)),
    "rms_norm": (lambda t, x, w: t.nn.functional.rms_norm(x, (6,), w, 1e-3), X, real(6)),
    "normalize": (lambda t, x: t.nn.functional.normalize(x, dim=1), X),
    "glu": (lambda t, x: t.nn.functional.glu(x, dim=1), X),
    "softmin": (lambda t, x: t.nn.functional.softmin(x, dim=1), X),
    "prelu": (lambda t, x, w: t.nn.functional.prelu(x, w), X, real(4)),
    "embedding": (
        lambda t, i, w: t.nn.functional.embedding(i, w, padding_idx=1), np.array([[1, 2], [0, 2]]), real(3, 4)
    ),
    "cosine_similarity": (lambda t, x, y: t.nn.functional.cosine_similarity(x, y, dim=-1), real(4, 3), real(4, 3)),
    "attention": (
        lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        real(2, 5, 4), real(2, 5, 4), real(2, 5, 3),
    ),
    "attention with a scale": (
        lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, scale=0.7), *[real(2, 5, 4)] * 3
    ),
    "attention of grouped queries": (
        lambda t, q, k, v: t.nn.functional.scaled_dot_product_attention(q, k, v, enable_gqa=True, is_causal=True),
        real(2, 6, 5, 4), real(2, 2, 5, 4), real(2, 3, 5, 4)[:, :2],
    ),
    "triplet": (
        lambda t, a, p, n: t.nn.TripletMarginLoss(margin=2.0)(a, p, n), real(4, 3), real(4, 3), real(4, 3),
    ),
    "gaussian nll": (
        lambda t, x, y, v: t.nn.GaussianNLLLoss(reduction="sum")(x, y, v), real(4), real(4), rng.uniform(0.5, 1, 4)
    ),
    "weighted cross entropy": (
        lambda t, x, y: t.nn.CrossEntropyLoss(weight=t.tensor([1.0, 2.0, 0.5]).double(), label_smoothing=0.1)(x, y),
        real(4, 3), np.array([0, 2, 1, 1]),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_each_function_agrees_with_torch(name):
    program, *arrays = FUNCTIONS[name]
    for mine, theirs in zip(run(fad.eager, program, arrays), run(torch, program, arrays), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


MODULES = {
    "softmax by dim": (lambda nn: nn.Softmax(dim=1), (2, 3, 4)),
    "flatten from": (lambda nn: nn.Flatten(start_dim=2), (2, 3, 4, 5)),
    "dilated pool": (lambda nn: nn.MaxPool2d(2, stride=1, dilation=2), (2, 3, 7, 6)),
    "reflecting convolution": (lambda nn: nn.Conv2d(3, 4, 3, padding=1, padding_mode="reflect"), (2, 3, 5, 5)),
    "groups": (lambda nn: nn.GroupNorm(2, 4), (2, 4, 5)),
    "batch norm": (lambda nn: nn.BatchNorm2d(3), (2, 3, 5, 5)),
    "network": (
        lambda nn: nn.Sequential(
            nn.Conv2d(1, 4, 3), nn.ReLU(), nn.MaxPool2d(2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 2)
        ),
        (3, 1, 8, 8),
    ),
    "recurrent": (lambda nn: nn.LSTM(3, 4, num_layers=2, batch_first=True, bidirectional=True), (2, 5, 3)),
    "cell": (lambda nn: nn.GRUCell(3, 4), (2, 3)),
    "cell with memory": (lambda nn: nn.LSTMCell(3, 4, bias=False), (2, 3)),
    "upsample": (lambda nn: nn.Upsample(scale_factor=2, mode="bilinear", align_corners=True), (2, 3, 4, 5)),
    "pixel shuffle": (lambda nn: nn.PixelShuffle(upscale_factor=2), (2, 4, 3, 5)),
    "encoder layer": (lambda nn: nn.TransformerEncoderLayer(8, nhead=2, dim_feedforward=16, dropout=0.0), (5, 3, 8)),
    "encoder": (
        lambda nn: nn.TransformerEncoder(
            nn.TransformerEncoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True), 2, nn.LayerNorm(8),
            enable_nested_tensor=False,
        ),
        (3, 5, 8),
    ),
    "plain recurrent": (lambda nn: nn.RNN(3, 4), (2, 5, 3)),
}


def weights_of(module):
    return {k: v.detach().numpy() for k, v in module.state_dict().items()}


@pytest.mark.parametrize("name", MODULES)
def test_each_module_with_torchs_own_settings_agrees_with_torch(name):
    make, shape = MODULES[name]
    mine, theirs = make(fad.eager.nn), make(torch.nn)
    mine.load_state_dict({k: fad.eager.tensor(v) for k, v in weights_of(theirs).items()})
    x = real(*shape).astype("float32")
    found = []
    for api, module in ((fad.eager, mine), (torch, theirs)):
        tx = api.tensor(x, requires_grad=True)
        y = module(tx)
        y = y[0] if isinstance(y, tuple) else y
        (y * y).sum().backward()
        found.append([y.detach().numpy(), tx.grad.numpy(), *(p.grad.numpy() for p in module.parameters())])
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.parametrize("masked", [False, True])
def test_attention_has_torchs_layout_result_and_mask(batch_first, masked):
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=batch_first)
    mine = fad.eager.nn.MultiheadAttention(8, 2, batch_first=batch_first)
    mine.load_state_dict({k: fad.eager.tensor(v) for k, v in weights_of(theirs).items()})
    q, k = real(3, 5, 8).astype("float32"), real(*((3, 6, 8) if batch_first else (6, 5, 8))).astype("float32")
    mask = np.triu(np.ones((q.shape[batch_first], k.shape[batch_first]), bool), 3) if masked else None
    y, weights = theirs(*map(torch.from_numpy, (q, k, k)), attn_mask=None if mask is None else torch.from_numpy(mask))
    z, mine_too = mine(*map(fad.eager.tensor, (q, k, k)), attn_mask=None if mask is None else fad.eager.tensor(mask))
    np.testing.assert_allclose(z.detach().numpy(), y.detach().numpy(), rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(mine_too.detach().numpy(), weights.detach().numpy(), rtol=1e-4, atol=1e-6)
    assert mine(*map(fad.eager.tensor, (q, k, k)), need_weights=False)[1] is None


def test_an_encoder_of_torchs_dropout_draws_again_in_each_call_and_not_when_evaluated():
    nn = fad.eager.nn
    encoder = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, 0.5), 2)
    x = fad.eager.randn(5, 3, 8)
    assert not fad.eager.equal(encoder(x), encoder(x))
    encoder.eval()
    assert fad.eager.equal(encoder(x), encoder(x))


LATER = np.triu(np.ones((6, 6), bool), 1)
PADDING = np.arange(6) >= np.array([6, 4, 3])[:, None]
MASKS = {
    "padding": {"key_padding_mask": PADDING},
    "padding, and later ones": {"key_padding_mask": PADDING, "attn_mask": LATER},
    "numbers for each head": {"attn_mask": real(6, 6, 6).astype("float32")},
    "numbers, and padding": {"attn_mask": real(6, 6).astype("float32"), "key_padding_mask": PADDING},
}


@pytest.mark.filterwarnings("ignore:Support for mismatched")  # of PyTorch's
@pytest.mark.parametrize("average", [True, False])
@pytest.mark.parametrize("name", MASKS)
def test_attention_takes_torchs_masks(name, average):
    theirs = torch.nn.MultiheadAttention(8, 2, batch_first=True)
    mine = fad.eager.nn.MultiheadAttention(8, 2, batch_first=True)
    mine.load_state_dict({k: fad.eager.tensor(v) for k, v in weights_of(theirs).items()})
    x = real(3, 6, 8).astype("float32")
    found = []
    for api, layer in ((fad.eager, mine), (torch, theirs)):
        tx = api.tensor(x, requires_grad=True)
        masks = {k: api.tensor(v) for k, v in MASKS[name].items()}
        y, weights = layer(tx, tx, tx, average_attn_weights=average, **masks)
        (y * y).sum().backward()
        found.append([y.detach().numpy(), weights.detach().numpy(), tx.grad.numpy()])
    for a, b in zip(*found, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=2e-6)


@pytest.mark.parametrize("name", ["sin", "exp", "sqrt", "relu", "tanh", "neg", "abs", "clamp"])
def test_functions_that_change_in_place_agree_with_torch(name):
    options = {"min": 0.2, "max": 0.7} if name == "clamp" else {}

    def program(api, x):
        y = x * 2.0
        assert getattr(api, f"{name}_")(y, **options) is y
        return y

    x = rng.uniform(0.1, 1, 5)
    for mine, theirs in zip(run(fad.eager, program, [x]), run(torch, program, [x]), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-12)


SORTED = np.array([[3.0, 1.0, 2.0, 5.0], [0.5, 4.0, -1.0, 2.5]])
INDEX = np.array([[2, 0, 1], [1, 3, 0]])
A = np.eye(3) * 3 + real(3, 3) * 0.3
FURTHER = {
    "sort": (lambda t, x: t.sort(x, dim=0, descending=True).values, SORTED),
    "max of ties": (lambda t, x: t.max(x, 1).values * x.min(dim=0, keepdim=True)[0][0, 1], np.ones((2, 3))),
    "max of all": (lambda t, x: t.max(x) * x.min(), SORTED),
    "amax of ties": (lambda t, x: t.amax(x, 1), np.ones((2, 3))),
    "argsort": (lambda t, x: x * t.argsort(x, descending=True), SORTED),
    "topk": (lambda t, x: t.topk(x, 2)[0], SORTED),
    "smallest": (lambda t, x: x.topk(2, dim=1, largest=False).values, SORTED),
    "masked_select": (lambda t, x: t.masked_select(x, x > 1), SORTED),
    "take": (lambda t, x, i: t.take(x, i), SORTED, np.array([7, 0, 0])),
    "scatter": (lambda t, x, i, v: x.scatter(1, i, v), SORTED, INDEX, real(2, 3)),
    "scatter a number": (lambda t, x, i: x.scatter(1, i, 7.0), SORTED, INDEX),
    "scatter_add": (lambda t, x, i, v: t.scatter_add(x, 1, i, v), SORTED, INDEX, real(2, 3)),
    "lerp": (lambda t, x, y: t.lerp(x, y, 0.3), real(4), real(4)),
    "addcmul": (lambda t, x, y, z: t.addcmul(x, y, z, value=0.5), real(4), real(4), real(4)),
    "addcdiv": (lambda t, x, y, z: t.addcdiv(x, y, z, value=0.5), real(4), real(4), 2 + rng.random(4)),
    "baddbmm": (lambda t, x, y, z: t.baddbmm(x, y, z), real(2, 3, 3), real(2, 3, 4), real(2, 4, 3)),
    "kron": (lambda t, x, y: t.kron(x, y), real(2, 2), real(3, 2)),
    "cross": (lambda t, x, y: t.cross(x, y, dim=-1), real(4, 3), real(4, 3)),
    "trace": (lambda t, x: t.trace(x), A),
    "diagonal": (lambda t, x: t.diagonal(x, 1), A),
    "cumprod": (lambda t, x: t.cumprod(x, 1), SORTED),
    "diff": (lambda t, x: t.diff(x, dim=0), SORTED),
    "quantile": (lambda t, x: t.quantile(x, 0.3, dim=1), SORTED),
    "cdist": (lambda t, x, y: t.cdist(x, y), real(3, 2), real(4, 2)),
    "erf": (lambda t, x: t.erf(x) + t.erfc(x), real(4)),
    "lgamma": (lambda t, x: t.lgamma(x) + t.digamma(x), 1 + rng.random(4)),
    "sinc": (lambda t, x: t.sinc(x), real(4)),
    "hypot": (lambda t, x, y: t.hypot(x, y) + t.logaddexp(x, y), real(4), real(4)),
    "roll": (lambda t, x: t.roll(x, 1, 0), SORTED),
    "tile": (lambda t, x: t.tile(x, (2, 1)), SORTED),
    "movedim": (lambda t, x: t.movedim(x, 0, 1), SORTED),
    "repeat_interleave": (lambda t, x: t.repeat_interleave(x, 2, dim=0), SORTED),
    "narrow": (lambda t, x: t.narrow(x, 1, 1, 2), SORTED),
    "vstack": (lambda t, x, y: t.vstack([x, y]) + t.hstack([x, y]).reshape(4, 4), SORTED, real(2, 4)),
    "meshgrid": (lambda t, x, y: t.mul(*t.meshgrid(x, y, indexing="ij")), real(3), real(2)),
    "broadcast": (lambda t, x, y: t.mul(*t.broadcast_tensors(x, y)), real(3, 1), real(2)),
    "det": (lambda t, x: t.det(x) * t.inverse(x), A),
    "solve": (lambda t, a, b: t.linalg.solve(a, b), A, real(3)),
    "cholesky": (lambda t, a: t.linalg.cholesky(a @ a.T + t.eye(3).double()), A),
    "singular values": (lambda t, a: t.linalg.svdvals(a), A),
    "eigenvalues": (lambda t, a: t.linalg.eigh(a @ a.T)[0], A),
    "slogdet": (lambda t, a: t.linalg.slogdet(a)[1], A),
    "norms": (lambda t, a: t.linalg.norm(a), A),
    "fft": (lambda t, x: t.fft.fft(x).real + t.fft.rfft(x).imag.sum(), real(5)),
    "clip": (lambda t, x: t.clip(x, 0.0, 2.0), SORTED),
}  # fmt: skip


@pytest.mark.parametrize("name", FURTHER)
def test_further_functions_agree_with_torch(name):
    program, *arrays = FURTHER[name]
    for mine, theirs in zip(run(fad.eager, program, arrays), run(torch, program, arrays), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-9, atol=1e-11)


def test_what_has_no_derivative_agrees_with_torch():
    for name, args in {
        "bincount": (np.array([1, 0, 1, 3]),), "isin": (INDEX, np.array([0, 3])), "nonzero": (INDEX,),
        "unique": (INDEX,), "count_nonzero": (INDEX,), "searchsorted": (np.arange(5), np.array([2, 7])),
    }.items():  # fmt: skip
        mine = getattr(fad.eager, name)(*map(fad.eager.tensor, args))
        np.testing.assert_array_equal(mine.numpy(), getattr(torch, name)(*map(torch.from_numpy, args)).numpy(), name)


@pytest.mark.parametrize("name", ["kaiming_normal_", "kaiming_uniform_"])
@pytest.mark.parametrize("options", [
    {}, {"nonlinearity": "relu"}, {"a": 5**0.5}, {"mode": "fan_out", "nonlinearity": "tanh"},
])  # fmt: skip
def test_kaimings_initialisers_take_torchs_settings(name, options):
    fad.eager.manual_seed(0)
    spread = [getattr(api.nn.init, name)(api.zeros(300, 200), **options).numpy().std() for api in (fad.eager, torch)]
    assert spread[0] == pytest.approx(spread[1], rel=0.02)


def test_identities_are_written_as_torch_writes_them():
    for name, shape, options in [("eye_", (3, 4), {}), ("dirac_", (6, 2, 3, 3), {"groups": 2})]:
        mine, theirs = (getattr(api.nn.init, name)(api.zeros(*shape), **options) for api in (fad.eager, torch))
        np.testing.assert_array_equal(mine.numpy(), theirs.numpy())


# --- complex numbers ------------------------------------------------------------------------------------------------

Z = real(3) + 1j * real(3)
COMPLEX = {
    "squared size": lambda t, z: (z * z.conj()).real.sum(),
    "real part": lambda t, z: (z**3).real.sum() + z.imag.sum(),
    "size": lambda t, z: z.abs().sum() + t.exp(z).abs().prod(),
    "spectrum": lambda t, z: (t.fft.fft(z).abs() ** 2).sum(),
    "product": lambda t, z: (t.outer(z, z.conj()) @ z).abs().sum(),
}


@pytest.mark.parametrize("name", COMPLEX)
def test_gradients_of_complex_tensors_are_conjugated_as_torchs_are(name):
    found = []
    for api in (fad.eager, torch):
        z = api.tensor(Z, requires_grad=True)
        COMPLEX[name](api, z).backward()
        found.append(z.grad.numpy())
    np.testing.assert_allclose(*found, rtol=1e-10)


def complex_entry_points(api):
    """Everything through which a complex gradient enters or leaves the API."""
    z = api.tensor(Z, requires_grad=True)
    v = api.tensor(np.conj(Z) + 1.0)
    seen = []
    y = z * z
    y.register_hook(lambda g: seen.append(g.detach().numpy()))
    y.register_hook(lambda g: g * (1 + 2j))
    y.retain_grad()
    y.backward(v, retain_graph=True)
    (g,) = api.autograd.grad(z**3, z, v, create_graph=True)
    (gg,) = api.autograd.grad(g.abs().sum(), z)
    product = api.autograd.functional.vjp(lambda z: z * z.sum(), api.tensor(Z), v)[1]

    class Twisted(api.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * (2 + 1j)

        @staticmethod
        def backward(ctx, g):
            return g * (2 - 1j)

    w = api.tensor(Z, requires_grad=True)
    Twisted.apply(w).abs().sum().backward()
    opt = api.optim.SGD([w], lr=0.1, momentum=0.9)
    opt.step()
    return [*seen, y.grad.numpy(), z.grad.numpy(), *(x.detach().numpy() for x in (g, gg, product, w.grad, w))]


def test_complex_gradients_agree_with_torch_at_every_entry_point():
    for mine, theirs in zip(complex_entry_points(fad.eager), complex_entry_points(torch), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-10)


def test_gradcheck_takes_functions_of_complex_numbers_that_are_not_holomorphic():
    z = fad.eager.tensor(Z, requires_grad=True)
    x = fad.eager.tensor(real(3), requires_grad=True)
    assert fad.eager.autograd.gradcheck(lambda z: (z * z.conj()).real + z.abs(), z)
    assert fad.eager.autograd.gradcheck(lambda z, x: z * x + z.conj(), (z, x))
    with pytest.raises(RuntimeError, match="complex number has no gradient"):
        (z * z).sum().backward()


@pytest.mark.parametrize("loss", ["cross_entropy", "nll_loss"])
def test_labels_of_minus_one_hundred_are_left_out_as_in_torch(loss):
    x, labels = real(4, 3), np.array([0, -100, 2, -100])
    for options in ({}, {"reduction": "sum"}, {"ignore_index": 2}):
        y = np.where(labels < 0, 1, labels) if options.get("ignore_index") == 2 else labels
        program = lambda api, x, y, options=options: getattr(api.nn.functional, loss)(x, y, **options)
        for mine, theirs in zip(run(fad.eager, program, [x, y]), run(torch, program, [x, y]), strict=True):
            np.testing.assert_allclose(mine, theirs, rtol=1e-10)


# --- states -----------------------------------------------------------------------------------------------------------


def nested(nn):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.BatchNorm1d(3)
            self.parts = nn.ModuleDict({"a": nn.Linear(3, 3), "b": nn.Dropout(0.5)})
            self.more = nn.ModuleList([nn.BatchNorm1d(3, affine=False)])
            self.nothing = None

        def forward(self, x):
            return self.more[0](self.parts["a"](self.norm(x)))

    return nn.Sequential(nn.Linear(2, 3), Block())


def test_a_state_dict_has_torchs_names_and_order_with_the_statistics_of_every_layer_inside():
    mine, theirs = nested(fad.eager.nn), nested(torch.nn)
    assert list(mine.state_dict()) == list(theirs.state_dict())
    assert [n for n, _ in mine.named_buffers()] == [n for n, _ in theirs.named_buffers()]
    mine.load_state_dict({k: v.numpy() for k, v in theirs.state_dict().items()})
    x = real(6, 2).astype("float32")
    for _ in range(3):
        mine(fad.eager.tensor(x)), theirs(torch.from_numpy(x))
    for (name, a), b in zip(mine.state_dict().items(), theirs.state_dict().values(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.detach().numpy(), rtol=1e-5, atol=1e-6, err_msg=name)


def test_statistics_survive_being_saved_and_loaded():
    model, other = nested(fad.eager.nn), nested(fad.eager.nn)
    for _ in range(2):
        model(fad.eager.tensor(real(6, 2), dtype=fad.eager.float32))
    other.load_state_dict(model.state_dict())
    x = fad.eager.tensor(real(4, 2), dtype=fad.eager.float32)
    np.testing.assert_array_equal(model.eval()(x).detach().numpy(), other.eval()(x).detach().numpy())
    for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        np.testing.assert_array_equal(a.numpy(), b.numpy())


def test_a_state_of_another_kind_of_number_is_refused_and_changes_nothing():
    model = nested(fad.eager.nn)
    before = {k: v.numpy().copy() for k, v in model.state_dict().items()}
    state = {k: v + 1 for k, v in before.items()}
    state["1.parts.a.weight"] = state["1.parts.a.weight"] + 1j
    with pytest.raises(fad.nn.StateDictError, match="weight has dtype complex"):
        model.load_state_dict(state)
    assert all(np.array_equal(before[k], v.numpy()) for k, v in model.state_dict().items())


def test_statistics_follow_the_model_to_another_dtype():
    model = nested(fad.eager.nn).double()
    assert {str(b.dtype) for b in model.buffers()} == {"float64", "int64"}
    assert model.eval()(fad.eager.tensor(real(4, 2))).dtype == fad.eager.float64


# --- optimisers -------------------------------------------------------------------------------------------------------

RULES = [("SGD", {"momentum": 0.9}), ("Adam", {"amsgrad": True}), ("AdamW", {}), ("RMSprop", {"centered": True}),
         ("Adagrad", {})]  # fmt: skip


def alternating(api, rule, options, resume=None):
    """Train three tensors of which only some have a gradient in each step; return all values on the way."""
    shapes = [(2,), (2, 2), (3,)]
    xs = [api.tensor(np.linspace(0.5, 1.5, int(np.prod(s))).reshape(s), requires_grad=True) for s in shapes]
    zs = api.tensor(np.array([1 + 2j, 0.5 - 1j]), requires_grad=True)
    xs.append(zs)
    opt = getattr(api.optim, rule)(xs, lr=0.05, **options)
    path = []
    for step, used in enumerate([(0, 1, 3), (0, 1, 3), (0,), (0, 1, 2), (2, 3), (0, 1, 2, 3), (1,), (0, 1, 2, 3)]):
        opt.zero_grad(set_to_none=True)
        sum((xs[k].abs() ** 4).sum() for k in used).backward()
        opt.step()
        path += [x.detach().numpy().copy() for x in xs]
        if resume == step:
            state = opt.state_dict()
            opt = getattr(api.optim, rule)(xs, lr=0.05, **options)
            opt.load_state_dict(state)
    return path


@pytest.mark.parametrize(("rule", "options"), RULES)
def test_parameters_without_a_gradient_wait_and_count_their_own_steps(rule, options):
    for mine, theirs in zip(alternating(fad.eager, rule, options), alternating(torch, rule, options), strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=1e-7)


@pytest.mark.parametrize(("rule", "options"), RULES)
def test_an_optimiser_whose_parameters_went_apart_resumes(rule, options):
    for mine, again in zip(
        alternating(fad.eager, rule, options), alternating(fad.eager, rule, options, resume=4), strict=True
    ):
        np.testing.assert_array_equal(mine, again)


@pytest.mark.parametrize("options", [{}, {"lr": 0.5, "max_iter": 3, "history_size": 2}, {"tolerance_change": 0.05}])
def test_lbfgs_with_a_closure_follows_torch(options):
    paths = []
    for api in (fad.eager, torch):
        xs = [api.tensor(np.linspace(-1, 1, 4), requires_grad=True), api.tensor(np.ones((2, 2)), requires_grad=True)]
        opt = api.optim.LBFGS(xs, **options)
        path = []

        def closure(xs=xs, opt=opt, path=path):
            opt.zero_grad()
            loss = ((xs[0] - 0.5) ** 4).sum() + (xs[0].reshape(2, 2) @ xs[1] - 1).abs().pow(2).sum()
            loss.backward()
            path.append(loss.item())
            return loss

        for _ in range(4):
            opt.step(closure)
            path += [v for x in xs for v in x.detach().numpy().ravel().tolist()]
        paths.append(path)
    np.testing.assert_allclose(*paths, rtol=1e-6, atol=1e-9)
    with pytest.raises(ValueError, match="strong_wolfe"):
        fad.eager.optim.LBFGS([fad.eager.ones(2, requires_grad=True)], line_search_fn="backtracking")


def rosenbrock(api, x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


def logistic(api, w):
    rng = np.random.default_rng(3)
    x, y = api.tensor(rng.normal(size=(30, 4))), api.tensor(rng.integers(0, 2, 30).astype(float))
    return api.nn.functional.binary_cross_entropy_with_logits(x @ w, y) + 0.01 * (w * w).sum()


def network(api, w):
    x = api.tensor(np.linspace(-2, 2, 12).reshape(12, 1))
    return ((api.tanh(x * w[:3] + w[3:6]) @ w[6:9] - api.sin(x[:, 0])) ** 2).mean()


def steep(api, w):
    return api.exp(3.0 * w).sum() + (w**4).sum() - 20.0 * w.sum()


# One step on this function, of 25 evaluations: in further ones torch's own path, begun one rounding away, is further
# away from torch's than 1e-12.
VALLEY = [-1.2, 1.0, -1.2, 1.0]
PROBLEMS = {
    "rosenbrock": (rosenbrock, VALLEY, {}),
    "rosenbrock, few steps": (rosenbrock, [-1.2, 1.0], {"max_iter": 4, "history_size": 2}),
    "rosenbrock, few evaluations": (rosenbrock, [-1.2, 1.0], {"max_iter": 10, "max_eval": 7, "lr": 0.1}),
    "rosenbrock, one evaluation": (rosenbrock, [-1.2, 1.0], {"max_iter": 1}),
    "logistic": (logistic, [0.5, -1.0, 2.0, 0.0], {}),
    "logistic, long first step": (logistic, [0.5, -1.0, 2.0, 0.0], {"lr": 30.0}),
    "network": (network, np.random.default_rng(7).normal(size=9), {"max_iter": 8}),
    "steep": (steep, [2.0, -3.0, 0.1], {"lr": 10.0}),
}  # fmt: skip


@pytest.mark.parametrize("name", PROBLEMS)
def test_lbfgs_with_the_strong_wolfe_search_takes_torchs_steps(name):
    problem, start, options = PROBLEMS[name]
    paths = []
    for api in (fad.eager, torch):
        w = api.tensor(np.array(start, float), requires_grad=True)
        opt = api.optim.LBFGS([w], line_search_fn="strong_wolfe", **options)
        path = []

        def closure(w=w, opt=opt, path=path, api=api):
            opt.zero_grad()
            loss = problem(api, w)
            loss.backward()
            path.append([loss.item(), *w.detach().tolist()])  # every point that the search tries
            return loss

        for _ in range(1 if start is VALLEY else 4):
            opt.step(closure)
            path.append([0.0, *w.detach().tolist()])
        paths.append(path)
    np.testing.assert_allclose(*paths, rtol=1e-12, atol=1e-12)


ENCODER_MASKS = {
    "later ones": {"mask": LATER},
    "later ones, said so": {"mask": LATER, "is_causal": True},
    "padding": {"src_key_padding_mask": PADDING},
    "padding, and later ones": {"mask": LATER, "src_key_padding_mask": PADDING},
    "numbers": {"mask": real(6, 6).astype("float32")},
}


@pytest.mark.parametrize("masks", ENCODER_MASKS.values(), ids=ENCODER_MASKS)
@pytest.mark.parametrize("activation", ["relu", "function"])
def test_an_encoder_takes_torchs_masks(masks, activation):
    x = real(3, 6, 8).astype("float32")

    def run(api, weights=None):
        act = api.tanh if activation == "function" else activation
        layer = api.nn.TransformerEncoderLayer(8, 2, 16, 0.0, act, batch_first=True)
        encoder = api.nn.TransformerEncoder(layer, 2, enable_nested_tensor=False)
        if weights is not None:
            encoder.load_state_dict({k: api.tensor(v) for k, v in weights.items()})
        given = {k: v if type(v) is bool else api.tensor(v) for k, v in masks.items()}
        return encoder, encoder(api.tensor(x), **given).detach().numpy()

    theirs, expected = run(torch)
    mine, found = run(fad.eager, weights_of(theirs))
    np.testing.assert_allclose(found, expected, rtol=2e-4, atol=2e-5)
    assert list(mine.state_dict()) == list(theirs.state_dict())
