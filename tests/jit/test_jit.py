"""jit: recordings, guards, signatures, captured values, composition, errors; each with both lowerings."""

import re
import threading
import warnings

import numpy as np
import pytest

import fad
from fad.compile.targets.select import has_llvm, using
from fad.core.programs.graph import hashable
from fad.errors import (
    DonatedArrayError,
    ImpureFunctionError,
    LeakedTracerError,
    NonArrayOutputError,
    PathLimitWarning,
)
from fad.testing import check_grads

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
FROM_OUTSIDE = np.arange(3.0)
RNG = np.random.default_rng(0)
X = RNG.normal(size=(5, 4))


@pytest.fixture(autouse=True, params=LOWERINGS)
def lowering(request):
    with using(request.param):
        yield request.param


def same(f, *args, calls=4):
    """Call a jitted function a few times, so that it is recorded, compiled and replayed; compare each time."""
    fast = fad.jit(f)
    wanted = f(*args)
    for _ in range(calls):
        got = fast(*args)
        for a, b in zip(fad.tree.leaves(got), fad.tree.leaves(wanted), strict=True):
            assert type(a) is type(b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
            single = np.asarray(b).dtype == np.float32  # sums are added up in another order than NumPy's
            np.testing.assert_allclose(a, b, rtol=1e-6 if single else 1e-12, atol=1e-7 if single else 1e-14)
        assert fad.tree.structure(got) == fad.tree.structure(wanted)
    return fast


def mlp(p, x):
    h = np.tanh(x @ p["w"] + p["b"])
    return np.mean((h @ p["v"]) ** 2)


PARAMS = {"w": RNG.normal(size=(4, 8)), "b": RNG.normal(size=8), "v": RNG.normal(size=(8, 2))}


def newton(a):
    x = a
    while abs(x * x - a) > 1e-12:
        x = 0.5 * (x + a / x)
    return x


# --- values ----------------------------------------------------------------------------------------------------------


def test_a_replayed_call_gives_what_the_first_one_gave():
    fast = same(mlp, PARAMS, X)
    assert fast.cache_info()[:3] == (3, 1, 1)


def test_kinds_and_dtypes_of_results_are_those_of_the_eager_call():
    same(lambda x, s: {"a": x * s, "b": (np.sum(x), s), "c": x > 0, "d": None}, X.astype(np.float32), 0.1)
    same(lambda x: (x[0, 0], x[:, 1], x.T, x.reshape(-1)[2:6], np.argmax(x)), X)


def test_python_numbers_promote_weakly_and_numpy_scalars_strongly():
    x = np.ones(3, np.float32)
    fast = fad.jit(lambda x, s: x * (s * 0.5))
    for _ in range(3):
        assert fast(x, 2.0).dtype == np.float32
        assert fast(x, np.float64(2.0)).dtype == np.float64


def test_large_arrays_are_read_and_written_where_they_are():
    big = RNG.normal(size=100_000)
    fast = same(lambda x: (np.sin(x) * x, np.sum(x * x), x[::2] + 1.0), big)
    other = RNG.normal(size=200_000)[::2]
    np.testing.assert_allclose(fast(other)[0], np.sin(other) * other, rtol=1e-12)
    kept, again = fast(big)[0], fast(other)[0]
    assert not np.shares_memory(kept, again)


def test_results_are_fresh_arrays_that_later_calls_leave_alone():
    fast = fad.jit(lambda x: (x + 1.0, np.ones(3), x))
    fast(np.zeros(3))
    first = fast(np.zeros(3))
    first[0][:] = 7.0
    first[1][:] = 7.0
    second = fast(np.zeros(3))
    np.testing.assert_array_equal(second[0], np.ones(3))
    np.testing.assert_array_equal(second[1], np.ones(3))


@pytest.mark.parametrize("lowering", ["auto", "numpy"])
@pytest.mark.parametrize("size", [3, 9000])
def test_results_share_memory_only_where_those_of_the_function_do(size, lowering):
    def f(x):
        half = lambda x: np.sum(x * x) / 2  # whose gradient is x
        y = x + 1.0
        spread = fad.grad(np.sum)(x), np.repeat(x[:1] * 2.0, 3)[::-1]
        zeros = np.zeros_like(x), np.zeros_like(x)
        return x.copy(), x * 1.0, x + 1.0, y, y[:, None] * 1.0, fad.grad(half)(x), *zeros, *spread

    x = np.arange(float(size))
    with using(lowering):
        fast = fad.jit(f)
        first = fast(x)[0]
        fast(x)
        results = [x, first, *fast(x), *fast(x)]
    for k, y in enumerate(results):
        assert y.flags.writeable
        assert not any(np.shares_memory(y, other) for other in results[:k])


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.copy(x).reshape(2, 2),
        lambda x: (x.reshape(2, 2), x[1:], x),
        lambda x: np.broadcast_to(np.ravel(x), (2, 4)),
        lambda x: np.swapaxes(x.reshape(2, 2).copy(), 0, 1),
        lambda x: ((y := x * 2.0), y, y[1:]),
        lambda x: (np.sum(x), FROM_OUTSIDE, FROM_OUTSIDE[1:]),
    ],
)
def test_what_the_first_call_gives_is_memory_of_its_own_as_in_later_calls(f):
    fast, x = fad.jit(f), np.arange(4.0)
    for _ in range(3):
        results = [y for y in fad.tree.leaves(fast(x)) if isinstance(y, np.ndarray)]
        for k, y in enumerate(results):
            assert not any(np.shares_memory(y, other) for other in (x, FROM_OUTSIDE, *results[:k]))
            np.testing.assert_array_equal(y, [z for z in fad.tree.leaves(f(x)) if isinstance(z, np.ndarray)][k])
            y[...] = 99.0


