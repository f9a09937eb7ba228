"""Arithmetic with numbers of Python and constants of small dtypes: NumPy's values, derivatives in full precision."""

import math

import numpy as np
import pytest

import fad

BY_ZERO = {
    "x / 0": lambda x: x / 0,
    "x / 0.0": lambda x: x / 0.0,
    "x / -0.0": lambda x: x / -0.0,
    "x / False": lambda x: x / False,
    "1 / (x - 2)": lambda x: 1 / (x - 2.0),
    "x % 0": lambda x: x % 0,
    "x // 0": lambda x: x // 0,
    "0.0 ** -x": lambda x: 0.0**-x,
    "(x - 2) ** -1": lambda x: (x - 2.0) ** -1,
}


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("name", BY_ZERO)
def test_division_by_a_number_that_is_zero_gives_what_numpy_gives(name):
    f = BY_ZERO[name]
    for x in (np.float64(2.0), np.array([2.0, -3.0]), np.array([2.0, 3.0], np.float32)):
        wanted = f(x)
        values = {
            "grad": fad.value_and_grad(lambda x: np.sum(f(x)))(x)[0],
            "jvp": np.sum(fad.jvp(f, (x,), (x,))[0]),
            "linearize": np.sum(fad.linearize(f, x)[0]),
            "jit": np.sum(fad.jit(f)(x)),
            "jet": np.sum(fad.jet(f, (x,), ((x,),))[0]),
        }
        for mode, value in values.items():
            np.testing.assert_array_equal(value, np.sum(wanted), err_msg=mode)
        assert fad.grad(lambda x: np.sum(f(x)))(x).dtype == x.dtype
        fad.grad(lambda x: np.sum(fad.grad(lambda x: np.sum(f(x)))(x)))(x)
    if name in ("x / 0", "x / 0.0", "x / False"):
        assert fad.grad(f)(np.float64(2.0)) == np.inf
        assert fad.jvp(f, (np.float64(2.0),), (np.float64(-1.0),))[1] == -np.inf
        assert fad.grad(fad.jit(f))(np.float64(2.0)) == np.inf
    if name == "x / -0.0":
        assert fad.grad(f)(np.float64(2.0)) == -np.inf


RAISING = {
    **BY_ZERO,
    "divmod(x, 0)": lambda x: divmod(x, 0.0)[0],
    "divmod(1, x - 2)": lambda x: divmod(1.0, x - 2)[1],
    "x / (x - x)": lambda x: x / (x - x),
    "(x * 100) ** 400.0": lambda x: (x * 100) ** 400.0,
    "(1 + 1j * x) / (0 * x)": lambda x: abs((1 + 1j * x) / (0 * x)),
}
MODES = {
    "grad": fad.grad,
    "value_and_grad": fad.value_and_grad,
    "jvp": lambda f: lambda x: fad.jvp(f, (x,), (1.0,)),
    "vjp": lambda f: lambda x: fad.vjp(f, x),
    "hessian": fad.hessian,
    "second derivative": lambda f: fad.grad(fad.grad(f)),
    "jit": fad.jit,
    "jit of grad": lambda f: fad.jit(fad.grad(f)),
    "grad of jit": lambda f: fad.grad(fad.jit(f)),
}


def error_of(f, x):
    try:
        f(x)
    except ArithmeticError as error:
        return type(error)
    return None


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("name", RAISING)
def test_what_python_raises_for_its_own_numbers_is_raised_under_every_transform(name, mode):
    f = RAISING[name]
    assert error_of(MODES[mode](f), 2.0) == error_of(f, 2.0) is not None


def guarded_inverse(x):
    try:
        return 1 / x
    except ZeroDivisionError:
        return 5 * x


@pytest.mark.parametrize("transform", [lambda f: f, fad.jit], ids=["plain", "jit"])
def test_a_function_that_catches_a_division_by_zero_has_the_derivative_of_its_own_way_out(transform):
    slope, curve = transform(fad.grad(guarded_inverse)), transform(fad.grad(fad.grad(guarded_inverse)))
    for x, first, second in ((0.0, 5.0, 0.0), (2.0, -0.25, 0.25), (0.0, 5.0, 0.0), (-1.0, -1.0, -2.0)):
        assert slope(x) == first
        assert curve(x) == second


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_rule_that_divides_by_zero_gives_an_infinite_derivative_and_no_error():
    assert fad.grad(lambda x: 2 * math.sqrt(x))(0.0) == np.inf
    assert fad.jvp(lambda x: x**0.5, (0.0,), (1.0,)) == (0.0, np.inf)
    assert np.isinf(fad.grad(fad.grad(lambda x: x**1.5))(0.0))
    assert np.isinf(fad.jit(fad.grad(lambda x: x**0.5))(0.0))
    assert np.isinf(fad.jit(fad.jacfwd(fad.grad(lambda x: math.pow(x, 1.5))))(0.0))


CONSTANTS = (
    np.array([3, 120], np.int8), np.int8(100), np.array([2, 200], np.uint8), np.array([True, False]), np.int64(3),
    np.array([3, 10**6]), np.float32(0.3), np.array([0.3, 0.7], np.float32), True,
)  # fmt: skip


@pytest.mark.parametrize("f", [np.arctan2, np.hypot, np.power, np.maximum, np.multiply, np.logaddexp, np.add])
def test_constants_of_small_dtypes_are_exact_in_derivatives(f):
    x = np.array([1.5, 2.5])
    for c in CONSTANTS:
        wide = np.asarray(c, float)
        for k in (0, 1):
            if k and f is np.power:  # which overflows
                continue
            of = lambda x, c: np.sum(f(x, c) if k else f(c, x))  # noqa: B023
            wanted = fad.grad(lambda x: of(x, wide))(x)  # noqa: B023
            np.testing.assert_allclose(fad.grad(of)(x, c), wanted, rtol=1e-14)
            np.testing.assert_allclose(fad.jacfwd(of)(x, c), wanted, rtol=1e-14)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize("f", [np.arctan2, np.divide, np.power, np.multiply, np.hypot, np.subtract])
def test_constants_of_small_integers_widen_no_gradient(f):
    x = np.array([1.5, 2.5], np.float32)
    for c in (*CONSTANTS[:4], True):
        for g in (lambda x: np.sum(f(x, c)), lambda x: np.sum(f(c, x))):  # noqa: B023
            if g(x).dtype == np.float32:
                assert fad.grad(g)(x).dtype == np.float32
                assert fad.jit(fad.grad(g))(x).dtype == np.float32


def test_arctan2_of_truth_values():
    x = np.array([2.0, -3.0])
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(np.arctan2(x > 0, x)))(x), [-0.2, 0.0])
