"""Objects and functions of SciPy's that a program holds before a transform runs have derivatives as fad's have."""

import copy
import functools
import pickle
import types
from collections import OrderedDict, defaultdict, deque
from math import cos
from types import SimpleNamespace
from typing import NamedTuple

import numpy as np
import pytest
from scipy import integrate, interpolate, special, stats
from scipy.spatial import transform

import fad

T = np.linspace(0.0, 1.0, 8)
PRIOR = stats.norm(0.5, 2.0)
CURVE = interpolate.CubicSpline(T, np.sin(3 * T))
AREA = CURVE.antiderivative()
MONOTONE = interpolate.PchipInterpolator(T, T**2)
SPLINE = interpolate.make_interp_spline(T, np.sin(3 * T))
LINE = interpolate.interp1d(T, np.sin(3 * T))
CUBIC = interpolate.interp1d(T, np.sin(3 * T), kind="cubic", fill_value="extrapolate")
GRID = interpolate.RegularGridInterpolator((T, T), np.outer(np.sin(3 * T), np.cos(T)))
THROUGH = interpolate.InterpolatedUnivariateSpline(T, np.exp(T))
NEAR = interpolate.UnivariateSpline(T, np.exp(T), k=4, s=1e-3)
RADIAL = interpolate.RBFInterpolator(np.stack([T, np.cos(5 * T)], 1), np.stack([T, T**2], 1))
KROGH = interpolate.KroghInterpolator(T[::2], np.stack([T[::2], T[::2] ** 3]), axis=1)
BARYCENTRIC = interpolate.BarycentricInterpolator(T[::2], np.stack([T[::2], T[::2] ** 3]), axis=1)
KNOTS = interpolate.splrep(T, np.sin(3 * T))
NORMAL = stats.multivariate_normal(np.zeros(3), np.diag([1.0, 2.0, 3.0]))
DENSITY = stats.gaussian_kde([0.1, 0.5, 0.6, 1.1], weights=[1.0, 2.0, 1.0, 1.0])
COUNTS = stats.binom(9, 0.4)
TABLE = {"lse": special.logsumexp, "family": stats.gamma, "frozen": stats.gamma(2.0, scale=1.5)}
EACH = [stats.norm(0, 1), stats.gamma(3.0), stats.uniform(0, 1)]
PAIR = (stats.norm(0, 1), (special.softmax, np.ones(3)))
log_sum = special.logsumexp


class Pair(NamedTuple):
    prior: object
    curve: object


class Slots:
    __slots__ = ("prior",)

    def __init__(self):
        self.prior = stats.norm(0, 2)

    def __call__(self, x):
        return self.prior.logpdf(x).sum()


class Model:
    def __init__(self):
        self.prior, self.family, self.link = stats.norm(1.0, 0.3), stats.gamma, special.softmax
        self.curve = interpolate.CubicSpline(T, np.cos(2 * T))
        self.slope = self.curve.derivative()
        self.parts = SimpleNamespace(pair=Pair(stats.expon(scale=2.0), MONOTONE))

    def __call__(self, x):
        likely = self.prior.logpdf(x) + self.family.logpdf(x, 2.0) + self.parts.pair.prior.logsf(x)
        return np.sum(likely + self.link(x) * (self.curve(x) + self.slope(x) + self.parts.pair.curve(x)))


class OfClass:
    prior, table, link = PRIOR, np.arange(3.0), staticmethod(special.softmax)

    def score(self, x):
        y = self.table.copy()
        y[0] = x[0]
        return self.prior.logpdf(x).sum() + self.link(x) @ y


class Derived(OfClass):
    @classmethod
    def cumulate(cls, x):
        return cls.prior.cdf(x).sum()


class Methods:
    def __init__(self):
        self.density, self.each = stats.norm(0, 1).logpdf, [stats.norm(0, 1).pdf, stats.norm(1, 2).pdf]

    def __call__(self, x):
        return self.density(x).sum() + sum(density(x).sum() for density in self.each)


other_module = types.ModuleType("other_module")
other_module.PRIOR, other_module.table = stats.norm(0.5, 2.0), np.arange(3.0)
shifted = functools.partial(stats.norm.logpdf, loc=0.3, scale=2.0)
HOLDERS = (OrderedDict(p=stats.norm(0, 1)), defaultdict(list, a=[stats.norm(1, 1)]), deque([stats.norm(2, 1)]))


