"""What is zero by selection stays zero beside infinite partial derivatives: in every mode, at every order, in jit."""

import warnings

import numpy as np
import pytest

import fad

NOT_CHOSEN = {
    "where after the root": lambda x: np.sum(np.exp(np.where(x > 0, np.sqrt(x), 0.0))),
    "where before the root": lambda x: np.sum(np.exp(np.sqrt(np.where(x > 0, x, 0.0)))),
    "maximum before the root": lambda x: np.sum(np.exp(np.sqrt(np.maximum(x, -0.0)))),
    "maximum with an array": lambda x: np.sum(np.exp(np.sqrt(np.maximum(x, np.zeros(3))))),
    "fmax of two traced": lambda x: np.sum(np.fmax(np.sqrt(x), np.exp(x)) ** 2),
    "clip": lambda x: np.sum(np.exp(np.sqrt(np.clip(x, 0.0, 9.0)))),
    "choice after the root": lambda x: np.sum(np.exp(np.maximum(np.sqrt(np.abs(x + 2.0)), 0.25))),
    "through shapes and sums": lambda x: np.exp(np.where(x > 0, np.sqrt(x), 0.0).reshape(3, 1).T * 2.0).sum(),
    "mask after the root": lambda x: np.sum(np.exp(np.sqrt(x)[x > 0])),
    "mask after a product": lambda x: np.sum(((x * np.log(np.maximum(x, 0.0))) ** 2)[[False, True, True]]),
    "index array after the root": lambda x: np.sum(np.exp(np.sqrt(x)[[1, 2, 2]])),
    "overwritten after the root": lambda x: np.sum(np.exp(fad.numpy.at(np.sqrt(x))[x <= 0].set(1.0))),
    "largest of the roots": lambda x: np.exp(np.max(np.sqrt(x + 2.0))),
    "triangle of the roots": lambda x: np.sum(np.exp(np.triu(np.sqrt(np.abs(x[:, None] - x)), 1))),
    "broadcast operand": lambda x: np.sum(np.exp(np.where(np.array([[False, True, True]] * 2), np.sqrt(x), 0.0))),
    "both branches": lambda x: np.sum(np.where(x > 0, np.sqrt(x), -x) ** 2),
    "inverse where it exists": lambda x: np.sum(inverses(np.sqrt(np.maximum(x, 0.0)))[1:]),
}  # fmt: skip
X = np.array([-2.0, 1.5, 3.0])


def inverses(r):
    return fad.numpy.at(r)[r > 0].set(1.0 / r[r > 0])


def nearby(f):
    """Return the gradient and the Hessian by differences, in directions that leave the first element where it is."""
    h = 1e-4
    E = np.eye(3)[1:]
    with np.errstate(all="ignore"):
        gradient = [(f(X + h * a) - f(X - h * a)) / (2 * h) for a in E]
        mixed = lambda a, b: f(X + h * (a + b)) - f(X + h * (a - b)) - f(X - h * (a - b)) + f(X - h * (a + b))
        return gradient, [[mixed(a, b) / (4 * h * h) for b in E] for a in E]


@pytest.mark.parametrize("name", NOT_CHOSEN)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_every_mode_and_order_agrees_where_partials_of_what_is_not_chosen_are_infinite(name):
    f = NOT_CHOSEN[name]
    gradient, second = nearby(f)
    eye = np.eye(3)
    gradients = {
        "grad": fad.grad(f)(X),
        "jvp": np.stack([fad.jvp(f, (X,), (t,))[1] for t in eye]),
        "linearize": np.stack([fad.linearize(f, X)[1](t) for t in eye]),
        "jacfwd": fad.jacfwd(f)(X),
        "jit": fad.jit(fad.grad(f))(X),
        "vmap": fad.vmap(fad.grad(f))(X[None])[0],
        "jit of jvp": fad.jit(fad.jacfwd(f))(X),
    }
    for mode, g in gradients.items():
        np.testing.assert_allclose(g[1:], gradient, rtol=1e-6, err_msg=mode)
        assert np.isfinite(g[0]), mode
        assert g[0] == gradients["grad"][0], mode
    hessians = {
        "forward over reverse": fad.jacfwd(fad.grad(f))(X),
        "reverse over reverse": np.stack([fad.grad(lambda x, i=i: fad.grad(f)(x)[i])(X) for i in range(3)]),
        "forward over forward": fad.jacfwd(fad.jacfwd(f))(X),
        "reverse over forward": fad.jacrev(fad.jacfwd(f))(X),
        "jit": fad.jit(fad.hessian(f))(X),
        "vmap": fad.vmap(fad.hessian(f))(X[None])[0],
    }
    for mode, h in hessians.items():
        np.testing.assert_allclose(h[1:, 1:], second, rtol=1e-4, atol=1e-6, err_msg=mode)
        np.testing.assert_allclose(h, hessians["forward over reverse"], rtol=1e-12, atol=1e-12, err_msg=mode)
    third = fad.jacfwd(fad.hessian(f))(X)
    assert np.isfinite(third).all()
    np.testing.assert_allclose(third, fad.jacrev(fad.jacrev(fad.grad(f)))(X), rtol=1e-10, atol=1e-10)


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_the_eager_api_treats_what_is_not_chosen_alike():
    import fad.eager as torch

    for f in (
        lambda x: torch.sqrt(torch.maximum(x, torch.zeros(3, dtype=torch.float64))),
        lambda x: torch.sqrt(torch.clamp(x, min=0.0)),
        lambda x: torch.sqrt(x)[x > 0] ** 2,
    ):
        x = torch.tensor(X, requires_grad=True)
        (g,) = torch.autograd.grad(f(x).sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), x)
        for d in (g, h):
            assert np.isfinite(d.detach().numpy()).all()
            assert d[0] == 0.0


