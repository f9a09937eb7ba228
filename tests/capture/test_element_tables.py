"""Loops that read elements of lists, tuples and dictionaries by places that they compute, or run over such lists."""

import itertools
import warnings
from typing import Any, NamedTuple

import numpy as np
import pytest
from agreement import report_of

import fad

N = 40
X = np.random.default_rng(0).normal(size=20) * 0.5
PLAIN = [np.array([np.sin(k), np.cos(k)]) for k in range(N)]


class Planet(NamedTuple):
    mass: Any
    place: Any


def arrays_by_a_quotient(x):
    xs, s = [x[:3] * k for k in range(5)], 0.0
    for i in range(N):
        s = 0.9 * s + np.sum(xs[i // 8] * xs[-(i % 5) - 1])
    return s


def rows_of_arrays_and_numbers(x):
    rows, s = [(x[k : k + 2], k, (0.5, x[k])) for k in range(4)], 0.0
    for i in range(N):
        v, k, (a, b) = rows[i % 4]
        s = 0.9 * s + np.sum(v) * k * a * b
    return s


def a_dictionary_by_its_keys(x):
    d, s = {k: x[k] for k in range(3, 9)}, 0.0
    for i in range(N):
        s = 0.9 * s + d[i % 6 + 3] * d[8 - i % 6]
    return s


def dictionaries_in_a_list(x):
    rows, s = [{"a": x[k], "b": k} for k in range(4)], 0.0
    for i in range(N):
        s = 0.9 * s + rows[i % 4]["a"] * rows[(i + 1) % 4]["b"]
    return s


def named_tuples(x):
    rows, s = [Planet(x[k], x[k : k + 2]) for k in range(4)], 0.0
    for i in range(N):
        planet = rows[i % 4]
        s = 0.9 * s + planet.mass * np.sum(planet.place)
    return s


def a_tuple_of_tuples(x):
    t, s = ((x[0], x[1]), (x[2], x[3])), 0.0
    for i in range(N):
        s = 0.9 * s + t[i % 2][(i + 1) % 2]
    return s


def made_in_the_step(x):
    s = x[0]
    for _ in range(10):
        stages = [x * s, x + 1.0, x - 1.0]
        for j in range(9):
            s = s + 0.001 * np.sum(stages[j % 3])
    return s


def bound_by_a_constant_place(x):
    xs, s = [x[:3], x[3:6] * 2.0], 0.0
    for i in range(N):
        xs[1] = xs[1] * 0.9
        s = s + np.sum(xs[i % 2])
    return s


def written_by_another_name(x):
    a = x * 2.0
    xs, s = [x * 1.0, a], 0.0
    for i in range(N):
        a[i % 20] = s * 0.01
        s = s + np.sum(xs[i % 2])
    return s


def until_it_is_large(x):
    xs, s, i = [x * k for k in range(5)], x[0], 0
    while True:
        s = s + 0.01 * np.sum(xs[i % 5] ** 2)
        i += 1
        if s > 3.0 or i > 500:
            break
    return s * i


def over_arrays(x):
    s = np.zeros(3)
    for z in [x[:3] * k for k in range(N)]:
        s = 0.9 * s + z * x[0]
    return np.sum(s**2)


def over_plain_arrays(x):
    m, p = x[:2], np.eye(2)
    for z in PLAIN:
        p = 0.9 * p + 0.1 * np.outer(m, m)
        m = m + p @ (z - m) * 0.1
    return np.sum(m)


def over_rows_with_arrays(x):
    s = 0.0
    for v, k, w in [(x[:3] * k, k, 0.5 * k) for k in range(N)]:
        s = 0.99 * s + np.sum(v) * k * w
    return s


def over_two_lists(x):
    zs, ws, s = [x[:3] * k for k in range(N)], [x[1:4] + k for k in range(N)], 0.0
    for z, w in zip(zs, ws, strict=True):
        s = s * 0.5 + z @ w
    for a, b in itertools.pairwise(zs):
        s = s * 0.5 + a @ b
    return s


def the_one_before(x):
    prev, s = x[3:6], 0.0
    for z in [x[:3] * k for k in range(N)]:
        s = s + z @ prev
        prev = z
    return s


def the_best(x):
    zs = [x[:3] * k for k in range(N)]
    best = zs[0]
    for z in zs:
        if z[0] > best[0]:
            best = z
    return np.sum(best * x[:3])


CAPTURED = [
    arrays_by_a_quotient, rows_of_arrays_and_numbers, a_dictionary_by_its_keys, dictionaries_in_a_list,
    named_tuples, a_tuple_of_tuples, made_in_the_step, bound_by_a_constant_place, written_by_another_name,
    until_it_is_large, over_arrays, over_plain_arrays, over_rows_with_arrays, over_two_lists, the_one_before, the_best,
]  # fmt: skip


def compare(f, loops):
    slope = fad.grad(f)
    curve = fad.grad(lambda x: np.sum(slope(x) * np.cos(x)))
    batch = np.stack([X, X * 1.1])
    with fad.config.use(loops=loops), warnings.catch_warnings():
        warnings.simplefilter("ignore", fad.errors.LoopFallbackWarning)
        fast, steep = fad.jit(f), fad.jit(slope)
        for x in (X, X, X * 1.1):
            value = fast(x.copy())
            np.testing.assert_allclose(value, f(x.copy()), rtol=1e-10)
            assert type(value) is type(f(x.copy()))
            np.testing.assert_allclose(steep(x), slope(x), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(fad.jit(fad.vmap(slope))(batch), fad.vmap(slope)(batch), rtol=1e-8, atol=1e-10)
        np.testing.assert_allclose(fad.jit(curve)(X), curve(X), rtol=1e-7, atol=1e-9)


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_over_elements_is_captured_and_gives_what_python_gives(f):
    compare(f, "capture")
    report, text = report_of(f, X)
    assert set(report) <= {"captured", "inside"}, text


def an_element_is_written_by_a_counter(x):
    xs = [x * k for k in range(5)]
    for i in range(N):
        xs[i % 5][i % 20] += 0.1
    return sum(np.sum(v**2) for v in xs)


def an_element_is_written_by_a_constant(x):
    xs, s = [x * k for k in range(5)], 0.0
    for i in range(N):
        xs[1][0] += 0.1
        s = s + np.sum(xs[i % 5])
    return s


def the_last_one_is_written_behind_the_loop(x):
    xs = [x * k for k in range(5)]
    for i in range(N):
        cur = xs[i % 5]
    cur[0] = 7.0
    return np.sum(xs[4]) + np.sum(cur)


def the_best_is_written_behind_the_loop(x):
    xs = [x * k for k in range(5)]
    best = xs[0]
    for i in range(N):
        if np.sum(xs[(i * 7) % 5]) > np.sum(best):
            best = xs[(i * 7) % 5]
    best[0] = 7.0
    return np.sum(xs[4]) + np.sum(xs[0]) + np.sum(best)


def elements_are_written_behind_the_loop(x):
    zs = [x[:3] * k for k in range(N)]
    best = zs[0]
    for z in zs:
        if z[0] > best[0]:
            best = z
    zs[0][0] = zs[-1][0] = 100.0
    return np.sum(best * x[:3])


def elements_are_appended_and_written(x):
    xs, out = [x * k for k in range(5)], []
    for i in range(N):
        out.append(xs[i % 5])
    xs[0][0] = 3.0
    return sum(np.sum(v) for v in out)


def an_item_of_an_element_is_bound(x):
    rows, s = [{"a": x[k], "b": k * 1.0} for k in range(4)], 0.0
    for i in range(N):
        rows[i % 4]["a"] += 0.1
        s = 0.9 * s + rows[(i + 1) % 4]["a"]
    return s


def which_element_it_is(x):
    rows, s = [{"a": x[k]} for k in range(4)], 0.0
    for i in range(N):
        s = 0.9 * s + (x[0] if rows[i % 4] is rows[0] else rows[i % 4]["a"])
    return s


def the_array_that_the_loop_runs_over_is_written(x):
    zs, s = [x[:3] * k for k in range(N)], 0.0
    for z in zs:
        z[0] = 1.0
        s = s + np.sum(z)
    return s + sum(np.sum(z) for z in zs)


def another_element_is_written(x):
    zs, s = [x[:3] * k for k in range(N)], 0.0
    for z in zs:
        zs[-1][0] = s
        s = s * 0.5 + np.sum(z)
    return s


LEFT = [
    an_element_is_written_by_a_counter, an_element_is_written_by_a_constant, the_last_one_is_written_behind_the_loop,
    the_best_is_written_behind_the_loop, elements_are_written_behind_the_loop, elements_are_appended_and_written,
    an_item_of_an_element_is_bound, which_element_it_is, the_array_that_the_loop_runs_over_is_written,
    another_element_is_written,
]  # fmt: skip


@pytest.mark.parametrize("loops", ["capture", "auto"])
@pytest.mark.parametrize("f", LEFT, ids=lambda f: f.__name__)
def test_what_is_written_into_an_element_is_seen_in_its_list(f, loops):
    compare(f, loops)


def test_an_element_that_is_not_there_is_pythons_error():
    def of_list(x, n):
        xs, s = [x * 1.0, x * 2.0], 0.0
        for i in range(N):
            s = s + np.sum(xs[i // n])
        return s

    def of_dict(x, n):
        d, s = {1: x * 1.0, 2: x * 2.0}, 0.0
        for i in range(N):
            s = s + np.sum(d[2 - i // n])
        return s

    with fad.config.use(loops="capture"):
        for f, error in ((of_list, IndexError), (of_dict, KeyError)):
            fast = fad.jit(f)
            np.testing.assert_allclose(fast(X, np.int64(20)), f(X, 20))
            for _ in range(2):
                with pytest.raises(error):
                    fast(X, np.int64(19))
            np.testing.assert_allclose(fast(X, np.int64(20)), f(X, 20))


def test_elements_from_outside_are_read_again_once_they_have_changed():
    outside = [np.arange(3.0), np.ones(3), np.full(3, 2.0)]

    def f(x):
        s = 0.0
        for i in range(N):
            s = 0.9 * s + outside[i % 3] @ x[:3]
        return s

    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        np.testing.assert_allclose([fast(X), fast(X)], f(X))
        outside[1][0] = 5.0
        np.testing.assert_allclose([fast(X), fast(X)], f(X))
        outside[2] = outside[2] * 3.0
        np.testing.assert_allclose([fast(X), fast(X)], f(X))


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.complex128])
def test_elements_keep_their_dtype(dtype):
    def f(x):
        xs, s = [(x[:3] * 10).astype(dtype) * dtype(k) for k in range(4)], dtype(0)
        for i in range(N):
            s = s + xs[i % 4][1]
        return s

    with fad.config.use(loops="capture"):
        for _ in range(2):
            found, wanted = fad.jit(f)(X), f(X)
            np.testing.assert_allclose(found, wanted, rtol=1e-5)
            assert found.dtype == wanted.dtype
