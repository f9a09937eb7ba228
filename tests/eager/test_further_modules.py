"""Modules beyond the first: what they compute beside PyTorch, and facts about each that need no PyTorch."""

import copy

import numpy as np
import pytest

import fad.eager

api = fad.eager
rng = np.random.default_rng(0)


def real(*shape):
    return rng.standard_normal(shape).astype("float32")


def oracle():
    return pytest.importorskip("torch", reason="PyTorch, the oracle of this test, is not installed")


def run(torch, module, arrays, options=None):
    """Return the output, and the gradients of inputs and parameters."""
    xs = [torch.tensor(x, requires_grad=x.dtype.kind == "f") for x in arrays]
    y = module(*xs, **{k: torch.tensor(v) for k, v in (options or {}).items()})
    y = y[0] if isinstance(y, tuple) else y
    (y * torch.sin(y)).sum().backward()
    xs = [x for x in xs if x.requires_grad]
    return [y.detach().numpy(), *(x.grad.numpy() for x in xs), *(p.grad.numpy() for p in module.parameters())]


def agree(make, arrays, options=None, rtol=2e-4, train=True):
    torch = oracle()
    mine, theirs = make(api.nn).train(train), make(torch.nn).train(train)
    mine.load_state_dict({k: api.tensor(v.detach().numpy()) for k, v in theirs.state_dict().items()})
    for a, b in zip(run(api, mine, arrays, options), run(torch, theirs, arrays, options), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=2e-5)
    for (name, a), (other, b) in zip(mine.named_buffers(), theirs.named_buffers(), strict=True):
        assert name == other
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6)


