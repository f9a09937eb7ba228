"""Programs with SciPy's own sparse matrices and traced values: every form of matrix, and writes into them."""

from __future__ import annotations

import operator

import numpy as np
import pytest

import fad
from fad.errors import ItemAssignmentError

sp = pytest.importorskip("scipy.sparse")

from scipy.sparse import csr_matrix, lil_matrix  # noqa: E402
from scipy.sparse.linalg import factorized, splu, spsolve  # noqa: E402

RNG = np.random.default_rng(1)
DENSE = RNG.normal(size=(4, 4)) * (RNG.random((4, 4)) < 0.7) + 4.0 * np.eye(4)
X = RNG.normal(size=4)
FORMS = ("bsr", "coo", "csc", "csr", "dia", "dok", "lil")
KINDS = [getattr(sp, f"{form}_{kind}") for form in FORMS for kind in ("array", "matrix")]
OLD, NEW = sp.csr_matrix(DENSE), sp.csc_array(DENSE)


def check(f, x=X):
    """Raise unless values, derivatives of every kind and second derivatives are those of the plain program."""
    h = 1e-6
    value = np.asarray(f(x))
    steps = h * np.eye(x.size)
    wanted = np.stack([(np.asarray(f(x + d)) - np.asarray(f(x - d))) / (2 * h) for d in steps], -1)
    for jacobian in (fad.jacrev(f), fad.jacfwd(f), fad.jit(fad.jacrev(f))):
        np.testing.assert_allclose(jacobian(x), wanted, 1e-6, 1e-7 * max(1.0, np.max(np.abs(value), initial=0.0)))
    compiled = fad.jit(f)(x)
    assert compiled.dtype == value.dtype
    np.testing.assert_allclose(compiled, value, 1e-11, 1e-12)
    np.testing.assert_allclose(fad.vmap(f)(np.stack([x, 1.5 * x])), np.stack([value, f(1.5 * x)]), 1e-11, 1e-12)
    second = lambda t: fad.grad(lambda s: np.sum(f(x + s * np.cos(x)) ** 2))(t)
    np.testing.assert_allclose(fad.grad(second)(0.0), (second(h) - second(-h)) / (2 * h), 1e-5, 1e-4)


OPERATIONS = {
    "A * s": lambda a, x: (a * x[0]).toarray(),
    "s * A": lambda a, x: (x[0] * a).toarray(),
    "A / s": lambda a, x: (a / x[0]).toarray(),
    "multiply by a row": lambda a, x: a.multiply(x).toarray(),
    "multiply by a column": lambda a, x: a.multiply(x[:, None]).toarray(),
    "multiply by a number": lambda a, x: a.multiply(x[0]).toarray(),
    "multiply by a dense matrix": lambda a, x: a.multiply(np.outer(x, x)).toarray(),
    "multiply by a sparse matrix": lambda a, x: a.multiply(a * x[0]).toarray(),
    "A / dense": lambda a, x: (a / np.outer(x, x)).toarray(),
    "A.T @ x": lambda a, x: a.T @ x,
    "x @ A": lambda a, x: x @ a,
    "A.transpose().dot": lambda a, x: a.transpose().dot(x),
    "A + B": lambda a, x: (a + a * x[0]).toarray(),
    "A - diagonal": lambda a, x: (a - sp.diags(x)).toarray(),
    "A + dense": lambda a, x: np.asarray(a + np.outer(x, x)),
    "dense - A": lambda a, x: np.asarray(np.outer(x, x) - a),
    "power": lambda a, x: (a * x[0]).power(2).toarray(),
    "the diagonal": lambda a, x: (a * x[0]).diagonal(1),
    "the trace": lambda a, x: (a * x[0]).trace(),
    "sums of columns": lambda a, x: np.ravel((a * x[0]).sum(axis=0)) * x,
    "means of rows": lambda a, x: np.ravel((a * x[0]).mean(axis=1)) * x,
    "the maximum": lambda a, x: (a.tocsr() * x[0]).max(),
    "a maximum with 0": lambda a, x: (a * x[0]).maximum(0.0).toarray(),
    "a part": lambda a, x: (a.tocsr() * x[0])[1:, [0, 2]].toarray(),
    "an entry": lambda a, x: (a.tocsc() * x[0])[1, 1],
    "another shape": lambda a, x: (a * x[0]).reshape((2, 8)).toarray(),
    "a function of the entries": lambda a, x: (abs(a) * x[0] ** 2).sqrt().toarray(),
    "spsolve": lambda a, x: spsolve((a * (2 + x[0])).tocsc(), x),
    "splu": lambda a, x: splu(a.tocsc()).solve(x),
    "factorized": lambda a, x: factorized(a.tocsc())(x),
}  # fmt: skip


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=OPERATIONS)
def test_a_matrix_made_before_takes_traced_values_in_every_form(operation):
    for kind in KINDS:
        matrix = kind(DENSE)
        f = lambda x, a=matrix: operation(a, x)
        np.testing.assert_allclose(fad.jit(f)(X), f(X), 1e-12, 1e-13)
        h = 1e-6 * np.cos(X)
        along = fad.jvp(f, (X,), (np.cos(X),))[1]
        np.testing.assert_allclose(along, (f(X + h) - f(X - h)) / 2e-6, 1e-6, 1e-6)
    check(f)


