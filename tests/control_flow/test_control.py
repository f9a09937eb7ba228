"""Control flow as functions: values, derivatives both ways, batches, memory, and errors."""

import tracemalloc

import numpy as np
import pytest

import fad
from fad import control
from fad.errors import DtypeMismatchError, ShapeMismatchError, TreeMismatchError
from fad.testing import check_grads

A = np.array([0.5, 2.0, 9.0])


def newton(a):
    def far(x):
        return abs(x * x - a) > 1e-12

    return control.while_loop(far, lambda x: 0.5 * (x + a / x), a)


def decay(w, xs, **options):
    def step(c, x):
        c = np.tanh(w * c + x)
        return c, c * c

    return control.scan(step, 0.1 * w, xs, **options)


def test_cond_runs_one_branch_and_is_differentiable_in_both_modes():
    def f(x):
        return control.cond(x > 1, lambda v: v**3, lambda v: np.sin(v), x)

    assert f(2.0) == 8.0
    check_grads(f, (2.0,), order=2)
    check_grads(f, (0.5,), order=2)
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(np.array([2.0, 0.5])), [12.0, np.cos(0.5)])


def test_switch_clamps_its_index():
    branches = [lambda x: x, lambda x: 2 * x, lambda x: x * x]
    assert [control.switch(i, branches, 3.0) for i in (-5, 0, 1, 2, 9)] == [3.0, 3.0, 6.0, 9.0, 9.0]
    with pytest.raises(ValueError, match="at least one"):
        control.switch(0, [])


def test_while_loop_is_differentiable_in_reverse_mode():
    for a in A:
        np.testing.assert_allclose(newton(a), np.sqrt(a))
        np.testing.assert_allclose(fad.grad(newton)(a), 0.5 / np.sqrt(a), rtol=1e-9)
        np.testing.assert_allclose(fad.jvp(newton, (a,), (1.0,))[1], 0.5 / np.sqrt(a), rtol=1e-9)


def test_while_loop_lets_batch_elements_stop_at_different_times():
    np.testing.assert_allclose(fad.vmap(newton)(A), np.sqrt(A))
    np.testing.assert_allclose(fad.vmap(fad.grad(newton))(A), 0.5 / np.sqrt(A), rtol=1e-9)
    np.testing.assert_allclose(fad.grad(lambda a: np.sum(fad.vmap(newton)(a)))(A), 0.5 / np.sqrt(A), rtol=1e-9)


def test_while_loop_refuses_a_state_that_changes_its_form():
    with pytest.raises(ShapeMismatchError, match="keep its shapes"):
        control.while_loop(lambda s: True, lambda s: np.ones(3), np.ones(2))
    with pytest.raises(DtypeMismatchError, match="keep its dtypes"):
        control.while_loop(lambda s: True, lambda s: s.astype(np.float32), np.ones(2))
    with pytest.raises(TreeMismatchError):
        control.while_loop(lambda s: True, lambda s: (s, s), np.ones(2))


def test_fori_loop_counts_from_lower_to_upper():
    assert control.fori_loop(2, 5, lambda i, x: x * i, 1) == 24
    assert control.fori_loop(5, 2, lambda i, x: x * i, 1) == 1
    check_grads(lambda x: control.fori_loop(0, 4, lambda i, v: v * x + i, x), (0.7,), order=2)


@pytest.mark.parametrize("reverse", [False, True])
def test_scan_stacks_its_outputs_beside_their_inputs(reverse):
    carry, ys = control.scan(lambda c, x: (c + x, c), 0.0, np.array([1.0, 2.0, 4.0]), reverse=reverse)
    assert carry == 7.0
    np.testing.assert_array_equal(ys, [6.0, 4.0, 0.0] if reverse else [0.0, 1.0, 3.0])


def test_scan_without_xs_needs_a_length():
    assert control.scan(lambda c, _: (c * 2, None), 1.0, length=5) == (32.0, None)
    with pytest.raises(ValueError, match="length"):
        control.scan(lambda c, _: (c, None), 1.0)
    with pytest.raises(ValueError, match="one length"):
        control.scan(lambda c, x: (c, None), 1.0, (np.ones(2), np.ones(3)))


def test_the_length_of_a_scan_is_a_whole_number_of_steps():
    assert control.scan(lambda c, _: (c + 1, None), 0.0, length=np.int64(3))[0] == 3.0
    with pytest.raises(TypeError, match=r"an integer, but was given 2\.5"):
        control.scan(lambda c, _: (c, None), 1.0, length=2.5)
    with pytest.raises(ValueError, match="at least 0, but was given -1"):
        control.scan(lambda c, _: (c, None), 1.0, length=-1)


