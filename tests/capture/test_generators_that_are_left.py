"""Loops that end before their generator does: by break or return, or because zip or islice takes no more of it."""

import itertools

import numpy as np
import pytest
from capture.agreement import agree_briefly, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def swinging(angle, speed, h=0.1):
    while True:
        yield angle, speed
        speed = speed - h * np.sin(angle)
        angle = angle + h * speed


def decaying(v, n, rate=0.9):
    for _ in range(n):
        yield v
        v = v * rate


def in_two_parts(v):
    yield v
    for k in range(20):
        v = 0.9 * v
        if k < 30:
            yield v
    yield 2.0 * v


class Pendulum:
    def __init__(self, angle):
        self.angle, self.speed, self.steps = angle, 0.0, 0

    def __iter__(self):
        while True:
            self.speed -= 0.1 * np.sin(self.angle)
            self.angle += 0.1 * self.speed
            self.steps += 1
            yield self.angle


def broken(x):
    s, angle = 0.0, x[4]
    for angle, speed in swinging(x[0], x[1]):
        s = s + speed**2
        if angle < -0.3:
            break
    return s + angle


def broken_with_a_list(x):
    angles = []
    for angle, _ in swinging(x[0], x[1]):
        angles.append(angle)
        if angle < -0.3:
            break
    return np.mean(np.array(angles)) * len(angles)


def broken_by_the_number(x):
    s = 0.0
    for i, v in enumerate(decaying(x[0], 100)):
        if i % 3 == 1:
            continue
        s = s + i * v
        if i == 20:
            break
    return s


def with_else(x):
    s = 0.0
    for v in decaying(x[0], 25):
        s = s + v
        if s > 6.5:
            break
    else:
        s = s * x[1]
    for v in decaying(x[2], 25):
        s = s + v
        if s > 9.0:
            break
    else:
        s = s * x[3]
    return s


def returning(x):
    for i, (angle, speed) in enumerate(swinging(x[0], x[1])):
        if angle < -0.3:
            return speed * i
    return x[0]


def of_a_generator_that_goes_on_behind_its_loop(x):
    s = 0.0
    for v in in_two_parts(x[0]):
        s = s + v
        if s > 20.0:
            break
    for v in in_two_parts(x[2]):
        s = s + v
        if v < 0.3:
            break
    return s


def of_an_object(x):
    p, s = Pendulum(x[0]), 0.0
    for angle in p:
        s = s + angle**2
        if p.steps >= 25 or s > 100.0:
            break
    return s + p.speed


def beside_numbers(x):
    s = 0.0
    for t, (angle, _) in zip(np.linspace(0.0, 1.0, 25), swinging(x[0], x[1])):  # noqa: B905
        s = s + t * angle
    for v, i, w in zip(decaying(x[2], 20), range(30), np.linspace(0.0, 1.0, 22)):  # noqa: B905
        s = s + i * v * w
    return s


def sliced(x):
    s = 0.0
    for angle, speed in itertools.islice(swinging(x[0], x[1]), 25):
        s = s + angle * speed
    for v in itertools.islice(decaying(x[2], 50), 4, 40, 3):
        s = s + v
    for v in itertools.takewhile(lambda v: v > 0.1, decaying(x[4], 50)):
        s = s + 0.1 * v
    return s


def within_a_loop(x):
    s = 0.0
    for k in range(12):
        for angle, _ in swinging(x[0], 0.1 * k):
            s = s + 0.01 * angle
            if angle < 0.1 or angle > 2.0:
                break
        for v in itertools.islice(decaying(s, 50), 5):
            s = s + 0.1 * x[k % 5] * v
    return s


def with_else_within_a_loop(x):
    s = 0.0
    for k in range(12):
        for v in itertools.islice(decaying(x[0], 50), 9):
            s = s + v
            if s > 12.0 + k:
                break
        else:
            s = 0.9 * s
    return s


def find_angle(x, least):
    for i, (angle, speed) in enumerate(swinging(x[0], x[2])):
        if angle > least:
            return speed * i
        if i == 12:
            break
    return x[2]


def a_function_that_returns_from_one(x):
    s = 0.0
    for k in range(12):
        s = 0.5 * s + find_angle(x, 0.6 + 0.1 * k)
    return s


def raising(x):
    s = 0.0
    for angle, _ in swinging(x[0], x[1]):
        if abs(angle) > 50.0:
            raise ValueError("turned over")
        s = s + angle**2
        if s > 5.0:
            break
    return s


def given_to_functions(x):
    listed, found = list(decaying(x[0], 25)), sum(decaying(x[2], 30))
    first = list(itertools.islice(swinging(x[0], x[1]), 20))
    sums = list(itertools.accumulate(range(20), lambda y, i: y + 0.1 * np.sin(i * y), initial=x[3] + 1.0))
    large = max(decaying(x[4], 20)) + sum(itertools.takewhile(lambda v: v > 0.2, decaying(x[2], 50)))
    return np.sum(np.array(listed) ** 2) + found + first[-1][0] + sums[-1] + large


CAPTURED = [
    broken, broken_with_a_list, broken_by_the_number, with_else, returning, of_a_generator_that_goes_on_behind_its_loop,
    of_an_object, beside_numbers, sliced, within_a_loop, raising, given_to_functions,
    with_else_within_a_loop, a_function_that_returns_from_one,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_leaves_a_generator_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree_briefly(f, X)


def test_a_generator_is_drawn_from_as_often_as_in_python():
    def f(x):
        drawn = [0]

        def counted(v):
            while True:
                drawn[0] += 1
                yield v
                v = v * 0.9

        for u, _ in zip(counted(x), range(20)):  # noqa: B007, B905
            pass
        for _, v in zip(range(20), counted(u)):  # noqa: B007, B905
            pass
        for w in itertools.islice(counted(v), 2, 20, 5):  # noqa: B007
            pass
        for v in counted(w):
            if v < 1e-3:
                break
        return v * drawn[0]

    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        for x in (0.7, 0.7, 0.9):
            np.testing.assert_allclose(fast(np.float64(x)), f(np.float64(x)))


def test_errors_of_the_body_are_the_users_though_it_breaks_off():
    def f(x):
        s = 0.0
        for v in decaying(x, 50, 1.1):
            if s > 10.0:
                raise ArithmeticError("large")
            s = s + v
            if v < -1.0:
                break
        return s

    with fad.config.use(loops="capture"):
        fast = fad.jit(f)
        for _ in range(2):
            np.testing.assert_allclose(fast(np.float64(-0.2)), f(-0.2))
            with pytest.raises(ArithmeticError, match="large"):
                fast(np.float64(0.5))
