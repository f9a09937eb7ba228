"""Repeated eigenvalues, repeated and zero singular values, singular matrices: exact derivatives, warnings, errors."""

import warnings

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError, GaugeDependenceWarning
from fad.testing import check_grads

RNG = np.random.default_rng(7)
C = RNG.normal(size=(3, 3))
Q = np.linalg.qr(RNG.normal(size=(3, 3)))[0]
U3 = np.linalg.qr(RNG.normal(size=(3, 3)) + 1j * RNG.normal(size=(3, 3)))[0]


def hermitian(q, *w):
    a = (q * np.array(w)) @ q.conj().T
    return 0.5 * (a + a.conj().T)


REPEATED = {
    "identity": np.eye(3),
    "zero": np.zeros((3, 3)),
    "one pair": hermitian(Q, 1.0, 1.0, 2.5),
    "a pair of zeros": hermitian(Q, 0.0, 0.0, -1.5),
    "a pair nearly equal": hermitian(Q, 1.0, 1.0 + 1e-10, 2.5),
    "no pair": hermitian(Q, 1.0, 2.0, -1.5),
    "complex": hermitian(U3, 1.0, 1.0, 2.5),
    "complex identity": np.eye(3, dtype=complex),
}


def h(x):
    return np.conjugate(np.swapaxes(x, -1, -2))


def half(a):
    return 0.5 * (a + h(a))


def loss(m):
    return np.sum(C * m).real


def cube_by_eigh(a):
    w, v = np.linalg.eigh(a)
    return loss((v * w**3) @ h(v))


def cube(a):
    a = half(a)
    return loss(a @ a @ a)


def rebuilt(a):
    w, v = np.linalg.eigh(a)
    return loss((v * w) @ h(v))


def power_sum_by_eigh(a):
    w = np.linalg.eigvalsh(a)
    return np.sum(w**4)


def power_sum(a):
    a = half(a)
    return np.trace(a @ a @ a @ a).real


PAIRS = {
    "the cube of the matrix": (cube_by_eigh, cube),
    "the matrix rebuilt": (rebuilt, lambda a: loss(half(a))),
    "a sum of powers of eigenvalues": (power_sum_by_eigh, power_sum),
}


def close(got, wanted, tolerance=1e-10):
    assert got.shape == wanted.shape
    assert got.dtype == wanted.dtype
    assert np.abs(got - wanted).max() <= tolerance * max(1.0, np.abs(wanted).max())


@pytest.mark.parametrize("where", list(REPEATED))
@pytest.mark.parametrize("what", list(PAIRS))
def test_functions_of_a_hermitian_matrix_have_exact_gradients_at_repeated_eigenvalues(what, where):
    by_eigh, direct = PAIRS[what]
    a = REPEATED[where]
    close(fad.grad(by_eigh)(a), fad.grad(direct)(a))
    t = RNG.normal(size=(3, 3)).astype(a.dtype)
    close(fad.jvp(by_eigh, (a,), (t,))[1], fad.jvp(direct, (a,), (t,))[1])


@pytest.mark.parametrize("where", [k for k in REPEATED if "complex" not in k])
@pytest.mark.parametrize("what", list(PAIRS))
def test_second_and_third_derivatives_are_exact_at_repeated_eigenvalues(what, where):
    by_eigh, direct = PAIRS[what]
    a = REPEATED[where]
    close(fad.hessian(by_eigh)(a), fad.hessian(direct)(a), 1e-9)
    t = RNG.normal(size=(3, 3))

    def third(f):
        return fad.jvp(lambda x: fad.jvp(fad.grad(f), (x,), (t,))[1], (a,), (t,))[1]

    close(third(by_eigh), third(direct), 1e-6)


def test_values_at_repeated_eigenvalues_are_numpys():
    a = REPEATED["one pair"]
    value, _ = fad.value_and_grad(cube_by_eigh)(a)
    assert abs(value - cube_by_eigh(a)) <= 1e-14 * abs(value)


