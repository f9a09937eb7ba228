"""Loops of complex numbers are native as those of real ones are, and branches in them cost what they touch."""

import cmath
import math

import numpy as np
import pytest

pytest.importorskip("llvmlite")

from compile.test_nest_lookups import check, nest

import fad


def compare(f, *args, native):
    """Compare a gradient under jit with the one without it; if it is native, it calls NumPy for nothing."""
    g = fad.grad(f, argnums=tuple(range(len(args))))
    with fad.config.use(loops="capture"):
        fast = fad.jit(g)
        fast(*args), fast(*args)
        for got, wanted in zip(fast(*args), g(*args), strict=True):
            np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)
    assert ("calls of NumPy" not in fast.explain()) is native, fast.explain()


def draw(*shape):
    rng = np.random.default_rng(len(shape))
    return rng.normal(size=shape) + 1j * rng.normal(size=shape)


PLACES = np.array([[1, 2], [0, 3], [3, 1], [2, 0]], np.int32)


def self_energies(h, g, d):
    s = np.zeros_like(g)
    for e in range(g.shape[0]):
        for w in range(d.shape[0]):
            for a in range(PLACES.shape[0]):
                for b in range(PLACES.shape[1]):
                    if e - w >= 0:
                        left = g[e - w, PLACES[a, b]] @ h[a, b]
                        right = h[a, b] * d[w, a, b]
                        s[e, a] += left @ right
    return np.sum(s.real**2 + s.imag)


def test_products_of_small_complex_matrices_in_a_nest_with_a_branch_are_native():
    check(self_energies, draw(4, 2, 3, 3), draw(5, 4, 3, 3), draw(3, 4, 2))


def test_the_reverse_pass_of_a_branch_keeps_no_array_that_it_does_not_read():
    g = fad.grad(self_energies, argnums=(0, 1, 2))
    fast = nest(g, draw(4, 2, 3, 3), draw(5, 4, 3, 3), draw(3, 4, 2))
    line = next(s for s in fast.explain().splitlines() if "bytes of memory at most" in s)
    assert int(line.split()[3]) < 200_000  # the state of all steps would be 345 600 bytes


def of_real_and_complex(x, z):
    y = np.zeros(z.shape, complex)
    for i in range(1, len(z)):
        y[i] = x[i] * z[i] + np.conj(y[i - 1]) / (2.0 + x[i])
        y[i] += np.exp(1j * x[i]) * abs(z[i])
    return np.sum(y.real * y.imag)


def of_vectors(x, z):
    y = z.copy()
    for i in range(3, len(z)):
        y[i] = np.where(x[i] > 0, z[i], np.sum(y[i - 3 : i]) * x[i]) + x[i - 3 : i] @ y[i - 3 : i]
    return np.sum(y.real - 2 * y.imag)


def of_scalars(x, z):
    s = 0j
    for i in range(len(z)):
        s = s * z[i] + x[i]
    return (s * s.conjugate()).real


def of_a_while(x, z):
    s, i = z[0], 0
    while i < len(z):
        s = s * 0.9j + x[i] * z[i]
        i += 1
    return s.real + 2 * s.imag


@pytest.mark.parametrize("f", [of_real_and_complex, of_vectors, of_scalars], ids=lambda f: f.__name__)
def test_a_loop_of_complex_numbers_is_native(f):
    compare(f, np.random.default_rng(1).normal(size=40), draw(40), native=True)


def of_sines(x, z):
    s = 0j
    for i in range(len(z)):
        s = np.sin(s + z[i]) * x[i]
    return s.real


@pytest.mark.parametrize("f", [of_sines, of_a_while], ids=lambda f: f.__name__)
def test_a_loop_of_complex_numbers_that_native_code_does_not_know_is_right(f):
    compare(f, np.random.default_rng(1).normal(size=30), draw(30) * 0.1, native=False)


NATIVE_FUNCTIONS = ["exp", "sin", "cos", "sinh", "cosh", "sqrt", "log", "log10"]
FUNCTIONS = {name: getattr(cmath, name) for name in NATIVE_FUNCTIONS}


def repeated(f, steps):
    def loop(x):
        z = complex(x, 0.3)
        for k in range(steps):
            z = 0.5 * f(0.4 * z + 0.1j) + 0.2 * x / (k + 1)
        return abs(z)

    return loop


