"""What is written at an index must fit there: NumPy says what does, and a batch's length is no axis of a value."""

import re
import warnings

import numpy as np
import pytest

import fad

X = np.ones((2, 3))
LISTS = [[1.5, 2.0], [1, 2, 3], [[1.5]], [], [1.5], (1.0, 2.0), [[1], [2]], [1j, 2], [[1, 2], [3]], [[], []]]
ARRAYS = [np.ones((2, 3)), np.ones(2), np.ones((1, 3)), np.ones((1, 1, 3)), np.ones((3, 1)), np.array(2.0), np.ones(1)]
OTHERS = [np.arange(3) > 1, np.ones(3) * 1j, np.ones(3, "f4"), np.ones(3, ">f8"), "a", None, np.array("a")]
MASK = np.array([[True, False, True], [False, False, True]])
PLACES = [0, slice(0, 2), ..., (0, 0), (slice(None), 1), [0, 1], ([0, 1], [1, 2]), MASK, (None, 0), (0, ...)]
TRANSFORMS = {
    "vmap": lambda f: fad.vmap(f)(np.stack([X, X]))[1],
    "jit": lambda f: fad.jit(f)(X),
    "jvp": lambda f: fad.jvp(f, (X,), (X,))[0],
    "vjp": lambda f: fad.vjp(f, X)[0],
}


def outcome(call):
    """Return the array that a call gives, or the kind of the error that it raises."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return call()
        except Exception as error:
            return type(error)


def same(a, b):
    return a is b or (type(a) is type(b) is np.ndarray and a.dtype == b.dtype and np.array_equal(a, b, equal_nan=True))


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("value", LISTS + ARRAYS + OTHERS, ids=repr)
def test_a_value_is_written_or_refused_as_numpy_does(value, transform):
    for place in PLACES if transform != "jit" else PLACES[::3]:
        for dtype in (float, int, bool, complex):

            def f(x, dtype=dtype, place=place):
                a = (x * 0).astype(dtype)
                a[place] = value
                return a

            wanted = outcome(lambda f=f: f(X))
            got = outcome(lambda f=f: TRANSFORMS[transform](f))
            assert same(wanted, got), (dtype, place, wanted, got)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(("dtype", "error"), [(int, TypeError), (float, ValueError)])
def test_a_list_of_traced_values_is_no_element(dtype, error, transform):
    def f(x):
        a = np.zeros(3, dtype)
        a[-2] = [x[0, 0], 2]
        return a

    with pytest.raises(error, match=r"list|sequence"):
        TRANSFORMS[transform](f)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("shape", [(1,), (1, 1), (2,)])
def test_an_element_takes_the_traced_arrays_that_numpy_lets_it_take(shape, transform):
    def f(x):
        a = x * 2
        a[0, 1] = np.reshape(x[0, : shape[0]], shape) * 3
        return a

    assert same(outcome(lambda: f(X)), outcome(lambda: TRANSFORMS[transform](f)))


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_of_an_output_that_fits_neither_in_dtype_nor_in_shape_the_dtype_is_named(transform):
    def f(x):
        return np.multiply(x, np.ones(2), out=np.zeros((2, 3), int))

    with pytest.raises(TypeError, match="Cannot cast ufunc 'multiply' output"):
        f(X)
    with pytest.raises(TypeError, match="Cannot cast ufunc 'multiply' output"):
        TRANSFORMS[transform](f)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    "place", [slice(1, 4), slice(6, None), ..., [0, 1], np.arange(6) < 2, (None, slice(1, 4))], ids=repr
)
def test_a_value_of_a_wrong_length_is_refused_in_numpys_words(place, transform):
    def f(x):
        a = np.zeros(6) + 0 * x[0, 0]
        a[place] = np.concatenate([x[0], x[0, :1]])
        return a

    with pytest.raises(ValueError) as wanted:
        f(X)
    with pytest.raises(ValueError, match=re.escape(str(wanted.value))):
        TRANSFORMS[transform](f)
