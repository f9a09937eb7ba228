"""Programs that name the class ``np.ndarray`` and write traced values into new arrays: the class stays what it is."""

import numpy as np
import pytest

import fad

X = np.array([0.5, 1.5, 2.5])
TABLE = np.arange(3.0)


def filled(x):
    y = np.zeros(len(x))
    y[:] = x
    return y


class Solver:
    """Asks in its methods what it was given."""

    def __init__(self, table):
        self.table = table

    def scale(self):
        return 2.0 if type(self.table) is np.ndarray else 1.0

    def solve(self, x):
        return np.sum(filled(x) ** 2) * self.scale()


def in_a_method(x):
    return Solver(TABLE).solve(x)


def class_on_the_left(x):
    return np.sum(filled(x) ** 2) if np.ndarray is type(TABLE) else 0.0 * x[0]


def views_of_plain_arrays(x):
    y = filled(x)
    return np.sum(y * TABLE.view(np.ndarray)) + np.sum(y**2 * TABLE.view(type=np.ndarray))


def views_of_traced_arrays(x):
    return np.sum(filled(x).view(np.ndarray) ** 2) + np.sum(x.view(np.ndarray) ** 3)


def a_class_derived_in_the_function(x):
    class Named(np.ndarray):
        pass

    return np.sum(filled(x) ** 2) * len(TABLE.view(Named))


def methods_as_functions(x):
    return np.sum(filled(x) ** 2) * np.ndarray.sum(TABLE)


def made_by_the_class(x):
    y = np.ndarray(len(x))
    y[:] = x
    return np.sum(y**2)


def made_with_a_list_of_arguments(x):
    shape = [x.shape]
    y = np.ndarray(*shape, **{"dtype": float})
    y[:] = x
    return np.sum(y**2)


def made_and_compared(x):
    y = np.ndarray(len(x))
    y[:] = x
    known = {np.ndarray: 2.0, list: 3.0}
    return np.sum(y.view(np.ndarray) ** 2) * known[type(TABLE)] * (type(TABLE) in (np.ndarray, list))


PICKED = {"made": made_by_the_class}


def made_by_a_function_that_is_picked_within_a_derivative(x):
    return np.sum(filled(x) ** 2) + np.sum(fad.grad(PICKED["ma" + "de"])(x) ** 2)


PROGRAMS = (
    in_a_method, class_on_the_left, views_of_plain_arrays, views_of_traced_arrays, a_class_derived_in_the_function,
    methods_as_functions, made_by_the_class, made_with_a_list_of_arguments, made_and_compared,
    made_by_a_function_that_is_picked_within_a_derivative,
)  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_a_program_that_names_the_class_of_arrays_has_its_value_and_derivatives(program):
    step = 1e-6
    expected = [(program(X + step * e) - program(X - step * e)) / (2 * step) for e in np.eye(3)]
    for evaluate in (fad.value_and_grad(program), fad.jit(fad.value_and_grad(program))):
        value, slope = evaluate(X)
        assert value == pytest.approx(program(X), rel=1e-14)
        assert slope == pytest.approx(np.array(expected), rel=1e-8)
    assert fad.jvp(program, (X,), (X,))[1] == pytest.approx(np.dot(expected, X), rel=1e-8)
    assert fad.vmap(program)(np.stack([X, 2 * X])) == pytest.approx([program(X), program(2 * X)], rel=1e-14)
    assert fad.jit(program)(X) == pytest.approx(program(X), rel=1e-14)


def test_the_class_of_arrays_is_numpys_own_after_a_derivative():
    fad.grad(made_by_the_class)(X)
    assert np.ndarray is type(TABLE)
