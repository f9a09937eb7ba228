"""What a tensor says of itself: printing, dtypes, conversions; compared with PyTorch where it is installed."""

import copy
import math

import numpy as np
import pytest

import fad.eager as torch

# Programs that print one thing; each is run with fad.eager and with PyTorch, and must give the same text.
PROGRAMS = """
torch.linspace(0, 2 * math.pi, 25, requires_grad=True)
torch.tensor([[1.0, -2.0], [3e5, 1e-3]])
torch.tensor([1.0, float("nan"), -float("inf"), 1e-8])
torch.tensor([1.0, 20.0, float("inf")])
torch.tensor([0.1, 0.2]).double()
torch.tensor([1.5, 2.5], dtype=torch.float64, requires_grad=True)
torch.arange(2000.0)
torch.arange(3000.0).reshape(3, 1000)
torch.ones(20, 60, 3) * 1.5
torch.zeros(0, 3)
torch.zeros(0)
torch.tensor(1.5), torch.tensor(3), torch.tensor(True), torch.tensor([1 + 2j, 3.5 - 1j])
torch.arange(3), torch.arange(3, dtype=torch.int32), torch.tensor([True, False])
torch.arange(3) / 2, torch.arange(3) * 2.5, torch.arange(3) + 1, torch.arange(4) // 3, 7 % torch.arange(1, 4)
torch.ones(2) * torch.arange(2), torch.ones(2) * torch.tensor(2.0, dtype=torch.float64)
torch.arange(2) * torch.tensor(0.5)
torch.ones(2) > 0.5, ~(torch.ones(2) > 0.5), torch.ones(2).eq(1).all()
torch.sin(torch.arange(3)), torch.exp(torch.tensor(1)), torch.arange(3).sum(), torch.arange(3.0).mean()
2 ** torch.arange(3.0), torch.arange(3.0) ** 2, 1 / torch.arange(1.0, 3.0), 1 - torch.arange(3.0)
torch.ones(2, 3).sum(0), torch.ones(2, 3).sum(1, keepdim=True), torch.ones(2, 3).sum((0, 1))
tuple(torch.arange(6.0).view(2, 3).max(dim=1)), torch.arange(6.0).max(), torch.arange(6.0).argmax()
torch.arange(6.0).view(2, 3).std(), torch.arange(6.0).view(2, 3).var(0), torch.arange(6.0).norm()
torch.arange(6.0).view(2, 3).t(), torch.arange(6.0).view(2, 3).T.shape, torch.ones(1, 2, 1).squeeze().size()
torch.eye(2, 3), torch.full((2, 2), 7.0), torch.zeros(2, 2).dtype == torch.float32
torch.cat([torch.ones(2), torch.zeros(1)]), torch.stack([torch.ones(2), torch.zeros(2)], 1), torch.arange(5).split(2)
torch.arange(9.0).view(3, 3)[1:, ::2], torch.arange(9.0).view(3, 3)[torch.tensor([0, 2])], torch.arange(3.0)[1]
torch.tensor([3.0, 1.0]).clamp(min=2), torch.tensor([-1.0, 4.0]).relu(), torch.tensor([0.0]).sigmoid()
torch.where(torch.tensor([True, False]), torch.ones(2), torch.zeros(2)), torch.arange(3).float().tolist()
torch.nn.functional.softmax(torch.tensor([0.0, 1.0]), dim=0), torch.logsumexp(torch.arange(3.0), 0)
torch.nn.Linear(3, 2), torch.nn.Sequential(torch.nn.Linear(3, 2), torch.nn.ReLU())
(torch.ones(2, requires_grad=True) * 2), (torch.ones(2, 2, requires_grad=True) @ torch.ones(2, 2))
torch.ones(3, requires_grad=True).pow(2).mean(), torch.ones(3, requires_grad=True)[0:2]
10 - torch.ones(1, requires_grad=True)
torch.nn.functional.mse_loss(torch.ones(2, requires_grad=True), torch.zeros(2))
torch.ones(1, 30, requires_grad=True) * 1.25
f"{torch.tensor(2.5):.3f} {torch.tensor(2.0).item()} {len(torch.ones(4))}"
""".strip().splitlines()  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_prints_as_pytorch_prints(program):
    pytorch = pytest.importorskip("torch")
    assert repr(eval(program, {"torch": torch, "math": math})) == repr(eval(program, {"torch": pytorch, "math": math}))


def test_a_parameter_says_what_it_is():
    assert repr(torch.nn.Parameter(torch.ones(2))) == "Parameter containing:\ntensor([1., 1.], requires_grad=True)"


