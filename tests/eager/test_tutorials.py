"""Five introductions to PyTorch's autograd, their programs typed out with ``import fad.eager as torch``.

Numbers that the introductions print are checked where they do not depend on random numbers.
"""

import math
import re

import numpy as np
import pytest

import fad.eager as torch
from fad.eager.autograd import Variable


def printed(x):
    """Return the text that print(x) gives, on one line."""
    return " ".join(str(x).split())


def assert_numbers(x, text):
    """Check the elements of a tensor against printed ones, to the precision of print."""
    expected = [float(n) for n in re.findall(r"-?\d+\.\d*(?:e[+-]\d+)?", text)]
    np.testing.assert_allclose(x.detach().numpy().ravel(), expected, rtol=1e-4, atol=5e-7)


@pytest.fixture(autouse=True)
def _seed():
    torch.manual_seed(0)


@pytest.fixture
def plt():
    matplotlib = pytest.importorskip("matplotlib")
    matplotlib.use("Agg")
    from matplotlib import pyplot

    yield pyplot
    pyplot.close("all")


# --- the first: the fundamentals ----------------------------------------------------------------------------------

SINES = """0.0000e+00 2.5882e-01 5.0000e-01 7.0711e-01 8.6603e-01 9.6593e-01 1.0000e+00 9.6593e-01 8.6603e-01 7.0711e-01
5.0000e-01 2.5882e-01 -8.7423e-08 -2.5882e-01 -5.0000e-01 -7.0711e-01 -8.6603e-01 -9.6593e-01 -1.0000e+00 -9.6593e-01
-8.6603e-01 -7.0711e-01 -5.0000e-01 -2.5882e-01 1.7485e-07"""
SINES_PLUS_ONE = """1.0000e+00 1.5176e+00 2.0000e+00 2.4142e+00 2.7321e+00 2.9319e+00 3.0000e+00 2.9319e+00 2.7321e+00
2.4142e+00 2.0000e+00 1.5176e+00 1.0000e+00 4.8236e-01 -3.5763e-07 -4.1421e-01 -7.3205e-01 -9.3185e-01 -1.0000e+00
-9.3185e-01 -7.3205e-01 -4.1421e-01 4.7684e-07 4.8236e-01 1.0000e+00"""
COSINES = """2.0000e+00 1.9319e+00 1.7321e+00 1.4142e+00 1.0000e+00 5.1764e-01 -8.7423e-08 -5.1764e-01 -1.0000e+00
-1.4142e+00 -1.7321e+00 -1.9319e+00 -2.0000e+00 -1.9319e+00 -1.7321e+00 -1.4142e+00 -1.0000e+00 -5.1764e-01 2.3850e-08
5.1764e-01 1.0000e+00 1.4142e+00 1.7321e+00 1.9319e+00 2.0000e+00"""


DOUBLED = """0.0000e+00 5.1764e-01 1.0000e+00 1.4142e+00 1.7321e+00 1.9319e+00 2.0000e+00 1.9319e+00 1.7321e+00
1.4142e+00 1.0000e+00 5.1764e-01 -1.7485e-07 -5.1764e-01 -1.0000e+00 -1.4142e+00 -1.7321e+00 -1.9319e+00 -2.0000e+00
-1.9319e+00 -1.7321e+00 -1.4142e+00 -1.0000e+00 -5.1764e-01 3.4969e-07"""


def sine_program():
    a = torch.linspace(0.0, 2.0 * math.pi, steps=25, requires_grad=True)
    b = torch.sin(a)
    c = 2 * b
    d = c + 1
    out = d.sum()
    return a, b, c, d, out


def test_the_input_prints_as_in_the_tutorial():
    a = torch.linspace(0.0, 2.0 * math.pi, steps=25, requires_grad=True)
    assert printed(a) == (
        "tensor([0.0000, 0.2618, 0.5236, 0.7854, 1.0472, 1.3090, 1.5708, 1.8326, 2.0944, 2.3562, 2.6180, 2.8798, "
        "3.1416, 3.4034, 3.6652, 3.9270, 4.1888, 4.4506, 4.7124, 4.9742, 5.2360, 5.4978, 5.7596, 6.0214, 6.2832], "
        "requires_grad=True)"
    )


