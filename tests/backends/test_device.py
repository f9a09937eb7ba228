"""Programs on a device: what stays there, what is refused, and what moves between it and the host."""

import operator
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import scipy.special
import standin
from programs import MODELS, OPTIMISERS, cnn, loop, mlp, model, recurrent, train
from standin import DeviceArray, HostCopyError, no_copies

import fad
import fad.numpy as fnp
from fad import backends, nn
from fad.errors import BackendFunctionError, BackendMismatchError, BackendNotFoundError

backends.register(standin)
X = np.linspace(0.1, 1.0, 6).reshape(2, 3)


def on_device(x):
    return fad.device_put(x, "standin")


# --- mixing ---------------------------------------------------------------------------------------------------------

MIXTURES = [
    lambda x: np.sum(x * X),
    lambda x: np.sum(X * x),
    lambda x: np.sum(np.maximum(X, x)),
    lambda x: np.sum(x @ X.T),
    lambda x: np.sum(np.where(X > 0.5, x, 0.0)),
    lambda x: np.sum(np.concatenate([x, X])),
    lambda x: np.einsum("ij,ij->", X, x),
    lambda x: np.sum(x * x.at[0].set(X[0])),
    lambda x: np.sum(np.einsum("ij,ij->ij", x, X)),
    lambda x: np.sum(np.linalg.solve(x @ x.T, X)),
]
TRANSFORMS = {
    "grad": lambda f: fad.grad(f)(on_device(X)),
    "jvp": lambda f: fad.jvp(f, (on_device(X),), (on_device(X),)),
    "vmap": lambda f: fad.vmap(f)(on_device(np.stack([X, X]))),
    "hvp": lambda f: fad.grad(lambda x: np.sum(fad.grad(f)(x)))(on_device(X)),
    "jet": lambda f: fad.jet(f, (on_device(X),), ([on_device(X), on_device(X)],)),
    "linearize": lambda f: fad.linearize(f, on_device(X)),
}


@pytest.mark.parametrize("mixture", range(len(MIXTURES)))
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_arrays_of_two_backends_in_one_operation_are_refused_naming_both(transform, mixture):
    with pytest.raises(BackendMismatchError, match=r"standin and numpy.*device_put"):
        TRANSFORMS[transform](MIXTURES[mixture])


def test_a_type_error_of_another_kind_stays_what_it_is():
    with pytest.raises(TypeError, match="unexpected keyword") as caught:
        fad.grad(lambda x: np.sum(x, nonsense=1))(on_device(X))
    assert not isinstance(caught.value, BackendMismatchError)


@pytest.mark.parametrize("number", [2, 2.0, True, np.float64(2.0), np.float32(2.0), np.int64(2), 2j])
@pytest.mark.parametrize("op", [operator.add, operator.mul, operator.sub])
def test_numbers_of_python_and_numpy_mix_freely_and_keep_numpys_dtypes(number, op):
    def f(x):
        return np.sum(np.real(op(op(x, number), number) + op(number, x)))

    for dtype in (np.float32, np.float64):
        with no_copies():
            found = fad.grad(f)(on_device(X.astype(dtype)))
        expected = fad.grad(f)(X.astype(dtype))
        assert found.dtype == expected.dtype
        np.testing.assert_array_equal(fad.device_get(found), expected)


def test_the_einsum_of_two_backends_is_refused_where_no_letter_is_summed():
    for f in (lambda x: np.sum(np.einsum("ij,ij->ij", X, x)), lambda x: np.sum(np.einsum("ij,ij->ij", x, X))):
        with pytest.raises(BackendMismatchError):
            fad.grad(f)(on_device(X))


# --- functions that the device's library does not have --------------------------------------------------------------


def test_a_function_that_cupy_lacks_is_an_error_that_names_what_there_is():
    x = on_device(X)
    lacking = r"standin have no scipy\.special\.airy.*it has bdtr, .*erf, .*device_get"
    for call in (
        lambda: fad.scipy.special.airy(x),
        lambda: fad.grad(lambda x: np.sum(scipy.special.airy(x)[0]))(x),
        lambda: fad.vmap(lambda x: scipy.special.airy(x)[0])(x),
    ):
        with pytest.raises(BackendFunctionError, match=lacking):
            call()
    with pytest.raises(BackendFunctionError, match=r"no scipy\.special\.iv"):
        fad.grad(lambda x: np.sum(fad.scipy.special.iv(0.5, x)))(x)
    with pytest.raises(BackendFunctionError, match="integer degrees"):
        fad.scipy.special.eval_legendre(1.5 * x, x)
    assert type(fad.numpy.spacing(x)) is DeviceArray


