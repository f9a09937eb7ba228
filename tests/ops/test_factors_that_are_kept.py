"""Linear algebra with one matrix takes LAPACK's factors from SciPy, and gives what NumPy's functions alone give."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.compile.pipeline import optimise
from fad.ops.linalg import factors

RNG = np.random.default_rng(0)
PROGRAMS = {
    "solve": lambda a: np.linalg.solve(a, np.cos(a[:, :2])),
    "solve for a vector": lambda a: np.linalg.solve(a, a[0]),
    "solve twice": lambda a: np.linalg.solve(a, np.linalg.solve(a.T, a[:, :1])),
    "det": lambda a: np.linalg.det(a),
    "slogdet": lambda a: np.linalg.slogdet(a)[1],
    "phase": lambda a: np.linalg.slogdet(a)[0],
    "cholesky": lambda a: np.linalg.cholesky(a @ np.conjugate(a.T)),
    "qr": lambda a: np.linalg.qr(a),
    "r of qr": lambda a: np.linalg.qr(a, mode="r"),
    "q of qr": lambda a: np.linalg.qr(a).Q,
}
EVERY = pytest.mark.parametrize("name", PROGRAMS)
DTYPES = pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])


def matrix(dtype, n=4):
    x = RNG.normal(size=(n, n)) + 1j * RNG.normal(size=(n, n)) * (np.dtype(dtype).kind == "c")
    return (3 * np.eye(n) + (x if np.dtype(dtype).kind == "c" else x.real)).astype(dtype)


def total(program):
    """Return a real number of a program's results, which all of their elements move."""

    def number(a):
        results = program(a)
        results = results if type(results) is not np.ndarray and isinstance(results, tuple) else (results,)
        return sum(np.sum(np.sin(y.real + 0.3) + 0.5 * y.imag**2) for y in results)

    return number


@pytest.fixture
def without_lapack(monkeypatch):
    monkeypatch.setattr(factors, "_lapack", lambda: None)


def close(x, y, dtype):
    precision = np.finfo(dtype).eps
    np.testing.assert_allclose(x, y, rtol=3e3 * precision, atol=1e3 * precision)
    assert x.dtype == y.dtype


def derivatives(f, a):
    along = np.ones_like(a)
    gradient = fad.grad(f)
    return [
        fad.value_and_grad(f)(a)[0],
        gradient(a),
        fad.jvp(f, (a,), (along,))[1],
        fad.jvp(gradient, (a,), (along,))[1],
        fad.grad(lambda a: fad.jvp(f, (a,), (along,))[1])(a),
        fad.jit(gradient)(a),
        fad.vmap(gradient)(np.stack([a, 2 * a])),
        fad.vmap(fad.vjp(f, a)[1])(np.arange(1.0, 4.0).astype(a.real.dtype))[0],
    ]


@EVERY
@DTYPES
def test_derivatives_are_those_of_numpys_functions_alone(name, dtype, monkeypatch):
    f, a = total(PROGRAMS[name]), matrix(dtype)
    found = derivatives(f, a)
    monkeypatch.setattr(factors, "_lapack", lambda: None)
    for x, y in zip(found, derivatives(f, a), strict=True):
        close(x, y, dtype)


@EVERY
def test_one_matrix_has_the_derivatives_of_a_stack_of_one(name):
    f, a = total(PROGRAMS[name]), matrix("float64")
    g = total(lambda a: fad.vmap(PROGRAMS[name])(a[None]))
    for x, y in zip(derivatives(f, a), derivatives(g, a), strict=True):
        close(x, y, "float64")


@DTYPES
@pytest.mark.parametrize("order", ["C", "F"])
def test_a_solution_is_numpys_own_to_the_bit_and_in_its_layout(dtype, order):
    a, b = np.asarray(matrix(dtype, 5), order=order), np.asarray(matrix(dtype, 5)[:, :3], order=order)
    seen = []

    def f(a, b):
        x = np.linalg.solve(a, b)
        seen.append(x.flags.c_contiguous)
        return x

    wanted = np.linalg.solve(a, b)
    for x in (fad.vjp(f, a, b)[0], fad.jvp(f, (a, b), (a, b))[0], fad.vjp(lambda b: f(a, b), b)[0]):
        np.testing.assert_array_equal(x, wanted)
        assert x.dtype == wanted.dtype
        assert x.flags.c_contiguous
    assert all(seen)