def test_the_sine_and_what_follows_have_the_printed_numbers():
    _, b, c, d, out = sine_program()
    assert_numbers(b, SINES)
    assert printed(b).endswith("grad_fn=<SinBackward0>)")
    assert_numbers(c, DOUBLED)
    assert printed(c).endswith("grad_fn=<MulBackward0>)")
    assert_numbers(d, SINES_PLUS_ONE)
    assert printed(d).endswith("grad_fn=<AddBackward0>)")
    assert printed(out) == "tensor(25., grad_fn=<SumBackward0>)"


def test_the_sines_print_as_in_the_tutorial_line_by_line():
    b = torch.tensor([float(x) for x in SINES.split()])
    assert str(b) == (
        "tensor([ 0.0000e+00,  2.5882e-01,  5.0000e-01,  7.0711e-01,  8.6603e-01,\n"
        "         9.6593e-01,  1.0000e+00,  9.6593e-01,  8.6603e-01,  7.0711e-01,\n"
        "         5.0000e-01,  2.5882e-01, -8.7423e-08, -2.5882e-01, -5.0000e-01,\n"
        "        -7.0711e-01, -8.6603e-01, -9.6593e-01, -1.0000e+00, -9.6593e-01,\n"
        "        -8.6603e-01, -7.0711e-01, -5.0000e-01, -2.5882e-01,  1.7485e-07])"
    )


def test_tensors_can_be_plotted_once_detached(plt):
    a, b, *_ = sine_program()
    (line,) = plt.plot(a.detach(), b.detach())
    np.testing.assert_array_equal(line.get_ydata(), b.detach().numpy())
    with pytest.raises(torch.RequiresGradError, match="detach"):
        plt.plot(a, b)


def test_next_functions_walk_back_to_the_input():
    a, b, c, d, _ = sine_program()
    names = []
    node = d.grad_fn
    while node is not None:
        names.append(node.name())
        constant = node.next_functions[1:]
        assert constant in ((), ((None, 0),))
        node = node.next_functions[0][0] if node.next_functions else None
    assert names == ["AddBackward0", "MulBackward0", "SinBackward0", "AccumulateGrad"]
    assert re.fullmatch(r"<AddBackward0 object at 0x[0-9a-f]+>", str(d.grad_fn))
    assert (c.grad_fn.name(), b.grad_fn.name(), a.grad_fn) == ("MulBackward0", "SinBackward0", None)
    assert d.grad_fn.next_functions[0][0] is c.grad_fn
    pair = r"\(\(<MulBackward0 object at 0x[0-9a-f]+>, 0\), \(None, 0\)\)"
    assert re.fullmatch(pair, str(d.grad_fn.next_functions))
    assert re.fullmatch(r"\(\(<AccumulateGrad object at 0x[0-9a-f]+>, 0\),\)", str(b.grad_fn.next_functions))


def test_backward_gives_twice_the_cosine(plt):
    a, _, c, _, out = sine_program()
    out.backward()
    assert_numbers(a.grad, COSINES)
    plt.plot(a.detach(), a.grad.detach())
    with pytest.warns(UserWarning, match="retain_grad"):
        assert c.grad is None


BATCH_SIZE, DIM_IN, HIDDEN_SIZE, DIM_OUT = 16, 1000, 100, 10


class TinyModel(torch.nn.Module):
    def __init__(self):
        super(TinyModel, self).__init__()  # noqa: UP008  (as the tutorial has it)

        self.layer1 = torch.nn.Linear(DIM_IN, HIDDEN_SIZE)
        self.relu = torch.nn.ReLU()
        self.layer2 = torch.nn.Linear(HIDDEN_SIZE, DIM_OUT)

    def forward(self, x):
        x = self.layer1(x)
        x = self.relu(x)
        x = self.layer2(x)
        return x


