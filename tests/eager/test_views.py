"""Views share memory and history with what they were taken from, in both directions, as PyTorch's do."""

import numpy as np
import pytest

import fad.eager as torch
from fad.errors import ShapeMismatchError

MATRIX = np.arange(12.0).reshape(3, 4)
VIEWS = {
    "narrow": lambda x: x.narrow(0, 1, 2),
    "narrow from the end": lambda x: torch.narrow(x, 1, -3, 2),
    "diagonal": lambda x: x.diagonal(),
    "diagonal of an offset": lambda x: torch.diagonal(x, 1),
    "linalg.diagonal": lambda x: torch.linalg.diagonal(x),
    "movedim": lambda x: x.movedim(0, 1),
    "moveaxis": lambda x: torch.moveaxis(x, 1, 0),
    "swapaxes": lambda x: x.swapaxes(0, 1),
    "swapdims": lambda x: torch.swapdims(x, 0, 1),
    "atleast_1d": torch.atleast_1d,
    "atleast_2d": lambda x: torch.atleast_2d(x[0]),
    "atleast_3d": torch.atleast_3d,
    "unfold": lambda x: x.unfold(1, 2, 2),
    "expand without repeating": lambda x: x.expand(1, 3, 4),
    "expand_as itself": lambda x: x.expand_as(x),
    "select": lambda x: x.select(0, 1),
    "unflatten": lambda x: x.unflatten(1, (2, 2)),
    "adjoint": lambda x: x.adjoint(),
    "H": lambda x: x.H,
    "T": lambda x: x.T,
    "view": lambda x: x.view(2, 6),
    "flatten": lambda x: x.flatten(),
    "steps": lambda x: x[:, ::2],
    "a new axis": lambda x: x[None],
    "real": lambda x: x.real,
    "conj": lambda x: x.conj(),
    "+x": lambda x: +x,
    "Flatten": lambda x: torch.nn.Flatten()(x),
    "Unflatten": lambda x: torch.nn.Unflatten(1, (2, 2))(x),
    "Identity": lambda x: torch.nn.Identity()(x),
    "a view of a view": lambda x: x.t().diagonal()[1:],
}
REPEATING = {
    "expand": lambda x: x.expand(2, 3, 4),
    "expand_as": lambda x: x.expand_as(torch.ones(2, 3, 4)),
    "broadcast_to": lambda x: torch.broadcast_to(x, (2, 3, 4)),
    "broadcast_tensors": lambda x: torch.broadcast_tensors(x, torch.ones(2, 1, 1))[0],
    "unfold with overlap": lambda x: x.unfold(1, 2, 1),
    "meshgrid": lambda x: torch.meshgrid(x[0], x[1], indexing="ij")[0],
    "meshgrid xy": lambda x: torch.meshgrid(x[0], x[1], indexing="xy")[1],
}
COPIES = {
    "contiguous of a transpose": lambda x: x.t().contiguous(),
    "rot90 by nothing": lambda x: x.rot90(0),
    "tile by one": lambda x: x.tile(1),
    "reshape of a transpose": lambda x: x.t().reshape(-1),
    "np.reshape": lambda x: np.reshape(x, (4, 3)),
    "diag": lambda x: x.diag(),
}


def places(view):
    """Return which elements of the matrix a view shows."""
    return np.asarray(view(torch.tensor(MATRIX))).astype(int)


def leaf_and_copy():
    a = torch.tensor(MATRIX, requires_grad=True)
    return a, a * 1


@pytest.mark.parametrize("name", [*VIEWS, *REPEATING])
def test_a_view_follows_a_change_of_what_it_was_taken_from(name):
    view = (VIEWS | REPEATING)[name]
    a, b = leaf_and_copy()
    c = view(b)
    b.mul_(3)
    np.testing.assert_array_equal(c.detach(), 3 * MATRIX.ravel()[places(view)])
    (c * c).sum().backward()
    shown = np.bincount(places(view).ravel(), minlength=12).reshape(3, 4)
    np.testing.assert_array_equal(a.grad, 18 * MATRIX * shown)


@pytest.mark.parametrize("name", VIEWS)
def test_a_change_of_a_view_is_one_of_what_it_was_taken_from(name):
    view = VIEWS[name]
    a, b = leaf_and_copy()
    view(b).mul_(2)
    factor = np.ones(12)
    factor[places(view)] = 2
    factor = factor.reshape(3, 4)
    np.testing.assert_array_equal(b.detach(), factor * MATRIX)
    (b * b).sum().backward()
    np.testing.assert_array_equal(a.grad, 2 * factor**2 * MATRIX)