def write_other(x):
    y = other_module.table.copy()
    y[0] = x[0]
    return y @ y + other_module.PRIOR.pdf(x).sum()


def close_over():
    prior, lse, curve = stats.t(5.0), special.logsumexp, interpolate.CubicSpline(T, T**3)
    return lambda x: prior.logpdf(x).sum() + lse(x) + curve(x).sum()


def default(x, prior=PRIOR, *, curve=CURVE):
    return prior.logpdf(x).sum() + curve(x).sum()


def write(x):
    y = np.zeros(3)
    y[:2] = CURVE(x[:2])
    return y.sum() * PRIOR.pdf(x[2])


def write_copies(x, table=T):
    y = table.copy()
    y[:3] = x * PAIR[1][1]
    return y @ y


PROGRAMS = {
    "a distribution": lambda x: PRIOR.logpdf(x).sum() + PRIOR.ppf(x).sum() * PRIOR.std() + PRIOR.mean() * x[0],
    "a cubic spline": lambda x: CURVE(x).sum() + CURVE(x, 1) @ x,
    "its integral": lambda x: AREA(x).sum() + CURVE.integrate(0.0, x[0]) + CURVE.antiderivative()(x).sum(),
    "a monotone curve": lambda x: MONOTONE(x).sum(),
    "a B-spline": lambda x: SPLINE(x).sum() + SPLINE.derivative()(x).sum(),
    "a B-spline made inside": lambda x: interpolate.make_interp_spline(T, T**2)(x) @ x,
    "a line": lambda x: LINE(x).sum() + CUBIC(x + 0.5).sum(),
    "a grid": lambda x: GRID(np.stack([x, x**2], 1)).sum(),
    "splines of FITPACK": lambda x: NEAR(x).sum() + THROUGH.derivative()(x).sum() + THROUGH.integral(0, x[0]),
    "knots of FITPACK": lambda x: interpolate.splev(x, KNOTS).sum() + interpolate.splev(x, KNOTS, der=1) @ x,
    "radial functions": lambda x: (RADIAL(np.stack([x, np.sin(x)], 1)) ** 2).sum(),
    "polynomials": lambda x: KROGH(x)[1] @ x + BARYCENTRIC(x)[0] @ x + KROGH.derivative(x).sum(),
    "a normal distribution of vectors": lambda x: NORMAL.logpdf(x),
    "an estimated density": lambda x: DENSITY(x).sum() + DENSITY.logpdf(x) @ x,
    "a table": lambda x: TABLE["lse"](x) + TABLE["family"].logpdf(x, 2.0).sum() + TABLE["frozen"].logcdf(x).sum(),
    "a list": lambda x: sum(d.logpdf(at) for d, at in zip(EACH, x, strict=True)),
    "a tuple": lambda x: PAIR[0].logpdf(x) @ PAIR[1][0](x),
    "a function's name": lambda x: log_sum(x),
    "attributes": Model(),
    "slots": Slots(),
    "a class": OfClass().score,
    "a base class": Derived().cumulate,
    "methods": Methods(),
    "a function with arguments": lambda x: shifted(x).sum(),
    "another module": write_other,
    "other containers": lambda x: HOLDERS[0]["p"].pdf(x[0]) * HOLDERS[1]["a"][0].pdf(x[1]) * HOLDERS[2][0].pdf(x[2]),
    "a method given to a solver": lambda x: integrate.quad(PRIOR.pdf, 0.0, x[0])[0] * x[1] + x[2],
    "a closure": close_over(),
    "a default": default,
    "a program that writes": write,
    "copies of arrays in a default and a tuple": write_copies,
}
X = np.array([0.21, 0.52, 0.83])


