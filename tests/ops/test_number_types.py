"""``float(x)``, ``complex(a, b)`` and ``np.float32(x)`` of traced values: numbers that keep their derivative."""

import functools
import linecache
import math
import pickle

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


TABLE = {"double": np.float64, "python": float}
REAL = np.double


class Model:
    kind = np.float64

    def __init__(self):
        self.make = float

    def square(self, x):
        return self.kind(x[0]) ** 2 * self.make(x[1])


MODEL = Model()


class Temperature:
    def __init__(self, value):
        self.value = value

    def __float__(self):
        return float(self.value)

    def __complex__(self):
        return complex(self.value, 1.0)


def by_default(x, dtype=np.float64, made=float):
    return dtype(x[0]) * made(x[1])


def in_a_closure(kind):
    def product(x):
        return kind(x[0]) * x[1]

    return product


def of_numpys_classes(x):
    a, b = np.float64(x)
    ab = np.asarray(np.float64([a, b]), dtype=np.float64)
    return np.double(a) * np.longdouble(b) + REAL(ab[0]) + np.complex128(x[1] * 1j).imag + np.float64(2)


def of_functions_that_take_classes(x):
    first, second = map(np.float64, x)
    return first * second + sum(map(float, x))


PROGRAMS = {
    of_numpys_classes: lambda x: np.array([x[1] + 1, x[0] + 1]),
    of_functions_that_take_classes: lambda x: x[::-1] + 1,
    (lambda x: TABLE["double"](x[0]) * TABLE["python"](x[1])): lambda x: x[::-1],
    (lambda x: float(Temperature(x[0])) * np.float64(Temperature(x[1]))): lambda x: x[::-1],
    (lambda x: complex(Temperature(x[0])).real * abs(complex(Temperature(2.0)).imag)): lambda x: np.array([1.0, 0.0]),
    MODEL.square: lambda x: np.array([2 * x[0] * x[1], x[0] ** 2]),
    by_default: lambda x: x[::-1],
    in_a_closure(float): lambda x: x[::-1],
    in_a_closure(np.float64): lambda x: x[::-1],
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


@pytest.mark.parametrize("real", [1.5, -0.0, math.inf, 2 - 0j, complex(-0.0, math.inf)])
@pytest.mark.parametrize("imaginary", [-0.0, math.inf, 3.0, 1j, complex(1, -0.0)])
def test_a_complex_number_has_the_parts_that_python_gives_it(real, imaginary):
    wanted = repr(complex(real, imaginary))
    made = lambda a, b: complex(a, b)
    ones = [1.0 + 0 * x if np.isfinite(x) else 1.0 for x in (real, imaginary)]
    assert repr(complex(fad.jvp(lambda a: made(a, imaginary), (real,), (ones[0],))[0])) == wanted
    assert repr(complex(fad.jvp(lambda b: made(real, b), (imaginary,), (ones[1],))[0])) == wanted
    assert repr(complex(fad.jit(made)(real, imaginary))) == wanted


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64, np.complex64, np.complex128])
def test_a_numpy_number_has_its_dtype_and_no_axes(kind):
    seen = []

    def f(x):
        y = KINDS[kind.__name__](x)
        seen.append((y.dtype, y.shape, isinstance(y, kind), (y * np.ones(1, np.float16)).dtype))
        return (y * y).real

    KINDS[kind.__name__] = kind
    f(1.5)
    for transform in (fad.grad, fad.jit, lambda f: lambda x: fad.jvp(f, (x,), (1.0,))):
        transform(f)(1.5)
    assert {*seen} == {seen[0]}
    assert fad.grad(f)(1.5) == 3.0


KINDS = {}


@pytest.mark.parametrize("convert", [lambda x: float(x), lambda x: np.float64(x), lambda x: TABLE["python"](x)])
def test_a_recorded_program_asks_for_no_number_that_it_converts(convert):
    calls = []

    def f(x):
        calls.append(x)
        return convert(x) * 2

    jitted = fad.jit(f)
    assert [jitted(x) for x in (1.0, 2.0, 3.0, 4.0)] == [2.0, 4.0, 6.0, 8.0]
    assert len(calls) <= 3


NUMBERS_OF = (lambda x: float(x), lambda x: x.item(), lambda x: x.tolist(), lambda x: complex(x, 1))


