"""Dropout between recurrent layers and on the weights of attention."""

import copy

import numpy as np
import pytest

import fad
import fad.eager
from fad import nn, optim
from fad.nn import functional as F

rng = np.random.default_rng(0)
X = rng.normal(size=(5, 2, 3))
TOKENS = rng.normal(size=(2, 5, 8))
RECURRENT = {"RNN": nn.RNN, "LSTM": nn.LSTM, "GRU": nn.GRU}


def result(out):
    return out[0] if isinstance(out, tuple) else out


def loss(model, x):
    return np.sum(np.sin(result(model(x))))


@pytest.mark.parametrize("kind", RECURRENT)
@pytest.mark.parametrize("both_ways", [False, True])
def test_what_a_recurrent_layer_hands_to_the_next_is_dropped_and_nothing_else(kind, both_ways):
    make = RECURRENT[kind]
    whole = make(3, 4, 2, dropout=0.5, bidirectional=both_ways, key=0)
    first = make(3, 4, bidirectional=both_ways)
    second = make(8 if both_ways else 4, 4, bidirectional=both_ways)
    weights = whole.state_dict()
    first.load_state_dict({k: v for k, v in weights.items() if "_l0" in k})
    second.load_state_dict({k.replace("_l1", "_l0"): v for k, v in weights.items() if "_l1" in k})
    key = fad.random.fold_in(whole.between.key, 0)
    handed = result(first(X))
    kept = F.dropout(handed, 0.5, key=key)
    assert 0 < np.sum(kept == 0) < kept.size
    np.testing.assert_allclose(result(whole(X)), result(second(kept)), rtol=1e-12)
    assert not np.allclose(result(whole(X)), result(second(kept)))  # a second call drops others
    np.testing.assert_allclose(result(whole.eval()(X)), result(second(handed)), rtol=1e-12)


@pytest.mark.parametrize(
    "make", [lambda d: nn.LSTM(3, 4, 2, dropout=d, key=0), lambda d: nn.GRU(3, 4, 2, dropout=d, key=0)]
)
def test_weights_and_their_names_do_not_depend_on_dropout(make):
    plain, dropping = make(0.0).state_dict(), make(0.5).state_dict()
    assert list(plain) == list(dropping)
    for name, x in plain.items():
        np.testing.assert_array_equal(x, dropping[name])


def test_dropout_of_a_single_recurrent_layer_is_warned_of():
    with pytest.warns(UserWarning, match="between"):
        nn.GRU(3, 4, dropout=0.5)


def test_weights_of_attention_are_dropped_in_training_alone():
    layer = nn.MultiheadAttention(8, 2, dropout=0.4, key=0)
    _, shares = layer.attend(TOKENS)
    assert 0 < np.sum(shares == 0) < shares.size
    key = fad.random.fold_in(layer.dropped.key, 0)
    plain = nn.MultiheadAttention(8, 2, key=0)
    everything, full = plain.attend(TOKENS)
    np.testing.assert_allclose(shares, F.dropout(full, 0.4, key=key), rtol=1e-12)
    np.testing.assert_allclose(layer.eval()(TOKENS), everything, rtol=1e-12)
    q, k, v = (rng.normal(size=(2, 3, 4)) for _ in range(3))
    found = F.scaled_dot_product_attention(q, k, v, dropout_p=0.4, dropout_key=key)
    np.testing.assert_allclose(found, F.dropout(F.attention_weights(q, k), 0.4, key=key) @ v, rtol=1e-12)


MODELS = {
    "lstm": (lambda: nn.LSTM(3, 4, 3, dropout=0.3, key=0), X),
    "gru, both ways": (lambda: nn.GRU(3, 4, 2, dropout=0.3, bidirectional=True, key=0), X),
    "attention": (lambda: nn.MultiheadAttention(8, 2, dropout=0.3, key=0), TOKENS),
}


@pytest.mark.parametrize("name", MODELS)
def test_under_checkpoint_the_same_is_dropped_again(name):
    make, x = MODELS[name]
    one, other = make(), make()
    expected = fad.grad(loss)(one, x)
    found = fad.grad(fad.checkpoint(loss))(other, x)
    for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-11, atol=1e-13)
    assert np.array_equal(*[list(m.modules())[1].calls for m in (one, other)])


@pytest.mark.parametrize("name", MODELS)
def test_steps_under_jit_drop_what_steps_without_it_drop(name):
    make, x = MODELS[name]
    paths = []
    for transform in (lambda f: f, fad.jit):
        model = make()
        opt, step, values = optim.SGD(model, lr=0.05), transform(fad.value_and_grad(loss)), []
        for _ in range(3):
            value, grads = step(model, x)
            opt.step(grads)
            values.append(float(value))
        paths.append(values)
    np.testing.assert_allclose(*paths, rtol=1e-11)


@pytest.mark.parametrize("name", MODELS)
def test_under_vmap_every_batch_element_drops_the_same(name):
    make, x = MODELS[name]
    model = make()
    xs = np.stack([x, 2 * x])
    each = [loss(copy.deepcopy(model), x) for x in xs]
    np.testing.assert_allclose(fad.vmap(loss, in_axes=(None, 0))(model, xs), each, rtol=1e-11)


