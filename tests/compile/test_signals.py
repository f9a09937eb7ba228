"""Ctrl-C and other signals stop native loops, whatever they are made of, and the next call is right."""

import os
import signal
import subprocess
import sys
import time

import numpy as np
import pytest

pytest.importorskip("llvmlite")

_HEAD = """
import os, signal, threading, time
import numpy as np, fad
from fad import control

signal.signal(signal.SIGINT, signal.default_int_handler)  # what was started in the background ignores Ctrl-C


def until(n, step, x):
    return control.while_loop(lambda s: s[1] < s[2], lambda s: (step(s[0]), s[1] + 1.0, s[2]), (x, 0.0, n))[0]


def halved(y):
    return y * 0.5 + 1.0


def squashed(y):
    return np.tanh(halved(y))


X, MATRIX = np.linspace(0.1, 0.9, 30), np.full((300, 300), 0.003)
CALLS = {
    "single numbers": (lambda x, n: until(n, halved, x), 1.0),
    "arrays": (lambda x, n: until(n, squashed, x), X),
    "matrix products": (lambda x, n: until(n, lambda y: np.tanh(y @ y), x), MATRIX),
    "loops in a loop": (lambda x, n: until(n, lambda y: control.fori_loop(0, 9, lambda i, z: squashed(z), y), x), X),
    "branches in a loop": (lambda x, n: until(n, lambda y: control.cond(y[0] > 1.0, squashed, halved, y), x), X),
    "a loop in a branch": (lambda x, n: control.cond(n > 5.0, lambda y: until(n, halved, y), halved, x), 1.0),
}


def native(name):
    f, x = CALLS[name]
    f = fad.jit(f)
    f(x, 6.0)
    want = f(x, 6.0)
    assert "lowering: llvm" in f.explain() and "calls of NumPy" not in f.explain(), f.explain()
    return f, x, want
"""


def run(text):
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", _HEAD + text], capture_output=True, text=True, timeout=300
    )


def test_an_endless_native_loop_ends_on_ctrl_c_and_the_next_call_is_right():
    done = run("""
for name in CALLS:
    f, x, want = native(name)
    for _ in range(2):
        try:
            threading.Timer(0.05, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
            f(x, np.inf)  # would never end by itself
        except KeyboardInterrupt:
            print("stopped")
        np.testing.assert_array_equal(f(x, 6.0), want)
    assert f.cache_info().paths == 1 or name == "a loop in a branch"
""")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["stopped"] * 12


def test_a_process_that_nobody_catches_ctrl_c_in_ends():
    text = _HEAD + "\nf, x, _ = native('arrays')\nprint('now', flush=True)\nf(x, np.inf)\n"
    process = subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        assert process.stdout.readline() == "now\n"
        time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        _, errors = process.communicate(timeout=300)
    finally:
        process.kill()
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")


def test_what_a_handler_raises_is_what_the_call_raises():
    done = run("""
def late(*_):
    raise TimeoutError("a tenth of a second is over")

signal.signal(signal.SIGALRM, late)
f, x, want = native("single numbers")
try:
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    f(x, np.inf)
except TimeoutError as error:
    print(error)
print(f(x, 6.0) == want)
""")
    assert done.stdout == "a tenth of a second is over\nTrue\n", done.stderr


def test_a_handler_that_returns_does_not_stop_the_loop():
    done = run("""
seen = []  # in time of this process, which other processes do not shorten
signal.signal(signal.SIGALRM, lambda *_: seen.append(time.process_time()))
f, x, _ = native("single numbers")
start = time.process_time()
signal.setitimer(signal.ITIMER_REAL, 0.05, 0.05)
f(x, 3e8)
end = time.process_time()
signal.setitimer(signal.ITIMER_REAL, 0.0)
print(len(seen) > 1, seen[0] - start < (end - start) / 2)
""")
    assert done.stdout == "True True\n", done.stderr


def test_tiny_steps_in_another_thread_do_not_keep_ctrl_c_from_the_main_one():
    done = run("""
f, x, _ = native("single numbers")
g, y, _ = native("matrix products")
slow = np.full((700, 700), 0.01)  # its powers neither vanish nor grow, so that all steps take the same time
g(slow, 2.0)
thread = threading.Thread(target=f, args=(x, np.inf), daemon=True)
thread.start()
for _ in range(5):
    sent = []
    try:
        threading.Timer(0.3, lambda: (sent.append(time.process_time()), os.kill(os.getpid(), signal.SIGINT))).start()
        g(slow, 1e9)
    except KeyboardInterrupt:  # within 5 seconds of two threads
        print("stopped" if time.process_time() - sent[0] < 10.0 else "late", flush=True)
os._exit(0)  # the other thread's loop never ends
""")
    assert done.stdout.split() == ["stopped"] * 5, done.stderr


def test_a_handler_may_call_the_program_that_it_interrupted():
    done = run("""
for name in ("single numbers", "arrays"):
    f, x, want = native(name)
    seen = []
    signal.signal(signal.SIGALRM, lambda *_: seen.append(f(x, 6.0)))
    signal.setitimer(signal.ITIMER_REAL, 0.1)
    while not seen:
        f(x, 1e8 if name == "single numbers" else 2e6)
    np.testing.assert_allclose(seen[0], want, rtol=1e-14)
    np.testing.assert_array_equal(f(x, 6.0), want)
print("right")
""")
    assert done.stdout == "right\n", done.stderr


def test_a_loop_in_another_thread_goes_on_when_the_main_one_is_interrupted():
    done = run("""
f, x, _ = native("arrays")
g, y, _ = native("single numbers")
found = []
thread = threading.Thread(target=lambda: found.append(f(x, 5e6)))
thread.start()
try:
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    g(y, np.inf)
except KeyboardInterrupt:
    print("interrupted")
thread.join()
np.testing.assert_array_equal(found[0], f(x, 5e6))
print("right")
""")
    assert done.stdout == "interrupted\nright\n", done.stderr


@pytest.mark.parametrize("steps", [4095, 4096, 4097, 3 * 4096, 10_000])
def test_a_loop_looks_up_between_steps_without_losing_one(steps):
    import fad
    from fad import control

    def f(x, n):
        return control.while_loop(lambda s: s[1] < n, lambda s: (s[0] * 0.5 + x, s[1] + 1), (x, 0))[1]

    counted = fad.jit(f)
    stacked = fad.jit(lambda x: control.scan(lambda c, v: (c + v, c), 0.0, x, reverse=True))
    xs = np.arange(float(steps))
    for _ in range(2):
        assert counted(1.0, steps) == steps
        total, before = stacked(xs)
        assert total == xs.sum()
        np.testing.assert_array_equal(before, np.cumsum(xs[::-1])[::-1] - xs)
