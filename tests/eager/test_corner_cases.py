"""Programs that gave other results than PyTorch: hooks, rounding, products, losses, modes and dtypes."""

import signal

import numpy as np
import pytest

import fad
import fad.eager as torch
from fad.errors import ShapeMismatchError

F = torch.nn.functional


# --- hooks ------------------------------------------------------------------------------------------------------------


def hooked(order):
    """Return the retained gradient of a computed tensor and that of its leaf, after hooks and changes in an order."""
    a = torch.ones(2, requires_grad=True)
    b = a * 1
    for step in order:
        if step == "retain":
            b.retain_grad()
        elif step == "hook":
            b.register_hook(lambda g: 2 * g)
        elif step == "node":
            b.grad_fn.register_prehook(lambda gs: (10 * gs[0],))
        else:
            b.mul_(3)
    b.sum().backward()
    return b.grad.tolist()[0], a.grad.tolist()[0]


@pytest.mark.parametrize(
    ("order", "expected"),
    [
        (["retain", "hook"], (2, 2)),
        (["hook", "retain"], (2, 2)),
        (["hook", "retain", "hook"], (4, 4)),
        (["retain", "node", "hook"], (2, 20)),
        (["retain", "change"], (1, 3)),
        (["change", "retain"], (1, 3)),
        (["retain", "change", "hook"], (2, 6)),
        (["hook", "retain", "change"], (1, 6)),
    ],
)
def test_a_retained_gradient_is_the_one_after_all_hooks_of_the_tensor_as_it_is_now(order, expected):
    assert hooked(order) == expected


# --- modes ------------------------------------------------------------------------------------------------------------


def test_an_interrupted_backward_pass_leaves_the_mode_as_it_was():
    x = torch.ones(3, requires_grad=True)
    armed = []

    def stop(*_):
        if armed:
            raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, stop)
    try:
        for i in range(150):
            y = x
            for _ in range(20):
                y = y * 1.01
            loss = y.sum()
            try:
                armed.append(True)
                signal.setitimer(signal.ITIMER_REAL, 1e-6 * (1 + i))
                loss.backward()
            except KeyboardInterrupt:
                pass
            finally:
                armed.clear()
                signal.setitimer(signal.ITIMER_REAL, 0)
            assert torch.is_grad_enabled()
            assert (x * 2).requires_grad
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_error_in_a_hook_leaves_the_mode_as_it_was():
    x = torch.ones(3, requires_grad=True)
    y = x * 2
    y.register_hook(lambda g: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        y.sum().backward()
    assert torch.is_grad_enabled()


# --- step functions ---------------------------------------------------------------------------------------------------

STEPS = {
    "round": lambda x: x.round(),
    "torch.round": torch.round,
    "round to decimals": lambda x: x.round(decimals=1),
    "floor": torch.floor,
    "ceil": lambda x: x.ceil(),
    "trunc": torch.trunc,
    "sign": torch.sign,
    "np.floor": np.floor,
    "div floor": lambda x: torch.div(x, 2, rounding_mode="floor"),
    "div trunc": lambda x: torch.div(x, 2, rounding_mode="trunc"),
}


@pytest.mark.parametrize("name", STEPS)
def test_a_step_function_keeps_requires_grad_and_has_derivative_zero(name):
    x = torch.tensor([1.5, -0.7], requires_grad=True)
    y = STEPS[name](x)
    assert y.requires_grad
    x.detach().mul_(1)  # the derivative reads nothing
    y.sum().backward()
    assert x.grad.tolist() == [0.0, 0.0]


def test_rounding_whole_numbers_gives_whole_numbers():
    x = torch.tensor([1, 2])
    assert torch.floor(x).dtype == torch.int64
    assert torch.floor(x).tolist() == [1, 2]


# --- products ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "shapes"),
    [
        ("dot", [(2, 2), (2,)]), ("dot", [(2, 2), (2, 2)]), ("mv", [(2, 2), (2, 2)]), ("mv", [(2,), (2,)]),
        ("mm", [(2, 2), (2,)]), ("mm", [(2, 2, 2), (2, 2)]), ("bmm", [(2, 2), (2, 2)]), ("vdot", [(2, 2), (2, 2)]),
        ("bmm", [(1, 2, 2), (2, 2, 2)]), ("outer", [(2, 2), (2,)]), ("ger", [(2, 2), (2,)]),
        ("addmm", [(2,), (2, 2), (2,)]), ("addmv", [(2,), (2, 2), (2, 2)]), ("baddbmm", [(2,), (2, 2), (2, 2)]),
        ("addbmm", [(2, 2), (2, 2), (2, 2)]), ("addr", [(2, 2), (2, 2), (2,)]),
    ],
)  # fmt: skip
def test_a_product_refuses_other_numbers_of_axes(name, shapes):
    with pytest.raises(ShapeMismatchError, match="matmul"):
        getattr(torch, name)(*(torch.ones(*s) for s in shapes))
    first, *others = (torch.ones(*s) for s in shapes)
    with pytest.raises(ShapeMismatchError, match="matmul"):
        getattr(first, name)(*others)


