"""What ``help()`` shows: of operations a page made from the registry, of transformed functions what they are."""

import copy
import gc
import importlib
import inspect
import pickle
import pydoc
import weakref

import numpy as np
from each import each
from numpy_versions import BEFORE_2_4

import fad
from fad.core.primitives.docstring_sections import numpydoc_sections
from fad.core.primitives.docstrings import public_path, summary, write_partial
from fad.core.primitives.primitive import REGISTRY, Primitive

for _part in fad.scipy.__all__:
    importlib.import_module(f"fad.scipy.{_part}")
importlib.import_module("fad.nn")

PRIMITIVES = {name: op for name, op in REGISTRY.items() if isinstance(op, Primitive)}


def shown(thing):
    return pydoc.render_doc(thing, renderer=pydoc.plaintext)


# --- operations ---------------------------------------------------------------------------------------------------


@each("name", PRIMITIVES)
def test_help_of_an_operation_shows_a_sentence_and_its_page_but_not_its_class(name):
    text = shown(PRIMITIVES[name])
    assert "Method resolution order" not in text
    assert "Data descriptors" not in text
    last = name.rpartition(".")[2]
    assert f"{last} = <fad operation {name}>\n    {last}(" in text
    assert "which other functions of fad are made of" not in text
    unread = BEFORE_2_4 and name == "where_select"  # NumPy tells the signature of np.where since 2.4
    for section in ("Derivative", *([] if unread else ["Parameters"]), "Returns", "Notes"):
        assert f"    {section}\n    {'-' * len(section)}\n" in text


@each("name", [n for n, op in PRIMITIVES.items() if public_path(op)])
def test_the_page_of_a_public_operation_has_an_example(name):
    text = PRIMITIVES[name].__doc__
    assert f">>> {public_path(PRIMITIVES[name])}(" in text


def test_the_page_of_an_operation_writes_its_derivative_as_its_module_does():
    assert "d/dx = np.cos(x)\n" in fad.numpy.sin.__doc__
    assert "d/dx = 1.0 - out * out\nwhere out is the result" in fad.numpy.tanh.__doc__
    assert "d/dx1 = 1.0\nd/dx2 = 1.0\n" in fad.numpy.add.__doc__
    assert "d/dx2 = -out / x2" in fad.numpy.divide.__doc__
    assert "Zero wherever it exists" in fad.numpy.floor.__doc__
    special = fad.scipy.special
    assert "d/dx = sc.digamma(x)" in special.gammaln.__doc__
    assert "d/dv = the derivative in v of sc.gammainc(0.5 * v, 0.5 * x)" in special.chdtr.__doc__
    assert "by the implicit function theorem" in special.chdtriv.__doc__
    assert "d/dv = none (the order of a Bessel function" in special.jv.__doc__


def test_the_example_on_a_page_is_run_and_shows_value_and_derivative():
    assert fad.numpy.sin.__doc__.endswith(
        ">>> import numpy as np, fad\n>>> fad.numpy.sin(0.5)\nnp.float64(0.479425538604203)\n"
        ">>> fad.grad(fad.numpy.sin)(0.5)\nnp.float64(0.8775825618903728)\n"
    )


def test_an_operation_has_a_ufuncs_signature():
    assert list(inspect.signature(fad.numpy.power).parameters)[:4] == ["x1", "x2", "out", "where"]
    assert list(inspect.signature(fad.scipy.special.betainc).parameters)[:3] == ["a", "b", "x"]
    assert "name" in inspect.signature(Primitive).parameters
    assert fad.numpy.sin.__name__ == "sin"
    assert fad.scipy.special.gammaln.__name__ == "gammaln"


def test_the_classes_of_operations_keep_their_own_text():
    assert "An operation with its derivative rules" in Primitive.__doc__
    assert type(fad.numpy.sin).__doc__.startswith("An elementwise operation of one operand")


def test_pages_are_read_from_numpys_format():
    text = "f(x)\n\n    Do it\n    well.\n\n    More.\n\n    Parameters\n    ----------\n    x : int\n        It.\n"
    text += "\n    See Also\n    --------\n    g\n"
    assert summary(text) == "Do it well."
    assert numpydoc_sections(text) == "Parameters\n----------\nx : int\n    It."
    assert write_partial(lambda _z, a, b: a * b, ("p", "q")) == "p * q"


# --- transformed functions ------------------------------------------------------------------------------------------


@fad.grad
def slope(x):
    """Return the derivative of x**2."""
    return x * x


class Model:
    @fad.checkpoint
    def cube(self, x):
        return self.power(x)

    def power(self, x):
        return x**3


def test_a_transformed_function_says_what_it_is():
    assert repr(fad.grad(np.sin)) == "<fad.grad of sin>"
    assert repr(fad.value_and_grad(np.sin)) == "<fad.value_and_grad of sin>"
    assert repr(fad.vmap(fad.grad(np.sin))) == "<fad.vmap of <fad.grad of sin>>"
    assert repr(fad.jit(fad.grad(lambda x: x))) == "<fad.jit of <fad.grad of <lambda>>>"
    assert repr(fad.hessian(np.sum)) == "<fad.hessian of sum>"
    assert [repr(t(np.sum)) for t in (fad.jacobian, fad.jacfwd, fad.jacrev, fad.elementwise_grad, fad.checkpoint)] == [
        f"<fad.{t} of sum>" for t in ("jacobian", "jacfwd", "jacrev", "elementwise_grad", "checkpoint")
    ]
    assert repr(fad.grad(fad.numpy.sin)) == "<fad.grad of sin>"


