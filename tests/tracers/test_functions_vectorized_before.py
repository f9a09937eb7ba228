"""What ``numpy.vectorize`` made before a transform runs maps traced arrays as what it makes while one runs."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pytest

import fad

X = np.array([1.5, -2.0, 0.5])
EXPECTED = np.array([3.0, -1.0, 1.0])  # the slopes of `bend`


def bend(a):
    return a * a if a > 0 else -a


square_up = np.vectorize(bend)


@np.vectorize
def decorated(a):
    return bend(a)


@np.vectorize(otypes=[float], excluded={"shift"})
def shifted(a, shift=None):
    return bend(a) + shift[1]


class Model:
    def __init__(self):
        self.own = np.vectorize(bend, otypes=[float])

    def __call__(self, x):
        return self.own(x)


MODEL = Model()
norms = np.vectorize(np.linalg.norm, signature="(n)->()")
TABLE = {"bend": square_up}


FUNCTIONS = [
    square_up, decorated, MODEL, lambda x: shifted(x, shift=[1.0, 2.0]), lambda x: TABLE["bend"](x),
    lambda x: decorated(x),
]  # fmt: skip


@pytest.mark.parametrize("f", FUNCTIONS)
def test_they_are_differentiated_compiled_and_mapped(f):
    total = lambda x: np.sum(f(x))
    np.testing.assert_allclose(fad.grad(total)(X), EXPECTED)
    np.testing.assert_allclose(fad.jvp(total, (X,), (X,))[1], EXPECTED @ X)
    np.testing.assert_allclose(fad.jit(fad.grad(total))(X), EXPECTED)
    np.testing.assert_array_equal(fad.jit(f)(X), f(X))
    np.testing.assert_array_equal(fad.vmap(total)(np.stack([X, -X])), [total(X), total(-X)])


def test_they_map_over_small_arrays():
    rows = np.array([[3.0, 4.0], [5.0, 12.0]])
    np.testing.assert_allclose(fad.grad(lambda x: norms(x).sum())(rows), rows / np.array([[5.0], [13.0]]))


def test_beside_traced_values_they_are_numpys_for_plain_arrays():
    seen = []

    def program(x):
        y = decorated(x)
        plain = decorated(np.array([2, -1]))  # integers, as the first result is one
        seen.append((type(plain), plain.dtype, isinstance(decorated, type(TABLE["bend"])), decorated.__name__))
        assert copy.copy(square_up)(2) == pickle.loads(pickle.dumps(square_up))(2) == 4
        return np.sum(y * plain.sum())

    np.testing.assert_allclose(fad.grad(program)(X), 5 * EXPECTED)
    assert seen == [(np.ndarray, np.dtype(int), True, "decorated")]
    assert type(decorated) is np.vectorize


OF_LIBRARY = """
import numpy as np, scipy.linalg, fad
exponential = np.vectorize(scipy.linalg.expm, signature="(m,m)->(m,m)")
def f(x):
    y = np.zeros((2, 2))
    y[0] = x
    return np.sum(exponential(y) * x)
x, e = np.array([0.3, 0.7]), np.array([1e-6, 0.0])
slope = fad.grad(f)(x)
assert np.isclose(slope[0], (f(x + e) - f(x - e)) / 2e-6), slope
assert np.allclose(fad.jit(fad.grad(f))(x), slope)
"""


def test_a_librarys_function_that_was_not_known_in_the_first_run_is_fads_in_the_second():
    ended = subprocess.run([sys.executable, "-c", OF_LIBRARY], capture_output=True, text=True, check=False)
    assert ended.returncode == 0, ended.stderr
