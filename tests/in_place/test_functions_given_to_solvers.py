"""Functions that solvers and custom rules call may write, above all into scratch arrays of the function around them."""

import numpy as np
import pytest
import scipy.integrate
import scipy.optimize

import fad
import fad.scipy
from fad.errors import ItemAssignmentError

integrate = fad.scipy.integrate
optimize = fad.scipy.optimize
START = np.array([1.0, 0.5])
TABLE = np.array([1.0, 3.0])


class Holder:
    def __init__(self):
        self.scratch = np.zeros(2)


def scratch_of_an_integrand(a):
    c = np.zeros(2)

    def integrand(t):
        c[0] = a * t
        return c[0] ** 2

    return integrate.quad(integrand, 0.0, 1.0)[0] * integrate.quad(integrand, 0.0, 2.0)[0]


def scratch_that_a_helper_fills(a):
    c = np.zeros(2)

    def fill(t):
        c[0] = a * t

    def integrand(t):
        fill(t)
        return c[0] ** 2 + c[1]

    return integrate.quad(integrand, 0.0, 1.0)[0]


def scratch_that_is_viewed(a):
    c = np.zeros(2)
    row = c[:1]

    def integrand(t):
        row[0] = a * t
        return c[0] ** 2

    return integrate.quad(integrand, 0.0, 1.0)[0]


def scratch_of_an_object(a):
    holder = Holder()

    def integrand(t):
        holder.scratch[0] = a * t
        return holder.scratch[0] ** 2

    return integrate.quad(integrand, 0.0, 1.0)[0]


def scratch_with_traced_numbers(a):
    c = np.zeros(2)
    c[1] = a

    def integrand(t):
        c[0] = a * t
        return c[0] ** 2 * c[1]

    return integrate.quad(integrand, 0.0, 1.0)[0]


def limits_of_an_integral_with_scratch(a):
    c = np.zeros(2)

    def integrand(t):
        c[:] = t
        return np.sum(c * c)

    return integrate.quad(integrand, a, 2.0 * a)[0]


def _equation(a, dy, method):
    def put(y):
        dy[0] = y[1]
        dy[1] = -a * y[0]

    def field(t, y):
        put(y)
        # SciPy's Radau takes differences of two results: of one array they would be zero
        return dy * 1.0 if method == "Radau" else dy

    return integrate.solve_ivp(field, (0.0, 1.0), START, method, rtol=1e-9, atol=1e-9).y[0, -1]


def stiff_equation(a):
    return _equation(a, np.zeros(2), "LSODA")


def collocated_equation(a):
    return _equation(a, np.zeros(2), "Radau")


def matrix_of_a_linear_system(a):
    c = np.zeros(2)

    def put(x):
        c[:] = a * x

    def matvec(x):
        put(x)
        return c * 1.0

    return np.sum(fad.custom_linear_solve(matvec, START, lambda m, b: b / m(np.ones(2)), symmetric=True) ** 2)


def root_of_an_equation(a):
    c = np.zeros(1)

    def put(x):
        c[0] = x * x - a

    def equation(x):
        put(x)
        return c[0]

    return optimize.brentq(equation, 0.0, 5.0)


def backward_rule(a):
    c = np.zeros(1)

    def put(x):
        c[0] = 3.0 * x * x

    def backward(x, ct):
        put(x)
        return (ct * c[0],)

    rule = fad.custom_vjp(lambda x: x**3)
    rule.defvjp(lambda x: (x**3, x), backward)
    return rule(a)


def scratch_that_an_integrand_makes(a):
    kept = {}

    def integrand(t):
        c = kept.setdefault("c", np.zeros(3))
        c[0] = a * t
        c[1:] = a, t
        return np.sum(c**2)

    return integrate.quad(integrand, 0.0, a)[0] * integrate.quad(integrand, 0.0, 2.0)[0]


def scratch_that_an_object_makes(a):
    class Flow:
        def __call__(self, t, y):
            if not hasattr(self, "rate"):
                self.rate = np.empty(2)
            self.rate[0] = y[1] * a
            np.multiply(y[0], -a, out=self.rate[1:])
            return self.rate

    return integrate.solve_ivp(Flow(), (0.0, 1.0), START, rtol=1e-9, atol=1e-11).y[0, -1]


