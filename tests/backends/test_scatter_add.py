"""What the NumPy backend adds at indices, it adds as ``np.add.at`` does, to the bit."""

import numpy as np
import pytest

import fad
from fad.backends.numpy import scatter_add

rng = np.random.default_rng(0)
MANY = rng.integers(-7, 7, 600)
ALL = slice(None)

PLACES = {
    "a vector": ((7,), MANY),
    "an array of indices": ((7,), MANY.reshape(20, 30)),
    "rows": ((7, 3), MANY),
    "rows, in a tuple": ((7, 3), (MANY,)),
    "columns": ((3, 7), (ALL, MANY)),
    "columns, by two axes": ((3, 7), (ALL, MANY.reshape(2, 300))),
    "the middle": ((2, 7, 3), (ALL, MANY)),
    "the last axis": ((2, 3, 7), (Ellipsis, MANY)),
    "behind an ellipsis": ((2, 7, 3), (Ellipsis, MANY, ALL)),
    "before an ellipsis": ((7, 2, 3), (MANY, Ellipsis)),
    "part of other axes": ((4, 7, 3), (slice(1, 3), MANY.reshape(30, 20), slice(None, None, -2))),
    "short integers": ((7, 2), MANY.astype("i1")),
    "no elements beside": ((7, 0), MANY),
    "few indices": ((7, 2), MANY[:5]),
    "many vectors": ((7, 90), MANY),
    "two arrays": ((7, 7), (MANY, MANY[::-1])),
    "an array and a number": ((7, 2, 3), (MANY, ALL, 1)),
    "a new axis": ((7, 2), (None, MANY)),
    "a mask": ((600,), MANY > 0),
}


@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i8"])
@pytest.mark.parametrize("name", PLACES)
def test_scatter_add_adds_what_ufunc_at_adds(name, dtype):
    shape, index = PLACES[name]
    target = (10 * rng.normal(size=shape)).astype(dtype)
    like = target[index]
    whole = (10 * rng.normal(size=like.shape)).astype(dtype)
    for values in (whole, np.ones((), dtype), np.ones(like.shape[-1:], dtype)):
        expected, found = target.copy(), target.copy()
        np.add.at(expected, index, np.broadcast_to(values, like.shape))  # NumPy 2.4 reads beyond values of one axis
        scatter_add(found, index, values)
        assert found.tobytes() == expected.tobytes()


def test_scatter_add_writes_into_a_transposed_array():
    target = np.zeros((3, 7)).T
    scatter_add(target, MANY, np.ones((600, 3)))
    np.testing.assert_array_equal(target, np.bincount(MANY % 7, minlength=7)[:, None] + np.zeros(3))


def test_an_index_beyond_the_array_is_an_error():
    with pytest.raises(IndexError):
        scatter_add(np.zeros((7, 3)), MANY + 7, 1.0)
    with pytest.raises(IndexError):
        scatter_add(np.zeros((0, 3)), MANY, 1.0)


def test_the_gradient_of_a_batch_of_gathers_counts_each_element():
    x = rng.normal(size=(4, 7))
    found = fad.vmap(fad.grad(lambda x: np.sum(x[MANY] ** 2)))(x)
    np.testing.assert_allclose(found, 2 * x * np.bincount(MANY % 7, minlength=7), rtol=1e-12)
