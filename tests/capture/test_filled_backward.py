"""Lists and dictionaries that loops fill from the end, and those in front of whose elements they put others."""

import collections

import numpy as np
import pytest
from capture.agreement import agree_briefly, report_of

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])
N = 20


def a_smoother(x):
    ms, m = [], x
    for y in np.sin(np.arange(N)):
        m = 0.9 * m + 0.1 * y
        ms.append(m)
    out = [None] * N
    out[-1] = ms[-1]
    for t in range(N - 2, -1, -1):
        out[t] = ms[t] + 0.5 * (out[t + 1] - 0.9 * ms[t])
    return np.sum(np.stack(out) ** 2) + len(out)


def two_behind(x):
    v = [None] * (N + 2)
    v[N], v[-1] = x, 0.5 * x
    for t in reversed(range(N)):
        v[t] = 0.5 * v[t + 1] + 0.4 * np.sin(v[t + 2]) + 0.01 * v[-1]
    return np.sum(v[0] * v[N // 2])


def numbers(x):
    k = [0.0] * (N + 1)
    k[N] = x[0]
    for t in range(N - 1, -1, -1):
        k[t] = 0.9 * k[t + 1] + 0.1 * np.sin(t * x[1])
    return k[0] * k[N // 2]


def values_and_policies(x):
    v, best = [None] * (N + 1), [None] * N
    v[N] = x
    for t in reversed(range(N)):
        q = np.stack([0.9 * v[t + 1], 0.5 * np.roll(v[t + 1], 1) + 0.1])
        best[t], v[t] = np.argmax(q, axis=0), np.max(q, axis=0)
    return np.sum(v[0]) + np.sum(np.array(best))


def a_dictionary(x):
    v = {N: x, N - 1: 0.5 * x}
    for t in range(N - 2, 4, -1):
        v[t] = 0.5 * v[t + 1] + 0.4 * v[t + 2]
    assert list(v) == list(range(N, 4, -1))
    return np.sum(v[5] * v[N // 2])


def inserted(x):
    us = [x]
    for t in range(N):
        us.insert(0, 0.9 * us[0] + 0.1 * np.sin(t) + 0.01 * us[-1])
    us.insert(0, us.pop())
    return np.sum(us[0] * us[1] + us[7]) * len(us)


def in_front_of_a_deque(x):
    us, ts = collections.deque([x, 2 * x]), collections.deque()
    for _ in range(N):
        us.appendleft(0.6 * us[0] + 0.3 * us[1])
        ts.appendleft(len(us))
    return np.sum(us[0] * us[3]) + sum(ts) + 0.1 * ts[2]


def in_front_in_some_steps(x):
    us = [x[0]]
    for t in range(N):
        if np.sin(t) > 0.0:
            us.insert(0, 0.9 * us[0] + x[t % 5])
    return np.sum(np.array(us) * np.arange(len(us)))


CAPTURED = [
    a_smoother, two_behind, numbers, values_and_policies, a_dictionary, inserted, in_front_of_a_deque,
    in_front_in_some_steps,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_from_the_end_to_the_beginning_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree_briefly(f, X)


def every_other(x):
    v = [None] * (N + 1)
    v[N] = x
    for t in range(N - 2, -1, -2):
        v[t] = 0.9 * v[t + 2]
    return np.sum(v[0] * v[N // 2])


def one_that_is_not_there_yet(x):
    v = [0.1 * x] * (N + 1)
    for t in range(N - 1, -1, -1):
        v[t] = 0.9 * v[t + 1] + 0.1 * v[t - 1]
    return np.sum(v[0] * v[N // 2])


def behind_the_first(x):
    us = [x]
    for t in range(N):
        us.insert(1, 0.9 * us[0] + t)
    return np.sum(us[0] * us[1] + us[-1])


def a_queue(x):
    us = collections.deque([x])
    for _ in range(5):
        us.appendleft(0.9 * us[0])
        us.appendleft(0.8 * us[0])
        us.pop()
    return np.sum(us[0] * us[-1])


def another_name(x):
    us = [x]
    kept = us
    for _ in range(5):
        us.insert(0, 0.9 * us[0])
        x = x + kept[-1] + kept[0]
    return np.sum(us[0] * us[-1]) + np.sum(x)


OTHERS = [every_other, one_that_is_not_there_yet, behind_the_first, a_queue, another_name]


@pytest.mark.parametrize("f", OTHERS, ids=lambda f: f.__name__)
def test_another_loop_is_right(f):
    agree_briefly(f, X)
