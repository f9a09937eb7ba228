"""No NaN where the mathematics has an answer or a subgradient is documented: in every mode, under jit and vmap."""

import math
import warnings

import numpy as np
import pytest

import fad
import fad.nn.functional
import fad.scipy.special

EYE = np.eye(3)
W = np.array([[1.0, 0.3, -0.2], [0.3, 0.5, 0.7], [-0.2, 0.7, -1.0]])
EPS = np.finfo(float).eps


def softmax(x):
    e = np.exp(x - np.max(x))
    return e / np.sum(e)


def by_eigh(a):
    w, v = np.linalg.eigh(a)
    return np.sum(W * ((v * np.exp(w)) @ v.T))


def by_svd(a):
    u, s, vh = np.linalg.svd(a)
    return np.sum(W * ((u * np.sin(s)) @ vh))


# what -> (function of one array, the point, its gradient there)
POINTS = {
    "norm(0)": (np.linalg.norm, np.zeros(3), np.zeros(3)),
    "norm(0) of a matrix": (np.linalg.norm, np.zeros((2, 2)), np.zeros((2, 2))),
    "norm(0) of rows": (lambda x: np.sum(np.linalg.norm(x, axis=1)), np.zeros((2, 2)), np.zeros((2, 2))),
    "norm(0) of order 3": (lambda x: np.linalg.norm(x, 3), np.zeros(3), np.zeros(3)),
    "eigh(identity)": (by_eigh, EYE, np.e * W),
    "svd of repeated singular values": (by_svd, EYE, None),
    "svd of zero": (by_svd, np.zeros((3, 3)), W),
    "spectral norm of a zero matrix among others": (
        lambda x: np.sum(np.linalg.norm(x, 2, axis=(1, 2))), np.stack([np.zeros((2, 2)), np.diag([3.0, 1.0])]),
        np.stack([np.zeros((2, 2)), np.diag([1.0, 0.0])]),
    ),
    "sqrt in a branch not taken": (
        lambda x: np.sum(np.where(x > 0, np.sqrt(x), 0.0)), np.array([-1.0, 0.0, 4.0]), np.array([0.0, 0.0, 0.25]),
    ),
    "log in a branch not taken": (
        lambda x: np.sum(np.where(x > 0, np.log(np.abs(x)), x)), np.array([0.0, 2.0]), np.array([1.0, 0.5]),
    ),
    "logsumexp with -inf": (
        fad.scipy.special.logsumexp, np.array([0.0, -np.inf, 0.0]), np.array([0.5, 0.0, 0.5]),
    ),
    "logaddexp with -inf": (lambda x: np.logaddexp(x[0], x[1]), np.array([1.0, -np.inf]), np.array([1.0, 0.0])),
    "softmax masked by -inf": (
        lambda x: softmax(np.where([True, True, False], x, -np.inf))[0], np.zeros(3), np.array([0.25, -0.25, 0.0]),
    ),
    "nn.softmax masked by -inf": (
        lambda x: fad.nn.functional.softmax(np.where([True, True, False], x, -np.inf), 0)[0],
        np.zeros(3), np.array([0.25, -0.25, 0.0]),
    ),
    "x**0": (lambda x: np.sum(x**0), np.array([0.0, -1.0]), np.zeros(2)),
    "x**0.0": (lambda x: np.sum(x**0.0), np.array([0.0, 2.0]), np.zeros(2)),
    "x**2.0": (lambda x: np.sum(x**2.0), np.array([0.0, -1.0]), np.array([0.0, -2.0])),
    "0**y": (lambda y: np.sum(0.0**y), np.array([1.0, 2.5]), np.zeros(2)),
    "0**y, with an array of zeros": (lambda y: np.sum(np.zeros(2) ** y), np.array([1.0, 2.5]), np.zeros(2)),
    "prod with a zero": (np.prod, np.array([0.0, 2.0, 3.0]), np.array([6.0, 0.0, 0.0])),
    "prod with zeros": (np.prod, np.array([0.0, 2.0, 0.0]), np.zeros(3)),
    "cumprod with a zero": (lambda x: np.sum(np.cumprod(x)), np.array([2.0, 0.0, 3.0]), np.array([1.0, 8.0, 0.0])),
    "log1p(-1 + eps)": (lambda x: np.sum(np.log1p(x)), np.array([-1.0 + EPS]), np.array([1 / EPS])),
    "hypot(0, 0)": (lambda x: np.hypot(x[0], x[1]), np.zeros(2), np.zeros(2)),
    "arctan2(0, 0)": (lambda x: np.arctan2(x[0], x[1]), np.zeros(2), np.zeros(2)),
    "abs(0)": (lambda x: np.sum(np.abs(x)), np.zeros(2), np.zeros(2)),
    "sinc(0)": (lambda x: np.sum(np.sinc(x)), np.zeros(2), np.zeros(2)),
    "det of a singular matrix": (np.linalg.det, np.diag([1.0, 2.0, 0.0]), np.diag([0.0, 0.0, 2.0])),
    "std of equal numbers": (np.std, np.ones(3), np.zeros(3)),
    "xlogy(0, 0)": (
        lambda x: np.sum(fad.scipy.special.xlogy(x[:1], x[1:])), np.array([0.0, 1.0]), np.array([0.0, 0.0]),
    ),
}  # fmt: skip


