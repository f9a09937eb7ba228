"""Large products in native programs are cut into parts, which the threads of the pool share."""

import os
import subprocess
import sys
import tempfile
import threading

import numpy as np
import pytest
from natively import compiled

from fad.compile.codegen import matmul
from fad.compile.machine import blas
from fad.compile.machine.thread_pool import set_threads

pytest.importorskip("llvmlite")
if blas.choose() is None or blas.threads() is None:
    pytest.skip("there is no BLAS here whose number of threads can be set", allow_module_level=True)

rng = np.random.default_rng(0)
SHAPES = {
    "wide": ((130, 300), (300, 517)),
    "tall": ((1025, 130), (130, 130)),
    "square": ((400, 400), (400, 400)),
    "large": ((1030, 700), (700, 1001)),
    "a matrix and a vector": ((3001, 1003), (1003,)),
    "a vector and a matrix": ((1003,), (1003, 3001)),
    "few rows": ((9, 900), (900, 1100)),
    "few columns": ((1100, 800), (800, 9)),
    "few of both": ((9, 60000), (60000, 11)),
    "a batch": ((40, 70, 80), (40, 80, 90)),
    "a batch of one factor": ((40, 70, 80), (80, 90)),
    "two axes of a batch": ((3, 11, 70, 80), (11, 80, 90)),
}


@pytest.fixture(autouse=True)
def threads(monkeypatch):
    monkeypatch.setattr(matmul, "count_threads", lambda: 2)


def table(fast):
    """Return the names of the functions that a compiled function runs, in order."""
    (signature,) = fast._signatures.values()
    return [name for name, _ in signature.paths[0].program.keep.table.rows]


def laid(a, how):
    """Return the same matrix, or batch of them, with its rows or its columns contiguous in memory."""
    return a if how == "by rows" or a.ndim < 2 else np.ascontiguousarray(a.swapaxes(-1, -2)).swapaxes(-1, -2)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("right", ["by rows", "by columns"])
@pytest.mark.parametrize("left", ["by rows", "by columns"])
@pytest.mark.parametrize("name", SHAPES)
def test_a_product_in_parts_is_numpys(name, left, right, dtype):
    a, b = (rng.normal(size=s).astype(dtype) for s in SHAPES[name])
    a, b = laid(a, left), laid(b, right)
    fast = compiled(lambda a, b: (a + 1.0) @ (b + 1.0), a, b)
    within = 1e-5 if dtype is np.float32 else 1e-13
    assert any(name.startswith("pool_run") for name in table(fast)[2:])  # after those that add one
    y = (a + 1.0).astype(dtype) @ (b + 1.0).astype(dtype)
    np.testing.assert_allclose(fast(a, b), y, rtol=within, atol=within * np.abs(y).max())


def test_the_number_of_threads_does_not_change_a_bit():
    a, b = rng.normal(size=(300, 700)), rng.normal(size=(700, 500))
    fast = compiled(lambda a, b: np.tanh(a @ b) @ b.T, a, b)
    before = set_threads(1)
    try:
        alone = fast(a, b)
        set_threads(3)
        assert (fast(a, b) == alone).all()
    finally:
        set_threads(before)


def test_one_thread_has_products_whole(monkeypatch):
    monkeypatch.setattr(matmul, "count_threads", lambda: 1)
    a, b = rng.normal(size=(997, 701)), rng.normal(size=(701, 1003))
    fast = compiled(lambda a, b: a @ b, a, b)
    assert table(fast) == ["blas_gemm"]
    np.testing.assert_allclose(fast(a, b), a @ b, rtol=1e-13, atol=1e-10)


@pytest.mark.parametrize("count", [2, 8])
def test_more_threads_get_more_parts(monkeypatch, count):
    monkeypatch.setattr(matmul, "count_threads", lambda: count)
    a, b = rng.normal(size=(997, 701)), rng.normal(size=(701, 1003))
    fast = compiled(lambda a, b: a @ b, a, b)
    (signature,) = fast._signatures.values()
    assert signature.paths[0].program.keep.table.words[0] == count
    np.testing.assert_allclose(fast(a, b), a @ b, rtol=1e-13, atol=1e-10)


def test_blas_has_as_many_threads_after_a_program_as_before():
    library = blas.choose()
    ask, say = library.own("get_num_threads"), library.own("set_num_threads")
    a = rng.normal(size=(400, 400))
    fast = compiled(lambda a: a @ a, a)
    before, threads = ask(), set_threads(2)
    try:
        for n in (2, 1):
            say(n)
            fast(a)
            assert ask() == n
    finally:
        say(before)
        set_threads(threads)


def test_programs_may_run_at_the_same_time():
    a = rng.normal(size=(400, 400))
    fasts = [compiled(lambda a, k=k: (a @ a) * k, a) for k in range(1, 4)]
    wanted = [(a @ a) * k for k in range(1, 4)]
    wrong = []

    def work(k):
        for _ in range(20):
            if not np.allclose(fasts[k](a), wanted[k], rtol=1e-12, atol=1e-12):
                wrong.append(k)

    before = set_threads(2)
    try:
        workers = [threading.Thread(target=work, args=(k,)) for k in range(3)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
    finally:
        set_threads(before)
    assert not wrong


def test_loops_and_products_in_parts_are_compiled_together():
    """In one module, as the first program of a process with an empty cache compiles them."""
    code = """
import numpy as np
import fad
f = fad.jit(lambda a: np.tanh(a @ a) + 1.0)
a = np.ones((600, 600))
f(a), f(a)
print(f.explain())
"""
    with tempfile.TemporaryDirectory() as folder:
        environment = {**os.environ, "FAD_CACHE_DIR": folder, "PYTHONWARNINGS": "error"}
        command = [sys.executable, "-c", code]
        done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "lowering: llvm" in done.stdout


def test_a_blas_whose_threads_cannot_be_set_is_called_whole(monkeypatch):
    monkeypatch.setattr(blas, "threads", lambda: None)
    a, b = rng.normal(size=(700, 520)), rng.normal(size=(520, 600))
    fast = compiled(lambda a, b: a.T @ b[:, :520].T, a.T, b)
    assert table(fast) == ["blas_gemm"]
    np.testing.assert_allclose(fast(a.T, b), a @ b[:, :520].T, rtol=1e-12, atol=1e-10)
