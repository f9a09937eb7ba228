"""fad.scipy.linalg: what the contract of its operations leaves open, and what plain arrays and bad input get."""

import inspect

import numpy as np
import pytest
import scipy.linalg as sl

import fad
from fad.errors import MissingRuleError
from fad.scipy import linalg as fsl
from fad.scipy.linalg.common import without_newer_arguments
from fad.testing import call, contract

RNG = np.random.default_rng(11)
A = RNG.normal(size=(3, 3))
C = RNG.normal(size=(3, 3))


def h(x):
    return np.conjugate(np.swapaxes(x, -1, -2))


def definite(x):
    return x @ h(x) + 2.0 * np.eye(x.shape[-1], dtype=x.dtype)


def two_squares(s):
    return [call(s.real(3, 3), s.real(3, 3)), call(s.real(1, 1), s.real(1, 1))]


def one_square(s):
    return [call(s.real(3, 3))]


def projectors(v, b):
    k = np.arange(1.0, v.shape[-1] + 1).astype(v.real.dtype)
    return (v * k) @ h(v) @ b


FUNCTIONS = {
    "eigh of a pencil, values": (lambda x, y: fsl.eigvalsh(x + h(x), definite(y)), two_squares),
    "eigh of a pencil, vectors": (
        lambda x, y: projectors(fsl.eigh(x + h(x), definite(y))[1], definite(y)),
        two_squares,
    ),
    "eigh": (lambda x: projectors(fsl.eigh(x + h(x))[1], x), one_square),
    "cho_factor": (lambda x: fsl.cho_solve(fsl.cho_factor(definite(x)), x), one_square),
    "cho_factor, lower": (lambda x: fsl.cho_solve(fsl.cho_factor(definite(x), lower=True), x), one_square),
    "cholesky": (lambda x: fsl.cholesky(definite(x)), one_square),
    "lu_factor and lu_solve": (
        lambda x: fsl.lu_solve(fsl.lu_factor(x + 4.0 * np.eye(3, dtype=x.dtype)), x),
        one_square,
    ),
    "orth": (lambda x: fsl.orth(x) @ h(fsl.orth(x)), lambda s: [call(s.real(3, 2))]),
    "null_space": (lambda x: fsl.null_space(x) @ h(fsl.null_space(x)), lambda s: [call(s.real(2, 3))]),
    "solve, positive definite": (lambda x: fsl.solve(definite(x), x, assume_a="pos"), one_square),
}
if "assume_a" in inspect.signature(sl.inv).parameters:  # SciPy 1.17 and newer
    FUNCTIONS["inv, hermitian"] = (lambda x: fsl.inv(definite(x), assume_a="her"), one_square)


@pytest.mark.parametrize("what", list(FUNCTIONS))
def test_functions_of_hermitian_matrices_and_factors_pass_the_contract(what):
    function, samples = FUNCTIONS[what]
    contract(function, samples=samples)


@pytest.mark.parametrize("solver", [fsl.solve_continuous_are, fsl.solve_discrete_are])
@pytest.mark.parametrize("kind", [float, complex])
def test_riccati_equations_have_derivatives_of_every_operand_to_second_order(solver, kind):
    x = RNG.normal(size=(4, 3, 3)).astype(kind)
    if kind is complex:
        x = x + 1j * RNG.normal(size=x.shape)

    def f(a, b, q, r):
        return solver(0.5 * a, b[:, :2], definite(q), definite(r[:2, :2]))

    fad.testing.check_grads(f, tuple(x), order=2)


@pytest.mark.parametrize("name", ["solve_continuous_are", "solve_discrete_are"])
@pytest.mark.parametrize("kind", [float, complex])
def test_riccati_equations_take_a_weight_of_states_by_inputs(name, kind):
    x = RNG.normal(size=(5, 3, 3)).astype(kind)
    if kind is complex:
        x = x + 1j * RNG.normal(size=x.shape)

    def f(a, b, q, r, s, of=fsl):
        q, r = q @ np.conj(q.T) + np.eye(3), r[:2, :2] @ np.conj(r[:2, :2].T) + np.eye(2)
        return getattr(of, name)(0.5 * a, b[:, :2], q, r, s=0.1 * s[:, :2])

    assert np.allclose(fad.jvp(f, tuple(x), tuple(x))[0], f(*x, of=sl), rtol=1e-9)
    fad.testing.check_grads(f, tuple(x), order=1)