def scratch_that_a_linear_system_makes(a):
    kept = []

    def matvec(x):
        if not kept:
            kept.append(np.zeros(2))
        kept[0][:] = a * x
        return kept[0] * 1.0

    return np.sum(fad.custom_linear_solve(matvec, START, lambda m, b: b / m(np.ones(2)), symmetric=True) ** 2)


def scratch_that_an_equation_makes(a):
    kept = {}

    def equation(x):
        c = kept.setdefault("c", np.zeros(2))
        c[0] = x * x
        c[1] = -a
        return np.sum(c)

    return optimize.brentq(equation, 0.0, 5.0)


def scratch_that_a_rule_makes(a):
    kept = {}

    def backward(x, ct):
        c = kept.setdefault("c", np.zeros(1))
        c[0] = 3.0 * x * x
        return (ct * c[0],)

    rule = fad.custom_vjp(lambda x: x**3)
    rule.defvjp(lambda x: (x**3, x), backward)
    return rule(a) * rule(2 * a)


PROGRAMS = [
    scratch_of_an_integrand, scratch_that_a_helper_fills, scratch_that_is_viewed, scratch_of_an_object,
    scratch_with_traced_numbers, limits_of_an_integral_with_scratch, stiff_equation, collocated_equation,
    matrix_of_a_linear_system, root_of_an_equation, backward_rule, scratch_that_an_integrand_makes,
    scratch_that_an_object_makes, scratch_that_a_linear_system_makes, scratch_that_an_equation_makes,
    scratch_that_a_rule_makes,
]  # fmt: skip


@pytest.mark.parametrize("program", PROGRAMS)
def test_scratch_arrays_simply_work(program):
    a, h = 1.3, 1e-3
    value = program(a)
    values = [program(a + k * h) for k in (-2, -1, 0, 1, 2)]
    slope = (8 * (values[3] - values[1]) - (values[4] - values[0])) / (12 * h)
    bend = (16 * (values[3] + values[1]) - (values[4] + values[0]) - 30 * values[2]) / (12 * h * h)
    near = lambda found, wanted: np.testing.assert_allclose(found, wanted, rtol=1e-6, atol=1e-8)
    near(fad.jvp(program, (a,), (1.0,)), (value, slope))
    near(fad.value_and_grad(program)(a), (value, slope))
    near(fad.linearize(program, a)[1](1.0), slope)
    compiled, gradient = fad.jit(program), fad.jit(fad.grad(program))
    for _ in range(3):
        near(compiled(a), value)
        near(gradient(a), slope)
    near(compiled(a + h), values[3])
    near(fad.vmap(program)(np.array([a, a + h])), [value, values[3]])
    near(fad.vmap(fad.grad(program))(np.array([a, a]))[1], slope)
    for twice in (fad.grad(fad.grad(program)), lambda a: fad.jvp(fad.grad(program), (a,), (1.0,))[1]):
        np.testing.assert_allclose(twice(a), bend, rtol=1e-3, atol=1e-4)


def test_a_function_that_is_minimised_may_write_into_scratch_of_the_program():
    def minimum(a):
        c = np.zeros(2)

        def objective(x):
            c[0] = x[0] - a
            c[1] = x[0] * x[1] - 1.0
            return np.sum(c * c)

        return optimize.minimize(objective, np.ones(2), tol=1e-12).x[1]

    a = 1.3
    for found in (fad.grad(minimum)(a), fad.jit(fad.grad(minimum))(a), fad.jvp(minimum, (a,), (1.0,))[1]):
        np.testing.assert_allclose(found, -1 / a**2, rtol=1e-5)


def count(a, c):
    """Integrate, with an array that counts, and holds the last number that was seen."""

    def integrand(t):
        c[0] += 1.0
        c[1] = a * t
        return np.sin(a * t)

    return integrate.quad(integrand, 0.0, 1.0)[0]


