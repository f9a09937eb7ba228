"""Numbers that are Python's in some steps and NumPy's in others, or ints in some and floats in others."""

import warnings

import numpy as np
import pytest
from capture.agreement import report_of
from numpy_versions import WITH_INVERTED_BOOLS

import fad

STEPS = 200


def bools_are_added(x):
    n = 0
    for i in range(STEPS):
        a = True if i < x[0] else x[1] > 0
        n = n + (a + a)
    return n * x[2]


def a_bool_is_inverted(x):
    n = 0
    for i in range(STEPS):
        a = i > 3 if i < x[0] else x[1] > 0
        n = n - ~a
    return n * x[2]


def bools_of_a_helper_are_added(x):
    def is_large(v):
        if v > 1:
            return True
        return v > 0

    n = 0
    for i in range(STEPS):
        n = n + (is_large(x[i % 3] * (i < x[0])) + is_large(x[i % 3 - 1]))
    return n * x[2]


def a_bool_stays_if_an_inner_loop_has_no_steps(x):
    s = 0.0
    for i in range(STEPS):
        t = True
        for j in range(i % 3):
            t = x[j] > 1
        s = s + (t + t) * x[2]
    return s


def a_type_is_asked_for(x):
    s = 0.0
    for i in range(STEPS):
        t = i if i < x[0] else x[1]
        s = s + (1.0 if isinstance(t, float) else 2.0) * x[1]
    return s


def a_type_is_asked_for_behind_the_loop(x):
    t = 0
    for i in range(STEPS):
        t = i if i < x[0] else x[1]
    return (1.0 if isinstance(t, float) else 2.0) * x[1]


def a_type_is_asked_for_after_an_inner_loop(x):
    s = 0.0
    for i in range(STEPS):
        t = 0
        for j in range(i % 3):
            t = x[j]
        s = s + (2.0 if isinstance(t, int) else 1.0) * x[0]
    return s


def a_type_of_a_maximum_is_asked_for(x):
    s = 0.0
    for i in range(STEPS):
        s = s + (2.0 if isinstance(max(i, x[0] * 2), int) else 1.0) * x[1]
    return s


def large_integers(x):
    n = 0.0
    for i in range(STEPS):
        t = 0.5 if x[0] > i else 10**17 + i
        if t % 2 == 1:
            n = n + x[1]
    return n


