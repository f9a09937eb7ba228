"""Numbers that a step makes of numbers: integers by int, floor and round, floats, elements of lists."""

import math

import numpy as np
import pytest

import fad
from tests.capture.agreement import agree, report_of

TABLE = np.array([0.1, 0.25, 0.45, 0.7, 1.0, 1.35])
LIST = TABLE.tolist()
DIGITS = (3, 1, 4, 1, 5)
MANY = np.linspace(-1.0, 1.0, 300).tolist()
COUNTS = tuple(range(5, 305))
X = np.array([0.61, 0.35, 0.17])


def looked_up(x):
    s = x[0] * 1.0
    for i in range(300):
        at = 4 * s
        k = int(at)
        s = 0.5 * x[i % 3] + 0.2 * (TABLE[k] + (at - k) * (TABLE[k + 1] - TABLE[k]))
    return s


def looked_up_in_a_list(x):
    s = x[0] * 1.0
    for i in range(300):
        s = 0.5 * x[i % 3] + 0.1 * LIST[int(3 * s)] - 0.05 * LIST[-int(3 * s) - 1] + 0.001 * DIGITS[i % 5] * s
    return s


def run_over_lists(x):
    s = x[0] * 1.0
    for k, (c, d) in enumerate(zip(MANY, COUNTS, strict=True)):
        s = 0.5 * x[k % 3] + 0.3 * c * s - 0.01 * d * x[1]
    for d in reversed(COUNTS):
        s = s * 0.9 + x[2] * (d % 3) * 0.1
    return s


def rounded(x):
    s = x[0] * 1.0
    for _ in range(300):
        whole = math.floor(10 * s) + math.ceil(7 * s) + math.trunc(-3 * s)
        whole = whole + round(9 * s) + round(-2.5 * s) + int(-8 * s)
        s = 0.5 * x[1] + 0.01 * whole * s
    return s


def counted(x):
    s, n = x[0] * 1.0, 0
    for _ in range(300):
        n = n + int(100 * s + 0.3) % 7
        s = 0.5 * x[1] + 0.001 * (n % 11) * x[2]
    return s * n


def converted(x):
    s = x[0] * 1.0
    for i in range(300):
        s = 0.5 * x[1] + 0.3 * float(i % 4) * x[2] + 0.1 * (int(3 * s) / 7)
    return s


def helped(x):
    def cell(s):
        return TABLE[int(4 * s)] * math.floor(9 * s)

    s = x[0] * 1.0
    for _ in range(300):
        s = 0.5 * x[1] + 0.05 * cell(s) * x[2]
    return s


PROGRAMS = [looked_up, looked_up_in_a_list, run_over_lists, rounded, counted, converted, helped]


@pytest.mark.parametrize("program", PROGRAMS)
def test_whole_numbers_of_a_step_are_those_of_the_plain_loop(program):
    agree(program, X)
    assert set(report_of(program, X)[0]) == {"captured"}


@pytest.mark.parametrize("program", PROGRAMS)
def test_loops_that_make_whole_numbers_are_native(program):
    pytest.importorskip("llvmlite")
    fast = fad.jit(fad.grad(program))
    fast(X), fast(X)
    if "lowering: llvm" in fast.explain():
        assert "calls of NumPy" not in fast.explain()


def outcome(f, x):
    try:
        return repr(f(x))
    except Exception as error:
        return type(error), str(error).partition("\n")[0]


def joined(x):
    s, z = x * 1.0, 0j
    for k in range(300):
        z = 0.5 * z + complex(s, 0.1 * k) + complex(int(3 * s), s) + complex(x, k) + complex(1, s)
        s = 0.5 * s + 0.001 * abs(z) * x
    return s


def test_loops_that_make_complex_numbers_have_derivatives_under_jit():
    slope = (joined(0.61 + 1e-6) - joined(0.61 - 1e-6)) / 2e-6
    for transform, wanted in ((fad.jit(joined), joined(0.61)), (fad.jit(fad.grad(joined)), slope)):
        transform(0.5)
        np.testing.assert_allclose(transform(0.61), wanted, rtol=1e-7)
        assert "captured" in transform.explain()


def test_a_complex_number_has_the_parts_it_is_made_of():
    def f(x):
        s, z = x, 0j
        for _ in range(300):
            z = complex(-s * 0.0, -0.0) if s < 1e3 else complex(s, math.inf)
            s = s + (1.0 if z.real == z.real else 2.0)
        return z, s, complex(s, -math.inf).real

    fast = fad.jit(f)
    for x in (0.5, 0.5, 2e3):
        assert repr(fast(x)) == repr(f(x))


