"""Control flow under jit: it is recorded as an operation, and gives what it gives without jit, on both lowerings."""

import re

import numpy as np
import pytest

import fad
from fad import control
from fad.compile.passes.hoist_loop_matmuls import hoist_loop_matmuls
from fad.compile.targets.select import has_llvm, using
from fad.control_flow.derivatives import checkpoints
from fad.errors import DtypeMismatchError, ShapeMismatchError, TreeMismatchError

LOWERINGS = ["numpy", *(["llvm"] if has_llvm() else [])]
RNG = np.random.default_rng(0)
W = 0.4 * RNG.normal(size=(4, 4))
XS = RNG.normal(size=(7, 4))


@pytest.fixture(autouse=True, params=LOWERINGS)
def lowering(request):
    with using(request.param):
        yield request.param


def same(f, *args, calls=3, rtol=1e-9):
    """Record, compile and replay; each time the result must be that of the plain call, in type and dtype as well."""
    fast = fad.jit(f)
    wanted = f(*args)
    for _ in range(calls):
        got = fast(*args)
        assert fad.tree.structure(got) == fad.tree.structure(wanted)
        for a, b in zip(fad.tree.leaves(got), fad.tree.leaves(wanted), strict=True):
            assert type(a) is type(b)
            assert np.asarray(a).dtype == np.asarray(b).dtype
            np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-12)
    return fast


def names(f, *args):
    return [eq.prim.name for eq in fad.make_graph(f)(*args).equations]


# --- programs -------------------------------------------------------------------------------------------------------


def rnn(w, xs):
    def step(h, x):
        h = np.tanh(w @ h + x)
        return h, h * 2.0

    h, ys = control.scan(step, np.zeros(4), xs)
    return np.sum(h) + np.sum(ys * ys)


def scalars(w):
    def step(c, x):
        return np.sin(w * c + x), c * x

    c, ys = control.scan(step, w, np.linspace(0.0, 1.0, 9), reverse=True)
    return c + np.sum(ys * np.arange(9.0))


def numbered(w):
    return control.fori_loop(2, 9, lambda i, s: s * np.cos(s) + i * w, w)


def newton(a):
    return control.while_loop(lambda x: abs(x * x - a) > 1e-12, lambda x: 0.5 * (x + a / x), a)


def counting(a):
    """Return the root and how many steps it took; the count is a Python number in the state."""
    x, n = control.while_loop(
        lambda s: abs(s[0] ** 2 - a) > 1e-12, lambda s: (0.5 * (s[0] + a / s[0]), s[1] + 1), (a, 0)
    )
    return x * (n + 1.0)


def chosen(x):
    return control.cond(x > 1.5, lambda v: v**3 + x, lambda v: np.sin(v) * x, x * 1.0)


def switched(x):
    index = np.int64(2) * (x > 2.0) + (x > 1.0)
    return control.switch(index, [lambda v: v * v, np.sin, lambda v: v * 3.0, np.exp], x * 1.0)


def nested(x):
    def outer(c, v):
        total, _ = control.scan(lambda a, b: (np.tanh(a * b + v), a), c, np.arange(1.0, 4.0))
        return control.cond(total > 0.5, lambda u: u * 0.5, lambda u: u - v, total), total

    c, ys = control.scan(outer, x * 1.0, np.linspace(0.0, 1.0, 5))
    return c + np.sum(ys**2)


def root_in_a_loop(x):
    return control.scan(lambda c, v: (newton(c + v), c), x * 1.0, np.linspace(1.0, 2.0, 4))[0]


def mapped(x):
    return np.sum(control.map(lambda v: np.sin(v * x) * v, np.linspace(0.1, 1.0, 6)))


def accumulated(x):
    return np.sum(control.associative_scan(np.multiply, x * np.linspace(0.5, 1.5, 6)))


PROGRAMS = [
    scalars, numbered, newton, counting, chosen, switched, nested, root_in_a_loop, mapped, accumulated,
]  # fmt: skip


