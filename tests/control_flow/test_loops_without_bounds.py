"""Reverse mode of loops whose number of steps is known when they have run: nested, to any order, without guards."""

import re
import threading

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy_versions import WITH_INVERTED_BOOLS

import fad
from fad import control
from fad.compile.machine.stack_memory import StackMemory
from fad.compile.runtime import jit_engine
from fad.compile.targets import select
from fad.compile.targets.select import has_llvm, using
from fad.core.programs.graph import Type

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
X = np.float64(1.2)


@pytest.fixture(autouse=True, params=LOWERINGS)
def lowering(request):
    with using(request.param):
        yield request.param


def check_as_plain(f, *args, rtol=1e-8, guards=False):
    """Record, compile and replay: each time the result is that of the plain call."""
    fast, wanted = fad.jit(f), fad.tree.leaves(f(*args))
    for _ in range(3):
        for a, b in zip(fad.tree.leaves(fast(*args)), wanted, strict=True):
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)
    assert bool(fad.make_graph(f)(*args).guards()) == guards
    return fast


def iterate(a):
    """Return where a contraction ends: a loop of a dozen steps, whose text is long."""

    def step(s):
        x, _ = s
        y = x
        for _ in range(12):
            y = y + 0.01 * (np.cos(a * y) - y)
        return y, np.abs(y - x)

    return control.while_loop(lambda s: s[1] > 1e-2, step, (0.5 * a, 1.0))[0]


@pytest.mark.skipif(not has_llvm(), reason="compiles native code")
def test_a_loop_that_ends_soon_is_not_compiled_by_the_call_that_records_it(lowering):
    with using("auto"):
        fad.jit(lambda x: x + 1.0)(X)  # loads what all programs need
        before = dict(jit_engine.statistics)
        fast = fad.jit(fad.grad(iterate))
        first = fast(X)
        assert jit_engine.statistics == before
        np.testing.assert_allclose([fast(X), fast(X)], first, rtol=1e-12)
        np.testing.assert_allclose(first, fad.grad(iterate)(X), rtol=1e-12)


def test_a_loop_that_numpy_gave_up_is_run_from_its_beginning(monkeypatch):
    monkeypatch.setattr(select, "_FEW", 8)
    monkeypatch.setattr(select, "_FEW_EACH", 0)
    check_as_plain(fad.value_and_grad(iterate), X)
    check_as_plain(fad.value_and_grad(lambda a: upto(6, lambda x: np.sin(a * x), a)), X)


def upto(n, step, state):
    """Return the state after n steps of a while loop, n a number of the program."""
    return control.while_loop(lambda s: s[0] < n, lambda s: (s[0] + 1, step(s[1])), (0, state))[1]


# --- programs ---------------------------------------------------------------------------------------------------------


def whiles_in_a_while(a):
    def outer(s):
        i, x = s
        return i + 1.0, control.while_loop(lambda t: t[0] < i, lambda t: (t[0] + 1.0, np.sin(t[1] * a)), (0.0, x))[1]

    return control.while_loop(lambda s: s[0] < 5.0, outer, (0.0, a * 1.0))[1]


def triangle(a):
    inner = lambda i, s: control.fori_loop(0, i, lambda j, t: np.sin(t * a) + 0.1 * j, s)
    return control.fori_loop(0, 6, inner, a)


def triangle_in_three(a):
    innermost = lambda i, j, t: control.fori_loop(j, i, lambda k, u: np.cos(u * a) * 0.9 + 0.01 * k, t)
    middle = lambda i, s: control.fori_loop(0, i, lambda j, t: innermost(i, j, t), s)
    return control.fori_loop(0, 4, middle, a)


def roots_in_a_scan(a):
    root = lambda v: control.while_loop(lambda x: abs(x * x - v) > 1e-13, lambda x: 0.5 * (x + v / x), v)
    c, ys = control.scan(lambda c, v: (root(c + v) * a, c), a * 1.0, np.linspace(1.0, 2.0, 4))
    return c + np.sum(ys * ys)