@pytest.mark.parametrize("name", VIEWS)
def test_without_recording_a_view_is_written_through_too(name):
    x = torch.tensor(MATRIX)
    VIEWS[name](x).zero_()
    assert np.all(x.numpy().ravel()[places(VIEWS[name])] == 0)


@pytest.mark.parametrize("name", REPEATING)
@pytest.mark.parametrize("tracked", [True, False])
def test_a_view_in_which_elements_are_repeated_is_not_written_into(name, tracked):
    x = leaf_and_copy()[1] if tracked else torch.tensor(MATRIX)
    with pytest.raises(torch.InPlaceError, match="clone"):
        REPEATING[name](x).add_(1)
    assert np.array_equal(x.detach(), MATRIX)


@pytest.mark.parametrize("name", COPIES)
def test_what_is_no_view_shares_nothing(name):
    _, b = leaf_and_copy()
    before = np.array(COPIES[name](b).detach())
    c = COPIES[name](b)
    c.mul_(2)
    assert np.array_equal(b.detach(), MATRIX)
    c = COPIES[name](b)
    b.mul_(3)
    np.testing.assert_array_equal(c.detach(), before)


NUMBERS = {
    "reshape": lambda x: x.reshape(1),
    "view": lambda x: x.view(1, 1),
    "view as it is": lambda x: x.view(()),
    "unsqueeze": lambda x: x.unsqueeze(0),
    "squeeze": lambda x: x.squeeze(),
    "squeeze of an axis": lambda x: x.squeeze(0),
    "expand": lambda x: x.expand(1),
    "None": lambda x: x[None],
    "...": lambda x: x[...],
    "()": lambda x: x[()],
    "permute": lambda x: x.permute(()),
    "flatten": lambda x: x.flatten(),
    "atleast_1d": torch.atleast_1d,
    "atleast_2d": torch.atleast_2d,
    "atleast_3d": torch.atleast_3d,
    "t": lambda x: x.t(),
    "detach": lambda x: x.detach(),
}


@pytest.mark.parametrize("name", NUMBERS)
@pytest.mark.parametrize("make", [lambda a: a * 1, lambda a: (a * 1).reshape(1).sum()], ids=["product", "sum"])
def test_views_of_a_single_number_share_its_memory_and_history(name, make):
    a = torch.tensor(2.0, requires_grad=True)
    b = make(a)
    c = NUMBERS[name](b)
    b.mul_(10)
    assert c.detach().reshape(()).item() == 20.0
    c.mul_(3)
    assert b.item() == 60.0
    if name != "detach":
        (b + c.sum()).backward()
        assert a.grad.item() == 60.0


def test_expand_of_a_single_number_is_a_view_not_to_be_written_into():
    b = torch.tensor(2.0, requires_grad=True) * 1
    c = b.expand(3)
    b.mul_(2)
    assert c.tolist() == [4.0, 4.0, 4.0]
    with pytest.raises(torch.InPlaceError):
        c.mul_(2)


def test_view_never_copies():
    with pytest.raises(ShapeMismatchError, match="reshape"):
        torch.tensor(MATRIX).t().view(12)


@pytest.mark.parametrize(
    ("method", "args"), [("unsqueeze_", (0,)), ("t_", ()), ("transpose_", (0, 1)), ("squeeze_", ())]
)
def test_a_new_shape_in_place_keeps_the_history_also_without_recording(method, args):
    a, b = leaf_and_copy()
    with torch.no_grad():
        getattr(b, method)(*args)
    assert b.requires_grad
    assert not b.is_leaf
    weights = torch.arange(12.0).reshape(b.shape).double()
    (b * weights).sum().backward()
    expected = np.arange(12.0).reshape(3, 4) if method not in ("t_", "transpose_") else np.arange(12.0).reshape(4, 3).T
    np.testing.assert_array_equal(a.grad, expected)


def test_views_taken_before_a_new_shape_in_place_go_on_showing_the_same_elements():
    a, b = leaf_and_copy()
    row = b[1]
    b.unsqueeze_(0)
    b.mul_(2)
    assert row.detach().tolist() == [8.0, 10.0, 12.0, 14.0]
    row.mul_(5)
    (b * b).sum().backward()
    factor = np.array([[2.0], [10.0], [2.0]])
    np.testing.assert_array_equal(a.grad, 2 * factor**2 * MATRIX)


def test_a_view_of_a_view_takes_another_shape_in_place():
    a, b = leaf_and_copy()
    row = b[1]
    row.unsqueeze_(1)
    row.mul_(3)
    assert row.shape == (4, 1)
    b.sum().backward()
    np.testing.assert_array_equal(a.grad, np.array([[1.0], [3.0], [1.0]]) * np.ones((3, 4)))
