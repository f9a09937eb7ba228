"""Python's `math` in programs that are differentiated: as they are written, its values to the bit, and its errors."""

import copy
import functools
import inspect
import math
import pickle
import types
from math import exp
from math import sqrt as root

import numpy as np
import pytest

import fad


def wrapped(f):
    """Return a function whose `math` is in a closure."""
    functions = math
    return lambda x: f(functions, x)


class Held:
    wave = math.sin

    def __init__(self):
        self.functions = {"cos": math.cos}
        self.growth = math.exp
        self.module = math

    def of_class(self, x):
        return Held.wave(x) * x

    def of_table(self, x):
        return self.functions["cos"](x) * x

    def of_attribute(self, x):
        return self.growth(x) * x

    def of_module(self, x):
        return self.module.atan(x) * x


def imported_inside(x):
    import math as own
    from math import cos

    return own.sin(x) * cos(x)


def by_default(x, function=math.tanh):
    return function(x) * x


def in_a_loop(x):
    s = x
    for k in range(1, 200):
        s = 0.5 * x + 0.4 * math.sin(s) + math.sqrt(k) / (k + exp(s))
    return s


HELD = Held()


class Slotted:
    __slots__ = ("growth",)
    waves = staticmethod(math.cos)

    def __init__(self):
        self.growth = math.sinh


SLOTTED = Slotted()
POWER = functools.partial(math.pow, 2.0)
LISTED = [math.sin, math.cosh]


def pick(k):
    return LISTED[k]


WITHOUT_SOURCE: dict = {"functions": LISTED}
exec("def without_source(x): return functions[0](x) * x", WITHOUT_SOURCE)
WEIGHTS = {math.sin: 2.0, math.cos: 3.0}

PROGRAMS = {
    "circle": lambda x: math.sin(x) + math.cos(2 * x) * math.tan(x),
    "inverse": lambda x: math.asin(x) * math.acos(x) + math.atan(3 * x) + math.atan2(x, 2) + math.atan2(1, x),
    "hyperbolic": lambda x: math.sinh(x) + math.cosh(x) * math.tanh(x),
    "inverse hyperbolic": lambda x: math.asinh(x) + math.acosh(x + 1) * math.atanh(x),
    "exponentials": lambda x: exp(x) + math.expm1(x) * math.log1p(x) + math.pow(x, 3) + math.pow(2, x),
    "logarithms": lambda x: math.log(x) + math.log(x, 3) + math.log(3, x + 2) + math.log2(x) * math.log10(x),
    "roots": lambda x: root(x) + math.hypot(x, 2) + math.hypot(x, 2, 3 * x) + math.hypot(x) + math.fabs(x - 2),
    "errors": lambda x: math.erf(x) * math.erfc(2 * x),
    "degrees": lambda x: math.degrees(x) * math.radians(x),
    "remainders": lambda x: math.fmod(7 * x, 2) + math.remainder(7 * x, 2) * x + math.copysign(x, -1),
    "parts": lambda x: math.modf(3.3 * x)[0] * x + math.modf(3.3 * x)[1] * x + math.ldexp(x, 3),
    "whole numbers": lambda x: (math.floor(3 * x) + math.ceil(x) + math.trunc(2 * x)) * x,
    "of sequences": lambda x: math.dist([x, 2.0], [1.0, x * x]) + math.prod([x, 2, x]) + math.fsum([x, 2, x * x]),
    "questions": lambda x: x * x if math.isfinite(x) and not math.isnan(x) and not math.isclose(x, 3.0) else 0.0 * x,
    "constants": lambda x: x * math.sqrt(2) * math.pi + math.factorial(3) * x,
    "of an element": lambda x: math.sin((np.array([x, 2 * x]) ** 2)[1]),
    "mapped": lambda x: sum(map(math.sin, [x, 2 * x])),
    "partial": lambda x: functools.partial(math.pow, x)(3),
    "closure": wrapped(lambda functions, x: functions.sin(x) * x),
    "imported inside": imported_inside,
    "by default": by_default,
    "loop": in_a_loop,
    "class": HELD.of_class,
    "table": HELD.of_table,
    "attribute": HELD.of_attribute,
    "module": HELD.of_module,
    "slot": lambda x: SLOTTED.growth(x) * x,
    "static method of a new object": lambda x: Slotted().waves(x) * x,
    "partial of a module": lambda x: POWER(x) * x,
    "picked by a function": lambda x: pick(1)(x) * x,
    "without source": WITHOUT_SOURCE["without_source"],
    "keys": lambda x: WEIGHTS[math.sin] * math.sin(x) * x,
    "members": lambda x: x * x if math.cos in WEIGHTS and LISTED[0] == math.sin else x,
    "copied": lambda x: copy.deepcopy({"sin": math.sin})["sin"](x) * x,
    "signature": lambda x: math.sin(x) * len(str(inspect.signature(math.sin))),
    "length of many": lambda x: math.hypot(x, 2, x * x, 0.3) + math.dist([x, 1.0, 2.0], [0.0, x * x, x]),
}
X = 0.61