def loop_in_a_branch(a):
    def step(c, v):
        run = lambda u: control.while_loop(lambda t: t < 2.0, lambda t: t * t * 1.1 + a, u)
        return control.cond(c > v, run, lambda u: np.sin(u) * 1.7, c), c

    c, ys = control.scan(step, a * 1.0, np.linspace(0.5, 2.5, 5))
    return c + np.sum(ys)


def branch_in_a_loop(a):
    step = lambda t: control.cond(t > 1.0, lambda u: np.sin(u) * a, lambda u: u * u + 0.3 * a, t)
    return upto(7, step, a * 1.0)


def written_rows(a):
    def step(i, s):
        s = s.copy()
        s[i] = np.sin(s[i - 1] * a) + s[0]
        return control.fori_loop(0, i, lambda j, t: fad.numpy.add(t, 0.1 * t[j]), s)

    return np.sum(control.fori_loop(1, 5, step, a * np.linspace(0.1, 1.0, 5)))


def matrix_states(a):
    w = a * np.array([[0.5, 0.2], [-0.1, 0.7]])
    return np.sum(upto(6, lambda s: np.tanh(w @ s + 0.1), np.full((2, 12), 0.3) * a))


PROGRAMS = [
    whiles_in_a_while, triangle, triangle_in_three, roots_in_a_scan, loop_in_a_branch, branch_in_a_loop, written_rows,
    matrix_states,
]  # fmt: skip
TRANSFORMS = {
    "grad": fad.grad,
    "value_and_grad": fad.value_and_grad,
    "grad of grad": lambda f: fad.grad(fad.grad(f)),
    "jvp of grad": lambda f: lambda x: fad.jvp(fad.grad(f), (x,), (1.0,))[1],
    "grad of jvp": lambda f: fad.grad(lambda x: fad.jvp(f, (x,), (1.0,))[1]),
    "linearize of grad": lambda f: lambda x: fad.linearize(fad.grad(f), x)[1](1.0),
    "vmap of grad": lambda f: lambda x: fad.vmap(fad.grad(f))(x * np.array([1.0, 1.3, 0.7])),
    "grad of vmap": lambda f: fad.grad(lambda x: np.sum(fad.vmap(f)(x * np.array([1.0, 1.3, 0.7])))),
    "vmap of grad of grad": lambda f: lambda x: fad.vmap(fad.grad(fad.grad(f)))(x * np.array([1.0, 0.7])),
    "grad of jit": lambda f: fad.grad(fad.jit(f)),
}


@pytest.mark.parametrize("name", TRANSFORMS)
@pytest.mark.parametrize("f", PROGRAMS)
def test_nested_loops_have_the_derivatives_of_the_plain_loops_without_guards(f, name):
    # elements of a batch that choose other branches are split where one of these may never end for the others;
    # of a gradient that takes rows of what divides in a loop it is asked whether it is finite
    asked = name.endswith("grad of grad") or name in ("grad of jvp", "grad of vmap")
    check_as_plain(
        TRANSFORMS[name](f), X,
        guards=(f is loop_in_a_branch and "vmap" in name) or (f is roots_in_a_scan and asked),
    )  # fmt: skip


def test_a_third_derivative_of_nested_loops_is_that_of_the_plain_loops():
    check_as_plain(fad.grad(fad.grad(fad.grad(triangle))), X, rtol=1e-7)


def test_each_of_two_gradients_of_a_loop_within_a_loop_is_added_up_where_its_state_begins_at_zero():
    # the second gradient of the inner loop is not the second part of its state, to which the steps only add
    def f(w, c):
        def outer(total, x):
            step = lambda t: (t[0] + np.sin(w * t[1]) * np.cos(c * t[1]), t[1] + 1.0)
            s, _ = control.while_loop(lambda t: t[1] < x, step, (0.0, 0.0))
            return total + s * s, None

        return control.scan(outer, 0.0, np.array([1.0, 3.0, 2.0, 4.0]))[0]

    check_as_plain(fad.grad(f, argnums=(0, 1)), np.float64(0.3), np.float64(0.7))


