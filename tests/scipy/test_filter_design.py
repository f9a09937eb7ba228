"""Filters of traced frequencies, responses, forms, waves, peaks: SciPy's numbers, and derivatives."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest

import fad
from fad import tree
from fad.errors import DerivativeError
from fad.testing import check_grads

signal = pytest.importorskip("scipy.signal")

from fad.scipy import signal as ours  # noqa: E402

B, A = np.array([1.0, 0.4, 0.3]), np.array([1.0, -0.5, 0.2])
X = np.random.default_rng(4).standard_normal(24)
WAVE = np.sin(np.linspace(0.0, 25.0, 120)) * np.linspace(1.0, 2.0, 120) + 0.3 * np.cos(np.linspace(0.0, 60.0, 120))
IMAGE = np.random.default_rng(5).standard_normal((6, 8))
TIMES = np.sort(np.random.default_rng(6).uniform(0.0, 9.0, 24))
PAIR = np.array([0.21, 0.44])


def same(got, wanted, rtol=1e-9, atol=1e-11):
    for a, b in zip(tree.leaves(got), tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=atol)
        assert np.result_type(a) == np.result_type(b)
        assert np.shape(a) == np.shape(b)


# --- design ---------------------------------------------------------------------------------------------------------

KINDS = {
    "butter": lambda m, n, w, **o: m.butter(n, w, **o),
    "cheby1": lambda m, n, w, **o: m.cheby1(n, 1.5, w, **o),
    "cheby2": lambda m, n, w, **o: m.cheby2(n, 35.0, w, **o),
    "ellip": lambda m, n, w, **o: m.ellip(n, 1.0, 35.0, w, **o),
    "bessel": lambda m, n, w, **o: m.bessel(n, w, **o),
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("band", ["low", "high", "band", "stop"])
@pytest.mark.parametrize("output", ["ba", "zpk", "sos"])
def test_a_filter_of_traced_frequencies_is_scipys(kind, band, output):
    w = PAIR if band in ("band", "stop") else 0.37
    for n in (1, 2, 3, 4, 5, 7):
        f = lambda m, w, n=n: KINDS[kind](m, n, w, btype=band, output=output)
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            got = fad.vjp(lambda w, f=f: f(ours, w), w)[0]
        same(got, f(signal, w), rtol=1e-7, atol=1e-9)  # the coefficients of poles near each other


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("band", ["low", "high", "band", "stop"])
def test_analog_filters_and_sampling_rates_are_scipys(kind, band):
    w = 40.0 * PAIR if band in ("band", "stop") else np.float64(13.0)
    for options in ({"analog": True}, {"fs": 50.0}, {"analog": True, "output": "zpk"}):
        f = lambda m, w, o=options: KINDS[kind](m, 3, w, btype=band, **o)
        same(fad.vjp(lambda w, f=f: f(ours, w), w)[0], f(signal, w), rtol=1e-8, atol=1e-8)
        run = fad.jit(lambda w, f=f: f(ours, w))
        for factor in (1.0, 0.9):
            same(run(w * factor), f(signal, w * factor), rtol=1e-8, atol=1e-8)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("output", ["ba", "sos"])
def test_what_a_filter_makes_of_a_signal_has_a_derivative_in_its_frequencies(kind, output):
    def energy(w):
        if output == "ba":
            return np.sum(signal.lfilter(*KINDS[kind](signal, 3, w, btype="band"), X) ** 2)
        return np.sum(signal.sosfilt(KINDS[kind](signal, 3, w, btype="band", output="sos"), X) ** 2)

    check_grads(energy, (PAIR,), order=2, rtol=1e-3)
    assert fad.jit(energy)(PAIR) == pytest.approx(energy(PAIR), rel=1e-9)
    batch = np.stack([PAIR, PAIR + 0.05])
    np.testing.assert_allclose(fad.vmap(energy)(batch), [energy(w) for w in batch], rtol=1e-9)


def test_ripples_of_chebyshevs_filters_and_the_sampling_rate_may_be_traced():
    check_grads(lambda r, w: ours.cheby1(4, r, w)[1], (1.0, 0.3), order=2)
    check_grads(lambda r, w: ours.cheby2(5, r, w)[0], (30.0, 0.3), order=2)
    check_grads(lambda w, fs: ours.butter(2, w, fs=fs)[1], (3.0, 20.0), order=2)
    with pytest.raises(DerivativeError, match="cheby1 or cheby2"):
        fad.grad(lambda r: ours.ellip(3, r, 30.0, 0.3)[1][1])(1.0)
    with pytest.raises(NotImplementedError, match="pairing"):
        fad.grad(lambda w: ours.butter(3, w, analog=True, output="sos")[0, 0])(0.3)


def test_notches_peaks_and_windowed_sincs_are_scipys():
    for name in ("iirnotch", "iirpeak"):
        f = lambda m, w, q, fs, n=name: getattr(m, n)(w, q, fs)
        same(fad.vjp(lambda *v, f=f: f(ours, *v), 3.0, 12.0, 20.0)[0], f(signal, 3.0, 12.0, 20.0))
        check_grads(lambda *v, f=f: f(ours, *v), (3.0, 12.0, 20.0), order=2)
    cases = (
        (7, 0.3, {}), (8, 0.3, {"window": "hann"}), (7, 0.3, {"pass_zero": "highpass"}),
        (7, PAIR, {"pass_zero": False}),
        (7, PAIR, {"pass_zero": "bandstop"}), (9, 4.0, {"fs": 20.0, "width": 1.0}), (7, PAIR, {"scale": False}),
        (9, np.array([0.2, 0.4, 0.7]), {"pass_zero": False}),
    )  # fmt: skip
    for n, cutoff, options in cases:
        f = lambda m, c, n=n, o=options: m.firwin(n, c, **o)
        same(fad.vjp(lambda c, f=f: f(ours, c), cutoff)[0], f(signal, cutoff))
        same(fad.jit(lambda c, f=f: f(ours, c))(cutoff), f(signal, cutoff))
        check_grads(lambda c, f=f: f(ours, c), (cutoff,), order=2)


@pytest.mark.parametrize(
    "f",
    [
        lambda w: ours.butter(3, w + 1.0)[0],
        lambda w: ours.butter(3, w - 1.0)[0],
        lambda w: ours.butter(3, w, "band")[0],
        lambda w: ours.butter(3, np.stack([w, w / 2]), "band")[0],
        lambda w: ours.butter(3, np.stack([w, 2 * w]))[0],
        lambda w: ours.butter(3, w, "middle")[0],
        lambda w: ours.butter(3, w, output="table")[0],
        lambda w: ours.butter(3, w, analog=True, fs=3.0)[0],
        lambda w: ours.iirfilter(3, w, ftype="best")[0],
        lambda w: ours.iirfilter(3, w, btype="low", ftype="cheby1")[0],
        lambda w: ours.cheby1(3, -1.0, w)[0],
        lambda w: ours.iirnotch(w + 2.0, 3.0)[0],
        lambda w: ours.firwin(8, w, pass_zero=False),
        lambda w: ours.firwin(7, w + 1.0),
        lambda w: ours.firwin(7, w, pass_zero="bandpass"),
        lambda w: ours.firwin(7, np.stack([w, w])),
        lambda w: ours.freqz(w, worN=-1)[1].real,
        lambda w: ours.freqz_sos(np.stack([w, w]))[1].real,
        lambda w: ours.chirp(w, -1.0, 1.0, 2.0, method="log"),
        lambda w: ours.chirp(w, 1.0, 1.0, 2.0, method="cubic"),
        lambda w: ours.gausspulse(w, -1.0),
        lambda w: ours.gausspulse("end", w),
        lambda w: ours.medfilt(np.stack([w, w]), 2),
        lambda w: ours.lombscargle(np.stack([w, w]), X[:3], X[:2]),
        lambda w: ours.zpk2sos(np.stack([w, 1j]), [0.1, 0.2], 1.0),
        lambda w: ours.lp2lp_zpk(np.stack([w, w]), [0.1], 1.0)[0],
        lambda w: ours.normalize(np.stack([w, w]), 0.0 * np.stack([w]))[0],
        lambda w: ours.find_peaks(np.stack([[w, w]]))[0],
        lambda w: ours.argrelextrema(np.stack([w, w]), np.less, order=0)[0],
    ],
)
def test_what_scipy_refuses_with_a_value_error_is_one_of_traced_values_too(f):
    with pytest.raises(ValueError):
        fad.vjp(f, 0.4)


# --- forms and responses --------------------------------------------------------------------------------------------

Z, P = np.array([-1.0, 0.3 + 0.4j, 0.3 - 0.4j]), np.array([0.5, 0.2 + 0.6j, 0.2 - 0.6j])
FORMS = {
    "normalize": lambda m, x: m.normalize(B * x, A * 2),
    "normalize with zeros": lambda m, x: m.normalize(B * x, np.concatenate([np.zeros(2), A * x])),
    "tf2zpk": lambda m, x: m.tf2zpk(B * x, A),
    "zpk2tf": lambda m, x: m.zpk2tf(Z, P, x),
    "zpk2tf of nothing": lambda m, x: m.zpk2tf([], [x, 0.3], 2.0),
    "zpk2sos": lambda m, x: m.zpk2sos(Z * x, P * x, 2.0),
    "zpk2sos of few zeros": lambda m, x: m.zpk2sos(Z[1:], P * x, x),
    "zpk2sos of real ones": lambda m, x: m.zpk2sos(Z.real, np.linspace(-0.8, 0.7, 5) * x, x),
    "zpk2sos of nothing": lambda m, x: m.zpk2sos([], [], x),
    "tf2sos": lambda m, x: m.tf2sos(B * x, A),
    "sos2tf": lambda m, x: m.sos2tf(np.array([[*B, *A], [*B[::-1], *A]]) * x),
    "lp2lp_zpk": lambda m, x: m.lp2lp_zpk([], -Z - 2, 1.5, x),
    "lp2hp_zpk": lambda m, x: m.lp2hp_zpk([-1.0], -Z - 2, 1.5, x),
    "lp2bp_zpk": lambda m, x: m.lp2bp_zpk([-1.0], Z - 2, 1.5, 3.0 * x, x),
    "lp2bs_zpk": lambda m, x: m.lp2bs_zpk([-1.0, -2.0], Z - 2, 1.5, 3.0 * x, x),
    "bilinear_zpk": lambda m, x: m.bilinear_zpk([-1.0 * x], Z - 2 * x, 1.5, 2.0),
    "bilinear": lambda m, x: m.bilinear(B * x, [1.0, 2.0 * x], 3.0),
    "bilinear of a long denominator": lambda m, x: m.bilinear([x], A * 3.0),
    "freqz": lambda m, x: m.freqz(B * x, A, 16),
    "freqz of a long filter": lambda m, x: m.freqz(X * x, worN=16, whole=True),
    "freqz of a short filter": lambda m, x: m.freqz(B * x, 2.0, worN=16, whole=True),
    "freqz with the end": lambda m, x: m.freqz(B * x, A, worN=16, include_nyquist=True),
    "freqz at frequencies": lambda m, x: m.freqz(B * x, A, [0.3, 1.0], fs=7.0),
    "freqz of rows": lambda m, x: m.freqz((IMAGE * x)[..., None], A[:, None, None], 5),
    "freqz_sos": lambda m, x: m.freqz_sos(np.array([[*(B * 2), *A], [*B[::-1], *A]]) * np.array([x, 1, 1, 1, 1, 1]), 8),
    "sosfreqz": lambda m, x: m.sosfreqz(np.array([[*(B * 2), *A]]) * np.array([x, 1, 1, 1, 1, 1]), 8, whole=True),
    "freqz_zpk": lambda m, x: m.freqz_zpk(Z * x, P, 2.0, 8),
    "freqz_zpk at frequencies": lambda m, x: m.freqz_zpk(Z, P, x, [0.3, 1.0], fs=5.0),
    "freqs": lambda m, x: m.freqs(B * x, A + x, [0.3, 1.0, 9.0]),
    "freqs at frequencies of its own": lambda m, x: m.freqs(B * x, A + x, 7),
    "freqs_zpk": lambda m, x: m.freqs_zpk(Z * x, P - 1, x, [0.3, 1.0, 9.0]),
    "freqs_zpk at frequencies of its own": lambda m, x: m.freqs_zpk([], P - 1, x, 7),
    "group_delay": lambda m, x: m.group_delay((B * x, A + x), 8),
    "group_delay at frequencies": lambda m, x: m.group_delay((B, np.array([1.0]) * x), [0.3, 1.0], fs=5.0),
    "medfilt": lambda m, x: m.medfilt(X * x, 5),
    "medfilt of an image": lambda m, x: m.medfilt(IMAGE * x, [3, 5]),
    "medfilt2d": lambda m, x: m.medfilt2d(IMAGE * x, [3, 1]),
    "wiener": lambda m, x: m.wiener(X * np.exp(x * X), 5),
    "wiener of an image": lambda m, x: m.wiener(IMAGE * np.exp(x * IMAGE), (3, 5), 0.3 * x),
    "lombscargle": lambda m, x: m.lombscargle(TIMES, X * np.exp(x * X), np.array([0.3, 1.0, 2.2])),
    "lombscargle, normalized": lambda m, x: m.lombscargle(TIMES * x, X, [0.3, 1.0], normalize=True, floating_mean=True),
    "lombscargle, amplitudes": lambda m, x: m.lombscargle(TIMES, X, [x, 2.0], normalize="amplitude", weights=TIMES),
    "lombscargle of even times": lambda m, x: m.lombscargle(np.arange(24.0), X * x, [np.pi / 4, np.pi / 2 * x]),
    "lombscargle at zero": lambda m, x: m.lombscargle(TIMES, X * x, np.array([0.0])),
    "chirp": lambda m, x: m.chirp(TIMES, 1.0, 6.0, 2.0 * x, phi=x),
    "chirp, quadratic": lambda m, x: m.chirp(0.4 * TIMES * x, x, 6.0, 2.0, "quadratic"),
    "chirp, quadratic from the end": lambda m, x: m.chirp(TIMES, x, 6.0, 2.0, "quadratic", vertex_zero=False),
    "chirp, logarithmic": lambda m, x: m.chirp(TIMES, x, 6.0, 2.0, "logarithmic", complex=True),
    "chirp, logarithmic, of one frequency": lambda m, x: m.chirp(TIMES, 0.9, 6.0, x, "logarithmic"),
    "chirp, hyperbolic": lambda m, x: m.chirp(TIMES, 2.0, 6.0, x, "hyperbolic"),
    "chirp, hyperbolic, of one frequency": lambda m, x: m.chirp(TIMES, x, 6.0, 0.9, "hyperbolic"),
    "sawtooth": lambda m, x: m.sawtooth(TIMES * x),
    "sawtooth of any width": lambda m, x: m.sawtooth(TIMES, np.linspace(-0.1, 1.1, 24) * x),
    "square": lambda m, x: m.square(TIMES * x, 0.3),
    "gausspulse": lambda m, x: m.gausspulse(TIMES, 0.4 * x, 0.5 * x, -6 * x, retquad=True, retenv=True),
    "gausspulse's end": lambda m, x: m.gausspulse("cutoff", 3.0 * x, tpr=-50 * x),
}


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.filterwarnings("ignore:Badly conditioned")
def test_forms_responses_and_waves_are_scipys_under_each_transform(name):
    f = FORMS[name]
    x = np.float64(0.9)
    wanted = f(signal, x)
    same(fad.vjp(lambda x: f(ours, x), x)[0], wanted, rtol=1e-8)
    run = fad.jit(lambda x: f(ours, x))
    for v in (x, np.float64(0.7)):
        same(run(v), f(signal, v), rtol=1e-8)
    batched = fad.vmap(lambda x: f(ours, x))(np.array([x, x + 0.05]))
    for a, b in zip(tree.leaves(batched), tree.leaves(wanted), strict=True):
        if np.ndim(a) > np.ndim(b):
            np.testing.assert_allclose(a[0], b, rtol=1e-8, atol=1e-11)


KINKED = ("square", "gausspulse's end")


@pytest.mark.parametrize("name", [n for n in FORMS if n not in KINKED])
def test_forms_responses_and_waves_have_derivatives_to_second_order(name):
    f = FORMS[name]
    places = [k for k, v in enumerate(tree.leaves(f(signal, np.float64(0.9)))) if np.result_type(v).kind in "fc"]

    def parts(x):
        leaves = tree.leaves(f(ours, x))
        return [np.nan_to_num(g(leaves[k])) for k in places for g in (np.real, np.imag)]

    check_grads(parts, (0.9,), order=2)


def test_a_singular_group_delay_is_zero_and_warns():
    with pytest.warns(UserWarning, match="singular"):
        delay = fad.vjp(lambda b: ours.group_delay((b, 1.0), [0.0, 1.0])[1], np.array([1.0, -1.0]))[0]
    np.testing.assert_allclose(delay, [0.0, 0.5])


def test_a_spectrum_does_not_depend_on_the_phase_from_which_waves_are_measured():
    def power(y):  # at even times the phase is that of rounding
        return np.sum(signal.lombscargle(np.arange(24.0), y, np.array([np.pi / 4, np.pi / 2])))

    np.testing.assert_allclose(fad.grad(power)(X) @ X, 2 * power(X), rtol=1e-10)
    step = lambda w: signal.lombscargle(np.arange(24.0), X, np.array([w]))[()]
    slope = fad.grad(lambda w: ours.lombscargle(np.arange(24.0), X, np.stack([w])))(np.pi / 4)
    assert slope == pytest.approx((step(np.pi / 4 + 1e-6) - step(np.pi / 4 - 1e-6)) / 2e-6, rel=1e-5)


# --- peaks ----------------------------------------------------------------------------------------------------------

SEARCHES = {
    "all": {},
    "high": {"height": 0.5},
    "between": {"height": (0.2, 1.5), "threshold": 0.001},
    "apart": {"distance": 9},
    "prominent": {"prominence": 0.4, "wlen": 31},
    "wide": {"width": 2, "rel_height": 0.7},
    "flat": {"plateau_size": 1},
    "everything": {
        "height": -9.0, "threshold": 0.0, "distance": 2, "prominence": 0.1, "width": 0.5, "plateau_size": (1, 5),
    },
}  # fmt: skip


@pytest.mark.parametrize("name", SEARCHES)
def test_peaks_and_their_properties_are_scipys_and_follow_the_signal(name):
    f = lambda m, x: m.find_peaks(x, **SEARCHES[name])
    flat = np.round(WAVE, 1)
    for x in (WAVE, flat):
        peaks, found = fad.vjp(lambda x: f(ours, x), x)[0]
        wanted, properties = f(signal, x)
        np.testing.assert_array_equal(peaks, wanted)
        assert list(found) == list(properties)
        for key, value in properties.items():
            np.testing.assert_allclose(found[key], value, rtol=1e-12, atol=1e-14)
            assert np.asarray(found[key]).dtype.kind == value.dtype.kind
    run = fad.jit(lambda x: f(ours, x))
    for x in (WAVE, WAVE[::-1].copy(), 2.0 * WAVE):
        same(run(x), f(signal, x))
    t = np.cos(np.arange(120.0))
    values = lambda x: [v for v in f(ours, x)[1].values() if np.result_type(v).kind == "f"]
    if values(WAVE):
        slopes = fad.jvp(values, (WAVE,), (t,))[1]
        up, down = values(WAVE + 1e-6 * t), values(WAVE - 1e-6 * t)
        for slope, a, b in zip(slopes, up, down, strict=True):
            np.testing.assert_allclose(slope, (a - b) / 2e-6, rtol=1e-5, atol=1e-7)
        check_grads(values, (WAVE,), order=1)


def test_conditions_of_a_search_may_be_traced_and_have_no_derivative():
    f = lambda x, h, d: np.sum(signal.find_peaks(x, height=(h, 9.0), distance=d)[1]["peak_heights"])
    assert fad.grad(f, (1, 2))(WAVE, 0.3, 4.0) == (0.0, 0.0)
    np.testing.assert_allclose(fad.grad(f)(WAVE, 0.3, 4.0) @ WAVE, f(WAVE, 0.3, 4.0))
    run = fad.jit(f)
    for h in (0.3, 0.9, 0.3):
        assert run(WAVE, h, 4.0) == pytest.approx(f(WAVE, h, 4.0))


def test_prominences_and_widths_of_given_peaks_are_scipys():
    peaks = signal.find_peaks(WAVE)[0]
    same(fad.vjp(lambda x: ours.peak_prominences(x, peaks), WAVE)[0], signal.peak_prominences(WAVE, peaks))
    same(fad.vjp(lambda x: ours.peak_widths(x, peaks, 0.3), WAVE)[0], signal.peak_widths(WAVE, peaks, 0.3))
    data = signal.peak_prominences(WAVE, peaks, 21)
    same(fad.vjp(lambda x: ours.peak_widths(x, peaks, 0.9, data), WAVE)[0], signal.peak_widths(WAVE, peaks, 0.9, data))


def test_extremes_among_neighbours_are_scipys():
    for order, mode in itertools.product((1, 3), ("clip", "wrap")):
        for f in (
            lambda m, x, o=order, k=mode: m.argrelextrema(x, np.greater_equal, order=o, mode=k),
            lambda m, x, o=order, k=mode: m.argrelmax(x, order=o, mode=k),
            lambda m, x, o=order, k=mode: m.argrelmin(x.reshape(12, 10), axis=1, order=o, mode=k),
        ):
            same(fad.vjp(lambda x, f=f: f(ours, x), WAVE)[0], f(signal, WAVE))
            run = fad.jit(lambda x, f=f: f(ours, x))
            for x in (WAVE, WAVE[::-1]):
                same(run(x), f(signal, x))


def test_programs_with_scipys_own_names_run():
    def loss(w):
        sos = signal.butter(4, w, output="sos")
        y = signal.sosfiltfilt(sos, WAVE)
        peaks, found = signal.find_peaks(y, prominence=0.1)
        return np.sum(found["prominences"]) + np.sum(y[peaks]) + np.sum(np.abs(signal.freqz_sos(sos, 8)[1]))

    step = (loss(0.3 + 1e-6) - loss(0.3 - 1e-6)) / 2e-6
    assert fad.grad(loss)(0.3) == pytest.approx(step, rel=1e-4)
    assert fad.jit(loss)(0.3) == pytest.approx(loss(0.3), rel=1e-9)
