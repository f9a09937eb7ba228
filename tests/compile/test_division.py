"""Quotients, remainders, shifts and powers in native code: NumPy's signs, zeros, infinities and overflows."""

import operator

import numpy as np
import pytest

import fad
from fad import control
from fad.compile.targets.select import using

pytest.importorskip("llvmlite")
rng = np.random.default_rng(0)


def integers(dtype):
    lowest, highest = np.iinfo(dtype).min, np.iinfo(dtype).max
    ends = [lowest, lowest + 1, -64, -32, -7, -3, -2, -1, 0, 1, 2, 3, 7, 31, 32, 63, 64, highest - 1, highest]
    drawn = [*rng.integers(-20, 20, 15), *rng.integers(lowest, highest, 10)]
    return pairs(np.array([*ends, *drawn], dtype))


def reals(dtype):
    tiny, large = np.finfo(dtype).smallest_subnormal, np.finfo(dtype).max
    ends = [0.0, -0.0, np.inf, -np.inf, np.nan, 1, -1, 0.1, -0.1, 3, -3, tiny, 1e3 * tiny, large, 2.0**60, 2 * np.pi]
    return pairs(np.array([*ends, *rng.normal(size=20) * 10, *rng.normal(size=10) * 1e6], dtype))


def pairs(x):
    a, b = np.meshgrid(x, x)
    return a.ravel(), b.ravel()


def native(f, *args):
    with using("llvm"):
        fast = fad.jit(f)
        fast(*args)
        y = fast(*args)
    assert "calls of NumPy" not in fast.explain(), fast.explain()
    return y


def assert_the_same(y, want):
    assert y.dtype == want.dtype
    np.testing.assert_array_equal(y, want)
    if want.dtype.kind == "f":
        np.testing.assert_array_equal(np.signbit(y[want == want]), np.signbit(want[want == want]))


DIVISIONS = {
    "floor_divide": np.floor_divide,
    "remainder": np.remainder,
    "fmod": np.fmod,
    "divmod": lambda a, b: np.stack(np.divmod(a, b)),
    "by three": lambda a, b: a // 3,
    "by minus five": lambda a, b: a % -5,
    "by a power of two": lambda a, b: a // 8 + a % 4,
    "of a number": lambda a, b: 17 // b,
}
INTEGER = {
    "left_shift": np.left_shift,
    "right_shift": np.right_shift,
    "square": lambda a, b: a**2,
    "seventh power": lambda a, b: a**7,
    "power zero": lambda a, b: a**0,
    "bits": lambda a, b: (a & b) | (~a ^ b),
}


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.float64, np.float32])
@pytest.mark.parametrize("name", DIVISIONS)
def test_quotients_and_remainders_are_numpys(name, dtype):
    f = DIVISIONS[name]
    a, b = integers(dtype) if np.dtype(dtype).kind == "i" else reals(dtype)
    with np.errstate(all="ignore"):
        assert_the_same(native(f, a, b), f(a, b))


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
@pytest.mark.parametrize("name", INTEGER)
def test_shifts_powers_and_bits_of_integers_are_numpys(name, dtype):
    f = INTEGER[name]
    a, b = integers(dtype)
    assert_the_same(native(f, a, b), f(a, b))


def test_negative_powers_of_integers_stay_numpys_error():
    fast = fad.jit(lambda x, n: x**n)
    x = np.arange(1, 5)
    fast(x, np.full(4, 2))
    np.testing.assert_array_equal(fast(x, np.full(4, 3)), x**3)
    with pytest.raises(ValueError, match="negative integer powers"):
        fast(x, np.full(4, -1))


@pytest.mark.parametrize("divide", [operator.floordiv, operator.mod])
def test_pythons_own_numbers_raise_when_divided_by_zero(divide):
    fast = fad.jit(divide)
    for a, b in ((7, 2), (-7, 3), (7, -3)):
        assert fast(a, b) == divide(a, b)
    with pytest.raises(ZeroDivisionError):
        fast(7, 0)


def test_the_derivative_of_a_remainder_runs_natively():
    x = np.linspace(-7.0, 7.0, 40)
    derivative = fad.grad(lambda x, y: np.sum(np.mod(x, y) ** 2), argnums=(0, 1))
    got, want = native(derivative, x, 2.5), derivative(x, 2.5)
    np.testing.assert_allclose(got[0], want[0], rtol=1e-14)
    np.testing.assert_allclose(got[1], want[1], rtol=1e-14)


def test_a_loop_over_integers_does_not_return_to_python():
    def steps(n):
        def step(s):
            return np.where(s[0] % 2 == 0, s[0] // 2, 3 * s[0] + 1), s[1] + 1

        return control.while_loop(lambda s: s[0] != 1, step, (n, 0))[1]

    assert native(steps, np.int64(837799)) == 524
    assert native(steps, 97) == 118
    greatest = lambda a, b: control.while_loop(lambda s: s[1] != 0, lambda s: (s[1], s[0] % s[1]), (a, b))[0]
    assert native(greatest, np.int64(1071), np.int64(462)) == 21
