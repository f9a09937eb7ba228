"""Plain arrays that a jitted program refills: each use is a constant of its own, with what the array held then."""

import gc
import importlib
import weakref

import numpy as np
import pytest
from refilled import PROGRAMS, X

import fad


def same(f, x=X, calls=4):
    """Compare every call of a jitted function with the function itself, on other values each time."""
    fast = fad.jit(f)
    for k in range(calls):
        for got, want in zip(*map(fad.tree.leaves, (fast(x + 0.1 * k), f(x + 0.1 * k))), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-10, atol=1e-10)
    return fast


@pytest.mark.parametrize("f", PROGRAMS)
def test_an_array_that_is_refilled_between_its_uses_is_several_constants(f):
    for g in (f, fad.grad(f), fad.hessian(f), lambda x: fad.vmap(f)(np.stack([x, 2.0 * x])), fad.checkpoint(f)):
        assert same(g).cache_info().misses == 1
    for g in (lambda x: fad.jvp(f, (x,), (x,)), lambda x: fad.linearize(f, x)[1](x), fad.jacobian(fad.grad(f))):
        same(g)
    fast = fad.jit(f)
    for _ in range(3):
        np.testing.assert_allclose(fad.grad(fast)(X), fad.grad(f)(X), rtol=1e-10)


@pytest.mark.parametrize("n", [3, 5_000])
def test_an_array_made_outside_and_refilled_inside_is_recorded_at_most_twice(n):
    class Model:
        scratch = np.zeros(n)

    def f(x):
        total = 0.0
        for k in range(3):
            Model.scratch[:] = k
            total = total + x[0] * Model.scratch[1:] * Model.scratch[:-1]
        return total

    assert same(f, calls=6).cache_info().misses == 2


