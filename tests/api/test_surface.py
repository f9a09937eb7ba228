"""Every public name of NumPy is decided: a primitive, a composite, flat, refused with a reason, or plain.

A name that a new version of NumPy adds, and that nobody has decided about, fails here.
"""

import inspect

import numpy as np
import pytest
from each import each

import fad
import fad.numpy as fnp
from fad.core.primitives.primitive import REGISTRY
from fad.core.tracing.numpy_dispatch import FUNCTIONS, REFUSED, UFUNC_METHODS, UFUNCS
from fad.core.tracing.tracer import Tracer
from fad.errors import MissingRuleError
from fad.ops.places.in_place import CHANGING
from fad.ops.refused import ATTRIBUTE_REASONS, FUNCTION_REASONS, METHOD_REASONS, REMOVED_METHODS, suggest

# Functions that take no array of numbers to be differentiated by, or that work on traced arrays as they are.
PLAIN = {
    "arrays from shapes": """
        empty eye identity indices ones zeros tri fromfunction bartlett blackman hamming hanning kaiser
        diag_indices mask_indices tril_indices triu_indices broadcast_shapes fft.fftfreq fft.rfftfreq""",
    "arrays from text and files": "fromfile fromregex fromstring genfromtxt load loadtxt",
    "names, dtypes and formats": """
        base_repr binary_repr format_float_positional format_float_scientific isdtype issubdtype mintypecode
        promote_types typename isscalar iterable""",
    "settings and information": """
        get_include get_printoptions getbufsize geterr geterrcall info printoptions set_printoptions setbufsize
        seterr seterrcall show_config show_runtime test datetime_data""",
}


def _names(table):
    return {name for names in table.values() for name in names.split()}


def _is_kind(thing):
    """Return whether a public name is decided by its kind: classes (dtypes, matrix, errstate …), modules, constants."""
    return inspect.isclass(thing) or inspect.ismodule(thing) or not callable(thing)


def _public():
    """Return the public callables of numpy and its numerical submodules, by their names below numpy."""
    found = {}
    for prefix, module in (("", np), ("linalg.", np.linalg), ("fft.", np.fft), ("emath.", np.emath)):
        for name in module.__all__:
            thing = getattr(module, name)
            if not _is_kind(thing) and not name.startswith("_"):
                found[prefix + name] = thing
    return found


PUBLIC = _public()
MODULES = {
    "char", "core", "ctypeslib", "dtypes", "emath", "exceptions", "f2py", "fft", "lib", "linalg", "ma", "polynomial",
    "random", "rec", "strings", "testing", "typing",
}  # fmt: skip


def _is_answered(thing):
    return thing in UFUNCS if isinstance(thing, np.ufunc) else thing in FUNCTIONS


def _decisions(name):
    thing = PUBLIC[name]
    return [
        kind
        for kind, holds in (
            ("answered", _is_answered(thing)),
            ("refused", thing in REFUSED),
            ("plain", name in _names(PLAIN)),
        )
        if holds
    ]


@each("name", sorted(PUBLIC))
def test_every_public_function_of_numpy_is_decided_once(name):
    decisions = _decisions(name)
    assert len(decisions) == 1, f"numpy.{name} is decided {decisions or 'nowhere'}"


def test_the_tables_name_no_unknown_function():
    known = set(dir(np)) | {f"linalg.{n}" for n in np.linalg.__all__} | {f"fft.{n}" for n in np.fft.__all__}
    changing = {"isdtype", "in1d"}  # not in every version of NumPy
    assert (_names(PLAIN) | set(FUNCTION_REASONS)) - known - changing == set()


def test_every_function_that_answers_is_a_registered_operation_or_a_question_about_an_array():
    registered = {f for operation in REGISTRY.values() for f in operation.numpy if type(f) is not list}
    questions = {
        np.ndim, np.shape, np.size, np.result_type, np.iscomplexobj, np.isrealobj, np.can_cast, np.min_scalar_type,
        np.common_type, np.shares_memory, np.may_share_memory, np.einsum_path, np.array2string, np.array_str,
        np.array_repr, getattr(np, "fix", None),
    }  # fmt: skip
    of_numpy = {f for f in UFUNCS if getattr(np, f.__name__, None) is f}  # SciPy's are decided in fad.scipy.special
    assert (set(FUNCTIONS) | of_numpy) - registered - questions - set(CHANGING) == set()


