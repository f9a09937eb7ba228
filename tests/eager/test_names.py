"""Names of the eager API: what is there computes what it says, and what is not there says what to write instead."""

import numpy as np
import pytest

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
    "torch.bfloat16": "NumPy has no bfloat16",
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
