"""What of fad.scipy is written in functions that a device answers stays there; what SciPy itself runs says so."""

import numpy as np
import pytest
import standin
from device_contract import check

import fad
from fad import backends
from fad.errors import BackendFunctionError

pytest.importorskip("scipy")

import fad.scipy.fft
import fad.scipy.integrate
import fad.scipy.interpolate
import fad.scipy.ndimage
import fad.scipy.signal
import fad.scipy.sparse
import fad.scipy.spatial

backends.register(standin)

STAYS = [
    "scipy.convolution", "scipy.trigonometric_transform", "scipy.spline_coefficients", "scipy.banded_solve",
    "scipy.fft.fft", "scipy.fft.dct", "scipy.signal.convolve2d", "scipy.signal.savgol_filter", "scipy.signal.welch",
    "scipy.signal.resample", "scipy.signal.upfirdn", "scipy.ndimage.gaussian_filter", "scipy.ndimage.laplace",
    "scipy.ndimage.shift", "scipy.spatial.distance.cdist", "scipy.spatial.distance.pdist", "scipy.interpolate.PPoly",
    "scipy.interpolate.CubicSpline", "scipy.interpolate.interp1d", "scipy.simpson",
]  # fmt: skip


# SciPy deprecates degrees that are no integers.
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", STAYS)
def test_an_operation_of_scipy_and_its_derivatives_stay_on_the_device(name):
    with np.errstate(all="ignore"):
        assert check(name, standin)


HOST = {
    "a recursive filter": lambda x: fad.scipy.signal.lfilter([1.0], [1.0, -0.5], x),
    "the product with a sparse matrix": lambda x: fad.scipy.sparse.csr_array(np.eye(4)) @ x,
}


@pytest.mark.parametrize("what", HOST)
def test_what_scipy_runs_on_the_host_says_so(what):
    x = standin.from_host(np.ones(4))
    with pytest.raises((BackendFunctionError, backends.BackendMismatchError)):
        fad.vjp(HOST[what], x)
