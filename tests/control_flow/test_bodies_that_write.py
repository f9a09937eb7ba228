"""Bodies of loops that write in place: what a step is given, gives and leaves are values of that step."""

import numpy as np
import pytest

import fad

V = np.array([1.0, 2.0, 5.0])


def doubled(x):
    def body(s):
        s[0] *= 2
        return s

    return fad.while_loop(lambda s: s[0] < 6, body, np.ones(1) * x)


def counted(x):
    steps = np.zeros(1)

    def body(v):
        steps[0] += 1
        return v * 2

    return fad.while_loop(lambda v: v < 6, body, x), steps


def summed(x):
    total = np.zeros(2)

    def body(v):
        total[:1] += v
        return v * 2

    return fad.while_loop(lambda v: v < 6, body, x) + total.sum()


def questions(x):
    asked = np.zeros(1)

    def goes_on(v):
        asked[0] += 1
        return v < 6

    return fad.while_loop(goes_on, lambda v: v * 2, x), asked


def from_buffer(x):
    buffer = np.zeros(2)

    def body(v):
        buffer[0] += v[0]
        buffer[1] = v[0] * 2
        return buffer

    return fad.while_loop(lambda v: v[1] < 6, body, np.stack([x, x])) + buffer


def one_by_one(f, xs):
    columns = zip(*[fad.tree.leaves(f(x)) for x in xs], strict=True)
    return [np.stack(column) for column in columns]


def under_vmap(f):
    return {
        "vmap": fad.vmap(f),
        "jit of vmap": fad.jit(fad.vmap(f)),
        "vmap of jit": fad.vmap(fad.jit(f)),
    }