def differences(f, x, step=1e-6):
    return np.array([(f(x + d) - f(x - d)) / (2 * step) for d in np.eye(x.size) * step])


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_that_holds_them_has_the_derivative_of_its_differences(f):
    wanted = differences(f, X)
    for gradient in (fad.grad(f), fad.jit(fad.grad(f)), fad.jit(fad.grad(f))):
        for _ in range(2):
            np.testing.assert_allclose(gradient(X), wanted, rtol=1e-5, atol=1e-7)
    along = fad.jvp(f, (X,), (np.ones(3),))[1]
    np.testing.assert_allclose(along, wanted.sum(), rtol=1e-5, atol=1e-7)
    rows = fad.vmap(fad.grad(f))(np.stack([X, X[::-1]]))
    np.testing.assert_allclose(rows, [wanted, differences(f, X[::-1].copy())], rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_their_second_derivatives_are_those_of_the_gradient(f):
    np.testing.assert_allclose(fad.hessian(f)(X), differences(fad.grad(f), X), rtol=1e-4, atol=1e-6)


def test_they_are_in_their_places_when_the_transform_is_done():
    model, slots = Model(), Slots()
    defaults = [default.__defaults__, default.__kwdefaults__["curve"]]
    held = [*vars(model).values(), slots.prior, PRIOR, *PAIR]

    def fail(x):
        model(x), slots(x), default(x), PAIR[0].pdf(x)
        raise ZeroDivisionError

    for f in (lambda x: model(x) + slots(x) + default(x) + PAIR[0].pdf(x).sum(), fail):
        try:
            fad.grad(f)(X)
        except ZeroDivisionError:
            assert f is fail
        assert all(
            a is b for a, b in zip(defaults, [default.__defaults__, *default.__kwdefaults__.values()], strict=True)
        )
        after = [*vars(model).values(), slots.prior, PRIOR, *PAIR]
        assert all(a is b for a, b in zip(held, after, strict=True))


def test_plain_arguments_go_to_scipy_while_a_transform_runs():
    frozen = type(PRIOR)

    def f(x):
        assert type(PRIOR.rvs(3, random_state=0)) is np.ndarray
        assert isinstance(PRIOR, frozen)
        assert isinstance(CURVE, interpolate.CubicSpline)
        assert COUNTS.pmf(3) == stats.binom.pmf(3, 9, 0.4)
        np.testing.assert_array_equal(CURVE(T), np.sin(3 * T))
        return PRIOR.logpdf(x).sum() * CURVE.x[-1]

    np.testing.assert_allclose(fad.grad(f)(X), (0.5 - X) / 4.0, rtol=1e-14)


def test_jit_sees_that_another_object_took_a_place():
    model = SimpleNamespace(prior=stats.norm(0.0, 1.0))
    slope = fad.jit(fad.grad(lambda x: model.prior.logpdf(x).sum()))
    for _ in range(2):
        np.testing.assert_allclose(slope(X), -X, rtol=1e-14)
    model.prior = stats.norm(1.0, 0.5)
    np.testing.assert_allclose(slope(X), (1.0 - X) / 0.25, rtol=1e-14)
    model.prior.kwds["scale"] = 2.0
    model.prior.args = (1.0,)
    np.testing.assert_allclose(slope(X), (1.0 - X) / 4.0, rtol=1e-14)


def test_jit_sees_that_a_curve_was_changed_in_place():
    curve = interpolate.CubicSpline(T, T)
    value = fad.jit(lambda x: curve(x).sum())
    for _ in range(2):
        np.testing.assert_allclose(value(X), X.sum(), rtol=1e-12)
    curve.c *= 2.0
    np.testing.assert_allclose(value(X), 2 * X.sum(), rtol=1e-12)


def test_a_distribution_of_the_programs_own_under_a_known_name_is_refused():
    class Own(stats.rv_continuous):
        def _logpdf(self, x):
            return -(x**4)

    own = Own(name="norm")()
    with pytest.raises(fad.errors.TracerConversionError):
        fad.grad(lambda x: own.logpdf(x).sum())(X)


class Place:
    def __init__(self, held):
        self.held = held


def test_jit_sees_that_another_curve_took_a_place():
    first, second = interpolate.CubicSpline(T, np.sin(3 * T)), interpolate.CubicSpline(T, np.cos(3 * T))
    place, listed, pair = Place(first), [first], Place(Pair(PRIOR, first))
    for read in (lambda: place.held, lambda: listed[0], lambda: pair.held.curve):
        value = fad.jit(lambda x: read()(x).sum())  # noqa: B023
        for _ in range(2):
            np.testing.assert_allclose(value(X), first(X).sum(), rtol=1e-12)
        place.held = listed[0] = second
        pair.held = Pair(PRIOR, second)
        np.testing.assert_allclose(value(X), second(X).sum(), rtol=1e-12)
        place.held = listed[0] = first
        pair.held = Pair(PRIOR, first)


def test_jit_sees_that_a_rotation_was_set():
    turns = transform.Rotation.from_rotvec([[0.1, 0.2, 0.3], [0.3, 0.2, 0.1]])
    value = fad.jit(lambda x: turns.apply(x))
    for _ in range(2):
        np.testing.assert_allclose(value(X), turns.apply(X), rtol=1e-12)
    turns[0] = transform.Rotation.from_rotvec([1.0, 0.0, 0.0])
    np.testing.assert_allclose(value(X), turns.apply(X), rtol=1e-12)


def test_one_object_is_the_same_one_wherever_it_is_held():
    place, weights = Place(CURVE), {CURVE: 2.0}

    def f(x):
        assert place.held is CURVE
        assert CURVE in [place.held]
        assert place.held == CURVE
        assert PRIOR != COUNTS
        return weights[place.held] * CURVE(x).sum() + {PRIOR: 3.0}[PRIOR] * PRIOR.logpdf(x).sum()

    np.testing.assert_allclose(fad.grad(f)(X), 2.0 * CURVE(X, 1) + 3.0 * (0.5 - X) / 4.0, rtol=1e-12)


def test_what_stands_for_an_object_prints_copies_and_pickles_as_it():
    def f(x):
        assert "CubicSpline" in repr(CURVE)
        assert not callable(PRIOR)
        assert pickle.loads(pickle.dumps(CURVE))(0.5) == CURVE(0.5)
        assert pickle.loads(pickle.dumps(PRIOR)).cdf(0.5) == 0.5
        return copy.copy(CURVE)(x).sum() + copy.deepcopy(CURVE)(x).sum() + copy.deepcopy(PRIOR).logpdf(x).sum()

    np.testing.assert_allclose(fad.grad(f)(X), 2.0 * CURVE(X, 1) + (0.5 - X) / 4.0, rtol=1e-12)


def test_a_partial_that_holds_an_object_takes_traced_values():
    at = functools.partial(lambda curve, x, prior: curve(x).sum() + prior.logpdf(x).sum(), CURVE, prior=PRIOR)
    np.testing.assert_allclose(fad.grad(lambda x: at(x))(X), CURVE(X, 1) + (0.5 - X) / 4.0, rtol=1e-12)


def test_a_smoothing_spline_has_traced_ends_of_its_integral():
    np.testing.assert_allclose(fad.grad(lambda b: NEAR.integral(0.1, b))(0.6), NEAR(0.6), rtol=1e-12)
    slopes = fad.jacfwd(lambda x: NEAR.derivatives(x))(0.6)
    np.testing.assert_allclose(slopes[:-1], NEAR.derivatives(0.6)[1:], rtol=1e-9)


@pytest.mark.parametrize("transformed", [fad.jit, lambda f: lambda t: fad.vmap(f)(np.stack([t, t]))[1]])
def test_a_held_slerp_takes_traced_times(transformed):
    turn = transform.Slerp([0.0, 1.0, 3.0], transform.Rotation.from_rotvec(np.eye(3)))
    times = np.array([0.3, 1.2, 2.5])
    np.testing.assert_allclose(transformed(lambda t: turn(t).as_quat())(times), turn(times).as_quat(), atol=1e-12)
    found = fad.jacfwd(lambda t: turn(t[:2]).as_quat().sum() * len(turn.rotations))(times)
    np.testing.assert_allclose(found, differences(lambda t: turn(t[:2]).as_quat().sum() * 2, times), atol=1e-6)


class Base:
    curve = CURVE

    def at(self, x):
        return self.curve(x).sum()


class Inherits(Base):
    def at(self, x):
        return super().at(x)


def test_a_curve_of_a_class_above_takes_traced_values():
    np.testing.assert_allclose(fad.grad(lambda x: Inherits().at(x))(X), CURVE(X, 1), rtol=1e-12)


def test_a_curve_has_traced_ends_of_its_integral():
    assert fad.grad(lambda b: CURVE.integrate(0.1, b))(0.6) == pytest.approx(CURVE(0.6))


def _double_density(distribution, x):
    return 2 * distribution.logpdf(x)


BOUND = types.MethodType(_double_density, PRIOR)


def test_a_function_that_a_program_bound_to_an_object_finds_what_stands_for_it():
    np.testing.assert_allclose(fad.grad(lambda x: BOUND(x).sum())(X), (0.5 - X) / 2)
    assert BOUND.__self__ is PRIOR


def _read_attributes(x):
    return vars(x) if hasattr(x, "__dict__") else {}


def test_what_stands_in_keeps_its_own_attributes_where_a_program_reads_those_of_objects():
    def f(x):
        return cos(x) + PRIOR.logpdf(x) + len(_read_attributes(x))

    for _ in range(2):
        np.testing.assert_allclose(fad.jit(f)(0.3), f(0.3))