ITERATED = {
    "sqrtm": lambda a: fad.scipy.linalg.sqrtm(a),
    "logm": lambda a: fad.scipy.linalg.logm(a),
    "fractional_matrix_power": lambda a: fad.scipy.linalg.fractional_matrix_power(a, -1.5),
    "solve_sylvester": lambda a: fad.scipy.linalg.solve_sylvester(a, a.T, a @ a),
    "solve_continuous_are": lambda a: fad.scipy.linalg.solve_continuous_are(a, a, a @ a.T, a @ a.T),
    "solve_discrete_are": lambda a: fad.scipy.linalg.solve_discrete_are(a, a, a @ a.T, a @ a.T),
    "qr": lambda a: fad.scipy.linalg.qr(a, pivoting=True)[1],
}


@pytest.mark.parametrize("name", ITERATED)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
def test_functions_of_matrices_on_a_device_are_those_of_scipy_at_any_scale(name, scale):
    a = scale * (np.random.default_rng(0).normal(size=(6, 6)) + 6.0 * np.eye(6))
    f = lambda a: np.real(np.sum(ITERATED[name](a)))
    for found, expected in zip(fad.value_and_grad(f)(on_device(a)), fad.value_and_grad(f)(a), strict=True):
        np.testing.assert_allclose(fad.device_get(found), expected, rtol=1e-9, atol=1e-9 * np.max(np.abs(expected)))


def test_a_matrix_without_a_principal_root_is_refused_on_a_device():
    with pytest.raises(BackendFunctionError, match=r"negative.*device_get"):
        fad.scipy.linalg.sqrtm(on_device(np.array([[-2.0, 1.0], [0.0, 3.0]])))


@pytest.mark.parametrize("name", ["jv", "iv", "ive"])
@pytest.mark.parametrize("order", [0, 1, 2.0, -3, 7])
def test_bessel_functions_of_whole_order_are_those_of_scipy_on_a_device(name, order):
    x = np.concatenate([np.linspace(-60.0, 60.0, 97), np.geomspace(1e-8, 30.0, 20)])
    f = getattr(fad.scipy.special, name)
    with no_copies():
        found, _ = fad.jvp(lambda x: f(order, x), (on_device(x),), (on_device(np.ones_like(x)),))
    np.testing.assert_allclose(fad.device_get(found), f(order, x), rtol=1e-12, atol=2e-14 * (name == "jv"))


def test_functions_of_scipy_run_on_the_device_where_cupy_has_them():
    def f(x, w):
        return np.sum(w * scipy.special.erf(x) * scipy.special.gammaln(x + 1.0) + scipy.special.zeta(x + 2.0, 1.5))

    x = on_device(X)
    with no_copies():
        found = fad.grad(f, argnums=(0, 1))(x, x)
    for d, h in zip(found, fad.grad(f, argnums=(0, 1))(X, X), strict=True):
        assert type(d) is DeviceArray
        np.testing.assert_allclose(fad.device_get(d), h, rtol=1e-12)


def test_what_cupy_lacks_of_numpy_runs_in_operations_that_it_has():
    x = on_device(X)
    for f in (fnp.vecdot, fnp.linalg.vecdot):
        assert type(f(x, x)) is DeviceArray
        np.testing.assert_allclose(fad.device_get(f(x, x)), np.sum(X * X, -1))
    np.testing.assert_allclose(fad.device_get(fnp.sum(x, where=x > 0.5)), np.sum(X, where=X > 0.5))
    np.testing.assert_allclose(fad.device_get(fnp.max(x, initial=3.0)), 3.0)


def test_a_plain_array_of_integers_may_index_an_array_of_the_device():
    found = fad.grad(lambda x: np.sum(x[np.array([1, 1, 0])] * 2.0))(on_device(X))
    np.testing.assert_array_equal(fad.device_get(found), [[2.0] * 3, [4.0] * 3])