def repeat(step):
    def f(x):
        s = x
        for i in range(300):
            s = step(s, x, i)
        return s

    return f


@pytest.mark.parametrize(
    ("step", "xs"),
    [
        (lambda s, x, i: int(s) * 0.5 + x, (math.inf, math.nan, 0.5, 1e30, -1e19)),
        (lambda s, x, i: math.floor(s) * 1e5 + x, (0.5, 2.0)),  # an integer of more than 64 bits, then infinity
        (lambda s, x, i: TABLE[int(s * 10)] + x, (0.05, 5.0, -3.0)),
        (lambda s, x, i: LIST[int(s * 10)] + x, (0.05, 5.0, -0.3, -3.0)),
        (lambda s, x, i: int(s * 10) * int(s * 10) * 1000000.0 + x, (0.5, 9.0)),
        (lambda s, x, i: abs(complex(s, x)) * 0.5, (0.5, math.nan)),
        (lambda s, x, i: float(s) * 0.5 + float(i) * 0.001, (0.5, math.inf)),
    ],
)
def test_what_has_no_integer_raises_as_it_does_without_jit(step, xs):
    f = repeat(step)
    fast = fad.jit(f)
    for x in (0.01, *xs, 0.01):
        for _ in range(2):
            found, wanted = outcome(fast, x), outcome(f, x)
            if type(wanted) is tuple or "nan" in wanted:
                assert found == wanted
            else:
                assert "np.float64" not in found
                np.testing.assert_allclose(float(found), float(wanted))


ROWS = [0.5, 1.0, -2.0] * 100


def sum_of_logarithms(x):
    s = 0.0
    for row in ROWS:
        s = s + math.log(x + row)
    return s


def unread_quotient(x):
    s = x
    for row in ROWS:
        _ = x / (row + x)
        s = s * 0.5
    return s


def unread_root(x):
    s, t = x, 0.0
    for _ in range(300):
        t = math.sqrt(s - 2.0 + x)
        s, t = s * 0.5 + 2.0, 1.0
    return s + t


def unread_integer(x):
    s = x
    for k in range(300):
        if s > 2.0:
            _ = int(s**k)
        s = s + 0.01
    return s


def unread_in_an_inner_loop(x):
    s = x
    for k in range(300):
        for _ in range(k % 3):
            _ = 1.0 / (s - 0.5)
        s = s * 0.5
    return s


@pytest.mark.parametrize(
    ("program", "fine", "wrong"),
    [
        (sum_of_logarithms, 3.0, 0.5), (unread_quotient, 3.0, 2.0), (unread_root, 3.0, -0.5),
        (unread_integer, -2.5, 60.0), (unread_in_an_inner_loop, 3.0, 2.0),
    ],
)  # fmt: skip
def test_what_a_step_computes_for_nothing_raises_as_in_the_plain_loop(program, fine, wrong):
    wanted = outcome(program, wrong)
    assert type(wanted) is tuple
    fast, slopes = fad.jit(program), fad.jit(fad.grad(program))
    slope = (program(fine + 1e-6) - program(fine - 1e-6)) / 2e-6
    for _ in range(2):
        np.testing.assert_allclose(fast(fine), program(fine))
        np.testing.assert_allclose(slopes(fine), slope, rtol=1e-5, atol=1e-8)
    assert "captured" in fast.explain()
    for _ in range(2):
        assert outcome(fast, wrong) == wanted
    if program is sum_of_logarithms:  # whose derivative needs no logarithm
        assert outcome(slopes, wrong) == wanted


FEW = [3, -1, 4]


def looked_up_beyond_the_end(x):
    s, n, m = x, 1, 2
    for k in range(40):
        n = (1 if -m < FEW[k] else 2**k) % 13
        n = max(n, FEW[n]) % 5
        m = k % 13
    return s


def test_a_loop_of_plain_numbers_raises_what_the_plain_loop_does():
    wanted = outcome(looked_up_beyond_the_end, 0.5)
    assert wanted == (IndexError, "list index out of range")
    for transform in (fad.jit(looked_up_beyond_the_end), fad.jit(fad.grad(looked_up_beyond_the_end))):
        for _ in range(2):
            assert outcome(transform, 0.5) == wanted
