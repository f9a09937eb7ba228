"""The loss of labels that are not aligned: against a sum over all ways, numerical derivatives, and PyTorch's."""

import itertools

import numpy as np
import pytest

import fad
from fad.nn import LabelError
from fad.nn import functional as F
from fad.testing import check_grads

RNG = np.random.default_rng(0)


def logs(*shape):
    return F.log_softmax(RNG.standard_normal(shape))


def merged(way, blank):
    """Return a way with its repetitions merged and its blanks left out."""
    return tuple(k for k, _ in itertools.groupby(way) if k != blank)


def by_hand(log_probs, target, blank):
    """Return the loss as the sum over every way there is."""
    times, classes = log_probs.shape
    ways = itertools.product(range(classes), repeat=times)
    good = [sum(log_probs[t, k] for t, k in enumerate(w)) for w in ways if merged(w, blank) == tuple(target)]
    return -np.log(np.sum(np.exp(good))) if good else np.inf


@pytest.mark.parametrize("blank", [0, 2])
@pytest.mark.parametrize("target", [[], [1], [1, 1], [1, 3], [3, 1, 3], [1, 1, 1]])
def test_the_loss_is_a_sum_over_all_ways(target, blank):
    x = logs(5, 1, 4)
    found = F.ctc_loss(x, np.array([[*target, 0]]), [5], [len(target)], blank, reduction="sum")
    np.testing.assert_allclose(found, by_hand(x[:, 0], target, blank), rtol=1e-12)


def test_what_lies_beyond_the_lengths_does_not_count():
    x, targets = logs(6, 3, 4), np.array([[1, 2], [3, 3], [2, 0]])
    sizes, lengths = np.array([6, 4, 3]), np.array([2, 2, 1])
    loss = lambda x: F.ctc_loss(x, targets, sizes, lengths, reduction="none")
    expected = [by_hand(x[:n, i], targets[i, :k], 0) for i, (n, k) in enumerate(zip(sizes, lengths, strict=True))]
    np.testing.assert_allclose(loss(x), expected, rtol=1e-12)
    assert not fad.grad(lambda x: np.sum(loss(x)))(x)[4:, 1].any()
    one_row = F.ctc_loss(x, np.array([1, 2, 3, 3, 2]), sizes, lengths)
    np.testing.assert_allclose(one_row, np.mean(expected / lengths), rtol=1e-12)
    np.testing.assert_allclose(F.ctc_loss(x[:, 0], targets[0], 6, 2, reduction="none"), expected[0], rtol=1e-12)


def test_a_target_that_does_not_fit_is_infinite_or_zero_without_a_gradient():
    x = logs(2, 2, 3)
    targets, twos = np.array([[1, 1], [1, 2]]), [2, 2]
    run = lambda x, zero: F.ctc_loss(x, targets, twos, twos, zero_infinity=zero, reduction="none")
    assert np.isinf(run(x, False)[0])
    assert run(x, True)[0] == 0.0
    for zero in (True, False):
        g = fad.grad(lambda x, zero=zero: np.sum(run(x, zero)))(x)
        assert not g[:, 0].any()
        assert g[:, 1].any()


def test_derivatives_of_both_orders_and_modes_are_numerical_ones():
    z = RNG.standard_normal((5, 2, 3))
    loss = lambda z: F.ctc_loss(F.log_softmax(z), np.array([[1, 2], [1, 1]]), [5, 4], [2, 2])
    check_grads(loss, (z,), 2)
    assert loss(z.astype("float32")).dtype == np.float32


def test_targets_and_lengths_may_be_arguments_of_a_jitted_function():
    x, targets, sizes, lengths = logs(5, 2, 4), np.array([[1, 2], [3, 3]]), np.array([5, 4]), np.array([2, 1])
    for f in (F.ctc_loss, fad.grad(F.ctc_loss)):
        again = fad.jit(f)
        for labels in (targets, targets[::-1].copy()):
            np.testing.assert_allclose(again(x, labels, sizes, lengths), f(x, labels, sizes, lengths), rtol=1e-12)


def test_what_is_no_target_is_refused():
    x = logs(4, 2, 3)
    for targets, sizes, lengths, match in (
        ([[1], [0]], [4, 4], [1, 1], "is the blank"),
        ([[1], [3]], [4, 4], [1, 1], "0 ... 2"),
        ([[1], [1]], [5, 4], [1, 1], "within the 4 times"),
        ([[1], [1]], [4, 4], [1, 2], "the 1 labels"),
        ([1], [4, 4], [1, 1], "add up to 2"),
        ([[1]], [4, 4], [1, 1], "got 1 targets"),
        ([[1.0], [1.0]], [4, 4], [1, 1], "whole numbers"),
    ):
        with pytest.raises(ValueError, match=match):
            F.ctc_loss(x, np.array(targets), sizes, lengths)
    with pytest.raises(LabelError, match="blank=7"):
        F.ctc_loss(x, np.array([[1], [1]]), [4, 4], [1, 1], 7)


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_values_and_gradients_agree_with_torch(reduction):
    torch = pytest.importorskip("torch")
    z, targets = RNG.standard_normal((12, 4, 5)), RNG.integers(1, 5, (4, 4))
    sizes, lengths = np.array([12, 10, 7, 9]), np.array([4, 3, 0, 2])
    tz = torch.tensor(z, requires_grad=True)
    given = map(torch.tensor, (targets, sizes, lengths))
    theirs = torch.nn.functional.ctc_loss(tz.log_softmax(2), *given, 0, reduction)
    theirs.sum().backward()
    loss = lambda z: F.ctc_loss(F.log_softmax(z), targets, sizes, lengths, reduction=reduction)
    np.testing.assert_allclose(loss(z), theirs.detach().numpy(), rtol=1e-10)
    np.testing.assert_allclose(fad.grad(lambda z: np.sum(loss(z)))(z), tz.grad.numpy(), rtol=1e-9, atol=1e-12)