# --- no copy in silence ---------------------------------------------------------------------------------------------


@pytest.mark.parametrize("program", [mlp, cnn, loop, recurrent])
def test_a_gradient_copies_nothing_to_the_host_in_silence(program):
    loss, params, rest = program(np.random.default_rng(0))
    value, grads = fad.value_and_grad(loss)(params, *rest)
    placed = on_device((params, *rest))
    with no_copies():
        device_value, device_grads = fad.value_and_grad(loss)(*placed)
    np.testing.assert_allclose(fad.device_get(device_value), value, rtol=1e-12)
    for d, h in zip(fad.tree.leaves(device_grads), fad.tree.leaves(grads), strict=True):
        assert type(d) is DeviceArray
        np.testing.assert_allclose(fad.device_get(d), h, rtol=1e-12)


@pytest.mark.parametrize("program", [mlp, cnn, loop, recurrent])
def test_a_power_series_copies_nothing_to_the_host_in_silence(program):
    loss, params, rest = program(np.random.default_rng(0))

    def jet(params, rest):
        leaves, structure = fad.tree.flatten(params)
        series = fad.tree.unflatten(structure, [[0.1 * x, -0.2 * x, 0.1 * x] for x in leaves])
        return fad.jet(lambda p: loss(p, *rest), (params,), (series,))

    expected = fad.tree.leaves(jet(params, rest))
    placed = on_device((params, rest))
    with no_copies():
        found = fad.tree.leaves(jet(*placed))
    for d, h in zip(found, expected, strict=True):
        assert type(d) is DeviceArray
        np.testing.assert_allclose(fad.device_get(d), h, rtol=1e-10)


@pytest.mark.parametrize("program", [mlp, cnn, loop, recurrent])
@pytest.mark.parametrize("how", [lambda f: fad.jit(fad.grad(f)), lambda f: fad.grad(fad.checkpoint(f))])
def test_a_compiled_or_checkpointed_gradient_stays_on_the_device_too(how, program):
    loss, params, rest = program(np.random.default_rng(0))
    expected = fad.tree.leaves(fad.grad(loss)(params, *rest))
    placed, gradient = on_device((params, *rest)), how(loss)
    for _ in range(2):  # recorded, then replayed
        with no_copies():
            grads = gradient(*placed)
        for d, h in zip(fad.tree.leaves(grads), expected, strict=True):
            assert type(d) is DeviceArray
            np.testing.assert_allclose(fad.device_get(d), h, rtol=1e-12)


def test_jit_says_which_operations_are_in_kernels_and_which_are_calls():
    f = fad.jit(lambda x: np.sum(np.sin(x) ** 2 + 1.0))
    for _ in range(2):
        f(on_device(X))
    text = f.explain()
    assert "lowering: kernels for standin" in text
    assert "kernels: 1, which compute 3 operations" in text
    assert "calls of the array library: 1 sum_over" in text
    f(X)
    assert f.cache_info().signatures == 2  # arrays of the host have a program of their own


def test_asking_for_a_truth_value_waits_for_the_device():
    def f(x):
        return np.sum(x) if x[0, 0] > 0 else -np.sum(x)

    np.testing.assert_array_equal(fad.device_get(fad.grad(f)(on_device(X))), np.ones((2, 3)))
    with no_copies(), pytest.raises(HostCopyError):
        fad.grad(f)(on_device(X))


def test_a_traced_value_offers_no_memory_for_another_library_to_read():
    def f(x):
        assert not hasattr(x, "__cuda_array_interface__")
        assert not hasattr(x, "__cupy_get_ndarray__")
        assert not hasattr(x, "__array_interface__")
        return np.sum(x)

    fad.grad(f)(on_device(X))


def test_a_label_out_of_range_spoils_the_loss_on_a_device_that_is_not_kept_waiting():
    logits, labels = on_device((np.ones((3, 2)), np.array([0, 2, 1])))
    with no_copies():
        rows = nn.functional.cross_entropy(logits, labels, reduction="none")
        grads = fad.grad(lambda z: nn.functional.cross_entropy(z, labels))(logits)
    np.testing.assert_array_equal(np.isnan(fad.device_get(rows)), [False, True, False])
    assert np.isnan(fad.device_get(grads)[1]).all()


