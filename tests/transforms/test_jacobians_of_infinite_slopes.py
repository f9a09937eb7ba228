"""An infinite slope of one element of the output has no part in the rows of the others."""

import numpy as np
from each import each

import fad

X = np.array([0.0, 1.0])
PROGRAMS = {
    "a square root": (np.sqrt, [[[np.inf, 0.0], [0.0, 0.5]]]),
    "beside another result": (
        lambda x: (2.0 * x, np.sqrt(x)),
        [[[2.0, 0.0], [0.0, 2.0]], [[np.inf, 0.0], [0.0, 0.5]]],
    ),
    "a sum beside a logarithm": (lambda x: (np.sum(x), np.log(x)), [[1.0, 1.0], [[np.inf, 0.0], [0.0, 1.0]]]),
    "an overflow": (lambda x: (np.sum(x), np.exp(1000.0 * x)), [[1.0, 1.0], [[1000.0, 0.0], [0.0, np.inf]]]),
    "more results than arguments": (
        lambda x: np.concatenate([np.sqrt(x), 3.0 * x]),
        [[[np.inf, 0.0], [0.0, 0.5], [3.0, 0.0], [0.0, 3.0]]],
    ),
}


@each("name", PROGRAMS)
def test_an_infinite_slope_has_no_part_in_other_rows_of_a_jacobian(name):
    fun, want = PROGRAMS[name]
    with np.errstate(all="ignore"):
        for jacobian in (fad.jacrev(fun), fad.jacobian(fun), fad.jacrev(fun, chunk_size=1)):
            jitted = fad.jit(jacobian)
            for found in (jacobian(X), jitted(X), jitted(X), fad.vmap(jacobian)(X[None])):
                for got, block in zip(fad.tree.leaves(found), want, strict=True):
                    np.testing.assert_array_equal(np.reshape(got, np.shape(block)), block)
