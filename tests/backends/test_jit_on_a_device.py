"""``jit`` on a device: kernels for groups of elementwise operations, calls of the array library for the rest."""

import c_kernels
import numpy as np
import pytest
import standin
from programs import BINARY, MODELS, OPTIMISERS, SPECIAL, UNARY, fused
from standin import DeviceArray, counted, no_copies

import fad
from fad import backends, nn
from fad.compile.codegen import device_kernels
from fad.compile.targets.select import using
from fad.errors import BackendMismatchError, NativeFallbackWarning

backends.register(standin)
X = np.random.default_rng(0).normal(size=(3, 4))
W = np.random.default_rng(1).normal(size=(4, 4))


def on_device(x):
    """Place the arrays of a tree; numbers live everywhere."""
    return fad.tree.map(lambda leaf: fad.device_put(leaf, "standin") if isinstance(leaf, np.ndarray) else leaf, x)


def assert_same(device, host, rtol=1e-12):
    device, host = fad.tree.leaves(device), fad.tree.leaves(host)
    assert len(device) == len(host)
    for d, h in zip(device, host, strict=True):
        if np.ndim(h):
            assert type(d) is DeviceArray
        assert (d.shape, d.dtype) == (np.shape(h), np.asarray(h).dtype) if hasattr(d, "dtype") else d == h
        np.testing.assert_allclose(fad.device_get(d), h, rtol=rtol, atol=rtol)


def check(f, *args, calls=3, still=True, rtol=1e-12):
    """Compare jitted calls on the device with the function on the host; return the jitted function."""
    expected, g, placed = f(*args), fad.jit(f), on_device(args)
    for _ in range(calls):
        if still:
            with no_copies():
                found = g(*placed)
        else:
            found = g(*placed)
        assert_same(found, expected, rtol)
    return g


def launches(f, *args):
    with counted() as asked:
        f(*args)
    return asked()


def test_a_kernel_writes_products_and_sums_in_words_that_no_compiler_contracts():
    with pytest.raises(c_kernels.CError, match="contract"):
        c_kernels.Body("y = a * b + a;", {}, {"y": np.dtype(float)}).run({"a": np.ones(2), "b": np.ones(2)})
    g = check(lambda x, y: np.tanh(x) * y + x - y, X, X + 1.0)
    assert "kernels: 1," in g.explain()


# --- control flow -------------------------------------------------------------------------------------------------


def over(w, x):
    def step(h, row):
        h = np.tanh(h @ w + row)
        return h, h * 2.0

    h, ys = fad.scan(step, np.zeros_like(x[0]), x)
    return np.sum(ys**2) + np.sum(h)


def from_a_number(w, x):
    return fad.scan(lambda total, row: (total + np.sum(row * w[0]), total), 0.0, x)[0]


def backwards(w, x):
    return np.sum(fad.scan(lambda h, row: (np.sin(h + row), h), w[0], x, reverse=True)[1])


def counted_up(w, x):
    return np.sum(fad.fori_loop(0, 4, lambda k, h: np.tanh(h @ w) + k, x))


def mapped(w, x):
    return np.sum(fad.control.map(lambda row: np.tanh(row @ w), x) ** 2)


@pytest.mark.parametrize("program", [over, from_a_number, backwards, counted_up, mapped])
@pytest.mark.parametrize("how", [lambda f: f, lambda f: fad.grad(f), lambda f: fad.grad(f, argnums=1)])
def test_a_loop_runs_its_body_for_each_step_without_waiting(program, how):
    g = check(how(program), W, X)
    assert g.cache_info().paths == 1


@pytest.mark.parametrize("program", [over, backwards, mapped])
def test_a_loop_in_forward_mode_and_under_vmap_stays_on_the_device(program):
    check(lambda w, x: fad.jvp(program, (w, x), (w, x))[1], W, X)
    check(lambda w, x: fad.vmap(program, in_axes=(None, 0))(w, np.stack([x, 2.0 * x])), W, X)
    check(lambda w, x: fad.vmap(fad.grad(program), in_axes=(None, 0))(w, np.stack([x, 2.0 * x])), W, X)
    check(lambda w, x: fad.jvp(lambda w: fad.grad(program)(w, x), (w,), (w,))[1], W, X)