X, IMAGE, VOLUME = real(2, 3, 5), real(2, 4, 6, 5), real(1, 2, 3, 4, 3)
MODULES = {
    "reflection 1d": (lambda nn: nn.ReflectionPad1d((1, 3)), X),
    "reflection 2d": (lambda nn: nn.ReflectionPad2d((1, 0, 2, 1)), IMAGE),
    "reflection 3d": (lambda nn: nn.ReflectionPad3d(1), VOLUME),
    "replication 1d": (lambda nn: nn.ReplicationPad1d(2), X),
    "replication 2d": (lambda nn: nn.ReplicationPad2d((1, 0, 2, 1)), IMAGE),
    "replication 3d": (lambda nn: nn.ReplicationPad3d(1), VOLUME),
    "zeros 2d": (lambda nn: nn.ZeroPad2d((1, -1, 2, 1)), IMAGE),
    "constant 1d": (lambda nn: nn.ConstantPad1d(1, 0.5), X),
    "constant 3d": (lambda nn: nn.ConstantPad3d((0, 1, 2, 0, 1, 1), 0.5), VOLUME),
    "circular 2d": (lambda nn: nn.CircularPad2d((1, 2, 0, 1)), IMAGE),
    "instance norm 1d": (lambda nn: nn.InstanceNorm1d(3), X),
    "instance norm 2d": (lambda nn: nn.InstanceNorm2d(4, affine=True), IMAGE),
    "instance norm 3d": (lambda nn: nn.InstanceNorm3d(2, track_running_stats=True), VOLUME),
    "batch norm, a plain average": (lambda nn: nn.BatchNorm2d(4, momentum=None), IMAGE),
    "response norm": (lambda nn: nn.LocalResponseNorm(3, alpha=0.5, k=2.0), IMAGE),
    "bilinear": (lambda nn: nn.Bilinear(5, 4, 3), real(2, 3, 5), real(2, 3, 4)),
    "bag": (lambda nn: nn.EmbeddingBag(6, 3), np.array([[1, 2, 2], [0, 5, 1]])),
    "bags": (lambda nn: nn.EmbeddingBag(6, 3, mode="sum"), np.array([1, 2, 2, 0]), np.array([0, 1, 1])),
    "greatest of bags": (lambda nn: nn.EmbeddingBag(6, 3, mode="max"), np.array([1, 2, 0]), np.array([0, 2])),
    "unflatten": (lambda nn: nn.Unflatten(1, (2, 2)), IMAGE),
    "unflatten by name": (lambda nn: nn.Unflatten(dim=-1, unflattened_size=(5, -1)), IMAGE),
    "flatten inside": (lambda nn: nn.Flatten(start_dim=1, end_dim=2), IMAGE),
    "unfold": (lambda nn: nn.Unfold((2, 3), padding=1, stride=2), IMAGE),
    "fold": (lambda nn: nn.Fold((3, 4), (2, 2)), real(2, 8, 6)),
    "shuffles": (lambda nn: nn.Sequential(nn.ChannelShuffle(2), nn.PixelUnshuffle(1)), IMAGE),
    "softmin": (lambda nn: nn.Softmin(dim=1), X),
    "softmax of images": (lambda nn: nn.Softmax2d(), IMAGE),
    "shrinks": (lambda nn: nn.Sequential(nn.Hardshrink(0.2), nn.Softshrink(0.1), nn.Tanhshrink()), X),
    "threshold": (lambda nn: nn.Threshold(0.1, 2.0), X),
    "softplus": (lambda nn: nn.Softplus(beta=2.0), X),
    "adaptive average 3d": (lambda nn: nn.AdaptiveAvgPool3d((2, None, 1)), VOLUME),
    "adaptive maximum 3d": (lambda nn: nn.AdaptiveMaxPool3d(2), VOLUME),
    "upsampling": (lambda nn: nn.UpsamplingBilinear2d(scale_factor=2), IMAGE),
    "nearest": (lambda nn: nn.UpsamplingNearest2d(size=(9, 10)), IMAGE),
    "cosine": (lambda nn: nn.CosineSimilarity(dim=-1), X, real(2, 3, 5)),
    "distance": (lambda nn: nn.PairwiseDistance(p=1.0, keepdim=True), X, real(2, 3, 5)),
    "rectified recurrence": (lambda nn: nn.RNN(5, 4, nonlinearity="relu", batch_first=True), X),
    "rectified cell": (lambda nn: nn.RNNCell(5, 4, nonlinearity="relu"), X[0]),
    "decoder layer": (lambda nn: nn.TransformerDecoderLayer(8, 2, 16, 0.0), real(5, 3, 8), real(4, 3, 8)),
    "decoder": (
        lambda nn: nn.TransformerDecoder(
            nn.TransformerDecoderLayer(8, 2, 16, 0.0, "gelu", batch_first=True, norm_first=True), 2, nn.LayerNorm(8)
        ),
        real(3, 5, 8), real(3, 4, 8),
    ),
    "transformer": (lambda nn: nn.Transformer(8, 2, 2, 1, 16, 0.0), real(5, 3, 8), real(4, 3, 8)),
    "weight norm": (lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(5, 4)), X),
    "weight norm of all": (lambda nn: nn.utils.parametrizations.weight_norm(nn.Linear(5, 4), dim=None), X),
    "weight norm of a convolution": (
        lambda nn: nn.utils.parametrizations.weight_norm(nn.Conv2d(4, 3, 2), dim=1), IMAGE
    ),
    "spectral norm": (lambda nn: nn.utils.parametrizations.spectral_norm(nn.Linear(5, 4)), X),
    "spectral norm of a convolution": (lambda nn: nn.utils.parametrizations.spectral_norm(nn.Conv2d(4, 3, 2)), IMAGE),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:enable_nested_tensor")  # of PyTorch's
@pytest.mark.parametrize("name", MODULES)
def test_a_module_gives_torchs_numbers_and_gradients(name):
    make, *arrays = MODULES[name]
    agree(make, arrays)


@pytest.mark.oracle
@pytest.mark.parametrize("name", ["instance norm 3d", "spectral norm", "batch norm, a plain average"])
def test_an_evaluated_module_gives_torchs_numbers(name):
    make, *arrays = MODULES[name]
    agree(make, arrays, train=False)


LATER, PADDING = np.triu(np.ones((4, 4), bool), 1), np.arange(4) >= np.array([4, 3, 2])[:, None]
SOURCE = np.arange(5) >= np.array([5, 2, 4])[:, None]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore")  # of PyTorch's: of masks of several kinds, and of what it does not do then
def test_a_transformer_takes_torchs_masks():
    masks = {
        "tgt_mask": np.where(LATER, -np.inf, 0).astype("float32"), "tgt_key_padding_mask": PADDING,
        "src_key_padding_mask": SOURCE, "memory_key_padding_mask": SOURCE,
    }  # fmt: skip
    make = lambda nn: nn.Transformer(8, 2, 1, 2, 16, 0.0, batch_first=True)
    agree(make, [real(3, 5, 8), real(3, 4, 8)], masks)


