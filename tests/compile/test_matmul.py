"""Matrix products in native programs: own code and BLAS by pointer, in every arrangement of the operands."""

import os
import subprocess
import sys

import numpy as np
import pytest

import fad
from fad.compile.codegen.matmul import _plan_product
from fad.compile.machine import blas
from fad.compile.machine.cpu import register_bytes, thinnest
from fad.compile.targets.select import using

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)


VIEWS = {
    "rows": lambda a: a, "columns": lambda a: np.swapaxes(a, -1, -2), "strided": lambda a: a[..., ::2],
    "reversed": lambda a: a[..., ::-1, :],
}  # fmt: skip


def base(shape, how="rows", dtype=float):
    """Return an array of which the view named `how` has a shape."""
    shape = list(shape)
    if how == "columns":
        shape[-2:] = shape[:-3:-1]
    if how == "strided":
        shape[-1] *= 2
    return rng.normal(size=shape).astype(dtype)


def check(x, y, first="rows", second="rows", native=True):
    """Compare the product of two views with NumPy's, and see that no NumPy call made it."""

    def product(x, y):
        return VIEWS[first](x) @ VIEWS[second](y)

    with using("llvm"):
        f = fad.jit(product)
        f(x, y)
        got = f(x, y)
    want = product(x, y)
    size = max(1.0, float(np.abs(want).max()))
    assert got.shape == want.shape
    assert got.dtype == want.dtype
    np.testing.assert_allclose(got, want, rtol=0, atol=(1e-12 if want.dtype == float else 1e-4) * size)
    assert ("calls of NumPy" not in f.explain()) is native, f.explain()


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "shape", [(1, 1, 1), (3, 5, 2), (16, 4, 32), (9, 33, 17), (64, 80, 70), (10, 8, 99), (11, 200, 8), (13, 3, 5),
              (5, 65, 33), (2, 129, 9), (16, 64, 7), (13, 200, 31)],
)  # fmt: skip
@pytest.mark.parametrize("first", ["rows", "columns"])
@pytest.mark.parametrize("second", ["rows", "columns"])
def test_products_of_any_size_by_rows_and_columns_run_natively(shape, first, second, dtype):
    m, k, n = shape
    check(base((m, k), first, dtype), base((k, n), second, dtype), first, second)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [(8, 1200, 1500), (3, 1500, 1100), (1500, 4, 1100)])
def test_what_is_read_once_is_not_packed_for_blas(shape, dtype):
    m, k, n = shape
    x, y = rng.normal(size=(m, k)).astype(dtype), rng.normal(size=(k, n)).astype(dtype)
    transposed = np.ascontiguousarray(y.T)
    with using("llvm"):
        f = fad.jit(lambda x, y, transposed: (x @ y, x @ transposed.T))
        f(x, y, transposed)
        by_rows, by_columns = f(x, y, transposed)
    tolerance = (1e-11 if dtype is np.float64 else 1e-2) * k / 1000
    np.testing.assert_allclose(by_rows, x @ y, rtol=0, atol=tolerance)
    np.testing.assert_allclose(by_columns, x @ y, rtol=0, atol=tolerance)
    kernels = f._signatures.popitem()[1].paths[0].program.keep.table.kernels
    assert ("blas_gemm" in kernels) is (k <= thinnest() and register_bytes() < 64)


@pytest.mark.parametrize("how", ["strided", "reversed"])
def test_small_operands_of_any_strides_are_read_in_place(how):
    check(base((6, 7), how), base((7, 9), how), how, how)


def test_what_blas_cannot_read_as_it_lies_is_left_to_numpy():
    check(base((80, 80), "strided"), base((80, 80)), "strided", native=False)


@pytest.mark.parametrize("k", [1, 7, 300, 2000])
def test_products_with_vectors_on_either_side(k):
    x, z = base((k,)), base((80,))
    check(base((80, k)), x)
    check(z, base((80, k)))
    check(x, x)
    check(base((80, k), "columns"), x, "columns")
    check(z, base((80, k), "columns"), second="columns")
    check(x[None, :], base((k, 80), "columns"), second="columns")


@pytest.mark.parametrize("size", [5, 70])
def test_batches_are_one_call_whether_they_are_rows_of_one_product_or_not(size):
    a, b = base((3, 2, size, 8)), base((3, 2, 8, size))
    check(a, b)
    check(a, base((8, size)))
    check(base((3, 1, size, 8)), b)
    check(base((size, 8)), b)
    check(a, a, second="columns")
    check(base((3, 2, 1, 8)), base((8, size)))
    check(base((8,)), b)
    check(a, base((8,)))


def test_heads_of_attention_are_read_through_their_transpose():
    x = rng.normal(size=(2, 60, 4, 16))

    def scores(x):
        heads = np.transpose(x, (0, 2, 1, 3))
        return heads @ np.transpose(heads, (0, 1, 3, 2))

    f = fad.jit(scores)
    f(x)
    np.testing.assert_allclose(f(x), scores(x), atol=1e-12)
    assert "calls of NumPy" not in f.explain()


def test_an_empty_product_is_zero():
    f = fad.jit(lambda a, b: a @ b)
    for _ in range(3):
        assert (f(np.ones((3, 0)), np.ones((0, 2))) == np.zeros((3, 2))).all()


# --- which BLAS ----------------------------------------------------------------------------------------------------