def until(w, x):
    return np.sum(fad.while_loop(lambda h: np.sum(h * h) > 0.1, lambda h: h * 0.5, x)) * w[0, 0]


def chosen(w, x):
    return np.sum(fad.cond(x[0, 0] > 0, lambda h: np.sin(h @ w), lambda h: h * 2.0, x))


@pytest.mark.parametrize("program", [until, chosen])
@pytest.mark.parametrize("how", [lambda f: f, lambda f: fad.grad(f), lambda f: fad.grad(f, argnums=1)])
def test_a_question_within_control_flow_is_asked_of_the_device(program, how):
    check(how(program), W, X, still=False)
    g = check(how(program), W, -X, still=False)
    assert_same(g(*on_device((W, 3.0 * X))), how(program)(W, 3.0 * X))


# --- what is launched ---------------------------------------------------------------------------------------------


def test_a_chain_and_its_gradient_are_one_launch():
    def chain(x):
        for _ in range(20):
            x = np.tanh(x) * x + 0.5
        return np.sum(x)

    g = check(fad.grad(chain), X)
    assert launches(fad.grad(chain), on_device(X)) > 150
    assert launches(g, on_device(X)) == 1


def test_a_group_stores_what_others_read_and_nothing_else():
    def f(x):
        a = np.exp(x)
        b = a * 2.0 + x
        return a @ b.T, b - 1.0

    g = check(f, X)
    assert "kernels: 2," not in g.explain()
    assert launches(g, on_device(X)) == 3  # one kernel of three results, a transpose, a product


def test_steps_of_an_unrolled_loop_share_their_kernel():
    def f(w, x):
        for _ in range(5):
            x = np.tanh(x) * 2.0 + 1.0
            x = x @ w
        return x

    g = check(f, W, X)
    names = {line.split(":")[0] for line in g.explain().splitlines() if line.startswith("    fad_")}
    assert len(names) == 1
    assert launches(g, *on_device((W, X))) == 10


def test_a_group_with_many_operands_is_cut():
    xs = [k * X for k in range(1, 61)]

    def f(*xs):
        total = xs[0] * 2.0
        for x in xs[1:]:
            total = total + np.sin(x) * x
        return total

    g = check(f, *xs)
    kernels = [line for line in g.explain().splitlines() if line.startswith("    fad_")]
    assert 4 < len(kernels) < 12


def test_a_large_comparison_joins_the_kernel_that_reads_the_same_array():
    x = np.linspace(-1.0, 1.0, 1 << 17)

    def f(x):
        y = np.maximum(x, 0.0)
        return y @ y, x < 0.5

    g = check(f, x)
    assert "kernels: 1," in g.explain()


def test_what_comes_after_a_guard_may_be_in_a_kernel_that_the_guard_needs():
    def f(x):
        y = np.flip(x) + 1.0
        if np.any(y == 3.0):
            return y
        return y * np.where(x < 0.5, -1.0, 1.0), x < 0.5

    check(f, X, still=False)


def test_the_memory_of_a_gradient_is_not_above_that_without_jit():
    def loss(params, x):
        for w in params:
            x = np.maximum(x @ w, 0.0) / np.sum(np.exp(x @ w), -1, keepdims=True)
        return np.sum(x * x)

    rng = np.random.default_rng(0)
    args = on_device(([rng.normal(size=(100, 100)) * 0.1 for _ in range(4)], rng.normal(size=(200, 100))))
    plain = fad.grad(loss)
    fast = fad.jit(plain)
    fast(*args)
    fast(*args)
    most = []
    for f in (plain, fast):
        with standin.held(fad.tree.leaves(args)) as held:
            f(*args)
        most.append(held())
    assert most[1] < most[0]


# --- numbers ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", [*UNARY, *BINARY], ids=lambda f: f.__name__)
def test_a_function_in_a_kernel_has_numpys_values_at_special_points(function, dtype):
    x = np.array(SPECIAL).astype(dtype)
    args = (x,) if function in UNARY else (x[:, None], x[None, :])
    rtol = 1e-12 if dtype is np.float64 else 1e-6
    with np.errstate(all="ignore"):
        g = check(fused(function), *args, rtol=rtol)
    assert "kernels: 1," in g.explain()


