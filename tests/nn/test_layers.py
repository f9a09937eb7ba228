"""Each layer: derivatives of both orders and modes against numerical ones, and vmap against a loop."""

import numpy as np
import pytest

import fad
from fad import nn
from fad.nn import functional as F
from fad.testing import check_grads

RNG = np.random.default_rng(1)


def real(*shape):
    return RNG.standard_normal(shape)


class OfItself(nn.Module):
    """A layer of two arguments, given the same twice."""

    def __init__(self, layer):
        self.layer = layer

    def forward(self, x):
        return self.layer(x, x * x)


with nn.seed(0):
    LAYERS = {
        "linear": (nn.Linear(3, 2), (3,)),
        "conv1d": (nn.Conv1d(2, 3, 3, padding=1), (2, 5)),
        "conv2d": (nn.Conv2d(2, 2, 3, stride=2, padding=1), (2, 4, 4)),
        "transposed conv": (nn.ConvTranspose1d(2, 2, 3, stride=2), (2, 3)),
        "max pool": (nn.Sequential(nn.Conv2d(1, 2, 2), nn.MaxPool2d(2)), (1, 5, 5)),
        "average pool": (nn.AvgPool1d(2), (2, 4)),
        "average pool to the end": (nn.AvgPool2d(2, 2, 1, ceil_mode=True), (1, 4, 3)),
        "adaptive pools": (nn.Sequential(nn.AdaptiveAvgPool1d(3), nn.AdaptiveMaxPool1d(2)), (2, 7)),
        "conv3d": (nn.Conv3d(1, 2, 2), (1, 2, 3, 2)),
        "conv with reflection": (nn.Conv1d(2, 2, 3, padding=1, padding_mode="reflect"), (2, 4)),
        "conv around": (nn.Conv2d(1, 2, 3, padding=1, padding_mode="circular"), (1, 3, 4)),
        "group norm": (nn.GroupNorm(2, 4), (2, 4, 3)),
        "instance norm": (nn.InstanceNorm1d(2, affine=True), (1, 2, 3)),
        "instance norm, evaluated": (nn.InstanceNorm1d(2, track_running_stats=True).eval(), (1, 2, 3)),
        "response norm": (nn.LocalResponseNorm(2, 0.5), (1, 3, 2)),
        "paddings": (nn.Sequential(nn.ReflectionPad1d(1), nn.ReplicationPad1d((0, 2)), nn.ZeroPad1d(1)), (1, 3)),
        "paddings of images": (nn.Sequential(nn.CircularPad2d(1), nn.ConstantPad2d((-1, 0, 0, 1), 0.5)), (1, 2, 3)),
        "windows": (nn.Unfold((2, 1), padding=(1, 0), stride=2), (1, 2, 3, 2)),
        "windows, added up": (nn.Fold((3, 2), (2, 1)), (1, 4, 4)),
        "shuffles": (nn.Sequential(nn.PixelUnshuffle(2), nn.ChannelShuffle(2)), (1, 1, 2, 4)),
        "decoder": (OfItself(nn.TransformerDecoderLayer(4, 2, 3, 0.0)), (1, 3, 4)),
        "bilinear": (OfItself(nn.Bilinear(3, 3, 2)), (2, 3)),
        "shrunk": (nn.Sequential(nn.Softshrink(0.1), nn.Tanhshrink(), nn.Softmin(), nn.Unflatten(0, (2, -1))), (4,)),
        "layer norm": (nn.LayerNorm(4), (2, 4)),
        "rms norm": (nn.RMSNorm(4), (2, 4)),
        "batch norm": (nn.BatchNorm1d(2), (5, 2)),
        "batch norm, evaluated": (nn.BatchNorm1d(2).eval(), (5, 2)),
        "lstm": (nn.LSTM(2, 3), (3, 2)),
        "rnn": (nn.RNN(2, 3, 2), (3, 2)),
        "gru": (nn.GRU(2, 3, bidirectional=True), (3, 2)),
        "attention": (nn.MultiheadAttention(4, 2), (3, 4)),
        "gelu": (nn.Sequential(nn.Linear(3, 3), nn.GELU(), nn.Softmax(), nn.LogSoftmax()), (3,)),
        "smooth": (nn.Sequential(nn.SiLU(), nn.Mish(), nn.Softplus(), nn.Tanh(), nn.Sigmoid(), nn.SELU()), (4,)),
        "more smooth": (nn.Sequential(nn.LogSigmoid(), nn.Softsign(), nn.CELU(), nn.PReLU(), nn.GLU()), (4,)),
        "bent": (nn.Sequential(nn.Hardswish(), nn.Hardsigmoid(), nn.Hardtanh()), (4,)),
        "flatten": (nn.Sequential(nn.Flatten(0), nn.Identity(), nn.ELU(), nn.LeakyReLU()), (2, 2)),
    }


