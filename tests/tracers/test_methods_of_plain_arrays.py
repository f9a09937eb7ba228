"""Methods and indices of plain arrays, which are NumPy's own, take traced values."""

from types import SimpleNamespace

import numpy as np
import pytest

import fad

TABLE = np.array([[1.0, 2.0], [0.5, 1.0]])
LABELS = np.array([3, 5])
MASK = np.array([True, False])
HELD = SimpleNamespace(weights=[np.array([[1.0, 2.0], [3.0, 4.0]])])
X = np.array([1.3, 2.4])
D = np.array([1.0, 0.5])


def make():
    return np.array([[1.0, 2.0], [0.5, 1.0]])


PROGRAMS = {
    "dot": lambda x: TABLE.dot(x),
    "dot of a view": lambda x: TABLE.T[0].dot(x),
    "dot of an attribute": lambda x: HELD.weights[0].dot(x),
    "dot of an array that a helper made": lambda x: make().dot(x),
    "dot twice": lambda x: TABLE.dot(TABLE).dot(x),
    "clip": lambda x: TABLE.clip(x[0], x[1]),
    "choose": lambda x: MASK.choose([x, 2 * x]),
    "row by a place": lambda x: TABLE[np.argmax(x)] * x,
    "rows by places": lambda x: TABLE[np.argsort(-x)] @ x,
    "labels by places": lambda x: LABELS[np.argsort(-x)] * x,
    "elements by a mask": lambda x: np.sum(TABLE[x > 2.0]) * x,
    "operator with a list": lambda x: TABLE * [x[0], x[1]],
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_take_traced_values(name):
    f = PROGRAMS[name]
    want = f(X)
    value, tangent = fad.jvp(f, (X,), (D,))
    assert value.dtype == want.dtype
    np.testing.assert_array_equal(value, want)
    difference = (f(X + 1e-6 * D) - f(X - 1e-6 * D)) / 2e-6
    np.testing.assert_allclose(tangent, difference, rtol=1e-6, atol=1e-8)
    gradient = fad.grad(lambda x: np.sum(f(x)))(X)
    np.testing.assert_allclose(gradient @ D, np.sum(tangent), rtol=1e-12)
    batch = np.stack([X, X[::-1]])
    np.testing.assert_allclose(fad.vmap(f)(batch), [f(x) for x in batch], rtol=1e-12)
    jitted, jitted_gradient = fad.jit(f), fad.jit(fad.grad(lambda x: np.sum(f(x))))
    for x in (*batch, X):
        np.testing.assert_allclose(jitted(x), f(x), rtol=1e-12)
        np.testing.assert_allclose(jitted_gradient(x), fad.grad(lambda x: np.sum(f(x)))(x), rtol=1e-12)
    assert type(TABLE) is np.ndarray
    assert type(HELD.weights[0]) is np.ndarray


def test_jit_sees_that_the_array_changed():
    table = np.array([[1.0, 2.0], [0.5, 1.0]])
    held = SimpleNamespace(table=table)
    f = fad.jit(lambda x: table.dot(x) + held.table.dot(x))
    np.testing.assert_allclose(f(X), 2 * table @ X)
    table[0] = 7.0
    np.testing.assert_allclose(f(X), 2 * table @ X)
    held.table = np.eye(2)
    np.testing.assert_allclose(f(X), table @ X + X)


def test_a_traced_value_written_into_the_array_is_an_error():
    table = np.array([[1.0, 2.0], [0.5, 1.0]])

    def f(x):
        y = table.dot(x)
        table[0] = x
        return np.sum(y)

    with pytest.raises(fad.errors.TracerConversionError, match="from outside"):
        fad.grad(f)(X)
    np.testing.assert_array_equal(table, [[1.0, 2.0], [0.5, 1.0]])


def test_a_plain_number_written_into_the_array_is_written_once():
    count = np.zeros(1, int)
    table = np.array([[1.0, 2.0], [0.5, 1.0]])

    def f(x):
        count[0] += 1
        return np.sum(table.dot(x))

    np.testing.assert_allclose(fad.grad(f)(X), np.sum(table, axis=0))
    assert count[0] == 1
    np.testing.assert_allclose(fad.grad(f)(X), np.sum(table, axis=0))
    assert count[0] == 2


def is_known_by_bytes(x):
    seen = {}
    table, order = np.arange(3.0), np.argsort(x)
    table[0] = 5.0
    seen[table.tobytes(), order.tobytes(), (x > 1.0).tobytes()] = 2.0
    assert (np.array([5.0, 1.0, 2.0]).tobytes(), np.argsort([3.0, 1.0, 2.0]).tobytes(), b"\1\0\1") in seen
    table[1] = x[0]
    return np.sum(table * x)


def test_bytes_are_given_of_plain_and_whole_numbers_and_refused_of_what_is_differentiated():
    x = np.array([3.0, 1.0, 2.0])
    for derivative in (
        fad.grad(is_known_by_bytes),
        fad.jit(fad.grad(is_known_by_bytes)),
        fad.jacfwd(is_known_by_bytes),
    ):
        np.testing.assert_allclose(derivative(x), [6.0, 3.0, 2.0])
    assert fad.vmap(is_known_by_bytes)(np.stack([x, x])).tolist() == [is_known_by_bytes(x)] * 2
    with pytest.raises(fad.errors.MissingRuleError, match=r"x.tobytes\(\) .*stop_gradient"):
        fad.grad(lambda x: len(x.tobytes()) * np.sum(x))(x)


class Quantity(np.ndarray):
    pass


def is_viewed_as_another_class(x):
    y, c = np.zeros(3), np.array([1.0, 2.0, 3.0])
    y[:2] = x
    before = c * y
    q = c.view(Quantity)
    between = c * y
    c[1], np.asarray(q)[0] = 7.0, 2.0
    assert type(q) is Quantity
    assert np.asarray(q).tolist() == [2.0, 7.0, 3.0]
    assert c.view(np.int64).dtype == np.int64
    return np.sum(before + between + np.exp(c * y))


def is_written_behind_it(x):
    c = np.zeros(2)
    q = c.view(Quantity)
    c[0] = x[0]
    return np.sum(np.asarray(q))


def test_plain_arrays_are_viewed_as_another_class_and_take_no_traced_values_then():
    x = np.array([0.3, 0.4])
    wanted = np.array([2.0, 4.0]) + np.array([2.0, 7.0]) * np.exp([0.6, 2.8])
    for transform in (fad.grad, fad.jacfwd, lambda f: fad.jit(fad.grad(f))):
        np.testing.assert_allclose(transform(is_viewed_as_another_class)(x), wanted)
        with pytest.raises(fad.errors.TracerConversionError, match="to be written"):
            transform(is_written_behind_it)(x)
    with pytest.raises(fad.errors.MissingRuleError, match="another class"):
        fad.grad(lambda x: np.sum(x.view(Quantity)))(x)
