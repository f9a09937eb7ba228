"""jet in other transforms and they in it, control flow, custom rules; how it is called, and what it refuses."""

import gc
import math

import numpy as np
import pytest
from curves import SERIES, X, check, nested

import fad
from fad.core.primitives.primitive import Primitive
from fad.errors import (
    CustomRuleError,
    DtypeMismatchError,
    IntegerInputError,
    LeakedTracerError,
    ShapeMismatchError,
    TracerConversionError,
    TreeMismatchError,
)

# --- compositions ------------------------------------------------------------------------------------------------


def program(x):
    return np.sum(np.sin(x) * np.exp(x[::-1])) + x[0] ** 3 / (1 + x[1] ** 2)


@fad.custom_jvp
def logistic(x):
    return 1 / (1 + np.exp(-x))


@logistic.defjvp
def _(primals, tangents):
    y = logistic(*primals)
    return y, y * (1 - y) * tangents[0]


@fad.custom_vjp
def growing(x):
    return np.exp(x)


growing.defvjp(lambda x: (growing(x), growing(x)), lambda y, ct: (y * ct,))


@fad.custom_jvp
def sine(x):
    return np.sin(x)


@fad.custom_jvp
def cosine(x):
    return np.cos(x)


sine.defjvps(lambda t, y, x: cosine(x) * t)
cosine.defjvps(lambda t, y, x: -sine(x) * t)

JITTED = fad.jit(lambda x, y: (np.sin(x) * y, np.floor(x), x > 0))
PROGRAMS = {
    "a gradient": fad.grad(program),
    "a Hessian": fad.hessian(program),
    "a jvp": lambda x: fad.jvp(program, (x,), (x * x,))[1],
    "a pushed tangent": lambda x: fad.linearize(program, x)[1](np.cos(x)),
    "a jet": lambda x: fad.jet(program, (x,), ([np.sin(x), x],))[1][1],
    "a vmap": fad.vmap(lambda v: np.sin(v) * v**2),
    "batch elements that part": fad.vmap(lambda v: np.sin(v) if v > 0 else v**3),
    "a jitted function": fad.jit(lambda x: np.sin(x) * np.exp(x)),
    "a gradient of a jitted function": fad.grad(fad.jit(program)),
    "jitted functions in a loop": lambda x: fad.fori_loop(0, 3, lambda i, c: JITTED(c, x)[0], x),
    "a checkpoint": fad.grad(fad.checkpoint(program)),
    "a custom jvp": lambda x: logistic(x) * x,
    "a custom vjp": lambda x: growing(x) * x,
    "two custom rules": lambda x: sine(x) * cosine(x),
    "a loop": lambda x: np.stack([np.tanh(x[i]) * x[i - 1] for i in range(3)]),
    "a branch": lambda x: np.sin(x) if x[0] > 0 else np.cos(x),
    "cond": lambda x: fad.cond(x[0] > 0, np.sin, np.cos, x),
    "switch": lambda x: fad.switch(1, [np.sin, lambda v: v**3], x),
    "scan": lambda x: fad.scan(lambda c, a: (np.sin(c) * a, c * a), x[0], x)[1],
    "fori_loop": lambda x: fad.fori_loop(0, 5, lambda i, c: np.tanh(c) * (1 + i), x),
    "while_loop": lambda x: fad.while_loop(lambda c: np.sum(c * c) > 0.01, lambda c: c / 2 * np.cos(c), x),
    "map": lambda x: fad.map(lambda v: np.exp(v) * v, x),
    "a jitted scan": fad.jit(lambda x: fad.scan(lambda c, a: (np.sin(c) * a, c * a), x[0], x)[1]),
    "a jitted cond": fad.jit(lambda x: fad.cond(x[0] > 0, np.sin, np.cos, x)),
    "a stopped gradient": lambda x: x * fad.stop_gradient(np.sin(x)),
    "an index": lambda x: x[np.argsort(x)] * np.array([1.0, 2.0, 3.0]),
    "a changed copy": lambda x: fad.numpy.at(x)[1].multiply(x[0]),
    "a linear system": lambda x: fad.custom_linear_solve(
        lambda v: x**2 * v + v[0], np.ones(3), lambda mv, b: np.linalg.solve(fad.jacobian(mv)(b), b), symmetric=True
    ),
    "nothing that depends on it": lambda x: np.ones(3),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_fourth_derivatives_of_a_program_are_those_of_nested_jvp(name):
    check(PROGRAMS[name])


def test_a_jitted_function_runs_compiled_on_series():
    runs = []

    @fad.jit
    def f(x, y):
        runs.append(1)
        return {"a": np.tanh(x) * y, "b": np.floor(x), "c": y}

    expected = fad.jet(lambda x: {"a": np.tanh(x) * 2.0, "b": np.floor(x), "c": 2.0}, (X,), (SERIES,))
    for _ in range(3):
        found = fad.jet(lambda x: f(x, 2.0), (X,), (SERIES,))
    assert len(runs) == 1
    for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)
    fad.jet(lambda x: f(x, 2.0), (X,), (SERIES[:2],))
    assert len(runs) == 2