def test_a_pencil_with_repeated_eigenvalues_is_exact():
    # a v = w b v is the same problem as that of b^-1 a; a = 2 b has one eigenvalue, 2, three times.
    b = definite(A)

    def by_eigh(a):
        w, v = fsl.eigh(a, b)
        return np.sum(C * ((v * w**3) @ v.T))  # (b^-1 a)^3 b^-1, for v v^T = b^-1

    def direct(a):
        a = 0.5 * (a + a.T)
        m = np.linalg.solve(b, a)
        return np.sum(C * (m @ m @ m @ np.linalg.inv(b)))

    for a in (2.0 * b, np.zeros((3, 3))):
        wanted = fad.grad(direct)(a)
        np.testing.assert_allclose(fad.grad(by_eigh)(a), wanted, rtol=1e-9, atol=1e-9 * np.abs(wanted).max() + 1e-12)


def test_expm_of_defective_and_zero_matrices_has_exact_derivatives():
    for a in (np.zeros((3, 3)), np.diag([1.0, 1.0], 1)):
        t = fad.jvp(fsl.expm, (a,), (C,))[1]
        np.testing.assert_allclose(t, sl.expm_frechet(a, C, compute_expm=False), rtol=1e-12, atol=1e-13)
        np.testing.assert_allclose(
            fad.grad(lambda x: np.sum(C * fsl.expm(x)))(a), sl.expm_frechet(a.T, C, compute_expm=False), atol=1e-13
        )


def test_expm_to_third_order():
    # d^3/dt^3 expm(t a) at 0 is a^3.
    def along(t):
        return fsl.expm(t * A)

    d = along
    for _ in range(3):
        d = (lambda f: lambda t: fad.jvp(f, (t,), (1.0,))[1])(d)
    np.testing.assert_allclose(d(0.0), A @ A @ A, rtol=1e-11, atol=1e-11)


def test_logm_and_sqrtm_invert_expm_and_squaring():
    a = 0.3 * A
    t = fad.jvp(lambda x: fsl.logm(fsl.expm(x)), (a,), (C,))[1]
    np.testing.assert_allclose(t, C, atol=1e-12)
    s = definite(A)
    np.testing.assert_allclose(fad.jvp(lambda x: fsl.sqrtm(x) @ fsl.sqrtm(x), (s,), (C,))[1], C, atol=1e-12)


def test_plain_arrays_get_what_scipy_gives():
    np.testing.assert_array_equal(fsl.expm(A), sl.expm(A))
    np.testing.assert_array_equal(fsl.hilbert(3), sl.hilbert(3))
    assert fsl.schur is sl.schur


def test_names_that_scipy_does_not_have_raise():
    with pytest.raises(AttributeError):
        _ = fsl.no_such_function


def test_a_singular_triangle_raises_as_in_scipy():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        fad.grad(lambda a: np.sum(fsl.solve_triangular(a, np.ones(2))))(np.zeros((2, 2)))


def test_options_without_a_rule_are_refused():
    s = definite(A)
    with pytest.raises(MissingRuleError, match="subset_by_value"):
        fad.grad(lambda a: np.sum(fsl.eigvalsh(a, subset_by_value=(0, 1))))(s)
    with pytest.raises(MissingRuleError, match="left=True"):
        fad.grad(lambda a: np.sum(fsl.eig(a, s, left=True)[0].real))(s)
    with pytest.raises(MissingRuleError, match="raw"):
        fad.grad(lambda a: np.sum(fsl.qr(a, mode="raw")[1]))(s)


def test_arguments_that_the_installed_scipy_does_not_have_are_refused():
    def inv(a, check_finite=True, assume_a=None):
        return a

    def older(a, check_finite=True):
        return a

    ours = without_newer_arguments(inv, older)
    assert ours(A, check_finite=False) is A
    with pytest.raises(TypeError, match=r"older\(\) of SciPy .* has no argument 'assume_a'"):
        ours(A, assume_a="her")
    assert without_newer_arguments(older, inv) is older


def test_a_structure_that_scipy_does_not_know_is_refused():
    with pytest.raises(ValueError, match="not a recognized matrix structure"):
        fad.grad(lambda a: np.sum(fsl.solve(a, np.ones(3), assume_a="no such")))(A)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.complex128])
