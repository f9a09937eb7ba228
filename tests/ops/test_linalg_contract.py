"""The whole contract for decompositions whose vectors are known up to a phase: through what does not depend on it."""

import numpy as np
import pytest

import fad
from fad.testing import call, contract


def h(x):
    return np.conjugate(np.swapaxes(x, -1, -2))


def hermitian(x):
    return x + h(x)


def definite(x):
    return x @ h(x) + 2.0 * np.eye(x.shape[-1], dtype=x.dtype)


def square(s):
    return [call(s.real(3, 3)), call(s.real(2, 3, 3)), call(s.real(1, 1))]


def shapes(s):
    return [call(s.real(3, 3)), call(s.real(4, 2)), call(s.real(2, 3)), call(s.real(2, 3, 2))]


def exponential(x, **options):
    w, v = np.linalg.eigh(hermitian(x), **options)
    return (v * np.exp(-0.3 * w)[..., None, :]) @ h(v)


def weighted(y):
    """Return the projectors on the columns of y, summed with different weights."""
    k = np.arange(1.0, y.shape[-1] + 1).astype(y.real.dtype)
    return (y * k) @ h(y)


def by_svd(x, full=False):
    u, s, vh = np.linalg.svd(x, full_matrices=full)
    k = s.shape[-1]
    return (u[..., :k] * np.sin(s)[..., None, :]) @ vh[..., :k, :]


def by_eig(x):
    w, v = np.linalg.eig(x)
    return (v * np.exp(0.3 * w)[..., None, :]) @ np.linalg.inv(v)


FUNCTIONS = {
    "eigvalsh": (lambda x: np.linalg.eigvalsh(hermitian(x)), square),
    "eigvalsh, upper triangle": (lambda x: np.linalg.eigvalsh(hermitian(x), "U"), square),
    "eigh, a function of the matrix": (exponential, square),
    "eigh, upper triangle": (lambda x: exponential(x, UPLO="U"), square),
    "eigh, projectors": (lambda x: weighted(np.linalg.eigh(hermitian(x)).eigenvectors), square),
    "svd, a function of the matrix": (by_svd, shapes),
    "svd, full": (lambda x: by_svd(x, full=True), shapes),
    "svd, values": (lambda x: np.linalg.svd(x, compute_uv=False), shapes),
    "svd, left projectors": (lambda x: weighted(np.linalg.svd(x, full_matrices=False).U), shapes),
    "svd, right projectors": (lambda x: weighted(h(np.linalg.svd(x, full_matrices=False).Vh)), shapes),
    "svd, hermitian": (lambda x: np.linalg.svd(hermitian(x), hermitian=True).S, square),
    "svd, hermitian, rebuilt": (
        lambda x: weighted(np.linalg.svd(hermitian(x), hermitian=True).U),
        lambda s: [call(s.real(3, 3))],
    ),
    "pinv, hermitian": (lambda x: np.linalg.pinv(hermitian(x), hermitian=True), lambda s: [call(s.real(2, 2))]),
    "cholesky": (lambda x: np.linalg.cholesky(definite(x)), square),
    "cholesky, upper": (lambda x: np.linalg.cholesky(definite(x), upper=True), square),
    "eig, a function of the matrix": (
        by_eig,
        lambda s: [call(np.diag(np.arange(3.0)).astype(s.dtype) + 0.1 * s.real(3, 3)), call(0.1 * s.real(1, 1))],
    ),
    "qr, complete": (
        lambda x: np.linalg.qr(x, "complete")[0][..., :2] @ np.linalg.qr(x, "complete")[1][..., :2, :],
        lambda s: [call(s.real(4, 2))],
    ),
}


@pytest.mark.parametrize("what", list(FUNCTIONS))
def test_functions_of_decompositions_pass_the_contract(what):
    function, samples = FUNCTIONS[what]
    contract(function, samples=samples)


OF_NO_LANES = {
    "det": np.linalg.det,
    "qr": lambda a: np.linalg.qr(a)[1],
    "eig": lambda a: np.linalg.eig(a)[0],
    "eigh": lambda a: np.linalg.eigh(a)[0],
    "svd": lambda a: np.linalg.svd(a)[1],
}


