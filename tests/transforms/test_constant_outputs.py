"""A function that does not depend on what is differentiated, inside other transforms."""

import numpy as np
import pytest

import fad

BATCH = np.stack([np.eye(2), 2 * np.eye(2)])


@pytest.mark.parametrize("outer", [lambda f: f, fad.jit], ids=["plain", "jit"])
def test_a_batched_value_that_does_not_depend_on_the_argument_has_derivative_zero(outer):
    f = fad.vmap(fad.value_and_grad(lambda x, w: np.sum(w * w)), in_axes=(None, 0))
    value, slope = outer(f)(np.ones((2, 2)), BATCH)
    np.testing.assert_array_equal(value, [2.0, 8.0])
    np.testing.assert_array_equal(slope, np.zeros((2, 2, 2)))
