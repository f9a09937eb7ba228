"""A traced value may be written into the new array that any function of NumPy gives."""

from __future__ import annotations

import importlib
import types

import numpy as np
import pytest

import fad

mask = np.array([True, False])
MADE = {
    "ufunc of a list": lambda: np.cos([0.0, 1.0]),
    "reduction of a list": lambda: np.sum([[1.0, 2.0], [3.0, 4.0]], axis=0),
    "accumulation of a list": lambda: np.add.accumulate([1.0, 2.0]),
    "where with a mask from outside": lambda: np.where(mask, 1.0, 0.0),
    "mgrid": lambda: np.mgrid[0:2.0, 0:2.0][0, 0],
    "ogrid": lambda: np.ogrid[0:2.0, 0:2.0][1][0],
    "meshgrid of lists": lambda: np.meshgrid([0.0, 1.0], [0.0, 1.0])[0][0],
    "copy of a repeated number": lambda: np.broadcast_to(1.0, (2,)).copy(),
    "broadcast_arrays of a number": lambda: np.broadcast_arrays(1.0, [0.0, 0.0])[0] * 1.0,
    "window": lambda: np.hanning(4)[1:3],
    "interp": lambda: np.interp([0.5, 0.7], [0, 1], [1, 2.0]),
    "bincount": lambda: np.bincount([0, 1], weights=[1.0, 2.0]),
    "unique": lambda: np.unique([2.0, 1.0]),
    "polyfit": lambda: np.polyfit([0.0, 1.0, 2.0], [0.0, 1.0, 2.0], 1),
    "linalg": lambda: np.linalg.inv([[1.0, 0.0], [0.0, 2.0]])[0],
    "fft": lambda: np.fft.fftfreq(2),
    "quadrature": lambda: np.polynomial.legendre.leggauss(2)[1],
    "nonzero": lambda: np.nonzero([1, 2])[0] * 1.0,
    "RandomState": lambda: np.random.RandomState(0).rand(2),
}


def _writer(make):
    def f(x):
        v = make()
        v[0] = x[0] * x[1]
        return np.sum(v * v)

    return f


X = np.array([3.0, 4.0])


@pytest.mark.parametrize("name", MADE)
def test_a_traced_value_is_written_into_it(name):
    f = _writer(MADE[name])
    slope = [2 * 12 * 4.0, 2 * 12 * 3.0]
    for _ in range(2):  # the second call knows what the first found out
        value, gradient = fad.value_and_grad(f)(X)
        np.testing.assert_allclose(value, f(X), rtol=1e-15)
        np.testing.assert_allclose(gradient, slope)
    np.testing.assert_allclose(fad.jvp(f, (X,), (X,))[1], np.dot(slope, X))
    np.testing.assert_allclose(fad.vmap(f)(np.stack([X, X])), [f(X), f(X)])
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), slope)
    np.testing.assert_allclose(fad.grad(fad.checkpoint(f))(X), slope)


def test_a_view_of_an_array_from_outside_is_not_written_in_silence():
    outside = np.arange(2.0)

    def f(x):
        v = np.cos([0.0, 1.0])
        v[0] = x[0]
        np.reshape(outside, 2)[0] = x[1]
        return np.sum(v)

    with pytest.raises((fad.errors.ItemAssignmentError, fad.errors.TracerConversionError)):
        fad.grad(f)(X)
    assert outside.tolist() == [0, 1]


def test_numpy_is_itself_again_afterwards():
    own = np, np.cos, np.hanning
    fad.grad(_writer(MADE["window"]))(X)
    assert (np, np.cos, np.hanning) == own
    assert type(np.cos(X)) is np.ndarray


def _shuffled_and_chosen(x):
    rng = np.random.default_rng(5)
    y = x.copy()
    rng.shuffle(y)
    return np.sum(y * np.arange(2.0)) + rng.choice(x)


def _chosen_along_an_axis(x):
    rng = np.random.default_rng(5)
    return np.sum(rng.choice(np.outer(x, x), size=3, axis=1) * np.arange(6.0).reshape(2, 3))


def _permuted(x):
    return np.sum(np.random.default_rng(5).permuted(x) * np.arange(2.0))


def _permuted_along_an_axis(x):
    y = np.random.default_rng(5).permuted(np.outer(x, [1.0, 2.0, 3.0]), axis=1)
    return np.sum(y * np.arange(6.0).reshape(2, 3))


def _chosen_by_an_older_generator(x):
    return np.sum(np.random.RandomState(5).choice(x, 3) * np.arange(3.0))


