"""Rare ways of calling SciPy's functions: traced arrays get the values of plain ones, or their kind of error."""

import importlib

import numpy as np
import pytest

import fad

signal = pytest.importorskip("scipy.signal")

X = np.linspace(0, 1, 6)
Y = np.array([0.13, -0.13, 0.64, 0.1, -0.54, 0.36])
AT = np.array([0.1, 0.4, 0.55])
GRID = np.cos(np.arange(30.0)).reshape(5, 6)
SIGNAL = np.sin(np.arange(40.0) ** 1.5)
MATRIX = np.cos(np.arange(9.0) ** 2).reshape(3, 3) + 3 * np.eye(3)
POINTS = 1 + 0.5 * np.sin(np.arange(12.0)).reshape(4, 3)

VALUES = [
    (
        "interpolate",
        Y,
        [
            lambda of, y: of.RegularGridInterpolator((np.array([1.0]), X), y[None])(np.array([[1.0, 0.3], [1.0, 0.5]])),
            lambda of, y: of.PPoly(
                np.stack([np.stack([y[:5], y[1:]]), np.stack([y[:5], y[1:]])])[:, :, :].transpose(1, 0, 2), X, axis=1
            )(AT),
            lambda of, y: of.PPoly(np.stack([y[:5], y[1:]]), X)(AT, nu=3),
            lambda of, y: of.PPoly(np.stack([y[:5], y[1:]]), X).antiderivative(-1)(AT),
            lambda of, y: of.PPoly(np.stack([y[:5], y[1:]]), X).antiderivative(0)(AT),
            lambda of, y: of.PPoly(np.stack([y[:5], y[1:]]), X).derivative(-1)(AT),
            lambda of, y: of.PPoly(np.stack([y[:5], y[1:]]), X).derivative(5)(AT),
            lambda of, y: of.make_interp_spline(X, y, 3, bc_type="not-a-knot")(AT),
        ],
    ),
    (
        "ndimage",
        Y,
        [
            lambda of, y: of.zoom(y, 1.0),
            lambda of, y: of.zoom(y, 0.01),
            lambda of, y: of.map_coordinates(y * 1j, [[0.5]]),
        ],
    ),
    (
        "signal",
        SIGNAL,
        [
            lambda of, s: of.fftconvolve(s, np.ones(0)),
            lambda of, s: of.lfilter([2.0], [1.0], s, zi=np.ones(0)),
            lambda of, s: of.resample(s, 5, t=np.arange(40.0) * 2),
            lambda of, s: of.resample(s, 5, window=lambda f: np.exp(-f * f)),
            lambda of, s: of.spectrogram(s, nperseg=8, mode="phase"),
            lambda of, s: of.spectrogram(s, nperseg=8, mode="angle"),
            lambda of, s: of.welch(s, nperseg=40, average="median"),
            lambda of, s: of.istft(s.reshape(5, 8)),
            lambda of, s: of.periodogram(s, nfft=20),
            lambda of, s: of.coherence(s, s + 1, nperseg=8),
        ],
    ),
    (
        "fft",
        Y,
        [
            lambda of, y: of.fht(y, 0.1, 0.2),
        ],
    ),
    (
        "linalg",
        MATRIX,
        [
            lambda of, b: of.polar(b, side="left")[1],
            lambda of, b: of.solve(b + b.T, np.ones(3), assume_a="sym"),
            lambda of, b: of.solve(b, np.ones(3), assume_a="banded"),
            lambda of, b: of.solve(b + b.T, np.ones(3), assume_a="symmetric"),
            lambda of, b: of.cho_factor(b @ b.T)[0],
            lambda of, b: of.cho_factor(b @ b.T, lower=True)[0],
            lambda of, b: of.cho_solve(of.cho_factor(b @ b.T), np.ones(3)),
            lambda of, b: of.eigh(b + b.T)[0],
            lambda of, b: of.eigh(b + b.T, eigvals_only=True, subset_by_index=[0, 1]),
        ],
    ),
    (
        "spatial.distance",
        POINTS,
        [
            lambda of, m: of.minkowski(m[0], m[1], 2),
            lambda of, m: of.cdist(m, m, of.cityblock),
            lambda of, m: of.pdist(m, of.euclidean),
            lambda of, m: of.squareform(m @ m.T, checks=False),
            lambda of, m: of.cdist(m, m, of.chebyshev),
            lambda of, m: of.cdist(m, m, of.sqeuclidean),
            lambda of, m: of.cdist(m, m, of.cosine),
            lambda of, m: of.cdist(m, m, of.minkowski, p=3),
        ],
    ),
    (
        "special",
        Y,
        [
            lambda of, y: of.jvp(1, y + 3, n=2),
            lambda of, y: of.multigammaln(y + 5, 3),
            lambda of, y: of.comb(y + 5, 2, repetition=True),
            lambda of, y: of.comb(y, 2),
            lambda of, y: of.perm(y + 5, 2),
            lambda of, y: of.factorial(y),
            lambda of, y: of.zeta(y + 3),
            lambda of, y: of.legendre_p(2, y / 3),
            lambda of, y: of.softplus(y),
            lambda of, y: of.softplus(y, dtype=np.float32),
            lambda of, y: of.elliprj(1.0, 2.0, 3.0, y - 5),
            lambda of, y: of.comb(5, 3, exact=True) * y,
            lambda of, y: of.factorial(5, exact=True) * y,
            lambda of, y: of.perm(5, 2, exact=True) * y,
            lambda of, y: of.xlogy(y * 0, y),
            lambda of, y: of.rgamma(-y * 0 - 2.0),
        ],
    ),
    (
        "stats",
        Y,
        [
            lambda of, y: of.gamma.logpdf(y + 3, 2.0, scale=2.0),
        ],
    ),
    (
        "integrate",
        Y,
        [
            lambda of, y: of.cumulative_trapezoid(y, initial=0),
            lambda of, y: of.simpson(y),
            lambda of, y: of.solve_ivp(lambda t, u: [-u[0], u[1]], (0.0, 1.0), y[:2]).y,
        ],
    ),
]