@each("name", sorted(n for n in FUNCTION_REASONS if hasattr(np, n)))
def test_a_refusal_says_why_and_what_to_write_instead(name):
    reason = FUNCTION_REASONS[name]
    assert len(reason) > 40
    with pytest.raises(MissingRuleError, match=f"numpy.{name} cannot take a traced value"):
        fad.grad(lambda x: x.__array_function__(getattr(np, name), (), (x,), {}))(np.ones(3))


def test_every_method_of_every_ufunc_is_decided():
    undecided = []
    for name, ufunc in PUBLIC.items():
        if not isinstance(ufunc, np.ufunc) or ufunc.signature is not None:
            continue
        wanted = ["at"]
        if ufunc.nin == 2 and ufunc.nout == 1:
            wanted += ["reduce", "accumulate", "reduceat", "outer"]
        undecided += [f"{name}.{m}" for m in wanted if (ufunc, m) not in UFUNC_METHODS and (ufunc, m) not in REFUSED]
    assert undecided == []


def test_a_missing_rule_names_the_nearest_function_that_has_one():
    def cumsums(x):
        return x

    cumsums.__name__ = "cumsums"
    with pytest.raises(MissingRuleError, match=r"The nearest with a rule: .*numpy\.cumsum"):
        fad.grad(lambda x: x.__array_function__(cumsums, (), (x,), {}))(np.ones(3))
    assert suggest("no_such_thing_at_all") == ""


# --- methods and attributes of arrays ------------------------------------------------------------------------------

# Python's own machinery, and protocols that a traced array must not answer (they would hand out bare numbers).
DUNDERS = {
    "__array_finalize__", "__array_interface__", "__array_priority__", "__array_struct__", "__array_wrap__",
    "__buffer__", "__class_getitem__", "__getstate__", "__setstate__",
}  # fmt: skip


@each("name", sorted(n for n in dir(np.ndarray) if n.startswith("__") or not n.startswith("_")))
def test_a_traced_array_has_every_method_and_attribute_of_ndarray_or_refuses_it_with_a_reason(name):
    if name in DUNDERS:
        assert name not in vars(Tracer)
        return
    assert hasattr(Tracer, name) or name in Tracer.__slots__


@each("name", sorted(METHOD_REASONS))
def test_a_refused_method_says_why(name):
    with pytest.raises(MissingRuleError, match=name.strip("_")):
        fad.grad(lambda x: getattr(x, name)())(np.ones(3))


@each("name", sorted(ATTRIBUTE_REASONS))
def test_an_attribute_of_memory_is_there_and_its_use_says_why_it_is_refused(name):
    for use in (lambda m: m[0], lambda m: m.tobytes(), bytes, np.asarray, len):
        with pytest.raises(MissingRuleError, match=name):
            fad.grad(lambda x, use=use: use(getattr(x, name)))(np.ones(3))
    np.testing.assert_array_equal(
        fad.grad(lambda x: x.sum() * (2.0 if hasattr(x, name) else 1.0))(np.ones(3)), np.full(3, 2.0)
    )


@each("name", sorted(REMOVED_METHODS))
def test_a_method_that_numpy_has_given_up_is_missing_and_the_error_says_what_to_write(name):
    if hasattr(np.ndarray, name):
        pytest.skip("this NumPy has it still")
    with pytest.raises(AttributeError, match=f"has no attribute '{name}': NumPy has given it up"):
        fad.grad(lambda x: getattr(x, name)())(np.ones(3))


