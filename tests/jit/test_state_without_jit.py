"""What a jitted function with state returns where it runs without jit."""

import numpy as np

import fad
from fad import nn


def test_a_function_with_state_returns_its_output_where_it_runs_without_jit():
    outside = [0.0]
    with nn.seed(0):
        model = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
        other = nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3))
    other.load_state_dict(model.state_dict())
    f = lambda m, x: {"y": [m(x) * outside[0]]}
    jitted = fad.jit(f)
    for k in range(30):  # what it finds outside changes in every call, so that jit gives it up
        outside[0] = float(k)
        x = np.arange(12.0).reshape(4, 3) ** 2 + k
        found, expected = jitted(model, x), f(other, x)
        assert type(found) is dict
        np.testing.assert_allclose(found["y"][0], expected["y"][0])
    assert jitted.cache_info().misses < 30
    for a, b in zip(model.state_dict().values(), other.state_dict().values(), strict=True):
        np.testing.assert_allclose(a, b)
