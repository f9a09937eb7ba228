"""Custom rules, linearize, linear_transpose, checkpoint, stop_gradient and eval_shape, alone and under each other."""

import numpy as np
import pytest

import fad
from fad.core.primitives.primitive import Primitive
from fad.errors import CustomRuleError, LeakedTracerError
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


def test_one_rule_per_argument_or_none_for_zero():
    f = fad.custom_jvp(lambda x, y: {"z": x * x * y})
    f.defjvps(lambda t, out, x, y: {"z": 10.0 * t * out["z"]}, None)
    assert fad.grad(lambda x, y: f(x, y)["z"], (0, 1))(2.0, 3.0) == (120.0, 0.0)
    assert fad.linearize(f, 2.0, 3.0)[1](1.0, 1.0) == {"z": 120.0}
    f.defjvps(None, None)
    assert fad.jvp(f, (2.0, 3.0), (1.0, 1.0)) == ({"z": 12.0}, {"z": 0.0})
    f.defjvps(None)
    with pytest.raises(CustomRuleError, match="2 differentiable arguments, but 1 rule"):
        fad.jvp(f, (2.0, 3.0), (1.0, 1.0))


def test_arguments_that_are_not_differentiated_may_be_named_and_left_out():
    f = fad.custom_jvp(lambda x, n=2: x**n, nondiff_argnames="n")
    f.defjvp(lambda n, primals, tangents: (f(primals[0], n), 100.0 * n * tangents[0]))
    assert f(2.0, n=5) == 32.0
    assert fad.grad(f)(2.0) == 200.0
    assert fad.grad(f)(2.0, 3) == 300.0
    assert fad.grad(lambda x: f(n=4, x=x))(2.0) == 400.0
    with pytest.raises(CustomRuleError, match="nondiff argument"):
        fad.grad(lambda x: f(x, n=x))(2.0)
    g = fad.custom_jvp(lambda x, *, n: x**n)
    g.defjvp(lambda primals, tangents: (primals[0], tangents[0]))
    with pytest.raises(CustomRuleError, match=r"keyword-only arguments \['n'\]"):
        g(2.0, n=3)


def test_a_method_may_have_a_custom_rule():
    class Scale:
        k = 3.0

    Scale.of = fad.custom_jvp(lambda self, x: self.k * x, nondiff_argnums=0)
    Scale.of.defjvp(lambda self, primals, tangents: (self.k * primals[0], 7.0 * tangents[0]))
    assert fad.value_and_grad(Scale().of)(2.0) == (6.0, 7.0)


def test_a_batching_rule_of_ones_own_is_used_for_values_and_keeps_the_derivatives():
    sizes = []
    f = fad.custom_vjp(lambda x, y: (x * y, y))
    f.defjvp(lambda p, t: (f(*p), (t[0] * p[1] + t[1] * p[0], t[1])))
    f.defvjp(lambda x, y: (f(x, y), (x, y)), lambda res, ct: (ct[0] * res[1], ct[0] * res[0] + ct[1]))

    @f.defvmap
    def rule(size, batched, x, y):
        sizes.append(size)
        return (x * y, y), (True, batched[1])

    y, same = fad.vmap(f, (0, None))(X, 2.0)
    np.testing.assert_array_equal(y, 2 * X)
    np.testing.assert_array_equal(same, [2.0, 2.0, 2.0])
    assert sizes == [3]
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(fad.vmap(f, (0, None))(x, 2.0)[0]))(X), [2.0, 2.0, 2.0])
    np.testing.assert_allclose(fad.grad(lambda y: np.sum(fad.vmap(f, (0, None))(X, y)[0]))(2.0), np.sum(X))
    np.testing.assert_array_equal(fad.vmap(fad.grad(lambda x, y: f(x, y)[0]))(X, X), X)
    alone = fad.custom_vjp(lambda x: 2 * x)
    alone.defvjp(lambda x: (2 * x, None), lambda res, ct: (2 * ct,))
    alone.defvmap(lambda size, batched, x: (2 * x, True))
    np.testing.assert_array_equal(fad.vmap(alone)(X), 2 * X)