def a_narrow_integer_wraps_beside_an_int_of_python(x):
    s, k = 0.0, np.int8(100)
    for i in range(STEPS):
        t = 1 if i < x[0] else np.int64(1)
        s = s + (k // 2 + t * k // 4) * x[1]
    return s


def a_narrow_float_stays_narrow_beside_a_float_of_python(x):
    s, k = 0.0, np.float32(0.1)
    for i in range(STEPS):
        t = 1.5 if i < x[0] else np.float64(2.5)
        s = s + (k * t) * x[1]
    return s


def a_type_of_what_was_appended_is_asked_for(x):
    seen = []
    for i in range(STEPS):
        if i < x[0]:
            seen.append(i)
        else:
            seen.append(x[1] * i)
    return sum(1.0 if isinstance(t, float) else 2.0 for t in seen[::97]) * x[1]


def a_type_in_a_list_of_numbers_is_asked_for(x):
    a = [0.5] * 4
    for i in range(STEPS):
        if i > x[0]:
            a[i % 3] = x[1] * i
    return sum(1.0 if isinstance(t, np.float64) else 2.0 for t in a) * x[1]


def a_flag_is_inverted_and_added(x):
    b, n = False, 0
    for i in range(STEPS):
        b = not b
        n += b if i < x[0] else 0
    return n * 2**40 * 2**40 % 1009 * x[1]


def real_and_complex_numbers(x):
    z, last = 0j, 0.0
    for i in range(STEPS):
        z = 0.5 * z + 0.1j
        last = abs(z) if i > x[0] else z
    return x[2] if isinstance(last, complex) else np.sign(last - 1.0) * x[1]


TOLD_APART = [
    bools_are_added, a_bool_is_inverted, bools_of_a_helper_are_added, a_bool_stays_if_an_inner_loop_has_no_steps,
    a_type_is_asked_for, a_type_is_asked_for_behind_the_loop, a_type_is_asked_for_after_an_inner_loop,
    a_type_of_a_maximum_is_asked_for, large_integers, a_narrow_integer_wraps_beside_an_int_of_python,
    a_narrow_float_stays_narrow_beside_a_float_of_python, a_type_of_what_was_appended_is_asked_for,
    a_type_in_a_list_of_numbers_is_asked_for, a_flag_is_inverted_and_added, real_and_complex_numbers,
]  # fmt: skip


@WITH_INVERTED_BOOLS
@pytest.mark.parametrize("f", TOLD_APART, ids=lambda f: f.__name__)
def test_a_program_that_tells_types_of_numbers_apart_gives_what_python_gives(f):
    compiled, slope = fad.jit(f), fad.jit(fad.grad(f))
    for first in (100.5, 300.5, 30.5):
        x = np.array([first, 2.0, 1.5])
        for _ in range(2):
            np.testing.assert_allclose(compiled(x), f(x), rtol=1e-14)
            np.testing.assert_allclose(slope(x), fad.grad(f)(x), rtol=1e-12)


def an_array_of_integers_in_some_steps(x):
    a = x * 0.5
    for v in x:
        if v > 2.5:
            a = np.ones(3, int)
    return a


def an_array_of_float32_in_some_steps(x):
    a = x * 0.5
    for v in x:
        a = x.astype(np.float32) if v > 2.5 else a
    return a


@pytest.mark.parametrize(
    "f", [an_array_of_integers_in_some_steps, an_array_of_float32_in_some_steps], ids=lambda f: f.__name__
)
def test_arrays_of_two_dtypes_stay_what_they_are(f):
    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        for x in (np.array([3.5, 2.0, 1.5]), np.array([0.5, 2.0, 1.5]), np.array([3.0, 1.0, 2.0])):
            np.testing.assert_array_equal(fast(x), f(x), strict=True)


def the_larger_of_an_int_and_a_number(x):
    s = 0
    for i in range(STEPS):
        s = s + max(0, x[i % 3] - i * 0.01)
    return s


def a_flag_is_pythons_or_numpys(x):
    s, found = 0.0, False
    for i in range(STEPS):
        if not found:
            s = s + x[i % 3] * 0.1
            found = s > x[0]
    return s


def a_sum_from_zero_until_it_is_large(x):
    s, k = 0, 0
    while s < x[0]:
        s = s + x[k % 3] * 0.01
        k += 1
    return s


@pytest.mark.parametrize(
    "f", [the_larger_of_an_int_and_a_number, a_flag_is_pythons_or_numpys, a_sum_from_zero_until_it_is_large],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_a_loop_with_numbers_of_two_types_is_captured_where_nothing_tells_them_apart(f):
    x = np.array([3.5, 2.0, 1.5])
    assert report_of(f, x, loops="auto")[0] == ["captured"]
    np.testing.assert_allclose(fad.jit(fad.grad(f))(x), fad.grad(f)(x), rtol=1e-12)


def test_asking_whether_a_number_is_an_array_does_not_end_the_capture():
    def f(x):
        s = 0.0
        for i in range(STEPS):
            s = s + (x[i % 3] if isinstance(x, np.ndarray) else 0.0) * np.cos(i)
        return s

    assert report_of(f, np.arange(1.0, 4.0), loops="auto")[0] == ["captured"]


def test_a_loop_stays_one_if_another_number_is_asked_for_its_type():
    def f(x):
        v = np.zeros(STEPS)
        for i in range(STEPS):
            v[i] = max(0, x[0] - i)  # an int of Python's in some steps
        last = v[-1] if not isinstance(x[1], (list, tuple)) else v[0]
        return sum(np.sum(y) for y in (v[3], last) if not isinstance(y, (list, tuple)))

    x = np.array([5.5, 2.0, 3.0])
    for g in (f, fad.grad(f)):
        np.testing.assert_allclose(fad.jit(g)(x), g(x))
        assert report_of(g, x)[0][0] == "captured"


def test_a_type_that_is_asked_for_of_what_comes_of_a_mixed_number_ends_the_capture():
    def f(x):
        t = 0
        for i in range(STEPS):
            t = i if i < x[0] else x[1]
        return (1.0 if isinstance(t + 1, float) else 2.0) * x[1]

    fast = fad.jit(f)
    for x in (np.array([1000.0, 2.0]), np.array([1.0, 2.0])):
        assert fast(x) == f(x)


def test_a_type_of_what_a_loop_of_many_steps_gives_may_be_asked_for():
    def f(x, n):
        s = fad.fori_loop(0, n, lambda i, s: s + x[0], 0)
        return x[0] if isinstance(s, int) else x[1]

    fast = fad.jit(f)
    for n in (np.int64(3), np.int64(0)):
        assert fast(np.arange(1.0, 4.0), n) == f(np.arange(1.0, 4.0), n)


def adaptive_euler(y, mu):
    """Steps whose sizes are Python numbers: one that is rejected changes no state."""
    t, h = 0.0, 0.1
    while t < 1.0:
        h = min(h, 1.0 - t)
        k = np.array([y[1], -mu * y[0]])
        k2 = k + h * np.array([k[1], -mu * k[0]])
        error = np.max(np.abs(h * (k2 - k)))
        if error < 3e-4:
            t += h
            y = y + h * k
        h *= min(2.0, max(0.3, float((2e-4 / (error + 1e-12)) ** 0.5)))
    return np.sum(y * np.array([0.3, 0.7]))


def sum_of_slopes(y, mu):
    return sum(map(np.sum, fad.grad(adaptive_euler, (0, 1))(y, mu)))


@pytest.mark.parametrize("fun", [adaptive_euler, sum_of_slopes])
def test_a_step_in_single_precision_by_a_python_number_in_a_branch_is_pulled_back_in_it(fun):
    y, slope = np.array([0.5, 0.2], np.float32), fad.grad(fun, (0, 1))
    jitted = fad.jit(slope)
    for _ in range(2):
        for want, got in zip(slope(y, 0.3), jitted(y, 0.3), strict=True):
            assert want.dtype == got.dtype
            np.testing.assert_allclose(got, want, rtol=1e-3)


def steps_until_small(x):
    n, s = 0, x[0]
    while s > 0.1:
        s, n = 0.9 * s, n + 1
    return n, s


def asks_for_the_class_of_a_count(x):
    n, s = steps_until_small(x)
    return s * n if isinstance(n, int) else -s


def widens_by_a_count(x):
    n, _ = steps_until_small(x)
    return x.astype(np.float32) * (n + 1)


def widens_a_scalar_by_a_count(x):
    return np.float32(2.0) * steps_until_small(x)[0]


@pytest.mark.parametrize(
    "f", [asks_for_the_class_of_a_count, widens_by_a_count, widens_a_scalar_by_a_count], ids=lambda f: f.__name__
)
def test_an_integer_that_a_loop_counts_is_pythons_in_a_batch_too(f):
    batch = np.array([[0.7, 0.3], [1.1, 0.2]])
    with fad.config.use(loops="capture"), warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        found = fad.jit(fad.vmap(f))(batch)
    wanted = np.stack([f(x) for x in batch])
    assert found.dtype == wanted.dtype
    np.testing.assert_allclose(found, wanted)
