"""Operations without a kernel in a loop or branch: native code calls NumPy in the middle of it."""

import signal

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from natively import in_threads

import fad
from fad.ops.linalg import eigen

RNG = np.random.default_rng(0)
A = RNG.normal(size=(4, 4)) * 0.3


def rows_and_stacks(xs):
    """Each step reads a row and keeps one: addresses that move along, more of them than are remembered."""
    kept = np.zeros((len(xs), 4))
    total = np.zeros(4)
    for k, x in enumerate(xs):
        total = 0.5 * total + np.linalg.eigvals(A @ A.T + np.diag(x)).real
        kept[k] = np.cumprod(total[::-1])
    return kept, total


def backward(xs):
    total = np.zeros(4)
    for k in range(len(xs) - 1, -1, -1):
        total = 0.1 * np.linalg.eigvals(A @ A.T + np.diag(xs[k, ::-1])).real + total[::-1] * 0.3
    return total


def in_a_branch(xs):
    total = np.zeros(4)
    for x in xs:
        if x[0] > 0:
            total = np.linalg.eigvals(A @ A.T + np.diag(x)).real * 0.1 + total
        else:
            total = total * 0.5
    return total


def in_a_nested_loop(xs):
    total = np.zeros(4)
    for x in xs:
        for _ in range(3):
            total = 0.1 * total + np.linalg.eigvals(A @ A.T + np.diag(x * x)).real * x
    return total


def until(xs):
    total, k = np.ones(4), 0
    while total[0] < 50.0:
        total = total + np.abs(np.linalg.eigvals(A @ A.T + np.diag(xs[k])).real)
        k += 1
    return total, k


def of_complex_numbers(xs):
    z = 0j
    for x in xs:
        z = np.sin(z + x[0]) * (0.3 + 0.1j * np.tanh(x[1]))
    return z.real, z.imag


def in_place(xs):
    y = np.zeros((len(xs), 4))
    for k in range(len(xs)):
        y[k] = np.linalg.eigvals(A @ A.T + np.diag(xs[k])).real
        y[k, 1:] += y[k - 1, :-1]
    return y


PROGRAMS = [rows_and_stacks, backward, in_a_branch, in_a_nested_loop, until, of_complex_numbers, in_place]


def compile_loops(f, *args):
    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        fast(*args), fast(*args)
    return fast


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_loop_with_calls_of_numpy_is_native_and_gives_what_python_gives(f):
    xs = RNG.normal(size=(100, 4)) + 0.1
    fast = compile_loops(f, xs)
    for given in (xs, xs[::-1].copy(), -xs, xs):
        for got, wanted in zip(fad.tree.leaves(fast(given)), fad.tree.leaves(f(given)), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-11, atol=1e-13)
    text = fast.explain()
    assert "captured" in text
    calls = text.partition("calls of NumPy")[2]
    assert calls, text
    assert not any(name in calls for name in ("scan", "while_loop", "fori_loop", "cond")), text


@pytest.mark.parametrize("f", [rows_and_stacks, in_a_branch, in_a_nested_loop], ids=lambda f: f.__name__)
def test_gradients_of_such_loops_are_those_without_jit(f):
    xs = RNG.normal(size=(12, 4)) + 0.1
    loss = lambda xs: sum(np.sum(y**2) for y in (f(xs) if f is rows_and_stacks else (f(xs),)))
    g = fad.grad(loss)
    np.testing.assert_allclose(compile_loops(g, xs)(xs), g(xs), rtol=1e-8, atol=1e-9)


def test_an_error_in_a_step_is_numpys_and_the_next_call_is_right():
    def f(xs):
        total = np.zeros(4)
        for x in xs:
            total = 0.5 * total + np.linalg.eigvals(np.diag(x)).real
        return total

    xs = RNG.normal(size=(30, 4))
    fast = compile_loops(f, xs)
    broken = xs.copy()
    broken[17, 2] = np.nan
    for _ in range(2):
        with pytest.raises(np.linalg.LinAlgError, match="infs or NaNs"):
            fast(broken)
        np.testing.assert_allclose(fast(xs), f(xs), rtol=1e-12)


def test_what_a_handler_of_signals_raises_within_a_call_is_raised_and_the_next_call_is_right(monkeypatch):
    def f(xs):
        total = np.zeros(4)
        for x in xs:
            total = 0.5 * total + np.linalg.eigvals(A @ A.T + np.diag(x)).real
        return total

    xs = RNG.normal(size=(30, 4))
    pressed, before = [], eigen.eig_p.forward

    def press(a):
        pressed.append(a)
        if len(pressed) == 70:
            raise KeyboardInterrupt("pressed")
        return before(a)

    monkeypatch.setattr(eigen.eig_p, "forward", press)
    fast = compile_loops(f, xs)
    with pytest.raises(KeyboardInterrupt, match="pressed"):
        fast(xs)
    np.testing.assert_allclose(fast(xs), f(xs), rtol=1e-12)


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="needs timers that send signals")
@pytest.mark.parametrize("kind", [KeyboardInterrupt, TimeoutError])
def test_what_a_handler_raises_as_native_code_calls_python_stops_the_loop(kind):
    """Half of the signals come while native code runs, and Python handles those as it is entered."""

    def turn(z, steps):
        return fad.fori_loop(0, steps, lambda i, z: np.sin(z) * (0.9 + 0.1j), z)

    def stop(*_):
        raise kind("late")

    fast, z = fad.jit(turn), np.array([0.3 + 0.2j, 1.0])
    fast(z, 9), fast(z, 9)
    assert "calls of NumPy" in fast.explain()
    before = signal.signal(signal.SIGALRM, stop)
    try:
        for k in range(20):
            signal.setitimer(signal.ITIMER_REAL, 0.01 + 0.001 * k)
            with pytest.raises(kind, match="late"):
                fast(z, 400_000)
            np.testing.assert_allclose(fast(z, 9), turn(z, 9), rtol=1e-12)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def test_threads_may_run_one_such_program():
    xs = RNG.normal(size=(60, 4))
    fast, found = compile_loops(in_a_nested_loop, xs), {}

    def run(k):
        found[k] = [fast(xs + k) for _ in range(5)]

    in_threads(run, 3)
    for k in range(3):
        for got in found[k]:
            np.testing.assert_allclose(got, in_a_nested_loop(xs + k), rtol=1e-10)


def test_strided_arrays_of_dtypes_without_kernels_are_operands_of_loops():
    def f(z, small):
        total, count = np.zeros(4, complex), 0
        for k in range(len(z)):
            total = np.sin(total * 0.1 + z[k]) + np.cumsum(z[k])
            count = count + int(small[k])
        return total.real, total.imag, count

    z = (RNG.normal(size=(4, 20)) + 1j * RNG.normal(size=(4, 20))) * 0.1
    small = np.arange(40, dtype=np.int8)
    program = lambda z, small: f(z.T, small[::-2])
    fast = compile_loops(program, z, small)
    for got, wanted in zip(fast(z, small), program(z, small), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-12)
