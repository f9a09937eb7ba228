"""Custom rules, linearize, linear_transpose, checkpoint, stop_gradient and eval_shape, alone and under each other."""

import numpy as np
import pytest

import fad
from fad.core.primitive import Primitive
from fad.testing import call, check_grads, contract

X = np.array([0.5, -1.0, 2.0])


def _log1pexp_jvp():
    @fad.custom_jvp
    def f(x):
        return np.log1p(np.exp(x))

    @f.defjvp
    def _(primals, tangents):
        (x,), (t,) = primals, tangents
        return f(x), t * (1 - 1 / (1 + np.exp(x)))

    return f


def _log1pexp_vjp():
    @fad.custom_vjp
    def f(x):
        return np.log1p(np.exp(x))

    f.defvjp(lambda x: (f(x), x), lambda x, ct: (ct * (1 - 1 / (1 + np.exp(x))),))
    return f


RULES = [_log1pexp_jvp, _log1pexp_vjp]


@pytest.mark.parametrize("make", RULES)
def test_one_rule_serves_every_transform(make):
    f = make()
    check_grads(f, (X,), order=2)
    np.testing.assert_allclose(fad.grad(f)(1.0), 1 / (1 + np.exp(-1.0)))
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(X), 1 / (1 + np.exp(-X)))
    np.testing.assert_allclose(fad.hessian(lambda x: np.sum(f(x)))(X), np.diag(np.exp(X) / (1 + np.exp(X)) ** 2))
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(fad.vmap(f)(x)))(X), 1 / (1 + np.exp(-X)))


@pytest.mark.parametrize("make", RULES)
def test_a_function_with_a_custom_rule_can_be_held_to_the_contract(make):
    contract(make(), samples=lambda s: [call(s.real(3, 4)), call(s.real())])


def test_a_custom_rule_is_used_and_not_the_derived_one():
    f = fad.custom_jvp(lambda x: x * x)
    f.defjvp(lambda primals, tangents: (primals[0] ** 2, 100.0 * tangents[0]))
    assert fad.grad(f)(3.0) == 100.0
    assert fad.jvp(f, (3.0,), (1.0,))[1] == 100.0
    g = fad.custom_vjp(lambda x: x * x)
    g.defvjp(lambda x: (x * x, None), lambda _, ct: (100.0 * ct,))
    assert fad.grad(g)(3.0) == 100.0
    assert fad.jvp(g, (3.0,), (1.0,))[1] == 100.0


def test_arguments_that_are_not_differentiated():
    clip_gradient = fad.custom_vjp(lambda limit, x: x, nondiff_argnums=(0,))
    clip_gradient.defvjp(lambda limit, x: (x, None), lambda limit, _, ct: (np.clip(ct, -limit, limit),))
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(clip_gradient(0.5, x) ** 2))(X), np.clip(2 * X, -0.5, 0.5))


def test_none_is_a_zero_cotangent():
    f = fad.custom_vjp(lambda x, y: x * y)
    f.defvjp(lambda x, y: (x * y, y), lambda y, ct: (ct * y, None))
    assert fad.grad(f, (0, 1))(2.0, 3.0) == (3.0, 0.0)


def test_trees_in_and_out_of_a_custom_rule():
    f = fad.custom_vjp(lambda p: {"y": p["a"] * p["b"]})
    f.defvjp(lambda p: (f(p), p), lambda p, ct: ({"a": ct["y"] * p["b"], "b": ct["y"] * p["a"]},))
    g = fad.grad(lambda p: f(p)["y"])({"a": 2.0, "b": 3.0})
    assert g == {"a": 3.0, "b": 2.0}


def test_linearize_runs_the_function_once():
    runs = []

    def f(x):
        runs.append(1)
        return np.sin(x) * x

    _, push = fad.linearize(f, X)
    for t in np.eye(3):
        np.testing.assert_allclose(push(t), t * (np.cos(X) * X + np.sin(X)))
    assert len(runs) == 1
    np.testing.assert_allclose(fad.vmap(push)(np.eye(3)), np.diag(np.cos(X) * X + np.sin(X)))


def test_linear_transpose_of_a_convolution_is_a_correlation():
    w = np.array([1.0, -2.0, 0.5])
    f = lambda x: np.convolve(x, w)
    (back,) = fad.linear_transpose(f, X)(np.arange(5.0))
    np.testing.assert_allclose(back, np.correlate(np.arange(5.0), w, "valid"))


