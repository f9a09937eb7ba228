"""What a transform's function writes into arrays from outside is there afterwards, or its use is an error."""

from contextvars import ContextVar

import numpy as np
import pytest

import fad
from fad.errors import ImpureFunctionError, ItemAssignmentError, LeakedTracerError

X = np.array([1.1, 2.2, 0.7, 3.4])
INNER = {
    "grad": lambda g, x: np.sum(fad.grad(g)(x)),
    "jvp": lambda g, x: fad.jvp(g, (x,), (np.ones(4),))[1],
    "linearize": lambda g, x: fad.linearize(g, x)[1](np.ones(4)),
    "jit": lambda g, x: np.sum(fad.jit(fad.grad(g))(x)),
    "value": lambda g, x: np.sum(fad.value_and_grad(g)(x)[1]),
}
OUTER = {
    "grad": lambda f: fad.grad(f)(X),
    "jvp": lambda f: [fad.jvp(f, (X,), (e,))[1] for e in np.eye(4)],
    "jit": lambda f: fad.jit(fad.grad(f))(X),
    "vmap": lambda f: fad.vmap(fad.grad(f))(X[None])[0],
    "a batch inside": lambda f: fad.grad(lambda x: fad.vmap(f)(x[None])[0])(X),
}


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_an_inner_transform_leaves_values_of_the_outer_one_in_an_array_of_it(inner, outer):
    def f(x):
        b, d = np.zeros(4), x * 2

        def g(y):
            b[0] = y[0] ** 2
            d[1] = y[1] ** 2
            return np.sum(y * b) + np.sum(y * d)  # y0^3 + y1^3 + 2 y0 x0 + 2 y2 x2 + 2 y3 x3

        return INNER[inner](g, x) + b[0] + d[1] * b[0]

    wanted = [6 * X[0] + 2 + 2 * X[0] * (1 + X[1] ** 2), 6 * X[1] + 2 * X[1] * X[0] ** 2, 2.0, 2.0]
    np.testing.assert_allclose(OUTER[outer](f), wanted, 1e-12)


def test_a_jitted_function_reads_and_writes_arrays_of_the_function_around_it_in_every_call():
    def f(x):
        b, n = np.zeros(4), np.zeros(1)

        def h(y):
            n[0] += 1
            b[1] = y[1]
            return np.sum(y * b) * n[0]

        g = fad.jit(lambda y: h(y) * 2)
        total = g(x)
        b[0] = 1
        return total + g(2 * x) + b[1]

    x0, x1 = X[:2]
    np.testing.assert_allclose(f(X), 2 * x1**2 + 4 * (2 * x0 + 4 * x1**2) + 2 * x1, 1e-13)
    for g in OUTER.values():
        np.testing.assert_allclose(g(f), [8.0, 36 * x1 + 2, 0, 0], 1e-13)


class Slot:
    __slots__ = ("b",)


class Hidden:
    """An object whose array nobody finds by name."""

    def __init__(self):
        self.held = ContextVar("held")

    b = property(lambda self: self.held.get(), lambda self, x: self.held.set(x))


def test_an_array_in_a_slot_is_found_and_written_in_bodies():
    def f(x):
        slot = Slot()
        slot.b = np.zeros(4)

        def body(i, c):
            slot.b[i] = c
            return c * x[i]

        return fad.fori_loop(0, 4, body, x[0] * 1.0) + np.sum(slot.b)

    for _ in range(2):
        np.testing.assert_allclose(fad.jit(f)(X), f(X), 1e-13)
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), fad.grad(f)(X), 1e-13)


def test_an_array_that_a_body_wrote_into_unseen_is_an_error_that_says_to_carry_it():
    def f(x):
        hidden = Hidden()
        hidden.b = np.zeros(4)

        def body(i, c):
            hidden.b[i] = c
            return c * x[i]

        return fad.fori_loop(0, 4, body, x[0] * 1.0) + np.sum(hidden.b)

    assert np.isfinite(fad.grad(f)(X)).all()
    with pytest.raises(LeakedTracerError, match="carry it"):
        fad.jit(f)(X)


def test_a_checkpoint_that_writes_into_an_array_from_outside_is_an_error():
    def f(x):
        b = np.zeros(4)

        def g(y):
            b[0] = y[0] ** 2
            return np.sum(b * y)

        return fad.checkpoint(g)(x) + b[0]

    with pytest.raises(ItemAssignmentError, match="array from outside"):
        fad.grad(f)(X)


def test_a_checkpoint_that_reads_an_array_which_is_written_later_unseen_is_an_error():
    def f(x):
        hidden = Hidden()
        hidden.b = np.zeros(4)
        hidden.b[:] = x
        y = fad.checkpoint(lambda y: np.sum(hidden.b * y**2))(x)
        hidden.b[:] = 0
        return y

    with pytest.raises(ImpureFunctionError):
        fad.grad(f)(X)