def test_a_batch_may_hold_matrices_with_and_without_repeated_eigenvalues():
    stack = np.stack([REPEATED[k] for k in ("identity", "no pair", "one pair", "zero")])
    close(fad.vmap(fad.grad(cube_by_eigh))(stack), fad.vmap(fad.grad(cube))(stack))
    close(fad.grad(lambda x: np.sum(fad.vmap(cube_by_eigh)(x)))(stack), fad.vmap(fad.grad(cube))(stack))


def test_stacks_of_matrices_with_repeated_eigenvalues():
    stack = np.stack([REPEATED[k] for k in ("identity", "no pair", "one pair", "zero")])

    def f(x):
        w, v = np.linalg.eigh(x)
        return np.sum(C * ((v * w[..., None, :] ** 3) @ h(v)))

    close(fad.grad(f)(stack), fad.vmap(fad.grad(cube))(stack))


def test_a_projector_on_the_space_of_a_repeated_eigenvalue_has_exact_derivatives():
    a = hermitian(Q, 1.0, 1.0, 2.5)

    def by_eigh(x):
        v = np.linalg.eigh(x).eigenvectors[:, :2]
        return loss(v @ v.T)

    def direct(x):  # the other space belongs to a simple eigenvalue
        v = np.linalg.eigh(x).eigenvectors
        return loss(np.eye(3) - v[:, 2:] @ v[:, 2:].T)

    close(fad.grad(by_eigh)(a), fad.grad(direct)(a))
    close(fad.hessian(by_eigh)(a), fad.hessian(direct)(a), 1e-9)


@pytest.mark.parametrize("where", ["identity", "one pair"])
def test_a_loss_that_depends_on_the_choice_of_eigenvectors_warns(where):
    a = REPEATED[where]
    with pytest.warns(GaugeDependenceWarning, match="values are repeated"):
        g = fad.grad(lambda x: np.sum(C * np.linalg.eigh(x).eigenvectors))(a)
    assert np.isfinite(g).all()


def test_a_second_eigendecomposition_of_what_the_first_gave():
    a = hermitian(Q, 1.0, 1.0, 2.5)

    def root(x):
        w, v = np.linalg.eigh(x)
        return (v * np.sqrt(w)) @ v.T

    def fourth(x):
        return loss(root(root(x)))

    def direct(x):
        w, v = np.linalg.eigh(x)
        return loss((v * w**0.25) @ v.T)

    close(fad.grad(fourth)(a), fad.grad(direct)(a), 1e-9)


# --- singular values -----------------------------------------------------------------------------------------------

MATRICES = {
    "identity": np.eye(3),
    "zero": np.zeros((3, 3)),
    "rank 1": np.outer([1.0, 2.0, 3.0], [1.0, -1.0, 0.5]),
    "orthogonal": Q,
    "tall, equal values": np.vstack([np.eye(2), np.zeros((2, 2))]),
    "wide, equal values": np.vstack([np.eye(2), np.zeros((2, 2))]).T,
    "tall, rank 1": np.outer([1.0, 2.0, 3.0, 4.0], [1.0, -1.0]),
    "no repeated value": RNG.normal(size=(3, 3)),
    "complex unitary": U3,
    "complex, rank 1": np.outer(U3[0], U3[1]),
}


def weights(a):
    return np.cos(np.arange(a.size)).reshape(a.shape)