@pytest.mark.parametrize("convert", NUMBERS_OF)
def test_a_jitted_function_returns_the_python_number(convert):
    f = fad.jit(lambda x: convert(np.asarray(x)))
    for x in (np.float32(2), np.float32(2), np.float32(3)):
        assert repr(f(x)) == repr(convert(x))


def test_what_stands_for_a_class_is_that_to_numpy():
    def f(x):
        y = np.float32(x)
        assert np.dtype(np.float32) == y.dtype
        assert y.dtype in (np.float32, np.float64)
        assert np.float32 == y.dtype
        assert np.float32 != np.float64
        assert np.float32 != 3
        assert {np.float32: 1}[y.dtype.type] == 1
        assert np.issubdtype(y.dtype, np.float32)
        assert issubclass(np.float32, np.floating)
        assert np.zeros(2, np.float32).dtype == np.dtype([("a", np.float32)])["a"]
        assert pickle.loads(pickle.dumps(np.float32)) == np.float32
        assert isinstance(np.ones(1, np.float32)[0], np.float32)
        return y

    assert fad.grad(f)(1.0) == 1.0


def test_a_class_derived_meanwhile_is_a_class_of_its_own():
    def f(x):
        class Metres(float):
            def doubled(self):
                return 2 * self

        class Single(np.float32):
            pass

        assert type(Metres(2.0)) is Metres
        assert Metres(2.0).doubled() == 4.0
        assert not isinstance(2.0, Metres)
        assert Single.__mro__[1] == np.float32
        return float(x) * Metres(3.0)

    assert fad.grad(f)(1.0) == 3.0


def test_the_class_of_a_dtype_is_refused_with_advice():
    with pytest.raises(fad.errors.TracerConversionError, match=r"x\.astype\(x\.dtype\) for x\.dtype\.type\(x\)"):
        fad.grad(lambda x: x.dtype.type(x))(1.0)


def test_what_has_no_such_number_is_refused_as_by_python():
    with pytest.raises(TypeError, match="only length-1 arrays"):
        fad.grad(lambda x: float(x))(X)
    with pytest.raises(TypeError, match="not 'complex'"):
        fad.grad(lambda x: float(x[0] * 1j))(X)


def test_names_are_pythons_own_before_and_after():
    assert fad.grad(squares)(X).tolist() == [2.0, 4.0]
    assert "float" not in globals()
    assert list(map(id, TABLE.values())) == [id(np.float64), id(float)]


def module_of(text, name):
    """Return the names of a module that has this text in a file of its own."""
    lines = text.splitlines(keepends=True)
    linecache.cache[name] = len(text), None, lines, name
    space = {"np": np}
    exec(compile(text, name, "exec"), space)
    return space


CONVERTS = "def f(x):\n    return float(x) * 2\n"


@pytest.mark.parametrize("question", ["type(x) is float", "float is type(x)", "x is (kind := float)"])
def test_a_module_that_may_ask_for_the_class_itself_keeps_the_error(question):
    space = module_of(f"{CONVERTS}def g(x):\n    return {question}\n", f"/asking {question}.py")
    with pytest.raises(fad.errors.TracerConversionError, match="float"):
        fad.grad(space["f"])(1.0)
    assert "float" not in space


@pytest.mark.parametrize("question", ["x is None or isinstance(x, float)", "x is g and g(float) or x is np"])
def test_a_module_that_asks_for_something_else_converts(question):
    space = module_of(f"{CONVERTS}def g(x):\n    return {question}\n", f"/asking {question}.py")
    assert fad.grad(space["f"])(1.0) == 2.0


def test_a_class_that_a_module_asks_for_is_kept_and_others_convert():
    space = module_of(f"{CONVERTS}def g(x):\n    return f(x), type(1j) is complex\n", "/asking for one.py")
    assert fad.grad(space["g"], has_aux=True)(1.0) == (2.0, True)


def test_a_module_has_its_names_back_afterwards():
    space = module_of(f"{CONVERTS}def g(x):\n    return type(x) == float, type(x) in (int, float)\n", "/alone.py")
    for _ in range(2):
        assert fad.grad(space["f"])(1.0) == 2.0
        assert "float" not in space
    assert space["g"](1.0) == (True, True)