def test_the_mask_of_what_comes_later_keeps_a_transformer_from_looking_ahead():
    nn = api.nn
    model = nn.Transformer(8, 2, 1, 1, 16, 0.0, batch_first=True).double()
    mask = nn.Transformer.generate_square_subsequent_mask(4)
    assert mask.tolist()[1] == [0.0, 0.0, -np.inf, -np.inf]
    x = api.randn(1, 4, 8, dtype=api.float64, requires_grad=True)
    source = api.randn(1, 5, 8, dtype=api.float64)
    model(source, x, tgt_mask=mask.double())[0, 1].exp().sum().backward()
    moved = x.grad.abs().sum(-1)[0] > 0
    assert moved.tolist() == [True, True, False, False]


# --- losses and functions ---------------------------------------------------------------------------------------------

FUNCTIONS = {
    "ctc": lambda t, x: t.nn.CTCLoss(blank=1, zero_infinity=True)(
        t.nn.functional.log_softmax(x.transpose(0, 1), 2), t.tensor([[0, 2], [4, 4]]), t.tensor([3, 3]),
        t.tensor([2, 1]),
    ),
    "multi margin": lambda t, x: t.nn.MultiMarginLoss(p=2, margin=0.5)(x[0], t.tensor([1, 4, 0])),
    "triplets": lambda t, x: t.nn.TripletMarginWithDistanceLoss(
        distance_function=lambda a, b: (a - b).abs().sum(-1), swap=True
    )(x[0], x[1], x[1].flip(0)),
    "normalised": lambda t, x: t.nn.functional.normalize(x) + t.nn.functional.normalize(x, p=1, dim=2),
    "softmax without an axis": lambda t, x: t.nn.functional.softmax(x) + t.nn.Softmax()(x),
    "distances": lambda t, x: t.nn.functional.pairwise_distance(x, x.flip(0), keepdim=True),
    "softplus": lambda t, x: t.nn.functional.softplus(x, 3.0),
    "transposed with groups": lambda t, x: t.nn.functional.conv_transpose1d(
        t.cat([x, x], 1), x.new_ones(6, 1, 2) * x.mean(), None, 2, 1, 1, 2, 2
    ),
    "batch norm": lambda t, x: t.nn.functional.batch_norm(x, None, None, training=True),
    "batch norm, evaluated": lambda t, x: t.nn.functional.batch_norm(x, t.ones(3), 2 * t.ones(3), weight=t.ones(3)),
    "instance norm": lambda t, x: t.nn.functional.instance_norm(x, weight=2 * t.ones(3)),
    "places of maxima": lambda t, x: t.nn.MaxUnpool2d(2)(
        *t.nn.MaxPool2d(2, return_indices=True)(x[:, None]), output_size=(2, 1, 3, 5)
    ),
    "places in padding": lambda t, x: t.nn.functional.max_pool2d(x, 3, 2, 1, return_indices=True)[1] * x.mean(),
    "grid": lambda t, x: t.nn.functional.grid_sample(
        x[None], t.nn.functional.affine_grid(0.4 + 0.1 * x[:1, :2, :3], (1, 2, 4, 4), align_corners=False),
        align_corners=False,
    ),
}  # fmt: skip


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Implicit dimension")  # of PyTorch's
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_function_gives_torchs_numbers_and_gradients(name):
    torch, found = oracle(), []
    for t in (api, torch):
        x = t.tensor(X, requires_grad=True)
        y = FUNCTIONS[name](t, x)
        (y * t.sin(y)).sum().backward()
        found.append((y.detach().numpy(), x.grad.numpy()))
    for a, b in zip(*found, strict=True):
        np.testing.assert_allclose(a, b, rtol=2e-4, atol=2e-5)


def test_statistics_that_a_program_keeps_are_averaged():
    mean, var = api.zeros(3), api.ones(3)
    x = api.tensor(X)
    api.nn.functional.batch_norm(x, mean, var, training=True, momentum=0.5)
    np.testing.assert_allclose(mean.numpy(), 0.5 * X.mean((0, 2)), rtol=1e-5)
    np.testing.assert_allclose(var.numpy(), 0.5 + 0.5 * X.var((0, 2), ddof=1), rtol=1e-5)


