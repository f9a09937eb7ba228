"""Leaves, accumulation, hooks, freeing: what ``backward()`` does, and what it refuses."""

import gc
import threading
import weakref

import numpy as np
import pytest

import fad
import fad.eager as torch
from fad.errors import IntegerInputError, NonScalarOutputError, ShapeMismatchError


@pytest.fixture
def x():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


def values(t):
    return t.detach().tolist()


def test_only_leaves_get_gradients(x):
    y = x * x
    y.sum().backward()
    assert values(x.grad) == [2.0, 4.0, 6.0]
    with pytest.warns(UserWarning, match=r"retain_grad"):
        assert y.grad is None


def test_a_second_backward_adds(x):
    for _ in range(2):
        (x * x).sum().backward()
    assert values(x.grad) == [4.0, 8.0, 12.0]


def test_the_gradient_keeps_its_identity_while_it_accumulates(x):
    x.sum().backward()
    g = x.grad
    x.sum().backward()
    assert x.grad is g
    assert values(g) == [2.0, 2.0, 2.0]


def test_two_leaves_do_not_share_the_memory_of_one_gradient():
    x, y = (torch.ones(3, requires_grad=True) for _ in range(2))
    (x + y).sum().backward()
    x.grad.zero_()
    assert values(y.grad) == [1.0, 1.0, 1.0]


def test_the_gradient_does_not_share_memory_with_the_vector_given(x):
    v = torch.ones(3)
    (x + 1).backward(v)
    v.zero_()
    assert values(x.grad) == [1.0, 1.0, 1.0]


def test_a_value_used_many_times_collects_all_paths(x):
    y = x * 2
    (y * y + y + x).sum().backward()
    assert values(x.grad) == [8 * v + 3 for v in (1.0, 2.0, 3.0)]


def test_backward_without_a_vector_needs_one_number(x):
    with pytest.raises(NonScalarOutputError, match=r"y\.sum\(\)\.backward\(\)"):
        (x * x).backward()
    with pytest.raises(RuntimeError):
        (x * x).backward()


def test_a_vector_of_the_wrong_shape_is_refused(x):
    with pytest.raises(ShapeMismatchError, match=r"\(3,\)"):
        (x * x).backward(torch.ones(2))


def test_backward_without_any_history_says_what_is_missing():
    with pytest.raises(RuntimeError, match="requires_grad=True"):
        torch.ones(1).backward()


def test_a_second_pass_over_freed_values_says_what_to_do(x):
    y = (x * x).sum()
    y.backward()
    with pytest.raises(torch.BackwardError, match="retain_graph=True") as error:
        y.backward()
    assert "y = (x * x).sum()" in str(error.value)


def test_a_graph_that_saved_nothing_may_be_passed_again(x):
    y = (x + 1).sum()
    y.backward()
    y.backward()
    assert values(x.grad) == [2.0, 2.0, 2.0]


def test_a_retained_graph_may_be_passed_again(x):
    y = (x * x).sum()
    y.backward(retain_graph=True)
    y.backward()
    assert values(x.grad) == [4.0, 8.0, 12.0]


W = np.arange(1.0, 10.0).reshape(3, 3) / 7
OF_SEVERAL_RESULTS = {
    "det": lambda x: np.linalg.det(x) ** 2,
    "eigh": lambda x: np.sum(np.linalg.eigh(x + x.T)[0] ** 3) + np.sum(np.linalg.eigh(x + x.T)[1] ** 2 * W),
    "eig": lambda x: np.sum(np.linalg.eig(x)[1].real ** 2 * W) + np.sum(np.linalg.eig(x)[0].real ** 3),
    "svd": lambda x: np.sum(np.linalg.svd(x)[0] ** 2 * W) + np.sum(np.linalg.svd(x)[1] ** 3),
    "svd of a high matrix": lambda x: np.sum(np.linalg.svd(x[:, :2])[0] ** 2 * W),
    "qr of a high matrix": lambda x: np.sum(np.linalg.qr(x[:, :2], mode="complete")[0] ** 2 * W),
    "qr of a wide matrix": lambda x: np.sum(np.linalg.qr(x[:2])[1] ** 2 * W[:2]),
}