def batched(f):
    return lambda x: fad.vmap(f)(x * np.array([1.0, 1.3, 2.1]))


@pytest.mark.parametrize("f", PROGRAMS)
def test_control_flow_under_jit_and_its_derivatives_are_those_without(f):
    x = np.float64(1.2)
    for g in (
        f,
        fad.grad(f),
        fad.grad(fad.grad(f)),
        lambda x: fad.jvp(f, (x,), (1.0,)),
        lambda x: fad.jvp(fad.grad(f), (x,), (1.0,))[1],
        lambda x: fad.linearize(f, x)[1](1.0),
    ):
        same(g, x)


@pytest.mark.parametrize("f", PROGRAMS)
def test_control_flow_under_jit_is_batched(f):
    x = np.float64(1.2)
    same(batched(f), x)
    same(batched(fad.grad(f)), x)
    same(fad.grad(lambda x: np.sum(batched(f)(x))), x)


@pytest.mark.parametrize("f", PROGRAMS)
def test_transforms_of_a_jitted_loop_are_those_of_the_loop(f):
    x, fast = np.float64(1.2), fad.jit(f)
    for _ in range(2):
        np.testing.assert_allclose(fad.grad(fast)(x), fad.grad(f)(x), rtol=1e-9)
        np.testing.assert_allclose(fad.jvp(fast, (x,), (1.0,))[1], fad.grad(f)(x), rtol=1e-9)
        np.testing.assert_allclose(batched(fast)(x), batched(f)(x), rtol=1e-9)
        np.testing.assert_allclose(fad.hessian(fast)(x), fad.hessian(f)(x), rtol=1e-9, atol=1e-12)


def test_a_recurrent_network_has_its_gradients_and_batches():
    same(rnn, W, XS)
    same(fad.grad(rnn, argnums=(0, 1)), W, XS)
    same(fad.vmap(fad.grad(rnn), in_axes=(None, 0)), W, np.stack([XS, -XS, 0.5 * XS]))
    same(fad.vmap(fad.grad(rnn), in_axes=(0, None)), np.stack([W, -W]), XS)
    same(lambda w: fad.hessian(rnn)(w, XS), W, rtol=1e-8)
    same(fad.grad(lambda w, xs: np.sum(fad.vmap(rnn, in_axes=(None, 0))(w, xs))), W, np.stack([XS, -XS]))


# --- what is recorded ----------------------------------------------------------------------------------------------


def test_a_loop_is_one_operation_whose_body_is_recorded_once():
    calls = []

    def f(w, xs):
        def step(h, x):
            calls.append(1)
            return np.tanh(w @ h + x), h

        return control.scan(step, np.zeros(4), xs)[1]

    graph = fad.make_graph(f)(W, RNG.normal(size=(500, 4)))
    assert [eq.prim.name for eq in graph.equations] == ["scan"]
    assert len(calls) == 1
    assert "tanh" in str(graph)
    body = graph.equations[0].params["body"]
    assert [eq.prim.name for eq in body.equations] == ["matmul", "add", "tanh"]


@pytest.mark.parametrize(
    ("start", "step"),
    [
        ((4,), lambda v, w, h, x: np.tanh(x @ v + h @ w)),
        ((2, 4), lambda v, w, h, x: np.tanh(x @ v + h @ w)),
        ((4,), lambda v, w, h, x: np.tanh(v.T @ x + w @ h)),
    ],
)
@pytest.mark.parametrize("reverse", [False, True])
def test_what_a_loop_does_to_its_inputs_alone_is_done_to_all_of_them_at_once(start, step, reverse):
    def f(v, w, xs):
        xs = np.stack([xs, -xs], 1) if len(start) > 1 else xs
        return control.scan(lambda h, x: (step(v, w, h, x), h), np.zeros(start), xs, reverse=reverse)

    rng = np.random.default_rng(1)
    operands = rng.normal(size=(3, 4)), W, rng.normal(size=(10, 3))
    graph = hoist_loop_matmuls(fad.make_graph(f)(*operands))
    (loop,) = [eq for eq in graph.equations if eq.prim.name == "scan"]
    assert [eq.prim.name for eq in loop.params["body"].equations].count("matmul") == 1
    assert [eq.prim.name for eq in graph.equations].count("matmul") == 1
    same(f, *operands)
    same(fad.grad(lambda *xs: np.sum(f(*xs)[0]), (0, 1, 2)), *operands)