OF_OLD = sp.csr_matrix(DENSE)


def dense_less_a_matrix(x):
    return np.sum(np.asarray(np.outer(x, x) - OF_OLD) ** 2)


def test_a_matrix_that_only_scipys_code_has_met_is_known_in_the_first_call():
    want = 4 * (np.outer(X, X) - (DENSE + DENSE.T) / 2) @ X
    np.testing.assert_allclose(fad.grad(dense_less_a_matrix)(X), want, 1e-12)


class Model:
    def __init__(self):
        self.stiffness = sp.csc_matrix(DENSE)

    def scaled(self, x):
        return self.stiffness.multiply(x).toarray()


def fill(x):
    a = sp.lil_matrix((4, 4))
    for i in range(4):
        a[i, i] = 2 + x[i]
        if i:
            a[i, i - 1] = x[i] * x[i - 1]
    a[0] = x
    return a.tocsr() @ x


def solve_filled(x):
    a = lil_matrix((4, 4))
    a.setdiag(3 + x**2)
    a[0, 3] = 1.0
    a[1, :] = x
    a[2:4, 0] = x[:2]
    a[[2, 3], [3, 2]] = x[2:]
    return spsolve(a.tocsc(), x)


def fill_blocks(x):
    a = sp.lil_matrix((4, 4))
    a[:2, :2] = np.outer(x[:2], x[2:])
    a[2:, 2:] = sp.eye(2) * x[0]
    return a.toarray()


def accumulate(x):
    a = sp.dok_array((4, 4))
    for i in range(4):
        a[i, 3 - i] = x[i]
        a[i, i] += x[i] ** 2
        a[i, i] += 1
    return a.tocsc() @ x


def scale_entries(x):
    b = OLD.copy()
    b.data *= np.repeat(x, np.diff(b.indptr))
    return b.toarray()


def write_entries(x):
    b = NEW.copy()
    b.data[:] = np.sin(b.data * x[1])
    return (b @ b).toarray()


def put_entries(x):
    b = NEW.copy()
    b.data = b.data**2 * x[0]
    return b.toarray()


def keep_a_condition(x):
    k = sp.coo_matrix((np.append(x, x**2), ([0, 1, 2, 3, 0, 1, 2, 3], [0, 1, 2, 3, 1, 2, 3, 3]))).tocsr()
    k[0, :] = 0.0
    k[0, 0] = 1.0
    return spsolve(k.tocsc(), x)