@pytest.mark.parametrize("what", OF_SEVERAL_RESULTS)
def test_first_and_second_gradients_of_decompositions_are_those_of_arrays(what):
    f = OF_SEVERAL_RESULTS[what]
    x = np.array([[1.0, 0.3, 0.2], [0.1, 2.0, 0.4], [0.5, -0.3, 3.0]])
    t = torch.tensor(x, requires_grad=True)
    (g,) = torch.autograd.grad(f(t), t, create_graph=True)
    np.testing.assert_allclose(g.detach().numpy(), fad.grad(f)(x), atol=1e-12)
    (g * torch.tensor(W)).sum().backward()
    np.testing.assert_allclose(t.grad.numpy(), fad.grad(lambda x: np.sum(fad.grad(f)(x) * W))(x), atol=1e-12)


def test_create_graph_gives_gradients_with_a_history(x):
    (x**3).sum().backward(create_graph=True)
    assert values(x.grad) == [3.0, 12.0, 27.0]
    (g,) = torch.autograd.grad(x.grad.sum(), x)
    assert values(g) == [6.0, 12.0, 18.0]


def test_derivatives_go_to_any_order():
    x = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = x**5
    for expected in (80.0, 160.0, 240.0, 240.0, 120.0):
        (y,) = torch.autograd.grad(y, x, create_graph=True)
        assert y.item() == expected


@pytest.mark.parametrize(
    "f",
    [
        lambda x: torch.exp(x) / x,
        lambda x: (x @ x.t()).sin(),
        lambda x: torch.nn.functional.softmax(x, -1) * x,
        lambda x: x[1:] * x[:-1] + x[[0]],
        lambda x: torch.cat([x, x * x]).cumsum(0),
        lambda x: x.std(1) + x.norm() + x.max() + torch.logsumexp(x, 0).sum(),
        lambda x: torch.where(x > 0.5, x, x * x).reshape(-1).prod(),
        lambda x: torch.nn.functional.gelu(x).unsqueeze(1).expand(2, 3, 2).mean(1),
        lambda x: torch.einsum("ij,kj->ik", x, x).clamp(0.1, 0.9),
    ],
)
def test_first_and_second_derivatives_agree_with_differences(f):
    torch.manual_seed(3)
    x = torch.rand(2, 2, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(f, x)
    assert torch.autograd.gradgradcheck(f, x)


def test_retain_grad_keeps_the_gradient_of_a_computed_tensor(x):
    y = x * 2
    y.retain_grad()
    assert y.retains_grad
    (y * y).sum().backward()
    assert values(y.grad) == [4.0, 8.0, 12.0]


def test_a_hook_sees_the_whole_gradient_once_and_may_replace_it(x):
    seen = []
    handle = x.register_hook(lambda g: seen.append(values(g)) or g * 10)
    (x * x + x).sum().backward()
    assert seen == [[3.0, 5.0, 7.0]]
    assert values(x.grad) == [30.0, 50.0, 70.0]
    handle.remove()
    x.grad = None
    x.sum().backward()
    assert values(x.grad) == [1.0, 1.0, 1.0]
    assert len(seen) == 1


def test_a_hook_on_a_computed_tensor_changes_what_flows_on(x):
    y = x * 2
    with y.register_hook(lambda g: -g):
        y.sum().backward()
    assert values(x.grad) == [-2.0, -2.0, -2.0]


def test_backward_may_be_restricted_to_some_leaves():
    a, b = (torch.ones(2, requires_grad=True) for _ in range(2))
    (a * b).sum().backward(inputs=a)
    assert values(a.grad) == [1.0, 1.0]
    assert b.grad is None


def test_requires_grad_is_refused_for_integers_and_for_computed_tensors(x):
    with pytest.raises(IntegerInputError, match="float"):
        torch.tensor([1, 2], requires_grad=True)
    with pytest.raises(torch.BackwardError, match="detach"):
        (x * 2).requires_grad_(False)


def test_requires_grad_can_be_switched_on_later():
    a = torch.ones(2)
    assert (a * 2).grad_fn is None
    a.requires_grad_(True)
    (a * 2).sum().backward()
    assert values(a.grad) == [2.0, 2.0]


def test_a_loop_over_elements_collects_into_one_gradient():
    x = torch.arange(50.0).requires_grad_()
    total = 0.0
    for i in range(50):
        total = total + x[i] * x[i]
    total.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2 * np.arange(50.0))


