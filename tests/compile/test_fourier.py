"""Fourier transforms as native code: NumPy's values for every kind and length, alone and within loops."""

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from natively import compiled, native

import fad

LENGTHS = [*range(1, 10), 11, 13, 16, 26, 30, 49, 60, 64, 100, 121, 128, 1000]
X = np.random.default_rng(5).normal(size=(2, 3, 1000)) @ np.diag(1.0 + np.arange(1000.0) / 1000)
KINDS = {
    "fft": lambda z, n: np.fft.fft(z),
    "ifft": lambda z, n: np.fft.ifft(z),
    "fft, ortho": lambda z, n: np.fft.fft(z, norm="ortho"),
    "fft of real numbers": lambda z, n: np.fft.fft(z.real),
    "rfft": lambda z, n: np.fft.rfft(z.real),
    "rfft, forward": lambda z, n: np.fft.rfft(z.real, norm="forward"),
    "irfft": lambda z, n: np.fft.irfft(z[..., : n // 2 + 1], n),
    "irfft, ortho": lambda z, n: np.fft.irfft(z[..., : n // 2 + 1], n, norm="ortho"),
    "ihfft": lambda z, n: np.fft.ihfft(z.real),
}


def signal(n, *lead):
    x = X.reshape(6, 1000)
    z = x[:3, :n] + 1j * x[3:, :n]
    return z[: lead[0]] if lead else z[0]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("dtype", [np.complex128, np.complex64])
def test_values_are_those_of_numpy(kind, dtype):
    tolerance = 1e-14 if dtype is np.complex128 else 5e-6
    for k, n in enumerate(LENGTHS if dtype is np.complex128 else LENGTHS[::3]):
        f = lambda z, n=n: KINDS[kind](z, n)
        z = (signal(n, 3) if k % 2 else signal(n)).astype(dtype)
        got, wanted = native(f, z), f(z)
        assert (got.shape, got.dtype) == (wanted.shape, wanted.dtype)
        np.testing.assert_allclose(got, wanted, rtol=0, atol=tolerance * np.abs(wanted).max())


@pytest.mark.parametrize("kind", KINDS)
def test_gradients_are_those_without_jit(kind):
    for n in (1, 2, 5, 6, 16):
        parts = np.stack([signal(n).real, signal(n).imag])
        weights = np.cos(np.arange(n))

        def loss(parts, n=n, weights=weights):
            y = KINDS[kind](parts[0] + 1j * parts[1], n)
            return np.sum((y.real**2 + y.imag) * weights[: y.size])

        g = fad.grad(loss)
        np.testing.assert_allclose(native(g, parts), g(parts), rtol=1e-12, atol=1e-12 * n)


@pytest.mark.parametrize("shape", [(2000, 50), (256, 512), (100, 1000)])
def test_large_transforms_along_both_axes_are_native(shape):
    z = np.random.default_rng(6).normal(size=(2, *shape)) @ np.diag(1.0 + np.arange(shape[1]) / shape[1])
    for f in (lambda z: np.fft.fft2(z[0] + 1j * z[1]), lambda z: np.fft.ifft(z[0] + 1j * z[1], axis=0)):
        np.testing.assert_allclose(native(f, z), f(z), rtol=0, atol=1e-14 * np.abs(f(z)).max())


@pytest.mark.parametrize("axes", [(0,), (1,), (0, 1), (2, 0), (0, 1, 2)])
def test_transforms_along_any_axes_are_those_of_numpy(axes):
    z = X[:, :, :10] + 1j * X[:, :, 10:20]
    for f in (np.fft.fftn, np.fft.ifftn):
        program = lambda z, f=f: f(z, axes=axes)
        np.testing.assert_allclose(native(program, z), program(z), rtol=1e-13, atol=1e-13)
    for program in (lambda z: np.fft.rfft(z.real, axis=axes[0]), lambda z: np.fft.irfft(z, axis=axes[0])):
        np.testing.assert_allclose(native(program, z), program(z), rtol=1e-13, atol=1e-13)


def test_the_ends_of_a_real_spectrum_are_real():
    for n in (2, 6, 10, 64, 100):
        y = native(np.fft.rfft, signal(n).real)
        assert (y[0].imag, y[-1].imag) == (0.0, 0.0)


def test_imaginary_parts_of_real_frequencies_count_nothing():
    z = signal(9) + 5j
    z[[0, -1]] = np.nan * 1j + z[[0, -1]].real
    f = lambda z: np.fft.irfft(z)
    np.testing.assert_allclose(native(f, z), f(z), rtol=1e-13)


def test_lengths_with_large_prime_factors_are_left_to_numpy():
    for n in (17, 97, 2 * 101):
        fast = compiled(np.fft.fft, signal(n))
        assert "calls of NumPy" in fast.explain()
        np.testing.assert_allclose(fast(signal(n)), np.fft.fft(signal(n)), rtol=1e-13)


@pytest.mark.parametrize("n", [15, 64])
def test_spectral_methods_in_loops_are_native(n):
    k = 2 * np.pi * np.fft.fftfreq(n)
    wave = np.exp(-0.005j * k**2)
    real = np.exp(-0.01 * k[: n // 2 + 1] ** 2)

    def schroedinger(a):
        u = a * np.exp(-(np.linspace(-5, 5, n) ** 2)) + 0j
        for _ in range(150):
            u = np.fft.ifft(wave * np.fft.fft(u))
            u = u * np.exp(0.01j * np.abs(u) ** 2)
        return (np.abs(u) ** 4).sum()

    def burgers(a):
        u = a * np.exp(-(np.linspace(-5, 5, n) ** 2))
        for _ in range(150):
            u = np.fft.irfft(real * (np.fft.rfft(u) - 0.005j * k[: n // 2 + 1] * np.fft.rfft(u * u)), n)
        return (u**4).sum()

    for f in (schroedinger, burgers):
        np.testing.assert_allclose(native(f, 1.3), f(1.3), rtol=1e-11)
        fast = compiled(fad.grad(f), 1.3)
        assert "captured: 150 steps" in fast.explain()
        assert "calls of NumPy" not in fast.explain(), fast.explain()
        np.testing.assert_allclose(fast(1.3), (f(1.3 + 1e-6) - f(1.3 - 1e-6)) / 2e-6, rtol=1e-7)
