"""Derivatives of loops with eigh, svd and qr in their bodies: one recorded step, also where values are repeated."""

import numpy as np
import pytest

import fad
from fad import control
from fad.compile.targets.select import has_llvm
from fad.errors import DerivativeError

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4))
SYMMETRIC = A + A.T


def exponentials(x):
    """A function of a symmetric matrix in each step, smooth where eigenvalues are repeated."""
    total = np.zeros((4, 4))
    for k in range(12):
        w, v = np.linalg.eigh(np.diag(x) * (1.0 + k) + 0.1 * total)
        total = total * 0.5 + (v * np.exp(-w)) @ v.T + SYMMETRIC * 0.1 * np.sum(x) * (k > 5)
    return np.sum(np.sin(total))


def rotations(x):
    """The nearest rotation, smooth where singular values are repeated."""
    m = np.eye(4)
    for k in range(12):
        u, _, vh = np.linalg.svd(m + 0.05 * k * np.outer(x, x[::-1]))
        m = u @ vh * 0.9 + np.diag(x) * 0.1
    return np.sum(np.cos(m))


def triangles(x):
    m = A
    for _ in range(12):
        q, r = np.linalg.qr(m + np.diag(x))
        m = r @ q + 0.1 * SYMMETRIC
    return np.sum(np.tanh(m))


def principal_values(x):
    total = 0.0
    for k in range(12):
        w = np.linalg.eigvalsh(SYMMETRIC * np.cos(0.1 * k) + np.diag(x))
        total = total + w[-1] * np.exp(0.1 * w[0])
    return total


def in_a_scan(x):
    def step(m, k):
        w, v = np.linalg.eigh(m)
        return (v * np.tanh(w)) @ v.T + np.diag(x) * k, w

    m, ws = control.scan(step, np.diag(x), np.arange(8.0))
    return np.sum(np.sin(m)) + np.sum(ws**2)


APART, REPEATED = np.array([0.3, -0.7, 1.1, 0.45]), np.full(4, 0.4)
PROGRAMS = [exponentials, rotations, triangles, principal_values, in_a_scan]


def differences(f, x, d):
    h = 1e-5
    return (8 * (f(x + h * d) - f(x - h * d)) - f(x + 2 * h * d) + f(x - 2 * h * d)) / (12 * h)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
@pytest.mark.parametrize(("first", "loops"), [(APART, "capture"), (REPEATED, "capture")], ids=["apart", "repeated"])
def test_derivatives_are_those_of_differences_whether_values_are_repeated_or_not(f, first, loops):
    d = np.array([0.5, -0.2, 0.3, 0.9])
    g, push = fad.grad(f), lambda x: fad.jvp(f, (x,), (d,))[1]
    with fad.config.use(loops=loops):
        fast, pushed = fad.jit(g), fad.jit(push)
        for x in (first, APART, REPEATED):
            wanted = differences(f, x, d)
            for found in (g(x) @ d, fast(x) @ d, push(x), pushed(x)):
                np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("f", [exponentials, triangles, in_a_scan], ids=lambda f: f.__name__)
def test_second_derivatives_and_batches_are_those_without_jit(f):
    xs = np.stack([APART, REPEATED, APART[::-1]])
    hessian, batch = fad.hessian(f), fad.vmap(fad.grad(f))
    each = np.stack([fad.grad(f)(x) for x in xs])
    with fad.config.use(loops="capture"):
        np.testing.assert_allclose(batch(xs), each, rtol=1e-8, atol=1e-9)
        fast, many = fad.jit(hessian), fad.jit(batch)
        for x in (APART, REPEATED):
            np.testing.assert_allclose(fast(x), hessian(x), rtol=1e-6, atol=1e-7)
        for given in (xs[[0, 2]], xs[[0, 1]]):
            np.testing.assert_allclose(many(given), np.stack([fad.grad(f)(x) for x in given]), rtol=1e-8, atol=1e-9)


@pytest.mark.skipif(not has_llvm(), reason="llvmlite is not installed")
@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_gradient_asks_in_each_step_only_once_values_were_repeated(f):
    with fad.config.use(loops="capture"):
        fast = fad.jit(fad.grad(f))
        fast(APART), fast(APART)
        if f is not rotations:  # the first matrix is the identity in all calls
            # An exponential may overflow, so that the gradient is looked at once, as a whole.
            assert f" {int(f is exponentials)} guards" in fast.explain()
            assert "calls of NumPy" not in fast.explain(), fast.explain()
        fast(REPEATED)
    assert (" 0 guards" in fast.explain()) is (f in (triangles, principal_values))


def test_dependent_columns_in_a_step_are_an_error_that_says_so():
    def f(x):
        total = 0.0
        for k in range(12):
            q, r = np.linalg.qr(np.outer(x, x) * (k == 7) + np.diag(x) * (k != 7))
            total = total + r[0, 1] + q[0, 0]
        return total

    with fad.config.use(loops="capture"):
        for g in (fad.grad(f), fad.jit(fad.grad(f))):
            for _ in range(2):
                with pytest.raises(DerivativeError, match="linearly dependent"):
                    g(APART)


def spectra(x):
    """The derivative of eig asks in each step whether values are repeated."""
    for _ in range(8):
        x = 0.9 * x + 0.02 * np.sin(np.linalg.eig(np.outer(x, x) + np.diag(np.arange(4.0)))[0].real)
    return x


def one_spectrum(x):
    return control.cond(x[0] > 0, lambda x: np.linalg.eig(np.outer(x, x) + np.diag(np.arange(4.0)))[0].real, np.sin, x)


@pytest.mark.parametrize("f", [spectra, one_spectrum], ids=lambda f: f.__name__)
def test_a_linear_map_whose_derivative_asks_for_values_is_recorded_step_by_step(f):
    push = lambda x, t: fad.linearize(f, x)[1](t)
    x, t = RNG.normal(size=4), RNG.normal(size=4)
    with fad.config.use(loops="capture"):
        fast = fad.jit(push)
        for point in (x, x * 0.5, -x, x):
            np.testing.assert_allclose(fast(point, t), push(point, t), rtol=1e-9, atol=1e-12)
            np.testing.assert_allclose(push(point, t), fad.jvp(f, (point,), (t,))[1], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_linear_map_of_a_loop_is_its_derivative_where_values_are_repeated(f):
    d = np.array([0.5, -0.2, 0.3, 0.9])
    with fad.config.use(loops="capture"):
        for x in (APART, REPEATED):
            y, push = fad.linearize(f, x)
            np.testing.assert_allclose(y, f(x), rtol=1e-12)
            for _ in range(2):
                np.testing.assert_allclose(push(d), differences(f, x, d), rtol=1e-6, atol=1e-8)
            np.testing.assert_allclose(fad.jit(lambda x: fad.linearize(f, x)[1](d))(x), push(d), rtol=1e-9, atol=1e-10)
