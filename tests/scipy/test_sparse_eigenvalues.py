"""Eigenvalues, singular values, exponentials and least squares of sparse matrices, in programs with SciPy's names."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError

sp = pytest.importorskip("scipy.sparse")
sla = pytest.importorskip("scipy.sparse.linalg")

N = 9
RNG = np.random.default_rng(3)
DENSE = RNG.normal(size=(N, N)) * (RNG.random((N, N)) < 0.5)
SYMMETRIC = sp.csr_matrix(DENSE + DENSE.T + np.diag(2.0 * np.arange(N)))
GENERAL = sp.csc_matrix(DENSE + np.diag(2.0 * np.arange(N)))
TALL = sp.csr_matrix(RNG.normal(size=(N, 5)) * (RNG.random((N, 5)) < 0.7) + np.eye(N, 5))
WIDE = sp.csr_array(TALL.T)
MASS = sp.csc_matrix(np.diag(np.arange(N) + 1.0) + 0.1)
X, U = np.abs(RNG.normal(size=4)) + 0.2, RNG.normal(size=N)
HERMITIAN = sp.csr_matrix(np.array([[2.0, 1j, 0, 0.3], [-1j, 3.0, 0.2, 0], [0, 0.2, 1.0, 0], [0.3, 0, 0, 5.0]]))


def vary(a, x):
    return a * x[0] + sp.diags(np.ones(N) * x[1] + 0.1 * x[2] * np.arange(N) ** 2)


def project(found, x):
    values, vectors = found
    return np.abs(vectors.T @ U) ** 2 * np.abs(values) * x[3]


def rebuild(u, s, vh):
    return (u * s) @ vh


TIGHT = {"atol": 1e-14, "btol": 1e-14}
PROGRAMS = {
    "eigsh": lambda x: sla.eigsh(vary(SYMMETRIC, x), 3, return_eigenvectors=False),
    "vectors of eigsh": lambda x: project(sla.eigsh(vary(SYMMETRIC, x), 3), x),
    "eigsh near a number": lambda x: sla.eigsh(vary(SYMMETRIC, x), 2, sigma=0.3)[0],
    "a generalised problem": lambda x: project(sla.eigsh(vary(SYMMETRIC, x), 2, M=MASS * x[3] ** 2), x),
    "eigsh of a dense matrix": lambda x: sla.eigsh(vary(SYMMETRIC, x).toarray(), 2, return_eigenvectors=False),
    "eigs": lambda x: np.real(sla.eigs(vary(GENERAL, x), 2, v0=U, return_eigenvectors=False)),
    "vectors of eigs": lambda x: project(sla.eigs(vary(GENERAL, x), 3, v0=U), x),
    "svds": lambda x: sla.svds(TALL.multiply(x[0] * np.arange(1, 6.0) + x[1]), 3, return_singular_vectors=False),
    "vectors of svds": lambda x: rebuild(*sla.svds(TALL.multiply(x[0] * np.arange(1, 6.0) + x[1]), 2)),
    "svds of a wide matrix": lambda x: rebuild(*sla.svds(WIDE.multiply(x[0] * np.arange(1, 10.0) + x[1]), 2)),
    "expm_multiply": lambda x: sla.expm_multiply(vary(GENERAL, x), U * x[3]),
    "expm_multiply at times": lambda x: sla.expm_multiply(vary(GENERAL, x), np.stack([U, U * x[3]], 1), 0.1, 1.0, 4),
    "expm_multiply of a stiff matrix": lambda x: sla.expm_multiply(-(SYMMETRIC.T @ SYMMETRIC) * x[0] ** 2, U * x[3]),
    "expm": lambda x: sla.expm((0.3 * vary(GENERAL, x)).tocsc()).toarray(),
    "inv": lambda x: sla.inv(vary(GENERAL, x).tocsc()).toarray(),
    "norm": lambda x: sla.norm(vary(GENERAL, x)),
    "norms 1 and inf": lambda x: sla.norm(vary(GENERAL, x), 1) + sla.norm(vary(GENERAL, x), np.inf),
    "norms of columns": lambda x: sla.norm(vary(GENERAL, x), axis=0),
    "minres": lambda x: sla.minres(vary(SYMMETRIC, x), U * x[3], rtol=1e-14)[0],
    "minres with a shift": lambda x: sla.minres(SYMMETRIC, U * x[3], rtol=1e-14, shift=x[1])[0],
    "lsqr": lambda x: sla.lsqr(TALL.multiply(x[0]), U * x[3] ** 2 + np.sin(U * x[1]), **TIGHT)[0],
    "lsqr with a damp": lambda x: sla.lsqr(TALL.multiply(x[0]), np.sin(U * x[1]), damp=x[2], **TIGHT)[0],
    "the residual of lsqr": lambda x: sla.lsqr(TALL.multiply(x[0]), np.sin(U * x[1]), damp=x[2], **TIGHT)[4],
    "lsmr of a wide matrix": lambda x: sla.lsmr(WIDE.multiply(np.arange(1, 10) ** x[0]), U[:5] * x[1], **TIGHT)[0],
    "lsmr of a wide matrix with a damp": lambda x: sla.lsmr(WIDE * x[0], U[:5] * x[1], damp=x[2], **TIGHT)[0],
}  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS.values(), ids=PROGRAMS)
def test_what_scipy_finds_has_the_derivatives_of_its_differences(program):
    h = 1e-6
    value = np.asarray(program(X))
    wanted = np.stack([(np.asarray(program(X + d)) - np.asarray(program(X - d))) / (2 * h) for d in h * np.eye(4)], -1)
    size = np.max(np.abs(wanted))
    for jacobian in (fad.jacrev(program), fad.jacfwd(program), fad.jit(fad.jacrev(program))):
        np.testing.assert_allclose(jacobian(X), wanted, 1e-5, 1e-6 * size)
    np.testing.assert_allclose(fad.jit(program)(X), value, 1e-8, 1e-10)
    many = np.stack([value, program(1.1 * X)])
    np.testing.assert_allclose(fad.vmap(program)(np.stack([X, 1.1 * X])), many, 1e-8, 1e-10)
    slope = fad.grad(lambda s: np.sum(program(X + s * np.cos(X)) ** 2))
    second = (slope(1e-5) - slope(-1e-5)) / 2e-5
    np.testing.assert_allclose(fad.grad(slope)(0.0), second, 1e-4)


COMPLEX = {
    "eigsh of a Hermitian matrix": lambda x: np.abs(sla.eigsh(HERMITIAN * x + sp.diags(np.arange(4) * x**2), 2)[1]),
    "expm_multiply": lambda x: np.abs(sla.expm_multiply(1j * x * HERMITIAN, U[:4])) ** 2,
    "svds": lambda x: sla.svds(HERMITIAN.multiply(np.arange(1, 5) ** x), 2, return_singular_vectors=False),
    "lsmr": lambda x: np.abs(sla.lsmr(HERMITIAN[:, :2] * (x + 1j), U[:4] + 0j, **TIGHT)[0]),
}  # fmt: skip


@pytest.mark.parametrize("program", COMPLEX.values(), ids=COMPLEX)
def test_complex_matrices_are_differentiated_in_a_real_number(program):
    wanted = (program(1.1 + 1e-6) - program(1.1 - 1e-6)) / 2e-6
    for jacobian in (fad.jacrev(program), fad.jacfwd(program)):
        np.testing.assert_allclose(jacobian(1.1), wanted, 1e-5, 1e-7)


def test_what_is_plain_or_of_single_precision_stays_so():
    eye = sp.identity(6, dtype=np.float32, format="csr")
    y, _ = fad.vjp(lambda x: sla.expm_multiply(eye * x, np.ones(6, np.float32)), np.float32(1.0))
    assert y.dtype == np.float32
    assert isinstance(fad.scipy.sparse.linalg.inv(GENERAL), sp.spmatrix)
    np.testing.assert_allclose(fad.scipy.sparse.linalg.norm(GENERAL, 2), np.linalg.norm(GENERAL.toarray(), 2), 1e-10)


TWICE = sp.diags(np.array([5.0, 5.0, 1.0, 2.0, 3.0, 4.0]))
RANK_ONE = sp.csr_matrix(np.ones((5, 2)))
REFUSED = {
    "an eigenvalue that is double": (
        lambda x: sla.eigsh(TWICE * x, 2, return_eigenvectors=False), DerivativeError, "simple"),
    "a singular value of 0": (
        lambda x: sla.svds(sp.diags(np.array([3.0, 2.0, 1.0, 0.0])) * x, 3, which="SM", return_singular_vectors=False),
        DerivativeError, "simple"),
    "columns that depend on each other": (lambda x: sla.lsqr(RANK_ONE * x, np.ones(5))[0], DerivativeError, "damp"),
    "a singular matrix": (
        lambda x: sla.inv(sp.csc_matrix(np.diag([1.0, 0.0])) * x).sum(), np.linalg.LinAlgError, "singular"),
    "a traced time": (lambda x: sla.expm_multiply(TWICE, np.ones(6), 0.0, x, 3), TypeError, "constants"),
    "the norm 2": (lambda x: sla.norm(TWICE * x, 2), NotImplementedError, "svds"),
}  # fmt: skip


@pytest.mark.filterwarnings("ignore::scipy.sparse.SparseEfficiencyWarning")
@pytest.mark.parametrize("what", REFUSED)
def test_what_has_no_derivative_is_an_error(what):
    f, error, words = REFUSED[what]
    with pytest.raises(error, match=words):
        fad.grad(lambda x: np.sum(f(x)))(1.3)
    damped = lambda x: np.sum(sla.lsqr(RANK_ONE * x, np.ones(5), damp=0.3, **TIGHT)[0])
    np.testing.assert_allclose(fad.grad(damped)(2.0), (damped(2 + 1e-6) - damped(2 - 1e-6)) / 2e-6, 1e-6)


def test_a_method_of_scipys_that_sums_entries_up_leaves_a_sparse_array_as_it_is():
    a = fad.scipy.sparse.coo_array((np.array([1.0, 2.0, 4.0]), ([0, 0, 1], [1, 1, 0])))
    a.tocsr().sum_duplicates()
    abs(a.tocsr()).max()
    np.testing.assert_array_equal(a.toarray(), [[0.0, 3.0], [4.0, 0.0]])