def test_a_draw_of_a_class_repeats_by_its_seed_and_has_a_derivative():
    x = api.zeros(50, 3, requires_grad=True)
    api.manual_seed(1)
    y = api.nn.functional.gumbel_softmax(x, tau=0.5, hard=True)
    api.manual_seed(1)
    assert api.equal(y, api.nn.functional.gumbel_softmax(x, tau=0.5, hard=True))
    np.testing.assert_allclose(y.detach().sum(-1).numpy(), 1.0, rtol=1e-6)
    (y[:, 0]).sum().backward()
    assert x.grad.abs().sum().item() > 0.1


@pytest.mark.parametrize("kind", ["Dropout1d", "Dropout2d", "Dropout3d", "AlphaDropout"])
def test_dropout_of_channels_draws_again_and_leaves_evaluation_alone(kind):
    layer = getattr(api.nn, kind)(0.5)
    x = api.ones(4, 6, *[3] * (int(kind[7]) if kind[7:8].isdigit() else 1))
    assert not api.equal(layer(x), layer(x))
    if kind != "AlphaDropout":
        channels = layer(x).reshape(24, -1)
        assert api.equal(channels.min(1).values, channels.max(1).values)
    assert api.equal(layer.eval()(x), x)


# --- layers: settings, parameters, states -------------------------------------------------------------------------


def test_settings_of_a_layer_are_read_and_set_on_it():
    nn = api.nn
    layer, drop = nn.Linear(3, 2, bias=False), nn.Dropout(0.5)
    assert (layer.in_features, layer.out_features, layer.bias, nn.Conv2d(1, 2, 3).kernel_size) == (3, 2, None, (3, 3))
    assert nn.Flatten(start_dim=2).start_dim == 2
    drop.p = 0.0
    assert api.equal(drop(api.ones(5)), api.ones(5))
    with pytest.raises(AttributeError, match="has no attribute 'width'"):
        _ = layer.width


def test_a_parameter_may_be_shared_replaced_or_taken_away():
    nn = api.nn
    decoder, encoder = nn.Linear(4, 9, bias=False), nn.Embedding(9, 4)
    decoder.weight = encoder.weight
    model = nn.ModuleList([encoder, decoder])
    assert len(list(model.parameters())) == 1
    decoder(encoder(api.tensor([1, 2]))).sum().backward()
    assert encoder.weight.grad.abs().sum().item() > 0
    layer = nn.Conv1d(2, 3, 1)
    layer.bias = None
    assert list(layer.state_dict()) == ["weight"]
    assert not layer(api.zeros(1, 2, 4)).detach().numpy().any()


def test_weights_are_drawn_again_and_dtypes_are_the_default():
    nn = api.nn
    layer, norm = nn.Linear(3, 2), nn.BatchNorm1d(2)
    before = layer.weight.detach().clone()
    norm(layer(api.ones(4, 3)))
    for m in (layer, norm):
        m.reset_parameters()
    assert not api.equal(layer.weight, before)
    assert norm.running_mean.tolist() == [0.0, 0.0]
    api.set_default_dtype(api.float64)
    try:
        assert nn.Linear(2, 2).weight.dtype == nn.LSTM(2, 2).weight_ih_l0.dtype == api.float64
    finally:
        api.set_default_dtype(api.float32)


def test_a_lazy_layer_finds_its_width_in_the_first_input():
    nn = api.nn
    net = nn.Sequential(
        nn.LazyConv2d(4, kernel_size=3), nn.LazyBatchNorm2d(), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10, bias=False)
    )
    optimizer = api.optim.SGD(net.parameters(), lr=0.1)
    before = [id(p) for p in net.parameters()]
    net(api.randn(2, 3, 5, 5)).sum().backward()
    assert [id(p) for p in net.parameters()] == before
    assert [type(m).__name__ for m in net] == ["Conv2d", "BatchNorm2d", "ReLU", "Flatten", "Linear"]
    assert net[4].in_features == 36
    old = net[4].weight.detach().clone()
    optimizer.step()
    assert not api.equal(old, net[4].weight)
    with pytest.raises(ValueError, match="does not fit"):
        nn.LazyLinear(2).load_state_dict(nn.Linear(3, 2).state_dict())


