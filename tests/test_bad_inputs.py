"""Bad input gets what NumPy and SciPy give on plain arrays, and a derivative that does not exist is never a zero."""

import warnings

import numpy as np
import pytest

import fad
from fad.errors import DerivativeError, FadError, IntegerInputError, IntegerOutputError

sc = pytest.importorskip("scipy.special")
pytest.importorskip("scipy.optimize")

from fad.scipy import linalg as fsl  # noqa: E402
from fad.scipy import optimize, stats  # noqa: E402

SINGULAR = np.array([[1.0, 2.0], [2.0, 4.0]])
INDEFINITE = np.array([[1.0, 2.0], [2.0, 1.0]])
TRANSFORMS = {
    "grad": fad.grad,
    "jvp": lambda f: lambda x: fad.jvp(f, (x,), (np.ones_like(x),)),
    "jit": lambda f: fad.jit(fad.grad(f)),
    "vmap": lambda f: lambda x: fad.vmap(fad.grad(f))(np.stack([x, x])),
}


@pytest.mark.parametrize("transform", list(TRANSFORMS))
@pytest.mark.parametrize(
    ("f", "x"),
    [
        (lambda a: np.sum(np.linalg.inv(a)), SINGULAR),
        (lambda a: np.sum(np.linalg.solve(a, np.ones(2))), SINGULAR),
        (lambda a: np.sum(np.linalg.matrix_power(a, -2)), SINGULAR),
        (lambda a: np.sum(np.linalg.cholesky(a)), INDEFINITE),
        (lambda a: np.sum(fsl.inv(a)), SINGULAR),
        (lambda a: np.sum(fsl.cholesky(a)), INDEFINITE),
        (lambda a: np.sum(np.linalg.eigvalsh(a[:1])), SINGULAR),
        (lambda a: np.linalg.det(a[0]), SINGULAR),
    ],
)
def test_a_matrix_that_numpy_refuses_raises_its_linalgerror_under_every_transform(transform, f, x):
    with pytest.raises(np.linalg.LinAlgError):
        f(x)
    with pytest.raises(np.linalg.LinAlgError):
        TRANSFORMS[transform](f)(x)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.linalg.norm(x, 7),
        lambda x: np.linalg.norm(x, "no such order"),
        lambda x: np.linalg.norm(x[0], "fro"),
        lambda x: np.linalg.norm(x, axis=(0, 1, 2)),
        lambda x: np.linalg.cond(x, "no such order"),
        lambda x: np.linalg.solve(x, np.ones(3)),
        lambda x: np.matmul(x, np.ones(3)),
        lambda x: np.fft.fft(x, 0),
        lambda x: np.fft.fft(x, axis=2),
        lambda x: np.fft.fft(x, norm="no such norm"),
        lambda x: np.quantile(x, 1.5),
        lambda x: np.quantile(x, 0.5, method="no such method"),
        lambda x: np.partition(x, 9),
        lambda x: np.sort(x, axis=2),
        lambda x: np.convolve(x, x),
    ],
)
def test_a_wrong_order_axis_or_shape_raises_numpys_kind_of_error(f):
    x = np.array([[1.0, 0.3], [0.2, 2.0]])
    with pytest.raises(Exception) as wanted:
        f(x)
    with pytest.raises(wanted.type) as found:
        fad.vjp(f, x)
    assert str(found.value).strip()


@pytest.mark.parametrize("namespace", [np, fad.numpy])
@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda xp, x: xp.linalg.norm(x, "no such order"), "in linalg.norm of shape (2, 2), at "),
        (lambda xp, x: xp.linalg.inv(x), "in linalg.inv of shape (2, 2), at "),
        (lambda xp, x: xp.linalg.solve(x, np.ones(3)), "in linalg.solve of shape (2, 2), (3,), at "),
        (lambda xp, x: xp.concatenate([x, np.ones(3)]), "in concatenate, at "),
        (lambda xp, x: xp.cumsum(x, axis=3), "in cumsum of shape (2, 2), at "),
    ],
)
def test_an_error_of_numpys_is_told_with_the_operation_the_shapes_and_the_users_line(namespace, f, said):
    with pytest.raises((ValueError, IndexError)) as caught:
        fad.grad(lambda x: np.sum(f(namespace, x)))(SINGULAR)
    [note] = caught.value.__notes__
    assert said in note
    assert "test_bad_inputs.py" in note