# --- how many steps ---------------------------------------------------------------------------------------------------


def test_one_recording_serves_every_number_of_steps():
    slow = lambda a: control.while_loop(lambda s: s[0] < 1e3, lambda s: (s[0] * a, s[1] + s[0]), (a, 0.0 * a))[1]
    fast = fad.jit(fad.grad(slow))
    for a in (3.0, 1.2, 1.01, 1.001, 2.0):
        np.testing.assert_allclose(fast(np.float64(a)), fad.grad(slow)(a), rtol=1e-8)
    assert fast.cache_info().paths == 1


def test_a_loop_of_no_steps_hands_its_cotangent_on():
    f = lambda x, n: np.sum(control.fori_loop(0, n, lambda i, s: s * s, x) * 3.0)
    fast, twice = fad.jit(fad.grad(f)), fad.jit(fad.grad(lambda x, n: np.sum(fad.grad(f)(x, n))))
    x = np.linspace(0.5, 1.5, 3)
    for n in (0, 3, 1, 0, 2):
        np.testing.assert_allclose(fast(x, n), 3.0 * 2**n * x ** (2**n - 1))
        np.testing.assert_allclose(twice(x, n), fad.grad(lambda x: np.sum(fad.grad(f)(x, n)))(x))  # noqa: B023


def test_a_stack_grows_beyond_what_it_had_and_is_used_again():
    f = lambda x, n: np.sum(control.fori_loop(0, n, lambda i, s: np.sin(s) + 0.1 * s[::-1], x))
    fast = fad.jit(fad.grad(f))
    x = np.linspace(0.1, 1.0, 30)
    for n in (3, 700, 20, 6000, 5):
        np.testing.assert_allclose(fast(x, n), fad.grad(lambda x: f(x, n))(x), rtol=1e-8)  # noqa: B023


def test_elements_of_a_batch_stop_at_different_times():
    f = lambda a: control.while_loop(lambda s: s < 50.0, lambda s: s * a + 0.5 * np.sin(s) + 1.0, a * 1.0)
    a = np.array([1.1, 5.0, 60.0, 1.5])
    for g in (f, fad.grad(f), fad.grad(fad.grad(f)), lambda x: fad.jvp(fad.grad(f), (x,), (1.0,))[1]):
        want = [g(x) for x in a]
        for mapped in (fad.vmap(g), fad.jit(fad.vmap(g)), fad.vmap(fad.jit(g))):
            np.testing.assert_allclose(mapped(a), want, rtol=1e-8)


# --- what a pullback is asked -----------------------------------------------------------------------------------------


def test_one_pullback_may_be_called_again_and_over_a_batch():
    def f(x):
        return upto(5, lambda s: np.sin(s * x) + 0.5 * s[::-1], x * 1.0)

    def pulled(x):
        y, pull = fad.vjp(f, x)
        return y, pull(np.ones(3))[0], pull(y)[0], fad.vmap(lambda ct: pull(ct)[0])(np.eye(3))

    x = np.array([0.3, 0.7, 1.1])
    fast = check_as_plain(pulled, x)
    assert fast(x)[0].shape == (3,)
    check_as_plain(fad.jacobian(f), x)
    check_as_plain(fad.hessian(lambda x: np.sum(f(x))), x)


def test_a_derivative_with_respect_to_what_is_not_in_the_first_one():
    f = lambda x, p: upto(4, lambda s: np.sin(s * p) + p * p, x * 1.0)
    check_as_plain(fad.grad(lambda p: fad.grad(f)(X, p)), np.float64(0.4))
    check_as_plain(lambda p: fad.jvp(lambda p: fad.grad(f)(X, p), (p,), (1.0,))[1], np.float64(0.4))
    check_as_plain(lambda p: fad.vmap(fad.grad(f), in_axes=(None, 0))(X, p * np.arange(1.0, 4.0)), np.float64(0.4))
    check_as_plain(lambda p: fad.vmap(fad.grad(f), in_axes=(0, None))(np.arange(1.0, 4.0), p), np.float64(0.4))