def output(model, x):
    y = model(x)
    return y[0] if isinstance(y, tuple) else y


@pytest.mark.parametrize("name", LAYERS)
def test_derivatives_of_both_orders_and_modes_are_numerical_ones(name):
    model, shape = LAYERS[name]
    check_grads(lambda model, x: np.sum(np.sin(output(model, x))), (model, real(*shape)), 2)


@pytest.mark.parametrize("name", [n for n in LAYERS if n != "batch norm"])
def test_vmap_over_inputs_equals_a_loop(name):
    model, shape = LAYERS[name]
    xs = real(3, *shape)
    np.testing.assert_allclose(
        fad.vmap(lambda x: output(model, x))(xs), [output(model, x) for x in xs], rtol=1e-10, atol=1e-12
    )


@pytest.mark.parametrize("name", [n for n in LAYERS if n != "batch norm" and fad.tree.leaves(LAYERS[n][0])])
def test_per_example_gradients_and_ensembles_equal_loops(name):
    model, shape = LAYERS[name]
    xs = real(3, *shape)
    f = fad.grad(lambda model, x: np.sum(output(model, x) ** 2))
    models = [fad.tree.map(lambda p, c=c: c * p, model) for c in (0.5, 1.0, 1.5)]
    stacked = fad.tree.map(lambda *ps: np.stack(ps), *models)
    for found, expected in (
        (fad.vmap(f, in_axes=(None, 0))(model, xs), [f(model, x) for x in xs]),
        (fad.vmap(f, in_axes=(0, None))(stacked, xs[0]), [f(m, xs[0]) for m in models]),
        (fad.vmap(f)(stacked, xs), [f(m, x) for m, x in zip(models, xs, strict=True)]),
    ):
        for i, one in enumerate(expected):
            for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(one), strict=True):
                np.testing.assert_allclose(a[i], b, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_cross_entropy_is_the_composite_at_every_order(reduction):
    z, labels = real(4, 3), np.array([0, 2, 1, 2])

    def plain(z):
        rows = -F.log_softmax(z)[np.arange(4), labels]
        return {"mean": np.mean, "sum": np.sum, "none": lambda r: r}[reduction](rows)

    fused = lambda z: F.cross_entropy(z, labels, reduction=reduction)
    for transform in (lambda f: f, fad.jacrev, fad.jacfwd, lambda f: fad.jacfwd(fad.jacrev(f))):
        np.testing.assert_allclose(transform(fused)(z), transform(plain)(z), rtol=1e-11, atol=1e-13)
    zs = real(2, 4, 3)
    expected = [fad.jacrev(plain)(z) for z in zs]
    np.testing.assert_allclose(fad.vmap(fad.jacrev(fused))(zs), expected, rtol=1e-11, atol=1e-13)


def test_large_logits_do_not_overflow():
    z = np.array([[1000.0, -1000.0, 0.0]])
    value, g = fad.value_and_grad(lambda z: F.cross_entropy(z, np.array([1])))(z)
    assert value == 2000.0
    np.testing.assert_array_equal(g, [[1.0, -1.0, 0.0]])
    assert F.binary_cross_entropy_with_logits(np.array([-1000.0]), np.array([1.0])) == 1000.0


def test_dropout_keeps_the_mean_and_is_off_in_evaluation():
    layer = nn.Dropout(0.3, key=0)
    x = np.ones(20_000)
    assert abs(layer(x).mean() - 1) < 0.02
    assert not np.array_equal(layer(x), layer(x))
    assert layer.eval()(x) is x
    assert np.array_equal(nn.Dropout(1.0, key=0)(x), np.zeros_like(x))
    keys = fad.random.split(fad.random.key(0), 3)
    masks = fad.vmap(lambda key: nn.Dropout(0.5, key=1)(x[:50], key=key))(keys)
    assert len({m.tobytes() for m in masks}) == 3


def test_a_causal_model_does_not_look_ahead():
    model = nn.MultiheadAttention(4, 2, key=0)
    jacobian = fad.jacobian(lambda x: model(x, is_causal=True))(real(5, 4))
    for i in range(5):
        assert np.all(jacobian[i, :, i + 1 :] == 0)
        assert np.any(jacobian[i, :, i] != 0)


def test_states_of_recurrent_layers_go_in_and_out():
    x = real(6, 2, 3)
    for make in (nn.LSTM, nn.GRU):
        layer = make(3, 4, 2, key=0)
        whole, end = layer(x)
        first, state = layer(x[:2])
        rest, other = layer(x[2:], state)
        np.testing.assert_allclose(np.concatenate([first, rest]), whole, rtol=1e-12)
        for a, b in zip(fad.tree.leaves(end), fad.tree.leaves(other), strict=True):
            np.testing.assert_allclose(a, b, rtol=1e-12)


def test_steps_after_the_length_of_an_example_change_nothing():
    x, lengths = real(5, 3, 2), np.array([5, 2, 3])
    for layer in (nn.LSTM(2, 3, 2, bidirectional=True, key=0), nn.GRU(2, 3, key=0), nn.RNN(2, 3, key=0)):
        y, end = layer(x, lengths=lengths)
        for i, n in enumerate(lengths):
            alone, its_end = layer(x[:n, i])
            np.testing.assert_allclose(y[:n, i], alone, rtol=1e-12)
            assert not y[n:, i].any()
            for a, b in zip(fad.tree.leaves(end), fad.tree.leaves(its_end), strict=True):
                np.testing.assert_allclose(a[:, i], b, rtol=1e-12)
    unread = fad.grad(lambda x: np.sum(nn.GRU(2, 3, key=0)(x, lengths=lengths)[0] ** 2))(x)
    assert not unread[2:, 1].any()
    assert unread[1, 1].all()


def test_instance_norm_without_momentum_keeps_its_statistics():
    layer = nn.InstanceNorm1d(2, momentum=None, track_running_stats=True)
    layer(np.arange(12.0).reshape(2, 2, 3))
    np.testing.assert_array_equal(layer.running_mean, [0.0, 0.0])
    np.testing.assert_array_equal(layer.running_var, [1.0, 1.0])


def test_each_channel_of_each_example_is_normalised_alone():
    x = real(3, 2, 4, 5)
    y = nn.InstanceNorm2d(2, eps=0.0)(x)
    np.testing.assert_allclose(y.mean((2, 3)), 0.0, atol=1e-12)
    np.testing.assert_allclose(y.var((2, 3)), 1.0, rtol=1e-12)
    np.testing.assert_allclose(nn.InstanceNorm2d(2, eps=0.0)(x[0]), y[0], rtol=1e-12)
    kept = nn.InstanceNorm2d(2, track_running_stats=True, momentum=1.0)
    kept(x)
    np.testing.assert_allclose(kept.running_mean, x.mean((0, 2, 3)), rtol=1e-12)
    np.testing.assert_allclose(kept.running_var, x.var((2, 3), ddof=1).mean(0), rtol=1e-12)


def test_paddings_are_those_of_numpy():
    x = real(2, 3, 4, 5)
    pairs = ((0, 0), (0, 0), (3, 2), (1, 2))
    for layer, mode in (
        (nn.ReflectionPad2d, "reflect"), (nn.ReplicationPad2d, "edge"), (nn.CircularPad2d, "wrap"),
        (nn.ZeroPad2d, "constant"),
    ):  # fmt: skip
        np.testing.assert_array_equal(layer((1, 2, 3, 2))(x), np.pad(x, pairs, mode))
    twos = np.pad(x, pairs[:2] + ((1, 1),) * 2, constant_values=2.0)
    np.testing.assert_array_equal(nn.ConstantPad2d(1, 2.0)(x), twos)
    with pytest.raises(ValueError, match="ZeroPad2d needs one number, or 4 of them"):
        nn.ZeroPad2d((1, 2))
    with pytest.raises(ValueError, match="ReflectionPad1d needs"):
        nn.ReflectionPad1d(1)(x)


def test_folding_is_the_transpose_of_unfolding():
    x = real(2, 3, 5, 6)
    wide = {"kernel_size": (2, 3), "padding": (1, 0), "stride": (2, 1), "dilation": (1, 2)}
    for options in ({"kernel_size": 3}, wide):
        columns, pullback = fad.vjp(lambda x, options=options: F.unfold(x, **options), x)
        ct = real(*columns.shape)
        np.testing.assert_allclose(F.fold(ct, (5, 6), **options), pullback(ct)[0], rtol=1e-12, atol=1e-13)
    with pytest.raises(ValueError, match="fold to"):
        F.fold(x[:, :, 0], (5, 6), 3)


def test_an_image_sampled_on_its_own_grid_is_itself():
    x, itself = real(2, 3, 4, 5), np.array([[[1.0, 0, 0], [0, 1, 0]]] * 2)
    for corners in (True, False):
        grid = F.affine_grid(itself, x.shape, corners)
        for mode in ("bilinear", "nearest"):
            np.testing.assert_allclose(F.grid_sample(x, grid, mode, align_corners=corners), x, atol=1e-12)
    turned = F.affine_grid(-itself, x.shape)
    np.testing.assert_allclose(F.grid_sample(x, turned), x[:, :, ::-1, ::-1], atol=1e-12)
    inside = np.clip(turned + 0.05 * real(2, 4, 5, 2), -0.99, 0.99)
    check_grads(lambda x, theta: np.sum(np.sin(F.grid_sample(x, inside + theta))), (x, np.array(0.003)), 2)


def test_a_draw_of_a_class_has_its_probabilities_and_a_derivative():
    logits, key = np.log(np.array([0.2, 0.5, 0.3])), fad.random.key(0)
    hard = F.gumbel_softmax(np.broadcast_to(logits, (20_000, 3)), hard=True, key=key)
    assert set(np.unique(hard.round(12))) == {0.0, 1.0}
    np.testing.assert_allclose(hard.mean(0), [0.2, 0.5, 0.3], atol=0.012)
    weights = np.array([1.0, 2.0, 4.0])
    soft, straight = (
        fad.grad(lambda x, h=h: np.sum(weights * F.gumbel_softmax(x, 0.7, h, key=key)))(logits) for h in (False, True)
    )
    np.testing.assert_allclose(soft, straight, rtol=1e-12)
    assert abs(soft).max() > 1e-3


def test_what_alpha_dropout_leaves_has_the_mean_and_variance_of_before():
    x = real(200_000)
    y = nn.AlphaDropout(0.3, key=0)(x)
    assert abs(y.mean()) < 0.01
    assert abs(y.var() - 1.0) < 0.02
    assert nn.AlphaDropout(0.3, key=0).eval()(x) is x


def test_bags_are_sums_means_and_maxima_of_rows():
    table, i = real(6, 3), np.array([[0, 2], [5, 5]])
    for mode, f in (("sum", np.sum), ("mean", np.mean), ("max", np.max)):
        np.testing.assert_allclose(F.embedding_bag(i, table, mode=mode), f(table[i], axis=1), rtol=1e-14)
        one_axis = F.embedding_bag(i.ravel(), table, np.array([0, 0, 3]), mode)
        np.testing.assert_allclose(one_axis, [np.zeros(3), f(table[[0, 2, 5]], axis=0), table[5]], rtol=1e-14)
    weighted = F.embedding_bag(i, table, mode="sum", per_sample_weights=np.array([[1.0, 2.0], [0.0, 3.0]]))
    np.testing.assert_allclose(weighted, [table[0] + 2 * table[2], 3 * table[5]], rtol=1e-14)
    with pytest.raises(ValueError, match="bags are the rows"):
        F.embedding_bag(i.ravel(), table)


def test_the_decoder_of_a_transformer_does_not_look_ahead_and_reads_all_of_the_source():
    model = nn.Transformer(4, 2, 1, 1, 8, 0.0, key=0)
    source, target = real(3, 4), real(5, 4)
    run = lambda source, target: model(source, target, tgt_is_causal=True)
    of_target = fad.jacobian(run, argnums=1)(source, target)
    assert np.all(of_target[np.triu_indices(5, 1)[0], :, np.triu_indices(5, 1)[1]] == 0)
    assert np.abs(fad.jacobian(run)(source, target)).sum((1, 3)).all()


def test_wrong_inputs_name_the_layer_and_the_shapes():
    with pytest.raises(ValueError, match=r"BatchNorm1d of 2 features .* not shape \(5, 3\)"):
        nn.BatchNorm1d(2)(np.ones((5, 3)))
    with pytest.raises(ValueError, match="more than one value"):
        nn.BatchNorm1d(2)(np.ones((1, 2)))
    with pytest.raises(ValueError, match=r"LayerNorm of shape \(4,\)"):
        nn.LayerNorm(4)(np.ones((2, 3)))
    with pytest.raises(ValueError, match="LSTM needs an input"):
        nn.LSTM(3, 4, key=0)(np.ones((2, 5)))
    with pytest.raises(ValueError, match="multiple of num_heads"):
        nn.MultiheadAttention(5, 2)
    with pytest.raises(ValueError, match="probability"):
        nn.Dropout(1.5)
    with pytest.raises(ValueError, match="reduction must be"):
        F.mse_loss(np.ones(2), np.ones(2), reduction="average")
    with pytest.raises(NotImplementedError, match="does not define forward"):
        nn.Module()(1.0)


def test_the_response_norm_divides_by_a_power_of_the_mean_of_squares_around():
    x, size, alpha, beta, k = real(2, 5, 3), 3, 0.5, 0.7, 2.0
    squares = np.pad(x * x, [(0, 0), (1, 1), (0, 0)])
    mean = sum(squares[:, i : i + 5] for i in range(size)) / size
    found = F.local_response_norm(x, size, alpha, beta, k)
    np.testing.assert_allclose(found, x / (k + alpha * mean) ** beta, rtol=1e-12)
    np.testing.assert_allclose(nn.LocalResponseNorm(size, alpha, beta, k)(x), found, rtol=1e-12)


def test_a_decoder_that_normalises_first_adds_each_part_to_what_came_in():
    layer = nn.TransformerDecoderLayer(4, 2, 8, 0.0, norm_first=True, key=0)
    x, memory = real(3, 4), real(3, 4)
    y = x + layer.self_attn(layer.norm1(x))
    y = y + layer.multihead_attn(layer.norm2(y), memory, memory)
    y = y + layer.linear2(F.relu(layer.linear1(layer.norm3(y))))
    np.testing.assert_allclose(layer(x, memory), y, rtol=1e-12)


def test_a_causal_memory_is_one_that_is_masked_beyond_the_diagonal():
    layer = nn.TransformerDecoderLayer(4, 2, 8, 0.0, key=0)
    x, memory = real(3, 4), real(3, 4)
    causal = layer(x, memory, memory_is_causal=True)
    np.testing.assert_allclose(causal, layer(x, memory, None, np.tril(np.ones((3, 3), bool))), rtol=1e-12)
    assert np.abs(causal - layer(x, memory)).max() > 1e-3


def test_the_bias_of_a_bilinear_form_is_added():
    x1, x2, weight, bias = real(3, 2), real(3, 4), real(5, 2, 4), real(5)
    found = F.bilinear(x1, x2, weight, bias)
    np.testing.assert_allclose(found, np.stack([np.sum((x1 @ w) * x2, -1) for w in weight], -1) + bias, rtol=1e-12)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: nn.Conv2d(3, 4, 1, groups=2), "multiples of groups=2"),
        (lambda: nn.Conv2d(4, 3, 1, groups=2), "multiples of groups=2"),
        (lambda: nn.Conv2d(4, 4, 1, padding_mode="mirror"), "padding_mode must be"),
        (lambda: nn.Embedding(4, 2, padding_idx=4), "padding_idx=4 is no row"),
        (lambda: nn.Embedding(4, 2, padding_idx=-5), "padding_idx=-5 is no row"),
        (lambda: nn.Embedding(4, 2, key=0)(np.array([4])), r"indices must lie in 0 \.\.\. 3"),
        (lambda: nn.Embedding(4, 2, key=0)(np.array([-1])), r"indices must lie in 0 \.\.\. 3"),
        (lambda: F.embedding_bag(np.array([[0]]), np.ones((2, 2)), mode="median"), "mode must be"),
        (lambda: F.embedding_bag(np.array([[0]]), np.ones((2, 2)), per_sample_weights=np.ones((1, 1))), "mode='sum'"),
        (lambda: nn.Upsample(), "a size or a scale_factor"),
        (lambda: nn.Upsample(2, 2), "a size or a scale_factor"),
        (lambda: F.pad(np.ones(3), (1, 1), "mirror"), "mode must be one of"),
        (lambda: F.pad(np.ones(3), (1, 1, 1)), "needs a pair for each"),
        (lambda: F.pad(np.ones(3), (1, 1, 1, 1)), "needs a pair for each"),
        (lambda: F.fold(np.ones((1, 3, 3)), (1, 4), (1, 2)), "fold to"),
        (lambda: F.fold(np.ones((1, 2, 4)), (1, 4), (1, 2)), "fold to"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="cosine"), "activation must be"),
        (lambda: F.nll_loss(np.zeros((2, 3)), np.array([0, 1, 2])), "does not fit labels"),
        (lambda: F.cross_entropy(np.zeros((2, 3)), np.array([0, 1]), reduction="average"), "reduction must be"),
        (lambda: F.cross_entropy(np.zeros((2, 3)), np.array([0, 3])), "3"),
    ],
)
def test_a_wrong_setting_or_index_is_refused(call, said):
    with pytest.raises((ValueError, IndexError), match=said):
        call()


