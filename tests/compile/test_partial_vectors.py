"""Rows of every length are read and stored to their ends and no further, under masks and without."""

import numpy as np
import pytest

import fad
from fad.compile.codegen.llvm import matmul_kernels, simd
from fad.compile.machine.cpu import register_bytes
from fad.compile.runtime import jit_engine

LENGTHS = [*range(1, 20), 31, 32, 33]

pytestmark = pytest.mark.skipif(not register_bytes(), reason="this CPU has no vectors that kernels are written for")


@pytest.fixture(params=[True, False], ids=["masked", "a power of two at a time"])
def stores(request, monkeypatch):
    """Compile all kernels anew, as for a CPU with AVX-512 or for one without: LLVM writes both for either."""
    monkeypatch.setenv("FAD_CACHE_DIR", "")
    monkeypatch.setattr(jit_engine, "_addresses", {})
    monkeypatch.setattr(simd, "register_bytes", lambda: 64 if request.param else 32)
    for module in (simd, matmul_kernels):
        monkeypatch.setattr(module, "masks_stores", lambda: request.param)


def compiled(f, *args):
    run = fad.jit(f)
    run(*args)
    return run(*args)


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
def test_rows_of_every_length_are_written_to_their_end(stores, dtype):
    for n in LENGTHS:
        table, column = (np.arange(1, 3 * k + 1).reshape(3, k).astype(dtype) for k in (n, 1))

        def into_a_part(table, column):
            wide = np.full((5, table.shape[1] + 2), 7, table.dtype)
            wide[1:4, 1:-1] = table * column + table
            return wide, table * column - column

        for found, wanted in zip(compiled(into_a_part, table, column), into_a_part(table, column), strict=True):
            assert found.dtype == wanted.dtype
            np.testing.assert_array_equal(found, wanted)


def test_booleans_are_read_and_written_to_their_end(stores):
    for n in LENGTHS:
        x = np.linspace(-1.0, 1.0, 3 * n).reshape(3, n)

        def compare(x, given):
            wide = np.zeros((5, x.shape[1] + 2), bool)
            wide[1:4, 1:-1] = (x > 0.1) | given
            return wide, x < 0.3, np.where(given, x, -2.0)

        run = fad.jit(compare)
        for _ in range(2):
            found = run(x, x > 0.5)
        for a, b in zip(found, compare(x, x > 0.5), strict=True):
            assert a.dtype == b.dtype
            np.testing.assert_array_equal(a, b)
        assert "lowering: llvm" in str(run.explain())


def test_columns_are_read_and_written_to_their_end(stores):
    for n in LENGTHS:
        x = np.linspace(0.5, 2.0, 3 * n).reshape(n, 3)

        def by_columns(x):
            wide = np.full((x.shape[0] + 2, 5), 7.0)
            wide[1:-1, 1:4:2] = x[:, ::2] * x[:, 1:2]
            return wide, x[:, 0] * x[:, 1] + x[:, 2], x.T * 2.0

        for found, wanted in zip(compiled(by_columns, x), by_columns(x), strict=True):
            np.testing.assert_allclose(found, wanted, rtol=1e-15)


def test_sums_along_rows_keep_what_they_store(stores):
    for n in LENGTHS:
        x = np.linspace(0.5, 2.0, 4 * n).reshape(4, n)
        square, total = compiled(lambda x: (lambda y: (y, np.sum(y, 1)))(x * x), x)
        np.testing.assert_array_equal(square, x * x)
        np.testing.assert_allclose(total, np.sum(x * x, 1), rtol=1e-14)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_of_every_width_are_written_to_their_end(stores, dtype):
    for n in LENGTHS:
        a = np.linspace(-1, 1, 15).reshape(5, 3).astype(dtype)
        b = np.linspace(1, 2, 6 * n).reshape(2, 3, n).astype(dtype)

        def into_a_part(a, b):
            wide = np.full((2, 5, b.shape[2] + 2), 7, b.dtype)
            wide[:, :, 1:-1] = a @ b
            return wide

        np.testing.assert_allclose(compiled(into_a_part, a, b), into_a_part(a, b), rtol=1e-5, atol=1e-6)
