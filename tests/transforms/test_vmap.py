"""vmap equals a loop, whatever the axes, the trees, the control flow inside and the transforms around it."""

import numpy as np
import pytest

import fad
import fad.numpy
from fad.errors import BatchedValueError, BatchingError, LoopFallbackWarning
from fad.scipy.optimize import brentq

A = np.arange(12.0).reshape(3, 4)
B = np.linspace(-1.0, 1.0, 12).reshape(3, 4)


def test_lanes_may_lie_along_any_axis_in_and_out():
    f = lambda x, y: np.outer(x, y)
    wanted = np.stack([np.outer(A[:, i], B[:, i]) for i in range(4)])
    np.testing.assert_array_equal(fad.vmap(f, in_axes=1)(A, B), wanted)
    np.testing.assert_array_equal(fad.vmap(f, in_axes=(-1, 1), out_axes=2)(A, B), np.moveaxis(wanted, 0, 2))
    np.testing.assert_array_equal(fad.vmap(f, in_axes=(1, 0), out_axes=-1)(A, B.T), np.moveaxis(wanted, 0, -1))


def test_arguments_that_are_not_mapped_are_passed_whole():
    np.testing.assert_array_equal(fad.vmap(lambda x, w: w @ x, in_axes=(0, None))(A, B), A @ B.T)
    np.testing.assert_array_equal(fad.vmap(lambda x, w: x * w, in_axes=(0, None))(A, 2.0), 2 * A)


def test_trees_in_and_out_with_axes_as_a_prefix():
    batch = {"a": A, "b": [B, np.ones(4)]}
    f = lambda p: {"s": np.sum(p["a"]) + np.sum(p["b"][0] * p["b"][1]), "pair": (p["a"], p["b"][0])}
    out = fad.vmap(f, in_axes=({"a": 0, "b": [0, None]},), out_axes={"s": 0, "pair": (1, 0)})(batch)
    np.testing.assert_allclose(out["s"], A.sum(1) + B.sum(1))
    np.testing.assert_array_equal(out["pair"][0], A.T)
    np.testing.assert_array_equal(out["pair"][1], B)


def test_keyword_arguments_are_mapped_over_their_first_axis():
    np.testing.assert_array_equal(fad.vmap(lambda x, y: x - y)(A, y=B), A - B)


def test_a_result_that_does_not_depend_on_the_batch_elements_is_repeated_and_writable():
    out = fad.vmap(lambda x: np.ones(2))(A)
    assert out.shape == (3, 2)
    out[0] = 5.0
    assert out[1, 0] == 1.0


def test_axis_size_alone_is_enough_when_nothing_is_mapped():
    assert fad.vmap(lambda x: x * 2.0, in_axes=None, axis_size=3)(1.0).tolist() == [2.0, 2.0, 2.0]


def test_an_empty_batch():
    assert fad.vmap(lambda x: np.sin(x).sum())(np.zeros((0, 4))).shape == (0,)


@pytest.mark.parametrize("chunk", [1, 2, 3, 5])
def test_chunks_change_nothing_but_the_memory(chunk):
    f = lambda x: (np.cumsum(x), x.sum())
    for a, b in zip(fad.vmap(f, chunk_size=chunk)(A), fad.vmap(f)(A), strict=True):
        np.testing.assert_array_equal(a, b)


def test_an_if_splits_the_batch_elements_by_the_path_they_take():
    def f(x):
        if x.sum() > 20:
            return x * 2
        if x[0] > 3:
            return x - 1
        return -x

    np.testing.assert_array_equal(fad.vmap(f)(A), np.stack([f(row) for row in A]))


def test_a_while_runs_each_batch_element_as_long_as_it_wants():
    def steps(x):
        n = 0
        while x > 1:
            x = x / 2
            n += 1
        return x, n

    x, n = fad.vmap(steps)(np.array([0.5, 3.0, 40.0, 3.5]))
    np.testing.assert_array_equal(n, [0, 2, 6, 2])
    np.testing.assert_allclose(x, [0.5, 0.75, 0.625, 0.875])


def test_a_split_inside_a_split_and_under_grad():
    def f(x, y):
        if x > 0:
            return x * y if y > 0 else x + y
        return np.sin(x)

    xs, ys = np.array([1.0, 2.0, -1.0, 3.0]), np.array([1.0, -1.0, 2.0, 2.0])
    np.testing.assert_allclose(fad.vmap(f)(xs, ys), [f(x, y) for x, y in zip(xs, ys, strict=True)])
    found = fad.vmap(fad.grad(f, (0, 1)))(xs, ys)
    wanted = [fad.grad(f, (0, 1))(x, y) for x, y in zip(xs, ys, strict=True)]
    for k in (0, 1):
        np.testing.assert_allclose(found[k], [w[k] for w in wanted])
    np.testing.assert_allclose(fad.grad(lambda x: fad.vmap(f)(x, ys).sum())(xs), found[0])