@pytest.fixture(autouse=True)
def _quiet_where_a_branch_not_taken_divides():
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("error", fad.errors.GaugeDependenceWarning)
        yield


def wanted(what):
    f, x, gradient = POINTS[what]
    return f, x, fad.grad(f)(x) if gradient is None else gradient


@pytest.mark.parametrize("what", list(POINTS))
def test_the_gradient_is_a_number_at(what):
    f, x, gradient = wanted(what)
    assert np.isfinite(gradient).all()
    np.testing.assert_allclose(fad.vjp(f, x)[0], f(x), rtol=1e-12, atol=0.0)
    np.testing.assert_allclose(fad.grad(f)(x), gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("what", list(POINTS))
def test_forward_mode_gives_the_same_number_at(what):
    f, x, gradient = wanted(what)
    t = np.cos(np.arange(x.size)).reshape(x.shape)
    np.testing.assert_allclose(fad.jvp(f, (x,), (t,))[1], np.sum(gradient * t), rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fad.jacfwd(f)(x), gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("what", list(POINTS))
def test_under_jit_the_gradient_is_the_same_at(what):
    f, x, gradient = wanted(what)
    g = fad.jit(fad.grad(f))
    for _ in range(2):
        np.testing.assert_allclose(g(x), gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(fad.grad(fad.jit(f))(x), gradient, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("what", list(POINTS))
def test_under_vmap_the_gradient_is_the_same_at(what):
    f, x, gradient = wanted(what)
    other = x + 0.1 * np.sin(1.0 + np.arange(x.size)).reshape(x.shape)
    other = 0.5 * (other + other.T) if x.ndim == 2 and "eigh" in what else other
    batch = fad.vmap(fad.grad(f))(np.stack([x, other, x]))
    for element in (batch[0], batch[2]):
        np.testing.assert_allclose(element, gradient, rtol=1e-9, atol=1e-9)
    np.testing.assert_allclose(batch[1], fad.grad(f)(other), rtol=1e-9, atol=1e-9)


# At these the second derivative is no number in mathematics either: a corner, or a pole of the angle.
CORNERS = {"norm(0)", "hypot(0, 0)", "arctan2(0, 0)", "abs(0)", "std of equal numbers", "xlogy(0, 0)"}


@pytest.mark.parametrize("what", [w for w in POINTS if not any(w.startswith(c) for c in CORNERS)])
def test_the_second_derivative_is_a_number_at(what):
    f, x, _ = POINTS[what]
    hessian = fad.hessian(f)(x)
    assert np.isfinite(hessian).all()
    np.testing.assert_allclose(fad.jacrev(fad.grad(f))(x), hessian, rtol=1e-7, atol=1e-7)


# what -> (function, where its slope is infinite, its second derivative there)
SECOND_AT_ENDS = {
    "arccosh": (np.arccosh, 1.0, -np.inf),
    "math.acosh": (math.acosh, 1.0, -np.inf),
    "arcsin": (np.arcsin, 1.0, np.inf),
    "arccos": (np.arccos, 1.0, -np.inf),
    "sqrt": (np.sqrt, 0.0, -np.inf),
    "logit": (fad.scipy.special.logit, np.float64(0.0), -np.inf),
}


@pytest.mark.filterwarnings("ignore:(invalid value|divide by zero) encountered:RuntimeWarning")
@pytest.mark.parametrize("name", SECOND_AT_ENDS)
def test_second_derivatives_where_a_slope_is_infinite_are_so_too_in_all_modes(name):
    f, x, wanted = SECOND_AT_ENDS[name]
    one = x * 0.0 + 1.0
    forward = lambda f: lambda x: fad.jvp(f, (x,), (one,))[1]
    for second in (lambda f: fad.grad(fad.grad(f)), lambda f: forward(fad.grad(f)), lambda f: forward(forward(f))):
        for derivative in (second(f), fad.jit(second(f))):
            assert derivative(x) == wanted