@pytest.mark.parametrize("n", [3, 5_000])
@pytest.mark.parametrize("first", [True, False])
def test_an_array_from_outside_that_a_function_goes_on_changing_changes_in_every_call(n, first):
    def run(call, state):
        def f(x):
            if first:
                np.negative(state, out=state)
            y = x[0] * state
            state[n // 2] += 1.0
            return y

        f = call(f)
        return [f(X + k) for k in range(5)]

    np.testing.assert_array_equal(run(fad.jit, np.ones(n)), run(lambda f: f, np.ones(n)))


@pytest.mark.parametrize("n", [1, 2, 3])
def test_an_array_from_outside_that_is_changed_before_its_first_use_changes_in_every_call(n):
    def run(call):
        states = {"all": [np.ones(4), np.ones(4)]}

        def f(x):
            for _ in range(n):
                states["all"][1] *= -1.0
            return x[0] * states["all"][1]

        f = call(f)
        return [f(X + k) for k in range(5)]

    np.testing.assert_array_equal(run(fad.jit), run(lambda f: f))


def test_an_array_that_the_caller_overwrites_between_calls_is_noticed_beside_those_refilled_inside():
    outside, scratch = np.ones(3), np.zeros(3)

    def f(x):
        scratch[:] = 2.0
        y = x * scratch * outside
        scratch[:] = 3.0
        return y + x * scratch

    fast = fad.jit(f)
    for k in (0, 0, 0, 1, 1, 1):
        outside[1] = k
        np.testing.assert_array_equal(fast(X), f(X))
    hits = fast.cache_info().hits
    fast(X)
    assert fast.cache_info().hits == hits + 1


def test_a_body_of_a_loop_that_refills_an_array_is_right():
    outside = np.ones(3)

    def body(carry, _):
        t = np.ones(3)
        carry = carry + t * X
        t[:] = 2.0
        outside[:] = 1.0
        carry = carry * outside
        outside[:] = 0.5
        return carry * outside + t, carry

    def f(x):
        return fad.scan(body, x, None, length=4)

    same(f)
    same(fad.grad(lambda x: np.sum(f(x)[0] ** 2)))


def test_a_refilled_array_that_is_returned_is_what_it_was_at_the_end_and_nobody_elses():
    outside = np.zeros(3)

    def f(x):
        outside[:] = 1.0
        y = x * outside
        outside[:] = 2.0
        return y, outside

    fast = fad.jit(f)
    for _ in range(4):
        y, last = fast(X)
        np.testing.assert_array_equal(y, X)
        np.testing.assert_array_equal(last, [2.0, 2.0, 2.0])
        last[:] = 7.0
        assert not np.shares_memory(last, outside)


@pytest.mark.parametrize("n", [10, 100_000])
def test_a_recording_holds_one_array_for_a_constant_whatever_transforms_used_it(n):
    data = np.linspace(0.0, 1.0, n)
    fast = fad.jit(fad.grad(lambda x: np.sum(np.sin(x[0] * data) * data)))
    fast(X)
    (path,) = next(iter(fast._signatures.values())).paths
    arrays = [c for c in path.graph.constants.values() if np.shape(c) == (n,)]
    assert len({id(c) for c in arrays}) == 1
    assert (arrays[0] is data) == (n > 10)  # a large one is not copied for good


def test_an_array_made_inside_is_let_go_after_the_recording():
    made = []

    def f(x):
        import numpy as np  # NumPy's own functions: plain arrays

        t = np.ones(50_000)
        made.append(weakref.ref(t))
        y = x[0] * t
        t *= 2.0
        return np.sum(y + t * x[1])

    same(f)
    gc.collect()
    assert all(ref() is None for ref in made)


def test_an_array_too_large_to_copy_that_is_refilled_is_refused(monkeypatch):
    monkeypatch.setattr("fad.transforms.arguments.mutation._BUDGET", 0)

    def f(x):
        np = importlib.import_module("numpy")  # its own functions: plain arrays

        t = np.zeros(5_000)
        y = x[0] * t
        t[7] = 1.0
        return y

    with pytest.raises(fad.errors.MutationError, match="overwritten"):
        fad.jit(f)(X)


@pytest.mark.parametrize("order", ["C", "F"])
def test_views_of_a_large_constant_that_rules_take_are_of_the_array_itself(order):
    data = np.asarray(np.arange(60_000.0).reshape(200, 300) / 1e5, order=order)
    fast = fad.jit(fad.grad(lambda w: np.sum(np.sin(data @ w) + data[::2, 3] @ w[:100])))
    w = np.linspace(0.0, 1.0, 300)
    want = fad.grad(lambda w: np.sum(np.sin(data @ w) + data[::2, 3] @ w[:100]))(w)
    for _ in range(3):
        np.testing.assert_allclose(fast(w), want, rtol=1e-10)
    (path,) = next(iter(fast._signatures.values())).paths
    large = [c for c in path.graph.constants.values() if np.size(c) == data.size]
    assert large
    assert all(np.shares_memory(c, data) for c in large)
    data *= 2.0
    want = fad.grad(lambda w: np.sum(np.sin(data @ w) + data[::2, 3] @ w[:100]))(w)
    np.testing.assert_allclose(fast(w), want, rtol=1e-10)


@pytest.mark.parametrize("n", [4, 700])
@pytest.mark.parametrize(
    "read", [lambda b: b[1:].sum(), lambda b: b[::-1] * 1.0, lambda b: np.concatenate([b[2:], b[:2]]), lambda b: b[1:]]
)
def test_what_is_computed_of_a_state_that_changes_in_every_call_changes_as_well(read, n):
    def run(call):
        state = [np.arange(1.0, n + 1.0)]

        def f(x):
            y = np.sum(x) * read(state[0])
            state[0][:] = -state[0][::-1]
            return y + np.sum(x) * read(state[0])

        f = call(f)
        return [f(X + k) for k in range(5)]

    np.testing.assert_allclose(run(fad.jit), run(lambda f: f), rtol=1e-12)
