"""``float(x)`` and ``complex(a, b)`` of traced values: a Python number that keeps its derivative."""

import functools
import linecache
import math

import numpy as np
import pytest

import fad

X = np.array([1.0, 2.0])


def squares(x):
    return float(np.sum(x**2))


def distance(x):
    return 2 * float(np.sqrt(x[0] ** 2 + x[1] ** 2))


def filled(x):
    out = np.zeros(3, dtype=float)
    out[0] = float(x[0])
    out[1:] = float(x[1]) * 3
    return np.sum(out.astype(float) ** 2)


def on_the_unit_circle(x):
    return abs(complex(math.cos(x[0]), math.sin(x[0])) * (1 + x[1]))


def of_several_kinds(x):
    if not isinstance(float(x[0]), float):
        return 0.0
    return float("2") * float(x[0]) + complex(x[1]).real * float(3) + float(np.array([x[0] * 2]).sum())


def mapped(x):
    first, second = [float(v) for v in x]
    return first * second


PROGRAMS = {
    squares: lambda x: 2 * x,
    distance: lambda x: 2 * x / np.hypot(*x),
    filled: lambda x: np.array([2 * x[0], 36 * x[1]]),
    on_the_unit_circle: lambda x: np.array([0.0, 1.0]),
    of_several_kinds: lambda x: np.array([4.0, 3.0]),
    mapped: lambda x: x[::-1],
}


@pytest.mark.parametrize("f", PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_that_converts_has_its_derivatives_in_every_transform(f):
    wanted = PROGRAMS[f](X)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-12, atol=1e-12)
    value, gradient = fad.value_and_grad(f)(X)
    assert value == f(X)
    close(gradient, wanted)
    close(fad.jvp(f, (X,), (np.ones(2),))[1], np.sum(wanted))
    close(fad.vmap(f)(np.stack([X, 2 * X])), [f(X), f(2 * X)])
    close(fad.vmap(fad.grad(f))(np.stack([X, X]))[1], wanted)
    h = 1e-6
    second = [(fad.grad(f)(X + h * e) - fad.grad(f)(X - h * e)) / (2 * h) for e in np.eye(2)]
    np.testing.assert_allclose(fad.hessian(f)(X), second, rtol=1e-6, atol=1e-6)
    fast, steep = fad.jit(f), fad.jit(fad.grad(f))
    for x in (X, X + 0.5, X):
        close(fast(x), f(x))
        close(steep(x), PROGRAMS[f](x))


def test_a_converted_number_widens_nothing():
    f = lambda x, w: np.sum(float(x[0]) * w)
    w = np.ones(3, np.float32)
    assert fad.grad(f, 1)(X, w).dtype == np.float32
    assert fad.value_and_grad(f)(X, w)[0].dtype == np.float32
    assert fad.grad(f)(X.astype(np.float32), w).dtype == np.float32


def test_what_has_no_such_number_is_refused_as_by_python():
    with pytest.raises(TypeError, match="only length-1 arrays"):
        fad.grad(lambda x: float(x))(X)
    with pytest.raises(TypeError, match="not 'complex'"):
        fad.grad(lambda x: float(x[0] * 1j))(X)


def test_names_are_pythons_own_before_and_after():
    assert fad.grad(squares)(X).tolist() == [2.0, 4.0]
    assert "float" not in globals()


def module_of(text, name):
    """Return the names of a module that has this text in a file of its own."""
    lines = text.splitlines(keepends=True)
    linecache.cache[name] = len(text), None, lines, name
    space = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space


CONVERTS = "def f(x):\n    return float(x) * 2\n"


@pytest.mark.parametrize("question", ["type(x) is float", "float is type(x)", "x is None or isinstance(x, float)"])
def test_a_module_that_may_ask_for_the_class_itself_keeps_the_error(question):
    space = module_of(f"{CONVERTS}def g(x):\n    return {question}\n", f"/asking {question}.py")
    with pytest.raises(fad.errors.TracerConversionError, match="float"):
        fad.grad(space["f"])(1.0)
    assert "float" not in space


def test_a_module_has_its_names_back_afterwards():
    space = module_of(f"{CONVERTS}def g(x):\n    return type(x) == float, type(x) in (int, float)\n", "/alone.py")
    for _ in range(2):
        assert fad.grad(space["f"])(1.0) == 2.0
        assert "float" not in space
    assert space["g"](1.0) == (True, True)
