"""The rows that a scan runs over and the results that it stacks have the derivatives that a plain loop gives them."""

import numpy as np
import pytest

import fad
from fad.errors import DtypeMismatchError, ShapeMismatchError

RNG = np.random.default_rng(0)


def loop(f, init, xs, reverse=False):
    carry, ys = init, []
    for x in xs[::-1] if reverse else xs:
        carry, y = f(carry, x)
        ys.append(y)
    return carry, np.stack(ys[::-1] if reverse else ys)


def scan(f, init, xs, reverse=False):
    return fad.scan(f, init, xs, reverse=reverse)


def cell(carry, x):
    carry = np.tanh(0.5 * carry + x)
    return carry, carry * x


def total(run, f=cell, **options):
    def of(init, xs):
        carry, ys = run(f, init, xs, **options)
        return np.sum(carry**2) + np.sum(np.cos(ys))

    return of


@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize("shape", [(), (1,), (3,), (200,), (2, 3)])
def test_the_gradient_of_a_scan_is_that_of_a_plain_loop(shape, reverse):
    init, xs = RNG.standard_normal(shape)[()], RNG.standard_normal((4, *shape))
    for argnums in (0, 1, (0, 1)):
        found = fad.value_and_grad(total(scan, reverse=reverse), argnums)(init, xs)
        expected = fad.value_and_grad(total(loop, reverse=reverse), argnums)(init, xs)
        for a, b in zip(fad.tree.leaves(found), fad.tree.leaves(expected), strict=True):
            assert type(a) is type(b)
            assert a.dtype == b.dtype
            np.testing.assert_allclose(a, b, rtol=1e-12)


@pytest.mark.parametrize("shape", [(), (3,), (200,)])
def test_derivatives_of_higher_order_go_through_rows_and_stacked_results(shape):
    init, xs = RNG.standard_normal(shape)[()], RNG.standard_normal((3, *shape))
    v = RNG.standard_normal(xs.shape)
    for f in (total(scan), total(loop)):
        along = fad.jvp(fad.grad(f, 1), (init, xs), (np.zeros_like(init), v))[1]
        twice = fad.grad(lambda xs, f=f: np.sum(fad.grad(f, 1)(init, xs) * v))(xs)
        np.testing.assert_allclose(twice, along, rtol=1e-10)


def test_a_pullback_of_a_scan_takes_many_cotangents_and_is_differentiable_in_them():
    xs = RNG.standard_normal((4, 3))

    def pullback(run):
        return fad.vjp(lambda xs: run(cell, np.zeros(3), xs)[1], xs)[1]

    of_scan, of_loop = pullback(scan), pullback(loop)
    ct, other = RNG.standard_normal((2, 4, 3))
    for given in (ct, other, ct):
        np.testing.assert_allclose(of_scan(given)[0], of_loop(given)[0], rtol=1e-12)
    for transform, cts in ((fad.jacobian, ct), (fad.vmap, np.stack([ct, other]))):
        found = transform(lambda ct: of_scan(ct)[0])(cts)
        np.testing.assert_allclose(found, transform(lambda ct: of_loop(ct)[0])(cts), rtol=1e-12)


def test_rows_that_no_step_reads_and_results_that_nobody_reads_have_no_derivative():
    xs = RNG.standard_normal((4, 3))

    def skip(carry, x):
        k, s = carry
        return (k + 1, s + (x * x if k == 2 else 0.0)), x

    found = fad.grad(lambda xs: np.sum(fad.scan(skip, (0, np.zeros(3)), xs)[0][1]))(xs)
    np.testing.assert_array_equal(found, np.where(np.arange(4)[:, None] == 2, 2 * xs, 0.0))
    stacked = fad.grad(lambda xs: np.sum(fad.scan(skip, (0, np.zeros(3)), xs)[1]))(xs)
    np.testing.assert_array_equal(stacked, np.ones((4, 3)))
    none = fad.grad(lambda xs: 3.0 + 0.0 * np.sum(fad.scan(lambda c, x: (c, 1.0), 0.0, xs)[1]))(xs)
    np.testing.assert_array_equal(none, np.zeros((4, 3)))


def test_trees_of_rows_and_results_of_which_some_are_constant_are_taken_apart_and_stacked():
    a, b = RNG.standard_normal((4, 3)), RNG.standard_normal(4)

    def step(carry, x):
        return carry * x["b"] + x["a"], {"both": (carry, x["a"]), "constant": np.ones(2), "count": 1}

    def f(a, b):
        carry, ys = fad.scan(step, np.zeros(3), {"a": a, "b": b})
        assert ys["constant"].shape == (4, 2)
        assert ys["count"].tolist() == [1] * 4
        return np.sum(carry) + np.sum(ys["both"][0] * ys["both"][1])

    def by_hand(a, b):
        carry, total = np.zeros(3), 0.0
        for k in range(4):
            total = total + np.sum(carry * a[k])
            carry = carry * b[k] + a[k]
        return np.sum(carry) + total

    for x, y in zip(fad.grad(f, (0, 1))(a, b), fad.grad(by_hand, (0, 1))(a, b), strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-12)


def test_a_scan_over_a_part_of_an_array_in_a_program_that_writes_has_the_right_gradient():
    x = RNG.standard_normal((5, 3))

    def f(x, run):
        y = np.zeros((5, 3))
        y[1:] = x[:4] ** 2
        carry, ys = run(cell, np.zeros(3), y[1:])
        y[0] = carry
        return np.sum(y**3) + np.sum(ys)

    np.testing.assert_allclose(fad.grad(f)(x, scan), fad.grad(f)(x, loop), rtol=1e-12)


@pytest.mark.parametrize("n", [2, 60])
def test_a_later_step_that_changes_the_form_of_the_state_is_refused_too(n):
    def grow(carry, x):
        return (np.concatenate([carry, carry]) if x == n - 1 else carry), None

    def widen(carry, x):
        return ((carry * np.complex128(1)).real.astype(np.float32) if x == n - 1 else 2.0 * carry), None

    def loss(step):
        return lambda init: np.sum(fad.scan(step, init, np.arange(n))[0])

    for transform in (lambda f: f, fad.grad):
        with pytest.raises(ShapeMismatchError, match="the function of scan was given an array of shape"):
            transform(loss(grow))(np.ones(2))
        with pytest.raises(DtypeMismatchError, match="the function of scan was given an array of dtype float64"):
            transform(loss(widen))(np.ones(2))
    with pytest.raises(TypeError, match="must return"):
        fad.scan(lambda carry, x: carry if x == n - 1 else (carry, x), 0.0, np.arange(n))


def test_a_scan_over_a_tree_without_arrays_has_the_length_that_is_given():
    assert fad.scan(lambda c, x: (c + 1.0, x), 0.0, (), 3) == (3.0, ())
    assert fad.grad(lambda w: fad.scan(lambda c, x: (c * w, None), 1.0, {"none": None}, 3)[0])(2.0) == 12.0
