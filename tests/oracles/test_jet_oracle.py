"""Power series agree with those of jax.experimental.jet, of what has a rule there."""

import numpy as np
import pytest

import fad

jax = pytest.importorskip("jax", reason="JAX, the oracle of this test, is not installed")
jnp = pytest.importorskip("jax.numpy", reason="JAX, the oracle of this test, is not installed")
jet = pytest.importorskip("jax.experimental.jet", reason="JAX, the oracle of this test, is not installed").jet

pytestmark = pytest.mark.oracle


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


X = np.array([[0.7, 0.4, 1.1], [0.3, 0.9, 0.6]])
SERIES = [X[::-1] - 0.5, np.cos(X), X * X - 0.4, np.sin(3 * X), 0.3 - X]

PROGRAMS = {
    **{name: lambda np, x, name=name: getattr(np, name)(x) for name in (
        "sin", "cos", "exp", "log", "log1p", "expm1", "tanh", "sqrt", "square", "sinh", "cosh", "negative", "abs",
        "sum", "cumsum", "max", "arcsinh", "reciprocal",
    )},
    "products and quotients": lambda np, x: x * x[0] / (1 + x[1] ** 2) - x,
    "powers": lambda np, x: x**3 + x**0.5 + 2.0**x + x**x,
    "choices": lambda np, x: np.where(x > 0.5, np.maximum(x, 0.8), x * x),
    "shapes": lambda np, x: np.concatenate([x.T[::-1], np.transpose(x * x)]).reshape(3, 4)[1:],
    "a network": lambda np, x: np.tanh(x @ np.tanh(np.cos(np.arange(9.0)).reshape(3, 3) @ x.T)),
    "einsum": lambda np, x: np.einsum("ij,kj,ik->j", x, np.sin(x), x @ x.T),
    "softmax": lambda np, x: np.exp(x - np.max(x)) / np.sum(np.exp(x - np.max(x)), axis=1, keepdims=True),
}  # fmt: skip


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_series_of_a_program_is_that_of_jax(name):
    f = PROGRAMS[name]
    y, series = fad.jet(lambda x: f(np, x), (X,), (SERIES,))
    expected, others = jet(lambda x: f(jnp, x), (jnp.asarray(X),), ([jnp.asarray(c) for c in SERIES],))
    np.testing.assert_allclose(y, expected, rtol=1e-12)
    for c, e in zip(series, others, strict=True):
        np.testing.assert_allclose(c, e, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("scaled", [True, False])
def test_several_arguments_and_both_scales_are_those_of_jax(scaled):
    def f(np, x, y):
        return {"a": np.sin(x * y), "b": [x + y, np.exp(x)]}

    primals, series = (0.4, 0.3), ([1.0, 0.5, -0.3], [0.2, 0.0, 0.7])
    found = fad.jet(lambda *xs: f(np, *xs), primals, series, factorial_scaled=scaled)
    expected = jet(lambda *xs: f(jnp, *xs), primals, series, factorial_scaled=scaled)
    assert fad.tree.structure(found) == fad.tree.structure(expected)
    np.testing.assert_allclose(fad.tree.leaves(found), fad.tree.leaves(expected), rtol=1e-12)