def test_one_batch_of_training_changes_the_weights_along_the_gradient():
    some_input = torch.randn(BATCH_SIZE, DIM_IN, requires_grad=False)
    ideal_output = torch.randn(BATCH_SIZE, DIM_OUT, requires_grad=False)
    model = TinyModel()
    shown = printed(model.layer2.weight[0][0:10])
    assert shown.startswith("tensor([")
    assert shown.endswith("grad_fn=<SliceBackward0>)")
    assert model.layer2.weight.grad is None

    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    prediction = model(some_input)
    loss = (ideal_output - prediction).pow(2).sum()
    assert printed(loss).endswith("grad_fn=<SumBackward0>)")
    loss.backward()
    assert printed(model.layer2.weight[0][0:10]) == shown
    gradient = model.layer2.weight.grad[0][0:10]
    assert "grad_fn" not in printed(gradient)

    before = model.layer2.weight.detach().clone()
    optimizer.step()
    step = before - model.layer2.weight
    assert torch.allclose(step[0][0:10], 0.001 * gradient, atol=1e-7)
    assert torch.equal(model.layer2.weight.grad[0][0:10], gradient)


def test_gradients_pile_up_over_five_backward_passes_until_they_are_zeroed():
    some_input = torch.randn(BATCH_SIZE, DIM_IN)
    ideal_output = torch.randn(BATCH_SIZE, DIM_OUT)
    model = TinyModel()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.001)
    loss = (ideal_output - model(some_input)).pow(2).sum()
    loss.backward()
    once = model.layer2.weight.grad.clone()
    for _ in range(0, 5):
        prediction = model(some_input)
        loss = (ideal_output - prediction).pow(2).sum()
        loss.backward()
    assert torch.allclose(model.layer2.weight.grad, 6 * once, rtol=1e-4)
    optimizer.zero_grad(set_to_none=False)
    assert printed(model.layer2.weight.grad[0][0:10]) == "tensor([0., 0., 0., 0., 0., 0., 0., 0., 0., 0.])"


def test_recording_is_switched_off_on_the_tensor():
    a = torch.ones(2, 3, requires_grad=True)
    assert printed(a) == "tensor([[1., 1., 1.], [1., 1., 1.]], requires_grad=True)"
    b1 = 2 * a
    assert printed(b1) == "tensor([[2., 2., 2.], [2., 2., 2.]], grad_fn=<MulBackward0>)"
    a.requires_grad = False
    b2 = 2 * a
    assert printed(b2) == "tensor([[2., 2., 2.], [2., 2., 2.]])"


def test_recording_is_switched_off_in_a_block():
    a = torch.ones(2, 3, requires_grad=True) * 2
    b = torch.ones(2, 3, requires_grad=True) * 3
    c1 = a + b
    assert printed(c1) == "tensor([[5., 5., 5.], [5., 5., 5.]], grad_fn=<AddBackward0>)"
    with torch.no_grad():
        c2 = a + b
    assert printed(c2) == "tensor([[5., 5., 5.], [5., 5., 5.]])"
    c3 = a * b
    assert printed(c3) == "tensor([[6., 6., 6.], [6., 6., 6.]], grad_fn=<MulBackward0>)"


def test_recording_is_switched_off_by_a_decorator():
    def add_tensors1(x, y):
        return x + y

    @torch.no_grad()
    def add_tensors2(x, y):
        return x + y

    a = torch.ones(2, 3, requires_grad=True) * 2
    b = torch.ones(2, 3, requires_grad=True) * 3
    assert printed(add_tensors1(a, b)) == "tensor([[5., 5., 5.], [5., 5., 5.]], grad_fn=<AddBackward0>)"
    assert printed(add_tensors2(a, b)) == "tensor([[5., 5., 5.], [5., 5., 5.]])"


def test_detach_gives_the_numbers_without_history():
    x = torch.rand(5, requires_grad=True)
    y = x.detach()
    assert printed(x) == printed(y)[:-1] + ", requires_grad=True)"


def test_a_leaf_that_requires_grad_is_not_changed_in_place():
    a = torch.linspace(0.0, 2.0 * math.pi, steps=25, requires_grad=True)
    with pytest.raises(RuntimeError, match="leaf that requires grad"):
        torch.sin_(a)
    with pytest.raises(RuntimeError, match="leaf that requires grad"):
        a.sin_()