# --- with PyTorch ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("kind", RECURRENT)
def test_recurrent_layers_that_drop_everything_or_evaluate_agree_with_torch(kind, training):
    torch = pytest.importorskip("torch")
    mine = RECURRENT[kind](3, 4, 3, dropout=1.0, bidirectional=True)
    theirs = getattr(torch.nn, kind)(3, 4, 3, dropout=1.0, bidirectional=True).double().train(training)
    theirs.load_state_dict({k: torch.from_numpy(v) for k, v in mine.state_dict().items()})
    mine.train(training)
    tx = torch.from_numpy(X).requires_grad_()
    ty = theirs(tx)[0]
    ty.sin().sum().backward()
    np.testing.assert_allclose(result(mine(X)), ty.detach().numpy(), rtol=1e-11)
    grads, dx = fad.grad(loss, (0, 1))(mine, X)
    np.testing.assert_allclose(dx, tx.grad.numpy(), rtol=1e-10, atol=1e-14)
    for name, p in theirs.named_parameters():
        np.testing.assert_allclose(getattr(grads, name), p.grad.numpy(), rtol=1e-10, atol=1e-14)


def test_attention_with_the_same_weights_dropped_agrees_with_torch(monkeypatch):
    torch = pytest.importorskip("torch")
    mine = nn.MultiheadAttention(8, 2, dropout=0.4, key=0)
    key = fad.random.fold_in(mine.dropped.key, 0)
    kept = F.dropout(np.ones((2, 2, 5, 5)), 0.4, key=key).reshape(4, 5, 5)
    monkeypatch.setattr(torch.nn.functional, "dropout", lambda x, p: x * torch.from_numpy(kept))
    theirs = torch.nn.MultiheadAttention(8, 2, dropout=0.4, batch_first=True).double()
    theirs.load_state_dict({k: torch.from_numpy(v) for k, v in mine.state_dict().items()})
    tx = torch.from_numpy(TOKENS).requires_grad_()
    ty, shares = theirs(tx, tx, tx)
    ty.sin().sum().backward()
    y, found = mine.attend(TOKENS)
    np.testing.assert_allclose(y, ty.detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(found.mean(1), shares.detach().numpy(), rtol=1e-10)
    mine.dropped.calls = np.array(0)
    dx = fad.grad(loss, 1)(mine, TOKENS)
    np.testing.assert_allclose(dx, tx.grad.numpy(), rtol=1e-9, atol=1e-13)


# --- the eager API --------------------------------------------------------------------------------------------------


def test_eager_layers_drop_in_training_and_repeat_with_the_seed():
    torch = fad.eager
    makes = [
        lambda: torch.nn.LSTM(3, 4, num_layers=2, dropout=0.5),
        lambda: torch.nn.MultiheadAttention(8, 2, dropout=0.5, batch_first=True),
    ]
    for make, x in zip(makes, (X, TOKENS), strict=True):
        torch.manual_seed(0)
        layer = make()
        assert not any("key" in name or "calls" in name for name in layer.state_dict())
        args = (torch.tensor(x, dtype=torch.float32),) * (1 if x is X else 3)
        runs = []
        for seed in (1, 1, 2):
            torch.manual_seed(seed)
            runs.append(layer(*args)[0].detach().numpy())
        np.testing.assert_array_equal(runs[0], runs[1])
        assert not np.allclose(runs[0], runs[2])
        layer.eval()
        np.testing.assert_array_equal(layer(*args)[0].detach().numpy(), layer(*args)[0].detach().numpy())


def test_eager_dropout_under_checkpoint_drops_the_same_again():
    torch = fad.eager
    layer = torch.nn.LSTM(3, 4, num_layers=2, dropout=0.5).double().requires_grad_(False)

    def f(x):
        t = torch.as_tensor(x)
        return torch.nn.functional.dropout(layer(t)[0], 0.5).square().sum().value

    torch.manual_seed(3)
    slope = fad.grad(fad.checkpoint(f))(X)
    moved = rng.normal(size=X.shape)
    differences = []
    for sign in (1, -1):
        torch.manual_seed(3)
        differences.append(fad.value_and_grad(fad.checkpoint(f))(X + sign * 1e-6 * moved)[0])
    np.testing.assert_allclose(np.sum(slope * moved), (differences[0] - differences[1]) / 2e-6, rtol=1e-5)


def test_random_numbers_of_the_eager_api_are_refused_under_jit():
    torch = fad.eager
    with pytest.raises(fad.errors.ImpureFunctionError, match=r"fad\.random"):
        fad.jit(lambda x: torch.nn.functional.dropout(torch.as_tensor(x)).value)(X)
    scores = torch.nn.functional.scaled_dot_product_attention(*[torch.ones(1, 4, 2)] * 3, dropout_p=1.0)
    assert not scores.numpy().any()