@WITH_INVERTED_BOOLS
@pytest.mark.parametrize("dtype", [np.float32, np.complex128])
def test_dtypes_go_through_a_stack(dtype):
    x = np.asarray([0.5, 0.8], dtype) + (0.1j if dtype is np.complex128 else 0)

    def f(x):
        state = control.while_loop(lambda s: s[0] < 5, lambda s: (s[0] + 1, ~s[1], np.sin(s[2]) * x), (0, True, x * 1))
        return np.sum(np.abs(state[2]) ** 2)

    check_as_plain(fad.grad(f), x, rtol=1e-5 if dtype is np.float32 else 1e-9)


def test_a_body_without_kernels_runs_on_the_same_stack():
    def f(a):
        inner = lambda s: upto(3, lambda t: np.sin(t) + a, s)
        return np.sum(upto(4, lambda s: np.sort(np.linalg.inv(inner(s) + 3 * np.eye(2)), axis=0), a * 1.0))

    a = np.array([[0.4, 0.1], [0.2, 0.3]])
    check_as_plain(fad.grad(f), a)
    check_as_plain(lambda a: fad.jvp(fad.grad(f), (a,), (np.ones((2, 2)),))[1], a)


def test_custom_rules_and_stop_gradient_in_a_body_without_a_bound_are_kept():
    @fad.custom_vjp
    def bounded(x):
        return x * 2.0

    bounded.defvjp(lambda x: (bounded(x), x), lambda x, ct: (np.clip(ct, -1.0, 1.0) * np.cos(x),))

    @fad.custom_jvp
    def clipped(x):
        return x * x

    clipped.defjvp(lambda primals, tangents: (clipped(*primals), 10.0 * primals[0] * tangents[0]))
    ruled = lambda a: upto(4, lambda t: clipped(t) * 0.1 + fad.stop_gradient(t * a) + 0.5 * a * t, a * 1.0)
    check_as_plain(fad.grad(ruled), X)
    check_as_plain(fad.grad(fad.grad(ruled)), X)
    pulled = lambda a: upto(4, lambda t: bounded(t) * 0.3 + a * 0.1, a * 1.0)
    check_as_plain(fad.grad(pulled), X)
    check_as_plain(fad.grad(fad.grad(pulled)), X)
    check_as_plain(fad.vmap(fad.grad(pulled)), np.array([0.3, 1.2]))


def test_threads_have_stacks_of_their_own():
    fast = fad.jit(fad.grad(lambda x, n: upto(n, lambda s: np.sin(s) + 0.1 * s[::-1], x).sum()))
    x = np.linspace(0.1, 1.0, 9)
    fast(x, 5), fast(x, 5)
    want = {n: fast(x, n) for n in range(1, 30)}
    wrong = []

    def run(n):
        for _ in range(40):
            wrong.extend([n] * (not np.array_equal(fast(x, n), want[n])))

    threads = [threading.Thread(target=run, args=(n,)) for n in (3, 11, 29)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


# --- what is recorded -------------------------------------------------------------------------------------------------


def test_nested_loops_stay_one_loop_each_however_many_steps():
    small, large = (fad.make_graph(fad.grad(f))(X) for f in (whiles_in_a_while, triangle))
    assert len(small) < 15
    assert len(large) < 15
    text = fad.source(fad.grad(whiles_in_a_while))(X)
    assert text.count("while ") == 3  # the outer one, and the inner one twice: forward, and to keep what backward needs
    space = {}
    exec(text, space)
    np.testing.assert_allclose(space["program"](X), fad.grad(whiles_in_a_while)(X), rtol=1e-12)
    assert "fad" not in re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)


def test_a_loop_beside_its_pullback_runs_once():
    text = fad.source(fad.value_and_grad(lambda a: upto(5, lambda s: np.sin(s * a), a)))(X)
    assert text.count("while ") == 1


def test_loops_without_a_bound_are_native(lowering):
    for f in (whiles_in_a_while, triangle, matrix_states):
        fast = fad.jit(fad.grad(f))
        fast(X), fast(X)
        if lowering == "llvm":
            assert "calls of NumPy" not in fast.explain()


