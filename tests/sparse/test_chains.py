"""Jacobians of functions that gather from what they computed, or add it up at indices, are the dense ones.

They take the passes of the parts alone.
"""

from unittest import mock

import numpy as np
import pytest

import fad
from fad.sparse import derivatives
from fad.sparse.chains import bound_others
from fad.sparse.colouring import cost

N = 12
RNG = np.random.default_rng(5)
I, J = RNG.integers(0, N, (2, 3 * N))
FIRST, SECOND = RNG.integers(0, N, (2, N, 4))
X = RNG.normal(size=N)


def network(w):
    hidden = np.tanh(np.sum(w[0] * X[FIRST], axis=1))
    return np.tanh(np.sum(w[1] * hidden[SECOND], axis=1))


def inputs_behind_gathers(x):
    height = np.sin(x[I]) * x[J]
    return height[J] * height[I[::-1]] + x[J]


def written_after_it_was_gathered(x):
    h = x**2 + 1.0
    y = h[I] * x[J]
    h[:5] = np.cos(x[:5])
    return y + h[J] + x[0]


def read_and_gathered(x):
    h = np.exp(x)
    return {"a": h * x, "b": h[I] * h[J]}


def gathered_of_gathered(x):
    h = np.sin(x)
    g = h[I] * h[J]
    return g[J] * g[I]


def rows(x):
    h = np.stack([x, x * x, np.sin(x)], axis=1)
    return np.sum(h[I] * h[J], axis=1)


def twice_the_same(x):
    h = x**3
    return np.concatenate([h[I], h[I] * h[J]])


def of_a_gradient(x):
    return fad.grad(lambda z: np.sum(np.tanh(np.sin(z)[I] * z[J])))(x)


def added_up(x):
    flow = np.sin(x[I]) * x[J]
    return np.exp(0.1 * np.bincount(I, flow, N + 3)) * np.bincount(J, flow**2, N + 3)


def added_up_at(x):
    total = np.cos(x)
    np.add.at(total, I, x[J] * x[I])
    total[2] = x[1] ** 2
    return total * x


def added_up_rows(x):
    total = np.zeros((N, 2))
    np.add.at(total, I, np.stack([x[J] * x[I], np.sin(x[J])], axis=1))
    return total[:, 0] * total[:, 1] + total[:, :1].sum()


def added_up_and_gathered(x):
    total = np.bincount(I, np.sin(x[I]) * x[J], N)
    return total[J] * x[I]


def added_up_to_one_place(x):
    return np.bincount(np.full(I.size, 4), x[I] * x[J], 5) * x[:5]


FUNCTIONS = {
    f.__name__: (f, args)
    for f, args in [
        (network, RNG.normal(size=(2, N, 4))), (inputs_behind_gathers, X), (written_after_it_was_gathered, X),
        (read_and_gathered, X), (gathered_of_gathered, X), (rows, X), (twice_the_same, X), (of_a_gradient, X),
        (added_up, X), (added_up_at, X), (added_up_rows, X), (added_up_and_gathered, X), (added_up_to_one_place, X),
    ]
}  # fmt: skip


