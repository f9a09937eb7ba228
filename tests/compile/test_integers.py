"""Divisors, multiples and powers of integers in native code: NumPy's values, wrapped around as NumPy's are."""

import functools
import math
import operator

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from natively import compiled, native

import fad
from fad import control

pytest.importorskip("llvmlite")
KINDS = [np.int64, np.int32]
FUNCTIONS = {"gcd": np.gcd, "lcm": np.lcm, "power": np.power}


def numbers(dtype, least=None):
    ends = np.iinfo(dtype)
    low = ends.min if least is None else least
    special = [
        n for n in (ends.min, ends.min + 1, -64, -2, -1, 0, 1, 2, 63, 64, 65, ends.max - 1, ends.max) if n >= low
    ]
    return st.sampled_from(special) | st.integers(max(low, -100), 100) | st.integers(low, ends.max)


def arrays(dtype, least=None):
    return st.lists(numbers(dtype, least), min_size=19, max_size=19).map(lambda x: np.array(x, dtype))


@functools.cache
def program(name, a, b):
    """Return a function compiled once: all that is drawn is given to it."""
    return compiled(FUNCTIONS[name], np.ones(19, a), np.ones(19, b))


@pytest.mark.parametrize("b", KINDS)
@pytest.mark.parametrize("a", KINDS)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_integers_give_what_numpy_gives(name, a, b):
    fast = program(name, a, b)
    assert "calls of NumPy" not in fast.explain()

    @given(arrays(a), arrays(b, 0 if name == "power" else None))
    def check(x, y):
        want, got = FUNCTIONS[name](x, y), fast(x, y)
        assert got.dtype == want.dtype
        np.testing.assert_array_equal(got, want)

    check()


@given(arrays(np.int64), arrays(np.int64))
def test_a_negative_exponent_raises_numpys_error_and_no_other_does(x, n):
    fast = program("power", np.int64, np.int64)
    if np.any(n < 0):
        with pytest.raises(ValueError, match="negative integer powers"):
            fast(x, n)
    else:
        np.testing.assert_array_equal(fast(x, n), x**n)


@pytest.mark.parametrize("dtype", KINDS)
def test_shapes_numbers_and_truth_values_are_those_of_numpy(dtype):
    x, row, column = np.arange(-6, 6, dtype=dtype), np.arange(4, dtype=dtype), np.arange(3, dtype=dtype)[:, None]
    programs = [
        (operator.pow, row, column), (np.gcd, x[::2], x[1::2]), (np.lcm, row + 2, column + 4), (operator.pow, 3, row),
        (operator.pow, x, row[2]), (lambda x, n: x ** (n > 1), row, row), (lambda x, n: (n > 1) ** x, row, row),
        (lambda x, n: x ** np.array([0, 1, 2, 70], dtype), row, row), (lambda x, n: x**77 + x**0, x, row),
        (operator.pow, dtype(-3), dtype(5)), (np.gcd, dtype(-12), dtype(18)), (lambda x, n: np.power(n, x), row, x[:4]),
        (lambda x, n: x**n, x.reshape(3, 4), 3),
    ]  # fmt: skip
    for f, a, b in programs:
        want, got = f(a, b), native(f, a, b)
        assert (got.dtype, got.shape) == (want.dtype, want.shape)
        np.testing.assert_array_equal(got, want)


def test_a_program_with_several_of_them_is_one_loop():
    x, y = np.arange(1, 40), np.arange(40, 79)
    both = compiled(lambda x, y: np.gcd(x, y) * np.lcm(x, y) - x * y, x, y)
    np.testing.assert_array_equal(both(x, y), 0)
    assert "(1 loop)" in both.explain()


def test_a_negative_exponent_in_a_native_loop_raises_numpys_error():
    def powers(n):
        return control.fori_loop(0, 5, lambda i, s: s + 3 ** (n - i), np.int64(0))

    assert native(powers, np.int64(6)) == 3**6 + 3**5 + 3**4 + 3**3 + 3**2
    fast = compiled(powers, np.int64(6))
    with pytest.raises(ValueError, match="negative integer powers"):
        fast(np.int64(3))


def squares_and_cubes(x):
    s = 0.0
    for k in range(200):
        s += (k - 3) ** 2 * x + k**3 - (2 * k) ** 2
    return s


def signs(x):
    s = 0.0
    for k in range(200):
        s += (-1) ** k * x ** (2 * k + 1) / (2 * k + 1) + 2.0**-k * (-1.0) ** k
    return s


def counted(x):
    s, n = 0.0, 1
    while n < 200:
        s += x * n**2 / (n + 1) ** 3
        n += 1
    return s


@pytest.mark.parametrize("f", [squares_and_cubes, signs, counted])
def test_powers_of_pythons_numbers_in_loops_are_native(f):
    with fad.config.use(loops="capture"):
        assert native(f, 0.7) == pytest.approx(f(0.7), rel=1e-14)
        assert native(fad.grad(f), 0.7) == pytest.approx(fad.grad(f)(0.7), rel=1e-13)


def grow(x, n):
    s = 0.0
    while s < 3.0:
        s += x * (n**2 + 1) + 0.0 * n**3
        n = n * n
    return n


def divide_by_powers(x, n):
    s = 0.0
    for k in range(50):
        s += x ** (n - k)
    return s


def turn_signs(x, n):
    s = 0.0
    for k in range(50):
        s += x * (-1) ** (n - k)
    return s


@pytest.mark.parametrize(
    ("f", "calls"),
    [
        (grow, [(1.0, 3), (1e-25, 10**3), (1.0, 3)]),
        (divide_by_powers, [(0.5, 60), (0.0, 60), (0.0, 10), (10.0, 400), (-2.0, 10)]),
        (turn_signs, [(0.5, 60), (0.5, 10), (0.5, 60)]),
    ],
)
def test_powers_in_loops_grow_and_raise_as_pythons_do(f, calls):
    with fad.config.use(loops="capture"):
        fast = compiled(f, *calls[0])
        assert "calls of NumPy" not in fast.explain(), fast.explain()
        for args in calls:
            try:
                want = f(*args)
            except ArithmeticError as error:
                with pytest.raises(type(error)):
                    fast(*args)
            else:
                got = fast(*args)
                assert type(got) is type(want)
                assert got == pytest.approx(want, rel=1e-13)


def test_integers_of_floating_point_numbers_in_loops_are_native():
    def f(x):
        h, s = np.zeros(20), 0.0
        for k in range(200):
            i = int(x[k % 5] * 7)
            h[i] += x[k % 5] - i
            s += round(x[0] * k) * math.floor(x[1] + k)
        return np.sum(h**2) + s

    x = np.array([0.7, 1.9, 0.2, 2.4, 0.1])
    with fad.config.use(loops="capture"):
        assert native(f, x) == pytest.approx(f(x))
        np.testing.assert_allclose(native(fad.grad(f), x), fad.grad(f)(x))
