"""Programs that call SciPy by its own names: under a transform they compute what fad.scipy's functions do."""

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

import fad

scipy = pytest.importorskip("scipy")

import scipy.signal as ss  # noqa: E402
from scipy import fft, integrate, interpolate, linalg, ndimage, optimize, sparse, stats  # noqa: E402
from scipy.interpolate import CubicSpline  # noqa: E402
from scipy.sparse.linalg import eigsh, splu, spsolve  # noqa: E402
from scipy.spatial import distance  # noqa: E402
from scipy.special import logsumexp, softmax  # noqa: E402

from fad.core.runs import overlay  # noqa: E402

X = np.array([0.3, 0.5, 0.9, 1.3])
TABLE = np.array([0.0, 1.0, 4.0, 9.0])


def import_inside(x):
    from scipy.special import logsumexp as log_sum

    return log_sum(x) * x


def import_module_inside(x):
    import scipy.linalg as sl

    return sl.toeplitz(x) @ x


def make_constants(x):
    y = np.zeros(4)
    y[1:] = x[1:]
    second = sparse.diags([np.ones(3), np.full(4, -2.0), np.ones(3)], [-1, 0, 1]).tolil()
    second[0, 0] = 1.0
    grid = sparse.kron(sparse.csr_matrix(np.eye(2)), np.ones((2, 2)))
    assert sparse.issparse(second)
    assert isinstance(second.tocsr(), sparse.csr_matrix)
    top = eigsh(second.tocsc(), k=1, v0=np.ones(4))[0]
    return splu(sparse.csc_matrix(np.eye(4) * 3.0)).solve(y) * top + second.multiply(second) @ (grid @ y)


def write_into_what_scipy_made(x):
    y = linalg.solve(np.eye(4), np.ones(4))
    y[0] = x[0]
    return y * x


def step_implicitly(x):
    second = sparse.diags([1.0, -2.0, 1.0], [-1, 0, 1], shape=(4, 4), format="csc")
    solve = splu((sparse.identity(4) - x[0] * second).tocsc()).solve
    return spsolve(sparse.identity(4, format="csc") - x[1] * second, solve(x))


def run_in_another_thread(x):
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(lambda: stats.norm.logpdf(x) + CubicSpline(np.arange(4.0), x)(0.5)).result()


def solve_without_a_constraint(x):
    ends = np.arange(4)
    rows, columns = np.append(ends, ends[1:]), np.append(ends, ends[:-1])
    stiffness = sparse.coo_matrix((np.append(x + 2.0, x[1:]), (rows, columns)), shape=(4, 4)).tocsr()
    return spsolve(stiffness[1:, 1:], x[1:])


def go_on_after_an_error(x):
    try:
        return logsumexp(x) * x
    except TypeError:
        return 0 * x


def put_an_error_on_top(x):
    try:
        return ss.fftconvolve(x, x)
    except TypeError as error:
        raise ValueError("a signal was expected") from error


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
    "the parameters of distributions": lambda x: x * (
        stats.multivariate_normal(x, np.eye(4) * x[0]).cov @ stats.multivariate_t(x, x[0] * np.eye(4), 3).loc
        + stats.dirichlet(x + 2.0).alpha * stats.norm(x[0], scale=x[1]).kwds["scale"]
        + np.sum(stats.wishart(4, np.eye(2) * x[2]).scale)
    ),
    "an object of traced values": lambda x: interpolate.CubicSpline(np.arange(4.0), x)(1.5) * x,
    "an object of plain values": lambda x: CubicSpline(np.arange(4.0), TABLE)(x),
    "an integral": lambda x: integrate.quad(lambda t: np.sin(t * x[0]), 0.0, 1.0)[0] * x,
    "a root": lambda x: optimize.brentq(lambda t: t**3 - x[1], 0.0, 2.0) * x,
    "a fit from a list": lambda x: optimize.least_squares(lambda p: p[0] * np.arange(4.0) + p[1] - x, [1.0, 0.0]).x,
    "a curve": lambda x: optimize.curve_fit(lambda t, a, b: a * t + b, np.arange(4.0), x, method="trf")[0],
    "a differential equation": lambda x: integrate.solve_ivp(lambda t, y: -x[0] * y, (0.0, 1.0), x, rtol=1e-8).y[:, -1],
    "an import in the function": import_inside,
    "an import of a module in the function": import_module_inside,
    "a write beside it": write_in_place,
    "an error that the program puts on top": put_an_error_on_top,
    "an error that the program catches": go_on_after_an_error,
    "matrices of arrays that the program makes": make_constants,
    "a write into what SciPy made of such": write_into_what_scipy_made,
    "an implicit step": step_implicitly,
    "another thread": run_in_another_thread,
    "a part of a matrix": solve_without_a_constraint,
    "lists of traced numbers": lambda x: (
        logsumexp([x[0], x[1], 1.0]) + softmax([x[0], x[1]]) * linalg.norm([x[2], x[3]])
    ),
    "a mean in a list": lambda x: stats.multivariate_normal([x[0], x[1]], np.eye(2)).logpdf(X[:2]) * x,
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