def test_empty_and_zero_dimensional_arrays_pass_through():
    same(lambda x: (np.sum(x), x * 2.0, x.T), np.zeros((0, 3)))
    same(lambda x: (x * 2.0, np.exp(x)), np.array(0.5))


# --- derivatives and other transforms --------------------------------------------------------------------------------


def test_jit_of_grad():
    same(fad.grad(mlp), PARAMS, X)
    same(fad.value_and_grad(mlp, argnums=(0, 1)), PARAMS, X)


def test_jit_of_hessian_and_of_vmap_of_grad():
    same(fad.hessian(lambda x: np.sum(np.tanh(x) ** 3)), X[0])
    same(fad.vmap(fad.grad(lambda x: np.sum(np.sin(x) * x))), X)
    same(fad.vmap(fad.hessian(lambda x: np.prod(x))), X)
    same(fad.jacobian(lambda x: np.cumsum(x) * x[::-1]), X[0])


def test_grad_of_jit_and_vmap_of_jit():
    fast = fad.jit(mlp)
    fast(PARAMS, X)
    for a, b in zip(fad.tree.leaves(fad.grad(fast)(PARAMS, X)), fad.tree.leaves(fad.grad(mlp)(PARAMS, X)), strict=True):
        np.testing.assert_allclose(a, b)
    inner = fad.jit(lambda x: np.sum(np.sin(x)))
    np.testing.assert_allclose(fad.vmap(inner)(X), np.sum(np.sin(X), 1))
    np.testing.assert_allclose(fad.jacobian(fad.jit(lambda x: np.sin(x) * x[0]))(X[0]).shape, (4, 4))
    check_grads(fad.jit(newton), (3.0,), order=2)


def test_jit_in_jit_and_checkpoint_in_jit():
    inner = fad.jit(lambda x: np.sin(x) * x)
    same(lambda x: np.sum(inner(x) + inner(2.0 * x)), X)
    deep = fad.checkpoint(lambda x: np.sin(np.exp(x)))
    same(fad.grad(lambda x: np.sum(deep(deep(x)))), X)


def test_a_jitted_function_that_closes_over_a_traced_value_is_differentiated_through_it():
    def outer(a):
        return fad.jit(lambda x: x * a)(3.0)

    assert fad.grad(outer)(2.0) == 3.0

    def hidden(a):
        box = {"a": a}
        return fad.jit(lambda x: x * box["a"])(3.0)

    assert fad.grad(hidden)(2.0) == 3.0


def test_custom_rules_and_stop_gradient_keep_working():
    @fad.custom_jvp
    def clipped(x):
        return x * x

    clipped.defjvp(lambda primals, tangents: (clipped(*primals), 10.0 * tangents[0]))
    same(fad.grad(lambda x: clipped(x) * fad.stop_gradient(x)), 2.0)


