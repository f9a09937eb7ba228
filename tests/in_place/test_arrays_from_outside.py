"""What a transform's function writes into arrays from outside is there afterwards, or its use is an error."""

import itertools
import types

import numpy as np
import pytest

import fad
from fad.core.runs import running
from fad.errors import CustomRuleError, ImpureFunctionError, ItemAssignmentError

X = np.array([1.1, 2.2, 0.7, 3.4])
INNER = {
    "grad": lambda g, x: np.sum(fad.grad(g)(x)),
    "jvp": lambda g, x: fad.jvp(g, (x,), (np.ones(4),))[1],
    "linearize": lambda g, x: fad.linearize(g, x)[1](np.ones(4)),
    "jit": lambda g, x: np.sum(fad.jit(fad.grad(g))(x)),
    "value": lambda g, x: np.sum(fad.value_and_grad(g)(x)[1]),
}
OUTER = {
    "grad": lambda f: fad.grad(f)(X),
    "jvp": lambda f: [fad.jvp(f, (X,), (e,))[1] for e in np.eye(4)],
    "jit": lambda f: fad.jit(fad.grad(f))(X),
    "vmap": lambda f: fad.vmap(fad.grad(f))(X[None])[0],
    "a batch inside": lambda f: fad.grad(lambda x: fad.vmap(f)(x[None])[0])(X),
}


@pytest.mark.parametrize("outer", OUTER)
@pytest.mark.parametrize("inner", INNER)
def test_an_inner_transform_leaves_values_of_the_outer_one_in_an_array_of_it(inner, outer):
    def f(x):
        b, d = np.zeros(4), x * 2

        def g(y):
            b[0] = y[0] ** 2
            d[1] = y[1] ** 2
            return np.sum(y * b) + np.sum(y * d)  # y0^3 + y1^3 + 2 y0 x0 + 2 y2 x2 + 2 y3 x3

        return INNER[inner](g, x) + b[0] + d[1] * b[0]

    wanted = [6 * X[0] + 2 + 2 * X[0] * (1 + X[1] ** 2), 6 * X[1] + 2 * X[1] * X[0] ** 2, 2.0, 2.0]
    np.testing.assert_allclose(OUTER[outer](f), wanted, 1e-12)


def test_a_jitted_function_reads_and_writes_arrays_of_the_function_around_it_in_every_call():
    def f(x):
        b, n = np.zeros(4), np.zeros(1)

        def h(y):
            n[0] += 1
            b[1] = y[1]
            return np.sum(y * b) * n[0]

        g = fad.jit(lambda y: h(y) * 2)
        total = g(x)
        b[0] = 1
        return total + g(2 * x) + b[1]

    x0, x1 = X[:2]
    np.testing.assert_allclose(f(X), 2 * x1**2 + 4 * (2 * x0 + 4 * x1**2) + 2 * x1, 1e-13)
    for g in OUTER.values():
        np.testing.assert_allclose(g(f), [8.0, 36 * x1 + 2, 0, 0], 1e-13)


class Slot:
    __slots__ = ("b",)


class Hidden:
    """An object whose array nobody finds by name."""

    def __init__(self):
        self.held = None

    b = property(lambda self: next(self.held), lambda self, x: setattr(self, "held", itertools.repeat(x)))


def test_an_array_in_a_slot_is_found_and_written_in_bodies():
    def f(x):
        slot = Slot()
        slot.b = np.zeros(4)

        def body(i, c):
            slot.b[i] = c
            return c * x[i]

        return fad.fori_loop(0, 4, body, x[0] * 1.0) + np.sum(slot.b)

    for _ in range(2):
        np.testing.assert_allclose(fad.jit(f)(X), f(X), 1e-13)
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), fad.grad(f)(X), 1e-13)