def test_an_implicit_function_is_followed_to_the_order_of_the_jet():
    def bisect(f, x):
        low, high = 0.0, 4.0
        for _ in range(60):
            middle = (low + high) / 2
            low, high = (middle, high) if f(middle) < 0 else (low, middle)
        return high

    def root(a):
        return fad.custom_root(lambda x: x * x - a, 1.0, bisect, lambda g, y: y / g(1.0))

    line = ([1.0, 0.0, 0.0, 0.0, 0.0],)
    np.testing.assert_allclose(fad.jet(root, (2.0,), line)[1], fad.jet(np.sqrt, (2.0,), line)[1], rtol=1e-12)


def _second(x):
    return fad.jet(program, (x,), (SERIES[:2],))[1][1]


def _second_nested(x):
    return nested(program, (x,), (SERIES[:2],))[0][1]


ROWS = np.stack([X, 2 * X, -X])


@pytest.mark.parametrize(
    "transform",
    [
        lambda f: fad.grad(f)(X),
        lambda f: fad.hessian(f)(X),
        lambda f: fad.jvp(f, (X,), (SERIES[0],))[1],
        lambda f: fad.linearize(f, X)[1](SERIES[0]),
        lambda f: fad.vmap(f)(ROWS),
        lambda f: fad.vmap(fad.grad(f))(ROWS),
        lambda f: fad.jit(f)(X),
        lambda f: fad.jit(fad.grad(f))(X),
        lambda f: fad.grad(fad.jit(f))(X),
        lambda f: fad.grad(fad.checkpoint(f))(X),
        lambda f: fad.jit(fad.vmap(f))(ROWS),
    ],
)
def test_transforms_of_a_jet_are_those_of_nested_jvp(transform):
    np.testing.assert_allclose(transform(_second), transform(_second_nested), rtol=1e-10, atol=1e-12)


def test_a_jet_is_differentiable_in_its_series():
    def f(*series):
        return fad.jet(lambda x: np.sum(np.sin(x)), (X,), (list(series),))[1][1]

    a, b = SERIES[:2]
    by_first, by_second = fad.grad(f, (0, 1))(a, b)
    np.testing.assert_allclose(by_first, -2 * np.sin(X) * a, rtol=1e-12)
    np.testing.assert_allclose(by_second, np.cos(X), rtol=1e-12)
    by_first, _ = fad.grad(f, (0, 1))(0 * a, b)
    np.testing.assert_allclose(by_first, 0.0)


def test_an_inner_jet_does_not_take_the_outer_curve_for_its_own():
    def f(x):
        return x * fad.jet(lambda y: x + y, (1.0,), ([1.0],))[1][0]

    assert fad.jet(f, (3.0,), ([1.0, 0.0],))[1] == [1.0, 0.0]


# --- how it is called --------------------------------------------------------------------------------------------


def test_pytrees_go_in_and_come_out_with_lists_in_the_places_of_leaves():
    def f(p, z):
        return {"a": p["w"] * z, "b": (np.sum(p["b"]), 3.0)}

    out, series = fad.jet(f, ({"w": X, "b": X}, 2.0), ({"w": [X, X], "b": [X, 0 * X]}, [1.0, 0.0]))
    np.testing.assert_allclose(out["a"], 2 * X)
    np.testing.assert_allclose(series["a"], [3 * X, 4 * X])
    assert series["b"] == ([X.sum(), 0.0], [0.0, 0.0])
    _, more = fad.jet(lambda t: t["a"], (out,), (series,))
    np.testing.assert_array_equal(more, series["a"])


def test_coefficients_of_powers_are_derivatives_divided_by_factorials():
    scaled = fad.jet(np.exp, (0.0,), ([1.0, 0.0, 0.0, 0.0],))[1]
    plain = fad.jet(np.exp, (0.0,), ([1.0, 0.0, 0.0, 0.0],), factorial_scaled=False)[1]
    np.testing.assert_allclose(scaled, [1, 1, 1, 1])
    np.testing.assert_allclose(plain, [1, 1 / 2, 1 / 6, 1 / 24])
    curve = ([0.3, 0.5, -0.2],)
    lower = fad.jet(np.sin, (0.4,), ([0.3, 1.0, -1.2],))[1]
    np.testing.assert_allclose(fad.jet(np.sin, (0.4,), curve, factorial_scaled=False)[1], lower / np.array([1, 2, 6]))


def test_what_is_returned_beside_the_output_is_passed_through():
    y, series, aux = fad.jet(lambda x: (x * x, x + 1), (3.0,), ([1.0, 0.0],), has_aux=True)
    assert (y, series, aux) == (9.0, [6.0, 2.0], 4.0)


def test_the_order_may_be_nought():
    assert fad.jet(np.exp, (0.0,), ([],)) == (1.0, [])


def test_results_share_no_memory_with_arguments_or_each_other():
    x, c = X.copy(), SERIES[0].copy()
    _, series = fad.jet(lambda v: (v, v, v[:2]), (x,), ([c, c],))
    arrays = fad.tree.leaves(series)
    for i, a in enumerate(arrays):
        assert a.flags.writeable
        assert not any(np.shares_memory(a, b) for b in [c, *arrays[i + 1 :]])
    np.testing.assert_array_equal(c, SERIES[0])


