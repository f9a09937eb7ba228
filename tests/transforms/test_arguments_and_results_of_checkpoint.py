"""A function under checkpoint shares its arguments and results with the program as it does without, or says so."""

from __future__ import annotations

import numpy as np
import pytest

import fad
from fad.errors import ItemAssignmentError

POINT = np.array([3.0, 4.0])


def _adds_a_key(d):
    d["new"] = d["x"] * 2
    return d["x"] * 3


def _replaces_a_value(d):
    d["x"] = d["x"] * 2
    return d["x"] * 3


def _appends(d):
    d["list"].append(d["x"] * 2)
    return d["x"] * 3


def _of_what_is_left(f):
    def program(x):
        d = {"x": x, "list": [x]}
        y = f(d)
        return np.sum(y + d.get("new", 0.0) + d["x"] + sum(d["list"]) * len(d["list"]))

    return program


@pytest.mark.parametrize("f", [_adds_a_key, _replaces_a_value, _appends], ids=lambda f: f.__name__.strip("_"))
def test_containers_keep_what_is_put_into_them_or_it_is_an_error(f):
    wanted, found = _of_what_is_left(f), _of_what_is_left(fad.checkpoint(f))
    assert found(POINT) == wanted(POINT) == fad.jit(found)(POINT)
    assert fad.jvp(found, (POINT,), (POINT,)) == fad.jvp(wanted, (POINT,), (POINT,))
    batch = np.stack([POINT, 2 * POINT])
    np.testing.assert_array_equal(fad.vmap(found)(batch), fad.vmap(wanted)(batch))
    for differentiate in (fad.grad, lambda g: fad.jit(fad.grad(g)), fad.hessian):
        with pytest.raises(ItemAssignmentError, match="changed a list, dictionary or object"):
            differentiate(found)(POINT)


def test_a_write_into_a_plain_argument_is_an_error_on_a_tape():
    def writes(c):
        c[0] = 9.0
        return c * 1.0

    def program(x):
        return np.sum(fad.checkpoint(writes)(np.array([1.0, 2.0])) * x)

    assert program(POINT) == 9 * 3 + 2 * 4.0
    with pytest.raises(ItemAssignmentError, match=r"write into a copy, x = x\.copy\(\)"):
        fad.grad(lambda x: np.sum(fad.checkpoint(lambda c, x: writes(c) * x)(np.array([1.0, 2.0]), x)))(POINT)


def _gives_it_back(x):
    return x


def _gives_a_view(x):
    return {"part": x[::-1][1:]}


def _gives_a_view_from_a_closure(x):
    return lambda: x[1:]


def _write_into_the_result(wrap, x):
    x = x * 1.0
    fad.tree.leaves(wrap(_gives_it_back)(x))[0][0] = 7.0
    fad.tree.leaves(wrap(_gives_a_view)(x))[0][0] *= x[1]
    return np.sum(x * x)


def _write_into_the_argument(wrap, x):
    x = x * 1.0
    y, z = wrap(_gives_it_back)(x), wrap(_gives_a_view)(x)["part"]
    x[0] = x[1] * 7.0
    return np.sum(y * y) + np.sum(z**3)


def _write_into_what_the_closure_has(wrap, x):
    x = x * 1.0
    y = wrap(_gives_a_view_from_a_closure(x))()
    y[0] = 7.0 * x[0]
    return np.sum(x * x)


def _write_into_a_plain_argument(wrap, x):
    c = np.array([1.0, 2.0])
    y = wrap(lambda c, x: c[1:])(c, x)
    y[0] = 7.0
    return np.sum(c * x)


def _write_into_one_of_two_results(wrap, x):
    y, z, w = wrap(lambda x: (lambda y: (y, y[1:], y))(x * x))(x)
    z[0] = 7.0 * x[0]
    w[0] = x[1]
    return np.sum(y * y)


PROGRAMS = [
    _write_into_the_result, _write_into_the_argument, _write_into_what_the_closure_has, _write_into_a_plain_argument,
    _write_into_one_of_two_results,
]  # fmt: skip


@pytest.mark.parametrize("transform", [
    lambda f: f, fad.value_and_grad, lambda f: fad.jit(fad.value_and_grad(f)), fad.hessian, fad.jit,
    lambda f: lambda x: fad.jvp(f, (x,), (x,)),
    lambda f: lambda x: fad.vmap(fad.value_and_grad(f))(np.stack([x, 2 * x])),
    lambda f: fad.value_and_grad(lambda x: np.sum(fad.vmap(f)(np.stack([x, 2 * x])))),
], ids=["plain", "grad", "jitted grad", "hessian", "jit", "jvp", "vmap of grad", "grad of vmap"])  # fmt: skip
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda f: f.__name__.strip("_"))
def test_a_write_into_a_result_is_one_into_what_it_is_a_view_of(program, transform):
    wanted = transform(lambda x: program(lambda f: f, x))(POINT)
    found = transform(lambda x: program(fad.checkpoint, x))(POINT)
    for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(wanted), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-14)


def test_a_plain_call_gives_back_the_argument_itself():
    assert fad.checkpoint(_gives_it_back)(POINT) is POINT