def rebuilt_by_svd(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.sum(weights(a) * ((u * s) @ vh)).real


def cubed_by_svd(a):
    u, s, vh = np.linalg.svd(a, full_matrices=False)
    return np.sum(weights(a) * ((u * s**3) @ vh)).real


SVD_PAIRS = {
    "the matrix rebuilt": (rebuilt_by_svd, lambda a: np.sum(weights(a) * a).real),
    "an odd power of singular values": (cubed_by_svd, lambda a: np.sum(weights(a) * (a @ h(a) @ a)).real),
    "the sum of squares": (
        lambda a: np.sum(np.linalg.svd(a, compute_uv=False) ** 2),
        lambda a: np.sum(a.real**2 + a.imag**2),
    ),
    "the sum of fourth powers": (
        lambda a: np.sum(np.linalg.svdvals(a) ** 4),
        lambda a: np.sum((a @ h(a)).real ** 2 + (a @ h(a)).imag ** 2),
    ),
}


@pytest.mark.parametrize("where", list(MATRICES))
@pytest.mark.parametrize("what", list(SVD_PAIRS))
def test_functions_of_singular_values_have_exact_derivatives_at_repeated_and_zero_ones(what, where):
    by_svd, direct = SVD_PAIRS[what]
    a = MATRICES[where]
    close(fad.grad(by_svd)(a), fad.grad(direct)(a))
    if a.dtype.kind == "f":
        close(fad.hessian(by_svd)(a), fad.hessian(direct)(a), 1e-8)


def test_the_nuclear_norm_is_smooth_at_repeated_singular_values():
    for a in (np.eye(3), 2.0 * Q, np.vstack([np.eye(2), np.zeros((1, 2))])):
        u, _, vh = np.linalg.svd(a, full_matrices=False)
        close(fad.grad(lambda x: np.linalg.norm(x, "nuc"))(a), u @ vh)
        close(fad.grad(lambda x: np.sum(np.linalg.svd(x, full_matrices=False)[1]))(a), u @ vh)


def test_the_polar_factor_at_equal_singular_values():
    def polar(a):
        u, _, vh = np.linalg.svd(a)
        return np.sum(C * (u @ vh))

    # Near an orthogonal matrix the polar factor of Q + t E moves by Q skew(Q^T E).
    skew = 0.5 * (Q.T @ C - C.T @ Q)
    close(fad.grad(polar)(Q), Q @ skew)


def test_a_loss_that_depends_on_the_choice_of_singular_vectors_warns():
    with pytest.warns(GaugeDependenceWarning):
        fad.grad(lambda a: np.sum(C * np.linalg.svd(a)[0]))(np.eye(3))


def test_full_matrices_give_projectors_on_the_null_space():
    a = RNG.normal(size=(4, 2))
    m = RNG.normal(size=(4, 4))

    def by_svd(x):
        rest = np.linalg.svd(x)[0][:, 2:]
        return np.sum(m * (rest @ rest.T))

    def by_qr(x):
        rest = np.linalg.qr(x, mode="complete")[0][:, 2:]
        return np.sum(m * (rest @ rest.T))

    def direct(x):
        return np.sum(m * (np.eye(4) - x @ np.linalg.solve(x.T @ x, x.T)))

    for f in (by_svd, by_qr):
        close(fad.grad(f)(a), fad.grad(direct)(a))
        close(fad.hessian(f)(a), fad.hessian(direct)(a))


# --- eigenvalues of general matrices ---------------------------------------------------------------------------------


def test_functions_of_a_general_matrix_are_exact_at_repeated_eigenvalues():
    s = RNG.normal(size=(3, 3))

    def by_eig(a):
        w, v = np.linalg.eig(a)
        return np.sum(C * ((v * w**3) @ np.linalg.inv(v))).real

    for a in (np.eye(3), s @ np.diag([1.0, 1.0, 2.0]) @ np.linalg.inv(s)):
        close(fad.grad(by_eig)(a), fad.grad(lambda x: np.sum(C * (x @ x @ x)))(a), 1e-8)


def test_eigenvalues_of_a_jordan_block_have_no_derivative():
    with pytest.raises(DerivativeError, match="no basis of eigenvectors"):
        fad.grad(lambda a: np.linalg.eigvals(a)[0].real)(np.array([[1.0, 1.0], [0.0, 1.0]]))


# --- determinants --------------------------------------------------------------------------------------------------


def leibniz(a):
    return (
        a[0, 0] * (a[1, 1] * a[2, 2] - a[1, 2] * a[2, 1])
        - a[0, 1] * (a[1, 0] * a[2, 2] - a[1, 2] * a[2, 0])
        + a[0, 2] * (a[1, 0] * a[2, 1] - a[1, 1] * a[2, 0])
    )


@pytest.mark.parametrize(
    "a",
    [np.zeros((3, 3)), MATRICES["rank 1"], np.arange(9.0).reshape(3, 3), np.diag([1.0, 0.0, 0.0]), np.eye(3), C],
    ids=["zero", "rank 1", "rank 2", "diagonal", "identity", "regular"],
)
def test_det_of_singular_matrices_is_exact_to_third_order(a):
    close(fad.grad(np.linalg.det)(a), fad.grad(leibniz)(a))
    close(fad.hessian(np.linalg.det)(a), fad.hessian(leibniz)(a))
    t = C + 1.0

    def third(f):
        return fad.jvp(lambda x: fad.jvp(fad.grad(f), (x,), (t,))[1], (a,), (t,))[1]

    close(third(np.linalg.det), third(leibniz), 1e-8)


def test_det_of_a_stack_with_a_singular_matrix():
    stack = np.stack([C, np.arange(9.0).reshape(3, 3), np.eye(3)])
    wanted = fad.vmap(fad.grad(leibniz))(stack)
    close(fad.grad(lambda a: np.sum(np.linalg.det(a)))(stack), wanted)
    close(fad.vmap(fad.grad(np.linalg.det))(stack), wanted)


# --- what bad input gets ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("f", [np.linalg.inv, lambda a: np.linalg.solve(a, np.ones(2))])
def test_a_singular_matrix_raises_as_in_numpy(f):
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        fad.grad(lambda a: np.sum(f(a)))(np.ones((2, 2)))


def test_a_matrix_that_is_not_positive_definite_raises_as_in_numpy():
    with pytest.raises(np.linalg.LinAlgError, match="not positive definite"):
        fad.grad(lambda a: np.sum(np.linalg.cholesky(a)))(-np.eye(2))


def derivatives_of(f, a):
    """Return the ways to ask for a derivative, as functions without arguments."""

    def loss(a):
        return np.sum(f(a))

    return [
        lambda: fad.grad(loss)(a),
        lambda: fad.jvp(f, (a,), (a,)),
        lambda: fad.vmap(fad.grad(loss))(np.stack([a, a])),
        lambda: fad.jit(fad.grad(loss))(a),
        lambda: fad.jit(lambda a: fad.jvp(f, (a,), (a,)))(a),
    ]


@pytest.mark.parametrize("way", range(5))
def test_the_logarithm_of_a_determinant_that_is_zero_has_no_derivative(way):
    with pytest.raises(DerivativeError, match=r"singular \(Singular matrix\)"):
        derivatives_of(lambda a: np.linalg.slogdet(a)[1], np.ones((2, 2)))[way]()


@pytest.mark.parametrize("way", range(5))
def test_factors_of_qr_of_an_exactly_singular_matrix_have_no_derivative_in_any_mode(way):
    a = np.array([[1.0, 0.0], [2.0, 0.0]]).T  # R has a zero on its diagonal
    with pytest.raises(DerivativeError, match="linearly dependent"):
        derivatives_of(lambda a: np.linalg.qr(a)[1], a.T)[way]()


def test_qr_of_dependent_columns_has_no_derivative():
    with pytest.raises(DerivativeError, match="linearly dependent"):
        fad.grad(lambda a: np.sum(np.linalg.qr(a).R))(np.ones((3, 2)))


def test_qr_in_raw_mode_is_lapacks_and_jumps_where_a_column_is_zero_below_the_diagonal():
    rng = np.random.default_rng(4)
    for shape, dtype in (((4, 3), float), ((2, 5), complex), ((3, 3), complex), ((2, 0), float), ((1, 1), np.float32)):
        a = (rng.normal(size=shape) + (1j * rng.normal(size=shape) if dtype is complex else 0)).astype(dtype)
        found, wanted = fad.vjp(lambda a: np.linalg.qr(a, mode="raw"), a)[0], np.linalg.qr(a, mode="raw")
        for x, y in zip(found, wanted, strict=True):
            assert x.dtype == y.dtype
            np.testing.assert_allclose(x, y, atol=1e-12)
        if a.size > 1:
            check_grads(lambda a: np.linalg.qr(a, mode="raw"), (a,), order=2)
    with pytest.raises(DerivativeError, match="jumps"):
        fad.grad(lambda a: np.sum(np.linalg.qr(a, mode="raw")[0]))(np.eye(2))


def test_a_matrix_that_is_not_square_raises_as_in_numpy():
    for f in (np.linalg.inv, np.linalg.det, np.linalg.cholesky, lambda a: np.linalg.eigh(a)[0]):
        with pytest.raises(np.linalg.LinAlgError, match="square"):
            fad.grad(lambda a, f=f: np.sum(f(a)))(np.ones((2, 3)))


def test_norms_at_zero_have_gradient_zero():
    zero = np.zeros((2, 3))
    for f in (np.linalg.norm, lambda a: np.sum(np.linalg.norm(a, axis=1)), lambda a: np.linalg.norm(a, "fro")):
        assert not fad.grad(f)(zero).any()


# --- what is not differentiable is said to be so ---------------------------------------------------------------------


NOT_SMOOTH = {
    "the largest of equal eigenvalues": lambda a: np.linalg.eigvalsh(a)[-1],
    "the largest of equal singular values": lambda a: np.linalg.svd(a, compute_uv=False)[0],
    "eigenvectors": lambda a: np.sum(C * np.linalg.eigh(a).eigenvectors),
    "one vector's projector": lambda a: np.sum(C * np.outer(np.linalg.eigh(a)[1][:, 0], np.linalg.eigh(a)[1][:, 0])),
}


@pytest.mark.parametrize("what", list(NOT_SMOOTH))
def test_what_depends_on_the_choice_of_vectors_warns_in_both_modes(what):
    f = NOT_SMOOTH[what]
    with pytest.warns(GaugeDependenceWarning):
        g = fad.grad(f)(np.eye(3))
    with pytest.warns(GaugeDependenceWarning):
        t = fad.jvp(f, (np.eye(3),), (C,))[1]
    assert np.isfinite(g).all()
    assert np.isfinite(t)


def test_the_nuclear_norm_of_a_singular_matrix_has_no_derivative_and_warns():
    with pytest.warns(GaugeDependenceWarning):
        fad.grad(lambda a: np.linalg.norm(a, "nuc"))(np.diag([1.0, 2.0, 0.0]))


def test_values_leave_a_transform_as_numpy_gives_them_though_vectors_are_a_choice():
    (w, v), _ = fad.vjp(lambda a: tuple(np.linalg.eigh(a)), np.eye(3))
    np.testing.assert_allclose(w, np.ones(3), rtol=1e-15)
    np.testing.assert_allclose(v, np.eye(3), rtol=1e-15)
    _, aux = fad.grad(lambda a: (np.sum(a), np.linalg.svd(a)[0]), has_aux=True)(np.eye(3))
    assert type(aux) is np.ndarray


@pytest.mark.parametrize("where", ["identity", "one pair", "no pair"])
def test_every_transform_is_exact_at_repeated_eigenvalues(where):
    a = REPEATED[where]
    wanted = fad.grad(cube)(a)
    for g in (fad.jacrev(cube_by_eigh)(a), fad.jacfwd(cube_by_eigh)(a), fad.jit(fad.grad(cube_by_eigh))(a)):
        close(g, wanted)
    close(fad.grad(fad.jit(cube_by_eigh))(a), wanted)
    close(fad.grad(fad.checkpoint(cube_by_eigh))(a), wanted)
    close(fad.linearize(cube_by_eigh, a)[1](C), fad.jvp(cube, (a,), (C,))[1])


def test_a_jitted_gradient_changes_its_path_where_eigenvalues_meet():
    g = fad.jit(fad.grad(cube_by_eigh))
    for where in ("no pair", "identity", "no pair", "zero"):
        close(g(REPEATED[where]), fad.grad(cube)(REPEATED[where]))


def test_single_precision_stays_single_at_repeated_eigenvalues():
    a = np.eye(3, dtype=np.float32)
    g = fad.grad(cube_by_eigh)(a)
    assert g.dtype == np.float32
    np.testing.assert_allclose(g, fad.grad(cube)(a), rtol=1e-3, atol=1e-3)


def test_a_sharp_function_of_equal_eigenvalues_is_exact_too():
    def by_eigh(a):
        w, v = np.linalg.eigh(a)
        return loss((v / (1.0 + np.exp(-10.0 * (w - 1.0)))) @ v.T)

    # sigmoid(10 (w - 1)) has slope 2.5 at w = 1.
    close(fad.grad(by_eigh)(np.eye(3)), 2.5 * half(C), 1e-9)


def test_the_eager_tape_warns_where_it_cannot_be_exact():
    import fad.eager as torch

    a = torch.tensor(np.eye(3), requires_grad=True)
    with pytest.warns(GaugeDependenceWarning, match="step by step"):
        np.sum(np.linalg.eigh(a)[0] ** 2).backward()
    np.testing.assert_allclose(a.grad.numpy(), 2.0 * np.eye(3))


def test_a_batch_without_elements():
    assert fad.vmap(fad.grad(cube_by_eigh))(np.zeros((0, 3, 3))).shape == (0, 3, 3)


def _near(gap, dtype, q):
    a = q @ np.diag([1.0, 1.0 + gap, 2.0]) @ q.T
    return (0.5 * (a + a.T)).astype(dtype)


def _relative(found, wanted):
    return np.abs(found - wanted).max() / np.abs(wanted).max()


@pytest.mark.parametrize("gap", [0.0, 1e-9, 3e-8, 1e-7, 1e-6, 1e-5, 1e-4, 1e-3])
def test_second_derivatives_keep_their_digits_at_eigenvalues_that_nearly_meet(gap):
    linalg = pytest.importorskip("fad.scipy.linalg")
    rng = np.random.default_rng(0)
    q, w = np.linalg.qr(rng.normal(size=(3, 3)))[0], rng.normal(size=(3, 3))

    def by_eigh(a):
        values, v = np.linalg.eigh(a)
        return np.sum((w + w.T).astype(a.dtype) * ((v * np.exp(values)) @ v.T))

    def exact(a):
        return np.sum((w + w.T) * linalg.expm(0.5 * (a + a.T)))

    def by_svd(a):
        u, s, vh = np.linalg.svd(a)
        return np.sum((w + w.T).astype(a.dtype) * ((u * np.exp(s)) @ vh))

    for dtype, tolerance in ((np.float64, 1e-9), (np.float32, 1e-3)):
        a = _near(gap, dtype, q)
        wanted = fad.hessian(exact)(a.astype(float))
        assert _relative(fad.hessian(by_eigh)(a), wanted) < tolerance
        assert fad.hessian(by_eigh)(a).dtype == dtype
        along = np.eye(3, dtype=dtype) + 0.3
        found, product = fad.hvp(by_svd, (a,), (along,))[1], fad.hessian(exact)(a.astype(float))
        assert _relative(found, np.einsum("ijkl,kl", product, along)) < tolerance


def test_a_singular_value_near_zero_leaves_second_derivatives_their_digits():
    rng = np.random.default_rng(1)
    u, v = (np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(2))

    def energy(a):  # the sum of (s**2 + s**4) by way of the singular vectors
        left, s, right = np.linalg.svd(a)
        b = (left * (s + s**3)) @ right
        return np.sum(b * a)

    def direct(a):
        g = a.T @ a
        return np.trace(g) + np.sum(g * g)

    for least in (0.0, 1e-7, 1e-6, 1e-4, 1e-2):
        a = (u * np.array([2.0, 1.0, least])) @ v
        np.testing.assert_allclose(fad.hessian(energy)(a), fad.hessian(direct)(a), rtol=1e-8, atol=1e-8)


def test_an_eigenvector_near_another_one_keeps_its_gradient_and_warns_at_second_order():
    a = np.diag([1.0, 1.0 + 1e-5, 2.0])
    f = lambda a: np.linalg.eigh(a)[1][0, 1] * np.linalg.eigh(a)[1][1, 1]
    found = fad.grad(f)(a)
    np.testing.assert_allclose(np.abs(found[0, 1]), 0.5e5, rtol=1e-6)
    with pytest.warns(GaugeDependenceWarning):
        fad.hessian(f)(a)


def test_the_zero_matrix_is_infinitely_ill_conditioned():
    for p in (None, 2, -2):
        want = np.linalg.cond(np.zeros((2, 2)), p)
        with np.errstate(all="ignore"):
            assert fad.jit(lambda a: np.linalg.cond(a, p))(np.zeros((2, 2))) == want  # noqa: B023  called at once
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(fad.vmap(np.linalg.cond)(np.stack([np.eye(2), np.zeros((2, 2))])), [1.0, np.inf])


def test_vectors_of_repeated_values_warn_of_no_derivative_where_only_their_value_is_asked_for():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        v, t = fad.jvp(lambda a: np.linalg.eigh(a).eigenvectors, (np.eye(2),), (np.zeros((2, 2)),))
    np.testing.assert_allclose(v @ v.T, np.eye(2), atol=1e-12)
    np.testing.assert_array_equal(t, np.zeros((2, 2)))


def _values(a):
    """Return singular values of which two are equal: 2, 1 and 1 times an element."""
    return np.linalg.svdvals(a[0] * np.diag(np.array([2.0, 1.0, 1.0])))


def _piecewise(a):
    return np.sum(np.piecewise(_values(a), [_values(a) > 1.5], [lambda v: 2 * v, lambda v: v]))


def _written(a):
    y = _values(a) * a[1]
    y[_values(a) > 1.5] = a[0]
    return np.sum(y)


BY_A_DECISION = {
    "a mask": lambda a: np.sum(_values(a)[_values(a) > 1.5]),
    "places": lambda a: np.sum(_values(a)[np.nonzero(_values(a) > 1.5)]),
    "extract": lambda a: np.sum(np.extract(_values(a) > 1.5, _values(a))),
    "compress": lambda a: np.sum(np.compress(_values(a) > 1.5, _values(a))),
    "a write by a mask": _written,
    "piecewise": _piecewise,
    "an if": lambda a: np.sum(_values(a)) if _values(a)[0] > 1.5 else 0.0 * np.sum(_values(a)),
    "an integer": lambda a: a[int(_values(a)[0] > 1.5)] * a[0],
    "unique": lambda a: np.sum(np.unique(np.round(_values(a)))) * a[1],
}


@pytest.mark.parametrize("f", BY_A_DECISION.values(), ids=BY_A_DECISION)
def test_decisions_about_values_of_which_some_are_repeated_are_those_of_a_plain_run(f):
    a = np.array([1.0, 3.0])
    wanted = np.array([(f(a + 1e-6 * e) - f(a - 1e-6 * e)) / 2e-6 for e in np.eye(2)])
    value, slope = fad.value_and_grad(f)(a)
    np.testing.assert_allclose(value, f(a), rtol=1e-14)
    np.testing.assert_allclose(slope, wanted, rtol=1e-8)
    np.testing.assert_allclose(fad.jvp(f, (a,), (a,))[1], slope @ a, rtol=1e-12)
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(np.stack([a, a])), [slope, slope], rtol=1e-12)
    np.testing.assert_allclose(fad.jit(fad.grad(f))(a), slope, rtol=1e-12)


