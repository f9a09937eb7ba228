"""Identities of calculus, on random programs: what holds for single operations must hold for their compositions."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

import fad
from fad.testing import check_grads, numerical_jvp
from fad.testing.strategies import arrays, programs, programs_and_points

TIGHT = dict(rtol=1e-9, atol=1e-9)


def _directions(xs, seed):
    rng = np.random.default_rng(seed)
    return tuple(rng.normal(size=x.shape) for x in xs)


def _along(f, xs, ts):
    return fad.jvp(f, xs, ts)[1]


@given(programs_and_points(), st.floats(-3, 3))
def test_a_jvp_is_linear_in_its_tangent(drawn, factor):
    f, xs = drawn
    u, v = _directions(xs, 1), _directions(xs, 2)
    both = tuple(a + factor * b for a, b in zip(u, v, strict=True))
    np.testing.assert_allclose(_along(f, xs, both), _along(f, xs, u) + factor * _along(f, xs, v), **TIGHT)


@given(programs_and_points(), st.floats(-3, 3))
def test_a_pullback_is_linear_in_its_cotangent(drawn, factor):
    f, xs = drawn
    y, pullback = fad.vjp(f, *xs)
    (u,), (v,) = _directions((y,), 1), _directions((y,), 2)
    for both, a, b in zip(pullback(u + factor * v), pullback(u), pullback(v), strict=True):
        np.testing.assert_allclose(both, a + factor * b, **TIGHT)


@given(programs_and_points())
def test_the_jvp_is_the_derivative(drawn):
    f, xs = drawn
    ts = _directions(xs, 1)
    np.testing.assert_allclose(_along(f, xs, ts), numerical_jvp(f, xs, ts), rtol=1e-7, atol=1e-7)


@given(programs_and_points())
def test_the_pullback_is_the_transpose_of_the_jvp(drawn):
    f, xs = drawn
    ts = _directions(xs, 1)
    y, pullback = fad.vjp(f, *xs)
    (ct,) = _directions((y,), 2)
    left = sum(np.sum(c * t) for c, t in zip(pullback(ct), ts, strict=True))
    np.testing.assert_allclose(left, np.sum(ct * _along(f, xs, ts)), **TIGHT)


@given(programs_and_points(inputs=2), programs(inputs=1))
def test_the_chain_rule(drawn, outer):
    inner, xs = drawn
    ts = _directions(xs, 1)
    y, dy = fad.jvp(inner, xs, ts)
    z, dz = fad.jvp(outer, (y,), (dy,))
    whole, dwhole = fad.jvp(lambda *a: outer(inner(*a)), xs, ts)
    np.testing.assert_allclose(whole, z, **TIGHT)
    np.testing.assert_allclose(dwhole, dz, **TIGHT)
    _, pull_outer = fad.vjp(outer, y)
    _, pull_inner = fad.vjp(inner, *xs)
    (ct,) = _directions((z,), 2)
    _, pull = fad.vjp(lambda *a: outer(inner(*a)), *xs)
    for a, b in zip(pull(ct), pull_inner(*pull_outer(ct)), strict=True):
        np.testing.assert_allclose(a, b, **TIGHT)


@given(programs_and_points(), programs(inputs=1))
def test_the_derivative_of_a_sum_is_the_sum_of_derivatives_and_of_a_product_is_leibniz(drawn, other):
    f, xs = drawn
    ts = _directions(xs, 1)

    def g(*a):
        return other(a[0])

    (y, dy), (z, dz) = fad.jvp(f, xs, ts), fad.jvp(g, xs, ts)
    np.testing.assert_allclose(_along(lambda *a: f(*a) + g(*a), xs, ts), dy + dz, **TIGHT)
    np.testing.assert_allclose(_along(lambda *a: f(*a) * g(*a), xs, ts), dy * z + y * dz, **TIGHT)


@given(programs_and_points(inputs=1, max_steps=4))
def test_the_hessian_is_symmetric_and_its_four_ways_agree(drawn):
    f, xs = drawn
    h = fad.hessian(f.scalar)(*xs)
    np.testing.assert_allclose(h, h.T, rtol=1e-8, atol=1e-8)
    for name, other in {
        "jacfwd of jacrev": fad.jacfwd(fad.jacrev(f.scalar)),
        "jacrev of jacfwd": fad.jacrev(fad.jacfwd(f.scalar)),
        "jacrev of jacrev": fad.jacrev(fad.jacrev(f.scalar)),
        "jacfwd of jacfwd": fad.jacfwd(fad.jacfwd(f.scalar)),
    }.items():
        np.testing.assert_allclose(other(*xs), h, rtol=1e-8, atol=1e-8, err_msg=name)


@given(programs_and_points(inputs=2, max_steps=4))
def test_mixed_second_derivatives_commute(drawn):
    f, xs = drawn
    xy = fad.jacfwd(fad.grad(f.scalar, 0), 1)(*xs)
    yx = fad.jacfwd(fad.grad(f.scalar, 1), 0)(*xs)
    np.testing.assert_allclose(xy, yx.T, rtol=1e-8, atol=1e-8)


@given(programs_and_points(inputs=1, max_steps=4))
def test_hvp_and_vhp_are_products_with_the_hessian(drawn):
    f, (x,) = drawn
    (v,) = _directions((x,), 1)
    wanted = fad.hessian(f.scalar)(x) @ v
    for product in (fad.hvp, fad.vhp):
        value, found = product(f.scalar, (x,), (v,))
        np.testing.assert_allclose(value, f.scalar(x), **TIGHT)
        np.testing.assert_allclose(found, wanted, rtol=1e-8, atol=1e-8)


@given(programs_and_points(max_steps=3))
def test_third_derivatives_agree_between_forward_and_reverse(drawn):
    f, xs = drawn
    u, v, w = (_directions(xs, seed) for seed in (1, 2, 3))

    def first(*a):
        return _along(f.scalar, a, u)

    def second(*a):
        return _along(first, a, v)

    forward = _along(second, xs, w)
    gradients = fad.grad(second, tuple(range(len(xs))))(*xs)
    np.testing.assert_allclose(
        sum(np.sum(g * t) for g, t in zip(gradients, w, strict=True)), forward, rtol=1e-8, atol=1e-8
    )


@given(programs_and_points(max_steps=3))
def test_derivatives_to_third_order_are_numerical_ones(drawn):
    f, xs = drawn
    check_grads(f, xs, order=3, atol=1e-5, rtol=1e-5)


@given(programs(inputs=2, max_steps=4), arrays(shape=(3, 4)), arrays(shape=(4,)))
def test_vmap_of_grad_is_a_loop_of_grad(f, batch, y):
    g = fad.grad(f.scalar, (0, 1))
    found = fad.vmap(g, in_axes=(0, None))(batch, y)
    for k, part in enumerate(found):
        np.testing.assert_allclose(part, np.stack([g(row, y)[k] for row in batch]), **TIGHT)


@given(programs(inputs=1, max_steps=3), arrays(shape=(3, 2)))
def test_vmap_of_hessian_is_a_loop_of_hessian(f, batch):
    h = fad.hessian(f.scalar)
    np.testing.assert_allclose(fad.vmap(h)(batch), np.stack([h(row) for row in batch]), rtol=1e-8, atol=1e-8)


@given(programs(inputs=1, max_steps=4), arrays(shape=(3, 2)))
def test_grad_of_a_sum_of_vmap_stacks_the_gradients_of_the_batch_elements(f, batch):
    found = fad.grad(lambda b: np.sum(fad.vmap(f.scalar)(b)))(batch)
    np.testing.assert_allclose(found, np.stack([fad.grad(f.scalar)(row) for row in batch]), **TIGHT)


@given(programs(inputs=2, max_steps=4), arrays(shape=(2, 3)), arrays(shape=(4, 3)))
def test_nested_vmaps_are_nested_loops(f, a, b):
    outer = fad.vmap(lambda x: fad.vmap(lambda y: f(x, y))(b))(a)
    np.testing.assert_allclose(outer, np.array([[f(x, y) for y in b] for x in a]), **TIGHT)


@given(programs_and_points())
def test_checkpoint_changes_nothing(drawn):
    f, xs = drawn
    nums = tuple(range(len(xs)))
    plain, saved = fad.grad(f.scalar, nums), fad.grad(lambda *a: np.sum(fad.checkpoint(f)(*a)), nums)
    ts = _directions(xs, 1)
    for a, b in zip(saved(*xs), plain(*xs), strict=True):
        np.testing.assert_allclose(a, b, **TIGHT)
    np.testing.assert_allclose(_along(fad.checkpoint(f), xs, ts), _along(f, xs, ts), **TIGHT)
    for a, b in zip(_along(saved, xs, ts), _along(plain, xs, ts), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-8, atol=1e-8)


@given(programs_and_points())
def test_linearize_is_the_jvp_and_its_transpose_the_pullback(drawn):
    f, xs = drawn
    ts = _directions(xs, 1)
    y, push = fad.linearize(f, *xs)
    np.testing.assert_allclose(y, f(*xs), **TIGHT)
    np.testing.assert_allclose(push(*ts), _along(f, xs, ts), **TIGHT)
    (ct,) = _directions((y,), 2)
    for a, b in zip(fad.linear_transpose(push, *xs)(ct), fad.vjp(f, *xs)[1](ct), strict=True):
        np.testing.assert_allclose(a, b, **TIGHT)


@given(programs_and_points(inputs=2))
def test_jacobians_are_built_of_pushes_and_pulls(drawn):
    f, xs = drawn
    (t, _) = _directions(xs, 1)
    forward, reverse = fad.jacfwd(f)(*xs), fad.jacrev(f)(*xs)
    np.testing.assert_allclose(forward, reverse, **TIGHT)
    np.testing.assert_allclose(fad.jacobian(f)(*xs), forward, **TIGHT)
    np.testing.assert_allclose(forward @ t, _along(lambda x: f(x, xs[1]), xs[:1], (t,)), **TIGHT)


@given(programs_and_points())
def test_stop_gradient_makes_a_constant(drawn):
    f, xs = drawn
    g = fad.grad(lambda *a: np.sum(f(*a) * fad.stop_gradient(f(*a))), 0)(*xs)
    y, pullback = fad.vjp(f, *xs)
    np.testing.assert_allclose(g, pullback(y)[0], **TIGHT)


@given(programs_and_points(inputs=1))
def test_a_custom_rule_made_of_the_derived_one_changes_nothing(drawn):
    f, (x,) = drawn
    g = fad.custom_jvp(f)
    g.defjvp(lambda primals, tangents: fad.jvp(f, primals, tangents))
    h = fad.custom_vjp(f)
    h.defvjp(lambda x: fad.vjp(f, x), lambda pullback, ct: pullback(ct))
    wanted = fad.grad(f.scalar)(x)
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(g(x)))(x), wanted, **TIGHT)
    np.testing.assert_allclose(fad.grad(lambda x: np.sum(h(x)))(x), wanted, **TIGHT)