def test_the_gradient_has_the_dtype_of_its_leaf():
    a = torch.ones(2, dtype=torch.float64, requires_grad=True)
    b = torch.ones(2, requires_grad=True)
    (a * b).sum().backward()
    assert (a.grad.dtype, b.grad.dtype) == (torch.float64, torch.float32)


def test_a_deep_graph_needs_no_recursion():
    x = torch.ones(2, requires_grad=True)
    y = x
    for _ in range(20_000):
        y = y + 1
    y.sum().backward()
    assert values(x.grad) == [1.0, 1.0]
    del y


def test_values_live_as_long_as_the_graph_needs_them_and_no_longer():
    gc.disable()
    try:
        x = torch.ones(3, requires_grad=True)
        y = torch.exp(x)
        saved = weakref.ref(y.value)
        z = y.sum()
        del y
        assert saved() is not None
        z.backward()
        assert saved() is None
        y = (x * 2).mean() * torch.nn.functional.mse_loss(x, 2 * x)
        tensor = weakref.ref(x)
        del x, y, z
        assert tensor() is None
    finally:
        gc.enable()


def test_recording_is_a_matter_of_each_thread(x):
    seen = []

    def elsewhere():
        seen.append((torch.is_grad_enabled(), (x * 2).requires_grad))

    with torch.no_grad():
        thread = threading.Thread(target=elsewhere)
        thread.start()
        thread.join()
        assert not (x * 2).requires_grad
    assert seen == [(True, True)]


def test_modes_nest_and_come_back(x):
    with torch.no_grad():
        with torch.enable_grad():
            assert (x * 2).requires_grad
        assert not (x * 2).requires_grad
        with torch.set_grad_enabled(True):
            assert (x * 2).requires_grad
        assert not torch.is_grad_enabled()
    assert torch.is_grad_enabled()
    torch.set_grad_enabled(False)
    assert not torch.is_grad_enabled()
    torch.set_grad_enabled(True)


def test_modes_come_back_after_an_error(x):
    with pytest.raises(ZeroDivisionError), torch.no_grad():
        raise ZeroDivisionError
    assert torch.is_grad_enabled()


def test_modes_decorate_functions_and_generators(x):
    @torch.no_grad
    def plain():
        return x * 2

    @torch.no_grad()
    def steps():
        yield x * 2

    @torch.set_grad_enabled(False)
    def off():
        return x * 2

    assert not plain().requires_grad
    for y in steps():
        assert not y.requires_grad
        assert torch.is_grad_enabled()
    assert not off().requires_grad
    assert torch.is_grad_enabled()


def test_the_graph_walks_back_to_the_variable_itself(x):
    y = (x * 2).sum()
    leaf = y.grad_fn.next_functions[0][0].next_functions[0][0]
    assert leaf.name() == "AccumulateGrad"
    assert leaf.variable is x
    assert y.grad_fn is y.grad_fn


def test_the_graph_draws_itself(x):
    dot = torch.autograd.graph.to_dot(x.sin() * x)
    assert dot.count("->") == 3
    assert "SinBackward0" in dot
    assert [n.name() for n in torch.autograd.graph.nodes(x.sin())] == ["SinBackward0", "AccumulateGrad"]


def test_the_graph_draws_itself_as_a_page_that_needs_no_network(x):
    page = torch.autograd.graph.to_html((x.sin() * x).sum())
    assert page.count("<rect") == 4
    assert "SinBackward0" in page
    assert "x.sin() * x" in page
    assert "http://" not in page.replace("http://www.w3.org/2000/svg", "")
