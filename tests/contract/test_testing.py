"""fad.testing itself: what it accepts, what it catches, and what it says."""

import numpy as np
import pytest
from hypothesis import find, given

import fad
import fad.scipy.linalg as sl
from fad.errors import GradientCheckError
from fad.testing import Program, Sampler, call, check_grads, numerical_jvp, strategies

X = np.array([0.5, -1.0, 2.0])


def _with_jvp(f, rule):
    g = fad.custom_jvp(f)
    g.defjvp(rule)
    return g


# --- numerical_jvp --------------------------------------------------------------------------------------------------


def test_central_differences_are_right_to_ten_digits():
    found = numerical_jvp(np.exp, (X,), (np.ones(3),), method="central")
    np.testing.assert_allclose(found, np.exp(X), rtol=1e-10)


def test_the_complex_step_is_right_to_rounding():
    found = numerical_jvp(lambda x: np.exp(x) / (1 + x**2), (X,), (np.ones(3),))
    np.testing.assert_allclose(found, np.exp(X) * (1 - X) ** 2 / (1 + X**2) ** 2, rtol=5e-15)


@pytest.mark.parametrize(
    "f", [np.abs, lambda x: np.maximum(x, 0.1), lambda x: np.real(x) * 2, lambda x: np.hypot(x, 1)]
)
def test_the_complex_step_is_not_taken_where_the_program_is_not_analytic(f):
    found = numerical_jvp(f, (X,), (np.ones(3),))
    np.testing.assert_allclose(found, fad.jvp(f, (X,), (np.ones(3),))[1], rtol=1e-9)


def test_single_precision_is_measured_in_double():
    found = numerical_jvp(np.sin, (X.astype("float32"),), (np.ones(3, "float32"),))
    np.testing.assert_allclose(found, np.cos(X), rtol=1e-10)


def test_a_function_that_rounds_to_single_precision_gets_a_larger_step():
    found = numerical_jvp(lambda x: np.sin(x.astype("float32")), (X,), (np.ones(3),))
    np.testing.assert_allclose(found, np.cos(X), rtol=1e-4)


def test_trees_integers_and_small_numbers():
    f = lambda p: {"y": p["a"] * p["n"], "i": np.argmax(p["a"])}
    found = numerical_jvp(f, ({"a": 1e-6 * X, "n": 3},), ({"a": X, "n": 0},))
    np.testing.assert_allclose(found["y"], 3 * X, rtol=1e-8)
    assert found["i"] == 0


def test_complex_directions_of_functions_that_are_not_holomorphic():
    z = X + 1j
    np.testing.assert_allclose(numerical_jvp(np.conj, (z,), (1j * z,)), np.conj(1j * z), rtol=1e-9)


def test_an_unknown_method_is_refused():
    with pytest.raises(ValueError, match="method"):
        numerical_jvp(np.sin, (X,), (X,), method="guess")


# --- check_grads ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("order", [1, 2, 3])
def test_right_derivatives_pass(order):
    check_grads(lambda p: np.sum(np.sin(p["a"]) * p["b"]), ({"a": X, "b": 2.0},), order=order)
    check_grads(lambda z: np.abs(z) ** 2, (X + 1j,), order=order)
    check_grads(lambda x: np.tanh(x) * x, (X.astype("float32"),), order=order)


def test_a_wrong_first_derivative_is_caught_in_the_mode_asked_for():
    wrong = _with_jvp(np.sin, lambda p, t: (np.sin(p[0]), 1.001 * np.cos(p[0]) * t[0]))
    for modes in ("fwd", "rev", ("fwd", "rev")):
        with pytest.raises(GradientCheckError, match="is wrong by"):
            check_grads(wrong, (X,), order=1, modes=modes)


def test_a_wrong_second_derivative_is_caught_at_order_two():
    right_once = _with_jvp(np.sin, lambda p, t: (np.sin(p[0]), fad.stop_gradient(np.cos(p[0])) * t[0]))
    check_grads(right_once, (X,), order=1)
    with pytest.raises(GradientCheckError, match="jvp of jvp"):
        check_grads(right_once, (X,), order=2)


def test_the_tolerance_can_be_given():
    nearly = _with_jvp(np.sin, lambda p, t: (np.sin(p[0]), (1 + 1e-5) * np.cos(p[0]) * t[0]))
    check_grads(nearly, (X,), order=1, rtol=1e-4)
    with pytest.raises(GradientCheckError):
        check_grads(nearly, (X,), order=1)


