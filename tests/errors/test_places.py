"""What an error says of the place where something went wrong."""

import itertools

import numpy as np
import pytest
from refusals import loaded

import fad
import fad.eager
from fad.errors import MutationError, TracerConversionError

X = np.linspace(0.1, 1.0, 12)
HIDDEN = itertools.repeat(np)  # NumPy's own functions, where fad does not find them


def said(f):
    with pytest.raises(TracerConversionError) as caught:
        fad.grad(f)(X)
    return str(caught.value)


def test_a_function_of_scipy_that_fad_has_is_named_with_fads_own():
    pytest.importorskip("scipy.linalg")
    text = said(lambda x: loaded("scipy.linalg").expm(x[:9].reshape(3, 3)).sum())
    assert "Use fad.scipy.linalg.expm instead" in text


@pytest.mark.parametrize("name", ["lu_factor", "eigvals", "pinv"])
def test_a_function_of_scipy_for_stacks_is_named_and_not_what_its_decorator_calls(name):
    pytest.importorskip("scipy.linalg")
    text = said(lambda x: np.sum(getattr(loaded("scipy.linalg"), name)(x[:9].reshape(3, 3))[0]))
    assert f"Use fad.scipy.linalg.{name} instead" in text


def test_a_distribution_of_scipy_is_named_with_its_method():
    pytest.importorskip("scipy.stats")
    assert "Use fad.scipy.stats.norm.pdf instead" in said(lambda x: loaded("scipy.stats").norm.pdf(x).sum())


def test_no_function_is_promised_that_fad_does_not_have():
    cluster = pytest.importorskip("scipy.cluster.vq")
    text = said(lambda x: cluster.whiten(x.reshape(4, 3)).sum())
    assert "scipy.cluster.vq.whiten makes plain arrays" in text
    assert "fad has no scipy.cluster.vq.whiten" in text
    assert "custom_vjp" in text


@pytest.mark.parametrize("name", ["kruskal", "wilcoxon"])
def test_a_function_is_named_and_not_what_its_decorators_run(name):
    pytest.importorskip("scipy.stats")
    text = said(lambda x: getattr(loaded("scipy.stats"), name)(x, x * x))
    assert f"scipy.stats.{name} makes plain arrays" in text


def test_the_line_shown_is_the_users_and_not_scipys():
    pytest.importorskip("scipy.linalg")
    assert "test_places.py" in said(lambda x: loaded("scipy.linalg").expm(x[:9].reshape(3, 3)).sum())


def program_in(folder, text, *names):
    """Run a program as if it stood in a file of a folder, and return its functions."""
    space = {"np": np, "fad": fad}
    exec(compile(text, f"{folder}/mine.py", "exec"), space)
    return [space[name] for name in names]


@pytest.mark.parametrize("folder", ["/home/me/numpy", "/srv/scipy/a b/importlib", "/home/x" + fad.__path__[0]])
def test_the_users_own_line_is_shown_whatever_the_name_of_the_folder(folder):
    (f,) = program_in(folder, "import math\ndef f(x):\n    return math.ulp(x[0])", "f")
    assert f"{folder}/mine.py:3" in said(f)


@pytest.mark.parametrize("folder", ["/home/me/numpy", "/srv/scipy/a b/importlib"])
def test_the_eager_lines_are_shown_whatever_the_name_of_the_folder(folder):
    text = "def f(x):\n    y = x.exp()\n    y.add_(1.0)\n    y.sum().backward()"
    (f,) = program_in(folder, text, "f")
    with pytest.raises(MutationError) as caught:
        f(fad.eager.ones(3, requires_grad=True))
    assert f"saved at {folder}/mine.py:2" in str(caught.value)
    assert f"changed at {folder}/mine.py:3" in str(caught.value)


@pytest.mark.parametrize("folder", ["/home/me/fad", "/a\nb", "/a\r\u2028b", "/\udcff"])
def test_the_source_runs_whatever_the_name_of_the_folder(folder):
    text = "def f(x):\n    while abs(x) > 1.0:\n        x = x / 2.0\n    return x * x"
    (f,) = program_in(folder, text, "f")
    source = fad.source(fad.grad(f))(5.0)
    assert "holds where" in source
    space = {}
    exec(source, space)
    assert space["program"](5.0) == fad.grad(f)(5.0)


def test_numpys_vectorize_is_answered_with_fads():
    class Own(np.vectorize):
        """A class of the program's, in whose place nothing stands."""

    own = Own(lambda a: 2 * a)
    assert "Use fad.numpy.vectorize instead" in said(lambda x: own(x).sum())


def test_a_function_of_a_library_is_named():
    signal = pytest.importorskip("scipy.signal")
    text = said(lambda x: signal.remez(5, x[:4], [1.0, 0.0], fs=10.0))
    assert "scipy.signal.remez makes plain arrays" in text
    assert "fad has no" in text


def test_a_class_of_a_library_is_named():
    interpolate = pytest.importorskip("scipy.interpolate")
    made = said(lambda x: interpolate.RectSphereBivariateSpline(X, X, np.outer(x, x))(0.3, 0.3))
    assert "scipy.interpolate.RectSphereBivariateSpline makes plain" in made


def test_a_plain_list_of_traced_values_is_answered_with_stack():
    assert "np.stack" in said(lambda x: (lambda np: np.mean([x[0], x[1]]))(next(HIDDEN)))


def test_the_method_dot_of_a_plain_array_is_answered_with_an_operator():
    assert "a @ x" in said(lambda x: (lambda np: np.eye(12).dot(x).sum())(next(HIDDEN)))


def test_an_object_of_a_library_that_is_not_made_yet_is_not_asked_for_its_name():
    names = {"__name__": "pandas.frames", "np": np}
    made = "class Frame:\n def __init__(self, x):\n  self.held = np.asarray(x)\n"
    exec(made + " def __getattr__(self, name):\n  return self.held", names)
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(names["Frame"](x).held))(np.ones(2)), np.ones(2))
