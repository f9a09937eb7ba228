"""Names of the eager API: what is there computes what it says, and what is not there says what to write instead."""

import numpy as np
import pytest

import fad
import fad.eager as torch

rng = np.random.default_rng(0)
A, INDEX = rng.normal(size=(4, 3)), np.array([[0, 2, 1], [2, 2, 0], [0, 0, 0], [3, 0, 1], [0, 2, 1]])


@pytest.mark.parametrize("include_self", [True, False])
@pytest.mark.parametrize("reduce", ["sum", "mean", "prod", "amax", "amin"])
def test_scatter_reduce_is_a_loop_over_the_elements_and_differentiable(reduce, include_self):
    src = rng.normal(size=INDEX.shape)
    lists = [[[A[i, j]] if include_self else [] for j in range(3)] for i in range(4)]
    for (k, j), i in np.ndenumerate(INDEX):
        lists[i][j].append(src[k, j])
    how = {"sum": np.sum, "mean": np.mean, "prod": np.prod, "amax": np.max, "amin": np.min}[reduce]
    expected = [[how(v) if v else A[i, j] for j, v in enumerate(row)] for i, row in enumerate(lists)]
    run = lambda x, v: torch.scatter_reduce(x, 0, torch.tensor(INDEX), v, reduce, include_self=include_self)
    x, v = (torch.tensor(a, requires_grad=True) for a in (A, src))
    np.testing.assert_allclose(run(x, v).detach().numpy(), expected, rtol=1e-12)
    assert torch.autograd.gradcheck(run, (x, v))
    assert torch.autograd.gradgradcheck(run, (x, v))


def test_equal_greatest_elements_share_the_derivative_of_scatter_reduce():
    x, v = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    torch.scatter_reduce(x, 0, torch.tensor([0, 0, 1]), v, "amax")[0].backward()
    np.testing.assert_allclose(x.grad.numpy(), [1 / 3, 0])
    np.testing.assert_allclose(v.grad.numpy(), [1 / 3, 1 / 3, 0])
    with pytest.raises(ValueError, match="reduce must be"):
        torch.scatter_reduce(x, 0, torch.tensor([0]), v, "median")


def test_the_kth_smallest_is_that_of_the_sorted_row_and_its_derivative_a_single_one():
    x = torch.tensor(A, requires_grad=True)
    values, indices = torch.kthvalue(x, 2, dim=1)
    np.testing.assert_array_equal(values.detach().numpy(), np.sort(A, 1)[:, 1])
    np.testing.assert_array_equal(indices.numpy(), np.argsort(A, 1)[:, 1])
    values.sum().backward()
    assert x.grad.sum(1).tolist() == [1.0] * 4
    assert x.grad.gather(1, indices.unsqueeze(1)).sum().item() == 4.0
    with pytest.raises(ValueError, match="k must lie in 1"):
        torch.kthvalue(x, 4, dim=1)


SMOOTH = {
    "logcumsumexp": lambda x: torch.logcumsumexp(x, 0),
    "cummax": lambda x: torch.cummax(x, 0).values + x.cummin(1)[0],
    "index_put": lambda x: x.index_put((torch.tensor([0, 0]),), x[2:] ** 2, accumulate=True),
    "masked_scatter": lambda x: x.masked_scatter(x > 0, x**2),
    "unfold": lambda x: x.unfold(0, 2, 1) ** 2,
    "matrix_exp": lambda x: torch.matrix_exp(x[:3] * 0.3),
    "triangular": lambda x: torch.linalg.solve_triangular(x[:3].tril() + 3 * torch.eye(3).double(), x.T, upper=False),
    "lstsq": lambda x: torch.linalg.lstsq(x, x[:, :1] ** 2).solution,
    "norms": lambda x: torch.linalg.vector_norm(x, 3, dim=(0, 1)) + torch.linalg.matrix_norm(x),
    "blocks": lambda x: torch.block_diag(x, x**2) @ torch.cartesian_prod(x[0], x[1])[:6],
    "covariance": lambda x: torch.cov(x) + torch.corrcoef(x),
    "vander": lambda x: torch.vander(x[0]) + torch.vander(x[1], increasing=True),
    "in place": lambda x: (x * 1).addcmul_(x, x, value=0.5).lerp_(x**3, 0.3).cumsum_(0),
}