X4 = np.sin(np.arange(180.0)).reshape(2, 3, 5, 6)


@pytest.mark.parametrize("corners", [True, False])
def test_a_grid_beyond_the_image_sees_its_mirror_image(corners):
    widths, how = ([(4, 4), (5, 5)], "reflect") if corners else ([(5, 5), (6, 6)], "symmetric")
    mirrored = np.pad(X4, [(0, 0), (0, 0), *widths], how)  # three times as high and wide, the image in the middle
    grid = 1.7 * np.sin(np.arange(64.0)).reshape(2, 4, 4, 2)
    wanted = F.grid_sample(mirrored, grid / 3, align_corners=corners)
    np.testing.assert_allclose(F.grid_sample(X4, grid, "bilinear", "reflection", corners), wanted, atol=1e-12)


@pytest.mark.parametrize("drop", [F.dropout, F.dropout2d, F.alpha_dropout])
def test_a_probability_of_dropping_is_from_none_to_all(drop):
    assert drop(X4, 0.0, key=0) is X4
    assert drop(X4, 0.5, key=0, training=False) is X4
    assert not np.any(drop(X4, 1.0, key=0))
    for p in (-0.1, 1.1):
        with pytest.raises(ValueError, match="probability"):
            drop(X4, p, key=0)


def test_the_shares_of_attention_add_up_to_one_and_none_goes_to_what_comes_later():
    attention = nn.MultiheadAttention(6, 2, key=0)
    shares = attention.weights(X4[0], is_causal=True)
    np.testing.assert_allclose(np.sum(shares, -1), 1.0)
    assert not np.any(np.triu(shares, 1))
    np.testing.assert_allclose(attention.weights(X4[0], X4[0]), attention.weights(X4[0]))


