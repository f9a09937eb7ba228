"""Infinities, signed zeros and narrow dtypes: the value under every transform is NumPy's, to the sign of a zero."""

import numpy as np
import pytest

import fad

INF, NAN = np.inf, np.nan
ODD = np.array([0.0, -0.0, NAN, INF, -INF, 1.0, -1.0, 2.5])
COMPLEX = np.array([-INF + 0j, INF + 0j, 0j, complex(-0.0, 0.0), complex(-1.0, -0.0), 1j, complex(0.0, INF)])
TRANSFORMS = {
    "jvp": lambda f, x: fad.jvp(f, (x,), (np.ones_like(x)[()],))[0],
    "vjp": lambda f, x: fad.vjp(f, x)[0],
    "vmap": lambda f, x: fad.tree.map(lambda y: y[0], fad.vmap(f)(np.stack([x, x]))),
    "jit": lambda f, x: [g(x) for g in [fad.jit(f)] for _ in range(3)][-1],
}
PARTS = {"real": lambda y: y.real, "imag": lambda y: y.imag}


def assert_same(got, expected):
    """Check values, dtypes, shapes and the signs of zeros."""
    for y, want in zip(fad.tree.leaves(got), fad.tree.leaves(expected), strict=True):
        assert (y.dtype, y.shape) == (want.dtype, want.shape)
        for part in PARTS.values() if want.dtype.kind == "c" else (np.asarray,):
            np.testing.assert_allclose(part(y), part(want), rtol=1e-6)
            zeros = part(want) == 0
            np.testing.assert_array_equal(np.signbit(part(y))[zeros], np.signbit(part(want))[zeros])


def _clip(low, high):
    return lambda x: np.clip(x, low, high)


REAL = {
    "sign": np.sign,
    "modf": np.modf,
    "maximum with zero": lambda x: np.maximum(x, 0.0),
    "maximum of zero": lambda x: np.maximum(0.0, x),
    "maximum with -0": lambda x: np.maximum(x, -0.0),
    "minimum with zero": lambda x: np.minimum(x, 0.0),
    "minimum of -0": lambda x: np.minimum(-0.0, x),
    "clip from -0": _clip(-0.0, 1.0),
    "clip from 0": _clip(0.0, 1.0),
    "clip to -0": _clip(-1.0, -0.0),
    "square root by **": lambda x: x**0.5,
    "square root by power": lambda x: np.power(x, 0.5),
    "reciprocal by **": lambda x: x**-1,
    "interp": lambda x: np.interp(x, [-1.0, 0.0, 2.0], [1.0, 2.0, 4.0]),
    "interp of one point": lambda x: np.interp(x, [1.0], [2.0]),
    "interp from infinity": lambda x: np.interp(x, [-INF, 0.0, INF], [1.0, 2.0, 4.0]),
    "interp to infinity": lambda x: np.interp(x, [0.0, 1.0, INF], [1.0, 2.0, 4.0]),
    "interp twice infinity": lambda x: np.interp(x, [0.0, INF, INF], [1.0, 2.0, 4.0]),
    "interp of infinities": lambda x: np.interp(x, [-1.0, 0.0, 1.0, 2.0, 3.0], [INF, INF, 2.0, -INF, NAN]),
    "interp at traced points": lambda x: np.interp(ODD, x[[4, 0, 5, 3]], [1.0, 2.0, 4.0, 5.0]),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("name", REAL)
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_value_is_numpys(transform, name, dtype):
    x = ODD.astype(dtype)
    with np.errstate(all="ignore"):
        assert_same(TRANSFORMS[transform](REAL[name], x), REAL[name](x))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("exponent", [0.5, 2, -1, 3, 1.5])
def test_a_power_of_complex_numbers_is_numpys(transform, exponent):
    with np.errstate(all="ignore"):
        assert_same(TRANSFORMS[transform](lambda z: z**exponent, COMPLEX), COMPLEX**exponent)


@pytest.mark.parametrize("transform", ["vmap", "jit"])
@pytest.mark.parametrize("dtype", "BHbhi?")
def test_unwrap_of_integers_is_numpys(transform, dtype):
    x = np.array([0, 3, 100, 1, 0, 9]).astype(dtype)
    assert_same(TRANSFORMS[transform](np.unwrap, x), np.unwrap(x))
    assert_same(TRANSFORMS[transform](lambda x: np.unwrap(x, period=7.0), x), np.unwrap(x, period=7.0))
    if dtype in "bhi":
        assert_same(TRANSFORMS[transform](lambda x: np.unwrap(x, period=7), x), np.unwrap(x, period=7))


@pytest.mark.parametrize("transform", ["vmap", "jit"])
@pytest.mark.parametrize("function", [np.intersect1d, np.union1d, np.setdiff1d, np.setxor1d])
@pytest.mark.parametrize("other", [np.array([1, 2], "i2"), np.array([1, 2], "f4"), [1, 2], [1.0, 2.0], []], ids=repr)
def test_sets_have_numpys_dtypes(transform, function, other):
    for dtype in "Bbifd":
        x = np.array([1, 0, 1], dtype)
        assert_same(TRANSFORMS[transform](lambda x: function(x, other), x), function(x, other))
        assert_same(TRANSFORMS[transform](lambda x: function(other, x), x), function(other, x))


def test_the_slope_of_interp_beside_an_infinite_point_is_zero():
    points = np.array([-INF, 0.0, 1.0, INF])
    slope = fad.elementwise_grad(lambda x: np.interp(x, points, [1.0, 2.0, 4.0, 5.0]))
    np.testing.assert_array_equal(slope(np.array([-3.0, 0.0, 0.5, 7.0])), [0.0, 2.0, 2.0, 0.0])


def test_the_fraction_of_a_number_has_slope_one():
    slope = fad.elementwise_grad(lambda x: np.modf(x)[0])
    np.testing.assert_array_equal(slope(np.array([-2.0, -1.5, -0.0, 0.0, 1.5, 2.0])), np.ones(6))