@pytest.mark.parametrize("name", SMOOTH)
def test_derivatives_of_both_orders_are_numerical_ones(name):
    x = torch.tensor(A, requires_grad=True)
    assert torch.autograd.gradcheck(SMOOTH[name], (x,))
    assert torch.autograd.gradgradcheck(SMOOTH[name], (x,))


def test_words_of_numpy_are_words_of_the_api():
    x = torch.tensor(A)
    np.testing.assert_allclose(x.sum(axis=1, keepdims=True).numpy(), A.sum(1, keepdims=True))
    np.testing.assert_array_equal(torch.cat([x, x], axis=1).argmax(axis=0).numpy(), np.tile(A.argmax(0), 2))
    np.testing.assert_array_equal(torch.max(x, axis=0).indices.numpy(), A.argmax(0))


def test_a_leaf_cannot_get_another_shape_in_place():
    x = torch.ones(2, requires_grad=True)
    with pytest.raises(torch.InPlaceError, match=r"y = x.unsqueeze"):
        x.unsqueeze_(0)
    assert torch.ones(2).unsqueeze_(0).shape == (1, 2)


INSTEAD = {
    "torch.sparse_coo_tensor": "no sparse tensors",
    "torch.stft": "fad.scipy.signal",
    "torch.simgoid": "did you mean sigmoid",
    "torch.nn.MaxUnpool1d": "nn.MaxUnpool2d",
    "torch.nn.DataParallel": "use the module itself",
    "torch.nn.functional.upsample": "F.interpolate",
    "torch.optim.Muon": "AdamW",
    "torch.optim.lr_scheduler.StepLRs": "did you mean StepLR",
    "torch.distributions.Wishart": "docs/pytorch.md",
    "torch.ones(2).cuda": "CuPy",
    "torch.ones(2).to_sparse": "no sparse tensors",
}


@pytest.mark.parametrize("written", INSTEAD)
def test_a_name_that_is_not_there_says_what_to_write_instead(written):
    with pytest.raises(AttributeError, match=INSTEAD[written]):
        eval(written)


def test_a_running_extreme_stays_nan_from_the_first_nan_on():
    for extreme in (torch.cummax, torch.cummin):
        values, places = extreme(torch.tensor([1.0, float("nan"), 0.5, 2.0]), 0)
        np.testing.assert_array_equal(values.numpy(), [1.0, np.nan, np.nan, np.nan])
        np.testing.assert_array_equal(places.numpy(), [0, 1, 1, 1])


def test_a_program_that_looks_for_a_device_finds_the_host_and_may_write_its_settings():
    device = torch.accelerator.current_accelerator().type if torch.accelerator.is_available() else "cpu"
    assert device == ("cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu")
    torch.cuda.manual_seed_all(0)
    torch.backends.cudnn.benchmark = False
    assert torch.accelerator.current_accelerator() is None
    assert torch.__version__ == fad.__version__
    assert torch.ones(1, device=device).device.type == "cpu"


@pytest.mark.parametrize(
    "draw",
    [
        lambda g: torch.rand(3, generator=g), lambda g: torch.randn(3, generator=g),
        lambda g: torch.randint(9, (3,), generator=g), lambda g: torch.randperm(9, generator=g),
        lambda g: torch.normal(0.0, 1.0, (3,), generator=g), lambda g: torch.multinomial(torch.ones(9), 3, generator=g),
        lambda g: torch.bernoulli(torch.full((99,), 0.5), generator=g), lambda g: torch.zeros(3).normal_(generator=g),
        lambda g: torch.zeros(3).uniform_(generator=g),
        lambda g: torch.cat(list(torch.utils.data.DataLoader(torch.arange(9), 2, shuffle=True, generator=g))),
        lambda g: torch.tensor(torch.utils.data.random_split(range(9), [5, 4], generator=g)[0].indices),
    ],
)  # fmt: skip
def test_a_generator_is_a_stream_of_its_own(draw):
    torch.manual_seed(0)
    first = torch.rand(2)
    g = torch.Generator().manual_seed(3)
    x, y = draw(g), draw(g)
    assert g.initial_seed() == 3
    assert torch.equal(draw(g.manual_seed(3)), x)
    assert not torch.equal(x, y)
    torch.manual_seed(0)
    draw(g)
    assert torch.equal(torch.rand(2), first)