def normalise(x):
    w = csr_matrix(OLD).maximum(0).multiply(np.outer(x**2, x**2))
    d = np.asarray(w.sum(axis=1)).ravel()
    root = sp.diags(1 / np.sqrt(d + 1))
    return (root @ (sp.diags(d) - w) @ root) @ x


def step_in_time(x):
    eye = sp.identity(4, format="csr")
    laplace = sp.diags([np.ones(3), -2 * np.ones(4), np.ones(3)], [-1, 0, 1], format="csr")
    u = x
    for _ in range(2):
        u = spsolve((eye - x[0] ** 2 * laplace).tocsc(), (eye + x[0] ** 2 * laplace) @ u)
    return u


def write_in_place(x):
    b = OLD.copy()
    b += OLD * x[0]
    b -= sp.eye(4) * x[1]
    b *= 2
    b /= x[2]
    return b.toarray()


def ask_for_the_class(x):
    a, b = x[0] * OLD, x[0] * NEW
    known = sp.issparse(a) and isinstance(a, sp.spmatrix) and isinstance(b, sp.sparray) and not sp.isspmatrix(b)
    return (a + b).toarray() if known else None


PROGRAMS = [
    Model().scaled, fill, solve_filled, fill_blocks, accumulate, scale_entries, write_entries, put_entries,
    keep_a_condition, normalise, step_in_time, write_in_place, ask_for_the_class,
]  # fmt: skip


@pytest.mark.filterwarnings("ignore:Changing the sparsity structure")
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_programs_that_make_and_write_matrices_are_differentiated(program):
    before = OLD.data.copy(), NEW.data.copy()
    check(program)
    np.testing.assert_array_equal(OLD.data, before[0])
    np.testing.assert_array_equal(NEW.data, before[1])


MADE = {
    "entries and indices": lambda x: csr_matrix((OLD.data * x[0], OLD.indices, OLD.indptr), shape=OLD.shape) * x,
    "a dtype": lambda x: csr_matrix((x, ([0, 1, 2, 0], [1, 2, 0, 1])), dtype=float).data,
    "by columns": lambda x: sp.csc_array((NEW.data * x[0], NEW.indices, NEW.indptr)).T @ x,
    "diagonals": lambda x: sp.dia_matrix((np.stack([x, x**2]), [0, -1]), shape=(4, 4)) @ x,
    "blocks": lambda x: sp.bsr_matrix((np.stack([np.outer(x[:2], x[2:])] * 2), [0, 1], [0, 1, 2])).toarray(),
    "identities": lambda x: (sp.eye(4) * x[0] + sp.identity(4) * x[1] + sp.diags(x)) * x,
    "a power of an older one": lambda x: ((OLD * x[0]) ** 3).toarray(),
    "powers of the entries": lambda x: ((NEW * x[0]) ** 3).toarray(),
    "products by a star": lambda x: (sp.diags(x) * OLD * sp.diags(x)) * x,
    "a Kronecker product": lambda x: sp.kron(sp.eye(2), sp.diags(x[:2])) * x,
    "a sum along an axis, of two axes": lambda x: (OLD * x[0]).sum(axis=1) + (OLD * x[1]).sum(axis=0),
    "entries that were there": lambda x: OLD.multiply(x).tocsr().nonzero()[0] * np.sum(x),
}  # fmt: skip


@pytest.mark.parametrize("program", MADE.values(), ids=MADE)
def test_matrices_are_made_of_traced_entries_in_every_form(program):
    value = np.asarray(program(X))
    h = 1e-6
    wanted = np.stack([(np.asarray(program(X + d)) - np.asarray(program(X - d))) / (2 * h) for d in h * np.eye(4)], -1)
    for jacobian in (fad.jacrev(program), fad.jacfwd(program)):
        np.testing.assert_allclose(jacobian(X), wanted, 1e-6, 1e-6)
    np.testing.assert_allclose(fad.jvp(program, (X,), (X,))[0], value, 1e-13)


