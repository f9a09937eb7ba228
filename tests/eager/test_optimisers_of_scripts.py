"""Optimisers of the eager API: those that programs write themselves, groups and settings, also beside PyTorch."""

import numpy as np
import pytest

import fad.eager

api = fad.eager


def momentum(torch):
    """Return an optimiser as a notebook writes one."""

    class Momentum(torch.optim.Optimizer):
        def __init__(self, params, lr=0.1, beta=0.9):
            super().__init__(params, dict(lr=lr, beta=beta))

        @torch.no_grad()
        def step(self, closure=None):
            for group in self.param_groups:
                for p in group["params"]:
                    if p.grad is None:
                        continue
                    state = self.state[p]
                    if len(state) == 0:
                        state["velocity"] = torch.zeros_like(p)
                    state["velocity"].mul_(group["beta"]).add_(p.grad)
                    p.add_(state["velocity"], alpha=-group["lr"])

    return Momentum


def path(torch, make, steps=8, resume_at=None):
    xs = [torch.tensor([1.0, -2.0], requires_grad=True), torch.tensor([0.5], requires_grad=True)]
    opt, found = make(torch, xs), []
    for i in range(steps):
        if i == resume_at:
            state, opt = opt.state_dict(), make(torch, xs)
            opt.load_state_dict(state)
        opt.zero_grad()
        sum((x**4).sum() for x in xs).backward()
        opt.step()
        found.append([v for x in xs for v in x.detach().tolist()])
    return found


def test_an_optimiser_of_ones_own_is_the_built_in_one_of_the_same_rule():
    own = path(api, lambda torch, xs: momentum(torch)(xs, lr=0.02))
    np.testing.assert_allclose(own, path(api, lambda torch, xs: torch.optim.SGD(xs, 0.02, 0.9)), rtol=1e-6)


def test_an_optimiser_of_ones_own_resumes_where_it_stopped():
    make = lambda torch, xs: momentum(torch)([{"params": xs[:1]}, {"params": xs[1:], "lr": 0.01}], lr=0.02)
    assert path(api, make, resume_at=4) == path(api, make)


def test_a_group_added_later_is_stepped_on_with_its_own_settings():
    x, y = (api.tensor([2.0], requires_grad=True) for _ in range(2))
    opt = api.optim.SGD([x], lr=0.1)
    (x + y).backward()
    opt.step()
    opt.add_param_group({"params": y, "lr": 1.0, "name": "head"})
    opt.step()
    np.testing.assert_allclose([x.item(), y.item()], [1.8, 1.0], rtol=1e-6)
    assert opt.param_groups[1]["name"] == "head"
    with pytest.raises(ValueError, match="in two groups"):
        opt.add_param_group({"params": [x]})


def test_a_setting_that_an_optimiser_does_not_have_is_refused_when_it_is_made():
    x = api.ones(2, requires_grad=True)
    with pytest.raises(TypeError, match=r"Adam has no setting \['momentum'\]"):
        api.optim.Adam([x], lr=0.1, momentum=0.9)
    with pytest.raises(ValueError, match="betas"):
        api.optim.Adam([x], betas=(0.9, 1.0))
    with pytest.raises(NotImplementedError, match="does not define step"):
        api.optim.Optimizer([x], {}).step()
    with pytest.raises(TypeError, match="made for an optimiser"):
        api.optim.lr_scheduler.StepLR(x, 1)


RULES = {
    "Adadelta": {"eps": 1e-3, "weight_decay": 0.01},
    "Adamax": {"lr": 0.05},
    "ASGD": {"lr": 0.02, "lambd": 0.1},
    "NAdam": {"lr": 0.05, "decoupled_weight_decay": True, "weight_decay": 0.1},
    "RAdam": {"lr": 0.05, "foreach": False},
    "Rprop": {"lr": 0.02},
    "Adam": {"lr": 0.05, "fused": False},
}


@pytest.mark.parametrize("name", RULES)
def test_a_loaded_state_goes_on_as_if_nothing_had_happened(name):
    make = lambda torch, xs: getattr(torch.optim, name)(xs, **RULES[name])
    np.testing.assert_allclose(path(api, make, resume_at=4), path(api, make), rtol=0)


@pytest.mark.parametrize("name", [*RULES, "own"])
def test_each_follows_torch(name):
    torch = pytest.importorskip("torch")
    if name == "own":
        make = lambda torch, xs: momentum(torch)([{"params": xs[:1]}, {"params": xs[1:], "lr": 0.01}], lr=0.02)
    else:
        make = lambda torch, xs: getattr(torch.optim, name)(xs, **RULES[name])
    np.testing.assert_allclose(path(api, make), path(torch, make), rtol=2e-5, atol=1e-6)
