"""Whether reshape gives a view or a copy depends on how an argument lies in memory: programs that write through it."""

import numpy as np
import pytest

import fad

A = np.arange(6.0).reshape(2, 3)


def through_ravel(x):
    x.ravel()[0] = 7.0
    return x


def through_reshape(x):
    y = x.reshape(-1)
    y *= 2.0
    return x, y


def after_a_write(x):
    x[0] = 1.0
    x.ravel()[1] = 5.0
    return x


def after_an_operator(x):
    x += x
    y = np.ascontiguousarray(x)
    x[0] = -y[1]
    return x, y


def of_a_result(x):
    y = x * 2.0
    y.reshape(-1)[0] = 7.0
    return y


def of_a_new_array(x):
    y = np.zeros_like(x)
    y.ravel()[:] = x.ravel()
    return y


def by_flags(x):
    return x if x.flags.c_contiguous else 2.0 * x


def by_strides(x):
    return x * (1.0 if x.strides[0] > x.strides[-1] else 2.0)


def by_shared_memory(x):
    return x * (1.0 if np.shares_memory(x, x.reshape(-1)) else 2.0)


def in_the_order_of_memory(x):
    return x.ravel("A")


def layouts():
    wide, wider = np.arange(24.0).reshape(4, 6), np.arange(24.0).reshape(4, 6)
    arrays = [A.copy(), np.asfortranarray(A), wide[::2, ::2], A[::-1].copy()[::-1], A.copy(), wider[:2, :3]]
    return [*arrays, np.asfortranarray(A)]


PROGRAMS = [
    through_ravel, through_reshape, after_a_write, after_an_operator, of_a_result, of_a_new_array, by_flags, by_strides,
    by_shared_memory, in_the_order_of_memory,
]  # fmt: skip


@pytest.mark.parametrize("f", PROGRAMS)
def test_every_call_follows_the_layout_of_its_own_argument(f):
    fast, slope = fad.jit(f), fad.jit(fad.grad(lambda x: np.sum(np.sin(fad.tree.leaves(f(x))[0]))))
    for _ in range(2):
        for plain, x, y in zip(layouts(), layouts(), layouts(), strict=True):
            for got, want in zip(*map(fad.tree.leaves, (fast(x), f(plain))), strict=True):
                np.testing.assert_array_equal(got, want)
            want = fad.grad(lambda x: np.sum(np.sin(fad.tree.leaves(f(x))[0])))(y)
            np.testing.assert_allclose(slope(y), want, rtol=1e-13)


@pytest.mark.parametrize("f", [lambda x: x.reshape(-1) * 2.0, lambda x: np.ravel(x) + 1.0, lambda x: x.T.reshape(2, 3)])
def test_programs_that_do_not_write_have_one_recording_for_all_layouts(f):
    fast = fad.jit(f)
    for x in layouts():
        np.testing.assert_array_equal(fast(x), f(x))
    assert fast.cache_info().misses == 1


def test_a_layout_is_a_signature_where_it_matters():
    fast = fad.jit(through_ravel)
    for _ in range(3):
        for x in (A, np.asfortranarray(A)):
            fast(x)
    assert fast.cache_info() == (4, 2, 2, 2)
    assert fast.explain().count("operations recorded") == 2
