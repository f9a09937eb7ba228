"""Training over ranks is training on one rank with the joined batch."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

import fad
from fad import data, nn, optim
from fad import distributed as D
from fad.errors import UnsupportedInputError
from fad.nn import functional as F

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


def on_ranks(fun, size=2, **options):
    return D.run_ranks(fun, size, timeout=60, **options)


def example(name):
    spec = importlib.util.spec_from_file_location(f"_example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def small(seed=0, dtype=None):
    with nn.seed(seed):
        return nn.Sequential(nn.Linear(8, 16, dtype=dtype), nn.Tanh(), nn.Linear(16, 4, dtype=dtype))


def batch(n=12, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n, 8)), rng.integers(0, 4, n)


def loss(model, x, y):
    return F.cross_entropy(model(x), y)


def part(comm, *xs):
    n = len(xs[0]) // comm.size
    return tuple(x[int(comm.rank) * n : (int(comm.rank) + 1) * n] for x in xs)


def assert_same(a, b, **tolerances):
    for x, y in zip(fad.tree.leaves(a), fad.tree.leaves(b), strict=True):
        np.testing.assert_allclose(x, y, **tolerances)


@pytest.mark.parametrize("size", [1, 2, 3, 4])
@pytest.mark.parametrize("options", [{}, {"bucket_bytes": 100}, {"parts": 2}], ids=["one", "many", "parts"])
def test_value_and_gradient_of_the_mean_are_those_of_the_joined_batch(size, options):
    def run(comm):
        f = D.value_and_grad(loss, comm, **options)
        j = fad.jit(f)
        mine = part(comm, *batch(24))
        return [f(small(), *mine), *[j(small(), *mine) for _ in range(2)]]

    expected = fad.value_and_grad(loss)(small(), *batch(24))
    for found in on_ranks(run, size):
        for pair in found:
            assert_same(pair, expected, rtol=1e-10, atol=1e-14)


def test_parameters_that_the_loss_does_not_use_have_gradient_zero():
    def run(comm):
        f = D.value_and_grad(lambda p, x: np.sum(p["a"] * x) if comm.rank == 0 else np.sum(x) * p["b"], comm)
        return f({"a": np.ones(2), "b": 1.0, "c": np.ones(3)}, np.ones(2))

    for _, g in on_ranks(run):
        assert_same(g, {"a": np.ones(2) / 2, "b": 1.0, "c": np.zeros(3)})


def test_the_gradient_of_an_array_of_no_axes_is_an_array_as_on_one_rank():
    def run(comm):
        p = {"a": np.array(2.0), "b": 3.0, "c": np.float32(4.0)}
        return D.value_and_grad(lambda p, x: p["a"] * p["b"] * p["c"] * np.sum(x), comm)(p, np.ones(2))[1]

    plain = {"a": np.ndarray, "b": np.float64, "c": np.float32}
    for g in on_ranks(run):
        assert {k: type(v) for k, v in g.items()} == plain


def test_auxiliary_output_is_each_ranks_own():
    def run(comm):
        f = D.value_and_grad(lambda w, x: (np.sum(w * x), {"x": x * w, "rank": comm.rank}), comm, has_aux=True)
        (_, aux), _ = f(2.0, np.ones(1) + comm.rank)
        return aux

    first, second = on_ranks(run)
    assert (first["x"], second["x"]) == (2.0, 4.0)
    assert second["rank"] == 1


@pytest.mark.parametrize("size", [2, 3, 4])
def test_a_deterministic_reduction_gives_the_bits_of_one_rank_in_as_many_parts(size):
    def run(comm):
        f = D.value_and_grad(loss, comm, parts=size // comm.size, bucket_bytes=300)
        model = small(dtype="float32")
        opt = optim.Adam(model, lr=0.01)
        x, y = batch()
        values = []
        for _ in range(5):
            value, grads = f(model, *part(comm, x.astype("float32"), y))
            opt.step(grads)
            values.append(value)
        return values, fad.tree.leaves(model)

    (one,) = on_ranks(run, 1, deterministic=True)
    for found in on_ranks(run, size, deterministic=True):
        for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(one), strict=True):
            assert a.tobytes() == b.tobytes()


def test_training_the_digits_on_two_ranks_is_training_on_one():
    digits = example("digits")

    def train(comm, steps=30):
        (images, labels), _ = digits.load()
        with nn.seed(0):
            model = nn.Sequential(nn.Linear(64, 32), nn.ReLU(), nn.Linear(32, 10))
        opt = optim.Adam(model, lr=5e-3)
        losses = []
        while len(losses) < steps:
            entries = (images.astype(float), labels)
            for x, y in data.batches(entries, 64, key=1, drop_last=True, rank=comm.rank, size=comm.size):
                value, grads = D.value_and_grad(digits.loss, comm)(model, x, y)
                opt.step(grads)
                losses.append(value)
        return losses[:steps]

    alone = on_ranks(train, 1)[0]
    for losses in on_ranks(train, 2):
        np.testing.assert_allclose(losses, alone, rtol=1e-9)
    assert alone[-1] < 0.7 * alone[0]


def test_training_the_transformer_on_two_ranks_is_training_on_one():
    source = example("transformer")

    def train(comm, steps=3):
        with nn.seed(0), fad.config.use(default_dtype="float64"):
            model = source.Transformer(len(source.LETTERS), 16, 16).eval()  # dropout would differ by rank
        opt = optim.AdamW(model, lr=3e-3)
        losses = []
        for step in range(steps):
            starts = fad.random.randint(fad.random.fold_in(fad.random.key(0), step), (4,), 0, 1000)
            (mine,) = part(comm, source.windows(source.CODES, starts, 16))
            value, grads = D.value_and_grad(source.loss, comm)(model, mine)
            opt.step(grads)
            losses.append(value)
        return losses, fad.tree.leaves(model)

    alone = on_ranks(train, 1)[0]
    for found in on_ranks(train, 2):
        assert_same(found, alone, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("reduced", [True, False])
@pytest.mark.parametrize("make", [
    lambda m: optim.SGD(m, lr=0.1, momentum=0.9), lambda m: optim.Adam(m, lr=0.01, amsgrad=True),
    lambda m: optim.AdamW(m, lr=0.01, weight_decay=0.1), lambda m: optim.Lion(m, lr=0.01),
])  # fmt: skip
def test_a_sharded_optimiser_takes_the_steps_of_the_whole_one(make, reduced):
    def train(comm, sharded):
        model = small()
        opt = make(model)
        opt = optim.sharded(opt, comm, reduced=reduced) if sharded else opt
        for step in range(4):
            f = D.value_and_grad(loss, comm, reduce=reduced or not sharded)
            _, grads = f(model, *part(comm, *batch(seed=step)))
            opt.step(grads)
        return fad.tree.leaves(model), opt.state_dict()

    alone, state = on_ranks(lambda comm: train(comm, False), 1)[0]
    for found, whole in on_ranks(lambda comm: train(comm, True), 3):
        assert_same(found, alone, rtol=1e-9, atol=1e-12)
        assert int(whole["steps"]) == 4
        assert_same(whole["slots"], state["slots"], rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("size", [2, 3, 4])
def test_each_rank_keeps_its_part_of_the_state(size):
    def run(comm):
        with nn.seed(0):
            model = nn.Sequential(nn.Linear(30, 40), nn.Linear(40, 7))
        whole = optim.Adam(model)
        n = sum(s.nbytes for g in whole._groups for s in g.slots)
        return optim.sharded(whole, comm).nbytes() / n

    assert max(on_ranks(run, size)) <= 1.05 / size


def test_batch_normalisation_over_ranks_is_that_of_the_joined_batch():
    def make(kind):
        with nn.seed(0):
            return nn.Sequential(nn.Linear(8, 6), kind(6), nn.Tanh(), nn.Linear(6, 4))

    def run(comm):
        model = make(nn.SyncBatchNorm)
        f = D.value_and_grad(loss, comm)
        out = [f(model, *part(comm, *batch(seed=s))) for s in range(2)]
        jitted, again = fad.jit(f), make(nn.SyncBatchNorm)
        out += [jitted(again, *part(comm, *batch(seed=s))) for s in range(2)]
        return out, model[1].running_mean, model[1].running_var, again[1].running_var

    one = make(nn.BatchNorm1d)
    expected = [fad.value_and_grad(loss)(one, *batch(seed=s)) for s in range(2)]
    for out, mean, var, again in on_ranks(run, 2):
        for (value, g), (v, e) in zip(out, expected * 2, strict=True):
            np.testing.assert_allclose(value, v, rtol=1e-10)
            assert_same(fad.tree.leaves(g), fad.tree.leaves(e), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(mean, one[1].running_mean, rtol=1e-10)
        np.testing.assert_allclose(var, one[1].running_var, rtol=1e-10)
        np.testing.assert_allclose(again, one[1].running_var, rtol=1e-10)


@pytest.mark.parametrize("key", [None, 3])
def test_the_batches_of_all_ranks_make_up_those_of_one(key, tmp_path):
    x = np.arange(50.0).reshape(25, 2)
    file = np.memmap(tmp_path / "x.bin", "float64", "w+", shape=x.shape)
    file[...] = x
    for source in (x, file):
        ranks = [data.batches((source, x), 8, key=key, rank=r, size=4) for r in range(4)]
        for _ in range(2):
            whole = list(data.batches((x, x), 8, key=key)) if key is None else None
            for i, parts in enumerate(zip(*ranks, strict=True)):
                assert all(type(p[0]) is np.ndarray for p in parts)
                joined = np.concatenate([p[0] for p in parts])
                assert np.array_equal(joined, np.concatenate([p[1] for p in parts]))
                assert len({len(p[0]) for p in parts}) == 1
                if whole is not None:
                    assert np.array_equal(joined, whole[i][0][: len(joined)])
    with pytest.raises(ValueError, match="equal parts"):
        data.batches(x, 7, rank=0, size=2)


class Stored:
    """An array in a file, read by slices and by indices that grow, as h5py's are; zarr's have no length either."""

    def __init__(self, x):
        self.x, self.shape, self.dtype = x, x.shape, x.dtype

    def __getitem__(self, where):
        assert type(where) is slice or np.all(np.diff(where) > 0)
        return self.x[where]


def test_batches_of_arrays_in_files_are_read_in_their_order():
    x = np.arange(40.0).reshape(20, 2)
    for key in (None, 5):
        found = list(data.batches((Stored(x), x), 8, key=key, rank=1, size=2))
        assert len(found) == 3
        for a, b in found:
            assert np.array_equal(a, b)


def test_batches_of_zarr_arrays_are_read_in_their_order(tmp_path):
    zarr = pytest.importorskip("zarr", reason="zarr is not installed")
    x = np.arange(40.0).reshape(20, 2)
    stored = zarr.open(str(tmp_path / "x"), mode="w", shape=x.shape, dtype=x.dtype, chunks=(3, 2))
    stored[...] = x
    for key in (None, 5):
        for a, b in data.batches((stored, x), 8, key=key, rank=1, size=2):
            assert type(a) is np.ndarray
            assert np.array_equal(a, b)


def test_check_says_which_argument_is_wrong():
    def run(comm):
        w, x = np.array([0.5, 2.0]), np.arange(8.0).reshape(4, 2)
        D.check(lambda w, x: D.all_reduce(np.sum(np.sin(w * x))), w, x, comm=comm)
        D.check(lambda w, x: D.all_reduce(np.mean(np.sin(w * x)), "mean"), w, x, comm=comm)
        with pytest.raises(fad.errors.GradientCheckError, match="the value is"):
            D.check(lambda w, x: D.all_reduce(np.mean(np.sin(w * x))), w, x, comm=comm)
        stopped = lambda w, x: D.all_reduce(np.sum(w * x) if comm.rank == 0 else np.sum(fad.stop_gradient(w) * x))
        with pytest.raises(fad.errors.GradientCheckError, match="the gradient by argument 0"):
            D.check(stopped, w, x, comm=comm)

    on_ranks(run, 2)


def test_gradients_are_sent_while_the_backward_pass_runs_as_a_trace_shows():
    def run(comm):
        with nn.seed(0):
            model = nn.Sequential(*[nn.Linear(16, 16) for _ in range(4)])
        x = np.ones((4, 16))
        with fad.profiler.profile() as seen:
            D.value_and_grad(lambda m, x: np.mean(m(x) ** 2), comm, bucket_bytes=2000)(model, x)
        return [(e.name, e.kind, e.start, e.end) for e in seen.events]

    for events in on_ranks(run):
        starts = [e[2] for e in events if e[0] == "distributed.start_all_reduce"]
        waits = [e[2] for e in events if e[0] == "distributed.wait_all_reduce"]
        backward = [e[2] for e in events if e[1] == "backward"]
        assert len(starts) == len(waits) >= 3  # the last bucket is reduced at once
        assert sum(start < max(backward) for start in starts) >= 3
        assert min(waits) > max(starts)


def test_losses_with_checkpoints_jit_and_collectives_inside_have_the_serial_derivatives():
    def make(kind):
        with nn.seed(0):
            return nn.Sequential(nn.Linear(8, 6), kind(6), nn.Tanh(), nn.Linear(6, 4))

    def relieved(model, x, y):
        return F.cross_entropy(fad.checkpoint(lambda m, x: m(x))(model, x), y)

    def run(comm):
        mine = part(comm, *batch())
        losses = (loss, relieved, fad.jit(loss))
        found = [D.value_and_grad(f, comm)(make(nn.SyncBatchNorm), *mine)[1] for f in losses]
        found.append(fad.jit(D.value_and_grad(relieved, comm))(make(nn.SyncBatchNorm), *mine)[1])
        model = make(nn.SyncBatchNorm)
        bent = fad.jvp(lambda m: D.value_and_grad(loss, comm)(m, *mine)[1], (model,), (model,))[1]
        plain = make(lambda n: nn.Identity())
        local = [D.value_and_grad(f, comm, bucket_bytes=50)(plain, *mine)[1] for f in (relieved, fad.jit(loss))]
        norm = D.spmd(lambda m: fad.tree.norm(D.value_and_grad(loss, comm)(m, *mine)[1]), comm, replicated=0)
        return found, bent, local, norm(plain)

    expected = fad.grad(loss)(make(nn.BatchNorm1d), *batch())
    model = make(nn.BatchNorm1d)
    bent = fad.jvp(lambda m: fad.grad(loss)(m, *batch()), (model,), (model,))[1]
    plain = fad.grad(loss)(make(lambda n: nn.Identity()), *batch())
    for found, bent_here, local, norm in on_ranks(run, 2):
        for g in found:
            assert_same(fad.tree.leaves(g), fad.tree.leaves(expected), rtol=1e-9, atol=1e-13)
        for g in local:
            assert_same(fad.tree.leaves(g), fad.tree.leaves(plain), rtol=1e-9, atol=1e-13)
        assert_same(fad.tree.leaves(bent_here), fad.tree.leaves(bent), rtol=1e-8, atol=1e-12)
        np.testing.assert_allclose(norm, fad.tree.norm(plain))


def test_an_optimiser_of_whole_vectors_is_not_sharded():
    with pytest.raises(UnsupportedInputError, match="LBFGS takes products of whole vectors"):
        optim.sharded(optim.LBFGS(np.ones(3)))


@pytest.mark.parametrize("size", [1, 2, 3])
@pytest.mark.parametrize("bucket_bytes", [1, 1 << 20])
@pytest.mark.parametrize("with_collective", [False, True])
def test_a_gradient_over_ranks_is_a_batch_on_all_ranks_if_it_is_one_on_any(size, bucket_bytes, with_collective):
    x = np.linspace(0.1, 1.0, 6)

    def run(comm):
        n, rank = comm.size, int(comm.rank)

        def of_rank(r, p, xs):
            return np.sum(p["a"] * p["b"] * xs[0]) if r == 0 else np.sum(p["a"] ** 2 * xs[r])

        def factor(p, xs):
            return np.sum(p["b"]) + (n - 1) * np.sum(xs)

        def loss(p, xs):
            y = of_rank(rank, p, xs)
            return y * comm.all_reduce(np.sum(p["b"]) if rank == 0 else np.sum(xs)) if with_collective else y

        def serial(p, xs):
            y = sum(of_rank(r, p, xs) for r in range(n)) / n
            return y * factor(p, xs) if with_collective else y

        def close(found, expected):
            for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(expected), strict=True):
                np.testing.assert_allclose(a, b, rtol=1e-9)

        xs = np.linspace(0.5, 1.0, n)
        one, rows = {"a": x, "b": x + 1.0}, {"a": np.stack([x, 2 * x]), "b": np.stack([x + 1.0, x * x])}
        g, s = D.value_and_grad(loss, comm, bucket_bytes=bucket_bytes), fad.value_and_grad(serial)
        for axes in ({"a": 0, "b": None}, {"a": None, "b": 0}, {"a": 0, "b": 0}):
            p = {k: one[k] if axes[k] is None else rows[k] for k in one}
            close(fad.vmap(g, (axes, None))(p, xs), fad.vmap(s, (axes, None))(p, xs))
        close(fad.vmap(g, (None, 0))(one, np.stack([xs, 2 * xs])), fad.vmap(s, (None, 0))(one, np.stack([xs, 2 * xs])))
        f = D.spmd(lambda p, xs: g(p, xs)[1]["a"], comm, replicated=0)
        for jacobian in (fad.jacfwd, fad.jacrev):
            close(jacobian(f)(one, xs), jacobian(lambda p, xs: s(p, xs)[1]["a"])(one, xs))

    D.run_ranks(run, size, timeout=60)


@pytest.mark.parametrize("with_collective", [False, True])
def test_a_compiled_gradient_over_ranks_is_recorded_once(with_collective):
    comm = D.init()

    def loss(w, x):
        y = np.mean((x @ w) ** 2)
        return y + comm.all_reduce(np.sum(w)) if with_collective else y

    for f in (D.value_and_grad(loss, comm), D.grad(lambda w, x: comm.all_reduce(loss(w, x), "mean"), comm)):
        step, w = fad.jit(f), np.ones(3)
        for k in range(20):
            step(w + k, np.ones((4, 3)))
        assert step.cache_info().hits == 19
        assert step.cache_info().misses == 1