def test_a_nested_vmap_splits_both():
    f = lambda x, y: x + y if x > y else x * y
    xs, ys = np.array([0.5, 2.0]), np.array([1.0, 0.0, 3.0])
    found = fad.vmap(lambda x: fad.vmap(lambda y: f(x, y))(ys))(xs)
    np.testing.assert_array_equal(found, [[f(x, y) for y in ys] for x in xs])


def _factor_with_jitter(x):
    a = np.array([[1.0, x[0]], [x[0], 1.0]])
    jitter = 0.0
    while True:
        try:
            factor = np.linalg.cholesky(a + jitter * np.eye(2))
            break
        except np.linalg.LinAlgError:
            jitter += 0.5
    return np.log(factor[1, 1]) * x[1] + jitter


def _guarded_logarithm(x):
    try:
        with np.errstate(all="raise"):
            return np.log(x[0] - 1.0) * x[1]
    except FloatingPointError:
        return x[0] * x[1]


def _element_or_the_last(x):
    try:
        return x[(2 * x[0]).astype(int)] ** 2
    except IndexError:
        return x[-1] * x[0]


def _weighted_mean(x):
    try:
        return np.average(x, weights=x - 0.5)
    except ZeroDivisionError:
        return np.sum(x**3)


def _bracketed_root(x):
    try:
        return brentq(lambda t: t**2 - x[0], 0.0, 1.0) * x[1]
    except ValueError:
        return x[0] * x[1]


@fad.jit
def _jitted_solution(x):
    return np.linalg.solve(np.array([[x[0], 0.25], [1.0, 1.0]]), x)


@fad.custom_jvp
def _inverse(a):
    return np.linalg.inv(a)


@_inverse.defjvp
def _(primals, tangents):
    y = np.linalg.inv(*primals)
    return y, -y @ tangents[0] @ y


def _solution_or_zero(x):
    try:
        return _jitted_solution(x)[0] * x[1]
    except np.linalg.LinAlgError:
        return x[0] * x[1]


def _inverse_or_zero(x):
    try:
        return _inverse(np.array([[x[0], 0.25], [1.0, 1.0]]))[0, 1] * x[1]
    except np.linalg.LinAlgError:
        return x[0] * x[1]


@pytest.mark.parametrize(
    "f",
    [
        _factor_with_jitter, _guarded_logarithm, _element_or_the_last, _weighted_mean, _bracketed_root,
        _solution_or_zero, _inverse_or_zero,
    ],
)  # fmt: skip
def test_an_error_that_the_function_catches_is_one_of_the_examples_that_raise_it(f):
    x = np.array([[0.5, 2.0], [1.25, 0.3], [0.9, 0.1], [1.75, 3.0], [0.25, 0.75]])
    values, slopes = np.stack([f(row) for row in x]), np.stack([fad.grad(f)(row) for row in x])
    summed = lambda x: np.sum(fad.vmap(f)(x))
    for transform in (lambda f: f, fad.jit):
        np.testing.assert_allclose(transform(fad.vmap(f))(x), values, rtol=1e-12)
        np.testing.assert_allclose(transform(fad.vmap(fad.grad(f)))(x), slopes, rtol=1e-12)
        np.testing.assert_allclose(transform(fad.grad(summed))(x), slopes, rtol=1e-12)
    np.testing.assert_allclose(fad.vmap(fad.jit(f))(x), values, rtol=1e-12)
    np.testing.assert_allclose(fad.vmap(f, chunk_size=2)(x), values, rtol=1e-12)
    of_pairs = fad.vmap(lambda a: fad.vmap(lambda b: f(np.array([a, b])))(x[:, 1]))(x[:, 0])
    wanted = np.stack([[f(np.array([a, b])) for b in x[:, 1]] for a in x[:, 0]])
    np.testing.assert_allclose(of_pairs, wanted, rtol=1e-12)


def test_an_error_of_one_example_that_the_function_does_not_catch_is_raised():
    singular = np.stack([np.eye(2), np.ones((2, 2)), 2 * np.eye(2)])
    with pytest.raises(np.linalg.LinAlgError, match="Singular"):
        fad.vmap(np.linalg.inv)(singular)
    with pytest.raises(ValueError, match="matmul"):
        fad.vmap(lambda x: x @ np.ones(3))(singular)
    with pytest.raises(BatchedValueError, match="raises for some batch elements"):
        fad.vmap(_factor_with_jitter, on_branch="error")(np.array([[0.5, 2.0], [1.25, 0.3]]))


