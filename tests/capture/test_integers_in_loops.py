"""Python's integers in captured loops: bounded by a condition, by the places of an array, or by nothing but the values.

An integer that leaves 64 bits gives what Python gives, in every transform and in every later call.
"""

import math

import numpy as np
import pytest

import fad
from tests.capture.agreement import agree, report_of

R = np.random.default_rng(0)
X = R.random(30)


def nodes_of_a_tree(x):
    s = 0.0
    for v in x:
        node = 0
        while node < 63:
            node = 2 * node + 1 if v < 0.5 else 2 * node + 2
        s = s + node * v
    return s


def sifted(x):
    a, n = x * 1.0, len(x)
    for start in range(n // 2 - 1, -1, -1):
        r = start
        while 2 * r + 1 < n:
            c = 2 * r + 1
            if c + 1 < n and a[c] < a[c + 1]:
                c += 1
            if a[r] >= a[c]:
                break
            a[r], a[c] = a[c], a[r]
            r = c
    return a @ np.cos(np.arange(n))


def sifted_without_a_condition(x):
    a, n = x * 1.0, len(x)
    for start in range(n // 2 - 1, -1, -1):
        r = start
        while True:
            c = 2 * r + 1
            if c >= n:
                break
            if c + 1 < n and a[c] < a[c + 1]:
                c += 1
            if a[r] >= a[c]:
                break
            a[r], a[c] = a[c], a[r]
            r = c
    return a @ np.cos(np.arange(n))


def sorted_by_a_heap(x):
    a, n = x * 1.0, len(x)

    def sift(a, r, e):
        while 2 * r + 1 < e:
            c = 2 * r + 1
            if c + 1 < e and a[c] < a[c + 1]:
                c += 1
            if a[r] < a[c]:
                a[r], a[c] = a[c], a[r]
                r = c
            else:
                return

    for start in range(n // 2 - 1, -1, -1):
        sift(a, start, n)
    for e in range(n - 1, 0, -1):
        a[0], a[e] = a[e], a[0]
        sift(a, 0, e)
    return a @ np.cos(np.arange(n))


def fenwick(x):
    t, s = np.zeros(len(x) + 1), 0.0
    for i in range(1, len(x) + 1):
        j = i
        while j <= len(x):
            t[j] += x[i - 1]
            j += j & -j
    for i in range(1, len(x) + 1):
        j = i
        while j > 0:
            s += t[j] * 0.01 * i
            j -= j & -j
    return s


def segments(x):
    n = len(x)
    t, s = np.zeros(2 * n), 0.0
    t[n:] = x
    for i in range(n - 1, 0, -1):
        t[i] = t[2 * i] + t[2 * i + 1]
    for k in range(n):
        low, top = n + k, 2 * n
        while low < top:
            if low & 1:
                s += t[low]
                low += 1
            if top & 1:
                top -= 1
                s += t[top]
            low >>= 1
            top >>= 1
        s = s * 0.95
    return s


def chosen_quickly(x):
    x, k = x * 1.0, len(x) // 3
    low, top = 0, len(x) - 1
    while low < top:
        p = x[(low + top) // 2]
        i, j = low, top
        while i <= j:
            while x[i] < p:
                i += 1
            while x[j] > p:
                j -= 1
            if i <= j:
                x[i], x[j] = x[j], x[i]
                i += 1
                j -= 1
        if k <= j:
            top = j
        elif k >= i:
            low = i
        else:
            break
    return x[k] * 2.0


def squares_below(x):
    s = 0.0
    for v in x:
        i = 2
        while i * i < 200:
            s = s + v / i
            i += 1
    return s


def halved_and_tripled(x):
    total = 0
    for i in range(1, 40):
        c = i
        while c != 1:
            c = c // 2 if c % 2 == 0 else 3 * c + 1
            total += 1
    return x[0] * total


def hashed(x):
    h, s = 17, 0.0
    for v in x:
        h = (h * 1103515245 + 12345) & 0x7FFFFFFF
        s = s + v * (h % 7)
    return s


BOUNDED = [
    nodes_of_a_tree, sifted, sifted_without_a_condition, sorted_by_a_heap, fenwick, segments, chosen_quickly,
    squares_below, halved_and_tripled, hashed,
]  # fmt: skip


@pytest.mark.parametrize("f", BOUNDED, ids=lambda f: f.__name__)
def test_integers_that_a_condition_or_an_index_bounds_are_captured(f):
    what, text = report_of(f, X)
    assert what.count("captured") >= len(what) - (f is sorted_by_a_heap), text
    agree(f, X)


@pytest.mark.parametrize("f", BOUNDED, ids=lambda f: f.__name__)
def test_other_values_of_the_same_shapes_run_the_same_program(f):
    fast, steep = fad.jit(f), fad.jit(fad.value_and_grad(f))
    for k in range(3):
        y = np.random.default_rng(k).random(30)
        np.testing.assert_allclose(fast(y), f(y), rtol=1e-12)
        value, slope = steep(y)
        np.testing.assert_allclose(value, f(y), rtol=1e-12)
        np.testing.assert_allclose(slope, fad.grad(f)(y), rtol=1e-10, atol=1e-12)
    assert fast.explain().count("recorded step by step") == 0


# --- integers that leave 64 bits -------------------------------------------------------------------------------------


def a_product_up_to(x, n):
    k, i = 1, 1
    while i <= n:
        k = k * i
        i += 1
    return x * k, k % 1000003


def doubled_below(x, n):
    k, s = 1, 0.0
    while k * 1.0 < x * 10.0**n:
        k = 2 * k
        s = s + x / k
    return s * k, k % 1000003


def doubled_in_each_of_many(x, n):
    s = 0.0
    for i in range(50):
        k = 3
        while k * x < 10.0**n:
            k = k * k + i
        s = s + x * (k % 1013)
    return s, 0


def squared_and_reduced(x, n):
    k, t = 3, 0
    while t < n:
        k = k * k
        if t % 3 == 0:
            k = k % 1000003
        t += 1
    return x * (k % 97), k % 1013


def shifted(x, n):
    k, t = 1, 0
    while t < n:
        k = (k << 3) | 5
        t += 1
    return x * (k % 1013), k % 1009


def negated(x, n):
    k, t = -1, 0
    while t < n:
        k = -k * 2 - t
        t += 1
    return x * abs(k), k % 1013


def grown_and_shrunk(x, n):
    k, t = 1, 0
    while t < 2 * n:
        k = k * 3 if t < n else k // 3
        t += 1
    return x * k, k


GROWING = [
    a_product_up_to, doubled_below, doubled_in_each_of_many, squared_and_reduced, shifted, negated, grown_and_shrunk,
]  # fmt: skip


@pytest.mark.parametrize("loops", ["auto", "capture", "record"])
@pytest.mark.parametrize("f", GROWING, ids=lambda f: f.__name__)
def test_integers_that_leave_64_bits_give_what_python_gives(f, loops):
    traced = lambda x, n: f(x, n)
    with fad.config.use(loops=loops):
        fast, steep = fad.jit(traced), fad.jit(fad.grad(lambda x, n: f(x, n)[0]))
        for n in (3, 12, 19, 20, 21, 40, 64, 90, 5, 21, 63):
            value, number = f(1.25, n)
            found, counted = fast(1.25, n)
            assert (found, counted) == (pytest.approx(value, rel=1e-12), number), n
            assert type(counted) is type(number)
            np.testing.assert_allclose(steep(1.25, n), fad.grad(lambda x: f(x, n)[0])(1.25), rtol=1e-12)  # noqa: B023


@pytest.mark.parametrize("loops", ["auto", "capture"])
@pytest.mark.parametrize("f", GROWING, ids=lambda f: f.__name__)
@pytest.mark.parametrize("inside", [False, True])
def test_integers_of_a_batch_do_not_wrap(f, loops, inside):
    xs = np.array([1.0, 0.5, 2.0])
    for n in (10, 19, 40):
        g = lambda x: f(x, n)[0]  # noqa: B023
        with fad.config.use(loops=loops):
            fast = fad.vmap(fad.jit(g)) if inside else fad.jit(fad.vmap(g))
            for _ in range(2):
                np.testing.assert_allclose(fast(xs), [g(x) for x in xs], rtol=1e-12)


def test_an_index_out_of_range_raises_where_the_counter_was_to_stay_in_it():
    def f(x, p):
        s, i = 0.0, 0
        while x[i] < p:
            s = s + x[i]
            i += 1
        return s

    fast = fad.jit(f)
    x = np.linspace(0.0, 1.0, 50)
    for p in (0.5, 0.9, 2.0, 0.3):
        if p > 1:
            with pytest.raises(IndexError):
                fast(x, p)
        else:
            np.testing.assert_allclose(fast(x, p), f(x, p))


# --- large integers beside floats -------------------------------------------------------------------------------------


def compared(k, x, n):
    c = 0
    for i in range(n):
        if k + i > x:
            c += 1
    return c


def counted_up_to(k, x, n):
    c = 0
    while k < x:
        c += 1
        k += n
    return c


def told_apart(k, x, n):
    c = 0
    for i in range(n):
        if k + i != x:
            c += 2
        if k - i == x:
            c += 1
    return c


def largest(k, x, n):
    m = x
    for i in range(n):
        m = max(m, k - 2 * i)
    return int(m) - k


def divided(k, d, n):
    t = 0
    for i in range(n):
        if (k + i) / d >= 1.0:
            t += 1
    return t


BESIDE_FLOATS = [
    (compared, [(2**53 + 1, 2.0**53, 700), (2**53 - 3, 2.0**53, 700), (5, 2.0, 700)]),
    (counted_up_to, [(2**54 - 1501, 2.0 * (2**53 + 1), 3), (4, 3000.0, 3)]),
    (told_apart, [(2**53 + 1, 2.0**53, 700), (2**60 + 1, 2.0**60, 700), (7, 9.0, 700)]),
    (largest, [(2**53 + 1, 2.0**53, 700), (100, 7.5, 700)]),
    (divided, [(2**60 - 300, 2**60 + 3, 500), (-(2**61), -(2**61) + 250, 500), (1, 7, 500)]),
]


@pytest.mark.parametrize(("f", "calls"), BESIDE_FLOATS, ids=lambda v: getattr(v, "__name__", ""))
@pytest.mark.parametrize("loops", ["auto", "capture"])
def test_large_integers_are_compared_and_divided_as_python_does(f, calls, loops):
    fast = fad.jit(f)
    with fad.config.use(loops=loops):
        for k, x, n in [*calls, *calls]:
            assert fast(k, x, n) == f(k, x, n), (k, x, n)


def multiplied_in_place(k, n):
    for _ in range(n):
        k *= 3
    return k


def shifted_in_place(k, n):
    for _ in range(n):
        k <<= 3
    return k


def congruential(k, n):
    for _ in range(n):
        k = (6364136223846793005 * k + 1442695040888963407) % 2**64
    return k


def hashed(k, n):
    h = 14695981039346656037
    for i in range(n):
        h = ((h ^ (k + i)) * 1099511628211) & (2**64 - 1)
    return h


@pytest.mark.parametrize("f", [multiplied_in_place, shifted_in_place, congruential, hashed], ids=lambda f: f.__name__)
def test_integers_of_more_than_64_bits_are_pythons(f):
    fast = fad.jit(f)
    for k in (5, 1, 77, 5):
        assert fast(k, 300) == f(k, 300)


# --- a first call whose step raises -----------------------------------------------------------------------------------


def divides_in_a_way(k, n):
    for _ in range(n):
        if k > 0:
            k = 3 * k + 7 // (k - 5)
        else:
            k = k - 1
    return k


def divides_in_a_while(k, n):
    for _ in range(n):
        j = 0
        while j < 3:
            k = 3 * k + 7 // (k - 5)
            j += 1
    return k


def shifts_in_a_way(k, n):
    for _ in range(n):
        if k > 0:
            k = k ^ (1 << (k - 5))
        else:
            k = k - 1
    return k


def divides_floats_in_a_way(k, n):
    a, b = 1.0, float(k)
    for _ in range(n):
        if a > 0:
            a = a + 7.0 // (b - 5.0)
            b = b + 1
        else:
            a = a - 1.0
    return a


@pytest.mark.parametrize(
    "f", [divides_in_a_way, divides_in_a_while, shifts_in_a_way, divides_floats_in_a_way], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("order", [(5, 6, 4, 7), (6, 5, 7, 4), (4, 5, 6, 4)])
def test_a_first_call_that_raises_leaves_a_program_that_is_right(f, order):
    def outcome(g, k):
        try:
            return g(k, 400)
        except (ArithmeticError, ValueError) as error:
            return type(error), str(error).partition("\n")[0]

    fast = fad.jit(f)
    for k in (*order, *order):
        assert outcome(fast, k) == outcome(f, k), k


def between_points(x):
    s, table = 0.0, np.arange(40.0) ** 2
    for k in range(60):
        u = x[k % 30] * 7 + 0.3 * k
        i = int(u)
        s += table[i] * (1 - (u - i)) + table[i + 1] * (u - i)
    return s


def in_bins(x):
    h = np.zeros(20)
    for k in range(60):
        h[math.floor(abs(x[k % 30]) * 5 + k * 0.02)] += x[k % 30]
    return np.sum(h**2)


def rounded_in_every_way(x):
    s = 0.0
    for k in range(60):
        s += round(x[k % 30] * k) * x[0] + math.ceil(x[1] - k) * math.trunc(3 * x[2]) * x[3] + int(-2.5 * x[k % 30])
    return s


OF_FLOATS = [between_points, in_bins, rounded_in_every_way]


@pytest.mark.parametrize("f", OF_FLOATS, ids=lambda f: f.__name__)
def test_integers_of_floating_point_numbers_are_captured(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert what == ["captured"], text


@pytest.mark.parametrize("f", OF_FLOATS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("value", [np.nan, np.inf, 1e30])
def test_no_number_and_a_large_one_give_the_error_or_result_of_python(f, value):
    def outcome(g, x):
        try:
            return g(x)
        except (ArithmeticError, ValueError, IndexError) as error:
            return type(error), str(error).partition("\n")[0]

    bad = X.copy()
    bad[2] = value
    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        for x in (X, X, bad, X, bad):
            wanted, found = outcome(f, x), outcome(fast, x)
            assert found == (pytest.approx(wanted, rel=1e-12, nan_ok=True) if isinstance(wanted, float) else wanted)


def test_of_counts_in_a_short_dtype_no_memory_is_taken_for_the_largest():
    lags = np.array([1, 3], np.int32)

    def lagged(x):
        s = x * 1.0
        for t in range(len(x)):
            for i in range(2):
                for j in range(lags[i]):
                    s[t] += 0.1 * (s[t - j - 1] * s[t - j - 1] if t > j else 1.0)
        return np.sum(s)

    with fad.config.use(loops="capture"):
        slope = fad.jit(fad.grad(lagged))
        slopes = [slope(X) for _ in range(2)]
    np.testing.assert_allclose(slopes, [fad.grad(lagged)(X)] * 2, rtol=1e-12)
    what, text = report_of(lagged, X)
    assert what == ["captured"] * 3, text
