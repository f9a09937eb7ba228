"""What fad/backends/cupy.py makes of CuPy, tried on a module that has CuPy's names and limits over the stand-in."""

import fake_cupy
import numpy as np
import pytest
import scipy.linalg
import scipy.special
from standin import DeviceArray, HostCopyError, no_copies


@pytest.fixture
def backend():
    return fake_cupy.backend()


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int32", "int64"])
@pytest.mark.parametrize("index", [np.array([0, 2, 0]), (np.array([0, 2, 0]), slice(None)), (0, np.array([1, 1, 0]))])
def test_values_are_added_at_repeated_places_in_every_dtype(backend, dtype, index):
    target = np.arange(8).reshape(4, 2).astype(dtype)
    values = (-3 * np.ones(np.shape(target[index]))).astype(dtype)
    values = values + 2j if values.dtype.kind == "c" else values
    placed = DeviceArray(target.copy())
    backend.scatter_add(placed, index, DeviceArray(values))
    np.add.at(target, index, values)
    np.testing.assert_array_equal(placed._a, target)


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
    assert "erf" in backend.offered("scipy", "special")
    assert "airy" not in backend.offered("scipy", "special")
    assert "sin" in backend.offered("numpy", "")