def test_the_reverse_pass_of_a_loop_is_a_loop():
    assert names(fad.grad(rnn), W, XS).count("scan") == 2
    assert names(fad.grad(newton), 4.0)[-3:].count("scan") <= 1
    assert "while_loop" in names(fad.grad(newton), np.float64(4.0))
    assert "cond" in names(fad.grad(chosen), np.float64(1.2))


def test_graphs_with_loops_are_equal_by_structure_and_run_under_every_transform():
    graph, other = fad.make_graph(rnn)(W, XS), fad.make_graph(rnn)(2 * W, XS + 1)
    assert graph == other
    assert hash(graph) == hash(other)
    assert graph != fad.make_graph(rnn)(W, XS[:5])
    np.testing.assert_allclose(fad.grad(lambda w: graph(w, XS)[0])(W), fad.grad(rnn)(W, XS))
    batch = fad.vmap(lambda w: graph(w, XS)[0])(np.stack([W, -W]))
    np.testing.assert_allclose(batch, [rnn(W, XS), rnn(-W, XS)])


def test_the_source_of_a_loop_is_a_loop_that_runs_with_numpy_alone():
    x = np.float64(1.2)
    for f in (*PROGRAMS, *map(fad.grad, PROGRAMS)):
        text = fad.source(f)(x)
        assert "fad" not in re.findall(r"^ *(?:import|from) (\w+)", text, re.MULTILINE)
        space = {}
        exec(text, space)
        np.testing.assert_allclose(space["program"](x), f(x), rtol=1e-12)
    assert "while " in fad.source(newton)(x)
    assert "for " in fad.source(fad.grad(scalars))(x)
    assert "if " in fad.source(chosen)(x)


def test_only_what_is_needed_is_computed_in_the_steps():
    def f(xs):
        (a, _), _ = control.scan(lambda c, x: ((c[0] + x, np.cos(c[1])), np.sin(x)), (0.0, np.float64(0.0)), xs)
        return a

    from fad.compile.pipeline import optimise

    (eq,) = optimise(fad.make_graph(f)(np.arange(5.0))).equations
    assert [e.prim.name for e in eq.params["body"].equations] == ["add"]
    same(f, np.arange(5.0))


def test_native_loops_do_not_return_to_python(lowering):
    for f in (rnn, fad.grad(rnn)):
        fast = same(f, W, XS)
        if lowering == "llvm":
            assert "NumPy" not in fast.explain()
            assert "scan" in fast.explain()


# --- the number of steps -------------------------------------------------------------------------------------------


def test_a_while_loop_is_recorded_once_for_all_numbers_of_steps():
    fast = fad.jit(newton)
    for a in np.linspace(0.1, 50.0, 12):
        np.testing.assert_allclose(fast(a), np.sqrt(a))
    assert fast.cache_info().paths == 1


def test_the_gradient_of_a_while_loop_is_recorded_once_for_about_as_many_steps():
    def slow(a):
        return control.while_loop(lambda s: s[0] < 1e3, lambda s: (s[0] * a, s[1] + s[0]), (a, np.float64(0.0)))[1]

    fast = fad.jit(fad.grad(slow))
    for a in (3.0, 1.2, 1.01, 2.0, 1.19):
        for _ in range(2):
            np.testing.assert_allclose(fast(np.float64(a)), fad.grad(slow)(a), rtol=1e-9)
    assert fast.cache_info().paths <= 4


