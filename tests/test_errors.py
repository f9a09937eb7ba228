"""What bad input gets: an error of its own type that says what was given and what to write, with the user's line."""

import contextlib
import copy
import math
import pickle
import threading

import numpy as np
import pytest

import fad
import fad.numpy
from fad import errors

X = np.array([1.0, 2.0, 3.0])


@contextlib.contextmanager
def refused(error, *texts):
    """Expect exactly this error, with these texts in its message and a line of this file at its end."""
    with pytest.raises(error) as caught:
        yield
    assert type(caught.value) is error
    message, _, place = str(caught.value).rpartition("\n  at ")
    for text in texts:
        assert text in message, f"{text!r} is not in {message!r}"
    assert place.startswith(__file__), f"the user's line is missing in {message!r}"


# --- outputs -----------------------------------------------------------------------------------------------------


def test_grad_of_an_array_output_names_its_shape_and_dtype():
    with refused(errors.NonScalarOutputError, "shape (3,)", "float64", "np.sum", "fad.jacobian", "elementwise_grad"):
        fad.grad(lambda x: x**2)(X)


def test_grad_of_one_number_in_an_array_is_refused_too():
    with refused(errors.NonScalarOutputError, "shape (1,)"):
        fad.grad(lambda x: x[:1])(X)


def test_grad_of_a_tree_output_names_the_tree():
    with refused(errors.NonScalarOutputError, "the tree"):
        fad.grad(lambda x: (x[0], x[1]))(X)
    with refused(errors.NonScalarOutputError, "the tree"):
        fad.grad(lambda x: None)(X)


def test_grad_of_a_complex_output_names_holomorphic():
    with refused(errors.ComplexGradientError, "complex", "holomorphic=True", "abs(z)**2"):
        fad.grad(lambda z: z * z)(1 + 2j)


def test_holomorphic_needs_complex_input_and_output():
    with refused(errors.ComplexGradientError, "complex input", "float64"):
        fad.grad(lambda x: x * x, holomorphic=True)(1.0)
    with refused(errors.ComplexGradientError, "complex output", "float64"):
        fad.grad(lambda z: abs(z), holomorphic=True)(1.0 + 0j)


def test_has_aux_needs_a_pair():
    with pytest.raises(TypeError, match=r"has_aux=True.*pair.*float64|has_aux=True.*pair.*Tracer"):
        fad.grad(lambda x: x * x, has_aux=True)(1.0)


def test_an_output_that_is_no_number_is_refused():
    with refused(errors.UnsupportedInputError, "output", "str"):
        fad.vjp(lambda x: "text", 1.0)


# --- inputs ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("x", [3, True, np.arange(3), np.array([True]), np.int8(3)])
@pytest.mark.parametrize(
    "transform",
    [
        lambda f: fad.grad(f),
        lambda f: fad.value_and_grad(f),
        lambda f: fad.jacfwd(f),
        lambda f: fad.jacrev(f),
        lambda f: fad.jacobian(f),
        lambda f: fad.hessian(f),
        lambda f: lambda x: fad.vjp(f, x),
        lambda f: lambda x: fad.jvp(f, (x,), (x,)),
        lambda f: lambda x: fad.linearize(f, x),
    ],
)
def test_integers_have_no_derivative(transform, x):
    with refused(errors.IntegerInputError, "allow_int", "3.0", str(np.asarray(x).dtype)):
        transform(lambda x: np.sum(x * 1.0))(x)


@pytest.mark.parametrize(
    "f",
    [
        np.argmax, lambda x: np.argsort(x)[0], lambda x: np.sum(x > 0), lambda x: np.allclose(x, x),
        lambda x: int(x[0]), lambda x: np.searchsorted(x, 0.5), lambda x: x[0] > 0, lambda x: np.count_nonzero(x),
    ],
)  # fmt: skip
@pytest.mark.parametrize(
    "transform", [fad.grad, fad.value_and_grad, fad.jacfwd, fad.jacrev, fad.jacobian, fad.hessian, fad.elementwise_grad]
)
def test_counts_comparisons_and_places_have_no_derivative_rather_than_a_zero_one(transform, f):
    with refused(errors.IntegerOutputError, "has_aux", "argmax"):
        transform(f)(np.array([0.3, 1.7]))
    with refused(errors.IntegerOutputError, "has_aux", "argmax"):
        transform(lambda x: fad.jit(f)(x))(np.array([0.3, 1.7]))


