"""Products of slices at a loop's counter are one product of all steps, and so are those of its gradient."""

import numpy as np
import pytest

import fad
from fad.compile.passes import loop_stacks
from fad.compile.pipeline import optimise
from fad.compile.targets.select import using

pytest.importorskip("llvmlite")


def covariance(data):
    m = data.shape[1]
    cov = np.zeros((m, m), data.dtype)
    for i in range(m):
        cov[i:m, i] = cov[i, i:m] = data[:, i] @ data[:, i:m] / 3.0
    return cov


def correlation(data):
    m = data.shape[1]
    corr = np.eye(m, dtype=data.dtype)
    for i in range(m - 1):
        corr[i + 1 : m, i] = corr[i, i + 1 : m] = data[:, i] @ data[:, i + 1 : m]
    return corr


def below_the_diagonal(data):
    m = data.shape[1]
    y = np.zeros((m, m), data.dtype)
    for i in range(2, m):
        y[i, : i - 1] += data[:, i] @ data[:, : i - 1] * 0.5
    return y


def matrix_first(data):
    m = data.shape[1]
    y = np.zeros((m, m), data.dtype)
    for i in range(m):
        y[i:, i] = data[:, i:].T @ data[:, i]
    return y


def rows(data):
    n = data.shape[0]
    y = np.zeros((n, data.shape[1]), data.dtype)
    for i in range(n):
        y[i] = data[i] @ data[:, : data.shape[1]].T @ data  # the second product is of what the step computes
    return y


def backwards(data):
    n = data.shape[0]
    y = np.zeros((data.shape[1], n), data.dtype)
    for i in range(n - 1, 2, -1):
        y[:, i] = data[i - 3] @ data.T @ data
    return y


def element_by_element(data):
    n = data.shape[0]
    y = np.zeros((n, n), data.dtype)
    for i in range(n):
        for j in range(n):
            y[i, j] = data[i] @ data[j] + np.dot(data[:, j % 3], data[:, 0])
    return y


def two_arrays(data):
    n = data.shape[0]
    y, s = np.zeros((n, n), data.dtype), data[0] * 0.0
    for i in range(n):
        y[i] = np.tanh(data @ data[i])
        s = s + data.T @ y[i]
    return np.outer(s, s)


def columns_times_numbers(data):
    y, w = np.zeros(data.shape[0], data.dtype), data[0] * data[1]
    for k in range(data.shape[1]):
        y = y + data[:, k] * w[k]
    return y


def rows_times_numbers_backwards(data):
    y, w = data[0] * 0.5, data[:, 0] * data[:, 1]
    for k in range(data.shape[0] - 1, 0, -1):
        y = w[k] * data[k] + y
    return y


def columns_times_what_steps_compute(data):
    y, s = np.zeros(data.shape[0], data.dtype), data[0, 0]
    for k in range(1, data.shape[1]):
        s = np.tanh(s + data[0, k])
        y = y + s * data[:, k]
    return y


PROGRAMS = [
    covariance, correlation, below_the_diagonal, matrix_first, rows, backwards, element_by_element, two_arrays,
    columns_times_numbers, rows_times_numbers_backwards, columns_times_what_steps_compute,
]  # fmt: skip


def loss_of(program):
    def loss(x):
        y = program(x)
        return np.sum(y * np.cos(np.arange(y.size).reshape(y.shape)).astype(x.dtype) + 0.5 * y * y)

    return loss


def compiled(f, *args):
    with using("llvm"), fad.config.use(loops="capture"):
        fast = fad.jit(f)
        fast(*args)
        fast(*args)
    return fast


def optimised(f, *args):
    """Return the program of a function whose loops are captured."""
    (path,) = [path for signature in compiled(f, *args)._signatures.values() for path in signature.paths]
    return optimise(path.graph)


def names(graph):
    """Return the operations of a program, and apart from them those in its loops."""
    inner = [eq.params["body"] for eq in graph.equations if eq.prim.archetype == "loop"]
    return [eq.prim.name for eq in graph.equations], [n for body in inner for part in names(body) for n in part]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(9, 11), (33, 17), (12, 12)])
@pytest.mark.parametrize("program", PROGRAMS)
def test_all_steps_at_once_are_each_step(program, shape, dtype):
    x = np.random.default_rng(0).normal(size=shape).astype(dtype)
    within = {"rtol": 2e-4, "atol": 2e-3} if dtype is np.float32 else {"rtol": 1e-11, "atol": 1e-11}
    np.testing.assert_allclose(compiled(program, x)(x), program(x), **within)
    f = fad.value_and_grad(loss_of(program))
    for got, wanted in zip(compiled(f, x)(x), f(x), strict=True):
        np.testing.assert_allclose(got, wanted, **within)