def test_a_sequence_of_layers_has_a_length_and_parts():
    model = nn.Sequential(nn.Linear(2, 3, key=0), nn.ReLU(), nn.Linear(3, 2, key=1))
    assert len(model) == 3
    assert [type(layer).__name__ for layer in model[1:]] == ["ReLU", "Linear"]
    assert list(model.children()) == list(model)


def test_every_layer_prints_its_settings():
    for make in (
        lambda: nn.Conv2d(2, 4, 3), lambda: nn.MaxPool2d(2), lambda: nn.BatchNorm2d(4), lambda: nn.LayerNorm(4),
        lambda: nn.GroupNorm(2, 4), lambda: nn.RMSNorm(4), lambda: nn.LSTM(3, 4, dropout=0.5, num_layers=2),
        lambda: nn.Embedding(3, 4), lambda: nn.AdaptiveAvgPool2d(2), lambda: nn.PReLU(), lambda: nn.PixelShuffle(2),
        lambda: nn.Upsample(scale_factor=2), lambda: nn.Bilinear(2, 3, 4), lambda: nn.ZeroPad2d(1),
        lambda: nn.Unfold(2), lambda: nn.LocalResponseNorm(2), lambda: nn.ConstantPad1d(1, 2.0),
        lambda: nn.GRUCell(2, 3), lambda: nn.ChannelShuffle(2), lambda: nn.PixelUnshuffle(2),
        lambda: nn.Dropout2d(0.25),
    ):  # fmt: skip
        with nn.seed(0):
            layer = make()
        assert repr(layer).startswith(f"{type(layer).__name__}(")
        assert any(c.isdigit() for c in repr(layer).split("(", 1)[1])
    inner = nn.Sequential(nn.MultiheadAttention(4, 2, key=0), nn.ReLU())
    assert "\n    (out_proj): Linear(in_features=4, out_features=4, bias=True)\n  )\n  (1): ReLU()\n" in repr(inner)


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda: F.gelu(X4, "no such way"), "'none' or 'tanh'"),
        (lambda: F.embedding_bag(np.array([1, 2]), X4[0, 0], np.array([0]), "no such way"), "'sum', 'mean' or 'max'"),
        (lambda: F.embedding_bag(np.array([1]), X4[0, 0], np.array([0]), "mean", np.ones(1)), "mode='sum'"),
        (lambda: F.pad(X4, (1, 1), "no such way"), "'circular', 'constant'"),
        (lambda: F.pad(X4, (1,)), "a pair for each"),
        (lambda: F.interpolate(X4), "a size or a scale_factor"),
        (lambda: F.interpolate(X4, 2, mode="trilinear"), "2 spatial axes"),
        (lambda: F.pixel_shuffle(X4, 2), "multiple of 4 channels"),
        (lambda: F.pixel_unshuffle(X4, 2), "not 5 and 6"),
        (lambda: F.channel_shuffle(X4, 2), "divides 3 channels"),
        (lambda: F.group_norm(X4, 2, None, None), "divides them"),
        (lambda: F.affine_grid(np.ones((2, 3)), (1, 1, 2, 2)), r"\(N, 2, 3\)"),
        (lambda: F.grid_sample(X4, X4[..., :2], "no such way"), "'bilinear' or 'nearest'"),
        (lambda: F.grid_sample(X4[0], X4[..., :2]), r"\(N, C, H, W\)"),
        (lambda: F.cross_entropy(X4[0, 0], np.arange(5), reduction="no such way"), "'mean', 'sum' or 'none'"),
        (lambda: F.nll_loss(X4[0, 0], np.arange(2)), "does not fit labels"),
        (lambda: nn.Conv2d(3, 4, 3, groups=2), "multiples of groups=2"),
        (lambda: nn.Conv2d(3, 4, 3, padding_mode="no such way"), "zeros, reflect"),
        (lambda: nn.GroupNorm(2, 3), "multiple of num_groups=2"),
        (lambda: nn.GroupNorm(2, 4)(X4), "4 channels on axis 1"),
        (lambda: nn.InstanceNorm2d(4)(X4), "4 on axis 1"),
        (lambda: nn.InstanceNorm2d(3)(X4[:, :, :1, :1]), "more than one value per channel"),
        (lambda: nn.Upsample(), "a size or a scale_factor"),
        (lambda: nn.Embedding(3, 2, padding_idx=5), "no row of a table of 3"),
        (lambda: nn.RNN(2, 2, nonlinearity="no such way"), "'tanh' or 'relu'"),
        (lambda: nn.Softmax2d()(X4[0, 0]), "channels, height, width"),
        (lambda: nn.MultiheadAttention(4, 2, key=0)(X4[0]), "of width 4 got"),
        (lambda: nn.TransformerEncoderLayer(4, 2, activation="no such way"), "'relu', 'gelu' or a function"),
    ],
)
def test_settings_and_shapes_that_do_not_fit_are_answered_with_what_would(call, said):
    with pytest.raises(ValueError, match=said), nn.seed(0):
        call()


