"""What a branch gives back may be an array that the program knows: a write into one is one into the other."""

from __future__ import annotations

import numpy as np
import pytest

import fad

OUTSIDE = np.array([1.0, 2.0])
POINT = np.array([3.0, 4.0])


def _plain_cond(p, f, g, *operands):
    return f(*operands) if p else g(*operands)


def _plain_switch(i, branches, *operands):
    return branches[int(i)](*operands)


def _write_into_an_operand_given_back(cond, _, x):
    x = x * 1.0
    y = cond(x[0] > 0, lambda x: x, lambda x: x * 2, x)
    y[0] = 7.0
    return np.sum(x * x)


def _write_into_the_operand(cond, _, x):
    x = x * 1.0
    y = cond(x[0] > 0, lambda x: x, lambda x: x * 2, x)
    x[0] = x[1] * 7.0
    return np.sum(y * y)


def _write_into_what_a_closure_gives(cond, _, x):
    x = x * 1.0
    y = cond(x[0] > 0, lambda: x[1:], lambda: x[:1])
    y[0] = 7.0
    return np.sum(x * x)


def _write_into_one_of_two_results(cond, _, x):
    y, z = cond(x[0] > 0, lambda x: [x * x] * 2, lambda x: [x * 1, x * 2], x)
    y[0] = 7.0
    return np.sum(z * z)


def _write_through_two_choices(cond, switch, x):
    x = x * 1.0
    y = cond(x[0] > 0, lambda x: cond(x[1] > 0, lambda v: v, lambda v: v * 3, x), lambda x: x * 2, x)
    z = switch((x[1] > 0) * 1, [lambda v: v * 2, lambda v: v], y)
    z[0] = 7.0 * x[1]
    return np.sum(x * x)


def _write_into_an_array_from_outside(cond, _, x):
    OUTSIDE[:] = [1.0, 2.0]
    y = cond(x[0] > 0, lambda: OUTSIDE, lambda: OUTSIDE * 2)
    OUTSIDE[0] = 7.0
    return np.sum(y * x)


def _write_into_a_result_from_outside(cond, _, x):
    OUTSIDE[:] = [1.0, 2.0]
    y = cond(x[0] > 0, lambda: OUTSIDE[:1], lambda: OUTSIDE[1:] * 2)
    y[0] = 7.0
    return np.sum(OUTSIDE * x)


def _write_in_a_loop(cond, _, x):
    y = x * 1.0
    for k in range(20):
        z = cond(y[0] > k, lambda v: v, lambda v: v * 1.0, y)
        z[1] = y[0] * 0.5 + y[1] * 0.1
    return np.sum(y * y)


def _put_into_containers(cond, _, x):
    d = {"x": x}
    cond(x[0] > 0, lambda d: d.update(y=d["x"] * 2), lambda d: d.update(y=d["x"]), d)
    return np.sum(d["y"])


PROGRAMS = [f for name, f in list(globals().items()) if name.startswith(("_write", "_put"))]


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__.strip("_"))
def test_the_program_is_that_of_pythons_if(program):
    wanted = lambda x: program(_plain_cond, _plain_switch, x)
    found = lambda x: program(fad.cond, fad.switch, x)
    fast, gradient = fad.jit(found), fad.jit(fad.value_and_grad(found))
    for x in (POINT, -POINT, POINT, POINT * [1, -1]):
        np.testing.assert_allclose(found(x), wanted(x), rtol=1e-14)
        np.testing.assert_allclose(fast(x), wanted(x), rtol=1e-14)
        value, slope = gradient(x)
        expected = fad.value_and_grad(wanted)(x)
        np.testing.assert_allclose(value, expected[0], rtol=1e-14)
        np.testing.assert_allclose(slope, expected[1], rtol=1e-13)


def test_what_nobody_writes_into_is_one_program():
    f = lambda x: np.sum(fad.cond(x[0] > 0, lambda x: x, lambda x: x * 2, x) * x)
    assert fad.make_graph(f)(POINT).guards() == []
    fast = fad.jit(f)
    assert [fast(x) for x in (POINT, -POINT)] == [f(POINT), f(-POINT)]
    assert fast.cache_info().paths == 1
