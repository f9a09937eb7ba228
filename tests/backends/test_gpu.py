"""The contract and training on a real GPU: ``make test-gpu``, or ``pytest -m gpu``. Needs CuPy."""

import functools
import warnings

import numpy as np
import pytest
from device_contract import KNOWN, NAMES, check
from programs import OPTIMISERS, cnn, loop, mlp, model, recurrent, train

import fad
from fad import backends
from fad.errors import BackendMismatchError, BackendNotFoundError, FadError


@functools.cache
def absence():
    """Return why no GPU can be used here, or None."""
    try:
        backends.get("cupy")
    except BackendNotFoundError as error:
        return str(error).splitlines()[0]
    import cupy

    try:
        cupy.ones(1).sum().item()
    except Exception as error:  # no driver, no device, a driver too old: CuPy says it in many ways
        return f"CuPy is installed, but finds no GPU that works: {error}"
    return None


pytestmark = [pytest.mark.gpu, pytest.mark.skipif(absence() is not None, reason=str(absence()))]


@pytest.fixture
def cupy():
    return backends.get("cupy")


@pytest.mark.parametrize("name", NAMES)
def test_an_operation_and_its_derivatives_stay_on_the_gpu(name, cupy):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        if name not in KNOWN:
            check(name, cupy)
            return
        try:
            check(name, cupy)
        except Exception:
            return
    pytest.fail(f"{name} works now: take it off the list of known differences")


@pytest.mark.parametrize("program", [mlp, cnn, loop, recurrent])
def test_a_gradient_on_the_gpu_is_that_of_the_host(program, cupy):
    loss, params, rest = program(np.random.default_rng(0))
    value, grads = fad.value_and_grad(loss)(params, *rest)
    device_value, device_grads = fad.value_and_grad(loss)(*fad.device_put((params, *rest), "cupy"))
    np.testing.assert_allclose(fad.device_get(device_value), value, rtol=1e-10)
    for d, h in zip(fad.tree.leaves(device_grads), fad.tree.leaves(grads), strict=True):
        assert type(d) is cupy.array_type
        np.testing.assert_allclose(fad.device_get(d), h, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("name", OPTIMISERS)
def test_training_on_the_gpu_gives_the_numbers_of_the_host(name, cupy):
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(8, 4)), rng.integers(0, 3, 8)
    host, device = model(), model().to("cupy")
    train(host, x, labels, OPTIMISERS[name])
    train(device, *fad.device_put((x, labels), "cupy"), OPTIMISERS[name])
    for (key, h), (_, d) in zip(host.state_dict().items(), device.state_dict().items(), strict=True):
        np.testing.assert_allclose(fad.device_get(d), h, rtol=1e-7, atol=1e-10, err_msg=key)


def test_random_numbers_are_those_of_the_host(cupy):
    def draw():
        a, b = fad.random.split(fad.random.key(3))
        return fad.random.bits(a, (64,)), fad.random.uniform(b, (64,), np.float32)

    host = draw()
    with backends.use("cupy"):
        device = draw()
    for d, h in zip(device, host, strict=True):
        assert type(d) is cupy.array_type
        np.testing.assert_array_equal(fad.device_get(d), h)


def test_arrays_of_host_and_gpu_in_one_operation_are_refused():
    x = fad.device_put(np.ones(3), "cupy")
    for mixture in (lambda x: np.sum(x * np.ones(3)), lambda x: np.sum(np.where(np.ones(3) > 0, x, 0.0))):
        with pytest.raises(BackendMismatchError, match="cupy and numpy"):
            fad.grad(mixture)(x)


def test_a_function_of_cupy_called_on_a_traced_value_is_an_error():
    import cupy as cp

    with pytest.raises((FadError, TypeError)):
        fad.grad(lambda x: cp.sin(x).sum())(fad.device_put(np.ones(3), "cupy"))
