"""A module is a pytree, keeps its buffers right under every transform, and loads all or nothing."""

import copy

import numpy as np
import pytest

import fad
from fad import nn, optim
from fad.nn import functional as F


def network():
    return nn.Sequential(nn.Linear(3, 4, key=0), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2, key=1))


def loss(model, x):
    return np.sum(model(x) ** 2)


X = np.random.default_rng(0).standard_normal((6, 3))


def test_the_leaves_are_the_parameters_and_the_structure_rebuilds_the_model():
    model = network()
    leaves, structure = fad.tree.flatten(model)
    assert [x.shape for x in leaves] == [x.shape for x in model.parameters()]
    again = fad.tree.unflatten(structure, leaves)
    assert type(again) is nn.Sequential
    np.testing.assert_array_equal(again.eval()(X), model.eval()(X))


def test_on_plain_arrays_a_model_gives_plain_arrays():
    assert type(network()(X)) is np.ndarray


def test_gradients_have_the_structure_of_the_model():
    model = network().eval()
    grads = fad.grad(loss)(model, X)
    assert fad.tree.structure(grads) == fad.tree.structure(model)
    for name, g in grads.named_parameters():
        assert g.shape == dict(model.named_parameters())[name].shape


def test_paths_of_parameters_are_their_names():
    model = network()
    paths = [path for path, _ in fad.tree.flatten_with_path({"model": model})[0]]
    assert paths == [("model", name) for name, _ in model.named_parameters()]
    decay = fad.tree.map_with_path(lambda path, p: 0.1 if path[0].endswith("weight") else 0.0, model)
    assert fad.tree.leaves(decay) == [0.1, 0.0] * 3


def test_gradients_equal_those_of_the_same_function_of_plain_arrays():
    model = nn.Linear(3, 2, key=0)
    g = fad.grad(loss)(model, X)
    w, b = fad.grad(lambda w, b: np.sum((X @ w.T + b) ** 2), (0, 1))(model.weight, model.bias)
    np.testing.assert_allclose(g.weight, w, rtol=1e-13)
    np.testing.assert_allclose(g.bias, b, rtol=1e-13)


def test_lists_and_dictionaries_of_modules_and_arrays_are_parameters():
    class Model(nn.Module):
        def __init__(self):
            self.layers = [nn.Linear(3, 3, key=i) for i in range(2)]
            self.heads = {"a": nn.Linear(3, 1, key=2)}
            self.scales = (np.ones(2), "a name", 3)
            self.count = 7

        def forward(self, x):
            for layer in self.layers:
                x = layer(x)
            return self.heads["a"](x) * self.scales[0][0]

    model = Model()
    names = [n for n, _ in model.named_parameters()]
    assert names == [
        "scales.0", "layers.0.weight", "layers.0.bias", "layers.1.weight", "layers.1.bias",
        "heads.a.weight", "heads.a.bias",
    ]  # fmt: skip
    g = fad.grad(loss)(model, X)
    assert g.layers[1].weight.shape == (3, 3)
    assert g.scales[1:] == ("a name", 3)
    model.layers.append(nn.Linear(3, 3, key=5))
    assert len(fad.tree.leaves(model)) == 9


def test_a_shared_parameter_is_one_leaf_and_is_updated_once():
    class Tied(nn.Module):
        def __init__(self):
            self.a = nn.Linear(3, 3, bias=False, key=0)
            self.b = nn.Linear(3, 3, bias=False, key=1)
            self.b.weight = self.a.weight

        def forward(self, x):
            return self.b(self.a(x))

    model = Tied()
    assert len(fad.tree.leaves(model)) == 1
    w = model.a.weight.copy()
    expected = fad.grad(lambda w: np.sum((X @ w.T @ w.T) ** 2))(w)
    g = fad.grad(loss)(model, X)
    np.testing.assert_allclose(g.a.weight, expected, rtol=1e-12)
    optim.SGD(model, lr=0.1).step(g)
    assert model.a.weight is model.b.weight
    np.testing.assert_allclose(model.a.weight, w - 0.1 * expected, rtol=1e-12)