def test_a_loop_that_takes_no_step_returns_its_first_state():
    fast = fad.jit(lambda x: control.while_loop(lambda s: np.sum(s) < 0, lambda s: s * 2.0, x))
    x = np.ones(3)
    for _ in range(3):
        np.testing.assert_array_equal(fast(x), x)
    fast = fad.jit(fad.grad(lambda x, n: np.sum(control.fori_loop(0, n, lambda i, s: s * s, x))))
    for n in (0, 3, 1, 0, 2):
        np.testing.assert_allclose(fast(x * 1.1, n), 2**n * (x * 1.1) ** (2**n - 1))


def test_bounds_of_a_loop_may_be_arguments():
    def f(x, low, high):
        return control.fori_loop(low, high, lambda i, s: s * 0.9 + i, x)

    fast = fad.jit(f)
    for low, high in ((0, 5), (2, 9), (5, 2), (0, 40)):
        np.testing.assert_allclose(fast(1.0, low, high), f(1.0, low, high))
    assert fast.cache_info().paths == 1
    x = np.ones(3, np.float32)
    assert fast(x, 0, 3).dtype == np.float32


# --- values that differ in kind ------------------------------------------------------------------------------------


def test_a_python_number_as_the_first_state_takes_the_dtype_of_the_steps():
    xs = np.linspace(0.0, 1.0, 5)
    same(lambda xs: control.scan(lambda c, x: (c + x, c), 0.0, xs), xs)
    same(lambda xs: control.scan(lambda c, x: (c + x, c), 0.0, xs), xs.astype(np.float32))
    same(lambda xs: control.scan(lambda c, x: (c * 0.5 + x, x), 0.1, xs, reverse=True), xs.astype(np.float32))
    same(lambda xs, c: control.scan(lambda c, x: (c + x, c * 2), c, xs), xs, 0.25)
    same(lambda xs: control.scan(lambda c, x: ((c[0] + 1, c[1] + x), c[0] * x), (0, 0.0), xs), xs)


def test_dtypes_and_shapes_of_every_kind_go_through_a_loop():
    same(lambda z: control.scan(lambda c, x: (c * x, c), z, np.array([1j, 2.0, 1 - 1j])), 0.5 + 0.5j)
    same(lambda n: control.fori_loop(0, 7, lambda i, s: s * 3 + i, n), np.int64(2))
    same(
        lambda b: control.scan(lambda c, x: (np.logical_xor(c, x), c), b, np.array([True, False, True])), np.bool_(True)
    )
    same(lambda x: control.scan(lambda c, x: (c, x), x, np.ones((3, 2, 0))), np.zeros((0, 3)))
    same(
        lambda x: control.scan(lambda c, v: ({"a": c["b"], "b": c["a"]}, (c["a"], v)), {"a": x, "b": 2 * x}, XS), XS[0]
    )


def test_operands_that_are_views_are_read_rightly():
    a = RNG.normal(size=(4, 5, 4))
    same(lambda a: control.scan(lambda c, x: (np.tanh(c @ x), c * 2.0), a[0, 1:, 1], np.swapaxes(a[:, :4], 1, 2)), a)
    same(lambda a: control.scan(lambda c, x: (c + x, c), a[0, 0], a[:, ::2][::-1, 0]), a)
    same(
        fad.grad(lambda a: np.sum(control.scan(lambda c, x: (c * x.T, c), a[0].T, a[1:])[1])),
        RNG.normal(size=(4, 3, 3)),
    )


# --- questions about values, errors, effects -----------------------------------------------------------------------


