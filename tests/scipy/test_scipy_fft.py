"""scipy.fft: the transforms' values and inverses, and derivatives that are transposes."""

from __future__ import annotations

import numpy as np
import pytest

import fad

sf = pytest.importorskip("scipy.fft")

from fad.scipy import fft as ours  # noqa: E402

X = np.random.default_rng(3).standard_normal((4, 9))
TRIGONOMETRIC = [(kind, t, norm, ortho) for kind in ("dct", "dst") for t in (1, 2, 3, 4)
                 for norm in (None, "ortho", "forward") for ortho in (None, True, False)]  # fmt: skip


@pytest.mark.parametrize(("kind", "type_", "norm", "ortho"), TRIGONOMETRIC)
def test_cosine_and_sine_transforms_are_linear_maps_with_scipys_matrix(kind, type_, norm, ortho):
    for name in (kind, f"i{kind}"):
        matrix = getattr(sf, name)(np.eye(9), type_, axis=0, norm=norm, orthogonalize=ortho)
        y, pullback = fad.vjp(lambda x, n=name: getattr(ours, n)(x, type_, norm=norm, orthogonalize=ortho), X)
        np.testing.assert_allclose(y, X @ matrix.T, atol=1e-12)
        np.testing.assert_allclose(pullback(X)[0], X @ matrix, atol=1e-12)


def test_transforms_over_several_axes_and_their_inverses():
    for name in ("dctn", "dstn"):

        def there_and_back(x, name=name):
            return getattr(ours, f"i{name}")(getattr(ours, name)(x, 3, norm="ortho"), 3, norm="ortho")

        y, pullback = fad.vjp(there_and_back, X)
        np.testing.assert_allclose(y, X, atol=1e-12)
        np.testing.assert_allclose(pullback(X)[0], X, atol=1e-12)


def test_lengths_are_cut_and_filled_up_as_scipy_does():
    for n in (5, 12):
        got = fad.vjp(lambda x, n=n: ours.dct(x, 2, n, 0), X)[0]
        np.testing.assert_allclose(got, sf.dct(X, 2, n, 0), atol=1e-12)


def test_complex_signals_and_single_precision():
    z = X + 1j * X[::-1]
    np.testing.assert_allclose(fad.vjp(ours.dst, z)[0], sf.dst(z), atol=1e-12)
    y, pullback = fad.vjp(ours.dct, X.astype(np.float32))
    assert y.dtype == pullback(y)[0].dtype == np.float32


def test_the_hankel_transform_and_its_inverse():
    for options in ({}, {"bias": 0.2}, {"offset": 0.1, "bias": -0.1}):
        y = fad.vjp(lambda a, o=options: ours.fht(a, 0.1, 0.5, **o), X)[0]
        np.testing.assert_allclose(y, sf.fht(X, 0.1, 0.5, **options), atol=1e-12)
        back, pullback = fad.vjp(lambda a, o=options: ours.ifht(ours.fht(a, 0.1, 0.5, **o), 0.1, 0.5, **o), X)
        np.testing.assert_allclose(back, X, atol=1e-10)
        np.testing.assert_allclose(pullback(X)[0], X, atol=1e-10)


def test_what_has_no_values_is_scipys_own():
    assert ours.next_fast_len is sf.next_fast_len
    assert ours.fftfreq is sf.fftfreq


BAD = {
    "a type": lambda x: ours.dct(x, 5),
    "a norm": lambda x: ours.dct(x, norm="loud"),
    "no points": lambda x: ours.dct(x, n=0),
    "a single point": lambda x: ours.dct(x[:, :1], 1),
    "an axis": lambda x: ours.dct(x, axis=2),
    "shapes": lambda x: ours.dctn(x, s=(3, 4), axes=(0,)),
}


@pytest.mark.parametrize("what", BAD)
def test_what_scipy_refuses_is_refused_with_its_kind_of_error(what):
    with pytest.raises((ValueError, RuntimeError, IndexError)) as theirs:
        BAD[what](X)
    with pytest.raises(theirs.type):
        fad.vjp(BAD[what], X)
