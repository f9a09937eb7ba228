"""grad, jvp and vmap, nested in every order to depth four, agree with JAX to 1e-10 in float64."""

import itertools

import numpy as np
import pytest

import fad

jax = pytest.importorskip("jax", reason="JAX, the oracle of this test, is not installed")
jnp = pytest.importorskip("jax.numpy", reason="JAX, the oracle of this test, is not installed")

pytestmark = pytest.mark.oracle


@pytest.fixture(autouse=True, scope="module")
def _double_precision():
    before = jax.config.jax_enable_x64
    jax.config.update("jax_enable_x64", True)
    yield
    jax.config.update("jax_enable_x64", before)


def rosenbrock(np, x):
    return np.sum(10.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2) / 100


def softmax_loss(np, x):
    w = np.cos(np.arange(9.0)).reshape(3, 3)
    logits = w @ np.tanh(x)
    return np.log(np.sum(np.exp(logits))) - logits[1]


def recurrence(np, x):
    h = x * 0.5
    for _ in range(3):
        h = np.sin(h + 0.3 * x[::-1]) / (1.0 + h**2)
    return np.sum(h * x)


def quotients(np, x):
    y = np.where(x > 0, np.sqrt(1 + x**2), np.exp(x))
    return np.prod(y) / (1 + np.linalg.norm(x) ** 2) + np.sum(np.cumsum(y) * x)


PROGRAMS = [rosenbrock, softmax_loss, recurrence, quotients]
X = np.array([0.7, -0.4, 1.1])
V = np.array([0.3, -1.2, 0.5])
SHIFTS = np.array([[0.0, 0.1, 0.0], [-0.2, 0.0, 0.3]])
WEIGHTS = np.array([0.6, -1.1])

# Each turns a function from vectors to numbers into another one, so that they nest in any order.
STEPS = {
    "grad": lambda t, f: lambda x: t.grad(f)(x) @ V,
    "jvp": lambda t, f: lambda x: t.jvp(f, (x,), (V,))[1],
    "vmap": lambda t, f: lambda x: t.vmap(f)(x + SHIFTS) @ WEIGHTS,
}
NESTS = [nest for depth in (1, 2, 3) for nest in itertools.product(STEPS, repeat=depth)]
DEEP = list(itertools.product(STEPS, repeat=4))


def _compare(program, nest):
    ours, theirs = (lambda x: program(np, x)), (lambda x: program(jnp, x))
    for name in nest:
        ours, theirs = STEPS[name](fad, ours), STEPS[name](jax, theirs)
    np.testing.assert_allclose(ours(X), jax.jit(theirs)(X), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("nest", NESTS, ids=" of ".join)
@pytest.mark.parametrize("program", PROGRAMS)
def test_any_nesting_to_depth_three_agrees_with_jax(program, nest):
    _compare(program, nest)


@pytest.mark.parametrize("nest", DEEP, ids=" of ".join)
def test_any_nesting_to_depth_four_agrees_with_jax(nest):
    _compare(softmax_loss, nest)


@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
def test_jacobians_and_hessians_agree_with_jax(program, name):
    found = getattr(fad, name)(lambda x: program(np, x))(X)
    wanted = jax.jit(getattr(jax, name)(lambda x: program(jnp, x)))(X)
    np.testing.assert_allclose(found, wanted, rtol=1e-10, atol=1e-10)


def _complex_program(np, z):
    return np.sum(np.abs(np.exp(z) * np.conj(z) + z.real * z[::-1]) ** 2)


def test_complex_gradients_agree_with_jax():
    z = np.array([0.3 + 0.4j, -0.5 + 1.0j])
    ours, theirs = (lambda z: _complex_program(np, z)), (lambda z: _complex_program(jnp, z))
    np.testing.assert_allclose(fad.grad(ours)(z), jax.grad(theirs)(z), rtol=1e-10)
    np.testing.assert_allclose(fad.jvp(ours, (z,), (z * 1j,))[1], jax.jvp(theirs, (z,), (z * 1j,))[1], rtol=1e-10)
    for part in (lambda g, z: g(z).real.sum(), lambda g, z: g(z).imag.sum()):
        found = fad.grad(lambda z, part=part: part(fad.grad(ours), z))(z)
        wanted = jax.grad(lambda z, part=part: part(jax.grad(theirs), z))(z)
        np.testing.assert_allclose(found, wanted, rtol=1e-10)
    holomorphic = lambda np: lambda z: np.sum(np.sin(z) * np.exp(1j * z) / (2 + z))
    found = fad.grad(holomorphic(np), holomorphic=True)(z)
    np.testing.assert_allclose(found, jax.grad(holomorphic(jnp), holomorphic=True)(z), rtol=1e-10)
