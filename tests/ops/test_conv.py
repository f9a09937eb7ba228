"""Convolution and pooling against their definitions, and against PyTorch where it is installed."""

import itertools

import numpy as np
import pytest

import fad
from fad.errors import ShapeMismatchError
from fad.ops.products.conv import conv, conv_transpose
from fad.ops.products.pooling import avg_pool, max_pool

RNG = np.random.default_rng(0)


def plain_conv(x, w, stride, padding, dilation, groups):
    """The definition, in loops."""
    x = np.pad(x, ((0, 0), (0, 0), *padding))
    per_in, per_out = w.shape[1], w.shape[0] // groups
    out = [
        (n - d * (k - 1) - 1) // s + 1 for n, k, s, d in zip(x.shape[2:], w.shape[2:], stride, dilation, strict=True)
    ]
    y = np.zeros((x.shape[0], w.shape[0], *out))
    for o, at in itertools.product(range(w.shape[0]), np.ndindex(*out)):
        first = o // per_out * per_in
        window = tuple(
            slice(i * s, i * s + d * (k - 1) + 1, d)
            for i, s, d, k in zip(at, stride, dilation, w.shape[2:], strict=True)
        )
        part = x[(slice(None), slice(first, first + per_in), *window)]
        y[(slice(None), o, *at)] = np.sum(part * w[o], axis=tuple(range(1, part.ndim)))
    return y