def test_a_body_writes_in_every_step_into_an_array_that_no_name_leads_to():
    def f(x):
        hidden = Hidden()
        hidden.b = np.zeros(4)

        def body(i, c):
            hidden.b[i] = c
            hidden.b[3] += 1
            return c * x[i]

        def one(c):
            hidden.b[0] += 1
            return c

        return fad.cond(x[0] > 0, one, lambda c: c, fad.fori_loop(0, 4, body, x[0] * 1.0)) + np.sum(hidden.b)

    wanted = fad.grad(f)(X)
    assert np.isfinite(wanted).all()
    np.testing.assert_allclose(fad.jit(f)(X), f(X), 1e-14)
    np.testing.assert_allclose(fad.jit(fad.grad(f))(X), wanted, 1e-13)
    np.testing.assert_allclose(fad.grad(fad.jit(f))(X), wanted, 1e-13)


def test_a_checkpoint_that_writes_into_an_array_from_outside_is_an_error():
    def f(x):
        b = np.zeros(4)

        def g(y):
            b[0] = y[0] ** 2
            return np.sum(b * y)

        return fad.checkpoint(g)(x) + b[0]

    with pytest.raises(ItemAssignmentError, match="array from outside"):
        fad.grad(f)(X)


def test_a_checkpoint_that_reads_an_array_which_is_written_later_unseen_is_an_error():
    def f(x):
        hidden = Hidden()
        hidden.b = np.zeros(4)
        hidden.b[:] = x
        y = fad.checkpoint(lambda y: np.sum(hidden.b * y**2))(x)
        hidden.b[:] = 0
        return y

    with pytest.raises(ImpureFunctionError):
        fad.grad(f)(X)


# --- plain arrays from outside, into which plain numbers are written --------------------------------------------------


def written_once(table):
    """Return a function that changes an array from outside, and reads it."""

    def f(x):
        table[1:] += table[:-1]
        table[0] = 3
        return np.sum(x * x * table)

    return f


BY_JIT = {
    "grad": lambda f: fad.grad(f),
    "jvp": lambda f: lambda x: fad.jvp(f, (x,), (x,)),
    "vmap": lambda f: lambda x: fad.vmap(f)(np.stack([x, 2 * x])),
    "hessian": lambda f: fad.hessian(f),
    "grad of grad": lambda f: fad.grad(lambda x: np.sum(fad.grad(f)(x))),
    "linearize": lambda f: lambda x: fad.linearize(f, x)[1](x),
    "jet": lambda f: lambda x: fad.jet(f, (x,), ([x],)),
    "checkpoint": lambda f: fad.grad(fad.checkpoint(f)),
    "nothing": lambda f: f,
}


@pytest.mark.parametrize("how", BY_JIT)
@pytest.mark.parametrize("place", ["inside", "outside"])
def test_a_jitted_function_writes_into_an_array_from_outside_once_in_each_call(how, place):
    tables = [np.arange(4.0) + 1, np.arange(4.0) + 1]
    slow = BY_JIT[how](written_once(tables[0]))
    fast = written_once(tables[1])
    fast = BY_JIT[how](fad.jit(fast)) if place == "inside" else fad.jit(BY_JIT[how](fast))
    for _ in range(12):
        for wanted, got in zip(fad.tree.leaves(slow(X)), fad.tree.leaves(fast(X)), strict=True):
            np.testing.assert_allclose(got, wanted, 1e-12)
        np.testing.assert_array_equal(*tables)


def test_a_jitted_function_fills_an_array_from_outside_again_after_somebody_else_wrote_there():
    table = np.zeros(4)

    def f(x):
        table[:] = [1, 2, 3, 4]
        return np.sum(x)

    g = fad.jit(f)
    for _ in range(5):
        table[:] = 0
        g(X)
        np.testing.assert_array_equal(table, [1, 2, 3, 4])
        g(X)
        g(X)
    assert g.cache_info().hits > 2


def test_a_jitted_function_that_gives_up_recording_has_written_once():
    table, switch = np.zeros(4), np.zeros(4)

    def f(x):
        table[0] += 1
        switch[0] = 1
        return int(x[0] / (x[0] - X[0])) if x[0] != X[0] else table[0] * x[1]

    np.testing.assert_array_equal(fad.jit(f)(X), X[1])
    assert table[0] == 1


