"""The way into native code: one thread at a time in each program, and Python free meanwhile."""

import threading
import time

import numpy as np
import pytest

import fad
from fad.compile.codegen.llvm.module import Module

pytest.importorskip("llvmlite")
from natively import compiled, in_threads

from fad.compile.codegen.llvm.guards_and_gathers import guard_module
from fad.compile.runtime import jit_engine
from fad.compile.runtime.entry_point import Shut, builtin, gate

X = np.linspace(0.1, 0.9, 12)


def test_one_thread_at_a_time_is_within_a_gate():
    entrance, inside, seen = gate(), [], []

    def work(k):
        for _ in range(200):
            with entrance.patient:
                inside.append(None)
                time.sleep(0)
                seen.append(len(inside))
                inside.pop()

    in_threads(work)
    assert seen == [1] * 800


def test_a_gate_that_somebody_is_in_says_so_to_who_does_not_wait():
    entrance = gate()
    for _ in range(2):
        with entrance, pytest.raises(Shut), entrance:
            raise AssertionError("two are in the gate")
    with entrance:
        pass


@pytest.mark.parametrize("error", [ValueError("of its own"), KeyboardInterrupt(), SystemExit(3)])
def test_an_error_leaves_the_gate_open_and_is_not_kept(error):
    entrance = gate()
    for _ in range(3):
        with pytest.raises(type(error)) as raised, entrance:
            raise error
        assert raised.value is error
    with entrance:
        pass


def test_a_handler_may_compile_while_its_thread_is_compiling():
    def interrupted():
        jit_engine.addresses({"guard_64": lambda: guard_module(64)})
        return Module("define i32 @of_a_test() {\n  ret i32 0\n}\n")

    assert jit_engine.addresses({"of_a_test": interrupted})["of_a_test"]


def test_the_driver_is_a_function_like_those_of_python():
    assert type(builtin("drive")) is type(len)
    assert builtin("drive").__name__ == "drive"
    with pytest.raises(TypeError):
        builtin("drive")()


@pytest.mark.parametrize("dtype", [bool, np.int32, np.float32, np.float64, np.complex128])
def test_the_address_of_an_array_is_where_its_first_element_lies(dtype):
    a = np.zeros((3, 4, 5), dtype)
    for x in (a, a[1:], a[1, 2], a[2, 3, 1:], a.reshape(-1)[:0]):
        assert builtin("address")(x) == x.ctypes.data
    a.setflags(write=False)
    assert builtin("address")(a) == a.ctypes.data
    with pytest.raises((BufferError, ValueError)):
        builtin("address")(a.T)


def test_a_weight_that_hundreds_of_steps_read_is_found_wherever_it_lies():
    def f(w, x):
        for k in range(30):
            x = np.tanh(w[k] + x) * w[0, 0]
        return x

    w = np.random.default_rng(0).normal(size=(30, 200))
    fast = compiled(f, w, np.ones(200))
    for k in range(3):
        np.testing.assert_allclose(fast(w + k, np.ones(200)), f(w + k, np.ones(200)), rtol=1e-13)


def test_other_threads_of_python_run_while_native_code_does():
    f = compiled(lambda x: fad.fori_loop(0, 3_000_000, lambda i, v: np.cos(v), x), 0.5)
    counted, over = [], threading.Event()

    def run():
        f(0.5)
        over.set()

    thread = threading.Thread(target=run)
    thread.start()
    while not over.is_set():
        counted.append(None)
        time.sleep(0.001)
    thread.join()
    assert len(counted) > 3


def test_a_thread_that_finds_a_program_at_work_gets_the_same_bits_from_it():
    slow = compiled(lambda x: fad.fori_loop(0, 300_000, lambda i, v: np.cos(v) + 1e-3 * np.tanh(v * i), x), X)
    want, found = slow(X), []
    in_threads(lambda k: found.append(slow(X)))
    for y in found:
        np.testing.assert_array_equal(y, want)


def test_threads_that_call_one_program_get_their_own_results():
    f = compiled(lambda x: np.sum(np.sin(x) * x), np.arange(50.0))
    wanted, wrong = [float(f(np.arange(50.0) + k)) for k in range(4)], []

    def work(k):
        for _ in range(300):
            if float(f(np.arange(50.0) + k)) != wanted[k]:
                wrong.append(k)

    in_threads(work)
    assert wrong == []
