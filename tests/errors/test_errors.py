"""What bad input gets: an error of its own type that says what was given and what to write, with the user's line."""

import importlib
import math
import re
import threading
from pathlib import Path

import numpy as np
import pytest
from refusals import X, refused

import fad
from fad import errors

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


@pytest.mark.parametrize("pack", [lambda y: [y], lambda y: (y,), lambda y: {"loss": y}], ids=["list", "tuple", "dict"])
def test_grad_of_one_number_in_a_tree_is_refused_too(pack):
    with refused(errors.NonScalarOutputError, "the tree"):
        fad.grad(lambda x: pack(np.sum(x)))(X)
    with refused(errors.NonScalarOutputError, "the tree"):
        fad.value_and_grad(lambda x: pack(x[0].astype(np.float32)))(X)


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


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("product", [lambda m, x: m * x, lambda m, x: x * m, lambda m, x: m + x])
def test_a_matrix_of_numpys_own_class_beside_a_traced_value_is_refused(product):
    matrix = np.matrix([[1.0, 2.0], [3.0, 4.0]])
    with refused(errors.UnsupportedInputError, "matrix", "x @ y"):
        fad.grad(lambda x: np.sum(product(matrix, x)))(2.0)


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


# --- functions without a rule ------------------------------------------------------------------------------------


def test_a_function_without_a_rule_names_the_nearest_that_has_one():
    def nansums(x):  # a function of some later NumPy
        raise AssertionError("a traced value went through to the function itself")

    with refused(errors.MissingRuleError, "numpy.nansums", "numpy.nansum", "fad.custom_jvp"):
        fad.grad(lambda x: x.__array_function__(nansums, (), (x,), {}))(X)


@pytest.mark.parametrize("name", ["no_such_attribute", "bit_length", "is_integer"])
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
        fad.grad(lambda x: x * math.ulp(x))(1.0)  # this line
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


# --- the address of the page -------------------------------------------------------------------------------------


def test_a_message_ends_with_the_address_of_the_errors_page():
    with pytest.raises(errors.NonScalarOutputError) as caught:
        fad.grad(lambda x: x)(X)
    assert str(caught.value).endswith("\n  see " + errors.SITE + "errors.html#fad.errors.NonScalarOutputError")


def test_every_error_of_fad_stands_on_the_page_that_its_message_names():
    root = Path(fad.__file__).parent
    for path in root.rglob("*.py"):
        if re.search(r"^class \w+\(.*Error\b", path.read_text(encoding="utf-8"), re.MULTILINE):
            importlib.import_module(".".join(("fad", *path.relative_to(root).with_suffix("").parts)))
    page = (Path(__file__).parents[2] / "docs" / "errors.md").read_text(encoding="utf-8")
    waiting, found = [errors.FadError], set()
    while waiting:
        below = [e for e in waiting.pop().__subclasses__() if e.__module__.startswith("fad.")]
        waiting += below
        found |= {errors.page_of(e).partition("#")[2] for e in below}
    assert "fad.files.FileFormatError" in found
    assert {e for e in found if not e.startswith("fad.errors.") and e not in page} == set()


def test_a_setting_leaves_the_address_out():
    with fad.config.use(error_links=False), pytest.raises(errors.NonScalarOutputError) as caught:
        fad.grad(lambda x: x)(X)
    assert errors.SITE not in str(caught.value)


def test_an_error_that_is_defined_elsewhere_leads_to_the_nearest_page_or_to_none():
    class Special(errors.NotLinearError):
        pass

    class Alone(errors.FadError):
        pass

    assert errors.page_of(Special) == errors.page_of(errors.NotLinearError)
    assert errors.page_of(Alone) == ""
