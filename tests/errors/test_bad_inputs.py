"""Bad input gets what NumPy and SciPy give on plain arrays, and a derivative that does not exist is never a zero."""

import warnings

import numpy as np
import pytest
from refusals import elsewhere

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


# Calls of `xp`, NumPy or fad.numpy, on a 2x2 matrix that NumPy refuses.
REFUSED = {
    "cov of a cube": lambda xp, x: xp.cov(x[None]),
    "cov with a cube": lambda xp, x: xp.cov(x, x[None]),
    "cov with half a degree of freedom": lambda xp, x: xp.cov(x, ddof=0.5),
    "cov with too many weights": lambda xp, x: xp.cov(x, aweights=[1.0, 1.0, 1.0]),
    "cov with one weight for all": lambda xp, x: xp.cov(x, aweights=[1.0]),
    "cov with a matrix of weights": lambda xp, x: xp.cov(x, aweights=[[1.0, 1.0]]),
    "cov with negative weights": lambda xp, x: xp.cov(x, aweights=[-1.0, 3.0]),
    "cov with too many counts": lambda xp, x: xp.cov(x, fweights=[1, 1, 1]),
    "cov with a matrix of counts": lambda xp, x: xp.cov(x, fweights=[[1, 1]]),
    "cov with negative counts": lambda xp, x: xp.cov(x, fweights=[-1, 3]),
    "cov with broken counts": lambda xp, x: xp.cov(x, fweights=[0.5, 3.0]),
    "average with weights that do not fit": lambda xp, x: xp.average(x, axis=0, weights=[1.0, 1.0, 1.0]),
    "average with weights for which axis?": lambda xp, x: xp.average(x, weights=[1.0, 1.0]),
    "nanmax of nothing": lambda xp, x: xp.nanmax(x[:0], axis=0),
    "argmax of a number along axis 1": lambda xp, x: xp.argmax(x[0, 0], axis=1),
    "quantile of a cube of levels": lambda xp, x: xp.quantile(x, [[[0.2, 0.5]]]),
    "quantile of nothing": lambda xp, x: xp.quantile(x[:0], 0.5, axis=0),
    "quantile with weights and another method": lambda xp, x: xp.quantile(x, 0.5, axis=0, weights=[1.0, 1.0]),
    "quantile with negative weights": lambda xp, x: xp.quantile(
        x, 0.5, axis=0, weights=[-1.0, 2.0], method="inverted_cdf"
    ),
    "quantile with weights that do not fit": lambda xp, x: xp.quantile(
        x, 0.5, axis=0, weights=[1.0, 1.0, 1.0], method="inverted_cdf"
    ),
    "quantile with weights that are all zero": lambda xp, x: xp.quantile(
        x, 0.5, axis=0, weights=[0.0, 0.0], method="inverted_cdf"
    ),
    "where with one branch": lambda xp, x: xp.where(x > 0, x),
    "select with a choice too many": lambda xp, x: xp.select([x > 0], [x, x]),
    "piecewise with functions too many": lambda xp, x: xp.piecewise(x, [x > 0], [abs, abs, abs]),
    "take at fractions": lambda xp, x: xp.take(x, np.array([0.5])),
    "take in no mode": lambda xp, x: xp.take(x, [0], mode="no such mode"),
    "take beyond the end": lambda xp, x: xp.take(x, [4]),
    "choose beyond the end": lambda xp, x: xp.choose([0, 2], [x, x]),
    "choose before the start": lambda xp, x: xp.choose([0, -1], [x, x]),
    "unravel_index beyond the end": lambda xp, x: xp.unravel_index([4], x.shape),
    "unravel_index before the start": lambda xp, x: xp.unravel_index([-1], x.shape),
    "ravel_multi_index beyond the end": lambda xp, x: xp.ravel_multi_index(([2], [0]), x.shape),
    "ravel_multi_index before the start": lambda xp, x: xp.ravel_multi_index(([-1], [0]), x.shape),
    "ix_ of a matrix": lambda xp, x: xp.ix_([[0, 1]], [0]),
    "bincount of a matrix": lambda xp, x: xp.bincount([[0, 1]], x[0]),
    "bincount of a negative number": lambda xp, x: xp.bincount([0, -1], x[0]),
    "diff of order -1": lambda xp, x: xp.diff(x, -1),
    "diff of a number": lambda xp, x: xp.diff(x[0, 0]),
    "gradient with edges of order 3": lambda xp, x: xp.gradient(x, edge_order=3),
    "gradient with steps too many": lambda xp, x: xp.gradient(x, 1.0, 1.0, 1.0),
    "gradient with places too many": lambda xp, x: xp.gradient(x[0], np.arange(3.0)),
    "gradient with a matrix of places": lambda xp, x: xp.gradient(x[0], x),
    "polyder of order -1": lambda xp, x: xp.polyder(x[0], -1),
    "polyint of order -1": lambda xp, x: xp.polyint(x[0], -1),
    "polyint with too few constants": lambda xp, x: xp.polyint(x[0], 3, [1.0, 2.0]),
    "poly of a cube": lambda xp, x: xp.poly(x[None]),
    "roots of a matrix": lambda xp, x: xp.roots(x),
    "histogram of no bins": lambda xp, x: xp.histogram(x, 0),
    "histogram of an empty interval": lambda xp, x: xp.histogram(x, 2, (1.0, 0.0)),
    "histogram of an infinite interval": lambda xp, x: xp.histogram(x, 2, (0.0, np.inf)),
    "histogramdd of no bins": lambda xp, x: xp.histogramdd(x, 0),
    "histogramdd of half a bin": lambda xp, x: xp.histogramdd(x, [1.5, 1.5]),
    "histogramdd with bins for another axis": lambda xp, x: xp.histogramdd(x, [1, 1, 1]),
    "histogramdd with intervals for another axis": lambda xp, x: xp.histogramdd(x, 2, [(0, 1)] * 3),
    "histogramdd with a matrix of edges": lambda xp, x: xp.histogramdd(x, [x, x]),
    "histogramdd with edges that fall": lambda xp, x: xp.histogramdd(x, [[1.0, 0.0], [0.0, 1.0]]),
    "histogram2d of points without an end": lambda xp, x: xp.histogram2d(x[0], x[0, :1]),
    "rfft in no norm": lambda xp, x: xp.fft.rfft(x, norm="no such norm"),
    "irfft in no norm": lambda xp, x: xp.fft.irfft(x, norm="no such norm"),
    "hfft in no norm": lambda xp, x: xp.fft.hfft(x, norm="no such norm"),
    "ihfft in no norm": lambda xp, x: xp.fft.ihfft(x, norm="no such norm"),
    "rfft of no points": lambda xp, x: xp.fft.rfft(x, 0),
    "irfft of no points": lambda xp, x: xp.fft.irfft(x, 0),
    "pinv with two cutoffs": lambda xp, x: xp.linalg.pinv(x, 1e-3, rtol=1e-3),
    "matrix_rank with two cutoffs": lambda xp, x: xp.linalg.matrix_rank(x, 1e-3, rtol=1e-3),
    "matrix_power of a vector": lambda xp, x: xp.linalg.matrix_power(x[0], 2),
    "matrix_power of a flat matrix": lambda xp, x: xp.linalg.matrix_power(x[:1], 2),
    "matrix_power of order 1/2": lambda xp, x: xp.linalg.matrix_power(x, 0.5),
    "linalg.outer of a vector and a matrix": lambda xp, x: xp.linalg.outer(x[0], x),
    "linalg.outer of a matrix and a vector": lambda xp, x: xp.linalg.outer(x, x[0]),
    "linalg.cross in the plane": lambda xp, x: xp.linalg.cross(x[0], x[1]),
    "tensorinv of no axes": lambda xp, x: xp.linalg.tensorinv(x, ind=0),
    "tensorinv of axes that are not square": lambda xp, x: xp.linalg.tensorinv(x[:1], ind=1),
    "tensorsolve of axes that are not square": lambda xp, x: xp.linalg.tensorsolve(x[:1], x[0, :1]),
    "lstsq with too many equations": lambda xp, x: xp.linalg.lstsq(x, np.ones(3)),
    "lstsq of a vector": lambda xp, x: xp.linalg.lstsq(x[0], x[0]),
    "lstsq with a cube": lambda xp, x: xp.linalg.lstsq(x, x[None]),
    "multi_dot of one": lambda xp, x: xp.linalg.multi_dot([x]),
    "multi_dot of a cube": lambda xp, x: xp.linalg.multi_dot([x, x[None], x]),
    "eigh of no triangle": lambda xp, x: xp.linalg.eigh(x, "X"),
    "qr in no mode": lambda xp, x: xp.linalg.qr(x, "no such mode"),
    "det of a flat matrix": lambda xp, x: xp.linalg.det(x[:1]),
    "inv of a vector": lambda xp, x: xp.linalg.inv(x[0]),
    "cholesky of a flat matrix": lambda xp, x: xp.linalg.cholesky(x[:1]),
    "eig of a flat matrix": lambda xp, x: xp.linalg.eig(x[:1]),
    "svd of a vector": lambda xp, x: xp.linalg.svd(x[0]),
    "dot of shapes that do not fit": lambda xp, x: xp.dot(x, np.ones(3)),
    "tensordot of axes that do not fit": lambda xp, x: xp.tensordot(x, np.ones((3, 3))),
    "einsum of axes that do not fit": lambda xp, x: xp.einsum("ij,jk", x, np.ones((3, 3))),
    "einsum of an unknown letter": lambda xp, x: xp.einsum("ij->k", x),
    "cross of four components": lambda xp, x: xp.cross(np.ones(4), x[0]),
    "reshape to another size": lambda xp, x: xp.reshape(x, (3,)),
    "reshape to two unknowns": lambda xp, x: xp.reshape(x, (-1, -1)),
    "reshape to an unknown beside three": lambda xp, x: xp.reshape(x, (3, -1)),
    "transpose by no permutation": lambda xp, x: xp.transpose(x, (0, 0)),
    "transpose by too few axes": lambda xp, x: xp.transpose(x, (0,)),
    "squeeze of an axis of two": lambda xp, x: xp.squeeze(x, 0),
    "expand_dims beyond the end": lambda xp, x: xp.expand_dims(x, 5),
    "expand_dims of one axis twice": lambda xp, x: xp.expand_dims(x, (0, 0)),
    "moveaxis of one axis to two": lambda xp, x: xp.moveaxis(x, 0, (0, 1)),
    "concatenate of nothing": lambda xp, x: xp.concatenate([]),
    "concatenate of other shapes": lambda xp, x: xp.concatenate([x, x[0]]),
    "stack of other shapes": lambda xp, x: xp.stack([x, x[:1]]),
    "split in three": lambda xp, x: xp.split(x, 3),
    "hsplit of a number": lambda xp, x: xp.hsplit(x[0, 0], 1),
    "vsplit of a vector": lambda xp, x: xp.vsplit(x[0], 1),
    "dsplit of a matrix": lambda xp, x: xp.dsplit(x, 1),
    "broadcast_to fewer": lambda xp, x: xp.broadcast_to(x, (2,)),
    "repeat with counts that do not fit": lambda xp, x: xp.repeat(x, [1, 2, 3], axis=0),
    "roll by shifts that do not fit": lambda xp, x: xp.roll(x, (1, 2, 3), (0, 1)),
    "rot90 in one axis": lambda xp, x: xp.rot90(x, axes=(0, 0)),
    "pad in no mode": lambda xp, x: xp.pad(x, 1, "no such mode"),
    "pad with widths that do not fit": lambda xp, x: xp.pad(x, [(1, 1), (1, 1), (1, 1)]),
    "pad by less than nothing": lambda xp, x: xp.pad(x, -1),
    "diag of a cube": lambda xp, x: xp.diag(x[None]),
    "diagonal of a vector": lambda xp, x: xp.diagonal(x[0]),
    "diagonal in one axis": lambda xp, x: xp.diagonal(x, axis1=0, axis2=0),
    "trace of a vector": lambda xp, x: xp.trace(x[0]),
    "vander of a matrix": lambda xp, x: xp.vander(x),
    "insert beyond the end": lambda xp, x: xp.insert(x, 5, 0.0, axis=0),
    "delete beyond the end": lambda xp, x: xp.delete(x, 5, axis=0),
    "interp with too few values": lambda xp, x: xp.interp(0.3, x[0], np.ones(3)),
    "interp of no period": lambda xp, x: xp.interp(0.3, x[0], x[1], period=0),
    "convolve of nothing": lambda xp, x: xp.convolve(x[0], x[0, :0]),
    "correlate in no mode": lambda xp, x: xp.correlate(x[0], x[0], "no such mode"),
    "searchsorted from no side": lambda xp, x: xp.searchsorted(x[0], 0.3, side="middle"),
    "digitize with edges that do not rise": lambda xp, x: xp.digitize(x, [0.0, 1.0, 0.5]),
    "partition beyond the end": lambda xp, x: xp.partition(x, 7),
    "lexsort of nothing": lambda xp, x: xp.lexsort(()),
    "apply_along_axis beyond the end": lambda xp, x: xp.apply_along_axis(np.sum, 4, x),
    "take_along_axis with other dimensions": lambda xp, x: xp.take_along_axis(x, np.array([0]), 0),
    "compress with too many conditions": lambda xp, x: xp.compress([True, True, True], x, axis=0),
    "sum over an axis twice": lambda xp, x: xp.sum(x, axis=(0, 0)),
    "mean over an axis beyond": lambda xp, x: xp.mean(x, axis=2),
    "max of nothing": lambda xp, x: xp.max(x[:0]),
    "argmin of nothing": lambda xp, x: xp.argmin(x[:0]),
    "nanargmax of nothing but NaN": lambda xp, x: xp.nanargmax(np.nan * x),
    "ptp of nothing": lambda xp, x: xp.ptp(x[:0]),
    "cumulative sum beyond the end": lambda xp, x: xp.cumsum(x, axis=2),
    "var with ddof and correction": lambda xp, x: xp.var(x, ddof=1, correction=1),
    "bincount with too few weights": lambda xp, x: xp.bincount([0, 1, 1], x[0]),
}


@pytest.mark.parametrize("what", list(REFUSED))
def test_numpys_kind_of_error_is_raised_for(what):
    f, x = REFUSED[what], np.array([[1.0, 0.3], [0.2, 2.0]])
    with pytest.raises(Exception) as wanted:
        f(np, x)
    with pytest.raises(wanted.type):
        f(fad.numpy, x)
    with pytest.raises(wanted.type):
        fad.vjp(lambda x: f(fad.numpy, x), x)


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
def test_an_error_of_numpys_is_shown_with_the_operation_the_shapes_and_the_users_line(namespace, f, said):
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
        lambda x: sc.expit(x, out=elsewhere(2)),
        lambda x: np.add(x, 1.0, out=elsewhere(2)),
        lambda x: np.copyto(elsewhere(2), x),
    ],
)
def test_what_writes_into_a_plain_array_raises_and_loses_no_derivative(write):
    with pytest.raises((FadError, TypeError)) as caught:
        fad.vjp(write, np.array([0.3, 0.4]))
    assert len(str(caught.value)) > 20