def test_an_embedding_takes_rows_that_were_learnt_elsewhere():
    rows = api.tensor(real(5, 3))
    layer = api.nn.Embedding.from_pretrained(rows)
    assert api.equal(layer(api.tensor([4])), rows[4:])
    assert not layer.weight.requires_grad
    assert api.nn.Embedding.from_pretrained(rows, freeze=False, padding_idx=0).weight.requires_grad


def test_containers_are_lists_and_dictionaries():
    nn = api.nn
    layers = nn.ModuleList([nn.Linear(1, 1) for _ in range(3)])
    layers.extend([nn.ReLU()]).insert(0, nn.Tanh())
    assert [type(m).__name__ for m in layers[1:4:2]] == ["Linear", "Linear"]
    layers[0] = nn.Sigmoid()
    del layers[-1]
    assert len(layers) == 4
    assert type(layers[0]) is nn.Sigmoid
    both = nn.Sequential(nn.Linear(1, 1), nn.Tanh()).append(nn.ReLU())
    assert type(both[:2]) is nn.Sequential
    assert [n for n, _ in nn.ParameterList([api.ones(2), api.ones(1)]).named_parameters()] == ["0", "1"]
    table = nn.ParameterDict({"a": api.ones(2)})
    table["b"] = api.ones(3)
    assert list(table) == ["a", "b"]
    assert sum(p.numel() for p in table.parameters()) == 5


def test_what_was_missing_from_a_state_is_reported():
    nn = api.nn
    keys = nn.Linear(2, 1).load_state_dict({"weight": api.ones(1, 2), "other": api.ones(1)}, strict=False)
    assert keys.missing_keys == ["bias"]
    assert keys.unexpected_keys == ["other"]
    assert repr(nn.Linear(2, 1).load_state_dict(nn.Linear(2, 1).state_dict())) == "<All keys matched successfully>"
    model = nn.Sequential(nn.Sequential(nn.Linear(2, 1)))
    assert model.get_submodule("0.0").get_parameter("bias") is model.get_parameter("0.0.bias")
    with pytest.raises(AttributeError, match="no module '1'"):
        model.get_submodule("1")


# --- hooks --------------------------------------------------------------------------------------------------------


def hooked(t):
    """Return what hooks of the backward pass see, and gradients that one of them changes."""
    nn, seen = t.nn, []
    model = nn.Sequential(nn.Linear(3, 2), nn.Tanh(), nn.Linear(2, 1))
    for i, p in enumerate(model.parameters()):
        p.data = t.tensor(np.cos(np.arange(p.numel()) + i).astype("float32")).reshape(p.shape)
    model[0].register_full_backward_hook(lambda m, grads, outs: seen.extend([grads[0], outs[0]]))
    model[1].register_full_backward_hook(lambda m, grads, outs: (2.0 * grads[0],))
    x = t.tensor(real(4, 3) * 0 + 0.3, requires_grad=True)
    model(x).sum().backward()
    model(x.detach()).sum().backward()
    grads = [x.grad, *(p.grad for p in model.parameters())]
    return [None if g is None else g.detach().numpy() for g in [*seen, *grads]]


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:Full backward hook")  # of PyTorch's: that an input needs no gradient
def test_hooks_on_the_way_back_see_and_change_what_torchs_do():
    for a, b in zip(hooked(api), hooked(oracle()), strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6)


def test_a_hook_on_the_way_back_is_called_once_and_can_be_removed():
    calls, layer = [], api.nn.Linear(2, 1)
    handle = layer.register_full_backward_hook(lambda m, grads, outs: calls.append((grads[0].shape, outs[0].shape)))
    x = api.ones(3, 2, requires_grad=True)
    layer(x).sum().backward()
    handle.remove()
    layer(x).sum().backward()
    assert calls == [((3, 2), (3, 1))]


# --- computed parameters ------------------------------------------------------------------------------------------


class Symmetric(api.nn.Module):
    def forward(self, x):
        return x.triu() + x.triu(1).transpose(-1, -2)

    def right_inverse(self, x):
        return x.triu()


