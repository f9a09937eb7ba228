"""A transform that gives a derivative runs the function once, whatever its mode: its effects come once, as plainly."""

from __future__ import annotations

import numpy as np
import pytest

import fad


def _widening(x):
    """Return more numbers than are given: a Jacobian goes forward."""
    return np.concatenate([np.sin(x), x * x, x[::-1] * x])


def _narrowing(x):
    return np.array([np.sum(x**2), np.prod(x)])


def _nothing(x):
    return np.sum(x) + np.arange(3.0)


_POINT = np.array([0.3, 0.5, 0.7])
_MAKE = {
    "jacobian": lambda f: fad.jacobian(f),
    "jacobian in chunks": lambda f: fad.jacobian(f, chunk_size=2),
    "jacfwd": lambda f: fad.jacfwd(f),
    "jacfwd in chunks": lambda f: fad.jacfwd(f, chunk_size=2),
    "jacrev": lambda f: fad.jacrev(f),
    "jacrev in chunks": lambda f: fad.jacrev(f, chunk_size=1),
    "hessian": lambda f: fad.hessian(f),
    "hessian in chunks": lambda f: fad.hessian(f, chunk_size=2),
    "jacobian of vmap": lambda f: fad.jacobian(lambda x: fad.vmap(f)(np.stack([x, x, x]))),
    "jacfwd of jacobian": lambda f: fad.jacfwd(fad.jacobian(f), chunk_size=1),
    "jvp": lambda f: lambda x: fad.jvp(f, (x,), (x,)),
    "linearize": lambda f: lambda x: fad.linearize(f, x)[1](x),
}


@pytest.mark.parametrize("fun", [_widening, _narrowing])
@pytest.mark.parametrize("name", _MAKE)
def test_the_function_writes_into_an_array_from_outside_once(name, fun):
    kept = np.array([0.25])

    def f(x):
        for each in [kept]:
            each *= 2
        return fun(x)

    _MAKE[name](f)(_POINT)
    assert kept == 0.5


@pytest.mark.parametrize("name", ["jacobian", "jacfwd", "jacfwd in chunks", "jacrev", "hessian", "hessian in chunks"])
@pytest.mark.parametrize("x", [_POINT, np.zeros(0)], ids=["three", "no input"])
def test_the_function_is_called_once(name, x):
    calls = []

    def f(x):
        calls.append(1)
        return _nothing(x)

    _MAKE[name](f)(x)
    assert len(calls) == 1


@pytest.mark.parametrize("chunk_size", [None, 1, 2, "auto"])
@pytest.mark.parametrize("fun", [_widening, _narrowing])
def test_every_mode_of_the_jacobian_agrees(fun, chunk_size):
    expected = fad.jacrev(fun)(_POINT)
    for mode in ("auto", "fwd", "rev"):
        np.testing.assert_allclose(fad.jacobian(fun, mode=mode, chunk_size=chunk_size)(_POINT), expected, rtol=1e-14)


def test_the_jacobian_of_a_real_point_and_complex_values_is_complex():
    def f(x):
        return np.concatenate([np.exp(1j * x), (2 + 1j) * x**2])

    expected = np.concatenate([np.diag(1j * np.exp(1j * _POINT)), np.diag((2 + 1j) * 2 * _POINT)])
    np.testing.assert_allclose(fad.jacobian(f)(_POINT), expected, rtol=1e-14)


def test_a_wide_jacobian_needs_only_the_reverse_rule():
    @fad.custom_vjp
    def cube(x):
        return x**3

    cube.defvjp(lambda x: (x**3, x), lambda x, ct: (3 * x**2 * ct,))
    jacobian = fad.jacobian(lambda x: np.stack([cube(x), x]))(_POINT)
    np.testing.assert_allclose(jacobian, np.stack([np.diag(3 * _POINT**2), np.eye(3)]), rtol=1e-14)


def test_a_jitted_function_in_a_jitted_one_writes_into_an_array_from_outside_once():
    kept = np.array([0.25])

    def f(x):
        for each in [kept]:
            each *= 2
        return np.sum(np.array(x))

    assert fad.jit(fad.jit(f))(_POINT) == np.sum(_POINT)
    assert kept == 0.5


def test_a_wide_jacobian_through_a_rule_that_clips_is_the_one_by_rows():
    @fad.custom_vjp
    def clipped(x):
        return 3.0 * x

    clipped.defvjp(lambda x: (3.0 * x, None), lambda _, ct: (np.clip(3.0 * ct, -1.0, 1.0),))

    def f(x):
        y = clipped(x)
        return np.concatenate([y, y * y])

    np.testing.assert_array_equal(fad.jacobian(f)(_POINT), fad.jacrev(f)(_POINT))