@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_zeros_that_were_computed_are_not_taken_for_choices():
    assert fad.grad(lambda x: np.sqrt(np.maximum(x, -1.0)))(0.0) == np.inf
    assert np.isnan(fad.grad(lambda x: np.sqrt(x) ** 2)(0.0))
    assert np.isnan(fad.jvp(lambda x: np.sqrt(x * x), (0.0,), (1.0,))[1])
    assert np.isnan(fad.grad(lambda x: np.sum(np.where(x < 1, np.sqrt(x) ** 2, 0.0)))(np.array([0.0, 2.0]))[0])
    sliced = fad.grad(lambda x: np.sum(np.sqrt(x)[1:] ** 2))  # of slope 1 at zero
    for gradient in (sliced, fad.jit(sliced)):
        assert np.isnan(gradient(np.array([1.0, 0.0, 2.0]))[1])


def test_gradients_of_many_choices_added_up_need_no_deep_recursion():
    def f(x):
        total = 0.0
        for k in range(3000):
            total = total + np.sum(np.maximum(x, 0.001 * k) + np.where(x > k, x, 0.0))
        return np.sqrt(total)

    with warnings.catch_warnings(action="error"):
        g = fad.grad(lambda x: f(np.sqrt(x)))(np.array([1.0, 4.0]))
    assert np.isfinite(g).all()


def test_float32_stays_float32_and_numbers_stay_numbers():
    constant = np.float32(2.0)
    for f in (lambda x: np.maximum(x, 0.5), lambda x: np.where(x > 0, x, 0.0), lambda x: np.maximum(x, constant)):
        for x in (np.float32(2.0), np.full(3, 2.0, np.float32)):
            g = fad.grad(lambda x, f=f: np.sum(f(x)))(x)
            assert g.dtype == np.float32
            assert type(g) is type(x)
            assert fad.jvp(f, (x,), (x,))[1].dtype == np.float32


def test_a_long_chain_of_gathers_needs_no_deep_recursion():
    order = np.array([1, 0, 0])

    def f(x):
        y = np.sqrt(x)
        for _ in range(3000):
            y = y[order] * 1.0
        return np.sum(np.sqrt(y * y)[:1])

    with warnings.catch_warnings(action="error"):
        g = fad.grad(lambda x: np.sum(f(x)[None]))(np.array([4.0, 1.0, 0.0]))
    np.testing.assert_array_equal(g[2], 0.0)
    assert np.count_nonzero(g) == 1


def test_a_long_chain_of_transposes_needs_no_deep_recursion():
    def f(x):
        y = np.sqrt(x).reshape(1, x.size)
        for _ in range(3000):
            y = y.T
        return np.sum(np.where(y > 1.0, y, 0.0))

    with warnings.catch_warnings(action="error"):
        np.testing.assert_array_equal(fad.grad(f)(np.array([4.0, 1.0, 0.0])), [0.25, 0.0, 0.0])
        np.testing.assert_array_equal(fad.jvp(f, (np.array([4.0, 1.0]),), (np.ones(2),))[1], 0.25)


def test_masks_survive_products_with_numbers_and_with_arrays_between_gathers():
    order, other = np.array([1, 1, 2]), np.array([0, 1, 1])
    slopes = np.array([2.0, np.inf, 3.0])

    def f(x):
        y = (np.sqrt(x)[order] * -2.0)[other]
        return np.sum((y * slopes[[0, 0, 2]])[1:])

    with warnings.catch_warnings(action="error"):
        g = fad.grad(f)(np.array([0.0, 4.0, 9.0]))
    np.testing.assert_allclose(g, [0.0, -2.5, 0.0])


def test_warnings_are_off_for_masked_cotangents_alone():
    seen = []
    loud = fad.custom_vjp(lambda x: 1.0 * x)
    loud.defvjp(lambda x: (1.0 * x, None), lambda res, ct: seen.append(np.geterr()["over"]) or (ct,))
    before = np.geterr()
    fad.grad(lambda x: np.sum(np.maximum(loud(np.maximum(x, 0.5) * 2.0), 1.5)))(X)
    assert seen == [before["over"]]
    assert np.geterr() == before
    with pytest.warns(RuntimeWarning, match="divide"):
        fad.grad(lambda x: np.sum(np.sqrt(x)) + np.sum(np.maximum(x, 1.0)))(np.zeros(2))

    def fails(res, ct):
        raise RuntimeError("the rule")

    loud.defvjp(lambda x: (1.0 * x, None), fails)
    with pytest.raises(RuntimeError, match="the rule"):
        fad.grad(lambda x: np.sum(np.maximum(loud(np.maximum(x, 0.5)), 1.5)))(X)
    assert np.geterr() == before
