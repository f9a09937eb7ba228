"""The advice of an error depends on what the line was doing, and nothing that another library says hides it."""

import importlib
import itertools
import math
import traceback
from math import nextafter

import numpy as np
import pytest
from refusals import X, elsewhere, loaded, refused

import fad
from fad import errors


def store_part(x):
    rows = elsewhere(3)
    rows[1:] = x[1:]
    return rows.sum()


def store_one(x):
    rows = elsewhere(3)
    for i in range(3):
        rows[i] = x[i] ** 2
    return rows.sum()


def store_in_attribute(x):
    class Grid:
        cells = elsewhere(3)

    Grid.cells[0] = x[0]
    return Grid.cells.sum()


def store_in_dictionary(x):
    table = {"cells": elsewhere(3)}
    table["cells"][1:] = x[1:]
    return table["cells"].sum()


CELLS = np.zeros(3, dtype=[("mass", float)])


def store_field(x):
    CELLS["mass"] = x
    return CELLS["mass"].sum()


def store_sum(x):
    rows = elsewhere(3)
    rows += x
    return rows.sum()


def store_sum_of_part(x):
    rows = elsewhere(3)
    rows[1:] += x[1:]
    return rows.sum()


def store_sum_in_dictionary(x):
    table = {"cells": elsewhere(3)}
    table["cells"] += x
    return table["cells"].sum()


def store_sum_in_list(x):
    rows = [elsewhere(3)]
    rows[0] -= x
    return rows[0].sum()


def store_sum_of_field(x):
    CELLS["mass"] += x
    return CELLS["mass"].sum()


# NumPy's own functions, which make plain arrays, and not those that a function sees while a transform runs.


def one_line(x):
    np = importlib.import_module("numpy")

    return np.array([x[0], 2.0]).sum()


def several_lines(x):
    np = importlib.import_module("numpy")
    return np.array([
        [x[0], 1.0],
        [0.0, x[1]],
    ]).sum()  # fmt: skip


def as_it_is(x):
    np = importlib.import_module("numpy")
    return np.asarray(x).sum()


def converted(x):
    np = importlib.import_module("numpy")
    return np.asarray(x, dtype=float).sum()


LINES = [
    (one_line, ("np.array", "fad.numpy.array", "np.stack")),
    (several_lines, ("np.array", "fad.numpy.array")),
    (as_it_is, ("np.asarray", "fad.numpy.asarray", "x itself")),
    (converted, ("np.asarray", "x itself")),
    (lambda x: elsewhere(2, 3).dot(x).sum(), (".dot", "a @ x")),
    (lambda x: math.frexp(x[0])[0], ("math.frexp", "Write np.frexp(")),
    (lambda x: math.ulp(x[0]), ("math.ulp", "Use NumPy's functions")),
    (lambda x: nextafter(x[0], 9), ("math.nextafter", "Write np.nextafter(")),
    (lambda x: float(x[0]), ("float(", "x itself", "float(fad.stop_gradient(x))")),
    (lambda x: len("%.2f" % x[0]) * x[0], ("%", 'f"{x:.3f}"')),  # noqa: UP031  the old way of printing is the point
    (store_part, ("rows[1:]", "rows = fad.numpy.at(rows)[1:].set(", "list")),
    (store_one, ("rows[i]", "rows = fad.numpy.at(rows)[i].set(", "np.stack")),
    (store_in_attribute, ("Grid.cells[0]", "Grid.cells = fad.numpy.at(Grid.cells)[0].set(")),
    (store_in_dictionary, ("fad.numpy.at(table['cells'])[1:].set(", "table['cells'] = np.array(table['cells'])")),
    (store_field, ("structured array", "CELLS = CELLS.copy()")),
    (store_sum, ("rows +=", "rows = rows + ")),
    (store_sum_in_dictionary, ('write table["cells"] = table["cells"] + x', '(table["cells"] = np.array(')),
    (store_sum_in_list, ("write rows[0] = rows[0] - x for rows[0] -= x", "rows[0] = np.array(rows[0])")),
    (store_sum_of_field, ("structured array", "CELLS = CELLS.copy()")),
    (store_sum_of_part, ("rows[1:] +=", "rows = fad.numpy.at(rows)[1:].add(")),
]