def test_a_computed_weight_is_learnt_through_what_it_is_computed_from():
    nn, parametrize = api.nn, api.nn.utils.parametrize
    layer = nn.Linear(3, 3)
    parametrize.register_parametrization(layer, "weight", Symmetric())
    assert [n for n, _ in layer.named_parameters()] == ["bias", "parametrizations.weight.original"]
    assert api.equal(layer.weight, layer.weight.T)
    layer(api.ones(2, 3)).sum().backward()
    original = layer.parametrizations.weight.original
    assert original.grad.tril(-1).abs().sum().item() == 0.0
    assert original.grad.abs().sum().item() > 0.0
    other = copy.deepcopy(layer)
    with api.no_grad():
        other.parametrizations.weight.original.zero_()
    assert not other.weight.detach().numpy().any()
    assert layer.weight.detach().numpy().any()
    layer.weight = api.eye(3)
    assert api.equal(layer.weight, api.eye(3))
    assert parametrize.is_parametrized(layer, "weight")
    parametrize.remove_parametrizations(layer, "weight")
    assert not parametrize.is_parametrized(layer)
    assert api.equal(layer.weight, api.eye(3))
    with pytest.raises(ValueError, match="no parameter 'width'"):
        parametrize.register_parametrization(layer, "width", Symmetric())


@pytest.mark.parametrize("way", ["parametrizations", "by name"])
def test_a_weight_with_norm_has_the_length_or_the_singular_value_that_it_should(way):
    nn = api.nn
    place = nn.utils.parametrizations if way == "parametrizations" else nn.utils
    layer = nn.Linear(5, 4)
    before = layer.weight.detach().clone()
    place.weight_norm(layer)
    np.testing.assert_allclose(layer.weight.detach().numpy(), before.numpy(), rtol=1e-6)
    with api.no_grad():
        (layer.weight_g if way == "by name" else layer.parametrizations.weight.original0).fill_(2.0)
    np.testing.assert_allclose(np.linalg.norm(layer.weight.detach().numpy(), axis=1), 2.0, rtol=1e-6)
    conv = place.spectral_norm(nn.ConvTranspose2d(3, 4, 2))
    for _ in range(60):
        conv(api.ones(1, 3, 4, 4))
    rows = conv.weight.detach().numpy().swapaxes(0, 1).reshape(4, -1)
    np.testing.assert_allclose(np.linalg.svd(rows)[1][0], 1.0, rtol=1e-3)
    if way == "by name":
        assert {"weight_orig", "weight_u", "weight_v"} <= set(conv.state_dict())
        nn.utils.remove_spectral_norm(nn.utils.remove_weight_norm(layer) and conv)
        assert sorted(dict(conv.named_parameters())) == ["bias", "weight"]
        assert conv(api.ones(1, 3, 4, 4)).requires_grad


# --- sequences of several lengths ---------------------------------------------------------------------------------

LENGTHS = np.array([3, 5, 2])


def packed(t, make, batch_first):
    """Return outputs and gradients of a recurrent layer over packed sequences."""
    rnn, seen = t.nn.utils.rnn, []
    layer = make(t.nn, batch_first)
    generator = np.random.default_rng(3)
    with t.no_grad():
        for p in layer.parameters():
            p.copy_(t.tensor(0.4 * generator.standard_normal(tuple(p.shape)).astype("float32")))
    x = t.tensor(np.sin(np.arange(60.0)).reshape((3, 5, 4) if batch_first else (5, 3, 4)).astype("float32"))
    x.requires_grad_()
    sequence = rnn.pack_padded_sequence(x, t.tensor(LENGTHS), batch_first=batch_first, enforce_sorted=False)
    out, state = layer(sequence)
    y, lengths = rnn.pad_packed_sequence(out, batch_first=batch_first, total_length=6)
    seen += [sequence.data, sequence.batch_sizes, lengths, y, *(state if isinstance(state, tuple) else (state,))]
    sum((s * t.sin(s)).sum() for s in seen[3:]).backward()
    return [s.detach().numpy() for s in [*seen, x.grad, *(p.grad for p in layer.parameters())]]


RECURRENT = {
    "LSTM": lambda nn, first: nn.LSTM(4, 3, 2, bidirectional=True, batch_first=first),
    "GRU": lambda nn, first: nn.GRU(4, 3, batch_first=first),
    "RNN": lambda nn, first: nn.RNN(4, 3, bidirectional=True, batch_first=first),
}


