"""np.ndenumerate, np.nditer and np.broadcast over traced arrays."""

import numpy as np
import pytest
from numpy import ndenumerate

import fad

A = np.arange(6.0).reshape(2, 3)


def by_attribute(a):
    s = 0.0
    for (i, j), v in np.ndenumerate(a):
        s = s + v * v * (i + 2 * j)
    return s


def by_name(a):
    return sum(v * v * (i + 2 * j) for (i, j), v in ndenumerate(a * 1.0))


@pytest.mark.parametrize("f", [by_attribute, by_name])
def test_ndenumerate_gives_the_places_and_elements_of_a_traced_array(f):
    i, j = np.indices(A.shape)
    slope = 2 * A * (i + 2 * j)
    assert np.array_equal(fad.grad(f)(A), slope)
    assert np.array_equal(fad.jit(fad.grad(f))(A), slope)
    assert fad.jit(f)(A) == f(A)
    assert fad.jvp(f, (A,), (A,)) == (f(A), np.sum(slope * A))
    assert np.array_equal(fad.vmap(f)(np.stack([A, 2 * A])), [f(A), f(2 * A)])


def test_ndenumerate_of_an_array_that_is_written_sees_the_writes():
    def f(x):
        y = np.zeros(3)
        y[0] = x
        for (i,), v in np.ndenumerate(y):
            y[(i + 1) % 3] = v * 2.0
        return np.sum(y)

    assert fad.grad(f)(1.5) == f(1.0) == fad.jit(f)(1.0)


LAYOUTS = {
    "rows": lambda x: x,
    "columns": lambda x: x.T,
    "reversed": lambda x: x[::-1, ::2],
    "a table of tables": lambda x: np.transpose(np.stack([x, 2 * x]), (1, 0, 2)),
    "a number": lambda x: x[0, 1] * np.ones(()),
}
TRANSFORMS = {
    "jvp": lambda f, x: fad.jvp(f, (x,), (x,))[0],
    "jit": lambda f, x: fad.jit(f)(x),
    "vmap": lambda f, x: fad.vmap(f)(x[None])[0],
    "linearize": lambda f, x: fad.vjp(f, x)[0],
}


def sum_by_places(x):
    it, total = np.nditer(x, flags=["multi_index"]), 0.0
    while not it.finished:
        total = total + x[it.multi_index] ** 2 * (1 + sum(it.multi_index)) * it[0]
        it.iternext()
    return total


def list_elements(x, order="K"):
    return np.array([v * (k + 1) for k, v in enumerate(np.nditer(x, order=order))])


def list_fortran(x):
    return list_elements(x, "F")


def list_numbered(x):
    it = np.nditer(x, flags=["c_index"], order="F")
    return np.array([v * it.index for v in it])


def double_in_place(x):
    y = np.array(x)
    with np.nditer(y, op_flags=["readwrite"]) as it:
        for v in it:
            v[...] = v * v
    return y


def multiply_into_new(x):
    it = np.nditer([x, x[..., :1] if x.ndim else x, None])
    for a, b, c in it:
        c[...] = a * b
    return it.operands[2]


def add_up_in_loops(x):
    return sum(np.sum(part * np.arange(part.size)) for part in np.nditer(x, flags=["external_loop"], order="F"))


def list_products(x):
    pairs = np.broadcast(x, 2.0)
    return np.array([a * b * pairs.index for a, b in pairs])


def ask_for_the_shape(x):
    return np.full(np.broadcast(x, np.ones((2,) + (1,) * x.ndim)).shape, np.sum(x))


@pytest.mark.parametrize(
    "f",
    [sum_by_places, list_elements, list_fortran, list_numbered, double_in_place, multiply_into_new, add_up_in_loops,
     list_products, ask_for_the_shape],
)  # fmt: skip
@pytest.mark.parametrize("layout", LAYOUTS)
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_iterators_over_traced_arrays_step_as_numpys_own_do(f, layout, transform):
    def run(x):
        return f(LAYOUTS[layout](x))

    x = np.arange(1.0, 13.0).reshape(3, 4)
    found, wanted = TRANSFORMS[transform](run, x), run(x)
    assert np.shape(found) == np.shape(wanted)
    assert np.asarray(found).dtype == np.asarray(wanted).dtype
    np.testing.assert_array_equal(found, wanted)


def test_iterators_carry_derivatives():
    x = np.arange(1.0, 7.0).reshape(2, 3)
    weights = np.add.outer(np.arange(2), np.arange(3)) + 1
    np.testing.assert_allclose(fad.grad(sum_by_places)(x), 3 * x**2 * weights)
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(double_in_place(x) * weights))(x), 2 * x * weights)
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(multiply_into_new(x)))(x[:, :1]), 2 * x[:, :1])


def test_what_an_iterator_of_traced_arrays_cannot_do_is_refused():
    def convert(x):
        return sum(v for v in np.nditer(x, op_dtypes=["float32"]))

    def write_loops(x):
        y = x * 1.0
        for part in np.nditer(y, flags=["external_loop"], op_flags=["readwrite"]):
            part[...] = 2 * part
        return np.sum(y)

    for f, words in ((convert, "op_dtypes"), (write_loops, "external_loop")):
        with pytest.raises(fad.errors.MissingRuleError, match=words):
            fad.grad(f)(np.ones(3))
