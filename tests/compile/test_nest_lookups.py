"""Index arrays, views and masked slices in loop nests: one function, the values of NumPy, and its errors."""

import warnings

import numpy as np
import pytest

pytest.importorskip("llvmlite")

import fad
from fad.compile.targets.select import using


def nest(f, *args):
    """Return f with its loops captured, compiled for such arguments; all its loops must be one function."""
    with using("llvm"), fad.config.use(loops="capture"), warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        fast = fad.jit(f)
        fast(*args)
        fast(*args)
    assert "loop is one function" in fast.explain() or "loops are one function each" in fast.explain(), fast.explain()
    assert "calls of NumPy" not in fast.explain(), fast.explain()
    return fast


def check(f, *args):
    """Compare a function and its gradient with plain NumPy, and with the gradient without jit."""
    np.testing.assert_allclose(nest(f, *args)(*args), f(*args), rtol=1e-12)
    g = fad.grad(f, argnums=tuple(range(len(args))))
    for got, wanted in zip(nest(g, *args)(*args), g(*args), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def durbin(r):
    y = np.empty_like(r)
    alpha, beta = -r[0], 1.0
    y[0] = -r[0]
    for k in range(1, r.shape[0]):
        beta *= 1.0 - alpha * alpha
        alpha = -(r[k] + np.dot(np.flip(r[:k]), y[:k])) / beta
        y[:k] += alpha * np.flip(y[:k])
        y[k] = alpha
    return np.sum(y * np.cos(y))


def scattered(x, w):
    places = np.array([3, 0, 7, 7, -1, 2])
    y = x * 1.0
    for k in range(60):
        y[places] = 0.5 * y[places] + w[:6] * np.sin(y[k % 5])
        y[1:] = y[1:] + 0.01 * y[(np.arange(1, y.shape[0]) * 3) % y.shape[0]]
    return np.sum(y)


def lengthening(x, w):
    """Slices of all kinds whose lengths depend on the counter."""
    y, s = x * 1.0, 0.0
    n = x.shape[0]
    for k in range(1, n - 1):
        s = s + np.dot(y[:k], w[:k]) * 0.01
        y[k:] = y[k:] - 0.1 * w[k] * x[k:]
        y[:k] *= 0.99
        y[: n - k] += 0.01 * x[k:]
        s = s + 0.1 * np.sum(y[k:] * w[k:]) + 0.01 * y[k - 1]
    return s + np.sum(y)


@pytest.mark.parametrize("n", [5, 150])
def test_durbin_is_one_function(n):
    check(durbin, np.random.default_rng(n).random(n) * 0.05)


def test_places_that_an_array_gives_are_read_and_written():
    r = np.random.default_rng(1)
    check(scattered, r.random(20), r.random(20))


@pytest.mark.parametrize("n", [6, 45])
def test_slices_by_counters_are_one_function(n):
    r = np.random.default_rng(n)
    check(lengthening, r.random(n), r.random(n))


def test_a_place_outside_of_the_array_is_an_error():
    def far(x, places):
        y = x * 1.0
        for k in range(100):
            y = 0.5 * y + 0.1 * x[places + k]
        return np.sum(y)

    x, places = np.arange(110.0), np.arange(110) // 12
    fast = nest(far, x, places)
    np.testing.assert_allclose(fast(x, places), far(x, places), rtol=1e-12)
    with pytest.raises(IndexError):
        fast(x, places + 3)


def random_slices(seed):
    """Return a loop over slices of traced lengths, some of them reversed, and arguments."""
    r = np.random.default_rng(seed)
    n = 37
    # pairs of slices of one length
    pairs = [
        (lambda k: slice(0, k), lambda k: slice(0, k)),
        (lambda k: slice(0, k), lambda k: slice(n - k, n)),
        (lambda k: slice(k, n), lambda k: slice(k, n)),
        (lambda k: slice(k, n - 1), lambda k: slice(k + 1, n)),
        (lambda k: slice(1, k), lambda k: slice(0, k - 1)),
    ]
    steps = [(pairs[r.integers(len(pairs))], r.integers(6), r.uniform(0.02, 0.1)) for _ in range(4)]

    def program(x, z):
        y, s = x * 1.0, 0.0
        for k in range(1, n):
            for (one, other), kind, c in steps:
                if kind == 0:
                    y[one(k)] += c * z[other(k)]
                elif kind == 1:
                    y[one(k)] = y[one(k)] - c * np.flip(z[other(k)]) * y[k]
                elif kind == 2:
                    s = s + c * np.dot(y[one(k)], z[other(k)])
                elif kind == 3:
                    s = s + c * np.sum(np.flip(y[one(k)]) * z[other(k)])
                elif kind == 4:
                    y[one(k)] *= 1.0 - c
                else:
                    s = s + c * np.sum((y[one(k)] - z[other(k)]) ** 2)
        return s + np.sum(y * y)

    return program, (r.random(n), r.random(n))


@pytest.mark.parametrize("seed", range(5))
def test_random_slices_are_loops_over_the_slices(seed):
    program, args = random_slices(seed)
    check(program, *args)


def test_what_lies_beside_a_slice_is_not_read():
    def product(x, w):
        s = 0.0
        for k in range(1, 30):
            s = s + np.dot(x[:k], w[:k]) + np.sum(x[:k] * w[1 : k + 1])
        return s

    x, w = np.ones(40), np.linspace(0, 1, 40)
    x[35], w[36] = np.inf, np.nan
    check(product, x, w)


def test_a_choice_read_in_another_order_is_not_taken_for_the_mask_of_the_loop():
    places = np.arange(40)

    def program(x):
        y = x * 1.0
        for k in range(1, 40):
            part = np.where(places < k, x, 0.5)
            y = 0.9 * y + 0.1 * part + 0.1 * part[::-1] * np.where(places < k, y, 2.0)
        return np.sum(y)

    check(program, np.random.default_rng(0).random(40))


@pytest.mark.parametrize("dtype", [np.int64, np.int32])
def test_extremes_of_integers_are_those_of_numpy(dtype):
    def extremes(x, a):
        y = x * 1.0
        for k in range(30):
            y[k + 1] = y[k] * 1e-2 * np.max(a - k) + np.min(a + (200 + k))
        return np.sum(y)

    x, a = np.ones(40), -np.arange(5, 45).astype(dtype)
    np.testing.assert_allclose(nest(extremes, x, a)(x, a), extremes(x, a), rtol=1e-13)


def test_a_row_is_written_beside_the_array_that_it_is_of():
    def rows(x):
        m = np.outer(x, x) + 0.1
        for j in reversed(range(5)):
            m *= 0.9
            row = m[j // 2]
            row[j] = 0.1 * x[j]
        return np.sum(m * m)

    def places(x):
        a, y = np.arange(20) * 3 % 20, x * 1.0
        for k in range(40):
            a[np.flip(a)] = (a + k) % 20
            y[a] += 0.1 * y
        return np.sum(y)

    check(rows, np.linspace(-0.5, 0.9, 5))
    check(places, np.linspace(-0.5, 0.9, 20))


# --- windows ----------------------------------------------------------------------------------------------------------


def convolve(stride, k, along=(1, 2, 3)):
    """Return a convolution by loops over the places of its result."""

    def program(x, w):
        n, height, width, _ = x.shape
        rows, columns = (height - k) // stride + 1, (width - k) // stride + 1
        y = np.zeros((n, rows, columns, w.shape[3]), x.dtype)
        for i in range(rows):
            for j in range(columns):
                a, b = i * stride, j * stride
                y[:, i, j, :] = np.sum(x[:, a : a + k, b : b + k, :, None] * w[None], axis=along)
        return np.sum(np.sin(y))

    return program


@pytest.mark.parametrize(("stride", "k", "channels"), [(1, 1, (3, 4)), (1, 3, (2, 5)), (2, 3, (1, 1)), (1, 2, (3, 17))])
def test_a_convolution_by_loops_is_one_function(stride, k, channels):
    r = np.random.default_rng(k)
    check(convolve(stride, k), r.normal(size=(2, 7, 6, channels[0])), r.normal(size=(k, k, *channels)))


def test_a_convolution_by_loops_in_single_precision():
    r = np.random.default_rng(0)
    x, w = (r.normal(size=s).astype(np.float32) for s in ((2, 6, 7, 3), (3, 3, 3, 8)))
    f = fad.value_and_grad(convolve(1, 3), argnums=(0, 1))
    for got, wanted in zip(fad.tree.leaves(nest(f, x, w)(x, w)), fad.tree.leaves(f(x, w)), strict=True):
        assert got.dtype == wanted.dtype
        np.testing.assert_allclose(got, wanted, rtol=2e-5, atol=1e-5)


def test_a_convolution_by_loops_has_second_derivatives():
    r = np.random.default_rng(0)
    x, w, u = r.normal(size=(1, 5, 5, 2)), r.normal(size=(2, 2, 2, 3)), r.normal(size=(1, 5, 5, 2))
    product = fad.grad(lambda x, w: np.sum(fad.grad(convolve(1, 2))(x, w) * u), argnums=(0, 1))
    for got, wanted in zip(fad.jit(product)(x, w), product(x, w), strict=True):
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=1e-12)


def test_windows_of_several_axes_are_read_and_written():
    def program(x, v):
        y, s = x * 1.0, 0.0
        for i in range(4):
            for j in range(3):
                y[i : i + 2, :, j : j + 3] += v[:2, :, i : i + 3]  # the axes of the windows are apart
                y[i : i + 2, 1, 2 * j : 2 * j + 2] *= v[1 : 1 + 2, 0, j + 1 : j + 3]
                s = s + np.sum(y[i, j : j + 2, j : j + 2] * v[i, j : j + 2, ::2][:, :2]) + np.sum(y[i : i + 1, j])
                y[5 - i : 3 - i : -1, 0, 0] = 0.5 * y[i : i + 2, 1, j]  # overlaps itself
        return s + np.sum(y * y)

    r = np.random.default_rng(1)
    check(program, r.normal(size=(6, 4, 7)), r.normal(size=(4, 4, 7)))


def test_a_window_that_leaves_the_array_is_an_error():
    def program(x, places):
        s = 0.0
        for i in range(places.shape[0]):
            a = places[i]
            s = s + np.sum(x[a + np.arange(3)] * x[a : a + 3])
        return s

    x, places = np.arange(9.0), np.arange(7)
    fast = fad.jit(program)
    for _ in range(3):
        np.testing.assert_allclose(fast(x, places), program(x, places))
    with pytest.raises(IndexError):
        fast(x, places + 1)


def test_windows_may_start_before_the_first_place():
    def program(x):
        s = 0.0
        for i in range(4):
            s = s + np.sum(x[np.arange(3) - i] * (1.0 + i))  # negative ones are from the end
        return s

    x = np.arange(5.0)
    np.testing.assert_allclose(nest(program, x)(x), program(x))
    np.testing.assert_allclose(nest(fad.grad(program), x)(x), fad.grad(program)(x))


def test_steps_with_large_arrays_and_windows_are_native():
    def program(x, w):
        y = np.zeros((3, 3, 70, 80))
        for i in range(3):
            for j in range(3):
                y[i, j] = np.sum(x[i : i + 5, j : j + 5, :, None] * w, axis=(0, 1))
        return np.sum(y * y)

    r = np.random.default_rng(0)
    x, w = r.normal(size=(7, 7, 70)), r.normal(size=(5, 5, 70, 80))
    assert w.size < 1 << 18
    check(program, x, w)
    w = r.normal(size=(5, 5, 70, 160))
    wide = lambda x, w: program(x, w[..., ::2]) + np.sum(w)
    check(wide, x, w)