METHOD_CALLS = [
    ("T", lambda x: x.T), ("mT", lambda x: x.mT), ("flat", lambda x: x.flat[3]),
    ("real", lambda x: x.real), ("imag", lambda x: x.imag + x),
    ("astype", lambda x: x.astype(complex).real), ("copy", lambda x: x.copy()),
    ("choose", lambda x: np.choose(x > 0, [x, 2 * x])), ("clip", lambda x: x.clip(-1, 1)),
    ("compress", lambda x: x.compress([True, False, True], axis=0)), ("conj", lambda x: x.conj()),
    ("diagonal", lambda x: x.diagonal(1)), ("flatten", lambda x: x.flatten()), ("ravel", lambda x: x.ravel("F")),
    ("repeat", lambda x: x.repeat(2, axis=1)), ("reshape", lambda x: x.reshape(2, -1)),
    ("round", lambda x: x.round(1) * x),
    ("searchsorted", lambda x: x[0].searchsorted(0.1) * x), ("squeeze", lambda x: x[:, :1].squeeze(1)),
    ("swapaxes", lambda x: x.swapaxes(0, 1)), ("take", lambda x: x.take([0, 2], axis=1)),
    ("transpose", lambda x: x.transpose(1, 0)), ("view", lambda x: x.view()),
    ("to_device", lambda x: x.to_device("cpu")),
    ("nonzero", lambda x: x[x.nonzero()]), ("tolist", lambda x: x.tolist()[1][0]), ("item", lambda x: x * x.size),
]  # fmt: skip


@each(("name", "call"), METHOD_CALLS, ids=[n for n, _ in METHOD_CALLS])
def test_a_method_gives_what_ndarrays_method_gives(name, call):
    x = np.sort(np.linspace(-1.0, 1.0, 12) + 0.01).reshape(3, 4)
    value, pullback = fad.vjp(call, x)
    np.testing.assert_allclose(value, call(x), rtol=1e-12)
    tangent = np.cos(np.arange(12.0)).reshape(3, 4)
    pushed = fad.jvp(call, (x,), (tangent,))[1]
    ct = np.sin(1.0 + np.arange(value.size)).reshape(value.shape)
    np.testing.assert_allclose(np.sum(ct * pushed), np.sum(pullback(ct)[0] * tangent), rtol=1e-12)


def test_pickling_a_traced_value_is_refused():
    import pickle

    with pytest.raises(fad.errors.TracerConversionError, match="pickled"):
        fad.grad(lambda x: pickle.loads(pickle.dumps(x)))(1.0)


# --- fad.numpy -----------------------------------------------------------------------------------------------------


@each("name", sorted(set(np.__all__) - MODULES))
def test_fad_numpy_has_every_name_of_numpy(name):
    thing = getattr(np, name)
    if not inspect.ismodule(thing):
        assert hasattr(fnp, name)
    if not callable(thing) and name not in ("r_", "c_"):
        assert getattr(fnp, name) is thing


def test_an_operation_is_the_public_function_itself():
    assert fnp.sin is fad.ops.ufuncs.elementwise.sin
    assert fnp.sin is REGISTRY["sin"]
    assert fnp.linalg.__name__ == "fad.numpy.linalg"
    assert fnp.fft.__name__ == "fad.numpy.fft"
    assert fnp.emath.sqrt(-1.0) == 1j
    assert fnp.float32 is np.float32


def test_functions_that_numpy_does_not_dispatch_take_traced_values_in_fad_numpy():
    grad = fad.grad
    assert grad(lambda x: fnp.array([x, 1.0, x * x]).sum())(3.0) == 7.0
    assert grad(lambda x: fnp.array([[x, 1.0], [2.0, x]], dtype="float32").sum())(3.0) == 2.0
    assert grad(lambda x: fnp.asarray([x, x])[1])(3.0) == 1.0
    assert grad(lambda x: fnp.full((2, 3), x).sum())(3.0) == 6.0
    assert grad(lambda x: fnp.full_like(np.ones(4), x).sum())(3.0) == 4.0
    assert grad(lambda x: fnp.arange(x, x + 3.0)[2])(3.0) == 1.0
    assert grad(lambda x: fnp.pad(np.ones(2), 1, constant_values=x).sum())(3.0) == 2.0
    assert grad(lambda x: fnp.stack([[x, 1.0], [x, x]]).sum())(3.0) == 3.0
    assert grad(lambda x: fnp.fromfunction(lambda i: i * x, (3,)).sum())(3.0) == 3.0
    np.testing.assert_array_equal(fad.vmap(lambda i: fnp.take(np.arange(5.0), i))(np.array([3, 1])), [3.0, 1.0])