@pytest.mark.parametrize("name", OF_NO_LANES)
def test_derivatives_over_an_empty_batch_are_empty(name):
    def pushed(a):
        return fad.jvp(OF_NO_LANES[name], (a,), (a,))[1]

    none = np.zeros((0, 3, 3))
    assert fad.vmap(pushed)(none).shape == OF_NO_LANES[name](none).shape


# --- large Cholesky factors, which are pulled back in blocks ----------------------------------------------------------


def pulled_back(factor, ct):
    """Return the cotangent of a matrix for that of its factor, by the formula."""
    t = lambda x: np.swapaxes(x, -1, -2)
    p = np.tril(t(factor) @ ct)
    p = p - 0.5 * np.eye(p.shape[-1]) * p
    c = t(np.linalg.solve(h(factor), t(np.linalg.solve(t(factor), p))))
    return 0.5 * (c + h(c))


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("shape", [(97, 97), (192, 192), (250, 250), (2, 1, 100, 100)])
def test_large_factors_are_pulled_back_in_blocks(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is np.complex128 else 0)
    a = (definite(x) + shape[-1] * np.eye(shape[-1])).astype(dtype)
    factor, pullback = fad.vjp(np.linalg.cholesky, a)
    ct = rng.normal(size=shape).astype(dtype)
    (found,) = pullback(ct)
    assert found.dtype == dtype
    wanted = pulled_back(factor.astype(np.result_type(dtype, float)), ct)
    within = 1e-4 if dtype is np.float32 else 1e-12
    np.testing.assert_allclose(found, wanted, rtol=within, atol=within * np.abs(wanted).max())


def test_blocks_have_derivatives_of_all_orders(monkeypatch):
    from fad.ops.linalg import decompositions

    monkeypatch.setattr(decompositions, "_BLOCK", 2)
    f = lambda x: np.linalg.cholesky(definite(x))
    contract(f, samples=lambda s: [call(s.real(5, 5)), call(s.real(2, 3, 3))])


def test_one_factor_takes_a_batch_of_cotangents():
    rng = np.random.default_rng(0)
    a = definite(rng.normal(size=(100, 100))) + 100 * np.eye(100)
    factor, pullback = fad.vjp(np.linalg.cholesky, a)
    cts = rng.normal(size=(3, 100, 100))
    found = fad.vmap(lambda ct: pullback(ct)[0])(cts)
    np.testing.assert_allclose(found, pulled_back(factor, cts), rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("dtypes", [("f4", "f8"), ("f8", "f4"), ("f4", "c16"), ("c8", "f8"), ("f4", "f4")], ids=str)
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)], ids=str)
def test_least_squares_are_solved_in_the_precision_of_both_operands(shape, dtypes):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=shape).astype(dtypes[0]), rng.normal(size=shape[0]).astype(dtypes[1])
    wanted = np.linalg.lstsq(a, b, rcond=None)
    found, _ = fad.jvp(lambda b: np.linalg.lstsq(a, b, rcond=None), (b,), (b,))
    rtol = 1e-12 if np.result_type(a, b).itemsize >= 8 and np.result_type(a, b).char != "F" else 1e-4
    for x, y in zip(wanted, found, strict=True):
        assert np.asarray(x).dtype == np.asarray(y).dtype
        np.testing.assert_allclose(y, x, rtol=rtol, atol=rtol)


@pytest.mark.parametrize("rcond", [-1, 0, 1, 2.5, 1e-3])
@pytest.mark.parametrize("column", [1.0, 1e-4, 0.0])
def test_a_cutoff_of_least_squares_counts_singular_values_as_lapack_does(rcond, column):
    a, b = np.random.default_rng(0).normal(size=(5, 3)) * np.array([1.0, 1.0, column]), np.arange(5.0)
    wanted = np.linalg.lstsq(a, b, rcond)
    for found in (fad.jvp(lambda b: np.linalg.lstsq(a, b, rcond), (b,), (b,))[0],
                  fad.jit(lambda a: np.linalg.lstsq(a, b, rcond))(a)):  # fmt: skip
        for x, y in zip(wanted, found, strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-12)
