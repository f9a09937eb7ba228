"""Products of vectors with matrices that are joined of columns are computed column by column."""

import numpy as np
import pytest

import fad
from fad.compile.legalize.products.columns import multiply_by_columns
from fad.compile.pipeline import optimise
from fad.core.programs.rewriter import check_types

rng = np.random.default_rng(0)
T, X, Y = rng.normal(size=50), rng.normal(size=4), rng.normal(size=50)


def powers(t, x):
    return np.vander(t, len(x))


def written(t, x):
    a, p = np.empty((len(t), len(x))), np.ones_like(t)
    for k in range(len(x)):
        a[:, k] = p
        p = p * t
    return a


def written_from_the_one_before(t):
    a = np.ones((len(t), 4))
    for k in range(1, 4):
        a[:, k] = a[:, k - 1] * t
    return a


def added_to(t, y):
    a = np.full((len(t), 3), 0.5)
    a[:, 1] += t
    a[:, 2:3] = y[:, None]
    a[:, 0] = 2.0
    a[:, 2] -= t
    return a


def over_constants(t):
    a = np.arange(200.0).reshape(50, 4)
    a[:, 2] = t
    return a


def rows_written(t, y):
    a = np.zeros((3, len(t)))
    a[0], a[2] = t, y
    return a


def mixed(t):
    return np.stack([t, np.sin(t), 2.0 * t, t * t], axis=1)


BY_COLUMNS = {
    "powers": lambda t, x, y: powers(t, x) @ x,
    "rising powers": lambda t, x, y: np.vander(t, 4, increasing=True) @ x,
    "the transpose": lambda t, x, y: powers(t, x).T @ y,
    "from the left": lambda t, x, y: y @ powers(t, x),
    "the transpose from the left": lambda t, x, y: x @ powers(t, x).T,
    "a matrix of one column": lambda t, x, y: powers(t, x) @ x[:, None],
    "a matrix of one row": lambda t, x, y: y[None, :] @ powers(t, x),
    "rows": lambda t, x, y: x @ np.stack([t, np.sin(t), 2.0 * t, t * t]),
    "sums over rows": lambda t, x, y: np.stack([t, np.sin(t), 2.0 * t, t * t]) @ y,
    "functions": lambda t, x, y: np.tanh(mixed(t) @ x) + y,
    "columns that are given": lambda t, x, y: np.column_stack([t, y, t]) @ x[:3],
    "columns with an axis already": lambda t, x, y: np.concatenate([t[:, None], y.reshape(-1, 1)], 1) @ x[:2],
    "reversed columns": lambda t, x, y: np.stack([t[::-1], y[::-1]], axis=1) @ x[:2],
    "two products": lambda t, x, y: (lambda a: a @ (a.T @ y))(powers(t, x)),
    "many powers": lambda t, x, y: np.vander(np.tanh(t), 60) @ np.linspace(-1.0, 1.0, 60),
    "many powers, transposed": lambda t, x, y: y @ np.vander(np.tanh(t), 60),
    "one column twice": lambda t, x, y: np.stack([t, t * y, t * y, t * y * y], axis=1) @ x,
    "a column twice, transposed": lambda t, x, y: y @ np.stack([t, t * y, t * y, t * y * y], axis=1),
    "one vector as two columns": lambda t, x, y: y @ np.stack([t, y, t], axis=1),
    "one vector as two rows": lambda t, x, y: np.stack([y, y]) @ y,
    "many powers, least squares": fad.grad(
        lambda t, x, y: np.sum((y - np.vander(np.tanh(t), 40) @ np.tile(x, 10)) ** 2), argnums=(0, 1, 2)
    ),
    "columns that are written": lambda t, x, y: written(t, x) @ x,
    "columns that are written, least squares": fad.grad(
        lambda t, x, y: np.sum((y - written(t, x) @ x) ** 2), argnums=(0, 1, 2)
    ),
    "columns that are made of written ones": lambda t, x, y: written_from_the_one_before(t) @ x,
    "columns that are made of written ones, least squares": fad.grad(
        lambda t, x, y: np.sum((y - written_from_the_one_before(t) @ x) ** 2), argnums=(0, 1, 2)
    ),
    "columns that are added to": lambda t, x, y: added_to(t, y) @ x[:3],
    "columns that are added to, least squares": fad.grad(
        lambda t, x, y: np.sum((y - added_to(t, y) @ x[:3]) ** 2), argnums=(0, 1, 2)
    ),
    "columns counted from the end": lambda t, x, y: (
        lambda a: (a.__setitem__((slice(None), -1), t), a.__setitem__((slice(None), -2), y), a @ x[:3] + a[:, -3])[2]
    )(np.ones((50, 3))),
    "one column of constants": lambda t, x, y: over_constants(t) @ x,
    "columns of one number each": lambda t, x, y: (
        lambda a: (a.__setitem__((slice(None), 1), x[0]), a.__setitem__((slice(None), 0), t), a @ x[:2])[2]
    )(np.zeros((50, 2))),
    "rows that are written": lambda t, x, y: x[:3] @ rows_written(t, y),
    "rows that are written, their sums": lambda t, x, y: rows_written(t, y) @ t,
    "columns that are read": lambda t, x, y: (lambda a: a @ x + a[:, 1] * a[:, 2])(powers(t, x)),
    "columns that are read, their derivative": fad.grad(
        lambda t, x, y: (lambda a: np.sum(y * (a[:, 0] * x[0] + a[:, 1] * x[1] + np.sin(a[:, 3]))))(powers(t, x)),
        (0, 1),
    ),
    "single precision": lambda t, x, y: mixed(t.astype("f4")) @ x.astype("f4"),
    "least squares": fad.grad(lambda t, x, y: np.sum((y - powers(t, x) @ x) ** 2), argnums=(0, 1, 2)),
    "least squares of rows": fad.grad(lambda t, x, y: np.sum((y - x @ np.stack([t, t * t, y, t * y])) ** 2), (0, 1, 2)),
}
AS_IT_IS = {
    "the matrix is read": lambda t, x, y: (lambda a: (a @ x, a))(powers(t, x)),
    "its elements are": lambda t, x, y: (lambda a: a @ x + np.sum(a * a, 1))(powers(t, x)),
    "a written one is read": lambda t, x, y: (lambda a: (a @ x, a))(written(t, x)),
    "a part is written": lambda t, x, y: (lambda a: (a.__setitem__((slice(3), 1), 2.0), a @ x)[1])(written(t, x)),
    "an argument is written": lambda t, x, y: (lambda a: (a.__setitem__((slice(None), 1), t), a @ x)[1])(
        np.outer(y, np.exp(x)) @ np.eye(4)
    ),
    "times a matrix": lambda t, x, y: powers(t, x) @ np.outer(x, x),
    "wide parts": lambda t, x, y: np.concatenate([t.reshape(25, 2), y.reshape(25, 2)], 1) @ x,
    "short columns": lambda t, x, y: np.vander(t[:9], 4) @ x,
    "another dtype": lambda t, x, y: mixed(t.astype("f4")) @ x,
    "many products": lambda t, x, y: (lambda a: [a @ x, a @ x[::-1], a.T @ y, a.T @ t, y @ a, t @ a])(powers(t, x)),
}


