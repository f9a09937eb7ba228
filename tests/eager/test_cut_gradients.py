"""What PyTorch cuts from a derivative is cut inside transforms: `detach`, `.data`, `no_grad`, numbers and copies."""

import numpy as np
import pytest

import fad
import fad.eager as torch
from fad.eager.func import grad, hessian, jacfwd, jacrev, jvp, vjp, vmap
from fad.errors import BatchedValueError, TracerConversionError

X = [1.0, 2.0]


def under_no_grad(x):
    with torch.no_grad():
        return 2 * x


def under_set_grad_enabled(x):
    with torch.set_grad_enabled(False):
        return 2 * x


def under_a_decorator(x):
    return torch.no_grad()(lambda: 2 * x)()


def recorded_again(x):
    with torch.no_grad(), torch.enable_grad():
        return 2 * x


CUT = {
    "detach": lambda x: 2 * x.detach(),
    "data": lambda x: (2 * x).data,
    "detach_": lambda x: (2 * x).detach_(),
    "tensor": lambda x: torch.tensor(2 * x),
    "tensor of elements": lambda x: torch.tensor([2 * x[0], 2 * x[1]]),
    "new_tensor": lambda x: x.new_tensor(2 * x),
    "tolist": lambda x: torch.tensor((2 * x).tolist()),
    "item": lambda x: torch.tensor([2 * x[0].item(), 2 * float(x[1])]),
}
HIDDEN_BY_MODE = {
    "no_grad": under_no_grad,
    "set_grad_enabled": under_set_grad_enabled,
    "decorator": under_a_decorator,
}
REVERSE = {
    "grad": lambda f, x: grad(lambda x: f(x).sum())(x).tolist(),
    "vjp": lambda f, x: vjp(f, x)[1](torch.ones(2))[0].tolist(),
    "jacrev": lambda f, x: jacrev(f)(x).sum(0).tolist(),
    "grad of vmap": lambda f, x: grad(lambda x: vmap(f)(torch.stack([x, 0 * x])).sum())(x).tolist(),
    "autograd.functional.vjp": lambda f, x: torch.autograd.functional.vjp(f, x, torch.ones(2))[1].tolist(),
    "autograd.functional.jvp": lambda f, x: torch.autograd.functional.jvp(f, x, torch.ones(2))[1].tolist(),
}
FORWARD = {
    "jvp": lambda f, x: jvp(f, (x,), (torch.ones(2),))[1].tolist(),
    "jacfwd": lambda f, x: jacfwd(f)(x).sum(0).tolist(),
}


@pytest.mark.parametrize("way", CUT)
@pytest.mark.parametrize("transform", [*(name for name in REVERSE if name != "grad of vmap"), *FORWARD])
def test_a_cut_factor_is_a_constant(transform, way):
    found = (REVERSE | FORWARD)[transform](lambda x: x * CUT[way](x), torch.tensor(X))
    assert found == [2.0, 4.0]


@pytest.mark.parametrize("way", HIDDEN_BY_MODE)
@pytest.mark.parametrize("transform", REVERSE)
def test_what_is_computed_without_grad_is_a_constant_of_reverse_mode(transform, way):
    assert REVERSE[transform](lambda x: x * HIDDEN_BY_MODE[way](x), torch.tensor(X)) == [2.0, 4.0]


@pytest.mark.parametrize("way", HIDDEN_BY_MODE)
@pytest.mark.parametrize("transform", FORWARD)
def test_forward_mode_sees_through_no_grad_as_in_pytorch(transform, way):
    assert FORWARD[transform](lambda x: x * HIDDEN_BY_MODE[way](x), torch.tensor(X)) == [4.0, 8.0]


@pytest.mark.parametrize("transform", REVERSE)
def test_enable_grad_inside_no_grad_records_for_a_transform(transform):
    assert REVERSE[transform](lambda x: x * recorded_again(x), torch.tensor(X)) == [4.0, 8.0]


def test_a_transform_begun_under_no_grad_is_not_concerned_by_it_and_the_one_around_is():
    def f(x):
        with torch.no_grad():
            inner = grad(lambda y: (y**2 * x).sum())(x)  # 2 x^2
        return (x * inner).sum()

    assert grad(f)(torch.tensor(X)).tolist() == [2.0, 8.0]
    with torch.no_grad():
        assert grad(lambda x: (x * x).sum())(torch.tensor(X)).tolist() == [2.0, 4.0]


def test_a_transform_begun_under_no_grad_does_not_record_what_it_closes_over():
    w = torch.ones(2, requires_grad=True)

    def f(x):
        with torch.enable_grad():
            return (w * x * x).sum()

    with torch.no_grad():
        assert not grad(f)(torch.tensor(X)).requires_grad
    assert grad(f)(torch.tensor(X)).requires_grad


def test_the_mode_is_on_inside_reverse_mode_and_is_restored_after_an_error():
    seen = []

    def f(x):
        seen.append(torch.is_grad_enabled())
        with torch.no_grad():
            seen.append(torch.is_grad_enabled())
            raise KeyError

    with torch.no_grad():
        with pytest.raises(KeyError):
            grad(f)(torch.tensor(X))
        assert not torch.is_grad_enabled()
    assert seen == [True, False]
    assert torch.is_grad_enabled()


def test_the_hessian_of_a_detached_factor_is_zero():
    assert hessian(lambda x: (x * x.detach()).sum())(torch.tensor(X)).tolist() == [[0.0, 0.0], [0.0, 0.0]]


def test_a_hook_inside_a_transform_is_still_seen_by_it():
    def f(x):
        a = torch.tensor(x, requires_grad=True)
        b = a * 1
        b.retain_grad()
        b.register_hook(lambda g: 3 * g)
        (b * b).sum().backward()
        return (a.grad + b.grad).sum()  # 12 x

    assert fad.grad(f)(np.array(X)).tolist() == [12.0, 12.0]


def test_no_grad_inside_two_transforms_hides_from_both():
    with_factor = lambda y: (y * y * under_no_grad(y)).sum()
    x = torch.tensor(X)
    assert grad(lambda z: grad(with_factor)(z).sum())(x).tolist() == [4.0, 8.0]  # of 2 z 2c, with c = z


def test_a_batched_value_has_no_numbers():
    with pytest.raises(TracerConversionError, match="vmap"):
        vmap(lambda x: torch.tensor(x.tolist()))(torch.ones(2, 3))
    with pytest.raises(BatchedValueError):
        vmap(lambda x: x * x.item())(torch.ones(2))


def test_a_pullback_returns_a_tuple_with_one_entry_per_primal():
    x = torch.tensor(X)
    (g,) = vjp(torch.sum, x)[1](torch.tensor(1.0))
    assert g.tolist() == [1.0, 1.0]
    (found,) = vjp(lambda d: (d["a"].sum(), d["a"]), {"a": x})[1]((torch.tensor(1.0), x))
    assert found["a"].tolist() == [2.0, 3.0]
    assert len(vjp(lambda x, y: x * y, x, x)[1](x)) == 2