@pytest.mark.parametrize("name", NATIVE_FUNCTIONS)
def test_a_loop_over_functions_of_cmath_is_native_and_so_is_its_derivative(name):
    f = repeated(getattr(cmath, name), 100)
    fast, steep = fad.jit(f), fad.jit(fad.grad(f))
    for x in (0.4, 0.7, 0.4):
        np.testing.assert_allclose(fast(x), f(x), rtol=1e-12)
        np.testing.assert_allclose(steep(x), (f(x + 1e-6) - f(x - 1e-6)) / 2e-6, rtol=1e-6)
    for jitted in (fast, steep):
        assert "cmath" not in jitted.explain()
        assert "calls of NumPy for operations without a kernel: to_number\n" in f"{jitted.explain()}\n"


@pytest.mark.parametrize("name", NATIVE_FUNCTIONS)
def test_native_functions_of_cmath_have_its_values_and_errors(name):
    f = lambda z: FUNCTIONS[name](z)
    fast = fad.jit(f)
    sizes = (0.0, -0.0, 5e-324, 1e-310, 0.5, -2.0, 1.0000001, 300.0, 1e300)
    for z in [complex(a, b) for a in sizes for b in sizes]:
        try:
            wanted = f(z)
        except (ValueError, OverflowError) as error:
            with pytest.raises(type(error), match=str(error)):
                fast(z)
            continue
        found = fast(z)
        for part in ("real", "imag"):
            got, want = getattr(found, part), getattr(wanted, part)
            assert abs(got - want) <= 8e-16 * abs(wanted) + 5e-324
            assert math.copysign(1, got) == math.copysign(1, want) or abs(got - want) <= 4e-16 * abs(wanted)


def test_an_index_by_small_integers_outside_of_an_array_is_an_error():
    places = np.array([0, 1, 7], np.int32)

    def f(x):
        s = 0.0
        for i in range(len(places)):
            s = s + x[places[i]] ** 2
        return s

    with fad.config.use(loops="capture"), pytest.raises(IndexError):
        fad.jit(f)(np.ones(5))


# --- branches that change arrays --------------------------------------------------------------------------------------


def one_way_writes(x, y):
    for i in range(1, 30):
        if x[i] > 0.3:
            y[i] += x[i] * y[i - 1]
    return np.sum(y * y)


def both_ways_write(x, y):
    for i in range(1, 30):
        if x[i] > 0.3:
            y[i] = y[i - 1] * x[i]
        else:
            y[i - 1 : i + 1] = y[i - 1 : i + 1][::-1] * x[i]
    return np.sum(y**3)


def each_from_the_other(x, y):
    z = y * 2.0
    for i in range(1, 30):
        if x[i] > 0.3:
            y[i] = z[i - 1] + x[i]
            z[i] = y[i] * y[i - 1]
        elif x[i] > -0.3:
            z[i] = np.sum(y[:3]) * z[i - 1]
    return np.sum(y * z)


def read_behind(x, y):
    s = 0.0
    for i in range(1, 30):
        old = y[i - 1 : i + 2] if i < 5 else y[1:4]
        if x[i] > 0:
            y[1:4] = y[:3] * x[i]
        s = s + np.sum(old * y[2])
    return s


def exchanged(x, y):
    z = y + 1.0
    for i in range(30):
        if x[i] > 0:
            y, z = z, y
        y = y * (1.0 + 0.1 * x[i])
    return np.sum(y - 2.0 * z * z)


def a_branch_within(x, y):
    for i in range(1, 30):
        if x[i] > -1:
            if x[i] > 0.5:
                y[i] += x[i - 1]
            else:
                for j in range(3):
                    y[i - 1] += y[j] * x[j]
            y[0] *= x[i]
    return np.sum(y * y)


BRANCHES = [one_way_writes, both_ways_write, each_from_the_other, read_behind, exchanged, a_branch_within]


@pytest.mark.parametrize("f", BRANCHES, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [30, 300])
def test_a_branch_changes_arrays_in_place_and_right(f, n):
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=40), rng.normal(size=n)

    def copied(x, y):
        return f(x, y.copy())

    g = fad.grad(copied, argnums=(0, 1))
    h = fad.grad(lambda x, y: np.sum(g(x, y)[1] * np.cos(y)), argnums=(0, 1))
    with fad.config.use(loops="capture"):
        for each in (g, h):
            fast = fad.jit(each)
            fast(x, y), fast(x, y)
            for got, wanted in zip(fast(x, y), each(x, y), strict=True):
                np.testing.assert_allclose(got, wanted, rtol=1e-9, atol=1e-10)


# --- which loops are captured -----------------------------------------------------------------------------------------


def test_a_short_loop_with_a_long_one_in_it_is_captured():
    def f(x):
        for k in range(2):
            for i in range(1, 200):
                x[i] = x[i - 1] * 0.5 + x[i] * k
        return np.sum(x)

    fast = fad.jit(f)
    fast(np.ones(200))
    assert "unrolled" not in fast.explain(), fast.explain()