ERRORS = [
    (
        "interpolate",
        Y,
        [
            lambda of, y: of.interp1d(GRID, y),
            lambda of, y: of.interp1d(X[:5], y),
            lambda of, y: of.interp1d(X, y, "no"),
            lambda of, y: of.interp1d(X[:2], y[:2], "cubic"),
            lambda of, y: of.interp1d(X, y, fill_value="extrapolate", bounds_error=True),
            lambda of, y: of.RegularGridInterpolator((X, X), y)(AT),
            lambda of, y: of.RegularGridInterpolator((X[[0, 2, 1, 3, 4, 5]],), y)(AT),
            lambda of, y: of.RegularGridInterpolator((X,), y)(np.ones((2, 3))),
            lambda of, y: of.RegularGridInterpolator((X,), y, method="no")(AT),
            lambda of, y: of.interpn((X,), y, AT, method="no"),
            lambda of, y: of.PPoly(y[None], X)(AT),
            lambda of, y: of.PPoly(y, X)(AT),
            lambda of, y: of.PPoly(np.stack([y[:5], y[1:]]), X[:1])(AT),
            lambda of, y: of.PPoly(np.stack([y[:5], y[1:]]), X[[0, 2, 1, 3, 4, 5]])(AT),
            lambda of, y: of.CubicSpline(X * 1j, y)(AT),
            lambda of, y: of.CubicSpline(GRID, y)(AT),
            lambda of, y: of.CubicHermiteSpline(X, y, y[:5])(AT),
            lambda of, y: of.Akima1DInterpolator(X, y, method="no")(AT),
            lambda of, y: of.CubicSpline(X, y, bc_type=("natural",))(AT),
            lambda of, y: of.CubicSpline(X, y, bc_type=("natural", "periodic"))(AT),
            lambda of, y: of.CubicSpline(X, y, bc_type=((3, 0.0), "natural"))(AT),
            lambda of, y: of.CubicSpline(X, y, bc_type=((1, np.ones(2)), "natural"))(AT),
            lambda of, y: of.CubicSpline(X, y, bc_type="no")(AT),
            lambda of, y: of.CubicSpline(X, y, bc_type=("no", "natural"))(AT),
            lambda of, y: of.BSpline(X, y, -1)(AT),
            lambda of, y: of.BSpline(GRID, y, 1)(AT),
            lambda of, y: of.BSpline(X[::-1], y, 1)(AT),
            lambda of, y: of.BSpline(np.ones(6), y, 1)(AT),
            lambda of, y: of.BSpline(np.array([0, 0, 0.5, 1, 1, np.inf]), y, 1)(AT),
            lambda of, y: of.BSpline(X, y[:3], 1)(AT),
            lambda of, y: of.BSpline(X, y, 1).derivative(3)(AT),
            lambda of, y: of.make_interp_spline(X, y, 3, bc_type=("no", "natural"))(AT),
            lambda of, y: of.make_interp_spline(X, y, 3, bc_type=(1.0, 2.0))(AT),
            lambda of, y: of.make_interp_spline(X, y, -1)(AT),
            lambda of, y: of.make_interp_spline(X, y, 3, bc_type=([(1, 0.0)], None))(AT),
            lambda of, y: of.make_interp_spline(X, y, 3, bc_type=([(5, 0.0)], [(1, 0.0)]))(AT),
            lambda of, y: of.make_interp_spline(X[:5], y)(AT),
            lambda of, y: of.make_interp_spline(X[::-1], y)(AT),
            lambda of, y: of.make_interp_spline(np.array([0, 1, 2, 3, 4, np.inf]), y)(AT),
            lambda of, y: of.make_interp_spline(X, y, 1, t=X[::-1])(AT),
            lambda of, y: of.make_interp_spline(X, y, 1, t=X)(AT),
            lambda of, y: of.make_interp_spline(X, y, 1, t=np.array([0.1, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.6]))(AT),
        ],
    ),
    (
        "ndimage",
        Y,
        [
            lambda of, y: of.uniform_filter(y, [3, 3]),
            lambda of, y: of.uniform_filter(GRID * y, 3, axes=(0, 0)),
            lambda of, y: of.correlate1d(y, []),
            lambda of, y: of.gaussian_filter1d(y, 1.0, order=-1),
            lambda of, y: of.spline_filter1d(y, order=7),
            lambda of, y: of.zoom(y, [2.0, 2.0]),
            lambda of, y: of.shift(y, [1.0, 2.0]),
            lambda of, y: of.map_coordinates(y, np.ones((2, 3))),
            lambda of, y: of.map_coordinates(y, np.ones((1, 3)), mode="no"),
            lambda of, y: of.affine_transform(y, np.ones((2, 2))),
            lambda of, y: of.affine_transform(GRID * y, np.array([[1.0, 0, 0], [0, 1, 0], [1, 0, 1]])),
            lambda of, y: of.affine_transform(GRID * y, np.ones((2, 3, 4))),
            lambda of, y: of.affine_transform(GRID * y, np.ones((2, 2)), output_shape=(3,)),
            lambda of, y: of.affine_transform(GRID * y, np.ones((3, 2))),
            lambda of, y: of.rotate(y, 30.0),
            lambda of, y: of.rotate(GRID * y, 30.0, axes=(0, 1, 1)),
            lambda of, y: of.shift(y, 1.0, order=9),
            lambda of, y: of.zoom(y, 2, mode="no"),
            lambda of, y: of.shift(y[0], 1.0),
        ],
    ),
    (
        "signal",
        SIGNAL,
        [
            lambda of, s: of.fftconvolve(s, np.ones(3), axes=()),
            lambda of, s: of.fftconvolve(s, np.ones(3), axes=(0, 0)),
            lambda of, s: of.fftconvolve(s.reshape(5, 8), np.ones((3, 3)), axes=0),
            lambda of, s: of.convolve2d(s, np.ones(3)),
            lambda of, s: of.convolve(s, np.ones((2, 2))),
            lambda of, s: of.lfilter_zi(GRID * s[:6], [1.0]),
            lambda of, s: of.sosfilt(np.ones((1, 6)), s, zi=np.ones((3, 3))),
            lambda of, s: of.filtfilt([1.0], [1.0, 0.1], s, padlen=50),
            lambda of, s: of.filtfilt([1.0], [1.0, 0.1], s, padtype="no"),
            lambda of, s: of.filtfilt([1.0], [1.0, 0.1], s, method="no"),
            lambda of, s: of.detrend(s, bp=[50]),
            lambda of, s: of.hilbert(s, 0),
            lambda of, s: of.savgol_filter(s, 5, 2, mode="no"),
            lambda of, s: of.upfirdn([1.0, 2.0], s, 2, mode="no"),
            lambda of, s: of.upfirdn(np.ones((2, 2)), s),
            lambda of, s: of.upfirdn([1.0], s, 0),
            lambda of, s: of.resample(s, 5, domain="no"),
            lambda of, s: of.resample(s, 5, window=np.ones(3)),
            lambda of, s: of.resample_poly(s, 1.5, 2),
            lambda of, s: of.resample_poly(s, 0, 2),
            lambda of, s: of.resample_poly(s, 2, 3, cval=1.0, padtype="line"),
            lambda of, s: of.resample_poly(s, 2, 3, window=np.ones((2, 2))),
            lambda of, s: of.decimate(s, 2, ftype="no"),
            lambda of, s: of.resample_poly(s, 2, 3, padtype="no"),
            lambda of, s: of.welch(s, nperseg=0),
            lambda of, s: of.welch(s, window=np.ones((2, 2))),
            lambda of, s: of.welch(s, window=np.ones(50)),
            lambda of, s: of.welch(s, window=np.ones(8), nperseg=9),
            lambda of, s: of.welch(s, nperseg=8, nfft=4),
            lambda of, s: of.welch(s, nperseg=8, noverlap=8),
            lambda of, s: of.stft(s, nperseg=8, boundary="no"),
            lambda of, s: of.stft(s, nperseg=8, scaling="no"),
            lambda of, s: of.spectrogram(s, nperseg=8, mode="no"),
            lambda of, s: of.welch(s, nperseg=8, average="no"),
            lambda of, s: of.periodogram(s, window=np.ones(3)),
            lambda of, s: of.istft(s, nperseg=8),
            lambda of, s: of.istft(s.reshape(5, 8), time_axis=-1, freq_axis=-1),
            lambda of, s: of.istft(s.reshape(5, 8), scaling="no"),
        ],
    ),
    (
        "fft",
        Y,
        [
            lambda of, y: of.fft(y, plan=1),
            lambda of, y: of.fht(y * 1j, 0.1, 0.2),
        ],
    ),
    (
        "linalg",
        MATRIX,
        [
            lambda of, b: of.polar(b, side="no"),
            lambda of, b: of.solve(b, np.ones(3), assume_a="no"),
            lambda of, b: of.orthogonal_procrustes(b, b[:2]),
            lambda of, b: of.companion(b[0, :1]),
            lambda of, b: of.convolution_matrix(b[0], 0),
            lambda of, b: of.convolution_matrix(b[0], 3, "no"),
            lambda of, b: of.leslie(b[0], b[0]),
            lambda of, b: of.khatri_rao(b, b[:, :2]),
            lambda of, b: of.diagsvd(b[0], 4, 5),
        ],
    ),
    (
        "spatial.distance",
        POINTS,
        [
            lambda of, m: of.seuclidean(m[0], m[1], np.ones(2)),
            lambda of, m: of.squareform(m[None]),
            lambda of, m: of.squareform(m[0], force="tovector"),
            lambda of, m: of.squareform(m @ m.T - np.diag(np.diag(m @ m.T)), force="tomatrix"),
            lambda of, m: of.squareform(m),
            lambda of, m: of.squareform(m @ m.T),
            lambda of, m: of.cdist(m, m, "no"),
            lambda of, m: of.cdist(m, m[:, :2]),
        ],
    ),
    (
        "special",
        Y,
        [
            lambda of, y: of.jvp(1.5, y + 3, n=-1),
            lambda of, y: of.perm(y + 5, 2, exact=True),
            lambda of, y: of.comb(y + 5, 2, exact=True),
        ],
    ),
    (
        "stats",
        Y,
        [
            lambda of, y: of.norm.logpdf(y, 1.0, 2.0, 3.0),
            lambda of, y: of.norm.logpdf(y, foo=2.0),
            lambda of, y: of.norm.logpdf(),
            lambda of, y: of.gamma.logpdf(y),
            lambda of, y: of.dirichlet.logpdf(np.abs(y[:3]) / np.sum(np.abs(y[:3])), np.ones(5)),
        ],
    ),
    (
        "integrate",
        Y,
        [
            lambda of, y: of.cumulative_trapezoid(y, initial=3.0),
        ],
    ),
]


