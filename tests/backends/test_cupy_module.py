"""What fad/backends/cupy.py makes of CuPy, tried on a module that has CuPy's names and limits over the stand-in."""

import fake_cupy
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from standin import DeviceArray, HostCopyError, no_copies

from fad.errors import BackendNotFoundError


@pytest.fixture
def backend():
    return fake_cupy.backend()


@pytest.mark.parametrize(
    "dtype", ["float32", "float64", "complex64", "complex128", "int8", "uint8", "int32", "int64", "bool"]
)
@pytest.mark.parametrize("index", [np.array([0, 2, 0]), (np.array([0, 2, 0]), slice(None)), (0, np.array([1, 1, 0]))])
def test_values_are_added_at_repeated_places_in_every_dtype(backend, dtype, index):
    target = np.arange(8).reshape(4, 2).astype(dtype)
    values = (-3 * np.ones(np.shape(target[index]))).astype("int8").astype(dtype)
    values = values + 2j if values.dtype.kind == "c" else values
    placed = DeviceArray(target.copy())
    backend.scatter_add(placed, index, DeviceArray(values))
    np.add.at(target, index, values)
    np.testing.assert_array_equal(placed._a, target)


def test_a_cupy_that_finds_no_gpu_is_one_error_that_says_what_is_missing(monkeypatch):
    def refuse():
        raise fake_cupy._RuntimeError("cudaErrorInsufficientDriver: CUDA driver version is insufficient")

    monkeypatch.setattr(fake_cupy.MODULES["cupy"].cuda.runtime, "getDeviceCount", refuse)
    with pytest.raises(BackendNotFoundError, match=r"finds no GPU.*NVIDIA GPU and a driver.*InsufficientDriver"):
        fake_cupy.loaded()


@pytest.mark.parametrize("lower", [True, False])
@pytest.mark.parametrize("complex", [False, True])
def test_eigenvectors_of_a_pair_of_matrices_are_those_of_scipy(backend, lower, complex):
    rng = np.random.default_rng(0)
    x, y = (rng.normal(size=(4, 4)) + complex * 1j * rng.normal(size=(4, 4)) for _ in range(2))
    a, b = x + x.conj().T, y @ y.conj().T + np.eye(4)
    half = np.tril if lower else np.triu  # the other triangle is not read
    w, v = backend.scipy_function("linalg.eigh")(DeviceArray(half(a)), DeviceArray(half(b)), lower=lower)
    expected, _ = scipy.linalg.eigh(a, b)
    np.testing.assert_allclose(w._a, expected, rtol=1e-12)
    np.testing.assert_allclose(a @ v._a, b @ v._a * w._a, atol=1e-12)
    np.testing.assert_allclose(v._a.conj().T @ b @ v._a, np.eye(4), atol=1e-12)


def test_a_timer_reads_events_of_the_stream_and_waits_when_it_is_read_alone(backend):
    with no_copies():
        read = backend.timer()()
    assert read() == pytest.approx(1e-3)
    with no_copies(), pytest.raises(HostCopyError):
        read()


def test_functions_of_scipy_run_under_the_names_and_with_the_limits_of_cupy(backend):
    x = np.array([0.2, 0.7])
    a = np.random.default_rng(0).normal(size=(4, 3))
    calls = {
        "special.lambertw": ((DeviceArray(x), 0, 1e-8), scipy.special.lambertw(x)),
        "special.polygamma": ((1, DeviceArray(x)), scipy.special.polygamma(1, x)),
        "special.erf": ((DeviceArray(x),), scipy.special.erf(x)),
        "linalg.expm": ((DeviceArray(a[:3]),), scipy.linalg.expm(a[:3])),
    }
    for name, (args, expected) in calls.items():
        found = backend.scipy_function(name)(*args)
        np.testing.assert_allclose(found._a, expected, rtol=1e-12)
        assert found.dtype == expected.dtype
    rows, low, up = backend.scipy_function("linalg.lu")(DeviceArray(a), p_indices=True)
    np.testing.assert_allclose((low @ up)[rows]._a, a)
    assert backend.scipy_function("special.airy") is None
    assert "erf" in backend.list_offered("scipy", "special")
    assert "airy" not in backend.list_offered("scipy", "special")
    assert "sin" in backend.list_offered("numpy", "")
