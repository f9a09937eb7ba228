"""Lists and tuples of traced values are operands wherever NumPy takes lists of numbers."""

import numpy as np
import pytest

import fad

X = np.array([0.3, 1.2])
PROGRAMS = {
    "a ufunc": lambda x: np.sum(np.abs([x[0], -x[1]])),
    "a ufunc of a number as well": lambda x: np.sum(np.sqrt([x[0], 2.0])),
    "a ufunc of two lists": lambda x: np.sum(np.arctan2([x[0], 1.0], [x[1], x[0]])),
    "a ufunc of a list and a number": lambda x: np.sum(np.maximum([x[0], x[1]], 1.0)),
    "a ufunc of a tuple and an array": lambda x: np.sum(np.subtract((x[0], x[1] ** 2), np.ones(2))),
    "a ufunc of a nested list": lambda x: np.sum(np.exp([[x[0], 1.0], [0.0, x[1]]])),
    "a product of matrices": lambda x: np.sum(np.matmul([[x[0], 1.0], [0.0, x[1]]], np.ones(2))),
    "a norm": lambda x: np.linalg.norm([x[0], x[1]]),
    "a norm of a difference": lambda x: np.linalg.norm([x[0] - 1.0, x[1] + 2.0]),
    "a determinant": lambda x: np.linalg.det([[x[0], 2.0], [x[1], x[0]]]),
    "a linear system": lambda x: np.sum(np.linalg.solve([[x[0], 2.0], [1.0, x[1]]], [x[0], 1.0])),
    "a new array times a list": lambda x: np.sum(np.ones(2) * [x[0], x[1] ** 2]),
    "a list times a new array": lambda x: np.sum([x[0], x[1] ** 2] * np.ones(2)),
    "a new array plus a tuple": lambda x: np.sum((np.ones(2) + (x[0], x[1])) ** 2),
    "a traced array plus a tuple": lambda x: np.sum((x + (x[1], 2.0)) ** 2),
    "a tuple minus a traced array": lambda x: np.sum(((x[1], 2.0) - x) ** 2),
    "an operation of fad": lambda x: np.sum(fad.numpy.abs([x[0], -x[1]])),
    "one of two operands": lambda x: np.sum(fad.numpy.hypot([x[0], 2.0], (x[1], 1.0))),
    "weights by name": lambda x: np.average([1.0, 3.0], weights=[1 / x[0], x[1]]),
    "weights of counts": lambda x: np.bincount([1, 0], weights=[x[0], x[1] ** 2]) @ [1.0, 2.0],
    "places by name": lambda x: np.trapezoid([1.0, 3.0], x=[x[0], x[1] ** 2]),
    "a number by name": lambda x: np.sum(np.pad([1.0, 3.0], 1, constant_values=x[0] * x[1])),
    "what stands for NaN": lambda x: np.sum(np.nan_to_num([np.nan, 3.0], nan=x[0] * x[1])),
    "ends by name": lambda x: np.sum(np.diff([1.0, 3.0], append=[x[0], x[1] ** 2]) ** 2),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_a_list_of_traced_values_is_an_operand(name):
    f = PROGRAMS[name]
    step = 1e-6
    expected = np.array([(f(X + step * e) - f(X - step * e)) / (2 * step) for e in np.eye(2)])
    value, slope = fad.value_and_grad(f)(X)
    assert value == pytest.approx(f(X), rel=1e-14)
    assert slope == pytest.approx(expected, rel=1e-8)
    assert fad.jvp(f, (X,), (X,))[1] == pytest.approx(expected @ X, rel=1e-8)
    assert fad.vmap(f)(np.stack([X, 2 * X])) == pytest.approx([f(X), f(2 * X)], rel=1e-14)
    jitted = fad.jit(fad.grad(f))
    assert jitted(X) == pytest.approx(expected, rel=1e-8)
    assert jitted(X) == pytest.approx(expected, rel=1e-8)


def test_a_list_is_an_operand_behind_a_write_into_what_a_function_gave():
    def lengths(parts):
        return sum(np.abs(parts))

    def f(x):
        y = np.cos([0.0, 1.0])
        y[0] = x[0]
        return lengths([x[0], -x[1], 0.5]) + np.sum(y)

    assert np.array_equal(fad.grad(f)(X), [2.0, 1.0])
    assert np.array_equal(fad.jit(fad.grad(f))(X), [2.0, 1.0])


def test_what_numpy_refuses_of_lists_of_numbers_is_refused_of_traced_ones():
    with pytest.raises(ValueError, match="broadcast"):
        fad.grad(lambda x: np.sum(np.add([x[0], x[1]], np.ones(3))))(X)
    with pytest.raises(ValueError, match=r"inhomogeneous|shape"):
        fad.grad(lambda x: np.sum(np.abs([[x[0]], [x[1], 1.0]])))(X)