# --- tensors among the options ----------------------------------------------------------------------------------------


def gradients(fun, *values):
    xs = [torch.tensor(v, dtype=torch.float64, requires_grad=True) for v in values]
    fun(*xs).sum().backward()
    return [x.grad.numpy() for x in xs]


LOGITS, LABELS, WEIGHTS = [0.3, -0.4], [1.0, 0.0], [2.0, 3.0]


def test_a_loss_takes_weights_by_name():
    x, w, p = (np.array(v) for v in (LOGITS, WEIGHTS, [0.5, 4.0]))
    y = np.array(LABELS)
    loss = lambda x, w, p: F.binary_cross_entropy_with_logits(
        x, torch.tensor(LABELS, dtype=torch.float64), weight=w, pos_weight=p, reduction="sum"
    )
    s = 1 / (1 + np.exp(-x))
    by_x, by_w, by_p = gradients(loss, x, w, p)
    np.testing.assert_allclose(by_x, w * ((1 - y) * s - p * y * (1 - s)))
    np.testing.assert_allclose(by_w, -(p * y * np.log(s) + (1 - y) * np.log(1 - s)))
    np.testing.assert_allclose(by_p, -w * y * np.log(s), atol=1e-15)


def test_options_that_are_tensors_have_gradients():
    towards = lambda a, b, w: torch.lerp(a, b, weight=w)
    by_start, by_end, by_weight = gradients(towards, [1.0, 2.0], [3.0, 5.0], [0.5, 0.5])
    assert by_start.tolist() == [0.5, 0.5]
    assert by_end.tolist() == [0.5, 0.5]
    assert by_weight.tolist() == [2.0, 3.0]
    assert gradients(lambda x: torch.lerp(input=x, end=2 * x, weight=0.25), [1.0])[0].tolist() == [1.25]


@pytest.mark.parametrize("kind", ["number", "tensor", "tracked"])
def test_masked_fill_takes_a_number_or_a_tensor_of_one(kind):
    value = {"number": 0.0, "tensor": torch.tensor(0.0), "tracked": torch.tensor(0.0, requires_grad=True)}[kind]
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    y = x.masked_fill(torch.tensor([True, False]), value)
    assert y.detach().tolist() == [0.0, 2.0]
    (3 * y).sum().backward()
    assert x.grad.tolist() == [0.0, 3.0]
    if kind == "tracked":
        assert value.grad.item() == 3.0
    with pytest.raises(ShapeMismatchError, match="chooses element by element"):
        x.masked_fill(torch.tensor([True, False]), torch.zeros(2))


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_a_cycle_may_step_once_after_its_last_step(strategy):
    opt = torch.optim.SGD([torch.ones(1, requires_grad=True)], lr=0.1, momentum=0.9)
    cycle = torch.optim.lr_scheduler.OneCycleLR(opt, max_lr=1.0, total_steps=4, anneal_strategy=strategy)
    for _ in range(4):
        opt.step()
        cycle.step()
    with pytest.raises(ValueError, match="over after 4 steps"):
        cycle.step()


# --- dtypes inside vmap -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("fun", "expected"),
    [
        (lambda a: a * torch.ones(2), "float32"),  # a single number gives way to a vector
        (lambda a: a * torch.tensor(2.0), "float64"),
        (lambda a: a * 2.0, "float64"),
        (lambda a: torch.ones(2, dtype=torch.float32) - a, "float32"),
        (lambda a: torch.arange(2) * a, "float64"),
    ],
)
def test_dtypes_inside_vmap_are_those_of_the_single_example(fun, expected):
    x = torch.tensor([1.0, 2.0], dtype=torch.float64)
    assert torch.vmap(fun)(x).dtype == fun(x[0]).dtype == expected


# --- autograd.grad inside a transform ---------------------------------------------------------------------------------


def of_gradient(x, create_graph=True):
    (g,) = torch.autograd.grad((x**3).sum(), x, create_graph=create_graph)
    return (g * x).sum()


def test_a_recorded_gradient_inside_a_transform_is_differentiated():
    x = torch.tensor([1.0, 2.0])
    assert torch.func.grad(of_gradient)(x).tolist() == [9.0, 36.0]
    assert torch.func.jacrev(of_gradient)(x).tolist() == [9.0, 36.0]
    assert torch.func.vjp(of_gradient, x)[1](torch.tensor(1.0))[0].tolist() == [9.0, 36.0]
    assert torch.func.hessian(of_gradient)(x).tolist() == [[18.0, 0.0], [0.0, 36.0]]
    assert torch.func.grad(lambda x: torch.func.grad(of_gradient)(x).sum())(x).tolist() == [18.0, 36.0]


