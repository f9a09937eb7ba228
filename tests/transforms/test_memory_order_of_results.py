"""The axes of what leaves a transform lie in memory as in the plain program: on that depends what is a view of it."""

import numpy as np
import pytest

import fad

IN_FORTRANS_ORDER = np.asfortranarray(np.arange(1.0, 13.0).reshape(3, 4))
FUNCTIONS = {
    "the argument": lambda x: x,
    "its transpose": lambda x: x.T,
    "a product": lambda x: x * 2,
    "a constant": fad.stop_gradient,
    "a transpose of a constant": lambda x: fad.stop_gradient(x.T),
    "np.sinc": np.sinc,
}
TRANSFORMS = {
    "vjp": lambda f, x: fad.vjp(f, x)[0],
    "jvp": lambda f, x: fad.jvp(f, (x,), (x,))[0],
    "linearize": lambda f, x: fad.linearize(f, x)[0],
    "has_aux": lambda f, x: fad.value_and_grad(lambda x: (np.sum(x), f(x)), has_aux=True)(x)[0][1],
    "vmap": lambda f, x: fad.vmap(f, in_axes=None, out_axes=None, axis_size=2)(x),
}


@pytest.mark.parametrize("function", FUNCTIONS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_results_lie_in_memory_as_those_of_the_plain_function(function, transform):
    for x in (IN_FORTRANS_ORDER, np.ascontiguousarray(IN_FORTRANS_ORDER)):
        plain = FUNCTIONS[function](x)
        assert TRANSFORMS[transform](FUNCTIONS[function], x).strides == plain.strides