def test_a_body_that_asks_about_its_values_is_unrolled_and_right():
    def f(x, xs):
        return control.scan(lambda c, v: (c * 0.5 + v if c > 1 else c * v + 1.0, c), x, xs)[0]

    xs = np.linspace(0.5, 2.0, 6)
    fast = fad.jit(f)
    for x in (0.1, 3.0, 1.4, 0.1, 3.0):
        np.testing.assert_allclose(fast(x, xs), f(x, xs))
    assert "guard" in names(f, 0.1, xs)
    table = [0.5, 1.5, 2.5]
    same(lambda x: control.fori_loop(0, 3, lambda i, s: s * table[i], x), 2.0)


def test_a_python_loop_with_a_guard_stays_what_it_was():
    def f(x):
        while x > 1.0:
            x = x * 0.5
        return x

    fast = fad.jit(f)
    for x in (9.0, 3.0, 0.5, 9.5):
        assert fast(x) == f(x)
    assert "guard" in names(f, 9.0)


def test_branches_that_give_different_things_are_paths():
    def f(x):
        return control.cond(np.sum(x) > 0, lambda v: v[:2], lambda v: v * 1.0, x)

    fast = fad.jit(f)
    for x in (np.ones(3), -np.ones(3), np.ones(3)):
        np.testing.assert_array_equal(fast(x), f(x))


def test_a_branch_not_taken_is_never_run():
    def f(x):
        grow = lambda v: control.while_loop(lambda s: s < 10.0, lambda s: s * 2.0, v)
        return control.cond(x > 0, grow, lambda v: v, x * 1.0)

    fast = same(f, np.float64(3.0))
    assert fast(np.float64(-1.0)) == -1.0
    assert fad.jit(fad.grad(f))(np.float64(-1.0)) == 1.0
    same(fad.vmap(f), np.array([3.0, -1.0, 0.5, -2.0]))
    same(fad.vmap(fad.grad(f)), np.array([3.0, -1.0, 0.5, -2.0]))


def test_errors_of_a_body_are_those_without_jit():
    x = np.ones(2)
    with pytest.raises(ShapeMismatchError, match="keep its shapes"):
        fad.jit(lambda x: control.scan(lambda c, _: (np.ones(3), c), x, length=4))(x)
    with pytest.raises(DtypeMismatchError, match="keep its dtypes"):
        fad.jit(lambda x: control.while_loop(lambda s: s[0] < 2, lambda s: s.astype(np.float32), x))(x)
    with pytest.raises(TreeMismatchError):
        fad.jit(lambda x: control.fori_loop(0, 3, lambda i, s: (s, s), x))(x)
    with pytest.raises(ValueError, match="checkpoint"):
        fad.jit(lambda x: control.fori_loop(0, 3, lambda i, s: s, x, checkpoint="all"))(x)


def test_custom_rules_and_stop_gradient_within_a_body_are_kept():
    @fad.custom_jvp
    def clipped(x):
        return x * x

    clipped.defjvp(lambda primals, tangents: (clipped(*primals), 10.0 * tangents[0]))

    @fad.custom_vjp
    def bounded(x):
        return x * 2.0

    bounded.defvjp(lambda x: (bounded(x), None), lambda res, ct: (np.clip(ct, -1.0, 1.0),))

    def f(x):
        step = lambda c, v: (clipped(c) * 0.1 + bounded(c) * fad.stop_gradient(c * v), c)
        return control.scan(step, x, np.linspace(0.1, 0.5, 4))[0]

    assert names(f, np.float64(0.7)) == ["scan"]
    same(f, 0.7)
    same(fad.grad(f), 0.7)
    same(fad.vmap(fad.grad(f)), np.array([0.7, 0.2]))
    same(lambda x: fad.jvp(f, (x,), (1.0,)), 0.7)


def test_derivatives_and_batches_within_a_body():
    def f(x):
        step = lambda c, v: (c - 0.1 * fad.grad(lambda u: np.sum(np.sin(u * v)))(c), np.sum(c))
        return np.sum(control.scan(step, x, np.linspace(0.5, 1.5, 5))[0])

    assert names(f, XS[0])[0] == "scan"
    same(f, XS[0])
    same(fad.grad(f), XS[0])
    same(
        lambda x: control.scan(lambda c, v: (fad.vmap(lambda u: np.sum(u * v))(np.stack([c, c]))[0] * c, c), x, XS),
        XS[0],
    )