@pytest.mark.parametrize(("f", "texts"), LINES)
def test_the_advice_is_for_what_the_line_does(f, texts):
    with refused(errors.TracerConversionError, *texts):
        fad.grad(f)(X)
    with refused(errors.TracerConversionError, *texts):
        fad.jvp(f, (X,), (X,))


def test_the_advice_of_one_line_does_not_speak_of_the_others():
    with pytest.raises(errors.TracerConversionError) as caught:
        fad.grad(one_line)(X)
    assert ".at(" not in str(caught.value)
    assert "take" not in str(caught.value)
    assert "@" not in str(caught.value)


def test_a_line_without_source_is_answered_with_an_array_of_another_name():
    names = {"cells": np.zeros(3)}
    exec(compile("def f(x):\n    cells[0] = x[0]\n    return cells.sum()\n", "<no source>", "exec"), names)
    with pytest.raises(errors.TracerConversionError, match=r"y = fad.numpy.at\(y\)\[i\].set\(x\) for y\[i\]"):
        fad.grad(names["f"])(X)


@pytest.mark.parametrize("f", [store_one, store_in_attribute])
def test_under_vmap_too_an_item_of_a_plain_array_is_answered_with_at(f):
    with refused(errors.BatchedValueError, "fad.numpy.at("):
        fad.vmap(f)(np.ones((2, 3)))


@pytest.mark.parametrize("transform", [lambda f: fad.jit(fad.grad(f)), lambda f: fad.grad(fad.jit(f))])
def test_under_jit_too_an_item_of_a_plain_array_is_answered_with_at(transform):
    with refused(errors.TracerConversionError, "fad.numpy.at("):
        transform(store_one)(X)


def test_a_batched_index_of_a_plain_array_is_answered_with_take():
    with refused(errors.TracerConversionError, "fad.numpy.take(a, x, axis=0)"):
        fad.vmap(lambda i: elsewhere(9)[i])(np.ones((3, 2), int))


def test_jit_alone_guards_what_is_stored_into_a_plain_array():
    f = fad.jit(store_one)
    for x in (X, 2 * X, X):
        assert f(x) == store_one(x)


# --- what other libraries put on top ------------------------------------------------------------------------------


def _kepler(solver):
    so = pytest.importorskip("scipy.optimize")
    return lambda x: getattr(so, solver)(lambda e: e - x[0] * np.sin(e) - 1.0, 0.0, 5.0)


@pytest.mark.parametrize("solver", ["brentq", "brenth", "bisect", "ridder"])
def test_a_solver_in_c_that_goes_on_after_an_error_does_not_hide_it(solver):
    with pytest.raises(errors.TracerConversionError, match=rf"scipy\.optimize\.{solver} "):
        fad.grad(_kepler(solver))(X)


def test_a_solver_that_fad_has_is_named():
    with pytest.raises(errors.TracerConversionError, match=r"Use fad\.scipy\.optimize\.brentq instead"):
        fad.grad(_kepler("brentq"))(X)


def test_scipys_integral_of_traced_values_is_answered_with_fads():
    pytest.importorskip("scipy.integrate")
    with refused(errors.TracerConversionError, "Use fad.scipy.integrate.quad instead"):
        fad.grad(lambda x: loaded("scipy.integrate").quad(lambda t: np.exp(-x[0] * t), 0.0, 1.0)[0])(X)


def test_scipys_minimum_of_a_traced_function_is_answered_with_fads():
    pytest.importorskip("scipy.optimize")
    with refused(errors.TracerConversionError, "Use fad.scipy.optimize.minimize instead"):
        fad.grad(lambda x: loaded("scipy.optimize").minimize(lambda y: np.sum((y - x) ** 2), np.zeros(3)).x[0])(X)


def test_an_error_of_the_users_own_stays_the_users_own():
    def f(x):
        try:
            return float(x[0])
        except TypeError as error:
            raise ValueError("my own") from error

    with pytest.raises(ValueError, match="my own"):
        fad.grad(f)(X)