def test_a_version_of_the_array_api_that_numpy_has_not_raises_as_in_numpy():
    assert fad.grad(lambda x: x * (x.__array_namespace__(api_version="2022.12") is fad.numpy))(1.0) == 1.0
    with pytest.raises(ValueError, match="1999"):
        fad.grad(lambda x: x.__array_namespace__(api_version="1999.12").sum(x))(1.0)
    with pytest.raises(AttributeError, match="no_such_function"):
        fad.grad(lambda x: x.__array_namespace__().no_such_function(x))(1.0)


@pytest.mark.parametrize("method", ["logpmf", "pmf", "cdf", "sf"])
def test_a_distribution_of_counts_has_no_derivative_in_the_count(method):
    f = getattr(stats.geom, method)
    for transform in (fad.grad, lambda f: fad.jit(fad.grad(f)), lambda f: lambda x: fad.jvp(f, (x,), (1.0,))):
        with pytest.raises(DerivativeError, match="count"):
            transform(lambda k: f(k, 0.3))(2.0)
    assert fad.vmap(lambda k: f(k, 0.3))(np.array([2.0]))[0] == f(2.0, 0.3)
    constant = fad.grad(lambda p: f(fad.stop_gradient(2.0 + 0.0 * p), p))
    assert constant(0.3) == fad.grad(lambda p: f(2, p))(0.3)


def test_where_a_distribution_is_none_the_gradient_is_nan_as_the_value_is():
    scales = np.array([-1.0, 2.0])
    for method in ("logpdf", "cdf", "ppf"):
        f = getattr(stats.norm, method)
        value, gradient = fad.value_and_grad(lambda s, f=f: np.sum(f(0.3, 0.1, s)[:1]))(scales)
        assert np.isnan(value)
        assert np.isnan(gradient[0])
        assert gradient[1] == 0.0


@pytest.mark.parametrize(
    ("f", "what"),
    [
        (lambda v: sc.jv(v, 1.5), "order"),
        (lambda v: sc.yv(v, 1.5), "order"),
        (lambda v: sc.hyp2f1(v, 1.0, 2.0, 0.3), "parameter"),
        (lambda v: sc.mathieu_a(v, 1.0), "order"),
        (lambda v: sc.eval_legendre(v, 0.3), "degree"),
    ],
)
def test_a_derivative_without_a_closed_form_is_an_error_that_names_it_and_says_what_to_do(f, what):
    for transform in (fad.grad, lambda f: lambda x: fad.jvp(f, (x,), (1.0,))):
        with pytest.raises(DerivativeError, match=what) as caught:
            transform(f)(1.3)
        assert "stop_gradient" in str(caught.value)
        assert "custom_jvp" in str(caught.value)
    np.testing.assert_array_equal(f(1.3), fad.vmap(f)(np.array([1.3]))[0])  # as a constant it costs nothing and works


def test_places_and_integers_have_no_derivative_and_no_zero_one():
    x = np.array([0.3, 1.7, -0.2])
    with pytest.raises(IntegerOutputError, match="argsort"):
        fad.grad(lambda x: np.argsort(x)[0])(x)
    with pytest.raises(IntegerInputError, match=r"3\.0"):
        fad.grad(lambda n: sc.eval_chebyt(n, 0.3))(3)
    np.testing.assert_array_equal(fad.jacobian(lambda x: x[np.argsort(x)])(x), np.eye(3)[[2, 0, 1]])


def never(x, a):
    return x * x + a  # without a root for positive a


def test_a_solver_that_did_not_converge_warns_as_scipy_and_its_derivative_is_refused():
    def root(a):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return optimize.root(lambda x: never(x, a), np.array([1.0])).x[0]

    with pytest.raises(DerivativeError, match=r"converge|solution|success"):
        fad.grad(root)(1.0)
    with pytest.raises(DerivativeError, match=r"converge|solution|success"):
        fad.jvp(root, (1.0,), (1.0,))


@pytest.mark.parametrize(
    "write",
    [
        lambda x: sc.expit(x, out=np.zeros(2)),
        lambda x: np.add(x, 1.0, out=np.zeros(2)),
        lambda x: np.copyto(np.zeros(2), x),
        lambda x: sc.logsumexp(x),
    ],
)
def test_what_writes_into_a_plain_array_raises_and_loses_no_derivative(write):
    with pytest.raises((FadError, TypeError)) as caught:
        fad.vjp(write, np.array([0.3, 0.4]))
    assert len(str(caught.value)) > 20