@pytest.mark.parametrize("shape", [(), (2,)])
def test_arrays_like_another_have_the_shape_asked_for(shape):
    x = on_device(np.ones(3))
    for make in (fnp.zeros_like, fnp.ones_like, fnp.empty_like, lambda x, shape: fnp.full_like(x, 2.0, shape=shape)):
        assert make(x, shape=shape).shape == shape


def test_the_gradient_of_an_array_without_axes_has_none():
    for f in (lambda x: np.sum(x[None] * 2.0), lambda x: np.sum(x[...] * 2.0), lambda x: fad.hessian(np.sin)(x)):
        assert fad.grad(f)(on_device(np.array(0.5))).shape == ()


def test_the_partly_ordered_have_the_right_element_in_its_place_without_waiting():
    x = np.random.default_rng(0).normal(size=(3, 9))
    with no_copies():
        order = fnp.argpartition(on_device(x), 4, axis=1)
        parted = fad.vmap(lambda x: np.partition(x, 4))(on_device(x))
    expected = np.sort(x, axis=1)[:, 4]
    np.testing.assert_array_equal(np.take_along_axis(x, fad.device_get(order), 1)[:, 4], expected)
    np.testing.assert_array_equal(fad.device_get(parted)[:, 4], expected)


def test_numbers_stand_beside_arrays_of_the_device_in_functions_of_several():
    x = on_device(np.array([1.0, 2.0]))
    for f in (
        lambda x: fnp.geomspace(x, 16.0, 3), lambda x: fnp.linspace(0.0, x, 3), lambda x: fnp.logspace(x, 3, 3),
        lambda x: fnp.choose(1, [x, x]), lambda x: fnp.average(x, weights=x), lambda x: fnp.gradient(x, 0.5),
    ):  # fmt: skip
        assert type(f(x)) is DeviceArray
        np.testing.assert_allclose(fad.device_get(f(x)), f(fad.device_get(x)))


@pytest.mark.parametrize("f", [np.nanmax, np.nanmin, np.fmax.reduce, np.fmin.reduce])
def test_what_is_missing_everywhere_is_missing_in_the_extreme(f):
    x = np.array([[np.nan, 2.0, 1.0], [np.nan] * 3])
    with no_copies():
        found = fad.vmap(lambda x: f(x))(on_device(x))
    np.testing.assert_array_equal(fad.device_get(found)[0], f(x[0]))
    assert np.isnan(fad.device_get(found)[1])


def test_real_eigenvalues_of_real_matrices_have_numpys_dtype():
    x = np.array([[2.0, 1.0], [0.5, 1.0]])
    a = on_device(x)
    assert fnp.linalg.eigvals(a).dtype == np.linalg.eigvals(x).dtype  # real numbers before NumPy 2.5
    found = fad.grad(lambda a: np.sum(np.linalg.eigvals(a).real ** 2))(a)
    np.testing.assert_allclose(fad.device_get(found), 2.0 * fad.device_get(a).T)


def test_showing_an_array_of_a_device_waits_for_it():
    with no_copies(), pytest.raises(HostCopyError):
        repr(on_device(X))


# --- the default backend --------------------------------------------------------------------------------------------


def test_arrays_are_made_on_the_default_backend():
    makers = {
        "zeros": lambda: fnp.zeros((2, 3)), "ones": lambda: fnp.ones(2), "full": lambda: fnp.full(2, 3.0),
        "eye": lambda: fnp.eye(3), "arange": lambda: fnp.arange(4.0), "linspace": lambda: fnp.linspace(0.0, 1.0, 3),
        "array": lambda: fnp.array([[1.0, 2.0]]), "asarray": lambda: fnp.asarray([1, 2]),
    }  # fmt: skip
    for name, make in makers.items():
        assert type(make()) is np.ndarray, name
        with backends.use("standin"):
            made = make()
        assert type(made) is DeviceArray, name
        np.testing.assert_array_equal(fad.device_get(made), make())
    assert type(fnp.zeros(2)) is np.ndarray


