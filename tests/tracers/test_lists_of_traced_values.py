"""Lists and tuples of traced numbers are arrays wherever NumPy takes them for such."""

import numpy as np
import pytest
from numpy import sqrt
from numpy.linalg import norm

import fad

X = np.array([1.3, 2.4])
D = np.array([1.0, 0.5])


def added_in_place(x):
    y = np.zeros(3)
    y[:2] += [x[0], x[1]]
    y *= (x[1], 1.0, x[0])
    return y


PROGRAMS = {
    "array times list": lambda x: np.array([1.0, 2.0]) * [x[0], x[1]],
    "array times tuple": lambda x: np.array([1.0, 2.0]) * (x[0], x[1]),
    "list minus array": lambda x: [x[0], x[1]] - np.array([1.0, 2.0]),
    "traced array times tuple": lambda x: np.asarray(x) * (x[1], x[0]),
    "tuple plus traced array": lambda x: (x[1], 2.0) + np.asarray(x),
    "matrix times tuple": lambda x: np.ones((2, 2)) @ (x[0], x[1]) @ [1.0, x[1]],
    "in place": added_in_place,
    "ufunc": lambda x: np.exp([x[0], x[1]]),
    "imported ufunc": lambda x: sqrt((x[0], x[1])),
    "ufunc of two": lambda x: np.hypot([x[0], x[1]], (x[1], 2.0)),
    "ufunc of a number and a tuple": lambda x: np.hypot(x[0], (x[1], 2.0)),
    "generalised ufunc": lambda x: np.matmul([[x[0], x[1]]], [1.0, 2.0]),
    "predicate": lambda x: np.isfinite([x[0], x[1]]) * x[0],
    "reduce": lambda x: np.maximum.reduce([[x[0], x[1]], [2.0, x[0]]]),
    "accumulate": lambda x: np.add.accumulate([x[0], x[1]]),
    "outer": lambda x: np.subtract.outer([x[0], x[1]], [x[0], 1.0]),
    "norm": lambda x: np.linalg.norm([x[0], x[1]]),
    "imported norm": lambda x: norm((x[0], x[1])),
    "solve": lambda x: np.linalg.solve([[x[0], 1.0], [0.0, x[1]]], [x[0], 2.0]),
    "fft": lambda x: np.fft.fft([x[0], x[1]]).real,
    "shape": lambda x: np.shape([[x[0], x[1]]])[1] * x[0],
    "ndim": lambda x: np.ndim([[x[0], x[1]]]) * x[0],
    "size": lambda x: (np.size([[x[0], x[1]]]) + np.size([[x[0], x[1]]], 0)) * x[0],
    "size of a list with gaps": lambda x: np.size([None, x[0], x[1]], 0) * x[0],
    "iscomplexobj": lambda x: np.iscomplexobj([x[0], x[1]]) * x[0],
    "isrealobj": lambda x: np.isrealobj([x[0], x[1]]) * x[0],
    "real": lambda x: np.real([x[0], x[1] * 1j]),
    "imag": lambda x: np.imag([x[0], x[1] * 1j]),
    "angle": lambda x: np.angle([x[0] + 1j, x[1]]),
    "isclose": lambda x: np.isclose([x[0], x[1]], [1.3, 2.0]) * x[0],
    "allclose": lambda x: np.allclose([x[0], x[1]], [1.3, 2.0]) * x[0],
    "where": lambda x: np.where([True, False], [x[0], x[1]], [1.0, 2.0]),
    "select": lambda x: np.select([[True, False]], [[x[0], x[1]]], 3.0),
    "clip": lambda x: np.clip([x[0], x[1]], 1.5, (x[1], x[0])),
    "round": lambda x: np.round([x[0], x[1]]) * x[0],
    "nan_to_num": lambda x: np.nan_to_num([x[0], np.nan]),
    "sinc": lambda x: np.sinc([x[0], x[1]]),
    "trim_zeros": lambda x: np.trim_zeros([0.0, x[0], x[1]])[1],
    "fromiter": lambda x: np.fromiter((v * v for v in (x[0], x[1])), float, 2),
    "matrix_transpose": lambda x: np.matrix_transpose([[x[0], x[1]]]),
    "linalg.matmul": lambda x: np.linalg.matmul([[x[0], x[1]]], [[1.0], [2.0]]),
    "linalg.diagonal": lambda x: np.linalg.diagonal([[x[0], x[1]], [1.0, x[0]]]),
    "linalg.trace": lambda x: np.linalg.trace([[x[0], x[1]], [1.0, x[0]]]),
    "linalg.svdvals": lambda x: np.linalg.svdvals([[x[0], x[1]], [1.0, x[0]]]),
    "gradient": lambda x: np.gradient([[x[0], x[1]], [1.0, x[0]]], axis=0),
    "spacing": lambda x: np.gradient(np.array([1.0, 2.0, 4.0]) * x[0], [0.0, x[0], x[1]]),
    "edges": lambda x: np.histogram([1.0, 2.0], [0.5, x[0], x[1]])[1],
    "histogram": lambda x: np.histogram([x[0], x[1]], bins=2)[1],
    "union1d": lambda x: np.union1d([x[0], x[1]], [2.0]),
}


def difference(f):
    return (np.asarray(f(X + 1e-6 * D)) - np.asarray(f(X - 1e-6 * D))) / 2e-6


@pytest.mark.parametrize("name", PROGRAMS)
def test_they_are_arrays_where_numpy_takes_them_for_such(name):
    f = PROGRAMS[name]
    want = np.asarray(f(X))
    value, tangent = fad.jvp(f, (X,), (D,))
    assert np.asarray(value).dtype == want.dtype
    np.testing.assert_allclose(value, want, rtol=1e-12)
    np.testing.assert_allclose(tangent, difference(f), rtol=1e-6, atol=1e-8)
    of_numbers, _ = fad.jvp(lambda a, b: f([a, b]), (1.3, 2.4), (1.0, 0.5))
    np.testing.assert_allclose(of_numbers, want, rtol=1e-12)
    gradient = fad.grad(lambda x: np.sum(f(x)))(X)
    np.testing.assert_allclose(gradient @ D, np.sum(tangent), rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(fad.vmap(f)(np.stack([X, X])), [want, want], rtol=1e-12)
    np.testing.assert_allclose(fad.jit(f)(X), want, rtol=1e-12)
    np.testing.assert_allclose(fad.jit(fad.grad(lambda x: np.sum(f(x))))(X), gradient, rtol=1e-12, atol=1e-14)
