"""Linear algebra beside jax.numpy.linalg, jax.scipy.linalg and torch.linalg: gradients and Hessian products."""

import warnings

import numpy as np
import pytest

import fad
from fad.scipy import linalg as fsl

pytestmark = pytest.mark.oracle

RNG = np.random.default_rng(3)
A = RNG.normal(size=(3, 3)) + 4.0 * np.eye(3)
B = RNG.normal(size=(3, 2))
S = A @ A.T
T = RNG.normal(size=(4, 3))
W = RNG.normal(size=(3, 3))


@pytest.fixture(scope="module")
def jax():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        jax = pytest.importorskip("jax")
        pytest.importorskip("jax.scipy.linalg")
    jax.config.update("jax_enable_x64", True)
    return jax


@pytest.fixture(scope="module")
def torch():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return pytest.importorskip("torch")


def half(x):
    return 0.5 * (x + x.T)


def projector(v, np):
    return np.outer(v, v)


# name -> (point, loss written for any of the namespaces: np is numpy-like, la is its linalg, sl its scipy.linalg)
LOSSES = {
    "solve": (A, lambda x, np, la, sl: np.sum(la.solve(x, B) ** 2)),
    "inv": (A, lambda x, np, la, sl: np.sum(W * la.inv(x))),
    "pinv, tall": (T, lambda x, np, la, sl: np.sum(T.T * la.pinv(x))),
    "pinv, wide": (T.T.copy(), lambda x, np, la, sl: np.sum(T * la.pinv(x))),
    "det": (A, lambda x, np, la, sl: la.det(x)),
    "slogdet": (A, lambda x, np, la, sl: la.slogdet(x)[1]),
    "cholesky": (S, lambda x, np, la, sl: np.sum(W * la.cholesky(half(x)))),
    "qr, q": (T, lambda x, np, la, sl: np.sum(T * la.qr(x)[0])),
    "qr, r": (T, lambda x, np, la, sl: np.sum(W * la.qr(x)[1])),
    "eigh, values": (S, lambda x, np, la, sl: np.sum(np.sin(la.eigvalsh(half(x))))),
    "eigh, projector": (S, lambda x, np, la, sl: np.sum(W * projector(la.eigh(half(x))[1][:, 0], np))),
    "svd, values": (T, lambda x, np, la, sl: np.sum(np.sin(la.svd(x, compute_uv=False)))),
    "svd, polar": (T, lambda x, np, la, sl: np.sum(T * _unitary(la.svd(x, full_matrices=False)))),
    "norm, nuclear": (T, lambda x, np, la, sl: la.norm(x, "nuc")),
    "norm, 2": (T, lambda x, np, la, sl: la.norm(x, 2)),
    "norm, -2": (T, lambda x, np, la, sl: la.norm(x, -2)),
    "matrix_power": (A, lambda x, np, la, sl: np.sum(W * la.matrix_power(x, 5))),
    "matrix_power, negative": (A, lambda x, np, la, sl: np.sum(W * la.matrix_power(x, -2))),
    "multi_dot": (A, lambda x, np, la, sl: np.sum(la.multi_dot([x, W, x, B]))),
    "cond": (A, lambda x, np, la, sl: la.cond(x)),
    "lstsq": (T, lambda x, np, la, sl: np.sum(la.lstsq(x, T[:, :2])[0] ** 2)),
    "expm": (0.3 * A, lambda x, np, la, sl: np.sum(W * sl.expm(x))),
    "solve_triangular": (A, lambda x, np, la, sl: np.sum(sl.solve_triangular(x, B, lower=True) ** 2)),
    "cho_solve": (S, lambda x, np, la, sl: np.sum(sl.cho_solve(sl.cho_factor(half(x)), B) ** 2)),
    "lu": (A, lambda x, np, la, sl: np.sum(W * (sl.lu(x)[1] + sl.lu(x)[2] ** 2))),
    "block_diag": (A, lambda x, np, la, sl: np.sum(sl.block_diag(x, x @ x) ** 2)),
    "toeplitz": (A[0], lambda x, np, la, sl: np.sum(W * sl.toeplitz(x) ** 2)),
}  # fmt: skip