def test_an_integer_beside_the_loss_is_passed_on():
    x = np.array([0.3, 1.7])
    assert fad.grad(lambda x: (np.sum(x**2), np.argmax(x)), has_aux=True)(x)[1] == 1
    assert fad.grad(lambda x: x[np.argmax(x)])(x).tolist() == [0.0, 1.0]


def test_an_integer_deep_in_a_tree_is_found():
    with refused(errors.IntegerInputError, "int64"):
        fad.grad(lambda p: p["w"] * p["n"])({"w": 1.0, "n": 3})


def test_allow_int_gives_zeros_of_the_integers_own_dtype():
    g = fad.grad(lambda p: p["w"] * p["n"], allow_int=True)({"w": 2.0, "n": 3})
    assert g["w"] == 3.0
    assert g["n"] == 0
    assert np.asarray(g["n"]).dtype == np.dtype(int)


@pytest.mark.parametrize(
    ("x", "text"),
    [
        ("a string", "str"),
        (np.array(["a"]), "dtype <U1"),
        (np.array([1.0, None]), "dtype object"),
        (np.ma.masked_array([1.0, 2.0], [True, False]), "MaskedArray"),
        (np.datetime64("2020-01-01"), "datetime64"),
        (object(), "object"),
        (lambda: 1, "function"),
        ({1.0, 2.0}, "set"),
    ],
)
def test_a_value_that_fad_does_not_know_is_refused(x, text):
    with refused(errors.UnsupportedInputError, text):
        fad.grad(lambda x: 0.0)(x)


def test_an_object_array_beside_a_traced_value_is_refused():
    with refused(errors.UnsupportedInputError, "object"):
        fad.grad(lambda x: np.sum(x * np.array([1.0, 2.0, 3.0], object)))(X)
    with refused(errors.UnsupportedInputError, "object"):
        fad.grad(lambda x: np.sum(np.array([1.0, 2.0, 3.0], object) * x))(X)


def test_a_masked_array_beside_a_traced_value_is_refused():
    masked = np.ma.masked_array(X, [True, False, False])
    with refused(errors.UnsupportedInputError, "MaskedArray", "filled"):
        fad.grad(lambda x: np.sum(x * masked))(X)
    with refused(errors.TracerConversionError, "without its derivative"):  # here the masked array is asked first
        fad.grad(lambda x: np.sum(masked * x))(X)


def test_a_string_beside_a_traced_value_is_a_type_error_as_everywhere():
    for f in (lambda x: x + "a", lambda x: "a" + x, lambda x: x @ "a"):
        with pytest.raises(TypeError):
            fad.grad(f)(1.0)


@pytest.mark.parametrize(
    ("argnums", "text"),
    [(2, "2 positional"), (-3, "2 positional"), ((0, 2), "2 positional"), ((0, 0), "twice"), ((0, -2), "twice")],
)
def test_argnums_out_of_range_or_twice(argnums, text):
    with refused(errors.ArgnumsError, f"argnums={argnums!r}", text):
        fad.grad(lambda x, y: x * y, argnums=argnums)(1.0, 2.0)


def test_argnums_that_are_no_integers():
    with refused(errors.ArgnumsError, "1.5"):
        fad.grad(lambda x, y: x * y, argnums=1.5)(1.0, 2.0)


def test_argnums_of_an_argument_given_by_name_points_to_argnames():
    with refused(errors.ArgnumsError, "argnames"):
        fad.grad(lambda x: x * x)(x=1.0)


def test_argnames_that_the_call_does_not_give():
    with refused(errors.ArgnumsError, "'z'"):
        fad.grad(lambda x, y: x * y, argnames="z")(1.0, 2.0)


# --- tangents and cotangents -------------------------------------------------------------------------------------


def test_a_tangent_must_have_the_structure_of_its_primal():
    with refused(errors.TreeMismatchError, "tangents of jvp", "structure"):
        fad.jvp(lambda x, y: x * y, (1.0, 2.0), (1.0,))
    with refused(errors.TreeMismatchError, "tangents of jvp"):
        fad.jvp(lambda p: p["a"], ({"a": 1.0},), ({"b": 1.0},))


def test_a_tangent_must_have_the_shape_of_its_primal():
    with refused(errors.ShapeMismatchError, "(3,)", "()"):
        fad.jvp(np.sin, (X,), (1.0,))


