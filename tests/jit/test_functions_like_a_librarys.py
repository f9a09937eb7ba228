"""A function that functools.wraps made like one of a library's is the user's: what it finds by name may change."""

import functools
from types import SimpleNamespace

import numpy as np

import fad

SETTINGS = SimpleNamespace(scale=2.0)
factor = 2.0


def scaled(target):
    @functools.wraps(target)
    def wrapped(x):
        return target(x) * SETTINGS.scale * factor

    return wrapped


sine, total = scaled(np.sin), scaled(np.sum)


def test_what_it_reads_is_read_again(monkeypatch):
    f, g = fad.jit(lambda x: sine(x) + total(x)), fad.jit(fad.grad(lambda x: sine(x)))

    def check(by):
        np.testing.assert_allclose([f(1.0), g(1.0)], [by * (np.sin(1.0) + 1.0), by * np.cos(1.0)])

    check(4.0)
    check(4.0)
    monkeypatch.setattr(SETTINGS, "scale", 3.0)
    check(6.0)
    monkeypatch.setitem(globals(), "factor", 1.0)
    check(3.0)


def test_its_branches_are_taken_anew_in_a_loop():
    @functools.wraps(np.sin)
    def bend(x):
        return np.sin(x) if x > 0 else 2 * x

    def program(x):
        for _ in range(30):
            x = bend(x) * 0.7
        return x

    compiled = fad.jit(program)
    for x in (1.0, -1.0, 1.0):
        np.testing.assert_allclose(compiled(x), program(x), rtol=1e-12)


def test_traced_values_that_it_holds_reach_a_rule():
    def at(a):
        @functools.wraps(np.sin)
        def shifted(x):
            return np.sin(x) * a

        return fad.scan(lambda c, x: (c + shifted(x), c), 0.0, np.ones(3))[0]

    np.testing.assert_allclose(fad.grad(at)(2.0), 3 * np.sin(1.0))