def test_a_parameter_without_axes_stays_an_array_when_mapped():
    class Model(nn.Module):
        def __init__(self):
            self.scale = nn.Parameter(2.0)

    model = fad.tree.map(lambda p: 3.0 * p, Model())
    assert model.state_dict() == {"scale": 6.0}
    optim.SGD(model, lr=1.0).step(fad.grad(lambda m: m.scale**2)(model))
    assert model.scale == -6.0


def test_a_module_used_twice_stays_one_module():
    class Twice(nn.Module):
        def __init__(self):
            self.a = nn.BatchNorm1d(3)
            self.b = self.a

        def forward(self, x):
            return self.b(self.a(x))

    model = Twice()
    fad.grad(loss)(model, X)
    assert model.a.num_batches_tracked == 2


# --- frozen ----------------------------------------------------------------------------------------------------


def test_frozen_parameters_are_no_leaves_and_stay_as_they_are():
    model = network()
    model[0].freeze()
    assert len(fad.tree.leaves(model)) == 4
    before = model.state_dict()
    opt = optim.SGD(model, lr=0.1)
    opt.step(fad.grad(loss)(model, X))
    after = model.state_dict()
    assert np.array_equal(before["0.weight"], after["0.weight"])
    assert not np.array_equal(before["3.weight"], after["3.weight"])
    model[0].requires_grad_(True)
    assert len(fad.tree.leaves(model)) == 6


def test_frozen_parameters_cost_nothing():
    model = nn.Sequential(nn.Linear(3, 4, key=0), nn.Linear(4, 2, key=1))
    model[0].freeze()
    seen = []

    def spy(model, x):
        seen.append(type(model[0](x)))
        return loss(model, x)

    fad.grad(spy)(model, X)
    assert seen == [np.ndarray]


def test_a_parameter_can_be_made_frozen():
    class Model(nn.Module):
        def __init__(self):
            self.a = nn.Parameter([1.0, 2.0], requires_grad=False)
            self.b = nn.Parameter(3.0)

    assert [x.shape for x in fad.tree.leaves(Model())] == [()]


# --- buffers -----------------------------------------------------------------------------------------------------


def plain_update(x):
    layer = nn.BatchNorm1d(3)
    layer(x)
    return layer


def test_buffers_are_updated_under_value_and_grad():
    layer = nn.BatchNorm1d(3)
    fad.value_and_grad(loss)(layer, X)
    expected = plain_update(X)
    np.testing.assert_allclose(layer.running_mean, expected.running_mean, rtol=1e-13)
    np.testing.assert_allclose(layer.running_var, expected.running_var, rtol=1e-13)
    assert layer.num_batches_tracked == 1
    assert type(layer.running_mean) is np.ndarray


def test_buffers_are_updated_once_under_checkpoint():
    layer = nn.BatchNorm1d(3)
    g = fad.grad(lambda layer, x: np.sum(fad.checkpoint(lambda m, x: np.sin(m(x)))(layer, x)))(layer, X)
    other = nn.BatchNorm1d(3)
    expected = fad.grad(lambda layer, x: np.sum(np.sin(layer(x))))(other, X)
    np.testing.assert_allclose(g.weight, expected.weight, rtol=1e-12)
    assert layer.num_batches_tracked == 1
    np.testing.assert_allclose(layer.running_var, other.running_var, rtol=1e-13)


def test_buffers_are_updated_once_under_checkpoint_of_a_closure():
    layer = nn.BatchNorm1d(3)
    fad.grad(lambda layer, x: np.sum(fad.checkpoint(lambda x: layer(np.sin(x)))(x)), (0, 1))(layer, X)
    assert layer.num_batches_tracked == 1


