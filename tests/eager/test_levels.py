"""Tensors inside transforms, transforms inside eager code, and NumPy on tensors: one engine at every level."""

import numpy as np
import pytest

import fad
import fad.eager as torch
from fad.eager.core.engine import MixedLevelsError
from fad.errors import TracerConversionError

V = np.array([1.0, 2.0])


def near(x, expected):
    x = x.detach() if isinstance(x, torch.Tensor) else x
    np.testing.assert_allclose(np.asarray(x), expected, rtol=1e-7)


@pytest.fixture
def t():
    return torch.tensor(V, requires_grad=True)


# --- transforms of functions that use tensors inside -----------------------------------------------------------------


def test_a_transform_sees_through_tensors_made_inside():
    f = lambda x: (torch.tensor(x).sin() * 2).sum()
    near(fad.grad(f)(V), 2 * np.cos(V))
    near(fad.hessian(f)(V), np.diag(-2 * np.sin(V)))


def test_transforms_take_tensors_and_return_tensors():
    x = torch.tensor(V)
    g = fad.grad(lambda x: (x**3).sum())(x)
    assert isinstance(g, torch.Tensor)
    near(g, 3 * V**2)
    near(fad.hessian(lambda x: (x**3).sum())(x), np.diag(6 * V))
    near(fad.jacobian(lambda x: x * x.sum())(x), np.full((2, 2), V[:, None]) + 3 * np.eye(2))
    value, tangent = fad.jvp(torch.sin, (x,), (x,))
    near(value, np.sin(V))
    near(tangent, np.cos(V) * V)
    near(fad.vmap(lambda row: row @ row)(torch.ones(3, 2)), [2.0, 2.0, 2.0])
    near(fad.grad(lambda d: (d["a"] * d["b"]).sum())({"a": x, "b": 2 * x})["a"], 2 * V)


def test_a_backward_pass_inside_a_transform_is_differentiated():
    def gradient_sum(x):
        a = torch.tensor(x, requires_grad=True)
        (a**3).sum().backward()
        return a.grad.sum()

    near(fad.grad(gradient_sum)(V), 6 * V)


def test_a_recorded_backward_pass_inside_a_transform_is_differentiated():
    def f(x):
        a = torch.tensor(x, requires_grad=True)
        (g,) = torch.autograd.grad((a**3).sum(), a, create_graph=True)
        (h,) = torch.autograd.grad((g * g).sum(), a)  # 36 a^3
        return h.sum()

    near(f(V), 36 * (V**3).sum())
    near(fad.grad(f)(V), 108 * V**2)
    near(fad.vmap(lambda x: f(x.reshape(1)))(V), 36 * V**3)


def test_mixing_what_is_recorded_inside_with_what_is_recorded_outside_is_refused(t):
    with pytest.raises(MixedLevelsError, match=r"detach\(\)"):
        fad.grad(lambda x: (torch.tensor(x, requires_grad=True) * t).sum())(V)


def test_a_traced_tensor_does_not_become_an_array_or_a_target():
    with pytest.raises(TracerConversionError, match="stop_gradient"):
        fad.grad(lambda x: np.asarray(torch.tensor(x)).sum())(V)
    with pytest.raises(torch.InPlaceError, match="out of place"):
        fad.grad(lambda x: torch.tensor(x).add_(1).sum())(V)


# --- transforms inside eager code ---------------------------------------------------------------------------------


def test_what_a_transform_returns_is_part_of_the_history(t):
    g = fad.grad(lambda x: (x**3).sum())(t)
    assert g.requires_grad
    (g + t * t).sum().backward()
    near(t.grad, 6 * V + 2 * V)


def test_a_transform_of_a_function_that_closes_over_a_recorded_tensor(t):
    g = fad.grad(lambda x: (t * x * x).sum())(torch.tensor(V))
    g.sum().backward()
    near(t.grad, 2 * V)


def test_without_recording_a_transform_returns_tensors_without_history(t):
    with torch.no_grad():
        assert not fad.grad(lambda x: (x**3).sum())(t).requires_grad


def test_custom_rules_and_checkpoints_hold_in_eager_code(t):
    @fad.custom_vjp
    def clipped(x):
        return x * 1.0

    clipped.defvjp(lambda x: (x * 1.0, None), lambda _, ct: (np.clip(ct, -1.0, 1.0),))
    (5 * clipped(t)).sum().backward()
    near(t.grad, [1.0, 1.0])
    t.grad = None
    fad.checkpoint(lambda x: torch.sin(x).sum())(t).backward()
    near(t.grad, np.cos(V))