@pytest.mark.parametrize("f", [doubled, counted, summed, questions, from_buffer])
@pytest.mark.parametrize("how", ["vmap", "jit of vmap", "vmap of jit"])
def test_elements_of_a_batch_that_are_done_are_written_no_more(f, how):
    g = under_vmap(f)[how]
    for _ in range(2):
        for got, want in zip(fad.tree.leaves(g(V)), one_by_one(f, V), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("f", [doubled, summed, from_buffer])
def test_gradients_of_elements_that_are_done(f):
    def scalar(x):
        return np.sum(f(x))

    want = [fad.grad(scalar)(x) for x in V]
    np.testing.assert_array_equal(fad.vmap(fad.grad(scalar))(V), want)
    np.testing.assert_array_equal(fad.jit(fad.vmap(fad.grad(scalar)))(V), want)
    np.testing.assert_array_equal(fad.grad(lambda v: np.sum(fad.vmap(scalar)(v)))(V), want)
    np.testing.assert_array_equal(fad.vmap(lambda x: fad.jvp(scalar, (x,), (1.0,))[1])(V), want)


def test_a_nested_batch_of_loops_that_write():
    m = np.array([[1.0, 2.0], [4.0, 7.0]])
    got = fad.vmap(fad.vmap(lambda x: counted(x)[1]))(m)
    np.testing.assert_array_equal(got, [[fad.tree.leaves(counted(x))[1] for x in row] for row in m])


# --- what a step is given and gives is a value -------------------------------------------------------------------


def carry_as_y(c, a):
    c[0] *= a
    return c, c


def view_of_carry_as_y(c, a):
    v = c[:1]
    v *= a
    return c, v


def parts_of_carry_as_y(c, a):
    c[0] *= a
    return c, {"whole": c, "first": c[0], "other": (c[::-1], 2.0)}


@pytest.mark.parametrize("body", [carry_as_y, view_of_carry_as_y, parts_of_carry_as_y])
@pytest.mark.parametrize("reverse", [False, True])
def test_each_y_of_a_scan_is_what_it_was_in_its_step(body, reverse):
    def f(a):
        return fad.scan(body, np.ones(1), a, reverse=reverse)[1]

    a = np.array([2.0, 3.0])
    first = fad.tree.leaves(f(a))[0]
    np.testing.assert_array_equal(first.ravel(), [6.0, 3.0] if reverse else [2.0, 6.0])
    jitted = fad.jit(f)
    for _ in range(2):
        for got, want in zip(fad.tree.leaves(jitted(a)), fad.tree.leaves(f(a)), strict=True):
            np.testing.assert_array_equal(got, want)


def test_derivatives_of_y_that_are_the_carry():
    def f(a):
        return fad.scan(carry_as_y, np.ones(1), a)[1].ravel()

    a = np.array([2.0, 3.0])
    want = [[1.0, 0.0], [3.0, 2.0]]
    for derivative in (fad.jacobian, fad.jacfwd, fad.jacrev):
        np.testing.assert_array_equal(derivative(f)(a), want)
        np.testing.assert_array_equal(fad.jit(derivative(f))(a), want)
    np.testing.assert_array_equal(fad.vmap(f)(np.stack([a, 2 * a])), [[2.0, 6.0], [4.0, 24.0]])


def multiply(c, a):
    c *= a
    return c


LOOPS = {
    "scan": lambda x: fad.scan(lambda c, a: (multiply(c, a), None), x, np.array([2.0, 2.0]))[0],
    "fori_loop": lambda x: fad.fori_loop(0, 2, lambda i, c: multiply(c, 2.0), x),
    "while_loop": lambda x: fad.while_loop(lambda c: c[0] < 8, lambda c: multiply(c, 2.0), x),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_a_loop_leaves_its_first_state_alone(loop):
    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(loop(x), [8.0, 12.0])
    np.testing.assert_array_equal(x, [2.0, 3.0])

    def both(x):
        y = x * 1.0
        return loop(y) + y

    for f in (both, fad.jit(both)):
        np.testing.assert_array_equal(f(x), [10.0, 15.0])
        np.testing.assert_array_equal(fad.jacobian(f)(x), 5 * np.eye(2))
    np.testing.assert_array_equal(x, [2.0, 3.0])


def test_a_scan_leaves_its_xs_alone():
    def aliased(x):
        return fad.scan(lambda c, a: (multiply(c, a), None), x, x)[0]

    def rows(m):
        return fad.scan(lambda c, a: (c + multiply(a, 2.0), a), np.zeros(2), m)

    def carries_rows(m):
        def body(c, a):
            c[0] += 1
            return a, c

        return fad.scan(body, np.zeros(2), m)

    x, m = np.array([1.0, 3.0]), np.arange(4.0).reshape(2, 2)
    for f in (aliased, fad.jit(aliased)):
        np.testing.assert_array_equal(f(x), [3.0, 9.0])
        np.testing.assert_array_equal(fad.jacobian(f)(x), [[6.0, 1.0], [9.0, 6.0]])
    for f in (rows, fad.jit(rows)):
        total, doubles = f(m)
        np.testing.assert_array_equal(total, [4.0, 8.0])
        np.testing.assert_array_equal(doubles, 2 * m)
    for f in (carries_rows, fad.jit(carries_rows)):
        last, ys = f(m)
        np.testing.assert_array_equal(last, m[1])
        np.testing.assert_array_equal(ys, [[1.0, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(x, [1.0, 3.0])
    np.testing.assert_array_equal(m, np.arange(4.0).reshape(2, 2))


CHOICES = {
    "cond": lambda y: fad.cond(y[0] > 0, lambda v: multiply(v, 2.0), lambda v: v, y),
    "switch": lambda y: fad.switch(np.sum(y > 0) - 2, [lambda v: multiply(v, 2.0), lambda v: v], y),
}


@pytest.mark.parametrize("choose", CHOICES.values(), ids=CHOICES)
def test_branches_leave_their_operands_alone(choose):
    def f(x):
        y = x * 1.0
        return choose(y) + y

    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(choose(x), [4.0, 6.0])
    np.testing.assert_array_equal(x, [2.0, 3.0])
    for g in (f, fad.jit(f)):
        np.testing.assert_array_equal(g(x), 3 * x)
        np.testing.assert_array_equal(fad.jacobian(g)(x), 3 * np.eye(2))


def test_an_associative_scan_by_a_function_that_writes():
    def add(a, b):
        a += b
        return a

    def f(x):
        y = x * 1.0
        return fad.associative_scan(add, y) + y

    x = np.arange(5.0)
    np.testing.assert_array_equal(fad.associative_scan(add, x), np.cumsum(x))
    np.testing.assert_array_equal(x, np.arange(5.0))
    for g in (f, fad.jit(f)):
        np.testing.assert_array_equal(g(x), np.cumsum(x) + x)
        np.testing.assert_array_equal(fad.jacobian(g)(x), np.tri(5) + np.eye(5))


def buffer_of_the_function_around(x):
    buffer = np.zeros(2)

    def body(c, a):
        buffer[0] = c * a
        buffer[1] += 1
        return c + buffer.sum(), buffer

    return fad.scan(body, x[0], x)[1]


def carries_the_buffer(x):
    buffer = np.zeros(2)

    def body(c, a):
        buffer[0] += a
        buffer[1] = c[0] * a
        return buffer, c.sum()

    return fad.scan(body, x * 1.0, x)[1]


def by_hand(x):
    c, second, ys = x[0], 0.0, []
    for a in x:
        second += 1
        ys.append(np.stack([c * a, second]))
        c = c + c * a + second
    return np.stack(ys)


def carried_by_hand(x):
    c, first, ys = x * 1.0, 0.0, []
    for a in x:
        first = first + a
        ys.append(c.sum())
        c = np.stack([first, c[0] * a])
    return np.stack(ys)


@pytest.mark.parametrize(
    ("f", "want"), [(buffer_of_the_function_around, by_hand), (carries_the_buffer, carried_by_hand)]
)
def test_a_scan_gives_the_buffer_of_the_function_around_it(f, want):
    x = np.array([1.0, 3.0])
    np.testing.assert_array_equal(f(x), want(x))
    np.testing.assert_array_equal(fad.jacobian(f)(x), fad.jacobian(want)(x))
    np.testing.assert_array_equal(fad.vmap(f)(np.stack([x, 2 * x])), [want(x), want(2 * x)])
    for g in (f, lambda x: f(x) * 1.0):
        jitted = fad.jit(g)
        for _ in range(2):
            np.testing.assert_array_equal(jitted(x), want(x))
        np.testing.assert_array_equal(fad.jit(fad.jacobian(g))(x), fad.jacobian(want)(x))


def test_long_loops_that_write_are_right_where_little_is_kept():
    def f(x, checkpoint):
        def body(c, a):
            c[0] = np.tanh(c[0] + a * c[1])
            c[1] *= 0.5
            return c, c

        ys = fad.scan(body, np.stack([x, x]), np.linspace(0.0, 1.0, 40), checkpoint=checkpoint)[1]
        return np.sum(ys * ys)

    import fad.control_flow.run_scan as run_scan

    want = fad.grad(lambda x: f(x, "none"))(0.7)
    for name in ("sqrt", "binomial"):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(run_scan, "KEPT", 0)
            np.testing.assert_allclose(fad.grad(lambda x, name=name: f(x, name))(0.7), want, rtol=1e-13)
