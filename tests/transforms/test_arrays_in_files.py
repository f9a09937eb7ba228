"""Arrays in files, ``np.memmap``: they compute as plain arrays, so that data need not be read before."""

from __future__ import annotations

import numpy as np
import pytest

import fad

X = np.array([1.0, 2.0, 3.0])


@pytest.fixture(params=["w+", "r"])
def stored(request, tmp_path):
    file = tmp_path / "numbers"
    file.write_bytes(X.tobytes())
    mapped = np.memmap(file, dtype=float, mode="r+", shape=(3,))
    return mapped if request.param == "w+" else np.memmap(file, dtype=float, mode="r", shape=(3,))


@pytest.mark.parametrize("wrap", [lambda f: f, fad.jit], ids=["plain", "jit"])
def test_an_array_in_a_file_is_an_argument_and_a_constant_as_any_array(stored, wrap):
    np.testing.assert_array_equal(wrap(fad.grad(lambda x: np.sum(x**2)))(stored), 2 * X)
    np.testing.assert_array_equal(wrap(fad.grad(lambda x: np.sum(x * stored)))(X), X)
    np.testing.assert_array_equal(wrap(fad.grad(lambda x, data: np.sum(x * data[::-1])))(X, stored), X[::-1])
    np.testing.assert_array_equal(fad.vmap(wrap(lambda x: 2 * x))(stored), 2 * X)
    for found, wanted in zip(fad.jvp(wrap(np.sin), (stored,), (stored,)), (np.sin(X), X * np.cos(X)), strict=True):
        np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_a_jitted_function_reads_what_the_file_holds_now(tmp_path):
    stored = np.memmap(tmp_path / "numbers", dtype=float, mode="w+", shape=(3,))
    stored[:] = X
    closed, given = fad.jit(lambda x: x * stored), fad.jit(lambda data: data * 2)
    np.testing.assert_array_equal(closed(X), X * X)
    np.testing.assert_array_equal(given(stored), 2 * X)
    stored[0] = 7.0
    np.testing.assert_array_equal(closed(X), [7.0, 4.0, 9.0])
    np.testing.assert_array_equal(given(stored), [14.0, 4.0, 6.0])


def test_jit_runs_a_function_of_an_array_in_a_file_as_a_program(tmp_path):
    calls = []
    stored = np.memmap(tmp_path / "numbers", dtype=float, mode="w+", shape=(3,))
    fast = fad.jit(lambda data: calls.append(1) or np.sum(data))
    assert [fast(stored), fast(stored), len(calls)] == [0.0, 0.0, 1]
