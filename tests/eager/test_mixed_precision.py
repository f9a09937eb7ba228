"""What programs write for mixed precision and for GPUs is done or refused, in a memory where there are neither."""

import numpy as np
import pytest

import fad.eager as torch
from fad.eager.nn.attention import SDPBackend, sdpa_kernel


def train(torch):
    """A loop as it is written for a GPU, with what PyTorch does where there is none."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    kinds = {"float32": torch.float32, "bfloat16": torch.bfloat16, "float16": torch.float16}
    kind = kinds["bfloat16" if torch.cuda.is_available() and torch.cuda.is_bf16_supported() else "float32"]
    w = torch.ones(3, dtype=kind, requires_grad=True)
    optimizer, scaler = torch.optim.SGD([w], lr=0.1), torch.amp.GradScaler("cuda", enabled=device == "cuda")
    for _ in range(2):
        optimizer.zero_grad()
        with torch.autocast(device_type=device, enabled=device == "cuda"):
            loss = (w**2).sum()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
    return w.detach().numpy()


def test_a_loop_with_mixed_precision_for_a_gpu_trains_without_it():
    np.testing.assert_allclose(train(torch), np.full(3, 0.64), rtol=1e-6)


def test_such_a_loop_does_in_pytorch_what_it_does_here():
    theirs = pytest.importorskip("torch")
    np.testing.assert_allclose(train(torch), train(theirs), rtol=1e-6)


def test_functions_that_switch_it_off_compute_as_they_are_written():
    @torch.amp.autocast("cuda", enabled=False)
    def double(x):
        return 2 * x

    with torch.cuda.amp.autocast(), sdpa_kernel(SDPBackend.MATH):
        assert double(torch.ones(1)).tolist() == [2.0]


@pytest.mark.parametrize(
    "refuse", [lambda: torch.autocast("cpu", dtype=torch.bfloat16), lambda: torch.amp.GradScaler("cpu")]
)
def test_mixed_precision_in_the_hosts_memory_is_refused(refuse):
    with pytest.raises(ValueError, match="give enabled=False"):
        refuse()


@pytest.mark.parametrize(
    "make",
    [
        lambda: torch.ones(2).to(torch.bfloat16), lambda: torch.zeros(2, dtype=torch.bfloat16),
        lambda: torch.ones(2).type(torch.bfloat16), lambda: torch.nn.Linear(1, 1).to(torch.bfloat16),
    ],
)  # fmt: skip
def test_a_dtype_that_numpy_lacks_is_refused_where_a_tensor_would_have_it(make):
    with pytest.raises(TypeError, match=r"NumPy has no bfloat16: use torch\.float32"):
        make()


def test_a_dtype_that_numpy_lacks_can_be_named_and_compared():
    assert torch.ones(1).dtype in [torch.float16, torch.float32, torch.bfloat16]
    assert torch.float32 != torch.bfloat16
    assert repr(torch.bfloat16) == "torch.bfloat16"


def test_a_list_of_parameters_holds_lists_of_parameters():
    nn = torch.nn
    rows = nn.ParameterList()
    for k in (1, 2):
        rows.append(nn.ParameterList([nn.Parameter(torch.ones(k)), torch.zeros(k)]))
    assert [name for name, _ in rows.named_parameters()] == ["0.0", "0.1", "1.0", "1.1"]
    assert [p.shape[0] for p in rows[-1]] == [2, 2]
    assert len(rows[:1]) == 1
    rows[0] = torch.zeros(5)
    assert [p.shape[0] for p in rows.parameters()] == [5, 2, 2]
    with pytest.raises(IndexError):
        rows[2]


RESULTS = {
    "divide": lambda x: x / (1 + x.t()),
    "divide by": lambda x: 1 / x,
    "maximum": lambda x: torch.maximum(x, x.t() + 0.3),
    "minimum": lambda x: torch.minimum(x, x.t() + 0.3),
    "max_pool": lambda x: torch.nn.functional.max_pool2d(x[None, None], 3, 1)[0, 0],
}
CHANGES = {
    "add": lambda y: y.add_(1.0), "multiply": lambda y: y.mul_(2.0), "assign": lambda y: y.__setitem__(0, 0.5),
    "through a view": lambda y: y.view(-1).mul_(3.0), "exp": lambda y: y.exp_(),
}  # fmt: skip


@pytest.mark.parametrize("change", CHANGES)
@pytest.mark.parametrize("name", RESULTS)
def test_a_result_that_pytorchs_rule_does_not_read_may_be_changed_in_place(name, change):
    a = np.random.default_rng(0).uniform(0.5, 1.5, (4, 4))
    x, z = (torch.tensor(a, requires_grad=True) for _ in range(2))
    y = RESULTS[name](x)
    CHANGES[change](y)
    (y**2).sum().backward()
    w = RESULTS[name](z) * 1.0
    CHANGES[change](w)
    (w**2).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), z.grad.numpy(), rtol=1e-12)
