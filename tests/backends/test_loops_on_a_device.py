"""Python's loops over arrays of a device: eager, captured and recorded, with the numbers of the host."""

import numpy as np
import pytest
import standin

import fad
from fad import backends

backends.register(standin)


def add_up(a):
    trace = 0.0
    for i in range(len(a)):
        trace += np.tanh(a[i, i])
    return np.sum(a + trace)


def count(a):
    n, s = 0, 0.0
    for i in range(100):
        s = s + a[i % 7, 0] * i
        n += 1
    return s * n


def iterate(a):
    x = a[0, 0] * 0.1 + 0.4
    for _ in range(300):
        x = 3.2 * x * (1 - x)
    return x


def branch(a):
    s = 0.0
    for i in range(60):
        if a[i % 5, 1] > 0:
            s = s + a[i % 5, 1] ** 2
        else:
            s = s - a[i % 5, 2]
    return s


def write(a):
    b = a.copy()
    for i in range(1, 60):
        b[i % 10] = b[i % 10 - 1] * 0.5 + a[i % 10]
    return np.sum(b)


def halve(a):
    x, n = np.sum(a * a), 0
    while x > 1.0:
        x = x * 0.5
        n += 1
    return x * n


def stop(a):
    s = 0.0
    for i in range(100):
        s = s + np.abs(a[i % 4, i % 3])
        if s > 5:
            break
    return s * i


def stack(a):
    out = []
    for i in range(64):
        out.append(np.sin(a[i % 10]) * i)
    return np.sum(np.stack(out))


def pair(a):
    s = 0.0
    for i, (x, y) in enumerate(zip(a, a[::-1], strict=True)):
        s = s + np.dot(x, y) * i
    return s


def nest(a):
    s = 0.0
    for i in range(20):
        for j in range(i):
            s = s + a[i % 5, j % 5] * a[j % 5, i % 5]
    return s


def multiply(a):
    m = a * 0.0 + 1.0
    for _ in range(50):
        m = np.tanh(m @ a) * 0.9
    return np.sum(m)


LOOPS = [add_up, count, iterate, branch, write, halve, stop, stack, pair, nest, multiply]


@pytest.mark.parametrize("how", ["eager", "jit of grad", "grad of jit"])
@pytest.mark.parametrize("loop", LOOPS)
def test_a_loop_over_arrays_of_a_device_has_the_value_and_gradient_of_the_host(loop, how):
    a = np.random.default_rng(0).normal(size=(40, 40) if loop is add_up else (10, 10))
    value, gradient = fad.value_and_grad(loop)(a)
    f = fad.value_and_grad(fad.jit(loop) if how == "grad of jit" else loop)
    f = fad.jit(f) if how == "jit of grad" else f
    for _ in range(3):
        v, g = f(fad.device_put(a, "standin"))
        assert type(g) is standin.DeviceArray
        np.testing.assert_allclose(fad.device_get(v), value, rtol=1e-10)
        np.testing.assert_allclose(fad.device_get(g), gradient, rtol=1e-9, atol=1e-12)


def test_values_put_at_repeated_places_of_a_device_are_the_last_and_so_are_their_derivatives():
    def f(x, v, index):
        y = x * 1.0
        y[index] = v
        return np.sum(y**2)

    x, v, index = np.ones(5), np.array([1.0, 2.0, 3.0]), np.array([0, 2, 0])
    wanted = fad.value_and_grad(f, argnums=(0, 1))(x, v, index)
    found = fad.device_get(fad.value_and_grad(f, argnums=(0, 1))(*fad.device_put((x, v, index), "standin")))
    fad.tree.map(np.testing.assert_array_equal, found, wanted)


@pytest.mark.parametrize("bitorder", ["big", "little"])
@pytest.mark.parametrize("axis", [0, 1, None])
def test_bits_are_packed_along_an_axis_of_a_device(axis, bitorder):
    a = np.random.default_rng(0).integers(0, 3, (3, 10))
    packed = np.packbits(a, axis=axis, bitorder=bitorder)
    found = fad.numpy.packbits(fad.device_put(a, "standin"), axis=axis, bitorder=bitorder)
    np.testing.assert_array_equal(fad.device_get(found), packed)
    for n in (None, 3, 40):
        back = fad.numpy.unpackbits(fad.device_put(packed, "standin"), axis=axis, count=n, bitorder=bitorder)
        np.testing.assert_array_equal(
            fad.device_get(back), np.unpackbits(packed, axis=axis, count=n, bitorder=bitorder)
        )


def test_an_array_of_a_device_comes_before_a_traced_value_in_every_operator():
    x = np.array([[0.5, 2.0], [1.5, 0.7]])
    f = lambda w, x: np.sum((x + w) * (x - w) / (x * w) + x @ w + x**w + (x > w) * w)
    wanted = fad.grad(f)(x.T.copy(), x)
    np.testing.assert_allclose(fad.device_get(fad.grad(f)(*fad.device_put((x.T.copy(), x), "standin"))), wanted)