def ours(x, loss):
    return lambda y: loss(y, np, np.linalg, fsl)


@pytest.mark.parametrize("what", list(LOSSES))
def test_gradients_and_hessian_products_agree_with_jax(jax, what):
    point, loss = LOSSES[what]
    t = np.cos(np.arange(point.size)).reshape(point.shape)
    f = ours(point, loss)
    g, hv = fad.jvp(fad.grad(f), (point,), (t,))
    theirs = jax.grad(lambda y: loss(y, jax.numpy, jax.numpy.linalg, jax.scipy.linalg))
    wanted, wanted_hv = jax.jvp(theirs, (jax.numpy.asarray(point),), (jax.numpy.asarray(t),))
    np.testing.assert_allclose(g, wanted, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(hv, wanted_hv, rtol=1e-6, atol=1e-6)


def unsquared(torch):
    """Return losses of complex matrices in PyTorch and in NumPy, side by side; none depends on a phase."""
    la = torch.linalg
    w = torch.tensor(W)
    return {
        "eigh": (
            lambda x: (w * torch.abs(_by_eigh_torch(torch, x)) ** 2).sum(),
            lambda x: np.sum(W * np.abs(_by_eigh(x)) ** 2),
        ),
        "svd": (
            lambda x: (w * torch.abs(_unitary(la.svd(x, full_matrices=False))) ** 2).sum(),
            lambda x: np.sum(W * np.abs(_unitary(np.linalg.svd(x))) ** 2),
        ),
        "qr": (
            lambda x: (w * torch.abs(la.qr(x)[1]) ** 2).sum(),
            lambda x: np.sum(W * np.abs(np.linalg.qr(x)[1]) ** 2),
        ),
        "cholesky": (
            lambda x: (w * torch.abs(la.cholesky(x @ x.mH)) ** 2).sum(),
            lambda x: np.sum(W * np.abs(np.linalg.cholesky(x @ np.conjugate(x.T))) ** 2),
        ),
        "eigvals": (
            lambda x: (torch.abs(la.eigvals(x)) ** 3).sum(),
            lambda x: np.sum(np.abs(np.linalg.eigvals(x)) ** 3),
        ),
        "eig": (
            lambda x: (torch.abs(la.eig(x)[1]) ** 4).sum(),
            lambda x: np.sum(np.abs(np.linalg.eig(x)[1]) ** 4),
        ),
        "slogdet": (lambda x: la.slogdet(x)[1], lambda x: np.linalg.slogdet(x)[1]),
        "slogdet, the phase": (lambda x: (la.slogdet(x)[0] ** 2).real, lambda x: (np.linalg.slogdet(x)[0] ** 2).real),
        "matrix_exp": (
            lambda x: (w * torch.abs(torch.matrix_exp(0.2 * x)) ** 2).sum(),
            lambda x: np.sum(W * np.abs(fsl.expm(0.2 * x)) ** 2),
        ),
    }


def _unitary(svd):
    return svd[0] @ svd[2]


def _by_eigh_torch(torch, x):
    w, v = torch.linalg.eigh(x + x.mH)
    return (v * torch.sin(w)) @ v.mH


def _by_eigh(x):
    w, v = np.linalg.eigh(x + np.conjugate(x.T))
    return (v * np.sin(w)) @ np.conjugate(v.T)


@pytest.mark.parametrize(
    "what", ["eigh", "svd", "qr", "cholesky", "eigvals", "eig", "slogdet", "slogdet, the phase", "matrix_exp"]
)
def test_complex_gradients_are_the_conjugates_of_torchs(torch, what):
    theirs, f = unsquared(torch)[what]
    point = A + 1j * W
    x = torch.tensor(point, requires_grad=True)
    theirs(x).backward()
    np.testing.assert_allclose(fad.grad(f)(point), np.conjugate(x.grad.numpy()), rtol=1e-8, atol=1e-9)