def test_a_whole_training_step_in_one_jit():
    def step(p, x, lr):
        loss, grads = fad.value_and_grad(mlp)(p, x)
        return fad.tree.map(lambda a, g: a - lr * g, p, grads), loss

    fast, p, q = fad.jit(step), PARAMS, PARAMS
    for _ in range(5):
        p, a = fast(p, X, 0.1)
        q, b = step(q, X, 0.1)
        np.testing.assert_allclose(a, b, rtol=1e-12)
    for a, b in zip(fad.tree.leaves(p), fad.tree.leaves(q), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10)


# --- guards ------------------------------------------------------------------------------------------------------


def test_newton_iterations_run_to_convergence_for_every_argument():
    fast = fad.jit(newton)
    for a in np.linspace(0.1, 90.0, 40):
        np.testing.assert_allclose(fast(float(a)), newton(float(a)), rtol=1e-14)
    assert 1 < fast.cache_info().paths < 15


def test_adaptive_steps_bisection_and_escape_counts():
    def adaptive(y, end):
        t, h = 0.0, 0.1
        while t < end:
            whole = y + h * np.cos(y)
            half = y + h / 2 * np.cos(y)
            half = half + h / 2 * np.cos(half)
            if abs(whole - half) > 1e-3:
                h = h / 2
            else:
                t, y = t + h, half
        return y

    def bisection(c):
        low, high = 0.0, 4.0
        for _ in range(12):
            middle = (low + high) / 2
            if middle * middle < c:
                low = middle
            else:
                high = middle
        return low

    def escape(c):
        z, n = 0j, 0
        while abs(z) < 2 and n < 20:
            z, n = z * z + c, n + 1
        return n

    fast, slow = fad.jit(adaptive), adaptive
    for y in (0.1, 0.7, 0.71, 2.0):
        np.testing.assert_allclose(fast(y, 1.0), slow(y, 1.0), rtol=1e-12)
    fast = fad.jit(bisection)
    for c in np.linspace(0.5, 15.0, 9):
        assert fast(float(c)) == bisection(float(c))
    fast = fad.jit(escape)
    for c in (0.3 + 0.5j, 1.0 + 1.0j, -1.0 + 0j, 0.26 + 0j, 0.3 + 0.5j, 1.0 + 1.0j):
        assert fast(c) == escape(c)


def test_integers_and_data_dependent_shapes_are_guarded():
    fast = fad.jit(lambda x, n: x[:n] * n)
    for n in (2, 3, 2, 3, 1):
        np.testing.assert_array_equal(fast(X[0], n), X[0][:n] * n)
    fast = fad.jit(lambda x: x[x > 0] * 2.0)
    for x in (X[0], -X[0], X[0], X[1], -X[0]):
        np.testing.assert_array_equal(fast(x), x[x > 0] * 2.0)


def test_a_branch_on_a_value_inside_vmap_and_grad_is_guarded():
    def f(x):
        return np.sin(x) if x > 0 else x * x

    fast = fad.jit(fad.vmap(fad.grad(f)))
    for x in (X[0], -X[0], np.abs(X[0]), X[0]):
        np.testing.assert_allclose(fast(x), fad.vmap(fad.grad(f))(x))


def test_past_the_limit_of_paths_calls_run_without_jit_after_one_warning():
    fast = fad.jit(lambda x, n: x * n.__index__())
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for n in range(40):
            assert fast(2.0, n) == 2.0 * n
    assert [w.category for w in seen] == [PathLimitWarning]
    assert "test_jit.py" in str(seen[0].message)


def test_a_function_that_depends_on_hidden_state_is_distinguished_from_its_guards():
    state = [1.0]

    def f(x):
        state[0] *= 0.1
        return x if x * state[0] > 5 else -x

    fast = fad.jit(f)
    assert fast(1.0) == -1.0
    with pytest.raises(ImpureFunctionError, match=r"test_jit\.py"):
        fast(100.0)


# --- outputs and errors ---------------------------------------------------------------------------------------------


def test_donated_arrays_may_not_be_used_again():
    step = fad.jit(lambda p, g: p - g, donate_argnums=0)
    p = np.ones(3)
    p2 = step(p, np.ones(3))
    step(p2, np.ones(3))
    with pytest.raises(DonatedArrayError, match="donated"):
        step(p, np.ones(3))


