"""Views by strides of traced arrays: what they show, what is written through them, and where they end."""

import numpy as np
import pytest
from numpy.lib.stride_tricks import as_strided

import fad
from fad.testing import check_grads

X = np.linspace(0.3, 1.7, 12) ** 2
M = X.reshape(3, 4)


def frames(x):
    step = x.strides[-1]
    return as_strided(x, shape=(4, 3), strides=(2 * step, step))


def frames_of_rows(x):
    return as_strided(x, (*x.shape[:-1], 2, 3), (*x.strides[:-1], x.strides[-1], x.strides[-1]), writeable=False)


def patches(x):
    (a, b), (s, t) = x.shape, x.strides
    return np.lib.stride_tricks.as_strided(x, shape=(a - 1, b - 2, 2, 3), strides=(s, t, s, t))


def toeplitz(x):
    step = x.strides[0]
    return as_strided(x[::-1], shape=(5, 5), strides=(-step, -step)) + as_strided(x, (5, 5), (step, 0))


VIEWS = {
    "frames": (frames, X), "rows": (frames_of_rows, M), "patches": (patches, M), "columns": (patches, M.T),
    "every second": (frames, np.repeat(X, 2)[::2]), "backwards": (frames, X[::-1]), "zero strides": (toeplitz, X),
    "diagonal": (lambda x: as_strided(x, (3,), (x.strides[0] + x.strides[1],)), M),
    "repeated": (lambda x: as_strided(x, shape=(2, *x.shape), strides=(0, *x.strides)), M),
    "all": (lambda x: as_strided(x), M), "shape alone": (lambda x: as_strided(x, shape=(2, 3)), M),
    "nothing": (lambda x: as_strided(x, (0, 2), (8, 8)), X),
    "of a row": (lambda x: as_strided(x[1], (2, 2), (x.itemsize, x.itemsize)), M),
    "real part": (lambda x: as_strided((x * (1 + 2j)).imag, (4, 2), (16, 32)), X),
}  # fmt: skip


@pytest.mark.parametrize(("view", "x"), VIEWS.values(), ids=VIEWS)
def test_a_view_by_strides_is_differentiated(view, x):
    weights = np.cos(np.arange(view(x).size)).reshape(view(x).shape)

    def f(x):
        return np.sum(weights * view(x) ** 3)

    value, _ = fad.vjp(view, x)
    np.testing.assert_array_equal(value, view(x))
    check_grads(f, (x,), order=2)
    slope = fad.grad(f)
    batch = np.stack([x, 2 * x, x + 1])
    np.testing.assert_allclose(fad.vmap(f)(batch), [f(x) for x in batch])
    np.testing.assert_allclose(fad.vmap(slope)(batch), [slope(x) for x in batch])
    compiled, compiled_slope = fad.jit(f), fad.jit(slope)
    for each in batch:
        np.testing.assert_allclose(compiled(each), f(each))
        np.testing.assert_allclose(compiled_slope(each), slope(each), rtol=1e-6)


@pytest.mark.parametrize("dtype", [np.float32, np.complex64, np.complex128])
def test_views_by_strides_have_the_type_of_their_array(dtype):
    x = X.astype(dtype)
    value, pull = fad.vjp(frames, x)
    assert value.dtype == dtype
    np.testing.assert_array_equal(value, frames(x))
    np.testing.assert_array_equal(
        pull(np.ones((4, 3), dtype))[0], np.bincount(frames(np.arange(12)).ravel(), minlength=12)
    )


def check(f, x):
    check_grads(f, (x,), order=2)
    batch = np.stack([x, 2 * x])
    np.testing.assert_allclose(fad.vmap(f)(batch), [f(x.copy()) for x in batch])
    compiled = fad.jit(fad.grad(f))
    for each in batch:
        np.testing.assert_allclose(compiled(each), fad.grad(f)(each))


def test_a_view_by_strides_shows_what_is_written_into_its_array_later():
    def f(x):
        y = x * 1.0
        shown = frames(y)
        y[3] = x[0] ** 2
        y[5:8] *= x[1]
        return np.sum(shown**2)

    check(f, X)


def test_what_is_written_through_a_view_by_strides_stands_in_its_array():
    def f(x):
        y = x.reshape(3, 4) * 1.0
        as_strided(y, (3,), (y.strides[0] + y.strides[1],))[:] = x[:3] ** 2
        as_strided(y, (2, 2), y.strides)[0] *= x[4]
        return np.sum(y**2)

    check(f, X)


def test_traced_values_are_written_through_a_view_by_strides_of_an_array_that_the_function_makes():
    def f(x):
        y = np.ones((4, 4))
        as_strided(y, (4,), (y.itemsize * 5,))[:] = x[:4]
        as_strided(y[1:], (3,), (y.itemsize * 5,))[:] += x[4]
        return np.sum(y @ y)

    check(f, X)


def test_windows_that_share_elements_are_not_written():
    def f(x):
        y = x * 1.0
        frames(y)[0] = x[:3]
        return np.sum(y)

    with pytest.raises(ValueError, match="shows elements of a traced array several times"):
        fad.grad(f)(X)


def test_a_view_that_was_asked_for_to_read_is_not_written():
    def f(x):
        y = x * 1.0
        as_strided(y, (3,), y.strides, writeable=False)[0] = x[1]
        return np.sum(y)

    with pytest.raises(ValueError, match="read-only"):
        fad.grad(f)(X)


@pytest.mark.parametrize(("shape", "strides"), [((13,), (8,)), ((2,), (-8,)), ((3,), (4,)), ((2, 2), (8 * 11, 8))])
def test_a_view_that_leaves_its_array_is_an_error(shape, strides):
    with pytest.raises(ValueError, match="reaches outside of the traced array"):
        fad.grad(lambda x: np.sum(as_strided(x, shape, strides)))(X)


@pytest.mark.parametrize(("shape", "strides", "says"), [((2,), (8, 8), "mismatch"), ((-1,), (8,), "negative")])
def test_impossible_views_are_numpys_errors(shape, strides, says):
    with pytest.raises(ValueError, match=says):
        fad.grad(lambda x: np.sum(as_strided(x, shape, strides)))(X)


def test_plain_arrays_have_numpys_views():
    def f(x):
        y = np.zeros(3)
        y[0] = x[0]
        return np.sum(y * as_strided(X, (3,), (16,)))

    np.testing.assert_allclose(fad.grad(f)(X)[0], X[0])