def test_dropout_drops_the_same_elements_again_under_checkpoint():
    layer = nn.Dropout(0.5, key=0)

    def f(x, wrap):
        return np.sum(wrap(lambda x: np.exp(layer(x)) * layer(x))(x))

    expected = fad.grad(f)(X, lambda g: g)
    again = nn.Dropout(0.5, key=0)
    layer = again
    np.testing.assert_allclose(fad.grad(f)(X, fad.checkpoint), expected, rtol=1e-13)
    assert layer.calls == 2


def test_buffers_get_the_mean_over_the_batch_elements_under_vmap():
    layer = nn.BatchNorm1d(3)
    batches = np.stack([X, 2 * X + 1])
    fad.vmap(fad.grad(loss), in_axes=(None, 0))(layer, batches)
    each = [plain_update(x) for x in batches]
    np.testing.assert_allclose(layer.running_mean, np.mean([e.running_mean for e in each], axis=0), rtol=1e-12)
    np.testing.assert_allclose(layer.running_var, np.mean([e.running_var for e in each], axis=0), rtol=1e-12)
    assert layer.num_batches_tracked == 1


def test_buffers_are_plain_under_nested_transforms():
    layer = nn.BatchNorm1d(3)
    fad.hvp(lambda layer: loss(layer, X), (layer,), (fad.tree.map(np.ones_like, layer),))
    assert type(layer.running_mean) is np.ndarray
    np.testing.assert_allclose(layer.running_mean, plain_update(X).running_mean, rtol=1e-13)


def test_buffers_are_no_leaves_and_do_not_change_the_structure():
    layer = nn.BatchNorm1d(3)
    before = fad.tree.structure(layer)
    layer(X)
    assert fad.tree.structure(layer) == before
    assert len(fad.tree.leaves(layer)) == 2


def test_a_deep_copy_is_independent():
    model = network()
    other = copy.deepcopy(model)
    model(X)
    assert other[1].num_batches_tracked == 0
    assert model[1].num_batches_tracked == 1


def test_a_mapped_model_is_independent_and_leaves_the_old_one_as_it_was():
    model = network()
    new = fad.tree.map(lambda p: p - 0.1, model)
    opt = optim.SGD(lr=0.1)
    newest, _ = opt.update(fad.grad(loss)(new, X), opt.init(new), new)
    fad.grad(loss)(newest, X)
    assert [m[1].num_batches_tracked for m in (model, new, newest)] == [0, 1, 2]


def test_buffers_of_a_model_cast_inside_a_loss_reach_the_model():
    model = network()
    low = lambda model: loss(fad.tree.map(lambda p: p.astype("float32"), model), X.astype("float32"))
    fad.grad(low)(model)
    assert model[1].num_batches_tracked == 1
    np.testing.assert_allclose(model[1].running_mean, 0.1 * model[0](X).mean(axis=0), rtol=1e-4, atol=1e-6)


def test_train_and_eval_make_other_structures():
    model = network()
    assert fad.tree.structure(model) != fad.tree.structure(copy.deepcopy(model).eval())


# --- per-example gradients ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("make", [
    lambda: nn.Sequential(nn.Linear(3, 4, key=0), nn.ReLU(), nn.Linear(4, 3, key=1)),
    lambda: nn.Sequential(nn.Linear(3, 4, bias=False, key=0), nn.LayerNorm(4), nn.GELU(), nn.Linear(4, 3, key=1)),
])  # fmt: skip
def test_per_example_gradients_equal_a_loop(make):
    model, labels = make(), np.array([0, 1, 2, 0, 1, 2])
    each = fad.vmap(fad.grad(lambda m, x, y: F.cross_entropy(m(x), y)), in_axes=(None, 0, 0))(model, X, labels)
    for i in range(len(X)):
        one = fad.grad(lambda m, i=i: F.cross_entropy(m(X[i]), labels[i]))(model)
        for a, b in zip(fad.tree.leaves(each), fad.tree.leaves(one), strict=True):
            np.testing.assert_allclose(a[i], b, rtol=1e-10, atol=1e-13)


