"""What fad/backends/cupy.py makes of CuPy's limits, tried on a module that has these limits and NumPy's arrays."""

import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest

import fad

ATOMIC = ("int32", "float16", "float32", "float64", "uint32", "uint64")


def add_at(target, index, values):
    if target.dtype.name not in ATOMIC:
        raise TypeError(f"cupy.add.at does not support {target.dtype}")
    np.add.at(target, index, values)


@pytest.fixture
def backend(monkeypatch):
    limited = SimpleNamespace(ndarray=np.ndarray, asarray=np.asarray, add=SimpleNamespace(at=add_at))
    monkeypatch.setitem(sys.modules, "cupy", limited)
    path = Path(fad.__file__).parent / "backends" / "cupy.py"
    spec = importlib.util.spec_from_file_location("cupy_backend_with_limits", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int32", "int64"])
@pytest.mark.parametrize("index", [np.array([0, 2, 0]), (np.array([0, 2, 0]), slice(None)), (0, np.array([1, 1, 0]))])
def test_values_are_added_at_repeated_places_in_every_dtype(backend, dtype, index):
    target = np.arange(8).reshape(4, 2).astype(dtype)
    values = (-3 * np.ones(np.shape(target[index]))).astype(dtype)
    values = values + 2j if values.dtype.kind == "c" else values
    expected = target.copy()
    np.add.at(expected, index, values)
    backend.scatter_add(target, index, values)
    np.testing.assert_array_equal(target, expected)
