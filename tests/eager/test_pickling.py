"""Tensors, modules and optimisers that are copied or pickled in the middle of training go on as they were."""

import copy
import pickle

import numpy as np
import pytest

import fad.eager as torch


@pytest.mark.parametrize("how", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_a_module_and_its_optimiser_are_copied_and_pickled_in_the_middle_of_training(how):
    def step(model, optimizer):
        optimizer.zero_grad()
        (model(torch.ones(3, 2)) ** 2).sum().backward()
        optimizer.step()

    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3), torch.nn.Linear(3, 1))
    model[0].bias.requires_grad_(False)
    optimizer = torch.optim.Adam([p for p in model.parameters() if p.requires_grad], lr=0.1)
    step(model, optimizer)
    other, its_optimizer = how((model, optimizer))
    step(model, optimizer)
    step(other, its_optimizer)
    assert not other[0].bias.requires_grad
    for p, q in zip(model.parameters(), other.parameters(), strict=True):
        assert type(q) is torch.nn.Parameter
        np.testing.assert_array_equal(p.detach().numpy(), q.detach().numpy())


def test_a_computed_tensor_is_pickled_only_without_its_history():
    y = torch.tensor([2.0], requires_grad=True) * 3
    with pytest.raises(torch.BackwardError, match=r"y\.detach\(\)"):
        pickle.dumps(y)
    assert pickle.loads(pickle.dumps(y.detach())).item() == 6.0
    assert copy.copy(y).grad_fn is y.grad_fn


@pytest.mark.parametrize("name", [name for name in torch.optim.__all__ if name not in ("Optimizer", "lr_scheduler")])
def test_every_optimiser_is_pickled(name):
    x = torch.tensor([1.0], requires_grad=True)
    optimizer = getattr(torch.optim, name)([x], lr=0.25)
    again = pickle.loads(pickle.dumps(optimizer))
    assert type(again) is getattr(torch.optim, name)
    assert again.param_groups[0]["lr"] == 0.25
