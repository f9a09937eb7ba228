"""Attributes and items that are arrays which the steps make longer: ``self.path = np.append(self.path, x)``."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

X = np.array([0.71, -0.42, 0.33])
N = 7


class Walk:
    def __init__(self, x):
        self.x, self.path, self.k = x[0], x * 1.0, 0

    def step(self, h):
        self.x = 0.9 * self.x + h * np.sin(self.path[-1])
        self.path = np.append(self.path, self.x)
        self.k += 1


def in_a_method(x):
    walk = Walk(x)
    for _ in range(N):
        walk.step(x[1])
    return np.sum(walk.path**2) + walk.path[-1] * walk.k


def rows_of_a_dictionary(x):
    log = {"u": np.zeros((1, 3)), "t": np.array([0.0])}
    for i in range(N):
        log["u"] = np.vstack([log["u"], 0.5 * log["u"][-1] + x * i])
        log["t"] = np.concatenate([log["t"], [0.1 * i, x[0]]])
    return np.sum(log["u"] ** 2) * np.sum(log["t"])


def read_as_a_whole(x):
    walk = Walk(x)
    for _ in range(N):
        mean = np.mean(walk.path)
        walk.path = np.append(walk.path, 0.9 * mean + 0.1 * walk.path[len(walk.path) // 2])
        walk.x = walk.x + walk.path.max()
    return np.sum(walk.path) + walk.x


CAPTURED = [in_a_method, rows_of_a_dictionary, read_as_a_whole]


def read_as_it_was(x):
    walk, s = Walk(x), 0.0
    for _ in range(N):
        before = walk.path
        walk.path = np.append(walk.path, 0.9 * walk.path[-1])
        s = s + np.sum(before) + before.shape[0]
    return s


def kept_for_the_next_step(x):
    walk, before, s = Walk(x), x, 0.0
    for _ in range(N):
        s = s + np.sum(before)
        before = walk.path
        walk.path = np.append(walk.path, 0.9 * walk.path[-1])
    return s


def in_an_if_and_an_inner_loop(x):
    walk = Walk(x)
    for i in range(N):
        if walk.x > 0.3:
            walk.path = np.append(walk.path, walk.x)
        for _ in range(i % 2 + 1):
            walk.step(x[1])
    return np.sum(walk.path**2)


def put_back(x):
    walk = Walk(x)
    for i in range(N):
        walk.path = np.append(walk.path, x[i % 3])
        if i == 4:
            walk.path = x
    return np.sum(walk.path**2)


def another_object_has_it(x):
    walk, other = Walk(x), Walk(x)
    for _ in range(N):
        other.path = walk.path
        walk.step(x[2])
    return np.sum(other.path) + np.sum(walk.path)


def two_made_of_one(x):
    walk, s = Walk(x), 0.0
    for _ in range(N):
        other = np.append(walk.path, 3.0)
        walk.path = np.append(walk.path, 0.5 * x[0])
        s = s + np.sum(other)
    return s + np.sum(walk.path)


OTHER = [
    read_as_it_was, kept_for_the_next_step, in_an_if_and_an_inner_loop, put_back, another_object_has_it,
    two_made_of_one,
]  # fmt: skip


@pytest.mark.parametrize("f", CAPTURED, ids=lambda f: f.__name__)
def test_a_loop_that_makes_an_attribute_longer_is_captured(f):
    agree(f, X)
    what, text = report_of(f, X)
    assert "recorded step by step" not in what, text


@pytest.mark.parametrize("f", OTHER, ids=lambda f: f.__name__)
def test_attributes_that_are_read_as_they_were_are_right(f):
    agree(f, X, order=1)
