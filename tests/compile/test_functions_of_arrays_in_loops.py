"""Functions that polynomials compute, of arrays in loops: in vectors, with the C library's answers far from zero."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from natively import native

import fad

SHAPES = [(1,), (6,), (8,), (17,), (33,), (100,), (3, 5), (2, 40), (2, 3, 4)]
FUNCTIONS = {
    "exp": np.exp, "log1p": lambda x: np.log1p(np.abs(x)), "tanh": np.tanh, "sin": np.sin, "tan": np.tan,
    "arctan2": lambda x: np.arctan2(x, 1.0 - x), "power": lambda x: np.abs(x) ** 1.3,
    "power of a number": lambda x: 1.5**x, "chain": lambda x: np.exp(-0.5 * x * x) * np.cos(3.0 * x),
}  # fmt: skip


def repeat(f, steps=100):
    """Return a program with a loop of calls of f."""

    def program(x):
        total = np.zeros_like(x)
        for k in range(steps):
            total = 0.5 * total + f(x + 0.001 * k + 0.01 * total)
        return total

    return program


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_numpy(name):
    program = repeat(FUNCTIONS[name])
    for shape in SHAPES:
        x = np.random.default_rng(0).uniform(-1.0, 1.0, shape)
        np.testing.assert_allclose(native(program, x), program(x), rtol=1e-13)
        g = fad.grad(lambda x: (program(x) ** 2).sum())
        np.testing.assert_allclose(native(g, x), g(x), rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("dtype", [np.float32, np.int64])
def test_other_dtypes_are_computed_as_outside_of_loops(dtype):
    x = np.arange(1, 12).astype(dtype)

    def program(x):
        total = np.zeros(x.shape, np.exp(x).dtype)
        for _ in range(100):
            total = 0.5 * total + np.sin(x)
        return total

    wanted = program(x)
    got = native(program, x)
    assert got.dtype == wanted.dtype
    np.testing.assert_allclose(got, wanted, rtol=3e-7 if dtype is np.float32 else 1e-14)


def test_arguments_far_from_zero_and_infinite_ones_have_their_values():
    x = np.array([0.5, 1e9, -3e15, np.inf, 1e300, 0.25, np.nan, 2.0, 1e22])
    program = repeat(np.sin)
    with np.errstate(invalid="ignore"):
        np.testing.assert_allclose(native(program, x), program(x), rtol=1e-12)
        tangent = lambda x: repeat(np.tan, 60)(x)
        np.testing.assert_allclose(native(tangent, x[:3]), tangent(x[:3]), rtol=1e-12)


def test_operands_lie_in_any_order():
    table = np.random.default_rng(1).uniform(0.1, 1.0, (7, 12))

    def program(table):
        total = np.zeros((6, 7))
        for _ in range(100):
            total = 0.5 * total + np.exp(table.T[::2] * 0.5) + np.arctan2(table[:, ::-2].T, table[0, :7])
        return total

    np.testing.assert_allclose(native(program, table), program(table), rtol=1e-13)