@pytest.mark.parametrize(
    ("give", "said"),
    [
        (lambda f: f.defjvp(lambda p, t: p[0]), "must return \\(out, tangent_out\\)"),
        (lambda f: f.defjvp(lambda p, t: (p[0], t)), "tangent of structure"),
        (lambda f: f.defjvp(lambda p, t: (p[0], np.ones(2))), "tangent of shape"),
        (lambda f: f.defvjp(lambda x: x, lambda res, ct: (ct,)), "must return \\(out, residuals\\)"),
        (lambda f: f.defvjp(lambda x: (x, x), lambda res, ct: ct), "tuple of 1 cotangents"),
        (lambda f: f.defvjp(lambda x: (x, x), lambda res, ct: ((ct, ct),)), "cotangent of structure"),
        (lambda f: f.defvmap(lambda size, batched, x: x), "must return \\(out, out_batched\\)"),
        (lambda f: f.defvmap(lambda size, batched, x: (x, (True, True))), "1 outputs, but says of 2"),
        (lambda f: f.defvmap(lambda size, batched, x: (x[:2], True)), "but the batch has size 3"),
    ],
)
def test_a_custom_rule_that_returns_something_else_is_answered_with_what_it_must_return(give, said):
    f = fad.custom_jvp(lambda x: x)
    f.defjvp(lambda p, t: (p[0], t[0]))
    give(f)
    with pytest.raises(CustomRuleError, match=said):
        fad.vmap(fad.grad(f) if f._vmap is None else f)(X)


def test_trees_in_and_out_of_a_custom_rule():
    f = fad.custom_vjp(lambda p: {"y": p["a"] * p["b"]})
    f.defvjp(lambda p: (f(p), p), lambda p, ct: ({"a": ct["y"] * p["b"], "b": ct["y"] * p["a"]},))
    g = fad.grad(lambda p: f(p)["y"])({"a": 2.0, "b": 3.0})
    assert g == {"a": 3.0, "b": 2.0}


@pytest.mark.parametrize(
    ("leave", "use"),
    [
        (lambda x: fad.vjp(np.sin, x)[1], lambda pull, ct: pull(ct)),
        (lambda x: (x, "cos", slice(None)), lambda res, ct: (ct * getattr(np, res[1])(res[0][res[2]]),)),
    ],
    ids=["pullback", "string"],
)
def test_a_forward_rule_may_leave_any_object_to_the_backward_rule(leave, use):
    weight = np.ones(3)
    f = fad.custom_vjp(lambda x: np.sin(x) * weight)
    f.defvjp(lambda x: (np.sin(x) * weight, leave(x * weight)), use)
    x, two = np.stack([X, X + 1]), lambda f: lambda x: np.sum(fad.vmap(f)(x))
    for derivative in (fad.grad(two(f)), fad.jit(fad.grad(two(f))), fad.vmap(fad.grad(lambda x: np.sum(f(x))))):
        np.testing.assert_allclose(derivative(x), np.cos(x))
    _, pull = fad.vjp(fad.vmap(fad.vmap(f)), np.stack([x, x]))
    weight *= 2  # what the rule found when it ran
    np.testing.assert_allclose(pull(np.ones((2, 2, 3)))[0], np.stack([np.cos(x)] * 2))


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


def test_linear_transpose_and_linearize_take_python_numbers():
    assert fad.linear_transpose(lambda x: 2 * x, 1.0)(3.0) == (6.0,)
    y, push = fad.linearize(np.sin, 0.0)
    assert (y, push(3.0)) == (0.0, 3.0)


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


