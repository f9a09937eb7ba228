"""Initial values have the distributions that their names promise."""

import numpy as np
import pytest

from fad import backends, config, nn, random
from fad.nn import init

KEY, SHAPE = random.key(0), (300, 200)


@pytest.mark.parametrize(("make", "deviation"), [
    (init.xavier_uniform, np.sqrt(2 / 500)),
    (init.xavier_normal, np.sqrt(2 / 500)),
    (init.kaiming_uniform, np.sqrt(2 / 200)),
    (init.kaiming_normal, np.sqrt(2 / 200)),
    (lambda key, shape: init.kaiming_normal(key, shape, mode="fan_out", gain=1.0), np.sqrt(1 / 300)),
    (lambda key, shape: init.uniform(key, shape, -1.0, 1.0), np.sqrt(1 / 3)),
    (lambda key, shape: init.normal(key, shape, 0.0, 0.5), 0.5),
    (lambda key, shape: init.trunc_normal(key, shape, 0.0, 0.5, -1.0, 1.0), 0.5 * 0.8796256610342398),
])  # fmt: skip
def test_the_standard_deviation_is_the_promised_one(make, deviation):
    w = make(KEY, SHAPE)
    assert w.shape == SHAPE
    assert abs(w.mean()) < 0.02 * deviation
    assert abs(w.std() / deviation - 1) < 0.02


def test_uniform_and_truncated_numbers_stay_within_their_bounds_and_come_near_them():
    for make, bound in [
        (init.xavier_uniform, np.sqrt(6 / 500)), (init.kaiming_uniform, np.sqrt(6 / 200)),
        (lambda key, shape: init.kaiming_uniform(key, shape, gain=1.0, mode="fan_out"), np.sqrt(3 / 300)),
        (lambda key, shape: init.trunc_normal(key, shape, low=-0.5, high=0.5), 0.5),
    ]:  # fmt: skip
        w = make(KEY, SHAPE)
        assert 0.999 * bound < np.abs(w).max() <= bound


def test_layers_that_start_as_the_identity_are_the_identity():
    x = np.random.default_rng(0).standard_normal((2, 4, 6))
    linear, conv = nn.Linear(6, 6, bias=False), nn.Conv1d(4, 4, 3, padding=1, groups=2, bias=False)
    linear.weight, conv.weight = init.eye((6, 6)), init.dirac((4, 2, 3), groups=2)
    np.testing.assert_array_equal(linear(x), x)
    np.testing.assert_array_equal(conv(x), x)


def test_gains_are_those_of_torch():
    torch = pytest.importorskip("torch", reason="PyTorch, the oracle of this test, is not installed")
    for name, param in [("relu", None), ("tanh", None), ("selu", None), ("sigmoid", None), ("linear", None),
                        ("conv2d", None), ("leaky_relu", None), ("leaky_relu", 0.3)]:  # fmt: skip
        assert init.calculate_gain(name, param) == torch.nn.init.calculate_gain(name, param)
    with pytest.raises(ValueError, match="no gain is known for 'bent'"):
        init.calculate_gain("bent")


def test_kernels_of_convolutions_count_their_field():
    assert init.fans((8, 3, 5, 5)) == (75, 200)
    with pytest.raises(ValueError, match="two axes"):
        init.fans((3,))
    with pytest.raises(ValueError, match="fan_in"):
        init.kaiming_normal(KEY, SHAPE, mode="both")


@pytest.mark.parametrize("shape", [(4, 4), (3, 7), (7, 3), (4, 2, 3)])
def test_orthogonal_matrices_are_orthogonal(shape):
    w = init.orthogonal(KEY, shape, gain=2.0).reshape(shape[0], -1)
    w = w if w.shape[0] <= w.shape[1] else w.T
    np.testing.assert_allclose(w @ w.T, 4 * np.eye(len(w)), atol=1e-12)


def test_constants_follow_the_default_dtype_and_backend():
    with config.use(default_dtype="float32"):
        assert init.constant(2.0, (2,)).dtype == np.float32
        assert init.orthogonal(KEY, (2, 2)).dtype == np.float32
    with backends.use("numpy"):
        assert np.array_equal(init.ones((2,)) + init.zeros((2,)), np.ones(2))


def test_layers_start_as_torchs_do():
    layer = nn.Conv2d(3, 16, 5, key=0)
    bound = 1 / np.sqrt(75)
    assert 0.95 * bound < np.abs(layer.weight).max() <= bound
    assert abs(nn.Embedding(100, 50, key=0).weight.std() - 1) < 0.05


def test_eye_refuses_a_shape_that_is_no_matrix():
    with pytest.raises(ValueError, match="two numbers"):
        init.eye((2, 3, 4))