def test_an_ensemble_of_models_maps_over_stacked_parameters():
    models = [nn.Linear(3, 2, key=i) for i in range(4)]
    stacked = fad.tree.map(lambda *xs: np.stack(xs), *models)
    out = fad.vmap(lambda m, x: m(x), in_axes=(0, None))(stacked, X)
    np.testing.assert_allclose(out, [m(X) for m in models], rtol=1e-13)


def test_second_order_through_a_model_is_the_hessian():
    model = nn.Linear(2, 1, key=0)
    x = np.array([[1.0, 2.0], [0.5, -1.0]])
    h = fad.hessian(lambda m: np.sum(m(x) ** 2))(model)
    np.testing.assert_allclose(h.weight.weight[0, :, 0, :], 2 * x.T @ x, rtol=1e-12)


# --- state dicts ---------------------------------------------------------------------------------------------------


def test_a_state_dict_goes_round():
    model, other = network(), nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Tanh(), nn.Linear(4, 2))
    model(X)
    other.load_state_dict(model.state_dict())
    np.testing.assert_array_equal(model.eval()(X), other.eval()(X))


def test_a_state_dict_is_a_copy():
    model = network()
    state = model.state_dict()
    model[0].weight += 1.0
    assert not np.array_equal(state["0.weight"], model[0].weight)


def test_a_wrong_state_dict_lists_everything_and_changes_nothing():
    model = network()
    state = {k: v + 1 for k, v in model.state_dict().items()}
    del state["0.bias"]
    state["extra"] = np.ones(2)
    state["3.weight"] = np.ones((5, 5))
    state["3.bias"] = np.array(["a", "b"])
    before = model.state_dict()
    with pytest.raises(nn.StateDictError) as caught:
        model.load_state_dict(state)
    for part in ("missing: 0.bias", "unexpected: extra", "3.weight: shape (5, 5)", "3.bias: dtype"):
        assert part in str(caught.value)
    for name, value in model.state_dict().items():
        assert np.array_equal(value, before[name])


def test_not_strict_loads_what_is_there():
    model = nn.Linear(2, 2, key=0)
    model.load_state_dict({"bias": np.ones(2), "other": np.ones(1)}, strict=False)
    assert np.array_equal(model.bias, np.ones(2))


def test_everything_includes_the_state_of_dropout():
    model = nn.Sequential(nn.Dropout(0.5, key=3))
    model(X)
    assert model.state_dict() == {}
    other = nn.Sequential(nn.Dropout(0.5, key=4))
    other.load_state_dict(model.state_dict(everything=True))
    np.testing.assert_array_equal(model(X), other(X))


# --- showing and settings ------------------------------------------------------------------------------------------


def test_the_summary_counts_parameters(capsys):
    model = network()
    model[0].freeze()
    model.summary(X)
    text = capsys.readouterr().out
    assert "6x2" in text
    assert model[1].num_batches_tracked == 0
    assert "34 parameters, 18 of them trainable; 9 numbers in buffers" in text
    assert "weight 4x3 frozen" in text


def test_seed_makes_layers_reproducible():
    def make():
        with nn.seed(3):
            return nn.Linear(2, 2), nn.Linear(2, 2)

    (a, b), (c, _) = make(), make()
    assert np.array_equal(a.weight, c.weight)
    assert not np.array_equal(a.weight, b.weight)


def test_the_default_dtype_is_a_setting():
    with fad.config.use(default_dtype="float32"):
        layer = nn.Linear(2, 2)
    assert layer.weight.dtype == np.float32
    assert nn.Linear(2, 2).weight.dtype == np.float64


def test_numpy_scalars_are_settings_and_no_parameters():
    class Scaled(nn.Module):
        def __init__(self):
            self.scale = np.sqrt(2.0)

    assert fad.tree.leaves(Scaled()) == []


def test_a_parameter_of_integers_is_refused():
    class Wrong(nn.Module):
        def __init__(self):
            self.n = nn.Parameter(np.arange(3))

    with pytest.raises(TypeError, match=r"nn\.Buffer"):
        Wrong()


# --- errors of layers and losses -----------------------------------------------------------------------------------