def test_numbers_are_float32_by_default():
    assert torch.tensor([1.0]).dtype == torch.float32
    assert torch.rand(2).dtype == torch.randn(2).dtype == torch.linspace(0, 1, 3).dtype == torch.float32
    assert torch.tensor([1]).dtype == torch.int64
    assert torch.tensor(np.ones(2)).dtype == torch.float64
    assert (torch.ones(2, requires_grad=True) * 2.0).dtype == torch.float32
    assert (torch.ones(2, requires_grad=True) * np.float64(2.0)).dtype == torch.float32
    torch.set_default_dtype(torch.float64)
    try:
        assert torch.ones(2).dtype == torch.tensor(1.0).dtype == torch.float64
    finally:
        torch.set_default_dtype(torch.float32)


def test_a_float32_program_has_a_float32_gradient_whatever_it_meets():
    x = torch.ones(2, requires_grad=True)
    y = x * torch.arange(2) + torch.tensor(2.0, dtype=torch.float64) * x / torch.tensor([True, True])
    assert y.dtype == torch.float32
    y.sum().backward()
    assert x.grad.dtype == torch.float32
    assert x.grad.tolist() == [2.0, 3.0]


def test_seeded_random_numbers_repeat():
    torch.manual_seed(1)
    a = torch.randn(3)
    torch.manual_seed(1)
    assert torch.equal(a, torch.randn(3))
    assert torch.randint(0, 5, (100,)).max().item() <= 4
    assert sorted(torch.randperm(5).tolist()) == list(range(5))


def test_arrays_share_memory_with_tensors_that_come_from_them():
    a = np.ones(2)
    t = torch.from_numpy(a)
    a[0] = 5.0
    assert t.tolist() == [5.0, 1.0]
    assert t.numpy() is a
    b = torch.tensor(a)
    a[0] = 7.0
    assert b.tolist() == [5.0, 1.0]


def test_a_tensor_that_requires_grad_is_no_array():
    x = torch.ones(2, requires_grad=True)
    for convert in (np.asarray, lambda x: x.numpy(), lambda x: np.array(x * 2)):
        with pytest.raises(torch.RequiresGradError, match="detach"):
            convert(x)
    np.testing.assert_array_equal(np.asarray(x.detach()), [1.0, 1.0])
    np.testing.assert_array_equal(x.numpy(force=True), [1.0, 1.0])


def test_numbers_come_out_of_single_elements_only():
    assert torch.tensor([[2.5]]).item() == 2.5
    assert float(torch.tensor(2.5, requires_grad=True)) == 2.5
    assert int(torch.tensor(3)) == 3
    assert bool(torch.tensor([0.0])) is False
    assert [10, 20, 30][torch.tensor(1)] == 20
    with pytest.raises(TypeError, match="one element"):
        torch.ones(2).item()
    with pytest.raises(ValueError, match="ambiguous"):
        bool(torch.ones(2))


def test_iterating_goes_over_the_first_axis():
    x = torch.arange(4.0).view(2, 2).requires_grad_()
    first, second = x
    (first * second).sum().backward()
    assert x.grad.tolist() == [[2.0, 3.0], [0.0, 1.0]]
    with pytest.raises(TypeError, match="0-d"):
        iter(torch.tensor(1.0)).__next__()


def test_copies_of_leaves_are_leaves_and_computed_tensors_are_not_copied():
    x = torch.ones(2, requires_grad=True)
    y = copy.deepcopy(x)
    assert y.is_leaf
    assert y.requires_grad
    y.data.zero_()
    assert x.tolist() == [1.0, 1.0]
    with pytest.raises(torch.BackwardError, match="clone"):
        copy.deepcopy(x * 2)


def test_clone_is_recorded_and_detach_is_not():
    x = torch.ones(2, requires_grad=True)
    assert x.clone().requires_grad
    assert not x.detach().requires_grad
    x.clone().sum().backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_there_is_no_device_but_the_host():
    assert not torch.cuda.is_available()
    x = torch.ones(2)
    assert x.to("cpu") is x
    with pytest.raises(ValueError, match="host memory"):
        x.to("cuda")
    with pytest.raises(ValueError, match="cuda:0"):
        torch.device("cuda:0")


def test_an_operand_that_is_no_number_is_refused():
    with pytest.raises(TypeError):
        torch.ones(2) + "a"
    with pytest.raises(TypeError):
        torch.ones(2) @ 3
    assert (torch.ones(2) == None) is False  # noqa: E711
