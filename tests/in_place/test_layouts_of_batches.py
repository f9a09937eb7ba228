"""A write of a batched value into an array leaves its axes as they lie in memory, so views remain views."""

import numpy as np
import pytest

import fad

X = np.array([0.5, 1.2, 0.8, 1.4])


def fill_by_transpose(x):
    b = np.zeros((4, 6))
    b.T[1:5] = x
    flat = b.ravel()
    flat[3::5] *= x[1]
    b.reshape(2, 12)[0, 1] = x[3]
    return np.sum(b * np.arange(24.0).reshape(4, 6))


def fill_fortrans_order(x):
    b = np.zeros((4, 6), order="F")
    b[1] = x[0]
    b[[2, 3]] = x[1]
    b.T.ravel()[4] = x[2]
    b.ravel()[1] = x[3]
    return np.sum(b * np.arange(24.0).reshape(4, 6))


def fill_exchanged_axes(x):
    b = np.zeros((2, 3, 4)).transpose(1, 0, 2) + 0.0
    b[0] = x
    b.transpose(1, 0, 2).reshape(-1)[[1, -2]] = x[2]
    flat = b.transpose(1, 0, 2).reshape(-1)
    flat[1] = x[3]
    flat[-2] *= x[0]
    return np.sum(b * np.arange(24.0).reshape(3, 2, 4))


def fill_exchanged_axes_by_index_arrays(x):
    b = np.zeros((2, 3, 4)).transpose(2, 0, 1) + 1.0
    b[[0, 2], :, 1] = x[:2]
    b.transpose(1, 2, 0).reshape(-1)[1::2] *= x[3]
    return np.sum(b * np.arange(24.0).reshape(4, 2, 3))


TRANSFORMS = {
    "vmap": lambda f, n: fad.vmap(f)(repeat(n))[0],
    "vmap of vmap": lambda f, n: fad.vmap(fad.vmap(f))(repeat(n, n))[0, 0],
    "three vmaps": lambda f, n: fad.vmap(fad.vmap(fad.vmap(f)))(repeat(2, n, n))[0, 0, 0],
    "jvp of vmap": lambda f, n: fad.jvp(fad.vmap(f), (repeat(n),), (repeat(n),))[0][0],
    "vmap of grad": lambda f, n: fad.vmap(fad.value_and_grad(f))(repeat(n))[0][0],
    "vmap of grad of vmap": lambda f, n: fad.vmap(fad.value_and_grad(lambda a: fad.vmap(f)(a)[0]))(repeat(n, n))[0][0],
}


def repeat(*sizes):
    return np.array(np.broadcast_to(X, (*sizes, 4)))


@pytest.mark.parametrize("size", [1, 4])
@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize(
    "f", [fill_by_transpose, fill_fortrans_order, fill_exchanged_axes, fill_exchanged_axes_by_index_arrays]
)
def test_a_batch_that_is_written_into_an_array_lies_as_the_array_did(f, transform, size):
    np.testing.assert_allclose(transform(f, size), f(X.copy()), rtol=1e-12)


def write_batch_into(make):
    """Return a function into whose array an inner vmap writes, and what NumPy makes of it, one example at a time."""

    def finish(b, x):
        b.T.ravel()[1] = x[3]
        b.ravel()[2] = x[1]
        return np.sum(b * np.arange(12.0).reshape(4, 3))

    def by_vmap(x):
        b = make(x)

        def write(s):
            b[1] = s * x[0]
            return s

        fad.vmap(write)(x)
        return finish(b, x)

    def by_loop(x):
        b = make(x)
        for s in x:
            b[1] = s * x[0]
        return finish(b, x)

    return by_vmap, by_loop


def make_traced(x):
    b = np.zeros((4, 3), order="F")
    b[:, 0] = x
    return b


def make_plain(x):
    return np.asfortranarray(np.ones((4, 3)))


OUTER = {
    "jvp": lambda f: fad.jvp(f, (X,), (X,))[0],
    "grad": lambda f: fad.value_and_grad(f)(X)[0],
    "vmap": lambda f: fad.vmap(f)(X[None])[0],
    "vmap of grad": lambda f: fad.vmap(fad.value_and_grad(f))(X[None])[0][0],
}


@pytest.mark.parametrize("transform", OUTER.values(), ids=OUTER)
@pytest.mark.parametrize("make", [make_traced, make_plain])
def test_an_array_of_an_outer_function_keeps_its_order_where_an_inner_vmap_writes(make, transform):
    by_vmap, by_loop = write_batch_into(make)
    np.testing.assert_allclose(transform(by_vmap), by_loop(X.copy()), rtol=1e-12)
