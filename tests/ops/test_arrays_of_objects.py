"""Arrays of Python objects whose elements are traced values, and what meets them."""

from __future__ import annotations

import numpy as np
import pytest
from each import each

import fad
from fad.errors import TracerConversionError, UnsupportedInputError

X = np.array([1.0, 2.0, 3.0])


def _fill_cells(x):
    cells = np.empty(3, dtype=object)
    for i in range(3):
        cells[i] = 2 * x[: i + 1]
    return sum(np.sum(cell**2) for cell in cells)


def _multiply_matrices(x):
    a = np.zeros((2, 2), dtype=object)
    a[0, 0] = x[0]
    a[1, 1] = x[1] * x[2]
    return np.trace(a @ a)


PROGRAMS = {
    "a_sum_of_converted": lambda x: (x.astype(object) ** 2).sum(),
    "an_element_of_converted": lambda x: (x.astype("O") * 2)[1],
    "a_matrix_of_converted": lambda x: np.sum(np.outer(x, x).astype(object)[1] * 3),
    "the_largest_of_converted": lambda x: max(x.astype(object)),
    "asarray": lambda x: np.asarray(x, dtype=object).sum(),
    "an_array_of_numbers": lambda x: (np.array([x[0], x[1]], dtype=object) ** 2).sum(),
    "a_nested_array": lambda x: (np.array([[x[0], 1], [x[1], x[2]]], dtype=object) ** 2).sum(),
    "arrays_of_one_length": lambda x: np.array([x, 2 * x], dtype=object)[1, 2] ** 2,
    "arrays_of_two_lengths": lambda x: sum(np.sum(np.sin(y)) for y in np.array([x[:1], x], dtype=object)),
    "beside_none": lambda x: np.array([x, None], dtype=object)[0].sum(),
    "cells": _fill_cells,
    "a_product_of_matrices": _multiply_matrices,
    "full": lambda x: np.full(3, x[0], dtype=object).sum(),
    "cumsum_of_objects": lambda x: np.cumsum(x, dtype=object)[-1] ** 2,
    "add_as_objects": lambda x: np.add(x, x, dtype=object).sum(),
    "vectorize_to_objects": lambda x: np.vectorize(lambda a: a * a, otypes=[object])(x).sum(),
}


@each("f", list(PROGRAMS.values()), ids=list(PROGRAMS))
def test_a_program_of_objects_has_the_values_and_derivatives_of_one_of_numbers(f):
    value = float(f(X))
    steps = 1e-6 * np.eye(3)
    slope = np.array([(float(f(X + step)) - float(f(X - step))) / 2e-6 for step in steps])
    for gradient in (fad.grad(f), fad.jit(fad.grad(f))):
        np.testing.assert_allclose(gradient(X), slope, rtol=1e-8, atol=1e-9)
    np.testing.assert_allclose(fad.jvp(f, (X,), (X,)), (value, slope @ X), rtol=1e-8)
    np.testing.assert_allclose(fad.vmap(f)(np.stack([X, X])), [value, value], rtol=1e-14)
    np.testing.assert_allclose(fad.jit(f)(X), value, rtol=1e-14)


@each(
    "f",
    [
        lambda x: np.sum(np.zeros(3, object) + x),
        lambda x: np.sum(x * np.ones(3, object)),
        lambda x: np.sum(np.ones(3, object) * x[0]),
        lambda x: x @ np.ones(3, object),
        lambda x: np.sum(np.ones((2, 3), object) @ x),
        lambda x: np.append(x, None)[0],
        lambda x: np.hstack([x, [None]])[0],
        lambda x: np.sum(x, dtype=object),
    ],
)
def test_objects_that_meet_a_traced_array_are_an_error_and_no_zero(f):
    for transform in (fad.grad, fad.vmap, fad.jit, lambda f: lambda x: fad.jvp(f, (x,), (x,))):
        with pytest.raises((UnsupportedInputError, fad.errors.NonArrayOutputError), match="object"):
            transform(f)(X if transform is not fad.vmap else X[None])


def test_traced_arrays_that_are_written_into_an_array_of_objects_from_outside_are_an_error():
    cells = np.zeros(3, object)

    def write(x):
        cells[:] = x
        return cells.sum()

    with pytest.raises(TracerConversionError):
        fad.grad(write)(X)