@pytest.mark.parametrize("dtype", [np.int32, np.int64])
@pytest.mark.parametrize(
    "function",
    [
        np.add, np.subtract, np.multiply, np.maximum, np.minimum, np.less, np.equal, np.bitwise_and, np.bitwise_or,
        np.bitwise_xor, np.divide, lambda a, b: -a, lambda a, b: ~a, lambda a, b: np.abs(a), lambda a, b: a**3,
        lambda a, b: np.where(a > b, a, b), lambda a, b: a * 0.5 + b, lambda a, b: (a > 2).astype(dtype_) + b,
        lambda a, b: a // 3 + b % 5, lambda a, b: a.astype(np.float32) * b, lambda a, b: a.astype(bool) ^ (b > 3),
    ],
)  # fmt: skip
def test_whole_numbers_wrap_around_and_are_promoted_as_numpy_does(function, dtype):
    big = np.iinfo(dtype).max
    a = np.array([0, 1, -1, 7, -9, big, big - 1, -big - 1, 12345], dtype)
    with np.errstate(all="ignore"):
        check(fused(function), a, a[::-1].copy())


dtype_ = np.int32


def test_numbers_of_python_are_weak_and_numpys_are_strong():
    x = X.astype(np.float32)
    assert check(lambda x, c: np.sin(x) * c + c, x, 0.1)(on_device(x), 0.25).dtype == np.float32
    check(lambda x, c: np.sin(x) * c + 1, x, np.float64(0.1))
    check(lambda x, c: np.sin(x) * c + c, x, np.float32(0.1))
    check(lambda x, n: np.sin(x) * n + n, x, 3)
    check(lambda x: np.where(x > 0.1, x, 0.1) * np.float64(2.0), x)
    check(lambda n, c: n * c + c * n, np.arange(5), 2)
    check(lambda n: (n > 1.5) & (n < 2**31), np.arange(5, dtype=np.int32))


def test_a_number_is_read_again_in_each_call():
    f = fad.jit(lambda x, c: np.sin(x) * c + c)
    for c in (0.5, 2.0, -1.0, np.inf):
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal(fad.device_get(f(on_device(X), c)), np.sin(X) * c + c)
    assert f.cache_info().paths == 1


def test_what_is_not_finite_is_no_text_of_a_kernel():
    check(lambda x: np.where(x > 0, np.inf, -np.inf) * x + np.nan, X)


def test_arrays_are_broadcast_in_a_kernel():
    a, b, c = X[:, :1], X[0], X[:, None, :]
    check(lambda a, b, c: np.sin(a) * b + (c - b) * a, a, b, c)
    check(lambda x: (x * 2.0 + 1.0) * np.ones_like(x), X[:0])
    check(lambda x: x * 2.0 + 1.0, np.array(3.0))
    check(lambda x: np.zeros_like(x, shape=(4, 3, 4)) + np.sin(x) * x, X)
    check(lambda x: np.broadcast_to(x[0] * 2.0, x.shape) + 1.0, X)
    check(lambda x: np.sin(x.T) * x.T + x.T[::-1, ::2], np.ones((2, 4)) * np.arange(4.0)[None])


@pytest.mark.parametrize("seed", range(30))
def test_a_random_program_of_mixed_dtypes_is_the_same(seed):
    rng = np.random.default_rng(seed)
    kinds = [np.float64, np.float32, np.int64, np.int32, np.bool_]
    operations = [
        lambda a, b: a + b, lambda a, b: a * b, lambda a, b: np.maximum(a, b), lambda a, b: np.where(a > b, a, b),
        lambda a, b: np.tanh(a) - b * 1.0, lambda a, b: (a < b) | (a == b), lambda a, b: a * 2 + b,
        lambda a, b: np.exp(-np.abs(a * 1.0)) / (1.5 + b * b), lambda a, b: a.astype(np.float32) + b,
        lambda a, b: np.logical_and(a, b) * 0.5, lambda a, b: np.sqrt(np.abs(a * 1.0)) + np.sign(b * 1.0),
    ]  # fmt: skip
    plan = [(operations[rng.integers(len(operations))], *rng.integers(0, 100, 2)) for _ in range(25)]
    shapes = [(3, 4), (4,), (3, 1), (), (3, 4)]
    args = [np.asarray(3.0 * rng.normal(size=s)).astype(k) for s, k in zip(shapes, rng.permutation(kinds), strict=True)]

    def program(*xs):
        values = list(xs)
        for f, i, j in plan:
            values.append(f(values[i % len(values)], values[j % len(values)]))
        return tuple(np.tanh(v * 0.01) for v in values[-6:])

    with np.errstate(all="ignore"):
        g = check(program, *args, rtol=1e-6)
    assert "which compute" in g.explain()


