"""scipy.fftpack: SciPy's values, and derivatives that are transposes, where programs name it as SciPy does."""

from __future__ import annotations

import numpy as np
import pytest

import fad

sp = pytest.importorskip("scipy.fftpack")

NUMBERS = np.random.default_rng(3)
CALLS = {
    "fft": lambda x: sp.fft(x, 7),
    "ifft": sp.ifft,
    "rfft": sp.rfft,
    "rfft of a length": lambda x: sp.rfft(x, 8),
    "irfft": sp.irfft,
    "irfft of a length": lambda x: sp.irfft(x, 3),
    "dct": lambda x: sp.dct(x, 3, norm="ortho"),
    "idct": sp.idct,
    "idct of type 3": lambda x: sp.idct(x, 3, 4),
    "dst": lambda x: sp.dst(x, 1),
    "idst": lambda x: sp.idst(x, type=2, norm="ortho"),
    "fftn": lambda x: sp.fftn(x, shape=[4]),
    "dctn": lambda x: sp.dctn(x, 2, (4,)),
    "idstn": lambda x: sp.idstn(x, 3),
    "diff": lambda x: sp.diff(x, 2, period=1.5),
    "the integral": lambda x: sp.diff(x, -1),
    "tilbert": lambda x: sp.tilbert(x, 0.7),
    "itilbert": lambda x: sp.itilbert(x, h=0.7, period=2.0),
    "shift": lambda x: sp.shift(x, 0.3),
    "hilbert": sp.hilbert,
    "ihilbert": sp.ihilbert,
}


@pytest.mark.parametrize("n", [1, 2, 5, 6])
@pytest.mark.parametrize("name", CALLS)
def test_a_transform_is_a_linear_map_with_scipys_matrix(name, n):
    f = CALLS[name]
    if name in ("fftn", "dctn") and n < 4:
        n += 4
    x, matrix = NUMBERS.standard_normal(n), np.stack([f(e) for e in np.eye(n)])
    value, slope = fad.jvp(f, (x,), (np.ones(n),))
    np.testing.assert_allclose(value, f(x), atol=1e-12)
    assert value.dtype == f(x).dtype
    np.testing.assert_allclose(slope, f(np.ones(n)), atol=1e-12)
    value, pullback = fad.vjp(f, x)
    ct = NUMBERS.standard_normal(value.shape).astype(value.dtype)
    np.testing.assert_allclose(pullback(ct)[0], (matrix @ ct).real, atol=1e-12)


def test_precisions_axes_and_complex_numbers_are_scipys():
    x = NUMBERS.standard_normal((4, 6))
    for f in (
        lambda x: sp.rfft(x.astype(np.float32), axis=0),
        lambda x: sp.irfft(x, 5, axis=0),
        lambda x: sp.fft2(x, shape=(3, 7)),
        lambda x: sp.dstn(x, axes=1),
        lambda x: sp.diff(x[0].astype(np.float32)),
        lambda x: sp.tilbert(x[0] + 1j * x[1], 0.5),
    ):
        value, _ = fad.vjp(f, x)
        assert value.dtype == f(x).dtype
        np.testing.assert_allclose(value, f(x), atol=1e-6 if value.dtype.itemsize < 8 else 1e-12)
    with pytest.raises(TypeError, match="real sequence"):
        fad.vjp(lambda x: sp.rfft(x * 1j), x)


def test_transforms_are_compiled():
    def f(x):
        return np.sum(sp.irfft(sp.rfft(x) * np.arange(8.0)) ** 3 + sp.hilbert(x) ** 2)

    x = NUMBERS.standard_normal(8)
    gradient = fad.jit(fad.grad(f))
    for _ in range(3):
        np.testing.assert_allclose(gradient(x), fad.grad(f)(x), rtol=1e-10)
    assert gradient.cache_info().hits > 0