def test_the_profiler_counts_a_thousand_divisions_and_products():
    device = torch.device("cpu")
    run_on_gpu = False
    if torch.cuda.is_available():
        device = torch.device("cuda")
        run_on_gpu = True
    assert str(device) == "cpu"

    x = torch.randn(2, 3, requires_grad=True)
    y = torch.rand(2, 3, requires_grad=True)
    z = torch.ones(2, 3, requires_grad=True)
    with torch.autograd.profiler.profile(use_cuda=run_on_gpu) as prf, np.errstate(all="ignore"):
        for _ in range(1000):
            z = (z / x) * y
    table = prf.key_averages().table(sort_by="self_cpu_time_total", row_limit=5)
    calls = {row[0]: row[-1] for row in map(str.split, table.splitlines()[3:5])}
    assert calls == {"divide": "1000", "multiply": "1000"}
    assert "Self time total" in table


def test_backward_takes_a_vector_for_an_output_that_is_no_number():
    x = torch.randn(3, requires_grad=True)
    y = x * 2
    doublings = 1
    while y.data.norm() < 1000:
        y = y * 2
        doublings += 1
    assert printed(y).endswith("grad_fn=<MulBackward0>)")
    with pytest.raises(RuntimeError, match="vector"):
        y.backward()
    v = torch.tensor([0.1, 1.0, 0.0001], dtype=torch.float)
    y.backward(v)
    assert_numbers(x.grad / 2**doublings, "0.1 1.0 0.0001")


def test_the_high_level_interface_gives_the_jacobian_of_two_inputs():
    def exp_adder(x, y):
        return 2 * x.exp() + 3 * y

    inputs = (torch.rand(1), torch.rand(1))
    by_x, by_y = torch.autograd.functional.jacobian(exp_adder, inputs)
    np.testing.assert_allclose(by_x.numpy(), 2 * np.exp(inputs[0].numpy())[:, None], rtol=1e-6)
    assert printed(by_y) == "tensor([[3.]])"

    inputs = (torch.rand(3), torch.rand(3))
    by_x, by_y = torch.autograd.functional.jacobian(exp_adder, inputs)
    np.testing.assert_allclose(by_x.numpy(), np.diag(2 * np.exp(inputs[0].numpy())), rtol=1e-6)
    assert printed(by_y) == "tensor([[3., 0., 0.], [0., 3., 0.], [0., 0., 3.]])"


def test_the_high_level_interface_gives_products_with_the_jacobian():
    doublings = []

    def do_some_doubling(x):
        y = x * 2
        doublings.append(1)
        while y.data.norm() < 1000:
            y = y * 2
            doublings[-1] += 1
        return y

    inputs = torch.randn(3)
    my_gradients = torch.tensor([0.1, 1.0, 0.0001])
    out, product = torch.autograd.functional.vjp(do_some_doubling, inputs, v=my_gradients)
    assert torch.allclose(out, inputs * 2 ** doublings[0])
    assert_numbers(product / 2 ** doublings[0], "0.1 1.0 0.0001")
    _, forward = torch.autograd.functional.jvp(do_some_doubling, inputs, v=my_gradients)
    assert torch.allclose(forward, product)


# --- the second: tracking, and a gradient by hand -----------------------------------------------------------------


def test_tracking_begins_with_requires_grad_and_ends_in_three_ways():
    x = torch.rand(3, 7, requires_grad=True)
    assert x.requires_grad
    x = torch.ones(2, 4, requires_grad=True)
    y = x + 1
    assert y.grad_fn.name() == "AddBackward0"
    x = torch.rand(4, 3, requires_grad=True)
    assert not x.detach().requires_grad
    x.detach_()
    assert not x.requires_grad
    x = torch.rand(4, 3, requires_grad=True)
    assert not x.requires_grad_(False).requires_grad


def test_the_gradient_by_hand_is_the_automatic_one():
    real = torch.rand(3, 8)
    predicted = torch.rand(3, 8, requires_grad=True)
    loss = (predicted - real).pow(2).sum()
    with torch.no_grad():
        manual_gradient_predicted = 2.0 * (predicted - real)
    loss.backward()
    auto_gradient_predicted = predicted.grad
    assert torch.all(torch.isclose(manual_gradient_predicted, auto_gradient_predicted))
    assert (manual_gradient_predicted == auto_gradient_predicted).all()


