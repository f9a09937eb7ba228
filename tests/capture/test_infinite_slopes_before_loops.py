"""What a captured loop does not use has the derivative zero, also where a slope before the loop is infinite there."""

import numpy as np
import pytest

import fad

X = np.linspace(0.0, 1.0, 10)
POINTS = np.random.default_rng(0).normal(size=10)
V = np.cos(np.arange(10.0))


def distances(x):
    p = x.reshape(-1, 2)
    d = p[:, None] - p[None]
    return np.sqrt(np.sum(d * d, -1))


def pairs_below_the_diagonal(x):
    r, s = distances(x), 0.0
    for i in range(len(r)):
        for j in range(i):
            s = s + 1.0 / r[i, j]
    return s


def pairs_that_are_two(x):
    r, s = distances(x), 0.0
    for i in range(len(r)):
        for j in range(len(r)):
            if i != j:
                s = s + 1.0 / r[i, j]
    return s


def pairs_apart(x):
    r, s = distances(x), 0.0
    for i in range(len(r)):
        for j in range(len(r)):
            if r[i, j] > 0:
                s = s + np.log(r[i, j])
    return s


def the_rest_of_each_row(x):
    r, s = distances(x), 0.0
    for i in range(len(r)):
        s = s + np.sum(np.exp(-r[i, i + 1 :]))
    return s


def the_nearest_of_the_others(x):
    r, s = distances(x), 0.0
    for i in range(len(r)):
        least = 100.0
        for j in range(len(r)):
            if j != i:
                least = min(least, r[i, j])
        s = s + least
    return s


def the_diagonal_is_written(x):
    r = distances(x)
    for i in range(len(r)):
        r[i, i] = 1.0
    return np.sum(1.0 / r)


def a_tree_that_grows(x):
    r, s = distances(x), 0.0
    d, seen = r[0].copy(), np.zeros(len(r), bool)
    seen[0] = True
    for _ in range(len(r) - 1):
        k = int(np.argmin(np.where(seen, np.inf, d)))
        s = s + d[k]
        seen[k] = True
        d = np.minimum(d, r[k])
    return s


def the_first_guess_is_replaced(x):
    y = np.sqrt(x[0])
    for i in range(20):
        y = 0.5 * (y + x[1] / y) if i else 1.0
    return y


def zeros_are_replaced(x):
    r = np.sqrt(x)
    for i in range(len(x)):
        if x[i] == 0:
            r[i] = 1.0
    return np.sum(r)


def the_first_one_is_not_read(x):
    r = np.sqrt(x)
    for i in range(1, len(x)):
        r[i] = r[i] + 0.5 * r[i - 1] if i > 1 else r[i]
    return np.sum(r[1:])


def the_first_one_is_not_read_after_a_write(x):
    r, s = np.sqrt(x), 0.0
    r[3] = x[4]
    for i in range(1, len(x)):
        s = s + r[i] ** 2
    return s


def the_first_one_is_not_read_while(x):
    r, i = np.sqrt(x), 1
    while i < len(x):
        r[i] = x[i] * r[i]
        i += 1
    return np.sum(r[1:])


def the_greatest(x):
    best = np.sqrt(x[0])
    for i in range(1, len(x)):
        v = np.sqrt(x[i])
        if v > best:
            best = v
    return best


def what_is_chosen(x):
    best = np.sqrt(x[0])
    for i in range(1, len(x)):
        best = np.where(x[i] > 0.5, np.sqrt(x[i]), best)
    return best


def a_row_that_the_step_computes(x):
    s = 0.0
    for i in range(6):
        d = np.sqrt((x[i] - x[:6]) ** 2)
        for j in range(6):
            if i != j:
                s = s + 1.0 / d[j]
    return s


def forces_of_a_row_that_the_step_computes(x):
    f = np.zeros((6, 6))
    for i in range(6):
        d = np.sqrt((x[i] - x[:6]) ** 2)
        for j in range(i):
            f[i, j] = np.exp(-d[j]) / d[j]
    return np.sum(f)


OF_POINTS = [
    pairs_below_the_diagonal, pairs_that_are_two, pairs_apart, the_rest_of_each_row, the_nearest_of_the_others,
    the_diagonal_is_written, a_tree_that_grows, a_row_that_the_step_computes, forces_of_a_row_that_the_step_computes,
]  # fmt: skip
OF_X = [
    the_first_guess_is_replaced, zeros_are_replaced, the_first_one_is_not_read, the_first_one_is_not_read_while,
    the_first_one_is_not_read_after_a_write, the_greatest, what_is_chosen,
]  # fmt: skip
CASES = [*[(f, POINTS) for f in OF_POINTS], *[(f, X) for f in OF_X]]


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
@pytest.mark.parametrize(("f", "x"), CASES, ids=lambda v: getattr(v, "__name__", ""))
def test_what_a_captured_loop_does_not_use_absorbs_an_infinite_slope(f, x):
    slope = fad.grad(f)
    curve = fad.grad(lambda x: np.sum(V * slope(x)))
    wanted, batch = slope(x), np.stack([x, x + 0.01, 1.1 * x])
    assert np.isfinite(wanted).all()
    with fad.config.use(loops="capture"):
        fast = fad.jit(slope)
        for _ in range(3):
            np.testing.assert_allclose(fast(x), wanted, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fast(1.1 * x), slope(1.1 * x), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fad.grad(fad.jit(f))(x), wanted, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fad.jit(fad.vmap(slope))(batch), fad.vmap(slope)(batch), rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(fad.jit(curve)(x), curve(x), rtol=1e-8, atol=1e-10)
    assert "captured" in fast.explain(), fast.explain()


def test_a_slope_that_is_infinite_in_a_later_call_alone_is_found():
    slope = fad.grad(the_first_one_is_not_read)
    with fad.config.use(loops="capture"), np.errstate(all="ignore"):
        fast = fad.jit(slope)
        for x in (X + 0.1, X + 0.1, X, X, X + 0.2):
            np.testing.assert_allclose(fast(x), slope(x), rtol=1e-9)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_a_zero_that_is_computed_still_meets_the_infinite_slope():
    def f(x):
        r, s = np.sqrt(x), 0.0
        for i in range(len(x)):
            s = s + x[i] * r[i]
        return s

    with fad.config.use(loops="capture"):
        fast = fad.jit(fad.grad(f))
        for _ in range(2):
            np.testing.assert_array_equal(np.isnan(fast(X)), np.isnan(fad.grad(f)(X)))
    assert np.isnan(fad.grad(f)(X)[0])
