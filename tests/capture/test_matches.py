"""``match`` statements in captured loops, and those that are left to Python."""

import enum

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad

X = np.array([0.71, -0.42, 1.13, 0.33, 0.89])


class Rule(enum.Enum):
    EULER = 1
    MIDPOINT = 2


def by_the_counter(x):
    s = 0.1
    for i in range(30):
        match i % 4:
            case 0:
                s = s + 0.1 * np.sin(x[i % 5])
            case 1 | 3:
                s = s * x[0]
            case _:
                s = s - 0.05 * s * s
    return s


def with_guards(x):
    s, n = 0.0, 0
    for i in range(30):
        v = x[i % 5] * np.cos(s)
        match i % 3:
            case 0 if v > 0.3:
                s = s + v
                n += 1
            case 0 | 1 if v < 0.0:
                s = s - 0.5 * v
            case 2:
                continue
        s = 0.9 * s + 0.1
    return s + 0.1 * n


def binding_the_subject(x):
    s = 0.0
    for i in range(20):
        match (i * i) % 7:
            case 0 | 1 as k:
                s = s + k * x[0]
            case other:
                s = 0.5 * s + 0.1 * other * x[2]
    return s


def jumping(x):
    s = x[0]
    for i in range(40):
        match i % 5:
            case 0:
                continue
            case 3 if s > 30.0:
                break
            case 4 if s < -50.0:
                return s * 2
        s = s * 1.1 + x[i % 5]
    else:
        s = -s
    return s


def step_by(rule, v, h):
    match rule:
        case Rule.EULER:
            return v - h * v
        case Rule.MIDPOINT:
            return v - h * (v - 0.5 * h * v)
        case _:
            raise ValueError(rule)


def by_a_constant(x):
    u, name = x * 1.0, "two"
    for _ in range(20):
        u = step_by(Rule.MIDPOINT, step_by(Rule.EULER, u, 0.02), 0.01)
        match name:
            case "one":
                u = u + 1.0
            case "two" | "three":
                u[0] = u[1] * 0.5
    return np.sum(u**2)


def asking_in_a_while_loop(x):
    u, k = x * 1.0, 0
    while True:
        k += 1
        match k:
            case 25:
                break
            case 3 | 6 | 9:
                u = np.sin(u)
            case None:
                u = u * 0.0
        u = 0.95 * u
    return np.sum(u) + 0.1 * k


def looking_into_a_tuple(x):
    s, k = 0.1, 7
    for i in range(30):
        match i % 2, i % 3, x[i % 5]:
            case 0, 0, _:
                s = s + 0.1
            case 0, 1 | 2 as k, v if v > 0.3:
                s = s + k * v
            case (1, _):
                s = 0.0
            case (_, n, v):
                s = 0.5 * s - n * v
        s = s + 0.01 * k
    return s


def asking_what_it_has_bound(x):
    s = 0.0
    for i in range(20):
        match i % 4:
            case k if k > 2:
                s = s + k * x[0]
            case _:
                s = s + x[1] * k
    return s


CAPTURED = [
    by_the_counter, with_guards, binding_the_subject, jumping, by_a_constant, asking_in_a_while_loop,
    looking_into_a_tuple, asking_what_it_has_bound,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_match_that_compares_is_captured(f):
    what, text = report_of(f, X)
    assert set(what) == {"captured"}, text
    agree(f, X, 0.7 * X, 0.4 * X)


def looking_into_the_subject(x):
    s = 0.0
    for i in range(20):
        pair = i % 2, x[i % 5]
        match pair:
            case 0, v:
                s = s + v
            case _, v:
                s = s - 0.5 * v
    return s


@pytest.mark.parametrize("f", [looking_into_the_subject], ids=lambda f: f.__name__)
def test_another_match_is_left_to_python(f):
    assert "it has match" in report_of(f, X)[1]
    agree(f, X)


def test_a_subject_is_evaluated_once_and_compared_in_order():
    seen = []

    class Word(str):
        def __eq__(self, other):
            seen.append(other)
            return str(self) == other

        __hash__ = str.__hash__

    def word():
        seen.append("word")
        return Word("c")

    def f(x):
        for _ in range(3):
            match word():
                case "a" | "b":
                    x = x + 1.0
                case "c":
                    x = x * 2.0
                case "d":
                    x = x - 1.0
        return np.sum(x)

    assert fad.jit(f)(X) == pytest.approx(np.sum(X) * 8.0)
    assert seen == ["word", "a", "b", "c"] * 3
