"""Changes in place: done where they can be tracked, refused where they cannot, noticed where they spoil a gradient."""

import numpy as np
import pytest

import fad.eager as torch
from fad.eager.core import inplace
from fad.errors import MutationError, ShapeMismatchError


@pytest.fixture
def w():
    return torch.tensor([1.0, 2.0, 3.0], requires_grad=True)


@pytest.mark.parametrize(
    "change",
    [
        lambda w: w.add_(1),
        lambda w: w.mul_(2),
        lambda w: w.zero_(),
        lambda w: w.__setitem__(0, 5.0),
        lambda w: w.__iadd__(1),
        lambda w: w[0].mul_(2),
    ],
)
def test_a_leaf_that_requires_grad_is_left_alone(w, change):
    with pytest.raises(torch.InPlaceError, match="no_grad"):
        change(w)
    assert w.tolist() == [1.0, 2.0, 3.0]


def test_without_recording_a_leaf_is_updated_in_place(w):
    same = w
    (w * w).sum().backward()
    with torch.no_grad():
        w -= 0.5 * w.grad
    assert w is same
    assert w.is_leaf
    assert w.tolist() == [0.0, 0.0, 0.0]


def test_data_and_detach_share_the_memory(w):
    w.data -= 1
    w.detach()[2] = 9.0
    assert w.tolist() == [0.0, 1.0, 9.0]
    assert w.requires_grad


def test_a_computed_tensor_is_changed_and_the_change_has_a_derivative(w):
    y = w * 2
    y += w
    y.mul_(3).add_(1)
    assert y.detach().tolist() == [10.0, 19.0, 28.0]
    y.sum().backward()
    assert w.grad.tolist() == [9.0, 9.0, 9.0]


def test_assignment_to_an_index_cuts_off_what_was_there(w):
    y = w * 2
    y[1] = w[0] * 5
    y.sum().backward()
    assert w.grad.tolist() == [7.0, 0.0, 2.0]


def test_a_plain_tensor_becomes_tracked_when_something_tracked_is_put_in(w):
    y = torch.zeros(2, 3)
    y[0] = w
    y[:, 1] = w[2:]
    assert y.requires_grad
    (y * torch.arange(6.0).view(2, 3)).sum().backward()
    assert w.grad.tolist() == [0.0, 0.0, 7.0]


def test_a_slice_is_changed_together_with_what_it_was_taken_from(w):
    y = w * 1
    y[0:2] *= 10
    part = y[2]
    part.add_(w[0] * 4).mul_(2)
    assert y.detach().tolist() == [10.0, 20.0, 14.0]
    y.sum().backward()
    assert w.grad.tolist() == [10.0 + 8.0, 10.0, 2.0]


def test_an_operation_in_place_keeps_a_copy_of_what_its_own_rule_needs(w):
    y = w * 1
    y.mul_(w)
    y.sin_()
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), np.cos([1.0, 4.0, 9.0]) * [2.0, 4.0, 6.0], rtol=1e-5)


def test_masked_assignment(w):
    y = w * w
    y[y > 3] = 0.0
    y.sum().backward()
    assert w.grad.tolist() == [2.0, 0.0, 0.0]


def test_zeroing_a_computed_tensor_cuts_it_off(w):
    y = w * 2
    y.zero_()
    (y + w).sum().backward()
    assert w.grad.tolist() == [1.0, 1.0, 1.0]


def test_the_sum_of_losses_may_grow_in_place(w):
    total = torch.tensor(0.0)
    for _ in range(3):
        total += (w * w).sum()
    total.backward()
    assert w.grad.tolist() == [6.0, 12.0, 18.0]


def test_a_saved_value_that_was_changed_is_an_error_that_names_both_lines(w):
    a = w * 1
    b = torch.sin(a)
    a.add_(1)
    with pytest.raises(MutationError) as error:
        b.sum().backward()
    assert "saved at" in str(error.value)
    assert "b = torch.sin(a)" in str(error.value)
    assert "a.add_(1)" in str(error.value)
    assert "SinBackward0" in str(error.value)