@pytest.mark.parametrize(
    "f",
    [_shuffled_and_chosen, _chosen_along_an_axis, _permuted, _permuted_along_an_axis, _chosen_by_an_older_generator],
    ids=lambda f: f.__name__.strip("_"),
)
def test_generators_choose_and_permute_traced_arrays(f):
    step = 1e-6 * np.eye(2)
    differences = [(f(X + h) - f(X - h)) / 2e-6 for h in step]
    np.testing.assert_allclose(fad.grad(f)(X), differences, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), differences, rtol=1e-8, atol=1e-8)
    np.testing.assert_allclose(fad.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)], rtol=1e-15)
    assert fad.jit(f)(X) == f(X)


def test_a_buffer_of_others_is_not_written_in_silence():
    held = bytearray(16)

    def f(x):
        np.frombuffer(held)[0] = x[0]
        return np.sum(x)

    for _ in range(2):
        with pytest.raises(fad.errors.TracerConversionError):
            fad.grad(f)(X)
    assert held == bytearray(16)


def test_what_is_put_behind_a_handle_keeps_its_layout():
    def f(x):
        w = np.hanning(3)
        w[0] = x[0]
        return np.sum(w), np.reshape(np.argwhere(np.ones((1, 3))), -1, order="A")

    for _ in range(2):
        (_, places), _ = fad.value_and_grad(f, has_aux=True)(X)
        assert places.tolist() == [0, 0, 0, 0, 1, 2]


def test_an_array_made_by_its_class_takes_traced_values_beside_one_that_a_function_gave():
    def program(x):
        a = np.ndarray(4)
        a[:] = x
        b = np.cos([0.0, 1.0, 2.0, 3.0])
        b += a
        return np.sum(a * b)

    x = np.array([2.0, 1.0, 2.0, 1.0])
    wanted = 2 * x + np.cos(np.arange(4.0))
    for derivative in (fad.grad(program), fad.jit(fad.grad(program)), fad.jacfwd(program)):
        np.testing.assert_allclose(derivative(x), wanted, rtol=1e-15)


MADE_BY_CLASS = """
import numpy as np

def energies(x, n):
    found = np.ndarray(n, dtype=np.float64)
    found[0] = (x * x).sum()
    for i in range(1, n):
        found[i] = found[i - 1] * x[0]
    return found
"""


def test_an_array_made_by_its_class_takes_traced_values_in_a_function_that_no_code_names(tmp_path, monkeypatch):
    (tmp_path / "energies_of.py").write_text(MADE_BY_CLASS, encoding="utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    program = types.SimpleNamespace(function=importlib.import_module("energies_of").energies)

    def loss(x):
        if type(x) is np.ndarray:  # compares classes, so that the name has to stay NumPy's own here
            return 0.0
        start = np.ones(2)
        start[0] = x[1]
        return np.sum(program.function(x, 3)) * start[0]

    x = np.array([2.0, 3.0])
    wanted = 3 * (1 + 2 + 4) * 2 * x + 13 * np.array([3 * (1 + 4), 1 + 2 + 4])
    for _ in range(3):
        np.testing.assert_allclose(fad.grad(loss)(x), wanted, rtol=1e-15)
        np.testing.assert_allclose(fad.jacfwd(loss)(x), wanted, rtol=1e-15)


KNOWN = np.array([1.0, 3.0, 2.0])


def test_the_class_of_arrays_has_its_methods_where_a_function_also_makes_arrays_by_it():
    def program(x):
        a = np.ndarray(2)
        a[:] = x
        return np.sum(a * np.ndarray.max(KNOWN)) + np.ndarray.__getitem__(KNOWN, 2)

    value, slope = fad.value_and_grad(program)(X)
    assert value == program(X)
    assert slope.tolist() == [3.0, 3.0]


def test_the_class_of_an_empty_array_tells_arrays_from_numbers_where_others_take_traced_values():
    def first(x):
        kind = type(np.array([]))
        if isinstance(x, kind):
            x = x[0]
        made, results = np.zeros(1), np.append(np.array([]), 0.0)
        made[0] = x
        results[0] = x * x
        return made[0] + results[0]

    one = np.array([3.0])
    assert [fad.grad(first)(3.0), fad.grad(first)(one)[0], fad.vmap(first)(one)[0]] == [7, 7, 12]


def test_values_are_added_at_a_tuple_of_places_where_other_results_take_traced_values():
    def f(x):
        y = np.cos([0.0, 1.0])
        y[0] = x[0]
        columns, z = np.arange(2), np.zeros((2, 2))
        np.add.at(z, (slice(None), columns), [x[0], x[1]])
        np.add.at(z, (0, [1, 1]), [x[1], x[0]])
        return z[0] @ z[0] + y[0]

    np.testing.assert_allclose(fad.grad(f)(np.array([1.0, 2.0])), [13.0, 20.0])