def test_a_tangent_must_have_the_dtype_of_its_primal():
    with refused(errors.DtypeMismatchError, "float32", "float64", "astype"):
        fad.jvp(np.sin, (X.astype("float32"),), (X,))


def test_jvp_takes_tuples():
    with pytest.raises(TypeError, match=r"jvp\(f, \(x,\), \(dx,\)\)"):
        fad.jvp(np.sin, X, X)


def test_a_cotangent_must_fit_the_output():
    _, pullback = fad.vjp(lambda x: (x, x * x), X)
    with refused(errors.TreeMismatchError, "cotangent", "structure"):
        pullback(X)
    with refused(errors.ShapeMismatchError, "cotangent", "(3,)", "(1, 3)"):
        pullback((X, X[None]))
    with refused(errors.DtypeMismatchError, "cotangent", "float64", "float32"):
        pullback((X, X.astype("float32")))


def test_a_complex_cotangent_of_a_real_output_is_refused():
    _, pullback = fad.vjp(np.sin, 1.0)
    with refused(errors.DtypeMismatchError, "float64", "complex128"):
        pullback(1j)


# --- tracers that leave their transform --------------------------------------------------------------------------

LEAKS = {
    "grad": lambda f: fad.grad(f)(3.0),
    "vjp": lambda f: fad.vjp(f, 3.0),
    "jvp": lambda f: fad.jvp(f, (3.0,), (1.0,)),
    "vmap": lambda f: fad.vmap(f)(np.ones(2)),
    "linearize": lambda f: fad.linearize(f, 3.0),
}


@pytest.mark.parametrize("transform", list(LEAKS))
@pytest.mark.parametrize(
    "use", [lambda x: x + 1, lambda x: 2 * x, lambda x: np.sin(x), lambda x: fad.grad(lambda y: x * y)(1.0)]
)
def test_an_escaped_tracer_is_noticed_when_it_is_used(transform, use):
    kept = []
    LEAKS[transform](lambda x: kept.append(x) or x * 2.0)
    with refused(errors.LeakedTracerError, "finished", "has_aux=True"):
        use(kept[0])


def test_an_escaped_tracer_is_noticed_as_an_output_of_another_transform():
    kept = []
    fad.grad(lambda x: kept.append(x) or x * 2.0)(3.0)
    with refused(errors.LeakedTracerError, "finished"):
        fad.vjp(lambda x: kept[0], 1.0)


def test_an_escaped_tracer_can_still_be_printed():
    kept = []
    fad.grad(lambda x: kept.append(x) or x * 2.0)(3.0)
    assert "3.0" in repr(kept[0])


def test_aux_that_holds_tracers_is_lowered_and_may_leave():
    _, aux = fad.grad(lambda x: (x * x, {"x": x}), has_aux=True)(3.0)
    assert aux["x"] == 3.0
    assert type(aux["x"]) is np.float64


def test_a_generator_finished_after_its_transform_is_noticed():
    def lines(x):
        yield x * 2.0

    kept = []
    fad.grad(lambda x: kept.append(lines(x)) or x)(1.0)
    with refused(errors.LeakedTracerError):
        next(kept[0])


# --- conversions that would lose the derivative ------------------------------------------------------------------


@pytest.mark.parametrize(
    "convert",
    [
        lambda x: np.asarray(x),
        lambda x: np.array(x),
        lambda x: np.array([x, x]),
        lambda x: np.array([[x, 1.0], [2.0, x]]),
        lambda x: np.array((x, 1.0), dtype=object),
        lambda x: np.array(x, dtype=object),
        lambda x: np.asarray([x]),
        lambda x: np.ascontiguousarray(x),
    ],
)
def test_a_tracer_does_not_become_a_plain_array(convert):
    with refused(errors.TracerConversionError, "np.stack", "fad.stop_gradient"):
        fad.grad(lambda x: np.sum(convert(x)))(1.0)


@pytest.mark.parametrize("convert", [float, complex, math.sin, math.sqrt, lambda x: x.item(), lambda x: f"{float(x)}"])
@pytest.mark.parametrize("transform", [fad.grad, lambda f: lambda x: fad.jvp(f, (x,), (1.0,))])
def test_a_tracer_does_not_become_a_python_number(transform, convert):
    with refused(errors.TracerConversionError, "Python number", "np.sin", "float(fad.stop_gradient(x))"):
        transform(lambda x: convert(x) * x)(1.0)