@pytest.mark.parametrize(("spatial", "kernel", "stride", "padding", "dilation", "groups"), [
    ((9,), (3,), (1,), ((0, 0),), (1,), 1),
    ((9,), (3,), (2,), ((1, 2),), (2,), 2),
    ((6, 7), (3, 2), (1, 1), ((1, 1), (1, 0)), (1, 1), 1),
    ((6, 7), (3, 2), (2, 3), ((0, 1), (2, 0)), (2, 1), 4),
    ((4, 5, 3), (2, 2, 2), (1, 2, 1), ((1, 0), (0, 0), (1, 1)), (1, 1, 1), 2),
])  # fmt: skip
def test_conv_is_its_definition_and_its_rules_are_its_transposes(spatial, kernel, stride, padding, dilation, groups):
    x, w = RNG.standard_normal((2, 4, *spatial)), RNG.standard_normal((8, 4 // groups, *kernel))
    f = lambda x, w: conv(x, w, None, stride, padding, dilation, groups)
    y, pull = fad.vjp(f, x, w)
    np.testing.assert_allclose(y, plain_conv(x, w, stride, padding, dilation, groups), atol=1e-12)
    ct, dx, dw = (RNG.standard_normal(a.shape) for a in (y, x, w))
    gx, gw = pull(ct)
    np.testing.assert_allclose(np.sum(gx * dx), np.sum(ct * f(dx, w)))
    np.testing.assert_allclose(np.sum(gw * dw), np.sum(ct * f(x, dw)))


@pytest.mark.parametrize("groups", [1, 2])
def test_per_example_gradients_of_a_kernel_equal_a_loop(groups):
    xs, w = RNG.standard_normal((3, 1, 4, 6, 6)), RNG.standard_normal((4, 4 // groups, 3, 3))
    loss = lambda w, x: np.sum(np.tanh(conv(x, w, padding="same", groups=groups)))
    batched = fad.vmap(fad.grad(loss), in_axes=(None, 0))(w, xs)
    np.testing.assert_allclose(batched, np.stack([fad.grad(loss)(w, x) for x in xs]), atol=1e-12)
    ws = np.stack([w, 2 * w, -w])
    batched = fad.vmap(fad.grad(loss), in_axes=(0, None))(ws, xs[0])
    np.testing.assert_allclose(batched, np.stack([fad.grad(loss)(v, xs[0]) for v in ws]), atol=1e-12)


def test_the_transposed_convolution_is_the_transpose_of_the_convolution():
    x, w = RNG.standard_normal((2, 4, 3, 4)), RNG.standard_normal((4, 3, 3, 2))
    y = conv_transpose(x, w, stride=2, padding=1, output_padding=(1, 0))
    z = RNG.standard_normal(y.shape)
    np.testing.assert_allclose(np.sum(y * z), np.sum(x * conv(z, w, stride=2, padding=1)))


def test_convolutions_of_four_axes_are_offered_too():
    rng = np.random.default_rng(5)
    x, w = rng.normal(size=(1, 2, 3, 2, 3, 2)), rng.normal(size=(3, 2, 2, 1, 2, 2))
    y = fad.nn.functional.conv(x, w)
    assert y[0, 1, 1, 0, 0, 0] == pytest.approx(np.sum(x[0, :, 1:3, :1, :2, :2] * w[1]))
    fad.testing.check_grads(fad.nn.functional.conv, (x, w), order=2)
    fad.testing.check_grads(fad.nn.functional.conv_transpose, (y, w), order=1)


def test_same_padding_keeps_the_size_divided_by_the_stride():
    for n, k, s in itertools.product((5, 6), (2, 3), (1, 2, 3)):
        assert conv(np.ones((1, n)), np.ones((1, 1, k)), stride=s, padding="same").shape == (1, -(-n // s))


def test_a_tie_in_a_pooling_window_shares_the_derivative():
    x = np.array([[1.0, 1.0, 0.0, 2.0]])
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(max_pool(x, (2,))))(x), [[0.5, 0.5, 0, 1]])
    np.testing.assert_array_equal(
        fad.jvp(lambda x: max_pool(x, (2,)), (x,), (np.array([[4.0, 2, 8, 3]]),))[1], [[3, 3]]
    )


def test_padding_counts_in_the_mean_only_if_asked():
    x = np.ones((1, 1, 4, 4))
    np.testing.assert_allclose(avg_pool(x, 3, 1, 1, count_include_pad=False), x)
    assert avg_pool(x, 3, 1, 1)[0, 0, 0, 0] == pytest.approx(4 / 9)


def test_shapes_that_do_not_fit_are_named():
    x = np.ones((2, 3, 8, 8))
    with pytest.raises(ShapeMismatchError, match="3 channels"):
        conv(x, np.ones((4, 2, 3, 3)))
    with pytest.raises(ShapeMismatchError, match="spatial"):
        conv(x, np.ones((4, 3, 3)))
    with pytest.raises(ShapeMismatchError, match="larger"):
        conv(x, np.ones((4, 3, 9, 3)))
    with pytest.raises(ShapeMismatchError, match="larger"):
        max_pool(x, 9)
    with pytest.raises(ValueError, match="'same', 'valid'"):
        conv(x, np.ones((4, 3, 3, 3)), padding="full")


def test_a_single_precision_network_stays_single():
    x, w = RNG.standard_normal((2, 1, 8, 8)).astype("f4"), RNG.standard_normal((3, 1, 3, 3)).astype("f4")
    loss = lambda w: np.sum(avg_pool(max_pool(np.maximum(conv(x, w, np.zeros(3, "f4"), padding=1), 0), 2), 2))
    value, g = fad.value_and_grad(loss)(w)
    assert value.dtype == g.dtype == np.float32


@pytest.mark.oracle
@pytest.mark.parametrize(("stride", "padding", "dilation", "groups"), [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 1)])
def test_convolutions_and_poolings_equal_pytorchs(stride, padding, dilation, groups):
    torch = pytest.importorskip("torch")
    functional = torch.nn.functional
    x, w, b = RNG.standard_normal((2, 4, 9, 8)), RNG.standard_normal((6, 4 // groups, 3, 2)), RNG.standard_normal(6)
    wt = RNG.standard_normal((4, 6 // groups, 3, 2))
    t = lambda a: torch.tensor(a, requires_grad=True)
    pairs = [
        (lambda x, w, b: conv(x, w, b, stride, padding, dilation, groups),
         lambda x, w, b: functional.conv2d(x, w, b, stride, padding, dilation, groups), (x, w, b)),
        (lambda x, w, b: conv_transpose(x, w, b, stride, padding, 0, dilation, groups),
         lambda x, w, b: functional.conv_transpose2d(x, w, b, stride, padding, 0, groups, dilation), (x, wt, b)),
        (lambda x: max_pool(x, 3, stride, 1, dilation),
         lambda x: functional.max_pool2d(x, 3, stride, 1, dilation), (x,)),
        (lambda x: avg_pool(x, 3, stride, 1), lambda x: functional.avg_pool2d(x, 3, stride, 1), (x,)),
        (lambda x: avg_pool(x, 3, stride, 1, False),
         lambda x: functional.avg_pool2d(x, 3, stride, 1, False, False), (x,)),
    ]  # fmt: skip
    for ours, theirs, args in pairs:
        y, pull = fad.vjp(ours, *args)
        tensors = [t(a) for a in args]
        z = theirs(*tensors)
        np.testing.assert_allclose(y, z.detach().numpy(), atol=1e-12)
        ct = RNG.standard_normal(y.shape)
        z.backward(torch.tensor(ct))
        for g, a in zip(pull(ct), tensors, strict=True):
            np.testing.assert_allclose(g, a.grad.numpy(), atol=1e-12)
