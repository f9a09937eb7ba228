"""What a transform returns shares no memory, so that a program means the same plainly and within other transforms."""

import numpy as np
import pytest

import fad

X = np.array([0.5, 1.2, 0.8, 1.4])


def give_views(r):
    c = r.copy()
    c[0] = 1.0
    return c, c[::-1], c


@fad.custom_jvp
def views_by_custom_jvp(r):
    return give_views(r)


views_by_custom_jvp.defjvp(lambda p, t: (give_views(p[0]), (t[0] * 1.0, t[0][::-1] * 1.0, t[0] * 1.0)))


@fad.custom_vjp
def views_by_custom_vjp(r):
    return give_views(r)


views_by_custom_vjp.defvjp(lambda r: (give_views(r), None), lambda _, g: (g[0] + g[1][::-1] + g[2],))


@fad.custom_jvp
def exp_by_rule(x):
    return np.exp(x)


@exp_by_rule.defjvp
def _exp_and_its_tangent(primals, _tangents):
    y = np.exp(primals[0])
    return y, y


def linearize_and_push(x):
    return fad.linearize(give_views, x)[1](x)


MAKERS = {
    "vmap": lambda x: [y[0] for y in fad.vmap(give_views)(x[None])],
    "values of jvp": lambda x: fad.jvp(give_views, (x,), (x,))[0],
    "tangents of jvp": lambda x: fad.jvp(give_views, (x,), (x,))[1],
    "a value and its tangent": lambda x: (*fad.jvp(exp_by_rule, (x,), (x,)), x * 1.0),
    "values of vjp": lambda x: fad.vjp(give_views, x)[0],
    "cotangents": lambda x: (*fad.vjp(lambda a, b: (a + b) * 1.0, x, x)[1](x), x * 1.0),
    "values of linearize": lambda x: fad.linearize(give_views, x)[0],
    "tangents of linearize": linearize_and_push,
    "custom_vjp": views_by_custom_vjp,
    "custom_jvp": views_by_custom_jvp,
    "jit": fad.jit(give_views),
    "has_aux": lambda x: fad.grad(lambda r: (np.sum(r), give_views(r)), has_aux=True)(x)[1],
}

TRANSFORMS = {
    "none": lambda f: f(X.copy()),
    "jvp": lambda f: fad.jvp(f, (X,), (X,))[0],
    "grad": lambda f: fad.value_and_grad(f)(X)[0],
    "vmap": lambda f: fad.vmap(f)(X[None])[0],
    "jit": lambda f: fad.jit(f)(X),
    "vmap of grad": lambda f: fad.vmap(fad.value_and_grad(f))(X[None])[0][0],
}


@pytest.mark.parametrize("transform", TRANSFORMS.values(), ids=TRANSFORMS)
@pytest.mark.parametrize("make", MAKERS.values(), ids=MAKERS)
def test_a_write_into_one_result_leaves_the_others(make, transform):
    def f(x):
        a, b, c = make(x)
        before = np.sum(a) + 2 * np.sum(c)
        b[0] = 100.0 * x[0]
        b *= 3.0
        after = np.sum(a) + 2 * np.sum(c)
        c[1] = 50.0
        return before - after + np.sum(np.abs(a[1])) - abs(a[1])

    np.testing.assert_allclose(transform(f), 0.0, atol=1e-12)