# --- the third: one layer, and Jacobian products --------------------------------------------------------------------


def one_layer():
    x = torch.ones(5)
    y = torch.zeros(3)
    w = torch.randn(5, 3, requires_grad=True)
    b = torch.randn(3, requires_grad=True)
    z = torch.matmul(x, w) + b
    loss = torch.nn.functional.binary_cross_entropy_with_logits(z, y)
    return x, w, b, z, loss


def test_one_layer_has_the_named_gradient_functions():
    *_, z, loss = one_layer()
    assert re.fullmatch(
        r"Gradient function for z = <AddBackward0 object at 0x\w+>", f"Gradient function for z = {z.grad_fn}"
    )
    assert re.fullmatch(r"<BinaryCrossEntropyWithLogitsBackward0 object at 0x\w+>", f"{loss.grad_fn}")


def test_one_layer_has_the_gradient_of_the_loss_in_every_row():
    _, w, b, z, loss = one_layer()
    loss.backward()
    expected = 1 / (1 + np.exp(-z.detach().numpy())) / 3
    np.testing.assert_allclose(b.grad.numpy(), expected, rtol=1e-5)
    np.testing.assert_allclose(w.grad.numpy(), np.tile(expected, (5, 1)), rtol=1e-5)


def test_the_printed_gradient_of_one_layer_follows_from_its_printed_bias():
    logit = lambda p: math.log(p / (1 - p))
    z = torch.tensor([logit(3 * p) for p in (0.1970, 0.2892, 0.2841)], requires_grad=True)
    torch.nn.functional.binary_cross_entropy_with_logits(z, torch.zeros(3)).backward()
    assert printed(z.grad) == "tensor([0.1970, 0.2892, 0.2841])"


def test_tracking_is_disabled_by_no_grad_and_by_detach():
    x, w, b, *_ = one_layer()
    z = torch.matmul(x, w) + b
    assert z.requires_grad is True
    with torch.no_grad():
        z = torch.matmul(x, w) + b
    assert z.requires_grad is False
    z = torch.matmul(x, w) + b
    z_det = z.detach()
    assert z_det.requires_grad is False


def test_gradients_accumulate_over_retained_passes():
    inp = torch.eye(5, requires_grad=True)
    out = (inp + 1).pow(2)
    out.backward(torch.ones_like(inp), retain_graph=True)
    assert f"First call\n{inp.grad}" == (
        "First call\n"
        "tensor([[4., 2., 2., 2., 2.],\n"
        "        [2., 4., 2., 2., 2.],\n"
        "        [2., 2., 4., 2., 2.],\n"
        "        [2., 2., 2., 4., 2.],\n"
        "        [2., 2., 2., 2., 4.]])"
    )
    out.backward(torch.ones_like(inp), retain_graph=True)
    assert f"\nSecond call\n{inp.grad}" == (
        "\nSecond call\n"
        "tensor([[8., 4., 4., 4., 4.],\n"
        "        [4., 8., 4., 4., 4.],\n"
        "        [4., 4., 8., 4., 4.],\n"
        "        [4., 4., 4., 8., 4.],\n"
        "        [4., 4., 4., 4., 8.]])"
    )
    inp.grad.zero_()
    out.backward(torch.ones_like(inp), retain_graph=True)
    assert printed(inp.grad) == printed(2 * torch.ones(5, 5) + 2 * torch.eye(5))


# --- the fourth: the engine ---------------------------------------------------------------------------------------


def test_backward_fills_the_gradient_of_the_weight(capsys):
    w = torch.randn(5, 3, requires_grad=True)
    x = torch.randn(1, 5)
    y = x @ w
    z = y.mean()
    z.backward()
    print(w.grad.shape)
    assert capsys.readouterr().out == "torch.Size([5, 3])\n"
    assert x.grad is None
    np.testing.assert_allclose(w.grad.numpy(), np.tile(x.numpy().T / 3, (1, 3)), rtol=1e-6)