def test_a_jitted_function_that_returns_an_array_it_made_is_recorded():
    def f(x):
        b = np.zeros(3)
        b[1:] = 2
        return np.sum(x), b

    g = fad.jit(f)
    for _ in range(3):
        _, b = g(X)
        np.testing.assert_array_equal(b, [0, 2, 2])
        b[:] = 7
    assert g.cache_info().hits == 2


def of_a_table(functions):
    return lambda x: functions["first"][0](x)


def test_a_function_that_runs_again_with_arrays_for_traced_values_has_written_once():
    table = np.ones(4)

    def hidden(x):
        table[0] += 1
        b = np.zeros(4)
        b[0] = x[0]
        return np.sum(b * table)

    np.testing.assert_array_equal(fad.grad(of_a_table({"first": [hidden]}))(X), [2, 0, 0, 0])
    assert table[0] == 2


@pytest.mark.parametrize("options", [{}, {"chunk_size": 2}])
def test_a_batch_that_runs_several_times_does_not_write_outside(options):
    table = np.ones(4)

    def f(x):
        table[0] += 1
        return x * 2 if x > 2 and not options else x * table[0]

    with pytest.raises(ItemAssignmentError, match="runs several times"):
        fad.vmap(f, **options)(X)
    np.testing.assert_array_equal(table, 1)


def test_a_loop_under_jit_writes_into_a_plain_array_from_outside_in_every_step():
    table = np.zeros(4)

    def f(x):
        def body(i, c):
            table[i] = 1
            table[0] += 1
            return c * x[i] + table[0]

        table[:] = 0
        return fad.fori_loop(0, 4, body, x[0]) + table.sum()

    wanted, g = f(X), fad.jit(f)
    for _ in range(3):
        np.testing.assert_allclose(g(X), wanted, 1e-13)
        np.testing.assert_array_equal(table, [5, 1, 1, 1])
        table[:] = 9


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
@pytest.mark.parametrize("where", ["function", "rule"])
def test_a_function_with_a_custom_rule_does_not_write_into_its_argument(kind, where):
    def double(v):
        if where == "function":
            v *= 2
        return v * 1.0

    def push(primals, tangents):
        if where == "rule":
            primals[0][0] = 7
        return double(*primals), 2 * tangents[0]

    def forward(v):
        if where == "rule":
            v[0] = 7
        return double(v), None

    g = fad.custom_jvp(double) if kind == "jvp" else fad.custom_vjp(double)
    if kind == "jvp":
        g.defjvp(push)
    else:
        g.defvjp(forward, lambda res, ct: (2 * ct,))

    def f(x):
        y = x * 1.0
        return np.sum(g(y)) + y[0]

    for run in (fad.grad(f), fad.jit(fad.grad(f)), fad.grad(fad.grad(f)), lambda x: fad.jvp(f, (x,), (x,))):
        with pytest.raises(CustomRuleError, match="wrote into its argument of shape"):
            run(X)
    if where == "function":
        with pytest.raises(CustomRuleError, match="wrote into its argument of shape"):
            fad.vmap(f)(np.stack([X, X]))
        y = X.copy()
        np.testing.assert_array_equal(g(y), 2 * X)  # without a transform it is NumPy's
        np.testing.assert_array_equal(y, 2 * X)


def test_a_jitted_function_writes_into_an_array_of_a_class_in_every_call():
    class State:
        table = np.zeros(2)

    def f(x):
        State.table[0] = x[0]
        return np.sum(x)

    g = fad.jit(f)
    for _ in range(4):
        State.table[:] = 5
        g(X)
        np.testing.assert_array_equal(State.table, [X[0], 5])


def with_a_default(f):
    def outer(x, f=f):
        return f(x)

    return outer


def with_a_keyword(f):
    def outer(x, *, f=f):
        return f(x)

    return outer