def test_an_array_of_a_device_stays_there_when_made_an_array_again():
    x = on_device(X)
    assert fnp.asarray(x) is x
    assert fnp.asarray(x, dtype=np.float32).dtype == np.float32


def test_device_put_and_device_get_go_both_ways_and_keep_the_tree():
    moved = on_device({"a": X, "b": [X, 3.0]})
    assert type(moved["a"]) is DeviceArray
    assert moved["b"][1] == 3.0
    back = fad.device_get(moved)
    np.testing.assert_array_equal(back["b"][0], X)
    assert fad.device_put(moved["a"], "standin") is moved["a"]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_random_numbers_are_equal_on_both_backends(dtype):
    random = fad.random

    def draw():
        a, b, c = random.split(random.key(7), 3)
        return {
            "uniform": random.uniform(a, (3, 5), dtype), "normal": random.normal(b, (7,), dtype),
            "randint": random.randint(c, (6,), -3, 9), "bits": random.bits(random.fold_in(c, 5), (4,)),
            "permutation": random.permutation(a, 9), "bernoulli": random.bernoulli(b, 0.3, (8,)),
        }  # fmt: skip

    host = draw()
    with backends.use("standin"), no_copies():
        device = draw()
    for name, x in device.items():
        assert type(x) is DeviceArray, name
        np.testing.assert_array_equal(fad.device_get(x), host[name], err_msg=name)


# --- training -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", OPTIMISERS)
def test_training_on_the_device_gives_the_numbers_of_the_host(name):
    rng = np.random.default_rng(1)
    x, labels = rng.normal(size=(8, 4)), rng.integers(0, 3, 8)
    host, device = model(), model().to("standin")
    assert all(type(p) is DeviceArray for p in device.parameters())
    assert all(type(b) is DeviceArray for _, b in device.named_buffers())
    train(host, x, labels, OPTIMISERS[name])
    placed = on_device((x, labels))
    with no_copies():
        train(device, *placed, OPTIMISERS[name])
    for (key, h), (_, d) in zip(host.state_dict().items(), device.state_dict().items(), strict=True):
        np.testing.assert_allclose(fad.device_get(d), h, rtol=1e-9, atol=1e-12, err_msg=key)


@pytest.mark.parametrize("name", MODELS)
def test_steps_of_training_copy_nothing_to_the_host(name):
    rng = np.random.default_rng(2)
    make, data = MODELS[name]
    host, device, batch = make(), make().to("standin"), data(rng)
    train(host, *batch, OPTIMISERS["adam"])
    placed = on_device(batch)
    with no_copies():
        train(device, *placed, OPTIMISERS["adam"])
    for (key, h), (_, d) in zip(host.state_dict().items(), device.state_dict().items(), strict=True):
        np.testing.assert_allclose(fad.device_get(d), h, rtol=1e-8, atol=1e-10, err_msg=key)
    host.eval()
    device.eval()
    expected = host(batch[0])
    with no_copies():
        found = [fad.jit(lambda m, x: m(x))(device, placed[0]), fad.vmap(lambda x: device(x[None])[0])(placed[0])]
    for y in found:
        np.testing.assert_allclose(fad.device_get(y), expected, rtol=1e-8, atol=1e-10)


def test_a_row_out_of_range_is_nan_on_a_device_that_is_not_kept_waiting():
    weight, rows = on_device((np.ones((3, 2)), np.array([0, 3, 2])))
    with no_copies():
        found = nn.functional.embedding(rows, weight)
        fad.grad(lambda w: np.sum(nn.functional.embedding(rows, w, padding_idx=0)))(weight)
    np.testing.assert_array_equal(np.isnan(fad.device_get(found))[:, 0], [False, True, False])
    with pytest.raises(IndexError):
        nn.functional.embedding(np.array([3]), np.ones((3, 2)))


def test_a_model_moves_there_and_back_and_shared_parameters_stay_shared():
    net = nn.Sequential(nn.Linear(3, 3, key=0), nn.Linear(3, 3, key=1))
    net[1].weight = net[0].weight
    before = fad.device_get(net.state_dict())
    net.to("standin")
    assert net[1].weight is net[0].weight
    net.to("numpy")
    for key, x in net.state_dict().items():
        np.testing.assert_array_equal(x, before[key])


