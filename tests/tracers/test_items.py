"""``x.item()`` gives a Python number, and loses no derivative."""

import numpy as np
import pytest

import fad

X = np.array([[0.5, 1.5, 2.5], [3.5, 4.5, 5.5]])
PLACES = ((0,), (4,), (-1,), (1, 2), (0, -1), ((1, 1),))


@pytest.mark.parametrize("at", PLACES)
def test_an_item_has_the_value_and_the_derivative_of_the_element(at):
    f = lambda x: x.item(*at) ** 2
    value, slope = fad.value_and_grad(f)(X)
    expected = np.where(X.item(*at) == X, 2 * X, 0.0)
    assert value == f(X)
    assert np.array_equal(slope, expected)
    assert fad.jvp(f, (X,), (X,))[1] == 2 * X.item(*at) ** 2
    assert np.array_equal(fad.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)])
    jitted = fad.jit(fad.grad(f))
    assert np.array_equal(jitted(X), expected)
    assert np.array_equal(jitted(2 * X), 2 * expected)
    assert fad.grad(fad.grad(lambda t: f(t * X)))(1.0) == pytest.approx(2 * X.item(*at) ** 2)


@pytest.mark.parametrize("shape", [(), (1,), (1, 1)])
def test_the_one_item_of_an_array_is_a_loss(shape):
    assert np.array_equal(fad.grad(lambda x: (x * x).item())(np.full(shape, 3.0)), np.full(shape, 6.0))


@pytest.mark.parametrize("transform", [fad.grad, fad.jit, fad.vmap])
@pytest.mark.parametrize("at", [(), (6,), (1, 2, 0), (2, 0)])
def test_an_item_that_there_is_not_raises_what_numpy_raises(transform, at):
    with pytest.raises((ValueError, IndexError)) as plain:
        X.item(*at)
    with pytest.raises(plain.type, match=str(plain.value).split(" ")[0]):
        transform(lambda x: x.item(*at))(X if transform is not fad.vmap else np.stack([X, X]))


def test_an_item_is_a_python_number_that_widens_nothing():
    x = X.astype(np.float32)
    f = lambda x: x.item(1) * x
    seen = []
    value = fad.jvp(lambda x: (seen.append(isinstance(x.item(1), float)), f(x))[1], (x,), (x,))[0]
    assert seen == [True]
    assert value.dtype == fad.jit(f)(x).dtype == f(x).dtype == np.float32


def test_an_item_of_whole_numbers_or_booleans_is_pythons_own():
    def f(x, counts, flags):
        n = counts.item(1)
        assert type(n) is int
        return x.ravel()[n] if flags.item(0) else x.ravel()[0]

    counts, flags = np.array([1, 3]), np.array([True, False])
    for flag in (flags, ~flags):
        assert fad.jit(f)(X, counts, flag) == f(X, counts, flag)
        batch = np.stack([X, 2 * X]), np.stack([counts, counts - 1]), np.stack([flag, ~flag])
        assert np.array_equal(fad.vmap(f)(*batch), [f(*one) for one in zip(*batch, strict=True)])


def test_a_function_that_unwraps_numbers_by_their_item_is_differentiated():
    def wrapped_angle(angle):
        number = isinstance(angle, float)
        angle = (np.asarray(angle).flatten() + np.pi) % (2 * np.pi) - np.pi
        return angle.item() if number else angle

    assert fad.grad(lambda a: np.sin(wrapped_angle(a)))(4.0) == pytest.approx(np.cos(4.0))
    assert fad.vmap(wrapped_angle)(np.array([4.0, 7.0])) == pytest.approx([4 - 2 * np.pi, 7 - 2 * np.pi])