def test_the_remedy_for_a_python_number_works():
    assert fad.grad(lambda x: float(fad.stop_gradient(x)) * x)(3.0) == 3.0


def test_int_bool_and_index_are_answered_for_they_are_piecewise_constant():
    def f(x):
        n = int(x)
        return x**n if x > 0 else x * [1, 2, 3][int(x)]

    assert fad.grad(f)(3.0) == 27.0


@pytest.mark.parametrize("convert", [float, complex, lambda x: x.item()])
def test_a_batched_value_does_not_become_one_number(convert):
    with refused(errors.BatchedValueError, "3 numbers", "Use x itself"):
        fad.vmap(lambda x: convert(x) + 1)(X)


def test_a_tracer_is_not_written_into_a_plain_array():
    def by_item(x):
        out = np.zeros(3)
        out[0] = x
        return np.sum(out)

    # NumPy puts a ValueError of its own on top of what the conversion to a number raises, and keeps ours as its cause.
    with pytest.raises(ValueError, match="setting an array element with a sequence") as caught:
        fad.grad(by_item)(1.0)
    assert type(caught.value.__cause__) is errors.TracerConversionError
    assert "fad.numpy.at(out)[i].set(x)" in str(caught.value.__cause__)
    assert "out[0] = x" in str(caught.value.__cause__)


@pytest.mark.parametrize("index", [slice(None), [0, 1], ...])
def test_a_tracer_is_not_written_into_a_part_of_a_plain_array(index):
    def f(x):
        out = np.zeros(3)
        out[index] = x
        return np.sum(out)

    with refused(errors.TracerConversionError, "fad.numpy.at(out)[i].set(x)"):
        fad.grad(f)(1.0)


def test_the_remedy_for_writing_into_a_plain_array_works():
    def f(x):
        out = np.zeros(3)
        out = fad.numpy.at(out)[0].set(x)
        return np.sum(out * x)

    assert fad.grad(f)(3.0) == 6.0


@pytest.mark.parametrize(
    "update",
    [
        lambda w, x: w.__iadd__(x),
        lambda w, x: w.__imul__(x),
        lambda w, x: np.add(w, x, out=w),
        lambda w, x: np.sin(x, out=w),
        lambda w, x: np.sum(x, out=w[0, ...]),
        lambda w, x: np.add(w, 1.0, out=x),
    ],
)
def test_a_traced_result_is_not_written_into_an_array(update):
    with refused(errors.TracerConversionError, "out=", "never changed in place"):
        fad.grad(lambda x: np.sum(update(np.zeros(3), x)))(X)


def test_augmented_assignment_to_a_traced_name_makes_a_new_value():
    def f(x):
        y = x
        y += 1.0
        y *= x
        return np.sum(y)

    np.testing.assert_allclose(fad.grad(f)(X), 2 * X + 1)


def test_item_assignment_names_at():
    def plain(x):
        x[0] = 1.0
        return np.sum(x)

    def augmented(x):
        x[0] += 1.0
        return np.sum(x)

    for f in (plain, augmented):
        with refused(errors.ItemAssignmentError, "x.at[i].set(v)"):
            fad.grad(f)(X)


def test_a_tracer_is_not_pickled():
    with refused(errors.TracerConversionError, "pickled"):
        fad.grad(lambda x: len(pickle.dumps(x)) * x)(1.0)


def test_copies_of_a_tracer_are_the_tracer():
    assert fad.grad(lambda x: copy.deepcopy([x])[0] * copy.copy(x))(3.0) == 6.0


# --- vmap --------------------------------------------------------------------------------------------------------


def _two(x, y):
    return x * y


@pytest.mark.parametrize(
    ("in_axes", "args", "texts"),
    [
        ((0, 0), (np.ones(3), np.ones(4)), ("one size", "3", "4")),
        ((0,), (np.ones(3), np.ones(3)), ("1 entries", "2 positional")),
        ((0, 1), (np.ones(3), np.ones(3)), ("in_axes=1", "(3,)", "None")),
        ((-2, 0), (np.ones(3), np.ones(3)), ("in_axes=-2", "(3,)")),
        ((None, None), (np.ones(3), np.ones(3)), ("no argument",)),
        (("a", 0), (np.ones(3), np.ones(3)), ("in_axes", "'a'")),
        ((0, 0), (np.ones(3), 2.0), ("in_axes=0", "()", "None")),
        ((0, (0, 0)), (np.ones(3), np.ones(3)), ("in_axes", "prefix")),
    ],
)
def test_in_axes_that_do_not_fit(in_axes, args, texts):
    with refused(errors.BatchingError, *texts):
        fad.vmap(_two, in_axes=in_axes)(*args)