LOOPS = {
    "fori_loop": lambda f, x: fad.fori_loop(0, 1, lambda i, s: f(s), x),
    "while_loop": lambda f, x: fad.while_loop(lambda s: s[0] < 1, lambda s: (s[0] + 1, f(s[1])), (0, x))[1],
    "cond": lambda f, x: fad.cond(x > -9.0, f, lambda x: x, x),
}


@pytest.mark.parametrize("loop", LOOPS.values(), ids=LOOPS)
def test_stop_gradient_and_batching_rules_hold_in_bodies_under_vmap(loop):
    f = fad.custom_jvp(lambda x: x * 2.0)
    f.defjvp(lambda primals, tangents: (f(*primals), 3.0 * tangents[0]))
    f.defvmap(lambda size, batched, x: (x * 2.0 + 100.0, True))
    np.testing.assert_array_equal(fad.jit(fad.vmap(lambda x: loop(f, x)))(X), X * 2.0 + 100.0)

    def total(x):
        return np.sum(fad.vmap(lambda x: loop(lambda s: s * fad.stop_gradient(s), x))(x))

    np.testing.assert_array_equal(fad.jit(fad.grad(total))(X), X)
    np.testing.assert_array_equal(fad.jit(fad.jacfwd(total))(X), X)


def test_stop_gradient_is_a_constant_at_every_level_and_keeps_the_batch_elements():
    assert fad.grad(fad.grad(lambda x: x * fad.stop_gradient(x * x)))(3.0) == 0.0
    np.testing.assert_allclose(fad.vmap(fad.grad(lambda x: x * fad.stop_gradient(x)))(X), X)
    tree = fad.stop_gradient({"a": 1.0, "b": [X]})
    np.testing.assert_array_equal(tree["b"][0], X)
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


def test_linearize_passes_on_what_is_returned_beside_the_output():
    y, push, aux = fad.linearize(lambda x: (x * x, {"seen": x + 1.0}), 3.0, has_aux=True)
    assert (y, push(2.0), aux) == (9.0, 12.0, {"seen": 4.0})


def test_the_linear_map_of_a_constant_output_gives_zeros_like_it():
    y, push = fad.linearize(lambda x: {"constant": np.ones(2, np.float32), "x": x}, 3.0)
    found = push(2.0)
    assert found["x"] == 2.0
    np.testing.assert_array_equal(found["constant"], [0.0, 0.0])
    assert found["constant"].dtype == y["constant"].dtype == np.float32


def test_a_checkpoint_under_vmap_takes_what_is_not_mapped_as_it_is():
    f = fad.checkpoint(lambda x, w: np.sin(x * np.sum(w)))
    w = np.array([0.3, 0.9])
    for around in (lambda f: f, fad.jit):
        slopes = around(fad.vmap(fad.grad(f, (0, 1)), (0, None)))(X, w)
        np.testing.assert_allclose(slopes[0], np.sum(w) * np.cos(X * np.sum(w)))
        np.testing.assert_allclose(slopes[1], np.broadcast_to((X * np.cos(X * np.sum(w)))[:, None], (3, 2)))
        g = around(fad.grad(lambda x, w: np.sum(fad.vmap(f, (0, None))(x, w)), (0, 1)))(X, w)
        np.testing.assert_allclose(g[0], slopes[0])
        np.testing.assert_allclose(g[1], np.sum(slopes[1], axis=0))


class _Layer:
    def __init__(self):
        self.made = {}

    def attribute(self, x):
        self.kept = 2 * x
        return np.sin(self.kept)

    def element(self, x):
        self.kept = self.made.setdefault("b", np.zeros(3))
        self.kept[:] = x**2
        return np.sin(self.kept)

    def view(self, x):
        y = np.zeros(4)
        y[1:] = x**2
        self.kept = y[1:]
        return np.sin(y)


