"""Sparse derivatives of arrays of a device: the places are found once, the entries stay where the arrays live."""

import numpy as np
import pytest
import standin
from standin import DeviceArray

pytest.importorskip("scipy")

import fad
from fad import backends

backends.register(standin)
X = np.linspace(0.1, 1.0, 8)
A = np.eye(8, k=1) - np.eye(8)


def _arrow(x):
    return np.concatenate([np.sum(x**2)[None], x[1:] ** 3 * x[0]])


def _product(x):
    return (DeviceArray(A) if type(fad.stop_gradient(x)) is DeviceArray else A) @ np.sin(x)


@pytest.mark.parametrize("f", [_arrow, _product, lambda x: np.exp(x) * np.roll(x, 1)], ids=["arrow", "product", "roll"])
def test_a_jacobian_of_device_arrays_has_the_same_places_and_its_entries_on_the_device(f):
    found, host = fad.sparse.jacobian(f)(DeviceArray(X)), fad.sparse.jacobian(f)(X)
    assert type(found.data) is DeviceArray
    assert found.nnz == host.nnz
    np.testing.assert_allclose(found.toarray()._a, host.toarray(), rtol=1e-13)


def test_a_hessian_of_device_arrays_stays_on_the_device():
    def f(x):
        return np.sum(x[1:] * x[:-1] ** 2)

    found = fad.sparse.hessian(f)(DeviceArray(X))
    assert type(found.data) is DeviceArray
    np.testing.assert_allclose(found.toarray()._a, fad.hessian(f)(X), rtol=1e-13)
