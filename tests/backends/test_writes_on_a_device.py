"""Arrays of a device that change: views, and arrays that a function makes, with the numbers of the host."""

import types

import numpy as np
import pytest
import standin
from refilled_on_a_device import PROGRAMS

import fad
from fad import backends
from fad.errors import BackendMismatchError, TracerConversionError
from fad.introspect.reachable import reach

backends.register(standin)
A = np.array([0.3, 1.2, -0.7, 2.2, 0.9])
TRANSFORMS = {
    "grad": lambda f: fad.value_and_grad(f),
    "jit of grad": lambda f: fad.jit(fad.value_and_grad(f)),
    "jvp": lambda f: lambda x: fad.jvp(f, (x,), (x * 0.5,)),
    "hessian": lambda f: fad.hessian(f),
    "vmap": lambda f: lambda x: fad.vmap(f)(np.stack([x, x * 2])),
    "vmap of grad": lambda f: lambda x: fad.vmap(fad.grad(f))(np.stack([x, x * 2])),
    "jit": lambda f: fad.jit(f),
}


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__)
def test_a_program_that_writes_on_a_device_gives_the_numbers_of_the_host(program, transform):
    wanted = TRANSFORMS[transform](program)(A.copy())
    with backends.use("standin"):
        run = TRANSFORMS[transform](program)
        for _ in range(3):
            found = run(fad.device_put(A, "standin"))
    for y, x in zip(fad.tree.leaves(found), fad.tree.leaves(wanted), strict=True):
        assert type(y) is standin.DeviceArray
        np.testing.assert_allclose(fad.device_get(y), x, rtol=1e-12, atol=1e-13)
        assert y.dtype == x.dtype


def test_an_argument_of_a_device_that_is_not_differentiated_stays_as_it_was():
    def f(x, z):
        z += 0.5
        y = np.ones(5)
        y[1:] = z[1:] * x[1:]
        return np.sum(y * x)

    z = fad.device_put(np.arange(5.0), "standin")
    with backends.use("standin"):
        found = fad.grad(f)(fad.device_put(A, "standin"), z)
    np.testing.assert_allclose(fad.device_get(found), fad.grad(f)(A, np.arange(5.0)))
    np.testing.assert_array_equal(fad.device_get(z), np.arange(5.0))


def test_a_run_that_may_have_changed_arrays_of_a_device_is_not_repeated():
    runs = []

    def write(x, z):
        runs.append(1)
        z += 0.5
        z[0] = x[0]
        return np.sum(z)

    hidden = types.ModuleType("hidden")  # in which no look at the code finds the function
    hidden.write = write
    z = fad.device_put(np.zeros(5), "standin")
    with pytest.raises(TracerConversionError):
        fad.grad(lambda x, z: vars(hidden)["write"](x, z))(fad.device_put(A, "standin"), z)
    assert len(runs) == 1
    runs.clear()
    with backends.use("standin"):
        fad.grad(write)(fad.device_put(A, "standin"), z)
    assert len(runs) == 1


def test_the_error_of_a_mixture_says_where_the_function_makes_arrays_of_the_device():
    f = lambda x: np.sum(np.arange(5.0) * x)
    with pytest.raises(BackendMismatchError, match=r"made there where it runs in a block of fad\.backends\.use\("):
        fad.grad(f)(fad.device_put(A, "standin"))
    with backends.use("standin"):
        found = fad.grad(f)(fad.device_put(A, "standin"))
    np.testing.assert_array_equal(fad.device_get(found), np.arange(5.0))


@pytest.mark.parametrize("n", [np.float64(2), np.int64(3), np.float32(0), np.bool_(True), True, False])
def test_a_power_of_a_device_by_a_scalar_has_the_derivative_of_the_host(n):
    f = lambda x: np.sum(np.abs(x) ** n)
    wanted = fad.value_and_grad(f)(A)
    for y, x in zip(fad.value_and_grad(f)(fad.device_put(A, "standin")), wanted, strict=True):
        np.testing.assert_allclose(fad.device_get(y), x)


def test_a_power_of_a_bool_has_a_derivative():
    assert fad.grad(lambda x: True**x)(2.0) == 0.0
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(True**x))(A), np.zeros(5))


def test_what_a_device_array_is_made_of_is_not_looked_into():
    held = standin.from_host(np.arange(3.0))

    def f(x):
        return np.sum(x * held[0]) + np.mean(held)

    found = list(reach(f))
    assert any(x is held for x in found)
    assert not {getattr(x, "__module__", None) for x in found if x is not held} & {"standin", "offers"}


def test_the_code_of_cupy_is_not_read():
    outside = types.ModuleType("cupy._math.sumprod")
    exec("table = [1, 2]\ndef total(x):\n    return x.sum() + table[0]", vars(outside))
    total = outside.total

    def f(x):
        return total(x)

    assert not any(x is outside.table for x in reach(f))