def test_types_of_tensors_tell_them_apart_and_have_names():
    x = torch.tensor([1.5, 2.5])
    assert isinstance(x, torch.FloatTensor)
    assert not isinstance(x, (torch.DoubleTensor, torch.LongTensor))
    assert x.type(torch.LongTensor).tolist() == [1, 2]
    for dtype in (torch.uint8, torch.int8, torch.int16, torch.float16, torch.bool, torch.complex64):
        y = x.type(dtype)
        assert x.type(y.type()).dtype == y.dtype == dtype
    assert x.type(torch.uint8).type() == "torch.ByteTensor"


@pytest.mark.parametrize("kind", [float, int, bool])
def test_a_loader_stacks_numbers_in_pythons_precision(kind):
    (batch,) = torch.utils.data.DataLoader([{"y": kind(1)}, {"y": kind(0)}], batch_size=2)
    assert batch["y"].dtype == np.dtype(kind)  # float64 for a float, as in PyTorch


def test_data_sets_are_joined_and_samplers_give_the_order():
    data = torch.utils.data
    joined = data.ConcatDataset([range(3), [], range(10, 12)])
    assert [joined[i] for i in range(len(joined))] == [0, 1, 2, 10, 11]
    assert joined[-1] == 11
    with pytest.raises(IndexError):
        joined[5]
    loader = data.DataLoader(joined, batch_size=2, sampler=[4, 0, 1])
    assert len(loader) == 2
    assert [x.tolist() for x in loader] == [[11, 0], [1]]
    with pytest.raises(ValueError, match="leave shuffle out"):
        data.DataLoader(joined, sampler=[0], shuffle=True)


@pytest.mark.parametrize("create_graph", [False, True])
def test_a_batch_of_vectors_gives_the_rows_of_a_jacobian(create_graph):
    x, z = torch.tensor([1.0, 2.0, 3.0], requires_grad=True), torch.ones(2, requires_grad=True)
    y = x**2
    rows, none = torch.autograd.grad(
        y, (x, z), torch.eye(3), is_grads_batched=True, allow_unused=True, create_graph=create_graph
    )
    assert torch.equal(rows, torch.diag(2 * x))
    assert none is None
    if create_graph:
        assert torch.equal(torch.autograd.grad(rows.sum(), x)[0], torch.full((3,), 2.0))
    else:
        with pytest.raises(torch.BackwardError):
            torch.autograd.grad(y, x, torch.ones(3))


@pytest.mark.parametrize(
    ("look", "instead"),
    [
        (lambda: torch.autograd.forward_ad, r"torch\.func\.jvp"),
        (lambda: torch.autograd.graph.saved_tensors_hooks, "checkpoint"),
        (lambda: torch.optim.swa_utils, "lerp_"),
        (lambda: torch.set_num_threads(1), "FAD_NUM_THREADS"),
        (lambda: torch.utils.tensorboard, "tensorboardX"),
        (lambda: torch.utils.data.DistributedSampler, r"fad\.data\.batches"),
        (lambda: torch.ones(2)._version, "by its value"),
    ],
)
def test_modules_of_modules_say_what_to_write_instead(look, instead):
    with pytest.raises(AttributeError, match=instead):
        look()


def test_the_device_of_a_tensor_is_a_device():
    host = torch.device("cpu")
    x = torch.ones(2, device=host)
    assert x.device == host == torch.device(host)
    assert (x.device.type, str(x.device), x.device.index) == ("cpu", "cpu", None)
    assert x.device != "cuda"
    assert {x.device: 1}[host] == 1
    assert x.to(x.device).device == torch.zeros(1, device=x.device).device