def test_the_memory_of_a_stack_is_one_for_native_code_and_python():
    memory = StackMemory([Type((3,), np.dtype(np.float32)), Type((), np.dtype(bool), "scalar")])
    depth = 0
    for k in range(9):
        depth = memory.push(depth, (np.full(3, k, np.float32), k % 2 == 0))
    assert depth == 9
    assert memory.nbytes >= 9 * memory.record
    for k in reversed(range(9)):
        depth, some, even = memory.pop(depth)
        np.testing.assert_array_equal(some, np.full(3, k))
        assert bool(even) == (k % 2 == 0)
    assert depth == 0


# --- random nests -----------------------------------------------------------------------------------------------------

# A program is a list of statements on the state (v, an array of three, and s, a number): tuples of a kind and parts.
SIMPLE = st.one_of(
    st.tuples(st.just("sin"), st.sampled_from([0.4, 0.9])),
    st.tuples(st.just("mix"), st.integers(0, 2)),
    st.tuples(st.just("write"), st.integers(0, 2)),
    st.tuples(st.just("write at counter"), st.just(0)),
    st.tuples(st.just("parameter"), st.just(0)),
)


def nests(inner):
    body = st.lists(inner, min_size=1, max_size=3)
    return st.one_of(
        SIMPLE,
        st.tuples(st.just("fori"), st.integers(0, 3), body),
        st.tuples(st.just("triangle"), body),
        st.tuples(st.just("while"), st.sampled_from([0.5, 1.5]), body),
        st.tuples(st.just("cond"), body, body),
    )


PROGRAM = st.lists(st.recursive(SIMPLE, nests, max_leaves=6), min_size=1, max_size=3)


def run_program(program, v, s, a, i):
    for kind, *parts in program:
        if kind == "sin":
            v, s = np.sin(v * parts[0] + s), s * 0.9
        elif kind == "mix":
            s = s + 0.1 * np.tanh(v[parts[0]])
        elif kind == "write":
            v = v.copy()
            v[parts[0]] = 0.5 * v[parts[0] - 1] * s
        elif kind == "write at counter":
            v = v.copy()
            v[i % 3] += a * s
        elif kind == "parameter":
            v = v * a + 0.1
        elif kind in ("fori", "triangle"):
            n, body = parts if kind == "fori" else (i + 1, parts[0])
            v, s = control.fori_loop(0, n, lambda j, t, body=body: run_program(body, *t, a, j), (v, s))
        elif kind == "while":
            limit, body = parts
            step = lambda t, body=body: (*run_program(body, t[0], t[1], a, t[2]), t[2] + 1)
            go = lambda t, limit=limit: np.logical_and(np.abs(t[1]) < limit, t[2] < 4)
            v, s, _ = control.while_loop(go, step, (v, s, 0))
        else:
            yes, no = (lambda w, q, body=body: run_program(body, w, q, a, i) for body in parts)
            v, s = control.cond(v[0] > s, yes, no, v, s)
    return v, s


@settings(max_examples=4, deadline=None)
@given(program=PROGRAM)
def test_random_nests_have_the_derivatives_of_the_plain_loops(program):
    def f(a):
        v, s = run_program(program, a * np.array([0.3, -0.5, 0.8]), 0.4 * a, a, 1)
        return np.sum(v * np.array([1.0, 2.0, 0.5])) + s

    a = np.float64(0.8)
    for g in (fad.value_and_grad(f), fad.grad(fad.grad(f)), lambda x: fad.jvp(fad.grad(f), (x,), (1.0,))[1]):
        fast, wanted = fad.jit(g), fad.tree.leaves(g(a))
        for _ in range(2):
            np.testing.assert_allclose(fad.tree.leaves(fast(a)), wanted, rtol=1e-7, atol=1e-10)
    points = np.array([0.8, -0.3, 1.4])
    np.testing.assert_allclose(
        fad.jit(fad.vmap(fad.grad(f)))(points), [fad.grad(f)(p) for p in points], rtol=1e-7, atol=1e-10
    )