@pytest.mark.parametrize("name", PROGRAMS)
def test_programs_have_their_derivatives_in_every_transform(name):
    f = PROGRAMS[name]
    h = 1e-5
    slope = (8 * (f(X + h) - f(X - h)) - (f(X + 2 * h) - f(X - 2 * h))) / (12 * h)
    close = functools.partial(np.testing.assert_allclose, rtol=1e-8)
    value, gradient = fad.value_and_grad(f)(X)
    assert value == f(X)
    close(gradient, slope)
    close(fad.jvp(f, (X,), (1.0,))[1], slope)
    close(fad.grad(f)(np.float64(X)), slope)
    several = np.array([X, 0.7])
    close(fad.vmap(f)(several), [f(X), f(0.7)], rtol=1e-14)
    close(fad.vmap(fad.grad(f))(several)[0], slope)
    second = (fad.grad(f)(X + h) - fad.grad(f)(X - h)) / (2 * h)
    close(fad.grad(fad.grad(f))(X), second, rtol=1e-6, atol=1e-7)
    for transform, wanted in ((fad.jit(f), f(X)), (fad.jit(fad.grad(f)), slope), (fad.jit(fad.vmap(f)), None)):
        transform(0.7 if wanted is not None else several + 0.1)
        for _ in range(2):
            close(transform(X) if wanted is not None else transform(several)[0], f(X) if wanted is None else wanted)


@pytest.mark.parametrize("name", ["class", "picked by a function", "without source", "table"])
def test_programs_that_ran_before_have_the_same_derivatives(name):
    f = PROGRAMS[name]
    fresh = types.FunctionType(f.__code__.replace(), f.__globals__) if type(f) is types.FunctionType else f
    for _ in range(50):  # Python's instructions adapt themselves
        fresh(X)
    assert fad.grad(fresh)(X) == fad.grad(f)(X)


def test_a_sum_of_math_is_exact_in_every_transform():
    f = lambda x: math.fsum([1e16, x, -1e16, 1e-20, x * x])
    assert fad.value_and_grad(f)(X) == (X + X * X, 1 + 2 * X)
    fast = fad.jit(fad.value_and_grad(f))
    for _ in range(2):
        assert fast(X) == (X + X * X, 1 + 2 * X)
    np.testing.assert_array_equal(fad.vmap(f)(np.array([X, 0.5])), [X + X * X, 0.75])
    assert fad.grad(fad.grad(f))(X) == 2.0


def test_a_function_of_math_may_be_pickled_meanwhile():
    texts = []
    fad.grad(lambda x: texts.append(pickle.dumps(math.sin)) or math.sin(x))(1.0)
    assert pickle.loads(texts[0]) is math.sin


@pytest.mark.parametrize("name", ["gamma", "lgamma"])
def test_gamma_functions_have_scipys_derivatives(name):
    special = pytest.importorskip("scipy.special")
    f = getattr(math, name)
    scale = f(X) if name == "gamma" else 1.0
    np.testing.assert_allclose(fad.grad(lambda x: getattr(math, name)(x))(X), scale * special.digamma(X), rtol=1e-14)


FUNCTIONS = [
    "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh", "tanh", "asinh", "atanh", "exp", "expm1", "log",
    "log2", "log10", "log1p", "sqrt", "erf", "erfc", "gamma", "lgamma", "fabs", "degrees", "radians",
]  # fmt: skip


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_are_those_of_math_to_the_bit(name):
    f = lambda x: getattr(math, name)(x)
    g = eval(f"lambda x: math.{name}(x)", {"math": math})
    for x in np.random.default_rng(0).uniform(0.01, 0.99, 50).tolist():
        assert fad.value_and_grad(g)(x)[0] == f(x)


RAISING = [
    (lambda x: math.sqrt(x), -1.0),
    (lambda x: math.log(x), 0.0),
    (lambda x: math.log(x), -1.0),
    (lambda x: math.exp(x), 1000.0),
    (lambda x: math.asin(x), 2.0),
    (lambda x: math.pow(x, 0.5), -1.0),
    (lambda x: math.pow(x, 400), 10.0),
    (lambda x: math.fmod(1.0, x), 0.0),
    (lambda x: math.sin(x), math.inf),
    (lambda x: math.gamma(x), -1.0),
    (lambda x: sum(math.sqrt(1.0 - k * x) for k in range(4)), 0.5),
]