def test_a_traced_value_kept_from_a_recording_is_refused():
    kept = []
    fad.jit(lambda x: kept.append(x) or x)(1.0)
    with pytest.raises(LeakedTracerError):
        kept[0] + 1.0


class _OfDtype:
    """No array, but it has a dtype, as linear operators and distributions do."""

    def __init__(self, dtype):
        self.dtype = dtype


@pytest.mark.parametrize(
    "output", ["layer", len, object(), np.array(["a"]), np.array([None]), _OfDtype(float), _OfDtype(np.dtype(float))]
)
def test_an_output_that_is_no_array_is_refused_by_its_type(output):
    fast = fad.jit(lambda x: {"x": x * 2, "other": output})
    for _ in range(2):
        with pytest.raises(NonArrayOutputError, match=f"{type(output).__name__}.*arrays and numbers"):
            fast(1.0)


def test_an_empty_output_is_a_tree_like_any_other():
    fast = fad.jit(lambda x: {"x": x * 2, "none": None, "empty": []})
    for _ in range(3):
        assert fast(1.0) == {"x": 2.0, "none": None, "empty": []}


def test_explain_names_guards_and_lines():
    fast = fad.jit(newton)
    for a in (2.0, 2.0, 50.0):
        fast(a)
    text = fast.explain()
    assert "guard" in text
    assert "test_jit.py" in text
    assert "lowering" in text


def test_threads_may_call_and_record_at_once():
    fast = fad.jit(lambda x: np.sum(np.sin(x) @ x.T))
    wrong = []

    def work(seed):
        r = np.random.default_rng(seed)
        for _ in range(30):
            x = r.normal(size=(r.integers(2, 5), 3))
            if not np.allclose(fast(x), np.sum(np.sin(x) @ x.T)):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(s,)) for s in range(4)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert not wrong


def test_an_exception_in_the_function_leaves_nothing_behind():
    fast = fad.jit(lambda x: 1 // 0 if x > 0 else x)
    with pytest.raises(ZeroDivisionError):
        fast(1.0)
    assert fast(-1.0) == -1.0
    assert fast.cache_info().paths == 1


# --- graphs and source ---------------------------------------------------------------------------------------------


def run_source(text, name="program"):
    space = {}
    exec(text, space)
    return space[name]


@pytest.mark.parametrize(
    "f",
    [
        lambda x: np.sum(np.sin(x @ x.T)),
        fad.grad(lambda x: np.sum(np.tanh(x) ** 3)),
        fad.grad(lambda x: np.sum(x[1:] * x[:-1]) + np.max(x) + np.sum(x[[0, 2, 0]])),
        fad.grad(lambda x: np.sum(np.where(x > 0, np.log(np.abs(x) + 1.0), x)) / np.linalg.norm(x)),
        fad.vmap(fad.grad(lambda x: np.prod(x) + np.cumsum(x)[-1])),
        fad.hessian(lambda x: np.sum(x**3)),
    ],
)
def test_source_runs_with_numpy_alone(f):
    text = fad.source(f)(X)
    assert "fad" not in re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)
    np.testing.assert_allclose(run_source(text)(X), f(X), rtol=1e-12)