def test_scan_is_differentiable_to_second_order_and_batched():
    xs = np.linspace(0.1, 0.5, 5)

    def f(w, xs):
        c, ys = decay(w, xs)
        return c + np.sum(ys)

    check_grads(f, (0.8, xs), order=2)
    ws = np.array([0.2, 0.9])
    np.testing.assert_allclose(
        fad.vmap(fad.grad(f), in_axes=(0, None))(ws, xs), [fad.grad(f)(w, xs) for w in ws], rtol=1e-12
    )


@pytest.mark.parametrize("checkpoint", ["sqrt", "binomial"])
def test_checkpointed_scan_has_the_gradient_of_a_plain_one(checkpoint):
    xs = np.sin(np.arange(300.0))

    def f(w, how):
        c, ys = decay(w, xs, checkpoint=how)
        return c + np.mean(ys)

    np.testing.assert_allclose(fad.grad(f)(0.8, checkpoint), fad.grad(f)(0.8, "none"), rtol=1e-12)


def test_the_gradient_of_a_long_checkpointed_loop_takes_little_memory():
    size = 4000
    x = np.full(size, 0.5)

    def f(x, how):
        return np.sum(control.fori_loop(0, 2000, lambda i, s: s * np.cos(s), x, checkpoint=how))

    def peak(how):
        tracemalloc.start()
        fad.grad(f)(x, how)
        found = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        return found

    everything = peak("none")
    assert peak("sqrt") < everything / 8
    assert peak("binomial") < everything / 8


@pytest.mark.parametrize("checkpoint", ["sqrt", "binomial"])
def test_a_loop_that_takes_little_memory_runs_its_steps_once(checkpoint):
    calls = []

    def step(h, x):
        calls.append(x)
        return np.tanh(h * table[:3] + x), h

    def f(h, xs):
        h, hs = control.scan(step, h, xs, checkpoint=checkpoint)
        return np.sum(h) + np.sum(hs)

    h, xs = np.full(3, 0.5), np.linspace(0.0, 1.0, 900).reshape(300, 3)
    table = np.ones(100_000)  # which all steps read, and the tape keeps once
    found = fad.grad(f, argnums=(0, 1))(h, xs)
    assert len(calls) == 300
    expected = fad.grad(lambda h, xs: _add_up(h, xs, table[:3]), argnums=(0, 1))(h, xs)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def _add_up(h, xs, w):
    total = 0.0
    for x in xs:
        total = total + np.sum(h)
        h = np.tanh(h * w + x)
    return total + np.sum(h)


def test_map_is_a_loop_and_takes_batches():
    xs = np.arange(6.0).reshape(3, 2)
    for batch_size in (None, 2):
        np.testing.assert_array_equal(
            control.map(lambda x: np.sum(x * x), xs, batch_size=batch_size), [1.0, 13.0, 41.0]
        )


@pytest.mark.parametrize("n", range(1, 10))
@pytest.mark.parametrize("reverse", [False, True])
def test_associative_scan_is_a_cumulative_combination(n, reverse):
    x = np.random.default_rng(n).normal(size=(2, n))
    wanted = np.cumsum(x[:, ::-1], 1)[:, ::-1] if reverse else np.cumsum(x, 1)
    np.testing.assert_allclose(control.associative_scan(np.add, x, reverse=reverse, axis=1), wanted)


def test_associative_scan_solves_linear_recurrences_with_derivatives():
    a, b = np.array([0.5, 0.9, 1.1, 0.3]), np.array([1.0, 2.0, 3.0, 4.0])

    def combine(p, q):
        return p[0] * q[0], p[1] * q[0] + q[1]

    def fast(a, b):
        return np.sum(control.associative_scan(combine, (a, b))[1] ** 2)

    def slow(a, b):
        total, s = 0.0, 0.0
        for i in range(4):
            s = s * a[i] + b[i]
            total = total + s * s
        return total

    np.testing.assert_allclose(fast(a, b), slow(a, b))
    np.testing.assert_allclose(fad.grad(fast)(a, b), fad.grad(slow)(a, b))


@pytest.mark.parametrize("around", [lambda f: f, fad.jit, fad.grad])
def test_a_bound_or_an_index_that_is_no_integer_is_refused_as_python_refuses_it(around):
    for f in (lambda x: fad.fori_loop(0, 2.0, lambda i, s: s * x, 1.0), lambda x: fad.switch(1.0, [np.sin, np.cos], x)):
        with pytest.raises(TypeError, match="cannot be interpreted as an integer"):
            around(f)(1.5)


