"""Functions given to solvers that read traced values from objects, globals and modules."""

import dataclasses
import functools
import types

import numpy as np
import pytest
from scipy.integrate import quad, solve_ivp
from scipy.optimize import brentq, minimize_scalar

import fad

RATE = None
SETTINGS = {"rates": [None]}
elsewhere = types.ModuleType("elsewhere")


class Attribute:
    def __init__(self, x):
        self.rate = x

    def at(self, u):
        return self.rate * u


class Indirect:
    """Its method is a function that closes over it, as programs write it in `__init__`."""

    def __init__(self, x):
        self.rates = np.empty(2)
        self.rates[0], self.rates[1] = 1.0, x
        self.at = lambda u: self.rates[1] * u


class Nested:
    __slots__ = ("inner",)

    def __init__(self, x):
        self.inner = Attribute(x)

    def at(self, u):
        return self.inner.at(u)


class Called:
    def __init__(self, x):
        self.table = {"rates": [(1.0, x)]}

    def __call__(self, u):
        return self.rate * u

    @property
    def rate(self):
        return self.table["rates"][0][1]


@dataclasses.dataclass(frozen=True)
class Frozen:
    rate: object

    def at(self, u):
        return self.rate * u


class OfClass:
    def at(self, u):
        return type(self).rate * u


def read_class(x):
    OfClass.rate = x
    return OfClass().at


def define_class(x):
    class Local:
        def at(self, u, scale=x):
            return (x + scale) / 2 * u

    return Local().at


def read_global(x):
    global RATE
    RATE = x
    return times_global


def times_global(u):
    return RATE * u


def read_table(x):
    SETTINGS["rates"][0] = x
    return lambda u: SETTINGS["rates"][0] * u


def read_module(x):
    elsewhere.rate = x
    return lambda u: elsewhere.rate * u


HOLDERS = {
    "attribute": lambda x: Attribute(x).at, "lambda": lambda x: Indirect(x).at, "slot": lambda x: Nested(x).at,
    "called": Called, "frozen": lambda x: Frozen(x).at, "class": read_class, "local class": define_class,
    "global": read_global, "table": read_table, "module": read_module,
    "partial": lambda x: functools.partial(Attribute.at, Attribute(x)),
}  # fmt: skip
SOLVERS = {
    "quad": lambda at: quad(lambda u: np.exp(at(u)), 0.0, 1.0)[0],
    "quad of it": lambda at: quad(at, 0.0, 1.0)[0],
    "solve_ivp": lambda at: solve_ivp(lambda t, y: -at(y), (0.0, 1.0), [1.0], rtol=1e-9, atol=1e-9).y[0, -1],
    "BDF": lambda at: solve_ivp(lambda t, y: -at(y), (0, 1), [1.0], "BDF", [1.0], rtol=1e-9, atol=1e-9).y[0, 0],
    "brentq": lambda at: brentq(lambda u: u**3 + at(u) - 1.0, 0.0, 2.0),
    "minimize_scalar": lambda at: minimize_scalar(lambda u: u**4 + at(u), tol=1e-12).x,
}
DERIVATIVES = {
    "grad": lambda f: fad.grad(f)(0.7),
    "jvp": lambda f: fad.jvp(f, (0.7,), (1.0,))[1],
    "jit": lambda f: fad.jit(fad.grad(f))(0.7),
    "vmap": lambda f: fad.vmap(fad.grad(f))(np.array([0.7, 0.9]))[0],
}


@functools.cache
def find_derivative(solver):
    closed_over = lambda x: SOLVERS[solver](lambda u: x * u)
    want = fad.grad(closed_over)(0.7)
    assert np.isclose(want, (closed_over(0.7 + 1e-4) - closed_over(0.7 - 1e-4)) / 2e-4, rtol=1e-4)
    return want


@pytest.mark.parametrize("derivative", DERIVATIVES)
@pytest.mark.parametrize("solver", SOLVERS)
@pytest.mark.parametrize("holder", HOLDERS)
def test_what_an_object_holds_has_its_derivative(holder, solver, derivative):
    held = lambda x: SOLVERS[solver](HOLDERS[holder](x))
    assert np.isclose(DERIVATIVES[derivative](held), find_derivative(solver), rtol=1e-6)


def test_second_derivatives_go_through_an_object():
    def f(x):
        holder = Attribute(x)
        return quad(lambda u: np.exp(holder.at(u)), 0.0, 1.0)[0]

    want = quad(lambda u: u**2 * np.exp(0.7 * u), 0.0, 1.0)[0]
    assert np.isclose(fad.grad(fad.grad(f))(0.7), want)


class Counting(Attribute):
    def __init__(self, x):
        super().__init__(x)
        self.calls, self.rates, self.places = 0, [x], []

    def at(self, u):
        self.calls += 1
        self.places.append(float(u))
        self.rates.append(0.0)
        return self.rates[0] * u


def test_an_object_keeps_its_values_and_what_the_function_writes_to_it():
    def f(x):
        counting = Counting(x)
        value = quad(counting.at, 0.0, 1.0)[0]
        seen.append((counting.calls, len(counting.places), len(counting.rates)))
        return value * counting.rate + counting.rates[0]

    seen = []
    f(2.0)
    assert fad.jvp(f, (2.0,), (1.0,)) == pytest.approx((4.0, 3.0))
    assert fad.grad(f)(2.0) == pytest.approx(3.0)
    assert seen[0] == (21, 21, 22)
    assert all(calls == places == rates - 1 >= 21 for calls, places, rates in seen)


def test_attributes_that_no_code_names_are_no_operands():
    class Holder(Attribute):
        def __init__(self, x):
            super().__init__(x)
            self.history = [x * k for k in range(50)]

    runs = []

    def f(x):
        holder = Holder(x)
        return quad(lambda u: runs.append(1) or holder.at(u), 0.0, 1.0)[0]

    fad.grad(f)(0.7)
    assert len(runs) < 100


def test_a_value_that_is_not_found_is_an_error():
    def f(x):
        values = iter([x] * 1000)
        return quad(lambda u: next(values) * u, 0.0, 1.0)[0]

    with pytest.raises(fad.errors.CustomRuleError, match="Pass it in args"):
        fad.grad(f)(0.7)