def run(graph):
    found = graph(T, X, Y)
    return found if type(found) is tuple else tuple(found)


def products(graph):
    return [eq for eq in graph.equations if eq.prim.name == "matmul"]


@pytest.mark.parametrize("name", [*BY_COLUMNS, *AS_IT_IS])
def test_a_program_with_products_of_columns_computes_the_same(name):
    graph = optimise(fad.make_graph({**BY_COLUMNS, **AS_IT_IS}[name])(T, X, Y))
    found = multiply_by_columns(graph)
    check_types(found)
    assert bool(products(found)) == (name in AS_IT_IS)
    tolerance = 1e-5 if "f4" in str([t.dtype.str for t in graph.types]) else 1e-11
    for a, b in zip(run(found), run(graph), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("name", [*BY_COLUMNS, *AS_IT_IS])
def test_native_programs_with_products_of_columns_have_numpys_values(name):
    function = {**BY_COLUMNS, **AS_IT_IS}[name]
    jitted = fad.jit(function)
    for _ in range(3):
        found = jitted(T, X, Y)
    expected = function(T, X, Y)
    if type(expected) not in (tuple, list):
        found, expected = [found], [expected]
    tolerance = 1e-5 if name in ("single precision", "another dtype") else 1e-11
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=tolerance, atol=tolerance)


def test_the_sums_of_powers_times_a_vector_need_no_power_for_themselves():
    graph = multiply_by_columns(optimise(fad.make_graph(BY_COLUMNS["the transpose"])(T, X, Y)))
    assert sum(eq.prim.name == "multiply" for eq in graph.equations) == len(X)


def test_columns_that_are_read_need_no_matrix():
    graph = optimise(fad.make_graph(BY_COLUMNS["columns that are read, their derivative"])(T, X, Y))
    assert any(eq.prim.name == "join" for eq in graph.equations)
    left = multiply_by_columns(graph)
    assert not any(left.types[o].shape == (50, 4) for eq in left.equations for o in eq.outs)


def test_columns_of_a_matrix_that_is_returned_are_those_of_the_matrix():
    def f(t, x):
        a = written(t, x)
        return a[:, 1] + a @ x, a

    g = fad.jit(f)
    for _ in range(3):
        found = g(T, X)
    for a, b in zip(found, f(T, X), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_an_infinite_column_stays_infinite():
    t = np.where(np.arange(50) == 7, np.inf, T)
    f = fad.jit(lambda t, x: np.vander(t, 3) @ x)
    for _ in range(3):
        with np.errstate(invalid="ignore"):
            found = f(t, np.array([1.0, 0.0, 2.0]))
    assert np.isnan(found[7])
    assert np.isfinite(np.delete(found, 7)).all()
