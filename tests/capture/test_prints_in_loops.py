"""``print`` in captured loops: it prints while the program is recorded, as it does elsewhere, and never again."""

import numpy as np
import pytest
from capture.agreement import report_of

import fad

X = np.array([0.71, -0.42, 0.33])
N = 12


def every_fourth_step(x):
    for i in range(N):
        x = 0.9 * x + 0.1 * np.sin(x)
        if i % 4 == 0:
            print("step", i, np.sum(x), sep=" | ")
    print("done")
    return np.sum(x)


def texts_made_of_values(x):
    s, k = x[0], 0
    for i in range(N):
        s = 0.9 * s + x[1] * i
        k += 2
        print(f"{i:3d} {s:.3f} {s!s:>24} {k:{5}} {np.max(x):+.2e}", end="\n")
    return s


def in_nested_loops(x):
    s = 0.0
    for i in range(N):
        print("row", i)
        for j in range(i % 3 + 3):
            s = 0.9 * s + x[j % 3]
            if s > 0.5:
                print(i, j, s)
    return s


def in_a_function_and_a_method(x):
    class Log:
        def __init__(self):
            self.n = 0

        def note(self, s):
            self.n += 1
            print("noted", self.n, s)

    def show(s):
        print(f"s = {s}")

    log, s = Log(), x[0]
    for i in range(N):
        s = 0.9 * s + x[1]
        show(s)
        if i % 5 == 2:
            log.note(s)
    return s * log.n


def until_a_break(x):
    s = x[0]
    for i in range(N):
        s = s * 0.8
        print(i, s)
        if s < 0.2:
            break
    return s


CAPTURED = [every_fourth_step, texts_made_of_values, in_nested_loops, in_a_function_and_a_method, until_a_break]


def in_a_while_loop(x):
    s, k = x[0], 0
    while s > 0.2:
        s, k = s * 0.8, k + 1
        print(k, s)
    return s


def a_list_of_values(x):
    s = x[0]
    for i in range(N):
        s = s * 0.8
        print([i, 0.5])
    return s


@pytest.mark.parametrize("f", [*CAPTURED, in_a_while_loop, a_list_of_values], ids=lambda f: f.__name__)
@pytest.mark.parametrize("transform", [lambda f: f, fad.grad, lambda f: fad.grad(lambda x: np.sum(fad.grad(f)(x)))])
def test_a_loop_prints_what_python_prints_when_it_is_recorded(f, transform, capsys):
    value = transform(f)(X)
    wanted = capsys.readouterr().out
    with fad.config.use(loops="capture"):
        fast = fad.jit(transform(f))
        for k in range(3):
            np.testing.assert_allclose(fast(X), value, rtol=1e-10)
            got = capsys.readouterr().out
            assert got == (wanted if k == 0 else ""), (k, got)


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_prints_is_captured(f):
    what, text = report_of(f, X)
    assert "recorded step by step" not in what, text


def test_a_loop_that_prints_is_compiled():
    fast = fad.jit(fad.grad(every_fourth_step))
    with fad.config.use(loops="capture"):
        fast(X), fast(X)
    assert "lowering: llvm" in fast.explain()
    assert "without a kernel" not in fast.explain()


def test_steps_that_are_run_again_print_once(capsys):
    with fad.config.use(loops="capture", memory_limit="1KB"):
        fad.jit(fad.grad(every_fourth_step))(X)
    assert capsys.readouterr().out.count("step") == 3