def outcome(f, x):
    try:
        return f(x)
    except Exception as error:
        return type(error), str(error).partition("\n")[0]


@pytest.mark.parametrize("case", range(len(RAISING)))
def test_errors_are_those_of_math(case):
    f, x = RAISING[case]
    wanted = outcome(f, x)
    assert issubclass(wanted[0], (ValueError, ArithmeticError))
    assert outcome(fad.grad(f), x) == outcome(fad.value_and_grad(f), x) == wanted
    assert outcome(lambda x: fad.vmap(f)(np.array([x, x])), x) == wanted
    fast = fad.jit(f)
    for _ in range(2):
        assert fast(0.3) == pytest.approx(f(0.3), rel=1e-15)
        assert outcome(fast, x) == wanted


def test_an_error_in_a_captured_loop_is_maths():
    def f(x):
        s = x
        for k in range(500):
            s = math.sqrt(s) - 0.01 * k * x
        return s

    fast = fad.jit(f)
    assert fast(0.0) == fast(0.0) == f(0.0)
    wanted = outcome(f, 0.5)
    assert wanted[0] is ValueError
    for _ in range(2):
        assert outcome(fast, 0.5) == wanted


def test_a_program_may_catch_an_error_of_math():
    def f(x):
        try:
            return math.log(x) * x
        except ValueError:
            return x * x

    for transform in (fad.grad(f), fad.jit(fad.grad(f))):
        for _ in range(2):
            np.testing.assert_allclose(transform(-2.0), -4.0)
            np.testing.assert_allclose(transform(2.0), math.log(2.0) + 1.0)


def test_a_result_is_a_python_number_that_widens_nothing():
    f = lambda x, w: np.sum(math.sin(x) * w)
    w = np.ones(3, np.float32)
    assert fad.grad(f, 1)(0.5, w).dtype == np.float32
    assert fad.value_and_grad(f)(0.5, w)[0].dtype == np.float32
    fast = fad.jit(lambda x: math.sin(x))
    for _ in range(2):
        assert type(fast(0.5)) is float
        assert fad.jit(f)(0.5, w).dtype == np.float32


def test_loops_over_math_are_native():
    pytest.importorskip("llvmlite")
    for transform in (fad.jit(in_a_loop), fad.jit(fad.grad(in_a_loop))):
        transform(0.5), transform(0.5)
        if "lowering: llvm" in transform.explain():
            assert "captured" in transform.explain()
            assert "calls of NumPy" not in transform.explain()


def test_what_is_no_real_number_is_refused_as_by_math():
    with pytest.raises(TypeError, match="must be real number, not complex"):
        fad.grad(lambda x: abs(math.sin(x * 1j)))(1.0)
    assert outcome(fad.grad(lambda x: math.sin(x)), np.ones(2)) == outcome(math.sin, np.ones(2))
    with pytest.raises(TypeError, match="exactly one argument"):
        fad.grad(lambda x: math.sin(x, x))(1.0)
    with pytest.raises(TypeError, match="ldexp expected 2 arguments, got 1"):
        fad.grad(lambda x: math.ldexp(x))(1.0)
    with pytest.raises(TypeError, match="dist expected 2 arguments, got 1"):
        fad.grad(lambda x: math.dist([x]))(1.0)


def test_an_array_of_one_element_is_what_it_is_to_numpy():
    f = lambda x: math.sin(x)
    for transform in (fad.grad(f), fad.jit(f)):
        assert outcome(lambda x, g=transform: float(np.sum(g(x))) * 0, np.ones(1)) == outcome(
            lambda x: f(x) * 0, np.ones(1)
        )


def test_other_programs_see_the_true_math_meanwhile():
    seen = []
    fad.grad(lambda x: seen.append(math.sin) or math.sin(x))(1.0)
    assert math.sin is not seen[0]
    assert math.sin.__module__ == "math"


@pytest.mark.parametrize(
    ("x", "i"), [(0.0, 2000), (1e300, -1080), (5e-324, 1030), (3.0, -4), (-1e-300, 1999), (1.7, -3000)]
)
def test_ldexp_reaches_what_the_power_alone_does_not(x, i):
    f = lambda x: math.ldexp(x, i)
    with np.errstate(all="ignore"):
        for transform in (fad.value_and_grad, lambda f: fad.jit(fad.value_and_grad(f))):
            value, slope = transform(f)(x)
            assert (value, slope) == (f(x), math.ldexp(1.0, i) if i < 1024 else math.inf)
        assert fad.jvp(f, (x,), (1.0,))[0] == fad.jit(f)(x) == f(x)