def test_a_loop_with_an_operation_that_has_no_kernel_runs_too():
    def f(a):
        return control.scan(lambda c, x: (np.sort(np.linalg.inv(c + x * np.eye(3)), axis=0), c), a, np.arange(1.0, 5.0))

    a = RNG.normal(size=(3, 3)) + 4 * np.eye(3)
    same(f, a)
    same(fad.grad(lambda a: np.sum(f(a)[0])), a)


def test_a_captured_array_that_is_overwritten_is_noticed_in_a_body_too():
    w = np.ones(3)
    fast = fad.jit(lambda x: control.fori_loop(0, 3, lambda i, s: s * w, x))
    for _ in range(3):
        np.testing.assert_array_equal(fast(np.ones(3)), np.ones(3))
    w[1] = 2.0
    np.testing.assert_array_equal(fast(np.ones(3)), [1.0, 8.0, 1.0])


# --- long loops ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("checkpoint", ["sqrt", "binomial"])
@pytest.mark.parametrize("n", [65, 100, 127])
def test_long_loops_are_cut_into_loops_of_loops_with_the_same_gradient(checkpoint, n, monkeypatch):
    monkeypatch.setattr(checkpoints, "KEPT", 0)
    xs = np.sin(np.arange(float(n)))

    def f(w, xs, how):
        step = lambda c, x: (np.tanh(w * c + x), c * c)
        c, ys = control.scan(step, 0.1 * w, xs, checkpoint=how, reverse=n == 100)
        s = control.fori_loop(0, n, lambda i, s: s * 0.99 + w * i, w, checkpoint=how)
        return c + np.mean(ys) + s

    for got, wanted in zip(
        fad.jit(fad.grad(f, argnums=(0, 1)), static_argnums=2)(0.8, xs, checkpoint),
        fad.grad(f, argnums=(0, 1))(0.8, xs, "none"),
        strict=True,
    ):
        np.testing.assert_allclose(got, wanted, rtol=1e-10)
    graph = fad.make_graph(lambda w: fad.grad(f)(w, xs, checkpoint))(0.8)
    inner = [eq.params["body"] for eq in graph.equations if eq.prim.name == "scan"]
    assert any(e.prim.name == "scan" for g in inner for e in g.equations)


def test_a_loop_of_many_steps_is_differentiated_in_bounded_memory():
    import tracemalloc

    x = np.full(1000, 0.5)

    def f(x):
        return np.sum(control.fori_loop(0, 9_000, lambda i, s: s * np.cos(s), x))

    fast = fad.jit(fad.grad(f))
    fast(x)
    tracemalloc.start()
    fast(x)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 9_000 * x.nbytes / 8


def test_rows_taken_by_the_number_of_the_step_are_run_over():
    def f(w, xs):
        def body(i, s):
            return np.tanh(w * s + xs[i] + xs[i + 1, ::-1] + xs[1 + i, 0])

        return np.sum(control.fori_loop(0, 6, body, np.zeros(4)))

    graph = fad.make_graph(f)(0.5, XS)
    (loop,) = [eq for eq in graph.equations if eq.prim.name == "scan"]
    assert not loop.params["index"]
    assert all(eq.params.get("template", ())[:1] != ("array",) for eq in loop.params["body"].equations)
    same(f, 0.5, XS)
    same(fad.grad(f, argnums=(0, 1)), 0.5, XS)
    same(lambda w: control.fori_loop(0, 7, lambda i, s: s + w[i % 4] * XS[0], np.zeros(4)), W[0])


