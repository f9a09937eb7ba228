"""Elements that a mask of a loop's body selects: the loop is recorded, and does what NumPy does."""

import warnings

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.7, -0.4, 1.3, 0.05, -0.9, 0.2])
M = np.outer(X, X[::-1]) - 0.1


def inverse_powers(x):
    for _ in range(20):
        d = (x[:, None] - x) ** 2
        d[d > 0] = d[d > 0] ** -0.75
        x = x + 0.01 * np.sum(d, axis=1)
    return np.sum(x * x)


def clipped(x):
    y = x.copy()
    for k in range(20):
        y[y < 0] = 0.1 * k
        y[y > 0.5] *= 0.9
        y = y + 0.05 * np.sin(y)
    return np.sum(y * y)


def a_named_mask_that_changes_later(x):
    y = x.copy()
    for _ in range(20):
        mask = y > 0.1
        part = y[mask]
        mask[0] = False
        y[mask] = 0.5
        y += 0.01 * np.sum(part)
        part += 1.0
        y -= 0.001 * np.mean(part)
    return np.sum(y * y)


def groups_of_two_arrays(x):
    y, z = x.copy(), 2.0 * x
    for _ in range(20):
        mask = y * z > 0.1
        y[mask] = 0.7 * z[mask] / y[mask]
        z[~mask] = -0.5
        z = z + 0.1 * y
    return np.sum(y * z)


def nothing_selected(x):
    y = x.copy()
    for _ in range(20):
        y[y > 100] = np.log(y[y > 100])
        y = y + 0.01 * np.sum(y[y < -100]) + 0.01 * np.prod(y[y > 90])
    return np.sum(y * y)


def integers_that_are_not_zero(x):
    s = 0.0
    for k in range(20):
        n = np.arange(6) - k % 4
        n[n != 0] = 12 // n[n != 0]
        s = s + 0.01 * np.sum(n * x) * np.sum(n[n > 2])
    return s


PROGRAMS = [
    inverse_powers, clipped, a_named_mask_that_changes_later, groups_of_two_arrays, nothing_selected,
    integers_that_are_not_zero,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_a_loop_with_masks_is_captured_and_right(f):
    assert report_of(f, X)[0] == ["captured"], report_of(f, X)[1]
    agree(f, X)


def test_masks_of_a_matrix_select_in_a_matrix():
    def f(m):
        m = m.copy()
        for _ in range(20):
            m[m > 0.3] = np.sqrt(m[m > 0.3])
            m = 0.9 * m + 0.01 * np.mean(m[m > 0])
        return np.sum(m)

    assert report_of(f, M)[0] == ["captured"]
    agree(f, M)


def different_masks(y):
    y[y > 0] = y[y < 1]


def an_array_of_values(y):
    y[y > -5] = np.arange(6.0)


def rows(y):
    z = np.outer(y, y)
    y += np.sum(z[y > 0])


def a_part_of_the_group(y):
    y += y[y > 0][0]


@pytest.mark.parametrize("step", [different_masks, an_array_of_values, rows, a_part_of_the_group])
def test_what_a_static_shape_cannot_say_is_left_to_python(step):
    def f(x):
        y = 0.1 * x + 1e-3
        y = abs(y)
        for _ in range(3):
            step(y)
            y = 0.3 * y
        return np.sum(y * y)

    assert report_of(f, X)[0] == ["recorded step by step"]
    agree(f, X, order=1)


def test_a_mask_that_is_computed_again_after_a_write_is_another_one():
    def f(x):
        y = x.copy()
        for _ in range(5):
            part = y[y > 0]
            y[2] = 0.5 * y[1]
            if part.shape == y[y > 0].shape:
                y[y > 0] = part
            y = 0.9 * y
        return np.sum(y)

    agree(f, X, order=1)


def test_what_is_not_selected_raises_no_warning_and_no_error():
    def f(x):
        y = x.copy()
        for _ in range(20):
            y[y > 0] = 1 / np.sqrt(y[y > 0])
            y[y != 0] = 0.5 / y[y != 0]
        return np.sum(y)

    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        compiled = fad.jit(fad.value_and_grad(f))
        for _ in range(3):
            value, slope = compiled(X)
        assert np.all(np.isfinite(slope))
        np.testing.assert_allclose(value, f(X.copy()), rtol=1e-12)