@pytest.mark.parametrize("transform", [lambda f: f, fad.jit], ids=["plain", "jit"])
def test_of_a_choice_against_a_number_a_byte_or_two_are_kept(transform):
    def f(x):
        for _ in range(20):
            x = np.minimum(np.maximum(np.flip(x), 0.25), 0.75)
        return np.sum(x)

    x = on_device(np.linspace(0.0, 1.0, 1 << 17, dtype=np.float32))
    run = transform(fad.grad(f))
    run(x)
    run(x)
    with standin.held([x]) as most:
        run(x)
    assert most() < (20 * 2 * 2 + 6 * 4) * x.size


def test_a_model_of_the_device_is_saved_and_loaded_where_it_lives(tmp_path):
    saved = model().to("standin")
    fad.save(tmp_path / "model", saved.state_dict())
    other = nn.Sequential(nn.Linear(4, 6, key=5), nn.ReLU(), nn.BatchNorm1d(6), nn.Linear(6, 3, key=6)).to("standin")
    other.load_state_dict(fad.load(tmp_path / "model"))
    for (key, a), (_, b) in zip(saved.state_dict().items(), other.state_dict().items(), strict=True):
        assert type(b) is DeviceArray, key
        np.testing.assert_array_equal(fad.device_get(a), fad.device_get(b))


# --- backends that are not there ------------------------------------------------------------------------------------


def test_asking_for_cupy_without_it_says_what_to_install(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "cupy", None)
    monkeypatch.delitem(__import__("sys").modules, "fad.backends.cupy", raising=False)
    monkeypatch.delitem(backends._BY_NAME, "cupy", raising=False)
    for ask in (lambda: backends.use("cupy"), lambda: fad.device_put(X, "cupy"), lambda: model().to("cupy")):
        with pytest.raises(BackendNotFoundError, match=r"pip install 'cupy-cuda12x\[ctk\]'"):
            ask()
    assert backends.default().name == "numpy"


def test_fad_is_imported_and_used_without_asking_for_cupy():
    program = """
import sys

class Refuse:
    def find_spec(self, name, path=None, target=None):
        assert name.split(".")[0] not in ("cupy", "cupyx", "cupy_backends"), name

sys.meta_path.insert(0, Refuse())
import numpy as np, scipy.special
import fad, fad.nn, fad.optim, fad.scipy.special, fad.scipy.linalg
f = fad.jit(lambda x: np.sum(scipy.special.erf(fad.nn.functional.gelu(x))))
fad.grad(f)(np.ones(3)), fad.random.normal(fad.random.key(0), (2,)), fad.device_get(fad.device_put(np.ones(2)))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_no_rule_and_no_module_mentions_cupy():
    """The library of the GPU is named where arrays live, where ranks talk through it, and in what users read."""
    root = Path(fad.__file__).parent
    said = [p for p in root.rglob("*.py") if "import cupy" in p.read_text(encoding="utf-8")]
    backends_of_it = [root / "backends" / name for name in ("cublas.py", "cuda_graphs.py", "cupy.py")]
    assert sorted(said) == [*backends_of_it, root / "distributed" / "nccl.py"]
    folders = ("ops", "core", "transforms", "staging", "control_flow", "compile", "jitting", "control.py")
    modules = [p for d in folders for p in (root / d).rglob("*.py")]
    assert [p.name for p in modules if "cupy" in p.read_text(encoding="utf-8").lower()] == []


def test_a_backend_of_an_unknown_name_is_refused_with_the_names_there_are():
    with pytest.raises(ValueError, match=r"no backend 'cuda'.*cupy.*numpy"):
        backends.use("cuda")


# --- profiling ------------------------------------------------------------------------------------------------------


def test_operations_on_a_device_are_timed_by_its_own_events_which_are_waited_for_when_they_are_read():
    with no_copies(), fad.profiler.profile() as prof:
        fad.grad(lambda x: np.sum(np.sin(x)))(on_device(X))
        fad.grad(lambda x: np.sum(np.cos(x)))(X)
    rows = {row.key: row.time_total for row in prof.key_averages()}
    assert rows["sin"] == rows["sin (backward)"] == 250_000.0
    assert rows["cos"] < 250_000.0
