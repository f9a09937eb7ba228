"""Fourier transforms: derivatives that theory gives in closed form, and NumPy's own errors."""

import numpy as np
import pytest

import fad

RNG = np.random.default_rng(0)


@pytest.mark.parametrize("n", [1, 2, 7, 8])
@pytest.mark.parametrize("norm", [None, "ortho", "forward"])
def test_the_gradient_of_a_signals_energy_in_the_spectrum_is_parsevals(n, norm):
    x = RNG.standard_normal(n)
    scale = {None: n, "ortho": 1, "forward": 1 / n}[norm]
    energy = lambda x: np.sum(np.abs(np.fft.fft(x, norm=norm)) ** 2)
    np.testing.assert_allclose(fad.grad(energy)(x), 2 * scale * x, atol=1e-13)
    np.testing.assert_allclose(fad.hessian(energy)(x), 2 * scale * np.eye(n), atol=1e-12)


@pytest.mark.parametrize(("n", "m"), [(5, 5), (6, 6), (6, 9), (9, 4)])
def test_real_transforms_there_and_back_have_the_identity_as_jacobian(n, m):
    x = RNG.standard_normal(n)
    there_and_back = lambda x: np.fft.irfft(np.fft.rfft(x, m), m)
    np.testing.assert_allclose(fad.jacrev(there_and_back)(x), np.eye(m, n), atol=1e-14)
    np.testing.assert_allclose(fad.jacfwd(there_and_back)(x), np.eye(m, n), atol=1e-14)
    hermitian = lambda x: np.fft.hfft(np.fft.ihfft(x), n)
    np.testing.assert_allclose(fad.jacrev(hermitian)(x), np.eye(n), atol=1e-14)


def test_a_convolution_by_the_spectrum_has_the_gradient_of_a_convolution():
    x, k = RNG.standard_normal(8), RNG.standard_normal(8)
    by_spectrum = lambda x: np.sum(np.cos(np.fft.ifft(np.fft.fft(x) * np.fft.fft(k)).real))
    circulant = np.array([[k[(i - j) % 8] for j in range(8)] for i in range(8)])
    np.testing.assert_allclose(fad.grad(by_spectrum)(x), -circulant.T @ np.sin(circulant @ x), atol=1e-13)


def test_a_frequency_grid_is_differentiable_in_its_spacing():
    g = fad.grad(lambda d: np.sum(np.fft.rfftfreq(5, d)))(0.5)
    np.testing.assert_allclose(g, -np.sum(np.fft.rfftfreq(5, 0.5)) / 0.5)


def test_single_precision_stays_single():
    x = np.ones(4, "f4")
    assert fad.grad(lambda x: np.sum(np.abs(np.fft.rfft(x))))(x).dtype == "f4"


def test_bad_arguments_raise_numpys_errors():
    x = np.ones((2, 3))
    with pytest.raises(ValueError, match="Invalid norm"):
        fad.jvp(lambda x: np.fft.fft(x, norm="no"), (x,), (x,))
    with pytest.raises(ValueError, match="data points"):
        fad.jvp(lambda x: np.fft.irfft(x, 0), (x,), (x,))
    with pytest.raises(TypeError, match="real input"):
        fad.jvp(np.fft.rfft, (x + 0j,), (x + 0j,))
    with pytest.raises(np.exceptions.AxisError):
        fad.jvp(lambda x: np.fft.fft(x, axis=2), (x,), (x,))


@pytest.mark.parametrize("name", ["rfft", "rfftn", "ihfft"])
@pytest.mark.parametrize("bad", [{"axis": 5}, {"norm": "no"}])
def test_a_real_transform_of_complex_input_names_a_wrong_axis_or_norm_first_as_numpy_does(name, bad):
    bad = {"axes": (bad["axis"],)} if name == "rfftn" and "axis" in bad else bad
    spectrum = lambda x: getattr(np.fft, name)(x * 1j, **bad)
    x = np.ones((2, 3))
    with pytest.raises((IndexError, ValueError)):
        spectrum(x)
    for run in (fad.jit(spectrum), lambda x: fad.jvp(spectrum, (x,), (x,))):
        with pytest.raises((IndexError, ValueError)):
            run(x)


@pytest.mark.parametrize("name", ["fft", "ifft", "rfft", "irfft", "hfft", "ihfft", "fft2", "rfft2", "irfft2"])
def test_a_compiled_transform_of_half_precision_is_numpys(name):
    transform = getattr(np.fft, name)
    x = np.array([[1.0, 2.0, -3.0, 0.5], [0.25, 1.0, 2.0, -1.0]], np.float16)
    compiled = fad.jit(transform)
    for _ in range(2):
        assert compiled(x).dtype == transform(x).dtype
        np.testing.assert_allclose(compiled(x), transform(x), rtol=2e-3, atol=2e-3)