def _flat(groups):
    return [(name, x, f) for name, x, fs in groups for f in fs]


@pytest.mark.parametrize(("name", "x", "f"), _flat(VALUES))
def test_a_traced_array_gives_the_value_that_scipy_gives_for_a_plain_one(name, x, f):
    theirs, ours = (importlib.import_module(f"{package}.{name}") for package in ("scipy", "fad.scipy"))
    leaves = lambda y: list(y) if isinstance(y, tuple) else [y]
    with np.errstate(all="ignore"):
        wanted = leaves(f(theirs, x))
        found = fad.vjp(lambda x: leaves(f(ours, x)), x)[0]
    for a, b in zip(found, wanted, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)
        assert np.asarray(a).dtype == np.asarray(b).dtype


@pytest.mark.parametrize(("name", "x", "f"), _flat(ERRORS))
def test_a_traced_array_gives_the_kind_of_error_that_scipy_gives_for_a_plain_one(name, x, f):
    theirs, ours = (importlib.import_module(f"{package}.{name}") for package in ("scipy", "fad.scipy"))
    with pytest.raises(Exception) as wanted:
        f(theirs, x)
    with pytest.raises(wanted.type) as found:
        fad.vjp(lambda x: f(ours, x), x)
    assert str(found.value).strip()


@pytest.mark.parametrize(
    ("f", "said"),
    [
        (lambda of, s: of.stft(s * 1j, nperseg=8), "complex"),
        (lambda of, s: of.welch(s, nperseg=64), "64 is greater"),
        (lambda of, s: of.istft(s.reshape(5, 8), boundary=False, window="hann", noverlap=4), "NOLA"),
    ],
)
def test_what_scipy_warns_of_is_warned_of(f, said):
    for name in ("scipy.signal", "fad.scipy.signal"):
        module = importlib.import_module(name)
        with pytest.warns(UserWarning, match=said):
            fad.vjp(lambda s, of=module: list(f(of, s if of is not signal else SIGNAL)), SIGNAL)


@pytest.mark.parametrize(
    ("name", "f", "said"),
    [
        ("linalg", lambda of, b: of.eigh(b @ b.T, b @ b.T + np.eye(3), type=2), "type 1"),
        ("linalg", lambda of, b: of.solve_continuous_are(b, b, b @ b.T, b @ b.T, e=np.eye(3)), "standard form"),
        ("linalg", lambda of, b: of.solve(b, np.ones(3), assume_a="no such form"), "."),
        ("linalg", lambda of, b: of.solve_circulant(b[0], b[0], singular="lstsq"), "'raise'"),
        ("spatial.distance", lambda of, b: of.pdist(b, lambda u, v: np.sum(u * v)), "name of a metric"),
        ("interpolate", lambda of, b: of.BSpline(X, Y * b[0, 0], 1, "periodic").integrate(0, 1), "periodic"),
    ],
)
def test_what_scipy_can_do_and_fad_cannot_says_so(name, f, said):
    with pytest.raises((fad.errors.FadError, ValueError), match=said):
        fad.vjp(lambda b: f(importlib.import_module(f"fad.scipy.{name}"), b), MATRIX)
