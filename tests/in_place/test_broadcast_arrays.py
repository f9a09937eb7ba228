"""Arrays of np.broadcast_arrays, which NumPy warns of wherever their flag `writeable` is read."""

import numpy as np
import pytest

import fad

_, SPREAD = np.broadcast_arrays(np.zeros((2, 3)), np.array([1.0, 2.0, 3.0]))
BUFFER = np.zeros(3)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(x * SPREAD),
        lambda x: np.sum(x * SPREAD[:, np.array([0, 2, 1])]),
        lambda x: np.sum(x[np.broadcast_arrays(np.array([0, 1]), np.zeros((2, 2)))[0]]),
        lambda x: np.add(x, SPREAD[0]).sum(),
    ],
)
def test_arrays_of_broadcast_arrays_are_read_without_numpys_warning_about_writes(f):
    # Warnings are errors here: NumPy's comes where the flag `writeable` of such an array is merely read.
    x = np.array([1.0, 2.0, 4.0])
    want = [f(x + 1e-3 * e) - f(x - 1e-3 * e) for e in np.eye(3)] / np.array(2e-3)
    for g in (fad.grad(f), fad.jit(fad.grad(f)), fad.jacfwd(f), lambda x: fad.vmap(fad.grad(f))(x[None])[0]):
        for _ in range(2):
            np.testing.assert_allclose(g(x), want, atol=1e-9)


def test_a_tangent_a_cotangent_and_a_rules_result_may_be_of_broadcast_arrays():
    _, t = np.broadcast_arrays(np.zeros((2, 3)), np.array([1.0, 2.0, 3.0]))
    x = np.arange(6.0).reshape(2, 3)
    double = fad.custom_vjp(lambda x: 2 * x)
    double.defvjp(lambda x: (2 * x, None), lambda _, ct: (np.broadcast_arrays(x, 2.0)[1],))
    np.testing.assert_array_equal(fad.jvp(lambda x: x, (x,), (t,))[1], t)
    np.testing.assert_array_equal(fad.vjp(lambda x: x, x)[1](t)[0], t)
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(double(x)))(x), np.full((2, 3), 2.0))
    np.testing.assert_array_equal(fad.vmap(lambda x: x)(t), t)


def test_a_function_that_runs_again_may_find_arrays_of_broadcast_arrays():
    def f(x):
        np.copyto(BUFFER, SPREAD[0])
        BUFFER[0] = x[0]
        return np.sum(BUFFER)

    with pytest.raises(fad.errors.FadError, match="Make the array in the function"):
        fad.grad(f)(np.ones(3))