WITH_A_CORNER = {
    "the spectral norm": lambda a: np.linalg.norm(a, 2),
    "the least singular value": lambda a: np.linalg.norm(a, -2),
    "a maximum": lambda a: np.max(np.linalg.svdvals(a)),
    "a difference": lambda a: np.ptp(np.linalg.eigvalsh(a)),
    "absolute values": lambda a: np.sum(np.abs(np.linalg.eigvalsh(a - np.eye(3)))),
    "parts above 0": lambda a: np.sum(np.maximum(np.linalg.eigvalsh(a - a), 0.0)),
    "clipped values": lambda a: np.sum(np.clip(np.linalg.eigvalsh(a), 0.0, 1.0)),
    "what is chosen by a mask": lambda a: np.sum(np.where(np.linalg.svdvals(a - a) > 0, 5.0, 1.0)),
    "a branch": lambda a: 5.0 * np.sum(a) if np.linalg.svdvals(a - a)[0] > 0 else np.sum(a),
    "a loop": lambda a: fad.fori_loop(0, 3, lambda i, s: s + np.max(np.linalg.svdvals(a)), 0.0 * a[0, 0]),
    "a norm of values": lambda a: np.linalg.norm(np.linalg.eigvalsh(a - np.eye(3))),
    "sorted values": lambda a: np.sort(np.linalg.eigvalsh(a - np.eye(3)))[-1],
    "an inverse": lambda a: np.linalg.inv(np.diag(np.sort(np.linalg.eigvalsh(a))))[0, 0],
    "a pseudoinverse": lambda a: np.linalg.pinv(np.diag(np.sort(np.linalg.eigvalsh(a - np.eye(3)))))[0, 0],
    "complex values": lambda a: np.max(np.abs(1j * np.sort(np.linalg.eigvalsh(a - np.eye(3))))),
    "a rule of one's own": lambda a: np.sum(_rounded(np.linalg.eigvalsh(a - np.eye(3)))),
}