def test_source_of_a_jitted_function_and_of_a_tree_of_arguments():
    got = run_source(fad.source(fad.jit(fad.grad(mlp)), name="d_mlp")(PARAMS, X), "d_mlp")(*fad.tree.leaves(PARAMS), X)
    for a, b in zip(got, fad.tree.leaves(fad.grad(mlp)(PARAMS, X)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-12)


def test_a_graph_prints_one_equation_a_line_and_runs_under_every_transform():
    graph = fad.make_graph(lambda x: np.sum(np.sin(x) * 2.0))(X[0])
    lines = str(graph).splitlines()
    assert lines[1] == "  b: f64[4] = sin a"
    assert len(lines) == len(graph) + 3
    np.testing.assert_allclose(fad.grad(lambda x: graph(x)[0])(X[0]), 2.0 * np.cos(X[0]))
    np.testing.assert_allclose(fad.vmap(lambda x: graph(x)[0])(X), np.sum(np.sin(X) * 2.0, 1))


def test_graphs_of_one_structure_are_equal_and_hash_alike():
    make = fad.make_graph(lambda x: np.sin(x) * 2.0)
    assert make(X) == make(X + 1)
    assert hash(make(X)) == hash(make(X + 1))
    assert make(X) != make(X[0])
    assert make(X) != fad.make_graph(lambda x: np.sin(x) * 3.0)(X)


def test_the_key_of_a_program_takes_no_bytes_of_a_number_that_is_broadcast():
    everywhere = np.broadcast_to(1.5, (10**6, 10**6))  # 8 TB, if it were copied
    assert hashable(everywhere) == hashable(np.broadcast_to(1.5, (10**6, 10**6)))
    assert hashable(everywhere) != hashable(np.broadcast_to(2.5, (10**6, 10**6)))
    assert hashable(everywhere) != hashable(np.broadcast_to(1.5, (10**6, 10**5)))
    rows = [np.broadcast_to(np.array([1.0, x]), (3, 2)) for x in (2.0, 3.0)]
    assert hashable(rows[0]) != hashable(rows[1])
    assert hashable(rows[0]) == hashable(rows[0].copy())


def test_a_graph_is_drawn_without_the_network():
    graph = fad.make_graph(fad.grad(lambda x: np.sum(np.sin(x @ x))))(X[:, :4][:4])
    page = graph.to_html()
    assert page.startswith("<!DOCTYPE html>")
    assert "<svg" in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")
    assert graph.to_dot().count("->") >= len(graph)


def test_a_jitted_call_inside_one_transform_is_compiled_under_it():
    inner = fad.jit(lambda x, w: np.sum(np.tanh(x @ w)) * x[0, 0])
    w = RNG.normal(size=(4, 3))

    def plain(x, w):
        return inner.fun(x, w)

    tangent = np.ones_like(X)
    for _ in range(3):
        for got, wanted in zip(
            fad.grad(inner, argnums=(0, 1))(X, w), fad.grad(plain, argnums=(0, 1))(X, w), strict=True
        ):
            np.testing.assert_allclose(got, wanted, rtol=1e-12)
        np.testing.assert_allclose(fad.grad(lambda x: inner(x, w) ** 2)(X), fad.grad(lambda x: plain(x, w) ** 2)(X))
        pushed = fad.jvp(lambda x: inner(x, w), (X,), (tangent,))
        np.testing.assert_allclose(pushed, fad.jvp(lambda x: plain(x, w), (X,), (tangent,)))
        for size in (2, 3):
            batch = np.stack([X] * size)
            np.testing.assert_allclose(fad.vmap(inner, in_axes=(0, None))(batch, w), np.full(size, plain(X, w)))
        np.testing.assert_allclose(fad.hessian(inner)(X, w), fad.hessian(plain)(X, w), atol=1e-12)
    assert len(inner._inner) >= 4


def test_the_pullback_of_a_jitted_function_can_be_batched_and_keeps_what_its_arguments_were():
    fast = fad.jit(lambda x: np.sin(x) * x[0])
    np.testing.assert_allclose(fad.jacrev(fast)(X[0]), fad.jacrev(fast.fun)(X[0]))
    x = X[0].copy()
    _, pullback = fad.vjp(lambda v: fast(v * x), X[0])
    want = pullback(np.ones(4))[0]
    x[:] = 0.0
    np.testing.assert_allclose(pullback(np.ones(4))[0], want, rtol=1e-15)


def test_subclasses_of_ndarray_and_very_large_integers_are_left_as_they_are():
    fast = fad.jit(lambda x, n: x * (n % 7))
    masked = np.ma.masked_array([1.0, 2.0], [True, False])
    for _ in range(3):
        assert type(fast(masked, 3)) is np.ma.MaskedArray
        assert fast(2.0, 2**80) == 2.0 * (2**80 % 7)


def test_a_python_number_among_the_arguments_is_converted_as_an_array_is():
    f = fad.jit(lambda n, x: fad.numpy.asarray(n).astype(float) * x)
    for _ in range(3):
        np.testing.assert_array_equal(f(3, np.ones(2)), [3.0, 3.0])


def test_a_program_with_an_empty_constant_can_be_printed_drawn_and_written_as_source():
    f = lambda x: np.concatenate([x, np.zeros(0)]) * 2.0
    graph = fad.make_graph(f)(X[0])
    assert "= constant" in str(graph)
    assert "digraph" in graph.to_dot()
    assert "def " in fad.source(f)(X[0])