def test_user_code_that_catches_exceptions_does_not_catch_a_split():
    def f(x):
        try:
            return x if x > 1 else -x
        except Exception:
            return x * 0

    np.testing.assert_array_equal(fad.vmap(f)(np.array([0.0, 2.0])), [-0.0, 2.0])


def test_an_operation_without_a_batching_rule_runs_in_a_loop_with_one_warning():
    from fad.core.primitives.primitive import Primitive

    prim = Primitive("my_cube", lambda x: x**3, jvp=lambda t, y, xs, params: 3.0 * xs[0] ** 2 * t[0])
    with pytest.warns(LoopFallbackWarning, match="my_cube"):
        found = fad.vmap(prim)(A)
    np.testing.assert_array_equal(found, A**3)
    np.testing.assert_array_equal(fad.vmap(prim)(B), B**3)  # no second warning: it would be an error here


def test_per_example_gradients_of_a_model():
    w = {"a": np.array([[0.5, -1.0], [2.0, 0.1]]), "b": np.array([0.1, -0.2])}
    xs, ys = B[:, :2], np.array([1.0, 0.0, 2.0])
    loss = lambda p, x, y: (np.tanh(p["a"] @ x + p["b"]).sum() - y) ** 2
    found = fad.vmap(fad.grad(loss), in_axes=(None, 0, 0))(w, xs, ys)
    for i in range(3):
        one = fad.grad(loss)(w, xs[i], ys[i])
        np.testing.assert_allclose(found["a"][i], one["a"])
        np.testing.assert_allclose(found["b"][i], one["b"])


@pytest.mark.parametrize("transform", [fad.jacfwd, fad.jacrev, fad.hessian])
def test_vmap_of_jacobians_and_jacobians_of_vmap(transform):
    f = (lambda x: np.sin(x).sum() * x[0]) if transform is fad.hessian else (lambda x: np.sin(x) * x[0])
    found = fad.vmap(transform(f))(A)
    np.testing.assert_allclose(found, np.stack([transform(f)(row) for row in A]))
    whole = fad.jacfwd(fad.vmap(f))(A)
    if transform is not fad.hessian:
        for i in range(3):
            np.testing.assert_allclose(whole[i, :, i, :], found[i])


def test_random_masks_that_differ_between_batch_elements():
    f = lambda x: np.sum(x[x > 0])
    np.testing.assert_allclose(fad.vmap(f)(B), [f(row) for row in B])
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(B), (B > 0) * 1.0)


def test_batched_integers_index():
    f = lambda x, i: x[i] * 2
    np.testing.assert_array_equal(fad.vmap(f)(A, np.array([0, 3, 1])), [0.0, 14.0, 18.0])
    take = lambda x, i: fad.numpy.take(x, i) * 2  # x[i] would ask a plain array to read a traced index
    np.testing.assert_array_equal(fad.vmap(take, (None, 0))(A[0], np.array([0, 3, 1])), [0.0, 6.0, 2.0])


def test_axes_may_be_a_tree_of_dicts_and_lists_within_the_arguments():
    tree = {"a": np.arange(6.0).reshape(2, 3), "b": [np.arange(3.0), 2.0], "c": [np.ones(3), np.arange(3.0)]}
    found = fad.vmap(lambda t: t["a"] * t["b"][0] * t["b"][1] + t["c"][1], ({"a": 1, "b": [0, None], "c": 0},))(tree)
    np.testing.assert_array_equal(found, (tree["a"] * tree["b"][0] * 2.0 + tree["c"][1]).T)
    out = fad.vmap(lambda x: {"x": x, "y": x}, out_axes={"x": 1, "y": 0})(tree["a"])
    np.testing.assert_array_equal(out["x"], tree["a"].T)
    np.testing.assert_array_equal(out["y"], tree["a"])


@pytest.mark.parametrize(
    ("call", "said"),
    [
        (lambda x: fad.vmap(np.sin, out_axes=None)(x), "out_axes=None"),
        (lambda x: fad.vmap(np.sin, out_axes=2)(x), "only 2 axes"),
        (lambda x: fad.vmap(np.sin, (0, 0))(x), "2 entries"),
        (lambda x: fad.vmap(np.sin, ("first",))(x), "made of ints and None"),
        (lambda x: fad.vmap(lambda t: t["a"], ({"b": 0},))({"a": x}), "prefix"),
        (lambda x: fad.vmap(lambda r: r if np.sum(r) > 2.5 else r[:1])(x), "different shapes"),
        (lambda x: fad.vmap(lambda r: r if np.sum(r) > 2.5 else (r, r))(x), "different structures"),
    ],
)
def test_axes_and_results_that_do_not_fit_are_refused(call, said):
    with pytest.raises(BatchingError, match=said):
        call(np.arange(4.0).reshape(2, 2))


