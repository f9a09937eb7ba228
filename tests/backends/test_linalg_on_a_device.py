"""At repeated values too, the derivatives of decompositions stay where their matrix lives."""

import numpy as np
import pytest
import standin
from standin import DeviceArray

import fad
from fad import backends

backends.register(standin)
C = np.random.default_rng(0).normal(size=(3, 3))


def by_eigh(a, c):
    w, v = np.linalg.eigh(a)
    return np.sum(c * ((v * w**3) @ v.T))


def by_svd(a, c):
    u, s, vh = np.linalg.svd(a)
    return np.sum(c * ((u * s**3) @ vh))


@pytest.mark.parametrize("f", [by_eigh, by_svd, lambda a, c: np.linalg.det(a)], ids=["eigh", "svd", "det"])
@pytest.mark.parametrize("w", [(1.0, 1.0, 1.0), (1.0, 2.0, 0.0), (0.0, 0.0, 0.0), (1.0, 2.0, 3.0)])
def test_gradients_at_repeated_values_stay_on_the_device(f, w):
    a = np.diag(w)
    found = fad.grad(f)(DeviceArray(a), DeviceArray(C))
    assert type(found) is DeviceArray
    np.testing.assert_allclose(found._a, fad.grad(f)(a, C), rtol=1e-13, atol=1e-13)