def test_a_jet_leaves_nothing_to_the_garbage_collector():
    def f(x):
        return np.sum(np.tanh(np.sin(x) / (1 + np.arctan2(x, 2.0)))) + np.linalg.det(np.outer(x, x) + np.eye(3))

    fad.jet(f, (X,), (SERIES,))
    gc.collect()
    gc.freeze()  # what was there before is no concern
    gc.disable()
    try:
        fad.jet(f, (X,), (SERIES,))
        assert gc.collect() == 0
    finally:
        gc.enable()
        gc.unfreeze()


def test_a_long_chain_in_a_rule_does_not_exhaust_the_stack():
    @fad.custom_jvp
    def chain(x):
        return np.sin(x)

    @chain.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        y = t
        for _ in range(500):
            y = np.tanh(y) + 0.1 * x
        return chain(x), y

    series = fad.jet(chain, (0.1,), ([1.0, 0.0, 0.0, 0.0],))[1]
    np.testing.assert_allclose(series, nested(chain, (0.1,), ([1.0, 0.0, 0.0, 0.0],))[0])


@pytest.mark.parametrize("f", [np.sin, np.tanh, np.sqrt, lambda x: x**2.5, lambda x: 1 / x, np.arctan, np.log])
def test_the_number_of_operations_grows_like_a_power_of_the_order(f):
    assert _operations(f, 0.5, 16) < 8 * _operations(f, 0.5, 8)


@pytest.mark.parametrize("name", ["cholesky", "eigh", "svd", "qr", "inv", "det", "slogdet", "pinv"])
def test_the_number_of_operations_of_linear_algebra_does_not_double_with_each_order(name):
    f = lambda a: getattr(np.linalg, name)(a)
    a = np.outer(X, X) + np.diag([1.0, 2.0, 4.0])
    assert _operations(f, a, 8) < 6 * _operations(f, a, 4)


def _operations(f, x, order):
    """Count the operations of a jet: those that a recording of it holds."""
    series = [0.1 * (1.0 + 0.1 * k) * x for k in range(order)]
    return len(fad.make_graph(lambda x, cs: fad.jet(f, (x,), (cs,))[1])(x, series).equations)


# --- errors ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "words"),
    [
        (lambda: fad.jet(np.sin, 1.0, ([1.0],)), TypeError, "as tuples"),
        (lambda: fad.jet(np.sin, (1.0,), ([1.0], [1.0])), TreeMismatchError, "a list of derivatives for each"),
        (lambda: fad.jet(np.add, (1.0, 2.0), ([1.0], [1.0, 2.0])), TreeMismatchError, "as many derivatives"),
        (lambda: fad.jet(np.sin, (1.0,), (1.0,)), TreeMismatchError, "one of them is a float"),
        (lambda: fad.jet(np.sin, (X,), (X,)), TreeMismatchError, "one of them is a ndarray"),
        (lambda: fad.jet(np.sin, (X,), ([1.0],)), ShapeMismatchError, r"the shape \(3,\) of its value"),
        (lambda: fad.jet(np.sin, (np.float32(1),), ([np.float64(1)],)), DtypeMismatchError, "float32"),
        (lambda: fad.jet(np.sin, (1,), ([1],)), IntegerInputError, "a primal of jet has dtype int64"),
        (lambda: fad.jet(lambda: 1.0, (), ()), TreeMismatchError, "at least one array"),
        (lambda: fad.jet(lambda x: math.ulp(x), (1.0,), ([1.0],)), TracerConversionError, "Taylor-mode"),
    ],
)
def test_a_wrong_call_says_what_is_wrong(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_a_traced_value_that_was_kept_is_refused():
    kept = []
    fad.jet(lambda x: kept.append(x) or x, (1.0,), ([1.0],))
    with pytest.raises(LeakedTracerError):
        kept[0] + 1


@pytest.mark.parametrize("order", [1, 3])
def test_a_custom_rule_may_not_use_a_traced_value_from_outside(order):
    def f(x):
        @fad.custom_jvp
        def g(v):
            return v * 2

        g.defjvps(lambda t, y, v: t * x)
        return g(x * 3)

    with pytest.raises(CustomRuleError, match="from outside"):
        fad.jet(f, (1.0,), ([1.0] + [0.0] * (order - 1),))


def test_an_operation_without_any_rule_is_refused_as_under_jvp():
    no_rule = Primitive("no_rule", np.sin)
    with pytest.raises(Exception) as under_jvp:
        fad.jvp(no_rule, (1.0,), (1.0,))
    with pytest.raises(type(under_jvp.value)):
        fad.jet(no_rule, (1.0,), ([1.0, 0.0],))


def test_an_operation_with_a_vjp_alone_has_its_series_from_it():
    cube = Primitive("cube_by_vjp", lambda x: x**3, vjp=(lambda ct, y, x: 3 * x**2 * ct,))
    assert fad.jet(cube, (2.0,), ([1.0, 0.0, 0.0, 0.0],))[1] == [12.0, 12.0, 6.0, 0.0]