@pytest.mark.parametrize("columns", [(), (2,)])
@pytest.mark.parametrize("shape", [(4, 2), (2, 4), (3, 3)])
def test_residuals_of_matrices_without_full_rank_have_the_form_of_scipys(dtype, columns, shape):
    a, b = np.ones(shape, dtype), RNG.normal(size=(shape[0], *columns)).astype(dtype)
    seen = []
    fad.jvp(lambda a: seen.append(fsl.lstsq(a, b)[1]) or (), (a,), (a,))
    found, wanted = getattr(seen[0], "wrapped", seen[0]), sl.lstsq(a, b)[1]
    np.testing.assert_array_equal(found, wanted)
    assert (type(found), found.dtype) == (type(wanted), wanted.dtype)


def test_the_vectors_of_eig_are_real_where_scipys_are():
    turn, stretch = np.array([[0.0, 1.0], [-1.0, 0.0]]), np.array([[1.0, 0.5], [0.2, 3.0]])
    for a in (turn, stretch, stretch.astype(np.float32), stretch + 0j):
        v, _ = fad.jvp(lambda a: fsl.eig(a)[1], (a,), (a,))
        assert v.dtype == sl.eig(a)[1].dtype
    assert fad.vmap(lambda a: fsl.eig(a)[1])(np.stack([turn, stretch])).dtype == np.complex128
    assert fad.vmap(lambda a: fsl.eig(a)[1])(np.stack([stretch, stretch])).dtype == np.float64


