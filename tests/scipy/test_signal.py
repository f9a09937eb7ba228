"""Filters and spectra: SciPy's values on traced signals, transposes that are transposes, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.testing import check_grads

ss = pytest.importorskip("scipy.signal")

from fad.scipy import signal as ours  # noqa: E402

RNG = np.random.default_rng(7)
X, Y = RNG.standard_normal(300), RNG.standard_normal(80)
PLANE = RNG.standard_normal((40, 33))
B, A = ss.butter(4, 0.3)
SOS = ss.cheby1(5, 0.4, 0.2, output="sos")


def traced(f, *xs):
    """Return the value of a function of traced arguments."""
    return fad.vjp(f, *xs)[0]


def transposed(f, x):
    """Raise unless the reverse derivative of a linear function of x is its transpose."""
    y, pullback = fad.vjp(f, x)
    ct = np.random.default_rng(1).standard_normal(np.shape(y))
    np.testing.assert_allclose(np.sum(ct * y), np.sum(pullback(ct)[0] * x), rtol=1e-9)


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("method", ["auto", "direct", "fft"])
@pytest.mark.parametrize("name", ["convolve", "correlate"])
def test_long_convolutions_have_scipys_values_by_either_method(name, method, mode):
    for a, v in ((X, Y), (Y, X), (PLANE, PLANE[:5, :4])):
        got = traced(lambda a, v: getattr(ours, name)(a, v, mode, method), a, v)
        np.testing.assert_allclose(got, getattr(ss, name)(a, v, mode, method), atol=1e-11)
        transposed(lambda a, v=v: getattr(ours, name)(a, v, mode, method), a)
        transposed(lambda v, a=a: getattr(ours, name)(a, v, mode, method), v)


def test_a_convolution_of_single_precision_stays_single_by_fourier_transforms():
    x, v = X.astype(np.float32), Y.astype(np.float32)
    y, pullback = fad.vjp(lambda x: ours.fftconvolve(x, v), x)
    assert y.dtype == pullback(y)[0].dtype == np.float32


def test_overlap_add_and_fft_convolution_broadcast_the_axes_between():
    a, v = PLANE[:, None, :], RNG.standard_normal((1, 3, 7))
    got = traced(lambda a, v: ours.oaconvolve(a, v, "same", axes=2), a, v)
    np.testing.assert_allclose(got, ss.oaconvolve(a, v, "same", axes=2), atol=1e-12)


@pytest.mark.parametrize("boundary", ["fill", "wrap", "symm"])
def test_images_smaller_than_their_kernel_are_extended_as_often_as_needed(boundary):
    x, k = PLANE[:3, :2], PLANE[:7, :9]
    for mode in ("full", "same"):
        got = traced(lambda x, mode=mode: ours.convolve2d(x, k, mode, boundary), x)
        np.testing.assert_allclose(got, ss.convolve2d(x, k, mode, boundary), atol=1e-12)


def test_a_filter_and_its_state_have_scipys_values_and_derivatives_in_every_operand():
    zi = RNG.standard_normal(4)
    y, zf = traced(lambda b, a, x, zi: ours.lfilter(b, a, x, zi=zi), B, A, X, zi)
    wanted, final = ss.lfilter(B, A, X, zi=zi)
    np.testing.assert_allclose(y, wanted, atol=1e-12)
    np.testing.assert_allclose(zf, final, atol=1e-12)
    check_grads(lambda b, a, x, zi: ours.lfilter(b, a, x, zi=zi), (B, A, X[:9], zi), order=2)


def test_pieces_filtered_one_after_the_other_have_the_derivatives_of_the_whole():
    def in_pieces(b, a, x):
        first, state = ours.lfilter(b, a, x[:100], zi=np.zeros(4))
        return np.concatenate([first, ours.lfilter(b, a, x[100:], zi=state)[0]])

    def loss(f):
        return fad.grad(lambda b, a, x: np.sum(f(b, a, x) ** 3), (0, 1, 2))(B, A, X)

    for got, wanted in zip(loss(in_pieces), loss(ours.lfilter), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-8, atol=1e-10)


def test_the_transpose_of_a_filter_is_the_filter_of_the_reversed_signal():
    pull = fad.vjp(lambda x: ours.lfilter(B, A, x), X)[1]
    np.testing.assert_allclose(pull(X)[0], ss.lfilter(B, A, X[::-1])[::-1], atol=1e-12)


def test_filters_are_batched_over_signals_and_over_coefficients():
    rows = X.reshape(3, 100)
    np.testing.assert_allclose(fad.vmap(lambda x: ours.lfilter(B, A, x))(rows), ss.lfilter(B, A, rows), atol=1e-12)
    scaled = np.stack([A, [*A[:1], *(0.5 * A[1:])]])
    got = fad.vmap(lambda a: ours.lfilter(B, a, X))(scaled)
    np.testing.assert_allclose(got, [ss.lfilter(B, a, X) for a in scaled], atol=1e-12)


def test_sections_and_filters_run_both_ways_have_scipys_values():
    for name, args in (("sosfilt", (SOS,)), ("sosfiltfilt", (SOS,)), ("filtfilt", (B, A))):
        got = traced(lambda x, name=name, args=args: getattr(ours, name)(*args, x), X)
        np.testing.assert_allclose(got, getattr(ss, name)(*args, X), atol=1e-10, err_msg=name)
    np.testing.assert_allclose(traced(ours.sosfilt_zi, SOS), ss.sosfilt_zi(SOS), rtol=1e-9)
    state = RNG.standard_normal((len(SOS), 2))
    got = traced(lambda x, z: ours.sosfilt(SOS, x, zi=z), X, state)
    for g, w in zip(got, ss.sosfilt(SOS, X, zi=state), strict=True):
        np.testing.assert_allclose(g, w, atol=1e-11)


LINEAR = {
    "savgol": (lambda m, x: m.savgol_filter(x, 11, 3, deriv=1, delta=0.2)),
    "detrend": (lambda m, x: m.detrend(x, bp=[100, 220])),
    "resample": (lambda m, x: m.resample(x, 251)),
    "resample_poly": (lambda m, x: m.resample_poly(x, 3, 7)),
    "upfirdn": (lambda m, x: m.upfirdn(Y, x, 3, 5)),
    "decimate": (lambda m, x: m.decimate(x, 4, ftype="fir")),
    "filtfilt": (lambda m, x: m.filtfilt(B, A, x)),
}


@pytest.mark.parametrize("name", LINEAR)
def test_smoothing_and_resampling_are_scipys_and_their_own_transposes_transposes(name):
    np.testing.assert_allclose(traced(lambda x: LINEAR[name](ours, x), X), LINEAR[name](ss, X), atol=1e-10)
    transposed(lambda x: LINEAR[name](ours, x), X)


SPECTRA = {
    "stft": lambda m, x: m.stft(x, nperseg=64)[2],
    "welch": lambda m, x: m.welch(x, nperseg=64)[1],
    "csd": lambda m, x: m.csd(x, x[::-1], nperseg=64)[1],
    "spectrogram": lambda m, x: m.spectrogram(x, nperseg=64)[2],
    "periodogram": lambda m, x: m.periodogram(x, 2.0)[1],
    "coherence": lambda m, x: m.coherence(x, x[::-1] ** 2, nperseg=64)[1],
    "analytic": lambda m, x: m.hilbert(x),
}


@pytest.mark.parametrize("name", SPECTRA)
def test_spectra_of_traced_signals_are_scipys(name):
    np.testing.assert_allclose(traced(lambda x: SPECTRA[name](ours, x), X), SPECTRA[name](ss, X), atol=1e-11)


def test_complex_signals_are_resampled_with_a_window_as_by_scipy():
    z = X[:64] + 1j * X[64:128]
    for n in (50, 64, 81):
        got = traced(lambda z, n=n: ours.resample(z, n, window="hamming"), z)
        np.testing.assert_allclose(got, ss.resample(z, n, window="hamming"), atol=1e-12)


def test_a_signal_comes_back_from_its_short_time_transform_with_the_identity_for_derivative():
    def there_and_back(x):
        return ours.istft(ours.stft(x, nperseg=64)[2], nperseg=64)[1][: len(x)]

    np.testing.assert_allclose(traced(there_and_back, X), X, atol=1e-12)
    np.testing.assert_allclose(fad.vjp(there_and_back, X)[1](Y[:1] * X)[0], Y[0] * X, atol=1e-12)


def test_second_derivatives_of_a_power_spectrum():
    check_grads(lambda x: ours.welch(x, nperseg=6)[1], (X[:14],), order=2)


def test_a_recorded_filter_gives_what_it_gives_unrecorded():
    loss = fad.jit(fad.grad(lambda a, x: np.sum(ours.lfilter(B, a, x) ** 2)))
    wanted = fad.grad(lambda a, x: np.sum(ours.lfilter(B, a, x) ** 2))(A, Y)
    for _ in range(2):
        np.testing.assert_allclose(loss(A, Y), wanted, rtol=1e-10)


BAD = {
    "a mode": (lambda x: ours.convolve(x, x, "middle"), "mode"),
    "a method": (lambda x: ours.convolve(x, x, method="quick"), "method"),
    "ranks": (lambda x: ours.convolve(x, PLANE), "dimensionality"),
    "no valid part": (lambda x: ours.convolve2d(PLANE[:3, :9] + x[0], PLANE[:9, :3], "valid"), "at least as large"),
    "a boundary": (lambda x: ours.convolve2d(PLANE + x[0], PLANE, boundary="open"), "boundary"),
    "axes": (lambda x: ours.fftconvolve(x, x, axes=[]), "axes"),
    "an empty filter": (lambda x: ours.lfilter([], [1.0], x), "non-empty"),
    "a state": (lambda x: ours.lfilter(B, A, x, zi=np.zeros(3)), "shape"),
    "sections": (lambda x: ours.sosfilt(np.ones((2, 5)), x), "n_sections"),
    "sections without their 1": (lambda x: ours.sosfilt(np.full((2, 6), 2.0), x), "should be all ones"),
    "too short": (lambda x: ours.filtfilt(B, A, x[:5]), "padlen"),
    "Gustafsson's method": (lambda x: ours.filtfilt(B, A, x, method="gust"), "gust"),
    "a window too long": (lambda x: ours.savgol_filter(x[:4], 5, 2), "window_length"),
    "a trend": (lambda x: ours.detrend(x, type="quadratic"), "type"),
    "a complex analytic signal": (lambda x: ours.hilbert(x + 0j), "real"),
    "an overlap": (lambda x: ours.stft(x, nperseg=8, noverlap=8), "noverlap"),
    "a scaling": (lambda x: ours.welch(x, nperseg=8, scaling="loud"), "scaling"),
}


@pytest.mark.parametrize("what", BAD)
def test_what_scipy_refuses_is_refused_for_traced_signals(what):
    function, words = BAD[what]
    with pytest.raises(ValueError, match=words):
        fad.vjp(function, X)


def test_a_function_without_a_rule_is_named_with_what_to_do():
    with pytest.raises(AttributeError, match=r"fad\.scipy\.signal has no cspline1d.*custom_jvp"):
        _ = ours.cspline1d
    with pytest.raises(AttributeError, match="neither"):
        _ = ours.no_such_function


KERNEL = RNG.standard_normal((2, 3))
ROWS = RNG.standard_normal((40, 6))
# Calls of `m`, SciPy's module or fad's, with a signal.
RARE = {
    **{f"{name}, {mode}, {boundary}": (
        lambda m, x, name=name, mode=mode, boundary=boundary: getattr(m, name)(x, KERNEL, mode, boundary, 0.7), PLANE)
       for name in ("convolve2d", "correlate2d") for mode in ("full", "same", "valid")
       for boundary in ("fill", "wrap", "symm")},
    **{f"{name} along one axis, {mode}": (
        lambda m, x, name=name, mode=mode: getattr(m, name)(x, KERNEL[:1], mode, axes=1), PLANE)
       for name in ("fftconvolve", "oaconvolve") for mode in ("full", "same", "valid")},
    **{f"stft, boundary {b}": (lambda m, x, b=b: m.stft(x, nperseg=8, boundary=b, padded=False)[2], Y)
       for b in ("even", "odd", "constant", "zeros", None)},
    "stft along columns": (lambda m, x: m.stft(x, nperseg=8, axis=0)[2], ROWS),
    "istft of more frequencies": (lambda m, x: m.istft(m.stft(x, nperseg=7, nfft=9, noverlap=4)[2], nperseg=7, nfft=9,
                                                       noverlap=4)[1], Y),
    "spectrogram of more frequencies": (lambda m, x: m.spectrogram(x, nperseg=8, nfft=16, noverlap=2)[2], Y),
    "spectrogram of columns": (lambda m, x: m.spectrogram(x, nperseg=8, axis=0)[2], ROWS),
    "filtfilt without a margin": (lambda m, x: m.filtfilt(B, A, x, padtype=None), Y),
    "filtfilt with a margin of its own": (lambda m, x: m.filtfilt(B, A, x, padtype="constant", padlen=5), Y),
    "sosfiltfilt along columns": (lambda m, x: m.sosfiltfilt(SOS, x, padlen=4, axis=0), ROWS),
    "sosfiltfilt without a margin": (lambda m, x: m.sosfiltfilt(SOS, x, padtype=None), Y),
    "lfilter of one tap": (lambda m, x: m.lfilter([3.0], [2.0], x), Y),
    "lfilter of columns": (lambda m, x: m.lfilter([1.0, 0.5], [2.0], x, axis=0), ROWS),
    "resample of complex numbers": (lambda m, x: m.resample(x + 1j * x[::-1], 50), Y),
    "resample of fewer": (lambda m, x: m.resample(x, 16, window="hann"), Y),
    "hilbert of an odd number": (lambda m, x: m.hilbert(x, 33), Y),
}  # fmt: skip


@pytest.mark.parametrize("what", list(RARE))
def test_rare_settings_give_scipys_values(what):
    f, x = RARE[what]
    wanted, found = f(ss, x), traced(lambda x: f(ours, x), x)
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize(
    "f",
    [
        lambda m, x: m.resample_poly(x, 0, 1),
        lambda m, x: m.resample_poly(x, 1, 0),
        lambda m, x: m.stft(x, nperseg=8, boundary="mirror"),
        lambda m, x: m.filtfilt(B, A, x, padtype="mirror"),
        lambda m, x: m.filtfilt(B, A, x[:3]),
        lambda m, x: m.convolve2d(x, KERNEL),
        lambda m, x: m.convolve(x, x, "no such mode"),
        lambda m, x: m.spectrogram(x, nperseg=8, mode="no such mode"),
        lambda m, x: m.welch(x, nperseg=8, noverlap=9),
        lambda m, x: m.detrend(x, type="square"),
        lambda m, x: m.savgol_filter(x, 3, 5),
    ],
)
def test_a_setting_that_scipy_refuses_is_refused(f):
    with pytest.raises(Exception) as wanted:
        f(ss, Y)
    with pytest.raises(wanted.type):
        traced(lambda x: f(ours, x), Y)