def test_axis_size_that_does_not_fit():
    with refused(errors.BatchingError, "axis_size=4", "3"):
        fad.vmap(np.sin, axis_size=4)(X)


def test_out_axes_that_do_not_fit():
    with refused(errors.BatchingError, "out_axes=2"):
        fad.vmap(np.sin, out_axes=2)(X)


def test_lanes_that_return_different_structures_or_shapes():
    with refused(errors.BatchingError, "different structures"):
        fad.vmap(lambda x: x if x > 2 else (x, x))(X)
    with refused(errors.BatchingError, "different shapes", "(1,)", "(2,)"):
        fad.vmap(lambda x: np.stack([x, x]) if x > 2 else np.stack([x]))(X)


def test_branching_can_be_an_error():
    with refused(errors.BatchedValueError, "on_branch", "np.where"):
        fad.vmap(lambda x: x if x > 2 else -x, on_branch="error")(X)


def test_an_unknown_choice_is_refused_at_once():
    with pytest.raises(ValueError, match="on_branch"):
        fad.vmap(_two, on_branch="guess")
    with pytest.raises(ValueError, match="chunk_size"):
        fad.vmap(_two, chunk_size=0)


# --- backends ----------------------------------------------------------------------------------------------------


class _FakeArray:
    """An array of a backend that refuses NumPy, as CuPy's do."""

    shape, dtype, ndim, size = (3,), np.dtype(float), 1, 3

    def __array_ufunc__(self, ufunc, method, *inputs, **kwargs):
        return NotImplemented

    def __array__(self, *args, **kwargs):
        raise TypeError("Implicit conversion to a NumPy array is not allowed")


class _FakeBackend:
    name = "fake"
    array_type = _FakeArray


@pytest.fixture
def fake_backend(monkeypatch):
    monkeypatch.setitem(fad.backends._BY_NAME, "fake", _FakeBackend)
    monkeypatch.setitem(fad.backends._BY_TYPE, _FakeArray, _FakeBackend)


def test_arrays_of_two_backends_do_not_mix(fake_backend):
    with refused(errors.BackendMismatchError, "numpy", "fake", "fad.device_put"):
        fad.backends.backend_of(np.ones(3), _FakeArray())


@pytest.mark.parametrize("f", [lambda x, a: x * a, lambda x, a: a * x, lambda x, a: np.matmul(x, a)])
def test_an_operation_of_a_traced_array_and_one_of_another_backend_is_refused(fake_backend, f):
    other = _FakeArray()
    with refused(errors.BackendMismatchError, "numpy", "fake"):
        fad.grad(lambda x: np.sum(f(x, other)))(X)
    with refused(errors.BackendMismatchError, "numpy", "fake"):
        fad.jvp(lambda x: f(x, other), (X,), (X,))
    with refused(errors.BackendMismatchError, "numpy", "fake"):
        fad.vmap(lambda x: f(x, other))(np.ones((2, 3)))


def test_an_unknown_backend_names_those_that_exist():
    with pytest.raises(ValueError, match=r"no backend 'tpu'.*numpy"):
        fad.backends.use("tpu")


# --- arrays overwritten between the passes -----------------------------------------------------------------------


def test_a_constant_overwritten_before_the_pullback_is_noticed_and_both_lines_are_named():
    w = np.ones(3)
    y, pullback = fad.vjp(lambda x: x * w, X)  # the line that kept it
    w[0] = 5.0
    with refused(errors.MutationError, "shape (3,)", "y, pullback = fad.vjp(lambda x: x * w, X)", "copy()") as _:
        pullback(y)


def test_an_input_overwritten_before_the_pullback_is_noticed():
    x = X.copy()
    y, pullback = fad.vjp(lambda x: x * x, x)
    x *= 2
    with refused(errors.MutationError, "overwritten"):
        pullback(y)