@pytest.mark.oracle
@pytest.mark.parametrize("batch_first", [True, False])
@pytest.mark.parametrize("name", RECURRENT)
def test_packed_sequences_give_torchs_outputs_states_and_gradients(name, batch_first):
    torch = oracle()
    for a, b in zip(*(packed(t, RECURRENT[name], batch_first) for t in (api, torch)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-4, atol=1e-5)


def test_packing_and_padding_undo_each_other():
    rnn = api.nn.utils.rnn
    parts = [api.tensor(real(n, 2)) for n in (4, 2, 3)]
    x = rnn.pad_sequence(parts, batch_first=True, padding_value=7.0)
    assert x.shape == (3, 4, 2)
    assert x[1, 2:].tolist() == [[7.0, 7.0]] * 2
    sequence = rnn.pack_sequence(parts, enforce_sorted=False)
    assert sequence.batch_sizes.tolist() == [3, 3, 2, 1]
    assert all(api.equal(a, b) for a, b in zip(rnn.unpack_sequence(sequence), parts, strict=True))
    again, lengths = rnn.pad_packed_sequence(sequence, batch_first=True, padding_value=7.0)
    assert api.equal(again, x)
    assert lengths.tolist() == [4, 2, 3]
    with pytest.raises(ValueError, match="longest sequence must come first"):
        rnn.pack_sequence(parts)
    with pytest.raises(ValueError, match="lengths must lie in 1"):
        rnn.pack_padded_sequence(x, [5, 2, 3], batch_first=True)


def test_gradients_are_clipped_by_any_norm():
    p = api.zeros(2, requires_grad=True)
    for norm, expected in ((1.0, 7.0), (2.0, 5.0), (float("inf"), 4.0)):
        p.grad = api.tensor([3.0, -4.0])
        total = api.nn.utils.clip_grad_norm_([p], 1.0, norm_type=norm)
        np.testing.assert_allclose(total.item(), expected, rtol=1e-6)
        np.testing.assert_allclose(p.grad.numpy(), np.array([3.0, -4.0]) / expected, rtol=1e-5)
    p.grad = api.tensor([np.nan, 1.0])
    with pytest.raises(RuntimeError, match="cannot be clipped"):
        api.nn.utils.clip_grad_norm_([p], 1.0, error_if_nonfinite=True)


def test_searchsorted_searches_each_row_in_its_own():
    rows, values = api.tensor([[1.0, 2.0, 3.0], [0.0, 5.0, 9.0]]), api.tensor([[2.0, 9.0], [5.0, -1.0]])
    assert api.searchsorted(rows, values).tolist() == [[1, 3], [1, 0]]
    assert api.searchsorted(rows, values, right=True).tolist() == [[2, 3], [2, 0]]


def test_a_state_dict_that_does_not_fit_is_a_runtime_error_as_in_pytorch():
    with pytest.raises(RuntimeError, match="missing: bias"):
        api.nn.Linear(2, 2).load_state_dict({"weight": api.ones(2, 2)})


def test_what_is_assigned_to_a_name_of_a_module_has_its_place_and_kind():
    layer = api.nn.Linear(2, 2)
    for wrong in (api.ones(2, 2), 3.0):
        with pytest.raises(TypeError, match="'weight' of Linear is a Parameter"):
            layer.weight = wrong
    layer.weight = api.nn.Parameter(api.ones(2, 2))
    assert [name for name, _ in layer.named_parameters()] == ["weight", "bias"]

    class Own(api.nn.Module):
        def __init__(self):
            super().__init__()
            self.first = None
            self.scale = 3.0
            self.scale = api.nn.Parameter(api.ones(1))
            self.first = api.nn.Linear(1, 1)

    own = Own()
    assert isinstance(own.scale, api.nn.Parameter)
    assert isinstance(own.first, api.nn.Linear)
    own.scale = None
    assert own.scale is None


def test_a_subclass_of_a_layer_hands_on_its_device_and_dtype_by_their_place():
    class Layer(api.nn.Linear):
        def __init__(self, in_features, out_features, bias=True, device=None, dtype=None):
            super().__init__(in_features, out_features, bias, device, dtype)

    assert Layer(2, 3).weight.dtype == api.float32
    assert Layer(2, 3, False, "cpu", api.float64).weight.dtype == api.float64
    assert api.nn.Conv2d(1, 2, 3, 1, 0, 1, 1, True, "zeros", api.device("cpu")).bias.shape == (2,)
    for make in (lambda: api.nn.Embedding(4, 2, None, 1.0), lambda: api.nn.Linear(2, 3, True, None, None, 1)):
        with pytest.raises(TypeError, match="positional"):
            make()