def write_plain(x):
    OLD[0, 0] = 7.0
    return np.sum(OLD @ x)


def test_plain_numbers_are_written_into_a_matrix_from_outside_as_without_a_transform():
    before = OLD.copy()
    try:
        gradient = fad.grad(write_plain)(X)
        assert OLD[0, 0] == 7.0
        np.testing.assert_allclose(gradient, OLD.toarray().sum(axis=0), 1e-13)
    finally:
        OLD.data[:] = before.data


def write_a_transposed(x):
    a = OLD * x[0]
    b = a.T
    a[0, 0] = x[1]
    return np.sum(b @ x)


REFUSED = {
    "an entry of one from outside": (lambda x: OLD.__setitem__((0, 0), x[0]), ItemAssignmentError, "copy"),
    "the entries of one from outside": (lambda x: setattr(OLD, "data", OLD.data * x[0]), ItemAssignmentError, "copy"),
    "the diagonal of one from outside": (lambda x: OLD.setdiag(x), ItemAssignmentError, "copy"),
    "one that is transposed": (write_a_transposed, ItemAssignmentError, "transpose"),
    "integers": (lambda x: sp.lil_matrix((4, 4), dtype=int).__setitem__((0, 0), x[0]), ItemAssignmentError, "float"),
    "a maximum along an axis": (lambda x: (OLD * x[0]).max(axis=0), NotImplementedError, "toarray"),
    "a sum with a number": (lambda x: OLD + x[0], NotImplementedError, "scalar"),
}


@pytest.mark.parametrize("what", REFUSED)
def test_what_would_lose_a_derivative_is_an_error(what):
    f, error, words = REFUSED[what]
    with pytest.raises(error, match=words):
        fad.grad(lambda x: (f(x), np.sum(x))[1])(X)


@pytest.mark.filterwarnings("ignore:Changing the sparsity structure")
@pytest.mark.parametrize("kind", KINDS, ids=lambda kind: kind.__name__)
def test_a_jitted_function_sees_that_the_entries_of_a_matrix_change(kind):
    matrix = kind(DENSE)
    for operation in (lambda x: matrix @ x, lambda x: matrix.multiply(x).toarray()):
        compiled = fad.jit(operation)
        np.testing.assert_allclose(compiled(X), operation(X), 1e-12)
        if kind.__name__[:3] not in ("bsr", "dia") and kind is not sp.coo_matrix:
            matrix[0, 0] = matrix[0, 0] + 9.0
            np.testing.assert_allclose(compiled(X), operation(X), 1e-12)
        if kind.__name__[:3] not in ("lil", "dok"):
            matrix.data = 3.0 * matrix.data
            np.testing.assert_allclose(compiled(X), operation(X), 1e-12)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array])
@pytest.mark.parametrize("shape", [(3, 3), (3,)])
def test_arrays_that_the_program_makes_stand_before_matrices_of_traced_entries(make, shape):
    rows, columns = np.array([0, 1, 1]), np.array([0, 1, 0])

    def dense(y):
        return y.toarray() if hasattr(y, "toarray") else np.asarray(y)

    for combine in (operator.add, operator.sub, operator.mul, operator.matmul):
        f = lambda x, c=combine: c(np.full(shape, 2.0), make((x, (rows, columns)), shape=(3, 3)))
        x = np.array([1.1, 0.7, 1.3])
        try:
            wanted = dense(f(x))
        except (NotImplementedError, ValueError):
            continue  # SciPy adds no vectors to some of them
        value, slope = fad.jvp(lambda x, f=f: dense(f(x)), (x,), (np.ones(3),))
        np.testing.assert_allclose(value, wanted)
        np.testing.assert_allclose(slope, dense(f(x + 1.0)) - wanted, 1e-9, 1e-9)  # linear in the entries