@pytest.mark.parametrize("of", [with_a_default, with_a_keyword])
def test_a_function_among_the_defaults_of_another_has_written_once(of):
    fad.grad(of(np.sum))(X)  # the same code, which wrote nothing then
    names = {"np": np, "V": np.ones(4)}
    exec("def f(x):\n    V[0] += 1\n    b = np.zeros(4)\n    b[0] = x[0]\n    return np.sum(b * V)\n", names)
    np.testing.assert_array_equal(fad.grad(of(names["f"]))(X), [2, 0, 0, 0])
    np.testing.assert_array_equal(names["V"], [2, 1, 1, 1])


def _scaled(src):
    def f(x):
        own = src * 1
        own += x
        src[1] += 1
        return own

    return f


def _scaled_after_a_write(src):
    def f(x):
        src[1] += 1
        own = src * 1
        own += x
        return own

    return f


def _copied(src):
    def f(x):
        own = src.copy()
        own[0] = x[0]
        src[1] += 1
        return own

    return f


_FIRST_CALLS = {
    "jit": lambda f, x: fad.jit(f)(x),
    "vmap": lambda f, x: fad.vmap(f)(np.stack([x, x]))[0],
    "vmap of jit": lambda f, x: fad.vmap(fad.jit(f))(np.stack([x, x]))[0],
    "jvp": lambda f, x: fad.jvp(f, (x,), (x,))[0],
    "jvp of jit": lambda f, x: fad.jvp(fad.jit(f), (x,), (x,))[0],
    "vjp": lambda f, x: fad.vjp(f, x)[0],
    "vjp of jit": lambda f, x: fad.vjp(fad.jit(f), x)[0],
    "jit of vjp": lambda f, x: fad.jit(lambda v: fad.vjp(f, v)[0])(x),
    "linearize": lambda f, x: fad.linearize(f, x)[0],
}


@pytest.mark.parametrize("program", [_scaled, _scaled_after_a_write, _copied])
@pytest.mark.parametrize("name", _FIRST_CALLS)
def test_a_copy_takes_traced_values_in_the_first_call_and_the_array_a_number_once(name, program):
    src, want_src = np.ones(3), np.ones(3)
    f = program(src)
    code = f.__code__.replace(co_name=f"{program.__name__} under {name}")  # seen by no other test
    f = types.FunctionType(code, {"np": np}, "f", None, f.__closure__)
    x = np.array([2.0, 3.0, 4.0])
    got, want = _FIRST_CALLS[name](f, x), program(want_src)(x)
    np.testing.assert_array_equal(got, want)
    np.testing.assert_array_equal(src, want_src)


OUTSIDE = np.array([2.0, 1.0])  # found by name, by each of the functions below


def length_of_a_list(x):
    y = np.zeros(2)
    y[0] = x[2]
    return OUTSIDE[0] * y[0] * np.linalg.norm([x[0], x[1]])


PICKED: dict = {}
exec("import math, numpy\ndef length(*x):\n    y = numpy.zeros(2)\n    y[0] = math.hypot(*x)\n    return y[0]", PICKED)
pick = PICKED.get


def length_by_a_picked_function(x):
    return OUTSIDE[0] * x[2] * pick("length")(x[0], x[1])  # whose code is known when it has run


def length_of_a_list_beside_a_method(x):
    y = np.zeros(2)
    y[0] = x[2]
    return OUTSIDE.dot(y) * np.linalg.norm([x[0], x[1]])


@pytest.mark.parametrize("f", [length_of_a_list, length_by_a_picked_function, length_of_a_list_beside_a_method])
def test_arrays_from_outside_are_looked_for_in_each_call_only_where_they_meet_traced_values(f, monkeypatch):
    searched, lend = [], running.lend
    monkeypatch.setattr(running, "lend", lambda function: searched.append(function) or lend(function))
    length = np.hypot(X[0], X[1])
    want = np.array([2 * X[2] * X[0] / length, 2 * X[2] * X[1] / length, 2 * length, 0.0])
    fad.grad(f)(X)
    searched.clear()
    for _ in range(2):
        np.testing.assert_allclose(fad.grad(f)(X), want, rtol=1e-12)
    assert bool(searched) == (f is length_of_a_list_beside_a_method)
    assert type(OUTSIDE) is np.ndarray
