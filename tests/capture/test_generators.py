"""Loops over generators of the user's, whose code is run with the body of the loop in place of ``yield``."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


def times(n, h):
    t = 0.0
    for k in range(n):
        yield k, t
        t += h


def swinging(angle, speed, n):
    for _ in range(n):
        yield angle, speed
        speed = speed - 0.1 * np.sin(angle)
        angle = angle + 0.1 * speed
    yield angle, speed


def until_small(y, rate):
    while abs(y) > 0.01:
        y = y * rate
        if y > 0.5:
            yield 0.5 * y
        elif y > 0.2:
            continue
        yield y


def both_ways(n):
    yield from range(n)
    yield from times_only(n)


def times_only(n):
    for k in range(n):
        yield k * k


def grid(n):
    for i in range(n):
        for j in range(i):
            yield i, j


def checked(xs):
    for v in xs:
        if v > 5:
            raise ValueError("too large")
        yield v * v


def a_counter_and_its_time(x):
    y = x[0]
    for k, t in times(30, 0.1):
        y = y + 0.1 * (-x[1] * y + np.sin(t)) + 0.001 * k
    return y


def an_energy_along_a_trajectory(x):
    e, peak = 0.0, 0.0
    for angle, speed in swinging(x[0], x[1], 30):
        e += 0.5 * speed**2 + 1 - np.cos(angle)
        if speed > peak:
            peak = speed
    return e + peak + 0.1 * angle


def a_while_loop_that_yields_in_some_ways(x):
    s, n = 0.0, 0
    for v in until_small(x[2], 0.8 + 0.01 * x[3]):
        if v > 0.4:
            continue
        s = s + v * x[0]
        n += 1
    else:
        s = s + x[1]
    return s + 0.1 * n


def handed_on(x):
    s = 0.0
    for k in both_ways(10):
        s = 0.9 * s + x[0] * np.sin(0.1 * k)
    return s


def pairs_of_places(x):
    m = np.outer(x, x)
    for i, j in grid(5):
        m[i, j] = 0.5 * m[i - 1, j] + 0.1 * m[i, j]
    return np.sum(m**2)


def lists_of_what_it_yields(x):
    angles, speeds = [], [x[4]]
    for angle, speed in swinging(x[0], x[1], 30):
        angles.append(angle)
        speeds.append(0.5 * speeds[-1] + speed)
    return sum(angles) + np.sum(np.array(speeds) ** 2)


class Pendulum:
    def __init__(self, angle):
        self.angle, self.speed = angle, 0.0

    def steps(self, n, h=0.1):
        for _ in range(n):
            self.speed -= h * np.sin(self.angle)
            self.angle += h * self.speed
            yield self.angle


def of_a_method(x):
    p, s = Pendulum(x[0]), 0.0
    for angle in p.steps(30):
        s += angle * x[1]
    return s + p.speed


def within_a_loop(x):
    s = 0.0
    for i in range(6):
        t = 0.1 * i
        for v in checked(x):
            t = 0.5 * t + v
        s = s + t * t
    return s


def one_of_its_own_within(x):
    scale = x[0] * 2

    def scaled(n):
        nonlocal scale
        for k in range(n):
            scale = 0.9 * scale
            yield scale * x[k % 5]

    s = 0.0
    for v in scaled(30):
        s = s + v
    return s * scale


CAPTURED = [
    a_counter_and_its_time, an_energy_along_a_trajectory, a_while_loop_that_yields_in_some_ways, handed_on,
    pairs_of_places, lists_of_what_it_yields, of_a_method, within_a_loop,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_over_a_generator_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree(f, X, 0.7 * X, 0.4 * X)


def stops_early(x):
    s = 0.0
    for angle, speed in swinging(x[0], x[1], 30):
        s = s + angle * speed
        if s < -0.5:
            break
    return s


def a_generator_that_is_kept(x):
    s, g = 0.0, times(20, 0.1)
    for _, t in g:
        s = s + x[0] * t
    return s + len(list(g))


def guarded(xs):
    for v in xs:
        try:
            yield v
        finally:
            v = 0.0


def one_with_a_handler(x):
    s = 0.0
    for v in guarded(x):
        s = 0.5 * s + v
    return s


def asking(n):
    got = 0.0
    for k in range(n):
        got = (yield k * got) or 0.5


def one_that_takes_values(x):
    s = 0.0
    for v in asking(20):
        s = s + v * x[0]
    return s


def two_at_once(x):
    s = 0.0
    for (k, t), v in zip(times(20, 0.1), checked(np.tile(x, 4)), strict=True):
        s = s + k * t * v
    return s


@pytest.mark.parametrize(
    "f",
    [
        stops_early, a_generator_that_is_kept, one_with_a_handler, one_that_takes_values, two_at_once,
        one_of_its_own_within,
    ],
    ids=lambda f: f.__name__,
)  # fmt: skip
def test_another_loop_over_a_generator_is_right(f):
    agree(f, X)


def test_an_error_of_the_generator_or_of_the_body_is_the_users():
    def f(x):
        s = 0.0
        for v in checked(x):
            if v > 4:
                raise ArithmeticError("large")
            s = s + v
        return s

    fast, steep = fad.jit(f), fad.jit(fad.grad(f))
    for _ in range(2):
        for g, plain in ((fast, f), (steep, fad.grad(f))):
            with fad.config.use(loops="capture"):
                np.testing.assert_allclose(g(X), plain(X))
                with pytest.raises(ValueError, match="too large"):
                    g(X + 10.0)
                with pytest.raises(ArithmeticError, match="large"):
                    g(X - 3.0)


def test_code_of_a_generator_runs_in_the_order_of_pythons():
    seen = []

    def counted(n):
        seen.append("begin")
        for k in range(n):
            seen.append(f"yield {k}")
            yield k
        seen.append("end")

    def f(x):
        for k in counted(2):
            seen.append(f"body {k}")
            x = x * 1.5
        seen.append("behind")
        return np.sum(x)

    fad.jit(f)(X)
    assert seen == ["begin", "yield 0", "body 0", "yield 1", "body 1", "end", "behind"]
