"""``torch.autograd``: gradients without ``backward()``, Jacobians and Hessians, functions with rules of their own."""

import numpy as np
import pytest

import fad.debug
import fad.eager as torch
from fad.errors import CustomRuleError, NonScalarOutputError, ShapeMismatchError

functional = torch.autograd.functional
f8 = torch.float64


def near(x, expected):
    np.testing.assert_allclose(x.detach().numpy(), expected, rtol=1e-6)


# --- grad -----------------------------------------------------------------------------------------------------------


def test_grad_touches_no_leaf():
    x = torch.ones(2, requires_grad=True)
    (g,) = torch.autograd.grad((x * 3).sum(), x)
    near(g, [3.0, 3.0])
    assert x.grad is None


def test_grad_reaches_a_computed_tensor():
    x = torch.tensor(2.0, requires_grad=True)
    y = x * x
    dy, dx = torch.autograd.grad(y * y, (y, x))
    assert (dy.item(), dx.item()) == (8.0, 32.0)


def test_grad_of_an_input_that_was_not_used():
    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    with pytest.raises(torch.BackwardError, match="allow_unused"):
        torch.autograd.grad(x.sum(), (x, y))
    assert torch.autograd.grad(x.sum(), (x, y), allow_unused=True)[1] is None
    near(torch.autograd.grad(x.sum(), (x, y), materialize_grads=True)[1], [0.0, 0.0])
    with pytest.raises(torch.BackwardError, match="requires_grad_"):
        torch.autograd.grad(x.sum(), torch.ones(2))


def test_several_outputs_are_summed():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad((x * 2, x * x), x, (torch.ones(2), torch.tensor([1.0, 10.0])))
    near(g, [4.0, 42.0])


# --- functional -----------------------------------------------------------------------------------------------------

A = torch.tensor([[2.0, 1.0], [0.0, 3.0]], dtype=f8)
X = torch.tensor([1.0, -2.0], dtype=f8)
V = torch.tensor([0.5, 2.0], dtype=f8)


def quadratic(x):
    return x @ A @ x


def test_jacobian_has_outputs_outside_and_inputs_inside():
    def f(x, y):
        return x * y, (x * x).sum()

    (xx, xy), (sx, sy) = functional.jacobian(f, (X, V))
    near(xx, np.diag(V.numpy()))
    near(xy, np.diag(X.numpy()))
    near(sx, 2 * X.numpy())
    near(sy, [0.0, 0.0])


def test_hessian_of_a_quadratic_form():
    expected = A.numpy() + A.numpy().T
    near(functional.hessian(quadratic, X), expected)
    blocks = functional.hessian(lambda x, y: (x * x * y).sum(), (X, V))
    near(blocks[0][1], np.diag(2 * X.numpy()))
    near(blocks[1][1], np.zeros((2, 2)))


def test_products_agree_with_the_matrices():
    jacobian = functional.jacobian(lambda x: A @ torch.sin(x), X).numpy()
    near(functional.vjp(lambda x: A @ torch.sin(x), X, V)[1], V.numpy() @ jacobian)
    near(functional.jvp(lambda x: A @ torch.sin(x), X, V)[1], jacobian @ V.numpy())
    hessian = A.numpy() + A.numpy().T
    value, product = functional.hvp(quadratic, X, V)
    assert value.item() == quadratic(X).item()
    near(product, hessian @ V.numpy())
    near(functional.vhp(quadratic, X, V)[1], V.numpy() @ hessian)


def test_products_of_two_inputs():
    def f(x, y):
        return x * y

    _, (a, b) = functional.vjp(f, (X, V), torch.ones(2, dtype=f8))
    near(a, V.numpy())
    near(b, X.numpy())
    near(functional.jvp(f, (X, V), (V, X))[1], V.numpy() ** 2 + X.numpy() ** 2)
    _, (a, b) = functional.hvp(lambda x, y: (x * y).sum(), (X, V), (V, X))
    near(a, X.numpy())
    near(b, V.numpy())


@pytest.mark.parametrize("product", [functional.vjp, functional.jvp])
def test_results_are_recorded_under_create_graph_only(product):
    x = torch.tensor([1.0, -2.0], dtype=f8, requires_grad=True)
    f = lambda x: x * x * x
    assert not product(f, x, V)[1].requires_grad
    _, g = product(f, x, V, create_graph=True)
    near(torch.autograd.grad(g.sum(), x)[0], 6 * x.detach().numpy() * V.numpy())


