"""``torch.linalg`` and ``torch.fft`` take the names that PyTorch gives to arguments and results."""

import numpy as np
import pytest
from each import each

import fad.eager as torch

A = np.random.default_rng(0).standard_normal((2, 3, 3))
S = A @ np.swapaxes(A, -1, -2) + np.eye(3)
B = A[:, 0]

CASES = {
    "norm": (lambda t, a, s, b: t.linalg.norm(a, dim=(1, 2)), lambda: np.linalg.norm(A, axis=(1, 2))),
    "norm of rows": (
        lambda t, a, s, b: t.linalg.norm(a, ord=1, dim=-1, keepdim=True),
        lambda: np.linalg.norm(A, 1, axis=-1, keepdims=True),
    ),
    "solve for vectors": (lambda t, a, s, b: t.linalg.solve(s, b), lambda: np.linalg.solve(S, B[..., None])[..., 0]),
    "solve from the right": (lambda t, a, s, b: t.linalg.solve(s, a, left=False), lambda: A @ np.linalg.inv(S)),
    "slogdet": (lambda t, a, s, b: t.linalg.slogdet(a).logabsdet, lambda: np.linalg.slogdet(A)[1]),
    "eigh": (lambda t, a, s, b: t.linalg.eigh(s).eigenvalues, lambda: np.linalg.eigvalsh(S)),
    "svd": (lambda t, a, s, b: t.linalg.svd(a).S, lambda: np.linalg.svd(A)[1]),
    "qr": (lambda t, a, s, b: t.linalg.qr(a).R, lambda: np.linalg.qr(A)[1]),
    "qr without Q": (lambda t, a, s, b: t.linalg.qr(a, mode="r")[1], lambda: np.linalg.qr(A, "r")),
    "vander": (lambda t, a, s, b: t.linalg.vander(b, N=4), lambda: B[..., None] ** np.arange(4)),
    "rfft": (lambda t, a, s, b: t.fft.rfft(b, dim=0).real, lambda: np.fft.rfft(B, axis=0).real),
    "fft2": (lambda t, a, s, b: t.fft.fft2(a, dim=(0, 1)).real, lambda: np.fft.fft2(A, axes=(0, 1)).real),
    "fftshift": (lambda t, a, s, b: t.fft.fftshift(b, dim=1), lambda: np.fft.fftshift(B, axes=1)),
    "logit": (lambda t, a, s, b: t.logit(b.sigmoid(), eps=0.4), lambda: np.clip(B, np.log(2 / 3), np.log(1.5))),
}


@each("name", CASES)
def test_functions_take_the_names_of_pytorchs(name):
    fun, want = CASES[name]
    given = [torch.tensor(x, requires_grad=True) for x in (A, S, B)]
    got = fun(torch, *given)
    np.testing.assert_allclose(got.detach().numpy(), want(), rtol=1e-9, atol=1e-12)
    got.sum().backward()


def test_frequencies_have_the_default_dtype():
    assert torch.fft.fftfreq(4).dtype == torch.float32
    try:
        torch.set_default_dtype(torch.float64)
        assert torch.fft.rfftfreq(4).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_missing_function_is_answered_with_a_close_one():
    with pytest.raises(AttributeError, match="did you mean matrix_rank"):
        torch.linalg.matrix_ranks  # noqa: B018