def test_single_numbers_are_taken_from_the_state_without_returning_to_python(lowering):
    def lorenz(s, dt):
        def step(s, _):
            x, y, z = s[0], s[1], s[2]
            new = s + dt * np.stack([10.0 * (y - x), x * (28.0 - z) - y, x * y - 8.0 / 3.0 * z])
            return new, x

        return control.scan(step, s, length=30)

    s = np.array([1.0, 0.5, 20.0])
    fast = same(lorenz, s, 0.01)
    same(fad.grad(lambda s, dt: np.sum(lorenz(s, dt)[0])), s, 0.01, rtol=1e-8)
    if lowering == "llvm":
        assert "calls of NumPy" not in fast.explain()


def test_a_long_loop_that_is_unrolled_is_warned_of_with_the_line():
    def f(x):
        return control.fori_loop(0, 1000, lambda i, s: s * 0.5 if s > 1 else s + 0.1, x)

    with pytest.warns(fad.errors.LoopFallbackWarning, match=r"1000 steps.*test_control_in_jit\.py"):
        got = fad.jit(f)(3.0)
    np.testing.assert_allclose(got, f(3.0))


def test_a_body_that_changes_the_state_of_a_layer_changes_it_as_often_as_without_jit():
    from fad import nn

    def run(layer, xs):
        return control.scan(lambda c, x: (c + np.sum(layer(x) ** 3), c), 0.0, xs)[0]

    xs = RNG.normal(size=(3, 5, 4))
    plain, jitted = nn.BatchNorm1d(4), nn.BatchNorm1d(4)
    fast = fad.jit(run)
    for _ in range(3):
        np.testing.assert_allclose(fast(jitted, xs), run(plain, xs))
        for name, value in plain.state_dict().items():
            np.testing.assert_allclose(jitted.state_dict()[name], value)


def test_random_keys_are_a_state_like_any_other():
    def walk(key, x):
        def step(state, _):
            key, x = state
            key, mine = fad.random.split(key)
            return (key, x + fad.random.normal(mine, (3,))), x

        return control.scan(step, (key, x), length=5)[1]

    same(walk, fad.random.key(0), np.zeros(3))


def test_a_branch_within_a_body_may_give_a_python_number():
    def f(x, xs):
        step = lambda c, v: (fad.cond(c > v, lambda u: np.sin(u) * u, lambda u: 0.5, c), c)
        return np.sum(control.scan(step, x, xs)[1])

    xs = np.linspace(0.0, 1.0, 6)
    for dtype in (np.float64, np.float32):
        x = dtype(0.7)
        assert ("guard" in names(f, x, xs.astype(dtype))) == (dtype is np.float32)  # where the dtype would depend on it
        same(f, x, xs.astype(dtype), rtol=1e-6)
        same(fad.grad(f), x, xs.astype(dtype), rtol=1e-5)


def test_what_loops_and_branches_give_may_be_written_into():
    def forgets(h, x):
        return control.scan(lambda h, x: (np.tanh(x), x * 0.5), h, x)[0]

    def f(h, x):
        chosen = control.cond(np.sum(x) > 0, lambda: np.ones(3) * 3.0, lambda: np.zeros(3))
        return chosen, fad.grad(lambda h: np.sum(forgets(h, x)))(h)

    h, x = np.ones(3), np.ones((9, 3))
    fast = fad.jit(f)
    for _ in range(4):
        for y, want in zip(fast(h, x), (3.0, 0.0), strict=True):
            np.testing.assert_array_equal(y, np.full(3, want))
            y += 5.0


def test_an_index_beyond_the_branches_is_clamped_under_vmap_too():
    branches = [lambda x: x, lambda x: 2.0 * x, lambda x: x * x]
    index, x = np.array([-3, 0, 1, 2, 7]), np.full(5, 3.0)
    pick = lambda i, x: control.switch(i, branches, x)
    for f in (fad.vmap(pick), fad.jit(fad.vmap(pick)), fad.vmap(fad.jit(pick))):
        np.testing.assert_array_equal(f(index, x), [3.0, 3.0, 6.0, 9.0, 9.0])
