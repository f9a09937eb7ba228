"""Loops over the elements of matrices, as they are written for factorisations and products: captured, and right."""

import numpy as np
import pytest
from capture.agreement import close, report_of

import fad


def factor_in_place(a, b):
    for i in range(a.shape[0]):
        for j in range(i):
            a[i, j] -= a[i, :j] @ a[:j, j]
            a[i, j] /= a[j, j]
        for j in range(i, a.shape[0]):
            a[i, j] -= a[i, :i] @ a[:i, j]
    return a


def factor_and_substitute(a, b):
    factor_in_place(a, b)
    x, y = np.zeros_like(b[0]), np.zeros_like(b[0])
    for i in range(a.shape[0]):
        y[i] = b[0, i] - a[i, :i] @ y[:i]
    for i in range(a.shape[0] - 1, -1, -1):
        x[i] = (y[i] - a[i, i + 1 :] @ x[i + 1 :]) / a[i, i]
    return x * b


def factor_symmetric(a, b):
    a[0, 0] = np.sqrt(a[0, 0])
    for i in range(1, a.shape[0]):
        for j in range(i):
            a[i, j] -= np.dot(a[i, :j], a[j, :j])
            a[i, j] /= a[j, j]
        a[i, i] = np.sqrt(a[i, i] - np.dot(a[i, :i], a[i, :i]))
    return a


def recursion_of_reversed_parts(a, b):
    r = b[0] / 20
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return y * b


def orthogonal_columns(a, b):
    q, r = np.zeros_like(a), np.zeros((a.shape[1], a.shape[1]), dtype=a.dtype)
    for k in range(a.shape[1]):
        r[k, k] = np.sqrt(np.dot(a[:, k], a[:, k]))
        q[:, k] = a[:, k] / r[k, k]
        for j in range(k + 1, a.shape[1]):
            r[k, j] = np.dot(q[:, k], a[:, j])
            a[:, j] -= q[:, k] * r[k, j]
    return q + r


def update_of_two_products(a, b):
    c = a * b
    for i in range(a.shape[0]):
        c[i, : i + 1] *= 1.2
        for k in range(a.shape[1]):
            c[i, : i + 1] += a[: i + 1, k] * 1.5 * b[i, k] + b[: i + 1, k] * 1.5 * a[i, k]
    return c


def symmetric_product(a, b):
    c, row = a * b, np.empty(a.shape[1])
    for i in range(a.shape[0]):
        for j in range(a.shape[1]):
            c[:i, j] += b[i, j] * a[i, :i]
            row[j] = b[:i, j] @ a[i, :i]
        c[i, :] += b[i, :] * a[i, i] + row
    return c


def triangular_product(a, b):
    for i in range(b.shape[0]):
        for j in range(b.shape[1]):
            b[i, j] += np.dot(a[i + 1 :, i], b[i + 1 :, j])
    return b


PROGRAMS = [
    factor_in_place, factor_and_substitute, factor_symmetric, recursion_of_reversed_parts, orthogonal_columns,
    update_of_two_products, symmetric_product, triangular_product,
]  # fmt: skip


def _point(n):
    rng = np.random.default_rng(3)
    a = rng.standard_normal((n, n))
    return a @ a.T + n * np.eye(n), rng.standard_normal((n, n))


@pytest.mark.parametrize("program", PROGRAMS)
def test_the_gradient_of_a_captured_matrix_program_is_that_of_the_plain_one(program):
    a, b = _point(10)
    weights = np.random.default_rng(4).standard_normal((10, 10))
    loss = lambda a, b: np.sum(weights * program(a, b))
    what, text = report_of(lambda a, b: loss(a.copy(), b.copy()), a, b, loops="capture")
    assert set(what) == {"captured"}, text
    gradient = fad.value_and_grad(lambda a, b: loss(a.copy(), b.copy()), argnums=(0, 1))
    wanted = gradient(a, b)
    with fad.config.use(loops="capture"):
        compiled = fad.jit(gradient)
        for call in range(3):
            close(compiled(a, b), wanted, (program.__name__, call))
    u, v = _point(10)[::-1]
    h = 1e-6
    ends = [loss(a + s * u, b + s * v) for s in (h, -h)]
    along = np.sum(wanted[1][0] * u) + np.sum(wanted[1][1] * v)
    np.testing.assert_allclose((ends[0] - ends[1]) / (2 * h), along, rtol=1e-6)


def test_a_plain_array_is_read_at_places_and_bounds_that_are_counters():
    table = np.arange(1.0, 37.0).reshape(6, 6)

    def f(x):
        y = np.zeros_like(x)
        for i in range(6):
            row = table[i]
            y[i] = table[i, i] * x[i] + row[:i] @ x[:i]
            for j in range(i):
                y[i] += table[i, j] * np.sum(table[j : j + 1, :2]) * x[j] ** 2
        return np.sum(y**2)

    x = np.linspace(-1.0, 0.5, 6)
    what, text = report_of(f, x)
    assert what == ["captured", "captured"], text
    with fad.config.use(loops="capture"):
        compiled = fad.jit(fad.value_and_grad(f))
        for _ in range(3):
            close(compiled(x), fad.value_and_grad(f)(x), "table")
    np.testing.assert_array_equal(table, np.arange(1.0, 37.0).reshape(6, 6))


def test_the_length_of_a_slice_up_to_a_counter_is_a_number_of_the_loop():
    def f(x):
        y = np.zeros_like(x)
        for i in range(1, 6):
            part = x[: i - 1]
            y[i] = len(part) * x[i] + len(x)
            for j in range(len(part)):
                y[i] += part[j] * x[i]
        return np.sum(y**2)

    x = np.linspace(-1.0, 0.5, 6)
    what, text = report_of(f, x)
    assert what == ["captured", "captured"], text
    with fad.config.use(loops="capture"):
        compiled = fad.jit(fad.value_and_grad(f))
        for _ in range(3):
            close(compiled(x), fad.value_and_grad(f)(x), "lengths")


def test_a_write_into_a_part_of_a_plain_array_from_outside_is_no_captured_loop():
    table = np.zeros((6, 6))

    def f(x):
        for i in range(6):
            table[i, :2] += 1.0
            x = x * 1.1
        return np.sum(x)

    what, text = report_of(f, np.ones(3))
    assert what == ["recorded step by step"], text
