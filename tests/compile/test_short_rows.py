"""Large arrays of short rows are computed with their last two axes exchanged, and give what NumPy gives."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.compile.legalize.layouts.short_rows import exchange_short_rows, has_short_rows
from fad.compile.pipeline import optimise

RNG = np.random.default_rng(0)
X = RNG.normal(size=(40, 3))
TABLE = RNG.normal(size=(40, 40, 3))
MASK = RNG.normal(size=(40, 40, 3)) > 0


def differences(x):
    return x[:, None, :] - x[None, :, :]


def forces(x):
    d = differences(x)
    return (d / np.sqrt((d**2).sum(-1) + 0.1)[..., None] ** 3).sum(1)


def in_place(x):
    d = differences(x)
    d[:, :, 2] *= 0.5
    d -= np.rint(d)
    return (d * d).sum((0, 2))


PROGRAMS = {
    "sums of squares": lambda x: (differences(x) ** 2).sum(-1),
    "forces": forces,
    "sums over the first axis": lambda x: np.exp(-(differences(x) ** 2)).sum(0),
    "sums over two axes": lambda x: np.cos(differences(x)).sum((1, 2)),
    "sums over the first axis and rows": lambda x: np.cos(differences(x)).sum((0, 2), keepdims=True),
    "kept axes": lambda x: differences(x) / np.abs(differences(x) + 3).sum(-1, keepdims=True) @ np.ones(3),
    "the sum of all": lambda x: np.tanh(differences(x) + 0.3).sum(),
    "extremes": lambda x: differences(x).max(-1) + np.sin(differences(x)).min(1, keepdims=True).sum(2),
    "one coordinate": lambda x: differences(x)[..., 0] * differences(x)[..., -1],
    "one row": lambda x: (differences(x) ** 2)[3],
    "one row of one point": lambda x: np.sin(differences(x))[3, 5].sum(),
    "some rows": lambda x: (differences(x) ** 2)[1:37, ::2].sum(-1),
    "some coordinates": lambda x: (differences(x) ** 2)[:, :, :2].sum(-1),
    "rows backwards": lambda x: (differences(x) ** 3)[::-1, :, ::-1].sum(-1),
    "a constant table": lambda x: (np.exp(differences(x)) * TABLE).sum(-1),
    "a mask": lambda x: np.where(MASK, differences(x), 2.0).sum(0),
    "a mask of its own": lambda x: (differences(x) > 0.3).sum(-1) + (differences(x) > 0).any(-1),
    "a number for each coordinate": lambda x: (differences(x) * np.array([1.0, 2.0, 3.0])).sum(-1),
    "a number for each pair": lambda x: (differences(x) * x[:, :1, None] * x[:, 1][:, None, None]).sum(-1),
    "three long axes": lambda x: (x[:36, None, None] - x[None, :33, None] * x[None, None, :34]).sum(-1),
    "two groups": lambda x: (differences(x) ** 2).sum(-1) @ np.cos(differences(x)).sum(-1),
    "periodic": lambda x: ((differences(x) - np.rint(differences(x))) ** 2).sum(-1),
    "written in place": in_place,
    "a matrix product of rows": lambda x: (np.sin(differences(x)) @ np.ones((3, 2))).sum(-1),
    "sorted rows": lambda x: (np.sort(differences(x)) * np.arange(3.0)).sum(-1),
    "an array that is a result": lambda x: np.sin(differences(x)),
    "angles": lambda x: np.einsum("ijk,ijk->ij", differences(x), np.cos(differences(x))),
    "lengths": lambda x: np.linalg.norm(differences(x) + 0.01, axis=-1),
    "reshaped": lambda x: (differences(x).reshape(1, 40, 40, 3) ** 2).sum((0, 3)),
    "flat": lambda x: (differences(x) ** 2).reshape(-1) * 2,
}
EVERY = pytest.mark.parametrize("name", PROGRAMS)


@EVERY
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_compiled_programs_compute_what_numpy_computes(name, dtype):
    f, x = PROGRAMS[name], X.astype(dtype)
    wanted, compiled = f(x), fad.jit(f)
    for _ in range(2):
        found = compiled(x)
        assert (found.shape, found.dtype) == (np.shape(wanted), wanted.dtype)
        np.testing.assert_allclose(found, wanted, rtol=2e3 * np.finfo(dtype).eps, atol=200 * np.finfo(dtype).eps)


@EVERY
def test_compiled_gradients_are_those_without_a_compiler(name):
    f = lambda x: np.sum(np.sin(1.0 * PROGRAMS[name](x)))
    gradient = fad.grad(f)
    np.testing.assert_allclose(fad.jit(gradient)(X), gradient(X), rtol=1e-10, atol=1e-11)
    along = lambda x: fad.jvp(gradient, (x,), (np.cos(x),))[1]
    np.testing.assert_allclose(fad.jit(along)(X), along(X), rtol=1e-9, atol=1e-10)


def test_integers_keep_their_dtypes():
    x = RNG.integers(-9, 9, (40, 3)).astype(np.int32)
    for f in (lambda x: differences(x).sum(-1), lambda x: differences(x).max(0), lambda x: (differences(x) > 2).sum(1)):
        wanted, found = f(x), fad.jit(f)(x)
        np.testing.assert_array_equal(found, wanted)
        assert found.dtype == wanted.dtype


def shapes(f, *args):
    graph = exchange_short_rows(optimise(fad.make_graph(f)(*args)))
    return [graph.types[o].shape for eq in graph.equations for o in eq.outs]


@pytest.mark.parametrize("name", ["sums of squares", "forces", "one coordinate", "a constant table", "periodic"])
def test_no_array_of_short_rows_is_left(name):
    found = shapes(fad.grad(lambda x: np.sum(np.sin(PROGRAMS[name](x)))), X)
    assert not any(map(has_short_rows, found))
    assert (40, 3, 40) in found


@pytest.mark.parametrize("name", ["a matrix product of rows", "sorted rows", "an array that is a result", "flat"])
def test_arrays_that_something_else_reads_or_gives_stay_as_they_are(name):
    assert (40, 3, 40) not in shapes(PROGRAMS[name], X)


def test_an_argument_of_short_rows_stays_as_it_is():
    assert (40, 3, 40) not in shapes(lambda x, table: np.sum((x[:, None] * table).sum(-1)), X, TABLE)


@pytest.mark.parametrize("shape", [(40, 40), (5, 40, 3), (40, 40, 17), (40, 5, 3), (40, 40, 1)])
def test_other_arrays_have_no_short_rows(shape):
    assert not has_short_rows(shape)