def test_each_result_says_what_made_it():
    w = torch.randn(5, 3, requires_grad=True)
    x = torch.randn(1, 5)
    y = x @ w
    z = y.mean()
    assert str(y.grad_fn).startswith("<MmBackward0 object at 0x")
    assert str(z.grad_fn).startswith("<MeanBackward0 object at 0x")
    assert w.grad_fn is None
    assert x.grad_fn is None


def test_the_training_loop_runs_as_written():
    model = torch.nn.Sequential(torch.nn.Linear(2, 8), torch.nn.ReLU(), torch.nn.Linear(8, 1))
    optimizer = torch.optim.Adam(model.parameters(), lr=0.02)
    criterion = torch.nn.MSELoss()
    points = torch.rand(64, 2)
    dataloader = [(points[i : i + 16], points[i : i + 16].sum(1, keepdim=True)) for i in range(0, 64, 16)] * 50
    losses = []
    for inputs, targets in dataloader:
        optimizer.zero_grad()
        outputs = model(inputs)
        loss = criterion(outputs, targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < 0.01 * losses[0]

    validation_data = torch.rand(8, 2)
    with torch.no_grad():
        predictions = model(validation_data)
    assert predictions.grad_fn is None
    with torch.no_grad(), torch.enable_grad():
        assert model(validation_data).requires_grad


# --- the fifth: variables and the graph -----------------------------------------------------------------------------


def test_a_variable_is_a_tensor():
    var_ex = Variable(torch.randn((4, 3)))
    assert var_ex.data.shape == (4, 3)
    assert var_ex.grad is None
    assert var_ex.grad_fn is None
    assert Variable(torch.randn((4, 3)), requires_grad=True).requires_grad


def weighted_graph(a=None):
    a = torch.tensor(2.0) if a is None else a
    w1, w2, w3, w4 = (torch.tensor(v, requires_grad=True) for v in (0.5, 1.5, 2.5, 3.5))
    b = w1 * a
    c = w2 * a
    d = w3 * b + w4 * c
    L = 10 - d
    return (w1, w2, w3, w4), (b, c, d, L)


def test_the_weighted_graph_has_the_gradients_of_the_chain_rule():
    (w1, w2, w3, w4), (_, _, d, L) = weighted_graph()
    assert L.grad_fn.name() == "RsubBackward1"
    assert [n.name() for n, _ in d.grad_fn.next_functions] == ["MulBackward0", "MulBackward0"]
    L.backward()
    assert [w.grad.item() for w in (w1, w2, w3, w4)] == [-5.0, -7.0, -1.0, -3.0]
    learning_rate = 0.1
    w1 = w1 - (learning_rate) * w1.grad
    assert w1.item() == pytest.approx(1.0)


def test_a_second_pass_over_the_graph_is_an_error_that_says_what_to_do():
    _, (*_, L) = weighted_graph()
    L.backward()
    with pytest.raises(RuntimeError, match="retain_graph=True"):
        L.backward()


def test_gradients_in_the_middle_are_kept_on_request():
    _, (b, c, _, L) = weighted_graph()
    b.retain_grad()
    L.backward()
    assert b.grad.item() == -2.5
    with pytest.warns(UserWarning, match="retain_grad"):
        assert c.grad is None


def test_a_weight_that_is_switched_off_stays_out_of_the_graph():
    a = torch.tensor(2.0, requires_grad=True)
    w1 = torch.tensor(0.5, requires_grad=False)
    w2 = torch.tensor(1.5, requires_grad=True)
    b = (w1 * a).detach()
    c = w2 * a
    (b + c).backward()
    assert a.grad.item() == 1.5
    assert w1.grad is None


def test_a_number_that_volatile_would_have_kept_out_is_switched_off():
    a = torch.tensor(2.0, requires_grad=True)
    w1, w2 = torch.tensor(0.5, requires_grad=True), torch.tensor(1.5, requires_grad=True)
    w1.requires_grad = False
    (w1 * a + w2 * a).backward()
    assert a.grad.item() == 2.0
    assert (w1.grad, w2.grad.item()) == (None, 2.0)


def test_inference_without_history():
    (w1, *_), _ = weighted_graph()
    with torch.no_grad():
        b = w1 * 2
    assert b.grad_fn is None
    assert not b.requires_grad