@pytest.mark.parametrize("kind", [np.float32, np.complex64, np.float64])
def test_eig_turns_and_orders_its_vectors_as_scipy_in_single_precision_too(kind):
    for seed in range(12):
        a = (np.random.default_rng(seed).normal(size=(3, 3)) + np.diag([0.0, 4.0, 8.0])).astype(kind)
        w, v = fad.jvp(fsl.eig, (a,), (a,))[0]
        for found, wanted in zip((w, v), sl.eig(a), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_allclose(found, wanted, atol=1e-12 if kind is np.float64 else 1e-5)
        np.testing.assert_array_equal(fad.jvp(fsl.eigvals, (a,), (a,))[0], sl.eig(a)[0])


@pytest.mark.parametrize("lower", [False, True])
def test_cho_factor_and_cho_solve_take_stacks_and_give_scipys_flags(lower):
    stack = np.stack([definite(A), definite(C)])
    for a in (stack[0], stack):
        wanted, flags = sl.cho_factor(a, lower)
        seen = []

        def solved(a, seen=seen):
            seen[:] = fsl.cho_factor(a, lower)
            return fsl.cho_solve(tuple(seen), A)

        found = fad.jvp(solved, (a,), (a,))[0]
        np.testing.assert_allclose(found, np.linalg.solve(a, A), atol=1e-13)
        np.testing.assert_allclose(fad.jvp(lambda b, c=(wanted, flags): fsl.cho_solve(c, b), (A,), (A,))[1], found)
        assert type(seen[1]) is type(flags)
        np.testing.assert_array_equal(seen[1], flags)


def test_the_other_triangle_of_cho_factor_is_scipys_and_so_is_its_derivative():
    s = definite(A)
    for lower in (False, True):
        c, dc = fad.jvp(lambda s, lower=lower: fsl.cho_factor(s, lower)[0], (s,), (s,))
        wanted = sl.cho_factor(s, lower)[0]
        np.testing.assert_allclose(c, wanted, atol=1e-14)
        other = np.triu(wanted, 1) if lower else np.tril(wanted, -1)
        np.testing.assert_allclose(np.triu(dc, 1) if lower else np.tril(dc, -1), other, atol=1e-14)


# --- bands ----------------------------------------------------------------------------------------------------------

BANDS = np.array([[np.nan, 1.0, -2.0, 0.5], [6.0, 7.0, 8.0, 9.0], [0.3, -1.0, 2.0, np.nan]])
DENSE = np.diag(BANDS[1]) + np.diag(BANDS[0, 1:], 1) + np.diag(BANDS[2, :3], -1)


def test_a_banded_system_reads_and_differentiates_nothing_outside_its_bands():
    b = np.arange(1.0, 5.0)
    x, pull = fad.vjp(lambda ab, b: fsl.solve_banded((1, 1), ab, b, check_finite=False), BANDS, b)
    np.testing.assert_allclose(x, np.linalg.solve(DENSE, b), rtol=1e-14)
    to_bands, to_b = pull(np.ones(4))
    dense = fad.grad(lambda a: np.sum(np.linalg.solve(a, b)))(DENSE)
    np.testing.assert_allclose(to_bands[1], np.diag(dense), rtol=1e-13)
    np.testing.assert_allclose(to_bands[0], [0.0, *np.diag(dense, 1)], rtol=1e-13)
    np.testing.assert_allclose(to_bands[2], [*np.diag(dense, -1), 0.0], rtol=1e-13)
    np.testing.assert_allclose(to_b, np.linalg.solve(DENSE.T, np.ones(4)), rtol=1e-14)


def test_a_banded_system_too_large_to_be_dense_is_solved():
    ab = np.ones((3, 200_000)) * np.array([[-1.0], [4.0], [-1.0]])
    slope = fad.grad(lambda c: np.sum(fsl.solve_banded((1, 1), ab * c, ab[1])))(1.0)
    np.testing.assert_allclose(slope, -np.sum(sl.solve_banded((1, 1), ab, ab[1])), rtol=1e-13)


@pytest.mark.parametrize("solve", [lambda ab, b: fsl.solve_banded((1, 1), ab, b), fsl.solveh_banded])
def test_banded_systems_are_refused_as_scipy_refuses_them(solve):
    rows = 3 if solve is not fsl.solveh_banded else 2
    with pytest.raises(ValueError, match="shapes of ab and b are not compatible"):
        fad.grad(lambda b: np.sum(solve(np.ones((rows, 4)), b)))(np.ones(3))
    with pytest.raises(np.linalg.LinAlgError, match=r"singular|not positive definite"):
        fad.grad(lambda b: np.sum(solve(np.zeros((rows, 4)), b)))(np.ones(4))
    with pytest.raises(ValueError, match=r"l\+u\+1 \(4\) does not equal ab.shape\[0\] \(3\)"):
        fad.grad(lambda b: np.sum(fsl.solve_banded((1, 2), np.ones((3, 4)), b)))(np.ones(4))


def test_a_subset_of_eigenvalues():
    s = definite(A)
    g = fad.grad(lambda a: np.sum(fsl.eigvalsh(a, subset_by_index=(2, 2))))(s)
    v = np.linalg.eigh(s)[1][:, 2]
    np.testing.assert_allclose(g, np.outer(v, v), atol=1e-13)


@pytest.mark.parametrize("f", [fsl.expm, fsl.logm, fsl.sqrtm, fsl.cosm])
def test_a_matrix_that_is_not_square_raises(f):
    with pytest.raises((np.linalg.LinAlgError, ValueError), match="square"):
        fad.grad(lambda a: np.sum(f(a)))(np.ones((2, 3)))


@pytest.mark.parametrize("kind", [float, complex])
@pytest.mark.parametrize("lower", [False, True])
@pytest.mark.parametrize(
    ("function", "structure"),
    [
        *[("inv", s) for s in ("gen", "sym", "her", "pos", "upper triangular", "lower triangular")],
        *[("solve", s) for s in ("gen", "sym", "her", "pos", "upper triangular", "lower triangular")],
        *[("solve", s) for s in ("diagonal", "tridiagonal", "banded")],
    ],
)
def test_under_an_assumption_the_matrix_is_read_where_scipy_reads_it(structure, function, lower, kind):
    rng = np.random.default_rng(3)
    a, b = 5.0 * np.eye(4) + rng.standard_normal((4, 4)), rng.standard_normal(4)
    if kind is complex:
        a = a + 1j * (rng.standard_normal((4, 4)) if structure != "pos" else np.triu(np.ones((4, 4)), 1))
    more = (b,) if function == "solve" else ()
    if "assume_a" not in inspect.signature(getattr(sl, function)).parameters:
        pytest.skip("before SciPy 1.17 inv assumes nothing of its matrix")
    wanted = getattr(sl, function)(a, *more, assume_a=structure, lower=lower)
    ours = lambda a: getattr(fad.scipy.linalg, function)(a, *more, assume_a=structure, lower=lower)
    np.testing.assert_allclose(fad.vjp(ours, a)[0], wanted, rtol=1e-9, atol=1e-12)


def test_a_cutoff_says_which_singular_values_span_the_range():
    a = np.diag([1.0, 1e-2, 1e-4])
    for rcond, rank in ((None, 3), (1e-3, 2), (0.1, 1)):
        assert fad.vjp(lambda a, r=rcond: fsl.orth(a, r), a)[0].shape == (3, rank)
        assert fad.vjp(lambda a, r=rcond: fsl.null_space(a, r), a)[0].shape == (3, 3 - rank)


@pytest.mark.parametrize(("driver", "cond"), [
    ("gelsd", 1.0), ("gelsd", -1.0), ("gelss", 1.0), ("gelss", -1.0), ("gelsy", None), ("gelsy", 1e-6), (None, 0.5),
])  # fmt: skip
def test_least_squares_give_what_scipys_driver_gives(driver, cond):
    a, b = np.random.default_rng(1).normal(size=(5, 3)), np.arange(5.0)
    solve = lambda b: fsl.lstsq(a, b, cond, lapack_driver=driver)
    try:
        wanted = sl.lstsq(a, b, cond, lapack_driver=driver)
    except ValueError as error:  # of SciPy 1.18, where `cond` is negative
        with pytest.raises(ValueError, match=str(error)):
            fad.jvp(solve, (b,), (b,))
        return
    found = fad.jvp(solve, (b,), (b,))[0]
    for x, y in zip(wanted, found, strict=True):
        assert np.shape(x) == np.shape(y)
        assert (x is None) == (y is None)
        if x is not None:
            np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("kind", ["real", "symmetric", "complex", "diagonal mass"])
def test_a_pencil_has_the_order_and_the_vectors_of_scipys(kind):
    rng = np.random.default_rng(3)
    a, b = rng.normal(size=(2, 5, 4, 4))
    a = a + a.swapaxes(-1, -2) if kind == "symmetric" else a + 1j * b if kind == "complex" else a
    b = np.eye(4) * b if kind == "diagonal mass" else b @ b.swapaxes(-1, -2) + np.eye(4)
    every = fad.vmap(fsl.eig)(a, b)
    for k in range(5):
        wanted, step = sl.eig(a[k], b[k]), 1e-6
        found, (tangent, _) = fad.jvp(lambda a, b: fsl.eig(a, b), (a[k], b[k]), (a[k].T, b[k].T))
        for x, y, z, q in zip(wanted, found, fad.jit(fsl.eig)(a[k], b[k]), every, strict=True):
            np.testing.assert_allclose(y, x, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(z, x, rtol=1e-9, atol=1e-11)
            np.testing.assert_allclose(q[k], x, rtol=1e-9, atol=1e-11)
        np.testing.assert_allclose(fad.jvp(fsl.eigvals, (a[k], b[k]), (a[k].T, b[k].T))[0], wanted[0], rtol=1e-9)
        ahead, behind = (sl.eig(a[k] + h * a[k].T, b[k] + h * b[k].T)[0] for h in (step, -step))
        np.testing.assert_allclose(tangent, (ahead - behind) / (2 * step), rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("kind", [float, complex])
def test_left_eigenvectors_are_scipys_and_have_the_derivatives_of_their_differences(kind):
    rng = np.random.default_rng(3)
    for shift in (0.0, 9.0):  # with pairs of conjugate values, and without
        a = (rng.normal(size=(4, 4)) + np.diag(shift * np.arange(4.0))).astype(kind)
        a = a + 1j * rng.normal(size=(4, 4)) if kind is complex else a
        moved = lambda x, a=a: a + x * np.cos(np.arange(16.0)).reshape(4, 4)
        for settings in ({"left": True}, {"left": True, "right": False}):
            parts = lambda x, k=settings, m=moved: [np.ravel(part) for part in sl.eig(m(x), **k)]
            found, slopes = fad.jvp(lambda x, p=parts: tuple(p(x)), (0.0,), (1.0,))
            plain = zip(parts(0.0), parts(1e-6), parts(-1e-6), strict=True)
            for got, slope, (wanted, more, less) in zip(found, slopes, plain, strict=True):
                assert got.dtype == wanted.dtype
                np.testing.assert_allclose(got, wanted, 1e-9, 1e-12)
                np.testing.assert_allclose(slope, (more - less) / 2e-6, 1e-5, 1e-7)
        length = lambda x, m=moved: np.abs(sl.eig(m(x), left=True)[1])[0, 1]
        np.testing.assert_allclose(fad.grad(length)(0.0), (length(1e-6) - length(-1e-6)) / 2e-6, 1e-5, 1e-7)
        np.testing.assert_allclose(fad.vmap(length)(np.array([0.0, 0.1])), [length(0.0), length(0.1)], 1e-9)
