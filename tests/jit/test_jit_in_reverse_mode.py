"""A jitted function under reverse mode runs once when it is recorded, whatever it counts, appends or fills besides."""

import numpy as np
import pytest

import fad

X = np.array([2.0, 3.0])

REVERSE = {
    "jacrev": lambda f: fad.jacrev(f)(X),
    "jacobian": lambda f: fad.jacobian(f)(X),
    "vjp": lambda f: fad.vmap(fad.vjp(f, X)[1])(np.eye(2))[0],
    "a pullback called twice": lambda f: _row_by_row(fad.vjp(f, X)[1]),
    "grad": lambda f: np.stack([fad.grad(lambda x, k=k: f(x)[k])(X) for k in (0, 1)]),
}


def _row_by_row(pullback):
    return np.stack([pullback(np.array([1.0, 0.0]))[0], pullback(np.array([0.0, 1.0]))[0]])


@pytest.mark.parametrize("name", REVERSE)
def test_an_array_from_outside_is_written_once_with_what_python_counts(name):
    ring, at = np.zeros(4), [0]

    def f(x):
        ring[at[0]] = at[0] + 1.0
        at[0] += 1
        return x * np.sum(ring)

    runs = 2 if name == "grad" else 1
    got = REVERSE[name](fad.jit(f))
    assert at == [runs]
    np.testing.assert_array_equal(ring, [1.0, 2.0 if runs == 2 else 0.0, 0.0, 0.0])
    np.testing.assert_array_equal(got, [[1.0, 0.0], [0.0, 3.0 if runs == 2 else 1.0]])


def test_every_call_writes_into_the_array_from_outside():
    ring, at = np.zeros(3), [0]

    def f(x):
        ring[at[0]] = at[0] + 1.0
        at[0] += 1
        return x * ring

    fast = fad.jit(f)
    for n in (1, 2, 3):
        want = np.where(np.arange(3) < n, np.arange(1.0, 4.0), 0.0)
        np.testing.assert_array_equal(fad.jacrev(fast)(np.ones(3)), np.diag(want))
        np.testing.assert_array_equal(ring, want)
        assert at == [n]


def test_a_large_array_from_outside_is_written_in_two_calls_under_one_derivative():
    big, at = np.zeros(70_000), [0]

    @fad.jit
    def f(x):
        at[0] += 1
        big[:] = at[0]
        return x * big[5]

    assert fad.grad(lambda x: f(x) + f(x))(1.0) == 3.0
    assert at == [2]


def test_a_method_counts_once():
    class Layer:
        def __init__(self):
            self.n, self.v = 0, np.zeros(2)

        def __call__(self, x):
            self.n += 1
            self.v[0] += self.n
            return x * self.v

    layer = Layer()
    np.testing.assert_array_equal(fad.jacrev(fad.jit(lambda x: layer(x)))(X), np.diag([1.0, 0.0]))
    assert layer.n == 1
    np.testing.assert_array_equal(layer.v, [1.0, 0.0])


@pytest.mark.parametrize("name", ["jacrev", "jacobian", "vjp", "a pullback called twice"])
def test_a_count_is_what_it_was_in_the_one_run(name):
    count = [0]

    def f(x):
        count[0] += 1
        return x * count[0]

    np.testing.assert_array_equal(REVERSE[name](fad.jit(f)), np.eye(2))
    assert count == [1]


@pytest.mark.parametrize(
    "other", [lambda: np.zeros(3), lambda: np.eye(3)[1], lambda: 2.0], ids=["zeros", "row", "number"]
)
@pytest.mark.parametrize("take", [fad.jacobian, fad.jacrev])
def test_a_result_that_does_not_depend_on_the_argument_runs_nothing_again(take, other):
    calls = []

    def f(x):
        calls.append(1)
        return x * 2, other()

    jacobian = take(fad.jit(f))
    for _ in range(3):
        np.testing.assert_array_equal(jacobian(X)[0], 2 * np.eye(2))
    assert len(calls) == 1


def _scaled(x):
    y = x.copy()
    y *= np.array([x[0], x[1]])
    return y, np.zeros(2)


def _stacked(x):
    np.copyto(x, np.stack([x[0], x[1]]))
    return np.zeros(2)


@pytest.mark.parametrize("f", [_scaled, _stacked])
@pytest.mark.parametrize("take", [fad.jacobian, fad.jacrev])
def test_a_traced_value_is_written_beside_a_result_that_does_not_depend_on_the_argument(f, take):
    fast = take(fad.jit(f))
    for _ in range(3):
        for got, want in zip(fad.tree.leaves(fast(X)), fad.tree.leaves(take(f)(X)), strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("take", [fad.jacobian, fad.jacrev, fad.jacfwd])
def test_several_results_of_an_input_in_the_other_byte_order(take):
    f = fad.jit(lambda x: (x.copy(), x * 2))
    for _ in range(3):
        copied, doubled = take(f)(np.array([1.0, 2.0], ">f8"))
        np.testing.assert_array_equal(copied, np.eye(2))
        np.testing.assert_array_equal(doubled, 2 * np.eye(2))


@pytest.mark.parametrize("low", [1.0, -1.0])
def test_a_rule_may_ask_about_its_cotangent(low):
    @fad.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, None), lambda _, ct: (ct if ct > 0 else 0.0 * ct,))
    fast = fad.jit(lambda x: clipped(x) * 3.0)
    for sign in (low, -low, low):
        assert fad.grad(lambda x, s=sign: s * fast(x))(2.0) == max(3.0 * sign, 0.0)


def test_each_path_has_its_pullback():
    calls = []

    @fad.jit
    def f(x):
        calls.append(1)
        return np.sum(x * x) if x[0] > 0 else np.sum(-x)

    for _ in range(3):
        np.testing.assert_array_equal(fad.grad(f)(X), 2 * X)
        np.testing.assert_array_equal(fad.grad(f)(-X), [-1.0, -1.0])
    assert len(calls) == 2


def test_what_a_rule_raises_is_raised_when_the_pullback_is_called():
    def refuse(_, ct):
        raise ValueError("no derivative here")

    @fad.custom_vjp
    def rigid(x):
        return np.sum(x)

    rigid.defvjp(lambda x: (np.sum(x), None), refuse)
    f = fad.jit(lambda x: rigid(x) * 2.0)
    for _ in range(3):
        y, pullback = fad.vjp(f, X)
        assert y == 10.0
        with pytest.raises(ValueError, match="no derivative here"):
            pullback(1.0)


def test_a_constant_from_outside_that_changes_after_the_call_is_the_earlier_one_in_the_pullback():
    w = np.array([1.0, 2.0])
    f = fad.jit(lambda x: np.sum(w * x))
    for n in range(3):
        w[:] = [1.0 + n, 2.0]
        _, pullback = fad.vjp(f, X)
        w[:] = 0.0
        np.testing.assert_array_equal(pullback(1.0)[0], [1.0 + n, 2.0])


def test_derivatives_of_second_order_through_the_pullback():
    f = fad.jit(lambda x: np.sum(np.sin(x) ** 3))
    _, pullback = fad.vjp(f, X)
    for _ in range(3):
        np.testing.assert_allclose(
            fad.grad(lambda ct: np.sum(pullback(ct)[0] ** 2))(1.0), 2 * np.sum(pullback(1.0)[0] ** 2)
        )
        np.testing.assert_allclose(fad.jvp(pullback, (1.0,), (2.0,))[1][0], 2 * pullback(1.0)[0])
        np.testing.assert_allclose(fad.hessian(f)(X), fad.hessian(lambda x: np.sum(np.sin(x) ** 3))(X))
