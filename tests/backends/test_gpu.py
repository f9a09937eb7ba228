"""The contract and training on a real GPU: ``make test-gpu``, or ``pytest -m gpu``. Needs CuPy.

Without CuPy or a GPU these tests are skipped; with ``FAD_GPU=required`` in the environment that is a failure.
"""

import contextlib
import functools
import operator
import os
import warnings

import numpy as np
import offers
import pytest
import scipy.special
from device_contract import DTYPES, NAMES, judge
from programs import (
    BINARY,
    MODELS,
    OPTIMISERS,
    SPECIAL,
    UNARY,
    cnn,
    fused,
    loop,
    mlp,
    model,
    recurrent,
    train,
)  # fmt: skip

import fad
from fad import backends, nn
from fad.errors import BackendFunctionError, BackendMismatchError, BackendNotFoundError, FadError


@functools.cache
def absence():
    """Return why no GPU can be used here, or an empty string."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # CuPy's, about where it finds CUDA
        try:
            backends.get("cupy")
        except BackendNotFoundError as error:
            return str(error).splitlines()[0]
        import cupy

        try:
            float(cupy.ones(1).sum())
        except Exception as error:  # no driver, no device, a driver too old: CuPy says it in many ways
            return f"CuPy is installed, but finds no GPU that works: {error}"
    return ""


# What CuPy warns of is not fad's to fail for.
pytestmark = [pytest.mark.gpu, pytest.mark.filterwarnings("default")]
on_a_gpu = pytest.mark.skipif(bool(absence()), reason=absence())


@pytest.fixture
def cupy():
    return backends.get("cupy")


@contextlib.contextmanager
def no_copies():
    """Forbid copies to the host, as far as CuPy sees them."""
    import cupyx

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that it may not see all of them
        with cupyx.allow_synchronize(False):
            yield


def assert_close(device, host, **within):
    for d, h in zip(fad.tree.leaves(device), fad.tree.leaves(host), strict=True):
        assert type(d) is backends.get("cupy").array_type
        np.testing.assert_allclose(fad.device_get(d), h, **within)


def test_a_gpu_is_there_if_it_was_required():
    if os.environ.get("FAD_GPU") == "required":
        assert not absence()


@on_a_gpu
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("name", [] if absence() else NAMES)  # one line where they are skipped
def test_an_operation_and_its_derivatives_stay_on_the_gpu(name, dtype, cupy):
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        assert not judge(name, cupy, dtype, no_copies)


@on_a_gpu
@pytest.mark.parametrize("how", ["eager", "jit", "checkpoint"])
@pytest.mark.parametrize("program", [mlp, cnn, loop, recurrent])
def test_a_gradient_on_the_gpu_is_that_of_the_host_and_copies_nothing(program, how):
    loss, params, rest = program(np.random.default_rng(0))
    expected = fad.grad(loss)(params, *rest)
    placed = fad.device_put((params, *rest), "cupy")
    wrapped = {"eager": lambda f: f, "jit": fad.jit, "checkpoint": fad.checkpoint}[how](loss)
    with no_copies():
        found = fad.grad(wrapped)(*placed)
    assert_close(found, expected, rtol=1e-8, atol=1e-12)


@on_a_gpu
@pytest.mark.parametrize("name", OPTIMISERS)
def test_training_on_the_gpu_gives_the_numbers_of_the_host(name):
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(8, 4)), rng.integers(0, 3, 8)
    host, device = model(), model().to("cupy")
    train(host, x, labels, OPTIMISERS[name])
    train(device, *fad.device_put((x, labels), "cupy"), OPTIMISERS[name])
    assert_close(device.state_dict(), host.state_dict(), rtol=1e-7, atol=1e-10)


@on_a_gpu
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("function", [*UNARY, *BINARY], ids=lambda f: f.__name__)
def test_a_function_in_a_kernel_gives_what_cupys_own_does(function, dtype):
    # CuPy compiles with -ftz=true: what becomes of a subnormal number in single precision is left to the compiler.
    x = np.array(SPECIAL).astype(dtype)
    x = fad.device_put(x[(x == 0) | (np.abs(x) >= np.finfo(dtype).tiny) | np.isnan(x)], "cupy")
    args = (x,) if function in UNARY else (x[:, None], x[None, :])
    f = fad.jit(fused(function))
    f(*args)
    eps = np.finfo(dtype).eps
    # Where log2(2^x + 2^y) is near 0, max(x, y) has cancelled log2(1 + q), whose errors are left. CuPy's: half a unit
    # in the rounding of 1 + q, over ln 2, and a unit of the logarithm, which is below 1. fad's: log1p(q) to a unit,
    # which is eps, and the rounding of its product with 1 / ln 2. q has the same bits in both.
    cancelled = (0.5 / np.log(2.0) + 0.5 + 1.5) * eps if function is np.logaddexp2 else 0.0
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # that a kernel did not compile, above all
        found = f(*args)
    assert "kernels: 1," in f.explain()
    for y, wanted in zip(found, fused(function)(*args), strict=True):
        assert y.dtype == wanted.dtype
        np.testing.assert_allclose(fad.device_get(y), fad.device_get(wanted), rtol=4 * eps, atol=cancelled)


@on_a_gpu
def test_a_chain_with_its_reverse_pass_is_one_kernel_of_the_same_numbers():
    def chain(x):
        for _ in range(20):
            x = np.tanh(x) * x + 0.5
        return np.sum(x)

    x = fad.device_put(np.random.default_rng(0).normal(size=1000), "cupy")
    g, wanted = fad.jit(fad.grad(chain)), fad.device_get(fad.grad(chain)(x))
    for _ in range(3):
        with no_copies():
            found = g(x)
        np.testing.assert_array_equal(fad.device_get(found), wanted)
    assert "kernels: 1," in g.explain()
    assert "calls of the array library: none" in g.explain()


def step_of_training(params, speed, rate, x):
    loss, grads = fad.value_and_grad(lambda p: np.mean(np.tanh(np.tanh(x @ p[0]) @ p[1]) ** 2))(params)
    speed = [0.9 * v + g for v, g in zip(speed, grads, strict=True)]
    return [p - rate * v for p, v in zip(params, speed, strict=True)], speed, loss


@on_a_gpu
@pytest.mark.parametrize("how", ["one batch", "other batches", "other rates", "views", "by columns"])
def test_a_step_of_training_that_is_replayed_gives_the_numbers_of_the_host(how):
    rng = np.random.default_rng(0)
    params = [rng.normal(size=(6, 5)), rng.normal(size=(5, 3))]
    batches = [rng.normal(size=(8, 6)) for _ in range(8)]
    if how == "one batch":
        batches = batches[:1] * 8
    rates = [0.1 / (1 + k) if how == "other rates" else 0.1 for k in range(8)]
    host = params, [np.zeros_like(p) for p in params], None
    device, placed = fad.device_put(host[:2], "cupy"), [fad.device_put(x, "cupy") for x in batches]
    if how == "views":
        placed = [fad.device_put(np.repeat(x, 2, axis=1), "cupy")[:, ::2] for x in batches]
    if how == "by columns":
        placed = [fad.device_put(np.ascontiguousarray(x.T), "cupy").T for x in batches]
    step, states = fad.jit(step_of_training), []
    for x, y, rate in zip(batches, placed, rates, strict=True):
        host = step_of_training(*host[:2], rate, x)
        device = step(*device[:2], rate, y)
        states.append((device, fad.tree.map(np.copy, host)))
    assert "replayed as one" in step.explain()
    for found, wanted in states:  # later replays leave what was handed out alone
        assert_close(found, wanted, rtol=1e-9, atol=1e-12)


@on_a_gpu
def test_results_that_are_arguments_or_the_same_are_handed_out_by_a_replay(cupy):
    def f(x, y):
        z = np.sin(x) @ np.cos(y)
        w = np.exp(z) @ y + np.sum(z, axis=1, keepdims=True) * x
        return x, w, w, z.T, np.float64(2.0) * y

    g = fad.jit(f)
    for k in range(6):
        x, y = np.full((3, 3), 0.1 + k), np.eye(3) * k
        found = g(*fad.device_put((x, y), "cupy"))
        assert_close(found, f(x, y), rtol=1e-12, atol=1e-13)
    assert "replayed as one" in g.explain()


@on_a_gpu
def test_the_loss_of_a_classifier_is_replayed_and_numbers_of_numpy_may_change():
    rng = np.random.default_rng(0)
    w, x, labels = rng.normal(size=(4, 3)), rng.normal(size=(8, 4)), rng.integers(0, 3, 8)

    def step(w, x, labels, rate):
        loss, g = fad.value_and_grad(lambda w: nn.functional.cross_entropy(x @ w, labels) + np.sum(w[[0, 2]] ** 2))(w)
        return w - rate * g, loss

    fast, device = fad.jit(step), fad.device_put(w, "cupy")
    for k in range(7):
        rate = np.float64(0.5 / (k + 1))
        w, loss = step(w, x, labels, rate)
        device, found = fast(device, *fad.device_put((x, labels), "cupy"), rate)
        assert_close((device, found), (w, loss), rtol=1e-10)
    assert "replayed as one" in fast.explain()


@on_a_gpu
def test_a_program_that_asks_the_gpu_for_a_number_is_not_recorded():
    def f(x):
        y = np.tanh(x @ x) @ x + np.sum(np.sin(x) @ x)
        return y if y[0, 0] > 0 else -y

    g, x = fad.jit(f), np.eye(3)
    for k in range(5):
        assert_close(g(fad.device_put((k - 2) * x, "cupy")), f((k - 2) * x), rtol=1e-12)
    assert "launches are not recorded: a loop, a branch or a question waits" in g.explain()


@on_a_gpu
def test_a_program_with_what_cupy_cannot_record_runs_as_it_is_written():
    f = lambda x: np.linalg.solve(np.exp(x), np.sin(x)) @ np.cos(x) @ x
    g = fad.jit(f)
    for k in range(5):
        x = np.eye(3) * (k + 1)
        assert_close(g(fad.device_put(x, "cupy")), f(x), rtol=1e-9)
    assert "launches are not recorded: " in g.explain()


@on_a_gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128"])
def test_a_product_that_is_recorded_is_cupys_however_its_operands_lie(dtype):
    import cupy as cp

    from fad.backends import cublas

    rng, handle = np.random.default_rng(0), cublas.Handle(cp.cuda.get_current_stream())
    arrange = [
        lambda x: x, lambda x: np.repeat(x, 2, axis=-1)[..., ::2], lambda x: x[..., ::-1],
        lambda x: cp.concatenate([x, x], axis=-1)[..., : x.shape[-1]],
        lambda x: cp.ascontiguousarray(x.swapaxes(-1, -2)).swapaxes(-1, -2) if x.ndim > 1 else x,
    ]  # fmt: skip
    for a, b in [
        ((3, 4), (4, 5)), ((4,), (4, 5)), ((3, 4), (4,)), ((4,), (4,)), ((2, 3, 4), (4, 5)), ((3, 4), (2, 4, 5)),
        ((2, 3, 4), (2, 4, 5)), ((2, 1, 3, 4), (5, 4, 6)), ((1, 3, 4), (4, 1)), ((3, 1), (1, 5)),
        ((2, 1, 4), (2, 4, 1)),
    ]:  # fmt: skip
        x, y = (rng.normal(size=s) + 1j * rng.normal(size=s) for s in (a, b))
        if dtype.startswith("float"):
            x, y = x.real, y.real
        x, y = cp.asarray(x.astype(dtype)), cp.asarray(y.astype(dtype))
        for left in arrange:
            for right in arrange:
                found, wanted = handle.multiply(left(x), right(y)), cp.matmul(left(x), right(y))
                assert found.dtype == wanted.dtype
                eps = 30 * np.finfo(dtype).eps
                np.testing.assert_allclose(found.get(), wanted.get(), rtol=eps, atol=eps)


@on_a_gpu
@pytest.mark.parametrize("name", MODELS)
def test_steps_of_training_copy_nothing_to_the_host(name):
    make, data = MODELS[name]
    host, device, batch = make(), make().to("cupy"), data(np.random.default_rng(2))
    train(host, *batch, OPTIMISERS["adam"])
    placed = fad.device_put(batch, "cupy")
    with no_copies():
        train(device, *placed, OPTIMISERS["adam"])
    assert_close(device.state_dict(), host.state_dict(), rtol=1e-6, atol=1e-9)


@on_a_gpu
def test_a_model_of_the_gpu_is_saved_and_loaded_where_it_lives(tmp_path):
    saved, other = model().to("cupy"), model().to("cupy")
    train(saved, *fad.device_put((np.ones((4, 4)), np.zeros(4, int)), "cupy"), OPTIMISERS["sgd"])
    fad.save(tmp_path / "model", saved.state_dict())
    other.load_state_dict(fad.load(tmp_path / "model"))
    assert_close(other.state_dict(), fad.device_get(saved.state_dict()), rtol=0)


@on_a_gpu
def test_random_numbers_are_those_of_the_host():
    def draw():
        a, b = fad.random.split(fad.random.key(3))
        return fad.random.bits(a, (64,)), fad.random.uniform(b, (64,), np.float32), fad.random.permutation(a, 9)

    host = draw()
    with backends.use("cupy"), no_copies():
        device = draw()
    assert_close(device, host, rtol=0)


@on_a_gpu
def test_functions_of_scipy_run_on_the_gpu_where_cupy_has_them():
    def f(x):
        return np.sum(scipy.special.erf(x) * scipy.special.gammaln(x + 1.0) + scipy.special.zeta(x + 2.0, 1.5))

    x = np.linspace(0.2, 1.5, 6)
    assert_close(fad.grad(f)(fad.device_put(x, "cupy")), fad.grad(f)(x), rtol=1e-9)
    a = np.eye(3) + np.arange(9.0).reshape(3, 3) / 10
    expected = fad.grad(lambda a: np.sum(fad.scipy.linalg.expm(a)))(a)
    assert_close(fad.grad(lambda a: np.sum(fad.scipy.linalg.expm(a)))(fad.device_put(a, "cupy")), expected, rtol=1e-9)
    with pytest.raises(BackendFunctionError, match=r"cupy have no scipy\.special\.airy.*erf"):
        fad.grad(lambda x: np.sum(scipy.special.airy(x)[0]))(fad.device_put(x, "cupy"))


@on_a_gpu
@pytest.mark.parametrize("dtype", ["float32", "complex128"])
def test_a_matrix_that_is_not_positive_definite_has_no_factor_of_numbers(dtype):
    good = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.2], [0.5, 0.2, 2.0]])
    bad = fad.device_put((np.stack([good, good - 2.5 * np.eye(3)])).astype(dtype), "cupy")
    for factor in (fad.numpy.linalg.cholesky, fad.jit(np.linalg.cholesky), fad.vmap(np.linalg.cholesky)):
        found = np.isnan(fad.device_get(factor(bad))).all((1, 2))
        np.testing.assert_array_equal(found, [False, True])
    assert np.isnan(fad.device_get(fad.grad(lambda a: np.sum(np.abs(np.linalg.cholesky(a))))(bad[1]))).all()
    assert np.isnan(fad.device_get(fad.scipy.linalg.eigh(bad[0], bad[1])[0])).all()


@on_a_gpu
@pytest.mark.parametrize("dtype", ["float32", "float64", "complex64", "complex128", "int32", "int64"])
def test_values_are_added_at_repeated_places_in_every_dtype(dtype, cupy):
    target, index = np.arange(8).reshape(4, 2).astype(dtype), np.array([0, 2, 0])
    values = (-3 * np.ones((3, 2))).astype(dtype)
    device, placed = fad.device_put((target, values), "cupy")
    cupy.scatter_add(device, index, placed)
    np.add.at(target, index, values)
    assert_close(device, target, rtol=1e-6)


@on_a_gpu
def test_operations_are_timed_by_events_of_the_gpu():
    x = fad.device_put(np.ones(1_000_000), "cupy")
    with no_copies(), fad.profiler.profile() as prof:
        fad.grad(lambda x: np.sum(np.sin(x)))(x)
    times = {row.key: row.time_total for row in prof.key_averages()}
    assert 0 < times["sin"] < 1e6
    assert 0 < times["sin (backward)"] < 1e6


@on_a_gpu
def test_arrays_of_host_and_gpu_in_one_operation_are_refused():
    x, plain = fad.device_put(np.ones((2, 2)), "cupy"), np.ones((2, 2))
    mixtures = [
        lambda x: np.sum(x * plain), lambda x: np.sum(plain * x), lambda x: np.sum(plain @ x),
        lambda x: np.sum(np.where(plain > 0, x, 0.0)), lambda x: np.sum(np.concatenate([x, plain])),
        lambda x: np.sum(np.einsum("ij,ij->ij", plain, x)), lambda x: nn.functional.mse_loss(x, plain),
    ]  # fmt: skip
    for mixture in mixtures:
        with pytest.raises(BackendMismatchError, match="cupy and numpy"):
            fad.grad(mixture)(x)


@on_a_gpu
def test_the_stand_in_has_the_names_of_this_cupy(capsys):
    import cupy as cp
    import list_names

    if cp.__version__ != offers.VERSION:
        pytest.skip(f"the stand-in is CuPy {offers.VERSION}, and {cp.__version__} is here")
    list_names.main()
    found = set(capsys.readouterr().out.splitlines()[2:])
    listed = {n: f"{n} {how}".strip() for n, how in offers.LINES.items()}
    assert found - set(listed.values()) == set()
    assert [n for n, line in listed.items() if line not in found and numpy_has(n)] == []


def numpy_has(name):
    """Return whether NumPy still has a name, below which alone CuPy's is looked for: 2.5 has no `row_stack`."""
    try:
        operator.attrgetter(name)(np)
    except AttributeError:
        return name.startswith("scipy.")
    return True


@on_a_gpu
def test_a_function_of_cupy_called_on_a_traced_value_is_an_error():
    import cupy as cp

    with pytest.raises((FadError, TypeError)):
        fad.grad(lambda x: cp.sin(x).sum())(fad.device_put(np.ones(3), "cupy"))
