"""An element that was read is a number of its own, also where only its tangent is a batch: later writes leave it."""

import numpy as np
import pytest

import fad

X = np.array([0.5, 1.2, 0.8, 1.4])


def keep_an_element(x):
    v = np.sin(x)
    v[:] += x
    a = v[0]
    v[0] = 0.0
    return a * x[1] + v


def swap_the_ends(x):
    v = np.sin(x)
    v[:] += x
    v[0], v[-1] = v[-1], v[0]
    return v * x


def swap_copies(x):
    v = np.zeros(4)
    v[:] = x * x
    v[0], v[-1] = v[-1].copy(), v[0].copy()
    return v * x


def shift_by_one_variable(x):
    v = x.copy()
    v -= np.cos(x)
    last = v[-1]
    for i in range(4):
        last, v[i] = v[i], last
    return v * last


def keep_what_an_index_array_takes(x):
    v = np.zeros((2, 4))
    v[0] = np.sin(x)
    v[1] = x
    taken, chosen, flat = v[0, [0, 2]], v[0][v[1] > 1.0], v.T.reshape(-1)
    v[...] = 7.0
    return np.concatenate([taken, chosen, flat]) * x[0]


def pass_values_on(x):
    v = np.zeros(4)
    v[:] = np.sin(x)
    real, same, total = np.real(v[1]), np.maximum(v[2], -9.0), np.sum(v[3:])
    v *= 3.0
    return v + real * same * total


TRANSFORMS = {
    "jacfwd": fad.jacfwd,
    "jacfwd of vmap": lambda f: lambda x: fad.jacfwd(lambda a: fad.vmap(f)(a[None])[0])(x),
    "vmap of jacfwd": lambda f: lambda x: fad.vmap(fad.jacfwd(f))(np.stack([x] * 4))[0],
    "vmap of tangents": lambda f: lambda x: fad.vmap(lambda t: fad.jvp(f, (x,), (t,))[1])(np.eye(4)).T,
    "jacrev": fad.jacrev,
    "vmap of cotangents": lambda f: lambda x: fad.vmap(lambda g: fad.vjp(f, x)[1](g)[0])(np.eye(len(f(x.copy())))),
    "pushed by a jit": lambda f: fad.jit(fad.jacfwd(f)),
}


def differences(f, x, step=1e-6):
    return np.stack([(f(x + step * e) - f(x - step * e)) / (2 * step) for e in np.eye(4)], -1)


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize(
    "f",
    [
        keep_an_element,
        swap_the_ends,
        swap_copies,
        shift_by_one_variable,
        keep_what_an_index_array_takes,
        pass_values_on,
    ],
)
def test_a_later_write_leaves_what_was_read(f, transform):
    np.testing.assert_allclose(transform(f)(X), differences(f, X), atol=1e-8)


@pytest.mark.parametrize("f", [keep_an_element, swap_the_ends, shift_by_one_variable, pass_values_on])
def test_second_derivatives_are_those_of_the_first_ones(f):
    gradient = fad.grad(lambda x: np.sum(f(x) ** 2))
    expected = differences(gradient, X)
    for second in (fad.jacfwd(gradient), fad.jacrev(gradient), fad.jacfwd(fad.jacfwd(lambda x: np.sum(f(x) ** 2)))):
        np.testing.assert_allclose(second(X), expected, atol=1e-7)