@pytest.mark.parametrize(
    "spoil",
    [lambda b: b.mul_(2), lambda b: b.detach().zero_(), lambda b: b.__setitem__(0, 1.0), lambda b: b.data.fill_(0.0)],
)
def test_a_result_that_its_own_rule_needs_may_not_be_changed(w, spoil):
    b = torch.exp(w)
    spoil(b)
    with pytest.raises(MutationError, match="ExpBackward0"):
        b.sum().backward()


def test_a_change_of_what_no_rule_needs_is_allowed(w):
    b = w + 1
    b.mul_(2)
    b.sum().backward()
    assert w.grad.tolist() == [2.0, 2.0, 2.0]


def test_a_parameter_that_was_updated_before_backward_is_noticed(w):
    y = (w * w).sum()
    with torch.no_grad():
        w.zero_()
    with pytest.raises(MutationError, match=r"w\.zero_"):
        y.backward()


def test_an_update_after_backward_does_not_disturb_the_next_pass(w):
    for _ in range(3):
        w.grad = None
        (w * w).sum().backward()
        with torch.no_grad():
            w -= 0.25 * w.grad
    np.testing.assert_allclose(w.tolist(), [0.125, 0.25, 0.375])


def test_views_follow_a_change_of_what_they_were_taken_from(w):
    a = w * 1
    column, row, last = a.view(3, 1), a.view(3, 1).t(), a[2]
    a.mul_(2)
    (column.sum() + 10 * row.sum() + 100 * last).backward()
    assert w.grad.tolist() == [22.0, 22.0, 222.0]


def test_a_change_of_a_view_is_one_of_what_it_was_taken_from_and_of_its_other_views(w):
    a = w * 1
    column, first = a.view(3, 1), a[0]
    column.mul_(w.view(3, 1))
    first.mul_(3)
    assert a.detach().tolist() == [3.0, 4.0, 9.0]
    assert column.detach().tolist() == [[3.0], [4.0], [9.0]]
    (a + column.view(3)).sum().backward()
    assert w.grad.tolist() == [12.0, 8.0, 12.0]


def test_memory_that_an_array_shows_too_is_not_changed_under_recording(w):
    array = np.zeros(6)
    part = torch.from_numpy(array[:3])
    with pytest.raises(torch.InPlaceError, match="clone"):
        part.add_(w)


def test_the_shape_and_the_kind_of_number_stay(w):
    y = w * 1
    with pytest.raises(ShapeMismatchError, match="keep the shape"):
        y += torch.ones(2, 3)
    i = torch.arange(3)
    with pytest.raises(TypeError, match="int64"):
        i += 0.5


def test_copy_and_fill_write_through():
    x = torch.zeros(2, 2)
    row = x[0]
    row.copy_(torch.tensor([1.0, 2.0]))
    x[1].fill_(7)
    assert x.tolist() == [[1.0, 2.0], [7.0, 7.0]]


def test_what_an_operation_inside_a_layer_does_not_read_may_be_changed():
    """As residual networks do: ``out = bn(conv(x)); out += x``."""
    torch.manual_seed(0)
    layer = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.BatchNorm1d(3))
    x = torch.randn(4, 3)

    def gradients(add):
        out = layer(x)
        out = add(out, x)
        layer.zero_grad()
        (out * out).sum().backward()
        return [p.grad.numpy().copy() for p in layer.parameters()]

    def in_place(out, x):
        out += x
        return out

    for a, b in zip(gradients(in_place), gradients(lambda out, x: out + x), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-6)


def test_a_change_looks_at_what_it_records_and_not_at_the_history_of_what_it_adds(monkeypatch):
    h, looks = torch.ones(2, requires_grad=True) * 1.0, []
    for _ in range(200):
        h = torch.tanh(h)
    look = inplace.find_saved_in
    monkeypatch.setattr(inplace, "find_saved_in", lambda rec: looks.append(rec) or look(rec))
    out = torch.zeros(2)
    out += h
    assert len(looks) <= 1
