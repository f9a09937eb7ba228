"""What a user is told of the place where something went wrong."""

import numpy as np
import pytest

import fad
from fad.errors import TracerConversionError

X = np.linspace(0.1, 1.0, 12)


def said(f):
    with pytest.raises(TracerConversionError) as caught:
        fad.grad(f)(X)
    return str(caught.value)


def test_a_function_of_scipy_that_fad_has_is_named_with_fads_own():
    linalg = pytest.importorskip("scipy.linalg")
    text = said(lambda x: linalg.expm(x[:9].reshape(3, 3)).sum())
    assert "Use fad.scipy.linalg.expm instead" in text


@pytest.mark.parametrize("name", ["lu_factor", "eigvals", "pinv"])
def test_a_function_of_scipy_for_stacks_is_named_and_not_what_its_decorator_calls(name):
    linalg = pytest.importorskip("scipy.linalg")
    text = said(lambda x: np.sum(getattr(linalg, name)(x[:9].reshape(3, 3))[0]))
    assert f"Use fad.scipy.linalg.{name} instead" in text


def test_a_distribution_of_scipy_is_named_with_its_method():
    stats = pytest.importorskip("scipy.stats")
    assert "Use fad.scipy.stats.norm.pdf instead" in said(lambda x: stats.norm.pdf(x).sum())


def test_no_function_is_promised_that_fad_does_not_have():
    cluster = pytest.importorskip("scipy.cluster.vq")
    text = said(lambda x: cluster.whiten(x.reshape(4, 3)).sum())
    assert "scipy.cluster.vq.whiten makes plain arrays" in text
    assert "fad has no scipy.cluster.vq.whiten" in text
    assert "custom_vjp" in text


def test_the_line_shown_is_the_users_and_not_scipys():
    linalg = pytest.importorskip("scipy.linalg")
    assert "test_places.py" in said(lambda x: linalg.expm(x[:9].reshape(3, 3)).sum())


def test_numpys_vectorize_is_answered_with_fads():
    assert "Use fad.numpy.vectorize instead" in said(lambda x: np.vectorize(lambda a: 2 * a)(x).sum())


def test_a_function_of_numpy_polynomial_is_named():
    text = said(lambda x: np.polynomial.chebyshev.chebval(0.3, x))
    assert "numpy.polynomial.chebyshev.chebval makes plain arrays" in text
    assert "fad has no" in text


def test_a_class_of_numpy_polynomial_is_named():
    assert "numpy.polynomial.Polynomial makes plain" in said(lambda x: np.polynomial.Polynomial(x)(0.3))


def test_a_plain_list_of_traced_values_is_answered_with_stack():
    assert "np.stack" in said(lambda x: np.mean([x[0], x[1]]))


def test_the_method_dot_of_a_plain_array_is_answered_with_an_operator():
    assert "a @ x" in said(lambda x: np.eye(12).dot(x).sum())
