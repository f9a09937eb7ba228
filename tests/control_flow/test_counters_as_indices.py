"""A loop's counter is an index, alone, beside a mask and beside an index array, where its body runs step by step."""

import numpy as np
import pytest

import fad

ROWS = np.array([0, 2, 0])
COLUMNS = np.array([True, False, True, True])


def write_rows(x):
    A = np.outer(x, x)
    for k in range(3):
        A[3 - k][:] = np.sin(x) * A[k]
        for _ in range(k):
            x[1] *= 0.5
    return A.sum() + x.sum()


def write_beside_a_mask(x):
    A = np.outer(x, x)
    for k in range(3):
        A[k, COLUMNS] = np.sin(x[:3]) * A[k + 1, COLUMNS]
        for _ in range(k):
            x[1] *= 0.5
    return (A * x).sum()


def write_beside_indices(x):
    A = np.outer(x, x)
    for k in range(3):
        A[k, ROWS] = np.sin(x[:3]) * A[k + 1, ROWS]
        for _ in range(k):
            x[1] *= 0.5
    return (A * x).sum()


@pytest.mark.parametrize("f", [write_rows, write_beside_a_mask, write_beside_indices])
def test_a_batch_of_loops_with_another_loop_inside_writes_at_the_counter(f):
    xs = np.random.default_rng(0).uniform(0.1, 0.9, (3, 4))
    want = np.array([f(x.copy()) for x in xs])
    np.testing.assert_allclose(fad.vmap(f)(xs), want, rtol=1e-13)
    np.testing.assert_allclose(fad.jit(fad.vmap(f))(xs), want, rtol=1e-13)
    gradient = np.array([fad.grad(f)(x) for x in xs])
    np.testing.assert_allclose(fad.jit(fad.vmap(fad.grad(f)))(xs), gradient, rtol=1e-12)
    np.testing.assert_allclose(fad.jit(fad.grad(lambda xs: fad.vmap(f)(xs).sum()))(xs), gradient, rtol=1e-12)


def write_through_reversed_views(x):
    a, b, m = x * 1.5, np.zeros(5), np.array([True, False, True, True, False])
    A, w = np.outer(x, a), a[::-1]
    for i in range(4):
        b[:] = 0.3 * np.cos(w)
        a[::-1][...] -= 0.3 * np.cos(np.roll(b, 1))
        A[4 - i][:] = np.tanh(a + np.roll(b, 1))
        a[m] = 0.5 * b[m]
        for _ in range(i):
            w[1:] = np.sin(x)[:4]
            x[1] *= 0.5
    return a.sum() + A.sum()


def test_a_batch_of_loops_with_masks_and_views_is_recorded():
    xs = np.random.default_rng(0).uniform(0.1, 0.9, (3, 5))
    want = np.array([write_through_reversed_views(x.copy()) for x in xs])
    np.testing.assert_allclose(fad.jit(fad.vmap(write_through_reversed_views))(xs), want, rtol=1e-13)