def test_an_input_that_no_rule_needs_may_be_overwritten():
    x = X.copy()
    _, pullback = fad.vjp(lambda x: 3.0 * x + x, x)
    x *= 2
    np.testing.assert_array_equal(pullback(np.ones(3))[0], [4.0, 4.0, 4.0])


def test_an_array_overwritten_inside_the_function_is_noticed():
    def f(x):
        w = np.ones(3)
        total = 0.0
        for _ in range(2):
            total = total + np.sum(x * x * w)
            w *= 0.5
        return total

    with refused(errors.MutationError, "w"):
        fad.grad(f)(X)


def test_a_view_of_an_input_is_watched_too():
    x = np.arange(12.0).reshape(3, 4)
    y, pullback = fad.vjp(lambda v: v[0] * v[1], x)
    x[0, 0] = 7.0
    with refused(errors.MutationError):
        pullback(y)


def test_the_full_check_sees_a_change_that_the_cheap_one_may_miss():
    w = np.zeros(100_001)
    with fad.config.use(check_mutation="full"):
        y, pullback = fad.vjp(lambda x: x * w, np.ones(100_001))
        w[7] = 1.0
        with refused(errors.MutationError):
            pullback(y)


def test_the_check_can_be_switched_off():
    w = np.ones(3)
    with fad.config.use(check_mutation="off"):
        _, pullback = fad.vjp(lambda x: x * w, X)
        w[0] = 5.0
        assert pullback(np.ones(3))[0][0] == 5.0


# --- functions without a rule ------------------------------------------------------------------------------------


def test_a_function_without_a_rule_names_the_nearest_that_has_one():
    def nansums(x):  # a function of some later NumPy
        raise AssertionError("a traced value went through to the function itself")

    with refused(errors.MissingRuleError, "numpy.nansums", "numpy.nansum", "fad.custom_jvp"):
        fad.grad(lambda x: x.__array_function__(nansums, (), (x,), {}))(X)


def test_a_function_refused_on_purpose_says_why_and_what_instead():
    with refused(errors.MissingRuleError, "numpy.fill_diagonal", "in place", ".at[i, i].set"):
        fad.grad(lambda x: np.fill_diagonal(x, 1.0))(np.ones((2, 2)))
    with refused(errors.MissingRuleError, "add.at", ".at[i].add"):
        fad.grad(lambda x: np.add.at(x, 0, 1.0))(X)


def test_a_method_that_works_in_place_says_what_instead():
    with refused(errors.MissingRuleError, "sort", "np.sort(x)"):
        fad.grad(lambda x: x.sort())(X)


@pytest.mark.parametrize("name", ["no_such_attribute", "ctypes", "strides"])
def test_attributes_that_a_tracer_does_not_have(name):
    with pytest.raises(AttributeError):
        fad.grad(lambda x: getattr(x, name))(X)
    assert fad.grad(lambda x: x[0] * hasattr(x, name))(X)[0] == 0.0


def test_a_complex_value_does_not_lose_its_imaginary_part_silently():
    with refused(errors.ComplexGradientError, "imaginary", "x.real"):
        fad.grad(lambda z: np.sum(z.astype(float)))(X * 1j)


# --- linear_transpose and custom rules ---------------------------------------------------------------------------


def test_linear_transpose_refuses_what_is_not_linear():
    with refused(errors.NotLinearError):
        fad.linear_transpose(np.sin, X)(X)


def test_a_custom_function_without_a_rule_says_so():
    f = fad.custom_jvp(lambda x: x)
    with refused(errors.CustomRuleError, "defjvp"):
        f(1.0)


def test_a_backward_rule_must_return_one_cotangent_per_argument():
    f = fad.custom_vjp(lambda x: x * x)
    f.defvjp(lambda x: (x * x, x), lambda x, ct: 2 * x * ct)
    with refused(errors.CustomRuleError, "tuple"):
        fad.grad(f)(3.0)


def test_a_custom_rule_that_returns_the_wrong_shape_is_refused():
    f = fad.custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (primals[0] ** 2, np.ones(5)))
    with refused(errors.CustomRuleError, "(5,)", "()"):
        fad.grad(f)(3.0)


# --- the base class ----------------------------------------------------------------------------------------------


def test_every_error_is_a_fad_error_and_a_built_in_one():
    with pytest.raises(TypeError):
        fad.grad(lambda x: x)(X)
    with pytest.raises(fad.errors.FadError):
        fad.grad(lambda x: x)(X)


