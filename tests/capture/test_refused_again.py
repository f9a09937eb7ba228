"""Loops that could not be captured the last times that they were met: when they are tried again, and when not."""

import numpy as np
import pytest
from capture.agreement import agree, report_of

import fad
from fad.capture.recording.capture import Capture

X = np.linspace(0.5, 1.5, 20)


@pytest.fixture
def tried(monkeypatch):
    """Return a list of the lines of the loops that are tried."""
    lines, prepare = [], Capture.prepare

    def note(self, *args):
        lines.append(self.site.line)
        return prepare(self, *args)

    monkeypatch.setattr(Capture, "prepare", note)
    return lines


def a_table_of_integers_is_filled(x):
    table = np.zeros((20, 20), dtype=int)
    for i in range(20):
        for j in range(i + 1, 20):
            for k in range(i, j):
                table[i, j] = max(table[i, j], table[i, k] + k % 3)
    return np.sum(np.cumsum(x) * table[0])


def a_table_of_constants_is_filled(x):
    table = np.zeros((20, 20))
    for i in range(20):
        for j in range(i + 1, 20):
            for k in range(i, j):
                table[i, j] = max(table[i, j], table[i, k] + 0.5 * k)
    return np.sum(np.cumsum(x) * table[0])


@pytest.mark.parametrize("f", [a_table_of_integers_is_filled, a_table_of_constants_is_filled])
def test_a_short_loop_that_is_refused_again_and_again_is_no_longer_tried(f, tried):
    fad.jit(fad.grad(f))(X)
    inner = f.__code__.co_firstlineno + 4
    assert 1 <= tried.count(inner) < 40  # of 190 times that it is met
    agree(f, X)


def decay(x, steps):
    for _ in range(steps):
        x = x - 0.001 * x * x
    return x


def a_loop_is_traced_only_in_the_end(x):
    start = 1.0
    for k in [3, 5, 7, 9, 11, 13, 15, 17, 19, 21, 23, 25]:
        start = start + decay(0.1 * k, 30)
    return np.sum(decay(x * start, 5000))


def test_a_long_loop_is_tried_whatever_became_of_it_before():
    assert "captured" in report_of(a_loop_is_traced_only_in_the_end, X, loops="auto")[0]