# --- NumPy on tensors -----------------------------------------------------------------------------------------------


def test_numpy_functions_are_recorded(t):
    y = np.sin(t) * np.sum(t) + np.stack([t, t])[0]
    assert isinstance(y, torch.Tensor)
    y.sum().backward()
    near(t.grad, np.cos(V) * 3 + np.sin(V).sum() + 1)


def test_numpy_names_give_the_same_nodes(t):
    assert np.sin(t).grad_fn.name() == "SinBackward0"
    assert np.sum(t).grad_fn.name() == "SumBackward0"
    assert (np.ones(2) * t).grad_fn.name() == "MulBackward0"
    assert (np.eye(2) @ t).grad_fn.name() == "MvBackward0"


def test_an_array_on_the_left_does_not_loop_over_the_tensor(t):
    near(V + t, 2 * V)
    near(np.float64(2.0) * t, 2 * V)
    assert (t < V).dtype == bool


def test_out_is_refused(t):
    with pytest.raises(TracerConversionError, match="out="):
        np.sin(t, out=np.zeros(2))


def test_a_function_with_a_rule_of_its_own_keeps_it_inside_transforms():
    class Through(torch.autograd.Function):
        """A step forward, and a slope of 10 backward."""

        @staticmethod
        def forward(ctx, x, scale):
            ctx.save_for_backward(x)
            ctx.scale = scale
            return (x > 0).double() * scale

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return ctx.scale * g * x, None

    f = lambda x: Through.apply(torch.tensor(x), 10.0).sum()
    near(fad.grad(f)(V), 10 * V)
    near(fad.vmap(fad.grad(lambda x: f(x.reshape(1))))(V), 10 * V)
    near(fad.jacobian(fad.grad(f))(V), 10 * np.eye(2))


def test_a_layer_of_the_functional_api_takes_tensors_under_a_transform(t):
    layer = fad.nn.Linear(2, 3, key=0)
    loss = lambda model: (model(t) ** 2).sum()
    g = fad.grad(loss)(layer)
    y = layer.weight @ V + layer.bias
    near(fad.stop_gradient(g.bias), 2 * y)
    torch.as_tensor(g.bias).sum().backward()  # it depends on t, and so has a history
    near(t.grad, 2 * layer.weight.sum(0))


# --- repeated eigenvalues -------------------------------------------------------------------------------------------

REPEATED, OTHERS = np.diag([1.0, 1.0, 2.0]), np.arange(9.0).reshape(3, 3)


def cube_of_a_matrix(a):
    w, v = torch.linalg.eigh(torch.as_tensor(a))
    return (v @ (w[:, None] ** 3 * v.T) * torch.as_tensor(OTHERS)).sum()


def test_transforms_of_tensors_are_exact_at_repeated_eigenvalues():
    s = 0.5 * (OTHERS + OTHERS.T)
    expected = sum(np.linalg.matrix_power(REPEATED, k) @ s @ np.linalg.matrix_power(REPEATED, 2 - k) for k in range(3))
    near(fad.grad(cube_of_a_matrix)(REPEATED), expected)


def test_the_tape_says_that_it_cannot_know_at_repeated_eigenvalues():
    x = torch.tensor(REPEATED, requires_grad=True)
    y = cube_of_a_matrix(x)
    with pytest.warns(fad.errors.GaugeDependenceWarning, match="fad.grad and the other transforms are exact there"):
        y.backward()


@pytest.mark.parametrize("function", [torch.linalg.pinv, torch.linalg.svdvals, torch.linalg.inv])
def test_the_tape_is_exact_where_one_node_holds_what_treats_repeated_values_alike(function):
    x = torch.tensor(REPEATED, requires_grad=True)
    (g,) = torch.autograd.grad((function(x) ** 2).sum(), x, create_graph=True)
    f = {"linalg_pinv": np.linalg.pinv, "linalg_svdvals": lambda a: np.linalg.svd(a, compute_uv=False)}.get(
        function.__name__, np.linalg.inv
    )
    first = fad.grad(lambda a: np.sum(f(a) ** 2))
    near(g, first(REPEATED))
    (g**2).sum().backward()
    near(x.grad, fad.grad(lambda a: np.sum(first(a) ** 2))(REPEATED))