def test_the_users_line_is_the_one_inside_the_function_where_the_error_arose():
    with pytest.raises(errors.TracerConversionError) as caught:
        fad.grad(lambda x: np.sum(np.asarray(x)))(1.0)  # this line
    assert "# this line" in str(caught.value)


def test_an_error_inside_the_users_function_passes_through_and_leaves_nothing_behind():
    def f(x):
        raise KeyError("mine")

    for transform in (fad.grad, fad.vmap, fad.jacfwd, fad.checkpoint):
        with pytest.raises(KeyError, match="mine"):
            transform(f)(X)
    assert fad.grad(lambda x: x * x)(3.0) == 6.0


def test_errors_inside_the_function_can_be_caught_and_the_derivative_is_right():
    def f(x):
        try:
            return np.sum(x.reshape(7))
        except ValueError:
            return np.sum(x * x)

    np.testing.assert_allclose(fad.grad(f)(X), 2 * X)


def test_threads_inside_the_function_are_right():
    def f(x):
        parts = [None] * 4

        def work(i):
            parts[i] = fad.grad(lambda y: y**i)(2.0) * x

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        return sum(parts)

    assert fad.grad(f)(1.0) == sum(i * 2.0 ** (i - 1) for i in range(4))


# --- the eight traps ---------------------------------------------------------------------------------------------


def test_trap_1_argnums_a_tuple_gives_a_tuple_an_int_a_bare_gradient_negative_ones_count_from_the_end():
    f = lambda x, y: x * y
    assert fad.grad(f, (0,))(2.0, 3.0) == (3.0,)
    assert fad.grad(f, [0, 1])(2.0, 3.0) == (3.0, 2.0)
    assert fad.grad(f, 1)(2.0, 3.0) == 2.0
    assert fad.grad(f, -1)(2.0, 3.0) == 2.0
    assert fad.grad(f, (-1, 0))(2.0, 3.0) == (2.0, 3.0)


def test_trap_2_a_pullback_returns_a_tuple_even_for_one_primal():
    _, pullback = fad.vjp(lambda x: x * x, 3.0)
    assert pullback(1.0) == (6.0,)
    assert fad.jvp(lambda x: x * x, (3.0,), (1.0,)) == (9.0, 6.0)
    assert fad.jvp(lambda x: x * x, [3.0], [1.0]) == (9.0, 6.0)


def test_trap_3_the_value_comes_first_and_aux_nests():
    assert fad.value_and_grad(lambda x: x * x)(3.0) == (9.0, 6.0)
    assert fad.value_and_grad(lambda x: (x * x, "aux"), has_aux=True)(3.0) == ((9.0, "aux"), 6.0)
    assert fad.grad(lambda x: (x * x, "aux"), has_aux=True)(3.0) == (6.0, "aux")


def test_trap_4_a_jacobian_has_the_output_in_front_and_the_outputs_structure_outside():
    a = np.arange(6.0).reshape(2, 3)
    for jac in (fad.jacfwd, fad.jacrev, fad.jacobian):
        np.testing.assert_array_equal(jac(lambda x: a @ x)(X), a)
        tree = jac(lambda p: {"s": np.sum(p["x"]) * p["y"], "v": p["x"] * p["y"]})({"x": X, "y": 2.0})
        assert tree["s"]["x"].shape == (3,)
        assert tree["v"]["x"].shape == (3, 3)
        assert tree["v"]["y"].shape == (3,)
        assert tree["s"]["y"].shape == ()


def test_trap_5_complex_gradients_are_jaxs():
    assert fad.grad(lambda z: abs(z) ** 2)(1 + 2j) == 2 - 4j
    assert fad.grad(lambda z: z * z, holomorphic=True)(1 + 2j) == 2 + 4j
    assert fad.grad(lambda z: z.real)(1 + 2j) == 1
    assert fad.grad(lambda z: z.imag)(1 + 2j) == -1j


def test_trap_5_ties_share_and_kinks_have_the_middle():
    np.testing.assert_array_equal(fad.grad(lambda x: np.max(x))(np.array([2.0, 2.0, 1.0])), [0.5, 0.5, 0.0])
    assert fad.grad(lambda x: np.maximum(x, 2.0))(2.0) == 0.5
    assert fad.grad(lambda x: np.abs(x))(0.0) == 0.0
    assert fad.grad(abs)(0j) == 0
    np.testing.assert_array_equal(fad.grad(lambda x: np.linalg.norm(x))(np.zeros(2)), [0.0, 0.0])
    with np.errstate(divide="ignore"):
        assert fad.grad(np.sqrt)(0.0) == np.inf