def dense(f, x):
    blocks = [np.reshape(part, (-1, x.size)) for part in fad.tree.leaves(fad.jacobian(f)(x))]
    return np.concatenate(blocks)


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_the_jacobian_through_gathers_of_computed_arrays_is_the_dense_one(name, mode):
    f, x = FUNCTIONS[name]
    jacobian = fad.sparse.jacobian(f, mode=mode)
    for point in (x, x + 0.5):
        assert np.allclose(jacobian(point).toarray(), dense(f, point), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_so_is_the_compiled_one(name):
    f, x = FUNCTIONS[name]
    jacobian = fad.jit(fad.sparse.jacobian(f))
    for point in (x, x + 0.5, x - 0.25):
        assert np.allclose(jacobian(point).toarray(), dense(f, point), rtol=1e-12, atol=1e-13)


def test_a_layer_of_neurons_takes_one_pass_however_many_share_a_neuron_before_it():
    f, w = FUNCTIONS["network"]
    jacobian = fad.sparse.jacobian(f)
    assert jacobian.explain(w).endswith("passes: 1 in reverse")


def test_sums_of_what_pairs_of_nodes_exchange_take_the_passes_of_one_pair():
    x = RNG.normal(size=200)
    i, j = RNG.integers(0, 200, (2, 1000))

    def balance(x):
        flow = np.sin(x[i] - x[j])
        return np.bincount(i, flow, 200) - np.bincount(j, flow * flow, 200)

    jacobian = fad.sparse.jacobian(balance)
    assert jacobian.explain(x).endswith("passes: 2 forward")
    assert np.allclose(jacobian(x).toarray(), fad.jacobian(balance)(x), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("transform", [lambda f: f, fad.jit])
def test_sums_at_other_places_are_seen(transform):
    def f(x, i):
        total = np.zeros(N)
        np.add.at(total, i, np.sin(x[I]) * x[J])
        return total * x

    jacobian = transform(fad.sparse.jacobian(f))
    for i in (I, J, I[::-1].copy(), I):
        i = np.append(i[:-1], N - 1)
        assert np.allclose(jacobian(X, i).toarray(), fad.jacobian(f)(X, i), rtol=1e-12)


def test_entries_through_computed_arrays_keep_the_dtype():
    def f(x):
        h = np.tanh(x)
        return h[I] * h[J]

    found = fad.sparse.jacobian(f)(X.astype(np.float32))
    assert found.dtype == np.float32
    assert np.allclose(found.toarray(), fad.jacobian(f)(X), rtol=1e-5)


def test_a_loop_of_very_many_gathers_of_computed_arrays_leaves_those_of_the_inputs_cut():
    def loop(x):
        y = x[I] * np.sin(x[J])
        for k in range(300):
            y = np.where(np.arange(y.size) == k, y[np.zeros(y.size, int) + k % 5] * y, y)
        return y

    assert np.allclose(fad.sparse.jacobian(loop)(X).toarray(), fad.jacobian(loop)(X), rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("transform", [lambda f: f, fad.jit])
def test_other_elements_of_a_computed_array_are_seen(transform):
    def f(x, i):
        h = np.sin(x)
        return h[i] * h[i[::-1]] * x[J]

    jacobian = transform(fad.sparse.jacobian(f))
    for i in (I, J, I[::-1].copy(), I):
        assert np.allclose(jacobian(X, i).toarray(), fad.jacobian(f)(X, i), rtol=1e-12)


def test_indices_computed_from_values_are_seen_in_a_computed_array():
    def f(x):
        h = np.sin(x)
        return h[np.argsort(x)[I]] * x[J]

    jacobian = fad.sparse.jacobian(f)
    for point in (X, X[::-1].copy(), X**2):
        assert np.allclose(jacobian(point).toarray(), fad.jacobian(f)(point), rtol=1e-12)


@pytest.mark.parametrize("mode", ["fwd", "rev", "auto"])
@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.quantile(x, [0.25, 0.5], axis=-2),
        lambda x: np.sort(x, axis=0)[[0, 0, 1]] + 0.5 * np.sort(x, axis=0)[[1, 1, 0]],
        lambda x: np.sort(x[[0, 0, 1]], axis=0) * np.array([[1.0], [2.0], [3.0]]),
    ],
    ids=["quantile", "sort", "sorted gathers"],
)
def test_sorted_elements_in_another_order_are_found_where_the_matrix_has_the_same_places(f, mode):
    jacobian = fad.sparse.jacobian(f, mode=mode)
    x = np.array([[-0.694, 1.117, -0.661], [-0.875, 0.184, -0.573]])
    for point in (x, x[::-1].copy(), -x, x):
        assert np.allclose(jacobian(point).toarray(), fad.jacobian(f)(point).reshape(-1, 6), rtol=1e-12)


def test_a_dependence_that_appears_at_another_point_is_found():
    def f(x):
        h = np.sin(x) if x[0] > 0 else np.sin(x) * x[::-1]
        return h[I] * x[J]

    jacobian = fad.sparse.jacobian(f)
    for point in (np.abs(X), -np.abs(X), np.abs(X)):
        assert np.allclose(jacobian(point).toarray(), fad.jacobian(f)(point), rtol=1e-12)


def test_a_jacobian_through_computed_arrays_is_differentiated_by_other_transforms():
    def f(x):
        h = np.sin(x)
        return h[I] * h[J] * x[J]

    jacobian = fad.sparse.jacobian(f)

    def norm(x, jacobian=jacobian):
        return np.sum((jacobian(x) @ np.cos(X)) ** 2)

    def by_dense(x):
        return np.sum((fad.jacobian(f)(x) @ np.cos(X)) ** 2)

    assert np.allclose(fad.grad(norm)(X), fad.grad(by_dense)(X), rtol=1e-10)
    assert np.allclose(fad.jvp(norm, (X,), (X,))[1], fad.jvp(by_dense, (X,), (X,))[1], rtol=1e-10)
    assert np.allclose(fad.jit(fad.grad(norm))(X), fad.grad(by_dense)(X), rtol=1e-10)
    stack = np.stack([X, X + 1])
    assert np.allclose(fad.vmap(norm)(stack), [by_dense(x) for x in stack], rtol=1e-10)


def test_products_of_a_few_passes_are_taken_where_many_would_be_needed():
    x = RNG.normal(size=(40, 3))
    i, j = RNG.integers(0, 40, (2, 600))

    def forces(x):
        way = x[j] - x[i]
        total = np.zeros_like(x)
        np.add.at(total, i, way * np.sum(way**2, axis=1)[:, None])
        return total

    jacobian = fad.sparse.jacobian(forces)
    assert jacobian.explain(x).endswith("passes: 3 in reverse") or jacobian.explain(x).endswith("passes: 6 forward")
    assert np.allclose(jacobian(x).toarray(), fad.jacobian(forces)(x).reshape(120, 120), rtol=1e-12, atol=1e-12)


def test_where_parts_take_few_passes_others_are_not_looked_for():
    x = RNG.normal(size=(2, 300))
    i, j = RNG.integers(0, 300, (2, 1500))

    def balance(x):
        (a, b), (v, w) = x[:, i], x[:, j]
        p, q = b * w * np.sin(a - v), b * w * np.cos(a - v)
        return np.stack([np.bincount(i, k * b, 300) - np.bincount(j, k * w, 300) for k in (p, q)])

    with mock.patch.object(derivatives, "dependences", wraps=derivatives.dependences) as looks:
        jacobian = fad.sparse.jacobian(balance)
        wanted = fad.jacobian(balance)(x).reshape(600, 600)
        assert np.allclose(jacobian(x).toarray(), wanted, rtol=1e-12, atol=1e-13)
    assert jacobian.explain(x).endswith("passes: 4 forward")
    assert looks.call_count == 1


@pytest.mark.parametrize("name", FUNCTIONS)
def test_other_passes_cost_what_their_bound_says_at_least(name):
    f, x = FUNCTIONS[name]
    bounds = []

    def refuse(*args):
        bounds.append(bound_others(*args))
        return -1.0

    with mock.patch.object(derivatives, "bound_others", refuse), mock.patch.object(derivatives, "REVERSE", -1):
        with mock.patch.object(derivatives, "_GAIN", 1000):
            plan = fad.sparse.jacobian(f)._find_plans(derivatives.Point(f, (x,), {}, 0, "test"))[-1]
    assert plan.inner is None
    assert all(bound <= cost(plan) for bound in bounds)


@pytest.mark.parametrize("mode", ["auto", "fwd", "rev"])
@pytest.mark.parametrize("name", ["gathered", "added up"])
def test_entries_have_the_dtype_of_the_dense_ones_whatever_is_computed_with_on_the_way(name, mode, either_way):
    def gathered(x):
        return (x.astype(np.float64) ** 2)[I].astype(np.float32) * x[J]

    def added_up(x):
        return np.bincount(I, x[J] ** 2, N).astype(np.float32) + x  # NumPy adds up in double precision

    f = gathered if name == "gathered" else added_up
    x = X.astype(np.float32)
    found, wanted = fad.sparse.jacobian(f, mode=mode)(x), fad.jacobian(f)(x)
    assert found.dtype == wanted.dtype == np.float32
    assert np.allclose(found.toarray(), wanted, rtol=1e-5)
