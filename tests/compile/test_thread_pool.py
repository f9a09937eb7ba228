"""Large loops: cut into parts, run by several threads, with the same bits whatever the number of threads."""

import itertools
import os
import signal
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from natively import compiled, in_threads

import fad

pytest.importorskip("llvmlite")
from fad.compile.legalize.places.scatter_to_gather import scatter_to_gather
from fad.compile.machine import thread_pool as pools
from fad.compile.schedule.parallelize import cut

RNG = np.random.default_rng(0)


@pytest.fixture
def threads():
    before = pools.set_threads(4)
    yield
    pools.set_threads(before)


def leaves(x):
    return fad.tree.leaves(x)


PROGRAMS = {
    "elementwise": lambda x: np.sin(x) * x + 0.5,
    "whole sum": lambda x: np.sum(np.exp(-x * x)),
    "sum and what it adds": lambda x: (np.exp(-x * x), np.sum(np.exp(-x * x)), np.sum(x * x)),
    "largest": lambda x: (np.max(x * x), np.min(np.cos(x))),
    "rows": lambda x: np.sum(np.tanh(x.reshape(500, -1)), axis=1),
    "columns": lambda x: np.sum(np.tanh(x.reshape(500, -1)), axis=0),
    "both": lambda x: (np.tanh(x.reshape(500, -1)), np.sum(np.tanh(x.reshape(500, -1)), axis=0)),
    "transposed": lambda x: (np.exp(x.reshape(500, -1).T), np.sum(x.reshape(500, -1).T * 2.0, axis=1)),
    "broadcast": lambda x: x.reshape(500, -1) * x[:500, None] + x[: x.size // 500],
    "backwards": lambda x: x[::-1] * np.cos(x),
    "a few long columns": lambda x: np.sum(np.tanh(x.reshape(6, -1)), axis=0),
    "in the middle": lambda x: np.sum(np.tanh(x.reshape(20, 100, -1)), axis=1),
    "largest of columns": lambda x: np.max(np.tanh(x.reshape(500, -1)), axis=0),
    "two sums of columns": lambda x: (np.sum(x.reshape(500, -1) ** 2, 0), np.sum(x.reshape(500, -1) * 3.0, 0)),
    "truth": lambda x: (x > 0) & (np.sin(x) < 0.5),
    "joined": lambda x: np.concatenate([np.sin(x), x * 2.0, x]),
    "huge arguments": lambda x: np.sin(1e6 * x),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_parts_give_what_the_whole_gives_whatever_the_number_of_threads(name, threads):
    f = PROGRAMS[name]
    x = RNG.normal(size=600_000)
    fast = compiled(f, x)
    assert any(function == "pool_run" for function, _ in fast._signatures.popitem()[1].paths[0].program.keep.table.rows)
    fast = compiled(f, x)
    wanted = leaves(f(x))
    four = leaves(fast(x))
    pools.set_threads(1)
    one = leaves(fast(x))
    for a, b, c in zip(wanted, four, one, strict=True):
        np.testing.assert_array_equal(b, c)
        assert b.dtype == a.dtype
        np.testing.assert_allclose(b, a, rtol=1e-11, atol=1e-13)


STENCILS = {
    "differences": lambda x: np.sum((x[1:] - x[:-1]) ** 2),
    "Rosenbrock": lambda x: np.sum(100.0 * (x[1:] - x[:-1] * x[:-1]) ** 2 + (1.0 - x[:-1]) ** 2),
    "three neighbours": lambda x: np.sum((x[2:] - 2.0 * x[1:-1] + x[:-2]) ** 2),
    "with a gap": lambda x: np.sum(x[: x.size // 4] * x[-(x.size // 4) :]),
    "heavy": lambda x: np.sum(np.sin(x[1:] * x[:-1])),
    "rows": lambda x: np.sum((x.reshape(200, -1)[1:] - x.reshape(200, -1)[:-1] ** 2) ** 2),
    "columns": lambda x: np.sum((x.reshape(200, -1)[:, 1:] * x.reshape(200, -1)[:, :-1]) ** 2),
    "a row for all": lambda x: np.sum((x[1:] - x[:-1] * x[:1]) ** 2),
}


@pytest.mark.parametrize("name", STENCILS)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_shifted_slices_of_a_large_array_add_up_to_the_same_derivative(name, dtype, threads):
    x = RNG.normal(size=40_000).astype(dtype)
    g = fad.value_and_grad(STENCILS[name])
    for a, b in zip(leaves(compiled(g, x)(x)), leaves(g(x)), strict=True):
        assert a.dtype == b.dtype
        rtol, atol = (1e-12, 1e-13) if dtype is np.float64 else (1e-4, 1e-5)
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol * float(np.abs(b).max()))


def test_a_large_scatter_becomes_a_join_of_stretches_that_stores_nothing_between():
    x = RNG.normal(size=40_000)
    graph = fad.make_graph(fad.grad(STENCILS["Rosenbrock"]))(x)
    from fad.compile.pipeline import optimise

    names = [eq.prim.name for eq in scatter_to_gather(optimise(graph)).equations]
    assert "scatter" not in names
    assert names.count("join") == 1
    found = scatter_to_gather(optimise(graph))(x)[0]
    np.testing.assert_allclose(found, fad.grad(STENCILS["Rosenbrock"])(x), rtol=1e-10)


def test_a_guard_after_a_rewritten_scatter_still_finds_its_path():
    def f(x):
        d = fad.grad(STENCILS["Rosenbrock"])(x)
        return np.sum(d) if d[0] > 0 else np.sum(d * d)

    x = RNG.normal(size=40_000)
    fast = compiled(f, x)
    for v in (x, -x, x + 3.0, x - 3.0, x):
        np.testing.assert_allclose(fast(v), f(v), rtol=1e-11)


def test_a_cut_covers_every_element_once_and_does_not_ask_for_the_number_of_threads(threads):
    from fad.compile.ir.kernel import Kernel

    for reduce, extents in (("", (10**6,)), ("inner", (10**6,)), ("axis0", (999, 1001)), ("axis1", (7, 999, 1001))):
        kernel = Kernel(len(extents), ("double",), ("c",), (), (), (0,), reduce)
        axis, bounds = cut(kernel, extents)
        assert axis == 0
        assert (bounds[0][0], bounds[-1][1]) == (0, extents[axis])
        assert all(b == c for (_, b), (c, _) in itertools.pairwise(bounds))
        pools.set_threads(2)
        assert cut(kernel, extents) == (axis, bounds)
    assert cut(Kernel(1, ("double",), ("c",), (), (), (0,)), (1000,)) is None


def test_parts_that_add_up_in_memory_do_not_write_to_one_cache_line():
    from fad.compile.ir.kernel import Kernel

    kernel = Kernel(3, ("double",), ("c",), (), (), (0,), "axis1")
    _, bounds = cut(kernel, (25, 1000, 10), ((80_000, 80, 8), (80, 0, 8)))
    assert len(bounds) > 1
    assert all(start * 80 % 64 == 0 for start, _ in bounds)


def test_several_python_threads_may_run_large_loops_at_once(threads):
    x = RNG.normal(size=200_000)
    programs = [compiled(lambda x, k=k: np.sum(np.sin(x * (k + 1))), x) for k in range(4)]
    wanted = [float(f(x)) for f in programs]
    wrong = []

    def work(k):
        for _ in range(40):
            if float(programs[k](x)) != wanted[k]:
                wrong.append(k)

    in_threads(work)
    assert wrong == []


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_forked_process_starts_threads_of_its_own(threads):
    x = RNG.normal(size=200_000)
    fast = compiled(lambda x: np.sum(np.sin(x)), x)
    wanted = float(fast(x))
    child = os.fork()
    if child == 0:
        ok = all(float(fast(x)) == wanted for _ in range(5))
        os._exit(0 if ok else 1)
    assert os.waitpid(child, 0)[1] == 0
    assert float(fast(x)) == wanted


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_process_forked_while_another_thread_runs_a_program_can_run_it_too():
    def count(x):
        return fad.while_loop(lambda n: n < 1e9 * x[0], lambda n: n + 1.0, 0.0)

    slow, fast = np.ones(1), np.zeros(1)
    program = compiled(count, fast)
    thread = threading.Thread(target=program, args=(slow,), daemon=True)
    thread.start()
    time.sleep(0.2)
    assert thread.is_alive()
    child = os.fork()
    if child == 0:
        signal.alarm(120)  # ends a child that waits for a thread which it has not
        os._exit(0 if program(fast) == 0.0 else 1)
    assert os.waitpid(child, 0)[1] == 0
    thread.join()


@pytest.mark.parametrize(
    ("environment", "number"),
    [({"FAD_NUM_THREADS": "3", "OMP_NUM_THREADS": "2"}, 3), ({"OMP_NUM_THREADS": "2,1"}, 2), ({}, None)],
)
def test_the_environment_limits_the_threads(environment, number, monkeypatch):
    for name in ("FAD_NUM_THREADS", "OMP_NUM_THREADS"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    assert pools.count_threads() == number if number else pools.count_threads() >= 1


def test_with_one_thread_none_is_started():
    program = (
        "import threading, os, numpy as np, fad\n"
        "f = fad.jit(lambda x: np.sum(np.sin(x)))\n"
        "x = np.ones(300_000)\n"
        "f(x); f(x)\n"
        "from fad.compile.machine.thread_pool import pool, WORDS\n"
        "print(int(pool().memory[WORDS['started'] // 8]))\n"
    )
    for number, started in ((1, "0"), (3, "2")):
        run = subprocess.run(
            [sys.executable, "-c", program], env={**os.environ, "FAD_NUM_THREADS": str(number)}, capture_output=True,
            text=True, check=True,
        )  # fmt: skip
        assert run.stdout.strip() == started