# --- what jit promises --------------------------------------------------------------------------------------------


def test_results_are_arrays_of_their_own():
    ones = on_device(np.ones(3))
    f = fad.jit(lambda x: (np.zeros_like(x), x * 2.0, 2.0 * x, ones, ones * 1.0))
    for _ in range(3):
        found = f(on_device(X))
        for y in found:
            y[...] = 7.0
    found = fad.device_get(f(on_device(X)))
    for y, wanted in zip(found, (np.zeros_like(X), 2 * X, 2 * X), strict=False):
        np.testing.assert_array_equal(y, wanted)


def test_an_array_of_the_device_from_outside_is_read_in_each_call():
    scale = on_device(np.ones(4))
    f = fad.jit(lambda x: np.sin(x) * scale + scale)
    for value in (1.0, 3.0, 5.0):
        scale[...] = value
        with no_copies():
            found = f(on_device(X))
        np.testing.assert_allclose(fad.device_get(found), np.sin(X) * value + value)
    assert f.cache_info().paths == 1


def test_a_question_waits_and_each_answer_has_its_program():
    f = fad.jit(lambda x: np.sin(x) * 2.0 if np.sum(x) > 0 else np.cos(x) * 3.0)
    for x, wanted in ((X, None), (-X, None), (X, None), (-X, None)):
        wanted = np.sin(x) * 2.0 if np.sum(x) > 0 else np.cos(x) * 3.0
        np.testing.assert_allclose(fad.device_get(f(on_device(x))), wanted)
    assert f.cache_info().paths == 2
    with no_copies(), pytest.raises(standin.HostCopyError):
        f(on_device(X))


def test_signatures_tell_shapes_dtypes_and_static_arguments_apart():
    f = fad.jit(lambda x, n: x * n + 1.0, static_argnums=1)
    for x, n in ((X, 2), (X.astype(np.float32), 2), (X[:1], 2), (X, 3)):
        for _ in range(2):
            assert_same(f(on_device(x), n), x * n + 1.0, 1e-6)
    assert f.cache_info() == (4, 4, 4, 4)


def test_donated_arrays_of_a_device_stay_as_they_are():
    f = fad.jit(lambda x: np.sin(x) * 2.0, donate_argnums=0)
    x = on_device(X)
    for _ in range(3):
        np.testing.assert_allclose(fad.device_get(f(x)), np.sin(X) * 2.0)
    np.testing.assert_array_equal(fad.device_get(x), X)


def test_jit_under_transforms_stays_on_the_device():
    f = fad.jit(lambda x: np.sum(np.tanh(x) * x + 1.0))
    x = on_device(X)
    for _ in range(2):
        with no_copies():
            found = fad.grad(f)(x), fad.jvp(f, (x,), (x,))[1], fad.vmap(f)(x), fad.vmap(fad.grad(f))(x)
    plain = lambda x: np.sum(np.tanh(x) * x + 1.0)
    wanted = fad.grad(plain)(X), fad.jvp(plain, (X,), (X,))[1], fad.vmap(plain)(X), fad.vmap(fad.grad(plain))(X)
    assert_same(found, wanted)


def test_arrays_of_host_and_device_are_an_error_under_jit_too():
    f = fad.jit(lambda x: np.sin(x) * X)
    with pytest.raises(BackendMismatchError):
        f(on_device(X))


def test_an_index_of_the_host_and_one_of_the_device_select_the_same():
    rows = np.array([2, 0, 2])
    check(lambda x, i: np.sin(x[rows]) * 2.0 + x[i], X, rows)
    f = fad.jit(lambda x: np.sin(x[rows]) * 2.0)
    for _ in range(2):
        np.testing.assert_allclose(fad.device_get(f(on_device(X))), np.sin(X[rows]) * 2.0)