def test_a_frozen_distribution_has_scipys_methods_while_a_transform_runs():
    seen = []

    def methods(frozen):
        draws = frozen.rvs(2, random_state=1), frozen.rvs(size=2, random_state=np.random.RandomState(1))
        return [*draws, frozen.mean(), frozen.stats("mv"), frozen.expect(np.sin), frozen.interval(0.9), frozen.args]

    def f(x):
        seen.append(methods(stats.norm(0.3, np.ones(1)[0])))
        seen.append([isinstance(stats.norm, stats.rv_continuous), isinstance(stats.norm, stats.rv_discrete)])
        return logsumexp(x)

    fad.grad(f)(X)
    np.testing.assert_equal(seen[-2], methods(stats.norm(0.3, 1.0)))
    assert seen[-1] == [True, False]


def test_classes_in_a_transform_are_related_as_scipys_are():
    answers = []

    def f(x):
        class Doubled(CubicSpline):
            def __call__(self, *args):
                return 2 * super().__call__(*args)

        answers.append((issubclass(CubicSpline, interpolate.PPoly), issubclass(interpolate.PPoly, CubicSpline)))
        return Doubled(np.arange(4.0), TABLE)(logsumexp(x))

    assert fad.grad(f)(X) == pytest.approx(2 * CubicSpline(np.arange(4.0), TABLE)(logsumexp(X), 1) * softmax(X))
    assert set(answers) == {(True, False)}


def test_random_numbers_are_drawn_as_without_a_transform():
    source = np.random.default_rng(1)
    draws = {
        "NumPy's": np.random.normal,
        "a generator's": source.normal,
        "SciPy's": stats.norm.rvs,
        "SciPy's of a generator": lambda: stats.norm.rvs(random_state=source),
    }
    for name, draw in draws.items():
        namespace = {"draw": draw, "ss": ss, "np": np}
        exec("def f(x):\n    return draw() * np.sum(ss.fftconvolve(x, x))", namespace)
        np.random.seed(0)
        source.bit_generator.state = np.random.default_rng(1).bit_generator.state
        wanted = [namespace["f"](X), namespace["f"](X)]
        np.random.seed(0)
        source.bit_generator.state = np.random.default_rng(1).bit_generator.state
        run = fad.value_and_grad(namespace["f"])
        assert [run(X)[0], run(X)[0]] == pytest.approx(wanted), name


def test_a_module_that_is_loaded_after_a_transform_began_has_its_names_at_once():
    code = """
import numpy as np, fad
from scipy import sparse
from scipy.sparse.linalg import splu
def f(x):
    y = np.zeros(3)
    y[1:] = x[1:]
    return np.sum(splu(sparse.csc_matrix(np.eye(3) * 2.0)).solve(y))
print(fad.grad(f)(np.ones(3)))
from scipy import signal
def g(x):
    y = np.zeros(3)
    y[1:] = x[1:]
    return np.sum(signal.fftconvolve(y, np.ones(2)))
print(fad.grad(g)(np.ones(3)))
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert found.stdout.split("\n")[:2] == ["[0.  0.5 0.5]", "[0. 2. 2.]"], found.stderr


def test_names_that_were_exchanged_before_a_library_was_known_are_exchanged_with_it_later(monkeypatch):
    function, own = object(), object()
    first, second = {"function": function}, {"np": np}
    overlay.swap_in((first,), False, ())
    monkeypatch.setitem(overlay.LIBRARIES, id(function), own)  # what a failed run finds
    overlay.swap_in((second,), False, ())
    assert first["function"] is own
    overlay.swap_out((first, second))
    assert first["function"] is function


def test_a_program_that_catches_the_error_of_a_function_that_fad_has_not_runs_once():
    runs = []

    def f(x):
        runs.append(0)
        try:
            return np.sum(ss.cspline1d(x))
        except TypeError:
            return np.sum(x)

    assert fad.grad(f)(X) == pytest.approx(np.ones(4))
    assert len(runs) == 1


def test_a_function_that_fad_has_not_is_refused_by_its_name():
    with pytest.raises(fad.errors.TracerConversionError, match=r"scipy\.signal\.cspline1d"):
        fad.grad(lambda x: np.sum(ss.cspline1d(x)))(X)


SOLVERS = {
    "fsolve": lambda a: optimize.fsolve(lambda x: x**2 - a, 1.0)[0],
    "root": lambda a: optimize.root(lambda x: x**2 - a, 1.0).x[0],
    "leastsq": lambda a: optimize.leastsq(lambda x: x**2 - a, 1.0)[0][0],
    "least_squares": lambda a: optimize.least_squares(lambda x: x**2 - a, 1.0, method="lm").x[0],
    "curve_fit": lambda a: optimize.curve_fit(lambda t, p: p**2 + 0 * t, np.arange(3.0), a * np.ones(3), 1.0)[0][0],
}


@pytest.mark.filterwarnings("ignore:Covariance of the parameters could not be estimated")
@pytest.mark.parametrize("solve", SOLVERS.values(), ids=SOLVERS)
def test_a_solver_in_c_prints_no_error_of_a_first_run(solve, capfd):
    each = fad.vmap(fad.grad(solve))
    for gradient in (fad.grad(solve), fad.jit(fad.grad(solve)), lambda a: each(np.array([a, a]))):
        np.testing.assert_allclose(gradient(4.0), 0.25, 1e-5)
    assert capfd.readouterr().err == ""
