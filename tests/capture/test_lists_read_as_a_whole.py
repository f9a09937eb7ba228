"""Lists that loops read as a whole and append to in some steps, in inner loops, or until a value says so."""

import numpy as np
import pytest
from capture.agreement import agree, close, report_of

import fad

X = np.array([0.71, -0.42, 0.33, 0.5])
N = 11


def weigh(p):
    return sum((k + 1) * v for k, v in enumerate(p))


def means_while_it_is_short(x):
    p = [x[0]]
    while len(p) < N:
        p.append(x[1] + 0.5 * np.mean(p) * x[2])
    return weigh(p)


def until_it_is_near_its_mean(x):
    p = [x[0] + 3]
    while abs(p[-1] - np.mean(p)) > 0.5 or len(p) < 4:
        p.append(0.5 * p[-1] + x[1] * 0.1)
    return sum(p) + len(p)


def until_a_break(x):
    p, q = [x[0]], [x[1], x[2]]
    while True:
        p.append(np.sin(sum(p)) + x[len(p) % 4] + np.max(q))
        q.append(0.3 * np.std(p))
        if len(p) > N or np.mean(p) > 9.0:
            break
    return weigh(p) + weigh(q)


def any_place_while_it_is_small(x):
    p, n = [x[0], x[1]], 0
    while p[n // 2] < 3.0 and n < 2 * N:
        p.append(p[n // 2] + 0.3 * p[n] + 0.2)
        n += 1
    return weigh(p) + n


def arrays_while_they_are_small(x):
    p = [x * 1.0]
    while np.sum(p[-1] ** 2) < 30.0:
        p.append(np.mean(p, axis=0) + 1.1 * p[-1] + 0.1)
    return np.sum(np.array(p) * np.arange(len(p))[:, None])


def values_decide_what_is_appended(x):
    p = [x[0]]
    for i in range(N):
        y = np.sin(x[i % 4] * i) + 0.1 * np.mean(p)
        if y > 0.1:
            p.append(y)
            p.append(np.mean(p))
        elif y < -0.2:
            p.append(sum(p) * 0.1)
    return weigh(p) + len(p)


def what_is_far_from_all(x):
    p = [x[0]]
    for i in range(N):
        y = np.sin(3.1 * i) * x[1] + x[i % 4]
        if np.min(np.abs(np.array(p) - y)) < 0.05:
            continue
        p.append(y)
    return weigh(p) * len(p)


def arrays_in_an_if(x):
    p = [x * 1.0]
    for i in range(N):
        y = np.sin(x * i) + 0.1 * np.mean(p, axis=0)
        if np.sum(y) > 0.1:
            p.append(y)
    return np.sum(np.array(p) * np.arange(len(p))[:, None])


def a_loop_over_it(x):
    p = [x[0]]
    for i in range(N):
        s = 0.0
        for q in p:
            s += q * q
        if np.sin(s + i) > 0.0:
            p.append(np.sin(s + x[i % 4]))
    return weigh(p)


def in_an_inner_loop(x):
    p = [x[0]]
    for i in range(4):
        p.append(np.max(p) * 0.3)
        for j in range(3):
            for _ in range(2):
                p.append(x[j] * 0.5 + 0.1 * np.mean(p))
            p.append(p[len(p) // 2] * 0.9)
        if np.sum(p) > i:
            p.append(sum(p) * 0.1)
    return weigh(p)


def in_an_inner_loop_of_any_length(x):
    p = [x * 1.0]
    for i in range(4):
        for j in range(i):
            p.append(np.sin(np.mean(p, axis=0) + j))
    return np.sum(np.array(p) * np.arange(len(p))[:, None])


def an_array_in_an_if_and_an_inner_loop(x):
    p = np.array([x[0]])
    for i in range(4):
        y = np.median(p) + np.sin(i) * x[2]
        if abs(y - p[-1]) > 0.05:
            p = np.append(p, y)
        for j in range(2):
            p = np.append(p, x[j] * 0.5 + 0.1 * np.mean(p))
    return np.sum(p * np.arange(len(p)))


CAPTURED = [
    means_while_it_is_short, until_it_is_near_its_mean, until_a_break, any_place_while_it_is_small,
    arrays_while_they_are_small, values_decide_what_is_appended, what_is_far_from_all, arrays_in_an_if, a_loop_over_it,
    in_an_inner_loop, in_an_inner_loop_of_any_length, an_array_in_an_if_and_an_inner_loop,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_it_is_captured_and_right(f):
    what, text = report_of(f, X)
    assert "captured" in what, text
    assert "step by step" not in text, text
    agree(f, X, order=1)


def what_is_appended_is_written(x):
    p = [x * 1.0]
    for i in range(N):
        y = np.sin(x * i) + 0.1 * np.mean(p, axis=0)
        if np.sum(y) > 0.1:
            p.append(y)
        y[0] = 5.0
    return np.sum(np.array(p) * np.arange(len(p))[:, None])


def an_inner_loop_with_an_if(x):
    p = [x[0]]
    for i in range(4):
        for j in range(3):
            y = np.sin(np.mean(p) + i * j)
            if y > 0.2:
                p.append(y + x[j])
    return weigh(p)


def no_step_at_all(x):
    p = [x[0] + 100]
    while np.mean(p) < 1.0:
        p.append(x[1])
    return weigh(p)


def it_is_returned_from_within(x):
    p = [x[0]]
    while True:
        p.append(np.mean(p) * 0.9 + x[1])
        if len(p) > 9:
            return weigh(p)


@pytest.mark.parametrize(
    "f",
    [what_is_appended_is_written, an_inner_loop_with_an_if, no_step_at_all, it_is_returned_from_within],
    ids=lambda f: f.__name__,
)
def test_other_loops_are_right(f):
    assert "recorded step by step" in report_of(f, X)[1]
    agree(f, X, order=1)


def test_there_may_be_more_steps_than_places_at_first(monkeypatch):
    monkeypatch.setattr("fad.capture.recording.capture._FIRST_CAPACITY", 3)
    monkeypatch.setattr("fad.capture.recording.capture._GROWTH", 2)

    def f(x, n):
        p = [x[0]]
        while len(p) < n:
            p.append(x[1] + 0.5 * np.mean(p))
            if np.sin(p[-1]) > 0.5:
                p.append(0.1 * x[2])
        return weigh(p)

    with fad.config.use(loops="capture"):
        fast, steep = fad.jit(f), fad.jit(fad.grad(f))
        for n in (1, 3, 4, 5, 7, 8, 30):
            close(fast(X, n), f(X, n), n)
            close(steep(X, n), fad.grad(f)(X, n), n)
