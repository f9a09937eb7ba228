"""PyTorch's promotion of dtypes, which holds inside transforms as well: a tensor of no axis does not widen an array."""

import numpy as np
import pytest

import fad.eager as torch


@pytest.mark.parametrize("f", [lambda x, n: x * n, lambda x, n: n - x, lambda x, n: x / n, lambda x, n: n**x])
def test_a_number_does_not_widen_an_array_inside_a_transform(f):
    x, n = torch.tensor(np.ones(3, np.float32)), torch.tensor(np.float64(2.0))
    assert f(x, n).dtype == torch.float32
    assert torch.vmap(lambda n: f(x, n))(torch.tensor(np.arange(1.0, 4.0))).dtype == torch.float32
    assert torch.vmap(lambda x: f(x, n))(torch.stack([x, x])).dtype == torch.float32
    assert [y.dtype for y in torch.func.jvp(lambda n: f(x, n), (n,), (n,))] == [torch.float32, torch.float32]
    assert torch.func.grad(lambda n: f(x, n).sum())(n).dtype == torch.float64


def test_where_has_the_dtype_of_other_operations():
    x, n = torch.tensor(np.ones(3, np.float32)), torch.tensor(np.float64(2.0))
    assert torch.where(x > 0, x, n).dtype == torch.where(x > 0, x, 2.0).dtype == torch.float32
    assert torch.vmap(lambda x: torch.where(x > 0, x, n))(torch.stack([x, x])).dtype == torch.float32