@pytest.mark.parametrize("error", [ValueError, np.linalg.LinAlgError])
def test_what_a_user_catches_does_not_hide_a_later_error(error):
    interpolate = pytest.importorskip("scipy.interpolate")

    def f(x):
        with pytest.raises(errors.TracerConversionError):
            interpolate.CloughTocher2DInterpolator(np.eye(3, 2), x)
        return np.sum(x @ np.ones((7, 2)) if error is ValueError else np.linalg.inv(x[:1, None] * np.zeros((2, 2))))

    with pytest.raises(error):
        fad.grad(f)(X)


def test_what_a_user_catches_is_forgotten():
    so = pytest.importorskip("scipy.optimize")

    def f(x):
        try:
            so.minimize(lambda y: np.sum((y - x) ** 2), np.zeros(3))
        except errors.FadError:
            pass
        except ValueError:
            pass
        return {}["missing"]

    with pytest.raises(KeyError):
        fad.grad(f)(X)


def test_a_traced_array_given_to_a_plot_shows_the_users_line_and_how_to_look_at_it():
    plt = pytest.importorskip("matplotlib.pyplot")
    plt.switch_backend("agg")
    with refused(errors.TracerConversionError, "plot(fad.stop_gradient(x))"):
        fad.grad(lambda x: (plt.plot(x), x.sum())[1])(X)
    plt.close("all")
    shown = fad.grad(lambda x: (plt.plot(fad.stop_gradient(x)), x.sum())[1])(X)
    np.testing.assert_array_equal(shown, 1.0)
    plt.close("all")


def test_a_traced_array_given_to_compiled_code_shows_its_line_and_the_users():
    svm = pytest.importorskip("sklearn.svm")
    with refused(errors.TracerConversionError, "compiled code", "libsvm.fit", "custom_vjp"):
        fad.grad(lambda x: svm.SVR().fit(x[:, None], x).predict(x[:, None]).sum())(X)


class Angles(np.ndarray):
    def __new__(cls, x):
        return super().__new__(cls, x.shape, float, x)


@pytest.mark.parametrize("transform", [fad.grad, fad.vmap, lambda f: fad.jit(fad.grad(f))])
def test_an_array_of_the_users_class_made_of_a_traced_ones_memory_is_answered_with_what_to_write(transform):
    with refused(errors.TracerConversionError, "of the memory of a traced one", "x.reshape(shape)", "derived from"):
        transform(lambda x: Angles(x).sum())(np.stack([X, X]) if transform is fad.vmap else X)
    with refused(errors.TracerConversionError, "x.reshape(shape)"):
        transform(lambda x: np.ndarray((3,), float, x).sum())(np.stack([X, X]) if transform is fad.vmap else X)


def test_linear_models_and_gaussian_processes_of_scikit_learn_have_their_derivatives():
    linear_model = pytest.importorskip("sklearn.linear_model")
    fit = lambda y: linear_model.Ridge().fit(X[:, None], y).coef_[0]
    centred = X - X.mean()
    np.testing.assert_allclose(fad.grad(fit)(X**2), centred / (1.0 + centred @ centred))


HIDDEN = itertools.repeat(np)  # NumPy's own functions, where fad does not find them
CALLS = [
    (lambda x, np: np.full(3, x[0]).sum(), ("fad.numpy.full(...) for np.full(...)",)),
    (lambda x, np: np.mean([x[0], x[1]]), ("fad.numpy.mean(...)", "np.stack([x, y])")),
    (lambda x, np: np.r_[x, 1.0].sum(), ("fad.numpy.r_[", "np.concatenate")),
    (lambda x, np: np.c_[x, x].sum(), ("fad.numpy.c_[", "np.column_stack")),
    (lambda x, np: np.random.default_rng(0).normal(x).sum(), ("normal(size=x.shape)",)),
    (lambda x, np: np.random.default_rng(0).gamma(x).sum(), ("scale * fad.random.gamma(key, shape)",)),
    (lambda x, np: np.random.default_rng(0).choice(x), ("x[np.random.default_rng(0).choice(len(x), size",)),
    (lambda x, np: np.random.default_rng(0).binomial(10, x[0]), ("binomial(fad.stop_gradient(x), ...)",)),
    (lambda x, np: np.random.uniform(x[0], x[1]), ("low + (high - low) * np.random.uniform(size=x.shape)",)),
    (lambda x, np: np.random.multivariate_normal(x, np.eye(3)).sum(), ("cholesky(cov) @ np.random.normal(size",)),
    (lambda x, np: np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8)).sum(), ("sliding_window_view(x, n)",)),
    (lambda x, np: np.random.poisson(x[0]) * x[1], ("np.random.poisson(fad.stop_gradient(x), ...)",)),
]


