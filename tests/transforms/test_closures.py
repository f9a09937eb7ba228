"""A function that closes over a traced value, called with another transform's: the right derivative, or an error."""

import numpy as np
import pytest

import fad
import fad.sparse
from fad import control
from fad.compat.autograd.extend import defvjp, primitive
from fad.errors import CustomRuleError


def _custom_jvp(x):
    c = fad.custom_jvp(lambda y: x * y)
    c.defjvp(lambda primals, tangents: (x * primals[0], x * tangents[0]))
    return c


def _custom_vjp(x):
    c = fad.custom_vjp(lambda y: x * y)
    c.defvjp(lambda y: (x * y, None), lambda _, ct: (ct * x,))
    return c


def _residual(x):
    c = fad.custom_vjp(lambda y: x * y)
    c.defvjp(lambda y: (x * y, x), lambda res, ct: (ct * res,))
    return c


def _autograd(x):
    c = primitive(lambda y: x * y)
    defvjp(c, lambda ans, y: lambda g: g * x)
    return c


def _bisect(f, _):
    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if f(middle) < 0 else (low, middle)
    return high


CUSTOM = {"custom_jvp": _custom_jvp, "custom_vjp": _custom_vjp, "residual": _residual, "primitive": _autograd}
OTHERS = {
    "custom_root": lambda x: lambda z: fad.custom_root(lambda y: y - x * z, 1.0, _bisect, lambda g, y: y / g(1.0)),
    "custom_linear_solve": lambda x: (
        lambda z: fad.custom_linear_solve(lambda y: y / x, z, lambda mv, b: b / mv(1.0), symmetric=True)
    ),
    "checkpoint": lambda x: fad.checkpoint(lambda y: x * y),
    "jit": lambda x: fad.jit(lambda y: x * y),
    "jit of grad": lambda x: fad.jit(fad.grad(lambda y: 0.5 * x * y * y)),
    "jit of vmap": lambda x: lambda z: fad.jit(fad.vmap(lambda y: x * y))(np.stack([z, z]))[0],
    "scan": lambda x: lambda z: control.scan(lambda c, _: (c * x, c), z, None, length=1)[0],
    "cond": lambda x: lambda z: control.cond(z > 0, lambda y: x * y, lambda y: y, z),
    "jet": lambda x: lambda z: fad.jet(lambda y: 0.5 * x * y * y, (z,), ((1.0,),))[1][0],
    "linearize": lambda x: lambda z: fad.linearize(lambda y: 0.5 * x * y * y, z)[1](1.0),
}
TRANSFORMS = {
    "grad": fad.grad,
    "jvp": lambda f: lambda a: fad.jvp(f, (a,), (1.0,))[1],
    "linearize": lambda f: lambda a: fad.linearize(f, a)[1](1.0),
    "vmap": lambda f: lambda a: np.sum(fad.vmap(f)(np.stack([a, a]))),
    "jet": lambda f: lambda a: fad.jet(f, (a,), ((1.0,),))[1][0],
    "checkpoint": lambda f: fad.grad(fad.checkpoint(f)),
    "jacobian": fad.jacobian,
    "jit": fad.jit,
    "jit of grad": lambda f: fad.jit(fad.grad(f)),
}


@pytest.mark.parametrize("inner", TRANSFORMS)
@pytest.mark.parametrize("outer", TRANSFORMS)
def test_a_function_made_inside_one_transform_and_given_values_of_another(outer, inner):
    def run(make):
        return TRANSFORMS[outer](lambda z: TRANSFORMS[inner](lambda x: make(x)(z))(3.0))(2.0)

    wanted = run(lambda x: lambda y: x * y)
    for name, make in OTHERS.items():
        np.testing.assert_allclose(run(make), wanted, rtol=1e-9, err_msg=name)
    for name, make in CUSTOM.items():
        if "jit" in (outer, inner):  # there the rule meets no younger transform
            np.testing.assert_allclose(run(make), wanted, err_msg=name)
        else:
            with pytest.raises(CustomRuleError, match=r"outside its arguments \(x\)"):
                run(make)


@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if name != "jit"])
def test_a_function_given_the_value_that_it_closes_over(transform):
    run = lambda make: TRANSFORMS[transform](lambda x: make(x)(x))(3.0)
    wanted = run(lambda x: lambda y: x * y)
    for name, make in OTHERS.items():
        np.testing.assert_allclose(run(make), wanted, rtol=1e-9, err_msg=name)
    for make in CUSTOM.values():
        with pytest.raises(CustomRuleError, match=r"outside its arguments \(x\), .* Pass that value as an argument"):
            run(make)


@pytest.mark.parametrize("transform", TRANSFORMS)
def test_with_plain_arguments_the_derivative_goes_through_the_function_itself(transform):
    run = lambda make: TRANSFORMS[transform](lambda x: make(x)(2.0))(3.0)
    for make in (CUSTOM | OTHERS).values():
        np.testing.assert_allclose(run(make), run(lambda x: lambda y: x * y), rtol=1e-9)


def test_sparse_derivatives_of_a_function_that_closes_over_a_traced_value():
    z = np.array([2.0, 3.0])
    f = lambda z, x: np.sum(fad.sparse.jacobian(lambda y: x * y * y)(z).data)
    assert fad.grad(f, 1)(z, 4.0) == 10.0


def test_primitives_of_autograd_are_mapped():
    c = primitive(lambda y: y * y)
    defvjp(c, lambda ans, y: lambda g: 10.0 * g)
    x = np.array([2.0, 3.0])
    np.testing.assert_array_equal(fad.vmap(c)(x), [4.0, 9.0])
    np.testing.assert_array_equal(fad.vmap(fad.grad(c))(x), [10.0, 10.0])
    np.testing.assert_array_equal(fad.grad(lambda x: np.sum(fad.vmap(c)(x)))(x), [10.0, 10.0])
    np.testing.assert_array_equal(fad.vmap(fad.vmap(c))(x.reshape(2, 1)), [[4.0], [9.0]])