def test_joining_brackets_take_traced_values():
    x = np.array([1.0, 2.0])
    for f in (
        lambda np, x: np.r_[x, 3.0, x],
        lambda np, x: np.r_[0.0:3.0, x],
        lambda np, x: np.c_[x, x * x],
        lambda np, x: np.c_[np.ones((2, 2)), x],
        lambda np, x: np.c_[np.ones((2, 3, 2)), x * np.ones((2, 3, 1))],
        lambda np, x: np.r_[x],
        lambda np, x: np.r_["0,2", x, x],
        lambda np, x: np.r_["1,2", x[0], 3.0, x[None]],
        lambda np, x: np.r_["-1", x[None], np.ones((1, 3), np.float32)],
        lambda np, x: np.r_["0,3,1", x, 0.0:3.0:2j, x[:, None]],
        lambda np, x: np.r_["1,3,-2", x, x],
        lambda np, x: np.r_["0,4,0", 1.0, x, x],
        lambda np, x: np.c_["0", x, 4.0, x],
        lambda np, x: np.c_["-1,3", x, x],
    ):
        value, pullback = fad.vjp(lambda x, f=f: f(fnp, x), x)
        np.testing.assert_array_equal(value, f(np, x))
        np.testing.assert_array_equal(f(fnp, x), f(np, x))
        assert pullback(np.ones_like(value))[0].sum() > 0
        np.testing.assert_array_equal(fad.jit(lambda x, f=f: f(fnp, x))(x), f(np, x))
    for error, f in (
        (ValueError, lambda np, x: np.r_[x, "0,2"]),
        (ValueError, lambda np, x: np.r_["two", x]),
        (ValueError, lambda np, x: np.r_["0,2,2", x]),
        (ValueError, lambda np, x: np.r_["1,2", x, x[None, None]]),
    ):
        with pytest.raises(error):
            f(np, x)
        with pytest.raises(error):
            fad.grad(lambda x, f=f: f(fnp, x).sum())(x)
    with pytest.raises(TypeError, match="leave the letter out"):
        fad.grad(lambda x: fnp.r_["r", x].sum())(x)


def test_vectorize_maps_a_function_with_branches_and_differentiates_it():
    f = fnp.vectorize(lambda x, y: x * y if x > y else x + y)
    x, y = np.array([[1.0], [3.0]]), np.array([0.5, 2.0, 5.0])
    np.testing.assert_array_equal(f(x, y), np.vectorize(lambda x, y: x * y if x > y else x + y)(x, y))
    slopes = fad.grad(lambda y: f(x, y).sum())(y)
    np.testing.assert_array_equal(slopes, [4.0, 4.0, 2.0])
    assert f(2.0, 1.0) == 2.0


def test_vectorize_with_a_signature_maps_over_the_axes_in_front():
    f = fnp.vectorize(lambda a, v: (a @ v, v.sum()), signature="(m,n),(n)->(m),()")
    a, v = np.arange(12.0).reshape(2, 1, 2, 3), np.arange(9.0).reshape(3, 3)
    product, total = f(a, v)
    np.testing.assert_array_equal(product, np.einsum("ijmn,jn->ijm", np.broadcast_to(a, (2, 3, 2, 3)), v))
    np.testing.assert_array_equal(total, np.broadcast_to(v.sum(1), (2, 3)))
    with pytest.raises(ValueError, match="sizes 3 and 4"):
        f(a, np.ones(4))
    with pytest.raises(ValueError, match="does not have the axes"):
        f(a, 1.0)
    with pytest.raises(ValueError, match="not a valid signature"):
        fnp.vectorize(np.dot, signature="n,n->")


def test_at_updates_a_copy_of_a_plain_array_with_a_traced_value():
    plain = np.zeros(3)
    assert fad.grad(lambda x: (fnp.at(plain)[1].set(x) ** 2).sum())(3.0) == 6.0
    np.testing.assert_array_equal(plain, np.zeros(3))


def test_a_traced_array_names_fad_numpy_as_its_array_namespace():
    assert fad.grad(lambda x: x.__array_namespace__().sum(x))(np.ones(2)).tolist() == [1.0, 1.0]


def test_fad_numpy_has_no_random_and_says_where_it_is():
    with pytest.raises(AttributeError, match=r"fad\.random"):
        fnp.random  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        fnp.no_such_name  # noqa: B018


def test_plain_arguments_go_to_numpy_itself():
    x = np.arange(6.0).reshape(2, 3)
    assert type(fnp.reshape(x, 6)) is np.ndarray
    assert fnp.concatenate([x, x]).shape == (4, 3)
    assert fnp.ravel(x).base is x.base
