"""Programs that change arrays in place are under every transform what they are in plain NumPy."""

import numpy as np
import pytest
from in_place.programs import PROGRAMS

import fad

X = np.array([1.1, 2.2, 0.7, 3.4])
EYE = np.eye(4)
EVERY = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)


def differences(f, x, h=1e-5):
    """Return the gradient of a plain program by differences extrapolated to no distance."""

    def central(e, h):
        return (f(x + h * e) - f(x - h * e)) / (2 * h)

    single = f.__name__ == "a_narrow_buffer_rounds"
    h = 0.05 if single else h
    return np.array([(4 * central(e, h / 2) - central(e, h)) / 3 for e in np.eye(x.size)])


def close(found, wanted, f, rtol=1e-7):
    rtol = 1e-4 if f.__name__ == "a_narrow_buffer_rounds" else rtol
    np.testing.assert_allclose(found, wanted, rtol=rtol, atol=rtol * (1 + np.max(np.abs(wanted))))


@EVERY
def test_value_and_gradient_are_those_of_the_plain_program_and_the_argument_stays_as_it_was(f):
    x = X.copy()
    value, g = fad.value_and_grad(f)(x)
    np.testing.assert_array_equal(x, X)
    close(value, f(X.copy()), f, 1e-14)
    close(g, differences(f, X), f)


@EVERY
def test_a_pullback_can_be_called_again_and_results_may_be_overwritten(f):
    y, pullback = fad.vjp(lambda x: (f(x), x), X)
    first = pullback((1.0, np.ones(4)))[0]
    y[1][...] = 0.0
    np.testing.assert_array_equal(pullback((1.0, np.ones(4)))[0], first)


@EVERY
def test_forward_mode_agrees(f):
    g = differences(f, X)
    close([fad.jvp(f, (X,), (e,))[1] for e in EYE], g, f)
    close([fad.linearize(f, X)[1](e) for e in EYE], g, f)


@EVERY
def test_a_batch_is_a_loop(f):
    xs = np.stack([X, X * 1.01, X * 0.99])
    close(fad.vmap(f)(xs), [f(x.copy()) for x in xs], f, 1e-13)
    close(fad.vmap(fad.grad(f))(xs), [fad.grad(f)(x) for x in xs], f, 1e-12)


@EVERY
def test_a_jitted_program_agrees_in_every_call(f):
    value, gradient = fad.jit(f), fad.jit(fad.grad(f))
    for x in (X, X * 1.01, X):
        given = x.copy()
        close(value(given), f(x.copy()), f, 1e-12)
        close(gradient(given), fad.grad(f)(x), f, 1e-11)
        np.testing.assert_array_equal(given, x)


@EVERY
def test_second_derivatives_agree_in_every_nesting(f):
    wanted = np.stack([differences(lambda x, i=i: fad.grad(f)(x)[i], X, 1e-4) for i in range(4)])
    if f.__name__ == "a_narrow_buffer_rounds":
        pytest.skip("differences of single precision say nothing about second derivatives")
    for found in (fad.hessian(f)(X), fad.jacobian(fad.grad(f))(X), fad.jacrev(fad.grad(f))(X)):
        close(found, wanted, f, 1e-5)


@EVERY
def test_checkpoint_scan_and_jet_agree(f):
    g = differences(f, X)
    close(fad.grad(lambda x: fad.checkpoint(lambda y: f(y * 1.0))(x))(X), g, f)
    last = fad.grad(lambda x: fad.scan(lambda c, _: (c + f(x * 1.0), None), 0.0, np.zeros(2))[0])(X)
    close(last, 2 * g, f)


def test_functions_that_share_their_code_may_write_or_not():
    runs = []

    def writes(x):
        y = np.zeros(4)
        y[1:] = x[1:]
        return y

    def doubles(x):
        return 2.0 * x

    def composed(step):
        def f(x):
            runs.append(step)
            return np.sum(step(x) ** 2)

        return f

    for step in (doubles, writes, doubles, writes):
        g = fad.grad(composed(step))(X)
        np.testing.assert_allclose(g, 8 * X if step is doubles else 2 * X * [0, 1, 1, 1])
    assert runs == [doubles, writes, doubles, writes]  # each was known before it ran


def test_functions_that_hold_each_other_are_looked_at_once():
    def even(x, n):
        return x if n == 0 else odd(x * 2.0, n - 1)

    def odd(x, n):
        return even(x * 3.0, n - 1)

    assert fad.grad(lambda x: even(x, 2))(1.0) == 6.0
