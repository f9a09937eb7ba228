"""Arrays of NumPy's other kinds, and attributes that change an array as it lies in memory: what to write instead."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import TracerConversionError, UnsupportedInputError

X = np.array([1.0, 2.0, 3.0])
MASK = np.array([False, True, False])
MASKED = np.ma.array(X, mask=MASK)
FIELDS = np.zeros(3, dtype=[("a", float), ("b", float)])
TRANSFORMS = [fad.grad, fad.jit, lambda f: lambda x: fad.vmap(f)(x[None]), lambda f: lambda x: fad.jvp(f, (x,), (x,))]


@pytest.mark.parametrize(
    ("x", "advice"),
    [
        (MASKED, r"MaskedArray.*x\.filled\(0\.0\), and np\.mean\(y, where=~mask\)"),
        (FIELDS.view(np.recarray), r"recarray.*a field is one, np\.asarray\(x\['name'\]\)"),
        (FIELDS[0], r"a field is one, x\['name'\]"),
    ],
    ids=["masked", "recarray", "record"],
)
@pytest.mark.parametrize("transform", [fad.grad, fad.vmap, lambda f: lambda x: fad.jvp(f, (x,), (x,))])
def test_an_argument_of_another_kind_says_how_it_is_made_a_plain_array(x, advice, transform):
    with pytest.raises(UnsupportedInputError, match=advice):
        transform(lambda a: 0.0)(x)


@pytest.mark.parametrize("transform", [fad.vmap, fad.hessian])
def test_a_structured_array_that_is_no_argument_there_says_how_its_fields_are(transform):
    with pytest.raises(UnsupportedInputError, match=r"a field is one, x\['name'\]"):
        transform(lambda a: np.sum(a["a"] ** 2))(FIELDS)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.ma.array(x, mask=MASK).sum(),
        lambda x: np.ma.masked_where(x > 1, x).sum(),
        lambda x: np.ma.masked_invalid(x).mean(),
        lambda x: np.ma.log(x).sum(),
        lambda x: (MASKED * x).sum(),
    ],
    ids=["array", "masked_where", "masked_invalid", "log", "operator"],
)
def test_what_makes_a_masked_array_says_how_to_do_without(f, transform):
    with pytest.raises(TracerConversionError, match=r"write np\.where\(mask, 0\.0, x\).*np\.mean\(x, where=~mask\)"):
        transform(f)(X)


def test_the_advice_for_masked_arrays_is_right():
    slope = fad.grad(lambda x: np.mean(x * x, where=~MASK) + np.sum(np.where(MASK, 0.0, x)))(X)
    np.testing.assert_allclose(slope, [2.0, 0.0, 4.0])


def _set_dtype(y):
    y.dtype = np.int64


def _set_strides(y):
    y.strides = (0,)


def _set_shape(y):
    y.shape = (3, 1)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize(
    ("change", "advice"),
    [
        (_set_dtype, r"write x = x\.astype\(dtype\)"),
        (_set_strides, r"write x = x\.T, x\[::2\]"),
        (_set_shape, r"write x = x\.reshape\(shape\)"),
    ],
)
def test_an_attribute_that_changes_the_memory_cannot_be_set(change, advice, transform):
    def f(x):
        y = x * 1.0
        y.dtype = y.dtype
        y.shape = y.shape
        change(y)
        return np.sum(y)

    with pytest.raises(AttributeError, match=advice):
        transform(f)(X)