def test_routines_are_found_and_tried_before_they_are_used():
    library = blas.choose()
    assert library is not None
    assert blas._is_right(library)
    assert all(blas.pointer(name) for name in ("dgemm", "sgemm", "dgemv", "sgemv"))


def test_a_routine_that_computes_something_else_is_not_used(monkeypatch):
    @blas.ctypes.CFUNCTYPE(None, *[blas.ctypes.c_void_p] * 13, blas.ctypes.c_int64, blas.ctypes.c_int64)
    def nothing(*_):
        pass

    library = blas.Library(None, "none")
    monkeypatch.setattr(library, "address", lambda name: blas.ctypes.cast(nothing, blas.ctypes.c_void_p).value)
    assert not blas._is_right(library)


def test_scipys_exported_pointers_do_the_same():
    pytest.importorskip("scipy")
    assert blas._is_right(blas._of_scipy())


@pytest.mark.parametrize(
    ("running", "flags", "better"),
    [
        ("Haswell", blas._WIDE_FLAGS, "SKYLAKEX"), ("SkylakeX", blas._WIDE_FLAGS, None), ("Zen", {"avx2", "fma"}, None),
        ("Nehalem", {"avx2", "fma"}, "HASWELL"), ("Prescott", {"sse2"}, None), ("", blas._WIDE_FLAGS, None),
    ],
)  # fmt: skip
def test_older_kernels_than_the_cpus_are_noticed(running, flags, better):
    assert blas.better_kernels(running, set(flags)) == better


_COPY = """
import os
import numpy as np
from fad.compile.machine import blas
from fad.compile.machine.cpu import register_bytes, thinnest
blas.cpu_flags = lambda: set(blas._WIDE_FLAGS)
if blas.load_numpys().kernels().upper() == "HASWELL":
    del os.environ["OPENBLAS_CORETYPE"]  # as if NumPy had not known the CPU
    one = blas.choose()
    print(one.title, one.kernels().upper(), "OPENBLAS_CORETYPE" in os.environ)
    import fad
    f = fad.jit(lambda a: a @ a)
    a = np.random.default_rng(0).normal(size=(90, 90))
    f(a)
    print(np.allclose(f(a), a @ a))
else:
    print("no OpenBLAS")
"""


def test_where_numpys_kernels_are_older_than_the_cpu_jit_runs_a_copy_of_its_own():
    pytest.importorskip("scipy_openblas64")
    if not blas.cpu_flags() >= blas._WIDE_FLAGS:
        pytest.skip("this CPU has no 512-bit vectors")
    run = subprocess.run(
        [sys.executable, "-c", _COPY], env={**os.environ, "OPENBLAS_CORETYPE": "HASWELL"}, capture_output=True,
        text=True, check=True,
    )  # fmt: skip
    assert run.stdout.splitlines() in (["a copy of jit's own SKYLAKEX False", "True"], ["no OpenBLAS"]), run.stderr


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    "shapes",
    [((70, 300, 30), (70, 30, 20)), ((3, 40, 90, 30), (40, 30, 33)), ((9001, 30), (30, 31)), ((70000, 8), (8, 7))],
)
def test_long_products_are_cut_where_they_may_be(shapes, dtype):
    a, b = [np.asarray(np.random.default_rng(1).normal(size=s), dtype) for s in shapes]
    for left, right in ((a, b), (np.moveaxis(np.moveaxis(a, -1, -2).copy(), -1, -2), b)):
        for f in (lambda x, y: x @ y, lambda x, y: x @ np.moveaxis(np.moveaxis(y, -1, -2) * 1.0, -1, -2)):
            g = fad.jit(f)
            g(left, right)
            tolerance = 100 * np.finfo(dtype).eps
            np.testing.assert_allclose(g(left, right), left @ right, rtol=tolerance, atol=tolerance * 5)


def test_a_transposed_factor_is_read_right_for_any_number_of_rows():
    rng = np.random.default_rng(2)
    for m in (1, 5, 20, 300):
        for batch in ((), (3,)):
            a, b = rng.normal(size=(*batch, m, 24)), rng.normal(size=(*batch, 40, 24))
            g = fad.jit(lambda x, y: (x * 2.0) @ np.swapaxes(y, -1, -2))
            g(a, b)
            np.testing.assert_allclose(g(a, b), 2 * a @ np.swapaxes(b, -1, -2), rtol=1e-12, atol=1e-13)


def at_most(*shape, step=1):
    """Return an array that has a shape and no memory; its rows are `step` times as far apart as they are long."""
    strides = (8 * step * shape[-1], 8)[2 - len(shape) :]
    return np.lib.stride_tricks.as_strided(np.zeros(1), shape, strides)


@pytest.mark.parametrize("long", [2**31 - 1, 2**31])
def test_what_has_more_rows_or_columns_than_32_bits_count_is_not_given_to_blas(long):
    cases = [
        ((40, long), (long,), (40,), 1),
        ((64, long), (long, 64), (64, 64), 1),
        ((long, 300), (300, 300), (long, 300), 1),
        ((2000, 2**12), (2**12,), (2000,), -(-long // 2**12)),
    ]
    for a, b, c, step in cases:
        planned = _plan_product(at_most(*a, step=step), at_most(*b), at_most(*c))
        by_blas = planned is not None and planned[0].startswith("blas")
        assert by_blas == (max(*a, *b, a[1] * step) < 2**31), (a, b)