def test_a_recorded_jacobian_and_hessian_go_on():
    x = torch.tensor([1.0, -2.0], dtype=f8, requires_grad=True)
    jacobian = functional.jacobian(lambda x: x**3, x, create_graph=True)
    near(torch.autograd.grad(jacobian.sum(), x)[0], 6 * x.detach().numpy())
    hessian = functional.hessian(lambda x: (x**3).sum(), x, create_graph=True)
    near(torch.autograd.grad(hessian.sum(), x)[0], [6.0, 6.0])
    assert x.grad is None


@pytest.mark.parametrize("strict", [False, True])
def test_an_output_that_does_not_depend_gives_zeros_or_with_strict_an_error(strict):
    for call in (
        lambda: functional.jacobian(lambda x: torch.ones(2), X, strict=strict),
        lambda: functional.vjp(lambda x, y: x, (X, X), V, strict=strict)[1][1],
        lambda: functional.jvp(lambda x: torch.ones(2), X, V, strict=strict)[1],
        lambda: functional.hvp(lambda x: x.sum(), X, V, strict=strict)[1],
    ):
        if strict:
            with pytest.raises(torch.BackwardError, match="strict"):
                call()
        else:
            assert not call().any()


def test_bad_calls_of_the_functional_interface():
    with pytest.raises(NonScalarOutputError, match="hessian"):
        functional.hessian(lambda x: x, X)
    with pytest.raises(NonScalarOutputError, match="needs v"):
        functional.vjp(lambda x: x, X)
    with pytest.raises(ShapeMismatchError, match="v of jvp"):
        functional.jvp(lambda x: x, X, torch.ones(3))
    with pytest.raises(TypeError, match="tensors"):
        functional.jacobian(lambda x: 3.0, X)


# --- Function -------------------------------------------------------------------------------------------------------


class Exp(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx, g):
        (y,) = ctx.saved_tensors
        return g * y


class Polar(torch.autograd.Function):
    """Two outputs, two inputs, and a number; only needed gradients are computed."""

    asked: list = []

    @staticmethod
    def forward(ctx, r, phi, scale):
        ctx.save_for_backward(r, phi)
        ctx.scale = scale
        return scale * r * phi.cos(), scale * r * phi.sin()

    @staticmethod
    def backward(ctx, gx, gy):
        r, phi = ctx.saved_tensors
        Polar.asked.append(ctx.needs_input_grad)
        gr = ctx.scale * (gx * phi.cos() + gy * phi.sin()) if ctx.needs_input_grad[0] else None
        gphi = ctx.scale * r * (gy * phi.cos() - gx * phi.sin()) if ctx.needs_input_grad[1] else None
        return gr, gphi, None


def test_a_function_with_a_rule_of_its_own_is_one_node():
    x = torch.tensor([0.5, 1.0], dtype=f8, requires_grad=True)
    y = Exp.apply(x)
    assert y.grad_fn.name() == "ExpBackward"
    assert torch.autograd.gradcheck(Exp.apply, x)
    assert torch.autograd.gradgradcheck(Exp.apply, x)


def test_a_function_of_several_inputs_and_outputs():
    r, phi = (torch.tensor([v], dtype=f8, requires_grad=True) for v in (2.0, 0.3))
    assert torch.autograd.gradcheck(lambda r, phi: Polar.apply(r, phi, 3.0), (r, phi))
    assert torch.autograd.gradgradcheck(lambda r, phi: Polar.apply(r, phi, 3.0), (r, phi))
    x, y = Polar.apply(r, phi, 1.0)
    assert [n.name() for n, _ in (x.grad_fn).next_functions[:2]] == ["AccumulateGrad"] * 2
    y.sum().backward()
    near(r.grad, np.sin([0.3]))
    Polar.asked.clear()
    Polar.apply(r.detach(), phi, 1.0)[0].sum().backward()
    assert Polar.asked == [(False, True, False)]


