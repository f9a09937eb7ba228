"""Programs take what they want out of quantities, variables and columns by an attribute, where there is one."""

import numpy as np
import pytest

import fad

X = np.array([0.5, -1.5, 2.0])
NAMES = ["value", "values", "val", "magnitude", "m", "_value", "primal", "array", "numpy", "detach", "content", "inner"]


@pytest.mark.parametrize("name", NAMES)
def test_a_traced_array_has_no_attribute_by_which_programs_unwrap_others(name):
    def f(x):
        x = getattr(x, name, x)
        return np.sum(x**2)

    np.testing.assert_array_equal(fad.grad(f)(X), 2 * X)
    np.testing.assert_array_equal(fad.jit(fad.grad(f))(X), 2 * X)
    np.testing.assert_array_equal(fad.jvp(f, (X,), (X,))[1], np.sum(2 * X * X))
    np.testing.assert_array_equal(fad.vmap(fad.grad(f))(np.stack([X, 3 * X])), np.stack([2 * X, 6 * X]))
    np.testing.assert_array_equal(fad.hessian(f)(X), 2 * np.eye(3))
