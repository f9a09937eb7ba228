"""Plain arrays that a program refills after an operation has used them: derivatives take them as they were then."""

import numpy as np
import pytest
from refilled import PROGRAMS, X

import fad

M = np.array([True, True, False])


def differences(f, x):
    h = 1e-6
    return np.array([(f(x + h * e) - f(x - h * e)) / (2 * h) for e in np.eye(x.size)])


@pytest.mark.parametrize("mode", ["sample", "full"])
@pytest.mark.parametrize("f", PROGRAMS)
def test_every_mode_of_derivative_sees_a_refilled_array_as_it_was_when_it_was_used(f, mode):
    want = differences(f, X)
    with fad.config.use(check_mutation=mode):
        np.testing.assert_allclose(fad.grad(f)(X), want, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(fad.jacfwd(f)(X), want, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose([fad.linearize(f, X)[1](e) for e in np.eye(3)], want, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(fad.grad(lambda x: fad.vmap(f)(x[None])[0])(X), want, rtol=1e-7, atol=1e-7)
        np.testing.assert_allclose(fad.grad(fad.checkpoint(f))(X), want, rtol=1e-7, atol=1e-7)
        second = fad.jacobian(lambda x: fad.jvp(f, (x,), (np.ones(3),))[1])(X)
        np.testing.assert_allclose(second, fad.hessian(f)(X) @ np.ones(3), rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize("n", [3, 5_000])
def test_a_pullback_and_a_linearised_function_keep_what_was_overwritten_since(n):
    x, w = np.full(n, 2.0), np.full(n, 3.0)
    y, pullback = fad.vjp(lambda x: np.exp(x) * w * x[0], x)
    z, push = fad.linearize(lambda x: np.exp(x) * w * x[0], x)
    want, pushed = pullback(np.ones(n))[0], push(np.ones(n))
    for changed in (x, w, y, z):
        changed[n // 2] = 0.0
        np.testing.assert_array_equal(pullback(np.ones(n))[0], want)
        np.testing.assert_array_equal(push(np.ones(n)), pushed)


def test_views_of_an_input_and_of_a_constant_are_kept_as_they_were():
    x, w = np.arange(12.0).reshape(3, 4), np.ones((4, 4))
    y, pullback = fad.vjp(lambda v: v[0] * v[1] * w[1:3, ::2].ravel(), x)
    want = pullback(y)[0]
    x[0, 0] = w[1, 0] = 7.0
    np.testing.assert_array_equal(pullback(y)[0], want)


def test_auxiliary_results_may_be_overwritten_before_the_pullback():
    def f(x):
        y = np.exp(x)
        return np.sum(y * y), y

    _, pullback, aux = fad.vjp(f, X, has_aux=True)
    _, push, more = fad.linearize(f, X, has_aux=True)
    aux[:] = more[:] = 0.0
    np.testing.assert_allclose(pullback(1.0)[0], 2 * np.exp(2 * X))
    np.testing.assert_allclose(push(np.ones(3)), np.sum(2 * np.exp(2 * X)))


def test_what_stop_gradient_gives_may_be_overwritten():
    def f(x):
        y = np.exp(x)
        bare = fad.stop_gradient(y)
        bare *= 0.0
        return np.sum(y)

    np.testing.assert_array_equal(fad.grad(f)(X), np.exp(X))
    np.testing.assert_array_equal(fad.jvp(f, (X,), (np.ones(3),))[0], np.sum(np.exp(X)))


def test_the_residuals_of_a_custom_rule_may_lie_in_a_scratch_array():
    scratch = np.zeros(3)
    square = fad.custom_vjp(lambda x: np.sum(x * x))

    def forward(x):
        scratch[:] = 2 * x
        return np.sum(x * x), scratch

    square.defvjp(forward, lambda res, ct: (ct * res,))
    np.testing.assert_array_equal(fad.grad(lambda x: square(x) + square(3.0 * x))(X), 20 * X)


def test_an_argument_of_a_checkpoint_may_be_refilled():
    scratch = np.zeros(3)
    step = fad.checkpoint(lambda x, w: np.sum(np.sin(x * w)))

    def f(x):
        total = 0.0
        for k in range(3):
            scratch[:] = k
            total = total + step(x, scratch)
        return total

    np.testing.assert_allclose(fad.grad(f)(X), differences(f, X), rtol=1e-7)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (70, 80), (3, 1), ()])
@pytest.mark.parametrize("dtype", ["f8", "f4", "c16", "i4", "?", ">f8"])
def test_what_a_constant_was_does_not_depend_on_its_layout(shape, dtype):
    rng = np.random.default_rng(0)
    x = rng.normal(size=shape)
    base = (3 * rng.normal(size=(*shape, 2))).astype(dtype)
    ones = np.broadcast_to(base.ravel()[0], shape).copy()
    for w in (base[..., 0], base[..., 1].T.copy().T, base[..., ::-1][..., 1], ones):
        y, pullback = fad.vjp(lambda x, w=w: x * w, x)
        want = pullback(np.ones(shape, y.dtype))[0]
        w[...] = 0
        np.testing.assert_array_equal(pullback(np.ones(shape, y.dtype))[0], want)


@pytest.mark.parametrize("call", [fad.checkpoint, fad.jit])
@pytest.mark.parametrize("n", [3, 600])
def test_what_runs_again_in_the_backward_pass_finds_arrays_from_outside_as_they_were(call, n):
    scratch = np.zeros(n)
    holder = {"all": [np.ones(n)]}
    step = call(lambda x: np.sum(np.sin(x[0] * scratch) * x[1] * holder["all"][0]))

    def f(x):
        total = 0.0
        for k in range(3):
            scratch[n // 2] = k
            holder["all"][0][0] = 1.0 - k
            total = total + step(x)
        return total

    for _ in range(3):
        np.testing.assert_allclose(fad.grad(f)(X), differences(f, X), rtol=1e-6, atol=1e-7)
        np.testing.assert_array_equal(scratch[n // 2], 2.0)  # and they are put back


def test_a_checkpoint_that_refills_an_array_itself_runs_again_on_the_same_values():
    scratch = np.ones(3)

    def refilling(x):
        y = np.sum(np.exp(x * scratch))
        scratch[:] = 2.0
        return y + np.sum(x * x * scratch)

    def run(f):
        scratch[:] = 1.0
        return fad.grad(lambda x: f(x) + f(2.0 * x))(X)

    np.testing.assert_allclose(run(fad.checkpoint(refilling)), run(refilling), rtol=1e-12)


def test_a_large_array_that_a_jitted_function_reads_is_watched_until_its_pullback():
    w = np.ones(100_000)
    _, pullback = fad.vjp(fad.jit(lambda x: np.sum(x * x * w)), np.ones(100_000))
    w *= 2.0
    with pytest.raises(fad.errors.MutationError, match="overwritten"):
        pullback(1.0)


def test_what_rules_are_given_may_be_written_into():
    double = fad.custom_vjp(lambda x, w: 2.0 * x * w)

    def forward(x, w):
        return 2.0 * x * w, (x.copy(), np.array(w))

    def backward(res, ct):
        for r in res:
            r *= ct
        return 2.0 * res[1], 2.0 * res[0]

    double.defvjp(forward, backward)
    w = np.arange(3.0)
    _, pullback = fad.vjp(lambda x: double(x, w), X)
    np.testing.assert_array_equal(pullback(np.ones(3))[0], 2.0 * w)


@pytest.mark.parametrize("bytes_of", [2_000, 40_000, 2_000_000])
@pytest.mark.parametrize("layout", ["C", "F", "gaps", "turned", "float32", "integers", "0 strides"])
def test_arrays_of_every_size_and_layout_are_seen_as_they_were(bytes_of, layout):
    n = int((bytes_of / 8) ** 0.5)
    dtype = {"float32": np.float32, "integers": np.int64}.get(layout, float)
    w = np.ones((n, 2 * n), dtype, order="F" if layout == "F" else "C")
    w = {"gaps": w[:, ::2], "turned": w[::-1, ::-1], "0 strides": np.broadcast_to(w[:, :1], (n, n))}.get(layout, w)

    def f(x):
        total = 0.0
        for k in (2, 3, 3, 2):
            (w if layout != "0 strides" else w.base)[n // 2, 0] = k
            total = total + np.sum(x * w)
        return total

    g = fad.grad(f)(np.ones(w.shape))
    assert g[n // 2, 0] == 10.0
    assert np.sum(g != 4.0) == (n if layout == "0 strides" else 1)


def test_forward_mode_keeps_a_mask_and_an_index_array_as_they_were_when_they_chose():
    chosen, places, x = np.zeros(3, bool), np.zeros(3, int), np.array([0.0, 4.0, 0.0])

    def masked(x):
        chosen[:] = True
        y = np.where(chosen, x, 0.0)
        chosen[:] = False
        return y

    def gathered(x):
        chosen[:], places[:] = [True, True, False], [0, 1, 2]
        y = np.where(chosen, x, 0.0)[places]
        places[:] = 2
        return np.sqrt(y)

    np.testing.assert_array_equal(fad.jvp(masked, (x,), (np.ones(3),))[1], np.ones(3))
    with np.errstate(divide="ignore"):
        np.testing.assert_array_equal(fad.jvp(gathered, (x,), (np.ones(3),))[1], [np.inf, 0.25, 0.0])


CHOICES = [
    lambda x: np.where(M, x, 0.0), lambda x: np.where(M, 0.0, x), lambda x: np.maximum(x, -9.0),
    lambda x: np.clip(x, -9.0, 99.0), lambda x: np.where(M[:, None], x, 0.0), lambda x: x + 1.0, lambda x: 1.0 + x,
    lambda x: x[::-1] + x, lambda x: np.positive(x), lambda x: x[:2] * 2.0,
]  # fmt: skip


@pytest.mark.parametrize("choose", CHOICES)
def test_forward_mode_keeps_the_tangent_of_a_result_when_the_array_is_overwritten(choose):
    def f(x):
        x = x * 1.0
        x[0] = 2.0 * x[1]
        y = choose(x)
        x[:] = 0.0
        return y

    got = fad.jvp(f, (X,), (np.ones(3),))[1]
    np.testing.assert_array_equal(got, fad.jvp(choose, (X,), (np.array([2.0, 1.0, 1.0]),))[1])


@pytest.mark.parametrize("choose", CHOICES)
def test_forward_mode_keeps_the_tangent_of_a_result_of_an_array_that_holds_constants_too(choose):
    def f(x):
        x = np.array([x[0], x[1], 2.0])
        x[0] = 2.0 * x[1]
        y = choose(x)
        x[:] = 0.0
        return y

    got = fad.jvp(f, (X,), (np.ones(3),))[1]
    np.testing.assert_array_equal(got, fad.jvp(choose, (X,), (np.array([2.0, 1.0, 0.0]),))[1])