def spread(x, w):
    return {"a": np.sum(x * w), "b": x}


def test_a_derivative_at_a_point_says_of_what_it_is_and_what_it_maps_to_what():
    x, w = np.ones((2, 3)), np.float32(2.0)
    _, pullback = fad.vjp(spread, x, w)
    assert repr(pullback) == ("<pullback of spread: {'a': float64[], 'b': float64[2,3]} -> (float64[2,3], float32[])>")
    _, push, _ = fad.linearize(lambda x: (np.sin(x), 0), 1.0, has_aux=True)
    assert repr(push) == "<pushforward of <lambda>: (float64[],) -> float64[]>"
    assert repr(fad.linear_transpose(np.cumsum, x)) == "<pullback of cumsum: float64[6] -> (float64[2,3],)>"
    assert repr(fad.vjp(fad.grad(np.sin), 1.0)[1]) == "<pullback of <fad.grad of sin>: float64[] -> (float64[],)>"
    assert repr(fad.vmap(push)) == "<fad.vmap of <pushforward of <lambda>: (float64[],) -> float64[]>>"
    assert repr(fad.vjp(lambda x: {"*": x}, 1.0)[1]) == "<pullback of <lambda>: float64[] -> (float64[],)>"


def test_a_derivative_at_a_point_keeps_no_function_alive_and_is_copied_like_a_function():
    def f(x):
        return x * x

    _, pullback = fad.vjp(f, 3.0)
    watch = weakref.ref(f)
    del f
    gc.collect()
    assert watch() is None
    assert copy.copy(pullback) is pullback
    assert copy.deepcopy([pullback])[0] is pullback
    assert pullback(1.0) == (6.0,)


def test_a_pullback_of_traced_values_is_taken_along_by_what_holds_it():
    def f(x):
        _, pullback = fad.vjp(np.sin, x)
        return np.sum(fad.checkpoint(lambda c: pullback(c)[0])(x))

    x = np.array([0.3, 0.7])
    want = np.cos(x) - x * np.sin(x)
    np.testing.assert_allclose(fad.grad(f)(x), want, rtol=1e-14)
    np.testing.assert_allclose(fad.jit(fad.grad(f))(x), want, rtol=1e-14)


def test_a_transformed_function_keeps_name_signature_and_docstring():
    assert slope.__name__ == "slope"
    assert slope.__doc__ == "Return the derivative of x**2."
    assert slope.__module__ == __name__
    assert list(inspect.signature(slope).parameters) == ["x"]
    assert "Return the derivative of x**2." in shown(slope)
    assert fad.grad(fad.numpy.sin).__doc__ is fad.numpy.sin.__doc__


def test_a_transformed_function_is_pickled_and_copied_as_functions_are():
    assert pickle.loads(pickle.dumps(slope)) is slope
    assert copy.copy(slope) is slope
    assert copy.deepcopy({"f": slope})["f"] is slope


def test_a_transformed_function_in_a_class_is_a_method():
    assert Model().cube(2.0) == 8.0
    assert fad.grad(Model().cube)(2.0) == 12.0


def test_what_was_made_by_a_call_says_by_which():
    optim, schedules = fad.optim, fad.optim.schedules
    assert repr(fad.custom_jvp(np.sin)) == "<fad.custom_jvp of sin>"
    assert repr(fad.custom_vjp(np.sin)) == "<fad.custom_vjp of sin>"
    assert repr(fad.sparse.jacobian(np.sin)) == "<fad.sparse.jacobian of sin>"
    assert repr(fad.sparse.hessian(np.sum)) == "<fad.sparse.hessian of sum>"
    assert repr(fad.sparse.pattern(np.sin)) == "<fad.sparse.pattern of sin>"
    assert repr(fad.numpy.vectorize(np.sin)) == "<fad.numpy.vectorize of sin>"
    assert repr(fad.make_graph(np.sin)) == "<fad.make_graph of sin>"
    assert repr(schedules.cosine(1.0, 10, end=0.1)) == "<fad.optim.schedules.cosine(1.0, 10, end=0.1)>"
    assert repr(schedules.warmup(2, schedules.constant(0.5))) == (
        "<fad.optim.schedules.warmup(2, <fad.optim.schedules.constant(0.5)>)>"
    )
    assert repr(optim.SGD(np.ones(2), lr=schedules.constant(0.5))).startswith(
        "SGD(lr=<fad.optim.schedules.constant(0.5)>, momentum=0.0"
    )
    assert repr(optim.EMA([np.ones(2)])) == "<fad.optim.EMA of list, decay=0.999>"
    assert repr(fad.data.batches(np.arange(5), 2, key=0)) == "<fad.data.batches of 2 from 5, shuffled>"
    assert repr(fad.numpy.r_) == "<fad.numpy.r_>"
    assert repr(fad.scipy.stats.norm) == "<fad.scipy.stats.norm>"