@pytest.mark.parametrize("size", [(0, 2), (3, 0), 0])
@pytest.mark.parametrize("layer", [nn.AdaptiveMaxPool2d, nn.AdaptiveAvgPool2d])
def test_an_adaptive_pool_of_no_windows_is_empty(layer, size):
    x = real(1, 2, 3, 4)
    shape = (1, 2, *np.broadcast_to(size, 2))
    y, pullback = fad.vjp(layer(size), x)
    assert y.shape == layer(size)(x).shape == fad.jit(layer(size))(x).shape == shape
    np.testing.assert_array_equal(pullback(y)[0], np.zeros_like(x))
    with pytest.raises(ValueError, match="cannot be negative"):
        layer(-1)(x)


def test_a_convolution_shows_what_was_chosen_of_its_settings():
    assert "2, 4, kernel_size=(3,), stride=1)" in repr(nn.Conv1d(2, 4, 3, key=0))
    shown = repr(nn.Conv2d(2, 4, 3, padding="same", groups=2, padding_mode="reflect", key=0))
    assert "2, 4, kernel_size=(3, 3), stride=1, padding='same', groups=2, padding_mode='reflect'" in shown


def test_grouped_queries_share_the_heads_of_keys_and_values():
    rng = np.random.default_rng(0)
    q, k, v = rng.normal(size=(6, 5, 4)), rng.normal(size=(2, 7, 4)), rng.normal(size=(2, 7, 3))
    attend = F.scaled_dot_product_attention
    of_each = [attend(q[i], k[i // 3], v[i // 3], scale=0.3) for i in range(6)]
    np.testing.assert_allclose(attend(q, k, v, enable_gqa=True, scale=0.3), of_each, rtol=1e-12)
    check_grads(lambda *qkv: attend(*qkv, enable_gqa=True, scale=0.3), (q, k, v), order=1)
    with pytest.raises(ValueError, match="5 heads of the query cannot share 2"):
        attend(q[:5], k, v, enable_gqa=True)