def test_checkpoint_runs_the_function_again_and_changes_nothing():
    runs = []

    def block(x, w):
        runs.append(1)
        return np.tanh(x * w)

    f = lambda x, w: np.sum(fad.checkpoint(block)(fad.checkpoint(block)(x, w), w))
    plain = lambda x, w: np.sum(np.tanh(np.tanh(x * w) * w))
    for a, b in zip(fad.grad(f, (0, 1))(X, 2 * X), fad.grad(plain, (0, 1))(X, 2 * X), strict=True):
        np.testing.assert_allclose(a, b)
    assert len(runs) == 4
    np.testing.assert_allclose(fad.hessian(f)(X, 2 * X), fad.hessian(plain)(X, 2 * X))
    np.testing.assert_allclose(fad.vmap(fad.grad(f))(np.stack([X, -X]), np.stack([X, X])),
                               fad.vmap(fad.grad(plain))(np.stack([X, -X]), np.stack([X, X])))  # fmt: skip


def test_checkpoint_of_a_closure_over_a_traced_value():
    def f(w):
        block = fad.checkpoint(lambda x: np.sin(w * x))
        return np.sum(block(block(X)))

    np.testing.assert_allclose(fad.grad(f)(0.7), fad.grad(lambda w: np.sum(np.sin(w * np.sin(w * X))))(0.7))


def test_stop_gradient_is_a_constant_at_every_level_and_keeps_the_lanes():
    assert fad.grad(fad.grad(lambda x: x * fad.stop_gradient(x * x)))(3.0) == 0.0
    np.testing.assert_allclose(fad.vmap(fad.grad(lambda x: x * fad.stop_gradient(x)))(X), X)
    tree = fad.stop_gradient({"a": 1.0, "b": [X]})
    assert tree["b"][0] is X
    assert fad.jvp(lambda x: fad.stop_gradient(x), (3.0,), (1.0,)) == (3.0, 0.0)


def test_straight_through_estimator():
    f = lambda x: np.sum(x + fad.stop_gradient(np.round(x) - x))
    assert f(X) == np.sum(np.round(X))
    np.testing.assert_array_equal(fad.grad(f)(X), np.ones(3))


def test_eval_shape():
    out = fad.eval_shape(lambda x: {"y": x @ x.T, "n": np.sum(x)}, np.ones((2, 3), np.float32))
    assert out["y"] == fad.ShapeDtypeStruct((2, 2), "float32")
    assert out["n"] == fad.ShapeDtypeStruct((), "float32")


def test_a_users_primitive_with_one_rule_has_all_of_them():
    forward_only = Primitive(
        "users_cube", lambda x: x**3, jvp=lambda tangents, y, xs, params: 3.0 * xs[0] ** 2 * tangents[0],
        batch=lambda size, batched, xs, params: forward_only(xs[0]), samples=lambda s: [call(s.real(3, 4))],
    )  # fmt: skip
    reverse_only = Primitive(
        "users_fourth", lambda x: x**4, vjp=(lambda ct, y, x: 4.0 * x**3 * ct,),
        batch=lambda size, batched, xs, params: reverse_only(xs[0]), samples=lambda s: [call(s.real(3, 4))],
    )  # fmt: skip
    contract(forward_only)
    contract(reverse_only)


def test_a_function_that_draws_other_numbers_when_it_runs_again_is_an_error():
    rng = np.random.default_rng(0)
    noisy = fad.checkpoint(lambda x: np.tanh(x * rng.standard_normal(3)))
    with pytest.raises(fad.errors.ImpureFunctionError, match="ran again for the backward pass"):
        fad.grad(lambda x: np.sum(noisy(x) ** 2))(np.ones(3))
    with pytest.raises(fad.errors.ImpureFunctionError, match="checkpoint"):
        fad.vmap(fad.grad(lambda x: np.sum(noisy(x) ** 2)))(np.ones((2, 3)))


def test_values_that_are_not_numbers_are_the_same_when_a_checkpoint_runs_again():
    f = fad.checkpoint(lambda x: np.log(x))
    with np.errstate(all="ignore"):
        found = fad.grad(lambda x: np.sum(f(x)[2:]))(np.array([-1.0, 0.0, 2.0]))
    np.testing.assert_array_equal(found[2:], [0.5])