def test_labels_out_of_range_are_an_error():
    logits = np.zeros((3, 4))
    with pytest.raises(nn.LabelError, match=r"0 ... 3 for 4 classes, but range from 1 to 4"):
        F.cross_entropy(logits, np.array([1, 2, 4]))
    with pytest.raises(nn.LabelError, match="range from -1"):
        fad.grad(lambda z: F.cross_entropy(z, np.array([1, -1, 3])))(logits)
    with pytest.raises(nn.LabelError, match="integers"):
        F.cross_entropy(logits, np.zeros(3))
    with pytest.raises(nn.LabelError, match="empty"):
        F.cross_entropy(np.zeros((0, 4)), np.zeros(0, int))


def test_labels_of_a_wrong_shape_are_an_error():
    with pytest.raises(fad.errors.ShapeMismatchError, match=r"needs labels of shape \(3,\)"):
        F.cross_entropy(np.zeros((3, 4)), np.zeros((3, 1), int))


def test_losses_do_not_broadcast():
    with pytest.raises(fad.errors.ShapeMismatchError, match="one shape"):
        F.mse_loss(np.zeros((3, 1)), np.zeros(3))


def test_a_linear_layer_names_what_does_not_fit():
    with pytest.raises(ValueError, match=r"of shape \(6, 2\), must be the 3 input features"):
        nn.Linear(3, 4, key=0)(np.ones((6, 2)))


def test_an_embedding_refuses_indices_out_of_range():
    with pytest.raises(IndexError, match=r"0 ... 4, but range from -1 to 2"):
        nn.Embedding(5, 2, key=0)(np.array([2, -1]))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_the_dtype_of_a_model_is_kept_through_loss_gradient_and_step(dtype):
    model = nn.Sequential(
        nn.Linear(3, 4, key=0, dtype=dtype), nn.BatchNorm1d(4, dtype=dtype), nn.GELU(), nn.LayerNorm(4, dtype=dtype),
        nn.Dropout(0.1, key=0), nn.Linear(4, 3, key=1, dtype=dtype),
    )  # fmt: skip
    x = X.astype(dtype)
    opt = optim.AdamW(model)
    value, grads = fad.value_and_grad(lambda m, x, y: F.cross_entropy(m(x), y))(model, x, np.array([0, 1, 2] * 2))
    opt.step(grads)
    assert value.dtype == dtype
    assert {g.dtype for g in fad.tree.leaves(grads)} == {np.dtype(dtype)}
    assert {p.dtype for p in model.parameters()} == {np.dtype(dtype)}
    assert model[1].running_var.dtype == dtype


def test_a_field_that_is_deleted_is_no_parameter_and_no_buffer():
    norm = nn.BatchNorm1d(3)
    assert len(fad.tree.leaves(norm)) == 2
    del norm.weight
    del norm.running_mean
    assert len(fad.tree.leaves(norm)) == 1
    assert "running_mean" not in norm.state_dict()
    norm.running_var = nn.Parameter(np.ones(3))
    assert [name for name, _ in norm.named_parameters()] == ["bias", "running_var"]


@pytest.mark.parametrize(
    ("a", "b", "same"),
    [
        (1, 1, True), (1, 2, False), (np.float64(1), np.float64(1), True), (np.float64(1), np.float64(2), False),
        ([1, {"k": "x"}], [1, {"k": "x"}], True), ({"k": 1}, {"j": 1}, False),
        (1, 1.0, False), (1, True, False), ((0.0, "x"), (-0.0, "x"), False), (np.float32(1), np.float64(1), False),
        ([np.arange(2)], [np.arange(2)], False),  # arrays of integers are compared by identity
    ],
)  # fmt: skip
def test_two_models_have_one_structure_if_their_settings_are_equal(a, b, same):
    class Model(nn.Module):
        def __init__(self, setting):
            self.w = nn.Parameter(np.ones(2))
            self.setting = setting

    first, second = fad.tree.structure(Model(a)), fad.tree.structure(Model(b))
    assert (first == second) is same
    assert not same or hash(first) == hash(second)