def test_outputs_can_be_declared_without_derivative():
    class SortWithPlaces(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            places = torch.tensor(np.argsort(x.detach().numpy()))
            ctx.mark_non_differentiable(places)
            ctx.save_for_backward(places)
            return x[places], places

        @staticmethod
        def backward(ctx, g, _):
            (places,) = ctx.saved_tensors
            out = torch.zeros_like(g)
            out[places] = g
            return out

    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    y, places = SortWithPlaces.apply(x)
    assert not places.requires_grad
    (y * torch.tensor([1.0, 10.0, 100.0])).sum().backward()
    assert x.grad.tolist() == [100.0, 1.0, 10.0]


def test_setup_context_may_stand_apart():
    class Square(torch.autograd.Function):
        @staticmethod
        def forward(x):
            return x * x

        @staticmethod
        def setup_context(ctx, inputs, output):
            ctx.save_for_backward(*inputs)

        @staticmethod
        def backward(ctx, g):
            return 2 * ctx.saved_tensors[0] * g

    x = torch.tensor([3.0], requires_grad=True)
    Square.apply(x).sum().backward()
    assert x.grad.tolist() == [6.0]


def test_a_rule_that_returns_the_wrong_thing_is_an_error():
    class Bad(torch.autograd.Function):
        returns = None

        @staticmethod
        def forward(ctx, x, y):
            return x * y

        @staticmethod
        def backward(ctx, g):
            return Bad.returns

    x, y = (torch.ones(2, requires_grad=True) for _ in range(2))
    Bad.returns = torch.ones(2)
    with pytest.raises(CustomRuleError, match="1 gradients for 2"):
        Bad.apply(x, y).sum().backward()
    Bad.returns = torch.ones(3), None
    with pytest.raises(ShapeMismatchError, match=r"\(3,\)"):
        Bad.apply(x, y).sum().backward()


def test_an_input_saved_and_changed_in_place_is_noticed():
    x = torch.ones(2, requires_grad=True)
    y = x * 1
    z = Exp.apply(y)
    z.mul_(2)
    with pytest.raises(RuntimeError, match="changed in place"):
        z.sum().backward()


# --- checks -------------------------------------------------------------------------------------------------------


def test_gradcheck_finds_a_wrong_rule():
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * x

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([3.0], dtype=f8, requires_grad=True)
    with pytest.raises(torch.autograd.GradcheckError, match="finite differences"):
        torch.autograd.gradcheck(Wrong.apply, x)
    assert torch.autograd.gradcheck(Wrong.apply, x, raise_exception=False) is False


def test_gradcheck_warns_of_float32_and_needs_something_to_check():
    with pytest.warns(UserWarning, match="float64"):
        torch.autograd.gradcheck(lambda x: x + 0, torch.ones(1, requires_grad=True), atol=0.1)
    with pytest.raises(torch.BackwardError, match="requires grad"):
        torch.autograd.gradcheck(lambda x: x, torch.ones(1))


def test_anomaly_mode_names_the_forward_line():
    x = torch.zeros(2, requires_grad=True)
    with torch.autograd.detect_anomaly(), np.errstate(all="ignore"):
        root = torch.sqrt(x)
        y = (root * 0).sum()
        with pytest.raises(fad.debug.NaNGradientError, match=r"root = torch\.sqrt\(x\)"):
            y.backward()
    with np.errstate(all="ignore"):
        (torch.sqrt(x) * 0).sum().backward()
    assert np.isnan(x.grad.numpy()).all()


def test_one_pass_from_several_tensors_adds_up_what_each_gives():
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    torch.autograd.backward([(x * x).sum(), 3.0 * x], [None, torch.tensor([1.0, 10.0])])
    assert x.grad.tolist() == [5.0, 34.0]


def test_a_backward_that_is_not_to_be_recorded_is_not():
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(False)
            ctx.save_for_backward(x)
            return x**3, 2 * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g, unused):
            assert unused is None
            (x,) = ctx.saved_tensors
            return g * 3 * x**2, None  # more than there are inputs

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (g,) = torch.autograd.grad(Cube.apply(x)[0].sum(), x, create_graph=True)
    assert g.tolist() == [3.0, 12.0]
    assert not g.requires_grad


def test_anomaly_detection_is_switched_on_and_off():
    x = torch.tensor([0.0, -1.0], requires_grad=True)
    with np.errstate(all="ignore"):
        torch.autograd.set_detect_anomaly(True)
        try:
            with pytest.raises(Exception, match=r"(?i)nan"):
                torch.sqrt(x).sum().backward()
        finally:
            torch.autograd.set_detect_anomaly(False)
        torch.sqrt(x).sum().backward()
    assert bool(x.grad.isnan().any())