def test_a_value_that_changes_under_a_transform_is_caught():
    f = _with_jvp(np.sin, lambda p, t: (np.cos(p[0]), np.cos(p[0]) * t[0]))
    with pytest.raises(GradientCheckError, match="the value under jvp"):
        check_grads(f, (X,), order=1)


EMPTY = {
    "mean": (np.mean, [(0, 0), (0, 3), (3, 0), (0,)]),
    "mean of rows": (lambda x: np.mean(x, axis=1), [(0, 0), (3, 0)]),
    "var": (np.var, [(0, 0), (0, 3)]),
    "std": (np.std, [(0, 0), (3, 0)]),
    "median": (np.median, [(0, 0), (0, 3)]),
    "cov": (np.cov, [(0, 0), (0, 3), (3, 0)]),
    "det": (np.linalg.det, [(0, 0), (2, 0, 0)]),
    "inv": (np.linalg.inv, [(0, 0), (2, 0, 0)]),
    "products": (lambda x: np.swapaxes(x, -1, -2) @ x, [(0, 0), (0, 3), (3, 0), (2, 0, 3)]),
    "svd": (sl.svd, [(0, 0), (2, 0, 0), (2, 0, 3)]),
    "polar": (sl.polar, [(0, 0), (2, 0, 0), (2, 0, 3)]),
    "eigh": (sl.eigh, [(0, 0), (2, 0, 0)]),
    "lstsq": (lambda a: sl.lstsq(a, a[:, 0])[0], [(0, 2)]),
    "expm": (sl.expm, [(0, 0), (0, 3, 3)]),
    "lu": (lambda a: sl.lu(a)[1:], [(0, 0), (0, 3), (0, 3, 3)]),
    "null space": (sl.null_space, [(0, 3)]),
    "orth": (sl.orth, [(3, 0)]),
}


@pytest.mark.filterwarnings("ignore:Degrees of freedom|Mean of empty slice:RuntimeWarning")
@pytest.mark.parametrize("dtype", [float, complex, np.float32])
@pytest.mark.parametrize("name", EMPTY)
def test_right_derivatives_of_empty_arrays_pass(name, dtype):
    f, shapes = EMPTY[name]
    for shape in shapes:
        with np.errstate(all="ignore"):  # means of nothing are NaN
            check_grads(f, (np.zeros(shape, dtype),), order=2)


def test_right_derivatives_of_stacks_that_scipy_gives_in_a_list_pass():
    x = np.random.default_rng(0).normal(size=(2, 3, 3))
    check_grads(sl.polar, (x,), order=2)
    check_grads(lambda x: sl.svd(x)[1], (x,), order=2)


def test_bad_orders_and_modes_are_refused():
    with pytest.raises(ValueError, match="order"):
        check_grads(np.sin, (X,), order=0)
    with pytest.raises(ValueError, match="modes"):
        check_grads(np.sin, (X,), order=1, modes=("forward",))


# --- samples, programs and strategies ------------------------------------------------------------------------------


def test_a_sampler_draws_the_same_numbers_in_every_precision():
    double, single = Sampler(3).real(4), Sampler(3, "float32").real(4)
    np.testing.assert_array_equal(single, double.astype("float32"))
    assert Sampler(3, "complex64").real(4).dtype == np.complex64
    assert len(set(double)) == 4


def test_calls_show_their_shapes():
    assert repr(call([np.ones(2), np.ones((1, 3))], axis=None)) == "(['float64[2]', 'float64[1, 3]'], axis=None)"


def test_a_program_prints_itself_as_a_formula():
    program = Program(1, [("x * cos(y)", 0, 0), ("exp(sin(x))", 1, 0)])
    assert repr(program) == "Program: a -> b = a * cos(a); c = exp(sin(b)); c"
    np.testing.assert_allclose(program(X), np.exp(np.sin(X * np.cos(X))))


@given(strategies.programs_and_points())
def test_programs_stay_finite_on_their_domain(drawn):
    program, xs = drawn
    assert np.isfinite(program(*xs)).all()


def test_every_operation_of_the_table_is_drawn():
    from fad.testing import SMOOTH

    for name in SMOOTH:
        assert find(strategies.programs(), lambda p, name=name: any(step[0] == name for step in p.steps))


def test_strategies_reach_the_corners():
    assert find(strategies.shapes(), lambda s: s == ()) == ()
    assert 0 in find(strategies.shapes(), lambda s: 0 in s)
    assert find(strategies.broadcast_pairs(), lambda p: 1 in p[0] and p[0] != p[1])
    assert find(strategies.dtypes(), lambda d: d == np.complex64) == np.complex64
    assert find(strategies.pytrees(), lambda t: isinstance(t, dict) and len(fad.tree.leaves(t)) > 1)