def names(f, *args):
    return [eq.prim.name for eq in optimise(fad.make_graph(f)(*args)).equations]


def test_a_gradient_through_solve_factors_the_matrix_once():
    a = matrix("float64")
    found = names(fad.value_and_grad(lambda a: np.sum(np.linalg.solve(a, a[:, :1]))), a)
    assert (found.count("lu_factor"), found.count("lu_solve"), found.count("solve_rule")) == (1, 2, 0)


@pytest.mark.usefixtures("without_lapack")
def test_without_scipy_numpy_solves():
    a = matrix("float64")
    found = names(fad.value_and_grad(lambda a: np.sum(np.linalg.solve(a, a[:, :1]))), a)
    assert "lu_factor" not in found
    assert [found.count(name) for name in ("solve_rule", "solve_matrix")] == [1, 1]


def test_elements_of_a_batch_are_solved_together():
    stack = np.stack([matrix("float64") for _ in range(3)])
    f = lambda a: np.sum(np.linalg.solve(a, a[:, :1]))
    found = names(fad.vmap(fad.grad(f)), stack)
    assert "lu_factor" not in found
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(stack), [fad.grad(f)(a) for a in stack], rtol=1e-12)


def test_right_hand_sides_of_a_batch_are_columns_of_one_system():
    a, b = matrix("float64"), RNG.normal(size=(3, 4))
    gradient = fad.vmap(fad.grad(lambda b, a: np.sum(np.linalg.solve(a, b) ** 2)), (0, None))
    found = names(gradient, b, a)
    assert (found.count("lu_factor"), found.count("lu_solve")) == (1, 2)
    inverse = np.linalg.inv(a)
    np.testing.assert_allclose(gradient(b, a), 2 * b @ inverse.T @ inverse, rtol=1e-12)


@pytest.mark.parametrize("program", ["solve", "det", "slogdet", "cholesky", "qr"])
def test_a_recorded_loop_over_matrices_may_be_batched(program):
    f, stack = total(PROGRAMS[program]), np.stack([matrix("float64") for _ in range(6)]).reshape(2, 3, 4, 4)

    def loss(matrices):
        found = 0.0
        for k in range(3):
            found = found + f(matrices[k])
        return found

    gradient = fad.jit(fad.grad(loss))
    wanted = [[fad.grad(f)(a) for a in row] for row in stack]
    np.testing.assert_allclose([gradient(row) for row in stack], wanted, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(fad.vmap(gradient)(stack), wanted, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("name", ["solve", "solve for a vector"])
@pytest.mark.parametrize(
    "transform", [fad.grad, lambda f: lambda a: fad.jvp(f, (a,), (a,)), lambda f: fad.jit(fad.grad(f))]
)
def test_a_singular_matrix_raises_numpys_error(name, transform):
    with pytest.raises(np.linalg.LinAlgError, match="Singular matrix"):
        transform(total(PROGRAMS[name]))(np.ones((4, 4)))


@pytest.mark.parametrize("shapes", [((3, 3), (4, 2)), ((3, 4), (3, 2)), ((0, 0), (0, 2)), ((3, 3), (3, 0))])
def test_shapes_are_accepted_and_refused_as_numpy_does(shapes):
    a, b = [RNG.normal(size=shape) for shape in shapes]
    try:
        wanted, error = np.linalg.solve(a, b), None
    except (ValueError, np.linalg.LinAlgError) as caught:
        wanted, error = None, caught
    if error is None:
        np.testing.assert_array_equal(fad.vjp(np.linalg.solve, a, b)[0], wanted)
    else:
        with pytest.raises(type(error)):
            fad.vjp(np.linalg.solve, a, b)


def test_operands_of_two_dtypes_have_the_wider_one():
    a, b = matrix("float32"), matrix("float64")
    x, pullback = fad.vjp(np.linalg.solve, a, b)
    np.testing.assert_array_equal(x, np.linalg.solve(a, b))
    assert [ct.dtype for ct in pullback(x)] == [np.float32, np.float64]