@pytest.mark.parametrize(("f", "texts"), CALLS)
def test_a_function_of_numpy_that_asks_no_protocol_is_answered_with_fads(f, texts):
    with refused(errors.TracerConversionError, *texts):
        fad.grad(lambda x: f(x, next(HIDDEN)))(X)


@pytest.mark.parametrize(("name", "other"), [("broyden1", "root"), ("anderson", "root")])
def test_a_solver_that_fad_has_under_another_name_is_answered_with_it(name, other):
    so = pytest.importorskip("scipy.optimize")
    with pytest.raises(errors.TracerConversionError, match=rf"Use fad\.scipy\.optimize\.{other} instead"):
        fad.grad(lambda x: getattr(so, name)(lambda e: e * e - x[0], 1.0))(X)


@pytest.mark.parametrize("look", [np.mean, float, np.asarray, lambda x: x[0].item(), lambda x: np.array([x])])
def test_a_history_of_traced_values_is_answered_with_what_to_keep(look):
    history = []
    fad.grad(lambda x: (history.append(x.sum()), x.sum())[1])(X)
    with refused(errors.LeakedTracerError, "after a reverse-mode transform", "keep fad.stop_gradient(x)"):
        look(history if look in (np.mean, np.asarray) else history[0] if look is float else [history[0]][0][None])


def test_an_unregistered_dataclass_is_answered_with_how_to_register_it():
    import dataclasses

    @dataclasses.dataclass
    class Ray:
        origin: np.ndarray
        direction: np.ndarray

    ray = Ray(X, 2 * X)
    with refused(errors.UnsupportedInputError, "fad.tree.register_dataclass(Ray)"):
        fad.grad(lambda r: r.origin @ r.direction)(ray)
    fad.tree.register_dataclass(Ray)
    np.testing.assert_array_equal(fad.grad(lambda r: r.origin @ r.direction)(ray).origin, 2 * X)


PARAMETERS = {"layers": [{"w": X, "width": 3}], "name": "net"}


@pytest.mark.parametrize("transform", [fad.grad, fad.hessian, lambda f: lambda x: fad.jvp(f, (x,), (x,))])
def test_the_leaf_of_a_tree_that_has_no_derivative_is_named_by_its_place(transform):
    with refused(errors.IntegerInputError, "at ['layers'][0]['width'] has dtype int64"):
        transform(lambda p: 1.0)({**PARAMETERS, "name": None})
    with refused(errors.UnsupportedInputError, "at ['name'] has a leaf of type str ('net')", "keep it out of the tree"):
        transform(lambda p: 1.0)({"layers": [], "name": "net"})


class ArrayOfAnotherLibrary:
    def __array__(self, dtype=None, copy=None):
        return np.ones(2)


@pytest.mark.parametrize(
    ("x", "advice"),
    [
        (np.array([1.0, 2.0], object), "x.astype(float)"),
        (np.array(["1.5"]), "x.astype(float)"),
        (np.timedelta64(3, "D"), "x / np.timedelta64(1, 's')"),
        (np.array(["2020-01-01"], "M8[D]"), "(x - start) / np.timedelta64(1, 's')"),
        (np.datetime64("2020"), "(x - start) / np.timedelta64(1, 's')"),
        ({1.0, 2.0}, "np.array(list(x)) for a set"),
        (range(3), "np.array(list(x)) for a range"),
        (ArrayOfAnotherLibrary(), "np.asarray(x) for a ArrayOfAnotherLibrary"),
    ],
)
def test_what_holds_no_numbers_is_answered_with_how_to_make_numbers_of_it(x, advice):
    for run in (fad.grad(lambda x: 1.0), fad.vmap(lambda x: x), lambda x: fad.vjp(lambda x: 1.0, x)):
        with refused(errors.UnsupportedInputError, advice):
            run(x)


