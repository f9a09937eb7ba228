"""Sparse matrices: products and systems equal dense ones, with derivatives in entries and right-hand sides."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError
from fad.testing import check_grads

sp = pytest.importorskip("scipy.sparse")

from fad.scipy import sparse  # noqa: E402

RNG = np.random.default_rng(2)
ROWS, COLUMNS = np.array([2, 0, 1, 3, 0, 1, 2, 3, 0]), np.array([1, 0, 1, 3, 2, 3, 2, 0, 2])
DATA = RNG.standard_normal(9) + np.where(ROWS == COLUMNS, 5.0, 0.0)
X, M = RNG.standard_normal(4), RNG.standard_normal((4, 3))
MATRIX = sp.coo_array((DATA, (ROWS, COLUMNS)), shape=(4, 4))


def matrix(data):
    return sparse.coo_array((data, (ROWS, COLUMNS)), shape=(4, 4))


def dense(data):
    return matrix(data).toarray()


def same(f, g, *xs):
    """Raise unless two functions have one value and one gradient in every operand."""
    ct = np.random.default_rng(0).standard_normal(np.shape(f(*xs)))
    for got, wanted in zip(fad.vjp(f, *xs)[1](ct), fad.vjp(g, *xs)[1](ct), strict=True):
        np.testing.assert_allclose(got, wanted, atol=1e-10)
    np.testing.assert_allclose(f(*xs), g(*xs), atol=1e-12)


def test_products_equal_dense_ones_from_both_sides_with_entries_in_one_place_added():
    for x in (X, M):
        same(lambda d, x: matrix(d) @ x, lambda d, x: dense(d) @ x, DATA, x)
        same(lambda d, x: x.T @ matrix(d), lambda d, x: x.T @ dense(d), DATA, x)
        same(lambda d, x: matrix(d).T @ x, lambda d, x: dense(d).T @ x, DATA, x)


def test_a_matrix_of_scipys_is_a_constant():
    for a in (MATRIX, MATRIX.tocsr(), MATRIX.tocsc(), sp.csr_matrix(MATRIX)):
        same(lambda x, a=a: sparse.matmul(a, x), lambda x: MATRIX.toarray() @ x, M)
        same(lambda x, a=a: sparse.matmul(x, a), lambda x: x @ MATRIX.toarray(), M.T)


FORMATS = [MATRIX.asformat(name) for name in ("coo", "csr", "csc", "bsr", "dia", "dok", "lil")] + [
    sp.csc_matrix(MATRIX)
]


@pytest.mark.parametrize("a", FORMATS, ids=lambda a: f"{type(a).__name__}")
def test_scipys_matrices_are_multiplied_with_traced_arrays_as_they_are(a):
    full = MATRIX.toarray()
    same(lambda x: a @ x, lambda x: full @ x, X)
    same(lambda x: x @ a, lambda x: x @ full, X)
    same(lambda x: a.dot(x), lambda x: full @ x, M)
    same(lambda x: x @ a, lambda x: x @ full, M.T)
    same(lambda x: x @ a.T @ (a @ x), lambda x: x @ full.T @ (full @ x), X)
    same(lambda x: (x[0] * a) @ x, lambda x: x[0] * (full @ x), X)
    run = fad.jit(fad.grad(lambda x: np.sum((a @ x) ** 2)))
    for x in (X, 2 * X):
        np.testing.assert_allclose(run(x), 2 * full.T @ full @ x, rtol=1e-13)
    np.testing.assert_allclose(fad.vmap(lambda x: a @ x)(M.T), M.T @ full.T, rtol=1e-13)


def test_a_star_between_an_older_matrix_and_a_vector_is_their_product():
    a = sp.csr_matrix(MATRIX)
    same(lambda x: a * x, lambda x: MATRIX.toarray() @ x, X)
    same(lambda x: x * a, lambda x: x @ MATRIX.toarray(), X)


def test_a_product_that_does_not_fit_is_an_error():
    with pytest.raises(ValueError, match="cannot be multiplied"):
        fad.grad(lambda x: np.sum(MATRIX @ x))(X[:2])
    with pytest.raises(ValueError, match="Scalar operands"):
        fad.grad(lambda x: np.sum(MATRIX.tocsr() @ x[0]))(X)


def test_products_of_two_sparse_matrices_are_sparse():
    full = MATRIX.toarray()
    same(lambda d: (matrix(d).T @ matrix(d)).toarray(), lambda d: dense(d).T @ dense(d), DATA)
    same(lambda d: MATRIX @ matrix(d) @ X, lambda d: full @ dense(d) @ X, DATA)
    same(lambda d: (matrix(d) @ MATRIX.tocsc()).toarray(), lambda d: dense(d) @ full, DATA)
    same(lambda w: (MATRIX.T @ sp.diags_array(w) @ MATRIX).toarray(), lambda w: full.T @ np.diag(w) @ full, X)
    with pytest.raises(ValueError, match="cannot be multiplied"):
        fad.jvp(lambda d: matrix(d) @ sp.eye_array(7), (DATA,), (DATA,))


def test_matrices_of_traced_entries_are_made_by_scipys_names():
    def assemble(d):
        twice = (np.append(d, d), (np.append(ROWS, ROWS), np.append(COLUMNS, COLUMNS)))
        a = sp.coo_matrix(twice, shape=(4, 4)).tocsr()
        assert isinstance(a, sp.csr_matrix)
        assert isinstance(MATRIX.tocsr(), sp.csr_array)
        return a.tocsc().toarray() + (a + MATRIX).toarray() - (MATRIX - a).toarray()

    same(assemble, lambda d: 6 * dense(d), DATA)

    def by_diagonals(x):
        return sp.diags([x, -2.0, x[1:]], [-1, 0, 2], shape=(5, 5)).toarray() + sp.diags(x, 1).toarray()

    same(by_diagonals, lambda x: np.diag(x, -1) - 2 * np.eye(5) + np.diag(x[1:], 2) + np.diag(x, 1), X)
    for entries, offsets in (([X, X], [0]), ([X, X], [0, 1])):
        with pytest.raises(ValueError, match=r"offsets|does not fit"):
            fad.scipy.sparse.diags(entries, offsets)


def test_a_part_of_a_matrix_of_traced_entries_is_what_scipys_is():
    def matrix(d):
        return sp.coo_matrix((np.append(d, d), (np.append(ROWS, ROWS), np.append(COLUMNS, COLUMNS))), shape=(4, 4))

    assert sp.issparse(matrix(DATA))
    kept = np.array([2, 0, 3])
    for key in (
        np.s_[1:, 1:],
        np.s_[::-1, [1, 0]],
        np.s_[1:2],
        np.s_[:, 0:1],
        np.s_[kept[:, None], kept],
    ):

        def part(d, key=key):
            a = matrix(d).tocsr()[key]
            assert sp.issparse(a)
            return a.toarray()

        same(part, lambda d, key=key: 2 * dense(d)[key], DATA)
    for i in range(4):
        same(lambda d, i=i: matrix(d).tocsr()[i, 1] * np.ones(2), lambda d, i=i: 2 * dense(d)[i, 1] * np.ones(2), DATA)
    with pytest.raises(TypeError, match=r"write a\[i : i \+ 1\]"):
        fad.jvp(lambda d: sparse.coo_array((d, (ROWS, COLUMNS)), shape=(4, 4))[0], (DATA,), (DATA,))


def test_solutions_have_the_precision_of_scipys():
    for kind in (np.float32, np.float64, np.complex64):
        for other in (np.float32, np.float64, np.complex64, np.complex128):
            a, b = sp.csc_array((MATRIX + 4.0 * sp.eye_array(4)).astype(kind)), X.astype(other)
            wanted = sp.linalg.spsolve(a, b)
            y, pullback = fad.vjp(lambda b, a=a: sp.linalg.spsolve(a, b), b)
            assert y.dtype == wanted.dtype
            assert pullback(y)[0].dtype == other
            np.testing.assert_allclose(y, wanted, rtol=20 * np.finfo(wanted.dtype).eps)


def test_empty_columns_are_batched():
    for shape in ((2, 0), (0, 2), (0, 0)):
        a = sp.csr_array(shape)
        for x in (np.zeros((3, shape[1])), np.zeros((3, shape[1], 0)), np.zeros((3, shape[1], 2))):
            assert fad.vmap(lambda x, a=a: a @ x)(x).shape == (3, shape[0], *x.shape[2:])


def test_a_factorisation_solves_with_traced_right_hand_sides():
    a = (MATRIX + 4.0 * sp.eye_array(4)).tocsc()
    full = a.toarray()
    same(lambda b: sp.linalg.splu(a).solve(b), lambda b: np.linalg.solve(full, b), X)
    same(lambda b: sp.linalg.splu(a).solve(b, "T"), lambda b: np.linalg.solve(full.T, b), M)
    same(lambda b: sp.linalg.factorized(a)(b), lambda b: np.linalg.solve(full, b), X)
    factors = sparse.linalg.splu(a)
    np.testing.assert_allclose(
        (factors.L @ factors.U).toarray(), full[np.argsort(factors.perm_r)][:, np.argsort(factors.perm_c)]
    )

    def implicit_step(d, b):
        solve = sp.linalg.splu(sp.coo_matrix((d, (ROWS, COLUMNS)), shape=(4, 4)).tocsc() + sp.eye_array(4)).solve
        return solve(solve(b))

    same(implicit_step, lambda d, b: np.linalg.matrix_power(np.linalg.inv(dense(d) + np.eye(4)), 2) @ b, DATA, X)
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        sparse.linalg.splu(sp.csc_array(np.diag([1.0, 0.0])))
    with pytest.raises(ValueError, match="'N', 'T' or 'H'"):
        factors.solve(X, "Q")


def test_traced_entries_are_in_the_order_of_scipys():
    places = (np.array([2, 0, 2, 1]), np.array([1, 3, 1, 0]))
    for form in ("tocsr", "tocsc"):
        theirs = getattr(sp.coo_array((X, places)), form)()
        y, _ = fad.jvp(lambda d, form=form: getattr(sp.coo_array((d, places)), form)().data, (X,), (X,))
        np.testing.assert_array_equal(y, theirs.data)


def test_sums_multiples_and_diagonals():
    same(lambda d: (2.0 * matrix(d) - matrix(d).T / 3.0).toarray(), lambda d: 2.0 * dense(d) - dense(d).T / 3.0, DATA)
    same(lambda d: matrix(d).diagonal(), lambda d: np.diagonal(dense(d)) + 0.0, DATA)
    for axis in (None, 0, 1):
        same(lambda d, a=axis: matrix(d).sum(a) + 0.0, lambda d, a=axis: np.sum(dense(d), axis=a), DATA)


def test_all_forms_of_scipy_make_the_same_matrix():
    csr, csc = MATRIX.tocsr(), MATRIX.tocsc()
    made = [
        sparse.csr_array((csr.data, csr.indices, csr.indptr)), sparse.csc_array((csc.data, csc.indices, csc.indptr)),
        sparse.csr_array((DATA, (ROWS, COLUMNS))), sparse.csr_array(MATRIX), sparse.coo_array(MATRIX.toarray()),
    ]  # fmt: skip
    for a in made:
        np.testing.assert_allclose(a.toarray(), MATRIX.toarray())
        np.testing.assert_allclose(a.tocsr().toarray(), MATRIX.toarray())


def test_products_are_batched_recorded_and_differentiated_twice():
    many = RNG.standard_normal((5, 9))
    np.testing.assert_allclose(fad.vmap(lambda d: matrix(d) @ X)(many), [dense(d) @ X for d in many])
    np.testing.assert_allclose(fad.vmap(lambda x: matrix(DATA) @ x)(M.T), (dense(DATA) @ M).T)
    recorded = fad.jit(lambda a, x: a @ x)
    for _ in range(2):
        np.testing.assert_allclose(recorded(matrix(DATA), X), dense(DATA) @ X)
    check_grads(lambda d, x: matrix(d) @ (matrix(d) @ x), (DATA, X), order=2)


@pytest.mark.parametrize("name", ["spsolve", "gmres", "bicgstab", "bicg", "cgs", "tfqmr", "lgmres", "gcrotmk"])
def test_solutions_equal_dense_ones_and_are_differentiated_implicitly(name):
    def solve(d, b):
        options = {} if name == "spsolve" else {"rtol": 1e-13}
        found = getattr(sparse.linalg, name)(matrix(d), b, **options)
        return found if name == "spsolve" else found[0]

    same(solve, lambda d, b: np.linalg.solve(dense(d), b), DATA, X)
    check_grads(solve, (DATA, X), order=2)
    many = RNG.standard_normal((3, 4))
    np.testing.assert_allclose(fad.vmap(lambda b: solve(DATA, b))(many), np.linalg.solve(dense(DATA), many.T).T)


def test_conjugate_gradients_solve_positive_definite_systems():
    a = (MATRIX @ MATRIX.T + 4.0 * sp.eye_array(4)).tocsr()
    for options in ({}, {"M": sp.diags_array(1.0 / a.diagonal())}):
        same(
            lambda b, o=options: sparse.linalg.cg(a, b, rtol=1e-13, **o)[0],
            lambda b: np.linalg.solve(a.toarray(), b), X,
        )  # fmt: skip


def test_plain_arguments_go_to_scipy_itself():
    np.testing.assert_array_equal(sparse.linalg.spsolve(MATRIX.tocsc(), X), sp.linalg.spsolve(MATRIX.tocsc(), X))
    x, info = sparse.linalg.cg(sp.eye_array(4).tocsr(), X, X)
    np.testing.assert_allclose(x, X)
    assert info == 0


def test_complex_matrices():
    z = DATA + 0.3j * DATA[::-1]
    np.testing.assert_allclose(fad.vjp(lambda z: matrix(z) @ X, z)[0], dense(z) @ X)
    jacobian = fad.jacobian(lambda z: sparse.linalg.spsolve(matrix(z), X), holomorphic=True)
    np.testing.assert_allclose(
        jacobian(z), fad.jacobian(lambda z: np.linalg.solve(dense(z), X), holomorphic=True)(z), atol=1e-12
    )


def test_a_singular_matrix_and_a_solver_that_did_not_converge_raise():
    with pytest.raises(np.linalg.LinAlgError, match="singular"):
        fad.vjp(lambda d: sparse.linalg.spsolve(matrix(d), X), np.zeros(9))
    with pytest.raises(DerivativeError, match=r"cg did not converge \(info = 1\)"):
        fad.vjp(lambda b: sparse.linalg.cg(MATRIX.tocsr(), b, maxiter=1)[0], X)


BAD = {
    "a shape": (lambda d: matrix(d) @ X[:3], ValueError, "cannot be multiplied"),
    "an index": (lambda d: sparse.coo_array((d, (ROWS + 1, COLUMNS)), shape=(4, 4)), ValueError, "row index"),
    "a number of entries": (lambda d: sparse.coo_array((d[1:], (ROWS, COLUMNS))), ValueError, "same length"),
    "a traced dense matrix": (lambda d: sparse.csr_array(d.reshape(3, 3)), TypeError, "places"),
    "a dense system": (lambda d: sparse.linalg.spsolve(np.eye(9), d), TypeError, "fad.scipy.linalg.solve"),
    "a system that is not square": (
        lambda d: sparse.linalg.spsolve(sparse.csr_array(np.ones((9, 2))), d), ValueError, "square"),
    "traced entries for SciPy": (lambda d: matrix(d).argmax(), AttributeError, "traced"),
}  # fmt: skip


@pytest.mark.parametrize("what", BAD)
def test_bad_input_is_refused_in_words(what):
    function, error, words = BAD[what]
    with pytest.raises(error, match=words):
        fad.vjp(function, DATA)


def _tridiagonal(u):
    wide = np.pad(u, 1)
    return wide[2:] - 3 * u + wide[:-2] - np.exp(u)


def test_what_a_jitted_sparse_jacobian_returns_is_used_as_scipys():
    import scipy.sparse
    import scipy.sparse.linalg as sla

    u = np.linspace(0.0, 1.0, 8)
    derivative = fad.jit(fad.sparse.jacobian(_tridiagonal))
    a, dense = derivative(u), fad.jacobian(_tridiagonal)(u)
    np.testing.assert_allclose(scipy.sparse.csr_array((a.data, a.indices, a.indptr)).toarray(), dense, rtol=1e-13)
    assert isinstance(a.tocsc(), scipy.sparse.csc_array)
    assert a.tocoo().coords[0].tolist() == a.pattern.rows.tolist()
    np.testing.assert_allclose(a.multiply(2).toarray(), 2 * dense, rtol=1e-13)
    wanted = np.linalg.solve(dense, u)
    np.testing.assert_allclose(sla.spsolve(a.tocsc(), u), wanted, rtol=1e-11)
    np.testing.assert_allclose(sla.cg(a, u, rtol=1e-12)[0], wanted, rtol=1e-9)
    np.testing.assert_allclose(sla.aslinearoperator(a).rmatvec(u), dense.T @ u, rtol=1e-13)
    assert not hasattr(a, "nothing_of_the_kind")


def test_where_scipy_cannot_take_a_sparse_array_the_error_says_what_to_write():
    import scipy.sparse.linalg as sla

    u = np.linspace(0.0, 1.0, 8)
    derivative = fad.sparse.jacobian(_tridiagonal)
    with pytest.raises(ValueError, match=r"SciPy takes its .tocsr\(\) or .tocsc\(\)"):
        sla.splu(fad.jit(derivative)(u))
    with pytest.raises(TypeError, match=r"write a.toarray\(\)"):
        np.asarray(fad.jit(derivative)(u))
    wanted = np.linalg.solve(fad.jacobian(_tridiagonal)(u), u)
    for form in (lambda a: a.tocsc(), lambda a: a):  # the library is in a closure, and has its stand-in there
        np.testing.assert_allclose(fad.jit(lambda u, form=form: sla.splu(form(derivative(u))).solve(u))(u), wanted)
    unsorted = fad.scipy.sparse.coo_array((np.ones(2), ([1, 0], [0, 1])))
    with pytest.raises(ValueError, match=r"not in the order of rows: write a.tocsr\(\)"):
        print(unsorted.indptr)


LAPLACE = sp.diags_array([np.ones(4), -2 * np.ones(5), np.ones(4)], offsets=[-1, 0, 1], format="csr")
EYE = sp.eye_array(5, format="csr")
COMPOSED = {
    "kron": lambda of, s, x: of.kron(of.diags_array(x), s * LAPLACE),
    "kron with a dense one": lambda of, s, x: of.kron(s * LAPLACE, np.ones((2, 1))),
    "kronsum": lambda of, s, x: of.kronsum(s * LAPLACE, of.diags_array(x)),
    "bmat": lambda of, s, x: of.bmat([[s * LAPLACE, EYE], [of.diags_array(x), None]]),
    "block_array": lambda of, s, x: of.block_array([[None, s * LAPLACE], [EYE, None]]),
    "vstack": lambda of, s, x: of.vstack([s * LAPLACE, EYE]),
    "hstack": lambda of, s, x: of.hstack([s * LAPLACE, of.diags_array(x)]),
    "block_diag": lambda of, s, x: of.block_diag([s * LAPLACE, of.diags_array(x)]),
    "tril": lambda of, s, x: of.tril(s * LAPLACE, -1),
    "triu": lambda of, s, x: of.triu(of.diags_array(x) @ LAPLACE),
    "spdiags": lambda of, s, x: of.spdiags(np.stack([x, s * x]), [0, 2], 5, 5),
    "spdiags below, of a wide one": lambda of, s, x: of.spdiags(np.stack([x, s * x]), [-1, 1], 4, 6),
    "multiply by a row": lambda of, s, x: (s * LAPLACE).multiply(x),
    "multiply by a column": lambda of, s, x: (s * LAPLACE).multiply(x[:, None]),
    "multiply by a sparse one": lambda of, s, x: (of.diags_array(x) @ LAPLACE).multiply(EYE + LAPLACE),
    "power": lambda of, s, x: (s * LAPLACE).power(2),
    "abs": lambda of, s, x: abs(s * LAPLACE),
}


@pytest.mark.parametrize("compose", COMPOSED.values(), ids=COMPOSED)
def test_matrices_are_composed_of_matrices_with_traced_entries(compose):
    def dense(v, of):
        return compose(of, v[0], v[1:]).toarray()

    v = np.array([0.7, 0.2, -0.5, 0.3, 1.7, 0.9])
    wanted = np.stack([(dense(v + d, sp) - dense(v - d, sp)) / 2e-6 for d in 1e-6 * np.eye(6)], -1)
    ours = lambda v: dense(v, sparse)
    theirs = lambda v: dense(v, sp)
    np.testing.assert_allclose(ours(v), dense(v, sp), 1e-14)
    for f in (ours, theirs):  # SciPy's names stand for fad's while a transform runs
        for jacobian in (fad.jacfwd(f), fad.jacrev(f), fad.jit(fad.jacrev(f))):
            np.testing.assert_allclose(jacobian(v), wanted, 1e-7, 1e-8)


def test_the_entries_that_are_found_have_their_derivatives():
    def f(x):
        rows, columns, values = sp.find(sp.diags(x) @ LAPLACE)
        return values @ (rows + 2.0 * columns)

    x = np.array([0.2, -0.5, 0.3, 1.7, 0.9])
    np.testing.assert_allclose(fad.grad(f)(x), [(f(x + d) - f(x - d)) / 2e-6 for d in 1e-6 * np.eye(5)], 1e-7, 1e-7)


def test_blocks_that_do_not_fit_are_refused():
    with pytest.raises(ValueError, match=r"blocks\[0,:\] has incompatible dimensions"):
        sparse.hstack([EYE, sparse.diags(np.ones(3))])
    with pytest.raises(ValueError, match="nothing says how large"):
        sparse.bmat([[None, None], [EYE, EYE]])
    with pytest.raises(ValueError, match="square"):
        sparse.kronsum(EYE, np.ones((1, 2)))