@pytest.mark.parametrize("program", PROGRAMS)
def test_second_derivatives_and_forward_mode_are_right(program):
    r = np.random.default_rng(1)
    x, u = r.normal(size=(10, 9)), r.normal(size=(10, 9))
    loss = loss_of(program)
    product = lambda x, u: fad.jvp(fad.grad(loss), (x,), (u,))[1]
    np.testing.assert_allclose(compiled(product, x, u)(x, u), product(x, u), rtol=1e-10, atol=1e-9)


@pytest.mark.parametrize("program", [covariance, correlation, matrix_first])
def test_no_product_stays_in_the_loops(program):
    x = np.random.default_rng(0).normal(size=(20, 15))
    outside, inside = names(optimised(program, x))
    assert "matmul" in outside
    assert "matmul" not in inside
    outside, inside = names(optimised(fad.grad(loss_of(program)), x))
    assert outside.count("chosen_product") == 2
    assert "matmul" not in inside


def test_nothing_is_left_of_a_loop_that_adds_up_columns_or_rows():
    def loss(w, v, x):
        y, z = np.zeros(x.shape[0]), np.zeros(x.shape[1])
        for k in range(x.shape[1]):
            y = y + x[:, k] * w[k]
        for k in range(1, x.shape[0]):
            z = v[k] * x[k] + z
        return np.sum(y**2) + np.sum(z**2)

    r = np.random.default_rng(0)
    w, v, x = r.normal(size=15), r.normal(size=20), r.normal(size=(20, 15))
    for f in (loss, fad.grad(loss, (0, 1))):
        outside, inside = names(optimised(f, w, v, x))
        assert outside.count("matmul") == (2 if f is loss else 4)
        assert "scan" not in outside
        assert not inside
        found = compiled(f, w, v, x)(w, v, x)
        for got, wanted in zip(fad.tree.leaves(found), fad.tree.leaves(f(w, v, x)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)


def test_large_products_are_computed_in_blocks(monkeypatch):
    monkeypatch.setattr(loop_stacks, "_BLOCK", 8)
    x = np.random.default_rng(0).normal(size=(60, 50))
    for program in (covariance, correlation, below_the_diagonal, matrix_first):
        f = fad.grad(loss_of(program))
        assert "block_product" in names(optimised(program, x))[0]
        np.testing.assert_allclose(compiled(program, x)(x), program(x), rtol=1e-11, atol=1e-11)
        np.testing.assert_allclose(compiled(f, x)(x), f(x), rtol=1e-11, atol=1e-10)


@pytest.mark.parametrize("bad", [np.inf, np.nan])
def test_what_no_step_reads_may_be_infinite(bad):
    def program(x, w):
        n = x.shape[1]
        y = np.zeros((n, n))
        for i in range(4, n):
            y[i, i:] = w[i] @ x[:, i:]  # not the first four columns
        return np.sum(y * y)

    r = np.random.default_rng(0)
    x, w = r.normal(size=(15, 15)), r.normal(size=(15, 15))
    f = fad.value_and_grad(program, argnums=(0, 1))
    fast = compiled(f, x, w)
    x[:, 2] = bad
    wanted = f(x, w)
    assert np.isfinite(wanted[0])
    assert np.isfinite(wanted[1][1]).all()
    for got, expected in zip(fad.tree.leaves(fast(x, w)), fad.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(got, expected, rtol=1e-11, atol=1e-11)


def test_what_is_read_and_infinite_stays_so():
    x = np.random.default_rng(0).normal(size=(15, 12))
    f = fad.value_and_grad(loss_of(covariance))
    fast = compiled(f, x)
    x[3, 5] = np.inf
    with np.errstate(invalid="ignore"):
        for got, expected in zip(fast(x), f(x), strict=True):
            np.testing.assert_array_equal(np.isfinite(got), np.isfinite(expected))


def test_stacks_that_would_take_much_memory_stay_in_the_loop(monkeypatch):
    monkeypatch.setattr(loop_stacks, "MOST", 0)

    def program(x, w):
        s = 0.0
        for i in range(x.shape[0]):
            s = s + np.max(x[i] @ w)
        return s

    r = np.random.default_rng(0)
    x, w = r.normal(size=(100, 3)), r.normal(size=(3, 50))
    assert "matmul" in names(optimised(program, x, w))[1]
    np.testing.assert_allclose(compiled(program, x, w)(x, w), program(x, w), rtol=1e-12)


def test_the_program_of_a_derivative_can_be_printed():
    x = np.random.default_rng(0).normal(size=(9, 10))
    f = fad.grad(loss_of(covariance))
    space = {"np": np}
    exec(fad.source(f, name="g")(x), space)
    np.testing.assert_allclose(space["g"](x), f(x), rtol=1e-12)
