"""Programs that call SciPy by its own names: under a transform they compute what fad.scipy's functions do."""

import threading

import numpy as np
import pytest

import fad

scipy = pytest.importorskip("scipy")

import scipy.signal as ss  # noqa: E402
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, stats  # noqa: E402
from scipy.interpolate import CubicSpline  # noqa: E402
from scipy.spatial import distance  # noqa: E402
from scipy.special import logsumexp, softmax  # noqa: E402

X = np.array([0.3, 0.5, 0.9, 1.3])
TABLE = np.array([0.0, 1.0, 4.0, 9.0])


def import_inside(x):
    from scipy.special import logsumexp as log_sum

    return log_sum(x) * x


def import_module_inside(x):
    import scipy.linalg as sl

    return sl.toeplitz(x) @ x


def write_in_place(x):
    y = np.zeros(4)
    y[1:] = softmax(x)[1:]
    return y


PROGRAMS = {
    "a function by name": lambda x: logsumexp(x) * x,
    "a module by another name": lambda x: ss.fftconvolve(x, x),
    "a module of a module": lambda x: scipy.ndimage.gaussian_filter1d(x, 1.0),
    "a module of the package": lambda x: ndimage.gaussian_filter1d(x, 1.0),
    "a multimethod": lambda x: fft.dct(x),
    "linear algebra": lambda x: linalg.expm(x.reshape(2, 2)),
    "a factorisation": lambda x: linalg.cho_solve(linalg.cho_factor(np.eye(4) * 3 + x), x),
    "distances": lambda x: distance.cdist(x.reshape(2, 2), 2 * x.reshape(2, 2)),
    "a density": lambda x: stats.norm.logpdf(x, 0.1, 2.0),
    "a frozen distribution": lambda x: stats.norm(x[0], scale=x[1]).logpdf(0.7) * x,
    "a distribution of vectors": lambda x: stats.multivariate_normal(x, np.eye(4)).logpdf(np.ones(4)) * x,
    "an object of traced values": lambda x: interpolate.CubicSpline(np.arange(4.0), x)(1.5) * x,
    "an object of plain values": lambda x: CubicSpline(np.arange(4.0), TABLE)(x),
    "an integral": lambda x: integrate.quad(lambda t: np.sin(t * x[0]), 0.0, 1.0)[0] * x,
    "a root": lambda x: optimize.brentq(lambda t: t**3 - x[1], 0.0, 2.0) * x,
    "a fit from a list": lambda x: optimize.least_squares(lambda p: p[0] * np.arange(4.0) + p[1] - x, [1.0, 0.0]).x,
    "a curve": lambda x: optimize.curve_fit(lambda t, a, b: a * t + b, np.arange(4.0), x)[0],
    "a differential equation": lambda x: integrate.solve_ivp(lambda t, y: -x[0] * y, (0.0, 1.0), x, rtol=1e-8).y[:, -1],
    "an import in the function": import_inside,
    "an import of a module in the function": import_module_inside,
    "a write beside it": write_in_place,
}


def difference(f, x, t, h=1e-6):
    return (np.asarray(f(x + h * t)) - np.asarray(f(x - h * t))) / (2 * h)


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_with_scipys_own_names_has_its_derivative(f):
    t = np.array([1.0, -0.5, 0.3, 2.0])
    y, slope = fad.jvp(f, (X,), (t,))
    wanted = f(X)
    np.testing.assert_allclose(y, wanted, rtol=1e-6)
    assert np.shape(y) == np.shape(wanted)
    np.testing.assert_allclose(slope, difference(f, X, t), rtol=1e-4, atol=1e-6)
    weights = np.cos(np.arange(np.size(wanted))).reshape(np.shape(wanted))
    assert fad.grad(lambda x: np.sum(weights * f(x)))(X) @ t == pytest.approx(np.sum(weights * slope), rel=1e-6)


@pytest.mark.parametrize("f", PROGRAMS.values(), ids=PROGRAMS)
def test_a_program_with_scipys_own_names_runs_under_jit_and_vmap(f):
    run = fad.jit(f)
    np.testing.assert_allclose(run(X), f(X), rtol=1e-6)
    np.testing.assert_allclose(run(1.1 * X), f(1.1 * X), rtol=1e-6)
    for y, x in zip(fad.vmap(f)(np.stack([X, 1.1 * X])), (X, 1.1 * X), strict=True):
        np.testing.assert_allclose(y, f(x), rtol=1e-6)


def test_names_are_scipys_own_again_after_a_transform():
    before = logsumexp, ss, CubicSpline, stats.norm, scipy.linalg.expm
    fad.grad(lambda x: logsumexp(x) + np.sum(ss.fftconvolve(x, x)))(X)
    assert (logsumexp, ss, CubicSpline, stats.norm, scipy.linalg.expm) == before
    with pytest.raises(IndexError):
        fad.grad(lambda x: logsumexp(x) * X[9])(X)
    assert (logsumexp, ss) == before[:2]


def test_plain_arguments_go_to_scipy_while_a_transform_runs():
    seen = []

    def f(x):
        seen.append((type(softmax(TABLE)), type(stats.norm.rvs(size=3, random_state=0)), ss.butter(2, 0.3)[0].dtype))
        return logsumexp(x)

    fad.grad(f)(X)
    assert seen[-1] == (np.ndarray, np.ndarray, np.dtype(float))


def test_an_object_made_outside_is_an_instance_of_the_class_that_a_transform_sees():
    spline = CubicSpline(np.arange(4.0), TABLE)
    answers = []

    def f(x):
        inside = CubicSpline(np.arange(4.0), TABLE)
        answers.append((isinstance(spline, CubicSpline), isinstance(inside, CubicSpline), isinstance(x, CubicSpline)))
        return np.sum(inside(x)) + logsumexp(x)

    fad.grad(f)(X)
    assert answers[-1] == (True, True, False)


def test_an_option_that_is_not_fads_is_scipys_for_plain_values():
    def f(x):
        at = interpolate.RegularGridInterpolator((np.arange(4.0),), TABLE, method="nearest")(np.array([[1.2]]))
        return logsumexp(x) * at[0]

    np.testing.assert_allclose(fad.grad(f)(X), softmax(X))


def test_another_thread_sees_scipy_while_a_transform_runs():
    found = []

    def f(x):
        thread = threading.Thread(target=lambda: found.append(logsumexp(TABLE)))
        thread.start()
        thread.join()
        return logsumexp(x)

    fad.grad(f)(X)
    assert found[-1] == pytest.approx(np.log(np.sum(np.exp(TABLE))))


def test_a_function_that_fad_has_not_is_refused_by_its_name():
    with pytest.raises(fad.errors.TracerConversionError, match=r"scipy\.signal\.medfilt"):
        fad.grad(lambda x: np.sum(ss.medfilt(x, 3)))(X)
