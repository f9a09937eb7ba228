"""Python's and NumPy's number types beside a traced value, and a traced value where whole numbers are requested."""

import enum
from fractions import Fraction

import numpy as np
import pytest

import fad
from fad.errors import TracerConversionError

X = np.array([0.5, 1.75, 2.5])


class Metres(float):
    pass


class Scale(np.float64):
    pass


class Count(enum.IntEnum):
    TWO = 2


PROGRAMS = {
    "left": lambda x, c: x * c - x,
    "right": lambda x, c: c / x + c**x,
    "ufunc": lambda x, c: np.hypot(c, np.maximum(x, c)),
    "where": lambda x, c: np.where(x > c, x, c) * x,
    "clip": lambda x, c: np.clip(x, 0.7, c),
    "nan_to_num": lambda x, c: np.nan_to_num(x, nan=c),
}
TRANSFORMS = {
    "jvp": lambda f, x: fad.jvp(f, (x,), (np.ones_like(x)[()],))[0],
    "vjp": lambda f, x: fad.vjp(f, x)[0],
    "vmap": lambda f, x: fad.vmap(f)(np.stack([x, x]))[0],
    "jit": lambda f, x: fad.jit(f)(x),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS)
@pytest.mark.parametrize("number", [Metres(1.5), Scale(1.5), Count.TWO, True, np.float16(1.5)], ids=repr)
@pytest.mark.parametrize("x", [X, X.astype(np.float32)], ids=lambda x: x.dtype.name)
def test_a_number_of_any_type_counts_as_it_does_for_numpy(transform, program, number, x):
    def f(x):
        return PROGRAMS[program](x, number)

    y = TRANSFORMS[transform](f, x)
    assert y.dtype == f(x).dtype
    np.testing.assert_allclose(y, f(x), rtol=1e-6)


def test_a_fraction_is_a_number():
    assert fad.grad(lambda x: x * Fraction(1, 4) + Fraction(1, 2) * x)(3.0) == 0.75
    assert fad.jit(lambda x: x * Fraction(1, 4))(np.float64(3.0)) == 0.75


def test_a_subclass_of_float_can_be_differentiated():
    assert fad.grad(lambda x: x * x)(Metres(1.5)) == 3.0


TO_INTEGERS = {
    "asarray": lambda x: np.asarray(x, dtype=int),
    "array": lambda x: np.array(x, dtype=np.int8),
    "scalar type": np.int64,
    "unsigned": np.uint8,
    "booleans": lambda x: np.asarray(x, dtype=bool),
    "ascontiguousarray": lambda x: np.ascontiguousarray(x, dtype=np.int32),
    "list": lambda x: np.array([x, x], dtype=int),
}


@pytest.mark.parametrize("convert", TO_INTEGERS)
@pytest.mark.parametrize("x", [X, np.float64(1.75)], ids=["array", "scalar"])
def test_whole_numbers_of_a_traced_value_are_numpys(convert, x):
    seen = []

    def f(x):
        whole = TO_INTEGERS[convert](x)
        seen.append((np.shape(whole), whole.dtype))
        return np.sum(x * whole), whole

    _, expected = f(x)
    gradient, found = fad.grad(f, has_aux=True)(x)
    factor = expected.sum(axis=0) if convert == "list" else expected
    np.testing.assert_array_equal(gradient, factor)
    (_, along_jvp), _ = fad.jvp(f, (x,), (x,))
    _, along_jit = fad.jit(f)(x)
    _, along_vmap = fad.vmap(f)(np.stack([x, x]))
    curvature, along_hessian = fad.hessian(f, has_aux=True)(x)
    np.testing.assert_array_equal(curvature, np.zeros(np.shape(x) * 2))
    for also in (found, along_jvp, along_jit, along_vmap[0], along_vmap[1], along_hessian):
        assert also.dtype == expected.dtype
        np.testing.assert_array_equal(also, expected)
    assert set(seen) == {(np.shape(expected), expected.dtype)}


def test_whole_numbers_of_a_traced_value_are_found_again_by_jit():
    f = fad.jit(lambda x: x * np.int64(x[0]))
    for x in (X, X + 1, X, X + 2):
        np.testing.assert_array_equal(f(x), x * np.int64(x[0]))


def test_whole_numbers_that_differ_in_a_batch_split_it():
    rows = np.stack([X, X + 1, X + 0.1])
    found = fad.vmap(lambda x: np.sum(x * np.asarray(x, dtype=int)))(rows)
    np.testing.assert_array_equal(found, [np.sum(row * row.astype(int)) for row in rows])


def test_numbers_with_a_fraction_are_not_made_plain():
    assert fad.grad(lambda x: np.float64(x) * x)(np.float64(1.5)) == 3.0
    with pytest.raises(TracerConversionError):
        fad.grad(lambda x: np.asarray(x, dtype="S3") * x)(np.float64(1.5))