@pytest.mark.parametrize("around", [lambda f: f, fad.jit])
def test_an_index_is_a_truth_value_or_an_array_of_one_integer_in_a_batch_too(around):
    pick = lambda i: fad.switch(i, [lambda x: x, lambda x: 2 * x], 3.0)
    count = lambda n: fad.fori_loop(False, n, lambda i, s: s + 3.0, 0.0)
    for i, kind in [(True, bool), (False, bool), (1, int), (0, np.uint8)]:
        for given in (kind(i), np.array(i, kind), np.array([i], kind)):
            assert around(pick)(given) == pick(int(i))
            assert around(count)(given) == 3.0 * i
            np.testing.assert_array_equal(around(fad.vmap(pick))(np.stack([given, given])), [pick(int(i))] * 2)
    np.testing.assert_array_equal(around(fad.vmap(pick))(np.array([True, False])), [6.0, 3.0])


@pytest.mark.parametrize("around", [lambda f: f, fad.jit, fad.vmap])
@pytest.mark.parametrize("f", [lambda i: fad.switch(i, [np.sin, np.cos], 1.0), lambda i: fad.fori_loop(0, i, max, 1.0)])
def test_an_index_of_another_dtype_says_what_to_write(around, f):
    with pytest.raises(TypeError, match=r"(switch|fori_loop) cannot be .* dtype float64. Write int\(i\), or i.astype"):
        around(f)(np.array([[1.0], [0.0]])[0])


def test_an_unknown_way_of_checkpointing_a_loop_is_refused():
    for loop in (
        lambda: control.fori_loop(0, 3, lambda i, s: s, 1.0, checkpoint="some"),
        lambda: control.scan(lambda c, x: (c, x), 1.0, np.ones(3), checkpoint="some"),
    ):
        with pytest.raises(ValueError, match=r"checkpoint of a loop.*'some'"):
            loop()


@pytest.mark.parametrize("x", [3.0, np.float64(3.0), [np.ones(2), 1.0]])
@pytest.mark.parametrize(
    "loop",
    [
        lambda x: fad.map(lambda v: v, x),
        lambda x: fad.scan(lambda c, v: (c, v), 0.0, x),
        lambda x: fad.associative_scan(lambda a, b: a, x),
    ],
)
def test_a_number_has_no_axis_to_run_over(loop, x):
    with pytest.raises(ValueError, match="given a number, which has none"):
        loop(x)


def test_a_scan_of_no_steps_stacks_results_of_the_right_types():
    body = lambda carry, x: (carry + x, (carry * x, {"total": carry.sum()}))
    scan = lambda init, xs: control.scan(body, init, xs)
    for run in (scan, fad.jit(scan)):
        carry, (products, totals) = run(np.ones(2), np.zeros((0, 2), np.float32))
        assert carry.tolist() == [1.0, 1.0]
        assert (products.shape, products.dtype) == ((0, 2), np.float64)
        assert (totals["total"].shape, totals["total"].dtype) == ((0,), np.float64)


_SEEN = np.zeros(2)


@pytest.mark.parametrize(
    ("around", "wanted"), [(lambda f: f, 4.0), (fad.jit, 4.0), (fad.grad, 2.0), (lambda f: fad.jit(fad.grad(f)), 2.0)]
)
def test_a_scan_of_no_steps_leaves_nothing_written_and_stacks_results_of_the_right_types(around, wanted):
    shapes = []

    def program(x):
        seen = np.zeros(2) * x

        def body(carry, v):
            seen[0] += carry[1]
            _SEEN[:] += 1.0
            carry[0] = v[0]
            v[1] = 2.0
            return carry, (v, {"seen": seen[1:] * 1.0, "nothing": None})

        carry, (rows, found) = control.scan(body, np.zeros(2) + x, np.zeros((0, 3)))
        shapes[:] = rows.shape, found["seen"].shape, found["nothing"]
        return carry.sum() + seen.sum() + rows.sum() + found["seen"].sum()

    assert around(program)(2.0) == wanted
    assert shapes == [(0, 3), (0, 1), None]
    assert _SEEN.tolist() == [0.0, 0.0]


def test_a_write_that_fails_is_no_write_to_undo():
    def program(x):
        y = x * 1.0

        def body(carry, v):
            y[0] = x
            return carry, v

        return control.scan(body, 0.0, np.zeros(0))[0] + np.sum(y)

    with pytest.raises(ValueError, match="setting an array element with a sequence"):
        fad.grad(program)(np.ones(2))


def test_map_of_an_empty_array_is_an_empty_array():
    assert control.map(lambda v: 2 * v, np.zeros((0, 2))).shape == (0, 2)


def test_what_a_branch_puts_into_a_dictionary_is_there_under_jit_as_well():
    def f(x):
        d = {"x": x}
        fad.cond(x[0] > 0, lambda d: d.update(y=d["x"] * 2), lambda d: d.update(y=d["x"]), d)
        return np.sum(d["y"])

    fast = fad.jit(f)
    for x in np.array([[3.0, 4.0], [-3.0, 4.0], [3.0, 4.0]]):
        assert fast(x) == f(x) == np.sum(x) * (2 if x[0] > 0 else 1)
