"""Functions of one code are captured each by what it calls: closures hold others, and globals change."""

import numpy as np
import pytest

import fad

X = np.linspace(0.1, 1.0, 400)


def short(x):
    return x @ x


def long(x):
    total = 0.0
    for i in range(len(x)):
        total = 0.5 * total + np.sin(x[i]) * total + 0.1
    return total


inner = short


def outer(x):
    return inner(x)


def held(f):
    return lambda x: f(x)


def held_twice(f):
    return held(held(f))


def held_within(f):
    def around(x):
        def call():
            return f(x)

        return call()

    return around


def is_captured(f):
    run = fad.jit(f)
    run(X)
    return "captured" in run.explain()


@pytest.mark.parametrize("make", [held, held_twice, held_within])
@pytest.mark.parametrize("transform", [lambda f: f, fad.grad])
def test_a_closure_is_captured_by_the_function_that_it_holds(make, transform):
    assert not is_captured(transform(make(short)))
    assert is_captured(transform(make(long)))
    assert not is_captured(transform(make(short)))


def test_a_function_is_captured_by_what_a_global_is_now(monkeypatch):
    assert not is_captured(outer)
    monkeypatch.setitem(globals(), "inner", long)
    assert is_captured(outer)


def test_functions_that_call_each_other_without_a_loop_are_left_alone():
    def first(x, n):
        return second(x, n - 1) if n else x @ x

    def second(x, n):
        return first(x, n)

    assert not is_captured(lambda x: first(x, 3))