def test_axes_may_be_a_list_or_a_whole_tree_with_its_own_nones():
    x = np.arange(3.0)
    np.testing.assert_array_equal(fad.vmap(lambda x, y: x * y, [0, None])(x, 2.0), 2 * x)
    given = {"a": x, "b": None}
    np.testing.assert_array_equal(fad.vmap(lambda d: 2 * d["a"], ({"a": 0, "b": None},))(given), 2 * x)
    with pytest.raises(BatchingError, match="out_axes=None"):
        fad.vmap(lambda x: x, out_axes=None)(x)


def test_an_array_of_one_element_has_a_truth_value_in_each_batch_element():
    x = np.array([[2.0], [-1.0]])
    np.testing.assert_array_equal(fad.vmap(lambda x: 2 * x if x > 0 else x)(x), [[4.0], [-1.0]])


def test_a_batched_value_prints_its_batch_elements():
    seen = []
    fad.vmap(lambda x: seen.append(str(x)) or x)(np.arange(2.0))
    assert seen == ["2 batch elements of shape (): [0. 1.]"]


def test_a_batched_number_is_formatted_element_by_element_and_an_array_is_refused_as_in_numpy():
    seen = []
    fad.vmap(fad.grad(lambda x: seen.append(f"{x[0]:.2f}") or x[0]))(np.arange(4.0).reshape(2, 2))
    assert seen == ["2 batch elements of shape (): [0.00 2.00]"]
    with pytest.raises(TypeError, match="unsupported format string"):
        fad.vmap(lambda x: f"{x:.2f}" and x)(np.ones((2, 3)))


def test_out_axes_none_returns_an_unmapped_output_once():
    x, y = np.ones(4), np.arange(3.0)
    f = lambda x, y: (x + y, 2.0 * y, 3.0)
    for chunk_size in (None, 3):
        outs = fad.vmap(f, in_axes=(0, None), out_axes=(0, None, None), chunk_size=chunk_size)(x, y)
        np.testing.assert_array_equal(outs[0], x[:, None] + y)
        np.testing.assert_array_equal(outs[1], 2.0 * y)
        assert outs[2] == 3.0
        assert fad.vmap(f, in_axes=(0, None), chunk_size=chunk_size)(x, y)[1].shape == (4, 3)
    g = lambda y: np.sum(fad.vmap(f, in_axes=(0, None), out_axes=(0, None, None))(x, y)[1])
    np.testing.assert_array_equal(fad.grad(g)(y), [2.0, 2.0, 2.0])
    np.testing.assert_array_equal(fad.jit(fad.grad(g))(y), [2.0, 2.0, 2.0])
    with pytest.raises(fad.errors.BatchingError, match="depends on no mapped argument, and this one does"):
        fad.vmap(f, in_axes=(0, None), out_axes=None)(x, y)


@pytest.mark.parametrize("chunk_size", [None, 1, 2, 3])
def test_a_value_that_no_argument_reaches_is_that_of_the_path_of_its_example(chunk_size):
    x, signs = np.array([1.0, 2.0, -1.0, -3.0, 5.0]), [1.0, 1.0, -1.0, -1.0, 1.0]
    np.testing.assert_array_equal(fad.vmap(lambda x: 1.0 if x > 0 else -1.0, chunk_size=chunk_size)(x), signs)
    total = lambda w: np.sum(fad.vmap(lambda x: 2.0 * w if x > 0 else w, chunk_size=chunk_size)(x))
    for transform in (fad.grad, fad.jacfwd, lambda f: fad.jit(fad.grad(f))):
        assert transform(total)(3.0) == 8.0
    with_w = fad.vmap(lambda x, w: (x * w, 2.0 * w), in_axes=(0, None), out_axes=(0, None), chunk_size=chunk_size)
    assert fad.grad(lambda w: with_w(x, w)[1])(3.0) == 2.0


def test_distributions_take_a_number_and_an_array_per_example():
    import fad.scipy.stats as stats

    a, scale = np.array([1.0, 2.0, 3.0]), np.array([[1.0, 2.0], [0.5, 4.0], [-1.0, 1.0]])
    for f in (stats.gamma.logpdf, stats.gamma.cdf, stats.gamma.ppf):
        got = fad.vmap(lambda a, s: f(0.3, a, scale=s))(a, scale)  # noqa: B023
        np.testing.assert_array_equal(got, [f(0.3, x, scale=s) for x, s in zip(a, scale, strict=True)])