def test_an_unrecorded_gradient_inside_a_transform_is_a_constant_as_in_pytorch():
    assert torch.func.grad(lambda x: of_gradient(x, False))(torch.tensor([1.0, 2.0])).tolist() == [3.0, 12.0]


def test_a_function_that_calls_autograd_grad_may_return_more():
    x = torch.tensor([1.0, 2.0])
    g, aux = torch.func.grad(lambda x: (of_gradient(x), {"seen": 2 * x}), has_aux=True)(x)
    assert g.tolist() == [9.0, 36.0]
    assert aux["seen"].tolist() == [2.0, 4.0]
    assert not aux["seen"].requires_grad


def test_a_rule_of_ones_own_holds_for_a_transform_around_a_history_too():
    class Through(torch.autograd.Function):
        """A step forward, and a slope of 10 backward."""

        @staticmethod
        def forward(ctx, x):
            return (x > 0).float()

        @staticmethod
        def backward(ctx, g):
            return 10 * g

    def f(x):
        y = Through.apply(torch.tensor(x, requires_grad=True))
        return y.sum()

    assert fad.grad(f)(np.ones(2, np.float32)).tolist() == [10.0, 10.0]


# --- found by the fuzzer ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("dim", [0, -1])
@pytest.mark.parametrize(
    "name", ["sum", "mean", "prod", "amax", "amin", "logsumexp", "softmax", "log_softmax", "cumsum"]
)
def test_a_single_number_has_an_axis_0(name, dim):
    x = torch.tensor(0.5, requires_grad=True)
    y = getattr(x, name)(dim)
    assert y.shape == getattr(torch, name)(x, dim).shape == ()
    y.backward()
    assert x.grad.item() == (0.0 if "soft" in name else 1.0)
    assert torch.vmap(lambda x: getattr(x, name)(dim))(torch.ones(2)).shape == (2,)
    with pytest.raises(np.exceptions.AxisError):
        getattr(x, name)(1)


def test_choices_along_the_axis_of_a_single_number_are_numbers():
    x = torch.tensor(0.5)
    for pair in (x.max(0), x.sort(), x.topk(1), x.median(0), torch.min(x, -1, keepdim=True)):
        assert [t.shape for t in pair] == [(), ()]
        assert [t.item() for t in pair] == [0.5, 0]


def test_the_sign_of_nan_is_0():
    assert torch.sign(torch.tensor([float("nan"), -2.0, 0.0])).tolist() == [0.0, -1.0, 0.0]


def test_the_quotient_of_whole_numbers_is_float32():
    x = torch.arange(3)
    assert (x / (x + 1)).dtype == torch.float32
    assert torch.atan2(x, x + 1).dtype == torch.float32


def test_a_retained_gradient_adds_up_over_passes():
    y = torch.ones(2, requires_grad=True) * 2
    y.retain_grad()
    (y * y).sum().backward(retain_graph=True)
    (y * 3).sum().backward()
    assert y.grad.tolist() == [7.0, 7.0]


def test_autograd_grad_runs_hooks_on_the_way_to_its_inputs_only():
    x = torch.ones(2, requires_grad=True)
    seen = []
    on, off = x * 2, x * 3
    on.register_hook(lambda g: seen.append("on"))
    off.register_hook(lambda g: seen.append("off"))
    off.retain_grad()
    torch.autograd.grad((on + off).sum(), on, retain_graph=True)
    assert seen == ["on"]
    assert off.grad is None
    torch.autograd.grad((on + off).sum(), x, create_graph=True)
    assert sorted(seen) == ["off", "on", "on"]


def test_a_retained_gradient_sees_what_goes_through_a_view_that_was_filled():
    y = torch.ones(2, requires_grad=True) * 2
    y.retain_grad()
    view = y.view(2, 1)
    view.fill_(0.5)
    view.sum().backward()
    assert y.grad.tolist() == [1.0, 1.0]


def test_flattening_what_is_flat_returns_the_tensor_itself():
    x = torch.ones(3)
    assert x.flatten() is x


def test_a_mean_keeps_no_values_and_may_be_passed_through_twice():
    x = torch.tensor([1.0, 3.0], requires_grad=True)
    y = x.mean()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [1.0, 1.0]


def test_a_result_in_another_order_of_memory_can_still_be_viewed():
    x = torch.ones(2, 3, 4).transpose(0, 2)
    y = x.prod(1)
    y.view(-1).mul_(2)
    assert y.sum().item() == 16.0