@fad.custom_jvp
def _rounded(x):
    return np.round(x + 0.5)


_rounded.defjvp(lambda xs, ts: (_rounded(*xs), *ts))


@pytest.mark.parametrize("f", WITH_A_CORNER.values(), ids=WITH_A_CORNER)
@pytest.mark.filterwarnings("ignore::fad.errors.GaugeDependenceWarning")
def test_a_value_at_repeated_values_is_that_of_a_plain_run_also_at_a_corner(f):
    a, t = np.eye(3), np.ones((3, 3))
    wanted = f(a)
    values = [
        fad.value_and_grad(f)(a)[0], fad.vjp(f, a)[0], fad.jvp(f, (a,), (t,))[0], fad.linearize(f, a)[0],
        fad.vmap(fad.value_and_grad(f))(np.stack([a, a]))[0][1], fad.jit(fad.value_and_grad(f))(a)[0],
        fad.jvp(fad.vmap(f), (a[None],), (t[None],))[0][0], fad.jvp(lambda a: fad.jvp(f, (a,), (t,))[0], (a,), (t,))[0],
        fad.jvp(fad.value_and_grad(f), (a,), (t,))[0][0], fad.grad(lambda a: (np.sum(a), f(a)), has_aux=True)(a)[1],
    ]  # fmt: skip
    np.testing.assert_allclose(values, wanted, rtol=1e-14, atol=1e-14)


def test_a_gradient_at_repeated_values_is_the_same_as_the_value_of_another_transform():
    g = lambda a: np.linalg.svdvals(a) @ np.linalg.svdvals(a) * np.sum(np.linalg.svdvals(a) ** 3)
    a, t = np.eye(3), np.diag([1.0, 2.0, 3.0])
    wanted = fad.grad(g)(a)
    np.testing.assert_allclose(fad.jvp(fad.grad(g), (a,), (t,))[0], wanted, rtol=1e-12)
    np.testing.assert_allclose(fad.vjp(fad.grad(g), a)[0], wanted, rtol=1e-12)
    np.testing.assert_allclose(fad.linearize(fad.grad(g), a)[0], wanted, rtol=1e-12)
    along = fad.jvp(lambda a: fad.jvp(g, (a,), (t,))[1], (a,), (t,))[0]
    np.testing.assert_allclose(along, np.sum(wanted * t), rtol=1e-12)
    np.testing.assert_allclose(fad.grad(lambda a: np.sum(fad.grad(g)(a) * t))(a), fad.jvp(fad.grad(g), (a,), (t,))[1])