@pytest.mark.parametrize("name", ["attribute", "element", "view"])
def test_what_a_checkpoint_computes_and_keeps_is_no_value_of_the_function_around_it(name):
    def penalised(x):
        layer = _Layer()
        return np.sum(fad.checkpoint(getattr(layer, name))(x)) + np.sum(layer.kept * np.exp(x))

    def read_as_a_number(x):
        layer = _Layer()
        return np.sum(fad.checkpoint(getattr(layer, name))(x)) + np.sum(fad.stop_gradient(layer.kept))

    x = np.array([0.3, 0.5, 0.7])
    for refused in (fad.grad(penalised), fad.jit(fad.grad(penalised)), fad.jacrev(fad.grad(penalised))):
        with pytest.raises(LeakedTracerError, match="under checkpoint"):
            refused(x)
    with pytest.raises(LeakedTracerError, match="under checkpoint"):
        fad.vmap(fad.grad(penalised))(np.stack([x, x]))
    wanted = fad.grad(lambda x: np.sum(getattr(_Layer(), name)(x)))(x)
    np.testing.assert_allclose(fad.grad(read_as_a_number)(x), wanted)


def test_an_array_that_a_checkpoint_keeps_is_a_plain_one_when_its_gradient_is_done():
    layer = _Layer()
    fad.grad(lambda x: np.sum(fad.checkpoint(layer.element)(x)))(np.array([0.3, 0.5, 0.7]))
    np.testing.assert_allclose(np.asarray(layer.kept), [0.09, 0.25, 0.49])


def test_a_policy_that_checkpoint_does_not_know_is_refused():
    with pytest.raises(ValueError, match=r"policy of checkpoint.*'some'"):
        fad.checkpoint(np.sin, policy="some")


@pytest.mark.parametrize("kind", ["jvp", "vjp"])
def test_nondiff_arguments_may_be_traced_by_jit_and_vmap_but_by_no_derivative(kind):
    if kind == "jvp":
        f = fad.custom_jvp(lambda n, x: n * x, nondiff_argnums=0)
        f.defjvp(lambda n, primals, tangents: (f(n, *primals), 10.0 * n * tangents[0]))
    else:
        f = fad.custom_vjp(lambda n, x: n * x, nondiff_argnums=0)
        f.defvjp(lambda n, x: (n * x, None), lambda n, res, ct: (10.0 * n * ct,))
    n, x = np.array([2.0, 3.0]), np.array([3.0, 4.0])
    assert fad.jit(f)(2.0, 3.0) == 6.0
    assert fad.jit(fad.grad(f, 1))(2.0, 3.0) == 20.0
    assert fad.grad(fad.jit(f), 1)(2.0, 3.0) == 20.0
    np.testing.assert_array_equal(fad.vmap(f)(n, x), [6.0, 12.0])
    np.testing.assert_array_equal(fad.vmap(f, (0, None))(n, 3.0), [6.0, 9.0])
    np.testing.assert_array_equal(fad.vmap(fad.grad(f, 1))(n, x), [20.0, 30.0])
    np.testing.assert_array_equal(fad.vmap(fad.grad(f, 1), (None, 0))(2.0, x), [20.0, 20.0])
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(fad.vmap(f)(n, x)))(x), [20.0, 30.0])
    np.testing.assert_array_equal(fad.jvp(lambda x: fad.vmap(f)(n, x), (x,), (x,))[1], [60.0, 120.0])
    counted = fad.jit(fad.grad(lambda x: fad.fori_loop(0, 3, lambda i, s: s + f(1.0 * i, x), 0.0)))
    assert counted(3.0) == 30.0
    carried = fad.jit(fad.grad(lambda n, x: fad.fori_loop(0, 3, lambda i, s: s + f(s, x), n)))
    jitted = fad.jit(fad.grad(f)), carried
    for derivative in (fad.grad(f), lambda n, x: fad.jvp(lambda n: f(n, x), (n,), (1.0,)), *jitted):
        with pytest.raises(fad.errors.CustomRuleError, match="nondiff argument"):
            derivative(2.0, 3.0)