@pytest.mark.parametrize("way", [fad.grad, lambda f: lambda x: fad.jvp(f, (x,), (1.0,))[1]])
def test_trap_5_powers_at_zero(way):
    assert way(lambda x: x**2.0)(0.0) == 0.0
    assert way(way(lambda x: x**2.0))(0.0) == 2.0
    assert way(way(lambda x: x**2))(0.0) == 2.0
    assert way(way(way(lambda x: x**2.0)))(0.0) == 0.0
    assert way(lambda x: x**0.0)(0.0) == 0.0
    assert way(lambda x: x**1.0)(0.0) == 1.0
    assert way(lambda x: x ** np.float64(2.0))(0.0) == 0.0
    assert way(way(lambda x: x ** np.float64(2.0)))(0.0) == 2.0
    assert way(lambda x: np.sum(x ** np.array([0.0, 1.0, 2.0])))(0.0) == 1.0
    assert way(lambda y: 0.0**y)(2.0) == 0.0
    assert way(lambda y: np.float64(0.0) ** y)(0.5) == 0.0
    assert way(lambda x: (-2.0 * x) ** 3)(1.0) == -24.0


def test_trap_6_a_python_float_gives_a_numpy_scalar_and_an_integer_a_type_error():
    assert type(fad.grad(lambda x: x * x)(3.0)) is np.float64
    with pytest.raises(TypeError, match="allow_int"):
        fad.grad(lambda x: x * x)(3)


def test_trap_7_an_output_that_does_not_depend_on_its_input_has_zeros():
    np.testing.assert_array_equal(fad.grad(lambda x: 3.0)(X), np.zeros(3))
    np.testing.assert_array_equal(fad.jvp(lambda x: np.ones(2), (X,), (X,))[1], np.zeros(2))
    np.testing.assert_array_equal(fad.jacfwd(lambda x: np.ones(2))(X), np.zeros((2, 3)))
    np.testing.assert_array_equal(fad.jacrev(lambda x: np.ones(2))(X), np.zeros((2, 3)))
    assert fad.grad(lambda x: np.floor(x))(2.5) == 0.0
    assert fad.grad(lambda x, y: x * 2.0, 1)(1.0, 1.0) == 0.0


@pytest.mark.parametrize(
    ("f", "g", "x", "wanted"),
    [
        (np.sqrt, lambda x: x * 0, 0.0, 0.0),
        (np.log, lambda x: 3 * x, -1.0, 3.0),
        (np.log, lambda x: 3 * x, 0.0, 3.0),
        (lambda x: 1 / x, lambda x: x, 0.0, 1.0),
        (lambda x: np.sqrt(x - 1) / x, lambda x: np.exp(x), 0.0, 1.0),
        (lambda x: np.arctan2(x, x) * np.log(x), lambda x: 2 * x, 0.0, 2.0),
        (lambda x: np.exp(1000 * (1 - x)), lambda x: x, -1.0, 1.0),
        (lambda x: x**0.5, lambda x: x, 0.0, 1.0),
        (lambda x: np.log(x) ** 2, lambda x: x, 0.0, 1.0),
    ],
)
def test_trap_8_what_where_does_not_choose_does_not_reach_the_gradient(f, g, x, wanted):
    with np.errstate(all="ignore"):
        assert fad.grad(lambda x: np.where(x > 0, f(x), g(x)))(x) == wanted
        assert fad.jvp(lambda x: np.where(x > 0, f(x), g(x)), (x,), (1.0,))[1] == wanted
        assert fad.grad(lambda x: np.sum(np.where(x > 0, f(x), g(x))))(np.array([x, 2.0]))[0] == wanted
        assert fad.vmap(fad.grad(lambda x: np.where(x > 0, f(x), g(x))))(np.array([x, x]))[0] == wanted


def test_trap_8_at_second_order():
    with np.errstate(all="ignore"):
        f = lambda x: np.where(x > 0, np.log(x), x * x * x)
        assert fad.grad(fad.grad(f))(0.0) == 0.0
        assert fad.grad(fad.grad(f))(-1.0) == -6.0
        assert fad.hessian(f)(-1.0) == -6.0
