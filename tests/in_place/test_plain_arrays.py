"""Plain arrays that come from elsewhere than NumPy's functions in the module of the transformed function."""

import builtins
import copy
import math
import sys
import threading
import types

import numpy as np
import pytest
from in_place.test_in_place_programs import X, close, differences

import fad
from fad.errors import FadError, TracerConversionError

START = np.array([0.5, 1.5, 2.5, 3.5])
TABLES = {"start": np.array([3.0, 4.0, 5.0, 6.0]), "more": [START]}
RNG = np.random.default_rng(3)


def numpy_imported_in_the_function(x):
    import numpy as np

    y = np.zeros(4)
    y[1] = x[0] ** 2
    return np.sum(y * np.array([x[1], 1.0, x[2], 3.0])) + y[1]


def a_name_of_numpy_imported_in_the_function(x):
    from numpy import full, zeros

    def inner(v):
        import numpy as again
        import numpy.linalg as la

        b = again.empty(2)
        b[:] = v[:2]
        return la.norm(b)

    y = zeros(4)
    y[:] = x
    y *= full(4, x[0])
    return np.sum(y) * inner(x)


def a_copy_of_a_global_array(x):
    u = START.copy()
    u[1:-1] += x[0] * (u[2:] - 2 * u[1:-1] + u[:-2]) + x[1]
    v = TABLES["start"] * 2.0
    v[0] = x[2] ** 2
    w = -TABLES["more"][0]
    w[w < -1.0] *= x[3]
    return np.sum(u * v * w)


def a_copy_of_a_view_of_a_global_array(x):
    u = START[1:].reshape(3, 1).T + 0.0
    u[0] *= x[:3]
    return np.sum(u**2) + np.sum(START * x)


def numbers_drawn_by_a_generator_of_the_function(x):
    rng = np.random.default_rng(0)
    z = rng.normal(size=4)
    z[0] = x[0] ** 2
    w = rng.random((2, 2))
    w[0] *= x[:2]
    return np.sum(z * x) + np.sum(w**2) + rng.integers(3, size=2)[0]


def numbers_drawn_by_numpys_own_generator(x):
    np.random.seed(1)
    z = np.random.normal(size=4)
    z[1:] = x[1:] * z[1:]
    return np.sum(z**2)


def rounded_numbers(x):
    y, z, w, c = np.round(x), x // 0.5, np.floor(x[:2]), fad.stop_gradient(x)
    y[0] = x[0] ** 2
    z *= x
    w[1:] = x[3:]
    return np.sum(y * x) + np.sum(z) + np.sum(w**2) + c[0] * 0.0


def results_of_functions_of_plain_arrays(x):
    a = np.where(np.arange(4) > 1, 1.0, 2.0)
    a[0] = x[0] ** 2
    b = np.cumsum(np.array([1.0, 2.0, 3.0, 4.0]))
    b[1:] *= x[1:]
    return np.sum(a * b * x)


def a_closure():
    start, weights = np.array([1.0, 2.0, 3.0, 4.0]), np.arange(4.0)

    def from_a_closure(x):
        u = start.copy()
        u[0] = x[0] ** 2
        return np.sum(u * weights * x) + u[0]

    return from_a_closure


class Solver:
    __name__ = "an object"

    def __init__(self):
        self.state = np.array([1.0, 2.0, 3.0, 4.0])
        self.inner = types.SimpleNamespace(gain=np.full(4, 2.0))

    def __call__(self, x):
        u = self.state * 1.0
        u += x * self.inner.gain
        return np.sum(u**2)

    def run(self, x):
        u = self.state.copy()
        u[1] = x[1] * x[0]
        return np.sum(u * x)


PROGRAMS = [
    numpy_imported_in_the_function, a_name_of_numpy_imported_in_the_function, a_copy_of_a_global_array,
    a_copy_of_a_view_of_a_global_array, numbers_drawn_by_a_generator_of_the_function,
    numbers_drawn_by_numpys_own_generator, rounded_numbers, results_of_functions_of_plain_arrays, a_closure(),
    Solver(), Solver().run,
]  # fmt: skip
EVERY = pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)


@EVERY
@pytest.mark.filterwarnings("ignore::fad.errors.ImpureFunctionWarning")
def test_such_an_array_takes_traced_values_under_every_transform(f):
    before = START.copy()
    value, g = f(X.copy()), differences(f, X)
    close(fad.value_and_grad(f)(X)[0], value, f, 1e-13)
    close(fad.grad(f)(X), g, f)
    close([fad.jvp(f, (X,), (e,))[1] for e in np.eye(4)], g, f)
    close([fad.linearize(f, X)[1](e) for e in np.eye(4)], g, f)
    close(fad.vmap(f)(np.stack([X, X * 1.01])), [f(X.copy()), f(X * 1.01)], f, 1e-13)
    jitted = fad.jit(fad.value_and_grad(f))
    for x in (X, X * 1.01):
        close(jitted(x)[1], differences(f, x), f)
    close(fad.hessian(f)(X), np.stack([differences(lambda x, i=i: fad.grad(f)(x)[i], X) for i in range(4)]), f, 1e-5)
    np.testing.assert_array_equal(START, before)