def solve(a, c):
    def solver(matvec, b):
        c[:] = matvec(b)
        return b / matvec(np.ones(2))

    return np.sum(fad.custom_linear_solve(lambda x: a * x, START, solver, symmetric=True))


def find_root(a, c):
    def equation(x):
        c[1] = x
        return x * x - a

    return optimize.brentq(equation, 0.0, 5.0)


TRANSFORMS = {
    "jvp": lambda f: fad.jvp(f, (1.3,), (1.0,)),
    "vjp": lambda f: fad.vjp(f, 1.3)[1](1.0),
    "grad of jit": lambda f: fad.grad(fad.jit(f))(1.3),
    "vmap": lambda f: fad.vmap(f)(np.array([1.3, 2.0])),
    "jit": lambda f: fad.jit(f)(1.3),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("run", [count, solve, find_root])
def test_what_a_solver_wrote_has_no_derivative_and_is_not_read(run, transform):
    def reading(a):
        c = np.zeros(2)
        return run(a, c) + c[1]

    with pytest.raises(ItemAssignmentError, match="plain numbers"):
        TRANSFORMS[transform](reading)


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("fill", [lambda c: c.fill(2.0), lambda c: c.__setitem__(slice(None), 2.0)])
def test_an_array_that_is_filled_again_is_read_as_any_other(fill, transform):
    def filling(a):
        c = np.zeros(2)
        y = count(a, c)
        fill(c)
        c[0] *= a
        return y + c[0] * c[1]

    def without(a):
        return count(a, np.zeros(2)) + 4.0 * a

    found, wanted = TRANSFORMS[transform](filling), TRANSFORMS[transform](without)
    np.testing.assert_allclose(found, wanted, rtol=1e-12)


def test_where_nothing_is_traced_all_writes_are_seen():
    def program(x):
        c, d = np.zeros(2), np.zeros(2)
        y = count(1.3, c) + solve(1.3, d)
        return x * y * c[1] + c[0] + d[1]

    wanted = program(2.0)
    np.testing.assert_allclose(fad.value_and_grad(program)(2.0)[0], wanted, rtol=1e-14)
    np.testing.assert_allclose(fad.vmap(program)(np.array([1.0, 2.0]))[1], wanted, rtol=1e-14)
    np.testing.assert_allclose(fad.jit(program)(2.0), wanted, rtol=1e-14)


@pytest.mark.parametrize("linear", [False, True])
def test_arrays_that_are_found_by_other_names_are_taken_as_they_were(linear):
    holder = Holder()
    solver = lambda m, b: b / m(TABLE) * TABLE

    def program(a):
        TABLE[:] = 1.0, 3.0
        holder.scratch = np.array([2.0, 5.0])
        if linear:
            matvec = lambda x: a * x * holder.scratch
            y = np.sum(fad.custom_linear_solve(matvec, START, solver, solver))
        else:
            y = integrate.quad(lambda t: np.sin(a * t * TABLE[1]) * holder.scratch[0], 0.0, 1.0)[0]
        TABLE[:] = 7.0
        holder.scratch[:] = 11.0
        return y

    h = 1e-4
    slope = (program(1.3 + h) - program(1.3 - h)) / (2 * h)
    for derivative in (fad.grad(program), lambda a: fad.linearize(program, a)[1](1.0)):
        np.testing.assert_allclose(derivative(1.3), slope, rtol=1e-6)
    np.testing.assert_array_equal(TABLE, 7.0)


def test_an_array_from_outside_counts_once_and_takes_no_traced_number():
    calls, last = np.zeros(1), np.zeros(1)

    def integrand(t, a):
        calls[0] += 1
        return np.sin(a * t)

    def writing(t, a):
        last[0] = a * t
        return np.sin(a * t)

    program = lambda a: integrate.quad(integrand, 0.0, 1.0, (a,))[0]
    program(1.3)
    once = calls[0]
    for derivative in (lambda: fad.grad(program)(1.3), lambda: fad.grad(fad.grad(program))(1.3)):
        calls[:] = 0
        derivative()
        assert calls[0] == once > 0
    with pytest.raises(fad.errors.TracerConversionError, match="outside"):
        fad.grad(lambda a: integrate.quad(writing, 0.0, 1.0, (a,))[0])(1.3)


def test_a_traced_array_that_is_written_under_two_names_is_refused():
    def program(a):
        c = np.zeros(2)
        c[1] = a
        row = c[:1]

        def integrand(t):
            row[0] = t
            return c[0] * c[1]

        return integrate.quad(integrand, 0.0, 1.0)[0]

    with pytest.raises(ItemAssignmentError, match="two names"):
        fad.grad(program)(1.3)


def test_an_integrand_that_fills_scratch_is_evaluated_as_often_as_one_that_does_not():
    def evaluations(program):
        called.clear()
        fad.grad(program)(1.3)
        return len(called)

    def filling(a):
        c = np.zeros(2)
        c[1] = a

        def integrand(t):
            called.append(t)
            c[0] = a * t
            return c[0] ** 2 * c[1]

        return integrate.quad(integrand, 0.0, 1.0)[0]

    def pure(a):
        c = np.array([0.0, a])

        def integrand(t):
            called.append(t)
            return (a * t) ** 2 * c[1]

        return integrate.quad(integrand, 0.0, 1.0)[0]

    called = []
    assert [evaluations(filling) for _ in range(3)] == [evaluations(pure)] * 3


def test_a_callable_object_that_wraps_itself_is_looked_at_once():
    class Square:
        def __init__(self):
            self.__wrapped__ = self

        def __call__(self, x):
            y = np.zeros(2)
            y[0] = x * x
            return y[0]

    f = Square()
    assert fad.grad(f)(3.0) == 6.0
    assert fad.grad(lambda x: f(x))(3.0) == 6.0


def solutions(optimize, integrate):
    """Return what solvers find for functions that fill scratch arrays, by name."""
    pair, one, five, times = np.zeros(2), np.zeros(1), np.zeros(5), np.arange(5.0)

    def residuals(x):
        pair[0] = x[0] ** 2 + x[1] - 1.3
        pair[1] = x[0] - x[1]
        return pair * 1.0

    def valley(x):
        pair[0] = x[0] ** 2
        pair[1] = (x[1] - 1.0) ** 2
        return pair.sum()

    def equation(x):
        one[0] = x * x - 1.3
        return one[0] * 1.0

    def line(t, a, b):
        five[:] = a * t
        five[...] += b
        return five * 1.0

    return {
        "root": lambda: optimize.root(residuals, START).x,
        "least_squares": lambda: optimize.least_squares(residuals, START).x,
        "minimize": lambda: optimize.minimize(valley, START).x,
        "minimize, L-BFGS-B": lambda: optimize.minimize(valley, START, method="L-BFGS-B").x,
        "newton": lambda: optimize.newton(equation, 1.0),
        "root_scalar": lambda: optimize.root_scalar(equation, x0=1.0, method="newton").root,
        "brentq": lambda: optimize.brentq(equation, 0.0, 5.0),
        "curve_fit": lambda: optimize.curve_fit(line, times, 2.0 * times + 1.0)[0],
        "solve_ivp": lambda: integrate.solve_ivp(lambda t, y: residuals(y), (0.0, 0.5), START, "Radau").y[:, -1],
    }


@pytest.mark.parametrize("name", solutions(optimize, integrate))
def test_without_a_transform_a_solver_takes_functions_with_scratch_as_scipys_does(name):
    found = solutions(optimize, integrate)[name]()
    np.testing.assert_allclose(found, solutions(scipy.optimize, scipy.integrate)[name](), rtol=1e-5, atol=1e-5)
    assert type(found) in (np.ndarray, np.float64, float)


def test_scratch_of_a_solver_holds_plain_numbers_when_it_is_done():
    scratch, seen = np.zeros(2), []

    def residuals(x):
        scratch[0] = x[0] ** 2 + x[1] - 1.3
        scratch[1] = x[0] - x[1]
        seen.append(scratch)
        return scratch

    np.testing.assert_allclose(residuals(optimize.root(residuals, START).x), 0.0, atol=1e-9)
    assert type(scratch) is np.ndarray
    assert scratch.dtype == float
    assert seen[0] is scratch