def test_a_kernel_that_does_not_compile_runs_operation_by_operation_with_one_warning(monkeypatch):
    def refuse(ins, outs, body, name):
        raise RuntimeError("nvrtc: error: no such thing")

    monkeypatch.setattr(standin, "elementwise_kernel", refuse)
    device_kernels._compile_kernel.cache_clear()
    monkeypatch.setattr(device_kernels, "_warned", [])
    f = fad.jit(lambda x: np.sin(x) * 2.0 @ on_device(W) + np.cos(x) * 3.0 + 0.77)
    f(on_device(X))
    with pytest.warns(NativeFallbackWarning, match="nvrtc: error: no such thing"):
        found = f(on_device(X))
    np.testing.assert_allclose(fad.device_get(found), np.sin(X) * 2.0 @ W + np.cos(X) * 3.0 + 0.77)
    f(on_device(X))  # no second warning, which would be an error here
    assert "one by one: it did not compile" in f.explain()
    device_kernels._compile_kernel.cache_clear()


def test_a_lowering_of_the_host_is_not_asked_for_but_numpys_makes_no_kernels():
    with using("numpy"):
        f = fad.jit(lambda x: np.sin(x) * 2.0 + 1.0)
        f(on_device(X))
        f(on_device(X))
    assert "kernels: 0," in f.explain()


def test_an_error_of_an_operation_names_it():
    f = fad.jit(lambda a: np.linalg.cholesky(a * 1.0 + 0.0))
    good = np.eye(3)
    f(on_device(good))
    with pytest.raises(np.linalg.LinAlgError) as error:
        f(on_device(-good))
    assert "cholesky" in "".join(error.value.__notes__)


@pytest.mark.parametrize("name", MODELS)
def test_jitted_steps_of_training_give_the_numbers_of_the_host_and_wait_for_nothing(name):
    def steps(net, x, labels, wrap):
        slope = wrap(fad.value_and_grad(lambda m, x, labels: nn.functional.cross_entropy(m(x), labels)))
        optimiser = OPTIMISERS["adam"](net)
        for _ in range(3):
            loss, grads = slope(net, x, labels)
            optimiser.step(grads)
        return loss

    make, data = MODELS[name]
    host, device, batch = make(), make().to("standin"), data(np.random.default_rng(2))
    wanted = steps(host, *batch, lambda f: f)
    placed = on_device(batch)
    with no_copies():
        found = steps(device, *placed, fad.jit)
    assert_same(found, wanted, 1e-9)
    assert_same(device.state_dict(), host.state_dict(), 1e-7)


def test_questions_are_asked_in_their_order_although_kernels_run_late():
    def f(x, row):
        a, b = np.sin(x) * 2.0, np.cos(row) * 3.0
        first, second = np.sum(a) > 0, np.sum(b, keepdims=True) > 0
        y = 1.0 if first else 2.0
        z = 3.0 if second else 5.0
        return (a + 1.0) * y * z, b  # the kernel of `a` is the last one to begin

    g = fad.jit(f)
    for x, row in ((X, X[0]), (-X, X[0] + 3.0), (-X, X[0]), (X, X[0] + 3.0), (X, X[0]), (-X, X[0] + 3.0)):
        for _ in range(2):
            assert_same(g(*on_device((x, row))), f(x, row))
    assert g.cache_info().paths == len({(np.sum(np.sin(s * X)) > 0, np.sum(np.cos(X[0] + d)) > 0)
                                        for s in (1, -1) for d in (0, 3)})  # fmt: skip


def test_random_bits_are_one_launch_and_those_of_the_host():
    key = fad.random.key(5)
    zero = np.zeros(6, np.uint64)
    counter = (np.arange(6).astype(np.uint64), zero, zero, zero + np.uint64(2))
    placed = on_device((key, counter))
    fad.random.philox(*placed)
    with no_copies(), counted() as asked:
        found = fad.random.philox(*placed)
    assert asked() <= 7  # the kernel, and the two halves of the key as they are wanted
    assert_same(found, fad.random.philox(key, counter))
    check(lambda k: fad.random.normal(k, (3, 4)), key)