@pytest.mark.parametrize("name", ["grad", "value_and_grad", "jacobian", "jacfwd", "jacrev", "hessian", "vmap"])
def test_a_value_or_an_argument_in_the_place_of_a_function_is_noticed_at_once(name):
    transform = getattr(fad, name)
    with pytest.raises(TypeError, match=rf"fad\.{name}\(f\)\(x\) for fad\.{name}\(f\(x\)\)"):
        transform(np.sum(X))
    if name != "vmap":
        with pytest.raises(errors.ArgnumsError, match=rf"fad\.{name}\(f\)\(x\) for fad\.{name}\(f, x\)"):
            transform(np.sum, X)
        with pytest.raises(errors.ArgnumsError, match=rf"fad\.{name}\(f\)\(x\) for fad\.{name}\(f, x\)"):
            transform(np.sum, 0.0)


@pytest.mark.parametrize(
    ("name", "own"),
    [
        ("make_jaxpr", "make_graph"),
        ("tree_util", "tree"),
        ("lax", "scan"),
        ("checkpoint_policies", "checkpoint"),
        ("pure_callback", "custom_vjp"),
    ],
)
def test_a_name_of_jax_is_answered_with_fads(name, own):
    assert hasattr(fad, own)
    with pytest.raises(AttributeError, match=rf"{name}'; write .*fad\.{own}"):
        getattr(fad, name)


@pytest.mark.parametrize("transform", ["grad", "vmap", "jit", "jvp"])
@pytest.mark.parametrize("number", [math.ulp, math.frexp])
def test_an_error_of_a_function_that_ran_twice_is_shown_once(transform, number):
    f = lambda x: np.sum(x) * np.sum(number(x[0]))
    run = {
        "grad": lambda: fad.grad(f)(X),
        "vmap": lambda: fad.vmap(f)(X[None] + np.zeros((2, 1))),
        "jit": lambda: fad.jit(fad.grad(f))(X),
        "jvp": lambda: fad.jvp(f, (X,), (X,)),
    }[transform]
    with pytest.raises(errors.FadError) as caught:
        run()
    assert "During handling" not in "".join(traceback.format_exception(caught.value))


def test_what_the_user_was_handling_stays_in_the_traceback():
    def f(x):
        try:
            raise KeyError("mine")
        except KeyError:
            return np.sum(x) * float(x[0])

    with pytest.raises(errors.TracerConversionError) as caught:
        fad.grad(f)(np.ones(2))
    text = "".join(traceback.format_exception(caught.value))
    assert text.count("During handling") == text.count("KeyError: 'mine'") == 1


@pytest.mark.parametrize("transform", [fad.grad, lambda f: fad.jit(fad.grad(f)), fad.jacfwd])
def test_a_method_of_a_class_that_is_given_a_traced_value_is_answered_with_the_values_own(transform):
    with refused(errors.TracerConversionError, "numpy.ndarray.flatten(x)", "Write x.flatten()", "stop_gradient"):
        transform(lambda x: np.ndarray.flatten(x).sum())(X)
    with refused(errors.TracerConversionError, "Write x.sum()"):
        transform(lambda x: sum(map(np.ndarray.sum, [x, x * x])))(X)
    with refused(errors.TracerConversionError, "float.is_integer(x)", "Write x.is_integer()"):
        transform(lambda x: float.is_integer(x[0]) * x[0])(X)


def test_a_function_of_frompyfunc_is_answered_with_vectorize():
    with refused(errors.MissingRuleError, "np.frompyfunc(f, ...)", "Write np.vectorize(f)(x)"):
        fad.grad(lambda x: np.frompyfunc(lambda a: a * a, 1, 1)(x).sum())(X)
