"""Elements at places that stand in a slice of traced length, as sparse matrices by rows have them."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

RNG = np.random.default_rng(5)
ROWS = 24
ENDS = np.concatenate([[0], np.cumsum(RNG.integers(0, 5, ROWS))])
COLUMNS = RNG.integers(0, 9, ENDS[-1])
VALUES = RNG.normal(size=ENDS[-1])
X = RNG.uniform(0.5, 1.5, 9)
PLACES = np.arange(9)


def product_by_rows(ends, columns):
    def f(x):
        y = np.empty(ROWS)
        for i in range(ROWS):
            row = slice(ends[i], ends[i + 1])
            y[i] = VALUES[ends[i] : ends[i + 1]] @ x[columns[ends[i] : ends[i + 1]]]
            y[i] += 0.1 * np.sum(x[columns[row]])
        return np.sum(y * y)

    return f


@pytest.mark.parametrize("dtype", [np.uint8, np.int16, np.int32, np.uint32, np.int64, np.uint64])
def test_a_product_with_a_sparse_matrix_is_one_loop(dtype):
    f = product_by_rows(ENDS.astype(dtype), COLUMNS.astype(dtype))
    assert report_of(f, X)[0] == ["captured"], report_of(f, X)[1]
    agree(f, X)


def test_the_values_of_a_sparse_matrix_have_a_gradient():
    def f(v):
        y = np.zeros(ROWS)
        for i in range(ROWS):
            y[i] = v[ENDS[i] : ENDS[i + 1]] @ X[COLUMNS[ENDS[i] : ENDS[i + 1]]]
        return np.sum(y**3)

    assert report_of(f, VALUES)[0] == ["captured"]
    agree(f, VALUES)


def test_places_take_rows_of_a_matrix():
    m = np.outer(X, X[:4])

    def f(x):
        s = 0.0
        for i in range(ROWS):
            s = s + np.sum(np.sin((x[:, None] * m)[COLUMNS[ENDS[i] : ENDS[i + 1]]]))
        return s

    assert report_of(f, X)[0] == ["captured"], report_of(f, X)[1]
    agree(f, X)


def test_bounds_in_wrong_order_give_empty_slices_whatever_their_dtype():
    starts, stops = np.tile(np.array([2, 3, 7, 1], np.uint8), 6), np.tile(np.array([5, 1, 9, 0], np.uint8), 6)

    def f(x):
        s = 0.0
        for i in range(24):
            part = x[starts[i] : stops[i]]
            s = s + 0.01 * i * np.sum(part) + 0.1 * part.size
        return s

    assert report_of(f, X)[0] == ["captured"], report_of(f, X)[1]
    agree(f, X)


def test_a_place_outside_of_the_array_is_an_error():
    columns = COLUMNS.copy()
    columns[ENDS[-1] // 2] = 9
    f = fad.jit(fad.grad(product_by_rows(ENDS, columns)))
    for _ in range(3):
        with pytest.raises(IndexError):
            f(X)


def test_places_that_are_not_taken_may_be_outside_of_the_array():
    columns = np.concatenate([COLUMNS, [99]])
    agree(product_by_rows(ENDS, columns), X)


def test_writing_at_such_places_is_left_to_python():
    def f(x):
        y = np.zeros(9)
        for i in range(ROWS):
            y[COLUMNS[ENDS[i] : ENDS[i + 1]]] += x[i % 9]
        return np.sum(y * y)

    assert report_of(f, X)[0] == ["recorded step by step"]
    agree(f, X, order=1)


def test_a_sum_that_begins_as_a_negative_zero_is_numpys():
    start = np.full(200, -0.0)

    def f(x):
        total = start.copy()
        other = np.zeros(200)
        for i in range(40):
            total = total + np.where(np.arange(200) < i, x[0], -0.0)
            other = other + np.where(np.arange(200) < i, x[1], -0.0)
        return total, other

    compiled = fad.jit(f)
    for _ in range(3):
        for got, wanted in zip(compiled(X), f(X), strict=True):
            np.testing.assert_array_equal(np.signbit(got), np.signbit(wanted))
            np.testing.assert_array_equal(got, wanted)


def test_places_that_fall_or_rise_and_may_be_negative_are_numpys():
    def f(x):
        s = 0.0
        for k in range(1, 30):
            places = np.where(k > PLACES, k % 9 - 1 - PLACES, 0)
            s = s + 0.1 * np.sum(np.sin(x[places])) + 0.05 * k * np.sum(x[np.where(PLACES < 4, PLACES - k % 5, 2)])
        return s

    assert report_of(f, X)[0] == ["captured"], report_of(f, X)[1]
    agree(f, X)


def test_a_place_beyond_the_end_is_an_error_only_where_the_mask_chooses_it():
    def f(x, first):
        s = 0.0
        for k in range(1, 30):
            s = s + np.sum(x[np.where(k % 8 > PLACES, PLACES + first, 0)])
        return s

    compiled = fad.jit(fad.grad(f))
    for _ in range(3):
        np.testing.assert_array_equal(compiled(X, 2), fad.grad(f)(X, 2))
        with pytest.raises(IndexError):
            compiled(X, 3)


def test_a_reversed_slice_may_be_empty():
    def f(x):
        s = 0.0
        for k in range(9):
            s = s + (x[:k][::-1] @ x[:k]) + np.sum(np.flip(x[k:]) * x[k:])
        return s

    assert report_of(f, X)[0] == ["captured"], report_of(f, X)[1]
    agree(f, X)