def test_a_global_generator_goes_on_from_where_it_is():
    def f(x):
        z = RNG.normal(size=4)
        z[0] = x[0]
        return np.sum(z * x), z

    kept = copy.deepcopy(RNG).normal(size=8)
    kept[[0, 4]] = X[0]
    assert type(RNG) is np.random.Generator
    for k in (0, 4):
        g, z = fad.grad(f, has_aux=True)(X)
        np.testing.assert_array_equal(z, kept[k : k + 4])
        np.testing.assert_allclose(g, z + [X[0], 0, 0, 0])
    assert type(RNG) is np.random.Generator


def test_plain_numbers_written_into_an_array_from_outside_are_there_afterwards_as_a_plain_run_leaves_them():
    counts, part = np.zeros(3), None
    part = counts[1:]

    def f(x):
        u = START.copy()
        u[0] = x[0]
        counts[1] += 1.0
        part[0] *= 2.0
        return np.sum(u * x) * counts[1] + np.sum(part)

    f(X)  # the first run may be made again: it writes the traced value before it counts
    np.testing.assert_array_equal(counts, [0.0, 2.0, 0.0])
    expected = 6.0 * (START * [0, 1, 1, 1] + [2 * X[0], 0, 0, 0])
    np.testing.assert_allclose(fad.grad(f)(X), expected)
    np.testing.assert_array_equal(counts, [0.0, 6.0, 0.0])
    assert type(counts) is np.ndarray
    assert np.shares_memory(part, counts)


TARGET = np.zeros(3)


def into_a_global(x):
    TARGET[0] = x[0] ** 2
    return np.sum(TARGET)


def into_a_global_by_out(x):
    np.multiply(x[:3], 2.0, out=TARGET)
    return np.sum(TARGET)


def into_a_global_in_place(x):
    view = TARGET[1:]
    view += x[:2]
    return np.sum(TARGET)


def into_a_default_argument(x, buffer=np.zeros(3)):  # noqa: B008 (this is the point)
    buffer[0] = x[0]
    return np.sum(buffer)


@pytest.mark.parametrize("f", [into_a_global, into_a_global_by_out, into_a_global_in_place, into_a_default_argument])
def test_a_traced_value_written_into_an_array_from_outside_is_an_error_that_names_the_line(f):
    TARGET[:] = 0.0
    vmap = lambda f: lambda x: fad.vmap(f)(x[None])
    for transform in (fad.grad, fad.grad, lambda f: lambda x: fad.jvp(f, (x,), (x,)), vmap):
        with pytest.raises(FadError, match=r"test_plain_arrays\.py:\d+: ") as caught:
            transform(f)(X)
        assert "Make the array in the function" in str(caught.value)
    np.testing.assert_array_equal(TARGET, np.zeros(3))
    assert type(TARGET) is np.ndarray


def test_everything_is_the_users_own_again_after_an_error_and_in_other_threads():
    seen = []

    def f(x):
        import numpy as np

        u = START.copy()
        u[0] = x[0]
        thread = threading.Thread(target=lambda: seen.append((type(START * 1.0), type(np.zeros(2)))))
        thread.start()
        thread.join()
        raise KeyError

    imported, module = builtins.__import__, sys.modules["numpy"]
    for _ in range(2):
        with pytest.raises(KeyError):
            fad.grad(f)(X)
        assert builtins.__import__ is imported
        assert sys.modules["numpy"] is module
        assert type(START) is np.ndarray
    assert seen == [(np.ndarray, np.ndarray)] * 2


def test_a_lost_derivative_stays_an_error():
    def f(x):
        u = START.copy()
        u[0] = math.ulp(x[0])
        return np.sum(u)

    with pytest.raises(TracerConversionError, match="ulp"):
        fad.grad(f)(X)


def test_modules_of_the_same_code_that_nobody_finds_by_name_are_each_learned():
    source = """
V = np.ones(4)
def f(x):
    y = np.asarray(V * x[0])
    z = np.zeros(4)
    z[:] = y * x
    return np.sum(z)
"""

    class Loaded:
        def __init__(self):
            names = {"np": np, "__name__": "loaded"}
            exec(source, names)
            self.get = lambda: names["f"]

    def of(loaded):
        return lambda x: TABLES["start"].sum() * loaded.get()(x)

    for _ in range(4):
        np.testing.assert_allclose(fad.grad(of(Loaded()))(X), differences(of(Loaded()), X), 1e-6)
